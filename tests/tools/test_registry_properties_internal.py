"""What holds of a registry after any sequence of anything, and of the pure decisions behind it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from adjudge import ToolRegistry, UsageError
from adjudge.tools import (
    TIERS,
    Claim,
    Cooldown,
    CreationVerdict,
    PromotionVerdict,
    ToolRecord,
    ToolRefused,
    ToolUsage,
    forge,
)
from adjudge.tools.promotion import compute_cool_down, find_promotion_obstacle
from adjudge.tools.registry_obstacles import RegistryLimits, find_use_obstacle
from kit.clock import Clock
from kit.environment import FULL
from kit.registries import make_judge
from kit.tools import candidate, tool

NAMES, AGENTS, SESSIONS = ("a", "b", "c", "d", "e"), ("ana", "bob"), ("s1", "s10")
SESSION_CAP, AGENT_CAP = 2, 1
NOW = datetime(2026, 11, 20, tzinfo=UTC)

whose = {"agent": st.sampled_from(AGENTS), "session": st.sampled_from(SESSIONS)}
place = st.integers(0, 20)
flags = st.booleans()


class Registry(RuleBasedStateMachine):
    """Forges, uses, promotes, changes, demotes and removes, in any order, with reviewers that say anything."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.registry = ToolRegistry(
            session_cap=SESSION_CAP, agent_cap=AGENT_CAP, min_uses=2, min_success_rate=0.5, clock=self.clock
        )
        for name in NAMES[:2]:
            self.forge(name, "x", approves=True, agent="ana", session="s1")

    def do(self, work: Awaitable[Any]) -> Any:
        """What comes of a step; a refusal is one of the things that may come of it."""

        async def wait() -> Any:
            with suppress(ToolRefused):
                return await work

        return asyncio.run(wait())

    def pick(self, number: int) -> str:
        """The id of some tool, or one that nobody has."""
        records = self.do(self.registry.list())
        return records[number % len(records)].id if records else "nobody"

    @rule(name=st.sampled_from(NAMES), source=st.sampled_from("xyz"), approves=flags, **whose)
    def forge(self, name: str, source: str, approves: bool, agent: str, session: str) -> None:
        made = candidate(name=name, source=source)
        judge = make_judge(creates=approves)
        done = self.do(forge(made, judge, self.registry, agent=agent, session=session, allow_sandbox=True))
        assert approves or not done

    @rule(name=st.sampled_from(NAMES), **whose)
    def load(self, name: str, agent: str, session: str) -> None:
        self.do(self.registry.load(candidate(name=name), agent=agent, session=session))

    @rule(number=place, successes=st.lists(flags, max_size=5))
    def use(self, number: int, successes: list[bool]) -> None:
        for success in successes:
            self.do(self.registry.record_use(self.pick(number), success, 1.0))

    @rule(
        number=place,
        approves=flags,
        to=st.sampled_from(TIERS),
        by=st.sampled_from([None, "grace"]),
    )
    def promote(self, number: int, approves: bool, to: Any, by: str | None) -> None:
        done = self.do(self.registry.promote(self.pick(number), make_judge(raises=approves), to=to, approved_by=by))
        assert approves or not done

    @rule(number=place)
    def raise_to_agent(self, number: int) -> None:
        records = [item for item in self.do(self.registry.list(status="active")) if item.tier != "shared"]
        if not records:
            return
        record = records[number % len(records)]
        for _ in range(2):
            self.do(self.registry.record_use(record.id, True, 1.0))
        to = TIERS[TIERS.index(record.tier) + 1]
        self.do(self.registry.promote(record.id, make_judge(), to=to, approved_by="grace"))

    @rule(number=place, source=st.sampled_from("xyz"), session=st.sampled_from((None, *SESSIONS)))
    def update(self, number: int, source: str, session: str | None) -> None:
        records = self.do(self.registry.list())
        if records:
            record = records[number % len(records)]
            self.do(self.registry.update(record.id, replace(record.tool.candidate, source=source), session=session))

    @rule(number=place, approves=flags, by=st.sampled_from([None, "grace"]), session=st.sampled_from((None, *SESSIONS)))
    def review(self, number: int, approves: bool, by: str | None, session: str | None) -> None:
        self.do(self.registry.review(self.pick(number), make_judge(creates=approves), by=by, session=session))

    @rule(number=place)
    def demote(self, number: int) -> None:
        ident = self.pick(number)
        if self.do(self.registry.demote(ident, "it lies", by="grace")) is not None:
            assert asyncio.run(self.registry.get(ident)).status == "demoted"

    @rule(session=st.sampled_from((*SESSIONS, "s", "s100", "s1 ")), agent=st.sampled_from((None, *AGENTS)))
    def end_session(self, session: str, agent: str | None) -> None:
        self.do(self.registry.end_session(session, agent=agent))

    @rule(minutes=st.integers(0, 30))
    def wait(self, minutes: int) -> None:
        self.clock.pass_by(60 * minutes)

    @invariant()
    def caps_hold(self) -> None:
        counted = [item for item in self.do(self.registry.list()) if item.status != "demoted"]
        sessions = Counter(item.tool.session for item in counted if item.tier == "session")
        agents = Counter(item.tool.agent for item in counted if item.tier == "agent")
        assert all(number <= SESSION_CAP for number in sessions.values())
        assert all(number <= AGENT_CAP for number in agents.values())

    @invariant()
    def what_runs_was_approved_as_it_is(self) -> None:
        for item in self.do(self.registry.list()):
            own = item.tool.current_verdicts
            made = [verdict for verdict in own if isinstance(verdict, CreationVerdict)]
            risen = [verdict for verdict in own if isinstance(verdict, PromotionVerdict) and verdict.approved]
            steps = {"session": 0, "agent": 1, "shared": 2}[item.tier]
            assert item.status == "active" or steps == 0
            assert item.status != "active" or made[-1].approved
            assert len(risen) >= steps
            assert (item.tier == "shared") == (item.approved_by is not None)

    @invariant()
    def names_are_one_tools_on_a_tier(self) -> None:
        counted = [item for item in self.do(self.registry.list()) if item.status != "demoted"]
        scope = {"session": lambda item: item.tool.session, "agent": lambda item: item.tool.agent, "shared": str}
        places = [(item.name, item.tier, scope[item.tier](item) if item.tier != "shared" else "") for item in counted]
        assert len(places) == len(set(places))


