"""The part that judges and chains share: building a question from a call, and asking it.

``evaluate``, its sync door and ``evaluate_many`` are written once, over ``ask``.

What the scores of a reply come to is decided in ``question/score.py`` (``decide``), and what failed rules come to, in
``decide_by_rules``. Whether an unreadable reply is asked for again is decided in ``judge.py`` (``_REASKED_REASONS``).
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Generic, Protocol, Self, TypedDict, TypeVar, Unpack, runtime_checkable

from adjudge.agents.rendering import RenderedRun
from adjudge.agents.run import AgentRun
from adjudge.concurrency import work_through
from adjudge.content import check_extent, content_text, digest_text, read_content
from adjudge.dataset.case import Case
from adjudge.errors import Argument, UsageError
from adjudge.formats.arguments import check_share
from adjudge.formats.text import clean_id
from adjudge.hooks import logger, notify
from adjudge.judges.part_questions import STAND_IN, decide_absent_parts, pose_parts
from adjudge.models.model import UNBOUND, Call, Reply
from adjudge.question.prompt import choose_wording
from adjudge.question.question import Answer, Part, Question, digest_question, write_part
from adjudge.question.result_format import answer_rubric_and_value, answer_value, check_format
from adjudge.question.score import answer_by_rules, answer_rubric, answer_yes_no, grade_criterion
from adjudge.result import CriterionResult, JudgeResult, RuleResult, Usage
from adjudge.rubric.file import load_rubric
from adjudge.rubric.rubric import Rubric, make_rubric
from adjudge.rules.ruleset import AnyRule
from adjudge.rules.shipped import as_rule
from adjudge.sync import make_sync_method

RubricSource = Rubric | Mapping[str, Any] | str | os.PathLike[str]


class EvaluateArguments(TypedDict, total=False):
    """The keyword arguments every ``evaluate`` takes."""

    criteria: str | Sequence[str] | Mapping[str, str] | None
    """Instead of a rubric: a sentence, a list of sentences, or a mapping of names to sentences."""
    threshold: float | None
    """The passing threshold for ``criteria``, or in place of the rubric's own, in 0 to 1."""
    reference: object
    """A known good answer to compare with; shown to the judge as data."""
    task: object
    """The task of the content; shown to the judge as data."""
    context: object
    """Material that the content may rely on (passages, policies); shown to the judge as data."""
    model: str | None
    """The model to ask, in place of the rubric's and the judge's own; a ``UsageError`` with a chain."""
    rules: Sequence[AnyRule]
    """Checks in code that run first; a failed ``error`` rule decides before a model is asked."""
    instructions: str | None
    """More instructions, which the judge obeys; never put content here."""
    result_format: type[Any] | None
    """A pydantic model, dataclass or msgspec Struct for the reply; the instance is ``result.value``."""
    passes: Callable[[Any], bool] | None
    """A function that says whether an instance of ``result_format`` passes; by default its boolean ``passed``."""
    throw_on_fail: bool
    """Raise ``JudgmentFailed`` unless the content passed; also if it is undecided."""
    metadata: Mapping[str, Any] | None
    """Copied to the result, never sent to a model; ``case`` and ``order`` also select recorded replies."""


class NoOther(TypedDict, total=False):
    """No keyword at all: a type checker refuses what is not in a signature, and at run time the nearest is named."""


_ARGUMENT_NAMES = frozenset(EvaluateArguments.__annotations__)

_ARGUMENT_TYPES: Mapping[str, tuple[Any, str]] = {
    "instructions": (str, "a text"),
    "model": (str, "the name of a model"),
    "metadata": ((dict, Mapping), "a mapping"),
    "rules": ((tuple, list, Sequence), "a list of rules"),
    "passes": (Callable, "a function"),
}
"""Types of arguments that would fail later, and less clearly, than at the call.

The usual types come first: asking an ABC takes longer.
"""


