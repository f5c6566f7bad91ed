"""The comparison of a judge with people, case by case: on the whole, and on each criterion that people labelled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any

import msgspec

from adjudge.content import content_text
from adjudge.dataset.case import Case
from adjudge.dataset.contents import ContentSet, ContentTally, ErasedContent, digest_content
from adjudge.dataset.label import LabelDesign
from adjudge.errors import UsageError
from adjudge.judges.pair import PairResult
from adjudge.measurement.compute import MeasurementOptions, compute_measurement
from adjudge.measurement.disagreement import ShownTexts
from adjudge.measurement.label_origin import KnownPlan, LabelOrigin
from adjudge.measurement.measurement import Measurement
from adjudge.measurement.people import PeopleLabels
from adjudge.measurement.properties import TextProperties, read_properties
from adjudge.measurement.tally import NO_TIME, MeasurementTally
from adjudge.measurement.verdict_and_truth import CaseTruth, CaseVerdict, find_verdict, read_stated_truth
from adjudge.result import JudgeResult
from adjudge.runs.folder import Run


class JudgedCase(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A case with the judge's results on it, as a run or a file has it. A struct, because there may be millions."""

    id: str
    place: int
    """The number of the case in the data set, from 0."""
    case: Case | None
    """The case itself; ``None`` where a file of verdicts has only its id."""
    subject: str | None = None
    """SHA-256 of the content; ``None`` is unknown."""
    results: Sequence[JudgeResult | PairResult] = ()
    verdicts: Mapping[str | None, CaseVerdict] | None = None
    """The verdicts of a rater who is taken for the judge, by criterion; ``None`` where ``results`` have the verdict."""
    stated_truth: CaseTruth | None = None
    """The truth that the data set states itself."""

    def find_verdict(self, criterion: str | None) -> CaseVerdict | None:
        """The verdict on a criterion or the whole; ``None`` where the rater said nothing of it."""
        return find_verdict(self.results, criterion) if self.verdicts is None else self.verdicts.get(criterion)

    @property
    def group(self) -> str | None:
        """The source of the case, where several came from one."""
        return None if self.case is None else self.case.group

    @property
    def orders(self) -> tuple[str | None, str | None] | None:
        """The better content of a pair in each order; ``None`` is undecided, or an order that was not asked."""
        if not self.results or not isinstance(self.results[0], PairResult):
            return None
        preferences = {order.order: order.preferred for order in self.results[0].orders}
        return preferences.get("ab"), preferences.get("ba")

    def find_kind(self, by: str | None) -> str | None:
        """Find the kind that the case is compared by, such as the model that answered."""
        if self.case is None or by is None:
            return None
        value = self.case.group if by == "group" else self.case.metadata.get(by)
        return None if value is None else str(value)[:200]

    def read_texts(self) -> ShownTexts:
        """The texts of the case, which are empty where it is not here."""
        if self.case is None:
            return ShownTexts("", "", "")
        first = self.results[0] if self.results else None
        reason = "" if first is None else getattr(first, "reasoning", "") or first.detail
        return ShownTexts(_read_text(self.case.content), _read_text(self.case.task), reason)

    def read_properties(self) -> tuple[TextProperties, ...]:
        """Properties of the content; of both sides of a pair; nothing where there is no content."""
        if self.case is None or isinstance(self.case.content, ErasedContent):
            return ()
        content = self.case.content
        is_pair = isinstance(content, dict) and set(content) == {"a", "b"}
        sides = (content["a"], content["b"]) if is_pair else (content,)
        return tuple([read_properties(_read_text(side), self.case.metadata) for side in sides])


def list_judged_cases(run: Run) -> Iterator[JudgedCase]:
    """Yield the cases of a run in their order, each with all of its judgements."""
    for _, items_of_case in groupby(run.items(), key=lambda item: item.place):
        items = list(items_of_case)
        case = items[0].case
        yield JudgedCase(
            id=case.id,
            place=items[0].place,
            case=case,
            subject=digest_content(case.content),
            results=tuple([item.result for item in items]),
            stated_truth=read_stated_truth(case),
        )


