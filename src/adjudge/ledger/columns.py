"""The columns of entries: values by which lists and statistics find entries, in tables beside the ledger's own.

They are derived from an entry's kind, subject and payload, so they prove nothing: ``verify`` derives them again and
reports every difference, and an upgrade writes them anew. When a payload is erased, its columns are deleted.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import astuple

from adjudge.formats.text import clean, flatten
from adjudge.ledger.database import Statements
from adjudge.ledger.entry import AT, SEQ, Row
from adjudge.ledger.payload import MOST_SUBJECT, Draft, can_store
from adjudge.ledger.search_index import FORM, SEARCH_STATE, SEARCH_TEXTS, SearchState, delete_text, read_state
from adjudge.ledger.search_text import make_search_text
from adjudge.result import Outcome

if TYPE_CHECKING:
    from sqlalchemy import MetaData, Table

ENTRY_COLUMNS = "adjudge_ledger_columns"

ENTRY_NAMES = "adjudge_ledger_names"

STATES = ("passed", "failed", "undecided", "held")
"""The outcomes of something that was judged, and the state of waiting for a person."""

NOT_JUDGED = "info"
"""The state of a decision about which no judge or rule said anything."""

LONGEST_TITLE = 300


class EntryColumns(msgspec.Struct, frozen=True, kw_only=True):
    """The row of ``ENTRY_COLUMNS``, without place and time; ``None`` is what the entry does not say."""

    kind: str
    subject: str
    state: str | None
    """One of ``STATES`` or ``NOT_JUDGED``; ``None`` for what is neither a decision nor a result that can be listed."""
    gate: str | None
    execution: str | None
    outcome: str | None
    judge: str | None
    score: float | None
    decided_by: str | None
    ident: str | None
    """The id of the decision or result."""
    result: str | None
    """The id of the judge's result."""
    approval: str | None
    duration_ms: float | None
    cost_usd: float | None


ALL_COLUMNS = ("seq", "at", *EntryColumns.__struct_fields__)
"""The columns of ``ENTRY_COLUMNS``."""


class DerivedColumns(msgspec.Struct, frozen=True):
    """All that is derived from one entry, apart from its place and time."""

    columns: EntryColumns
    text: str | None
    """The text that a search looks through, without the place; ``None`` for what neither results nor requests list."""
    names: tuple[tuple[str, str], ...]
    """Further values by which ``query`` finds the entry, such as the judge of a seat, each after what it is:
    ``judge``, ``outcome``, ``gate``, ``execution``, or the ``run`` of an agent and what is noted of it."""


# ---------------------------------------------------------------- what is read of a payload


# Members stand in the order of canonical JSON, the alphabet's: a decoder looks for each where it expects the next.


class UsageMembers(msgspec.Struct, frozen=True, kw_only=True):
    """The members of a usage that lists show."""

    cost_usd: float | None = None


class JudgedMembers(msgspec.Struct, frozen=True, kw_only=True):
    """The members of a result that lists show."""

    content: str | None = None
    decided_by: str = "judge"
    detail: str = ""
    duration_ms: float = 0.0
    execution: object = None
    gate: str | None = None
    id: str = ""
    judge: str = ""
    metadata: object = None
    outcome: Outcome
    reasoning: str = ""
    result: object = None
    results: object = None
    score: float | None = None
    threshold: float | None = None
    undecided_because: str | None = None
    usage: UsageMembers | None = None


class DecidedMembers(msgspec.Struct, frozen=True, kw_only=True):
    """The members of a decision that lists show."""

    allowed: bool
    approval_id: str | None = None
    basis: dict[str, object] = {}
    content: str | None = None
    decided_by: str
    detail: str = ""
    duration_ms: float = 0.0
    execution: object = None
    gate: str
    id: str
    metadata: dict[str, object] = {}
    outcome: object = None
    pending: bool
    result: JudgedMembers | None = None

    @property
    def title(self) -> str:
        """The title that the program gave the decision in its metadata; empty where there is none."""
        title = self.metadata.get("title")
        return flatten(title, LONGEST_TITLE).strip() if isinstance(title, str) else ""

    @property
    def why(self) -> str:
        """The reason of the decision: the words of the judge if there are any, else those of the gate."""
        result = self.result
        return (result.reasoning or result.detail if result else "") or self.detail


