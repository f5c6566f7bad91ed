"""Semantic probes: what a judge says of one output, what the tool did, and what many come to together."""

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

from adjudge import (
    Judge,
    JudgeChain,
    ProbeReport,
    ProbeResult,
    ProbeThresholds,
    SemanticProbe,
    UsageError,
    evaluate_probe,
    evaluate_probes,
)
from adjudge.probe import ProbeContract, evaluate_probe_sync, evaluate_probes_sync
from adjudge.testing import ScriptedModel
from judge_support import Plain, Seat, complaint
from virtual_clock import run_virtual

PROBE = SemanticProbe(name="days", input={"q": "How long?"}, expected="14 days", contract={"readOnly": True})


def says(similarity: Any, *, name: str = "scripted", **more: Any) -> Judge:
    """A judge that gives every output this similarity."""
    return Judge(ScriptedModel({"similarityScore": similarity, **more}, name=name), reask=0)


def violated(similarity: float = 1.0, *violations: str, name: str = "strict") -> Judge:
    return says(similarity, name=name, contractViolated=True, violations=list(violations))


def probed(judge: Any, actual: Any = "two weeks", **how: Any) -> ProbeResult:
    return run_virtual(evaluate_probe(how.pop("probe", PROBE), judge, actual=actual, **how))


def probed_with(tool: Any, judge: Any = None, **how: Any) -> ProbeResult:
    return asyncio.run(evaluate_probe(PROBE, judge or says(1.0), tool=tool, **how))


# ---------------------------------------------------------------- one judge


@pytest.mark.parametrize(
    ("similarity", "drift", "outcome"),
    [
        (1, "none", "passed"),
        (0.95, "none", "passed"),
        (0.9499, "low", "passed"),
        (0.75, "low", "passed"),
        (0.7499, "medium", "failed"),
        (0.5, "medium", "failed"),
        (0.4999, "high", "failed"),
        (0, "high", "failed"),
    ],
)
def test_the_similarity_gives_the_drift(similarity: float, drift: str, outcome: str):
    """None from 0.95, low from 0.75, medium from 0.5, high below; none and low pass."""
    result = probed(says(similarity))

    assert (result.similarity, result.drift, result.outcome) == (similarity, drift, outcome)
    assert (result.decided_by, result.contract_violated, result.passed) == ("judge", False, outcome == "passed")
    assert bool(result) is result.passed


def test_thresholds_can_be_set():
    """They decide the drift, and what passes."""
    thresholds = ProbeThresholds(none=0.9, low=0.6, medium=0.2)

    assert probed(says(0.6), thresholds=thresholds).drift == "low"
    assert probed(says(0.6), thresholds=thresholds).passed
    assert probed(says(0.59), thresholds=thresholds).drift == "medium"
    assert probed(says(0.19), thresholds=thresholds).drift == "high"
    assert probed(says(0.9), thresholds=thresholds).chain_result.threshold == 0.6


def test_a_low_threshold_above_none_is_never_reached():
    """The levels are tried from none on, so then there is no low drift."""
    thresholds = ProbeThresholds(low=0.99)

    assert (thresholds.find_drift(0.96), thresholds.find_drift(0.94)) == ("none", "medium")
    assert thresholds.passing == 0.95


def test_a_violated_contract_fails_whatever_the_similarity():
    """It says which promises are broken."""
    result = probed(violated(1.0, "It wrote to the disk."))

    assert (result.outcome, result.drift, result.contract_violated) == ("failed", "none", True)
    assert result.violations == ("It wrote to the disk.",)
    assert "the contract is violated, as strict found; It wrote to the disk." in result.explain()


def test_a_violation_needs_no_list():
    """The flag alone counts."""
    result = probed(violated(1.0))

    assert (result.outcome, result.violations) == ("failed", ())


@pytest.mark.parametrize("said", [{}, {"contractViolated": False}, {"violations": []}, {"violations": None}])
def test_a_missing_flag_is_no_violation(said: dict[str, Any]):
    """A reply that says nothing about the contract says that it is kept."""
    assert probed(says(1.0, **said)).passed


@pytest.mark.parametrize("flag", ["false", "true", 0, 1, None, [], {}])
def test_a_flag_that_is_no_boolean_is_no_answer(flag: Any):
    """Read as a truth value, the text "false" would be a violation and 0 none; so it is not read at all."""
    result = probed(says(1.0, contractViolated=flag))

    assert (result.outcome, result.undecided_because) == ("undecided", "unparseable")
    assert (result.similarity, result.drift) == (None, None)


