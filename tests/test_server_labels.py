"""The pages Labels and Disagreements, over HTTP and without scripts: blind, several people, pairs, criteria, undo."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from adjudge import Case
from adjudge.labels import open_label_queue
from label_support import make_criteria_run, make_pairs_run, make_run
from server_support import RunningServer, find_token, run_server

CONFIG = """
[server]
runs = "runs"
labels_per_case = 2

[ledger]
url = "sqlite:///adjudge.db"
"""


@pytest.fixture(name="start")
def prepare_server(tmp_path: Path) -> Iterator[Callable[..., RunningServer]]:
    """A server over a folder with one run, which a function makes."""
    opened = []

    def start(make: Callable[[Path], Any], *, config: str = CONFIG) -> RunningServer:
        (tmp_path / "runs").mkdir()
        make(tmp_path / "runs" / "monday")
        context = run_server(tmp_path, config=config)
        opened.append(context)
        server = context.__enter__()
        for name in ("Ana", "Ben"):
            server.add_account(name, "label", "adjudicate")
        server.add_account("Kim", "label", rater=None)
        server.add_account("Zoe", "approve")
        return server

    yield start
    for context in opened:
        context.__exit__(None, None, None)


def read(client: Any, path: str = "/labels/monday.json", **params: Any) -> dict[str, Any]:
    answer = client.get(path, params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def send(client: Any, label: str, *, path: str = "/labels/monday", **more: str) -> Any:
    """Fill in the form of the case that is shown, as a browser without scripts does."""
    page = client.get(path).text
    form = re.search(rf'<form[^>]* action="{path}">.*?</form>', page, re.DOTALL)
    assert form is not None, page
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form[0]))
    return client.post(path, data=fields | {"label": label} | more)


def undo(client: Any, path: str = "/labels/monday") -> Any:
    return client.post(f"{path}/undo", data={"csrf_token": find_token(client, path)})


def list_labels(server: RunningServer) -> list[tuple[str, str, Any, str]]:
    with open_label_queue(server.folder / "runs" / "monday") as queue:
        return [(label.rater, label.case, label.value, label.kind) for label in queue.labels()]


def test_a_case_is_labelled_and_the_next_one_comes(start: Callable[..., RunningServer]):
    """Good, bad, cannot tell, a comment, and how far one is."""
    server = start(make_run)
    ana = server.sign_in("Ana")
    cases = []
    for label in ("good", "bad", "cannot-tell"):
        cases.append(read(ana)["task"]["case"])
        answer = send(ana, label, comment=f"because {label}")
        assert (answer.status_code, answer.headers["location"]) == (303, "/labels/monday")

    assert list_labels(server) == [
        ("Ana", case, value, "person") for case, value in zip(cases, (True, False, "cannot_tell"), strict=True)
    ]
    found = read(ana)
    assert (found["progress"]["mine"], found["progress"]["total"], found["last"]) == (
        3, 6, {"case": cases[-1], "said": "cannot tell"},
    )  # fmt: skip
    page = ana.get("/labels").text
    assert "monday" in page
    assert "3 of 6" in page


def test_nothing_of_the_judge_and_of_others_is_in_the_page(start: Callable[..., RunningServer]):
    """Nor in its twin, not even hidden: it is not in the value that both are made from."""
    cases = [
        Case(id=f"c{n}", content=f"reply {n}", label=True, metadata={"note": "MARKED"}, group=f"GROUPED{n}")
        for n in range(4)
    ]
    server = start(lambda place: make_run(place, cases))
    ben = server.sign_in("Ben")
    for label in ("good", "bad", "good", "bad"):
        send(ben, label, comment="BENSAID")

    ana = server.sign_in("Ana")
    while (found := read(ana))["task"] is not None:
        for text in (ana.get("/labels/monday").text, ana.get("/labels/monday.json").text):
            for secret in ("BENSAID", "MARKED", "GROUPED", "judge of words", "passed with", "failed with", "Ben"):
                assert secret not in text
        assert found["agreement"] is None
        assert ana.get("/labels/monday/others.json", params={"case": found["task"]["case"]}).status_code == 422
        send(ana, "good")
    # Afterwards, to read.
    assert found["agreement"]["agreed"]["of"] == 4
    page = ana.get("/labels/monday/others", params={"case": "c1"}).text
    assert "BENSAID" in page
    assert "<form class" not in page.replace('<form class="pick', "").replace('<form class="push', "")


def test_a_case_that_somebody_has_is_kept_for_them(start: Callable[..., RunningServer]):
    """Two people get different cases; a page that is loaded again shows the same."""
    config = CONFIG.replace("labels_per_case = 2", "labels_per_case = 1")
    server = start(make_run, config=config)
    ana, ben = server.sign_in("Ana"), server.sign_in("Ben")
    first, other = read(ana)["task"]["case"], read(ben)["task"]["case"]

    assert first != other
    assert read(ana)["task"]["case"] == first


def test_a_skipped_case_comes_back_at_the_end_and_undo_shows_the_last(start: Callable[..., RunningServer]):
    """Undo takes back what was done last, a skip too."""
    server = start(lambda place: make_run(place, 2))
    ana = server.sign_in("Ana")
    skipped = read(ana)["task"]["case"]
    send(ana, "skip")
    other = read(ana)["task"]["case"]
    send(ana, "good")
    assert read(ana)["task"]["case"] == skipped
    assert "You skipped it before" in ana.get("/labels/monday").text

    assert undo(ana).status_code == 303
    assert (read(ana)["task"]["case"], list_labels(server)) == (other, [])


def test_each_criterion_is_asked_for(start: Callable[..., RunningServer]):
    """Those that a rule decides are not."""
    server = start(make_criteria_run, config=CONFIG.replace("per_case = 2", "by_criterion = true"))
    ana = server.sign_in("Ana")
    asked = []
    assert "a rule decides" in ana.get("/labels/monday").text
    while (task := read(ana)["task"]) is not None:
        asked.append((task["case"], task["criterion"]))
        assert send(ana, "good").status_code == 303

    assert {name for _, name in asked} == {"polite", "right"}
    assert len(asked) == 6


def test_the_sides_of_a_pair_are_named_by_their_place(start: Callable[..., RunningServer]):
    """Which of its own sides is A is not in the page; the label names the case's own side."""
    server = start(make_pairs_run)
    ana = server.sign_in("Ana")
    firsts = []
    while (task := read(ana)["task"]) is not None:
        assert [item["name"] for item in task["sides"]] == ["A", "B"]
        text = ana.get("/labels/monday").text
        assert 'value="first"' not in text
        assert '"order"' not in ana.get("/labels/monday.json").text
        firsts.append((task["case"], task["sides"][0]["text"].startswith("left")))
        assert send(ana, "a").status_code == 303

    said = {case: value for _, case, value, _ in list_labels(server)}
    assert said == {case: "first" if is_first else "second" for case, is_first in firsts}
    assert len(set(said.values())) == 2


