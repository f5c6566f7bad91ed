"""Runs of agents in Inspect: one sample of a log, with its events.

Sources: inspect-ai 0.3.285 (``EvalSample``, its events and how they are condensed), and logs recorded with it. The
events are read rather than the messages: a solver may take messages out, and sub-agents have theirs apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from adjudge.agents.run import AgentRun
from adjudge.agents.source import MOST_BYTES, Document
from adjudge.agents.step import Role
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
from adjudge.errors import UsageError
from adjudge.formats.text import quote
from adjudge.result import Usage

_ATTACHMENT_PREFIX = "attachment://"

_ROLES: dict[str, Role] = {"user": "user", "system": "system"}

_IGNORED_PARTS = frozenset({"reasoning", "image", "audio", "video", "document"})
"""Parts of a message that are neither words nor calls."""

_SUB_AGENT = "sub-agent"

_TOOL_SPAN, _SCORER_SPANS = "tool", frozenset({"scorers", "scorer"})
"""Kinds of spans in which requests and calls are not the agent's own."""

_CUT_OFF_REASONS = frozenset({"max_tokens", "model_length", "content_filter"})


def is_inspect(entry: dict[str, Any]) -> bool:
    """Return whether an object is a sample of a log of Inspect, or a log that holds samples."""
    if isinstance(entry.get("samples"), list) and isinstance(entry.get("eval"), dict):
        return True
    return isinstance(entry.get("messages"), list) and "epoch" in entry and "target" in entry


def read_inspect(document: Document) -> AgentRun:
    """Read the run of an agent from one sample of Inspect, or from a log of one sample.

    Raises ``UsageError`` for more or less than one sample.
    """
    entry = document.objects[0]
    samples = entry["samples"] if isinstance(entry.get("samples"), list) else [entry]
    if len(document.objects) + len(document.unreadable) != 1 or len(samples) != 1 or not isinstance(samples[0], dict):
        raise UsageError(f"{document.name} does not hold one sample; hand in one, which is one run", argument="source")
    return _SampleReader(samples[0]).make_run()


