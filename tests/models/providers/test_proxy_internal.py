"""Requests to this machine go to it and to nobody else; requests to any other host go through the proxy that is set."""

from __future__ import annotations

import ast
import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from yarl import URL

from adjudge import AdjudgeError, Approvals, Judge, open_model
from adjudge.cli.mcp_servers import open_server, read_server
from adjudge.client import Client
from adjudge.formats.loopback import is_this_machine, normalise_loopback
from adjudge.guards import Webhook
from adjudge.models import find_retirement
from adjudge.models.batch.open import open_batch_api
from adjudge.models.providers.http import Transport
from adjudge.models.providers.proxy import find_proxy
from kit.patience import HANG
from kit.wire import PLAIN

pytestmark = pytest.mark.timed


KEY = "sk-0123456789abcdefghijklmnop"
CONTENT = "what only this machine may read"

SPELLINGS = (
    "127.0.0.1",
    "0x7f.0.0.1",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "app.localhost",
    "a.b.LocalHost.",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::FFFF:7f00:1]",
    "\uff11\uff12\uff17.0.0.1",
    "127\u30020\u30020\u30021",
)

REFUSED = ("127.1", "2130706433", "0177.0.0.1")
"""Spellings that the HTTP client refuses by itself."""

MORE_SPELLINGS = (*REFUSED, "127.0.0.2", "127.255.255.254", "127.0.1", "0x7F000001", "017700000001", "[::1%251]")

OTHERS = (
    "api.example",
    "localhost.example",
    "notlocalhost",
    "localhost.evil.example",
    "127.0.0.1.example",
    "128.0.0.1",
    "126.255.255.255",
    "10.0.0.1",
    "169.254.169.254",
    "[::2]",
    "[::ffff:10.0.0.1]",
    "[fe80::1]",
    "3232235777",
)


@dataclass(slots=True)
class Listener:
    """What a port of this machine receives; it answers each request with the same bytes."""

    answer: bytes
    port: int = 0
    received: list[bytes] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            if data := await reader.read(65_536):
                self.received.append(data)
                writer.write(self.answer)
                await writer.drain()
        writer.close()


