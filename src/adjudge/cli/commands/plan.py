"""``adjudge plan``: the cases of a run that people label next, their number, and what their labels come to so far."""

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
"""Half-widths in the table."""

MANY = 1_000_000
"""Cases of a run of which nobody says how many it has."""


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
    half = _check_within(within)
    if run is None:
        _refuse({"--labels": labels, "--label-map": label_map, "--out": out, "--rater": rater, "--seed": seed})
        _refuse(
            {
                "--against": against,
                "--ignore-groups": ignore_groups or None,
                "--begin": begin or None,
                "--per-case": None if per_case == 1 else per_case,
            }
        )
        return _print_table(cases, passed, 0.8 if expect is None else expect, half, as_json=as_json)
    _refuse({"--cases": cases, "--passed": passed}, "is for a table without RUN, whose cases are known")
    if against is not None:
        _refuse(
            {"--out": out, "--rater": rater, "--labels": labels, "--ignore-groups": ignore_groups or None},
            "is for a plan of one run; label both runs with adjudge label",
        )
        draw = {"within": half, "expect": expect, "seed": seed}
        return _plan_pair(run, against, draw, per_case=per_case, begin=begin, as_json=as_json)
    from adjudge.labels.case_list import check_list_name, write_case_list
    from adjudge.labels.plan import find_plan_status
    from adjudge.runs.folder import open_run

    if out is not None:  # before anything is drawn: what is drawn is kept
        check_list_name(out)
    with open_run(run) as opened:
        decisions = _read_labels(opened, labels, label_map)
        draw = {"within": half, "expect": expect, "seed": seed, "ignore_groups": ignore_groups or None}
        named = {name: value for name, value in draw.items() if value is not None}
        if not begin:
            _keep_random_order(opened, decisions, half)
        plan = _find_plan(opened, named, decisions, per_case)
        status = find_plan_status(plan, decisions, per_case=per_case)
        _record_look(opened, plan, status)
        if as_json:
            write_json({**plan.to_dict(), "needed": plan.needed.to_dict(), "status": status.to_dict()})
        else:
            print_plan(plan, status, run)
            if (number := opened.summary["labelled"]) and not decisions:
                labelled = "1 case has a label" if number == 1 else f"{number:,} cases have labels"
                note(
                    f"{labelled} in the data set, which adjudge agree counts and a plan does not: it did not draw them"
                )
        if out is not None:
            written = format_count(write_case_list(out, plan, opened, status.pending, rater=rater), "case")
            note(f"wrote {written} to {out}; fill in the column value, then adjudge label {run} --import {out}")
    return DONE


def _plan_pair(run: Path, against: Path, draw: Mapping[str, Any], *, per_case: int, begin: bool, as_json: bool) -> int:
    """Draw the cases that compare two runs, or follow the plan that did.

    Raises ``UsageError`` where a plan is there that the options contradict.
    """
    from adjudge.labels.plan import find_plan_status, make_paired_plans, write_plan
    from adjudge.runs.folder import open_run

    named = {name: value for name, value in draw.items() if value is not None}
    with open_run(run) as before, open_run(against) as after:
        opened = {run: before, against: after}
        plans = _find_paired_plans(opened)
        if plans and named:
            folders = " and ".join(map(str, plans))
            raise UsageError(
                f"{folders} {'have' if len(plans) > 1 else 'has'} a plan to compare {run} with {against}; leave "
                f"--{next(iter(named))} out, or delete plan.json of {folders} to begin again"
            )
        if not plans:
            for one in () if begin else (before, after):
                _keep_random_order(one, _read_labels(one, None, None), None)
            plans = dict(zip(opened, make_paired_plans(before, after, **named), strict=False))
            if len(plans) == 1 and "expect" in named:
                raise UsageError(
                    "--expect is for two systems, and the verdicts of two judges on the same answers say how many "
                    "labels it takes; leave it out"
                )
            for folder, plan in plans.items():
                write_plan(plan, opened[folder].folder)
        left = {
            folder: len(find_plan_status(plan, _read_labels(opened[folder], None, None), per_case=per_case).pending)
            for folder, plan in plans.items()
        }
    plan = next(iter(plans.values()))
    if as_json:
        write_json(plan.to_dict())
    else:
        _print_pair(plan, run, against, left)
    return DONE


