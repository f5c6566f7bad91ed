"""Two runs side by side, case by case: a merge of two streams, so that size costs time and no memory."""

from __future__ import annotations

import json
import math
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter

import msgspec

from adjudge._run import Run
from adjudge.errors import UsageError
from adjudge.result import Outcome

_BEFORE = """
    SELECT c.place, c.id, c.place, c.subject, r.outcome, r.because, r.score, r.body
    FROM main.cases c CROSS JOIN main.results r ON r.place = c.place ORDER BY c.place, r.sample"""
# In the order of the earlier run: its cases are walked, and each is looked up in the later one by its id.
_AFTER = """
    SELECT c.place, d.id, d.place, d.subject, r.outcome, r.because, r.score, r.body
    FROM main.cases c CROSS JOIN later.cases d ON d.id = c.id CROSS JOIN later.results r ON r.place = d.place
    ORDER BY c.place, r.sample"""
_ONLY_AFTER = """
    SELECT d.place, d.id, d.place, d.subject, r.outcome, r.because, r.score, r.body
    FROM later.cases d CROSS JOIN later.results r ON r.place = d.place
    WHERE NOT EXISTS (SELECT 1 FROM main.cases c WHERE c.id = d.id) ORDER BY d.place, r.sample"""
_GIVEN = ("reference", "task", "context")

Row = tuple[int, str, int, str, Outcome, str | None, float | None, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What one run says of one case, all its judgements together."""

    outcome: Outcome
    """What more than half of its judgements are, else undecided."""
    score: float | None
    """The mean of those that are decided."""
    criteria: Mapping[str, float]
    """The mean score of each criterion, where there are any."""
    detail: str
    subject: str
    place: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """One case in both runs; a side is ``None`` where it is not."""

    case: str
    before: Side | None
    after: Side | None
    same: bool = True
    """Whether the same was judged: another label or other metadata do not matter."""


@dataclass(slots=True)
class _Sums:
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    scores: list[float] = field(default_factory=list)
    criteria: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))


def join_runs(before: Run, after: Run, *, new_contents: bool = False) -> Iterator[Joined]:
    """Every case of the earlier run in its order, with the later one's of the same id; then what only that one has.

    With ``new_contents``, another content does not make another case; another reference, task or context does.
    """
    judged = _GIVEN if new_contents else ("content", *_GIVEN)
    with closing(_open(before, after)) as connection:
        later = _fold(connection.execute(_AFTER))
        found = next(later, None)
        for place, case, side in _fold(connection.execute(_BEFORE)):
            while found is not None and found[0] < place:
                found = next(later, None)
            if found is None or found[0] != place:
                yield Joined(case=case, before=side, after=None)
                continue
            same = side.subject == found[2].subject or _judge_same(connection, side.place, found[2].place, judged)
            yield Joined(case=case, before=side, after=found[2], same=same)
            found = next(later, None)
        for _, case, side in _fold(connection.execute(_ONLY_AFTER)):
            yield Joined(case=case, before=None, after=side)


def _open(before: Run, after: Run) -> sqlite3.Connection:
    one, other = (f"{run.store.path.resolve().as_uri()}?mode=ro" for run in (before, after))
    connection = sqlite3.connect(one, uri=True, isolation_level=None)
    try:
        connection.execute("ATTACH ? AS later", (other,))
        # Both as they are now, though one may still be written to.
        connection.execute("BEGIN")
    except sqlite3.Error as error:
        connection.close()
        raise UsageError(f"{before.folder} and {after.folder} cannot be read together: {error}") from None
    return connection


def _fold(rows: Iterable[Row]) -> Iterator[tuple[int, str, Side]]:
    """The judgements of each case as one."""
    for key, group in groupby(rows, key=itemgetter(0)):
        several = list(group)
        _, case, place, subject, *_ = several[0]
        yield key, case, _sum_up(several, place, subject)


def _sum_up(rows: list[Row], place: int, subject: str) -> Side:
    sums, detail = _Sums(), ""
    for *_, outcome, because, score, body in rows:
        said = _read(body)
        sums.outcomes[outcome] += 1
        detail = detail or ": ".join(filter(None, (because, said.detail)))
        if score is not None:
            sums.scores.append(score)
        for item in said.criteria:
            if item.score is not None:
                sums.criteria[item.name].append(item.score)
    return Side(
        outcome=next((found for found, number in sums.outcomes.items() if 2 * number > len(rows)), "undecided"),
        score=_mean(sums.scores),
        criteria={name: math.fsum(scores) / len(scores) for name, scores in sums.criteria.items()},
        detail=detail,
        subject=subject,
        place=place,
    )


def _mean(numbers: list[float]) -> float | None:
    return math.fsum(numbers) / len(numbers) if numbers else None


class _Criterion(msgspec.Struct):
    name: str
    score: float | None = None


class _Result(msgspec.Struct):
    """What of a kept result is compared."""

    detail: str = ""
    criteria: list[_Criterion] = []


_DECODER = msgspec.json.Decoder(_Result)


def _read(body: bytes) -> _Result:
    try:
        return _DECODER.decode(body)
    except (msgspec.DecodeError, RecursionError):
        pass
    try:  # half a surrogate pair, which the strict reader refuses
        return msgspec.convert(json.loads(body), _Result)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"a result of the run cannot be read: {str(error)[:200]}; judge it again") from None


def _judge_same(connection: sqlite3.Connection, one: int, other: int, judged: Sequence[str]) -> bool:
    """Whether two cases have the same of what a judge is given; their labels and metadata may differ."""
    bodies = [
        connection.execute(query, (place,)).fetchone()[0]
        for query, place in (
            ("SELECT body FROM main.cases WHERE place = ?", one),
            ("SELECT body FROM later.cases WHERE place = ?", other),
        )
    ]
    first, second = map(json.loads, bodies)
    return all(first.get(name) == second.get(name) for name in judged)
