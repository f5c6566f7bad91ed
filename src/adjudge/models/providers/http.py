"""The one way out: POST over aiohttp, with retries, limits and sessions that close with their loop.

Whether an answer is tried again, and after which wait, is decided in ``models/retry.py`` (``may_retry``, ``back_off``).
"""

from __future__ import annotations

import asyncio
import io
import random as _random
import time
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from adjudge.concurrency import PerLoop
from adjudge.errors import ModelError, UsageError
from adjudge.models.model import UNBOUND, Call
from adjudge.models.providers.error import make_http_error, read_complaint
from adjudge.models.providers.key_redaction import redact_error
from adjudge.models.providers.route import find_proxy, make_connector
from adjudge.models.retry import LONGEST_WAIT, attempts_for, back_off, may_retry, read_wait

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL


LARGEST_REPLY = 8 * 2**20
"""Bytes of a reply that are read at most; the text of a judgement has some thousand."""


_LARGE = 2**20

Answer = tuple[int, Mapping[str, str], bytes]
"""HTTP status, headers (looked up without regard to case) and body."""


class Transport:
    """Posts bytes and returns what came back, asking again where that can help.

    One aiohttp session per running loop, opened at first use and closed with the loop or by ``aclose``. Proxy
    (``HTTP_PROXY``, ``HTTPS_PROXY``, ``NO_PROXY``) and CA variables (``SSL_CERT_FILE``, ``SSL_CERT_DIR``) are read
    when an address is first asked; this machine is asked without a proxy. There is no timeout for a whole request: the
    caller's ``asyncio.timeout`` covers retries too.

    ``sleep``, ``random``, ``clock`` and ``wall`` are parameters so that tests need not wait.
    """

    def __init__(
        self,
        *,
        max_concurrency: int | None = None,
        requests_per_minute: float | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: Callable[[], float] = _random.random,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.max_concurrency = max_concurrency
        self.requests_per_minute = requests_per_minute
        self._sleep, self._random, self._clock, self._wall = sleep, random, clock, wall
        self._open_lines()

    def __reduce__(self) -> tuple[Callable[..., Transport], tuple[()]]:
        # Connections belong to one process; another one opens its own, under the same limits.
        limits = {name: getattr(self, name) for name in ("max_concurrency", "requests_per_minute")}
        return partial(type(self), **limits), ()

    def divide(self, among: int) -> None:
        """Keep to one of so many equal shares of the limits, before anything is sent: other processes have the rest.

        Raises ``UsageError`` where a share would be no whole request at once.
        """
        if self.max_concurrency is not None:
            if self.max_concurrency < among:
                raise UsageError(
                    f"max_concurrency of {self.max_concurrency} cannot be shared out among {among} actors; use fewer "
                    "actors, or raise it",
                    argument="max_concurrency",
                )
            self.max_concurrency //= among
        if self.requests_per_minute is not None:
            self.requests_per_minute /= among
        self._open_lines()

    def _open_lines(self) -> None:
        # Not a method of ours: that would tie a knot, and a dropped model would wait for the garbage collector.
        make = partial(_LoopState, self.max_concurrency, throttled=self.requests_per_minute is not None)
        self._lines: PerLoop[_LoopState] = PerLoop(make, _LoopState.abandon)

    async def post(
        self,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        *,
        secrets: tuple[str, ...] = (),
        call: Call = UNBOUND,
    ) -> Answer:
        """Send ``body`` and return the answer whose status is final.

        Refused, reset and dropped connections, 408 and 5xx are tried 4 times in all, 429 10 times; what
        ``Retry-After`` asks for is waited. Raises ``ModelError`` when no answer comes, when it is larger than
        8 MB or compressed, and when the server asks for a wait of more than 60 seconds. ``secrets`` never stand in
        an error's message. ``call`` says who is told of each answer, and who pays for another try.
        """
        line = self._lines.get()
        if line.session is None:
            await line.open()
        failures: dict[int | None, int] = {}
        sent = False
        while True:
            answer = await self._try_once(line, url, headers, body, secrets)
            if call.pace is not None and not isinstance(answer, _Broken):
                call.pace.note(answer[0], answer[1])
            if not isinstance(answer, _Broken) and not may_retry(*answer):
                return answer
            sent = sent or not isinstance(answer, _Broken) or answer.sent
            kind = 429 if not isinstance(answer, _Broken) and answer[0] == 429 else None
            failures[kind] = failures.get(kind, 0) + 1
            if failures[kind] >= attempts_for(kind):
                if isinstance(answer, _Broken):
                    raise ModelError(str(answer), sent=sent)
                return answer
            if call.pay_again is not None and isinstance(answer, _Broken) and answer.sent:
                await call.pay_again()
            await self._sleep(self._find_wait(line.host(url), answer, failures[kind], secrets))

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> tuple[int, Mapping[str, str]]:
        """Send ``body`` once, and return status and headers of the answer, whose text is not read.

        For whoever has retries of its own. Raises ``ModelError`` when no answer comes.
        """
        line = self._lines.get()
        if line.session is None:
            await line.open()
        try:
            status, answer_headers, _ = await line.send(url, headers, body, (), read=False)
        except _Broken as broken:
            raise ModelError(str(broken), sent=broken.sent) from None
        return status, answer_headers

    async def ask_once(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        within: float,
        secrets: tuple[str, ...] = (),
        take: Callable[[bytes], None] | None = None,
    ) -> Answer:
        """Send one request of any method once, and return its answer, whatever its status.

        For whoever must know whether a request may have had its effect: nothing is sent again. ``within`` is seconds
        for all of it. With ``take``, the body of an answer of status 200 is handed to it in pieces, of any size in
        all, and not returned. Raises ``ModelError`` when no answer comes; ``sent`` is false where nothing left.
        """
        line = self._lines.get()
        if line.session is None:
            await line.open()
        try:
            async with asyncio.timeout(within):
                return await line.send(url, headers, body, secrets, method=method, take=take)
        except _Broken as broken:
            failed = ModelError(str(broken), sent=broken.sent)
        except TimeoutError:
            failed = ModelError(f"{line.host(url)} gave no answer within {within:g} s")
        raise failed

    async def aclose(self) -> None:
        """Close the running loop's session and its connections; the next request opens a new one."""
        line = self._lines.pop()
        if line is not None:
            await line.close()

    async def _try_once(
        self, line: _LoopState, url: str, headers: Mapping[str, str], body: bytes, secrets: tuple[str, ...]
    ) -> Answer | _Broken:
        """Send once, when a place and a turn are free; a connection that broke is returned and not raised."""
        try:
            if line.places is None and line.turns is None:
                return await line.send(url, headers, body, secrets)
            async with line.places or _FREE:
                await self._take_turn(line)
                return await line.send(url, headers, body, secrets)
        except _Broken as broken:
            return broken

    async def _take_turn(self, line: _LoopState) -> None:
        """Wait until the next request may begin; turns have equal distances by ``requests_per_minute``."""
        if line.turns is None or self.requests_per_minute is None:
            return
        # Whoever holds the lock waits for the next turn; a caller that is cancelled leaves the queue and costs
        # nobody a turn.
        async with line.turns:
            wait = line.next_turn - self._clock()
            if wait > 0:
                await self._sleep(wait)
            line.next_turn = max(line.next_turn, self._clock()) + 60.0 / self.requests_per_minute

    def _find_wait(self, host: str, answer: Answer | _Broken, attempt: int, secrets: tuple[str, ...]) -> float:
        """Find the seconds to wait before the next try: as many as the server asks for, else by ``back_off``.

        Raises ``ModelError`` for a server that asks for more than ``LONGEST_WAIT``.
        """
        seconds = None if isinstance(answer, _Broken) else read_wait(answer[1], self._wall)
        if seconds is None or isinstance(answer, _Broken):
            return back_off(attempt, self._random)
        if seconds > LONGEST_WAIT:
            reason = redact_error(read_complaint(answer[2]).message, secrets)
            wait = redact_error(f"{seconds:.0f}", secrets)
            raise ModelError(
                f"{host} answered {answer[0]} and asks to wait {wait} seconds, more than the {LONGEST_WAIT:.0f} "
                f"that are waited for" + (f": {reason}" if reason else ""),
                status=answer[0],
            )
        return seconds


class _Broken(Exception):
    """A connection that failed in a way another try may mend; its text is for the final error."""

    def __init__(self, message: str, *, sent: bool = True) -> None:
        super().__init__(message)
        self.sent = sent
        """True if any of the request may have left."""


class _Free:
    async def __aenter__(self) -> None:
        return None

    async def __aexit__(self, *exc: object) -> None:
        return None


_FREE = _Free()


@dataclass(frozen=True, slots=True)
class _Route:
    """The way in which an address is asked, found once for each: reading one takes longer than looking it up."""

    address: URL
    host: str
    """For messages."""
    proxy: URL | None
    options: Mapping[str, Any]
    """Further arguments of aiohttp's ``request``."""


class _LoopState:
    """The state of one event loop: its session, its places and its turns."""

    def __init__(self, max_concurrency: int | None, *, throttled: bool) -> None:
        self.max_concurrency = max_concurrency
        self.places = asyncio.Semaphore(max_concurrency) if max_concurrency else None
        self.turns = asyncio.Lock() if throttled else None
        self.next_turn = 0.0
        self.session: aiohttp.ClientSession | None = None
        self._keeper: AsyncGenerator[None, None] | None = None
        self._context: Any = None
        self._routes: dict[str, _Route] = {}

    async def open(self) -> None:
        """Open the session, and have it closed with the loop."""
        import aiohttp

        self.session = aiohttp.ClientSession(
            connector=make_connector(limit=0, limit_per_host=self.max_concurrency or 0),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=30.0),
            auto_decompress=False,
            # Not compressed: decompressing costs more than it saves on a judgement, and can be made a bomb.
            headers={"User-Agent": "adjudge", "Accept-Encoding": "identity", "Content-Type": "application/json"},
        )
        # A model that is dropped while its loop runs is closed by the generator below. Until then somebody outside
        # must hold the session, or the garbage collector finds both at once and the session complains first.
        weakref.finalize(self, _forget_session, self.session)
        # An asynchronous generator is the one thing a loop closes by itself (asyncio.run, shutdown_asyncgens).
        self._keeper = _hold_session(self.session)
        await anext(self._keeper)

    async def close(self) -> None:
        """Close the session now."""
        keeper, self._keeper, self.session = self._keeper, None, None
        if keeper is not None:
            await keeper.aclose()

    def abandon(self) -> None:
        """Mark the session of a closed loop as closed; its sockets went with the loop."""
        if self.session is None or self.session.closed:
            return
        closing = self.session.close()
        # Nothing can be awaited any more, and with a closed loop nothing needs to be.
        with suppress(StopIteration, RuntimeError):
            closing.send(None)
        closing.close()

    def host(self, url: str) -> str:
        """The host of an address, for messages."""
        return self._find_route(url).host

    async def send(
        self,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        secrets: tuple[str, ...],
        *,
        read: bool = True,
        method: str = "POST",
        take: Callable[[bytes], None] | None = None,
    ) -> Answer:
        """One request and its answer; whatever goes wrong leaves no connection in use. Raises ``ModelError``."""
        import aiohttp

        if self.session is None:
            raise ModelError("the model was closed while a request was waiting")
        route = self._find_route(url)
        host, proxy = route.host, route.proxy
        if proxy is not None and proxy.password:
            secrets = (*secrets, proxy.password)
        try:
            # As a file: of large bytes aiohttp warns that sending them would hold the loop up.
            payload = io.BytesIO(body) if body is not None and len(body) > _LARGE else body
            answer = await self.session.request(
                method, route.address, data=payload, headers=headers, allow_redirects=False, **route.options
            )
            try:
                if not read:
                    answer.close()
                    return answer.status, answer.headers, b""
                if take is not None and answer.status == 200:
                    await _pass_on(answer, host, secrets, take)
                    return answer.status, answer.headers, b""
                return answer.status, answer.headers, await _read_answer(answer, host, secrets)
            except BaseException:
                # Cancelled, too large or broken: the connection still carries the rest and must not be used again.
                answer.close()
                raise
        except aiohttp.ClientError as error:
            failed = _translate_error(host, error, secrets)
        # Out here, so that the error does not carry aiohttp's, which holds the headers that were sent: the key as well.
        raise failed

    def _find_route(self, url: str) -> _Route:
        route = self._routes.get(url)
        if route is None:
            if len(self._routes) >= 256:
                self._routes.clear()
            route = self._routes[url] = self._make_route(url)
        return route

    def _make_route(self, url: str) -> _Route:
        """Make the route of an address; the TLS context is made once for the loop, when it is first needed."""
        import ssl

        from yarl import URL

        address = URL(url)
        named_host = address.host if address.is_default_port() else address.host_port_subcomponent
        host = named_host or url
        proxy = find_proxy(address)
        options: dict[str, Any] = {} if proxy is None else {"proxy": proxy}
        if address.scheme == "https":
            # Made now and not by aiohttp, whose context is made at import and would miss SSL_CERT_FILE set later.
            self._context = self._context or ssl.create_default_context()
            options["ssl"] = self._context
        return _Route(address, host, proxy, options)


