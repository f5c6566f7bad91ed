"""Data sets: cases, and where they come from and go to."""

from adjudge.dataset._case import Case, Label
from adjudge.dataset._dataset import BadRow, Dataset, open_dataset
from adjudge.dataset._write import write_cases

__all__ = ["BadRow", "Case", "Dataset", "Label", "open_dataset", "write_cases"]
