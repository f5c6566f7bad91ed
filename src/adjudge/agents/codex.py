"""Runs of Codex: what ``codex exec --json`` prints, and its rollout files (``sessions/**/rollout-*.jsonl``).

Sources: recorded with Codex 0.169.0. The events that end calls of MCP tools and patches are taken from its published
types of items and events, since the recorded runs have none. Its shell tool is called ``Bash`` here, with the argument
``command``, as Codex itself calls it for hooks, and as Claude Code does.
"""

from __future__ import annotations

import re
import shlex
from typing import Any

from adjudge.agents.openai import read_hosted
from adjudge.agents.run import AgentRun
from adjudge.agents.source import Document
from adjudge.agents.step import NotMade
from adjudge.agents.transcript import (
    Transcript,
    read_arguments,
    read_kind,
    read_name,
    read_number,
    read_string,
    read_text,
    read_usage,
)
from adjudge.formats.json import read_json
from adjudge.formats.text import quote

_SHELL_TOOLS = frozenset({"exec_command", "shell", "local_shell", "container.exec", "shell_command"})

_EVENT_KINDS = frozenset({"thread.started", "turn.started", "turn.completed", "turn.failed"})

_ROLLOUT_KINDS = frozenset({"session_meta", "response_item", "event_msg", "turn_context"})

_SHELL_PROGRAM = re.compile(r"(?:/\S+/)?(?:bash|sh|zsh)")

_OUTPUT_HEADER = re.compile(
    r"(?:Chunk ID: [^\n]*\n)?Wall time: [^\n]*\n(?:Process [^\n]*\n)?(?:Original token count: [^\n]*\n)?"
)

_EXIT_CODE_LINE = re.compile(r"^Process exited with code (-?\d+)$", re.MULTILINE)

_INTERNAL_BEGINNINGS = ("<environment_context>", "<user_instructions>", "<turn_aborted>", "# AGENTS.md")
"""The beginnings of messages that Codex itself writes in the user's name."""

_REFUSED_OUTPUTS = frozenset({"exec command rejected by user", "patch rejected by user"})
"""The whole output of a call of Codex's own tools that its user refused; what a command prints has a header before
it."""

_OWN_TOOLS = frozenset({"Bash", "apply_patch"})

_CALL_END_EVENTS = frozenset({"mcp_tool_call_end", "patch_apply_end", "item_completed"})
"""Events that say whether a call failed, where its output does not say so."""

_CALL_ITEM_KINDS = frozenset({"McpToolCall", "FileChange"})

_IGNORED_KINDS = frozenset({"reasoning", "compaction", "ghost_snapshot", "other"})


def is_codex(entry: dict[str, Any]) -> bool:
    """Return whether an object is a line that Codex wrote: to standard output, or into a rollout file."""
    kind = read_kind(entry)
    return kind in _EVENT_KINDS or (kind in _ROLLOUT_KINDS and isinstance(entry.get("payload"), dict))


def read_codex(document: Document) -> AgentRun:
    """Read the run of an agent from a rollout file of Codex, or from what ``codex exec --json`` printed."""
    is_rollout = any(read_kind(entry) in _ROLLOUT_KINDS for entry in document.objects)
    reader: _RolloutReader | _EventReader = _RolloutReader() if is_rollout else _EventReader()
    for number in document.unreadable:
        reader.transcript.report(f"line {number} cannot be read")
    for number, entry in zip(document.numbers, document.objects, strict=True):
        reader.read(number, entry)
    return reader.make_run()


