"""Runs of Codex: what ``codex exec --json`` prints, and its rollout files (``sessions/**/rollout-*.jsonl``).

Sources: recorded with Codex 0.169.0. The ends of calls of MCP tools and of patches are taken from its published types
of items and events, since the recorded runs have none. Its shell is called ``Bash`` here, with the argument
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
    read_text,
    read_usage,
)
from adjudge.formats.json import read_json
from adjudge.formats.text import quote

_SHELLS = frozenset({"exec_command", "shell", "local_shell", "container.exec", "shell_command"})

_EVENTS = frozenset({"thread.started", "turn.started", "turn.completed", "turn.failed"})

_LINES = frozenset({"session_meta", "response_item", "event_msg", "turn_context"})

_WRAPPED = re.compile(r"(?:/\S+/)?(?:bash|sh|zsh)")

_HEADER = re.compile(
    r"(?:Chunk ID: [^\n]*\n)?Wall time: [^\n]*\n(?:Process [^\n]*\n)?(?:Original token count: [^\n]*\n)?"
)

_EXIT = re.compile(r"^Process exited with code (-?\d+)$", re.MULTILINE)

_INTERNAL = ("<environment_context>", "<user_instructions>", "<turn_aborted>", "# AGENTS.md")
"""The beginnings of messages that Codex itself writes in the user's name."""

_REFUSALS = frozenset({"exec command rejected by user", "patch rejected by user"})
"""The whole output of a call of Codex's own tools that its user refused; what a command prints has a header before
it."""

_OWN_TOOLS = frozenset({"Bash", "apply_patch"})

_CALL_ENDS = frozenset({"mcp_tool_call_end", "patch_apply_end", "item_completed"})
"""Events that say how a call ended, whose output has no word of that."""

_ITEMS = frozenset({"McpToolCall", "FileChange"})

_KEPT_OUT = frozenset({"reasoning", "compaction", "ghost_snapshot", "other"})


def is_codex(entry: dict[str, Any]) -> bool:
    """Return whether an object is a line of Codex."""
    kind = read_kind(entry)
    return kind in _EVENTS or (kind in _LINES and isinstance(entry.get("payload"), dict))


def read_codex(document: Document) -> AgentRun:
    """Read a run of either form."""
    is_rollout = any(read_kind(entry) in _LINES for entry in document.objects)
    reader: _Rollout | _Events = _Rollout() if is_rollout else _Events()
    for number in document.unreadable:
        reader.transcript.report(f"line {number} cannot be read")
    for number, entry in zip(document.numbers, document.objects, strict=True):
        reader.read(number, entry)
    return reader.make_run()


class _Events:
    """Reads what ``codex exec --json`` prints."""

    def __init__(self) -> None:
        self.transcript = Transcript("codex")
        self.end: dict[str, Any] | None = None
        self.thread: str | None = None

    def read(self, number: int, entry: dict[str, Any]) -> None:
        """Read one line of ``codex exec --json``; report what is not known, or comes after the end."""
        kind = read_kind(entry)
        if self.end is not None:
            again = "a second end" if kind in ("turn.completed", "turn.failed") else "something"
            self.transcript.report(f"line {number} has {again} after the end")
        if kind in ("turn.completed", "turn.failed"):
            self.end = self.end or entry
        elif kind == "thread.started":
            if self.thread is not None:
                self.transcript.report(f"line {number} begins another thread")
            self.thread = self.thread or read_name(entry.get("thread_id"))
        elif kind in ("item.started", "item.updated", "item.completed"):
            self._read_item(number, entry, is_done=kind == "item.completed")
        elif kind not in ("turn.started", "error"):
            self.transcript.report(f"line {number} is of a kind that is not known here: {quote(kind, 60)}")

    def make_run(self) -> AgentRun:
        """Make the run; one without the end of its turn has failed, and that is reported."""
        if self.end is None:
            self.transcript.report("there is no end of the turn")
        end = self.end or {}
        return self.transcript.make_run(
            answer=self.transcript.get_last_text(),
            outcome="finished" if read_kind(end) == "turn.completed" else "failed",
            usage=read_usage(end.get("usage"), cached="cached_input_tokens", written="cache_write_input_tokens"),
            metadata={"session": self.thread},
        )

    def _read_item(self, number: int, entry: dict[str, Any], *, is_done: bool) -> None:
        """Read an item that started, was updated or (``is_done``) completed: a message, or a call with its result."""
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
            # An item has a line when it begins and one when it ends; without the first, the last makes the call.
            if not self.transcript.has_call(call_id) or entry["type"] == "item.started":
                tool, arguments = _read_call(kind, item)
                self.transcript.add_call(tool, arguments, call_id)
            if is_done:
                text, failed = _read_outcome(kind, item)
                not_made: NotMade | None = "refused" if read_kind(item, "status") == "declined" else None
                self.transcript.add_result(call_id, text, failed=failed, not_made=not_made)


