"""Forgetting in a ledger's database: entries, requests for approval, and the answers that a server keeps."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from adjudge.erasure.choice import Choice
from adjudge.erasure.report import Findings, NamedText
from adjudge.guards.approval.listed import OPEN
from adjudge.guards.approval.store import ApprovalTransaction, erase_request, load
from adjudge.guards.approval.tables import APPROVALS, APPROVERS, PENDING, PENDING_VOTES, REQUEST_COLUMNS, VOTES
from adjudge.guards.approval.tables import make_tables as make_approval_tables
from adjudge.guards.tool_guard.run_trust import REFUSALS_ERASED
from adjudge.ledger.columns import CALL_UNCHECKED, ENTRY_COLUMNS, ENTRY_NAMES, derive, make_column_tables
from adjudge.ledger.ledger import Ledger
from adjudge.ledger.search_index import SEARCH_TEXTS
from adjudge.ledger.store import Transaction, make_table
from adjudge.ledger.verification import ERASURES_SCHEMA

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection, MetaData, Table

KEY = "adjudge_erasure_key"
"""The table with the key of the digests by which erasures name what was forgotten. It is in no export of a ledger."""

TABLES = (KEY, ENTRY_COLUMNS, ENTRY_NAMES, SEARCH_TEXTS, APPROVALS, APPROVERS, PENDING, PENDING_VOTES, REQUEST_COLUMNS,
          VOTES)  # fmt: skip

KEPT = ("genesis", "erasure", "anchor", "certificate", "key.created", "key.rotated", "key.revoked", "run.reopened",
        "call.passed", "call.ran", "call.unchecked", "audit.closed", "audit.failed", "audit.planted",
        "model.changed", "monitor.reset", "gate.enforced")  # fmt: skip
"""Kinds of entries that hold no text of what was judged; some have words of a person, which may name somebody."""

_WORDS = ("reason", "because", "problem")
"""The members of such entries with words in them."""

_AT_ONCE = 200


@cache
def make_key_table() -> MetaData:
    """The table's description; every database makes its own form of it."""
    from sqlalchemy import Column, Integer, MetaData, Table, Text

    tables = MetaData()
    Table(KEY, tables, Column("id", Integer, primary_key=True), Column("key", Text, nullable=False), sqlite_strict=True)
    return tables


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """An erasure that somebody orders: what, why, and in whose name."""

    choice: Choice
    reason: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The rows that are to be erased in a ledger's database."""

    entries: Mapping[int, str]
    """The place and the kind of each entry."""
    approvals: tuple[str, ...]
    answers: tuple[str, ...]
    """Keys of the rows of a server's answers."""
    searchable: int
    """The number of entries that the search knows."""
    opened: int
    """Requests among them that are open."""


# ---------------------------------------------------------------- finding


def find_chosen(connection: Connection, choice: Choice, findings: Findings, answers: Table | None) -> Chosen:
    """Find what is about the choice, and note in ``findings`` its ids and what only names it."""
    named: list[NamedText] = []
    findings.subjects |= _find_erased(connection, choice)
    entries = dict(_find_entries(connection, choice, findings, named))
    requests = _find_requests(connection, choice, findings, named)
    entries |= _find_related(connection, findings)
    named += [*_find_alike(connection, findings, entries), *_find_named_words(connection, choice)]
    answered = _find_answers(connection, choice, findings, answers)
    chosen = {str(seq) for seq in entries} | set(requests)
    findings.for_a_person += [each for each in named if each.where not in chosen]
    return Chosen(
        entries=dict(sorted(entries.items())),
        approvals=tuple(requests),
        answers=tuple(answered),
        searchable=_count_searchable(connection, entries),
        opened=sum(status in OPEN for status in requests.values()),
    )


def _find_entries(
    connection: Connection, choice: Choice, findings: Findings, named: list[NamedText]
) -> Iterator[tuple[int, str]]:
    """Yield the place and the kind of each entry that is to be erased, and note its ids in ``findings``.

    Entries that only mention the choice are added to ``named``, for a person to look at.
    """
    from sqlalchemy import select

    table = make_table()
    statement = select(table.c.seq, table.c.kind, table.c.subject, table.c.payload)
    statement = statement.where(table.c.kind.not_in(KEPT), table.c.payload.is_not(None)).order_by(table.c.seq)
    for seq, kind, subject, stored in connection.execute(statement.execution_options(yield_per=_AT_ONCE)):
        payload = bytes(stored)
        if not choice.is_subject(subject) and not choice.may_name(payload):
            continue
        members = _read_object(payload)
        if choice.is_subject(subject) or any(map(choice.matches, _list_metadata(members))):
            _note_ids(kind, subject, members, findings)
            yield seq, kind
        elif (where := choice.find_name(members)) is not None:
            named.append(NamedText(place="ledger", where=str(seq), what=f"{kind}, names it in {where}"))