async def prepare(
    content: object,
    rubric: RubricSource | None,
    default_rubric: Rubric | None,
    arguments: EvaluateArguments,
    *,
    sample: int = 0,
    call: Call = UNBOUND,
    stand_in: bool = False,
    subject: str | None = None,
) -> Question:
    """Make the question of a call, and evaluate its rules; ``default_rubric`` is used when the call has none.

    ``stand_in`` says that the content is a placeholder for contents that are not known yet; a rubric about the parts of
    runs is then given an example run. ``subject`` is the digest of the original content, if this one is a changed copy
    of it, as after a redaction.
    """
    _check_names(arguments)
    chosen_rubric = resolve_rubric(rubric, default_rubric, arguments)
    value_type, passes = arguments.get("result_format"), arguments.get("passes")
    properties = check_format(value_type, passes) if value_type is not None else None
    metadata = dict(arguments["metadata"] or {}) if "metadata" in arguments else {}
    if metadata:
        check_extent(metadata, "metadata")
    part_rubric = chosen_rubric if chosen_rubric is not None and chosen_rubric.has_parts else None
    # The judge and the rules look at this one copy.
    content = read_content(STAND_IN if stand_in and part_rubric is not None else content)
    rendered = content.render() if isinstance(content, AgentRun) else None
    parts = _make_parts(content, rendered, arguments)
    if rendered is not None and rendered.left_out:
        metadata["left_out"] = rendered.left_out  # shown in the result: the judge did not see the whole run
    rules, reference = arguments.get("rules"), arguments.get("reference")
    rule_results = [await rule.check(content, reference) for rule in map(as_rule, rules)] if rules else []
    parts = _add_warnings(parts, rule_results) if rule_results else parts
    ruled_criteria = (
        await _evaluate_rules(chosen_rubric, content, reference) if chosen_rubric and chosen_rubric.has_rules else {}
    )
    ruled_criteria |= decide_absent_parts(content, part_rubric, value_type) if part_rubric is not None else {}
    criterion_results = [_make_rule_result(criterion, chosen_rubric) for criterion in ruled_criteria.values()]
    instructions = arguments.get("instructions")
    instructions = content_text(instructions, label="text of instructions=") if instructions else ""
    part_criteria = _list_part_criteria(part_rubric, ruled_criteria)
    wording = choose_wording(chosen_rubric, part_criteria.union(ruled_criteria), instructions, value_type, properties)
    question = Question(
        wording=wording,
        parts=parts,
        answer=_choose_answer(chosen_rubric, value_type),
        digest=digest_question(wording, parts),
        subject=subject or digest_text(parts[-1].text if rendered is None else content_text(content)),
        rubric=chosen_rubric,
        decided_by_rules=ruled_criteria,
        elsewhere=part_criteria,
        rule_results=(*rule_results, *criterion_results),
        value_type=value_type,
        passes=passes,
        model=arguments.get("model") or (chosen_rubric.model if chosen_rubric else None),
        threshold=chosen_rubric.passing_threshold if chosen_rubric else None,
        case=_to_text(metadata.get("case")),
        order=_to_text(metadata.get("order")),
        sample=sample,
        call=call,
        metadata=metadata,
    )
    return pose_parts(question, content, instructions) if part_criteria and isinstance(content, AgentRun) else question


def make_prompt(prompt: str) -> Question:
    """Make a question of a ready-made yes/no prompt: sent as it is, answered by ``safe``, ``passed`` or ``allowed``.

    Raises ``UsageError``.
    """
    if not isinstance(prompt, str) or not prompt.strip():
        raise UsageError(
            f"a ready-made prompt must be a text that is not empty, got {type(prompt).__name__}", argument="prompt"
        )
    parts = (Part(label="prompt", text=content_text(prompt, label="prompt")),)
    digest = digest_question(None, parts)
    return Question(wording=None, parts=parts, answer=answer_yes_no, digest=digest, subject=digest_text(prompt))


def _check_names(arguments: Mapping[str, Any]) -> None:
    """Raise ``UsageError`` for an argument that ``evaluate`` does not have, or that is of a wrong type."""
    if not _ARGUMENT_NAMES.issuperset(arguments):
        from difflib import get_close_matches

        name = next(name for name in arguments if name not in _ARGUMENT_NAMES)
        matches = get_close_matches(name, _ARGUMENT_NAMES, 1)
        raise UsageError(
            f"evaluate has no argument {name!r}" + (f"; did you mean {matches[0]!r}?" if matches else ""), argument=name
        )
    for name, (kind, expected) in _ARGUMENT_TYPES.items():
        value = arguments.get(name)
        if value is not None and not isinstance(value, kind):
            raise UsageError(f"{name} must be {expected}, got {type(value).__name__}", argument=name)