class _Rollout:
    """Reads a rollout file."""

    def __init__(self) -> None:
        self.transcript = Transcript("codex")
        self.is_open = True
        """True while the agent is at work: it began a turn, or the file did not say so, and has not ended it."""
        self.failed = False
        self.ends: dict[str, bool] = {}
        """For each call with an end event, by its id: True if it failed."""
        self.mcp_calls: set[str] = set()
        self.usage: Any = None
        self.duration_ms: float | None = None
        self.session: str | None = None

    def read(self, number: int, entry: dict[str, Any]) -> None:
        """Read one line of a rollout file: what the model wrote, what answered it, and events of the session."""
        kind, payload = read_kind(entry), entry.get("payload")
        if not isinstance(payload, dict):
            if kind in _LINES or not kind:
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
        """Make the run; one whose turn is still open has failed, which is reported, and so has one that was aborted."""
        if self.is_open:
            self.transcript.report("it ends before the agent's turn does")
        for call_id, failed in self.ends.items():
            if failed and self.transcript.has_result(call_id):
                self.transcript.note_failure(call_id, "it failed")
        return self.transcript.make_run(
            answer=self.transcript.get_last_text(),
            outcome="failed" if self.is_open or self.failed else "finished",
            unknown=("files",) if self.mcp_calls <= self.ends.keys() else ("files", "failures"),
            usage=read_usage(self.usage, cached="cached_input_tokens", written="cache_write_input_tokens"),
            duration_ms=self.duration_ms,
            metadata={"session": self.session},
        )

    def _read_meta(self, number: int, payload: dict[str, Any]) -> None:
        session = read_name(payload.get("id"))
        if self.session is not None and session != self.session:
            self.transcript.report(f"line {number} is of another session")
        self.session = self.session or session

    def _read_event(self, payload: dict[str, Any]) -> None:
        """Read an event: the beginning or end of a turn, the end of a call, or the tokens so far; no other is read."""
        kind = read_kind(payload)
        if kind == "task_started":
            self.is_open = True
        elif kind in ("task_complete", "turn_aborted"):
            self.is_open, self.failed = False, kind == "turn_aborted"
            took = read_number(payload.get("duration_ms"))
            self.duration_ms = took if self.duration_ms is None else self.duration_ms + (took or 0)
        elif kind in _CALL_ENDS:
            self._note_end(payload)
        elif kind == "token_count" and isinstance(payload.get("info"), dict):
            self.usage = payload["info"].get("total_token_usage") or self.usage

    def _read_response(self, number: int, payload: dict[str, Any]) -> None:
        """Read an item that the model wrote into a rollout file, or that answered it: a message, a call, an output."""
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
            is_refused = call is not None and call.tool in _OWN_TOOLS and _read_written(output) in _REFUSALS
            not_made: NotMade | None = "refused" if is_refused else None
            self.transcript.add_result(payload.get("call_id"), text, failed=failed, not_made=not_made)
        elif kind.endswith("_call"):
            read_hosted(self.transcript, kind, payload)
        elif kind not in _KEPT_OUT:
            self.transcript.report(f"line {number} is of a kind that is not known here: {quote(kind, 60)}")

    def _note_end(self, payload: dict[str, Any]) -> None:
        """Note whether a call failed; of an end that cannot be read that it did."""
        if payload["type"] == "item_completed":
            item = payload.get("item")
            call_id, is_good = read_kind(item, "id"), read_kind(item, "status") == "completed"
            if read_kind(item) not in _ITEMS:
                return
        elif payload["type"] == "patch_apply_end":
            call_id, is_good = read_kind(payload, "call_id"), payload.get("success") is True
        else:
            result = payload.get("result")
            returned = result.get("Ok") if isinstance(result, dict) else None
            call_id, is_good = read_kind(payload, "call_id"), isinstance(returned, dict) and not returned.get("isError")
        self.ends[call_id] = not is_good

    def _note_mcp_call(self, payload: dict[str, Any]) -> None:
        """Note a call of an MCP tool: its output has no word of whether it failed, which an event of its own says."""
        names = (read_kind(payload, "name"), read_kind(payload, "namespace"))
        if any(name.startswith("mcp__") for name in names):
            self.mcp_calls.add(read_kind(payload, "call_id"))

    def _read_message(self, payload: dict[str, Any]) -> None:
        """Read a message; one that Codex wrote in the user's name counts as the system's."""
        text = read_text(payload.get("content"))
        role = payload.get("role")
        if role == "assistant":
            self.transcript.add_text("assistant", text)
        else:
            is_user = role == "user" and not text.lstrip().startswith(_INTERNAL)
            self.transcript.add_text("user" if is_user else "system", text)


