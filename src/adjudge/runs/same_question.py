"""The question of an earlier run, put to another judge about the same cases, as ``replace-judge`` does.

Whether a run may be resumed with what it is given now is decided in ``folder.py`` (``check_resumable``).
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

from adjudge.dataset.case import Case
from adjudge.errors import Reason, UsageError
from adjudge.formats.plain_data import digest_description
from adjudge.judges.evaluate import EvaluateArguments, JudgeLike
from adjudge.judges.judge import ModelSource
from adjudge.judges.open import as_judge
from adjudge.judges.pair import OnConflict
from adjudge.models.budget import Budget
from adjudge.models.price import Prices
from adjudge.rubric.rubric import Rubric
from adjudge.runs.batch.options import BatchOptions
from adjudge.runs.case_terms import read_terms
from adjudge.runs.folder import Run
from adjudge.runs.judging import resolve_question
from adjudge.runs.launch import Running, run

_TEXT_ARGUMENTS = ("instructions", "reference", "task", "context")

_REPEATABLE_MEMBERS = frozenset({"wording", "pairs", *_TEXT_ARGUMENTS})


async def ask_candidate(
    earlier: Run,
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
    """Make the run of another judge, with the question and cases of an earlier run. It begins when it is awaited.

    The options are those of ``run``. Raises ``UsageError`` if the same question cannot be asked again: it had code,
    which a run does not hold, or this version of adjudge words it in another way.
    """
    rubric, arguments, on_conflict = read_question(earlier)
    candidate = as_judge(judge, keep_name=True)

    def may_bring_criteria() -> bool:
        return any(case.brings_own for case in cases)

    assignment = await resolve_question(candidate, rubric, arguments, on_conflict, cases_bring=may_bring_criteria)
    described = None if assignment.rubric is None else assignment.rubric.to_dict()
    for name, described_part in (("asked", assignment.described), ("rubric", described)):
        check_same_question(earlier, name, digest_description(described_part))
    pairs = {} if on_conflict is None else {"pairs": True, "on_conflict": on_conflict}
    options: dict[str, Any] = {**arguments, **pairs}
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
        **options,
    )


def check_same_question(earlier: Run, name: str, question_digest: str | None) -> None:
    """Raise ``UsageError`` unless an earlier run has the same digest of its question (``asked``) or ``rubric``."""
    if earlier.manifest["digests"].get(name) != question_digest:
        subject = {"asked": "question is worded", "rubric": "rubric is"}[name]
        raise UsageError(
            f"{earlier.folder} cannot be followed: its {subject} otherwise than what would be asked now, so the "
            "difference would not be the judges' alone; judge its data anew with both judges"
        )


def read_question(
    earlier: Run, *, leave_out: Collection[str] = ()
) -> tuple[Rubric | None, EvaluateArguments, OnConflict | None]:
    """Read the question of a run from its manifest: the rubric, the arguments, and ``on_conflict`` for a run of pairs.

    Raises ``UsageError`` for a question with code, which a manifest does not hold. Members in ``leave_out`` are
    ignored.
    """
    question: Mapping[str, Any] = earlier.manifest.get("asked") or {}
    unknown = sorted(
        name for name, value in question.items() if value and name not in _REPEATABLE_MEMBERS.union(leave_out)
    )
    if unknown:
        raise UsageError(
            f"{earlier.folder} was asked with {', '.join(unknown)}, which a run does not hold; judge its data with the "
            "candidate (adjudge run), and name that run as the candidate"
        )
    arguments = cast("EvaluateArguments", {name: question[name] for name in _TEXT_ARGUMENTS if name in question})
    threshold = (earlier.manifest.get("options") or {}).get("threshold")
    if threshold is not None:
        arguments["threshold"] = threshold
    return read_terms(earlier.manifest).rubric, arguments, question.get("pairs")
