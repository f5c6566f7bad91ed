"""``diff``: the changes between two runs of the same cases, their size, and what can explain them."""

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
from operator import attrgetter
from typing import Any, ClassVar, Literal, NamedTuple

import msgspec

from adjudge.dataset.case import OWN_KEYS
from adjudge.errors import AdjudgeError, UsageError
from adjudge.formats.numbers import TOLERANCE
from adjudge.formats.record import Layout, write_record
from adjudge.formats.sqlite import UNUSABLE, name_sqlite, open_sqlite
from adjudge.formats.text import clean
from adjudge.formats.typed import read_typed
from adjudge.judges.pair import PairResult, Preference
from adjudge.measurement.judge_difference import JudgeDifference, ShareDifference
from adjudge.measurement.measurement import Measurement
from adjudge.measurement.run_difference import SystemDifference
from adjudge.report.setup_changes import list_setup_changes
from adjudge.result import Outcome
from adjudge.runs.folder import Run, open_run
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

_INPUTS = ("reference", "task", "context")

Compared = Literal["answers", "judges", "both"]
"""The causes of the differences: the answers, judged by one judge; the judges, on the same answers; or either."""

_PASSES = ("passed", "first")


class _JudgementRow(NamedTuple):
    """A judgement as the three queries select it."""

    order: int
    """The place by which both runs are walked: that of the case in the earlier run, if it has it."""
    case: str
    place: int
    """The place of the case in the run of this judgement."""
    subject: str
    outcome: Outcome
    because: str | None
    score: float | None
    body: bytes


class _CaseSide(NamedTuple):
    """A case in one run, and the place by which both runs are walked."""

    order: int
    case: str
    side: Side


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """The verdict of one run on one case, all its judgements together."""

    verdict: Outcome | Preference
    """The verdict of more than half of its judgements, else undecided."""
    score: float | None
    """The mean of those that are decided."""
    criteria: Mapping[str, float]
    """The mean score of each criterion, where there are any."""
    detail: str
    subject: str
    place: int
    models: frozenset[tuple[str, str]] = frozenset()
    """Each judge with the model that answered it, where the replies name it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """One case in both runs; a side is ``None`` where it is not."""

    case: str
    before: Side | None
    after: Side | None
    same_content: bool = True
    same_inputs: bool = True
    """True if reference, task and context are the same: another label or other metadata do not matter."""
    same_criteria: bool = True
    """True if both runs have the case with the same criteria, rubric, rules and threshold, or without any."""

    @property
    def is_comparable(self) -> bool:
        """Return whether both runs asked the same about this case; its content may be another."""
        return self.before is not None and self.after is not None and self.same_inputs and self.same_criteria


@dataclass(slots=True)
class _Sums:
    verdicts: Counter[Outcome | Preference] = field(default_factory=Counter)
    scores: list[float] = field(default_factory=list)
    criteria: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    models: set[tuple[str, str]] = field(default_factory=set)


def join_runs(before: Run, after: Run) -> Iterator[Joined]:
    """Yield every case of the earlier run in its order, with the later one's of the same id; then those only it has."""
    with closing(_open_both(before, after)) as connection:
        later = _sum_up_cases(connection.execute(_AFTER))
        matching = next(later, None)
        for earlier in _sum_up_cases(connection.execute(_BEFORE)):
            while matching is not None and matching.order < earlier.order:
                matching = next(later, None)
            if matching is None or matching.order != earlier.order:
                yield Joined(case=earlier.case, before=earlier.side, after=None)
                continue
            yield _join_sides(connection, earlier.case, earlier.side, matching.side)
            matching = next(later, None)
        for added in _sum_up_cases(connection.execute(_ONLY_AFTER)):
            yield Joined(case=added.case, before=None, after=added.side)


