"""``/results/{id}``: one decision or judgement with its whole story, in the order in which it happened.

Steps that did not happen are absent. What the ledger holds only as a digest is said to be kept so, and never shown as
if it were what somebody wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fastapi import APIRouter

from adjudge.errors import UsageError
from adjudge.formats.display import find_mark
from adjudge.formats.numbers import format_apart
from adjudge.formats.text import flatten
from adjudge.guards.decision import Decision
from adjudge.ledger.entry import Entry
from adjudge.ledger.payload import drop_digests
from adjudge.ledger.recorded import RecordedResult
from adjudge.result import CriterionResult, JudgeChainResult, JudgeResult, RuleResult, read_result
from adjudge.server.caller import AnyCaller
from adjudge.server.pages.page import add_page
from adjudge.server.problem import Problem
from adjudge.server.state import CurrentState
from adjudge.server.story import load_story
from adjudge.templates.evidence import MarkedText, mark_evidence

router = APIRouter()


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionRow:
    """A criterion: what it needs, the score of each seat, and why."""

    name: str
    threshold: float | None
    score: float | None
    mark: str
    """``passed`` or ``failed`` where it has something to reach; empty otherwise."""
    seats: tuple[tuple[float | None, str], ...]
    """The score and the mark of each seat that was asked, in their order."""
    reasoning: str
    refs: tuple[int, ...]
    """The numbers of its quotations that are marked in the content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """One judge of a chain, or the only one."""

    judge: str
    model: str
    outcome: str
    because: str
    score: float | None
    said: str
    duration_ms: float
    reply: str
    """Word for word; empty where the ledger does not hold it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeStep:
    """The judge's result."""

    judge: str
    outcome: str
    because: str
    score: float | None
    threshold: float | None
    strategy: str
    reasoning: str
    detail: str
    decided_by: str
    qualification: str
    duration_ms: float
    cost_usd: float | None
    criteria: tuple[CriterionRow, ...]
    seats: tuple[Seat, ...]
    suggestions: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonVote:
    """An answer of a person to a request for approval."""

    state: str
    name: str
    did: str
    at: datetime
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalStep:
    """People who were asked."""

    id: str
    state: str
    word: str
    votes: tuple[PersonVote, ...]
    asked_at: datetime | None
    closed_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """An entry of the story in the ledger."""

    seq: int
    at: datetime
    kind: str
    hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultView:
    """The whole story."""

    row: RecordedResult
    title: str
    word: str
    say: str
    asked_at: datetime
    content: MarkedText | None
    """``None`` where the ledger holds no content."""
    content_length: int
    kept: str
    """How the ledger keeps contents: ``full``, ``redacted`` or ``hash``."""
    rules: tuple[RuleResult, ...]
    judged: JudgeStep | None
    policy: str
    mode: str
    config: str | None
    approval: ApprovalStep | None
    places: tuple[Place, ...]
    head: str


async def view_result(ident: str, state: CurrentState, caller: AnyCaller) -> ResultView:
    """Tell the story of the decision or result with this id, or at this place of the ledger."""
    story = await load_story(state, caller, ident)
    row, content, related, last = story.row, story.row.content, story.entries, story.last
    decision, result = _read_parts(last)
    quotations = [text for criterion in result.criteria for text in criterion.evidence] if result is not None else []
    marked = mark_evidence(content, quotations) if content is not None else None
    approval = _make_approval_step(row.approval_id, related)
    genesis = await state.ledger.read(1)
    return ResultView(
        row=row,
        # As on the page where people decide: what the program called it, else how the content or the reason begins.
        title=row.about or (f"Decision of the gate {row.gate}" if row.gate else "A result"),
        word=_make_word(row),
        say=_make_sentence(row, approval),
        asked_at=last.at if result is None else result.created_at,
        content=marked,
        content_length=len(content or ""),
        kept=str((genesis.payload or {}).get("store_content", "hash")),
        rules=() if result is None else result.rule_results,
        judged=_make_judge_step(result, marked) if result is not None else None,
        policy="" if decision is None else _find_policy(related, decision),
        mode="" if decision is None else decision.mode,
        config=None if decision is None else decision.config,
        approval=approval,
        places=tuple(Place(seq=entry.seq, at=entry.at, kind=entry.kind, hash=entry.hash) for entry in related),
        head=str(await state.ledger.head()),
    )


def _find_policy(related: Sequence[Entry], decision: Decision) -> str:
    payloads = (entry.payload or {} for entry in related if entry.kind == "decision")
    return next(
        (str(payload.get("detail") or "") for payload in payloads if payload.get("pending") is True), decision.detail
    )


def _read_parts(entry: Entry) -> tuple[Decision | None, JudgeResult | None]:
    payload = drop_digests(entry.payload or {})
    try:
        if entry.kind == "decision":
            decision = Decision.from_dict(payload)
            return decision, decision.result
        return None, read_result(payload)
    except UsageError as error:
        raise Problem(409, f"this entry cannot be read as a decision: {flatten(str(error), 200)}") from None


