"""May another judge take the place of one that is retired? Both are compared with people on the same labelled cases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, ClassVar, Literal

from adjudge.dataset.case import Case
from adjudge.dataset.contents import digest_content
from adjudge.dataset.label import Label
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_share
from adjudge.formats.numbers import format_points
from adjudge.labels.truth import TruthHeap
from adjudge.measurement.comparison import PeopleLabels
from adjudge.measurement.judged_case import CaseTruth, find_verdict, read_own_truth
from adjudge.measurement.measure import make_measurement
from adjudge.measurement.measurement import OPEN, Measurement
from adjudge.measurement.run_labels import read_queue
from adjudge.runs.folder import Run
from adjudge.runs.item import RunItem, lacks_cost
from adjudge.runs.successor import check_same_question
from adjudge.trust.difference import compute_mcnemar, find_grouped_difference, find_paired_difference
from adjudge.trust.extra import check_extra
from adjudge.trust.resampling import LEAST_UNITS, find_bootstrap_interval

MARGIN = 0.05
"""How much less than the old judge a successor may agree with people, as a share of the cases."""

LEVEL = 0.95
"""How sure the statements about all candidates together are."""

MOST_FLIPS = 2_000
"""Flipped cases that are listed."""

NOTHING_KNOWN = (-1.0, 1.0)
"""The interval of a difference where too few groups of cases are labelled."""

Standing = Literal["may follow", "may not follow", "unknown"]
"""``unknown``: the labelled cases are too few to tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedShare:
    """A share of the same cases for both judges, and the interval of the difference."""

    before: int
    after: int
    of: int
    low: float
    """The lower limit of after minus before, in -1 to 1."""
    high: float

    @property
    def delta(self) -> float:
        """After minus before, as a share."""
        return (self.after - self.before) / self.of

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return {name: getattr(self, name) for name in self.__slots__} | {"delta": self.delta}