def _join_sides(connection: sqlite3.Connection, case: str, before: Side, after: Side) -> Joined:
    """Join a case that both runs have; only where the digests of the whole case differ, its parts are compared."""
    if before.subject == after.subject:
        return Joined(case=case, before=before, after=after)
    bodies = _read_bodies(connection, before.place, after.place)
    return Joined(
        case=case,
        before=before,
        after=after,
        same_content=_are_equal(bodies, ("content",)),
        same_inputs=_are_equal(bodies, _INPUTS),
        same_criteria=_are_equal(bodies, OWN_KEYS),
    )


def _open_both(before: Run, after: Run) -> sqlite3.Connection:
    """Open both runs in one connection, the later one as the schema ``later``.

    Raises ``UsageError`` where they cannot be read together.
    """

    def attach(connection: sqlite3.Connection) -> None:
        connection.execute("ATTACH ? AS later", (name_sqlite(after.store.path, after.store.reads_as),))
        # Both as they are now, though one may still be written to.
        connection.execute("BEGIN")

    try:
        return open_sqlite(before.store.path, mode=before.store.reads_as, prepare=attach)
    except UNUSABLE as error:
        raise UsageError(f"{before.folder} and {after.folder} cannot be read together: {error}") from None


def _sum_up_cases(rows: Iterable[tuple[Any, ...]]) -> Iterator[_CaseSide]:
    """Yield the judgements of each case as one."""
    for order, group in groupby(map(_JudgementRow._make, rows), key=attrgetter("order")):
        judgements = list(group)
        yield _CaseSide(order, judgements[0].case, _sum_up(judgements))


def _sum_up(judgements: list[_JudgementRow]) -> Side:
    """Sum up the judgements of one case: the verdict of more than half of them, and mean scores."""
    sums, detail = _Sums(), ""
    for judgement in judgements:
        result = _read_result(judgement.body)
        sums.verdicts[result.preferred or judgement.outcome] += 1
        sums.models |= set(_list_models(result))
        detail = detail or ": ".join(filter(None, (judgement.because, result.detail)))
        # The score of a pair counts who won.
        if judgement.score is not None and result.schema != PairResult.schema:
            sums.scores.append(judgement.score)
        for criterion in result.criteria:
            if criterion.score is not None:
                sums.criteria[criterion.name].append(criterion.score)
    return Side(
        verdict=next(
            (verdict for verdict, number in sums.verdicts.items() if 2 * number > len(judgements)), "undecided"
        ),
        score=_compute_mean(sums.scores),
        criteria={name: math.fsum(scores) / len(scores) for name, scores in sums.criteria.items()},
        detail=detail,
        subject=judgements[0].subject,
        place=judgements[0].place,
        models=frozenset(sums.models),
    )


def _compute_mean(numbers: list[float]) -> float | None:
    return math.fsum(numbers) / len(numbers) if numbers else None


class _Criterion(msgspec.Struct):
    name: str
    score: float | None = None


class _Order(msgspec.Struct):
    result: _Result


class _Result(msgspec.Struct):
    """The members of a kept result that are compared."""

    schema: str = ""
    detail: str = ""
    criteria: list[_Criterion] = []
    preferred: Preference | None = None
    judge: str = ""
    model: str | None = None
    results: list[_Result] = []
    orders: list[_Order] = []


def _list_models(result: _Result) -> Iterator[tuple[str, str]]:
    """Yield each judge with the model that answered it, at any depth."""
    for part in [*result.results, *(order.result for order in result.orders)]:
        yield from _list_models(part)
    if result.model:
        yield result.judge, result.model


_DECODER = msgspec.json.Decoder(_Result)


def _read_result(body: bytes) -> _Result:
    """Read the members of a kept result that are compared.

    Raises ``UsageError`` for one that cannot be read.
    """
    try:
        return _DECODER.decode(body)
    except (msgspec.DecodeError, RecursionError):
        pass
    try:  # half a surrogate pair, which the strict reader refuses
        return read_typed(json.loads(body), _Result)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"a result of the run cannot be read: {str(error)[:200]}; judge it again") from None


