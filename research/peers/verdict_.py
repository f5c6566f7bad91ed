"""Verdict: a pipeline of one ``JudgeUnit``, by its own runner; one item that fails takes the others with it."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import common

PROMPT = (
    common.PROMPT + "\n<input>\n{source.input}\n</input>\n<output>\n{source.output}\n</output>\n"
    "Answer yes to pass, no to fail."
)


def pipeline(ctx: Any) -> common.J:
    os.environ.update(OPENAI_API_BASE=ctx.base_url, OPENAI_BASE_URL=ctx.base_url)
    from verdict import Pipeline, config
    from verdict.common.judge import JudgeUnit
    from verdict.scale import DiscreteScale
    from verdict.schema import Schema

    config.state.rate_limiter_disabled = True
    given: dict[str, Any] = {"api_base": ctx.base_url, "retries": max(1, ctx.retries or 1)}
    given |= {"timeout": ctx.timeout} if ctx.timeout else {}

    def run(items: list[common.Item], in_flight: int) -> list[bool]:
        unit = JudgeUnit(DiscreteScale(["yes", "no"]), explanation=True).prompt(PROMPT).via(ctx.model, **given)
        data = [Schema.of(input=item["input"], output=item["output"]) for item in items]
        frame, columns = (Pipeline() >> unit).run_from_list(data, max_workers=in_flight, graceful=True)
        score = next(name for name in columns if name.endswith("score"))
        return [value == "yes" for value in frame[score]]

    async def batch(items: Iterator[common.Item], in_flight: int, take: Callable[[Any], None]) -> None:
        for verdict in await asyncio.to_thread(run, list(items), in_flight):
            take(verdict)

    return common.J(batch=batch)


if __name__ == "__main__":
    common.main("Verdict", "verdict", {"pipeline": pipeline})
