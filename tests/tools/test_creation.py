"""The review of a new tool: what code rules out first, what a reviewer is asked, and what approves."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from adjudge import EmergentJudge, Judge, JudgeChain, UsageError
from adjudge.guards import GuardEvent
from adjudge.testing import FAULTS, FaultyModel, ScriptedModel
from adjudge.tools import CreationVerdict, tool_digest
from kit.judges import STRATEGIES, Plain, complaint, silent
from kit.loops import run_virtual
from kit.tools import approval, candidate, chain, refusal, run

NOTHING = dict.fromkeys(("confidence", "safety", "correctness", "determinism", "bounded"), 0.0)


def decide(reply: Any, **more: Any) -> CreationVerdict:
    """The verdict of a judge that says this, on a candidate that differs in this."""
    return asyncio.run(EmergentJudge(ScriptedModel(reply)).review_creation(candidate(**more)))


def numbers(verdict: CreationVerdict) -> dict[str, float]:
    return {name: getattr(verdict, name) for name in NOTHING}


# ---------------------------------------------------------------- what approves


def test_what_passes_everything_is_approved():
    """All four dimensions, the tests and the reviewer's own word; the verdict says what was reviewed, and by whom."""
    verdict = decide(approval())

    assert verdict
    assert numbers(verdict) == {**dict.fromkeys(NOTHING, 1.0), "confidence": 0.9}
    assert verdict.reasoning == "It adds."
    assert verdict.tool_digest == tool_digest(candidate())
    assert verdict.chain_result is not None
    assert verdict.chain_result.subject == verdict.tool_digest
    assert verdict.chain_result.passed


@pytest.mark.parametrize("name", ["safety", "correctness", "determinism", "bounded"])
def test_each_dimension_is_a_veto(name: str):
    """One that does not pass rejects, though the reply says approved: a generous flag changes nothing."""
    flag = "passed" if name in ("safety", "correctness") else "likely"
    verdict = decide(approval(**{name: {flag: False}}))

    assert not verdict
    assert getattr(verdict, name) == 0.0
    assert verdict.confidence == 0.9
    assert verdict.chain_result is not None
    assert (verdict.chain_result.outcome, verdict.chain_result.detail) == ("failed", f"does not pass on {name}")


def test_the_reviewers_own_no_counts():
    """Four dimensions that pass and ``approved: false``: rejected, with the dimensions as they were given."""
    verdict = decide(approval(approved=False))

    assert (bool(verdict), verdict.safety, verdict.confidence) == (False, 1.0, 0.9)


def test_the_reviewers_own_yes_may_be_left_out():
    """What decides are the dimensions."""
    reply = approval()
    del reply["approved"]

    assert decide(reply)


def test_scores_are_kept_and_not_believed():
    """A score is what the verdict shows; whether a dimension passes is its flag's to say."""
    verdict = decide(approval(safety={"passed": True, "score": 0.4}, correctness={"passed": False, "score": 0.9}))

    assert (bool(verdict), verdict.safety, verdict.correctness) == (False, 0.4, 0.9)


def test_no_confidence_approves_nothing():
    """What a reviewer says of its own certainty can reject."""
    assert not decide(approval(confidence=0))


def test_the_result_shows_the_dimensions():
    """As criteria, with what the reviewer said about each."""
    verdict = decide(refusal())

    assert verdict.chain_result is not None
    assert [(item.name, item.passed) for item in verdict.chain_result.criteria] == [
        ("safety", False),
        ("correctness", True),
        ("determinism", True),
        ("bounded", True),
    ]
    assert verdict.chain_result.criterion("safety").reasoning == "it sends data away"
    assert verdict.chain_result.criterion("bounded").reasoning == "no loop"


# ---------------------------------------------------------------- what code rules out


