"""HTTP requests to providers over aiohttp, with retries, limits and sessions that close with their event loop.

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
from adjudge.models.providers.error import make_http_error, read_error_body
from adjudge.models.providers.key_redaction import redact_error
from adjudge.models.providers.proxy import find_proxy, make_connector
from adjudge.models.retry import LONGEST_WAIT, back_off, count_attempts, may_retry, read_wait

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL


LARGEST_REPLY = 8 * 2**20
"""Bytes of a reply that are read at most; the text of a judgement has some thousand."""


_LARGE_BODY = 2**20

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
        self._make_states()

    def __reduce__(self) -> tuple[Callable[..., Transport], tuple[()]]:
        # Pickled without connections, which belong to one process; another process opens its own.
        limits = {name: getattr(self, name) for name in ("max_concurrency", "requests_per_minute")}
        return partial(type(self), **limits), ()

    def divide(self, among: int) -> None:
        """Keep to one of ``among`` equal shares of the limits; other processes have the other shares.

        It is called before anything is sent. Raises ``UsageError`` where a share would be less than one request at
        once.
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
        self._make_states()

    def _make_states(self) -> None:
        """Begin without sessions: the state of each event loop is made when it first sends a request."""
        # Not a bound method of this object: the reference cycle would keep a dropped model until garbage collection.
        make = partial(_LoopState, self.max_concurrency, throttled=self.requests_per_minute is not None)
        self._states: PerLoop[_LoopState] = PerLoop(make, _LoopState.abandon)

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
        state = self._states.get()
        if state.session is None:
            await state.open()
        failures: dict[int | None, int] = {}  # the number of failed tries: 429 is counted apart, None is any other
        sent = False
        while True:
            answer = await self._try_once(state, url, headers, body, secrets)
            if call.pace is not None and not isinstance(answer, _BrokenConnection):
                status, answer_headers, _ = answer
                call.pace.note(status, answer_headers)
            if not isinstance(answer, _BrokenConnection) and not may_retry(*answer):
                return answer
            sent = sent or not isinstance(answer, _BrokenConnection) or answer.sent
            failure_status = 429 if not isinstance(answer, _BrokenConnection) and answer[0] == 429 else None
            failures[failure_status] = failures.get(failure_status, 0) + 1
            if failures[failure_status] >= count_attempts(failure_status):
                if isinstance(answer, _BrokenConnection):
                    raise ModelError(str(answer), sent=sent)
                return answer
            if call.pay_again is not None and isinstance(answer, _BrokenConnection) and answer.sent:
                await call.pay_again()
            await self._sleep(self._find_wait(state.host(url), answer, failures[failure_status], secrets))

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> tuple[int, Mapping[str, str]]:
        """Send ``body`` once, and return the status and the headers of the answer, whose body is not read.

        It is for callers that retry themselves. Raises ``ModelError`` when no answer comes.
        """
        state = self._states.get()
        if state.session is None:
            await state.open()
        try:
            status, answer_headers, _ = await state.send(url, headers, body, (), read=False)
        except _BrokenConnection as broken:
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

        It is for callers that must know whether a request may have had an effect: nothing is sent again. ``within`` is
        the seconds for all of it. With ``take``, the body of an answer of status 200 is handed to it in pieces, of any
        size in all, and not returned. Raises ``ModelError`` when no answer comes; its ``sent`` is false where nothing
        was sent.
        """
        state = self._states.get()
        if state.session is None:
            await state.open()
        try:
            async with asyncio.timeout(within):
                return await state.send(url, headers, body, secrets, method=method, take=take)
        except _BrokenConnection as broken:
            model_error = ModelError(str(broken), sent=broken.sent)
        except TimeoutError:
            model_error = ModelError(f"{state.host(url)} gave no answer within {within:g} s")
        raise model_error

    async def aclose(self) -> None:
        """Close the running loop's session and its connections; the next request opens a new one."""
        state = self._states.pop()
        if state is not None:
            await state.close()

    async def _try_once(
        self, state: _LoopState, url: str, headers: Mapping[str, str], body: bytes, secrets: tuple[str, ...]
    ) -> Answer | _BrokenConnection:
        """Send once, when the limits allow it; a connection that broke is returned and not raised."""
        try:
            if state.slots is None and state.turn_lock is None:
                return await state.send(url, headers, body, secrets)
            async with state.slots or _NO_LIMIT:
                await self._wait_for_turn(state)
                return await state.send(url, headers, body, secrets)
        except _BrokenConnection as broken:
            return broken

    async def _wait_for_turn(self, state: _LoopState) -> None:
        """Wait until the next request may begin: by ``requests_per_minute``, requests begin at equal intervals."""
        if state.turn_lock is None or self.requests_per_minute is None:
            return
        # The task that holds the lock waits for the next turn, and the others for the lock. So a task that is cancelled
        # takes nobody's turn.
        async with state.turn_lock:
            wait = state.next_turn - self._clock()
            if wait > 0:
                await self._sleep(wait)
            state.next_turn = max(state.next_turn, self._clock()) + 60.0 / self.requests_per_minute

    def _find_wait(
        self, host: str, answer: Answer | _BrokenConnection, attempt: int, secrets: tuple[str, ...]
    ) -> float:
        """Return the seconds to wait before the next try: as many as the server asks for, else by ``back_off``.

        Raises ``ModelError`` for a server that asks for more than ``LONGEST_WAIT``.
        """
        if isinstance(answer, _BrokenConnection):
            return back_off(attempt, self._random)
        status, headers, body = answer
        seconds = read_wait(headers, self._wall)
        if seconds is None:
            return back_off(attempt, self._random)
        if seconds > LONGEST_WAIT:
            reason = redact_error(read_error_body(body).message, secrets)
            wait = redact_error(f"{seconds:.0f}", secrets)
            raise ModelError(
                f"{host} answered {status} and asks to wait {wait} seconds, more than the {LONGEST_WAIT:.0f} "
                f"that are waited for" + (f": {reason}" if reason else ""),
                status=status,
            )
        return seconds


