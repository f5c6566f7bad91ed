"""``GateMiddleware``: a gate for the requests to an ASGI application, or for its responses.

It works with any ASGI framework. A body is held until it is complete, up to a limit, and passed on only after the gate
has decided; a body that cannot be held or read is blocked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal, get_args

from adjudge.errors import AdjudgeError, UsageError
from adjudge.formats.arguments import check_choice, check_functions, check_whole_number
from adjudge.formats.json import read_json
from adjudge.formats.streams import find_records, read_escapes, read_events, read_lines, read_markup, read_sequence
from adjudge.guards.decision import Decision
from adjudge.guards.gate import Gate
from adjudge.guards.http_request import HttpRequest
from adjudge.guards.repeated_request import (
    Repetition,
    RepetitionStatus,
    can_repeat,
    check_request,
    find_repeated,
    repeat_request,
)
from adjudge.hooks import call_safely

Headers = Iterable[tuple[bytes, bytes]]


_CHARSETS = {"utf-8", "utf8", "us-ascii", "ascii"}

_PLAIN_CODINGS = {b"content-encoding": {"", "identity"}, b"transfer-encoding": {"", "identity", "chunked"}}


_PART_HEADERS = {b"content-range", b"upload-offset", b"upload-complete", b"upload-incomplete"}
"""Headers of a body that is only a part: ``Content-Range``, and those of uploads that are resumed."""

_ASKS_FOR_PARTS = {b"range", b"if-range", b"request-range", b"a-im"}


_JSON_LINES_TYPES = {
    f"application/{prefix}{name}" for prefix in ("", "x-") for name in ("ndjson", "jsonl", "jsonlines", "ldjson")
} | {"application/stream+json", "application/x-json-stream", "text/x-ndjson", "text/ndjson", "text/jsonl"}

_MARKUP_TYPES = {"text/html", "text/xml", "text/markdown", "text/x-markdown"}

_NOT_PLAIN_TYPES = {
    f"text/{name}"
    for name in (
        *("calendar", "css", "directory", "enriched", "parameters", "richtext", "rtf", "vcard", "x-vcard"),
        *("vnd.yaml", "x-yaml", "yaml"),
    )
}
"""Text types whose syntax folds, escapes or splits the text."""

_PROGRAM = re.compile(r"(?:java|ecma|j|live|type|vb)script")
"""Types of programs: what a program outputs shows only when it runs. JSONP is one."""

_ISO_2022_ESCAPES = re.compile(r"\x1b[($%\-./]")


class UnreadableBodyError(AdjudgeError):
    """A body that cannot be judged; ``status`` is the HTTP status of the answer to the client."""

    def __init__(self, message: str, *, status: int = 415) -> None:
        super().__init__(message)
        self.status = status


def check_whole_request(headers: Headers) -> None:
    """Raise ``UnreadableBodyError`` for a body that is a part of another, because nobody would judge the whole."""
    _refuse_parts(headers, _PART_HEADERS)


def check_whole_response(status: object, headers: Headers) -> None:
    """Raise ``UnreadableBodyError`` for a partial response: the client could choose what the gate sees at once."""
    # 226 sends only the difference to what the client has already; a status below 200 is no final response.
    if not isinstance(status, int) or status < 200 or status in {206, 226}:
        raise UnreadableBodyError(f"a response with status {status} is not the whole")
    _refuse_parts(headers, {b"content-range"})


def _refuse_parts(headers: Headers, part_headers: set[bytes]) -> None:
    """Raise ``UnreadableBodyError`` if one of the headers in ``part_headers`` is present."""
    partial = sorted(name.decode("latin-1") for name in part_headers & {name.lower().strip() for name, _ in headers})
    if partial:
        raise UnreadableBodyError(f"the body is a part of something: it has {partial[0]}", status=400)


def drop_ranges(headers: Headers) -> list[tuple[bytes, bytes]]:
    """Drop the headers of a request that ask for a part; a server may always answer with the whole."""
    return [(name, value) for name, value in headers if name.lower().strip() not in _ASKS_FOR_PARTS]


def read_body(raw: bytes, headers: Headers, *, largest: int) -> object:
    """Read the content of a JSON or text body: the JSON value, the text, or what its records say.

    Raises ``UnreadableBodyError``. Text that is JSON is read as JSON, because many frameworks parse a body whatever its
    type is, and an escaped character must not hide from a rule what the application will see.
    """
    if len(raw) > largest:
        raise UnreadableBodyError(f"the body is larger than {largest:,} bytes", status=413)
    kind, charset = _read_content_type(headers)
    read = _choose_reader(kind)
    if charset not in _CHARSETS:
        raise UnreadableBodyError("the body is in a charset other than UTF-8")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnreadableBodyError(f"the body is not UTF-8 (byte {error.start})") from None
    if _ISO_2022_ESCAPES.search(text):
        raise UnreadableBodyError("the body holds escapes of ISO-2022, which some readers take for a charset")
    try:
        return read(text)
    except (ValueError, RecursionError):
        raise UnreadableBodyError(_UNREADABLE_MESSAGES.get(read, _TWO_READINGS), status=400) from None


def _choose_reader(kind: str) -> Callable[[str], object]:
    """Choose the function that reads bodies of a media type.

    Raises ``UnreadableBodyError`` for a type that is neither JSON nor text, or whose syntax can split texts.
    """
    if kind in _JSON_LINES_TYPES:
        return read_lines
    if kind == "application/json-seq" or kind.endswith("+json-seq"):
        return read_sequence
    if kind == "application/json" or kind.endswith("+json"):
        return read_json
    if kind == "text/event-stream":
        return read_events
    if not kind.startswith("text/"):
        raise UnreadableBodyError("the body is neither JSON nor text")
    if kind in _NOT_PLAIN_TYPES or _PROGRAM.search(kind):
        raise UnreadableBodyError(f"{kind} can say a thing in pieces that a gate does not put together")
    return _read_markup if kind in _MARKUP_TYPES else _read_text


def _read_text(text: str) -> object:
    """Read a text: JSON as its value, and other text as it is or as a mapping of its readings.

    The mapping has ``text`` or what the records of a stream say, and under ``read`` the text with its escapes read.
    Raises ``ValueError`` where readers would differ.
    """
    if _is_json(text):
        return read_json(text.lstrip("\ufeff"))
    records = find_records(text)
    unescaped = read_escapes(text)
    if records is None and unescaped == text:
        return text
    readings = {"text": text} if records is None else records
    # Both the written and the unescaped text, because a rule that refuses has to look at both.
    return readings if unescaped == text else readings | {"read": unescaped}


def _read_markup(text: str) -> object:
    """Read HTML, XML or Markdown as text, and add under ``shown`` the visible text if it differs.

    Raises ``ValueError`` for text that declares entities (``<!ENTITY``), and where ``_read_text`` raises it.
    """
    content, renderings = _read_text(text), read_markup(text)
    if renderings == [text]:
        return content
    if "<!entity" in text.lower():
        raise ValueError("it defines entities of its own")
    # A mapping of readings that ``_read_text`` made is extended. A JSON object of the body is not, because it may have
    # a member ``shown`` itself.
    is_readings = isinstance(content, dict) and not _is_json(text)
    readings = content if is_readings and "text" in content else {"text": content}
    return {**readings, "shown": renderings[0] if len(renderings) == 1 else renderings}


def _read_content_type(headers: Headers) -> tuple[str, str]:
    """Read the media type and the charset. Raises ``UnreadableBodyError`` if they are ambiguous or it is compressed."""
    fields = [(name.lower().strip(), value.decode("latin-1").strip().lower()) for name, value in headers]
    compressed = [
        value
        for name, value in fields
        if name in {b"content-encoding", b"transfer-encoding"} and value not in _PLAIN_CODINGS[name]
    ]
    if compressed:
        raise UnreadableBodyError("the body is compressed; put the gate where it is not")
    kinds = [value for name, value in fields if name == b"content-type"]
    if len(kinds) != 1 or "," in kinds[0]:  # some servers join two headers by a comma
        raise UnreadableBodyError("the body has no content type" if not kinds else "the body has two content types")
    kind, *parameters = [part.strip() for part in kinds[0].split(";")]
    charsets = [part.partition("=")[2].strip("\"' ") for part in parameters if part.startswith("charset")]
    if len(charsets) > 1:
        return kind, "two"  # no charset has this name, so the caller refuses the body
    return kind, charsets[0] if charsets else "utf-8"


def _is_json(text: str) -> bool:
    """Return whether a text is a JSON object, list or string, also one that nests too deeply to be parsed here."""
    # More blanks than those of JSON are removed, because a framework may remove them before it parses. If the strict
    # reader then does not accept the text, it is blocked.
    stripped = text.replace("\ufeff", " ").strip()
    if stripped[:1] not in {"{", "[", '"'}:
        return False
    try:
        json.loads(stripped)
    except RecursionError:
        return True  # the strict reader says that it is nested too deeply
    except ValueError:
        return False
    return True


_TWO_READINGS = "the body is not one JSON value that every reader reads alike"

_UNREADABLE_MESSAGES: dict[Callable[[str], object], str] = {
    read_lines: "the body is not lines of one JSON value each, read alike by every reader",
    read_sequence: "the body is not a sequence of JSON values that every reader reads alike",
    read_events: "the body is not an event stream that every reader reads alike",
}


__all__ = ["App", "GateMiddleware", "Message", "Receive", "Scope", "Send", "Side", "identify_caller"]


Scope = MutableMapping[str, Any]

Message = MutableMapping[str, Any]

Receive = Callable[[], Awaitable[Message]]

Send = Callable[[Message], Awaitable[None]]

App = Callable[[Scope, Receive, Send], Awaitable[None]]

Side = Literal["request", "response"]


def identify_caller(scope: Scope) -> str | None:
    """Identify the caller by a digest of ``Authorization`` and ``Cookie``, as far as sent; ``None`` without both.

    A client that renews its token or one of its cookies becomes another caller. If your application knows its users,
    give ``identify`` a function that returns a stable name.

    Args:
        scope: The connection scope of the request, as ASGI defines it.
    """
    # Both headers count. Behind one shared password (Basic authentication) only the cookie distinguishes users, and one
    # of them could otherwise use another's approval with the same Idempotency-Key.
    headers: Headers = scope.get("headers", ())
    values_by_header = {name.decode(): _list_header_values(headers, name) for name in (b"authorization", b"cookie")}
    # Empty headers do not count, because all clients that send one would be the same caller.
    sent = {name: values for name, values in values_by_header.items() if any(values)}
    if not sent:
        return None
    hex_values = [[value.hex() for value in values] for values in sent.values()]
    serialised = json.dumps(hex_values if len(hex_values) > 1 else hex_values[0])
    return f"{'+'.join(sent)}:{sha256(serialised.encode()).hexdigest()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A response in place of the application's."""

    status: int
    members: Mapping[str, str]
    headers: tuple[tuple[bytes, bytes], ...] = ()

    async def send(self, send: Send) -> None:
        """Send it as JSON."""
        body = json.dumps(self.members).encode()
        fixed_headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"cache-control", b"no-store"),
        ]
        await send({"type": "http.response.start", "status": self.status, "headers": [*fixed_headers, *self.headers]})
        await send({"type": "http.response.body", "body": body, "more_body": False})


