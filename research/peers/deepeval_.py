"""DeepEval: a ``GEval`` with steps given, so one request per item, and no log-probabilities (twice as fast)."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import common

STEPS = ["Check that the output answers the question.", "Check each claim.", "Penalise omissions and unsafe advice."]


def direct(ctx: Any) -> common.J:
    if ctx.timeout:
        os.environ["DEEPEVAL_PER_ATTEMPT_TIMEOUT_SECONDS_OVERRIDE"] = str(ctx.timeout)
    if ctx.retries is not None:
        os.environ.update(
            DEEPEVAL_RETRY_MAX_ATTEMPTS=str(ctx.retries + 1),
            DEEPEVAL_RETRY_INITIAL_SECONDS="0.2",
            DEEPEVAL_RETRY_JITTER="0.2",
        )
    from deepeval.metrics import GEval
    from deepeval.models import OpenAIModel
    from deepeval.test_case import LLMTestCase, SingleTurnParams

    model = OpenAIModel(model="gpt-5-mini", base_url=ctx.base_url, api_key="sk-mock")
    shown = [SingleTurnParams.INPUT, SingleTurnParams.ACTUAL_OUTPUT]

    async def judge(item: common.Item) -> bool | None:
        metric = GEval(
            name="correctness",
            criteria=common.CRITERION,
            evaluation_steps=STEPS,
            model=model,
            threshold=0.05,
            evaluation_params=shown,
        )
        case = LLMTestCase(input=item["input"], actual_output=item["output"])
        await metric.a_measure(case, _show_indicator=False)
        return None if metric.score is None else metric.score >= 0.05

    return common.J(judge=judge)


if __name__ == "__main__":
    common.main("DeepEval", "deepeval", {"direct": direct})
