"""The view of requests on the page *Approvals*: values made from them, without a store or a clock.

The addresses are in ``approvals.py`` (``show_request``).

A request that its reader is to decide without the judge is made without it: neither the verdict, criteria, rules,
quotations and seats nor what other people said are in the value, so the page cannot show them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from adjudge.content import digest_text
from adjudge.formats.numbers import format_score
from adjudge.formats.text import clean
from adjudge.guards.approval.approval import Approval, Vote
from adjudge.guards.approval.completeness import Gap, digest_shown
from adjudge.guards.approval.queue import QueuePlaces, RequestSummary
from adjudge.guards.approval.title import find_action, make_title
from adjudge.guards.approval.vote_casting import name_decider
from adjudge.guards.approval_digest import CONTEXT
from adjudge.guards.tool_guard.effects import list_effects
from adjudge.guards.tool_guard.guard import FILES_NOT_BOUND, USE_WITHIN
from adjudge.ledger.columns import find_run, split_run
from adjudge.ledger.entry import Entry
from adjudge.report.judgement import list_findings, list_quotations
from adjudge.result import JudgeResult, Outcome
from adjudge.server.api.gates import CALLER
from adjudge.server.pages.acts import Act, find_withdrawn, list_acts, make_vote_act, read_answers
from adjudge.templates.call_values import CallView
from adjudge.templates.call_view import make_call_view
from adjudge.templates.difference import make_difference
from adjudge.templates.environment import quote_segment
from adjudge.templates.evidence import MarkedText, mark_evidence, mark_window
from adjudge.templates.json_difference import ContentDifference, make_json_difference
from adjudge.templates.judged_text import count_transcripts, make_judged_text, open_conversation
from adjudge.templates.opened import MOST_DRAWN, Opened, TextWindow, count_windows, is_long, read_opened
from adjudge.templates.transcript_values import JudgedText, TranscriptView
from adjudge.templates.transcript_view import make_transcript_view

ReadWindows = Mapping[str, frozenset[int]]
"""The windows of long texts that somebody was shown, by the name of the text: ``content``, ``context``."""

LONGEST_SHOWN = 20_000
"""Characters of a content that are shown at first; the rest takes another request, and before it nobody can approve."""

_LONGEST_REASON_SHOWN = 100
"""Characters of a reason used before that is offered again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueItem:
    """A request in the queue, without what its judge and others said where the reader is to decide first."""

    id: str
    title: str
    gate: str
    asked_at: datetime
    outcome: Outcome | None
    """``None`` where the reader is to decide without the judge."""
    detail: str
    """The score or the reason, after the outcome; empty where there is none, or the judge is hidden."""
    approved: int | None
    """The number of people who approved; ``None`` where the reader is to decide without the others."""
    required: int
    left: float | None
    """Seconds until it expires; ``None`` is never."""
    mine: bool
    """True if the reader can still decide it."""
    decision: str
    """The reader's decision: ``approved`` or ``denied``; empty where they have not decided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextView:
    """The texts that people read beside a content: what it was judged with, and what its tool does."""

    effects: tuple[str, ...]
    """The effects that the operator declares for a call of this tool."""
    texts: tuple[JudgedText, ...]
    """Task, context and reference that were handed over."""
    absent: tuple[str, ...]
    """``task`` and ``context``, as far as it is known that the gate did not get them."""
    redacted: frozenset[str]
    """The names of those that are shown as they were redacted for the judge."""
    rest_path: str
    """The address at which more is shown: everything, or of a long text the first window that was not shown yet."""
    read: ReadWindows
    """The windows of long texts that the reader was shown, with those of this page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestView:
    """A request with everything that is needed to decide it, and with nothing that its reader is not to see yet.

    An approval itself holds the judge's verdict and everybody's votes. What is not in here, no template can show.
    """

    id: str
    title: str
    gate: str
    asked_at: datetime
    asked_by: str
    message: str
    """The question to the people; empty where it would tell what the judge said."""
    action: str
    call: CallView | None
    """The content as rows, where it is a JSON object; ``None`` where it is not, and where its JSON is asked for."""
    transcript: TranscriptView | None
    """The content as a transcript, where it is messages or a run; ``None`` as for ``call``."""
    context: ContextView
    subject: str
    size: int | None
    """Bytes of the content; ``None`` where there is none."""
    content: MarkedText | None
    """The text that is shown of the content; ``None`` where it was not kept, and where it is shown as rows."""
    window: TextWindow | None
    """The part of a long content that is shown; ``None`` where it is shown from its beginning."""
    length: int
    """Characters of the whole content."""
    shows_json: bool
    """True if it could be shown as rows, and its JSON is asked for."""
    hidden: bool
    """True if the judge is hidden until the reader has decided."""
    result: JudgeResult | None
    """``None`` where it is hidden, or could not be kept."""
    explanation: str
    """The judge's words on it in one text; empty where it is hidden."""
    first_said: str
    """The words of the judge that was asked first; empty where it is hidden."""
    earlier: Approval | None
    """The last request like this one that people approved."""
    difference: ContentDifference | None
    """The lines that are different from that; none where nothing is, and where this content was not kept; ``None``
    where one of them is too long to be compared."""
    status: str
    decided_by: str | None
    closed_at: datetime | None
    closed_because: str
    answer: str | None
    """The message to the agent from the one who denied; ``None`` where it is about no agent's call."""
    required: int
    approved: int | None
    """The number of people who approved; ``None`` where that is hidden."""
    votes: tuple[Act, ...]
    comments: tuple[Act, ...]
    expires_at: datetime | None
    left: float | None
    rest: float
    """The share of its time that is left, in 0 to 1."""
    on_expiry: str
    use_within: float | None
    """Seconds after its approval in which the call that it is about can be made; ``None`` for no call, or no limit."""
    has_unbound_files: bool
    """True if the call may use files that the approval is not bound to."""
    gaps: tuple[Gap, ...]
    """For what it cannot be approved as it is shown."""
    can_decide: bool
    """True if the reader is one of the approvers and has not decided."""
    why_not: str
    """The reason for which the reader cannot decide; empty where they can."""
    counts_at: datetime | None
    """The time from which the reader's own vote counts, which they can undo until then; ``None`` where there is none to
    undo."""
    withdrawn: Vote | None
    """The vote that the reader took back last, with its texts; ``None`` where they have not, or voted again."""
    needs_reason: bool
    """True if approving overrides the judge; a reason is required then."""
    seen: str
    """Digest of what is shown, which an approval has to send back; empty while it is not all shown."""

    @property
    def decider(self) -> str:
        """``rules`` or ``judge``; the judge where the verdict is hidden, for the word would tell that a rule failed."""
        return name_decider(self.result)

    @property
    def shown(self) -> int:
        """Characters of the content that are shown; all of them of one in rows."""
        return self.length if self.content is None else sum(len(part.text) for part in self.content.passages)

    @property
    def is_cut(self) -> bool:
        """Return True if anything of the content, or of what it was judged with, is not shown yet."""
        return not self.seen

    @property
    def is_long(self) -> bool:
        """Return True if any of its texts is too long to be drawn at once."""
        return self.length > MOST_DRAWN or any(text.length > MOST_DRAWN for text in self.context.texts)

    @property
    def can_approve(self) -> bool:
        """Return True if the reader can approve it as it is shown; denying needs ``can_decide`` alone."""
        return self.can_decide and not self.gaps


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """The person who looks, and how: by this alone it is decided what is left out of a request."""

    approver: str | None
    """The name under which they decide; ``None``: they cannot."""
    hides_judge: bool = False
    shows_all: bool = False
    """True if a content of any length is shown in full."""
    shows_json: bool = False
    """True if a content that is a JSON object is shown as it is written and not in rows."""
    opened: str = ""
    """The parts of transcripts that are opened, as the address says."""
    part: str = ""
    """The window of a long text that is shown, as the address says."""
    read: ReadWindows = field(default_factory=dict)
    """The windows of long texts that were shown to them before, or that they have as a file."""
    filters: tuple[tuple[str, str], ...] = ()
    """The members of the address that filter the queue, which links of the page keep."""
    path: str = "/approvals"
    """The address below which its page is."""


