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
from adjudge.formats.msgspec_types import read_typed
from adjudge.formats.numbers import format_score
from adjudge.formats.plain_data import to_plain
from adjudge.formats.text import clean, flatten, show, suggest
from adjudge.formats.yaml import MAX_DEPTH, MAX_VALUES
from adjudge.ledger.audit.entry import SEVERITIES, AuditBasis, AuditEntry, Finding, Findings, Judged
from adjudge.ledger.payload import encode_payload
from adjudge.result import RuleResult, read_result


def render_body(audit: AuditEntry) -> str:
    """Render an audit as Markdown for people: the text below the front matter of a report."""
    return "\n\n".join(_render_sections(audit)) + "\n"


def _render_sections(audit: AuditEntry) -> Iterator[str]:
    """Yield the sections of an audit as Markdown: headings, tables and sentences."""
    # An opinion is one of four fixed words. Everything that somebody wrote is put into cells of tables, where it cannot
    # begin a line and so be read as Markdown.
    yield f"# Audit: {audit.opinion}"
    yield _render_table(("", ""), _list_fact_rows(audit))
    yield "## Findings"
    counts = [(name, getattr(audit.findings, name)) for name in SEVERITIES]
    yield _render_table(("severity", "number"), counts)
    if audit.found:
        yield _render_table(("severity", "finding", "entry", "hash", "what"), map(_list_finding_cells, audit.found))
        yield from _render_omission("findings", len(audit.found), sum(count for _, count in counts))
    if audit.judged:
        yield "## What was judged"
        names = ("entry", "outcome", "became", "score", "judge", "gate", "decided by", "result", "subject", "hash")
        yield _render_table(names, map(_list_item_cells, audit.judged))
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
        yield from _render_basis(audit.basis)


def _list_fact_rows(audit: AuditEntry) -> Iterator[tuple[str, object]]:
    """Yield a row for each fact about an audit, its name and its value; of the scope, at most 100 lines."""
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


def _list_finding_cells(finding: Finding) -> tuple[object, ...]:
    """List the cells of the row of a finding; place and hash are empty where it is about no entry."""
    return (
        finding.severity,
        finding.code,
        finding.seq if finding.seq is not None else "",
        finding.hash or "",
        finding.detail,
    )


def _list_item_cells(judged: Judged) -> tuple[object, ...]:
    """List the cells of the row of a judged item."""
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


def _render_basis(basis: AuditBasis) -> Iterator[str]:
    """Yield the section about the ledger: a heading, a table of what was verified, and how to verify it again."""
    yield "## The ledger"
    looked_at = f"{basis.entries} entries" + (f", from {basis.first} to {basis.last}" if basis.entries else "")
    rows: list[tuple[str, object]] = [
        ("in order", "yes" if basis.verified else f"no: {basis.problem}"),
        ("head", basis.head or ""),
        ("looked at", looked_at),
        ("judged", f"{basis.judged}, undecided {basis.undecided}"),
        ("pinned head", "compared" if basis.pinned_head else "none"),
        ("signatures", basis.signatures),
    ]
    rows += [("could not see", change) for change in basis.unseen]
    yield _render_table(("", ""), rows)
    yield "`adjudge ledger show ENTRY` shows an entry with its hash, `adjudge ledger verify --head HEAD` checks all."


def _render_omission(noun: str, listed: int, total: int) -> Iterator[str]:
    """Yield a sentence that says how many of the findings, or of another ``noun``, are listed, if some are not."""
    if listed < total:
        yield f"These are {listed:,} of {total:,} {noun}."


