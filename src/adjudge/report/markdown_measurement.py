"""A measurement as Markdown for a pull request; what people or judges wrote is put in code spans alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from adjudge.formats.markdown import escape, render_code
from adjudge.measurement.measurement import Measurement
from adjudge.report.measurement_words import (
    describe_measurement,
    describe_sorts,
    format_estimate,
    format_side,
    list_assumptions,
    list_baselines,
    list_coefficients,
    list_confusion,
    list_people,
    list_rate_facts,
    list_shares,
    take,
)
from adjudge.templates.figures import format_count

MEASUREMENT_MARK = "<!-- adjudge/measurement/1 -->"
"""The first line, by which a script finds its own comment to update it."""


def render_measurement_markdown(found: Sequence[Measurement], *, most: int) -> str:
    """Measurements as Markdown, with at most so many disagreements of each."""
    parts = [MEASUREMENT_MARK]
    for item in found:
        parts += [
            f"### {render_code(item.judge or 'a judge', 200)} compared with people, {render_code(item.data or 'a run')}"
        ]
        parts += [*list_measurement_sections(item), *_list_disagreements(item, most)]
    return "\n\n".join(parts) + "\n"


def list_measurement_sections(found: Measurement) -> Iterator[str]:
    """The warnings, the sentence, the confusion table and the figures, as blocks."""
    if found.warnings:
        yield "\n".join(f"> {escape(warning)}" for warning in found.warnings)
    yield f"**{escape(describe_measurement(found))}**"
    columns, rows = list_confusion(found)
    if rows:
        yield render_rows(columns, rows)
    figures = [(name, format_estimate(item, share=True)) for name, item in list_shares(found)]
    figures += [(escape(name), said) for name, said in list_baselines(found)]
    figures += [(name, format_estimate(item, share=False)) for name, item in list_coefficients(found)]
    figures += [(name, format_estimate(item, share=share)) for name, item, share in list_people(found)]
    figures += [(name, escape(said)) for name, said in list_rate_facts(found)]
    if figures:
        yield render_rows(("", "with 95 % interval"), figures)
    said = " ".join(escape(text) for text in list_assumptions(found))
    if said:
        yield f"<sub>{said}</sub>"


def _list_disagreements(found: Measurement, most: int) -> Iterator[str]:
    shown = take(found.disagreements, most)
    if not shown:
        return
    rows = [
        (render_code(item.case, 80), item.sort, item.verdict, escape(format_side(item.truth)),
         render_code(item.task or item.content or item.why, 160, nothing=""))
        for item in shown
    ]  # fmt: skip
    of = f"{describe_sorts(found)}; {format_count(len(shown))} of them"
    table = render_rows(("case", "sort", "judge", "people", "about"), rows)
    yield f"<details><summary>{of}</summary>\n\n{table}\n\n</details>"


def render_rows(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table."""
    head = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in head)
