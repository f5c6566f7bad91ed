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


_LIMIT_NAMES = (
    # OpenAI, and with it Azure, Groq, Together, OpenRouter and most others.
    *[f"x-ratelimit-{{}}-{what}" for what in ("requests", "tokens")],
    *[f"anthropic-ratelimit-{what}-{{}}" for what in ("requests", "input-tokens", "output-tokens")],
)

_LIMIT_HEADERS = tuple((name.format("remaining"), name.format("limit"), name.format("reset")) for name in _LIMIT_NAMES)
"""For each limit: what is left of it, what it is, and when it is whole again."""


_LONGEST_NUMBER = 18

_DURATION_PART = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|us|ns|[hms])")

_DURATION = re.compile(rf"(?:{_DURATION_PART.pattern})+")

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
        # The number by the answers that refused for load; and, until a time, a ceiling by the limits in their headers.
        self._allowed = float(most)
        self._limit_ceiling, self._ceiling_until = float(most), 0.0
        self._answers_of_round = self._overloaded_answers = 0
        # Answers that are still to come to requests from before the number last fell; they are not counted.
        self._late_answers = 0

    @property
    def current(self) -> int:
        """The number of judgements that may be under way now."""
        allowed = self._allowed
        if self._limit_ceiling < allowed and self._clock() < self._ceiling_until:
            allowed = self._limit_ceiling
        return max(self.least, int(allowed))

    def note(self, status: int, headers: Mapping[str, str]) -> None:
        """Take an answer into account: its status, and the headers that say what is left."""
        is_overloaded = status in OVERLOADED
        self._apply_limits(headers)
        if self._late_answers > 0:
            self._late_answers -= 1
            return
        self._answers_of_round += 1
        self._overloaded_answers += is_overloaded
        if self._answers_of_round >= int(self._allowed):
            self._end_round()

    def __repr__(self) -> str:
        return f"<Pace {self.current} of {self.most}>"

    def _end_round(self) -> None:
        """End a round of answers: set the number by the share of them that refused for load.

        After a fall, the answers to requests that were sent before it are not counted in the next round.
        """
        overloaded_share = self._overloaded_answers / self._answers_of_round
        before = self._allowed
        if overloaded_share > TOLERATED:
            self._allowed = max(float(self.least), before * max(0.5, 1.0 - overloaded_share))
            self._late_answers = int(before)
        elif not self._overloaded_answers:
            self._allowed = min(float(self.most), before + max(1.0, self.most / 10))
        self._answers_of_round = self._overloaded_answers = 0

    def _apply_limits(self, headers: Mapping[str, str]) -> None:
        """Lower the ceiling for each of the provider's limits of which the headers say that little is left."""
        for remaining_header, limit_header, reset_header in _LIMIT_HEADERS:
            remaining = headers.get(remaining_header)
            if remaining is not None:
                limit = read_count(headers.get(limit_header))
                self._apply_limit(read_count(remaining), limit, headers.get(reset_header))

    def _apply_limit(self, remaining: int | None, limit: int | None, reset: str | None) -> None:
        """Lower the ceiling for a while if less than a tenth of a limit remains; ``reset``: when it is full again."""
        if remaining is None or (remaining > 0 and (limit is None or remaining >= limit * LOW)):
            return
        share = remaining / (limit * LOW) if limit else 0.0
        # Limits refill gradually, and ``reset`` is the time until they are full: after a tenth of it, a tenth is back.
        self._lower_ceiling(max(float(self.least), self.most * share), (read_reset(reset, self._wall) or 0.0) * LOW)

    def _lower_ceiling(self, ceiling: float, seconds: float) -> None:
        """Set a ceiling for some seconds, unless a lower one is still in force."""
        now = self._clock()
        if seconds <= 0 or (now < self._ceiling_until and ceiling > self._limit_ceiling):
            return
        self._limit_ceiling, self._ceiling_until = ceiling, now + min(seconds, LONGEST_WAIT)


class PacedModel(WrapperModel):
    """A model that tells a ``Pace`` how its provider answers; everything else is the model's own."""

    def __init__(self, model: Model | Callable[..., Any], pace: Pace) -> None:
        super().__init__(model)
        self.pace = pace

    async def complete(self, request: Request, /) -> Reply:
        """Return the model's reply; the pace is told of every answer that the provider sends on the way."""
        return await self.model.complete(replace(request, call=replace(request.call, pace=self.pace)))

    def _make_around(self, model: Model) -> PacedModel:
        """Return another model that tells the same pace."""
        return PacedModel(model, self.pace)


def read_count(text: str | None) -> int | None:
    """Read the whole number in a header; ``None`` for anything else."""
    text = text.strip() if text else ""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER else None


def read_reset(text: str | None, wall: Callable[[], float]) -> float | None:
    """Read the seconds until a limit is full again; ``None`` where that cannot be read or has passed.

    Providers write ``6m0s`` and ``12ms`` (OpenAI, Groq), a time (``2026-11-20T12:00:00Z``, Anthropic), seconds, or
    seconds or milliseconds since 1970 (OpenRouter).
    """
    text = text.strip() if text else ""
    if not text or len(text) > 40:
        return None
    if _DURATION.fullmatch(text):
        seconds = sum(float(number) * _SECONDS[unit] for number, unit in _DURATION_PART.findall(text))
    elif text.isascii() and text.replace(".", "", 1).isdigit():
        number = float(text)
        number = number / 1000 if number > 1e11 else number  # milliseconds since 1970
        seconds = number - wall() if number > 1e9 else number  # seconds since 1970, or seconds from now
    else:
        try:
            reset_time = datetime.fromisoformat(text)
        except ValueError:
            return None
        seconds = reset_time.timestamp() - wall() if reset_time.tzinfo else 0.0
    return seconds if seconds > 0 else None
