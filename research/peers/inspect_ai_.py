"""Inspect: the scorer ``model_graded_qa``, called for each item (its ``eval()`` takes four times as much)."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import common

os.environ.update(INSPECT_LOG_DIR=str(Path.cwd()), INSPECT_DISPLAY="none", INSPECT_LOG_LEVEL="error")


def scorer(ctx: Any) -> common.J:
    from inspect_ai.model import ChatMessageUser, GenerateConfig, ModelOutput, get_model
    from inspect_ai.scorer import Target, model_graded_qa
    from inspect_ai.solver import TaskState

    given = {"attempt_timeout": int(ctx.timeout) if ctx.timeout else None, "max_retries": ctx.retries}
    config = GenerateConfig(
        max_connections=ctx.options.c, **{name: value for name, value in given.items() if value is not None}
    )
    name = f"openai/{ctx.model}"
    model = get_model(name, base_url=ctx.base_url, api_key="sk-mock", config=config, memoize=False, responses_api=False)
    grade = model_graded_qa(model=model)

    async def judge(item: common.Item) -> bool | None:
        state = TaskState(
            model="replay",
            sample_id=item["id"],
            epoch=1,
            input=item["input"],
            messages=[ChatMessageUser(content=item["input"])],
            output=ModelOutput.from_content("replay", item["output"]),
        )
        score = await grade(state, Target(common.CRITERION))
        return None if score is None or score.value not in {"C", "I", "P"} else score.value == "C"

    return common.J(judge=judge)


if __name__ == "__main__":
    common.main("Inspect", "inspect-ai", {"scorer": scorer})
