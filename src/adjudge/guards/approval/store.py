"""Reads and transactions of the tables of approvals; every change is recorded as an entry of the ledger beside them.

Whose vote counts, and what votes add up to, is decided in ``votes.py``, and whether a request has expired in
``approval.py`` (``is_due``). The functions here write the outcome to the tables and to the ledger.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from adjudge.errors import LedgerError, RefusedBecause, UsageError
from adjudge.formats.plain_data import to_plain
from adjudge.formats.text import clean
from adjudge.guards.approval.approval import NO_PLACE, Approval, Vote, expire, is_due
from adjudge.guards.approval.completeness import digest_recorded, digest_shown, find_gaps
from adjudge.guards.approval.pending_decisions import (
    PendingRow,
    forget_pending,
    insert_pending,
    load_judged_with,
    load_pending,
    mark_used,
    was_used,
)
from adjudge.guards.approval.request_columns import (
    CLOSING_SCHEMA,
    OPEN,
    REQUEST_SCHEMA,
    ListedRequest,
    RequestFilters,
    derive_request,
    find_listed_status,
    insert_columns,
)
from adjudge.guards.approval.tables import (
    APPROVALS,
    APPROVERS,
    PENDING,
    PENDING_VOTES,
    REQUEST_COLUMNS,
    VOTES,
    make_tables,
)
from adjudge.guards.approval.votes import count_vote, drop_pending, find_final_at, find_final_vote, find_refusal
from adjudge.guards.decision import Decision
from adjudge.guards.held_request import is_single_use
from adjudge.ledger.columns import (
    AUDIT_CLOSED,
    AUDIT_PLANTED,
    AUDIT_REQUESTED,
    ENTRY_COLUMNS,
    ENTRY_NAMES,
    find_run,
    get_columns_table,
    is_about_no_call,
    make_column_tables,
    make_counted_name,
    make_owned_name,
    split_run,
)
from adjudge.ledger.entry import PAYLOAD, Entry, Row, format_time
from adjudge.ledger.ledger import Ledger
from adjudge.ledger.payload import Draft, can_store, encode_payload
from adjudge.ledger.store import Transaction, find_latest, has_passed
from adjudge.ledger.store import make_table as make_ledger_table
from adjudge.result import JudgeResult

if TYPE_CHECKING:
    from sqlalchemy import Connection, Select, Table


VOTE_SCHEMA = "adjudge/vote/1"

PENDING_VOTE_SCHEMA = "adjudge/pending-vote/1"

WITHDRAWN_SCHEMA = "adjudge/vote-withdrawal/1"

COMMENT_SCHEMA = "adjudge/approval-comment/1"

OVERRIDE_SCHEMA = "adjudge/override/1"

PLANTED_SCHEMA = "adjudge/audit-planted/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalEntry:
    """A ledger entry about an approval, before it is written."""

    kind: str
    payload: dict[str, Any]
    quoting: dict[str, str] = field(default_factory=dict)
    """The texts of the payload that can quote what was judged."""


def make_requested_entry(approval: Approval, result: JudgeResult, pending: PendingRow | None) -> ApprovalEntry:
    """Make the entry for a new request: who is asked, about which result, and the digest of the pending decision."""
    names = ("approvers", "required", "created_at", "expires_at", "on_expiry", "metadata")
    # An audit's entry leaves out the result, so that nobody sees it before answering; the decision's own entry has it.
    terms_or_result = {"audit": dict(approval.audit)} if approval.audit else {"result": result.to_dict()}
    payload = {"schema": REQUEST_SCHEMA, **_describe_request(approval), **terms_or_result}
    payload |= {name: to_plain(getattr(approval, name)) for name in names}
    payload |= {"request": approval.request, "has_content": approval.content is not None}
    payload |= {"pending": pending.digest} if pending is not None else {}
    payload |= {"shown": digest_recorded(approval)}
    kind = AUDIT_REQUESTED if approval.audit else "approval.requested"
    return ApprovalEntry(kind=kind, payload=payload, quoting={"message": approval.message})


def make_voted_entry(approval: Approval, vote: Vote, refused: str | None) -> ApprovalEntry:
    """Make the entry for a person's vote; ``refused`` is the reason why it does not count, ``None`` if it counts."""
    payload = {"schema": VOTE_SCHEMA, **_describe_request(approval), "by": vote.by, "approved": vote.approved}
    payload |= {
        "at": to_plain(vote.at),
        "reason": vote.reason,
        "voter": "human",
        "requested_at": to_plain(approval.created_at),
        "accepted": refused is None,
        "refused_because": refused,
    }
    payload |= {"audit": True} if approval.audit else {}
    return ApprovalEntry(kind="approval.voted", payload=payload | _write_answer(vote.answer) | _write_channel(vote))


def make_pending_vote_entry(approval: Approval, vote: Vote) -> ApprovalEntry:
    """Make the entry for a vote that can still be taken back; a vote that counts later gets another entry then."""
    payload = {"schema": PENDING_VOTE_SCHEMA, **_describe_request(approval), "by": vote.by, "approved": vote.approved}
    payload |= {"at": to_plain(vote.at), "final_at": to_plain(vote.final_at), "reason": vote.reason, "voter": "human"}
    return ApprovalEntry(
        kind="approval.vote_pending", payload=payload | _write_answer(vote.answer) | _write_channel(vote)
    )


