"""The table of pending decisions beside the ledger, so that any process can resume them.

Anybody who can write the database can change the table, so the ledger has to confirm what is read from it: the
``approval.requested`` entry holds the digest of the pending decision, and the entry of the decision that replaces it
says that the approval is used.

Everything that a resumed decision has to match is decided in ``guards/gate.py`` (``Check.resume``), and whether a
request has expired in ``approval.py`` (``is_due``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from adjudge.errors import LedgerError, RequestExists
from adjudge.guards.approval.approval import NO_PLACE, Approval
from adjudge.guards.approval.tables import PENDING, make_tables
from adjudge.guards.approval_digest import CONTEXT
from adjudge.guards.decision import Decision
from adjudge.guards.held_request import find_key
from adjudge.ledger.entry import Entry, format_time
from adjudge.ledger.ledger import Ledger
from adjudge.ledger.payload import can_store, drop_digests
from adjudge.ledger.store import make_table as make_ledger_table

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingDecision:
    """A pending decision as it is stored beside the ledger, and whether it has been resumed."""

    decision: Decision
    """The pending decision. Texts that can quote the content are empty unless ``store_content`` keeps them."""
    approval: Approval
    """The request for approval, in its current state."""
    used_at: datetime | None = None
    """The time at which it was first resumed with an approval; ``None`` before that."""
    used_seq: int | None = None
    """The place in the ledger of the decision that replaced it."""
    answered_for: float | None = None
    """Seconds since the request was closed; ``None`` while it is open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingRow:
    """The row to write for a new pending decision."""

    gate: str
    idempotency: str | None
    """Digest of the key by which a repeated request is found, such as ``Idempotency-Key``; unique, ``None`` without."""
    text: str
    """The decision as JSON."""

    @property
    def digest(self) -> str:
        """The digest of the text, as the ledger's entry has it."""
        return digest_pending(self.text)


def make_pending_row(ledger: Ledger, about: object, approval: Approval) -> PendingRow | None:
    """Make the row for a gate's pending decision that a request is about; ``None`` if it is about anything else."""
    if not isinstance(about, Decision) or about.request is None or about.allowed:
        return None
    pending = replace(about, pending=True, approval_id=approval.id)
    # As the ledger would store it: a text that the ledger replaces by its digest must not be stored here in full.
    draft = ledger.make_entry(pending, kind="decision", subject=approval.subject)
    return PendingRow(gate=about.gate, idempotency=find_key(about.basis), text=draft.payload.decode())


def digest_pending(text: str) -> str:
    """Return the SHA-256 of a pending decision's JSON."""
    return sha256(text.encode()).hexdigest()


def read_pending(row: Row[Any], approval: Approval, entry: Entry | None) -> PendingDecision:
    """Read a pending decision from its row; raise ``LedgerError`` for one that the ledger's entry does not confirm."""
    payload = (entry.payload if entry is not None and entry.kind == "approval.requested" else None) or {}
    if payload.get("approval") != approval.id or payload.get("pending") != digest_pending(row.decision):
        raise LedgerError(
            f"the pending decision of approval {approval.id} is not the one in the ledger: one of them was changed by "
            "hand or erased, so it cannot be resumed; put the content through the gate again"
        )
    used_at = None if row.used_at is None else datetime.fromisoformat(row.used_at)
    decision = Decision.from_dict(drop_digests(json.loads(row.decision)))
    return PendingDecision(decision=decision, approval=approval, used_at=used_at, used_seq=row.used_seq)


# ---------------------------------------------------------------- the table


def insert_pending(connection: Connection, approval: Approval, row: PendingRow) -> None:
    """Write a pending decision; raises ``RequestExists`` if its key belongs to another request."""
    taken_by = None if row.idempotency is None else find_by_key(connection, row.idempotency)
    if taken_by is not None:
        raise RequestExists(
            "this idempotency key belongs to another pending request; use a new key", approval_id=taken_by
        )
    expires = None if approval.expires_at is None else format_time(approval.expires_at)
    values = {"gate": row.gate, "idempotency": row.idempotency, "decision": row.text, "expires_at": expires}
    created = format_time(approval.created_at)
    connection.execute(_table().insert().values(approval=approval.id, created_at=created, **values))


