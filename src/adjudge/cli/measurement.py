"""A measurement in the terminal, and the options that several commands have for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adjudge.cli.output import add_row, complain, make_table, note, print_line, show_drawing
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_share

if TYPE_CHECKING:
    from adjudge.dataset.label import Label
    from adjudge.measurement.measurement import Measurement
    from adjudge.runs.folder import Run
    from adjudge.trust.intervals import IntervalMethod

_DONE, _MISSED, _UNKNOWN = 0, 1, 3

_NAME, _WHY = 60, 160

_MOST_ROWS = 20


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
    if target not in ("run", "system"):
        raise UsageError(f"--target is run (these cases) or system (all that it produces); got {target!r}")
    if labels_are not in (None, "random"):
        raise UsageError(
            f"--labels-are says that the labels are a random sample of the run: random; got {labels_are!r}"
        )


def read_limits(name: str | None) -> IntervalMethod | None:
    """The limits of a share that ``--limits`` names; raises ``UsageError`` where there are none of that name."""
    if name in (None, "wilson", "jeffreys", "exact"):
        return name
    raise UsageError(f"--limits are wilson, jeffreys or exact; got {name!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureRequest:
    """What a command was asked to measure a run with."""

    labels: tuple[Label, ...] | None
    """``None``: those of the run's own queue."""
    labels_are: str | None = None
    target: str = "run"
    measured_on: Path | None = None
    fail_under: float | None = None
    criterion: str | None = None
    limits: IntervalMethod | None = None
    by: str = "report"
    """The command that looks."""

    def __post_init__(self) -> None:
        check_target(self.target, self.labels_are)
        if self.fail_under is not None:
            check_share("--fail-under-corrected", self.fail_under)

    @property
    def asked(self) -> bool:
        """Whether somebody asked for it, so that what keeps it from being measured is an error."""
        given = (self.labels, self.labels_are, self.measured_on, self.fail_under, self.limits)
        return any(value is not None for value in given) or self.target != "run"

    def check_extra(self) -> None:
        """Raise ``UsageError`` where it was asked for and what computes it is absent, before a judge is asked."""
        from adjudge.trust.extra import check_extra

        if self.asked:
            check_extra()

    def measure(self, run: Run) -> Measurement | None:
        """The measurement of a run; ``None`` where nobody asked for it and nobody labelled the run."""
        from adjudge.labels.source import STORE_FILE

        if not self.asked and not (run.folder / STORE_FILE).is_file():
            return None
        if not self.asked and find_missing():
            note("the run is labelled; to measure its judge: pip install 'adjudge[trust]'")
            return None
        from adjudge.measurement.measure import make_measurement

        try:
            found = make_measurement(
                run,
                labels=self.labels,
                criterion=self.criterion,
                labels_are_random=self.labels_are == "random",
                target="system" if self.target == "system" else "run",
                measured_on=self.measured_on,
                limits=self.limits,
            )
        except UsageError as error:
            if self.asked:
                raise
            # Nobody asked: a file that is damaged must not keep them from what the run itself says.
            complain(f"what people said of this run is left out: {error}")
            return None
        # A queue that was opened and left says nothing.
        return found if self.asked or found.labelled else None

    def find_status(self, found: Measurement | None, run: Run) -> int:
        """The exit status of ``--fail-under-corrected`` for a run, with its reason said.

        The look is recorded in the run's folder, because later ones may need the limits for every look.
        """
        from adjudge.measurement.decision import compare_rate, record_look

        if found is None:
            return _DONE
        decision = None if self.fail_under is None else compare_rate(found, self.fail_under, status=run.status)
        record_look(run, found, by=self.by, decision=decision)
        if decision is None:
            return _DONE
        asks = f"--fail-under-corrected asks for {100 * decision.bar:g} %"
        if decision.outcome == "passed":
            note(f"{asks}: {decision.reason}")
            return _DONE
        complain(f"{asks}, and {decision.reason}")
        return _MISSED if decision.outcome == "failed" else _UNKNOWN


def make_request(labels: Sequence[str | Path] | None, **asked: Any) -> MeasureRequest:
    """What a command was asked for, with the labels of these files; raises ``UsageError`` before a judge is asked."""
    request = MeasureRequest(labels=read_labels(labels), **asked)
    request.check_extra()
    return request


def find_missing() -> bool:
    """Whether the extra ``trust`` is not installed."""
    from adjudge.trust.extra import check_extra

    try:
        check_extra()
    except UsageError:
        return True
    return False


def print_labels(found: Measurement | None) -> None:
    """Which labels do not count, or are no random sample: the first line of what is printed."""
    from adjudge.report.measurement_words import describe_labels

    if found is not None and (words := describe_labels(found)):
        _print(words)


