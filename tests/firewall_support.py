"""Chains of scripted judges under every strategy, and shorthands for what a firewall's judge replies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adjudge import Judge, JudgeChain
from adjudge.testing import ScriptedModel

SEATS = 3
STRATEGIES: Mapping[str, Mapping[str, Any]] = {
    "fallback": {},
    "consensus": {},
    "majority": {},
    "quorum": {"quorum": 2},
    "hedged": {"hedge_after": 1.0},
    "cascade": {"escalate_below": 0.9},
}
"""Every strategy, with the parameters it needs for three seats."""

SAFE: Mapping[str, Any] = {"rejected": [], "safe": True}
"""A prompt firewall's judge that rejects nothing."""
CLEAN: Mapping[str, Any] = {"threats": [], "safe": True}
"""An input firewall's judge that finds nothing."""


def reject(*indexes: Any, safe: bool = False, reason: str = "an override") -> dict[str, Any]:
    """A reply that rejects rules."""
    return {"rejected": [{"index": index, "reason": reason} for index in indexes], "safe": safe}


def threaten(field: str = "q", kind: str = "sql_injection", *, safe: bool = False, reason: str = "a quote") -> Any:
    """A reply that names one threat."""
    return {"threats": [{"field": field, "type": kind, "reason": reason}], "safe": safe}


def script(*lines: Any) -> list[ScriptedModel]:
    """One model for each line."""
    return [ScriptedModel(line, name=f"m{place}") for place, line in enumerate(lines, 1)]


def chain(models: Sequence[Any], strategy: str = "consensus", **more: Any) -> JudgeChain:
    """Models, judges and chains under a strategy, each asked without a second try unless it says so itself."""
    seats = [Judge(item, timeout=None) if isinstance(item, ScriptedModel) else item for item in models]
    return JudgeChain(seats, **{"strategy": strategy, **STRATEGIES[strategy], **more})
