"""Contents and arguments as a request sends them, and checks that an answer is about what was sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from adjudge.agents.run import AgentRun
from adjudge.content import check_extent, copy_plain, digest_text, write_content
from adjudge.errors import AdjudgeError, ServerError, UsageError
from adjudge.formats.json import read_json
from adjudge.formats.plain_data import to_plain
from adjudge.result import JudgeResult

T = TypeVar("T")


def write_value(value: object, *, name: str = "content") -> tuple[Any, str]:
    """Write a content as the JSON value to send; also return the digest of the text that a judge is shown.

    Both are made from one text, so that the digest is about what the server judges. ``name`` is the content's name in
    messages. Raises ``UsageError`` for a value that no judge could be shown.
    """
    text, is_json = write_content(copy_plain(value), label=name)
    sent = read_json(text) if is_json else text
    return sent, digest_text(text)


def write_content_member(content: object) -> tuple[dict[str, Any], str]:
    """Write a content as a request's member (``run`` for an agent's run, else ``content``); also return its digest."""
    sent, subject = write_value(content)
    return {"run" if isinstance(content, AgentRun) else "content": sent}, subject


def write_arguments(arguments: Mapping[str, object]) -> dict[str, Any]:
    """Write the ``task``, ``context`` and ``reference`` as JSON values; those that are ``None`` are left out."""
    return {name: write_value(value, name=name)[0] for name, value in arguments.items() if value is not None}


def write_metadata(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    """Write metadata as plain data; raises ``UsageError`` for metadata that are nested too deep or too large."""
    check_extent(metadata, "metadata")
    return to_plain(dict(metadata or {}))


def make_unreachable_result(
    error: Exception, *, judge: str, subject: str | None, metadata: Mapping[str, Any]
) -> JudgeResult:
    """Make the undecided result to return if a server cannot be reached or the content cannot be sent.

    Nothing is let through by it. Of an error that is not adjudge's own, only the type is named.
    """
    is_own_error = isinstance(error, AdjudgeError)
    return JudgeResult(
        outcome="undecided",
        undecided_because="error",
        decided_by="policy",
        judge=judge,
        detail=str(error) if is_own_error else f"{type(error).__name__} was raised while the content was read",
        attempts=0,
        subject=subject,
        metadata=dict(metadata),
    )


def read_answer(read: Callable[[Any], T], reply: object, url: str, noun: str) -> T:
    """Read a server's reply with the function ``read``; raises ``ServerError`` if that cannot read it.

    The reply may have any shape, because a proxy, a cache or another server may have sent it. ``noun`` says in the
    message what was expected.
    """
    try:
        return read(reply)
    except UsageError as error:
        reason = str(error)
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        reason = f"it is of another shape ({type(error).__name__})"
    raise ServerError(f"{url} gave no {noun}: {reason}")


def check_subject(answered_subject: str | None, sent_subject: str, url: str) -> None:
    """Raise ``ServerError`` if an answer is about another content than was sent, by the digests of both.

    A cache on the way may have sent it, or somebody who changed the server.
    """
    if answered_subject != sent_subject:
        raise ServerError(f"{url} answered about another content than was sent, so the answer does not count")
