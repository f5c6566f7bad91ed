"""The part of an audit report that people read: Markdown in which nothing that was judged is markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC
from typing import Any

from adjudge._display import clean
from adjudge.audit._entry import AuditBasis, AuditEntry, Finding, Judged
from adjudge.audit._opinion import SEVERITIES

_MARKUP = re.compile(r"[\\`*_\[\]<>|~&#$]|:(?=//|[\w+-]+:)|(?<=www)\.", re.IGNORECASE)
"""What means something within a cell: emphasis, code, links, HTML, entities, the cell's end, and addresses that some
readers make links of. What only means something where a line begins needs nothing, since no cell begins one."""
_LONGEST = 500


def write_body(audit: AuditEntry) -> str:
    """An audit for people."""
    return "\n\n".join(_list_parts(audit)) + "\n"


def escape(value: object, longest: int = _LONGEST) -> str:
    """Any text as one line of a Markdown table's cell that shows it as it is: no markup, no HTML, no link."""
    text = " ".join(clean(str(value), keep_lines=False).split())
    cut = text if len(text) <= longest else f"{text[:longest]}…"
    return _MARKUP.sub(lambda found: f"\\{found[0]}", cut)


def _list_parts(audit: AuditEntry) -> Iterator[str]:
    # The word is one of four. Everything that anybody wrote stands in the cells of tables, where it begins no line.
    yield f"# Audit: {audit.opinion}"
    yield _write_table(("", ""), _list_facts(audit))
    yield "## Findings"
    counts = [(name, getattr(audit.findings, name)) for name in SEVERITIES]
    yield _write_table(("severity", "number"), counts)
    if audit.found:
        yield _write_table(("severity", "finding", "entry", "hash", "what"), map(_list_finding, audit.found))
        yield from _tell_rest("findings", len(audit.found), sum(count for _, count in counts))
    if audit.judged:
        yield "## What was judged"
        names = ("entry", "outcome", "became", "score", "judge", "gate", "decided by", "result", "subject", "hash")
        yield _write_table(names, map(_list_judged, audit.judged))
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
        yield _write_table(("entry", "rule", "said", "severity", "message"), rows)
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
    score = "" if item.score is None else f"{item.score:.2f}"
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
    yield _write_table(("", ""), rows)
    yield "`adjudge ledger show ENTRY` shows an entry with its hash, `adjudge ledger verify --head HEAD` checks all."


def _tell_rest(what: str, listed: int, total: int) -> Iterator[str]:
    if listed < total:
        yield f"These are {listed:,} of {total:,} {what}."


def _write_table(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = [_write_row(names), _write_row(["---"] * len(names), raw=True)]
    return "\n".join(lines + [_write_row(row) for row in rows])


def _write_row(cells: Sequence[Any], *, raw: bool = False) -> str:
    return f"| {' | '.join(str(cell) if raw else escape(cell) for cell in cells)} |"
