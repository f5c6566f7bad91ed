"""Runs of LangChain agents: the messages of a graph's state, as ``messages_to_dict`` or ``model_dump`` writes them.

Sources: recorded with langchain 1.4.7. The messages do not say what a run took in time and money.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adjudge.agents.run import AgentRun, RunOutcome
from adjudge.agents.source import Document
from adjudge.agents.step import Role
from adjudge.agents.transcript import (
    Transcript,
    add_usages,
    is_answer,
    read_count,
    read_kind,
    read_name,
    read_string,
    read_text,
    write_answer,
)
from adjudge.formats.text import quote
from adjudge.result import Usage

_ROLES: dict[str, Role] = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant", "system": "system"}

_MESSAGE_KINDS = frozenset({*_ROLES, "tool"})

_IGNORED_PARTS = frozenset(
    {"text", "tool_use", "tool_call", "tool_call_chunk", "function_call", "thinking", "reasoning"}
)
"""Kinds of parts of a message that are not read, or are also elsewhere in the message."""

_CALL_PARTS = frozenset({"tool_use", "tool_call", "function_call"})
"""Those of them that are calls, each of which is also in the message's list of calls."""

_CUT_OFF_REASONS = frozenset({"length", "max_tokens", "content_filter", "incomplete"})


def is_langchain(entry: dict[str, Any]) -> bool:
    """Return whether an object is a message of LangChain, or a state that holds some."""
    messages = entry.get("messages")
    if isinstance(messages, list):
        return any(isinstance(message, dict) and is_langchain(message) for message in messages[:50])
    message = _unwrap_message(entry)
    return read_kind(message) in _MESSAGE_KINDS and "content" in message and "response_metadata" in message


def _unwrap_message(entry: dict[str, Any]) -> dict[str, Any]:
    """Return the members of a message, which ``messages_to_dict`` writes below ``data``, unlike ``model_dump``."""
    data = entry.get("data")
    return {**data, "type": entry.get("type")} if isinstance(data, dict) else entry


def read_langchain(document: Document) -> AgentRun:
    """Read the run of an agent from its messages, or from the state of its graph."""
    transcript = Transcript("langchain")
    for number in document.unreadable:
        transcript.report(f"line {number} cannot be read")
    messages, is_interrupted = _list_messages(document, transcript)
    usages: list[Usage | None] = []
    seen_message_ids: set[str] = set()
    for number, entry in enumerate(messages, 1):
        message = _unwrap_message(entry) if isinstance(entry, dict) else {}
        message_id = read_name(message.get("id"))
        if message_id is not None and message_id in seen_message_ids:
            transcript.report(f"message {number} stands there twice")
        seen_message_ids |= set() if message_id is None else {message_id}
        _read_message(transcript, number, message)
        if _ROLES.get(read_kind(message)) == "assistant":
            usages.append(_read_usage(message.get("usage_metadata")))
    answer = transcript.get_last_text()
    if answer is None and len(document.objects) == 1:
        answer = _find_output(transcript, document.objects[0].get("structured_response"))
    outcome: RunOutcome = "finished" if answer is not None else "failed"
    if is_interrupted:
        outcome, answer = "held", None
    elif answer is None:
        transcript.report("it ends before the agent's last word")
    return transcript.make_run(answer=answer, outcome=outcome, usage=add_usages(usages))


def _list_messages(document: Document, transcript: Transcript) -> tuple[Sequence[Any], bool]:
    """List the messages of a document, and return also whether the run was interrupted and waits to be resumed."""
    first = document.objects[0]
    if len(document.objects) > 1 or not isinstance(first.get("messages"), list):
        return document.objects, False
    if first.get("__interrupt__"):
        transcript.report("the graph was interrupted, and waits to be resumed")
        return first["messages"], True
    return first["messages"], False


def _find_output(transcript: Transcript, output: Any) -> str | None:
    """Return the structured output of a run, if its last call has the same arguments; else ``None``.

    A state may have the output of an earlier run.
    """
    call = transcript.steps[-1].call if transcript.steps else None
    is_last = transcript.get_last_result() is not None and call is not None and is_answer(call.arguments, output)
    return write_answer(output) if is_last else None


def _read_message(transcript: Transcript, number: int, message: dict[str, Any]) -> None:
    """Read a message: the result of a tool, or words, for the agent with its calls. Unknown kinds are reported."""
    kind = read_kind(message)
    if kind == "tool":
        failed = message.get("status") == "error"
        transcript.add_result(message.get("tool_call_id"), read_text(message.get("content")), failed=failed)
    elif kind in _ROLES:
        reply = f"message {number}" if _ROLES[kind] == "assistant" else None
        transcript.add_text(_ROLES[kind], _read_texts(transcript, number, message), reply=reply)
        if reply is not None:
            _read_calls(transcript, number, message, reply)
    else:
        transcript.report(f"message {number} is of a kind that is not known here: {quote(kind, 60)}")


def _read_calls(transcript: Transcript, number: int, message: dict[str, Any], reply: str) -> None:
    """Add the calls of a reply, also those whose arguments LangChain could not read; report one that was cut off."""
    metadata = message.get("response_metadata")
    reasons = [read_string(metadata, name) for name in ("finish_reason", "stop_reason", "status")]
    if _CUT_OFF_REASONS.intersection(reasons):
        transcript.report(f"message {number} was cut off")
    for member in ("tool_calls", "invalid_tool_calls"):
        calls = message.get(member)
        for call in calls if isinstance(calls, list) else []:
            members = call if isinstance(call, dict) else {}
            transcript.add_call(members.get("name"), members.get("args"), members.get("id"), reply=reply)


def _read_texts(transcript: Transcript, number: int, message: dict[str, Any]) -> str:
    """Read the texts of a message; report an unknown part, which may be a call of a tool that the provider runs."""
    content, call_ids = message.get("content"), _list_call_ids(message)
    if not isinstance(content, list):
        return read_text(content)
    texts = []
    for part in content:
        if isinstance(part, str):
            texts.append(part)
        elif read_kind(part) == "text":
            texts.append(read_text(part.get("text")))
        elif read_kind(part) not in _IGNORED_PARTS:
            transcript.report(f"message {number} has a part that is not known here: {quote(read_kind(part), 60)}")
        elif (
            read_kind(part) in _CALL_PARTS and (read_string(part, "call_id") or read_string(part, "id")) not in call_ids
        ):
            transcript.report(f"message {number} has a call among its parts that is not among its calls")
    return "\n".join(texts)


def _list_call_ids(message: dict[str, Any]) -> set[str]:
    """List the ids of the calls of a message, and the empty text: a part that is a call need not have an id."""
    call_lists = [message.get(name) for name in ("tool_calls", "invalid_tool_calls")]
    calls = [call for call_list in call_lists if isinstance(call_list, list) for call in call_list]
    return {read_string(call, "id") for call in calls} | {""}


def _read_usage(value: Any) -> Usage | None:
    """Read the tokens of a reply; ``None`` where those of its input or output are not known."""
    if not isinstance(value, dict):
        return None
    details = value.get("input_token_details")
    cached = read_count(details.get("cache_read")) if isinstance(details, dict) else None
    input_tokens, output_tokens = read_count(value.get("input_tokens")), read_count(value.get("output_tokens"))
    if input_tokens is None or output_tokens is None:
        return None
    return Usage(input_tokens=input_tokens, output_tokens=output_tokens, cached_tokens=cached or 0, calls=0)