Members = DecidedMembers | JudgedMembers


class OtherMembers(msgspec.Struct, frozen=True, kw_only=True):
    """The members of another entry, or of a mapping of anybody's; of any type, since programs record anything."""

    approval: object = None
    call: object = None
    decided_by: object = None
    execution: object = None
    gate: object = None
    judge: object = None
    message: object = None
    metadata: object = None
    outcome: object = None
    result: object = None
    results: object = None
    run: object = None
    score: object = None
    status: object = None


# Structs, and each with a decoder of its own: an entry is decoded whenever the ledger is verified, and both together
# make that twenty times as fast as it is with a dataclass.
_DECODERS = {"decision": msgspec.json.Decoder(DecidedMembers), "result": msgspec.json.Decoder(JudgedMembers)}

_OTHER_DECODER = msgspec.json.Decoder(OtherMembers)

_UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError)


def read_members(kind: str, payload: bytes | None) -> Members | None:
    """Read the members of a decision or a result.

    ``None`` for an entry of another kind, and for a payload of another form, since programs may record anything.
    """
    decoder = _DECODERS.get(kind)
    if payload is None or decoder is None:
        return None
    try:
        return _exclude_wrapped_result(decoder.decode(payload))
    except _UNREADABLE:
        return None


def _exclude_wrapped_result(members: Members) -> Members | None:
    """Return the members; ``None`` for a mapping that holds a result in its ``result``, and so is no result itself."""
    return None if isinstance(members.result, dict) else members


# ---------------------------------------------------------------- what is derived


def derive(row: Row) -> DerivedColumns | None:
    """Derive columns, search text and names from a stored entry; ``None`` if its payload is erased or unreadable."""
    _, _, _, kind, subject, payload = row[:6]
    if payload is None:
        return None
    members = read_members(kind, payload)
    if members is not None:
        return _derive_known(subject, members)
    try:
        return _derive_other(kind, subject, _OTHER_DECODER.decode(payload))
    except _UNREADABLE:
        return None


def derive_draft(draft: Draft) -> DerivedColumns:
    """Derive what ``derive`` does from an entry that is about to be written, without reading its bytes."""
    decoder = _DECODERS.get(draft.kind)
    if decoder is not None:
        try:
            members = _exclude_wrapped_result(msgspec.convert(draft.members, decoder.type))
        except _UNREADABLE:
            members = None
        if members is not None:
            return _derive_known(draft.subject, members)
    return _derive_other(draft.kind, draft.subject, msgspec.convert(draft.members, OtherMembers))


def _derive_known(subject: str, members: Members) -> DerivedColumns:
    """Derive columns, search text and names from a decision or a result whose members could be read."""
    if isinstance(members, DecidedMembers):
        return _derive_decision(subject, members)
    return _derive_result(subject, members)


def _derive_decision(subject: str, decision: DecidedMembers) -> DerivedColumns:
    """Derive columns, search text and names from a decision and the result in it."""
    result = decision.result
    columns = EntryColumns(
        kind="decision",
        subject=subject,
        state="held" if decision.pending else result.outcome if result else NOT_JUDGED,
        gate=_read_column(decision.gate),
        execution=_read_column(decision.execution),
        outcome=result.outcome if result else _read_column(decision.outcome),
        judge=_read_column(result.judge) if result else None,
        score=result.score if result else None,
        decided_by=_read_column(decision.decided_by),
        ident=_read_column(decision.id),
        result=_read_column(result.id) if result else None,
        approval=_read_column(decision.approval_id),
        duration_ms=decision.duration_ms,
        cost_usd=result.usage.cost_usd if result and result.usage else None,
    )
    named_values: list[tuple[str, object]] = [("outcome", decision.outcome), *_list_decision_runs(decision)]
    if result is not None:
        named_values += [("gate", result.gate), ("execution", result.execution), *_list_seat_judges(result)]
    content = decision.content or (result.content if result else None)
    judge = result.judge if result else ""
    ids = (subject, decision.id, result.id if result else "", decision.approval_id)
    text = make_search_text((*ids, decision.gate, decision.why, content, judge), decision.metadata)
    return DerivedColumns(columns, text, _make_names(columns, named_values))