def _find_paired_plans(runs: Mapping[Path, Run]) -> dict[Path, LabelPlan]:
    """Find the plans that compare two runs: of each, or, of two judges of the same contents, of one; else none.

    Raises ``UsageError`` where a run has another plan.
    """
    from adjudge.labels.plan import read_plan

    plans = {folder: plan for folder, run in runs.items() if (plan := read_plan(run.folder)) is not None}
    if not plans or (len(plans) == 2 and len({plan.id for plan in plans.values()}) == 1):
        return plans
    folder, plan = next(iter(plans.items()))
    contents = {run.contents or run.find_contents() for run in runs.values()}
    are_judges = len(contents) == 1 and None not in contents
    if are_judges and len(plans) == 1 and plan.against in {run.id for run in runs.values()} - {runs[folder].id}:
        return plans
    refusal = f"{folder} has another plan; delete its plan.json, and draw one for both runs"
    if are_judges:
        refusal += f", or compare the judges by its labels (adjudge diff {' '.join(map(str, runs))})"
    raise UsageError(refusal)


def _print_pair(plan: LabelPlan, run: Path, against: Path, left: Mapping[Path, int]) -> None:
    """Print what to do with a plan of two runs, by how many planned cases of each labelled run are ``left``."""
    planned, one = f"{len(plan.order):,} of {sum(plan.sizes):,} cases", next(iter(left))
    if len(left) > 1:
        cases, them, files, compares = f"both answers of {planned}", "runs", "both runs", "then compare the runs"
    else:
        cases, them, files, compares = f"{planned} of {one}", "judges", str(one), "whose labels compare both judges"
    if any(left.values()):
        print_line(f"label {cases}, {compares}:")
    else:
        print_line(f"{cases} are labelled, which is all that this plan drew; compare the {them}:")
    for folder, number in left.items():
        if number:
            print_line(f"  adjudge label {folder}   ({number:,} left)")
    # The labelled run first: what somebody sees of its plan's labels is noted in its folder.
    names = [*left, *(folder for folder in (run, against) if folder not in left)]
    print_line(f"  adjudge diff {' '.join(map(str, names))}")
    if not any(left.values()):
        note(
            f"for more labels, delete plan.json of {files}, and draw a new plan with a smaller --within; once somebody "
            "has compared the runs, the wider limits for every look decide then"
        )


def _record_look(run: Run, plan: LabelPlan, status: PlanStatus) -> None:
    """Note that somebody saw what the labels come to, if there are any; of a plan for a difference nothing is shown."""
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
    if within is None:
        return None
    if not is_finite(within) or not 0 < within < 50:
        raise UsageError(f"--within is in points of 100, above 0 and below 50, got {within:g}; 3 is plus or minus 3 %")
    return within / 100


def _refuse(options: dict[str, object], reason: str = "is about the cases of a run; name the folder of one") -> None:
    named = next((name for name, value in options.items() if value not in (None, [])), None)
    if named is not None:
        raise UsageError(f"{named} {reason}")


def _keep_random_order(run: Run, labels: Sequence[Label], within: float | None) -> None:
    """Raise ``UsageError`` where a plan would take the place of the random order in which cases were labelled so far.

    A question about how many labels it takes would otherwise leave most of them out of the rate, for good.
    """
    from adjudge.labels.plan import read_plan
    from adjudge.labels.store import RANDOM_ORDER

    if read_plan(run.folder) is not None:
        return
    contents = run.contents or run.find_contents()
    ordered = {
        label.case
        for label in labels
        if label.design is not None
        and label.design.plan.startswith(RANDOM_ORDER)
        and label.design.drawn_from == contents
    }
    if ordered:
        raise UsageError(
            f"{run.folder} has {format_count(len(ordered), 'case')} labelled in random order, and a plan would not "
            f"count those that it does not draw, so none was drawn{_describe_live(run, within)}; label on with "
            f"adjudge label {run.folder}, or give --begin to draw a plan all the same"
        )


