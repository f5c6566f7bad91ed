"""May another judge take the place of one that is retired? Both are compared with people on the same labelled cases."""

from __future__ import annotations

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
from adjudge.measurement.judged_case import CaseTruth, find_verdict, read_stated_truth
from adjudge.measurement.measure import make_measurement
from adjudge.measurement.measurement import OPEN, Measurement
from adjudge.measurement.run_labels import read_run_labels
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
    return [judged.case for judged in _read_cases(run, _find_people(run, labels))]


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
    people = _find_people(before, labels)
    old = list(_read_cases(before, people))
    if not old:
        raise UsageError(
            f"no case of {before.folder} has a settled label; label it (adjudge label), or name a file of labels"
        )
    # Each statement about a candidate can be wrong; so many together must not be wrong more often than one may.
    level = 1 - (1 - LEVEL) / len(candidates)
    compared = [_compare_candidate(before, run, old, people, margin=margin, level=level) for run in candidates]
    return Replacement(
        judge=_name_judge(before),
        folder=str(before.folder),
        margin=margin,
        level=level,
        cases=len(old),
        measurement=make_measurement(before, labels=people.labels, most_disagreements=0),
        candidates=tuple(compared),
    )


@dataclass(frozen=True, slots=True)
class _People:
    labels: tuple[Label, ...]
    by_case: PeopleLabels


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """A labelled case as one run judged it."""

    case: Case
    subject: str
    truth: TruthHeap
    verdict: str
    cost: float | None

    @property
    def agrees(self) -> bool:
        return self.truth == {"passed": "good", "failed": "bad"}.get(self.verdict, self.verdict)


def _find_people(run: Run, labels: Iterable[Label] | None) -> _People:
    every = read_run_labels(run) if labels is None else tuple(labels)
    return _People(every, PeopleLabels(every, None))


def _read_cases(run: Run, people: _People) -> Iterator[_Judged]:
    """Yield the verdict, the truth and the cost of each case that people decided."""
    functions = name_functions(run.manifest.get("judge"))
    for _, together in groupby(run.items(), key=lambda run_item: run_item.place):
        run_items = list(together)
        case = run_items[0].case
        subject = digest_content(case.content)
        truth: CaseTruth | None = people.by_case.find(case.id, None, subject) or read_stated_truth(case)
        if truth is None or truth.override or truth.heap in (*OPEN, "number"):
            continue
        verdict = find_verdict([run_item.result for run_item in run_items]).verdict
        yield _Judged(
            case=case,
            subject=run_items[0].subject,
            truth=truth.heap,
            verdict=verdict,
            cost=_add_costs(run_items, functions),
        )


def _add_costs(run_items: Sequence[RunItem], functions: Collection[str]) -> float | None:
    """Average the cost of a case's judgements; ``None`` where that is unknown of one."""
    if any(lacks_cost(run_item.result, functions) for run_item in run_items):
        return None
    return sum(
        (run_item.result.usage.cost_usd or 0.0) if run_item.result.usage else 0.0 for run_item in run_items
    ) / len(run_items)


def _compare_candidate(
    before: Run,
    run: Run,
    old: Sequence[_Judged],
    people: _People,
    *,
    margin: float,
    level: float,
) -> Candidate:
    """Compare a candidate with the judge that it would replace, on all labelled cases. Raises ``UsageError``."""
    for name in ("asked", "rubric"):
        check_same_question(before, name, run.manifest["digests"].get(name))
    after = {judged.case.id: judged for judged in _read_cases(run, people)}
    pairs = [(earlier, later) for earlier in old if (later := after.get(earlier.case.id)) is not None]
    if len(pairs) < len(old) or any(earlier.subject != later.subject for earlier, later in pairs):
        raise UsageError(
            f"{run.folder} has judged {len(pairs):,} of the {len(old):,} labelled cases of {before.folder}, or others "
            "under their ids; judge the same cases with the candidate, and finish its run"
        )
    agreement = _make_share([(earlier.agrees, later.agrees) for earlier, later in pairs], pairs, level)
    bad = [pair for pair in pairs if pair[0].truth == "bad"]
    passes = [(earlier.verdict == "passed", later.verdict == "passed") for earlier, later in bad]
    wrong = _make_share(passes, bad, level) if bad else None
    gained = sum(later.agrees and not earlier.agrees for earlier, later in pairs)
    lost = sum(earlier.agrees and not later.agrees for earlier, later in pairs)
    standing, reason = _decide_standing(agreement, wrong, margin, any_bad=bool(bad) or before.compares)
    costs = [[judged.cost for judged in side] for side in zip(*pairs, strict=True)]
    return Candidate(
        judge=_name_judge(run),
        folder=str(run.folder),
        standing=standing,
        why=reason,
        agreement=agreement,
        wrong_passes=wrong,
        gained=gained,
        lost=lost,
        p_value=compute_mcnemar(lost, gained),
        flips=_count_flips(pairs),
        listed=_list_flips(pairs),
        cost_usd=(_compute_mean(costs[0]), _compute_mean(costs[1])),
        cost_interval=_find_cost_interval(costs[1], pairs),
        measurement=make_measurement(run, labels=people.labels, most_disagreements=0),
    )