def _derive_result(subject: str, result: JudgedMembers) -> DerivedColumns:
    """Derive columns, search text and names from a result."""
    columns = EntryColumns(
        kind="result",
        subject=subject,
        state=result.outcome,
        gate=_read_column(result.gate),
        execution=_read_column(result.execution),
        outcome=result.outcome,
        judge=_read_column(result.judge),
        score=result.score,
        decided_by=_read_column(result.decided_by),
        ident=_read_column(result.id),
        result=_read_column(result.id),
        approval=None,
        duration_ms=result.duration_ms,
        cost_usd=result.usage.cost_usd if result.usage else None,
    )
    texts = (subject, result.id, result.gate, result.reasoning or result.detail, result.content, result.judge)
    text = make_search_text(texts, result.metadata)
    return DerivedColumns(columns, text, _make_names(columns, _list_seat_judges(result)))


def _derive_other(kind: str, subject: str, members: OtherMembers) -> DerivedColumns:
    """Derive columns, search text and names from an entry that is neither a decision nor a result.

    It may be about an approval, or be anybody's mapping. What a ``result`` in it says is taken over.
    """
    result: dict[str, Any] | None = members.result if isinstance(members.result, dict) else None
    judged_members = members if result is None else OtherMembers(**{name: result.get(name) for name in _RESULT_MEMBERS})
    score = judged_members.score
    columns = EntryColumns(
        kind=kind,
        subject=subject,
        state=None,
        gate=_read_column(members.gate) or _read_column(judged_members.gate),
        execution=_read_column(members.execution) or _read_column(judged_members.execution),
        outcome=_read_column(judged_members.outcome) or _read_column(members.outcome),
        judge=_read_column(judged_members.judge),
        score=float(score) if isinstance(score, int | float) and not isinstance(score, bool) else None,
        decided_by=_read_column(members.decided_by),
        ident=None,
        result=_read_column(result.get("id")) if result is not None else None,
        approval=_read_column(members.approval),
        duration_ms=None,
        cost_usd=None,
    )
    other_names = _list_other_names(kind, members)
    text = _make_request_text(columns, members) if kind in ("approval.requested", AUDIT_REQUESTED) else None
    if result is None and judged_members.results is None and not other_names:
        return DerivedColumns(columns, text, ())
    named_values = [] if result is None else _list_both_values(members, judged_members)
    return DerivedColumns(
        columns, text, _make_names(columns, [*named_values, *_list_judges(judged_members.results), *other_names])
    )


_RESULT_MEMBERS = ("gate", "execution", "outcome", "judge", "score", "results")


def _list_both_values(members: OtherMembers, judged_members: OtherMembers) -> list[tuple[str, object]]:
    """List the values of a mapping and those of the result in it, which may differ: the entry is found by either."""
    names = ("outcome", "gate", "execution")
    return [(name, getattr(holder, name)) for name in names for holder in (members, judged_members)]


RUN_REOPENED = "run.reopened"
"""The kind of entry that says that people let a stopped run of an agent continue."""


CALL_PASSED, CALL_RAN, CALL_UNCHECKED = "call.passed", "call.ran", "call.unchecked"
"""The kinds of entry that say that a call of an agent was allowed, that it was then made, or that it was made without
having been checked."""


AUDIT_REQUESTED, AUDIT_CLOSED, AUDIT_FAILED = "audit.requested", "audit.closed", "audit.failed"
"""The kinds of entry that say that people were asked about a content that went through, what came of it, or that they
could not be asked."""