def _make_word(row: RecordedResult) -> str:
    if row.held:
        return "held for people"
    if row.allowed is None:
        return _describe_outcome(row)
    action = "let through" if row.allowed else "blocked"
    by = {"human": " by people", "rule": " by a rule", "policy": " by the policy of the gate"}.get(row.decided_by, "")
    return f"{action}{by}"


def _describe_outcome(row: RecordedResult) -> str:
    text = str(row.outcome or "not judged")
    score, needed = format_apart(row.score, row.threshold)
    text += f" with {score}" if row.score is not None else f": {row.undecided_because}" if row.undecided_because else ""
    return text + (f", needs {needed}" if row.threshold is not None else "")


def _make_sentence(row: RecordedResult, approval: ApprovalStep | None) -> str:
    judged = f"The judge {row.judge} said: {_describe_outcome(row)}." if row.outcome and row.judge else ""
    if row.decided_by == "rule":
        judged = "A rule decided, so no judge was asked."
    people = ""
    if approval is not None:
        names = [f"{vote.name} {vote.did}" for vote in approval.votes]
        people = f" People were asked: {', '.join(names) or 'nobody has answered yet'}."
    return (judged + people).strip() or "Nothing was judged."


def _make_judge_step(result: JudgeResult, marked: MarkedText | None) -> JudgeStep:
    seats = result.results if isinstance(result, JudgeChainResult) else ()
    usage = result.usage
    return JudgeStep(
        judge=result.judge,
        outcome=result.outcome,
        because=result.undecided_because or "",
        score=result.score,
        threshold=result.threshold,
        strategy=result.strategy if isinstance(result, JudgeChainResult) else "",
        reasoning=result.reasoning,
        detail=result.detail,
        decided_by=result.decided_by,
        qualification=result.qualification or "",
        duration_ms=result.duration_ms,
        cost_usd=usage.cost_usd if usage else None,
        criteria=tuple(_list_criteria(result, seats, marked)),
        seats=tuple(_make_seat(seat) for seat in seats or (result,)),
        suggestions=result.suggestions,
    )


def _list_criteria(
    result: JudgeResult, seats: Sequence[JudgeResult], marked: MarkedText | None
) -> Iterator[CriterionRow]:
    number = 0
    marked_numbers = set(marked.found) if marked is not None else set()
    by_seat: list[Mapping[str, CriterionResult]] = [
        {criterion.name: criterion for criterion in seat.criteria} for seat in seats
    ]
    for criterion in result.criteria:
        numbers = range(number + 1, number + 1 + len(criterion.evidence))
        number += len(criterion.evidence)
        seat_results = [names.get(criterion.name) for names in by_seat]
        yield CriterionRow(
            name=criterion.name,
            threshold=criterion.threshold,
            score=criterion.score,
            mark=find_mark(criterion) or "",
            seats=tuple(
                (seat_result.score, find_mark(seat_result) or "") if seat_result is not None else (None, "")
                for seat_result in seat_results
            ),
            reasoning=criterion.reasoning,
            refs=tuple(ref for ref in numbers if ref in marked_numbers),
        )


def _make_seat(seat: JudgeResult) -> Seat:
    return Seat(
        judge=seat.judge,
        model=seat.model or "",
        outcome=seat.outcome,
        because=seat.undecided_because or "",
        score=seat.score,
        said=seat.reasoning or seat.detail,
        duration_ms=seat.duration_ms,
        reply=seat.raw_response or "",
    )


def _make_approval_step(ident: str | None, related: Sequence[Entry]) -> ApprovalStep | None:
    if ident is None:
        return None
    votes = tuple(_list_votes(related))
    opened = next((entry for entry in related if entry.kind == "approval.requested"), None)
    closed = next((entry for entry in related if entry.kind == "approval.closed"), None)
    status = str((closed.payload or {}).get("status", "")) if closed is not None else "open"
    words = {"approved": ("approved", "approved"), "denied": ("denied", "denied")}
    state, word = words.get(status, ("held", "waiting"))
    return ApprovalStep(
        id=ident,
        state=state,
        word=word,
        votes=votes,
        asked_at=opened.at if opened else None,
        closed_at=closed.at if closed else None,
    )


def _list_votes(related: Sequence[Entry]) -> Iterator[PersonVote]:
    for entry in related:
        payload: dict[str, Any] = entry.payload or {}
        name = str(payload.get("by", ""))
        if entry.kind == "approval.voted":
            approved, accepted = payload.get("approved") is True, payload.get("accepted") is True
            action = ("approved" if approved else "denied") + ("" if accepted else ", which did not count")
            state = ("approved" if approved else "denied") if accepted else "info"
            yield PersonVote(state=state, name=name, did=action, at=entry.at, reason=str(payload.get("reason") or ""))
        elif entry.kind == "approval.commented":
            yield PersonVote(
                state="info", name=name, did="commented", at=entry.at, reason=str(payload.get("text") or "")
            )
        elif entry.kind == "approval.vote_withdrawn":
            yield PersonVote(state="info", name=name, did="took the vote back", at=entry.at, reason="")


add_page(router, "/results/{ident}", view_result, template="result.html", scope="read", by_gate=True)
