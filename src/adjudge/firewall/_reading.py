"""From a reply to what a judge rejects.

A reply that objects is never read as one that does not, however it is written. One whose objection cannot be used is
undecided, keeps what it objected to as its value, and is not asked again: a second try could take the objection back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from adjudge._display import clean
from adjudge.errors import ReplyError
from adjudge.firewall._verdicts import Threat
from adjudge.question import Answer, Question
from adjudge.reply import FLAGS, check_finite, read_flag, read_text

T = TypeVar("T")

THREATS = (
    "prompt_injection",
    "sql_injection",
    "shell_injection",
    "path_traversal",
    "exfiltration",
    "forgery",
)
"""The threats that an input firewall's judge is asked to look for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RulesReply:
    """What one judge rejects of a list of rules."""

    rejected: tuple[tuple[int, str], ...] = ()
    """Numbers from 1, each once, and reasons."""
    usable: bool = True
    """False for an objection that nobody can map to rules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputReply:
    """What one judge found in arguments."""

    threats: tuple[Threat, ...] = ()


def answer_rules(found: Mapping[str, Any], question: Question) -> Answer:
    """Read a prompt firewall's reply: ``{"rejected": [{"index", "reason"}], "safe"}``."""
    try:
        rejected = _read_list(found, "rejected", _read_rule)
        _check_indexes([index for index, _ in rejected], len(question.parts))
        safe = _read_outcome(found, objects=bool(rejected))
    except ReplyError as error:
        if not _objects(found, "rejected"):
            raise
        kept = RulesReply(usable=False)
        return Answer(outcome="undecided", because=error.because, detail=error.detail, value=kept, final=True)
    return Answer(outcome="passed" if safe else "failed", score=float(safe), value=RulesReply(rejected=rejected))


def answer_input(found: Mapping[str, Any], question: Question) -> Answer:
    """Read an input firewall's reply: ``{"threats": [{"field", "type", "reason"}], "safe"}``."""
    del question
    threats, trouble = _try_threats(found)
    try:
        # A list that cannot be read still objects: what says safe beside it contradicts it.
        safe = _read_outcome(found, objects=bool(found.get("threats")))
        if trouble is not None and safe:
            raise trouble
    except ReplyError as error:
        if not _objects(found, "threats"):
            raise
        kept = InputReply(threats=threats)
        return Answer(outcome="undecided", because="contradiction", detail=error.detail, value=kept, final=True)
    detail = f"what it named cannot be used: {trouble.detail}" if trouble is not None else ""
    return Answer(
        outcome="passed" if safe else "failed", score=float(safe), value=InputReply(threats=threats), detail=detail
    )


def _objects(found: Mapping[str, Any], name: str) -> bool:
    """Whether a reply says no anywhere: something in its list, or a flag that is false."""
    return bool(found.get(name)) or any(found.get(flag) is False for flag in FLAGS)


def _read_outcome(found: Mapping[str, Any], *, objects: bool) -> bool:
    safe = read_flag(found) is True
    check_finite(found)
    if safe and objects:
        raise ReplyError("contradiction", "the reply says safe and names what it rejects")
    return safe


def _read_list(found: Mapping[str, Any], name: str, read: Callable[[Mapping[str, Any]], T]) -> tuple[T, ...]:
    value = found.get(name)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ReplyError("unparseable", f"{name!r} must be a list of objects")
    return tuple(read(item) for item in value)


def _read_rule(entry: Mapping[str, Any]) -> tuple[int, str]:
    index = entry.get("index")
    if type(index) is not int:  # neither 1.5, nor true, nor "1": which rule was meant is not ours to guess
        raise ReplyError("unparseable", "an 'index' in the reply is not a whole number")
    return index, shorten(read_text(entry, "reason"))


def _check_indexes(indexes: list[int], count: int) -> None:
    for index in indexes:
        if not 1 <= index <= count:
            raise ReplyError("unparseable", f"the reply rejects a rule outside the {count} that were shown")
    if len(set(indexes)) != len(indexes):
        raise ReplyError("unparseable", "the reply rejects a rule twice")


def _try_threats(found: Mapping[str, Any]) -> tuple[tuple[Threat, ...], ReplyError | None]:
    try:
        return _read_list(found, "threats", _read_threat), None
    except ReplyError as error:
        return (), error


def _read_threat(entry: Mapping[str, Any]) -> Threat:
    where, kind, reason = (shorten(read_text(entry, name)) for name in ("field", "type", "reason"))
    return Threat(field=where, type=kind, reason=reason)


def shorten(text: str) -> str:
    """A judge's words on one line of at most 300 characters, without what a terminal would obey."""
    said = clean(" ".join(text[:2_000].split()), keep_lines=False)
    return said if len(said) <= 300 else f"{said[:299]}…"
