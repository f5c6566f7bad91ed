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

_CALLS = (
    *("toolcall", "toolcalls", "functioncall", "functioncalls", "tooluse", "toolcallchunk", "toolcallchunks"),
    *("toolinvocation", "toolinvocations", "mcpcall", "shellcall", "computercall", "patchcall"),
    *("websearchcall", "filesearchcall", "codeinterpretercall", "imagegenerationcall"),
)
"""The ends of members and types that mean a call in any interface, without case and punctuation."""

_NAMELESS = frozenset(
    f"{start}{end}"
    for start in ("", "custom", "server", "mcp", "invalid", "dynamic")
    for end in ("toolcall", "toolcalls", "functioncall", "functioncalls", "tooluse", "toolinvocation", "mcpcall")
)
"""Kinds that say nothing of which tool is called."""

_NO_CALLS = frozenset({"toolresult", "tooloutput", "toolerror", "toolresponse", "toolreturn", "toolchoice"})

_CALLED_TOOL = frozenset({"tool_name", "toolName", "recipient_name"})
"""Members that only a call, or its result, has."""

_ARGUMENTS = frozenset({"arguments", "input", "args", "parameters", "params"})

_OUTPUTS = frozenset({"output", "result", "content"})

_LONGEST_KIND = 200
"""Characters; no interface has a longer name for a call."""

_HOLDERS = ("messages", "input", "output")
"""Members in which a whole request or response holds its messages."""


class Call(NamedTuple):
    """One call of a tool."""

    tool: str | None
    """Its name; ``None`` where something is a call and its name cannot be read."""
    arguments: Any
    """The arguments as JSON; ``_UNREADABLE`` where they are none."""
    turn: int
    """Calls of one turn are made at once: none of them has seen what another returned."""


_UNREADABLE = object()

_RESULT = object()
"""In the place of the arguments of a result: it says that the tool was called, and not with what."""


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
        calls = _read_calls(content)
        if isinstance(calls, str):
            return fail(calls)
        for name in names:
            calls_of_tool = [call for call in calls if call.tool is not None and name.equals(call.tool)]
            count = sum(_has_arguments(call, expected, otherwise=False) for call in calls_of_tool)
            if count < least or (most is not None and count > most):
                return fail(_describe_count(name, count, len(calls_of_tool), least, most))
        return pass_(f"called {_list_names(names)}")

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
        traces = _read_traces(content)
        if isinstance(traces, str):
            return fail(traces)
        for tool_called, call_arguments in traces:
            if tool_called is None:
                return fail("holds a call whose tool cannot be read, so none can be ruled out")
            if any(name.equals(tool_called) for name in allowed) or not any(
                name.resembles(tool_called) for name in names
            ):
                continue
            if _has_arguments(Call(tool_called, call_arguments, 0), expected, otherwise=True):
                return fail(f"called {quote(tool_called, 60)}")
        return pass_(f"did not call {_list_names(names)}")

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
        calls = _read_calls(content)
        if isinstance(calls, str):
            return fail(calls)
        if is_exact and (len(calls) != len(names) or _count_traces(content) != len(calls)):
            return fail(f"made {len(calls)} calls, and exactly {len(names)} are asked for: {_list_names(names)}")
        before: int | None = None
        for place, name in enumerate(names):
            candidates = calls[place : place + 1] if is_exact else calls
            turns = [call.turn for call in candidates if call.tool is not None and name.equals(call.tool)]
            if not turns:
                return fail(f"did not call {name}" if not is_exact else f"call {place + 1} is not {name}")
            if before is not None and turns[0] <= before:
                # At once is not after: a check that runs beside what it should allow cannot stop it.
                return fail(f"called {name} before or together with {names[place - 1]}")
            before = turns[0]
        return pass_(f"called {_list_names(names)} in this order")

    return check


# ---------------------------------------------------------------- what a rule is given


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
    """Return whether a text is made of these parts with anything between them; linear in the text, which is hostile."""
    first, *between = parts
    if not between:
        return text == first
    last = between.pop()
    if len(text) < len(first) + len(last) or not (text.startswith(first) and text.endswith(last)):
        return False
    place, end = len(first), len(text) - len(last)
    for part in between:
        part_start = text.find(part, place, end)
        if part_start < 0:
            return False
        place = part_start + len(part)
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


