"""The columns of entries: what lists and figures look for, in tables beside the ledger's own.

They are derived from an entry's kind, subject and payload, so they prove nothing: ``verify`` derives them again and
reports every difference, and an upgrade writes them anew. Where a payload is erased, its columns go with it.
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


class Derived(msgspec.Struct, frozen=True):
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
        """The program's name for it; empty where there is none."""
        title = self.metadata.get("title")
        return flatten(title, LONGEST_TITLE).strip() if isinstance(title, str) else ""

    @property
    def why(self) -> str:
        """The reason, in the judge's words where there are any."""
        judged = self.result
        return (judged.reasoning or judged.detail if judged else "") or self.detail


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
    """The members of a decision or a result; ``None`` for anything else, since programs may record anything."""
    decoder = _DECODERS.get(kind)
    if payload is None or decoder is None:
        return None
    try:
        return _check_members(decoder.decode(payload))
    except _UNREADABLE:
        return None


def _check_members(members: Members) -> Members | None:
    # A mapping around a result, as a program may record one, is no result itself.
    return None if isinstance(members.result, dict) else members


# ---------------------------------------------------------------- what is derived


def derive(row: Row) -> Derived | None:
    """The columns of an entry that is stored; ``None`` where its payload is erased, or is nothing that we write."""
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


def derive_draft(draft: Draft) -> Derived:
    """The columns of an entry that is about to be written: what ``derive`` finds in it, without reading its bytes."""
    decoder = _DECODERS.get(draft.kind)
    if decoder is not None:
        try:
            members = _check_members(msgspec.convert(draft.members, decoder.type))
        except _UNREADABLE:
            members = None
        if members is not None:
            return _derive_known(draft.subject, members)
    return _derive_other(draft.kind, draft.subject, msgspec.convert(draft.members, OtherMembers))


def _derive_known(subject: str, members: Members) -> Derived:
    if isinstance(members, DecidedMembers):
        return _derive_decision(subject, members)
    return _derive_result(subject, members)


def _derive_decision(subject: str, decision: DecidedMembers) -> Derived:
    """Derive columns, search text and names from a decision and the result in it."""
    judged = decision.result
    columns = EntryColumns(
        kind="decision",
        subject=subject,
        state="held" if decision.pending else judged.outcome if judged else NOT_JUDGED,
        gate=_read_column(decision.gate),
        execution=_read_column(decision.execution),
        outcome=judged.outcome if judged else _read_column(decision.outcome),
        judge=_read_column(judged.judge) if judged else None,
        score=judged.score if judged else None,
        decided_by=_read_column(decision.decided_by),
        ident=_read_column(decision.id),
        result=_read_column(judged.id) if judged else None,
        approval=_read_column(decision.approval_id),
        duration_ms=decision.duration_ms,
        cost_usd=judged.usage.cost_usd if judged and judged.usage else None,
    )
    values: list[tuple[str, object]] = [("outcome", decision.outcome), *_list_run_of(decision)]
    values += [] if judged is None else [("gate", judged.gate), ("execution", judged.execution), *_list_seats(judged)]
    content = decision.content or (judged.content if judged else None)
    judge = judged.judge if judged else ""
    ids = (subject, decision.id, judged.id if judged else "", decision.approval_id)
    text = make_search_text((*ids, decision.gate, decision.why, content, judge), decision.metadata)
    return Derived(columns, text, _make_names(columns, values))


def _derive_result(subject: str, result: JudgedMembers) -> Derived:
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
    return Derived(columns, text, _make_names(columns, _list_seats(result)))


def _derive_other(kind: str, subject: str, members: OtherMembers) -> Derived:
    """The columns of an entry that is neither, such as one about an approval, or a mapping of anybody's."""
    inner: dict[str, Any] | None = members.result if isinstance(members.result, dict) else None
    about = members if inner is None else OtherMembers(**{name: inner.get(name) for name in _ABOUT})
    score = about.score
    columns = EntryColumns(
        kind=kind,
        subject=subject,
        state=None,
        gate=_read_column(members.gate) or _read_column(about.gate),
        execution=_read_column(members.execution) or _read_column(about.execution),
        outcome=_read_column(about.outcome) or _read_column(members.outcome),
        judge=_read_column(about.judge),
        score=float(score) if isinstance(score, int | float) and not isinstance(score, bool) else None,
        decided_by=_read_column(members.decided_by),
        ident=None,
        result=_read_column(inner.get("id")) if inner is not None else None,
        approval=_read_column(members.approval),
        duration_ms=None,
        cost_usd=None,
    )
    noted = _list_noted(kind, members)
    text = _make_request_text(columns, members) if kind in ("approval.requested", AUDIT_REQUESTED) else None
    if inner is None and about.results is None and not noted:
        return Derived(columns, text, ())
    values = [] if inner is None else _list_contradictions(members, about)
    return Derived(columns, text, _make_names(columns, [*values, *_list_judges(about.results), *noted]))


