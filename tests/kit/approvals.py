"""Approvals for tests: a clock that is set, what the ledger holds of them, and processes that decide."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from random import Random
from typing import Any

from adjudge import Approvals, JudgeResult
from adjudge.guards import DecisionRefused
from adjudge.ledger import Entry
from kit.ledgers import find
from kit.process import start_module

WHO = {"approvers": ["ana", "bob"]}


def make_result(outcome: str = "failed", **changes: Any) -> JudgeResult:
    """A result that people may be asked about."""
    members: dict[str, Any] = {"outcome": outcome, "judge": "careful", "subject": "5" * 64, "threshold": 0.7}
    members |= (
        {"undecided_because": "split"} if outcome == "undecided" else {"score": 0.9 if outcome == "passed" else 0.2}
    )
    return JudgeResult(**(members | changes))


def with_nan(name: str) -> JudgeResult:
    """A result of which a member is NaN, which none that is made can be."""
    result = make_result()
    object.__setattr__(result, name, float("nan"))
    return result


def use(url: str, work: Any, **options: Any) -> Any:
    """Return what an async function makes of approvals, which are closed afterwards."""

    async def go() -> Any:
        async with Approvals(url, **options) as approvals:
            return await work(approvals)

    return asyncio.run(go())


def ask(url: str, work: Any, *, result: Any = None, clock: Any = None, **options: Any) -> Any:
    """Return what an async function makes of approvals and the id of a new request."""

    async def go(approvals: Approvals) -> Any:
        ident = await approvals.request(make_result() if result is None else result, "Publish it?", **(WHO | options))
        return await work(approvals, ident)

    return use(url, go, **({"clock": clock} if clock else {}))


async def try_to(approvals: Approvals, ident: str, by: str, approved: bool, reason: str = "") -> str:
    """Return what became of a decision: the status after it, or why it was refused."""
    try:
        return (await approvals.decide(ident, by, approved, reason)).status
    except DecisionRefused as error:
        return error.because


def tell(url: str, **filters: Any) -> list[tuple[str, Any, Any]]:
    """The ledger's entries about approvals: the kind, whether it counted or how it ended, and who."""
    return [summarise(entry) for entry in find(url, **filters) if entry.kind not in ("genesis", "decision")]


def summarise(entry: Entry) -> tuple[str, Any, Any]:
    payload = entry.payload or {}
    answer = {"approval.voted": "accepted", "approval.closed": "status", "override": "label"}.get(entry.kind, "")
    people = {"approval.voted": "by", "approval.closed": "decided_by", "override": "by"}.get(entry.kind, "approvers")
    return entry.kind.removeprefix("approval."), payload.get(answer), payload.get(people)


def count_kinds(entries: Iterable[Entry]) -> dict[str, Counter[str]]:
    """Count the entries of each kind for each request; of votes, only those that counted."""
    counts: dict[str, Counter[str]] = {}
    for entry in entries:
        payload = entry.payload or {}
        if "approval" in payload:
            kind = entry.kind if payload.get("accepted", True) else "refused"
            counts.setdefault(payload["approval"], Counter())[kind] += 1
    return counts


def start(action: str, url: str, *arguments: str) -> subprocess.Popen[str]:
    """A process that does something with approvals; see ``ACTIONS``."""
    return start_module("approvals", action, url, *arguments, stdin=subprocess.PIPE)


def main() -> None:
    """Run the process of ``start``."""
    action, url, *arguments = sys.argv[1:]
    asyncio.run(ACTIONS[action](url, *arguments))


def say(**members: Any) -> None:
    sys.stdout.write(json.dumps(members) + "\n")
    sys.stdout.flush()


async def decide_all(url: str, by: str) -> None:
    """Decide every open request, in an order and a sense of one's own, once a line arrives."""
    async with Approvals(url) as approvals:
        every = [item.id for item in await approvals.list()]
        random = Random(by)
        random.shuffle(every)
        say(ready=len(every))
        await asyncio.to_thread(sys.stdin.readline)
        for ident in every:
            approved = random.random() < 0.8
            say(id=ident, approved=approved, said=await try_to(approvals, ident, by, approved, "as I see it"))


async def decide_one(url: str, ident: str, by: str, approved: str) -> None:
    async with Approvals(url) as approvals:
        say(said=await try_to(approvals, ident, by, approved == "yes", "from over here"))


async def decide_all_open(url: str, by: str) -> None:
    """Approve whatever is open."""
    async with Approvals(url) as approvals:
        for item in await approvals.list(approver=by):
            say(gate=item.gate, content=item.content, said=await try_to(approvals, item.id, by, True, "read it"))


async def wait_for(url: str, ident: str) -> None:
    async with Approvals(url) as approvals:
        say(ready=True)
        answer = await approvals.wait(ident)
        say(approved=answer.approved, by=answer.by, reason=answer.reason)


async def ask_for_ever(url: str) -> None:
    """Ask and decide without end, saying what has returned."""
    async with Approvals(url) as approvals, asyncio.TaskGroup() as group:
        for _ in range(4):
            group.create_task(_ask_for_ever(approvals))


async def _ask_for_ever(approvals: Approvals) -> None:
    while True:
        ident = await approvals.request(make_result(), "Publish it?", **WHO, required=2)
        say(id=ident, done="request")
        for by in WHO["approvers"]:
            await approvals.decide(ident, by, True)
            say(id=ident, done=by)


ACTIONS = {
    "decide_all": decide_all,
    "decide_all_open": decide_all_open,
    "decide_one": decide_one,
    "wait_for": wait_for,
    "ask_for_ever": ask_for_ever,
}
