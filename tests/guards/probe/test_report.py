"""What the seats of a chain come to for one probe, and what many probes come to together."""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import replace
from datetime import UTC
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge import Judge, ProbeReport, SemanticProbe, UsageError, evaluate_probes
from adjudge.guards import ProbeResult, ProbeThresholds, evaluate_probe_sync, evaluate_probes_sync
from kit.judges import Plain, complaint, names
from kit.loops import run_virtual
from kit.probes import PROBE, Breaks, by_output, chain, make, many, probed, probed_with, says, violated

# ---------------------------------------------------------------- a chain: every seat that answered


def test_the_similarity_is_that_of_the_deciding_seat():
    """Fallback: the first that decides; consensus: the lowest when all pass, else the one that failed."""
    assert probed(chain(Judge(Plain("?"), reask=0), says(0.8), says(1.0), strategy="fallback")).similarity == 0.8
    assert probed(chain(says(1.0), says(0.8), says(0.9))).similarity == 0.8
    assert probed(chain(says(1.0), says(0.3))).drift == "high"


def test_a_violation_that_one_seat_names_counts():
    """Two of three pass the output; the third saw a promise broken, and that is not outvoted."""
    seats = says(1.0, name="a"), violated(0.9, "It deletes.", name="b"), says(0.96, name="c")
    result = probed(chain(*seats, strategy="majority", stop_early=False))

    assert result.chain_result.outcome == "passed"
    assert (result.outcome, result.contract_violated, result.violations) == ("failed", True, ("It deletes.",))
    assert result.decided_by == "judge"
    assert names(result.detail, "contract is violated", "b found")
    assert result.drift == "none"


def test_violations_of_several_seats_are_one_list():
    """Each once, in the order of the seats, from any depth."""
    inner = chain(violated(1.0, "b", "c", name="y"), violated(1.0, "d", name="z"), stop_early=False)
    result = probed(chain(violated(1.0, "a", "b", name="x"), inner, stop_early=False))

    assert result.violations == ("a", "b", "c", "d")
    assert "as x, y, z found" in result.detail


def test_a_violation_counts_where_the_chain_is_undecided():
    """One of three is silent and one passes: nobody measured anything, and the promise is broken all the same."""
    silent = Judge(Plain("?", name="silent"), reask=0)
    result = probed(chain(says(1.0), silent, violated(0.2, "It writes."), strategy="majority"))

    assert result.chain_result.outcome == "undecided"
    assert (result.outcome, result.similarity, result.violations) == ("failed", None, ("It writes.",))


def test_a_silent_seat_is_not_dropped():
    """Consensus with a judge that could not answer is undecided, and has no similarity."""
    result = probed(chain(says(1.0), Judge(Plain("?"), reask=0)))

    assert (result.outcome, result.undecided_because, result.similarity) == ("undecided", "unparseable", None)


def test_fail_open_passes_by_policy_and_measures_nothing():
    """The result says so, and no report that holds it is stable."""
    judge = chain(Judge(Plain("?"), reask=0), strategy="fallback", fail_open=True)
    result = probed(judge)
    report = ProbeReport(results=(result, probed(says(1.0))))

    assert (result.outcome, result.decided_by, result.similarity) == ("passed", "policy", None)
    assert result.fallback_triggered
    assert (report.outcome, report.mean, report.stable) == ("passed", 1.0, False)


def test_fail_open_never_opens_over_a_violation():
    """A seat that saw one has failed."""
    result = probed(chain(violated(1.0, "a"), Judge(Plain("?"), reask=0), fail_open=True, strategy="majority"))

    assert (result.outcome, result.contract_violated) == ("failed", True)


def test_an_unsure_cascade_keeps_the_violation():
    """The last seat is too unsure to decide; what it named stands."""
    judge = chain(violated(1.0, "a"), violated(1.0, "b"), strategy="cascade", escalate_below=0.9, abstain_below=0.9)
    result = probed(judge)

    assert result.chain_result.undecided_because == "unsure"
    assert (result.outcome, result.violations) == ("failed", ("a", "b"))


# ---------------------------------------------------------------- many


def test_results_are_in_the_order_of_the_probes():
    """Whoever finishes first."""

    async def waits(value: Any) -> str:
        await asyncio.sleep(value)
        return str(value)

    probes = [SemanticProbe(name=str(seconds), input=seconds, expected="x") for seconds in (3, 1, 2)]
    seen: list[str] = []
    report = run_virtual(evaluate_probes(probes, says(1.0), tool=waits, on_result=lambda item: seen.append(item.name)))

    assert [item.name for item in report.results] == ["3", "1", "2"]
    assert seen == ["1", "2", "3"]


