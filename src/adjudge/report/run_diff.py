"""``diff``: what changed between two runs of the same cases, and whether it is more than chance."""

from __future__ import annotations

import json
import math
import os
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter
from typing import Any, ClassVar

import msgspec

from adjudge.dataset.case import OWN_KEYS
from adjudge.errors import AdjudgeError, UsageError
from adjudge.formats.arguments import check_flag
from adjudge.formats.sqlite import UNUSABLE, name_sqlite, open_sqlite
from adjudge.formats.text import clean
from adjudge.formats.typed import read_typed
from adjudge.measurement.measurement import Measurement
from adjudge.question.score import TOLERANCE
from adjudge.result import Outcome
from adjudge.runs.folder import Run, list_changes, open_run
from adjudge.trust.difference import Means, PairedTally, compute_mcnemar

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
    same_criteria: bool = True
    """Whether the case brought the same criteria, rubric, rules and threshold of its own, or none."""


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
            same = criteria = True
            if side.subject != found[2].subject:
                bodies = _read_bodies(connection, side.place, found[2].place)
                same, criteria = _agree(bodies, judged), _agree(bodies, OWN_KEYS)
            yield Joined(case=case, before=side, after=found[2], same=same, same_criteria=criteria)
            found = next(later, None)
        for _, case, side in _fold(connection.execute(_ONLY_AFTER)):
            yield Joined(case=case, before=None, after=side)


def _open(before: Run, after: Run) -> sqlite3.Connection:
    def attach(connection: sqlite3.Connection) -> None:
        connection.execute("ATTACH ? AS later", (name_sqlite(after.store.path, "read"),))
        # Both as they are now, though one may still be written to.
        connection.execute("BEGIN")

    try:
        return open_sqlite(before.store.path, mode="read", prepare=attach)
    except UNUSABLE as error:
        raise UsageError(f"{before.folder} and {after.folder} cannot be read together: {error}") from None


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
        return read_typed(json.loads(body), _Result)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"a result of the run cannot be read: {str(error)[:200]}; judge it again") from None


def _read_bodies(connection: sqlite3.Connection, one: int, other: int) -> tuple[Any, Any]:
    """The two cases as they were kept."""
    first, second = [
        json.loads(connection.execute(query, (place,)).fetchone()[0])
        for query, place in (
            ("SELECT body FROM main.cases WHERE place = ?", one),
            ("SELECT body FROM later.cases WHERE place = ?", other),
        )
    ]
    return first, second


def _agree(bodies: tuple[Any, Any], names: Sequence[str]) -> bool:
    """Whether two cases say the same under these names; their labels and metadata may differ."""
    first, second = bodies
    return all(first.get(name) == second.get(name) for name in names)


