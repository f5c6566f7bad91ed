"""A measurement in the terminal, and the options that several commands have for it.

Whether a rate reaches its bar is decided in ``measurement/decision.py`` (``compare_rate``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from adjudge.cli.exit_status import DONE, FAILED, UNDECIDED
from adjudge.cli.options import MeasureOptions
from adjudge.cli.output import complain, note, print_blocks
from adjudge.cli.spelling import spell
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_choice, check_share

if TYPE_CHECKING:
    from adjudge.dataset.label import Label
    from adjudge.measurement.measurement import Measurement
    from adjudge.runs.folder import Run
    from adjudge.trust.intervals import IntervalMethod


def read_labels(paths: Sequence[str | Path] | None, label_map: str | None = None) -> tuple[Label, ...] | None:
    """The labels of several files; ``None`` where none was named, so that those of the run's queue count."""
    if not paths:
        return None
    from adjudge.dataset.label_file import load_labels
    from adjudge.dataset.label_map import parse_label_map

    words = parse_label_map(label_map) if label_map is not None else None
    return tuple(label for path in paths for label in load_labels(path, label_map=words))


def check_target(target: str, labels_are: str | None) -> None:
    """Raise ``UsageError`` unless these are a target and a way of drawing labels."""
    check_choice("target", target, ("run", "system"))
    if labels_are is not None:
        check_choice("labels_are", labels_are, ("random",))


def read_limits(name: str | None) -> IntervalMethod | None:
    """The limits of a share that ``--limits`` names; raises ``UsageError`` where there are none of that name."""
    if name in (None, "wilson", "jeffreys", "exact"):
        return name
    check_choice("limits", name, ("wilson", "jeffreys", "exact"))
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureRequest:
    """The options by which a command is to measure a run."""

    labels: tuple[Label, ...] | None
    """``None``: those of the run's own queue."""
    labels_are: str | None = None
    target: str = "run"
    measured_on: Path | None = None
    fail_under: float | None = None
    criterion: str | None = None
    limits: IntervalMethod | None = None
    by: str
    """The command that looks."""

    def __post_init__(self) -> None:
        check_target(self.target, self.labels_are)
        if self.fail_under is not None:
            check_share("fail_under_corrected", self.fail_under)

    @property
    def is_explicit(self) -> bool:
        """Return whether somebody asked for the measurement, so that what keeps it from being made is an error."""
        options = (self.labels, self.labels_are, self.measured_on, self.fail_under, self.limits)
        return any(value is not None for value in options) or self.target != "run"

    def check_extra(self) -> None:
        """Raise ``UsageError`` where it was asked for and what computes it is absent, before a judge is asked."""
        from adjudge.trust.extra import check_extra

        if self.is_explicit:
            check_extra()

    def measure(self, run: Run) -> Measurement | None:
        """The measurement of a run; ``None`` where nobody asked for it and nobody labelled the run."""
        from adjudge.labels.source import STORE_FILE

        if not self.is_explicit and not (run.folder / STORE_FILE).is_file():
            return None
        from adjudge.trust.extra import has_extra

        if not self.is_explicit and not has_extra():
            note("the run is labelled; to measure its judge: pip install 'adjudge[trust]'")
            return None
        from adjudge.measurement.measure import make_measurement

        try:
            measurement = make_measurement(
                run,
                labels=self.labels,
                criterion=self.criterion,
                labels_are_random=self.labels_are == "random",
                target="system" if self.target == "system" else "run",
                measured_on=self.measured_on,
                limits=self.limits,
            )
        except UsageError as error:
            if self.is_explicit:
                raise
            # Nobody asked: a file that is damaged must not keep them from what the run itself says.
            complain(f"what people said of this run is left out: {spell(error)}")
            return None
        # A queue that was opened and left says nothing.
        return measurement if self.is_explicit or measurement.labelled else None

    def report_status(self, measurement: Measurement | None, run: Run) -> int:
        """Record the look at a run, say how the run compares, and return the exit status of ``--fail-under-corrected``.

        The look is recorded in the run's folder, because later ones may need the limits for every look.
        """
        from adjudge.measurement.decision import compare_rate, record_look

        if measurement is None:
            return DONE
        decision = None if self.fail_under is None else compare_rate(measurement, self.fail_under, status=run.status)
        record_look(run, measurement, by=self.by, decision=decision)
        if decision is None:
            return DONE
        asks = f"--fail-under-corrected asks for {100 * decision.bar:g} %"
        if decision.outcome == "passed":
            note(f"{asks}: {decision.reason}")
            return DONE
        complain(f"{asks}, and {decision.reason}")
        return FAILED if decision.outcome == "failed" else UNDECIDED


def make_request(
    options: MeasureOptions, labels: tuple[Label, ...] | None, *, by: str, criterion: str | None = None
) -> MeasureRequest:
    """Make the request of a command; raises ``UsageError`` for options that cannot be."""
    return MeasureRequest(
        labels=labels,
        labels_are=options.labels_are,
        target=options.target,
        limits=read_limits(options.limits),
        measured_on=options.measured_on,
        fail_under=options.fail_under_corrected,
        criterion=criterion,
        by=by,
    )


def print_labels(measurement: Measurement | None) -> None:
    """Print what a reader must know before any figure, such as which labels do not count: the first lines."""
    from adjudge.report.document import Paragraph
    from adjudge.report.measurement_words import list_warnings

    if measurement is not None:
        print_blocks([Paragraph(text=text) for text in list_warnings([measurement])])


def print_short(measurement: Measurement | None) -> None:
    """Print what people would say, in a few lines, beside the judge's own figures."""
    from adjudge.report.document import Facts, Lead, Points
    from adjudge.report.measurement_words import describe_figures, list_assumptions, list_rate_facts

    if measurement is None:
        return
    figures = describe_figures(measurement)
    print_blocks(
        [
            Lead(criterion=measurement.criterion, sentence=figures),
            Facts(pairs=list(list_rate_facts(measurement))),
            Points(items=list(list_assumptions(measurement))),
        ]
    )
