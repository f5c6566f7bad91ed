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
from adjudge.cli.exit_status import DONE, FAILED
from adjudge.cli.input import ANNOTATED, open_from_options
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
from adjudge.cli.spelling import spell
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

PAGE = 100
"""Lines that are written to standard output together."""

ForSpreadsheet = Annotated[
    bool, typer.Option("--for-spreadsheet", help="Write CSV and TSV so that a spreadsheet runs no cell.")
]

_PARTS = ("reference", "task", "context", "label", "labels", "group", "metadata")

_CRITERIA = ("criteria", "rubric", "rules", "threshold")
"""Parts that are there only where they were asked for."""


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
    for case in _follow(dataset, "read"):
        tally.add(case)
    if not tally.cases and not dataset.skipped:
        raise UsageError(f"{dataset.name} holds no case; write one JSON object per line, or rows below a header")
    if as_json:
        write_json(_describe(dataset, tally))
    else:
        _draw(dataset, tally)
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
    # The configuration is read for the rubrics that rows name, and matters to nothing else here.
    needed = criteria.case_criteria or criteria.criteria_field is not None or config is not None
    return make_case_criteria(criteria, read_config(config) if needed else Config())


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

    check_choice("format", kind, ANNOTATED)
    choice: Any = {"format": kind, "label_name": label_name, "on_bad_row": on_bad_row}
    choice["label_map"] = parse_label_map(label_map) if label_map is not None else None
    imported = import_labels(data, **choice)
    report_skipped(imported)
    if not imported.labels:
        raise UsageError(f"{data} holds no annotation that is a label, so nothing was written; --label-map maps words")
    count = write_labels(to, imported.labels, for_spreadsheet=for_spreadsheet)
    people = sum(label.kind == "person" for label in imported.labels)
    note(f"{count:,} label{'s' * (count != 1)} written to {to}, {people:,} of people")


def report_skipped(source: Dataset | ImportedLabels) -> None:
    """Write what was skipped or could not be carried over to standard error."""
    for bad_row in source.bad_rows:
        note(f"skipped: {bad_row.where}: {spell(bad_row.error)}")
    more = source.skipped - len(source.bad_rows)
    if more:
        note(f"skipped: {more:,} more; {source.skipped:,} in all")
    report_notes(source)


def report_notes(source: Dataset | ImportedLabels) -> None:
    """Write what an importer could not carry over to standard error."""
    for text, count in source.notes.items():
        note(f"{text}: {count:,}")


def _write_cases(dataset: Dataset, to: str, *, for_spreadsheet: bool) -> int:
    """Write the cases of a data set to a file, or to standard output for ``-``, and return how many there were.

    Raises ``UsageError`` for ``--for-spreadsheet`` with ``-``.
    """
    from adjudge.dataset.write import write_cases

    if to != "-":
        return write_cases(to, _follow(dataset, "written"), for_spreadsheet=for_spreadsheet)
    if for_spreadsheet:
        raise UsageError("--for-spreadsheet is for files of .csv and .tsv, and - is lines of JSON; name a file")
    from adjudge.dataset.write import encode_case

    count = 0
    lines = map(encode_case, dataset)
    while page := list(islice(lines, PAGE)):
        write_lines(page)
        count += len(page)
    return count


def _follow(dataset: Dataset, what: str) -> Iterator[Case]:
    with show_progress(what, dataset.size) as progress:
        for case in dataset:
            progress.step()
            yield case


@dataclass(slots=True)
class _Tally:
    """Counts that are kept while cases go by; a million of them take no more room than one."""

    cases: int = 0
    empty: int = 0
    parts: Counter[str] = field(default_factory=Counter)
    labels: Counter[str] = field(default_factory=Counter)
    numbers: int = 0
    low: float = float("inf")
    high: float = float("-inf")
    others: int = 0

    def add(self, case: Case) -> None:
        self.cases += 1
        self.empty += case.content == ""
        self.parts.update(name for name in (*_PARTS, *_CRITERIA) if getattr(case, name) not in (None, {}, ()))
        if case.label is not None:
            self._add_label(case.label)

    def _add_label(self, label: bool | float | str) -> None:
        """Count a label; after ``MOST_LABELS`` different ones, each new one is counted in ``others``.

        A number, which true and false are not, is counted in the range of numbers too.
        """
        if isinstance(label, int | float) and not isinstance(label, bool):
            self.numbers += 1
            self.low, self.high = min(self.low, label), max(self.high, label)
        name = flatten(str(label).lower() if isinstance(label, bool) else str(label), 40)
        if name in self.labels or len(self.labels) < MOST_LABELS:
            self.labels[name] += 1
        else:
            self.others += 1


def _describe(dataset: Dataset, tally: _Tally) -> dict[str, Any]:
    """Describe the check as plain data; under ``with``, criteria are named only if a case has them, parts always."""
    numbers: Mapping[str, Any] = {"count": tally.numbers, "lowest": tally.low, "highest": tally.high}
    return {
        "schema": "adjudge/dataset-check/1",
        "name": _to_unicode(dataset.name),
        "cases": tally.cases,
        "empty_contents": tally.empty,
        "with": {name: tally.parts[name] for name in (*_PARTS, *_CRITERIA) if name in _PARTS or tally.parts[name]},
        "labels": dict(tally.labels.most_common()),
        "other_labels": tally.others,
        "number_labels": dict(numbers) if tally.numbers else None,
        "bad_rows": dataset.skipped,
        "first_bad_rows": [
            {"where": _to_unicode(bad_row.where), "line": bad_row.line, "why": spell(bad_row.error)}
            for bad_row in dataset.bad_rows
        ],
        "notes": dict(dataset.notes),
    }


def _to_unicode(name: str) -> str:
    """A file's name need not be Unicode, and JSON must be."""
    return name.encode("utf-8", "replace").decode()


def _draw(dataset: Dataset, tally: _Tally) -> None:
    print_line(
        f"{dataset.name}: {tally.cases:,} case{'s' * (tally.cases != 1)}"
        + (f", {tally.empty:,} with empty content" if tally.empty else "")
    )
    table = make_table("", ("part", "cases"))
    for name in (*_PARTS, *_CRITERIA):
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
        print_line(f"bad row: {bad_row.where}: {spell(bad_row.error)}")
    if dataset.skipped:
        print_line(f"bad rows: {dataset.skipped:,}" + _hint(dataset))
    for text, count in dataset.notes.items():
        note(f"{text}: {count:,}")


def _hint(dataset: Dataset) -> str:
    listed = len(dataset.bad_rows)
    return f"; the first {listed} are shown" if listed < dataset.skipped else ""


dataset_app = make_group(
    "dataset",
    "Check a data set, write it in another format, or write labels of one.",
    {"check": check_dataset, "convert": convert_dataset, "labels": write_label_file},
)
