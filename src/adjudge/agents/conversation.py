"""A conversation that a program hands over as task, context or content: its messages read as the steps of a run.

The author of the messages may want something in them to be overlooked. So what no step holds is listed too, with its
place: a part of a kind that is not known here, a member that no maker writes, a result of a call that is not there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from adjudge.agents.messages import CallPart, Message, ResultPart, UnknownPart, Words, read_messages
from adjudge.agents.rendering import CHARACTERS, render_steps
from adjudge.agents.run import AgentRun
from adjudge.agents.step import AgentCall, FileChange, Step
from adjudge.agents.transcript import Transcript, read_arguments, read_text
from adjudge.errors import UsageError
from adjudge.formats.json import extend_path

_ROLES = frozenset({"user", "human", "assistant", "ai", "model", "system", "developer", "tool", "function"})

_KNOWN: Mapping[str, frozenset[str]] = {
    "role": _ROLES,
    "type": frozenset(
        {"text", "input_text", "output_text", "tool_use", "tool_result", "server_tool_use", "mcp_tool_use", "message"}
        | {"mcp_tool_result", "function", "function_call", "function_call_output", "tool_call", "tool_call_response"}
        | {"human", "ai", "system", "tool"}
    ),
    "status": frozenset({"completed", "success"}),
    "jsonrpc": frozenset({"2.0"}),
    "method": frozenset({"tools/call"}),
    "finish_reason": frozenset({"stop", "tool_calls", "tool_call"}),
}
"""Members that say what a part is, and the words for it that a step says already."""

_IDS = frozenset({"id", "call_id", "tool_call_id", "tool_use_id", "toolUseId"})

_ID = re.compile(r"[\w.:|-]{1,80}", re.ASCII)

_SAYS_NOTHING = re.compile(
    r"(?:(?:call|chatcmpl|fc|id|item|msg|resp|rs|run|toolu|tooluse)[_-]{1,2})?(?:[0-9a-f-]+|\w{1,4})",
    re.ASCII | re.IGNORECASE,
)
"""Ids in which nobody can write a sentence: figures, or a few letters, after the words that makers put before them."""

_MEMBERS = frozenset({*_KNOWN, *_IDS}) | {
    *("content", "text", "parts", "messages", "tool_calls", "function", "name", "arguments", "args", "input"),
    *("params", "result", "output", "response", "is_error", "isError", "index"),
}
"""Members that are read here: one of them that is empty says nothing."""

_OPTIONAL = frozenset(
    {"refusal", "audio", "function_call", "annotations", "logprobs", "invalid_tool_calls", "citations"}
)
"""Members that makers write although they are empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """Messages as a run, and their members that are in no step."""

    run: AgentRun
    kind: Literal["messages", "run", "excerpt"] = "messages"
    """``excerpt`` is a run as ``render`` writes it, of which steps may be left out."""
    speakers: Mapping[int, str] = field(default_factory=dict)
    """Roles that no maker of models has, such as ``customer``, by the place of the step; a run has them as system."""
    begins: tuple[int, ...] = ()
    """The place of the first step of each message; of a run, nothing."""
    beside: tuple[tuple[str, str], ...] = ()
    """Places in the messages, such as ``[3].name``, each with its text."""


def read_conversation(value: Any) -> Conversation | None:
    """Read messages in the form of one of the makers of models, or the run that ``AgentRun.to_dict`` wrote.

    ``None`` for any other value, and for messages without a single word or call.
    """
    if isinstance(value, dict) and value.get("schema") == AgentRun.schema:
        return _read_own(value)
    if not _holds_roles(value):
        return None
    messages = read_messages(value, role="user")
    if messages is None:
        return None
    transcript, speakers, begins = Transcript("messages"), dict[int, str](), list[int]()
    try:
        for message in messages:
            begin = len(transcript.steps)
            begins.append(begin)
            _add_message(transcript, message)
            if message.speaker and message.speaker not in _ROLES:
                speakers |= dict.fromkeys(range(begin, len(transcript.steps)), message.speaker)
    except UsageError:  # more steps than any run has
        return None
    if not transcript.steps:
        return None
    run = transcript.make_run(unknown=("files", "failures"))
    shown = _Shown(run, frozenset(speakers.values()))
    beside = list(_list_beside(value, shown))
    # A judge reads the ids too, and one of 80 letters can say "ignore_what_follows": all in one text, each once.
    beside += [("ids", ", ".join(shown.texts_of_ids))] if shown.texts_of_ids else []
    return Conversation(run=run, speakers=speakers, begins=tuple(begins), beside=tuple(beside))


