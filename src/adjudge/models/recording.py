"""Recording what a model answered, and answering from the record.

A file has one JSON object per line (``adjudge/recording/1``). It holds what was judged and what was replied, with the
token masked, and never a key; it is created readable by its owner alone.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

from adjudge.errors import ModelError, UsageError
from adjudge.formats.files import check_regular
from adjudge.models.model import Model, Reply, Request, TokenLogprob
from adjudge.models.wrapper import WrapperModel

_MARK = re.compile(r"\{\{(=*)token(\[[0-9]{1,6}:[0-9]{1,6}\])?\}\}")


def mask(text: str, token: str | None) -> str:
    """``text`` as it is recorded."""
    if "{{" not in text:  # nothing to escape, and a pattern for each token is most of what masking costs
        return text.replace(token, "{{token}}") if token else text
    # One pass for both: escaping before or after masking would let one produce what the other then reads.
    pattern = re.compile(f"{re.escape(token)}|{_MARK.pattern}") if token else _MARK
    return pattern.sub(lambda found: "{{token}}" if found.group() == token else _escape(found), text)


def unmask(text: str, token: str | None) -> str:
    """The text that ``mask`` was given, with the present token in place of the recorded one."""

    def restore(found: re.Match[str]) -> str:
        level, part = found.group(1), found.group(2) or ""
        if level:
            return "{{" + level[1:] + "token" + part + "}}"
        if not token:
            return found.group()
        start, end = (int(number) for number in part[1:-1].split(":")) if part else (0, len(token))
        return token[start:end]

    return _MARK.sub(restore, text)


def mask_tokens(found: Sequence[TokenLogprob], token: str | None) -> tuple[TokenLogprob, ...]:
    """The same for log-probabilities, where a model's tokens cut the token in pieces: ``{{token[0:3]}}``."""
    pieces = [item.token for item in found]
    written = ["".join(_mask_piece(piece, cuts)) for piece, cuts in zip(pieces, _find_cuts(pieces, token), strict=True)]
    return tuple(
        TokenLogprob(
            token=new,
            logprob=item.logprob,
            top=tuple((new if text == item.token else mask(text, token), number) for text, number in item.top),
        )
        for item, new in zip(found, written, strict=True)
    )


def unmask_tokens(found: Sequence[TokenLogprob], token: str | None) -> tuple[TokenLogprob, ...]:
    """The log-probabilities that ``mask_tokens`` was given, with the present token."""
    return tuple(
        TokenLogprob(
            token=unmask(item.token, token),
            logprob=item.logprob,
            top=tuple((unmask(text, token), number) for text, number in item.top),
        )
        for item in found
    )


Cut = tuple[int, int, int]
"""Start and end within a piece, and where in the token the start is."""


def _find_cuts(pieces: Sequence[str], token: str | None) -> list[list[Cut]]:
    cuts: list[list[Cut]] = [[] for _ in pieces]
    if not token:
        return cuts
    whole, begins = "".join(pieces), _add_up(pieces)
    places = [found.start() for found in re.finditer(re.escape(token), whole)]
    number = 0
    # Both are in order, so they are walked side by side: a reply may be nothing but the token, many thousand times.
    for place in places:
        while begins[number] + len(pieces[number]) <= place:
            number += 1
        reached = number
        while reached < len(pieces) and begins[reached] < place + len(token):
            begin = begins[reached]
            start, end = max(place, begin), min(place + len(token), begin + len(pieces[reached]))
            if start < end:
                cuts[reached].append((start - begin, end - begin, start - place))
            reached += 1
    return cuts


def _mask_piece(piece: str, cuts: list[Cut]) -> Iterator[str]:
    at = 0
    for start, end, offset in cuts:
        yield mask(piece[at:start], None)
        yield f"{{{{token[{offset}:{offset + end - start}]}}}}"
        at = end
    yield mask(piece[at:], None)


def _add_up(pieces: Sequence[str]) -> list[int]:
    begins, total = [], 0
    for piece in pieces:
        begins.append(total)
        total += len(piece)
    return begins


def _escape(found: re.Match[str]) -> str:
    return "{{=" + found.group()[2:]


SCHEMA = "adjudge/recording/1"


def describe_request(request: Request) -> dict[str, Any]:
    """What a recording keeps of a request: with the model's name, exactly what its key is computed from."""
    form = request.form
    return {
        "system": mask(request.system, request.token),
        "user": mask(request.user, request.token),
        "form": {"name": form.name, "digest": form.digest} if form else None,
        "parameters": {
            "temperature": request.temperature,
            "seed": request.seed,
            "max_output_tokens": request.max_output_tokens,
            "logprobs": request.logprobs,
            # Of a judge in code: no prompt tells a text from a value that is written alike, nor the thresholds.
            **({"given": request.given.key} if request.given is not None else {}),
        },
    }