class _SampleReader:
    """Reads the events of a sample into a run."""

    def __init__(self, sample: dict[str, Any]) -> None:
        """Find the events, the spans and the shared messages of a sample."""
        self.transcript = Transcript("inspect")
        self.sample = sample
        events = sample.get("events")
        self.events = [event for event in (events if isinstance(events, list) else []) if isinstance(event, dict)]
        self.spans = {read_string(event, "id"): event for event in self.events if event.get("event") == "span_begin"}
        self.usages: list[Usage | None] = []
        self._span_kinds: dict[str, frozenset[str]] = {}
        events_data = sample.get("events_data")
        messages = events_data.get("messages") if isinstance(events_data, dict) else None
        self._shared_messages: list[Any] = messages if isinstance(messages, list) else []
        self._unread_messages = {agent: _UnreadIndexes() for agent in (None, _SUB_AGENT)}
        """The shared messages, by index, that were not read yet: for the agent (``None``), and for its sub-agents."""
        self._seen_message_ids: set[str] = set()
        self._attached_characters = 0

    def make_run(self) -> AgentRun:
        """Make the run of the sample, from its events."""
        transcript, sample = self.transcript, self.sample
        self._read_events()
        self._check_messages()
        stopped = sample.get("error") is not None or sample.get("limit") is not None
        answer = transcript.get_last_text()
        if answer is None and not stopped:
            answer = self._find_submitted()
        if answer is None and not stopped:
            transcript.report("it ends before the agent's last word")
        seconds = read_number(sample.get("total_time"))
        return transcript.make_run(
            answer=answer,
            outcome="failed" if stopped or answer is None else "finished",
            usage=add_usages(self.usages),
            duration_ms=None if seconds is None else seconds * 1000,
            metadata={"session": read_name(sample.get("uuid"))},
        )

    def _read_events(self) -> None:
        """Read the requests to models and the calls of tools, in order. The events of scorers are left out."""
        event_ids: set[str] = set()
        has_ended = False
        for event in self.events:
            event_id = read_string(event, "uuid")
            if event_id and event_id in event_ids:
                self.transcript.report("an event stands there twice")
            event_ids.add(event_id)
            span_kinds = self._find_span_kinds(event.get("span_id"))
            if span_kinds & _SCORER_SPANS:  # requests of a grader are not the agent's
                continue
            has_ended = has_ended or self._ends_run(event)
            if has_ended and event.get("event") in ("model", "tool"):
                self.transcript.report("something comes after the end of the run")
            if event.get("pending"):
                self.transcript.report("an event was not at its end when the log was written")
            agent = _SUB_AGENT if _TOOL_SPAN in span_kinds else None
            if event.get("event") == "model":
                self._read_request(event, agent)
            elif event.get("event") == "tool":
                self._read_tool(event, agent)
        if not self.usages:
            self.transcript.report("no requests to a model were logged, so nobody knows which tools were called")

    def _ends_run(self, event: dict[str, Any]) -> bool:
        """Return whether an event ends the span ``solvers``, which holds all of the agent's work."""
        return event.get("event") == "span_end" and read_kind(self.spans.get(read_string(event, "id"), {})) == "solvers"

    def _find_span_kinds(self, name: Any) -> frozenset[str]:
        """Find the kinds of the spans around an event, as far as they matter: spans of tools and of scorers.

        ``name`` is the id of the innermost span. The kinds are kept for each span, so that each is looked at once, and
        not once for each span or event in it. If spans form a loop, each of these has the kinds of all of them.
        """
        own_kinds: dict[str, frozenset[str]] = {}  # of the spans on the way outward, the innermost first
        while isinstance(name, str) and name in self.spans and name not in self._span_kinds and name not in own_kinds:
            own_kinds[name] = frozenset({read_kind(self.spans[name])}) & {_TOOL_SPAN, *_SCORER_SPANS}
            name = self.spans[name].get("parent_id")
        end = name if isinstance(name, str) else ""
        kinds = self._span_kinds.get(end, frozenset())
        if end in own_kinds:  # a loop: each of its spans is inside all the others
            loop_start = list(own_kinds).index(end)
            kinds = frozenset().union(*list(own_kinds.values())[loop_start:])
        for span_id in reversed(own_kinds):
            kinds |= own_kinds[span_id]
            self._span_kinds[span_id] = kinds
        return kinds

    def _read_request(self, event: dict[str, Any], agent: str | None) -> None:
        """Read a request to a model: the new messages in its input, its reply, and the tokens that it used."""
        for message in self._list_input(event, agent):
            self._read_message(message, agent)
        output = event.get("output")
        output = output if isinstance(output, dict) else {}
        choices = output.get("choices")
        self.usages.append(
            read_usage(
                output.get("usage"), cached="input_tokens_cache_read", written="input_tokens_cache_write", added=True
            )
        )
        for choice in (choices if isinstance(choices, list) else [])[:1]:
            message = choice.get("message") if isinstance(choice, dict) else None
            if not isinstance(message, dict):
                self.transcript.report("the output of a request cannot be read")
                continue
            if read_string(choice, "stop_reason") in _CUT_OFF_REASONS:
                self.transcript.report("a message of the agent was cut off")
            self._seen_message_ids.add(read_string(message, "id"))
            self._read_reply(message, agent)

    def _list_input(self, event: dict[str, Any], agent: str | None) -> list[dict[str, Any]]:
        """List the messages that a model was sent in a request: inline ones, and ranges of those that all events share.

        Of the shared messages, only those that no earlier request had are listed, because a few bytes may name all of
        them again.
        """
        inline, ranges = event.get("input"), event.get("input_refs")
        messages: list[Any] = list(inline) if isinstance(inline, list) else []
        is_logged = bool(messages)
        for bounds in ranges if isinstance(ranges, list) else []:
            indexes = _read_range(bounds, len(self._shared_messages))
            if indexes is None:
                self.transcript.report("the messages of a request are not in the log")
            else:
                is_logged = is_logged or bool(indexes)
                messages += [self._shared_messages[index] for index in self._unread_messages[agent].take(indexes)]
        if not is_logged:
            self.transcript.report("the messages of a request are not in the log")
        return [message for message in messages if isinstance(message, dict)]

    def _read_message(self, message: dict[str, Any], agent: str | None) -> None:
        """Read a message that a model was sent, unless it was read before: each request repeats the earlier messages.

        ``agent`` is the sub-agent whose request it is; ``None`` is the agent itself.
        """
        role, message_id = read_string(message, "role"), read_string(message, "id")
        if message_id and message_id in self._seen_message_ids:
            return
        self._seen_message_ids.add(message_id)
        if role == "tool":
            if not self.transcript.has_result(message.get("tool_call_id")):
                self._add_result(message.get("tool_call_id"), message.get("content"), message)
        elif role == "assistant":
            if message.get("source") == "generate":
                self.transcript.report("a message of the agent is in no event")
            self._read_reply(message, agent)
        elif role not in _ROLES:
            self.transcript.report(f"a message is of a kind that is not known here: {quote(role, 60)}")
        elif agent is None:
            self.transcript.add_text(_ROLES[role], read_text(self._restore_texts(message.get("content"))))

    def _read_reply(self, message: dict[str, Any], agent: str | None) -> None:
        """Read a reply of the agent or of a sub-agent: its parts, and then the calls that are listed beside them."""
        reply = read_string(message, "id") or None
        content = self._restore_texts(message.get("content"))
        for part in content if isinstance(content, list) else [{"type": "text", "text": content}]:
            self._read_part(part if isinstance(part, dict) else {}, agent, reply)
        calls = message.get("tool_calls")
        for call in calls if isinstance(calls, list) else []:
            members = call if isinstance(call, dict) else {}
            arguments = self._restore_texts(members.get("arguments"))
            self.transcript.add_call(members.get("function"), arguments, members.get("id"), agent=agent, reply=reply)

    def _read_part(self, part: dict[str, Any], agent: str | None, reply: str | None) -> None:
        """Read a part of a reply. Words of a sub-agent are left out; a call of the provider has its result in it."""
        kind = read_kind(part)
        if kind == "text":
            if agent is None:
                self.transcript.add_text("assistant", read_text(part.get("text")), reply=reply)
        elif kind == "tool_use":  # a call that the provider itself has made
            arguments = read_arguments(part.get("arguments"))
            self.transcript.add_call(part.get("name"), arguments, part.get("id"), agent=agent, reply=reply)
            failed = part.get("error") is not None
            self.transcript.add_result(
                part.get("id"), read_text(part.get("error" if failed else "result")), failed=failed
            )
        elif kind not in _IGNORED_PARTS:
            self.transcript.report(f"a message has a part that is not known here: {quote(kind, 60)}")

    def _read_tool(self, event: dict[str, Any], agent: str | None) -> None:
        """Read the event of a tool that was executed. A call that no message has is added, and that is reported."""
        call_id = event.get("id")
        if not self.transcript.has_call(call_id):
            self.transcript.report("a tool was executed that no message of the agent calls")
            self.transcript.add_call(
                event.get("function"), self._restore_texts(event.get("arguments")), call_id, agent=agent
            )
        if not event.get("pending"):
            self._add_result(call_id, event.get("result"), event)

    def _add_result(self, call_id: Any, content: Any, holder: dict[str, Any]) -> None:
        """Add the result of a call.

        ``holder`` is the event or message that holds it, and says whether the call failed and how long it took.
        """
        error, seconds = holder.get("error"), read_number(holder.get("working_time"))
        failed = error is not None or bool(holder.get("failed"))
        returned = error.get("message") if isinstance(error, dict) else content
        duration_ms = None if seconds is None else seconds * 1000
        self.transcript.add_result(
            call_id, read_text(self._restore_texts(returned)), failed=failed, duration_ms=duration_ms
        )
        if duration_ms is not None and isinstance(call_id, str) and self.transcript.has_call(call_id):
            self.transcript.note_duration(call_id, duration_ms)

    def _check_messages(self) -> None:
        """Report each message of the agent in the conversation that no event has.

        Such a message was forged, or its events were taken out of the log.
        """
        messages = self.sample.get("messages")
        for message in messages if isinstance(messages, list) else []:
            if read_string(message, "role") != "assistant":
                continue
            calls = message.get("tool_calls") or []
            call_list = calls if isinstance(calls, list) else [calls]
            call_ids = [call.get("id") if isinstance(call, dict) else None for call in call_list]
            if read_string(message, "id") not in self._seen_message_ids or not all(
                map(self.transcript.has_call, call_ids)
            ):
                self.transcript.report("a message of the agent is in no event")

    def _find_submitted(self) -> str | None:
        """Find the answer that an agent gave as its last call, as those of ``react`` do; ``None`` if it gave none.

        The output of the sample has to end with the result of that call: else the words before a call would count as
        the answer of a run that was cut off after it.
        """
        result = self.transcript.get_last_result()
        words = read_string(self.sample.get("output"), "completion").rstrip("\r\n")
        return words if result and words.endswith(result) else None

    def _restore_texts(self, value: Any) -> Any:
        """Put long texts, which a log keeps apart as attachments, back into a value.

        Raises ``UsageError`` if they come to too much together, since a few bytes may name one attachment many times.
        """
        if isinstance(value, list):
            return [self._restore_texts(member) for member in value]
        if isinstance(value, dict):
            return {name: self._restore_texts(member) for name, member in value.items()}
        if not isinstance(value, str) or not value.startswith(_ATTACHMENT_PREFIX):
            return value
        attachments = self.sample.get("attachments")
        text = attachments.get(value.removeprefix(_ATTACHMENT_PREFIX)) if isinstance(attachments, dict) else None
        if not isinstance(text, str):
            self.transcript.report("a text that the log keeps apart is missing")
            return value
        self._attached_characters += len(text)
        if self._attached_characters > MOST_BYTES:
            raise UsageError(f"the run comes to more than {MOST_BYTES:,} characters", argument="source")
        return text


class _UnreadIndexes:
    """The indexes of a list that were not taken yet."""

    def __init__(self) -> None:
        self._following: dict[int, int] = {}
        """For each taken index a later one: all between the two are taken. By it, ``_find_first_free`` skips them."""

    def take(self, indexes: range) -> Iterator[int]:
        """Yield those of some indexes that were not taken yet, in order, and take them."""
        index = self._find_first_free(indexes.start)
        while index < indexes.stop:
            yield index
            self._following[index] = index + 1
            index = self._find_first_free(index)

    def _find_first_free(self, index: int) -> int:
        """Find the first index from this one on that was not taken, and remember it for all taken ones before it."""
        passed: list[int] = []
        while index in self._following:
            passed.append(index)
            index = self._following[index]
        self._following.update(dict.fromkeys(passed, index))
        return index


def _read_range(bounds: Any, most: int) -> range | None:
    """Read a range of indexes, ``[first, end]``, of a list of ``most`` members; ``None`` for any other value."""
    if not isinstance(bounds, list) or len(bounds) != 2 or not all(type(bound) is int for bound in bounds):
        return None
    first, end = bounds
    return range(first, end) if 0 <= first <= end <= most else None
