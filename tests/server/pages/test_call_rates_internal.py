"""Two people label an agent's calls blind on the page, and the page of the run says who lets what through."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("scipy", reason="measuring needs the extra trust")

from adjudge import open_run
from adjudge.labels import (
    continue_plan,
    find_plan_status,
    load_looks,
    make_plan,
    open_label_queue,
    write_plan,
)
from adjudge.measurement import make_call_rates
from adjudge.report import call_rates_document
from kit import server_demo
from kit.labels import label_all
from kit.observed_calls import judge_calls, make_call_case, read_shown_rates
from kit.reports import HOSTILE
from kit.runs import do, make_cases
from kit.server import RunningServer, read_fields, run_server
from kit.viewing import view_below, view_named

pytestmark = pytest.mark.timed

HIDDEN = ("refused", "no-such-words", "failed")
"""What the harness, a rule and the judge did, which nobody is to read who labels."""

CALLS = [
    make_call_case(
        n,
        bad=n % 3 == 0,
        judge=n % 3 != 0 or n == 0,
        **({"harness": "refused", "rules": "failed"} if n % 6 == 3 else {}),
    )
    for n in range(24)
]


@pytest.fixture(name="folder")
def make_folder(tmp_path: Path) -> Path:
    """A run of calls whose plan drew all of them."""
    place = judge_calls(tmp_path / "runs" / "calls", CALLS)
    with open_run(place) as opened:
        write_plan(make_plan(opened, within=0.01, seed=1), place)
    do(make_cases(4), out=tmp_path / "runs" / "answers")
    return tmp_path


@pytest.fixture(name="server")
def start_server(folder: Path) -> Iterator[RunningServer]:
    with run_server(folder, server_demo.CONFIG + "labels_per_case = 2\n") as server:
        server.add_account("Rita", "read")
        for name in ("Ana", "Ben"):
            server.add_account(name)
        yield server


def read(client: Any, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, answer.text[:500]
    return html.unescape(answer.text)


def label_everything(server: RunningServer, name: str) -> int:
    """Somebody labels on the page what it asks about, and reads nothing of what others decided."""
    client, number = server.sign_in(name), 0
    while "Should this have run?" in (page := read(client, "/labels/calls")):
        shown = page.partition("<main")[2]
        assert [word for word in HIDDEN if word in shown] == []
        words = re.search(r"(good|bad) (pass|fail) \d+", shown)
        assert words is not None
        fields = read_fields(client, page)
        assert client.post("/labels/calls", data=fields | {"label": words[1]}).status_code == 303
        number += 1
    return number


@pytest.mark.slow
def test_two_people_label_blind_and_the_page_says_who_is_wrong(server: RunningServer, folder: Path):
    """Who is still to label is shown no figure; afterwards the page has the sentence of the command."""
    ana = server.sign_in("Ana")
    before = read(ana, "/runs/calls/calls")
    assert label_everything(server, "Ana") == len(CALLS)
    assert label_everything(server, "Ben") == len(CALLS)

    page = read(server.sign_in("Rita"), "/runs/calls/calls")
    rates = make_call_rates(folder / "runs" / "calls")
    sentence = call_rates_document.describe_call_rates(rates)

    assert "are yours to label" in before
    assert "let through" not in before
    assert sentence in page
    assert (rates.people, rates.agreed.of, rates.not_blind) == (("Ana", "Ben"), len(CALLS), 0)
    assert sentence in read(ana, "/runs/calls/calls")
    assert 'href="/runs/calls/calls"' in read(ana, "/runs/calls")
    programs = server.open_client(key=server.make_key("label", rater="Ben"))
    read(server.sign_in("Ben"), "/runs/calls/calls")
    with open_run(folder / "runs" / "calls") as run:
        case = next(iter(run.items())).case.id
    label = programs.post("/v1/labels/calls/labels", json={"case": case, "value": True}).json()
    assert label["blind"] is False, "they would see the figures move"


MANY = 400

STOPS: dict[str, Callable[[int], bool]] = {
    "harness": lambda n: n % 6 == 3 or n % 25 == 1,
    "rules": lambda n: n % 12 == 3 or n % 40 == 1,
    "judge": lambda n: (n % 3 == 0 and n % 12 > 0) or n % 20 == 1,
}
"""Of many calls, every third of which people would stop, those that each decider stops."""

WRONG: dict[str, tuple[Callable[[bool, bool], bool], Callable[[bool], bool]]] = {
    "wrongly let through, of all calls": (lambda bad, stops: bad and not stops, lambda bad: True),
    "of the calls to stop": (lambda bad, stops: bad and not stops, lambda bad: bad),
    "wrongly stopped, of all calls": (lambda bad, stops: stops and not bad, lambda bad: True),
    "of the calls to allow": (lambda bad, stops: stops and not bad, lambda bad: not bad),
}
"""The columns of the page: which calls are counted, and of which."""


@pytest.mark.slow
def test_of_calls_of_which_a_plan_drew_some_every_share_has_limits_that_hold_the_truth(tmp_path: Path):
    """For the harness, the rules and the judge: what each wrongly lets through, and what it wrongly stops."""
    calls = [
        make_call_case(
            n,
            bad=n % 3 == 0,
            harness="refused" if STOPS["harness"](n) else "ran",
            rules="failed" if STOPS["rules"](n) else "passed",
            judge=not STOPS["judge"](n),
        )
        for n in range(MANY)
    ]
    place = judge_calls(tmp_path / "runs" / "calls", calls)
    drawn = label_a_plan(place)
    with run_server(tmp_path, server_demo.CONFIG + "labels_per_case = 2\n") as server:
        server.add_account("Rita", "read")
        page = read(server.sign_in("Rita"), "/runs/calls/calls")
    shown = read_shown_rates(page)
    rates = make_call_rates(place)

    assert 50 < drawn < MANY / 2
    assert f"{drawn} calls: " in page
    assert shown.keys() == {(name, column) for name in STOPS for column in WRONG}
    for (name, column), (value, low, high) in shown.items():
        is_wrong, counts = WRONG[column]
        among = [n for n in range(MANY) if counts(n % 3 == 0)]
        truth = sum(is_wrong(n % 3 == 0, STOPS[name](n)) for n in among) / len(among)
        assert 0 < low < value < high < 1, (name, column)
        assert low <= truth <= high, (name, column)
    for decider in rates.deciders:
        share = decider.wrong_stops
        assert shown[decider.name, "wrongly stopped, of all calls"] == pytest.approx(
            (share.value, share.low, share.high), abs=6e-4
        )
    lead = re.search(r"Of the calls that people would stop, these let through: [^<]*", page)
    assert lead is not None
    assert len(re.findall(r"the (?:harness|rules|judge) [\d.]+ % \([\d.]+ to [\d.]+ %\)", lead[0])) == 3


def label_a_plan(place: Path) -> int:
    """Two people label what a plan draws, its pilot and then the rest; the number of calls that were drawn."""
    with open_run(place) as run:
        plan = make_plan(run, within=0.06, seed=1)
        for _ in range(2):
            write_plan(plan, place)
            with open_label_queue(run, per_case=2) as queue:
                for rater in ("Ana", "Ben"):
                    label_all(queue, rater, lambda task: "bad " not in str(task.content))
                status = find_plan_status(plan, tuple(queue.labels()))
            if not status.complete:
                plan = continue_plan(plan, run, status)
        assert status.complete
        return len(plan.order)


def test_hostile_names_and_calls_are_text_on_the_page(tmp_path: Path):
    """The run's, its judge's and its raters': no element of theirs, no direction, no address that is not ours."""
    name = "\u202e<img src=x onerror=alert(1)>"
    calls = [make_call_case(n, bad=n % 2 == 0, judge=n % 3 > 0, words=HOSTILE) for n in range(6)]
    place = judge_calls(tmp_path / name, calls, name=HOSTILE)
    with open_label_queue(place) as queue:
        for rater in ("Ana", "<script>alert(1)</script><img src=x onerror=alert(2)>"):
            for task in iter(lambda rater=rater: queue.next(rater), None):
                queue.record(rater, task.case, "bad " not in str(task.content))
    with view_named([place]) as viewing:
        browser = viewing.enter()
        (run,) = re.findall(r'<a class="row" href="([^"]+)"', browser.get("/runs").text)
        answer = browser.get(f"{html.unescape(run)}/calls")

    page = answer.text
    assert answer.status_code == 200, page[:500]
    assert "let through" in page
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "id=forged" not in page.replace("&lt;b id=forged", "")
    assert not re.search(r'(?:href|src|action)="(?!/|#)[^"]*"', page)
    assert not any(mark in page for mark in "\u202e\u2066\x1b\x07")


def test_without_labels_the_page_says_what_is_missing(server: RunningServer):
    """And for a run of anything else, that it has no such calls; its page leads nowhere."""
    rita = server.sign_in("Rita")

    assert "is not known" in read(rita, "/runs/calls/calls")
    assert "There are no rates" in read(rita, "/runs/answers/calls")
    assert "/runs/answers/calls" not in read(rita, "/runs/answers")
    assert rita.get("/runs/none/calls").status_code == 404


def test_it_is_shown_on_this_machine_without_a_trace(folder: Path):
    """By ``adjudge view``, which records no look; so a first look at planned labels is left to the command."""
    with view_below(folder) as viewing:
        page = read(viewing.enter(), "/runs/calls/calls")

    assert "Who lets what through" in page
    assert load_looks(folder / "runs" / "calls") == ()
