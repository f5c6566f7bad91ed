"""Answering from a recording: no request is ever made."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import msgspec

from adjudge.errors import ModelError, UsageError
from adjudge.models.model import FinishReason, FunctionIdentity, Model, Reply, Request, TokenLogprob, find_function
from adjudge.models.nearest_recording import describe_nearest
from adjudge.models.recording import SCHEMA, describe_request, make_key, make_keys, unmask, unmask_tokens
from adjudge.result import Usage

MAX_MODELS = 64
"""The most models whose rows one recording may have: a request is looked up under the name of each."""

MOST_COMPARED = 20
"""Misses of one model that say what the nearest recorded request was."""


class MissingRecording(ModelError):
    """No unused row of a recording answers this request; ``key`` is the request's key."""

    def __init__(self, message: str, *, key: str) -> None:
        super().__init__(message)
        self.key = key


class ReplayModel:
    """A model that answers from a recording (JSON lines), read at first use.

    A row with ``case`` answers that case (and ``order``, if the row has one) with any prompt. If the row contains the
    recorded request, it answers that request alone, by its ``key``. Rows that answer the same are used up in the order
    of the file. By hand, ``{"case": "...", "reply": {"text": "..."}}`` is a whole row. ``model`` picks the rows of one
    model out of a file in which several were recorded.

    ``function`` is the judge in code whose recorded answers are given again; it is not called. Only the rows of that
    very function are used then, and without it none of any function: such a row has no token, and what a file says of
    itself must not turn the token off for a model.
    """

    hosts: tuple[str, ...] = ()
    """Nothing is contacted."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        model: str | None = None,
        function: Model | Callable[..., Any] | None = None,
    ) -> None:
        self.path = Path(path)
        self.only = model
        """The one recorded model whose rows are used; ``None`` uses them all."""
        self.function_identity = None if function is None else _identify(function)
        """Which judge in code's answers these are; ``None`` for those of models."""
        self._index: _Index | None = None
        self._missed = 0

    @property
    def name(self) -> str:
        """``replay:`` and the file; a reply says which model it is of."""
        return f"replay:{self.path}" + (f"?model={self.only}" if self.only else "")

    @property
    def structured(self) -> bool:
        """Whether the recording was made with structured output, so that the same questions are asked again."""
        return self._read().structured

    def check(self) -> None:
        """Raise ``UsageError`` naming file, line and fault when the recording cannot be read."""
        self._read()

    async def complete(self, request: Request, /) -> Reply:
        """The recorded reply; raises ``MissingRecording`` when no unused row answers the request."""
        index = self._read()
        described = describe_request(request)
        keys = make_keys(index.models, described)
        row = index.find(request, keys, self.function_identity)
        if row is None:
            other = self._describe_other(index.find_other(request, keys, self.function_identity))
            nearest = "" if other else self._describe_nearest(request, described, keys)
            key = keys[0] if keys else make_key("", described)
            raise _miss(self.path, request, key, other=other, nearest=nearest)

        row.used = True
        return make_reply(row, request.token)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    def _describe_nearest(self, request: Request, described: Mapping[str, Any], keys: Iterable[str]) -> str:
        if request.attempt > 1:  # a second try was not recorded, as most are not: the first reply then counts
            return ""
        self._missed += 1
        if self._missed > MOST_COMPARED:  # a whole data set that misses is one mistake, and the file is read each time
            return ""
        try:
            return describe_nearest(
                self.path, described, keys=keys, case=request.case, order=request.order, only=self.only
            )
        except (
            OSError,
            RecursionError,
            ValueError,
        ):  # the file was changed meanwhile; that there is no reply is said all the same
            return ""

    def _describe_other(self, other: Row | None) -> str:
        """Why a row that answers the request by its key or case may not answer here, and the remedy."""
        if other is None or other.identify() == self.function_identity:
            return ""
        function = other.identify()
        if function is None:
            return "its reply is of a model, and the judge is a function; record it again"
        if self.function_identity is None:
            counts = f"its reply is of the function {function}, and counts only if that function is the judge"
            return f"{counts}; name it as the judge, or record it again"
        return f"its reply is of the function {function}, which is another one or has other code; record it again"

    def _read(self) -> _Index:
        index = self._find()
        if index is None:
            of = f" of {self.only}" if self.only else ""
            raise UsageError(f"the recording {str(self.path)!r} has no rows{of}")
        return index

    def _find(self) -> _Index | None:
        """The rows that are used; ``None`` where there are none."""
        if self._index is None:
            rows = [row for row in read_rows(self.path) if self.only in (None, row.model)]
            if not rows:
                return None
            index = _Index(rows)
            if len(index.models) > MAX_MODELS:
                raise UsageError(
                    f"the recording {str(self.path)!r} has rows of {len(index.models):,} models, and at most "
                    f"{MAX_MODELS} are looked up; pick one with replay:FILE?model=NAME"
                )
            self._index = index
        return self._index


