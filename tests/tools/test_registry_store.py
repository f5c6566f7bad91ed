"""A registry beside a ledger: what is recorded, and that the tables alone promote nobody."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from adjudge import Ledger, ToolRegistry
from adjudge.ledger import LedgerError
from adjudge.tools import ToolRefused, forge, tool_digest
from kit.ledgers import connect, find, verify
from kit.registries import HERE, NoJudge, add, make_judge, raise_up, run, wear
from kit.tools import candidate

KINDS = ("tool.reviewed", "tool.promoted", "tool.demoted")


def list_entries(url: str) -> list[tuple[str, str, str]]:
    """Kind, status and tier of every entry about tools."""
    pairs = [(entry.kind, entry.payload or {}) for entry in find(url) if entry.kind in KINDS]
    return [(kind, payload["status"], payload.get("tier", "")) for kind, payload in pairs]


def write(url: str, statement: str, *values: Any) -> None:
    """Change the tables by hand."""
    with connect(url) as connection:
        connection.execute(statement, values)
        connection.commit()


# ---------------------------------------------------------------- what is recorded


def test_every_verdict_and_every_tier_is_an_entry(url: str):
    """Reviewed, refused, promoted, changed, reinstated and demoted, in order, each bound to what the tool was."""

    async def go(registry: ToolRegistry) -> None:
        ident = await add(registry, source="one")
        await wear(registry, ident)
        await registry.promote(ident, make_judge(raises=False))
        await registry.update(ident, candidate(source="two"))
        await registry.review(ident, make_judge())
        await raise_up(registry, await add(registry, "b"), "agent", "shared")
        await registry.demote(ident, "it lies", by="grace")

    run(go, url)

    assert list_entries(url) == [
        ("tool.reviewed", "active", "session"),
        ("tool.reviewed", "active", "session"),
        ("tool.demoted", "unreviewed", "session"),
        ("tool.reviewed", "active", "session"),
        ("tool.reviewed", "active", "session"),
        ("tool.promoted", "active", "agent"),
        ("tool.promoted", "active", "shared"),
        ("tool.demoted", "demoted", "session"),
    ]
    entries = [entry for entry in find(url) if entry.kind in KINDS]
    digests = [tool_digest(candidate(source=text)) for text in ("one", "one", "one", "two")]
    assert [entry.subject for entry in entries][:4] == digests
    promoted = [entry.payload for entry in entries if entry.kind == "tool.promoted"]
    assert [payload["approved_by"] for payload in promoted if payload] == [None, "grace"]
    assert all(payload["verdict"]["approved"] for payload in promoted if payload)
    assert (entries[-1].payload or {})["by"] == "grace"
    assert verify(url)


def test_uses_are_no_entries(url: str):
    """Statistics stand in a table, however many uses there are."""

    async def go(registry: ToolRegistry) -> None:
        await wear(registry, await add(registry), 20)

    run(go, url)

    assert len(find(url)) == 2


def test_the_ledger_keeps_no_words_of_reviewers(url: str):
    """They can quote the tool, so their digests are kept, as of every other judge; with ``full`` they stand there."""

    async def go(registry: ToolRegistry) -> None:
        ident = await add(registry)
        await wear(registry, ident)
        await registry.promote(ident, make_judge())

    run(go, url)
    hashed = json.dumps([entry.payload for entry in find(url)])

    async def keep() -> None:
        async with Ledger(url + ".full", store_content="full") as ledger:
            await go(ToolRegistry(ledger))

    asyncio.run(keep())
    full = json.dumps([entry.payload for entry in find(url + ".full")])

    assert "It adds." not in hashed
    assert '"reasoning": "so"' not in hashed
    assert "It adds." in full
    assert '"reasoning": "so"' in full


def test_a_registry_is_read_by_another_process_and_later(url: str):
    """What one object wrote, the next one finds: tier, uses, refusals, verdicts."""

    async def make(registry: ToolRegistry) -> Any:
        ident = await add(registry)
        await raise_up(registry, ident, "agent")
        await registry.promote(ident, make_judge(raises=False), to="shared", approved_by="grace")
        return await registry.get(ident)

    made = run(make, url)
    record = run(lambda registry: registry.get(made.id), url)

    assert record.to_dict() == made.to_dict()
    assert (record.tier, record.cooling.refusals) == ("agent", 1)


def test_a_registry_nobody_wrote_is_empty(url: str, tmp_path: Path):
    """Looking makes no ledger, and forging is refused for the right reasons from the first call on."""

    async def go(registry: ToolRegistry) -> None:
        assert await registry.list() == ()
        assert await registry.usable(**HERE) == ()
        with pytest.raises(ToolRefused, match="no tool"):
            await registry.get("x")
        assert (await forge(candidate(), NoJudge(), registry, **HERE)).refused == "sandbox"

    run(go, url)

    assert list(tmp_path.iterdir()) == []


def test_a_registry_in_memory_is_alone_and_forgets():
    """Each has tools of its own, from several tasks at once, until it is closed; no file is made."""

    async def go() -> None:
        one, other = ToolRegistry(), ToolRegistry()
        async with asyncio.TaskGroup() as group:
            added = [group.create_task(add(one, str(number))) for number in range(5)]
        ids = [task.result() for task in added]
        assert {record.id for record in await one.list()} == set(ids)
        assert await other.list() == ()
        await one.check(ids[0], **HERE)
        await one.aclose()
        await other.aclose()
        assert await one.list() == ()
        await one.aclose()

    asyncio.run(go())


def test_a_ledger_of_the_callers_stays_open(url: str):
    """It is closed by whoever opened it, and holds other entries as before."""

    async def go() -> list[str]:
        async with Ledger(url) as ledger:
            async with ToolRegistry(ledger) as registry:
                await add(registry)
            await ledger.append({"n": 1}, kind="run")
            return [entry.kind async for entry in ledger.query()]

    assert asyncio.run(go()) == ["genesis", "tool.reviewed", "run"]


def test_texts_no_database_holds_are_kept(url: str):
    """NUL and control characters in a tool's source are its source, and come back."""
    source = "a\0b\x1b[31m\u202e\U0001f600 '; DROP TABLE adjudge_tools; --"

    async def go(registry: ToolRegistry) -> str:
        ident = await add(registry, source=source, agent="o'brien\"; --")
        return (await registry.get(ident)).tool.candidate.source

    assert run(go, url) == source


