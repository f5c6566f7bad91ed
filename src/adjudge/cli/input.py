"""What is judged: files, standard input and the cases of data sets, read as they are needed.

What cannot be read is an item that says so; it stops nothing else, and it is never judged as something empty.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adjudge.cli.output import is_terminal
from adjudge.dataset.dataset import Dataset
from adjudge.errors import UsageError
from adjudge.formats.text import QUOTED, show
from adjudge.rules.rule import Rule

LARGEST = 50_000_000
"""Bytes of the largest file that is read at once; a data set may be of any size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputItem:
    """Something to judge: where it came from, and what it is or why it could not be read."""

    name: str
    """The path as it was given; ``-`` is standard input."""
    case: str | None = None
    """The id of a case of a data set."""
    content: Any = None
    """A text, or a ``Case``."""
    error: str | None = None
    """One sentence, where it could not be read or judged."""
    ledger_seq: int | None = None
    """Where its result was recorded."""

    @property
    def label(self) -> str:
        """What a person is shown: an id stands in every message about its case, so a huge one is cut."""
        if self.case is None:
            return self.name
        return f"{self.name}: {self.case if len(self.case) <= QUOTED else show(self.case)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What the command line names, in its order."""

    items: Iterable[InputItem]
    """Read once, while it is judged."""
    total: int | None
    """How many there are; ``None`` while a data set is not read."""
    single: bool
    """Whether exactly one thing was named that is not a data set, so that there is one result."""


def list_inputs(paths: Sequence[str] | None) -> Inputs:
    """What to judge; raises ``UsageError`` when nothing is named and nobody writes to standard input."""
    given = list(paths or ())
    if not given:
        if sys.stdin is None or is_terminal(sys.stdin):
            raise UsageError("nothing to judge: name a file, or - and write to standard input")
        given = ["-"]
    if given.count("-") > 1:
        raise UsageError("- stands for standard input, which can be read once; name it once")
    sets = any(_is_set(path) for path in given)
    # What is not a plain file may keep us waiting (a pipe); read now, before a judge's time begins to run.
    parts = [_read_path(path) if _is_file(path) else list(_read_path(path)) for path in given]
    return Inputs(
        items=(item for part in parts for item in part),
        total=None if sets else len(given),
        single=len(given) == 1 and not sets,
    )


def open_from_options(
    path: str,
    *,
    kind: str | None = None,
    fields: Mapping[str, str | None] | None = None,
    other: Sequence[str] | None = None,
    on_bad_row: str = "fail",
    check_ids: bool = True,
) -> Dataset:
    """The data set that a command line describes with the options of ``options``.

    ``fields`` are ``--content`` and its like by the name of the part: ``None`` was not given, an empty text leaves a
    field of that name in the metadata. ``other`` are the ``PART=F`` of ``--field``.
    """
    from adjudge.dataset.dataset import open_dataset
    from adjudge.dataset.importers.inspect import import_inspect
    from adjudge.dataset.importers.promptfoo import import_promptfoo

    if on_bad_row not in {"fail", "skip"}:
        raise UsageError(f"--on-bad-row must be fail or skip, got {on_bad_row!r}")
    given = {name: field or None for name, field in (fields or {}).items() if field is not None}
    for text in other or ():
        part, sign, field = text.partition("=")
        if not sign or not part or part in given:
            wrong = "is given twice" if part in given else "must be like content.a=FIELD"
            raise UsageError(f"--field {text!r} {wrong}; give each part once, with the field it is in")
        given[part] = field or None
    choice: Any = {"fields": given, "on_bad_row": on_bad_row}
    if kind in {"promptfoo", "inspect"}:
        return (import_promptfoo if kind == "promptfoo" else import_inspect)(path, **choice)
    return open_dataset(path, format=kind, check_ids=check_ids, **choice)


def read_text_file(path: Path, *, what: str) -> str:
    """The text of a file; raises ``UsageError`` naming file, trouble and remedy."""
    try:
        if path.is_dir():
            raise UsageError(f"{what}: {path} is a directory; name the files in it")
        with path.open("rb") as file:
            return _decode(file.read(LARGEST + 1), str(path))
    except OSError as error:
        raise UsageError(f"{what}: cannot read {path}: {error.strerror}; name a file that can be read") from None


def read_rule(text: str) -> Rule:
    """A rule as the command line writes it: its name, or a mapping in YAML."""
    from adjudge.config.judges import importing
    from adjudge.formats.yaml import read_yaml
    from adjudge.rules.shipped import rule_from_spec

    try:
        spec: Any = read_yaml(text)[0]
    except ValueError as error:
        raise UsageError(f"--rule {text!r} is not YAML: {' '.join(str(error).split())}") from None
    spec = {"name": spec} if isinstance(spec, str) else spec
    if not isinstance(spec, dict):
        raise UsageError(f"--rule {text!r} must be a mapping like '{{regex: ^Dear}}' or a rule's name")
    try:
        with importing(f"--rule {text!r}") if "python" in (*spec, spec.get("name")) else nullcontext():
            return rule_from_spec(spec, allow_python=True)
    except UsageError as error:
        said = str(error)
        raise UsageError(said if said.startswith("--rule") else f"--rule {text!r}: {said}") from None


def _read_path(path: str) -> Iterator[InputItem]:
    try:
        if path == "-":
            text = _decode(sys.stdin.buffer.read(LARGEST + 1) if sys.stdin else b"", "standard input")
            yield InputItem(name=path, content=_check_some(text, "standard input"))
        elif _is_set(path):
            yield from _read_set(path)
        else:
            yield InputItem(name=path, content=_check_some(read_text_file(Path(path), what="the content"), path))
    except UsageError as error:
        yield InputItem(name=path, error=str(error))


def _read_set(path: str) -> Iterator[InputItem]:
    found = False
    try:
        for case in open_from_options(path):
            found = True
            yield InputItem(name=path, case=case.id, content=case)
    except UsageError as error:
        raise UsageError(
            f"{error} (the cases before it were judged, those after it were not)" if found else str(error)
        ) from None
    if not found:
        # Exit status 0 for nothing judged would look like a pass.
        raise UsageError(f"{path} holds no case, so there is nothing to judge; write one JSON object per line")


def _check_some(text: str, name: str) -> str:
    """An empty file is a step before this one that went wrong, far more often than an answer that is empty."""
    if text.strip():
        return text
    raise UsageError(f"{name} is empty, so there is nothing to judge; an empty answer can be a case of a .jsonl file")


def _decode(raw: bytes, name: str) -> str:
    if len(raw) > LARGEST:
        raise UsageError(f"{name} is larger than {LARGEST // 1_000_000} MB; judge it in parts")
    if b"\x00" in raw:
        raise UsageError(f"{name} is binary (a NUL byte at {raw.index(0):,}); only text is judged, so convert it first")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is not UTF-8 text (byte {error.start:,}); convert it first") from None


def _is_set(path: str) -> bool:
    # Not .csv, .json and .yaml: such a file may be what is to be judged, as it stands.
    return path.lower().endswith((".jsonl", ".ndjson", ".parquet", ".jsonl.gz", ".ndjson.gz", ".csv.gz", ".tsv.gz"))


def _is_file(path: str) -> bool:
    try:
        return path != "-" and Path(path).is_file()
    except OSError:  # a name that is too long
        return False