_UNKNOWN = Answer(
    status=404,
    members={
        "error": "unknown_approval",
        "detail": "this id belongs to no request of yours; repeat exactly the request that was held back, with the "
        "same credentials, or send it without the id to have it checked again",
    },
)
"""The same response in every case, so that a client cannot find out which ids exist."""

_BAD_KEY = Answer(
    status=400, members={"error": "bad_idempotency_key", "detail": "give one Idempotency-Key of 1 to 255 characters"}
)

_REUSED_KEY = Answer(
    status=422,
    members={"error": "reused_idempotency_key", "detail": "this Idempotency-Key belongs to another request of yours"},
)

_STATUSES: Mapping[RepetitionStatus, int] = {"denied": 403, "expired": 403, "changed": 403, "blocked": 403, "used": 409}

_ID = re.compile(rb"[0-9a-f-]{16,200}")

_LONGEST_KEY = 255

_SECONDS = 86_400.0
"""One day."""


@dataclass(frozen=True, slots=True, eq=False)
class GateMiddleware:
    """An ASGI application whose JSON and text bodies, event streams and JSON lines go through a gate.

    What is blocked is answered with 403 and ``{"error": "blocked", "decision": id}``; a request that cannot be read
    with 400, 413 or 415. A request that waits for a person is answered with 202 and the id of its approval if the
    gate's ``approvals`` are ``Approvals`` and ``wait`` is false. The client sends it again with
    ``Adjudge-Approval: ID``; once approved, it reaches the application, once. A response that waits is answered with
    403, because it would take a second run of the application to send it. An empty body holds nothing to judge and
    passes; addresses and headers are not judged.
    A part of a body is blocked, and a client cannot ask for one: ``on="response"`` takes ``Range`` out of the request.
    A websocket cannot be held, so it is refused. Raises ``UsageError`` for an option that cannot be.
    """

    app: App
    gate: Gate
    on: Side = field(default="request", kw_only=True)
    """The bodies that go through the gate; for both, put one middleware around another."""
    largest: int = field(default=1_000_000, kw_only=True)
    """The largest body that is held, in bytes; a larger one is blocked."""
    explain: bool = field(default=False, kw_only=True)
    """Tell the client why. Off: whoever wants to pass could learn from it, and a reason may quote the content."""
    when: Callable[[Scope], bool] | None = field(default=None, kw_only=True)
    """The choice of the scopes that go through the gate, by path for instance; all without it, and whenever it is not
    plainly false."""
    identify: Callable[[Scope], str | Awaitable[str | None] | None] = field(default=identify_caller, kw_only=True)
    """From a scope to the caller, sync or async; only this caller can use the approval. ``None``: unknown."""
    retry_after: int = field(default=5, kw_only=True)
    """Seconds after which a client whose request waits should try again (``Retry-After``)."""
    resume_within: float | None = field(default=_SECONDS, kw_only=True)
    """Seconds after the approval in which the request can be resumed; ``None`` is no limit."""

    def __post_init__(self) -> None:
        check_choice("on", self.on, get_args(Side))
        check_whole_number("largest", self.largest, least=1, of=" of bytes")
        check_whole_number("retry_after", self.retry_after, least=1, of=" of seconds")
        within = self.resume_within
        is_number = isinstance(within, int | float) and not isinstance(within, bool)
        if within is not None and not (is_number and within > 0):
            raise UsageError(
                f"resume_within must be seconds above 0, or None for no limit; got {within!r}", argument="resume_within"
            )
        check_functions("middleware", identify=self.identify)
        if not isinstance(self.gate, Gate):
            raise UsageError(f"gate must be a Gate, got {type(self.gate).__name__}", argument="gate")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        kind = scope["type"]
        if kind == "lifespan" or (self.when is not None and self.when(scope) is False):
            await self.app(scope, receive, send)
        elif kind == "http" and self.on == "request":
            await self._guard_request(scope, receive, send)
        elif kind == "http":
            await self._guard_response(scope, receive, send)
        else:
            await self._guard_other(scope, receive, send)

    async def _guard_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Decide on a request; pass it on with the body that was read, or answer in place of the application."""
        received = await _receive_body(receive, self.largest)
        if received is None:  # the client went away
            return
        raw, has_more = received
        answer = await _Admission(self, scope, raw).decide()
        if answer is not None:
            await answer.send(send)
            return
        first: list[Message] = [{"type": "http.request", "body": raw, "more_body": has_more}]

        async def replay() -> Message:
            return first.pop() if first else await receive()

        if _list_header_values(scope["headers"], _APPROVAL):
            # The id has been used, so it is removed. Another gate behind this one would not know it and answer 404.
            headers = [header for header in scope["headers"] if header[0].lower().strip() != _APPROVAL]
            scope = {**scope, "headers": headers}
        await self.app(scope, replay, send)

    async def _guard_response(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application with a ``send`` that holds its response until the gate has decided.

        An error that the application raises after it was told to stop is dropped.
        """
        response = _HeldResponse(self, scope, send)
        # Extensions are hidden from the application, because they could send a body past the gate (a file by its path).
        # Range headers are hidden too: if a client fetched a body in ranges, no single answer would have the whole text
        # that a rule searches for.
        inner = {**scope, "extensions": {}, "headers": drop_ranges(scope.get("headers", ()))}
        try:
            await self.app(inner, receive, response.send)
        except Exception:
            if not response.stopped:
                raise

    async def _guard_other(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a connection that cannot be held, such as a websocket; a gate that observes lets it through."""
        decision = await self.gate.refuse(
            f"a {scope['type']} connection cannot be held", metadata=_describe_scope(scope, self.on)
        )
        if decision.allowed:
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})

    async def decide(self, raw: bytes, headers: Headers, scope: Scope) -> tuple[Decision, int]:
        """Decide about a body; also return the status of the answer where it is not allowed."""
        metadata = _describe_scope(scope, self.on)
        try:
            if self.on == "request":
                check_whole_request(headers)
            content = read_body(raw, headers, largest=self.largest)
        except UnreadableBodyError as error:
            return await self.gate.refuse(str(error), metadata=metadata), error.status
        return await self.gate.check(content, metadata=metadata), 403

    def make_answer(self, decision: Decision, status: int = 403) -> Answer:
        """Make the response to a request or response that is not allowed."""
        members = {"error": "pending" if decision.pending else "blocked", "decision": decision.id}
        return Answer(status=status, members=self._add_reason(members, decision))

    def make_waiting_answer(self, decision: Decision) -> Answer:
        """Make the response to a request that waits for a person, with the id for sending it again."""
        approval_id = decision.approval_id or ""
        members = {"status": "pending", "approval": approval_id, "decision": decision.id}
        headers = ((_APPROVAL, approval_id.encode()), (b"retry-after", str(self.retry_after).encode()))
        return Answer(status=202, members=self._add_reason(members, decision), headers=headers)

    def _add_reason(self, members: dict[str, str], decision: Decision) -> dict[str, str]:
        return members | {"reason": decision.explain()} if self.explain else members


_APPROVAL = b"adjudge-approval"


class _Admission:
    """The decision on one request: it is checked as a new one, or repeats one that was held back."""

    def __init__(self, middleware: GateMiddleware, scope: Scope, raw: bytes) -> None:
        self._middleware, self._scope, self._raw = middleware, scope, raw
        self._metadata = _describe_scope(scope, "request")

    async def decide(self) -> Answer | None:
        """Return ``None`` to let the request through, otherwise the response."""
        ids = _list_header_values(self._scope["headers"], _APPROVAL)
        # A gate that observes lets everything through and holds nothing back, so it ignores ids.
        if ids and self._middleware.gate.mode != "observe":
            is_valid = can_repeat(self._middleware.gate) and len(ids) == 1 and _ID.fullmatch(ids[0])
            return await self._read_request(ids[0].decode()) if is_valid and self._raw else _UNKNOWN
        return await self._read_request(None) if self._raw else None

    async def _read_request(self, approval_id: str | None) -> Answer | None:
        """Read a request's body and idempotency key, and check or repeat the request; ``None`` lets it through."""
        middleware = self._middleware
        try:
            check_whole_request(self._scope["headers"])
            content = read_body(self._raw, self._scope["headers"], largest=middleware.largest)
        except UnreadableBodyError as error:
            return await self._refuse(str(error), error.status)
        if not can_repeat(middleware.gate):
            return self._answer(await middleware.gate.check(content, metadata=self._metadata))
        keys = _list_header_values(self._scope["headers"], b"idempotency-key")
        if len(keys) > 1 or any(not 0 < len(key) <= _LONGEST_KEY for key in keys):
            return _BAD_KEY
        caller, error = await call_safely(middleware.identify, self._scope)
        if error is not None or not (caller is None or isinstance(caller, str)):
            return await self._refuse("the caller could not be identified", 403)
        # An empty name counts as no caller, because all anonymous clients would share their keys and approvals.
        request = _describe_request(self._scope, self._raw, caller or None, keys[0] if keys else None)
        if approval_id is None:
            return await self._check(content, request)
        return await self._repeat(approval_id, content, request)

    async def _check(self, content: object, request: HttpRequest) -> Answer | None:
        """Check a new request, or resume the one that this caller sent with the same idempotency key."""
        gate = self._middleware.gate
        approval_id, error = await call_safely(find_repeated, gate, request)
        if error is not None:
            return await self._refuse(f"the approvals could not be read: {type(error).__name__}", 403)
        if approval_id is not None:
            return await self._repeat(approval_id, content, request, by_key=True)
        decision = await check_request(gate, content, request, self._metadata)
        if not decision.allowed and not decision.pending and request.key is not None:
            # The same request may have arrived twice at once; the other one may wait by now.
            approval_id, _ = await call_safely(find_repeated, gate, request)
            if approval_id is not None:
                return await self._repeat(approval_id, content, request, by_key=True)
        return self._answer(decision)

    async def _repeat(
        self, approval_id: str, content: object, request: HttpRequest, *, by_key: bool = False
    ) -> Answer | None:
        """Answer a request that is sent again for an approval; ``None`` lets it through.

        With ``by_key``, the idempotency key led to the approval, and an unknown approval means that the key belongs to
        another request.
        """
        middleware = self._middleware
        repetition = await repeat_request(
            middleware.gate, approval_id, request, content, within=middleware.resume_within
        )
        if repetition.status == "allowed":
            return None
        if repetition.status == "unknown":
            return _REUSED_KEY if by_key else _UNKNOWN
        if repetition.status == "waiting" and repetition.decision is not None:
            return middleware.make_waiting_answer(repetition.decision)
        return self._make_end_answer(repetition)

    def _make_end_answer(self, repetition: Repetition) -> Answer:
        """Make the answer to a repeated request that will not be let through."""
        members = {"error": repetition.status}
        members |= {"approval": repetition.approval_id} if repetition.approval_id is not None else {}
        if repetition.decision is not None and repetition.status != "used":
            members |= {"decision": repetition.decision.id}
            members |= {"reason": repetition.decision.explain()} if self._middleware.explain else {}
        return Answer(status=_STATUSES[repetition.status], members=members)

    def _answer(self, decision: Decision) -> Answer | None:
        """Make the answer for a decision; ``None`` lets the request through."""
        if decision.allowed:
            return None
        waits = decision.pending and can_repeat(self._middleware.gate)
        return self._middleware.make_waiting_answer(decision) if waits else self._middleware.make_answer(decision)

    async def _refuse(self, reason: str, status: int) -> Answer | None:
        """Let the gate record a refusal, and make the answer; ``None`` if the gate observes and lets it through."""
        decision = await self._middleware.gate.refuse(reason, metadata=self._metadata)
        return None if decision.allowed else self._middleware.make_answer(decision, status)


_METHOD_HEADERS = (b"x-http-method-override", b"x-http-method", b"x-method-override")
"""Headers with which some frameworks override the method."""

_ADDRESS_HEADERS = (b"x-forwarded-host", b"x-forwarded-prefix", b"x-original-url", b"x-rewrite-url")
"""Headers with which some frameworks override the address."""

_BODY_HEADERS = (b"content-type", b"content-encoding")


def _describe_request(scope: Scope, raw: bytes, caller: str | None, key: bytes | None) -> HttpRequest:
    """Describe the request for an approval by every part that the application may read."""
    headers = scope["headers"]
    hosts = [host.decode("latin-1") for host in _list_header_values(headers, b"host")]
    raw_path = scope.get("raw_path")
    path = [str(scope.get("root_path", "")), str(scope.get("path", ""))]
    return HttpRequest(
        method=[str(scope.get("method", "")), *_list_named_headers(headers, _METHOD_HEADERS)],
        target=[
            *path,
            raw_path.decode("latin-1") if isinstance(raw_path, bytes) else "",
            *hosts,
            *_list_named_headers(headers, _ADDRESS_HEADERS),
        ],
        query=bytes(scope.get("query_string", b"")),
        body=[*(value for name in _BODY_HEADERS for value in _list_header_values(headers, name)), raw],
        caller=caller,
        key=key,
    )


def _list_named_headers(headers: Headers, names: Iterable[bytes]) -> list[str]:
    """List these headers as ``name: value``, since an application may obey one of them and ignore another.

    ``_`` in a name counts as ``-``, as a bridge to WSGI reads it.
    """
    normalised = [(name.replace(b"_", b"-"), value) for name, value in headers]
    return [
        f"{name.decode()}: {value.decode('latin-1')}"
        for name in names
        for value in _list_header_values(normalised, name)
    ]


def _list_header_values(headers: Headers, header: bytes) -> list[bytes]:
    """List the values of a header, without blanks around them."""
    return [bytes(value).strip() for name, value in headers if name.lower().strip() == header]


class _StoppedError(OSError):
    """Raised to an application that sends more of a blocked response, as a closed connection would raise."""


class _HeldResponse:
    """A response that is held until the gate has decided on it."""

    def __init__(self, middleware: GateMiddleware, scope: Scope, send: Send) -> None:
        self._middleware, self._scope, self._send = middleware, scope, send
        self._start: Message | None = None
        self._held = bytearray()
        self._state: Literal["holding", "open", "done", "blocked"] = "holding"
        self.stopped = False
        """True if ``send`` has raised, so that an exception of the application is a consequence of it."""

    async def send(self, message: Message) -> None:
        """Hold, pass on or refuse a message of the application, by the state of the response."""
        # A copy, so that the headers which are sent are those by which the body was read.
        if message["type"] == "http.response.start":
            message = {**message, "headers": [tuple(header) for header in message.get("headers", ())]}
        if self._state == "open":
            await self._send(message)
        elif self._state == "done":
            # A server could treat the message as part of this or of another response, and nobody has judged it.
            raise RuntimeError(f"the response is complete, and the application sent {message['type']}")
        elif self._state == "blocked":
            self.stopped = True
            raise _StoppedError("the response was blocked")
        elif message["type"] == "http.response.start" and self._start is None:
            await self._hold_start(message)
        elif message["type"] == "http.response.body" and self._start is not None:
            await self._hold_piece(message)
        else:
            await self._refuse(message, f"a response with {message['type']} cannot be held")

    async def _hold_start(self, message: Message) -> None:
        """Hold the start message of a response; a partial response is refused."""
        try:
            check_whole_response(message.get("status"), message.get("headers", ()))
        except UnreadableBodyError as error:
            await self._refuse(message, str(error))
        else:
            self._start = message

    async def _hold_piece(self, message: Message) -> None:
        """Hold a piece of the body; once it is complete or too long, let the gate decide, and send or replace it."""
        start = self._start or {}
        if start.get("trailers"):
            await self._refuse(message, "a response with trailers cannot be held")
            return
        self._held += message.get("body", b"")
        has_more = bool(message.get("more_body", False))
        if has_more and len(self._held) <= self._middleware.largest:
            return
        raw = bytes(self._held)
        if raw:
            decision, _ = await self._middleware.decide(raw, start.get("headers", ()), self._scope)
            if (
                self._state != "holding"
            ):  # the application sent from two tasks, and the other's piece was decided on first
                self.stopped = True
                raise _StoppedError("the response was decided about meanwhile")
            if decision.allowed and len(self._held) != len(raw):
                reason = "the response went on while it was judged"
                decision = await self._middleware.gate.refuse(reason, metadata=_describe_scope(self._scope, "response"))
            if not decision.allowed:
                await self._block(decision)
                return
        await self._open(has_more=has_more)

    async def _refuse(self, message: Message, reason: str) -> None:
        """Block a response that cannot be held; if the gate observes, send what was held and then the message."""
        gate = self._middleware.gate
        decision = await gate.refuse(reason, metadata=_describe_scope(self._scope, "response"))
        if not decision.allowed:
            await self._block(decision)
            return
        if self._start is not None:
            await self._open(has_more=True)
        self._state = "open"
        await self._send(message)

    async def _open(self, *, has_more: bool) -> None:
        """Send the held start and body; with ``has_more``, further messages are passed on as they come."""
        self._state = "open" if has_more else "done"
        await self._send(self._start or {})
        if self._held or not has_more:
            await self._send({"type": "http.response.body", "body": bytes(self._held), "more_body": has_more})

    async def _block(self, decision: Decision) -> None:
        """Drop the held response, and send the answer for a blocked one."""
        self._state = "blocked"
        self._held.clear()
        await self._middleware.make_answer(decision).send(self._send)


async def _receive_body(receive: Receive, largest: int) -> tuple[bytes, bool] | None:
    """Receive a request's body up to the limit; return it and true if there is more.

    Returns ``None`` if the client has disconnected.
    """
    body = bytearray()
    has_more = True
    while has_more and len(body) <= largest:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        has_more = bool(message.get("more_body", False))
    return bytes(body), has_more


def _describe_scope(scope: Scope, side: str) -> dict[str, str]:
    """Describe a request for the record, without its query, which may have data that must not be kept."""
    return {"on": side, "method": str(scope.get("method", "")), "path": str(scope.get("path", ""))}
