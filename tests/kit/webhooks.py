"""A receiver of webhooks, and approvals that send to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from adjudge import Approvals
from adjudge.guards import Webhook, verify_webhook

KEY = "a secret of enough bytes"


class Receiver:
    """A server on 127.0.0.1 that keeps what it is sent, and answers with each status in turn, the last for ever."""

    def __init__(self, *statuses: int, headers: dict[str, str] | None = None, hangs: bool = False) -> None:
        self.statuses = list(statuses) or [204]
        self.headers = headers or {}
        self.hangs = hangs
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.url = ""

    async def take(self, request: web.Request) -> web.Response:
        self.got.append((dict(request.headers), await request.read()))
        if self.hangs:
            await asyncio.Event().wait()
        status = self.statuses[min(len(self.got), len(self.statuses)) - 1]
        return web.Response(status=status, headers=self.headers)

    @property
    def events(self) -> list[tuple[str, str]]:
        read = [verify_webhook(headers, body, KEY) for headers, body in self.got]
        return [(event["type"], event["data"]["status"]) for event in read]


@asynccontextmanager
async def serve(receiver: Receiver) -> AsyncIterator[Receiver]:
    app = web.Application()
    app.router.add_post("/hook/{rest:.*}", receiver.take)
    runner = web.AppRunner(app, shutdown_timeout=0.01)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook/token"
    try:
        yield receiver
    finally:
        await runner.cleanup()


def deliver(
    tmp_path: Path, receiver: Receiver, work: Any, *, clock: Any = None, make_link: Any = None, **arguments: Any
) -> Any:
    """Return what an async function makes of approvals whose webhook is the receiver; pauses pass at once."""

    async def go() -> Any:
        async with serve(receiver):
            options: dict[str, Any] = {"make_link": make_link} | ({"clock": clock} if clock else {})
            hook = Webhook(receiver.url, secret=KEY, **arguments)
            async with Approvals(f"sqlite:///{tmp_path / 'adjudge.db'}", webhook=hook, **options) as approvals:
                assert approvals._delivery_queue is not None
                approvals._delivery_queue._sleep = rest
                return await work(approvals)

    return asyncio.run(go())


async def rest(seconds: float) -> None:
    assert 0 <= seconds <= 60
    await asyncio.sleep(0)
