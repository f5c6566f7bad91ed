"""The first ring needs what ./scripts/test installs, and nothing else that a developer may happen to have."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from kit import house, light_environment
from kit.patience import HANG


def test_packages_that_only_the_whole_environment_has_are_hidden():
    """And none that the light one has."""
    hidden = light_environment.find_hidden_modules()

    assert not hidden & {"adjudge", "pydantic", "pytest", "fastapi", "hypothesis", "scipy", "_pytest", "anyio"}


@pytest.mark.integration
@pytest.mark.slow
def test_every_file_of_tests_can_be_loaded_in_the_light_environment():
    """Else ./scripts/test fails on a new machine, before its first test."""
    words = ["-m", "pytest", "-p", "kit.light_environment", "-p", "no:cacheprovider", "--collect-only", "-qq"]
    words += ["-p", "no:schemathesis", "--first-ring"]
    path = os.pathsep.join([str(house.ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
    environment = {name: value for name, value in os.environ.items() if name != "ADJUDGE_CI"} | {"PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, *words],
        cwd=house.ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )

    assert done.returncode == 0, done.stdout[-3_000:] + done.stderr[-1_000:]
