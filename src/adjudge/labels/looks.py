"""The record of looks: each time somebody saw what the labels of a run come to.

A limit for one look keeps its promise once. Somebody who looks, labels more and looks again, or draws another plan
because the first one came out badly, needs a limit that holds for all these looks together. The file in the run's
folder says which it is. A draw is a plan, or without one a set of labelled cases that only grows.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

from adjudge.errors import AdjudgeError, UsageError
from adjudge.formats.files import read_text
from adjudge.formats.typed import read_typed

LOOKS_FILE = "looks.jsonl"

_LARGEST = 500_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One look at what the labels of a run come to."""

    schema: ClassVar[str] = "adjudge/look/1"

    at: datetime
    by: str
    """The command, or ``python``."""
    labels: int
    """How many labelled cases there were."""
    draw: str
    """How these were drawn: the id of the plan, or ``labels 1``, ``labels 2`` for sets of labels without one."""
    planned: bool = False
    """Whether a plan drew them."""
    complete: bool = False
    """Whether exactly the planned labels were there."""
    truths: str | None = None
    """SHA-256 of the planned cases and what people said of them, once all of them are labelled."""
    added: tuple[str, ...] = ()
    """Without a plan: digests of the cases that no earlier look at this draw had."""
    limit: str | None = None
    """Which limit was shown: ``one look`` or ``every look``."""
    bar: float | None = None
    """What the lower limit had to reach, where somebody asked."""
    outcome: str | None = None
    """What came of that."""

    def to_dict(self) -> dict[str, Any]:
        """This value as a row of the record."""
        names = ("by", "labels", "draw", "planned", "complete", "truths", "limit", "bar", "outcome")
        kept = {name: getattr(self, name) for name in names}
        at = self.at.astimezone(UTC).isoformat()
        return {"schema": self.schema, "at": at, **kept, "added": list(self.added)}


def load_looks(folder: Path) -> tuple[Look, ...]:
    """The looks at a run so far, the first one first; raises ``UsageError`` for a record that cannot be read."""
    path = folder / LOOKS_FILE
    if not path.exists():
        return ()
    rows = read_text(path, what="a record of looks", most=_LARGEST).splitlines()
    return tuple(_read_look(path, number, row) for number, row in enumerate(rows, 1) if row.strip())


def _read_look(path: Path, number: int, row: str) -> Look:
    try:
        said = json.loads(row)
        schema = said.get("schema") if isinstance(said, dict) else None
        return read_typed(said if schema == Look.schema else None, Look)
    # What msgspec raises is a ValueError.
    except (ValueError, RecursionError) as error:
        # To read on without this line would give a limit for one look to somebody who looked before.
        raise UsageError(
            f"{path}, line {number}, is damaged ({error}), so nobody knows which looks were taken; restore the file "
            "from a copy"
        ) from None


def write_look(folder: Path, look: Look) -> None:
    """Add a look to the record of a run, readable by its owner alone. Raises ``AdjudgeError``."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
    path = folder / LOOKS_FILE
    try:
        with os.fdopen(os.open(path, flags, 0o600), "ab") as file:
            file.write(json.dumps(look.to_dict()).encode() + b"\n")
    except OSError as error:
        raise AdjudgeError(f"the look cannot be recorded in {path}: {error.strerror}; make it writable") from None


def find_draw(looks: Sequence[Look], cases: Collection[str]) -> tuple[str, tuple[str, ...]]:
    """Which draw these cases without a plan are, and those of them that no earlier look at it had.

    It is the draw of an earlier look if none of the cases of that look is missing. Otherwise it is another sample:
    whoever draws samples until one of them comes out well takes a chance with each.
    """
    known: dict[str, set[str]] = {}
    for look in looks:
        if not look.planned:
            known.setdefault(look.draw, set()).update(look.added)
    names = set(cases)
    for draw, earlier in reversed(known.items()):
        if earlier <= names:
            return draw, tuple(sorted(names - earlier))
    return f"labels {len(known) + 1}", tuple(sorted(names))


def find_first_plan(looks: Sequence[Look]) -> str | None:
    """The plan that has the limit for one look: the first that anybody looked at."""
    return next((look.draw for look in looks if look.planned), None)


def has_look(looks: Sequence[Look], draw: str, truths: str | None) -> bool:
    """Whether somebody looked at exactly these labels of a plan before; then to look again shows nothing new."""
    return truths is not None and any((look.draw, look.truths) == (draw, truths) for look in looks)


def count_earlier_draws(looks: Sequence[Look], draw: str) -> int:
    """How many other draws were looked at before this one by the limit for every look."""
    names = list(dict.fromkeys(look.draw for look in looks))
    before = names[: names.index(draw)] if draw in names else names
    return len(set(before) - {find_first_plan(looks)})