# ---------------------------------------------------------------- the queue


def find_next(before: QueuePlaces, after: str, now: QueuePlaces) -> str | None:
    """Find the request that somebody can decide next: the first behind another one in the queue, else the first of all.

    So a reviewer who left some undecided on the way is not led back to them after each decision. ``before`` is the
    queue in which that one was, and ``now`` the queue without what was decided since.
    """
    mine = [ident for ident in now.mine if ident != after]
    behind = set(before.ids[before.ids.index(after) + 1 :] if after in before.ids else ())
    return next((ident for ident in mine if ident in behind), mine[0] if mine else None)


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
        decision="" if vote is None else "approved" if vote.approved else "denied",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoableVote:
    """A vote of its reader that can still be taken back.

    Of its request it has the id and the title, and nothing else, which its reader may not see yet.
    """

    id: str
    title: str
    vote: Vote
    counts_at: datetime
    """The time from which on it counts, and cannot be taken back."""


def list_undoable(requests: Iterable[RequestSummary], reader: Reader, now: datetime) -> list[UndoableVote]:
    """List the reader's own votes that can still be taken back, the last one first."""
    undoable = [
        UndoableVote(id=request.id, title=make_title(request), vote=vote, counts_at=vote.final_at)
        for request in requests
        for vote in request.pending_votes
        if vote.by == reader.approver and vote.final_at is not None and vote.final_at > now
    ]
    return sorted(undoable, key=lambda each: each.vote.at, reverse=True)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    """The part of a content that is shown, in rows or as a text, and the parts that are not."""

    call: CallView | None = None
    transcript: TranscriptView | None = None
    text: MarkedText | None = None
    window: TextWindow | None = None
    unshown: tuple[str, ...] = ()
    is_json: bool = False
    has_unbound_files: bool = False


