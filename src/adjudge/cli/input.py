"""The contents to judge: files, standard input and the cases of data sets, read as they are needed.

A file that cannot be read becomes an ``InputItem`` with an error. It does not stop the others, and it is never judged
as an empty content.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adjudge.cli.error_messages import format_error
from adjudge.cli.folder import list_texts
from adjudge.cli.options import DataOptions, MaterialOptions
from adjudge.cli.output import is_terminal
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
"""Formats of test suites whose cases bring their own criteria; naming one with ``--from`` asks for these criteria."""

LARGEST_INPUT = 50_000_000
"""Bytes of the largest file that is read at once; a data set may be of any size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputItem:
    """One content to judge: its name, and the content or the reason why it could not be read."""

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
    """A sentence for each folder with files that are not judged, and for each table that is judged as one text."""


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
    single = len(names) == 1 and not _is_data_set(names[0]) and not (folders and _is_folder(names[0]))
    sources, folder_notes = _expand_folders(names) if folders else (names, [])
    are_data_sets = [isinstance(source, str) and _is_data_set(source) for source in sources]
    case_criteria = case_criteria or CaseCriteria()
    if case_criteria.is_asked and not all(are_data_sets):
        raise UsageError("--case-criteria and --criteria-field are about cases; name data sets, like CASES.jsonl")
    if label_map is not None and not any(are_data_sets):
        raise UsageError("--label-map is for the labels of a data set, and none is named; leave it out")
    sizes = [
        count_rows(str(source)) if is_data_set else 1
        for source, is_data_set in zip(sources, are_data_sets, strict=True)
    ]
    # A source that is no plain file, such as a pipe, may keep us waiting. It is read now, before a judge's time limit
    # begins to run; plain files are read when their turn comes.
    iterators = [_read_path(source, case_criteria, label_map) for source in sources]
    items_by_source = [
        items if _is_file(source) else list(items) for source, items in zip(sources, iterators, strict=True)
    ]
    return Inputs(
        items=(item for items in items_by_source for item in items),
        total=None if None in sizes else sum(size or 0 for size in sizes),
        single=single,
        notes=(*folder_notes, *(_note_table(name) for name in names if _is_table(name))),
    )


def _is_table(path: str) -> bool:
    return path.lower().endswith((".csv", ".tsv"))


def _note_table(path: str) -> str:
    """Write the note that a table is judged as one text, because a user more often means it as a data set."""
    return f"{path} is judged as one text; for its rows: adjudge run {shlex.quote(path)}"


def _expand_folders(paths: Sequence[str]) -> tuple[list[str | InputItem], list[str]]:
    """Replace each folder by the text files in it, and return all sources, and a sentence for each folder with skips.

    A folder that cannot be read becomes an ``InputItem`` with its error.
    """
    sources: list[str | InputItem] = []
    folder_notes: list[str] = []
    for path in paths:
        try:
            texts, sentence = list_texts(path) if _is_folder(path) else ([path], None)
        except UsageError as error:
            sources.append(InputItem(name=path, error=format_error(error)))
            continue
        sources += texts
        folder_notes += [sentence] if sentence is not None else []
    return sources, folder_notes


TOOL_FORMATS = ("inspect", "langfuse", "langsmith", "mlflow", "openai-evals", "phoenix", "promptfoo")
"""Other tools whose files are read, as ``--from`` names them."""

ANNOTATION_TOOLS = ("langfuse", "langsmith", "mlflow", "phoenix")
"""The tools of ``TOOL_FORMATS`` in which people annotate."""


def open_from_options(
    path: str, options: DataOptions, *, case_criteria: CaseCriteria | None = None, check_ids: bool = True
) -> Dataset:
    """Open the data set that the options describe: a file of adjudge's formats, or an export of another tool.

    ``case_criteria`` says which criteria the rows may bring. ``check_ids`` is false where the caller looks for ids that
    occur twice. Raises ``UsageError`` for options that are about another kind of file.
    """
    from adjudge import dataset

    kind, label_name = options.kind, options.label_name
    if kind is not None:
        check_choice("format", kind, (*FORMATS, *TOOL_FORMATS))
    if label_name is not None and options.label_file is None and kind not in ANNOTATION_TOOLS:
        raise UsageError("--label-name chooses among the annotations of a tool or of --label-file; leave it out here")
    label_map = parse_label_map(options.label_map) if options.label_map is not None else None
    case_criteria = case_criteria or CaseCriteria()
    arguments: Any = {"fields": _map_fields(options), "on_bad_row": options.on_bad_row, "label_map": label_map}
    if kind in TOOL_FORMATS:
        if case_criteria.is_asked:
            raise UsageError(f"--case-criteria and --criteria-field are for rows of ours; leave them out with {kind}")
        arguments |= {"label_name": label_name} if kind in ANNOTATION_TOOLS else {}
        # Such as import_promptfoo.
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
    return opened.with_labels(load_labels(options.label_file, label_map=label_map), name=label_name)


