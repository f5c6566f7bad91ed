"""Lists and figures of recorded decisions and results.

What is looked for is in the columns beside the ledger's entries; what is shown is read from the entries themselves.
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
from adjudge.ledger.columns import STATES, find_columns, make_column_tables
from adjudge.ledger.entry import format_time
from adjudge.ledger.ledger import Ledger
from adjudge.ledger.search_index import find_unsearched, match_entries
from adjudge.ledger.search_text import read_query
from adjudge.ledger.short_results import RecordedResult, make_recorded
from adjudge.ledger.store import make_table
from adjudge.server.entry_lookup import read_closed

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

    ``before`` is the place of an entry; only rows in front of it are returned. The figures do not depend on it.
    """
    results = await _read_list(ledger, filters, gates=gates, before=before, most=most)
    subjects = {row.subject for row in results.rows if row.approval_id}
    closed = await read_closed(ledger, subjects) if subjects else {}
    rows = tuple([replace(row, people=closed.get(row.approval_id or "")) for row in results.rows])
    return replace(results, rows=rows)


async def _read_list(
    ledger: Ledger, filters: ResultFilters, *, gates: Collection[str] | None, before: int | None, most: int
) -> ResultList:
    """Read the newest results before a place that match, their figures, and the gates and judges to choose from."""
    from sqlalchemy import func, null, select

    columns, days = find_columns(), PERIODS[filters.when]
    since = None if days is None else get_now() - timedelta(days=days)
    visible = [columns.c.state.is_not(None), *_list_restrictions(gates, since)]
    query = read_query(filters.q)

    def fetch(connection: Connection) -> ResultList:
        """Read rows, figures and choices in one transaction."""
        conditions = [*visible, *_list_conditions(filters), ~_was_recorded_again()]
        conditions += [match_entries(connection, query, columns.c.seq)] if query else []
        matches = select(columns.c.seq, columns.c.state).where(*conditions)
        # One statement, so that a search is done once for the figures and the rows. Without one, the newest rows are
        # found at once, and only the figures go through all that match.
        matching = matches.cte("matching") if query else matches.subquery()
        newest = select(matching.c.seq).order_by(matching.c.seq.desc()).limit(most + 1)
        newest = (newest if before is None else newest.where(matching.c.seq < before)).subquery()
        counts = select(matching.c.state, func.count()).group_by(matching.c.state)
        rows = connection.execute(counts.union_all(select(null(), newest.c.seq))).all()
        seqs = sorted((number for state, number in rows if state is None), reverse=True)
        pairs = connection.execute(select(columns.c.gate, columns.c.judge).where(*visible).distinct()).all()
        known_gates, judges = (tuple(sorted({pair[place] for pair in pairs if pair[place]})) for place in (0, 1))
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
    """List the conditions that entries are of these gates and not before a time; ``None`` restricts nothing."""
    columns = find_columns()
    conditions: list[ColumnElement[bool]] = []
    if gates is not None:
        conditions.append(columns.c.gate.in_(sorted(gates)))
    if since is not None:
        conditions.append(columns.c.at >= format_time(since))
    return conditions


def _list_conditions(filters: ResultFilters) -> list[ColumnElement[bool]]:
    columns = find_columns()
    texts = {"gate": filters.gate, "state": filters.outcome, "decided_by": filters.by, "judge": filters.judge}
    return [columns.c[name] == text for name, text in texts.items() if text]


def _was_recorded_again() -> ColumnElement[bool]:
    """Make the condition that a held decision was recorded again once people decided: one row shows both."""
    from sqlalchemy import exists

    columns = find_columns()
    later = columns.alias()
    end = (later.c.approval == columns.c.approval) & later.c.state.is_not(None) & (later.c.state != "held")
    return (columns.c.state == "held") & exists().where(end)


def _read_rows(connection: Connection, places: Sequence[int]) -> tuple[RecordedResult, ...]:
    """Read the rows of the entries at these places, the latest first; entries that cannot be shown are left out."""
    table = make_table()
    columns = (table.c.seq, table.c.at, table.c.kind, table.c.subject, table.c.payload)
    statement = table.select().with_only_columns(*columns).where(table.c.seq.in_(places)).order_by(table.c.seq.desc())
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
    """Count what was recorded ``since`` a day by day, gate, judge and state; times are those from the ``first`` day on.

    People's answer to a held decision is recorded as a decision of its own; it was counted when it was held.
    """
    from sqlalchemy import case, func, select

    columns = find_columns()
    day = func.substr(columns.c.at, 1, 10).label("day")
    counted = columns.c.state.in_(STATES) & ((columns.c.state == "held") | columns.c.approval.is_(None))
    unpriced = columns.c.cost_usd.is_(None) & (columns.c.judge != "") & (columns.c.decided_by != "rule")
    keys = (day, columns.c.gate, columns.c.judge, columns.c.state)
    figures = (func.count(), func.coalesce(func.sum(columns.c.cost_usd), 0.0), func.count(columns.c.cost_usd))
    timed = columns.c.duration_ms.is_not(None) & (columns.c.at >= format_time(first))

    def fetch(connection: Connection) -> Tallies:
        # As one value for each group: a row for each judgement takes the toolkit ten times as long.
        gather = func.json_group_array if connection.dialect.name == "sqlite" else func.json_agg
        durations = gather(columns.c.duration_ms).filter(timed)
        statement = select(*keys, *figures, func.sum(case((unpriced, 1), else_=0)), durations)
        statement = statement.where(counted, *_list_restrictions(gates, since)).group_by(*keys)
        return _make_tallies(connection.execute(statement).all())

    return await ledger.look(fetch, tables=make_column_tables()) or Tallies(by_day={}, by_gate={})


def _make_tally(members: Sequence[Any]) -> Tally:
    day, gate, judge, state, number, cost, priced, unknown = members
    return Tally(
        day=day, gate=gate, judge=judge, state=state, number=number, cost_usd=cost, priced=priced, unknown=unknown
    )


def _make_tallies(rows: Sequence[Sequence[Any]]) -> Tallies:
    """Make the tallies of rows, and the times of all durations, of those of each day and of each gate."""
    every: list[float] = []
    by_day: defaultdict[str, list[float]] = defaultdict(list)
    by_gate: defaultdict[str, list[float]] = defaultdict(list)
    tallies = []
    for *members, gathered in rows:
        tallies.append(_make_tally(members))
        day, gate, *_ = members
        durations = json.loads(gathered) if isinstance(gathered, str) else gathered or ()
        for among in (every, by_day[day], by_gate[gate]):
            among.extend(durations)
    return Tallies(
        tallies=tuple(tallies),
        times=_make_times(every),
        by_day={day: _make_times(values) for day, values in by_day.items()},
        by_gate={gate: _make_times(values) for gate, values in by_gate.items()},
    )


def _make_times(durations: list[float]) -> Times:
    """Find the median and the 95th percentile of durations; by rank, so each is a real duration."""
    if not durations:
        return Times()
    durations.sort()
    p50, p95 = (durations[ceil(share * len(durations)) - 1] for share in (0.5, 0.95))
    return Times(p50=p50, p95=p95)
