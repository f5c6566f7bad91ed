"""The number of judgements under way: as many as the providers take.

The transport tells a ``Pace`` about every answer: whether the provider had too much to do, and what it says is left of
its limits. A run looks at ``current`` before it begins each judgement. So what would be too much waits outside, where
no judge's timeout runs, and is not sent in order to be refused.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from adjudge.errors import UsageError
from adjudge.formats.arguments import check_whole_number
from adjudge.models.model import Model, Reply, Request
from adjudge.models.retry import LONGEST_WAIT
from adjudge.models.wrapper import WrapperModel

OVERLOADED = frozenset({429, 503, 529})
"""Too many requests; unavailable; what Anthropic calls overloaded."""


TOLERATED = 0.1
"""The share of such answers in a round that changes nothing. They are tried again anyway, and a provider that refuses
one in twenty does nineteen twentieths of its work: halving for it would cost far more than it saves."""


LOW = 0.1
"""The share of a limit below which what is left is divided."""


_LIMITS = (
    # OpenAI, and with it Azure, Groq, Together, OpenRouter and most others.
    *[f"x-ratelimit-{{}}-{what}" for what in ("requests", "tokens")],
    *[f"anthropic-ratelimit-{what}-{{}}" for what in ("requests", "input-tokens", "output-tokens")],
)

_HEADERS = tuple((name.format("remaining"), name.format("limit"), name.format("reset")) for name in _LIMITS)
"""For each limit: what is left of it, what it is, and when it is whole again."""


_LONGEST_NUMBER = 18

_PARTS = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|us|ns|[hms])")

_DURATION = re.compile(rf"(?:{_PARTS.pattern})+")

_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


class Pace:
    """The number of judgements under way: at most ``most``, at least ``least``, by how the providers answer.

    It begins with ``most``. After each round (as many answers as may be under way) in which more than a tenth were
    refused for load (429, 503, 529), the number falls by their share, at most by half; after a round without any it
    rises by a tenth of ``most``. Where a provider says that nothing is left of a limit, the number is ``least`` until
    about a tenth of it is back; where less than a tenth is left, it is in between.

    Give it to ``run`` as ``concurrency``. Raises ``UsageError`` for numbers that are none.
    """

    def __init__(
        self,
        most: int,
        *,
        least: int = 1,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        for name, value in (("most", most), ("least", least)):
            check_whole_number(name, value, least=1, where="a pace")
        if least > most:
            raise UsageError(f"least must not be above most, {most}; got {least}", argument="least", where="a pace")
        # Nobody has as many under way, and a float holds it: this is divided and multiplied.
        most, least = min(most, 2**53), min(least, 2**53)
        self.most, self.least = most, least
        self._clock, self._wall = clock, wall
        self._number = float(most)
        self._ceiling, self._until = float(most), 0.0
        self._answers = self._refused = 0
        # Answers to come of requests that were sent before the last change; they say nothing about it.
        self._stale = 0

    @property
    def current(self) -> int:
        """The number that may be under way now."""
        number = self._number
        if self._ceiling < number and self._clock() < self._until:
            number = self._ceiling
        return max(self.least, int(number))

    def note(self, status: int, headers: Mapping[str, str]) -> None:
        """Take an answer into account: its status, and the headers that say what is left."""
        refused = status in OVERLOADED
        self._read_limits(headers)
        if self._stale > 0:
            self._stale -= 1
            return
        self._answers += 1
        self._refused += refused
        if self._answers >= int(self._number):
            self._end_round()

    def __repr__(self) -> str:
        return f"<Pace {self.current} of {self.most}>"

    def _end_round(self) -> None:
        """Set the number by the share that was refused, and begin a round; after a fall, late answers are skipped."""
        share = self._refused / self._answers
        before = self._number
        if share > TOLERATED:
            self._number = max(float(self.least), before * max(0.5, 1.0 - share))
            self._stale = int(before)
        elif not self._refused:
            self._number = min(float(self.most), before + max(1.0, self.most / 10))
        self._answers = self._refused = 0

    def _read_limits(self, headers: Mapping[str, str]) -> None:
        for left, limit, reset in _HEADERS:
            remaining = headers.get(left)
            if remaining is not None:
                self._read_limit(read_count(remaining), read_count(headers.get(limit)), headers.get(reset))

    def _read_limit(self, left: int | None, limit: int | None, reset: str | None) -> None:
        if left is None or (left > 0 and (limit is None or left >= limit * LOW)):
            return
        share = left / (limit * LOW) if limit else 0.0
        # Limits fill again all the time, and what is named is when they are full: after a tenth of it, a tenth is back.
        self._lower_ceiling(max(float(self.least), self.most * share), (read_reset(reset, self._wall) or 0.0) * LOW)

    def _lower_ceiling(self, ceiling: float, seconds: float) -> None:
        """A lower ceiling for a while; a low one that still holds is not lifted by a higher one."""
        now = self._clock()
        if seconds <= 0 or (now < self._until and ceiling > self._ceiling):
            return
        self._ceiling, self._until = ceiling, now + min(seconds, LONGEST_WAIT)


class PacedModel(WrapperModel):
    """A model that tells a ``Pace`` how its provider answers; everything else is the model's own."""

    def __init__(self, model: Model | Callable[..., Any], pace: Pace) -> None:
        super().__init__(model)
        self.pace = pace

    async def complete(self, request: Request, /) -> Reply:
        """The model's reply; what its transport meets on the way goes to the pace."""
        return await self.model.complete(replace(request, call=replace(request.call, pace=self.pace)))

    def _make_around(self, model: Model) -> PacedModel:
        return PacedModel(model, self.pace)


def read_count(text: str | None) -> int | None:
    """A header's whole number, or ``None`` for anything else."""
    text = text.strip() if text else ""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER else None


def read_reset(text: str | None, wall: Callable[[], float]) -> float | None:
    """Seconds until a limit is whole again, or ``None`` where that cannot be read or has passed.

    Providers write ``6m0s`` and ``12ms`` (OpenAI, Groq), a time (``2026-11-20T12:00:00Z``, Anthropic), seconds, or
    seconds or milliseconds since 1970 (OpenRouter).
    """
    text = text.strip() if text else ""
    if not text or len(text) > 40:
        return None
    if _DURATION.fullmatch(text):
        seconds = sum(float(number) * _SECONDS[unit] for number, unit in _PARTS.findall(text))
    elif text.isascii() and text.replace(".", "", 1).isdigit():
        number = float(text)
        number = number / 1000 if number > 1e11 else number
        seconds = number - wall() if number > 1e9 else number
    else:
        try:
            at = datetime.fromisoformat(text)
        except ValueError:
            return None
        seconds = at.timestamp() - wall() if at.tzinfo else 0.0
    return seconds if seconds > 0 else None