def _read_own(value: dict[str, Any]) -> Conversation | None:
    """Read what ``AgentRun.to_dict`` wrote, and list what else it holds; ``None`` for what is no run."""
    try:
        run = AgentRun.from_dict(value)
    except UsageError:
        return None
    # It is read leniently, and a member that it does not know must not be hidden by that.
    beside = (*_list_unwritten(value, run.to_dict(), ""), *_list_long_ids(run))
    return Conversation(run=run, kind="run", beside=beside)


def _list_long_ids(run: AgentRun) -> Iterator[tuple[str, str]]:
    """Yield, each with its path, the ids of calls that are texts rather than ids: those of steps are not shown."""
    for place, step in enumerate(run.steps):
        ident = None if step.call is None else step.call.call_id
        if ident and _ID.fullmatch(ident) is None:
            yield f"steps[{place}].call.call_id", ident


def _list_unwritten(value: Any, written: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield what a value has and the same value, read and written again, has not: the path and the text of each."""
    if value == written:
        return
    if isinstance(value, dict) and isinstance(written, dict):
        for name, member in value.items():
            if name in written:
                yield from _list_unwritten(member, written[name], extend_path(path, name))
            elif member is not None:
                yield extend_path(path, name), _write_text(member)
    elif isinstance(value, list) and isinstance(written, list) and len(value) == len(written):
        for place, (member, other) in enumerate(zip(value, written, strict=True)):
            yield from _list_unwritten(member, other, f"{path}[{place}]")
    else:
        yield path, _write_text(value)


def _holds_roles(value: Any) -> bool:
    """Return whether a value is messages and no list of records that have a type: one of them has a role, or is MCP."""
    if isinstance(value, dict) and isinstance(value.get("messages"), list):
        value = value["messages"]
    members = value if isinstance(value, list) else ()
    return bool(members) and any(
        isinstance(member, dict) and ("role" in member or member.get("jsonrpc") == "2.0") for member in members
    )


def _add_message(transcript: Transcript, message: Message) -> None:
    for part in message.parts:
        if isinstance(part, Words):
            transcript.add_text(message.role, part.text)
        elif isinstance(part, CallPart):
            transcript.add_call(part.tool, part.arguments, part.call_id)
        elif isinstance(part, ResultPart):
            transcript.add_result(part.call_id, part.text, failed=part.failed)
        elif isinstance(part, UnknownPart):
            transcript.report(part.problem)


# ---------------------------------------------------------------- excerpts

LEFT_OUT = "left out here"
"""The speaker of a step that stands for others in an excerpt."""

_EXCERPT_ROOM = 4_000


def shorten_conversation(value: Any) -> str | None:
    """Shorten a run, or messages, to some thousand characters that ``read_excerpt`` reads.

    ``None`` for any other value, which is shortened as the text that it is.
    """
    if isinstance(value, AgentRun):
        return value.render(_EXCERPT_ROOM // CHARACTERS).text
    conversation = read_conversation(value) if isinstance(value, list | dict) else None
    return None if conversation is None else render_steps(conversation.run.steps, _EXCERPT_ROOM).text


def read_excerpt(value: Any) -> Conversation | None:
    """Read what ``render`` wrote of a run; ``None`` for any other value. For a report's own data alone."""
    steps = value.get("steps") if isinstance(value, dict) else None
    if not isinstance(steps, list) or not steps or not all(isinstance(step, dict) for step in steps):
        return None
    try:
        read = tuple(map(_read_rendered, steps))
        outcome, answer = value.get("outcome", "finished"), value.get("answer")
        files = tuple(FileChange(**change) for change in value.get("files", ()))
        run = AgentRun(
            steps=read, outcome=outcome, answer=answer, files=files, unknown=tuple(value.get("not_recorded", ()))
        )
    except (UsageError, TypeError, AttributeError):
        return None
    # A gap is a step that nobody says.
    speakers = {place: LEFT_OUT for place, step in enumerate(steps) if "left_out" in step}
    return Conversation(run=run, kind="excerpt", speakers=speakers)


def _read_rendered(step: dict[str, Any]) -> Step:
    """Read a step as ``render`` writes it; a gap becomes a step that lists what is left out."""
    if "left_out" in step:
        counts = step["left_out"].items()
        return Step(role="system", text=", ".join(f"{name} {number:,}" for name, number in counts))
    if "call" not in step:
        return Step(role=step.get("role", ""), text=step.get("text", ""))
    members = {name: step.get(name) for name in ("arguments", "result", "error", "agent")}
    return Step(role="assistant", call=AgentCall(tool=step["call"], **members), turn=step.get("turn", 0))


# ---------------------------------------------------------------- what no step holds


_READ = _MEMBERS | _OPTIONAL | {"", "error"}
"""Members whose texts can be in a step; the root and the messages in a list have no name."""

_DEEPEST = 8
"""Levels to which an object can be a result; deeper ones would each be written out again to find that."""


_MOST_PATHS = 5
"""Characters of paths for each character of the messages; the forms of makers of models come to less than four."""


def _list_beside(value: Any, shown: _Shown) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each part of messages that no step shows, in order.

    Each path repeats the names of all that holds its part, so the paths of a long list under a long name come to the
    square of their size. A part for whose members there is no room is listed as one text: nothing of it is left out.
    """
    room = _MOST_PATHS * len(_write_text(value))
    waiting: list[tuple[int, str, str, Any]] = [(0, "", "", value)]
    while waiting:
        depth, path, known_as, part = waiting.pop()
        is_holder = bool(part) and isinstance(part, dict | list)
        may_be_shown = known_as in _READ and (depth <= _DEEPEST or not is_holder)
        if may_be_shown and shown.holds(known_as, part):
            continue
        cost = _count_paths(path, part) if is_holder else 0
        if is_holder and cost <= room:
            room -= cost
            members = reversed(list(_open_part(path, known_as, part)))
            waiting += [(depth + 1, inner_path, name, inner) for inner_path, name, inner in members]
        else:
            yield path, _write_text(part)


def _count_paths(path: str, part: dict[str, Any] | list[Any]) -> int:
    """Count the characters, about, of the paths of a part's members."""
    return len(part) * (len(path) + len("[00000]")) + (sum(map(len, part)) if isinstance(part, dict) else 0)


def _open_part(path: str, known_as: str, part: dict[str, Any] | list[Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield the members of a part: the path of each, the name that it is known as, and its value."""
    if isinstance(part, dict):
        # Below a member that is not known every text is listed: what is in it keeps the unknown name, so that no
        # step can be taken to show it.
        for key, member in part.items():
            yield extend_path(path, key), key if known_as in _READ else known_as, member
    else:
        for place, member in enumerate(part):
            yield extend_path(path, place), known_as, member


class _Shown:
    """The words, texts, ids and arguments that the steps of a run hold."""

    def __init__(self, run: AgentRun, speakers: frozenset[str]) -> None:
        calls = run.calls
        self.words = {**_KNOWN, "role": _ROLES | speakers}
        self.texts = {step.text for step in run.steps if step.call is None} | {call.tool for call in calls}
        self.texts |= {text for call in calls for text in (call.result, call.error) if text is not None}
        self.ids = {call.call_id for call in calls}
        self.arguments = {_write_text(call.arguments) for call in calls}
        self.texts_of_ids: dict[str, None] = {}
        """The ids that were found and may say something, in order."""

    def holds(self, name: str, part: Any) -> bool:
        """Return whether a member of a message is in a step, or is one of the words that only say what a part is."""
        if part is None or part in ("", [], {}) or isinstance(part, bool):
            return name in _OPTIONAL or name in _MEMBERS
        is_word = isinstance(part, str) and (name in self.words or name in _IDS)
        if is_word or isinstance(part, int | float):
            return self._holds_word(name, str(part))
        if name in ("arguments", "args", "input") and _write_text(read_arguments(part)) in self.arguments:
            return True
        return self._holds_text(part)

    def _holds_word(self, name: str, word: str) -> bool:
        """Return whether a word is one that only says what a part is; note an id that may say something."""
        if name in _IDS:
            # Long ones are texts, whatever they are called.
            is_id = _ID.fullmatch(word) is not None and (word in self.ids or name == "id")
            if is_id and _SAYS_NOTHING.fullmatch(word) is None:
                self.texts_of_ids[word] = None
            return is_id
        return word in self.words.get(name, ()) or name == "index"

    def _holds_text(self, part: Any) -> bool:
        """Return whether a step has the text of a part; of joined parts false, and their texts count as held."""
        text = read_text(part)
        if text.rstrip("\r\n") not in self.texts:
            return False
        if isinstance(part, list) and text != _write_text(part):
            # Its parts were joined, and one of them may hold more than its text.
            self.texts |= {member["text"] for member in part}
            return False
        return True


def _write_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
