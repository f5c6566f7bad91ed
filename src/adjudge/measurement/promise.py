"""A promise about a threshold, such as ``wrong_pass<=0.05``: a risk, and the share that it must not exceed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import get_args

from adjudge.errors import UsageError
from adjudge.formats.arguments import check_share
from adjudge.formats.text import show
from adjudge.trust.threshold import Risk


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """A risk and the share that it must not exceed."""

    risk: Risk
    """The risk that is bounded: ``wrong_pass``, ``wrong_given_pass`` or ``lost``."""
    bound: float
    """The share that the risk must not exceed, above 0 and below 1."""

    def __str__(self) -> str:
        """Write the promise as ``read_promise`` reads it."""
        return f"{self.risk}<={self.bound!r}"


def read_promise(text: object) -> Promise:
    """Read a promise such as ``wrong_pass<=0.05``. Raises ``UsageError`` for anything else."""
    match = _PROMISE.fullmatch(text) if isinstance(text, str) else None
    risk = _RISKS.get(match.group("risk")) if match else None
    if match is None or risk is None:
        raise UsageError(
            "a promise is a risk and the share that it must not exceed: wrong_pass<=0.05 (of all cases), "
            "wrong_given_pass<=0.1 (of the released ones), or lost<=0.05 (by a cascade, of all cases); got "
            f"{show(text)}",
            argument="promise",
        )
    bound = check_share("promise", float(match.group("bound")))
    if not 0 < bound < 1:
        raise UsageError(
            f"the share of a promise is above 0 and below 1, got {bound:g}: no number of labels shows that nothing is "
            "ever wrong",
            argument="promise",
        )
    return Promise(risk=risk, bound=bound)


_RISKS: dict[str, Risk] = {name: name for name in get_args(Risk)}

_PROMISE = re.compile(r"\s*(?P<risk>[a-z_]+)\s*<=\s*(?P<bound>[0-9]+(?:\.[0-9]+)?|\.[0-9]+)\s*")


def check_confidence(confidence: float) -> None:
    """Raise ``UsageError`` unless a confidence is a number from 0.5 to below 1."""
    if not 0.5 <= check_share("confidence", confidence) < 1:
        raise UsageError(
            f"confidence must be at least 0.5 and below 1, got {confidence:g}; 0.95 is usual", argument="confidence"
        )
