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
from adjudge.guards.approval.request_columns import OPEN
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

_ROWS_AT_ONCE = 200


@cache
def make_key_table() -> MetaData:
    """Describe the table that holds the key of the digests in erasure records, for every kind of database."""
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


def find_chosen_rows(connection: Connection, choice: Choice, findings: Findings, answers: Table | None) -> Chosen:
    """Find the rows about the choice in a ledger's database, which are to be erased.

    Their ids are noted in ``findings``, and so are texts that only name the choice, for a person to look at.
    """
    named: list[NamedText] = []
    findings.subjects |= _find_erased_subjects(connection, choice)
    entries = dict(_find_entries(connection, choice, findings, named))
    requests = _find_requests(connection, choice, findings, named)
    entries |= _find_related(connection, findings)
    named += [*_find_equal_contents(connection, findings, entries), *_find_mentions_in_words(connection, choice)]
    answer_keys = _find_answers(connection, choice, findings, answers)
    erased_ids = {str(seq) for seq in entries} | set(requests)
    findings.for_a_person += [text for text in named if text.where not in erased_ids]
    return Chosen(
        entries=dict(sorted(entries.items())),
        approvals=tuple(requests),
        answers=tuple(answer_keys),
        searchable=_count_searchable(connection, entries),
        opened=sum(status in OPEN for status in requests.values()),
    )


def _find_entries(
    connection: Connection, choice: Choice, findings: Findings, named: list[NamedText]
) -> Iterator[tuple[int, str]]:
    """Yield the place and the kind of each entry about the choice, and note its ids in ``findings``.

    Entries that only mention the choice are added to ``named``, for a person to look at.
    """
    from sqlalchemy import select

    table = make_table()
    statement = select(table.c.seq, table.c.kind, table.c.subject, table.c.payload)
    statement = statement.where(table.c.kind.not_in(KEPT), table.c.payload.is_not(None)).order_by(table.c.seq)
    for seq, kind, subject, stored in connection.execute(statement.execution_options(yield_per=_ROWS_AT_ONCE)):
        payload = bytes(stored)
        if not choice.is_subject(subject) and not choice.may_name(payload):
            continue
        members = _read_object(payload)
        if choice.is_subject(subject) or any(map(choice.matches, _list_metadata(members))):
            _note_ids(kind, subject, members, findings)
            yield seq, kind
        elif (member := choice.find_naming_member(members)) is not None:
            named.append(NamedText(place="ledger", where=str(seq), what=f"{kind}, names it in {member}"))


def _find_erased_subjects(connection: Connection, choice: Choice) -> set[str]:
    """Find the subjects of the entries that an earlier erasure of the same choice erased.

    The metadata that named the choice were erased with these entries. Files about their subjects may have come back
    from a backup since.
    """
    from sqlalchemy import select

    key = read_key(connection) if _has_table(connection, KEY) else None
    if key is None:
        return set()
    table, digest = make_table(), choice.digest(key)
    statement = select(table.c.payload).where(table.c.kind == "erasure", table.c.payload.is_not(None))
    seqs: set[int] = set()
    for (stored,) in connection.execute(statement.execution_options(yield_per=_ROWS_AT_ONCE)):
        payload = bytes(stored)
        members = _read_object(payload) if digest.encode() in payload else {}
        seq = members.get("seq")
        if _get_member(members.get("chosen"), "digest") == digest and isinstance(seq, int):
            seqs.add(seq)
    subjects: set[str] = set()
    for condition in _split_condition(table.c.seq, seqs):
        rows = connection.execute(select(table.c.subject).where(condition))
        subjects |= {subject for (subject,) in rows if subject}
    return subjects


def _find_mentions_in_words(connection: Connection, choice: Choice) -> Iterator[NamedText]:
    """Find the entries of kinds that are never erased in which the words of a person name the choice.

    The entries about erasures are left out, because nobody can do anything about them.
    """
    from sqlalchemy import select

    table = make_table()
    statement = select(table.c.seq, table.c.kind, table.c.payload).order_by(table.c.seq)
    kinds = [kind for kind in KEPT if kind not in ("genesis", "erasure")]
    statement = statement.where(table.c.kind.in_(kinds), table.c.payload.is_not(None))
    for seq, kind, stored in connection.execute(statement.execution_options(yield_per=_ROWS_AT_ONCE)):
        payload = bytes(stored)
        if not choice.may_name(payload):
            continue
        members = _read_object(payload)
        member = choice.find_naming_member({name: members[name] for name in _WORDS if name in members})
        if member is not None:
            yield NamedText(place="ledger", where=str(seq), what=f"{kind}, names it in {member}")