def _read_bodies(connection: sqlite3.Connection, one: int, other: int) -> tuple[Any, Any]:
    """Read the two cases as they were kept."""
    first, second = [
        json.loads(connection.execute(query, (place,)).fetchone()[0])
        for query, place in (
            ("SELECT body FROM main.cases WHERE place = ?", one),
            ("SELECT body FROM later.cases WHERE place = ?", other),
        )
    ]
    return first, second


def _are_equal(bodies: tuple[Any, Any], names: Sequence[str]) -> bool:
    """Return whether two cases say the same under these names; their labels and metadata may differ."""
    first, second = bodies
    return all(first.get(name) == second.get(name) for name in names)


MOST_LISTED = 2_000
"""Cases that a ``Diff`` lists, lost ones first."""

_MOST_MODELS = 1_000
"""Names of models that are remembered of each run: a server may make one up for each reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseDiff:
    """A case whose outcome or score changed."""

    _layout: ClassVar[Layout] = Layout(
        computed={
            "criteria": lambda change: [
                {"name": name, "before": old, "after": new} for name, old, new in change.criteria
            ]
        }
    )

    case: str
    """The id of the case."""
    before: Outcome | Preference
    """The outcome in the earlier run; of a pair what was preferred: ``first``, ``second`` or ``tie``."""
    after: Outcome | Preference
    """The outcome in the later run, as ``before``."""
    score_before: float | None
    """The score in the earlier run; ``None`` without one."""
    score_after: float | None
    """The score in the later run; ``None`` without one."""
    criteria: tuple[tuple[str, float | None, float | None], ...] = ()
    """The criteria whose score changed: name, before, after."""
    detail: str = ""
    """The reason for its new outcome: the later result's reason and detail; it may quote the content."""
    content_changed: bool = False
    """True if another content was judged."""
    regressed: bool = False
    """True if it passed before and does not now, in a diff that has ``regressions``."""

    @property
    def lost(self) -> bool:
        """Return whether it passed before and does not now; of a pair: the first was preferred. Undecided: no pass."""
        return _is_lost(self.before, self.after)

    @property
    def gained(self) -> bool:
        """Return whether it passes now and did not before, or the first of a pair is preferred."""
        return _is_lost(self.after, self.before)

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


