"""``adjudge replace-judge --batch``: candidates asked by batch come to the same as live, and are paid once."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adjudge import Case, Judge, open_run, run
from kit import cli
from kit.batch import PROVIDERS, BatchServer, serve
from kit.cli import Line, Ran
from kit.judges import names
from kit.patience import HANG, wait_for
from kit.runs import CRITERIA, make_cases

pytestmark = pytest.mark.timed


pytest.importorskip("scipy", reason="measuring needs the extra trust")

LABELLED = 24

PRICES = '[prices]\n"small" = { input = 1.0, output = 5.0 }\n"other" = { input = 0.5, output = 2.0 }\n'


def pass_all(content: str) -> bool:
    """A judge in code that passes every case here."""
    return "text" in content


@pytest.fixture(name="line")
def provide_line(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Line:
    """The command line beside a run of the old judge, over labelled cases and some that nobody labelled.

    People say the opposite of two contents, so that candidates are wrong about those.
    """
    cli.isolate(monkeypatch, tmp_path)
    Path("adjudge.toml").write_text(PRICES)
    labelled = make_cases(LABELLED)
    labelled[:2] = [Case(id=case.id, content=case.content, label=not case.label) for case in labelled[:2]]
    more = [Case(id=f"open-{at}", content=f"a good text that nobody labelled {at}") for at in range(5)]
    run([*labelled, *more], Judge(pass_all, name="old"), criteria=CRITERIA, out="old").finish_sync()
    return Line(capsys)


@pytest.fixture(name="server")
def provide_server() -> Iterator[BatchServer]:
    """A server of one's own with batches."""
    with serve() as server:
        yield server


def ask(*candidates: str, check: str = "0", more: tuple[str, ...] = ()) -> tuple[str, ...]:
    """A comparison by batch that is in a hurry, and asks so many cases live first."""
    named = [word for name in candidates for word in ("--candidate", name)]
    options = ("--batch", "--batch-poll", "0.02", "--batch-check", check)
    return ("replace-judge", "--judge", "old", *named, *options, *more)


def find_runs() -> list[Path]:
    """The folders of the candidates' runs."""
    return sorted(Path("old/candidates").iterdir())


def without_folders(ran: Ran) -> dict[str, Any]:
    """The compared candidates, without the ids and the folders of its runs."""
    document: dict[str, Any] = ran.document
    for part in (document, *document["candidates"]):
        part.pop("folder")
        part["measurement"].pop("run")
    return document


def test_candidates_by_batch_come_to_what_asking_them_live_comes_to(line: Line, server: BatchServer):
    """The same document, with each labelled case paid for once; all candidates wait at the same time."""
    specs = (f"{server.base}#small", f"{server.base}#other")

    by_batch = line(*ask(*specs, more=("--json",)))
    jobs, asked_live = [len(job.lines) for job in server.jobs.values()], sum(server.live.values())
    named = [word for spec in specs for word in ("--candidate", spec)]
    live = line("replace-judge", "--judge", "old", *named, "--out", "live", "--json")

    assert by_batch.status == live.status == 0, by_batch.err
    assert (jobs, asked_live, sorted(server.run.values())) == ([LABELLED, LABELLED], 0, [1] * 2 * LABELLED)
    assert sum(server.live.values()) == 2 * LABELLED
    assert without_folders(by_batch) == without_folders(live)
    first = by_batch.document["candidates"][0]
    assert (first["agreement"]["after"], first["cost_usd"][1] > 0) == (LABELLED - 2, True)


@pytest.mark.parametrize("kind", PROVIDERS)
def test_every_provider_with_batches_may_be_a_candidate(line: Line, monkeypatch: pytest.MonkeyPatch, kind: str):
    """Named as a judge of the configuration."""
    monkeypatch.setenv("SOME_KEY", "sk-test")
    with serve(kind) as server:
        lines = f'seats = ["{kind}:small"]\nbase_url = "{server.base}"\nkey_env = "SOME_KEY"\n'
        Path("adjudge.toml").write_text(f"[judges.next]\n{lines}")
        done = line(*ask("next", more=("--json",)))

        assert done.status == 0, done.err
        assert done.document["candidates"][0]["agreement"]["after"] == LABELLED - 2
        assert (len(server.run), sum(server.live.values())) == (LABELLED, 0)


@pytest.mark.integration
@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
def test_an_interrupt_leaves_the_batches_and_another_command_goes_on_with_them(
    line: Line, server: BatchServer, tmp_path: Path
):
    """Also with the candidates in another order and without saying --batch again; nothing is paid twice."""
    specs = (f"{server.base}#small", f"{server.base}#other")
    server.looks = 1_000_000
    process = cli.start(tmp_path, *ask(*specs))
    wait_for(lambda: len(server.jobs) >= 2)
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    left = cli.finish(process)
    assert left.status == 130, left.err
    assert all(f"adjudge batch collect {folder}" in left.err for folder in find_runs())
    assert "--resume" in left.err

    server.looks = 0
    went_on = (
        "replace-judge",
        "--judge",
        "old",
        "--candidate",
        specs[1],
        "--candidate",
        specs[0],
        "--resume",
        "--json",
    )
    done = line(*went_on)
    assert done.status == 0, done.err
    assert [item["judge"] for item in done.document["candidates"]] == list(reversed(specs))
    assert (server.creations, sorted(server.run.values()), sum(server.live.values())) == (2, [1] * 2 * LABELLED, 0)


