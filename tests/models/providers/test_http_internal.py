"""The transport against a real server: retries, limits, closing, and what is refused."""

from __future__ import annotations

import asyncio
import gc
import random
import socket
import ssl
import subprocess
import warnings
from email.utils import formatdate
from pathlib import Path
from shutil import which

import pytest
from aiohttp import web

from adjudge import ModelError
from adjudge.models import open_model
from adjudge.models.providers.catalog import SERVER, Endpoint
from adjudge.models.providers.http import LARGEST_REPLY, Transport
from adjudge.models.providers.openai import OpenAICompatible
from kit.judges import names
from kit.patience import HANG
from kit.wire import PLAIN, Scripted, Waits, break_off, completion, error, reset, serve

pytestmark = pytest.mark.timed


GOOD = (200, {}, completion())


ELSEWHERE = "http://models.invalid/v1"
"""An address of another machine, which only a proxy could reach."""


def model_at(server: Scripted, waits: Waits | None = None, *, url: str | None = None, **options) -> OpenAICompatible:
    """A model of the scripted server, or of another address, whose transport does not really wait."""
    waits = waits or Waits()
    transport = Transport(sleep=waits.sleep, random=lambda: 1.0, clock=waits.clock, wall=waits.clock, **options)
    return OpenAICompatible("m", endpoint=Endpoint(provider=SERVER, base_url=url or server.url), transport=transport)


def ask(*steps, **options) -> tuple[str | ModelError, Scripted, list[float]]:
    """What a model says to a script, with the server and the waits in between."""

    async def run():
        waits = Waits()
        async with serve(*steps) as server, model_at(server, waits, **options) as model:
            try:
                reply = await model.complete(PLAIN)
            except ModelError as refusal:
                return refusal, server, waits.seconds
            return reply.text, server, waits.seconds

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("headers", "waited"),
    [
        pytest.param({"Retry-After": "3"}, 3.0, id="seconds"),
        pytest.param({"Retry-After": "0.25"}, 0.25, id="fraction"),
        pytest.param({"retry-after-ms": "1500", "Retry-After": "9"}, 1.5, id="milliseconds-first"),
        pytest.param({"Retry-After": formatdate(1020, usegmt=True)}, 20.0, id="http-date"),
        pytest.param({"Retry-After": formatdate(900, usegmt=True)}, 0.5, id="past-date"),
        pytest.param({"Retry-After": "0"}, 0.5, id="zero"),
        pytest.param({"Retry-After": "nan"}, 0.5, id="nan"),
        pytest.param({"Retry-After": "-5"}, 0.5, id="negative"),
        pytest.param({"Retry-After": "soon"}, 0.5, id="words"),
        pytest.param({}, 0.5, id="absent"),
    ],
)
def test_a_throttled_request_waits_as_long_as_asked(headers, waited):
    """429 is asked again after Retry-After in any of its forms; unreadable ones mean an ordinary back-off."""
    answer, server, waits = ask((429, headers, error("slow down")), GOOD)

    assert answer == "fine"
    assert waits == [pytest.approx(waited)]
    assert len(server.bodies) == 2


@pytest.mark.parametrize("value", ["61", "86400", "999999999"], ids=str)
def test_a_wait_of_over_a_minute_is_given_up(value):
    """A server that asks for more than 60 seconds is not waited for, and the error says so."""
    answer, server, waits = ask((429, {"Retry-After": value}, error("daily limit")), GOOD)

    assert isinstance(answer, ModelError)
    assert answer.status == 429
    assert f"127.0.0.1:{server.port} answered 429 and asks to wait {value} seconds" in str(answer)
    assert "daily limit" in str(answer)
    assert (waits, len(server.bodies)) == ([], 1)


def test_429_is_tried_10_times_in_all():
    """A server that stays busy is asked ten times, with a back-off that doubles up to 16 seconds."""
    answer, server, waits = ask((429, {}, error("busy")))

    assert isinstance(answer, ModelError)
    assert answer.status == 429
    assert len(server.bodies) == 10
    assert waits == [0.5, 1, 2, 4, 8, 16, 16, 16, 16]


