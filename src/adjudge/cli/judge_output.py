"""The output of ``adjudge judge``: results as text and JSON, why something is undecided, and prompts of --show-prompt.

The exit status that follows from an error is decided in ``app.py`` (``_report_error``).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from adjudge.cli.exit_status import DONE, FAILED, UNDECIDED, USAGE
from adjudge.cli.input import InputItem
from adjudge.cli.output import can_draw_boxes, complain, note, print_line, show_drawing, write_json
from adjudge.dataset.case import Case
from adjudge.formats.display import COLOURS, describe_models, describe_outcome, describe_pass_mark
from adjudge.formats.numbers import format_distinct, format_score
from adjudge.formats.text import clean
from adjudge.judges.chain import JudgeChain, list_judges
from adjudge.judges.judge import Judge
from adjudge.judges.remedies import may_doctor_help
from adjudge.models.model import Request
from adjudge.question.question import Question
from adjudge.result import JudgeResult

JudgedItem = tuple[InputItem, JudgeResult | None]
"""An input item and its result; ``None`` where the item could not be judged, and its ``error`` says why."""


_DOCTOR_READS = "adjudge doctor says whether its replies can be read"

_DOCTOR_REMEDIES = {
    "unparseable": _DOCTOR_READS,
    "missing_criterion": _DOCTOR_READS,
    "off_scale": _DOCTOR_READS,
    "error": "adjudge doctor says which judges can be reached",
}
"""Remedies by the reason of an undecided result, if a model was asked, which ``adjudge doctor`` can try."""

_REMEDIES = {
    "timeout": "give it longer with --timeout",
    "truncated": "raise max_output_tokens in adjudge.toml",
    "split": "an odd number of judges cannot split evenly",
    "unsure": "lower --escalate-below, or add a judge that is surer",
}
"""Remedies by the reason of an undecided result, whatever was asked."""


def find_status(results: Sequence[JudgeResult | None]) -> int:
    """Find the exit status for several results, in which unreadable (``None``) beats failed, undecided and passed."""
    if not results or any(result is None for result in results):
        return USAGE
    outcomes = {result.outcome for result in results if result is not None}
    return FAILED if "failed" in outcomes else UNDECIDED if "undecided" in outcomes else DONE


def write_results(judged_items: Sequence[JudgedItem], *, single: bool) -> None:
    """Write the results as one JSON document; nothing when the only input could not be read."""
    if single:
        for item, result in judged_items:
            if result is not None:
                write_json(_to_dict(item, result))
        return
    entries = [
        _to_dict(item, result) if result is not None else name_item(item) | {"error": item.error}
        for item, result in judged_items
    ]
    write_json({"schema": "adjudge/results/1", "results": entries})


def _to_dict(item: InputItem, result: JudgeResult) -> dict[str, Any]:
    """Return an item and its result as plain data; ``own`` lists the criteria and the like that a case brought."""
    case = get_case(item)
    own_terms = {"own": list(case.own_terms)} if case is not None and case.brings_own else {}
    return name_item(item) | own_terms | result.to_dict() | {"ledger_seq": item.ledger_seq}


def print_results(judged_items: Sequence[JudgedItem], *, single: bool) -> None:
    """Print the results as text: everything about a single one, or a line for each of several.

    Where no terminal shows them, the lines have tabs between their fields, and a header comes first.
    """
    if not single and not can_draw_boxes() and any(result is not None for _, result in judged_items):
        _print_fields("outcome", "input", "why")
    for item, result in judged_items:
        if result is not None and single:
            _print_one(result)
        elif result is not None:
            _print_line(item, result)
    if not single and any(result is not None for _, result in judged_items):
        _print_summary(judged_items)


def write_complaints(
    judged_items: Sequence[JudgedItem], *, single: bool, shown: bool, code_judges: Collection[str]
) -> None:
    """Write a sentence to standard error for each item that could not be read or decided.

    A sentence that is the same for several items is written once, with their number, because a hundred lines about one
    server would hide everything else. ``shown`` means that standard output says already why an item is undecided, so
    that only the remedy is written. ``code_judges`` names the judges in code, with which the doctor cannot help.
    """
    complaints: dict[str, list[str]] = {}  # by the text without the item's name: the texts with it
    for item, _ in judged_items:
        if item.error is not None:
            complaints.setdefault(item.error.removeprefix(f"{item.label}: "), []).append(item.error)
    for item, result in judged_items:
        if result is not None and result.outcome == "undecided":
            text = explain_undecided(result, shown=shown, code_judges=code_judges)
            complaints.setdefault(text, []).append(text if single else f"{item.label}: {text}")
    complaints.pop("", None)  # undecided without a known remedy, where only remedies are written
    for text, named_texts in complaints.items():
        complain(named_texts[0] if len(named_texts) == 1 else f"{text} ({len(named_texts):,} times)")


def explain_undecided(result: JudgeResult, *, shown: bool = False, code_judges: Collection[str] = ()) -> str:
    """Explain in one sentence why a result is undecided: what each judge says about it, and a remedy.

    ``shown`` means that the user has read already what the judges say: the remedy alone is returned, or an empty text
    if there is none. ``code_judges`` names the judges in code, with which the doctor cannot help.
    """
    reason = result.undecided_because or ""
    remedy = _REMEDIES.get(reason)
    if reason in _DOCTOR_REMEDIES and may_doctor_help(result, code_judges):
        remedy = _DOCTOR_REMEDIES[reason]
    if shown:
        return f"undecided ({result.undecided_because}): {remedy}" if remedy else ""
    return f"undecided ({result.undecided_because}): {list_seats(result)}" + (f"; {remedy}" if remedy else "")


def list_seats(result: JudgeResult) -> str:
    """List in one line the undecided judges of a result, each with its detail: the seats of a chain, or its judge."""
    undecided_seats = [seat for seat in getattr(result, "results", ()) if seat.outcome == "undecided"]
    return "; ".join(f"{seat.judge}: {seat.detail}" for seat in undecided_seats) or f"{result.judge}: {result.detail}"


def list_prompts(item: InputItem, question: Question, judge: Judge | JudgeChain) -> list[dict[str, Any]]:
    """List the prompts that each single judge of a chain would be sent for a question, as plain data."""
    return [
        _describe_request(item, leaf, leaf.preview(posed)) for leaf in list_judges(judge) for posed in question.posed
    ]


def print_prompt(prompt: Mapping[str, Any]) -> None:
    """Print a prompt that ``list_prompts`` made as text."""
    form = prompt["form"]
    print_line(
        f"=== {prompt['judge']}: {prompt['input']}: about {prompt['tokens']} tokens (estimated at four bytes each)"
    )
    print_line(f"--- system\n{prompt['system']}\n--- user\n{prompt['user']}")
    if form is not None:
        print_line(f"--- structured output: JSON Schema {form['name']}, {len(json.dumps(form['schema']))} characters")


def get_case(item: InputItem) -> Case | None:
    """Return the case of a data set that an item holds; ``None`` for the item of a file."""
    return item.content if isinstance(item.content, Case) else None


def _describe_request(item: InputItem, judge: Judge, request: Request) -> dict[str, Any]:
    """Describe a request as plain data; ``tokens`` is estimated at four bytes each, with the form's schema."""
    form = None if request.form is None else {"name": request.form.name, "schema": dict(request.form.schema)}
    size = sum(len(text.encode()) for text in (request.system, request.user, json.dumps(form) if form else ""))
    return name_item(item) | {
        "judge": judge.name,
        "tokens": (size + 3) // 4,
        "system": request.system,
        "user": request.user,
        "form": form,
    }


