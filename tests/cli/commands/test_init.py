"""``adjudge init``: first files that work as they are, and never in place of others."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import adjudge
from adjudge.rubric import load_rubric
from kit.cli import Line

pytestmark = pytest.mark.timed


JUDGE = """
def strict(content):
    names = ("answers-the-question", "nothing-invented")
    return {"criteria": [{"name": name, "reasoning": "", "score": 1.0} for name in names]}
"""

FILES = ("adjudge.toml", "rubrics/answers.yaml", "tests/test_answers.py", ".github/workflows/adjudge.yml")


def test_four_files_are_written_and_named(line: Line):
    """A configuration, a rubric, a test and a workflow; what to type next is said."""
    ran = line("init")

    assert ran.status == 0
    assert [row.split() for row in ran.out.splitlines()] == [["wrote", name] for name in FILES]
    assert all(Path(name).is_file() for name in FILES)
    assert "--judge-record" in ran.err


def test_the_workflow_installs_nothing_from_an_index_by_a_name_that_nobody_registered(line: Line):
    """Whoever registered the name would run code in the job; the wheel is committed, and where is said."""
    ran = line("init")
    steps = yaml.safe_load(Path(".github/workflows/adjudge.yml").read_text())["jobs"]["judge"]["steps"]
    (install,) = [step["run"] for step in steps if step.get("run", "").startswith("pip install")]
    wheel, *others = install.removeprefix("pip install ").split()

    assert wheel == f"vendor/adjudge-{adjudge.__version__}-py3-none-any.whl"
    assert others == ["pytest"]
    assert wheel in ran.err


def test_no_file_is_overwritten(line: Line, tmp_path: Path):
    """What is there stays to the letter, a link to nowhere too; the rest is written."""
    Path("adjudge.toml").write_text("# mine\n")
    Path("rubrics").mkdir()
    Path("rubrics/answers.yaml").symlink_to(tmp_path / "nowhere")
    ran = line("init")

    assert ran.status == 0
    assert [row.split()[0] for row in ran.out.splitlines()] == ["kept", "kept", "wrote", "wrote"]
    assert Path("adjudge.toml").read_text() == "# mine\n"
    assert Path("rubrics/answers.yaml").is_symlink()
    assert not (tmp_path / "nowhere").exists()
    assert line("init").out.count("kept") == 4


def test_another_folder_may_be_named(line: Line):
    """It is made where it is missing."""
    assert line("init", "new/project").status == 0
    assert all((Path("new/project") / name).is_file() for name in FILES)


def test_a_folder_that_cannot_be_written_is_named(line: Line):
    """One sentence with the path and the remedy."""
    Path("file").write_text("")
    ran = line("init", "file/below")

    assert ran.status == 2
    assert "file/below" in ran.err
    assert "name a folder that can be written" in ran.err


def test_the_judge_is_that_of_the_key_that_is_set(line: Line, monkeypatch: pytest.MonkeyPatch):
    """Without a key the line is a comment to take the mark from."""
    line("init", "without")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "made up")
    ran = line("init", "with")

    assert '\n# judge = "' in Path("without/adjudge.toml").read_text()
    assert '\njudge = "anthropic:' in Path("with/adjudge.toml").read_text()
    assert "ANTHROPIC_API_KEY is set" in ran.err
    assert "made up" not in ran.err + ran.out + Path("with/adjudge.toml").read_text()


def test_the_configuration_and_the_rubric_are_valid(line: Line):
    """``rubric check`` has no advice, and every commented table becomes valid when its marks are taken out."""
    line("init")

    assert line("rubric", "check", "rubrics/answers.yaml", "--strict").status == 0
    assert line("doctor", "--offline", "--judge", "rules").status == 0
    text = Path("adjudge.toml").read_text()
    tables = text[text.index("# [judges.careful]") :]
    kept = [row[2:] for row in tables.splitlines() if row.startswith("# ") and (row[2] == "[" or " = " in row[:40])]
    Path("adjudge.toml").write_text(text.replace("# judge = ", "judge = ", 1) + "\n".join(kept))
    ran = line("gate", "list")
    assert (ran.status, ran.err) == (0, "")
    assert load_rubric("rubrics/answers.yaml").passing_threshold == 0.75


def test_the_commands_that_the_files_name_exist(line: Line):
    """Words, options and the number of arguments: a command that is copied from a comment must not end with 2."""
    line("init")
    Path("answer.txt").write_text("You can send it back.", encoding="utf-8")
    config = Path("adjudge.toml").read_text(encoding="utf-8")
    enabled = (
        config.replace("# [ledger]", "[ledger]")
        .replace("# url =", "url =")
        .replace("# [gates.answers]", "[gates.answers]")
    )
    Path("adjudge.toml").write_text(enabled.replace("# rules = [", "rules = ["), encoding="utf-8")
    line("gate", "check", "answers", "answer.txt")  # the first decision makes the ledger

    named = re.findall(r"(?:: |`)adjudge ([a-z][^\n`]*?)(?:`|$)", config, re.MULTILINE)
    assert {tuple(command.split()[:2]) for command in named} == {("doctor",), ("gate", "check"), ("ledger", "verify")}
    for command in named:
        ran = line(*command.split())
        assert ran.status != 2, command


@pytest.mark.integration
def test_the_suite_runs_with_a_judge(line: Line):
    """The test that is written passes with a judge, here a function, and fails when the answer is bad."""
    line("init")
    Path("mine.py").write_text(JUDGE)
    config = Path("adjudge.toml")
    config.write_text(config.read_text().replace('# judge = "openai', 'judge = "python:mine:strict" # "openai'))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path.cwd()), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_answers.py"]

    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout
    test = Path("tests/test_answers.py")
    test.write_text(test.read_text().replace("You can send the jacket", "TODO: the jacket"))
    assert subprocess.run(command, capture_output=True, text=True, env=environment, check=False).returncode == 1


def test_the_workflow_needs_no_key_and_no_rights(line: Line):
    """It reads the repository, replays recordings, and names the files that were written."""
    line("init")
    made = yaml.safe_load(Path(".github/workflows/adjudge.yml").read_text())
    commands = [step["run"] for step in made["jobs"]["judge"]["steps"] if "run" in step]

    assert made["permissions"] == {"contents": "read"}
    assert any("--judge-replay" in command and "tests/test_answers.py" in command for command in commands)
    assert "secrets." not in Path(".github/workflows/adjudge.yml").read_text()