def _show_content(approval: Approval, reader: Reader, opened: Opened, result: JudgeResult | None) -> _Shown:
    """Show the content as the conversation, call or text that it is, and list what is not shown of it."""
    content = approval.content
    if content is None:
        return _Shown()
    quotations = () if result is None else list_quotations(result)
    window = opened.find_window("content", content)
    if window is not None:
        return _show_window(content, window, quotations)
    conversation = open_conversation(content)
    findings = () if result is None else list_findings(result)
    if conversation is not None and not reader.shows_json:
        most = MOST_DRAWN if is_long(content) else None
        transcript = make_transcript_view(
            conversation, opened=opened, quotations=quotations, findings=findings, most_drawn=most
        )
        return _Shown(transcript=transcript, unshown=transcript.unshown_parts)
    call = make_call_view(content, quotations, whole=reader.shows_all, only_calls=False, findings=findings)
    has_unbound_files = call is not None and call.find_literal(FILES_NOT_BOUND) == "true"
    if call is not None and not reader.shows_json:
        return _Shown(call=call, unshown=call.unshown_parts, has_unbound_files=has_unbound_files)
    text = content if reader.shows_all else content[:LONGEST_SHOWN]
    rest = f"{len(content) - len(text):,} of {len(content):,} characters"
    return _Shown(
        text=mark_evidence(text, quotations),
        unshown=(rest,) if text != content else (),
        is_json=call is not None or conversation is not None,
        has_unbound_files=has_unbound_files,
    )


def _show_window(content: str, window: TextWindow, quotations: Sequence[str]) -> _Shown:
    """Show a window of a long content as the text that it is, with the quotations that begin in it."""
    rest = f"{len(content) - (window.end - window.begin):,} of {len(content):,} characters"
    return _Shown(
        text=mark_window(content, quotations, window.begin, window.end),
        window=window,
        unshown=(rest,),
        is_json=content.lstrip()[:1] in ("{", "["),
    )


_SHOW_REST = "Show the rest."

_MOST_NAMED = 6
"""Parts that are not shown yet and are named; more are counted."""


def _make_cut(unshown: Sequence[str]) -> Gap | None:
    if not unshown:
        return None
    more = f"; and {len(unshown) - _MOST_NAMED:,} more parts" if len(unshown) > _MOST_NAMED else ""
    sentence = f"Not shown yet: {'; '.join(unshown[:_MOST_NAMED])}{more}."
    return Gap(kind="cut", what=sentence, remedy=_SHOW_REST)


@dataclass(slots=True)
class _Reading:
    """The part of a request's texts that was shown, here and before, and the place of the rest."""

    opened: Opened
    read: dict[str, frozenset[int]]
    rest_path: str = ""

    def list_unshown(self, name: str, text: str, window: TextWindow | None, unshown: Sequence[str]) -> list[str]:
        """List what was not shown of a text; of a long one, once it is read in windows, the windows that are left."""
        count = count_windows(text)
        read = self.read.get(name, frozenset()) | ({window.number} if window is not None else set())
        left = [number for number in range(1, count + 1) if number not in read] if read and count > 1 else None
        if read:
            self.read[name] = read
        if left == [] or not unshown:
            return []
        # What is folded goes before: the address that opens it opens the first window of each long text too.
        if left is None:
            self.rest_path = self.opened.make_whole_link()
            return list(unshown)
        self.rest_path = self.rest_path or self.opened.make_part_link(name, left[0])
        characters = sum(min(number * MOST_DRAWN, len(text)) - (number - 1) * MOST_DRAWN for number in left)
        return [f"{characters:,} characters of the {name}, in {len(left):,} of its {count:,} parts"]


