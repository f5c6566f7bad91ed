"""``adjudge plan``: choose the cases of a run that people label next, and say how many labels it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from adjudge.cli import options as option
from adjudge.cli.exit_status import DONE
from adjudge.cli.output import note, print_document, print_line, write_json
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_share, check_whole_number, is_finite
from adjudge.formats.numbers import format_decimal
from adjudge.templates.figures import format_count

if TYPE_CHECKING:
    from adjudge.dataset.label import Label
    from adjudge.labels.plan import LabelPlan, PlanStatus
    from adjudge.runs.folder import Run

WITHINS = (0.1, 0.05, 0.03, 0.02, 0.01)
"""Half-widths of intervals in the table of labels needed."""

MOST_CASES = 1_000_000
"""Cases that the table assumes for a run whose number of cases is not given: so many that the number hardly matters."""


def plan_labels(
    run: Annotated[Path | None, typer.Argument(metavar="RUN", hidden=True)] = None,
    within: Annotated[
        float | None,
        typer.Option(
            "--within", metavar="POINTS", help="How close, in points of 100.  [default: 3; of a difference 5]"
        ),
    ] = None,
    expect: Annotated[
        float | None,
        typer.Option(
            "--expect", metavar="A", help="Share of verdicts you expect people to agree with.  [default: 0.8]"
        ),
    ] = None,
    cases: Annotated[
        int | None, typer.Option("--cases", metavar="N", help="Without RUN: how many cases there will be.")
    ] = None,
    passed: Annotated[
        float | None,
        typer.Option("--passed", metavar="S", help="Without RUN: share that the judge passes.  [default: 0.5]"),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", metavar="N", help="Which cases are drawn.  [default: chosen at random]")
    ] = None,
    per_case: Annotated[
        int, typer.Option("--per-case", metavar="N", help="Count a case when N raters labelled it.")
    ] = 1,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against", metavar="RUN2", help="Draw cases that compare two systems, or two judges of the same answers."
        ),
    ] = None,
    ignore_groups: Annotated[
        bool,
        typer.Option("--ignore-groups", help="Draw single cases although they come in groups: for this run alone."),
    ] = False,
    begin: Annotated[
        bool,
        typer.Option(
            "--begin", help="Draw a plan of a run that was labelled without one; it leaves out labels of other cases."
        ),
    ] = False,
    labels: Annotated[
        list[Path] | None,
        typer.Option(
            "--labels", metavar="FILE", help="Labels so far; several count together.  [default: those of adjudge label]"
        ),
    ] = None,
    label_map: Annotated[
        str | None,
        typer.Option("--label-map", metavar="MAP", help="What words in --labels mean: 'good=true,bad=false'."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write the cases to label next: .csv, .tsv or .jsonl.")
    ] = None,
    rater: Annotated[
        str | None, typer.Option("--rater", metavar="NAME", help="Who fills in the list of --out.")
    ] = None,
    as_json: option.AsJson = False,
) -> int:
    """Choose which cases of a run people label, and say how many labels it takes.

    $ adjudge plan runs/monday --within 5

    RUN is a folder of `adjudge run`. The first call draws a pilot and keeps the plan in RUN/plan.json. When the pilot
    is labelled, call it again: the next cases come from where people disagree most. `adjudge label RUN` follows the
    plan. Without RUN, the command prints how many labels an interval of some width takes. It says "enough" when the
    interval that may be looked at after every label is narrow enough.

    With --against it draws the same cases of two runs of one data set, all at once: label both runs, and `adjudge diff
    RUN RUN2` says which system people would pass more often. Of two judges on the same answers it draws cases of RUN
    alone, whose labels compare both, and how many follows from the verdicts that differ. Of a run of pairs it draws all
    at once too, and `adjudge agree RUN` says which side people prefer more often. Then --within is that of the
    difference.

    A run that was labelled in random order, without a plan, needs none: the command draws nothing and says about how
    many more labels that order takes.

    Exit status: 0 done, 2 wrong usage or unreadable input, such as a run that changed since its plan was drawn,
    cases in groups without `--ignore-groups`, or labels in random order without `--begin`.
    """
    half_width = _check_within(within)
    if run is None:
        _refuse_options({"--labels": labels, "--label-map": label_map, "--out": out, "--rater": rater, "--seed": seed})
        _refuse_options(
            {
                "--against": against,
                "--ignore-groups": ignore_groups or None,
                "--begin": begin or None,
                "--per-case": None if per_case == 1 else per_case,
            }
        )
        return _print_labels_needed(cases, passed, 0.8 if expect is None else expect, half_width, as_json=as_json)
    _refuse_options({"--cases": cases, "--passed": passed}, "is for a table without RUN, whose cases are known")
    if against is not None:
        _refuse_options(
            {"--out": out, "--rater": rater, "--labels": labels, "--ignore-groups": ignore_groups or None},
            "is for a plan of one run; label both runs with adjudge label",
        )
        draw_options = {"within": half_width, "expect": expect, "seed": seed}
        return _plan_two_runs(run, against, draw_options, per_case=per_case, begin=begin, as_json=as_json)
    from adjudge.labels.case_list import check_list_name, write_case_list
    from adjudge.labels.plan import find_plan_status
    from adjudge.runs.folder import open_run

    if out is not None:  # before a plan is drawn, because a plan that is drawn is kept
        check_list_name(out)
    with open_run(run) as opened:
        known_labels = _read_labels(opened, labels, label_map)
        draw_options = {"within": half_width, "expect": expect, "seed": seed, "ignore_groups": ignore_groups or None}
        given_options = {name: value for name, value in draw_options.items() if value is not None}
        if not begin:
            _check_no_random_order(opened, known_labels, half_width)
        plan = _draw_or_continue_plan(opened, given_options, known_labels, per_case)
        status = find_plan_status(plan, known_labels, per_case=per_case)
        _record_look_at_labels(opened, plan, status)
        if as_json:
            write_json({**plan.to_dict(), "needed": plan.needed.to_dict(), "status": status.to_dict()})
        else:
            print_plan(plan, status, run)
            number = opened.summary["labelled"]
            if number and not known_labels:
                labelled = "1 case has a label" if number == 1 else f"{number:,} cases have labels"
                note(
                    f"{labelled} in the data set, which adjudge agree counts and a plan does not: it did not draw them"
                )
        if out is not None:
            cases_written = format_count(write_case_list(out, plan, opened, status.pending, rater=rater), "case")
            note(f"wrote {cases_written} to {out}; fill in the column value, then adjudge label {run} --import {out}")
    return DONE


def _plan_two_runs(
    run: Path, against: Path, draw_options: Mapping[str, Any], *, per_case: int, begin: bool, as_json: bool
) -> int:
    """Draw a plan of the cases that compare two runs, or read the one that was drawn, and print what to label.

    Returns the exit status. Raises ``UsageError`` if there is a plan already and options say how to draw one.
    """
    from adjudge.labels.plan import find_plan_status, make_paired_plans, write_plan
    from adjudge.runs.folder import open_run

    given_options = {name: value for name, value in draw_options.items() if value is not None}
    with open_run(run) as before, open_run(against) as after:
        opened = {run: before, against: after}
        plans = _find_paired_plans(opened)
        if plans and given_options:
            folders = " and ".join(map(str, plans))
            raise UsageError(
                f"{folders} {'have' if len(plans) > 1 else 'has'} a plan to compare {run} with {against}; leave "
                f"--{next(iter(given_options))} out, or delete plan.json of {folders} to begin again"
            )
        if not plans:
            for opened_run in () if begin else (before, after):
                _check_no_random_order(opened_run, _read_labels(opened_run, None, None), None)
            # One plan each, or, for two judges on the same answers, only one for the first run.
            plans = dict(zip(opened, make_paired_plans(before, after, **given_options), strict=False))
            if len(plans) == 1 and "expect" in given_options:
                raise UsageError(
                    "--expect is for two systems, and the verdicts of two judges on the same answers say how many "
                    "labels it takes; leave it out"
                )
            for folder, plan in plans.items():
                write_plan(plan, opened[folder].folder)
        cases_left: dict[Path, int] = {}
        for folder, plan in plans.items():
            status = find_plan_status(plan, _read_labels(opened[folder], None, None), per_case=per_case)
            cases_left[folder] = len(status.pending)
    plan = next(iter(plans.values()))
    if as_json:
        write_json(plan.to_dict())
    else:
        _print_paired_plan(plan, run, against, cases_left)
    return DONE


def _find_paired_plans(runs: Mapping[Path, Run]) -> dict[Path, LabelPlan]:
    """Find the plans that compare two runs, by their folders; none if no run has a plan.

    Each run has the same plan, but of two judges on the same answers only one has it. Raises ``UsageError`` where a run
    has a plan that does not compare these two runs.
    """
    from adjudge.labels.plan import read_plan

    plans: dict[Path, LabelPlan] = {}
    for folder, run in runs.items():
        plan = read_plan(run.folder)
        if plan is not None:
            plans[folder] = plan
    if not plans or (len(plans) == 2 and len({plan.id for plan in plans.values()}) == 1):
        return plans
    folder, plan = next(iter(plans.items()))
    contents = {run.contents or run.find_contents() for run in runs.values()}
    are_judges_of_same_answers = len(contents) == 1 and None not in contents
    other_run_ids = {run.id for run in runs.values()} - {runs[folder].id}
    if are_judges_of_same_answers and len(plans) == 1 and plan.against in other_run_ids:
        return plans
    refusal = f"{folder} has another plan; delete its plan.json, and draw one for both runs"
    if are_judges_of_same_answers:
        refusal += f", or compare the judges by its labels (adjudge diff {' '.join(map(str, runs))})"
    raise UsageError(refusal)


def _print_paired_plan(plan: LabelPlan, run: Path, against: Path, cases_left: Mapping[Path, int]) -> None:
    """Print which cases of a plan to label, and how to compare the two runs then.

    ``cases_left`` has the number of planned cases without a label, by the folder of each run that is labelled: both
    runs, or, for two judges on the same answers, one.
    """
    planned, first_folder = f"{len(plan.order):,} of {sum(plan.sizes):,} cases", next(iter(cases_left))
    if len(cases_left) > 1:
        cases, noun, folders = f"both answers of {planned}", "runs", "both runs"
        purpose = "then compare the runs"
    else:
        cases, noun, folders = f"{planned} of {first_folder}", "judges", str(first_folder)
        purpose = "whose labels compare both judges"
    if any(cases_left.values()):
        print_line(f"label {cases}, {purpose}:")
    else:
        print_line(f"{cases} are labelled, which is all that this plan drew; compare the {noun}:")
    for folder, number in cases_left.items():
        if number:
            print_line(f"  adjudge label {folder}   ({number:,} left)")
    # The labelled run comes first, because ``adjudge diff`` records in the first folder that somebody saw its labels.
    compared_folders = [*cases_left, *(folder for folder in (run, against) if folder not in cases_left)]
    print_line(f"  adjudge diff {' '.join(map(str, compared_folders))}")
    if not any(cases_left.values()):
        note(
            f"for more labels, delete plan.json of {folders}, and draw a new plan with a smaller --within; once "
            "somebody has compared the runs, the wider limits for every look decide then"
        )


def _record_look_at_labels(run: Run, plan: LabelPlan, status: PlanStatus) -> None:
    """Record in the run's folder that somebody saw the rate that the labels give, because later looks depend on it.

    Nothing is recorded without labels, and for a plan of a difference, of which no rate is shown.
    """
    if not sum(status.labelled) or plan.is_whole:
        return
    from adjudge.labels.looks import Look, write_look

    look = Look(
        at=datetime.now(UTC),
        by="plan",
        labels=sum(status.labelled),
        draw=plan.id,
        planned=True,
        complete=status.complete,
        truths=status.truths,
        limit="every look",
    )
    write_look(run.folder, look)


def _check_within(within: float | None) -> float | None:
    """Convert ``--within`` from points of 100 to a share; raises ``UsageError`` for a value out of range."""
    if within is None:
        return None
    if not is_finite(within) or not 0 < within < 50:
        raise UsageError(f"--within is in points of 100, above 0 and below 50, got {within:g}; 3 is plus or minus 3 %")
    return within / 100


def _refuse_options(
    options: dict[str, object], reason: str = "is about the cases of a run; name the folder of one"
) -> None:
    """Raise ``UsageError``, with the reason, for the first of some options that has a value."""
    for name, value in options.items():
        if value not in (None, []):
            raise UsageError(f"{name} {reason}")


def _check_no_random_order(run: Run, labels: Sequence[Label], within: float | None) -> None:
    """Raise ``UsageError`` for a run without a plan whose cases were labelled in random order so far.

    A plan would not count the labels of cases that it does not draw. Else somebody who only asks how many labels it
    takes would lose most of the labels that are there.
    """
    from adjudge.labels.plan import read_plan
    from adjudge.labels.store import RANDOM_ORDER

    if read_plan(run.folder) is not None:
        return
    contents = run.contents or run.find_contents()
    case_ids = {
        label.case
        for label in labels
        if label.design is not None
        and label.design.plan.startswith(RANDOM_ORDER)
        and label.design.drawn_from == contents
    }
    if case_ids:
        raise UsageError(
            f"{run.folder} has {format_count(len(case_ids), 'case')} labelled in random order, and a plan would not "
            f"count those that it does not draw, so none was drawn{_describe_random_order(run, within)}; label on with "
            f"adjudge label {run.folder}, or give --begin to draw a plan all the same"
        )


def _describe_random_order(run: Run, within: float | None) -> str:
    """Describe how wide the interval of the rate is now, and how many more labels in random order it takes.

    An empty text where the interval cannot be estimated.
    """
    from adjudge.labels.live_estimate import WITHIN, estimate_live
    from adjudge.labels.queue import open_label_queue
    from adjudge.labels.source import find_store

    if not find_store(run.folder).exists():
        return ""
    half_width_aimed_at = WITHIN if within is None else within
    with open_label_queue(run) as queue:
        estimate = estimate_live(queue, within=half_width_aimed_at)
    if estimate is None:
        return ""
    half_width = format_decimal(50 * (estimate.high - estimate.low), 1)  # in points of 100
    width_now = f"; they give ±{half_width} points at every look"
    if not estimate.more:
        return width_now
    return f"{width_now}, and about {estimate.more:,} more in that order ±{100 * half_width_aimed_at:g}"


def _draw_or_continue_plan(
    run: Run, given_options: Mapping[str, Any], labels: Sequence[Label], per_case: int
) -> LabelPlan:
    """Return the plan of a run: draw one if there is none, and draw its next cases if the drawn ones are labelled.

    ``given_options`` say how to draw a plan. Raises ``UsageError`` for one that contradicts the plan that is there.
    """
    from adjudge.labels.plan import continue_plan, find_plan_status, load_plan, make_plan, write_plan

    plan = load_plan(run)
    if plan is None:
        plan = make_plan(run, **given_options)
        write_plan(plan, run.folder)
        return plan
    plan_options = {"within": plan.within, "seed": plan.seed, "ignore_groups": True}
    changed_option = next((name for name, value in given_options.items() if value != plan_options.get(name)), None)
    if changed_option is not None:
        # Choosing another width or other cases after labels were seen would make the plan's probabilities untrue.
        raise UsageError(
            f"--{changed_option} is for a plan that is not drawn yet, and {run.folder} has one (within "
            f"{plan.within * 100:g} points, seed {plan.seed}); leave it out, or delete plan.json to begin again"
        )
    continued = continue_plan(plan, run, find_plan_status(plan, labels, per_case=per_case))
    if continued is not plan:
        write_plan(continued, run.folder)
    return continued


def _read_labels(run: Run, files: Sequence[Path] | None, label_map: str | None) -> list[Label]:
    """Read the labels of files, or without files those that ``adjudge label`` keeps beside the run.

    Raises ``UsageError`` for ``--label-map`` without a file, and for a number in place of a file.
    """
    from adjudge.dataset.label_file import load_labels
    from adjudge.dataset.label_map import parse_label_map
    from adjudge.labels.queue import open_label_queue
    from adjudge.labels.source import find_store

    for path in files or ():
        if str(path).isdecimal() and not path.exists():
            raise UsageError(
                f"--labels takes a file of labels, and {path} is a number; to label {path} cases, leave it out and "
                "quit adjudge label (q) when they are done"
            )
    if files:
        meanings = parse_label_map(label_map) if label_map is not None else None
        return [label for path in files for label in load_labels(path, label_map=meanings)]
    if label_map is not None:
        raise UsageError("--label-map is for the labels of --labels; name a file, or leave it out")
    if not find_store(run.folder).exists():
        return []
    with open_label_queue(run) as queue:
        return list(queue.labels())


# ---------------------------------------------------------------- output as text


def print_plan(plan: LabelPlan, status: PlanStatus, run: Path) -> None:
    """Print a plan, how many of its cases are labelled, and the command to label the next ones."""
    from adjudge.report.plan_document import make_plan_document

    print_document(make_plan_document(plan, status, str(run)))
    if status.pending and (plan.is_whole or not status.enough):
        note(f"adjudge label {run}, or adjudge plan {run} --out cases.csv")


def _print_labels_needed(
    cases: int | None, passed: float | None, expect: float, within: float | None, *, as_json: bool
) -> int:
    """Print a table of how many labels each width of an interval takes, for a run that does not exist yet.

    The run is assumed to have ``cases`` cases, of which the judge passes the share ``passed``; people agree with the
    share ``expect`` of its verdicts.
    """
    from adjudge.trust.labels_needed import compute_labels_needed

    total = MOST_CASES if cases is None else check_whole_number("cases", cases, least=2)
    share = check_share("passed", 0.5 if passed is None else passed)
    check_share("expect", expect)
    passed_cases = min(max(round(total * share), 1), total - 1)  # at least one case passes, and one fails
    widths = sorted({*WITHINS, *(() if within is None else (within,))}, reverse=True)
    # Of the cases that the judge passes and of those that it fails: their number, and the share that people pass.
    sizes, rates = (passed_cases, total - passed_cases), (expect, 1 - expect)
    rows = [compute_labels_needed(sizes, rates, within=width) for width in widths]
    if as_json:
        assumptions = {"cases": cases, "passed": share, "expect": expect}
        write_json({"schema": "adjudge/labels-needed/1", **assumptions, "rows": [row.to_dict() for row in rows]})
    else:
        from adjudge.report.plan_document import make_needed_document

        assumption = (
            f"if people agree with {100 * expect:g} % of the verdicts (--expect), the judge passes {100 * share:g} % "
            f"(--passed), and the run has {'any number of' if cases is None else f'{cases:,}'} cases (--cases)"
        )
        print_document(make_needed_document(rows, within, assumption))
    return DONE
