"""The cost of calls: prices, the most a call can cost, and the model that adds costs to usages and keeps a budget.

Which price a model has is decided here (``find_price``); the shipped list is in ``price_table.py``, and the amount that
calls share, in ``budget.py``.
"""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, Self
from urllib.parse import urlsplit

from adjudge.errors import Argument, ModelError, UsageError
from adjudge.formats.numbers import format_dollars
from adjudge.hooks import logger
from adjudge.models.budget import MOST, Budget, Reservation
from adjudge.models.model import Call, Form, Model, Reply, Request
from adjudge.models.price_table import read_price_table
from adjudge.models.providers.base import HttpModel
from adjudge.models.providers.catalog import is_same_site
from adjudge.models.replies.replay import ReplayModel
from adjudge.models.usage import drop_impossible_usage
from adjudge.models.wrapper import WrapperModel, find_innermost
from adjudge.result import Usage

if TYPE_CHECKING:
    from genai_prices.types import ModelPrice


FRAME_TOKENS = 1_000
"""Input tokens a provider may add to a prompt: its chat format, and what it says to hold a model to a schema."""


_MILLION = 1_000_000


OLD = 90
"""Days after which a budget says how old the price is that it rests on."""


_KEYS = ("input", "output", "cached", "written")
"""The members of a price that are amounts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """The price of a model, in US dollars per million tokens.

    Args:
        input: The price of input.
        output: The price of output.
        cached: The price of input that was in the provider's prompt cache; ``None``: as other input.
        written: The price of input that is written to it, where that costs more; ``None``: as other input.
        above: A prompt of more input tokens than this is priced by ``beyond``, all of it.
        beyond: The price of a prompt that is longer than ``above``.
        as_of: The day on which it was taken from a list; ``None``: it was stated, or comes from a list that is kept
            current.
    """

    input: float
    """The price of input."""
    output: float
    """The price of output."""
    cached: float | None = None
    """The price of input that was in the provider's prompt cache; ``None``: as other input."""
    written: float | None = None
    """The price of input that is written to it, where that costs more; ``None``: as other input."""
    above: int | None = None
    """A prompt of more input tokens than this is priced by ``beyond``, all of it."""
    beyond: Price | None = None
    """The price of a prompt that is longer than ``above``."""
    as_of: date | None = field(default=None, compare=False)
    """The day on which it was taken from a list; ``None``: it was stated, or comes from a list that is kept current."""

    def __post_init__(self) -> None:
        for name in _KEYS:
            value = getattr(self, name)
            if value is not None and not _is_amount(value):
                raise UsageError(f"a price's {name} must be dollars per million tokens, 0 or more; got {value!r}")
        if (self.above is None) != (self.beyond is None):
            raise UsageError("a price has above and beyond, or neither")

    def cost_of(self, usage: Usage) -> float:
        """The cost of a usage, in US dollars. Counts below 0, which only a broken server reports, are taken as 0.

        Args:
            usage: Tokens, as the provider reported them.
        """
        tokens = max(usage.input_tokens, 0)
        if self.beyond is not None and self.above is not None and tokens > self.above:
            return self.beyond.cost_of(usage)
        cached = min(max(usage.cached_tokens, 0), tokens)
        written = min(max(usage.written_tokens, 0), tokens - cached)
        paid = (tokens - cached - written) * self.input + max(usage.output_tokens, 0) * self.output
        paid += cached * (self.input if self.cached is None else self.cached)
        paid += written * (self.input if self.written is None else self.written)
        return paid / _MILLION

    def bound(self, input_tokens: int, output_tokens: int) -> float:
        """The most that at most so many tokens can cost, in US dollars.

        Args:
            input_tokens: Tokens of the prompts.
            output_tokens: Tokens of the replies.
        """
        highest_input_price = max(self.input, self.cached or 0.0, self.written or 0.0)
        bound = (input_tokens * highest_input_price + output_tokens * self.output) / _MILLION
        if self.beyond is None or self.above is None or input_tokens <= self.above:
            return bound
        return max(bound, self.beyond.bound(input_tokens, output_tokens))


def bound_input(request: Request) -> int:
    """The most input tokens a request can be: one for each byte of UTF-8, and what a provider adds.

    A tokenizer that works on bytes, as those of all providers do, makes no more of them; typical text has four times
    fewer.
    """
    prompt = len(request.system.encode(errors="replace")) + len(request.user.encode(errors="replace"))
    return prompt + _measure_form(request.form) + FRAME_TOKENS