def make_undefined_good_error(*more: object) -> UsageError:
    """Make the error for a call without a rubric or criteria; ``more`` ends its sentence with other remedies."""
    remedy = ("give ", Argument("rubric"), " or ", Argument("criteria"), *more)
    return UsageError("nothing says what good means: ", *remedy, argument="criteria")


def resolve_rubric(
    rubric: RubricSource | None, default_rubric: Rubric | None, arguments: Mapping[str, Any]
) -> Rubric | None:
    """Return the rubric of a call; ``None`` if it has a result format instead.

    Raises ``UsageError`` for arguments that do not go together.
    """
    criteria, threshold = arguments.get("criteria"), arguments.get("threshold")
    if rubric is not None and criteria is not None:
        raise UsageError("give ", Argument("rubric"), " or ", Argument("criteria"), ", not both", argument="criteria")
    if criteria is not None:
        return make_rubric(criteria, threshold)
    chosen = load_rubric(rubric) if rubric is not None else default_rubric
    if chosen is None and threshold is not None:
        remedy = (" needs ", Argument("criteria"), " or ", Argument("rubric"), " to apply to")
        raise UsageError(Argument("threshold", repr(threshold)), *remedy, argument="threshold")
    if chosen is None and arguments.get("result_format") is None:
        extra = "; to check by rules alone, use Rules(rules).evaluate" if arguments.get("rules") else ""
        raise make_undefined_good_error(f", or a result_format; a ready-made prompt goes to ask{extra}")
    if chosen is None or threshold is None:
        return chosen
    return replace(chosen, passing_threshold=check_share("threshold", threshold))


def _make_parts(content: object, rendered: RenderedRun | None, arguments: EvaluateArguments) -> tuple[Part, ...]:
    """Make the parts of a question, the content last; ``rendered`` is the content if that is a run."""
    context_parts = [
        write_part(label, arguments[label])
        for label in ("task", "context", "reference")
        if arguments.get(label) is not None
    ]
    content_part = write_part("content", content if rendered is None else rendered.text)
    return (*context_parts, content_part if rendered is None else replace(content_part, is_json=True))


def _add_warnings(parts: tuple[Part, ...], rule_results: Sequence[RuleResult]) -> tuple[Part, ...]:
    """Add a part with the messages of failed rules of severity ``warning``, before the content.

    So the judge sees them as data between fences, because the messages may quote the content.
    """
    warnings = [
        f"{result.name}: {result.message}"
        for result in rule_results
        if not result.passed and result.severity == "warning"
    ]
    if not warnings:
        return parts
    return (*parts[:-1], Part(label="findings", text="\n".join(warnings)), parts[-1])


async def _evaluate_rules(rubric: Rubric, content: object, reference: object) -> dict[str, CriterionResult]:
    """Evaluate the criteria that a rubric leaves to rules; return their results by the criteria's names."""
    results: dict[str, CriterionResult] = {}
    for criterion in rubric.criteria:
        if criterion.rule is not None:
            rule_result = await criterion.rule.check(content, reference)
            score = 1.0 if rule_result.passed else 0.0
            results[criterion.name] = grade_criterion(criterion, score, rule_result.message, rule=criterion.rule.kind)
    return results


def _list_part_criteria(rubric: Rubric | None, decided: Mapping[str, CriterionResult]) -> frozenset[str]:
    """List the criteria of a rubric that are still to be asked about the parts of a run; ``None`` has none."""
    if rubric is None:
        return frozenset()
    names = [criterion.name for criterion in rubric.criteria if criterion.per != "run"]
    return frozenset([name for name in names if name not in decided])


def _make_rule_result(criterion: CriterionResult, rubric: Rubric | None) -> RuleResult:
    """Make the result of the rule that decided a criterion; the rule has passed only with the full score."""
    rules = {rubric_criterion.name: rubric_criterion.rule for rubric_criterion in rubric.criteria} if rubric else {}
    rule = rules.get(criterion.name)
    severity = rule.severity if rule else "error"
    return RuleResult(
        name=criterion.name,
        passed=criterion.score == 1.0,
        severity=severity,
        message=criterion.reasoning,
        score=criterion.score,
    )


