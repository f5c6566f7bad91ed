"""Requests to a server over HTTP: sent again after a failure, with one idempotency key, and errors with the cause."""

from __future__ import annotations

import asyncio
import json
import secrets
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from adjudge.concurrency import PerLoop
from adjudge.errors import AdjudgeError, Argument, ServerError, UsageError
from adjudge.formats.arguments import check_seconds
from adjudge.formats.json import read_json
from adjudge.formats.loopback import is_this_machine
from adjudge.formats.text import clean, show
from adjudge.models.providers.proxy import find_proxy, make_connector

if TYPE_CHECKING:
    import aiohttp

LARGEST_ANSWER = 64 * 2**20
"""Bytes of an answer that are read at most; a download has no limit."""

_TRIES = 4
"""The number of times that a request is sent which gets no answer."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0
"""Seconds before a request is sent again."""

_BUSY_STATUSES = frozenset({429, 502, 503})
"""Statuses of a server, or a proxy before it, that did nothing and may do it later; 409 ``under_way`` is alike."""


class Connection:
    """The way to one server. One session per running loop, opened at first use and closed with the loop.

    Args:
        url: The server's address.
        key: The text that `adjudge keys create` printed; ``None`` for none.
        timeout: Seconds for one request.
        allow_http: Send a key in the clear to another machine.
        largest_answer: The most bytes of an answer that are read.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str | None,
        timeout: float,
        allow_http: bool = False,
        largest_answer: int = LARGEST_ANSWER,
    ) -> None:
        self.url = _check_url(url, allow_http=key is None or allow_http)
        check_seconds("timeout", timeout)
        is_key = isinstance(key, str) and key != "" and key.isascii() and key.isprintable() and " " not in key
        if key is not None and not is_key:
            raise UsageError("key must be the text that `adjudge keys create` printed; this is another", argument="key")
        self.timeout = timeout
        self._key, self._largest = key, largest_answer
        self._sessions: PerLoop[_Session] = PerLoop(_Session, _Session.abandon)

    async def get(self, *path: str, **query: str | int | None) -> Any:
        """Send a query and return the server's answer.

        Args:
            path: The path of the address, such as ``/v1/runs``.
            query: The parameters of the address; those that are ``None`` are left out.
        """
        params = {name: str(value) for name, value in query.items() if value is not None}
        return await self._request("GET", path, query=params)

    async def post(self, *path: str, body: Mapping[str, Any], once: bool = True, seconds: float | None = None) -> Any:
        """Send a request and return the server's answer.

        Raises ``UsageError`` for what the server refuses, and ``ServerError`` when it cannot be reached, fails or is
        too busy until the time is over.

        Args:
            path: The path of the address, such as ``/v1/runs``.
            body: What is sent, as plain data.
            once: Whether it is done once, however often it is sent.
            seconds: How many seconds this may take, where that is less than the connection's ``timeout``; ``None`` is
                that timeout.
        """
        try:
            raw = json.dumps(body, allow_nan=False).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise UsageError(f"what is sent to a server has to be JSON, and this is not: {error}") from None
        return await self._request("POST", path, raw=raw, once=once, seconds=seconds)

    @asynccontextmanager
    async def download(self, *path: str) -> AsyncIterator[tuple[Mapping[str, str], AsyncIterator[bytes]]]:
        """Give the headers of an answer, by their names in lower case, and its bytes piece by piece, however many.

        The beginning of the answer, and then each piece, has to come within ``timeout``.

        Args:
            path: The path of the address, such as ``/v1/runs``.
        """
        async with self._open_answer("GET", path, {}, None, {}) as answer:
            if answer.status != 200:
                raise _read_refusal(self.url, answer.status, await self._read_all(answer)).error
            yield _list_headers(answer), self._read_pieces(answer)

    async def aclose(self) -> None:
        """Close the running loop's connections; the next request opens new ones."""
        session = self._sessions.pop()
        if session is not None:
            await session.close()

    async def _request(
        self,
        method: str,
        path: tuple[str, ...],
        *,
        query: Mapping[str, str] | None = None,
        raw: bytes | None = None,
        once: bool = False,
        seconds: float | None = None,
    ) -> Any:
        """Send a request until it is answered, and return the JSON of the answer.

        ``raw`` is the body. ``once`` has the server do it once, however often it is sent. Raises ``ServerError`` if no
        answer comes within ``seconds``.
        """
        # All tries have the same key: the server repeats an answer that was lost on its way, and judges only once.
        headers = {"Idempotency-Key": secrets.token_hex(16)} if once else {}
        limit = self.timeout if seconds is None else seconds
        try:
            async with asyncio.timeout(limit):
                return await self._send_with_retries(
                    method, path, query or {}, raw, headers, may_repeat=once or method == "GET"
                )
        except TimeoutError:
            raise ServerError(f"{self.url} did not answer within {limit:g} s") from None

    async def _send_with_retries(
        self,
        method: str,
        path: tuple[str, ...],
        query: Mapping[str, str],
        raw: bytes | None,
        headers: Mapping[str, str],
        *,
        may_repeat: bool,
    ) -> Any:
        """Send a request until it is answered, refused, or has failed too often.

        A request that may not be repeated is sent again only after status 429, by which the server has not done it.
        """
        failures = 0
        while True:
            try:
                status, reply_headers, body = await self._send(method, path, query, raw, headers)
            except ServerError:
                failures += 1
                if not may_repeat or failures >= _TRIES:
                    raise
                pause = _FIRST_PAUSE * 2 ** (failures - 1)
            else:
                if status == 200:
                    return _read_body(self.url, body)
                refusal = _read_refusal(self.url, status, body)
                is_under_way = isinstance(refusal.error, UsageError) and refusal.code == "under_way"
                is_busy = status in _BUSY_STATUSES or is_under_way
                if not is_busy or not (may_repeat or status == 429):
                    raise refusal.error
                pause = _read_retry_after(reply_headers)
            await asyncio.sleep(min(pause, _LONGEST_PAUSE))

    async def _send(
        self,
        method: str,
        path: tuple[str, ...],
        query: Mapping[str, str],
        raw: bytes | None,
        headers: Mapping[str, str],
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Send a request once, and return the status, the headers (names in lower case) and the body."""
        async with self._open_answer(method, path, query, raw, headers) as answer:
            return answer.status, _list_headers(answer), await self._read_all(answer)

    @asynccontextmanager
    async def _open_answer(
        self,
        method: str,
        path: tuple[str, ...],
        query: Mapping[str, str],
        raw: bytes | None,
        headers: Mapping[str, str],
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request, and yield the answer when its status and headers have come; its body is not read yet.

        Raises ``ServerError`` for a server that cannot be reached, or whose headers do not come within ``timeout``.
        """
        import aiohttp

        session = await self._sessions.get().open()
        sent_headers = {"Accept": "application/json", **headers}
        sent_headers |= {"Authorization": f"Bearer {self._key}"} if self._key is not None else {}
        sent_headers |= {"Content-Type": "application/json"} if raw is not None else {}
        address = "/".join((self.url, *[quote(part, safe="") for part in path]))
        failed: ServerError
        try:
            from yarl import URL

            target = URL(address, encoded=True).with_query(dict(query))
            target = target.with_host(target.raw_host or "")  # in ASCII, as name servers know it
            proxy = find_proxy(target)
            pending_answer = session.request(
                method, target, data=raw, headers=sent_headers, proxy=proxy, allow_redirects=False
            )
            async with asyncio.timeout(self.timeout) as timer, pending_answer as answer:
                timer.reschedule(None)  # the time limit is for the headers alone
                yield answer
                return
        except aiohttp.ClientError as error:
            failed = ServerError(f"{self.url} cannot be reached: {type(error).__name__}")
        except TimeoutError:
            failed = ServerError(f"{self.url} did not answer within {self.timeout:g} s")
        # Raised outside of ``except``: else the error would carry aiohttp's, which holds the headers sent, and the key.
        raise failed

    async def _read_all(self, answer: aiohttp.ClientResponse) -> bytes:
        """Read the whole body of an answer. Raises ``ServerError`` for one that is larger than the limit."""
        pieces, total = [], 0
        async for piece in self._read_pieces(answer):
            pieces.append(piece)
            total += len(piece)
            if total > self._largest:
                raise ServerError(f"{self.url} answered with more than {self._largest:,} bytes, which are not read")
        return b"".join(pieces)

    async def _read_pieces(self, answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        """Yield the body of an answer in pieces, as they come."""
        while piece := await self._read_piece(answer):
            yield piece

    async def _read_piece(self, answer: aiohttp.ClientResponse) -> bytes:
        """Read the next bytes of an answer's body; no bytes at its end.

        Raises ``ServerError`` where the connection breaks, or nothing comes within ``timeout``.
        """
        import aiohttp

        try:
            async with asyncio.timeout(self.timeout):
                return await answer.content.readany()
        except aiohttp.ClientError as error:
            problem = f"broke off its answer: {type(error).__name__}"
        except TimeoutError:
            problem = f"sent nothing more within {self.timeout:g} s"
        raise ServerError(f"{self.url} {problem}")  # outside of ``except``, as in ``_open_answer``

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.url}>"


class _Session:
    """The aiohttp session of one event loop, opened at its first use."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._closer: AsyncGenerator[None, None] | None = None

    async def open(self) -> aiohttp.ClientSession:
        """Return the session, and open it if there is none."""
        if self._session is None or self._session.closed:
            import aiohttp

            self._session = aiohttp.ClientSession(
                connector=make_connector(),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=30.0),
                headers={"User-Agent": "adjudge", "Accept-Encoding": "identity"},
                auto_decompress=False,
            )
            # If the client is dropped while its loop runs, the loop closes the generator below, which closes the
            # session. Until then the finalizer refers to the session: else the garbage collector would find both at
            # once, and the session would complain first that it was not closed.
            weakref.finalize(self, _do_nothing, self._session)
            self._closer = _close_when_dropped(self._session)
            await anext(self._closer)
        return self._session

    async def close(self) -> None:
        """Close the session, if it is open; ``open`` makes a new one."""
        closer, self._closer, self._session = self._closer, None, None
        if closer is not None:
            await closer.aclose()

    def abandon(self) -> None:
        """Mark the session of a closed loop as closed; its sockets went with the loop."""
        if self._session is None or self._session.closed:
            return
        # No loop can run the coroutine any more, so it is run by hand as far as it goes.
        closing = self._session.close()
        with suppress(StopIteration, RuntimeError):
            closing.send(None)
        closing.close()


def _do_nothing(session: aiohttp.ClientSession) -> None:
    """Do nothing; a finalizer with this function keeps a reference to the session."""


async def _close_when_dropped(session: aiohttp.ClientSession) -> AsyncGenerator[None, None]:
    """Close a session when this generator is closed, explicitly or by the loop when nobody refers to it any more."""
    try:
        yield
    finally:
        await session.close()


def _read_body(url: str, raw: bytes) -> Any:
    """Read the JSON of an answer; raises ``ServerError`` for a body that is not JSON."""
    try:
        return read_json(raw.decode())
    except ValueError:
        raise ServerError(f"{url} answered with something that is not JSON; is it an adjudge server?") from None


def _list_headers(answer: aiohttp.ClientResponse) -> Mapping[str, str]:
    """Return the headers of an answer by their names in lower case."""
    return {name.lower(): value for name, value in answer.headers.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Refusal:
    """The error in an answer whose status is not 200."""

    code: str
    """The server's name for the error, such as ``under_way``; empty where there is none."""
    error: AdjudgeError
    """The error to raise."""


def _read_refusal(url: str, status: int, raw: bytes) -> _Refusal:
    """Read an answer whose status is not 200: a ``UsageError`` for what the caller can correct, else a ``ServerError``.

    The statuses from 400 to 499 are errors of the caller, but for 408, 421 and 429.
    """
    try:
        body = read_json(raw.decode())
    except ValueError:  # no JSON, as from a proxy
        body = None
    members = body if isinstance(body, dict) else {}
    code, detail = (value if isinstance(value, str) else "" for value in (members.get("code"), members.get("detail")))
    reason = clean(detail[:500], keep_lines=False) if detail else "without a reason"
    text = f"{url} answered {status}: {reason}"
    is_usage = 400 <= status < 500 and status not in (408, 421, 429)
    if not is_usage:
        return _Refusal(code=code, error=ServerError(text, status=status))
    argument = members.get("argument")
    return _Refusal(code=code, error=UsageError(text, argument=argument if isinstance(argument, str) else None))


def _read_retry_after(headers: Mapping[str, str]) -> float:
    """Return the seconds that a busy server asks to wait, by the header ``Retry-After``; else the first pause."""
    header = headers.get("retry-after", "")
    return float(header) if header.isascii() and header.isdecimal() and len(header) < 6 else _FIRST_PAUSE


def _check_url(url: str, *, allow_http: bool) -> str:
    """Check a server's address, and return it without a slash at its end.

    Raises ``UsageError`` for another text than an address. ``http`` to another machine is refused too, unless
    ``allow_http``, because a key could be read on the way.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port  # ``port`` raises for a port that is no number
    except (ValueError, AttributeError, TypeError):
        parts, host = None, None
    if parts is None or parts.scheme not in ("http", "https") or not host or parts.username is not None:
        raise UsageError(f'url must be like "https://adjudge.example", got {show(url)}', argument="url")
    if parts.query or parts.fragment:
        raise UsageError(f"url must end with the host, its port or a path, got {show(url)}", argument="url")
    if parts.scheme == "http" and not allow_http and not is_this_machine(host):
        raise UsageError(
            "a key is sent over https only, unless ",
            Argument("allow_http", "True"),
            f" says otherwise; got {show(url)}",
            argument="url",
        )
    return url.rstrip("/")
