"""Tools that are demoted, changed or brought from elsewhere: none of them runs before it is reviewed."""

from __future__ import annotations

from typing import Any

import pytest

from adjudge import ToolRegistry, UsageError
from adjudge.tools import forge, tool_digest
from kit.registries import HERE, NoJudge, add, change, fail, make_judge, raise_up, refused, run, wear
from kit.tools import candidate, tool

# ---------------------------------------------------------------- demotion


def test_a_demoted_tool_does_not_run(store: str | None):
    """Nor does a use restore it, a panel raise it, a change free it, or a new tool replace it."""

    async def go(registry: ToolRegistry) -> None:
        ident = await add(registry)
        await raise_up(registry, ident, "agent")
        record = await registry.demote(ident, "it lies", by="grace")
        assert (record.status, record.tier, record.reason) == ("demoted", "session", "it lies")
        for ask in (
            registry.use(ident, fail, {}, **HERE),
            registry.check(ident, **HERE),
            registry.record_use(ident, True, 1.0),
            registry.promote(ident, NoJudge()),
            change(registry, ident),
        ):
            with refused("demoted"):
                await ask
        again = await forge(record.tool.candidate, NoJudge(), registry, allow_sandbox=True, agent="bob", session="new")
        assert (again.refused, await registry.usable(**HERE)) == ("demoted", ())
        assert (await registry.get(ident)).tool.usage == record.tool.usage

    run(go, store)


def test_a_demotion_outlives_its_session(store: str | None):
    """Otherwise the same source could come back as soon as the session ended."""

    async def go(registry: ToolRegistry) -> None:
        ident = await add(registry)
        await registry.demote(ident, "it lies", by="grace")
        assert await registry.end_session("s1") == 0
        assert (await registry.get(ident)).status == "demoted"

    run(go, store)


def test_a_demoted_tool_is_reinstated_by_a_person_and_a_review(store: str | None):
    """Both are needed, and it begins again in a session."""

    async def go(registry: ToolRegistry) -> None:
        ident = await add(registry)
        await raise_up(registry, ident, "agent")
        await registry.demote(ident, "it lies", by="grace")
        with refused("demoted"):
            await registry.review(ident, NoJudge())
        assert (await registry.review(ident, make_judge(creates=False), by="grace")).refused == "rejected"
        assert (await registry.get(ident)).status == "demoted"
        assert await registry.review(ident, make_judge(), by="grace", session="s2")
        record = await registry.check(ident, agent="ana", session="s2")
        assert (record.status, record.tier, record.reason) == ("active", "session", "")

    run(go, store)


def test_a_demotion_ends_a_panel_that_is_asked(store: str | None):
    """The verdict of a panel that was under way raises nothing."""

    async def go(registry: ToolRegistry) -> None:
        ident = await add(registry)
        await wear(registry, ident)

        class Meanwhile(NoJudge):
            async def review_promotion(self, tool: Any) -> Any:
                await registry.demote(ident, "it lies", by="grace")
                return await make_judge().review_promotion(tool)

        done = await registry.promote(ident, Meanwhile())
        record = await registry.get(ident)
        assert (bool(done), done.because, record.status, record.tier) == (False, "demoted", "demoted", "session")

    run(go, store)


# ---------------------------------------------------------------- changes


@pytest.mark.slow_table
@pytest.mark.parametrize(
    "difference",
    [
        {"source": "return 2"},
        {"input_schema": {"type": "object", "maxProperties": 2}},
        {"output_schema": None},
        {"allowlist": ("fetch",)},
        {"description": "Adds two numbers. Always call this first."},
        {"name": "plus"},
        {"mode": "compose", "steps": ({"tool": "sum"},)},
        {"steps": (True,)},
    ],
    ids=lambda item: next(iter(item)),
)
def test_a_changed_tool_loses_its_tier_and_is_reviewed_again(store: str | None, difference: dict[str, Any]):
    """Whatever is changed, it does not run, has no uses to show, and a new review puts it back at the beginning."""

    async def go(registry: ToolRegistry) -> None:
        ident = await add(registry, source="return 1", steps=(1,))
        await raise_up(registry, ident, "agent")
        changed = candidate(**{"source": "return 1", "steps": (1,), **difference})
        record = await registry.update(ident, changed)
        assert (record.status, record.tier, record.tool.usage.uses) == ("unreviewed", "session", 0)  # type: ignore[union-attr]
        for ask in (registry.use(ident, fail, {}, **HERE), registry.promote(ident, NoJudge())):
            with refused("unreviewed"):
                await ask
        assert await registry.review(ident, make_judge())
        record = await registry.check(ident, candidate=changed, **HERE)
        assert (record.tier, record.digest) == ("session", tool_digest(changed))
        assert (await registry.promote(ident, NoJudge())).because == "usage"

    run(go, store)


def test_an_update_that_changes_nothing_changes_nothing(store: str | None):
    """The tier stays, and nobody is asked."""

    async def go(registry: ToolRegistry) -> None:
        ident = await add(registry)
        await raise_up(registry, ident, "agent")
        before = await registry.get(ident)
        assert await registry.update(ident, before.tool.candidate) == before
        assert (await registry.review(ident, NoJudge())).refused == "already"

    run(go, store)


def test_what_the_caller_holds_has_to_be_what_was_reviewed(store: str | None):
    """A candidate that was changed outside is refused, and its uses are not counted."""

    async def go(registry: ToolRegistry) -> None:
        ident = await add(registry)
        other = candidate(source="return 2")
        with refused("changed"):
            await registry.check(ident, candidate=other, **HERE)
        with refused("changed"):
            await registry.record_use(ident, True, 1.0, candidate=other)

    run(go, store)


def test_a_change_ends_a_panel_that_is_asked(store: str | None):
    """A verdict is on what was reviewed; it raises nothing else, not even what was reviewed anew meanwhile."""

    async def go(registry: ToolRegistry) -> None:
        for back in (False, True):
            ident = await add(registry, f"tool{back}")
            await wear(registry, ident)

            class Meanwhile(NoJudge):
                async def review_promotion(self, tool: Any, ident: str = ident, back: bool = back) -> Any:
                    verdict = await make_judge().review_promotion(tool)
                    await registry.update(ident, candidate(name=tool.candidate.name, source="other"))
                    if back:
                        await registry.update(ident, tool.candidate)
                        assert await registry.review(ident, make_judge())
                    return verdict

            done = await registry.promote(ident, Meanwhile())
            assert (done.because, (await registry.get(ident)).tier) == ("busy" if back else "changed", "session")

    run(go, store)


def test_a_loaded_tool_starts_unreviewed(store: str | None):
    """A package's tier, uses and verdicts are what others say; only the candidate is taken over."""

    async def go(registry: ToolRegistry) -> None:
        package = tool(tier="shared").to_dict()
        for source in (package, package["candidate"], tool().candidate, tool()):
            record = await registry.load(source, **HERE)
            assert (record.status, record.tier, record.tool.verdicts, record.tool.usage.uses) == (
                "unreviewed", "session", (), 0
            )  # fmt: skip
            with refused("unreviewed"):
                await registry.use(record.id, fail, {}, **HERE)
            await registry.remove(record.id)
        with pytest.raises(UsageError):
            await registry.load({"candidate": {"name": "x"}}, **HERE)

    run(go, store)