MOST_LISTED = 2_000
"""Cases that a ``Diff`` lists, regressions first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseDiff:
    """A case whose outcome or score changed."""

    case: str
    before: Outcome
    after: Outcome
    score_before: float | None
    score_after: float | None
    criteria: tuple[tuple[str, float | None, float | None], ...] = ()
    """The criteria whose score changed: name, before, after."""
    detail: str = ""
    """Why it has its new outcome: the later result's reason and detail; it may quote the content."""

    @property
    def regressed(self) -> bool:
        """Whether it passed before and does not now; undecided is not passed."""
        return self.before == "passed" != self.after

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        criteria = [{"name": name, "before": old, "after": new} for name, old, new in self.criteria]
        return {name: getattr(self, name) for name in self.__slots__} | {"criteria": criteria}


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffSide:
    """One of the two runs."""

    id: str
    folder: str
    status: str
    counts: Mapping[str, int]
    """Of all its judgements, those without a counterpart included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """What changed between two runs; made by ``diff``.

    A case that was judged several times has the outcome of more than half of its judgements, else it is undecided. Its
    score is the mean of the decided judgements.
    """

    schema: ClassVar[str] = "adjudge/diff/1"

    before: DiffSide
    after: DiffSide
    cases: int
    """Cases that are in both runs and are compared."""
    only_before: int
    """Cases that are not in the later run."""
    only_after: int
    content_changed: int
    """Cases with the same id that are not compared, because the reference, task or context changed, or, without
    ``new_contents``, the content.
    """
    criteria_changed: int = 0
    """Cases that are not compared, because their own criteria, rules or thresholds changed: there the question changed,
    not the judge.
    """
    unmatched_passes: int
    """Cases that passed before and cannot be compared, because they are gone or changed."""
    transitions: Mapping[tuple[Outcome, Outcome], int]
    """How many cases went from which outcome to which, unchanged ones included."""
    p_value: float | None
    """McNemar's exact test of passed against not passed; ``None`` when no case went either way."""
    score: Means
    """The scores of the cases that are decided in both runs."""
    criteria: Mapping[str, Means]
    """The same for each criterion that both runs scored."""
    changed: int
    """Cases with another outcome or another score."""
    new_contents: bool = False
    """Whether cases with another content are compared too."""
    setup_changes: tuple[str, ...] = ()
    """How the judge, the rubric and the question of the runs differ, one clause each; empty if they are the same."""
    measured: tuple[Measurement, Measurement] | None = None
    """What people would say of each run, if labels were given."""
    listed: tuple[CaseDiff, ...]
    """The first of them, at most 2,000: regressions, then other outcomes, then scores, in the order of the data."""

    @property
    def regressions(self) -> int:
        """Cases that passed before and do not now."""
        return sum(number for (old, new), number in self.transitions.items() if old == "passed" != new)

    @property
    def improvements(self) -> int:
        """Cases that pass now and did not before."""
        return sum(number for (old, new), number in self.transitions.items() if new == "passed" != old)

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        plain = (
            "cases",
            "only_before",
            "only_after",
            "content_changed",
            "criteria_changed",
            "unmatched_passes",
            "regressions",
        )
        moves = [{"before": old, "after": new, "cases": number} for (old, new), number in self.transitions.items()]
        return {
            "schema": self.schema,
            "before": {name: getattr(self.before, name) for name in DiffSide.__slots__},
            "after": {name: getattr(self.after, name) for name in DiffSide.__slots__},
            **{
                name: getattr(self, name)
                for name in (*plain, "regressions", "improvements", "p_value", "changed", "new_contents")
            },
            "setup_changes": list(self.setup_changes),
            "transitions": moves,
            "measured": None if self.measured is None else [item.to_dict() for item in self.measured],
            "score": self.score.to_dict(),
            "criteria": {name: means.to_dict() for name, means in self.criteria.items()},
            "listed": [item.to_dict() for item in self.listed],
        }


def diff(
    before: Run | str | os.PathLike[str], after: Run | str | os.PathLike[str], *, new_contents: bool = False
) -> Diff:
    """Compare two runs, given as ``Run``s or folders, case by case. Cases are paired by their ids.

    A case is counted and not compared if it brought other criteria, rules or another threshold of its own, or if its
    content changed. With ``new_contents``, changed contents are compared too: use it for a program's answers before and
    after a change, to the same task, reference and context.

    Memory does not grow with the runs. Raises ``UsageError`` for a folder that has no run.
    """
    check_flag("new_contents", new_contents)
    runs = [(item, False) if isinstance(item, Run) else (open_run(item), True) for item in (before, after)]
    try:
        tally = _Tally()
        for pair in join_runs(runs[0][0], runs[1][0], new_contents=new_contents):
            tally.add(pair)
        return replace(tally.sum_up(runs[0][0], runs[1][0]), new_contents=new_contents)
    except AdjudgeError:
        raise
    except (sqlite3.Error, ValueError, TypeError, AttributeError, RecursionError) as error:
        said = clean(str(error)[:200], keep_lines=False)
        raise UsageError(f"these runs cannot be compared ({said}); name two folders of `adjudge run`") from None
    finally:
        for run, is_ours in runs:
            if is_ours:
                run.close()


