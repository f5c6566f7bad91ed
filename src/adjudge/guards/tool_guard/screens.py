"""Screens: checks of tool calls beside gates, such as a firewall or a registry of tools, and their answers.

In which order screens, the trust of a run and the gate are asked is decided in ``guard.py``
(``ToolGuard._check_question``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from adjudge.guards.tool_guard.call import ToolCall
from adjudge.result import DecidedBy, JudgeResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Screened:
    """The answer to a call, or to what a tool returned, as the guard records it.

    Args:
        allowed: True if it goes on.
        decided_by: The one who decided: ``judge``, ``rule``, ``human`` or ``policy``.
        detail: One sentence on why; for the record, and not for the agent.
        result: The judge's result, where one was asked.
    """

    allowed: bool
    """True if it goes on."""
    decided_by: DecidedBy = "policy"
    """The one who decided: ``judge``, ``rule``, ``human`` or ``policy``."""
    detail: str = ""
    """One sentence on why; for the record, and not for the agent."""
    result: JudgeResult | None = None
    """The judge's result, where one was asked."""


@runtime_checkable
class CallScreen(Protocol):
    """A screen of calls in a gate's place: ``InputFirewall``, ``ToolRegistry``, or any object with this method."""

    async def screen_call(self, call: ToolCall, arguments: Mapping[str, Any], /) -> Screened:
        """Decide whether a call may be made.

        Args:
            call: The call of a tool.
            arguments: The arguments of the call, read.
        """
        ...


@runtime_checkable
class ResultScreen(CallScreen, Protocol):
    """A screen of calls that checks what the tool returned as well."""

    async def screen_result(self, call: ToolCall, result: Any, /) -> Screened:
        """Decide whether the agent may read what a tool returned.

        Args:
            call: The call of a tool.
            result: What the tool returned.
        """
        ...


def make_screened(result: JudgeResult | None, *, allowed: bool, detail: str) -> Screened:
    """Make the answer of a screen that asked judges.

    It is decided by the judge if the judge's outcome is the same as the answer, and by policy otherwise.
    """
    is_judged = result is not None and result.outcome == ("passed" if allowed else "failed")
    decided_by: DecidedBy = "judge" if is_judged and result is not None and result.decided_by == "judge" else "policy"
    return Screened(allowed=allowed, decided_by=decided_by, detail=detail, result=result)
