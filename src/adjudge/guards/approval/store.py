"""The tables of approvals, beside the ledger whose entries tell of every change to them.

Whose vote counts, and what votes add up to, is decided in ``votes.py``, and whether a request has expired in
``approval.py`` (``is_due``); this writes it, with the ledger's entry of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from adjudge.errors import LedgerError, RefusedBecause, UsageError
from adjudge.formats.plain import to_plain
from adjudge.formats.text import clean
from adjudge.guards.approval.approval import NO_PLACE, Approval, Vote, expire, is_due
from adjudge.guards.approval.completeness import digest_recorded, digest_shown, find_gaps
from adjudge.guards.approval.listed import (
    CLOSING_SCHEMA,
    OPEN,
    REQUEST_SCHEMA,
    ListedRequest,
    RequestFilters,
    derive_request,
    find_listed_status,
    insert_columns,
)
from adjudge.guards.approval.pending_decisions import (
    PendingRow,
    forget_pending,
    insert_pending,
    load_judged_with,
    load_pending,
    mark_used,
    was_used,
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
    find_columns,
    find_run,
    is_part,
    make_column_tables,
    name_counted,
    name_owned,
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
    """An entry to be: its kind, what it says, and its texts that can quote what was judged."""

    kind: str
    payload: dict[str, Any]
    quoting: dict[str, str] = field(default_factory=dict)


def make_requested_entry(approval: Approval, result: JudgeResult, pending: PendingRow | None) -> ApprovalEntry:
    """Make the entry for a new request: who is asked, about which result, and the digest of the pending decision."""
    names = ("approvers", "required", "created_at", "expires_at", "on_expiry", "metadata")
    # The decision's own entry has the result of what is audited; here it would only be shown before the answer.
    about = {"audit": dict(approval.audit)} if approval.audit else {"result": result.to_dict()}
    payload = {"schema": REQUEST_SCHEMA, **_describe_request(approval), **about}
    payload |= {name: to_plain(getattr(approval, name)) for name in names}
    payload |= {"request": approval.request, "has_content": approval.content is not None}
    payload |= {"pending": pending.digest} if pending is not None else {}
    payload |= {"shown": digest_recorded(approval)}
    kind = AUDIT_REQUESTED if approval.audit else "approval.requested"
    return ApprovalEntry(kind=kind, payload=payload, quoting={"message": approval.message})


def make_voted_entry(approval: Approval, vote: Vote, refused: str | None) -> ApprovalEntry:
    """Make the entry for a vote, and whether it counts; the reason that a person gives is kept as it is."""
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
    """Make the entry for a vote that can still be taken back. It decides nothing: what counts is recorded then."""
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
    """Make the entry for the answer of the judge that was asked before the people; it is about that result."""
    accepted = approval.decided_by == "judge"
    payload = {"schema": VOTE_SCHEMA, **_describe_request(approval), "result": judged.to_dict(), "by": judged.judge}
    payload |= {"voter": "judge", "approved": judged.passed, "accepted": accepted, "reason": approval.first_said}
    return ApprovalEntry(kind="approval.voted", payload=payload)


def make_closed_entry(approval: Approval) -> ApprovalEntry:
    """Make the entry for the end of a request: how, and who ended it."""
    names = ("status", "decided_by", "closed_at", "closed_by", "closed_because")
    payload = {"schema": CLOSING_SCHEMA, **_describe_request(approval)}
    payload |= {name: to_plain(getattr(approval, name)) for name in names}
    if approval.audit:
        # Without any text, so that it can stay when what it was about is erased: an alarm must not go with that.
        del payload["closed_because"]
        about = {"audit": dict(approval.audit), "requested": approval.seq}
        return ApprovalEntry(kind=AUDIT_CLOSED, payload=payload | about)
    run = None if is_part(approval.metadata) else find_run(approval.metadata)
    payload |= {} if run is None else {"run": run}  # so that a run whose calls people denied can be found
    return ApprovalEntry(kind="approval.closed", payload=payload | _write_answer(approval.answer))


def make_override_entry(approval: Approval) -> ApprovalEntry:
    """Make the entry for an override: people decided otherwise than the judge."""
    payload = {"schema": OVERRIDE_SCHEMA, **_describe_request(approval), "label": approval.status == "approved"}
    payload |= {"by": list(approval.closed_by), "reason": approval.closed_because, "closed_seq": approval.closed_seq}
    return ApprovalEntry(kind="override", payload=payload)


def _write_channel(vote: Vote) -> dict[str, str]:
    return {"channel": vote.channel} if vote.channel else {}


def _write_answer(answer: str) -> dict[str, str]:
    return {"answer": answer} if answer else {}


def _describe_request(approval: Approval) -> dict[str, Any]:
    """List what every entry says of its request; ``result`` is what ``query`` finds outcome and judge in."""
    result = {"id": approval.result_id, "outcome": approval.outcome, "judge": approval.judge}
    result |= {"score": approval.score, "undecided_because": approval.undecided_because}
    about: dict[str, Any] = {"approval": approval.id, "result": result}
    more = {"gate": approval.gate, "execution": approval.execution}
    return about | {name: text for name, text in more.items() if text is not None}


def list_places(approval: Approval) -> list[int]:
    """List the entries that must be read to prove how a request ended."""
    return [seq or NO_PLACE for seq in (approval.seq, *[vote.seq for vote in approval.votes], approval.closed_seq)]


def find_unconfirmed(approval: Approval, entries: Mapping[int, Entry]) -> str | None:
    """Say what the ledger does not confirm of a request in the table, or return ``None`` if it confirms all.

    The table can be written by whoever has the database, and nothing protects it; so whom it took, how many of them,
    what each said and how it ended count only as the ledger holds them.
    """
    terms = ("approvers", "required", "on_expiry", "expires_at", "created_at", "gate", "request")
    request = entries.get(approval.seq or NO_PLACE)
    about = (request.payload or {}).get("result") if request is not None else None
    is_same = isinstance(about, Mapping) and about.get("id") == approval.result_id
    if not is_same or not _confirms_fields(entries, approval.seq, "approval.requested", approval, terms):
        return "who was asked, and how many have to approve"
    for vote in approval.votes:
        expected = {"by": vote.by, "approved": vote.approved, "accepted": True, "voter": "human"}
        if not _confirms(entries, vote.seq, "approval.voted", approval, expected):
            return f"what {vote.by} decided"
    ending = ("status", "decided_by", "closed_by", *(("answer",) if approval.answer else ()))
    is_confirmed = _confirms_fields(entries, approval.closed_seq, "approval.closed", approval, ending)
    return None if is_confirmed else "how it ended"


def _confirms_fields(
    entries: Mapping[int, Entry], seq: int | None, kind: str, approval: Approval, names: tuple[str, ...]
) -> bool:
    expected = {name: to_plain(getattr(approval, name)) for name in names}
    return _confirms(entries, seq, kind, approval, expected)


def _confirms(
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
    """The reason why it does not count."""
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
    """One transaction under way. The clock is read inside it, after everybody else who writes was waited for."""

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
        """Write a new request, the decision that waits for it, and what the judge said that was asked first.

        ``planted`` says by whom and why the content of an audit was made up; empty for any other. Raises
        ``UsageError``, and writes nothing, where ``most_open`` requests of its run or its gate are open.
        """
        check_room(self.transaction.connection, approval, most_open, self.clock())
        if pending is not None:
            insert_pending(self.transaction.connection, approval, pending)
        if planted:
            # Before the request, and nowhere in it: whoever answers must not be told.
            payload = {"schema": PLANTED_SCHEMA, "approval": approval.id, "gate": approval.gate, **planted}
            self._record(approval, ApprovalEntry(kind=AUDIT_PLANTED, payload=payload))
        draft = self._draft(approval, make_requested_entry(approval, result, pending))
        approval = replace(approval, seq=self.transaction.append(draft))
        if approval.first is not None:
            self._record(approval, make_judged_entry(approval, approval.first))
        if approval.status != "open":
            approval = self._record_end(approval)
        insert(self.transaction.connection, approval, derive_request(draft.members))
        return approval

    def vote(self, given_vote: GivenVote) -> VoteOutcome:
        """Count a decision, keep it until it can no longer be taken back, or refuse it; each is recorded."""
        before = load(self.transaction.connection, given_vote.approval)
        now = self._find_time(before)
        approval = self._advance(before, now)
        ended = approval.status != before.status
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
            return VoteOutcome(approval=approval, refused=refused, ended=ended)
        final_at = find_final_at(approval, approved=given_vote.approved, now=now, undo_seconds=given_vote.undo_seconds)
        if final_at is not None:
            return VoteOutcome(
                approval=self._hold(approval, replace(vote, final_at=final_at)), refused=None, ended=False
            )
        approval = self._record_vote(approval, vote)
        return VoteOutcome(approval=approval, refused=None, ended=approval.status != "open")

    def withdraw(self, ident: str, by: str) -> VoteOutcome:
        """Take back a vote that does not count yet; what counts already is ``final``."""
        before = load(self.transaction.connection, ident)
        now = self._find_time(before)
        approval = self._advance(before, now)
        ended = approval.status != before.status
        vote = next((pending_vote for pending_vote in approval.pending_votes if pending_vote.by == by), None)
        # One whose time is over can still be pending, while a denial is: it is final all the same.
        if vote is None or vote.final_at is None or now >= vote.final_at:
            return VoteOutcome(approval=approval, refused="final", ended=ended)
        self._record(approval, make_withdrawn_entry(approval, vote, now))
        delete_pending_vote(self.transaction.connection, ident, by)
        return VoteOutcome(approval=drop_pending(approval, by), refused=None, ended=ended)

    def comment(self, ident: str, by: str, text: str) -> RefusedBecause | None:
        """Record what an approver says without deciding, or why they may not."""
        approval = load(self.transaction.connection, ident)
        if by not in approval.approvers:
            return "unauthorised"
        self._record(approval, make_comment_entry(approval, by, text, self.clock()))
        return None

    def close_due(self, ident: str) -> Approval | None:
        """Count the votes that are final by now, and close a request whose time is over.

        ``None`` where that did not close it, or somebody else did so meanwhile.
        """
        before = load(self.transaction.connection, ident)
        after = self._advance(before, self._find_time(before))
        return after if after.status != before.status else None

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
        """Write what is left of a closed request without its texts."""
        approval = load(self.transaction.connection, ident).forget()
        rewrite(self.transaction.connection, approval)
        forget_pending(self.transaction.connection, ident)
        return approval

    def use(self, decision: Decision) -> int | None:
        """Record a decision that an approval allowed, and mark the approval as used; the entry's place.

        ``None`` when the approval can be used once and was used. Other writers wait for this transaction, so of any
        number of simultaneous attempts exactly one gets a place.

        Raises ``UsageError`` for an audit, and for a request that is not approved.
        """
        connection, ident = self.transaction.connection, decision.approval_id or ""
        approval, pending_row = load(connection, ident), load_pending(connection, ident)
        if approval.audit:
            raise UsageError(f"approval {ident} is an audit, whose answer opens nothing")
        if approval.status != "approved":
            raise UsageError(f"approval {ident} is {approval.status}, so it cannot be used; wait until it is approved")
        # Whoever writes the database can clear the mark of the table, so the ledger is asked as well.
        is_unused = pending_row is not None and pending_row.used_at is None
        if is_single_use(decision.basis) and (not is_unused or was_used(connection, approval)):
            return None
        payload = {**decision.to_dict(), "used": True}
        seq = self.transaction.append(self.ledger.make_entry(payload, kind="decision", subject=approval.subject))
        if is_unused:
            mark_used(connection, ident, self.clock(), seq)
        return seq

    def _find_time(self, approval: Approval) -> datetime:
        now = self.clock()
        return find_time(self.transaction.connection, approval, now) if self.shares_clock else now

    def _advance(self, approval: Approval, now: datetime) -> Approval:
        """Return the request as it is by now: with the votes that became final, and closed if its time is over."""
        while (vote := find_final_vote(approval, now)) is not None:
            answer = check_pending_vote(self.transaction.connection, approval, vote)
            delete_pending_vote(self.transaction.connection, approval.id, vote.by)
            approval = self._record_vote(drop_pending(approval, vote.by), replace(vote, final_at=None, answer=answer))
        # In this order: a vote counts at the latest when the request expires.
        return self._end_request(expire(approval, now)) if is_due(approval, now) else approval

    def _record_vote(self, approval: Approval, vote: Vote) -> Approval:
        """Record a vote and count it; the request ends if that decides it."""
        vote = replace(vote, seq=self._record(approval, make_voted_entry(approval, vote, None)))
        approval = count_vote(approval, vote)
        if approval.status != "open":
            return self._end_request(approval, vote)
        update(self.transaction.connection, approval, vote)
        return approval

    def _hold(self, approval: Approval, vote: Vote) -> Approval:
        vote = replace(vote, seq=self._record(approval, make_pending_vote_entry(approval, vote)))
        insert_pending_vote(self.transaction.connection, approval.id, vote)
        return replace(approval, pending_votes=(*approval.pending_votes, vote))

    def _find_gap(self, approval: Approval, given_vote: GivenVote) -> RefusedBecause | None:
        """Return why what was shown is not enough to approve it; denying always works, and so opens nothing.

        An audit's answer opens nothing either way, and says something of what was shown alone.
        """
        if not given_vote.approved and not approval.audit:
            return None
        recorded = read_shown(self.transaction.connection, approval)
        # The tables can be written by others: what people read there must be what the ledger says they were asked.
        if recorded is not None and recorded != digest_recorded(approval):
            return "changed"
        if given_vote.seen is not None and given_vote.seen != digest_shown(approval):
            return "changed"
        if not given_vote.require_complete:
            return None
        judged_with = load_judged_with(self.transaction.connection, approval.id)
        return "incomplete" if find_gaps(approval, recorded, judged_with) else None

    def _end_request(self, approval: Approval, vote: Vote | None = None) -> Approval:
        """Record the end of a request, and that the votes which were pending never counted."""
        # What was pending when somebody else closed it never counts, and the ledger says so.
        for late in approval.pending_votes:
            self._record(approval, make_voted_entry(approval, late, "closed"))
            delete_pending_vote(self.transaction.connection, approval.id, late.by)
        approval = self._record_end(replace(approval, pending_votes=()))
        update(self.transaction.connection, approval, vote)
        return approval

    def _record_end(self, approval: Approval) -> Approval:
        approval = replace(approval, closed_seq=self._record(approval, make_closed_entry(approval)))
        if not approval.overrides:
            return approval
        return replace(approval, override_seq=self._record(approval, make_override_entry(approval)))

    def _record(self, approval: Approval, entry: ApprovalEntry) -> int:
        return self.transaction.append(self._draft(approval, entry))

    def _draft(self, approval: Approval, entry: ApprovalEntry) -> Draft:
        return self.ledger.make_entry(entry.payload, kind=entry.kind, subject=approval.subject, quoting=entry.quoting)


_RECENT = 50
"""Earlier requests of a gate that are looked through for one that is alike."""

PAGE = 200
"""Requests that are fetched at once."""

READ_AT_ONCE = 20
"""Of requests that are not kept, those that are in memory at once: each may have megabytes."""


def insert(connection: Connection, approval: Approval, listed: ListedRequest) -> None:
    """Write a new request, and what it is found by."""
    connection.execute(_approvals().insert().values(id=approval.id, **_to_row(approval)))
    insert_columns(connection, approval.id, listed)


def update(connection: Connection, approval: Approval, vote: Vote | None = None) -> None:
    """Write what became of an open request, and the vote that made it so.

    Raises ``LedgerError`` where it is open no more, which adjudge cannot have done.
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
    """Keep a vote that can still be taken back."""
    values: dict[str, Any] = {"approval": ident, "by": vote.by, "seq": vote.seq, "approved": int(vote.approved)}
    values |= {"at": format_time(vote.at), "final_at": format_time(vote.final_at or vote.at), "reason": vote.reason}
    connection.execute(_pending_votes().insert().values(**values))