@dataclass(slots=True)
class _Tally:
    """What has been seen so far."""

    transitions: Counter[tuple[Outcome, Outcome]] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    score: PairedTally = field(default_factory=PairedTally)
    criteria: dict[str, PairedTally] = field(default_factory=dict)
    listed: tuple[list[CaseDiff], list[CaseDiff], list[CaseDiff]] = field(default_factory=lambda: ([], [], []))

    def add(self, pair: Joined) -> None:
        """One case of the earlier run, or one that only the later has."""
        before, after = pair.before, pair.after
        if before is None or after is None or not pair.same or not pair.same_criteria:
            changed = "criteria_changed" if pair.same else "content_changed"
            kind = "only_after" if before is None else "only_before" if after is None else changed
            self.counts[kind] += 1
            self.counts["unmatched_passes"] += before is not None and before.outcome == "passed"
            return
        self.transitions[before.outcome, after.outcome] += 1
        if before.score is not None and after.score is not None:
            self.score.add(before.score, after.score)
        for name in before.criteria.keys() & after.criteria.keys():
            self.criteria.setdefault(name, PairedTally()).add(before.criteria[name], after.criteria[name])
        if before.outcome != after.outcome or _differ(before, after):
            self._list(pair.case, before, after)

    def _list(self, case: str, before: Side, after: Side) -> None:
        self.counts["changed"] += 1
        regressed = before.outcome == "passed" != after.outcome
        listed = self.listed[0 if regressed else 1 if before.outcome != after.outcome else 2]
        if len(listed) >= MOST_LISTED:
            return
        names = [*before.criteria, *(name for name in after.criteria if name not in before.criteria)]
        pairs = [(name, before.criteria.get(name), after.criteria.get(name)) for name in names]
        listed.append(
            CaseDiff(
                case=case,
                before=before.outcome,
                after=after.outcome,
                score_before=before.score,
                score_after=after.score,
                criteria=tuple(item for item in pairs if item[1] != item[2]),
                detail=after.detail,
            )
        )

    def sum_up(self, before: Run, after: Run) -> Diff:
        """What it all comes to."""
        worse = sum(number for (old, new), number in self.transitions.items() if old == "passed" != new)
        better = sum(number for (old, new), number in self.transitions.items() if new == "passed" != old)
        regressions, outcomes, scores = self.listed
        return Diff(
            before=_describe(before),
            after=_describe(after),
            cases=self.transitions.total(),
            only_before=self.counts["only_before"],
            only_after=self.counts["only_after"],
            content_changed=self.counts["content_changed"],
            criteria_changed=self.counts["criteria_changed"],
            unmatched_passes=self.counts["unmatched_passes"],
            transitions=dict(sorted(self.transitions.items())),
            p_value=compute_mcnemar(worse, better),
            score=self.score.sum_up(),
            criteria={name: self.criteria[name].sum_up() for name in sorted(self.criteria)},
            changed=self.counts["changed"],
            setup_changes=tuple(list_changes(before.manifest, after.manifest)),
            listed=tuple([*regressions, *outcomes, *scores][:MOST_LISTED]),
        )


def _describe(run: Run) -> DiffSide:
    return DiffSide(id=run.id, folder=str(run.folder), status=run.status, counts=dict(run.counts))


def _differ(before: Side, after: Side) -> bool:
    """Whether scores differ by more than the noise of binary fractions, which older runs have in them."""
    if before.criteria.keys() != after.criteria.keys():
        return True
    pairs = [(before.score, after.score), *[(said, after.criteria[name]) for name, said in before.criteria.items()]]
    return any(one != other and not _are_near(one, other) for one, other in pairs)


def _are_near(one: float | None, other: float | None) -> bool:
    return one is not None and other is not None and abs(one - other) <= TOLERANCE
