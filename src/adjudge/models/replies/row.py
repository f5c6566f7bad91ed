"""The row in which a reply is kept, in a recording, a cache and a run alike, and how a reply is read back from it.

A row holds what was replied, with the token masked, and what it is found by; never an API key. **A file says of itself
what it likes.** So a row answers only the judge in code, or the model, that it says it is of: a function's answer has
no token, and a mark in a file must not turn the token off for a model.
"""

from __future__ import annotations

import re
from typing import Any, Literal, TypeVar

import msgspec

from adjudge.errors import UsageError
from adjudge.formats.text import show
from adjudge.models.model import FinishReason, FunctionIdentity, Reply, Request, TokenLogprob
from adjudge.models.replies.mask import mask, mask_tokens, unmask, unmask_tokens
from adjudge.result import Usage

RECORDING = "adjudge/recording/1"
"""The schema of rows in recordings and in runs."""

CACHED = "adjudge/cached-reply/1"
"""The schema of rows in caches, which hold neither prompt nor key: they are in the file under their key."""


_ORDER = re.compile("ab|ba|(call|turn) [1-9][0-9]{0,5}")
"""The order in which two were shown, or the part of an agent's run that was judged."""


class RowUsage(msgspec.Struct):
    """The usage that a provider counted for one call."""

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


class _Function(msgspec.Struct):
    module: str
    qualname: str
    code: str


class _Reply(msgspec.Struct):
    text: str | None = None
    finish_reason: FinishReason = "stop"
    usage: RowUsage | None = None
    logprobs: list[_Token] | None = None
    model: str | None = None
    model_requested: str | None = None
    model_expected: str | None = None
    request_id: str | None = None
    source: Literal["function"] | None = None
    function: _Function | None = None

    def __post_init__(self) -> None:
        if (self.source is None) != (self.function is None):  # one of the two alone names no function
            raise ValueError("a reply of a function has both `source` and `function`")


class _Form(msgspec.Struct):
    name: str = ""


class _Request(msgspec.Struct):
    form: _Form | None = None


class Row(msgspec.Struct):
    """One kept reply, and what it is found by; its prompt, which may be long, is left out."""

    reply: _Reply
    schema: str = RECORDING
    key: str | None = None
    case: str | None = None
    order: str | None = None
    attempt: int | None = None
    model: str | None = None
    request: _Request | None = None
    erased: int | None = None
    """The number of rows that were deleted, of the row that says so; it answers nothing."""
    used: bool = False
    """True if a replay has given this row as an answer."""

    def __post_init__(self) -> None:
        if self.order is not None and not _ORDER.fullmatch(self.order):
            raise ValueError(f"order must be ab, ba or a part like 'call 3', got {show(self.order)}")

    def identify(self) -> FunctionIdentity | None:
        """Return the identity of the function that the row says it is of; ``None`` for a model's reply."""
        recorded = self.reply.function
        if recorded is None:
            return None
        return FunctionIdentity(module=recorded.module, qualname=recorded.qualname, code=recorded.code)


class Prompt(msgspec.Struct):
    """The prompt, as ``describe_request`` writes it."""

    system: str = ""
    user: str = ""
    form: Any = None
    parameters: Any = None


class _Counted(msgspec.Struct):
    usage: RowUsage | None = None


class PromptRow(msgspec.Struct):
    """The same row with its prompt, and of its reply only what it used."""

    reply: _Counted
    schema: str = RECORDING
    key: str | None = None
    case: str | None = None
    order: str | None = None
    attempt: int | None = None
    model: str = ""
    sample: int = 0
    seat: int = 0
    request: Prompt | None = None


_ROWS, _PROMPTS = msgspec.json.Decoder(Row), msgspec.json.Decoder(PromptRow)

_Kind = TypeVar("_Kind", Row, PromptRow)