def make_withdrawn_entry(approval: Approval, vote: Vote, now: datetime) -> ApprovalEntry:
    """Make the entry for a withdrawal: somebody took their vote back before it counted."""
    payload = {"schema": WITHDRAWN_SCHEMA, **_describe_request(approval), "by": vote.by, "approved": vote.approved}
    payload |= {"at": to_plain(now), "vote": vote.seq}
    return ApprovalEntry(kind="approval.vote_withdrawn", payload=payload)


def make_comment_entry(approval: Approval, by: str, text: str, now: datetime) -> ApprovalEntry:
    """Make the entry for a comment: an approver said something without deciding."""
    payload = {"schema": COMMENT_SCHEMA, **_describe_request(approval), "by": by, "at": to_plain(now), "text": text}
    return ApprovalEntry(kind="approval.commented", payload=payload)


def make_judged_entry(approval: Approval, judged: JudgeResult) -> ApprovalEntry:
    """Make the entry for the answer of the judge that was asked before the people; it has this judge's result."""
    accepted = approval.decided_by == "judge"
    payload = {"schema": VOTE_SCHEMA, **_describe_request(approval), "result": judged.to_dict(), "by": judged.judge}
    payload |= {"voter": "judge", "approved": judged.passed, "accepted": accepted, "reason": approval.first_said}
    return ApprovalEntry(kind="approval.voted", payload=payload)


def make_closed_entry(approval: Approval) -> ApprovalEntry:
    """Make the entry for the end of a request: how it ended, and who ended it."""
    names = ("status", "decided_by", "closed_at", "closed_by", "closed_because")
    payload = {"schema": CLOSING_SCHEMA, **_describe_request(approval)}
    payload |= {name: to_plain(getattr(approval, name)) for name in names}
    if approval.audit:
        # Without any text, the entry can stay when the content is erased. Otherwise its alarm would be erased as well.
        del payload["closed_because"]
        audit_members = {"audit": dict(approval.audit), "requested": approval.seq}
        return ApprovalEntry(kind=AUDIT_CLOSED, payload=payload | audit_members)
    run = None if is_about_no_call(approval.metadata) else find_run(approval.metadata)
    payload |= {} if run is None else {"run": run}  # so that a run whose calls people denied can be found
    return ApprovalEntry(kind="approval.closed", payload=payload | _write_answer(approval.answer))


def make_override_entry(approval: Approval) -> ApprovalEntry:
    """Make the entry for an override: people decided something else than the judge."""
    payload = {"schema": OVERRIDE_SCHEMA, **_describe_request(approval), "label": approval.status == "approved"}
    payload |= {"by": list(approval.closed_by), "reason": approval.closed_because, "closed_seq": approval.closed_seq}
    return ApprovalEntry(kind="override", payload=payload)


def _write_channel(vote: Vote) -> dict[str, str]:
    """Return the member of an entry for the channel of a vote; empty for a vote without one."""
    return {"channel": vote.channel} if vote.channel else {}


def _write_answer(answer: str) -> dict[str, str]:
    """Return the member of an entry for the message to an agent whose call was denied; empty without one."""
    return {"answer": answer} if answer else {}


def _describe_request(approval: Approval) -> dict[str, Any]:
    """Return the members that every entry about a request has; ``Ledger.query`` filters by those of ``result``."""
    result = {"id": approval.result_id, "outcome": approval.outcome, "judge": approval.judge}
    result |= {"score": approval.score, "undecided_because": approval.undecided_because}
    members: dict[str, Any] = {"approval": approval.id, "result": result}
    optional_members = {"gate": approval.gate, "execution": approval.execution}
    return members | {name: text for name, text in optional_members.items() if text is not None}


def list_proving_places(approval: Approval) -> list[int]:
    """List the places of the ledger's entries that prove how a request ended: its request, its votes and its end."""
    return [seq or NO_PLACE for seq in (approval.seq, *[vote.seq for vote in approval.votes], approval.closed_seq)]


def find_unconfirmed(approval: Approval, entries: Mapping[int, Entry]) -> str | None:
    """Name what the ledger does not confirm of a closed request; ``None`` if it confirms everything.

    ``approval`` comes from the table, which anybody with access to the database can write. So its terms, its votes
    and its end count only if ``entries``, the ledger's entries by their places, say the same.
    """
    terms = ("approvers", "required", "on_expiry", "expires_at", "created_at", "gate", "request")
    request_entry = entries.get(approval.seq or NO_PLACE)
    result = (request_entry.payload or {}).get("result") if request_entry is not None else None
    is_same_result = isinstance(result, Mapping) and result.get("id") == approval.result_id
    if not is_same_result or not _confirms_members(entries, approval.seq, "approval.requested", approval, terms):
        return "who was asked, and how many have to approve"
    for vote in approval.votes:
        expected = {"by": vote.by, "approved": vote.approved, "accepted": True, "voter": "human"}
        if not _confirms_values(entries, vote.seq, "approval.voted", approval, expected):
            return f"what {vote.by} decided"
    ending = ("status", "decided_by", "closed_by", *(("answer",) if approval.answer else ()))
    is_confirmed = _confirms_members(entries, approval.closed_seq, "approval.closed", approval, ending)
    return None if is_confirmed else "how it ended"


def _confirms_members(
    entries: Mapping[int, Entry], seq: int | None, kind: str, approval: Approval, names: tuple[str, ...]
) -> bool:
    """Return whether the entry at ``seq`` is of this kind and has the approval's values of the members ``names``."""
    expected = {name: to_plain(getattr(approval, name)) for name in names}
    return _confirms_values(entries, seq, kind, approval, expected)


