"""An audit from plain data: what ``to_dict`` wrote, and the front matter that people write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, date, datetime
from hashlib import sha256
from typing import Any

from adjudge._display import clean
from adjudge._plain import to_plain
from adjudge.audit._entry import AuditBasis, AuditEntry, Finding, Findings, Judged
from adjudge.errors import UsageError
from adjudge.ledger._payload import write_payload
from adjudge.result import RuleResult, read_result
from adjudge.rules._words import flatten, show, suggest

_ALIASES = {
    "createdAt": "created_at",
    "date": "created_at",
    "agent": "agent_id",
    "agentId": "agent_id",
    "executionId": "execution_id",
    "execution": "execution_id",
    "ruleResults": "rule_results",
    "judgeResult": "judge_result",
}
_BESIDE = ("schema", "type", "status", "computed_opinion")
"""Members that are no field: what it is, where the work on it stands, and what the rule says."""
_NEEDED = ("objectives", "opinion", "findings", "created_at")
_FIELDS = tuple(item.name for item in fields(AuditEntry))
_LISTS: dict[str, Any] = {
    "scope": tuple[str, ...],
    "found": tuple[Finding, ...],
    "judged": tuple[Judged, ...],
    "rule_results": tuple[RuleResult, ...],
    "basis": AuditBasis | None,
    "findings": Findings,
    "opinion": str,
    "objectives": str,
    "reason": str,
    "opinion_by": str | None,
    "agent_id": str | None,
    "execution_id": str | None,
    "id": str,
    "metadata": dict[str, Any],
}


def read_audit(data: Mapping[str, Any]) -> AuditEntry:
    """An audit from what ``to_dict`` wrote, or from the front matter of a report that a person wrote.

    ``date`` and ``createdAt`` (milliseconds) stand for ``created_at``, ``agent`` for ``agent_id``, and the other names
    in camel case for theirs. A ``status`` goes to the metadata. An ``id`` that is missing is the digest of the rest,
    so it is the same whenever the file is read. Raises ``UsageError`` for anything else, for numbers of findings that
    are not there, and for an opinion that is not what its findings come to.
    """
    if not isinstance(data, Mapping):
        raise UsageError(f"an audit is read from a mapping, got {type(data).__name__}")
    given = _name_members(data)
    given["created_at"] = _read_time(given["created_at"])
    if "id" not in given:
        said = {name: to_plain(_write_dates(item)) for name, item in data.items()}
        given["id"] = f"sha256:{sha256(write_payload(said)).hexdigest()}"
    if given.get("judge_result") is not None:
        given["judge_result"] = read_result(given["judge_result"])
    for name, kind in _LISTS.items():
        if name in given:
            given[name] = _convert(name, given[name], kind)
    entry = AuditEntry(**given)
    said = data.get("computed_opinion")
    if said is not None and said != entry.computed_opinion:
        raise UsageError(f"this audit says that the rule says {show(said)}, and the rule says {entry.computed_opinion}")
    return entry


def _name_members(data: Mapping[str, Any]) -> dict[str, Any]:
    """The members by the names of fields, each once, none unknown and none missing."""
    given: dict[str, Any] = {}
    for key, value in data.items():
        name = _ALIASES.get(key, key)
        if name in given:
            raise UsageError(f"an audit says {name} twice, the second time as {show(key)}; keep one")
        if name not in _FIELDS and name not in _BESIDE:
            raise UsageError(f"an audit has no member {show(key)}{suggest(key, (*_FIELDS, *_ALIASES))}")
        given[name] = value
    _check_beside(given)
    status = given.get("status")
    for name in _BESIDE:
        given.pop(name, None)
    if status is not None:
        given["metadata"] = {**_convert("metadata", given.get("metadata", {}), dict[str, Any]), "status": status}
    for name in _NEEDED:
        if name not in given:
            raise UsageError(f"an audit needs {name}, and this one has none; write it into its front matter")
    if "ruleResults" in data:
        given["rule_results"] = [_name_rule(item) for item in _convert("ruleResults", data["ruleResults"], list[Any])]
    return given


def _check_beside(given: Mapping[str, Any]) -> None:
    for name, wanted in (("schema", AuditEntry.schema), ("type", "audit")):
        if given.get(name, wanted) != wanted:
            raise UsageError(f"the {name} of an audit is {wanted!r}, got {show(given[name])}")


def _name_rule(said: Any) -> Any:
    """A rule's result with the seed's ``ruleName``."""
    if not isinstance(said, dict) or "ruleName" not in said or "name" in said:
        return said
    return {"name": said["ruleName"], **{key: item for key, item in said.items() if key != "ruleName"}}


def _read_time(said: Any) -> datetime:
    """A moment: a text or a time with its zone, a day (its beginning, in UTC), or milliseconds since 1970."""
    try:
        if isinstance(said, str):
            said = date.fromisoformat(said) if len(said) <= 10 else datetime.fromisoformat(said)
        elif isinstance(said, int) and not isinstance(said, bool):
            return datetime.fromtimestamp(said / 1000, UTC)
        if isinstance(said, date) and not isinstance(said, datetime):
            return datetime(said.year, said.month, said.day, tzinfo=UTC)
    except (OSError, OverflowError, ValueError):
        pass
    if not isinstance(said, datetime):
        raise UsageError(f"an audit's created_at is a time like 2026-11-20T12:00:00Z or a day, got {show(said)}")
    return said


def _write_dates(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date) else value


def _convert(name: str, value: Any, kind: Any) -> Any:
    import msgspec

    try:
        return msgspec.convert(value, kind)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"an audit's {name} cannot be read: {flatten(clean(str(error)), 200)}") from None