# ---------------------------------------------------------------- what content holds


def describe_incomplete(run: AgentRun) -> str | None:
    """Describe why nothing can be shown by a run, or return ``None`` if it is complete.

    What was forged may stand in it as well, so neither a call nor the lack of one counts.
    """
    if run.complete:
        return None
    reason = f" ({flatten(run.problems[0], QUOTED)})" if run.problems else ""
    return f"is a run that is not complete{reason}, so nothing is known of what happened and what did not"


def _read_calls(content: Any) -> list[Call] | str:
    """Read the calls that the assistant made; or say why nobody knows them."""
    if isinstance(content, AgentRun):
        calls = [Call(step.call.tool, step.call.arguments, step.turn) for step in content.steps if step.call]
        return describe_incomplete(content) or calls
    messages = _read_messages(content)
    return _NO_CONVERSATION if messages is None else list(_list_calls(messages))


def _read_traces(content: Any) -> Iterable[tuple[str | None, Any]] | str:
    """Read everything that resembles a call; or say why nobody can say that there was none."""
    if isinstance(content, AgentRun):
        return describe_incomplete(content) or [(call.tool, call.arguments) for call in content.calls]
    value = _read_content(content)
    return _NO_CONVERSATION if value is None or _find_messages(value) is None else _list_traces(value)


# ---------------------------------------------------------------- what a conversation holds


def _read_content(content: Any) -> Any:
    """Read the content as JSON; ``None`` where it is none."""
    from adjudge.content import content_text

    try:
        return read_json(content_text(content))
    except ValueError:
        return None


def _read_messages(content: Any) -> list[dict[str, Any]] | None:
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
    is_good = (
        isinstance(value, list)
        and value
        and all(isinstance(message, dict) and _is_message(message) for message in value)
    )
    return value if is_good else None


def _is_message(message: Mapping[str, Any]) -> bool:
    if "choices" in message:  # of a stream, which splits a name into pieces; or a response, whose messages are inside
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
    """Return whether the assistant has read a message before its next call: a result, or somebody else's words."""
    kind = message.get("type")
    if message.get("jsonrpc") == "2.0":
        return "result" in message or "error" in message
    if isinstance(kind, str) and kind.endswith(("_output", "_result")):
        return True
    return message.get("role") in ("user", "tool", "function")


def _list_own_calls(message: Mapping[str, Any], turn: int) -> Iterator[Call]:
    """Yield the calls of a message that are well formed and made by the assistant."""
    if message.get("jsonrpc") == "2.0":
        answers = not {"role", "result", "error"}.isdisjoint(message)
        if not answers and message.get("method") == "tools/call" and isinstance(message.get("params"), dict):
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
    if isinstance(call, dict) and isinstance(call.get("name"), str) and call["name"]:
        yield Call(call["name"], _parse_arguments(call.get(member)), turn)


def _parse_arguments(value: Any) -> Any:
    """Parse arguments as JSON; OpenAI writes them as a text."""
    if not isinstance(value, str):
        return value
    try:
        return read_json(value)
    except ValueError:
        return _UNREADABLE


def _list_traces(value: Any) -> Iterator[tuple[str | None, Any]]:
    """Yield name and arguments of everything in a value that resembles a call, in any interface and any role.

    Something with two names is a call of both: which of them a client goes by is not known here.
    """
    pending = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, list):
            pending += part
        if not isinstance(part, dict):
            continue
        pending += [member if name != "usage" else _drop_counts(member) for name, member in part.items()]
        kinds = (part.get("type"), part.get("part_kind"))
        kind = next((kind_name for kind_name in kinds if _is_call_kind(kind_name) or _names_tool(kind_name)), None)
        if kind is not None or not _CALLED_TOOL.isdisjoint(part):
            yield from _read_trace(part, kind)
        if isinstance(part.get("method"), str) and fold(part["method"]) == "tools/call":
            yield from _read_trace(part.get("params"), "tool_call")
        if part.get("role") in ("tool", "function") and isinstance(part.get("name"), str):
            yield part["name"], _RESULT
        for name, member in part.items():
            # A number is a limit, and true that calls may be made at once.
            if _is_call_kind(name) and member not in (None, [], {}) and not isinstance(member, int | float):
                for trace in member if isinstance(member, list) else [member]:
                    yield from _read_trace(trace, name)


