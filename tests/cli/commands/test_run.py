"""``adjudge run``: what is judged, what is kept and shown, how it is interrupted, and the exit status."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from adjudge import open_run
from kit import cli
from kit.cli import ESCAPES, HIDDEN, WORDS, Line, serve, write
from kit.judges import names
from kit.patience import HANG

pytestmark = pytest.mark.timed


GOOD = ("--criteria", "Is good.", "--judge", WORDS)

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's here")


@pytest.fixture(autouse=True)
def line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    directory = tmp_path / "work"
    directory.mkdir()
    cli.isolate(monkeypatch, directory)
    write(*[{"id": str(n), "content": text, "label": text == "good"} for n, text in enumerate(["good", "bad", "ugly"])])
    return Line(capsys)


def test_the_manifest_names_the_file(line: Line):
    """An auditor finds the data that was judged; of standard input there is no path."""
    line("run", "data.jsonl", *GOOD, "--out", "R")
    assert open_run("R").manifest["dataset"]["path"] == "data.jsonl"


def test_a_data_set_is_judged_into_a_folder(line: Line):
    """Outcomes, reasons, score, labels and cost are shown, and the folder holds the run."""
    ran = line("run", "data.jsonl", *GOOD, "--out", "R")

    assert ran.status == 0
    words = [row.split() for row in ran.out.splitlines() if row]
    assert ["passed", "1", "33.3", "%"] in words
    assert ["unparseable", "1"] in words
    assert ["agree", "with", "the", "label", "2", "of", "3", "66.7", "%"] in words
    assert ["cost", "unknown"] in words
    kept, unread, again, reason = ran.err.splitlines()
    assert names(kept, "kept in R", "adjudge report R")
    assert names(unread, "1 unparseable", "adjudge doctor --judge", "--no-token")
    assert names(again, "1 is undecided because of unparseable", "--out R --resume --retry unparseable")
    assert names(reason, "the first unparseable, of case ")
    assert reason.rpartition(": ")[2][:40] in line("report", "R").out.replace("\n", " ")
    assert open_run("R").counts == {"passed": 1, "failed": 1, "undecided": 1}
    assert open_run("R").manifest["command"][0] == "adjudge"


def test_what_nobody_answered_is_said_with_how_to_ask_again(line: Line):
    """The command that it names judges those cases again, and then there is nothing more to say."""
    with serve(mode="401") as provider:
        asked = ("run", "data.jsonl", "--criteria", "Is good.", "--judge", provider.spec, "--out", "a run")
        ran = line(*asked)
        assert "3 are undecided because of error; to judge them again, repeat the command with --out 'a run'" in ran.err
        assert "--resume --retry error" in ran.err

        provider.mode = "answer"
        again = line(*asked, "--resume", "--retry", "error")
    assert again.status == 0
    assert "judge them again" not in again.err


@pytest.mark.parametrize("counts_tokens", [True, False])
def test_a_cost_that_is_not_known_is_said_once(line: Line, counts_tokens: bool):
    """By the run and by each of its reports, of a model without a price."""
    with serve() as provider:
        if not counts_tokens:
            provider.usage = lambda _prompt, _reply: {}
        ran = line("run", "data.jsonl", "--criteria", "Is good.", "--judge", provider.spec, "--out", "R")
    shown, comment = line("report", "R"), line("report", "R", "--markdown", "-")
    line("report", "R", "--html", "R.html")

    texts = [ran.out + ran.err, shown.out + shown.err, comment.out, Path("R.html").read_text(encoding="utf-8")]
    assert [text.count("unknown") for text in texts] == [1, 1, 1, 1]


def test_of_a_model_that_cannot_copy_the_token_the_first_result_says_what_to_do(line: Line):
    """Then nobody has to ask the doctor; of prose, which no option makes readable, the doctor is named."""
    with serve(mode="tokenless") as provider:
        tokenless = line("run", "data.jsonl", "--criteria", "Is good.", "--judge", provider.spec, "--out", "R")
        provider.mode = "prose"
        prose = line("run", "data.jsonl", "--criteria", "Is good.", "--judge", provider.spec, "--out", "S")

    again, first = tokenless.err.splitlines()[1:3]
    assert names(again, "3 are undecided because of unparseable")
    assert names(first, "the first unparseable, of case '0'", "--no-token (token=False in Python)")
    assert "doctor" not in tokenless.err
    assert "3 unparseable; adjudge doctor --judge says why" in prose.err


def test_whatever_a_judge_broke_by_is_asked_again_with_one_word(line: Line):
    """And nothing else: a verdict stays, and so does the reason of a content that attacks."""
    asked = ("run", "data.jsonl", "--criteria", "Is good.", "--judge", "python:broken:judge", "--out", "R")
    Path("broken.py").write_text(
        "import os\n"
        "def judge(content):\n"
        "    if os.path.exists('mended'):\n"
        "        return 1.0\n"
        "    if content == 'bad':\n"
        "        return 7.0\n"
        "    raise OSError('no route')\n",
        encoding="utf-8",
    )
    first = line(*asked)
    assert "--out R --resume --retry broken" in first.err
    Path("mended").touch()

    assert line(*asked, "--resume", "--retry", "broken").status == 0
    assert open_run("R").counts == {"passed": 3, "failed": 0, "undecided": 0}


def test_what_is_undecided_again_after_a_retry_is_said(line: Line):
    """Else nobody knows whether a further try is about the same judgements; of a first run there is nothing to say."""
    asked = ("run", "data.jsonl", "--criteria", "Is good.", "--judge", "python:tired:judge", "--out", "R")
    Path("tired.py").write_text(
        "import os\n"
        "def judge(content):\n"
        "    if content == 'good' and os.path.exists('mended'):\n"
        "        return 1.0\n"
        "    raise OSError('no route')\n",
        encoding="utf-8",
    )
    assert "undecided again" not in line(*asked).err
    Path("mended").touch()

    again = line(*asked, "--resume", "--retry", "error").err
    assert "2 of the 3 that were judged again are undecided again; adjudge report R CASE shows " in again
    assert "undecided again" not in line(*asked, "--resume").err


def test_without_a_folder_it_is_named_by_the_time(line: Line):
    """Nothing that was paid for is thrown away because nobody named a place."""
    ran = line("run", "data.jsonl", *GOOD)

    [folder] = Path("runs").iterdir()
    assert f"kept in {folder};" in ran.err


def test_two_runs_of_one_second_have_folders_of_their_own(line: Line):
    """As a script starts them, one after the other."""
    for _ in range(4):
        assert line("run", "data.jsonl", *GOOD).status == 0

    assert len([open_run(folder) for folder in Path("runs").iterdir()]) == 4


def test_json_is_one_document(line: Line):
    """The manifest with counts and folder, and nothing else anywhere."""
    ran = line("run", "data.jsonl", *GOOD, "--out", "R", "--json")

    assert (ran.document["schema"], ran.document["folder"]) == ("adjudge/run/1", "R")
    assert ran.document["counts"] == {"passed": 1, "failed": 1, "undecided": 1}
    assert ran.err == ""


def test_fields_of_another_name_are_mapped(line: Line):
    """What a table calls its columns is said on the command line, as for every data set."""
    Path("t.csv").write_text("qid,answer\nq1,good\nq2,bad\n")
    ran = line("run", "t.csv", *GOOD, "--content", "answer", "--id", "qid", "--out", "R")

    assert ran.status == 0
    assert [item.case.id for item in open_run("R").items()] == ["q1", "q2"]


def test_rows_that_are_no_cases_are_counted(line: Line):
    """With ``--on-bad-row skip`` the others are judged, the skipped are counted and listed; by default they end it."""
    with Path("data.jsonl").open("a") as file:
        file.write("nonsense\n")
    ran = line("run", "data.jsonl", *GOOD, "--out", "R", "--on-bad-row", "skip")
    assert ran.status == 0
    assert "1 of the data set's rows was skipped" in ran.err
    assert open_run("R").manifest["dataset"]["bad_rows"][0]["where"] == "data.jsonl, line 4"

    stopped = line("run", "data.jsonl", *GOOD, "--out", "S")
    assert stopped.status == 2
    assert "line 4" in stopped.sentence


def test_a_run_goes_on(line: Line):
    """``--resume`` judges what is missing; without it a folder that holds a run is left alone."""
    line("run", "data.jsonl", *GOOD, "--out", "R")
    assert line("run", "data.jsonl", *GOOD, "--out", "R").sentence.startswith("R holds a run already; resume it with")
    write(*[{"id": str(n), "content": text, "label": text == "good"} for n, text in enumerate(["good", "bad", "ugly"])],
          {"id": "new", "content": "good"})  # fmt: skip

    ran = line("run", "data.jsonl", *GOOD, "--out", "R", "--resume", "--json")
    assert (ran.status, ran.document["counts"]["passed"]) == (0, 2)


def test_samples_and_repeats(line: Line):
    """``--sample`` draws, ``--repeat`` judges again."""
    ran = line("run", "data.jsonl", *GOOD, "--out", "R", "--sample", "2", "--repeat", "3", "--seed", "1", "--json")

    assert (ran.document["summary"]["items"], ran.document["summary"]["cases"]) == (6, 2)
    assert ran.document["options"]["seed"] == 1


def test_replies_can_be_recorded_and_replayed(line: Line):
    """``--record`` writes a recording, and a run of it gives the same results."""
    line("run", "data.jsonl", *GOOD, "--out", "R", "--record", "replies.jsonl")
    again = line("run", "data.jsonl", "--criteria", "Is good.", "--judge", "replay:replies.jsonl", "--out", "S")

    assert again.status == 0
    assert [item.result.outcome for item in open_run("S").items()] == ["passed", "failed", "undecided"]


def test_a_recording_does_not_answer_for_a_case_that_changed(line: Line):
    """A pull request that keeps a case's id and changes its content must not pass by what was said of the old one."""
    write({"id": "a", "content": "good"})
    line("run", "data.jsonl", *GOOD, "--out", "R", "--record", "replies.jsonl")
    replayed = ("--judge", "replay:replies.jsonl")
    same = line("run", "data.jsonl", "--criteria", "Is good.", *replayed, "--out", "S")
    other = line("run", "data.jsonl", "--criteria", "Is something else.", *replayed, "--out", "T")
    write({"id": "a", "content": "changed"})
    changed = line("run", "data.jsonl", "--criteria", "Is good.", *replayed, "--out", "U")

    assert (same.status, other.status, changed.status) == (0, 3, 3)
    assert "its content differs" in changed.err


