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
from adjudge.measurement.gate_limit import LabelDraw, LimitKind
from adjudge.measurement.judge_difference import choose_level, find_plan_of_labels
from adjudge.measurement.label_origin import KnownPlan
from adjudge.measurement.measure import make_measurement
from adjudge.measurement.measurement import Measurement
from adjudge.measurement.people import PeopleLabels
from adjudge.measurement.run_labels import read_run_labels
from adjudge.measurement.verdict_and_truth import CaseTruth, find_verdict, read_stated_truth
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
    all_labels = read_run_labels(run) if labels is None else tuple(labels)
    measurement = make_measurement(run, labels=all_labels, labels_are_random=labels_are_random, most_disagreements=0)
    draw = _find_draw(run, all_labels, measurement)
    run_calls = _read_calls(run, all_labels, draw)
    settled = sum(call.truth in ("allow", "stop") for call in run_calls.sample)
    level, limit, because = choose_level(measurement, settled)
    unlabelled_strata = set(draw.sizes) - {call.stratum for call in run_calls.sample}
    if limit is not None and unlabelled_strata:
        limit, because = None, "a stratum of the plan has no label; label more of its cases"
    estimator = _Estimator(run_calls, draw, level, because if limit is None else "")
    return CallRates(
        run=run.id,
        judge=measurement.judge,
        calls=len(run_calls.calls),
        times=run_calls.times,
        labelled=_count_truths(call.truth for call in run_calls.sample),
        people=measurement.people,
        agreed=run_calls.agreed,
        bad=estimator.estimate_share("stop"),
        deciders=tuple(_make_deciders(run_calls, estimator)),
        limit=limit,
        because=because,
        not_blind=measurement.not_blind,
        other_contents=measurement.other_contents,
        draw=measurement.draw,
    )


# ---------------------------------------------------------------- reading


_TRUTHS = {"good": "allow", "bad": "stop"}
"""The words for people's answers, by the heap of a call's truth."""


@dataclass(frozen=True, slots=True)
class _Call:
    """A call with what each decider did; of a labelled one what people say, and the stratum that it was drawn from."""

    steps: Mapping[Decider, CallStep]
    """The step of each decider: it passed the call, stopped it, or nobody knows."""
    undecided: bool
    """True if the judge did not decide it."""
    truth: str = ""
    """``allow`` or ``stop`` as people say, or ``open`` where they did not settle it; empty without a label."""
    stratum: str = ""
    """The stratum of the plan; empty without strata, and where it is unknown."""


@dataclass(frozen=True, slots=True)
class _CallDraw:
    """The draw of the labelled calls: by a plan with strata, or without one."""

    known_plan: KnownPlan | None
    """The plan that drew the calls, if one did."""
    sizes: Mapping[str, int]
    """The number of calls of each stratum; all calls under an empty name where there are no strata."""
    plan: LabelPlan | None
    """The same plan if it was drawn from this very run: then the stratum of every call is known, labelled or not."""

    @property
    def knows_every_stratum(self) -> bool:
        """Return whether the stratum of each call is known, labelled or not."""
        return len(self.sizes) == 1 or self.plan is not None

    def find_stratum(self, items: Sequence[RunItem], subject: str, truth: CaseTruth | None) -> str:
        """Find the stratum of a call; empty without strata, and where that of a call without a label is unknown."""
        if len(self.sizes) == 1:
            return next(iter(self.sizes))
        if self.plan is not None:
            return find_case_stratum(self.plan, items, subject) or ""
        design = None if truth is None or self.known_plan is None else self.known_plan.find_design(truth.designs)
        return "" if design is None else design.stratum

    def is_in_sample(self, truth: CaseTruth | None) -> bool:
        """Return whether a call with this truth counts: it is labelled, and was drawn by the plan if there is one."""
        if truth is None or truth.override or truth.heap == "number":
            return False
        return self.known_plan is None or self.known_plan.find_design(truth.designs) is not None


@dataclass(frozen=True, slots=True)
class _CallsOfRun:
    """The different calls of a run, with counts of them."""

    calls: Sequence[_Call]
    sample: Sequence[_Call]
    """The labelled calls that count."""
    times: int
    """The number of times that calls were wanted, equal ones counted."""
    agreed: Share
    """Of the calls that several people labelled, those of which they say the same."""


