"""Labelling a run over HTTP, and reading runs; and the whole description of the server, asked by a fuzzer."""

from __future__ import annotations

import json
import re
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from adjudge import Client, UsageError
from adjudge.labels import open_label_queue
from kit.labels import make_run
from kit.server import CONFIG, find_token, read_token, run, run_server

pytestmark = pytest.mark.timed


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    # In a thread: what makes the run leaves a loop behind in the one that it is called in.
    maker = threading.Thread(target=make_run, args=(folder / "runs" / "first",), kwargs={"cases": 3})
    maker.start()
    maker.join()
    for name in ("crowd", "tabs"):
        shutil.copytree(folder / "runs" / "first", folder / "runs" / name)
    (folder / "runs" / "not-a-run").mkdir()
    (folder / "outside").mkdir()
    (folder / "runs" / "link").symlink_to(folder / "runs" / "first")
    with run_server(folder, CONFIG + '\n[server]\nruns = "runs"\n') as running:
        yield running


def open_queue(server, rater, *scopes):
    return Client(server.url, key=server.make_key(*scopes or ("label",), rater=rater))


def test_two_people_label_blind_and_one_settles(server):
    """Nobody is shown what the judge or others said, and everybody's labels are exported."""

    async def label(client, value):
        async with client:
            queue = client.label_queue("first")
            cases = []
            while (task := await queue.next()) is not None:
                assert (task.results, task.others) == ((), ())
                cases.append((await queue.record(task.case, value)).case)
            return cases, await queue.progress()

    first, progress = run(label(open_queue(server, "Ana"), True))
    assert (len(first), progress.mine, progress.complete) == (3, 3, 3)

    async def export():
        async with open_queue(server, "Chair", "adjudicate", "read") as client:
            queue = client.label_queue("first")
            settled = await queue.adjudicate(first[0], False, comment="no")
            return settled, await queue.labels()

    settled, labels = run(export())
    assert (settled.kind, settled.value) == ("adjudication", False)
    assert {label.rater for label in labels} == {"Ana", "Chair"}


def test_an_answer_is_taken_back(server):
    """And the case comes again."""

    async def work():
        async with open_queue(server, "Ana") as client:
            queue = client.label_queue("first")
            undone = await queue.undo()
            task = await queue.next()
            await queue.skip(task.case)
            again = await queue.next(skipped=True)
            await queue.record(again.case, "cannot_tell")
            return undone, task.case

    undone, case = run(work())
    assert undone == case


def test_people_who_ask_at_the_same_time_get_different_cases(server):
    """Each case is kept for one of them, where one label of each is wanted; the last person gets none."""
    clients = [server.open_client(key=server.make_key("label", rater=f"Crowd {n}")) for n in range(4)]
    with ThreadPoolExecutor(4) as pool:
        tasks = list(pool.map(lambda client: client.post("/v1/labels/crowd/next", json={}).json()["task"], clients))
    cases = [task["case"] for task in tasks if task is not None]

    assert (len(cases), len(set(cases))) == (3, 3)


def test_two_tabs_and_two_keys_of_one_person_leave_one_label(server):
    """Of each person and case, whichever answer came last; another person's label stays beside it."""
    keys = [server.make_key("label", rater=rater) for rater in ("Ana", "Ana", "Ben", "Ben")]
    # Two clients for each key are two tabs: they have one session.
    clients = [server.open_client(key=key) for key in keys for _ in range(2)]
    case = clients[0].post("/v1/labels/tabs/next", json={}).json()["task"]["case"]

    def label(place):
        body = {"case": case, "value": place % 2 == 0}
        return clients[place % len(clients)].post("/v1/labels/tabs/labels", json=body).status_code

    with ThreadPoolExecutor(len(clients)) as pool:
        statuses = set(pool.map(label, range(4 * len(clients))))
    reader = server.open_client(key=server.make_key("read"))
    labels = reader.get("/v1/labels/tabs/labels").json()["labels"]

    assert statuses == {200}
    assert sorted((one["case"], one["rater"]) for one in labels) == [(case, "Ana"), (case, "Ben")]


def test_who_labels_does_not_see_others_labels(server):
    """They would not be blind any more."""
    client = server.open_client(key=server.make_key("label", rater="Ben"))

    assert client.get("/v1/labels/first/labels").status_code == 403