def delete_pending_vote(connection: Connection, ident: str, by: str) -> None:
    """Drop a vote that was taken back, or counts by now; raises ``LedgerError``, which rolls back, if it is gone."""
    table = _pending_votes()
    if connection.execute(table.delete().where((table.c.approval == ident) & (table.c.by == by))).rowcount != 1:
        raise LedgerError(f"a pending vote on {ident} was taken by something that is not adjudge; nothing was changed")


def check_pending_vote(connection: Connection, approval: Approval, vote: Vote) -> str:
    """Return the answer for the agent that the ledger has with this vote, which may be empty.

    Raises ``LedgerError`` unless the ledger says that this vote was given, and not that it was taken back.

    Counting a vote records that it was given. Without this check a row that somebody wrote into the table by hand
    would get an entry in the ledger, and open the gate.
    """
    table = make_ledger_table()
    kinds = ("approval.vote_pending", "approval.vote_withdrawn")
    where = (table.c.subject == approval.subject) & table.c.kind.in_(kinds) & (table.c.seq >= (vote.seq or NO_PLACE))
    is_given, answer = False, ""
    for row in connection.execute(table.select().where(where).order_by(table.c.seq)):
        payload = None if row.payload is None else json.loads(row.payload)
        if row.kind == "approval.vote_pending" and row.seq == vote.seq:
            is_given = payload is not None and all(
                payload.get(name) == value for name, value in _describe(approval, vote)
            )
            answer = (payload or {}).get("answer", "")
        elif row.kind == "approval.vote_withdrawn":
            # One that was erased may have been the withdrawal of this vote.
            is_given = is_given and payload is not None and payload.get("vote") != vote.seq
    if not is_given:
        raise LedgerError(
            f"a pending vote on approval {approval.id} is not the one in the ledger: one of them was changed by hand "
            "or erased, so it does not count; put the content through the gate again"
        )
    return answer if isinstance(answer, str) else ""


