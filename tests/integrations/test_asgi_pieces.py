"""Bodies that say a thing in pieces: a gate sees what they say together, or they go nowhere."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge import Gate
from kit.asgi import JSON, Client, Echo, answer, guard, respond
from kit.gates import Book

SECRET = "a secret"
STREAM = "text/event-stream"
LINES = "application/x-ndjson"
BLOCKED = {400, 403, 413, 415}


class Seen:
    """A rule that keeps what it was shown."""

    def __init__(self) -> None:
        self.contents: list[Any] = []

    def __call__(self, content: Any) -> bool:
        self.contents.append(content)
        return True


def catch(body: str, kind: str = "text/plain", *, on: str = "response") -> str:
    """Who stopped a body: its reader, before anything was judged, or the rule; nobody where it went through."""
    book = Book()
    made = Gate("calm", rules=[{"regex": "secret", "absent": True}], ledger=book)
    Client(
        guard(Echo(*(respond(body.encode(), kind=kind) if on == "response" else ())), made, on=on),
        *([body.encode()] if on == "request" else [b""]),
        kind=kind,
    )
    ((decision, _),) = book.entries
    return "nobody" if decision.allowed else "rule" if decision.decided_by == "rule" else "reader"


def status_of(body: bytes | str, kind: str = "text/plain", *, on: str = "response", **start: Any) -> int:
    raw = body.encode() if isinstance(body, str) else body
    if on == "request":
        app = Echo()
        client = Client(guard(app), raw, kind=kind)
        assert bool(app.bodies) is (client.status == 200)
        return client.status
    client, _ = answer(*respond(raw, kind=kind, **start))
    assert client.status == 200 or b"secret" not in client.body
    return client.status


def stream(*data: str, more: str = "", end: str = "\n") -> str:
    return "".join(f"{more}data: {item}{end}{end}" for item in data)


def lines(*values: Any) -> str:
    return "".join(json.dumps(item) + "\n" for item in values)


def openai(piece: str, index: int = 0) -> dict[str, Any]:
    choice = {"index": index, "delta": {"content": piece}, "finish_reason": None}
    return {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def call(piece: str, index: int = 0) -> dict[str, Any]:
    tool = {"index": index, "function": {"arguments": piece}}
    return {"id": "c-1", "choices": [{"index": 0, "delta": {"content": None, "tool_calls": [tool]}}]}


def block(piece: str, index: int = 0) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": piece}}


def piece_of_output(piece: str, index: int = 0) -> dict[str, Any]:
    return {"type": "response.output_text.delta", "item_id": f"m{index}", "output_index": index, "delta": piece}


FORMS = {
    "chat": openai,
    "tool-call": call,
    "block": block,
    "output": piece_of_output,
    "plain": lambda piece, index=0: {"response": piece, "done": False},
    "text": lambda piece, index=0: piece,
    "list": lambda piece, index=0: [piece],
}


# ---------------------------------------------------------------- what is said in pieces


@pytest.mark.parametrize("form", list(FORMS))
@pytest.mark.parametrize("on", ["request", "response"])
@pytest.mark.parametrize("kind", [STREAM, LINES, "application/jsonl", "application/json-seq", "text/plain"])
def test_one_letter_a_record_hides_nothing(form: str, on: str, kind: str):
    """Whatever a library calls its pieces, and whatever the body calls itself."""
    made = [json.dumps(FORMS[form](letter)) for letter in SECRET]
    forms = [stream(*made, "[DONE]")] if kind == STREAM else ["".join(f"{item}\n" for item in made)]
    forms += [stream(*made), "".join(made), "".join(f"0:{item}\n" for item in made)] if kind == "text/plain" else []
    forms = ["".join(f"\x1e{item}\n" for item in made)] if kind == "application/json-seq" else forms

    assert {catch(body, kind, on=on) for body in forms} == {"rule"}


@pytest.mark.parametrize("form", ["chat", "tool-call", "block", "output"])
def test_pieces_of_two_answers_are_put_together_each(form: str):
    """A client that was sent two answers at once follows each by its number."""
    made = [json.dumps(FORMS[form](letter, index)) for letter in SECRET for index, letter in ((0, "x"), (1, letter))]

    assert catch(stream(*made), STREAM) == "rule"
    assert catch("".join(f"{item}\n" for item in made), LINES) == "rule"


@pytest.mark.parametrize(
    "body",
    [
        stream(*SECRET),
        stream(*SECRET, end="\r\n"),
        stream(*SECRET, end="\r"),
        "\ufeff" + stream(*SECRET),
        stream(*SECRET)
        .replace("data: ", "data:")
        .replace("data:\n", "data: \n")
        .replace("data:\ndata", "data: \ndata"),
        "data: a\ndata:  secret",
        ": hello\n\n" + stream(*SECRET, more="event: token\n"),
        stream(*SECRET, more="id: 7\nretry: 10\n"),
        "".join(
            f"event: {'e' if at % 2 else 'x'}\ndata: {'x' if not at % 2 else SECRET[at // 2]}\n\n" for at in range(16)
        ),
        "data: a\n:\ndata: secret\n\n" + stream("x"),
        "id: a sec\n\nid: ret\ndata: x\n\n",
        ": a sec\n: ret\ndata: x\n\n",
        "retry: a sec\n\nretry: ret\ndata: x\n\n",
        stream("a\\u0020secret", '"a \\u0073ecret"'),
        stream('{"a": "a \\u0073ecret"}'),
        stream("fine") + "data: a secret",
    ],
    ids=range(16),
)
def test_an_event_stream_is_read_by_its_rules(body: str):
    """Line ends, comments, names, numbers, several lines in one event, and one that is not ended."""
    assert catch(body, STREAM) == "rule"


def test_words_that_stand_on_lines_of_their_own_are_seen_so():
    """A log is sent a line an event and shown a line below the other."""
    made = Gate("calm", rules=[{"regex": r"\bdrop\s+table\b", "absent": True}])
    for body, kind in (
        (stream("drop", "table"), STREAM),
        (stream('{"line": "drop"}', '{"line": "table"}'), STREAM),
        (lines({"line": "drop"}, {"line": "table"}), LINES),
    ):
        assert answer(*respond(body.encode(), kind=kind), made=made)[0].status == 403


@pytest.mark.parametrize(
    "body",
    [
        'show({"a": "\\u0073ecret"});',
        '/**/show && show({"a": "\\u0073ecret"});',
        ')]}\',\n{"a": "\\u0073ecret"}',
        'for(;;);{"a": "\\u0073ecret"}',
        'var a = "\\x73ecret"',
        "var a = '\\u{73}ecret'",
        "Here you are: `\\u0073ecret`",
        '{"a": "\\u0073ecret"}{"a": 1}',
        '{"a": "\\u0073ecret"}, {"a": 1}',
    ],
)
@pytest.mark.parametrize("on", ["request", "response"])
def test_escapes_around_which_something_else_stands_hide_nothing(body: str, on: str):
    """JSON in a call, behind a prefix, in prose."""
    assert catch(body, on=on) == "rule"


@pytest.mark.parametrize("kind", ["text/html", "text/xml", "text/markdown"])
@pytest.mark.parametrize(
    "body",
    [
        *("s<b></b>ecret", "s<!-- > -->ecret", "&#115;ecret", "s&#x65;cre<i>t</i>"),
        *('s<b title=">"></b>ecret', "s<b title = 'a>b<c'></b>ecret", 's<img alt="1 > 0" src=x>ecret'),
        *("s<b title=it's></b>ecret", 's<b title=a"></b>ecret', "s<b a=\">\" b='>'></b>ecret"),
    ],
)
def test_markup_is_judged_as_it_is_shown(kind: str, body: str):
    """And as it stands: an attribute is not shown, and can say as much."""
    assert catch(f"<p>{body}</p>", kind) == "rule"
    assert catch("<p title='secret'>fine</p>", kind) == "rule"
    assert status_of("<p>a &lt; b</p>", kind) == 200


@pytest.mark.parametrize("kind", ["text/html", "text/xml"])
@pytest.mark.parametrize("name", ["shown", "read", "records", "other"])
def test_json_of_a_markup_type_keeps_its_members(kind: str, name: str):
    """A framework may read it as JSON, where an escape is its letter, whatever is a tag to a browser."""
    assert catch(f"""{{"text": "<b x='", "{name}": "\\u0073ecret", "end": "'>"}}""", kind) == "rule"


def test_a_gate_sees_the_whole_and_each():
    """The judge and the rules are shown what records say together, and every record."""
    seen = Seen()
    made = [json.dumps(openai(piece)) for piece in ("Hel", "lo ", "4")]
    body = ": ping\n\n" + stream(*made, "[DONE]")
    client, _ = answer(*respond(body.encode(), kind=STREAM), made=Gate("all", rules=[seen]))
    (content,) = [json.loads(item) if isinstance(item, str) else item for item in seen.contents]

    assert (client.status, client.body) == (200, body.encode())
    assert content["records"] == [*map(json.loads, made), "[DONE]"]
    assert content["together"][0][1]["choices"][0]["delta"]["content"] == "Hello 4"
    assert content["comments"] == ["ping"]


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("data: s\u2028x\n\ndata: ecret\n\n", STREAM),
        ("data: s\x85x\n\n", STREAM),
        ("text: s\n\n", STREAM),
        ('data: {"a": 1, "a": 2}\n\n', STREAM),
        ('{"a": 1}\n{"a": 1, "a": 2}\n', LINES),
        ('{"a": 1}\n{"a":\n2}\n', LINES),
        ('{"a": 1} {"a": 2}\n', LINES),
        ('{"a": 1}\nnot json\n', LINES),
        ('{"a": 1}\n' + "[" * 300, LINES),
        ("data: " + "[" * 300 + "\n\n", STREAM),
        ("s\x1b(Becret", "text/plain"),
        ("fine", "text/javascript"),
        ("fine", "application/javascript"),
        ("fine", "text/calendar"),
        ("fine", "text/css"),
        ("fine", "text/yaml"),
        ("fine", "multipart/byteranges; boundary=x"),
        ("fine", "multipart/x-mixed-replace; boundary=x"),
        ("fine", "message/http"),
        ("+AHM-", "text/plain; charset=utf-7"),
        ("{}\n" * 50_001, LINES),
        ("{}\n" * 50_001, "text/plain"),
        ("<!ENTITY a 'sec'>&a;ret", "text/xml"),
    ],
)
@pytest.mark.parametrize("on", ["request", "response"])
def test_what_two_readers_read_differently_is_refused(body: str, kind: str, on: str):
    """However the undecided is dealt with."""
    assert status_of(body, kind, on=on) in BLOCKED


@pytest.mark.parametrize(
    "start",
    [
        {"status": 206},
        {"status": 226},
        {"status": 103},
        {"status": None},
        {"headers": [(b"content-range", b"bytes 0-3/8")]},
        {"headers": [(b"Content-Range", b"bytes */8")], "status": 416},
    ],
)
@pytest.mark.parametrize("chunks", [(b"fine",), (b"",), (b"fi", b"ne")])
@pytest.mark.parametrize("opened", [{}, {"on_undecided": "allow"}])
def test_a_part_is_not_sent(start: dict[str, Any], chunks: tuple[bytes, ...], opened: dict[str, Any]):
    """One range after another, a client would have the whole, and no gate would have seen it."""
    made = Gate("calm", rules=[{"regex": "secret", "absent": True}], **opened)
    client, _ = answer(*respond(*chunks, **start), made=made)

    assert (client.status, client.document["error"]) == (403, "blocked")


def test_a_packed_response_is_not_sent():
    """Whoever packed it, and wherever it says so."""
    for name, value in ((b"Content-Encoding", b"gzip"), (b"transfer-encoding", b"gzip, chunked")):
        assert answer(*respond(b"fine", headers=[(name, value)]))[0].status == 403


def test_a_client_cannot_ask_for_a_part():
    """The application is not told of ranges, so it answers with the whole; everything else arrives."""
    asked = [(b"Range", b"bytes=0-3"), (b"if-range", b'"x"'), (b"a-im", b"vcdiff"), (b"accept", b"*/*")]
    app = Echo(*respond(b"fine"))
    Client(guard(app, on="response"), b"", kind=None, headers=asked)
    behind = Echo(*respond(b"fine"))
    Client(guard(behind), b"", kind=None, headers=asked)

    assert app.scopes[0]["headers"] == [(b"accept", b"*/*")]
    assert behind.scopes[0]["headers"] == asked


@pytest.mark.parametrize("name", [b"content-range", b"Upload-Offset", b"upload-complete", b"upload-incomplete"])
def test_a_part_of_an_upload_does_not_arrive(name: bytes):
    """The application would put together what was judged in parts."""
    app = Echo()

    assert Client(guard(app), b'"fine"', headers=[(name, b"0")]).status == 400
    assert app.bodies == []


def test_nothing_follows_a_response_that_is_complete():
    """Neither more of it nor another one: a server might send them."""
    for more in (respond(b"secret")[1:], respond(b"secret"), [{"type": "http.response.trailers", "headers": []}]):
        app = Echo(*respond(b"fine"), *more)
        client = None
        with pytest.raises(RuntimeError, match="the response is complete"):
            client = Client(guard(app, on="response"), b"", kind=None)
        assert client is None


@pytest.mark.parametrize("kind", ["push", "pathsend", "zerocopysend", "early_hint", "debug"])
def test_no_extension_sends_past_a_gate(kind: str):
    """An application may use one that it was not offered."""
    for before in ([], respond()):
        client, _ = answer(*before, {"type": f"http.response.{kind}", "path": "/etc/passwd", "links": []})
        assert (client.status, client.document["error"]) == (403, "blocked")


def test_a_response_without_a_body_may_be_about_one():
    """HEAD, 204 and 304 have nothing to judge."""
    for status in (200, 204, 304):
        client, _ = answer(*respond(b"", kind="image/png", status=status))
        assert client.status == status


# ---------------------------------------------------------------- what must stay allowed


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (stream("Hel", "lo"), STREAM),
        (stream(*map(json.dumps, map(openai, ["Hel", "lo"])), "[DONE]"), STREAM),
        (": ping\n\n", STREAM),
        ("\n", STREAM),
        (lines({"a": 1}, {"a": 2}), LINES),
        ("\n", LINES),
        ('{"a": "\u2028"}\r\n', LINES),
        ("\x1e{}\n\x1e[]\n", "application/json-seq"),
        ("C:\\users\\new and \\frac{a}{b}", "text/plain"),
        ('print("a\\n")', "text/plain"),
        ("data: one thing", "text/plain"),
        ("\x1b[31mred\x1b[0m", "text/plain"),
        ("# Title\n\n- one\n- two & three", "text/markdown"),
        ("a,b\n1,2\n", "text/csv"),
        ('[{"a": 1},\n {"a": 2}]', "text/plain"),
    ],
)
@pytest.mark.parametrize("on", ["request", "response"])
def test_what_says_nothing_of_it_passes(body: str, kind: str, on: str):
    """As it was, byte for byte."""
    assert status_of(body, kind, on=on) == 200
    client, _ = answer(*respond(body.encode(), kind=kind))
    assert client.body == body.encode()


def test_text_is_judged_as_it_is_where_nothing_is_read_into_it():
    """Its digest, which an approval and a ledger go by, is that of the text."""
    seen, book = Seen(), Book()
    made = Gate("all", rules=[seen], ledger=book)
    for body in ("plain text", "C:\\new", '{"a": 1}'):
        answer(*respond(body.encode()), made=made)

    assert seen.contents == ["plain text", "C:\\new", {"a": 1}]


# ---------------------------------------------------------------- properties

NAMES = st.sampled_from(["text", "content", "delta", "d", "type", "id", "object", "role", "token"])


def nest(keys: list[str], piece: str) -> Any:
    value: Any = piece
    for key in keys:
        value = [value] if key == "[]" else {key: value}
    return value


@given(
    cuts=st.lists(st.integers(1, 7), unique=True).map(sorted),
    keys=st.lists(NAMES | st.just("[]"), max_size=4),
    form=st.sampled_from(["stream", "json", "named"]),
    noise=st.lists(st.sampled_from([{"usage": 1}, [], {}, {"ping": None}]), max_size=8),
)
def test_however_a_word_is_cut_it_is_seen(cuts: list[int], keys: list[str], form: str, noise: list[Any]):
    """At any place of a record, in pieces of any length, with other records between them."""
    pieces = [SECRET[a:b] for a, b in zip([0, *cuts], [*cuts, len(SECRET)], strict=True)]
    values: list[Any] = [nest(keys, piece) for piece in pieces]
    for at, item in enumerate(noise):
        values.insert(2 * at + 1, item)
    text = [json.dumps(item) for item in values]
    body = {"stream": stream(*text), "json": lines(*values), "named": stream(*text, more="event: e\n")}[form]

    assert catch(body, LINES if form == "json" else STREAM) == "rule"
    assert catch(body, "text/plain") == "rule"


@given(
    st.text() | st.text(alphabet='data: {}[]"\\u0073\n\r,<>&;'),
    st.sampled_from([STREAM, LINES, JSON, "text/plain", "text/html"]),
)
def test_whatever_a_body_holds_it_is_answered(text: str, kind: str):
    """Sent as it was, or blocked; never an error."""
    client, _ = answer(*respond(text.encode("utf-8", "replace"), kind=kind))

    assert client.status in {200, 403}


@pytest.mark.slow
@pytest.mark.no_cover
@pytest.mark.parametrize(
    "body",
    [
        "<!--" * 100_000,
        "<" * 400_000,
        '<a="' * 100_000,
        "<a b='>" * 60_000,
        '"' * 400_000,
        "data\n" * 80_000,
        "{" * 400_000,
        "[]" * 200_000,
        '{"a":' * 80_000,
        "".join(f'{{"k{at}":"s"}}\n' for at in range(25_000)),
        "\\u0073" * 60_000,
        '0:"' * 100_000,
    ],
    ids=range(12),
)
def test_a_large_body_is_read_in_linear_time(body: str):
    """400 KB of what is expensive to a careless reader."""
    for kind in (STREAM, LINES, "text/html"):
        assert answer(*respond(body.encode(), kind=kind))[0].status in {200, 403}
