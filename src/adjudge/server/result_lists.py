"""Lists and figures of recorded decisions and results.

Searches and sums use the table of columns beside the ledger's entries. What a list shows is read from the entries.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import ceil
from typing import TYPE_CHECKING, Any

from adjudge.formats.times import get_now
from adjudge.ledger.columns import STATES, get_columns_table, make_column_tables
from adjudge.ledger.entry import format_time
from adjudge.ledger.ledger import Ledger
from adjudge.ledger.search_index import find_unsearched, match_entries
from adjudge.ledger.search_text import read_query
from adjudge.ledger.short_results import RecordedResult, make_recorded
from adjudge.ledger.store import make_table
from adjudge.server.entry_lookup import read_closers

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection


# ---------------------------------------------------------------- lists


PERIODS = {"day": 1, "week": 7, "month": 30, "quarter": 90, "all": None}
"""The periods of a list, in days."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFilters:
    """The filters of a list of results; an empty text is no condition."""

    q: str = ""
    """Words that are all in its texts, metadata, ids or digest, and filters, as ``read_query`` reads them."""
    gate: str = ""
    outcome: str = ""
    """One of ``STATES``."""
    by: str = ""
    judge: str = ""
    when: str = "week"
    """One of ``PERIODS``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultList:
    """The newest results that match, and the figures of all that do."""

    rows: tuple[RecordedResult, ...]
    more: bool
    """True if there are older ones behind these rows."""
    counts: dict[str, int]
    """The numbers that match, by their state."""
    gates: tuple[str, ...]
    """The gates of all results of the time, whether they match or not."""
    judges: tuple[str, ...]
    unsearched: int = 0
    """The last place up to which entries are not in the search index yet, where words were searched; else 0."""


async def list_results(
    ledger: Ledger,
    filters: ResultFilters,
    *,
    gates: Collection[str] | None,
    before: int | None = None,
    most: int,
) -> ResultList:
    """List the results that match all filters, the newest first; ``gates`` are those that the caller may see, or all.

    ``before`` is the number of an entry: only older entries are listed. The figures do not depend on it.
    """
    results = await _read_list(ledger, filters, gates=gates, before=before, most=most)
    subjects = {row.subject for row in results.rows if row.approval_id}
    closers = await read_closers(ledger, subjects) if subjects else {}
    rows = tuple([replace(row, people=closers.get(row.approval_id or "")) for row in results.rows])
    return replace(results, rows=rows)


async def _read_list(
    ledger: Ledger, filters: ResultFilters, *, gates: Collection[str] | None, before: int | None, most: int
) -> ResultList:
    """Read the newest matching results, the figures of all that match, and the gates and judges to filter by.

    ``before`` is the number of an entry: only older entries are among the rows.
    """
    from sqlalchemy import func, null, select

    columns, days = get_columns_table(), PERIODS[filters.when]
    since = None if days is None else get_now() - timedelta(days=days)
    is_visible = [columns.c.state.is_not(None), *_list_restrictions(gates, since)]
    query = read_query(filters.q)

    def fetch(connection: Connection) -> ResultList:
        """Read rows, figures and choices in one transaction."""
        conditions = [*is_visible, *_list_conditions(filters), ~_was_recorded_again()]
        conditions += [match_entries(connection, query, columns.c.seq)] if query else []
        matches = select(columns.c.seq, columns.c.state).where(*conditions)
        # One statement, so that a search is done once for the figures and the rows. Without one, the newest rows are
        # found at once, and only the figures go through all that match.
        matching = matches.cte("matching") if query else matches.subquery()
        newest = select(matching.c.seq).order_by(matching.c.seq.desc()).limit(most + 1)
        newest = (newest if before is None else newest.where(matching.c.seq < before)).subquery()
        counts = select(matching.c.state, func.count()).group_by(matching.c.state)
        # A row is either a state and how many entries have it, or null and the number of one entry to show.
        rows = connection.execute(counts.union_all(select(null(), newest.c.seq))).all()
        seqs = sorted((number for state, number in rows if state is None), reverse=True)
        pairs = connection.execute(select(columns.c.gate, columns.c.judge).where(*is_visible).distinct()).all()
        known_gates = tuple(sorted({gate for gate, _ in pairs if gate}))
        judges = tuple(sorted({judge for _, judge in pairs if judge}))
        return ResultList(
            rows=_read_rows(connection, seqs[:most]),
            more=len(seqs) > most,
            counts={state: number for state, number in rows if state is not None},
            gates=known_gates,
            judges=judges,
            unsearched=find_unsearched(connection) if query else 0,
        )

    return await ledger.look(fetch, tables=make_column_tables()) or _NO_RESULTS


_NO_RESULTS = ResultList(rows=(), more=False, counts={}, gates=(), judges=())


def _list_restrictions(gates: Collection[str] | None, since: datetime | None) -> list[ColumnElement[bool]]:
    """List the SQL conditions that entries are of these gates and not older than a time; ``None`` restricts nothing."""
    columns = get_columns_table()
    conditions: list[ColumnElement[bool]] = []
    if gates is not None:
        conditions.append(columns.c.gate.in_(sorted(gates)))
    if since is not None:
        conditions.append(columns.c.at >= format_time(since))
    return conditions


def _list_conditions(filters: ResultFilters) -> list[ColumnElement[bool]]:
    """List the SQL conditions of the filters that are set, without the words of the search and the period."""
    columns = get_columns_table()
    texts = {"gate": filters.gate, "state": filters.outcome, "decided_by": filters.by, "judge": filters.judge}
    return [columns.c[name] == text for name, text in texts.items() if text]


def _was_recorded_again() -> ColumnElement[bool]:
    """Make the SQL condition that an entry is a held decision that was recorded again once people had decided.

    Lists leave it out, because the row of the second entry shows both.
    """
    from sqlalchemy import exists

    columns = get_columns_table()
    later = columns.alias()
    is_decided = (later.c.approval == columns.c.approval) & later.c.state.is_not(None) & (later.c.state != "held")
    return (columns.c.state == "held") & exists().where(is_decided)


def _read_rows(connection: Connection, seqs: Sequence[int]) -> tuple[RecordedResult, ...]:
    """Read the entries with these numbers as rows, the newest first; entries that cannot be shown are left out."""
    table = make_table()
    columns = (table.c.seq, table.c.at, table.c.kind, table.c.subject, table.c.payload)
    statement = table.select().with_only_columns(*columns).where(table.c.seq.in_(seqs)).order_by(table.c.seq.desc())
    rows = []
    for seq, at, kind, subject, payload in connection.execute(statement):
        rows.append(
            make_recorded(seq, datetime.fromisoformat(at), kind, subject, None if payload is None else bytes(payload))
        )
    return tuple([row for row in rows if row is not None])


# ---------------------------------------------------------------- figures


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The results of one day, gate, judge and state."""

    day: str
    """As ``2026-11-20``, in UTC."""
    gate: str | None
    judge: str | None
    state: str
    number: int
    cost_usd: float
    priced: int
    """The number of them with a known price, which is in ``cost_usd``."""
    unknown: int
    """The number that a judge answered and whose cost nobody reported, as that of a function; a rule costs nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Percentiles of the durations of judgements, in milliseconds without the time of people; ``None`` for none."""

    p50: float | None = None
    p95: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tallies:
    """The figures of some days."""

    tallies: tuple[Tally, ...] = ()
    times: Times = Times()
    by_day: dict[str, Times]
    by_gate: dict[str, Times]


