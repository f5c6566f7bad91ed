"""The progress of a run in a notebook: one line below the cell, which is drawn anew as items are written.

IPython is never imported: in a notebook it is there already, and anywhere else nothing is shown.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from adjudge.runs.options import Progress

_PAUSE = 0.25
"""Seconds between two drawings, the last one apart."""


def find_notebook_progress() -> Callable[[Progress], None] | None:
    """Return a function that shows the progress below the cell; ``None`` where there is no notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    # A terminal's IPython has no kernel, and no line that can be drawn anew.
    return None if ipython is None or getattr(shell, "kernel", None) is None else _Line(ipython)


class _Line:
    """One line below a cell."""

    def __init__(self, ipython: Any) -> None:
        self._display = ipython.display.display
        self._handle: Any = None
        self._drawn = 0.0

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if self._handle is None:
            self._handle = self._display(progress, display_id=True)
        elif progress.done == progress.total or now - self._drawn >= _PAUSE:
            self._handle.update(progress)
        else:
            return
        self._drawn = now