def decode_row(body: bytes, *, where: str, schema: str) -> Row:
    """Decode one row of a schema; raise ``UsageError``, whose message begins with ``where``, for anything else."""
    row = _decode_body(_ROWS, body, where, schema)
    row.used = False
    return row


def decode_prompt(body: bytes, *, where: str, schema: str) -> PromptRow:
    """Decode one row with its prompt, as ``decode_row`` does without it."""
    return _decode_body(_PROMPTS, body, where, schema)


def _decode_body(decoder: msgspec.json.Decoder[_Kind], body: bytes, where: str, schema: str) -> _Kind:
    """Decode a row and check its schema. Raises ``UsageError``."""
    try:
        row = decoder.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise UsageError(f"{where}: not a row of a recording: {error}") from None
    if row.schema != schema:
        raise UsageError(f"{where}: the schema is {row.schema!r}, and only {schema!r} can be read")
    return row


def check_text(row: Row, *, where: str) -> None:
    """Raise ``UsageError`` for a row without a text whose reply is said to have ended by itself: it holds no reply."""
    if row.reply.text is None and row.reply.finish_reason == "stop" and row.erased is None:
        raise UsageError(f"{where}: the reply has no text")


def describe_reply(request: Request, reply: Reply) -> dict[str, Any]:
    """Describe a reply as a row holds it, with the token masked; msgspec can encode the result."""
    token = request.token
    if reply.function is not None:  # a judge in code is given no token, so none is masked
        origin = {"source": "function", "function": reply.function.to_dict()}
        return {"text": reply.text, "finish_reason": reply.finish_reason, **origin}
    described: dict[str, Any] = {
        "text": None if reply.text is None else mask(reply.text, token),
        "finish_reason": reply.finish_reason,
        "usage": reply.usage,
        "logprobs": None,
    }
    if reply.logprobs is not None:
        described["logprobs"] = [
            {"token": logprob.token, "logprob": logprob.logprob, "top": [list(pair) for pair in logprob.top]}
            for logprob in mask_tokens(reply.logprobs, token)
        ]
    for name in ("model", "model_requested", "model_expected", "request_id"):
        value = getattr(reply, name)
        described |= {name: value} if value else {}
    return described


def read_answer(
    row: Row | None, request: Request, *, key: str | None, function: FunctionIdentity | None
) -> Reply | None:
    """Read the reply of a row to a request, with its token; ``None`` where the row does not answer it.

    ``key`` is the request's key, which the row's must equal; ``None``: it is not compared. ``function`` is the judge in
    code that is asked; ``None`` for a model.
    """
    if row is None or (key is not None and row.key != key) or row.identify() != function:
        return None
    return make_reply(row, request.token)


def make_reply(row: Row, token: str | None) -> Reply:
    """Make the reply that a row holds, with the present token."""
    recorded, function = row.reply, row.identify()
    if function is not None:
        # A function is given no token, so its text was kept unmasked, and is returned unchanged.
        return Reply(text=recorded.text, finish_reason=recorded.finish_reason, function=function)
    return Reply(
        text=None if recorded.text is None else unmask(recorded.text, token),
        finish_reason=recorded.finish_reason,
        usage=Usage(**msgspec.structs.asdict(recorded.usage)) if recorded.usage else None,
        logprobs=None if recorded.logprobs is None else unmask_tokens(_list_logprobs(recorded.logprobs), token),
        # A row that was written by hand may name the model beside the reply. A recorded reply without a name in it had
        # none: what it has then is the name that was asked for.
        model=recorded.model or (None if recorded.model_requested else row.model),
        model_requested=recorded.model_requested,
        model_expected=recorded.model_expected,
        request_id=recorded.request_id,
    )


def _list_logprobs(tokens: list[_Token]) -> list[TokenLogprob]:
    """Convert the log-probabilities of a row."""
    return [TokenLogprob(token=token.token, logprob=token.logprob, top=tuple(token.top)) for token in tokens]
