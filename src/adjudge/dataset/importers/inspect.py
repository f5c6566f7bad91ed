"""Samples of Inspect as cases: its data sets, and its logs, which have the answers too."""

from __future__ import annotations

import os
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase
from typing import IO, Any, BinaryIO

from adjudge.dataset.case import check_text
from adjudge.dataset.dataset import Dataset, Notes, OnBadRow, add_note
from adjudge.dataset.fields import Fields, read_fields, select_mapped
from adjudge.dataset.formats import (
    LARGEST_JSON,
    Row,
    check_path,
    compute_unpacked_limit,
    find_format,
    import_parquet,
    make_expanding_error,
    open_bytes,
    read_rows,
    read_whole,
)
from adjudge.dataset.importers.inspect_scores import Ratings, Verdict, find_majority, list_verdicts, load_ratings
from adjudge.dataset.label_map import LabelMap
from adjudge.errors import Argument, UsageError
from adjudge.formats.json import read_json
from adjudge.formats.text import flatten, list_names, show

_ZSTD = 93
"""The compression of the members of a log by Inspect 0.3.285; older ones are deflated, which every Python reads."""

_WHOLE = re.compile(r"samples/.+_epoch_([0-9]+)\.json", re.DOTALL)
"""The name of a member of a log that is a whole sample, with its epoch."""

_PIECES = re.compile(r"samples/.+_epoch_([0-9]+)/sample\.json", re.DOTALL)
"""The name of a member of a log that is a part of a sample, with its epoch."""

_CONVERT = "write it as JSON with `inspect log convert LOG --to json --output-dir DIR`"

_METHODS = frozenset((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, _ZSTD))

_ZSTD_ERROR: type[Exception] = getattr(getattr(zipfile, "zstd", None), "ZstdError", zlib.error)

_BROKEN = (zipfile.BadZipFile, zlib.error, _ZSTD_ERROR, EOFError, OSError, RuntimeError, ValueError)
"""The errors that a damaged member raises; RuntimeError is a password, or what this Python cannot do."""


def read_log(text: str) -> Any:
    """Read the JSON of a log; Inspect writes ``NaN`` as the value of a score that could not be given."""
    return read_json(text, nan_is_null=True)


def read_packed(name: str) -> Iterator[Any]:
    """Yield the samples of a log in a ZIP archive, one in memory at a time; for one that cannot be read, its error."""
    with open_bytes(name) as file, _open_zip(file, name) as archive:
        # By name, since a sample that was scored again is in the archive twice, and the last one counts.
        latest = {member.filename: member for member in archive.infolist()}
        members = [member for path, member in latest.items() if _WHOLE.fullmatch(path) or _PIECES.fullmatch(path)]
        if not members:
            raise UsageError(f"{name} holds no samples; was the run cut off before the first one ended?")
        if sum(member.file_size for member in members) > compute_unpacked_limit(file):
            raise make_expanding_error(name)
        has_epochs = any(_find_epoch(member.filename) != "1" for member in members)
        for member in members:
            try:
                yield open_logged(_read_member(archive, member), epochs=has_epochs)
            except UsageError as error:
                yield error


@contextmanager
def _open_zip(file: BinaryIO, name: str) -> Iterator[zipfile.ZipFile]:
    """Open the ZIP archive of a log; raise ``UsageError`` for a file that is none."""
    try:
        archive = zipfile.ZipFile(file)
    except _BROKEN as error:
        raise UsageError(f"{name} is no packed log ({flatten(str(error))}); was it written to its end?") from None
    with archive:
        yield archive


def _find_epoch(path: str) -> str | None:
    """Find the epoch in the name of a sample's member."""
    match = _WHOLE.fullmatch(path) or _PIECES.fullmatch(path)
    return match and match[1]


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Any:
    """Read a sample of a packed log. Raises ``UsageError`` for one that is in pieces, too large or damaged."""
    path = show(member.filename)
    if _PIECES.fullmatch(member.filename):
        raise UsageError(f"the sample {path} is stored in pieces, which are not read; {_CONVERT}")
    # The size is what the file says of itself, so no more than that is unpacked, whatever is there: a few bytes of a
    # zip can stand for a disk full.
    if member.file_size > LARGEST_JSON:
        raise UsageError(f"the sample {path} is larger than {LARGEST_JSON // 1_000_000} MB, so it is not read")
    try:
        return read_log(_check_complete(_unpack_sample(archive, member), member).decode())
    except UsageError:
        raise
    except (*_BROKEN, RecursionError) as error:
        raise UsageError(f"the sample {path} cannot be read ({flatten(str(error))}); copy the log again") from None


