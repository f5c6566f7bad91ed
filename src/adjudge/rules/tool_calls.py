"""The tools that a conversation, or an agent's run, called: the rules ``called``, ``not_called`` and ``call_order``.

The messages of OpenAI (chat completions and responses), Anthropic and MCP are understood. Their author may want to
pass, so a rule that demands a call believes only the assistant's own, well-formed calls, and a rule that forbids one
takes anything that resembles a call, in any role and at any depth. Text is never searched for calls: an answer that
claims to have called a tool has not called it. The text of an argument is text too, so ``not_called`` sees no call that
is written there, such as a program, or the calls that a tool like ``multi_tool_use.parallel`` is given as JSON.

Sources: the API references of OpenAI ("Function calling", "Responses"), Anthropic ("Tool use") and the Model Context
Protocol (specification 2025-06-18, ``tools/call``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from adjudge.agents.run import AgentRun
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_flag, check_whole_number
from adjudge.formats.folding import fold
from adjudge.formats.json import is_same, read_json, to_json_value
from adjudge.formats.text import QUOTED, flatten, quote, show
from adjudge.result import RuleResult

_NO_CONVERSATION = (
    "is no conversation whose calls can be read; hand in the messages (OpenAI, Anthropic or MCP), not their text"
)

_CALL_KINDS = (
    *("toolcall", "toolcalls", "functioncall", "functioncalls", "tooluse", "toolcallchunk", "toolcallchunks"),
    *("toolinvocation", "toolinvocations", "mcpcall", "shellcall", "computercall", "patchcall"),
    *("websearchcall", "filesearchcall", "codeinterpretercall", "imagegenerationcall"),
)
"""Endings of member names and types that mean a call in any interface, without case and punctuation."""

_NAMELESS_KINDS = frozenset(
    f"{start}{end}"
    for start in ("", "custom", "server", "mcp", "invalid", "dynamic")
    for end in ("toolcall", "toolcalls", "functioncall", "functioncalls", "tooluse", "toolinvocation", "mcpcall")
)
"""Names of members and types that mean a call and do not tell which tool is called."""

_NOT_CALL_KINDS = frozenset({"toolresult", "tooloutput", "toolerror", "toolresponse", "toolreturn", "toolchoice"})

_TOOL_NAME_MEMBERS = frozenset({"tool_name", "toolName", "recipient_name"})
"""Members that only a call, or its result, has: they name the tool."""

_ARGUMENTS = frozenset({"arguments", "input", "args", "parameters", "params"})

_OUTPUTS = frozenset({"output", "result", "content"})

_LONGEST_KIND = 200
"""The most characters of a type or member name that are compared; no interface has a longer name for a call."""

_HOLDERS = ("messages", "input", "output")
"""Members in which a whole request or response holds its messages."""


class Call(NamedTuple):
    """One call of a tool."""

    tool: str | None
    """The name of the tool; ``None`` if it cannot be read."""
    arguments: Any
    """The arguments as JSON; ``_UNREADABLE`` if they are not JSON."""
    turn: int
    """Calls of one turn are made at once: none of them has seen what another returned."""


_UNREADABLE = object()

_RESULT = object()
"""The arguments of a tool's result, which shows that the tool was called and not with which arguments."""


def make_called(
    *,
    tool: str | list[str],
    arguments: Mapping[str, Any] | None = None,
    min: int = 1,  # noqa: A002 - as in the rule ``length``
    max: int | None = None,  # noqa: A002
) -> Callable[[Any], RuleResult]:
    """Make a check that each of the tools was called, ``min`` to ``max`` times, with at least these arguments."""
    names, expected = read_tool_names("called", tool), read_tool_arguments("called", arguments)
    least = check_whole_number("min", min, least=1, where="rule called")
    most = None if max is None else check_whole_number("max", max, least=least, where="rule called")

    def check(content: Any) -> RuleResult:
        """Check how often one content called each tool."""
        calls = _read_assistant_calls(content)
        if isinstance(calls, str):
            return fail(calls)
        for name in names:
            calls_of_tool = [call for call in calls if call.tool is not None and name.equals(call.tool)]
            count = sum(_has_arguments(call, expected, otherwise=False) for call in calls_of_tool)
            if count < least or (most is not None and count > most):
                return fail(_describe_count(name, count, len(calls_of_tool), least, most))
        return make_pass(f"called {_list_names(names)}")

    return check


