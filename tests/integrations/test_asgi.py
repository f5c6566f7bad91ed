"""A gate around an ASGI application, driven by hand: what is blocked never arrives, on either side."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from adjudge import Gate
from adjudge.integrations.asgi import GateMiddleware
from kit.asgi import CALM, JSON, Client, Echo, answer, guard, respond
from kit.gates import Book, Desk, gate
from kit.judges import complaint, failed, names, passed

# ---------------------------------------------------------------- requests


def test_a_request_that_may_pass_arrives_as_it_was():
    """However many pieces it came in."""
    app = Echo()
    client = Client(guard(app), b'{"a": ', b"", b'"fine"}')

    assert app.bodies == [b'{"a": "fine"}']
    assert (client.status, client.body) == (200, b'{"a": "fine"}')


def test_a_request_that_may_not_pass_never_arrives():
    """The client learns that, and an id to ask about; not why."""
    app, book = Echo(), Book()
    client = Client(guard(app, Gate("calm", rules=CALM, ledger=book)), b'{"a": "a secret"}')
    ((decision, _),) = book.entries

    assert app.bodies == []
    assert client.status == 403
    assert client.document == {"error": "blocked", "decision": decision.id}
    assert dict(client.messages[0]["headers"])[b"content-type"] == b"application/json"
    assert decision.metadata == {"on": "request", "method": "POST", "path": "/a"}


def test_the_reason_is_told_only_where_that_was_asked_for():
    """``explain=True`` is for applications whose clients may know the rules."""
    client = Client(guard(Echo(), explain=True), b'"secret"')

    assert "rule 'regex' failed" in client.document["reason"]


def test_an_empty_body_holds_nothing_to_judge():
    """A GET goes to the application as it is."""
    app = Echo(*respond(b"hello"))
    client = Client(guard(app), b"", kind=None, method="GET")

    assert (client.status, client.body, app.bodies) == (200, b"hello", [b""])


@pytest.mark.parametrize(
    ("body", "kind", "headers", "status"),
    [
        (b"x" * 101, "text/plain", (), 413),
        (b"fine", None, (), 415),
        (b"fine", "application/octet-stream", (), 415),
        (b"a=fine", "application/x-www-form-urlencoded", (), 415),
        (b"fine", "text/plain; charset=utf-16", (), 415),
        (b"fine", "text/plain; charset=utf-8; charset=utf-7", (), 415),
        (b"\xff\xfe", "text/plain", (), 415),
        (b'"fine"', JSON, [(b"Content-Encoding", b"gzip")], 415),
        (b'"fine"', JSON, [(b"Content-Type", b"text/plain")], 415),
        (b"a=fine", "text/plain, application/x-www-form-urlencoded", (), 415),
        (b"fine", JSON, (), 400),
        (b'{"a": 1, "a": 2}', JSON, (), 400),
        (b"[" * 90, JSON, (), 400),
        (b"NaN", JSON, (), 400),
        (b"f\x00ine", "text/plain", (), 403),
    ],
)
@pytest.mark.parametrize("opened", [{}, {"on_undecided": "allow"}])
def test_what_cannot_be_read_is_blocked(body: bytes, kind: Any, headers: Any, status: int, opened: Any):
    """Whatever is done with undecided content."""
    app = Echo()
    client = Client(guard(app, gate(passed(), **opened), largest=100), body, kind=kind, headers=headers)

    assert (client.status, app.bodies) == (status, [])


@pytest.mark.parametrize("kind", [JSON, "application/problem+json", "text/plain", "text/json; charset=UTF-8"])
@pytest.mark.parametrize(
    "body",
    [
        b'{"a": "\\u0073ecret"}',
        b'"\\u0073ecret"',
        b'\xef\xbb\xbf["\\u0073ecret"]',
        b'\x0b["\\u0073ecret"]\x0c',
        b'\xc2\xa0"\\u0073ecret"',
        b' \xef\xbb\xbf"\\u0073ecret"',
    ],
)
def test_escapes_hide_nothing(kind: str, body: bytes):
    """Text that is JSON is judged as what an application would read, whatever it calls itself."""
    app = Echo()

    assert Client(guard(app), body, kind=kind).status in {400, 403}
    assert app.bodies == []


def test_text_with_two_readings_is_blocked():
    """A key that stands twice is read one way here and another way there."""
    assert Client(guard(Echo()), b'{"a": "fine", "a": "\\u0073ecret"}', kind="text/plain").status == 400


def test_text_that_is_no_json_is_text():
    """A brace alone makes no JSON."""
    app = Echo()

    assert Client(guard(app), b"{ fine", kind="text/plain; charset=utf-8").status == 200
    assert Client(guard(app), b"a secret", kind="text/markdown").status == 403
    assert app.bodies == [b"{ fine"]


def test_a_large_body_is_not_read_to_its_end():
    """It is blocked as soon as it passes the limit."""
    read = []

    async def receive() -> Any:
        read.append(1)
        return {"type": "http.request", "body": b"x" * 60, "more_body": True}

    sent = []

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(guard(Echo(), largest=100)({"type": "http", "headers": []}, receive, send))

    assert (len(read), sent[0]["status"]) == (2, 413)


def test_a_client_that_goes_away_is_not_judged():
    """Half a body is no content."""
    app, judge = Echo(), passed()
    client = Client(guard(app, gate(judge)))

    assert (client.messages, app.bodies, judge.asked) == ([], [], [])


def test_pending_says_so():
    """The client may come back; nothing has arrived."""
    made = gate(failed(), on_failed="ask", approvals=Desk(), wait=False)

    assert Client(guard(Echo(), made), b'"x"').document["error"] == "pending"


@pytest.mark.parametrize(
    ("chunks", "kind"),
    [((b'"secret"',), JSON), ((b"x" * 60, b"x" * 60, b"x"), "text/plain"), ((b"\xff",), "image/png")],
)
def test_observe_lets_every_request_through_whole(chunks: tuple[bytes, ...], kind: str):
    """Also what cannot be read, or is too large to be held."""
    app = Echo()
    Client(guard(app, Gate("calm", rules=CALM, mode="observe"), largest=100), *chunks, kind=kind)

    assert app.bodies == [b"".join(chunks)]


# ---------------------------------------------------------------- responses


def test_a_response_that_may_pass_is_sent_as_it_was():
    """With its status and its headers."""
    client, _ = answer(*respond(b"fi", b"ne", headers=[(b"x-a", b"b")], status=201))

    assert (client.status, client.body) == (201, b"fine")
    assert (b"x-a", b"b") in client.messages[0]["headers"]


def test_nothing_of_a_blocked_response_is_sent():
    """Neither the pieces before the one that decided, nor status, nor headers."""
    client, _ = answer(*respond(b"a se", b"cret", headers=[(b"x-a", b"secret")], status=201))

    assert client.status == 403
    assert client.document["error"] == "blocked"
    assert b"secret" not in repr(client.messages).encode()


@pytest.mark.parametrize(
    "sends",
    [
        respond(b"x" * 101),
        respond(b"x" * 60, b"x" * 60, b"x"),
        respond(b"fine", kind="image/png"),
        respond(b"fine", kind=None),
        respond(b"fine", headers=[(b"content-encoding", b"br")]),
        respond(b"fine", trailers=True),
        [*respond(), {"type": "http.response.pathsend", "path": "/etc/passwd"}],
        [{"type": "http.response.body", "body": b"fine"}],
    ],
    ids=["large", "streamed", "image", "untyped", "packed", "trailers", "path", "headless"],
)
def test_a_response_that_cannot_be_held_is_blocked(sends: list[Any]):
    """An application that goes on sending is told that nobody listens."""
    client, _ = answer(*sends, largest=100)

    assert client.status == 403
    assert client.document["error"] == "blocked"


def test_an_application_is_stopped_when_its_response_is_blocked():
    """A stream without end would otherwise be produced for nobody; its error is our doing and goes no further."""
    client, app = answer(*respond(b"x" * 101, b"more", b"more"), largest=100)

    assert app.stopped
    assert client.status == 403


def test_an_applications_own_error_is_its_own():
    """It is raised as it was, and nothing has been sent."""

    async def broken(scope: Any, receive: Any, send: Any) -> None:
        await send(respond(b"x")[0])
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        Client(guard(broken, on="response"), b"")


def test_ways_around_the_body_are_not_offered():
    """An extension could send a file by its path."""
    app = Echo(*respond(b"fine"))
    Client(guard(app, on="response"), b"", extensions={"http.response.pathsend": {}})

    assert app.scopes[0]["extensions"] == {}


def test_a_response_without_a_body_passes():
    """There is nothing in it to judge."""
    client, _ = answer(*respond(b"", kind=None, status=204))

    assert [item["type"] for item in client.messages] == ["http.response.start", "http.response.body"]


@pytest.mark.parametrize(
    ("sends", "body"),
    [
        (respond(b"a secret"), b"a secret"),
        (respond(b"x" * 60, b"x" * 60, b"x"), b"x" * 121),
        (respond(b"\xff", kind="image/png"), b"\xff"),
        (respond(b"fi", b"ne", trailers=True), b"fine"),
    ],
    ids=["blocked", "streamed", "image", "trailers"],
)
def test_observe_sends_every_response_whole(sends: list[Any], body: bytes):
    """Also what cannot be held."""
    client, _ = answer(*sends, made=Gate("calm", rules=CALM, mode="observe"), largest=100)

    assert (client.status, client.body) == (200, body)


# ---------------------------------------------------------------- around


def test_the_life_of_the_server_passes():
    """Starting and stopping is no content."""
    app = Echo(*[{"type": "lifespan.startup.complete"}])

    assert Client(guard(app), type="lifespan").messages == [{"type": "lifespan.startup.complete"}]


def test_a_websocket_cannot_be_held_and_is_refused():
    """Unless the gate observes, or the path is none of its."""
    sends = [{"type": "websocket.accept"}]

    assert Client(guard(Echo(*sends)), type="websocket").messages == [{"type": "websocket.close", "code": 1008}]
    observing = Gate("calm", rules=CALM, mode="observe")
    assert Client(guard(Echo(*sends), observing), type="websocket").messages == sends
    assert Client(guard(Echo(*sends), when=lambda scope: False), type="websocket").messages == sends


def test_only_what_is_plainly_left_out_is_left_out():
    """``when`` says no with False, and with nothing else."""
    for value, status in ((False, 200), (True, 403), (None, 403), (0, 403)):
        assert Client(guard(Echo(), when=lambda scope, value=value: value), b'"secret"').status == status


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on": "both"}, "on … request, response … 'both'"),
        ({"largest": 0}, "largest … at least 1 … 0"),
        ({"gate": "calm"}, "gate … a Gate … str"),
    ],
)
def test_a_middleware_that_cannot_be_is_refused_at_once(options: dict[str, Any], message: str):
    """Not with the first request."""
    made = {"gate": Gate("calm", rules=CALM), **options}

    assert names(complaint(GateMiddleware, Echo(), made.pop("gate"), **made), *message.split(" … "))
