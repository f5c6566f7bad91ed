"""HTML for runs, reports, measurements and verdicts in a notebook: a line, facts, and a short table.

Judges, people and authors of content wrote the texts, and may want to deceive. So everything is escaped and cleaned of
control and direction marks, there is no script and no style, and the size is limited.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from adjudge.formats.text import clean

MOST_ROWS = 20
"""The most rows of a table that are shown."""

_MOST_CHARACTERS = 300
"""The most characters of a cell that are shown."""


def render_fragment(
    title: str,
    *,
    facts: Mapping[str, object] | None = None,
    columns: Sequence[str] = (),
    rows: Iterable[Sequence[object]] = (),
    notes: Iterable[str] = (),
) -> str:
    """Render an HTML fragment; facts without a value are left out, and a table of more rows says so."""
    shown = list(islice(rows, MOST_ROWS + 1))
    parts = [f"<p><b>{escape_cell(title)}</b></p>"]
    known = {name: value for name, value in (facts or {}).items() if value not in (None, "")}
    if known:
        lines = [f"<tr><td>{escape_cell(name)}<td>{escape_cell(value)}</tr>" for name, value in known.items()]
        parts.append(f"<table>{''.join(lines)}</table>")
    if shown:
        head = "".join(f"<th>{escape_cell(name)}" for name in columns)
        lines = ["".join(f"<td>{escape_cell(cell)}" for cell in row) for row in shown[:MOST_ROWS]]
        parts.append(f"<table><tr>{head}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>")
    if len(shown) > MOST_ROWS:
        parts.append(f"<p>The first {MOST_ROWS} are shown.</p>")
    parts += [f"<p>{escape_cell(note)}</p>" for note in islice(notes, MOST_ROWS)]
    return f"<div>{''.join(parts)}</div>"


def escape_cell(value: object) -> str:
    """Write a value as the text of a cell."""
    if value is None:
        return ""
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    cut = text[:_MOST_CHARACTERS] + ("…" if len(text) > _MOST_CHARACTERS else "")
    return html.escape(clean(cut, keep_lines=False), quote=True)


def list_counts(counts: Mapping[str, Any]) -> str:
    """Write counts as ``3 passed, 1 failed``; counts of 0 are left out, and ``none`` is returned if all are 0."""
    return ", ".join(f"{number:,} {name}" for name, number in counts.items() if number) or "none"