class _EventReader:
    """Reads the events that ``codex exec --json`` prints, one after the other, into a run."""

    def __init__(self) -> None:
        self.transcript = Transcript("codex")
        self.turn_end: dict[str, Any] | None = None
        self.thread_id: str | None = None

    def read(self, number: int, entry: dict[str, Any]) -> None:
        """Read one line. Lines of unknown kinds, and lines after the end of the turn, are reported."""
        kind = read_kind(entry)
        if self.turn_end is not None:
            addition = "a second end" if kind in ("turn.completed", "turn.failed") else "something"
            self.transcript.report(f"line {number} has {addition} after the end")
        if kind in ("turn.completed", "turn.failed"):
            self.turn_end = self.turn_end or entry
        elif kind == "thread.started":
            if self.thread_id is not None:
                self.transcript.report(f"line {number} begins another thread")
            self.thread_id = self.thread_id or read_name(entry.get("thread_id"))
        elif kind in ("item.started", "item.updated", "item.completed"):
            self._read_item(number, entry, is_done=kind == "item.completed")
        elif kind not in ("turn.started", "error"):
            self.transcript.report(f"line {number} is of a kind that is not known here: {quote(kind, 60)}")

    def make_run(self) -> AgentRun:
        """Make the run of the lines that were read. Without the end of its turn it has failed, which is reported."""
        if self.turn_end is None:
            self.transcript.report("there is no end of the turn")
        turn_end = self.turn_end or {}
        return self.transcript.make_run(
            answer=self.transcript.get_last_text(),
            outcome="finished" if read_kind(turn_end) == "turn.completed" else "failed",
            usage=read_usage(turn_end.get("usage"), cached="cached_input_tokens", written="cache_write_input_tokens"),
            metadata={"session": self.thread_id},
        )

    def _read_item(self, number: int, entry: dict[str, Any], *, is_done: bool) -> None:
        """Read an item of the agent, a message or a call, from an event.

        ``is_done`` says that the event is the one by which the item ended: then a message has its text, and a call its
        result.
        """
        item = entry.get("item")
        if not isinstance(item, dict) or not read_kind(item):
            self.transcript.report(f"line {number} has no item")
            return
        kind, call_id = item["type"], item.get("id")
        if kind == "agent_message":
            if is_done:
                self.transcript.add_text("assistant", read_text(item.get("text")))
        elif kind in ("reasoning", "todo_list", "error"):
            pass
        else:
            # A call has an event when it begins and one when it ends. If the first is missing, the last adds the call.
            if not self.transcript.has_call(call_id) or entry["type"] == "item.started":
                tool, arguments = _read_call(kind, item)
                self.transcript.add_call(tool, arguments, call_id)
            if is_done:
                text, failed = _read_outcome(kind, item)
                not_made: NotMade | None = "refused" if read_string(item, "status") == "declined" else None
                self.transcript.add_result(call_id, text, failed=failed, not_made=not_made)


