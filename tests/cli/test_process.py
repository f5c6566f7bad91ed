"""The command line as a process: exit status, pipes, terminals, interrupts, and how soon it answers."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from kit import cli
from kit.cli import HIDDEN, Line, serve
from kit.house import TESTS
from kit.judges import names
from kit.patience import HANG

pytestmark = pytest.mark.integration


POLITE = ("--criteria", "Is polite.")

posix = pytest.mark.skipif(sys.platform == "win32", reason="pipes, terminals and signals are POSIX's here")


@pytest.fixture(autouse=True)
def place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    directory = tmp_path / "work"
    directory.mkdir()
    cli.isolate(monkeypatch, directory)
    Path("good.txt").write_text("good", encoding="utf-8")
    return tmp_path


def run(place: Path, *arguments: str, data: bytes = b"", **options: object) -> cli.Ran:
    return cli.finish(cli.start(place, *arguments, **options), data)


@pytest.mark.parametrize(("score", "status"), [(0.9, 0), (0.1, 1)])
def test_the_exit_status_is_that_of_the_process(place: Path, score: float, status: int):
    """What a script sees: the status, the result on standard output, nothing else anywhere."""
    with serve(score=score) as provider:
        ran = run(place, "judge", *POLITE, "--judge", provider.spec, data=b"good")

    assert (ran.status, ran.err) == (status, "")
    assert ran.out.startswith("✓ passed 0.90" if status == 0 else "✗ failed 0.10")


def test_a_data_set_in_a_pipe_and_json_out_of_it(place: Path):
    """Standard input may be a pipe, and so may a file that is named."""
    with serve() as provider:
        ran = run(place, "judge", "-", "good.txt", *POLITE, "--judge", provider.spec, "--json", data=b"good")

    assert [item["input"] for item in ran.document["results"]] == ["-", "good.txt"]


def test_wrong_usage_and_a_world_that_failed(place: Path):
    """2 and 3, one sentence each, no traceback."""
    with serve(mode="401") as provider:
        usage = run(place, "judge", "gone.txt", *POLITE, "--judge", provider.spec)
        world = run(place, "judge", "good.txt", *POLITE, "--judge", provider.spec)

    assert (usage.status, usage.sentence[:12]) == (2, "the content:")
    assert (world.status, world.err.count("\n")) == (3, 1)


def test_modules_of_the_working_directory_are_found_last(place: Path):
    """``python:`` finds what lies here although the command lies elsewhere, and nothing here hides a library."""
    Path("judges.py").write_text(
        "import re\n\ndef judge(prompt):\n"
        "    token = re.search(r'<<content (\\w{8})>>', prompt)[1]\n"
        '    return \'{"token": "%s", "criteria": {"is-polite": {"score": 1}}}\' % token\n',
        encoding="utf-8",
    )
    for name in ("yaml", "rich", "aiohttp", "msgspec", "json"):
        Path(f"{name}.py").write_text("raise SystemExit('a file beside the content was run')\n", encoding="utf-8")

    assert run(place, "judge", "good.txt", *POLITE, "--judge", "python:judges:judge").status == 0
    assert run(place, "rubric", "show", "security").status == 0
    safe = run(place, "judge", "good.txt", *POLITE, "--judge", "python:judges:judge", env={"PYTHONSAFEPATH": "1"})
    assert safe.status == 2
    assert names(safe.sentence, "python:judges:judge", "No module named 'judges'")


@posix
def test_a_module_beside_what_is_judged_takes_no_library_s_place(place: Path):
    """``python -m`` puts the working directory first; it comes last here too, and only when ``python:`` is named."""
    for name in ("tomllib", "msgspec", "typer", "asyncio", "hashlib"):
        Path(f"{name}.py").write_text("raise SystemExit('imported from the working directory')\n", encoding="utf-8")
    Path("adjudge.toml").write_text("[rubrics]\n", encoding="utf-8")
    Path("words.py").write_text("from kit.cli import judge_words\n", encoding="utf-8")
    _, environment = cli.command(place)
    environment["PYTHONPATH"] += os.pathsep + str(TESTS)
    words = [sys.executable, "-m", "adjudge"]
    arguments = ["judge", "good.txt", *POLITE, "--judge", "python:words:judge_words"]
    ran = [
        subprocess.run([*words, *more], env=environment, capture_output=True, text=True, check=False, timeout=HANG)
        for more in (["rubric", "list"], arguments)
    ]

    assert [(item.returncode, item.stderr) for item in ran] == [(0, ""), (0, "")]


def test_a_reader_that_goes_away_changes_nothing(place: Path):
    """``adjudge ... | head -1``: no complaint, and the status is still the verdict's."""
    with serve(score=0.1) as provider:
        process = cli.start(place, "judge", "good.txt", *POLITE, "--judge", provider.spec)
        assert process.stdout is not None
        process.stdout.close()
        process.stdout = None
        ran = cli.finish(process)

    assert (ran.status, ran.err) == (1, "")


