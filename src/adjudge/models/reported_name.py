"""The models that replies say they are of, beside the models that were asked for.

A provider may answer for a model that it withdrew by another, under the old name and without a word but the one in the
reply. So the reported name is compared, for as long as the process lives and for every object that asks.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import MutableMapping
from typing import Any

from adjudge.formats.model_name import is_same_model
from adjudge.formats.text import clean

_log = logging.getLogger("adjudge")


_MOST = 1_000
"""Models of which something is remembered."""

_MOST_NAMES = 20
"""Names that are said of one model: a server may make up a new one for every reply."""


class ReportedNames:
    """The names that replies reported, by model. Safe for any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._first: dict[tuple[str, str], str] = {}
        self._reported: dict[tuple[str, str], set[str]] = {}

    def expect(self, model: tuple[str, str], reported: str) -> str:
        """Return the name that this model reported first, which is ``reported`` itself if it is the first reply."""
        with self._lock:
            first = self._first.setdefault(model, reported)
            _forget_oldest(self._first)
            return first

    def compare(self, model: tuple[str, str], reported: str, expected: str, *, requested: bool) -> None:
        """Log a warning if a reply came from another model than was expected: once for each model and reported name.

        ``model`` is the model's spec and the address at which it is asked. ``requested`` is true if ``expected`` is the
        name that was asked for, and false if it is the name that earlier replies reported.
        """
        if is_same_model(expected, reported):
            return
        with self._lock:
            names = self._reported.setdefault(model, set())
            _forget_oldest(self._reported)
            if reported in names or len(names) >= _MOST_NAMES:
                return
            names.add(reported)
        shown_names = [repr(clean(name, keep_lines=False)[:100]) for name in (model[0], reported, expected)]
        if requested:
            _log.warning("%s was answered by the model %s, and %s was asked for; name the model you want", *shown_names)
        else:
            _log.warning("%s is now answered by the model %s, and was by %s before", *shown_names)


def _forget_oldest(entries: MutableMapping[tuple[str, str], Any]) -> None:
    """Drop the entry that was added first, if there are too many."""
    if len(entries) > _MOST:
        del entries[next(iter(entries))]


REPORTED = ReportedNames()
"""Of the whole process: a judge is made anew for many a call, and what its model said before would be lost with it."""
