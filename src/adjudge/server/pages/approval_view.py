"""The values that the page *Approvals* shows of requests, made from them without a store or a clock.

The addresses are in ``approvals.py`` (``show_request``).

Where a reader is to decide without the judge, the values leave out the verdict, criteria, rules, quotations and seats,
and what other people said. So no template can show them.
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
from adjudge.server.pages.request_acts import Act, find_withdrawn_vote, list_acts, make_vote_act, read_answers
from adjudge.templates.call_values import CallView
from adjudge.templates.call_view import make_call_view
from adjudge.templates.difference import make_difference
from adjudge.templates.environment import quote_segment
from adjudge.templates.evidence import MarkedText, mark_evidence, mark_window
from adjudge.templates.json_difference import ContentDifference, make_json_difference
from adjudge.templates.judged_text import count_transcripts, make_judged_text, open_conversation
from adjudge.templates.opened_parts import MOST_DRAWN, Opened, TextWindow, count_windows, is_long, read_opened
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
        """``rules`` or ``judge``, whichever gave the verdict.

        While the verdict is hidden it is ``judge``, because ``rules`` would tell that a rule failed.
        """
        return name_decider(self.result)

    @property
    def shown(self) -> int:
        """Characters of the content that are shown; all of them if it is shown in rows."""
        return self.length if self.content is None else sum(len(part.text) for part in self.content.passages)

    @property
    def is_cut(self) -> bool:
        """Return True if anything of the content, or of what it was judged with, is not shown yet."""
        return not self.seen  # which is empty until all is shown

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
    """The person who looks at a request, and how it is shown to them. This alone decides what is left out of it."""

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
    read_windows: ReadWindows = field(default_factory=dict)
    """The windows of long texts that were shown to them before, or that they have as a file."""
    filters: tuple[tuple[str, str], ...] = ()
    """The members of the address that filter the queue, which links of the page keep."""
    path: str = "/approvals"
    """The address below which its page is."""


# ---------------------------------------------------------------- the queue


def find_next_request(old_queue: QueuePlaces, decided_id: str, new_queue: QueuePlaces) -> str | None:
    """Find the request that a reviewer can decide next: the first one behind the decided one, else the first of all.

    So a reviewer who skipped some requests is not led back to them after each decision. ``old_queue`` is the queue as
    it was before the decision, and ``new_queue`` as it is after it.
    """
    candidates = [ident for ident in new_queue.mine if ident != decided_id]
    old_ids = old_queue.ids
    behind = set(old_ids[old_ids.index(decided_id) + 1 :] if decided_id in old_ids else ())
    first_of_all = candidates[0] if candidates else None
    return next((ident for ident in candidates if ident in behind), first_of_all)


def make_queue_item(approval: RequestSummary, reader: Reader, now: datetime) -> QueueItem:
    """Make a row of the queue, without the judge where its reader is to decide first."""
    hidden = is_judge_hidden(approval, reader)
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
    return sorted(undoable, key=lambda undoable_vote: undoable_vote.vote.at, reverse=True)


def may_decide(approval: Approval | RequestSummary, name: str | None) -> bool:
    """Return whether somebody is one of the approvers and has not decided."""
    return approval.status == "open" and name in approval.approvers and find_vote(approval, name) is None


def find_vote(approval: Approval | RequestSummary, name: str | None) -> Vote | None:
    """Find somebody's vote, whether it counts already or not."""
    return next((vote for vote in (*approval.votes, *approval.pending_votes) if vote.by == name), None)


def is_judge_hidden(approval: Approval | RequestSummary, reader: Reader) -> bool:
    """Return whether a request is shown without what the judge and other people said, so that its reader decides first.

    It is hidden until the reader's vote counts: before, they could undo the vote, look, and vote again.
    """
    has_counted_vote = any(vote.by == reader.approver for vote in approval.votes)
    is_asked = approval.status == "open" and reader.approver in approval.approvers
    return reader.hides_judge and is_asked and not has_counted_vote


# ---------------------------------------------------------------- one request


