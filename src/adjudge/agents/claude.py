"""Runs of Claude Code: what ``claude -p --output-format stream-json --verbose`` prints, and the files of sessions.

Sources: recorded with Claude Code 2.1.330. Both have a line for each part of a message; a session's lines are linked
by ``parentUuid``, and have no line that says how it ended. That a call was not made is said beside its result, where no
tool can write: as ``toolDenialKind`` in a session, and in ``tool_result_meta`` of what is printed. These two members
are taken from published reports of sessions, since the recorded ones refuse nothing.
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
    read_text,
    read_usage,
)
from adjudge.formats.text import quote
from adjudge.result import Usage

_CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})

_RESULT = "tool_result"
"""The end of the kinds of parts that hold what a call returned, such as ``web_search_tool_result``."""

_NO_CALLS = frozenset(
    {"text", "thinking", "redacted_thinking", "image", "document", "search_result", "container_upload", "compaction"}
    | {"fallback", "mcp_tool_listing", "tool_addition", "tool_removal"}
)
"""The other kinds of parts that Anthropic's API has, as its package ``anthropic`` 2.14 lists them: none is a call."""

_CUT_OFF = frozenset({"max_tokens", "model_context_window_exceeded"})

_REFUSED = "refusal"

_ENDS = frozenset({"end_turn", "stop_sequence", _REFUSED, *_CUT_OFF})
"""Reasons for which a reply ends and no call follows."""


_WRITTEN = "cacheCreationInputTokens"

_ASKED = "Claude requested permissions"
"""The beginning of the result of a call for which nobody gave the permission that was asked for."""

_DENIALS = (_ASKED, "Permission to use ", "The user doesn't want to", "This command requires approval")
"""The beginnings of results by which a version that has neither member says that a call was not made."""


def is_claude(entry: dict[str, Any]) -> bool:
    """Return whether an object is a line of Claude Code."""
    kind = read_kind(entry)
    if kind in ("assistant", "user") and isinstance(entry.get("message"), dict):
        return "sessionId" in entry or "session_id" in entry
    return (kind == "system" and entry.get("subtype") == "init" and "session_id" in entry) or (
        kind == "result" and "session_id" in entry
    )


def read_claude(document: Document) -> AgentRun:
    """Read a run of either form."""
    is_session = not any("session_id" in entry for entry in document.objects)
    reader = _Reader(document, "sessionId" if is_session else "session_id", is_session=is_session)
    for number, entry in zip(document.numbers, document.objects, strict=True):
        reader.read(number, entry)
    return reader.make_run()


