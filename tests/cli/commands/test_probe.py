"""``adjudge probe``: a file of baselines against a program or a function, and new baselines."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from kit import cli
from kit.cli import ESCAPES, HIDDEN, Line
from kit.judges import names
from kit.patience import HANG, wait_for

PROBES = """\
probes:
  - {name: same, input: hello, expected: HELLO}
  - {name: other, input: bye, expected: See you.}
"""
TOOL = """\
import json, sys
given = json.load(sys.stdin)
print(given.upper())
"""
PROGRAM = f"{sys.executable} tool.py"
JUDGE = "python:kit.probes:compare"
FUNCTION = "python:kit.probes:shout"


@pytest.fixture
def line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    cli.isolate(monkeypatch, tmp_path)
    write("probes.yaml", PROBES)
    write("tool.py", TOOL)
    return Line(capsys)


def write(name: str, text: str) -> Path:
    Path(name).write_text(text, encoding="utf-8")
    return Path(name)


def probes(*entries: tuple[str, Any, Any]) -> None:
    """A file of these names, inputs and baselines."""
    listed = [{"name": name, "input": value, "expected": expected} for name, value, expected in entries]
    write("probes.yaml", json.dumps({"probes": listed}))


# ---------------------------------------------------------------- comparing


@pytest.mark.integration
def test_a_program_is_compared_with_its_baselines(line: Line):
    """It gets each input as JSON; a line for each probe, and the whole below."""
    ran = line("probe", "probes.yaml", "--command", PROGRAM, "--judge", JUDGE)
    lines = ran.out.splitlines()

    assert ran.status == 1
    assert lines[0].split() == ["probe", "outcome", "similarity", "drift", "contract", "why"]
    assert lines[1].split() == ["same", "passed", "1.00", "none", "kept", "-"]
    assert lines[2].split() == ["other", "failed", "0.20", "high", "kept", "It", "says", "BYE"]
    assert lines[3].startswith("not stable: 2 probes, 1 passed, 1 failed, 0 undecided; mean similarity 0.60")


def test_a_function_is_compared_too(line: Line):
    """Sync or async, named on the command line."""
    assert line("probe", "probes.yaml", "--function", FUNCTION, "--judge", JUDGE).status == 1
    probes(("a", "X", "x"))
    assert line("probe", "probes.yaml", "--function", "python:kit.probes:whisper", "--judge", JUDGE).status == 0


@pytest.mark.parametrize(
    ("inputs", "status"),
    [
        (["good"], 0),
        (["good", "odd"], 3),
        (["good", "other"], 1),
        (["good", "violate"], 1),
        (["odd", "other"], 1),
        (["good", None], 1),
    ],
)
def test_the_status_says_what_was_found(line: Line, inputs: list[Any], status: int):
    """0 all passed, 1 one failed or the tool broke, 3 one could not be judged."""
    probes(*((f"p{number}", value, "GOOD") for number, value in enumerate(inputs)))

    assert line("probe", "probes.yaml", "--function", FUNCTION, "--judge", JUDGE).status == status


@pytest.mark.integration
def test_json_is_the_report(line: Line):
    """One document, with every seat's answer."""
    document = line("probe", "probes.yaml", "--command", PROGRAM, "--judge", JUDGE, "--json").document

    assert (document["schema"], document["input"]) == ("adjudge/probe-report/1", "probes.yaml")
    assert [item["similarity"] for item in document["results"]] == [1.0, 0.2]
    assert (document["outcome"], document["stable"]) == ("failed", False)


@pytest.mark.integration
def test_probes_can_be_chosen_by_name(line: Line):
    """The others are neither run nor asked about."""
    ran = line("probe", "probes.yaml", "--command", PROGRAM, "--judge", JUDGE, "--only", "same", "--json")

    assert ran.status == 0
    assert [item["probe"] for item in ran.document["results"]] == ["same"]


