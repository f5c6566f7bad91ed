"""A run by batches for a process of its own, to be killed."""

from __future__ import annotations

from adjudge import Judge, open_model, run
from adjudge.runs import BatchOptions
from kit.runs import make_cases


def judge_by_batches(kind: str, base: str, out: str, number: int, size: int) -> None:
    """Judge so many cases by a provider at an address into a folder, in batches of a size, or go on with it."""
    judge = Judge(open_model(f"{kind}:small", base_url=base))
    batch = BatchOptions(check=0, poll=0.02, size=size)
    run(make_cases(number), judge, criteria="Is good.", out=out, resume=True, batch=batch).finish_sync()