def _read_call(kind: str, item: dict[str, Any]) -> tuple[Any, Any]:
    """Read the tool and the arguments of an item of ``--json``."""
    if kind == "command_execution":
        return "Bash", {"command": _unwrap_command(read_text(item.get("command")))}
    if kind == "file_change":
        return "apply_patch", {"changes": item.get("changes")}
    if kind == "mcp_tool_call":
        return f"mcp__{item.get('server')}__{item.get('tool')}", read_arguments(item.get("arguments"))
    arguments = {name: value for name, value in item.items() if name not in ("id", "type", "status", "result")}
    return kind, arguments


def _read_outcome(kind: str, item: dict[str, Any]) -> tuple[str, bool]:
    """Read what an item of ``--json`` returned, and whether it failed."""
    if kind == "command_execution":
        code, output, status = item.get("exit_code"), read_text(item.get("aggregated_output")), item.get("status")
        return (f"{status}\n{output}", True) if code is None and status != "completed" else _describe_exit(code, output)
    if kind == "mcp_tool_call":
        error, result = item.get("error"), item.get("result")
        if error is not None:
            return read_text(error.get("message") if isinstance(error, dict) else error), True
        # A tool that says itself that it failed gives a result and no error: then only the status tells.
        return read_text(result.get("content") if isinstance(result, dict) else result), item.get("status") == "failed"
    return read_text(item.get("result")), item.get("status") == "failed"


def _read_function(payload: dict[str, Any]) -> tuple[Any, Any]:
    """Read the tool and the arguments of a call in a rollout file."""
    name = read_kind(payload, "name")
    if payload["type"] == "custom_tool_call":
        return name, {"input": payload.get("input")}
    arguments = read_arguments(payload.get("arguments"))
    if name not in _SHELLS or not isinstance(arguments, dict):
        return name, arguments
    command = arguments.get("cmd", arguments.get("command"))
    rest = {key: value for key, value in arguments.items() if key not in ("cmd", "command")}
    if isinstance(command, list) and all(isinstance(word, str) for word in command):
        command = _unwrap_command(shlex.join(command))
    return "Bash", {"command": command, **rest}


def _unwrap_command(command: str) -> str:
    """Unwrap a command that is handed to a shell as its only text."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    if len(words) == 3 and _WRAPPED.fullmatch(words[0]) and words[1] in ("-lc", "-c"):
        return words[2]
    return command


def _read_output(output: Any) -> tuple[str, bool]:
    """Read the output of a call in a rollout file, and whether the call failed.

    Only what Codex wrote before the output says how a command ended.
    """
    text = _read_written(output)
    header, separator, rest = text.partition("Output:\n")
    if separator and _HEADER.fullmatch(header):
        match = _EXIT.search(header)
        return _describe_exit(int(match[1][:6]) if match else None, rest)
    if text.startswith('{"output"'):
        try:
            value = read_json(text)
        except ValueError:
            return text, False
        details = value.get("metadata")
        code = details.get("exit_code") if isinstance(details, dict) else None
        return _describe_exit(code, read_text(value.get("output")))
    return text, False


def _read_written(output: Any) -> str:
    """Read the output of a call in a rollout file as it is written there."""
    if isinstance(output, dict):
        output = output.get("content") or output.get("content_items")
    return read_text(output)


def _describe_exit(code: Any, output: str) -> tuple[str, bool]:
    """Describe how a command ended as Claude Code does, and whether it failed.

    A code that is missing is that of a command still running.
    """
    if code == 0 or code is None:
        return output, False
    return f"Exit code {code}\n{output}", True