def _find_erased(connection: Connection, choice: Choice) -> set[str]:
    """Find the contents of the entries that were erased before by the same choice.

    What named them was erased with them, and files about them may have come back from a backup since.
    """
    from sqlalchemy import select

    key = read_key(connection) if _has_table(connection, KEY) else None
    if key is None:
        return set()
    table, digest = make_table(), choice.digest(key)
    statement = select(table.c.payload).where(table.c.kind == "erasure", table.c.payload.is_not(None))
    seqs: set[int] = set()
    for (stored,) in connection.execute(statement.execution_options(yield_per=_AT_ONCE)):
        payload = bytes(stored)
        members = _read_object(payload) if digest.encode() in payload else {}
        seq = members.get("seq")
        if _get_member(members.get("chosen"), "digest") == digest and isinstance(seq, int):
            seqs.add(seq)
    subjects = (connection.execute(select(table.c.subject).where(among)) for among in _split(table.c.seq, seqs))
    return {subject for rows in subjects for (subject,) in rows if subject}


def _find_named_words(connection: Connection, choice: Choice) -> Iterator[NamedText]:
    """Find the entries of the kinds that are kept in which somebody's words name the choice.

    Not those of erasures, which nothing can erase in turn.
    """
    from sqlalchemy import select

    table = make_table()
    statement = select(table.c.seq, table.c.kind, table.c.payload).order_by(table.c.seq)
    kinds = [kind for kind in KEPT if kind not in ("genesis", "erasure")]
    statement = statement.where(table.c.kind.in_(kinds), table.c.payload.is_not(None))
    for seq, kind, stored in connection.execute(statement.execution_options(yield_per=_AT_ONCE)):
        payload = bytes(stored)
        if not choice.may_name(payload):
            continue
        members = _read_object(payload)
        where = choice.find_name({name: members[name] for name in _WORDS if name in members})
        if where is not None:
            yield NamedText(place="ledger", where=str(seq), what=f"{kind}, names it in {where}")


def _list_metadata(members: Mapping[str, Any]) -> Iterator[object]:
    """List the metadata of an entry: its own, and those of the results in it."""
    yield members.get("metadata")
    for name in ("result", "answer"):
        inner = members.get(name)
        if isinstance(inner, Mapping):
            yield inner.get("metadata")


def _note_ids(kind: str, subject: str, members: Mapping[str, Any], findings: Findings) -> None:
    """Note by what else belongs to an entry: the content, the request, and the result."""
    if subject:
        findings.subjects.add(subject)
    inner = members.get("result")
    ids = {
        "approvals": [members.get("approval"), members.get("approval_id")],
        "results": [members.get("id") if kind in {"decision", "result"} else None, _get_member(inner, "id")],
    }
    for name, values in ids.items():
        getattr(findings, name).update(value for value in values if isinstance(value, str) and value)


def _get_member(node: object, name: str) -> object:
    return node.get(name) if isinstance(node, Mapping) else None


def _find_requests(
    connection: Connection, choice: Choice, findings: Findings, named: list[NamedText]
) -> dict[str, str]:
    """Find the requests, each with its status, and note them and their contents in ``findings``.

    Those that have no text any more are noted and not returned. Requests that only mention the choice are added to
    ``named``, for a person to look at.
    """
    from sqlalchemy import select

    if not _has_table(connection, APPROVALS):
        return {}
    tables = make_approval_tables().tables
    table, statuses = tables[APPROVALS], dict[str, str]()
    votes, voted = tables[VOTES], set[str]()
    if _has_table(connection, VOTES):
        voted |= set(connection.execute(select(votes.c.approval).where(votes.c.reason != "")).scalars())
    statement = select(table.c.id, table.c.status, table.c.body).order_by(table.c.id)
    for ident, status, body in connection.execute(statement.execution_options(yield_per=_AT_ONCE)):
        is_known = ident in findings.approvals
        if not is_known and choice.subject is None and not choice.may_name(body):
            continue
        members = _read_object(body)
        if is_known or choice.is_subject(members.get("subject")) or any(map(choice.matches, _list_metadata(members))):
            if status in OPEN or _has_text(members) or ident in voted:
                statuses[ident] = status
            findings.approvals.add(ident)
            findings.subjects |= {subject for subject in [members.get("subject")] if isinstance(subject, str)}
        elif (where := choice.find_name(members)) is not None:
            named.append(NamedText(place="approvals", where=ident, what=f"names it in {where}"))
    return statuses