def _map_fields(options: DataOptions) -> dict[str, str | None]:
    """Map parts of a case (``content``, ``label``, ...) to the fields of a row that hold them, as the options say.

    ``None`` (an option with an empty text) means that no field holds the part; a field of its name is metadata then.
    Raises ``UsageError`` for a ``--field`` of another form, or about a part that an option gave already.
    """
    field_options = {
        "content": options.content,
        "reference": options.reference,
        "task": options.task,
        "context": options.context,
        "label": options.label,
        "id": options.name,
        "group": options.group,
    }
    fields = {part: field or None for part, field in field_options.items() if field is not None}
    for text in options.other or ():
        part, sign, field = text.partition("=")
        if not sign or not part or part in fields:
            problem = "is given twice" if part in fields else "must be like content.a=FIELD"
            raise UsageError(f"--field {text!r} {problem}; give each part once, with the field it is in")
        fields[part] = field or None
    return fields


def read_material(options: MaterialOptions) -> dict[str, Any]:
    """Read the files of ``--reference``, ``--task`` and ``--context`` that were given; return their texts by name."""
    files = {"reference": options.reference, "task": options.task, "context": options.context}
    return {name: read_text_file(path, described_as=f"--{name}") for name, path in files.items() if path is not None}


def read_text_file(path: Path, *, described_as: str) -> str:
    """Read the text of a file; raises ``UsageError`` where it cannot be read.

    ``described_as`` begins the message: the option that named the file, or what the file is.
    """
    try:
        if path.is_dir():
            raise UsageError(f"{described_as}: {path} is a directory; name the files in it")
        with open_regular(path) as file:
            return _decode(file.read(LARGEST_INPUT + 1), str(path))
    except OSError as error:
        raise UsageError(
            f"{described_as}: cannot read {path}: {error.strerror}; name a file that can be read"
        ) from None


def read_rule(text: str) -> Rule:
    """Read a rule from the text of ``--rule``: its name, or a mapping in YAML.

    A rule that is Python code is imported. Raises ``UsageError`` for a text that is no rule.
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
        code = find_code(spec)  # "module:function", or None for a rule without code
        with nullcontext() if code is None else importing(f"--rule {text!r}", code):
            return rule_from_spec(spec, allow_python=True)
    except UsageError as error:
        raise error if str(error).startswith("--rule") else error.within(f"--rule {text!r}") from None


def _read_path(path: str | InputItem, case_criteria: CaseCriteria, label_map: str | None) -> Iterator[InputItem]:
    """Yield the inputs at a path: one content, or each case of a data set.

    An error ends them: it is yielded as an input with the reason. So is a path that is such an ``InputItem`` already.
    """
    if isinstance(path, InputItem):
        yield path
        return
    try:
        if path == "-":
            text = _decode(sys.stdin.buffer.read(LARGEST_INPUT + 1) if sys.stdin else b"", "standard input")
            yield InputItem(name=path, content=_check_not_empty(text, "standard input"))
        elif _is_data_set(path):
            yield from _read_data_set(path, case_criteria, label_map)
        else:
            text = read_text_file(Path(path), described_as="the content")
            yield InputItem(name=path, content=_check_not_empty(text, path))
    except UsageError as error:
        yield InputItem(name=path, error=format_error(error))


def _read_data_set(path: str, case_criteria: CaseCriteria, label_map: str | None) -> Iterator[InputItem]:
    """Yield each case of a data set.

    Raises ``UsageError`` for a set without cases, and where it cannot be read further.
    """
    has_cases = False
    try:
        for case in open_from_options(path, DataOptions(label_map=label_map), case_criteria=case_criteria):
            has_cases = True
            yield InputItem(name=path, case=case.id, content=case)
    except UsageError as error:
        if has_cases:
            raise UsageError(error, " (the cases before it were judged, those after it were not)") from None
        raise
    if not has_cases:
        # Exit status 0 for nothing judged would look like a pass.
        raise UsageError(f"{path} holds no case, so there is nothing to judge; write one JSON object per line")


def _check_not_empty(text: str, name: str) -> str:
    """Return a text; raises ``UsageError`` for an empty one, because most often a step before has failed then."""
    if text.strip():
        return text
    raise UsageError(f"{name} is empty, so there is nothing to judge; an empty answer can be a case of a .jsonl file")


def _decode(raw: bytes, name: str) -> str:
    """Decode a text in UTF-8, and drop its byte order mark.

    Raises ``UsageError`` for one that is too large, binary or in another encoding.
    """
    if len(raw) > LARGEST_INPUT:
        raise UsageError(f"{name} is larger than {LARGEST_INPUT // 1_000_000} MB; judge it in parts")
    if b"\x00" in raw:
        raise UsageError(f"{name} is binary (a NUL byte at {raw.index(0):,}); only text is judged, so convert it first")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is not UTF-8 text (byte {error.start:,}); convert it first") from None


def _is_data_set(path: str) -> bool:
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
