"""The table of seven tools is what its program recorded, and what it says of adjudge is what adjudge does."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kit import house

RESEARCH = house.ROOT / "research"

if not (RESEARCH / "seven_tools.py").is_file():
    pytest.skip("research/ is absent; it is in the repository", allow_module_level=True)

CHEAP = ("cut", "scale", "again", "orders", "function", "rule", "cache", "budget", "approval", "record")
"""Jobs of adjudge that wait for nothing and start no process; the others are for the program alone."""


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The program, in an empty folder, where its jobs write."""
    monkeypatch.syspath_prepend(str(RESEARCH))
    monkeypatch.chdir(tmp_path)
    return importlib.import_module("seven_tools")


@pytest.fixture
def port(script: ModuleType) -> Iterator[int]:
    """The port of the mock model."""
    server = script.start_server()
    yield server.server_port
    server.shutdown()
    server.server_close()


def read_found(script: ModuleType) -> dict[str, Any]:
    return json.loads(script.FOUND.read_text("utf-8"))


def test_the_table_on_the_page_is_what_was_recorded(script: ModuleType):
    """Nobody changes a cell by hand: it comes from a run, with its date, its version and its evidence."""
    assert script.PAGE.split()[1] == script.write_part(read_found(script)).strip("\n")


def test_each_job_of_each_tool_is_recorded_with_a_word_that_the_page_explains(script: ModuleType):
    """No cell is left out, and none says that a job could not be run."""
    found = read_found(script)

    assert list(found["versions"]) == list(found["cells"]) == list(script.TOOLS)
    for cells in found["cells"].values():
        assert list(cells) == list(script.JOBS)
        assert {cell["word"] for cell in cells.values()} <= script.WORDS.keys()
        assert all(cell["evidence"] for cell in cells.values())


@pytest.mark.integration
@pytest.mark.parametrize("job", CHEAP)
def test_adjudge_does_what_the_table_says(job: str, script: ModuleType, port: int):
    """Its column is computed again by the program's own function, to the letter of its evidence."""
    found = script.run_here("adjudge", job, f"http://127.0.0.1:{port}/adjudge-{job}")

    assert found == read_found(script)["cells"]["adjudge"][job]


@pytest.mark.integration
def test_adjudge_counts_its_agreement_with_people_as_the_table_says(script: ModuleType, port: int):
    """As above; this job needs numpy and scipy."""
    pytest.importorskip("scipy", reason="measuring needs the extra trust")

    found = script.run_here("adjudge", "people", f"http://127.0.0.1:{port}/adjudge-people")

    assert found == read_found(script)["cells"]["adjudge"]["people"]


@pytest.mark.parametrize(
    ("fine", "broken", "word"),
    [
        ("passed", "no verdict: error", "done"),
        ("passed", "raised ValueError: no JSON", "raises"),
        ("passed", "failed", "not"),
        ("passed", "passed", "not"),
        ("passed", "score 95", "not"),
        ("no verdict: stopped", "no verdict: stopped", "not"),
    ],
)
def test_a_verdict_on_a_broken_reply_is_not_done(fine: str, broken: str, word: str, script: ModuleType):
    """Nor is it where the judge's failure took the answer beside it along."""
    work = importlib.import_module("seven.work")

    assert work.weigh_fault(fine, broken).word == word
