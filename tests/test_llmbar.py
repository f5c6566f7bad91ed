"""Recorded judges on LLMBar, compared like any others, come to their published figures.

The recordings are not in the repository. ``ADJUDGE_CASES`` names a folder that holds ``data/llmbar_*``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import house

SCRIPT = house.ROOT / "bench" / "llmbar.py"


@pytest.mark.timeout(180)  # several processes, or thousands of replies
def test_recorded_judges_come_to_their_published_figures(cases: Path, tmp_path: Path):
    """Every Vanilla and CoT row is as published, or differs by a reply without a verdict, and by nothing else."""
    if not (cases / "data" / "llmbar_pairwise.jsonl.gz").is_file():
        pytest.skip("the folder of ADJUDGE_CASES has no data/llmbar_pairwise.jsonl.gz")
    command = [sys.executable, str(SCRIPT), "--data", str(cases / "data"), "--keep", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    *table, verdict = done.stdout.splitlines()
    expected = json.loads((cases / "data" / "llmbar_expected.json").read_text("utf-8"))["rows"]
    ours = [row for row in expected if row["prompt"] in {"Vanilla", "CoT"}]
    told = [line for line in table if "; only by replies without a verdict: " in line]
    said = json.loads(verdict)

    assert (said["met"], said["rows"]) == (True, len(ours))
    assert said["as_expected"] + len(told) == len(ours)
    assert len(told) <= len(ours) // 6
    assert all("| CoT     |" in line for line in told)


@pytest.mark.timeout(180)  # several processes, or thousands of replies
def test_the_converted_files_are_ordinary_ones(cases: Path, tmp_path: Path):
    """The cases are pairs with a task and a label, and a recording's rows are found by case and order."""
    if not (cases / "data" / "llmbar_pairwise.jsonl.gz").is_file():
        pytest.skip("the folder of ADJUDGE_CASES has no data/llmbar_pairwise.jsonl.gz")
    subprocess.run(
        [sys.executable, str(SCRIPT), "--data", str(cases / "data"), "--keep", str(tmp_path)],
        capture_output=True,
        check=True,
    )
    case = json.loads((tmp_path / "cases.jsonl").read_text("utf-8").splitlines()[0])
    row = json.loads((tmp_path / "GPT-4-Vanilla.jsonl").read_text("utf-8").splitlines()[0])

    assert set(case) == {"id", "content", "task", "label", "group"}
    assert set(case["content"]) == {"a", "b"}
    assert case["label"] in {"first", "second"}
    assert (row["schema"], row["case"], row["order"]) == ("adjudge/recording/1", case["id"], "ab")
