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
from adjudge.formats.msgspec_types import read_typed
from adjudge.formats.numbers import TOLERANCE
from adjudge.formats.record import Layout, write_record
from adjudge.formats.sqlite import UNUSABLE, name_sqlite, open_sqlite
from adjudge.formats.text import clean
from adjudge.judges.pair import PairResult, Preference
from adjudge.measurement.judge_difference import JudgeDifference, ShareDifference
from adjudge.measurement.measurement import Measurement
from adjudge.measurement.run_difference import SystemDifference
from adjudge.report.setup_changes import list_setup_changes
from adjudge.result import Outcome
from adjudge.runs.folder import Run, open_run
from adjudge.trust.difference import Means, PairedTally, compute_mcnemar

# Each query yields the judgements of one run. The first column is the case's number in the order in which both runs are
# read. The earlier run is the schema ``main``, and the later one is ``later``.

_BEFORE = """
    SELECT c.place, c.id, c.place, c.subject, r.outcome, r.because, r.score, r.body
    FROM main.cases c CROSS JOIN main.results r ON r.place = c.place ORDER BY c.place, r.sample"""

# In the order of the earlier run: each of its cases is looked up in the later run by its id.
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
"""The verdicts that are a pass; of a pair, that the first is preferred."""


class _JudgementRow(NamedTuple):
    """A judgement as the three queries select it."""

    order: int
    """The case's number in the order in which both runs are read: that in the earlier run, if it has the case."""
    case: str
    """The id of the case."""
    place: int
    """The number of the case in the run of this judgement."""
    subject: str
    """The digest of the whole case."""
    outcome: Outcome
    because: str | None
    """The reason why it is undecided."""
    score: float | None
    body: bytes
    """The result as JSON."""


class _OrderedCase(NamedTuple):
    """A case in one run, with its number in the order in which both runs are read."""

    order: int
    case: str
    """The id of the case."""
    outcome: CaseOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseOutcome:
    """The outcome of one case in one run: all its judgements together."""

    verdict: Outcome | Preference
    """The verdict of more than half of its judgements, else undecided."""
    score: float | None
    """The mean of those that are decided."""
    criteria: Mapping[str, float]
    """The mean score of each criterion, where there are any."""
    detail: str
    """The first reason, or detail, that one of its judgements gives."""
    subject: str
    """The digest of the whole case."""
    place: int
    """The number of the case in this run."""
    models: frozenset[tuple[str, str]] = frozenset()
    """Each judge with the model that answered it, where the replies name it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedCase:
    """One case as it is in both runs."""

    case: str
    """The id of the case."""
    before: CaseOutcome | None
    """Its outcome in the earlier run; ``None`` if that does not have the case."""
    after: CaseOutcome | None
    """Its outcome in the later run; ``None`` if that does not have the case."""
    same_content: bool = True
    """True if the judged content is the same."""
    same_inputs: bool = True
    """True if reference, task and context are the same: another label or other metadata do not matter."""
    same_criteria: bool = True
    """True if both runs have the case with the same criteria, rubric, rules and threshold, or without any."""

    @property
    def is_comparable(self) -> bool:
        """Return whether both runs asked the same about this case; its content may be another."""
        return self.before is not None and self.after is not None and self.same_inputs and self.same_criteria


@dataclass(slots=True)
class _JudgementSums:
    """The verdicts, scores and models of the judgements of one case."""

    verdicts: Counter[Outcome | Preference] = field(default_factory=Counter)
    scores: list[float] = field(default_factory=list)
    criteria: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    models: set[tuple[str, str]] = field(default_factory=set)


def join_runs(before: Run, after: Run) -> Iterator[JoinedCase]:
    """Yield every case of the earlier run in its order, joined with the later run's by its id; then the later's others.

    Both runs are read in one order, so that memory does not grow with them.
    """
    with closing(_open_both(before, after)) as connection:
        later_cases = _sum_up_cases(connection.execute(_AFTER))
        later = next(later_cases, None)
        for earlier in _sum_up_cases(connection.execute(_BEFORE)):
            while later is not None and later.order < earlier.order:
                later = next(later_cases, None)
            if later is None or later.order != earlier.order:
                yield JoinedCase(case=earlier.case, before=earlier.outcome, after=None)
                continue
            yield _join_outcomes(connection, earlier.case, earlier.outcome, later.outcome)
            later = next(later_cases, None)
        for added in _sum_up_cases(connection.execute(_ONLY_AFTER)):
            yield JoinedCase(case=added.case, before=None, after=added.outcome)


def _join_outcomes(connection: sqlite3.Connection, case: str, before: CaseOutcome, after: CaseOutcome) -> JoinedCase:
    """Join the outcomes of a case that both runs have, and find which parts of the case are the same in both.

    The parts are read and compared only if the digests of the whole case differ.
    """
    if before.subject == after.subject:
        return JoinedCase(case=case, before=before, after=after)
    bodies = _read_bodies(connection, before.place, after.place)
    return JoinedCase(
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
        # A transaction, so that both stay as they are now, even if one is still written to.
        connection.execute("BEGIN")

    try:
        return open_sqlite(before.store.path, mode=before.store.reads_as, prepare=attach)
    except UNUSABLE as error:
        raise UsageError(f"{before.folder} and {after.folder} cannot be read together: {error}") from None


def _sum_up_cases(rows: Iterable[tuple[Any, ...]]) -> Iterator[_OrderedCase]:
    """Yield each case of a query, with all its judgements summed up to one outcome."""
    for order, rows_of_case in groupby(map(_JudgementRow._make, rows), key=attrgetter("order")):
        judgements = list(rows_of_case)
        yield _OrderedCase(order, judgements[0].case, _sum_up_judgements(judgements))


def _sum_up_judgements(judgements: list[_JudgementRow]) -> CaseOutcome:
    """Sum up the judgements of one case: the verdict of more than half of them, and mean scores."""
    sums, detail = _JudgementSums(), ""
    for judgement in judgements:
        result = _read_result(judgement.body)
        sums.verdicts[result.preferred or judgement.outcome] += 1
        sums.models |= set(_list_models(result))
        detail = detail or ": ".join(filter(None, (judgement.because, result.detail)))
        # The score of a pair is only a code for the preference.
        if judgement.score is not None and result.schema != PairResult.schema:
            sums.scores.append(judgement.score)
        for criterion in result.criteria:
            if criterion.score is not None:
                sums.criteria[criterion.name].append(criterion.score)
    majority = [verdict for verdict, number in sums.verdicts.items() if 2 * number > len(judgements)]
    return CaseOutcome(
        verdict=majority[0] if majority else "undecided",
        score=_compute_mean(sums.scores),
        criteria={name: math.fsum(scores) / len(scores) for name, scores in sums.criteria.items()},
        detail=detail,
        subject=judgements[0].subject,
        place=judgements[0].place,
        models=frozenset(sums.models),
    )


def _compute_mean(numbers: list[float]) -> float | None:
    """Compute the mean of numbers; ``None`` without any."""
    return math.fsum(numbers) / len(numbers) if numbers else None


class _Criterion(msgspec.Struct):
    """The members of a criterion's result that are compared."""

    name: str
    score: float | None = None


