"""What a registry promises of its tools, in memory and beside a ledger alike."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from typing import Any

import pytest

from adjudge import ToolRegistry, UsageError
from adjudge.models import Request
from adjudge.tools import ToolRecord, forge
from kit.clock import Clock
from kit.registries import HERE, NoJudge, add, change, fail, make_judge, raise_up, refused, run, wear
from kit.tools import candidate, creation

pytestmark = pytest.mark.timed


# ---------------------------------------------------------------- tiers


def test_a_tool_rises_one_tier_at_a_time(store: str | None):
    """From its session to its agent, and only then to everybody; what it already has is no error."""

    async def go(registry: ToolRegistry) -> None:
        ident = await add(registry)
        await wear(registry, ident)
        with refused("tier"):
            await registry.promote(ident, NoJudge(), to="shared", approved_by="grace")
        await raise_up(registry, ident, "agent")
        with refused("tier"):
            await registry.promote(ident, NoJudge(), to="session")
        again = await registry.promote(ident, NoJudge(), to="agent")
        assert (again.promoted, again.because) == (False, "already")
        await raise_up(registry, ident, "shared")
        record = await registry.get(ident)
        assert (record.tier, record.approved_by, len(record.tool.verdicts)) == ("shared", "grace", 3)

    run(go, store)


@pytest.mark.parametrize("by", [None, "", "  "])
def test_sharing_needs_a_name(store: str | None, by: str | None):
    """Nobody is asked, and nothing shared, before somebody approves it by name."""

    async def go(registry: ToolRegistry) -> None:
        ident = await add(registry)
        await raise_up(registry, ident, "agent")
        with pytest.raises(UsageError, match="approve"):
            await registry.promote(ident, NoJudge(), to="shared", approved_by=by)
        assert (await registry.get(ident)).tier == "agent"

    run(go, store)


@pytest.mark.parametrize(
    ("successes", "failures", "asked"), [(4, 0, False), (4, 1, True), (5, 2, False), (8, 2, True), (0, 0, False)]
)
def test_the_panel_is_asked_from_5_uses_and_a_rate_of_0_8(
    store: str | None, successes: int, failures: int, asked: bool
):
    """Both bounds belong to it; below either, nobody is asked, and that is a result."""

    async def go(registry: ToolRegistry) -> None:
        ident = await add(registry)
        await wear(registry, ident, successes, failures)
        done = await registry.promote(ident, make_judge() if asked else NoJudge())
        assert (bool(done), done.because) == ((True, None) if asked else (False, "usage"))

    run(go, store)


def test_a_refusal_cools_down_for_10_uses_and_10_minutes_and_doubles(store: str | None):
    """Neither the uses nor the time alone bring the panel back; after every refusal both are twice as many."""
    clock, requests = Clock(), list[Request]()

    async def go(registry: ToolRegistry) -> None:
        ident = await add(registry)
        await wear(registry, ident)
        no = make_judge(raises=False, requests=requests)
        for factor in (1, 2, 4):
            assert (await registry.promote(ident, no)).because == "rejected"
            clock.pass_by(600 * factor)
            await wear(registry, ident, 10 * factor - 1)
            assert (await registry.promote(ident, NoJudge())).because == "cool_down"  # one use too few
            await wear(registry, ident, 1)
            clock.pass_by(-1)
            assert (await registry.promote(ident, NoJudge())).because == "cool_down"  # one second too early
            clock.pass_by(1)
        assert len(requests) == 3 * 2
        assert await registry.promote(ident, make_judge())
        assert (await registry.get(ident)).cooling.refusals == 0

    run(go, store, clock=clock)


def test_a_change_does_not_end_the_cool_down(store: str | None):
    """One more space in the source makes another tool, but does not bring its panel back at once."""
    clock = Clock()

    async def go(registry: ToolRegistry) -> None:
        ident = await add(registry)
        await wear(registry, ident)
        await registry.promote(ident, make_judge(raises=False))
        await change(registry, ident)
        assert await registry.review(ident, make_judge())
        await wear(registry, ident)
        assert (await registry.promote(ident, NoJudge())).because == "cool_down"

    run(go, store, clock=clock)


def test_undecided_reviewers_refuse(store: str | None):
    """A panel that says nothing readable counts as a refusal, with its cool-down."""

    async def go(registry: ToolRegistry) -> None:
        ident = await add(registry)
        await wear(registry, ident)
        done = await registry.promote(ident, make_judge(raises="perhaps"))  # type: ignore[arg-type]
        assert (done.because, (await registry.get(ident)).cooling.refusals) == ("rejected", 1)

    run(go, store)


def test_a_panel_that_takes_too_long_refuses(store: str | None):
    """A review ends before its claim does, so that two panels never meet."""

    class Slow(NoJudge):
        async def review_promotion(self, tool: Any) -> Any:
            await asyncio.sleep(60)

        async def review_creation(self, candidate: Any) -> Any:
            await asyncio.sleep(60)

    async def go(registry: ToolRegistry) -> None:
        ident = await add(registry)
        await wear(registry, ident)
        done = await registry.promote(ident, Slow())
        assert (done.because, "took longer" in done.detail) == ("rejected", True)
        await change(registry, ident)
        assert (await registry.review(ident, Slow())).refused == "rejected"

    run(go, store, claim_seconds=0.05)


# ---------------------------------------------------------------- caps and names


def test_the_cap_of_a_session_binds_every_way_in(store: str | None):
    """Registering, loading and reinstating; another session, and what has risen, are counted apart."""

    async def go(registry: ToolRegistry) -> None:
        first, second = await add(registry, "a"), await add(registry, "b")
        for ask in (registry.register(candidate(), creation(), **HERE), registry.load(candidate(), **HERE)):
            with refused("session_cap"):
                await ask
        full = await forge(candidate(), NoJudge(), registry, allow_sandbox=True, **HERE)
        assert (full.refused, full.verdict) == ("session_cap", None)
        await add(registry, "c", session="s10")
        await raise_up(registry, first, "agent")
        await add(registry, "d")
        with refused("session_cap"):  # a changed tool of the agent comes back into its session
            await change(registry, first, name="a")
        await registry.demote(second, "it lies", by="grace")
        await add(registry, "e")
        with refused("session_cap"):
            await registry.review(second, NoJudge(), by="grace")

    run(go, store, session_cap=2)


def test_the_cap_of_an_agent_binds_promotions(store: str | None):
    """Nobody is asked about a tool that would find no place; another agent's tools are counted apart."""

    async def go(registry: ToolRegistry) -> None:
        idents = [await add(registry, name, session=name) for name in ("a", "b")]
        other = await add(registry, "c", agent="bob")
        await raise_up(registry, idents[0], "agent")
        await wear(registry, idents[1])
        with refused("agent_cap"):
            await registry.promote(idents[1], NoJudge())
        await raise_up(registry, other, "agent")
        await raise_up(registry, idents[0], "shared")
        assert await registry.promote(idents[1], make_judge())

    run(go, store, agent_cap=1)


