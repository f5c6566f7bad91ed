"""``adjudge run --batch`` and ``adjudge batch``: what is said, and what a person can do about batches under way."""

from __future__ import annotations

import json
import signal
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from adjudge import open_run
from kit import cli
from kit.batch import BatchServer, serve
from kit.cli import Line
from kit.judges import names
from kit.patience import HANG, wait_for

pytestmark = pytest.mark.timed


@pytest.fixture(name="line")
def provide_line(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Line:
    """The command line in an empty folder with 12 cases."""
    cli.isolate(monkeypatch, tmp_path)
    rows = [{"id": str(n), "content": f"a {'bad' if n % 3 == 0 else 'good'} text {n}"} for n in range(12)]
    Path("data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return Line(capsys)


@pytest.fixture(name="server")
def provide_server() -> Iterator[BatchServer]:
    """A server of one's own with batches."""
    with serve() as server:
        yield server


def spec(server: BatchServer) -> str:
    return f"{server.base}#small"


def ask(server: BatchServer, *more: str) -> tuple[str, ...]:
    """A run by batches that is in a hurry."""
    words = ("run", "data.jsonl", "--criteria", "Is good.", "--judge", spec(server), "--batch")
    return (*words, "--batch-poll", "0.02", "--out", "R", *more)


def test_a_data_set_is_judged_by_batch(line: Line, server: BatchServer):
    """The first cases live, the rest in one batch; the summary is that of every run."""
    done = line(*ask(server, "--batch-check", "2", "--json"))

    assert (done.status, done.document["counts"]) == (0, {"passed": 8, "failed": 4, "undecided": 0})
    assert (sum(server.live.values()), [len(job.lines) for job in server.jobs.values()]) == (2, [10])
    assert done.document["options"]["batch"]["check"] == 2


def test_what_a_batch_saves_is_said_before_anything_is_sent(line: Line, server: BatchServer):
    """Of a server of one's own nobody knows."""
    done = line(*ask(server, "--batch-check", "0"))

    assert f"{spec(server)}: it is not known what its batches save" in done.err


def test_batches_are_listed(line: Line, server: BatchServer):
    """As a table and as JSON, with the provider's own words."""
    line(*ask(server, "--batch-check", "0"))

    shown, document = line("batch", "list", "R"), line("batch", "list", "R", "--json").document
    [kept] = document["batches"]
    assert "collected" in shown.out
    assert (document["schema"], kept["state"], kept["provider_state"]) == (
        "adjudge/batch-list/1",
        "collected",
        "completed",
    )
    assert (kept["requests"], kept["answered"], kept["provider_id"]) == (12, 12, "batch_0")


@pytest.mark.integration
@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
def test_an_interrupt_leaves_batches_which_can_be_collected_and_judged(line: Line, server: BatchServer, tmp_path: Path):
    """Ctrl-C says what can be done; collect keeps what has come back, and --resume judges it without asking."""
    server.looks = 1_000_000
    process = cli.start(tmp_path, *ask(server, "--batch-check", "0"))
    assert server.created.wait(HANG)
    wait_for(lambda: any(job.looks for job in server.jobs.values()))  # so it has written down which batch it made
    process.send_signal(signal.SIGINT)
    left = cli.finish(process)
    assert left.status == 130, left.err
    assert "adjudge batch collect R" in left.err
    assert "--out R --resume" in left.err

    server.looks = 0
    collected = line("batch", "collect", "R", "--wait", "--batch-poll", "0.02", "--json")
    assert [item["state"] for item in collected.document["batches"]] == ["collected"]
    assert sum(open_run("R").counts.values()) == 0

    asked = len(server.seen)
    done = line(*ask(server, "--resume", "--json"))
    assert (done.status, done.document["counts"]["undecided"], len(server.seen) - asked) == (0, 0, 0)


@pytest.mark.integration
@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
def test_a_batch_can_be_cancelled(line: Line, server: BatchServer, tmp_path: Path):
    """Its requests are then undecided, and asked again only with --retry error."""
    server.looks = 1_000_000
    process = cli.start(tmp_path, *ask(server, "--batch-check", "0"))
    assert server.created.wait(HANG)
    wait_for(lambda: any(job.looks for job in server.jobs.values()))  # so it has written down which batch it made
    process.send_signal(signal.SIGINT)
    cli.finish(process)

    server.run_share = 0.5
    cancelled = line("batch", "cancel", "R", "--json")
    assert [item["state"] for item in cancelled.document["batches"]] == ["cancelling"]
    done = line(*ask(server, "--resume", "--json"))
    assert done.document["summary"]["undecided_because"] == {"error": 6}

    server.looks, server.run_share = 0, 1.0
    done = line(*ask(server, "--resume", "--retry", "error", "--json"))
    assert (done.document["counts"]["undecided"], set(server.run.values())) == (0, {1})


def test_a_doubtful_batch_is_shown(line: Line, server: BatchServer):
    """The run ends with 3, and nothing sends it again but --pay-again."""
    server.lose_answers, server.lists = 1, False
    done = line(*ask(server, "--batch-check", "0"))
    assert (done.status, "doubtful" in done.err, "--pay-again" in done.err) == (3, True, True)

    shown = line("batch", "list", "R")
    assert ("doubtful" in shown.out, "nothing sends it again" in shown.err) == (True, True)
    refused = line("batch", "cancel", "R", "-n", "1")
    assert (refused.status, "cannot be cancelled" in refused.sentence) == (2, True)

    again = line(*ask(server, "--resume", "--pay-again", "--json"))
    assert (again.status, server.creations) == (0, 2)


def test_a_broken_prompt_ends_before_anything_is_sent(line: Line, server: BatchServer):
    """The message names what to look at."""
    words = ("run", "data.jsonl", "--criteria", "c", "--judge", f"{server.base}#mute", "--batch", "--out", "R")
    done = line(*words, "--batch-check", "4")

    assert (done.status, server.creations) == (3, 0)
    assert "nothing was sent by batch" in done.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--batch-check", "3"), "--batch-check belongs to --batch"),
        (("--pay-again",), "--pay-again belongs to --batch"),
        (("--batch", "--pay-again"), "--pay-again belongs to --resume"),
        (("--batch", "--batch-then", "soon"), "--batch-then"),
        (("--batch", "--batch-poll", "0"), "--batch-poll"),
        (("--batch", "--batch-size", "0"), "--batch-size"),
    ],
)
def test_options_of_batches_are_refused_in_a_sentence(line: Line, words: tuple[str, ...], message: str):
    """Before anything is opened."""
    done = line("run", "data.jsonl", "--criteria", "c", "--judge", "http://127.0.0.1:9/v1#m", *words)

    assert (done.status, message in done.sentence) == (2, True)


