"""The tables of approvals, beside the ledger whose entries tell of every change to them."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from adjudge.errors import LedgerError, UsageError
from adjudge.formats.plain import to_plain
from adjudge.formats.text import clean
from adjudge.formats.typed import read_typed_json
from adjudge.guards.approval.approval import (
    Approval,
    Refusal,
    Vote,
    count,
    drop_pending,
    expire,
    find_final_at,
    find_final_vote,
    is_due,
    refuse,
)
from adjudge.guards.approval.completeness import digest_shown, find_gaps
from adjudge.guards.approval.pending import (
    PENDING,
    PendingRow,
    forget_pending,
    insert_pending,
    is_once,
    load_pending,
    make_pending_tables,
    mark_used,
    was_used,
)
from adjudge.guards.decision import Decision
from adjudge.ledger.entry import Entry, format_time
from adjudge.ledger.ledger import Ledger
from adjudge.ledger.payload import can_store
from adjudge.ledger.store import Transaction, find_latest, has_passed
from adjudge.ledger.store import make_table as make_ledger_table
from adjudge.result import JudgeResult

if TYPE_CHECKING:
    from sqlalchemy import Connection, MetaData, Select, Table


REQUEST_SCHEMA = "adjudge/approval-request/1"

VOTE_SCHEMA = "adjudge/vote/1"

CLOSING_SCHEMA = "adjudge/approval-closing/1"

PENDING_VOTE_SCHEMA = "adjudge/pending-vote/1"

WITHDRAWN_SCHEMA = "adjudge/vote-withdrawal/1"

COMMENT_SCHEMA = "adjudge/approval-comment/1"

OVERRIDE_SCHEMA = "adjudge/override/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalEntry:
    """An entry to be: its kind, what it says, and its texts that can quote what was judged."""

    kind: str
    payload: dict[str, Any]
    quoting: dict[str, str] = field(default_factory=dict)


def make_requested_entry(approval: Approval, result: JudgeResult, pending: PendingRow | None) -> ApprovalEntry:
    """The entry for a new request: who is asked, about which result, and the digest of the pending decision."""
    names = ("approvers", "required", "created_at", "expires_at", "on_expiry", "metadata")
    payload = {"schema": REQUEST_SCHEMA, **_about(approval), "result": result.to_dict()}
    payload |= {name: to_plain(getattr(approval, name)) for name in names}
    payload |= {"request": approval.request, "has_content": approval.content is not None}
    payload |= {"pending": pending.digest} if pending is not None else {}
    payload |= {"shown": digest_shown(approval)}
    return ApprovalEntry(kind="approval.requested", payload=payload, quoting={"message": approval.message})


def make_voted_entry(approval: Approval, vote: Vote, refused: str | None) -> ApprovalEntry:
    """That somebody decided, and whether it counts; the reason a person gives is kept as it is."""
    payload = {"schema": VOTE_SCHEMA, **_about(approval), "by": vote.by, "approved": vote.approved}
    payload |= {
        "at": to_plain(vote.at),
        "reason": vote.reason,
        "voter": "human",
        "requested_at": to_plain(approval.created_at),
        "accepted": refused is None,
        "refused_because": refused,
    }
    return ApprovalEntry(kind="approval.voted", payload=payload)


def make_pending_vote_entry(approval: Approval, vote: Vote) -> ApprovalEntry:
    """That somebody decided, and until when they can take it back. It decides nothing: what counts is recorded then."""
    payload = {"schema": PENDING_VOTE_SCHEMA, **_about(approval), "by": vote.by, "approved": vote.approved}
    payload |= {"at": to_plain(vote.at), "final_at": to_plain(vote.final_at), "reason": vote.reason, "voter": "human"}
    return ApprovalEntry(kind="approval.vote_pending", payload=payload)


def make_withdrawn_entry(approval: Approval, vote: Vote, now: datetime) -> ApprovalEntry:
    """That somebody took their vote back before it counted."""
    payload = {"schema": WITHDRAWN_SCHEMA, **_about(approval), "by": vote.by, "approved": vote.approved}
    payload |= {"at": to_plain(now), "vote": vote.seq}
    return ApprovalEntry(kind="approval.vote_withdrawn", payload=payload)


def make_comment_entry(approval: Approval, by: str, text: str, now: datetime) -> ApprovalEntry:
    """What an approver said without deciding."""
    payload = {"schema": COMMENT_SCHEMA, **_about(approval), "by": by, "at": to_plain(now), "text": text}
    return ApprovalEntry(kind="approval.commented", payload=payload)


def make_judged_entry(approval: Approval, judged: JudgeResult) -> ApprovalEntry:
    """What the judge said that was asked before the people; the entry is about that judge's result."""
    accepted = approval.decided_by == "judge"
    payload = {"schema": VOTE_SCHEMA, **_about(approval), "result": judged.to_dict(), "by": judged.judge}
    payload |= {"voter": "judge", "approved": judged.passed, "accepted": accepted, "reason": approval.first_said}
    return ApprovalEntry(kind="approval.voted", payload=payload)