def _show_context(
    approval: Approval, opened: Opened, shown: _Shown, judged_with: Mapping[str, str] | None
) -> ContextView:
    """Show the texts that the content was judged with.

    Transcripts are numbered on the page, one of the content first.
    """
    known = judged_with or {}
    texts: list[JudgedText] = []
    first = 1 if shown.transcript is None else 2
    for name in (name for name in CONTEXT if name in approval.texts):
        texts.append(make_judged_text(approval.texts[name], name, first=first, opened=opened))
        first += count_transcripts(texts[-1])
    return ContextView(
        effects=list_effects(approval.metadata),
        texts=tuple(texts),
        absent=() if judged_with is None else tuple(name for name in ("task", "context") if name not in known),
        redacted=frozenset(
            name for name, text in approval.texts.items() if name in known and digest_text(text) != known[name]
        ),
        rest_path="",
        read={},
    )


def _show(
    approval: Approval, reader: Reader, result: JudgeResult | None, judged_with: Mapping[str, str] | None
) -> tuple[_Shown, ContextView, list[Gap]]:
    """Show the content and what it was judged with, and list what was not shown yet of either."""
    path, form = f"{reader.path}/{quote_segment(approval.id)}", (("json", "true"),) if reader.shows_json else ()
    query = (*form, *reader.filters)
    opened = read_opened(path, reader.opened, whole=reader.shows_all, query=query, part=reader.part)
    shown = _show_content(approval, reader, opened, result)
    context = _show_context(approval, opened, shown, judged_with)
    reading = _Reading(opened, dict(reader.read))
    of_content = reading.list_unshown("content", approval.content or "", shown.window, shown.unshown)
    of_context = [
        part
        for text in context.texts
        for part in reading.list_unshown(text.name, approval.texts[text.name], text.window, text.unshown_parts)
    ]
    cuts = [cut for cut in (_make_cut(of_content), _make_cut(of_context)) if cut is not None]
    return shown, replace(context, rest_path=reading.rest_path, read=reading.read), cuts


def make_request_view(
    approval: Approval,
    reader: Reader,
    now: datetime,
    *,
    gaps: Sequence[Gap],
    earlier: Approval | None,
    history: Sequence[Entry],
    judged_with: Mapping[str, str] | None = None,
) -> RequestView:
    """Make the view of a request: everything that is needed to decide it, and nothing its reader is not to see yet.

    ``judged_with`` are the digests of what the gate judged it with; ``None`` where that is not known.
    """
    hidden = is_hidden(approval, reader)
    result = None if hidden else approval.result
    shown, context, cuts = _show(approval, reader, result, judged_with)
    can_decide = may_decide(approval, reader.approver)
    return RequestView(
        id=approval.id,
        title=make_title(approval),
        gate=approval.gate or "no gate",
        asked_at=approval.created_at,
        asked_by=_find_asker(approval),
        message="" if hidden or approval.gate is not None else approval.message,
        action=find_action(approval),
        call=shown.call,
        transcript=shown.transcript,
        context=context,
        subject=approval.subject,
        size=None if approval.content is None else len(approval.content.encode()),
        content=shown.text,
        window=shown.window,
        length=len(approval.content or ""),
        shows_json=shown.is_json,
        hidden=hidden,
        result=result,
        explanation="" if result is None else result.detail or result.reasoning or _name_missed_criteria(result),
        first_said="" if hidden else approval.first_said,
        earlier=earlier,
        difference=_compare(earlier, approval),
        status=approval.status,
        decided_by=approval.decided_by,
        closed_at=approval.closed_at,
        closed_because=approval.closed_because,
        answer=None if find_run(approval.metadata) is None else approval.answer,
        required=approval.required,
        approved=None if hidden else sum(vote.approved for vote in approval.votes),
        votes=_list_votes(approval, reader, history, hidden=hidden),
        comments=() if hidden else tuple(list_acts(history, "approval.commented")),
        expires_at=approval.expires_at,
        left=_find_seconds_left(approval, now),
        rest=_find_share_left(approval, now),
        on_expiry=approval.on_expiry,
        use_within=_find_use_within(approval),
        has_unbound_files=find_run(approval.metadata) is not None and shown.has_unbound_files,
        gaps=(*gaps, *cuts),
        can_decide=can_decide,
        why_not="" if can_decide else explain_why_not(approval, reader),
        counts_at=_find_counts_at(approval, reader),
        withdrawn=find_withdrawn(history, reader.approver) if can_decide else None,
        needs_reason=approval.outcome != "passed",
        seen="" if cuts else digest_shown(approval),
    )