def _confirms_values(
    entries: Mapping[int, Entry], seq: int | None, kind: str, approval: Approval, expected: Mapping[str, Any]
) -> bool:
    """Return whether the entry at ``seq`` is of this kind, is about this approval, and has the expected members."""
    entry = entries.get(seq or NO_PLACE)
    if entry is None or entry.payload is None or (entry.kind, entry.subject) != (kind, approval.subject):
        return False
    payload = entry.payload
    return payload.get("approval") == approval.id and all(
        payload.get(name) == value for name, value in expected.items()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteOutcome:
    """The outcome of a vote."""

    approval: Approval
    refused: RefusedBecause | None
    """The reason why it does not count; ``None`` if it counts or is pending."""
    ended: bool
    """True if the request was closed by it, or found to have expired."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenVote:
    """A decision as it was given, before it is known whether it counts."""

    approval: str
    by: str
    approved: bool
    reason: str = ""
    seen: str | None = None
    """Digest of what was shown; ``None`` does not say."""
    require_complete: bool = False
    undo_seconds: float = 0.0
    answer: str = ""
    channel: str = ""


@dataclass(frozen=True, slots=True)
class ApprovalTransaction:
    """A running transaction on the tables and the ledger. Its clock is read only once it holds the writers' lock."""

    ledger: Ledger
    clock: Callable[[], datetime]
    transaction: Transaction
    shares_clock: bool
    """True if ``clock`` is the one that the ledger's entries are dated by."""

    def open(
        self,
        approval: Approval,
        result: JudgeResult,
        pending: PendingRow | None,
        most_open: Mapping[str, int],
        *,
        planted: Mapping[str, str],
    ) -> Approval:
        """Write a new request, the decision that waits for it, and the answer of the judge that was asked first.

        ``planted`` says by whom and why the content of an audit was made up; empty for any other. Raises
        ``UsageError``, and writes nothing, where ``most_open`` requests of its run or its gate are open.
        """
        check_room(self.transaction.connection, approval, most_open, self.clock())
        if pending is not None:
            insert_pending(self.transaction.connection, approval, pending)
        if planted:
            # In an entry of its own before the request, because whoever answers must not learn that it was made up.
            payload = {"schema": PLANTED_SCHEMA, "approval": approval.id, "gate": approval.gate, **planted}
            self._record(approval, ApprovalEntry(kind=AUDIT_PLANTED, payload=payload))
        draft = self._make_draft(approval, make_requested_entry(approval, result, pending))
        approval = replace(approval, seq=self.transaction.append(draft))
        if approval.first is not None:
            self._record(approval, make_judged_entry(approval, approval.first))
        if approval.status != "open":
            approval = self._record_end(approval)
        insert_request(self.transaction.connection, approval, derive_request(draft.members))
        return approval

    def vote(self, given_vote: GivenVote) -> VoteOutcome:
        """Count a vote, store it as pending while it can be taken back, or refuse it; each is recorded."""
        stored = load(self.transaction.connection, given_vote.approval)
        now = self._find_time(stored)
        approval = self._advance(stored, now)
        has_ended = approval.status != stored.status
        vote = Vote(
            by=given_vote.by,
            approved=given_vote.approved,
            at=now,
            reason=given_vote.reason,
            answer=given_vote.answer,
            channel=given_vote.channel,
        )
        refused = find_refusal(approval, given_vote.by) or self._find_gap(approval, given_vote)
        if refused is not None:
            self._record(approval, make_voted_entry(approval, vote, refused))
            return VoteOutcome(approval=approval, refused=refused, ended=has_ended)
        final_at = find_final_at(approval, approved=given_vote.approved, now=now, undo_seconds=given_vote.undo_seconds)
        if final_at is not None:
            approval = self._record_pending_vote(approval, replace(vote, final_at=final_at))
            return VoteOutcome(approval=approval, refused=None, ended=False)
        approval = self._record_vote(approval, vote)
        return VoteOutcome(approval=approval, refused=None, ended=approval.status != "open")

    def withdraw(self, ident: str, by: str) -> VoteOutcome:
        """Take back a pending vote; refuse that as ``final`` if the vote counts already, or there is none."""
        stored = load(self.transaction.connection, ident)
        now = self._find_time(stored)
        approval = self._advance(stored, now)
        has_ended = approval.status != stored.status
        vote = next((pending_vote for pending_vote in approval.pending_votes if pending_vote.by == by), None)
        # An approval whose time is over stays pending while a denial is pending. It cannot be taken back either.
        if vote is None or vote.final_at is None or now >= vote.final_at:
            return VoteOutcome(approval=approval, refused="final", ended=has_ended)
        self._record(approval, make_withdrawn_entry(approval, vote, now))
        delete_pending_vote(self.transaction.connection, ident, by)
        return VoteOutcome(approval=drop_pending(approval, by), refused=None, ended=has_ended)

    def comment(self, ident: str, by: str, text: str) -> RefusedBecause | None:
        """Record an approver's comment; return ``"unauthorised"``, and record nothing, for anybody else."""
        approval = load(self.transaction.connection, ident)
        if by not in approval.approvers:
            return "unauthorised"
        self._record(approval, make_comment_entry(approval, by, text, self.clock()))
        return None

    def close_due(self, ident: str) -> Approval | None:
        """Count the votes that are final by now, and close a request that has expired.

        Returns the request if this closed it; ``None`` if it is still open, or was closed before.
        """
        stored = load(self.transaction.connection, ident)
        approval = self._advance(stored, self._find_time(stored))
        return approval if approval.status != stored.status else None

    def close_erased(self, ident: str) -> Approval:
        """Close an open request whose texts are about to be erased, as denied: nobody can read it any more."""
        approval = load(self.transaction.connection, ident)
        if approval.status != "open":
            return approval
        because = "what it was about was deleted"
        return self._end_request(
            replace(approval, status="denied", decided_by="policy", closed_at=self.clock(), closed_because=because)
        )

    def forget(self, ident: str) -> Approval:
        """Delete the texts of a closed request and of its pending decision, and return the request without them."""
        approval = load(self.transaction.connection, ident).forget()
        rewrite_request(self.transaction.connection, approval)
        forget_pending(self.transaction.connection, ident)
        return approval

    def use(self, decision: Decision) -> int | None:
        """Record a decision that an approval allowed, mark the approval as used, and return the entry's place.

        Returns ``None`` when the approval can be used once and was used. Other writers wait for this transaction, so
        of any number of simultaneous attempts exactly one gets a place.

        Raises ``UsageError`` for an audit, and for a request that is not approved.
        """
        connection, ident = self.transaction.connection, decision.approval_id or ""
        approval, pending_row = load(connection, ident), load_pending(connection, ident)
        if approval.audit:
            raise UsageError(f"approval {ident} is an audit, whose answer opens nothing")
        if approval.status != "approved":
            raise UsageError(f"approval {ident} is {approval.status}, so it cannot be used; wait until it is approved")
        # Anybody who can write the database can clear the mark in the table, so the ledger is asked as well.
        is_unused = pending_row is not None and pending_row.used_at is None
        if is_single_use(decision.basis) and (not is_unused or was_used(connection, approval)):
            return None
        payload = {**decision.to_dict(), "used": True}
        seq = self.transaction.append(self.ledger.make_entry(payload, kind="decision", subject=approval.subject))
        if is_unused:
            mark_used(connection, ident, self.clock(), seq)
        return seq

    def _find_time(self, approval: Approval) -> datetime:
        """Find what time it is for a request: now, or later if the ledger shows that the clock was set back since."""
        now = self.clock()
        return find_time(self.transaction.connection, approval, now) if self.shares_clock else now

    def _advance(self, approval: Approval, now: datetime) -> Approval:
        """Count and record the pending votes that are final by now, then close and record a request that has expired.

        Returns the request after that.
        """
        while (vote := find_final_vote(approval, now)) is not None:
            answer = check_pending_vote(self.transaction.connection, approval, vote)
            delete_pending_vote(self.transaction.connection, approval.id, vote.by)
            approval = self._record_vote(drop_pending(approval, vote.by), replace(vote, final_at=None, answer=answer))
        # In this order: a vote counts at the latest when the request expires.
        return self._end_request(expire(approval, now)) if is_due(approval, now) else approval

    def _record_vote(self, approval: Approval, vote: Vote) -> Approval:
        """Record a vote, count it, and record the end of the request if the vote decides it; return the request."""
        vote = replace(vote, seq=self._record(approval, make_voted_entry(approval, vote, None)))
        approval = count_vote(approval, vote)
        if approval.status != "open":
            return self._end_request(approval, vote)
        update_open(self.transaction.connection, approval, vote)
        return approval

    def _record_pending_vote(self, approval: Approval, vote: Vote) -> Approval:
        """Record and store a vote that can still be taken back, and return the request with it."""
        vote = replace(vote, seq=self._record(approval, make_pending_vote_entry(approval, vote)))
        insert_pending_vote(self.transaction.connection, approval.id, vote)
        return replace(approval, pending_votes=(*approval.pending_votes, vote))

    def _find_gap(self, approval: Approval, given_vote: GivenVote) -> RefusedBecause | None:
        """Return why a request cannot be approved as it was shown to the voter; ``None`` if it can.

        A denial is never refused for this, because it lets nothing through. For an audit, both answers are checked,
        because an answer says something about the content only if the voter saw it.
        """
        if not given_vote.approved and not approval.audit:
            return None
        recorded_digest = read_shown(self.transaction.connection, approval)
        # Others can write the tables: what people read there must be what the ledger says they were asked.
        if recorded_digest is not None and recorded_digest != digest_recorded(approval):
            return "changed"
        if given_vote.seen is not None and given_vote.seen != digest_shown(approval):
            return "changed"
        if not given_vote.require_complete:
            return None
        judged_with = load_judged_with(self.transaction.connection, approval.id)
        return "incomplete" if find_gaps(approval, recorded_digest, judged_with) else None

    def _end_request(self, approval: Approval, vote: Vote | None = None) -> Approval:
        """Record and store the end of a request; ``vote`` is the one that ended it, ``None`` without one.

        Votes that are still pending then never count, and are recorded as refused.
        """
        for late_vote in approval.pending_votes:
            self._record(approval, make_voted_entry(approval, late_vote, "closed"))
            delete_pending_vote(self.transaction.connection, approval.id, late_vote.by)
        approval = self._record_end(replace(approval, pending_votes=()))
        update_open(self.transaction.connection, approval, vote)
        return approval

    def _record_end(self, approval: Approval) -> Approval:
        """Record the end of a request, and the override if it is one; return the request with the entries' places."""
        approval = replace(approval, closed_seq=self._record(approval, make_closed_entry(approval)))
        if not approval.overrides:
            return approval
        return replace(approval, override_seq=self._record(approval, make_override_entry(approval)))

    def _record(self, approval: Approval, entry: ApprovalEntry) -> int:
        """Append an entry about a request to the ledger, and return its place."""
        return self.transaction.append(self._make_draft(approval, entry))

    def _make_draft(self, approval: Approval, entry: ApprovalEntry) -> Draft:
        return self.ledger.make_entry(entry.payload, kind=entry.kind, subject=approval.subject, quoting=entry.quoting)


_MOST_EARLIER = 50
"""The most earlier requests of a gate that are loaded to find one for the same action."""

PAGE = 200
"""Requests that are fetched at once."""

READ_AT_ONCE = 20
"""Rows of requests that are fetched at once where each is dropped after it is read: each may have megabytes."""


def insert_request(connection: Connection, approval: Approval, listed: ListedRequest) -> None:
    """Write a new request to its table, and to the tables by which lists and searches find it."""
    connection.execute(_approvals().insert().values(id=approval.id, **_to_row(approval)))
    insert_columns(connection, approval.id, listed)


def update_open(connection: Connection, approval: Approval, vote: Vote | None = None) -> None:
    """Write the new state of a request that is open in its table, and the vote that changed it, if a vote did.

    Raises ``LedgerError`` if the table has the request as closed: then another program than adjudge closed it.
    """
    table = _approvals()
    if vote is not None:
        values: dict[str, Any] = {"approval": approval.id, "by": vote.by, "seq": vote.seq}
        values |= {"approved": int(vote.approved), "at": format_time(vote.at), "reason": vote.reason}
        connection.execute(make_tables().tables[VOTES].insert().values(**values))
    where = (table.c.id == approval.id) & table.c.status.in_(OPEN)
    if connection.execute(table.update().where(where).values(**_to_row(approval))).rowcount != 1:
        raise LedgerError(f"approval {approval.id} was closed by something that is not adjudge; nothing was changed")


def insert_pending_vote(connection: Connection, ident: str, vote: Vote) -> None:
    """Write a vote that can still be taken back to the table of pending votes."""
    values: dict[str, Any] = {"approval": ident, "by": vote.by, "seq": vote.seq, "approved": int(vote.approved)}
    values |= {"at": format_time(vote.at), "final_at": format_time(vote.final_at or vote.at), "reason": vote.reason}
    connection.execute(_pending_votes().insert().values(**values))


def delete_pending_vote(connection: Connection, ident: str, by: str) -> None:
    """Delete a pending vote that was taken back, or counts by now.

    Raises ``LedgerError``, which rolls the transaction back, if the table does not have it.
    """
    table = _pending_votes()
    if connection.execute(table.delete().where((table.c.approval == ident) & (table.c.by == by))).rowcount != 1:
        raise LedgerError(f"a pending vote on {ident} was taken by something that is not adjudge; nothing was changed")


def check_pending_vote(connection: Connection, approval: Approval, vote: Vote) -> str:
    """Check that the ledger has a pending vote, and return the vote's message to the agent, which may be empty.

    Raises ``LedgerError`` unless the ledger has an entry that this vote was given, and none that it was taken back.

    Counting a pending vote appends an entry for it. Without this check, a row that somebody wrote into the table by
    hand would get an entry in the ledger, and open the gate.
    """
    table = make_ledger_table()
    kinds = ("approval.vote_pending", "approval.vote_withdrawn")
    where = (table.c.subject == approval.subject) & table.c.kind.in_(kinds) & (table.c.seq >= (vote.seq or NO_PLACE))
    is_given, answer = False, ""
    for row in connection.execute(table.select().where(where).order_by(table.c.seq)):
        payload = None if row.payload is None else json.loads(row.payload)
        if row.kind == "approval.vote_pending" and row.seq == vote.seq:
            is_given = payload is not None and all(
                payload.get(name) == value for name, value in _list_vote_members(approval, vote)
            )
            answer = (payload or {}).get("answer", "")
        elif row.kind == "approval.vote_withdrawn":
            # A withdrawal whose payload was erased may have been that of this vote.
            is_given = is_given and payload is not None and payload.get("vote") != vote.seq
    if not is_given:
        raise LedgerError(
            f"a pending vote on approval {approval.id} is not the one in the ledger: one of them was changed by hand "
            "or erased, so it does not count; put the content through the gate again"
        )
    return answer if isinstance(answer, str) else ""


def _list_vote_members(approval: Approval, vote: Vote) -> list[tuple[str, Any]]:
    """List the names and values of the members that the entry of a pending vote must have."""
    times = [("at", to_plain(vote.at)), ("final_at", to_plain(vote.final_at))]
    return [("approval", approval.id), ("by", vote.by), ("approved", vote.approved), ("reason", vote.reason), *times]


def find_with_final_votes(connection: Connection, now: datetime) -> list[str]:
    """Find the ids of requests with pending votes whose time to be taken back is over, so that they must be counted."""
    from sqlalchemy import select

    table = _pending_votes()
    statement = select(table.c.approval).where(table.c.final_at <= format_time(now)).distinct()
    return list(connection.execute(statement.order_by(table.c.approval)).scalars())


def read_shown(connection: Connection, approval: Approval) -> str | None:
    """Read from the ledger's entry of a request the digest of what people are shown.

    Returns ``None`` if the entry has no digest or was erased. Returns ``""``, which no digest equals, if the request in
    the table has other metadata than the entry.
    """
    from sqlalchemy import select

    table = make_ledger_table()
    kind = AUDIT_REQUESTED if approval.audit else "approval.requested"
    where = (table.c.seq == (approval.seq or NO_PLACE)) & (table.c.kind == kind)
    payload = connection.execute(select(table.c.payload).where(where)).scalar_one_or_none()
    members = json.loads(payload) if payload is not None else {}
    # People are shown the title, tool and declared effects in the metadata, which the digest does not cover. They are
    # encoded as in an entry before they are compared, because some numbers and lone surrogates become texts there.
    metadata = json.loads(encode_payload({"metadata": to_plain(approval.metadata)}))["metadata"]
    if payload is not None and members.get("metadata") != metadata:
        return ""
    digest = members.get("shown") if members.get("approval") == approval.id else None
    return digest if isinstance(digest, str) else None


def rewrite_request(connection: Connection, approval: Approval) -> None:
    """Overwrite the row of a closed request, whose texts were removed."""
    table = _approvals()
    connection.execute(table.update().where(table.c.id == approval.id).values(**_to_row(approval)))


def erase_request(connection: Connection, approval: Approval) -> None:
    """Erase every text of a closed request from all tables.

    Its row still says who was asked, who decided, when, and how it ended.
    """
    tables, ident = make_tables().tables, approval.id
    rewrite_request(connection, approval.erase())
    forget_pending(connection, ident)
    votes, pending_votes, columns = tables[VOTES], _pending_votes(), tables[REQUEST_COLUMNS]
    connection.execute(votes.update().where(votes.c.approval == ident).values(reason=""))
    connection.execute(pending_votes.delete().where(pending_votes.c.approval == ident))
    emptied_columns = {"title": None, "agent": None, "customer": None}
    connection.execute(columns.update().where(columns.c.approval == ident).values(**emptied_columns))


def load(connection: Connection, ident: str) -> Approval:
    """Load the request of this id; raise ``UsageError`` when there is none."""
    # No request has an id that some store cannot hold, and some stores raise when they are asked for it.
    is_storable = isinstance(ident, str) and can_store(ident)
    statement = _approvals().select().where(_approvals().c.id == ident)
    approvals = _fetch_approvals(connection, statement) if is_storable else []
    if not approvals:
        raise explain_missing(ident)
    return approvals[0]


def load_many(
    connection: Connection,
    *,
    after: str = "",
    statuses: Collection[str] | None = None,
    overrides: bool = False,
    approver: str | None = None,
) -> list[Approval]:
    """Load one page of requests whose ids come after ``after``, in the order in which they were made.

    ``statuses`` are those of the table, ``overrides`` keeps only requests in which people overruled the judge, and
    ``approver`` only requests that ask this person. ``None`` and ``False`` are no condition.
    """
    table = _approvals()
    statement = table.select().where(table.c.id > after).order_by(table.c.id).limit(PAGE)
    if statuses is not None:
        statement = statement.where(table.c.status.in_(statuses))
    if overrides:
        statement = statement.where(table.c.overrides == 1)
    if approver is not None:
        statement = statement.where(table.c.id.in_(select_asked(approver)))
    return _fetch_approvals(connection, statement)


def select_asked(approver: str) -> Select[Any]:
    """Make the query for the ids of the requests that ask a person."""
    from sqlalchemy import select

    table = make_tables().tables[APPROVERS]
    return select(table.c.approval).where(table.c.approver == approver)


def find_requests(
    connection: Connection,
    filters: RequestFilters,
    *,
    statuses: Collection[str],
    approver: str | None,
    gates: Collection[str] | None,
    most: int,
) -> tuple[list[str], int]:
    """Find the requests that match, and return their ids, the oldest first and at most ``most``, and their number.

    ``statuses`` are those of the table. ``approver`` keeps only requests that ask this person, and ``gates`` only those
    of these gates; ``None`` is no condition.
    """
    from sqlalchemy import func, select

    table, listed = _approvals(), make_tables().tables[REQUEST_COLUMNS]
    joined = table.join(listed, listed.c.approval == table.c.id)
    conditions = filters.make_conditions(connection)
    conditions.append(table.c.status.in_(statuses))
    conditions += [] if gates is None else [listed.c.gate.in_(sorted(gates))]
    conditions += [] if approver is None else [table.c.id.in_(select_asked(approver))]
    ids = select(table.c.id).select_from(joined).where(*conditions).order_by(table.c.id).limit(most)
    total = select(func.count()).select_from(joined).where(*conditions)
    return list(connection.execute(ids).scalars()), connection.execute(total).scalar_one()


def load_votes_of(connection: Connection, *, by: str, since: datetime | None) -> list[Row]:
    """Load the ledger's entries of one person's votes, and of everybody's withdrawals, ``since`` a time."""
    from sqlalchemy import select

    table, columns, votes = make_ledger_table(), get_columns_table(), make_tables().tables[VOTES]
    vote_places = select(votes.c.seq).where(votes.c.by == by)
    withdrawal_places = select(columns.c.seq).where(columns.c.kind == "approval.vote_withdrawn")
    if since is not None:
        vote_places = vote_places.where(votes.c.at >= format_time(since))
        withdrawal_places = withdrawal_places.where(columns.c.at >= format_time(since))
    statement = table.select().where(table.c.seq.in_(vote_places.union(withdrawal_places))).order_by(table.c.seq)
    rows: list[Any] = [list(row) for row in connection.execute(statement)]
    for row in rows:
        # PostgreSQL returns a payload as a memoryview.
        row[PAYLOAD] = None if row[PAYLOAD] is None else bytes(row[PAYLOAD])
    return rows


def check_room(connection: Connection, approval: Approval, most_open: Mapping[str, int], now: datetime) -> None:
    """Raise ``UsageError`` if too many open requests of the same run, key or gate wait for people already.

    ``most_open`` has the limits by the names ``run``, ``key`` (the server's key that owns the run) and ``gate``.
    """
    from sqlalchemy import func, select

    run, table, columns = find_run(approval.metadata), _approvals(), make_tables().tables[REQUEST_COLUMNS]
    owner = None if run is None else split_run(run).owner
    id_queries = {
        "run": None if run is None else _select_named(make_counted_name(run, approval.metadata)),
        "key": None if owner is None else _select_named(make_owned_name(owner)),
        "gate": select(columns.c.approval).where(columns.c.gate == approval.gate),
    }
    is_open = (table.c.status == "open") & (table.c.expires_at.is_(None) | (table.c.expires_at > format_time(now)))
    for name, most in most_open.items():
        id_query = id_queries.get(name)
        if id_query is None:
            continue
        statement = select(func.count()).select_from(table).where(is_open, table.c.id.in_(id_query))
        if connection.execute(statement).scalar_one() >= most:
            raise UsageError(
                f"{most} requests of this {name} wait for people, which is the most; decide some of them first"
            )


def _select_named(name: str) -> Select[Any]:
    """Make the query for the ids of the requests whose entries the ledger indexes under the name of a run or a key."""
    from sqlalchemy import select

    tables = make_column_tables().tables
    names, columns = tables[ENTRY_NAMES], tables[ENTRY_COLUMNS]
    places = select(names.c.seq).where((names.c.value == name) & (names.c.name == "run"))
    return select(columns.c.approval).where(columns.c.seq.in_(places))


def load_several(connection: Connection, ids: Sequence[str]) -> list[Approval]:
    """Load the requests of these ids, in this order; those that are not there are left out."""
    statement = _approvals().select().where(_approvals().c.id.in_(ids))
    approvals = {approval.id: approval for approval in _fetch_approvals(connection, statement)}
    return [approvals[ident] for ident in ids if ident in approvals]


def load_approved_before(connection: Connection, ident: str, gate: str) -> list[Approval]:
    """Load the approved requests of a gate that were made before the one of this id, newest first and at most 50."""
    from sqlalchemy import select

    table, pending = _approvals(), make_tables().tables[PENDING]
    joined = table.join(pending, table.c.id == pending.c.approval)
    # Ids begin with the time, so smaller ids are of earlier requests.
    where = (pending.c.gate == gate) & (table.c.status == "approved") & (table.c.id < ident)
    statement = select(table).select_from(joined).where(where).order_by(table.c.id.desc()).limit(_MOST_EARLIER)
    return _fetch_approvals(connection, statement)


def is_planted(connection: Connection, ident: str) -> bool:
    """Return whether somebody made up the content of an audit."""
    from sqlalchemy import select

    columns = get_columns_table()
    where = (columns.c.approval == ident) & (columns.c.kind == AUDIT_PLANTED)
    return connection.execute(select(columns.c.seq).where(where).limit(1)).first() is not None


def find_overdue(connection: Connection, now: datetime, *, shares_clock: bool) -> list[str]:
    """Find the ids of the requests with a pending vote that became final, or with a time that is over; each id once.

    With ``shares_clock``, the times of the ledger's entries count as well as ``now``.
    """
    overdue_by_ledger = find_overdue_by_ledger(connection, now) if shares_clock else []
    ids = [*find_with_final_votes(connection, now), *find_expired(connection, now), *overdue_by_ledger]
    return list(dict.fromkeys(ids))


def find_expired(connection: Connection, now: datetime) -> list[str]:
    """Find the ids of open requests whose time is over."""
    from sqlalchemy import select

    table = _approvals()
    where = table.c.status.in_(OPEN) & (table.c.expires_at <= format_time(now))
    return list(connection.execute(select(table.c.id).where(where).order_by(table.c.id)).scalars())


def find_unforgotten(
    connection: Connection, *, recorded: datetime | None, closed: datetime, most: int | None
) -> list[str]:
    """Find the ids of closed requests that still have their texts and are due to be forgotten, the first to end first.

    A request is due if it was closed at ``closed`` or before. At most ``most`` ids are returned.

    ``recorded`` makes the query faster: only closing entries of the ledger that are dated then or before are read, and
    ``most`` limits these too. Give it only if this program's clock also dates the ledger's entries; otherwise requests
    that are due would be missed. If that clock was set back, an entry can be dated before the ``closed_at`` of its
    request. Such a request counts towards ``most`` before it is due itself, so others may be forgotten later than they
    could be, but none too early.
    """
    from sqlalchemy import select

    table, columns = _approvals(), make_column_tables().tables[ENTRY_COLUMNS]
    # A forgotten request is left with `"message": ""`, and no other has an empty message. A message that quotes this
    # has its quotation marks escaped in the JSON of ``body``, so the pattern cannot match inside a text.
    kept = table.c.status.not_in(OPEN) & table.c.body.not_like('%"message": ""%')
    statement = select(table.c.id).join(columns, columns.c.approval == table.c.id)
    statement = statement.where(columns.c.kind.in_(("approval.closed", AUDIT_CLOSED)), kept).order_by(columns.c.seq)
    if recorded is not None:
        statement = statement.where(columns.c.at <= format_time(recorded)).limit(most)
    ids = list(dict.fromkeys(connection.execute(statement).scalars()))
    approvals: list[Approval] = []
    for start in range(0, len(ids), PAGE):
        approvals += load_several(connection, ids[start : start + PAGE])
    due = [request.id for request in approvals if request.closed_at is not None and request.closed_at <= closed]
    return due[:most]


def find_time(connection: Connection, approval: Approval, now: datetime) -> datetime:
    """Find what time it is for a request: ``now``, or later if the ledger shows that the clock was set back since.

    For a closed request, this is the latest date of the entries after its end. For an open one, this is the latest of
    its deadlines (its expiry, and the times at which its pending votes count) that an entry after it proves to be past.
    """
    if approval.closed_seq is not None:
        latest = find_latest(connection, behind=approval.closed_seq)
        return now if latest is None else max(now, datetime.fromisoformat(latest))
    deadlines = [(approval.seq, approval.expires_at), *[(vote.seq, vote.final_at) for vote in approval.pending_votes]]
    passed = [now]
    for seq, deadline in deadlines:
        if deadline is None or deadline <= now:
            continue
        # A later entry that is dated at the deadline or after it proves that the deadline has passed.
        if has_passed(connection, behind=seq or NO_PLACE, at=format_time(deadline)):
            passed.append(deadline)
    return max(passed)


def find_overdue_by_ledger(connection: Connection, now: datetime) -> list[str]:
    """Find the ids of open requests with a deadline after ``now`` that has passed by the dates of the ledger's entries.

    This happens if the clock was set back. ``find_time`` decides it for each request.
    """
    from sqlalchemy import select

    table, pending = _approvals(), _pending_votes()
    latest, current = find_latest(connection), format_time(now)
    if latest is None or latest <= current:
        return []
    expired = table.select().where(table.c.status.in_(OPEN) & table.c.expires_at.between(current, latest))
    final = select(pending.c.approval).where(pending.c.final_at.between(current, latest))
    voted = table.select().where(table.c.status.in_(OPEN) & table.c.id.in_(final))
    candidates = [*_fetch_approvals(connection, expired), *_fetch_approvals(connection, voted)]
    requests = {request.id: request for request in candidates}
    return sorted(ident for ident, request in requests.items() if find_time(connection, request, now) > now)


def find_ids(connection: Connection, part: str) -> list[str]:
    """Find the ids that equal, begin or end with a text; an equal one comes first.

    At most two are returned: two are enough to know that the text does not name one request.
    """
    from sqlalchemy import select

    table = _approvals()
    begins_or_ends = table.c.id.startswith(part, autoescape=True) | table.c.id.endswith(part, autoescape=True)
    statement = select(table.c.id).where((table.c.id == part) | begins_or_ends)
    # The equal id sorts first (false before true), since the caller takes it even if another id begins with it.
    return list(connection.execute(statement.order_by(table.c.id != part, table.c.id).limit(2)).scalars())


def explain_missing(ident: object) -> UsageError:
    """Make the error for an id that no request has."""
    shown_id = clean(repr(ident)[:80], keep_lines=False)
    return UsageError(f"there is no approval {shown_id}; `adjudge approvals list --status all` shows those there are")


def _approvals() -> Table:
    return make_tables().tables[APPROVALS]


def _to_row(approval: Approval) -> dict[str, Any]:
    """Return the columns of a request, without its id; its votes are left out, since they have tables of their own."""
    body = approval.to_dict()
    del body["votes"], body["pending_votes"]
    return {
        "status": find_listed_status(approval.status, is_audit=bool(approval.audit)),
        "expires_at": None if approval.expires_at is None else format_time(approval.expires_at),
        "overrides": int(approval.overrides),
        # In ASCII: NUL and lone surrogates in somebody's metadata are escapes then, which every store can hold.
        "body": json.dumps(body),
    }


def _fetch_approvals(connection: Connection, statement: Select[Any]) -> list[Approval]:
    """Run a query for rows of requests, and return them as approvals with their votes."""
    rows = connection.execute(statement).all()
    ids = [row.id for row in rows]
    votes = list_votes(connection, make_tables().tables[VOTES], ids)
    pending = list_votes(connection, _pending_votes(), ids)
    return [_read_approval(row, votes.get(row.id, ()), pending.get(row.id, ())) for row in rows]


def list_votes(connection: Connection, table: Table, ids: list[str]) -> dict[str, list[Any]]:
    """Read the rows of a table of votes on these requests: by the request's id, each list in the ledger's order."""
    rows_by_request: dict[str, list[Any]] = {}
    for row in connection.execute(table.select().where(table.c.approval.in_(ids)).order_by(table.c.seq)):
        rows_by_request.setdefault(row.approval, []).append(row)
    return rows_by_request


def _pending_votes() -> Table:
    return make_tables().tables[PENDING_VOTES]


def read_votes(votes: Iterable[Any], names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Read rows of votes as plain data: the columns ``names``, and ``approved`` as a boolean."""
    return [{name: getattr(vote, name) for name in names} | {"approved": bool(vote.approved)} for vote in votes]


def _read_approval(row: Any, votes: Iterable[Any], pending: Iterable[Any]) -> Approval:
    """Read an approval from its row and the rows of its votes.

    Raises ``LedgerError`` for rows that cannot be read or contradict each other.
    """
    try:
        body = json.loads(row.body)
        names = ("by", "seq", "at", "reason")
        votes_read = {"votes": read_votes(votes, names), "pending_votes": read_votes(pending, (*names, "final_at"))}
        approval = Approval.from_dict({**body, **votes_read})
        status = find_listed_status(approval.status, is_audit=bool(approval.audit))
        if (approval.id, status) != (row.id, row.status):
            raise UsageError("its columns say otherwise")
    except (AttributeError, RecursionError, TypeError, ValueError) as error:
        raise LedgerError(
            f"approval {row.id} cannot be read from its table ({type(error).__name__}); it was changed by hand"
        ) from None
    return approval