@pytest.mark.parametrize("value", ["good", None, [], {}, "1", "first"])
def test_what_is_no_answer_is_refused(server, value):
    """Before anything is written."""
    client = server.open_client(key=server.make_key("label", rater="Eve"))
    case = client.post("/v1/labels/first/next", json={}).json()["task"]
    case = "case-0" if case is None else case["case"]

    assert client.post("/v1/labels/first/labels", json={"case": case, "value": value}).status_code == 422


def test_only_run_folders_are_served(server):
    """No other folder, no link, and nothing outside."""
    client = server.open_client(key=server.make_key("read", "label", rater="Ana"))
    listed = client.get("/v1/runs").json()["runs"]

    assert sorted(item["name"] for item in listed) == ["crowd", "first", "tabs"]
    assert client.get("/v1/runs/first").json()["schema"].startswith("adjudge/report/")
    for name in ("not-a-run", "link", "outside", "..", "%2e%2e", "%2e%2e%2foutside", "nothing", "a" * 500):
        assert client.get(f"/v1/runs/{name}").status_code == 404, name
        assert client.post(f"/v1/labels/{name}/next", json={}).status_code in (404, 405), name


def test_a_run_that_is_not_there_is_an_error_for_the_client(server):
    """With the sentence that says so."""

    async def ask():
        async with open_queue(server, "Ana") as client:
            await client.label_queue("nothing").next()

    with pytest.raises(UsageError, match="nothing"):
        run(ask())


def test_so_many_people_label_each_case_as_the_configuration_says(tmp_path):
    """With two, a case that one has labelled is complete once another has. No third is asked."""
    maker = threading.Thread(target=make_run, args=(tmp_path / "runs" / "first",), kwargs={"cases": 1})
    maker.start()
    maker.join()
    with run_server(tmp_path, CONFIG + '\n[server]\nruns = "runs"\nlabels_per_case = 2\n') as server:
        complete = []
        for rater in ("Ana", "Ben"):
            queue = open_queue(server, rater).label_queue("first")
            task = queue.next_sync()
            queue.record_sync(task.case, True)
            assert queue.next_sync() is None
            complete.append(queue.progress_sync().complete)
        assert complete == [0, 1]

        queue = open_queue(server, "Eve").label_queue("first")
        assert queue.next_sync() is None
        exported = open_queue(server, None, "read").label_queue("first").labels_sync()
        assert sorted((label.rater, label.value) for label in exported) == [("Ana", True), ("Ben", True)]


def test_the_live_rate_tells_what_another_said_of_a_case_that_one_answers_out_of_turn(tmp_path):
    """It moves where two differ, so an answer that is given after looking at it is not blind."""
    maker = threading.Thread(target=make_run, args=(tmp_path / "runs" / "first",), kwargs={"cases": 6})
    maker.start()
    maker.join()
    with run_server(tmp_path, CONFIG + '\n[server]\nruns = "runs"\n') as server:
        ana, ben = open_queue(server, "Ana").label_queue("first"), open_queue(server, "Ben")
        case = ana.next_sync().case
        ana.record_sync(case, True)
        page = server.open_client(key=server.make_key("label", rater="Ben"))

        queue = ben.label_queue("first")
        assert queue.record_sync(case, False).blind
        assert "Nothing left to label" not in page.get("/labels/first").text
        assert not queue.record_sync(case, True).blind
        assert queue.record_sync(queue.next_sync().case, True).blind


# ---------------------------------------------------------------- the page


TWO_EACH = CONFIG + '\n[server]\nruns = "runs"\nlabels_per_case = 2\n'


def test_an_answer_about_another_content_than_was_shown_is_refused(tmp_path):
    """By a client and on the page: somebody read the text of a run that was made again since."""
    make_run(tmp_path / "runs" / "first", 3)
    with run_server(tmp_path, CONFIG + '\n[server]\nruns = "runs"\n') as running:
        running.add_account("Ana")
        client, page = running.open_client(key=running.make_key("label", rater="Bob")), running.sign_in("Ana")
        task = client.post("/v1/labels/first/next", json={}).json()["task"]
        answer = {"case": task["case"], "value": True}
        refused = client.post("/v1/labels/first/labels", json=answer | {"subject": "0" * 64})
        taken = client.post("/v1/labels/first/labels", json=answer | {"subject": task["subject"]})
        text = page.get("/labels/first").text
        case, subject = (re.search(rf'name="{name}" value="([^"]*)"', text)[1] for name in ("case", "subject"))
        form = {"csrf_token": find_token(page, "/labels/first"), "case": case, "label": "good"}
        wrong = page.post("/labels/first", data=form | {"subject": "0" * 64})
        right = page.post("/labels/first", data=form | {"subject": subject})

    assert (refused.status_code, taken.status_code, wrong.status_code, right.status_code) == (422, 200, 422, 303)
    assert taken.json()["subject"] == task["subject"]
    assert "another content" in wrong.text
    with open_label_queue(tmp_path / "runs" / "first") as queue:
        assert {label.rater for label in queue.labels()} == {"Ana", "Bob"}


