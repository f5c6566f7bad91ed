"""Annotations: verdicts of people and models on an item in another tool, as labels of cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from adjudge.dataset.case import LabelValue, check_text
from adjudge.dataset.case_labels import find_truth
from adjudge.dataset.dataset import MOST_LISTED, BadRow, Dataset, Notes, OnBadRow, add_note
from adjudge.dataset.fields import Fields, read_fields, read_label, select_mapped
from adjudge.dataset.formats import Row, check_path
from adjudge.dataset.importers.exported import Shape, read_exported
from adjudge.dataset.label import Label
from adjudge.dataset.label_map import CANNOT_TELL, LabelMap, apply_label_map, check_label_map
from adjudge.errors import Argument, UsageError
from adjudge.formats.json import to_json_value
from adjudge.formats.text import flatten, show

_NEVER = datetime.min.replace(tzinfo=UTC)

UNKNOWN = "annotator"
"""A person whom the tool does not name; a second one of the same case is ``annotator#2``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """A verdict that somebody gave on an item."""

    case: str
    """The id of the item it is about."""
    name: str
    person: bool
    """True if a person said it; what a program, a model or an unknown caller of an API said is no person's."""
    rater: str | None = None
    word: str | None = None
    """The word that was chosen, as the tool has it."""
    number: bool | float | None = None
    """The number or truth that was given; beside a word, the number that the tool counts it as."""
    at: datetime | None = None
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """The functions that read the exports of one tool."""

    shape: Shape
    open: Callable[[Mapping[str, Any], Notes], dict[str, Any] | None]
    """Opens a row as the parts of a case, ``None`` for an annotation; raises ``UsageError`` for what is neither."""
    annotate: Callable[[Mapping[str, Any]], Iterable[Annotation]]
    """Lists the annotations in a row, also in one that is no case."""
    find_parts: Callable[[Iterator[Row]], Callable[[Mapping[str, Any]], bool]] | None = None
    """Reads all rows before they are opened, and returns which of them are part of another's case."""


def read_value(annotation: Annotation, label_map: LabelMap) -> LabelValue:
    """Read an annotation as a label; ``None`` where it says nothing, or the map says so.

    With a map the word counts, without one the number: a word is never guessed, and a number is not mixed with what
    words stand for. Raises ``UsageError`` for a word that has to be mapped.
    """
    if annotation.word is None or (not label_map and annotation.number is not None):
        return apply_label_map(annotation.number, label_map)
    label = read_label(apply_label_map(annotation.word, label_map))
    if isinstance(label, str) and label not in {"first", "second", "tie", CANNOT_TELL}:
        raise UsageError(
            f"the annotation {show(annotation.name)} says {show(annotation.word)}, which is not a label; say what it "
            "means with ",
            Argument("label_map"),
            ", such as WORD=true,OTHER=false",
        )
    return label


def name_raters(annotations: Iterable[Annotation], unknown: Counter[str]) -> Iterator[tuple[str, Annotation]]:
    """Yield each annotation with its rater, one name for each person the tool does not name.

    Two of these may be one person, or two: as two, they can only make a case unresolved that one would have decided.
    ``unknown`` counts them, over the rows of a file.
    """
    for annotation in annotations:
        if annotation.rater is not None:
            yield annotation.rater, annotation
            continue
        key = f"{annotation.person} {annotation.name} {annotation.case}"
        unknown[key] += 1
        number = unknown[key]
        name = UNKNOWN if annotation.person else annotation.name
        yield name if number == 1 else f"{name}#{number}", annotation


# ---------------------------------------------------------------- cases


def open_annotated(
    path: str,
    tool: Tool,
    *,
    fields: Mapping[str, str | None] | None,
    on_bad_row: OnBadRow,
    label_map: LabelMap | None,
    label_name: str | None,
) -> Dataset:
    """Open the items of an export as cases; ``label_name`` is the annotation of people that is the label.

    Raises ``UsageError``.
    """
    once = check_path(path)
    if tool.find_parts is not None and once:
        raise UsageError(f"{path} is read twice, to see which spans are part of others; name a regular file")
    words, field_options = check_label_map(label_map), read_fields(fields, table=False)

    def read(notes: Notes) -> Iterator[Row]:
        reader = _CaseReader(tool=tool, spec=field_options, name=label_name, label_map=words, notes=notes)
        yield from reader.read(path)

    return Dataset(read, name=path, path=path, unit="row", on_bad_row=on_bad_row, once=once)


