"""Audited gates for tests: what their judge reports, what people answer, and a process that answers for them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from adjudge import Approvals, Gate, JudgeResult, Ledger
from adjudge.guards import Audit
from kit.approvals import say
from kit.gates import GOOD
from kit.process import start_module

T = TypeVar("T")

EVERY = Audit(share=1.0, approvers=("ana",))
"""Every call is audited."""


class Reporting:
    """A judge that passes all but what begins with "bad", and reports the model that it is told to."""

    name = "reporting"

    def __init__(self, model: str | None = "m-1") -> None:
        self.model = model

    async def ask(self, question: Any, /) -> JudgeResult:
        outcome = "failed" if str(question.content).startswith("bad") else "passed"
        return JudgeResult(
            outcome=outcome,
            judge=self.name,
            score=1.0 if outcome == "passed" else 0.0,
            reasoning="What the judge thinks.",
            model=self.model,
        )


def make_gate(ledger: Ledger, approvals: Approvals, judge: Any = None, **options: Any) -> Gate:
    """An audited gate; every call is drawn unless ``audit`` says otherwise."""
    options = {"audit": EVERY, "show_content": True} | options
    judge = Reporting() if judge is None else judge
    return Gate("answers", rubric=GOOD, judge=judge, ledger=ledger, approvals=approvals, **options)


def use(url: str, work: Callable[[Gate, Approvals], Awaitable[T]], judge: Any = None, **options: Any) -> T:
    """Return what an async function makes of an audited gate and its approvals, which share a ledger."""

    async def go() -> T:
        async with Ledger(url) as ledger, Approvals(ledger, **options.pop("approvals", {})) as approvals:
            return await work(make_gate(ledger, approvals, judge, **options), approvals)

    return asyncio.run(go())


async def answer(approvals: Approvals, answers: Iterable[bool], *, by: str = "ana") -> int:
    """Answer the open audits in order, and return how many were answered; true is "right to let it through"."""
    given = 0
    for audit, approved in zip(await approvals.list(audits=True), answers, strict=False):
        await approvals.decide(audit.id, by, approved)
        given += 1
    return given


async def label(gate: Gate, approvals: Approvals, answers: Iterable[bool]) -> None:
    """Let one content through for each answer, and answer its audit."""
    for number, approved in enumerate(answers):
        assert await gate.check(f"content {number}")
        await answer(approvals, [approved])


def start_answering(url: str, key: Path | None = None) -> subprocess.Popen[str]:
    """A process that answers the first open audit with "should have been stopped" for each line that it is sent.

    ``key`` is the file of the key that signs the ledger.
    """
    return start_module("audited", url, *([] if key is None else [str(key)]), stdin=subprocess.PIPE)


def main() -> None:
    """Run the process of ``start_answering``."""
    asyncio.run(_answer_lines(*sys.argv[1:]))


async def _answer_lines(url: str, key: str | None = None) -> None:
    async with Ledger(url, key=key) as ledger, Approvals(ledger) as approvals:
        say(ready=True)
        while await asyncio.to_thread(sys.stdin.readline):
            say(answered=await answer(approvals, [False]))