def test_an_answer_to_another_pair_than_the_one_shown_is_refused(start: Callable[..., RunningServer]):
    """A page from before would say the wrong side; what was typed is kept."""
    server = start(make_pairs_run)
    ana = server.sign_in("Ana")
    answer = send(ana, "a", case="pair-0" if read(ana)["task"]["case"] != "pair-0" else "pair-1", comment="typed it")

    assert answer.status_code == 422
    assert "not the pair that you have now" in answer.text
    assert "typed it" in answer.text
    assert list_labels(server) == []


def test_differences_are_settled_by_who_may(start: Callable[..., RunningServer]):
    """With who said what; the judge is shown when asked for, and the agreement is."""
    server = start(lambda place: make_run(place, 3))
    ana, ben = server.sign_in("Ana"), server.sign_in("Ben")
    for client, labels in ((ana, ("good", "good", "good")), (ben, ("bad", "good", "bad"))):
        for label in labels:
            send(client, label, comment=f"{label} it is")
    found = read(ana, "/labels/monday/differences.json")
    people = {row["who"]: row["word"] for row in found["said"]}
    assert (found["open"], people) == (2, {"Ana": "good", "Ben": "bad"})
    assert found["agreement"]["agreed"]["rate"] == pytest.approx(1 / 3)
    assert "2" in ana.get("/labels").text

    shown = read(ana, "/labels/monday/differences.json", verdict="true")
    assert len(shown["said"]) == 3

    path = "/labels/monday/differences"
    answer = send(ana, "bad", path=path, comment="no percentages", silent="true")
    assert (answer.status_code, answer.headers["location"]) == (303, path)
    settled = [label for label in list_labels(server) if label[3] == "adjudication"]
    assert [(rater, value) for rater, _, value, _ in settled] == [("Ana", False)]
    with open_label_queue(server.folder / "runs" / "monday") as queue:
        assert [label.comment for label in queue.labels() if label.kind == "adjudication"] == [
            "rubric silent: no percentages"
        ]
    assert undo(ana, path).status_code == 303
    assert [label for label in list_labels(server) if label[3] == "adjudication"] == []
    assert send(ana, "skip", path=path).status_code == 303
    assert read(ana, f"{path}.json")["open"] == 2


