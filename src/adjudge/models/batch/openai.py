"""OpenAI's Batch API, and that of servers with the same ``/v1/files`` and ``/v1/batches``: Groq, gateways.

Source: the types ``Batch``, ``BatchCreateParams`` and ``FileObject`` of the package openai 3.54; there is none for a
line. Nobody published a batch of OpenAI's that ``expired``.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from adjudge.errors import ModelError
from adjudge.formats.msgspec_types import read_typed_json
from adjudge.models.batch.batch_http import BatchHttp, JobPage
from adjudge.models.batch.job import Job, Limits, Phase, ResultLine, classify
from adjudge.models.model import Request
from adjudge.models.providers.error import read_error_body
from adjudge.models.providers.key_redaction import redact_error
from adjudge.models.providers.openai import OpenAICompatible

LABEL = "adjudge"
"""The key of the label among a job's metadata."""

_ENDPOINT = "/v1/chat/completions"

_DAY = 86_400.0

_LIMITS: Mapping[str, Limits] = {
    "openai": Limits(requests=50_000, size=200_000_000, window=_DAY),
    "groq": Limits(requests=50_000, size=100_000_000, window=_DAY),
}

_OTHER = Limits(requests=50_000, size=100_000_000, window=_DAY)
"""The limits of a server that nobody knows: the least of those that are known."""

_PHASES: Mapping[str, Phase] = {
    "validating": "waiting",
    "in_progress": "waiting",
    "finalizing": "waiting",
    "cancelling": "cancelling",
    "completed": "ended",
    "failed": "ended",
    "expired": "ended",
    "cancelled": "ended",
}

_END_REASONS = {"expired": "expired", "cancelled": "cancelled", "failed": "failed"}

_QUEUE_CODES = frozenset({"token_limit_exceeded", "enqueued_token_limit_exceeded", "rate_limit_exceeded"})


class _File(msgspec.Struct):
    id: str


class _Fault(msgspec.Struct):
    code: str | None = None
    message: str | None = None
    line: int | None = None


class _Faults(msgspec.Struct):
    data: list[_Fault] | None = None


class _Counts(msgspec.Struct):
    total: int | None = None
    completed: int | None = None
    failed: int | None = None


class _Batch(msgspec.Struct):
    id: str
    status: str
    created_at: float | None = None
    metadata: dict[str, Any] | None = None
    output_file_id: str | None = None
    error_file_id: str | None = None
    errors: _Faults | None = None
    request_counts: _Counts | None = None


class _Response(msgspec.Struct):
    status_code: int | None = None
    body: msgspec.Raw = msgspec.Raw(b"null")


class _Error(msgspec.Struct):
    code: str | int | None = None
    message: str | None = None


class _Row(msgspec.Struct):
    custom_id: str
    response: _Response | None = None
    error: _Error | None = None


_DECODER = msgspec.json.Decoder(_Row)


