"""Audit reports as files: Markdown for people, with YAML front matter that says the same to programs.

The front matter uses the part of YAML that every reader reads alike: each text that is more than a word is in double
quotes on one line, with everything invisible escaped. So no text can begin a line, end the front matter or become a
number, a date or a key.

The opinion is decided in ``opinion.py`` (``choose_opinion``).
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
from adjudge.formats.yaml import MAX_DEPTH, MAX_VALUES
from adjudge.ledger.audit.entry import SEVERITIES, AuditBasis, AuditEntry, Finding, Findings, Judged
from adjudge.ledger.payload import encode_payload
from adjudge.result import RuleResult, read_result


def render_body(audit: AuditEntry) -> str:
    """Render an audit for people."""
    return "\n\n".join(_list_parts(audit)) + "\n"


def _list_parts(audit: AuditEntry) -> Iterator[str]:
    """Yield the headings and tables of an audit as Markdown."""
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
                result.metadata.get("ledger_seq", ""),
                result.name,
                "passed" if result.passed else "failed",
                result.severity,
                result.message,
            )
            for result in audit.rule_results
        ]
        yield _render_table(("entry", "rule", "said", "severity", "message"), rows)
    if audit.basis is not None:
        yield from _list_basis(audit.basis)


def _list_facts(audit: AuditEntry) -> Iterator[tuple[str, object]]:
    """Yield the name and the value of each fact about an audit, with at most 100 lines of its scope."""
    yield "opinion", audit.explain()
    if audit.opinion_by is not None:
        yield "given by", audit.opinion_by
        yield "reason", audit.reason
        yield "opinion by the rule", audit.computed_opinion
    yield "objectives", audit.objectives
    yield from (("scope", line) for line in audit.scope[:100])
    for name, value in (("agent", audit.agent_id), ("execution", audit.execution_id)):
        if value is not None:
            yield name, value
    yield "id", audit.id
    yield "created", audit.created_at.astimezone(UTC).isoformat()


def _list_finding(finding: Finding) -> tuple[object, ...]:
    """List the cells of a finding; the cells of the entry are empty where it is about none."""
    return (
        finding.severity,
        finding.code,
        finding.seq if finding.seq is not None else "",
        finding.hash or "",
        finding.detail,
    )


def _list_judged(judged: Judged) -> tuple[object, ...]:
    """List the cells of a judged item."""
    outcome = f"{judged.outcome} ({judged.undecided_because})" if judged.undecided_because else judged.outcome
    score = "" if judged.score is None else format_score(judged.score)
    deciders = f"{judged.decided_by} ({judged.by})" if judged.by else judged.decided_by
    return (
        judged.seq,
        outcome,
        judged.became,
        score,
        judged.judge,
        judged.gate,
        deciders,
        judged.id,
        judged.subject,
        judged.hash,
    )


def _list_basis(basis: AuditBasis) -> Iterator[str]:
    """Yield a heading, a table of what the check of the ledger saw, and a line on how to check it again."""
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
    rows += [("could not see", unseen) for unseen in basis.unseen]
    yield _render_table(("", ""), rows)
    yield "`adjudge ledger show ENTRY` shows an entry with its hash, `adjudge ledger verify --head HEAD` checks all."


def _render_rest(noun: str, listed: int, total: int) -> Iterator[str]:
    if listed < total:
        yield f"These are {listed:,} of {total:,} {noun}."


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

_OTHER_MEMBERS = ("schema", "type", "status", "computed_opinion")
"""Members that are no field: what it is, the state of the work on it, and what the rule says."""

_REQUIRED = ("objectives", "opinion", "findings", "created_at")

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


def read_audit(members: Mapping[str, Any]) -> AuditEntry:
    """Read an audit from what ``to_dict`` wrote, or from JSON that a person or another program wrote.

    ``date`` and ``createdAt`` (milliseconds) stand for ``created_at``, ``agent`` for ``agent_id``, and the other names
    in camel case for theirs. A ``status`` goes to the metadata. An ``id`` that is missing is the digest of the rest,
    so it is the same whenever the file is read. Raises ``UsageError`` for anything else, for numbers of findings that
    are not there, and for an opinion that is not what its findings come to.

    Args:
        members: The audit as a dictionary.
    """
    if not isinstance(members, Mapping):
        raise UsageError(f"an audit is read from a mapping, got {type(members).__name__}")
    arguments = _name_members(members)
    arguments["created_at"] = _read_time(arguments["created_at"])
    if "id" not in arguments:
        computed = {name: to_plain(value) for name, value in members.items()}
        arguments["id"] = f"sha256:{sha256(encode_payload(computed)).hexdigest()}"
    if arguments.get("judge_result") is not None:
        arguments["judge_result"] = read_result(arguments["judge_result"])
    for name, kind in _LISTS.items():
        if name in arguments:
            arguments[name] = _convert(name, arguments[name], kind)
    entry = AuditEntry(**arguments)
    computed = members.get("computed_opinion")
    if computed is not None and computed != entry.computed_opinion:
        raise UsageError(
            f"this audit says that the rule says {show(computed)}, and the rule says {entry.computed_opinion}"
        )
    return entry


def _name_members(members: Mapping[str, Any]) -> dict[str, Any]:
    """Name the members by fields, each once, none unknown and none missing. Raises ``UsageError``."""
    arguments: dict[str, Any] = {}
    for key, value in members.items():
        name = _ALIASES.get(key, key)
        if name in arguments:
            raise UsageError(f"an audit says {name} twice, the second time as {show(key)}; keep one")
        if name not in _FIELDS and name not in _OTHER_MEMBERS:
            raise UsageError(f"an audit has no member {show(key)}{suggest(key, (*_FIELDS, *_ALIASES))}")
        arguments[name] = value
    _check_schema(arguments)
    status = arguments.get("status")
    for name in _OTHER_MEMBERS:
        arguments.pop(name, None)
    if status is not None:
        arguments["metadata"] = {
            **_convert("metadata", arguments.get("metadata", {}), dict[str, Any]),
            "status": status,
        }
    for name in _REQUIRED:
        if name not in arguments:
            raise UsageError(f"an audit needs {name}, and this one has none; write it down")
    if "ruleResults" in members:
        arguments["rule_results"] = [
            _name_rule(rule_result) for rule_result in _convert("ruleResults", members["ruleResults"], list[Any])
        ]
    return arguments


def _check_schema(arguments: Mapping[str, Any]) -> None:
    for name, expected in (("schema", AuditEntry.schema), ("type", "audit")):
        if arguments.get(name, expected) != expected:
            raise UsageError(f"the {name} of an audit is {expected!r}, got {show(arguments[name])}")


def _name_rule(rule_result: Any) -> Any:
    """Rename ``ruleName`` to ``name`` in a rule's result."""
    if not isinstance(rule_result, dict) or "ruleName" not in rule_result or "name" in rule_result:
        return rule_result
    return {"name": rule_result["ruleName"], **{key: value for key, value in rule_result.items() if key != "ruleName"}}


