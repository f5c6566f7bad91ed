"""What the command line does when something it depends on does not keep its word."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from adjudge import JudgeResult, UsageError
from adjudge.cli.commands.judge import Session
from adjudge.cli.input import InputItem, Inputs
from adjudge.config import judges as _local
from adjudge.config.file import read_config
from adjudge.config.judges import Choice
from kit import cli
from kit.cli import Line, Ran
from kit.patience import HANG

pytestmark = pytest.mark.timed


POLITE = ("--criteria", "Is polite.")
MISSING = "b.txt: the judge ended without a result; run it again"


@pytest.fixture(autouse=True)
def line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    cli.isolate(monkeypatch, tmp_path)
    cli.feed(monkeypatch, terminal=True)
    return Line(capsys)


# An item without a result


class Silent:
    """A judge that gives no result for some contents: it ends early, or cancels itself."""

    name = "silent"

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def check(self, _question: object) -> None:
        return None

    async def aclose(self) -> None:
        return None

    async def evaluate_many(self, contents: list[str], _rubric: object, **_how: object) -> AsyncIterator[JudgeResult]:
        if contents != ["bad"]:
            yield JudgeResult(outcome="passed", decided_by="judge", judge=self.name)
        elif self.kind == "cancels":
            raise asyncio.CancelledError


def judge(kind: str, capsys: pytest.CaptureFixture[str], *, as_json: bool, concurrency: int = 1) -> Ran:
    items = [
        InputItem(name="a.txt", content="good"),
        InputItem(name="b.txt", content="bad"),
        InputItem(name="c.txt", content="good"),
    ]
    session = Session(
        choice=Choice(judge=Silent(kind), rubric=None),  # type: ignore[arg-type]
        arguments={"criteria": "Is good."},
        inputs=Inputs(items=iter(items), total=3, single=False),
        as_json=as_json,
    )
    status = asyncio.run(session.judge(concurrency))
    out, err = capsys.readouterr()
    return Ran(status, out, err)


@pytest.mark.parametrize("kind", ["ends", "cancels"])
@pytest.mark.parametrize("concurrency", [1, 4])
def test_an_item_without_a_result_is_no_pass(kind: str, concurrency: int, capsys: pytest.CaptureFixture[str]):
    """Status 2, named on standard error; the items after it are judged."""
    ran = judge(kind, capsys, as_json=False, concurrency=concurrency)

    assert ran.status == 2
    assert f"adjudge: {MISSING}\n" in ran.err
    header, *rows = ran.out.splitlines()
    assert header.split() == ["outcome", "input", "why"]
    assert [text.partition(".txt")[0][-1] for text in rows] == ["a", "c"]


@pytest.mark.parametrize("kind", ["ends", "cancels"])
def test_an_item_without_a_result_has_its_entry(kind: str, capsys: pytest.CaptureFixture[str]):
    """A program that reads the document finds every input in it."""
    ran = judge(kind, capsys, as_json=True)
    entries = ran.document["results"]

    assert ran.status == 2
    assert [entry["input"] for entry in entries] == ["a.txt", "b.txt", "c.txt"]
    assert [entry.get("outcome") for entry in entries] == ["passed", None, "passed"]
    assert entries[1]["error"] == MISSING


def test_who_cancels_the_run_cancels_it(capsys: pytest.CaptureFixture[str]):
    """A cancellation from outside is nobody's missing result: it ends the run."""

    class Waiting(Silent):
        async def evaluate_many(
            self, contents: list[str], _rubric: object, **_how: object
        ) -> AsyncIterator[JudgeResult]:
            started.set()
            await asyncio.Event().wait()
            yield JudgeResult(outcome="passed", decided_by="judge", judge=self.name)

    started = asyncio.Event()

    async def run() -> None:
        session = Session(
            choice=Choice(judge=Waiting("waits"), rubric=None),  # type: ignore[arg-type]
            arguments={"criteria": "Is good."},
            inputs=Inputs(items=iter([InputItem(name="a.txt", content="good")]), total=1, single=True),
            as_json=False,
        )
        task = asyncio.create_task(session.judge(2))
        await started.wait()
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run())
    assert capsys.readouterr().out == ""


# Rows that were hard to write again


@pytest.mark.parametrize(
    "row",
    [
        '{"id": "a", "content": "good", "metadata": {"x": 1e999}}',
        '{"id": "a\\ud800", "content": "good"}',
        '{"id": "a", "content": "good", "metadata": {"m": ' + "[" * 900 + "]" * 900 + "}}",
    ],
)
def test_a_row_that_no_document_could_hold(line: Line, row: str):
    """--json stays one JSON document, and what was judged before stays in it."""
    Path("rows.jsonl").write_text('{"id": "first", "content": "good"}\n' + row + "\n", encoding="utf-8")
    ran = line("judge", "rows.jsonl", *POLITE, "--judge", cli.WORDS, "--json")

    assert ran.status == 2
    assert [entry.get("outcome") for entry in ran.document["results"]] == ["passed", None]
    assert "rows.jsonl, line 2: not a line of JSON" in ran.document["results"][1]["error"]