def make_key(model: str, described: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical JSON (RFC 8785) of a model's name and a described request."""
    form, parameters = described["form"], described["parameters"]
    # In canonical JSON the members stand in the order of their names, so the prompt's user part comes last: what is
    # before it is the same for every content judged by one rubric, and hashed once.
    begun = _begin_key(
        model, described["system"], form and tuple(form.items()), tuple(parameters), *parameters.values()
    )
    mac = begun.copy()
    mac.update(_encode_text(described["user"], model) + b"}")
    return mac.hexdigest()


def make_keys(models: Sequence[str], described: Mapping[str, Any]) -> list[str]:
    """``make_key`` for several models."""
    return [make_key(model, described) for model in models]


@lru_cache(maxsize=256, typed=True)  # typed: 1, 1.0 and True are written differently
def _begin_key(
    model: str, system: str, form: tuple[tuple[str, str], ...] | None, names: tuple[str, ...], *values: Any
) -> Any:
    import rfc8785

    try:
        written = [rfc8785.dumps(item) for item in (form and dict(form), dict(zip(names, values, strict=True)))]
    except rfc8785.CanonicalizationError as error:
        raise UsageError(f"a request to {model} cannot be recorded or looked up: {error}") from None
    texts = [_encode_text(text, model) for text in (model, system)]
    return hashlib.sha256(
        b'{"form":%b,"model":%b,"parameters":%b,"system":%b,"user":' % (written[0], texts[0], written[1], texts[1])
    )


def _encode_text(text: str, model: str) -> bytes:
    """A text in canonical JSON; msgspec writes it as RFC 8785 does, many times as fast as a library for the whole."""
    import msgspec

    try:
        return msgspec.json.encode(text)
    except UnicodeEncodeError as error:
        raise UsageError(f"a request to {model!r} cannot be recorded or looked up: {error}") from None


class RecordingModel(WrapperModel):
    """A model whose replies are appended to a file; everything else is the model's own.

    Raises ``UsageError`` when the file cannot be written, before the first request is made.
    """

    def __init__(self, model: Model | Callable[..., Any], path: str | os.PathLike[str]) -> None:
        super().__init__(model)
        self.path = Path(path)
        self._lock = threading.Lock()
        self._is_ready = False

    def check(self) -> None:
        """Raise ``UsageError`` when the file cannot be written, and for what the model's own ``check`` finds."""
        self._prepare()
        super().check()

    async def complete(self, request: Request, /) -> Reply:
        """Ask the model and record its reply. Exceptions are not recorded."""
        self._prepare()
        described = describe_request(request)
        key = make_key(self.name, described)
        reply = await self.model.complete(request)
        self._append(_encode_row(self.name, key, described, request, reply))
        return reply

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} to {str(self.path)!r}>"

    def _again(self, model: Model) -> Self:
        return type(self)(model, self.path)

    def _prepare(self) -> None:
        if self._is_ready:
            return
        try:
            with self._lock:
                if self.path.exists():  # a pipe would wait for its reader, and the last byte is read
                    check_regular(self.path)
                descriptor = self._open()
                try:
                    # A run that was killed may have left half a line; a row glued to it would be lost with it.
                    if not _ends_with_newline(self.path):
                        os.write(descriptor, b"\n")
                finally:
                    os.close(descriptor)
        except OSError as error:
            raise UsageError(f"the recording {str(self.path)!r} cannot be written: {error.strerror}") from None
        self._is_ready = True

    def _append(self, row: bytes) -> None:
        # One write to a file opened for appending: rows of other threads and processes do not mix with it.
        try:
            with self._lock:
                descriptor = self._open()
                try:
                    written = os.write(descriptor, row)
                    while written < len(row):
                        written += os.write(descriptor, row[written:])
                finally:
                    os.close(descriptor)
        except OSError as error:
            raise ModelError(f"the reply could not be recorded in {str(self.path)!r}: {error.strerror}") from None

    def _open(self) -> int:
        return os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)


def _ends_with_newline(path: Path) -> bool:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        if size == 0:
            return True
        file.seek(size - 1)
        return file.read(1) == b"\n"


def _encode_row(model: str, key: str, described: Mapping[str, Any], request: Request, reply: Reply) -> bytes:
    import msgspec

    row: dict[str, Any] = {"schema": SCHEMA, "key": key}
    row |= {"case": request.case} if request.case is not None else {}
    row |= {"order": request.order} if request.order is not None else {}
    row |= {"attempt": request.attempt, "model": model, "request": described, "reply": reply_to_dict(request, reply)}
    try:
        return msgspec.json.encode(row) + b"\n"
    except (TypeError, UnicodeEncodeError) as error:
        raise ModelError(f"the reply of {model} cannot be recorded: {error}") from None


def reply_to_dict(request: Request, reply: Reply) -> dict[str, Any]:
    """What a recording keeps of a reply, the token masked; msgspec writes what is in it."""
    token = request.token
    if reply.function is not None:  # it was given no token, so none is masked
        mark = {"source": "function", "function": reply.function.to_dict()}
        return {"text": reply.text, "finish_reason": reply.finish_reason, **mark}
    written: dict[str, Any] = {
        "text": None if reply.text is None else mask(reply.text, token),
        "finish_reason": reply.finish_reason,
        "usage": reply.usage,
        "logprobs": None,
    }
    if reply.logprobs is not None:
        written["logprobs"] = [
            {"token": item.token, "logprob": item.logprob, "top": [list(pair) for pair in item.top]}
            for item in mask_tokens(reply.logprobs, token)
        ]
    for name in ("model", "model_requested", "model_expected", "request_id"):
        said = getattr(reply, name)
        written |= {name: said} if said else {}
    return written