_ABOUT = ("gate", "execution", "outcome", "judge", "score", "results")


def _list_contradictions(members: OtherMembers, about: OtherMembers) -> list[tuple[str, object]]:
    """List what both a mapping and the result in it may say, each otherwise."""
    names = ("outcome", "gate", "execution")
    return [(name, getattr(part, name)) for name in names for part in (members, about)]


RUN_REOPENED = "run.reopened"
"""The kind of entry that says that people let an agent's run go on."""


CALL_PASSED, CALL_RAN, CALL_UNCHECKED = "call.passed", "call.ran", "call.unchecked"
"""The kinds of entry that say of an agent's call that it was let pass, that it was made then, or made without that."""


AUDIT_REQUESTED, AUDIT_CLOSED, AUDIT_FAILED = "audit.requested", "audit.closed", "audit.failed"
"""The kinds of entry that say that people were asked about a content that went through, what came of it, or that they
could not be asked."""

AUDIT_PLANTED = "audit.planted"
"""The kind of entry that says that somebody made up the content of an audit, which is behind it."""

MODEL_CHANGED, MONITOR_RESET = "model.changed", "monitor.reset"
"""The kinds of entry that say that a gate's judge is another model, and that its audits begin anew."""

AUDIT_KINDS = (AUDIT_REQUESTED, AUDIT_CLOSED, AUDIT_FAILED, AUDIT_PLANTED, MODEL_CHANGED, MONITOR_RESET)
"""All from which the state of a gate's audits follows."""

AUDITED = "audited"
"""The kind of the name of a gate among the names of these entries."""


def name_call(run: str, call: str) -> str:
    """Name what became of one call of a run: whether it was let pass, and whether it was made."""
    return f"{run}\ncall\n{call}"


def name_trust(run: str) -> str:
    """Name what changes how far a run is trusted: refusals, denials, unchecked calls, and that people reopened it."""
    return f"{run}\ntrust"  # a run's own name has no line end, so that none is found as another's


def name_asked(run: str) -> str:
    """Name the requests for approval that a run has made."""
    return f"{run}\nasked"


def name_counted(run: str, metadata: Mapping[str, object]) -> str:
    """Name those of a run's requests that count together, by the metadata of one: about calls, or about no call.

    Else a server could fill, by what its tools return, all the room that the run has for its calls.
    """
    return f"{run}\nasked\n{'part' if is_part(metadata) else 'call'}"


def name_owned(owner: str) -> str:
    """Name the requests for approval of all runs of one owner."""
    return f"{owner}\nowned"


_OWNED = re.compile(r"(?P<owner>key:[0-9a-f]{12})[/:](?P<name>.+)")


def name_owned_run(owner: str, run: str) -> str:
    """Name a run of one owner among several, the keys of a server, so that no other owner can name it."""
    return f"{owner}/{run}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunName:
    """The name of an agent's run, in its parts."""

    owner: str | None
    """The owner, such as ``key:54343b4accb3``; ``None`` for a run that no key of a server has made."""
    name: str
    """The name that its program has for it."""


def split_run(run: str) -> RunName:
    """Split the name of a run into its owner and the name that its program has for it."""
    owned = _OWNED.fullmatch(run)
    return RunName(owner=None, name=run) if owned is None else RunName(owner=owned["owner"], name=owned["name"])


def find_run(metadata: object) -> str | None:
    """Find the run of an agent whose call some metadata are about."""
    call = metadata.get("call") if isinstance(metadata, dict) else None
    run = call.get("run_id") if isinstance(call, dict) else None
    return run if isinstance(run, str) and run and run.isprintable() else None


def is_part(metadata: Mapping[str, object]) -> bool:
    """Return whether metadata of a run are about a result, an answer or a prompt, and about no call."""
    call = metadata.get("call")
    return isinstance(call, dict) and "part" in call


def _list_run_of(decision: DecidedMembers) -> list[tuple[str, object]]:
    """List the columns for the run whose call a decision is about: its name, and that of its refusals if it was one."""
    run = find_run(decision.metadata) if decision.metadata else None
    if run is None:
        return []
    # With a basis, people were to be asked, and perhaps could not be: that is no refusal of the call. What a tool
    # returned says nothing of the call either: else a server could stop the run by what it answers.
    is_call = not decision.basis and not is_part(decision.metadata)
    # One that no judge could decide is noted too: content that silences its judge is not put to it for ever.
    judged = decision.result
    is_judged = decision.decided_by in ("judge", "rule") or (judged is not None and judged.outcome == "undecided")
    is_refused = not decision.allowed and not decision.pending and is_judged and is_call
    return [("run", run), *([("run", name_trust(run))] if is_refused else [])]