class OpenAIBatches:
    """Jobs of a model behind ``/chat/completions``."""

    labelled = True

    def __init__(self, model: OpenAICompatible) -> None:
        self._model = model
        self._wire = BatchHttp(model.access, model.transport)
        self.limits = _LIMITS.get(model.endpoint.provider.prefix, _OTHER)

    @property
    def digest(self) -> str:
        """SHA-256 of address and key: jobs are visible only to the account that created them."""
        return self._wire.access.digest

    def render_line(self, name: str, request: Request) -> bytes:
        """Render a request, under an id, as a line of the input file, with its newline."""
        body = self._model.render_body(request)
        head = b'{"custom_id":%b,"method":"POST","url":"%b","body":'
        return head % (msgspec.json.encode(name), _ENDPOINT.encode()) + body + b"}\n"

    async def upload(self, lines: Sequence[bytes], label: str) -> str:
        """Upload the input file and return its id. Raises ``ModelError``."""
        headers, body = _render_form({"purpose": "batch"}, f"{label}.jsonl", b"".join(lines))
        _, content = await self._wire.send_free(f"{self._wire.access.base}/files", body, headers)
        try:
            return read_typed_json(content, _File).id
        except msgspec.DecodeError:
            raise ModelError(f"{self._wire.access.host} took a file and did not say its id") from None

    async def create(self, file: str, lines: Sequence[bytes], label: str) -> Job:
        """Create the job of an uploaded file, with exactly one HTTP request: a second could create another job."""
        del lines  # they are in the file
        options = {"input_file_id": file, "endpoint": _ENDPOINT, "completion_window": "24h", "metadata": {LABEL: label}}
        return self._make_job(await self._wire.create(self._url, msgspec.json.encode(options), _Batch))

    async def fetch_job(self, name: str) -> Job:
        """Return a job as it is now."""
        return self._make_job(await self._wire.read(f"{self._url}/{name}", _Batch))

    async def read_results(self, job: Job, take: Callable[[ResultLine], None]) -> int:
        """Hand each line of the results to ``take``; return how many lines could not be read.

        A job has an output file, an error file, or both: where every request failed, there is only the latter.
        """
        urls = [f"{self._wire.access.base}/files/{file}/content" for file in job.files]
        return await self._wire.read_lines(urls, _read_line, take)

    async def list_jobs(self, since: float) -> Sequence[Job]:
        """List every job that was created after a time, newest first, page by page."""
        return await self._wire.list_jobs(self._url, JobPage[_Batch], self._make_job, cursor="after", since=since)

    async def cancel(self, name: str) -> None:
        """Ask the provider to end a job."""
        await self._wire.send_free(f"{self._url}/{name}/cancel", b"{}")

    async def aclose(self) -> None:
        """Close the connections."""
        await self._wire.aclose()

    @property
    def _url(self) -> str:
        return f"{self._wire.access.base}/batches"

    def _make_job(self, batch: _Batch) -> Job:
        """Make the job of the provider's description, with the lines that it blames and whether its queue is full.

        A status that is not known is taken for ``waiting``.
        """
        counts = batch.request_counts or _Counts()
        errors = (batch.errors.data if batch.errors is not None else None) or []
        message = "; ".join(f"{error.code or 'error'}: {error.message or ''}" for error in errors[:3])
        # The provider counts lines from 1.
        bad_lines = {error.line - 1: f"{error.code}: {error.message}" for error in errors if error.line is not None}
        is_queue_full = any(
            error.code in _QUEUE_CODES or "enqueued token limit" in (error.message or "").lower() for error in errors
        )
        has_failed = batch.status == "failed"
        return Job(
            id=batch.id,
            word=batch.status,
            phase=_PHASES.get(batch.status, "waiting"),
            known=batch.status in _PHASES,
            reason=_END_REASONS.get(batch.status, "lost"),
            files=tuple(file for file in (batch.output_file_id, batch.error_file_id) if file),
            done=(counts.completed or 0) + (counts.failed or 0),
            total=counts.total or None,
            label=str((batch.metadata or {}).get(LABEL, "")),
            created_at=batch.created_at,
            message=redact_error(message, self._wire.access.secrets),
            bad_lines=bad_lines if has_failed and bad_lines else None,
            queue_full=has_failed and is_queue_full,
            fatal=has_failed and not bad_lines and not is_queue_full,
        )


def _read_line(line: bytes) -> ResultLine:
    """Read what became of a request from a line of either file of results; a body is a reply only with status 200.

    Raises ``ValueError`` for a line that cannot be read.
    """
    row = _DECODER.decode(line)
    if row.error is not None:
        name = str(row.error.code or "error")
        # "batch_cancelled" is neither an error of the line nor one that goes away: somebody ended the job.
        return ResultLine(id=row.custom_id, kind=classify(name=name), name=name, message=row.error.message or "")
    response = row.response or _Response()
    body = bytes(response.body)
    if response.status_code == 200:
        return ResultLine(id=row.custom_id, kind="reply", body=body)
    complaint = read_error_body(body)
    name = complaint.code or f"status {response.status_code}"
    kind = classify(status=response.status_code, name=complaint.code)
    return ResultLine(id=row.custom_id, kind=kind, body=body, name=name, message=complaint.message)


def _render_form(fields: Mapping[str, str], file_name: str, content: bytes) -> tuple[dict[str, str], bytes]:
    """Render a multipart form (RFC 7578) with fields and one file; return its headers and its body.

    The boundary is random, so that it is in no content.
    """
    boundary = f"adjudge-{secrets.token_hex(16)}".encode()
    parts = [
        b'--%b\r\nContent-Disposition: form-data; name="%b"\r\n\r\n%b\r\n' % (boundary, key.encode(), value.encode())
        for key, value in fields.items()
    ]
    file_header = b'--%b\r\nContent-Disposition: form-data; name="file"; filename="%b"\r\n' % (
        boundary,
        file_name.encode(),
    )
    file_header += b"Content-Type: application/jsonl\r\n\r\n"
    body = b"".join((*parts, file_header, content, b"\r\n--%b--\r\n" % boundary))
    return {"Content-Type": f"multipart/form-data; boundary={boundary.decode()}"}, body
