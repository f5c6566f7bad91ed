"""The progress of a run in a notebook: one line below the cell, which is updated as items are written.

IPython is never imported: in a notebook it is there already, and anywhere else nothing is shown.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from adjudge.runs.options import Progress

_UPDATE_SECONDS = 0.25
"""The least seconds between two updates; the last one comes at once."""


def find_notebook_progress() -> Callable[[Progress], None] | None:
    """Return a function that shows the progress below the cell; ``None`` where there is no notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    # IPython in a terminal has no kernel, and no line that can be updated.
    return None if ipython is None or getattr(shell, "kernel", None) is None else _ProgressLine(ipython)


class _ProgressLine:
    """One line below a cell."""

    def __init__(self, ipython: Any) -> None:
        self._display = ipython.display.display
        self._handle: Any = None
        self._updated_at = 0.0

    def __call__(self, progress: Progress) -> None:
        """Show the progress, unless the last update was a moment ago."""
        now = time.monotonic()
        if self._handle is None:
            self._handle = self._display(progress, display_id=True)
        elif progress.done == progress.total or now - self._updated_at >= _UPDATE_SECONDS:
            self._handle.update(progress)
        else:
            return
        self._updated_at = now
