"""What of a run by batches is not to be had through public names: broken downloads, time, and lines cut anywhere."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge import AdjudgeError, open_model
from adjudge.models.batch.job import Limits, ResultLine
from adjudge.models.batch.lines import LineCutter, count_tokens, split_by_limits
from adjudge.models.batch.open import open_batch_api
from adjudge.models.model import Request
from adjudge.runs.batch.folder import list_batches
from adjudge.runs.batch.store import BatchStore, LineCounts
from kit.batch import PROVIDERS, go, options, serve
from kit.runs import make_cases

pytestmark = pytest.mark.timed


every_provider = pytest.mark.parametrize("kind", PROVIDERS)


@every_provider
def test_a_file_that_ends_in_the_middle_of_a_line_is_fetched_again(kind: str):
    """Half a line is no answer, and nobody is asked again for it."""
    with serve(kind, cut=2) as server:
        done = go(server, make_cases(30))

        assert (len(server.jobs), next(iter(server.jobs.values())).served) == (1, 3)
    assert done.counts["undecided"] == 0


@every_provider
def test_a_batch_that_does_not_end_in_time_is_overdue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str):
    """The run ends and says so; its requests are sent again only when that is said."""
    monkeypatch.setattr("adjudge.runs.batch.dispatcher.OVERDUE_SECONDS", -10 * 86_400.0)
    with serve(kind, words=("rearranging",), looks=1_000_000) as server:
        with pytest.raises(AdjudgeError, match="overdue"):
            go(server, make_cases(5), tmp_path / "R")
        with pytest.raises(AdjudgeError, match="overdue"):
            go(server, make_cases(5), tmp_path / "R", resume=True)
        assert len(server.jobs) == 1
        [kept] = list_batches(tmp_path / "R")
        assert (kept.state, "rearranging" in kept.message) == ("waiting", True)

        monkeypatch.setattr("adjudge.runs.batch.dispatcher.OVERDUE_SECONDS", 3_600.0)
        server.words, server.looks = (), 0
        done = go(server, make_cases(5), tmp_path / "R", resume=True)
        assert len(server.jobs) == 1
    assert done.counts["undecided"] == 0


@every_provider
def test_a_batch_whose_results_are_gone_is_sent_again_when_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
):
    """Providers delete results after some weeks. Then the run ends as with any batch that is overdue."""
    monkeypatch.setattr("adjudge.runs.batch.dispatcher.OVERDUE_SECONDS", -10 * 86_400.0)
    with serve(kind, gone=1, looks=0) as server:
        for resume in (False, True):
            with pytest.raises(AdjudgeError, match="overdue"):
                go(server, make_cases(5), tmp_path / "R", resume=resume)
        [kept] = list_batches(tmp_path / "R")
        assert (kept.state, "deleted" in kept.message) == ("ended", True)

        monkeypatch.setattr("adjudge.runs.batch.dispatcher.OVERDUE_SECONDS", 3_600.0)
        done = go(server, make_cases(5), tmp_path / "R", resume=True, batch=options(pay_again=True))
        assert len(server.jobs) == 2
    assert done.counts["undecided"] == 0


@given(
    lines=st.lists(st.binary(min_size=1).filter(lambda line: b"\n" not in line and line.strip()), max_size=8),
    cuts=st.lists(st.integers(0, 200), max_size=6),
)
def test_lines_are_the_same_wherever_the_network_cuts_them(lines: list[bytes], cuts: list[int]):
    """Pieces of any size give the lines that were sent, each once and whole."""
    data = b"".join(line + b"\n" for line in lines)
    taken: list[bytes] = []
    cutter = LineCutter(taken.append)
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    for begin, end in pairwise(places):
        cutter.feed(data[begin:end])

    assert cutter.finish()
    assert taken == lines


@given(cut=st.integers(1, 30))
def test_half_a_line_is_no_end(cut: int):
    """What follows the last newline counts only where it is a whole object."""
    line = b'{"custom_id": "a", "response": {}}'
    taken: list[bytes] = []
    cutter = LineCutter(taken.append)
    cutter.feed(line + b"\n" + line[: min(cut, len(line) - 1)])
    assert not cutter.finish()

    whole = LineCutter(taken.append)
    whole.feed(line)
    assert whole.finish()
    assert taken == [line, line]


@given(
    sizes=st.lists(st.integers(1, 50), max_size=60),
    most=st.integers(1, 7),
    size=st.integers(60, 200),
    tokens=st.none() | st.integers(5, 60),
)
def test_parts_keep_to_every_limit(sizes: list[int], most: int, size: int, tokens: int | None):
    """In order, none lost; an item that is over a limit by itself is alone."""
    items = list(enumerate(sizes))
    limits = Limits(requests=most, size=size, window=1.0)
    parts = split_by_limits(items, limits, lambda item: item[1], tokens=tokens)

    assert [item for part in parts for item in part] == items
    for part in parts:
        total = sum(length for _, length in part)
        assert len(part) <= most
        assert len(part) == 1 or total <= 0.95 * size
        assert len(part) == 1 or tokens is None or count_tokens(total) <= tokens


@every_provider
def test_a_line_is_what_the_live_adapter_sends(kind: str):
    """The same body, byte by byte, with an id around it."""
    import json

    model = open_model(f"{kind}:small", base_url="http://127.0.0.1:9/v1")
    request = Request(system="Be a judge.", user='Say "yes"\n\u2028')
    line = open_batch_api(model).render_line("an-id", request)

    member = {"openai": "body", "anthropic": "params", "gemini": "request"}[kind]
    assert json.loads(line)[member] == json.loads(model.render_body(request))  # type: ignore[attr-defined]
    assert line.endswith(b"\n") == (kind != "anthropic")


def test_an_id_with_two_answers_has_none(tmp_path: Path):
    """An equal line changes nothing, another one takes the answer back; one of a request of no such job is unknown."""
    store = BatchStore(tmp_path).open(make=True)
    number = store.plan(
        label="l", model="m", account="a", size=1, tokens=1, digest="d", now=1.0, requests=[("one", "p", "k", 0.5)]
    )
    first = ResultLine(id="one", kind="reply", body=b"1")
    assert store.keep_lines(number, [first]) == LineCounts(fresh=1)
    assert store.keep_lines(number, [first]) == LineCounts()
    other, strange = ResultLine(id="one", kind="reply", body=b"2"), ResultLine(id="two", kind="reply")
    assert store.keep_lines(number, [other, strange]) == LineCounts(differing=1, unknown=1)
    assert store.keep_lines(number, [first, other]) == LineCounts()

    kept = store.find_request("p")
    assert kept is not None
    assert (kept.state, kept.body, store.find_batch(number).differing) == ("contradiction", None, 1)
    store.close()


def test_a_judged_answer_stays(tmp_path: Path):
    """What was judged in an earlier look at the results is in the run; that another answer came is counted."""
    store = BatchStore(tmp_path).open(make=True)
    number = store.plan(
        label="l", model="m", account="a", size=1, tokens=1, digest="d", now=1.0, requests=[("one", "p", "k", 0.5)]
    )
    store.keep_lines(number, [ResultLine(id="one", kind="reply", body=b"1")])
    store.note_used(["one"])
    assert store.keep_lines(number, [ResultLine(id="one", kind="reply", body=b"2")]) == LineCounts(differing=1)

    kept = store.find_request("p")
    assert kept is not None
    assert (kept.state, kept.body) == ("reply", b"1")
    store.close()


def test_what_is_kept_of_a_job_is_there_before_anything_is_sent(tmp_path: Path):
    """A job that was never created gives its requests back."""
    store = BatchStore(tmp_path).open(make=True)
    number = store.plan(
        label="l", model="m", account="a", size=1, tokens=1, digest="d", now=1.0, requests=[("one", "p", "k", 0.5)]
    )
    assert (store.find_batch(number).state, store.add_held()) == ("planned", 0.5)

    store.forget_requests(number, "refused", "why")
    assert (store.find_request("p"), store.find_batch(number).message, store.add_held()) == (None, "why", 0.0)
    store.close()
