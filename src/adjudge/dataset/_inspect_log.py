"""Logs of Inspect, as JSON or packed (``.eval``): samples with their answers.

A packed log is a zip of JSON texts, one for each sample. Its names are never used as paths.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import IO, Any, BinaryIO

from adjudge.dataset._case import check_text
from adjudge.dataset._formats import LARGEST_JSON, import_parquet
from adjudge.dataset._source import open_bytes
from adjudge.errors import UsageError
from adjudge.rules._json import read_json
from adjudge.rules._words import flatten, show

_ZSTD = 93
"""How Inspect 0.3.285 compresses the members of a log; older ones are deflated, which every Python reads."""
_WHOLE = re.compile(r"samples/.+_epoch_([0-9]+)\.json", re.DOTALL)
_PIECES = re.compile(r"samples/.+_epoch_([0-9]+)/sample\.json", re.DOTALL)
_CONVERT = "write it as JSON with `inspect log convert LOG --to json --output-dir DIR`"
_METHODS = frozenset((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, _ZSTD))
_ZSTD_ERROR: type[Exception] = getattr(getattr(zipfile, "zstd", None), "ZstdError", zlib.error)
_BROKEN = (zipfile.BadZipFile, zlib.error, _ZSTD_ERROR, EOFError, OSError, RuntimeError, ValueError)
"""What a damaged member raises; RuntimeError is a password, or what this Python cannot do."""


def read_log(text: str) -> Any:
    """The JSON of a log; Inspect writes ``NaN`` as the value of a score that could not be given."""
    return read_json(text, nan_is_null=True)


def read_packed(name: str) -> Iterator[Any]:
    """The samples of a packed log, one in memory at a time; for one that cannot be read, why."""
    with open_bytes(name) as file, _open_zip(file, name) as packed:
        # By name, since a sample that was scored again stands twice, and the last one counts.
        found = {item.filename: item for item in packed.infolist()}
        members = [item for path, item in found.items() if _WHOLE.fullmatch(path) or _PIECES.fullmatch(path)]
        if not members:
            raise UsageError(f"{name} holds no samples; was the run cut off before the first one ended?")
        epochs = any(_find_epoch(item.filename) != "1" for item in members)
        for item in members:
            try:
                yield open_logged(_read_member(packed, item), epochs=epochs)
            except UsageError as error:
                yield error


@contextmanager
def _open_zip(file: BinaryIO, name: str) -> Iterator[zipfile.ZipFile]:
    try:
        packed = zipfile.ZipFile(file)
    except _BROKEN as error:
        raise UsageError(f"{name} is no packed log ({flatten(str(error))}); was it written to its end?") from None
    with packed:
        yield packed


def _find_epoch(path: str) -> str | None:
    found = _WHOLE.fullmatch(path) or _PIECES.fullmatch(path)
    return found and found[1]


def _read_member(packed: zipfile.ZipFile, item: zipfile.ZipInfo) -> Any:
    path = show(item.filename)
    if _PIECES.fullmatch(item.filename):
        raise UsageError(f"the sample {path} is stored in pieces, which are not read; {_CONVERT}")
    # The size is what the file says of itself, so no more than that is unpacked, whatever is there: a few bytes of a
    # zip can stand for a disk full.
    if item.file_size > LARGEST_JSON:
        raise UsageError(f"the sample {path} is larger than {LARGEST_JSON // 1_000_000} MB, so it is not read")
    try:
        return read_log(_check_whole(_unpack(packed, item), item).decode())
    except UsageError:
        raise
    except (*_BROKEN, RecursionError) as error:
        raise UsageError(f"the sample {path} cannot be read ({flatten(str(error))}); copy the log again") from None


def _check_whole(data: bytes, item: zipfile.ZipInfo) -> bytes:
    if len(data) != item.file_size or zlib.crc32(data) != item.CRC:
        raise ValueError("its size or its checksum is another")
    return data


def _unpack(packed: zipfile.ZipFile, item: zipfile.ZipInfo) -> bytes:
    if item.compress_type not in _METHODS:  # each has errors of its own
        raise UsageError(f"the sample {show(item.filename)} is compressed as no log is; {_CONVERT}")
    most = item.file_size + 1
    try:
        with packed.open(item) as stream:
            return stream.read(most)
    except NotImplementedError:
        if item.compress_type != _ZSTD:
            raise
    stored = copy(item)
    stored.compress_type, stored.file_size = zipfile.ZIP_STORED, item.compress_size
    stored.CRC = None  # type: ignore[assignment]  # pyrefly: ignore  - of what is unpacked, which is compared above
    with packed.open(stored) as stream:
        return _unpack_zstd(stream, most)


def _unpack_zstd(stream: IO[bytes], most: int) -> bytes:
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
    """A sample of a log as a sample with its answer under ``output``; raises ``UsageError`` where it has none."""
    if not isinstance(sample, dict):
        return sample
    kept = {key: sample[key] for key in ("id", "input", "target", "choices", "metadata") if sample.get(key) is not None}
    if isinstance(kept.get("input"), list):
        kept["input"] = [_open_message(item) for item in kept["input"]]
    if epochs:
        kept["id"] = f"{sample.get('id')}, epoch {sample.get('epoch')}"
    own = {key: sample[key] for key in ("epoch", "scores", "limit") if sample.get(key)}
    found = kept | {"output": _find_answer(sample)} | own
    check_text(found)
    return found


def _open_message(message: Any) -> Any:
    """A message without what is new in every run: the same task must be the same question, also for a cache."""
    if not isinstance(message, dict) or "role" not in message:
        return message
    return {key: value for key, value in message.items() if key not in {"id", "source"}}


def _find_answer(sample: dict[str, Any]) -> str:
    """What the model said; its reasoning is not part of it.

    A log has an empty ``completion`` where nothing was said, as after an error. That is no answer: judged as one, a
    rubric that only forbids things would pass it.
    """
    name = show(sample.get("id"))
    output = sample.get("output")
    output = output if isinstance(output, dict) else {}
    error = sample.get("error") or output.get("error")
    if error:
        why = error.get("message") if isinstance(error, dict) else error
        raise UsageError(f"the sample {name} of the log ended with an error ({flatten(str(why))[:200]}); run it again")
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
        asked = f"a limit stopped it: {show(kind)}" if kind else "was it cut off?"
        raise UsageError(f"the sample {name} of the log has no answer; {asked}")
    return answer


def _join_texts(content: Any) -> str | None:
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
        content = "\n".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else None
