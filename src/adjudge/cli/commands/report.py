"""``adjudge report``: the summary of a run, in the terminal and as files for people and machines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adjudge.cli import options as option
from adjudge.cli.commands.diff import compare_runs
from adjudge.cli.commands.run import find_status
from adjudge.cli.exit_status import DONE, FAILED, UNDECIDED
from adjudge.cli.measurement_options import MeasureRequest, make_request, read_labels
from adjudge.cli.option_sets import Without
from adjudge.cli.output import (
    ProgressBar,
    complain,
    note,
    print_document,
    print_line,
    show_progress,
    write_file,
    write_json,
)
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_share
from adjudge.formats.numbers import format_distinct

if TYPE_CHECKING:
    from adjudge.dataset.case_labels import LabelJoin
    from adjudge.dataset.label import Label
    from adjudge.measurement.measurement import Measurement
    from adjudge.report.report import Report
    from adjudge.report.run_diff import Diff
    from adjudge.runs.folder import Run
    from adjudge.runs.item import RunItem


_LISTED, _COMMENTED = 10, 20
"""Cases that the terminal, and a comment for a pull request, list without ``--top``."""


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", hidden=True)],
    measuring: Annotated[option.MeasureOptions, Without("labels")],
    case: Annotated[str | None, typer.Argument(metavar="CASE", hidden=True)] = None,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write one HTML file, to read.")] = None,
    junit: Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML, for CI.")] = None,
    markdown: Annotated[
        str | None, typer.Option("--markdown", metavar="FILE|-", help="Write a comment for a pull request.")
    ] = None,
    as_json: option.AsJson = False,
    top: Annotated[
        int | None,
        typer.Option(
            "--top", metavar="N", help="How many cases to list; at most 2,000, failures first, then those that passed."
        ),
    ] = None,
    fail_under: option.FailUnder = None,
    labels: option.ReportLabels = None,
    label_map: option.LabelMapText = None,
    label_name: option.LabelName = None,
    against: Annotated[
        Path | None,
        typer.Option("--against", metavar="RUN1", help="Say first whether this run is better than an earlier one."),
    ] = None,
) -> int:
    """Summarise a run, or show everything about one case of it.

    $ adjudge report runs/monday

    RUN is a folder that `adjudge run` wrote. Without --top, the terminal lists 10 cases that did not pass, a comment
    20, and HTML and JSON up to 2,000 of all. CASE is the id of a case, or its beginning (12 characters or more):
    everything about it is shown, with every judgement and reply, uncut.

    With --labels, or if the run was labelled (`adjudge label`), it also says what people would pass and how far the
    judge can be trusted; `adjudge agree` says more. This needs the extra: pip install 'adjudge[trust]'.

    With --against it begins with the sentence of `adjudge diff RUN1 RUN`: which system people would pass more often, or
    which judge decides as they do more often. This needs the extra too, and labels as `adjudge diff` does.

    Exit status: 0 reported, 1 fewer than --fail-under passed or the lower limit is below --fail-under-corrected,
    2 wrong usage or no run, 3 the run is not finished, so many cases are undecided that it is unknown whether
    --fail-under was reached, planned labels are missing, or the labels do not give a corrected rate.
    """
    if fail_under is not None:
        check_share("fail_under", fail_under)
    if as_json and markdown == "-":
        raise UsageError("--json and --markdown - both write to standard output; name a file for the comment")
    if Path("-") in (html, junit):
        raise UsageError("--html and --junit write a file, and - is standard output for --markdown alone; name a file")
    from adjudge.runs.folder import open_run

    if case is not None:
        options = {"--html": html, "--junit": junit, "--markdown": markdown, "--top": top, "--fail-under": fail_under}
        options |= {"--labels": labels, "--label-map": label_map, "--label-name": label_name}
        options |= {"--labels-are": measuring.labels_are, "--measured-on": measuring.measured_on}
        options |= {"--limits": measuring.limits, "--fail-under-corrected": measuring.fail_under_corrected}
        options |= {"--against": against}
        return _report_case(run, case, [name for name, value in options.items() if value is not None], as_json=as_json)
    request = make_request(measuring, _read_labels(labels, label_map, label_name), by="report", criterion=label_name)
    with open_run(run) as opened:
        measurement = request.measure(opened)
        case_labels = _collect_labels(opened, request, label_name)
        summary = _summarise_run(opened, top, case_labels, lists_all=html is not None or as_json)
        summary = replace(summary, measurement=measurement)
        if against is not None:
            summary = replace(summary, against=_compare_with_earlier(against, opened, request))
        _note_unused_labels(case_labels, measurement)
        if html is not None:
            from adjudge.report.render import render_html

            write_file(html, [render_html(summary)])
        if junit is not None:
            from adjudge.report.junit import render_junit

            write_file(junit, render_junit(summary, _iterate_with_progress(opened)))
        _write_comment(summary, markdown, top, fail_under)
        if as_json:
            write_json(summary.to_dict())
        elif markdown != "-":
            from adjudge.report.run_document import make_run_document

            document = make_run_document(summary, top=_LISTED if top is None else top, lists_passed=top is not None)
            print_document(document, more="--top shows more, --html FILE all of the first 2,000")
        statuses = {_find_share_status(summary, fail_under), request.report_status(measurement, opened)}
        return FAILED if FAILED in statuses else max(statuses)


def _compare_with_earlier(against: Path, run: Run, request: MeasureRequest) -> Diff:
    """Compare this run with an earlier one by the labels of people; the diff that is returned lists no cases."""
    from adjudge.report.measured_diff import measure_diff, record_difference
    from adjudge.runs.folder import open_run

    difference = replace(compare_runs(against, run.folder), listed=())
    with open_run(against) as before:
        is_random = request.labels_are == "random"
        measured = measure_diff(difference, before, run, labels=request.labels, labels_are_random=is_random)
        record_difference(measured, before, by=request.by)
    return measured


def _report_case(run: Path, case: str, options: list[str], *, as_json: bool) -> int:
    """Print everything about one case, and return the exit status.

    ``options`` are the names of given options that are about the whole run: for any of them, ``UsageError`` is raised.
    """
    if options:
        raise UsageError(f"{options[0]} is about the whole run, and CASE names one case; leave one of them out")
    from adjudge.cli.case_output import print_case, write_case
    from adjudge.runs.case_list import find_case
    from adjudge.runs.folder import open_run

    with open_run(run) as opened:
        items = opened.read_case(find_case(opened, case))
        if as_json:
            write_case(items, opened.id)
        else:
            print_case(items)
    return DONE


def _read_labels(paths: list[str] | None, label_map: str | None, name: str | None) -> tuple[Label, ...] | None:
    """Read the labels of ``--labels``; ``None`` without it, for which options about labels raise ``UsageError``."""
    if paths is None and (label_map is not None or name is not None):
        raise UsageError("--label-map and --label-name are for the labels of --labels; name a file, or leave them out")
    return read_labels(paths, label_map)


def _collect_labels(run: Run, request: MeasureRequest, name: str | None) -> LabelJoin:
    """Collect the labels to add to the cases: those of ``--labels``, or without it those of the run's own queue.

    ``name`` is the criterion that they are about, if any. A queue that cannot be read counts as empty, but raises
    ``UsageError`` if the user asked for the measurement.
    """
    from adjudge.dataset.case_labels import LabelJoin, list_labels
    from adjudge.measurement.run_labels import read_run_labels

    labels = request.labels
    if labels is None:
        try:
            labels = read_run_labels(run)
        except UsageError:
            if request.is_explicit:
                raise
            labels = ()  # the error was reported already, when the run was measured
    return LabelJoin(list_labels(labels, name))


def _note_unused_labels(labels: LabelJoin, measurement: Measurement | None) -> None:
    """Tell the user how many labels are of other contents than the run's (unless measured), or of cases not in it."""
    from adjudge.dataset.case_labels import OTHER_CONTENTS

    if labels.other_contents and measurement is None:
        note(f"{OTHER_CONTENTS}: {labels.other_contents:,}")
    if labels.missing:
        note(f"{labels.describe_missing('run')}: {len(labels.missing):,}")