def _list_noted(kind: str, members: OtherMembers) -> list[tuple[str, object]]:
    """List the run that an entry about an approval or a run says something of, or the gate of an entry about audits."""
    if kind in AUDIT_KINDS:
        return [(AUDITED, members.gate)]
    if kind == "approval.requested":
        return [("run", name) for name in _list_asked(members.metadata)]
    run = find_run({"call": {"run_id": members.run}})
    if kind in (CALL_PASSED, CALL_RAN, CALL_UNCHECKED) and run is not None:
        names = [name_call(run, members.call)] if isinstance(members.call, str) else []
        names += [name_trust(run)] if kind == CALL_UNCHECKED else []
        return [("run", run), *[("run", name) for name in names]]
    if kind not in ("approval.closed", RUN_REOPENED) or run is None:
        return []
    is_noted = kind == RUN_REOPENED or (members.status == "denied" and members.decided_by == "human")
    return [("run", run), *([("run", name_trust(run))] if is_noted else [])]


def _list_asked(metadata: object) -> list[str]:
    """List the names under which a request about a run's call is found and counted."""
    run = find_run(metadata)
    if run is None or not isinstance(metadata, dict):
        return []
    owner = split_run(run).owner
    owned = [] if owner is None else [name_owned(owner)]
    return [run, name_asked(run), name_counted(run, metadata), *owned]


def _list_seats(result: JudgedMembers) -> list[tuple[str, object]]:
    return _list_judges(result.results)


def _list_judges(seats: object) -> list[tuple[str, object]]:
    if not isinstance(seats, list):
        return []
    return [("judge", seat.get("judge")) for seat in seats if isinstance(seat, dict)]


def _make_names(columns: EntryColumns, values: Iterable[tuple[str, object]]) -> tuple[tuple[str, str], ...]:
    """List what an entry says beside its columns, each once."""
    named = {
        (name, text): None for name, value in values if value is not None and (text := _read_column(value)) is not None
    }
    return tuple([(name, text) for name, text in named if getattr(columns, name, None) != text]) if named else ()


def _read_column(text: object) -> str | None:
    """Read the text of a column, which every store can hold and which can be asked for; ``None`` for anything else."""
    # Most members of most entries.
    if text is None:
        return None
    return text if isinstance(text, str) and len(text) <= MOST_SUBJECT and can_store(text) else None


def _make_request_text(columns: EntryColumns, members: OtherMembers) -> str:
    """Make the text by which a request for approval is found in the queue."""
    result = members.result if isinstance(members.result, dict) else {}
    texts = [members.message, result.get("reasoning"), result.get("detail")]
    ids = (columns.subject, columns.approval, columns.result, columns.gate, columns.judge)
    return make_search_text((*ids, *(text for text in texts if isinstance(text, str))), members.metadata)


def write_search_text(seq: int, derived: Derived | None) -> tuple[int, str] | None:
    """Write the row of the search index for an entry, which is found by its place too; ``None`` if it has none."""
    return None if derived is None or derived.text is None else (seq, f"{seq}\n{derived.text}")


# ---------------------------------------------------------------- the tables


@cache
def make_column_tables() -> MetaData:
    """The tables' description; every database makes its own form of it."""
    from sqlalchemy import REAL, BigInteger, Column, Double, Index, Integer, MetaData, Table, Text

    place = BigInteger().with_variant(Integer(), "sqlite")
    number = Double().with_variant(REAL(), "sqlite")
    types = {"seq": place, "score": number, "duration_ms": number, "cost_usd": number}
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
    # By its hash: the other kind of index refuses a text of some thousand bytes, and with it the whole entry. Of the
    # few that have one, since each append pays for every index; the rest is found by reading this narrow table.
    asked = table.c.approval.is_not(None)
    Index(
        f"{ENTRY_COLUMNS}_approval",
        table.c.approval,
        postgresql_using="hash",
        sqlite_where=asked,
        postgresql_where=asked,
    )
    names = Table(
        ENTRY_NAMES,
        tables,
        Column("seq", place, nullable=False, index=True),
        Column("name", Text, nullable=False),
        Column("value", Text, nullable=False),
        sqlite_strict=True,
    )
    Index(f"{ENTRY_NAMES}_value", names.c.value, postgresql_using="hash")
    return tables


def find_columns() -> Table:
    """The table of columns."""
    return make_column_tables().tables[ENTRY_COLUMNS]


def write_condition(name: str) -> str:
    """The condition that an entry says this ``judge``, ``outcome``, ``gate`` or the like, in a seat too.

    The value is asked for as often as there are question marks, and the columns are called ``c``.
    """
    named = f"SELECT seq FROM {ENTRY_NAMES} WHERE value = ? AND name = '{name}'"  # noqa: S608 - the names are ours, the values are bound
    return f"(c.{name} = ? OR c.seq IN ({named}))" if name in ALL_COLUMNS else f"c.seq IN ({named})"