def _describe(approval: Approval, vote: Vote) -> list[tuple[str, Any]]:
    times = [("at", to_plain(vote.at)), ("final_at", to_plain(vote.final_at))]
    return [("approval", approval.id), ("by", vote.by), ("approved", vote.approved), ("reason", vote.reason), *times]


def find_final(connection: Connection, now: datetime) -> list[str]:
    """Find the ids of requests with votes that can no longer be taken back."""
    from sqlalchemy import select

    table = _pending_votes()
    statement = select(table.c.approval).where(table.c.final_at <= format_time(now)).distinct()
    return list(connection.execute(statement.order_by(table.c.approval)).scalars())


def read_shown(connection: Connection, approval: Approval) -> str | None:
    """Read the digest of what people are shown from the ledger's entry of the request; ``None`` where it has none.

    Empty, and so no digest of anything, where the request has other metadata than its entry.
    """
    from sqlalchemy import select

    table = make_ledger_table()
    kind = AUDIT_REQUESTED if approval.audit else "approval.requested"
    where = (table.c.seq == (approval.seq or NO_PLACE)) & (table.c.kind == kind)
    payload = connection.execute(select(table.c.payload).where(where)).scalar_one_or_none()
    members = json.loads(payload) if payload is not None else {}
    # Title, tool and declared effects are read from them, and the digest does not cover them. Compared as an entry has
    # them: some numbers and half characters are texts there.
    metadata = json.loads(encode_payload({"metadata": to_plain(approval.metadata)}))["metadata"]
    if payload is not None and members.get("metadata") != metadata:
        return ""
    digest = members.get("shown") if members.get("approval") == approval.id else None
    return digest if isinstance(digest, str) else None


