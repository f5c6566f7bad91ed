"""Making the report of a run: its items are counted in one pass, whatever their number.

Outcomes and reasons are counted here, every other table in ``report_tables.py``; which cases are shown is decided in
``cases.py``.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any

from adjudge.dataset.case_labels import OTHER_CONTENTS, LabelJoin, list_labels
from adjudge.dataset.label import Label
from adjudge.errors import UsageError
from adjudge.formats.display import list_answers
from adjudge.formats.text import flatten
from adjudge.hooks import logger
from adjudge.judges.description import name_functions
from adjudge.judges.pair import PairResult
from adjudge.judges.pair_summary import PairSummary
from adjudge.measurement.measurement import Measurement
from adjudge.report.cases import MOST_CASES, CaseSelection, find_worst_outcome
from adjudge.report.report import Report, RunDescription, read_description
from adjudge.report.report_tables import (
    ByName,
    CostSummary,
    Criteria,
    GroupSummary,
    LabelSummary,
    ModelChanges,
    NumberSummary,
    OwnCases,
    RepeatSummary,
    RuleSummary,
    Seats,
    begin_outcomes,
    compute_share_passed,
    cut_name,
    make_share,
    read_preference,
)
from adjudge.report.spread import ScoreTally, TimeTally
from adjudge.result import JudgeChainResult, JudgeResult
from adjudge.runs.case_terms import Terms, read_terms
from adjudge.runs.folder import Run, open_run
from adjudge.runs.item import RunItem


def make_report(
    run: Run | str | os.PathLike[str],
    *,
    most_cases: int = MOST_CASES,
    labels: Iterable[Label] = (),
    label_name: str | None = None,
    measurement: Measurement | None = None,
) -> Report:
    """Summarise a run, and show some of its cases.

    The run is read once, and memory does not grow with it. Labels of cases that the run does not have are logged as a
    warning. Raises ``UsageError`` if ``most_cases`` is not in 0 to 2,000, if the folder has no run, if no label is a
    person's and about what ``label_name`` names, and if the run is finished and has none of the labelled cases.

    Args:
        run: The run, or its folder.
        most_cases: How many of its cases are shown at most, from 0 to 2,000.
        labels: Labels that are joined to the cases as by ``Dataset.with_labels``, so people can label cases after the
            run.
        label_name: The criterion whose labels are taken; by default those of the case as a whole.
        measurement: A measurement of the run (``make_measurement``), shown with it; ``None`` is none.
    """
    if isinstance(run, str | os.PathLike):
        with open_run(run) as opened:
            return make_report(
                opened, most_cases=most_cases, labels=labels, label_name=label_name, measurement=measurement
            )
    labels_by_case = _group_labels(list(labels), label_name)
    join = LabelJoin(labels_by_case)
    report = summarise(label_items(run.items(), join), run.manifest, status=read_status(run), most_cases=most_cases)
    if join.missing:
        _warn_of_missing_cases(join, read_status(run), are_all_missing=len(join.missing) == len(labels_by_case))
    if join.other_contents:
        logger.warning("%s: %s", OTHER_CONTENTS, f"{join.other_contents:,}")
    return report if measurement is None else replace(report, measurement=measurement)


def _group_labels(labels: Sequence[Label], criterion: str | None) -> dict[str, list[Label]]:
    """Group people's labels by case, for one criterion or (``None``) the whole case.

    Raises ``UsageError`` where labels were handed in and none of them is a person's about that.
    """
    by_case = list_labels(labels, criterion)
    if labels and not by_case:
        other_criteria = sorted(
            {repr(label.criterion) for label in labels if label.kind != "model" and label.criterion != criterion}
        )
        about = "whole cases" if criterion is None else f"the criterion {criterion!r}"
        remedy = (
            f"; label_name may be {', '.join(other_criteria[:10])}" if other_criteria else "; hand in labels of people"
        )
        raise UsageError(flatten(f"of {len(labels):,} labels none is a person's about {about}{remedy}", 500))
    return by_case


def _warn_of_missing_cases(join: LabelJoin, status: str, *, are_all_missing: bool) -> None:
    """Log a warning on labels of cases that the run does not have.

    Without it, a file of labels of another data set would look like a run that nobody labelled. Raises ``UsageError``
    if none of the labelled cases is there and the run is finished.
    """
    text = f"{join.describe_missing('run')}: {len(join.missing):,}"
    # A run that is not finished may have judged none of them yet.
    if are_all_missing and status == "finished":
        raise UsageError(f"{text}, which is every one; hand in labels whose `case` is the id of a case of this run")
    logger.warning("%s; their labels count nowhere", text)


def label_items(items: Iterable[RunItem], labels: LabelJoin) -> Iterator[RunItem]:
    """Yield the items of a run, with people's labels added to their cases."""
    for item in items:
        case = labels.join(item.case)
        yield item if case is item.case else replace(item, case=case)


def read_status(run: Run) -> str:
    """Read how a run ended; empty where its manifest does not say."""
    return run.status if isinstance(run.manifest.get("status"), str) else ""


def summarise(
    items: Iterable[RunItem], manifest: Mapping[str, Any], *, status: str = "", most_cases: int = MOST_CASES
) -> Report:
    """Summarise the items of a run in a report; the items of one case must follow each other."""
    functions = name_functions(manifest.get("judge"))
    tally = ReportTally(read_description(manifest, status=status), most_cases, read_terms(manifest), functions)
    for _, items_of_case in groupby(items, key=lambda item: item.place):
        tally.add(list(items_of_case))
    return tally.finish()