def _list_groups(pairs: Sequence[tuple[_Judged, _Judged]]) -> list[str]:
    return [earlier.case.group or earlier.case.id for earlier, _ in pairs]


def _make_share(
    pairs_of_flags: Sequence[tuple[bool, bool]], pairs: Sequence[tuple[_Judged, _Judged]], level: float
) -> PairedShare:
    """Count how often something is true of both judges, with limits of the difference that follow the groups."""
    gained = sum(after and not before for before, after in pairs_of_flags)
    lost = sum(before and not after for before, after in pairs_of_flags)
    groups = _list_groups(pairs)
    apart = len(set(groups))
    if apart == len(groups):
        low, high = find_paired_difference(gained, lost, len(pairs_of_flags), level=level)
    elif apart < LEAST_UNITS:
        low, high = NOTHING_KNOWN
    else:
        low, high = find_grouped_difference([after - before for before, after in pairs_of_flags], groups, level=level)
    return PairedShare(
        before=sum(before for before, _ in pairs_of_flags),
        after=sum(after for _, after in pairs_of_flags),
        of=len(pairs_of_flags),
        low=low,
        high=high,
    )


def _decide_standing(
    agreement: PairedShare, wrong: PairedShare | None, margin: float, *, any_bad: bool
) -> tuple[Standing, str]:
    """Decide a candidate's standing by the rule, with the reason."""
    share = f"{100 * margin:g} points"
    if agreement.high < -margin:
        return "may not replace", f"it agrees with people on more than {share} fewer of the cases"
    if wrong is not None and wrong.low > margin:
        return "may not replace", f"it passes more than {share} more of what people failed"
    open_question = _find_open(agreement, wrong, margin, any_bad=any_bad)
    if open_question is not None:
        return "unknown", open_question
    return "may replace", f"it is at most {share} worse, in agreement and in what it wrongly passes"


def _find_open(agreement: PairedShare, wrong: PairedShare | None, margin: float, *, any_bad: bool) -> str | None:
    """Find what the labels leave open; nothing that is not known lets a candidate follow."""
    if (agreement.low, agreement.high) == NOTHING_KNOWN:
        return f"the labelled cases are of fewer than {LEAST_UNITS} groups; label cases of more groups"
    if agreement.low < -margin:
        return f"it may agree on up to {format_points(-agreement.low)} points fewer; label more cases{_PRICE}"
    if not any_bad:
        return "no labelled case is one that people failed, so nobody knows what it would let pass"
    if wrong is not None and wrong.high > margin:
        excess = format_points(wrong.high)
        return f"it may pass up to {excess} points more of what people failed; label more of such cases{_PRICE}"
    return None


_PRICE = ", but these limits are for one look, and err more often with each further one"


def _count_flips(pairs: Sequence[tuple[_Judged, _Judged]]) -> dict[tuple[str, str], int]:
    """Count the verdicts that changed, by the earlier and the later one, the most frequent first."""
    counts: dict[tuple[str, str], int] = {}
    for earlier, later in pairs:
        if earlier.verdict != later.verdict:
            counts[earlier.verdict, later.verdict] = counts.get((earlier.verdict, later.verdict), 0) + 1
    return dict(sorted(counts.items(), key=lambda flip: (-flip[1], flip[0])))


def _list_flips(pairs: Sequence[tuple[_Judged, _Judged]]) -> tuple[Flip, ...]:
    flipped = [(earlier, later) for earlier, later in pairs if earlier.verdict != later.verdict]
    flipped.sort(key=lambda pair: (pair[1].agrees, not pair[0].agrees))
    return tuple(
        Flip(case=earlier.case.id, truth=earlier.truth, before=earlier.verdict, after=later.verdict)
        for earlier, later in flipped[:MOST_FLIPS]
    )


def _compute_mean(costs: Sequence[float | None]) -> float | None:
    known_costs = [cost for cost in costs if cost is not None]
    return sum(known_costs) / len(known_costs) if known_costs and len(known_costs) == len(costs) else None


def _find_cost_interval(
    costs: Sequence[float | None], pairs: Sequence[tuple[_Judged, _Judged]]
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
    judge = run.manifest.get("judge")
    return str(judge.get("name") if isinstance(judge, Mapping) else "")[:300]
