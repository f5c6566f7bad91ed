"""Tests that read shared cases hold whatever cases a folder has: fewer, in another order, under other names.

``ADJUDGE_OTHER_CASES=1`` asks for it, since it runs those test files again, which takes a minute.
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

import house

pytestmark = pytest.mark.integration


READERS_OF_CASES = (
    "test_conformance", "test_tools_conformance", "test_probe_conformance", "test_approval_conformance",
    "test_registry_conformance", "test_firewall_conformance", "test_ledger_conformance", "test_audit_file",
    "test_readers_recorded", "test_tools_reuse", "test_dataset",
)  # fmt: skip
"""The test files, wherever below tests/ each is."""

LEFT_OUT = ("llmbar_pairwise", "topicalchat", "injection_texts")
"""Files of the other folder that are not there at all."""


def make_other(cases: Path, folder: Path, seed: int) -> Path:
    """A folder of the same form with about half of the rows, shuffled, and no id that this one has."""
    draw = random.Random(seed)
    for part in ("conformance", "data"):
        (folder / part).mkdir(parents=True)
    rows = json.loads((cases / "conformance" / "vectors.json").read_text("utf-8"))
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


@pytest.mark.parametrize("seed", [1, 2])
def test_another_folder_of_the_same_form_runs(cases: Path, tmp_path: Path, seed: int):
    """Every test that reads shared cases passes, or says what the folder does not have; no row is passed over."""
    if os.environ.get("ADJUDGE_OTHER_CASES") != "1":
        pytest.skip("ADJUDGE_OTHER_CASES is not 1; with it, the tests that read shared cases run on another folder")
    folder = make_other(cases, tmp_path / "other", seed)
    tests = {path.stem: str(path) for path in (house.ROOT / "tests").rglob("test_*.py")}
    files = [tests[name] for name in READERS_OF_CASES]
    only = "cases or case or read or reply or vectors or replay or firewall or registry or promotion or forging"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", only, *files]
    more = {"ADJUDGE_CASES": str(folder), "ADJUDGE_OTHER_CASES": ""}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=house.ROOT, env={**os.environ, **more}
    )

    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