def _list_metadata(members: Mapping[str, Any]) -> Iterator[object]:
    """List the metadata of an entry: its own, and those of the results in it."""
    yield members.get("metadata")
    for name in ("result", "answer"):
        inner = members.get(name)
        if isinstance(inner, Mapping):
            yield inner.get("metadata")


def _note_ids(kind: str, subject: str, members: Mapping[str, Any], findings: Findings) -> None:
    """Note in ``findings`` the ids in an entry, by which others belong to it: content, requests and results."""
    if subject:
        findings.subjects.add(subject)
    approval_ids = [members.get("approval"), members.get("approval_id")]
    own_id = members.get("id") if kind in {"decision", "result"} else None
    result_ids = [own_id, _get_member(members.get("result"), "id")]
    findings.approvals.update(value for value in approval_ids if isinstance(value, str) and value)
    findings.results.update(value for value in result_ids if isinstance(value, str) and value)


def _get_member(node: object, name: str) -> object:
    """Return a member of a value; ``None`` if there is none, or if the value is no mapping."""
    return node.get(name) if isinstance(node, Mapping) else None


def _find_requests(
    connection: Connection, choice: Choice, findings: Findings, named: list[NamedText]
) -> dict[str, str]:
    """Find the requests for approval about the choice; return the status of each by its id.

    Their ids and contents are noted in ``findings``. Requests that have no text any more are noted and not returned,
    because nothing of them is left to erase. Requests that only mention the choice are added to ``named``, for a person
    to look at.
    """
    from sqlalchemy import select

    if not _has_table(connection, APPROVALS):
        return {}
    tables = make_approval_tables().tables
    table, votes = tables[APPROVALS], tables[VOTES]
    with_reasons: set[str] = set()
    if _has_table(connection, VOTES):
        with_reasons |= set(connection.execute(select(votes.c.approval).where(votes.c.reason != "")).scalars())
    statuses: dict[str, str] = {}
    statement = select(table.c.id, table.c.status, table.c.body).order_by(table.c.id)
    for ident, status, body in connection.execute(statement.execution_options(yield_per=_ROWS_AT_ONCE)):
        is_known = ident in findings.approvals
        if not is_known and choice.subject is None and not choice.may_name(body):
            continue
        members = _read_object(body)
        if is_known or choice.is_subject(members.get("subject")) or any(map(choice.matches, _list_metadata(members))):
            if status in OPEN or _has_text(members) or ident in with_reasons:
                statuses[ident] = status
            findings.approvals.add(ident)
            subject = members.get("subject")
            if isinstance(subject, str):
                findings.subjects.add(subject)
        elif (member := choice.find_naming_member(members)) is not None:
            named.append(NamedText(place="approvals", where=ident, what=f"names it in {member}"))
    return statuses


_REQUEST_TEXTS = ("message", "reason", "content", "texts", "metadata", "execution", "first_said", "closed_because",
                     "answer")  # fmt: skip
"""The members of a request that hold words of anybody; after ``keep_for`` some are left (``Approval.forget``)."""


def _has_text(members: Mapping[str, Any]) -> bool:
    """Return whether a request still has a text that can be erased."""
    return any(members.get(name) for name in _REQUEST_TEXTS)


def _find_related(connection: Connection, findings: Findings) -> dict[int, str]:
    """Find the other entries about the requests and results in ``findings``, such as votes, comments and decisions.

    Returns the kind of each by its place.
    """
    from sqlalchemy import select

    table, columns = make_table(), make_column_tables().tables[ENTRY_COLUMNS]
    kinds: dict[int, str] = {}
    for condition in (
        *_split_condition(columns.c.approval, findings.approvals),
        *_split_condition(columns.c.result, findings.results),
        *_split_condition(columns.c.ident, findings.results),
    ):
        statement = select(table.c.seq, table.c.kind).join(columns, columns.c.seq == table.c.seq)
        rows = connection.execute(statement.where(condition, table.c.kind.not_in(KEPT), table.c.payload.is_not(None)))
        kinds |= {row.seq: row.kind for row in rows}
    return kinds


