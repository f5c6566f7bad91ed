"""Runs of Claude Code: what ``claude -p --output-format stream-json --verbose`` prints, and the files of sessions.

Sources: recorded with Claude Code 2.1.330. Both have a line for each part of a message. The lines of a session are
linked by ``parentUuid``, and no line says how the session ended. Whether a call was made is stated beside its result,
where no tool can write: as ``toolDenialKind`` in a session, and as ``tool_result_meta`` in what is printed. These two
members are taken from published reports of sessions, since no call was refused in the recorded ones.
"""

from __future__ import annotations

from typing import Any

from adjudge.agents.run import AgentRun, RunOutcome
from adjudge.agents.source import Document
from adjudge.agents.step import NotMade
from adjudge.agents.transcript import (
    Transcript,
    add_usages,
    read_arguments,
    read_kind,
    read_name,
    read_number,
    read_string,
    read_text,
    read_usage,
)
from adjudge.formats.text import quote
from adjudge.result import Usage

_CALL_KINDS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})

_RESULT_KIND_ENDING = "tool_result"
"""The ending of the kinds of parts that hold what a call returned, such as ``web_search_tool_result``."""

_NO_CALL_KINDS = frozenset(
    {"text", "thinking", "redacted_thinking", "image", "document", "search_result", "container_upload", "compaction"}
    | {"fallback", "mcp_tool_listing", "tool_addition", "tool_removal"}
)
"""The other kinds of parts that Anthropic's API has, as its package ``anthropic`` 2.14 lists them: none is a call."""

_CUT_OFF_REASONS = frozenset({"max_tokens", "model_context_window_exceeded"})

_REFUSAL_REASON = "refusal"

_END_REASONS = frozenset({"end_turn", "stop_sequence", _REFUSAL_REASON, *_CUT_OFF_REASONS})
"""Reasons for which a reply ends and no call follows."""


_CACHE_WRITE_MEMBER = "cacheCreationInputTokens"

_PERMISSION_ASKED = "Claude requested permissions"
"""The beginning of the result of a call for which nobody gave the permission that was asked for."""

_DENIAL_BEGINNINGS = (
    _PERMISSION_ASKED,
    "Permission to use ",
    "The user doesn't want to",
    "This command requires approval",
)
"""The beginnings of results by which a version that has neither member says that a call was not made."""


def is_claude(entry: dict[str, Any]) -> bool:
    """Return whether an object is a line that Claude Code wrote: into a session, or to standard output."""
    kind = read_kind(entry)
    if kind in ("assistant", "user") and isinstance(entry.get("message"), dict):
        return "sessionId" in entry or "session_id" in entry
    return (kind == "system" and entry.get("subtype") == "init" and "session_id" in entry) or (
        kind == "result" and "session_id" in entry
    )


def read_claude(document: Document) -> AgentRun:
    """Read the run of an agent from a session of Claude Code, or from what it printed."""
    is_session = not any("session_id" in entry for entry in document.objects)
    reader = _ClaudeReader(document, "sessionId" if is_session else "session_id", is_session=is_session)
    for number, entry in zip(document.numbers, document.objects, strict=True):
        reader.read(number, entry)
    return reader.make_run()


