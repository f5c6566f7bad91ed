"""Batch servers on 127.0.0.1 that behave as the providers' documents say, and runs by batches against them.

Every shape here is from documentation: the packages' own types (openai, anthropic, google-genai), the providers' pages,
and captures that others published. None of it was seen by us at a provider. models/batch/test_sdk_types_internal.py
holds these answers against the packages' types.
"""

from __future__ import annotations

import asyncio
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP
from pathlib import Path
from typing import Any

from aiohttp import web

from adjudge import Judge, Model, open_model, run
from adjudge.runs import BatchOptions
from kit.cli import find_content, find_token, list_criteria
from kit.patience import HANG

PROVIDERS = ("openai", "anthropic", "gemini")

REMINDER = "An earlier reply to this could not be read"

Fail = Callable[[str], tuple[int, dict[str, Any]] | None]
"""From a prompt to the status and the error of its line, in the shape of a live error body; ``None`` answers it."""


def reply_to(prompt: str, model: str, system: str) -> str:
    """Return what every model here says of the criteria in its system message.

    ``good`` passes, ``bad`` fails, ``prose`` cannot be read until it is asked again. A model that is
    called ``mute`` says nothing that can be read.
    """
    if "<<first " in prompt:
        return json.dumps({"token": find_token(prompt), "reasoning": "r", "preferred": "first"})
    content = find_content(prompt)
    if "mute" in model or ("prose" in content and REMINDER not in prompt):
        return "It is hard to say."
    score = 0.0 if "bad" in content else 1.0
    entries = {name: {"reasoning": f"it says {content}", "score": score} for name in list_criteria(system)}
    return json.dumps({"token": find_token(prompt), "criteria": entries, "reasoning": "r", "suggestions": []})


@dataclass
class ServerJob:
    """A job of the server's."""

    id: str
    label: str
    created_at: float
    lines: list[tuple[str, dict[str, Any]]]
    """The ids of its requests with their bodies."""
    looks: int = 0
    cancelled: bool = False
    end: str = ""
    """Its native end, once it has one."""
    rows: list[bytes] = field(default_factory=list)
    """The lines of its results."""
    errors: list[bytes] = field(default_factory=list)
    """The lines of its error file, where a provider has one."""
    fault: dict[str, Any] | None = None
    served: int = 0
    """The number of times that its results were fetched."""


