"""The assignment of a run: question, rubric and judge. It is made before the first case, to find errors before that."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from adjudge.concurrency import count_cancellations, describe_error
from adjudge.dataset.case import Case
from adjudge.errors import FunctionError, UsageError
from adjudge.formats.arguments import check_share
from adjudge.formats.plain_data import to_plain
from adjudge.judges.compare import (
    check_pair_case,
    choose_rubric,
    compare_case_as,
    make_undefined_better_error,
    prepare_pair,
)
from adjudge.judges.description import describe_rules
from adjudge.judges.evaluate import (
    EvaluateArguments,
    RubricSource,
    decide_by_rules,
    make_undefined_good_error,
    measure_ms,
    merge_case,
    merge_case_data,
    prepare,
)
from adjudge.judges.judge import Judge
from adjudge.judges.pair import OnConflict, PairResult
from adjudge.judges.part_questions import digest_wordings
from adjudge.models.model import UNBOUND, Call
from adjudge.models.open import asks_nobody
from adjudge.question.question import Question, digest_question
from adjudge.result import JudgeResult
from adjudge.rubric.rubric import Rubric
from adjudge.rules.shipped import as_rule
from adjudge.runs.case_terms import Terms
from adjudge.runs.item import check_kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """The same question about every case, and the judge that answers it."""

    judge: Any
    """A judge or a chain."""
    rubric: Rubric | None
    arguments: EvaluateArguments
    described: Mapping[str, Any]
    """The question, as plain data."""
    on_conflict: OnConflict | None = None
    """The outcome where the orders disagree; ``None``: each case is judged by itself."""
    threshold: float | None = None
    """The passing threshold of the run itself, in place of every rubric's."""

    @property
    def terms(self) -> Terms:
        """The terms by which each case is judged."""
        return Terms(rubric=self.rubric, threshold=self.threshold, compares=self.on_conflict is not None)

    def check_case(self, case: Case) -> None:
        """Raise ``UsageError`` for a case with members that this run cannot use, or without criteria that it needs."""
        if self.on_conflict is not None:
            check_pair_case(case)
        if self.rubric is not None or case.criteria is not None or case.rubric is not None:
            return
        if self.on_conflict is not None:
            raise make_undefined_better_error(", or let each case bring its own criteria")
        if self.arguments.get("result_format") is None:
            raise make_undefined_good_error(", or let each case bring its own criteria")
        if case.threshold is not None:
            raise UsageError(f"its threshold of {case.threshold!r} needs criteria or a rubric to apply to")

    async def judge_case(self, case: Case, sample: int, call: Call = UNBOUND) -> JudgeResult | PairResult:
        """Judge one case. If anything goes wrong, the result is undecided; only a cancellation from outside is raised.

        ``sample`` is the number of this judgement among several of the case, from 0.
        """
        cancellations_before = count_cancellations()
        try:
            if self.on_conflict is None:
                result: JudgeResult | PairResult = await self._judge_single(case, sample, call)
            else:
                result = await self._compare_case(case, sample, call)
            check_kept(result, ours=type(self.judge) is Judge)
        except asyncio.CancelledError:
            if count_cancellations() > cancellations_before:
                raise
            problem = "the judge cancelled itself"
        except FunctionError:  # the judge's function is wrong, so every case would raise it
            raise
        except Exception as error:  # noqa: BLE001 - the other cases are judged all the same
            problem = str(error) if isinstance(error, UsageError) else describe_error(error)
        else:
            return result
        return self._make_undecided(case, " ".join(problem.split())[:500])

    def _make_undecided(self, case: Case, detail: str) -> JudgeResult | PairResult:
        """Make the result of a case that could not be judged."""
        judge, metadata = str(self.judge.name), merge_case_data(case, self.arguments).get("metadata") or {}
        if self.on_conflict is not None:
            return PairResult(
                preferred=None,
                undecided_because="error",
                judge=judge,
                orders=(),
                detail=detail,
                metadata=metadata,
            )
        return JudgeResult(
            outcome="undecided",
            undecided_because="error",
            judge=judge,
            detail=detail,
            threshold=self._find_threshold(case),
            attempts=0,
            metadata=metadata,
        )

    def _find_threshold(self, case: Case) -> float | None:
        """Return the passing threshold that holds for a case; ``None`` without a rubric."""
        try:
            rubric = self.terms.find_rubric(case)
        except UsageError:  # perhaps the reason why the case could not be judged
            rubric = self.rubric
        return rubric.passing_threshold if rubric is not None else None

    async def _compare_case(self, case: Case, sample: int, call: Call) -> PairResult:
        """Compare the two contents of a case."""
        arguments: Any = {**self.arguments, "on_conflict": self.on_conflict, "sample": sample}
        return await compare_case_as(call, case, self.judge, self.rubric, arguments)

    async def _judge_single(self, case: Case, sample: int, call: Call) -> JudgeResult:
        """Judge the content of a case: by rules if they decide, else by the judge.

        The run's threshold also holds for criteria that the case brings.
        """
        started = time.perf_counter()
        arguments: EvaluateArguments = self.arguments
        if case.brings_own and self.threshold is not None:
            arguments = {**self.arguments, "threshold": self.threshold}
        rubric, merged = merge_case(case, self.rubric, arguments)
        question = await prepare(case.content, rubric, None, merged, sample=sample, call=call)
        answer = decide_by_rules(question)
        if answer is not None:
            return self.judge._make_result_of_rules(question, answer, measure_ms(started))  # noqa: SLF001 - what evaluate does with it
        result = await self.judge.ask(question)
        if not isinstance(result, JudgeResult):
            raise TypeError(f"the judge returned {type(result).__name__}, not a JudgeResult")
        return result