def test_a_place_is_kept_for_a_tool_under_review(store: str | None):
    """Of two tools that rise at once into the last place, one is asked about and rises."""

    async def go(registry: ToolRegistry) -> None:
        idents = [await add(registry, name) for name in ("a", "b")]
        for ident in idents:
            await wear(registry, ident)
        requests: list[Request] = []
        asked = [asyncio.create_task(registry.promote(ident, make_judge(requests=requests))) for ident in idents]
        await asyncio.wait(asked)
        assert sorted(task.exception() is None for task in asked) == [False, True]
        assert len(requests) == 2

    run(go, store, agent_cap=1)


def test_a_name_is_one_tools_where_it_is_used(store: str | None):
    """A new tool cannot take the name of one in reach; another session may have its own."""

    async def go(registry: ToolRegistry) -> None:
        ident = await add(registry)
        with refused("name"):
            await registry.load(candidate(), **HERE)
        twin = await add(registry, session="s2", source="the same name, another tool")
        await raise_up(registry, ident, "agent", "shared")
        with refused("name"):
            await registry.load(candidate(), agent="bob", session="s3")
        await wear(registry, twin)
        with refused("name"):
            await registry.promote(twin, NoJudge())

    run(go, store)


@pytest.mark.parametrize("name", ["a\0b", "n" * 201])
def test_a_name_no_store_can_hold_is_refused(name: str):
    """A model chose it, so it is refused like any bad tool."""
    refusal = run(lambda registry: forge(candidate(name=name), NoJudge(), registry, allow_sandbox=True, **HERE))

    assert (refusal.refused, bool(refusal)) == ("name", False)


# ---------------------------------------------------------------- sessions and scope


def test_sessions_are_matched_exactly(store: str | None):
    """Ending s1 leaves s10 and S1 alone, an empty name ends nothing, and what has risen stays."""

    async def go(registry: ToolRegistry) -> None:
        for name, session in (("a", "s1"), ("b", "s10"), ("c", "S1"), ("d", "s1 "), ("e", "s1")):
            await add(registry, name, session=session, source=f"x session {session}")
        kept = await add(registry, "f", source="y")
        await raise_up(registry, kept, "agent")
        for nobody in ("", " "):
            with pytest.raises(UsageError, match="not empty"):
                await registry.end_session(nobody)
        assert await registry.end_session("s%") == 0
        assert await registry.end_session("s1", agent="bob") == 0
        assert await registry.end_session("s1") == 2
        assert [item.name for item in await registry.list()] == ["b", "c", "d", "f"]

    run(go, store)


