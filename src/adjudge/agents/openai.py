"""Runs of the OpenAI Agents SDK: the items that ``RunResult.to_input_list()`` returns.

Sources: recorded with openai-agents 0.24.0. The items do not say whether a tool failed, nor what a run took.
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

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}

_IGNORED = frozenset({"reasoning", "item_reference", "mcp_list_tools", "compaction"})


def is_openai(entry: dict[str, Any]) -> bool:
    """Return whether an object is an item of the SDK."""
    kind = read_kind(entry)
    if kind in _CALLS or kind.endswith("_call_output"):
        return "role" not in entry
    return read_kind(entry, "role") in _ROLES and "content" in entry and _is_message(entry)


def _is_message(item: dict[str, Any]) -> bool:
    return item.get("type") is None or item["type"] == "message"


def read_openai(document: Document) -> AgentRun:
    """Read a run from its items."""
    transcript = Transcript("openai")
    for number in document.unreadable:
        transcript.report(f"line {number} cannot be read")
    for number, item in zip(document.numbers, document.objects, strict=True):
        _read_item(transcript, number, item)
    answer = transcript.get_last_text()
    if answer is None:
        transcript.report("it ends before the agent's last word")
    outcome = "finished" if answer is not None else "failed"
    return transcript.make_run(answer=answer, outcome=outcome, unknown=("files", "failures"))


def _read_item(transcript: Transcript, number: int, item: dict[str, Any]) -> None:
    kind, role = read_kind(item), read_kind(item, "role")
    if _is_message(item) and role in _ROLES:
        transcript.add_text(_ROLES[role], read_text(item.get("content")))
        if item.get("status") == "incomplete":
            transcript.report(f"item {number} is a message that was cut off")
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


def read_hosted(transcript: Transcript, kind: str, item: dict[str, Any]) -> None:
    """Read a call of the provider's own tools, which are named by their kind; some have no output of their own."""
    call_id = item.get("call_id") or item.get("id")
    arguments = {name: value for name, value in item.items() if name not in ("type", "id", "call_id", "status")}
    transcript.add_call(kind.removesuffix("_call"), arguments, call_id)
    if item.get("call_id") is None:
        transcript.add_result(call_id, read_text(item.get("output") or item.get("result")))