class PricedModel(WrapperModel):
    """A model whose replies say what they cost, and whose calls keep a budget where one is given.

    ``find_price`` gives a model's price, or ``None`` where it is unknown: then ``usage.cost_usd`` stays ``None``, and
    with a budget ``check`` raises ``UsageError``. A call that does not fit the budget is not made and is
    ``undecided: budget``. A call that was cancelled, or broke off on the way, counts as the most it can have cost:
    nobody knows what the provider charges for it. A judge in code has no price and keeps no budget.
    """

    def __init__(
        self,
        model: Model | Callable[..., Any],
        find_price: Callable[[Model], Price | None],
        *,
        budget: Budget | None = None,
    ) -> None:
        super().__init__(model)
        self.find_price = find_price
        self.budget = budget
        self._price: Price | None = None
        self._day = -1
        """The day since 1970 on which the price was looked up; -1 is never."""
        self._has_warned = False

    @property
    def price(self) -> Price | None:
        """The model's price; ``None`` is unknown. Looked up once a day, because a gate may outlive a price."""
        today = int(time.time() // 86_400)
        if today != self._day:
            self._price, self._day = self.find_price(self.model), today
        return self._price

    def check(self) -> None:
        """Raise ``UsageError`` for a budget without a price, or for what the model's own ``check`` finds."""
        super().check()
        # Looked up here in any case: the first time takes a moment, which is not to be taken from a judge's timeout.
        if self.budget is not None and self.function_identity is None:
            self._warn_of_age(self._require_price())

    async def complete(self, request: Request, /) -> Reply:
        """Return the model's reply with its cost; raise ``ReplyError`` (``budget``) when the call may not be made."""
        if self.function_identity is not None:  # a judge in code: it has no price, and nothing is charged for a call
            return await self.model.complete(request)
        if self.budget is None:
            return add_cost(drop_impossible_usage(await self.model.complete(request), self.name), self.price)
        price = self._require_price()
        budget_hold = _BudgetHold(self.budget, bound_cost(price, self.name, request), request.call)
        await budget_hold.reserve()
        held_request = replace(request, call=replace(request.call, pay_again=budget_hold.pay_again))
        # ``None`` is unknown, which counts as all that is held: a call that is cancelled may be charged in full.
        spent_usd: float | None = None
        try:
            reply = add_cost(drop_impossible_usage(await self.model.complete(held_request), self.name), price)
            spent_usd = reply.usage.cost_usd if reply.usage is not None else None
        except UsageError:
            spent_usd = 0.0  # nothing was asked
            raise
        except ModelError as error:
            # An answer with an error status costs nothing, nor does a request that was never sent.
            spent_usd = 0.0 if error.status is not None or not error.sent else None
            raise
        else:
            return reply
        finally:
            budget_hold.settle(spent_usd)

    def _warn_of_age(self, price: Price) -> None:
        """Warn once if the price that the budget rests on is old: calls may then cost more than the budget counts."""
        days = 0 if price.as_of is None else (datetime.now(UTC).date() - price.as_of).days
        if days > OLD and not self._has_warned:
            self._has_warned = True
            logger.warning(
                "the budget rests on a price of %s that is %d days old (%s); install 'adjudge[cost]' and keep it "
                "current, or give the price under prices",
                self.name,
                days,
                price.as_of,
            )

    def _require_price(self) -> Price:
        """Return the price. Raises ``UsageError`` if it is unknown, because a budget cannot be kept without one."""
        if self.price is None:
            raise UsageError(
                f"a budget needs the price of {self.name}, which is unknown; give it under ",
                Argument("prices"),
                ", in dollars per million tokens; 'adjudge[cost]' knows newer models",
                argument="prices",
            )
        return self.price

    def _make_around(self, model: Model) -> Self:
        """Return another model with the same prices and the same budget."""
        return type(self)(model, self.find_price, budget=self.budget)


class _BudgetHold:
    """The dollars of a budget that are held for one call, and again for each request of it that is sent anew."""

    def __init__(self, budget: Budget, most_usd: float, outer_call: Call) -> None:
        self.budget, self.most_usd, self.outer_call = budget, most_usd, outer_call
        self._reservation: Reservation | None = None

    async def reserve(self) -> None:
        """Hold the most that a request can cost; raise ``ReplyError`` (``budget``) when it does not fit."""
        self._reservation = await self.budget.reserve(self.most_usd)

    async def pay_again(self) -> None:
        """Charge all that was held for a request that broke off, and hold as much for the request that is sent next."""
        self.settle(None)
        await self.reserve()
        if self.outer_call.pay_again is not None:  # a budget around this one
            await self.outer_call.pay_again()

    def settle(self, usd: float | None) -> None:
        """Charge the cost of the request and release the rest; ``None`` is unknown, and charges all that was held."""
        reservation, self._reservation = self._reservation, None
        if reservation is not None:
            self.budget.charge(reservation, usd)


def bound_cost(price: Price, name: str, request: Request) -> float:
    """Return the most that a request can cost, in US dollars; raise ``UsageError`` where nothing limits its output."""
    return price.bound(bound_input(request), _bound_output(name, request))


def add_cost(reply: Reply, price: Price | None) -> Reply:
    """Return the reply with its cost, where the price is known and the reply does not say what it cost."""
    usage = reply.usage
    if usage is None or price is None:
        return reply
    if usage.cost_usd is not None and _is_amount(usage.cost_usd):
        return reply  # the server's own statement is better than a computed cost
    # A server that counts nothing reports 0 for what was certainly not 0: unknown, and not free.
    counted = usage.input_tokens > 0 or (price.input == 0 and price.output == 0)
    return replace(reply, usage=replace(usage, cost_usd=price.cost_of(usage) if counted else None))


def _bound_output(name: str, request: Request) -> int:
    """Return the most output tokens that a request can cost. Raises ``UsageError`` if it sets no limit."""
    if request.max_output_tokens is None:
        raise UsageError(f"a budget needs max_output_tokens: without it, nobody knows what a call to {name} can cost")
    return request.max_output_tokens


@lru_cache(maxsize=64)
def _measure_form(form: Form | None) -> int:
    """Return the bytes of a form's JSON Schema, which a provider may count as input; 0 without a form."""
    import msgspec

    return 0 if form is None else len(msgspec.json.encode(form.schema))


def _is_amount(value: object) -> bool:
    """Return whether a value is a number of dollars from 0 to ``MOST``, which excludes NaN."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MOST


Prices = Mapping[str, Price | Mapping[str, float]]
"""Prices by the model's name, in full (``openai:gpt-6.1-terra``) or as its provider has it (``gpt-6.1-terra``)."""


FREE = Price(input=0.0, output=0.0)


_PROVIDERS = {"gemini": "google"}
"""The names that ``genai-prices`` has for providers, where that is not what a model's name begins with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost of several calls together, as far as it is known."""

    usd: float = 0.0
    """Of the calls whose cost is known; where ``unknown`` is not 0, the whole is at least this."""
    unknown: int = 0
    """Usages whose cost is not known."""

    def __str__(self) -> str:
        dollars = format_dollars(self.usd, digits=4)
        return f"at least {dollars}, and {self.unknown} of unknown cost" if self.unknown else dollars


def add_costs(usages: Iterable[Usage | None]) -> Cost:
    """Add the costs of several usages. ``None`` counts as unknown: nothing was asked, or its usage is not known."""
    usd, unknown = 0.0, 0
    for usage in usages:
        if usage is None or usage.cost_usd is None:
            unknown += 1
        else:
            usd += usage.cost_usd
    return Cost(usd=usd, unknown=unknown)


Processing = Literal["live", "batch"]
"""The way in which a provider is asked: at once, or by its batch interface, which most of them charge less for."""


def make_finder(prices: Prices | None = None, *, processing: Processing = "live") -> Callable[[Model], Price | None]:
    """Return a function that finds the price of a model; raise ``UsageError`` for invalid ``prices``."""
    read_prices = {name: _read_price(name, price) for name, price in (prices or {}).items()}
    return lambda model: find_price(model, read_prices, processing=processing)


def find_price(
    model: Model, prices: Mapping[str, Price] | None = None, *, processing: Processing = "live"
) -> Price | None:
    """Find the price of a model; ``None`` where it is unknown.

    ``prices`` are the caller's own; they also hold for batches, and are not halved. A recording costs nothing. A
    function and a server of your own cost what ``prices`` says; no price is guessed for them from the name of a model.
    """
    innermost = find_innermost(model)
    if isinstance(innermost, ReplayModel):
        return FREE
    names = (innermost.name, innermost.model) if isinstance(innermost, HttpModel) else (innermost.name,)
    for name in names:
        if prices and name in prices:
            return prices[name]
    return _look_up_price(innermost, processing) if isinstance(innermost, HttpModel) else None


def find_batch_share(model: Model) -> float | None:
    """Find the cost of a batch as a share of the cost of live calls; ``None`` where either is unknown.

    It is computed for a request with ten times as many input tokens as output tokens, which is typical of a judgement.
    """
    live, batch = find_price(model), find_price(model, processing="batch")
    if live is None or batch is None:
        return None
    usage = Usage(input_tokens=1_000, output_tokens=100)
    live_cost = live.cost_of(usage)
    return batch.cost_of(usage) / live_cost if live_cost > 0 else None


def _look_up_price(model: HttpModel, processing: Processing) -> Price | None:
    """Look up a model's price in the list of the package genai-prices, else in the shipped table.

    Returns ``None`` for a model at a local address, for an unknown one, and for one whose price depends on the hour.
    """
    provider = model.endpoint.provider
    base = model.endpoint.find_base(model.name)
    if _is_local_address(base):  # no provider's, so the list, which takes 60 MB of memory, is not loaded
        return None
    is_provider_site = provider.base_url is not None and is_same_site(base, provider.base_url)
    listed_provider = _PROVIDERS.get(provider.prefix, provider.prefix) if is_provider_site else None
    try:
        from genai_prices.data_snapshot import get_snapshot
    except ImportError:
        return _look_up_in_table(model.model, listed_provider, base, processing)
    snapshot = get_snapshot()
    try:
        _, info = snapshot.find_provider_model(model.model, None, listed_provider, None if is_provider_site else base)
    except LookupError:
        return None
    now, context = datetime.now(UTC), None if processing == "live" else {"processing": processing}
    return None if depends_on_the_hour(info.prices) else convert_price(info.get_prices(now, context))


def _look_up_in_table(name: str, provider: str | None, base: str, processing: Processing) -> Price | None:
    """Look up today's price of a model in the shipped table; ``None`` where the table has none."""
    table = read_price_table()
    members = table.find(name, provider=provider, url=base, processing=processing, day=datetime.now(UTC).date())
    return None if members is None else _make_price(members, table.date)


def _make_price(members: Mapping[str, Any], as_of: date) -> Price:
    """Make a price of its members in the table, with the price of longer prompts (``beyond``) if there is one."""
    beyond = members.get("beyond")
    price = Price(**{name: members[name] for name in _KEYS if name in members}, as_of=as_of)
    return price if beyond is None else replace(price, above=members["above"], beyond=_make_price(beyond, as_of))


def _is_local_address(base: str) -> bool:
    """Return whether an address is on this machine or in a private network, by the look of its host alone."""
    host = urlsplit(base).hostname or ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith((".localhost", ".local", ".internal"))
    return address.is_private or address.is_loopback


def depends_on_the_hour(prices: Any) -> bool:
    """Return whether the prices of a model in ``genai-prices`` depend on the hour."""
    # Such a price is not one number, and a budget that is computed by night would not hold by day.
    return isinstance(prices, list) and any(hasattr(price.constraint, "start_time") for price in prices)


def convert_price(listed: ModelPrice) -> Price | None:
    """Convert a price of ``genai-prices``; ``None`` for one that is incomplete, or that adds a price per request."""
    values: dict[str, Any] = {
        "input": listed.input_mtok,
        "output": listed.output_mtok,
        "cached": listed.cache_read_mtok,
        "written": listed.cache_write_mtok,
    }
    # Half a price, or one for each request besides, would make a cost that is too low and looks exact.
    if values["input"] is None or values["output"] is None or listed.requests_kcount is not None:
        return None
    starts = sorted({tier.start for value in values.values() for tier in getattr(value, "tiers", ())})
    levels = [-1, *starts]  # numbers of tokens above which a price holds; above -1 is every prompt
    price: Price | None = None
    for index in reversed(range(len(levels))):  # the highest level first: each price has the one beyond it as a member
        level_prices: dict[str, Any] = {name: _read_tier(value, levels[index]) for name, value in values.items()}
        price = Price(**level_prices) if price is None else Price(**level_prices, above=levels[index + 1], beyond=price)
    return price


def _read_tier(value: Any, level: int) -> float | None:
    """Return the price of prompts with more than ``level`` tokens; ``None`` for no price.

    ``value`` is one number for all prompts, or a base price with tiers that each start at a number of tokens.
    """
    if value is None:
        return None
    if not hasattr(value, "tiers"):
        return float(value)
    prices = [tier.price for tier in value.tiers if tier.start <= level]
    return float(prices[-1] if prices else value.base)


def _read_price(name: str, price: object) -> Price:
    """Return a price that a caller stated, made of a mapping unless it is a ``Price`` already.

    Raises ``UsageError`` for a mapping with unknown members, without input or output, or with negative or non-finite
    amounts.
    """
    if isinstance(price, Price):
        return price
    if not isinstance(price, Mapping) or not {"input", "output"} <= set(price) <= set(_KEYS):
        raise UsageError(
            f"the price of {name!r} must be like {{input = 0.25, output = 2.0}}, in dollars per million tokens, with "
            f"cached and written where they differ; got {price!r}",
            argument="prices",
        )
    try:
        return Price(**price)
    except UsageError as error:
        raise error.within(f"the price of {name!r}") from None