def _find_draw(run: Run, labels: Sequence[Label], measurement: Measurement) -> _CallDraw:
    """Find the draw of the labelled calls by the plan in the run's folder, or by the draws that labels record.

    Calls that no plan drew are one stratum.
    """
    if measurement.sampling != "plan":
        return _CallDraw(None, {"": measurement.cases}, None)
    # A measurement has the progress of a plan only if the plan fits the run.
    plan = read_plan(run.folder) if measurement.plan is not None else None
    if plan is not None:
        sizes = {stratum.name: stratum.size for stratum in plan.strata}
        known_plan = KnownPlan(plan=plan.id, sizes=sizes, designs=find_designs(plan, labels))
        return _CallDraw(known_plan, sizes, plan if plan.run == run.id else None)
    described_plan = find_plan_of_labels((run,), labels)
    sizes_of_strata = {"": measurement.cases} if described_plan is None else described_plan.sizes
    return _CallDraw(described_plan, sizes_of_strata, None)


def _read_calls(run: Run, labels: Sequence[Label], draw: _CallDraw) -> _CallsOfRun:
    """Read every call of a run: what each decider did with it, and what people say of it.

    Raises ``UsageError`` where no call says what a harness did with it.
    """
    # A plan without designs leaves it to the labels to say how their cases were drawn.
    has_designs = draw.known_plan is not None and bool(draw.known_plan.designs)
    people = PeopleLabels(labels, None, draw.known_plan if has_designs else None)
    has_rules = bool(run.manifest["asked"].get("rules"))
    calls: list[_Call] = []
    times = recorded = labelled_by_several = differing = 0
    for _, items_of_case in groupby(run.items(), key=lambda item: item.place):
        items = list(items_of_case)
        case = items[0].case
        record = read_call_record(case.metadata)
        recorded += record is not None
        times += 1 if record is None else record.times
        subject = digest_content(case.content)
        truth = people.find_truth(case.id, None, subject) or read_stated_truth(case)
        labelled_by_several += truth is not None and len(truth.ratings) > 1
        differing += truth is not None and truth.differs
        results = [item.result for item in items]
        by_rule = has_rules and not isinstance(results[0], PairResult) and results[0].decided_by == "rule"
        verdict = find_verdict(results).verdict
        steps: dict[Decider, CallStep] = {
            "harness": _read_harness_step(record),
            "rules": _read_rules_step(record, has_rules=has_rules, is_stopped=by_rule and verdict != "passed"),
            "judge": _read_judge_step(verdict, by_rule=by_rule),
        }
        is_undecided = not by_rule and verdict == "undecided"
        people_say = _TRUTHS.get(truth.heap, "open") if truth is not None and draw.is_in_sample(truth) else ""
        calls.append(_Call(steps, is_undecided, people_say, draw.find_stratum(items, subject, truth)))
    if not recorded:
        raise UsageError(
            f"no case of {run.folder} says what a harness did with it; judge the calls that adjudge calls collect wrote"
        )
    sample = [call for call in calls if call.truth]
    agreed = Share(count=labelled_by_several - differing, of=labelled_by_several)
    return _CallsOfRun(calls, sample, times, agreed)


def _read_harness_step(record: CallRecord | None) -> CallStep:
    """Read what the harness's own approval did with a call, from the record of the call; ``unknown`` without one."""
    if record is None or record.outcome == "unknown":
        return "unknown"
    return "passed" if record.outcome == "ran" else "stopped"


def _read_rules_step(record: CallRecord | None, *, has_rules: bool, is_stopped: bool) -> CallStep:
    """Read what rules did with a call: those of this run, or if it has none, those of the hook that recorded the call.

    The run's own rules come first, because the rates are about the run and the hook may have had other rules.
    """
    if has_rules:
        return "stopped" if is_stopped else "passed"
    if record is None or record.rules is None:
        return "unknown"
    return "passed" if record.rules == "passed" else "stopped"


def _read_judge_step(verdict: str, *, by_rule: bool) -> CallStep:
    """Read what the judge did with a call; ``unknown`` where a rule decided, because the judge was not asked."""
    if by_rule:
        return "unknown"
    # A call that the judge leaves undecided does not get through, so it is stopped; it is also counted apart.
    return "passed" if verdict == "passed" else "stopped"


def _count_truths(truths: Iterable[str]) -> dict[str, int]:
    """Count labelled calls by what people say of them."""
    counts = Counter(truths)
    return {name: counts[name] for name in ("allow", "stop", "open")}


# ---------------------------------------------------------------- estimating


_OTHER_STEP: Mapping[CallStep, CallStep] = {"passed": "stopped", "stopped": "passed"}
"""The opposite of a step."""

_METHOD = "double sampling, MOVER with Wilson and exact limits"

_SETTLED = tuple(_TRUTHS.values())
"""The truths of calls that people have settled; that of one which they have not is ``open``."""