class ReportTally:
    """The counts from which a report is made: each case is added to them, then ``finish`` makes the report.

    ``terms`` are rubric and threshold of the run, and ``functions`` the names of judges in code, which cost nothing.
    """

    def __init__(
        self,
        about: RunDescription,
        most_cases: int,
        terms: Terms | None = None,
        functions: Collection[str] = (),
    ) -> None:
        self._about, self._functions = about, functions
        self._selection = CaseSelection(most_cases)
        self._cases = 0
        self._passed = 0.0
        self._text_after = 0
        self._outcomes, self._case_outcomes = begin_outcomes(), begin_outcomes()
        self._undecided_because, self._decided_by = Counter[str](), Counter[str]()
        self._thresholds: set[float | None] = set()
        """Different passing thresholds; at most two, which are enough to know that there is not a single one."""
        self._scores, self._durations, self._cost = ScoreTally(), TimeTally(), CostSummary()
        self._criteria, self._seats, self._pairs = Criteria(), Seats(), PairSummary()
        self._rules: ByName[RuleSummary] = ByName()
        self._groups: ByName[GroupSummary] = ByName()
        self._labels, self._numbers, self._repeats = LabelSummary(), NumberSummary(), RepeatSummary()
        self._models = ModelChanges()
        self._own = OwnCases(terms or Terms())

    def add(self, items: list[RunItem]) -> None:
        """Count a case with all its judgements."""
        self._cases += 1
        self._passed += compute_share_passed(items)
        self._case_outcomes[find_worst_outcome([item.result.outcome for item in items])] += 1
        self._selection.add(items)
        self._repeats.add(items)
        group_name = None if items[0].case.group is None else cut_name(items[0].case.group)
        group = self._groups.find(group_name, partial(GroupSummary, name=group_name))
        if group is not None:
            group.add(items)
        label = items[0].case.label
        if isinstance(label, bool) and not isinstance(items[0].result, PairResult):
            self._labels.add(items, label)
        # A criterion of the case's own rubric may have the name of another one in the run's, so the two are not mixed.
        has_own_rubric = self._own.add(items)
        for item in items:
            self._add_item(item)
            if not has_own_rubric:
                self._criteria.add(item.result)

    def _add_item(self, item: RunItem) -> None:
        """Count one judgement."""
        result, label = item.result, item.case.label
        self._outcomes[result.outcome] += 1
        self._decided_by[result.decided_by] += 1
        if result.undecided_because is not None:
            self._undecided_because[result.undecided_because] += 1
        self._text_after += sum(answer.text_after for answer in list_answers(result))
        self._durations.add(result.duration_ms)
        self._cost.add(result, self._functions)
        self._models.add(result)
        if isinstance(result, PairResult):  # its score is a code for the preference
            self._pairs.add(result, read_preference(label))
            return
        self._add_result(result)
        if result.score is not None and isinstance(label, int | float) and not isinstance(label, bool):
            self._numbers.add(result.score, float(label))

    def _add_result(self, result: JudgeResult) -> None:
        """Count the threshold, score, rules and seats of a judgement on a single content; comparisons have none."""
        if len(self._thresholds) < 2:
            self._thresholds.add(result.threshold)
        if result.score is not None:
            self._scores.add(result.score)
        for rule_result in result.rule_results:
            name = cut_name(rule_result.name)
            summary = self._rules.find(name, partial(RuleSummary, name=name))
            if summary is not None:
                summary.add(rule_result)
        if isinstance(result, JudgeChainResult):
            self._seats.add(result.results)

    def finish(self) -> Report:
        """Make the report of all cases that were added."""
        chain_seats = self._seats.finish()
        own_summary, rubrics = self._own.finish()
        return Report(
            about=self._about,
            cases=self._cases,
            judgements=sum(self._outcomes.values()),
            outcomes=self._outcomes,
            case_outcomes=self._case_outcomes,
            passed=make_share(self._passed, self._cases),
            undecided_because=dict(self._undecided_because.most_common()),
            text_after=self._text_after,
            decided_by=dict(self._decided_by.most_common()),
            scores=self._scores.finish(),
            threshold=next(iter(self._thresholds)) if len(self._thresholds) == 1 else None,
            criteria=self._criteria.finish(),
            rules=tuple(sorted(self._rules.list_all(), key=lambda rule: -rule.failed)),
            groups=self._finish_groups(),
            seats=chain_seats.seats,
            seat_pairs=chain_seats.pairs,
            split=chain_seats.split,
            labels=self._labels if self._labels.labelled else None,
            numbers=self._numbers if self._numbers.labelled else None,
            pairs=self._pairs if self._pairs.pairs else None,
            repeats=self._repeats if self._repeats.cases else None,
            cost=self._cost,
            durations=self._durations.finish(),
            shown=self._selection.finish(),
            model_changes=self._models.finish(),
            left_out=self._count_left_out(),
            own=own_summary,
            rubrics=rubrics,
        )

    def _finish_groups(self) -> tuple[GroupSummary, ...]:
        """Return the groups, the lowest share first; none if no case has a group."""
        groups = self._groups.list_all()
        if all(group.name is None for group in groups):
            return ()
        return tuple(sorted(groups, key=lambda group: group.passed.rate or 0.0))

    def _count_left_out(self) -> dict[str, int]:
        """Count, by table, the mentions of names for which the table had no room; complete tables are left out."""
        counts = {
            "criteria": self._criteria.others,
            "rules": self._rules.others,
            "groups": self._groups.others,
            "seats": self._seats.others,
            "models": self._models.others,
            "rubrics": self._own.others,
        }
        return {name: number for name, number in counts.items() if number}
