"""``adjudge succeed``: may another judge take the place of one that is retired?"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from adjudge.cli import options as option
from adjudge.cli.measurement import read_labels
from adjudge.cli.output import add_row, make_table, note, print_line, show_drawing, watch, write_json
from adjudge.config.file import Config, read_config
from adjudge.config.judges import Panel, choose
from adjudge.dataset.case import Case
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_share, check_whole_number
from adjudge.formats.text import show
from adjudge.runs.folder import MANIFEST_FILE, Run, open_run
from adjudge.runs.launch import Running

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
    budget: option.BudgetUsd = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume the candidates' runs in FOLDER.")] = False,
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

    Needs the extra: pip install 'adjudge[trust]'.

    Exit status: 0 a candidate may follow, 1 none may, 2 wrong usage, 3 none may yet: too few labelled cases.
    """
    from adjudge.measurement.succession import list_labelled, make_succession
    from adjudge.trust.extra import check_extra

    check_extra()
    check_share("--margin", margin)
    check_whole_number("--concurrency", concurrency, least=1)
    found, said = read_config(config), read_labels(labels)
    with ExitStack() as stack:
        before = stack.enter_context(open_run(old))
        cases = list_labelled(before, said)
        runs: list[Run] = []
        how: dict[str, Any] = {"concurrency": concurrency, "budget": budget, "resume": resume}
        for name, folder in _place(candidates, old if out is None else out):
            if _is_run(name):
                runs.append(stack.enter_context(open_run(name)))
            else:
                runs.append(asyncio.run(_ask(before, name, cases, found, out=folder, **how)))
        succession = make_succession(before, runs, labels=said, margin=margin)
    if as_json:
        write_json(succession.to_dict())
    else:
        print_succession(succession)
    return find_status(succession)


def find_status(found: Succession) -> int:
    """The exit status."""
    standings = {item.standing for item in found.candidates}
    return DONE if "may follow" in standings else UNKNOWN if "unknown" in standings else NONE


def _is_run(name: str) -> bool:
    return (Path(name) / MANIFEST_FILE).is_file()


def _place(candidates: Sequence[str], folder: Path) -> list[tuple[str, Path]]:
    """Each candidate with a folder for its run, beside the run of the old judge or where it was asked for."""
    if len(set(candidates)) < len(candidates):
        raise UsageError(f"--candidate names {show(max(candidates, key=candidates.count))} twice; name each once")
    names = [re.sub(r"[^\w.-]+", "-", name).strip("-.")[:80] or "candidate" for name in candidates]
    return [
        (name, folder / "successors" / f"{at}-{short}")
        for at, (name, short) in enumerate(zip(candidates, names, strict=True), 1)
    ]


async def _ask(before: Run, name: str, cases: Sequence[Case], config: Config, *, out: Path, **how: Any) -> Run:
    """A candidate asked about the labelled cases."""
    from adjudge.runs.successor import ask_successor

    judge = choose(Panel(judges=(name,)), config).judge
    try:
        running = await ask_successor(before, judge, cases, out=out, prices=config.prices, **how)
        with watch(lambda: _describe(name, running)):
            return await running
    finally:
        await judge.aclose()


def _describe(name: str, running: Running) -> str:
    progress = running.progress
    done = f"{progress.done:,} of {progress.total or 0:,} cases" if progress is not None else "reading"
    return f"{name}: {done}"


def print_succession(found: Succession) -> None:
    """Everything for a person."""
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
    print_line(f"{chosen[0].judge} may follow" if chosen else "nobody may follow on these labels")
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
    return f"{100 * count / of:.1f} % of {of:,}"


def _range(share: PairedShare) -> str:
    return f"{100 * share.delta:+.1f} ({100 * share.low:+.1f} to {100 * share.high:+.1f})"


def _dollars(usd: float | None) -> str:
    return "unknown" if usd is None else f"${usd:.6f}"


def _price(item: Candidate) -> str:
    low_high = item.cost_interval
    between = "" if low_high is None else f" ({low_high[0]:.6f} to {low_high[1]:.6f})"
    return _dollars(item.cost_usd[1]) + between