def _check_complete(content: bytes, member: zipfile.ZipInfo) -> bytes:
    """Return the unpacked bytes of a member; raise ``ValueError`` unless size and checksum are as the archive says."""
    if len(content) != member.file_size or zlib.crc32(content) != member.CRC:
        raise ValueError("its size or its checksum is another")
    return content


def _unpack_sample(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Unpack a sample of a log, also one packed with Zstandard, to at most one byte more than its stated size.

    Raises ``UsageError``.
    """
    if member.compress_type not in _METHODS:  # another would raise errors of its own kinds
        raise UsageError(f"the sample {show(member.filename)} is compressed as no log is; {_CONVERT}")
    most = member.file_size + 1
    try:
        with archive.open(member) as stream:
            return stream.read(most)
    except NotImplementedError:
        if member.compress_type != _ZSTD:
            raise
    # This Python unpacks no Zstandard. So the packed bytes are read as if they were stored, and unpacked here. The CRC
    # is of the unpacked bytes, which ``_check_complete`` compares.
    stored = copy(member)
    stored.compress_type, stored.file_size = zipfile.ZIP_STORED, member.compress_size
    stored.CRC = None  # type: ignore[assignment]  # pyrefly: ignore
    with archive.open(stored) as stream:
        return _unpack_zstd(stream, most)


def _unpack_zstd(stream: IO[bytes], most: int) -> bytes:
    """Return at most ``most`` bytes that pyarrow unpacks, for a Python that has no Zstandard.

    Raises ``UsageError`` where pyarrow is not installed.
    """
    try:
        pa, _ = import_parquet("a packed log")
    except UsageError:
        raise UsageError(
            "the log is compressed with zstd, which Python reads from 3.14 on; "
            f"pip install 'adjudge[parquet]' reads it too, or {_CONVERT}"
        ) from None
    with pa.CompressedInputStream(pa.PythonFile(stream, mode="r"), "zstd") as unpacked:
        return unpacked.read(most)


def open_logged(sample: Any, *, epochs: bool) -> Any:
    """Convert a sample of a log to one of a data set with its answer under ``output``.

    With ``epochs`` the epoch becomes part of the id. Raises ``UsageError`` where there is no answer.
    """
    if not isinstance(sample, dict):
        return sample
    members = {
        key: sample[key] for key in ("id", "input", "target", "choices", "metadata") if sample.get(key) is not None
    }
    if isinstance(members.get("input"), list):
        members["input"] = [_strip_message(message) for message in members["input"]]
    if epochs and "id" in members:
        members["id"] = f"{sample['id']}, epoch {sample.get('epoch')}"
    extras = {key: sample[key] for key in ("epoch", "scores", "limit") if sample.get(key)}
    converted = members | {"output": _find_answer(sample)} | extras
    check_text(converted)
    return converted


def _strip_message(message: Any) -> Any:
    """Return a message without ``id`` and ``source``, which differ in every run of the same task.

    Otherwise the same question would be another one to a cache.
    """
    if not isinstance(message, dict) or "role" not in message:
        return message
    return {key: value for key, value in message.items() if key not in {"id", "source"}}


def _find_answer(sample: dict[str, Any]) -> str:
    """Find the answer of the model in a sample of a log, without its reasoning.

    Raises ``UsageError`` where there is none. An empty ``completion`` is no answer if there is no choice, or a call of
    a tool: judged as one, a rubric that only forbids things would pass it.
    """
    name = show(sample.get("id"))
    output = sample.get("output")
    output = output if isinstance(output, dict) else {}
    error = sample.get("error") or output.get("error")
    if error:
        reason = error.get("message") if isinstance(error, dict) else error
        raise UsageError(
            f"the sample {name} of the log ended with an error ({flatten(str(reason))[:200]}); run it again"
        )
    choices = output.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    message = message if isinstance(message, dict) else {}
    answer = output.get("completion")
    answer = answer if isinstance(answer, str) else _join_texts(message.get("content"))
    if answer == "" and (choices == [] or message.get("tool_calls")):
        answer = None
    if answer is None:
        limit = sample.get("limit")
        kind = limit.get("type") if isinstance(limit, dict) else None
        remedy = f"a limit stopped it: {show(kind)}" if kind else "was it cut off?"
        raise UsageError(f"the sample {name} of the log has no answer; {remedy}")
    return answer


def _join_texts(content: Any) -> str | None:
    """Return the text of a message's content, its parts of text joined by line ends; ``None`` for anything else."""
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
        content = "\n".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else None


_SAMPLE = ("id", "input", "target", "choices", "metadata", "output")
"""The members of a sample that become parts of its case, and are not kept as metadata."""


def import_inspect(
    path: str | os.PathLike[str],
    *,
    fields: Mapping[str, str | None] | None = None,
    on_bad_row: OnBadRow = "fail",
    label_map: LabelMap | None = None,
    label_name: str | None = None,
    ratings: str | os.PathLike[str] | None = None,
) -> Dataset:
    """Import samples of Inspect from a data set (CSV, JSON, JSON lines) or a log (JSON, or packed as ``.eval``).

    In a log the content is the answer and the task is the ``input``, with lettered ``choices`` where there are some. A
    data set has no answers: without ``fields`` to name one, the content is the input, which ``dataset.notes`` counts.
    ``target`` is the reference, ``id`` the id, without one the place in the file; with several epochs the epoch is
    added to it. ``metadata`` stays, and everything else, including the log's scores, is in ``metadata["inspect"]``.

    ``labels`` are the scores of a log that people edited, under their names. The label of a case is the value that more
    than half of the raters gave.

    Args:
        path: The file to read.
        fields: Which field is which part of a case, as for ``open_dataset``.
        on_bad_row: ``"fail"`` raises for a row that cannot be read, ``"skip"`` counts and lists it.
        label_map: What the words of labels mean, as for ``open_dataset``: ``{"yes": True, "no": False}``.
        label_name: The score whose edits are the labels; if nobody edited it, the score itself is the label, for scores
            that people gave (``precomputed_scores``). By default the one score that people edited.
        ratings: A file as ``precomputed_scores()`` reads it; its name is the rater's name. ``None`` is none.
    """
    name = os.fspath(path)
    if check_path(name) and name.lower().endswith(".eval"):
        raise UsageError(f"{name} is no regular file; a packed log is read from one")
    field_options = read_fields(fields, table=False)
    rating_file = load_ratings(os.fspath(ratings)) if ratings is not None else None
    return Dataset(
        lambda notes: _read_cases(name, _ImportOptions(field_options, notes, label_name, rating_file)),
        name=name,
        path=name,
        unit="sample",
        on_bad_row=on_bad_row,
        label_map=label_map,
    )


@dataclass(frozen=True, slots=True)
class _ImportOptions:
    """The options under which the samples of one file become cases, and the notes that are made meanwhile."""

    fields: Fields
    notes: Notes
    label_name: str | None
    """The score whose edits by people are the labels."""
    ratings: Ratings | None


def _read_cases(name: str, options: _ImportOptions) -> Iterator[Row]:
    """Yield the row of a case for each sample of a file, behind its number, or its error."""
    for number, sample in enumerate(_list_samples(name), 1):
        try:
            if isinstance(sample, UsageError):
                raise sample
            yield number, _make_case_row(sample, options, str(number))
        except UsageError as error:
            yield number, error


def _list_samples(name: str) -> Iterator[Mapping[str, Any] | UsageError]:
    """Yield the samples of a log, or of a data set in any format, or what is wrong with each."""
    if name.lower().endswith(".eval"):
        yield from map(_check_sample, read_packed(name))
        return
    form, gz = find_format(name, None)
    if form == "json":
        yield from _read_json(name)
        return
    for line, row in read_rows(name, form, None, gz=gz):
        yield UsageError(f"line {line}: {row}") if isinstance(row, UsageError) else _parse_cells(row, form)


def _read_json(name: str) -> Iterator[Mapping[str, Any] | UsageError]:
    """Yield the samples of a data set or a log that is one JSON document, or what is wrong with each.

    Raises ``UsageError``.
    """
    if Path(name).is_file() and Path(name).stat().st_size > LARGEST_JSON:
        raise UsageError(
            f"{name} is larger than {LARGEST_JSON // 1_000_000} MB; write a data set as JSON lines, and a log with "
            "`inspect log convert LOG --to eval --output-dir DIR`, which are read one sample at a time"
        )
    try:
        document = read_log(read_whole(name, LARGEST_JSON))
    except UsageError:
        raise
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name} is not JSON ({flatten(str(error))})") from None
    is_log = isinstance(document, dict) and isinstance(document.get("samples"), list)
    samples = document["samples"] if is_log else document
    if not isinstance(samples, list):
        raise UsageError(f"{Path(name).name} holds no samples; name a data set of Inspect, or a whole log")
    has_epochs = is_log and any(isinstance(sample, dict) and sample.get("epoch", 1) != 1 for sample in samples)
    for sample in samples:
        try:
            check_text(sample)
            yield _check_sample(open_logged(sample, epochs=has_epochs) if is_log else sample)
        except UsageError as error:
            yield error


