"""``adjudge dataset``: check a data set, and write it in another format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from adjudge.cli import options as option
from adjudge.cli.command_groups import make_group
from adjudge.cli.error_messages import format_error
from adjudge.cli.exit_status import DONE, FAILED
from adjudge.cli.input import ANNOTATION_TOOLS, open_from_options
from adjudge.cli.judging import make_case_criteria
from adjudge.cli.option_sets import Only, Without
from adjudge.cli.output import (
    add_row,
    make_table,
    note,
    print_line,
    show_drawing,
    show_progress,
    write_json,
    write_lines,
)
from adjudge.config.file import Config, read_config
from adjudge.dataset.case_criteria import CaseCriteria
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_choice
from adjudge.formats.text import flatten

if TYPE_CHECKING:
    from adjudge.dataset.case import Case
    from adjudge.dataset.dataset import Dataset
    from adjudge.dataset.importers.annotation import ImportedLabels


MOST_LABELS = 20
"""Different labels that are counted each; ratings on a fine scale are one line."""

LINES_PER_WRITE = 100
"""Lines of JSON that are written to standard output at once."""

ForSpreadsheet = Annotated[
    bool, typer.Option("--for-spreadsheet", help="Write CSV and TSV so that a spreadsheet runs no cell.")
]

_CASE_PARTS = ("reference", "task", "context", "label", "labels", "group", "metadata")
"""Parts of a case of which the number is always shown in JSON."""

_CRITERIA_PARTS = ("criteria", "rubric", "rules", "threshold")
"""Parts of a case that are read only with ``--case-criteria`` and the like."""


CaseCriteriaOptions = Annotated[option.CriteriaOptions, Only("case_criteria", "criteria_field")]


def check_dataset(
    data: option.DataPath,
    fields: Annotated[option.DataOptions, Without("on_bad_row")],
    criteria: CaseCriteriaOptions,
    as_json: option.AsJson = False,
    config: option.ConfigFile = None,
) -> int:
    """Read a whole data set and count cases, bad rows and labels.

    $ adjudge dataset check answers.jsonl

    DATA is a file: .jsonl, .csv, .tsv, .json, .yaml, .parquet; lines and tables may be .gz; - is standard input.

    Exit status: 0 every row is a case, 1 some rows are not, 2 it cannot be read or holds no case.
    """
    dataset = open_from_options(
        data, replace(fields, on_bad_row="skip"), case_criteria=_read_criteria(criteria, config)
    )
    tally = _Tally()
    for case in _iterate_with_progress(dataset, action="read"):
        tally.add(case)
    if not tally.cases and not dataset.skipped:
        raise UsageError(f"{dataset.name} holds no case; write one JSON object per line, or rows below a header")
    if as_json:
        write_json(_to_dict(dataset, tally))
    else:
        _print_check(dataset, tally)
    return FAILED if dataset.skipped else DONE


def convert_dataset(
    data: option.DataPath,
    to: Annotated[str, typer.Argument(metavar="OUT|-", hidden=True)],
    fields: option.DataOptions,
    criteria: CaseCriteriaOptions,
    for_spreadsheet: ForSpreadsheet = False,
    config: option.ConfigFile = None,
) -> None:
    """Convert a data set to another format, or import one of another tool.

    $ adjudge dataset convert results.json suite.jsonl --from promptfoo

    DATA is as in `adjudge dataset check`. OUT must not exist. Its suffix gives the format; - writes lines of JSON
    to standard output.
    """
    dataset = open_from_options(data, fields, case_criteria=_read_criteria(criteria, config))
    count = _write_cases(dataset, to, for_spreadsheet=for_spreadsheet)
    if not count:
        if to != "-":
            Path(to).unlink()
        raise UsageError(f"{dataset.name} holds no case, so nothing was written; see `adjudge dataset check`")
    report_skipped(dataset)
    note(f"{count:,} case{'s' * (count != 1)} written" + ("" if to == "-" else f" to {to}"))


def _read_criteria(criteria: option.CriteriaOptions, config: Path | None) -> CaseCriteria:
    """Make the rules on which criteria the rows may bring; a row can name the rubrics of the configuration."""
    # Only those rubrics are needed of the configuration. So it is read only if rows may name them, or it was given.
    needs_config = criteria.case_criteria or criteria.criteria_field is not None or config is not None
    return make_case_criteria(criteria, read_config(config) if needs_config else Config())


def write_label_file(
    data: Annotated[str, typer.Argument(metavar="DATA", hidden=True)],
    to: Annotated[str, typer.Argument(metavar="OUT", hidden=True)],
    kind: Annotated[
        str, typer.Option("--from", metavar="TOOL", help="langfuse, langsmith, mlflow or phoenix.", show_default=False)
    ],
    label_map: option.LabelMapText = None,
    label_name: option.LabelName = None,
    on_bad_row: option.OnBadRow = "fail",
    for_spreadsheet: ForSpreadsheet = False,
) -> None:
    """Convert the annotations of another tool to labels for --label-file, one row for each label.

    $ adjudge dataset labels export.json labels.jsonl --from phoenix

    DATA is an export of the tool: annotations, or items with annotations. OUT must not exist; it ends in .jsonl, .json,
    .csv or .tsv, and only its owner can read it. --label-map says what words mean. Annotations named by --label-name
    are labels of the whole case, all others of the criterion with their name.
    """
    from adjudge.dataset.importers.labels import import_labels
    from adjudge.dataset.label_file import write_labels
    from adjudge.dataset.label_map import parse_label_map

    check_choice("format", kind, ANNOTATION_TOOLS)
    import_options: Any = {"format": kind, "label_name": label_name, "on_bad_row": on_bad_row}
    import_options["label_map"] = parse_label_map(label_map) if label_map is not None else None
    imported = import_labels(data, **import_options)
    report_skipped(imported)
    if not imported.labels:
        raise UsageError(f"{data} holds no annotation that is a label, so nothing was written; --label-map maps words")
    count = write_labels(to, imported.labels, for_spreadsheet=for_spreadsheet)
    labels_of_people = sum(label.kind == "person" for label in imported.labels)
    note(f"{count:,} label{'s' * (count != 1)} written to {to}, {labels_of_people:,} of people")


def report_skipped(source: Dataset | ImportedLabels) -> None:
    """Write to standard error which rows were skipped, and then the notes of ``report_notes``."""
    for bad_row in source.bad_rows:
        note(f"skipped: {bad_row.where}: {format_error(bad_row.error)}")
    more = source.skipped - len(source.bad_rows)
    if more:
        note(f"skipped: {more:,} more; {source.skipped:,} in all")
    report_notes(source)


def report_notes(source: Dataset | ImportedLabels) -> None:
    """Write to standard error what an importer could not carry over from another tool's file, with its number."""
    for text, count in source.notes.items():
        note(f"{text}: {count:,}")