def _summarise_run(run: Run, top: int | None, labels: LabelJoin, *, lists_all: bool) -> Report:
    """Summarise a run, and keep enough of its cases for the output to list.

    ``top`` is the number of cases that the user asked for. Without it, a page or JSON (``lists_all``) has as many as a
    report can hold.
    """
    from adjudge.report.cases import MOST_CASES
    from adjudge.report.report_tally import label_items, read_status, summarise

    default = MOST_CASES if lists_all else max(_LISTED, _COMMENTED)
    most_cases = default if top is None else top
    # A report keeps a part of its cases for each outcome. Twice as many are kept, so that none is missing in a list.
    if not lists_all and 2 * most_cases <= MOST_CASES:
        most_cases *= 2
    with show_progress("read", sum(run.counts.values())) as progress:
        items = label_items(_iterate_with_progress(run, progress), labels)
        return summarise(items, run.manifest, status=read_status(run), most_cases=most_cases)


def _iterate_with_progress(run: Run, progress: ProgressBar | None = None) -> Iterator[RunItem]:
    """Yield the judgements of a run, and count each as a step of a progress bar."""
    for item in run.items():
        yield item
        if progress is not None:
            progress.step()


def _write_comment(summary: Report, path: str | None, top: int | None, needed: float | None) -> None:
    """Write the summary as a Markdown comment, for ``-`` to standard output; nothing without a path."""
    if path is None:
        return
    from adjudge.report.render import render_markdown

    text = render_markdown(summary, most_cases=_COMMENTED if top is None else top, needed=needed)
    if path == "-":
        print_line(text.rstrip("\n"))
    else:
        write_file(Path(path), [text])


def _find_share_status(summary: Report, fail_under: float | None) -> int:
    """Find the exit status of ``--fail-under``, and complain if it is not 0.

    A run with nothing judged has missed it (1), and of an unfinished run it is not known (3).
    """
    if fail_under is None:
        return DONE
    if not summary.judgements:
        # A run in which no case failed, because none was judged, must not look as if all had passed.
        complain("nothing was judged, so --fail-under is missed")
        return FAILED
    if summary.about.status != "finished":
        # The cases that are missing may all fail.
        complain(
            f"the run is {summary.about.status}, so whether {fail_under:g} of all cases pass is "
            "open; finish it with adjudge run --resume"
        )
        return UNDECIDED
    status = find_status(summary.outcomes, fail_under)
    if status != DONE:
        rate = summary.outcomes["passed"] / summary.judgements
        undecided = "" if status == FAILED else f", and {summary.outcomes['undecided']:,} are undecided"
        passed, _ = format_distinct(rate, fail_under, digits=4)
        complain(
            f"{passed} of {summary.judgements:,} judgements passed{undecided}; --fail-under asks for {fail_under:.12g}"
        )
    return status
