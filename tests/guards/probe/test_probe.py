"""One semantic probe: what a judge says of an output, what is asked, and what the tool did."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from typing import Any

import pytest

from adjudge import Judge, JudgeChain, SemanticProbe, UsageError, evaluate_probe, evaluate_probes
from adjudge.guards import ProbeContract, ProbeThresholds
from adjudge.testing import ScriptedModel
from kit.judges import Seat, complaint, names
from kit.loops import run_virtual
from kit.patience import HANG
from kit.probes import PROBE, Breaks, probed, probed_with, says, violated

pytestmark = pytest.mark.timed


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


@pytest.mark.parametrize("members", [{}, {"contractViolated": False}, {"violations": []}, {"violations": None}])
def test_a_missing_flag_is_no_violation(members: dict[str, Any]):
    """A reply that says nothing about the contract says that it is kept."""
    assert probed(says(1.0, **members)).passed


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


def test_a_judge_that_passes_what_its_reading_fails_is_not_believed():
    """Whatever stands around a judge, the similarity decides."""

    class Generous:
        name = "generous"

        async def ask(self, question: Any, /) -> Any:
            return replace(await says(0.3).ask(question), outcome="passed")

    result = probed(Generous())

    assert (result.outcome, result.similarity, result.drift) == ("failed", 0.3, "high")


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
    ("arguments", "message"),
    [
        ({"name": " "}, "a probe needs a name that is not empty … got ' '"),
        ({"name": 7}, "got 7"),
        ({"name": "a\x00"}, "holds a NUL character"),
        ({"input": b"x"}, "the input of probe 'a' is binary"),
        ({"expected": math.nan}, "the expected of probe 'a' cannot be written as JSON"),
        ({"contract": {"readonly": True}}, "the contract of probe 'a' … a contract … key 'readonly' … did you mean"),
        ({"contract": {"readOnly": True, "read_only": True}}, "the contract says read_only twice"),
        ({"contract": {"read_only": "yes"}}, "read_only … true or false … got 'yes'"),
        ({"contract": {"rules": "one"}}, "rules … a list of texts … got 'one'"),
        ({"contract": {"description": 1}}, "description … a text … got 1"),
        ({"contract": {}}, "the contract says nothing"),
        ({"contract": 7}, "a contract … a mapping or a text … got 7"),
    ],
)
def test_a_probe_that_cannot_be_shown_is_refused(arguments: dict[str, Any], message: str):
    """When it is made, in a sentence."""
    assert names(
        complaint(SemanticProbe, **({"name": "a", "input": 1, "expected": 1} | arguments)), *message.split(" … ")
    )


@pytest.mark.parametrize(
    "wrong", [{"none": 1.1}, {"low": -0.1}, {"medium": math.nan}, {"none": True}, {"low": "0.5"}, {"none": None}]
)
def test_thresholds_are_numbers_from_0_to_1(wrong: dict[str, Any]):
    """Anything else is an error that names the threshold."""
    assert f"the thresholds: {next(iter(wrong))} must be" in complaint(ProbeThresholds, **wrong)


def test_low_and_medium_are_not_mistaken_for_each_other():
    """Swapped, a similarity that is medium would pass."""
    assert "the threshold 'medium' (0.75) lies above 'low' (0.5)" in complaint(ProbeThresholds, low=0.5, medium=0.75)


# ---------------------------------------------------------------- the tool


def test_a_tool_is_called_with_the_input():
    """Sync, async, or a sync function that returns something to wait for; its output is what is judged."""

    def plain(value: Any) -> str:
        return f"plain {value['q']}"

    async def later(value: Any) -> str:
        return f"later {value['q']}"

    def hands_on(value: Any) -> Any:
        return later(value)

    for tool, word in ((plain, "plain"), (later, "later"), (hands_on, "later")):
        assert probed_with(tool).actual == f"{word} How long?"


def test_none_is_an_output():
    """Null is what a tool may say, and it is compared like anything else."""
    model = ScriptedModel({"similarityScore": 0.1})
    result = probed_with(lambda value: None, Judge(model))

    assert (result.outcome, result.similarity) == ("failed", 0.1)
    assert "\nnull\n" in model.requests[0].user


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("raises", "the tool raised ValueError … no How long?"),
        ("raises_later", "the tool raised ValueError … no How long?"),
        ("ends", "the tool raised RuntimeError … SystemExit … 3"),
        ("cancels", "CancelledError"),
        ("cancels_later", "it cancelled itself"),
        ("stops", "StopIteration"),
    ],
)
def test_a_tool_that_gives_no_output_has_failed(name: str, message: str):
    """It gave one once. Nobody is asked, and no similarity is made up."""
    model = ScriptedModel({"similarityScore": 1})
    result = probed_with(getattr(Breaks(), name), Judge(model))

    assert (result.outcome, result.decided_by, result.undecided_because) == ("failed", "rule", None)
    assert (result.similarity, result.drift, result.chain_result) == (None, None, None)
    assert names(result.detail, *message.split(" … "))
    assert model.requests == []


def test_a_tool_that_takes_too_long_has_failed():
    """Also one that swallows its cancellation and answers all the same."""

    async def slow(value: Any) -> str:
        await asyncio.sleep(10)
        return "late"

    async def stubborn(value: Any) -> str:
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            return "late"
        return "never"

    for tool in (slow, stubborn):
        result = run_virtual(evaluate_probe(PROBE, says(1.0), tool=tool, tool_timeout=2))
        assert result.outcome == "failed"
        assert names(result.detail, "the tool", "no output", "2 s")


def test_a_sync_tool_that_hangs_holds_nothing_up():
    """Its thread cannot be killed; the probe and the end of the program do not wait for it."""
    import threading

    release = threading.Event()
    try:
        result = probed_with(lambda value: release.wait(HANG), tool_timeout=0.05)
    finally:
        release.set()

    assert result.outcome == "failed"
    assert names(result.detail, "the tool", "no output", "0.05 s")


def test_a_tool_cannot_change_what_the_judge_sees():
    """It is given a copy of the input; the next call gets the input as it was."""
    model = ScriptedModel({"similarityScore": 1})

    def changes(value: Any) -> str:
        value["q"] = "Ignore the baseline."
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
            raise KeyError("output")

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
    ("options", "message"),
    [
        ({}, "give the tool's output as actual, or the tool itself as tool"),
        ({"actual": 1, "tool": str}, "one of the two"),
        ({"tool": 7}, "a tool … a function of the probe's input … got 7"),
        ({"tool": str, "tool_timeout": 0}, "tool_timeout"),
        ({"actual": 1, "thresholds": {"low": 1}}, "thresholds … ProbeThresholds"),
    ],
)
def test_one_probe_is_called_in_one_way(options: dict[str, Any], message: str):
    """Everything else is an error that says how."""
    assert names(complaint(evaluate_probe, PROBE, says(1.0), **options), *message.split(" … "))


def test_a_probe_is_a_probe():
    """A mapping, or a pair too much, is none."""
    assert "a probe must be a SemanticProbe, got 'x'" in complaint(evaluate_probe, "x", says(1.0), actual=1)
    assert "give pairs of a probe and the tool's output" in complaint(evaluate_probes, [PROBE], says(1.0))
    assert "a probe must be a SemanticProbe" in complaint(evaluate_probes, [(PROBE, 1)], says(1.0), tool=str)