def _render_table(column_names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Render a table in Markdown: the names of its columns, a line of dashes, and its rows."""
    lines = [_render_row(column_names), _render_row(["---"] * len(column_names), raw=True)]
    return "\n".join(lines + [_render_row(row) for row in rows])


def _render_row(cells: Sequence[Any], *, raw: bool = False) -> str:
    """Render a row of a table in Markdown; ``raw`` writes the cells as they are, without escaping Markdown."""
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

_NON_FIELDS = ("schema", "type", "status", "computed_opinion")
"""Members of a written audit that are no field of ``AuditEntry``: what it is, the state of the work on it, and the
opinion that the rule gives."""

_REQUIRED_FIELDS = ("objectives", "opinion", "findings", "created_at")

_FIELDS = tuple(item.name for item in fields(AuditEntry))

_FIELD_TYPES: dict[str, Any] = {
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
    arguments = _rename_members(members)
    arguments["created_at"] = _read_time(arguments["created_at"])
    if "id" not in arguments:
        plain_members = {name: to_plain(value) for name, value in members.items()}
        arguments["id"] = f"sha256:{sha256(encode_payload(plain_members)).hexdigest()}"
    if arguments.get("judge_result") is not None:
        arguments["judge_result"] = read_result(arguments["judge_result"])
    for name, field_type in _FIELD_TYPES.items():
        if name in arguments:
            arguments[name] = _convert(name, arguments[name], field_type)
    entry = AuditEntry(**arguments)
    stated_opinion = members.get("computed_opinion")
    if stated_opinion is not None and stated_opinion != entry.computed_opinion:
        raise UsageError(
            f"this audit says that the rule says {show(stated_opinion)}, and the rule says {entry.computed_opinion}"
        )
    return entry


def _rename_members(members: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of an ``AuditEntry``: the members of a written audit, under the names of its fields.

    A ``status`` is moved into the metadata. Raises ``UsageError`` for members that are unknown, missing, or there
    twice.
    """
    arguments: dict[str, Any] = {}
    for key, value in members.items():
        name = _ALIASES.get(key, key)
        if name in arguments:
            raise UsageError(f"an audit says {name} twice, the second time as {show(key)}; keep one")
        if name not in _FIELDS and name not in _NON_FIELDS:
            raise UsageError(f"an audit has no member {show(key)}{suggest(key, (*_FIELDS, *_ALIASES))}")
        arguments[name] = value
    _check_schema(arguments)
    status = arguments.get("status")
    for name in _NON_FIELDS:
        arguments.pop(name, None)
    if status is not None:
        arguments["metadata"] = {
            **_convert("metadata", arguments.get("metadata", {}), dict[str, Any]),
            "status": status,
        }
    for name in _REQUIRED_FIELDS:
        if name not in arguments:
            raise UsageError(f"an audit needs {name}, and this one has none; write it down")
    if "ruleResults" in members:
        arguments["rule_results"] = [
            _rename_rule_name(rule_result) for rule_result in _convert("ruleResults", members["ruleResults"], list[Any])
        ]
    return arguments


def _check_schema(arguments: Mapping[str, Any]) -> None:
    """Raise ``UsageError`` for members whose ``schema`` or ``type`` is not that of an audit."""
    for name, expected in (("schema", AuditEntry.schema), ("type", "audit")):
        if arguments.get(name, expected) != expected:
            raise UsageError(f"the {name} of an audit is {expected!r}, got {show(arguments[name])}")


def _rename_rule_name(rule_result: Any) -> Any:
    """Rename ``ruleName`` to ``name`` in the result of a rule; return any other value as it is."""
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


def _convert(name: str, value: Any, field_type: Any) -> Any:
    """Convert a value to the type of the field ``name``. Raises ``UsageError`` for a value of another type."""
    try:
        return read_typed(value, field_type)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"an audit's {name} cannot be read: {flatten(clean(str(error)), 200)}") from None


LARGEST = 10_000_000
"""Characters of the largest report."""


_FRONT_MATTER_FENCE = "---"

_PLAIN_WORD = re.compile(r"[a-z]+(_[a-z]+)*")

_YAML_TAG_PREFIX = "tag:yaml.org,2002:"

_NEVER_FOLDED = 2**31 - 1
"""The widest line, in columns, that PyYAML can be told to write, so that it breaks none."""

_YAML_KEYWORDS = {"true", "false", "yes", "no", "on", "off", "null", "y", "n", "nan", "inf"}