# What else may be wrong


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = " + "1" * 5000, "it holds a number or a time that cannot be read"),
        ("[judges.x]\n" + ".".join(["a"] * 60_000) + " = 1", "a dotted key has more than 50 parts"),
    ],
)
def test_a_configuration_that_would_take_long(text: str, message: str):
    """The guards of rubrics in TOML."""
    Path("adjudge.toml").write_text(text, encoding="utf-8")

    with pytest.raises(UsageError, match=f"^adjudge.toml is not valid TOML: {message}$"):
        read_config(None)


@pytest.mark.parametrize(
    "text",
    [
        "%s = 1",
        "[judges.%s]\nseats = 1",
        "[judges.x]\n%s = 1",
        "[judges]\nx = '%s'",
        "[judges.x]\nseats = ['%s', 1]",
        "[rubrics]\n%s = 1",
        "[rubrics]\nx = ['%s']",
        "[defaults]\njudge = '%s'",
        "[defaults]\njudge = 'x'\n[judges.%s]\nseats = ['rules']",
        "[defaults]\nrubric = ['%s']",
        "judges = '%s'",
    ],
)
def test_what_a_configuration_says_is_repeated_in_part(text: str):
    """A key of half a megabyte does not fill a terminal."""
    Path("adjudge.toml").write_text(text.replace("%s", "k" * 500_000), encoding="utf-8")

    with pytest.raises(UsageError) as caught:
        read_config(None)
    assert len(str(caught.value)) < 700


@pytest.mark.parametrize("spec", ["http://[x/v1#m", "http://a\uff0fb/v1#m", "openai:m?base_url=http://[1"])
def test_an_address_that_cannot_be_split(line: Line, spec: str):
    """One sentence and status 2, no traceback."""
    Path("a.txt").write_text("good", encoding="utf-8")
    ran = line("judge", "a.txt", *POLITE, "--judge", spec)

    assert ran.status == 2
    assert "base_url must be like https://host/v1" in ran.sentence


# Whoever listens on a usual port


@contextmanager
def listen(*pieces: bytes, forever: bool = False) -> Iterator[threading.Event]:
    """Something on a usual port that says these pieces, and the last one for ever; the event: it was hung up on."""
    left = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.MonkeyPatch.context() as patch:
        patch.setattr(_local, "LOCAL_PORTS", ((server.getsockname()[1], "Ollama"),))

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65_536)
                try:
                    for piece in pieces:
                        connection.sendall(piece)
                    while forever and not done.wait(0.01):
                        connection.sendall(pieces[-1])
                except OSError:
                    left.set()

        done = threading.Event()
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield left
        finally:
            thread.join(HANG)
            done.set()


LIST = b'{"object": "list", "data": [{"id": "small"}]}'
OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "pieces",
    [
        (OK + b"Content-Type: text/event-stream\r\n\r\n", b": ping\n\n"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
        (OK + b"X-Long: ", b"x"),
        (OK, b"X-More: y\r\n"),
        (b"HTTP/1.1 100 Continue\r\n\r\n",),
    ],
    ids=["events", "chunks", "header", "headers", "continue"],
)
def test_an_answer_without_end_keeps_nobody(pieces: tuple[bytes, ...]):
    """The time is for all that a port says; then it is hung up on."""
    with listen(*pieces, forever=True) as left:
        assert list(_local.find_local(0.2)) == []
        assert left.wait(HANG)


def test_an_answer_is_read_to_a_limit():
    """A flood that comes within the time is cut off too."""
    with listen(OK + b"\r\n", b" " * 1_000_000, forever=True) as left:
        assert list(_local.find_local(30)) == []
        assert left.wait(HANG)


@pytest.mark.parametrize(
    "answer",
    [
        OK + b"\r\n" + LIST,
        OK + b"Content-Length: 45\r\n\r\n" + LIST,
        OK + b"Transfer-Encoding: chunked\r\n\r\n2d\r\n" + LIST + b"\r\n0\r\n\r\n",
    ],
    ids=["closed", "length", "chunked"],
)
def test_a_local_server_is_found_however_it_frames_its_answer(answer: bytes):
    """Ended by its length, by chunks or by the end of the connection."""
    with listen(answer):
        models = [spec.partition("#")[2] for spec, _ in _local.find_local(5)]

    assert models == ["small"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "answer",
    [b"", b"\xff" * 100, OK + b"\r\n" + b"[" * 60_000, OK + b"\r\n{}", OK + b"\r\n" + LIST.replace(b"small", b"a?b")],
)
def test_what_is_no_list_of_models_is_nobody(answer: bytes):
    """Anything may listen there; only a list of models with a usable name is one."""
    with listen(answer):
        assert list(_local.find_local(5)) == []