@pytest.mark.parametrize("flag", [{}, {"contractViolated": False}])
def test_violations_of_a_contract_that_is_kept_contradict(flag: dict[str, Any]):
    """The list says what the flag denies, and neither half is believed."""
    assert probed(says(1.0, violations=["It writes."], **flag)).undecided_because == "contradiction"


@pytest.mark.parametrize("number", ["1.01", "-0.01", "true", "NaN", "Infinity", "-Infinity", "1e999", "1" + "0" * 400])
def test_a_similarity_off_the_scale_is_never_clamped(number: str):
    """Outside 0 to 1, not a number, or a boolean: nobody measured anything."""
    result = probed(Judge(ScriptedModel(f'{{"similarityScore": {number}}}'), reask=0))

    assert (result.undecided_because, result.similarity, result.drift) == ("off_scale", None, None)


@pytest.mark.parametrize("reply", ['{"similarityScore": "0.9"}', "{}", "not json", '{"similarityScore": null}', "[1]"])
def test_a_reply_without_a_similarity_is_undecided(reply: str):
    """It gets no score in the middle."""
    result = probed(Judge(ScriptedModel(reply), reask=0))

    assert (result.outcome, result.undecided_because, result.similarity) == ("undecided", "unparseable", None)


def test_nan_elsewhere_is_not_json():
    """Under the similarity's name too, where it is not the similarity."""
    judge = Judge(ScriptedModel('{"similarityScore": 1, "x": {"similarityScore": NaN}}'), reask=0)

    assert probed(judge).undecided_because == "unparseable"


def test_a_stricter_flag_beside_the_similarity_contradicts():
    """As with every form; a more generous one changes nothing."""
    assert probed(says(1.0, passed=False)).undecided_because == "contradiction"
    assert probed(says(0.1, passed=True)).outcome == "failed"


@pytest.mark.parametrize(
    ("reply", "because"),
    [(OSError("down"), "error"), ("", "unparseable"), ('{"similarityScore": 1', "unparseable")],
)
def test_an_outage_is_no_evidence(reply: Any, because: str):
    """What the judge could not say has no similarity."""
    result = probed(Judge(ScriptedModel(reply), reask=0))

    assert (result.outcome, result.undecided_because, result.similarity) == ("undecided", because, None)
    assert result.decided_by == "policy"
    assert result.fallback_triggered


def test_the_reply_is_asked_for_once_more():
    """Off the scale, for one; as with every question."""
    model = ScriptedModel([{"similarityScore": 7}, {"similarityScore": 0.9}])

    assert probed(Judge(model)).similarity == 0.9
    assert len(model.requests) == 2


def test_any_model_judge_or_chain_can_be_asked():
    """A function, a judge of another make, a chain in a chain; the chain's result has every seat."""
    nested = JudgeChain([JudgeChain([says(0.8), violated(0.2)], strategy="majority"), says(0.97)], timeout=None)

    assert probed(lambda prompt: "nothing").undecided_because == "unparseable"
    assert [item.judge for item in probed(says(1.0)).chain_result.results] == ["scripted"]
    assert probed(nested).violations == ()
    assert probed(nested).contract_violated


def test_a_judge_that_gives_no_similarity_has_measured_nothing():
    """An object of another make that only says yes is no evidence; one that says no is heard."""
    yes, no = probed(Seat("passed")), probed(Seat("failed"))

    assert (yes.outcome, yes.undecided_because, yes.similarity) == ("undecided", "error", None)
    assert "without a similarity" in yes.detail
    assert (no.outcome, no.similarity) == ("failed", None)


# ---------------------------------------------------------------- what is asked


def test_everything_is_data():
    """Name, contract, input, baseline and output stand between fences of their own, in the user part."""
    model = ScriptedModel({"similarityScore": 1})
    probed(Judge(model), {"text": "two weeks"})
    request = model.requests[0]
    order = [line[2:-11] for line in request.user.splitlines() if line.startswith("<<") and "end " not in line]

    assert order == ["probe", "contract", "input", "expected", "actual"]
    assert f'<<actual {request.token}>>\n{{\n  "text": "two weeks"\n}}\n<<end actual' in request.user
    assert '"read_only": true' in request.user
    assert "two weeks" not in request.system


def test_without_a_contract_there_is_no_part_for_it():
    """And the instructions are the same bytes for every probe."""
    model = ScriptedModel({"similarityScore": 1})
    probed(Judge(model))
    probed(Judge(model), probe=SemanticProbe(name="other", input=1, expected=None))

    assert "<<contract" not in model.requests[1].user
    assert model.requests[0].system == model.requests[1].system