def _choose_answer(rubric: Rubric | None, value_type: type[Any] | None) -> Callable[[Mapping[str, Any], Question], Any]:
    """Choose the function that makes an answer of a reply: by the rubric, by the result format, or by both."""
    if value_type is None:
        return answer_rubric
    return answer_value if rubric is None else answer_rubric_and_value


def _to_text(value: object) -> str | None:
    """Return a value as a text; ``None`` stays ``None``."""
    return None if value is None else str(value)


def log_result(result: JudgeResult) -> None:
    """Log a result: at INFO if it is undecided, else at DEBUG. Its explanation may quote the content: at DEBUG only."""
    level = logging.INFO if result.undecided_because else logging.DEBUG
    if not logger.isEnabledFor(level):
        return
    outcome = f"{result.outcome}: {result.undecided_because}" if result.undecided_because else result.outcome
    logger.log(level, "judge %r: %s in %.0f ms, result %s", result.judge, outcome, result.duration_ms, result.id)
    logger.debug("result %s: %s", result.id, result.explain())


R = TypeVar("R", bound=JudgeResult)


@runtime_checkable
class JudgeLike(Protocol):
    """Anything that answers questions: a judge, a chain, or an object of yours with these two members."""

    @property
    def name(self) -> str:
        """Name of this judge in results."""
        ...

    def ask(self, question: Question | str, /) -> Coroutine[Any, Any, JudgeResult]:
        """Answer a question; a bare text is a ready-made yes/no prompt, sent as it is.

        Args:
            question: What is asked.
        """
        ...


