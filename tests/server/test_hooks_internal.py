"""The guards of a server: one of each kind on each loop, and an end to observing while the server runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")

from adjudge import Gate, Ledger, UsageError
from adjudge.config.file import read_config
from adjudge.config.hook import GuardMaker, read_hook_settings
from adjudge.guards import ToolCall
from adjudge.server.hooks import ServerHooks, open_hooks
from adjudge.server.problem import Problem

CONFIG = """
[hook]
tools = {"Bash" = "shell"}

[ledger]
url = "sqlite:///adjudge.db"
"""


def use(tmp_path: Path, work: Callable[[ServerHooks], Awaitable[Any]], more: str = "", **changed: Any) -> Any:
    """What a function makes of a server's hooks, with some settings changed after they were read."""
    file = tmp_path / "adjudge.toml"
    file.write_text(CONFIG.replace("\n\n[ledger]", f"\n{more}\n[ledger]"), encoding="utf-8")

    async def go() -> Any:
        config = read_config(file)
        async with Ledger(f"sqlite:///{tmp_path / 'adjudge.db'}") as ledger:
            gate = Gate("shell", rules=[{"not_contains": "curl"}], ledger=ledger)
            settings = replace(read_hook_settings(config), **changed)
            maker = GuardMaker(config=config, settings=settings, ledger=ledger, find_gate=lambda _name: gate)
            return await work(ServerHooks(config, settings, maker))

    return asyncio.run(go())


def test_observing_ends_while_the_server_runs(tmp_path: Path):
    """Its configuration was read when the end was still to come; from then on nothing is allowed."""
    today = f'mode = "observe"\nuntil = {datetime.now(UTC).date()}'

    async def work(hooks: ServerHooks) -> int:
        for find in (hooks.find_guard, lambda: hooks.find_hook("codex", is_local=True)):
            with pytest.raises(Problem) as caught:
                find()
        return caught.value.status_code

    assert use(tmp_path, work, today, until=date(2020, 1, 1)) == 503


def test_who_observes_lets_through_what_would_be_refused(tmp_path: Path):
    """On the record, and not what protects the guard itself."""
    today = f'mode = "observe"\nuntil = {datetime.now(UTC).date()}'

    async def work(hooks: ServerHooks) -> list[bool]:
        made = hooks.find_guard()
        calls = [ToolCall(tool, {"command": "ls"}, "c1", "r1") for tool in ("Bash", "Unknown")]
        own = ToolCall("Edit", {"path": str(tmp_path / "adjudge.toml")}, "c2", "r1")
        return [bool(await made.guard.check(call)) or await made.lets_through(call) for call in (*calls, own)]

    assert use(tmp_path, work, today) == [True, True, False]


def test_a_guard_is_made_once_for_each_loop(tmp_path: Path):
    """Its locks belong to one loop, and a large request is handled on another."""

    async def work(hooks: ServerHooks) -> tuple[bool, bool]:
        guards: list[Any] = []

        async def find() -> None:
            guards.append(hooks.find_guard())

        thread = threading.Thread(target=lambda: asyncio.run(find()))
        thread.start()
        await asyncio.to_thread(thread.join)
        return hooks.find_guard() is hooks.find_guard(), guards[0] is hooks.find_guard()

    assert use(tmp_path, work) == (True, False)


@pytest.mark.parametrize(
    "more", ['unsafe = ["x"', 'pending = "defer"', 'protects = ["guard"]', 'home = "ana"', "[hook.server]\nkey = 1"]
)
def test_what_no_guard_can_be_made_of_is_said_at_the_start(tmp_path: Path, more: str):
    """And not to the first agent that asks."""
    with pytest.raises(UsageError):
        use(tmp_path, lambda _hooks: asyncio.sleep(0), more)


def test_a_gate_that_is_not_there_is_said_at_the_start(tmp_path: Path):
    """With those that are."""
    (tmp_path / "adjudge.toml").write_text(CONFIG, encoding="utf-8")
    config = read_config(tmp_path / "adjudge.toml")

    with pytest.raises(UsageError) as caught:
        open_hooks(config, Ledger(f"sqlite:///{tmp_path / 'adjudge.db'}"), {})
    assert caught.value.argument == "hook"


def test_a_table_for_clients_alone_guards_nothing(tmp_path: Path):
    """It says which server a hook asks, and not by what gates."""
    server = '[hook.server]\naddress = "unix:/run/adjudge/hook.sock"\nkey = "/key"\n'
    (tmp_path / "adjudge.toml").write_text(
        server + CONFIG.partition("[hook]")[2].partition("\n\n")[2], encoding="utf-8"
    )

    assert (
        open_hooks(read_config(tmp_path / "adjudge.toml"), Ledger(f"sqlite:///{tmp_path / 'adjudge.db'}"), {}) is None
    )