@pytest.mark.parametrize("status", [408, 500, 502, 503, 529])
def test_a_broken_server_is_tried_4_times_in_all(status):
    """408 and 5xx are asked four times; the error names host, status and the server's words."""
    answer, server, waits = ask((status, {}, error("out of order")))

    assert isinstance(answer, ModelError)
    assert str(answer) == f"127.0.0.1:{server.port} answered {status}: out of order"
    assert answer.status == status
    assert (len(server.bodies), waits) == (4, [0.5, 1, 2])


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 422])
def test_other_statuses_are_not_asked_again(status):
    """What the provider will answer the same way again is not asked again."""
    answer, server, _ = ask((status, {}, error("no")))

    assert isinstance(answer, ModelError)
    assert (answer.status, len(server.bodies)) == (status, 1)


def test_a_provider_that_says_not_to_retry_is_heeded():
    """x-should-retry: false and an exhausted quota are final, whatever the status."""
    for step in ((500, {"x-should-retry": "false"}, error("no")), (429, {}, error("no", code="insufficient_quota"))):
        answer, server, _ = ask(step)
        assert isinstance(answer, ModelError)
        assert len(server.bodies) == 1


@pytest.mark.parametrize("fault", [reset, break_off], ids=["reset", "half a body"])
def test_a_broken_connection_is_mended(fault):
    """A reset or truncated answer is asked for again; after the fourth the error says what happened."""
    assert ask(fault, fault, fault, GOOD)[0] == "fine"

    answer, server, waits = ask(fault)
    assert isinstance(answer, ModelError)
    assert answer.status is None
    assert f"127.0.0.1:{server.port} closed the connection" in str(answer)
    assert (len(server.bodies), len(waits)) == (4, 3)


def test_a_refused_connection_is_an_error_after_4_tries():
    """Where nobody listens, the error names the address."""

    async def run():
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        waits = Waits()
        async with model_at(Scripted([], port=port), waits) as model:
            with pytest.raises(ModelError, match=f"127.0.0.1:{port} could not be reached"):
                await model.complete(PLAIN)
        return waits.seconds

    assert len(asyncio.run(run())) == 3


async def flood(request: web.Request) -> web.StreamResponse:
    """Send more than is read, without saying how much it will be."""
    response = web.StreamResponse()
    response.enable_chunked_encoding()
    await response.prepare(request)
    for _ in range(LARGEST_REPLY // 2**16 + 2):
        await response.write(b" " * 2**16)
    return response


@pytest.mark.parametrize("step", [(200, {}, b" " * (LARGEST_REPLY + 1)), flood], ids=["announced", "chunked"])
def test_a_reply_that_is_too_large_is_not_read(step):
    """More than 8 MB is refused, whether announced or not, and not asked for again."""
    answer, _, waits = ask(step)

    assert isinstance(answer, ModelError)
    assert "more than 8 MB" in str(answer)
    assert waits == []


def test_a_compressed_reply_is_refused():
    """Nothing compressed was asked for, and decompressing could be made a bomb."""
    answer, server, _ = ask((200, {"Content-Encoding": "gzip"}, b"x"))

    assert "compressed" in str(answer)
    assert server.headers[0]["Accept-Encoding"] == "identity"


def test_redirects_are_not_followed():
    """A redirect would carry the key to another host."""
    answer, server, _ = ask((307, {"Location": "/elsewhere"}, b""), GOOD)

    assert isinstance(answer, ModelError)
    assert "redirects are not followed" in str(answer)
    assert server.paths == ["/v1/chat/completions"]


def test_something_that_is_not_http_is_an_error():
    """A server that speaks another protocol is named, and its bytes are not repeated."""

    async def run():
        async def talk(reader, writer):
            await reader.read(10)
            writer.write(b"\x00\x1b[31mSSH-2.0 secret\r\n\r\n")
            writer.close()

        async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            async with model_at(Scripted([], port=port)) as model:
                with pytest.raises(ModelError) as caught:
                    await model.complete(PLAIN)
        return str(caught.value), port

    answer, port = asyncio.run(run())
    assert names(answer, f"127.0.0.1:{port}", "not HTTP", "ClientResponseError")


def test_cancelling_closes_the_connection():
    """The server sees a cancelled request go away; it is not left running at the provider's cost."""

    async def run():
        arrived, gone = asyncio.Event(), asyncio.Event()

        async def hang(request):
            arrived.set()
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                gone.set()
                raise

        async with serve(hang) as server, model_at(server) as model:
            task = asyncio.create_task(model.complete(PLAIN))
            await arrived.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            async with asyncio.timeout(HANG):
                await gone.wait()

    asyncio.run(run())


def test_4000_cancelled_requests_leave_a_pool_that_serves():
    """After a storm of cancellations on 10 connections, 60 of 60 plain requests are answered."""
    chance = random.Random(1)

    async def slow(request):
        await asyncio.sleep(0.004)
        return web.json_response(completion())

    async def give_up(model):
        try:
            async with asyncio.timeout(chance.uniform(0, 0.02)):
                await model.complete(PLAIN)
        except TimeoutError:
            return 1
        return 0

    async def run():
        async with serve(slow) as server, model_at(server, max_concurrency=10) as model:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(give_up(model)) for _ in range(4000)]
            async with asyncio.timeout(HANG), asyncio.TaskGroup() as group:
                served = [group.create_task(model.complete(PLAIN)) for _ in range(60)]
            return sum(task.result() for task in tasks), sum(task.result().text == "fine" for task in served)

    cancelled, served = asyncio.run(run())
    assert cancelled > 3500
    assert served == 60


