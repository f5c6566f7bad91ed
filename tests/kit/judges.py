"""Doubles and shorthands for the tests of judges and chains."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from adjudge import Judge, JudgeResult, Outcome, Question, ReplyCache, UsageError
from adjudge.errors import Reason
from adjudge.judges import with_layers
from adjudge.models import Model, Reply, Request

YES = '{"safe": true}'
NO = '{"safe": false}'


class Seat:
    """A judge that says what it is told to, after a while, and remembers what happened to it."""

    def __init__(
        self,
        outcome: Outcome = "passed",
        *,
        because: Reason = "error",
        name: str = "seat",
        delay: float = 0.0,
        confidence: float | None = None,
        **more: Any,
    ) -> None:
        self.name = name
        self.delay = delay
        self.asked: list[float] = []
        """The times at which it was asked, on the loop's clock."""
        self.answered: list[float] = []
        self.cancelled = 0
        score = {"passed": 1.0, "failed": 0.0}.get(outcome)
        self.says: dict[str, Any] = {"outcome": outcome, "score": score, "confidence": confidence, **more}
        if outcome == "undecided":
            self.says["undecided_because"] = because

    async def ask(self, question: Question | str, /) -> JudgeResult:
        clock = asyncio.get_running_loop().time
        self.asked.append(clock())
        try:
            await asyncio.sleep(self.delay)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        self.answered.append(clock())
        return JudgeResult(judge=self.name, **self.says)


class Plain:
    """A model that says its lines exactly as they are: no token is filled in, nothing is replaced.

    A line may be a text, a ``Reply``, an exception, or a function of the request that returns one of these.
    """

    def __init__(self, *lines: Any, name: str = "plain") -> None:
        self.name = name
        self.requests: list[Request] = []
        self.lines = list(lines)

    async def complete(self, request: Request, /) -> Reply:
        self.requests.append(request)
        line = self.lines[min(len(self.requests), len(self.lines)) - 1]
        line = line(request) if callable(line) else line
        if isinstance(line, BaseException):
            raise line
        return line if isinstance(line, Reply) else Reply(text=line)


def passed(**more: Any) -> Seat:
    return Seat("passed", **more)


def failed(**more: Any) -> Seat:
    return Seat("failed", **more)


def silent(because: Reason = "error", **more: Any) -> Seat:
    return Seat("undecided", because=because, **more)


def scores(*values: float, names: Sequence[str] = (), **more: Any) -> dict[str, Any]:
    """A rubric's reply: one score per criterion, in the name of the only one where there is one, else as told."""
    if len(values) == 1 and not names:
        return {"criteria": [{"reasoning": "so", "score": values[0]}], **more}
    pairs = zip(names or [f"criterion-{at}" for at in range(1, len(values) + 1)], values, strict=True)
    return {"criteria": [{"name": name, "reasoning": "so", "score": score} for name, score in pairs], **more}


def summarise(result: JudgeResult) -> Mapping[str, Any]:
    """The members of a result that a decision rests on."""
    return {"outcome": result.outcome, "because": result.undecided_because, "by": result.decided_by}


def complaint(call: Any, *arguments: Any, **options: Any) -> str:
    """The whole text of the ``UsageError`` that a call raises; a coroutine is run."""
    try:
        made = call(*arguments, **options)
        if asyncio.iscoroutine(made):
            asyncio.run(made)
    except UsageError as error:
        return str(error)
    pytest.fail("no UsageError was raised")


def names(message: object, *parts: str) -> bool:
    """Return True if a message names thing, value and remedy; its whole text is pinned in test_messages.py."""
    missing = [part for part in parts if part not in str(message)]
    assert missing == [], f"{message} names no {missing}"
    return True


def keep_replies(model: Model, cache: ReplyCache, *, identity: str | None = "1") -> Any:
    """The model that a judge asks through a cache; ``identity`` is what tells it from others of its name."""
    identities = {model.name: identity} if identity is not None else {}
    return with_layers(Judge(model), cache=cache, identities=identities).model


STRATEGIES: Mapping[str, Mapping[str, Any]] = {
    "fallback": {},
    "consensus": {},
    "majority": {},
    "quorum": {"quorum": 2},
    "hedged": {"hedge_after": 1.0},
    "cascade": {"escalate_below": 0.9},
}
"""Every strategy, with the parameters it needs for three seats."""