@dataclass(frozen=True, slots=True, kw_only=True)
class _ShownContent:
    """The content as it is shown: a call, a transcript or a text (the others are ``None``), and what is not shown."""

    call: CallView | None = None
    transcript: TranscriptView | None = None
    text: MarkedText | None = None
    window: TextWindow | None = None
    unshown: tuple[str, ...] = ()
    """The parts that are not shown, in words."""
    is_json: bool = False
    """True if it is shown as a text, and could be shown as a call or a transcript."""
    has_unbound_files: bool = False


def _make_shown_content(
    approval: Approval, reader: Reader, opened: Opened, result: JudgeResult | None
) -> _ShownContent:
    """Make what is shown of the content: a window of a long text, else a transcript, the rows of a call, or a text."""
    content = approval.content
    if content is None:
        return _ShownContent()
    quotations = () if result is None else list_quotations(result)
    window = opened.find_window("content", content)
    if window is not None:
        return _make_shown_window(content, window, quotations)
    conversation = open_conversation(content)
    findings = () if result is None else list_findings(result)
    if conversation is not None and not reader.shows_json:
        most = MOST_DRAWN if is_long(content) else None
        transcript = make_transcript_view(
            conversation, opened=opened, quotations=quotations, findings=findings, most_drawn=most
        )
        return _ShownContent(transcript=transcript, unshown=transcript.unshown_parts)
    call = make_call_view(content, quotations, whole=reader.shows_all, only_calls=False, findings=findings)
    has_unbound_files = call is not None and call.find_literal(FILES_NOT_BOUND) == "true"
    if call is not None and not reader.shows_json:
        return _ShownContent(call=call, unshown=call.unshown_parts, has_unbound_files=has_unbound_files)
    text = content if reader.shows_all else content[:LONGEST_SHOWN]
    unshown_part = f"{len(content) - len(text):,} of {len(content):,} characters"
    return _ShownContent(
        text=mark_evidence(text, quotations),
        unshown=(unshown_part,) if text != content else (),
        is_json=call is not None or conversation is not None,
        has_unbound_files=has_unbound_files,
    )


def _make_shown_window(content: str, window: TextWindow, quotations: Sequence[str]) -> _ShownContent:
    """Make what is shown of a long content: a window of its text, with the quotations that are in it marked."""
    unshown_part = f"{len(content) - (window.end - window.begin):,} of {len(content):,} characters"
    return _ShownContent(
        text=mark_window(content, quotations, window.begin, window.end),
        window=window,
        unshown=(unshown_part,),
        is_json=content.lstrip()[:1] in ("{", "["),
    )


_SHOW_REST = "Show the rest."

_MOST_NAMED_PARTS = 6
"""Parts that are not shown yet and are named; more are counted."""


def _make_unshown_gap(unshown: Sequence[str]) -> Gap | None:
    """Make the gap that keeps a request from being approved while parts are not shown; ``None`` if all is shown."""
    if not unshown:
        return None
    more = f"; and {len(unshown) - _MOST_NAMED_PARTS:,} more parts" if len(unshown) > _MOST_NAMED_PARTS else ""
    sentence = f"Not shown yet: {'; '.join(unshown[:_MOST_NAMED_PARTS])}{more}."
    return Gap(kind="cut", what=sentence, remedy=_SHOW_REST)


@dataclass(slots=True)
class _UnshownTexts:
    """Finds what this page and earlier ones have not shown of a request's texts, and the address that shows more."""

    opened: Opened
    read_windows: dict[str, frozenset[int]]
    """The numbers of the windows that were shown, by the name of the text; ``list_unshown`` adds those of this page."""
    rest_path: str = ""
    """The address that shows more; empty while nothing is found to be unshown."""

    def list_unshown(self, name: str, text: str, window: TextWindow | None, unshown: Sequence[str]) -> list[str]:
        """List what is not shown yet of a text, in words, and note the address that shows more.

        ``window`` is the window of the text that this page shows, and ``unshown`` what this page leaves out. Of a long
        text that is read in windows, only the windows that no page has shown are unshown.
        """
        count = count_windows(text)
        read_numbers = self.read_windows.get(name, frozenset()) | ({window.number} if window is not None else set())
        is_read_in_windows = bool(read_numbers) and count > 1
        if read_numbers:
            self.read_windows[name] = read_numbers
        if not is_read_in_windows:
            if not unshown:
                return []
            # It replaces the address of a window, because it opens the first window of each long text too.
            self.rest_path = self.opened.make_whole_link()
            return list(unshown)
        unread_numbers = [number for number in range(1, count + 1) if number not in read_numbers]
        if not unread_numbers or not unshown:
            return []
        self.rest_path = self.rest_path or self.opened.make_part_link(name, unread_numbers[0])
        characters = sum(min(number * MOST_DRAWN, len(text)) - (number - 1) * MOST_DRAWN for number in unread_numbers)
        return [f"{characters:,} characters of the {name}, in {len(unread_numbers):,} of its {count:,} parts"]