class _Estimator:
    """Estimates shares of all calls from the labelled ones.

    Take the calls of a stratum that a decider let through: it is known how many they are, and the labelled ones among
    them are a random sample of them. So the wrong calls among those that it let through are estimated by themselves,
    and likewise among those that it stopped.

    ``no_limits_reason`` is why there are no limits, and so no estimates; empty where there are.
    """

    def __init__(self, run_calls: _CallsOfRun, draw: _CallDraw, level: float, no_limits_reason: str) -> None:
        self._calls, self._sample, self._draw, self._level = run_calls.calls, run_calls.sample, draw, level
        self._no_limits_reason = no_limits_reason
        self._has_open = any(call.truth == "open" for call in self._sample)

    def estimate_share(self, truth: str) -> Estimate:
        """Estimate the share of the calls that people would ``stop``, or ``allow``."""
        return self._estimate_share_with_limits(
            sum(call.truth in _SETTLED for call in self._sample),
            lambda open_truth: self._divide_total(
                self._estimate_total(truth, None, open_truth), sum(self._draw.sizes.values())
            ),
            is_census=_are_all_settled(self._calls),
        )

    def estimate_wrong(self, name: Decider, step: CallStep, truth: str) -> tuple[Estimate, Estimate]:
        """Estimate what a decider does wrongly: as a share of all calls, and of those of which people say ``truth``.

        For example, ``step`` is ``passed`` and ``truth`` is ``stop``. Both shares are of the calls of which it is known
        what the decider did. Each share is computed again as if every call that people did not settle were
        ``open_truth``; ``None`` leaves those calls out.
        """
        known = [call for call in self._sample if call.steps[name] != "unknown" and call.truth in _SETTLED]
        known_calls = sum(call.steps[name] != "unknown" for call in self._calls)
        truth_count = sum(call.truth == truth for call in known)

        def compute_share_of_all(open_truth: str | None) -> WeightedShare | Estimate | None:
            if not self._draw.knows_every_stratum:
                return self._weigh_strata(name, step, truth, open_truth, of_all=True)
            return self._divide_total(self._estimate_total(truth, (name, step), open_truth), known_calls)

        def compute_share_of_truth(open_truth: str | None) -> WeightedShare | Estimate | None:
            if not self._draw.knows_every_stratum:
                return self._weigh_strata(name, step, truth, open_truth, of_all=False)
            wrong = self._estimate_total(truth, (name, step), open_truth)
            right = self._estimate_total(truth, (name, _OTHER_STEP[step]), open_truth)
            return find_part_of_sum(wrong, right)

        share_of_all = self._estimate_share_with_limits(
            len(known), compute_share_of_all, is_census=self._are_settled(name, step)
        )
        if not truth_count:
            unknown = Estimate(value=None, of=0, note=self._no_limits_reason or "no labelled call is one of these")
            return share_of_all, unknown
        share_of_truth = self._estimate_share_with_limits(
            truth_count, compute_share_of_truth, is_census=self._is_truth_share_counted(name, step, truth)
        )
        return share_of_all, share_of_truth

    def _are_settled(self, name: Decider, step: CallStep) -> bool:
        """Return whether people settled every call with which a decider took this step."""
        return _are_all_settled(call for call in self._calls if call.steps[name] == step)

    def _is_truth_share_counted(self, name: Decider, step: CallStep, truth: str) -> bool:
        """Return whether the share of wrong calls among those of a truth is a count, and no estimate.

        It is one if people settled all calls of both steps, or all calls of one step and none of these has this truth:
        then the share is 0 or 1, however many calls of the other step have this truth.
        """
        is_settled = {each: self._are_settled(name, each) for each in (step, _OTHER_STEP[step])}
        steps_with_truth = {call.steps[name] for call in self._sample if call.truth == truth}
        return all(is_settled.values()) or any(is_settled[each] and each not in steps_with_truth for each in is_settled)

    def _estimate_share_with_limits(
        self,
        of: int,
        compute_share: Callable[[str | None], WeightedShare | Estimate | None],
        *,
        is_census: bool,
    ) -> Estimate:
        """Estimate a share with limits that hold also if all calls that people did not settle are bad, or all are good.

        ``compute_share`` computes it with this truth for the calls that people did not settle; ``None`` leaves them
        out. ``of`` is the number of labelled calls that it rests on. ``is_census`` says that people settled every call
        that the share depends on, so that it is counted. That follows from the labels, and never from limits that are
        equal: limits of a sample may be equal by rounding.
        """
        if self._no_limits_reason or not of:
            return Estimate(value=None, of=of, note=self._no_limits_reason or "no labelled call is one of these")
        settled_share = compute_share(None)
        if settled_share is None or settled_share.value is None:
            return Estimate(value=None, of=of, note="no labelled call is one of these")
        shares = [settled_share]
        shares += [
            share
            for share in (compute_share(truth) for truth in (_SETTLED if self._has_open else ()))
            if share is not None
        ]
        low = min((share.low for share in shares if share.low is not None), default=None)
        high = max((share.high for share in shares if share.high is not None), default=None)
        method = "counted" if is_census else _METHOD
        if isinstance(settled_share, Estimate):
            # An estimate over the strata of another run (``_weigh_strata``) knows by itself whether it is a count.
            method = settled_share.method
        # Limits for every look are computed at a higher level, so that they hold at this one at all looks together.
        return Estimate(value=settled_share.value, of=of, low=low, high=high, level=LEVEL, method=method)

    def _estimate_total(
        self, truth: str, decider_step: tuple[Decider, CallStep] | None, open_truth: str | None
    ) -> WeightedShare:
        """Estimate the number of calls of which people say ``truth``, with its limits.

        With ``decider_step``, only the calls with which that decider took that step are counted.
        """
        import numpy as np

        def is_counted(call: _Call) -> bool:
            return decider_step is None or call.steps[decider_step[0]] == decider_step[1]

        sizes = (
            self._draw.sizes
            if decider_step is None
            else Counter(call.stratum for call in self._calls if is_counted(call))
        )
        stratum_indexes = {stratum: index for index, stratum in enumerate(self._draw.sizes)}
        cases = np.asarray([sizes.get(stratum, 0) for stratum in stratum_indexes], dtype=float)
        with_truth, labelled = np.zeros(len(stratum_indexes)), np.zeros(len(stratum_indexes))
        for call in filter(is_counted, self._sample):
            assumed_truth = open_truth if call.truth == "open" else call.truth
            labelled[stratum_indexes[call.stratum]] += bool(assumed_truth)
            with_truth[stratum_indexes[call.stratum]] += assumed_truth == truth
        has_cases = cases > 0
        if not has_cases.any():
            return WeightedShare(value=0.0, low=0.0, high=0.0)
        rates = compute_double_sampling(with_truth[has_cases], labelled[has_cases], cases[has_cases], level=self._level)
        value, low, high = (float(rate) * float(cases.sum()) for rate in rates)
        return WeightedShare(value=value, low=low, high=high)

    def _divide_total(self, total: WeightedShare, number: int) -> WeightedShare | None:
        """Divide a total and its limits by a number of calls; ``None`` where there are no calls."""
        if not number:
            return None
        return WeightedShare(value=total.value / number, low=total.low / number, high=total.high / number)

    def _weigh_strata(
        self, name: Decider, step: CallStep, truth: str, open_truth: str | None, *, of_all: bool
    ) -> Estimate | None:
        """Estimate a decider's share of wrong calls where the strata of unlabelled calls are unknown.

        The plan was drawn for another run, so that only the sizes of its strata are known, and not with how many calls
        of each stratum the decider took this step. The share is of all calls (``of_all``), or of those of which people
        say ``truth``.
        """
        import numpy as np

        stratum_indexes = {stratum: index for index, stratum in enumerate(self._draw.sizes)}
        # Labelled calls of each stratum: those that are wrong, those that the share is of, and all.
        table = np.zeros((3, len(stratum_indexes)))
        for call in self._sample:
            assumed_truth = open_truth if call.truth == "open" else call.truth
            if assumed_truth:
                is_in_whole = call.steps[name] != "unknown" and (of_all or assumed_truth == truth)
                is_wrong = is_in_whole and call.steps[name] == step and assumed_truth == truth
                table[:, stratum_indexes[call.stratum]] += (is_wrong, is_in_whole, 1)
        wrong, in_whole, labelled = table
        if not labelled.all():
            return None
        cases = np.asarray(list(self._draw.sizes.values()), dtype=float)
        return estimate_weighted_share(wrong, in_whole, labelled, cases, level=self._level)


def _are_all_settled(calls: Iterable[_Call]) -> bool:
    """Return whether people settled each of these calls."""
    return all(call.truth in _SETTLED for call in calls)


def _make_deciders(run_calls: _CallsOfRun, estimator: _Estimator) -> Iterator[DeciderRates]:
    """Yield the rates of each decider of which it is known what it did with some call."""
    for name in DECIDERS:
        step_counts = Counter(call.steps[name] for call in run_calls.calls)
        if not (step_counts["passed"] or step_counts["stopped"]):
            continue
        wrong_passes, of_bad = estimator.estimate_wrong(name, "passed", "stop")
        wrong_stops, of_good = estimator.estimate_wrong(name, "stopped", "allow")
        yield DeciderRates(
            name=name,
            calls={step: step_counts[step] for step in _STEPS},
            undecided=sum(call.undecided for call in run_calls.calls) if name == "judge" else 0,
            labelled={
                step: _count_truths(call.truth for call in run_calls.sample if call.steps[name] == step)
                for step in _STEPS
            },
            wrong_passes=wrong_passes,
            wrong_passes_of_bad=of_bad,
            wrong_stops=wrong_stops,
            wrong_stops_of_good=of_good,
        )
