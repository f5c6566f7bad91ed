"""The report of a run as a document: its outcome, its figures, and the list of its cases."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from adjudge.dataset.case_ids import shorten_case_id
from adjudge.formats.numbers import format_rate, format_rates, format_score
from adjudge.measurement.measurement import Measurement
from adjudge.report.case_blocks import describe_case, list_judgements, list_texts, name_sort
from adjudge.report.cases import WORST_FIRST, ShownCase, cut
from adjudge.report.diff_document import list_diff_summary
from adjudge.report.diff_words import name_folders
from adjudge.report.document import (
    Badge,
    Block,
    CaseEntry,
    Cases,
    Cell,
    Choice,
    Column,
    Document,
    Facts,
    Fold,
    Heading,
    Lead,
    Notice,
    Panels,
    Section,
    Subtitle,
    Table,
    Text,
    Verdict,
    Words,
)
from adjudge.report.measurement_panels import list_measurement_panels, list_sort_blocks, make_lead_below
from adjudge.report.measurement_words import list_warnings
from adjudge.report.report import Report
from adjudge.report.run_diff import Diff
from adjudge.report.run_panels import list_run_panels
from adjudge.report.run_words import describe_passed, format_label, format_shown, list_model_changes, list_notices
from adjudge.templates.figures import format_count, format_interval

_LONGEST_WHY = 240
"""Characters of a reason in the short table."""


def make_run_document(
    report: Report, *, top: int = 0, needed: float | None = None, lists_passed: bool = False
) -> Document:
    """Make the document of a report: the outcome of its run, and its cases, ``top`` of them in the short table.

    ``needed`` is the share that must pass, for the headline. With ``lists_passed``, the short table also lists cases
    that passed, if it has room for them after all others.
    """
    measurement = report.measurement
    lead = make_lead_below(measurement) if measurement is not None else None
    notices = [Notice(text=text) for text in (*list_notices(report), *list_model_changes(report))]
    against = [] if report.against is None else [_show_against(report.against)]
    measured = list(_show_measurement(measurement, lead)) if measurement is not None and lead is not None else []
    verdict = _show_verdict(report)
    # Once people have labelled cases, what they would pass comes first: the judge's own rate has its errors in it.
    figures = [*_show_people(report, lead), *measured, verdict] if report.is_measured else [verdict, *measured]
    return Document(
        name=name_run(report),
        headline=_make_headline(report, lead, needed),
        doubts=list_warnings([measurement] if measurement is not None else []),
        title=report.about.dataset or "A run",
        subtitles=list(_list_subtitles(report)),
        blocks=[
            *notices,
            *against,
            *figures,
            Panels(panels=list(list_run_panels(report))),
            _show_cases(report, top, lists_passed=lists_passed),
        ],
        foot=list(_list_foot(report)),
    )


def name_run(report: Report) -> Text:
    """Name the data and the judge of a run, in one line."""
    about = report.about
    judge = Words(text=about.judge) if about.judge else "a judge"
    rubric = (", by the rubric ", Words(text=about.rubric)) if about.rubric else ()
    return Words(text=about.dataset) if about.dataset else "A run", " judged by ", judge, *rubric


def _make_headline(report: Report, lead: Lead | None, needed: float | None) -> str:
    """Make the headline: the rate at which people would pass if labels tell it, else the rate of the judge.

    ``needed`` is the share that must pass, and ``lead`` has the rate of people in its first row.
    """
    passed, needed_share = format_rates(report.passed.rate, needed)
    requirement = f"; {needed_share} needed" if needed is not None else ""
    if lead is not None and lead.rows and report.is_measured:
        people = lead.rows[0]
        return f"{people.name} {people.figure} of {format_count(report.cases, 'case')}"
    alone = "the judge alone: " if report.is_measured else ""
    return f"{alone}{passed} of {format_count(report.cases, 'case')} passed{requirement}"


def _list_subtitles(report: Report) -> Iterator[Subtitle]:
    """Yield a line on judge and rubric, and a line of facts: the run's id, its start, its models and the version."""
    about = report.about
    judge = Words(text=about.judge or "an unnamed judge", kind="strong")
    text: tuple[str | Words, ...] = ("Judged by ", judge)
    if about.rubric:
        threshold = f" (passes at {format_score(about.threshold)})" if about.threshold is not None else ""
        text += (", by the rubric ", Words(text=about.rubric, kind="strong"), threshold)
    yield Subtitle(text=text)
    begun = about.created_at.replace("T", " ")[:16] + " UTC" if about.created_at else ""
    facts = {"run": about.id, "begun": begun, "models": ", ".join(about.models), "adjudge": about.adjudge}
    yield Subtitle(text="", facts=[f"{name} {value}" for name, value in facts.items() if value])


