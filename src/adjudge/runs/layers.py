"""The layers that a run puts around its models, and the limit of items under way with a budget."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from adjudge.errors import UsageError
from adjudge.formats.text import clean
from adjudge.judges.layers import Wrap, check_reach, make_wrap, wrap_models
from adjudge.models.budget import Budget, Reservation
from adjudge.models.model import Call, Model, find_function
from adjudge.models.price import Prices, Processing
from adjudge.models.rate_limit import Pace
from adjudge.runs.pool import Concurrency
from adjudge.runs.store import RunStore

if TYPE_CHECKING:
    from adjudge.models.replies.cache_file import ReplyCache
    from adjudge.runs.batch.session import BatchSession


SPENT = "budget spent"
"""The fact of a run that names the spent part of its budget."""


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
            self.budget, self._owns_budget = Budget(budget, on_hold=self._note_spent_now), True
        self._store: RunStore | None = None
        self._knows_spent = True
        """True if it is known what the run has spent."""
        self._spent_before = 0.0
        """The dollars the run had spent that a budget which was handed in does not know of, less what that had spent
        for others."""
        self._prices, self._wrap = prices, wrap
        self._limit = limit
        self._width = 0
        self._session: BatchSession | None = None
        """Dollars that are held for requests in batches are on disk with them, and not part of what is spent."""

    def apply(self, judge: Any, *, calls: int = 1) -> Any:
        """Put the layers around a judge's models; raises ``UsageError`` for a budget that cannot hold.

        ``calls`` is the number of calls that a seat makes at once.
        """
        if self.budget is not None:
            check_reach(judge)
        wrap_layers = make_wrap(cache=self._cache, budget=self.budget, prices=self._prices)

        def wrap(model: Model, number: int) -> Model:
            # A judge in code costs nothing that a budget could wait for.
            self._width += calls if find_function(model) is None else 0
            return wrap_layers(model if self._wrap is None else self._wrap(model, number), number)

        return wrap_models(judge, wrap)

    def apply_batches(self, judge: Any, session: BatchSession) -> Any:
        """Put the layers around a judge whose replies come out of batches, which are innermost of all layers."""
        # What is asked again live costs its full price, and the budget has to hold for it.
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
        """A limit that falls with what is left of the budget."""
        if self.budget is None or not self._width:
            return limit
        return _BudgetLimit(limit, self.budget, self._width)

    def make_call(self, *, anew: bool) -> Call:
        """Make the terms of the requests about a unit: the pace hears how providers answer it."""
        # With the request: another wrapper around every model would do the same for more.
        pace = self._limit if isinstance(self._limit, Pace) else None
        return Call(pace=pace, anew=anew, secret=None if self._session is None else self._session.secret)

    def note_paid(self, usd: float) -> None:
        """Count dollars that a provider may ask for though nothing came back for them."""
        if self.budget is not None:
            self.budget.charge(Reservation(0), usd)

    def reserve_in(self, store: RunStore, *, resumed: bool) -> None:
        """Keep what is spent in a run's file, and take off the budget what the run has spent before.

        Raises ``UsageError`` when nobody knows what that is.
        """
        self._store = store
        if self.budget is None:
            return
        recorded = store.find_fact(SPENT) if resumed else None
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
            self._spent_before = spent_usd - self.budget.spent - self.budget.held

    def note_spent(self) -> None:
        """Keep the spent part of the budget, with the next item that is kept."""
        # Of a budget that was handed in as well: a run that goes on without it keeps to the same dollars.
        if self._store is not None and self.budget is not None and self._knows_spent:
            self._store.keep_fact(SPENT, self._format_spent(self.budget))

    async def _note_spent_now(self) -> None:
        # Before the call is made: a process that is killed while it is under way must not forget that it was. What
        # cannot be written down is not asked.
        if self._store is not None and self.budget is not None:
            await self._store.keep_fact_now(SPENT, self._format_spent(self.budget))

    def _format_spent(self, budget: Budget) -> str:
        # With what is held: a process that is killed now has asked, and the provider charges.
        return repr(max(self._spent_before + budget.spent + budget.held - self._waiting, 0.0))

    @property
    def _waiting(self) -> float:
        """Dollars for requests in batches, which a run that is resumed holds again."""
        return 0.0 if self._session is None else self._session.dispatcher.held

    def describe(self) -> dict[str, float] | None:
        """Describe the budget and its spent part, when nothing is under way here."""
        if self.budget is None:
            return None
        return {"usd": self.budget.usd, "spent": max(self.budget.spent - self._waiting, 0.0)}

    def close(self) -> None:
        """Write what the cache has not written yet, and close what was opened here."""
        if self._cache is not None and self._owns_cache:
            self._cache.close()


@dataclass(frozen=True, slots=True)
class _BudgetLimit:
    """A limit that falls with what is left of a budget.

    A call that waits for others to leave enough of the budget waits within its judge's timeout. What waits out here
    instead is not late.
    """

    limit: Concurrency
    budget: Budget
    width: int
    """The number of calls that an item makes at once."""

    @property
    def current(self) -> int:
        """The number that the budget can pay for, at least one."""
        dearest = self.budget.dearest
        if dearest is None:  # the first says what a call may cost
            return 1
        remaining_usd = self.budget.usd - self.budget.spent
        if dearest <= 0 or remaining_usd < dearest:  # nothing to pay for, or nothing that can be: that takes no time
            return self.limit.current
        return max(1, min(self.limit.current, int(remaining_usd / (dearest * self.width))))


def _read_dollars(recorded: str | None) -> float:
    try:
        return float(recorded or 0.0)
    except ValueError:
        raise UsageError(
            f"the run says that {clean(str(recorded)[:40])!r} is spent of its budget, which is no amount"
        ) from None


def _open_cache(cache: ReplyCache | str | os.PathLike[str] | None) -> tuple[ReplyCache | None, bool]:
    """Open a cache, and return it and whether it was opened here, and so has to be closed here."""
    if cache is None or not isinstance(cache, str | os.PathLike):
        return cache, False
    from adjudge.models.replies.cache_file import ReplyCache

    return ReplyCache(cache), True
