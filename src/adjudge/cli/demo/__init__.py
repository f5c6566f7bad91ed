"""What ``adjudge demo`` judges: answers of a shop's support agent, two rubrics, and judges' replies written for it."""
