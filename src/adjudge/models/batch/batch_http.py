"""HTTP for jobs: what is free is tried again, and what may be paid for is sent once."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Generic, TypeVar

import msgspec

from adjudge.errors import ModelError
from adjudge.formats.msgspec_types import read_typed_json
from adjudge.models.batch.job import CreateError, Job, ResultLine, has_reached
from adjudge.models.batch.lines import LineCutter
from adjudge.models.providers.base import Access
from adjudge.models.providers.error import make_http_error, read_error_body
from adjudge.models.providers.http import Answer, Transport
from adjudge.models.providers.key_redaction import redact_error
from adjudge.models.retry import LONGEST_WAIT, back_off, may_retry, read_wait

ATTEMPTS = 4
"""Tries of a request that is free."""

WITHIN = 120.0
"""Seconds for a request with a short answer. A creation may take a provider a while: a job is checked in it."""

WITHIN_FILE = 1_800.0
"""Seconds for a file of some hundred megabytes, either way."""

PAGE = 100
"""Jobs that are asked for at once when a provider's jobs are listed."""

MOST_PAGES = 1_000
"""Pages of a list that are read. A list that is longer is taken for one without an end."""

T = TypeVar("T")

_REFUSED = frozenset({400, 409, 413, 422})

_STOPS = frozenset({401, 402, 403, 404, 405, 501})


class JobPage(msgspec.Struct, Generic[T]):
    """A page of a list of jobs, as OpenAI and Anthropic send it; ``T`` is the provider's own type of a job."""

    data: list[T] = []
    has_more: bool | None = None