class _RolloutReader:
    """Reads the lines of a rollout file, one after the other, into a run."""

    def __init__(self) -> None:
        self.transcript = Transcript("codex")
        self.is_open = True
        """True while the agent is at work: it began a turn, or the file did not say so, and has not ended it."""
        self.was_aborted = False
        self.has_call_failed: dict[str, bool] = {}
        """For each call with an end event, by its id: True if it failed."""
        self.mcp_call_ids: set[str] = set()
        self.last_usage: Any = None
        self.duration_ms: float | None = None
        self.session_id: str | None = None

    def read(self, number: int, entry: dict[str, Any]) -> None:
        """Read one line: an item that the model wrote or was sent, or an event of the session."""
        kind, payload = read_kind(entry), entry.get("payload")
        if not isinstance(payload, dict):
            if kind in _ROLLOUT_KINDS or not kind:
                self.transcript.report(f"line {number} has no payload")
        elif kind == "session_meta":
            self._read_meta(number, payload)
        elif kind == "event_msg":
            self._read_event(payload)
        elif kind == "compacted":
            self.transcript.add_text("system", "The conversation before this was summarised.")
        elif kind == "response_item":
            self._read_response(number, payload)

    def make_run(self) -> AgentRun:
        """Make the run of the lines. It has failed if its turn was aborted, or has no end, which is reported."""
        if self.is_open:
            self.transcript.report("it ends before the agent's turn does")
        for call_id, failed in self.has_call_failed.items():
            if failed and self.transcript.has_result(call_id):
                self.transcript.note_failure(call_id, "it failed")
        return self.transcript.make_run(
            answer=self.transcript.get_last_text(),
            outcome="failed" if self.is_open or self.was_aborted else "finished",
            unknown=("files",) if self.mcp_call_ids <= self.has_call_failed.keys() else ("files", "failures"),
            usage=read_usage(self.last_usage, cached="cached_input_tokens", written="cache_write_input_tokens"),
            duration_ms=self.duration_ms,
            metadata={"session": self.session_id},
        )

    def _read_meta(self, number: int, payload: dict[str, Any]) -> None:
        """Read the line about the session, and report one of another session."""
        session_id = read_name(payload.get("id"))
        if self.session_id is not None and session_id != self.session_id:
            self.transcript.report(f"line {number} is of another session")
        self.session_id = self.session_id or session_id

    def _read_event(self, payload: dict[str, Any]) -> None:
        """Read an event: the begin or end of a turn, the end of a call, or the tokens so far. Others are skipped."""
        kind = read_kind(payload)
        if kind == "task_started":
            self.is_open = True
        elif kind in ("task_complete", "turn_aborted"):
            self.is_open, self.was_aborted = False, kind == "turn_aborted"
            turn_ms = read_number(payload.get("duration_ms"))
            self.duration_ms = turn_ms if self.duration_ms is None else self.duration_ms + (turn_ms or 0)
        elif kind in _CALL_END_EVENTS:
            self._note_call_end(payload)
        elif kind == "token_count" and isinstance(payload.get("info"), dict):
            self.last_usage = payload["info"].get("total_token_usage") or self.last_usage

    def _read_response(self, number: int, payload: dict[str, Any]) -> None:
        """Read an item that the model wrote or was sent: a message, a call, or an output. Report unknown kinds."""
        kind = read_kind(payload)
        if not self.is_open:
            self.transcript.report(f"line {number} comes after the end of the agent's turn")
        if kind == "message":
            self._read_message(payload)
        elif kind in ("function_call", "custom_tool_call"):
            tool, arguments = _read_function(payload)
            self.transcript.add_call(tool, arguments, payload.get("call_id"))
            self._note_mcp_call(payload)
        elif kind in ("function_call_output", "custom_tool_call_output"):
            call, output = self.transcript.get_call(payload.get("call_id")), payload.get("output")
            text, failed = _read_output(output)
            is_refused = call is not None and call.tool in _OWN_TOOLS and _read_raw_output(output) in _REFUSED_OUTPUTS
            not_made: NotMade | None = "refused" if is_refused else None
            self.transcript.add_result(payload.get("call_id"), text, failed=failed, not_made=not_made)
        elif kind.endswith("_call"):
            read_hosted(self.transcript, kind, payload)
        elif kind not in _IGNORED_KINDS:
            self.transcript.report(f"line {number} is of a kind that is not known here: {quote(kind, 60)}")

    def _note_call_end(self, payload: dict[str, Any]) -> None:
        """Note whether a call failed, by the event that ends it; one whose event cannot be read counts as failed."""
        if payload["type"] == "item_completed":
            item = payload.get("item")
            call_id, is_success = read_string(item, "id"), read_string(item, "status") == "completed"
            if read_kind(item) not in _CALL_ITEM_KINDS:
                return
        elif payload["type"] == "patch_apply_end":
            call_id, is_success = read_string(payload, "call_id"), payload.get("success") is True
        else:
            result = payload.get("result")
            mcp_result = result.get("Ok") if isinstance(result, dict) else None
            call_id, is_success = (
                read_string(payload, "call_id"),
                isinstance(mcp_result, dict) and not mcp_result.get("isError"),
            )
        self.has_call_failed[call_id] = not is_success

    def _note_mcp_call(self, payload: dict[str, Any]) -> None:
        """Note a call of an MCP tool: not its output, but only the event that ends it, says whether it failed."""
        names = (read_string(payload, "name"), read_string(payload, "namespace"))
        if any(name.startswith("mcp__") for name in names):
            self.mcp_call_ids.add(read_string(payload, "call_id"))

    def _read_message(self, payload: dict[str, Any]) -> None:
        """Read a message. One that Codex itself wrote in the user's name counts as the system's."""
        text = read_text(payload.get("content"))
        role = payload.get("role")
        if role == "assistant":
            self.transcript.add_text("assistant", text)
        else:
            is_user = role == "user" and not text.lstrip().startswith(_INTERNAL_BEGINNINGS)
            self.transcript.add_text("user" if is_user else "system", text)


