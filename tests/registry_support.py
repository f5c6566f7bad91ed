"""Registries for tests: a clock that is set, judges that count what they are asked, and tools that were used."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from adjudge import EmergentJudge, ToolCandidate, ToolRegistry, forge
from adjudge.models import Request
from adjudge.testing import ScriptedModel
from tools_support import approval, candidate, refusal, review

T = TypeVar("T")

HERE: dict[str, str] = {"agent": "ana", "session": "s1"}


class Clock:
    """A clock that stands until it is told to go on."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 20, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def pass_by(self, seconds: float) -> None:
        """Let some seconds pass."""
        self.now += timedelta(seconds=seconds)


def make_judge(*, creates: bool = True, raises: bool = True, requests: list[Request] | None = None) -> EmergentJudge:
    """A judge of forged tools that approves or refuses; ``requests`` collects what it was asked."""
    creation = ScriptedModel(approval() if creates else refusal(), name="creation", requests=requests)
    promotion = ScriptedModel(review(approved=raises), name="panel", requests=requests)
    return EmergentJudge(creation, promotion)


class NoJudge:
    """A judge nobody may ask."""

    async def review_creation(self, candidate: ToolCandidate) -> Any:
        raise AssertionError(f"a review of {candidate.name} was asked for")

    async def review_promotion(self, tool: Any) -> Any:
        raise AssertionError(f"a promotion of {tool.id} was asked for")


def run(work: Callable[[ToolRegistry], Awaitable[T]], store: Any = None, **options: Any) -> T:
    """What an async function makes of a registry, which is closed afterwards."""

    async def use() -> T:
        async with ToolRegistry(store, **options) as registry:
            return await work(registry)

    return asyncio.run(use())


async def add(registry: ToolRegistry, name: str = "add", **more: Any) -> str:
    """The id of a tool that was forged; ``agent`` and ``session`` say where, the rest is the candidate's."""
    here = {key: more.pop(key, value) for key, value in HERE.items()}
    made = candidate(name=name, **{"source": f"function {name}() {{}}", **more})
    result = await forge(made, make_judge(), registry, allow_sandbox=True, **here)
    assert result.tool is not None, result
    return result.tool.id


async def wear(registry: ToolRegistry, ident: str, successes: int = 5, failures: int = 0) -> None:
    """Use a tool so often."""
    for place in range(successes + failures):
        await registry.record_use(ident, place < successes, 1.0)


async def raise_up(registry: ToolRegistry, ident: str, *tiers: Any) -> None:
    """Promote a tool through some tiers."""
    await wear(registry, ident)
    for tier in tiers:
        by = "grace" if tier == "shared" else None
        assert await registry.promote(ident, make_judge(), to=tier, approved_by=by)
