"""Scorers and approvers of Inspect, in processes of their own: an evaluation changes asyncio and zipfile in its own."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

from kit import house

pytestmark = pytest.mark.integration


FOLDER = house.ROOT / "tests" / "integrations" / "own_process"


@pytest.mark.parametrize("name", ["inspect_approver", "inspect_scorer"])
def test_a_judge_scores_and_a_guard_approves_in_inspect(name: str, require):
    """All that the file in own_process specifies holds; its report is shown when something does not."""
    require("inspect-ai", find_spec("inspect_ai"), "pip install inspect-ai")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command += [str(FOLDER / f"{name}.py")]
    done = subprocess.run(command, cwd=house.ROOT, env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