class _BrokenConnection(Exception):
    """A connection that failed in a way another try may mend; its text is for the final error."""

    def __init__(self, message: str, *, sent: bool = True) -> None:
        super().__init__(message)
        self.sent = sent
        """True if any of the request may have left."""


class _NoLimit:
    """A context manager in place of a semaphore: it lets everybody in at once."""

    async def __aenter__(self) -> None:
        return None

    async def __aexit__(self, *exc: object) -> None:
        return None


_NO_LIMIT = _NoLimit()


@dataclass(frozen=True, slots=True)
class _Route:
    """A parsed address with its proxy, made once for each address because that takes time."""

    address: URL
    host: str
    """For messages."""
    proxy: URL | None
    options: Mapping[str, Any]
    """Further arguments of aiohttp's ``request``."""


class _LoopState:
    """The state of one event loop: its session, the limit of requests at once, and the time of the next turn."""

    def __init__(self, max_concurrency: int | None, *, throttled: bool) -> None:
        self.max_concurrency = max_concurrency
        self.slots = asyncio.Semaphore(max_concurrency) if max_concurrency else None
        self.turn_lock = asyncio.Lock() if throttled else None
        self.next_turn = 0.0
        self.session: aiohttp.ClientSession | None = None
        self._session_generator: AsyncGenerator[None, None] | None = None
        self._context: Any = None
        self._routes: dict[str, _Route] = {}

    async def open(self) -> None:
        """Open the session, and arrange that it is closed with the loop."""
        import aiohttp

        self.session = aiohttp.ClientSession(
            connector=make_connector(limit=0, limit_per_host=self.max_concurrency or 0),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=30.0),
            auto_decompress=False,
            # Not compressed: decompressing costs more than it saves on a judgement, and can be made a bomb.
            headers={"User-Agent": "adjudge", "Accept-Encoding": "identity", "Content-Type": "application/json"},
        )
        # If a model is dropped while its loop runs, the generator below closes the session. Until then a reference from
        # outside must keep it: else both would be garbage together, and the session would warn that it is not closed.
        weakref.finalize(self, _do_nothing, self.session)
        # A loop that ends closes its asynchronous generators (asyncio.run, shutdown_asyncgens), and nothing else.
        self._session_generator = _keep_session(self.session)
        await anext(self._session_generator)

    async def close(self) -> None:
        """Close the session now."""
        generator, self._session_generator, self.session = self._session_generator, None, None
        if generator is not None:
            await generator.aclose()

    def abandon(self) -> None:
        """Mark the session of a closed loop as closed; its sockets were closed with the loop."""
        if self.session is None or self.session.closed:
            return
        closing = self.session.close()
        # The coroutine is run up to its first await: nothing can be awaited without the loop, and nothing needs to be.
        with suppress(StopIteration, RuntimeError):
            closing.send(None)
        closing.close()

    def host(self, url: str) -> str:
        """Return the host of an address, for messages."""
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
        """Send one request and return its answer; on failure its connection is closed. Raises ``ModelError``."""
        import aiohttp

        if self.session is None:
            raise ModelError("the model was closed while a request was waiting")
        route = self._find_route(url)
        host, proxy = route.host, route.proxy
        if proxy is not None and proxy.password:
            secrets = (*secrets, proxy.password)
        try:
            # Large bytes are sent as a file: aiohttp warns that sending them in one piece would block the loop.
            payload = io.BytesIO(body) if body is not None and len(body) > _LARGE_BODY else body
            answer = await self.session.request(
                method, route.address, data=payload, headers=headers, allow_redirects=False, **route.options
            )
            try:
                if not read:
                    answer.close()
                    return answer.status, answer.headers, b""
                if take is not None and answer.status == 200:
                    await _hand_on_pieces(answer, host, secrets, take)
                    return answer.status, answer.headers, b""
                return answer.status, answer.headers, await _read_answer(answer, host, secrets)
            except BaseException:
                # Cancelled, too large or broken: unread bytes are left on the connection, so it must not be used again.
                answer.close()
                raise
        except aiohttp.ClientError as error:
            translated_error = _translate_error(host, error, secrets)
        # Outside the block, so that the error does not carry aiohttp's, which holds the headers and so the key.
        raise translated_error

    def _find_route(self, url: str) -> _Route:
        """Return the route of an address, which is made at the first request to it and kept."""
        route = self._routes.get(url)
        if route is None:
            if len(self._routes) >= 256:
                self._routes.clear()
            route = self._routes[url] = self._make_route(url)
        return route

    def _make_route(self, url: str) -> _Route:
        """Make the route of an address. The TLS context is made once for the loop, when it is first needed."""
        import ssl

        from yarl import URL

        address = URL(url)
        named_host = address.host if address.is_default_port() else address.host_port_subcomponent
        host = named_host or url
        proxy = find_proxy(address)
        options: dict[str, Any] = {} if proxy is None else {"proxy": proxy}
        if address.scheme == "https":
            # Not aiohttp's own context, which is made at import and would miss an SSL_CERT_FILE that is set later.
            self._context = self._context or ssl.create_default_context()
            options["ssl"] = self._context
        return _Route(address, host, proxy, options)