def write_audited_condition() -> str:
    """The condition that an entry behind a place is about the audits of a gate: asked for are the place and the gate.

    A gate asks with each call, and most often nothing is new. So the few entries behind the place are looked at, and
    not the thousands of its audits: a value that is computed is not looked for in the index of values.
    """
    return f"c.seq IN (SELECT seq FROM {ENTRY_NAMES} WHERE seq > ? AND value || '' = ? AND name = '{AUDITED}')"  # noqa: S608 - as above


def insert_columns(statements: Statements, derived: Iterable[tuple[int, str, Derived | None]]) -> None:
    """Write the columns of some new entries, each with its place and time."""
    columns: list[tuple[Any, ...]] = []
    names: list[tuple[int, str, str]] = []
    for seq, at, one in derived:
        if one is None:
            continue
        columns.append((seq, at, *astuple(one.columns)))
        names += [(seq, *pair) for pair in one.names]
    statements.insert(ENTRY_COLUMNS, ALL_COLUMNS, columns)
    statements.insert(ENTRY_NAMES, ("seq", "name", "value"), names)


_TABLES = (ENTRY_COLUMNS, ENTRY_NAMES)


def delete_columns(statements: Statements, seq: int) -> None:
    """Delete what is derived from an entry whose payload is erased: its columns, its names, and its search text.

    After the last of several, call ``purge_trigrams``, so that the index keeps nothing of them either.
    """
    delete_text(statements, seq)
    for table in _TABLES:
        statements.execute(f"DELETE FROM {table} WHERE seq = ?", (seq,))  # noqa: S608 - the name is ours


def find_difference(
    statements: Statements, rows: Sequence[Row], tables: Collection[str] = (SEARCH_STATE,)
) -> tuple[int, str] | None:
    """Find the first of some entries, which follow each other, whose columns are not what they are derived from.

    Returns its place, and what differs; ``None`` if nothing does. Search texts are compared where the index of the
    database, which has these ``tables``, says that they are there.
    """
    if not rows:
        return None
    state = read_state(statements) if SEARCH_STATE in tables else None
    stored = _load(statements, rows[0][SEQ], rows[-1][SEQ], state)
    for row in rows:
        problem = _compare(row, derive(row), stored)
        if problem is not None:
            return row[SEQ], problem
    return None


def find_stray(statements: Statements, last: int) -> int | None:
    """Find a place that has columns, and at which no entry can be: behind the last one, or before the first."""
    lowest = [
        seq
        for table in _TABLES
        for (seq,) in statements.fetch(f"SELECT min(seq) FROM {table} WHERE seq > ? OR seq < 1", (last,))  # noqa: S608 - the name is ours
    ]
    return min((seq for seq in lowest if seq is not None), default=None)


@dataclass(frozen=True, slots=True)
class _Stored:
    """The rows that are stored beside some entries, by their places."""

    columns: dict[int, tuple[Any, ...]]
    names: dict[int, list[tuple[str, str]]]
    texts: dict[int, str]
    searched: range
    """The places whose search texts are there."""


def _load(statements: Statements, first: int, last: int, state: SearchState | None) -> _Stored:
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
        return _Stored(columns, names, {}, range(0))
    texts: dict[int, str] = {seq: text for seq, text in fetch(SEARCH_TEXTS, ("seq", "text"))}  # noqa: C416 - names what the rows hold
    return _Stored(columns, names, texts, range(state.since, state.last + 1))


def _compare(row: Row, derived: Derived | None, stored: _Stored) -> str | None:
    """Say how what is stored beside an entry differs from what is derived from it; ``None`` where it does not."""
    seq, at = row[SEQ], row[AT]
    columns, text, names = stored.columns.get(seq), stored.texts.get(seq), stored.names.get(seq)
    text = text if seq in stored.searched else None
    if derived is None:
        nothing = columns is None and text is None and names is None
        return None if nothing else "has columns, and no payload that they could be derived from"
    if columns is None:
        return "has no columns beside it, so that no list shows it"
    wanted = (seq, at, *astuple(derived.columns))
    if columns != wanted:
        for name, value, stored_value in zip(ALL_COLUMNS, wanted, columns, strict=True):
            if stored_value != value:
                return f"is listed with {name} {_show(stored_value)}, and its payload says {_show(value)}"
    if seq in stored.searched and (seq, text) != (write_search_text(seq, derived) or (seq, None)):
        return "is searched by another text than its payload has"
    if (names or derived.names) and sorted(derived.names) != sorted(names or ()):
        return "is found under other names than its payload has"
    return None


def _show(value: object) -> str:
    return clean(repr(value)[:80], keep_lines=False)
