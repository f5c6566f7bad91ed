"""The results of ``judge`` for people and programs, and the prompts it would send.

The exit status that follows from an error is decided in ``app.py`` (``_end_with``).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from adjudge.cli.exit_status import DONE, FAILED, UNDECIDED, USAGE
from adjudge.cli.input import InputItem
from adjudge.cli.output import complain, draws, note, print_line, show_drawing, write_json
from adjudge.dataset.case import Case
from adjudge.formats.display import COLOURS, describe_models, describe_outcome, name_mark
from adjudge.formats.numbers import format_apart, format_score
from adjudge.formats.text import clean
from adjudge.judges.chain import JudgeChain, list_judges
from adjudge.judges.judge import Judge
from adjudge.judges.remedies import may_doctor_help
from adjudge.models.model import Request
from adjudge.question.question import Question
from adjudge.result import JudgeResult

Done = tuple[InputItem, JudgeResult | None]
"""An item and its result; ``None`` where it could not be read, and the item says why."""


_UNREAD = "adjudge doctor says whether its replies can be read"

_BY_DOCTOR = {
    "unparseable": _UNREAD,
    "missing_criterion": _UNREAD,
    "off_scale": _UNREAD,
    "error": "adjudge doctor says which judges can be reached",
}
"""The remedy of each reason that the doctor helps with, where a model gave it."""

_REMEDIES = {
    "timeout": "give it longer with --timeout",
    "truncated": "raise max_output_tokens in adjudge.toml",
    "split": "an odd number of judges cannot split evenly",
    "unsure": "lower --escalate-below, or add a judge that is surer",
}


def find_status(results: Sequence[JudgeResult | None]) -> int:
    """The exit status of several inputs: unreadable beats failed beats undecided beats passed."""
    if not results or any(result is None for result in results):
        return USAGE
    outcomes = {result.outcome for result in results if result is not None}
    return FAILED if "failed" in outcomes else UNDECIDED if "undecided" in outcomes else DONE


def write_results(done: Sequence[Done], *, single: bool) -> None:
    """The results as one JSON document; nothing at all when the only input could not be read."""
    if single:
        for item, result in done:
            if result is not None:
                write_json(_to_dict(item, result))
        return
    entries = [
        _to_dict(item, result) if result is not None else name_item(item) | {"error": item.error}
        for item, result in done
    ]
    write_json({"schema": "adjudge/results/1", "results": entries})


def _to_dict(item: InputItem, result: JudgeResult) -> dict[str, Any]:
    case = get_case(item)
    brought = {"own": list(case.own_terms)} if case is not None and case.brings_own else {}
    return name_item(item) | brought | result.to_dict() | {"ledger_seq": item.ledger_seq}


def print_results(done: Sequence[Done], *, single: bool) -> None:
    """The results for people: everything about one, a line for each of several; in a pipe with a header and tabs."""
    if not single and not draws() and any(result is not None for _, result in done):
        _print_fields("outcome", "input", "why")
    for item, result in done:
        if result is not None and single:
            _print_one(result)
        elif result is not None:
            _print_line(item, result)
    if not single and any(result is not None for _, result in done):
        _print_summary(done)


def complain_about(done: Sequence[Done], *, single: bool, shown: bool, code_judges: Collection[str]) -> None:
    """One sentence on standard error for each item that could not be read or decided.

    What is the same of several is said once, with their number: a hundred lines about one server hide everything else.
    ``shown`` says that standard output told a person why an item is undecided; only what may help is said then.
    ``code_judges`` names the judges in code, which the doctor cannot help.
    """
    complaints: dict[str, list[str]] = {}
    for item, _ in done:
        if item.error is not None:
            complaints.setdefault(item.error.removeprefix(f"{item.label}: "), []).append(item.error)
    for item, result in done:
        if result is not None and result.outcome == "undecided":
            text = explain_undecided(result, shown=shown, code_judges=code_judges)
            complaints.setdefault(text, []).append(text if single else f"{item.label}: {text}")
    complaints.pop("", None)
    for text, whole in complaints.items():
        complain(whole[0] if len(whole) == 1 else f"{text} ({len(whole):,} times)")


def explain_undecided(result: JudgeResult, *, shown: bool = False, code_judges: Collection[str] = ()) -> str:
    """Explain in one sentence why nobody decided: which judge said what, and what may help.

    With ``shown``, what may help alone; an empty text where nothing is known to.
    """
    because = result.undecided_because or ""
    remedy = _REMEDIES.get(because)
    if because in _BY_DOCTOR and may_doctor_help(result, code_judges):
        remedy = _BY_DOCTOR[because]
    if shown:
        return f"undecided ({result.undecided_because}): {remedy}" if remedy else ""
    return f"undecided ({result.undecided_because}): {list_seats(result)}" + (f"; {remedy}" if remedy else "")


def list_seats(result: JudgeResult) -> str:
    """List what each judge said that could not decide, in one line."""
    seats = [seat for seat in getattr(result, "results", ()) if seat.outcome == "undecided"]
    return "; ".join(f"{seat.judge}: {seat.detail}" for seat in seats) or f"{result.judge}: {result.detail}"


def list_prompts(item: InputItem, question: Question, judge: Judge | JudgeChain) -> list[dict[str, Any]]:
    """List what each single judge would be sent for a question."""
    return [
        _describe_request(item, leaf, leaf.preview(posed)) for leaf in list_judges(judge) for posed in question.posed
    ]


def print_prompt(prompt: Mapping[str, Any]) -> None:
    """A prompt for people."""
    form = prompt["form"]
    print_line(
        f"=== {prompt['judge']}: {prompt['input']}: about {prompt['tokens']} tokens (estimated at four bytes each)"
    )
    print_line(f"--- system\n{prompt['system']}\n--- user\n{prompt['user']}")
    if form is not None:
        print_line(f"--- structured output: JSON Schema {form['name']}, {len(json.dumps(form['schema']))} characters")


def get_case(item: InputItem) -> Case | None:
    """The case of a data set that an item is, if it is one."""
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
    """Name an item in a JSON document."""
    # A file's name need not be Unicode, and JSON must be.
    name = item.name.encode("utf-8", "replace").decode()
    return {"input": name} if item.case is None else {"input": name, "case": item.case}


def _print_line(item: InputItem, result: JudgeResult) -> None:
    undecided = result.outcome == "undecided"
    reason = clean(list_seats(result) if undecided else result.detail or result.reasoning, keep_lines=False)
    reason = reason[: 400 if undecided else 160]
    outcome, label = describe_outcome(result), clean(item.label, keep_lines=False)
    if not draws():  # names and outcomes may have blanks in them
        _print_fields(outcome, label, reason)
        return
    from rich.text import Text

    line = Text(f"{outcome}  {label}", style=COLOURS[result.outcome])
    show_drawing(line + Text(f"  {reason}" if reason else "", style="default"))


def _print_summary(done: Sequence[Done]) -> None:
    counts = {name: sum(result is not None and result.outcome == name for _, result in done) for name in COLOURS}
    unread = sum(result is None for _, result in done)
    counted = ", ".join(f"{number} {name}" for name, number in counts.items())
    note(f"{len(done)} input{'s' * (len(done) > 1)}: {counted}" + (f", {unread} not judged" if unread else ""))


def _print_one(result: JudgeResult) -> None:
    """Print one result, drawn on a terminal."""
    if draws():
        show_drawing(result)
        return
    print_line(describe_outcome(result))
    if result.criteria:
        _print_fields("mark", "score", "criterion", "reasoning")
    for criterion in result.criteria:
        score = "-" if criterion.score is None else format_apart(criterion.score, criterion.threshold)[0]
        _print_fields(name_mark(criterion, "-"), score, criterion.name, criterion.reasoning)
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
    """Fields with a tab between: whatever a judge wrote cannot make a line or a field of its own."""
    print_line("\t".join(" ".join(text.split()) for text in fields))


def describe_case_terms(counts: Mapping[str, int], needed: float) -> Iterator[str]:
    """Describe the terms that cases bring: what one of them lowers has to be seen where the outcome is."""
    parts = {"criteria": "criteria of their own", "rules": "rules of their own", "threshold": "their own threshold"}
    sentences = [f"{counts[name]:,} with {words}" for name, words in parts.items() if counts.get(name)]
    if sentences:
        yield f"cases judged by what they bring: {', '.join(sentences)}"
    below = counts.get("below")
    if below:
        verb = "needs" if below == 1 else "need"
        yield f"{below:,} of the cases {verb} less than the {format_score(needed)} that is asked for"
