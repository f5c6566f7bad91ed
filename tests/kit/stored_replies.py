"""Write what this version stores of replies: a recording, a cache, and runs that were finished and left.

    PYTHONPATH=tests python -m kit.stored_replies FOLDER

models/replies/test_stored.py reads the files in ``tests/data/stored`` and writes them again. They are written
anew only if a format changes on purpose, which needs a new number in its schema.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from adjudge import Case, Judge, JudgeChain, JudgeResult, ReplyCache, Usage, judge_function, run
from adjudge.judges import with_layers
from adjudge.models import RecordingModel, Reply, Request, TokenLogprob
from adjudge.testing import ScriptedModel

CRITERIA = {"correct": "States no falsehood.", "polite": "Is polite to the reader."}

CASES = [
    Case(id=f"case-{place}", content=f"a {'bad' if place % 3 == 0 else 'good'} text {place}", label=place % 3 != 0)
    for place in range(6)
]


def grade(request: Request) -> dict[str, Any]:
    """Score both criteria 1, or 0 where the content says bad."""
    score = 0.0 if "bad" in request.user.partition("<<content")[2] else 1.0
    return {"criteria": [{"name": name, "reasoning": "r", "score": score} for name in CRITERIA], "suggestions": ["s"]}


class Told(ScriptedModel):
    """A model whose replies have everything that a provider tells, the token cut in pieces by its log-probabilities."""

    identity: ClassVar = {"address": "none"}

    def __init__(self) -> None:
        super().__init__(grade, name="provider:it", structured=True)

    async def complete(self, request: Request, /) -> Reply:
        """Return the scripted reply with usage, log-probabilities, a reported name and a request id."""
        reply = await super().complete(request)
        token = request.token or ""
        pieces = ['{"token": "', token[:3], token[3:], '", {{token}}']
        return Reply(
            text=reply.text,
            finish_reason="stop",
            usage=Usage(input_tokens=100, output_tokens=20, cached_tokens=40, calls=1, cost_usd=0.0125),
            logprobs=tuple(TokenLogprob(token=piece, logprob=-0.25, top=((piece, -0.25),)) for piece in pieces),
            model="it-2026-11-01",
            request_id="req-1",
        )


def name_as_stored(function: Callable[[str], Any]) -> Callable[[str], Any]:
    """Give a function the module that the stored files name: it is part of a function's name."""
    function.__module__ = "stored_support"
    return function


@judge_function
@name_as_stored
def count_letters(content: str) -> dict[str, Any]:
    """Judge in code: whether the content has more than twelve letters."""
    return {"score": float(len(content) > 12), "reason": "counted {{token}}"}


async def record(path: Path) -> list[JudgeResult]:
    """Judge through one recording: twice the same, another content, braces in the content, a function, a prompt."""
    judge = Judge(RecordingModel(Told(), path))
    same = [await judge.evaluate("It left {{token}}.", criteria=CRITERIA, task="When?") for _ in range(2)]
    other = await judge.evaluate({"a": [1, "\u00e9\u2028"]}, criteria=CRITERIA, reference="Monday")
    plain = Judge(RecordingModel(ScriptedModel(["no reply at all", {"safe": True}], name="plain"), path))
    again = await plain.ask('Is this safe? Reply {"safe": true} or {"safe": false}.')
    code = await Judge(RecordingModel(count_letters, path)).evaluate(
        "Fourteen letters.", criteria={"criteria": "Is long."}
    )
    return [*same, other, again, code]


def make_chain(cache: ReplyCache | None = None) -> Any:
    """Two seats of one model, so that each has replies of its own."""
    chain = JudgeChain([Judge(Told(), name="a"), Judge(Told(), name="b")], strategy="consensus")
    return with_layers(chain, cache=cache) if cache is not None else chain


async def keep(path: Path) -> JudgeResult:
    """Judge through a cache."""
    cache = ReplyCache(path, wall=lambda: 1_795_000_000.0)
    result = await make_chain(cache).evaluate("It left.", criteria=CRITERIA)
    cache.close()
    return result


async def make_runs(folder: Path) -> None:
    """A run that is finished, one that was left at half, and one of a judge in code."""
    await run(CASES, make_chain(), criteria=CRITERIA, out=folder / "finished", repeat=2, concurrency=1)
    running = run(CASES, make_chain(), criteria=CRITERIA, out=folder / "left", concurrency=1)
    async for item in running:
        if item.place >= 2:
            break
    await running
    await run(CASES, count_letters, criteria={"criteria": "Is long."}, out=folder / "code", concurrency=1)


async def make(folder: Path) -> None:
    """Write everything into a folder."""
    await record(folder / "recording.jsonl")
    await keep(folder / "cache.sqlite")
    await make_runs(folder)


def main(folder: str) -> None:
    """Write the files."""
    place = Path(folder)
    place.mkdir(parents=True)
    asyncio.run(make(place))
    for lock in place.rglob("run.lock"):
        lock.unlink()


if __name__ == "__main__":
    main(sys.argv[1])