class _Order(msgspec.Struct):
    """The result of a comparison in one order of the pair."""

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
    """Yield the name of each judge in a result with the model that answered, seats of chains and orders included."""
    for inner_result in [*result.results, *(order.result for order in result.orders)]:
        yield from _list_models(inner_result)
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
    try:  # the strict reader refuses half a surrogate pair, and ``json`` does not
        return read_typed(json.loads(body), _Result)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"a result of the run cannot be read: {str(error)[:200]}; judge it again") from None


def _read_bodies(connection: sqlite3.Connection, place_before: int, place_after: int) -> tuple[Any, Any]:
    """Read the members of a case as the earlier run has it, and as the later one has it, by its number in each."""
    before, after = [
        json.loads(connection.execute(query, (place,)).fetchone()[0])
        for query, place in (
            ("SELECT body FROM main.cases WHERE place = ?", place_before),
            ("SELECT body FROM later.cases WHERE place = ?", place_after),
        )
    ]
    return before, after


def _are_equal(bodies: tuple[Any, Any], names: Sequence[str]) -> bool:
    """Return whether the members with these names are the same in both forms of a case."""
    before, after = bodies
    return all(before.get(name) == after.get(name) for name in names)


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
    """Return whether a pass was lost: it passed before and does not now."""
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
        """Return whether a lost pass is a regression: answers changed, and one judge judged both runs."""
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
    return _compare_runs(before, after, _DiffTally())


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
    tally = _DiffTally(index=[])
    compared = _compare_runs(before, after, tally)
    return compared, tuple(tally.index or ())


