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
    read_text,
    read_usage,
)
from adjudge.errors import UsageError
from adjudge.formats.text import quote
from adjudge.result import Usage

_ATTACHED = "attachment://"

_ROLES: dict[str, Role] = {"user": "user", "system": "system"}

_IGNORED = frozenset({"reasoning", "image", "audio", "video", "document"})
"""Parts of a message that are neither words nor calls."""

_SUB_AGENT = "sub-agent"

_TOOL, _SCORERS = "tool", frozenset({"scorers", "scorer"})
"""Kinds of spans in which requests and calls are not the agent's own."""

_CUT_OFF = frozenset({"max_tokens", "model_length", "content_filter"})


def is_inspect(entry: dict[str, Any]) -> bool:
    """Return whether an object is a sample of a log of Inspect, or a log that holds samples."""
    if isinstance(entry.get("samples"), list) and isinstance(entry.get("eval"), dict):
        return True
    return isinstance(entry.get("messages"), list) and "epoch" in entry and "target" in entry


def read_inspect(document: Document) -> AgentRun:
    """Read a run from one sample, or from a log of one sample. Raises ``UsageError``."""
    entry = document.objects[0]
    samples = entry["samples"] if isinstance(entry.get("samples"), list) else [entry]
    if len(document.objects) + len(document.unreadable) != 1 or len(samples) != 1 or not isinstance(samples[0], dict):
        raise UsageError(f"{document.name} does not hold one sample; hand in one, which is one run", argument="source")
    return _Reader(samples[0]).make_run()


