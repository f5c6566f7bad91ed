"""``adjudge succeed``: may another judge take the place of one that is retired?"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from adjudge.cli import options as option
from adjudge.cli.batches import read_batch
from adjudge.cli.candidates import Inquiry, read_candidates
from adjudge.cli.commands.run import check_retry
from adjudge.cli.interruption import INTERRUPTED
from adjudge.cli.measurement import print_labels, read_labels
from adjudge.cli.output import add_row, make_table, note, print_line, show_drawing, write_json
from adjudge.config.file import read_config
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_share, check_whole_number
from adjudge.formats.numbers import format_apart, format_dollars, format_points
from adjudge.formats.text import show
from adjudge.runs.folder import Run, open_run

if TYPE_CHECKING:
    from adjudge.measurement.succession import Candidate, PairedShare, Succession

DONE, NONE, UNKNOWN = 0, 1, 3

_LISTED = 10


def succeed(
    old: Annotated[Path, typer.Option("--judge", "-j", metavar="RUN", help="A run of the judge to be followed.")],
    candidates: Annotated[
        list[str], typer.Option("--candidate", metavar="SPEC", help="A judge that may follow, or a run of it; repeat.")
    ],
    labels: Annotated[
        list[Path] | None,
        typer.Option("--labels", metavar="FILE", help="What people said; by default what RUN has."),
    ] = None,
    margin: Annotated[
        float, typer.Option("--margin", metavar="SHARE", help="How much worse a successor may be, from 0 to 1.")
    ] = 0.05,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FOLDER", help="Where the candidates' runs are kept.")
    ] = None,
    concurrency: option.Concurrency = 16,
    budget: Annotated[
        float | None,
        typer.Option("--budget", metavar="USD", help="Spend at most this on each candidate; then cases are undecided."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume the candidates' runs in FOLDER.")] = False,
    retry: option.Retry = None,
    batch: option.Batch = False,
    batch_check: option.BatchCheck = None,
    batch_then: option.BatchThen = None,
    batch_size: option.BatchSize = None,
    batch_tokens: option.BatchTokens = None,
    batch_poll: option.BatchPoll = None,
    pay_again: option.PayAgain = False,
    as_json: option.AsJson = False,
    config: option.ConfigFile = None,
) -> int:
    """Compare judges with the one they may follow, on its labelled cases.

    Every candidate is asked the question of RUN about the cases of RUN that people labelled, and kept as a run of its
    own. A candidate that is the folder of a run is not asked. Prints which cases flip, how often each judge agrees with
    people, and what a case costs, with intervals.

    A candidate may follow if, with 95 % confidence for all candidates together, it agrees with people on at most
    --margin fewer of the cases, and passes at most --margin more of what people failed. It may not if one of the two is
    shown to be worse; otherwise more labels are needed.

    With --batch all candidates are asked at the same time, the first 20 cases of each live and the rest by batch, as
    adjudge run --batch does it. Ctrl-C leaves what was sent at the provider; --resume goes on.

    Needs the extra: pip install 'adjudge[trust]'.

    Exit status: 0 a candidate may follow, 1 none may, 2 wrong usage, 3 none may yet (too few labelled cases), or a
    provider failed, 130 interrupted.
    """
    from adjudge.measurement.succession import list_labelled, make_succession
    from adjudge.trust.extra import check_extra

    check_extra()
    check_share("--margin", margin)
    check_whole_number("--concurrency", concurrency, least=1)
    check_retry(retry, resume=resume)
    found, said = read_config(config), read_labels(labels)
    named = read_candidates(candidates, old if out is None else out)
    to_ask = [item for item in named if not item.is_run]
    hurry: dict[str, Any] = {"check": batch_check, "then": batch_then, "size": batch_size, "tokens": batch_tokens}
    folders = [item.folder for item in to_ask]
    by_batch = read_batch(folders, hurry | {"poll": batch_poll}, batch=batch, resume=resume, pay_again=pay_again)
    if by_batch is not None and not to_ask:
        raise UsageError("--batch has nobody to ask: every candidate is a run already; leave it out")
    options: dict[str, Any] = {"concurrency": concurrency, "budget": budget, "resume": resume, "prices": found.prices}
    options |= {"retry": ("budget", *(retry or ()))}
    with ExitStack() as stack:
        before = stack.enter_context(open_run(old))
        runs = {item.name: stack.enter_context(open_run(item.folder)) for item in named if item.is_run}
        if to_ask:
            inquiry = Inquiry(before, list_labelled(before, said), found, options, by_batch)
            asked = asyncio.run(inquiry.ask(to_ask))
            if asked is None:
                return INTERRUPTED
            runs |= {item.name: stack.enter_context(run) for item, run in zip(to_ask, asked, strict=True)}
        succession = make_succession(before, [runs[item.name] for item in named], labels=said, margin=margin)
        if as_json:
            write_json(succession.to_dict())
        else:
            print_succession(succession)
        for item in to_ask:
            note_unanswered(item.name, runs[item.name])
    return find_status(succession)


def note_unanswered(name: str, run: Run) -> None:
    """Say that some of a candidate's cases have no answer: the verdict counts them against it, and it need not."""
    reasons = run.summary["undecided_because"]
    again = [reason for reason in ("error", "timeout", "budget") if reasons.get(reason)]
    if not again:
        return
    number = sum(reasons[reason] for reason in again)
    flags = "".join(f" --retry {reason}" for reason in again if reason != "budget")
    dearer = " and a higher --budget" if "budget" in again else ""
    note(
        f"{name}: {number:,} cases are undecided because of {', '.join(again)}, and count as no agreement; to ask "
        f"again, repeat the command with --resume{flags}{dearer}"
    )