def _read_time(moment: Any) -> datetime:
    """Read a moment: a time with its zone, a day (its beginning, in UTC), or milliseconds since 1970.

    Raises ``UsageError`` for anything else.
    """
    try:
        if isinstance(moment, str):
            moment = date.fromisoformat(moment) if len(moment) <= 10 else datetime.fromisoformat(moment)
        elif isinstance(moment, int) and not isinstance(moment, bool):
            return datetime.fromtimestamp(moment / 1000, UTC)
        if isinstance(moment, date) and not isinstance(moment, datetime):
            return datetime(moment.year, moment.month, moment.day, tzinfo=UTC)
    except (OSError, OverflowError, ValueError):
        pass
    if not isinstance(moment, datetime):
        raise UsageError(f"an audit's created_at is a time like 2026-11-20T12:00:00Z or a day, got {show(moment)}")
    return moment


def _convert(name: str, value: Any, kind: Any) -> Any:
    try:
        return read_typed(value, kind)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"an audit's {name} cannot be read: {flatten(clean(str(error)), 200)}") from None


LARGEST = 10_000_000
"""Characters of the largest report."""


_FENCE = "---"

_WORD = re.compile(r"[a-z]+(_[a-z]+)*")

_TAG = "tag:yaml.org,2002:"

_NEVER_FOLDED = 2**31 - 1
"""Columns of a line: the widest that PyYAML can be told."""

