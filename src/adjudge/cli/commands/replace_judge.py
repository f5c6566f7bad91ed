"""``adjudge replace-judge``: compare candidate judges with one that is to be replaced, on its labelled cases."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from adjudge.cli import options as option
from adjudge.cli.batches import read_batch
from adjudge.cli.candidates import Inquiry, read_candidates
from adjudge.cli.commands.run import check_retry, expand_retry
from adjudge.cli.exit_status import DONE, FAILED, INTERRUPTED, UNDECIDED
from adjudge.cli.measurement_options import read_labels
from adjudge.cli.output import note, print_document, write_json
from adjudge.config.file import read_config
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_share
from adjudge.runs.folder import Run, open_run

if TYPE_CHECKING:
    from adjudge.measurement.replacement import Replacement


def replace_judge(
    old: Annotated[Path, typer.Option("--judge", "-j", metavar="RUN", help="A run of the judge to be replaced.")],
    candidates: Annotated[
        list[str],
        typer.Option("--candidate", metavar="SPEC", help="A judge that may replace it, or a run of one; repeat."),
    ],
    batching: option.BatchingOptions,
    labels: Annotated[
        list[Path] | None,
        typer.Option("--labels", metavar="FILE", help="What people said.  [default: what RUN has]"),
    ] = None,
    margin: Annotated[
        float, typer.Option("--margin", metavar="SHARE", help="How much worse a candidate may be, from 0 to 1.")
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
    as_json: option.AsJson = False,
    config: option.ConfigFile = None,
) -> int:
    """Compare candidate judges with the judge that they may replace, on its labelled cases.

    $ adjudge replace-judge --judge runs/old --candidate openai:gpt-6.1-terra

    Every candidate is asked the question of RUN about the cases of RUN that people labelled, and kept as a run of its
    own. A candidate that is the folder of a run is not asked. Prints which cases flip, how often each judge agrees with
    people, and what a case costs, with intervals.

    A candidate may replace the judge if, with 95 % confidence for all candidates together, it agrees with people on at
    most --margin fewer of the cases, and passes at most --margin more of what people failed. It may not if one of the
    two is shown to be worse; otherwise more labels are needed.

    With --batch all candidates are asked at the same time, the first 20 cases of each live and the rest by batch, as
    adjudge run --batch does it. Ctrl-C leaves what was sent at the provider; --resume goes on.

    Needs the extra: pip install 'adjudge[trust]'.

    Exit status: 0 a candidate may replace it, 1 none may, 2 wrong usage, 3 none may yet (too few labelled cases), or a
    provider failed, 130 interrupted.
    """
    from adjudge.measurement.replacement import compare_replacements, list_labelled
    from adjudge.trust.extra import check_extra

    check_extra()
    check_share("margin", margin)
    check_retry(retry, resume=resume)
    configuration, known_labels = read_config(config), read_labels(labels)
    named_candidates = read_candidates(candidates, old if out is None else out)
    to_ask = [candidate for candidate in named_candidates if not candidate.is_run]
    by_batch = read_batch([candidate.folder for candidate in to_ask], batching, resume=resume)
    if by_batch is not None and not to_ask:
        raise UsageError("--batch has nobody to ask: every candidate is a run already; leave it out")
    options: dict[str, Any] = {
        "concurrency": concurrency,
        "budget": budget,
        "resume": resume,
        "prices": configuration.prices,
    }
    options |= {"retry": ("budget", *expand_retry(retry))}
    with ExitStack() as stack:
        old_run = stack.enter_context(open_run(old))
        runs = {
            candidate.name: stack.enter_context(open_run(candidate.folder))
            for candidate in named_candidates
            if candidate.is_run
        }
        if to_ask:
            inquiry = Inquiry(old_run, list_labelled(old_run, known_labels), configuration, options, by_batch)
            new_runs = asyncio.run(inquiry.ask(to_ask))
            if new_runs is None:
                return INTERRUPTED
            runs |= {candidate.name: stack.enter_context(run) for candidate, run in zip(to_ask, new_runs, strict=True)}
        replacement = compare_replacements(
            old_run, [runs[candidate.name] for candidate in named_candidates], labels=known_labels, margin=margin
        )
        if as_json:
            write_json(replacement.to_dict())
        else:
            from adjudge.report.replacement_document import make_replacement_document

            print_document(make_replacement_document(replacement))
        for candidate in to_ask:
            note_unanswered(candidate.name, runs[candidate.name])
    return find_status(replacement)


def note_unanswered(name: str, run: Run) -> None:
    """Tell the user how many of a candidate's cases have no answer, and how to ask about them again.

    The comparison counts these cases against the candidate, though it may only have been unreachable.
    """
    numbers = run.summary["undecided_because"]
    reasons = [reason for reason in ("error", "timeout", "budget") if numbers.get(reason)]
    if not reasons:
        return
    number = sum(numbers[reason] for reason in reasons)
    retry_options = "".join(f" --retry {reason}" for reason in reasons if reason != "budget")
    budget_option = " and a higher --budget" if "budget" in reasons else ""
    note(
        f"{name}: {number:,} cases are undecided because of {', '.join(reasons)}, and count as no agreement; to ask "
        f"again, repeat the command with --resume{retry_options}{budget_option}"
    )


def find_status(replacement: Replacement) -> int:
    """Find the exit status: 0 if a candidate may replace the judge, 3 if that is not known of one, else 1."""
    standings = {candidate.standing for candidate in replacement.candidates}
    return DONE if "may replace" in standings else UNDECIDED if "unknown" in standings else FAILED