def _count_traces(content: Any) -> int:
    traces = _read_traces(content)
    return sum(arguments is not _RESULT for _, arguments in traces) if not isinstance(traces, str) else 0


def _drop_counts(usage: Any) -> Any:
    """Drop the members of a response's usage that only count: those name tools and call none."""
    if not isinstance(usage, dict):
        return usage
    return {name: member for name, member in usage.items() if not isinstance(member, dict) or not _is_count(member)}


def _is_count(members: dict[str, Any]) -> bool:
    return all(value is None or isinstance(value, int | float) for value in members.values())


def _is_call_kind(kind_name: Any) -> bool:
    """Return whether a type or a member's name means a call: ``tool_calls``, ``web_search_call``."""
    if not isinstance(kind_name, str) or len(kind_name) > _LONGEST_KIND:
        return False
    return _fold_kind(kind_name).endswith(_CALLS)


def _names_tool(kind_name: Any) -> bool:
    """Return whether a part's type has the tool's name in it: ``tool-delete``."""
    return (
        isinstance(kind_name, str)
        and fold(kind_name[:9]).startswith("tool-")
        and _fold_kind(kind_name) not in _NO_CALLS
    )


def _fold_kind(kind_name: str) -> str:
    return re.sub(r"[^a-z]", "", fold(kind_name[:_LONGEST_KIND]))


def _read_trace(part: Any, kind: str | None = None) -> Iterator[tuple[str | None, Any]]:
    """Yield names and arguments of something that resembles a call; OpenAI puts both into ``function``."""
    if not isinstance(part, dict):
        yield None, _UNREADABLE
        return
    # A framework's form has the name in the place of the object.
    functions = [part[name] for name in ("function", "custom", "functionCall") if name in part]
    holders = [part, *[function for function in functions if isinstance(function, dict)]]
    members = [member for holder in holders for member in holder.items()]
    names = [function for function in functions if isinstance(function, str)]
    names += [value for key, value in members if key == "name" or key in _CALLED_TOOL]
    if kind is not None and not names and _fold_kind(kind) not in _NAMELESS:
        # A provider's own tools have no name but their kind: ``computer_call``, ``tool-delete``.
        provider_name = re.sub(r"^tool-|_call$", "", kind)
        names = [provider_name] if provider_name else []
    candidates = [value for key, value in members if _fold_kind(key) in _ARGUMENTS]
    arguments = _parse_arguments(candidates[0]) if len(candidates) == 1 else _UNREADABLE
    if kind is None and not candidates and not _OUTPUTS.isdisjoint(part):
        arguments = _RESULT
    for name in names or [None]:
        yield (name, arguments) if isinstance(name, str) else (None, _UNREADABLE)


# ---------------------------------------------------------------- what is said


def _describe_count(name: ToolName, count: int, calls: int, least: int, most: int | None) -> str:
    if most is not None and count > most:
        return f"called {name} {count} times, above the maximum of {most}"
    if calls > count:
        return f"called {name} {calls} times, {count} of them with the arguments asked for; at least {least} needed"
    return f"did not call {name}" if not count else f"called {name} {count} times, below the minimum of {least}"


def _list_names(names: list[ToolName]) -> str:
    return flatten(", ".join(str(name) for name in names), QUOTED)


def pass_(message: str) -> RuleResult:
    """Make the result of a check that passed."""
    return RuleResult(name="", passed=True, message=message)


def fail(message: str) -> RuleResult:
    """Make the result of a check that failed."""
    return RuleResult(name="", passed=False, message=message)


def fail_call(message: str, calls: Sequence[object], place: int, path: str) -> RuleResult:
    """Make the result of a check that one of some calls failed: of a run by its number, of a single one by a value."""
    about: dict[str, Any] = {"call": place + 1} if len(calls) > 1 else {"place": path} if path else {}
    return RuleResult(name="", passed=False, message=message, metadata=about)