class Evaluates(Generic[R]):
    """``evaluate``, ``evaluate_sync`` and ``evaluate_many`` for whatever can ``ask``."""

    on_result: Callable[[R], Any] | None
    """Called with every result."""

    async def evaluate(
        self,
        content: object,
        rubric: RubricSource | None = None,
        *,
        criteria: str | Sequence[str] | Mapping[str, str] | None = None,
        threshold: float | None = None,
        reference: object = None,
        task: object = None,
        context: object = None,
        model: str | None = None,
        rules: Sequence[AnyRule] = (),
        instructions: str | None = None,
        result_format: type[Any] | None = None,
        passes: Callable[[Any], bool] | None = None,
        throw_on_fail: bool = False,
        metadata: Mapping[str, Any] | None = None,
        **unknown: Unpack[NoOther],
    ) -> R:
        """Judge some content and return the result.

        Say what good means with a rubric, in words with ``criteria=``, or with ``result_format=``::

            result = await judge.evaluate("Thank you.", criteria="Is polite.")
            if result.passed:  # True only if it passed: not if it failed, nor if it is undecided
                print(result.score, result.explain())

        If the model fails, times out, or replies in a form that cannot be read, the result is ``undecided``; this is
        not an exception. Raises ``UsageError`` for mistakes that are found before a model is asked, and
        ``JudgmentFailed`` only with ``throw_on_fail=True``.

        Args:
            content: What to judge: text, any JSON value, a dataclass, pydantic model or Struct, chat
                messages, an object with ``.output``, an ``AgentRun``.
            rubric: A ``Rubric``, the path of one, or a shipped name; by default the judge's own.
            criteria: Instead of a rubric: a sentence, a list of sentences, or a mapping of names to
                sentences.
            threshold: The passing threshold for ``criteria``, or in place of the rubric's own, in 0 to 1.
            reference: A known good answer to compare with; shown to the judge as data.
            task: What the content was asked to do; shown to the judge as data.
            context: What the content may rely on (passages, policies); shown to the judge as data.
            model: The model to ask, in place of the rubric's and the judge's own; a ``UsageError`` with a chain.
            rules: Checks in code that run first; a failed ``error`` rule decides before a model is
                asked.
            instructions: More instructions, which the judge obeys; never put content here.
            result_format: A pydantic model, dataclass or msgspec Struct for the reply; the instance is
                ``result.value``.
            passes: A function that says whether an instance of ``result_format`` passes; by default its
                boolean ``passed``.
            throw_on_fail: Raise ``JudgmentFailed`` unless the content passed; also if it is undecided.
            metadata: Copied to the result, never sent to a model; ``case`` and ``order`` also select
                recorded replies.
        """
        if unknown:
            _check_names(unknown)
        arguments: EvaluateArguments = {
            "criteria": criteria,
            "threshold": threshold,
            "reference": reference,
            "task": task,
            "context": context,
            "model": model,
            "rules": rules,
            "instructions": instructions,
            "result_format": result_format,
            "passes": passes,
            "throw_on_fail": throw_on_fail,
            "metadata": metadata,
        }
        result = await self._evaluate(content, rubric, arguments)
        return result.raise_if_failed() if throw_on_fail else result

    async def _evaluate(
        self,
        content: object,
        rubric: RubricSource | None,
        arguments: EvaluateArguments,
        *,
        wants_objections: bool = False,
        wants_reasons: bool = False,
        subject: str | None = None,
    ) -> R:
        """Evaluate some content without raising for a failure: by rules if they decide, else by asking.

        ``wants_objections`` and ``wants_reasons`` are set on the question; ``subject`` is that of ``prepare``.
        """
        started = time.perf_counter()
        question = await prepare(content, rubric, self._get_default_rubric(), arguments, subject=subject)
        if wants_objections or wants_reasons:
            question = replace(question, wants_objections=wants_objections, wants_reasons=wants_reasons)
        answer = decide_by_rules(question)
        if answer is not None:
            result = self._make_result_of_rules(question, answer, measure_ms(started))
            log_result(result)
            await notify(self.on_result, result, name="on_result")
        else:
            result = await self.ask(question)
        return result

    evaluate_sync = make_sync_method(evaluate)

    async def evaluate_many(
        self,
        contents: Iterable[object] | AsyncIterable[object],
        rubric: RubricSource | None = None,
        *,
        concurrency: int = 16,
        **arguments: Unpack[EvaluateArguments],
    ) -> AsyncGenerator[R, None]:
        """Judge many contents, several at once, and yield the results in the order of the contents.

        A ``Case`` brings its own reference, task, context and metadata, and its id as ``metadata["case"]``. Its own
        criteria or rubric replace those of the call, its threshold the call's, and its rules go beside the call's.
        Contents are taken as they are needed. What goes wrong with one is its result; a ``UsageError`` ends the
        iteration. Leaving the loop early cancels what still runs.

        Args:
            contents: The contents, or ``Case``s, which are read as needed.
            rubric: What good means, as for ``evaluate``; by default the judge's own rubric.
            concurrency: How many contents are judged at once at most.
            arguments: Further arguments of ``evaluate``, the same for every content.
        """
        evaluations = work_through(
            contents, lambda content: self._evaluate_case(content, rubric, arguments), concurrency
        )
        async with aclosing(evaluations) as results:
            async for result in results:
                yield result

    async def ask(self, question: Question | str, /) -> R:
        """Answer a question; a bare text is a ready-made yes/no prompt, sent as it is.

        Args:
            question: What is asked.
        """
        raise NotImplementedError

    ask_sync = make_sync_method(ask)

    async def aclose(self) -> None:
        """Close the connections of every model that may be asked."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    def _get_default_rubric(self) -> Rubric | None:
        return None

    def _make_result_of_rules(self, question: Question, answer: Answer, duration_ms: float) -> R:
        """Make the result when rules decided and nobody was asked."""
        raise NotImplementedError

    async def _evaluate_case(self, content: object, rubric: RubricSource | None, arguments: EvaluateArguments) -> R:
        """Evaluate a content, or a ``Case`` with what it brings."""
        if not isinstance(content, Case):
            return await self.evaluate(content, rubric, **arguments)
        case_rubric, merged = merge_case(content, rubric, arguments, default_rubric=self._get_default_rubric())
        return await self.evaluate(content.content, case_rubric, **merged)


M = TypeVar("M", bound=Mapping[str, Any])


def merge_case(
    case: Case, rubric: RubricSource | None, arguments: M, *, default_rubric: Rubric | None = None
) -> tuple[RubricSource | None, M]:
    """Return the rubric and the arguments of a call about a case; ``default_rubric`` is the judge's.

    The criteria or the rubric of the case replace those of the call and of the judge, and its rules are added to the
    call's. The threshold is the case's, else the call's, else the rubric's. Criteria in words have no threshold, so
    those of a case get that of the rubric they replace.
    """
    merged: Any = merge_case_data(case, arguments)
    if not case.brings_own:
        return rubric, merged
    if case.rules:
        # Added and never replaced: a case must not be able to remove a check of the call.
        merged["rules"] = (*(arguments.get("rules") or ()), *case.rules)
    if case.threshold is not None:
        merged["threshold"] = case.threshold
    if case.criteria is None and case.rubric is None:
        return rubric, merged
    replaced = rubric if rubric is not None else default_rubric
    if case.criteria is not None and merged.get("threshold") is None and arguments.get("criteria") is None and replaced:
        merged["threshold"] = load_rubric(replaced).passing_threshold
    merged["criteria"] = case.criteria
    return case.rubric, merged


def merge_case_data(case: Case, arguments: M) -> M:
    """Merge the arguments of a call with the data of a case (reference, task, context), and the metadata of both."""
    case_data = {name: getattr(case, name) for name in ("reference", "task", "context")}
    merged: Any = {**arguments, **{name: value for name, value in case_data.items() if value is not None}}
    # The id comes last, so that metadata cannot replace it: the case would be given the recorded reply to another case.
    merged["metadata"] = {**case.metadata, **(arguments.get("metadata") or {}), "case": case.id}
    return merged


def decide_by_rules(question: Question) -> Answer | None:
    """Return the answer if rules decide before any model is asked, else ``None``."""
    if question.rubric is not None and not question.rule_results:
        return None
    # The results of the call's rules come first, those of the rubric's criteria after them.
    call_results = question.rule_results[: len(question.rule_results) - len(question.decided_by_rules)]
    failed_rules = explain_failed_rules(call_results)
    if failed_rules:
        return Answer(outcome="failed", decided_by="rule", threshold=question.threshold, detail=failed_rules)
    if question.rubric is None:
        return None
    if question.value_type is None and len(question.decided_by_rules) == len(question.rubric.criteria):
        return answer_by_rules(question)
    vetoes = [
        criterion.name
        for criterion in question.decided_by_rules.values()
        if criterion.threshold is not None and not criterion.passed
    ]
    if not vetoes:
        return None
    detail = f"below the threshold of {', '.join(vetoes)}, which a rule decided; no model was asked about the rest"
    criteria = tuple(question.decided_by_rules.values())
    return Answer(outcome="failed", decided_by="rule", threshold=question.threshold, criteria=criteria, detail=detail)


def explain_failed_rules(results: Iterable[RuleResult]) -> str:
    """Explain which rules of severity ``error`` failed, which makes the content fail; empty if none did."""
    deciding = [result for result in results if not result.passed and result.severity == "error"]
    return "; ".join([f"rule {result.name!r} failed: {result.message}" for result in deciding])


def make_result(
    question: Question,
    answer: Answer,
    *,
    judge: str,
    attempts: int,
    duration_ms: float,
    replies: Sequence[Reply] = (),
    text_after: int = 0,
) -> JudgeResult:
    """Make a result from an answer, the replies it was read from, and what belongs to the question."""
    last = replies[-1] if replies else _NO_REPLY
    return JudgeResult(
        outcome=answer.outcome,
        judge=judge,
        attempts=attempts,
        duration_ms=duration_ms,
        undecided_because=answer.because,
        model=last.model,
        model_requested=last.model_requested,
        model_expected=last.model_expected,
        raw_response=last.text,
        earlier_responses=tuple([reply.text or "" for reply in replies[:-1]]) if len(replies) > 1 else (),
        finish_reason=last.finish_reason if replies else None,
        text_after=text_after,
        request_id=clean_id(last.request_id),
        usage=last.usage if len(replies) < 2 else add_usage(replies),
        score=answer.score,
        threshold=answer.threshold,
        confidence=answer.confidence,
        criteria=answer.criteria,
        reasoning=answer.reasoning,
        suggestions=answer.suggestions,
        value=answer.value,
        decided_by=answer.decided_by,
        detail=answer.detail,
        rule_results=question.rule_results,
        question=question.digest,
        subject=question.subject,
        metadata=question.metadata,
    )


_NO_REPLY = Reply()


def add_usage(replies: Sequence[Reply | JudgeResult]) -> Usage | None:
    """Add up the usage of some replies or results; ``None`` if none of them has any."""
    total: Usage | None = None
    for reply in replies:
        if reply.usage is not None:
            total = reply.usage if total is None else total + reply.usage
    return total


def measure_ms(started: float) -> float:
    """Return the milliseconds since a ``time.perf_counter()`` reading."""
    return (time.perf_counter() - started) * 1000.0
