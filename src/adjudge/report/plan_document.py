"""A plan of which cases people label, and a table of how many labels an interval takes, as documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from adjudge.dataset.case_ids import shorten_case_id
from adjudge.formats.numbers import format_decimal, format_points, format_range
from adjudge.formats.text import flatten
from adjudge.labels.plan import MIXED, LabelPlan, PlanStatus, read_verdict
from adjudge.report.document import Block, Cell, Column, Document, Notice, Paragraph, Table, Words
from adjudge.templates.figures import format_count
from adjudge.trust.labels_needed import LabelsNeeded


def make_plan_document(plan: LabelPlan, status: PlanStatus, run: str) -> Document:
    """Make the document of a plan: how many labels there are, what they show so far, and what to label next.

    ``run`` is the folder of the run, as commands in the text name it.
    """
    labelled = sum(status.labelled)
    cases = format_count(sum(plan.sizes), "pair" if plan.pairs else "case")
    notices = [Notice(text=text) for text in _list_notices(plan, status)]
    if any(read_verdict(stratum) == MIXED for stratum in plan.strata):
        text = f"{MIXED}: passed and failed cases, too few of one of them for a stratum of their own"
        notices.append(Notice(text=text))
    if plan.is_whole:
        sentences = list(_list_difference_steps(plan, status, run))
    else:
        first_sentences = [_describe_rate(status)] if labelled else _list_needed(plan)
        sentences = [*first_sentences, *_list_next_steps(plan, status, run)]
    blocks: list[Block] = [*notices, _make_stratum_table(plan, status), *(Paragraph(text=text) for text in sentences)]
    return Document(
        name=f"plan {plan.id} of {cases}, within {plan.within * 100:g} points, seed {plan.seed}",
        headline=f"{format_count(labelled, 'label')} of {cases}",
        doubts=list(_list_doubts(status)),
        blocks=blocks,
    )


def make_needed_document(rows: Sequence[LabelsNeeded], within: float | None, assumed: str) -> Document:
    """Make the document of how many labels an interval of each width takes; the row of the width ``within`` is marked.

    ``assumed`` is a sentence on what the numbers assume.
    """
    columns = [Column("within"), *(Column(name, "number") for name in _LABELLING_METHODS)]
    cells: list[list[Cell]] = [
        [
            f"{row.within * 100:g} points{' <' if row.within == within else ''}",
            *(f"{number:,}" for number in (row.planned, row.random, row.alone, row.live)),
        ]
        for row in rows
    ]
    return Document(
        name="About how many labels it takes; real intervals differ, and `adjudge plan RUN` goes by the labels",
        headline="How many labels it takes",
        blocks=[
            Table(columns=columns, rows=cells),
            Paragraph(text=assumed + ("" if within is None else "; < is the width that you asked for")),
        ],
    )


_LABELLING_METHODS = ("planned", "at random", "without a judge", "stop at any time")


def _list_notices(plan: LabelPlan, status: PlanStatus) -> Iterator[str]:
    """Yield sentences that have to be read before the figures: on groups, on other labels, and on their order."""
    if plan.ignored_groups:
        yield (
            f"groups ignored (--ignore-groups): {plan.ignored_groups:,} groups have several cases; this is about the "
            "rate of this run alone, and too narrow for other groups"
        )
    if status.elsewhere:
        yield _describe_elsewhere(status)
    if sum(status.labelled) and not plan.is_whole and not status.live.in_random_order:
        yield "these labels contradict a random order; were cases chosen by hand? The interval is as wide as it can be"


def _list_doubts(status: PlanStatus) -> Iterator[str]:
    """Yield sentences on labels that do not count because of the content that was read."""
    if status.other_contents:
        number = status.other_contents
        verb, whose = ("is", "its id") if number == 1 else ("are", "their ids")
        yield f"{format_count(number, 'label')} {verb} not counted: of another content than the case of {whose}"
    if status.unbound:
        verb = "has" if status.unbound == 1 else "have"
        yield (
            f"{format_count(status.unbound, 'drawn case')} {verb} labels that do not say which content was read, so "
            "label them again (adjudge label)"
        )


def _describe_elsewhere(status: PlanStatus) -> str:
    """Describe the labelled cases that the plan did not draw, and why they are not in the rate."""
    is_one = status.elsewhere == 1
    cases = "1 labelled case is" if is_one else f"{status.elsewhere:,} labelled cases are"
    them, they_were = ("it", "it was") if is_one else ("them", "they were")
    reason = f"the plan did not draw {them}, so nobody knows how likely {they_were} to be labelled"
    before = f" ({status.before:,} labelled before the plan was drawn)" if status.before else ""
    return f"{cases} left out of the rate: {reason}{before}"


def _make_stratum_table(plan: LabelPlan, status: PlanStatus) -> Table:
    """Make the table of the plan's strata: their cases, how many were drawn and labelled, and how many are good."""
    columns = [Column("stratum"), *(Column(name, "number") for name in ("cases", "drawn", "labelled"))]
    # A plan for a difference shows no result before every planned label is there, so no number of good cases either.
    columns += [] if plan.is_whole else [Column("good", "number")]
    rows: list[list[Cell]] = []
    for index, stratum in enumerate(plan.strata):
        counts = [stratum.size, plan.drawn[index], status.labelled[index]]
        counts += [] if plan.is_whole else [status.good[index]]
        rows.append([Words(text=stratum.about or stratum.name), *(f"{count:,}" for count in counts)])
    return Table(columns=columns, rows=rows)


