"""Messages to and from models as traces have them: words, calls and results, in the forms of several makers.

Sources: the messages of OpenTelemetry's conventions for generative AI (``parts``), of Chat Completions (``content``,
``tool_calls``) and of LangChain (``args`` in place of a function), the blocks of Anthropic's content, the items of
OpenAI's Responses, and the messages and calls of the Model Context Protocol (specification 2025-11-25).

The result of a call is joined to the call in ``transcript.py`` (``add_result``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from adjudge.agents.step import Role
from adjudge.agents.transcript import read_arguments, read_kind, read_string, read_text
from adjudge.formats.json import read_json
from adjudge.formats.text import quote


@dataclass(frozen=True, slots=True)
class Words:
    """Somebody's words."""

    text: str


@dataclass(frozen=True, slots=True)
class CallPart:
    """A call that a message asks for; its members are as they were read, of whatever type."""

    tool: Any
    arguments: Any
    call_id: Any


@dataclass(frozen=True, slots=True)
class ResultPart:
    """The result that a call returned."""

    call_id: Any
    text: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class UnknownPart:
    """A part of an unknown kind, which could be a call."""

    problem: str


MessagePart = Words | CallPart | ResultPart | UnknownPart


@dataclass(frozen=True, slots=True)
class Message:
    """A message: whose it is, and its parts in order."""

    role: Role
    parts: tuple[MessagePart, ...]
    speaker: str = ""
    """The role as it is written; empty where there is none."""


_ROLES: Mapping[str, Role] = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
}
"""Any other role counts as the system's, whose words a judge is not shown."""

_TEXT_KINDS = frozenset({"text", "input_text", "output_text", "refusal"})

_CALL_KINDS = frozenset(
    {"tool_call", "tool_use", "server_tool_use", "mcp_tool_use", "server_tool_call", "function_call"}
)

_RESULT_KINDS = frozenset({"tool_call_response", "server_tool_call_response", "function_call_output", "tool_result"})

_IGNORED_KINDS = frozenset(
    {
        "audio",
        "audio-url",
        "binary",
        "blob",
        "document",
        "document-url",
        "file",
        "image",
        "image-url",
        "image_url",
        "input_audio",
        "input_file",
        "input_image",
        "reasoning",
        "redacted_thinking",
        "thinking",
        "uri",
        "video",
        "video-url",
    }
)
"""Parts that are neither words nor calls."""


def open_json(value: Any) -> Any:
    """Return the object or list that a text is the JSON of; any other value as it is."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        return read_json(value)
    except ValueError:
        return value


def read_messages(value: Any, *, role: str) -> tuple[Message, ...] | None:
    """Read one message or a list of them, from a value or its JSON; ``None`` for a value that holds none.

    ``role`` is the role of messages that name none: ``user`` in what a model was sent, ``assistant`` in what it
    answered.
    """
    value = open_json(value)
    if isinstance(value, dict) and isinstance(value.get("messages"), list):
        value = value["messages"]
    if isinstance(value, str) and value:
        return (Message(_find_role(role), (Words(value),)),)
    members = value if isinstance(value, list) else [value]
    if not members or not all(isinstance(member, dict) and _is_message(member) for member in members):
        return None
    return tuple([_read_message(member, role) for member in members])


def _is_message(value: dict[str, Any]) -> bool:
    """Return whether an object is a message, or a part of a message by itself."""
    is_message = "role" in value and (
        "content" in value or "tool_calls" in value or isinstance(value.get("parts"), list)
    )
    return is_message or bool(read_kind(value)) or value.get("jsonrpc") == "2.0"


def _read_message(message: dict[str, Any], default: str) -> Message:
    """Read a message of any known form, which its members tell; ``default`` is its role if it names none."""
    stated_role = read_string(message, "role")
    role = _find_role(stated_role or default)
    if message.get("jsonrpc") == "2.0" and "role" not in message:
        return _read_mcp_message(message)
    if "role" not in message and read_kind(message) != "message":
        return Message(role, tuple(_read_part(message, frozenset())))
    if stated_role in ("tool", "function") and "parts" not in message:
        failed = message.get("status") == "error"
        return Message(role, (ResultPart(message.get("tool_call_id"), read_text(message.get("content")), failed),))
    calls = [*_list_members(message, "tool_calls"), *_list_members(message, "invalid_tool_calls")]
    call_ids = {read_string(call, "id") for call in calls} - {""}
    content = message.get("parts", message.get("content"))
    is_single_part = isinstance(content, dict) and read_kind(content)  # as in MCP, where others have a list
    parts = content if isinstance(content, list) else [content if is_single_part else {"type": "text", "text": content}]
    message_parts = [message_part for part in parts for message_part in _read_part(part, call_ids)]
    message_parts += [_read_call(call) for call in calls]
    if message.get("function_call") is not None and not calls:
        message_parts.append(UnknownPart("a message has a call in a form that is not known here"))
    return Message(role, tuple(message_parts), stated_role)


def _find_role(name: str) -> Role:
    """Return our role for the role that a message names; an unknown one is the system's."""
    return _ROLES.get(name, "system")