def name_item(item: InputItem) -> dict[str, Any]:
    """Return the members that name an item in a JSON document: ``input``, and for a case of a data set ``case``."""
    # The name of a file need not be Unicode, and JSON has to be.
    name = item.name.encode("utf-8", "replace").decode()
    return {"input": name} if item.case is None else {"input": name, "case": item.case}


def _print_line(item: InputItem, result: JudgeResult) -> None:
    """Print the line of one of several results: its outcome, the item's name, and the reason, cut where it is long."""
    is_undecided = result.outcome == "undecided"
    reason = clean(list_seats(result) if is_undecided else result.detail or result.reasoning, keep_lines=False)
    reason = reason[: 400 if is_undecided else 160]
    outcome, label = describe_outcome(result), clean(item.label, keep_lines=False)
    if not can_draw_boxes():  # names and outcomes may have blanks in them
        _print_fields(outcome, label, reason)
        return
    from rich.text import Text

    line = Text(f"{outcome}  {label}", style=COLOURS[result.outcome])
    show_drawing(line + Text(f"  {reason}" if reason else "", style="default"))


def _print_summary(judged_items: Sequence[JudgedItem]) -> None:
    """Write the number of inputs to standard error, with the number of each outcome and of those not judged."""
    counts = {
        name: sum(result is not None and result.outcome == name for _, result in judged_items) for name in COLOURS
    }
    unread = sum(result is None for _, result in judged_items)
    counted = ", ".join(f"{number} {name}" for name, number in counts.items())
    note(
        f"{len(judged_items)} input{'s' * (len(judged_items) > 1)}: {counted}"
        + (f", {unread} not judged" if unread else "")
    )


def _print_one(result: JudgeResult) -> None:
    """Print everything about a single result: drawn with boxes on a terminal, else in lines of fields with tabs."""
    if can_draw_boxes():
        show_drawing(result)
        return
    print_line(describe_outcome(result))
    if result.criteria:
        _print_fields("mark", "score", "criterion", "reasoning")
    for criterion in result.criteria:
        score = "-" if criterion.score is None else format_distinct(criterion.score, criterion.threshold)[0]
        _print_fields(describe_pass_mark(criterion, "-"), score, criterion.name, criterion.reasoning)
    for text in (result.detail, result.reasoning, *result.suggestions):
        if text:
            _print_fields(text)
    for rule in result.rule_results:
        if not rule.passed:
            _print_fields(rule.severity, rule.name, rule.message)
    for text in describe_models(result):
        _print_fields("warning", text)
    for seat in getattr(result, "results", ()):
        _print_fields("seat", seat.judge, describe_outcome(seat), seat.detail)


def _print_fields(*fields: str) -> None:
    """Print a line of fields with a tab between them.

    Each run of white space in a field becomes one blank, so that no text of a judge looks like another line or field.
    """
    print_line("\t".join(" ".join(text.split()) for text in fields))


def describe_case_terms(counts: Mapping[str, int], needed: float) -> Iterator[str]:
    """Yield sentences on how many cases brought criteria, rules or a threshold of their own.

    They are shown beside the outcome, because a case may ask for less than the ``needed`` score of all others;
    ``counts["below"]`` is the number of such cases.
    """
    term_names = {
        "criteria": "criteria of their own",
        "rules": "rules of their own",
        "threshold": "their own threshold",
    }
    phrases = [f"{counts[term]:,} with {words}" for term, words in term_names.items() if counts.get(term)]
    if phrases:
        yield f"cases judged by what they bring: {', '.join(phrases)}"
    cases_below = counts.get("below")
    if cases_below:
        verb = "needs" if cases_below == 1 else "need"
        yield f"{cases_below:,} of the cases {verb} less than the {format_score(needed)} that is asked for"