def _forget_session(session: aiohttp.ClientSession) -> None:
    """Nothing is left to do: the generator holds the session until it has closed it."""


async def _hold_session(session: aiohttp.ClientSession) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        await session.close()


def _check_encoding(answer: aiohttp.ClientResponse, host: str, secrets: tuple[str, ...]) -> None:
    encoding = answer.headers.get("Content-Encoding", "identity")
    if encoding.lower() != "identity":
        raise ModelError(
            f"{host} sent a reply compressed with {redact_error(encoding, secrets)!r} although it was asked not to "
            "compress; turn compression off at the server or proxy"
        )


async def _pass_on(
    answer: aiohttp.ClientResponse, host: str, secrets: tuple[str, ...], take: Callable[[bytes], None]
) -> None:
    _check_encoding(answer, host, secrets)
    async for piece in answer.content.iter_any():
        take(piece)


async def _read_answer(answer: aiohttp.ClientResponse, host: str, secrets: tuple[str, ...]) -> bytes:
    """Read the body of an answer, and nothing of one that is too large. Raises ``ModelError``."""
    _check_encoding(answer, host, secrets)
    size = answer.content_length
    if size is not None and size <= LARGEST_REPLY:
        return await answer.read()
    pieces, total = [], size or 0
    if size is None:
        async for piece in answer.content.iter_any():
            pieces.append(piece)
            total += len(piece)
            if total > LARGEST_REPLY:
                break
    if total > LARGEST_REPLY:
        raise ModelError(f"{host} sent a reply of more than {LARGEST_REPLY // 2**20} MB; nothing of it was read")
    return b"".join(pieces)


