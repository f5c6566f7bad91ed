"""``/results/{id}``: one decision or judgement with its history, in the order in which it happened.

Steps that did not happen are absent. Where the ledger holds only the digest of a text, the page says so and does not
show the digest as if it were the text.

Which entries belong to the history is decided in ``server/entry_history.py`` (``load_story``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from adjudge.errors import UsageError
from adjudge.formats.numbers import format_distinct
from adjudge.formats.text import flatten
from adjudge.guards.decision import Decision
from adjudge.guards.tool_guard.effects import list_effects
from adjudge.ledger.entry import Entry
from adjudge.ledger.payload import drop_digests
from adjudge.ledger.short_results import RecordedResult
from adjudge.report.judgement import list_findings, list_quotations
from adjudge.result import JudgeResult, read_result
from adjudge.server.caller import AnyCaller, Caller, require
from adjudge.server.entry_history import Story, load_story
from adjudge.server.pages.opened_query import OpenedQuery
from adjudge.server.pages.page import Context, add_page, send_text
from adjudge.server.pages.request_acts import Act, list_acts
from adjudge.server.pages.stopped_run import find_stopped_run
from adjudge.server.problem import Problem
from adjudge.server.state import CurrentState
from adjudge.templates.environment import quote_segment
from adjudge.templates.figures import format_count
from adjudge.templates.judged_text import make_content_view, make_judged_text
from adjudge.templates.opened_parts import Opened

router = APIRouter()


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalStep:
    """The step of a history in which people were asked, made from the entries of the ledger about the request."""

    id: str
    state: str
    word: str
    acts: tuple[Act, ...]
    asked_at: datetime | None
    closed_at: datetime | None


async def view_result(
    ident: str, state: CurrentState, caller: AnyCaller, shown: Annotated[OpenedQuery, Query()]
) -> Context:
    """Show the history of the decision or result with this id, or with this number as an entry of the ledger."""
    story = await load_story(state, caller, ident)
    row = story.row
    decision, result = _read_decision(story.last)
    approval = _make_approval_step(row.approval_id, story.entries)
    opened = shown.read(f"/results/{quote_segment(ident)}")
    # In a thread: a run and a context may be megabytes of somebody's text.
    texts = await asyncio.to_thread(_make_texts, story, result, opened)
    return {
        "row": row,
        "word": _describe_decision(row),
        "sentence": _summarise_story(row, approval, result),
        "asked_at": story.last.at if result is None else result.created_at,
        "whole_path": opened.make_whole_link(),
        "kept": state.ledger.store_content,
        "result": result,
        "decision": decision,
        "effects": () if decision is None else list_effects(decision.metadata),
        "policy": "" if decision is None else _find_policy_detail(story.entries, decision),
        "approval": approval,
        "stopped": None if decision is None else await find_stopped_run(state, caller, decision.metadata),
        "entries": story.entries,
        "head": str(await state.ledger.head()),
        **texts,
    }


@router.get("/results/{ident}/content", include_in_schema=False)
async def send_content(
    ident: str,
    state: CurrentState,
    caller: Annotated[Caller, Depends(require("read", by_gate=True))],
    part: Literal["content", "task", "context", "reference"] = "content",
) -> Response:
    """Send what was judged, or what it was judged with, as a file."""
    story = await load_story(state, caller, ident)
    text = story.row.content if part == "content" else story.context.get(part)
    if text is None:
        raise Problem(404, f"the ledger does not keep the {part} of this entry", code="not_kept")
    return send_text(text, part)


def _make_texts(story: Story, result: JudgeResult | None, opened: Opened) -> Context:
    """Make the part of the context that shows the content, and the texts that it was judged with."""
    row, content = story.row, story.row.content
    quotations = () if result is None else list_quotations(result)
    findings = () if result is None else list_findings(result)
    shown = None if content is None else make_content_view(content, quotations, findings, opened)
    call = None if shown is None else shown.call
    return {
        "title": call.tool if call is not None and not row.title else _make_title(row),
        "shown": shown,
        "judged_with": [
            make_judged_text(text, name, first=100 * number, opened=opened, folds=False)
            for number, (name, text) in enumerate(story.context.items(), 1)
        ],
    }


def _find_policy_detail(related: Sequence[Entry], decision: Decision) -> str:
    """Find why the gate's policy held or decided the content: the detail of the pending decision, if it was held."""
    payloads = (entry.payload or {} for entry in related if entry.kind == "decision")
    pending_details = (str(payload.get("detail") or "") for payload in payloads if payload.get("pending") is True)
    return next(pending_details, decision.detail)


