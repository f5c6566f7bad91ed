"""Forged tools: reviewed when they are made, checked when they are used, reviewed again before they rise a tier."""

from adjudge.tools._emergent import EmergentJudge
from adjudge.tools._file import load_candidate
from adjudge.tools._forge import forge
from adjudge.tools._history import ToolHistory
from adjudge.tools._panel import ForgeResult, Promotion, ToolJudge
from adjudge.tools._record import Claim, Cooling, ToolRecord, ToolStatus
from adjudge.tools._registry import ToolRegistry
from adjudge.tools._reuse import validate_reuse
from adjudge.tools._running import ToolUse
from adjudge.tools._types import (
    MISSING,
    TIERS,
    EmergentTool,
    ToolCandidate,
    ToolMode,
    ToolTest,
    ToolTier,
    ToolUsage,
    tool_digest,
)
from adjudge.tools._verdicts import (
    CreationVerdict,
    PromotionVerdict,
    ReuseVerdict,
    ReviewVerdict,
    ToolVerdict,
    read_verdict,
)

__all__ = [
    "MISSING",
    "TIERS",
    "Claim",
    "Cooling",
    "CreationVerdict",
    "EmergentJudge",
    "EmergentTool",
    "ForgeResult",
    "Promotion",
    "PromotionVerdict",
    "ReuseVerdict",
    "ReviewVerdict",
    "ToolCandidate",
    "ToolHistory",
    "ToolJudge",
    "ToolMode",
    "ToolRecord",
    "ToolRegistry",
    "ToolStatus",
    "ToolTest",
    "ToolTier",
    "ToolUsage",
    "ToolUse",
    "ToolVerdict",
    "forge",
    "load_candidate",
    "read_verdict",
    "tool_digest",
    "validate_reuse",
]