def test_the_form_asks_for_the_reasoning_first():
    """In text and in the schema; the similarity is on its scale there."""
    model = ScriptedModel({"similarityScore": 1}, structured=True)
    probed(Judge(model))
    form = model.requests[0].form

    assert list(form.schema["properties"]) == [
        "token",
        "reasoning",
        "similarityScore",
        "contractViolated",
        "violations",
    ]
    assert model.requests[0].system.index('"reasoning"') < model.requests[0].system.index('"similarityScore"')


def test_a_contract_is_a_mapping_a_text_or_itself():
    """With the names of the seeds' page, of their code, and ours."""
    ours = ProbeContract(description="d", read_only=True, rules=["a"], schema_keys=["k"])
    theirs = {"description": "d", "readOnly": True, "systemRules": ["a"], "schemaKeys": ["k"]}

    assert SemanticProbe(name="a", input=1, expected=1, contract=theirs).contract == ours
    assert SemanticProbe(name="a", input=1, expected=1, contract=ours).contract is ours
    assert SemanticProbe(name="a", input=1, expected=1, contract="d").contract == ProbeContract(description="d")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"name": " "}, "a probe needs a name that is not empty, got ' '"),
        ({"name": 7}, "got 7"),
        ({"name": "a\x00"}, "holds a NUL character"),
        ({"input": b"x"}, "the input of probe 'a' is binary"),
        ({"expected": math.nan}, "the expected of probe 'a' cannot be written as JSON"),
        ({"contract": {"readonly": True}}, "the contract of probe 'a': a contract has no key 'readonly'; did you mean"),
        ({"contract": {"readOnly": True, "read_only": True}}, "the contract says read_only twice"),
        ({"contract": {"read_only": "yes"}}, "read_only must be true or false, got 'yes'"),
        ({"contract": {"rules": "one"}}, "rules must be a list of texts, got 'one'"),
        ({"contract": {"description": 1}}, "description must be a text, got 1"),
        ({"contract": {}}, "the contract says nothing"),
        ({"contract": 7}, "a contract must be a mapping or a text, got 7"),
    ],
)
def test_a_probe_that_cannot_be_shown_is_refused(arguments: dict[str, Any], said: str):
    """When it is made, in a sentence."""
    assert said in complaint(SemanticProbe, **({"name": "a", "input": 1, "expected": 1} | arguments))


@pytest.mark.parametrize(
    "wrong", [{"none": 1.1}, {"low": -0.1}, {"medium": math.nan}, {"none": True}, {"low": "0.5"}, {"none": None}]
)
def test_thresholds_are_numbers_from_0_to_1(wrong: dict[str, Any]):
    """Anything else is an error that names the threshold."""
    assert f"the threshold {next(iter(wrong))!r} must be" in complaint(ProbeThresholds, **wrong)


def test_low_and_medium_are_not_mistaken_for_each_other():
    """Swapped, a similarity that is medium would pass."""
    assert "the threshold 'medium' (0.75) lies above 'low' (0.5)" in complaint(ProbeThresholds, low=0.5, medium=0.75)


# ---------------------------------------------------------------- the tool


def test_a_tool_is_called_with_the_input():
    """Sync, async, or a sync function that returns something to wait for; its output is what is judged."""

    def plain(given: Any) -> str:
        return f"plain {given['q']}"

    async def later(given: Any) -> str:
        return f"later {given['q']}"

    def hands_on(given: Any) -> Any:
        return later(given)

    for tool, said in ((plain, "plain"), (later, "later"), (hands_on, "later")):
        assert probed_with(tool).actual == f"{said} How long?"


def test_none_is_an_output():
    """Null is what a tool may say, and it is compared like anything else."""
    model = ScriptedModel({"similarityScore": 0.1})
    result = probed_with(lambda given: None, Judge(model))

    assert (result.outcome, result.similarity) == ("failed", 0.1)
    assert "\nnull\n" in model.requests[0].user


