"""A request for approval, and what people said to it: values without a store and without a clock.

Whose vote counts is decided in ``votes.py`` (``find_refusal``), and whether what people approve is shown to them
whole in ``completeness.py`` (``find_gaps``). Whether a request has expired, and what it then is, is decided here
(``is_due``, ``expire``).
"""

from __future__ import annotations

import secrets
import time
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, ClassVar, Literal, Self, get_args

from adjudge.errors import Reason, UsageError
from adjudge.formats.arguments import check_choice
from adjudge.formats.invisible import explain_doubtful_name
from adjudge.formats.record import Layout, read_record, write_record
from adjudge.formats.text import clean
from adjudge.result import DecidedBy, JudgeChainResult, JudgeResult, Outcome, read_result

Status = Literal["open", "approved", "denied"]

OnExpiry = Literal["deny", "approve"]

STATUSES: tuple[Status, ...] = get_args(Status)


def make_approval_id() -> str:
    """Make a new id: a UUIDv7 (RFC 9562) that sorts by time, to a quarter of a microsecond, and 128 random bits.

    A client resumes its request with this id, so it must not be guessable. ``make_id`` is not enough: its random part
    comes from a generator whose output can be predicted from earlier ids.
    """
    milliseconds, nanoseconds = divmod(time.time_ns(), 1_000_000)
    twelve_bits_of_time = nanoseconds * 4096 // 1_000_000
    variant_and_random = 0b10 << 62 | secrets.randbits(62)
    digits = f"{milliseconds:012x}7{twelve_bits_of_time:03x}{variant_and_random:016x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}-{secrets.token_hex(16)}"


LONGEST_NAME = 200
"""Characters of a person's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """One person's vote."""

    _layout: ClassVar[Layout] = Layout(omitted=("answer", "channel"))

    by: str
    """The approver's name."""
    approved: bool
    """True if the vote approves."""
    at: datetime
    """The time of the vote, in UTC."""
    reason: str = ""
    """The reason that the voter gave."""
    seq: int | None = None
    """Its place in the ledger."""
    final_at: datetime | None = None
    """The time from which it counts, unless its voter takes it back before; ``None`` for a vote that counts."""
    answer: str = ""
    """The message to the agent from the one who denies, beside that it was denied; empty for a vote that counted
    before."""
    channel: str = ""
    """The way on which it came, where that is not one of adjudge's own; only the ledger's entry keeps it."""

    def to_dict(self) -> dict[str, Any]:
        """Write this value as plain data."""
        return write_record(self)


