"""The same judges on other models: how a cache, a budget or a recording gets between a judge and its model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from adjudge._judge import Judge
from adjudge.chain import JudgeChain
from adjudge.models import Model

Wrap = Callable[[Model, int], Model]
"""From a model, and how many seats before this one have the same model, to the model to be asked instead."""


def rewire(judge: Any, wrap: Wrap) -> Any:
    """A judge like this one whose every model, at any depth, is what ``wrap`` makes of it.

    Seats keep their names. Two seats of one model are told apart by the number ``wrap`` is given: they are asked
    separately, so what one was answered must not be handed to the other. A judge of another kind is left as it is.
    """
    return _rewire(judge, wrap, Counter())


async def close_others(judge: Any) -> None:
    """Close the models that a rewired judge opened because a rubric named them; its own are those of the original."""
    if isinstance(judge, JudgeChain) and type(judge).ask is JudgeChain.ask:
        for _, seat in judge.judges:
            await close_others(seat)
    elif isinstance(judge, Judge) and type(judge).ask is Judge.ask:  # any other is not rewired, and somebody's own
        for model in judge._others.values():  # noqa: SLF001 - they are nobody else's
            close = getattr(model, "aclose", None)
            if close is not None:
                await close()


def _rewire(judge: Any, wrap: Wrap, met: Counter[str]) -> Any:
    if isinstance(judge, JudgeChain) and type(judge).ask is JudgeChain.ask:
        return replace(judge, judges=[_rewire(seat, wrap, met) for _, seat in judge.judges], name=judge.name)
    if not isinstance(judge, Judge) or type(judge).ask is not Judge.ask:
        return judge
    met[judge.model.name] += 1
    return replace(judge, model=wrap(judge.model, met[judge.model.name] - 1), name=judge.name)
