"""Comparison of the model that a provider reports with the one that it was asked for."""

from __future__ import annotations

import re
from functools import lru_cache

_DATES = re.compile(
    r"""[-@]
    (?: (?P<y>20\d\d) (?P<sep>-?) (?P<m>\d\d) (?P=sep) (?P<d>\d\d)  # -2026-09-01, -20251001, @20251001
      | (?P<m2>\d\d) - (?:20\d\d | (?P<d2>\d\d))                   # -09-2025, -04-17
      | (?P<four>\d{4})                                             # -0613 (month, day), -2603 (year, month)
      | 0\d\d                                                       # -001
    )""",
    re.VERBOSE | re.ASCII,
)
"""The date or number that marks a snapshot at the end of a name. Other numbers (``-8192``, ``-5``) do not."""

_FOLDER = re.compile(r"^(?:publishers/[^/]+/)?models/")

_LATEST = "-latest"


LONGEST_NAME = 200
"""The most characters of a model's name."""


def is_same_model(requested: str, reported: str) -> bool:
    """Return whether a reported name is the requested one, or names a snapshot of it.

    ``gpt-6.1-terra`` is answered by ``gpt-6.1-terra-2026-09-01``; ``gpt-5`` is not answered by ``gpt-5-mini``, nor one
    snapshot by another.
    """
    if requested == reported:
        return True
    # A server may report a different megabyte each time, so long names are compared without the cache.
    if max(len(requested), len(reported)) > LONGEST_NAME:
        return _is_same_name.__wrapped__(requested, reported)
    return _is_same_name(requested, reported)


@lru_cache(maxsize=1024)
def _is_same_name(requested: str, reported: str) -> bool:
    """Return whether two names are of one model: equal, or the reported one a snapshot of the requested one."""
    requested_name, reported_name = _normalise_name(requested), _normalise_name(reported)
    if requested_name == reported_name:
        return True
    base = requested_name.removesuffix(_LATEST)
    if not base or not reported_name.startswith(base):
        return False
    suffix = reported_name[len(base) :]
    return suffix in ("", _LATEST) or _is_snapshot(suffix)


def _normalise_name(name: str) -> str:
    """Fold case, which no provider distinguishes, and drop the folder that Google's interfaces put before a name."""
    return _FOLDER.sub("", name.strip().casefold(), count=1)


def _is_snapshot(suffix: str) -> bool:
    """Return whether the end of a name marks a snapshot: a month and day that exist, or a number such as ``-001``."""
    match = _DATES.fullmatch(suffix)
    if match is None:
        return False
    month, day = match["m"] or match["m2"], match["d"] or match["d2"]
    if month is not None:
        return _is_month(month) and (day is None or _is_day(day))
    four = match["four"]
    if four is None:  # a number such as -001
        return True
    is_year_and_month = _is_month(four[2:])
    return is_year_and_month or (_is_month(four[:2]) and _is_day(four[2:]))


def _is_month(digits: str) -> bool:
    return 1 <= int(digits) <= 12


def _is_day(digits: str) -> bool:
    return 1 <= int(digits) <= 31