class _Reader:
    def __init__(self, sample: dict[str, Any]) -> None:
        self.transcript = Transcript("inspect")
        self.sample = sample
        events = sample.get("events")
        self.events = [event for event in (events if isinstance(events, list) else []) if isinstance(event, dict)]
        self.spans = {read_kind(event, "id"): event for event in self.events if event.get("event") == "span_begin"}
        self.usages: list[Usage | None] = []
        self._span_kinds: dict[str, frozenset[str]] = {}
        events_data = sample.get("events_data")
        messages = events_data.get("messages") if isinstance(events_data, dict) else None
        self._shared: list[Any] = messages if isinstance(messages, list) else []
        self._unread = {agent: _Unread() for agent in (None, _SUB_AGENT)}
        """The messages that all events share and that were not read yet, of the agent and of sub-agents."""
        self._seen: set[str] = set()
        self._attached = 0

    def make_run(self) -> AgentRun:
        """Make the run of a sample, from its events."""
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
        """Read the agent's own events of the log: requests to models, and calls. Those of scorers are left out."""
        names: set[str] = set()
        has_ended = False
        for event in self.events:
            name = read_kind(event, "uuid")
            if name and name in names:
                self.transcript.report("an event stands there twice")
            names.add(name)
            spans = self._find_span_kinds(event.get("span_id"))
            if spans & _SCORERS:  # a grader's requests are not the agent's
                continue
            has_ended = has_ended or self._ends_run(event)
            if has_ended and event.get("event") in ("model", "tool"):
                self.transcript.report("something comes after the end of the run")
            if event.get("pending"):
                self.transcript.report("an event was not at its end when the log was written")
            agent = _SUB_AGENT if _TOOL in spans else None
            if event.get("event") == "model":
                self._read_request(event, agent)
            elif event.get("event") == "tool":
                self._read_tool(event, agent)
        if not self.usages:
            self.transcript.report("no requests to a model were logged, so nobody knows which tools were called")

    def _ends_run(self, event: dict[str, Any]) -> bool:
        """Return whether an event is the end of the span that holds all solvers, so that the agent is done."""
        return event.get("event") == "span_end" and read_kind(self.spans.get(read_kind(event, "id"), {})) == "solvers"

    def _find_span_kinds(self, name: Any) -> frozenset[str]:
        """Find which of the kinds that matter the spans have that something is in; a loop of spans ends where it began.

        Each span is looked at once: spans that hold one another in a long row would take the square of their number.
        """
        path: dict[str, frozenset[str]] = {}
        while isinstance(name, str) and name in self.spans and name not in self._span_kinds and name not in path:
            path[name] = frozenset({read_kind(self.spans[name])}) & {_TOOL, *_SCORERS}
            name = self.spans[name].get("parent_id")
        end = name if isinstance(name, str) else ""
        kinds = self._span_kinds.get(end, frozenset())
        if end in path:  # of a loop, each is in all the others
            kinds = frozenset().union(*list(path.values())[list(path).index(end) :])
        for inner in reversed(path):
            kinds |= path[inner]
            self._span_kinds[inner] = kinds
        return kinds

    def _read_request(self, event: dict[str, Any], agent: str | None) -> None:
        """Read a request to a model: the messages that are new in its input, its reply, and its usage."""
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
            if read_kind(choice, "stop_reason") in _CUT_OFF:
                self.transcript.report("a message of the agent was cut off")
            self._seen.add(read_kind(message, "id"))
            self._read_reply(message, agent)

    def _list_input(self, event: dict[str, Any], agent: str | None) -> list[dict[str, Any]]:
        """List what a model was sent: inline, or as ranges of the messages that all events share.

        Of the shared ones, those that no request before it had. A few bytes may name all of them again.
        """
        inline, ranges = event.get("input"), event.get("input_refs")
        messages: list[Any] = list(inline) if isinstance(inline, list) else []
        is_logged = bool(messages)
        for span in ranges if isinstance(ranges, list) else []:
            part = _read_range(span, len(self._shared))
            if part is None:
                self.transcript.report("the messages of a request are not in the log")
            else:
                is_logged = is_logged or bool(part)
                messages += [self._shared[place] for place in self._unread[agent].take(part)]
        if not is_logged:
            self.transcript.report("the messages of a request are not in the log")
        return [message for message in messages if isinstance(message, dict)]

    def _read_message(self, message: dict[str, Any], agent: str | None) -> None:
        """Read a message that the model was sent; what was read before stands in each later request again."""
        role, name = read_kind(message, "role"), read_kind(message, "id")
        if name and name in self._seen:
            return
        self._seen.add(name)
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
        """Read a message of the agent or a sub-agent: its parts, and then the calls that it lists beside them."""
        reply = read_kind(message, "id") or None
        content = self._restore_texts(message.get("content"))
        for part in content if isinstance(content, list) else [{"type": "text", "text": content}]:
            self._read_part(part if isinstance(part, dict) else {}, agent, reply)
        calls = message.get("tool_calls")
        for call in calls if isinstance(calls, list) else []:
            made = call if isinstance(call, dict) else {}
            arguments = self._restore_texts(made.get("arguments"))
            self.transcript.add_call(made.get("function"), arguments, made.get("id"), agent=agent, reply=reply)

    def _read_part(self, part: dict[str, Any], agent: str | None, reply: str | None) -> None:
        """Read a part of a reply; the words of a sub-agent are left out, and a provider's call brings its result."""
        kind = read_kind(part)
        if kind == "text":
            if agent is None:
                self.transcript.add_text("assistant", read_text(part.get("text")), reply=reply)
        elif kind == "tool_use":  # a call that the provider made
            arguments = read_arguments(part.get("arguments"))
            self.transcript.add_call(part.get("name"), arguments, part.get("id"), agent=agent, reply=reply)
            failed = part.get("error") is not None
            self.transcript.add_result(
                part.get("id"), read_text(part.get("error" if failed else "result")), failed=failed
            )
        elif kind not in _IGNORED:
            self.transcript.report(f"a message has a part that is not known here: {quote(kind, 60)}")

    def _read_tool(self, event: dict[str, Any], agent: str | None) -> None:
        """Read the execution of a tool; a call that no message has is added, and that is reported."""
        name = event.get("id")
        if not self.transcript.has_call(name):
            self.transcript.report("a tool was executed that no message of the agent calls")
            self.transcript.add_call(
                event.get("function"), self._restore_texts(event.get("arguments")), name, agent=agent
            )
        if not event.get("pending"):
            self._add_result(name, event.get("result"), event)

    def _add_result(self, name: Any, content: Any, holder: dict[str, Any]) -> None:
        """Add a result; ``holder`` is the event or message that says whether the call failed and how long it took."""
        error, seconds = holder.get("error"), read_number(holder.get("working_time"))
        failed = error is not None or bool(holder.get("failed"))
        shown = error.get("message") if isinstance(error, dict) else content
        duration = None if seconds is None else seconds * 1000
        self.transcript.add_result(name, read_text(self._restore_texts(shown)), failed=failed, duration_ms=duration)
        if duration is not None and isinstance(name, str) and self.transcript.has_call(name):
            self.transcript.note_duration(name, duration)

    def _check_messages(self) -> None:
        """Compare the conversation with the events: what only it has was forged, or its events were taken out."""
        messages = self.sample.get("messages")
        for message in messages if isinstance(messages, list) else []:
            if read_kind(message, "role") != "assistant":
                continue
            calls = message.get("tool_calls") or []
            listed = calls if isinstance(calls, list) else [calls]
            named = [call.get("id") if isinstance(call, dict) else None for call in listed]
            if read_kind(message, "id") not in self._seen or not all(map(self.transcript.has_call, named)):
                self.transcript.report("a message of the agent is in no event")

    def _find_submitted(self) -> str | None:
        """Find the answer that an agent gave by its last call, as those of ``react`` do: the output ends with it.

        Without the comparison, words before a call would count as the answer of a run that was cut off after it.
        """
        result = self.transcript.get_last_result()
        words = read_kind(self.sample.get("output"), "completion").rstrip("\r\n")
        return words if result and words.endswith(result) else None

    def _restore_texts(self, value: Any) -> Any:
        """Put the long texts of a value back in, which a log keeps apart. A few bytes may name one many times.

        Raises ``UsageError``.
        """
        if isinstance(value, list):
            return [self._restore_texts(member) for member in value]
        if isinstance(value, dict):
            return {name: self._restore_texts(member) for name, member in value.items()}
        if not isinstance(value, str) or not value.startswith(_ATTACHED):
            return value
        attachments = self.sample.get("attachments")
        text = attachments.get(value.removeprefix(_ATTACHED)) if isinstance(attachments, dict) else None
        if not isinstance(text, str):
            self.transcript.report("a text that the log keeps apart is missing")
            return value
        self._attached += len(text)
        if self._attached > MOST_BYTES:
            raise UsageError(f"the run comes to more than {MOST_BYTES:,} characters", argument="source")
        return text


class _Unread:
    """The places of a list that were not taken yet."""

    def __init__(self) -> None:
        self._following: dict[int, int] = {}
        """For each place that was taken, one after it up to which all were."""

    def take(self, places: range) -> Iterator[int]:
        """Take those of some places that were not taken yet, in order."""
        place = self._find(places.start)
        while place < places.stop:
            yield place
            self._following[place] = place + 1
            place = self._find(place)

    def _find(self, place: int) -> int:
        """Find the first place from this one on that was not taken, and shorten the way to it."""
        passed: list[int] = []
        while place in self._following:
            passed.append(place)
            place = self._following[place]
        self._following.update(dict.fromkeys(passed, place))
        return place


def _read_range(span: Any, most: int) -> range | None:
    """Read a range of places in a list of so many; ``None`` for anything else."""
    if not isinstance(span, list) or len(span) != 2 or not all(type(bound) is int for bound in span):
        return None
    first, end = span
    return range(first, end) if 0 <= first <= end <= most else None
