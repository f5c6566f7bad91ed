"""Guards of tool calls for tests: gates that ask or do not, a tool whose runs are counted, and processes that call."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adjudge import Approvals, Gate, Ledger
from adjudge.guards import ToolCall, ToolGuard, ToolVerdict
from kit.gates import GOOD
from kit.judges import Seat
from kit.process import start_module

PEOPLE = {"approvers": ["ana", "bob"]}

ASK: dict[str, Any] = {"approvers": ["ana"], "expires_in": 3600}

NO_SCRATCH = [{"contains": "scratch", "description": "Only scratch files."}]

NO_DROP = [{"regex": "DROP TABLE", "absent": True, "description": "No table is dropped."}]


def make_asking_gate(approvals: Approvals, **changes: Any) -> Gate:
    """A gate that asks ana about everything but scratch files."""
    options: dict[str, Any] = {"rules": NO_SCRATCH, "on_rule": "ask", "ask": ASK, "show_content": True}
    options |= {"approvals": approvals, "ledger": approvals.ledger} | changes
    return Gate(options.pop("name", "deletes"), **options)


def make_call(tool: str = "delete_file", call_id: str = "c1", run_id: str = "run-1", **more: Any) -> ToolCall:
    """A call of a tool; whatever is no member of a call is one of its arguments."""
    members = {name: more.pop(name) for name in ("server", "cwd", "agent", "files", "remarks") if name in more}
    return ToolCall(tool, more or {"path": "/srv/data"}, call_id, run_id, **members)


class Tool:
    """A tool that counts how often it runs."""

    def __init__(self) -> None:
        self.runs = 0

    async def try_call(self, guard: ToolGuard, call: ToolCall, **more: Any) -> ToolVerdict:
        """Run if the guard allows the call."""
        verdict = await guard.check(call, **more)
        if verdict:
            self.runs += 1
        return verdict


async def check_together(checks: Iterable[Coroutine[Any, Any, ToolVerdict]]) -> list[ToolVerdict]:
    """Run checks at once, and return their verdicts in order."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(check) for check in checks]
    return [task.result() for task in tasks]


def use_guard(
    url: str, work: Callable[[ToolGuard, Approvals], Awaitable[Any]], clock: Any = None, **changes: Any
) -> Any:
    """Return what an async function makes of a guard whose gate ``deletes`` asks ana, beside one with a rule."""

    async def go() -> Any:
        clocks = {} if clock is None else {"clock": clock}
        async with Ledger(url) as ledger, Approvals(ledger, **clocks) as approvals:
            gates = {name: changes.pop(name) for name in ("gate",) if name in changes}
            asking = make_asking_gate(approvals, **gates.get("gate", {}))
            calls = Gate("calls", rules=NO_DROP, ledger=ledger)
            guard = ToolGuard({"delete_*": asking, "*": calls}, **changes)
            return await work(guard, approvals)

    return asyncio.run(go())


# ---------------------------------------------------------------- two tools and their guard


@dataclass(kw_only=True)
class Shop:
    """A guard, who approves, and what the tools of its server did."""

    guard: ToolGuard
    approvals: Approvals
    ledger: Ledger
    ran: list[str] = field(default_factory=list)
    """The arguments that the bodies of the tools were called with."""

    async def decide(self, approved: bool, *, by: str = "ana") -> None:
        """Answer the one request that is open."""
        [request] = await self.approvals.list()
        await self.approvals.decide(request.id, by, approved, "fine")

    async def count_requests(self) -> int:
        """All requests that were ever made."""
        return len(await self.approvals.list(status=None))


@asynccontextmanager
async def open_shop(url: str, **options: Any) -> AsyncIterator[Shop]:
    """A guard over two tools: one that a rule checks, and one that people decide about."""
    parts = options.pop("gates", {})
    async with Ledger(url) as ledger, Approvals(ledger) as approvals:
        rules = parts.get("rules", [{"not_contains": ["rm -rf"]}])
        shell = Gate("shell", rules=rules, ledger=ledger)
        asks = {"on_failed": "ask", "approvals": approvals, "show_content": True, "ledger": ledger}
        asks["ask"] = PEOPLE | parts.get("people", {})
        deletes = Gate("deletes", judge=parts.get("judge", Seat("failed")), rubric=GOOD, **asks)
        tools = {"shell": shell, "delete_file": deletes} | options.pop("tools", {})
        async with ToolGuard(tools, **options) as guard:
            yield Shop(guard=guard, approvals=approvals, ledger=ledger)


# ---------------------------------------------------------------- processes


def start(action: str, url: str, *arguments: str) -> Any:
    """A process that checks calls; see ``ACTIONS``."""
    return start_module("tool_guards", action, url, *arguments)


def tell(**members: Any) -> None:
    """Write one line for the test."""
    sys.stdout.write(json.dumps(members) + "\n")
    sys.stdout.flush()


async def check_many(url: str, count: str, folder: str) -> None:
    """Check one call many times at once, and run its body for each yes."""
    async with Ledger(url) as ledger, Approvals(ledger) as approvals:
        guard = ToolGuard({"delete_*": make_asking_gate(approvals)})
        verdicts = await check_together(guard.check(make_call()) for _ in range(int(count)))
        for verdict in verdicts:
            if verdict:
                run_body(folder)
        tell(kinds=[verdict.kind for verdict in verdicts], approvals=[verdict.approval_id for verdict in verdicts])


async def check_and_stop(url: str, folder: str) -> None:
    """Check one approved call, say so, and wait to be killed before its body runs."""
    async with Ledger(url) as ledger, Approvals(ledger) as approvals:
        guard = ToolGuard({"delete_*": make_asking_gate(approvals)})
        verdict = await guard.check(make_call())
        tell(kind=verdict.kind)
        await asyncio.sleep(3600)
        run_body(folder)


def run_body(folder: str) -> None:
    """Run the tool: a file for every time."""
    count = len(list(Path(folder).glob("ran-*")))
    (Path(folder) / f"ran-{count}-{id(object())}").touch()


ACTIONS: dict[str, Callable[..., Awaitable[None]]] = {"check_many": check_many, "check_and_stop": check_and_stop}


def main() -> None:
    """Run the process of ``start``."""
    action, url, *arguments = sys.argv[1:]
    asyncio.run(ACTIONS[action](url, *arguments))  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