def find_status(found: Succession) -> int:
    """The exit status."""
    standings = {item.standing for item in found.candidates}
    return DONE if "may follow" in standings else UNKNOWN if "unknown" in standings else NONE


def print_succession(found: Succession) -> None:
    """Everything for a person."""
    print_labels(found.measurement)
    print_line(
        f"{found.cases:,} labelled cases; {found.judge} and who may follow, within {100 * found.margin:g} points"
    )
    print_line()
    table = make_table("", ("judge", "agrees", "difference", "wrongly passed", "difference", "a case costs", "verdict"))
    first = found.candidates[0]
    old_wrong = "-" if first.wrong_passes is None else _format(first.wrong_passes.before, first.wrong_passes.of)
    old = (_format(first.agreement.before, first.agreement.of), "", old_wrong, "", _dollars(first.cost_usd[0]), "now")
    add_row(table, found.judge, *old)
    for item in found.candidates:
        wrong = item.wrong_passes
        add_row(
            table,
            item.judge,
            _format(item.agreement.after, item.agreement.of),
            _range(item.agreement),
            "-" if wrong is None else _format(wrong.after, wrong.of),
            "-" if wrong is None else _range(wrong),
            _price(item),
            item.standing,
        )
    show_drawing(table)
    for item in found.candidates:
        _print_candidate(item)
    chosen = found.successors
    print_line()
    print_line(f"{chosen[0].judge} may follow" if chosen else "none may follow on these labels")
    note(f"intervals of {100 * found.level:.4g} %, in points")


def _print_candidate(item: Candidate) -> None:
    print_line()
    print_line(f"{item.judge}: {item.standing}, because {item.why}")
    changed = ", ".join(f"{count:,} {old} to {new}" for (old, new), count in item.flips.items()) or "none"
    p_value = "" if item.p_value is None else f" (McNemar p = {item.p_value:.2g})"
    print_line(f"  flips: {changed}; {item.gained:,} now agree with people, {item.lost:,} no longer do{p_value}")
    for flip in item.listed[:_LISTED]:
        print_line(f"  {show(flip.case)}: {flip.before} to {flip.after}, people say {flip.truth}")
    if len(item.listed) > _LISTED:
        print_line(f"  and more; --json lists {len(item.listed):,}")


def _format(count: int, of: int) -> str:
    return f"{format_points(count / of)} % of {of:,}"


def _range(share: PairedShare) -> str:
    delta, low, high = [format_points(value, sign=True) for value in (share.delta, share.low, share.high)]
    return f"{delta} ({low} to {high})"


def _dollars(usd: float | None) -> str:
    return format_dollars(usd, digits=6)


def _price(item: Candidate) -> str:
    low_high = item.cost_interval
    between = "" if low_high is None else " ({} to {})".format(*format_apart(*low_high, digits=6))
    return _dollars(item.cost_usd[1]) + between
