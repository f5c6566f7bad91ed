"""What judges and chains share: building a question from a call, and asking it.

``evaluate``, its sync door and ``evaluate_many`` are written once, over ``ask``.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Generic, Protocol, Self, TypedDict, TypeVar, Unpack, runtime_checkable

from adjudge.concurrency import work_through
from adjudge.content import check_extent, content_text, copy_plain, digest_text
from adjudge.dataset.case import Case
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_share
from adjudge.formats.text import clean_id
from adjudge.hooks import logger, notify
from adjudge.models.model import UNBOUND, Call, Reply
from adjudge.question.prompt import _choose_wording
from adjudge.question.question import Answer, Part, Question, digest_question, write_part
from adjudge.question.result_format import answer_rubric_and_value, answer_value, check_format
from adjudge.question.score import answer_rubric, answer_yes_no, grade_criterion, settle_rubric
from adjudge.result import CriterionResult, JudgeResult, RuleResult, Usage
from adjudge.rubric.file import load_rubric
from adjudge.rubric.rubric import Rubric, make_rubric
from adjudge.rules.ruleset import AnyRule
from adjudge.rules.shipped import as_rule
from adjudge.sync import run_sync

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
    """What the content was asked to do; shown to the judge as data."""
    context: object
    """What the content may rely on (passages, policies); shown to the judge as data."""
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


_KNOWN = frozenset(EvaluateArguments.__annotations__)

_TYPES: Mapping[str, tuple[Any, str]] = {
    "instructions": (str, "a text"),
    "model": (str, "the name of a model"),
    "metadata": ((dict, Mapping), "a mapping"),
    "rules": ((tuple, list, Sequence), "a list of rules"),
    "passes": (Callable, "a function"),
}
"""What would fail later, and less clearly, than at the call. The usual types come first: asking an ABC takes longer."""


async def prepare(
    content: object,
    rubric: RubricSource | None,
    own: Rubric | None,
    how: EvaluateArguments,
    *,
    sample: int = 0,
    call: Call = UNBOUND,
) -> Question:
    """The question a call asks, its rules evaluated; ``own`` is the judge's rubric, used when the call brings none."""
    _check_names(how)
    chosen = resolve_rubric(rubric, own, how)
    kind, passes = how.get("result_format"), how.get("passes")
    properties = check_format(kind, passes) if kind is not None else None
    metadata = dict(how["metadata"] or {}) if "metadata" in how else {}
    check_extent(metadata, "metadata")
    content = copy_plain(content)  # the judge is shown one thing and the rules look at it, whatever its owner does
    parts = _make_parts(content, how)
    rules = how.get("rules")
    ran = [await rule.check(content, how.get("reference")) for rule in map(as_rule, rules)] if rules else []
    parts = _add_warnings(parts, ran) if ran else parts
    settled = await _settle(chosen, content, how.get("reference")) if chosen and chosen.has_rules else {}
    instructions = content_text(how.get("instructions") or "", what="text of instructions=")
    wording = _choose_wording(chosen, frozenset(settled), instructions, kind, properties)
    return Question(
        wording=wording,
        parts=parts,
        answer=_choose_answer(chosen, kind),
        digest=digest_question(wording, parts),
        subject=digest_text(parts[-1].text),
        rubric=chosen,
        settled=settled,
        rule_results=(*ran, *[_as_rule_result(item, chosen) for item in settled.values()]) if ran or settled else (),
        value_type=kind,
        passes=passes,
        model=how.get("model") or (chosen.model if chosen else None),
        threshold=chosen.passing_threshold if chosen else None,
        case=_text_of(metadata.get("case")),
        order=_text_of(metadata.get("order")),
        sample=sample,
        call=call,
        metadata=metadata,
    )


