"""The errors of the harness's own approval, the rules and the judge, measured by what people say of calls.

People say of some calls whether they should have been made. From that follows how often each of the three lets through
what people would stop, and stops what people would allow.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, ClassVar, Literal

from adjudge.dataset.call_record import CallRecord, read_call_record
from adjudge.dataset.contents import digest_content
from adjudge.dataset.label import Label
from adjudge.errors import UsageError
from adjudge.formats.record import Layout, write_record
from adjudge.judges.pair import PairResult
from adjudge.labels.plan import LabelPlan, find_case_stratum, find_designs, read_plan
from adjudge.measurement.judge_difference import choose_level, find_plan_of_labels
from adjudge.measurement.judged_case import CaseTruth, find_verdict, read_stated_truth
from adjudge.measurement.label_origin import Planned
from adjudge.measurement.limit import LabelDraw, LimitKind
from adjudge.measurement.measure import make_measurement
from adjudge.measurement.measurement import Measurement
from adjudge.measurement.people import PeopleLabels
from adjudge.measurement.run_labels import read_run_labels
from adjudge.runs.folder import Run, open_run
from adjudge.runs.item import RunItem
from adjudge.trust.double_sampling import compute_double_sampling
from adjudge.trust.extra import check_extra
from adjudge.trust.intervals import LEVEL, Estimate, Share, WeightedShare, find_part_of_sum
from adjudge.trust.weighting import estimate_weighted_share

Decider = Literal["harness", "rules", "judge"]

DECIDERS: tuple[Decider, ...] = ("harness", "rules", "judge")

CallStep = Literal["passed", "stopped", "unknown"]
"""The act of a decider on a call: let it through, stop it (or ask), or nobody knows."""

_STEPS: tuple[CallStep, ...] = ("passed", "stopped", "unknown")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeciderRates:
    """The rates at which one of the three lets through what people would stop, and stops what people would allow.

    Shares are of the calls of which it is known what the decider did.
    """

    name: Decider
    """``harness`` (its own approval, with its user's), ``rules`` or ``judge``."""
    calls: Mapping[CallStep, int]
    """All calls by what the decider did, labelled or not."""
    undecided: int
    """The calls among the stopped ones that the judge did not decide; 0 for the others."""
    labelled: Mapping[CallStep, Mapping[str, int]]
    """Labelled calls by what it did and what people say: ``allow``, ``stop``, or ``open`` where they did not settle."""
    wrong_passes: Estimate
    """Calls that it lets through and people would stop, as a share of all calls."""
    wrong_passes_of_bad: Estimate
    """The share of the calls that people would stop which it lets through."""
    wrong_stops: Estimate
    """Calls that it stops and people would allow, as a share of all calls."""
    wrong_stops_of_good: Estimate
    """The share of the calls that people would allow which it stops."""

    def to_dict(self) -> dict[str, Any]:
        """Return this value as plain data."""
        return write_record(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRates:
    """Harness, rules and judge beside what people say of the same calls."""

    schema: ClassVar[str] = "adjudge/call-rates/1"
    _layout: ClassVar[Layout] = Layout(
        members=(
            "run",
            "judge",
            "calls",
            "times",
            "labelled",
            "people",
            "agreed",
            "bad",
            "deciders",
            "limit",
            "because",
            "not_blind",
            "other_contents",
        )
    )

    run: str
    """The id of the run."""
    judge: str
    """The name of the judge."""
    calls: int
    """Different calls."""
    times: int
    """The number of times that they were wanted, equal ones counted."""
    labelled: Mapping[str, int]
    """Labelled calls by what people say: ``allow``, ``stop``, or ``open`` where they did not settle it."""
    people: tuple[str, ...]
    """The people who labelled."""
    agreed: Share
    """Of the calls that two or more people labelled, those of which they say the same."""
    bad: Estimate
    """The share of calls that people would stop."""
    deciders: tuple[DeciderRates, ...]
    """Harness, rules and judge, without those of which nothing is known."""
    limit: LimitKind | None
    """The looks that the intervals hold for; ``None`` where the labels allow none."""
    because: str
    """The reason for these limits, or for their absence. One clause."""
    not_blind: int = 0
    """Labelled calls of which a label is not known to be blind."""
    other_contents: int = 0
    """Labels that are not counted, because they are of another content than the call of their id."""
    draw: LabelDraw | None = None
    """The sample of labels, as the record of looks names it."""

    def to_dict(self) -> dict[str, Any]:
        """Return this value as plain data."""
        return write_record(self)


def make_call_rates(
    run: Run | str | os.PathLike[str], *, labels: Iterable[Label] | None = None, labels_are_random: bool = False
) -> CallRates:
    """Compare harness, rules and judge with people, on the calls of a run.

    Args:
        run: A run of the calls that ``adjudge calls collect`` wrote. Where the run was judged with rules, those are the
            rules, and of a call that they stopped the judge was not asked; else those that were asked when the calls
            were collected.
        labels: What people say: true for a call that should have been made. By default those of the run's own queue.
        labels_are_random: True if the labelled calls are a random sample, as the user says.

    The shares are of the calls of the run, equal ones counted once. Intervals are made of Wilson's by MOVER, and of
    exact ones near 0 and 1, over the strata of a plan and what each of the three did with their calls. They hold for
    one look where exactly the labels of a plan are there, else for every look, and whatever is true of the calls that
    people did not settle. Labels that somebody chose give counts alone. The look is not recorded.

    Needs ``adjudge[trust]``. Raises ``UsageError`` for a run of pairs, one without a call that was collected, and for
    labels of no case of it.
    """
    check_extra()
    if not isinstance(run, Run):
        with open_run(run) as opened:
            return make_call_rates(opened, labels=labels, labels_are_random=labels_are_random)
    if run.compares:
        raise UsageError(f"{run.folder} compares pairs, and calls are judged one by one")
    every = read_run_labels(run) if labels is None else tuple(labels)
    measurement = make_measurement(run, labels=every, labels_are_random=labels_are_random, most_disagreements=0)
    draw = _find_draw(run, every, measurement)
    reading = _read_calls(run, every, draw)
    level, limit, because = choose_level(measurement, sum(call.truth in ("allow", "stop") for call in reading.sample))
    missing = set(draw.sizes) - {call.stratum for call in reading.sample}
    if limit is not None and missing:
        limit, because = None, "a stratum of the plan has no label; label more of its cases"
    estimator = _Estimator(reading, draw, level, because if limit is None else "")
    return CallRates(
        run=run.id,
        judge=measurement.judge,
        calls=len(reading.calls),
        times=reading.times,
        labelled=_count_truths(call.truth for call in reading.sample),
        people=measurement.people,
        agreed=reading.agreed,
        bad=estimator.estimate_share("stop"),
        deciders=tuple(_make_deciders(reading, estimator)),
        limit=limit,
        because=because,
        not_blind=measurement.not_blind,
        other_contents=measurement.other_contents,
        draw=measurement.draw,
    )


# ---------------------------------------------------------------- reading


_TRUTHS = {"good": "allow", "bad": "stop"}


@dataclass(frozen=True, slots=True)
class _Call:
    """A call with what each decider did; of a labelled one what people say, and the stratum that it was drawn from."""

    steps: Mapping[Decider, CallStep]
    undecided: bool
    truth: str = ""
    stratum: str = ""


@dataclass(frozen=True, slots=True)
class _Draw:
    """The draw of the labelled calls."""

    planned: Planned | None
    """The plan, if one drew them."""
    sizes: Mapping[str, int]
    """The number of calls of each stratum; all of them under an empty name where there are none."""
    plan: LabelPlan | None
    """The plan that was drawn from this very run, by which the stratum of each call is known, labelled or not."""

    @property
    def is_known(self) -> bool:
        """Return whether the stratum of each call is known, labelled or not."""
        return len(self.sizes) == 1 or self.plan is not None

    def find_stratum(self, items: Sequence[RunItem], subject: str, truth: CaseTruth | None) -> str:
        """Find the stratum of a call; that of one without a label may not be known."""
        if len(self.sizes) == 1:
            return next(iter(self.sizes))
        if self.plan is not None:
            return find_case_stratum(self.plan, items, subject) or ""
        design = None if truth is None or self.planned is None else self.planned.find(truth.designs)
        return "" if design is None else design.stratum

    def counts(self, truth: CaseTruth | None) -> bool:
        """Return whether the label of a call is one of the sample."""
        if truth is None or truth.override or truth.heap == "number":
            return False
        return self.planned is None or self.planned.find(truth.designs) is not None


@dataclass(frozen=True, slots=True)
class _Reading:
    calls: Sequence[_Call]
    sample: Sequence[_Call]
    """The labelled calls that count."""
    times: int
    agreed: Share


def _find_draw(run: Run, labels: Sequence[Label], measurement: Measurement) -> _Draw:
    """Find the draw of the labelled calls by the plan in the run's folder, or by what the labels say of theirs.

    Calls that no plan drew are one stratum.
    """
    if measurement.sampling != "plan":
        return _Draw(None, {"": measurement.cases}, None)
    # A measurement has the progress of a plan that was compared with the run.
    plan = read_plan(run.folder) if measurement.plan is not None else None
    if plan is not None:
        sizes = {stratum.name: stratum.size for stratum in plan.strata}
        planned = Planned(plan=plan.id, sizes=sizes, designs=find_designs(plan, labels))
        return _Draw(planned, sizes, plan if plan.run == run.id else None)
    described = find_plan_of_labels((run,), labels)
    return _Draw(described, {"": measurement.cases} if described is None else described.sizes, None)


def _read_calls(run: Run, labels: Sequence[Label], draw: _Draw) -> _Reading:
    """Read every call of a run: what each decider did with it, and what people say of it. Raises ``UsageError``."""
    people = PeopleLabels(labels, None, draw.planned if draw.planned is not None and draw.planned.designs else None)
    has_rules = bool(run.manifest["asked"].get("rules"))
    calls: list[_Call] = []
    times = known = several = differing = 0
    for _, together in groupby(run.items(), key=lambda item: item.place):
        items = list(together)
        case = items[0].case
        record = read_call_record(case.metadata)
        known, times = known + (record is not None), times + (1 if record is None else record.times)
        subject = digest_content(case.content)
        truth = people.find(case.id, None, subject) or read_stated_truth(case)
        several += truth is not None and len(truth.ratings) > 1
        differing += truth is not None and truth.differs
        results = [item.result for item in items]
        by_rule = has_rules and not isinstance(results[0], PairResult) and results[0].decided_by == "rule"
        verdict = find_verdict(results).verdict
        steps: dict[Decider, CallStep] = {
            "harness": _read_harness(record),
            "rules": _read_rules(record, has_rules=has_rules, is_stopped=by_rule and verdict != "passed"),
            "judge": _read_judge(verdict, by_rule=by_rule),
        }
        is_undecided = not by_rule and verdict == "undecided"
        word = _TRUTHS.get(truth.heap, "open") if truth is not None and draw.counts(truth) else ""
        calls.append(_Call(steps, is_undecided, word, draw.find_stratum(items, subject, truth)))
    if not known:
        raise UsageError(
            f"no case of {run.folder} says what a harness did with it; judge the calls that adjudge calls collect wrote"
        )
    sample = [call for call in calls if call.truth]
    return _Reading(calls, sample, times, Share(count=several - differing, of=several))


def _read_harness(record: CallRecord | None) -> CallStep:
    if record is None or record.outcome == "unknown":
        return "unknown"
    return "passed" if record.outcome == "ran" else "stopped"


def _read_rules(record: CallRecord | None, *, has_rules: bool, is_stopped: bool) -> CallStep:
    """Read what the rules of this run did; if it has none, what the record says of those of the hook.

    The rates are those of the run, and its rules may be others than the hook had.
    """
    if has_rules:
        return "stopped" if is_stopped else "passed"
    if record is None or record.rules is None:
        return "unknown"
    return "passed" if record.rules == "passed" else "stopped"


def _read_judge(verdict: str, *, by_rule: bool) -> CallStep:
    if by_rule:  # before the judge was asked, so nobody knows what it would have said
        return "unknown"
    # A call that the judge leaves undecided does not get through, so it is stopped; it is also counted apart.
    return "passed" if verdict == "passed" else "stopped"


def _count_truths(truths: Iterable[str]) -> dict[str, int]:
    counts = Counter(truths)
    return {name: counts[name] for name in ("allow", "stop", "open")}


# ---------------------------------------------------------------- estimating


_OTHER: Mapping[CallStep, CallStep] = {"passed": "stopped", "stopped": "passed"}

_METHOD = "double sampling, MOVER with Wilson and exact limits"

_SETTLED = tuple(_TRUTHS.values())
"""The truths of calls that people have settled; that of one which they have not is ``open``."""


class _Estimator:
    """Estimates shares of all calls from the labelled ones.

    Within a stratum the labelled calls are a random sample also of those with which a decider did the same, and how
    many these are is known. So the totals of what it lets through and of what it stops are estimated each by itself.
    """

    def __init__(self, reading: _Reading, draw: _Draw, level: float, missing: str) -> None:
        self._reading, self._draw, self._level, self._missing = reading, draw, level, missing
        self._has_open = any(call.truth == "open" for call in reading.sample)

    def estimate_share(self, truth: str) -> Estimate:
        """Estimate the share of the calls that people would ``stop``, or ``allow``."""
        return self._estimate_share_with_limits(
            sum(call.truth in _SETTLED for call in self._reading.sample),
            lambda open_truth: self._divide_sums(
                self._find_total(truth, None, open_truth), sum(self._draw.sizes.values())
            ),
            is_census=_is_census(self._reading.calls),
        )

    def estimate_wrong(self, name: Decider, step: CallStep, truth: str) -> tuple[Estimate, Estimate]:
        """Estimate what a decider does wrongly: as a share of all calls, and of those whose truth is ``truth``.

        Both are of the calls of which it is known what the decider did. Each share is computed again as if every call
        that people did not settle were ``open_truth``; ``None`` leaves those calls out.
        """
        known = [call for call in self._reading.sample if call.steps[name] != "unknown" and call.truth in _SETTLED]
        number = sum(call.steps[name] != "unknown" for call in self._reading.calls)
        truth_count = sum(call.truth == truth for call in known)

        def compute_share_of_all(open_truth: str | None) -> WeightedShare | Estimate | None:
            if not self._draw.is_known:
                return self._weigh_strata(name, step, truth, open_truth, of_all=True)
            return self._divide_sums(self._find_total(truth, (name, step), open_truth), number)

        def compute_share_of_truth(open_truth: str | None) -> WeightedShare | Estimate | None:
            if not self._draw.is_known:
                return self._weigh_strata(name, step, truth, open_truth, of_all=False)
            wrong, right = (self._find_total(truth, (name, each), open_truth) for each in (step, _OTHER[step]))
            return find_part_of_sum(wrong, right)

        all_calls = self._estimate_share_with_limits(
            len(known), compute_share_of_all, is_census=self._is_census(name, step)
        )
        if not truth_count:
            nothing = Estimate(value=None, of=0, note=self._missing or "no labelled call is one of these")
            return all_calls, nothing
        return all_calls, self._estimate_share_with_limits(
            truth_count, compute_share_of_truth, is_census=self._is_truth_share_counted(name, step, truth)
        )

    def _is_census(self, name: Decider, step: CallStep) -> bool:
        return _is_census(call for call in self._reading.calls if call.steps[name] == step)

    def _is_truth_share_counted(self, name: Decider, step: CallStep, truth: str) -> bool:
        """Return whether the share of the wrong ones is counted: both kinds are, or one that is counted is none."""
        is_counted = {each: self._is_census(name, each) for each in (step, _OTHER[step])}
        held = {call.steps[name] for call in self._reading.sample if call.truth == truth}
        return all(is_counted.values()) or any(is_counted[each] and each not in held for each in is_counted)

    def _estimate_share_with_limits(
        self, of: int, find: Callable[[str | None], WeightedShare | Estimate | None], *, is_census: bool
    ) -> Estimate:
        """Estimate with limits that hold also if each of the calls that people did not settle is bad, or good.

        ``is_census`` says that people settled every call that the share depends on, so that it is counted. That is
        read from the labels and never from limits that are equal: those of a sample may be so by rounding.
        """
        if self._missing or not of:
            return Estimate(value=None, of=of, note=self._missing or "no labelled call is one of these")
        settled = find(None)
        if settled is None or settled.value is None:
            return Estimate(value=None, of=of, note="no labelled call is one of these")
        every = [settled, *(find(truth) for truth in (_SETTLED if self._has_open else ()))]
        limits = [(each.low, each.high) for each in every if each is not None]
        low = min((low for low, _ in limits if low is not None), default=None)
        high = max((high for _, high in limits if high is not None), default=None)
        counted_by = "counted" if is_census else _METHOD
        # One over the strata of another run knows by itself whether it counted.
        method = settled.method if isinstance(settled, Estimate) else counted_by
        # Limits for every look are computed at a higher level, so that they hold at this one at all looks together.
        return Estimate(value=settled.value, of=of, low=low, high=high, level=LEVEL, method=method)

    def _find_total(
        self, truth: str, decider: tuple[Decider, CallStep] | None, open_truth: str | None
    ) -> WeightedShare:
        """Find the number of calls of which people say this, and with which a decider did this, with its limits."""
        import numpy as np

        def fits(call: _Call) -> bool:
            return decider is None or call.steps[decider[0]] == decider[1]

        sizes = (
            self._draw.sizes if decider is None else Counter(call.stratum for call in self._reading.calls if fits(call))
        )
        places = {stratum: place for place, stratum in enumerate(self._draw.sizes)}
        cases = np.asarray([sizes.get(stratum, 0) for stratum in places], dtype=float)
        counts, labelled = np.zeros(len(places)), np.zeros(len(places))
        for call in filter(fits, self._reading.sample):
            decided = open_truth if call.truth == "open" else call.truth
            labelled[places[call.stratum]] += bool(decided)
            counts[places[call.stratum]] += decided == truth
        held = cases > 0
        if not held.any():
            return WeightedShare(value=0.0, low=0.0, high=0.0)
        rates = compute_double_sampling(counts[held], labelled[held], cases[held], level=self._level)
        value, low, high = (float(rate) * float(cases.sum()) for rate in rates)
        return WeightedShare(value=value, low=low, high=high)

    def _divide_sums(self, total: WeightedShare, number: int) -> WeightedShare | None:
        if not number:
            return None
        return WeightedShare(value=total.value / number, low=total.low / number, high=total.high / number)

    def _weigh_strata(
        self, name: Decider, step: CallStep, truth: str, open_truth: str | None, *, of_all: bool
    ) -> Estimate | None:
        """Estimate without the sizes of the parts of strata, which are those of another run's verdicts."""
        import numpy as np

        places = {stratum: place for place, stratum in enumerate(self._draw.sizes)}
        table = np.zeros((3, len(places)))
        for call in self._reading.sample:
            decided = open_truth if call.truth == "open" else call.truth
            if decided:
                is_of = call.steps[name] != "unknown" and (of_all or decided == truth)
                is_wrong = is_of and call.steps[name] == step and decided == truth
                table[:, places[call.stratum]] += (is_wrong, is_of, 1)
        if not table[2].all():
            return None
        cases = np.asarray(list(self._draw.sizes.values()), dtype=float)
        counted, number, labelled = table
        return estimate_weighted_share(counted, number, labelled, cases, level=self._level)


def _is_census(calls: Iterable[_Call]) -> bool:
    """Return whether people settled each of these calls."""
    return all(call.truth in _SETTLED for call in calls)


def _make_deciders(reading: _Reading, estimator: _Estimator) -> Iterator[DeciderRates]:
    """Yield the rates of each decider of which it is known what it did with some call."""
    for name in DECIDERS:
        calls = Counter(call.steps[name] for call in reading.calls)
        if not (calls["passed"] or calls["stopped"]):
            continue
        wrong_passes, of_bad = estimator.estimate_wrong(name, "passed", "stop")
        wrong_stops, of_good = estimator.estimate_wrong(name, "stopped", "allow")
        yield DeciderRates(
            name=name,
            calls={step: calls[step] for step in _STEPS},
            undecided=sum(call.undecided for call in reading.calls) if name == "judge" else 0,
            labelled={
                step: _count_truths(call.truth for call in reading.sample if call.steps[name] == step)
                for step in _STEPS
            },
            wrong_passes=wrong_passes,
            wrong_passes_of_bad=of_bad,
            wrong_stops=wrong_stops,
            wrong_stops_of_good=of_good,
        )