TestRegistry = Registry.TestCase
TestRegistry.settings = settings(max_examples=100 if FULL else 12, stateful_step_count=30, deadline=None)
TestRegistry.pytestmark = [pytest.mark.slow]


# ---------------------------------------------------------------- decisions


def make_record(uses: int = 10, successes: int = 10, **more: Any) -> ToolRecord:
    """A tool that was used so often."""
    usage = ToolUsage(uses=uses, successes=successes, failures=uses - successes)
    return ToolRecord(tool=tool(usage=usage, tier=more.pop("tier", "session")), **more)


def may_rise(record: ToolRecord, now: datetime = NOW) -> str | None:
    """Why a tool may not rise now."""
    obstacle = find_promotion_obstacle(
        record, "agent", approved_by=None, neighbours=[], limits=RegistryLimits(), now=now
    )
    return obstacle.because if obstacle is not None else None


@given(uses=st.integers(0, 60), share=st.floats(0, 1))
def test_uses_and_rate_decide_together(uses: int, share: float):
    """At least 5 uses, and at least four of five successful: exactly then, in whole numbers."""
    successes = round(uses * share)

    assert (may_rise(make_record(uses, successes)) is None) == (uses >= 5 and 5 * successes >= 4 * uses)


@given(refusals=st.integers(1, 12), uses=st.integers(0, 50_000), seconds=st.integers(-10, 5_000_000))
def test_cooling_needs_the_uses_and_the_time(refusals: int, uses: int, seconds: int):
    """10 uses and 10 minutes, doubled with each refusal; neither replaces the other."""
    record = make_record(cooling=Cooldown(refusals=refusals, uses=uses, since=NOW))
    over = uses >= 10 * 2 ** (refusals - 1) and seconds >= 600 * 2 ** (refusals - 1)

    assert (may_rise(record, NOW + timedelta(seconds=seconds)) is None) == over


@given(refusals=st.integers(0, 10**6))
def test_cooling_can_always_be_computed(refusals: int):
    """However often a tool was refused, there is a date; it never comes nearer."""
    uses, pause = compute_cool_down(refusals)
    more_uses, longer = compute_cool_down(refusals + 1)

    assert NOW + pause >= NOW
    assert (more_uses, longer) >= (uses, pause)


@given(seconds=st.integers(-10, 10))
def test_a_claim_ends_by_itself(seconds: int):
    """Until its time it blocks, from then on it does not."""
    record = make_record(claim=Claim(token="t", until=NOW))

    assert may_rise(record, NOW + timedelta(seconds=seconds)) == ("busy" if seconds < 0 else None)


@given(agent=st.text(max_size=4), session=st.text(max_size=4), tier=st.sampled_from(["session", "agent", "shared"]))
def test_scope_is_equality(agent: str, session: str, tier: Any):
    """No part, prefix, case or empty name of an agent or a session is that agent or session."""
    record = make_record(tier=tier, **({"approved_by": "grace"} if tier == "shared" else {}))
    own = (agent == "ana", session == "s1")

    here = find_use_obstacle(record, agent=agent, session=session) is None
    assert here == {"session": all(own), "agent": own[0], "shared": True}[tier]


@pytest.mark.parametrize(
    "wrong", [{"status": "demoted", "tier": "agent"}, {"tier": "shared"}, {"approved_by": "grace"}], ids=range(3)
)
def test_a_record_cannot_say_what_no_review_gave(wrong: dict[str, str]):
    """A tier without a review, or a share without a name, is no value at all."""
    with pytest.raises(UsageError):
        make_record(**wrong)