AUDIT_PLANTED = "audit.planted"
"""The kind of entry that says that somebody made up the content of an audit, which is behind it."""

MODEL_CHANGED, MONITOR_RESET = "model.changed", "monitor.reset"
"""The kinds of entry that say that a gate's judge is another model, and that its audits begin anew."""

AUDIT_KINDS = (AUDIT_REQUESTED, AUDIT_CLOSED, AUDIT_FAILED, AUDIT_PLANTED, MODEL_CHANGED, MONITOR_RESET)
"""The kinds of entry from which the state of a gate's audits is derived."""

AUDITED = "audited"
"""The kind of name by which entries of ``AUDIT_KINDS`` are found: the name of their gate."""


def make_call_name(run: str, call: str) -> str:
    """Return the name by which the entries about a call of a run are found: that it was allowed, and was made."""
    return f"{run}\ncall\n{call}"


def make_trust_name(run: str) -> str:
    """Return the name by which the entries are found that change how far a run is trusted.

    These are refusals, denials, unchecked calls, and that people reopened the run.
    """
    return f"{run}\ntrust"  # no run has a line end in its name, so this is the name of no other run


def make_asked_name(run: str) -> str:
    """Return the name by which the requests for approval of a run are found."""
    return f"{run}\nasked"


def make_counted_name(run: str, metadata: Mapping[str, object]) -> str:
    """Return the name by which those requests for approval of a run are found that are counted together.

    Requests about calls are counted apart from those about results, answers and prompts: else a server could use up, by
    what its tools return, the number of requests that the run may make for its calls.
    """
    return f"{run}\nasked\n{'part' if is_about_no_call(metadata) else 'call'}"


def make_owned_name(owner: str) -> str:
    """Return the name by which the requests for approval of all runs of one owner are found."""
    return f"{owner}\nowned"


_OWNED_RUN = re.compile(r"(?P<owner>key:[0-9a-f]{12})[/:](?P<name>.+)")


def name_owned_run(owner: str, run: str) -> str:
    """Return the name of a run of one owner, a key of a server: no other owner can make a run of this name."""
    return f"{owner}/{run}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunName:
    """The name of an agent's run, in its parts."""

    owner: str | None
    """The owner, such as ``key:54343b4accb3``; ``None`` for a run that no key of a server has made."""
    name: str
    """The name that its program gave it."""


def split_run(run: str) -> RunName:
    """Split the name of a run into its owner and the name that its program gave it."""
    match = _OWNED_RUN.fullmatch(run)
    return RunName(owner=None, name=run) if match is None else RunName(owner=match["owner"], name=match["name"])


def find_run(metadata: object) -> str | None:
    """Find the id of the agent's run whose call the metadata of an entry are about; ``None`` if they name none."""
    call = metadata.get("call") if isinstance(metadata, dict) else None
    run_id = call.get("run_id") if isinstance(call, dict) else None
    return run_id if isinstance(run_id, str) and run_id and run_id.isprintable() else None


def is_about_no_call(metadata: Mapping[str, object]) -> bool:
    """Return whether metadata are about a part of a run that is no call: a result, an answer or a prompt."""
    call = metadata.get("call")
    return isinstance(call, dict) and "part" in call


def _list_decision_runs(decision: DecidedMembers) -> list[tuple[str, object]]:
    """List the names by which a decision about a call of a run is found.

    These are the name of the run, and, if the call was refused, the name of what changes its trust.
    """
    run = find_run(decision.metadata) if decision.metadata else None
    if run is None:
        return []
    # A decision with a basis is one for which people were to be asked, and perhaps could not be: the call was not
    # refused. Neither is a decision about what a tool returned: else a server could stop the run by what it answers.
    is_about_call = not decision.basis and not is_about_no_call(decision.metadata)
    # An undecided call counts as refused, so that content which makes its judge fail is not tried for ever.
    result = decision.result
    is_undecided = result is not None and result.outcome == "undecided"
    is_judged = decision.decided_by in ("judge", "rule") or is_undecided
    is_refused = not decision.allowed and not decision.pending and is_judged and is_about_call
    return [("run", run), *([("run", make_trust_name(run))] if is_refused else [])]