@pytest.mark.integration
def test_thresholds_of_the_file_hold(line: Line):
    """For each probe and for the whole."""
    write("probes.yaml", "thresholds: {low: 0.2, medium: 0.1}\n" + PROBES)
    document = line("probe", "probes.yaml", "--command", PROGRAM, "--judge", JUDGE, "--json").document

    assert document["outcome"] == "passed"
    assert document["thresholds"] == {"none": 0.95, "low": 0.2, "medium": 0.1}


@pytest.mark.integration
def test_several_judges_are_a_chain(line: Line):
    """With its strategy, as everywhere."""
    arguments = ("--judge", JUDGE, "--judge", JUDGE, "--strategy", "consensus", "--json")
    document = line("probe", "probes.yaml", "--command", PROGRAM, *arguments).document

    assert document["results"][0]["chain_result"]["strategy"] == "consensus"


def test_words_are_shown_without_control_characters(line: Line):
    """Names, outputs and what a judge says of them are other people's."""
    hostile = ESCAPES.replace("\x00", "")
    probes((hostile, f"{hostile}\n| x", "y"))
    ran = line("probe", "probes.yaml", "--function", FUNCTION, "--judge", JUDGE)

    assert ran.status == 1
    assert HIDDEN.search(ran.out + ran.err) is None
    assert len(ran.out.splitlines()) == 3


# ---------------------------------------------------------------- the tool


PROGRAMS = {
    "status": ("raise SystemExit('no such order')", "the command ended with status 1: no such order"),
    "silent": ("import sys; sys.exit(7)", "the command ended with status 7: it said nothing"),
    "killed": ("import os; os.kill(os.getpid(), 9)", "the command ended with status -9: it said nothing"),
    "large": ("print('x' * 2_000_000)", "the command wrote more than 1,000,000 bytes"),
    "endless": ("while True: print('x' * 1000)", "the command wrote more than 1,000,000 bytes"),
    "bytes": ("import sys; sys.stdout.buffer.write(b'\\xff')", "the command's output is not UTF-8 text (byte 0)"),
    "slow": ("import time; time.sleep(60)", "the tool gave no output within 0.5 s"),
    "noisy": ("import sys; sys.stderr.write('x' * 3_000_000); sys.exit(3)", "the command ended with status 3: xxx"),
}


@pytest.mark.integration
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_that_gives_no_output_has_failed(line: Line, name: str):
    """It ends badly, writes without end, hangs: that is found, and nobody is asked."""
    code, detail = PROGRAMS[name]
    write("broken.py", code)
    limit = "0.5" if name == "slow" else "60"
    ran = line(
        "probe", "probes.yaml", "--command", f"{sys.executable} broken.py", "--judge", JUDGE,
        "--only", "same", "--tool-timeout", limit, "--json",
    )  # fmt: skip
    (result,) = ran.document["results"]

    assert (ran.status, result["outcome"], result["decided_by"]) == (1, "failed", "rule")
    assert result["detail"].startswith(detail)
    assert result["chain_result"] is None


@pytest.mark.integration
@pytest.mark.parametrize(
    ("written", "seen"),
    [("'{\"b\": 1}'", {"b": 1}), ("'plain'", "plain"), ("'12'", 12), ("''", ""), ("'[1, 1] x'", "[1, 1] x")],
)
def test_output_is_json_where_it_is_json_and_text_elsewhere(line: Line, written: str, seen: Any):
    """One line's end is not part of a text; a program need not read its input."""
    write("says.py", f"print({written})")
    write("probes.yaml", "probes: [{name: a, input: " + "x" * 300_000 + "}]")
    line("probe", "probes.yaml", "--command", f"{sys.executable} says.py", "--record")
    from adjudge.guards import load_probes

    assert load_probes("probes.yaml").entries[0].expected == seen


@pytest.mark.integration
def test_no_shell_reads_the_command(line: Line):
    """What a shell would obey is an argument like any other, and an input is never part of the command."""
    write("words.py", "import json, sys\nprint(json.dumps([sys.argv[1:], json.load(sys.stdin)]))")
    write("probes.yaml", 'probes: [{name: a, input: "; touch owned"}]')
    command = f"{sys.executable} words.py 'two words' ; touch owned > here $(touch owned) | cat `touch owned` *"
    line("probe", "probes.yaml", "--command", command, "--record")
    from adjudge.guards import load_probes

    words, value = load_probes("probes.yaml").entries[0].expected
    assert words[:4] == ["two words", ";", "touch", "owned"]
    assert words[-1] == "*"
    assert value == "; touch owned"
    assert not Path("owned").exists()
    assert not Path("here").exists()


