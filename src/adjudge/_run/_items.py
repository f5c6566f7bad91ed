"""What a run consists of: one item for each time a case was judged."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from adjudge._pair import PairResult
from adjudge._plain import to_plain
from adjudge.dataset._case import Case
from adjudge.result import JudgeResult


@dataclass(frozen=True, slots=True, kw_only=True)
class RunItem:
    """One case, judged once."""

    case: Case
    place: int
    """Which case of the data set it is, from 0."""
    result: JudgeResult | PairResult
    """A ``PairResult`` where the case is a pair that was compared."""
    sample: int = 0
    """Which of the repeated judgements of this case it is, from 0."""
    subject: str = ""
    """SHA-256 of the whole case, by which a resumed run knows its data again."""


_PARTS = ("id", "content", "reference", "task", "context", "label", "labels", "group", "metadata")


def digest_case(case: Case) -> str:
    """SHA-256 of everything a case says, in hexadecimal: with another label it is another case."""
    return hashlib.sha256(encode([to_plain(getattr(case, name)) for name in _PARTS])).hexdigest()


def encode(data: Any) -> bytes:
    """Plain data as JSON."""
    import msgspec

    # Half a surrogate pair has no UTF-8; it was judged all the same, and is kept as it is written in a program.
    try:
        return msgspec.json.encode(data)
    except UnicodeEncodeError:
        return json.dumps(data).encode()