@posix
@pytest.mark.parametrize("arguments", [["--help"], ["demo"], ["rubric", "schema"], ["--version"]])
def test_help_and_tables_may_be_cut_off(place: Path, arguments: list[str]):
    """A closed pipe is not an error of what only shows something."""
    process = cli.start(place, *arguments)
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    ran = cli.finish(process)

    assert (ran.status, ran.err) == (0, "")


@posix
def test_an_interrupt_ends_it_at_once(place: Path):
    """Ctrl-C while a judge is asked: 130, one word, no traceback and nothing left behind."""
    with serve(mode="hang") as provider:
        process = cli.start(place, "judge", "good.txt", *POLITE, "--judge", provider.spec)
        assert provider.asked.wait(HANG)
        process.send_signal(signal.SIGINT)
        ran = cli.finish(process)

    assert (ran.status, ran.out, ran.err) == (130, "", "adjudge: interrupted\n")


@posix
def test_an_interrupt_while_input_is_awaited(place: Path):
    """Ctrl-C while something slow is read: the same."""
    # The interrupt may fall between opening the file and owning it, for which Python has a warning and we no remedy.
    env = {"PYTHONWARNINGS": "ignore::ResourceWarning"}
    process = cli.start(place, "judge", "-", *POLITE, "--judge", "rules", env=env)
    assert process.stdin is not None
    process.stdin.write(b"x" * 200_000)  # more than a pipe holds, so this returns once the other side reads
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    ran = cli.finish(process)

    assert (ran.status, ran.out, ran.err) == (130, "", "adjudge: interrupted\n")


@contextmanager
def terminal(place: Path, *arguments: str, **environment: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The command on a terminal of 100 columns: its process, and what reads the screen."""
    import fcntl
    import pty
    import struct
    import termios

    screen, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    env = {"TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"} | environment
    process = cli.start(place, *arguments, stdin=end, stdout=end, stderr=end, env=env)
    os.close(end)
    try:
        yield process, screen
    finally:
        process.wait(HANG)
        os.close(screen)


def read_screen(screen: int, until: str | None = None) -> str:
    """Read what is written to a terminal, to its end or until a pattern matches."""
    seen = b""
    while until is None or not re.search(until, seen.decode(errors="replace")):
        try:
            piece = os.read(screen, 65536)
        except OSError:  # Linux says so when the other end is closed
            break
        if not piece:
            break
        seen += piece
    return seen.decode(errors="replace")


@posix
def test_a_terminal_sees_colours_and_boxes(place: Path):
    """The panel of the result, within the width of the terminal, and no control character but rich's own."""
    with (
        serve(reasoning="\x1b]0;title\x07 [bold]said[/bold]") as provider,
        terminal(place, "judge", "good.txt", *POLITE, "--judge", provider.spec) as (process, screen),
    ):
        seen = read_screen(screen)
    # A line of progress, which a busy machine shows as well, hides the cursor and wipes itself away.
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen)

    assert process.returncode == 0
    assert "\x1b[32m" in seen
    assert "╭" in plain
    assert "·]0;title· [bold]said[/bold]" in plain
    assert HIDDEN.search(plain.replace("\r", "")) is None
    assert max(len(text) for text in plain.splitlines()) <= 100


@posix
@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_terminal_may_ask_for_less(place: Path, environment: dict[str, str]):
    """``NO_COLOR`` takes the colours away; a dumb terminal gets what a pipe gets."""
    with (
        serve() as provider,
        terminal(place, "judge", "good.txt", *POLITE, "--judge", provider.spec, **environment) as (_, screen),
    ):
        seen = read_screen(screen)

    assert re.search(r"\x1b\[[0-9;]*3[0-9]", seen) is None
    assert "passed 1.00 of 0.70 needed" in seen
    assert ("╭" in seen) == ("NO_COLOR" in environment)


def test_a_pipe_is_plain_whatever_the_environment_says(place: Path):
    """What another program reads has no colours, not even where they are asked for."""
    with serve() as provider:
        ran = run(
            place,
            "judge",
            "good.txt",
            *POLITE,
            "--judge",
            provider.spec,
            env={"FORCE_COLOR": "1", "CLICOLOR_FORCE": "1"},
        )

    assert "\x1b" not in ran.out + ran.err


@posix
def test_what_takes_long_shows_that_it_goes_on(place: Path):
    """After a second a line on the terminal counts what is done; it is wiped away before the result is shown."""
    with (
        serve(mode="wait") as provider,
        terminal(place, "judge", "good.txt", *POLITE, "--judge", provider.spec) as (process, screen),
    ):
        before = read_screen(screen, until=r"judged: 0 of 1 \(0 %\), [1-9][0-9]* s")
        provider.release.set()
        after = read_screen(screen)

    assert "passed" not in before
    assert after.index("\x1b[2K") < after.index("passed")
    assert process.returncode == 0


def test_no_progress_in_a_pipe(place: Path):
    """Standard error that nobody watches stays empty, however long it takes."""
    with serve(mode="wait") as provider:
        process = cli.start(place, "judge", "good.txt", *POLITE, "--judge", provider.spec)
        assert provider.asked.wait(HANG)
        with suppress(subprocess.TimeoutExpired):  # longer than anybody is left without a sign on a terminal
            process.wait(1.3)
        provider.release.set()
        ran = cli.finish(process)

    assert (ran.status, ran.err) == (0, "")


