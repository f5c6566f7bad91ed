"""``adjudge run --estimate``: what a run would ask and cost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from adjudge.cli.output import add_row, make_table, note, print_line, show_drawing, watch, write_json
from adjudge.config.judges import Choice
from adjudge.dataset.dataset import Dataset
from adjudge.errors import UsageError
from adjudge.formats.numbers import format_dollars, format_points
from adjudge.runs.estimate.kept_estimate import keep_estimate
from adjudge.runs.folder import open_run

if TYPE_CHECKING:
    # adjudge run imports this module, and mostly estimates nothing.
    from adjudge.runs.estimate.estimate import RunEstimate, SeatEstimate
    from adjudge.runs.estimate.recorded_usage import RecordedUsage

DONE = 0

NEAR = 0.1
"""How near a cost should be known, as a share of it."""


def estimate_data(
    dataset: Dataset,
    chosen: Choice,
    asked_by: dict[str, Any],
    *,
    recorded: Path | None,
    out: Path | None,
    as_json: bool,
) -> int:
    """Estimate, print, keep the estimate in the folder of the run to come, and return the exit status."""
    found = asyncio.run(_estimate(dataset, chosen, asked_by, recorded))
    if not found.cases:
        raise UsageError("the data set has no case, so there is nothing to judge")
    kept = keep_estimate(out, found.to_dict()) if out is not None else None
    if as_json:
        write_json(found.to_dict())
        return DONE
    print_estimate(found)
    if kept is not None and out is not None:
        note(f"kept in {kept}; the summary of the run shows it, if it is judged with --out {quote(str(out))}")
    return DONE


async def _estimate(dataset: Dataset, chosen: Choice, asked_by: dict[str, Any], recorded: Path | None) -> RunEstimate:
    from adjudge.runs.estimate.estimate import estimate_run

    try:
        with watch(lambda: "counting what would be asked"):
            usage = await _read_recorded(recorded)
            return await estimate_run(dataset, chosen.judge, chosen.rubric, recorded=usage, **asked_by)
    finally:
        await chosen.judge.aclose()


async def _read_recorded(recorded: Path | None) -> RecordedUsage | None:
    if recorded is None:
        return None
    if (of_file := _read_file(recorded)) is not None:
        return of_file
    from adjudge.runs.estimate.recorded_usage import read_usage

    with open_run(recorded) as before:
        return await read_usage(before)


def _read_file(recorded: Path) -> RecordedUsage | None:
    """What a recording or a cache says; ``None`` for a folder, which is a run."""
    if not recorded.is_file():
        return None
    from adjudge.runs.estimate.recorded_file import read_usage_of_file

    return read_usage_of_file(recorded)


def print_estimate(found: RunEstimate) -> None:
    """Everything for a person: a table, then what it rests on."""
    title = f"{found.judgements:,} judgements of {found.cases:,} cases, estimated; nobody was asked"
    table = make_table(title, ("", "calls", "tokens in", "tokens out", "live", "by batch", "cached at best"))
    for seat in found.seats:
        _add(table, seat.model, seat, [seat.live_usd, seat.batch_usd, seat.cached_usd])
    if len(found.seats) != 1:
        _add(table, "together", found, [found.add_up(name) for name in ("live_usd", "batch_usd", "cached_usd")])
    show_drawing(table)
    least, most = found.add_up("least_usd"), found.add_up("most_usd")
    if least is not None and most is not None and found.seats:
        print_line(f"live between {_dollars(least)} and {_dollars(most)}, by the prices of {found.made_on}")
    for said in _explain(found):
        print_line(said)


def _add(table: Any, name: str, what: SeatEstimate | RunEstimate, usd: list[float | None]) -> None:
    counts = [f"{number:,.0f}" for number in (what.calls, what.input_tokens, what.output_tokens)]
    add_row(table, name, *counts, *map(_dollars, usd))


def _dollars(usd: float | None) -> str:
    return "unknown" if usd is None else format_dollars(usd, digits=4)


def _explain(found: RunEstimate) -> Iterator[str]:
    for seat in found.seats:
        yield f"{seat.model}: tokens in by {seat.input_basis}; tokens out: {seat.output_basis}"
        if seat.share != 1.0:
            yield f"{seat.model}: {seat.share_basis}"
        if seat.why_unknown:
            yield seat.why_unknown
    if any(seat.output_basis.startswith("assumed") for seat in found.seats):
        yield "what a model thinks before it replies is not in the tokens out; --estimate-from RUN counts it"
    yield from _explain_record(found)
    yield from _explain_cache(found)
    if found.settled:
        yield f"{found.settled:,} judgements ask no model: rules or code decide them"
    if found.checked and any(seat.batch_usd is not None for seat in found.seats):
        yield f"by batch, the first {found.checked:,} judgements are made live, at the full price"


def _explain_record(found: RunEstimate) -> Iterator[str]:
    """How many recorded judgements would bring the limits within a tenth, where those there are do not."""
    live, least, most = (found.add_up(name) for name in ("live_usd", "least_usd", "most_usd"))
    if not found.recorded or not live or least is None or most is None:
        return
    share = (most - least) / 2 / live
    if share > NEAR:
        # The limits of an average come nearer with the square root of the number.
        needed = found.recorded * (share / NEAR) ** 2
        known = format_points(share, digits=0)
        yield (
            f"by {found.recorded:,} recorded judgements the cost is known within {known} %; it takes about "
            f"{needed:,.0f} to know it within {100 * NEAR:g} %"
        )


def _explain_cache(found: RunEstimate) -> Iterator[str]:
    from adjudge.runs.estimate.estimate import CACHED_FROM

    calls, constant = found.calls, sum(seat.constant_tokens for seat in found.seats)
    if found.own:
        yield (
            f"{found.own:,} of {found.cases:,} cases bring criteria of their own: their prompts begin differently, so "
            "they find nothing in a provider's prompt cache"
        )
    if calls and constant:
        share, least = constant / found.input_tokens, max(constant / calls, 1.0)
        small = (
            ""
            if least >= CACHED_FROM
            else f"; providers keep parts from about {CACHED_FROM:,} tokens, so it is too short"
        )
        said = format_points(share, digits=0)
        yield f"the same first part of the prompts is {said} % of the tokens in, {least:,.0f} a call{small}"
