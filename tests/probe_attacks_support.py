"""What tests of probe attacks share."""

from __future__ import annotations

from typing import Any

STRATEGIES: dict[str, dict[str, Any]] = {
    "fallback": {},
    "consensus": {},
    "majority": {},
    "quorum": {"quorum": 2},
    "hedged": {"hedge_after": 1.0},
    "cascade": {"escalate_below": 0.5},
}
