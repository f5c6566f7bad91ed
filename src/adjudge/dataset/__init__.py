"""Data sets: cases, and the files they are read from."""

from adjudge.dataset._case import Case, Label, read_cases

__all__ = ["Case", "Label", "read_cases"]