def _list_other_names(kind: str, members: OtherMembers) -> list[tuple[str, object]]:
    """List the names by which an entry that is neither a decision nor a result is found.

    These are the gate of an entry about audits, and the run of one about a call, a request for approval or a reopened
    run.
    """
    if kind in AUDIT_KINDS:
        return [(AUDITED, members.gate)]
    if kind == "approval.requested":
        return [("run", name) for name in _list_request_names(members.metadata)]
    run = find_run({"call": {"run_id": members.run}})
    if kind in (CALL_PASSED, CALL_RAN, CALL_UNCHECKED) and run is not None:
        names = [make_call_name(run, members.call)] if isinstance(members.call, str) else []
        names += [make_trust_name(run)] if kind == CALL_UNCHECKED else []
        return [("run", run), *[("run", name) for name in names]]
    if kind not in ("approval.closed", RUN_REOPENED) or run is None:
        return []
    changes_trust = kind == RUN_REOPENED or (members.status == "denied" and members.decided_by == "human")
    return [("run", run), *([("run", make_trust_name(run))] if changes_trust else [])]


def _list_request_names(metadata: object) -> list[str]:
    """List the names by which a request for approval of a run's call is found and counted."""
    run = find_run(metadata)
    if run is None or not isinstance(metadata, dict):
        return []
    owner = split_run(run).owner
    owner_names = [] if owner is None else [make_owned_name(owner)]
    return [run, make_asked_name(run), make_counted_name(run, metadata), *owner_names]


def _list_seat_judges(result: JudgedMembers) -> list[tuple[str, object]]:
    """List the names of the judges in the seats of a result."""
    return _list_judges(result.results)


def _list_judges(seats: object) -> list[tuple[str, object]]:
    """List the names of the judges of some recorded seats, each after the word ``judge``; none for what is no list."""
    if not isinstance(seats, list):
        return []
    return [("judge", seat.get("judge")) for seat in seats if isinstance(seat, dict)]


def _make_names(columns: EntryColumns, values: Iterable[tuple[str, object]]) -> tuple[tuple[str, str], ...]:
    """List the values by which an entry is found and which its columns do not have already, each once."""
    texts = [(name, _read_column(value)) for name, value in values]
    distinct = dict.fromkeys((name, text) for name, text in texts if text is not None)
    return tuple([(name, text) for name, text in distinct if getattr(columns, name, None) != text])


def _read_column(text: object) -> str | None:
    """Return a text that a column can hold and be searched for; ``None`` for any other value, and for one too long."""
    if text is None:  # as most members are
        return None
    return text if isinstance(text, str) and len(text) <= MOST_SUBJECT and can_store(text) else None


def _make_request_text(columns: EntryColumns, members: OtherMembers) -> str:
    """Make the text by which a request for approval is found in the queue."""
    result = members.result if isinstance(members.result, dict) else {}
    texts = [members.message, result.get("reasoning"), result.get("detail")]
    ids = (columns.subject, columns.approval, columns.result, columns.gate, columns.judge)
    return make_search_text((*ids, *(text for text in texts if isinstance(text, str))), members.metadata)


def write_search_text(seq: int, derived: DerivedColumns | None) -> tuple[int, str] | None:
    """Return the row of an entry for the search index: its place, and its text, which the place is put before.

    ``None`` for an entry that has no search text.
    """
    return None if derived is None or derived.text is None else (seq, f"{seq}\n{derived.text}")


# ---------------------------------------------------------------- the tables


