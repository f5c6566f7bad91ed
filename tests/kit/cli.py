"""The command line in this process, in a process of its own and on a terminal, and a provider for it to ask."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from adjudge.cli import main
from adjudge.config import judges as _local
from kit.patience import HANG

ESCAPES = "\x1b[31mred\x1b[0m\x1b]0;title\x07 \u202egnp.exe \u2066 \x00\x9b31m"
"""The characters that would colour, rename or reverse a terminal: escape sequences, direction marks, NUL and the C1
introducer."""

HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that must not reach standard output or standard error; newline and tab may."""


def find_user() -> str:
    """The operating system's user by its account, which no environment variable changes."""
    if os.name == "nt":
        return os.getlogin()
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"


ME = find_user()
"""The operating system's user, who decides and erases where nobody else is named."""


@dataclass(frozen=True)
class Ran:
    """The output and exit status of the command line."""

    status: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Standard output as the one JSON document it has to be."""
        return json.loads(self.out)

    @property
    def sentence(self) -> str:
        """Standard error as the one sentence it has to be; there is nothing on standard output then."""
        assert self.out == ""
        assert self.err.startswith("adjudge: ")
        assert self.err.count("\n") == 1, self.err
        assert "Traceback" not in self.err
        return self.err.removeprefix("adjudge: ").rstrip("\n")


class Line:
    """The command line in this process; its output is what pytest captures."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str | Path) -> Ran:
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main([str(item) for item in arguments])
        out, err = self._capsys.readouterr()
        return Ran(left.value.code, out, err)

    def vote(self, ident: str, *options: str, command: str = "approve") -> Ran:
        """Look at a request, in the ledger that the options name, and decide it as it was shown."""
        where = [item for name in ("--ledger", "--config", "--key") if name in options for item in _take(options, name)]
        looked = self("approvals", "show", ident, "--json", *where)
        seen = ("--seen", looked.document["shown"]) if looked.status == 0 else ()
        return self("approvals", command, ident, *options, *seen)


def _take(options: tuple[str, ...], name: str) -> tuple[str, ...]:
    place = options.index(name)
    return options[place : place + 2]