def test_too_few_that_pass_are_a_status(line: Line):
    """``--fail-under`` is for CI; the summary is shown all the same."""
    write({"content": "good"}, {"content": "bad"})
    assert line("run", "data.jsonl", *GOOD, "--out", "R", "--fail-under", "0.5").status == 0
    ran = line("run", "data.jsonl", *GOOD, "--out", "S", "--fail-under", "0.6")
    assert (ran.status, "50.0 %" in ran.out) == (1, True)


def test_a_status_that_is_not_0_is_explained(line: Line):
    """In the log of a CI job, a status alone does not say what was missed, nor an undecided run what went wrong."""
    write({"content": "good"}, {"content": "bad"})
    missed = line("run", "data.jsonl", *GOOD, "--out", "R", "--fail-under", "0.6", "--record", "old.jsonl")
    Path("new.jsonl").write_text('{"id": "new", "content": "something new"}\n')
    broken = line("run", "new.jsonl", "--criteria", "Is good.", "--judge", "replay:old.jsonl", "--out", "S")

    assert (missed.status, broken.status) == (1, 3)
    assert "1 of 2 passed (50.0 %), and --fail-under asks for 60 %" in missed.err
    assert "nothing could be decided" in broken.err
    assert "the first error, of case " in broken.err
    assert "has no unused reply" in broken.err