class _Index:
    """The rows of a recording by what they are found by."""

    def __init__(self, rows: list[Row]) -> None:
        self.recorded = tuple(dict.fromkeys(row.model for row in rows))
        self.models = tuple(dict.fromkeys(row.model for row in rows if row.model and row.key))
        self.structured = any(row.request is not None and row.request.form is not None for row in rows)
        self.first_of = {row.identify(): row for row in reversed(rows)}
        """The first row of each function, and of models."""
        self.by_case: dict[str, list[Row]] = {}
        self.by_key: dict[str, list[Row]] = {}
        for row in rows:
            if row.case is not None:
                self.by_case.setdefault(row.case, []).append(row)
            if row.key is not None:
                self.by_key.setdefault(row.key, []).append(row)

    def find(self, request: Request, keys: list[str], function: FunctionIdentity | None) -> Row | None:
        """The row that answers: of the request's case, best with its very key, else one of its key without a case.

        A row by hand answers its case whatever was asked. One that was recorded holds its request, and has to have this
        key: by its case alone, content that was changed after the recording would pass by what was said of the old.
        """
        if request.case is not None:
            named = self._free(self.by_case, [request.case])
            rows = [
                row
                for row in named
                if (row.request is None or row.key in (None, *keys)) and _fits(row, request, function)
            ]
            exact = next((row for row in rows if row.key in keys), None)
            if rows:
                return exact or rows[0]
        for row in self._free(self.by_key, keys):
            if _fits(row, request, function) and (row.case is None or request.case is None):
                return row
        return None

    def find_other(self, request: Request, keys: list[str], function: FunctionIdentity | None) -> Row | None:
        """A row that would answer, were it of the judge that is asked; any, where none at all is."""
        if function not in self.first_of:
            return next(iter(self.first_of.values()), None)
        names = [request.case] if request.case is not None else []
        return next(chain(self._free(self.by_case, names), self._free(self.by_key, keys)), None)

    def _free(self, rows: dict[str, list[Row]], names: list[str]) -> Iterator[Row]:
        for name in names:
            # Used rows go as they are met, so a file with a million equal keys is still read once.
            while rows.get(name) and rows[name][0].used:
                rows[name].pop(0)
            yield from (row for row in rows.get(name, ()) if not row.used)


def _fits(row: Row, request: Request, function: FunctionIdentity | None) -> bool:
    if row.order not in (None, request.order) or row.attempt not in (None, request.attempt):
        return False
    return row.identify() == function


def _identify(function: Model | Callable[..., Any]) -> FunctionIdentity:
    from adjudge.models.function import as_model

    found = find_function(as_model(function))
    if found is None:
        raise UsageError("function= of a replay is a judge in code; for what a model said, leave it out")
    return found


def _miss(path: Path, request: Request, key: str, *, other: str, nearest: str) -> MissingRecording:
    about = f"key {key}"
    about += f", case {request.case!r}" if request.case is not None else ""
    about += f", order {request.order}" if request.order is not None else ""
    said = f"{path} has no unused reply for {about}, attempt {request.attempt}"
    if other:
        return MissingRecording(f"{said}; {other}", key=key)
    said += f" ({nearest})" if nearest else ""
    return MissingRecording(f"{said}; record it again, or add a row by hand", key=key)


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


class _Function(msgspec.Struct):
    module: str
    qualname: str
    code: str


class _Reply(msgspec.Struct):
    text: str | None = None
    finish_reason: FinishReason = "stop"
    usage: _Usage | None = None
    logprobs: list[_Token] | None = None
    model: str | None = None
    model_requested: str | None = None
    model_expected: str | None = None
    request_id: str | None = None
    source: Literal["function"] | None = None
    function: _Function | None = None

    def __post_init__(self) -> None:
        if (self.source is None) != (self.function is None):  # half a mark is nobody's
            raise ValueError("a reply of a function has both `source` and `function`")


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

    def identify(self) -> FunctionIdentity | None:
        """Which function the row says it is of; ``None`` for a model's."""
        said = self.reply.function
        return None if said is None else FunctionIdentity(module=said.module, qualname=said.qualname, code=said.code)


_DECODER = msgspec.json.Decoder(Row)


def read_rows(path: Path) -> list[Row]:
    """The rows of a regular file of at most 500 MB; raises ``UsageError`` naming file, line and fault."""
    return [_read_row(path, number, line) for number, line in read_lines(path)]


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of such a file that are not empty, each with its number from 1; raises ``UsageError`` for no file."""
    for number, line in enumerate(_read_bytes(path).splitlines(), 1):
        if line.strip():
            yield number, line


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
    if row.reply.text is None and row.reply.finish_reason == "stop":
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
    function = row.identify()
    if function is not None:
        # It had no token to mask: what it returned is kept, and given back, to the letter.
        return Reply(text=said.text, finish_reason=said.finish_reason, function=function)
    return Reply(
        text=None if said.text is None else unmask(said.text, token),
        finish_reason=said.finish_reason,
        usage=Usage(**msgspec.structs.asdict(said.usage)) if said.usage else None,
        logprobs=logprobs,
        # Where the name that was asked for was kept, none was reported; a row by hand may say it beside the reply.
        model=said.model or (None if said.model_requested else row.model),
        model_requested=said.model_requested,
        model_expected=said.model_expected,
        request_id=said.request_id,
    )
