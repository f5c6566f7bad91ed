"""The parts that tests share, in modules named by what they give; none of it is a test."""