def make_not_called(
    *, tool: str | list[str], arguments: Mapping[str, Any] | None = None, allow: str | list[str] | None = None
) -> Callable[[Any], RuleResult]:
    """Make a check that none of the tools was called (with these arguments), but for those in ``allow``.

    A call inside the text of another call's arguments is not seen: OpenAI writes all arguments as one text. Forbid the
    tools that make calls for the model as well, best with ``not_called: "*"`` and the others in ``allow``.
    """
    names, expected = read_tool_names("not_called", tool), read_tool_arguments("not_called", arguments)
    allowed = read_tool_names("not_called", allow, key="allow") if allow is not None else []

    def check(content: Any) -> RuleResult:
        """Check that nothing in one content resembles a call of these tools."""
        possible_calls = _read_possible_calls(content)
        if isinstance(possible_calls, str):
            return fail(possible_calls)
        for tool_called, call_arguments in possible_calls:
            if tool_called is None:
                return fail("holds a call whose tool cannot be read, so none can be ruled out")
            if any(name.equals(tool_called) for name in allowed):
                continue
            if not any(name.resembles(tool_called) for name in names):
                continue
            if _has_arguments(Call(tool_called, call_arguments, 0), expected, otherwise=True):
                return fail(f"called {quote(tool_called, 60)}")
        return make_pass(f"did not call {_list_names(names)}")

    return check


def make_call_order(*, tools: list[str], exact: bool = False) -> Callable[[Any], RuleResult]:
    """Make a check that each of the tools was called first in a later turn than the one before it.

    With ``exact`` the calls are these and no others, one after the other.
    """
    names, is_exact = (
        read_tool_names("call_order", tools, key="tools", least=2),
        check_flag("exact", exact, where="rule call_order"),
    )

    def check(content: Any) -> RuleResult:
        """Check that one content called the tools in this order."""
        calls = _read_assistant_calls(content)
        if isinstance(calls, str):
            return fail(calls)
        if is_exact and (len(calls) != len(names) or _count_possible_calls(content) != len(calls)):
            return fail(f"made {len(calls)} calls, and exactly {len(names)} are asked for: {_list_names(names)}")
        previous_turn: int | None = None
        for index, name in enumerate(names):
            candidates = calls[index : index + 1] if is_exact else calls
            turns = [call.turn for call in candidates if call.tool is not None and name.equals(call.tool)]
            if not turns:
                return fail(f"did not call {name}" if not is_exact else f"call {index + 1} is not {name}")
            if previous_turn is not None and turns[0] <= previous_turn:
                # The same turn is too early: a check that runs together with the call it should allow cannot stop it.
                return fail(f"called {name} before or together with {names[index - 1]}")
            previous_turn = turns[0]
        return make_pass(f"called {_list_names(names)} in this order")

    return check


# ---------------------------------------------------------------- options of rules


