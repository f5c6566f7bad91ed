"""A judge as an evaluator of ``pydantic-evals``: what a task returned for a case is judged by a rubric.

A judgement that is undecided is no result: the evaluator raises, and the report lists it among the case's evaluator
failures, where ``retry_evaluators`` of a data set can try it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from adjudge.content import content_text, digest_text
from adjudge.dataset.case import Case
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_choice, check_flag
from adjudge.formats.text import clean
from adjudge.judges.chain import JudgeChain
from adjudge.judges.evaluate import EvaluateArguments, JudgeLike, RubricSource
from adjudge.judges.judge import Judge, ModelSource
from adjudge.judges.open import find_judge
from adjudge.result import JudgeResult, JudgmentFailed
from adjudge.rules.ruleset import AnyRule
from adjudge.runs.judging import Assignment, resolve_contents

try:
    from pydantic import GetPydanticSchema
    from pydantic_evals.evaluators import EvaluationReason, Evaluator, EvaluatorContext
except ModuleNotFoundError as error:
    if error.name not in {"pydantic", "pydantic_evals"}:  # it is installed, and lacks something of its own
        raise
    message = (
        "adjudge.integrations.pydantic_evals needs the package pydantic-evals; to have it, pip install pydantic-evals"
    )
    raise ModuleNotFoundError(message, name=error.name) from None

__all__ = ["JudgeEvaluator"]


def _declare_as(kind: Any) -> GetPydanticSchema:
    """Declare a parameter's type for the JSON Schema that ``Dataset.to_file`` writes beside a file of cases."""
    return GetPydanticSchema(get_pydantic_core_schema=lambda _, make_schema: make_schema(kind))


@dataclass(repr=False)
class JudgeEvaluator(Evaluator[object, object, object]):
    """Judge the output of a case by a rubric or by criteria.

    The output is the content, the case's inputs are the ``task``, its expected output is the ``reference``: all three
    reach the judge as fenced data. The results are an assertion, ``NAME_pass``, with the judge's reasoning as its
    reason, and where there is a number a score in 0 to 1, ``NAME_score``; NAME is ``evaluation_name``. The case's name
    is the result's ``metadata["case"]``, which also selects recorded replies.

    An undecided judgement raises ``JudgmentFailed``, which the report lists in ``evaluator_failures`` of the case. Look
    there as well as at the assertions: averages are computed without what failed to be evaluated. With
    ``on_undecided="fail"`` it is an assertion that is false, without a score.

    Raises ``UsageError`` for arguments that cannot be. One that shows only when a question is put together (no API key,
    no rubric) is raised from every case, and is an evaluator failure there.
    """

    judge: Annotated[JudgeLike | ModelSource | None, _declare_as(str | None)] = None
    """A judge, a chain, an object with ``name`` and ``ask``, or whatever ``Judge`` takes as its model; without one,
    what ``ADJUDGE_JUDGE`` names, read when the evaluator is made."""
    rubric: Annotated[RubricSource | None, _declare_as(str | dict[str, Any] | None)] = None
    """The rubric: a ``Rubric``, the path of one, or a shipped name; without one, the judge's own."""
    criteria: str | Sequence[str] | Mapping[str, str] | None = None
    """Instead of a rubric: a sentence, a list of sentences, or a mapping of names to sentences."""
    threshold: float | None = None
    """The passing threshold for ``criteria``, or in place of the rubric's own, in 0 to 1."""
    rules: Annotated[Sequence[AnyRule], _declare_as(list[str | dict[str, Any]])] = ()
    """Checks in code that run first; a failed ``error`` rule decides before a model is asked."""
    instructions: str | None = None
    """More instructions, which the judge obeys; never put content here."""
    include_input: bool = True
    """True if the judge sees the case's inputs."""
    include_expected_output: bool = True
    """True if the judge sees the case's expected output."""
    on_undecided: Literal["raise", "fail"] = "raise"
    """The outcome of a judgement that is undecided: an evaluator failure, or an assertion that is false."""
    evaluation_name: str | None = None
    """The name of the results; ``JudgeEvaluator`` by default."""

    def __post_init__(self) -> None:
        check_choice("on_undecided", self.on_undecided, ("raise", "fail"))
        check_flag("include_input", self.include_input)
        check_flag("include_expected_output", self.include_expected_output)
        # These are not dataclass fields, because pydantic-evals writes all fields to files and into its schema.
        self._opened_judge: Judge | JudgeChain = find_judge(self.judge)
        self._assignment: Assignment | None = None

    async def evaluate(
        self, ctx: EvaluatorContext[object, object, object]
    ) -> Mapping[str, bool | float | EvaluationReason]:
        """Judge one case; returns the assertion and the score."""
        case = Case(
            id=_name_case(ctx),
            content=ctx.output,
            task=ctx.inputs if self.include_input else None,
            reference=ctx.expected_output if self.include_expected_output else None,
        )
        result = await (await self._prepare()).judge_case(case, sample=0)
        if not isinstance(result, JudgeResult):
            raise UsageError(
                f"an evaluator needs a result about one content, got {type(result).__name__}", argument="result"
            )
        if result.undecided_because is not None and self.on_undecided == "raise":
            raise JudgmentFailed(result)
        return self._make_results(result)

    def get_default_evaluation_name(self) -> str:
        """Return the name of the results."""
        return self.evaluation_name or self.get_serialization_name()

    def build_serialization_arguments(self) -> dict[str, Any]:
        """List the arguments that a report or a file keeps; a judge, a rubric and rules of Python's by their names."""
        return {name: _name_object(value) for name, value in super().build_serialization_arguments().items()}

    async def _prepare(self) -> Assignment:
        """Return the assignment, the judge with rubric and options; it is made for the first case and kept."""
        if self._assignment is None:
            options: EvaluateArguments = {
                "criteria": self.criteria,
                "threshold": self.threshold,
                "rules": self.rules,
                "instructions": self.instructions,
            }
            self._assignment = await resolve_contents(self._opened_judge, self.rubric, options)
        return self._assignment

    def _make_results(self, result: JudgeResult) -> dict[str, bool | float | EvaluationReason]:
        """Return the assertion (``NAME_pass``) and, if the result has a score, the score (``NAME_score``)."""
        name = self.get_default_evaluation_name()
        results: dict[str, bool | float | EvaluationReason] = {
            f"{name}_pass": EvaluationReason(value=result.passed, reason=_explain(result))
        }
        if result.score is not None:
            results[f"{name}_score"] = float(result.score)
        return results


def _name_case(ctx: EvaluatorContext[object, object, object]) -> str:
    """Return the name of a case; without one a digest of its output, so that it gets only its own recorded replies."""
    if ctx.name:
        return ctx.name
    try:
        return digest_text(content_text(ctx.output))
    except UsageError:
        return "unreadable"


def _explain(result: JudgeResult) -> str:
    """Write the outcome, the judge's reasoning, and that of each criterion."""
    parts = [
        result.explain(),
        result.reasoning,
        *[f"{criterion.name}: {criterion.reasoning}" for criterion in result.criteria],
    ]
    return clean("\n\n".join(filter(None, parts)))


def _name_object(value: Any) -> Any:
    """Return plain data as it is, and any other object by its name alone, because a judge may contain a key."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(key): _name_object(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_name_object(member) for member in value]
    return str(getattr(value, "name", None) or getattr(value, "__qualname__", None) or type(value).__qualname__)