@pytest.mark.integration
@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
def test_an_interrupt_of_candidates_that_are_asked_live_keeps_what_was_answered(line: Line, tmp_path: Path):
    """The second candidate is not begun; the command goes on with --resume."""
    with cli.serve(mode="hang", models=("small", "other")) as provider:
        words = (
            "replace-judge",
            "--judge",
            "old",
            "--candidate",
            provider.spec,
            "--candidate",
            f"{provider.url}#other",
        )
        process = cli.start(tmp_path, *words)
        assert provider.asked.wait(HANG)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert any(b"interrupt again" in row for row in iter(process.stderr.readline, b""))
        process.send_signal(signal.SIGINT)  # nothing is answered here, so that nothing is worth the seconds
        left = cli.finish(process)
        assert (left.status, "--resume" in left.err) == (130, True), left.err
        assert {body["model"] for body in provider.bodies} == {"small"}

        provider.mode = "answer"
        done = line(*words, "--resume", "--json")
    assert done.status in (1, 3), done.err
    assert [item["agreement"]["of"] for item in done.document["candidates"]] == [LABELLED, LABELLED]


def test_a_candidate_without_batches_is_refused_before_anything_is_paid(
    line: Line, server: BatchServer, monkeypatch: pytest.MonkeyPatch
):
    """The message says how it can be asked live beside the others: alone first, and then by the name of its run."""
    monkeypatch.setenv("MISTRAL_API_KEY", "sk-test")
    refused = line(*ask(f"{server.base}#small", "mistral:ministral-8b-2512"))

    assert (refused.status, server.seen) == (2, [])
    assert names(refused.sentence, "mistral:ministral-8b-2512", "candidates")


def test_a_name_that_is_wrong_costs_nothing_of_the_candidates_before_it(line: Line, server: BatchServer):
    """Live as well: everybody is checked before anybody is asked."""
    live = (
        "replace-judge",
        "--judge",
        "old",
        "--candidate",
        f"{server.base}#small",
        "--candidate",
        "python:no_such:judge",
    )

    assert (line(*live).status, line(*live, "--batch").status, server.seen) == (2, 2, [])


def test_a_function_beside_a_candidate_by_batch_is_asked_at_once(
    line: Line, server: BatchServer, monkeypatch: pytest.MonkeyPatch
):
    """It has no batches, and costs nothing; alone it has nothing to send."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    code = "python:test_replacement_batch:pass_all"
    done, alone = line(*ask(f"{server.base}#small", code, more=("--json",))), line(*ask(code))

    assert done.status == 0, done.err
    assert [item["agreement"]["of"] for item in done.document["candidates"]] == [LABELLED, LABELLED]
    assert done.document["candidates"][1]["gained"] == done.document["candidates"][1]["lost"] == 0
    assert (alone.status, "nothing to send by batch" in alone.sentence) == (2, True)


def test_a_candidate_that_fails_does_not_end_the_others(line: Line, server: BatchServer):
    """It is named at once; the others are kept, and not asked again by a command without it."""
    good, mute = f"{server.base}#small", f"{server.base}#mute"
    failed = line(*ask(mute, good, check="4"))

    assert failed.status == 3
    assert f"{mute}, kept in" in failed.err
    creations, live = server.creations, sum(server.live.values())
    done = line("replace-judge", "--judge", "old", "--candidate", good, "--resume", "--json")
    assert done.status == 0, done.err
    assert (server.creations, sum(server.live.values())) == (creations, live)
    assert len(done.document["candidates"]) == 1


def test_cases_without_an_answer_are_said_to_count_against_a_candidate_and_can_be_asked_again(
    line: Line, server: BatchServer
):
    """An error of the provider is no opinion of its model."""
    body = {"error": {"type": "invalid_request_error", "message": "this one is odd", "code": None, "param": None}}
    server.fail = lambda prompt: (400, body) if "text 7\n" in prompt else None
    short = line(*ask(f"{server.base}#small"))
    assert (short.status, "1 cases are undecided because of error" in short.err) == (0, True), short.err
    assert "--resume --retry error" in short.err

    server.fail = lambda _: None
    done = line(*ask(f"{server.base}#small", more=("--resume", "--retry", "error", "--json")))
    assert done.document["candidates"][0]["agreement"]["after"] == LABELLED - 2
    assert (set(server.run.values()), sum(open_run(find_runs()[0]).counts.values())) == ({1}, LABELLED)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--batch-check", "3"), "--batch-check belongs to --batch"),
        (("--batch", "--pay-again"), "--pay-again belongs to --resume"),
        (("--batch",), "--batch has nobody to ask"),
        (("--retry", "error"), "--retry belongs to --resume"),
    ],
)
def test_options_that_ask_for_nothing_are_refused(line: Line, more: tuple[str, ...], message: str):
    """In a sentence, with nobody asked: the only candidate is a run."""
    refused = line("replace-judge", "--judge", "old", "--candidate", "old", *more)

    assert (refused.status, message in refused.sentence) == (2, True)