def rewrite(connection: Connection, approval: Approval) -> None:
    """Write what is left of a closed request once its texts are forgotten."""
    table = _approvals()
    connection.execute(table.update().where(table.c.id == approval.id).values(**_to_row(approval)))


def erase_request(connection: Connection, approval: Approval) -> None:
    """Write what is left of a closed request without any text: who was asked and decided, when, and how it ended."""
    tables, ident = make_tables().tables, approval.id
    rewrite(connection, approval.erase())
    forget_pending(connection, ident)
    votes, pending, columns = tables[VOTES], _pending_votes(), tables[REQUEST_COLUMNS]
    connection.execute(votes.update().where(votes.c.approval == ident).values(reason=""))
    connection.execute(pending.delete().where(pending.c.approval == ident))
    nothing = {"title": None, "agent": None, "customer": None}
    connection.execute(columns.update().where(columns.c.approval == ident).values(**nothing))


def load(connection: Connection, ident: str) -> Approval:
    """Load the request of this id; raise ``UsageError`` when there is none."""
    # What no store can hold is no id, and some raise when they are asked for it.
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
    """Load the next requests behind ``after``, in the order in which they were made.

    ``statuses``, ``overrides`` and ``approver`` each limit them if given.
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
    """Select the ids of the requests that ask somebody."""
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
    """Find the ids of the requests with these statuses that match, the oldest first and at most so many; and how many.

    ``approver`` and ``gates`` each limit them where they are not ``None``.
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
    """Load the ledger's entries of the votes of somebody ``since`` a time, and of all that people took back."""
    from sqlalchemy import select

    table, columns, votes = make_ledger_table(), find_columns(), make_tables().tables[VOTES]
    cast = select(votes.c.seq).where(votes.c.by == by)
    withdrawn = select(columns.c.seq).where(columns.c.kind == "approval.vote_withdrawn")
    if since is not None:
        cast = cast.where(votes.c.at >= format_time(since))
        withdrawn = withdrawn.where(columns.c.at >= format_time(since))
    statement = table.select().where(table.c.seq.in_(cast.union(withdrawn))).order_by(table.c.seq)
    rows: list[Any] = [list(row) for row in connection.execute(statement)]
    for row in rows:
        # PostgreSQL's is a view of memory.
        row[PAYLOAD] = None if row[PAYLOAD] is None else bytes(row[PAYLOAD])
    return rows