def isolate(monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
    """An empty working directory, and no key, no configuration, no proxy and no local server from outside."""
    for name in list(os.environ):
        if name.startswith(("ADJUDGE_", "FORCE_COLOR", "NO_COLOR")) or name.endswith(
            ("_API_KEY", "_BASE_URL", "_HOST")
        ):
            monkeypatch.delenv(name)
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setattr(_local, "LOCAL_PORTS", ())
    # What a server asks to be waited for is 0 here; without an answer the transport's own pause is taken out.
    monkeypatch.setattr("adjudge.models.providers.http.back_off", lambda *_: 0.0)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(directory)


def feed(monkeypatch: pytest.MonkeyPatch, data: bytes = b"", *, terminal: bool = False) -> None:
    """Standard input that holds some bytes, or is a terminal nobody types at."""

    class Input(io.TextIOWrapper):
        def isatty(self) -> bool:
            return terminal

    monkeypatch.setattr(sys, "stdin", Input(io.BytesIO(data), encoding="utf-8"))


def find_token(prompt: str) -> str:
    """The token of the fences in a prompt."""
    fence = re.search(r"<<(?:content|first) (\w{8})>>", prompt)
    assert fence is not None, prompt
    return fence[1]


def find_content(prompt: str) -> str:
    """Find what stands between the fences of the content."""
    block = re.search(r"<<content (\w{8})>>\n(.*)\n<<end content \1>>", prompt, re.DOTALL)
    assert block is not None, prompt
    return block[2]


def list_criteria(prompt: str) -> tuple[str, ...]:
    """The names of the criteria that a prompt asks about."""
    return tuple(re.findall(r"^\d+\. ([\w-]+)", prompt.partition("Rubric:")[2], re.MULTILINE)) or ("criteria",)


def answer(prompt: str, score: Any, *, names: tuple[str, ...] = (), reasoning: str = "because") -> str:
    """A readable reply to a prompt."""
    entries = {name: {"reasoning": reasoning, "score": score} for name in names or list_criteria(prompt)}
    return json.dumps({"token": find_token(prompt), "criteria": entries, "reasoning": reasoning, "suggestions": []})


def judge_words(prompt: str) -> str:
    """A judge for ``python:kit.cli:judge_words``: good passes, bad fails, anything else is no answer."""
    content = find_content(prompt)
    if "good" in content or "bad" in content:
        return answer(prompt, 1.0 if "good" in content else 0.0, reasoning=f"it says {content}")
    return "I cannot say."


at_once: list[int] = []
"""The numbers of calls of ``judge_slowly`` that were under way, at each of them."""
_under_way: set[int] = set()


async def judge_slowly(prompt: str) -> str:
    """A judge that passes everything after some turns of the loop."""
    number = len(at_once)
    _under_way.add(number)
    at_once.append(len(_under_way))
    for _ in range(20):
        await asyncio.sleep(0)
    _under_way.remove(number)
    return answer(prompt, 1.0)


WORDS = "python:kit.cli:judge_words"


@dataclass
class Provider:
    """A server that speaks OpenAI's format, in a thread: what it says, and what it was asked."""

    score: float = 1.0
    """The score it gives to every criterion."""
    reasoning: str = "because"
    mode: str = "answer"
    """``answer``, ``prose``, ``tokenless`` (an object without the token), ``hang``, ``hang card`` (judges, and says
    nothing of a model), ``wait`` (for ``release``), or the status of an error."""
    headers: Mapping[str, str] = field(default_factory=lambda: {"Retry-After": "0"})
    models: tuple[str, ...] = ("small",)
    """The models that it lists."""
    cards: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The cards of single models, by their names."""
    port: int = 0
    bodies: list[Any] = field(default_factory=list)
    """The requests, in order."""
    keys: list[str | None] = field(default_factory=list)
    described: list[str] = field(default_factory=list)
    """The models whose cards were asked for, in order."""
    usage: Callable[[str, str], Mapping[str, int]] = lambda _prompt, _reply: {
        "prompt_tokens": 9,
        "completion_tokens": 2,
    }
    """From all that was sent and what is replied to the tokens that it counts."""
    asked: threading.Event = field(default_factory=threading.Event)
    release: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def spec(self) -> str:
        """A model of this server."""
        return f"{self.url}#small"

    async def complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.bodies.append(body)
        self.keys.append(request.headers.get("Authorization"))
        self.asked.set()
        if self.mode == "hang":
            await asyncio.Event().wait()
        if self.mode == "wait":
            await asyncio.to_thread(self.release.wait, 30)
        if self.mode.isdigit():
            error = {"error": {"message": "the provider says no", "type": "server_error"}}
            return web.json_response(error, status=int(self.mode), headers=self.headers)
        return web.json_response(self.say(body))

    def say(self, body: Mapping[str, Any]) -> dict[str, Any]:
        prompt = "\n".join(message["content"] for message in body["messages"])
        schema = body.get("response_format", {}).get("json_schema", {}).get("schema", {})
        names = tuple(schema.get("properties", {}).get("criteria", {}).get("properties", {})) or ()
        text = answer(prompt, self.score, names=names, reasoning=self.reasoning)
        if self.mode == "prose":
            text = "It is fine, I think."
        if self.mode == "chatty":
            text += "\nThat is my verdict."
        if self.mode == "tokenless":
            text = json.dumps({key: value for key, value in json.loads(text).items() if key != "token"})
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        return {
            "id": "1",
            "model": "small-1",
            "choices": [choice],
            "usage": dict(self.usage(prompt + json.dumps(schema), text)),
        }

    async def list(self, _request: web.Request) -> web.StreamResponse:
        return web.json_response({"data": [{"id": name} for name in self.models]})

    async def describe(self, request: web.Request) -> web.StreamResponse:
        self.described.append(request.match_info["name"])
        if self.mode == "hang card":
            await asyncio.Event().wait()
        card = self.cards.get(request.match_info["name"])
        return web.json_response(card or {"error": "no such model"}, status=404 if card is None else 200)


@contextmanager
def serve(provider: Any = None, **options: Any) -> Iterator[Any]:
    """A provider, for as long as the block lasts: the one that is passed in, or else one with these options."""
    provider = provider or Provider(**options)
    loop = asyncio.new_event_loop()

    async def start() -> web.AppRunner:
        app = web.Application(client_max_size=2**26)
        app.router.add_post("/v1/chat/completions", provider.complete)
        app.router.add_post("/v1/messages", provider.complete)
        app.router.add_get("/v1/models", provider.list)
        app.router.add_get("/v1/models/{name}", provider.describe)
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        provider.port = runner.addresses[0][1]
        return runner

    runner = loop.run_until_complete(start())
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        provider.release.set()
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(HANG)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(HANG)
        loop.close()


def command(directory: Path) -> tuple[list[str], dict[str, str]]:
    """Return what starts the command line as installed: a script outside the working directory; and where."""
    spec = find_spec("adjudge")
    assert spec is not None
    assert spec.origin is not None
    script = directory / "bin" / "adjudge-script.py"
    script.parent.mkdir(exist_ok=True)
    script.write_text("from adjudge.cli import main\n\nmain()\n", encoding="utf-8")
    environment = dict(os.environ) | {"PYTHONPATH": str(Path(spec.origin).parents[1]), "PYTHONWARNINGS": "error"}
    return [sys.executable, str(script)], environment


def start(directory: Path, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    """The command line in a process of its own, in the working directory."""
    words, environment = command(directory)
    environment |= options.pop("env", {})
    pipes = {name: options.pop(name, subprocess.PIPE) for name in ("stdin", "stdout", "stderr")}
    return subprocess.Popen([*words, *arguments], env=environment, **pipes, **options)


def finish(process: subprocess.Popen[bytes], data: bytes = b"") -> Ran:
    """Return what a process did."""
    out, err = process.communicate(data, timeout=HANG)
    return Ran(process.returncode, (out or b"").decode(), (err or b"").decode())


def configure(text: str, path: str = "adjudge.toml") -> Path:
    file = Path(path)
    file.parent.mkdir(exist_ok=True, parents=True)
    file.write_text(text, encoding="utf-8")
    return file


def write(*rows: dict[str, Any], path: str = "data.jsonl") -> str:
    Path(path).write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path