def test_a_world_that_failed(line: Line):
    """When nobody could be asked at all, nothing is decided, and that is 3 with the reason in the summary."""
    with serve(mode="401") as provider:
        ran = line("run", "data.jsonl", "--criteria", "Is good.", "--judge", provider.spec, "--out", "R")

    assert ran.status == 3
    assert ["error", "3"] in [row.split() for row in ran.out.splitlines()]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gone.jsonl", *GOOD], "gone.jsonl"),
        (["data.jsonl", "--judge", WORDS], "nothing says what good means … give --rubric NAME or --criteria TEXT"),
        (["data.jsonl", *GOOD, "--resume"], "--resume needs --out RUN"),
        (["data.jsonl", *GOOD, "--retry", "error"], "--retry belongs to --resume"),
        (["data.jsonl", *GOOD, "--out", "R", "--resume", "--retry", "x"], "--retry: 'x' is none of"),
        (["data.jsonl", *GOOD, "--concurrency", "0"], "--concurrency … a whole number of at least 1 … got 0"),
        (["data.jsonl", *GOOD, "--repeat", "0"], "--repeat … a whole number"),
        (["data.jsonl", *GOOD, "--sample", "0"], "--sample … a whole number"),
        (["data.jsonl", *GOOD, "--fail-under", "90"], "for 90 % write 0.9"),
        (["data.jsonl", *GOOD, "--strategy", "x"], "--strategy must be one of … got 'x'"),
        (["empty.jsonl", *GOOD], "has no case, so there is nothing to judge"),
        (["data.jsonl", *GOOD, "--out", "data.jsonl"], "cannot be written"),
    ],
)
def test_wrong_usage_is_a_sentence(line: Line, arguments: list[str], message: str):
    """2, one sentence, nobody asked."""
    Path("empty.jsonl").touch()
    ran = line("run", *arguments)

    assert ran.status == 2
    assert names(ran.sentence, *message.split(" … "))