HOSTILE = "</textarea></div><script>alert(1)</script>\"'><img src=x onerror=alert(1)>{{7*7}}\u202e\x1b[31m"


def test_nothing_of_a_case_becomes_html(start: Callable[..., RunningServer]):
    """Ids, contents, tasks, references and comments are text, whoever wrote them."""
    case = Case(id=f"x{HOSTILE}", content=HOSTILE, task=HOSTILE, context=HOSTILE, reference=HOSTILE)
    server = start(lambda place: make_run(place, [case]))
    ana, ben = server.sign_in("Ana"), server.sign_in("Ben")
    pages = [ana.get("/labels/monday").text]
    send(ben, "bad", comment=HOSTILE)
    page = ana.get("/labels/monday").text
    token = find_token(ana, "/labels/monday")
    pages.append(page)
    data = {"csrf_token": token, "case": case.id, "label": "good", "comment": HOSTILE}
    assert ana.post("/labels/monday", data=data).status_code in (303, 422)
    pages += [ana.get(f"/labels/monday{rest}").text for rest in ("", "/differences", "/others")]
    for text in pages:
        for said in ("<script>alert", "<img", "\x1b", "\u202e"):
            assert said not in text


def test_who_may_label_and_settle(start: Callable[..., RunningServer]):
    """Scopes, a rater's name, the token of the form, and only runs of the folder."""
    server = start(lambda place: make_run(place, 2))
    ana, kim, zoe = (server.sign_in(name) for name in ("Ana", "Kim", "Zoe"))
    task = read(ana)["task"]
    form = {"case": task["case"], "label": "good"}

    assert ana.post("/labels/monday", data=form).status_code == 403
    assert kim.get("/labels/monday").status_code == 403
    assert kim.get("/labels/monday/differences").status_code == 403
    assert zoe.get("/labels").status_code == 403
    for name in ("tuesday", "..", "%2e%2e", "monday%2f..%2fmonday"):
        assert ana.get(f"/labels/{name}").status_code in (307, 303, 404), name
    token = find_token(ana, "/labels/monday")
    for data in ({"case": "nobody", "label": "good"}, {"case": task["case"], "label": "nonsense"}):
        assert ana.post("/labels/monday", data=data | {"csrf_token": token}).status_code == 422
    assert list_labels(server) == []


def test_looking_at_the_list_begins_no_file_of_labels(start: Callable[..., RunningServer]):
    """The order is drawn when somebody labels."""
    server = start(lambda place: make_run(place, 2))
    assert "not begun" in server.sign_in("Ana").get("/labels").text

    assert not (server.folder / "runs" / "monday" / "labels.sqlite").exists()
