"""The layers that a run puts around its models, and the limit of items under way with a budget."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from adjudge.errors import UsageError
from adjudge.formats.text import clean
from adjudge.judges.layers import Wrap, check_budget_holds, make_wrap, wrap_models
from adjudge.models.budget import Budget, Reservation
from adjudge.models.model import Call, Model, find_function
from adjudge.models.price import Prices, Processing
from adjudge.models.rate_limit import Pace
from adjudge.runs.pool import Concurrency
from adjudge.runs.store import RunStore

if TYPE_CHECKING:
    from adjudge.models.replies.cache_file import ReplyCache
    from adjudge.runs.batch.session import BatchSession


SPENT_FACT = "budget spent"
"""The name of the fact in a run's file that has the spent part of its budget, in dollars."""


class RunLayers:
    """The layers that a run puts around its models. It closes what it opened itself."""

    def __init__(
        self,
        *,
        cache: ReplyCache | str | os.PathLike[str] | None,
        budget: Budget | float | None,
        prices: Prices | None,
        wrap: Wrap | None,
        limit: Concurrency,
    ) -> None:
        self._cache, self._owns_cache = _open_cache(cache)
        self.budget: Budget | None
        # A budget that was handed in is counted by its owner, and may be shared with others.
        if budget is None or isinstance(budget, Budget):
            self.budget, self._owns_budget = budget, False
        else:
            self.budget, self._owns_budget = Budget(budget, on_hold=self._write_spent), True
        self._store: RunStore | None = None
        self._knows_spent = True
        """True if it is known what the run has spent."""
        self._spent_offset = 0.0
        """The dollars the run had spent that a budget which was handed in does not know of, less what that had spent
        for others."""
        self._prices, self._wrap = prices, wrap
        self._limit = limit
        self._calls_at_once = 0
        self._session: BatchSession | None = None
        """Dollars that are held for requests in batches are on disk with them, and not part of what is spent."""

    def apply(self, judge: Any, *, calls: int = 1) -> Any:
        """Put the layers around a judge's models. Raises ``UsageError`` for a budget that cannot be kept.

        ``calls`` is the number of calls that a seat makes at once for one item.
        """
        if self.budget is not None:
            check_budget_holds(judge)
        wrap_layers = make_wrap(cache=self._cache, budget=self.budget, prices=self._prices)

        def wrap(model: Model, number: int) -> Model:
            """Put the plan's own wrapper and then the layers around a model, and count the calls of its seat."""
            if find_function(model) is None:  # a judge in code costs nothing
                self._calls_at_once += calls
            return wrap_layers(model if self._wrap is None else self._wrap(model, number), number)

        return wrap_models(judge, wrap)

    def apply_batches(self, judge: Any, session: BatchSession) -> Any:
        """Put the layers around a judge whose models are asked by batch; the batches are the innermost layer."""
        # If requests may be asked again live, that costs the full price, which the budget has to allow for.
        processing: Processing = "batch" if session.options.then == "batch" else "live"
        wrap_layers = make_wrap(cache=self._cache, budget=self.budget, prices=self._prices, processing=processing)
        innermost = session.wrap(self._wrap)
        self._session = session
        return wrap_models(judge, lambda model, number: wrap_layers(innermost(model, number), number))

    @property
    def limit(self) -> Concurrency:
        """The number of items that may be under way at this moment."""
        return self.bound(self._limit)

    def bound(self, limit: Concurrency) -> Concurrency:
        """Return a limit that falls as the rest of the budget gets small; the same limit without a budget."""
        if self.budget is None or not self._calls_at_once:
            return limit
        return _BudgetLimit(limit, self.budget, self._calls_at_once)

    def make_call(self, *, anew: bool) -> Call:
        """Make the terms of the requests about an item: pace, secret, and ``anew`` if kept replies must not be used."""
        # The pace is told with each request how providers answer. A wrapper around every model would cost more time.
        pace = self._limit if isinstance(self._limit, Pace) else None
        return Call(pace=pace, anew=anew, secret=None if self._session is None else self._session.secret)

    def charge_paid_twice(self, usd: float) -> None:
        """Charge to the budget requests that are sent again, because the provider may charge for both."""
        if self.budget is not None:
            self.budget.charge(Reservation(0), usd)

    def reserve_in(self, store: RunStore, *, resumed: bool) -> None:
        """Note the run's file, in which spent dollars are kept, and charge the budget what the run has spent before.

        Raises ``UsageError`` if it is not known how much that is.
        """
        self._store = store
        if self.budget is None:
            return
        recorded = store.find_fact(SPENT_FACT) if resumed else None
        known_usd, unknown = store.add_costs() if resumed else (0.0, 0)
        self._knows_spent = recorded is not None or not unknown
        if self._owns_budget and not self._knows_spent:
            raise UsageError(
                f"the run {store.path.parent} has {unknown:,} replies of unknown cost, so nobody knows what is left of "
                "a budget; resume without one, or begin another run"
            )
        spent_usd = max(known_usd, _read_dollars(recorded))
        if self._owns_budget:
            self.budget.charge(Reservation(0), Budget(spent_usd).usd)
        else:
            self._spent_offset = spent_usd - self.budget.spent - self.budget.held

    def note_spent(self) -> None:
        """Hand the spent part of the budget to the run's file, which writes it with the next item."""
        # Also for a budget that was handed in: if the run is resumed without it, the run keeps to the same amount.
        if self._store is not None and self.budget is not None and self._knows_spent:
            self._store.set_fact(SPENT_FACT, self._format_spent(self.budget))

    async def _write_spent(self) -> None:
        """Write the spent part of the budget, and wait until it is on disk.

        This is done before each call: if the process is killed during the call, its cost must not be forgotten. If it
        cannot be written, the call is not made.
        """
        if self._store is not None and self.budget is not None:
            await self._store.keep_fact_now(SPENT_FACT, self._format_spent(self.budget))

    def _format_spent(self, budget: Budget) -> str:
        """Write the dollars that are spent, or held for calls under way, which the provider will charge for too."""
        return repr(max(self._spent_offset + budget.spent + budget.held - self._held_in_batches, 0.0))

    @property
    def _held_in_batches(self) -> float:
        """The dollars held for requests in batches. They are not counted as spent: a resumed run holds them again."""
        return 0.0 if self._session is None else self._session.dispatcher.held_usd

    def describe(self) -> dict[str, float] | None:
        """Describe the budget and its spent part for the manifest; ``None`` without a budget."""
        if self.budget is None:
            return None
        return {"usd": self.budget.usd, "spent": max(self.budget.spent - self._held_in_batches, 0.0)}

    def close(self) -> None:
        """Close the cache if it was opened here, which writes the last replies."""
        if self._cache is not None and self._owns_cache:
            self._cache.close()


