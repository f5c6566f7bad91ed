"""Judging inside a test suite: what a test asks with, what its failure says, and the recording it is replayed from."""
