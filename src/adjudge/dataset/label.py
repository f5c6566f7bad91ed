"""A label: what one rater said of one case, and the files that labels are kept in."""

from __future__ import annotations

import csv
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Literal, TextIO, get_args

from adjudge.dataset.case import Case, LabelValue, check_text
from adjudge.dataset.fields import read_label
from adjudge.dataset.formats import TABLES, find_format, read_rows
from adjudge.dataset.label_map import CANNOT_TELL, LabelMap, apply_label_map, check_label_map
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_choice, check_flag, is_finite
from adjudge.formats.text import flatten, show, suggest

LabelKind = Literal["person", "model", "override", "adjudication"]

LabelOrder = Literal["ab", "ba"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelDesign:
    """How a plan drew a case for labelling. Rates need this to estimate for the cases that were not drawn."""

    plan: str
    """Which plan drew it."""
    stratum: str
    """Which of the plan's strata the case is in."""
    p: float
    """The probability with which the case was drawn, above 0 and up to 1."""

    def __post_init__(self) -> None:
        for name in ("plan", "stratum"):
            _check_name(f"design.{name}", getattr(self, name))
        if not is_finite(self.p) or not 0 < self.p <= 1:
            raise UsageError(f"design.p is the probability of being drawn, above 0 and up to 1; got {show(self.p)}")

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return {"plan": self.plan, "stratum": self.stratum, "p": self.p}


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """One rater's verdict on one case. Raises ``UsageError`` for a value that a label cannot have."""

    schema: ClassVar[str] = "adjudge/label/1"

    case: str
    """The id of the case."""
    rater: str
    """Who gave the label: one name for each person, or the name of a model."""
    value: bool | float | str
    """True, false, a number, ``first``, ``second``, ``tie``, or ``cannot_tell``: looked, and cannot decide."""
    kind: LabelKind = "person"
    """``person`` looked for themselves. ``override`` is a person who overruled a judge, and so knew its verdict.
    ``adjudication`` is a person who saw what the others said and settled the case, so it decides over them."""
    criterion: str | None = None
    """The criterion it is about; ``None`` is the case as a whole."""
    run: str | None = None
    """The run whose judgement the rater saw, if any."""
    order: LabelOrder | None = None
    """In which order a pair was shown; ``value`` always names the case's own sides."""
    at: datetime | None = None
    """When, with its zone; ``None`` is unknown."""
    blind: bool = False
    """Whether the rater is known to have seen no verdict of a judge."""
    design: LabelDesign | None = None
    comment: str | None = None

    def __post_init__(self) -> None:
        _check_name("case", self.case)
        _check_name("rater", self.rater)
        for name in ("criterion", "run", "comment"):
            if getattr(self, name) is not None:
                _check_name(name, getattr(self, name))
        if not _is_value(self.value):
            raise UsageError(
                f"value must be true, false, a number, 'first', 'second', 'tie' or {CANNOT_TELL!r}, got "
                f"{show(self.value)}; say what it means (--label-map WORD=true, or label_map=)"
            )
        check_choice("kind", self.kind, get_args(LabelKind))
        if self.order is not None:
            check_choice("order", self.order, get_args(LabelOrder))
        check_flag("blind", self.blind)
        if self.at is not None and (not isinstance(self.at, datetime) or self.at.utcoffset() is None):
            raise UsageError(f"at must be a time with its zone, like 2026-11-20T12:00:00Z, got {show(self.at)}")
        if not isinstance(self.design, LabelDesign | None):
            raise UsageError(f"design must be a LabelDesign, got {show(self.design)}")

    def to_dict(self) -> dict[str, Any]:
        """Return the label as a row of a label file, without missing members; ``at`` is null if unknown."""
        said: dict[str, Any] = {"schema": self.schema} | {name: getattr(self, name) for name in _KEYS}
        said["at"] = None if self.at is None else self.at.astimezone(UTC).isoformat()
        said["design"] = None if self.design is None else self.design.to_dict()
        return {name: value for name, value in said.items() if value is not None or name == "at"}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Label:
        """Read a row of a label file. Raises ``UsageError`` for a row that is not a label, or has a later schema."""
        for key in data:
            if key not in _KEYS and key != "schema":
                known = ", ".join(_KEYS)
                raise UsageError(f"a label has no {show(key)}{suggest(key, _KEYS)}; it has {known}")
        if data.get("schema", cls.schema) != cls.schema:
            raise UsageError(f"the schema is {show(data['schema'])}, and a label is {cls.schema!r}; update adjudge")
        given = {key: data[key] for key in _KEYS if data.get(key) is not None}
        if given.get("comment") == "":
            del given["comment"]
        for key in ("case", "rater", "value"):
            if key not in given:
                raise UsageError(f"a label needs {key!r}, and there is none")
        # As with the id of a case: a number in a table or in somebody's JSON is the name that it looks like.
        given["case"] = _read_id(given["case"])
        if "at" in given:
            given["at"] = _read_time(given["at"])
        if "design" in given:
            given["design"] = _read_design(given["design"])
        return cls(**given)


_KEYS = ("case", "run", "rater", "kind", "value", "criterion", "order", "at", "blind", "design", "comment")

_DESIGN = tuple(item.name for item in fields(LabelDesign))

_COLUMNS = (
    *(key for key in _KEYS if key not in {"design", "comment"}),
    *(f"design.{key}" for key in _DESIGN),
    "comment",
)


LABEL_COLUMNS = _COLUMNS
"""The columns of a table of labels."""

CASE_COLUMNS = ("content", "task", "reference", "context")
"""What a list of cases to label shows of each case, beside the columns of its label."""


def _check_name(what: str, value: object) -> None:
    if not isinstance(value, str) or not value:
        raise UsageError(f"{what} must be a text that is not empty, got {show(value)}")


def _is_value(value: object) -> bool:
    if isinstance(value, str):
        return value in {"first", "second", "tie", CANNOT_TELL}
    return isinstance(value, bool) or is_finite(value)


def _read_id(value: Any) -> Any:
    return str(value) if is_finite(value) else value


def _read_time(said: Any) -> Any:
    if not isinstance(said, str):
        return said
    try:
        moment = datetime.fromisoformat(said)
        moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise UsageError(f"at must be a time with its zone, like 2026-11-20T12:00:00Z, got {show(said)}") from None
    return moment


def _read_design(said: Any) -> Any:
    if isinstance(said, LabelDesign):
        return said
    if not isinstance(said, Mapping) or set(said) != set(_DESIGN):
        raise UsageError(f"design must be an object with {', '.join(_DESIGN)}, got {show(said)}")
    return LabelDesign(**said)


# ---------------------------------------------------------------- the file


def load_labels(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002 - as open_dataset has it
    label_map: LabelMap | None = None,
) -> tuple[Label, ...]:
    """Load the labels of a file, in its order: rows as ``Label.to_dict`` writes them, in any format of a data set.

    A table has a column for each key, such as ``design.plan``; an empty cell means nothing is given. ``label_map`` is
    as for ``open_dataset`` and may also map to ``cannot_tell``; a row whose word means ``None`` is left out. A row with
    ``content`` comes from a list of cases to label (``adjudge plan --out``): its case is passed over, and so is a row
    whose value nobody filled in. Raises ``UsageError`` naming file, line, value and remedy for the first row that is
    not a label.
    """
    name = os.fspath(path)
    form, gz = find_format(name, format)
    known = check_label_map(label_map)
    unit = "row" if form in {"json", "parquet"} else "line"
    found: list[Label] = []
    for line, row in read_rows(name, form, None, gz=gz):
        try:
            found += _read_row(row, known, table=form in TABLES)
        except UsageError as error:
            raise UsageError(f"{name}, {unit} {line}: {error}") from None
    return tuple(found)


def _read_row(row: Mapping[str, Any] | UsageError, label_map: LabelMap, *, table: bool) -> list[Label]:
    if isinstance(row, UsageError):
        raise row
    said = _open_cells(row) if table else dict(row)
    if "content" in row:  # a row of a list of cases to label, and not a label yet where nobody filled it in
        said = {key: value for key, value in said.items() if key not in CASE_COLUMNS}
        if table:
            said |= _rearm(said)
        if said.get("value") in (None, ""):
            return []
    if said.get("value") is None:
        raise UsageError(f"a label needs 'value', and there is none; a rater who cannot decide says {CANNOT_TELL!r}")
    said["value"] = apply_label_map(said["value"], label_map)
    return [] if said["value"] is None else [Label.from_dict(said)]


def _rearm(said: Mapping[str, Any]) -> dict[str, str]:
    """The names in a row of a list of cases: those that a spreadsheet would run were written with an apostrophe."""
    from adjudge.dataset.write import rearm

    return {key: rearm(said[key]) for key in ("case", "rater", "run") if isinstance(said.get(key), str)}


def _open_cells(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a table as a label has it, whose cells may be texts."""
    said = {key: cell for key, cell in row.items() if cell not in (None, "")}
    design = {key: said.pop(f"design.{key}") for key in _DESIGN if f"design.{key}" in said}
    if "p" in design:
        design["p"] = read_label(design["p"])
    if design:
        said["design"] = design
    if "value" in said:
        said["value"] = read_label(said["value"])
    if isinstance(said.get("blind"), str):
        said["blind"] = read_label(said["blind"])
    return said


def write_labels(
    path: str | os.PathLike[str],
    labels: Iterable[Label],
    *,
    format: str | None = None,  # noqa: A002 - as open_dataset has it
    for_spreadsheet: bool = False,
) -> int:
    """Write labels to a new file that its owner alone can read, and return how many; reading it gives equal labels.

    The formats are ``jsonl``, ``json``, ``csv`` and ``tsv``. ``for_spreadsheet`` is as for ``write_cases``, because
    anybody may have written the comments. Raises ``UsageError`` if the file exists. If something goes wrong, no file is
    left.
    """
    name = os.fspath(path)
    form, gz = find_format(name, format)
    if form not in {"jsonl", "json", "csv", "tsv"}:
        raise UsageError(f"{name}: labels are written as jsonl, json, csv or tsv, not as {form}; name such a file")
    if for_spreadsheet and form not in TABLES:
        raise UsageError(f"for_spreadsheet is for .csv and .tsv, and {name} is {form}; leave it out")
    from adjudge.dataset.write import begin_file, open_text, write_array, write_lines

    place = Path(name)
    with begin_file(place, mode=0o600), open_text(place, gz=gz) as file:
        rows = (_flatten(label) for label in labels)
        if form in TABLES:
            return _write_table(file, rows, "\t" if form == "tsv" else ",", disarmed=for_spreadsheet)
        return (write_lines if form == "jsonl" else write_array)(file, rows)


def _flatten(label: Label) -> dict[str, Any]:
    said = label.to_dict()
    try:
        check_text(said)
    except UsageError as error:
        raise UsageError(
            f"the label of {show(label.rater)} for {show(label.case)} cannot be written: {error}"
        ) from None
    return said


def _write_table(file: TextIO, rows: Iterator[dict[str, Any]], delimiter: str, *, disarmed: bool) -> int:
    from adjudge.dataset.write import disarm

    writer = csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_ALL if disarmed else csv.QUOTE_MINIMAL)
    writer.writerow(_COLUMNS)
    count = 0
    for count, said in enumerate(rows, 1):  # noqa: B007 - how many there were
        cells = said | {f"design.{key}": value for key, value in said.get("design", {}).items()}
        written = [_write_cell(key, cells.get(key)) for key in _COLUMNS]
        writer.writerow([disarm(cell) for cell in written] if disarmed else written)
    return count


def _write_cell(key: str, value: Any) -> str | None:
    if value is None or isinstance(value, str):
        if value is not None and "\x00" in value:
            raise UsageError(f"{key} holds a NUL character, which no table can; write a .jsonl file")
        return value
    return json.dumps(value)


# ---------------------------------------------------------------- of a case


def find_truth(values: Sequence[LabelValue]) -> LabelValue:
    """What more than half of the people said who looked at a case, or ``None``: it is unresolved.

    Who cannot tell has looked, so one of two who is sure is no majority.
    """
    # True is not 1, but 1 is 1.0.
    counted = Counter((isinstance(value, bool), value) for value in values)
    for (_, value), count in counted.most_common(1):
        if 2 * count > len(values) and value not in (None, CANNOT_TELL):
            return value
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseLabels:
    """The labels of one case that count: the latest of each rater."""

    people: Mapping[str, Label]
    """Those of the kind ``person``, by rater."""
    overrides: Mapping[str, Label]
    """Those of the kind ``override``, by rater: no votes beside people's, because each of them is against a judge."""
    adjudication: Label | None
    """The latest of the kind ``adjudication``, whoever gave it."""

    @property
    def decisive(self) -> tuple[LabelValue, ...]:
        """What the truth of the case follows from: the adjudication alone, else people's labels, else overrides."""
        if self.adjudication is not None:
            return (self.adjudication.value,)
        return tuple(label.value for label in (self.people or self.overrides).values())

    @property
    def values(self) -> dict[str, LabelValue]:
        """What each rater said; who settled a case is no rater of it, because they saw what the others said."""
        return {rater: label.value for rater, label in {**self.overrides, **self.people}.items()}


def group_labels(labels: Iterable[Label], name: str | None) -> dict[str, CaseLabels]:
    """What people said of each case, for one criterion or (``None``) of the whole; the later label of a rater counts.

    Later is by ``at`` where both have it, else by the place. A model's label is left out: it is no one's verdict
    that a judge could be measured against.
    """
    latest: dict[tuple[str, LabelKind, str], Label] = {}
    for label in labels:
        if not isinstance(label, Label):
            raise UsageError(f"labels must be Label, got {show(label)}; load_labels reads a file of them")
        if label.kind == "model" or label.criterion != name:
            continue
        key = (label.case, label.kind, "" if label.kind == "adjudication" else label.rater)
        before = latest.get(key)
        if before is None or before.at is None or label.at is None or label.at >= before.at:
            latest[key] = label
    found: dict[str, dict[LabelKind, dict[str, Label]]] = {}
    for (case, kind, _), label in latest.items():
        found.setdefault(case, {}).setdefault(kind, {})[label.rater] = label
    return {
        case: CaseLabels(
            people=kinds.get("person", {}),
            overrides=kinds.get("override", {}),
            adjudication=next(iter(kinds.get("adjudication", {}).values()), None),
        )
        for case, kinds in found.items()
    }


class LabelJoin:
    """Gives cases what people said of them, by their ids, once through a data set or a run."""

    def __init__(self, said: Mapping[str, CaseLabels]) -> None:
        self._said = said
        self.missing = set(said)
        """Ids that no case has had so far."""

    def join(self, case: Case) -> Case:
        """The case with these labels beside its own; its ``label`` stays, where it has one."""
        said = self._said.get(case.id)
        if said is None:
            return case
        self.missing.discard(case.id)
        shown = {rater: None if value == CANNOT_TELL else value for rater, value in said.values.items()}
        label = find_truth(said.decisive) if case.label is None else case.label
        return replace(case, label=label, labels={**case.labels, **shown})

    def describe_missing(self, where: str) -> str:
        """Which labelled cases are not there, in words: a file of another data set is a slip."""
        some = flatten(", ".join(sorted(self.missing)[:3]), 120)
        return f"labelled case that is not in the {where} ({some})"
