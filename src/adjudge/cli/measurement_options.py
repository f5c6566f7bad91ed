"""Measuring a run's judge against labels of people, as several commands do: their options, output and exit status.

Whether a rate reaches its limit is decided in ``measurement/decision.py`` (``compare_rate``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from adjudge.cli.error_messages import format_error
from adjudge.cli.exit_status import DONE, FAILED, UNDECIDED
from adjudge.cli.options import MeasureOptions
from adjudge.cli.output import complain, note, print_blocks
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_choice, check_share

if TYPE_CHECKING:
    from adjudge.dataset.label import Label
    from adjudge.measurement.measurement import Measurement
    from adjudge.runs.folder import Run
    from adjudge.trust.intervals import IntervalMethod


def read_labels(paths: Sequence[str | Path] | None, label_map: str | None = None) -> tuple[Label, ...] | None:
    """Read the labels of several files; ``None`` where no file is named, which means the labels of the run's queue."""
    if not paths:
        return None
    from adjudge.dataset.label_file import load_labels
    from adjudge.dataset.label_map import parse_label_map

    meanings = parse_label_map(label_map) if label_map is not None else None
    return tuple(label for path in paths for label in load_labels(path, label_map=meanings))


def check_target(target: str, labels_are: str | None) -> None:
    """Raise ``UsageError`` for an unknown value of ``--target`` or ``--labels-are``."""
    check_choice("target", target, ("run", "system"))
    if labels_are is not None:
        check_choice("labels_are", labels_are, ("random",))


def read_limits(name: str | None) -> IntervalMethod | None:
    """Return the method for the limits of a share that ``--limits`` names; raises ``UsageError`` for an unknown one."""
    if name in (None, "wilson", "jeffreys", "exact"):
        return name
    check_choice("limits", name, ("wilson", "jeffreys", "exact"))  # raises
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureRequest:
    """The options with which a command measures the judge of a run."""

    labels: tuple[Label, ...] | None
    """``None`` takes the labels of the run's own queue."""
    labels_are: str | None = None
    target: str = "run"
    measured_on: Path | None = None
    fail_under: float | None = None
    criterion: str | None = None
    limits: IntervalMethod | None = None
    by: str
    """The name of the command, which the record of looks at the run's labels has."""

    def __post_init__(self) -> None:
        check_target(self.target, self.labels_are)
        if self.fail_under is not None:
            check_share("fail_under_corrected", self.fail_under)

    @property
    def is_explicit(self) -> bool:
        """Return whether the user asked for the measurement; an error in it ends the command only then."""
        options = (self.labels, self.labels_are, self.measured_on, self.fail_under, self.limits)
        return any(value is not None for value in options) or self.target != "run"

    def check_extra(self) -> None:
        """Raise ``UsageError`` if the user asked for a measurement, and the extra ``adjudge[trust]`` is not installed.

        Call this before a judge is asked, so that no run is paid for and then cannot be measured.
        """
        from adjudge.trust.extra import check_extra

        if self.is_explicit:
            check_extra()

    def measure(self, run: Run) -> Measurement | None:
        """Measure the judge of a run.

        Returns ``None`` if the user did not ask for it, and the run has no labels or cannot be measured by them.
        """
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
            # The user did not ask for the labels, so a damaged file of them must not hide the results of the run.
            complain(f"what people said of this run is left out: {format_error(error)}")
            return None
        # A queue in which nobody labelled a case yet gives no measurement.
        return measurement if self.is_explicit or measurement.labelled else None

    def report_status(self, measurement: Measurement | None, run: Run) -> int:
        """Print whether the rate reaches ``--fail-under-corrected``, and return the exit status that follows.

        That somebody looked at the measurement is recorded in the run's folder: who looks repeatedly while labels
        come in needs wider limits. Without a measurement, and without the option, the status is ``DONE``.
        """
        from adjudge.measurement.decision import compare_rate, record_look

        if measurement is None:
            return DONE
        decision = None if self.fail_under is None else compare_rate(measurement, self.fail_under, status=run.status)
        record_look(run, measurement, by=self.by, decision=decision)
        if decision is None:
            return DONE
        requirement = f"--fail-under-corrected asks for {100 * decision.bar:g} %"
        if decision.outcome == "passed":
            note(f"{requirement}: {decision.reason}")
            return DONE
        complain(f"{requirement}, and {decision.reason}")
        return FAILED if decision.outcome == "failed" else UNDECIDED


def make_request(
    options: MeasureOptions, labels: tuple[Label, ...] | None, *, by: str, criterion: str | None = None
) -> MeasureRequest:
    """Make the request of the command called ``by``; raises ``UsageError`` for options with a wrong value."""
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
    """Print the warnings about a measurement, such as labels that do not count, which come before any figure."""
    from adjudge.report.document import Paragraph
    from adjudge.report.measurement_words import list_warnings

    if measurement is not None:
        print_blocks([Paragraph(text=text) for text in list_warnings([measurement])])


def print_short(measurement: Measurement | None) -> None:
    """Print a measurement in a few lines: the rate that people would pass, and what it assumes."""
    from adjudge.report.document import Facts, Lead, Points
    from adjudge.report.measurement_words import describe_figures, list_assumptions, list_rate_facts

    if measurement is None:
        return
    print_blocks(
        [
            Lead(criterion=measurement.criterion, sentence=describe_figures(measurement)),
            Facts(pairs=list(list_rate_facts(measurement))),
            Points(items=list(list_assumptions(measurement))),
        ]
    )
