"""Content and results on their way: the content is sent as the library would judge it, and results must be about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from adjudge.agents.run import AgentRun
from adjudge.content import check_extent, copy_plain, digest_text, write_content
from adjudge.errors import AdjudgeError, ServerError, UsageError
from adjudge.formats.json import read_json
from adjudge.formats.plain import to_plain
from adjudge.result import JudgeResult

T = TypeVar("T")


def write_value(value: object, *, name: str = "content") -> tuple[Any, str]:
    """Write a content as the JSON value that is sent for it; also return the digest of the text that a judge sees.

    Both come from one text, so that the server judges what the digest is about. Raises ``UsageError`` for what no judge
    could be shown.
    """
    text, is_json = write_content(copy_plain(value), label=name)
    sent = read_json(text) if is_json else text
    return sent, digest_text(text)


def write_content_member(content: object) -> tuple[dict[str, Any], str]:
    """Write a content as the member that a request has for it; also return the digest as ``write_value`` does."""
    sent, subject = write_value(content)
    return {"run" if isinstance(content, AgentRun) else "content": sent}, subject


def write_arguments(arguments: Mapping[str, object]) -> dict[str, Any]:
    """Write the ``task``, ``context`` and ``reference`` that were given as JSON values."""
    return {name: write_value(value, name=name)[0] for name, value in arguments.items() if value is not None}


def write_metadata(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    """Write metadata as JSON; raises ``UsageError`` for more than can be written."""
    check_extent(metadata, "metadata")
    return to_plain(dict(metadata or {}))


def make_unreachable_result(
    error: Exception, *, judge: str, subject: str | None, metadata: Mapping[str, Any]
) -> JudgeResult:
    """Make the result where a server could not be reached: undecided, so nothing is let through."""
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


def read_answer(read: Callable[[Any], T], reply: object, url: str, noun: str) -> T:
    """Read a server's reply with a function; raises ``ServerError`` where it is no ``noun``.

    The reply may be of any shape: a proxy, a cache or another server can have given it.
    """
    try:
        return read(reply)
    except UsageError as error:
        reason = str(error)
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        reason = f"it is of another shape ({type(error).__name__})"
    raise ServerError(f"{url} gave no {noun}: {reason}")


def check_subject(answered: str | None, subject: str, url: str) -> None:
    """Raise ``ServerError`` for an answer about something else: a cache on the way, or a server that was changed."""
    if answered != subject:
        raise ServerError(f"{url} answered about another content than was sent, so the answer does not count")
