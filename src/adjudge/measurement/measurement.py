"""A measurement: how far a judge can be trusted, from its verdicts and what people said of the same cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, ClassVar, Literal

from adjudge.dataset.contents import ContentSet
from adjudge.formats.numbers import format_points
from adjudge.formats.record import Layout, write_record
from adjudge.labels.truth import LabelledVerdict, TruthHeap
from adjudge.measurement.disagreement import Disagreement, DisagreementSort
from adjudge.measurement.gate_limit import LabelDraw, PlanProgress, RateLimit
from adjudge.measurement.preference_difference import PreferenceDifference
from adjudge.measurement.sampled_rate import Sampling
from adjudge.trust.agreement import Agreement
from adjudge.trust.alternative import AlternativeTest
from adjudge.trust.bias import Bias
from adjudge.trust.ceiling import Ceiling
from adjudge.trust.corrected_rate import CorrectedRate, Refusal
from adjudge.trust.correlation import Correlation
from adjudge.trust.intervals import Share
from adjudge.trust.repeatability import ErrorParts, OrderFlips
from adjudge.trust.slices import Slices

MeasurementKind = Literal["verdict", "preference", "number"]
"""The kinds of comparison: passed or failed with good or bad, the better of two contents, or scores with numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """A judge compared with people. What the labels do not allow is ``None``, and ``left_out`` says why."""

    schema: ClassVar[str] = "adjudge/measurement/1"
    _layout: ClassVar[Layout] = Layout(
        members=(
            "warnings",
            "judge",
            "data",
            "run",
            "criterion",
            "kind",
            "cases",
            "labelled",
            "overrides",
            "elsewhere",
            "sampling",
            "not_blind",
            "copies",
            "is_weighted",
            "other_contents",
            "other_draws",
            "unbound",
            "draw_problem",
            "verdicts",
            "table",
            "contents",
            "people",
            "sorts",
            "left_out",
            "measured_on",
            "refused",
            "agreement",
            "ceiling",
            "correlation",
            "slices",
            "flipped",
            "error_parts",
            "order_flips",
            "alternative",
            "bias",
            "rate",
            "preference",
            "limit",
            "plan",
            "disagreements",
            "criteria",
            "notes",
        ),
        omitted=("preference",),
        computed={"refused": lambda measurement: isinstance(measurement.rate, Refusal)},
    )

    judge: str
    """The judge's name."""
    data: str
    """The name of the data set or the file."""
    run: str | None
    """The id of the run, if it is one."""
    criterion: str | None
    """The criterion that was compared; ``None`` is the case as a whole."""
    kind: MeasurementKind
    """The kind of value that is compared: a ``verdict``, a ``preference`` or a ``number``."""
    cases: int
    """Judged cases, labelled or not."""
    verdicts: Mapping[LabelledVerdict, int]
    """Judged cases by verdict. One that was judged repeatedly has the verdict of more than half of its judgements."""
    table: Mapping[LabelledVerdict, Mapping[TruthHeap, int]]
    """Labelled cases by verdict and truth; undecided verdicts, ``cannot_tell`` and unresolved cases are heaps of their
    own."""
    labelled: int
    """Cases in the table."""
    overrides: int
    """Cases that only have labels of people who overruled a gate; they are in no figure."""
    elsewhere: int
    """Labelled cases that were not judged here."""
    people: tuple[str, ...]
    """The raters, by the names they labelled under."""
    agreement: Agreement | None
    """Confusion table, sensitivity, specificity and so on, over the cases whose truth is settled."""
    ceiling: Ceiling | None
    """The agreement of people with each other: the most that agreement with them can mean."""
    correlation: Correlation | None
    """Scores beside labels that are numbers."""
    slices: Slices | None
    """Agreement by kind of case, the worst first."""
    flipped: Share | None
    """Cases that were judged repeatedly and whose judgements differ; ``None`` where none was."""
    error_parts: ErrorParts | None
    """The part of the judge's error that is noise between its judgements of one case."""
    order_flips: OrderFlips | None
    """The flips of comparisons: what happens when the two contents swap places."""
    alternative: AlternativeTest | None
    """The alternative annotator test, if it was asked for."""
    bias: Bias | None
    """The dependence of the judge's error on length, format, language and, for comparisons, position."""
    rate: CorrectedRate | Refusal | None
    """The rate at which people would pass, or why it is not given; for comparisons, prefer the first."""
    sampling: Sampling
    """The way in which the labelled cases were chosen."""
    sorts: Mapping[DisagreementSort, int]
    """Disagreements by what to do about them."""
    disagreements: tuple[Disagreement, ...] = field(repr=False)
    """The worst of each sort, ``judge wrong`` first."""
    criteria: tuple[Measurement, ...] = ()
    """The same for each criterion that people labelled."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """The reasons why parts are ``None``, by their names."""
    notes: tuple[str, ...] = ()
    """Further things that a reader should know, a sentence each."""
    measured_on: ErrorsElsewhere | None = None
    """The errors on another run of the same judge, if they were asked for."""
    contents: ContentSet | None = None
    """The contents that were judged; ``None`` is unknown, as of a run that is not finished."""
    other_contents: int = 0
    """Labels that are not counted, because they are of another content than the case of their id."""
    other_draws: int = 0
    """Labelled cases that were drawn from other contents than these, or by a draw that lacks cases here: they count,
    and not as a random sample."""
    unbound: int = 0
    """Labelled cases of which no label says which content was read: they count, and never as drawn at random."""
    draw_problem: str = ""
    """The reason why the plan in the run's folder is not relied on; empty where it is, and where there is none."""
    not_blind: int = 0
    """Labelled cases of which a label is not known to be blind: the rater may have seen the judge's verdict."""
    copies: int = 0
    """Labelled cases whose content and task another labelled case has as well; the first of each is not counted."""
    preference: PreferenceDifference | None = None
    """The difference of the rates at which people would prefer the second and the first content; ``None`` but for
    labelled pairs."""
    limit: RateLimit | None = None
    """The limits of the corrected rate that a gate goes by; ``left_out`` says why there are none."""
    plan: PlanProgress | None = None
    """The progress of the labels of the run's plan, if it has one."""
    draw: LabelDraw | None = field(default=None, repr=False)
    """The sample of labels this is, for the record of looks."""
    is_weighted: bool = False
    """True if labels stand for different numbers of cases, and the shares are weighed accordingly; the table is not."""

    @property
    def settled(self) -> int:
        """Labelled cases whose truth people settled."""
        return sum(number for row in self.table.values() for heap, number in row.items() if heap not in OPEN)

    @property
    def is_counted(self) -> bool:
        """Return whether people settled every case that the rate is of: then it is a count, and not estimated."""
        rate = self.rate
        exact = isinstance(rate, CorrectedRate) and rate.target == "run" and not rate.unresolved
        return exact and self.sampling == "census"

    @property
    def differing(self) -> int:
        """Cases on which judge and people differ, or that people could not settle."""
        return sum(self.sorts.values())

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings before any figure: an unfinished plan, labels that were not blind, copies."""
        return tuple(_list_warnings(self))

    def count(self, verdict: LabelledVerdict, heap: TruthHeap) -> int:
        """Labelled cases with this verdict and this truth.

        Args:
            verdict: The judge's verdict.
            heap: What people made of the cases, such as ``good``.
        """
        return self.table.get(verdict, {}).get(heap, 0)

    def _repr_html_(self) -> str:
        from adjudge.formats.notebook import render_fragment

        accuracy = self.agreement.accuracy if self.agreement is not None else None
        facts = {
            "labelled": f"{self.labelled:,} of {self.cases:,} cases",
            "people": ", ".join(self.people),
            "right (accuracy)": f"{format_points(accuracy.value)} %"
            if accuracy is not None and accuracy.value is not None
            else None,
            "differing": self.differing,
        }
        heaps = list(dict.fromkeys(heap for row in self.table.values() for heap in row))
        rows = [(verdict, *[row.get(heap, 0) for heap in heaps]) for verdict, row in self.table.items()]
        columns = ("judge", *heaps)
        notes = (*self.warnings, *self.notes)
        return render_fragment(f"{self.judge} and people", facts=facts, columns=columns, rows=rows, notes=notes)

    def to_dict(self) -> dict[str, Any]:
        """The measurement as plain data, whose schema is ``adjudge/measurement/1``."""
        return write_record(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorsElsewhere:
    """The counts of another run of the same judge. How often it errs here does not follow from it."""

    _layout: ClassVar[Layout] = Layout(
        members=("name", "run", "kind", "labelled", "table"),
        computed={name: attrgetter(f"measurement.{name}") for name in ("run", "kind", "labelled", "table")},
    )

    name: str
    """The name of the other run's folder."""
    measurement: Measurement = field(repr=False)
    """The judge compared with people there."""

    def to_dict(self) -> dict[str, Any]:
        """The counts as plain data, without any rate."""
        return write_record(self)


def _list_warnings(measurement: Measurement) -> Iterator[str]:
    """Yield sentences on what makes the figures look better, or narrower, than they are."""
    plan = measurement.plan
    if plan is not None and plan.left and measurement.sampling != "census":
        yield f"The plan is not finished: {plan.describe_left()}. Until then the interval below may not be relied on."
    elif plan is not None and plan.beyond:
        yield (
            f"{plan.beyond:,} label{' was' if plan.beyond == 1 else 's were'} added beyond the {plan.planned:,} "
            "planned ones, so the interval for one look holds no longer; the limits for every look do."
        )
    if measurement.not_blind:
        yield (
            f"Labels of {measurement.not_blind:,} of {measurement.labelled:,} cases are not known to be blind: who saw "
            "the judge's verdict first tends to agree with it, and the judge then looks better than it is."
        )
    if measurement.copies:
        yield (
            f"{measurement.copies:,} of {measurement.labelled:,} labelled cases repeat the content of another one: "
            "intervals of the judge's errors take them for independent, and are too narrow."
        )


OPEN: tuple[TruthHeap, ...] = ("cannot_tell", "unresolved")
"""The heaps of cases whose truth is open."""
