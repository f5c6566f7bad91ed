"""The ids of cases without one: the same however often a file is read, and different for each of its rows."""

from __future__ import annotations

import csv
import json
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path

import pytest

from adjudge import Case, Dataset, UsageError, open_dataset, open_run, run
from adjudge.dataset import Label

UNKNOWN = "I don't know."
DIGEST = sha256(UNKNOWN.encode()).hexdigest()
JUDGE = {"criteria": {"short": "Is short."}}


def write_table(path: Path, *rows: tuple[str, ...]) -> Path:
    """A table without ids: the task, and the answer."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("task", "content"), *rows])
    return path


def list_ids(data: object) -> list[str]:
    return [case.id for case in Dataset.of(data)]


def is_short(content: str) -> bool:
    return len(content) < 8


def test_the_first_case_of_a_content_has_its_digest():
    """As the one case has that nobody repeats, so that nothing that was kept before changes."""
    rows = [{"content": UNKNOWN}, {"content": "Yes."}, {"content": UNKNOWN}]

    assert list_ids(rows)[:2] == list_ids(rows[:2]) == [DIGEST, sha256(b"Yes.").hexdigest()]


def test_a_repeat_goes_by_what_belongs_to_it():
    """Its task, reference and context, whatever stands between; a label and metadata are corrected later."""
    rows = [{"content": UNKNOWN, "task": task} for task in ("Why?", "When?", "Who?")]
    first, second, third = list_ids(rows)
    moved = [rows[0], rows[2], {"content": "Yes."}, rows[1] | {"label": True, "metadata": {"k": 1}}]

    assert len({first, second, third}) == 3
    assert list_ids(moved) == [first, third, sha256(b"Yes.").hexdigest(), second]
    assert second == sha256(json.dumps([DIGEST, "When?", None, None], indent=2).encode()).hexdigest()


def test_equal_rows_are_cases_of_their_own():
    """They are numbered in their order."""
    assert list_ids([UNKNOWN] * 3) == [DIGEST, f"{DIGEST}-2", f"{DIGEST}-3"]
    first, second, third, fourth = list_ids([{"content": UNKNOWN, "task": "Why?"}] * 4)
    assert (first, third, fourth) == (DIGEST, f"{second}-2", f"{second}-3")


def test_rows_at_the_end_change_no_id(tmp_path: Path):
    """In a file, where a repeat is no bad row."""
    rows = [("Why?", UNKNOWN), ("When?", UNKNOWN), ("When?", UNKNOWN)]
    few = open_dataset(write_table(tmp_path / "few.csv", *rows))
    many = open_dataset(write_table(tmp_path / "many.csv", *rows, ("Who?", UNKNOWN), ("When?", UNKNOWN)))
    before = [case.id for case in few]

    assert [case.id for case in few] == before
    assert [case.id for case in many][:3] == before
    assert len({case.id for case in many}) == 5
    assert few.skipped == 0


def test_an_id_that_somebody_gave_is_used_once():
    """A repeat of it is a slip; also where it looks like a digest."""
    for name in ("a", "0" * 64):
        with pytest.raises(UsageError, match="is already on row 1; give each row an id of its own"):
            list(Dataset.of([{"id": name, "content": UNKNOWN}, {"id": name, "content": UNKNOWN}]))


def test_labels_are_joined_to_each_repeat():
    """By its id."""
    rows = [{"content": UNKNOWN, "task": "Why?"}, {"content": UNKNOWN, "task": "When?"}]
    first, second = list_ids(rows)
    labels = [Label(case=first, rater="ann", value=True), Label(case=second, rater="ann", value=False)]

    assert [case.label for case in Dataset.of(rows).with_labels(labels)] == [True, False]


def test_a_run_keeps_every_repeat_and_resumes(tmp_path: Path):
    """With rows added at the end; an iterator gives the same ids."""
    rows = [("Why?", UNKNOWN), ("When?", UNKNOWN), ("When?", UNKNOWN)]
    table = write_table(tmp_path / "t.csv", *rows)
    run(table, is_short, out=tmp_path / "run", **JUDGE).finish_sync()
    write_table(table, *rows, ("When?", UNKNOWN))
    resumed = run(table, is_short, out=tmp_path / "run", resume=True, **JUDGE).finish_sync()
    ids = [item.case.id for item in resumed.items()]

    async def stream() -> AsyncIterator[Case | dict[str, str]]:
        for task, content in (*rows, rows[1]):
            yield {"task": task, "content": content}

    run(stream(), is_short, out=tmp_path / "streamed", **JUDGE).finish_sync()

    assert len(set(ids)) == 4
    with open_run(tmp_path / "streamed") as streamed:
        assert [item.case.id for item in streamed.items()] == ids
