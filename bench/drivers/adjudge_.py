"""adjudge as anybody would use it: a judge, a rubric, ``evaluate``."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
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


def many(*, keep: bool) -> Callable[[Any], common.J]:
    """All items at once: ``run`` into a folder, which keeps every reply, or ``evaluate_many``, which keeps nothing."""

    def build(ctx: Any) -> common.J:
        from adjudge import Case, Criterion, Judge, Rubric, run

        rubric = Rubric(name="Answer", criteria=(Criterion(name="criterion 1", description=common.CRITERION),))
        judge = Judge(f"{ctx.base_url}#{ctx.model}", timeout=ctx.timeout or 60.0)

        async def batch(items: Iterator[common.Item], in_flight: int, take: Callable[[Any], None]) -> None:
            cases = (Case(id=str(item["id"]), content=item["output"], task=item["input"]) for item in items)
            if not keep:
                async for result in judge.evaluate_many(cases, rubric, concurrency=in_flight):
                    take(name_outcome(result))
                return
            with tempfile.TemporaryDirectory() as folder:
                out = Path(folder) / "run"
                async with run(cases, judge, rubric, out=out, concurrency=in_flight) as running:
                    async for item in running:
                        take(name_outcome(item.result))

        return common.J(batch=batch, close=judge.aclose)

    return build


def name_outcome(result: Any) -> bool | str:
    """A verdict, or the reason why there is none."""
    return f"undecided: {result.undecided_because}" if result.outcome == "undecided" else result.passed


VARIANTS = {
    "token": make(),
    "no-token": make(token=False),
    "text": make(structured="text"),
    "chain": make(chain=True),
    "many": many(keep=False),
    "run": many(keep=True),
}

if __name__ == "__main__":
    common.main("adjudge", "adjudge", VARIANTS)
