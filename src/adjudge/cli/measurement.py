"""A measurement in the terminal, and the options that several commands have for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from adjudge.cli.output import add_row, make_table, note, print_line, show_drawing
from adjudge.errors import UsageError

if TYPE_CHECKING:
    from adjudge.dataset.label import Label
    from adjudge.measurement.measurement import Measurement

_NAME, _WHY = 60, 160

_MOST_ROWS = 20


def read_labels(paths: Sequence[Path] | None) -> tuple[Label, ...] | None:
    """The labels of several files; ``None`` where none was named, so that those of the run's queue count."""
    if not paths:
        return None
    from adjudge.dataset.label import load_labels

    return tuple(label for path in paths for label in load_labels(path))


def check_target(target: str, labels_are: str | None) -> None:
    """Raise ``UsageError`` unless these are a target and a way of drawing labels."""
    if target not in ("run", "system"):
        raise UsageError(f"--target is run (these cases) or system (all that it produces); got {target!r}")
    if labels_are not in (None, "random"):
        raise UsageError(
            f"--labels-are says that the labels are a random sample of the run: random; got {labels_are!r}"
        )


def print_measurement(found: Measurement, top: int) -> None:
    """Everything that a measurement has to say, and the first ``top`` disagreements."""
    from adjudge.report.measurement_words import (
        describe_measurement,
        list_biases,
        list_gaps,
        list_rate_facts,
        list_remarks,
    )

    about = f", on {found.criterion}" if found.criterion is not None else ""
    _print(f"{found.data or 'A run'} judged by {found.judge or 'a judge'}{about}, beside people")
    print_line()
    _print(describe_measurement(found))
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
