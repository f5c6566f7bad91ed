"""The estimated calls and costs of a run that has not begun, as a document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from adjudge.formats.numbers import format_dollars, format_points
from adjudge.report.document import Block, Cell, Column, Document, Paragraph, Table, Words
from adjudge.runs.estimate.estimate import CACHED_FROM, RunEstimate, SeatEstimate
from adjudge.templates.figures import format_count

NEAR = 0.1
"""The precision to which a cost should be known, as a share of it."""

_COSTS = ("live_usd", "batch_usd", "cached_usd")

_DASH = "–"


def make_estimate_document(estimate: RunEstimate) -> Document:
    """Make the document of an estimate: the calls and cost of each seat, then what they rest on."""
    sentences = [*_list_limits(estimate), *_list_remarks(estimate)]
    blocks: list[Block] = [_make_seat_table(estimate), *(Paragraph(text=text) for text in sentences)]
    counts = f"{format_count(estimate.judgements, 'judgement')} of {format_count(estimate.cases, 'case')}"
    return Document(name=f"{counts}, estimated; nobody was asked", headline=f"{counts}, estimated", blocks=blocks)


def _make_seat_table(estimate: RunEstimate) -> Table:
    """Make the table of the calls, tokens and costs of each judge, with the sum below unless there is one judge."""
    names = ("calls", "tokens in", "tokens out", "live", "by batch", "cached at best")
    columns = [Column("judge"), *(Column(name, "number") for name in names)]
    rows = [
        _make_cost_row(Words(text=seat.model), seat, [getattr(seat, name) for name in _COSTS])
        for seat in estimate.seats
    ]
    if len(estimate.seats) != 1:
        rows.append(_make_cost_row("together", estimate, [estimate.add_up(name) for name in _COSTS], unknown=_DASH))
    return Table(columns=columns, rows=rows)


def _make_cost_row(
    name: Words | str, estimate: SeatEstimate | RunEstimate, usd: Sequence[float | None], *, unknown: str = "unknown"
) -> list[Cell]:
    """Make the row of the calls, tokens and costs of a seat, or of the whole run.

    The first unknown cost of the row is written as ``unknown``, and each further one as a dash.
    """
    counts = [f"{number:,.0f}" for number in (estimate.calls, estimate.input_tokens, estimate.output_tokens)]
    costs: list[str] = []
    for cost in usd:
        if cost is not None:
            costs.append(_format_dollars(cost))
        else:
            costs.append(unknown)
            unknown = _DASH
    return [name, *counts, *costs]


def _format_dollars(usd: float | None) -> str:
    return format_dollars(usd, digits=4)


def _list_limits(estimate: RunEstimate) -> Iterator[str]:
    """Yield a sentence on the limits of the live cost, if they are known."""
    least, most = estimate.add_up("least_usd"), estimate.add_up("most_usd")
    if least is not None and most is not None and estimate.seats:
        limits = f"live between {_format_dollars(least)} and {_format_dollars(most)}"
        yield f"{limits}, by the prices of {estimate.made_on}"


def _list_remarks(estimate: RunEstimate) -> Iterator[str]:
    """Yield sentences on how the estimate was made, and on what is not in it."""
    for seat in estimate.seats:
        yield f"{seat.model}: tokens in by {seat.input_basis}; tokens out: {seat.output_basis}"
        if seat.share != 1.0:
            yield f"{seat.model}: {seat.share_basis}"
        if seat.why_unknown:
            yield seat.why_unknown
    if any(seat.output_basis.startswith("assumed") for seat in estimate.seats):
        yield "what a model thinks before it replies is not in the tokens out; --estimate-from RUN counts it"
    yield from _explain_record(estimate)
    yield from _explain_cache(estimate)
    if estimate.settled:
        yield f"{estimate.settled:,} judgements ask no model: rules or code decide them"
    if estimate.checked and any(seat.batch_usd is not None for seat in estimate.seats):
        yield f"by batch, the first {estimate.checked:,} judgements are made live, at the full price"


def _explain_record(estimate: RunEstimate) -> Iterator[str]:
    """Yield how many recorded judgements it takes to know the cost within 10 %, if there are too few for that."""
    live, least, most = (estimate.add_up(name) for name in ("live_usd", "least_usd", "most_usd"))
    if not estimate.recorded or not live or least is None or most is None:
        return
    precision = (most - least) / 2 / live
    if precision > NEAR:
        # The width of an average's limits falls with the square root of the number of judgements.
        needed = estimate.recorded * (precision / NEAR) ** 2
        known_within = format_points(precision, digits=0)
        yield (
            f"by {estimate.recorded:,} recorded judgements the cost is known within {known_within} %; it takes about "
            f"{needed:,.0f} to know it within {100 * NEAR:g} %"
        )


def _explain_cache(estimate: RunEstimate) -> Iterator[str]:
    """Yield sentences on how much of the prompts is the same in all calls, so that a provider can cache it."""
    calls, constant_tokens = estimate.calls, sum(seat.constant_tokens for seat in estimate.seats)
    if estimate.cases_with_criteria:
        yield (
            f"{estimate.cases_with_criteria:,} of {estimate.cases:,} cases bring criteria of their own: their "
            "prompts begin differently, so they find nothing in a provider's prompt cache"
        )
    if calls and constant_tokens:
        per_call = max(constant_tokens / calls, 1.0)
        too_short = (
            ""
            if per_call >= CACHED_FROM
            else f"; providers keep parts from about {CACHED_FROM:,} tokens, so it is too short"
        )
        share = format_points(constant_tokens / estimate.input_tokens, digits=0)
        yield f"the same first part of the prompts is {share} % of the tokens in, {per_call:,.0f} a call{too_short}"