LATER = {
    "aiohttp", "alembic", "asyncio", "jinja2", "jsonschema_rs", "msgspec", "rapidfuzz", "re2", "rich",
    "sqlalchemy", "ssl", "yaml",
}  # fmt: skip
"""What takes long to import, and neither a help text nor a completion needs; pydantic is typer's own."""


@pytest.mark.parametrize(
    ("arguments", "variables"),
    [
        (["--help"], {}),
        (["--version"], {}),
        ([], {"_ADJUDGE_COMPLETE": "bash_complete", "COMP_WORDS": "adjudge jud", "COMP_CWORD": "1"}),
    ],
    ids=["help", "version", "completion"],
)
def test_what_needs_no_command_comes_at_once(place: Path, arguments: list[str], variables: dict[str, str]):
    """No command is imported, and nothing heavy."""
    words, environment = cli.command(place)
    code = f"import sys, adjudge.cli.app as app\nstatus = app.run({arguments})\nprint(*sys.modules, status)\n"
    done = subprocess.run(
        [words[0], "-c", code], env=environment | variables, capture_output=True, text=True, check=True, timeout=HANG
    )
    *modules, status = done.stdout.splitlines()[-1].split()

    assert status == "0"
    assert LATER & set(modules) == set()
    assert [name for name in modules if name.startswith("adjudge.cli.commands.")] == ["adjudge.cli.commands.completion"]
    assert sum(name.partition(".")[0] == "adjudge" for name in modules) < 25


def test_a_gate_of_rules_waits_for_no_library_that_it_does_not_use(place: Path):
    """A hook asks a gate before each action, so its start is what it costs; pydantic is typer's, for other options."""
    Path("adjudge.toml").write_text('[gates.publish]\nrules = ["substance"]\n', encoding="utf-8")
    words, environment = cli.command(place)
    code = (
        "import sys, adjudge.cli.app as app\nstatus = app.run(['gate', 'check', 'publish', 'good.txt'])\n"
        "print(*sys.modules, status)\n"
    )
    done = subprocess.run(
        [words[0], "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=HANG
    )
    *modules, status = done.stdout.splitlines()[-1].split()

    assert status == "0"
    # The event loop brings ssl; rules look for patterns with re2.
    assert (LATER - {"asyncio", "ssl", "msgspec", "re2"} | {"pydantic", "adjudge.question.readers"}) & set(
        modules
    ) == set()


@pytest.mark.parametrize(
    "command",
    ["", "judge", "doctor", "demo", "rubric", "rubric list", "rubric show", "rubric check", "rubric schema"],
)
def test_help_is_readable_in_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
):
    """Nothing is wider, no option needs more than two lines, and Python's types are not on show."""
    monkeypatch.setenv("COLUMNS", "80")
    ran = Line(capsys)(*command.split(), "--help")
    sections = re.split(r"\n\n(?=[A-Z][\w ]*:\n)", ran.out)[1:]
    options = [entry for section in sections for entry in re.split(r"\n  (?=-)", section)[1:]]

    assert ran.status == 0
    assert options
    assert max(map(len, ran.out.splitlines())) <= 80
    assert [entry for entry in options if entry.strip().count("\n") > 1] == []
    assert "list[" not in ran.out


# ---------------------------------------------------------------- completion


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize("order", ["{}_source", "source_{}"])
def test_a_shell_is_given_its_completion(place: Path, shell: str, order: str):
    """Both orders of the words are in use; the script asks adjudge again, under the same variable."""
    ran = run(place, env={"_ADJUDGE_COMPLETE": order.format(shell)})

    assert (ran.status, ran.err) == (0, "")
    assert f"_ADJUDGE_COMPLETE=complete_{shell}" in ran.out


@pytest.mark.parametrize(
    ("line", "completion"),
    [("adjudge jud", "judge"), ("adjudge judge --thresh", "--threshold"), ("adjudge ledger ver", "verify")],
)
@pytest.mark.parametrize("order", ["bash_complete", "complete_bash"])
def test_a_line_is_completed(place: Path, line: str, completion: str, order: str):
    """Commands, commands of commands, and options."""
    words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1)}
    ran = run(place, env={"_ADJUDGE_COMPLETE": order, **words})

    assert (ran.status, ran.out.split(), ran.err) == (0, [completion], "")


@pytest.mark.parametrize(("asked", "status"), [("tcsh_source", 2), ("bash", 2), ("bash_run", 2), ("", 0)])
def test_what_is_no_completion_is_wrong_usage(place: Path, asked: str, status: int):
    """One sentence; an empty variable is none."""
    ran = run(place, "--version", env={"_ADJUDGE_COMPLETE": asked})

    assert ran.status == status
    assert ("_ADJUDGE_COMPLETE is one of bash_source" in ran.err) is bool(asked)