NO_PLACE = 0
"""The place of something that is not recorded yet. No entry of a ledger has it, because a ledger counts from 1."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Approval:
    """A request for approval in its current state: the question, the approvers, the votes and the outcome."""

    schema: ClassVar[str] = "adjudge/approval/1"
    _layout: ClassVar[Layout] = Layout(
        readers={"result": read_result, "first": read_result}, omitted=("answer", "texts", "audit")
    )

    id: str
    """The id of the request."""
    message: str
    """The question that the people are asked; it may quote the content."""
    approvers: tuple[str, ...]
    """The people who may decide; each name once, in Unicode's composed form (NFC), compared exactly."""
    created_at: datetime
    """The time at which it was made, in UTC."""
    result_id: str
    """The id of the result that people are asked about."""
    outcome: Outcome
    """The outcome of that result."""
    judge: str
    """The name of the judge that gave it."""
    subject: str
    """Digest of the content as it was judged; the ledger's entries about this request carry it too."""
    status: Status = "open"
    """``open``, ``approved`` or ``denied``."""
    required: int = 1
    """The number of them who have to approve; one who denies ends it."""
    expires_at: datetime | None = None
    """The time at which it ends without an answer; ``None`` is never."""
    on_expiry: OnExpiry = "deny"
    """The answer that it counts as then: ``deny`` or ``approve``."""
    undecided_because: Reason | None = None
    """The reason why the judge could not decide; ``None`` if it did."""
    score: float | None = None
    """The score of the result, in 0 to 1; ``None`` without one."""
    threshold: float | None = None
    """The passing threshold that was in force."""
    reason: str = ""
    """The reason why people are asked, in one line; it may quote the content."""
    result: JudgeResult | None = None
    """The result they are asked about, without the replies it was read from; ``None`` where it could not be kept."""
    content: str | None = None
    """The content as it was handed over for the people to read; ``None`` where it was not, or is forgotten."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """``task``, ``context`` and ``reference`` with which it was judged, as far as they were handed over for the people
    to read; the content is not among them."""
    gate: str | None = None
    """The gate that asks; ``None`` where a program asks."""
    request: str | None = None
    """Digest of all that is asked, terms included; ``None`` where no gate asked."""
    execution: str | None = None
    """The id of the run or request that it belongs to, if the program gave one."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Yours: the ``metadata`` of the check."""
    votes: tuple[Vote, ...] = ()
    """The votes that counted, in order; what was refused is in the ledger alone."""
    pending_votes: tuple[Vote, ...] = ()
    """Votes that their voters can still take back, in order. They decide nothing yet."""
    first: JudgeResult | None = None
    """The result of the judge that was asked before the people."""
    first_said: str = ""
    """The reason why this judge approved, or why the people are still asked; empty if no judge was to answer first."""
    closed_at: datetime | None = None
    """The time at which it was decided or expired; ``None`` while it is open."""
    decided_by: DecidedBy | None = None
    """``human``, ``judge`` (the one that was asked first) or ``policy`` (it expired); ``None`` while it is open."""
    closed_by: tuple[str, ...] = ()
    """The people who approved, the one who denied, or the judge; nobody when it expired."""
    closed_because: str = ""
    """The reason that they gave."""
    answer: str = ""
    """The message to the agent from the one who denied; a ``ToolGuard`` passes it on with ``pass_answers``."""
    audit: Mapping[str, float] = field(default_factory=dict)
    """The terms of an audit: its ``share``, ``promise`` and ``confidence``. Empty for a request that something waits
    for.

    An audit asks about a content that went through already: ``approved`` says that this was right, ``denied`` by a
    person that it should have been stopped, and neither changes anything for the content. It has no ``result``, because
    people answer without the judge."""
    seq: int | None = None
    """The place of the request in the ledger."""
    closed_seq: int | None = None
    """The place of the end in the ledger."""
    override_seq: int | None = None
    """The place in the ledger of the entry that people overruled the judge; ``None`` when they did not."""

    def __post_init__(self) -> None:
        check_choice("status", self.status, STATUSES, where="an approval")
        deciders = {"open": (None,), "approved": ("human", "judge", "policy"), "denied": ("human", "policy")}
        if self.decided_by not in deciders[self.status]:
            raise UsageError(f"an approval that is {self.status} cannot be decided_by={self.decided_by!r}")
        result = self.result
        if result is not None and (result.id, result.outcome) != (self.result_id, self.outcome):
            raise UsageError(f"approval {self.id} is about result {self.result_id!r} and was given {result.id!r}")
        problem = self._find_contradiction() if self.status == "approved" else None
        # Checked here, so that no mistake in how votes are counted can approve in the name of somebody who did not.
        if problem is not None:
            raise UsageError(f"approval {self.id} cannot be approved by {self.decided_by}: {problem}")

    def _find_contradiction(self) -> str | None:
        """Explain why an approved request cannot be approved by its ``decided_by``; ``None`` if there is no problem."""
        if self.decided_by == "policy":
            return None if self.on_expiry == "approve" else "an expiry approves only with on_expiry='approve'"
        if self.decided_by == "judge":
            passed = self.first is not None and self.first.passed and self.first.decided_by == "judge"
            return None if passed else "the judge that was asked first did not pass it"
        approved_by = {vote.by for vote in self.votes if vote.approved and vote.by in self.approvers}
        is_enough = len(approved_by) >= self.required and all(vote.approved for vote in self.votes)
        return None if is_enough else f"it needs {self.required} of its approvers and nobody who denied"

    def __bool__(self) -> bool:
        # Without this every request is true, and `if await approvals.get(...)` takes an open one for a yes.
        return self.status == "approved"

    @property
    def missing(self) -> int:
        """The number of people who still have to approve; 0 once it is closed."""
        return self.required - sum(vote.approved for vote in self.votes) if self.status == "open" else 0

    @property
    def overrides(self) -> bool:
        """True if people overruled the judge: approved what it did not pass, or denied a pass; never in an audit."""
        return (
            not self.audit and self.decided_by == "human" and (self.status == "approved") != (self.outcome == "passed")
        )

    def explain(self) -> str:
        """Explain the state in one line; a reason given by a person may quote the content."""
        if self.status == "open":
            voters = {vote.by for vote in (*self.votes, *self.pending_votes)}
            remaining_names = ", ".join([name for name in self.approvers if name not in voters]) or "nobody else"
            state = f"open: {self.missing} of {self.required} still to approve, by {remaining_names}"
            state += "".join([f"; {_explain_pending(vote)}" for vote in self.pending_votes])
            return clean(f"{state}; {self.first_said}" if self.first_said else state, keep_lines=False)
        state = f"{self.status} by {', '.join(self.closed_by) or self.decided_by}"
        return clean(f"{state}: {self.closed_because}" if self.closed_because else state, keep_lines=False)

    def forget(self) -> Approval:
        """Return the same request without what can quote the content."""
        result, first = _drop_quoting_texts(self.result), _drop_quoting_texts(self.first)
        return replace(self, message="", reason="", content=None, texts={}, result=result, first=first)

    def erase(self) -> Approval:
        """Return the same request without any text of anybody: what ``forget`` leaves out, metadata and reasons."""
        votes = tuple(replace(vote, reason="", answer="") for vote in self.votes)
        bare = replace(self.forget(), metadata={}, execution=None, votes=votes, pending_votes=())
        result = None if bare.result is None else replace(bare.result, metadata={})
        first = None if bare.first is None else replace(bare.first, metadata={})
        return replace(bare, first_said="", closed_because="", answer="", result=result, first=first)

    def to_dict(self) -> dict[str, Any]:
        """Write this value as plain data that JSON can hold; ``from_dict`` reads it back."""
        return write_record(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back ``data`` that ``to_dict`` wrote; raises ``UsageError`` when it is something else.

        Args:
            data: What ``to_dict`` wrote.
        """
        return read_record(cls, data)

    def __repr__(self) -> str:
        return f"<Approval {self.id} {self.status}>"


def _drop_quoting_texts(result: JudgeResult | None) -> JudgeResult | None:
    """Return a result without the members that can quote the content; ``None`` without a result."""
    if result is None:
        return None
    bare = replace(
        result,
        detail="",
        reasoning="",
        raw_response=None,
        earlier_responses=(),
        suggestions=(),
        value=None,
        criteria=(),
        parts=(),
        rule_results=(),
    )
    return replace(bare, results=()) if isinstance(bare, JudgeChainResult) else bare


def read_name(name: object, argument: str) -> str:
    """Return a person's name in composed form (NFC); raise ``UsageError`` for a value that is no name.

    Nothing else is normalised: names that differ in capitals, or in letters of other alphabets that only look the
    same, are different names.
    """
    if not isinstance(name, str):
        raise UsageError(f"{argument} must be a text, got {type(name).__name__}", argument=argument)
    composed = unicodedata.normalize("NFC", name)
    problem = explain_doubtful_name(composed)
    if problem is not None or len(composed) > LONGEST_NAME:
        shown_name = clean(ascii(name[:80]), keep_lines=False)
        raise UsageError(
            f"{argument} must be a name of 1 to {LONGEST_NAME} printable characters without a blank at either end, got "
            f"{shown_name}" + (f": {problem}" if problem else ""),
            argument=argument,
        )
    return composed


def _explain_pending(vote: Vote) -> str:
    """Explain a vote that can still be taken back: who gave it, and until when."""
    until = "" if vote.final_at is None else f" until {vote.final_at:%H:%M:%S}Z"
    return f"{vote.by} {'approved' if vote.approved else 'denied'} and can take it back{until}"


_ACTION_MEMBERS = ("tool", "method", "path")
"""Members of the metadata that say what would be done."""


def is_alike(approval: Approval, earlier: Approval) -> bool:
    """Return whether people approved an earlier request for the same action, and its content can be compared."""
    if earlier.decided_by != "human" or earlier.content is None or earlier.gate != approval.gate:
        return False
    return all(approval.metadata.get(name) == earlier.metadata.get(name) for name in _ACTION_MEMBERS)


def is_due(approval: Approval, now: datetime) -> bool:
    """Return whether a request is open and its ``expires_at`` is reached or past. Count the final votes before."""
    return approval.status == "open" and approval.expires_at is not None and now >= approval.expires_at


def expire(approval: Approval, now: datetime) -> Approval:
    """Close a request that has expired: approved if its ``on_expiry`` is ``"approve"``, otherwise denied."""
    if approval.on_expiry == "approve":
        reason = "it expired, and on_expiry='approve' was asked for"
        return replace(approval, status="approved", decided_by="policy", closed_at=now, closed_because=reason)
    return replace(approval, status="denied", decided_by="policy", closed_at=now, closed_because="it expired")


def approve_by_judge(approval: Approval, judged: JudgeResult, now: datetime) -> Approval:
    """Return the request closed as approved by the judge that was asked before the people."""
    return replace(
        approval,
        status="approved",
        decided_by="judge",
        closed_at=now,
        closed_by=(judged.judge,),
        closed_because=approval.first_said,
    )
