"""What a run asked, asked of another judge: the same question about the same cases."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

from adjudge.dataset.case import Case
from adjudge.errors import Reason, UsageError
from adjudge.judges.evaluate import EvaluateArguments, JudgeLike
from adjudge.judges.judge import ModelSource
from adjudge.judges.open import as_judge
from adjudge.judges.pair import OnConflict
from adjudge.models.budget import Budget
from adjudge.models.price import Prices
from adjudge.rubric.rubric import Rubric
from adjudge.runs.batch.options import BatchOptions
from adjudge.runs.folder import Run
from adjudge.runs.judging import digest, settle_question
from adjudge.runs.launch import Running, run
from adjudge.runs.terms import read_terms

_TOLD = ("instructions", "reference", "task", "context")

_KNOWN = frozenset({"wording", "pairs", *_TOLD})


async def ask_successor(
    before: Run,
    judge: JudgeLike | ModelSource,
    cases: Sequence[Case],
    *,
    out: str | os.PathLike[str],
    concurrency: int = 16,
    budget: Budget | float | None = None,
    prices: Prices | None = None,
    resume: bool = False,
    retry: Sequence[Reason] = ("budget",),
    batch: BatchOptions | bool = False,
) -> Running:
    """The run of another judge over cases of a run, to be awaited; nobody is asked before.

    The options are those of ``run``. Raises ``UsageError`` where the question cannot be put again as it was: with code
    that a run does not hold, or worded otherwise than this version of adjudge does.
    """
    rubric, how, on_conflict = read_question(before)
    asker = as_judge(judge, keep_name=True)

    def bring() -> bool:
        return any(case.brings_own for case in cases)

    asked = await settle_question(asker, rubric, how, on_conflict, cases_bring=bring)
    described = None if asked.rubric is None else asked.rubric.to_dict()
    for name, found in (("asked", asked.described), ("rubric", described)):
        check_same_question(before, name, digest(found))
    pairs = {} if on_conflict is None else {"pairs": True, "on_conflict": on_conflict}
    more: dict[str, Any] = {**how, **pairs}
    return run(
        list(cases),
        judge,
        rubric,
        out=out,
        concurrency=concurrency,
        budget=budget,
        prices=prices,
        resume=resume,
        retry=retry,
        batch=batch,
        **more,
    )


def check_same_question(before: Run, name: str, found: str | None) -> None:
    """Raise ``UsageError`` unless this is the digest of what a run asked, or of its rubric."""
    if before.manifest["digests"].get(name) != found:
        what = {"asked": "question is worded", "rubric": "rubric is"}[name]
        raise UsageError(
            f"{before.folder} cannot be followed: its {what} otherwise than what would be asked now, so the difference "
            "would not be the judges' alone; judge its data anew with both judges"
        )


def read_question(
    before: Run, *, leave_out: Collection[str] = ()
) -> tuple[Rubric | None, EvaluateArguments, OnConflict | None]:
    """The rubric, the arguments and what pairs come to, as a manifest has them.

    Raises ``UsageError`` for a question with code that a manifest does not hold, unless it may be left out.
    """
    asked: Mapping[str, Any] = before.manifest.get("asked") or {}
    unknown = sorted(name for name, value in asked.items() if value and name not in _KNOWN.union(leave_out))
    if unknown:
        raise UsageError(
            f"{before.folder} was asked with {', '.join(unknown)}, which a run does not hold; judge its data with the "
            "candidate (adjudge run), and name that run as the candidate"
        )
    how = cast("EvaluateArguments", {name: asked[name] for name in _TOLD if name in asked})
    threshold = (before.manifest.get("options") or {}).get("threshold")
    if threshold is not None:
        how["threshold"] = threshold
    return read_terms(before.manifest).rubric, how, asked.get("pairs")
