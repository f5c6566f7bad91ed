"""The replacement of a judge as a document: a table of the candidates, and the reasons for and against each."""

from __future__ import annotations

from collections.abc import Iterator

from adjudge.dataset.case_ids import shorten_case_id
from adjudge.formats.numbers import NOTHING, format_distinct, format_dollars, format_points
from adjudge.measurement.replacement import Candidate, PairedShare, Replacement
from adjudge.report.document import (
    Block,
    Cell,
    Column,
    Document,
    Panel,
    Panels,
    Paragraph,
    Points,
    Table,
    Words,
)
from adjudge.report.measurement_words import list_doubts

_LISTED_FLIPS = 10
"""Cases with another verdict that are listed of each candidate."""


def make_replacement_document(replacement: Replacement) -> Document:
    """Make the document of a replacement: how each candidate agrees with people, beside the judge to be replaced."""
    replacements = replacement.replacements
    conclusion: tuple[str | Words, ...] | str = (
        (Words(text=replacements[0].judge), " may replace it")
        if replacements
        else "by these labels, none may replace it"
    )
    panels = [
        Panel(title=Words(text=candidate.judge), blocks=list(_explain_candidate(candidate)))
        for candidate in replacement.candidates
    ]
    return Document(
        name=(
            f"{replacement.cases:,} labelled cases; ",
            Words(text=replacement.judge),
            f" and who may replace it, within {100 * replacement.margin:g} points",
        ),
        headline=f"{len(replacements)} of {len(replacement.candidates)} may replace the judge",
        doubts=list_doubts([replacement.measurement] if replacement.measurement is not None else []),
        blocks=[_make_table(replacement), Panels(panels=panels), Paragraph(text=""), Paragraph(text=conclusion)],
    )


def _make_table(replacement: Replacement) -> Table:
    """Make the table of the judge and the candidates."""
    columns = [
        Column("judge"),
        Column("agrees", "number"),
        Column("difference", "number"),
        Column("wrongly passed", "number"),
        Column("difference", "number"),
        Column("a case costs", "number"),
        Column("verdict"),
    ]
    # The figures of the old judge are in each candidate's comparison with it.
    first = replacement.candidates[0]
    wrong_passes = first.wrong_passes
    rows: list[list[Cell]] = [
        [
            Words(text=replacement.judge),
            _format_share(first.agreement.before, first.agreement.of),
            "",
            NOTHING if wrong_passes is None else _format_share(wrong_passes.before, wrong_passes.of),
            "",
            format_dollars(first.cost_usd[0], digits=6),
            "now",
        ]
    ]
    rows += [_make_candidate_row(candidate) for candidate in replacement.candidates]
    caption = f"Intervals of {100 * replacement.level:.4g} %, in points."
    return Table(columns=columns, rows=rows, caption=caption)


def _make_candidate_row(candidate: Candidate) -> list[Cell]:
    """Make the row of a candidate, with the differences from the old judge."""
    wrong_passes = candidate.wrong_passes
    return [
        Words(text=candidate.judge),
        _format_share(candidate.agreement.after, candidate.agreement.of),
        _format_difference(candidate.agreement),
        NOTHING if wrong_passes is None else _format_share(wrong_passes.after, wrong_passes.of),
        NOTHING if wrong_passes is None else _format_difference(wrong_passes),
        _format_price(candidate),
        candidate.standing,
    ]


def _explain_candidate(candidate: Candidate) -> Iterator[Block]:
    """Yield the verdict on a candidate with its reason, and the first cases on which it differs from the old judge."""
    yield Paragraph(text=f"{candidate.standing}, because {candidate.why}")
    counts = ", ".join(f"{count:,} {old} to {new}" for (old, new), count in candidate.flips.items()) or "none"
    p_value = "" if candidate.p_value is None else f" (McNemar p = {candidate.p_value:.2g})"
    yield Paragraph(
        text=f"flips: {counts}; {candidate.gained:,} now agree with people, {candidate.lost:,} no longer do{p_value}"
    )
    flips = [
        (Words(text=shorten_case_id(flip.case)), f": {flip.before} to {flip.after}, people say {flip.truth}")
        for flip in candidate.listed[:_LISTED_FLIPS]
    ]
    more = [f"and more; --json lists {len(candidate.listed):,}"] if len(candidate.listed) > _LISTED_FLIPS else []
    if flips:
        yield Points(items=[*flips, *more])


def _format_share(count: int, of: int) -> str:
    return f"{format_points(count / of)} % of {of:,}"


def _format_difference(share: PairedShare) -> str:
    delta, low, high = [format_points(value, sign=True) for value in (share.delta, share.low, share.high)]
    return f"{delta} ({low} to {high})"


def _format_price(candidate: Candidate) -> str:
    """Format what a case costs with a candidate, with the interval of the mean if it is known."""
    limits = candidate.cost_interval
    between = "" if limits is None else " ({} to {})".format(*format_distinct(*limits, digits=6))
    return format_dollars(candidate.cost_usd[1], digits=6) + between