def _is_lost(before: Outcome | Preference, after: Outcome | Preference) -> bool:
    return before in _PASSES and after not in _PASSES


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffSide:
    """One of the two runs."""

    id: str
    """The id of the run."""
    folder: str
    """Its folder."""
    status: str
    """``finished``, ``interrupted``, ``running`` or ``unknown``."""
    judge: str
    """The name of its judge."""
    counts: Mapping[str, int]
    """Of all its judgements, those without a counterpart included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """The changes between two runs; made by ``diff``.

    A case that was judged several times has the outcome of more than half of its judgements, else it is undecided. Its
    score is the mean of the decided judgements.
    """

    schema: ClassVar[str] = "adjudge/diff/1"
    _layout: ClassVar[Layout] = Layout(
        members=("before", "after", "compared", "pairs", "cases", "only_before", "only_after", "content_changed",
                 "flips", "inputs_changed", "criteria_changed", "unmatched_passes", "lost", "gained", "regressions",
                 "improvements", "p_value", "changed", "setup_changes", "transitions", "measured", "systems", "judges",
                 "judged", "margin", "score", "criteria",
                 "listed"),
        omitted=("judged", "margin"),
        computed={
            "transitions": lambda diff: [
                {"before": old, "after": new, "cases": number} for (old, new), number in diff.transitions.items()
            ]
        },
    )  # fmt: skip

    before: DiffSide
    """The earlier run."""
    after: DiffSide
    """The later run."""
    pairs: bool
    """True if the cases are pairs of which one is preferred."""
    cases: int
    """Cases that are in both runs and are compared."""
    only_before: int
    """Cases that are not in the later run."""
    only_after: int
    """Cases that are not in the earlier run."""
    content_changed: int
    """Compared cases whose content is another, such as a new answer to the same task."""
    flips: int
    """Compared cases with another outcome though their content is the same."""
    inputs_changed: int
    """Cases that are not compared, because their reference, task or context changed."""
    criteria_changed: int = 0
    """Cases that are not compared, because their own criteria, rules or thresholds changed: there the question changed,
    not the judge.
    """
    unmatched_passes: int
    """Cases that passed before and cannot be compared, because they are gone or changed."""
    transitions: Mapping[tuple[Outcome | Preference, Outcome | Preference], int]
    """The number of cases for each outcome, or preference, before and after, unchanged ones included."""
    p_value: float | None
    """McNemar's exact test of passed (of a pair: the first is preferred) against not; ``None`` when no case went either
    way.
    """
    score: Means
    """The scores of the cases that are decided in both runs."""
    criteria: Mapping[str, Means]
    """The same for each criterion that both runs scored."""
    changed: int
    """Cases with another outcome or another score."""
    setup_changes: tuple[str, ...] = ()
    """The ways in which the runs decide differently: the judge, the model that answered, the rubric, the threshold, the
    rules, the question and how often it was asked, one clause each; empty if they are the same.
    """
    measured: tuple[Measurement, Measurement] | None = None
    """The measurement of each run, if labels of the same contents were given."""
    systems: SystemDifference | None = None
    """The difference of the rates at which people would pass the two runs' answers, if they labelled both."""
    judges: JudgeDifference | None = None
    """The difference of how often the two judges are right, if labels of the same contents were given."""
    judged: ShareDifference | None = None
    """The difference of the rates at which the judge passed the later and the earlier answers, if that was asked for.
    The limits are for other cases like these, by this judge: its errors are not in them.
    """
    margin: float | None = None
    """The share by which the later run may be worse; ``None`` if nobody asks for it."""
    listed: tuple[CaseDiff, ...]
    """The first of them, at most 2,000: lost ones, then other outcomes, then scores, in the order of the data."""

    @property
    def compared(self) -> Compared:
        """The causes of the differences: ``answers`` (one judge), ``judges`` (the same contents) or ``both``."""
        if not self.setup_changes:
            return "answers"
        return "both" if self.content_changed else "judges"

    @property
    def is_repeat(self) -> bool:
        """Return whether one judge judged the same answers twice, so that nothing regressed: the judge differs."""
        return self.compared == "answers" and not self.content_changed

    @property
    def lost(self) -> int:
        """Cases that passed in the earlier run and not in the later; of pairs: the first was preferred."""
        return sum(number for (old, new), number in self.transitions.items() if _is_lost(old, new))

    @property
    def gained(self) -> int:
        """Cases that passed in the later run and not in the earlier."""
        return sum(number for (old, new), number in self.transitions.items() if _is_lost(new, old))

    @property
    def regressions(self) -> int | None:
        """Cases that passed before and do not now; ``None`` unless answers changed and one judge judged both runs.

        Of pairs, of two judges and where ``is_repeat`` is true, no answer is worse: ``lost`` has the number there.
        """
        return self.lost if self._has_regressions else None

    @property
    def improvements(self) -> int | None:
        """Answers that pass now and did not before; ``None`` where ``regressions`` is."""
        return self.gained if self._has_regressions else None

    @property
    def _has_regressions(self) -> bool:
        return self.compared == "answers" and self.content_changed > 0 and not self.pairs

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


