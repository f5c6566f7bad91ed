"""Labelling a run over HTTP, and reading runs; and the whole description of the server, asked by a fuzzer."""

from __future__ import annotations

import threading

import pytest

from adjudge import Client, UsageError
from label_support import make_run
from server_support import CONFIG, run, run_server


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    # In a thread: what makes the run leaves a loop behind in the one that it is called in.
    maker = threading.Thread(target=make_run, args=(folder / "runs" / "first",), kwargs={"cases": 3})
    maker.start()
    maker.join()
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
            settled = await queue.settle(first[0], False, comment="no")
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

    assert [item["name"] for item in listed] == ["first"]
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
