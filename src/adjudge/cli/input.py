"""The contents to judge: files, standard input and the cases of data sets, read as they are needed.

What cannot be read is an item that says so; it stops nothing else, and it is never judged as something empty.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adjudge.cli.folder import list_texts
from adjudge.cli.options import DataOptions, MaterialOptions
from adjudge.cli.output import is_terminal
from adjudge.cli.spelling import spell
from adjudge.dataset.case_criteria import CaseCriteria
from adjudge.dataset.dataset import Dataset
from adjudge.dataset.formats import FORMATS, count_rows
from adjudge.dataset.label_file import load_labels
from adjudge.dataset.label_map import parse_label_map
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_choice
from adjudge.formats.files import open_regular
from adjudge.formats.text import QUOTED, show
from adjudge.rules.rule import Rule

SUITES = frozenset(("promptfoo", "openai-evals"))
"""Kinds of data that say themselves by what their cases are judged: to read one as such is to ask for that."""

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
    """The place of its result in the ledger."""

    @property
    def label(self) -> str:
        """The name that a person is shown: an id is in every message about its case, so a huge one is cut."""
        if self.case is None:
            return self.name
        return f"{self.name}: {self.case if len(self.case) <= QUOTED else show(self.case)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """The contents that the command line names, in its order."""

    items: Iterable[InputItem]
    """Read once, while it is judged."""
    total: int | None
    """Their number; ``None`` where the rows of a data set cannot be counted before they are read."""
    single: bool
    """True if exactly one content was named, and no data set or folder, so that there is one result."""
    notes: tuple[str, ...] = ()
    """A sentence for each folder of which something is not judged, and for each table that is judged as one text."""


def list_inputs(
    paths: Sequence[str] | None,
    case_criteria: CaseCriteria | None = None,
    *,
    label_map: str | None = None,
    folders: bool = False,
) -> Inputs:
    """List what to judge; raises ``UsageError`` when nothing is named and nobody writes to standard input.

    With ``folders``, a folder means the text files in it.
    """
    names = list(paths or ())
    if not names:
        if sys.stdin is None or is_terminal(sys.stdin):
            raise UsageError("nothing to judge: name a file, or - and write to standard input")
        names = ["-"]
    if names.count("-") > 1:
        raise UsageError("- means standard input, which can be read once; name it once")
    single = len(names) == 1 and not _is_set(names[0]) and not (folders and _is_folder(names[0]))
    sources, left_out = _expand(names) if folders else (names, [])
    are_sets = [isinstance(source, str) and _is_set(source) for source in sources]
    case_criteria = case_criteria or CaseCriteria()
    if case_criteria.is_asked and not all(are_sets):
        raise UsageError("--case-criteria and --criteria-field are about cases; name data sets, like CASES.jsonl")
    if label_map is not None and not any(are_sets):
        raise UsageError("--label-map is for the labels of a data set, and none is named; leave it out")
    sizes = [count_rows(str(source)) if is_set else 1 for source, is_set in zip(sources, are_sets, strict=True)]
    # What is not a plain file may keep us waiting (a pipe); read now, before a judge's time begins to run.
    read = [_read_path(source, case_criteria, label_map) for source in sources]
    parts = [part if _is_file(source) else list(part) for source, part in zip(sources, read, strict=True)]
    return Inputs(
        items=(item for part in parts for item in part),
        total=None if None in sizes else sum(size or 0 for size in sizes),
        single=single,
        notes=(*left_out, *(_note_table(name) for name in names if _is_table(name))),
    )


def _is_table(path: str) -> bool:
    return path.lower().endswith((".csv", ".tsv"))


def _note_table(path: str) -> str:
    """Say that a table is one content: it may be what is to be judged, and is more often a data set."""
    return f"{path} is judged as one text; for its rows: adjudge run {shlex.quote(path)}"


def _expand(paths: Sequence[str]) -> tuple[list[str | InputItem], list[str]]:
    """The texts of each folder in its place, and a sentence for each of which something is left out."""
    sources: list[str | InputItem] = []
    left_out: list[str] = []
    for path in paths:
        try:
            texts, sentence = list_texts(path) if _is_folder(path) else ([path], None)
        except UsageError as error:
            sources.append(InputItem(name=path, error=spell(error)))
            continue
        sources += texts
        left_out += [sentence] if sentence is not None else []
    return sources, left_out


KINDS = ("inspect", "langfuse", "langsmith", "mlflow", "openai-evals", "phoenix", "promptfoo")
"""Other tools whose files are read."""

ANNOTATED = ("langfuse", "langsmith", "mlflow", "phoenix")
"""Those of them in which people annotate."""


def open_from_options(
    path: str, options: DataOptions, *, case_criteria: CaseCriteria | None = None, check_ids: bool = True
) -> Dataset:
    """Open the data set that a command line describes; its rows may bring ``case_criteria``.

    Raises ``UsageError`` for options that are about another kind of file.
    """
    from adjudge import dataset

    kind, label_name = options.kind, options.label_name
    if kind is not None:
        check_choice("format", kind, (*FORMATS, *KINDS))
    if label_name is not None and options.label_file is None and kind not in ANNOTATED:
        raise UsageError("--label-name chooses among the annotations of a tool or of --label-file; leave it out here")
    words = parse_label_map(options.label_map) if options.label_map is not None else None
    case_criteria = case_criteria or CaseCriteria()
    arguments: Any = {"fields": _map_fields(options), "on_bad_row": options.on_bad_row, "label_map": words}
    if kind in KINDS:
        if case_criteria.is_asked:
            raise UsageError(f"--case-criteria and --criteria-field are for rows of ours; leave them out with {kind}")
        arguments |= {"label_name": label_name} if kind in ANNOTATED else {}
        opened: Dataset = getattr(dataset, f"import_{kind.replace('-', '_')}")(path, **arguments)
    else:
        arguments |= {
            "case_criteria": case_criteria.members,
            "criteria_field": case_criteria.criteria_field,
            "rubrics": case_criteria.rubrics,
        }
        opened = dataset.open_dataset(path, format=kind, check_ids=check_ids, **arguments)
    if options.label_file is None:
        return opened
    return opened.with_labels(load_labels(options.label_file, label_map=words), name=label_name)


def _map_fields(options: DataOptions) -> dict[str, str | None]:
    """Name the field of each part; an empty text leaves a field of that name in the metadata.

    Raises ``UsageError`` for a part that is unknown or named twice.
    """
    named = {
        "content": options.content,
        "reference": options.reference,
        "task": options.task,
        "context": options.context,
        "label": options.label,
        "id": options.name,
        "group": options.group,
    }
    fields = {part: field or None for part, field in named.items() if field is not None}
    for text in options.other or ():
        part, sign, field = text.partition("=")
        if not sign or not part or part in fields:
            wrong = "is given twice" if part in fields else "must be like content.a=FIELD"
            raise UsageError(f"--field {text!r} {wrong}; give each part once, with the field it is in")
        fields[part] = field or None
    return fields


def read_material(options: MaterialOptions) -> dict[str, Any]:
    """Read the files that belong to a content, by the part that each is."""
    files = {"reference": options.reference, "task": options.task, "context": options.context}
    return {part: read_text_file(path, what=f"--{part}") for part, path in files.items() if path is not None}


def read_text_file(path: Path, *, what: str) -> str:
    """The text of a file; raises ``UsageError`` naming file, trouble and remedy."""
    try:
        if path.is_dir():
            raise UsageError(f"{what}: {path} is a directory; name the files in it")
        with open_regular(path) as file:
            return _decode(file.read(LARGEST + 1), str(path))
    except OSError as error:
        raise UsageError(f"{what}: cannot read {path}: {error.strerror}; name a file that can be read") from None


def read_rule(text: str) -> Rule:
    """A rule as the command line writes it: its name, or a mapping in YAML.

    Raises ``UsageError`` for a text that is neither.
    """
    from adjudge.config.modules import find_code, importing
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
        code = find_code(spec)
        with nullcontext() if code is None else importing(f"--rule {text!r}", code):
            return rule_from_spec(spec, allow_python=True)
    except UsageError as error:
        raise error if str(error).startswith("--rule") else error.within(f"--rule {text!r}") from None


def _read_path(path: str | InputItem, case_criteria: CaseCriteria, label_map: str | None) -> Iterator[InputItem]:
    """Yield the inputs at a path: one content, or each case of a data set; an error is an input that says why."""
    if isinstance(path, InputItem):
        yield path
        return
    try:
        if path == "-":
            text = _decode(sys.stdin.buffer.read(LARGEST + 1) if sys.stdin else b"", "standard input")
            yield InputItem(name=path, content=_check_some(text, "standard input"))
        elif _is_set(path):
            yield from _read_set(path, case_criteria, label_map)
        else:
            yield InputItem(name=path, content=_check_some(read_text_file(Path(path), what="the content"), path))
    except UsageError as error:
        yield InputItem(name=path, error=spell(error))


def _read_set(path: str, case_criteria: CaseCriteria, label_map: str | None) -> Iterator[InputItem]:
    """Yield each case of a data set.

    Raises ``UsageError`` for a set without cases, and where it cannot be read further.
    """
    begun = False
    try:
        for case in open_from_options(path, DataOptions(label_map=label_map), case_criteria=case_criteria):
            begun = True
            yield InputItem(name=path, case=case.id, content=case)
    except UsageError as error:
        if begun:
            raise UsageError(error, " (the cases before it were judged, those after it were not)") from None
        raise
    if not begun:
        # Exit status 0 for nothing judged would look like a pass.
        raise UsageError(f"{path} holds no case, so there is nothing to judge; write one JSON object per line")


def _check_some(text: str, name: str) -> str:
    """An empty file is a step before this one that went wrong, far more often than an answer that is empty."""
    if text.strip():
        return text
    raise UsageError(f"{name} is empty, so there is nothing to judge; an empty answer can be a case of a .jsonl file")


def _decode(raw: bytes, name: str) -> str:
    """Decode a text in UTF-8, and drop its byte order mark.

    Raises ``UsageError`` for one that is too large, binary or in another encoding.
    """
    if len(raw) > LARGEST:
        raise UsageError(f"{name} is larger than {LARGEST // 1_000_000} MB; judge it in parts")
    if b"\x00" in raw:
        raise UsageError(f"{name} is binary (a NUL byte at {raw.index(0):,}); only text is judged, so convert it first")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is not UTF-8 text (byte {error.start:,}); convert it first") from None


def _is_set(path: str) -> bool:
    # Not .csv, .json and .yaml: such a file may itself be what is to be judged.
    return path.lower().endswith((".jsonl", ".ndjson", ".parquet", ".jsonl.gz", ".ndjson.gz", ".csv.gz", ".tsv.gz"))


def _is_folder(path: str) -> bool:
    try:
        return path != "-" and Path(path).is_dir()
    except OSError:  # a name that is too long
        return False


def _is_file(path: str | InputItem) -> bool:
    try:
        return isinstance(path, str) and path != "-" and Path(path).is_file()
    except OSError:  # a name that is too long
        return False