class _ClaudeReader:
    """Reads the lines of Claude Code, one after the other, into a run."""

    def __init__(self, document: Document, session_member: str, *, is_session: bool) -> None:
        """Begin a run, and report unreadable lines; ``session_member`` is the member that names a line's session."""
        self.transcript = Transcript("claude")
        for number in document.unreadable:
            self.transcript.report(f"line {number} cannot be read")
        self.session_member, self.is_session = session_member, is_session
        self.session_id: str | None = None
        self.seen_line_ids: set[str] = set()
        self.result: dict[str, Any] | None = None
        self.cost_state: dict[str, Any] = {}
        self.stop_reason = ""

    def read(self, number: int, entry: dict[str, Any]) -> None:
        """Read one line into the run. A line after the result is reported, and read like any other."""
        if self.result is not None:
            addition = "a second result" if entry.get("type") == "result" else "something"
            self.transcript.report(f"line {number} has {addition} after the result")
        self._check_line(number, entry)
        kind = read_kind(entry)
        if kind in ("assistant", "user"):
            self._read_message(number, entry)
        elif kind == "result" and not self.is_session:
            self.result = self.result or entry
            self._note_stop(entry)
        elif kind == "cost-state":
            self.cost_state = entry
        elif _may_hold_call(entry):
            # Lines of other kinds are about the program and not the agent, unless they hold calls.
            self.transcript.report(f"line {number} may hold a call, and is of a kind that is not known here")

    def make_run(self) -> AgentRun:
        """Make the run of the lines that were read, and report it where the end is missing."""
        result = self.result or {}
        if not self.is_session and self.result is None:
            self.transcript.report("there is no result at the end")
        if self.is_session and (self.stop_reason not in _END_REASONS or self.transcript.get_last_text() is None):
            self.transcript.report("it ends before the agent's last word")
        answer = result.get("result") if not self.is_session else None
        cost = result.get("total_cost_usd") if self.result else self.cost_state.get("totalCostUSD")
        duration = result.get("duration_ms") if self.result else self.cost_state.get("totalDuration")
        return self.transcript.make_run(
            answer=answer if isinstance(answer, str) else self.transcript.get_last_text(),
            outcome=self._find_outcome(),
            usage=self._read_usage(),
            cost=read_number(cost),
            duration_ms=read_number(duration),
            metadata={"session": read_name(self.session_id)},
        )

    def _read_usage(self) -> Usage | None:
        """Read the tokens: from the result of a printed run, or as the sum over the models of a session."""
        if self.result is not None:
            usage = self.result.get("usage")
            return read_usage(
                usage, cached="cache_read_input_tokens", written="cache_creation_input_tokens", added=True
            )
        models = self.cost_state.get("modelUsage")
        usages: list[Usage | None] = []
        for counts in models.values() if isinstance(models, dict) else ():
            if isinstance(counts, dict):
                renamed_counts = {
                    "input_tokens": counts.get("inputTokens"),
                    "output_tokens": counts.get("outputTokens"),
                }
                usages.append(
                    read_usage(
                        counts | renamed_counts, cached="cacheReadInputTokens", written=_CACHE_WRITE_MEMBER, added=True
                    )
                )
        return add_usages(usages)

    def _find_outcome(self) -> RunOutcome:
        """Find the outcome of the run, by its result, or in a session by the reason for which the last reply ended."""
        # Claude Code calls a run a success that ends with a refusal of the model, which has words like any other reply.
        if self.stop_reason == _REFUSAL_REASON:
            return "failed"
        if self.result is None:
            return "finished" if self.is_session and self.stop_reason in _END_REASONS else "failed"
        if self.result.get("stop_reason") == "tool_deferred":
            return "held"
        is_success = self.result.get("is_error") is False and self.result.get("subtype", "success") == "success"
        return "finished" if is_success else "failed"

    def _check_line(self, number: int, entry: dict[str, Any]) -> None:
        """Report a line of another session, a line that is there twice, and a line whose predecessor is missing."""
        session_id = entry.get(self.session_member)
        if isinstance(session_id, str):
            self.session_id = self.session_id or session_id
            if session_id != self.session_id:
                self.transcript.report(f"line {number} is of another session")
        elif entry.get("type") in ("assistant", "user", "result"):
            self.transcript.report(f"line {number} names no session")
        line_id, parent_id = entry.get("uuid"), entry.get("parentUuid")
        if isinstance(parent_id, str) and parent_id not in self.seen_line_ids:
            self.transcript.report(f"a line is missing before line {number}")
        if isinstance(line_id, str):
            if line_id in self.seen_line_ids:
                self.transcript.report(f"line {number} stands there twice")
            self.seen_line_ids.add(line_id)

    def _read_message(self, number: int, entry: dict[str, Any]) -> None:
        """Read the parts of a message; for one of the agent, also note why its reply ended."""
        message = entry.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        if not isinstance(message, dict) or not isinstance(content, str | list):
            self.transcript.report(f"line {number} is a message without content")
            return
        if entry["type"] == "assistant":
            self.stop_reason = ""
            self._note_stop(message)
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for part in parts:
            self._read_part(number, entry, part, message.get("id"))

    def _note_stop(self, holder: dict[str, Any]) -> None:
        """Note why a reply or the run ended, and report a reply that was cut off."""
        self.stop_reason = read_string(holder, "stop_reason") or self.stop_reason
        if self.stop_reason in _CUT_OFF_REASONS:
            self.transcript.report("a message of the agent was cut off")

    def _read_part(self, number: int, entry: dict[str, Any], part: Any, reply: Any) -> None:
        """Read a part of a message, which is words, a call or a result; ``reply`` is the id of the message."""
        kind = read_kind(part)
        if not kind:
            self.transcript.report(f"line {number} has a part without a type")
        elif kind == "text" and isinstance(part.get("text"), str):
            self._add_text(entry, part["text"], reply)
        elif kind in _CALL_KINDS:
            self._add_call(number, entry, part, reply)
        elif kind.endswith(_RESULT_KIND_ENDING):
            failed, text = part.get("is_error") is True, read_text(part.get("content"))
            not_made = _find_not_made(entry, part.get("tool_use_id"), text) if failed else None
            self.transcript.add_result(part.get("tool_use_id"), text, failed=failed, not_made=not_made)
        elif kind not in _NO_CALL_KINDS:
            # It could be a call. If it were ignored, a rule about calls could pass although this call breaks it.
            self.transcript.report(f"line {number} has a part that is not known here: {quote(kind, 60)}")

    def _add_text(self, entry: dict[str, Any], text: str, reply: Any) -> None:
        """Add words of the agent or of the user; words of a sub-agent are left out.

        What Claude Code itself, or the agent to a sub-agent, wrote in the user's name counts as the system's.
        """
        if entry["type"] == "assistant" and not _find_agent(entry):
            self.transcript.add_text("assistant", text, reply=reply if isinstance(reply, str) else None)
        elif entry["type"] == "user":
            is_internal = entry.get("isMeta") is True or entry.get("isSynthetic") is True or _find_agent(entry)
            self.transcript.add_text("system" if is_internal else "user", text)

    def _add_call(self, number: int, entry: dict[str, Any], part: dict[str, Any], reply: Any) -> None:
        """Add a call of the agent; a call in a message of the user is reported and not added."""
        if entry["type"] != "assistant":
            self.transcript.report(
                f"line {number} is a call of {quote(str(part.get('name')), 60)} that is not the agent's"
            )
            return
        self.transcript.add_call(
            part.get("name"),
            read_arguments(part.get("input")),
            part.get("id"),
            agent=_find_agent(entry),
            reply=reply if isinstance(reply, str) else None,
        )


