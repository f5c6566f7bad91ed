"""The data of ``adjudge demo``: answers of a shop's support agent, two rubrics, and judges' replies written for it."""
