"""The answers of a hook to Claude Code and Codex, with no member that the coding agent (harness) does not know.

If an answer has an unknown member, Codex ignores the answer and makes the call. A pass is ``{}`` and not ``allow``,
because ``allow`` would skip the question that the harness itself asks its user.

``hook_guard.py`` (``HookGuard``) decides which answer an event gets.
"""

from __future__ import annotations

from typing import Any, Literal

from adjudge.guards.tool_guard.guard import WITHHELD
from adjudge.harness.events import AnswerEvent, CallEvent, Harness, HookEvent, PromptEvent, RanEvent

Opinion = Literal["none", "allow", "deny", "defer"]
"""``none`` leaves the call to the harness, ``allow`` makes it without asking the user, ``defer`` ends the turn until
the session is resumed."""

NO_OPINION: dict[str, Any] = {}

_FLAGS = ("interrupted", "noOutputExpected")
"""The members of a shell's result beside its output that Claude Code always writes, and that are true or false."""


def answer_call(harness: Harness, opinion: Opinion, message: str = "") -> dict[str, Any]:
    """Answer ``PreToolUse``; for Codex a deferral becomes a denial, because Codex would make a deferred call."""
    if opinion == "none" or (opinion == "allow" and harness == "codex"):
        return NO_OPINION
    decision = "deny" if harness == "codex" else opinion
    output = {"hookEventName": "PreToolUse", "permissionDecision": decision, "permissionDecisionReason": message}
    return {"hookSpecificOutput": output}


def block(message: str) -> dict[str, Any]:
    """Answer ``UserPromptSubmit`` so that the prompt is dropped, or ``Stop`` so that the agent answers again."""
    return {"decision": "block", "reason": message}


def warn_user(message: str) -> dict[str, Any]:
    """Answer with a message that the user reads, and no opinion."""
    return {"systemMessage": message}


def withhold(harness: Harness, event: RanEvent) -> dict[str, Any] | None:
    """Answer ``PostToolUse`` so that the agent reads ``WITHHELD`` in place of the result; ``None`` if that cannot be.

    Claude Code drops an output of another shape than the tool's own, and offers no way to replace an error.
    """
    if harness == "codex":
        return block(WITHHELD)
    replacement = _replace_texts(event.response) if event.name == "PostToolUse" else None
    if replacement is None:
        return None
    return {"hookSpecificOutput": {"hookEventName": event.name, "updatedToolOutput": replacement}}


def _replace_texts(response: Any) -> Any:
    """Return a result of the same shape with ``WITHHELD`` as its text; ``None`` for an unknown shape."""
    if isinstance(response, dict) and {"stdout", "stderr"} <= response.keys():
        # Unknown members are left out, because one may be a copy of the output, or name a file that has it.
        flags = {name: response[name] for name in _FLAGS if isinstance(response.get(name), bool)}
        return {"stdout": WITHHELD, "stderr": "", **flags, "isImage": False}
    if isinstance(response, list) and all(isinstance(block, dict) for block in response):
        return [{"type": "text", "text": WITHHELD}]
    return WITHHELD if isinstance(response, str) else None


def refuse_event(harness: Harness, event: HookEvent, message: str) -> dict[str, Any]:
    """Answer an event with a refusal; an event that cannot be refused gets a warning or no opinion."""
    if isinstance(event, CallEvent):
        return answer_call(harness, "deny", message)
    if isinstance(event, PromptEvent | AnswerEvent):
        return block(message)
    if isinstance(event, RanEvent):
        return withhold(harness, event) or NO_OPINION
    return warn_user(message)
