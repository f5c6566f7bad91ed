"""openevals: ``create_async_llm_as_judge`` over the provider's own client, its leanest way."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import common

PROMPT = common.PROMPT + "\n<input>\n{inputs}\n</input>\n<output>\n{outputs}\n</output>"


def client(ctx: Any) -> common.J:
    from openai import AsyncOpenAI
    from openevals.llm import create_async_llm_as_judge

    openai = AsyncOpenAI(base_url=ctx.base_url, api_key="sk-mock", **ctx.given)
    evaluator = create_async_llm_as_judge(prompt=PROMPT, judge=openai, model=ctx.model)

    async def judge(item: common.Item) -> bool | None:
        result = await evaluator(inputs=item["input"], outputs=item["output"])
        return None if result["score"] is None else bool(result["score"])

    return common.J(judge=judge, close=openai.close)


if __name__ == "__main__":
    common.main("openevals", "openevals", {"client": client})
