"""The options of a chain: which belong to which strategy, and what they may be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, get_args

from adjudge._judge import check_timeout
from adjudge._strategies import Strategy
from adjudge.errors import UsageError

if TYPE_CHECKING:
    from adjudge.chain import JudgeChain

_OWN_PARAMETERS = {
    "quorum": ("quorum",),
    "hedge_after": ("hedged",),
    "escalate_below": ("cascade",),
    "abstain_below": ("cascade",),
}


def check_options(chain: JudgeChain, seats: int) -> None:
    """Raise ``UsageError`` for what does not belong together; makes ``escalate_below`` one number per seat but one."""
    if chain.strategy not in get_args(Strategy):
        raise UsageError(f"unknown strategy {chain.strategy!r}; use one of {', '.join(get_args(Strategy))}")
    for parameter, strategies in _OWN_PARAMETERS.items():
        given = getattr(chain, parameter) is not None
        if given and chain.strategy not in strategies:
            raise UsageError(
                f"{parameter} belongs to the strategy {strategies[0]!r}, and this chain is {chain.strategy!r}"
            )
        if not given and chain.strategy in strategies and parameter != "abstain_below":
            raise UsageError(f"the strategy {chain.strategy!r} needs {parameter}")
    if chain.quorum is not None:
        number = chain.quorum
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= seats:
            raise UsageError(f"quorum must be a whole number from 1 to {seats}, the number of judges; got {number!r}")
    check_timeout("hedge_after", chain.hedge_after)
    if chain.escalate_below is not None:
        object.__setattr__(chain, "escalate_below", _read_escalation(chain.escalate_below, seats))
    if chain.abstain_below is not None:
        _check_share("abstain_below", chain.abstain_below)


def _read_escalation(value: Any, seats: int) -> tuple[float, ...]:
    numbers = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value] * (seats - 1)
    if len(numbers) != seats - 1:
        raise UsageError(
            f"escalate_below has {len(numbers)} numbers; give one, or one per judge but the last ({seats - 1})"
        )
    if not isinstance(value, Sequence):
        _check_share("escalate_below", value)
    return tuple(_check_share("escalate_below", item) for item in numbers)


def _check_share(what: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise UsageError(f"{what} must be a number between 0 and 1, got {value!r}")
    return float(value)