def _do_nothing(session: aiohttp.ClientSession) -> None:
    """Do nothing: as a finalizer it only keeps a reference to the session, which its generator closes."""


async def _keep_session(session: aiohttp.ClientSession) -> AsyncGenerator[None, None]:
    """Wait at ``yield`` until this generator is closed, by ``close`` or with the event loop; then close the session."""
    try:
        yield
    finally:
        await session.close()


def _check_encoding(answer: aiohttp.ClientResponse, host: str, secrets: tuple[str, ...]) -> None:
    """Raise ``ModelError`` for a compressed answer, which was not asked for."""
    encoding = answer.headers.get("Content-Encoding", "identity")
    if encoding.lower() != "identity":
        raise ModelError(
            f"{host} sent a reply compressed with {redact_error(encoding, secrets)!r} although it was asked not to "
            "compress; turn compression off at the server or proxy"
        )


async def _hand_on_pieces(
    answer: aiohttp.ClientResponse, host: str, secrets: tuple[str, ...], take: Callable[[bytes], None]
) -> None:
    """Hand the body of an answer to ``take`` in pieces. Raises ``ModelError`` for a compressed one."""
    _check_encoding(answer, host, secrets)
    async for piece in answer.content.iter_any():
        take(piece)


async def _read_answer(answer: aiohttp.ClientResponse, host: str, secrets: tuple[str, ...]) -> bytes:
    """Read the body of an answer. Raises ``ModelError`` for one that is too large or compressed."""
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
    """Translate the error of a failed request into one of ours.

    A ``_BrokenConnection`` may be mended by another try; the other errors are for the caller. Only the kind of failure
    and the system's words are repeated: aiohttp's own messages hold addresses of proxies, which may hold a password.
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
    return _find_broken_connection(host, error, secrets) or ModelError(
        f"{host} could not be asked ({type(error).__name__})"
    )


def _find_broken_connection(
    host: str, error: aiohttp.ClientError, secrets: tuple[str, ...]
) -> _BrokenConnection | None:
    """Translate an error that another try may mend; return ``None`` for any other error.

    ``sent`` is false only where the connection was never made, so that nothing can have been paid for.
    """
    import aiohttp

    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return _BrokenConnection(f"{host}: the name could not be resolved", sent=False)
    cause = _describe_cause(error, secrets)
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return _BrokenConnection(f"the proxy for {host} could not be reached ({cause})", sent=False)
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ServerTimeoutError):
        sent = not isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)
        return _BrokenConnection(f"{host} could not be reached ({cause})", sent=sent)
    if isinstance(error, aiohttp.ClientConnectionError | aiohttp.ClientPayloadError):
        return _BrokenConnection(f"{host} closed the connection before the reply was complete ({cause})")
    return None


def _describe_cause(error: aiohttp.ClientError, secrets: tuple[str, ...]) -> str:
    """Describe the cause of an error in the system's words, else by the error's type."""
    cause = getattr(error, "os_error", error)
    return redact_error(getattr(cause, "strerror", None) or type(error).__name__, secrets)