@dataclass(frozen=True, slots=True, kw_only=True)
class Flip:
    """A labelled case that the candidate decides otherwise."""

    case: str
    truth: TruthHeap
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One judge beside the one it may follow."""

    judge: str
    folder: str
    standing: Standing
    why: str
    """What the standing rests on, in a sentence."""
    agreement: PairedShare
    """Labelled cases on which a judge decided as people did; undecided is no agreement."""
    wrong_passes: PairedShare | None
    """Of the cases that people failed, those that a judge passed; ``None`` for comparisons, and without such a case."""
    gained: int
    """Cases on which only the candidate agrees with people."""
    lost: int
    """Cases on which only the old judge does."""
    p_value: float | None
    """McNemar's exact test of gained against lost."""
    flips: Mapping[tuple[str, str], int]
    """How many labelled cases went from which verdict to which."""
    listed: tuple[Flip, ...] = field(repr=False)
    """The flipped cases: those that were lost first."""
    cost_usd: tuple[float | None, float | None]
    """What a case costs on average, before and after; ``None`` where the cost of one is unknown."""
    cost_interval: tuple[float, float] | None
    """The 95 % bootstrap interval of what a case costs with the candidate."""
    measurement: Measurement = field(repr=False)
    """The candidate compared with people by itself, as ``make_measurement`` has it."""

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        plain = ("judge", "folder", "standing", "why", "gained", "lost", "p_value")
        return {
            **{name: getattr(self, name) for name in plain},
            "agreement": self.agreement.to_dict(),
            "wrong_passes": None if self.wrong_passes is None else self.wrong_passes.to_dict(),
            "flips": [{"before": old, "after": new, "cases": count} for (old, new), count in self.flips.items()],
            "listed": [{name: getattr(flip, name) for name in flip.__slots__} for flip in self.listed],
            "cost_usd": list(self.cost_usd),
            "cost_interval": None if self.cost_interval is None else list(self.cost_interval),
            "measurement": self.measurement.to_dict(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Succession:
    """The candidates for a judge's place, in the order in which they were named.

    The rule: a candidate may follow if, with 95 % confidence for all candidates together, it agrees with people on at
    most ``margin`` fewer of the cases, and passes at most ``margin`` more of the cases that people failed. It may not
    if one of the two is shown to be worse than that.
    """

    schema: ClassVar[str] = "adjudge/succession/1"

    judge: str
    """The judge that is to be followed."""
    folder: str
    margin: float
    level: float
    """The confidence of each candidate's intervals: higher where there are several candidates."""
    cases: int
    """Labelled cases whose truth people settled."""
    measurement: Measurement = field(repr=False)
    """The old judge compared with people."""
    candidates: tuple[Candidate, ...]

    @property
    def successors(self) -> tuple[Candidate, ...]:
        """Those that may follow, the one that agrees most first; at the same agreement, the cheaper one.

        A cost that is unknown comes after every known one.
        """
        may = [item for item in self.candidates if item.standing == "may follow"]
        return tuple(sorted(may, key=lambda item: (-item.agreement.after, *_rank_cost(item.cost_usd[1]))))

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data, whose schema is ``adjudge/succession/1``."""
        plain = ("judge", "folder", "margin", "level", "cases")
        return {
            "schema": self.schema,
            **{name: getattr(self, name) for name in plain},
            "successors": [item.judge for item in self.successors],
            "measurement": self.measurement.to_dict(),
            "candidates": [item.to_dict() for item in self.candidates],
        }


def _rank_cost(usd: float | None) -> tuple[bool, float]:
    # Unknown is not free, so that it must not come first.
    return usd is None, usd or 0.0


def list_labelled(run: Run, labels: Iterable[Label] | None = None) -> list[Case]:
    """The cases of a run whose truth people settled, in the order of the data set.

    ``labels`` default to those of the run's own queue; cases that no label is about go by those of their data set.
    """
    return [found.case for found in _read(run, _find_people(run, labels))]


def make_succession(
    before: Run, candidates: Sequence[Run], *, labels: Iterable[Label] | None = None, margin: float = MARGIN
) -> Succession:
    """Compare the judges of runs with the one that judged the same cases before them.

    ``labels`` are as for ``make_measurement``. A candidate must have judged every labelled case, with the same
    question. Needs ``adjudge[trust]``; raises ``UsageError`` where a run lacks that, and without a labelled case.
    """
    check_extra()
    check_share("margin", margin)
    if not candidates:
        raise UsageError("a succession needs at least one candidate; name a judge, or a run of one")
    people = _find_people(before, labels)
    old = list(_read(before, people))
    if not old:
        raise UsageError(
            f"no case of {before.folder} has a settled label; label it (adjudge label), or name a file of labels"
        )
    # Each statement about a candidate can be wrong; so many together must not be wrong more often than one may.
    level = 1 - (1 - LEVEL) / len(candidates)
    found = [_compare(before, run, old, people, margin=margin, level=level) for run in candidates]
    return Succession(
        judge=_name(before),
        folder=str(before.folder),
        margin=margin,
        level=level,
        cases=len(old),
        measurement=make_measurement(before, labels=people.labels, most_disagreements=0),
        candidates=tuple(found),
    )


@dataclass(frozen=True, slots=True)
class _People:
    labels: tuple[Label, ...]
    said: PeopleLabels


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
    every = read_queue(run) if labels is None else tuple(labels)
    return _People(every, PeopleLabels(every, None))


def _read(run: Run, people: _People) -> Iterator[_Judged]:
    for _, together in groupby(run.items(), key=lambda item: item.place):
        items = list(together)
        case = items[0].case
        subject = digest_content(case.content)
        truth: CaseTruth | None = people.said.find(case.id, None, subject) or read_own_truth(case)
        if truth is None or truth.override or truth.heap in (*OPEN, "number"):
            continue
        verdict = find_verdict([item.result for item in items]).verdict
        yield _Judged(case=case, subject=items[0].subject, truth=truth.heap, verdict=verdict, cost=_add_costs(items))


def _add_costs(items: Sequence[RunItem]) -> float | None:
    """What a case's judgements cost on average; ``None`` where that is unknown of one."""
    if any(lacks_cost(item.result) for item in items):
        return None
    return sum((item.result.usage.cost_usd or 0.0) if item.result.usage else 0.0 for item in items) / len(items)


def _compare(
    before: Run,
    run: Run,
    old: Sequence[_Judged],
    people: _People,
    *,
    margin: float,
    level: float,
) -> Candidate:
    for name in ("asked", "rubric"):
        check_same_question(before, name, run.manifest["digests"].get(name))
    after = {item.case.id: item for item in _read(run, people)}
    pairs = [(one, other) for one in old if (other := after.get(one.case.id)) is not None]
    if len(pairs) < len(old) or any(one.subject != other.subject for one, other in pairs):
        raise UsageError(
            f"{run.folder} has judged {len(pairs):,} of the {len(old):,} labelled cases of {before.folder}, or others "
            "under their ids; judge the same cases with the candidate, and finish its run"
        )
    agreement = _make_share([(one.agrees, other.agrees) for one, other in pairs], pairs, level)
    bad = [pair for pair in pairs if pair[0].truth == "bad"]
    let_in = [(one.verdict == "passed", other.verdict == "passed") for one, other in bad]
    wrong = _make_share(let_in, bad, level) if bad else None
    gained = sum(other.agrees and not one.agrees for one, other in pairs)
    lost = sum(one.agrees and not other.agrees for one, other in pairs)
    standing, why = _decide(agreement, wrong, margin, any_bad=bool(bad) or before.compares)
    costs = [[item.cost for item in side] for side in zip(*pairs, strict=True)]
    return Candidate(
        judge=_name(run),
        folder=str(run.folder),
        standing=standing,
        why=why,
        agreement=agreement,
        wrong_passes=wrong,
        gained=gained,
        lost=lost,
        p_value=compute_mcnemar(lost, gained),
        flips=_count_flips(pairs),
        listed=_list_flips(pairs),
        cost_usd=(_mean(costs[0]), _mean(costs[1])),
        cost_interval=_find_cost_interval(costs[1], pairs),
        measurement=make_measurement(run, labels=people.labels, most_disagreements=0),
    )


def _list_groups(pairs: Sequence[tuple[_Judged, _Judged]]) -> list[str]:
    return [one.case.group or one.case.id for one, _ in pairs]


def _make_share(
    said: Sequence[tuple[bool, bool]], pairs: Sequence[tuple[_Judged, _Judged]], level: float
) -> PairedShare:
    gained = sum(after and not before for before, after in said)
    lost = sum(before and not after for before, after in said)
    groups = _list_groups(pairs)
    apart = len(set(groups))
    if apart == len(groups):
        low, high = find_paired_difference(gained, lost, len(said), level=level)
    elif apart < LEAST_UNITS:
        low, high = NOTHING_KNOWN
    else:
        low, high = find_grouped_difference([after - before for before, after in said], groups, level=level)
    return PairedShare(
        before=sum(before for before, _ in said),
        after=sum(after for _, after in said),
        of=len(said),
        low=low,
        high=high,
    )


def _decide(agreement: PairedShare, wrong: PairedShare | None, margin: float, *, any_bad: bool) -> tuple[Standing, str]:
    """Where a candidate is by the rule, and what decides it."""
    share = f"{100 * margin:g} points"
    if agreement.high < -margin:
        return "may not follow", f"it agrees with people on more than {share} fewer of the cases"
    if wrong is not None and wrong.low > margin:
        return "may not follow", f"it passes more than {share} more of what people failed"
    open_question = _find_open(agreement, wrong, margin, any_bad=any_bad)
    if open_question is not None:
        return "unknown", open_question
    return "may follow", f"it is at most {share} worse, in agreement and in what it wrongly passes"


def _find_open(agreement: PairedShare, wrong: PairedShare | None, margin: float, *, any_bad: bool) -> str | None:
    """What the labels leave open; nothing that is not known lets a candidate follow."""
    if (agreement.low, agreement.high) == NOTHING_KNOWN:
        return f"the labelled cases are of fewer than {LEAST_UNITS} groups; label cases of more groups"
    if agreement.low < -margin:
        return f"it may agree on up to {format_points(-agreement.low)} points fewer; label more cases"
    if not any_bad:
        return "no labelled case is one that people failed, so nobody knows what it would let pass"
    if wrong is not None and wrong.high > margin:
        more = format_points(wrong.high)
        return f"it may pass up to {more} points more of what people failed; label more of such cases"
    return None


def _count_flips(pairs: Sequence[tuple[_Judged, _Judged]]) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for one, other in pairs:
        if one.verdict != other.verdict:
            found[one.verdict, other.verdict] = found.get((one.verdict, other.verdict), 0) + 1
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def _list_flips(pairs: Sequence[tuple[_Judged, _Judged]]) -> tuple[Flip, ...]:
    flipped = [(one, other) for one, other in pairs if one.verdict != other.verdict]
    flipped.sort(key=lambda pair: (pair[1].agrees, not pair[0].agrees))
    return tuple(
        Flip(case=one.case.id, truth=one.truth, before=one.verdict, after=other.verdict)
        for one, other in flipped[:MOST_FLIPS]
    )


def _mean(costs: Sequence[float | None]) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return sum(known) / len(known) if known and len(known) == len(costs) else None


def _find_cost_interval(
    costs: Sequence[float | None], pairs: Sequence[tuple[_Judged, _Judged]]
) -> tuple[float, float] | None:
    known = [cost for cost in costs if cost is not None]
    groups = _list_groups(pairs)
    # Where every case costs the same, resamples do too, and say nothing of other cases.
    if len(known) < len(costs) or len(set(groups)) < LEAST_UNITS or len(set(known)) < 2:
        return None
    return find_bootstrap_interval(known, groups=groups)


def _name(run: Run) -> str:
    judge = run.manifest.get("judge")
    return str(judge.get("name") if isinstance(judge, Mapping) else "")[:300]
