"""Runs of pydantic-ai agents: the message history that ``all_messages_json()`` writes.

Sources: recorded with pydantic-ai-slim 2.62.0. The history does not say what a run took in time and money.
"""

from __future__ import annotations

from typing import Any

from adjudge.agents.run import AgentRun
from adjudge.agents.source import Document
from adjudge.agents.transcript import (
    Transcript,
    add_usages,
    read_arguments,
    read_name,
    read_string,
    read_text,
    read_usage,
    write_answer,
)
from adjudge.formats.text import quote
from adjudge.result import Usage

_MESSAGE_KINDS = frozenset({"request", "response"})

_IGNORED_PARTS = frozenset(
    {
        "file",
        "instruction",
        "instruction-baseline",
        "instruction-delta",
        "instruction-digest",
        "model-settings-delta",
        "thinking",
        "tool-availability-delta",
    }
)
"""Parts that are neither words nor calls."""

_CUT_OFF_REASONS = frozenset({"length", "content_filter", "error"})

_OUTPUT_TOOL, _OUTPUT_TAKEN = "final_result", "Final result processed."
"""The name of the tool by which a model gives its output, unless its agent names it otherwise, and its result."""


def is_pydantic_ai(entry: dict[str, Any]) -> bool:
    """Return whether an object is a message of pydantic-ai."""
    return read_string(entry, "kind") in _MESSAGE_KINDS and isinstance(entry.get("parts"), list)


def read_pydantic_ai(document: Document) -> AgentRun:
    """Read the run of an agent from its messages."""
    transcript = Transcript("pydantic_ai")
    for number in document.unreadable:
        transcript.report(f"line {number} cannot be read")
    usages: list[Usage | None] = []
    conversation: str | None = None
    for number, message in zip(document.numbers, document.objects, strict=True):
        conversation_id = read_name(message.get("conversation_id"))
        if conversation_id is not None and conversation not in (None, conversation_id):
            transcript.report(f"message {number} is of another conversation")
        conversation = conversation_id or conversation
        _read_message(transcript, number, message)
        if read_string(message, "kind") == "response":
            usages.append(read_usage(message.get("usage"), cached="cache_read_tokens", written="cache_write_tokens"))
    answer = transcript.get_last_text()
    if answer is None:
        answer = _find_output(transcript, document.objects[-1])
    if answer is None:
        transcript.report("it ends before the agent's last word")
    outcome = "finished" if answer is not None else "failed"
    metadata = {"session": conversation}
    return transcript.make_run(answer=answer, outcome=outcome, usage=add_usages(usages), metadata=metadata)


def _find_output(transcript: Transcript, last: dict[str, Any]) -> str | None:
    """Find the output that an agent gave by a call; ``None`` if it gave none.

    The last message says that the framework took the output. Only the framework's own name of that tool counts, because
    any other tool could return the same words.
    """
    parts = last.get("parts") if read_string(last, "kind") == "request" else None
    for part in parts if isinstance(parts, list) else []:
        if read_string(part, "content") == _OUTPUT_TAKEN and read_string(part, "tool_name").startswith(_OUTPUT_TOOL):
            call_id = part.get("tool_call_id")
            call, result = transcript.get_call(call_id), transcript.get_result(call_id)
            if call is not None and call.tool == part["tool_name"] and result is not None:
                return write_answer(call.arguments)
    return None


def _read_message(transcript: Transcript, number: int, message: dict[str, Any]) -> None:
    """Read a message to or from the model; report one that was cut off, and parts of unknown kinds."""
    kind, parts = read_string(message, "kind"), message.get("parts")
    if kind not in _MESSAGE_KINDS or not isinstance(parts, list):
        transcript.report(f"message {number} is of a kind that is not known here: {quote(kind, 60)}")
        return
    if (
        read_string(message, "state") not in ("", "complete")
        or read_string(message, "finish_reason") in _CUT_OFF_REASONS
    ):
        transcript.report(f"message {number} was cut off")
    for part in parts:
        members = part if isinstance(part, dict) else {}
        is_known = (
            _read_request_part(transcript, members)
            if kind == "request"
            else _read_response_part(transcript, number, members)
        )
        if not is_known:
            part_kind = quote(read_string(members, "part_kind"), 60)
            transcript.report(f"message {number} has a part that is not known here: {part_kind}")


def _read_request_part(transcript: Transcript, part: dict[str, Any]) -> bool:
    """Read a part of a message to the model, and return whether its kind is known."""
    kind, content = read_string(part, "part_kind"), part.get("content")
    if kind == "tool-return":
        failed = part.get("outcome", "success") != "success"
        transcript.add_result(part.get("tool_call_id"), read_text(content), failed=failed)
    elif kind == "retry-prompt" and part.get("tool_name") is not None:
        transcript.add_result(part.get("tool_call_id"), read_text(content), failed=True)
    elif kind in ("retry-prompt", "retry-feedback", "user-prompt"):
        transcript.add_text("user", read_text(content))
    elif kind == "system-prompt":
        transcript.add_text("system", read_text(content))
    else:
        return kind in _IGNORED_PARTS
    return True


def _read_response_part(transcript: Transcript, number: int, part: dict[str, Any]) -> bool:
    """Read a part of a message from the model, and return whether its kind is known."""
    kind, reply = read_string(part, "part_kind"), f"message {number}"
    if kind == "text":
        transcript.add_text("assistant", read_text(part.get("content")), reply=reply)
    elif kind in ("tool-call", "builtin-tool-call"):
        arguments = read_arguments(part.get("args"))
        transcript.add_call(part.get("tool_name"), arguments, part.get("tool_call_id"), reply=reply)
    elif kind == "builtin-tool-return":
        failed = part.get("outcome", "success") != "success"
        transcript.add_result(part.get("tool_call_id"), read_text(part.get("content")), failed=failed)
    else:
        return kind in _IGNORED_PARTS
    return True