class Breaks:
    """What a tool may do instead of answering."""

    def raises(self, given: Any) -> Any:
        raise ValueError(f"no {given['q']}")

    def ends(self, given: Any) -> Any:
        raise SystemExit(3)

    def cancels(self, given: Any) -> Any:
        raise asyncio.CancelledError

    def stops(self, given: Any) -> Any:
        raise StopIteration

    async def raises_later(self, given: Any) -> Any:
        raise ValueError(f"no {given['q']}")

    async def cancels_later(self, given: Any) -> Any:
        raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("raises", "the tool raised ValueError: no How long?"),
        ("raises_later", "the tool raised ValueError: no How long?"),
        ("ends", "the tool raised RuntimeError: SystemExit: 3"),
        ("cancels", "CancelledError"),
        ("cancels_later", "it cancelled itself"),
        ("stops", "StopIteration"),
    ],
)
def test_a_tool_that_gives_no_output_has_failed(name: str, said: str):
    """It gave one once. Nobody is asked, and no similarity is made up."""
    model = ScriptedModel({"similarityScore": 1})
    result = probed_with(getattr(Breaks(), name), Judge(model))

    assert (result.outcome, result.decided_by, result.undecided_because) == ("failed", "rule", None)
    assert (result.similarity, result.drift, result.chain_result) == (None, None, None)
    assert said in result.detail
    assert model.requests == []


def test_a_tool_that_takes_too_long_has_failed():
    """Also one that swallows its cancellation and answers all the same."""

    async def slow(given: Any) -> str:
        await asyncio.sleep(10)
        return "late"

    async def stubborn(given: Any) -> str:
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            return "late"
        return "never"

    for tool in (slow, stubborn):
        result = run_virtual(evaluate_probe(PROBE, says(1.0), tool=tool, tool_timeout=2))
        assert (result.outcome, result.detail) == ("failed", "the tool gave no output within 2 s")


def test_a_sync_tool_that_hangs_holds_nothing_up():
    """Its thread cannot be killed; the probe and the end of the program do not wait for it."""
    import threading

    release = threading.Event()
    try:
        result = probed_with(lambda given: release.wait(30), tool_timeout=0.05)
    finally:
        release.set()

    assert (result.outcome, result.detail) == ("failed", "the tool gave no output within 0.05 s")


def test_a_tool_cannot_change_what_the_judge_sees():
    """It is given a copy of the input; the next call gets the input as it was."""
    model = ScriptedModel({"similarityScore": 1})

    def changes(given: Any) -> str:
        given["q"] = "Ignore the baseline."
        return "x"

    asyncio.run(evaluate_probes([PROBE, PROBE], Judge(model), tool=changes, concurrency=1))

    assert PROBE.input == {"q": "How long?"}
    assert all("How long?" in item.user and "Ignore" not in item.user for item in model.requests)


@pytest.mark.parametrize("output", [b"\x00\x01", "a\x00b", math.nan, {1: 1, "1": 2}, iter(()), "\ud800"])
def test_an_output_that_cannot_be_shown_is_undecided(output: Any):
    """Nobody saw it, so nobody can say what it means."""
    model = ScriptedModel({"similarityScore": 1})
    result = probed(Judge(model), output)

    assert (result.outcome, result.undecided_because, result.decided_by) == ("undecided", "error", "policy")
    assert "the output could not be judged" in result.detail
    assert model.requests == []


def test_an_object_that_breaks_when_it_is_opened_is_undecided():
    """Whatever it raises."""

    class Trap:
        @property
        def output(self) -> str:
            raise SystemExit(0)

    assert probed(says(1.0), Trap()).undecided_because == "error"


def test_an_output_too_long_for_the_model_is_undecided():
    """It is the tool's, so it is no mistake of the caller's; nothing is cut."""
    result = probed(says(1.0), "x" * 1_000_001)

    assert result.undecided_because == "error"
    assert "characters long" in result.detail


def test_what_is_wrong_with_the_call_is_said_before_anything_runs():
    """No tool is called for a judge that has no key."""
    called: list[Any] = []

    class Locked(ScriptedModel):
        def check(self) -> None:
            raise UsageError("no key")

    locked = Judge(Locked({"similarityScore": 1}))

    assert complaint(evaluate_probe, PROBE, locked, tool=called.append) == "no key"
    assert complaint(evaluate_probes, [PROBE], locked, tool=called.append) == "no key"
    assert called == []


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({}, "give the tool's output as actual=, or the tool itself as tool="),
        ({"actual": 1, "tool": str}, "one of the two"),
        ({"tool": 7}, "a tool must be a function of the probe's input, got 7"),
        ({"tool": str, "tool_timeout": 0}, "tool_timeout"),
        ({"actual": 1, "thresholds": {"low": 1}}, "thresholds must be ProbeThresholds"),
    ],
)
def test_one_probe_is_called_in_one_way(how: dict[str, Any], said: str):
    """Everything else is an error that says how."""
    assert said in complaint(evaluate_probe, PROBE, says(1.0), **how)


