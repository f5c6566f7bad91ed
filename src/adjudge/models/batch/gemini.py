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
from adjudge.formats.typed import read_typed_json
from adjudge.models.batch.job import AGAIN_CODES, Job, Kind, Limits, Phase, ResultLine, classify, has_reached, read_time
from adjudge.models.batch.wire import MOST_PAGES, PAGE, BatchWire
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

_REASONS = {"EXPIRED": "expired", "CANCELLED": "cancelled", "FAILED": "failed"}

_PREFIXES = ("BATCH_STATE_", "JOB_STATE_")


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
        self._wire = BatchWire(model.access, model.transport)

    @property
    def digest(self) -> str:
        """SHA-256 of address and key."""
        return self._wire.access.digest

    def render_line(self, name: str, request: Request) -> bytes:
        """A line of the input file, with its newline."""
        return b'{"key":%b,"request":' % msgspec.json.encode(name) + self._model.render_body(request) + b"}\n"

    async def upload(self, lines: Sequence[bytes], label: str) -> str:
        """Upload the input file by the resumable protocol, in one piece; returns its name. Raises ``ModelError``."""
        body = b"".join(lines)
        start = {
            "X-Goog-Upload-Protocol": "resumable",
            "X-Goog-Upload-Command": "start",
            "X-Goog-Upload-Header-Content-Length": str(len(body)),
            "X-Goog-Upload-Header-Content-Type": "application/jsonl",
        }
        description = msgspec.json.encode({"file": {"displayName": label, "mimeType": "application/jsonl"}})
        headers, _ = await self._wire.send_free(self._find_url("upload", "files"), description, start)
        upload_url = headers.get("x-goog-upload-url", "")
        ours = urlsplit(self._wire.access.base)
        if urlsplit(upload_url)[:2] != ours[:2]:
            # The key goes with the upload: not to whatever address an answer names.
            raise ModelError(f"{self._wire.access.host} names another host to upload to; nothing was sent there")
        # Once: an address for an upload that broke off takes no other from its beginning.
        upload_headers = {"X-Goog-Upload-Command": "upload, finalize", "X-Goog-Upload-Offset": "0"}
        _, content = await self._wire.send_free(upload_url, body, upload_headers, most=1)
        try:
            return read_typed_json(content, _Uploaded).file.name
        except msgspec.DecodeError:
            raise ModelError(f"{self._wire.access.host} took a file and did not say its name") from None

    async def create(self, file: str, lines: Sequence[bytes], label: str) -> Job:
        """Create the job of an uploaded file, with exactly one request."""
        del lines
        model = self._model.model if "/" in self._model.model else f"models/{self._model.model}"
        body = {"batch": {"displayName": label, "inputConfig": {"fileName": file}}}
        url = f"{self._wire.access.base}/{model}:batchGenerateContent"
        return self._make_job(await self._wire.create(url, msgspec.json.encode(body), _Operation))

    async def fetch_job(self, name: str) -> Job:
        """A job as it is now."""
        return self._make_job(await self._wire.read(f"{self._wire.access.base}/{name}", _Operation))

    async def read_results(self, job: Job, take: Callable[[ResultLine], None]) -> int:
        """Read the file of responses; where a job has none, every request has the job's own reason."""
        urls = [f"{self._find_url('download', file)}:download?alt=media" for file in job.files]
        return await self._wire.read_lines(urls, _read_line, take)

    async def list_jobs(self, since: float) -> Sequence[Job]:
        """Every job that was created after a time, newest first, page by page to the end. Raises ``ModelError``."""
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
        """Ask for the end of a job."""
        await self._wire.send_free(f"{self._wire.access.base}/{name}:cancel", b"{}")

    async def aclose(self) -> None:
        """Close the connections."""
        await self._wire.aclose()

    def _find_url(self, kind: str, path: str) -> str:
        """Files are up- and downloaded beside the API: ``/upload/v1beta/files`` for ``/v1beta``."""
        parts = urlsplit(self._wire.access.base)
        return f"{parts.scheme}://{parts.netloc}/{kind}{parts.path}/{path}"

    def _make_job(self, operation: _Operation) -> Job:
        """Make the job of what the provider says of it."""
        metadata = operation.metadata or _Metadata()
        word = metadata.state or "UNSPECIFIED"
        for prefix in _PREFIXES:
            word = word.removeprefix(prefix)
        stats, output = metadata.batch_stats or _Stats(), metadata.output or _Output()
        done = (_read_count(stats.successful_request_count) or 0) + (_read_count(stats.failed_request_count) or 0)
        message = (operation.error.message or "") if operation.error is not None else ""
        return Job(
            id=operation.name,
            word=word,
            phase=_PHASES.get(word, "waiting"),
            known=word in _PHASES,
            reason=_REASONS.get(word, "lost"),
            files=(output.responses_file,) if output.responses_file else (),
            done=done,
            total=_read_count(stats.request_count),
            label=metadata.display_name or "",
            created_at=read_time(metadata.create_time),
            message=redact_error(message, self._wire.access.secrets),
        )


def _read_line(line: bytes) -> ResultLine:
    """Read a line of results: a reply, or an error with whether to ask again."""
    row = _DECODER.decode(line)
    name = row.key or (row.metadata.key if row.metadata is not None else None)
    if name is None:
        raise ValueError("a row without a key")
    if row.response:
        return ResultLine(id=name, kind="reply", body=bytes(row.response))
    body = bytes(row.error) or b"{}"
    status = _STATUS.decode(body)
    # Codes are gRPC's here (3 invalid argument, 8 resource exhausted), and not those of HTTP.
    kind: Kind = "again" if status.code in AGAIN_CODES else classify(status=status.code)
    return ResultLine(id=name, kind=kind, body=body, name=f"code {status.code}", message=status.message or "")


def _read_count(count: int | str | None) -> int | None:
    return int(count) if isinstance(count, int) or (count is not None and count.isascii() and count.isdigit()) else None
