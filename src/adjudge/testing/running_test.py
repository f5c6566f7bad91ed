"""The judge of the running test, so that ``assert_passes`` finds it without an argument."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adjudge.testing.fixture import TestJudge


_running: list[Callable[[], TestJudge]] = []
"""Functions that return a running test's judge; a stack, because a test may run a suite of its own (``pytester``)."""


@contextmanager
def running(find: Callable[[], TestJudge]) -> Iterator[None]:
    """Make ``find`` return the running test's judge within the block; it is called when a test first asks."""
    _running.append(find)
    try:
        yield
    finally:
        _running.pop()


def find_judge() -> TestJudge | None:
    """Find the judge of the running test; ``None`` where no suite with the plugin is running."""
    return _running[-1]() if _running else None
