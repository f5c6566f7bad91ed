"""Runs for tests: a judge of words, cases by the dozen, and what came out of a run, to compare."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from adjudge import Case, Judge, open_run, run
from adjudge.models import Reply, Request
from adjudge.runs import Run
from adjudge.testing import make_scripted_reply

STORE = "results.sqlite"
"""The file in a run's folder that holds its results and replies."""

CRITERIA = "Is good."


class Words:
    """A model that passes what says good, fails what says bad, and stumbles over the rest; it counts who asks."""

    def __init__(self, name: str = "words", *, turns: int = 1) -> None:
        self.name = name
        self.requests: list[Request] = []
        self.now = self.most = 0
        """The number of requests that are under way, and that were at most."""
        self._turns = turns

    async def complete(self, request: Request, /) -> Reply:
        self.requests.append(request)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            for _ in range(self._turns):
                await asyncio.sleep(0)
        finally:
            self.now -= 1
        if "raise" in request.user:
            raise RuntimeError("the model broke")
        if "wait" in request.user:
            await asyncio.Event().wait()
        score = 1.0 if "good" in request.user else 0.0
        return make_scripted_reply({"criteria": [{"reasoning": "r", "score": score}]}, request, self.name)


def make_cases(number: int, *, start: int = 0) -> list[Case]:
    """Cases of which every third is bad, labelled as they are."""
    return [
        Case(id=f"case-{place}", content=f"a {'bad' if place % 3 == 0 else 'good'} text {place}", label=place % 3 != 0)
        for place in range(start, start + number)
    ]


def do(dataset: Any, judge: Any = None, **options: Any) -> Run:
    """A run to its end."""
    return run(dataset, judge or Judge(Words()), criteria=CRITERIA, **options).finish_sync()


def list_results(done: Run) -> list[tuple[Any, ...]]:
    """List what came out of a run, without what differs from one judgement to the next."""
    return [
        (item.place, item.sample, item.case.id, item.subject, item.result.outcome, item.result.score)
        for item in done.items()
    ]


async def take(running: Any, number: int, until: Callable[[], bool] = lambda: True) -> list[Any]:
    """The first items of a run, which is left then, or once something else is so."""
    taken: list[Any] = []
    async for item in running:
        taken.append(item)
        if len(taken) == number:
            while not until():  # noqa: ASYNC110 - a turn of the loop at a time, until what is under way has begun
                await asyncio.sleep(0)
            break
    return taken


def cut_off(
    dataset: Sequence[Any],
    judge: Any,
    out: Path,
    number: int,
    *,
    until: Callable[[], bool] = lambda: True,
    **options: Any,
) -> Run:
    """A run of which somebody leaves after some items, or once something else is so."""

    async def go() -> Run:
        running = run(dataset, judge, criteria=CRITERIA, out=out, **options)
        await take(running, number, until)
        return await running

    asyncio.run(go())
    return open_run(out)