async def resolve_question(
    judge: Any,
    rubric: RubricSource | None,
    arguments: EvaluateArguments,
    on_conflict: OnConflict | None,
    *,
    cases_bring: Callable[[], bool],
) -> Assignment:
    """Make the assignment of a run: the question about every content, or with ``on_conflict`` about every pair of them.

    ``cases_bring`` says whether cases may bring their own criteria. Raises ``UsageError`` as ``resolve_contents`` does.
    """
    if on_conflict is not None:
        return _resolve_pairs(judge, rubric, arguments, on_conflict, cases_bring=cases_bring)
    return await resolve_contents(judge, rubric, arguments, cases_bring=cases_bring)


async def resolve_contents(
    judge: Any,
    rubric: RubricSource | None,
    arguments: EvaluateArguments,
    *,
    cases_bring: Callable[[], bool] = lambda: False,
) -> Assignment:
    """Make the assignment of a run in which each content is judged by itself.

    ``cases_bring`` says whether cases may bring their own criteria, so that the run needs none. Raises ``UsageError``
    for mistakes that can be found before any case is judged.
    """
    if "throw_on_fail" in arguments:
        raise UsageError(
            "a run has no throw_on_fail: a judgement that failed is one of its results", argument="throw_on_fail"
        )
    rules = [as_rule(rule) for rule in arguments.get("rules") or ()]
    judge_rubric = judge._get_default_rubric()  # noqa: SLF001 - as evaluate does
    lacks_criteria = (
        rubric is None
        and judge_rubric is None
        and not {"criteria", "result_format"} & arguments.keys()
        and cases_bring()
    )
    # Without criteria of the run, a placeholder is used, to find the mistakes that do not depend on the criteria, such
    # as a judge without a key.
    checked_arguments: EvaluateArguments = (
        {**arguments, "rules": ()} if not lacks_criteria else {**arguments, "rules": (), "criteria": "-"}
    )
    question = await prepare("-", rubric, judge_rubric, checked_arguments, stand_in=True)
    resolved_rubric = question.rubric
    asks_no_model = lacks_criteria and asks_nobody(getattr(judge, "model", None))  # rules may decide every case
    if not asks_no_model:
        _check_judge(judge, question)
    kept_arguments: EvaluateArguments = {**arguments, "rules": rules} if rules else {**arguments}
    kept_arguments.pop("criteria", None)  # it is in the rubric now, and so is the threshold
    threshold = kept_arguments.pop("threshold", None)
    options = {name: value for name, value in kept_arguments.items() if name not in ("rules", "metadata")}
    described = {
        # The wording depends on the rubric and on the version of adjudge: if either changes, so does the question.
        "wording": digest_wordings(question),
        "rules": describe_rules(rules),
        **{name: _describe_option(value) for name, value in options.items() if value is not None},
    }
    return Assignment(
        judge=judge,
        rubric=None if lacks_criteria else resolved_rubric,
        arguments=kept_arguments,
        described=to_plain(described),
        threshold=None if threshold is None else check_share("threshold", threshold),
    )


