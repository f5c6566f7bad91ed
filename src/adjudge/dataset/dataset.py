"""A data set: cases that are read when they are needed, and as often as they are.

How a row becomes a case is in ``case.py`` (``make_case``), which field is which part of it in ``fields.py``, and how a
file is read as rows in ``formats.py``.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, get_args

from adjudge.dataset.case import Case, make_case
from adjudge.dataset.case_criteria import CaseCriteria, SplitRow, read_case_criteria
from adjudge.dataset.case_ids import CaseIds
from adjudge.dataset.case_labels import OTHER_CONTENTS, LabelJoin, list_labels
from adjudge.dataset.fields import Fields, read_fields
from adjudge.dataset.formats import TABLES, check_path, find_format, read_rows
from adjudge.dataset.frames import NumberedRow, open_frame
from adjudge.dataset.label import Label
from adjudge.dataset.label_map import LabelMap, check_label_map, map_labels
from adjudge.dataset.transcripts import KEY, list_names, list_transcripts, open_row
from adjudge.errors import Argument, UsageError
from adjudge.formats.arguments import check_choice
from adjudge.formats.text import flatten, show
from adjudge.hooks import logger
from adjudge.rubric.rubric import Rubric

MOST_LISTED = 100
"""Bad rows that are kept with the reason; the others are counted."""


OnBadRow = Literal["fail", "skip"]

Notes = Counter[str]
"""Sentences on what was not converted or does not fit, each with how often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRow:
    """A row that is not a case."""

    where: str
    """The data set and the line, or the row where there are no lines."""
    line: int
    """Its line in the file, from 1; in JSON, Parquet and frames, which row it is."""
    why: str
    """One sentence: what is wrong, and the remedy."""
    error: UsageError = field(compare=False, repr=False)
    """The same as an error, which names the arguments in it."""


@dataclass(slots=True)
class _IterationState:
    """The state of one iteration over a data set: its bad rows, its notes, and the ids so far."""

    bad: list[BadRow] = field(default_factory=list)
    """The first bad rows that were skipped."""
    skipped: int = 0
    """The number of bad rows that were skipped."""
    notes: Notes = field(default_factory=Counter)
    seen: dict[str | bytes, int] = field(default_factory=dict)
    """The line on which each id was, by the id or its digest."""
    ids: CaseIds = field(default_factory=CaseIds)
    line: int = 0
    """The line of the latest row."""


def add_note(notes: Notes, note: str) -> None:
    """Count a note, such as on something that was not converted; once there are 100 notes, others are counted as one.

    Notes quote a file, so there may be any number of different ones.
    """
    is_kept = note in notes or len(notes) < MOST_LISTED
    notes[note if is_kept else "more of other kinds"] += 1


