"""A guard in front of every tool of an agent of the Claude Agent SDK (``claude-agent-sdk``), as hooks in this process.

A call that waits for people waits inside its hook. It is never answered with ``defer``: Claude Code 2.1.332 makes such
a call when the session is resumed, without asking the hook.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from adjudge.errors import UsageError
from adjudge.formats.arguments import check_seconds
from adjudge.guards.tool_guard.guard import NOT_CHECKED, ToolGuard
from adjudge.harness.answers import answer_call, block, refuse_event
from adjudge.harness.events import read_event_object
from adjudge.harness.hook_guard import HookGuard
from adjudge.hooks import logger

try:
    from claude_agent_sdk import ClaudeAgentOptions, HookMatcher
except ModuleNotFoundError as error:
    if error.name != "claude_agent_sdk":  # it is installed, and lacks something of its own
        raise
    message = "adjudge.integrations.claude needs claude-agent-sdk; to have it, pip install claude-agent-sdk"
    raise ModuleNotFoundError(message, name=error.name) from None

__all__ = ["guard_options"]

_LONGEST_WAIT = 14 * 24 * 3600.0
"""The most seconds that a hook may wait: a JavaScript timer of more than 2^31 milliseconds ends at once."""

_MARGIN = 30.0
"""Seconds that Claude Code waits longer than the guard, so that the guard's refusal comes first."""

_UNREADABLE = {
    "PreToolUse": answer_call("claude", "deny", NOT_CHECKED),
    "UserPromptSubmit": block("The prompt was not taken: it could not be checked."),
    "Stop": block("The answer was not given: it could not be checked."),
}
"""The answer to an event that cannot be read. A hook after a call has nothing to refuse: it raises."""


def guard_options(options: ClaudeAgentOptions, guard: ToolGuard, *, wait: float = 3600.0) -> ClaudeAgentOptions:
    """Return options like these, with which every call of a tool is made only if a guard allows it.

    The guard is asked by hooks, which see the calls of sub-agents and of MCP servers as well, and whatever
    ``permission_mode``, ``allowed_tools`` and ``can_use_tool`` say. A passing guard has no opinion, so those decide as
    before. A refused call gives the agent the guard's sentence. If people have to decide, the hook waits for them;
    where nobody has answered after ``wait``, the agent is told that the call waits, and with ``match="content"`` of the
    guard the same call passes once it is approved. The guard's ``prompts`` and ``results`` are asked as well, and
    ``answers``, which sends an answer back once. With ``results``, images and other media are withheld, because no
    judge here sees them. A call that was made other than it was checked ends the trust in its session, and so does a
    result that may not be read and cannot be withheld, such as an image that ``Read`` returned.

    Connecting raises ``CLIConnectionError`` if the program does not know ``on_failure``: with an older one a hook that
    fails would let the call pass. Raises ``UsageError`` for a guard that is none, and for options that load the
    settings of a project, whose hooks can rewrite a call after it was checked.

    Args:
        options: The options; they are not changed. Their own hooks are kept. ``setting_sources`` has to be ``[]`` or
            ``["user"]``.
        guard: The guard. Its patterns find the harness's tools by their names, such as ``Bash``, and tools of MCP
            servers by server and name. A session is a run. Its ``timeout`` is a limit for each check.
        wait: Seconds that a call may wait for people inside of the run; 0 to two weeks.
    """
    if not isinstance(guard, ToolGuard):
        raise UsageError(f"guard must be a ToolGuard, got {type(guard).__name__}", argument="guard")
    if wait != 0:
        check_seconds("wait", wait, most=_LONGEST_WAIT)
    if options.setting_sources is None or {*options.setting_sources} & {"project", "local"}:
        raise UsageError(
            f"setting_sources must be [] or ['user'], got {options.setting_sources!r}; the settings of a project can "
            "have hooks that rewrite a call after it was checked",
            argument="setting_sources",
        )
    hook = _make_hook(HookGuard(harness="claude", guard=guard, waits=wait))
    # Two checks of one call, and the screen of its result, each have the guard's timeout.
    matcher = HookMatcher(hooks=[hook], timeout=wait + 3 * guard.timeout + _MARGIN, on_failure="block")
    events: list[Any] = ["PreToolUse", "PostToolUse", "PostToolUseFailure"]
    events += ["UserPromptSubmit"] if guard.prompts is not None else []
    events += ["Stop"] if guard.answers is not None else []
    hooks: dict[Any, list[HookMatcher]] = {**(options.hooks or {})}
    return replace(options, hooks=hooks | {event: [matcher, *hooks.get(event, [])] for event in events})


def _make_hook(guard: HookGuard) -> Callable[[Any, str | None, Any], Awaitable[Any]]:
    """Make the function that the SDK calls with each event."""

    async def answer(data: Any, _tool_use_id: str | None, _context: Any) -> Any:
        """Answer an event; never ``None``, and never an exception that the harness could take for no opinion."""
        try:
            event = read_event_object("claude", data)
        except UsageError as error:
            name = data.get("hook_event_name") if isinstance(data, Mapping) else None
            logger.error("an event of Claude Code cannot be read: %s", error)
            if name not in _UNREADABLE:
                raise
            return _UNREADABLE[name]
        try:
            return await guard.answer(event)
        except Exception as error:  # noqa: BLE001 - if a hook fails, Claude Code may make the call
            logger.error("an event of Claude Code could not be checked: %s", type(error).__name__)
            return refuse_event("claude", event, NOT_CHECKED)

    return answer
