"""Forging: from a candidate to a tool in a registry, in one call that runs nothing.

Whether a candidate becomes a tool is decided in ``review.py`` (``EmergentJudge``) and ``registry_obstacles.py``.
"""

from __future__ import annotations

from adjudge.errors import ToolRefused, UsageError
from adjudge.formats.text import show
from adjudge.tools.lifecycle import ForgeResult, ToolJudge
from adjudge.tools.registry import ToolRegistry
from adjudge.tools.tool import ToolCandidate, tool_digest
from adjudge.tools.verdict import CreationVerdict


async def forge(
    candidate: ToolCandidate,
    judge: ToolJudge,
    registry: ToolRegistry,
    *,
    agent: str,
    session: str,
    allow_sandbox: bool = False,
) -> ForgeResult:
    """Have a candidate reviewed, and register it as a tool of the session if it is approved.

    Nothing is run: you run the candidate's tests, and it brings their records. A candidate is refused without asking
    the judge if it is code of its own (``mode="sandbox"``) and ``allow_sandbox`` is not set, if it has no steps or no
    source, if it has no tests, or if the registry has no room for it. A refusal and a rejection are results, not
    exceptions; every verdict is recorded. Raises ``UsageError`` for a judge that cannot be asked, and ``LedgerError``
    when the store fails.

    Args:
        candidate: The tool, with its tests and their records.
        judge: Who reviews it.
        registry: Where it becomes a tool.
        agent: The agent that made it.
        session: The session that may use it.
        allow_sandbox: Let the judge be asked about code of the candidate's own (``mode="sandbox"``).
    """
    if not isinstance(candidate, ToolCandidate) or not isinstance(registry, ToolRegistry):
        raise UsageError(
            f"forge takes a ToolCandidate, a judge and a ToolRegistry; got {show(candidate)}", argument="candidate"
        )
    refusal = _find_refusal(candidate, allow_sandbox=allow_sandbox)
    if refusal is not None:
        return refusal
    try:
        await registry.check_room(candidate, agent=agent, session=session)
    except ToolRefused as error:
        return _make_refused_result(error)
    verdict = await judge.review_creation(candidate)
    if not isinstance(verdict, CreationVerdict) or verdict.tool_digest != tool_digest(candidate):
        raise UsageError(f"review_creation returns a CreationVerdict on what it was given, got {show(verdict)}")
    if not verdict.approved:
        await registry.record_rejection(candidate, verdict, agent=agent, session=session)
        return ForgeResult(verdict=verdict, refused="rejected", detail=verdict.reasoning)
    try:
        record = await registry.register(candidate, verdict, agent=agent, session=session)
    except ToolRefused as error:  # during the review, another tool took the last place or the name
        return _make_refused_result(error, verdict)
    return ForgeResult(tool=record.tool, verdict=verdict)


def _find_refusal(candidate: ToolCandidate, *, allow_sandbox: bool) -> ForgeResult | None:
    """Find a reason to refuse a candidate before any review, as the result of ``forge``; ``None`` without one."""
    # Compared with True, because a text from a configuration, such as "false", must not count as true.
    if candidate.mode == "sandbox" and allow_sandbox is not True:
        detail = "the candidate is code of its own (mode sandbox), which allow_sandbox=True lets be reviewed"
        return ForgeResult(refused="sandbox", detail=detail)
    if candidate.mode == "compose" and not candidate.steps:
        return ForgeResult(refused="empty", detail="the candidate composes nothing: it has no steps")
    if candidate.mode == "sandbox" and not candidate.source.strip():
        return ForgeResult(refused="empty", detail="the candidate has no source")
    if not candidate.tests:
        return ForgeResult(refused="untested", detail="the candidate has no recorded test")
    return None


def _make_refused_result(error: ToolRefused, verdict: CreationVerdict | None = None) -> ForgeResult:
    """Make the result of ``forge`` for a refusal by the registry, with the verdict if there was a review before."""
    return ForgeResult(verdict=verdict, refused=error.because, detail=str(error))