class _Reader:
    def __init__(self, document: Document, session_member: str, *, is_session: bool) -> None:
        self.transcript = Transcript("claude")
        for number in document.unreadable:
            self.transcript.report(f"line {number} cannot be read")
        self.session_member, self.is_session = session_member, is_session
        self.session: str | None = None
        self.seen: set[str] = set()
        self.result: dict[str, Any] | None = None
        self.costs: dict[str, Any] = {}
        self.stop_reason = ""

    def read(self, number: int, entry: dict[str, Any]) -> None:
        """Read one line into the run; a line after the result is reported and read as well."""
        if self.result is not None:
            again = "a second result" if entry.get("type") == "result" else "something"
            self.transcript.report(f"line {number} has {again} after the result")
        self._check_line(number, entry)
        kind = read_kind(entry)
        if kind in ("assistant", "user"):
            self._read_message(number, entry)
        elif kind == "result" and not self.is_session:
            self.result = self.result or entry
            self._note_stop(entry)
        elif kind == "cost-state":
            self.costs = entry
        elif _may_hold_call(entry):
            # Of the many kinds of lines only these count: any other is about the program, and not about the agent.
            self.transcript.report(f"line {number} may hold a call, and is of a kind that is not known here")

    def make_run(self) -> AgentRun:
        """Make the run of what was read, and report what is missing at its end."""
        result = self.result or {}
        if not self.is_session and self.result is None:
            self.transcript.report("there is no result at the end")
        if self.is_session and (self.stop_reason not in _ENDS or self.transcript.get_last_text() is None):
            self.transcript.report("it ends before the agent's last word")
        answer = result.get("result") if not self.is_session else None
        cost = result.get("total_cost_usd") if self.result else self.costs.get("totalCostUSD")
        duration = result.get("duration_ms") if self.result else self.costs.get("totalDuration")
        return self.transcript.make_run(
            answer=answer if isinstance(answer, str) else self.transcript.get_last_text(),
            outcome=self._find_outcome(),
            usage=self._read_usage(),
            cost=read_number(cost),
            duration_ms=read_number(duration),
            metadata={"session": read_name(self.session)},
        )

    def _read_usage(self) -> Usage | None:
        """Read the tokens of what is printed, from its result; those of a session are the sum over its models."""
        if self.result is not None:
            usage = self.result.get("usage")
            return read_usage(
                usage, cached="cache_read_input_tokens", written="cache_creation_input_tokens", added=True
            )
        models = self.costs.get("modelUsage")
        usages: list[Usage | None] = []
        for counts in models.values() if isinstance(models, dict) else ():
            if isinstance(counts, dict):
                renamed = {"input_tokens": counts.get("inputTokens"), "output_tokens": counts.get("outputTokens")}
                usages.append(read_usage(counts | renamed, cached="cacheReadInputTokens", written=_WRITTEN, added=True))
        return add_usages(usages)

    def _find_outcome(self) -> RunOutcome:
        # A refusal has words like any other reply, and Claude Code calls a run that ends with it a success.
        if self.stop_reason == _REFUSED:
            return "failed"
        if self.result is None:
            return "finished" if self.is_session and self.stop_reason in _ENDS else "failed"
        if self.result.get("stop_reason") == "tool_deferred":
            return "held"
        is_good = self.result.get("is_error") is False and self.result.get("subtype", "success") == "success"
        return "finished" if is_good else "failed"

    def _check_line(self, number: int, entry: dict[str, Any]) -> None:
        """Check that a line belongs to the others: the same session, a name of its own, and nothing cut out before."""
        session = entry.get(self.session_member)
        if isinstance(session, str):
            self.session = self.session or session
            if session != self.session:
                self.transcript.report(f"line {number} is of another session")
        elif entry.get("type") in ("assistant", "user", "result"):
            self.transcript.report(f"line {number} names no session")
        name, parent = entry.get("uuid"), entry.get("parentUuid")
        if isinstance(parent, str) and parent not in self.seen:
            self.transcript.report(f"a line is missing before line {number}")
        if isinstance(name, str):
            if name in self.seen:
                self.transcript.report(f"line {number} stands there twice")
            self.seen.add(name)

    def _read_message(self, number: int, entry: dict[str, Any]) -> None:
        """Read the parts of a message, and keep the reason for which the agent's last one ended."""
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
        """Note the reason for which a reply or the run ended; a reply that was cut off is reported."""
        self.stop_reason = read_kind(holder, "stop_reason") or self.stop_reason
        if self.stop_reason in _CUT_OFF:
            self.transcript.report("a message of the agent was cut off")

    def _read_part(self, number: int, entry: dict[str, Any], part: Any, reply: Any) -> None:
        """Read a part of a message: words, a call or a result; a kind that is not known is reported."""
        kind = read_kind(part)
        if not kind:
            self.transcript.report(f"line {number} has a part without a type")
        elif kind == "text" and isinstance(part.get("text"), str):
            self._add_text(entry, part["text"], reply)
        elif kind in _CALLS:
            self._add_call(number, entry, part, reply)
        elif kind.endswith(_RESULT):
            failed, text = part.get("is_error") is True, read_text(part.get("content"))
            not_made = _find_not_made(entry, part.get("tool_use_id"), text) if failed else None
            self.transcript.add_result(part.get("tool_use_id"), text, failed=failed, not_made=not_made)
        elif kind not in _NO_CALLS:
            # It could be a call: passed over, a rule about calls would hold that the call breaks.
            self.transcript.report(f"line {number} has a part that is not known here: {quote(kind, 60)}")

    def _add_text(self, entry: dict[str, Any], text: str, reply: Any) -> None:
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
    """Return whether a line has a message with a part that is a call, or could be one."""
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    kinds = map(read_kind, content if isinstance(content, list) else ())
    return any(kind not in _NO_CALLS and not kind.endswith(_RESULT) for kind in kinds)


def _find_not_made(entry: dict[str, Any], call_id: Any, text: str) -> NotMade | None:
    """Find what was done in place of making a call, by the members of the line that holds its result."""
    kind = read_kind(entry, "toolDenialKind")
    described = entry.get("tool_result_meta")
    for meta in described if isinstance(described, list) else ():
        if isinstance(meta, dict) and meta.get("id") == call_id:
            kind = read_kind(meta, "non_execution_kind") or kind
    if kind == "user-rejected":
        return "asked" if text.startswith(_ASKED) else "refused"
    if kind == "permission-rule":
        return "refused"
    # A tool that fails may write the same words, so of a text alone nothing follows.
    return "unclear" if kind or text.startswith(_DENIALS) else None


def _find_agent(entry: dict[str, Any]) -> str | None:
    """Find out which sub-agent a line is of."""
    agent = read_name(entry.get("parent_tool_use_id"))
    if agent is None and entry.get("isSidechain") is True:
        agent = read_name(entry.get("agentId")) or "sub-agent"
    return agent
