"""A data set judged: what was asked, what came back, and where it is kept."""

from adjudge._run._items import RunItem
from adjudge._run._plan import Progress
from adjudge._run._running import Running, run
from adjudge._run._value import Run, open_run

__all__ = ["Progress", "Run", "RunItem", "Running", "open_run", "run"]