def make_prompt(prompt: str) -> Question:
    """A ready-made yes/no prompt as a question: sent as it is, answered by ``safe``, ``passed`` or ``allowed``."""
    if not isinstance(prompt, str) or not prompt.strip():
        raise UsageError(f"a ready-made prompt must be a text that is not empty, got {type(prompt).__name__}")
    parts = (Part(label="prompt", text=content_text(prompt, what="prompt")),)
    digest = digest_question(None, parts)
    return Question(wording=None, parts=parts, answer=answer_yes_no, digest=digest, subject=digest_text(prompt))


def _check_names(how: Mapping[str, Any]) -> None:
    if not _KNOWN.issuperset(how):
        from difflib import get_close_matches

        name = next(name for name in how if name not in _KNOWN)
        near = get_close_matches(name, _KNOWN, 1)
        raise UsageError(f"evaluate has no argument {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
    for name, (kind, said) in _TYPES.items():
        value = how.get(name)
        if value is not None and not isinstance(value, kind):
            raise UsageError(f"{name} must be {said}, got {type(value).__name__}")


NO_CRITERIA = "nothing says what good means: give a rubric, criteria='...' or result_format=..."


def resolve_rubric(rubric: RubricSource | None, own: Rubric | None, how: Mapping[str, Any]) -> Rubric | None:
    """The rubric a call is about; ``None`` where a result format alone says what is good. Raises ``UsageError``."""
    criteria, threshold = how.get("criteria"), how.get("threshold")
    if rubric is not None and criteria is not None:
        raise UsageError("give a rubric or criteria, not both")
    if criteria is not None:
        return make_rubric(criteria, threshold)
    chosen = load_rubric(rubric) if rubric is not None else own
    if chosen is None and threshold is not None:
        raise UsageError(f"threshold={threshold!r} needs criteria or a rubric to apply to")
    if chosen is None and how.get("result_format") is None:
        raise UsageError(f"{NO_CRITERIA}; a ready-made prompt goes to ask()")
    if chosen is None or threshold is None:
        return chosen
    return replace(chosen, passing_threshold=check_share("threshold", threshold))


def _make_parts(content: object, how: EvaluateArguments) -> tuple[Part, ...]:
    given = [write_part(label, how[label]) for label in ("task", "context", "reference") if how.get(label) is not None]
    return (*given, write_part("content", content))


def _add_warnings(parts: tuple[Part, ...], ran: Sequence[RuleResult]) -> tuple[Part, ...]:
    """Failed warnings reach the judge as evidence, fenced, since their messages may quote the content."""
    said = [f"{item.name}: {item.message}" for item in ran if not item.passed and item.severity == "warning"]
    if not said:
        return parts
    return (*parts[:-1], Part(label="findings", text="\n".join(said)), parts[-1])


async def _settle(rubric: Rubric, content: object, reference: object) -> dict[str, CriterionResult]:
    settled: dict[str, CriterionResult] = {}
    for item in rubric.criteria:
        if item.rule is not None:
            said = await item.rule.check(content, reference)
            score = 1.0 if said.passed else 0.0
            settled[item.name] = grade_criterion(item, score, said.message, rule=item.rule.kind)
    return settled


def _as_rule_result(item: CriterionResult, rubric: Rubric | None) -> RuleResult:
    rule = next((each.rule for each in rubric.criteria if each.name == item.name), None) if rubric else None
    severity = rule.severity if rule else "error"
    return RuleResult(
        name=item.name, passed=item.score == 1.0, severity=severity, message=item.reasoning, score=item.score
    )


def _choose_answer(rubric: Rubric | None, kind: type[Any] | None) -> Callable[[Mapping[str, Any], Question], Any]:
    if kind is None:
        return answer_rubric
    return answer_value if rubric is None else answer_rubric_and_value


def _text_of(value: object) -> str | None:
    return None if value is None else str(value)


def log_result(result: JudgeResult) -> None:
    """Log who said what: at INFO where nobody decided, else at DEBUG; what may quote the content at DEBUG alone."""
    level = logging.INFO if result.undecided_because else logging.DEBUG
    if not logger.isEnabledFor(level):
        return
    said = f"{result.outcome}: {result.undecided_because}" if result.undecided_because else result.outcome
    logger.log(level, "judge %r: %s in %.0f ms, result %s", result.judge, said, result.duration_ms, result.id)
    logger.debug("result %s: %s", result.id, result.explain())


R = TypeVar("R", bound=JudgeResult)


@runtime_checkable
class JudgeLike(Protocol):
    """Anything that answers questions: a judge, a chain, or an object of yours with these two members."""

    @property
    def name(self) -> str:
        """How results call this judge."""
        ...

    def ask(self, question: Question | str, /) -> Coroutine[Any, Any, JudgeResult]:
        """Answer a question; a bare text is a ready-made yes/no prompt, sent as it is."""
        ...


class Evaluates(Generic[R]):
    """``evaluate``, ``evaluate_sync`` and ``evaluate_many`` for whatever can ``ask``."""

    __slots__ = ()

    @property
    def on_result(self) -> Callable[[R], Any] | None:
        """What is called with every result."""
        raise NotImplementedError

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
                messages, an object with ``.output``.
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
        how: EvaluateArguments = {
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
        result = await self._evaluate(content, rubric, how)
        return result.raise_if_failed() if throw_on_fail else result

    async def _evaluate(
        self,
        content: object,
        rubric: RubricSource | None,
        how: EvaluateArguments,
        *,
        wants_objections: bool = False,
        wants_reasons: bool = False,
    ) -> R:
        """``evaluate`` without an exception for what failed; what it wants is that of the question."""
        started = time.perf_counter()
        question = await prepare(content, rubric, self._own_rubric(), how)
        if wants_objections or wants_reasons:
            question = replace(question, wants_objections=wants_objections, wants_reasons=wants_reasons)
        answer = decide_by_rules(question)
        if answer is not None:
            result = self._settle(question, answer, since(started))
            log_result(result)
            await notify(self.on_result, result, what="on_result")
        else:
            result = await self.ask(question)
        return result

    def evaluate_sync(
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
        """``evaluate`` without an event loop: returns the result itself. Inside a running loop, it blocks that loop.

        Args:
            content: What to judge: text, any JSON value, a dataclass, pydantic model or Struct, chat
                messages, an object with ``.output``.
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
        work = self.evaluate(
            content,
            rubric,
            criteria=criteria,
            threshold=threshold,
            reference=reference,
            task=task,
            context=context,
            model=model,
            rules=rules,
            instructions=instructions,
            result_format=result_format,
            passes=passes,
            throw_on_fail=throw_on_fail,
            metadata=metadata,
            **unknown,
        )
        return run_sync(work)

    def ask_sync(self, question: Question | str, /) -> R:
        """``ask`` for callers without an event loop."""
        return run_sync(self.ask(question))

    async def evaluate_many(
        self,
        contents: Iterable[object] | AsyncIterable[object],
        rubric: RubricSource | None = None,
        *,
        concurrency: int = 16,
        **how: Unpack[EvaluateArguments],
    ) -> AsyncGenerator[R, None]:
        """Judge many contents, at most ``concurrency`` at once, and yield the results in the order of the contents.

        A ``Case`` brings its own reference, task, context and metadata, and its id as ``metadata["case"]``. Its own
        criteria or rubric replace those of the call, its threshold the call's, and its rules go beside the call's.
        Contents are taken as they are needed. What goes wrong with one is its result; a ``UsageError`` ends the
        iteration. Leaving the loop early cancels what still runs.
        """
        judging = work_through(contents, lambda content: self._evaluate_case(content, rubric, how), concurrency)
        async with aclosing(judging) as results:
            async for result in results:
                yield result

    async def ask(self, question: Question | str, /) -> R:
        """Answer a question; a bare text is a ready-made yes/no prompt, sent as it is."""
        raise NotImplementedError

    async def aclose(self) -> None:
        """Close the connections of every model that may be asked."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    def _own_rubric(self) -> Rubric | None:
        return None

    def _settle(self, question: Question, answer: Answer, duration_ms: float) -> R:
        """The result when rules decided and nobody was asked."""
        raise NotImplementedError

    async def _evaluate_case(self, content: object, rubric: RubricSource | None, how: EvaluateArguments) -> R:
        if not isinstance(content, Case):
            return await self.evaluate(content, rubric, **how)
        chosen, merged = merge_case(content, rubric, how, own=self._own_rubric())
        return await self.evaluate(content.content, chosen, **merged)


M = TypeVar("M", bound=Mapping[str, Any])


def merge_case(
    case: Case, rubric: RubricSource | None, how: M, *, own: Rubric | None = None
) -> tuple[RubricSource | None, M]:
    """The rubric and the arguments of a call about a case; ``own`` is the judge's rubric.

    The criteria or the rubric of the case replace those of the call and of the judge, and its rules go beside the
    call's. The threshold is the case's, else the call's, else the rubric's; a case's own words, which have none, are
    held to the threshold of the rubric they replace.
    """
    merged: Any = merge_data(case, how)
    if not case.brings_own:
        return rubric, merged
    if case.rules:
        # Beside, never instead: a case cannot take a check of the call away.
        merged["rules"] = (*(how.get("rules") or ()), *case.rules)
    if case.threshold is not None:
        merged["threshold"] = case.threshold
    if case.criteria is None and case.rubric is None:
        return rubric, merged
    replaced = rubric if rubric is not None else own
    if case.criteria is not None and merged.get("threshold") is None and how.get("criteria") is None and replaced:
        merged["threshold"] = load_rubric(replaced).passing_threshold
    merged["criteria"] = case.criteria
    return case.rubric, merged


def merge_data(case: Case, how: M) -> M:
    """The arguments of a call about a case: those of the call, the data of the case, and the metadata of both."""
    own = {name: getattr(case, name) for name in ("reference", "task", "context")}
    merged: Any = {**how, **{name: value for name, value in own.items() if value is not None}}
    # The id last: a case that names another's would be given that one's recorded reply.
    merged["metadata"] = {**case.metadata, **(how.get("metadata") or {}), "case": case.id}
    return merged


def decide_by_rules(question: Question) -> Answer | None:
    """The answer when rules settle the matter before any model is asked, else ``None``."""
    if question.rubric is not None and not question.rule_results:
        return None
    ran = question.rule_results[: len(question.rule_results) - len(question.settled)]
    broken = explain_broken(ran)
    if broken:
        return Answer(outcome="failed", decided_by="rule", threshold=question.threshold, detail=broken)
    if question.rubric is None:
        return None
    if question.value_type is None and len(question.settled) == len(question.rubric.criteria):
        return settle_rubric(question)
    vetoes = [item.name for item in question.settled.values() if item.threshold is not None and not item.passed]
    if not vetoes:
        return None
    named = f"below the threshold of {', '.join(vetoes)}, which a rule decided; no model was asked about the rest"
    known = tuple(question.settled.values())
    return Answer(outcome="failed", decided_by="rule", threshold=question.threshold, criteria=known, detail=named)


def explain_broken(ran: Iterable[RuleResult]) -> str:
    """Which rules decide that content failed, and why: those of severity ``error`` that did; nothing when none does."""
    decide = [item for item in ran if not item.passed and item.severity == "error"]
    return "; ".join([f"rule {item.name!r} failed: {item.message}" for item in decide])


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
    """A result from an answer, the replies it was read from, and what belongs to the question."""
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
        earlier_responses=tuple([item.text or "" for item in replies[:-1]]) if len(replies) > 1 else (),
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


def add_usage(answered: Sequence[Reply | JudgeResult]) -> Usage | None:
    """What some replies or results used together; ``None`` where nothing is known of any."""
    total: Usage | None = None
    for item in answered:
        if item.usage is not None:
            total = item.usage if total is None else total + item.usage
    return total


def since(started: float) -> float:
    """Milliseconds since a ``time.perf_counter()`` reading."""
    return (time.perf_counter() - started) * 1000.0
