"""Error bodies of providers: read as hostile data, cut short, never a key in it.

Whether a request is tried again is decided in ``models/retry.py`` (``may_retry``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import msgspec

from adjudge.errors import ModelError
from adjudge.models.providers.key_redaction import LONGEST, redact_error

_UNSUPPORTED = re.compile(
    r"support|unknown|unrecogni[sz]ed|unexpected|extra|not permitted|not allowed|deprecated|invalid|not available|"
    r"unavailable|not implemented|cannot find field|removed|not enabled|forbidden",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBody:
    """A provider's error body: its sentence, and the parameter it names."""

    message: str = ""
    param: str = ""
    code: str = ""


# Typed and not recursive: an untyped decode of a deeply nested body can exhaust the C stack and end the process.
class _Detail(msgspec.Struct):
    loc: list[str | int] = []
    msg: str = ""


class _Details(msgspec.Struct):
    detail: list[_Detail] = []


class _Error(msgspec.Struct):
    message: str | None = None
    param: str | None = None
    code: str | int | None = None


class _Body(msgspec.Struct):
    error: str | _Error | None = None
    message: str | _Details | None = None
    detail: str | list[_Detail] | None = None
    param: str | None = None
    code: str | int | None = None


_DECODER = msgspec.json.Decoder(_Body | list[_Body])


def read_error_body(content: bytes) -> ErrorBody:
    """Read the error in a body, in any shape that providers use; without one, the body itself is the message."""
    try:
        decoded = _DECODER.decode(content)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        decoded = None
    body = (decoded[0] if decoded else None) if isinstance(decoded, list) else decoded
    complaint = _read_body(body) if body is not None else ErrorBody()
    return complaint if complaint.message else ErrorBody(message=content[: 100 * LONGEST].decode("utf-8", "replace"))


def make_http_error(host: str, status: int, message: str, secrets: Iterable[str] = ()) -> ModelError:
    """Make the error for an answer that is not a reply: host, status and the provider's own words."""
    if 300 <= status < 400:
        return ModelError(
            f"{host} answered {status}, and redirects are not followed: give the address it points to instead",
            status=status,
        )
    redacted = redact_error(message, secrets)
    return ModelError(
        f"{host} answered {status}: {redacted}" if redacted else f"{host} answered {status}", status=status
    )


def find_refused(complaint: ErrorBody, sent: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    """Find the parameters that a provider says it does not take, out of those that were sent.

    ``sent`` maps each parameter to the names that an error may call it by. An error that names a parameter without
    saying that it is not supported (a prompt too long for ``max_tokens``) finds nothing.
    """
    if not _UNSUPPORTED.search(f"{complaint.message} {complaint.code}"):
        return frozenset()
    for text in (complaint.param, complaint.message):
        parameters = frozenset(
            name for name, words in sent.items() if any(_contains_word(text, word) for word in words)
        )
        if parameters:
            return parameters
    return frozenset()


def _contains_word(text: str, word: str) -> bool:
    """Return whether a text contains a word as a whole, in any case of letters."""
    return re.search(rf"(?<![A-Za-z0-9_]){re.escape(word)}(?![A-Za-z0-9_])", text, re.IGNORECASE) is not None


def _read_body(body: _Body) -> ErrorBody:
    """Read an error in any of the shapes that servers use; its message is empty where the body has none of them."""
    if isinstance(body.error, str):
        return ErrorBody(message=body.error)
    if body.error is not None and body.error.message:
        return ErrorBody(
            message=body.error.message, param=body.error.param or "", code=str(body.error.code or body.code or "")
        )
    if isinstance(body.message, str):
        return ErrorBody(message=body.message, param=body.param or "", code=str(body.code or ""))
    if isinstance(body.detail, str):
        return ErrorBody(message=body.detail)
    details = body.message.detail if body.message is not None else body.detail
    return ErrorBody(message="; ".join(_join_detail(detail) for detail in details or ()))


def _join_detail(detail: _Detail) -> str:
    """Write one validation error of a FastAPI server: the parameter, which is in ``loc``, and the sentence."""
    return f"{'.'.join(str(part) for part in detail.loc)}: {detail.msg}" if detail.loc else detail.msg
