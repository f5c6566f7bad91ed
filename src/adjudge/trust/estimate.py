"""An estimate: a statistic, its interval, and how the interval was made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from adjudge.formats.record import write_record
from adjudge.trust.intervals import LEVEL


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A statistic with its interval. ``value`` is ``None`` where the data do not define it; ``note`` says why."""

    value: float | None
    of: int
    """The number of items it was computed from."""
    low: float | None = None
    """The lower limit; ``None`` where no interval can be given."""
    high: float | None = None
    level: float = LEVEL
    """The share of intervals made this way that contain the true value."""
    method: str = ""
    """The method of the interval: ``Wilson``, ``bootstrap of groups`` and so on; empty without an interval."""
    note: str = ""
    """The reason why there is no value or no interval, in one sentence."""

    @property
    def interval(self) -> tuple[float, float] | None:
        """Both limits; ``None`` where no interval can be given."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)