async def tally_results(ledger: Ledger, *, gates: Collection[str] | None, since: datetime, first: datetime) -> Tallies:
    """Sum up the decisions and results since a day, in one tally for each day, gate, judge and state.

    Durations count only from the day ``first`` on, which may be later than ``since``. A held decision is recorded a
    second time once people have decided; it counts once, as held.
    """
    from sqlalchemy import case, func, select

    columns = get_columns_table()
    day = func.substr(columns.c.at, 1, 10).label("day")
    is_counted = columns.c.state.in_(STATES) & ((columns.c.state == "held") | columns.c.approval.is_(None))
    is_cost_unknown = columns.c.cost_usd.is_(None) & (columns.c.judge != "") & (columns.c.decided_by != "rule")
    keys = (day, columns.c.gate, columns.c.judge, columns.c.state)
    figures = (func.count(), func.coalesce(func.sum(columns.c.cost_usd), 0.0), func.count(columns.c.cost_usd))
    is_timed = columns.c.duration_ms.is_not(None) & (columns.c.at >= format_time(first))

    def fetch(connection: Connection) -> Tallies:
        """Fetch one row for each group, and make its tally and the percentiles."""
        # The durations of a group are one JSON list: a row for each judgement would take SQLAlchemy ten times as long.
        make_list = func.json_group_array if connection.dialect.name == "sqlite" else func.json_agg
        durations = make_list(columns.c.duration_ms).filter(is_timed)
        statement = select(*keys, *figures, func.sum(case((is_cost_unknown, 1), else_=0)), durations)
        statement = statement.where(is_counted, *_list_restrictions(gates, since)).group_by(*keys)
        return _make_tallies(connection.execute(statement).all())

    return await ledger.look(fetch, tables=make_column_tables()) or Tallies(by_day={}, by_gate={})


def _make_tally(columns: Sequence[Any]) -> Tally:
    """Make a tally from the columns of a row, without the durations behind them."""
    day, gate, judge, state, number, cost, priced, unknown = columns
    return Tally(
        day=day, gate=gate, judge=judge, state=state, number=number, cost_usd=cost, priced=priced, unknown=unknown
    )


def _make_tallies(rows: Sequence[Sequence[Any]]) -> Tallies:
    """Make the tallies of rows, with percentiles of all durations, and of those of each day and of each gate.

    The last column of a row is the list of the durations of its group.
    """
    all_durations: list[float] = []
    by_day: defaultdict[str, list[float]] = defaultdict(list)
    by_gate: defaultdict[str, list[float]] = defaultdict(list)
    tallies = []
    for *columns, json_durations in rows:
        tallies.append(_make_tally(columns))
        day, gate, *_ = columns
        # PostgreSQL returns a list, or null for an empty one; SQLite returns the JSON text.
        durations = json.loads(json_durations) if isinstance(json_durations, str) else json_durations or ()
        for target in (all_durations, by_day[day], by_gate[gate]):
            target.extend(durations)
    return Tallies(
        tallies=tuple(tallies),
        times=_make_times(all_durations),
        by_day={day: _make_times(values) for day, values in by_day.items()},
        by_gate={gate: _make_times(values) for gate, values in by_gate.items()},
    )


def _make_times(durations: list[float]) -> Times:
    """Compute the median and the 95th percentile of durations, by the nearest rank: each is one of the durations.

    Sorts the list in place.
    """
    if not durations:
        return Times()
    durations.sort()
    p50, p95 = (durations[ceil(share * len(durations)) - 1] for share in (0.5, 0.95))
    return Times(p50=p50, p95=p95)