@pytest.mark.integration
def test_a_program_is_ended_with_what_it_started(line: Line):
    """No child of it goes on, and its pipes are not waited for."""
    child = "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])"
    last = "print('x' * 2_000_000, flush=True); time.sleep(600)"
    write("parent.py", f"import subprocess, sys, time\nopen('pid', 'w').write(str({child}.pid))\n{last}")
    command = f"{sys.executable} parent.py"
    ran = line("probe", "probes.yaml", "--command", command, "--judge", JUDGE, "--only", "same")

    assert ran.status == 1
    assert "the command wrote more than 1,000,000 bytes" in ran.out
    wait_for(lambda: is_gone(int(Path("pid").read_text("utf-8"))))


def is_gone(pid: int) -> bool:
    """Whether a process has ended; nobody may have collected it yet."""
    try:
        if Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] == "Z":
            return True
        os.kill(pid, 0)
    except (ProcessLookupError, FileNotFoundError):
        return True
    return False


@pytest.mark.integration
def test_an_interrupt_ends_the_program(line: Line, tmp_path: Path):
    """Status 130, and what was started is gone."""
    write("waits.py", "import os, time\nopen('pid.new', 'w').write(str(os.getpid()))\nos.replace('pid.new', 'pid')\n"
          "time.sleep(600)")  # fmt: skip
    process = cli.start(
        tmp_path, "probe", "probes.yaml", "--command", f"{sys.executable} waits.py",
        "--judge", "http://127.0.0.1:9/v1#x", cwd=tmp_path,
    )  # fmt: skip
    wait_for(lambda: (tmp_path / "pid").exists() or process.poll() is not None)
    assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=HANG)

    assert process.returncode == 130, err
    wait_for(lambda: is_gone(int((tmp_path / "pid").read_text("utf-8"))))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "say what is probed … --command 'PROGRAM ARGUMENT ...' … --function python:MODULE:NAME … --mcp"),
        (["--command", "x", "--function", "python:a:b"], "say what is probed"),
        (["--command", " "], "--command is empty"),
        (["--command", "'x"], "cannot be taken apart … No closing quotation … close the quotes"),
        (["--command", "no-such-program x"], "there is no program 'no-such-program' that can be started"),
        (["--function", "json:dumps"], "--function … like python:package.module:name … got 'json:dumps'"),
        (["--function", "python:json"], "--function … like python:package.module:name"),
        (["--function", "python:no_such:x"], "cannot be imported … ModuleNotFoundError"),
        (["--function", "python:json:nothing"], "cannot be imported … AttributeError"),
        (["--function", "python:json:__name__"], "is str, not a function"),
        (["--command", "cat", "--concurrency", "0"], "--concurrency … a whole number of at least 1 … got 0"),
        (["--command", "cat", "--tool-timeout", "0"], "--tool-timeout … a finite number of seconds above 0"),
        (["--command", "cat", "--tool-timeout", "nan"], "--tool-timeout … a finite number of seconds above 0"),
        (["--command", "cat", "--only", "sam"], "has no probe 'sam' … did you mean 'same'?"),
        (["--command", "cat", "--record", "--judge", JUDGE], "--record asks nobody, so leave out --judge"),
        (["--command", "cat"], "there is no judge"),
        (["--command", "cat", "--judge", "rules"], "no model"),
    ],
)
def test_what_is_wrong_is_one_sentence(line: Line, arguments: list[str], message: str):
    """Before anything is started or asked."""
    ran = line("probe", "probes.yaml", *arguments)

    assert ran.status == 2
    assert names(ran.sentence, *message.split(" … "))