def _describe_live(run: Run, within: float | None) -> str:
    """Describe how wide the interval is now, and how many more labels in random order it takes; "" if unknown."""
    from adjudge.labels.live_estimate import WITHIN, estimate_live
    from adjudge.labels.queue import open_label_queue
    from adjudge.labels.source import find_store

    if not find_store(run.folder).exists():
        return ""
    aim = WITHIN if within is None else within
    with open_label_queue(run) as queue:
        estimate = estimate_live(queue, within=aim)
    if estimate is None:
        return ""
    now = f"; they give ±{format_decimal(50 * (estimate.high - estimate.low), 1)} points at every look"
    return f"{now}, and about {estimate.more:,} more in that order ±{100 * aim:g}" if estimate.more else now


def _find_plan(run: Run, draw: Mapping[str, Any], labels: Sequence[Label], per_case: int) -> LabelPlan:
    """The plan of a run: drawn now where there is none, and continued where its cases are labelled.

    Raises ``UsageError`` for options that contradict a plan that is there.
    """
    from adjudge.labels.plan import continue_plan, find_plan_status, load_plan, make_plan, write_plan

    plan = load_plan(run)
    if plan is None:
        plan = make_plan(run, **draw)
        write_plan(plan, run.folder)
        return plan
    kept = {"within": plan.within, "seed": plan.seed, "ignore_groups": True}
    changed = next((name for name, value in draw.items() if value != kept.get(name)), None)
    if changed is not None:
        # Choosing another width or other cases after labels were seen would make the plan's probabilities untrue.
        raise UsageError(
            f"--{changed} is for a plan that is not drawn yet, and {run.folder} has one (within "
            f"{plan.within * 100:g} points, seed {plan.seed}); leave it out, or delete plan.json to begin again"
        )
    continued = continue_plan(plan, run, find_plan_status(plan, labels, per_case=per_case))
    if continued is not plan:
        write_plan(continued, run.folder)
    return continued


def _read_labels(run: Run, files: Sequence[Path] | None, label_map: str | None) -> list[Label]:
    """The labels of files, else those that ``adjudge label`` keeps beside the run.

    Raises ``UsageError`` for ``--label-map`` without a file, and for a number in place of one.
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
        words = parse_label_map(label_map) if label_map is not None else None
        return [label for path in files for label in load_labels(path, label_map=words)]
    if label_map is not None:
        raise UsageError("--label-map is for the labels of --labels; name a file, or leave it out")
    if not find_store(run.folder).exists():
        return []
    with open_label_queue(run) as queue:
        return list(queue.labels())


# ---------------------------------------------------------------- for a person


def print_plan(plan: LabelPlan, status: PlanStatus, run: Path) -> None:
    """Print the plan, how far it is, and what to do next."""
    from adjudge.report.plan_document import make_plan_document

    print_document(make_plan_document(plan, status, str(run)))
    if status.pending and (plan.is_whole or not status.enough):
        note(f"adjudge label {run}, or adjudge plan {run} --out cases.csv")


def _print_table(cases: int | None, passed: float | None, expect: float, within: float | None, *, as_json: bool) -> int:
    """Print how many labels a width takes, for a run that is not there yet."""
    from adjudge.trust.labels_needed import compute_labels_needed

    total = MANY if cases is None else check_whole_number("cases", cases, least=2)
    share = check_share("passed", 0.5 if passed is None else passed)
    check_share("expect", expect)
    first = min(max(round(total * share), 1), total - 1)
    widths = sorted({*WITHINS, *(() if within is None else (within,))}, reverse=True)
    sizes, rates = (first, total - first), (expect, 1 - expect)
    rows = [compute_labels_needed(sizes, rates, within=width) for width in widths]
    if as_json:
        assumptions = {"cases": cases, "passed": share, "expect": expect}
        write_json({"schema": "adjudge/labels-needed/1", **assumptions, "rows": [row.to_dict() for row in rows]})
    else:
        from adjudge.report.plan_document import make_needed_document

        assumed = (
            f"if people agree with {100 * expect:g} % of the verdicts (--expect), the judge passes {100 * share:g} % "
            f"(--passed), and the run has {'any number of' if cases is None else f'{cases:,}'} cases (--cases)"
        )
        print_document(make_needed_document(rows, within, assumed))
    return DONE
