"""``adjudge diff``: show the changes between two runs, and find the exit status by which a script stops on them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adjudge.cli import options as option
from adjudge.cli.error_messages import format_error
from adjudge.cli.exit_status import DONE, FAILED, UNDECIDED
from adjudge.cli.measurement_options import MeasureRequest, make_request, read_labels
from adjudge.cli.option_sets import Only
from adjudge.cli.output import complain, note, print_document, print_line, show_progress, write_file, write_json
from adjudge.errors import AdjudgeError, UsageError
from adjudge.formats.arguments import check_choice, check_share, check_whole_number, is_finite

if TYPE_CHECKING:
    from adjudge.measurement.measurement import Measurement
    from adjudge.report.run_diff import Diff, DiffSide
    from adjudge.runs.folder import Run


_MOST_LISTED = 2_000
"""Cases that a diff lists at most."""

LISTED = 20
"""Cases that the terminal lists without ``--top``."""


def diff_runs(
    before: Annotated[Path, typer.Argument(metavar="RUN1", hidden=True)],
    after: Annotated[Path, typer.Argument(metavar="RUN2", hidden=True)],
    measuring: Annotated[option.MeasureOptions, Only("labels", "labels_are", "limits")],
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write one HTML file: both runs side by side.")
    ] = None,
    as_json: option.AsJson = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Write Markdown, for a pull request.")] = False,
    top: Annotated[
        int | None, typer.Option("--top", metavar="N", help="How many cases to list; at most 2,000, changed first.")
    ] = None,
    fail_under: Annotated[
        float | None, typer.Option("--fail-under", metavar="SHARE", help="Fail if fewer of RUN2 passed, from 0 to 1.")
    ] = None,
    no_regressions: Annotated[
        bool, typer.Option("--no-regressions", help="Fail if a case passed in RUN1 and does not in RUN2.")
    ] = False,
    fail_if_worse: Annotated[
        bool, typer.Option("--fail-if-worse", help="Fail if RUN2 is shown to be worse than RUN1.")
    ] = False,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="people|judge",
            help="What shows it: labels of people, or the judge's verdicts alone, its errors included.  "
            "[default: people]",
        ),
    ] = None,
    margin: Annotated[
        float, typer.Option("--margin", metavar="POINTS", help="How much worse it may be, in points of 100; 0.")
    ] = 0.0,
    pass_if_unclear: Annotated[
        bool,
        typer.Option(
            "--pass-if-unclear",
            help="Do not fail where chance alone keeps --fail-if-worse from telling: 0 in place of 3.",
        ),
    ] = False,
) -> int:
    """Show what changed from RUN1 to RUN2, by case and criterion.

    $ adjudge diff runs/monday runs/tuesday

    RUN1 and RUN2 are folders of `adjudge run`. Cases are paired by their ids; undecided is not passed. The first lines
    say what was compared: answers by one judge, judges on the same answers, or both, which cannot be told apart; of
    pairs, how the preference changed. Without --top, the terminal lists 20 cases, a comment 50, and HTML and JSON up to
    2,000.

    With labels of people it says first which system they would pass more often, if the answers changed, or which judge
    decides as they do more often, if they did not (this needs pip install 'adjudge[trust]'). Draw the cases with
    `adjudge plan RUN1 --against RUN2` and label both runs with `adjudge label`, or name files with --labels. For two
    judges on the same answers, labels of RUN1 are enough.

    With --by judge nobody has to label: it says first how much more often the judge passes one run, with limits for
    other cases like these. What the judge gets wrong is not in it.

    Exit status: 0 done, 1 fewer than --fail-under passed, a case regressed or RUN2 is worse, 2 wrong usage or no case
    in both, 3 unknown, because cases are undecided, gone or changed, a run is unfinished, the judge and the answers
    both changed, or what --by names cannot tell. --pass-if-unclear makes the last of these 0, and no other.
    """
    if as_json and markdown:
        raise UsageError("give --json or --markdown, not both")
    _check_output_options(html, top, fail_under)
    _check_worse(by, margin, fail_if_worse=fail_if_worse, pass_if_unclear=pass_if_unclear)
    request = _make_request(measuring)
    difference = compare_runs(before, after)
    if request is not None or by == "people" or (fail_if_worse and by is None):
        difference = _measure_by_people(difference, request or MeasureRequest(labels=None, by="diff"))
    else:
        difference = _measure_if_labelled(difference)
    difference = replace(difference, margin=margin / 100 if margin else None)
    if by == "judge":
        difference = _compare_verdicts(difference)
    if html is not None:
        _write_html(html, difference, _MOST_LISTED if top is None else top)
    difference = difference if top is None else replace(difference, listed=difference.listed[:top])
    if as_json:
        write_json(difference.to_dict())
    elif markdown:
        from adjudge.report.render import MOST_CHANGES, render_diff_markdown

        print_line(render_diff_markdown(difference, most_cases=MOST_CHANGES if top is None else top).rstrip("\n"))
    else:
        from adjudge.report.diff_document import make_diff_document

        document = make_diff_document(difference, top=LISTED if top is None else top)
        print_document(document, more="--top shows more, --html FILE the first 2,000")
    if difference.only_before and difference.only_after:
        note(_ID_ADVICE)
    status = find_status(difference, fail_under, no_regressions=no_regressions)
    if not fail_if_worse:
        return status
    find_status_if_worse = _find_status_by_judge if by == "judge" else _find_status_by_people
    status_if_worse = find_status_if_worse(difference, 0 if pass_if_unclear else 3)
    return max(status, status_if_worse, key=_STATUSES_BY_GRAVITY.index)


def compare_runs(before: Path, after: Path) -> Diff:
    """Compare two runs case by case; raises ``UsageError`` if they have no case in common that can be compared."""
    from adjudge.report.run_diff import diff

    with show_progress("comparing"):
        difference = diff(before, after)
    if difference.cases:
        return difference
    # Two runs of different data have no case that regressed, and that must not look like a pass.
    remedy = "compare runs of the same data"
    if difference.inputs_changed:
        remedy += ", with the same reference, task and context"
    if difference.criteria_changed:
        remedy += ", judged by the same criteria of their own (--case-criteria)"
    if difference.only_before and difference.only_after:
        remedy += f"; {_ID_ADVICE}"
    raise UsageError(f"{before} and {after} have no case in common that is the same; {remedy}")


_ID_ADVICE = (
    "cases are paired by their ids, and a row without an id gets one by its content: where answers changed, name the "
    "column of the ids (adjudge run --id)"
)
"""The advice for runs that each have cases which the other does not have."""

_STATUSES_BY_GRAVITY = (0, 3, 1)
"""The exit statuses of a comparison, the gravest last."""


def _find_status_by_people(difference: Diff, unclear_status: int) -> int:
    """Find the exit status of ``--fail-if-worse`` by the labels of people: 1 if RUN2 is worse than the margin allows.

    ``unclear_status`` is returned if the interval of the difference cannot tell, and 3 if there is no interval.
    """
    shares = [share for share in (difference.systems, difference.judges) if share is not None]
    margin = difference.margin or 0.0
    low, high = None, None
    if difference.systems is not None and difference.systems.rate is not None:
        low, high = difference.systems.rate.interval
    if difference.judges is not None:
        low, high = difference.judges.agreement.low, difference.judges.agreement.high
    if low is None or high is None:
        note("; ".join(_describe_unfinished_runs(difference) or [share.because for share in shares]))
        return UNDECIDED
    status = _find_interval_status(low, high, margin)
    if status == UNDECIDED:
        note(f"the labels cannot tell whether RUN2 is worse; {_advise_on_labels(difference)}")
        return unclear_status
    return status


def _advise_on_labels(difference: Diff) -> str:
    """Advise what to do if the labels cannot tell whether a run is worse.

    A plan may allow one look at its labels. Whoever labels more after it looks again, and needs wider limits.
    """
    limits = {measured.limit for measured in (difference.systems, difference.judges) if measured is not None}
    if "one look" in limits:
        return "the one look is taken: with further labels, the wider limits for every look decide; or allow a --margin"
    if "every look" in limits:
        return "allow a --margin, or label more and look again: these limits hold however often you look"
    return "every answer is labelled: settle those that nobody could tell, or allow a --margin"


def _find_status_by_judge(difference: Diff, unclear_status: int) -> int:
    """Find the exit status of ``--fail-if-worse --by judge``: 1 if RUN2 is worse by the verdicts of the judge.

    ``unclear_status`` is returned if the interval of the difference cannot tell. The status is 3 if there is no
    interval, and if the runs are not shown to differ but cases that passed in RUN1 are missing in RUN2.
    """
    share = difference.judged
    if share is None or share.low is None or share.high is None:
        judge_changed = "the judge changed between the runs, so its verdicts cannot tell whether the answers are worse"
        note("; ".join(_describe_unfinished_runs(difference) or [judge_changed]))
        return UNDECIDED
    status = _find_interval_status(share.low, share.high, difference.margin or 0.0)
    if status == UNDECIDED:
        note("the judge's verdicts cannot tell whether RUN2 is worse; judge more cases, or allow a --margin")
        status = unclear_status
    if status == DONE and difference.unmatched_passes:
        note(_describe_unmatched(difference))
        return UNDECIDED
    return status


def _find_interval_status(low: float, high: float, margin: float) -> int:
    """Find the exit status of the interval from ``low`` to ``high`` of a difference, RUN2 minus RUN1.

    1 if all of it is worse than the margin allows, 0 if none of it is, and 3 if it contains both.
    """
    return FAILED if high < -margin else DONE if low >= -margin else UNDECIDED


def _check_output_options(html: Path | None, top: int | None, fail_under: float | None) -> None:
    """Raise ``UsageError`` for a wrong value of an option about the output, and of ``--fail-under``."""
    if fail_under is not None:
        check_share("fail_under", fail_under)
    if html == Path("-"):
        raise UsageError("--html writes a file, and - is standard output; name a file")
    if top is not None:
        check_whole_number("top", top, least=0, most=_MOST_LISTED)


def _check_worse(by: str | None, margin: float, *, fail_if_worse: bool, pass_if_unclear: bool) -> None:
    """Raise ``UsageError`` for a wrong ``--margin`` or ``--by``, and for options that need ``--fail-if-worse``."""
    if not is_finite(margin) or not 0 <= margin < 100:
        raise UsageError(f"--margin is in points of 100, from 0 and below 100, got {margin:g}; 2 allows 2 points worse")
    if margin and not fail_if_worse:
        raise UsageError("--margin is how much worse --fail-if-worse allows; give both, or leave it out")
    if pass_if_unclear and not fail_if_worse:
        raise UsageError("--pass-if-unclear is about what --fail-if-worse cannot tell; give both, or leave it out")
    if by is not None:
        check_choice("by", by, ("people", "judge"))


def _make_request(measuring: option.MeasureOptions) -> MeasureRequest | None:
    """Make the request by which both runs are measured; ``None`` without ``--labels``.

    Raises ``UsageError`` for options that are about the labels of ``--labels`` without it.
    """
    if measuring.labels is None:
        if measuring.labels_are is not None:
            raise UsageError("--labels-are is about the labels of --labels; name a file, or leave it out")
        if measuring.limits is not None:
            raise UsageError("--limits are those of the rate that --labels give; name a file, or leave it out")
        return None
    request = make_request(measuring, read_labels(measuring.labels), by="diff")
    request.check_extra()
    return request


def _measure_by_people(difference: Diff, request: MeasureRequest) -> Diff:
    """Add to a diff what the labels of people say about the two runs, because the user asked for it.

    For two judges on the same answers, and labels of files, the measurement of each judge is added too.
    """
    from adjudge.report.measured_diff import measure_diff, record_difference
    from adjudge.runs.folder import open_run

    with open_run(difference.before.folder) as before, open_run(difference.after.folder) as after:
        is_random = request.labels_are == "random"
        measured = measure_diff(difference, before, after, labels=request.labels, labels_are_random=is_random)
        if measured.judges is None or request.labels is None:
            record_difference(measured, before, by=request.by)
            return measured
        first, second = [_measure_run(request, run) for run in (before, after)]
    return replace(measured, measured=None if first is None or second is None else (first, second))


def _measure_run(request: MeasureRequest, run: Run) -> Measurement | None:
    """Measure the judge of one run, and record in its folder that somebody looked."""
    measurement = request.measure(run)
    request.report_status(measurement, run)
    return measurement


def _compare_verdicts(difference: Diff) -> Diff:
    """Add to a diff how the rates differ at which the judge passes the two runs, for ``--by judge``."""
    from adjudge.report.measured_diff import compare_verdicts
    from adjudge.runs.folder import open_run

    with open_run(difference.before.folder) as before, open_run(difference.after.folder) as after:
        return compare_verdicts(difference, before, after)


def _measure_if_labelled(difference: Diff) -> Diff:
    """Add to a diff what people say about the two runs if they labelled both, although the user did not ask for it.

    An error in the labels is therefore a complaint, and leaves the diff as it is.
    """
    from adjudge.report.measured_diff import is_labelled, measure_queued_diff, record_difference
    from adjudge.runs.folder import open_run
    from adjudge.trust.extra import has_extra

    with open_run(difference.before.folder) as before, open_run(difference.after.folder) as after:
        try:
            if not is_labelled(difference, before, after):
                return difference
            if not has_extra():
                note("people labelled these runs; to compare them by that: pip install 'adjudge[trust]'")
                return difference
            measured = measure_queued_diff(difference, before, after)
            record_difference(measured, before, by="diff")
        except AdjudgeError as error:
            # The user did not ask for the labels, so a damaged file of them must not hide what the runs say.
            complain(f"what people said of these runs is left out: {format_error(error)}")
            return difference
    return measured


def _write_html(path: Path, difference: Diff, most: int) -> None:
    """Write the page of a diff; both runs are opened again, because a diff holds no contents of cases."""
    from adjudge.report.paired_cases import pair_cases
    from adjudge.report.render import render_diff_html
    from adjudge.runs.folder import open_run

    with open_run(difference.before.folder) as before, open_run(difference.after.folder) as after:
        text = render_diff_html(difference, pair_cases(difference, before, after, most=most))
    write_file(path, [text])


def _describe_unfinished_runs(difference: Diff) -> list[str]:
    """Describe which of the two runs are unfinished, a text for each; empty if both are finished."""
    sides = (difference.before, difference.after)
    return [_describe_unfinished(side) for side in sides if side.status != "finished"]


def _describe_unmatched(difference: Diff) -> str:
    """Describe the cases that passed in the earlier run, and cannot be compared in the later one."""
    number = difference.unmatched_passes
    cases = "case that passed in RUN1 is" if number == 1 else "cases that passed in RUN1 are"
    return f"{number:,} {cases} gone or changed, so nobody can say"


def _describe_unfinished(side: DiffSide) -> str:
    return f"{side.folder} is {side.status}: finish it with `adjudge run ... --resume`"


def find_status(difference: Diff, fail_under: float | None, *, no_regressions: bool) -> int:
    """Find the exit status of ``--fail-under`` and ``--no-regressions``: 1 (missed) beats 3 (unknown) beats 0."""
    from adjudge.cli.commands.run import find_status as find_share_status

    has_conditions = fail_under is not None or no_regressions
    if has_conditions and difference.compared == "both":
        note("the judge and the answers both changed, so nothing can be required of this comparison")
        return UNDECIDED
    statuses = {find_share_status(difference.after.counts, fail_under)} if fail_under is not None else set()
    if no_regressions and difference.lost:
        statuses.add(FAILED)
    if no_regressions and difference.unmatched_passes:
        note(_describe_unmatched(difference))
        statuses.add(UNDECIDED)
    # For regressions, the earlier run has to be finished too: a case that it has not judged yet cannot be compared.
    required_sides = ([difference.before] if no_regressions else []) + ([difference.after] if has_conditions else [])
    for side in required_sides:
        if side.status != "finished":
            note(_describe_unfinished(side))
            statuses.add(UNDECIDED)
    return FAILED if FAILED in statuses else UNDECIDED if UNDECIDED in statuses else DONE