class Dataset:
    """Cases from a file, a frame or a program. Each iteration reads them again, one at a time.

    Made by ``open_dataset`` and ``Dataset.of``. ``bad_rows``, ``skipped`` and ``notes`` are about the latest iteration.

    Args:
        read: Returns the rows, each with its number, from the first; called for each iteration.
        name: The path, or what a program calls it.
        unit: What a row is called in messages.
        fields: Which field of a row is which part of a case.
        on_bad_row: ``fail`` raises for a row that is no case, ``skip`` counts it and goes on.
        check_ids: Raise for an id that an earlier case has.
        size: The number of rows, where that is known without reading them.
        once: True if it can be read once only.
        path: The file it is read from; ``None`` for standard input, and for what a program holds.
        label_map: What the words of labels mean.
        criteria: Whether rows may bring criteria, rubrics, rules or thresholds of their own.
        folder: The folder in which rows may name transcripts.
        is_suite: True if it is the suite of another tool, which says by which assertions its cases are judged.
    """

    def __init__(
        self,
        read: Callable[[Notes], Iterable[NumberedRow]],
        *,
        name: str,
        unit: str = "row",
        fields: Fields | None = None,
        on_bad_row: OnBadRow = "fail",
        check_ids: bool = True,
        size: int | None = None,
        once: bool = False,
        path: str | None = None,
        label_map: LabelMap | None = None,
        criteria: CaseCriteria | None = None,
        folder: Path | None = None,
        is_suite: bool = False,
    ) -> None:
        check_choice("on_bad_row", on_bad_row, get_args(OnBadRow))
        self.name = name
        """The path, or what a program called it."""
        self.path = path
        """The file it is read from; ``None`` for standard input, and for what a program holds."""
        self.size = size
        """The number of rows, where that is known without reading them."""
        self.may_judge_itself = criteria is None or criteria.is_asked
        """True if its cases may bring criteria, rubrics, rules or thresholds of their own: not from a file that nobody
        asked for them."""
        self._criteria = criteria or CaseCriteria()
        self.has_warned = False
        """True if it was said that rows bring criteria which do not count; that is said once."""
        self.is_suite = is_suite
        """True if it is the suite of another tool: a run lists what it does not apply of it before it asks anybody."""
        self.has_listed = False
        """True if that was listed, which is done once."""
        self._read = read
        self._folder = folder
        """The folder in which rows may name transcripts."""
        self._unit = unit
        self._skips_bad_rows = on_bad_row == "skip"
        self._checks_ids = check_ids
        self._label_map = check_label_map(label_map)
        self._must_seek_content = fields is not None
        """True until the first row shows whether a field is the content by its name; never for an importer's rows."""
        self._set_fields(fields or Fields())
        self.reads_once = once
        """True if it can be read once only."""
        self._was_read = False
        self._latest = _IterationState()
        self._labels: Mapping[str, Sequence[Label]] = {}

    @classmethod
    def of(
        cls,
        source: object,
        *,
        name: str = "data",
        fields: Mapping[str, str | None] | None = None,
        on_bad_row: OnBadRow = "fail",
        check_ids: bool = True,
        label_map: LabelMap | None = None,
        case_criteria: bool = False,
        criteria_field: str | None = None,
        rubrics: Mapping[str, Rubric] | None = None,
    ) -> Dataset:
        """Make a data set from values of your program.

        Args:
            source: A list, a generator, or a function that makes one, of cases, mappings, texts or lists of chat
                messages; a frame of pandas or polars, an Arrow table, a Hugging Face data set. A generator can be read
                once.
            name: The name of the data set in messages.
            fields: Which field of a row is which part of a case.
            on_bad_row: ``fail`` raises for a row that is no case, ``skip`` counts it and goes on.
            check_ids: Raise for an id that an earlier case has.
            label_map: What the words of labels mean: ``{"yes": True, "no": False}``.
            case_criteria: Let rows bring their own criteria, rubric, rules and threshold, as for ``open_dataset``.
                Those of a ``Case`` always count.
            criteria_field: The field that holds the criteria of a row; the other members are then ignored.
            rubrics: Rubrics that rows may name, by their names.
        """
        frame = open_frame(source)
        field_options = read_fields(fields, table=frame.table)
        criteria = read_case_criteria(case_criteria, criteria_field, rubrics, table=frame.table)
        if frame.columns is not None:
            field_options.check_columns(list(frame.columns))
        dataset = cls(
            lambda _notes: frame.read(),
            name=name,
            fields=field_options,
            on_bad_row=on_bad_row,
            check_ids=check_ids,
            label_map=label_map,
            size=frame.size,
            once=frame.once,
            criteria=criteria,
        )
        dataset.may_judge_itself = criteria.is_asked or not frame.table
        return dataset

    @property
    def bad_rows(self) -> tuple[BadRow, ...]:
        """The first hundred rows that were skipped, with ``on_bad_row="skip"``."""
        return tuple(self._latest.bad)

    @property
    def skipped(self) -> int:
        """The number of rows that were skipped."""
        return self._latest.skipped

    @property
    def notes(self) -> Mapping[str, int]:
        """The things that an importer could not convert, in words, each with how often."""
        return dict(self._latest.notes)

    def __iter__(self) -> Iterator[Case]:
        if self.reads_once and self._was_read:
            raise UsageError(f"{self.name} was read already and can be read once only; name a file, or hand in a list")
        self._was_read = True
        # A new state for each iteration, so that one which is not finished does not count into the next.
        self._latest = _IterationState()
        return self._iterate_cases(self._latest)

    def with_labels(self, labels: Iterable[Label], *, name: str | None = None) -> Dataset:
        """Return a data set with the same cases, and these labels joined to them by id.

        People's labels and overrides become ``labels`` of the case, with ``cannot_tell`` as unknown; a model's labels
        are ignored. If a person labelled a case twice, the later label counts. ``label`` stays if the case has one;
        otherwise it is the value that more than half of these people gave, else unknown. A label whose ``subject`` is
        the digest of another content is left out. ``notes`` counts these, and labels of cases that are not in the data
        set.

        Args:
            labels: The labels, as ``load_labels`` reads them.
            name: The criterion whose labels are taken; by default those of the case as a whole.
        """
        joined = copy(self)
        joined._latest, joined._labels = _IterationState(), list_labels(labels, name)  # noqa: SLF001 - a copy of ours
        self._was_read = self._was_read or self.reads_once  # what can be read once is read by the copy
        return joined

    def refuse(self, reason: str) -> None:
        """Treat the row that was read last as a bad row, for a caller that compares ids itself.

        It is skipped, counted and listed, or raises ``UsageError`` with its place, as ``on_bad_row`` says.

        Args:
            reason: Why it is no case.
        """
        self._refuse_row(self._latest.line, UsageError(reason), self._latest)

    def __repr__(self) -> str:
        return f"Dataset({self.name!r})"

    def _iterate_cases(self, state: _IterationState) -> Iterator[Case]:
        """Yield the cases with the labels joined to them; labels that fit none are noted after the last case."""
        if not self._labels:
            yield from self._read_cases(state)
            return
        labels = LabelJoin(self._labels)
        for case in self._read_cases(state):
            yield labels.join(case)
        if labels.missing:
            state.notes[labels.describe_missing("data set")] = len(labels.missing)
        if labels.other_contents:
            state.notes[OTHER_CONTENTS] = labels.other_contents

    def _read_cases(self, state: _IterationState) -> Iterator[Case]:
        """Yield the case of each good row, and skip or raise for a bad row as ``on_bad_row`` says.

        An error of the source itself, outside of any row, is always raised.
        """
        for line, row in self._read(state.notes):
            state.line = line
            if self._must_seek_content and isinstance(row, Mapping):
                self._seek_content(row, line)
            try:
                case = state.ids.separate(self._make_case(row))
                if self._checks_ids:
                    self._check_id(case.id, line, state.seen)
            except UsageError as error:
                self._refuse_row(line, error, state)
                continue
            yield case

    def _set_fields(self, fields: Fields) -> None:
        """Set the mapping of fields, and what follows from it."""
        self._fields = fields
        self._mapped_paths = frozenset([path for _, path in fields.mapped])
        self._has_plain_rows = fields.strict and not self._label_map  # rows are cases without any conversion

    def _seek_content(self, row: Mapping[str, Any], line: int) -> None:
        """Find in the first row which field is the content by its name, where no other is; all rows are read like it.

        Says so in the log. Raises ``UsageError`` where two fields may be the content.
        """
        self._must_seek_content = False
        try:
            name = None if KEY in row and self._fields.strict else self._fields.find_content(row)
        except UsageError as error:
            raise error.within(f"{self.name}, {self._unit} {line}") from None
        if name is not None:
            self._set_fields(self._fields.take_content(name))
            # Not raised: a ``UsageError`` is how a message has arguments that a command line writes as its options.
            content_message = UsageError(
                "the content is ", show(name), ", by its name; ", Argument("fields['content']")
            )
            task_message = UsageError(*self._describe_unused_tasks(row))
            logger.warning("%s: %s takes another one%s", flatten(self.name, 200), content_message, task_message)

    def _describe_unused_tasks(self, row: Mapping[str, Any]) -> tuple[str | Argument, ...]:
        """Write the parts of a message on fields that are the task by their names and are not taken as it.

        There are none without such a field.
        """
        unused = self._fields.list_tasks(row)
        if not unused:
            return ()
        names = " and ".join(map(show, unused))
        verbs = "becomes metadata and is" if len(unused) == 1 else "become metadata and are"
        option = Argument("fields['task']", repr(unused[0]))
        return f"; {names} {verbs} not shown to the judge, unless ", option, " takes it as the task"

    def _make_case(self, row: Mapping[str, Any] | Case | UsageError) -> Case:
        """Make the case of a row, which may be a case already, or the error that says why it is none.

        Raises ``UsageError`` for a row that cannot be a case.
        """
        if isinstance(row, Case):
            return row
        if isinstance(row, UsageError):
            raise row
        if self._fields.strict and KEY in row:  # in a table it is a column like any other
            row = open_row(row, self._folder)
        needs_no_conversion = self._has_plain_rows and not self._criteria.may_apply(row)
        if needs_no_conversion:  # nearly always
            return make_case(row)
        split = self._criteria.split_row(row, self._mapped_paths)
        rest = self._move_ignored(split) if split.ignored else split.rest
        return make_case(map_labels(self._fields.arrange(rest), self._label_map), split.criteria)

    def _move_ignored(self, split: SplitRow) -> dict[str, Any]:
        """Return the rest of a row with its ignored criteria, rubric, rules and threshold in the metadata.

        There they count for nothing. The first time, the log says that they are ignored.
        """
        if not self.has_warned:
            self.has_warned = True
            names = flatten(", ".join(split.ignored), 200)
            logger.warning(
                "%s: rows say themselves how they are judged (%s), which does not count and is kept as metadata; where "
                "the file is a suite of your own, %s asks for it",
                flatten(self.name, 200),
                names,
                UsageError(Argument("case_criteria")),
            )
        if not self._fields.strict:
            return split.rest
        ignored = {name: split.rest.pop(name) for name in split.ignored}
        metadata = split.rest.get("metadata") or {}
        if not isinstance(metadata, Mapping):
            return split.rest  # refused where the case is made
        return split.rest | {"metadata": {**ignored, **metadata}}

    def _check_id(self, name: str, line: int, seen: dict[str | bytes, int]) -> None:
        """Note in ``seen`` the line of an id. Raises ``UsageError`` for one that an earlier line has."""
        # A digest of what is long: without an id of its own, each case has one of 64 characters.
        key = name if len(name) <= 16 else blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if key in seen:
            raise UsageError(
                f"the id {show(name)} is already on {self._unit} {seen[key]}; give each row an id of its own"
            )
        seen[key] = line

    def _refuse_row(self, line: int, error: UsageError, state: _IterationState) -> None:
        """Count and list a bad row where these are skipped; else raise its error with the line."""
        where = f"{self.name}, {self._unit} {line}"
        if not self._skips_bad_rows:
            raise error.within(where, "; ", Argument("on_bad_row", "'skip'"), " leaves it out") from None
        state.skipped += 1
        if len(state.bad) < MOST_LISTED:
            state.bad.append(BadRow(where=where, line=line, why=str(error), error=error))


