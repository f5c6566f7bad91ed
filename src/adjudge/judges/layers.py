"""A cache, a budget and prices between judges and their models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from adjudge.errors import UsageError
from adjudge.judges.chain import is_ours, list_judges, list_leaves
from adjudge.judges.judge import Judge, asks_as
from adjudge.models.model import Model
from adjudge.models.price import PricedModel, Prices, Processing, make_finder
from adjudge.models.rate_limit import PacedModel
from adjudge.models.replies.cache import CachedModel
from adjudge.models.replies.replay import ReplayModel
from adjudge.models.wrapper import find_innermost

if TYPE_CHECKING:
    from adjudge.models.budget import Budget
    from adjudge.models.rate_limit import Pace
    from adjudge.models.replies.cache_file import ReplyCache


J = TypeVar("J")

Wrap = Callable[[Model, int], Model]
"""From a model, and how many seats before this one have the same model, to the model to be asked instead."""


def wrap_models(judge: J, wrap: Wrap) -> J:
    """Return a judge like this one whose every model, at any depth, is what ``wrap`` makes of it.

    Seats keep their names. ``wrap`` is given a number that tells several seats of one model apart: each is asked for
    its own answer, so the reply to one must not be used for another. A judge of another kind is returned unchanged.
    """
    if not is_ours(judge):
        return judge
    model_counts: Counter[str] = Counter()

    def wrap_model(model: Model) -> Model:
        model_counts[model.name] += 1
        return wrap(model, model_counts[model.name] - 1)

    return cast("J", judge.map_models(wrap_model))  # a chain becomes a chain, and a judge a judge


async def close_named_models(judge: Any) -> None:
    """Close the models that a copy of a judge opened because a rubric named them.

    The copy's own models belong to the original judge, and stay open.
    """
    for leaf in list_judges(judge):
        await leaf.close_named_models()


def with_layers(
    judge: J,
    *,
    cache: ReplyCache | None = None,
    budget: Budget | None = None,
    prices: Prices | None = None,
    identities: Mapping[str, str] | None = None,
) -> J:
    """Return a judge or chain like this one that uses a cache, keeps to a budget, and reports costs.

    A reply from the cache costs nothing. You keep and close the cache and the budget. A judge of your own class is
    returned unchanged, because its models are not known here.

    Raises ``UsageError`` if a budget could not be kept: for a judge of your own class, and for a seat without
    ``max_output_tokens``. A model with an unknown price raises ``UsageError`` before its first call.

    Args:
        judge: The judge or chain.
        cache: Where replies are kept and looked for; ``None`` for nowhere.
        budget: What may be spent; ``None`` for no limit.
        prices: Dollars per million tokens by the model's name (``{"gpt-6.1-terra": {"input": 1, "output": 5}}``); they
            override the known ones of providers' models.
        identities: By a function's name, a text that you change whenever its code changes; a function without one is
            asked every time, and so is a recording.
    """
    if budget is not None:
        check_budget_holds(judge)
    wrap = make_wrap(cache=cache, budget=budget, prices=prices, identities=identities)
    return wrap_models(judge, wrap)


def make_wrap(
    *,
    cache: ReplyCache | None = None,
    budget: Budget | None = None,
    prices: Prices | None = None,
    identities: Mapping[str, str] | None = None,
    pace: Pace | None = None,
    processing: Processing = "live",
) -> Wrap:
    """Make the function that wraps each model for ``with_layers``: with its price and budget, and perhaps a cache.

    A ``pace`` is told how providers answer. ``processing`` is the way in which models are asked, on which prices
    depend. With a budget, call ``check_budget_holds`` first.
    """
    find_price, given_identities = make_finder(prices, processing=processing), dict(identities or {})

    def wrap(model: Model, number: int) -> Model:
        """Wrap a model with pace and price, and with a cache if it has an identity; a replayed model stays as it is."""
        if isinstance(find_innermost(model), ReplayModel):
            return model
        priced = PricedModel(model if pace is None else PacedModel(model, pace), find_price, budget=budget)
        identity = given_identities.get(model.name)
        if cache is None or (identity is None and getattr(priced, "identity", None) is None):
            return priced
        # The cache is outermost, so that a reply from it is not charged to the budget.
        return CachedModel(priced, cache, seat=number, identity=identity)

    return wrap


def check_budget_holds(judge: Any) -> None:
    """Raise ``UsageError`` for a judge with calls that a budget would not see, or whose cost has no upper limit."""
    for leaf in list_leaves(judge):
        if not asks_as(leaf, Judge):
            raise UsageError(
                f"{getattr(leaf, 'name', leaf)!r} is no Judge or JudgeChain, so a budget cannot hold for what it asks; "
                "take it out of the chain, or give its model to a Judge"
            )
        if leaf.max_output_tokens is None:
            raise UsageError(f"a budget needs max_output_tokens on {leaf.name!r}, or nobody knows what a call can cost")