@cache
def make_column_tables() -> MetaData:
    """Describe the tables for SQLAlchemy, which makes each database's own form of them."""
    from sqlalchemy import REAL, BigInteger, Column, Double, Index, Integer, MetaData, Table, Text

    seq_type = BigInteger().with_variant(Integer(), "sqlite")
    number_type = Double().with_variant(REAL(), "sqlite")
    types = {"seq": seq_type, "score": number_type, "duration_ms": number_type, "cost_usd": number_type}
    tables = MetaData()
    table = Table(
        ENTRY_COLUMNS,
        tables,
        *(
            Column(
                name,
                types.get(name, Text()),
                primary_key=name == "seq",
                autoincrement=False,
                nullable=name not in ("at", "kind", "subject"),
            )
            for name in ALL_COLUMNS
        ),
        sqlite_strict=True,
    )
    Index(f"{ENTRY_COLUMNS}_at", table.c.at)
    # A hash index, because a tree refuses a text of some thousand bytes, and with it the whole entry. Only the few
    # entries with an approval are in it, since each append pays for every index. By other columns, entries are found by
    # reading this narrow table.
    has_approval = table.c.approval.is_not(None)
    Index(
        f"{ENTRY_COLUMNS}_approval",
        table.c.approval,
        postgresql_using="hash",
        sqlite_where=has_approval,
        postgresql_where=has_approval,
    )
    names = Table(
        ENTRY_NAMES,
        tables,
        Column("seq", seq_type, nullable=False, index=True),
        Column("name", Text, nullable=False),
        Column("value", Text, nullable=False),
        sqlite_strict=True,
    )
    Index(f"{ENTRY_NAMES}_value", names.c.value, postgresql_using="hash")
    return tables


def get_columns_table() -> Table:
    """Return the description of the table of columns."""
    return make_column_tables().tables[ENTRY_COLUMNS]


def write_condition(name: str) -> str:
    """Write the condition in SQL that an entry has a value for ``name``, such as ``judge`` or ``gate``, also in a seat.

    The value has to be bound as often as there are question marks. The table of columns has to be called ``c``.
    """
    seqs_by_name = f"SELECT seq FROM {ENTRY_NAMES} WHERE value = ? AND name = '{name}'"  # noqa: S608 - the names are ours, the values are bound
    return f"(c.{name} = ? OR c.seq IN ({seqs_by_name}))" if name in ALL_COLUMNS else f"c.seq IN ({seqs_by_name})"


def write_audited_condition() -> str:
    """Write the condition in SQL that an entry behind a place is about the audits of a gate.

    The place and the gate have to be bound to its two question marks. A gate asks this with each call, and most often
    nothing is new. So the index of values, which has thousands of entries of this gate, is not to be used: for the
    computed ``value || ''`` the database looks at the few entries behind the place.
    """
    return f"c.seq IN (SELECT seq FROM {ENTRY_NAMES} WHERE seq > ? AND value || '' = ? AND name = '{AUDITED}')"  # noqa: S608 - as above


def insert_columns(statements: Statements, derived: Iterable[tuple[int, str, DerivedColumns | None]]) -> None:
    """Insert the columns and names of new entries, each given by its place, its time and what is derived from it."""
    columns: list[tuple[Any, ...]] = []
    names: list[tuple[int, str, str]] = []
    for seq, at, derived_entry in derived:
        if derived_entry is None:
            continue
        columns.append((seq, at, *astuple(derived_entry.columns)))
        names += [(seq, *pair) for pair in derived_entry.names]
    statements.insert(ENTRY_COLUMNS, ALL_COLUMNS, columns)
    statements.insert(ENTRY_NAMES, ("seq", "name", "value"), names)


_COLUMN_TABLES = (ENTRY_COLUMNS, ENTRY_NAMES)


def delete_columns(statements: Statements, seq: int) -> None:
    """Delete what is derived from an entry whose payload is erased: its columns, its names, and its search text.

    After the last of several, call ``purge_trigrams``, so that the index keeps nothing of them either.
    """
    delete_text(statements, seq)
    for table in _COLUMN_TABLES:
        statements.execute(f"DELETE FROM {table} WHERE seq = ?", (seq,))  # noqa: S608 - the name is ours