def _compare_runs(before: Run | str | os.PathLike[str], after: Run | str | os.PathLike[str], tally: _DiffTally) -> Diff:
    """Compare two runs case by case, counted in ``tally``; a run that is opened here is closed again.

    Raises ``UsageError`` for folders without a run, and for runs that cannot be compared.
    """
    # Each run, and whether it was opened here.
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
class _DiffTally:
    """The counts from which a diff is made; each case is added to them."""

    transitions: Counter[tuple[Outcome | Preference, Outcome | Preference]] = field(default_factory=Counter)
    """The number of cases for each verdict before and after."""
    counts: Counter[str] = field(default_factory=Counter)
    """The other counts of the diff, by the names of its fields."""
    score: PairedTally = field(default_factory=PairedTally)
    criteria: dict[str, PairedTally] = field(default_factory=dict)
    models: tuple[set[tuple[str, str]], set[tuple[str, str]]] = field(default_factory=lambda: (set(), set()))
    """For the earlier and the later run, each judge with a model that answered it."""
    listed_lost: list[CaseDiff] = field(default_factory=list)
    """Cases that passed before and do not now."""
    listed_changed: list[CaseDiff] = field(default_factory=list)
    """Cases with another verdict, without those that are lost."""
    listed_same_verdict: list[CaseDiff] = field(default_factory=list)
    """Cases with the same verdict and another score."""
    index: list[ComparedCase] | None = None
    """Every case that is compared; ``None`` if these are not asked for."""

    def add(self, joined: JoinedCase) -> None:
        """Count a case of the two runs: as a compared one, or by the reason why it is not compared."""
        before, after = joined.before, joined.after
        if before is None or after is None or not joined.is_comparable:
            self.counts[_find_exclusion(joined)] += 1
            self.counts["unmatched_passes"] += before is not None and before.verdict in _PASSES
            return
        self.transitions[before.verdict, after.verdict] += 1
        self.counts["content_changed"] += not joined.same_content
        self.counts["flips"] += joined.same_content and before.verdict != after.verdict
        self._add_numbers(before, after)
        has_changed = before.verdict != after.verdict or _have_scores_changed(before, after)
        if has_changed:
            self._add_changed(joined, before, after)
        if self.index is not None:
            change = replace(_make_change(joined, before, after, has_changed=has_changed), detail="")
            self.index.append(ComparedCase(change=change, places=(before.place, after.place), changed=has_changed))

    def _add_numbers(self, before: CaseOutcome, after: CaseOutcome) -> None:
        """Add the scores that both runs have of a case, and the models that answered, at most ``_MOST_MODELS``."""
        for models, outcome in zip(self.models, (before, after), strict=True):
            if len(models) < _MOST_MODELS:
                models.update(outcome.models)
        if before.score is not None and after.score is not None:
            self.score.add(before.score, after.score)
        for name in before.criteria.keys() & after.criteria.keys():
            self.criteria.setdefault(name, PairedTally()).add(before.criteria[name], after.criteria[name])

    def _add_changed(self, joined: JoinedCase, before: CaseOutcome, after: CaseOutcome) -> None:
        """Count a changed case, and list it if there is room."""
        self.counts["changed"] += 1
        if _is_lost(before.verdict, after.verdict):
            changes = self.listed_lost
        elif before.verdict != after.verdict:
            changes = self.listed_changed
        else:
            changes = self.listed_same_verdict
        if len(changes) < MOST_LISTED:
            changes.append(_make_change(joined, before, after, has_changed=True))

    def sum_up(self, before: Run, after: Run) -> Diff:
        """Make the diff of all cases that were added."""
        lost = sum(number for (old, new), number in self.transitions.items() if _is_lost(old, new))
        gained = sum(number for (old, new), number in self.transitions.items() if _is_lost(new, old))
        setup_changes = tuple(list_setup_changes(before.manifest, after.manifest, *self.models))
        listed = [*self.listed_lost, *self.listed_changed, *self.listed_same_verdict][:MOST_LISTED]
        diff_of_runs = Diff(
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
            setup_changes=setup_changes,
            listed=tuple(listed),
        )
        if diff_of_runs.regressions is None:
            return diff_of_runs
        return replace(diff_of_runs, listed=tuple(replace(change, regressed=change.lost) for change in listed))


def _make_change(joined: JoinedCase, before: CaseOutcome, after: CaseOutcome, *, has_changed: bool) -> CaseDiff:
    """Make the entry of a compared case in the diff.

    It lists the criteria whose scores differ; a score is ``None`` in a run that does not have the criterion. Without
    ``has_changed`` it lists none, because scores then differ by rounding errors alone.
    """
    names = list(dict.fromkeys((*before.criteria, *after.criteria))) if has_changed else []
    scores = [(name, before.criteria.get(name), after.criteria.get(name)) for name in names]
    return CaseDiff(
        case=joined.case,
        before=before.verdict,
        after=after.verdict,
        score_before=before.score,
        score_after=after.score,
        criteria=tuple((name, old, new) for name, old, new in scores if _are_different(old, new)),
        detail=after.detail,
        content_changed=not joined.same_content,
    )


def _find_exclusion(joined: JoinedCase) -> str:
    """Find the reason why a case is not compared, as the name of its count in a ``Diff``."""
    if joined.before is None:
        return "only_after"
    if joined.after is None:
        return "only_before"
    return "criteria_changed" if joined.same_inputs else "inputs_changed"


def _describe_run(run: Run) -> DiffSide:
    """Describe one of the two runs of a diff."""
    return DiffSide(
        id=run.id,
        folder=str(run.folder),
        status=run.status,
        judge=str(run.manifest["judge"].get("name", "")),
        counts=dict(run.counts),
    )


def _have_scores_changed(before: CaseOutcome, after: CaseOutcome) -> bool:
    """Return whether the score of a case, or a score on a criterion, differs between the runs."""
    if before.criteria.keys() != after.criteria.keys():
        return True
    scores = [(before.score, after.score), *[(score, after.criteria[name]) for name, score in before.criteria.items()]]
    return any(_are_different(old, new) for old, new in scores)


def _are_different(old: float | None, new: float | None) -> bool:
    """Return whether two scores differ by more than the rounding errors in older runs, or one of them is missing."""
    if old is None or new is None:
        return old is not new
    return abs(old - new) > TOLERANCE