class BatchHttp:
    """Requests to one provider, with its key, under the address of its models."""

    def __init__(self, access: Access, transport: Transport) -> None:
        self.access = access
        self._transport = transport

    async def read(self, url: str, kind: type[T]) -> T:
        """Read the JSON object of a type at an address; try again where that can help. Raises ``ModelError``."""
        status, _, content = await self._send_repeatedly("GET", url)
        if status != 200:
            raise self._make_error(status, content)
        return self._decode_object(content, kind)

    async def send_free(
        self, url: str, body: bytes, headers: Mapping[str, str] = {}, *, most: int = ATTEMPTS
    ) -> tuple[Mapping[str, str], bytes]:
        """Post a request that costs nothing (a file, a cancellation), again if that helps. Raises ``ModelError``."""
        status, answer_headers, content = await self._send_repeatedly("POST", url, body, headers, most=most)
        if not 200 <= status < 300:
            raise self._make_error(status, content)
        return answer_headers, content

    async def create(self, url: str, body: bytes, kind: type[T]) -> T:
        """Post the creation of a job, exactly once; raise ``CreateError`` where it fails.

        Never give this a second try, not even for a connection that broke off at once: providers have no idempotency
        key for it, so each try may create another job that is paid for.
        """
        try:
            status, headers, content = await self._ask_once("POST", url, body, within=WITHIN_FILE)
        except ModelError as error:
            because = "doubtful" if error.sent else "wait"
            raise CreateError(str(error), because=because) from None
        if 200 <= status < 300:
            try:
                return self._decode_object(content, kind)
            except ModelError as error:  # a job was created, and its name cannot be read
                raise CreateError(str(error), because="doubtful") from None
        problem = str(self._make_error(status, content))
        if status == 429:
            wait = read_wait(headers, time.time)
            raise CreateError(problem, because="wait", seconds=wait, status=status)
        if status in _STOPS:
            raise CreateError(problem, because="stop", status=status)
        if status in _REFUSED:
            raise CreateError(problem, because="refused", status=status)
        raise CreateError(problem, because="doubtful" if status >= 500 or status == 408 else "stop", status=status)

    async def download(self, url: str, take: Callable[[bytes], None]) -> None:
        """Download a file and hand each of its lines to ``take``; try again when it ends in the middle of a line.

        Lines may then be handed on more than once. Raises ``ModelError`` when the file cannot be downloaded whole.
        """
        last_error: ModelError | None = None
        for attempt in range(1, ATTEMPTS + 1):
            cutter, wait = LineCutter(take), None
            try:
                status, headers, content = await self._ask_once("GET", url, within=WITHIN_FILE, take=cutter.feed)
            except ModelError as error:
                last_error = error
            except ValueError as error:  # a line that never ends
                last_error = ModelError(f"{self.access.host}: {error}")
            else:
                if status == 200 and cutter.finish():
                    return
                if status != 200 and not may_retry(status, headers, content):
                    raise self._make_error(status, content)
                wait = read_wait(headers, time.time)
                problem = "the file of results ends in the middle of a line"
                last_error = (
                    ModelError(f"{self.access.host}: {problem}") if status == 200 else self._make_error(status, content)
                )
            if attempt < ATTEMPTS:
                await asyncio.sleep(min(wait or back_off(attempt, random.random), LONGEST_WAIT))
        raise last_error or ModelError(f"{self.access.host} sent no file")

    async def read_lines(
        self, urls: Iterable[str], read: Callable[[bytes], ResultLine], take: Callable[[ResultLine], None]
    ) -> int:
        """Download files of results and hand each line to ``take``; returns how many ``read`` could not read.

        ``read`` turns the bytes of a line into a ``ResultLine``, or raises ``ValueError``. Keys in the provider's
        messages are masked. Raises ``ModelError`` as ``download`` does.
        """
        unreadable = 0

        def take_line(content: bytes) -> None:
            nonlocal unreadable
            try:
                line = read(content)
            except (ValueError, RecursionError):  # msgspec.DecodeError and UnicodeDecodeError are ValueErrors
                unreadable += 1
            else:
                take(replace(line, message=redact_error(line.message, self.access.secrets)))

        for url in urls:
            await self.download(url, take_line)
        return unreadable

    async def list_jobs(
        self, url: str, kind: type[JobPage[T]], make: Callable[[T], Job], *, cursor: str, since: float
    ) -> list[Job]:
        """List every job that was created after ``since``, in seconds since 1970; earlier ones may be among them.

        ``cursor`` is the query parameter that names the last job of the page before. Raises ``ModelError`` where a page
        cannot be read, and for a list without an end.
        """
        listed: list[Job] = []
        after = ""
        for _ in range(MOST_PAGES):
            page = await self.read(f"{url}?limit={PAGE}{after}", kind)
            jobs = [make(row) for row in page.data]
            has_more = len(jobs) >= PAGE if page.has_more is None else page.has_more
            if {job.id for job in jobs} <= {job.id for job in listed}:  # no jobs, or a server that ignores the cursor
                return listed
            listed += jobs
            if not has_more or has_reached(jobs, since):
                return listed
            after = f"&{cursor}={jobs[-1].id}"
        raise ModelError(f"{self.access.host} lists jobs without end")

    async def aclose(self) -> None:
        """Close the connections of the running loop."""
        await self._transport.aclose()

    async def _send_repeatedly(
        self,
        method: str,
        url: str,
        body: bytes | None = None,
        headers: Mapping[str, str] = {},
        *,
        most: int = ATTEMPTS,
    ) -> Answer:
        """Send a request, again where that may help, at most ``most`` times in all; return the last answer."""
        within = WITHIN if body is None or len(body) < 2**20 else WITHIN_FILE
        attempt = 0
        while True:
            attempt += 1
            try:
                answer = await self._ask_once(method, url, body, within=within, headers=headers)
            except ModelError:
                if attempt >= most:
                    raise
                wait = back_off(attempt, random.random)
            else:
                if not may_retry(*answer) or attempt >= most:
                    return answer
                _, answer_headers, _ = answer
                wait = read_wait(answer_headers, time.time) or back_off(attempt, random.random)
            await asyncio.sleep(min(wait, LONGEST_WAIT))

    async def _ask_once(
        self,
        method: str,
        url: str,
        body: bytes | None = None,
        *,
        within: float,
        headers: Mapping[str, str] = {},
        take: Callable[[bytes], None] | None = None,
    ) -> Answer:
        """Send a request with the headers of access, and without a second try; raises ``ModelError``."""
        all_headers = {**self.access.headers, **headers}
        return await self._transport.ask_once(
            method, url, all_headers, body, within=within, secrets=self.access.secrets, take=take
        )

    def _decode_object(self, content: bytes, kind: type[T]) -> T:
        """Decode the JSON object of a type. Raises ``ModelError``, in whose message keys are masked."""
        try:
            return read_typed_json(content, kind)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            problem = redact_error(str(error), self.access.secrets)
        # Outside the block, so that the error does not carry the original one, in which keys are not masked.
        raise ModelError(f"{self.access.host} answered with something that is no job: {problem}")

    def _make_error(self, status: int, content: bytes) -> ModelError:
        return make_http_error(self.access.host, status, read_error_body(content).message, self.access.secrets)