def _make_context_view(
    approval: Approval, opened: Opened, shown: _ShownContent, judged_with: Mapping[str, str] | None
) -> ContextView:
    """Make the view of the texts that the content was judged with.

    ``judged_with`` has the digests of what the gate judged it with, by name; ``None`` if they are not known.
    Transcripts are numbered through the page, beginning with that of the content.
    """
    digests = judged_with or {}
    texts: list[JudgedText] = []
    next_number = 1 if shown.transcript is None else 2
    for name in (name for name in CONTEXT if name in approval.texts):
        texts.append(make_judged_text(approval.texts[name], name, first=next_number, opened=opened))
        next_number += count_transcripts(texts[-1])
    return ContextView(
        effects=list_effects(approval.metadata),
        texts=tuple(texts),
        absent=() if judged_with is None else tuple(name for name in ("task", "context") if name not in digests),
        redacted=frozenset(
            name for name, text in approval.texts.items() if name in digests and digest_text(text) != digests[name]
        ),
        # These two are set once it is known what all texts leave out.
        rest_path="",
        read={},
    )


def _make_shown_texts(
    approval: Approval, reader: Reader, result: JudgeResult | None, judged_with: Mapping[str, str] | None
) -> tuple[_ShownContent, ContextView, list[Gap]]:
    """Make what is shown of the content, and of the texts that it was judged with.

    Returns both, and the gaps for what no page has shown yet: one for the content, one for the other texts.
    """
    path = f"{reader.path}/{quote_segment(approval.id)}"
    json_members = (("json", "true"),) if reader.shows_json else ()
    query = (*json_members, *reader.filters)
    opened = read_opened(path, reader.opened, whole=reader.shows_all, query=query, part=reader.part)
    shown = _make_shown_content(approval, reader, opened, result)
    context = _make_context_view(approval, opened, shown, judged_with)
    unshown = _UnshownTexts(opened, dict(reader.read_windows))
    content_parts = unshown.list_unshown("content", approval.content or "", shown.window, shown.unshown)
    context_parts = [
        part
        for text in context.texts
        for part in unshown.list_unshown(text.name, approval.texts[text.name], text.window, text.unshown_parts)
    ]
    gaps = [gap for gap in (_make_unshown_gap(content_parts), _make_unshown_gap(context_parts)) if gap is not None]
    return shown, replace(context, rest_path=unshown.rest_path, read=unshown.read_windows), gaps


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
    hidden = is_judge_hidden(approval, reader)
    result = None if hidden else approval.result
    shown, context, unshown_gaps = _make_shown_texts(approval, reader, result, judged_with)
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
        difference=_compare_with_earlier(earlier, approval),
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
        gaps=(*gaps, *unshown_gaps),
        can_decide=can_decide,
        why_not="" if can_decide else explain_why_not(approval, reader),
        counts_at=_find_counts_at(approval, reader),
        withdrawn=find_withdrawn_vote(history, reader.approver) if can_decide else None,
        needs_reason=approval.outcome != "passed",
        seen="" if unshown_gaps else digest_shown(approval),
    )


def _compare_with_earlier(earlier: Approval | None, approval: Approval) -> ContentDifference | None:
    """Compare a content with that of an earlier request, if there is one; ``None`` if either is too long to compare."""
    if earlier is None or approval.content is None:
        return ContentDifference()
    old, new = earlier.content or "", approval.content
    if is_long(new) or is_long(old):
        return ContentDifference() if old == new else None
    return make_json_difference(old, new) or ContentDifference(lines=make_difference(old, new))