_TEXTS_OF_REQUEST = ("message", "reason", "content", "texts", "metadata", "execution", "first_said", "closed_because",
                     "answer")  # fmt: skip
"""The members of a request that hold words of anybody; after ``keep_for`` some are left (``Approval.forget``)."""


def _has_text(members: Mapping[str, Any]) -> bool:
    return any(members.get(name) for name in _TEXTS_OF_REQUEST)


def _find_related(connection: Connection, findings: Findings) -> dict[int, str]:
    """Find the other entries about the same requests and results: votes, comments, what was decided in the end."""
    from sqlalchemy import select

    table, columns = make_table(), make_column_tables().tables[ENTRY_COLUMNS]
    kinds: dict[int, str] = {}
    for among in (
        *_split(columns.c.approval, findings.approvals),
        *_split(columns.c.result, findings.results),
        *_split(columns.c.ident, findings.results),
    ):
        statement = select(table.c.seq, table.c.kind).join(columns, columns.c.seq == table.c.seq)
        rows = connection.execute(statement.where(among, table.c.kind.not_in(KEPT), table.c.payload.is_not(None)))
        kinds |= {row.seq: row.kind for row in rows}
    return kinds


def _find_alike(connection: Connection, findings: Findings, entries: Mapping[int, str]) -> list[NamedText]:
    """Find decisions and results about an equal content that say nothing of the choice."""
    from sqlalchemy import select

    table = make_table()
    named: list[NamedText] = []
    for among in _split(table.c.subject, findings.subjects):
        statement = select(table.c.seq, table.c.kind).where(among, table.c.payload.is_not(None))
        statement = statement.where(table.c.kind.in_(("decision", "result"))).order_by(table.c.seq)
        rows = [row for row in connection.execute(statement) if row.seq not in entries]
        named += [
            NamedText(place="ledger", where=str(row.seq), what=f"{row.kind} about an equal content") for row in rows
        ]
    return named


def _find_answers(connection: Connection, choice: Choice, findings: Findings, answers: Table | None) -> Iterator[str]:
    """Find the answers of a server that repeat a decision or a result about the choice."""
    if answers is None or not _has_table(connection, answers.name):
        return
    ids = findings.approvals | findings.results
    for row in connection.execute(answers.select().where(answers.c.body.is_not(None))):
        members = _read_object(bytes(row.body))
        # A firewall answers with texts, and what they are about is in the result of the judges that it asked.
        results = [members.get(name) for name in ("result", "chain_result")]
        answer_ids = [members.get("id"), members.get("approval_id"), *(_get_member(each, "id") for each in results)]
        is_chosen = any(map(choice.matches, _list_metadata(members)))
        subjects = [members.get("tool_digest"), *(_get_member(each, "subject") for each in (members, *results))]
        is_chosen |= any(map(choice.is_subject, subjects))
        if is_chosen or any(isinstance(value, str) and value in ids for value in answer_ids):
            yield row.digest


def _count_searchable(connection: Connection, entries: Iterable[int]) -> int:
    from sqlalchemy import column, func, select, table

    texts = table(SEARCH_TEXTS, column("seq"))
    statements = (select(func.count()).select_from(texts).where(among) for among in _split(texts.c.seq, entries))
    return sum(connection.execute(statement).scalar_one() for statement in statements)


def _split(column: ColumnElement[Any], values: Iterable[Any]) -> list[ColumnElement[bool]]:
    """Split a condition on many values, of which a database takes only so many at once."""
    ordered = sorted(values)
    return [column.in_(ordered[start : start + _AT_ONCE]) for start in range(0, len(ordered), _AT_ONCE)]


def _has_table(connection: Connection, name: str) -> bool:
    from sqlalchemy import inspect

    return inspect(connection).has_table(name)


def _read_object(body: bytes | str) -> Mapping[str, Any]:
    try:
        members = json.loads(body)
    except (RecursionError, ValueError):
        return {}
    return members if isinstance(members, dict) else {}


# ---------------------------------------------------------------- erasing