def test_a_tool_runs_where_its_tier_says(store: str | None):
    """A session's in that session of that agent, an agent's in all of them, a shared one everywhere."""

    async def go(registry: ToolRegistry) -> None:
        ident = await add(registry)
        places = [("ana", "s1"), ("ana", "s2"), ("bob", "s1")]

        async def find() -> list[bool]:
            usable = []
            for agent, session in places:
                usable.append(bool(await registry.usable(agent=agent, session=session)))
                with nullcontext() if usable[-1] else refused("scope"):
                    await registry.check(ident, agent=agent, session=session)
            return usable

        assert await find() == [True, False, False]
        await raise_up(registry, ident, "agent")
        assert await find() == [True, True, False]
        await raise_up(registry, ident, "shared")
        assert await find() == [True, True, True]

    run(go, store)


def test_lists_filter_by_whole_values(store: str | None):
    """Everything given has to match; an unknown tier is a mistake and not an empty list."""

    async def go(registry: ToolRegistry) -> None:
        first = await add(registry, "a")
        await add(registry, "b", session="s10", agent="bob")
        await raise_up(registry, first, "agent")
        assert [item.name for item in await registry.list(tier="agent")] == ["a"]
        assert [item.name for item in await registry.list(agent="bob", session="s10")] == ["b"]
        assert await registry.list(session="s1", agent="bob") == ()
        assert await registry.list(status="demoted") == ()
        with pytest.raises(UsageError, match="tier"):
            await registry.list(tier="Agent")  # type: ignore[arg-type]

    run(go, store)


# ---------------------------------------------------------------- wrong usage


def test_unknown_ids_are_said(store: str | None):
    """Every method that takes an id refuses one that nobody has, and asks nobody."""

    async def go(registry: ToolRegistry) -> None:
        for ask in (
            registry.get("x"),
            registry.check("x", **HERE),
            registry.use("x", fail, {}, **HERE),
            registry.record_use("x", True, 1.0),
            registry.record_use("x", True, 1.0, {}),
            registry.promote("x", NoJudge()),
            registry.review("x", NoJudge()),
            registry.demote("x", "it lies", by="grace"),
            registry.update("x", candidate()),
            registry.remove("x"),
        ):
            with refused("unknown"):
                await ask
        for odd in ("", "a\0b", "\ud800", "x" * 10_000, None, 7):
            with refused("unknown"):
                await registry.get(odd)  # type: ignore[arg-type]

    run(go, store)


def test_a_registry_takes_only_verdicts_that_approve_the_candidate(store: str | None):
    """Another tool's approval, a rejection and something else altogether register nothing."""

    async def go(registry: ToolRegistry) -> None:
        for verdict in (creation(candidate(source="other")), creation(approved=False), True, None):
            with pytest.raises(UsageError):
                await registry.register(candidate(), verdict, **HERE)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="not empty"):
            await registry.register(candidate(), creation(), agent="", session="s1")
        assert await registry.list() == ()

    run(go, store)


@pytest.mark.parametrize(
    "options",
    [
        {"session_cap": 0},
        {"agent_cap": True},
        {"min_uses": 0},
        {"min_success_rate": 1.1},
        {"min_success_rate": float("nan")},
        {"claim_seconds": 0},
        {"claim_seconds": float("inf")},
        {"store": 7},
        {"store": "mysql://x/y"},
    ],
    ids=str,
)
def test_numbers_that_cannot_be_are_refused_at_once(options: dict[str, Any]):
    """A registry without a cap, or with a rate of more than 1, is a mistake."""
    with pytest.raises(UsageError):
        ToolRegistry(**options)


def test_a_record_is_read_back_as_it_was(store: str | None):
    """``to_dict`` and ``from_dict`` agree, with uses, refusals, claims and every verdict."""

    async def go(registry: ToolRegistry) -> None:
        ident = await add(registry)
        await wear(registry, ident)
        await registry.promote(ident, make_judge(raises=False))
        record = await registry.get(ident)
        assert ToolRecord.from_dict(record.to_dict()).to_dict() == record.to_dict()
        for broken in ({}, {**record.to_dict(), "status": "odd"}, {**record.to_dict(), "cooling": None}):
            with pytest.raises(UsageError):
                ToolRecord.from_dict(broken)

    run(go, store)
