"""``adjudge report``: the summary of a run, in the terminal and as files for people and machines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adjudge.cli import options as option
from adjudge.cli.commands.run import DONE, MISSED, UNKNOWN, find_status
from adjudge.cli.measurement import MeasureRequest, print_labels, print_short, read_labels, read_limits
from adjudge.cli.output import (
    ProgressBar,
    add_row,
    complain,
    draws,
    make_table,
    note,
    print_line,
    show_drawing,
    show_progress,
    write_file,
    write_json,
)
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_share
from adjudge.formats.display import COLOURS, SIGNS
from adjudge.formats.numbers import format_apart, format_score

if TYPE_CHECKING:
    from adjudge.dataset.case_labels import LabelJoin
    from adjudge.dataset.label import Label
    from adjudge.measurement.measurement import Measurement
    from adjudge.report.report import Report, Spread
    from adjudge.runs.folder import Run
    from adjudge.runs.item import RunItem
    from adjudge.trust.intervals import Share


_BLOCKS = " ▁▂▃▄▅▆▇█"

_WIDTH = 20

_MOST_ROWS = 20

_NAME = 60


def print_report(report: Report, top: int) -> None:
    """Everything that a report has to say, and the first ``top`` of its cases."""
    from adjudge.report.format import (
        describe_passed,
        format_cost,
        format_outcomes,
        list_model_changes,
        list_notices,
    )

    print_labels(report.measurement)
    about = report.about
    rubric = f", by the rubric {about.rubric}" if about.rubric else ""
    _print_line(f"{about.dataset or 'A run'} judged by {about.judge or 'a judge'}{rubric}")
    for notice in (*list_notices(report), *list_model_changes(report)):
        note(notice)
    # What people would say comes first once they said something: the judge's own rate has the judge's errors in it.
    if report.is_measured:
        print_short(report.measurement)
    print_line(describe_passed(report))
    if not report.is_measured:
        print_short(report.measurement)
    print_line(format_outcomes(report.outcomes) + (f" of {report.judgements:,} judgements" if _repeats(report) else ""))
    if report.scores is not None:
        print_line(_describe_scores(report.scores))
    _show_rubrics(report)
    _show_criteria(report)
    _show_counts("because", report)
    _show_pairs(report)
    _show_groups(report)
    _show_seats(report)
    _show_facts(report)
    print_line(f"cost: {format_cost(report)}")
    _show_cases(report, top)


def cut(text: str, most: int) -> str:
    """A text of at most so many characters."""
    from adjudge.report.cases import cut as cut_text

    return cut_text(text, most)


def _repeats(report: Report) -> bool:
    return report.judgements != report.cases


def _print_line(text: str) -> None:
    print_line(" ".join(text.split()))


def _describe_scores(spread: Spread) -> str:
    shape = f"  {draw_bins(spread.bins)}" if draws() else ""
    mean, median, low, high = [format_score(value) for value in (spread.mean, spread.median, spread.p5, spread.p95)]
    return f"scores: mean {mean}, median {median}, {low} to {high}{shape}"


def draw_bins(bins: Sequence[int]) -> str:
    """A histogram in one line; what is not empty is seen."""
    most = max(bins, default=0) or 1
    return "".join(_BLOCKS[-(-8 * number // most)] for number in bins)


def draw_bar(share: Share) -> str:
    """A share as a bar, where a terminal can show one."""
    return "█" * round(_WIDTH * (share.rate or 0.0)) if draws() else ""


def _show_rubrics(report: Report) -> None:
    from adjudge.formats.numbers import format_rate
    from adjudge.report.format import format_rubric
    from adjudge.templates.figures import format_interval

    if not report.rubrics:
        return
    table = make_table("", ("rubric", "cases", "passed", "95 % interval", "needs"))
    for item in report.rubrics[:_MOST_ROWS]:
        said = " ".join(format_rubric(item, lambda text: cut(text, _NAME)).split())
        share = format_rate(item.passed.rate), format_interval(item.passed)
        add_row(table, said, f"{item.cases:,}", *share, format_score(item.threshold))
    show_drawing(table)
    if len(report.rubrics) > _MOST_ROWS:
        note(f"the {_MOST_ROWS} rubrics of the most cases, of {len(report.rubrics):,}")


def _show_criteria(report: Report) -> None:
    from adjudge.report.format import format_criterion_share

    if not report.criteria:
        return
    table = make_table("", ("criterion", "judged", "mean", "passed", "95 % interval", "needs", ""))
    for item in report.criteria[:_MOST_ROWS]:
        mean, needs = format_apart(item.scores.mean if item.scores else None, item.threshold)
        bar = draw_bar(item.passed) if item.gates else ""
        add_row(table, cut(item.name, _NAME), f"{item.passed.of:,}", mean, *format_criterion_share(item), needs, bar)
    show_drawing(table)


def _show_counts(title: str, report: Report) -> None:
    if not report.undecided_because:
        return
    table = make_table("", (f"undecided {title}", "judgements"))
    for name, number in report.undecided_because.items():
        add_row(table, name, f"{number:,}")
    show_drawing(table)


def _show_pairs(report: Report) -> None:
    from adjudge.templates.figures import format_share

    pairs = report.pairs
    if pairs is None:
        return
    rows = {"the first wins": pairs.win_rate, "orders disagree": pairs.flips, "orders agree": pairs.agreement}
    rows["shown first is preferred"] = pairs.shown_first
    if pairs.labelled:
        rows |= {} if report.is_measured else {"accuracy": pairs.accuracy}
        rows |= {"accuracy in order ab": pairs.accuracy_ab}
        rows |= {"accuracy in order ba": pairs.accuracy_ba, "right in both orders": pairs.both_right}
    table = make_table("", ("comparisons", ""))
    for name, share in rows.items():
        add_row(table, name, format_share(share))
    show_drawing(table)


def _show_groups(report: Report) -> None:
    from adjudge.formats.numbers import format_rate, format_score
    from adjudge.templates.figures import format_interval

    if not report.groups:
        return
    table = make_table("", ("group", "cases", "passed", "95 % interval", "mean score", ""))
    for item in report.groups[:_MOST_ROWS]:
        share = format_rate(item.passed.rate), format_interval(item.passed)
        name = "(without a group)" if item.name is None else cut(item.name, _NAME)
        add_row(table, name, f"{item.cases:,}", *share, format_score(item.mean_score), draw_bar(item.passed))
    show_drawing(table)
    if len(report.groups) > _MOST_ROWS:
        note(f"the {_MOST_ROWS} groups with the lowest shares, of {len(report.groups):,}")


def _show_seats(report: Report) -> None:
    from adjudge.templates.figures import format_duration, format_share

    if not report.seats:
        return
    table = make_table("", ("judge", *report.seats[0].outcomes, "mean time"))
    for item in report.seats[:_MOST_ROWS]:
        counts = [f"{number:,}" for number in item.outcomes.values()]
        add_row(table, cut(item.judge, _NAME), *counts, format_duration(item.mean_duration_ms))
    show_drawing(table)
    for pair in report.seat_pairs[:_MOST_ROWS]:
        _print_line(f"{cut(pair.first, _NAME)} / {cut(pair.second, _NAME)} disagree: {format_share(pair.disagreed)}")


def _show_facts(report: Report) -> None:
    from adjudge.formats.numbers import format_rate
    from adjudge.templates.figures import format_duration, format_share

    if report.labels is not None and not report.is_measured:
        floor = format_rate(report.labels.always_passing.rate)
        print_line(f"agreement with labels: {format_share(report.labels.accuracy)}; baseline (always pass): {floor}")
    if report.numbers is not None and report.numbers.correlation is not None and not report.is_measured:
        correlation = format_score(report.numbers.correlation)
        print_line(f"correlation with the labels: {correlation} of {report.numbers.labelled:,}")
    if report.repeats is not None:
        print_line(f"judged again, the outcome differs: {format_share(report.repeats.flipped)}")
    for rule in report.rules:
        if rule.failed:
            _print_line(f"rule {cut(rule.name, _NAME)} ({rule.severity}): found in {rule.failed:,} of {rule.checked:,}")
    if report.durations is not None:
        median, late = format_duration(report.durations.median), format_duration(report.durations.p95)
        print_line(f"time: median {median}, 95 % within {late}")


def _show_cases(report: Report, top: int) -> None:
    from adjudge.formats.numbers import format_score

    shown = [case for case in report.shown if case.outcome != "passed"][:top]
    if not shown:
        return
    table = make_table("", ("case", "outcome", "score", "why"))
    for case in shown:
        worst = next(item for item in case.results if item.outcome == case.outcome)
        said = f"{SIGNS[case.outcome]} {worst.undecided_because or case.outcome}"
        add_row(
            table,
            cut(case.id, _NAME),
            said,
            format_score(worst.score),
            cut(worst.why, 160),
            style=COLOURS[case.outcome],
        )
    show_drawing(table)
    rest = report.case_outcomes["failed"] + report.case_outcomes["undecided"]
    if rest > len(shown):
        note(f"{len(shown):,} of the {rest:,} that did not pass; --top shows more, --html FILE all of the first 2,000")


_LISTED, _COMMENTED = 10, 20
"""Cases in the terminal and in a comment, where nobody says how many."""


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", hidden=True)],
    case: Annotated[str | None, typer.Argument(metavar="CASE", hidden=True)] = None,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write one HTML file, to read.")] = None,
    junit: Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML, for CI.")] = None,
    markdown: Annotated[
        str | None, typer.Option("--markdown", metavar="FILE|-", help="Write a comment for a pull request.")
    ] = None,
    as_json: option.AsJson = False,
    top: Annotated[
        int | None, typer.Option("--top", metavar="N", help="How many cases to list; at most 2,000, failures first.")
    ] = None,
    fail_under: option.FailUnder = None,
    labels: option.ReportLabels = None,
    label_map: option.LabelMapText = None,
    label_name: option.LabelName = None,
    labels_are: option.LabelsAre = None,
    target: option.RateTarget = "run",
    limits: option.RateLimits = None,
    measured_on: option.MeasuredOn = None,
    fail_under_corrected: option.FailUnderCorrected = None,
) -> int:
    """Summarise a run, or show everything about one case of it.

    RUN is a folder that `adjudge run` wrote. Without --top, the terminal lists 10 cases, a comment 20, and HTML and
    JSON up to 2,000. CASE is the id of a case: everything about it is shown, with every judgement and reply, uncut.

    With --labels, or if the run was labelled (`adjudge label`), it also says what people would pass and how far the
    judge can be trusted; `adjudge agree` says more. This needs the extra: pip install 'adjudge[trust]'.

    Exit status: 0 reported, 1 fewer than --fail-under passed or the lower limit is below --fail-under-corrected,
    2 wrong usage or no run, 3 the run is not finished, so many cases are undecided that it is unknown whether
    --fail-under was reached, planned labels are missing, or the labels do not give a corrected rate.
    """
    if fail_under is not None:
        check_share("--fail-under", fail_under)
    if as_json and markdown == "-":
        raise UsageError("--json and --markdown - both write to standard output; name a file for the comment")
    if Path("-") in (html, junit):
        raise UsageError("--html and --junit write a file, and - is standard output for --markdown alone; name a file")
    from adjudge.runs.folder import open_run

    if case is not None:
        given = {"--html": html, "--junit": junit, "--markdown": markdown, "--top": top, "--fail-under": fail_under}
        given |= {"--labels": labels, "--label-map": label_map, "--label-name": label_name}
        given |= {"--labels-are": labels_are, "--measured-on": measured_on, "--limits": limits}
        given |= {"--fail-under-corrected": fail_under_corrected}
        return _report_case(run, case, [name for name, value in given.items() if value is not None], as_json=as_json)
    request = MeasureRequest(
        labels=_read_labels(labels, label_map, label_name),
        labels_are=labels_are,
        target=target,
        limits=read_limits(limits),
        measured_on=measured_on,
        fail_under=fail_under_corrected,
        criterion=label_name,
    )
    with open_run(run) as opened:
        measurement = request.measure(opened)
        joined = _join_labels(opened, request, label_name)
        found = _summarise(opened, top, joined, whole=html is not None or as_json)
        found = replace(found, measurement=measurement)
        _note_left_out(joined, measurement)
        if html is not None:
            from adjudge.report.html import render_html

            write_file(html, [render_html(found)])
        if junit is not None:
            from adjudge.report.junit import render_junit

            write_file(junit, render_junit(found, _read(opened)))
        _write_comment(found, markdown, top, fail_under)
        if as_json:
            write_json(found.to_dict())
        elif markdown != "-":
            print_report(found, _LISTED if top is None else top)
        statuses = {_find_status(found, fail_under), request.find_status(measurement, opened)}
        return MISSED if MISSED in statuses else max(statuses)


def _report_case(run: Path, case: str, given: list[str], *, as_json: bool) -> int:
    """Everything about one case; raises ``UsageError`` for options that are about all of them."""
    if given:
        raise UsageError(f"{given[0]} is about the whole run, and CASE names one case; leave one of them out")
    from adjudge.cli.case import print_case, write_case
    from adjudge.runs.folder import open_run

    with open_run(run) as opened:
        items = opened.read_case(case)
        if as_json:
            write_case(items, opened.id)
        else:
            print_case(items)
    return DONE


def _read_labels(paths: list[str] | None, label_map: str | None, name: str | None) -> tuple[Label, ...] | None:
    if paths is None and (label_map is not None or name is not None):
        raise UsageError("--label-map and --label-name are for the labels of --labels; name a file, or leave them out")
    return read_labels(paths, label_map)


def _join_labels(run: Run, request: MeasureRequest, name: str | None) -> LabelJoin:
    from adjudge.dataset.case_labels import LabelJoin, list_labels
    from adjudge.measurement.run_labels import read_queue

    labels = request.labels
    if labels is None:
        try:
            labels = read_queue(run)
        except UsageError:
            if request.asked:
                raise
            labels = ()  # said already, where the run was to be measured
    return LabelJoin(list_labels(labels, name))


def _note_left_out(joined: LabelJoin, measurement: Measurement | None) -> None:
    from adjudge.dataset.case_labels import OTHER_CONTENTS

    if joined.other_contents and measurement is None:
        note(f"{OTHER_CONTENTS}: {joined.other_contents:,}")
    if joined.missing:
        note(f"{joined.describe_missing('run')}: {len(joined.missing):,}")


def _summarise(run: Run, top: int | None, labels: LabelJoin, *, whole: bool) -> Report:
    from adjudge.report.cases import MOST_CASES
    from adjudge.report.summary import label_items, read_status, summarise

    most = MOST_CASES if whole and top is None else top if top is not None else max(_LISTED, _COMMENTED)
    with show_progress("read", sum(run.counts.values())) as progress:
        items = label_items(_read(run, progress), labels)
        return summarise(items, run.manifest, status=read_status(run), most_cases=most)


def _read(run: Run, progress: ProgressBar | None = None) -> Iterator[RunItem]:
    for item in run.items():
        yield item
        if progress is not None:
            progress.step()


def _write_comment(found: Report, path: str | None, top: int | None, needed: float | None) -> None:
    if path is None:
        return
    from adjudge.report.markdown import render_markdown

    text = render_markdown(found, most_cases=_COMMENTED if top is None else top, needed=needed)
    if path == "-":
        print_line(text.rstrip("\n"))
    else:
        write_file(Path(path), [text])


def _find_status(found: Report, fail_under: float | None) -> int:
    if fail_under is None:
        return DONE
    if not found.judgements:
        # No case that failed would otherwise look like all of them passed.
        complain("nothing was judged, so --fail-under is missed")
        return MISSED
    if found.about.status != "finished":
        # The cases that are missing may be those that fail.
        complain(
            f"the run is {found.about.status}, so whether {fail_under:g} of all cases pass is "
            "open; finish it with adjudge run --resume"
        )
        return UNKNOWN
    status = find_status(found.outcomes, fail_under)
    if status != DONE:
        rate = found.outcomes["passed"] / found.judgements
        rest = "" if status == MISSED else f", and {found.outcomes['undecided']:,} are undecided"
        passed, _ = format_apart(rate, fail_under, digits=4)
        complain(f"{passed} of {found.judgements:,} judgements passed{rest}; --fail-under asks for {fail_under:.12g}")
    return status
