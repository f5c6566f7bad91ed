"""Doubles for the tests of comparisons."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

from adjudge import JudgeResult, PairResult, Question, compare_sync
from adjudge.models import Request
from kit.judges import Seat

GOOD, BAD = "The good answer.", "The bad answer."


def prefer(chosen: str, reasoning: str = "so") -> dict[str, Any]:
    """A reply that prefers one of the places."""
    return {"reasoning": reasoning, "preferred": chosen}


def prefer_good(request: Request) -> dict[str, Any]:
    """A judge that looks at the contents and not at their places."""
    return prefer("first" if request.user.index(GOOD) < request.user.index(BAD) else "second")


def judge_pairs(prompt: str) -> str:
    """A judge for ``python:kit.pairs:judge_pairs``: good beats bad, of two good ones the place, odd is none."""
    fences = r"<<first (\w{8})>>\n(.*)\n<<end first \1>>.*<<second \1>>\n(.*)\n<<end second"
    match = re.search(fences, prompt, re.DOTALL)
    assert match is not None, prompt
    token, first, second = match.groups()
    if "odd" in first + second:
        return "I cannot say."
    chosen = "first" if "good" in first else "second" if "good" in second else "tie"
    return json.dumps({"token": token, **prefer(chosen)})


class Chooser(Seat):
    """A seat that prefers a content (``a`` or ``b``), a ``place``, a ``tie``, or is undecided for a reason."""

    def __init__(self, says: str, **more: Any) -> None:
        self.choice = says
        decided = says in ("a", "b", "tie", "first", "second")
        super().__init__("passed" if decided else "undecided", because="error" if decided else says, **more)  # type: ignore[arg-type]
        self.says["score"] = None

    async def ask(self, question: Question | str, /) -> JudgeResult:
        assert isinstance(question, Question)
        result = await super().ask(question)
        # Both orders are asked at once, so what one says must not be kept on the seat.
        return replace(result, value=place_of(self.choice, question.order)) if result.passed else result


def place_of(choice: str, order: str | None) -> str:
    """The place a content stands in; places and ties are what they are."""
    places = {"a": "first", "b": "second"} if order == "ab" else {"a": "second", "b": "first"}
    return places.get(choice, choice)


def make_pair(ab: str, ba: str | None = None, *, on_conflict: Any = "tie", **more: Any) -> PairResult:
    """A pair of what was said in each order, in terms of places; anything but a preference is a reason."""

    class Told:
        name = "careful"

        async def ask(self, question: Question | str, /) -> JudgeResult:
            assert isinstance(question, Question)
            return say(ab if question.order == "ab" or ba is None else ba)

    pair = compare_sync(GOOD, BAD, judge=Told(), criteria="Good.", both_orders=ba is not None, on_conflict=on_conflict)
    return replace(pair, **more)


def say(answer: str) -> JudgeResult:
    """A judge's result for one order."""
    if answer in ("first", "second", "tie"):
        return JudgeResult(outcome="passed", judge="careful", value=answer, confidence=0.9)
    return JudgeResult(outcome="undecided", undecided_because=answer, judge="careful", detail="why not")  # type: ignore[arg-type]