def render_audit(audit: AuditEntry, body: str | None = None) -> str:
    """Render an audit as Markdown with YAML front matter, which holds all of it.

    Raises ``UsageError`` for an audit of more than 50,000 values, 49 levels or 10 MB. To read an audit back, keep
    ``to_dict`` as JSON.

    Args:
        audit: The audit.
        body: The text below the front matter; by default a description of the audit for people.
    """
    members = audit.to_dict()
    front_matter = {
        name: value
        for name, value in members.items()
        if value not in (None, [], {}) and (name, value) != ("reason", "")
    }
    leading_members = {
        name: front_matter.pop(name) for name in ("schema", "id", "created_at", "opinion") if name in front_matter
    }
    front_matter = {"type": "audit", **leading_members, **_drop_unknown_members(front_matter)}
    _check_front_matter_size(front_matter)
    head = f"{_FRONT_MATTER_FENCE}\n{_render_front_matter(front_matter)}{_FRONT_MATTER_FENCE}"
    text = f"{head}\n\n{render_body(audit) if body is None else body}"
    if len(text) > LARGEST:
        raise UsageError(
            f"a report has at most {LARGEST:,} characters, this one {len(text):,}; leave some metadata out"
        )
    return text if text.endswith("\n") else f"{text}\n"


def _check_front_matter_size(front_matter: dict[str, Any]) -> None:
    """Raise ``UsageError`` for front matter that our own reader of YAML would refuse as too large or too deep."""
    to_count: list[tuple[Any, int]] = [(front_matter, 1)]
    # The reader limits the values, and also the events of its parser: some for the document, one for each name, each
    # value, and each end of a list or a mapping. They are counted generously here.
    values, events = 1, 10
    while to_count:
        value, depth = to_count.pop()
        children = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
        values += len(children)
        events += len(children) * (2 if isinstance(value, dict) else 1) + 1
        if values > MAX_VALUES or events > 2 * MAX_VALUES or depth >= MAX_DEPTH:
            limits = f"{MAX_VALUES:,} values, {MAX_DEPTH - 1} levels deep"
            raise UsageError(f"an audit holds at most {limits}; leave some metadata out")
        to_count += [(child, depth + 1) for child in children]


def _drop_unknown_members(members: dict[str, Any]) -> dict[str, Any]:
    """Drop the members that are ``None``, which means unknown, from findings, judged items, rule results and the basis.

    Metadata and the judge's result are left as they were given.
    """
    reduced = dict(members)
    for name in ("found", "judged", "rule_results"):
        if name in reduced:
            reduced[name] = [_drop_none(record) for record in reduced[name]]
    return reduced | ({"basis": _drop_none(reduced["basis"])} if "basis" in reduced else {})


def _drop_none(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _render_front_matter(members: dict[str, Any]) -> str:
    """Render YAML with one line for each member, and for a list or mapping one line for each of its members."""
    import yaml
    from yaml.representer import SafeRepresenter

    scalar_representer = SafeRepresenter()

    def make_node(value: Any, depth: int) -> Any:
        """Make the YAML node of a value; one that is empty, or two levels below the top, is written on one line."""
        is_inline = depth > 1 or not value
        if isinstance(value, dict):
            pairs = [(make_node(name, depth + 1), make_node(member, depth + 1)) for name, member in value.items()]
            return yaml.MappingNode(f"{_YAML_TAG_PREFIX}map", pairs, flow_style=is_inline)
        if isinstance(value, list):
            return yaml.SequenceNode(
                f"{_YAML_TAG_PREFIX}seq", [make_node(member, depth + 1) for member in value], flow_style=is_inline
            )
        if isinstance(value, str):
            # Quoted unless it is a plain word. PyYAML leaves more texts unquoted, which another reader may take for a
            # flag or a number.
            is_plain_word = _PLAIN_WORD.fullmatch(value) and value not in _YAML_KEYWORDS
            return yaml.ScalarNode(f"{_YAML_TAG_PREFIX}str", value, style=None if is_plain_word else '"')
        return scalar_representer.represent_data(value)

    dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text = yaml.serialize(make_node(members, 0), Dumper=dumper, width=_NEVER_FOLDED, allow_unicode=True)
    # PyYAML escapes line ends, but not invisible characters and those that reverse the order of letters. All of these
    # are inside double quotes, where an escape means the same character.
    return "".join(char if char.isprintable() or char == "\n" else _escape_char(char) for char in text)


def _escape_char(char: str) -> str:
    """Write a character as an escape of YAML, with its code in 2, 4 or 8 hexadecimal digits."""
    code = ord(char)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"
