"""Messages to and from models as traces keep them: words, calls and results, in the forms of several makers.

Sources: the messages of OpenTelemetry's conventions for generative AI (``parts``), of Chat Completions (``content``,
``tool_calls``) and of LangChain (``args`` in place of a function), the blocks of Anthropic's content, the items of
OpenAI's Responses, and the messages and calls of the Model Context Protocol (specification 2025-11-25).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from adjudge.agents.step import Role
from adjudge.agents.transcript import read_arguments, read_kind, read_text
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
    """A part that nobody here knows: it could be a call."""

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
"""Every other role is the system's: a judge is not shown its words."""

_TEXTS = frozenset({"text", "input_text", "output_text", "refusal"})

_CALLS = frozenset({"tool_call", "tool_use", "server_tool_use", "mcp_tool_use", "server_tool_call", "function_call"})

_RESULTS = frozenset({"tool_call_response", "server_tool_call_response", "function_call_output", "tool_result"})

_IGNORED = frozenset(
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
    """Return the object or list that a text is the JSON of; anything else as it is."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        return read_json(value)
    except ValueError:
        return value


def read_messages(value: Any, *, role: str) -> tuple[Message, ...] | None:
    """Read messages, one or a list of them, from a value or its JSON; ``None`` for what holds none.

    ``role`` is that of what names none: ``user`` for what a model was sent, ``assistant`` for what it answered.
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
    """Return whether an object is a message, or a part of one without its message."""
    is_message = "role" in value and (
        "content" in value or "tool_calls" in value or isinstance(value.get("parts"), list)
    )
    return is_message or bool(read_kind(value)) or value.get("jsonrpc") == "2.0"


def _read_message(message: dict[str, Any], default: str) -> Message:
    """Read a message in the form of any known interface, by what it has; ``default`` is its role if it names none."""
    name = read_kind(message, "role")
    role = _find_role(name or default)
    if message.get("jsonrpc") == "2.0" and "role" not in message:
        return _read_rpc(message)
    if "role" not in message and read_kind(message) != "message":
        return Message(role, tuple(_read_part(message, frozenset())))
    if name in ("tool", "function") and "parts" not in message:
        failed = message.get("status") == "error"
        return Message(role, (ResultPart(message.get("tool_call_id"), read_text(message.get("content")), failed),))
    calls = [*_list_members(message, "tool_calls"), *_list_members(message, "invalid_tool_calls")]
    known = {read_kind(call, "id") for call in calls} - {""}
    content = message.get("parts", message.get("content"))
    is_part = isinstance(content, dict) and read_kind(content)  # MCP has one part where others have a list
    parts = content if isinstance(content, list) else [content if is_part else {"type": "text", "text": content}]
    read = [made for part in parts for made in _read_part(part, known)] + [_read_call(call) for call in calls]
    if message.get("function_call") is not None and not calls:
        read.append(UnknownPart("a message has a call in a form that is not known here"))
    return Message(role, tuple(read), name)


def _find_role(name: str) -> Role:
    return _ROLES.get(name, "system")


def _list_members(message: dict[str, Any], name: str) -> Sequence[Any]:
    members = message.get(name)
    return members if isinstance(members, list) else [] if members is None else [members]


def _read_part(part: Any, known: AbstractSet[str]) -> Iterator[MessagePart]:
    """Read a part of a message; ``known`` are the ids of calls next to it, which some write twice."""
    if isinstance(part, str):
        part = {"type": "text", "text": part}
    kind = read_kind(part)
    if kind in _TEXTS:
        text = read_text(next((part[name] for name in ("text", "content", "refusal") if name in part), None))
        if text:
            yield Words(text)
    elif kind in _CALLS:
        if read_kind(part, "id") not in known:
            yield _read_call(part)
    elif kind in _RESULTS or kind.endswith("_tool_result"):
        names = ("response", "result", "output", "content")
        text = read_text(next((part[name] for name in names if name in part), None))
        failed = part.get("is_error") is True or part.get("isError") is True
        yield ResultPart(_find_id(part, "call_id", "tool_use_id", "toolUseId", "id"), text, failed)
    elif kind not in _IGNORED:
        yield UnknownPart(f"a message has a part that is not known here: {quote(kind, 60)}")


def _read_call(call: Any) -> CallPart | UnknownPart:
    """Read a call, whose name and arguments some put below ``function``."""
    made = call if isinstance(call, dict) else {}
    inner = made.get("function")
    inner = inner if isinstance(inner, dict) else made
    names = ("arguments", "args", "input", "server_tool_call")
    arguments = next((inner[name] for name in names if name in inner), None)
    if "name" not in inner:
        return UnknownPart("a message has a call in a form that is not known here")
    return CallPart(inner["name"], read_arguments(arguments), _find_id(made, "call_id", "id"))


def _read_rpc(message: dict[str, Any]) -> Message:
    """Read a call of MCP, or the answer to one."""
    ident, params = message.get("id"), message.get("params")
    call_id = str(ident) if isinstance(ident, int | str) else None
    if message.get("method") == "tools/call" and isinstance(params, dict):
        return Message("assistant", (CallPart(params.get("name"), read_arguments(params.get("arguments")), call_id),))
    result = message.get("result", message.get("error"))
    if result is None:
        method = quote(read_kind(message, "method"), 60)
        return Message("system", (UnknownPart(f"a message has a method that is not known here: {method}"),))
    holds_content = isinstance(result, dict) and "content" in result
    failed = "error" in message or (isinstance(result, dict) and result.get("isError") is True)
    return Message("user", (ResultPart(call_id, read_text(result["content"] if holds_content else result), failed),))


def _find_id(part: dict[str, Any], *names: str) -> Any:
    return next((part[name] for name in names if part.get(name) is not None), None)