def diff(before: Run | str | os.PathLike[str], after: Run | str | os.PathLike[str]) -> Diff:
    """Compare two runs, given as ``Run``s or folders, case by case. Cases are paired by their ids.

    The content of a case may differ, such as a program's answer before and after a change. A case is counted and not
    compared if its reference, task or context changed, or if it brought other criteria, rules or another threshold of
    its own. ``compared`` says whether the answers, the judges, or both changed.

    Memory does not grow with the runs. Raises ``UsageError`` for a folder that has no run, and for a run of pairs with
    one of single cases.

    Args:
        before: The earlier run.
        after: The later run.
    """
    return _compare_runs(before, after, _Tally())


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedCase:
    """A case that was compared, changed or not."""

    change: CaseDiff
    """Without the reason."""
    places: tuple[int, int]
    """Its places in the two runs."""
    changed: bool
    """True if its outcome, or a score, is another."""


def diff_cases(before: Run, after: Run) -> tuple[Diff, tuple[ComparedCase, ...]]:
    """Compare two runs as ``diff`` does, and return every case that was compared, in the order of the earlier run.

    Memory grows by some hundred bytes for each case.
    """
    tally = _Tally(index=[])
    compared = _compare_runs(before, after, tally)
    return compared, tuple(tally.index or ())


def _compare_runs(before: Run | str | os.PathLike[str], after: Run | str | os.PathLike[str], tally: _Tally) -> Diff:
    """Compare two runs case by case; those that were opened here are closed again. Raises ``UsageError``."""
    runs = [(run, False) if isinstance(run, Run) else (open_run(run), True) for run in (before, after)]
    try:
        first, second = [run for run, _ in runs]
        if first.compares != second.compares:
            raise UsageError(
                f"one of {first.folder} and {second.folder} is a run of pairs and the other is not; compare runs of "
                "one kind"
            )
        for joined in join_runs(first, second):
            tally.add(joined)
        return tally.sum_up(first, second)
    except AdjudgeError:
        raise
    except (sqlite3.Error, ValueError, TypeError, AttributeError, RecursionError) as error:
        problem = clean(str(error)[:200], keep_lines=False)
        raise UsageError(f"these runs cannot be compared ({problem}); name two folders of `adjudge run`") from None
    finally:
        for opened, is_ours in runs:
            if is_ours:
                opened.close()


