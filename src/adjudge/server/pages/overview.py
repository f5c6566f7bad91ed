"""``/``: how decisions ended over time, by gate, and what needs somebody."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from math import ceil, floor, log10
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from starlette.requests import Request

from adjudge.formats.numbers import format_rate
from adjudge.server.caller import AnyCaller, Caller
from adjudge.server.database import get_now
from adjudge.server.pages.ledger_check import Checked
from adjudge.server.pages.page import add_page
from adjudge.server.recorded import MOST_READ, STATES, Recorded, read_recorded
from adjudge.server.state import CurrentState, ServerState
from adjudge.templates.figures import format_count, format_duration, format_left
from adjudge.trust.intervals import Share

router = APIRouter()

PERIODS = {"7d": 7, "14d": 14, "30d": 30, "90d": 90}

_SAID = {
    "passed": "by a judge or a rule",
    "failed": "by a judge or a rule",
    "undecided": "without a verdict",
    "held": "a person was asked",
}

_MORE_UNDECIDED = 0.03
"""By how much the share of undecided ones has to rise over its earlier share to be mentioned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One way of ending: its share with its interval, and how it was before."""

    state: str
    share: Share
    said: str
    change: float | None
    """In points against the period before; ``None`` where there was nothing before."""
    days: tuple[float, ...]
    """Its share of each day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """How long judgements took, in milliseconds without people's time; ``None`` where there were none."""

    p50: float | None
    p95: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What judgements cost, as far as their price is known."""

    usd: float
    unknown: int
    """How many judgements have no known price, and are not in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """Some round numbers from 0 up, as they are drawn and as they are written."""

    ticks: tuple[float, ...]
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GateFigures:
    """What a gate decided."""

    gate: str
    judges: str
    number: int
    figures: tuple[Figure, ...]
    times: Times
    cost: float | None
    """Dollars for 1,000 decisions; ``None`` where no price is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Something that waits for somebody."""

    state: str
    word: str
    say: str
    path: str
    link: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """The judgements of one day."""

    day: datetime
    name: str
    counts: tuple[tuple[str, int], ...]
    times: Times
    spent: Spent


@dataclass(frozen=True, slots=True, kw_only=True)
class OverviewView:
    """The figures of a period."""

    period: str
    days: int
    number: int
    begin: datetime
    end: datetime
    needs: tuple[Need, ...]
    figures: tuple[Figure, ...]
    daily: tuple[Day, ...]
    axis: Axis
    times: Times
    time_axis: Axis
    spent: Spent
    cost_axis: Axis
    gates: tuple[GateFigures, ...]
    read_since: datetime | None
    """When the oldest judgement was recorded that was read; ``None`` where all of the period were."""
    limit: int


async def view_overview(
    request: Request,
    state: CurrentState,
    caller: AnyCaller,
    period: Annotated[str, Query(max_length=10)] = "14d",
) -> OverviewView:
    """How what was judged ended."""
    chosen, now = period if period in PERIODS else "14d", get_now()
    since = _find_first(chosen, now) - timedelta(days=PERIODS[chosen])
    read, last = await read_recorded(state.ledger, since=since, most=MOST_READ)
    # In a thread: so many rows take a while, in which no gate would be answered.
    view = await asyncio.to_thread(_make_view, read, caller, chosen, now, is_whole=last is None)
    return replace(view, needs=await _list_needs(request, state, caller, view.gates, now))


def _make_view(read: Sequence[Recorded], caller: Caller, chosen: str, now: datetime, *, is_whole: bool) -> OverviewView:
    """All figures of a period, without what waits for somebody."""
    days, first = PERIODS[chosen], _find_first(chosen, now)
    seen = [row for row in read if caller.covers("read", row.gate)]
    # People's answer to a held one is recorded as a decision of its own; it was counted when it was held.
    counted = [row for row in seen if row.state in STATES and (row.held or row.approval_id is None)]
    current = [row for row in counted if row.at >= first]
    # A period of which a part was read is not compared: its shares are those of some other days.
    earlier = [row for row in counted if row.at < first] if is_whole else []
    daily = tuple(_list_days(current, first, days))
    gates = tuple(
        _make_gate(
            gate,
            [row for row in current if row.gate == gate],
            [row for row in earlier if row.gate == gate],
            first,
            days,
        )
        for gate in sorted({row.gate for row in current if row.gate})
    )
    tallest = max((sum(number for _, number in day.counts) for day in daily), default=0)
    return OverviewView(
        period=chosen,
        days=days,
        number=len(current),
        begin=first,
        end=now,
        needs=(),
        figures=_make_figures(current, earlier, first, days),
        daily=daily,
        axis=_make_axis(tallest, format_count, least=1),
        times=_make_times(current),
        time_axis=_make_axis(max((day.times.p95 or 0.0 for day in daily), default=0.0), format_duration),
        spent=_add_costs(current),
        cost_axis=_make_axis(max((day.spent.usd for day in daily), default=0.0), _format_cents),
        gates=gates,
        read_since=read[-1].at if not is_whole and read[-1].at >= first else None,
        limit=MOST_READ,
    )


def _find_first(period: str, now: datetime) -> datetime:
    """The beginning of the first day of a period."""
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return today - timedelta(days=PERIODS[period] - 1)