def write_answer(status: str, body: bytes = b"{}", more: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n{more}\r\n".encode() + body


@asynccontextmanager
async def listen(listener: Listener) -> AsyncIterator[Listener]:
    """Listen on 127.0.0.1 and, on the same port, on ::1."""
    server = await asyncio.start_server(listener.serve, "127.0.0.1", 0)
    listener.port = server.sockets[0].getsockname()[1]
    second = None
    with suppress(OSError):
        second = await asyncio.start_server(listener.serve, "::1", listener.port, family=socket.AF_INET6)
    try:
        yield listener
    finally:
        server.close()
        if second is not None:
            second.close()


def has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


def set_proxy(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{port}")
        monkeypatch.setenv(name.lower(), f"http://127.0.0.1:{port}")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MY_KEY", KEY)


async def ask_ledger(url: str) -> None:
    async with Client(url, key=KEY, allow_http=True, timeout=HANG) as client:
        await client.ledger().head()


async def ask_gate(url: str) -> None:
    async with Client(url, key=KEY, allow_http=True, timeout=HANG) as client:
        await client.gate("publish").check(CONTENT)


async def ask_judge(url: str) -> None:
    async with Client(url, key=KEY, allow_http=True, timeout=HANG) as client:
        await client.judge().evaluate(CONTENT, criteria="Polite.")


async def download_ledger(url: str) -> None:
    async with (
        Client(url, key=KEY, allow_http=True, timeout=HANG) as client,
        client.connection.download("v1") as response,
    ):
        assert response


async def ask_server(url: str) -> None:
    async with open_model(f"{url}/v1?key_env=MY_KEY#m") as model:
        await model.complete(PLAIN)


async def ask_provider(url: str) -> None:
    async with open_model("openai:gpt-x", base_url=f"{url}/v1", key_env="MY_KEY") as model:
        await model.complete(PLAIN)


async def ask_ollama(url: str) -> None:
    async with open_model("ollama:m", base_url=f"{url}/v1") as model:
        await model.complete(PLAIN)


async def list_batches(url: str) -> None:
    async with open_model("openai:gpt-x", base_url=f"{url}/v1", key_env="MY_KEY") as model:
        await open_batch_api(model).list_jobs(0.0)


async def call_webhook(url: str) -> None:
    transport = Transport()
    Webhook(url.replace("http://", "https://"), secret="a secret of enough bytes")
    await transport.send(url, {"webhook-signature": KEY}, CONTENT.encode())
    await transport.aclose()


async def read_models(url: str) -> None:
    transport = Transport()
    await transport.ask_once("GET", f"{url}/v1/models", {"Authorization": KEY}, within=HANG)
    await transport.aclose()


async def pin_tools(url: str) -> None:
    pytest.importorskip("mcp")
    await read_server([f"{url}/mcp"], HANG)


async def probe_tools(url: str) -> None:
    pytest.importorskip("mcp")
    async with open_server([f"{url}/mcp"], HANG):
        pass


CALLS: dict[str, Callable[[str], Awaitable[None]]] = {
    call.__name__: call
    for call in (
        ask_ledger,
        ask_gate,
        ask_judge,
        download_ledger,
        ask_server,
        ask_provider,
        ask_ollama,
        list_batches,
        call_webhook,
        read_models,
        pin_tools,
        probe_tools,
    )
}


def ask(
    call: Callable[[str], Awaitable[None]], url: str, monkeypatch: pytest.MonkeyPatch, answer: bytes = b""
) -> tuple[Listener, Listener]:
    """What this machine's port and the proxy received while something was asked."""
    target = Listener(answer or write_answer("400 Bad Request"))
    proxy = Listener(write_answer("400 Bad Request"))

    async def run() -> None:
        async with listen(target), listen(proxy):
            set_proxy(monkeypatch, proxy.port)
            # Whether it is asked again is what other tests hold; here nobody waits for it.
            monkeypatch.setattr("adjudge.client.connection._FIRST_PAUSE", 0.0)
            monkeypatch.setattr("adjudge.models.providers.http.back_off", lambda *_: 0.0)
            with suppress(AdjudgeError):
                await call(url.replace("PORT", str(target.port)))

    asyncio.run(run())
    return target, proxy


@pytest.mark.matrix
@pytest.mark.parametrize("host", SPELLINGS)
@pytest.mark.parametrize("call", CALLS)
def test_what_is_sent_to_this_machine_goes_to_no_proxy(call: str, host: str, monkeypatch: pytest.MonkeyPatch):
    """However its name is spelt, and whoever asks: the request arrives, and the proxy receives no byte."""
    if "::" in host and not has_ipv6():
        pytest.skip("no IPv6 on this machine")
    target, proxy = ask(CALLS[call], f"http://{host}:PORT", monkeypatch)

    assert target.received
    assert proxy.received == []


@pytest.mark.parametrize("host", REFUSED)
@pytest.mark.parametrize("call", CALLS)
def test_a_spelling_that_is_refused_is_shown_to_nobody(call: str, host: str, monkeypatch: pytest.MonkeyPatch):
    """Nor does a proxy receive what this machine does not."""
    assert ask(CALLS[call], f"http://{host}:PORT", monkeypatch)[1].received == []


@pytest.mark.parametrize("host", ["127.0.0.1", "app.localhost", "[::1]"])
@pytest.mark.parametrize("call", ["ask_ledger", "ask_provider", "read_models"])
def test_no_tunnel_to_this_machine_is_asked_for(call: str, host: str, monkeypatch: pytest.MonkeyPatch):
    """Over https, a proxy would learn the address and be asked to connect."""
    _, proxy = ask(CALLS[call], f"https://{host}:PORT", monkeypatch)

    assert proxy.received == []


@pytest.mark.parametrize("call", CALLS)
def test_what_is_sent_to_another_machine_still_goes_through_the_proxy(call: str, monkeypatch: pytest.MonkeyPatch):
    """The proxy is asked for the whole address."""
    target, proxy = ask(CALLS[call], "http://models.example:8080", monkeypatch)

    assert proxy.received
    assert b" http://models.example:8080" in proxy.received[0]
    assert target.received == []


@pytest.mark.parametrize("call", CALLS)
def test_a_redirect_is_not_followed(call: str, monkeypatch: pytest.MonkeyPatch):
    """A port of this machine cannot have the key or the content sent anywhere else."""
    away = write_answer("307 Temporary Redirect", more="Location: http://models.example:8080/\r\n")
    target, proxy = ask(CALLS[call], "http://127.0.0.1:PORT", monkeypatch, away)

    assert target.received
    assert proxy.received == []


def test_a_webhook_to_this_machine_is_delivered_past_the_proxy(tmp_path: Any, monkeypatch: pytest.MonkeyPatch):
    """By approvals, with their own queue of deliveries."""

    async def approve(url: str) -> None:
        hook = Webhook(f"{url}/hook", secret="a secret of enough bytes", retries=0)
        async with Approvals(f"sqlite:///{tmp_path / 'a.db'}", webhook=hook) as approvals:
            judge = Judge(lambda prompt: "no", name="j", token=False)
            result = await judge.evaluate(CONTENT, criteria="Polite.")
            await approvals.request(result, "May this go out?", approvers=["Ana"])
            await approvals.aclose()

    target, proxy = ask(approve, "http://app.localhost:PORT", monkeypatch)

    assert target.received
    assert proxy.received == []


def test_no_proxy_hears_of_a_retirement_that_is_asked_for_here(monkeypatch: pytest.MonkeyPatch):
    """An address of one's own is not asked at all."""

    async def look(url: str) -> None:
        async with open_model("openai:gpt-x", base_url=f"{url}/v1", key_env="MY_KEY") as model:
            assert await find_retirement(model) is None

    target, proxy = ask(look, "http://127.0.0.1:PORT", monkeypatch)

    assert (target.received, proxy.received) == ([], [])


@pytest.mark.parametrize("host", SPELLINGS + MORE_SPELLINGS)
def test_the_hosts_that_are_this_machine(host: str, monkeypatch: pytest.MonkeyPatch):
    """In every spelling that a connection takes for a loopback address."""
    set_proxy(monkeypatch, 1)

    assert normalise_loopback(host.replace("%25", "%")) is not None
    assert find_proxy(URL(f"http://{host}:8000/v1")) is None
    assert find_proxy(URL(f"https://{host}/v1")) is None


@pytest.mark.parametrize("host", OTHERS)
def test_the_hosts_that_are_another_machine(host: str, monkeypatch: pytest.MonkeyPatch):
    """A name that only looks like this machine's is asked through the proxy."""
    set_proxy(monkeypatch, 1)

    assert not is_this_machine(host)
    assert normalise_loopback(host) is None
    assert find_proxy(URL(f"http://{host}:8000/v1")) == URL("http://127.0.0.1:1")


def test_an_old_spelling_of_an_address_is_not_trusted_with_clear_text():
    """Not everybody reads it alike; no proxy gets what is sent to it all the same."""
    old = [host for host in (*SPELLINGS, *MORE_SPELLINGS) if not is_this_machine(host.replace("%25", "%"))]

    assert old == ["0x7f.0.0.1", "127.1", "2130706433", "0177.0.0.1", "127.0.1", "0x7F000001", "017700000001"]


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]"])
def test_an_address_that_stands_for_all_of_this_machine_has_no_proxy(host: str, monkeypatch: pytest.MonkeyPatch):
    """A connection to it reaches this machine, but a server that listens there can be reached by others."""
    set_proxy(monkeypatch, 1)

    assert find_proxy(URL(f"http://{host}:8000/")) is None
    assert not is_this_machine(host)


def test_a_host_can_be_exempt(monkeypatch: pytest.MonkeyPatch):
    """As NO_PROXY says, for any host."""
    set_proxy(monkeypatch, 1)
    monkeypatch.setenv("no_proxy", "models.example")

    assert find_proxy(URL("http://models.example/")) is None
    assert find_proxy(URL("http://other.example/")) == URL("http://127.0.0.1:1")


def test_no_module_opens_connections_past_the_function_that_decides():
    """A session that reads the proxy variables by itself would send this machine's requests to the proxy."""
    from kit import house

    trees = {
        path.relative_to(house.ROOT).as_posix(): ast.parse(path.read_text("utf-8")) for path in house.package_files()
    }
    calls = [(name, node) for name, tree in trees.items() for node in ast.walk(tree) if isinstance(node, ast.Call)]
    clients = {name for name, call in calls if name_function(call) in CLIENTS}

    assert [(name, call.lineno) for name, call in calls if opens_past(call)] == []
    assert clients == {
        "src/adjudge/cli/mcp_servers.py",
        "src/adjudge/client/connection.py",
        "src/adjudge/config/judges.py",
        "src/adjudge/models/providers/http.py",
    }


CLIENTS = {"ClientSession": True, "AsyncClient": False, "streamable_http_client": False}
"""What opens connections over HTTP, and if it leaves the proxy variables alone by itself."""


def name_function(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def opens_past(call: ast.Call) -> bool:
    """True of a call by which the proxy variables of the environment could decide."""
    given = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
    name = name_function(call)
    if name == "streamable_http_client":
        return "http_client" not in given
    if name in CLIENTS:
        return given.get("trust_env", "False" if CLIENTS[name] else "True") != "False"
    return name in ("urlopen", "build_opener", "sse_client")


@pytest.mark.parametrize(
    ("line", "is_past"),
    [
        ("urllib.request.urlopen(url)", True),
        ("aiohttp.ClientSession(trust_env=True)", True),
        ("aiohttp.ClientSession(connector=c)", False),
        ("httpx2.AsyncClient()", True),
        ("httpx2.AsyncClient(trust_env=False)", False),
        ("streamable_http_client(url)", True),
        ("streamable_http_client(url, http_client=client)", False),
    ],
)
def test_a_call_that_goes_by_the_environment_is_found(line: str, is_past: bool):
    """The check above would notice one."""
    call = ast.parse(line, mode="eval").body

    assert isinstance(call, ast.Call)
    assert opens_past(call) == is_past
