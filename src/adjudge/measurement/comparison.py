"""Verdicts and labels brought together, case by case: on the whole, and on each criterion that people labelled."""

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
from adjudge.measurement.judged_case import CaseTruth, CaseVerdict, find_verdict, read_stated_truth
from adjudge.measurement.label_origin import Origin, Planned
from adjudge.measurement.measurement import Measurement
from adjudge.measurement.people import PeopleLabels
from adjudge.measurement.properties import TextProperties, read_properties
from adjudge.measurement.tally import NO_TIME, MeasurementTally
from adjudge.result import JudgeResult
from adjudge.runs.folder import Run


class JudgedCase(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A case as a source has it, before it is compared. A struct, because there may be millions."""

    id: str
    place: int
    case: Case | None
    subject: str | None = None
    """SHA-256 of the content; ``None`` is unknown."""
    results: Sequence[JudgeResult | PairResult] = ()
    verdicts: Mapping[str | None, CaseVerdict] | None = None
    """The verdicts of a rater who is taken for the judge, by criterion; otherwise the results say it."""
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
        pair = isinstance(content, dict) and set(content) == {"a", "b"}
        sides = (content["a"], content["b"]) if pair else (content,)
        return tuple([read_properties(_read_text(side), self.case.metadata) for side in sides])


def list_judged_cases(run: Run) -> Iterator[JudgedCase]:
    """Yield the cases of a run in their order, each with all of its judgements."""
    for _, together in groupby(run.items(), key=lambda item: item.place):
        items = list(together)
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
    """All tallies of one source: one for the whole, and one for each criterion that people labelled."""

    def __init__(self, labels: PeopleLabels, options: MeasurementOptions) -> None:
        self._labels, self._options = labels, options
        self._has_labels = bytearray(len(labels))
        """The marks of the labelled cases that are there."""
        self._contents: ContentTally | None = ContentTally()
        self.other_contents = self.lost = 0
        """Labels that are of another content than the case of their id, and cases that have only such labels."""
        self._broken: set[LabelDesign] = set()
        names = (options.criterion, *labels.criteria)
        self.whole, *self.criteria = [
            MeasurementTally(name, most=options.most_disagreements, by=options.by) for name in names
        ]

    def add(self, judged: JudgedCase) -> None:
        """Count a case with all its judgements."""
        self._note_labels(judged.id, judged.subject)
        self._count_content(judged.subject)
        agreements = [agrees for tally in self.criteria if (agrees := self._add_criterion(judged, tally)) is not None]
        verdict = judged.find_verdict(self._options.criterion)
        if verdict is None:
            return
        truth = self._labels.find(judged.id, self._options.criterion, judged.subject)
        if truth is None and self._options.criterion is None:
            truth = judged.stated_truth
        moment = NO_TIME if truth is None or truth is judged.stated_truth else self._labels.find_moment(judged.id)
        self.whole.add(verdict, truth, judged, criteria_agree=bool(agreements) and all(agreements), moment=moment)

    def _note_labels(self, case: str, subject: str | None) -> None:
        """Note that a labelled case is there, and which of its labels are of another content."""
        number = self._labels.find_number(case)
        if number is None:
            return
        self._has_labels[number] = 1
        other, is_lost = self._labels.list_other(number, subject)
        self.other_contents += len(other)
        self.lost += is_lost
        self._broken.update(design for design in other if design is not None)

    def _list_broken(self) -> frozenset[LabelDesign]:
        """The draws that lack a case here: a label of it is of another content, or of a case that is not here.

        The rest of such a draw is no random sample: whoever names the cases chose what is missing.
        """
        away = [self._labels.list_draws(number) for number, met in enumerate(self._has_labels) if not met]
        return frozenset(self._broken.union(*away))

    def _count_content(self, subject: str | None) -> None:
        if subject is None:
            self._contents = None
        elif self._contents is not None:
            self._contents.add(subject)

    def _add_criterion(self, judged: JudgedCase, tally: MeasurementTally) -> bool | None:
        """Return whether judge and people agree on a criterion; ``None`` where one of them says nothing of it."""
        verdict, truth = (
            judged.find_verdict(tally.criterion),
            self._labels.find(judged.id, tally.criterion, judged.subject),
        )
        if verdict is None:
            return None
        tally.add(verdict, truth, judged)
        if truth is None or truth.heap not in ("good", "bad"):
            return None
        return verdict.verdict == ("passed" if truth.heap == "good" else "failed")

    def find_origin(
        self,
        *,
        planned: Planned | None = None,
        problem: str = "",
        distrusted: str | None = None,
        is_whole: bool = True,
        recorded: ContentSet | None = None,
    ) -> Origin:
        """Find what the labels may be drawn from; the arguments are those of ``finish``."""
        contents = self._contents.finish() if self._contents is not None and is_whole else None
        if recorded is not None and contents is not None and recorded != contents:
            contents, problem = None, "the run holds other contents than it recorded, so one of its files was changed"
        return Origin(
            contents=contents,
            planned=planned,
            problem=problem,
            distrusted=distrusted,
            broken=self._list_broken(),
        )

    def finish(
        self,
        *,
        judge: str,
        data: str,
        run: str | None = None,
        planned: Planned | None = None,
        problem: str = "",
        distrusted: str | None = None,
        is_whole: bool = True,
        recorded: ContentSet | None = None,
    ) -> Measurement:
        """Return the measurement, with those of the criteria in it.

        ``planned`` is the plan of the contents, ``problem`` why the one with the id ``distrusted`` is not relied on,
        ``is_whole`` whether all contents are there that will be, and ``recorded`` the contents as they were recorded
        when they were judged.
        """
        self.origin = origin = self.find_origin(
            planned=planned, problem=problem, distrusted=distrusted, is_whole=is_whole, recorded=recorded
        )
        compute = partial(
            compute_measurement,
            options=self._options,
            judge=judge,
            data=data,
            run=run,
            origin=origin,
            other_contents=self.other_contents,
            lost=self.lost,
        )
        criteria = tuple(compute(tally) for tally in self.criteria if tally.cases)
        return compute(self.whole, elsewhere=self._has_labels.count(0), criteria=criteria)


def _read_text(value: Any) -> str:
    try:
        return "" if value is None else content_text(value)
    except UsageError as error:  # a case that could not be judged for what its content is
        return f"({error})"
