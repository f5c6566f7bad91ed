"""The review before a tool rises a tier: two reviewers at once, and both have to approve."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from adjudge import EmergentJudge, Judge
from adjudge.guards import GuardEvent
from adjudge.testing import ScriptedModel
from adjudge.tools import PromotionVerdict, ToolUsage
from kit.judges import STRATEGIES, complaint
from kit.loops import run_virtual
from kit.tools import candidate, chain, creation, review, tool

UNREAD = "rejected, since no review could be read ("


def decide(safety: Any, correctness: Any, **more: Any) -> PromotionVerdict:
    """The verdict of two reviewers that say these lines."""
    models = {"safety": ScriptedModel(safety), "correctness": ScriptedModel(correctness)}
    judges = {name: Judge(model, reask=0) for name, model in models.items()}
    return asyncio.run(EmergentJudge(ScriptedModel("?"), judges).review_promotion(tool(**more)))


# ---------------------------------------------------------------- what approves


def test_both_have_to_approve():
    """The confidence is the lower of the two; the verdict says what was reviewed."""
    verdict = decide(review(confidence=0.8), review(confidence=0.6, reasoning="it adds"))

    assert verdict
    assert (verdict.confidence, verdict.safety.confidence, verdict.correctness.confidence) == (0.6, 0.8, 0.6)
    assert verdict.correctness.reasoning == "it adds"
    assert verdict.reasoning == "safety: so\ncorrectness: it adds"
    assert verdict.tool_digest == tool().digest


@pytest.mark.parametrize("lines", [(review(), review(approved=False)), (review(approved=False), review())])
def test_one_refusal_refuses(lines: tuple[Any, Any]):
    """Whoever it comes from; the other's approval is kept in the verdict."""
    verdict = decide(*lines)

    assert not verdict
    assert [verdict.safety.approved, verdict.correctness.approved] == [line["approved"] for line in lines]
    assert verdict.confidence == 0.9


UNREADABLE = {
    "words": "approved",
    "null": "null",
    "nothing": None,
    "empty": {},
    "approved in words": review(approved="true"),
    "approved as a number": review(approved=1),
    "another flag": {"safe": True, "confidence": 0.9},
    "two flags": review(safe=False),
    "no confidence": {"approved": True, "reasoning": "so"},
    "confidence 0": review(confidence=0),
    "much confidence": review(confidence=1.01),
    "confidence below 0": review(confidence=-0.5),
    "confidence in words": review(confidence="1"),
    "confidence true": review(confidence=True),
    "NaN": json.dumps(review(confidence=float("nan"))),
    "reasoning that is no text": review(reasoning=["so"]),
    "an error": RuntimeError("down"),
}


@pytest.mark.parametrize("reply", UNREADABLE.values(), ids=UNREADABLE)
@pytest.mark.parametrize("place", [0, 1])
def test_an_unreadable_side_is_undecided_and_refuses(reply: Any, place: int):
    """With confidence 0 for the whole, though the other side approves."""
    verdict = decide(*[reply if at == place else review() for at in range(2)])
    sides = (verdict.safety, verdict.correctness)

    assert not verdict
    assert verdict.confidence == 0.0
    assert sides[place].reasoning.startswith(UNREAD)
    assert (sides[1 - place].approved, sides[1 - place].confidence) == (True, 0.9)


def test_a_refusal_may_be_unsure():
    """A confidence of 0 is a number; it approves nothing, and may refuse."""
    verdict = decide(review(approved=False, confidence=0, reasoning="no idea"), review())

    assert verdict.safety.reasoning == "no idea"


def test_an_objection_is_not_asked_away():
    """A refusal in a form that cannot be used is not asked for again: the second reply might approve."""
    model = ScriptedModel([{"approved": False}, review()])
    verdict = asyncio.run(
        EmergentJudge("rules", {"safety": model, "correctness": ScriptedModel(review())}).review_promotion(tool())
    )

    assert not verdict
    assert len(model.requests) == 1


# ---------------------------------------------------------------- what is not asked


NOT_ASKED: dict[str, tuple[dict[str, Any], str]] = {
    "no usage": ({"usage": None}, "no usage statistics"),
    "never used": ({"usage": ToolUsage()}, "no usage statistics"),
    "no verdict": ({"verdicts": ()}, "no earlier verdict"),
    "a verdict on what it was": ({"verdicts": (creation(candidate(source="before")),)}, "no earlier verdict"),
    "rejected": (
        {"verdicts": (creation(), creation(approved=False, confidence=0.0, safety=0.0))},
        "did not approve it",
    ),
    "too long": ({"candidate": candidate(source="x" * 400_000)}, "at most 400,000"),
}


@pytest.mark.parametrize(("more", "reason"), NOT_ASKED.values(), ids=NOT_ASKED)
def test_without_a_record_nobody_is_asked(more: dict[str, Any], reason: str):
    """A tool that was not used, or was never approved as what it is now, does not rise."""
    model = ScriptedModel(review())
    verdict = asyncio.run(EmergentJudge(model).review_promotion(tool(**more)))

    assert not verdict
    assert reason in verdict.reasoning
    assert (verdict.confidence, verdict.safety.chain_result, model.requests) == (0.0, None, [])


