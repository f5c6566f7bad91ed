"""A conversation that a program hands over as task, context or content: its messages are read as the steps of a run.

The author of the messages may want something in them to be overlooked. So what no step shows is listed too, with its
path: a part of an unknown kind, a member that no maker of models writes, a result of a call that is missing.
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

_KIND_WORDS: Mapping[str, frozenset[str]] = {
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
"""Members that say what a part is, and their values that add nothing to what a step shows."""

_ID_MEMBERS = frozenset({"id", "call_id", "tool_call_id", "tool_use_id", "toolUseId"})

_ID_PATTERN = re.compile(r"[\w.:|-]{1,80}", re.ASCII)

_MEANINGLESS_ID = re.compile(
    r"(?:(?:call|chatcmpl|fc|id|item|msg|resp|rs|run|toolu|tooluse)[_-]{1,2})?(?:[0-9a-f-]+|\w{1,4})",
    re.ASCII | re.IGNORECASE,
)
"""Ids in which nobody can write a sentence: digits, or a few letters, behind the words that makers put before them."""

_READ_MEMBERS = frozenset({*_KIND_WORDS, *_ID_MEMBERS}) | {
    *("content", "text", "parts", "messages", "tool_calls", "function", "name", "arguments", "args", "input"),
    *("params", "result", "output", "response", "is_error", "isError", "index"),
}
"""Members that are read here. If one of them is empty, it has nothing to show."""

_OPTIONAL_MEMBERS = frozenset(
    {"refusal", "audio", "function_call", "annotations", "logprobs", "invalid_tool_calls", "citations"}
)
"""Members that makers of models write even if they are empty."""


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
    """Read messages, in the form of any maker of models, or a run that ``AgentRun.to_dict`` wrote.

    ``None`` for any other value, and for messages without a single word or call.
    """
    if isinstance(value, dict) and value.get("schema") == AgentRun.schema:
        return _read_written_run(value)
    if not _is_message_list(value):
        return None
    messages = read_messages(value, role="user")
    if messages is None:
        return None
    transcript, speakers, begins = Transcript("messages"), dict[int, str](), list[int]()
    try:
        for message in messages:
            first_step = len(transcript.steps)
            begins.append(first_step)
            _add_message(transcript, message)
            if message.speaker and message.speaker not in _ROLES:
                speakers |= dict.fromkeys(range(first_step, len(transcript.steps)), message.speaker)
    except UsageError:  # it has more steps than a run may have
        return None
    if not transcript.steps:
        return None
    run = transcript.make_run(unknown=("files", "failures"))
    shown = _ShownTexts(run, frozenset(speakers.values()))
    unshown = list(_list_unshown(value, shown))
    # Ids are listed too, in one text and each once: a judge reads them, and one can say "ignore_what_follows".
    unshown += [("ids", ", ".join(shown.meaningful_ids))] if shown.meaningful_ids else []
    return Conversation(run=run, speakers=speakers, begins=tuple(begins), beside=tuple(unshown))


def _read_written_run(value: dict[str, Any]) -> Conversation | None:
    """Read a run that ``AgentRun.to_dict`` wrote, and list what it does not show; ``None`` for any other value."""
    try:
        run = AgentRun.from_dict(value)
    except UsageError:
        return None
    # ``from_dict`` ignores unknown members, so they are found by comparing the value with the run that was read.
    unshown = (*_list_unwritten(value, run.to_dict(), ""), *_list_long_ids(run))
    return Conversation(run=run, kind="run", beside=unshown)


def _list_long_ids(run: AgentRun) -> Iterator[tuple[str, str]]:
    """Yield the ids of calls that are texts rather than ids, each with its path.

    The ids of a run's calls are not shown, so a text could be hidden there.
    """
    for index, step in enumerate(run.steps):
        call_id = None if step.call is None else step.call.call_id
        if call_id and _ID_PATTERN.fullmatch(call_id) is None:
            yield f"steps[{index}].call.call_id", call_id


def _list_unwritten(value: Any, written: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each part of ``value`` that ``written`` has not.

    ``written`` is the same value after it was read and written again. ``path`` is where both are.
    """
    if value == written:
        return
    if isinstance(value, dict) and isinstance(written, dict):
        for name, member in value.items():
            if name in written:
                yield from _list_unwritten(member, written[name], extend_path(path, name))
            elif member is not None:
                yield extend_path(path, name), _write_text(member)
    elif isinstance(value, list) and isinstance(written, list) and len(value) == len(written):
        for index, (member, written_member) in enumerate(zip(value, written, strict=True)):
            yield from _list_unwritten(member, written_member, f"{path}[{index}]")
    else:
        yield path, _write_text(value)