def test_a_slow_probe_holds_up_no_other():
    """The window slides: while one takes long, the others go on beside it, and never more than asked for at once."""
    at_once: list[int] = []
    running: set[Any] = set()
    finished: list[Any] = []

    async def waits(value: Any) -> str:
        running.add(value)
        at_once.append(len(running))
        await asyncio.sleep(100 if value == 0 else 1)
        running.remove(value)
        finished.append(value)
        return "x"

    probes = [SemanticProbe(name=str(number), input=number, expected="x") for number in range(7)]
    run_virtual(evaluate_probes(probes, says(1.0), tool=waits, concurrency=2, tool_timeout=None))

    assert finished == [1, 2, 3, 4, 5, 6, 0]
    assert max(at_once) == 2


@pytest.mark.parametrize("concurrency", [0, -1, math.nan, 1.0, True, "3", None, math.inf])
def test_concurrency_is_a_whole_number_of_at_least_1(concurrency: Any):
    """Anything else is an error; it neither runs for ever nor evaluates nothing and looks stable."""
    message = complaint(evaluate_probes, [(PROBE, "x")], says(1.0), concurrency=concurrency)

    assert names(message, "concurrency", repr(concurrency), "at least 1")


def test_one_probe_that_fails_stops_no_other():
    """It is its own undecided result and stays out of the mean; the report is then not stable."""
    report = many(by_output(a=0.95, b=OSError("boom"), c=0.95), "a", "b", "c")

    assert [item.similarity for item in report.results] == [0.95, None, 0.95]
    assert (report.mean, report.drift, report.stable, report.outcome) == (0.95, "none", False, "undecided")


def test_a_cancellation_passes_through():
    """Whoever stops waiting stops all of it."""
    started, stopped = [], []

    async def waits(value: Any) -> str:
        started.append(value)
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            stopped.append(value)
            raise
        return "x"

    async def leave() -> None:
        async with asyncio.timeout(1):
            await evaluate_probes([PROBE] * 5, says(1.0), tool=waits, concurrency=2)

    with pytest.raises(TimeoutError):
        run_virtual(leave())
    assert (len(started), len(stopped)) == (2, 2)


def test_a_probe_whose_worker_is_cancelled_from_inside_is_undecided():
    """An output that cancels the task that looks at it takes its own probe along and no verdict from another."""

    class Poison:
        @property
        def output(self) -> str:
            raise asyncio.CancelledError

    report = many(says(1.0), "a", Poison(), "b", concurrency=1)

    assert [item.outcome for item in report.results] == ["passed", "undecided", "passed"]
    assert not report.stable


def test_no_probes_are_no_evidence():
    """Drift unknown, not stable, undecided."""
    report = many(says(1.0))

    assert (report.results, report.mean, report.drift, report.stable) == ((), None, None, False)
    assert report.outcome == "undecided"
    assert not report


def test_a_violation_makes_a_report_unstable():
    """However similar everything is."""
    report = many(violated(1.0, "a"), "x", "y")

    assert (report.mean, report.drift, report.violation_count) == (1.0, "none", 2)
    assert (report.stable, report.outcome) == (False, "failed")


def test_the_thresholds_hold_for_the_mean_too():
    """A mean of 0.85 is low drift by default and medium by stricter thresholds."""
    stricter = ProbeThresholds(low=0.9)

    assert many(by_output(a=0.95, b=0.75), "a", "b").drift == "low"
    assert many(by_output(a=0.95, b=0.75), "a", "b", thresholds=stricter).drift == "medium"
    assert not many(by_output(a=0.95, b=0.75), "a", "b", thresholds=stricter).stable


def test_the_mean_can_hide_a_probe_and_the_outcome_cannot():
    """One of ten says something else: the whole drifted little, and a probe failed."""
    outputs = dict.fromkeys("abcdefghi", 1.0) | {"j": 0.0}
    report = many(by_output(**outputs), *outputs)

    assert (report.drift, report.stable, report.outcome) == ("low", True, "failed")


def test_a_tool_that_broke_makes_a_report_fail():
    """It is in no mean, and hides nothing."""

    def sometimes(value: Any) -> str:
        if value == 1:
            raise OSError("gone")
        return "x"

    probes = [SemanticProbe(name=str(number), input=number, expected="x") for number in range(3)]
    report = asyncio.run(evaluate_probes(probes, says(1.0), tool=sometimes))

    assert (report.mean, report.stable, report.outcome) == (1.0, False, "failed")
    assert names(report.explain(), "not stable", "3 probes", "2 passed, 1 failed, 0 undecided", "1.00", "drift none")


RESULTS = st.lists(
    st.one_of(
        st.tuples(st.floats(0, 1), st.booleans()).map(lambda said: make(*said)),
        st.sampled_from(["error", "timeout", "tampering"]).map(lambda because: make(None, because=because)),
        st.just("policy").map(lambda by: make(None, by=by)),
    ),
    max_size=8,
)
THRESHOLDS = st.lists(st.floats(0, 1), min_size=3, max_size=3).map(
    lambda found: ProbeThresholds(none=found[0], low=max(found[1:]), medium=min(found[1:]))
)


