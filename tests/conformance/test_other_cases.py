"""Conformance cases are those of the repository and of the folder that ADJUDGE_CASES names, whatever it has.

``ADJUDGE_OTHER_CASES=1`` runs the tests that read cases again on another folder, which takes a minute.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from kit import house
from kit.environment import VECTORS, read_vectors

READERS_OF_CASES = (
    "conformance/test_approvals.py",
    "conformance/test_firewalls.py",
    "conformance/test_judging_internal.py",
    "conformance/test_ledger_internal.py",
    "conformance/test_probes.py",
    "conformance/test_registry.py",
    "conformance/test_tools.py",
    "dataset/test_dataset.py",
    "ledger/audit/test_report_file.py",
    "question/test_readers_recorded.py",
    "tools/test_reuse.py",
)
"""The test files that read cases."""

LEFT_OUT = ("llmbar_pairwise", "topicalchat")
"""Files of the other folder that are not there at all."""


def make_other(cases: Path, folder: Path, seed: int) -> Path:
    """A folder of the same form with about half of the rows, shuffled, and no id that this one has."""
    draw = random.Random(seed)
    for part in ("conformance", "data"):
        (folder / part).mkdir(parents=True)
    rows = json.loads(VECTORS.read_text("utf-8"))
    (folder / "conformance" / "vectors.json").write_text(json.dumps(halve(rows, draw)), encoding="utf-8")
    for path in sorted((cases / "data").glob("*.jsonl.gz")):
        if path.name.startswith(LEFT_OUT):
            continue
        with gzip.open(path, "rt", encoding="utf-8") as file:
            kept = halve([json.loads(line) for line in file], draw)
        with gzip.open(folder / "data" / path.name, "wt", encoding="utf-8", compresslevel=1) as file:
            file.writelines(f"{json.dumps(row)}\n" for row in kept)
    return folder


def halve(rows: list[dict], draw: random.Random) -> list[dict]:
    kept = [row for row in rows if draw.random() < 0.5]
    draw.shuffle(kept)
    return [row | {"id": f"other/{number}"} if "id" in row else row for number, row in enumerate(kept)]


def test_cases_of_a_folder_are_read_besides_those_of_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A case that is the same is read once, and one of the same name that differs is read as well."""
    monkeypatch.delenv("ADJUDGE_CASES", raising=False)
    ours = read_vectors(features=("judge_chain",))
    changed = ours[0] | {"system": "another"}
    new = ours[0] | {"id": "new"}
    (tmp_path / "conformance").mkdir()
    (tmp_path / "conformance" / "vectors.json").write_text(json.dumps([ours[1], new, changed]), "utf-8")
    monkeypatch.setenv("ADJUDGE_CASES", str(tmp_path))

    assert read_vectors(features=("judge_chain",)) == [
        *ours,
        new,
        changed | {"id": f"{ours[0]['id']} of ADJUDGE_CASES"},
    ]


def test_no_two_cases_share_an_id():
    """So that a failure names the case."""
    ids = [case["id"] for case in json.loads(VECTORS.read_text("utf-8"))]

    assert ids
    assert sorted(set(ids)) == sorted(ids)


@pytest.mark.integration
@pytest.mark.parametrize("seed", [1, 2])
def test_another_folder_of_the_same_form_runs(cases: Path, tmp_path: Path, seed: int):
    """Every test that reads shared cases passes, or says what the folder does not have; no row is passed over."""
    if os.environ.get("ADJUDGE_OTHER_CASES") != "1":
        pytest.skip("ADJUDGE_OTHER_CASES is not 1; with it, the tests that read shared cases run on another folder")
    folder = make_other(cases, tmp_path / "other", seed)
    files = [str(house.TESTS / name) for name in READERS_OF_CASES]
    only = "cases or case or read or reply or vectors or replay or firewall or registry or promotion or forging"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", only, *files]
    more = {"ADJUDGE_CASES": str(folder), "ADJUDGE_OTHER_CASES": ""}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=house.ROOT, env={**os.environ, **more}
    )

    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