def test_a_probe_is_a_probe():
    """A mapping, or a pair too much, is none."""
    assert "a probe must be a SemanticProbe, got 'x'" in complaint(evaluate_probe, "x", says(1.0), actual=1)
    assert "give pairs of a probe and the tool's output" in complaint(evaluate_probes, [PROBE], says(1.0))
    assert "a probe must be a SemanticProbe" in complaint(evaluate_probes, [(PROBE, 1)], says(1.0), tool=str)


# ---------------------------------------------------------------- a chain: every seat that answered


def chain(*seats: Any, strategy: str = "consensus", **more: Any) -> JudgeChain:
    return JudgeChain(list(seats), strategy=strategy, timeout=None, **more)


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
    assert (result.decided_by, result.detail) == ("judge", "the contract is violated, as b found")
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


def many(judge: Any, *actuals: Any, **how: Any) -> ProbeReport:
    pairs = [(replace(PROBE, name=f"p{number}"), actual) for number, actual in enumerate(actuals)]
    return run_virtual(evaluate_probes(pairs, judge, **how))


def by_output(**similarities: Any) -> Judge:
    """A judge that looks at the output: its similarity, or what it raises."""

    def look(request: Any) -> Any:
        said = similarities[request.user.partition(f"<<actual {request.token}>>\n")[2].split("\n")[0]]
        return said if isinstance(said, Exception) else {"similarityScore": said}

    return Judge(ScriptedModel(look), reask=0)


def test_results_are_in_the_order_of_the_probes():
    """Whoever finishes first."""

    async def waits(given: Any) -> str:
        await asyncio.sleep(given)
        return str(given)

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

    async def waits(given: Any) -> str:
        running.add(given)
        at_once.append(len(running))
        await asyncio.sleep(100 if given == 0 else 1)
        running.remove(given)
        finished.append(given)
        return "x"

    probes = [SemanticProbe(name=str(number), input=number, expected="x") for number in range(7)]
    run_virtual(evaluate_probes(probes, says(1.0), tool=waits, concurrency=2, tool_timeout=None))

    assert finished == [1, 2, 3, 4, 5, 6, 0]
    assert max(at_once) == 2


@pytest.mark.parametrize("concurrency", [0, -1, math.nan, 1.0, True, "3", None, math.inf])
def test_concurrency_is_a_whole_number_of_at_least_1(concurrency: Any):
    """Anything else is an error; it neither runs for ever nor evaluates nothing and looks stable."""
    said = complaint(evaluate_probes, [(PROBE, "x")], says(1.0), concurrency=concurrency)

    assert said == f"concurrency must be a whole number of at least 1, got {concurrency!r}"


def test_one_probe_that_fails_stops_no_other():
    """It is its own undecided result and stays out of the mean; the report is then not stable."""
    report = many(by_output(a=0.95, b=OSError("boom"), c=0.95), "a", "b", "c")

    assert [item.similarity for item in report.results] == [0.95, None, 0.95]
    assert (report.mean, report.drift, report.stable, report.outcome) == (0.95, "none", False, "undecided")


def test_a_cancellation_passes_through():
    """Whoever stops waiting stops all of it."""
    started, stopped = [], []

    async def waits(given: Any) -> str:
        started.append(given)
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            stopped.append(given)
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

    assert [item.outcome for item in report.results] == ["passed", "undecided", "undecided"]
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

    def sometimes(given: Any) -> str:
        if given == 1:
            raise OSError("gone")
        return "x"

    probes = [SemanticProbe(name=str(number), input=number, expected="x") for number in range(3)]
    report = asyncio.run(evaluate_probes(probes, says(1.0), tool=sometimes))

    assert (report.mean, report.stable, report.outcome) == (1.0, False, "failed")
    assert (
        report.explain() == "not stable: 3 probes, 2 passed, 1 failed, 0 undecided; mean similarity 1.00 (drift none)"
    )


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


def make(similarity: float | None, violated: bool = False, because: Any = None, by: Any = "judge") -> ProbeResult:
    """A result as an evaluation makes it."""
    if similarity is None:
        outcome = "undecided" if because else "passed"
        return ProbeResult(probe=PROBE, outcome=outcome, undecided_because=because, decided_by=by)
    drift = ProbeThresholds().find_drift(similarity)
    return ProbeResult(
        probe=PROBE,
        outcome="passed" if drift in ("none", "low") and not violated else "failed",
        similarity=similarity,
        drift=drift,
        contract_violated=violated,
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