def _write_cases(dataset: Dataset, to: str, *, for_spreadsheet: bool) -> int:
    """Write the cases of a data set to a file, or to standard output for ``-``, and return how many there were.

    Raises ``UsageError`` for ``--for-spreadsheet`` with ``-``.
    """
    from adjudge.dataset.write import write_cases

    if to != "-":
        return write_cases(to, _iterate_with_progress(dataset, action="written"), for_spreadsheet=for_spreadsheet)
    if for_spreadsheet:
        raise UsageError("--for-spreadsheet is for files of .csv and .tsv, and - is lines of JSON; name a file")
    from adjudge.dataset.write import encode_case

    count = 0
    lines = map(encode_case, dataset)
    while next_lines := list(islice(lines, LINES_PER_WRITE)):
        write_lines(next_lines)
        count += len(next_lines)
    return count


def _iterate_with_progress(dataset: Dataset, *, action: str) -> Iterator[Case]:
    """Yield the cases of a data set, and show progress: ``action`` is what happens to them, such as "read"."""
    with show_progress(action, dataset.size) as progress:
        for case in dataset:
            progress.step()
            yield case


@dataclass(slots=True)
class _Tally:
    """Counts of the cases of a data set; they take no more memory for a million cases than for one."""

    cases: int = 0
    empty: int = 0
    """Cases with an empty content."""
    parts: Counter[str] = field(default_factory=Counter)
    """Cases that have each part."""
    labels: Counter[str] = field(default_factory=Counter)
    """Cases with each of the first ``MOST_LABELS`` different labels."""
    numbers: int = 0
    """Labels that are numbers, whose range is from ``low`` to ``high``."""
    low: float = float("inf")
    high: float = float("-inf")
    others: int = 0
    """Cases with other labels than those in ``labels``."""

    def add(self, case: Case) -> None:
        """Count a case, its parts and its label."""
        self.cases += 1
        self.empty += case.content == ""
        self.parts.update(
            name for name in (*_CASE_PARTS, *_CRITERIA_PARTS) if getattr(case, name) not in (None, {}, ())
        )
        if case.label is not None:
            self._add_label(case.label)

    def _add_label(self, label: bool | float | str) -> None:
        """Count a label; after ``MOST_LABELS`` different ones, a label that is new is counted in ``others``.

        A label that is a number (and not true or false) is counted among the numbers too.
        """
        if isinstance(label, int | float) and not isinstance(label, bool):
            self.numbers += 1
            self.low, self.high = min(self.low, label), max(self.high, label)
        name = flatten(str(label).lower() if isinstance(label, bool) else str(label), 40)
        if name in self.labels or len(self.labels) < MOST_LABELS:
            self.labels[name] += 1
        else:
            self.others += 1


