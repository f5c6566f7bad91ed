"""The page ``/``: the outcomes of decisions over time, by gate, and what needs somebody.

What is counted is decided in ``server/result_lists.py`` (``tally_results``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from starlette.requests import Request

from adjudge.formats.numbers import format_rate
from adjudge.formats.times import get_now
from adjudge.guards.approval.queue import QueueReader
from adjudge.guards.monitor import Monitor
from adjudge.ledger.columns import STATES
from adjudge.server.api.approvals import MOST_CLOSED
from adjudge.server.caller import AnyCaller, Caller
from adjudge.server.pages.ledger_check import Checked
from adjudge.server.pages.monitors import STATES as MONITOR_STATES
from adjudge.server.pages.monitors import read_monitors
from adjudge.server.pages.page import Context, add_page
from adjudge.server.pages.paging import choose_word
from adjudge.server.result_lists import Tally, Times, tally_results
from adjudge.server.state import CurrentState, ServerState
from adjudge.templates.figures import format_count, format_left
from adjudge.trust.intervals import Share

router = APIRouter()

PERIODS = {"7d": 7, "14d": 14, "30d": 30, "90d": 90}

_LEAST_RISE = 0.03
"""The rise of the share of undecided judgements, over that of the period before, above which it is mentioned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The sums of some tallies, with the times of the same judgements: two periods are compared by them."""

    counts: Mapping[str, int]
    """The number of judgements in each of ``STATES``."""
    times: Times
    cost_usd: float
    """Dollars, as far as prices are known."""
    priced: int
    unknown: int
    """The number of judgements that have no known price, and are not in ``cost_usd``."""

    @property
    def number(self) -> int:
        """The number of judgements."""
        return sum(self.counts.values())

    def share(self, state: str) -> Share:
        """Return the share of a state."""
        return Share(count=self.counts[state], of=self.number)

    def find_change(self, earlier: Figures, state: str) -> float | None:
        """Return by how many percentage points a state's share has risen since an earlier period.

        ``None`` if either period has no judgements.
        """
        rate, before = self.share(state).rate, earlier.share(state).rate
        return None if rate is None or before is None else 100 * (rate - before)


@dataclass(frozen=True, slots=True, kw_only=True)
class GateFigures:
    """The figures of a gate, and those of the period before, which a row of the table shows as their difference."""

    gate: str
    judges: str
    figures: Figures
    earlier: Figures


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Something that needs a person: waiting requests, a monitor's alarm, a gate, or a changed ledger."""

    state: str
    word: str
    say: str
    path: str
    link: str


async def view_overview(
    request: Request,
    state: CurrentState,
    caller: AnyCaller,
    period: Annotated[str, Query(max_length=10)] = "14d",
) -> Context:
    """Show how decisions ended in a period."""
    period_name, now = choose_word(period, PERIODS, "14d"), get_now()
    days, first = PERIODS[period_name], _find_first_day(period_name, now)
    # The results of as many days before are read too, to compare the period with.
    since = first - timedelta(days=days)
    results = await tally_results(state.ledger, gates=caller.permissions.gates, since=since, first=first)
    begin = first.date().isoformat()
    current = [tally for tally in results.tallies if tally.day >= begin]
    earlier = [tally for tally in results.tallies if tally.day < begin]
    gates = [
        _make_gate_figures(gate, current, earlier, results.by_gate.get(gate, Times()))
        for gate in sorted({tally.gate for tally in current if tally.gate})
    ]
    return {
        "period": period_name,
        "days": days,
        "begin": first,
        "end": now,
        "needs": await _list_needs(request, state, caller, gates, now),
        "figures": _sum_tallies(current, results.times),
        "earlier": _sum_tallies(earlier, Times()),
        "daily": _list_days(current, first, days, results.by_day),
        "gates": gates,
    }


def _find_first_day(period: str, now: datetime) -> datetime:
    """Find the beginning of the first day of a period."""
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return today - timedelta(days=PERIODS[period] - 1)


def _sum_tallies(tallies: Sequence[Tally], times: Times) -> Figures:
    """Sum up tallies. ``times`` are the percentiles of their durations, which cannot be summed."""
    return Figures(
        counts={state: sum(tally.number for tally in tallies if tally.state == state) for state in STATES},
        times=times,
        cost_usd=sum(tally.cost_usd for tally in tallies),
        priced=sum(tally.priced for tally in tallies),
        unknown=sum(tally.unknown for tally in tallies),
    )


