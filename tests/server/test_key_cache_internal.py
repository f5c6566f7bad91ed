"""What a server remembers of keys, and when it asks the database again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import pytest

from adjudge import Ledger
from adjudge.formats.times import get_now
from adjudge.server import key_cache
from adjudge.server.key_cache import REMEMBERED_SECONDS, KeyCache
from adjudge.server.keys import ApiKey, create_key, find_key, revoke_key
from adjudge.server.permissions import make_permissions


class Clock:
    """Seconds that pass only when a test says so."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def play(tmp_path: Path, work: Callable[[Ledger, KeyCache, Clock], Awaitable[object]]) -> None:
    """Run something with an empty memory beside a ledger."""

    async def use() -> None:
        async with Ledger(tmp_path / "adjudge.db") as ledger:
            clock = Clock()
            await work(ledger, KeyCache(ledger, clock), clock)

    asyncio.run(use())


async def make(ledger: Ledger, **more: object) -> tuple[ApiKey, str]:
    return await create_key(ledger, name="ci", permissions=make_permissions(["judge"]), **more)  # type: ignore[arg-type]


def test_a_key_is_asked_for_once_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Within it the database is not asked, and another process that revokes the key is heard after it."""
    asked = []

    async def count(ledger: Ledger, text: str) -> ApiKey | None:
        asked.append(text)
        return await find_key(ledger, text)

    monkeypatch.setattr(key_cache, "find_key", count)

    async def work(ledger: Ledger, memory: KeyCache, clock: Clock) -> None:
        key, text = await make(ledger)
        assert [await memory.find(text) for _ in range(5)] == [key] * 5
        assert len(asked) == 1
        await revoke_key(ledger, key.prefix)
        assert await memory.find(text) == key
        clock.now = REMEMBERED_SECONDS
        assert await memory.find(text) is None

    play(tmp_path, work)


def test_a_key_expires_also_while_it_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Its end is compared with the clock at every request."""

    async def work(ledger: Ledger, memory: KeyCache, clock: Clock) -> None:
        ends = get_now() + timedelta(hours=1)
        key, text = await make(ledger, expires_at=ends)
        assert await memory.find(text) == key
        monkeypatch.setattr(key_cache, "get_now", lambda: ends)
        assert await memory.find(text) is None

    play(tmp_path, work)


def test_what_is_no_key_is_not_remembered(tmp_path: Path):
    """However many are tried; and a key that is made afterwards is found."""

    async def work(ledger: Ledger, memory: KeyCache, clock: Clock) -> None:
        key, text = await make(ledger)
        for number in range(100):
            assert await memory.find(f"{text[:17]}{number:043}") is None
        assert await memory.find("\ud800") is None
        assert await memory.find(text) == key
        other, more = await make(ledger)
        assert await memory.find(more) == other

    play(tmp_path, work)