def test_a_run_that_is_finished_while_it_is_labelled_is_drawn_from_afterwards(tmp_path):
    """The server keeps the file of labels open, and looks whether the run has all of its cases by now."""
    folder = make_run(tmp_path / "runs" / "first", 6)
    path = folder / "run.json"
    whole = path.read_text("utf-8")
    path.write_text(json.dumps(json.loads(whole) | {"status": "interrupted"}), "utf-8")

    def label(client):
        task = client.post("/v1/labels/first/next", json={}).json()["task"]
        client.post("/v1/labels/first/labels", json={"case": task["case"], "value": True})
        answer = running.open_client(key=running.make_key("read", "adjudicate")).get("/v1/labels/first/labels")
        return [item.get("design") for item in answer.json()["labels"]]

    with run_server(tmp_path, CONFIG + '\n[server]\nruns = "runs"\n') as running:
        client = running.open_client(key=running.make_key("label", rater="Ana"))
        early = label(client)
        path.write_text(whole, "utf-8")
        late = label(client)

    assert early == [None]
    assert all(design is not None and design["cases"] == 6 for design in late)


@pytest.fixture(scope="module", name="pages")
def start_pages(tmp_path_factory):
    """A server on which two people label each of 13 cases."""
    folder = tmp_path_factory.mktemp("pages")
    maker = threading.Thread(target=make_run, args=(folder / "runs" / "first",), kwargs={"cases": 13})
    maker.start()
    maker.join()
    with run_server(folder, TWO_EACH) as running:
        for name in ("Ana", "Ben"):
            running.add_account(name)
        yield running


def say(client, label):
    """Answer the case that the page shows, or nothing where there is none."""
    page = client.get("/labels/first").text
    case = re.search(r'name="case" value="([^"]*)"', page)
    if case is None:
        return None
    token = read_token(client, page)
    answer = client.post("/labels/first", data={"csrf_token": token, "case": case[1], "label": label})
    assert answer.status_code == 303
    return case[1]


def undo(client):
    answer = client.post("/labels/first/undo", data={"csrf_token": find_token(client, "/labels")})
    assert answer.status_code == 303


def read_plain(client, path):
    """A page without tokens and times of day."""
    return re.sub(r'name="csrf_token" value="[^"]*"|<time .*?</time>', "", client.get(path).text)


@pytest.mark.slow
def test_a_page_of_labelling_does_not_tell_what_another_answered(pages):
    """It is the same to a byte whichever way the first one answered; what is read at the end makes labels not blind."""
    ana, ben = pages.sign_in("Ana"), pages.sign_in("Ben")
    for _ in range(13):
        say(ana, "good")
    for _ in range(12):
        last = say(ben, "good")
    paths = ("/labels/first", "/labels")
    before = [read_plain(ben, path) for path in paths]

    api = pages.open_client(key=pages.make_key("label", rater="Ana"))
    assert api.post("/v1/labels/first/labels", json={"case": last, "value": False}).status_code == 200
    assert [read_plain(ben, path) for path in paths] == before
    assert "it would tell what others said" in before[0]

    say(ben, "good")
    page = " ".join(ben.get("/labels/first").text.split())
    assert "People agree on 92.3 %" in page
    assert "it would tell what others said" not in page
    undo(ben)
    case = say(ben, "bad")
    with open_label_queue(pages.folder / "runs" / "first", per_case=2) as queue:
        blind = {label.case: label.blind for label in queue.labels() if label.rater == "Ben"}
    assert [name for name, was in blind.items() if not was] == [case]

    page = ben.get("/labels/first/others").text
    rows = [row for row in page.split("<tr>") if "/labels/first/others?case=" in row]
    differing = ["differs</span>" in row for row in rows]
    assert differing == sorted(differing, reverse=True)
    assert {re.search(r"others[?]case=([^\"]+)", row)[1] for row in rows[:2]} == {last, case}
    assert sum(differing) == 2
    assert 'href="/labels/first"' in ben.get("/runs/first").text
