"""Scorers of Inspect, in a process of their own: an evaluation changes asyncio and zipfile in its process."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

from kit import house

pytestmark = pytest.mark.integration


SPECIFIED = house.ROOT / "tests" / "integrations" / "own_process" / "inspect_scorer.py"


def test_a_judge_is_a_scorer_of_inspect(require):
    """All that own_process/inspect_scorer.py specifies holds; its report is shown when something does not."""
    require("inspect-ai", find_spec("inspect_ai"), "pip install inspect-ai")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(SPECIFIED)]
    done = subprocess.run(command, cwd=house.ROOT, env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