def _list_foot(report: Report) -> Iterator[Text]:
    """Yield sentences on how to read the figures, and the command that started the run."""
    yield (
        "Undecided is not passed. Intervals are Wilson's, at 95 %. Percentiles of scores are exact to 0.001, those of "
        "durations to 1 %."
    )
    if report.about.command:
        yield "Command: ", Words(text=shlex.join(report.about.command), kind="code")


def _show_against(diff: Diff) -> Section:
    """Make the section that compares the run with an earlier one."""
    return Section(title=f"Compared with {name_folders(diff)[0]}", blocks=list(list_diff_summary(diff)))


def _show_measurement(measurement: Measurement, lead: Lead) -> Iterator[Block]:
    """Yield the lead of the judge's measurement against people, and below it, to open, the panels and the advice."""
    yield lead
    if measurement.labelled:
        panels = Panels(panels=list(list_measurement_panels(measurement)))
        yield Fold(summary="How far the judge can be trusted", blocks=[panels, *list_sort_blocks(measurement)])


def _show_people(report: Report, lead: Lead | None) -> Iterator[Block]:
    """Yield the rate at which people would pass, as the first row of the lead has it; nothing without such a row."""
    if lead is None or not lead.rows:
        return
    people = lead.rows[0]
    yield Verdict(
        label="What people would pass",
        figure=people.figure,
        text=f"of {format_count(report.cases, 'case')}: {people.name}",
        interval=people.limits,
    )


def _show_verdict(report: Report) -> Verdict:
    """Make the block of the judge's own rate.

    If people labelled cases, it has no large figure: that is the rate of people, which comes first.
    """
    several = report.judgements != report.cases
    judgements = format_count(report.judgements, "judgement")
    more = f"{judgements}; a case counts by the share of its own that passed." if several else ""
    if report.is_measured:
        return Verdict(figure="", text=describe_passed(report), more=more, outcomes=report.outcomes)
    return Verdict(
        figure=format_rate(report.passed.rate),
        text=f"of {format_count(report.cases, 'case')} passed",
        interval=format_interval(report.passed) if report.passed.interval is not None else "",
        more=more,
        outcomes=report.outcomes,
    )


def _show_cases(report: Report, top: int, *, lists_passed: bool) -> Cases:
    """Make the list of cases. Its short table has ``top`` that did not pass, and then some that passed if asked for."""
    groups = list(dict.fromkeys(case.group for case in report.shown if case.group is not None))
    group_keys = {name: f"g{number}" for number, name in enumerate(groups)}
    measurement = report.measurement
    sorts = (
        {disagreement.place: str(disagreement.sort) for disagreement in measurement.disagreements}
        if measurement
        else {}
    )
    choices, checks = _list_filters(report, group_keys, sorts)
    failures = [case for case in report.shown if case.outcome != "passed"]
    total = report.case_outcomes["failed"] + report.case_outcomes["undecided"]
    # Passed cases are listed only if the report has every failure, so that none takes the room of a failure.
    has_room = top > len(failures) == total
    includes_passed = lists_passed and has_room
    return Cases(
        title="Cases",
        about=format_shown(report),
        table=_make_case_table((report.shown if includes_passed else failures)[:top]),
        total=report.cases if includes_passed else total,
        which="cases" if includes_passed else "that did not pass",
        entries=[make_run_entry(case, group_keys, sorts) for case in report.shown],
        choices=choices,
        checks=checks,
    )


