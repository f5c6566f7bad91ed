"""MLflow: a judge of ``make_judge``, called from as many threads as are to be in flight."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import common

INSTRUCTIONS = common.PROMPT + "\n<input>\n{{ inputs }}\n</input>\n<output>\n{{ outputs }}\n</output>"
os.environ.pop("OTEL_SDK_DISABLED", None)  # it refuses to be imported with it
os.environ["MLFLOW_TRACKING_URI"] = f"sqlite:///{Path.cwd()}/mlflow.db"


def threads(ctx: Any) -> common.J:
    os.environ.update(OPENAI_API_BASE=ctx.base_url, OPENAI_BASE_URL=ctx.base_url)
    from mlflow.genai.judges import make_judge

    logging.getLogger("mlflow").setLevel(logging.ERROR)
    grade = make_judge(
        name="correctness",
        instructions=INSTRUCTIONS,
        model=f"openai:/{ctx.model}",
        feedback_value_type=bool,
        base_url=ctx.base_url,
    )

    def judge(item: common.Item) -> Any:
        try:
            feedback = grade(inputs={"question": item["input"]}, outputs={"answer": item["output"]})
        except Exception as error:  # noqa: BLE001 - an answer too
            return error
        return RuntimeError(str(feedback.error)[:200]) if feedback.error else feedback.value

    async def batch(items: Iterator[common.Item], in_flight: int, take: Callable[[Any], None]) -> None:
        loop, pool = asyncio.get_running_loop(), ThreadPoolExecutor(in_flight)
        for done in asyncio.as_completed([loop.run_in_executor(pool, judge, item) for item in items]):
            take(await done)

    return common.J(batch=batch)


if __name__ == "__main__":
    common.main("MLflow", "mlflow", {"threads": threads})
