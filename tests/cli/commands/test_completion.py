"""Completion in bash, zsh and fish: the shells themselves ask, and are given commands and options."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kit import cli
from kit.cli import Line
from kit.patience import HANG

ASK = {
    "bash": """
        eval "$(adjudge completion bash)"
        COMP_WORDS=({words}); COMP_CWORD={last}
        _adjudge_completion adjudge
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """,
    # zsh completes at a prompt alone, so what it would offer is caught where the script hands it over.
    "zsh": """
        compdef() {{ :; }}
        _arguments() {{ print -r -- "$@"; }}
        _files() {{ :; }}
        eval "$(adjudge completion zsh)"
        words=({words}); CURRENT={current}
        _adjudge_completion
    """,
    "fish": """
        adjudge completion fish | source
        complete -C "{line}"
    """,
}


def ask(shell: str, line: str, place: Path) -> str:
    """What a shell offers at the end of a line."""
    words = line.split(" ")
    program = ASK[shell].format(words=line, line=line, last=len(words) - 1, current=len(words))
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {"PATH": path, "HOME": str(place), "TERM": "dumb", "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    quiet = ["--norc"] if shell == "bash" else ["-f"] if shell == "zsh" else ["--no-config"]
    done = subprocess.run(
        [shell, *quiet, "-c", program],
        capture_output=True,
        text=True,
        env=environment,
        cwd=place,
        check=False,
        timeout=HANG,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.integration
@pytest.mark.parametrize(
    ("line", "completion"),
    [("adjudge jud", "judge"), ("adjudge judge --thresh", "--threshold"), ("adjudge ledger ver", "verify")],
)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.slow_table
def test_a_shell_completes_a_line(shell: str, line: str, completion: str, tmp_path: Path, require):
    """Commands, commands of commands, and options, and nothing that begins otherwise."""
    require(shell, shutil.which(shell), f"apt-get install {shell}")
    offered = ask(shell, line, tmp_path)

    assert completion in offered
    assert "doctor" not in offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_written_alone(
    shell: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """A shell evaluates standard output, so nothing else is there; where it goes is said on a terminal only."""
    cli.isolate(monkeypatch, tmp_path)
    ran = Line(capsys)("completion", shell)

    assert (ran.status, ran.err) == (0, "")
    assert "_ADJUDGE_COMPLETE" in ran.out


def test_another_shell_is_refused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """The sentence names those there are."""
    cli.isolate(monkeypatch, tmp_path)
    ran = Line(capsys)("completion", "tcsh")

    assert ran.status == 2
    assert "tcsh" in ran.sentence
    assert "fish" in ran.sentence
