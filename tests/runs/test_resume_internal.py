"""The lock of a run, and the keys of its kept replies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge import Judge, UsageError, open_run
from adjudge.models import Request
from adjudge.models.replies.key import describe_request, make_key, make_reply_key
from adjudge.runs.folder import RunLock
from kit.runs import Words, cut_off, do, make_cases


def test_a_kept_reply_answers_the_very_same_request_alone(tmp_path: Path):
    """A row whose request was another is no answer: somebody who edits the file cannot make it one by its place."""
    model = Words()
    cut_off(["good one"], Judge(model), tmp_path / "run", 1)
    done = open_run(tmp_path / "run")
    [body] = done.store.replies()
    row = json.loads(body)
    key = make_reply_key(case=row["case"], order=None, sample=0, model="words", seat=0, attempt=1)
    with done.store._writer.using() as connection:
        connection.execute("DELETE FROM results")
        connection.execute(
            "UPDATE replies SET body = ? WHERE key = ?", (json.dumps({**row, "key": "0" * 64}).encode(), key)
        )
    done.close()

    do(["good one"], Judge(model), out=tmp_path / "run", resume=True)
    assert len(model.requests) == 2


@pytest.mark.slow
def test_two_do_not_write_one_run(tmp_path: Path):
    """While one goes on, another is refused before it asks anybody; a lock that its owner left is none."""
    do(make_cases(3), out=tmp_path / "run")
    lock = RunLock(tmp_path / "run")
    lock.acquire()
    with pytest.raises(UsageError, match="is being written by another process; wait for it"):
        do(make_cases(3), out=tmp_path / "run", resume=True)
    assert open_run(tmp_path / "run").status == "finished"

    lock.release()
    assert do(make_cases(3), out=tmp_path / "run", resume=True).status == "finished"


def test_a_run_that_was_killed_shows_as_interrupted(tmp_path: Path):
    """Its manifest still says that it runs; nobody holds its folder, so it does not."""
    do(make_cases(3), out=tmp_path / "run")
    path = tmp_path / "run" / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "status": "running"}))

    left = open_run(tmp_path / "run")
    assert (left.status, left.counts["passed"]) == ("interrupted", 2)
    lock = RunLock(tmp_path / "run")
    lock.acquire()
    assert left.status == "running"
    lock.release()


@given(
    model=st.text(max_size=8),
    system=st.text(),
    user=st.text(),
    numbers=st.tuples(st.none() | st.floats(0, 2), st.none() | st.integers(-9, 9)),
)
def test_the_fast_key_is_the_canonical_one(model: str, system: str, user: str, numbers: tuple[Any, Any]):
    """The key of a request is SHA-256 of RFC 8785, whatever is in its texts."""
    import hashlib

    import rfc8785

    request = Request(system=system, user=user, temperature=numbers[0], seed=numbers[1])
    described = describe_request(request)

    assert make_key(model, described) == hashlib.sha256(rfc8785.dumps({"model": model, **described})).hexdigest()
