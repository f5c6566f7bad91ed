"""Chains over real connections: whoever is not needed any more is hung up on."""

from __future__ import annotations

import asyncio
import json
import re

import pytest
from aiohttp import web

from adjudge import Judge, JudgeChain
from kit.patience import HANG
from kit.wire import completion, serve

pytestmark = pytest.mark.timed


async def say_no(request: web.Request) -> web.StreamResponse:
    """Answer a rubric with a low score, with the token of the question."""
    body = json.loads(await request.read())
    token = re.search(r'"token": "(\w{8})"', body["messages"][-1]["content"])[1]
    return web.json_response(completion(json.dumps({"token": token, "criteria": [{"name": "good", "score": 0.0}]})))


class Hangs:
    """A server that takes a request and says nothing, and notices when the client has gone."""

    def __init__(self) -> None:
        self.taken, self.closed = asyncio.Event(), asyncio.Event()

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        self.taken.set()
        try:
            await asyncio.sleep(HANG)
        except asyncio.CancelledError:
            self.closed.set()
            raise
        return web.Response()


async def ask_both(hanging: Hangs, **options):
    """A rejecting judge and a hanging one, each behind a server of its own."""

    async def say_no_late(request):
        await hanging.taken.wait()
        return await say_no(request)

    async with serve(say_no_late) as first, serve(hanging) as second:
        seats = [Judge(f"{first.url}#no"), Judge(f"{second.url}#hangs")]
        async with JudgeChain(seats, timeout=HANG, **options) as chain:
            result = await chain.evaluate("The content.", criteria="Good.")
            async with asyncio.timeout(HANG):
                await hanging.closed.wait()
        return result


@pytest.mark.parametrize(
    "options",
    [{"strategy": "consensus"}, {"strategy": "quorum", "quorum": 2}, {"strategy": "hedged", "hedge_after": 0.2}],
)
def test_a_rejection_hangs_up_on_a_judge_that_hangs(options):
    """The chain returns at once although another judge hangs, whose server sees the connection close."""

    async def run():
        return await ask_both(Hangs(), **options)

    result = asyncio.run(run())

    assert result.outcome == "failed"
    # Had the chain waited for the judge that hangs, it would be undecided because of its time limit.
    assert [item.undecided_because for item in result.results] == [None, "cancelled"]


def test_a_chain_out_of_time_hangs_up():
    """Also when the deadline is what settles it."""

    async def run():
        hanging = Hangs()
        async with serve(hanging) as server, JudgeChain([Judge(f"{server.url}#m")], deadline=0.3) as chain:
            result = await chain.evaluate("The content.", criteria="Good.")
            async with asyncio.timeout(HANG):
                await hanging.closed.wait()
            return result

    assert asyncio.run(run()).undecided_because == "timeout"
