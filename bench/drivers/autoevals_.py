"""autoevals, the leanest of the libraries that judge: an ``LLMClassifier`` with a chain of thought."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import common

PROMPT = (
    f"You are a strict judge. Criterion: {common.CRITERION}\n"
    "<input>\n{{input}}\n</input>\n<output>\n{{output}}\n</output>"
)


def direct(ctx: Any) -> common.J:
    """Its single-item call over the provider's own client."""
    from autoevals.llm import LLMClassifier
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=ctx.base_url, api_key="sk-mock", **ctx.given)
    classifier = LLMClassifier(
        name="correctness",
        prompt_template=PROMPT,
        choice_scores={"pass": 1, "fail": 0},
        model=ctx.model,
        use_cot=True,
        client=client,
    )

    async def judge(item: common.Item) -> bool | None:
        result = await classifier.eval_async(output=item["output"], expected=None, input=item["input"])
        return None if result.score is None else result.score >= 0.5

    return common.J(judge=judge, close=client.close)


if __name__ == "__main__":
    common.main("autoevals", "autoevals", {"direct": direct})
