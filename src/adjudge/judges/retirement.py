"""When the models of a judge are retired."""

from __future__ import annotations

import asyncio

from adjudge.judges.chain import list_judges
from adjudge.models.retirement import Retirement, find_retirement


async def find_retirements(judge: object) -> tuple[Retirement, ...]:
    """What providers say of the end of a judge's models, at any depth, each once; nothing of those that do not say."""
    models = {leaf.own_model.name: leaf.own_model for leaf in list_judges(judge)}
    async with asyncio.TaskGroup() as group:
        asking = [group.create_task(find_retirement(model)) for model in models.values()]
    return tuple(found for task in asking if (found := task.result()) is not None)
