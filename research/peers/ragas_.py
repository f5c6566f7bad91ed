"""ragas: a ``DiscreteMetric``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import common

PROMPT = common.PROMPT + " Answer yes or no.\n<input>\n{user_input}\n</input>\n<output>\n{response}\n</output>"


def discrete(ctx: Any) -> common.J:
    from openai import AsyncOpenAI
    from ragas.llms import llm_factory
    from ragas.metrics import DiscreteMetric

    openai = AsyncOpenAI(base_url=ctx.base_url, api_key="sk-mock", **ctx.given)
    llm = llm_factory(ctx.model, client=openai)
    metric = DiscreteMetric(name="correctness", allowed_values=["yes", "no"], prompt=PROMPT)

    async def judge(item: common.Item) -> bool | None:
        result = await metric.ascore(llm=llm, user_input=item["input"], response=item["output"])
        return None if result.value is None else result.value == "yes"

    return common.J(judge=judge, close=openai.close)


if __name__ == "__main__":
    common.main("ragas", "ragas", {"discrete": discrete})