RULED_OUT = {
    "no source": ({"source": " \n"}, "no source"),
    "steps in a sandbox": ({"source": "", "steps": [{"tool": "x"}]}, "no source"),
    "composed of nothing": ({"source": "", "mode": "compose"}, "no source"),
    "no test": ({"tests": ()}, "no recorded test"),
    "a failed test": ({"tests": (run(output={"sum": 1}), run(success=False, error="boom"))}, "test 2 failed: boom"),
    "a test with an error": ({"tests": (run(output={"sum": 1}, error="late"),)}, "test 1 failed: late"),
    "another output": ({"tests": (run(output={"sum": 3}, expected={"sum": 4}),)}, "test 1 gave another output"),
    "true for 1": ({"tests": (run(output={"sum": 1}, expected={"sum": True}),)}, "test 1 gave another output"),
    "a member too many": (
        {"tests": (run(output={"sum": 1}, expected={"sum": 1, "x": None}),)},
        "test 1 gave another output",
    ),
    "nothing expected": ({"tests": (run(output={"sum": 1}, expected=None),)}, "test 1 gave another output"),
    "outside the schema": ({"tests": (run(output={"sum": "3"}),)}, "does not fit the output schema: sum: "),
    "a missing member": ({"tests": (run(output={}),)}, "does not fit the output schema: sum: "),
    "an input that is no JSON": ({"tests": (run({"a": {1}}, {"sum": 3}),)}, "input that is not JSON: a: set"),
    "an output that is no JSON": ({"tests": (run(output={"sum": float("nan")}),)}, "output that is not JSON: sum: nan"),
    "no output schema to speak of": ({"output_schema": {"type": "objekt"}}, "the output schema: "),
    "no input schema to speak of": ({"input_schema": {"pattern": "("}}, "the input schema: "),
    "a remote schema": ({"output_schema": {"$ref": "http://example.com/s"}}, "the output schema: "),
    "many values": ({"tests": (run(output={"sum": 3, "x": [0] * 30_000}),) * 4}, "more than 100,000 values together"),
    "too long": ({"source": "x" * 400_000}, "and at most 400,000 are reviewed"),
}


@pytest.mark.parametrize(("more", "reason"), RULED_OUT.values(), ids=RULED_OUT)
def test_what_code_can_see_is_not_asked(more: dict[str, Any], reason: str):
    """Rejected without a call, with nothing scored, and the reason says what was found."""
    model = ScriptedModel(approval())
    verdict = asyncio.run(EmergentJudge(model).review_creation(candidate(**more)))

    assert not verdict
    assert verdict.reasoning.startswith("rejected without asking: ")
    assert reason in verdict.reasoning
    assert (numbers(verdict), verdict.chain_result, model.requests) == (NOTHING, None, [])


FINE = {
    "equal as JSON": {"tests": (run(output={"sum": 3, "x": [1.0]}, expected={"x": [1], "sum": 3.0}),)},
    "None, as expected": {"tests": (run(expected=None),), "output_schema": None},
    "no schema for outputs": {"tests": (run(output="anything"),), "output_schema": None},
    "steps": {"mode": "compose", "source": "", "steps": [{"name": "a", "tool": "fetch"}]},
    "composed in words": {"mode": "compose", "source": "fetch, then count"},
    "tuples": {"tests": (run(output=(1, 2), expected=[1, 2]),), "output_schema": {"type": "array"}},
}


@pytest.mark.parametrize("more", FINE.values(), ids=FINE)
def test_what_code_cannot_fault_is_asked(more: dict[str, Any]):
    """And decided by the reviewer."""
    assert decide(approval(), **more)


def test_a_candidate_longer_than_the_model_takes_is_rejected():
    """It is at fault itself: as an error it could be caught, and the tool used unreviewed."""
    model = ScriptedModel(approval())
    model.max_input_characters = 1_000  # type: ignore[attr-defined]
    verdict = asyncio.run(EmergentJudge(model).review_creation(candidate(source="x" * 2_000)))

    assert not verdict
    assert "1,000" in verdict.reasoning
    assert (verdict.chain_result, model.requests) == (None, [])