def test_a_folder_that_names_a_model_without_batches_is_refused(line: Line, server: BatchServer):
    """A folder may come from anybody: what it names is opened as a model with batches, or not at all."""
    server.lose_answers, server.lists = 1, False
    line(*ask(server, "--batch-check", "0"))
    with closing(sqlite3.connect("R/batches.sqlite")) as connection, connection:
        connection.execute("UPDATE batches SET model = 'rules'")
    for words in (("collect", "R"), ("cancel", "R")):
        done = line("batch", *words)

        assert (done.status, names(done.sentence, "rules cannot be asked by batch")) == (2, True)


def test_a_recorded_option_that_is_unknown_is_refused_in_a_sentence(line: Line, server: BatchServer):
    """Also where options are said anew, with which it would go together."""
    line(*ask(server))
    path = Path("R/run.json")
    path.write_text(path.read_text("utf-8").replace('"check": ', '"shuffle": 1, "check": ', 1), encoding="utf-8")
    done = line(*ask(server, "--resume", "--batch-size", "5"))

    assert (done.status, names(done.sentence, "'shuffle'", "update adjudge")) == (2, True)


def test_a_run_without_batches_has_none_to_list(line: Line):
    """Nor has a folder that is no run."""
    line("run", "data.jsonl", "--criteria", "c", "--judge", cli.WORDS, "--out", "R")

    assert "has no batches" in line("batch", "list", "R").sentence
    assert line("batch", "collect", "nowhere").status == 2
    assert line("batch", "cancel", "R").status == 2


def test_a_strangers_folder_gets_no_key(line: Line, server: BatchServer, monkeypatch: pytest.MonkeyPatch):
    """A folder names a model and no key variable: to an address in it no key is sent."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-the-key-of-whoever-opens-it")
    server.lose_answers, server.lists = 1, False
    line(*ask(server, "--batch-check", "0"))
    server.lists = True
    line("batch", "collect", "R")

    assert not any("the-key" in value for value in server.keys)
