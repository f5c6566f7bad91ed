"""``adjudge report RUN CASE``: one case of a run with everything that was judged, and all that every judge replied.

Contents and replies were written by somebody else. They are indented, line for line, below headings that adjudge
writes. So no text of a content can look as if the content ended and a verdict began.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from adjudge.cli.output import print_line, write_json
from adjudge.content import content_text
from adjudge.errors import UsageError
from adjudge.formats.display import (
    describe_models,
    describe_outcome,
    describe_preference,
    format_criterion,
    format_criterion_score,
)
from adjudge.formats.numbers import format_dollars, format_score
from adjudge.formats.plain_data import to_plain
from adjudge.formats.text import clean
from adjudge.judges.pair import PairResult
from adjudge.report.run_words import format_label
from adjudge.result import JudgeResult
from adjudge.runs.item import RunItem
from adjudge.templates.figures import format_duration

STEP = "  "
"""The indentation of a line below its heading."""

IndentedLine = tuple[int, str]
"""The depth of a line's indentation, and its text."""


def write_case(items: Sequence[RunItem], run: str) -> None:
    """Write a case with all its judgements as one JSON document; ``run`` is the run's id."""
    case = items[0].case
    write_json(
        {
            "schema": "adjudge/run-case/1",
            "run": run,
            "place": items[0].place,
            "case": to_plain(case.to_dict()),
            "results": [{"sample": item.sample, **item.result.to_dict()} for item in items],
        }
    )


def print_case(items: Sequence[RunItem]) -> None:
    """Print a case with all its judgements as text; ``items`` are the judgements of the one case."""
    for depth, text in _list_lines(items):
        print_line(STEP * depth + clean(text, keep_lines=False) if text else "")


def _list_lines(items: Sequence[RunItem]) -> Iterator[IndentedLine]:
    """Yield the lines about a case, and then those about each of its judgements, with their indentation."""
    yield from _list_case(items[0])
    for number, item in enumerate(items, 1):
        heading = f"judgement {number} of {len(items)}" if len(items) > 1 else "judgement"
        yield 0, ""
        yield from _list_judgement(item.result, heading, 0)


def _list_case(item: RunItem) -> Iterator[IndentedLine]:
    """Yield the lines about a case, with their indentation: its facts, texts, labels and metadata."""
    case = item.case
    facts = [f"case {case.id}", f"row {item.place + 1:,} of the data set"]
    facts += [f"group {case.group}"] if case.group is not None else []
    facts += [f"label {format_label(case.label)}"] if case.label is not None else []
    yield 0, ", ".join(facts)
    is_pair = (
        isinstance(item.result, PairResult) and isinstance(case.content, Mapping) and {"a", "b"} <= {*case.content}
    )
    if is_pair:
        contents = {"first content": case.content["a"], "second content": case.content["b"]}
    else:
        contents = {"content": case.content}
    texts = {"task": case.task, **contents, "reference": case.reference, "context": case.context}
    for name, value in texts.items():
        if value is not None:
            yield 0, ""
            yield from _list_text(name, _write_as_text(value) or "(empty)", 0)
    labels_and_metadata = {f"label of {name}": value for name, value in case.labels.items()}
    labels_and_metadata |= {f"metadata {name}": value for name, value in case.metadata.items()}
    yield from [(0, "")] if labels_and_metadata else []
    for name, value in labels_and_metadata.items():
        text = _write_as_text(value)
        yield from _list_text(name, text, 0) if "\n" in text else [(0, f"{name}: {text}")]


def _write_as_text(value: Any) -> str:
    """Return a value of a case as the text that a judge is shown, or, if there is none, the reason in brackets."""
    try:
        return value if isinstance(value, str) else content_text(value)
    except UsageError as error:  # a content that has no text, for which the case could not be judged
        return f"({error})"