def _check_sample(sample: Any) -> Mapping[str, Any] | UsageError:
    """Return a sample that is an object, or its error; anything else is returned as an error."""
    is_object_or_error = isinstance(sample, dict | UsageError)
    return sample if is_object_or_error else UsageError(f"a sample must be an object, got {show(sample)}")


def _parse_cells(row: Mapping[str, Any], form: str) -> Mapping[str, Any] | UsageError:
    """Convert a row of a table, whose choices and metadata are texts; return a row of another format as it is.

    A row whose metadata are not JSON is returned as its error.
    """
    if form not in {"csv", "tsv"}:
        return row
    sample = {key: cell for key, cell in row.items() if cell != ""}
    if "choices" in sample:
        separator = "," if "," in sample["choices"] else None
        sample["choices"] = [choice.strip() for choice in sample["choices"].split(separator) if choice.strip()]
    if "metadata" in sample:
        try:
            sample["metadata"] = read_json(sample["metadata"])
        except (ValueError, RecursionError) as error:
            return UsageError(f"the metadata are not JSON ({flatten(str(error))})")
    return sample


def _make_case_row(sample: Mapping[str, Any], options: _ImportOptions, number: str) -> dict[str, Any]:
    """Make the row of a case from a sample: parts that fields are mapped to, else the members of Inspect.

    ``number`` is that of the sample in the file. Raises ``UsageError``.
    """
    row, used_names = select_mapped(sample, options.fields)
    notes = options.notes
    task = _find_task(sample, row)
    # By its number, as Inspect numbers samples itself: two of them may hold the same text.
    row.setdefault("id", number if sample.get("id") is None else sample["id"])
    if "content" not in row:
        if sample.get("output") is None:
            add_note(notes, "sample without an answer: its input is the content")
            row.pop("task", None)
        row["content"] = task if sample.get("output") is None else sample["output"]
    if row["content"] is not task and "input" not in used_names:
        row.setdefault("task", task)
    if sample.get("target") not in (None, "", []):
        row.setdefault("reference", sample["target"])
    _note_losses(sample, notes)
    verdicts = _find_verdicts(sample, options)
    if verdicts:
        row.setdefault("labels", verdicts)
        row.setdefault("label", find_majority(verdicts))
    return row | {"metadata": {**_make_metadata(sample, used_names), **(row.get("metadata") or {})}}