def find_difference(
    statements: Statements, rows: Sequence[Row], tables: Collection[str] = (SEARCH_STATE,)
) -> tuple[int, str] | None:
    """Find the first of some consecutive entries whose stored columns are not those that are derived from it.

    Return its place, and the difference in words; ``None`` if nothing differs. Search texts are compared only if the
    database, which has these ``tables``, has a search index, and only of the entries that are in it.
    """
    if not rows:
        return None
    state = read_state(statements) if SEARCH_STATE in tables else None
    stored = _load_stored(statements, rows[0][SEQ], rows[-1][SEQ], state)
    for row in rows:
        difference = _find_row_difference(row, derive(row), stored)
        if difference is not None:
            return row[SEQ], difference
    return None


def find_stray(statements: Statements, last: int) -> int | None:
    """Find a place that has columns but no entry, behind the ``last`` one or before the first; ``None`` without one."""
    stray_seqs = [
        seq
        for table in _COLUMN_TABLES
        for (seq,) in statements.fetch(f"SELECT min(seq) FROM {table} WHERE seq > ? OR seq < 1", (last,))  # noqa: S608 - the name is ours
    ]
    return min((seq for seq in stray_seqs if seq is not None), default=None)


@dataclass(frozen=True, slots=True)
class _StoredRows:
    """The rows that are stored beside some entries, by their places."""

    columns: dict[int, tuple[Any, ...]]
    names: dict[int, list[tuple[str, str]]]
    texts: dict[int, str]
    searched: range
    """The places of the entries whose search texts are in the index."""


def _load_stored(statements: Statements, first: int, last: int, state: SearchState | None) -> _StoredRows:
    """Load the columns, names and search texts that are stored beside the entries ``first`` to ``last``.

    Search texts are left out where there is no index of them, or one of another form.
    """

    def fetch(table: str, columns: Iterable[str]) -> list[tuple[Any, ...]]:
        # A verification reads every row there is, so a page of each table is read at once.
        statement = f"SELECT {', '.join(columns)} FROM {table} WHERE seq BETWEEN ? AND ?"  # noqa: S608 - the names are ours
        return statements.fetch(statement, (first, last))

    names: dict[int, list[tuple[str, str]]] = {}
    for seq, name, value in fetch(ENTRY_NAMES, ("seq", "name", "value")):
        names.setdefault(seq, []).append((name, value))
    # The place is the first of the columns.
    columns = {row[0]: row for row in fetch(ENTRY_COLUMNS, ALL_COLUMNS)}
    if state is None or state.form != FORM:
        return _StoredRows(columns, names, {}, range(0))
    texts: dict[int, str] = {seq: text for seq, text in fetch(SEARCH_TEXTS, ("seq", "text"))}  # noqa: C416 - names what the rows hold
    return _StoredRows(columns, names, texts, range(state.since, state.last + 1))


def _find_row_difference(row: Row, derived: DerivedColumns | None, stored: _StoredRows) -> str | None:
    """Describe how the stored columns of an entry differ from the derived ones; ``None`` where they do not."""
    seq, at = row[SEQ], row[AT]
    columns, text, names = stored.columns.get(seq), stored.texts.get(seq), stored.names.get(seq)
    text = text if seq in stored.searched else None
    if derived is None:
        has_nothing_stored = columns is None and text is None and names is None
        return None if has_nothing_stored else "has columns, and no payload that they could be derived from"
    if columns is None:
        return "has no columns beside it, so that no list shows it"
    expected = (seq, at, *astuple(derived.columns))
    if columns != expected:
        for name, value, stored_value in zip(ALL_COLUMNS, expected, columns, strict=True):
            if stored_value != value:
                return f"is listed with {name} {_show_value(stored_value)}, and its payload says {_show_value(value)}"
    if seq in stored.searched and (seq, text) != (write_search_text(seq, derived) or (seq, None)):
        return "is searched by another text than its payload has"
    if (names or derived.names) and sorted(derived.names) != sorted(names or ()):
        return "is found under other names than its payload has"
    return None


def _show_value(value: object) -> str:
    """Show a value of a column in a message, in at most 80 characters and on one line."""
    return clean(repr(value)[:80], keep_lines=False)
