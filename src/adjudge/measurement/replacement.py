"""The replacement of a judge by others: all of them are compared with people on the same labelled cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, ClassVar, Literal

from adjudge.dataset.case import Case
from adjudge.dataset.contents import digest_content
from adjudge.dataset.label import Label
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_share
from adjudge.formats.numbers import format_points
from adjudge.formats.record import Layout, write_record
from adjudge.judges.description import name_functions
from adjudge.labels.truth import TruthHeap
from adjudge.measurement.comparison import PeopleLabels
from adjudge.measurement.measure import make_measurement
from adjudge.measurement.measurement import OPEN, Measurement
from adjudge.measurement.run_labels import read_run_labels
from adjudge.measurement.verdict_and_truth import CaseTruth, find_verdict, read_stated_truth
from adjudge.runs.folder import Run
from adjudge.runs.item import RunItem, lacks_cost
from adjudge.runs.same_question import check_same_question
from adjudge.trust.difference import compute_mcnemar, find_grouped_difference, find_paired_difference
from adjudge.trust.extra import check_extra
from adjudge.trust.resampling import LEAST_UNITS, find_bootstrap_interval

MARGIN = 0.05
"""The margin by which a candidate may agree less with people than the old judge, as a share of the cases."""

LEVEL = 0.95
"""The confidence of the statements about all candidates together."""

MOST_FLIPS = 2_000
"""Flipped cases that are listed."""

NOTHING_KNOWN = (-1.0, 1.0)
"""The interval of a difference where too few groups of cases are labelled."""

Standing = Literal["may replace", "may not replace", "unknown"]
"""``unknown``: the labelled cases are too few to tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedShare:
    """A share of the same cases for both judges, and the interval of the difference."""

    _layout: ClassVar[Layout] = Layout(last=("delta",))

    before: int
    """Cases that count for the old judge."""
    after: int
    """Cases that count for the candidate."""
    of: int
    """Cases that both judged."""
    low: float
    """The lower limit of after minus before, in -1 to 1."""
    high: float
    """The upper limit of after minus before, in -1 to 1."""

    @property
    def delta(self) -> float:
        """After minus before, as a share."""
        return (self.after - self.before) / self.of

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flip:
    """A labelled case that the candidate decides otherwise."""

    case: str
    """The id of the case."""
    truth: TruthHeap
    """The truth that people settled."""
    before: str
    """The verdict of the old judge."""
    after: str
    """The verdict of the candidate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One judge beside the one that it may replace."""

    _layout: ClassVar[Layout] = Layout(
        members=(
            "judge",
            "folder",
            "standing",
            "why",
            "gained",
            "lost",
            "p_value",
            "agreement",
            "wrong_passes",
            "flips",
            "listed",
            "cost_usd",
            "cost_interval",
            "measurement",
        ),
        computed={"flips": lambda candidate: _write_flips(candidate.flips)},
    )

    judge: str
    """The candidate's name."""
    folder: str
    """The folder of its run."""
    standing: Standing
    """``may replace``, ``may not replace`` or ``unknown``."""
    why: str
    """The basis of the standing, in a sentence."""
    agreement: PairedShare
    """Labelled cases on which a judge decided as people did; undecided is no agreement."""
    wrong_passes: PairedShare | None
    """The share passed of the cases that people failed; ``None`` for comparisons, and without such a case."""
    gained: int
    """Cases on which only the candidate agrees with people."""
    lost: int
    """Cases on which only the old judge does."""
    p_value: float | None
    """McNemar's exact test of gained against lost."""
    flips: Mapping[tuple[str, str], int]
    """The number of labelled cases for each verdict before and after."""
    listed: tuple[Flip, ...] = field(repr=False)
    """The flipped cases: those that were lost first."""
    cost_usd: tuple[float | None, float | None]
    """The cost of a case on average, before and after; ``None`` where the cost of one is unknown."""
    cost_interval: tuple[float, float] | None
    """The 95 % bootstrap interval of what a case costs with the candidate."""
    measurement: Measurement = field(repr=False)
    """The candidate compared with people by itself, as ``make_measurement`` has it."""

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


