"""Runs of the OpenAI Agents SDK, the items that ``RunResult.to_input_list()`` returns, and Chat Completions' messages.

Sources: recorded with openai-agents 0.24.0; messages by the types of openai 3.54.0 (``ChatCompletionMessageParam``,
``ResponseOutputMessage``). Neither says whether a tool failed, nor what a run took.
"""

from __future__ import annotations

from typing import Any

from adjudge.agents.run import AgentRun
from adjudge.agents.source import Document
from adjudge.agents.step import Role
from adjudge.agents.transcript import Transcript, read_arguments, read_kind, read_text
from adjudge.formats.text import quote

_CALLS = {"function_call": "arguments", "custom_tool_call": "input", "mcp_call": "arguments"}
"""Items that are calls with a name, and the member that holds their arguments."""

_CHAT_CALLS = {"function": "arguments", "custom": "input"}
"""The same for the calls in a message of Chat Completions."""

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}

_IGNORED = frozenset({"reasoning", "item_reference", "mcp_list_tools", "compaction"})


def is_openai(entry: dict[str, Any]) -> bool:
    """Return whether an object is an item of the SDK."""
    kind = read_kind(entry)
    if kind in _CALLS or kind.endswith("_call_output"):
        return "role" not in entry
    return read_kind(entry, "role") in (*_ROLES, "tool") and "content" in entry and _is_message(entry)


def _is_message(item: dict[str, Any]) -> bool:
    return item.get("type") is None or item["type"] == "message"


def read_openai(document: Document) -> AgentRun:
    """Read a run from its items."""
    transcript = Transcript("openai")
    for number in document.unreadable:
        transcript.report(f"line {number} cannot be read")
    for number, item in zip(document.numbers, document.objects, strict=True):
        _read_item(transcript, number, item)
    if not document.whole and any(read_kind(item) for item in document.objects):
        # Words and calls of one reply are items of their own, so that a file which was cut after words looks whole.
        transcript.report("the items stand in lines, and none of them says that it is the last; keep them as one list")
    is_commentary = read_kind(document.objects[-1], "phase") == "commentary"
    answer = None if is_commentary else transcript.get_last_text()
    if answer is None:
        transcript.report("it ends before the agent's last word")
    outcome = "finished" if answer is not None else "failed"
    return transcript.make_run(answer=answer, outcome=outcome, unknown=("files", "failures"))


def _read_item(transcript: Transcript, number: int, item: dict[str, Any]) -> None:
    """Read an item of the responses interface, or a message of chat completions; report what is not known."""
    kind, role = read_kind(item), read_kind(item, "role")
    if _is_message(item) and role in _ROLES:
        transcript.add_text(_ROLES[role], read_text(item.get("content")))
        if item.get("status") == "incomplete":
            transcript.report(f"item {number} is a message that was cut off")
        _read_chat_calls(transcript, number, item)
    elif _is_message(item) and role == "tool":
        transcript.add_result(item.get("tool_call_id"), read_text(item.get("content")))
    elif kind in _CALLS:
        call_id = item.get("call_id") or item.get("id")
        transcript.add_call(item.get("name"), read_arguments(item.get(_CALLS[kind])), call_id)
        if kind == "mcp_call":
            failed = item.get("error") is not None
            transcript.add_result(
                call_id, read_text(item.get("error") if failed else item.get("output")), failed=failed
            )
    elif kind.endswith("_call_output"):
        transcript.add_result(item.get("call_id"), read_text(item.get("output")))
    elif kind.endswith("_call"):
        read_hosted(transcript, kind, item)
    elif kind not in _IGNORED:
        transcript.report(f"item {number} is of a kind that is not known here: {quote(kind, 60)}")


def _read_chat_calls(transcript: Transcript, number: int, message: dict[str, Any]) -> None:
    """Read the calls in a message of Chat Completions. One that is passed over would be a call that nobody made."""
    calls = message.get("tool_calls") or ()
    if not isinstance(calls, list | tuple) or message.get("function_call") is not None:
        transcript.report(f"item {number} has calls in a form that is not known here")
        return
    for call in calls:
        kind = read_kind(call) if isinstance(call, dict) else ""
        made = call.get(kind) if kind in _CHAT_CALLS else None
        if not isinstance(made, dict):
            transcript.report(f"item {number} has a call of a kind that is not known here: {quote(kind, 60)}")
            continue
        transcript.add_call(made.get("name"), read_arguments(made.get(_CHAT_CALLS[kind])), call.get("id"))


def read_hosted(transcript: Transcript, kind: str, item: dict[str, Any]) -> None:
    """Read a call of the provider's own tools, which are named by their kind; some have no output of their own."""
    call_id = item.get("call_id") or item.get("id")
    arguments = {name: value for name, value in item.items() if name not in ("type", "id", "call_id", "status")}
    transcript.add_call(kind.removesuffix("_call"), arguments, call_id)
    if item.get("call_id") is None:
        transcript.add_result(call_id, read_text(item.get("output") or item.get("result")))