async def check_ready(assignment: Assignment) -> None:
    """Raise ``UsageError`` if the judge cannot be asked in this process, as when it has no key.

    Call this for an assignment that was made in another process, or that was given another judge. If each case brings
    its own rubric, nothing can be checked before the case is judged.
    """
    if assignment.rubric is None and (
        assignment.on_conflict is not None or "result_format" not in assignment.arguments
    ):
        return
    if assignment.rubric is not None and assignment.on_conflict is not None:
        arguments: Any = {**assignment.arguments}
        [question] = prepare_pair("-", "-", assignment.rubric, ("ab",), ties=True, sample=0, arguments=arguments)
        assignment.judge.check(question)
        return
    arguments_without_rules: Any = {**assignment.arguments, "rules": ()}
    _check_judge(assignment.judge, await prepare("-", assignment.rubric, None, arguments_without_rules, stand_in=True))


def _check_judge(judge: Any, question: Question) -> None:
    """Raise ``UsageError`` where a judge cannot answer a question, unless rules answer all of it."""
    rubric = question.rubric
    if rubric is None or len(question.decided_by_rules) < len(rubric.criteria) or question.value_type is not None:
        check = getattr(judge, "check", None)
        if check is not None:
            check(question)


def _resolve_pairs(
    judge: Any,
    rubric: RubricSource | None,
    arguments: EvaluateArguments,
    on_conflict: OnConflict,
    *,
    cases_bring: Callable[[], bool],
) -> Assignment:
    """Make the assignment of a run of pairs; ``cases_bring`` says whether cases may bring their own criteria."""
    pair_arguments: Any = {name: value for name, value in arguments.items() if name != "criteria"}
    judge_rubric, criteria = judge._get_default_rubric(), arguments.get("criteria")  # noqa: SLF001 - as compare does
    lacks_criteria = rubric is None and judge_rubric is None and criteria is None and cases_bring()
    # Without criteria of the run, a placeholder is used, to find the mistakes that do not depend on the criteria.
    chosen = choose_rubric(rubric, "-" if lacks_criteria else criteria, judge_rubric)
    [question] = prepare_pair("-", "-", chosen, ("ab",), ties=True, sample=0, arguments=pair_arguments)
    judge.check(question)
    options = {name: value for name, value in pair_arguments.items() if name != "metadata" and value is not None}
    described = {"wording": digest_question(question.wording, ()), "pairs": on_conflict, **options}
    kept_rubric = None if lacks_criteria else chosen
    return Assignment(
        judge=judge,
        rubric=kept_rubric,
        arguments=pair_arguments,
        described=to_plain(described),
        on_conflict=on_conflict,
    )


def _describe_option(value: Any) -> Any:
    """Describe the value of an option as plain data; a class or function by its full name."""
    name = getattr(value, "__qualname__", None)
    return f"{value.__module__}.{name}" if name is not None else to_plain(value)