@dataclass(frozen=True, slots=True)
class _BudgetLimit:
    """A limit that falls as the rest of a budget gets small.

    A call that waits for the budget may exceed its judge's timeout. An item that has not started yet does not.
    """

    limit: Concurrency
    budget: Budget
    calls_at_once: int
    """The number of calls that an item makes at once."""

    @property
    def current(self) -> int:
        """The number of items that the budget can pay for at the same time, at least one."""
        dearest = self.budget.dearest
        if dearest is None:  # one item at first, until it is known what a call may cost
            return 1
        remaining_usd = self.budget.usd - self.budget.spent
        if dearest <= 0 or remaining_usd < dearest:  # calls cost nothing, or none fits any more: no item has to wait
            return self.limit.current
        return max(1, min(self.limit.current, int(remaining_usd / (dearest * self.calls_at_once))))


def _read_dollars(recorded: str | None) -> float:
    """Read the spent dollars as the run's file has them; 0 without a record. Raises ``UsageError`` for no number."""
    try:
        return float(recorded or 0.0)
    except ValueError:
        raise UsageError(
            f"the run says that {clean(str(recorded)[:40])!r} is spent of its budget, which is no amount"
        ) from None


def _open_cache(cache: ReplyCache | str | os.PathLike[str] | None) -> tuple[ReplyCache | None, bool]:
    """Return a cache, opened if its path is given, and true if it was opened here and has to be closed here."""
    if cache is None or not isinstance(cache, str | os.PathLike):
        return cache, False
    from adjudge.models.replies.cache_file import ReplyCache

    return ReplyCache(cache), True
