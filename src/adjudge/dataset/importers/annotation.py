"""Annotations: what people and models said of an item in another tool, as labels of cases."""

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
from adjudge.errors import UsageError
from adjudge.formats.json import to_json_value
from adjudge.formats.text import flatten, show

_NEVER = datetime.min.replace(tzinfo=UTC)

UNKNOWN = "annotator"
"""A person whom the tool does not name; a second one of the same case is ``annotator#2``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """What somebody said of an item."""

    case: str
    """The id of the item it is about."""
    name: str
    person: bool
    """Whether a person said it; what a program, a model or an unknown caller of an API said is no person's."""
    rater: str | None = None
    word: str | None = None
    """What was chosen, in the tool's words."""
    number: bool | float | None = None
    """What was given as a number or a truth; beside a word, what the tool counts it as."""
    at: datetime | None = None
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """How the exports of one tool are read."""

    shape: Shape
    open: Callable[[Mapping[str, Any], Notes], dict[str, Any] | None]
    """A row as the parts of a case, ``None`` where it is an annotation; raises ``UsageError`` for what is neither."""
    annotate: Callable[[Mapping[str, Any]], Iterable[Annotation]]
    """The annotations in a row, also in one that is no case."""
    look: Callable[[Iterator[Row]], Callable[[Mapping[str, Any]], bool]] | None = None
    """Reads all rows before they are opened, and returns which of them are part of another's case."""


def read_value(annotation: Annotation, label_map: LabelMap) -> LabelValue:
    """What an annotation says as a label; ``None`` where it says nothing, or the map says so.

    With a map the word counts, without one the number: a word is never guessed, and a number is not mixed with what
    words stand for. Raises ``UsageError`` for a word that has to be mapped.
    """
    if annotation.word is None or (not label_map and annotation.number is not None):
        return apply_label_map(annotation.number, label_map)
    found = read_label(apply_label_map(annotation.word, label_map))
    if isinstance(found, str) and found not in {"first", "second", "tie", CANNOT_TELL}:
        raise UsageError(
            f"the annotation {show(annotation.name)} says {show(annotation.word)}, which is not a label; say what it "
            "means (--label-map WORD=true,OTHER=false, or label_map=)"
        )
    return found


def name_raters(annotations: Iterable[Annotation], unknown: Counter[str]) -> Iterator[tuple[str, Annotation]]:
    """Each annotation with who gave it, one name for each person the tool does not name.

    Two of these may be one person, or two: as two, they can only make a case unresolved that one would have decided.
    ``unknown`` counts them, over the rows of a file.
    """
    for item in annotations:
        if item.rater is not None:
            yield item.rater, item
            continue
        key = f"{item.person} {item.name} {item.case}"
        unknown[key] += 1
        number = unknown[key]
        name = UNKNOWN if item.person else item.name
        yield name if number == 1 else f"{name}#{number}", item


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
    """The items of an export as cases; ``label_name`` is the annotation of people that is the label."""
    once = check_path(path)
    if tool.look is not None and once:
        raise UsageError(f"{path} is read twice, to see which spans are part of others; name a regular file")
    known, spec = check_label_map(label_map), read_fields(fields, table=False)

    def read(notes: Notes) -> Iterator[Row]:
        reader = _CaseReader(tool=tool, spec=spec, name=label_name, label_map=known, notes=notes)
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
        look = self.tool.look
        is_part = look(read_exported(path, self.tool.shape)) if look is not None else None
        for number, row in read_exported(path, self.tool.shape):
            if isinstance(row, UsageError):
                yield number, row
            elif is_part is not None and is_part(row):
                add_note(self.notes, "span within another span of the file, which is part of that one's case")
            else:
                yield number, self._make(row)
        if self.name is not None and not self.labelled:  # most often a slip
            add_note(self.notes, f"nobody annotated anything under the name {show(self.name)}, so no case has a label")

    def _make(self, raw: Mapping[str, Any]) -> Mapping[str, Any] | UsageError:
        try:
            row = self.tool.open(raw, self.notes)
            if row is None:
                return _explain_alone(self.tool)
            found, _ = select_mapped(raw, self.spec)
            if "label" in found:
                found["label"] = apply_label_map(found["label"], self.label_map)
            row |= self._choose(row.get("id"), self.tool.annotate(raw)) | found
            # A text within it was JSON: that may hold half a character, or nest deeper than the file seemed to.
            check_text(row)
            return dict(to_json_value(row))
        except UsageError as error:
            return error
        except ValueError as error:
            return UsageError(f"the item cannot be kept: {error}; leave it out of the export")

    def _choose(self, case: Any, annotations: Iterable[Annotation]) -> dict[str, Any]:
        """The label and labels of a case: what people said of it under the name that was asked for."""
        values: dict[str, LabelValue] = {}
        own = [item for item in annotations if item.person and item.case == case]
        own.sort(key=lambda item: item.at or _NEVER)  # who said something anew counts with that
        for rater, item in name_raters(own, Counter()):
            if item.name != self.name:
                name = flatten(item.name, 80)
                add_note(self.notes, f"annotation {name!r} of a person, kept in the metadata; --label-name takes it")
            elif (value := read_value(item, self.label_map)) is not None:
                values[rater] = value
        if not values:
            return {}
        self.labelled += 1
        shown = {rater: None if value == CANNOT_TELL else value for rater, value in values.items()}
        return {"label": find_truth(list(values.values())), "labels": shown}


