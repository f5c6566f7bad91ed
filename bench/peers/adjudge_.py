"""adjudge as anybody would use it: a judge, a rubric, ``evaluate``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import common


def make(*, token: bool = True, structured: str = "auto", chain: bool = False) -> Callable[[Any], common.J]:
    """A variant."""

    def build(ctx: Any) -> common.J:
        from adjudge import Criterion, Judge, JudgeChain, Rubric

        names = [f"criterion {number + 1}" for number in range(ctx.options.criteria)]
        rubric = Rubric(
            name="Answer", criteria=tuple(Criterion(name=name, description=common.CRITERION) for name in names)
        )
        spec = f"{ctx.base_url}#{ctx.model}"
        one = Judge(spec, token=token, structured=structured)
        judge_like: Any = JudgeChain([one, Judge(spec, name="other", token=token)], timeout=60.0) if chain else one

        async def judge(item: common.Item) -> bool | None:
            result = await judge_like.evaluate(item["output"], rubric, task=item["input"])
            if result.outcome == "undecided":
                raise RuntimeError(result.explain())
            return result.passed

        return common.J(judge=judge, close=one.aclose)

    return build


VARIANTS = {
    "token": make(),
    "no-token": make(token=False),
    "text": make(structured="text"),
    "chain": make(chain=True),
}

if __name__ == "__main__":
    common.main("adjudge", "adjudge", VARIANTS)
