"""Signs that a text addresses a model or a grader."""