def _read_decision(entry: Entry) -> tuple[Decision | None, JudgeResult | None]:
    """Read an entry as a decision and its result; the decision is ``None`` if the entry is of a result alone.

    Raises ``Problem`` (409) for one that cannot be read.
    """
    payload = drop_digests(entry.payload or {})
    try:
        if entry.kind == "decision":
            decision = Decision.from_dict(payload)
            return decision, decision.result
        return None, read_result(payload)
    except UsageError as error:
        raise Problem(409, f"this entry cannot be read as a decision: {flatten(str(error), 200)}") from None


def _make_title(row: RecordedResult) -> str:
    """Make the title of the page from what is recorded: what the program called the content, or how it begins."""
    return row.about or (f"Decision of the gate {row.gate}" if row.gate else "A result")


def _describe_decision(row: RecordedResult) -> str:
    """Say in a few words how a decision ended, and who decided; for a result without a decision, its outcome."""
    if row.held:
        return "held for people"
    if row.allowed is None:
        return _describe_outcome(row)
    action = "let through" if row.allowed else "blocked"
    by = {"human": " by people", "rule": " by a rule", "policy": " by the policy of the gate"}.get(row.decided_by, "")
    return f"{action}{by}"


def _describe_outcome(row: RecordedResult) -> str:
    """Describe a judge's outcome, such as ``failed with 0.4, needs 0.7`` or ``undecided: timeout``."""
    text = str(row.outcome or "not judged")
    score, threshold = format_distinct(row.score, row.threshold)
    if row.score is not None:
        text += f" with {score}"
    elif row.undecided_because:
        text += f": {row.undecided_because}"
    return text + (f", needs {threshold}" if row.threshold is not None else "")


def _summarise_story(row: RecordedResult, approval: ApprovalStep | None, result: JudgeResult | None) -> str:
    """Write in one or two sentences what the judge or the rules found, and what people decided; never empty."""
    judged_text = f"The judge {row.judge} said: {_describe_outcome(row)}." if row.outcome and row.judge else ""
    if row.decided_by == "rule":
        judged_text = f"{_name_rules(result)} No judge was asked."
    people_text = ""
    if approval is not None:
        acts = [f"{act.name} {act.did}" for act in approval.acts]
        people_text = f" People were asked: {', '.join(acts) or 'nobody has answered yet'}."
    return (judged_text + people_text).strip() or "Nothing was judged."


def _name_rules(result: JudgeResult | None) -> str:
    """Name the rules that decided and what each found; the ledger may have kept no more than their names."""
    rules = () if result is None else result.rule_results
    failed = [rule for rule in rules if not rule.passed and rule.severity == "error"]
    if not failed:
        return f"{format_count(len(rules), 'rule')} passed it." if rules else "A rule decided."
    descriptions = []
    for rule in failed:
        message = flatten(rule.message, 200)
        descriptions.append(f"{rule.name} ({message})" if message else rule.name)
    return f"The {'rule' if len(descriptions) == 1 else 'rules'} {', '.join(descriptions)} decided."


def _make_approval_step(ident: str | None, related: Sequence[Entry]) -> ApprovalStep | None:
    """Make the step of the history in which people were asked; ``None`` if they were not."""
    if ident is None:
        return None
    opened = next((entry for entry in related if entry.kind == "approval.requested"), None)
    closed = next((entry for entry in related if entry.kind == "approval.closed"), None)
    status = str((closed.payload or {}).get("status", "")) if closed is not None else "open"
    words = {"approved": ("approved", "approved"), "denied": ("denied", "denied")}
    state, word = words.get(status, ("held", "waiting"))
    return ApprovalStep(
        id=ident,
        state=state,
        word=word,
        acts=tuple(list_acts(related, "approval.voted", "approval.commented", "approval.vote_withdrawn")),
        asked_at=opened.at if opened else None,
        closed_at=closed.at if closed else None,
    )


add_page(router, "/results/{ident}", view_result, template="result.html", scope="read", by_gate=True)
