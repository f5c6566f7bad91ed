"""What Linux can show of other platforms: no module, signal, encoding or file name that only Unix has is relied on.

docs/platforms.md says what was never run on Windows and macOS.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import adjudge
from kit import house
from kit.house import TESTS
from kit.patience import HANG

POLITE = "name: Polite\ncriteria: [{name: criteria, description: Is polite, rule: {contains: please}}]\n"

CONFIG = """
[gates.letters]
rules = [{name = "length", max = 40}]
on_failed = "ask"

[approvals]
approvers = ["ana"]
show_content = true

[ledger]
url = "sqlite:///adjudge.db"
"""


def run_elsewhere(tmp_path: Path, *arguments: str) -> Any:
    """What a task of kit/other_platform.py comes to, in a process whose locale knows ASCII alone."""
    report = tmp_path / "report.json"
    package = Path(adjudge.__file__).parents[1]
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "PYTHON"))}
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "cp1252"}
    done = subprocess.run(
        [
            sys.executable,
            "-X",
            "warn_default_encoding",
            str(TESTS / "kit" / "other_platform.py"),
            *arguments,
            str(report),
        ],
        env=variables | locale | {"PYTHONPATH": str(package), "COLUMNS": "100", "USERNAME": "ana"},
        capture_output=True,
        check=False,
        timeout=HANG,
    )
    assert done.returncode == 0, done.stderr.decode("cp1252", "replace")
    return json.loads(report.read_text("utf-8"))


@pytest.mark.integration
def test_every_module_is_imported_without_what_only_unix_has(tmp_path: Path):
    """``fcntl``, ``pwd``, ``resource``, ``termios``, signals and functions of ``os`` are used where they are needed."""
    absent = run_elsewhere(tmp_path, "import")

    assert [
        name for name in absent if not name.startswith(("adjudge.integrations", "adjudge.mcp", "adjudge.server"))
    ] == []


@pytest.mark.integration
def test_the_command_line_works_on_a_console_of_cp1252(tmp_path: Path):
    """Judging, runs, labels, gates and the ledger; what the console cannot write is replaced, and stops nothing."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "adjudge.toml").write_text(CONFIG, "utf-8")
    (folder / "polite.yaml").write_text(POLITE, "utf-8")
    (folder / "good.txt").write_text("漢字 – please, “so” ✓", "utf-8")
    rows = [{"id": f"é-{n}", "content": "漢字, please" if n % 2 else "漢字"} for n in range(6)]
    (folder / "cases.jsonl").write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), "utf-8")
    (folder / "long.txt").write_text("漢字 " * 20, "utf-8")
    commands = {
        "--version": 0,
        "--help": 0,
        "judge good.txt --judge rules --rubric polite.yaml": 0,
        "judge good.txt --judge rules --rubric polite.yaml --json": 0,
        "run cases.jsonl --judge rules --rubric polite.yaml --out monday": 0,
        "report monday": 0,
        "report monday --html report.html": 0,
        "label monday --rater ann": 0,
        "label monday --export labels.csv": 0,
        "dataset check cases.jsonl": 0,
        "gate list": 0,
        "gate check letters good.txt": 0,
        "gate check letters long.txt": 3,
        "approvals list": 0,
        "ledger list": 0,
        "ledger verify": 0,
        "ledger export ledger.jsonl": 0,
        "ledger backup copy.db": 0,
        "doctor": 0,
        "serve --uds C:\\hook.sock": 2,
    }

    done = run_elsewhere(tmp_path, "commands", str(folder), json.dumps([text.split() for text in commands]))

    wrong = [one for one, status in zip(done, commands.values(), strict=True) if one["status"] != status]
    assert [(" ".join(one["command"]), one["status"], one["err"][-600:]) for one in wrong] == []
    assert [one["command"] for one in done if "Traceback" in one["err"]] == []


@pytest.mark.integration
@pytest.mark.timed
def test_the_server_answers_and_ends_without_signals_of_unix(tmp_path: Path):
    """It starts, answers, and ends by Ctrl-C with the loop's signal handlers gone."""
    pytest.importorskip("fastapi")
    (tmp_path / "adjudge.toml").write_text(CONFIG, "utf-8")

    done = run_elsewhere(tmp_path, "serve", str(tmp_path))

    assert done["answers"] == [200], done["err"]
    assert done["status"] in (0, 130), done["err"]
    assert "Traceback" not in done["err"]


def test_no_two_files_of_the_repository_differ_in_case_alone():
    """Windows and macOS keep one of them."""
    names = Counter(str(path.relative_to(house.ROOT)).casefold() for path in house.repository_files())

    assert [name for name, times in names.items() if times > 1] == []


def test_no_file_of_the_repository_has_a_name_that_windows_refuses():
    """A checkout there would stop at it."""
    reserved = {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))}
    parts = {part for path in house.repository_files() for part in path.relative_to(house.ROOT).parts}

    assert [part for part in parts if part.partition(".")[0].lower() in reserved] == []
    assert [part for part in parts if set(part) & set('<>:"|?*\\') or part.endswith((".", " "))] == []