def _may_hold_call(entry: dict[str, Any]) -> bool:
    """Return whether a line holds a message with a part that is a call, or is of an unknown kind."""
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    kinds = map(read_kind, content if isinstance(content, list) else ())
    return any(kind not in _NO_CALL_KINDS and not kind.endswith(_RESULT_KIND_ENDING) for kind in kinds)


def _find_not_made(entry: dict[str, Any], call_id: Any, text: str) -> NotMade | None:
    """Find what happened in place of a call, by the line that holds its result and the ``text`` of that.

    ``None`` if nothing says that the call was not made.
    """
    kind = read_string(entry, "toolDenialKind")
    meta_list = entry.get("tool_result_meta")
    for meta in meta_list if isinstance(meta_list, list) else ():
        if isinstance(meta, dict) and meta.get("id") == call_id:
            kind = read_string(meta, "non_execution_kind") or kind
    if kind == "user-rejected":
        return "asked" if text.startswith(_PERMISSION_ASKED) else "refused"
    if kind == "permission-rule":
        return "refused"
    # A tool that fails may write the same words, so a text alone does not say whether the call was made.
    return "unclear" if kind or text.startswith(_DENIAL_BEGINNINGS) else None


def _find_agent(entry: dict[str, Any]) -> str | None:
    """Find the id or name of the sub-agent whose line this is; ``None`` for the agent itself."""
    agent = read_name(entry.get("parent_tool_use_id"))
    if agent is None and entry.get("isSidechain") is True:
        agent = read_name(entry.get("agentId")) or "sub-agent"
    return agent
