"""Runs of the OpenAI Agents SDK, the items that ``RunResult.to_input_list()`` returns, and Chat Completions' messages.

Sources: recorded with openai-agents 0.24.0; messages by the types of openai 3.54.0 (``ChatCompletionMessageParam``,
``ResponseOutputMessage``). Neither says whether a tool failed, nor what a run took.
"""

from __future__ import annotations

from typing import Any

from adjudge.agents.run import AgentRun
from adjudge.agents.source import Document
from adjudge.agents.step import Role
from adjudge.agents.transcript import Transcript, read_arguments, read_kind, read_string, read_text
from adjudge.formats.text import quote

_ARGUMENTS_OF_CALL = {"function_call": "arguments", "custom_tool_call": "input", "mcp_call": "arguments"}
"""The kinds of items that are calls with a name, each with the member that holds the arguments."""

_ARGUMENTS_OF_CHAT_CALL = {"function": "arguments", "custom": "input"}
"""The kinds of calls in a message of Chat Completions, each with the member that holds the arguments."""

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}

_IGNORED_KINDS = frozenset({"reasoning", "item_reference", "mcp_list_tools", "compaction"})


def is_openai(entry: dict[str, Any]) -> bool:
    """Return whether an object is an item of the OpenAI Agents SDK, or a message of Chat Completions."""
    kind = read_kind(entry)
    if kind in _ARGUMENTS_OF_CALL or kind.endswith("_call_output"):
        return "role" not in entry
    return read_string(entry, "role") in (*_ROLES, "tool") and "content" in entry and _is_message(entry)


def _is_message(item: dict[str, Any]) -> bool:
    """Return whether an item is a message, which need not name its type."""
    return item.get("type") is None or item["type"] == "message"


def read_openai(document: Document) -> AgentRun:
    """Read the run of an agent from its items."""
    transcript = Transcript("openai")
    for number in document.unreadable:
        transcript.report(f"line {number} cannot be read")
    for number, item in zip(document.numbers, document.objects, strict=True):
        _read_item(transcript, number, item)
    if not document.whole and any(read_kind(item) for item in document.objects):
        # The words and the calls of a reply are separate items, so a file that was cut off after words looks complete.
        transcript.report("the items stand in lines, and none of them says that it is the last; keep them as one list")
    is_commentary = read_string(document.objects[-1], "phase") == "commentary"
    answer = None if is_commentary else transcript.get_last_text()
    if answer is None:
        transcript.report("it ends before the agent's last word")
    outcome = "finished" if answer is not None else "failed"
    return transcript.make_run(answer=answer, outcome=outcome, unknown=("files", "failures"))


def _read_item(transcript: Transcript, number: int, item: dict[str, Any]) -> None:
    """Read an item of the Responses interface, or a message of Chat Completions; an unknown kind is reported."""
    kind, role = read_kind(item), read_string(item, "role")
    if _is_message(item) and role in _ROLES:
        transcript.add_text(_ROLES[role], read_text(item.get("content")))
        if item.get("status") == "incomplete":
            transcript.report(f"item {number} is a message that was cut off")
        _read_chat_calls(transcript, number, item)
    elif _is_message(item) and role == "tool":
        transcript.add_result(item.get("tool_call_id"), read_text(item.get("content")))
    elif kind in _ARGUMENTS_OF_CALL:
        call_id = item.get("call_id") or item.get("id")
        transcript.add_call(item.get("name"), read_arguments(item.get(_ARGUMENTS_OF_CALL[kind])), call_id)
        if kind == "mcp_call":
            failed = item.get("error") is not None
            transcript.add_result(
                call_id, read_text(item.get("error") if failed else item.get("output")), failed=failed
            )
    elif kind.endswith("_call_output"):
        transcript.add_result(item.get("call_id"), read_text(item.get("output")))
    elif kind.endswith("_call"):
        read_hosted(transcript, kind, item)
    elif kind not in _IGNORED_KINDS:
        transcript.report(f"item {number} is of a kind that is not known here: {quote(kind, 60)}")


def _read_chat_calls(transcript: Transcript, number: int, message: dict[str, Any]) -> None:
    """Add the calls in a message of Chat Completions.

    A call of an unknown form is reported: if it were ignored, the run would look as if it had not been made.
    """
    calls = message.get("tool_calls") or ()
    if not isinstance(calls, list | tuple) or message.get("function_call") is not None:
        transcript.report(f"item {number} has calls in a form that is not known here")
        return
    for call in calls:
        kind = read_kind(call) if isinstance(call, dict) else ""
        members = call.get(kind) if kind in _ARGUMENTS_OF_CHAT_CALL else None
        if not isinstance(members, dict):
            transcript.report(f"item {number} has a call of a kind that is not known here: {quote(kind, 60)}")
            continue
        transcript.add_call(
            members.get("name"), read_arguments(members.get(_ARGUMENTS_OF_CHAT_CALL[kind])), call.get("id")
        )


def read_hosted(transcript: Transcript, kind: str, item: dict[str, Any]) -> None:
    """Add a call of a tool that the provider itself runs; the tool is named by the ``kind`` of the item.

    Some of these calls have no output item. They have no ``call_id``, and their output is in the item itself.
    """
    call_id = item.get("call_id") or item.get("id")
    arguments = {name: value for name, value in item.items() if name not in ("type", "id", "call_id", "status")}
    transcript.add_call(kind.removesuffix("_call"), arguments, call_id)
    if item.get("call_id") is None:
        transcript.add_result(call_id, read_text(item.get("output") or item.get("result")))
