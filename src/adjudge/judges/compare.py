"""A against B: which of two contents is better, asked in both orders.

Which is preferred when the two orders conflict is decided in ``pair.py`` (``decide_pair``).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypedDict, Unpack, get_args

from adjudge.content import check_extent, content_text, digest_text
from adjudge.dataset.case import Case
from adjudge.errors import Argument, UsageError
from adjudge.formats.arguments import check_choice, check_flag, check_whole_number
from adjudge.judges.chain import JudgeChain
from adjudge.judges.evaluate import JudgeLike, NoOther, RubricSource, add_usage, measure_ms, merge_case
from adjudge.judges.judge import Judge, ModelSource
from adjudge.judges.open import find_judge
from adjudge.judges.pair import PREFERENCES, OnConflict, Order, PairOrder, PairResult, decide_pair
from adjudge.models.model import UNBOUND, Call
from adjudge.question.question import Question, Wording, digest_question, write_part
from adjudge.question.score import answer_preference
from adjudge.result import JudgeResult
from adjudge.rubric.file import load_rubric
from adjudge.rubric.rubric import Criterion, Rubric, make_rubric
from adjudge.sync import make_sync

_CONTEXT_ARGUMENTS = ("task", "context", "reference")


class CompareArguments(TypedDict, total=False):
    """The arguments of ``compare`` that are about both contents."""

    task: object
    """The task of both; shown to the judge as data."""
    context: object
    """Material that both may rely on (passages, policies); shown to the judge as data."""
    reference: object
    """A known good answer to compare both with; shown to the judge as data."""
    instructions: str | None
    """More instructions, which the judge obeys; never put content here."""
    metadata: Mapping[str, Any] | None
    """Copied to the result, never sent to a model; ``case`` also selects recorded replies."""


def prepare_pair(
    a: object,
    b: object,
    rubric: Rubric,
    orders: tuple[Order, ...],
    *,
    ties: bool,
    sample: int,
    arguments: CompareArguments,
    call: Call = UNBOUND,
) -> tuple[Question, ...]:
    """Make the question of a comparison once for each order in which the contents are shown.

    Raises ``UsageError`` for mistakes that can be found before anything is asked.
    """
    _check_arguments(arguments)
    instructions = arguments.get("instructions") or ""
    shared_parts = [
        write_part(label, arguments.get(label)) for label in _CONTEXT_ARGUMENTS if arguments.get(label) is not None
    ]
    parts_by_name = {
        "a": write_part("first", a, name="first content"),
        "b": write_part("second", b, name="second content"),
    }
    metadata = dict(arguments.get("metadata") or {})
    check_extent(metadata, "metadata")
    case = metadata.get("case")
    wording, subject = word_pair(rubric, instructions, ties), digest_pair(a, b)
    questions = []
    for order in orders:
        pair_parts = [
            replace(parts_by_name[name], label=label) for label, name in zip(("first", "second"), order, strict=True)
        ]
        parts = (*shared_parts, *pair_parts)
        questions.append(
            Question(
                wording=wording,
                parts=parts,
                answer=answer_preference,
                digest=digest_question(wording, parts),
                subject=subject,
                model=rubric.model,
                case=None if case is None else str(case),
                order=order,
                sample=sample,
                call=call,
                choices=PREFERENCES if ties else PREFERENCES[:2],
                metadata=metadata,
            )
        )
    return tuple(questions)


def digest_pair(a: object, b: object) -> str:
    """Compute the SHA-256 of both contents together: that of ``{"a": a, "b": b}``, which a data set has as content."""
    return digest_text(content_text({"a": a, "b": b}))


def make_undefined_better_error(*more: object) -> UsageError:
    """Make the error for a comparison without a rubric or criteria; ``more`` ends its sentence with other remedies."""
    remedy = ("give ", Argument("rubric"), " or ", Argument("criteria"), *more)
    return UsageError("nothing says what better means: ", *remedy, argument="criteria")


def choose_rubric(rubric: RubricSource | None, criteria: Any, default_rubric: Rubric | None) -> Rubric:
    """Return the rubric by which two contents are compared: that of the call, its criteria, or the judge's own.

    Raises ``UsageError`` if there is none of them, if the call has both, and for a rubric that cannot compare.
    """
    if rubric is not None and criteria is not None:
        raise UsageError("give ", Argument("rubric"), " or ", Argument("criteria"), ", not both", argument="criteria")
    if rubric is not None:
        chosen: Rubric | None = load_rubric(rubric)
    else:
        chosen = make_rubric(criteria, None) if criteria is not None else default_rubric
    if chosen is None:
        raise make_undefined_better_error()
    if chosen.has_rules:
        ruled_criteria = ", ".join(repr(criterion.name) for criterion in chosen.criteria if criterion.rule is not None)
        raise UsageError(
            f"the rubric {chosen.name!r} leaves {ruled_criteria} to rules, which judge one content by itself; a "
            "comparison needs a rubric whose criteria are all for the judge",
            argument="rubric",
        )
    if chosen.has_parts:
        raise UsageError(
            f"the rubric {chosen.name!r} is judged per turn or call of a run, and a comparison shows two contents as "
            "a whole",
            argument="rubric",
        )
    return chosen


@lru_cache(maxsize=256)
def word_pair(rubric: Rubric, instructions: str, ties: bool) -> Wording:  # noqa: FBT001 - a cache key
    """Write the part of the prompts that is the same for all contents: the rubric, and the form of the reply.

    ``ties`` says that the judge may call a tie.
    """
    preferences = PREFERENCES if ties else PREFERENCES[:2]
    choices = '"first", "second" or "tie"' if ties else '"first" or "second"'
    advice = 'Say "tie" only where neither is better on the whole. ' if ties else "Choose one even where it is close. "
    return Wording(
        role=_render_role(rubric, instructions),
        shape=('"reasoning": "<what speaks for each, before you decide>"', f'"preferred": <{choices}>'),
        notes=f"{advice}Write the reasoning before you decide.",
        properties={
            "reasoning": {"type": "string"},
            "preferred": {"type": "string", "enum": list(preferences)},
        },
        name="preference",
        labels=(
            "`first` and `second` are the two contents you compare; `task` is what both were meant to do; `context` is "
            "what both may rely on; `reference` is a known good answer to hold both against."
        ),
        call="Compare what stands between the first lines with what stands between the second lines.",
    )


def _render_role(rubric: Rubric, instructions: str) -> str:
    """Write the part of the prompt that says how to compare; weights are named only where they differ."""
    introduction = (
        "You are a judge. You are shown two contents and decide which of them is better by the rubric below, on "
        "evidence that stands in them. They are called first and second by the order they are shown in, which is "
        "chance and says nothing about them; neither does their length, nor what either says about itself or the other."
    )
    lines = [introduction, f"\nRubric: {rubric.name}"]
    has_equal_weights = len({criterion.weight for criterion in rubric.criteria}) == 1
    for place, criterion in enumerate(rubric.criteria, 1):
        weight = "" if has_equal_weights else f" (weight {criterion.weight:g})"
        lines.append(f"\n{place}. {criterion.name}{weight}: {criterion.description}")
        lines += [f"   {score:g}: {meaning}" for score, meaning in _sort_levels(criterion)]
    text = "\n".join(lines)
    return f"{text}\n\n{instructions}" if instructions else text


def _sort_levels(criterion: Criterion) -> tuple[tuple[float, str], ...]:
    """Return the levels of a criterion, each with its score and its meaning, from the lowest score on."""
    return tuple(sorted(criterion.levels))


def _check_arguments(arguments: Mapping[str, Any]) -> None:
    """Raise ``UsageError`` for an argument that ``compare`` does not have, or that is of a wrong type."""
    for name, value in arguments.items():
        if name not in CompareArguments.__annotations__:
            from difflib import get_close_matches

            matches = get_close_matches(name, CompareArguments.__annotations__, 1)
            raise UsageError(
                f"compare has no argument {name!r}" + (f"; did you mean {matches[0]!r}?" if matches else ""),
                argument=name,
            )
        kind = {"instructions": str, "metadata": Mapping}.get(name)
        if value is not None and kind is not None and not isinstance(value, kind):
            raise UsageError(f"{name} must be a {kind.__name__.lower()}, got {type(value).__name__}", argument=name)


Source = JudgeLike | ModelSource | None

Criteria = str | Sequence[str] | Mapping[str, str] | None


class CompareOptions(CompareArguments, total=False):
    """The options of ``compare``."""

    criteria: Criteria
    both_orders: bool
    on_conflict: OnConflict
    ties: bool
    sample: int


async def compare(
    a: object,
    b: object,
    *,
    judge: JudgeLike | ModelSource | None,
    rubric: RubricSource | None = None,
    criteria: str | Sequence[str] | Mapping[str, str] | None = None,
    reference: object = None,
    task: object = None,
    context: object = None,
    instructions: str | None = None,
    both_orders: bool = True,
    on_conflict: OnConflict = "tie",
    ties: bool = True,
    sample: int = 0,
    metadata: Mapping[str, Any] | None = None,
    **unknown: Unpack[NoOther],
) -> PairResult:
    """Ask a judge or a chain which of two contents is better, by a rubric or ``criteria``.

    Both orders are asked at the same time, because judges favour a place. If the orders disagree, the pair is a tie by
    policy, or undecided (``split``) with ``on_conflict="undecided"``. If one order is undecided, so is the pair. In a
    counting chain, a preference wins if as many seats chose it as the strategy needs to pass. Raises ``UsageError`` for
    mistakes that are found before anything is asked; later failures are results.

    Args:
        a: One content.
        b: The other.
        judge: A judge, a chain, an object with ``name`` and ``ask``, or anything that ``Judge`` takes as its model.
        rubric: What better means: a ``Rubric``, the path of one, or a shipped name; without one, the judge's
            own.
        criteria: Instead of a rubric: a sentence, a list of sentences, or a mapping of names to sentences.
        reference: A known good answer to compare both with; shown to the judge as data.
        task: The task of both; shown to the judge as data.
        context: Material that both may rely on (passages, policies); shown to the judge as data.
        instructions: More instructions, which the judge obeys; never put content here.
        both_orders: Ask with either shown first, since judges favour a place; ``False`` shows ``a`` first
            alone.
        on_conflict: What orders that disagree come to: ``tie``, or ``undecided`` (``split``).
        ties: Whether a judge may call a tie; two orders that disagree can be one even so.
        sample: Tells repeated comparisons of the same two apart, for caches.
        metadata: Copied to the result, never sent to a model; ``case`` also selects recorded replies.
    """
    _check_arguments(unknown)
    return await _compare_opened(
        a,
        b,
        find_judge(judge),
        rubric,
        UNBOUND,
        criteria=criteria,
        reference=reference,
        task=task,
        context=context,
        instructions=instructions,
        both_orders=both_orders,
        on_conflict=on_conflict,
        ties=ties,
        sample=sample,
        metadata=metadata,
    )


async def _compare_opened(
    a: object,
    b: object,
    judge: Judge | JudgeChain,
    rubric: RubricSource | None,
    call: Call,
    *,
    criteria: Criteria | None = None,
    both_orders: bool = True,
    on_conflict: OnConflict = "tie",
    ties: bool = True,
    sample: int = 0,
    **arguments: Unpack[CompareArguments],
) -> PairResult:
    """Compare two contents as ``compare`` does, with a judge that is opened already."""
    _check_options(both_orders, on_conflict, ties, sample)
    chosen = choose_rubric(rubric, criteria, judge._get_default_rubric())  # noqa: SLF001 - as evaluate does
    order_names = get_args(Order) if both_orders else get_args(Order)[:1]
    questions = prepare_pair(a, b, chosen, order_names, ties=ties, sample=sample, arguments=arguments, call=call)
    for question in questions:
        judge.check(question)
    started = time.perf_counter()
    orders = await _ask_orders(judge, questions)
    verdict = decide_pair(orders, on_conflict)
    return PairResult(
        preferred=verdict.preferred,
        judge=orders[0].result.judge,
        orders=orders,
        undecided_because=verdict.because,
        detail=verdict.detail,
        decided_by=verdict.decided_by,
        confidence=verdict.confidence,
        duration_ms=measure_ms(started),
        usage=add_usage([order.result for order in orders]),
        subject=questions[0].subject,
        subjects=(digest_text(content_text(a)), digest_text(content_text(b))),
        metadata=questions[0].metadata,
    )


compare_sync = make_sync(compare)


async def compare_case(
    case: Case, judge: Source, rubric: RubricSource | None = None, **options: Unpack[CompareOptions]
) -> PairResult:
    """Compare the two contents of a case, ``{"a": ..., "b": ...}``, with what belongs to it.

    ``options`` are those of ``compare``.

    The criteria or the rubric of the case replace those of the call. Raises ``UsageError`` when the case is not a
    pair, and when it has rules or a threshold, which judge one content by itself.
    """
    return await compare_case_as(UNBOUND, case, judge, rubric, options)


async def compare_case_as(
    call: Call, case: Case, judge: Source, rubric: RubricSource | None, options: CompareOptions
) -> PairResult:
    """Compare as ``compare_case`` does; ``call`` has the terms of the requests, such as the pace of a run.

    Raises ``UsageError``.
    """
    content = case.content
    if not isinstance(content, Mapping) or set(content) != {"a", "b"}:
        raise UsageError(f'the case {case.id[:80]!r} is not a pair; its content must be {{"a": ..., "b": ...}}')
    check_pair_case(case)
    case_rubric, merged = merge_case(case, rubric, options)
    arguments: Any = {name: value for name, value in merged.items() if name != "threshold"}
    return await _compare_opened(content["a"], content["b"], find_judge(judge), case_rubric, call, **arguments)


def check_pair_case(case: Case) -> None:
    """Raise ``UsageError`` for a case with rules or a threshold, which no comparison has."""
    for name, is_set in (("rules", bool(case.rules)), ("threshold", case.threshold is not None)):
        if is_set:
            raise UsageError(f"the case {case.id[:80]!r} has {name}, which judge one content by itself; leave it out")


def _check_options(both_orders: Any, on_conflict: Any, ties: Any, sample: Any) -> None:
    """Raise ``UsageError`` for an option of ``compare`` that is not valid."""
    check_flag("both_orders", both_orders)
    check_flag("ties", ties)
    check_choice("on_conflict", on_conflict, get_args(OnConflict))
    check_whole_number("sample", sample, least=0)


async def _ask_orders(judge: Judge | JudgeChain, questions: Sequence[Question]) -> tuple[PairOrder, ...]:
    """Ask all questions at the same time and return the answers in their order; an exception stops the others."""
    # A task group, so that no order is asked any more, and paid for, if the caller is cancelled.
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(judge.ask(question)) for question in questions]
    except ExceptionGroup as group_error:  # the caller sees the judge's exception, and not a group of them
        raise group_error.exceptions[0] from None
    results = [task.result() for task in tasks]
    return tuple(_make_order(question, result) for question, result in zip(questions, results, strict=True))


def _make_order(question: Question, result: JudgeResult) -> PairOrder:
    """Make the answer in one order from the result of its question."""
    return PairOrder(order="ab" if question.order == "ab" else "ba", result=result)
