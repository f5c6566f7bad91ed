"""Phoenix evals: ``create_classifier``, its own rate limit raised out of the way."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import common

PROMPT = common.PROMPT + "\n<input>\n{input}\n</input>\n<output>\n{output}\n</output>"


def direct(ctx: Any) -> common.J:
    from phoenix.evals import LLM, create_classifier

    given = {"timeout": ctx.timeout} if ctx.timeout else {}
    llm = LLM(
        provider="openai",
        model=ctx.model,
        base_url=ctx.base_url,
        api_key="sk-mock",
        initial_per_second_request_rate=1e6,
        **given,
    )
    classifier = create_classifier(
        name="correctness", prompt_template=PROMPT, llm=llm, choices={"pass": 1.0, "fail": 0.0}
    )

    async def judge(item: common.Item) -> bool | None:
        scores = await classifier.async_evaluate({"input": item["input"], "output": item["output"]})
        return None if scores[0].score is None else scores[0].score >= 0.5

    return common.J(judge=judge)


if __name__ == "__main__":
    common.main("Phoenix evals", "arize-phoenix-evals", {"direct": direct})