def _read_call(kind: str, item: dict[str, Any]) -> tuple[Any, Any]:
    """Read the tool and the arguments of a call from an item that ``codex exec --json`` printed."""
    if kind == "command_execution":
        return "Bash", {"command": _unwrap_command(read_text(item.get("command")))}
    if kind == "file_change":
        return "apply_patch", {"changes": item.get("changes")}
    if kind == "mcp_tool_call":
        return f"mcp__{item.get('server')}__{item.get('tool')}", read_arguments(item.get("arguments"))
    arguments = {name: value for name, value in item.items() if name not in ("id", "type", "status", "result")}
    return kind, arguments


def _read_outcome(kind: str, item: dict[str, Any]) -> tuple[str, bool]:
    """Read what a call returned, and whether it failed, from an item that ``codex exec --json`` printed."""
    if kind == "command_execution":
        code, output, status = item.get("exit_code"), read_text(item.get("aggregated_output")), item.get("status")
        if code is None and status != "completed":
            return f"{status}\n{output}", True
        return _describe_exit(code, output)
    if kind == "mcp_tool_call":
        error, result = item.get("error"), item.get("result")
        if error is not None:
            return read_text(error.get("message") if isinstance(error, dict) else error), True
        # A tool that reports its own failure gives a result and no error: only the status says that it failed.
        return read_text(result.get("content") if isinstance(result, dict) else result), item.get("status") == "failed"
    return read_text(item.get("result")), item.get("status") == "failed"


def _read_function(payload: dict[str, Any]) -> tuple[Any, Any]:
    """Read the tool and the arguments of a call from a rollout file; a call of a shell becomes one of ``Bash``."""
    name = read_string(payload, "name")
    if payload["type"] == "custom_tool_call":
        return name, {"input": payload.get("input")}
    arguments = read_arguments(payload.get("arguments"))
    if name not in _SHELL_TOOLS or not isinstance(arguments, dict):
        return name, arguments
    command = arguments.get("cmd", arguments.get("command"))
    other_arguments = {key: value for key, value in arguments.items() if key not in ("cmd", "command")}
    if isinstance(command, list) and all(isinstance(word, str) for word in command):
        command = _unwrap_command(shlex.join(command))
    return "Bash", {"command": command, **other_arguments}


def _unwrap_command(command: str) -> str:
    """Return the ``COMMAND`` of ``bash -lc COMMAND`` and the like; any other command as it is."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    if len(words) == 3 and _SHELL_PROGRAM.fullmatch(words[0]) and words[1] in ("-lc", "-c"):
        return words[2]
    return command


def _read_output(output: Any) -> tuple[str, bool]:
    """Read what a call returned, and whether it failed, from its output in a rollout file.

    Only the header that Codex writes before the output says how a command ended.
    """
    text = _read_raw_output(output)
    header, separator, printed = text.partition("Output:\n")
    if separator and _OUTPUT_HEADER.fullmatch(header):
        match = _EXIT_CODE_LINE.search(header)
        return _describe_exit(int(match[1][:6]) if match else None, printed)
    if text.startswith('{"output"'):
        try:
            value = read_json(text)
        except ValueError:
            return text, False
        details = value.get("metadata")
        code = details.get("exit_code") if isinstance(details, dict) else None
        return _describe_exit(code, read_text(value.get("output")))
    return text, False


def _read_raw_output(output: Any) -> str:
    """Read the output of a call in a rollout file as a text, with the header that Codex wrote before it."""
    if isinstance(output, dict):
        output = output.get("content") or output.get("content_items")
    return read_text(output)


def _describe_exit(code: Any, output: str) -> tuple[str, bool]:
    """Return the output of a command, with its exit code before it if that is not 0, and whether it failed.

    The form is that of Claude Code. A code of ``None`` is that of a command that is still running.
    """
    if code == 0 or code is None:
        return output, False
    return f"Exit code {code}\n{output}", True