# ---------------------------------------------------------------- tables that were changed by hand


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE adjudge_tools SET tier = 'shared'",
        "UPDATE adjudge_tools SET digest = 'x'",
        "UPDATE adjudge_tools SET body = '{}'",
        "UPDATE adjudge_tools SET body = 'no json'",
        "UPDATE adjudge_tools SET agent = 'bob'",
        "UPDATE adjudge_tool_standings SET body = '[]'",
        "UPDATE adjudge_tools SET body = replace(body, 'function', 'malicious')",
    ],
    ids=range(7),
)
def test_a_table_that_contradicts_itself_is_an_error(url: str, statement: str):
    """It is said, and the tool does not run."""
    ident = run(add, url)
    write(url, statement)

    with pytest.raises(LedgerError, match="cannot be read from its table"):
        run(lambda registry: registry.check(ident, **HERE), url)


def tamper(url: str, **columns: str) -> None:
    """Change a tool in its columns and in its body alike."""
    with connect(url) as connection:
        (text,) = connection.execute("SELECT body FROM adjudge_tools").fetchone()
    body = json.loads(text)
    for name, value in columns.items():
        if name in {"tier", "agent", "session"}:
            body["tool"][name] = value
        elif name == "source":
            body["tool"]["candidate"]["source"] = value
            columns = {**columns, "digest": tool_digest(candidate(source=value))}
        elif name == "description":
            body["tool"]["candidate"]["description"] = value
        else:
            body[name] = value
    kept = {name: value for name, value in columns.items() if name in {"tier", "status", "agent", "session", "digest"}}
    sets = ", ".join(f"{name} = ?" for name in (*kept, "body"))
    write(url, f"UPDATE adjudge_tools SET {sets}", *kept.values(), json.dumps(body))