@dataclass(frozen=True, slots=True)
class LedgerErasure:
    """An erasure in a ledger's database, for one transaction: all of it or nothing."""

    ledger: Ledger
    order: Order
    answers: Table | None
    counts: Mapping[str, int]
    """The numbers of texts that were deleted in other places before, for the record."""

    def erase(self, transaction: Transaction, findings: Findings) -> tuple[Chosen, int | None]:
        """Erase what is chosen, and return it with the place of the record; ``None`` where there was nothing."""
        connection, choice = transaction.connection, self.order.choice
        chosen = find_chosen(connection, choice, findings, self.answers)
        step = ApprovalTransaction(self.ledger, lambda: datetime.now(UTC), transaction, True)
        for ident in chosen.approvals:
            step.close_erased(ident)
        # With votes that the closing recorded just now; its own entry says nothing but that it was closed.
        related = _find_related(connection, findings)
        entries = {seq: kind for seq, kind in related.items() if kind != "approval.closed"} | dict(chosen.entries)
        self._distrust_runs(transaction, entries)
        record = {"reason": self.order.reason, "by": self.order.by, "chosen": self._describe_choice(connection)}
        records = [transaction.erase(seq, record) for seq in sorted(entries)]
        for ident in chosen.approvals:
            erase_request(connection, load(connection, ident))
        if self.answers is not None:
            for among in _split(self.answers.c.digest, chosen.answers):
                connection.execute(self.answers.delete().where(among))
        counts = {**self.counts, **count_chosen(chosen)}
        if not any(counts.values()):
            return chosen, None
        places = [records[0], records[-1]] if records else None
        summary = {"schema": ERASURES_SCHEMA, **record, "bodies": len(records), "records": places}
        return chosen, transaction.record_erasure({**summary, "deleted": counts, "look": len(findings.for_a_person)})

    def _describe_choice(self, connection: Connection) -> dict[str, Any]:
        """Describe the choice by a digest, which nobody who has an export of the ledger can find by trying values."""
        choice = self.order.choice
        named = {"by": "subject"} if choice.name is None else {"by": "metadata", "name": choice.name}
        return {**named, "digest": choice.digest(make_key(connection))}

    def _distrust_runs(self, transaction: Transaction, entries: Mapping[int, str]) -> None:
        """Stop the runs of agents of which a refusal or a denial is erased: else they would count as without any."""
        table = make_table()
        runs: set[str] = set()
        for among in _split(table.c.seq, entries):
            for row in transaction.connection.execute(table.select().where(among)):
                derived = derive(tuple(row))  # type: ignore[arg-type] - PostgreSQL's bytes are a view of the same
                values = () if derived is None else derived.names
                runs |= {
                    value.removesuffix("\ntrust")
                    for name, value in values
                    if value.endswith("\ntrust") and name == "run"
                }
        for run in sorted(runs):
            about = {"schema": REFUSALS_ERASED, "run": run}
            transaction.append(self.ledger.make_entry(about, kind=CALL_UNCHECKED, subject=""))


def count_chosen(chosen: Chosen) -> dict[str, int]:
    """Count what is chosen, by place."""
    return {
        "ledger": len(chosen.entries),
        "approvals": len(chosen.approvals),
        "kept answers": len(chosen.answers),
        "search index": chosen.searchable,
    }


def make_key(connection: Connection) -> bytes:
    """Make the key of the digests, or return the one that was made before."""
    table = make_key_table().tables[KEY]
    key = read_key(connection)
    if key is None:
        key = secrets.token_bytes(32)
        connection.execute(table.insert().values(id=1, key=key.hex()))
    return key


def read_key(connection: Connection) -> bytes | None:
    """Read the key of the digests; ``None`` before the first erasure."""
    from sqlalchemy import select

    table = make_key_table().tables[KEY]
    text = connection.execute(select(table.c.key).where(table.c.id == 1)).scalar_one_or_none()
    return None if text is None else bytes.fromhex(text)


def note_chosen(chosen: Chosen, findings: Findings) -> None:
    """Note in ``findings`` how much was chosen in a ledger's database, in the words of the report."""
    findings.count("ledger", len(chosen.entries), f"bodies of {_list_kinds(chosen.entries)}")
    opened = f"{chosen.opened:,} of them open, which forgetting closes"
    findings.count("approvals", len(chosen.approvals), opened if chosen.opened else "")
    findings.count("kept answers", len(chosen.answers))
    findings.count("search index", chosen.searchable)


_KINDS = {"result": ("result", "results"), "decision": ("decision", "decisions")}


def _list_kinds(entries: Mapping[int, str]) -> str:
    """List of which kinds some entries are, like ``41 results, 14 decisions, 8 of approvals``."""
    counts: dict[tuple[str, str], int] = {}
    for kind in entries.values():
        other = "of approvals" if kind.startswith(("approval.", "audit.", "override")) else f"of kind {kind}"
        words = _KINDS.get(kind, (other, other))
        counts[words] = counts.get(words, 0) + 1
    return ", ".join(f"{count:,} {one if count == 1 else several}" for (one, several), count in counts.items())
