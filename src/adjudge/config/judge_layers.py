"""A cache, a budget and prices around judges that the command line or ``adjudge.toml`` names.

The layers are put around a judge in ``judges/layers.py`` (``with_layers``). If several places name a judge,
``judges.py`` (``_find_default``) decides which one is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adjudge.errors import UsageError
from adjudge.formats.numbers import format_amounts

if TYPE_CHECKING:
    from adjudge.models.budget import Budget
    from adjudge.models.model import Model
    from adjudge.models.replies.cache_file import ReplyCache


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredLayers:
    """The layers between judges and models, opened; nothing is written or asked before the first call."""

    cache: ReplyCache | None = None
    budget: Budget | None = None
    prices: Mapping[str, Any] = field(default_factory=dict)

    def apply(self, judge: Any) -> Any:
        """Return a judge that uses these layers; raises ``UsageError`` for a budget that cannot be kept."""
        has_layers = self.cache is not None or self.budget is not None or bool(self.prices)
        if judge is None or not has_layers:
            return judge
        from adjudge.judges.layers import with_layers

        return with_layers(judge, cache=self.cache, budget=self.budget, prices=self.prices)

    def close(self) -> str | None:
        """Close the cache, which writes the rest of it; return a sentence on the spent budget, if there is a budget."""
        if self.cache is not None:
            self.cache.close()
        if self.budget is None:
            return None
        return "spent {} of the budget of {}".format(*format_amounts(self.budget.spent, self.budget.usd))


def explain_uncached(judge: Any) -> str | None:
    """Return a sentence that names the models whose replies ``--cache`` will not keep; ``None`` if there are none.

    Without it, users would notice only by an empty cache and a second bill.
    """
    from adjudge.judges.layers import wrap_models

    names: dict[str, None] = {}

    def collect_uncached(model: Model, _number: int) -> Model:
        if getattr(model, "identity", None) is None and model.name != "rules":  # rules ask no model
            names[model.name] = None
        return model

    wrap_models(judge, collect_uncached)
    if not names:
        return None
    return (
        f"--cache keeps only replies of models behind an address and of judges in code, so none of {', '.join(names)}"
    )


def open_layers(
    *,
    cache: Path | None = None,
    expires_in: float | None = None,
    budget: float | None = None,
    per: float | None = None,
    prices: Mapping[str, Any] | None = None,
) -> ConfiguredLayers:
    """Open a cache, a budget and prices; raises ``UsageError`` for invalid numbers, or an option without its layer."""
    from adjudge.models.budget import Budget
    from adjudge.models.replies.cache_file import ReplyCache

    if cache is None and expires_in is not None:
        raise UsageError(
            "cache_expires_in needs a cache; write cache, the file to keep replies in", argument="cache_expires_in"
        )
    if budget is None and per is not None:
        raise UsageError("budget_per needs a budget; write budget, in US dollars", argument="budget_per")
    return ConfiguredLayers(
        cache=None if cache is None else ReplyCache(cache, expires_in=expires_in),
        budget=None if budget is None else Budget(budget, per=per),
        prices=prices or {},
    )