def make_closed_entry(approval: Approval) -> ApprovalEntry:
    """That it has ended, how, and who ended it."""
    names = ("status", "decided_by", "closed_at", "closed_by", "closed_because")
    payload = {"schema": CLOSING_SCHEMA, **_about(approval)}
    payload |= {name: to_plain(getattr(approval, name)) for name in names}
    return ApprovalEntry(kind="approval.closed", payload=payload)


def make_override_entry(approval: Approval) -> ApprovalEntry:
    """That people decided otherwise than the judge."""
    payload = {"schema": OVERRIDE_SCHEMA, **_about(approval), "label": approval.status == "approved"}
    payload |= {"by": list(approval.closed_by), "reason": approval.closed_because, "closed_seq": approval.closed_seq}
    return ApprovalEntry(kind="override", payload=payload)


def _about(approval: Approval) -> dict[str, Any]:
    """What every entry says of its request; ``result`` is what ``query`` finds outcome and judge in."""
    result = {"id": approval.result_id, "outcome": approval.outcome, "judge": approval.judge}
    result |= {"score": approval.score, "undecided_because": approval.undecided_because}
    about: dict[str, Any] = {"approval": approval.id, "result": result}
    more = {"gate": approval.gate, "execution": approval.execution}
    return about | {name: text for name, text in more.items() if text is not None}


def list_places(approval: Approval) -> list[int]:
    """Where the ledger must be read to prove how a request ended."""
    return [seq or 0 for seq in (approval.seq, *[vote.seq for vote in approval.votes], approval.closed_seq)]


def find_doubt(approval: Approval, entries: Mapping[int, Entry]) -> str | None:
    """What the ledger does not say as the table does, or ``None`` where they agree.

    The table can be written by whoever has the database, and nothing protects it; so whom it took, how many of them,
    what each said and how it ended count only as the ledger holds them.
    """
    names = ("approvers", "required", "on_expiry", "expires_at", "created_at", "gate", "request")
    asked = entries.get(approval.seq or 0)
    about = (asked.payload or {}).get("result") if asked is not None else None
    same = isinstance(about, Mapping) and about.get("id") == approval.result_id
    if not same or not _says(entries, approval.seq, "approval.requested", approval, names):
        return "who was asked, and how many have to approve"
    for vote in approval.votes:
        wanted = {"by": vote.by, "approved": vote.approved, "accepted": True, "voter": "human"}
        if not _holds(entries, vote.seq, "approval.voted", approval, wanted):
            return f"what {vote.by} decided"
    names = ("status", "decided_by", "closed_by")
    return None if _says(entries, approval.closed_seq, "approval.closed", approval, names) else "how it ended"


def _says(entries: Mapping[int, Entry], seq: int | None, kind: str, approval: Approval, names: tuple[str, ...]) -> bool:
    wanted = {name: to_plain(getattr(approval, name)) for name in names}
    return _holds(entries, seq, kind, approval, wanted)