def _translate_error(host: str, error: aiohttp.ClientError, secrets: tuple[str, ...]) -> Exception:
    """Translate the error of a failed request: ``_Broken`` where another try may help, else an error for the caller.

    Only the kind of failure and the system's words are repeated: aiohttp's own messages hold addresses of proxies,
    which may hold a password.
    """
    import aiohttp

    if isinstance(error, aiohttp.ClientSSLError | aiohttp.ServerFingerprintMismatch):
        reason = redact_error(str(getattr(error, "os_error", "") or getattr(error, "certificate_error", "")), secrets)
        return ModelError(
            f"{host}: the TLS connection could not be trusted ({reason}); a private CA goes into SSL_CERT_FILE"
        )
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return make_http_error(f"the proxy for {host}", error.status, error.message, secrets)
    if isinstance(error, aiohttp.InvalidURL):
        return UsageError(f"{host!r} is not an address that can be asked")
    if isinstance(error, aiohttp.ClientResponseError):
        return ModelError(f"{host} sent something that is not HTTP ({type(error).__name__})")
    return _find_break(host, error, secrets) or ModelError(f"{host} could not be asked ({type(error).__name__})")


def _find_break(host: str, error: aiohttp.ClientError, secrets: tuple[str, ...]) -> _Broken | None:
    """Find the failure that another try may mend; ``None`` for any other error.

    It is marked as not sent only where the connection was never made, so that nothing can have been paid for.
    """
    import aiohttp

    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return _Broken(f"{host}: the name could not be resolved", sent=False)
    cause = _name_cause(error, secrets)
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return _Broken(f"the proxy for {host} could not be reached ({cause})", sent=False)
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ServerTimeoutError):
        sent = not isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)
        return _Broken(f"{host} could not be reached ({cause})", sent=sent)
    if isinstance(error, aiohttp.ClientConnectionError | aiohttp.ClientPayloadError):
        return _Broken(f"{host} closed the connection before the reply was complete ({cause})")
    return None


def _name_cause(error: aiohttp.ClientError, secrets: tuple[str, ...]) -> str:
    cause = getattr(error, "os_error", error)
    return redact_error(getattr(cause, "strerror", None) or type(error).__name__, secrets)