def _explain_alone(tool: Tool) -> UsageError:
    return UsageError(
        "it is an annotation, without what was judged; write labels of this file "
        f"(`adjudge dataset labels FILE OUT --from {tool.shape.tool}`), and give them with --label-file"
    )


# ---------------------------------------------------------------- labels


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedLabels:
    """The labels in an export of another tool."""

    labels: tuple[Label, ...]
    bad_rows: tuple[BadRow, ...] = ()
    """The first hundred annotations and rows that are not labels, with ``on_bad_row="skip"``."""
    skipped: int = 0
    """How many there were."""
    notes: Mapping[str, int] = field(default_factory=dict)
    """Which annotations were left out because they cannot be labels, in words, and how often."""


def list_labels(
    path: str, tool: Tool, *, on_bad_row: OnBadRow, label_map: LabelMap | None, label_name: str | None
) -> ImportedLabels:
    """The annotations of an export as labels; those called ``label_name`` are of the case as a whole."""
    reader = _LabelReader(tool=tool, label_map=check_label_map(label_map), name=label_name)
    labels: list[Label] = []
    bad: list[BadRow] = []
    skipped = 0
    for number, row in read_exported(path, tool.shape):
        for found in reader.read(row):
            if isinstance(found, Label):
                labels.append(found)
                continue
            if on_bad_row == "fail":
                raise UsageError(f"{path}, row {number}: {found}; on_bad_row='skip' (--on-bad-row skip) leaves it out")
            skipped += 1
            if len(bad) < MOST_LISTED:
                bad.append(BadRow(where=f"{path}, row {number}", line=number, why=str(found)))
    return ImportedLabels(labels=tuple(labels), bad_rows=tuple(bad), skipped=skipped, notes=dict(reader.notes))


@dataclass(slots=True, kw_only=True)
class _LabelReader:
    """Makes labels of rows, once through a file."""

    tool: Tool
    label_map: LabelMap
    name: str | None
    notes: Notes = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)

    def read(self, row: Mapping[str, Any] | UsageError) -> Iterator[Label | UsageError]:
        if isinstance(row, UsageError):
            yield row
            return
        try:
            annotations = list(self.tool.annotate(row))
        except UsageError as error:
            yield error
            return
        for rater, item in name_raters(annotations, self.unknown):
            found = self._make(rater, item)
            if found is not None:
                yield found

    def _make(self, rater: str, item: Annotation) -> Label | UsageError | None:
        name = flatten(item.name, 80)
        try:
            value = read_value(item, self.label_map)
            if value is None:
                add_note(self.notes, f"annotation {name!r} that says nothing a label can say")
                return None
            return Label(
                case=item.case,
                rater=rater,
                kind="person" if item.person else "model",
                value=value,
                criterion=None if item.name == self.name else item.name,
                at=item.at,
                comment=item.comment,
            )
        except UsageError as error:
            if item.person and self.name in {None, item.name}:
                return error
            # Of a model, or an annotation that was not asked for, a word without a meaning is no reason to stop.
            add_note(self.notes, f"annotation {name!r} whose words the label map does not name")
            return None