_MEANS_OTHER = {"true", "false", "yes", "no", "on", "off", "null", "y", "n", "nan", "inf"}


def render_audit(audit: AuditEntry, body: str | None = None) -> str:
    """Render an audit as Markdown with YAML front matter, which holds all of it.

    Raises ``UsageError`` for an audit of more than 50,000 values, 49 levels or 10 MB. To read an audit back, keep
    ``to_dict`` as JSON.

    Args:
        audit: The audit.
        body: The text below the front matter; by default a description of the audit for people.
    """
    members = audit.to_dict()
    front = {
        name: value
        for name, value in members.items()
        if value not in (None, [], {}) and (name, value) != ("reason", "")
    }
    first = {name: front.pop(name) for name in ("schema", "id", "created_at", "opinion") if name in front}
    front = {"type": "audit", **first, **_leave_out(front)}
    _check_size(front)
    text = f"{_FENCE}\n{_render_front(front)}{_FENCE}\n\n{render_body(audit) if body is None else body}"
    if len(text) > LARGEST:
        raise UsageError(
            f"a report has at most {LARGEST:,} characters, this one {len(text):,}; leave some metadata out"
        )
    return text if text.endswith("\n") else f"{text}\n"


def _check_size(front: dict[str, Any]) -> None:
    """Raise ``UsageError`` for more than readers of YAML take, counted as ours counts."""
    to_count: list[tuple[Any, int]] = [(front, 1)]
    values, steps = 1, 10
    while to_count:
        value, depth = to_count.pop()
        inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
        values += len(inner)
        steps += len(inner) * (2 if isinstance(value, dict) else 1) + 1
        if values > MAX_VALUES or steps > 2 * MAX_VALUES or depth >= MAX_DEPTH:
            most = f"{MAX_VALUES:,} values, {MAX_DEPTH - 1} levels deep"
            raise UsageError(f"an audit holds at most {most}; leave some metadata out")
        to_count += [(member, depth + 1) for member in inner]


def _leave_out(members: dict[str, Any]) -> dict[str, Any]:
    """Leave out what is not known, in what is ours; metadata and results stay as they were given."""
    kept = dict(members)
    for name in ("found", "judged", "rule_results"):
        if name in kept:
            kept[name] = [_drop_none(each) for each in kept[name]]
    return kept | ({"basis": _drop_none(kept["basis"])} if "basis" in kept else {})


def _drop_none(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _render_front(members: dict[str, Any]) -> str:
    """Render YAML with a line for each member, and one for each item of a member that holds several."""
    import yaml
    from yaml.representer import SafeRepresenter

    leaves = SafeRepresenter()

    def make_node(value: Any, depth: int) -> Any:
        """Make the YAML node of a value; two levels below the top, and where it is empty, it is written inline."""
        inline = depth > 1 or not value
        if isinstance(value, dict):
            pairs = [(make_node(name, depth + 1), make_node(member, depth + 1)) for name, member in value.items()]
            return yaml.MappingNode(f"{_TAG}map", pairs, flow_style=inline)
        if isinstance(value, list):
            return yaml.SequenceNode(
                f"{_TAG}seq", [make_node(member, depth + 1) for member in value], flow_style=inline
            )
        if isinstance(value, str):
            # Not left to PyYAML: what it knows for a plain text, another reader may take for a flag or a number.
            plain = _WORD.fullmatch(value) and value not in _MEANS_OTHER
            return yaml.ScalarNode(f"{_TAG}str", value, style=None if plain else '"')
        return leaves.represent_data(value)

    dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    written = yaml.serialize(make_node(members, 0), Dumper=dumper, width=_NEVER_FOLDED, allow_unicode=True)
    # PyYAML escapes what would end a line, not what turns the order of letters around or cannot be seen. All of that
    # stands in double quotes, where an escape means the same.
    return "".join(char if char.isprintable() or char == "\n" else _escape(char) for char in written)


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"
