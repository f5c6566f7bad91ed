"""``/``: how decisions ended over time, by gate, and what needs somebody."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from starlette.requests import Request

from adjudge.formats.numbers import format_rate
from adjudge.ledger.columns import STATES
from adjudge.server.caller import AnyCaller, Caller
from adjudge.server.database import get_now
from adjudge.server.pages.ledger_check import Checked
from adjudge.server.pages.page import add_page
from adjudge.server.recorded import Tally, Times, tally_results
from adjudge.server.state import CurrentState, ServerState
from adjudge.templates.figures import format_count, format_left
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """The cost of judgements, as far as their price is known."""

    usd: float
    unknown: int
    """How many judgements have no known price, and are not in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateFigures:
    """The decisions of a gate."""

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
    times: Times
    spent: Spent
    gates: tuple[GateFigures, ...]


async def view_overview(
    request: Request,
    state: CurrentState,
    caller: AnyCaller,
    period: Annotated[str, Query(max_length=10)] = "14d",
) -> OverviewView:
    """Show how decisions ended in a period."""
    chosen, now = period if period in PERIODS else "14d", get_now()
    days, first = PERIODS[chosen], _find_first_day(chosen, now)
    since = first - timedelta(days=days)
    results = await tally_results(state.ledger, gates=caller.permissions.gates, since=since, first=first)
    begin = first.date().isoformat()
    current = [tally for tally in results.tallies if tally.day >= begin]
    earlier = [tally for tally in results.tallies if tally.day < begin]
    gates = tuple(
        _make_gate_figures(
            gate,
            [tally for tally in current if tally.gate == gate],
            [tally for tally in earlier if tally.gate == gate],
            results.by_gate.get(gate, Times()),
        )
        for gate in sorted({tally.gate for tally in current if tally.gate})
    )
    return OverviewView(
        period=chosen,
        days=days,
        number=_sum_numbers(current),
        begin=first,
        end=now,
        needs=await _list_needs(request, state, caller, gates, now),
        figures=_make_figures(current, earlier),
        daily=tuple(_list_days(current, first, days, results.by_day)),
        times=results.times,
        spent=_add_costs(current),
        gates=gates,
    )


def _find_first_day(period: str, now: datetime) -> datetime:
    """Find the beginning of the first day of a period."""
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return today - timedelta(days=PERIODS[period] - 1)


def _sum_numbers(tallies: Sequence[Tally], state: str | None = None) -> int:
    return sum(tally.number for tally in tallies if state in (None, tally.state))


def _list_days(tallies: Sequence[Tally], first: datetime, days: int, times: Mapping[str, Times]) -> Iterator[Day]:
    for place in range(days):
        day = first + timedelta(days=place)
        name = day.date().isoformat()
        those = [tally for tally in tallies if tally.day == name]
        yield Day(
            day=day,
            counts=tuple((state, _sum_numbers(those, state)) for state in STATES),
            times=times.get(name, Times()),
            spent=_add_costs(those),
        )


def _add_costs(tallies: Sequence[Tally]) -> Spent:
    return Spent(usd=sum(tally.cost_usd for tally in tallies), unknown=sum(tally.unknown for tally in tallies))


def _make_figures(tallies: Sequence[Tally], earlier: Sequence[Tally]) -> tuple[Figure, ...]:
    number, before = _sum_numbers(tallies), _sum_numbers(earlier)
    figures = []
    for state in STATES:
        share = Share(count=_sum_numbers(tallies, state), of=number)
        change = (
            100 * (share.rate - _sum_numbers(earlier, state) / before) if before and share.rate is not None else None
        )
        figures.append(Figure(state=state, share=share, said=_SAID[state], change=change))
    return tuple(figures)


def _make_gate_figures(gate: str, tallies: Sequence[Tally], earlier: Sequence[Tally], times: Times) -> GateFigures:
    priced = sum(tally.priced for tally in tallies)
    return GateFigures(
        gate=gate,
        judges=", ".join(sorted({tally.judge for tally in tallies if tally.judge})),
        number=_sum_numbers(tallies),
        figures=_make_figures(tallies, earlier),
        times=times,
        cost=1000 * _add_costs(tallies).usd / priced if priced else None,
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
    waiting = [request for request in await state.approvals.list_queue() if caller.covers("read", request.gate)]
    if not waiting:
        return []
    ends = [request.expires_at for request in waiting if request.expires_at is not None]
    left = format_left((min(ends) - now).total_seconds()) if ends else ""
    word = f"{format_count(len(waiting), 'waits', 'wait')} for a person"
    say = f"The next expires in {left}." if left else "None of them expires."
    path = "/approvals" if caller.may("approve") else ""
    return [Need(state="held", word=word, say=say, path=path, link="Open the queue")]


def _find_undecided(figures: Sequence[GateFigures]) -> list[Need]:
    needs = []
    for gate in figures:
        figure = gate.figures[STATES.index("undecided")]
        rate, low = figure.share.rate, figure.share.interval
        # Only where it is more than chance: even the lower limit is above what it was before.
        if figure.change is None or rate is None or low is None:
            continue
        before = rate - figure.change / 100
        if figure.change > 100 * _MORE_UNDECIDED and low[0] > before:
            say = f"{format_rate(before)} in the period before, {format_rate(rate)} in this one."
            path = f"/results?{urlencode({'gate': gate.gate, 'outcome': 'undecided', 'when': 'all'})}"
            word = f"{gate.gate}: more undecided"
            needs.append(
                Need(state="undecided", word=word, say=say, path=path, link=f"See the {figure.share.count:.0f}")
            )
    return needs


add_page(router, "/", view_overview, template="overview.html", scope="read", by_gate=True)
