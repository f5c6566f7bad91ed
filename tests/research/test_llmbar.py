"""Recorded judges on LLMBar, compared like any others, come to their published figures.

The recordings are not in the repository. ``ADJUDGE_CASES`` names a folder that holds ``data/llmbar_*``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kit import house
from kit.environment import find_data, require

pytestmark = pytest.mark.integration


SCRIPT = house.ROOT / "research" / "llmbar.py"


@pytest.mark.full
@pytest.mark.no_cover
def test_recorded_judges_come_to_their_published_figures(cases: Path, tmp_path: Path):
    """Every Vanilla and CoT row is as published, or differs by a reply without a verdict, and by nothing else.

    What it keeps are ordinary files: the cases are pairs with a task and a label, and a recording's rows are found by
    case and order.
    """
    for name in ("llmbar_items.jsonl.gz", "llmbar_pairwise.jsonl.gz", "llmbar_expected.json"):
        find_data(cases, name)
    require("research/llmbar.py", SCRIPT.is_file(), "run the tests in a checkout")
    command = [sys.executable, str(SCRIPT), "--data", str(cases / "data"), "--keep", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    *table, verdict = done.stdout.splitlines()
    expected = json.loads((cases / "data" / "llmbar_expected.json").read_text("utf-8"))["rows"]
    ours = [row for row in expected if row["prompt"] in {"Vanilla", "CoT"}]
    excused = [line for line in table if "; only by replies without a verdict: " in line]
    document = json.loads(verdict)

    assert (document["met"], document["rows"]) == (True, len(ours))
    assert document["as_expected"] + len(excused) == len(ours)
    assert len(excused) <= max(1, len(ours) // 6)

    case = json.loads((tmp_path / "cases.jsonl").read_text("utf-8").splitlines()[0])
    recording = next(tmp_path.glob("*-Vanilla.jsonl"))
    row = json.loads(recording.read_text("utf-8").splitlines()[0])
    every = {json.loads(line)["id"] for line in (tmp_path / "cases.jsonl").read_text("utf-8").splitlines()}

    assert set(case) == {"id", "content", "task", "label", "group"}
    assert set(case["content"]) == {"a", "b"}
    assert case["label"] in {"first", "second"}
    assert (row["schema"], row["order"]) in {("adjudge/recording/1", "ab"), ("adjudge/recording/1", "ba")}
    assert row["case"] in every