def _list_days(
    tallies: Sequence[Tally], first: datetime, days: int, times: Mapping[str, Times]
) -> list[tuple[datetime, Figures]]:
    """List each of ``days`` days from the first one on with its figures, also days without any judgement."""
    tallies_by_day: dict[str, list[Tally]] = {}
    for tally in tallies:
        tallies_by_day.setdefault(tally.day, []).append(tally)
    rows = []
    for number in range(days):
        day = first + timedelta(days=number)
        name = day.date().isoformat()
        rows.append((day, _sum_tallies(tallies_by_day.get(name, ()), times.get(name, Times()))))
    return rows


def _make_gate_figures(gate: str, tallies: Sequence[Tally], earlier: Sequence[Tally], times: Times) -> GateFigures:
    """Make the figures of one gate from the tallies of all gates, of this period and of the one before."""
    current = [tally for tally in tallies if tally.gate == gate]
    return GateFigures(
        gate=gate,
        judges=", ".join(sorted({tally.judge for tally in current if tally.judge})),
        figures=_sum_tallies(current, times),
        earlier=_sum_tallies([tally for tally in earlier if tally.gate == gate], Times()),
    )


async def _list_needs(
    request: Request, state: ServerState, caller: Caller, gates: Sequence[GateFigures], now: datetime
) -> list[Need]:
    """List what needs a person: waiting requests, alarms, gates with more undecided, and a ledger that was changed."""
    needs = await _make_needs_of_requests(state, caller, now)
    needs += await _make_needs_of_monitors(state, caller)
    needs += _make_needs_of_gates(gates)
    checked: Checked | None = getattr(request.app.state, "ledger_checked", None)
    if checked is not None and not checked.verification.valid:
        needs.append(
            Need(
                state="failed",
                word="the ledger was changed",
                say=checked.verification.detail,
                path="/ledger" if caller.permissions.gates is None else "",
                link="See what was found",
            )
        )
    return needs


async def _make_needs_of_requests(state: ServerState, caller: Caller, now: datetime) -> list[Need]:
    """Make one need for all requests that wait for a person, or none. Expired requests are closed first."""
    await state.approvals.close_due(most=MOST_CLOSED)
    waiting, end = await state.approvals.count_queue(QueueReader(gates=caller.permissions.gates))
    if not waiting:
        return []
    left = "" if end is None else format_left((end - now).total_seconds())
    word = f"{format_count(waiting, 'waits', 'wait')} for a person"
    say = f"The next expires in {left}." if left else "None of them expires."
    return [Need(state="held", word=word, say=say, path="/approvals", link="Open the queue")]


async def _make_needs_of_monitors(state: ServerState, caller: Caller) -> list[Need]:
    """Make a need for each monitor of the caller's gates with a verdict that a person should look at."""
    monitors = await read_monitors(state, caller.permissions.gates)
    return [
        Need(
            state=MONITOR_STATES[monitor.verdict],
            word=f"{monitor.gate}: {monitor.verdict}",
            say=_explain_alarm(monitor),
            path="/monitors",
            link="See what to do",
        )
        for monitor in monitors
        if monitor.verdict not in ("quiet", "too few labels")
    ]


def _explain_alarm(monitor: Monitor) -> str:
    """Write what people found if the verdict is an alarm, else what to do."""
    if monitor.verdict == "alarm":
        return f"{monitor.bad:,} of {monitor.labels:,} audits should have been stopped."
    return f"{monitor.advice[:1].upper()}{monitor.advice[1:]}."


def _make_needs_of_gates(gates: Sequence[GateFigures]) -> list[Need]:
    """Make a need for each gate whose share of undecided judgements rose by more than ``_LEAST_RISE``.

    A rise that may be chance is left out.
    """
    needs = []
    for gate in gates:
        share, before = gate.figures.share("undecided"), gate.earlier.share("undecided").rate
        if before is None or share.rate is None or share.interval is None:
            continue
        lower_limit, _ = share.interval
        # It is more than chance only if even the lower limit of the share is above the share before.
        if lower_limit <= before:
            continue
        if share.rate - before > _LEAST_RISE:
            say = f"{format_rate(before)} in the period before, {format_rate(share.rate)} in this one."
            path = f"/results?{urlencode({'gate': gate.gate, 'outcome': 'undecided', 'when': 'all'})}"
            word = f"{gate.gate}: more undecided"
            needs.append(Need(state="undecided", word=word, say=say, path=path, link=f"See the {share.count:.0f}"))
    return needs


add_page(router, "/", view_overview, template="overview.html", scope="read", by_gate=True)