def _list_members(message: dict[str, Any], name: str) -> Sequence[Any]:
    """Return the list that a message has under a name; a single value there becomes a list of one."""
    members = message.get(name)
    return members if isinstance(members, list) else [] if members is None else [members]


def _read_part(part: Any, call_ids: AbstractSet[str]) -> Iterator[MessagePart]:
    """Yield what a part of a message says: words, a call, or a result; nothing for a part that is ignored.

    ``call_ids`` are the ids of the calls beside the parts. A call with one of these ids is skipped, because some makers
    write each call twice.
    """
    if isinstance(part, str):
        part = {"type": "text", "text": part}
    kind = read_kind(part)
    if kind in _TEXT_KINDS:
        text = read_text(_read_first_present(part, ("text", "content", "refusal")))
        if text:
            yield Words(text)
    elif kind in _CALL_KINDS:
        if read_string(part, "id") not in call_ids:
            yield _read_call(part)
    elif kind in _RESULT_KINDS or kind.endswith("_tool_result"):
        text = read_text(_read_first_present(part, ("response", "result", "output", "content")))
        failed = part.get("is_error") is True or part.get("isError") is True
        yield ResultPart(_read_first_member(part, "call_id", "tool_use_id", "toolUseId", "id"), text, failed)
    elif kind not in _IGNORED_KINDS:
        yield UnknownPart(f"a message has a part that is not known here: {quote(kind, 60)}")


def _read_call(call: Any) -> CallPart | UnknownPart:
    """Read a call; some makers put its name and its arguments into a member ``function``."""
    members = call if isinstance(call, dict) else {}
    function = members.get("function")
    function = function if isinstance(function, dict) else members
    arguments = _read_first_present(function, ("arguments", "args", "input", "server_tool_call"))
    if "name" not in function:
        return UnknownPart("a message has a call in a form that is not known here")
    return CallPart(function["name"], read_arguments(arguments), _read_first_member(members, "call_id", "id"))


def _read_mcp_message(message: dict[str, Any]) -> Message:
    """Read a message of the Model Context Protocol: the call of a tool, or the answer to one."""
    message_id, params = message.get("id"), message.get("params")
    call_id = str(message_id) if isinstance(message_id, int | str) else None
    if message.get("method") == "tools/call" and isinstance(params, dict):
        return Message("assistant", (CallPart(params.get("name"), read_arguments(params.get("arguments")), call_id),))
    result = message.get("result", message.get("error"))
    if result is None:
        method = quote(read_string(message, "method"), 60)
        return Message("system", (UnknownPart(f"a message has a method that is not known here: {method}"),))
    holds_content = isinstance(result, dict) and "content" in result
    failed = "error" in message or (isinstance(result, dict) and result.get("isError") is True)
    return Message("user", (ResultPart(call_id, read_text(result["content"] if holds_content else result), failed),))


def _read_first_member(part: dict[str, Any], *names: str) -> Any:
    """Return the first of some members that is not ``None``; ``None`` if there is none."""
    return next((part[name] for name in names if part.get(name) is not None), None)


def _read_first_present(part: dict[str, Any], names: Sequence[str]) -> Any:
    """Return the first of some members that is there, whatever its value; ``None`` if there is none."""
    return next((part[name] for name in names if name in part), None)