@given(results=RESULTS, thresholds=THRESHOLDS)
def test_a_stable_report_is_measured_evidence(results: list[ProbeResult], thresholds: ProbeThresholds):
    """Every probe measured, no violation, and the mean of exactly the measured ones above the thresholds."""
    report = ProbeReport(results=tuple(results), thresholds=thresholds)
    measured = [item.similarity for item in results if item.similarity is not None]

    if measured:
        assert min(measured) - 1e-9 <= report.mean <= max(measured) + 1e-9
        assert report.drift == thresholds.find_drift(report.mean)
    else:
        assert (report.mean, report.drift, report.stable) == (None, None, False)
    if report.stable:
        assert len(measured) == len(results) > 0
        assert not any(item.contract_violated for item in results)
        assert report.mean >= thresholds.passing - 1e-9
    if report.passed:
        assert results
        assert all(item.passed for item in results)


@given(results=RESULTS, extra=RESULTS, data=st.data())
def test_the_order_changes_nothing_and_silence_never_helps(
    results: list[ProbeResult], extra: list[ProbeResult], data: Any
):
    """A permuted report says the same; with one more undecided or violated probe it is never stable, never passed."""
    report = ProbeReport(results=tuple(results))
    permuted = ProbeReport(results=tuple(data.draw(st.permutations(results))))

    assert (report.mean, report.stable, report.outcome) == (permuted.mean, permuted.stable, permuted.outcome)
    for worse in (make(None, because="error"), make(1.0, violated=True)):
        spoiled = ProbeReport(results=(*results, *extra, worse))
        assert not spoiled.stable
        assert not spoiled.passed


# ---------------------------------------------------------------- values, events, doors


@pytest.mark.parametrize(
    "wrong",
    [
        {"outcome": "passed", "contract_violated": True},
        {"outcome": "passed", "similarity": 0.6, "drift": "medium"},
        {"outcome": "undecided"},
        {"outcome": "passed", "undecided_because": "error"},
        {"outcome": "failed", "similarity": 0.5},
        {"outcome": "failed", "drift": "high"},
        {"outcome": "failed", "similarity": math.nan, "drift": "high"},
    ],
)
def test_a_result_that_contradicts_itself_cannot_be_made(wrong: dict[str, Any]):
    """Not by a strategy, a policy or a mistake of ours."""
    with pytest.raises(UsageError):
        ProbeResult(probe=PROBE, **wrong)


def test_an_event_tells_of_every_probe_that_asked():
    """With the digest of the output, and never the output; a tool that broke asked nobody."""
    events: list[Any] = []
    result = probed(says(0.2), on_event=events.append)
    probed_with(Breaks().raises, on_event=events.append)
    (event,) = events

    assert (event.kind, event.guard, event.passed) == ("probe", "days", False)
    assert (event.allowed_count, event.rejected_count, event.decided_by) == (0, 1, "judge")
    assert event.subject == result.subject
    assert event.at.tzinfo is UTC
    assert "two weeks" not in json.dumps(event.to_dict())


def test_a_hook_that_breaks_breaks_nothing():
    """What it raises is logged."""

    async def breaks(event: Any) -> None:
        raise OSError("full")

    assert probed(says(1.0), on_event=breaks).passed
    assert many(says(1.0), "x", on_event=breaks, on_result=breaks).passed


def test_a_report_is_plain_data():
    """JSON can hold it; what was compared is not in it."""
    report = many(by_output(secret=0.9), "secret")
    data = json.loads(json.dumps(report.to_dict()))
    (entry,) = data["results"]

    assert (data["schema"], entry["schema"]) == ("adjudge/probe-report/1", "adjudge/probe-result/1")
    assert (data["mean"], data["drift"], data["stable"], data["outcome"]) == (0.9, "low", True, "passed")
    assert data["thresholds"] == {"none": 0.95, "low": 0.75, "medium": 0.5}
    assert (entry["probe"], entry["similarity"], entry["subject"]) == ("p0", 0.9, report.results[0].subject)
    assert entry["chain_result"]["value"] == {"similarity": 0.9, "contract_violated": False, "violations": []}
    assert "secret" not in json.dumps(data)
    assert "14 days" not in json.dumps(data)


def test_there_is_a_door_without_an_event_loop():
    """It works inside a running loop too."""

    async def inside() -> ProbeReport:
        return evaluate_probes_sync([(PROBE, "x")], says(1.0))

    assert evaluate_probe_sync(PROBE, says(1.0), actual="x").passed
    assert asyncio.run(inside()).stable


def test_what_is_shown_has_no_control_characters():
    """Names, violations and reasons are other people's."""
    probe = replace(PROBE, name="\x1b[31mred\u202e")
    result = probed(violated(1.0, "\x1b]0;title\x07\nnew line"), probe=probe)

    for text in (repr(result), result.explain(), repr(ProbeReport(results=(result,)))):
        assert text.isprintable()