def check_room(connection: Connection, approval: Approval, most_open: Mapping[str, int], now: datetime) -> None:
    """Raise ``UsageError`` if as many requests of an approval's run, its key or its gate wait for people already."""
    from sqlalchemy import func, select

    run, table, columns = find_run(approval.metadata), _approvals(), make_tables().tables[REQUEST_COLUMNS]
    owner = None if run is None else split_run(run).owner
    ids = {
        "run": None if run is None else _select_named(name_counted(run, approval.metadata)),
        "key": None if owner is None else _select_named(name_owned(owner)),
        "gate": select(columns.c.approval).where(columns.c.gate == approval.gate),
    }
    is_open = (table.c.status == "open") & (table.c.expires_at.is_(None) | (table.c.expires_at > format_time(now)))
    for name, most in most_open.items():
        requests = ids.get(name)
        if requests is None:
            continue
        statement = select(func.count()).select_from(table).where(is_open, table.c.id.in_(requests))
        if connection.execute(statement).scalar_one() >= most:
            raise UsageError(
                f"{most} requests of this {name} wait for people, which is the most; decide some of them first"
            )


def _select_named(name: str) -> Select[Any]:
    """Select the ids of the requests that the ledger has under a name of an agent's run, or of its key."""
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
    """Load the latest approved requests of a gate that were made before one, newest first; a page of them at most."""
    from sqlalchemy import select

    table, pending = _approvals(), make_tables().tables[PENDING]
    joined = table.join(pending, table.c.id == pending.c.approval)
    where = (pending.c.gate == gate) & (table.c.status == "approved") & (table.c.id < ident)
    statement = select(table).select_from(joined).where(where).order_by(table.c.id.desc()).limit(_RECENT)
    return _fetch_approvals(connection, statement)


