"""Anthropic's Message Batches. Source: the types under ``messages`` of the package anthropic 2.12.

The API keeps no label of a batch. It checks the requests only while it runs them, so a malformed one is accepted, and
comes back ``errored``. Results are kept for 29 days from the creation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from adjudge.models.batch.batch_http import BatchHttp, JobPage
from adjudge.models.batch.job import Job, Limits, Phase, ResultLine, classify, read_time
from adjudge.models.model import Request
from adjudge.models.providers.anthropic import Anthropic

_PHASES: Mapping[str, Phase] = {"in_progress": "waiting", "canceling": "cancelling", "ended": "ended"}


class _Counts(msgspec.Struct):
    processing: int = 0
    succeeded: int = 0
    errored: int = 0
    canceled: int = 0
    expired: int = 0

    @property
    def done(self) -> int:
        return self.succeeded + self.errored + self.canceled + self.expired


class _Batch(msgspec.Struct):
    id: str
    processing_status: str
    created_at: str | None = None
    request_counts: _Counts | None = None
    results_url: str | None = None


class _Fault(msgspec.Struct):
    type: str | None = None
    message: str | None = None


class _Error(msgspec.Struct):
    error: _Fault | None = None


class _Result(msgspec.Struct):
    type: str
    message: msgspec.Raw = msgspec.Raw(b"null")
    error: msgspec.Raw = msgspec.Raw(b"null")


class _Row(msgspec.Struct):
    custom_id: str
    result: _Result


_DECODER = msgspec.json.Decoder(_Row)

_ERROR = msgspec.json.Decoder(_Error | None)


class AnthropicBatches:
    """Jobs of a Claude model."""

    labelled = False
    limits = Limits(requests=100_000, size=256_000_000, window=86_400.0)

    def __init__(self, model: Anthropic) -> None:
        self._model = model
        self._wire = BatchHttp(model.access, model.transport)
        self._url = f"{self._wire.access.base_v1}/messages/batches"

    @property
    def digest(self) -> str:
        """SHA-256 of address and key: jobs are visible only to the account that created them."""
        return self._wire.access.digest

    def render_line(self, name: str, request: Request) -> bytes:
        """Render a request, under an id, as one element of the ``requests`` of a creation."""
        return b'{"custom_id":%b,"params":' % msgspec.json.encode(name) + self._model.render_body(request) + b"}"

    async def upload(self, lines: Sequence[bytes], label: str) -> str:
        """Upload nothing and return an empty file name: the requests are part of the creation."""
        del lines, label
        return ""

    async def create(self, file: str, lines: Sequence[bytes], label: str) -> Job:
        """Create the job of these lines, with exactly one HTTP request: a second could create another job."""
        del file, label  # nothing was uploaded, and the API keeps no label
        body = b'{"requests":[' + b",".join(lines) + b"]}"
        return _make_job(await self._wire.create(self._url, body, _Batch))

    async def fetch_job(self, name: str) -> Job:
        """Return a job as it is now."""
        return _make_job(await self._wire.read(f"{self._url}/{name}", _Batch))

    async def read_results(self, job: Job, take: Callable[[ResultLine], None]) -> int:
        """Hand each line of the results to ``take``; return how many lines could not be read.

        The only end of a batch is ``ended``, and each line says what became of its request.
        """
        # Not from results_url: the key goes only to the configured address, and to no other that an answer names.
        return await self._wire.read_lines([f"{self._url}/{job.id}/results"], _read_line, take)

    async def list_jobs(self, since: float) -> Sequence[Job]:
        """List every job that was created after a time, newest first, page by page."""
        return await self._wire.list_jobs(self._url, JobPage[_Batch], _make_job, cursor="after_id", since=since)

    async def cancel(self, name: str) -> None:
        """Ask the provider to end a job."""
        await self._wire.send_free(f"{self._url}/{name}/cancel", b"")

    async def aclose(self) -> None:
        """Close the connections."""
        await self._wire.aclose()


def _make_job(batch: _Batch) -> Job:
    """Make the job of Anthropic's description; a status that is not known is taken for ``waiting``."""
    counts = batch.request_counts or _Counts()
    return Job(
        id=batch.id,
        word=batch.processing_status,
        phase=_PHASES.get(batch.processing_status, "waiting"),
        known=batch.processing_status in _PHASES,
        files=(batch.id,),
        done=counts.done,
        total=counts.done + counts.processing or None,
        created_at=read_time(batch.created_at),
    )


def _read_line(line: bytes) -> ResultLine:
    """Read what became of a request from a line of the results; an error is classified by its type.

    Raises ``ValueError`` for a line that cannot be read.
    """
    row = _DECODER.decode(line)
    result_type, request_id = row.result.type, row.custom_id
    if result_type == "succeeded":
        return ResultLine(id=request_id, kind="reply", body=bytes(row.result.message))
    if result_type == "expired":
        return ResultLine(id=request_id, kind="again", name="expired", message="not run within a day")
    if result_type == "canceled":
        return ResultLine(
            id=request_id, kind="never", name="cancelled", message="the batch was cancelled before it was run"
        )
    body = bytes(row.result.error)
    error = _ERROR.decode(body)
    problem = (error.error if error is not None else None) or _Fault()
    error_name = problem.type or result_type
    return ResultLine(
        id=request_id, kind=classify(name=error_name), body=body, name=error_name, message=problem.message or ""
    )
