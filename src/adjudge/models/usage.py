"""The usage that a server states, as far as that can be true."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter

from adjudge.formats.text import show
from adjudge.hooks import logger
from adjudge.models.model import Reply
from adjudge.result import Usage

MOST_TOKENS = 100_000_000
"""The most tokens of one kind that one reply is believed to have used."""

MOST_USD = 1_000_000.0
"""The most that one reply is believed to have cost, in US dollars."""

_NO_COUNT = -(10**30)
"""The number that stands for a value that counts nothing; whatever is added to it, it is not believed."""

_COUNTS = ("input_tokens", "output_tokens", "cached_tokens", "written_tokens", "calls")

_read_counts = attrgetter(*_COUNTS)


def read_count(count: object) -> int:
    """A number of tokens as a server reports it: 0 for none, and a number that is not believed for what is no count."""
    if count is None:
        return 0
    return count if type(count) is int and count >= 0 else _NO_COUNT


def believe_usage(reply: Reply, model: str) -> Reply:
    """Return the reply without a usage that cannot be true: its cost is then unknown, and a warning says why."""
    usage = reply.usage
    if usage is None:
        return reply
    doubt = _doubt_counts(usage)
    if doubt is None and _is_cost(usage.cost_usd):
        return reply
    problem = doubt or f"cost_usd: {show(usage.cost_usd)}"
    logger.warning("%s reported a usage that cannot be true (%s); what the reply cost is unknown", show(model), problem)
    return replace(reply, usage=replace(usage, cost_usd=None) if doubt is None else None)


def _doubt_counts(usage: Usage) -> str | None:
    for name, count in zip(_COUNTS, _read_counts(usage), strict=True):
        if type(count) is not int or not 0 <= count <= MOST_TOKENS:
            problem = "no count of tokens" if type(count) is int and count < _NO_COUNT // 2 else show(count)
            return f"{name}: {problem}"
    return None


def _is_cost(usd: object) -> bool:
    return usd is None or (type(usd) in (int, float) and 0 <= usd <= MOST_USD)  # type: ignore[arg-type, operator]