def _find_equal_contents(connection: Connection, findings: Findings, entries: Mapping[int, str]) -> list[NamedText]:
    """Find the other decisions and results about a content that is forgotten, for a person to look at.

    The content is the same, and their metadata say nothing of the choice: they may be about somebody else.
    """
    from sqlalchemy import select

    table = make_table()
    named: list[NamedText] = []
    for condition in _split_condition(table.c.subject, findings.subjects):
        statement = select(table.c.seq, table.c.kind).where(condition, table.c.payload.is_not(None))
        statement = statement.where(table.c.kind.in_(("decision", "result"))).order_by(table.c.seq)
        rows = [row for row in connection.execute(statement) if row.seq not in entries]
        named += [
            NamedText(place="ledger", where=str(row.seq), what=f"{row.kind} about an equal content") for row in rows
        ]
    return named


def _find_answers(connection: Connection, choice: Choice, findings: Findings, answers: Table | None) -> Iterator[str]:
    """Find the kept answers of a server that repeat a decision or a result about the choice; yield their keys."""
    if answers is None or not _has_table(connection, answers.name):
        return
    known_ids = findings.approvals | findings.results
    for row in connection.execute(answers.select().where(answers.c.body.is_not(None))):
        members = _read_object(bytes(row.body))
        # A firewall answers with texts, and what they are about is in the result of the judges that it asked.
        results = [members.get(name) for name in ("result", "chain_result")]
        answer_ids = [members.get("id"), members.get("approval_id"), *(_get_member(result, "id") for result in results)]
        subjects = [members.get("tool_digest"), *(_get_member(node, "subject") for node in (members, *results))]
        has_metadata = any(map(choice.matches, _list_metadata(members)))
        has_subject = any(map(choice.is_subject, subjects))
        has_known_id = any(isinstance(value, str) and value in known_ids for value in answer_ids)
        if has_metadata or has_subject or has_known_id:
            yield row.digest


def _count_searchable(connection: Connection, entries: Iterable[int]) -> int:
    """Count the entries that are in the search index of the ledger."""
    from sqlalchemy import column, func, select, table

    texts = table(SEARCH_TEXTS, column("seq"))
    conditions = _split_condition(texts.c.seq, entries)
    statements = (select(func.count()).select_from(texts).where(condition) for condition in conditions)
    return sum(connection.execute(statement).scalar_one() for statement in statements)


def _split_condition(column: ColumnElement[Any], values: Iterable[Any]) -> list[ColumnElement[bool]]:
    """Return conditions that together say that a column has one of many values.

    Each has at most ``_ROWS_AT_ONCE`` values, because a database takes only so many in one statement.
    """
    ordered = sorted(values)
    return [column.in_(ordered[start : start + _ROWS_AT_ONCE]) for start in range(0, len(ordered), _ROWS_AT_ONCE)]


def _has_table(connection: Connection, name: str) -> bool:
    from sqlalchemy import inspect

    return inspect(connection).has_table(name)


