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
from adjudge.dataset.importers.export_rows import Shape, read_exported
from adjudge.dataset.label import Label
from adjudge.dataset.label_map import CANNOT_TELL, LabelMap, apply_label_map, check_label_map
from adjudge.errors import Argument, UsageError
from adjudge.formats.json import to_json_value
from adjudge.formats.text import flatten, show

_NEVER = datetime.min.replace(tzinfo=UTC)
"""The time of an annotation without one, for sorting: before all others."""

UNKNOWN = "annotator"
"""A person whom the tool does not name; a second one of the same case is ``annotator#2``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """A verdict that a person or a model gave on an item in the other tool."""

    case: str
    """The id of the item it is about."""
    name: str
    """The name of the score, feedback or annotation that it is a value of."""
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
    """The functions that read the exports of one other tool."""

    shape: Shape
    make_case_row: Callable[[Mapping[str, Any], Notes], dict[str, Any] | None]
    """Makes the row of a case from an item, ``None`` from an annotation; raises ``UsageError`` for any other row."""
    list_annotations: Callable[[Mapping[str, Any]], Iterable[Annotation]]
    """Lists the annotations in a row, also in one that is no case."""
    find_parts: Callable[[Iterator[Row]], Callable[[Mapping[str, Any]], bool]] | None = None
    """Reads all rows in advance, and returns a function that tells whether a row is part of another row's case."""


def read_value(annotation: Annotation, label_map: LabelMap) -> LabelValue:
    """Read the value of an annotation as a label; ``None`` where it has none, or its word stands for ``None``.

    If it has both a word and a number, the word counts with a map, the number without one: words are never guessed.
    Raises ``UsageError`` for a word that is no label and is not in the map.
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
    """Yield each annotation behind the name of its rater; annotations without a rater get a name each.

    Two of these may be by one person. Counted as two, they can only make a case unresolved that one person would have
    decided. ``unknown`` has the number of unnamed raters so far in the file, for each case and annotation.
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
    checked_map, field_options = check_label_map(label_map), read_fields(fields, table=False)

    def read(notes: Notes) -> Iterator[Row]:
        reader = _CaseReader(tool=tool, fields=field_options, label_name=label_name, label_map=checked_map, notes=notes)
        yield from reader.read(path)

    return Dataset(read, name=path, path=path, unit="row", on_bad_row=on_bad_row, once=once)


@dataclass(slots=True, kw_only=True)
class _CaseReader:
    """Makes the rows of cases from an export, once through the file."""

    tool: Tool
    fields: Fields
    label_name: str | None
    """The name of the annotation of people that is the label."""
    label_map: LabelMap
    notes: Notes
    labelled: int = 0
    """The number of cases so far that have a label."""

    def read(self, path: str) -> Iterator[Row]:
        """Yield the row of a case, or an error, for each item; items that are part of another's case are only noted.

        Where such items can occur, the file is read twice, first to find them.
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
        if self.label_name is not None and not self.labelled:
            # Most often the name is misspelled.
            add_note(
                self.notes, f"nobody annotated anything under the name {show(self.label_name)}, so no case has a label"
            )

    def _make_case_row(self, raw: Mapping[str, Any]) -> Mapping[str, Any] | UsageError:
        """Make the row of a case from an item of the tool; an item that cannot be one is returned as its error."""
        try:
            row = self.tool.make_case_row(raw, self.notes)
            if row is None:
                return _make_alone_error(self.tool)
            mapped, _ = select_mapped(raw, self.fields)
            if "label" in mapped:
                mapped["label"] = apply_label_map(mapped["label"], self.label_map)
            row |= self._take_labels(row.get("id"), self.tool.list_annotations(raw)) | mapped
            # JSON within a text of the file was read too, which may hold half a character, or be nested too deep.
            check_text(row)
            return dict(to_json_value(row))
        except UsageError as error:
            return error
        except ValueError as error:
            return UsageError(f"the item cannot be kept: {error}; leave it out of the export")

    def _take_labels(self, case_id: Any, annotations: Iterable[Annotation]) -> dict[str, Any]:
        """Return the ``label`` and ``labels`` of a case: people's annotations under the name ``label_name``.

        The case is counted as labelled if it has any; annotations under another name are noted.
        """
        values: dict[str, LabelValue] = {}
        by_people = [annotation for annotation in annotations if annotation.person and annotation.case == case_id]
        by_people.sort(key=lambda annotation: annotation.at or _NEVER)  # the last one of a rater counts
        for rater, annotation in name_raters(by_people, Counter()):
            if annotation.name != self.label_name:
                name = flatten(annotation.name, 80)
                add_note(self.notes, f"annotation {name!r} of a person, kept in the metadata; --label-name takes it")
                continue
            value = read_value(annotation, self.label_map)
            if value is not None:
                values[rater] = value
        if not values:
            return {}
        self.labelled += 1
        by_rater = {rater: None if value == CANNOT_TELL else value for rater, value in values.items()}
        return {"label": find_truth(list(values.values())), "labels": by_rater}


def _make_alone_error(tool: Tool) -> UsageError:
    """Make the error for a row that is an annotation, where cases are read."""
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
    reader = _LabelReader(tool=tool, label_map=check_label_map(label_map), label_name=label_name)
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
    """Makes labels from the annotations of an export, once through the file."""

    tool: Tool
    label_map: LabelMap
    label_name: str | None
    """The name of the annotation that is about the case as a whole."""
    notes: Notes = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    """The numbers of unnamed raters so far, for ``name_raters``."""

    def read(self, row: Mapping[str, Any] | UsageError) -> Iterator[Label | UsageError]:
        """Yield the labels of a row, and an error for the row, or for an annotation, that cannot be read."""
        if isinstance(row, UsageError):
            yield row
            return
        try:
            annotations = list(self.tool.list_annotations(row))
        except UsageError as error:
            yield error
            return
        for rater, annotation in name_raters(annotations, self.unknown):
            label = self._make_label(rater, annotation)
            if label is not None:
                yield label

    def _make_label(self, rater: str, annotation: Annotation) -> Label | UsageError | None:
        """Make a label of an annotation. One without a value is noted, and ``None`` is returned.

        One that cannot be a label is returned as its error; it is only noted if a model gave it, or if it is not the
        annotation that ``label_name`` asks for.
        """
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
                criterion=None if annotation.name == self.label_name else annotation.name,
                at=annotation.at,
                comment=annotation.comment,
            )
        except UsageError as error:
            if annotation.person and self.label_name in {None, annotation.name}:
                return error
            add_note(self.notes, f"annotation {name!r} whose words the label map does not name")
            return None