def meet(count):
    """A handler that answers nobody before ``count`` requests are there at once."""
    barrier = asyncio.Barrier(count)

    async def handle(request):
        async with barrier:
            return web.json_response(completion())

    return handle


@pytest.mark.slow
def test_300_requests_are_in_flight_at_once():
    """Without a limit there is none: 300 requests that wait for each other are all answered."""

    async def run():
        async with serve(meet(300)) as server, model_at(server) as model:
            async with asyncio.timeout(HANG), asyncio.TaskGroup() as group:
                for _ in range(300):
                    group.create_task(model.complete(PLAIN))
            return server.most_in_flight

    assert asyncio.run(run()) == 300


def test_max_concurrency_is_kept_and_reached():
    """Never more than four at once, and four at once."""

    async def run():
        async with serve(meet(4)) as server, model_at(server, max_concurrency=4) as model:
            async with asyncio.TaskGroup() as group:
                for _ in range(40):
                    group.create_task(model.complete(PLAIN))
            return server.most_in_flight

    assert asyncio.run(run()) == 4


def test_requests_per_minute_are_spaced_evenly():
    """120 a minute is one every half second; who gives up while waiting costs nobody a turn."""

    async def run():
        waits = Waits()
        async with serve(GOOD) as server, model_at(server, waits, requests_per_minute=120) as model:
            for _ in range(5):
                await model.complete(PLAIN)
            given_up = [asyncio.create_task(model.complete(PLAIN)) for _ in range(50)]
            await asyncio.sleep(0)
            for task in given_up:
                task.cancel()
            await asyncio.wait(given_up)
            await model.complete(PLAIN)
        return waits.seconds, len(server.bodies)

    waited, served = asyncio.run(run())
    assert waited == [pytest.approx(0.5)] * 5
    assert served == 6


def test_two_loops_leave_no_warning():
    """One model used under two asyncio.run: each loop closes its own session, and nothing is left behind."""
    ports = []

    async def run(model):
        return (await model.complete(PLAIN)).text

    async def both():
        async with serve(GOOD) as server:
            ports.append(server.port)
            model = open_model(f"{server.url}#m")
            return model, await asyncio.to_thread(lambda: [asyncio.run(run(model)) for _ in range(2)])

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model, answer = asyncio.run(both())
        del model
        gc.collect()

    assert answer == ["fine", "fine"]
    assert [str(item.message) for item in caught if "Unclosed" in str(item.message)] == []


def test_a_loop_closed_without_care_does_not_break_the_next():
    """Where a loop is closed without shutting down its generators, its session is marked closed at the next use."""

    def run_badly(model):
        loop = asyncio.new_event_loop()
        try:
            return loop.run_until_complete(model.complete(PLAIN)).text
        finally:
            loop.close()

    async def both():
        async with serve((200, {"Connection": "close"}, completion())) as server:
            model = open_model(f"{server.url}#m")
            return await asyncio.to_thread(lambda: [run_badly(model), asyncio.run(model.complete(PLAIN)).text])

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        answer = asyncio.run(both())
        gc.collect()

    assert answer == ["fine", "fine"]
    assert [str(item.message) for item in caught if "Unclosed client session" in str(item.message)] == []


