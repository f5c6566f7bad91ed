"""Files that would keep a reader busy or waiting for ever: each is refused at once, and says what to do."""

from __future__ import annotations

import asyncio
import gzip
import os
import re
import socket
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from adjudge import Ledger, UsageError, load_rubric, load_rules, open_dataset
from adjudge.dataset import import_mlflow, load_labels
from adjudge.dataset.formats import count_rows
from adjudge.ledger.export import read_head, verify_export
from adjudge.models import ReplayModel
from kit.cli import Line, isolate

posix = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="only POSIX has pipes with a name")


@pytest.fixture
def line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    isolate(monkeypatch, tmp_path)
    return Line(capsys)


def pack(path: Path, pieces: Iterator[bytes]) -> Path:
    """A gzip file of many equal pieces, written in a moment."""
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    with path.open("wb") as file:
        for piece in pieces:
            file.write(packer.compress(piece))
        file.write(packer.flush())
    return path


def repeat(piece: bytes, times: int, first: bytes = b"") -> Iterator[bytes]:
    yield first
    for _ in range(times):
        yield piece


ROW = b'{"content": "x"}\n'

BOMBS: Mapping[str, Callable[[], Iterator[bytes]]] = {
    "newlines": lambda: repeat(b"\n" * 1_000_000, 120),
    "newlines after a row": lambda: repeat(b"\n" * 1_000_000, 120, ROW),
    "lines of blanks": lambda: repeat(b" \t\r\n" * 250_000, 120),
    "one endless line": lambda: repeat(b" " * 1_000_000, 120),
    "one endless text": lambda: repeat(b"x" * 1_000_000, 120, b'{"content": "'),
}


EXPANDED = ("holds more than 100 MB and 200 times its own size", "unpack it")
BLANK = ("ends 100,000 blank lines", "take them out")
REFUSALS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("newlines", "jsonl"): BLANK,
    ("newlines", "csv"): BLANK,
    ("newlines after a row", "jsonl"): BLANK,
    ("lines of blanks", "jsonl"): BLANK,
    ("one endless line", "jsonl"): EXPANDED,
    ("one endless line", "csv"): EXPANDED,
    ("one endless text", "jsonl"): EXPANDED,
    ("one endless text", "csv"): EXPANDED,
}
"""The cause and the remedy; of the other tables it is the heading that is wrong first."""


@pytest.fixture(scope="module")
def bombs(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    folder = tmp_path_factory.mktemp("bombs")
    return {name: pack(folder / f"{place}.gz", make()) for place, (name, make) in enumerate(BOMBS.items())}


@pytest.mark.timed
@pytest.mark.no_cover
@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
@pytest.mark.parametrize("read", ["cases", "labels", "count"])
def test_a_small_file_that_unpacks_to_a_large_one(
    bomb: str, suffix: str, read: str, bombs: Mapping[str, Path], tmp_path: Path
):
    """Half a megabyte that stands for a hundred and more: refused after a part of it, and named."""
    path = tmp_path / f"b.{suffix}.gz"
    path.symlink_to(bombs[bomb])
    assert path.stat().st_size < 1_000_000
    started = time.process_time()

    if read == "count":
        assert count_rows(os.fspath(path)) is None
    else:
        with pytest.raises(UsageError) as caught:
            _ = list(open_dataset(path, on_bad_row="skip")) if read == "cases" else load_labels(path)
        assert "b." in str(caught.value)
        for part in REFUSALS.get((bomb, suffix), ()):
            assert part in str(caught.value)
    assert time.process_time() - started < 20


def test_a_file_of_blank_lines_is_no_data_set(tmp_path: Path):
    """Without packing too; a few blank lines are none of our business."""
    path = tmp_path / "d.jsonl"
    path.write_bytes(ROW + b"\n" * 200_000)
    with pytest.raises(UsageError, match="blank lines; is this a data set"):
        list(open_dataset(path))

    path.write_bytes(b"\n" * 1_000 + ROW + b"\n \n" * 1_000)
    assert len(list(open_dataset(path))) == 1


@pytest.mark.slow
def test_a_packed_data_set_that_repeats_itself_is_read(tmp_path: Path):
    """As real ones do: it is the size that counts, together with the share."""
    path = tmp_path / "d.jsonl.gz"
    with gzip.open(path, "wt") as file:
        for number in range(20_000):
            file.write(f'{{"id": "{number}", "content": "{"the same text again " * 20}"}}\n')

    assert sum(1 for _ in open_dataset(path)) == 20_000


@pytest.mark.slow
def test_a_parquet_file_that_unpacks_to_a_large_one(tmp_path: Path):
    """By what the file says of each part of it, before it is unpacked."""
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pa.table({"content": ["x" * 150_000_000]})
    parquet.write_table(table, tmp_path / "b.parquet", compression="zstd", use_dictionary=False)
    assert (tmp_path / "b.parquet").stat().st_size < 700_000

    with pytest.raises(UsageError, match="times its own size"):
        list(open_dataset(tmp_path / "b.parquet"))


def make_special(kind: str, folder: Path, suffix: str) -> Iterator[Path]:
    """A path that is no regular file."""
    path = folder / f"special{suffix}"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(os.fspath(path))
            yield path
        return
    yield path


READERS: Mapping[str, tuple[str, Callable[[Path], Any]]] = {
    "data set": (".jsonl", open_dataset),
    "packed data set": (".csv.gz", open_dataset),
    "Parquet": (".parquet", lambda path: list(open_dataset(path))),
    "labels": (".jsonl", load_labels),
    "labels in a table": (".csv", load_labels),
    "labels in JSON": (".json", load_labels),
    "labels in Parquet": (".parquet", load_labels),
    "export": (".json", lambda path: list(import_mlflow(path))),
    "rubric": (".yaml", load_rubric),
    "rules": (".yaml", load_rules),
    "recording": (".jsonl", lambda path: ReplayModel(path).check()),
    "ledger's export": (".jsonl", verify_export),
    "head": (".txt", read_head),
}


@posix
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "socket"])
def test_what_is_no_regular_file_is_refused_at_once(reader: str, kind: str, tmp_path: Path):
    """A pipe nobody writes to would be waited for, and a device may have no end."""
    suffix, read = READERS[reader]
    if reader == "labels in Parquet":
        pytest.importorskip("pyarrow")
    for path in make_special(kind, tmp_path, suffix):
        with pytest.raises(UsageError) as caught:
            read(path)
        assert os.fspath(path) in str(caught.value)
        assert re.search("directory" if kind == "folder" else "not a regular file", str(caught.value))
        assert REMEDY.search(str(caught.value))