def test_a_judge_that_cannot_be_asked_is_the_callers_error(monkeypatch: pytest.MonkeyPatch):
    """A missing key rejects no tool."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    assert "OPENAI_API_KEY" in complaint(EmergentJudge("openai:gpt-6.1-terra").review_creation, candidate())


def test_only_a_candidate_is_reviewed():
    """A dictionary is read with ``ToolCandidate.from_dict`` first."""
    assert "got dict" in complaint(EmergentJudge(ScriptedModel("")).review_creation, candidate().to_dict())


# ---------------------------------------------------------------- what cannot be read


UNREADABLE = {
    "words": "I approve of this.",
    "null": "null",
    "list": "[]",
    "nothing": None,
    "empty": {},
    "no dimension": {"approved": True, "confidence": 1},
    "three dimensions": {key: item for key, item in approval().items() if key != "bounded"},
    "flag in words": approval(safety={"passed": "true"}),
    "truthy": approval(determinism={"likely": 1}),
    "score alone": approval(safety={"score": 0.9}),
    "list for an object": approval(bounded=[True]),
    "approved in words": approval(approved="true"),
    "no confidence": {key: item for key, item in approval().items() if key != "confidence"},
    "much confidence": approval(confidence=7),
    "confidence in words": approval(confidence="high"),
    "confidence true": approval(confidence=True),
    "NaN": json.dumps(approval(confidence=float("nan"))),
    "score off the scale": approval(safety={"passed": True, "score": 8}),
    "score true": approval(safety={"passed": True, "score": True}),
    "concerns in words": approval(safety={"passed": True, "concerns": "none"}),
    "two objects": f"{json.dumps(approval())}\n{json.dumps(approval())}",
    "unsafe beside": approval(safe=False),
    "failed beside": approval(determinism={"likely": True, "passed": False}),
    "concerns and safe": approval(safety={"passed": True, "concerns": ["it reads the environment"]}),
    "failed tests and correct": approval(correctness={"passed": True, "failedTests": [1]}),
    "passes with 0": approval(safety={"passed": True, "score": 0}),
}


@pytest.mark.parametrize("reply", UNREADABLE.values(), ids=UNREADABLE)
def test_what_cannot_be_read_rejects(reply: Any):
    """Confidence and all dimensions 0, and the reasoning says what could not be read; nothing is guessed."""
    verdict = asyncio.run(EmergentJudge(Judge(ScriptedModel(reply), reask=0)).review_creation(candidate()))

    assert not verdict
    assert numbers(verdict) == NOTHING
    assert verdict.reasoning.startswith("rejected, since no review could be read (")
    assert verdict.chain_result is not None
    assert verdict.chain_result.outcome == "undecided"


@pytest.mark.parametrize("fault", [item for item in FAULTS if item != "hang"])
def test_no_fault_of_a_model_approves(fault: Any):
    """Whatever happens to a reply that approves; only dropping a criterion from a form without any changes nothing."""
    model = FaultyModel(ScriptedModel(approval()), [fault])
    verdict = asyncio.run(EmergentJudge(Judge(model, reask=0)).review_creation(candidate()))
    harmless = {"missing_criterion"}

    assert bool(verdict) is (fault in harmless)


def test_a_model_that_hangs_rejects():
    """Under the limit of its judge."""
    model = FaultyModel(ScriptedModel(approval()), ["hang"])
    verdict = run_virtual(EmergentJudge(Judge(model, timeout=5)).review_creation(candidate()))

    assert numbers(verdict) == NOTHING
    assert "timeout" in verdict.reasoning


def test_a_model_that_raises_rejects():
    """An outage is a verdict, not an exception."""
    verdict = decide(RuntimeError("boom"))

    assert not verdict
    assert "boom" in verdict.reasoning


@pytest.mark.parametrize(
    "reply",
    [
        {"approved": False},
        {"safety": {"passed": False}},
        approval(confidence=7, approved=False),
        approval(bounded={"likely": False, "reasoning": 3}),
    ],
)
def test_an_objection_is_not_asked_away(reply: Any):
    """A reply that says no and cannot be used is not asked for again: the second might say yes."""
    model = ScriptedModel([reply, approval()])
    verdict = asyncio.run(EmergentJudge(Judge(model, reask=3)).review_creation(candidate()))

    assert not verdict
    assert len(model.requests) == 1


def test_a_form_that_was_missed_is_asked_for_again():
    """Once, as everywhere."""
    model = ScriptedModel(["approved!", approval()])

    assert asyncio.run(EmergentJudge(model).review_creation(candidate()))


# ---------------------------------------------------------------- who is asked


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_chain_reviews_under_every_strategy(strategy: str):
    """Every seat answers the same question; details come from the seat that decided."""
    judges = chain([approval(reasoning=f"{place}") for place in range(3)], strategy)
    verdict = run_virtual(EmergentJudge(judges).review_creation(candidate()))

    assert verdict
    assert verdict.chain_result is not None
    assert verdict.reasoning == verdict.chain_result.reasoning
    assert {seat.question for seat in verdict.chain_result.results} == {verdict.chain_result.question}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_strategy_approves_what_all_reject(strategy: str):
    """Nor what none can decide, with or without ``fail_open``: a policy has reviewed no tool."""
    for lines in ([refusal()] * 3, [RuntimeError("down")] * 3):
        for fail_open in (False, True):
            judges = chain(lines, strategy, fail_open=fail_open)

            assert not run_virtual(EmergentJudge(judges).review_creation(candidate()))


def test_a_pass_by_policy_is_no_review():
    """The chain opens, since everybody is down, and the tool is rejected all the same."""
    verdict = asyncio.run(EmergentJudge(chain([RuntimeError("down")], fail_open=True)).review_creation(candidate()))

    assert verdict.chain_result is not None
    assert verdict.chain_result.passed
    assert numbers(verdict) == NOTHING
    assert not verdict


def test_a_chain_inside_a_chain_is_one_reviewer():
    """And its deciding seat's details are the verdict's."""
    inner = chain([RuntimeError("down"), approval(reasoning="inner", confidence=0.7)], "fallback")
    verdict = asyncio.run(EmergentJudge(chain([inner, approval()], "fallback")).review_creation(candidate()))

    assert (bool(verdict), verdict.reasoning, verdict.confidence) == (True, "inner", 0.7)


def test_a_judge_that_answers_something_else_approves_nothing():
    """A pass without a review is none."""
    verdict = asyncio.run(EmergentJudge(JudgeChain([silent(), _Yes()])).review_creation(candidate()))

    assert numbers(verdict) == NOTHING


class _Yes:
    """A judge of somebody else's that passes whatever it is asked."""

    name = "yes"

    async def ask(self, question: Any, /) -> Any:
        from adjudge import JudgeResult

        return JudgeResult(outcome="passed", score=1.0, judge=self.name)