@dataclass
class BatchServer:
    """One provider's live and batch interface."""

    kind: str
    looks: int = 2
    """The number of times that a job is looked at before it has ended."""
    words: tuple[str, ...] = ()
    """Native words that it says on the way, in place of the usual ones."""
    fail: Fail = lambda _: None
    run_share: float = 1.0
    """The share of a job's requests that are run before it ends as ``end``."""
    end: str = ""
    """The way in which jobs end, natively; empty: as they do when nothing goes wrong."""
    ends: list[str] = field(default_factory=list)
    """The ways in which the first jobs end, one after the other; afterwards as ``end`` says."""
    shuffle: bool = True
    edit: Callable[[list[bytes]], list[bytes]] = list
    """The change to the lines of a job's results."""
    twice: bool = False
    """True if each result comes twice, the second time with another text."""
    cut: int = 0
    """The number of times that a file of results ends in the middle."""
    refuse_creation: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    """Statuses with which the next creations are answered, with headers; nothing is created then."""
    lose_answers: int = 0
    """The number of creations that happen, and are never answered."""
    hang_answers: int = 0
    """The number of creations that happen, and are answered after ``release`` is set."""
    stall: int = 0
    """The number of times that results stop in the middle, until ``release`` is set."""
    stalled: threading.Event = field(default_factory=threading.Event)
    gone: int = 0
    """Of how many jobs, from the first, the results were deleted, as providers do after some weeks."""
    lists: bool = True
    hides: int = 0
    """The number of newest jobs that a list leaves out."""
    bad_line: str = ""
    """A job with a line that holds this is refused: by failing (OpenAI), or when it is created (Gemini)."""
    most_queued: int | None = None
    """Requests that may be queued at once; a job that is more fails for it (OpenAI)."""
    page: int = 100
    oldest_first: bool = False
    """True if lists begin with the oldest job, as no document says."""
    port: int = 0
    jobs: dict[str, ServerJob] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    run: Counter[str] = field(default_factory=Counter)
    """The number of times that each prompt was run by batch, and so is paid for."""
    live: Counter[str] = field(default_factory=Counter)
    """The number of times that each prompt was asked live."""
    creations: int = 0
    """Requests that would create a job, whatever they were answered."""
    created: threading.Event = field(default_factory=threading.Event)
    release: threading.Event = field(default_factory=threading.Event)
    seen: list[tuple[str, str]] = field(default_factory=list)
    """Method and path of each request."""
    keys: list[str] = field(default_factory=list)
    """The headers of each request."""
    answers: list[tuple[str, Any]] = field(default_factory=list)
    """The answers about jobs: their shape, and their body."""
    chance: random.Random = field(default_factory=lambda: random.Random(7))

    @property
    def base(self) -> str:
        """The address that a model is given."""
        suffix = {"openai": "/v1", "anthropic": "", "gemini": "/v1beta"}[self.kind]
        return f"http://127.0.0.1:{self.port}{suffix}"

    def open(self, name: str = "small") -> Model:
        """A model of this server."""
        return open_model(f"{self.kind}:{name}", base_url=self.base)

    # ------------------------------------------------------------ what every provider does

    def answer(self, body: Mapping[str, Any], model: str = "") -> dict[str, Any]:
        """The live reply to a body, in the provider's shape."""
        prompt = self.read_prompt(body)
        text = reply_to(prompt, model or str(body.get("model", "")), self.read_system(body))
        name = model or str(body.get("model", "small"))
        if self.kind == "anthropic":
            return {
                "id": "msg_1", "type": "message", "role": "assistant", "model": name,
                "content": [{"type": "text", "text": text, "citations": None}],
                "stop_reason": "end_turn", "stop_sequence": None, "container": None, "context_management": None,
                "usage": {"input_tokens": 900, "output_tokens": 40, "cache_creation_input_tokens": 0,
                          "cache_read_input_tokens": 0, "service_tier": "batch"},
            }  # fmt: skip
        if self.kind == "gemini":
            return {
                "candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP"}],
                "usageMetadata": {"promptTokenCount": 900, "candidatesTokenCount": 40, "totalTokenCount": 940},
                "modelVersion": name,
                "responseId": "r1",
            }
        return {
            "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": name,
            "choices": [{"index": 0, "finish_reason": "stop", "logprobs": None,
                         "message": {"role": "assistant", "content": text, "refusal": None}}],
            "usage": {"prompt_tokens": 900, "completion_tokens": 40, "total_tokens": 940},
        }  # fmt: skip

    def read_prompt(self, body: Mapping[str, Any]) -> str:
        """The text that a body asks about."""
        if self.kind == "gemini":
            return body["contents"][0]["parts"][0]["text"]
        return body["messages"][-1]["content"]

    def read_system(self, body: Mapping[str, Any]) -> str:
        """The text of a body's system message, which has the rubric; empty where there is none."""
        if self.kind == "gemini":
            return body["systemInstruction"]["parts"][0]["text"] if "systemInstruction" in body else ""
        if self.kind == "anthropic":
            return "".join(block["text"] for block in body.get("system", []))
        return body["messages"][0]["content"]

    def make_job(self, lines: list[tuple[str, dict[str, Any]]], label: str) -> ServerJob:
        names = {"openai": "batch_", "anthropic": "msgbatch_", "gemini": "batches/b"}
        job = ServerJob(
            id=f"{names[self.kind]}{len(self.jobs)}", label=label, created_at=time.time(), lines=lines
        )  # fmt: skip
        self.jobs[job.id] = job
        self.created.set()
        return job

    def advance(self, job: ServerJob) -> None:
        """One look further: in the end its requests are run, and paid for, as far as they are."""
        job.looks += 1
        if job.end or (job.looks <= self.looks and not job.cancelled):
            return
        end = "cancelled" if job.cancelled else self.ends.pop(0) if self.ends else self.end
        if self.kind == "openai" and not job.cancelled and self._fails(job):
            return
        job.end = end or {"openai": "completed", "anthropic": "ended", "gemini": "SUCCEEDED"}[self.kind]
        count = round(len(job.lines) * self.run_share) if end else len(job.lines)
        for number, (name, body) in enumerate(job.lines):
            prompt = self.read_prompt(body)
            failed = self.fail(prompt)
            if number >= count:
                self._leave(job, name, end)
            elif failed is not None:
                self._add_error(job, name, *failed)
            else:
                self.run[prompt] += 1
                self._add_reply(job, name, self.answer(body, "" if self.kind != "gemini" else "small"))
        if self.twice:
            job.rows += [row.replace(b"it says", b"it also says") for row in job.rows]
        job.rows = self.edit(job.rows)
        if self.shuffle:
            self.chance.shuffle(job.rows)

    def _fails(self, job: ServerJob) -> bool:
        """OpenAI checks a whole file first, and stops at the first bad line."""
        if self.bad_line:
            for number, (_, body) in enumerate(job.lines, 1):
                if self.bad_line in json.dumps(body):
                    fault = {"code": "invalid_request", "message": "a bad line", "param": None, "line": number}
                    job.end, job.fault = "failed", fault
                    return True
        queued = sum(len(item.lines) for item in self.jobs.values() if not item.end)
        if self.most_queued is not None and queued > self.most_queued:
            message = "Enqueued token limit reached for small in organization o. Limit: 1 enqueued tokens."
            job.end, job.fault = (
                "failed",
                {"code": "token_limit_exceeded", "message": message, "param": None, "line": None},
            )
            return True
        return False

    def _add_reply(self, job: ServerJob, name: str, reply: dict[str, Any]) -> None:
        if self.kind == "openai":
            response = {"status_code": 200, "request_id": "req", "body": reply}
            row: dict[str, Any] = {"id": "batch_req_1", "custom_id": name, "response": response, "error": None}
        elif self.kind == "anthropic":
            row = {"custom_id": name, "result": {"type": "succeeded", "message": reply}}
        else:
            row = {"key": name, "response": reply}
        # As it is, not escaped: U+2028 stands raw in JSON by right, and only a newline ends a line.
        job.rows.append(json.dumps(row, ensure_ascii=False).encode())

    def _add_error(self, job: ServerJob, name: str, status: int, body: dict[str, Any]) -> None:
        if self.kind == "openai":
            response = {"status_code": status, "request_id": "req", "body": body}
            row: dict[str, Any] = {"id": "batch_req_1", "custom_id": name, "response": response, "error": None}
            job.errors.append(json.dumps(row).encode())
            return
        if self.kind == "anthropic":
            error = {"type": "error", "error": body["error"], "request_id": None}
            row = {"custom_id": name, "result": {"type": "errored", "error": error}}
        else:
            row = {"key": name, "error": {"code": status, "message": body["error"]["message"]}}
        job.rows.append(json.dumps(row).encode())

    def _leave(self, job: ServerJob, name: str, end: str) -> None:
        """A request that was not run."""
        if self.kind == "openai" and end in ("expired", "cancelled"):
            error = {"code": f"batch_{end}", "message": f"This request could not be executed: {end}."}
            row = {"id": "batch_req_1", "custom_id": name, "response": None, "error": error}
            job.errors.append(json.dumps(row).encode())
        if self.kind == "anthropic":
            kind = "canceled" if job.cancelled else "expired"
            job.rows.append(json.dumps({"custom_id": name, "result": {"type": kind}}).encode())

    # ------------------------------------------------------------ HTTP

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.seen.append((request.method, request.path))
        self.keys.append(str(dict(request.headers)))
        data = await request.read()
        path, method = request.path, request.method
        handler = {"openai": self._openai, "anthropic": self._anthropic, "gemini": self._gemini}[self.kind]
        try:
            return await handler(request, method, path, data)
        except KeyError:
            return web.json_response({"error": {"message": "there is no such thing"}}, status=404)

    async def _create(
        self, request: web.Request, lines: list[tuple[str, dict[str, Any]]], label: str
    ) -> ServerJob | web.StreamResponse:
        self.creations += 1
        if self.refuse_creation:
            status, headers = self.refuse_creation.pop(0)
            error = {"error": {"message": "not now", "type": "error"}}
            return web.json_response(error, status=status, headers=headers)
        if self.bad_line and self.kind == "gemini" and any(self.bad_line in json.dumps(body) for _, body in lines):
            return web.json_response({"error": {"code": 400, "message": "a bad row", "status": "INVALID"}}, status=400)
        job = self.make_job(lines, label)
        if self.hang_answers > 0:
            self.hang_answers -= 1
            await asyncio.to_thread(self.release.wait, 60)
        if self.lose_answers > 0:
            self.lose_answers -= 1
            assert request.transport is not None
            request.transport.abort()
        return job

    def _say(self, shape: str, body: Any) -> web.StreamResponse:
        self.answers.append((shape, body))
        return web.json_response(body)

    def _list(self) -> list[ServerJob]:
        newest = list(reversed(self.jobs.values()))
        for job in newest:  # time goes by, whether a job is looked at by itself or in a list
            self.advance(job)
        shown = newest[self.hides :]
        return shown[::-1] if self.oldest_first else shown

    async def _send_rows(self, request: web.Request, job: ServerJob, rows: list[bytes]) -> web.StreamResponse:
        data = b"".join(row + b"\n" for row in rows)
        job.served += 1
        if list(self.jobs).index(job.id) < self.gone:
            return web.json_response({"error": {"message": "deleted"}}, status=404)
        if self.cut > 0 and len(data) > 10:
            self.cut -= 1
            # In the middle of a line, and with a length that fits: nothing but the line says that it was cut.
            data = data[: len(data) - len(rows[-1]) // 2]
        response = web.StreamResponse()
        await response.prepare(request)
        middle = len(data) // 2
        await response.write(data[:middle])
        if self.stall > 0:
            self.stall -= 1
            self.stalled.set()
            await asyncio.to_thread(self.release.wait, 60)
        await response.write(data[middle:])
        await response.write_eof()
        return response

    # OpenAI, from documentation.

    async def _openai(  # noqa: PLR0911 - a table of addresses
        self, request: web.Request, method: str, path: str, data: bytes
    ) -> web.StreamResponse:
        path = path.removeprefix("/v1")
        if path == "/chat/completions":
            body = json.loads(data)
            return self._ask_live(body)
        if path == "/files":
            return self._take_file(request, data)
        if path.startswith("/files/"):
            name = path.removeprefix("/files/").removesuffix("/content")
            job = self.jobs[name.partition("-")[2]]
            return await self._send_rows(request, job, job.errors if name.startswith("err") else job.rows)
        if path == "/batches" and method == "POST":
            parameters = json.loads(data)
            lines = [json.loads(line) for line in self.files[parameters["input_file_id"]].split(b"\n") if line]
            assert all(line["method"] == "POST" and line["url"] == parameters["endpoint"] for line in lines)
            pairs = [(line["custom_id"], line["body"]) for line in lines]
            job = await self._create(request, pairs, (parameters.get("metadata") or {}).get("adjudge", ""))
            return job if isinstance(job, web.StreamResponse) else self._say("Batch", self.show_openai(job))
        if path == "/batches":
            if not self.lists:
                return web.json_response({"error": {"message": "no lists here"}}, status=405)
            jobs = self._list()
            names = [job.id for job in jobs]
            begin = names.index(request.query["after"]) + 1 if "after" in request.query else 0
            shown = jobs[begin : begin + self.page]
            page = {"object": "list", "data": [self.show_openai(job) for job in shown]}
            return web.json_response(page | {"has_more": begin + self.page < len(jobs)})
        job = self.jobs[path.split("/")[2]]
        if path.endswith("/cancel"):
            job.cancelled = True
        else:
            self.advance(job)
        return self._say("Batch", self.show_openai(job))

    def _take_file(self, request: web.Request, data: bytes) -> web.StreamResponse:
        head = f"Content-Type: {request.headers['Content-Type']}\r\n\r\n".encode()
        form = {
            part.get_param("name", header="content-disposition"): part.get_payload(decode=True)
            for part in BytesParser(policy=HTTP).parsebytes(head + data).iter_parts()  # type: ignore[attr-defined]
        }
        assert form["purpose"] == b"batch"
        name = f"file-{len(self.files)}"
        self.files[name] = form["file"]  # type: ignore[assignment]
        file = {"id": name, "object": "file", "bytes": len(data), "created_at": 1, "filename": "f.jsonl"}
        return self._say("FileObject", file | {"purpose": "batch", "status": "processed"})

    def show_openai(self, job: ServerJob) -> dict[str, Any]:
        words = self.words or ("validating", "in_progress", "finalizing")
        word = job.end or ("cancelling" if job.cancelled else words[min(job.looks, len(words)) - 1])
        faults = None if job.fault is None else {"object": "list", "data": [job.fault]}
        return {
            "id": job.id, "object": "batch", "endpoint": "/v1/chat/completions", "errors": faults,
            "input_file_id": "file-0", "completion_window": "24h", "status": word,
            "output_file_id": f"out-{job.id}" if job.end and job.rows else None,
            "error_file_id": f"err-{job.id}" if job.end and job.errors else None,
            "created_at": int(job.created_at), "metadata": {"adjudge": job.label},
            "request_counts": {"total": len(job.lines), "completed": len(job.rows), "failed": len(job.errors)},
        }  # fmt: skip

    # Anthropic, from documentation.

    async def _anthropic(  # noqa: PLR0911 - a table of addresses
        self, request: web.Request, method: str, path: str, data: bytes
    ) -> web.StreamResponse:
        path = path.removeprefix("/v1/messages")
        if not path:
            return self._ask_live(json.loads(data))
        if path == "/batches" and method == "POST":
            pairs = [(item["custom_id"], item["params"]) for item in json.loads(data)["requests"]]
            job = await self._create(request, pairs, "")
            return job if isinstance(job, web.StreamResponse) else self._say("MessageBatch", self.show_anthropic(job))
        if path == "/batches":
            if not self.lists:
                return web.json_response({"error": {"message": "no lists here"}}, status=404)
            jobs = self._list()
            names = [job.id for job in jobs]
            begin = names.index(request.query["after_id"]) + 1 if "after_id" in request.query else 0
            shown = [self.show_anthropic(job) for job in jobs[begin : begin + self.page]]
            return web.json_response({"data": shown, "has_more": begin + self.page < len(jobs)})
        job = self.jobs[path.split("/")[2]]
        if path.endswith("/results"):
            if not job.end:
                return web.json_response({"error": {"message": "not ended"}}, status=404)
            return await self._send_rows(request, job, job.rows)
        if path.endswith("/cancel"):
            job.cancelled = True
        else:
            self.advance(job)
        return self._say("MessageBatch", self.show_anthropic(job))

    def show_anthropic(self, job: ServerJob) -> dict[str, Any]:
        words = self.words or ("in_progress",)
        # "ended" is the only end there is.
        word = "ended" if job.end else "canceling" if job.cancelled else words[min(job.looks, len(words)) - 1]
        counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
        counts["succeeded" if job.end else "processing"] = len(job.lines)
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(job.created_at))
        return {
            "id": job.id, "type": "message_batch", "processing_status": word, "request_counts": counts,
            "created_at": at, "expires_at": at, "ended_at": at if job.end else None, "archived_at": None,
            "cancel_initiated_at": at if job.cancelled else None,
            "results_url": "https://elsewhere.invalid/results" if job.end else None,
        }  # fmt: skip

    # Gemini, from documentation.

    async def _gemini(  # noqa: PLR0911 - a table of addresses
        self, request: web.Request, method: str, path: str, data: bytes
    ) -> web.StreamResponse:
        if path.endswith(":generateContent"):
            return self._ask_live(json.loads(data), "small")
        if path == "/upload/v1beta/files":
            place = f"http://127.0.0.1:{self.port}/upload/place/{len(self.files)}"
            return web.json_response({}, headers={"X-Goog-Upload-URL": place, "X-Goog-Upload-Status": "active"})
        if path.startswith("/upload/place/"):
            assert request.headers["X-Goog-Upload-Command"] == "upload, finalize"
            name = f"files/f{len(self.files)}"
            self.files[name] = data
            return self._say(
                "File", {"file": {"name": name, "uri": f"https://x/{name}", "mimeType": "application/jsonl"}}
            )
        if path.endswith(":batchGenerateContent"):
            parameters = json.loads(data)["batch"]
            lines = [
                json.loads(line) for line in self.files[parameters["inputConfig"]["fileName"]].split(b"\n") if line
            ]
            pairs = [(line["key"], line["request"]) for line in lines]
            job = await self._create(request, pairs, parameters["displayName"])
            return job if isinstance(job, web.StreamResponse) else self._say("BatchJob", self.show_gemini(job))
        if path.startswith("/download/v1beta/files/"):
            name = path.removeprefix("/download/v1beta/files/").removesuffix(":download")
            job = self.jobs[f"batches/{name}"]
            return await self._send_rows(request, job, job.rows)
        path = path.removeprefix("/v1beta/")
        if path == "batches":
            if not self.lists:
                return web.json_response({"error": {"message": "no lists here"}}, status=404)
            jobs, begin = self._list(), int(request.query.get("pageToken", "0"))
            page: dict[str, Any] = {"operations": [self.show_gemini(job) for job in jobs[begin : begin + self.page]]}
            if begin + self.page < len(jobs):
                page["nextPageToken"] = str(begin + self.page)
            return web.json_response(page)
        job = self.jobs[path.removesuffix(":cancel")]
        if path.endswith(":cancel"):
            job.cancelled = True
            return web.json_response({})
        self.advance(job)
        return self._say("BatchJob", self.show_gemini(job))

    def show_gemini(self, job: ServerJob) -> dict[str, Any]:
        words = self.words or ("PENDING", "RUNNING")
        word = job.end.upper() or ("CANCELLING" if job.cancelled else words[min(job.looks, len(words)) - 1])
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(job.created_at))
        about: dict[str, Any] = {"state": f"BATCH_STATE_{word}", "displayName": job.label, "createTime": at}
        about |= {"updateTime": at, "model": "models/small", "name": job.id}
        about["batchStats"] = {"requestCount": str(len(job.lines)), "pendingRequestCount": str(len(job.lines))}
        if job.end and job.rows:
            about["output"] = {"responsesFile": f"files/{job.id.removeprefix('batches/')}"}
        operation: dict[str, Any] = {"name": job.id, "metadata": about, "done": bool(job.end)}
        return operation | ({"error": {"code": 13, "message": "internal"}} if job.end == "FAILED" else {})

    def _ask_live(self, body: dict[str, Any], model: str = "") -> web.StreamResponse:
        prompt = self.read_prompt(body)
        self.live[prompt] += 1
        failed = self.fail(prompt)
        if failed is not None:
            return web.json_response(failed[1], status=failed[0], headers={"x-should-retry": "false"})
        return web.json_response(self.answer(body, model))


@contextmanager
def serve(kind: str = "openai", **options: Any) -> Iterator[BatchServer]:
    """A provider in a thread, for as long as the block lasts."""
    server = BatchServer(kind, **options)
    loop = asyncio.new_event_loop()

    async def start() -> web.AppRunner:
        app = web.Application(client_max_size=2**28)
        app.router.add_route("*", "/{rest:.*}", server.handle)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        server.port = runner.addresses[0][1]
        return runner

    runner = loop.run_until_complete(start())
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.release.set()
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(HANG)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(HANG)
        loop.close()


def options(**changes: Any) -> BatchOptions:
    """Options of a run that is in a hurry."""
    return BatchOptions(**({"poll": 0.01, "check": 0} | changes))


def go(server: BatchServer, cases: Any, out: Path | None = None, judge: Any = None, **arguments: Any) -> Any:
    """A run by batches to its end."""
    batch = arguments.pop("batch", None) or options()
    asked = judge or Judge(server.open())
    return run(cases, asked, criteria="Is good.", out=out, batch=batch, **arguments).finish_sync()