def _write_flips(flips: Mapping[tuple[str, str], int]) -> list[dict[str, str | int]]:
    """Write the counts of verdicts before and after as plain data: a mapping for each pair of verdicts."""
    return [{"before": before, "after": after, "cases": cases} for (before, after), cases in flips.items()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """The replacement of a judge: the candidates for its place, in the order in which they were named.

    The rule: a candidate may replace the judge if, with 95 % confidence for all candidates together, it agrees with
    people on at most ``margin`` fewer of the cases, and passes at most ``margin`` more of the cases that people failed.
    It may not if one of the two is shown to be worse than that.
    """

    schema: ClassVar[str] = "adjudge/replacement/1"
    _layout: ClassVar[Layout] = Layout(
        members=("judge", "folder", "margin", "level", "cases", "replacements", "measurement", "candidates"),
        computed={"replacements": lambda replacement: [candidate.judge for candidate in replacement.replacements]},
    )

    judge: str
    """The judge that is to be replaced."""
    folder: str
    """The folder of the run of the judge that is to be replaced."""
    margin: float
    """The largest loss that is still accepted, as a share: 0.05 is five of a hundred cases."""
    level: float
    """The confidence of each candidate's intervals: higher where there are several candidates."""
    cases: int
    """Labelled cases whose truth people settled."""
    measurement: Measurement = field(repr=False)
    """The old judge compared with people."""
    candidates: tuple[Candidate, ...]
    """The candidates, in the order in which they were named."""

    @property
    def replacements(self) -> tuple[Candidate, ...]:
        """The candidates that may replace the judge: the one that agrees most first, then the cheaper one.

        A cost that is unknown comes after every known one.
        """
        fit = [candidate for candidate in self.candidates if candidate.standing == "may replace"]
        return tuple(
            sorted(fit, key=lambda candidate: (-candidate.agreement.after, *_rank_cost(candidate.cost_usd[1])))
        )

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data, whose schema is ``adjudge/replacement/1``."""
        return write_record(self)


def _rank_cost(usd: float | None) -> tuple[bool, float]:
    """Rank a cost: known ones first, the lowest first."""
    # Unknown is not free, so that it must not come first.
    return usd is None, usd or 0.0


def list_labelled(run: Run, labels: Iterable[Label] | None = None) -> list[Case]:
    """List the cases of a run whose truth people settled, in the order of the data set.

    Args:
        run: The run.
        labels: The labels of people; by default those of the run's own queue. Cases that no label is about go by those
            of their data set.
    """
    return [judged.case for judged in _read_cases(run, _gather_labels(run, labels))]


def compare_replacements(
    before: Run, candidates: Sequence[Run], *, labels: Iterable[Label] | None = None, margin: float = MARGIN
) -> Replacement:
    """Compare the judges of runs with the one that judged the same cases before them.

    A candidate must have judged every labelled case, with the same question. Needs ``adjudge[trust]``; raises
    ``UsageError`` where a run lacks that, and without a labelled case.

    Args:
        before: The run of the judge that is to be replaced.
        candidates: Runs of the judges that may replace it.
        labels: The labels of people, as for ``make_measurement``.
        margin: By how much a candidate may agree less with people, as a share of the cases.
    """
    check_extra()
    check_share("margin", margin)
    if not candidates:
        raise UsageError("a replacement needs at least one candidate; name a judge, or a run of one")
    people = _gather_labels(before, labels)
    old_cases = list(_read_cases(before, people))
    if not old_cases:
        raise UsageError(
            f"no case of {before.folder} has a settled label; label it (adjudge label), or name a file of labels"
        )
    # Each statement about a candidate can be wrong; so many together must not be wrong more often than one may.
    level = 1 - (1 - LEVEL) / len(candidates)
    compared = [_compare_candidate(before, run, old_cases, people, margin=margin, level=level) for run in candidates]
    return Replacement(
        judge=_name_judge(before),
        folder=str(before.folder),
        margin=margin,
        level=level,
        cases=len(old_cases),
        measurement=make_measurement(before, labels=people.labels, most_disagreements=0),
        candidates=tuple(compared),
    )


@dataclass(frozen=True, slots=True)
class _LabelsOfPeople:
    """The labels of people: as they were given, and by the cases that they are of."""

    labels: tuple[Label, ...]
    by_case: PeopleLabels


@dataclass(frozen=True, slots=True, kw_only=True)
class _JudgedCase:
    """A labelled case as one run judged it."""

    case: Case
    subject: str
    """The digest of the whole case."""
    truth: TruthHeap
    verdict: str
    cost: float | None
    """The cost of a judgement on average, in dollars; ``None`` is unknown."""

    @property
    def agrees(self) -> bool:
        """Return whether the verdict is the truth; that on a pair is named like its truth, such as ``first``."""
        return self.truth == {"passed": "good", "failed": "bad"}.get(self.verdict, self.verdict)


def _gather_labels(run: Run, labels: Iterable[Label] | None) -> _LabelsOfPeople:
    """Gather the labels that were handed in, or those of the run's own queue."""
    all_labels = read_run_labels(run) if labels is None else tuple(labels)
    return _LabelsOfPeople(all_labels, PeopleLabels(all_labels, None))


def _read_cases(run: Run, people: _LabelsOfPeople) -> Iterator[_JudgedCase]:
    """Yield each case of a run whose truth people settled, with the verdict and the cost."""
    functions = name_functions(run.manifest.get("judge"))
    for _, items_of_case in groupby(run.items(), key=lambda run_item: run_item.place):
        run_items = list(items_of_case)
        case = run_items[0].case
        subject = digest_content(case.content)
        truth: CaseTruth | None = people.by_case.find_truth(case.id, None, subject) or read_stated_truth(case)
        if truth is None or truth.override or truth.heap in (*OPEN, "number"):
            continue
        verdict = find_verdict([run_item.result for run_item in run_items]).verdict
        yield _JudgedCase(
            case=case,
            subject=run_items[0].subject,
            truth=truth.heap,
            verdict=verdict,
            cost=_compute_judgement_cost(run_items, functions),
        )


def _compute_judgement_cost(run_items: Sequence[RunItem], functions: Collection[str]) -> float | None:
    """Compute the mean cost of a case's judgements; ``None`` where that of one is unknown.

    ``functions`` are the names of judges in code, which cost nothing.
    """
    if any(lacks_cost(run_item.result, functions) for run_item in run_items):
        return None
    usages = [run_item.result.usage for run_item in run_items]
    return sum((usage.cost_usd or 0.0) if usage else 0.0 for usage in usages) / len(run_items)


def _compare_candidate(
    before: Run,
    run: Run,
    old_cases: Sequence[_JudgedCase],
    people: _LabelsOfPeople,
    *,
    margin: float,
    level: float,
) -> Candidate:
    """Compare the judge of ``run`` with the judge of ``before`` that it would replace, on all labelled cases.

    Raises ``UsageError`` where the candidate was asked another question, or has not judged the same cases.
    """
    for name in ("asked", "rubric"):
        check_same_question(before, name, run.manifest["digests"].get(name))
    new_cases = {judged.case.id: judged for judged in _read_cases(run, people)}
    # Each labelled case as the old judge and as the candidate judged it.
    pairs = [(earlier, new_cases[earlier.case.id]) for earlier in old_cases if earlier.case.id in new_cases]
    if len(pairs) < len(old_cases) or any(earlier.subject != later.subject for earlier, later in pairs):
        raise UsageError(
            f"{run.folder} has judged {len(pairs):,} of the {len(old_cases):,} labelled cases of {before.folder}, or "
            "others under their ids; judge the same cases with the candidate, and finish its run"
        )
    agreement = _compare_shares([(earlier.agrees, later.agrees) for earlier, later in pairs], pairs, level)
    bad_pairs = [(earlier, later) for earlier, later in pairs if earlier.truth == "bad"]
    passes = [(earlier.verdict == "passed", later.verdict == "passed") for earlier, later in bad_pairs]
    wrong_passes = _compare_shares(passes, bad_pairs, level) if bad_pairs else None
    gained = sum(later.agrees and not earlier.agrees for earlier, later in pairs)
    lost = sum(earlier.agrees and not later.agrees for earlier, later in pairs)
    # Of pairs of contents, no case is bad, so that none has to be known.
    knows_wrong_passes = bool(bad_pairs) or before.compares
    standing, reason = _decide_standing(agreement, wrong_passes, margin, knows_wrong_passes=knows_wrong_passes)
    old_costs = [earlier.cost for earlier, _ in pairs]
    new_costs = [later.cost for _, later in pairs]
    return Candidate(
        judge=_name_judge(run),
        folder=str(run.folder),
        standing=standing,
        why=reason,
        agreement=agreement,
        wrong_passes=wrong_passes,
        gained=gained,
        lost=lost,
        p_value=compute_mcnemar(lost, gained),
        flips=_count_flips(pairs),
        listed=_list_flips(pairs),
        cost_usd=(_compute_mean(old_costs), _compute_mean(new_costs)),
        cost_interval=_find_cost_interval(new_costs, pairs),
        measurement=make_measurement(run, labels=people.labels, most_disagreements=0),
    )


def _list_groups(pairs: Sequence[tuple[_JudgedCase, _JudgedCase]]) -> list[str]:
    """List the group of each case; one without a group is a group of its own, by its id."""
    return [earlier.case.group or earlier.case.id for earlier, _ in pairs]


def _compare_shares(
    flags: Sequence[tuple[bool, bool]], pairs: Sequence[tuple[_JudgedCase, _JudgedCase]], level: float
) -> PairedShare:
    """Count the cases for which something is true of the old judge and of the candidate, with limits of the difference.

    ``flags`` says of each of ``pairs`` whether it is true before and after. Where several cases are of one group, the
    limits follow the groups; they are the widest possible where there are too few groups.
    """
    gained = sum(after and not before for before, after in flags)
    lost = sum(before and not after for before, after in flags)
    groups = _list_groups(pairs)
    group_count = len(set(groups))
    if group_count == len(groups):
        low, high = find_paired_difference(gained, lost, len(flags), level=level)
    elif group_count < LEAST_UNITS:
        low, high = NOTHING_KNOWN
    else:
        low, high = find_grouped_difference([after - before for before, after in flags], groups, level=level)
    return PairedShare(
        before=sum(before for before, _ in flags),
        after=sum(after for _, after in flags),
        of=len(flags),
        low=low,
        high=high,
    )


def _decide_standing(
    agreement: PairedShare, wrong_passes: PairedShare | None, margin: float, *, knows_wrong_passes: bool
) -> tuple[Standing, str]:
    """Decide whether a candidate may replace the judge, by the rule in ``Replacement``; also return the reason."""
    points = f"{100 * margin:g} points"
    if agreement.high < -margin:
        return "may not replace", f"it agrees with people on more than {points} fewer of the cases"
    if wrong_passes is not None and wrong_passes.low > margin:
        return "may not replace", f"it passes more than {points} more of what people failed"
    open_question = _find_open_question(agreement, wrong_passes, margin, knows_wrong_passes=knows_wrong_passes)
    if open_question is not None:
        return "unknown", open_question
    return "may replace", f"it is at most {points} worse, in agreement and in what it wrongly passes"


def _find_open_question(
    agreement: PairedShare, wrong_passes: PairedShare | None, margin: float, *, knows_wrong_passes: bool
) -> str | None:
    """Find the first reason why the labels do not show that a candidate is good enough; ``None`` if they do."""
    if (agreement.low, agreement.high) == NOTHING_KNOWN:
        return f"the labelled cases are of fewer than {LEAST_UNITS} groups; label cases of more groups"
    if agreement.low < -margin:
        return f"it may agree on up to {format_points(-agreement.low)} points fewer; label more cases{_LOOK_REMARK}"
    if not knows_wrong_passes:
        return "no labelled case is one that people failed, so nobody knows what it would let pass"
    if wrong_passes is not None and wrong_passes.high > margin:
        excess = format_points(wrong_passes.high)
        return f"it may pass up to {excess} points more of what people failed; label more of such cases{_LOOK_REMARK}"
    return None


_LOOK_REMARK = ", but these limits are for one look, and err more often with each further one"


def _count_flips(pairs: Sequence[tuple[_JudgedCase, _JudgedCase]]) -> dict[tuple[str, str], int]:
    """Count the verdicts that changed, by the earlier and the later one, the most frequent first."""
    counts = Counter((earlier.verdict, later.verdict) for earlier, later in pairs if earlier.verdict != later.verdict)
    return dict(sorted(counts.items(), key=lambda verdicts_and_count: (-verdicts_and_count[1], verdicts_and_count[0])))


def _list_flips(pairs: Sequence[tuple[_JudgedCase, _JudgedCase]]) -> tuple[Flip, ...]:
    """List the cases whose verdict changed: first those on which only the old judge agrees with people."""
    flipped = [(earlier, later) for earlier, later in pairs if earlier.verdict != later.verdict]
    # False sorts before true.
    flipped.sort(key=lambda pair: (pair[1].agrees, not pair[0].agrees))
    return tuple(
        Flip(case=earlier.case.id, truth=earlier.truth, before=earlier.verdict, after=later.verdict)
        for earlier, later in flipped[:MOST_FLIPS]
    )


def _compute_mean(costs: Sequence[float | None]) -> float | None:
    """Compute the mean of costs; ``None`` where one of them is unknown."""
    known_costs = [cost for cost in costs if cost is not None]
    return sum(known_costs) / len(known_costs) if known_costs and len(known_costs) == len(costs) else None


def _find_cost_interval(
    costs: Sequence[float | None], pairs: Sequence[tuple[_JudgedCase, _JudgedCase]]
) -> tuple[float, float] | None:
    """Find the interval of the mean cost; ``None`` where a cost is unknown, groups are few, or they cost the same."""
    known_costs = [cost for cost in costs if cost is not None]
    if len(known_costs) < len(costs):
        return None
    try:
        return find_bootstrap_interval(known_costs, groups=_list_groups(pairs))
    except UsageError:
        return None


def _name_judge(run: Run) -> str:
    """Return the name of a run's judge; empty where its manifest has none."""
    judge = run.manifest.get("judge")
    return str(judge.get("name") if isinstance(judge, Mapping) else "")[:300]