def print_short(found: Measurement | None) -> None:
    """What people would say, in a few lines, beside the judge's own figures."""
    from adjudge.report.measurement_words import describe_figures, list_rate_facts

    if found is None:
        return
    for warning in found.warnings:
        _print(warning)
    _print(describe_figures(found))
    for name, said in list_rate_facts(found):
        _print(f"{name}: {said}")
    print_assumptions(found)


def print_measurement(found: Measurement, top: int) -> None:
    """Everything that a measurement has to say, and the first ``top`` disagreements."""
    from adjudge.report.measurement_words import (
        describe_figures,
        list_biases,
        list_gaps,
        list_rate_facts,
        list_remarks,
    )

    print_labels(found)
    about = f", on {found.criterion}" if found.criterion is not None else ""
    _print(f"{found.data or 'A run'} judged by {found.judge or 'a judge'}{about}, compared with people")
    for warning in found.warnings:
        _print(warning)
    print_line()
    _print(describe_figures(found))
    print_line()
    _show_confusion(found)
    _show_statistics(found)
    for name, said in list_rate_facts(found):
        _print(f"{name}: {said}")
    print_assumptions(found)
    for said in (*list_remarks(found), *list_biases(found)):
        _print(said)
    _show_slices(found)
    _show_criteria(found.criteria)
    _show_disagreements(found, top)
    for name, why in list_gaps(found):
        note(f"{name} is left out: {why}")


def print_assumptions(found: Measurement) -> None:
    """How the labels were chosen, and what the corrected rate rests on."""
    from adjudge.report.measurement_words import list_assumptions

    for said in list_assumptions(found):
        _print(f"  {said}")


def _print(text: str) -> None:
    indent = text[: len(text) - len(text.lstrip())]
    print_line(indent + " ".join(text.split()))


def _show_confusion(found: Measurement) -> None:
    from adjudge.report.measurement_words import list_confusion

    columns, rows = list_confusion(found)
    if rows:
        _show_table(columns, rows)


def _show_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    table = make_table("", tuple(columns))
    for row in rows:
        add_row(table, *row)
    show_drawing(table)


def _show_statistics(found: Measurement) -> None:
    from adjudge.report.measurement_words import (
        format_estimate,
        list_baselines,
        list_coefficients,
        list_people,
        list_shares,
    )

    rows = [(name, format_estimate(item, share=True)) for name, item in list_shares(found)]
    rows += list_baselines(found)
    rows += [(name, format_estimate(item, share=False)) for name, item in list_coefficients(found)]
    rows += [(name, format_estimate(item, share=share)) for name, item, share in list_people(found)]
    if rows:
        _show_table(("", "with 95 % interval"), rows)


def _show_slices(found: Measurement) -> None:
    from adjudge.report.cases import cut
    from adjudge.report.measurement_words import format_estimate

    if found.slices is None:
        return
    rows = [
        (cut(item.name, _NAME), f"{item.accuracy.of:,}", format_estimate(item.accuracy, share=True),
         "worse" if item.is_worse else "")
        for item in found.slices.slices[:_MOST_ROWS]
    ]  # fmt: skip
    _show_table(("kind", "labelled", "right", ""), rows)


def _show_criteria(criteria: Sequence[Measurement]) -> None:
    from adjudge.report.cases import cut
    from adjudge.report.measurement_words import format_estimate

    rows = []
    for item in criteria[:_MOST_ROWS]:
        agreement = item.agreement
        shares = (agreement.sensitivity, agreement.specificity, agreement.accuracy) if agreement else (None,) * 3
        kappa = format_estimate(agreement.cohen_kappa if agreement else None, share=False)
        rows.append((cut(item.criterion or "", _NAME), f"{item.settled:,}",
                     *(format_estimate(share, share=True) for share in shares), kappa))  # fmt: skip
    if rows:
        _show_table(("criterion", "labelled", "good kept", "bad caught", "right", "kappa"), rows)


def _show_disagreements(found: Measurement, top: int) -> None:
    from adjudge.report.cases import cut
    from adjudge.report.measurement_words import TO_DO, describe_sorts, format_side, take

    print_line()
    _print(describe_sorts(found))
    for sort, number in found.sorts.items():
        if number:
            _print(f"  {sort}: {TO_DO[sort]}")
    shown = take(found.disagreements, top)
    rows = [
        (cut(item.case, _NAME), item.sort, item.verdict, format_side(item.truth),
         cut(" ".join((item.content or item.why).split()), _WHY))
        for item in shown
    ]  # fmt: skip
    if rows:
        _show_table(("case", "sort", "judge", "people", "content"), rows)
    if found.differing > len(shown):
        note(f"{len(shown):,} of {found.differing:,}; --top shows more, --html FILE those to read")