class Comparison:
    """Counts the cases of one run or file in tallies: one for the whole, and one for each criterion that has labels.

    Add each case, then make the measurement with ``finish``.
    """

    def __init__(self, labels: PeopleLabels, options: MeasurementOptions) -> None:
        self._labels, self._options = labels, options
        self._was_judged = bytearray(len(labels))
        """A byte for each labelled case, by its number in ``labels``: 1 once the case was added, 0 before."""
        self._contents: ContentTally | None = ContentTally()
        """The contents of the cases; ``None`` once a case came whose content is unknown."""
        self.other_contents = 0
        """Labels that are of another content than the case of their id."""
        self.stale_cases = 0
        """Labelled cases all of whose labels are of another content."""
        self._incomplete_draws: set[LabelDesign] = set()
        """Draws of which a label is of another content."""
        names = (options.criterion, *labels.criteria)
        self.whole, *self.criteria = [
            MeasurementTally(name, most=options.most_disagreements, by=options.by) for name in names
        ]

    def add(self, judged: JudgedCase) -> None:
        """Count a case with all its judgements."""
        self._check_label_contents(judged.id, judged.subject)
        self._count_content(judged.subject)
        agreements = [agrees for tally in self.criteria if (agrees := self._add_criterion(judged, tally)) is not None]
        verdict = judged.find_verdict(self._options.criterion)
        if verdict is None:
            return
        truth = self._labels.find_truth(judged.id, self._options.criterion, judged.subject)
        if truth is None and self._options.criterion is None:
            truth = judged.stated_truth
        is_from_labels = truth is not None and truth is not judged.stated_truth
        first_label_time = self._labels.find_first_label_time(judged.id) if is_from_labels else NO_TIME
        self.whole.add(
            verdict,
            truth,
            judged,
            criteria_agree=bool(agreements) and all(agreements),
            first_label_time=first_label_time,
        )

    def _check_label_contents(self, case: str, subject: str | None) -> None:
        """Mark a labelled case as judged, and count its labels that are of another content than ``subject``."""
        number = self._labels.find_number(case)
        if number is None:
            return
        self._was_judged[number] = 1
        designs, is_stale = self._labels.list_other(number, subject)
        self.other_contents += len(designs)
        self.stale_cases += is_stale
        self._incomplete_draws.update(design for design in designs if design is not None)

    def _list_incomplete_draws(self) -> frozenset[LabelDesign]:
        """List the draws that lack a case here: a label is of another content, or of a case that was not judged here.

        The remaining cases of such a draw are no random sample: whoever names the cases chose which are missing.
        """
        missing = [number for number, was_judged in enumerate(self._was_judged) if not was_judged]
        return frozenset(self._incomplete_draws.union(*[self._labels.list_draws(number) for number in missing]))

    def _count_content(self, subject: str | None) -> None:
        """Count a content by its digest; if one is unknown, the set of contents is unknown for good."""
        if subject is None:
            self._contents = None
        elif self._contents is not None:
            self._contents.add(subject)

    def _add_criterion(self, judged: JudgedCase, tally: MeasurementTally) -> bool | None:
        """Count a case in the tally of a criterion, and return whether judge and people agree on it.

        Returns ``None`` where the judge has no verdict on the criterion, or people's labels do not settle it.
        """
        verdict = judged.find_verdict(tally.criterion)
        truth = self._labels.find_truth(judged.id, tally.criterion, judged.subject)
        if verdict is None:
            return None
        tally.add(verdict, truth, judged)
        if truth is None or truth.heap not in ("good", "bad"):
            return None
        return verdict.verdict == ("passed" if truth.heap == "good" else "failed")

    def find_origin(
        self,
        *,
        known_plan: KnownPlan | None = None,
        problem: str = "",
        distrusted_plan: str | None = None,
        is_whole: bool = True,
        recorded: ContentSet | None = None,
    ) -> LabelOrigin:
        """Find the contents that the labels may be drawn from, unknown if the run is not whole or was changed.

        The arguments are those of ``finish``.
        """
        contents = self._contents.finish() if self._contents is not None and is_whole else None
        if recorded is not None and contents is not None and recorded != contents:
            contents, problem = None, "the run holds other contents than it recorded, so one of its files was changed"
        return LabelOrigin(
            contents=contents,
            known_plan=known_plan,
            problem=problem,
            distrusted_plan=distrusted_plan,
            incomplete_draws=self._list_incomplete_draws(),
        )

    def finish(
        self,
        *,
        judge: str,
        data: str,
        run: str | None = None,
        known_plan: KnownPlan | None = None,
        problem: str = "",
        distrusted_plan: str | None = None,
        is_whole: bool = True,
        recorded: ContentSet | None = None,
    ) -> Measurement:
        """Make the measurement, with those of the criteria in it.

        ``known_plan`` is the plan in the run's folder, if it drew from these contents. ``problem`` says why the plan
        with the id ``distrusted_plan`` is not relied on. ``is_whole`` is false while further cases will be judged, and
        ``recorded`` are the contents as the run recorded them when they were judged.
        """
        self.origin = origin = self.find_origin(
            known_plan=known_plan,
            problem=problem,
            distrusted_plan=distrusted_plan,
            is_whole=is_whole,
            recorded=recorded,
        )
        compute = partial(
            compute_measurement,
            options=self._options,
            judge=judge,
            data=data,
            run=run,
            origin=origin,
            other_contents=self.other_contents,
            stale_cases=self.stale_cases,
        )
        criteria = tuple(compute(tally) for tally in self.criteria if tally.cases)
        not_judged_here = self._was_judged.count(0)
        return compute(self.whole, elsewhere=not_judged_here, criteria=criteria)


def _read_text(value: Any) -> str:
    """Read a content or a task as the text that a judge reads; an error message in brackets if it has none."""
    try:
        return "" if value is None else content_text(value)
    except UsageError as error:  # a case that could not be judged for what its content is
        return f"({error})"