@dataclass(slots=True)
class _Tally:
    """The counts so far."""

    transitions: Counter[tuple[Outcome | Preference, Outcome | Preference]] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    score: PairedTally = field(default_factory=PairedTally)
    criteria: dict[str, PairedTally] = field(default_factory=dict)
    models: tuple[set[tuple[str, str]], set[tuple[str, str]]] = field(default_factory=lambda: (set(), set()))
    listed_lost: list[CaseDiff] = field(default_factory=list)
    listed_changed: list[CaseDiff] = field(default_factory=list)
    """Cases with another verdict that did not fail for it."""
    listed_same_verdict: list[CaseDiff] = field(default_factory=list)
    """Cases in which something else changed."""
    index: list[ComparedCase] | None = None
    """Every case that is compared, where somebody asked for them."""

    def add(self, joined: Joined) -> None:
        """Count one case of the earlier run, or one that only the later has."""
        before, after = joined.before, joined.after
        if before is None or after is None or not joined.is_comparable:
            changed = "criteria_changed" if joined.same_inputs else "inputs_changed"
            kind = "only_after" if before is None else "only_before" if after is None else changed
            self.counts[kind] += 1
            self.counts["unmatched_passes"] += before is not None and before.verdict in _PASSES
            return
        self.transitions[before.verdict, after.verdict] += 1
        self.counts["content_changed"] += not joined.same_content
        self.counts["flips"] += joined.same_content and before.verdict != after.verdict
        self._add_numbers(before, after)
        has_changed = before.verdict != after.verdict or _has_changed(before, after)
        if has_changed:
            self._add_changed(joined, before, after)
        if self.index is not None:
            change = replace(_make_change(joined, before, after, has_changed=has_changed), detail="")
            self.index.append(ComparedCase(change=change, places=(before.place, after.place), changed=has_changed))

    def _add_numbers(self, before: Side, after: Side) -> None:
        """Add the scores that both sides have, and the models that answered until there are ``_MOST_MODELS``."""
        for models, side in zip(self.models, (before, after), strict=True):
            if len(models) < _MOST_MODELS:
                models.update(side.models)
        if before.score is not None and after.score is not None:
            self.score.add(before.score, after.score)
        for name in before.criteria.keys() & after.criteria.keys():
            self.criteria.setdefault(name, PairedTally()).add(before.criteria[name], after.criteria[name])

    def _add_changed(self, joined: Joined, before: Side, after: Side) -> None:
        """Count a changed case, and list it if there is room."""
        self.counts["changed"] += 1
        if _is_lost(before.verdict, after.verdict):
            listed = self.listed_lost
        else:
            listed = self.listed_changed if before.verdict != after.verdict else self.listed_same_verdict
        if len(listed) < MOST_LISTED:
            listed.append(_make_change(joined, before, after, has_changed=True))

    def sum_up(self, before: Run, after: Run) -> Diff:
        """Return the diff of all that was added."""
        lost = sum(number for (old, new), number in self.transitions.items() if _is_lost(old, new))
        gained = sum(number for (old, new), number in self.transitions.items() if _is_lost(new, old))
        changes = tuple(list_setup_changes(before.manifest, after.manifest, *self.models))
        listed = [*self.listed_lost, *self.listed_changed, *self.listed_same_verdict][:MOST_LISTED]
        compared = Diff(
            before=_describe_run(before),
            after=_describe_run(after),
            pairs=before.compares,
            cases=self.transitions.total(),
            only_before=self.counts["only_before"],
            only_after=self.counts["only_after"],
            content_changed=self.counts["content_changed"],
            flips=self.counts["flips"],
            inputs_changed=self.counts["inputs_changed"],
            criteria_changed=self.counts["criteria_changed"],
            unmatched_passes=self.counts["unmatched_passes"],
            transitions=dict(sorted(self.transitions.items())),
            p_value=compute_mcnemar(lost, gained),
            score=self.score.sum_up(),
            criteria={name: self.criteria[name].sum_up() for name in sorted(self.criteria)},
            changed=self.counts["changed"],
            setup_changes=changes,
            listed=tuple(listed),
        )
        if compared.regressions is None:
            return compared
        return replace(compared, listed=tuple(replace(change, regressed=change.lost) for change in listed))


def _make_change(joined: Joined, before: Side, after: Side, *, has_changed: bool) -> CaseDiff:
    """Make the entry of a case.

    It lists each criterion whose score differs, with ``None`` on a side that does not have it; none without
    ``has_changed``, because what is left is noise.
    """
    names = [*before.criteria, *(name for name in after.criteria if name not in before.criteria)] if has_changed else []
    pairs = [(name, before.criteria.get(name), after.criteria.get(name)) for name in names]
    return CaseDiff(
        case=joined.case,
        before=before.verdict,
        after=after.verdict,
        score_before=before.score,
        score_after=after.score,
        criteria=tuple(scores for scores in pairs if _differ(scores[1], scores[2])),
        detail=after.detail,
        content_changed=not joined.same_content,
    )


def _describe_run(run: Run) -> DiffSide:
    return DiffSide(
        id=run.id,
        folder=str(run.folder),
        status=run.status,
        judge=str(run.manifest["judge"].get("name", "")),
        counts=dict(run.counts),
    )


def _has_changed(before: Side, after: Side) -> bool:
    """Return whether scores differ by more than the noise of binary fractions, which older runs have in them."""
    if before.criteria.keys() != after.criteria.keys():
        return True
    pairs = [(before.score, after.score), *[(score, after.criteria[name]) for name, score in before.criteria.items()]]
    return any(_differ(one, other) for one, other in pairs)


def _differ(one: float | None, other: float | None) -> bool:
    """Return whether two scores differ by more than noise, or one of them is missing."""
    if one is None or other is None:
        return one is not other
    return abs(one - other) > TOLERANCE
