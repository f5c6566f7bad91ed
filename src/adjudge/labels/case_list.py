"""A list of cases to label elsewhere: a table for a spreadsheet, or lines of JSON for an annotation tool.

Each row has the columns of a label file, of which ``value`` is to be filled in, and the case beside them.
``load_labels`` reads the list as it comes back: it leaves out the case, and rows that nobody filled in.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

from adjudge.dataset.contents import digest_content
from adjudge.dataset.formats import TABLES, find_format
from adjudge.dataset.label_file import CASE_COLUMNS, LABEL_COLUMNS
from adjudge.dataset.write import begin_file, check_new_file, escape_formula, open_text
from adjudge.errors import UsageError
from adjudge.labels.plan import LabelPlan, PlannedCase
from adjudge.runs.folder import Run


def write_case_list(
    path: str | os.PathLike[str], plan: LabelPlan, run: Run, cases: Iterable[PlannedCase], *, rater: str | None = None
) -> int:
    """Write cases of a plan to a new file that its owner alone can read, and return how many.

    The formats are ``csv``, ``tsv`` and ``jsonl``. Cells that a spreadsheet would run as formulas begin with an
    apostrophe. Neither the judge's verdict nor a name that tells it is in the list, so labels are not swayed by it.
    Raises ``UsageError`` when the file exists; when something goes wrong, none is left.

    Args:
        path: The new file.
        plan: The plan that drew the cases.
        run: The run that they are of.
        cases: The planned cases to write, in this order.
        rater: The name that is filled in as the rater's; ``None`` leaves it empty.
    """
    form, gz = check_list_name(path)
    rows = _make_rows(plan, run, cases, rater)
    with begin_file(Path(path), mode=0o600), open_text(Path(path), gz=gz) as file:
        return _write_lines(file, rows) if form not in TABLES else _write_table(file, rows, form)


def check_list_name(path: str | os.PathLike[str]) -> tuple[str, bool]:
    """Return the format of a new list and whether it is compressed; raises ``UsageError`` where none can be written."""
    name = os.fspath(path)
    form, gz = find_format(name, None)
    if form not in {"csv", "tsv", "jsonl"}:
        raise UsageError(f"{name}: a list of cases is written as csv, tsv or jsonl, not as {form}; name such a file")
    check_new_file(Path(name))
    return form, gz


def _make_rows(plan: LabelPlan, run: Run, cases: Iterable[PlannedCase], rater: str | None) -> Iterator[dict[str, Any]]:
    """Yield a row for each case: a label whose value is to be filled in, and the case's texts."""
    for planned in cases:
        case = run.read_case(planned.case)[0].case
        label = {"case": planned.case, "run": run.id, "rater": rater, "kind": "person", "value": None}
        label |= {"subject": digest_content(case.content), "design": plan.make_design(planned).to_dict()}
        yield label | {key: getattr(case, key) for key in CASE_COLUMNS}


def _write_lines(file: TextIO, rows: Iterator[dict[str, Any]]) -> int:
    """Write rows as lines of JSON, and return how many."""
    count = 0
    for count, row in enumerate(rows, 1):  # noqa: B007 - how many there were
        file.write(json.dumps(row) + "\n")
    return count


def _write_table(file: TextIO, rows: Iterator[dict[str, Any]], form: str) -> int:
    """Write rows as CSV or TSV, and return how many; no cell can run as a formula in a spreadsheet."""
    writer = csv.writer(file, delimiter="\t" if form == "tsv" else ",", quoting=csv.QUOTE_ALL)
    writer.writerow([*LABEL_COLUMNS, *CASE_COLUMNS])
    count = 0
    for count, row in enumerate(rows, 1):  # noqa: B007
        cells = row | {f"design.{key}": value for key, value in row["design"].items()}
        writer.writerow([escape_formula(_render_cell(cells.get(key))) for key in (*LABEL_COLUMNS, *CASE_COLUMNS)])
    return count


def _render_cell(value: Any) -> str | None:
    """Write a value as the text of a cell: a text as it is, anything else as JSON; ``None`` is an empty cell."""
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    # A table cannot hold a NUL, and half a surrogate pair has no UTF-8. Both are replaced: only people read the cell.
    return text.replace("\x00", "\ufffd").encode(errors="replace").decode()