def is_planted(connection: Connection, ident: str) -> bool:
    """Return whether somebody made up the content of an audit."""
    from sqlalchemy import select

    columns = find_columns()
    where = (columns.c.approval == ident) & (columns.c.kind == AUDIT_PLANTED)
    return connection.execute(select(columns.c.seq).where(where).limit(1)).first() is not None


def find_over(connection: Connection, now: datetime, *, shares_clock: bool) -> list[str]:
    """Find the requests in which a moment has passed: a vote became final, or their time is over."""
    passed = find_passed(connection, now) if shares_clock else []
    return list(dict.fromkeys([*find_final(connection, now), *find_due(connection, now), *passed]))


def find_due(connection: Connection, now: datetime) -> list[str]:
    """Find the ids of open requests whose time is over."""
    from sqlalchemy import select

    table = _approvals()
    where = table.c.status.in_(OPEN) & (table.c.expires_at <= format_time(now))
    return list(connection.execute(select(table.c.id).where(where).order_by(table.c.id)).scalars())


def find_unforgotten(
    connection: Connection, *, recorded: datetime | None, closed: datetime, most: int | None
) -> list[str]:
    """Find the ids of closed requests that still have their texts and are due to be forgotten, the first to end first.

    Due is what was closed at ``closed`` or before, of which at most ``most`` are returned. With ``recorded``, only
    closing entries of the ledger that are dated then or before are read, and ``most`` limits these too; give it only
    where this program's clock dates the ledger, or requests that are due would be hidden. After that clock was set
    back, an entry can be dated before the ``closed_at`` of its request. Such a request takes a place of ``most`` until
    it is due itself, so others may be forgotten later for it, and none too early.
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
    approvals = [
        request for start in range(0, len(ids), PAGE) for request in load_several(connection, ids[start : start + PAGE])
    ]
    return [request.id for request in approvals if request.closed_at is not None and request.closed_at <= closed][:most]


def find_time(connection: Connection, approval: Approval, now: datetime) -> datetime:
    """Find what time it is for a request: later than ``now`` where the ledger shows that the clock was set back since.

    Then an entry behind the request, the vote or the end of the request has a later date than what was to come.
    """
    if approval.closed_seq is not None:
        latest = find_latest(connection, behind=approval.closed_seq)
        return now if latest is None else max(now, datetime.fromisoformat(latest))
    moments = [(approval.seq, approval.expires_at), *[(vote.seq, vote.final_at) for vote in approval.pending_votes]]
    later = [(seq, moment) for seq, moment in moments if moment is not None and moment > now]
    passed = [at for seq, at in later if has_passed(connection, behind=seq or NO_PLACE, at=format_time(at))]
    return max([now, *passed])


def find_passed(connection: Connection, now: datetime) -> list[str]:
    """Find open requests of which the ledger shows that a moment after ``now`` has passed; see ``find_time``."""
    from sqlalchemy import select

    table, pending = _approvals(), _pending_votes()
    latest, current = find_latest(connection), format_time(now)
    if latest is None or latest <= current:
        return []
    expired = table.select().where(table.c.status.in_(OPEN) & table.c.expires_at.between(current, latest))
    final = select(pending.c.approval).where(pending.c.final_at.between(current, latest))
    voted = table.select().where(table.c.status.in_(OPEN) & table.c.id.in_(final))
    requests = {request.id: request for query in (expired, voted) for request in _fetch_approvals(connection, query)}
    return sorted(ident for ident, request in requests.items() if find_time(connection, request, now) > now)


def find_ids(connection: Connection, part: str) -> list[str]:
    """Find the ids that equal, begin or end with a text, the equal one first.

    At most two, for what is not unique is of no use.
    """
    from sqlalchemy import select

    table = _approvals()
    same = table.c.id.startswith(part, autoescape=True) | table.c.id.endswith(part, autoescape=True)
    statement = select(table.c.id).where((table.c.id == part) | same)
    # The whole id comes first, and stands for itself: it may be how another one begins.
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
        # In ASCII: NUL and halves of characters in somebody's metadata are escapes then, which every store can hold.
        "body": json.dumps(body),
    }


def _fetch_approvals(connection: Connection, statement: Select[Any]) -> list[Approval]:
    rows = connection.execute(statement).all()
    ids = [row.id for row in rows]
    votes = list_votes(connection, make_tables().tables[VOTES], ids)
    pending = list_votes(connection, _pending_votes(), ids)
    return [_read_approval(row, votes.get(row.id, ()), pending.get(row.id, ())) for row in rows]


def list_votes(connection: Connection, table: Table, ids: list[str]) -> dict[str, list[Any]]:
    """List the rows of a table of votes by their request, in order; of these requests alone."""
    votes_of: dict[str, list[Any]] = {}
    for vote in connection.execute(table.select().where(table.c.approval.in_(ids)).order_by(table.c.seq)):
        votes_of.setdefault(vote.approval, []).append(vote)
    return votes_of


def _pending_votes() -> Table:
    return make_tables().tables[PENDING_VOTES]


def read_votes(votes: Iterable[Any], names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Read rows of votes as plain data, with these columns."""
    return [{name: getattr(vote, name) for name in names} | {"approved": bool(vote.approved)} for vote in votes]


def _read_approval(row: Any, votes: Iterable[Any], pending: Iterable[Any]) -> Approval:
    """Read an approval from its rows. Raises ``LedgerError`` for one that was changed by hand."""
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
