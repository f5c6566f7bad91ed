"""Gemini's batch mode: ``batchGenerateContent`` over an uploaded file.

Source: the types of the package google-genai 3.4.

The answer about a batch is an operation whose ``metadata`` says the state, as ``BATCH_STATE_*``; the package's own word
is ``JOB_STATE_*``. One malformed row makes the API refuse the whole creation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from urllib.parse import urlsplit

import msgspec

from adjudge.errors import ModelError
from adjudge.formats.msgspec_types import read_typed_json
from adjudge.models.batch.batch_http import MOST_PAGES, PAGE, BatchHttp
from adjudge.models.batch.job import AGAIN_CODES, Job, Kind, Limits, Phase, ResultLine, classify, has_reached, read_time
from adjudge.models.model import Request
from adjudge.models.providers.gemini import Gemini
from adjudge.models.providers.key_redaction import redact_error

_PHASES: Mapping[str, Phase] = {
    "UNSPECIFIED": "waiting",
    "QUEUED": "waiting",
    "PENDING": "waiting",
    "RUNNING": "waiting",
    "PAUSED": "waiting",
    "UPDATING": "waiting",
    "CANCELLING": "cancelling",
    "SUCCEEDED": "ended",
    # The package's BatchJob.done is false for this one; it is an end all the same.
    "PARTIALLY_SUCCEEDED": "ended",
    "FAILED": "ended",
    "CANCELLED": "ended",
    "EXPIRED": "ended",
}

_END_REASONS = {"EXPIRED": "expired", "CANCELLED": "cancelled", "FAILED": "failed"}

_STATE_PREFIXES = ("BATCH_STATE_", "JOB_STATE_")


class _Stats(msgspec.Struct, rename="camel"):
    request_count: int | str | None = None
    successful_request_count: int | str | None = None
    failed_request_count: int | str | None = None


class _InlinedOutput(msgspec.Struct, rename="camel"):
    inlined_responses: list[msgspec.Raw] | None = None


class _Output(msgspec.Struct, rename="camel"):
    responses_file: str | None = None
    inlined_responses: _InlinedOutput | None = None


class _Metadata(msgspec.Struct, rename="camel"):
    state: str | None = None
    display_name: str | None = None
    create_time: str | None = None
    output: _Output | None = None
    batch_stats: _Stats | None = None


class _Status(msgspec.Struct):
    code: int | None = None
    message: str | None = None


class _Operation(msgspec.Struct):
    name: str
    metadata: _Metadata | None = None
    error: _Status | None = None


class _Page(msgspec.Struct, rename="camel"):
    operations: list[_Operation] = []
    next_page_token: str | None = None


class _File(msgspec.Struct):
    name: str


class _Uploaded(msgspec.Struct):
    file: _File


class _Key(msgspec.Struct):
    key: str | None = None


class _Row(msgspec.Struct):
    key: str | None = None
    metadata: _Key | None = None
    response: msgspec.Raw = msgspec.Raw(b"")
    error: msgspec.Raw = msgspec.Raw(b"")


_DECODER = msgspec.json.Decoder(_Row)

_STATUS = msgspec.json.Decoder(_Status)


class GeminiBatches:
    """Jobs of a Gemini model."""

    labelled = True
    limits = Limits(requests=200_000, size=2_000_000_000, window=2 * 86_400.0)

    def __init__(self, model: Gemini) -> None:
        self._model = model
        self._wire = BatchHttp(model.access, model.transport)

    @property
    def digest(self) -> str:
        """SHA-256 of address and key: jobs are visible only to the account that created them."""
        return self._wire.access.digest

    def render_line(self, name: str, request: Request) -> bytes:
        """Render a request, under an id, as a line of the input file, with its newline."""
        return b'{"key":%b,"request":' % msgspec.json.encode(name) + self._model.render_body(request) + b"}\n"

    async def upload(self, lines: Sequence[bytes], label: str) -> str:
        """Upload the input file by the resumable protocol, in one piece; returns its name. Raises ``ModelError``."""
        body = b"".join(lines)
        start_headers = {
            "X-Goog-Upload-Protocol": "resumable",
            "X-Goog-Upload-Command": "start",
            "X-Goog-Upload-Header-Content-Length": str(len(body)),
            "X-Goog-Upload-Header-Content-Type": "application/jsonl",
        }
        description = msgspec.json.encode({"file": {"displayName": label, "mimeType": "application/jsonl"}})
        headers, _ = await self._wire.send_free(self._find_url("upload", "files"), description, start_headers)
        upload_url = headers.get("x-goog-upload-url", "")
        expected_url = urlsplit(self._wire.access.base)
        if urlsplit(upload_url)[:2] != expected_url[:2]:  # scheme and host
            # The key is sent with the upload, so it must not go to another host that an answer names.
            raise ModelError(f"{self._wire.access.host} names another host to upload to; nothing was sent there")
        # Sent once: after an upload broke off, its address takes no new one from the beginning.
        upload_headers = {"X-Goog-Upload-Command": "upload, finalize", "X-Goog-Upload-Offset": "0"}
        _, content = await self._wire.send_free(upload_url, body, upload_headers, most=1)
        try:
            return read_typed_json(content, _Uploaded).file.name
        except msgspec.DecodeError:
            raise ModelError(f"{self._wire.access.host} took a file and did not say its name") from None

    async def create(self, file: str, lines: Sequence[bytes], label: str) -> Job:
        """Create the job of an uploaded file, with exactly one HTTP request: a second could create another job."""
        del lines  # they are in the file
        model = self._model.model if "/" in self._model.model else f"models/{self._model.model}"
        body = {"batch": {"displayName": label, "inputConfig": {"fileName": file}}}
        url = f"{self._wire.access.base}/{model}:batchGenerateContent"
        return self._make_job(await self._wire.create(url, msgspec.json.encode(body), _Operation))

    async def fetch_job(self, name: str) -> Job:
        """Return a job as it is now."""
        return self._make_job(await self._wire.read(f"{self._wire.access.base}/{name}", _Operation))

    async def read_results(self, job: Job, take: Callable[[ResultLine], None]) -> int:
        """Hand each line of the results to ``take``; return how many lines could not be read.

        A job may have no file of results: then each of its requests ended for the job's own reason.
        """
        urls = [f"{self._find_url('download', file)}:download?alt=media" for file in job.files]
        return await self._wire.read_lines(urls, _read_line, take)

    async def list_jobs(self, since: float) -> Sequence[Job]:
        """List every job that was created after a time, newest first, page by page. Raises ``ModelError``."""
        listed: list[Job] = []
        after = ""
        for _ in range(MOST_PAGES):
            page = await self._wire.read(f"{self._wire.access.base}/batches?pageSize={PAGE}{after}", _Page)
            jobs = [self._make_job(operation) for operation in page.operations]
            listed += jobs
            if not page.next_page_token or has_reached(jobs, since):
                return listed
            after = f"&pageToken={page.next_page_token}"
        raise ModelError(f"{self._wire.access.host} lists jobs without end")

    async def cancel(self, name: str) -> None:
        """Ask the provider to end a job."""
        await self._wire.send_free(f"{self._wire.access.base}/{name}:cancel", b"{}")

    async def aclose(self) -> None:
        """Close the connections."""
        await self._wire.aclose()

    def _find_url(self, kind: str, path: str) -> str:
        """Return the address of an upload or download, beside the API: ``/upload/v1beta/files`` for ``/v1beta``."""
        parts = urlsplit(self._wire.access.base)
        return f"{parts.scheme}://{parts.netloc}/{kind}{parts.path}/{path}"

    def _make_job(self, operation: _Operation) -> Job:
        """Make the job of Gemini's description; a state that is not known is taken for ``waiting``."""
        metadata = operation.metadata or _Metadata()
        job_state = metadata.state or "UNSPECIFIED"
        for prefix in _STATE_PREFIXES:
            job_state = job_state.removeprefix(prefix)
        stats, output = metadata.batch_stats or _Stats(), metadata.output or _Output()
        done = (_read_count(stats.successful_request_count) or 0) + (_read_count(stats.failed_request_count) or 0)
        message = (operation.error.message or "") if operation.error is not None else ""
        return Job(
            id=operation.name,
            word=job_state,
            phase=_PHASES.get(job_state, "waiting"),
            known=job_state in _PHASES,
            reason=_END_REASONS.get(job_state, "lost"),
            files=(output.responses_file,) if output.responses_file else (),
            done=done,
            total=_read_count(stats.request_count),
            label=metadata.display_name or "",
            created_at=read_time(metadata.create_time),
            message=redact_error(message, self._wire.access.secrets),
        )


def _read_line(line: bytes) -> ResultLine:
    """Read what became of a request from a line of the results. Raises ``ValueError`` for a line without an id."""
    row = _DECODER.decode(line)
    request_id = row.key or (row.metadata.key if row.metadata is not None else None)
    if request_id is None:
        raise ValueError("a row without a key")
    if row.response:
        return ResultLine(id=request_id, kind="reply", body=bytes(row.response))
    body = bytes(row.error) or b"{}"
    status = _STATUS.decode(body)
    # Codes are gRPC's here (3 invalid argument, 8 resource exhausted), and not those of HTTP.
    kind: Kind = "again" if status.code in AGAIN_CODES else classify(status=status.code)
    return ResultLine(id=request_id, kind=kind, body=body, name=f"code {status.code}", message=status.message or "")


def _read_count(count: int | str | None) -> int | None:
    """Read a count, which may be a number or its digits as text; ``None`` for anything else."""
    is_number = isinstance(count, int) or (count is not None and count.isascii() and count.isdigit())
    return int(count) if count is not None and is_number else None
