"""Data sets: cases, and where they come from and go to.

Whoever judges one content needs the type of a case and nothing else, so the rest is imported when it is first used.
"""

from typing import TYPE_CHECKING, Any

from adjudge.dataset._case import Case, Label

if TYPE_CHECKING:
    from adjudge.dataset._dataset import BadRow, Dataset, open_dataset
    from adjudge.dataset._inspect import import_inspect
    from adjudge.dataset._promptfoo import import_promptfoo
    from adjudge.dataset._write import write_cases

__all__ = [
    "BadRow",
    "Case",
    "Dataset",
    "Label",
    "import_inspect",
    "import_promptfoo",
    "open_dataset",
    "write_cases",
]

_HOMES = {
    "BadRow": "adjudge.dataset._dataset",
    "Dataset": "adjudge.dataset._dataset",
    "import_inspect": "adjudge.dataset._inspect",
    "import_promptfoo": "adjudge.dataset._promptfoo",
    "open_dataset": "adjudge.dataset._dataset",
    "write_cases": "adjudge.dataset._write",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'adjudge.dataset' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
