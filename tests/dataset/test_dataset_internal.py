"""The limits of a data set's notes, and what is read as JSON."""

from __future__ import annotations

import json
import shutil

from adjudge import open_dataset
from adjudge.agents import read_run
from adjudge.dataset import dataset as _dataset
from adjudge.dataset import transcripts as _transcripts
from adjudge.formats.json import read_json
from kit.house import TESTS


def write(tmp_path, *lines: object):
    path = tmp_path / "cases.jsonl"
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines), "utf-8")
    return path


def test_every_bad_row_is_counted_and_the_first_hundred_are_listed(tmp_path):
    """A file with a million of them does not fill the memory; another reading counts anew."""
    dataset = open_dataset(write(tmp_path, *["{"] * 150), on_bad_row="skip")
    for _ in range(2):
        assert list(dataset) == []
        assert (dataset.skipped, len(dataset.bad_rows)) == (150, _dataset.MOST_LISTED)


def test_what_is_read_can_be_written_as_json(tmp_path):
    """Whatever line is accepted gives a dictionary that comes back equal."""
    line = '{"content": {"x": [1, 2.5, null, "\\u2028\\ud83d\\ude00"]}, "label": 1e3}'
    (case,) = open_dataset(write(tmp_path, line))

    assert read_json(json.dumps(case.to_dict())) == case.to_dict()


def test_a_transcript_on_which_its_reader_fails_is_a_bad_row_alone(tmp_path, monkeypatch):
    """In a folder, and named by a row; the others are read."""

    def read(path):
        if path.name == "b.jsonl":
            raise TypeError("unhashable type: 'list'")
        return read_run(path)

    monkeypatch.setattr(_transcripts, "read_run", read)
    folder = tmp_path / "runs"
    folder.mkdir()
    names = ["a.jsonl", "b.jsonl", "c.jsonl"]
    for name in names:
        shutil.copy(TESTS / "data" / "agents" / "claude-stream-clean.jsonl", folder / name)
    rows = write(tmp_path, *[{"transcript": f"runs/{name}"} for name in names])

    for source in (folder, rows):
        dataset = open_dataset(source, on_bad_row="skip")
        assert len(list(dataset)) == 2
        assert ["b.jsonl" in str(row) for row in dataset.bad_rows] == [True]
