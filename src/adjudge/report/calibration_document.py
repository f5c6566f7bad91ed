"""A calibrated threshold as a document: what the judge may decide alone, the figures, and the last tests."""

from __future__ import annotations

from adjudge.formats.numbers import format_rate
from adjudge.measurement.calibration import Calibration
from adjudge.measurement.cascade_calibration import CascadeCalibration
from adjudge.report.calibration_words import (
    describe_calibration,
    describe_cascade,
    format_threshold,
    list_calibration_facts,
    list_calibration_warnings,
    list_cascade_facts,
)
from adjudge.report.document import Block, Cell, Column, Document, Facts, Notice, Paragraph, Table, Words

_LISTED = 5
"""The number of tests that are shown, from the last one back: there the thresholds end that keep the promise."""


def make_calibration_document(calibration: Calibration, name: str) -> Document:
    """Make the document of a calibration; ``name`` is that of the run."""
    blocks: list[Block] = [
        Paragraph(text=describe_calibration(calibration, name)),
        *(Notice(text=text) for text in list_calibration_warnings(calibration)),
        Facts(pairs=list(list_calibration_facts(calibration))),
    ]
    if calibration.tests:
        blocks.append(_make_test_table(calibration))
    return Document(
        name=(
            f"{calibration.risk}<={calibration.bound:g} of ",
            Words(text=calibration.judge),
            " on ",
            Words(text=name),
        ),
        headline=_HEADLINES[calibration.outcome],
        blocks=blocks,
    )


def make_cascade_document(calibration: CascadeCalibration, cheap_name: str, strong_name: str) -> Document:
    """Make the document of a calibrated cascade, from the names of the runs of the cheap and of the strong judge."""
    blocks: list[Block] = [
        Paragraph(text=describe_cascade(calibration, cheap_name, strong_name)),
        *(Notice(text=text) for text in calibration.warnings),
        Facts(pairs=list(list_cascade_facts(calibration))),
    ]
    if calibration.tests:
        blocks.append(_make_test_table(calibration))
    name = (
        f"lost<={calibration.bound:g} by ",
        Words(text=calibration.cheap),
        ", else ",
        Words(text=calibration.strong),
    )
    return Document(name=name, headline=f"cascade: {calibration.advice}", blocks=blocks)


_HEADLINES = {
    "kept": "the judge may decide some cases alone",
    "none can": "no threshold of this judge can",
    "cannot tell": "these labels cannot tell",
}


def _make_test_table(calibration: Calibration | CascadeCalibration) -> Table:
    """Make the table of the last thresholds that were tested."""
    threshold_name = "from score" if isinstance(calibration, Calibration) else "from confidence"
    number_names = ("releases", "labelled", "wrong", "p-value")
    columns = [Column(threshold_name), *(Column(name, "number") for name in number_names)]
    rows: list[list[Cell]] = [
        [
            format_threshold(test.threshold),
            format_rate(test.released / calibration.cases),
            f"{test.labels_released:,}",
            f"{test.wrong:,}",
            f"{test.p_value:.2g}",
        ]
        for test in calibration.tests[-_LISTED:]
    ]
    most_p_value = f"{1 - calibration.level:.2g}"
    caption = (
        f"The last of {len(calibration.tests):,} tests. A threshold is certified with a p-value of at most "
        f"{most_p_value}."
    )
    return Table(columns=columns, rows=rows, caption=caption)
