"""A web application whose orders wait for a person if a rule fails, and a client that sends them again.

Run it: python examples/held_request.py
It needs starlette and uvicorn, and serves itself on this machine; the client and the person are further down.
"""

from __future__ import annotations

import asyncio
import socket
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from adjudge import Approvals, Gate, Ledger
from adjudge.integrations.asgi import GateMiddleware


async def place_order(request: Request) -> JSONResponse:
    """The application, which does not know about the gate."""
    order = await request.json()
    return JSONResponse({"ordered": order["item"]}, status_code=201)


def make_app(gate: Gate) -> Starlette:
    """Put the application behind the gate; with FastAPI this is ``app.add_middleware(GateMiddleware, gate=gate)``."""
    routes = [Route("/orders", place_order, methods=["POST"])]
    return Starlette(routes=routes, middleware=[Middleware(GateMiddleware, gate=gate)])


def make_gate(ledger: Ledger, approvals: Approvals) -> Gate:
    """Make a gate that asks a person about every order that names a crane; the request expires after an hour."""
    return Gate(
        "orders",
        rules=[{"regex": "crane", "absent": True}],
        on_rule="ask",
        approvals=approvals,
        ask={"approvers": ["ana"], "expires_in": 3600},
        wait=False,
        ledger=ledger,
    )


async def order(session: aiohttp.ClientSession, item: str) -> int:
    """A client: it sends an order, and repeats it with the approval's id until the order is decided."""
    headers: dict[str, str] = {}
    while True:
        async with session.post("/orders", json={"item": item}, headers=headers) as reply:
            print(f"  {item}: {reply.status} {await reply.text()}")
            if reply.status != 202:
                return reply.status
            headers = {"Adjudge-Approval": reply.headers["Adjudge-Approval"]}
            # A real client waits as long as Retry-After says.
            await asyncio.sleep(min(0.2, float(reply.headers["Retry-After"])))


async def approve(approvals: Approvals) -> None:
    """A person, who approves every request; on the command line: `adjudge approvals approve ID --reason WHY`."""
    while True:
        await asyncio.sleep(0.3)
        for waiting in await approvals.list(approver="ana"):
            print(f"  ana approves {waiting.id}")
            await approvals.decide(waiting.id, "ana", True, "we need one")


@asynccontextmanager
async def serve(app: Starlette) -> AsyncIterator[str]:
    """Serve the application and yield its address."""
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        task = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            await task


async def main(folder: Path) -> None:
    """Send two orders: one passes at once, the other waits for Ana."""
    async with Ledger(folder / "adjudge.db") as ledger, Approvals(ledger) as approvals:
        await ledger.prepare()
        app = make_app(make_gate(ledger, approvals))
        headers = {"Authorization": "Bearer a-token"}
        async with serve(app) as address, aiohttp.ClientSession(address, headers=headers) as session:
            person = asyncio.create_task(approve(approvals))
            await order(session, "hammer")
            await order(session, "crane")
            person.cancel()
        used = [entry async for entry in ledger.query(kind="decision", gate="orders")]
        print(f"  the ledger holds {len(used)} decisions, the last of them by {(used[-1].payload or {})['decided_by']}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        asyncio.run(main(Path(temporary)))