def _make_axis(most: float, say: Callable[[float], str], least: float = 0.0) -> Axis:
    """Three to six round numbers from 0 to at least ``most``, which are ``least`` apart or more."""
    if most <= 0:
        ticks: tuple[float, ...] = (0.0, 1.0)
    else:
        size = 10 ** floor(log10(most / 4))
        step = max(least, next(size * part for part in (1, 2, 5, 10) if size * part * 4 >= most * (1 - 1e-9)))
        ticks = tuple(step * number for number in range(ceil(most / step - 1e-9) + 1))
    return Axis(ticks=ticks, words=tuple(say(round(tick, 9)) if tick else "0" for tick in ticks))


def _format_cents(dollars: float) -> str:
    digits = max(2, -floor(log10(dollars))) if 0 < dollars < 1 else 2
    return f"${dollars:,.{digits}f}"


def _list_days(rows: Sequence[Recorded], first: datetime, days: int) -> Iterator[Day]:
    found: list[list[Recorded]] = [[] for _ in range(days)]
    for row in rows:
        place = (row.at - first).days
        if 0 <= place < days:
            found[place].append(row)
    for place, those in enumerate(found):
        day, counts = first + timedelta(days=place), Counter(row.state for row in those)
        yield Day(
            day=day,
            name=str(day.day),
            counts=tuple((state, counts[state]) for state in STATES),
            times=_make_times(those),
            spent=_add_costs(those),
        )


def _make_times(rows: Sequence[Recorded]) -> Times:
    times = sorted(row.duration_ms for row in rows)
    if not times:
        return Times(p50=None, p95=None)
    p50, p95 = (times[ceil(share * len(times)) - 1] for share in (0.5, 0.95))
    return Times(p50=p50, p95=p95)


def _add_costs(rows: Sequence[Recorded]) -> Spent:
    costs = [row.cost_usd for row in rows if row.cost_usd is not None]
    # A rule costs nothing: only a judge's price can be unknown.
    unknown = sum(row.cost_usd is None and bool(row.judge) and row.decided_by != "rule" for row in rows)
    return Spent(usd=sum(costs), unknown=unknown)


def _make_figures(
    rows: Sequence[Recorded], earlier: Sequence[Recorded], first: datetime, days: int
) -> tuple[Figure, ...]:
    counts, before = Counter(row.state for row in rows), Counter(row.state for row in earlier)
    daily = tuple(_list_days(rows, first, days))
    found = []
    for place, state in enumerate(STATES):
        share = Share(count=counts[state], of=len(rows))
        change = 100 * (share.rate - before[state] / len(earlier)) if earlier and share.rate is not None else None
        shares = tuple(_divide(day.counts[place][1], sum(number for _, number in day.counts)) for day in daily)
        found.append(Figure(state=state, share=share, said=_SAID[state], change=change, days=shares))
    return tuple(found)


def _divide(number: int, of: int) -> float:
    return number / of if of else 0.0


def _make_gate(
    gate: str, rows: Sequence[Recorded], earlier: Sequence[Recorded], first: datetime, days: int
) -> GateFigures:
    costs = [row.cost_usd for row in rows if row.cost_usd is not None]
    return GateFigures(
        gate=gate,
        judges=", ".join(sorted({row.judge for row in rows if row.judge})),
        number=len(rows),
        figures=_make_figures(rows, earlier, first, days),
        times=_make_times(rows),
        cost=1000 * sum(costs) / len(costs) if costs else None,
    )


async def _list_needs(
    request: Request, state: ServerState, caller: Caller, figures: Sequence[GateFigures], now: datetime
) -> tuple[Need, ...]:
    needs = await _find_waiting(state, caller, now)
    needs += _find_undecided(figures)
    checked: Checked | None = getattr(request.app.state, "ledger_checked", None)
    if checked is not None and not checked.found.valid:
        needs.append(
            Need(
                state="failed",
                word="the ledger was changed",
                say=checked.found.detail,
                path="/ledger" if caller.permissions.gates is None else "",
                link="See what was found",
            )
        )
    return tuple(needs)


async def _find_waiting(state: ServerState, caller: Caller, now: datetime) -> list[Need]:
    waiting = [item for item in await state.approvals.list_queue() if caller.covers("read", item.gate)]
    if not waiting:
        return []
    ends = [item.expires_at for item in waiting if item.expires_at is not None]
    left = format_left((min(ends) - now).total_seconds()) if ends else ""
    word = f"{format_count(len(waiting), 'waits', 'wait')} for a person"
    say = f"The next expires in {left}." if left else "None of them expires."
    path = "/approvals" if caller.may("approve") else ""
    return [Need(state="held", word=word, say=say, path=path, link="Open the queue")]


def _find_undecided(figures: Sequence[GateFigures]) -> list[Need]:
    found = []
    for item in figures:
        figure = item.figures[STATES.index("undecided")]
        rate, low = figure.share.rate, figure.share.interval
        # Only where it is more than chance: even the lower limit is above what it was before.
        if figure.change is None or rate is None or low is None:
            continue
        before = rate - figure.change / 100
        if figure.change > 100 * _MORE_UNDECIDED and low[0] > before:
            say = f"{format_rate(before)} in the period before, {format_rate(rate)} in this one."
            path = f"/results?{urlencode({'gate': item.gate, 'outcome': 'undecided', 'when': 'all'})}"
            word = f"{item.gate}: more undecided"
            found.append(
                Need(state="undecided", word=word, say=say, path=path, link=f"See the {figure.share.count:.0f}")
            )
    return found


add_page(router, "/", view_overview, template="overview.html", scope="read", twin="/overview.json", by_gate=True)