@pytest.mark.parametrize("tied", [False, True])
def test_a_model_dropped_while_its_loop_runs_is_closed(tied):
    """Nobody has to close a model: also one that only the garbage collector finds complains of nothing."""

    async def drop():
        async with serve(GOOD) as server:
            model = open_model(f"{server.url}#m")
            await model.complete(PLAIN)
            knot = [model] if tied else []
            knot.append(knot)
            del model, knot
            gc.collect()
            await asyncio.sleep(0)
            gc.collect()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        asyncio.run(drop())
        gc.collect()

    assert [str(item.message) for item in caught if "Unclosed" in str(item.message)] == []


def test_a_closed_model_opens_again():
    """Closing ends connections, not the model."""

    async def run():
        async with serve(GOOD) as server:
            model = model_at(server)
            first = await model.complete(PLAIN)
            await model.aclose()
            await model.aclose()
            second = await model.complete(PLAIN)
            await model.aclose()
            return first.text, second.text

    assert asyncio.run(run()) == ("fine", "fine")


def test_a_proxy_is_used_unless_the_host_is_exempt(monkeypatch):
    """HTTP_PROXY is asked for the whole address, with its own credentials; NO_PROXY is obeyed."""

    async def run(exempt):
        async with serve((200, {}, completion("direct"))) as server, serve((200, {}, completion("proxied"))) as proxy:
            monkeypatch.setenv("HTTP_PROXY", f"http://me:pw@127.0.0.1:{proxy.port}")
            monkeypatch.setenv("http_proxy", f"http://me:pw@127.0.0.1:{proxy.port}")
            monkeypatch.setenv("no_proxy", exempt)
            monkeypatch.setenv("NO_PROXY", exempt)
            async with model_at(server, url=ELSEWHERE) as model:
                return (await model.complete(PLAIN)).text, proxy

    answer, proxy = asyncio.run(run(""))
    assert answer == "proxied"
    assert proxy.paths[0].startswith("http://models.invalid/")
    assert proxy.headers[0]["Proxy-Authorization"].startswith("Basic ")
    with pytest.raises(ModelError, match="the name could not be resolved"):
        asyncio.run(run("models.invalid"))


def test_an_unreachable_proxy_is_named_without_its_password(monkeypatch):
    """The error says that it is the proxy, and holds none of its credentials."""
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "http://me:hunter2@127.0.0.1:1")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "")

    async def run():
        async with model_at(Scripted([]), url=ELSEWHERE) as model:
            with pytest.raises(ModelError) as caught:
                await model.complete(PLAIN)
        return str(caught.value)

    answer = asyncio.run(run())
    assert "the proxy for models.invalid could not be reached" in answer
    assert "hunter2" not in answer


def make_certificate(folder: Path) -> Path:
    """A self-signed certificate for 127.0.0.1, with its key in the same file."""
    path = folder / "own.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    subprocess.run([*command, *names, "-keyout", path, "-out", folder / "c.pem"], check=True, capture_output=True)
    path.write_text(path.read_text() + (folder / "c.pem").read_text())
    return path


@pytest.mark.integration
def test_a_private_ca_is_taken_from_the_environment(monkeypatch, tmp_path, require):
    """An unknown certificate is refused, without a retry, until SSL_CERT_FILE names it."""
    require("openssl", which("openssl"), "install openssl")
    certificate = make_certificate(tmp_path)

    async def run():
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate)
        waits = Waits()
        async with serve(GOOD, ssl=context) as server:
            endpoint = Endpoint(provider=SERVER, base_url=server.url.replace("http:", "https:"))
            async with OpenAICompatible("m", endpoint=endpoint, transport=Transport(sleep=waits.sleep)) as model:
                try:
                    return (await model.complete(PLAIN)).text, waits.seconds
                except ModelError as refusal:
                    return str(refusal), waits.seconds

    message, waited = asyncio.run(run())
    assert "could not be trusted" in message
    assert "SSL_CERT_FILE" in message
    assert waited == []

    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert asyncio.run(run())[0] == "fine"