def fits_into_button(reason: str) -> bool:
    """Return whether a reason fits into a button: it is short, and one line without invisible characters."""
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
    """Find the time from which the reader's vote counts; ``None`` if there is no vote that can still be undone."""
    vote = find_vote(approval, reader.approver)
    return None if vote is None or approval.status != "open" else vote.final_at


def _name_missed_criteria(result: JudgeResult) -> str:
    """Write a sentence that names the criteria below their thresholds; empty if there are none."""
    missed = [
        criterion.name for criterion in result.criteria if criterion.threshold is not None and not criterion.passed
    ]
    return f"Criteria below their thresholds: {', '.join(missed)}." if missed else ""


def _list_votes(approval: Approval, reader: Reader, history: Sequence[Entry], *, hidden: bool) -> tuple[Act, ...]:
    """List an act for each approver, also for those without a vote.

    With ``hidden``, the votes of all but the reader are left out; who the approvers are is no secret.
    """
    answers = read_answers(history)
    votes = {vote.by: vote for vote in (*approval.votes, *approval.pending_votes)}
    if hidden:
        votes = {name: vote for name, vote in votes.items() if name == reader.approver}
    others_text = "not shown yet" if hidden else "not yet"
    acts = []
    for name in approval.approvers:
        vote, is_reader = votes.get(name), name == reader.approver
        answer = "" if vote is None else answers.get(vote.seq or 0, "")
        shown_name, no_vote_text = (f"{name} (you)", "not yet") if is_reader else (name, others_text)
        acts.append(make_vote_act(shown_name, vote, no_vote_text=no_vote_text, answer=answer))
    return tuple(acts)


def _find_asker(approval: Approval) -> str:
    """Return who asks for approval, as ``caller as agent``; only what is known of the two, and empty if nothing is.

    The caller is the key or account that sent the request, and the agent is the name that the program gives itself.
    """
    asker = approval.metadata.get("agent") or approval.execution
    agent = asker if isinstance(asker, str) else ""
    # The caller comes first, because the server knows it; the agent is what the program says of itself.
    run = find_run(approval.metadata)
    owner = None if run is None else split_run(run).owner
    caller = approval.metadata.get(CALLER) or owner
    return " as ".join(name for name in (caller, agent) if isinstance(name, str) and name)


def find_metadata(approval: Approval, key: str) -> str:
    """Find a text that the metadata have under a key; empty where they have none."""
    text = approval.metadata.get(key)
    return text.strip()[:_LONGEST_METADATA] if isinstance(text, str) else ""


def find_link(approval: Approval) -> str:
    """Find the link in the metadata that people may follow; empty if it is none of the web.

    Other schemes, such as ``javascript:``, could run or open something.
    """
    link = find_metadata(approval, "link")
    return link if _WEB_ADDRESS.fullmatch(link) else ""


_WEB_ADDRESS = re.compile(r"https?://[^\s\"'<>\\]+", re.IGNORECASE)

_LONGEST_METADATA = 1_000


def _find_use_within(approval: Approval) -> float | None:
    """Find the seconds after the approval in which an agent's call can be made; ``None`` for no call, or no limit."""
    seconds = None if find_run(approval.metadata) is None else approval.metadata.get(USE_WITHIN)
    return float(seconds) if isinstance(seconds, int | float) else None


def _find_seconds_left(approval: Approval | RequestSummary, now: datetime) -> float | None:
    """Compute the seconds until a request expires, at least 0; ``None`` if it never does."""
    return None if approval.expires_at is None else max(0.0, (approval.expires_at - now).total_seconds())


def _find_share_left(approval: Approval, now: datetime) -> float:
    """Compute the share of a request's lifetime that is left, from 0 to 1; 1 if it never expires."""
    if approval.expires_at is None:
        return 1.0
    lifetime = (approval.expires_at - approval.created_at).total_seconds()
    left = (approval.expires_at - now).total_seconds()
    return min(1.0, max(0.0, left / lifetime)) if lifetime > 0 else 0.0