def test_a_refused_promotion_is_no_verdict_on_its_making():
    """What counts is the review of what the tool is."""
    refused = decide(review(approved=False), review())

    assert "no earlier verdict" in decide(review(), review(), verdicts=(refused,)).reasoning
    assert decide(review(), review(), verdicts=(creation(), refused))


def test_a_judge_that_cannot_be_asked_is_the_callers_error(monkeypatch: pytest.MonkeyPatch):
    """And the plain one, not a group of errors; the other reviewer is not asked for nothing."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    model = ScriptedModel(review())
    judge = EmergentJudge(model, {"safety": model, "correctness": "openai:gpt-6.1-terra"})

    assert "OPENAI_API_KEY" in complaint(judge.review_promotion, tool())
    assert model.requests == []
    assert "got ToolCandidate" in complaint(judge.review_promotion, candidate())


# ---------------------------------------------------------------- who is asked, and what


def test_both_are_asked_at_the_same_time():
    """A panel takes as long as its slower half."""
    judge = EmergentJudge("rules", ScriptedModel(review(), delay=3.0))

    async def time_it() -> float:
        before = asyncio.get_running_loop().time()
        assert await judge.review_promotion(tool())
        return asyncio.get_running_loop().time() - before

    assert run_virtual(time_it()) == 3.0


def test_a_caller_that_goes_away_cancels_both():
    """Nothing is left running."""
    judge = EmergentJudge("rules", ScriptedModel(review(), delay=60.0))

    async def leave() -> set[Any]:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await judge.review_promotion(tool())
        return asyncio.all_tasks() - {asyncio.current_task()}

    assert run_virtual(leave()) == set()


def test_the_two_are_asked_different_questions():
    """A safety auditor and a correctness reviewer, about the same material."""
    model = ScriptedModel(review())
    asyncio.run(EmergentJudge(model).review_promotion(tool()))
    first, second = model.requests

    assert "safety auditor" in first.system
    assert "whether tools are correct" in second.system
    assert first.user.replace(first.token or "", "") == second.user.replace(second.token or "", "")


@pytest.mark.parametrize(
    "models",
    [
        {"safety": ScriptedModel(review(), name="a"), "correctness": ScriptedModel(review(), name="b")},
        (ScriptedModel(review(), name="a"), ScriptedModel(review(), name="b")),
        [Judge(ScriptedModel(review(), name="a")), chain([review()], name="b")],
    ],
)
def test_the_two_may_be_different_judges(models: Any):
    """By name, or in this order."""
    verdict = asyncio.run(EmergentJudge("rules", models).review_promotion(tool()))

    assert verdict.safety.chain_result is not None
    assert verdict.correctness.chain_result is not None
    assert (verdict.safety.chain_result.judge, verdict.correctness.chain_result.judge) == ("a", "b")


def test_a_name_and_a_function_are_one_model():
    """As everywhere; and without a promotion model the first one does both."""

    def say(system: str, user: str) -> str:
        token = user.rpartition('"token": "')[2][:8]
        return json.dumps({"token": token, **review()})

    assert asyncio.run(EmergentJudge("rules", ("mine", say)).review_promotion(tool()))
    assert asyncio.run(EmergentJudge(say).review_promotion(tool()))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_chains_review_under_every_strategy(strategy: str):
    """Either reviewer may be a panel of its own."""
    judges = {"safety": chain([review()] * 3, strategy), "correctness": chain([review(approved=False)] * 3, strategy)}

    assert run_virtual(EmergentJudge("rules", chain([review()] * 3, strategy)).review_promotion(tool()))
    assert not run_virtual(EmergentJudge("rules", judges).review_promotion(tool()))


def test_a_policy_promotes_nothing():
    """A chain that opens has reviewed no tool."""
    judges = chain([RuntimeError("down")], fail_open=True)
    verdict = asyncio.run(EmergentJudge("rules", judges).review_promotion(tool()))

    assert verdict.safety.chain_result is not None
    assert verdict.safety.chain_result.passed
    assert not verdict
    assert verdict.confidence == 0.0


def test_the_panel_sees_use_and_verdicts_on_what_the_tool_is():
    """Not those on what it was before."""
    model = ScriptedModel(review())
    verdicts = (creation(candidate(source="old"), reasoning="OLD WORDS"), creation(reasoning="NEW WORDS"))
    asyncio.run(EmergentJudge(model).review_promotion(tool(verdicts=verdicts)))
    user = model.requests[0].user

    assert "NEW WORDS" in user
    assert "OLD WORDS" not in user
    assert '"successes": 6' in user


def test_one_event_for_the_panel():
    """What it came to, and that nobody decided where nobody did."""
    events: list[GuardEvent] = []
    lines = [review(), review(), review(approved=False), "?", "?", "?"]
    judge = EmergentJudge("rules", Judge(ScriptedModel(lines), reask=0), on_event=events.append)
    for _ in range(3):
        asyncio.run(judge.review_promotion(tool()))
    asyncio.run(judge.review_promotion(tool(usage=None)))

    assert [(item.kind, item.passed, item.decided_by) for item in events] == [
        ("promotion", True, "judge"),
        ("promotion", False, "judge"),
        ("promotion", False, "policy"),
    ]