class ToolName:
    """A name of a tool, or another pattern of one word; ``*`` in it is any text."""

    __slots__ = ("_exact", "_folded", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._exact = text.split("*")
        self._folded = [_fold_name(part) for part in self._exact]

    def equals(self, called: str) -> bool:
        """Return whether a call is of this tool, to the letter."""
        return _matches_parts(self._exact, called)

    def resembles(self, called: str) -> bool:
        """Return whether somebody could take a call for one of this tool.

        Case, spaces, unseen characters and look-alikes make no difference.

        ``server__delete`` and ``server.delete`` are calls of ``delete`` as well, since clients put a server's name
        before the tool's.
        """
        folded = _fold_name(called)
        last_part = re.split(r"__|[./:]", folded)[-1]
        return _matches_parts(self._folded, folded) or _matches_parts(self._folded, last_part)

    def __str__(self) -> str:
        return quote(self.text, 60)


def _matches_parts(parts: list[str], text: str) -> bool:
    """Return whether a text is these parts in order, with any text between them.

    The parts are a pattern split at each ``*``. The time is linear in the text, which may come from an attacker.
    """
    first, *middle = parts
    if not middle:
        return text == first
    last = middle.pop()
    if len(text) < len(first) + len(last) or not (text.startswith(first) and text.endswith(last)):
        return False
    position, end = len(first), len(text) - len(last)
    for part in middle:
        part_start = text.find(part, position, end)
        if part_start < 0:
            return False
        position = part_start + len(part)
    return True


def _fold_name(name: str) -> str:
    return fold(name).strip()


def read_tool_names(rule: str, value: Any, *, key: str = "tool", least: int = 1) -> list[ToolName]:
    """Read one name or a list of names, as an option of a rule. Raises ``UsageError``."""
    names = [value] if isinstance(value, str) and least == 1 else value
    is_good = isinstance(names, list | tuple) and all(isinstance(name, str) and name.strip() for name in names)
    if not is_good or len(names) < least:
        kind = "the name of a tool or a list of names" if least == 1 else f"a list of at least {least} names of tools"
        raise UsageError(f"rule {rule}: {key} must be {kind}, none of them empty; got {show(value)}")
    return [ToolName(name) for name in names]


def read_tool_arguments(rule: str, value: Any) -> dict[str, Any] | None:
    """Read the arguments that calls are compared with, as an option of a rule. Raises ``UsageError``."""
    if value is None:
        return None
    if not isinstance(value, Mapping) or not value:
        raise UsageError(
            f"rule {rule}: arguments must be an object of names and values such as {{'path': '/tmp'}}; "
            f"got {show(value)}"
        )
    arguments: dict[str, Any] = to_json_value(value)
    return arguments


def _has_arguments(call: Call, expected: Mapping[str, Any] | None, *, otherwise: bool) -> bool:
    """Return whether a call has at least these arguments; ``otherwise`` where its arguments cannot be read."""
    if expected is None:
        return True
    if not isinstance(call.arguments, dict):
        return otherwise and call.arguments is not _RESULT
    return all(name in call.arguments and is_same(call.arguments[name], value) for name, value in expected.items())


# ---------------------------------------------------------------- calls in content


def describe_incomplete(run: AgentRun) -> str | None:
    """Describe why a run proves nothing, or return ``None`` if it is complete.

    Entries of an incomplete run may be missing or forged, so neither a call nor the lack of one counts.
    """
    if run.complete:
        return None
    reason = f" ({flatten(run.problems[0], QUOTED)})" if run.problems else ""
    return f"is a run that is not complete{reason}, so nothing is known of what happened and what did not"


def _read_assistant_calls(content: Any) -> list[Call] | str:
    """Return the calls that the assistant made; if the content does not show them, a message that says why."""
    if isinstance(content, AgentRun):
        calls = [Call(step.call.tool, step.call.arguments, step.turn) for step in content.steps if step.call]
        return describe_incomplete(content) or calls
    messages = _read_messages(content)
    return _NO_CONVERSATION if messages is None else list(_list_calls(messages))


def _read_possible_calls(content: Any) -> Iterable[tuple[str | None, Any]] | str:
    """Return tool and arguments of all that resembles a call; for unreadable content, a message with the reason."""
    if isinstance(content, AgentRun):
        return describe_incomplete(content) or [(call.tool, call.arguments) for call in content.calls]
    value = _read_content(content)
    return _NO_CONVERSATION if value is None or _find_messages(value) is None else _list_possible_calls(value)


# ---------------------------------------------------------------- calls in a conversation


def _read_content(content: Any) -> Any:
    """Read the content as JSON; ``None`` if it is not JSON."""
    from adjudge.content import content_text

    try:
        return read_json(content_text(content))
    except ValueError:
        return None


def _read_messages(content: Any) -> list[dict[str, Any]] | None:
    """Read the messages of a conversation from content; ``None`` if the content is no conversation."""
    value = _read_content(content)
    return None if value is None else _find_messages(value)


def _find_messages(value: Any) -> list[dict[str, Any]] | None:
    """Find the messages of a conversation, a request or a response; ``None`` where there are none."""
    if isinstance(value, dict):
        choices = value.get("choices")
        if isinstance(choices, list) and choices:
            choice_messages = [choice.get("message") for choice in choices if isinstance(choice, dict)]
            return _check_messages(choice_messages)
        message_lists = [value[holder] for holder in _HOLDERS if isinstance(value.get(holder), list)]
        value = [message for messages in message_lists for message in messages] if message_lists else [value]
    return _check_messages(value)


def _check_messages(value: Any) -> list[dict[str, Any]] | None:
    """Return a value that is a list of messages and not empty; otherwise ``None``."""
    is_good = (
        isinstance(value, list)
        and value
        and all(isinstance(message, dict) and _is_message(message) for message in value)
    )
    return value if is_good else None


def _is_message(message: Mapping[str, Any]) -> bool:
    """Return whether an object is one message of OpenAI, Anthropic or MCP."""
    # A piece of a stream, which may hold a part of a tool's name; or a response, whose messages are inside.
    if "choices" in message:
        return False
    return (
        isinstance(message.get("role"), str) or isinstance(message.get("type"), str) or message.get("jsonrpc") == "2.0"
    )


def _list_calls(messages: list[dict[str, Any]]) -> Iterator[Call]:
    """Yield the assistant's own, well-formed calls, in order."""
    turn = 0
    for message in messages:
        own_calls = list(_list_own_calls(message, turn))
        yield from own_calls
        if not own_calls and _ends_turn(message):
            turn += 1


def _ends_turn(message: Mapping[str, Any]) -> bool:
    """Return whether a message is one that the assistant reads before its next call: a result or a user's message."""
    kind = message.get("type")
    if message.get("jsonrpc") == "2.0":
        return "result" in message or "error" in message
    if isinstance(kind, str) and kind.endswith(("_output", "_result")):
        return True
    return message.get("role") in ("user", "tool", "function")


def _list_own_calls(message: Mapping[str, Any], turn: int) -> Iterator[Call]:
    """Yield the calls of a message that are well formed and made by the assistant."""
    if message.get("jsonrpc") == "2.0":
        is_response = not {"role", "result", "error"}.isdisjoint(message)
        if not is_response and message.get("method") == "tools/call" and isinstance(message.get("params"), dict):
            yield from _make_call(message["params"], "arguments", turn)
        return
    if message.get("type") in ("function_call", "mcp_call", "custom_tool_call") and "role" not in message:
        yield from _make_call(message, "input" if message["type"] == "custom_tool_call" else "arguments", turn)
        return
    if message.get("role") != "assistant":
        return
    for tool_call in _list_objects(message.get("tool_calls")):
        yield from _make_call(tool_call.get("function") or tool_call.get("custom"), "arguments", turn)
    yield from _make_call(message.get("function_call"), "arguments", turn)
    for part in _list_objects(message.get("content")):
        if part.get("type") in ("tool_use", "server_tool_use", "mcp_tool_use"):
            yield from _make_call(part, "input", turn)


def _list_objects(value: Any) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _make_call(call: Any, member: str, turn: int) -> Iterator[Call]:
    """Yield the call that an object describes, with the arguments in ``member``; nothing if the object has no name."""
    if isinstance(call, dict) and isinstance(call.get("name"), str) and call["name"]:
        yield Call(call["name"], _parse_arguments(call.get(member)), turn)


def _parse_arguments(value: Any) -> Any:
    """Parse arguments that are a JSON text, as OpenAI writes them; other values are returned as they are."""
    if not isinstance(value, str):
        return value
    try:
        return read_json(value)
    except ValueError:
        return _UNREADABLE


def _list_possible_calls(value: Any) -> Iterator[tuple[str | None, Any]]:
    """Yield tool and arguments of everything in a value that resembles a call, in any interface and any role.

    An object with two names is a call of both, because it is not known which of them a client uses. A tool is ``None``
    if it cannot be read; arguments may be ``_UNREADABLE`` or ``_RESULT``.
    """
    pending = [value]
    while pending:
        current = pending.pop()
        if isinstance(current, list):
            pending += current
        if not isinstance(current, dict):
            continue
        pending += [member if name != "usage" else _drop_usage_counts(member) for name, member in current.items()]
        kinds = (current.get("type"), current.get("part_kind"))
        call_kind = next((kind for kind in kinds if _is_call_kind(kind) or _names_tool(kind)), None)
        if call_kind is not None or not _TOOL_NAME_MEMBERS.isdisjoint(current):
            yield from _read_possible_call(current, call_kind)
        if isinstance(current.get("method"), str) and fold(current["method"]) == "tools/call":
            yield from _read_possible_call(current.get("params"), "tool_call")
        if current.get("role") in ("tool", "function") and isinstance(current.get("name"), str):
            yield current["name"], _RESULT
        for name, member in current.items():
            # Options may have such a name too: ``max_tool_calls`` is a number, ``parallel_tool_calls`` a boolean.
            if _is_call_kind(name) and member not in (None, [], {}) and not isinstance(member, int | float):
                for possible_call in member if isinstance(member, list) else [member]:
                    yield from _read_possible_call(possible_call, name)


def _count_possible_calls(content: Any) -> int:
    """Count everything in the content that resembles a call, without results; 0 if the content cannot be read."""
    possible_calls = _read_possible_calls(content)
    if isinstance(possible_calls, str):
        return 0
    return sum(arguments is not _RESULT for _, arguments in possible_calls)


def _drop_usage_counts(usage: Any) -> Any:
    """Drop the members of a response's usage that are only counts: they have names of tools and are no calls."""
    if not isinstance(usage, dict):
        return usage
    return {name: member for name, member in usage.items() if not isinstance(member, dict) or not _is_count(member)}


def _is_count(members: dict[str, Any]) -> bool:
    """Return whether all members of an object are numbers or null."""
    return all(value is None or isinstance(value, int | float) for value in members.values())


def _is_call_kind(kind: Any) -> bool:
    """Return whether a type or a member's name means a call: ``tool_calls``, ``web_search_call``."""
    if not isinstance(kind, str) or len(kind) > _LONGEST_KIND:
        return False
    return _fold_kind(kind).endswith(_CALL_KINDS)


def _names_tool(kind: Any) -> bool:
    """Return whether a type contains the tool's name, as in ``tool-delete``."""
    return isinstance(kind, str) and fold(kind[:9]).startswith("tool-") and _fold_kind(kind) not in _NOT_CALL_KINDS


def _fold_kind(kind: str) -> str:
    """Fold a type or member name to lower-case ASCII letters alone: ``tool_calls`` becomes ``toolcalls``."""
    return re.sub(r"[^a-z]", "", fold(kind[:_LONGEST_KIND]))


def _read_possible_call(part: Any, kind: str | None = None) -> Iterator[tuple[str | None, Any]]:
    """Yield tool and arguments of an object that resembles a call, for each name that it has.

    ``kind`` is the type or member name by which the object was recognised as a call. OpenAI puts the tool's name and
    the arguments into an object under ``function``.
    """
    if not isinstance(part, dict):
        yield None, _UNREADABLE
        return
    # Some frameworks put the tool's name under ``function``, and no object.
    functions = [part[name] for name in ("function", "custom", "functionCall") if name in part]
    holders = [part, *[function for function in functions if isinstance(function, dict)]]
    members = [member for holder in holders for member in holder.items()]
    names = [function for function in functions if isinstance(function, str)]
    names += [value for key, value in members if key == "name" or key in _TOOL_NAME_MEMBERS]
    if kind is not None and not names and _fold_kind(kind) not in _NAMELESS_KINDS:
        # A provider's own tools have no name except in their type: ``computer_call``, ``tool-delete``.
        provider_name = re.sub(r"^tool-|_call$", "", kind)
        names = [provider_name] if provider_name else []
    candidates = [value for key, value in members if _fold_kind(key) in _ARGUMENTS]
    arguments = _parse_arguments(candidates[0]) if len(candidates) == 1 else _UNREADABLE
    if kind is None and not candidates and not _OUTPUTS.isdisjoint(part):
        arguments = _RESULT
    for name in names or [None]:
        yield (name, arguments) if isinstance(name, str) else (None, _UNREADABLE)


# ---------------------------------------------------------------- results and messages


def _describe_count(name: ToolName, count: int, all_calls: int, least: int, most: int | None) -> str:
    """Describe that ``count`` is not within ``least`` and ``most``; ``all_calls`` also counts other arguments."""
    if most is not None and count > most:
        return f"called {name} {count} times, above the maximum of {most}"
    if all_calls > count:
        return f"called {name} {all_calls} times, {count} of them with the arguments asked for; at least {least} needed"
    return f"did not call {name}" if not count else f"called {name} {count} times, below the minimum of {least}"


def _list_names(names: list[ToolName]) -> str:
    return flatten(", ".join(str(name) for name in names), QUOTED)


def make_pass(message: str) -> RuleResult:
    """Make the result of a check that passed."""
    return RuleResult(name="", passed=True, message=message)


def fail(message: str) -> RuleResult:
    """Make the result of a check that failed."""
    return RuleResult(name="", passed=False, message=message)


def fail_call(message: str, calls: Sequence[object], index: int, path: str) -> RuleResult:
    """Make the result of a check that ``calls[index]`` failed.

    The metadata names the number of the call, or for a single call the path of the argument that is wrong.
    """
    metadata: dict[str, Any] = {}
    if len(calls) > 1:
        metadata["call"] = index + 1
    elif path:
        metadata["place"] = path
    return RuleResult(name="", passed=False, message=message, metadata=metadata)
