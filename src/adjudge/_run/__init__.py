"""A data set judged: what was asked, what came back, and where it is kept."""