def _holds(
    entries: Mapping[int, Entry], seq: int | None, kind: str, approval: Approval, wanted: Mapping[str, Any]
) -> bool:
    entry = entries.get(seq or 0)
    if entry is None or entry.payload is None or (entry.kind, entry.subject) != (kind, approval.subject):
        return False
    said = entry.payload
    return said.get("approval") == approval.id and all(said.get(name) == value for name, value in wanted.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteOutcome:
    """What came of a decision."""

    approval: Approval
    refused: Refusal | None
    """Why it does not count."""
    ended: bool
    """Whether the request was closed by it, or found to have expired."""


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


@dataclass(frozen=True, slots=True)
class ApprovalTransaction:
    """One transaction under way. The clock is read inside it, after everybody else who writes was waited for."""

    ledger: Ledger
    clock: Callable[[], datetime]
    transaction: Transaction
    shares_clock: bool
    """Whether ``clock`` is the one that the ledger's entries are dated by."""

    def open(self, approval: Approval, result: JudgeResult, pending: PendingRow | None) -> Approval:
        """Write a new request, the decision that waits for it, and what the judge said that was asked first."""
        if pending is not None:
            insert_pending(self.transaction.connection, approval, pending)
        approval = replace(approval, seq=self._record(approval, make_requested_entry(approval, result, pending)))
        if approval.first is not None:
            self._record(approval, make_judged_entry(approval, approval.first))
        if approval.status != "open":
            approval = self._record_end(approval)
        insert(self.transaction.connection, approval)
        return approval

    def vote(self, given: GivenVote) -> VoteOutcome:
        """Count a decision, keep it until it can no longer be taken back, or refuse it; each is recorded."""
        before = load(self.transaction.connection, given.approval)
        now = self._find_time(before)
        approval = self._advance(before, now)
        ended = approval.status != before.status
        vote = Vote(by=given.by, approved=given.approved, at=now, reason=given.reason)
        refused = refuse(approval, given.by) or self._doubt(approval, given)
        if refused is not None:
            self._record(approval, make_voted_entry(approval, vote, refused))
            return VoteOutcome(approval=approval, refused=refused, ended=ended)
        final_at = find_final_at(approval, approved=given.approved, now=now, undo_seconds=given.undo_seconds)
        if final_at is not None:
            return VoteOutcome(
                approval=self._hold(approval, replace(vote, final_at=final_at)), refused=None, ended=False
            )
        approval = self._count(approval, vote)
        return VoteOutcome(approval=approval, refused=None, ended=approval.status != "open")

    def withdraw(self, ident: str, by: str) -> VoteOutcome:
        """Take back a vote that does not count yet; what counts already is ``final``."""
        before = load(self.transaction.connection, ident)
        now = self._find_time(before)
        approval = self._advance(before, now)
        ended = approval.status != before.status
        vote = next((item for item in approval.pending_votes if item.by == by), None)
        # One whose time is over can still be pending, while a denial is: it is final all the same.
        if vote is None or vote.final_at is None or now >= vote.final_at:
            return VoteOutcome(approval=approval, refused="final", ended=ended)
        self._record(approval, make_withdrawn_entry(approval, vote, now))
        delete_pending_vote(self.transaction.connection, ident, by)
        return VoteOutcome(approval=drop_pending(approval, by), refused=None, ended=ended)

    def comment(self, ident: str, by: str, text: str) -> Refusal | None:
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
        """
        connection, ident = self.transaction.connection, decision.approval_id or ""
        approval, row = load(connection, ident), load_pending(connection, ident)
        if approval.status != "approved":
            raise UsageError(f"approval {ident} is {approval.status}, so it cannot be used; wait until it is approved")
        unused = row is not None and row.used_at is None
        if is_once(decision) and (not unused or was_used(connection, approval)):
            return None
        said = {**decision.to_dict(), "used": True}
        seq = self.transaction.append(self.ledger.make_entry(said, kind="decision", subject=approval.subject))
        if unused:
            mark_used(connection, ident, self.clock(), seq)
        return seq

    def _find_time(self, approval: Approval) -> datetime:
        now = self.clock()
        return find_time(self.transaction.connection, approval, now) if self.shares_clock else now

    def _advance(self, approval: Approval, now: datetime) -> Approval:
        """The request as it is by now: with the votes that became final, and closed if its time is over."""
        while (vote := find_final_vote(approval, now)) is not None:
            check_pending_vote(self.transaction.connection, approval, vote)
            delete_pending_vote(self.transaction.connection, approval.id, vote.by)
            approval = self._count(drop_pending(approval, vote.by), replace(vote, final_at=None))
        # In this order: a vote counts at the latest when the request expires.
        return self._end(expire(approval, now)) if is_due(approval, now) else approval

    def _count(self, approval: Approval, vote: Vote) -> Approval:
        vote = replace(vote, seq=self._record(approval, make_voted_entry(approval, vote, None)))
        approval = count(approval, vote)
        if approval.status != "open":
            return self._end(approval, vote)
        update(self.transaction.connection, approval, vote)
        return approval

    def _hold(self, approval: Approval, vote: Vote) -> Approval:
        vote = replace(vote, seq=self._record(approval, make_pending_vote_entry(approval, vote)))
        insert_pending_vote(self.transaction.connection, approval.id, vote)
        return replace(approval, pending_votes=(*approval.pending_votes, vote))

    def _doubt(self, approval: Approval, given: GivenVote) -> Refusal | None:
        """Why what was shown is not enough to approve it; denying always works."""
        if not given.approved:
            return None
        recorded = read_shown(self.transaction.connection, approval)
        current = digest_shown(approval)
        # The tables can be written by others: what people read there must be what the ledger says they were asked.
        if recorded is not None and recorded != current:
            return "changed"
        if given.seen is not None and given.seen != current:
            return "changed"
        return "incomplete" if given.require_complete and find_gaps(approval, recorded) else None

    def _end(self, approval: Approval, vote: Vote | None = None) -> Approval:
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

    def _record(self, approval: Approval, said: ApprovalEntry) -> int:
        draft = self.ledger.make_entry(said.payload, kind=said.kind, subject=approval.subject, quoting=said.quoting)
        return self.transaction.append(draft)


@cache
def make_all_tables() -> MetaData:
    """All tables of approvals. Writing creates those that a ledger of an earlier version does not have."""
    from sqlalchemy import MetaData

    tables = MetaData()
    for known in (make_voting_tables(), make_pending_tables()):
        for table in known.sorted_tables:
            table.to_metadata(tables)
    return tables


APPROVALS = "adjudge_approvals"

VOTES = "adjudge_votes"

PENDING_VOTES = "adjudge_pending_votes"

_RECENT = 50
"""Earlier requests of a gate that are looked through for one that is alike."""

PAGE = 200
"""Requests that are fetched at once."""

READ_AT_ONCE = 20
"""Of requests that are not kept, those that are in memory at once: each may have megabytes."""


@cache
def make_tables() -> MetaData:
    """The tables' description; every database makes its own form of it."""
    from sqlalchemy import Column, ForeignKey, Integer, MetaData, Table, Text

    tables = MetaData()
    # What is looked for has a column; the rest is the request as its to_dict writes it, without the votes.
    Table(
        APPROVALS,
        tables,
        Column("id", Text, primary_key=True),
        Column("status", Text, nullable=False, index=True),
        Column("expires_at", Text, index=True),
        Column("overrides", Integer, nullable=False),
        Column("body", Text, nullable=False),
        sqlite_strict=True,
    )
    Table(
        VOTES,
        tables,
        Column("approval", Text, ForeignKey(f"{APPROVALS}.id"), primary_key=True),
        # In the key: were the counting wrong one day, nobody could be counted twice all the same.
        Column("by", Text, primary_key=True),
        Column("seq", Integer, nullable=False),
        Column("approved", Integer, nullable=False),
        Column("at", Text, nullable=False),
        Column("reason", Text, nullable=False),
        sqlite_strict=True,
    )
    return tables


@cache
def make_voting_tables() -> MetaData:
    """The tables with that of pending votes, which a ledger of an earlier version does not have until somebody votes.

    In a table of their own, pending votes count nowhere, and an earlier version does not see them at all.
    """
    from sqlalchemy import Column, Integer, MetaData, Table, Text

    tables = MetaData()
    for table in make_tables().sorted_tables:
        table.to_metadata(tables)
    Table(
        PENDING_VOTES,
        tables,
        Column("approval", Text, primary_key=True),
        Column("by", Text, primary_key=True),
        Column("seq", Integer, nullable=False),
        Column("approved", Integer, nullable=False),
        Column("at", Text, nullable=False),
        Column("final_at", Text, nullable=False, index=True),
        Column("reason", Text, nullable=False),
        sqlite_strict=True,
    )
    return tables


def insert(connection: Connection, approval: Approval) -> None:
    """Write a new request."""
    connection.execute(_approvals().insert().values(id=approval.id, **_to_row(approval)))


def update(connection: Connection, approval: Approval, vote: Vote | None = None) -> None:
    """Write what became of an open request, and the vote that made it so."""
    table = _approvals()
    if vote is not None:
        values: dict[str, Any] = {"approval": approval.id, "by": vote.by, "seq": vote.seq}
        values |= {"approved": int(vote.approved), "at": format_time(vote.at), "reason": vote.reason}
        connection.execute(make_tables().tables[VOTES].insert().values(**values))
    where = (table.c.id == approval.id) & (table.c.status == "open")
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


def check_pending_vote(connection: Connection, approval: Approval, vote: Vote) -> None:
    """Raise ``LedgerError`` unless the ledger says that this vote was given, and not that it was taken back.

    Counting a vote records that it was given. Without this check a row that somebody wrote into the table by hand
    would get an entry in the ledger, and open the gate.
    """
    table = make_ledger_table()
    kinds = ("approval.vote_pending", "approval.vote_withdrawn")
    where = (table.c.subject == approval.subject) & table.c.kind.in_(kinds) & (table.c.seq >= (vote.seq or 0))
    given = False
    for row in connection.execute(table.select().where(where).order_by(table.c.seq)):
        said = None if row.payload is None else json.loads(row.payload)
        if row.kind == "approval.vote_pending" and row.seq == vote.seq:
            given = said is not None and all(said.get(name) == value for name, value in _describe(approval, vote))
        elif row.kind == "approval.vote_withdrawn":
            # One that was erased may have been the withdrawal of this vote.
            given = given and said is not None and said.get("vote") != vote.seq
    if not given:
        raise LedgerError(
            f"a pending vote on approval {approval.id} is not the one in the ledger: one of them was changed by hand "
            "or erased, so it does not count; put the content through the gate again"
        )


def _describe(approval: Approval, vote: Vote) -> list[tuple[str, Any]]:
    times = [("at", to_plain(vote.at)), ("final_at", to_plain(vote.final_at))]
    return [("approval", approval.id), ("by", vote.by), ("approved", vote.approved), ("reason", vote.reason), *times]


def find_final(connection: Connection, now: datetime) -> list[str]:
    """The ids of requests with votes that can no longer be taken back; of a store with the table of pending votes."""
    from sqlalchemy import select

    table = _pending_votes()
    statement = select(table.c.approval).where(table.c.final_at <= format_time(now)).distinct()
    return list(connection.execute(statement.order_by(table.c.approval)).scalars())


def read_shown(connection: Connection, approval: Approval) -> str | None:
    """The digest of what people are shown, as the ledger's entry of the request has it; ``None`` where it has none."""
    from sqlalchemy import select

    table = make_ledger_table()
    where = (table.c.seq == (approval.seq or 0)) & (table.c.kind == "approval.requested")
    payload = connection.execute(select(table.c.payload).where(where)).scalar_one_or_none()
    said = json.loads(payload) if payload is not None else {}
    found = said.get("shown") if said.get("approval") == approval.id else None
    return found if isinstance(found, str) else None


def rewrite(connection: Connection, approval: Approval) -> None:
    """Write what is left of a closed request once its texts are forgotten."""
    table = _approvals()
    connection.execute(table.update().where(table.c.id == approval.id).values(**_to_row(approval)))


def load(connection: Connection, ident: str, *, with_pending: bool = True) -> Approval:
    """The request of this id; raises ``UsageError`` when there is none.

    ``with_pending=False`` is for a store of an earlier version, which has no table of pending votes yet.
    """
    # What no store can hold is no id, and some raise when they are asked for it.
    known = isinstance(ident, str) and can_store(ident)
    statement = _approvals().select().where(_approvals().c.id == ident)
    found = _fetch(connection, statement, with_pending=with_pending) if known else []
    if not found:
        raise explain_missing(ident)
    return found[0]


def load_many(
    connection: Connection,
    *,
    after: str = "",
    status: str | None = None,
    overrides: bool = False,
    with_pending: bool = True,
) -> list[Approval]:
    """The next requests in the order in which they were made."""
    table = _approvals()
    statement = table.select().where(table.c.id > after).order_by(table.c.id).limit(PAGE)
    if status is not None:
        statement = statement.where(table.c.status == status)
    if overrides:
        statement = statement.where(table.c.overrides == 1)
    return _fetch(connection, statement, with_pending=with_pending)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """The members of a request that say who is asked."""

    approvers: tuple[str, ...]
    gate: str | None = None


def count_open(connection: Connection, *, approver: str, gates: Collection[str] | None, now: datetime) -> int:
    """How many open requests somebody can still decide.

    A page counts them each time that it is shown, so of each request only two members are read, and no vote.
    """
    from sqlalchemy import select

    table, votes, pending = _approvals(), make_tables().tables[VOTES], _pending_votes()
    voted = (select(one.c.approval).where(one.c.by == approver) for one in (votes, pending))
    statement = select(table.c.body).where(table.c.status == "open", *(table.c.id.not_in(ids) for ids in voted))
    statement = statement.where(table.c.expires_at.is_(None) | (table.c.expires_at > format_time(now)))
    found = connection.execute(statement.execution_options(yield_per=READ_AT_ONCE)).scalars()
    return sum(_is_asked(body, approver, gates) for body in found)


def _is_asked(body: str, approver: str, gates: Collection[str] | None) -> bool:
    try:
        asked = read_typed_json(body, _Asked)
    except ValueError:  # changed by hand, which reading it says
        return False
    return approver in asked.approvers and (gates is None or asked.gate in gates)


def load_several(connection: Connection, ids: Sequence[str], *, with_pending: bool = True) -> list[Approval]:
    """The requests of these ids, in this order; those that are not there are left out."""
    statement = _approvals().select().where(_approvals().c.id.in_(ids))
    found = {item.id: item for item in _fetch(connection, statement, with_pending=with_pending)}
    return [found[ident] for ident in ids if ident in found]


def load_approved_before(connection: Connection, ident: str, gate: str) -> list[Approval]:
    """The latest approved requests of a gate that were made before one, newest first; a page of them at most.

    The store has to have the table of pending decisions, which says of which gate a request is.
    """
    from sqlalchemy import select

    table, pending = _approvals(), make_pending_tables().tables[PENDING]
    joined = table.join(pending, table.c.id == pending.c.approval)
    where = (pending.c.gate == gate) & (table.c.status == "approved") & (table.c.id < ident)
    statement = select(table).select_from(joined).where(where).order_by(table.c.id.desc()).limit(_RECENT)
    return _fetch(connection, statement, with_pending=True)


def find_due(connection: Connection, now: datetime) -> list[str]:
    """The ids of open requests whose time is over."""
    from sqlalchemy import select

    table = _approvals()
    where = (table.c.status == "open") & (table.c.expires_at <= format_time(now))
    return list(connection.execute(select(table.c.id).where(where).order_by(table.c.id)).scalars())


def find_time(connection: Connection, approval: Approval, now: datetime) -> datetime:
    """What time it is for a request: later than ``now`` where the ledger shows that the clock was set back since.

    Then an entry behind the request, the vote or the end of the request has a later date than what was to come.
    """
    if approval.closed_seq is not None:
        latest = find_latest(connection, behind=approval.closed_seq)
        return now if latest is None else max(now, datetime.fromisoformat(latest))
    moments = [(approval.seq, approval.expires_at), *[(vote.seq, vote.final_at) for vote in approval.pending_votes]]
    later = [(seq, moment) for seq, moment in moments if moment is not None and moment > now]
    return max([now, *[moment for seq, moment in later if has_passed(connection, seq or 0, format_time(moment))]])


def find_passed(connection: Connection, now: datetime) -> list[str]:
    """The ids of open requests of which the ledger shows that a moment after ``now`` has passed; see ``find_time``."""
    from sqlalchemy import select

    table, pending = _approvals(), _pending_votes()
    latest, current = find_latest(connection), format_time(now)
    if latest is None or latest <= current:
        return []
    due = table.select().where((table.c.status == "open") & table.c.expires_at.between(current, latest))
    final = select(pending.c.approval).where(pending.c.final_at.between(current, latest))
    voted = table.select().where((table.c.status == "open") & table.c.id.in_(final))
    found = {item.id: item for query in (due, voted) for item in _fetch(connection, query, with_pending=True)}
    return sorted(ident for ident, item in found.items() if find_time(connection, item, now) > now)


def find_ids(connection: Connection, part: str) -> list[str]:
    """The ids that are, begin or end like this; at most two, for what is not unique is of no use."""
    from sqlalchemy import select

    table = _approvals()
    same = table.c.id.startswith(part, autoescape=True) | table.c.id.endswith(part, autoescape=True)
    statement = select(table.c.id).where((table.c.id == part) | same)
    # The whole id comes first, and stands for itself: it may be how another one begins.
    return list(connection.execute(statement.order_by(table.c.id != part, table.c.id).limit(2)).scalars())


def explain_missing(ident: object) -> UsageError:
    """What is said of an id that no request has."""
    shown = clean(repr(ident)[:80], keep_lines=False)
    return UsageError(f"there is no approval {shown}; `adjudge approvals list --status all` shows those there are")


def _approvals() -> Table:
    return make_tables().tables[APPROVALS]


def _to_row(approval: Approval) -> dict[str, Any]:
    data = approval.to_dict()
    del data["votes"], data["pending_votes"]
    return {
        "status": approval.status,
        "expires_at": None if approval.expires_at is None else format_time(approval.expires_at),
        "overrides": int(approval.overrides),
        # In ASCII: NUL and halves of characters in somebody's metadata are escapes then, which every store can hold.
        "body": json.dumps(data),
    }


def _fetch(connection: Connection, statement: Select[Any], *, with_pending: bool) -> list[Approval]:
    rows = connection.execute(statement).all()
    ids = [row.id for row in rows]
    votes = list_votes(connection, make_tables().tables[VOTES], ids)
    pending = list_votes(connection, _pending_votes(), ids) if with_pending else {}
    return [_read(row, votes.get(row.id, ()), pending.get(row.id, ())) for row in rows]


def list_votes(connection: Connection, table: Table, ids: list[str]) -> dict[str, list[Any]]:
    """The rows of a table of votes by their request, in order; of these requests alone."""
    given: dict[str, list[Any]] = {}
    for vote in connection.execute(table.select().where(table.c.approval.in_(ids)).order_by(table.c.seq)):
        given.setdefault(vote.approval, []).append(vote)
    return given


def _pending_votes() -> Table:
    return make_voting_tables().tables[PENDING_VOTES]


def read_votes(votes: Iterable[Any], names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Rows of votes as plain data, with these columns."""
    return [{name: getattr(vote, name) for name in names} | {"approved": bool(vote.approved)} for vote in votes]


def _read(row: Any, votes: Iterable[Any], pending: Iterable[Any]) -> Approval:
    try:
        body = json.loads(row.body)
        names = ("by", "seq", "at", "reason")
        read = {"votes": read_votes(votes, names), "pending_votes": read_votes(pending, (*names, "final_at"))}
        found = Approval.from_dict({**body, **read})
        if (found.id, found.status) != (row.id, row.status):
            raise UsageError("its columns say otherwise")
    except (AttributeError, RecursionError, TypeError, ValueError) as error:
        raise LedgerError(
            f"approval {row.id} cannot be read from its table ({type(error).__name__}); it was changed by hand"
        ) from None
    return found
