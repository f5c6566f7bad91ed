"""The tutorial from observing to enforcing runs: each of its commands, in order, and says what the page shows."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from adjudge.dataset import Label
from adjudge.measurement import make_call_rates
from kit import cli, docs, house
from kit.cli import Line

pytest.importorskip("scipy", reason="measuring needs the extra trust")
pytest.importorskip("cryptography", reason="signing needs the extra sign")

PAGE = house.ROOT / "docs" / "shadow.md"

pytestmark = [pytest.mark.slow, pytest.mark.integration]


@pytest.fixture
def line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    """The command line in a copy of the example's folder, on a wide terminal."""
    copied = tmp_path / "observed-calls"
    shutil.copytree(house.ROOT / "examples" / "observed-calls", copied)
    cli.isolate(monkeypatch, copied)
    monkeypatch.setenv("COLUMNS", "240")
    return Line(capsys)


def squeeze(text: str) -> str:
    """A text whose columns may be wider or narrower."""
    return " ".join(text.split())


def run(line: Line, command: str) -> tuple[int, str]:
    """What a command of the page ends with and prints."""
    name, *arguments = shlex.split(command)
    if name == "adjudge":
        ran = line(*arguments)
        return ran.status, ran.out + ran.err
    words = [sys.executable if name == "python" else name, *arguments]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_every_command_of_the_tutorial_says_what_the_page_shows(line: Line):
    """From the sessions to a gate that enforces, and that asks people once its certificate is gone."""
    commands = list(docs.list_commands(PAGE))
    assert len(commands) == 17

    for number, (command, shown) in enumerate(commands):
        status, output = run(line, command)
        is_enforcing = "gate check" in command and number > 11
        assert (command, status) == (command, 1 if is_enforcing else 0)
        squeezed = squeeze(output)
        assert [text for text in shown if squeeze(text) not in squeezed] == [], command

    check_truth_is_in_the_limits(line)


def check_truth_is_in_the_limits(line: Line) -> None:
    """The limits of each rate contain what the labels of all calls, which are known here, come to."""
    rows = map(json.loads, Path("truth.jsonl").read_text(encoding="utf-8").splitlines())
    every = [Label(case=row["case"], rater="truth", value=row["value"], subject=row["case"]) for row in rows]
    truth = make_call_rates("observed", labels=every).to_dict()["deciders"]
    shown = line("calls", "rates", "observed", "--json").document["deciders"]
    rates = ("wrong_passes", "wrong_passes_of_bad", "wrong_stops", "wrong_stops_of_good")
    outside = [
        (found["name"], rate, found[rate], true[rate]["value"])
        for found, true in zip(shown, truth, strict=True)
        for rate in rates
        if not found[rate]["low"] <= true[rate]["value"] <= found[rate]["high"]
    ]

    assert len(every) > 1900
    assert [found["name"] for found in shown] == [true["name"] for true in truth] == ["harness", "rules", "judge"]
    assert outside == []