def _make_case_table(cases: Sequence[ShownCase]) -> Table:
    """Make the short table of cases; where an id is a digest, a column has the first words of each case."""
    columns = [Column("case"), Column("outcome", "word"), Column("score", "number"), Column("why")]
    # A digest tells a reader nothing about the case.
    has_digests = any(shorten_case_id(case.id) != case.id for case in cases)
    columns += [Column("about")] if has_digests else []
    rows: list[list[Cell]] = []
    for case in cases:
        worst = case.worst
        word = f"{case.outcome}: {worst.undecided_because}" if worst.undecided_because else str(case.outcome)
        reason = Words(text=cut(worst.why, _LONGEST_WHY), kind="quoted")
        name = Words(text=shorten_case_id(case.id))
        about = [describe_case(case.task, case.content)] if has_digests else []
        rows.append([name, Badge(word=word, state=case.outcome), format_score(worst.score), reason, *about])
    return Table(columns=columns, rows=rows)


def _list_filters(
    report: Report, group_keys: Mapping[str, str], sorts: Mapping[int, str]
) -> tuple[list[Choice], list[tuple[str, str]]]:
    """List the filters of a page's cases: the choices that have an option, and the switches with their key and label.

    ``group_keys`` has the key of each group, and ``sorts`` the sort of a disagreement by the case's number.
    """
    shown = report.shown
    outcomes = [name for name in WORST_FIRST if any(case.outcome == name for case in shown)]
    reasons = sorted({result.undecided_because or "" for case in shown for result in case.results} - {""})
    used_sorts = dict.fromkeys(sorts.values())
    choices = [
        Choice(name="outcome", label="outcome", options=[(name, name) for name in outcomes]),
        Choice(name="reason", label="reason", options=[(name, name) for name in reasons]),
        Choice(name="group", label="group", options=[(key, cut(name, 60)) for name, key in group_keys.items()]),
        Choice(name="sort", label="people differ", options=[(name_sort(sort), sort) for sort in used_sorts]),
    ]
    checks = []
    if any(case.split or case.flipped for case in shown):
        checks.append(("split", "judges or repeats disagree"))
    if any(case.agrees is False for case in shown):
        checks.append(("wrong", "label says otherwise"))
    return [choice for choice in choices if choice.options], checks


def make_run_entry(
    case: ShownCase, group_keys: Mapping[str, str], sorts: Mapping[int, str], *, link: str = ""
) -> CaseEntry:
    """Make the entry of a case in the list: a line that opens.

    ``group_keys`` has the key of each group for the page's filter, and ``sorts`` the sort of a disagreement between
    judge and people by the case's number. ``link`` is the address of the case's own page.
    """
    worst, sort = case.worst, sorts.get(case.place, "")
    score = format_score(worst.score) if worst.score is not None else worst.undecided_because
    reasons = dict.fromkeys(result.undecided_because or "" for result in case.results)
    return CaseEntry(
        place=case.place,
        name=case.id,
        badges=[Badge(word=case.outcome, state=case.outcome)],
        tags=list(_list_tags(case, sort)),
        figure=worst.preferred or score or "",
        why=worst.why,
        link=link,
        body=[*list_judgements(case), *list_texts(case), *_list_metadata(case)],
        keys={
            "outcome": case.outcome,
            "reason": " ".join(reasons).strip(),
            "group": group_keys.get(case.group or "", ""),
            "sort": name_sort(sort),
            "split": "1" if case.split or case.flipped else "0",
            "wrong": "1" if case.agrees is False else "0",
        },
    )


def _list_tags(case: ShownCase, sort: str) -> Iterator[Words]:
    """Yield the tags of a case: its group, its repeats, and what is unusual about it.

    ``sort`` is the sort of a disagreement between judge and people; empty where they agree.
    """
    if case.group is not None:
        yield Words(text=case.group)
    if case.judgements > 1:
        yield Words(text=f"{case.passed} of {case.judgements} passed", kind="")
    if case.split:
        yield Words(text="judges split", kind="")
    if case.own:
        yield Words(text=f"own {', '.join(case.own)}", kind="")
    if case.agrees is False:
        yield Words(text=f"label says {format_label(case.label)}", kind="alarm")
    if sort:
        yield Words(text=sort, kind="")


def _list_metadata(case: ShownCase) -> Iterator[Block]:
    """Yield the label, a rubric of the case's own, and the metadata of a case; nothing where it has none of these."""
    rubric = f"{case.rubric} {case.rubric_digest[:12]}, with its own {', '.join(case.own)}"
    facts = [("label", format_label(case.label))] if case.label is not None else []
    facts += [("judged by", rubric)] if case.own else []
    if facts or case.metadata:
        yield Heading(text="Metadata")
        yield Facts(pairs=[*facts, *case.metadata])
