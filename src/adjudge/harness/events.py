"""The events that Claude Code and Codex (harnesses) send to a hook, read strictly into dataclasses.

An event may be forged, or its texts chosen by the agent or by a document that the agent read. So an event that cannot
be read is an error, and never a call that goes unchecked.

Sources: recorded with Claude Code 2.1.330 and Codex 0.169.0 (``tests/data/harness``).

``hook_guard.py`` (``HookGuard``) decides how an event is answered.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, Literal, get_args

from adjudge.errors import UsageError
from adjudge.formats.json import check_decimals, read_json
from adjudge.formats.text import show
from adjudge.guards.tool_guard.call import ToolCall
from adjudge.guards.tool_guard.named_files import PATCH_TOOL
from adjudge.harness.hook_client import LARGEST_EVENT, leave_out_result
from adjudge.harness.patch import find_patch
from adjudge.ledger.columns import name_owned_run

Harness = Literal["claude", "codex"]

HARNESSES: tuple[Harness, ...] = get_args(Harness)

NAMES: Mapping[Harness, str] = {"claude": "Claude Code", "codex": "Codex"}

SOURCE = "mcp_server_source"
"""The remark that names the source of an MCP server's definition, such as ``project``."""

_REMARKS: Mapping[str, Mapping[str, tuple[str, ...]]] = {"claude": {"Bash": ("description",)}, "codex": {}}
"""Arguments, by harness and tool, in which a model only describes a call, and which the tool never reads.

A model words them differently each time, so with them a repeated call would not equal the call that was approved."""

_NOT_IN_SERVER_NAME = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEvent:
    """``PreToolUse``: a call that the agent wants to make."""

    call: ToolCall
    patch: ToolCall | None = None
    """The patch that the harness will apply in place of running the command; to be checked as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RanEvent:
    """``PostToolUse`` or ``PostToolUseFailure``: a call that was made, as it was made."""

    call: ToolCall
    name: str
    """The name of the event, which the answer repeats."""
    response: Any = None
    """The output that the tool returned, or the error of one that failed."""
    failed: bool = False
    left_out: bool = False
    """True if there was a response that was too long to be sent, so that nothing can say what the agent has read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartEvent:
    """``SessionStart``: a session that starts or is resumed."""

    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptEvent:
    """``UserPromptSubmit``: a prompt that is about to reach the agent."""

    run_id: str
    prompt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerEvent:
    """``Stop``: the answer with which the agent ends its turn."""

    run_id: str
    answer: str
    is_second: bool = False
    """True if a hook has sent an answer back in this turn already."""


HookEvent = StartEvent | CallEvent | RanEvent | PromptEvent | AnswerEvent


def read_event(harness: Harness, raw: bytes) -> HookEvent:
    """Read what a harness wrote to its hook's standard input. Raises ``UsageError`` for anything else.

    If an event cannot be read because of the tool's result, it is read without the result, so that the call is on
    record all the same.
    """
    if len(raw) > LARGEST_EVENT:
        raise UsageError(f"the event has more than {LARGEST_EVENT:,} bytes; the hook takes no longer one")
    try:
        document = _read_document(raw)
    except UsageError:
        shortened = _leave_out_result(raw)
        if shortened is None:
            raise
        event = read_event_object(harness, _read_document(shortened))
        return replace(event, left_out=True) if isinstance(event, RanEvent) else event
    return read_event_object(harness, document)


def _read_document(raw: bytes) -> dict[str, Any]:
    """Read an event as a JSON object.

    Raises ``UsageError`` for anything else, also for a decimal that a float does not hold as it is written.
    """
    try:
        text = raw.decode()
        document = read_json(text)
        check_decimals(text)
    except ValueError as error:  # a UnicodeDecodeError is one too
        problem = "it is no UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
        raise UsageError(f"the event is no JSON: {problem}") from None
    if not isinstance(document, dict):
        raise UsageError(f"the event must be an object, got {type(document).__name__}")
    return document


def _leave_out_result(raw: bytes) -> bytes | None:
    """Return an event without the tool's result; ``None`` for an event that has none, or is no JSON."""
    try:
        event = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return leave_out_result(event) if isinstance(event, dict) else None


