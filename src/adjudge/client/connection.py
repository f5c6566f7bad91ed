"""Requests to a server: over aiohttp, with one key for all tries, and an error that names what went wrong."""

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
from adjudge.models.providers.route import find_proxy, make_connector

if TYPE_CHECKING:
    import aiohttp

LARGEST_ANSWER = 64 * 2**20
"""Bytes of an answer that are read at most; a download has no limit."""

_TRIES = 4

_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0

_BUSY = frozenset({429, 502, 503})
"""Statuses of a server, or a proxy before it, that has done nothing yet and may do it later; also 409 ``under_way``."""


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
        self.url = _check_url(url, in_the_clear=key is None or allow_http)
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
        async with self._open("GET", path, {}, None, {}) as answer:
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
        """Send a request, and return the JSON of the answer; ``once`` makes it safe to send it again.

        Raises ``ServerError`` where no answer comes in time.
        """
        # One key for all tries: an answer that was lost on its way is given again, and nothing is judged twice.
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

        Only a request that may be repeated is sent again, but for one that was refused as too many (429).
        """
        failures = 0
        while True:
            try:
                status, reply_headers, body = await self._send(method, path, query, raw, headers)
            except ServerError:
                failures += 1
                if not may_repeat or failures >= _TRIES:
                    raise
                wait = _FIRST_PAUSE * 2 ** (failures - 1)
            else:
                if status == 200:
                    return _read_body(self.url, body)
                refusal = _read_refusal(self.url, status, body)
                busy = status in _BUSY or (isinstance(refusal.error, UsageError) and refusal.code == "under_way")
                if not busy or not (may_repeat or status == 429):
                    raise refusal.error
                wait = _read_wait(reply_headers)
            await asyncio.sleep(min(wait, _LONGEST_PAUSE))

    async def _send(
        self,
        method: str,
        path: tuple[str, ...],
        query: Mapping[str, str],
        raw: bytes | None,
        headers: Mapping[str, str],
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Send a request once, and return the status, the headers (names in lower case) and the body."""
        async with self._open(method, path, query, raw, headers) as answer:
            return answer.status, _list_headers(answer), await self._read_all(answer)

    @asynccontextmanager
    async def _open(
        self,
        method: str,
        path: tuple[str, ...],
        query: Mapping[str, str],
        raw: bytes | None,
        headers: Mapping[str, str],
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Give an answer of which the head was read; it has to come within ``timeout``."""
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
            target = target.with_host(target.raw_host or "")  # in ASCII, as it is looked up
            proxy = find_proxy(target)
            pending_answer = session.request(
                method, target, data=raw, headers=sent_headers, proxy=proxy, allow_redirects=False
            )
            async with asyncio.timeout(self.timeout) as timer, pending_answer as answer:
                timer.reschedule(None)
                yield answer
                return
        except aiohttp.ClientError as error:
            failed = ServerError(f"{self.url} cannot be reached: {type(error).__name__}")
        except TimeoutError:
            failed = ServerError(f"{self.url} did not answer within {self.timeout:g} s")
        # Out here, so that the error does not carry aiohttp's, which holds the headers that were sent: the key as well.
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
        while piece := await self._read_piece(answer):
            yield piece

    async def _read_piece(self, answer: aiohttp.ClientResponse) -> bytes:
        """Read the next bytes of an answer; none at its end.

        Raises ``ServerError`` where the connection breaks, or nothing more comes in time.
        """
        import aiohttp

        try:
            async with asyncio.timeout(self.timeout):
                return await answer.content.readany()
        except aiohttp.ClientError as error:
            problem = f"broke off its answer: {type(error).__name__}"
        except TimeoutError:
            problem = f"sent nothing more within {self.timeout:g} s"
        raise ServerError(f"{self.url} {problem}")  # out here, as above

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.url}>"


class _Session:
    """The session of one event loop."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._keeper: AsyncGenerator[None, None] | None = None

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
            # A client that is dropped while its loop runs is closed by the generator below. Until then somebody outside
            # must hold the session, or the garbage collector finds both at once and the session complains first.
            weakref.finalize(self, _do_nothing, self._session)
            self._keeper = _close_at_end(self._session)
            await anext(self._keeper)
        return self._session

    async def close(self) -> None:
        keeper, self._keeper, self._session = self._keeper, None, None
        if keeper is not None:
            await keeper.aclose()

    def abandon(self) -> None:
        """Mark the session of a closed loop as closed; its sockets went with the loop."""
        if self._session is None or self._session.closed:
            return
        closing = self._session.close()
        with suppress(StopIteration, RuntimeError):
            closing.send(None)
        closing.close()


def _do_nothing(session: aiohttp.ClientSession) -> None:
    """Do nothing: the generator holds the session until it has closed it."""


async def _close_at_end(session: aiohttp.ClientSession) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        await session.close()


def _read_body(url: str, raw: bytes) -> Any:
    try:
        return read_json(raw.decode())
    except ValueError:
        raise ServerError(f"{url} answered with something that is not JSON; is it an adjudge server?") from None


def _list_headers(answer: aiohttp.ClientResponse) -> Mapping[str, str]:
    return {name.lower(): value for name, value in answer.headers.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Refusal:
    """An answer that is not 200."""

    code: str
    """The word that programs go by; empty where there is none."""
    error: AdjudgeError


def _read_refusal(url: str, status: int, raw: bytes) -> _Refusal:
    """Read an answer that is not 200: a ``UsageError`` for what the caller can correct, else a ``ServerError``.

    Of the statuses 400 to 499, 408, 421 and 429 are no fault of the request.
    """
    try:
        body = read_json(raw.decode())
    except ValueError:
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


def _read_wait(headers: Mapping[str, str]) -> float:
    header = headers.get("retry-after", "")
    return float(header) if header.isascii() and header.isdecimal() and len(header) < 6 else _FIRST_PAUSE


def _check_url(url: str, *, in_the_clear: bool) -> str:
    """Check a server's address, and return it without a slash at the end; a key needs https, or this machine."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except (ValueError, AttributeError, TypeError):
        parts, host = None, None
    if parts is None or parts.scheme not in ("http", "https") or not host or parts.username is not None:
        raise UsageError(f'url must be like "https://adjudge.example", got {show(url)}', argument="url")
    if parts.query or parts.fragment:
        raise UsageError(f"url must end with the host, its port or a path, got {show(url)}", argument="url")
    if parts.scheme == "http" and not in_the_clear and not is_this_machine(host):
        raise UsageError(
            "a key is sent over https only, unless ",
            Argument("allow_http", "True"),
            f" says otherwise; got {show(url)}",
            argument="url",
        )
    return url.rstrip("/")