def _list_needed(plan: LabelPlan) -> Iterator[str]:
    """Yield how many labels it takes: by the plan, with a look after every label, and without a judge."""
    needed = plan.needed
    labels = format_count(needed.planned, "label")
    if needed.planned >= sum(stratum.size for stratum in plan.strata):
        yield f"{labels}: every case of this run; for an interval from fewer, label in random order without a plan"
        return
    yield f"about {labels}, if people agree with the judge as expected; the pilot will tell"
    yield f"about {needed.live:,} if you look after every label and stop when it is enough"
    yield f"about {needed.alone:,} without a judge"


def _list_difference_steps(plan: LabelPlan, status: PlanStatus, run: str) -> Iterator[str]:
    """Yield what to do next for a plan that estimates a difference, of two runs or of the contents of pairs.

    Such a plan shows nothing before all of its cases are labelled.
    """
    unit, planned = "pair" if plan.pairs else "case", len(plan.order)
    if plan.pairs:
        yield (
            f"{format_count(planned, 'label')} for how much more often people prefer one side, if they agree with the "
            "judge as expected"
        )
    if status.pending:
        yield f"label {format_count(len(status.pending), unit)} ({_name_first(status)})"
    elif plan.pairs:
        yield f"the {planned:,} planned labels are in: `adjudge agree {run}` says which side people prefer more often"
    else:
        yield f"the {planned:,} planned cases of this run are labelled; `adjudge diff` compares it with the other one"


def _describe_rate(status: PlanStatus) -> str:
    """Describe the share of good cases by the labels so far, with the limits that hold at every look."""
    rate = status.live
    good, low, high = [f"{format_points(share)}%" for share in (rate.value, rate.low, rate.high)]
    return f"{good} good, between {low} and {high} (95 % at every moment: {rate.method})"


def _list_next_steps(plan: LabelPlan, status: PlanStatus, run: str) -> Iterator[str]:
    """Yield what to do next: stop, look at the rate once, or label further cases."""
    if status.enough:
        yield f"enough: within {plan.within * 100:g} points, whenever you stopped"
        if status.left:
            verb = "is" if status.left == 1 else "are"
            missing = f"{format_count(status.left, 'planned label')} {verb} missing"
            yield f"{missing} for `adjudge agree {run}` and for a gate on the rate (--fail-under-corrected)"
        return
    yield from _describe_planned_interval(status, run)
    more = "" if status.more is None else f"; about {status.more:,} more until you can stop at any time"
    if status.pending:
        yield f"label {format_count(len(status.pending), 'case')} next ({_name_first(status)}){more}"
    else:
        yield f"every drawn case is labelled{more}"


def _name_first(status: PlanStatus) -> str:
    """Name the first three cases that are still to be labelled, with dots if there are more."""
    first = flatten(", ".join(shorten_case_id(case.case) for case in status.pending[:3]), 120)
    return f"{first}, ..." if len(status.pending) > 3 else first


def _describe_planned_interval(status: PlanStatus, run: str) -> Iterator[str]:
    """Yield a sentence with the interval for one look, once the planned labels are there; nothing before."""
    if status.once is None or status.planned is None:
        return
    half_width = (100 * status.once.high - 100 * status.once.low) / 2
    more = "" if status.more is None else f"; to go on looking after every label, about {status.more:,} more"
    yield (
        f"the {status.planned:,} planned labels are in: `adjudge agree {run}` gives the interval for one look, "
        f"{format_range(status.once.low, status.once.high)} (±{format_decimal(half_width, 1)} points){more}"
    )
