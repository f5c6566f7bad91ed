"""Labels say that they are blind only where their rater could not tell the verdict, by whatever page they took."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from adjudge import Case
from adjudge.labels import open_label_queue
from kit import server_demo
from kit.labels import make_run
from kit.markup import Reader
from kit.server import RunningServer, run_server

pytestmark = pytest.mark.timed

CASES = 6

TRUSTED = "How far the judge can be trusted"
"""The title of the figures that compare the judge with people."""


@pytest.fixture(scope="module", name="server")
def start_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("blind")
    for run in ("moved", "filtered", "compared", "walked", "others", "settled", "shown", "early"):
        for name in (run, f"{run}-again"):
            texts = [f"a {'good' if place % 3 else 'bad'} text" for place in range(CASES)]
            cases = [Case(id=f"{run}-{place}", content=text) for place, text in enumerate(texts)]
            make_run(folder / "runs" / name, cases)
    with run_server(folder, server_demo.CONFIG + "labels_per_case = 2\n") as running:
        yield running


def open_rater(server: RunningServer, rater: str, *scopes: str) -> httpx.Client:
    key = server.make_key(*scopes or ("read", "label"), rater=rater)
    return server.open_client(key=key, headers={"Accept": "text/html"})


def label(client: httpx.Client, run: str, case: str, value: bool = True) -> bool:
    """Label a case, and return whether the label says that it is blind."""
    answer = client.post(f"/v1/labels/{run}/labels", json={"case": case, "value": value})
    assert answer.status_code == 200, answer.text
    return bool(answer.json()["blind"])


def label_all(client: httpx.Client, run: str) -> None:
    assert all(label(client, run, f"{run}-{place}") for place in range(CASES))


def read(client: httpx.Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, (path, answer.text[:500])
    return answer.text


@pytest.mark.parametrize(
    ("run", "path"),
    [
        ("moved", "/runs/moved?q=nothing"),
        ("filtered", "/runs/filtered?outcome=failed&q=filtered-1"),
        ("compared", "/compare?a=compared-again&b=compared&q=nothing"),
        ("walked", "/runs/walked/case?id=walked-2&differ=judge+passed"),
    ],
)
def test_who_saw_a_figure_that_a_label_moves_does_not_label_again_blind(server: RunningServer, run: str, path: str):
    """The page lists no such case; but its figures, or the length of its list, tell what the judge said of it."""
    ana, case = open_rater(server, "Ana"), f"{run}-1"
    label_all(ana, run)
    assert label(ana, run, case, False)

    read(ana, path)
    ana.post(f"/v1/labels/{run}/undo")

    assert label(ana, run, case) is False


def test_figures_of_cases_that_one_is_to_label_are_not_shown(server: RunningServer):
    """They move with every label of another person, who is asked about the same cases in the same order."""
    pytest.importorskip("scipy")
    ana, ben = open_rater(server, "Ana"), open_rater(server, "Ben")
    label_all(ben, "others")
    assert label(ana, "others", "others-0")

    for path in ("/runs/others", "/compare?a=others-again&b=others"):
        assert "Figures that compare the judge with people are shown when you have" in read(ana, path)
    assert TRUSTED not in read(ana, "/runs/others")
    assert TRUSTED in read(open_rater(server, "Rita", "read"), "/runs/others")
    assert label(ana, "others", "others-1")

    for place in range(2, CASES):
        label(ana, "others", f"others-{place}")
    assert TRUSTED in read(ana, "/runs/others")


def test_who_read_a_verdict_does_not_settle_the_case_blind(server: RunningServer):
    """Also if they may settle what people differ about, and not label."""
    for rater, value in (("Ana", True), ("Ben", False)):
        for case in ("settled-1", "settled-2"):
            label(open_rater(server, rater), "settled", case, value)
    eve = open_rater(server, "Eve", "read", "adjudicate")

    def settle(rater: httpx.Client) -> bool:
        body = {"case": "settled-1", "value": True}
        return bool(rater.post("/v1/labels/settled/settle", json=body).json()["blind"])

    assert settle(eve)
    read(eve, "/runs/settled/case?id=settled-1")
    assert settle(eve) is False


def test_who_settles_with_the_verdict_shown_labels_the_case_of_another_run_blind_no_more(server: RunningServer):
    """It tells what the judge says of that case there."""
    for rater, value in (("Ana", True), ("Ben", False)):
        label(open_rater(server, rater), "shown", "shown-1", value)
    carl = open_rater(server, "Carl", "adjudicate", "label")

    read(carl, "/labels/shown/differences?verdict=true")

    assert label(carl, "shown-again", "shown-1") is False
    assert label(carl, "shown-again", "shown-2")


@pytest.mark.parametrize("run", ["early", "early-again"])
@pytest.mark.parametrize(
    "path",
    [
        "/runs/early",
        "/runs/early?outcome=failed",
        "/runs/early/case?id=early-1",
        "/runs/early/report.html",
        "/compare?a=early-again&b=early",
        "/v1/runs/early",
    ],
)
def test_who_read_verdicts_before_anybody_labelled_labels_them_blind_no_more(
    server: RunningServer, run: str, path: str
):
    """In that run and in the others of its data set; what others have read says nothing of one's own labels."""
    readers: dict[str, Any] = {name: open_rater(server, f"{name} {run} {path}") for name in ("reads", "labels")}
    # With a key of theirs that lets them read alone.
    read(open_rater(server, f"reads {run} {path}", "read"), path)

    assert label(readers["reads"], run, "early-1") is False
    assert label(readers["labels"], run, "early-1") is True


def test_a_pace_below_a_second_is_not_called_none(tmp_path: Path):
    """Whoever answers several cases a second reads that it takes under one, and not that it takes no time."""
    folder, begun = make_run(tmp_path / "runs" / "fast"), datetime.now(UTC) - timedelta(minutes=1)
    with open_label_queue(folder) as queue:
        for number in range(4):
            with server_demo.labelled_at(begun + timedelta(seconds=0.4 * number)):
                task = queue.next("Ana")
                assert task is not None
                queue.record("Ana", task.case, True)
    with run_server(tmp_path, server_demo.CONFIG) as server:
        server.add_account("Ana")
        text = " ".join(Reader(server.sign_in("Ana").get("/labels/fast").text).text.split())

    assert "Pace under 1 s a case" in text
    assert not re.search(r"\b0 s\b", text)
