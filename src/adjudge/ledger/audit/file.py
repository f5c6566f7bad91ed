"""Audit reports as files: Markdown for people, with YAML front matter that says the same to programs.

The front matter uses the part of YAML that every reader reads alike: each text that is more than a word is in double
quotes on one line, with everything invisible escaped. So no text can begin a line, end the front matter or become a
number, a date or a key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, date, datetime
from hashlib import sha256
from typing import Any

from adjudge.errors import UsageError
from adjudge.formats.markdown import escape
from adjudge.formats.numbers import format_score
from adjudge.formats.plain import to_plain
from adjudge.formats.text import clean, flatten, show, suggest
from adjudge.formats.typed import read_typed
from adjudge.formats.yaml import MAX_DEPTH, MAX_VALUES, read_yaml
from adjudge.ledger.audit.entry import SEVERITIES, AuditBasis, AuditEntry, Finding, Findings, Judged
from adjudge.ledger.payload import encode_payload
from adjudge.result import RuleResult, read_result


def render_body(audit: AuditEntry) -> str:
    """An audit for people."""
    return "\n\n".join(_list_parts(audit)) + "\n"


def _list_parts(audit: AuditEntry) -> Iterator[str]:
    # The word is one of four. Everything that anybody wrote stands in the cells of tables, where it begins no line.
    yield f"# Audit: {audit.opinion}"
    yield _render_table(("", ""), _list_facts(audit))
    yield "## Findings"
    counts = [(name, getattr(audit.findings, name)) for name in SEVERITIES]
    yield _render_table(("severity", "number"), counts)
    if audit.found:
        yield _render_table(("severity", "finding", "entry", "hash", "what"), map(_list_finding, audit.found))
        yield from _render_rest("findings", len(audit.found), sum(count for _, count in counts))
    if audit.judged:
        yield "## What was judged"
        names = ("entry", "outcome", "became", "score", "judge", "gate", "decided by", "result", "subject", "hash")
        yield _render_table(names, map(_list_judged, audit.judged))
    if audit.rule_results:
        yield "## Rules"
        rows = [
            (
                item.metadata.get("ledger_seq", ""),
                item.name,
                "passed" if item.passed else "failed",
                item.severity,
                item.message,
            )
            for item in audit.rule_results
        ]
        yield _render_table(("entry", "rule", "said", "severity", "message"), rows)
    if audit.basis is not None:
        yield from _list_basis(audit.basis)


def _list_facts(audit: AuditEntry) -> Iterator[tuple[str, object]]:
    yield "opinion", audit.explain()
    if audit.opinion_by is not None:
        yield "given by", audit.opinion_by
        yield "reason", audit.reason
        yield "opinion by the rule", audit.computed_opinion
    yield "objectives", audit.objectives
    yield from (("scope", item) for item in audit.scope[:100])
    for name, value in (("agent", audit.agent_id), ("execution", audit.execution_id)):
        if value is not None:
            yield name, value
    yield "id", audit.id
    yield "created", audit.created_at.astimezone(UTC).isoformat()


def _list_finding(item: Finding) -> tuple[object, ...]:
    return item.severity, item.code, item.seq if item.seq is not None else "", item.hash or "", item.detail


def _list_judged(item: Judged) -> tuple[object, ...]:
    said = f"{item.outcome} ({item.undecided_because})" if item.undecided_because else item.outcome
    score = "" if item.score is None else format_score(item.score)
    who = f"{item.decided_by} ({item.by})" if item.by else item.decided_by
    return item.seq, said, item.became, score, item.judge, item.gate, who, item.id, item.subject, item.hash


def _list_basis(basis: AuditBasis) -> Iterator[str]:
    yield "## The ledger"
    first = f"{basis.entries} entries" + (f", from {basis.first} to {basis.last}" if basis.entries else "")
    rows: list[tuple[str, object]] = [
        ("in order", "yes" if basis.verified else f"no: {basis.problem}"),
        ("head", basis.head or ""),
        ("looked at", first),
        ("judged", f"{basis.judged}, undecided {basis.undecided}"),
        ("pinned head", "compared" if basis.pinned_head else "none"),
        ("signatures", basis.signatures),
    ]
    rows += [("could not see", item) for item in basis.unseen]
    yield _render_table(("", ""), rows)
    yield "`adjudge ledger show ENTRY` shows an entry with its hash, `adjudge ledger verify --head HEAD` checks all."


def _render_rest(what: str, listed: int, total: int) -> Iterator[str]:
    if listed < total:
        yield f"These are {listed:,} of {total:,} {what}."


def _render_table(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = [_render_row(names), _render_row(["---"] * len(names), raw=True)]
    return "\n".join(lines + [_render_row(row) for row in rows])


def _render_row(cells: Sequence[Any], *, raw: bool = False) -> str:
    return f"| {' | '.join(str(cell) if raw else escape(cell) for cell in cells)} |"


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
"""Members that are no field: what it is, the state of the work on it, and what the rule says."""

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
        said = {name: to_plain(_render_dates(item)) for name, item in data.items()}
        given["id"] = f"sha256:{sha256(encode_payload(said)).hexdigest()}"
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
    """A rule's result whose name is given as ``ruleName``, with ``name`` in its place."""
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


def _render_dates(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date) else value


def _convert(name: str, value: Any, kind: Any) -> Any:
    try:
        return read_typed(value, kind)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"an audit's {name} cannot be read: {flatten(clean(str(error)), 200)}") from None