@dataclass(slots=True, kw_only=True)
class _CaseReader:
    """Makes cases of rows, once through a file."""

    tool: Tool
    spec: Fields
    name: str | None
    label_map: LabelMap
    notes: Notes
    labelled: int = 0

    def read(self, path: str) -> Iterator[Row]:
        """Yield the row of a case, or an error, for each item; items that are part of another's case are only noted.

        Where such items can occur, the file is read twice: the first time finds them.
        """
        find_parts = self.tool.find_parts
        is_part = find_parts(read_exported(path, self.tool.shape)) if find_parts is not None else None
        for number, row in read_exported(path, self.tool.shape):
            if isinstance(row, UsageError):
                yield number, row
            elif is_part is not None and is_part(row):
                add_note(self.notes, "span within another span of the file, which is part of that one's case")
            else:
                yield number, self._make_case_row(row)
        if self.name is not None and not self.labelled:
            # Most often a slip.
            add_note(self.notes, f"nobody annotated anything under the name {show(self.name)}, so no case has a label")

    def _make_case_row(self, raw: Mapping[str, Any]) -> Mapping[str, Any] | UsageError:
        """Make the row of a case from an item of the tool; an item that cannot be one is returned as its error."""
        try:
            row = self.tool.open(raw, self.notes)
            if row is None:
                return _make_alone_error(self.tool)
            mapped, _ = select_mapped(raw, self.spec)
            if "label" in mapped:
                mapped["label"] = apply_label_map(mapped["label"], self.label_map)
            row |= self._take_labels(row.get("id"), self.tool.annotate(raw)) | mapped
            # A text within it was JSON: that may hold half a character, or nest deeper than the file seemed to.
            check_text(row)
            return dict(to_json_value(row))
        except UsageError as error:
            return error
        except ValueError as error:
            return UsageError(f"the item cannot be kept: {error}; leave it out of the export")

    def _take_labels(self, case_id: Any, annotations: Iterable[Annotation]) -> dict[str, Any]:
        """Return the label and labels of a case: people's annotations under the name that was asked for.

        The case is counted as labelled if it has any; annotations under another name are noted.
        """
        values: dict[str, LabelValue] = {}
        chosen = [annotation for annotation in annotations if annotation.person and annotation.case == case_id]
        chosen.sort(key=lambda annotation: annotation.at or _NEVER)  # who said something anew counts with that
        for rater, annotation in name_raters(chosen, Counter()):
            if annotation.name != self.name:
                name = flatten(annotation.name, 80)
                add_note(self.notes, f"annotation {name!r} of a person, kept in the metadata; --label-name takes it")
            elif (value := read_value(annotation, self.label_map)) is not None:
                values[rater] = value
        if not values:
            return {}
        self.labelled += 1
        by_rater = {rater: None if value == CANNOT_TELL else value for rater, value in values.items()}
        return {"label": find_truth(list(values.values())), "labels": by_rater}


def _make_alone_error(tool: Tool) -> UsageError:
    return UsageError(
        "it is an annotation, without what was judged; write labels of this file "
        f"(`adjudge dataset labels FILE OUT --from {tool.shape.tool}`), and give them with --label-file"
    )


# ---------------------------------------------------------------- labels


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedLabels:
    """The labels in an export of another tool."""

    labels: tuple[Label, ...]
    """The labels, in the order of the file."""
    bad_rows: tuple[BadRow, ...] = ()
    """The first hundred annotations and rows that are not labels, with ``on_bad_row="skip"``."""
    skipped: int = 0
    """Their number."""
    notes: Mapping[str, int] = field(default_factory=dict)
    """The annotations that were left out because they cannot be labels, in words, each with how often."""


def list_labels(
    path: str, tool: Tool, *, on_bad_row: OnBadRow, label_map: LabelMap | None, label_name: str | None
) -> ImportedLabels:
    """Read the annotations of an export as labels; those called ``label_name`` are of the case as a whole.

    Raises ``UsageError``.
    """
    reader = _LabelReader(tool=tool, label_map=check_label_map(label_map), name=label_name)
    labels: list[Label] = []
    bad_rows: list[BadRow] = []
    skipped = 0
    for number, row in read_exported(path, tool.shape):
        for label_or_error in reader.read(row):
            if isinstance(label_or_error, Label):
                labels.append(label_or_error)
                continue
            if on_bad_row == "fail":
                raise label_or_error.within(
                    f"{path}, row {number}", "; ", Argument("on_bad_row", "'skip'"), " leaves it out"
                )
            skipped += 1
            if len(bad_rows) < MOST_LISTED:
                bad_rows.append(
                    BadRow(where=f"{path}, row {number}", line=number, why=str(label_or_error), error=label_or_error)
                )
    return ImportedLabels(labels=tuple(labels), bad_rows=tuple(bad_rows), skipped=skipped, notes=dict(reader.notes))


@dataclass(slots=True, kw_only=True)
class _LabelReader:
    """Makes labels of rows, once through a file."""

    tool: Tool
    label_map: LabelMap
    name: str | None
    notes: Notes = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)

    def read(self, row: Mapping[str, Any] | UsageError) -> Iterator[Label | UsageError]:
        """Yield the labels of a row, and an error for the row, or for an annotation, that cannot be read."""
        if isinstance(row, UsageError):
            yield row
            return
        try:
            annotations = list(self.tool.annotate(row))
        except UsageError as error:
            yield error
            return
        for rater, annotation in name_raters(annotations, self.unknown):
            label = self._make_label(rater, annotation)
            if label is not None:
                yield label

    def _make_label(self, rater: str, annotation: Annotation) -> Label | UsageError | None:
        """Make a label of an annotation: ``None`` with a note for one that says nothing, an error for a wrong one."""
        name = flatten(annotation.name, 80)
        try:
            value = read_value(annotation, self.label_map)
            if value is None:
                add_note(self.notes, f"annotation {name!r} that says nothing a label can say")
                return None
            return Label(
                case=annotation.case,
                rater=rater,
                kind="person" if annotation.person else "model",
                value=value,
                criterion=None if annotation.name == self.name else annotation.name,
                at=annotation.at,
                comment=annotation.comment,
            )
        except UsageError as error:
            if annotation.person and self.name in {None, annotation.name}:
                return error
            # Of a model, or an annotation that was not asked for, a word without a meaning is no reason to stop.
            add_note(self.notes, f"annotation {name!r} whose words the label map does not name")
            return None
