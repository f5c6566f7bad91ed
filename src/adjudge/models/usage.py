"""What a server says it used, as far as that can be true."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite

from adjudge.formats.text import show
from adjudge.hooks import logger
from adjudge.models.model import Reply
from adjudge.result import Usage

MOST_TOKENS = 100_000_000
"""The most tokens of one kind that one reply is believed to have used."""

MOST_USD = 1_000_000.0
"""The most that one reply is believed to have cost, in US dollars."""

_NO_COUNT = -(10**30)
"""What stands for a value that counts nothing; whatever is added to it, it is not believed."""

_COUNTS = ("input_tokens", "output_tokens", "cached_tokens", "written_tokens", "calls")


def read_count(said: object) -> int:
    """A number of tokens as a server reports it: 0 for none, and a number that is not believed for what is no count."""
    if said is None:
        return 0
    return said if type(said) is int and said >= 0 else _NO_COUNT


def believe_usage(reply: Reply, model: str) -> Reply:
    """The reply, without its usage where that cannot be true: what it cost is then unknown, and a warning says why."""
    doubt = None if reply.usage is None else _doubt(reply.usage)
    if doubt is None:
        return reply
    logger.warning("%s reported a usage that cannot be true (%s); what the reply cost is unknown", show(model), doubt)
    return replace(reply, usage=None)


def _doubt(usage: Usage) -> str | None:
    for name in _COUNTS:
        count = getattr(usage, name)
        if type(count) is not int or not 0 <= count <= MOST_TOKENS:
            shown = "no count of tokens" if type(count) is int and count < _NO_COUNT // 2 else show(count)
            return f"{name}: {shown}"
    cost = usage.cost_usd
    known = cost is None or (type(cost) in (int, float) and isfinite(cost) and 0 <= cost <= MOST_USD)
    return None if known else f"cost_usd: {show(cost)}"