def test_hostile_names_reach_no_terminal(line: Line):
    """Ids, contents and folder names with escape sequences are shown without them."""
    write({"id": ESCAPES.replace("\x00", ""), "content": "good"}, {"id": "b", "content": ESCAPES.replace("\x00", "")})
    ran = line("run", "data.jsonl", *GOOD, "--out", "R\x1b[31m")

    assert not HIDDEN.search(ran.out + ran.err)


@pytest.mark.integration
@posix
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_says_how_to_go_on(tmp_path: Path, number: signal.Signals):
    """What is under way is finished, what was judged is kept, the status is 130, and the next run finishes it."""
    write(*[{"id": str(n), "content": f"good {n}"} for n in range(30)])
    with serve(mode="wait") as provider:
        arguments = ("run", "data.jsonl", "--criteria", "Is good.", "--judge", provider.spec, "--out", "R")
        process = cli.start(tmp_path, *arguments, "--concurrency", "4")
        assert provider.asked.wait(HANG)
        process.send_signal(number)
        assert process.stderr is not None
        assert b"interrupted: what is under way has 5 seconds" in process.stderr.readline()
        provider.mode = "answer"
        provider.release.set()
        ran = cli.finish(process)
        asked = len(provider.bodies)

        assert ran.status == 130
        assert "Traceback" not in ran.err
        assert f"{asked} results are kept in R; to resume, repeat the command with:\n  --out R --resume\n" in ran.err
        left = open_run("R")
        assert (left.status, left.counts["passed"]) == ("interrupted", asked)

        again = cli.finish(cli.start(tmp_path, *arguments, "--resume"))
        assert (again.status, len(provider.bodies)) == (0, 30)


@pytest.mark.integration
@posix
def test_a_second_interrupt_stops_at_once(tmp_path: Path):
    """A server that never answers keeps nobody: the second Ctrl-C cancels, and the folder is in order."""
    with serve(mode="hang") as provider:
        arguments = ("run", "data.jsonl", "--criteria", "Is good.", "--judge", provider.spec, "--out", "R")
        process = cli.start(tmp_path, *arguments)
        assert provider.asked.wait(HANG)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        process.stderr.readline()
        process.send_signal(signal.SIGINT)
        ran = cli.finish(process)

    assert ran.status == 130
    assert "Traceback" not in ran.err
    assert "what was finished is kept in R" in ran.err
    assert open_run("R").manifest["status"] == "interrupted"


@pytest.mark.integration
@posix
def test_progress_is_drawn_on_a_terminal(tmp_path: Path):
    """One line that is redrawn, with rate and outcomes, and none of it left at the end."""
    import pty

    write(*[{"id": str(n), "content": f"good {n}"} for n in range(6)])
    with serve(mode="wait") as provider:
        arguments = ("run", "data.jsonl", "--criteria", "Is good.", "--judge", provider.spec, "--out", "R")
        reader, writer = pty.openpty()
        environment = {"TERM": "xterm", "COLUMNS": "200"}
        with cli.start(tmp_path, *arguments, stderr=writer, env=environment) as process:
            os.close(writer)
            seen = b""
            while b"judged 0" not in seen:
                seen += os.read(reader, 1000)
            provider.mode = "answer"
            provider.release.set()
            process.communicate(timeout=HANG)
        with suppress(OSError):  # Linux says so when the other end is closed
            while piece := os.read(reader, 1000):
                seen += piece
        os.close(reader)

    assert seen.rindex(b"\x1b[2K") > seen.rindex(b"judged")
    assert seen.rindex(b"\x1b[?25h") > seen.rindex(b"\x1b[?25l")  # the cursor is there again
    assert process.returncode == 0
