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
    """Read a number of tokens as a server reports it: 0 for ``None``, and ``_NO_COUNT`` for what is no count.

    ``_NO_COUNT`` is negative enough that sums with it are negative too, and ``drop_impossible_usage`` drops them.
    """
    if count is None:
        return 0
    return count if type(count) is int and count >= 0 else _NO_COUNT


def drop_impossible_usage(reply: Reply, model: str) -> Reply:
    """Return the reply without a usage that cannot be true; a warning says so, and the reply's cost is unknown."""
    usage = reply.usage
    if usage is None:
        return reply
    count_problem = _find_wrong_count(usage)
    if count_problem is None and _is_credible_cost(usage.cost_usd):
        return reply
    problem = count_problem or f"cost_usd: {show(usage.cost_usd)}"
    logger.warning("%s reported a usage that cannot be true (%s); what the reply cost is unknown", show(model), problem)
    return replace(reply, usage=replace(usage, cost_usd=None) if count_problem is None else None)


def _find_wrong_count(usage: Usage) -> str | None:
    """Describe the first count of a usage that cannot be true; ``None`` if all of them can."""
    for name, count in zip(_COUNTS, _read_counts(usage), strict=True):
        if type(count) is not int or not 0 <= count <= MOST_TOKENS:
            problem = "no count of tokens" if type(count) is int and count < _NO_COUNT // 2 else show(count)
            return f"{name}: {problem}"
    return None


def _is_credible_cost(usd: object) -> bool:
    """Return whether a cost can be true: ``None`` for unknown, or a number of dollars that is not absurd."""
    return usd is None or (type(usd) in (int, float) and 0 <= usd <= MOST_USD)  # type: ignore[arg-type, operator]