def read_event_object(harness: Harness, event: Mapping[str, Any], *, owner: str | None = None) -> HookEvent:
    """Read an event from its JSON object. Raises ``UsageError`` for anything else than an event that is known.

    ``owner`` is the caller to whom the run belongs, if several callers ask one guard: none may name another's run.
    """
    name = _read_text(event, "hook_event_name")
    session = _read_text(event, "session_id")
    run_id = session if owner is None else name_owned_run(owner, session)
    if name == "SessionStart":
        return StartEvent(run_id=run_id)
    if name == "UserPromptSubmit":
        return PromptEvent(run_id=run_id, prompt=_read_text(event, "prompt"))
    if name == "Stop":
        is_second = event.get("stop_hook_active", False)
        if not isinstance(is_second, bool):
            raise UsageError(f"stop_hook_active of the event must be true or false, got {show(is_second)}")
        answer = event.get("last_assistant_message")
        return AnswerEvent(
            run_id=run_id,
            answer="" if answer is None else _read_text(event, "last_assistant_message"),
            is_second=is_second,
        )
    call = _read_call(harness, event, run_id)
    if name == "PreToolUse":
        patch = _find_patch_call(call) if harness == "codex" else None
        return CallEvent(call=call, patch=patch)
    if name == "PostToolUse":
        return RanEvent(call=call, name=name, response=event.get("tool_response"))
    if name == "PostToolUseFailure" and harness == "claude":
        return RanEvent(call=call, name=name, response=event.get("error"), failed=True)
    raise UsageError(
        f"the event {show(name)} of {NAMES[harness]} is none that the hook knows; take it out of the hooks"
    )


def _read_call(harness: Harness, event: Mapping[str, Any], run_id: str) -> ToolCall:
    """Read the call of an event; remarks in its arguments (see ``_REMARKS``) are kept apart, and not judged.

    Raises ``UsageError`` for arguments that are no object.
    """
    tool, server, source = _read_tool(event)
    arguments = event.get("tool_input")
    if not isinstance(arguments, dict):
        raise UsageError(f"tool_input of the event must be an object, got {show(arguments)}")
    judged = drop_remarks(harness, tool, server, arguments)
    remarks = {name: arguments[name] for name in arguments if name not in judged}
    agent = event.get("agent_id")
    return ToolCall(
        tool,
        judged,
        _read_text(event, "tool_use_id"),
        run_id,
        server=server,
        cwd=_read_cwd(event),
        agent=None if agent is None else _read_text(event, "agent_id"),
        remarks=remarks if source is None else {SOURCE: source},
    )


def _read_tool(event: Mapping[str, Any]) -> tuple[str, str | None, str | None]:
    """Read the name of the tool, the MCP server that it belongs to, and that server's source.

    Raises ``UsageError`` where name and server contradict each other.
    """
    name = _read_text(event, "tool_name")
    description = event.get("mcp_server")
    if description is None:
        return *split_tool_name(name), None
    if not isinstance(description, dict):
        raise UsageError(f"mcp_server of the event must be an object, got {show(description)}")
    server = _read_text(description, "name")
    prefix = f"mcp__{_NOT_IN_SERVER_NAME.sub('_', server)}__"
    if not name.startswith(prefix) or name == prefix:
        raise UsageError(f"the tool {show(name)} is not one of the MCP server {show(server)} that the event names")
    source = description.get("source")
    return name.removeprefix(prefix), server, None if source is None else _read_text(description, "source")


def split_tool_name(name: str) -> tuple[str, str | None]:
    """Split the name of a tool as harnesses write it into the tool and the MCP server that has it.

    Raises ``UsageError`` for a name that could be of more than one server.
    """
    if not name.startswith("mcp__"):
        return name, None
    server, separator, tool = name.removeprefix("mcp__").partition("__")
    # mcp__bank__x__pay is "pay" of "bank__x" as much as "x__pay" of "bank", which may have other gates.
    if not server or not tool or not separator or "__" in tool or tool.startswith("_") or server.endswith("_"):
        raise UsageError(f"the tool {show(name)} could be of more than one MCP server; give one of them another name")
    return tool, server


def drop_remarks(harness: str, tool: str, server: str | None, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call without those by which the agent only describes it."""
    names = _REMARKS.get(harness, {}).get(tool, ()) if server is None else ()
    return {name: value for name, value in arguments.items() if name not in names}


def _find_patch_call(call: ToolCall) -> ToolCall | None:
    """Find the patch that a shell command applies, as a call of the patch tool in the folder of the patch.

    Returns ``None`` for a command without a patch. Raises ``UsageError`` for a command that is not a patch alone.
    """
    arguments = call.arguments
    command = arguments.get("command") if isinstance(arguments, Mapping) and call.server is None else None
    if call.tool != "Bash" or not isinstance(command, str):
        return None
    found_patch = find_patch(command)
    if found_patch is None:
        return None
    folder = call.cwd or ""
    cwd = folder if found_patch.folder is None else str(PurePath(folder) / found_patch.folder)
    return replace(call, tool=PATCH_TOOL, arguments={"command": found_patch.patch}, cwd=cwd)


def _read_cwd(event: Mapping[str, Any]) -> str:
    """Read the working directory of an event. Raises ``UsageError`` unless it is an absolute path."""
    folder = _read_text(event, "cwd")
    if not PurePath(folder).is_absolute():
        raise UsageError(f"cwd of the event must be an absolute path, got {show(folder)}")
    return folder


def _read_text(table: Mapping[str, Any], name: str) -> str:
    """Read a member that must be a text and not empty. Raises ``UsageError``."""
    text = table.get(name)
    if not isinstance(text, str) or not text:
        raise UsageError(f"{name} of the event must be a text, got {show(text)}")
    return text