def _to_dict(dataset: Dataset, tally: _Tally) -> dict[str, Any]:
    """Return the counts as plain data; under ``with``, the parts of a case are always named, and criteria if any."""
    numbers: Mapping[str, Any] = {"count": tally.numbers, "lowest": tally.low, "highest": tally.high}
    return {
        "schema": "adjudge/dataset-check/1",
        "name": _to_unicode(dataset.name),
        "cases": tally.cases,
        "empty_contents": tally.empty,
        "with": {
            name: tally.parts[name]
            for name in (*_CASE_PARTS, *_CRITERIA_PARTS)
            if name in _CASE_PARTS or tally.parts[name]
        },
        "labels": dict(tally.labels.most_common()),
        "other_labels": tally.others,
        "number_labels": dict(numbers) if tally.numbers else None,
        "bad_rows": dataset.skipped,
        "first_bad_rows": [
            {"where": _to_unicode(bad_row.where), "line": bad_row.line, "why": format_error(bad_row.error)}
            for bad_row in dataset.bad_rows
        ],
        "notes": dict(dataset.notes),
    }


def _to_unicode(name: str) -> str:
    """Replace what is not Unicode in the name of a file, because JSON has to be Unicode."""
    return name.encode("utf-8", "replace").decode()


def _print_check(dataset: Dataset, tally: _Tally) -> None:
    """Print the counts of a data set as a table, and its bad rows with the reason of each."""
    print_line(
        f"{dataset.name}: {tally.cases:,} case{'s' * (tally.cases != 1)}"
        + (f", {tally.empty:,} with empty content" if tally.empty else "")
    )
    table = make_table("", ("part", "cases"))
    for name in (*_CASE_PARTS, *_CRITERIA_PARTS):
        if tally.parts[name]:
            add_row(table, name, f"{tally.parts[name]:,}")
    for text, count in tally.labels.most_common():
        add_row(table, f"label {text}", f"{count:,}")
    if tally.others:
        add_row(table, "other labels", f"{tally.others:,}")
    show_drawing(table)
    if tally.numbers:
        print_line(f"labels that are numbers: {tally.numbers:,}, from {tally.low:g} to {tally.high:g}")
    for bad_row in dataset.bad_rows:
        print_line(f"bad row: {bad_row.where}: {format_error(bad_row.error)}")
    if dataset.skipped:
        print_line(f"bad rows: {dataset.skipped:,}" + _note_more_rows(dataset))
    for text, count in dataset.notes.items():
        note(f"{text}: {count:,}")


def _note_more_rows(dataset: Dataset) -> str:
    """Return the note that only the first bad rows are shown; empty if all of them are."""
    listed = len(dataset.bad_rows)
    return f"; the first {listed} are shown" if listed < dataset.skipped else ""


dataset_app = make_group(
    "dataset",
    "Check a data set, write it in another format, or write labels of one.",
    {"check": check_dataset, "convert": convert_dataset, "labels": write_label_file},
)