def test_a_probe_without_a_baseline_is_said_before_anything_runs(line: Line):
    """With how to record it."""
    write("probes.yaml", PROBES + "  - {name: new, input: 1}\n")
    ran = line("probe", "probes.yaml", "--command", PROGRAM, "--judge", JUDGE)

    assert ran.status == 2
    assert names(ran.sentence, "'new'", "no expected output", "--record")


def test_a_module_beside_the_file_is_not_imported_by_naming_a_file(line: Line):
    """A file of baselines that names a command is refused, and nothing of it runs."""
    write("probes.yaml", "command: touch owned\n" + PROBES)
    ran = line("probe", "probes.yaml", "--command", PROGRAM, "--judge", JUDGE)

    assert ran.status == 2
    assert "a file of probes runs nothing and asks nobody" in ran.sentence


# ---------------------------------------------------------------- recording


@pytest.mark.integration
def test_what_has_no_baseline_is_recorded(line: Line):
    """The others stay, nobody is asked, and what changed is shown."""
    write("probes.yaml", "# ours\n" + PROBES + "  - name: new  # later\n    input: soon\n")
    ran = line("probe", "probes.yaml", "--command", PROGRAM, "--record")

    assert ran.status == 0
    assert [item for item in ran.out.splitlines() if item.startswith(("+", "-"))] == [
        "--- probes.yaml\tbefore",
        "+++ probes.yaml\tnow",
        '+    expected: "SOON"',
    ]
    assert Path("probes.yaml").read_text("utf-8") == (
        "# ours\n" + PROBES + '  - name: new  # later\n    expected: "SOON"\n    input: soon\n'
    )
    assert ran.err == "probes.yaml: 1 recorded\n"
    assert line("probe", "probes.yaml", "--command", PROGRAM, "--record").err == "probes.yaml: nothing to record\n"


@pytest.mark.integration
def test_a_baseline_is_replaced_when_it_is_named(line: Line):
    """So that no run replaces what somebody has looked at by accident."""
    ran = line("probe", "probes.yaml", "--command", PROGRAM, "--record", "--only", "other", "--json")

    assert ran.document == {
        "schema": "adjudge/probe-recording/1",
        "input": "probes.yaml",
        "recorded": ["other"],
        "failed": {},
    }
    assert '{name: other, input: bye, expected: "BYE"}' in Path("probes.yaml").read_text("utf-8")
    assert "{name: same, input: hello, expected: HELLO}" in Path("probes.yaml").read_text("utf-8")


def test_what_the_tool_did_not_say_is_not_recorded(line: Line):
    """The rest is; the status says that something is missing."""
    write("probes.yaml", "probes:\n  - {name: a, input: x}\n  - {name: b, input: 7}\n")
    ran = line("probe", "probes.yaml", "--function", FUNCTION, "--record")

    assert ran.status == 1
    assert 'name: a, expected: "X"' in Path("probes.yaml").read_text("utf-8")
    assert "name: b, input: 7" in Path("probes.yaml").read_text("utf-8")
    assert "adjudge: b: not recorded: the tool raised AttributeError" in ran.err


def test_a_recorded_output_cannot_move_the_cursor(line: Line):
    """Neither on the terminal nor, as it is, in the file."""
    write("probes.yaml", json.dumps({"probes": [{"name": "a", "input": ESCAPES.replace("\x00", "")}]}))
    Path("probes.yaml").rename("probes.yml")
    ran = line("probe", "probes.yml", "--function", FUNCTION, "--record")

    assert ran.status == 0
    assert HIDDEN.search(ran.out + ran.err) is None
    assert "\x1b" not in Path("probes.yml").read_text("utf-8")


def test_toml_is_refused_before_the_tool_runs(line: Line):
    """It cannot be written here."""
    write("probes.toml", '[[probes]]\nname = "a"\ninput = 1\n')
    ran = line("probe", "probes.toml", "--command", f"{sys.executable} -c \"open('ran', 'w')\"", "--record")

    assert (ran.status, Path("ran").exists()) == (2, False)
    assert "keep baselines in YAML or JSON to record" in ran.sentence
