"""An example data set and its rubric, for ``adjudge demo``: answers of a shop's support agent, judged by rules."""
