"""A gate around an ASGI application for tests: clients that are held back and come again, and processes of them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from adjudge import Approvals, Gate, Ledger
from adjudge.integrations.asgi import GateMiddleware
from kit.process import start_module

CALM = [{"regex": "secret", "absent": True}]
ASK = {"approvers": ["ana", "bob"], "expires_in": 3600}
ANA = {"authorization": "Bearer ana's token"}
BODY = b'{"say": "a secret"}'


async def all_at_once(works: Iterable[Awaitable[Reply]]) -> list[Reply]:
    """Return what all of them are answered."""

    async def wait(work: Awaitable[Reply]) -> Reply:
        return await work

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(wait(work)) for work in works]
    return [task.result() for task in tasks]


class Counter:
    """An application that counts how often it ran, and for whom."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.bodies: list[bytes] = []
        self.scopes: list[Mapping[str, Any]] = []
        self.error = error

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        message = await receive()
        self.scopes.append(scope)
        self.bodies.append(message["body"])
        if self.error is not None:
            raise self.error
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
        await send({"type": "http.response.body", "body": b"done", "more_body": False})


@dataclass(frozen=True, kw_only=True)
class Reply:
    """The answer that a client got."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def document(self) -> dict[str, Any]:
        return json.loads(self.body)

    @property
    def approval(self) -> str:
        return self.headers["adjudge-approval"]


async def send(
    app: Any,
    body: bytes = BODY,
    *,
    approval: str | None = None,
    headers: Mapping[str, str] | None = None,
    **scope: Any,
) -> Reply:
    """One request, and its answer."""
    messages: list[Any] = []
    left = [{"type": "http.request", "body": body, "more_body": False}]
    listed = list(({"content-type": "application/json", "host": "shop.example"} | dict(headers or {})).items())
    listed += [("adjudge-approval", approval)] if approval is not None else []

    async def receive() -> Any:
        return left.pop(0) if left else {"type": "http.disconnect"}

    async def keep(message: Any) -> None:
        messages.append(message)

    sent = [(name.lower().encode(), value.encode("latin-1")) for name, value in listed]
    made = {"type": "http", "method": "POST", "path": "/orders", "raw_path": b"/orders", "query_string": b"a=1"}
    await app({**made, "headers": sent, **scope}, receive, keep)
    received = {name.decode(): value.decode() for name, value in messages[0]["headers"]}
    return Reply(status=messages[0]["status"], body=b"".join(m.get("body", b"") for m in messages), headers=received)


class Shop:
    """A guarded application beside a ledger, and the people who approve."""

    def __init__(self, ledger: Ledger, approvals: Approvals, **options: Any) -> None:
        self.ledger, self.approvals = ledger, approvals
        self.app = Counter(options.pop("error", None))
        self.around = {
            name: options.pop(name) for name in ("identify", "resume_within", "explain", "on") if name in options
        }
        self.options = {"rules": CALM, "on_failed": "ask", "ask": ASK, "wait": False} | options
        self.guarded = self.guard()

    def guard(self, **changes: Any) -> GateMiddleware:
        """The application behind a gate, whose options may be changed."""
        options: dict[str, Any] = {"approvals": self.approvals, "ledger": self.ledger, **self.options, **changes}
        return GateMiddleware(self.app, Gate(options.pop("name", "orders"), **options), **self.around)

    async def send(self, body: bytes = BODY, **options: Any) -> Reply:
        return await send(self.guarded, body, **options)

    async def hold(self, body: bytes = BODY, **options: Any) -> str:
        """The id that a client is given whose request waits."""
        reply = await self.send(body, **options)
        assert reply.status == 202, reply
        return reply.approval

    async def decide(self, ident: str, *, approved: bool = True, reason: str = "agreed") -> None:
        await self.approvals.decide(ident, "ana", approved, reason)


def run(url: str, work: Any, *, clock: Any = None, **options: Any) -> Any:
    """Return what an async function makes of a shop."""

    async def go() -> Any:
        more = {"clock": clock} if clock is not None else {}
        async with Ledger(url) as ledger, Approvals(ledger, **more) as approvals:
            return await work(Shop(ledger, approvals, **options))

    return asyncio.run(go())


# ---------------------------------------------------------------- processes


def start(url: str, ident: str, count: int, *, kill: bool = False) -> subprocess.Popen[str]:
    """A process whose clients all come again with one id, once a line arrives; it says the statuses.

    With ``kill`` it is killed as soon as its application runs.
    """
    return start_module("asgi", url, ident, str(count), str(kill), stdin=subprocess.PIPE)


def main() -> None:
    """Run the process of ``start``."""
    url, ident, count, kill = sys.argv[1:]

    async def end(scope: Any, receive: Any, send: Any) -> None:
        sys.stdout.write("running\n")
        sys.stdout.flush()
        os.kill(os.getpid(), signal.SIGKILL)

    async def repeat(shop: Shop) -> None:
        if kill == "True":
            shop.guarded = GateMiddleware(end, shop.guarded.gate)
        assert (await shop.send(approval="0" * 40)).status == 404  # all is imported and open
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.readline)
        replies = await all_at_once(shop.send(approval=ident, headers=ANA) for _ in range(int(count)))
        sys.stdout.write(json.dumps({"statuses": [item.status for item in replies], "ran": len(shop.app.bodies)}))

    run(url, repeat)


JSON = "application/json"


class Echo:
    """An application that answers with what it was sent, or with what it was told to."""

    def __init__(self, *sends: Any) -> None:
        self.sends = sends
        self.bodies: list[bytes] = []
        self.scopes: list[Any] = []
        self.stopped = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.scopes.append(scope)
        body, more = b"", scope["type"] == "http"
        while more:
            message = await receive()
            assert message["type"] == "http.request"
            body += message["body"]
            more = message["more_body"]
        self.bodies.append(body)
        try:
            for message in self.sends or respond(body):
                await send(message)
        except OSError:
            self.stopped = True
            raise


def respond(*chunks: bytes, kind: str | None = "text/plain", headers: Iterable[Any] = (), **start: Any) -> list[Any]:
    """The messages of a response."""
    own = [] if kind is None else [(b"content-type", kind.encode())]
    first = {"type": "http.response.start", "status": 200, "headers": [*own, *headers], **start}
    last = len(chunks) - 1
    return [
        first,
        *[{"type": "http.response.body", "body": item, "more_body": at < last} for at, item in enumerate(chunks)],
    ]


class Client:
    """One request, as a server would see it."""

    def __init__(self, app: Any, *chunks: bytes, kind: str | None = JSON, headers: Any = (), **scope: Any) -> None:
        self.messages: list[Any] = []
        own = [] if kind is None else [(b"content-type", kind.encode())]
        left = [
            {"type": "http.request", "body": item, "more_body": at < len(chunks) - 1} for at, item in enumerate(chunks)
        ]

        async def receive() -> Any:
            return left.pop(0) if left else {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            self.messages.append(message)

        made = {"type": "http", "method": "POST", "path": "/a", "headers": [*own, *headers], **scope}
        asyncio.run(app(made, receive, send))

    @property
    def status(self) -> int:
        return self.messages[0]["status"]

    @property
    def body(self) -> bytes:
        return b"".join(item.get("body", b"") for item in self.messages)

    @property
    def document(self) -> Any:
        return json.loads(self.body)


def guard(app: Any, made: Gate | None = None, **options: Any) -> GateMiddleware:
    return GateMiddleware(app, made or Gate("calm", rules=CALM), **options)


def answer(*sends: Any, made: Gate | None = None, **options: Any) -> tuple[Client, Echo]:
    app = Echo(*sends)
    return Client(guard(app, made, on="response", **options), b"", kind=None), app