def _find_verdicts(sample: Mapping[str, Any], options: _ImportOptions) -> dict[str, Verdict]:
    """Find the verdicts of people on a sample by their names; a rating replaces the verdict of the same person.

    Ratings have the id of a sample without the epoch, which ``open_logged`` put behind it.
    """
    verdicts = list_verdicts(sample.get("scores"), options.label_name, options.notes) if "output" in sample else {}
    if options.ratings is None or sample.get("id") is None:
        return verdicts
    epoch = sample.get("epoch")
    epoch = epoch if isinstance(epoch, int) else None
    name = str(sample["id"]).removesuffix(f", epoch {epoch}")
    return verdicts | options.ratings.find(name, epoch, options.notes)


def _note_losses(sample: Mapping[str, Any], notes: Notes) -> None:
    """Note an answer that a limit cut off, and images or files in an input, which are not read."""
    if "output" in sample and sample.get("limit"):
        add_note(notes, "sample that a limit stopped: its answer is the last that was said")
    if isinstance(sample.get("input"), list) and "attachment://" in str(sample["input"]):
        add_note(notes, "image or file in an input, which was not read")


def _find_task(sample: Mapping[str, Any], row: Mapping[str, Any]) -> Any:
    """Find the task of a sample: its input, else what was mapped to the task. Raises ``UsageError`` for neither."""
    if sample.get("input") not in (None, "", []):
        return _make_input(sample)
    if row.get("task") is not None:
        return row["task"]
    raise UsageError(
        f"the sample has no 'input'; it has {list_names(sample)}; say which of them is asked, with ",
        Argument("fields['task']"),
    )


def _make_input(sample: Mapping[str, Any]) -> Any:
    """Return the input of a sample, together with its lettered choices where it has some."""
    choices = sample.get("choices")
    if not isinstance(choices, list) or not choices:
        return sample["input"]
    # The target of a multiple choice is a letter, which says nothing without the choices.
    letters = dict(zip(ascii_uppercase, choices, strict=False)) if len(choices) <= len(ascii_uppercase) else choices
    return {"input": sample["input"], "choices": letters}


def _make_metadata(sample: Mapping[str, Any], used_names: set[str]) -> dict[str, Any]:
    """Make the metadata of a case: the sample's own, and under ``inspect`` its members that are no part of the case.

    ``used_names`` are the members that fields are mapped to.
    """
    metadata = sample.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise UsageError(f"the metadata of a sample must be an object, got {show(metadata)}")
    left_out = {*_SAMPLE, *used_names}
    others = {key: sample[key] for key in sample if key not in left_out and sample[key] is not None}
    return {**metadata} | ({"inspect": others} if others else {})
