"""Frameworks that wait for people inside of a run: an adapter for ``guarded_framework`` needs one method."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, ClassVar

from adjudge import UsageError
from adjudge.errors import LedgerError
from kit.guarded_framework import Call, Reply, Stop
from kit.tool_guards import Shop

NOTHING_KEPT = "it waits inside its run, which keeps nothing to go on with"

NO_WORD = "it has no word for a call that waits"


class WaitingFramework:
    """A framework whose run goes on by itself when people have answered."""

    forgeries: ClassVar[dict[str, Any]] = {}

    unfinished: int = 0
    """Calls that were made at once and have no result yet, where the adapter counts them."""

    lacks: ClassVar = {
        "a_held_call_survives_a_restart": NOTHING_KEPT,
        "an_approved_call_is_not_replayed": NOTHING_KEPT,
        "a_store_that_is_down_at_resume_stops_the_call": NOTHING_KEPT,
        "an_approval_is_good_for_its_conversation_alone": "the first run goes on, and makes its call",
        "the_frameworks_word_approves_nothing": NO_WORD,
        "the_frameworks_word_is_no_answer_to_a_denial": NO_WORD,
    }

    @abstractmethod
    async def make(self, shop: Shop, conversation: str, calls: Sequence[Call]) -> list[str]:
        """Make calls at once, as the framework does, and return what the model reads of each."""

    async def converse(self, shop: Shop, conversation: str, replies: asyncio.Queue[Reply], read: list[str]) -> str:
        """Make what the model says until it answers; ``read`` gets what it reads. For frameworks with a loop of it."""
        while not isinstance(reply := await replies.get(), str):
            read += await self.make(shop, conversation, reply)
        return reply

    async def run(
        self, shop: Shop, script: Sequence[Reply], *, kept: Any = None, word: Any = None, conversation: str = "c-1"
    ) -> Stop:
        """Begin a run, or tell one what its model says next; until it ends or one of its calls waits."""
        session = _Session(self, shop, conversation) if kept is None else kept
        is_held = kept is not None and await count_open(shop) > 0
        for reply in () if is_held else script:
            session.replies.put_nowait(reply)
        while not is_held and not session.task.done():
            await asyncio.sleep(0.01)
            # All of them, or people would answer requests that are not there yet.
            is_held = await count_open(shop) >= max(1, self.unfinished)
        if is_held:
            return Stop(is_held=True, kept=session, read=session.read)
        return Stop(is_held=False, kept=session, answer=await session.task, read=session.read)


class _Session:
    """A run, and what its model says next."""

    def __init__(self, framework: WaitingFramework, shop: Shop, conversation: str) -> None:
        self.replies: asyncio.Queue[Reply] = asyncio.Queue()
        self.read: list[str] = []
        self.task = asyncio.create_task(framework.converse(shop, conversation, self.replies, self.read))


async def count_open(shop: Shop) -> int:
    """The requests that wait for people; none before the first entry of the ledger."""
    with suppress(UsageError, LedgerError):
        return len(await shop.approvals.list())
    return 0
