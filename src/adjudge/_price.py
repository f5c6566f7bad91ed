"""What models cost: what the caller says, else what ``genai-prices`` (extra ``[cost]``) knows, else unknown.

The list of ``genai-prices`` comes with the package; nothing is fetched. Prices are those of an ordinary request,
without the discounts of a contract, a batch or a tier.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from adjudge.errors import UsageError
from adjudge.models import Model, ReplayModel
from adjudge.models._around import find_innermost
from adjudge.models._exchange import HttpModel
from adjudge.models._priced import Price
from adjudge.models._providers import same_site
from adjudge.result import Usage

if TYPE_CHECKING:
    from genai_prices.types import ModelPrice

Prices = Mapping[str, Price | Mapping[str, float]]
"""Prices by the model's name, in full (``openai:gpt-6.1-terra``) or as its provider has it (``gpt-6.1-terra``)."""

FREE = Price(input=0.0, output=0.0)

_KEYS = ("input", "output", "cached", "written")
_PROVIDERS = {"gemini": "google"}
"""What ``genai-prices`` calls a provider, where that is not what a model's name begins with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What several calls cost together, as far as it is known."""

    usd: float = 0.0
    """Of the calls whose cost is known; where ``unknown`` is not 0, the whole is at least this."""
    unknown: int = 0
    """Usages whose cost is not known."""

    def __str__(self) -> str:
        said = f"${self.usd:.4f}"
        return f"at least {said}, and {self.unknown} of unknown cost" if self.unknown else said


def add_costs(usages: Iterable[Usage | None]) -> Cost:
    """The cost of several usages; ``None`` is nothing asked, or nothing known of it, and counts as unknown."""
    usd, unknown = 0.0, 0
    for usage in usages:
        if usage is None or usage.cost_usd is None:
            unknown += 1
        else:
            usd += usage.cost_usd
    return Cost(usd=usd, unknown=unknown)


def make_finder(prices: Prices | None = None) -> Callable[[Model], Price | None]:
    """A function from a model to its price; raises ``UsageError`` for prices that are none."""
    own = {name: _read_price(name, said) for name, said in (prices or {}).items()}
    return lambda model: find_price(model, own)


def find_price(model: Model, prices: Mapping[str, Price] | None = None) -> Price | None:
    """The price of a model, or ``None`` where it is unknown.

    A recording costs nothing. A function and a server of your own cost what ``prices`` says; no price is guessed for
    them from the name of a model.
    """
    inner = find_innermost(model)
    if isinstance(inner, ReplayModel):
        return FREE
    names = (inner.name, inner.model) if isinstance(inner, HttpModel) else (inner.name,)
    for name in names:
        if prices and name in prices:
            return prices[name]
    return _look_up(inner) if isinstance(inner, HttpModel) else None


def _look_up(model: HttpModel) -> Price | None:
    provider = model.place.provider
    base = model.place.find_base(model.name)
    if _is_near(base):  # and no provider's: not worth the 60 MB that the list takes
        return None
    try:
        from genai_prices.data_snapshot import get_snapshot
    except ImportError:
        return None
    snapshot = get_snapshot()
    known = provider.base_url is not None and same_site(base, provider.base_url)
    where = _PROVIDERS.get(provider.prefix, provider.prefix) if known else None
    try:
        _, info = snapshot.find_provider_model(model.model, None, where, None if known else base)
    except LookupError:
        return None
    now = datetime.now(UTC)
    return None if _depends_on_the_hour(info.prices) else _convert(info.get_prices(now))


def _is_near(base: str) -> bool:
    """Whether an address is on this machine or in a private network, as far as it says so itself."""
    host = urlsplit(base).hostname or ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith((".localhost", ".local", ".internal"))
    return address.is_private or address.is_loopback


def _depends_on_the_hour(prices: Any) -> bool:
    # Such a price is not one number, and a budget that is computed by night would not hold by day.
    return isinstance(prices, list) and any(hasattr(item.constraint, "start_time") for item in prices)


def _convert(found: ModelPrice) -> Price | None:
    values: dict[str, Any] = {
        "input": found.input_mtok,
        "output": found.output_mtok,
        "cached": found.cache_read_mtok,
        "written": found.cache_write_mtok,
    }
    # Half a price, or one for each request besides, would make a cost that is too low and looks exact.
    if values["input"] is None or values["output"] is None or found.requests_kcount is not None:
        return None
    levels = sorted({tier.start for value in values.values() for tier in getattr(value, "tiers", ())})
    price: Price | None = None
    for at, level in reversed(list(enumerate([-1, *levels]))):
        said: dict[str, Any] = {name: _read_tier(value, level) for name, value in values.items()}
        price = Price(**said) if price is None else Price(**said, above=levels[at], beyond=price)
    return price


def _read_tier(value: Any, level: int) -> float | None:
    """A price for prompts of more tokens than a level."""
    if value is None or not hasattr(value, "tiers"):
        return None if value is None else float(value)
    reached = [tier.price for tier in value.tiers if tier.start <= level]
    return float(reached[-1] if reached else value.base)


def _read_price(name: str, said: object) -> Price:
    if isinstance(said, Price):
        return said
    if not isinstance(said, Mapping) or not {"input", "output"} <= set(said) <= set(_KEYS):
        raise UsageError(
            f"the price of {name!r} must be like {{input = 0.25, output = 2.0}}, in dollars per million tokens, with "
            f"cached and written where they differ; got {said!r}"
        )
    try:
        return Price(**said)
    except UsageError as error:
        raise UsageError(f"the price of {name!r}: {error}") from None