def _read_object(body: bytes | str) -> Mapping[str, Any]:
    """Read a JSON object; anything else is read as an empty one."""
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
        """Erase the rows about the choice, and append an entry to the ledger that sums the erasure up.

        Returns the rows, and the place of that entry; ``None`` in place of it where nothing was to be erased.
        """
        connection, choice = transaction.connection, self.order.choice
        chosen = find_chosen_rows(connection, choice, findings, self.answers)
        approvals = ApprovalTransaction(self.ledger, lambda: datetime.now(UTC), transaction, True)
        for ident in chosen.approvals:
            approvals.close_erased(ident)
        # Searched again, because closing a request records its votes as entries. The entry about the closing itself is
        # kept: it says nothing but that the request was closed.
        related = _find_related(connection, findings)
        entries = {seq: kind for seq, kind in related.items() if kind != "approval.closed"} | dict(chosen.entries)
        self._distrust_runs(transaction, entries)
        record = {"reason": self.order.reason, "by": self.order.by, "chosen": self._describe_choice(connection)}
        # Each erasure of an entry appends a record to the ledger.
        record_seqs = [transaction.erase(seq, record) for seq in sorted(entries)]
        for ident in chosen.approvals:
            erase_request(connection, load(connection, ident))
        if self.answers is not None:
            for condition in _split_condition(self.answers.c.digest, chosen.answers):
                connection.execute(self.answers.delete().where(condition))
        counts = {**self.counts, **count_chosen(chosen)}
        if not any(counts.values()):
            return chosen, None
        first_and_last = [record_seqs[0], record_seqs[-1]] if record_seqs else None
        summary = {"schema": ERASURES_SCHEMA, **record, "bodies": len(record_seqs), "records": first_and_last}
        return chosen, transaction.record_erasure({**summary, "deleted": counts, "look": len(findings.for_a_person)})

    def _describe_choice(self, connection: Connection) -> dict[str, Any]:
        """Describe the choice for the ledger by a keyed digest.

        Whoever has an export of the ledger cannot find out the value by trying values: the key is in no export.
        """
        choice = self.order.choice
        named = {"by": "subject"} if choice.name is None else {"by": "metadata", "name": choice.name}
        return {**named, "digest": choice.digest(make_key(connection))}

    def _distrust_runs(self, transaction: Transaction, entries: Mapping[int, str]) -> None:
        """Append an entry for each agent's run of which a refusal or a denial is erased, so that it is trusted no more.

        Without that entry, the run would count as one that was never refused anything.
        """
        table = make_table()
        runs: set[str] = set()
        for condition in _split_condition(table.c.seq, entries):
            for row in transaction.connection.execute(table.select().where(condition)):
                derived = derive(tuple(row))  # type: ignore[arg-type] - PostgreSQL's bytes are a view of the same
                names = () if derived is None else derived.names
                # An entry that changes a run's trust has the run's name with this ending (``make_trust_name``).
                runs |= {
                    value.removesuffix("\ntrust")
                    for name, value in names
                    if value.endswith("\ntrust") and name == "run"
                }
        for run in sorted(runs):
            about = {"schema": REFUSALS_ERASED, "run": run}
            transaction.append(self.ledger.make_entry(about, kind=CALL_UNCHECKED, subject=""))


def count_chosen(chosen: Chosen) -> dict[str, int]:
    """Count the chosen rows, by place of the report."""
    return {
        "ledger": len(chosen.entries),
        "approvals": len(chosen.approvals),
        "kept answers": len(chosen.answers),
        "search index": chosen.searchable,
    }


def make_key(connection: Connection) -> bytes:
    """Return the key of the digests in erasure records; it is made and stored at first use."""
    table = make_key_table().tables[KEY]
    key = read_key(connection)
    if key is None:
        key = secrets.token_bytes(32)
        connection.execute(table.insert().values(id=1, key=key.hex()))
    return key


def read_key(connection: Connection) -> bytes | None:
    """Read the key of the digests in erasure records; ``None`` before the first erasure."""
    from sqlalchemy import select

    table = make_key_table().tables[KEY]
    hex_key = connection.execute(select(table.c.key).where(table.c.id == 1)).scalar_one_or_none()
    return None if hex_key is None else bytes.fromhex(hex_key)


def note_chosen(chosen: Chosen, findings: Findings) -> None:
    """Note in ``findings`` how many rows of a ledger's database were chosen, in the words of the report."""
    findings.add_deleted("ledger", len(chosen.entries), f"bodies of {_list_kinds(chosen.entries)}")
    open_requests = f"{chosen.opened:,} of them open, which forgetting closes"
    findings.add_deleted("approvals", len(chosen.approvals), open_requests if chosen.opened else "")
    findings.add_deleted("kept answers", len(chosen.answers))
    findings.add_deleted("search index", chosen.searchable)


_KIND_NAMES = {"result": ("result", "results"), "decision": ("decision", "decisions")}


def _list_kinds(entries: Mapping[int, str]) -> str:
    """Write how many entries there are of each kind, like ``41 results, 14 decisions, 8 of approvals``."""
    counts: dict[tuple[str, str], int] = {}
    for kind in entries.values():
        other_name = "of approvals" if kind.startswith(("approval.", "audit.", "override")) else f"of kind {kind}"
        names = _KIND_NAMES.get(kind, (other_name, other_name))
        counts[names] = counts.get(names, 0) + 1
    return ", ".join(f"{count:,} {singular if count == 1 else plural}" for (singular, plural), count in counts.items())
