"""A data set: cases that are read when they are needed, and as often as they are."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Literal

from adjudge.dataset.case import Case, make_case
from adjudge.dataset.fields import Fields, read_fields
from adjudge.dataset.formats import TABLES, check_path, find_format, read_rows
from adjudge.dataset.frames import Given, open_frame
from adjudge.errors import UsageError
from adjudge.formats.text import show

MOST_LISTED = 100
"""Bad rows that are kept with the reason; the others are counted."""


OnBadRow = Literal["fail", "skip"]

Notes = Counter[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRow:
    """A row that is no case."""

    where: str
    """The data set and the line, or the row where there are no lines."""
    line: int
    """Its line in the file, from 1; in JSON, Parquet and frames, which row it is."""
    why: str
    """One sentence: what is wrong, and the remedy."""


@dataclass(slots=True)
class _Reading:
    """What one reading found besides cases."""

    bad: list[BadRow] = field(default_factory=list)
    skipped: int = 0
    notes: Notes = field(default_factory=Counter)
    seen: dict[str | bytes, int] = field(default_factory=dict)
    """Where each id stands."""
    line: int = 0
    """Where the latest row stands."""


def add_note(notes: Notes, said: str) -> None:
    """Count something that was not carried over; what is said comes from a file, so there may be no end of it."""
    notes[said if said in notes or len(notes) < MOST_LISTED else "more of other kinds"] += 1


class Dataset:
    """Cases from a file, a frame or a program. Iterating reads them anew, one at a time, so size is bounded by disk.

    Made by ``open_dataset`` and ``Dataset.of``. ``bad_rows``, ``skipped`` and ``notes`` tell of the latest reading.
    """

    def __init__(
        self,
        read: Callable[[Notes], Iterable[Given]],
        *,
        name: str,
        unit: str = "row",
        fields: Fields | None = None,
        on_bad_row: OnBadRow = "fail",
        check_ids: bool = True,
        size: int | None = None,
        once: bool = False,
        path: str | None = None,
    ) -> None:
        if on_bad_row not in {"fail", "skip"}:
            raise UsageError(f"on_bad_row must be 'fail' or 'skip', got {show(on_bad_row)}")
        self.name = name
        """The path, or what a program called it."""
        self.path = path
        """The file it is read from; ``None`` for standard input, and for what a program holds."""
        self.size = size
        """How many rows there are, where that is known without reading them."""
        self._read = read
        self._unit = unit
        self._fields = fields or Fields()
        self._skips = on_bad_row == "skip"
        self._checks_ids = check_ids
        self._once = once
        self._was_read = False
        self._latest = _Reading()

    @classmethod
    def of(
        cls,
        source: object,
        *,
        name: str = "data",
        fields: Mapping[str, str | None] | None = None,
        on_bad_row: OnBadRow = "fail",
        check_ids: bool = True,
    ) -> Dataset:
        """The cases in what a program holds.

        ``source`` is a list, a generator, or a function that makes one, of cases, mappings, texts or lists of chat
        messages; a frame of pandas or polars, an Arrow table, a Hugging Face data set. A generator can be read once.
        The other parameters are those of ``open_dataset``; ``name`` is what messages call it.
        """
        frame = open_frame(source)
        spec = read_fields(fields, table=frame.table)
        if frame.columns is not None:
            spec.check_columns(list(frame.columns))
        return cls(
            lambda _notes: frame.read(),
            name=name,
            fields=spec,
            on_bad_row=on_bad_row,
            check_ids=check_ids,
            size=frame.size,
            once=frame.once,
        )

    @property
    def bad_rows(self) -> tuple[BadRow, ...]:
        """The first hundred rows that were skipped, with ``on_bad_row="skip"``."""
        return tuple(self._latest.bad)

    @property
    def skipped(self) -> int:
        """How many rows were skipped."""
        return self._latest.skipped

    @property
    def notes(self) -> Mapping[str, int]:
        """What an importer could not carry over, in words, and how often."""
        return dict(self._latest.notes)

    def __iter__(self) -> Iterator[Case]:
        if self._once and self._was_read:
            raise UsageError(f"{self.name} was read already and can be read once only; hand in a file or a list")
        self._was_read = True
        # Of its own for each reading, so that one which is half-way does not count into the next.
        self._latest = _Reading()
        return self._iterate(self._latest)

    def refuse(self, why: str) -> None:
        """Treat the row that was read last as one that is no case, for whoever compares ids elsewhere.

        It is skipped, counted and listed, or raises ``UsageError`` with its place, as ``on_bad_row`` says.
        """
        self._refuse(self._latest.line, UsageError(why), self._latest)

    def __repr__(self) -> str:
        return f"Dataset({self.name!r})"

    def _iterate(self, reading: _Reading) -> Iterator[Case]:
        for line, row in self._read(reading.notes):
            reading.line = line
            try:
                case = self._make(row)
                if self._checks_ids:
                    self._check_id(case.id, line, reading.seen)
            except UsageError as error:
                self._refuse(line, error, reading)
                continue
            yield case

    def _make(self, row: Mapping[str, Any] | Case | UsageError) -> Case:
        if isinstance(row, Case):
            return row
        if isinstance(row, UsageError):
            raise row
        return make_case(self._fields.arrange(row))

    def _check_id(self, name: str, line: int, seen: dict[str | bytes, int]) -> None:
        # A digest of what is long: without an id of its own, each case has one of 64 characters.
        key = name if len(name) <= 16 else blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if key in seen:
            raise UsageError(
                f"the id {show(name)} stands on {self._unit} {seen[key]} already; give each row an id of its own"
            )
        seen[key] = line

    def _refuse(self, line: int, error: UsageError, reading: _Reading) -> None:
        where = f"{self.name}, {self._unit} {line}"
        if not self._skips:
            raise UsageError(f"{where}: {error}; on_bad_row='skip' (--on-bad-row skip) goes on without it") from None
        reading.skipped += 1
        if len(reading.bad) < MOST_LISTED:
            reading.bad.append(BadRow(where=where, line=line, why=str(error)))


def open_dataset(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002 - what everybody calls it
    fields: Mapping[str, str | None] | None = None,
    on_bad_row: OnBadRow = "fail",
    check_ids: bool = True,
) -> Dataset:
    """The cases of a file, read when it is iterated; ``-`` is standard input.

    ``format`` is ``jsonl``, ``csv``, ``tsv``, ``json``, ``yaml`` or ``parquet``; by default the suffix tells (standard
    input: ``jsonl``). Lines of JSON and tables may be compressed (``.jsonl.gz``), and are streamed like Parquet.
    ``fields`` says which field is which part of a case (``{"content": "answer", "label": "ok"}``; paths with dots reach
    inside, ``None`` leaves a field of that name in the metadata). ``on_bad_row="skip"`` counts and lists what is no
    case where ``"fail"`` raises. ``check_ids=False`` leaves finding repeated ids to the caller, since that
    takes memory for every case. Raises ``UsageError`` naming file, line, value and remedy, here for a file that
    cannot be read and while iterating for what is in it.
    """
    name = os.fspath(path)
    form, gz = find_format(name, format)
    once = check_path(name)
    spec = read_fields(fields, table=form in TABLES)
    return Dataset(
        lambda _notes: read_rows(name, form, spec, gz=gz),
        name="standard input" if name == "-" else name,
        unit="row" if form in {"json", "parquet"} else "line",
        fields=spec,
        on_bad_row=on_bad_row,
        check_ids=check_ids,
        once=once,
        path=None if name == "-" else name,
    )
