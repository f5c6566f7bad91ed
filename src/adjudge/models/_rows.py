"""The rows of a recording: read strictly, one JSON object per line."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any, Literal

import msgspec

from adjudge.errors import UsageError
from adjudge.models._mask import unmask, unmask_tokens
from adjudge.models._recording import SCHEMA
from adjudge.models._types import FinishReason, Reply, TokenLogprob
from adjudge.result import Usage

LARGEST = 500_000_000
"""The largest recording that is read, in bytes; it is held in memory, several times that."""


class _Usage(msgspec.Struct):
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    written_tokens: int = 0
    calls: int = 1
    cost_usd: float | None = None


class _Token(msgspec.Struct):
    token: str
    logprob: float
    top: list[tuple[str, float]] = []


class _Reply(msgspec.Struct):
    text: str | None = None
    answers: dict[str, Any] | None = None
    finish_reason: FinishReason = "stop"
    usage: _Usage | None = None
    logprobs: list[_Token] | None = None
    model: str | None = None
    model_requested: str | None = None
    model_expected: str | None = None
    request_id: str | None = None


class _Form(msgspec.Struct):
    name: str = ""


class _Request(msgspec.Struct):
    form: _Form | None = None


class Row(msgspec.Struct):
    """One recorded reply, and what it is found by."""

    reply: _Reply
    schema: str = SCHEMA
    key: str | None = None
    case: str | None = None
    order: Literal["ab", "ba"] | None = None
    attempt: int | None = None
    model: str | None = None
    request: _Request | None = None
    used: bool = False


_DECODER = msgspec.json.Decoder(Row)


def read_rows(path: Path) -> list[Row]:
    """The rows of a regular file of at most 500 MB; raises ``UsageError`` naming file, line and fault."""
    lines = _read_bytes(path).splitlines()
    return [_read_row(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]


def _read_bytes(path: Path) -> bytes:
    # A pipe would keep everybody waiting, since nothing else runs meanwhile, and a device may never end.
    if "\x00" in str(path):
        raise UsageError("a path to a recording has no NUL character in it")
    try:
        kind = path.stat().st_mode
        if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):  # opening a folder says what is wrong itself
            raise UsageError(f"the recording {str(path)!r} is not a regular file; a recording is read from one")
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise UsageError(f"the recording {str(path)!r} cannot be read: {error.strerror}") from None
    if len(data) > LARGEST:
        raise UsageError(f"the recording {str(path)!r} is larger than {LARGEST // 10**6} MB; split it")
    return data


def _read_row(path: Path, number: int, line: bytes) -> Row:
    where = f"{path}, line {number}"
    row = decode_row(line, where=where, schema=SCHEMA)
    if row.key is None and row.case is None:
        raise UsageError(f"{where}: a row has a key or a case, and this one has neither")
    return row


def decode_row(line: bytes, *, where: str, schema: str) -> Row:
    """One row of a schema; raises ``UsageError`` that begins with ``where``."""
    try:
        row = _DECODER.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise UsageError(f"{where}: not a row of a recording: {error}") from None
    if row.schema != schema:
        raise UsageError(f"{where}: the schema is {row.schema!r}, and only {schema!r} can be read")
    if row.reply.text is None and row.reply.answers is None and row.reply.finish_reason == "stop":
        raise UsageError(f"{where}: the reply has no text")
    row.used = False
    return row


def make_reply(row: Row, token: str | None) -> Reply:
    """The reply of a row, with the present token."""
    said = row.reply
    found = said.logprobs
    logprobs = (
        None
        if found is None
        else unmask_tokens(
            [TokenLogprob(token=item.token, logprob=item.logprob, top=tuple(item.top)) for item in found], token
        )
    )
    return Reply(
        text=None if said.text is None else unmask(said.text, token),
        answers=said.answers,
        finish_reason=said.finish_reason,
        usage=Usage(**msgspec.structs.asdict(said.usage)) if said.usage else None,
        logprobs=logprobs,
        # Where the name that was asked for was kept, none was reported; a row by hand may say it beside the reply.
        model=said.model or (None if said.model_requested else row.model),
        model_requested=said.model_requested,
        model_expected=said.model_expected,
        request_id=said.request_id,
    )
