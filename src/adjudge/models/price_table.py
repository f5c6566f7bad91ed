"""The prices of known models, as ``prices.json`` has them; ``scripts/prices`` writes it from the package genai-prices.

The price of a model is chosen in ``price.py`` (``find_price``), which asks here last: prices that the user states win,
then the package itself, which the extra ``[cost]`` installs and which is newer whenever it is updated. Names are
matched by the list's own conditions, in its order: the first model that matches is the one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Any

_FILE = Path(__file__).with_name("prices.json")

_COMPACT_DATE = re.compile(r"-(20\d{2})(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(?=-|:|$)")
"""A date at the end of a name as routers write it: ``gpt-5.2-20251211`` is ``gpt-5.2-2025-12-11``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceTable:
    """A list of prices, and the day on which they were taken from their source."""

    source: str
    """The package and its version."""
    date: date
    providers: tuple[Mapping[str, Any], ...]

    def find(
        self, model: str, *, provider: str | None, url: str, processing: str, day: date
    ) -> Mapping[str, Any] | None:
        """Find the members of a model's price on a day; ``None`` where the list has none.

        ``provider`` is the provider's name in the list; ``None``: the provider is found by ``url``, the address that is
        asked.
        """
        listed = next((entry for entry in self.providers if _is_provider(entry, provider, url)), None)
        if listed is None:
            return None
        name = model.lower()
        for spelling in dict.fromkeys((name, _COMPACT_DATE.sub(_spell_date, name))):  # each different one once
            for entry in self._list_models(listed):
                if _fulfils_condition(entry["match"], spelling):
                    return _choose_price(entry.get(processing, entry["live"]), day)
        return None

    def _list_models(self, provider: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """List the models of a provider, and then those of the providers whose models it serves."""
        yield from provider["models"]
        for name in provider.get("fallback", ()):
            for other in self.providers:
                if other["id"] == name:
                    yield from other["models"]


@lru_cache(maxsize=1)
def read_price_table() -> PriceTable:
    """Read the table that comes with this package."""
    document = json.loads(_FILE.read_bytes())
    return PriceTable(
        source=document["source"],
        date=date.fromisoformat(document["date"]),
        providers=tuple(document["providers"]),
    )


def _is_provider(entry: Mapping[str, Any], provider: str | None, url: str) -> bool:
    """Return whether an entry of the list is the provider of this name; without a name, whether it has this address."""
    return entry["id"] == provider if provider is not None else re.match(entry["pattern"], url) is not None


def _spell_date(match: re.Match[str]) -> str:
    """Write a date of a model's name with hyphens; digits that are no date stay as they are."""
    year, month, day = match.groups()
    with suppress(ValueError):
        return f"-{date(int(year), int(month), int(day)).isoformat()}"
    return match[0]


def _choose_price(prices: list[list[Any]], day: date) -> Mapping[str, Any] | None:
    """Choose the price that holds on a day: the last that has begun, or the first of all.

    ``prices`` are pairs of the day from which a price holds (``None``: always) and its members, earliest first.
    """
    started = [price for start, price in prices if start is None or date.fromisoformat(start) <= day]
    if started:
        return started[-1]
    return prices[0][1] if prices else None


def _fulfils_condition(condition: Mapping[str, Any], name: str) -> bool:
    """Return whether a model's name fulfils a condition of the table."""
    ((kind, value),) = condition.items()  # a condition has one member, its kind
    if kind == "or":
        return any(_fulfils_condition(part, name) for part in value)
    if kind == "and":
        return all(_fulfils_condition(part, name) for part in value)
    if kind == "regex":
        return re.search(value, name) is not None
    if kind == "starts_with":
        return name.startswith(value)
    if kind == "ends_with":
        return name.endswith(value)
    return value in name if kind == "contains" else name == value
