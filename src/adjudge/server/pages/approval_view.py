"""The views of the page *Approvals*: values made from requests, without a store, a request or a clock of their own.

A request that its reader is to decide without the judge is made without it: neither the verdict, criteria, rules,
quotations and seats nor what other people said are in the value, so the page cannot show them.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adjudge.formats.display import find_mark
from adjudge.formats.numbers import format_apart, format_score
from adjudge.formats.text import clean
from adjudge.guards.approval.approval import Approval, Vote
from adjudge.guards.approval.completeness import Gap, digest_shown
from adjudge.guards.approval.figures import ReviewerFigures
from adjudge.guards.approval.queue import LONGEST_BEGINNING, QueuedRequest, RequestSummary, place_in_queue
from adjudge.ledger.entry import Entry
from adjudge.result import CriterionResult, JudgeChainResult, JudgeResult, Outcome, RuleResult
from adjudge.server.api.gates import CALLER
from adjudge.templates.difference import DiffLine, make_difference
from adjudge.templates.evidence import MarkedText, mark_evidence
from adjudge.templates.figures import format_clock

LONGEST_SHOWN = 20_000
"""Characters of a content that are shown at first; the rest takes another request, and before it nobody can approve."""

_LONGEST_TITLE = 80

_READ_OF_TITLE = LONGEST_BEGINNING
"""Characters that are looked at for a title, which is made of a whole content or of its beginning."""

_MOST_FACTS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueItem:
    """A request in the queue."""

    id: str
    title: str
    gate: str
    asked_at: datetime
    outcome: Outcome | None
    """``None`` where the reader is to decide without the judge."""
    detail: str
    """The score or the reason, after the outcome; empty where there is none, or the judge is hidden."""
    approved: int | None
    """How many approved; ``None`` where the reader is to decide without the others."""
    required: int
    left: float | None
    """Seconds until it expires; ``None`` is never."""
    mine: bool
    """Whether the reader can still decide it."""
    said: str
    """What the reader did: ``approved`` or ``denied``; empty where they have not decided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoOffer:
    """A vote that the reader can still take back."""

    id: str
    title: str
    approved: bool
    counts_at: datetime
    """When it counts, and can no longer be taken back."""
    left: float
    """Seconds until then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuoteView:
    """A quotation of a judge, and its number in the content; ``None`` if it is not in the content."""

    text: str
    number: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionView:
    """A criterion with the judge's reason."""

    name: str
    state: str
    """``passed``, ``failed`` or ``undecided``; empty for a score that has nothing to reach."""
    score: float | None
    threshold: float | None
    reason: str
    quotes: tuple[QuoteView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatView:
    """The result of one seat of a chain."""

    judge: str
    outcome: Outcome
    score: float | None
    reason: str
    criteria: tuple[CriterionView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleView:
    """A rule, and what it found."""

    name: str
    state: str
    """``failed``, ``warning`` or ``passed``."""
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeView:
    """The result of the judge: only for who may see it."""

    outcome: Outcome
    word: str
    said: str
    judge: str
    decided_by: str
    first_said: str
    criteria: tuple[CriterionView, ...]
    seats: tuple[SeatView, ...]
    rules: tuple[RuleView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteView:
    """One approver, and what they did."""

    name: str
    state: str
    """``approved``, ``denied`` or ``open``."""
    did: str
    at: datetime | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentView:
    """A comment of an approver."""

    name: str
    at: datetime
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierView:
    """The last request like this one that people approved, and what is different now."""

    id: str
    at: datetime
    by: tuple[str, ...]
    lines: tuple[DiffLine, ...]
    """Empty where the contents are the same, and where this one was not kept, so that nothing can be compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestView:
    """A request with everything that is needed to decide it."""

    id: str
    title: str
    gate: str
    asked_at: datetime
    asked_by: str
    message: str
    """What the people are asked; empty where it would tell what the judge said."""
    action: str
    facts: tuple[tuple[str, str], ...]
    """The members of a content that is a JSON object; empty for any other."""
    subject: str
    size: int | None
    """Bytes of the content; ``None`` where there is none."""
    content: MarkedText | None
    """What is shown of the content; ``None`` where it was not kept."""
    length: int
    """Characters of the whole content."""
    shown: int
    """Characters of it that are shown."""
    unseen: int
    """Characters that cannot be seen, and are shown by their codes."""
    hidden: bool
    """Whether the judge is hidden until the reader has decided."""
    judge: JudgeView | None
    """``None`` where it is hidden, or could not be kept."""
    earlier: EarlierView | None
    status: str
    decided_by: str | None
    closed_at: datetime | None
    closed_because: str
    required: int
    approved: int | None
    """How many approved; ``None`` where that is hidden."""
    votes: tuple[VoteView, ...]
    comments: tuple[CommentView, ...]
    expires_at: datetime | None
    left: float | None
    rest: float
    """The share of its time that is left, in 0 to 1."""
    on_expiry: str
    gaps: tuple[Gap, ...]
    """For what it cannot be approved as it is shown."""
    can_decide: bool
    """Whether the reader is one of the approvers and has not decided."""
    why_not: str
    """Why the reader cannot decide; empty where they can."""
    needs_reason: bool
    """Whether approving overrides the judge; a reason is required then."""
    seen: str
    """Digest of what is shown, which an approval has to send back; empty while it is not all shown."""
    can_approve: bool
    """Whether the reader can approve it as it is shown; denying needs ``can_decide`` alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalsView:
    """The page: the queue, and one request of it."""

    items: tuple[QueueItem, ...]
    """The part of the queue that is shown: at most 50 requests, with the one that is open among them."""
    first: int
    """The place of the first of them in the queue, from 1; 0 where nothing waits."""
    back: str | None
    """The request that opens the part before this one; ``None`` where this is the first."""
    on: str | None
    """The request that opens the part after this one; ``None`` where this is the last."""
    waiting: int
    """How many are in the queue."""
    mine: int
    """How many of them the reader can decide."""
    newest: str
    """The newest id that the reader has been shown; what comes later is announced and not put among them."""
    item: RequestView | None
    version: str
    """A short text that changes when the request does, to ask whether the page is out of date."""
    position: int
    """The place of the request in the queue, from 1; 0 if it is not in it."""
    before: str | None
    after: str | None
    undo: tuple[UndoOffer, ...]
    renews_in: int
    """Seconds until the first of these offers is over."""
    undo_seconds: float
    hides_judge: bool
    figures: ReviewerFigures | None
    conflict: str = ""
    """What happened to the vote that was just sent, if it was not recorded."""
    error: str = ""
    """What is wrong with what was just sent."""
    typed: str = ""
    """The reason that was just sent, so that nothing is lost."""
    told: str = ""
    """What was just done, beside what can be undone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """The person who looks, and how."""

    approver: str | None
    """The name under which they decide; ``None``: they cannot."""
    hides_judge: bool = False
    shows_all: bool = False
    """Whether a content of any length is shown in full."""


# ---------------------------------------------------------------- the queue


def find_next(queue: Iterable[QueuedRequest], after: Approval, name: str | None) -> QueuedRequest | None:
    """Find the request that somebody can decide next: the first behind another one in the queue, else the first of all.

    So a reviewer who left some undecided on the way is not led back to them after each decision.
    """
    mine = [request for request in queue if request.waits_for(name)]
    behind = (request for request in mine if place_in_queue(request) > place_in_queue(after))
    return next(behind, mine[0] if mine else None)


def make_queue_item(approval: RequestSummary, reader: Reader, now: datetime) -> QueueItem:
    """Make a row of the queue, without the judge where its reader is to decide first."""
    hidden = is_hidden(approval, reader)
    score = "" if approval.score is None else format_score(approval.score)
    vote = find_vote(approval, reader.approver)
    return QueueItem(
        id=approval.id,
        title=make_title(approval),
        gate=approval.gate or "no gate",
        asked_at=approval.created_at,
        outcome=None if hidden else approval.outcome,
        detail="" if hidden else approval.undecided_because or score,
        approved=None if hidden else sum(vote.approved for vote in approval.votes),
        required=approval.required,
        left=_find_seconds_left(approval, now),
        mine=may_decide(approval, reader.approver),
        said="" if vote is None else "approved" if vote.approved else "denied",
    )


def make_undo_offers(requests: Iterable[RequestSummary], reader: Reader, now: datetime) -> tuple[UndoOffer, ...]:
    """List the reader's own votes that can still be taken back, the last one first."""
    votes = [
        (vote, request)
        for request in requests
        for vote in request.pending_votes
        if vote.by == reader.approver and vote.final_at is not None and vote.final_at > now
    ]
    votes.sort(key=lambda pair: pair[0].at, reverse=True)
    return tuple(
        UndoOffer(
            id=request.id,
            title=make_title(request),
            approved=vote.approved,
            counts_at=vote.final_at,
            left=(vote.final_at - now).total_seconds(),
        )
        for vote, request in votes
        if vote.final_at is not None
    )


def make_title(approval: Approval | RequestSummary) -> str:
    """Make a request's title: the one that its program gave it, else what it does and how its content begins."""
    title = approval.metadata.get("title")
    if isinstance(title, str) and title.strip():
        return _shorten(title)
    if approval.gate is None:
        return _shorten(approval.message)
    action = find_action(approval)
    content = (approval.content or "").lstrip()[:_READ_OF_TITLE]
    begins = f": {content}" if content else ""
    return _shorten(f"{action}{begins}")


def find_action(approval: Approval | RequestSummary) -> str:
    """Find the action that would be done, as far as the request says: a tool, an HTTP request, or passing the gate."""
    tool, method, path = (approval.metadata.get(name) for name in ("tool", "method", "path"))
    if isinstance(tool, str) and tool:
        return tool
    if isinstance(method, str) and isinstance(path, str) and method:
        return f"{method} {path}"
    return approval.gate or "what was judged"


def may_decide(approval: Approval | RequestSummary, name: str | None) -> bool:
    """Return whether somebody is one of the approvers and has not decided."""
    return approval.status == "open" and name in approval.approvers and find_vote(approval, name) is None


def find_vote(approval: Approval | RequestSummary, name: str | None) -> Vote | None:
    """Find somebody's vote, whether it counts already or not."""
    return next((vote for vote in (*approval.votes, *approval.pending_votes) if vote.by == name), None)


def is_hidden(approval: Approval | RequestSummary, reader: Reader) -> bool:
    """Return whether the reader is to decide before they see what the judge and others said.

    Until their vote counts: somebody who could still undo it would otherwise look, and then vote again.
    """
    counted = any(vote.by == reader.approver for vote in approval.votes)
    is_asked = approval.status == "open" and reader.approver in approval.approvers
    return reader.hides_judge and is_asked and not counted


# ---------------------------------------------------------------- one request


def make_request_view(
    approval: Approval,
    reader: Reader,
    now: datetime,
    *,
    gaps: Sequence[Gap],
    earlier: Approval | None,
    history: Sequence[Entry],
) -> RequestView:
    """Make the view of a request: everything that is needed to decide it, and nothing its reader is not to see yet."""
    hidden = is_hidden(approval, reader)
    content = approval.content
    visible_text = None if content is None else content if reader.shows_all else content[:LONGEST_SHOWN]
    cut = content is not None and visible_text != content
    all_gaps = list(gaps)
    if cut:
        sentence = f"The content is cut at {LONGEST_SHOWN:,} of {len(content or ''):,} characters."
        all_gaps.append(Gap(kind="cut", what=sentence, remedy="Show the rest."))
    result = None if hidden else approval.result
    quotes = () if result is None else list_quotes(result)
    marked = None if visible_text is None else mark_evidence(visible_text, quotes)
    can_decide = may_decide(approval, reader.approver)
    return RequestView(
        id=approval.id,
        title=make_title(approval),
        gate=approval.gate or "no gate",
        asked_at=approval.created_at,
        asked_by=_find_asker(approval),
        message="" if hidden or approval.gate is not None else approval.message,
        action=find_action(approval),
        facts=list_facts(content),
        subject=approval.subject,
        size=None if content is None else len(content.encode()),
        content=marked,
        length=len(content or ""),
        shown=len(visible_text or ""),
        unseen=count_unseen(visible_text or ""),
        hidden=hidden,
        judge=None if result is None else _make_judge_view(approval, result, quotes, marked),
        earlier=None if earlier is None else _make_earlier_view(earlier, content),
        status=approval.status,
        decided_by=approval.decided_by,
        closed_at=approval.closed_at,
        closed_because=approval.closed_because,
        required=approval.required,
        approved=None if hidden else sum(vote.approved for vote in approval.votes),
        votes=_list_votes(approval, reader, hidden=hidden),
        comments=() if hidden else _list_comments(history),
        expires_at=approval.expires_at,
        left=_find_seconds_left(approval, now),
        rest=_find_share_left(approval, now),
        on_expiry=approval.on_expiry,
        gaps=tuple(all_gaps),
        can_decide=can_decide,
        why_not="" if can_decide else explain_why_not(approval, reader),
        needs_reason=approval.outcome != "passed",
        seen="" if cut else digest_shown(approval),
        can_approve=can_decide and not all_gaps,
    )


def explain_why_not(approval: Approval, reader: Reader) -> str:
    """Explain why the reader cannot decide a request."""
    vote = find_vote(approval, reader.approver)
    if approval.status != "open":
        return f"It is {approval.status}."
    if vote is not None:
        if vote.final_at is None:
            return "You have decided it."
        # The time, and not how long that is: a page that stays open is still right.
        return f"You have decided it. It counts from {format_clock(vote.final_at)} UTC; until then you can undo it."
    if reader.approver is None:
        return "Your account has no approver's name, so it can look and not decide."
    return f"{reader.approver} is not one of its approvers."


def list_quotes(result: JudgeResult) -> tuple[str, ...]:
    """List every text that a judge and its seats gave as evidence, each once, in their order."""
    return tuple(
        dict.fromkeys(text for criterion in list_criteria(result) for text in criterion.evidence if text.strip())
    )


def list_criteria(result: JudgeResult) -> list[CriterionResult]:
    """List the criteria of a result, then those of its seats."""
    seats = result.results if isinstance(result, JudgeChainResult) else ()
    return [*result.criteria, *[criterion for seat in seats for criterion in list_criteria(seat)]]


def list_facts(content: str | None) -> tuple[tuple[str, str], ...]:
    """List the members of a content that is a JSON object, as in its bytes: numbers are not rounded or grouped."""
    try:
        # Pairs, and numbers as they are written: a name that is there twice has to be seen twice.
        members = json.loads(content or "", parse_float=_Literal, parse_int=_Literal, object_pairs_hook=_Pairs)
        if not isinstance(members, _Pairs) or not 0 < len(members) <= _MOST_FACTS:
            return ()
        return tuple((name, str(value) if isinstance(value, str) else _write(value)) for name, value in members)
    except (ValueError, RecursionError):
        return ()


class _Literal(str):
    """A number as it is written in JSON."""

    __slots__ = ()


class _Pairs(list[tuple[str, Any]]):
    """The members of a JSON object, all of them and in their order."""

    __slots__ = ()


def _write(value: Any) -> str:
    if isinstance(value, _Pairs):
        return (
            "{" + ", ".join(f"{json.dumps(name, ensure_ascii=False)}: {_write(member)}" for name, member in value) + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(_write, value)) + "]"
    return str(value) if isinstance(value, _Literal) else json.dumps(value, ensure_ascii=False)


def count_unseen(text: str) -> int:
    """Count the characters of a text that cannot be seen, so that a page shows the code of each."""
    cleaned = clean(text)
    return 0 if cleaned == text else sum(a != b for a, b in zip(cleaned, text, strict=True))


def _make_judge_view(
    approval: Approval, result: JudgeResult, quotes: Sequence[str], marked: MarkedText | None
) -> JudgeView:
    marked_numbers = frozenset(marked.found if marked is not None else ())
    numbers = {text: number for number, text in enumerate(quotes, 1) if number in marked_numbers}
    seats = result.results if isinstance(result, JudgeChainResult) else ()
    return JudgeView(
        outcome=result.outcome,
        word=_make_word(result),
        said=result.detail or result.reasoning or _name_missed_criteria(result),
        judge=result.judge,
        decided_by=result.decided_by,
        first_said=approval.first_said,
        criteria=tuple(_make_criterion_view(criterion, numbers) for criterion in result.criteria),
        seats=tuple(
            SeatView(
                judge=seat.judge,
                outcome=seat.outcome,
                score=seat.score,
                reason=seat.detail or seat.reasoning,
                criteria=tuple(_make_criterion_view(criterion, numbers) for criterion in list_criteria(seat)),
            )
            for seat in seats
        ),
        rules=tuple(sorted(map(_make_rule_view, result.rule_results), key=lambda rule: _RULE_ORDER.index(rule.state))),
    )


def _name_missed_criteria(result: JudgeResult) -> str:
    missed = [
        criterion.name for criterion in result.criteria if criterion.threshold is not None and not criterion.passed
    ]
    return f"Below what they need: {', '.join(missed)}." if missed else ""


def _make_word(result: JudgeResult) -> str:
    if result.undecided_because is not None:
        return f"undecided: {result.undecided_because}"
    score, needed = format_apart(result.score, result.threshold)
    score_text = "" if result.score is None else f" with {score}"
    return f"{result.outcome}{score_text}" + ("" if result.threshold is None else f", needs {needed}")


def _make_criterion_view(criterion: CriterionResult, numbers: Mapping[str, int]) -> CriterionView:
    state = "undecided" if criterion.score is None else find_mark(criterion) or ""
    quotes = tuple(QuoteView(text=text, number=numbers.get(text)) for text in criterion.evidence if text.strip())
    return CriterionView(
        name=criterion.name,
        state=state,
        score=criterion.score,
        threshold=criterion.threshold,
        reason=criterion.reasoning,
        quotes=quotes,
    )


_RULE_ORDER = ("failed", "warning", "info", "passed")


def _make_rule_view(rule: RuleResult) -> RuleView:
    state = "passed" if rule.passed else "failed" if rule.severity == "error" else rule.severity
    return RuleView(name=rule.name, state=state, message=rule.message)


def _make_earlier_view(earlier: Approval, now: str | None) -> EarlierView:
    lines = () if now is None else make_difference(earlier.content or "", now)
    return EarlierView(id=earlier.id, at=earlier.closed_at or earlier.created_at, by=earlier.closed_by, lines=lines)


def _list_votes(approval: Approval, reader: Reader, *, hidden: bool) -> tuple[VoteView, ...]:
    votes = {vote.by: vote for vote in (*approval.votes, *approval.pending_votes)}
    if hidden:  # who the approvers are is no secret; what they said is
        votes = {name: vote for name, vote in votes.items() if name == reader.approver}
        return tuple(_make_vote_view(name, votes.get(name), reader, "not shown yet") for name in approval.approvers)
    return tuple(_make_vote_view(name, votes.get(name), reader, "not yet") for name in approval.approvers)


def _make_vote_view(name: str, vote: Vote | None, reader: Reader, otherwise: str) -> VoteView:
    shown_name = f"{name} (you)" if name == reader.approver else name
    if vote is None:
        did = "not yet" if name == reader.approver else otherwise
        return VoteView(name=shown_name, state="open", did=did, at=None, reason="")
    word = "approved" if vote.approved else "denied"
    did = word if vote.final_at is None else f"{word}; counts from {format_clock(vote.final_at)} UTC"
    return VoteView(name=shown_name, state=word, did=did, at=vote.at, reason=vote.reason)


def _list_comments(history: Iterable[Entry]) -> tuple[CommentView, ...]:
    comments = [(entry, entry.payload or {}) for entry in history if entry.kind == "approval.commented"]
    return tuple(
        CommentView(name=str(payload.get("by")), at=entry.at, text=str(payload.get("text")))
        for entry, payload in comments
    )


def _find_asker(approval: Approval) -> str:
    asker = approval.metadata.get("agent") or approval.execution
    agent = asker if isinstance(asker, str) else ""
    # What the server knows comes first: the rest is what the program says of itself.
    caller = approval.metadata.get(CALLER)
    return " as ".join(name for name in (caller, agent) if isinstance(name, str) and name)


def _find_seconds_left(approval: Approval | RequestSummary, now: datetime) -> float | None:
    return None if approval.expires_at is None else max(0.0, (approval.expires_at - now).total_seconds())


def _find_share_left(approval: Approval, now: datetime) -> float:
    if approval.expires_at is None:
        return 1.0
    whole = (approval.expires_at - approval.created_at).total_seconds()
    left = (approval.expires_at - now).total_seconds()
    return min(1.0, max(0.0, left / whole)) if whole > 0 else 0.0


def _shorten(text: str) -> str:
    # In one line, whatever a title's author put into it: a title must not look like two lines of the page.
    flat = " ".join(unicodedata.normalize("NFC", clean(text[:_READ_OF_TITLE], keep_lines=False)).split())
    return flat if len(flat) <= _LONGEST_TITLE else f"{flat[:_LONGEST_TITLE]}…"