def test_structured_output_has_the_same_form():
    """A provider that holds the model to a schema is sent one, with everything in it required."""
    model = ScriptedModel(approval(), structured=True)
    asyncio.run(EmergentJudge(model).review_creation(candidate()))
    form = model.requests[0].form

    assert form is not None
    assert list(form.schema["properties"]) == ["token", *(approval().keys())]
    assert form.schema["properties"]["safety"]["required"] == ["concerns", "passed"]


def test_the_same_system_part_for_every_tool():
    """So that a provider can cache it; the tool stands in the user part alone."""
    model = ScriptedModel(approval())
    judge = EmergentJudge(model)
    for name in ("one", "two"):
        asyncio.run(judge.review_creation(candidate(name=name, description=f"{name} does")))

    assert len({request.system for request in model.requests}) == 1
    assert "two does" in model.requests[1].user


def test_everything_about_a_tool_is_shown():
    """In a fence of its own each; what was expected stands beside what came out."""
    model = ScriptedModel(approval())
    shown = candidate(
        mode="compose",
        steps=[{"tool": "STEP"}],
        allowlist=["ALLOWED"],
        tests=(run({"a": "INPUT"}, {"sum": 5}, expected={"sum": 5}),),
    )
    asyncio.run(EmergentJudge(model).review_creation(shown))
    user = model.requests[0].user

    for label in ("name", "description", "mode", "input_schema", "output_schema", "allowlist", "steps", "source"):
        assert user.count(f"<<{label} {model.requests[0].token}>>") == 1
    for text in ("STEP", "ALLOWED", "INPUT", '"expected": {\n      "sum": 5', shown.source, '"integer"'):
        assert text in user


# ---------------------------------------------------------------- events


def test_an_event_for_each_review_that_asked():
    """With what it came to; none where code ruled the candidate out."""
    events: list[GuardEvent] = []
    judge = EmergentJudge(ScriptedModel([approval(), refusal(), "?", "?"]), on_event=events.append)
    for more in ({}, {}, {}, {"tests": ()}):
        asyncio.run(judge.review_creation(candidate(**more)))

    assert [(item.kind, item.guard, item.passed, item.decided_by) for item in events] == [
        ("creation", "add", True, "judge"),
        ("creation", "add", False, "judge"),
        ("creation", "add", False, "policy"),
    ]
    assert [(item.allowed_count, item.rejected_count) for item in events] == [(1, 0), (0, 1), (0, 1)]
    assert {item.subject for item in events} == {tool_digest(candidate())}


def test_a_hook_that_raises_changes_nothing():
    """It is somebody else's."""

    def explode(event: GuardEvent) -> None:
        raise RuntimeError("no")

    judge = EmergentJudge(ScriptedModel(approval()), on_event=explode)

    assert asyncio.run(judge.review_creation(candidate()))


def test_an_unusable_judge_is_refused_at_once():
    """Not when the first tool comes."""
    with pytest.raises(UsageError):
        EmergentJudge(7)
    with pytest.raises(UsageError):
        EmergentJudge(Plain("x"), {"safety": Plain("x")})
    with pytest.raises(UsageError):
        EmergentJudge(Plain("x"), (Plain("x"), Plain("x"), Plain("x")))
