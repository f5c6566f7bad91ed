"""How requests for approval look: a line each, and one with everything that is needed to decide it.

All of it was written by those who want to pass, by judges and by other people. So no text of theirs begins a line: one
that did could add a vote, or an end, that is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from adjudge._display import clean, say_models, say_outcome
from adjudge.cli._entries import tell_entry
from adjudge.cli._output import add_row, draws, make_table, note, say, show
from adjudge.content import digest_text

if TYPE_CHECKING:
    from adjudge import Approval, JudgeResult
    from adjudge.ledger import Entry

_SHORT = 12
"""Characters of an id's end: its random part, with which it can be named."""
_LONGEST = 100


def draw_approvals(found: Sequence[Approval]) -> None:
    """A table of requests."""
    now = datetime.now(UTC)
    several = len({item.status for item in found}) > 1 or found[0].status != "open"
    columns = ("id", *["status"] * several, "what", "who may decide", "expires in", "score", "reason")
    table = make_table("", columns, whole=1)
    for item in found:
        ident = item.id[-_SHORT:] if draws() else item.id
        what = f"gate {item.gate}" if item.gate is not None else _cut(item.message)
        score = "-" if item.score is None else f"{item.score:.2f}"
        left = _say_left(item, now)
        texts = (what, _say_who(item), left, score, _cut(item.reason))
        add_row(table, ident, *[item.status] * several, *texts)
    show(table)
    if draws():
        note("adjudge approvals show ID shows one; the end of an id, as here, will do")


def print_approval(approval: Approval, history: Sequence[Entry]) -> None:
    """Everything that is needed to decide a request, and what has been said to it."""
    for name, text in _list_facts(approval):
        _say(name, text)
    if approval.content is None:
        keep = "; a gate with show_content = true keeps it" if approval.gate and approval.status == "open" else ""
        _say("content", f"not kept here; its digest is the subject{keep}")
    else:
        same = digest_text(approval.content) == approval.subject
        _say("content", "as it was judged" if same else "not as it was judged: redacted, or changed since")
        for line in approval.content.split("\n"):
            say(f"  | {clean(line, keep_lines=False)}")
    for entry in history:
        _say(f"entry {entry.seq}", f"{_write_time(entry.at)}  {entry.kind}: {tell_entry(entry)}")
    if approval.status == "open":
        note(f"adjudge approvals approve {approval.id} --reason WHY   (or deny)")


def _list_facts(approval: Approval) -> Iterator[tuple[str, str]]:
    yield "approval", approval.id
    yield "state", approval.explain()
    yield "may decide", _say_who(approval)
    yield "asked", _write_time(approval.created_at)
    yield "expires", _say_expiry(approval)
    more = {"gate": approval.gate, "execution": approval.execution, "message": approval.message}
    yield from ((name, text) for name, text in more.items() if text)
    yield "result", f"{approval.reason or approval.outcome} [by {approval.judge}, {approval.result_id}]"
    yield "subject", approval.subject
    if approval.result is not None:
        yield from _list_said(approval.result)
    if approval.first_said:
        yield "judge first", approval.first_said


def _list_said(result: JudgeResult) -> Iterator[tuple[str, str]]:
    for item in result.criteria:
        score = "-" if item.score is None else f"{item.score:.2f}"
        needs = "" if item.threshold is None else f" (needs {item.threshold:.2f})"
        said = f": {item.reasoning}" if item.reasoning else ""
        yield "criterion", f"{'pass' if item.passed else 'fail'}  {score}{needs}  {item.name}{said}"
        yield from (("  quoted", text) for text in item.evidence)
    for rule in result.rule_results:
        word = "pass" if rule.passed else rule.severity
        yield "rule", f"{word}  {rule.name}" + (f": {rule.message}" if rule.message and not rule.passed else "")
    if result.reasoning:
        yield "reasoning", result.reasoning
    for text in result.suggestions:
        yield "suggestion", text
    for seat in getattr(result, "results", ()):
        said = seat.detail or seat.reasoning
        yield "seat", f"{seat.judge}: {say_outcome(seat)}" + (f": {said}" if said else "")
    yield from (("warning", text) for text in say_models(result))


def _say(name: str, text: str) -> None:
    say(f"{clean(name, keep_lines=False):<13}{clean(text, keep_lines=False)}")


def _say_who(approval: Approval) -> str:
    names = ", ".join(approval.approvers)
    return names if len(approval.approvers) == 1 else f"{approval.required} of {names}"


def _say_expiry(approval: Approval) -> str:
    if approval.expires_at is None:
        return "never"
    then = "approved by policy" if approval.on_expiry == "approve" else "denied"
    left = f", in {_say_left(approval, datetime.now(UTC))}" if approval.status == "open" else ""
    return f"{_write_time(approval.expires_at)}{left}; then it is {then}"


def _say_left(approval: Approval, now: datetime) -> str:
    if approval.status != "open":
        return "-"
    if approval.expires_at is None:
        return "never"
    seconds = max(0.0, (approval.expires_at - now).total_seconds())
    for unit, name in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * unit:
            return f"{seconds // unit:.0f} {name}"
    return f"{seconds:.0f} s"


def _write_time(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
