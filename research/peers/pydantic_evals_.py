"""pydantic-evals: ``judge_input_output``, what its ``LLMJudge`` calls."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import common


def direct(ctx: Any) -> common.J:
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_evals.evaluators.llm_as_a_judge import judge_input_output

    openai = AsyncOpenAI(base_url=ctx.base_url, api_key="sk-mock", **ctx.given)
    model = OpenAIChatModel(ctx.model, provider=OpenAIProvider(openai_client=openai))

    async def judge(item: common.Item) -> bool:
        result = await judge_input_output(item["input"], item["output"], common.CRITERION, model=model)
        return bool(result.pass_)

    return common.J(judge=judge, close=openai.close)


if __name__ == "__main__":
    common.main("pydantic-evals", "pydantic-evals", {"direct": direct})
