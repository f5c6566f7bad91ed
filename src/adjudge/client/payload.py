"""Content and results on their way: what is sent is what the library would judge, and what comes back is about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from adjudge.content import check_extent, copy_plain, digest_text, write_content
from adjudge.errors import AdjudgeError, ServerError, UsageError
from adjudge.formats.json import read_json
from adjudge.formats.plain import to_plain
from adjudge.result import JudgeResult

T = TypeVar("T")


def write_value(value: object, *, what: str = "content") -> tuple[Any, str]:
    """A content as the JSON value that is sent for it, and the digest of the text that a judge sees.

    Raises ``UsageError`` for what no judge could be shown.
    """
    text, is_json = write_content(copy_plain(value), what=what)
    return (read_json(text) if is_json else text), digest_text(text)


def write_arguments(given: Mapping[str, object]) -> dict[str, Any]:
    """The ``task``, ``context`` and ``reference`` that were given, as JSON values."""
    return {name: write_value(value, what=name)[0] for name, value in given.items() if value is not None}


def write_metadata(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    """Metadata as JSON; raises ``UsageError`` for more than can be written."""
    check_extent(metadata, "metadata")
    return to_plain(dict(metadata or {}))


def make_unreached(error: Exception, *, judge: str, subject: str | None, metadata: Mapping[str, Any]) -> JudgeResult:
    """The result where a server could not say anything: undecided, so nothing is let through."""
    ours = isinstance(error, AdjudgeError)
    return JudgeResult(
        outcome="undecided",
        undecided_because="error",
        decided_by="policy",
        judge=judge,
        detail=str(error) if ours else f"{type(error).__name__} was raised while the content was read",
        attempts=0,
        subject=subject,
        metadata=dict(metadata),
    )


def read_answer(read: Callable[[Any], T], said: object, url: str, what: str) -> T:
    """Return what a function makes of a server's answer; raises ``ServerError`` where that is no ``what``.

    The answer may be of any shape: a proxy, a cache or another server can have given it.
    """
    try:
        return read(said)
    except UsageError as error:
        why = str(error)
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        why = f"it is of another shape ({type(error).__name__})"
    raise ServerError(f"{url} gave no {what}: {why}")


def check_about(said: str | None, subject: str, url: str) -> None:
    """Raise ``ServerError`` for an answer about something else: a cache on the way, or a server that was changed."""
    if said != subject:
        raise ServerError(f"{url} answered about another content than was sent, so the answer does not count")