def load_pending(connection: Connection, ident: str) -> Row[Any] | None:
    """Load the row of the pending decision of an approval; ``None`` if there is none, or its text was deleted."""
    if not can_store(ident):  # no approval has such an id, and some stores raise when they are asked for it
        return None
    row = connection.execute(_table().select().where(_table().c.approval == ident)).one_or_none()
    return row if row is not None and row.decision else None


def load_judged_with(connection: Connection, ident: str) -> Mapping[str, str] | None:
    """Load the digests of task, context and reference that an approval's content was judged with.

    Returns ``None`` if no gate asked, or if the pending decision's text was deleted.
    """
    row = load_pending(connection, ident)
    return None if row is None else list_judged_with(json.loads(row.decision).get("basis") or {})


def list_judged_with(basis: Mapping[str, Any]) -> Mapping[str, str]:
    """Return those digests of task, context and reference that the basis of a decision has, by their names."""
    return {name: digest for name in CONTEXT if isinstance(digest := basis.get(name), str)}


def find_by_key(connection: Connection, key: str) -> str | None:
    """Find the id of the approval whose request had the idempotency key with this digest; ``None`` if there is none."""
    from sqlalchemy import select

    approval_id: str | None = connection.execute(
        select(_table().c.approval).where(_table().c.idempotency == key)
    ).scalar_one_or_none()
    return approval_id


def list_unused(connection: Connection, gate: str | None) -> list[str]:
    """List the ids of approvals whose pending decision was not resumed, of one gate or (``None``) all, oldest first."""
    from sqlalchemy import select

    table = _table()
    statement = select(table.c.approval).where(table.c.used_at.is_(None) & (table.c.decision != ""))
    if gate is not None:
        statement = statement.where(table.c.gate == gate)
    return list(connection.execute(statement.order_by(table.c.approval)).scalars())


def mark_used(connection: Connection, ident: str, at: datetime, seq: int) -> None:
    """Mark an approval as used at a time, by the decision at ``seq`` in the ledger.

    Raises ``LedgerError``, which rolls the transaction back, if it is marked already.
    """
    table = _table()
    where = (table.c.approval == ident) & table.c.used_at.is_(None)
    updated = connection.execute(table.update().where(where).values(used_at=format_time(at), used_seq=seq))
    if updated.rowcount != 1:
        raise LedgerError(f"approval {ident} was used by something that is not adjudge; nothing was changed")


def forget_pending(connection: Connection, ident: str) -> None:
    """Delete the text of a pending decision, which then cannot be resumed by its id."""
    table = _table()
    connection.execute(table.update().where(table.c.approval == ident).values(decision=""))


def was_used(connection: Connection, approval: Approval) -> bool:
    """Return whether the ledger says that an approval was used.

    The table is not enough: anybody who can write the database could clear the mark and use the approval again. If a
    later decision about the same content was erased, it may have been the one that used the approval, so the answer is
    true.

    Raises ``LedgerError`` where the ledger does not confirm the approval.
    """
    table = make_ledger_table()
    request = connection.execute(table.select().where(table.c.seq == (approval.seq or NO_PLACE))).one_or_none()
    if request is None or (request.kind, request.subject) != ("approval.requested", approval.subject):
        raise LedgerError(f"the ledger does not confirm approval {approval.id}; `adjudge ledger verify` shows why")
    from sqlalchemy import select

    where = (table.c.subject == approval.subject) & (table.c.kind == "decision") & (table.c.seq > request.seq)
    for payload in connection.execute(select(table.c.payload).where(where)).scalars():
        if payload is None or (approval.id.encode() in payload and _uses_approval(payload, approval.id)):
            return True
    return False


def _uses_approval(payload: bytes, ident: str) -> bool:
    """Return whether the payload of a decision's entry says that the decision used this approval."""
    members = json.loads(payload)
    return members.get("approval_id") == ident and members.get("used") is True


def _table() -> Table:
    return make_tables().tables[PENDING]