def _compare(earlier: Approval | None, approval: Approval) -> ContentDifference | None:
    if earlier is None or approval.content is None:
        return ContentDifference()
    was, now = earlier.content or "", approval.content
    if is_long(now) or is_long(was):
        return ContentDifference() if was == now else None
    return make_json_difference(was, now) or ContentDifference(lines=make_difference(was, now))


def is_short(reason: str) -> bool:
    """Return whether a reason fits into a button, and is what it looks like: one line without unseen characters."""
    return len(reason) <= _LONGEST_REASON_SHOWN and reason == clean(reason, keep_lines=False).strip()


def explain_why_not(approval: Approval, reader: Reader) -> str:
    """Explain why the reader cannot decide a request."""
    if approval.status != "open":
        return f"It is {approval.status}."
    if find_vote(approval, reader.approver) is not None:
        return "You have decided it."
    if reader.approver is None:
        return "Your account has no approver's name, so it can look and not decide."
    return f"{reader.approver} is not one of its approvers."


def _find_counts_at(approval: Approval, reader: Reader) -> datetime | None:
    vote = find_vote(approval, reader.approver)
    return None if vote is None or approval.status != "open" else vote.final_at


def _name_missed_criteria(result: JudgeResult) -> str:
    missed = [
        criterion.name for criterion in result.criteria if criterion.threshold is not None and not criterion.passed
    ]
    return f"Criteria below their thresholds: {', '.join(missed)}." if missed else ""


def _list_votes(approval: Approval, reader: Reader, history: Sequence[Entry], *, hidden: bool) -> tuple[Act, ...]:
    """List an act for each approver, also without a vote; with ``hidden``, those of others look like no vote."""
    answers = read_answers(history)
    votes = {vote.by: vote for vote in (*approval.votes, *approval.pending_votes)}
    if hidden:  # who the approvers are is no secret; what they said is
        votes = {name: vote for name, vote in votes.items() if name == reader.approver}
    otherwise = "not shown yet" if hidden else "not yet"
    acts = []
    for name in approval.approvers:
        vote, is_reader = votes.get(name), name == reader.approver
        answer = "" if vote is None else answers.get(vote.seq or 0, "")
        shown_name, word = (f"{name} (you)", "not yet") if is_reader else (name, otherwise)
        acts.append(make_vote_act(shown_name, vote, otherwise=word, answer=answer))
    return tuple(acts)


def _find_asker(approval: Approval) -> str:
    """Return who asks, like ``caller as agent``, with what is known of the two; empty where nothing is."""
    asker = approval.metadata.get("agent") or approval.execution
    agent = asker if isinstance(asker, str) else ""
    # What the server knows comes first: the rest is what the program says of itself.
    run = find_run(approval.metadata)
    owner = None if run is None else split_run(run).owner
    caller = approval.metadata.get(CALLER) or owner
    return " as ".join(name for name in (caller, agent) if isinstance(name, str) and name)


def find_metadata(approval: Approval, key: str) -> str:
    """Find a text that the metadata have under a key; empty where they have none."""
    text = approval.metadata.get(key)
    return text.strip()[:_LONGEST_VALUE] if isinstance(text, str) else ""


def find_link(approval: Approval) -> str:
    """Find the address that people may follow: of the web, so that no scheme of it runs or opens anything else."""
    link = find_metadata(approval, "link")
    return link if _WEB.fullmatch(link) else ""


_WEB = re.compile(r"https?://[^\s\"'<>\\]+", re.IGNORECASE)

_LONGEST_VALUE = 1_000


def _find_use_within(approval: Approval) -> float | None:
    seconds = None if find_run(approval.metadata) is None else approval.metadata.get(USE_WITHIN)
    return float(seconds) if isinstance(seconds, int | float) else None


def _find_seconds_left(approval: Approval | RequestSummary, now: datetime) -> float | None:
    return None if approval.expires_at is None else max(0.0, (approval.expires_at - now).total_seconds())


def _find_share_left(approval: Approval, now: datetime) -> float:
    if approval.expires_at is None:
        return 1.0
    whole = (approval.expires_at - approval.created_at).total_seconds()
    left = (approval.expires_at - now).total_seconds()
    return min(1.0, max(0.0, left / whole)) if whole > 0 else 0.0