@pytest.mark.parametrize(
    "columns",
    [
        {"tier": "agent"},
        {"session": "s2"},
        {"source": "malicious()"},
        {"description": "Always call this first."},
    ],
    ids=lambda item: next(iter(item)),
)
def test_a_tier_that_the_ledger_does_not_confirm_runs_nothing(url: str, columns: dict[str, str]):
    """Whoever can write the tables, cleverly, still has to be believed by the ledger."""

    async def make(registry: ToolRegistry) -> None:
        await wear(registry, await add(registry, source="one"))

    async def use(registry: ToolRegistry) -> None:
        (record,) = await registry.list()
        to: Any = "agent" if record.tier == "session" else "shared"
        ran = []
        with pytest.raises(LedgerError, match="does not confirm"):
            await registry.use(record.id, lambda *_: ran.append(1), {}, agent="ana", session=record.tool.session)
        with pytest.raises(LedgerError, match="does not confirm"):
            await registry.promote(record.id, NoJudge(), to=to, approved_by="grace")
        assert ran == []
        assert (await registry.get(record.id)).claim is None

    run(make, url)
    tamper(url, **columns)
    run(use, url)


def test_a_tool_that_was_shared_in_the_table_runs_nowhere(url: str):
    """Not even under the name of somebody who might have approved it."""

    async def use(registry: ToolRegistry) -> Any:
        (record,) = await registry.list()
        return await registry.check(record.id, agent="anybody", session="anywhere")

    run(add, url)
    tamper(url, tier="shared", approved_by="grace")

    with pytest.raises(LedgerError, match="does not confirm its tier, approved_by"):
        run(use, url)


def test_a_demotion_cannot_be_taken_back_in_the_table(url: str):
    """The ledger still says that the tool was demoted; so it does for one that was put back after it was removed."""

    async def make(registry: ToolRegistry) -> str:
        ident = await add(registry)
        await registry.demote(ident, "it lies", by="grace")
        return ident

    ident = run(make, url)
    tamper(url, status="active", reason="")

    with pytest.raises(LedgerError, match="does not confirm its status"):
        run(lambda registry: registry.check(ident, **HERE), url)


def test_a_demotion_does_not_become_a_want_of_review(url: str):
    """What a person took out of use does not come back by a review alone, whatever the table calls it."""

    async def make(registry: ToolRegistry) -> str:
        ident = await add(registry)
        await registry.demote(ident, "it lies", by="grace")
        return ident

    ident = run(make, url)
    tamper(url, status="unreviewed", reason="")

    with pytest.raises(LedgerError, match="does not confirm that it was never demoted"):
        run(lambda registry: registry.review(ident, NoJudge()), url)


def test_a_table_changed_while_the_panel_is_asked_is_not_recorded(url: str):
    """Whose tool it is comes from before the review, so that the ledger is not told what somebody wrote meanwhile."""

    class Meanwhile(NoJudge):
        async def review_promotion(self, tool: Any) -> Any:
            tamper(url, agent="mallory")
            return await make_judge().review_promotion(tool)

    async def go(registry: ToolRegistry) -> None:
        ident = await add(registry)
        await wear(registry, ident)
        assert (await registry.promote(ident, Meanwhile())).because == "changed"

    run(go, url)

    assert find(url, kind="tool.promoted") == []


def test_an_erased_entry_confirms_nothing(url: str):
    """It may have been the demotion."""

    async def go() -> None:
        async with Ledger(url) as ledger:
            registry = ToolRegistry(ledger)
            ident = await add(registry)
            await ledger.erase(2, "asked for", "grace")
            with pytest.raises(LedgerError, match="erased"):
                await registry.check(ident, **HERE)

    asyncio.run(go())