def _is_message_list(value: Any) -> bool:
    """Return whether a value is a list of messages, or an object that holds one, and no list of other records.

    One of the messages has to have a role, or to be one of the Model Context Protocol.
    """
    if isinstance(value, dict) and isinstance(value.get("messages"), list):
        value = value["messages"]
    members = value if isinstance(value, list) else ()
    return bool(members) and any(
        isinstance(member, dict) and ("role" in member or member.get("jsonrpc") == "2.0") for member in members
    )


def _add_message(transcript: Transcript, message: Message) -> None:
    """Add the parts of a message to a transcript, as words, calls and results; report parts of unknown kinds."""
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
"""The speaker of a step in an excerpt that says which other steps are left out there."""

_EXCERPT_ROOM = 4_000


def shorten_conversation(value: Any) -> str | None:
    """Shorten a run, or messages, to some thousand characters, which ``read_excerpt`` can read.

    ``None`` for any other value, which is shortened as a text.
    """
    if isinstance(value, AgentRun):
        return value.render(_EXCERPT_ROOM // CHARACTERS).text
    conversation = read_conversation(value) if isinstance(value, list | dict) else None
    return None if conversation is None else render_steps(conversation.run.steps, _EXCERPT_ROOM).text


def read_excerpt(value: Any) -> Conversation | None:
    """Read what ``render`` wrote of a run; ``None`` for any other value.

    Use this only for data that adjudge itself wrote, as in a report: it does not list what no step shows.
    """
    steps = value.get("steps") if isinstance(value, dict) else None
    if not isinstance(steps, list) or not steps or not all(isinstance(step, dict) for step in steps):
        return None
    try:
        run_steps = tuple(map(_read_rendered, steps))
        outcome, answer = value.get("outcome", "finished"), value.get("answer")
        files = tuple(FileChange(**change) for change in value.get("files", ()))
        run = AgentRun(
            steps=run_steps, outcome=outcome, answer=answer, files=files, unknown=tuple(value.get("not_recorded", ()))
        )
    except (UsageError, TypeError, AttributeError):
        return None
    # The step in place of others that are left out has no speaker of its own.
    speakers = {index: LEFT_OUT for index, step in enumerate(steps) if "left_out" in step}
    return Conversation(run=run, kind="excerpt", speakers=speakers)


def _read_rendered(step: dict[str, Any]) -> Step:
    """Read a step as ``render`` writes it; a gap, where steps are left out, becomes a step that counts these."""
    if "left_out" in step:
        counts = step["left_out"].items()
        return Step(role="system", text=", ".join(f"{name} {number:,}" for name, number in counts))
    if "call" not in step:
        return Step(role=step.get("role", ""), text=step.get("text", ""))
    members = {name: step.get(name) for name in ("arguments", "result", "error", "agent")}
    return Step(role="assistant", call=AgentCall(tool=step["call"], **members), turn=step.get("turn", 0))


# ---------------------------------------------------------------- what no step shows


_TEXT_MEMBERS = _READ_MEMBERS | _OPTIONAL_MEMBERS | {"", "error"}
"""Members whose texts a step can show. The empty name is that of the root, and of the messages in a list."""

_MOST_DEPTH = 8
"""The most levels down to which an object can be shown as the result of a call. To compare it, it is written as JSON,
which would take too long for deeper ones."""


_MOST_PATH_CHARACTERS = 5
"""The most characters of paths for each character of the messages. Messages of makers of models need less than four."""


def _list_unshown(value: Any, shown: _ShownTexts) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each part of messages that no step shows, in order.

    Each path repeats the names of everything around its part, so the paths in a long list under a long name would grow
    with the square of their size. A part whose members' paths would be too long is listed as one text, so nothing is
    left out.
    """
    characters_left = _MOST_PATH_CHARACTERS * len(_write_text(value))
    # Parts to look at, the next one last: the depth, the path, the name of the member, and the part.
    pending: list[tuple[int, str, str, Any]] = [(0, "", "", value)]
    while pending:
        depth, path, name, part = pending.pop()
        is_container = bool(part) and isinstance(part, dict | list)
        may_be_shown = name in _TEXT_MEMBERS and (depth <= _MOST_DEPTH or not is_container)
        if may_be_shown and shown.holds(name, part):
            continue
        cost = _estimate_path_characters(path, part) if is_container else 0
        if is_container and cost <= characters_left:
            characters_left -= cost
            members = reversed(list(_list_members(path, name, part)))
            pending += [(depth + 1, member_path, member_name, member) for member_path, member_name, member in members]
        else:
            yield path, _write_text(part)


def _estimate_path_characters(path: str, part: dict[str, Any] | list[Any]) -> int:
    """Estimate how many characters the paths of all members of a part have."""
    return len(part) * (len(path) + len("[00000]")) + (sum(map(len, part)) if isinstance(part, dict) else 0)


def _list_members(path: str, name: str, part: dict[str, Any] | list[Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield the members of a part: the path of each, its name, and its value.

    Below a member of an unknown name, every member gets that name: then no text in it can count as shown by a step.
    """
    if isinstance(part, dict):
        for key, member in part.items():
            yield extend_path(path, key), key if name in _TEXT_MEMBERS else name, member
    else:
        for index, member in enumerate(part):
            yield extend_path(path, index), name, member


class _ShownTexts:
    """The texts, ids and arguments that the steps of a run show, and the words that add nothing to them."""

    def __init__(self, run: AgentRun, speakers: frozenset[str]) -> None:
        """Collect what the steps of a run show; ``speakers`` are further roles that messages may have."""
        calls = run.calls
        self.kind_words = {**_KIND_WORDS, "role": _ROLES | speakers}
        self.texts = {step.text for step in run.steps if step.call is None} | {call.tool for call in calls}
        self.texts |= {text for call in calls for text in (call.result, call.error) if text is not None}
        self.ids = {call.call_id for call in calls}
        self.arguments = {_write_text(call.arguments) for call in calls}
        self.meaningful_ids: dict[str, None] = {}
        """The ids that were found and may have a meaning to a reader, in order."""

    def holds(self, name: str, part: Any) -> bool:
        """Return whether the steps show a member of a message, or it has nothing to show.

        An id that may have a meaning to a reader is noted in ``meaningful_ids``.
        """
        if part is None or part in ("", [], {}) or isinstance(part, bool):
            return name in _OPTIONAL_MEMBERS or name in _READ_MEMBERS
        is_word = isinstance(part, str) and (name in self.kind_words or name in _ID_MEMBERS)
        if is_word or isinstance(part, int | float):
            return self._holds_word(name, str(part))
        if name in ("arguments", "args", "input") and _write_text(read_arguments(part)) in self.arguments:
            return True
        return self._holds_text(part)

    def _holds_word(self, name: str, word: str) -> bool:
        """Return whether a word is an id or only says what a part is; note an id that may mean something to readers."""
        if name in _ID_MEMBERS:
            # A long text is no id, whatever its member is called.
            is_id = _ID_PATTERN.fullmatch(word) is not None and (word in self.ids or name == "id")
            if is_id and _MEANINGLESS_ID.fullmatch(word) is None:
                self.meaningful_ids[word] = None
            return is_id
        return word in self.kind_words.get(name, ()) or name == "index"

    def _holds_text(self, part: Any) -> bool:
        """Return whether a step shows the text of a part.

        If a step shows the joined texts of a list of parts, return false, and count each of these texts as shown: the
        parts are looked at next, and one of them may hold more than its text.
        """
        text = read_text(part)
        if text.rstrip("\r\n") not in self.texts:
            return False
        if isinstance(part, list) and text != _write_text(part):
            self.texts |= {member["text"] for member in part}
            return False
        return True


def _write_text(value: Any) -> str:
    """Return a text as it is, and any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