LARGEST = 10_000_000
"""Characters of the largest report that is read or written."""


_FENCE = "---"

_WORD = re.compile(r"[a-z]+(_[a-z]+)*")

_TAG = "tag:yaml.org,2002:"

_NEVER_FOLDED = 2**31 - 1
"""Columns of a line: the widest that PyYAML can be told."""

_MEANS_OTHER = {"true", "false", "yes", "no", "on", "off", "null", "y", "n", "nan", "inf"}


def render_audit(audit: AuditEntry, body: str | None = None) -> str:
    """Render an audit as Markdown with YAML front matter; ``parse_audit`` reads the audit back.

    ``body`` is the text below the front matter; by default a description of the audit for people. Raises ``UsageError``
    when the audit holds more than can be read back: 50,000 values, 49 levels, 10 MB.
    """
    given = audit.to_dict()
    data = {name: item for name, item in given.items() if item not in (None, [], {}) and (name, item) != ("reason", "")}
    first = {name: data.pop(name) for name in ("schema", "id", "created_at", "opinion") if name in data}
    data = {"type": "audit", **first, **_leave_out(data)}
    _check_size(data)
    text = f"{_FENCE}\n{_render_front(data)}{_FENCE}\n\n{render_body(audit) if body is None else body}"
    if len(text) > LARGEST:
        raise UsageError(
            f"a report has at most {LARGEST:,} characters, this one {len(text):,}; leave some metadata out"
        )
    return text if text.endswith("\n") else f"{text}\n"


def parse_audit(text: str) -> AuditEntry:
    """Read an audit from a report's front matter; the text below it is for people, and is not read.

    Also reads reports that people wrote: see ``read_audit``. Raises ``UsageError`` for anything but a report.
    """
    front = _find_front(text)
    try:
        data = read_yaml(front)[0]
    except ValueError as error:
        raise UsageError(f"the front matter of a report cannot be read: {flatten(str(error), 300)}") from None
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise UsageError("the front matter of a report is a list of names with values, like opinion: qualified")
    return read_audit(data)


def _find_front(text: str) -> str:
    if not isinstance(text, str):
        raise UsageError(f"a report is a text, got {type(text).__name__}")
    if len(text) > LARGEST:
        raise UsageError(f"a report has at most {LARGEST:,} characters, this one {len(text):,}")
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != _FENCE:
        raise UsageError(f"a report begins with a line {_FENCE}, its front matter and another line {_FENCE}")
    for number, line in enumerate(lines[1:], 1):
        if line.rstrip() == _FENCE:
            return "\n".join(lines[1:number])
    raise UsageError(f"the front matter of a report ends with a line {_FENCE}, and this one has none")


def _check_size(data: dict[str, Any]) -> None:
    """Raise ``UsageError`` for more than the reader of YAML takes, counted as it counts."""
    left: list[tuple[Any, int]] = [(data, 1)]
    values, steps = 1, 10
    while left:
        value, depth = left.pop()
        inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
        values += len(inner)
        steps += len(inner) * (2 if isinstance(value, dict) else 1) + 1
        if values > MAX_VALUES or steps > 2 * MAX_VALUES or depth >= MAX_DEPTH:
            most = f"{MAX_VALUES:,} values, {MAX_DEPTH - 1} levels deep"
            raise UsageError(f"an audit holds at most {most}; leave some metadata out")
        left += [(item, depth + 1) for item in inner]


def _leave_out(data: dict[str, Any]) -> dict[str, Any]:
    """The same without what is not known, in what is ours; in metadata and results it stands as it was given."""
    kept = dict(data)
    for name in ("found", "judged", "rule_results"):
        if name in kept:
            kept[name] = [_drop_none(item) for item in kept[name]]
    return kept | ({"basis": _drop_none(kept["basis"])} if "basis" in kept else {})


def _drop_none(data: dict[str, Any]) -> dict[str, Any]:
    return {name: item for name, item in data.items() if item is not None}


def _render_front(data: dict[str, Any]) -> str:
    """YAML with a line for each member, and one for each item of a member that holds several."""
    import yaml
    from yaml.representer import SafeRepresenter

    leaves = SafeRepresenter()

    def make_node(value: Any, depth: int) -> Any:
        inline = depth > 1 or not value
        if isinstance(value, dict):
            pairs = [(make_node(name, depth + 1), make_node(item, depth + 1)) for name, item in value.items()]
            return yaml.MappingNode(f"{_TAG}map", pairs, flow_style=inline)
        if isinstance(value, list):
            return yaml.SequenceNode(f"{_TAG}seq", [make_node(item, depth + 1) for item in value], flow_style=inline)
        if isinstance(value, str):
            # Not left to PyYAML: what it knows for a plain text, another reader may take for a flag or a number.
            plain = _WORD.fullmatch(value) and value not in _MEANS_OTHER
            return yaml.ScalarNode(f"{_TAG}str", value, style=None if plain else '"')
        return leaves.represent_data(value)

    dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    written = yaml.serialize(make_node(data, 0), Dumper=dumper, width=_NEVER_FOLDED, allow_unicode=True)
    # PyYAML escapes what would end a line, not what turns the order of letters around or cannot be seen. All of that
    # stands in double quotes, where an escape means the same.
    return "".join(char if char.isprintable() or char == "\n" else _escape(char) for char in written)


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"