REMEDY = re.compile(r"; (name (one|a|another) |a [a-z ]+ is read from one|give SEQ:HASH)")
"""What to do about a path that names no regular file."""

MODEL = ("--criteria", "Good.", "--judge", "http://127.0.0.1:1/v1#m")

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "judge": ("judge", "PATH", *MODEL),
    "run": ("run", "PATH", *MODEL, "--from", "jsonl"),
    "config": ("doctor", "--offline", "--config", "PATH"),
    "gate": ("gate", "check", "g", "PATH", "--config", "gate.toml"),
    "rubric": ("rubric", "show", "PATH"),
    "replay": ("judge", "text.txt", "--criteria", "Good.", "--judge", "replay:PATH"),
    "record": ("judge", "text.txt", *MODEL, "--record", "PATH"),
    "labels": ("label", "data.jsonl", "--import", "PATH"),
    "agree": ("agree", "data.jsonl", "--labels", "PATH"),
    "ledger": ("ledger", "verify", "--ledger", "PATH"),
    "estimate": ("run", "PATH", *MODEL, "--estimate", "--from", "jsonl"),
}


@posix
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_a_command_names_what_is_no_regular_file(command: str, kind: str, line: Line, tmp_path: Path):
    """Exit 2, the cause and the remedy, and nothing is waited for."""
    (tmp_path / "text.txt").write_text("x", encoding="utf-8")
    (tmp_path / "data.jsonl").write_text('{"id": "a", "content": "x"}\n', encoding="utf-8")
    (tmp_path / "gate.toml").write_text('[gates.g]\nrules = ["json"]\n', encoding="utf-8")
    for path in make_special(kind, tmp_path, ".yaml"):
        ran = line(*[word.replace("PATH", os.fspath(path)) for word in COMMANDS[command]])
        assert ran.status == 2
        assert os.fspath(path) in ran.err
        assert "not a regular file" in ran.err
        assert REMEDY.search(ran.err)


@posix
def test_a_ledger_is_no_pipe(tmp_path: Path):
    """SQLite would wait for whoever writes to it."""
    for path in make_special("pipe", tmp_path, ".db"):
        with pytest.raises(Exception, match=r"Invalid argument|regular|cannot"):
            asyncio.run(Ledger(f"sqlite:///{path}").verify())


LABEL = '{{"schema": "adjudge/label/1", "case": "{}", "rater": "{}", "kind": "{}", "value": {}{}}}\n'

MORE = ', "criterion": "tone"'


@pytest.mark.parametrize(
    ("rows", "lines"),
    [
        ([("a", "ana", "person", "true", ""), ("a", "ana", "person", "false", "")], "line 2 … line 1"),
        (
            [("a", "ana", "person", "0.5", ""), ("b", "ana", "person", "1", ""), ("a", "ana", "person", "1", "")],
            "3 … 1",
        ),
        ([("a", "ana", "person", "true", MORE), ("a", "ana", "person", "false", MORE)], "'tone' … line 1"),
        ([("a", "ana", "override", "true", ""), ("a", "ana", "override", "false", "")], "line 2 … line 1"),
        ([("a", "ana", "person", '"cannot_tell"', ""), ("a", "ana", "person", "true", "")], "line 2 … line 1"),
        ([("a", "ana", "person", "true", ""), ("a", "ana", "person", "true", "")], ""),
        ([("a", "ana", "person", "true", ""), ("a", "bob", "person", "false", "")], ""),
        ([("a", "ana", "person", "true", ""), ("b", "ana", "person", "false", "")], ""),
        ([("a", "ana", "person", "true", ""), ("a", "ana", "person", "false", MORE)], ""),
        ([("a", "ana", "person", "true", ""), ("a", "ana", "override", "false", "")], ""),
        ([("a", "gpt", "model", "true", ""), ("a", "gpt", "model", "false", "")], ""),
    ],
)
def test_a_rater_who_contradicts_themselves_is_an_error(rows: list[tuple[str, ...]], lines: str, tmp_path: Path):
    """Both lines are named; the same said twice, of another case or by somebody else, is no contradiction."""
    path = tmp_path / "labels.jsonl"
    path.write_text("".join(LABEL.format(*row) for row in rows), encoding="utf-8")
    if not lines:
        assert len(load_labels(path)) == len(rows)
        return
    with pytest.raises(UsageError) as caught:
        load_labels(path)
    for part in (*lines.split(" … "), "'ana'", "'a'", "keep the one that holds"):
        assert part in str(caught.value)
