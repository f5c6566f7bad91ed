"""The retirement of a judge's models.

What a provider says of one model is read in ``models/retirement.py``.
"""

from __future__ import annotations

import asyncio

from adjudge.judges.chain import list_judges
from adjudge.models.retirement import Retirement, find_retirement


async def find_retirements(judge: object) -> tuple[Retirement, ...]:
    """Ask the providers about the retirement of a judge's models, at any depth; models with no answer are left out."""
    models = {leaf.model.name: leaf.model for leaf in list_judges(judge)}
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(find_retirement(model)) for model in models.values()]
    return tuple(retirement for task in tasks if (retirement := task.result()) is not None)