def _list_text(heading: str, text: str, depth: int) -> Iterator[IndentedLine]:
    """Yield a heading, and below it each line of a text, one step deeper; the heading alone where the text is empty."""
    yield depth, f"{heading}:" if text else heading
    for line in text.split("\n") if text else ():
        yield depth + 1, line


def _list_judgement(result: JudgeResult | PairResult, heading: str, depth: int) -> Iterator[IndentedLine]:
    """Yield the lines about a judgement: its verdict, origin, reasons and replies.

    Below these come the judgements that it was made of, each a step deeper: both orders of a pair, and the seats of a
    chain.
    """
    verdict = describe_preference(result) if isinstance(result, PairResult) else describe_outcome(result)
    yield depth, f"{heading}: {verdict}"
    yield depth + 1, _describe_origin(result)
    for note in describe_models(result):
        yield depth + 1, f"warning: {note}"
    if result.detail:
        yield from _list_text("detail", result.detail, depth + 1)
    if isinstance(result, PairResult):
        for order in result.orders:
            shown = "first content shown first" if order.order == "ab" else "second content shown first"
            preference = f"prefers the {order.preferred}" if order.preferred in ("first", "second") else order.preferred
            yield from _list_judgement(order.result, f"{shown}, {preference or 'undecided'}", depth + 1)
        return
    yield from _list_reasons(result, depth + 1)
    yield from _list_replies(result, depth + 1)
    for seat in getattr(result, "results", ()):
        yield from _list_judgement(seat, f"judge {seat.judge}", depth + 1)


def _describe_origin(result: JudgeResult | PairResult) -> str:
    """Describe in one line who judged, and the time, tokens and money it took; what is not known is left out."""
    facts = [f"judge {result.judge}"]
    if isinstance(result, JudgeResult):
        facts += [f"model {result.model}"] if result.model else []
        facts += [f"strategy {result.strategy}"] if hasattr(result, "strategy") else []
        facts += [f"asked {result.attempts} times"] if result.attempts > 1 else []
    facts += [format_duration(result.duration_ms)]
    facts += [f"confidence {format_score(result.confidence)}"] if result.confidence is not None else []
    if result.usage is not None:
        facts += [f"{result.usage.input_tokens:,} tokens in, {result.usage.output_tokens:,} out"]
        facts += [format_dollars(result.usage.cost_usd)] if result.usage.cost_usd is not None else []
    return ", ".join(facts)


def _list_reasons(result: JudgeResult, depth: int) -> Iterator[IndentedLine]:
    """Yield the lines that explain a result: its criteria with their quotations, its rules, reasoning, suggestions."""
    for criterion in result.criteria:
        needs = f", needs {format_criterion(criterion)[1]}" if criterion.threshold is not None else ""
        rule = f", by the rule {criterion.rule}" if criterion.rule else ""
        yield from _list_text(
            f"criterion {criterion.name}, {format_criterion_score(criterion)}{needs}{rule}", criterion.reasoning, depth
        )
        for quoted in criterion.evidence:
            yield from _list_text("quoted", quoted, depth + 1)
    for rule_result in result.rule_results:
        mark = "passed" if rule_result.passed else rule_result.severity
        yield from _list_text(f"rule {rule_result.name}, {mark}", rule_result.message, depth)
    if result.reasoning:
        yield from _list_text("reasoning", result.reasoning, depth)
    for text in result.suggestions:
        yield from _list_text("suggestion", text, depth)


def _list_replies(result: JudgeResult, depth: int) -> Iterator[IndentedLine]:
    """Yield the model's replies, uncut: each that could not be read, after which it was asked again, and the last."""
    for number, text in enumerate(result.earlier_responses, 1):
        yield from _list_text(f"reply {number}, which could not be read, so it was asked again", text, depth)
    if result.raw_response is not None:
        ended = f", ended with {result.finish_reason}" if result.finish_reason else ""
        yield from _list_text(f"reply{ended}", result.raw_response, depth)