def open_dataset(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002 - what everybody calls it
    fields: Mapping[str, str | None] | None = None,
    on_bad_row: OnBadRow = "fail",
    check_ids: bool = True,
    label_map: LabelMap | None = None,
    case_criteria: bool = False,
    criteria_field: str | None = None,
    rubrics: Mapping[str, Rubric] | None = None,
) -> Dataset:
    """Open a file of cases, which are read when you iterate over the data set. ``-`` is standard input.

    A folder is a data set of the transcripts in it, a case each (see ``read_run``), whose ids are their paths.

    Raises ``UsageError`` with file, line, value and remedy: at once for a file that cannot be read, and while iterating
    for a row that cannot be used.

    Args:
        path: The file, or a folder of transcripts. Lines of JSON and tables may be compressed (``.jsonl.gz``). They are
            streamed, like Parquet.
        format: ``jsonl``, ``csv``, ``tsv``, ``json``, ``yaml`` or ``parquet``; by default the suffix tells, and
            standard input is ``jsonl``.
        fields: Which field is which part of a case: ``{"content": "answer", "label": "ok"}``. Use dots for fields
            inside fields. ``None`` leaves a field of that name in the metadata. Where nothing is the content, it is the
            one field called ``output``, ``answer``, ``response`` or ``completion``, and the log says so.
        on_bad_row: ``"fail"`` raises for a row that is not a case; ``"skip"`` counts and lists it.
        check_ids: Whether to find repeated ids, which takes memory for every case.
        label_map: What the words of labels mean: ``{"yes": True, "no": False, "unsure": None}``, or numbers. Case does
            not matter. A row with another word is a bad row.
        case_criteria: Let ``criteria``, ``rubric``, ``rules`` and ``threshold`` of a row say how it is judged. Use it
            only for a suite that you wrote: its author decides what passes. By default these members are ignored, with
            one line in the log, and kept as metadata.
        criteria_field: The field that holds the criteria of a row; the other members are then ignored.
        rubrics: Rubrics that rows may name. A row may also contain a rubric, or name a shipped one, but not a path.
            Rules must be shipped ones.
    """
    name = os.fspath(path)
    if format is None and name != "-" and os.path.isdir(name):  # noqa: PTH112 - of a name that is none it says no, too
        return _open_folder(name, fields, on_bad_row, asks=case_criteria or criteria_field is not None)
    once = check_path(name)
    form, gz = find_format(name, format)
    field_options = read_fields(fields, table=form in TABLES)
    criteria = read_case_criteria(case_criteria, criteria_field, rubrics, table=form in TABLES)
    return Dataset(
        lambda _notes: read_rows(name, form, field_options, gz=gz),
        name="standard input" if name == "-" else name,
        unit="row" if form in {"json", "parquet"} else "line",
        fields=field_options,
        on_bad_row=on_bad_row,
        check_ids=check_ids,
        label_map=label_map,
        once=once,
        path=None if name == "-" else name,
        criteria=criteria,
        folder=None if name == "-" else Path(name).parent,
    )


def _open_folder(name: str, fields: Mapping[str, str | None] | None, on_bad_row: OnBadRow, *, asks: bool) -> Dataset:
    """Open a folder whose transcripts are the cases; ``asks`` is true where criteria of rows were asked for.

    Raises ``UsageError`` for fields and for criteria, which only rows can have.
    """
    if fields or asks:
        option = "fields" if fields else "case_criteria"
        raise UsageError(
            f"{name} is a folder of transcripts, which has no rows; leave out ", Argument(option), argument=option
        )
    return Dataset(
        lambda notes: list_transcripts(name, notes),
        name=name,
        unit="transcript",
        on_bad_row=on_bad_row,
        size=len(list_names(name, {})),
    )
