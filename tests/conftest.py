"""What several test files share: how a missing component is skipped, and where shared cases are."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

CI = os.environ.get("ADJUDGE_CI") == "1"

# The time one example takes says more about the machine than about the code; in CI the same examples run every time.
settings.register_profile("adjudge", deadline=None, derandomize=CI, print_blob=not CI)
settings.load_profile("adjudge")


def require(component: str, present: object, how: str) -> None:
    """Skip a test, by name, where something it needs is absent; where ADJUDGE_CI is 1, fail instead.

    ``how`` completes "to have it, ...": ``pip install xllamacpp``. Without this a check that silently stopped running
    looks the same as one that passes.
    """
    if present:
        return
    sentence = f"{component} is absent; to have it, {how}"
    if CI:
        pytest.fail(f"{sentence} (skips are failures because ADJUDGE_CI=1)", pytrace=False)
    pytest.skip(sentence)


@pytest.fixture(name="require")
def provide_require():
    """``require`` for tests that prefer to ask for it by name."""
    return require


def read_vectors(cases: Path, *, features: tuple[str, ...]) -> list[dict[str, Any]]:
    """The shared conformance cases of these features (by how they begin), or a skip where the folder has none.

    How many there are, and how they are called, is the folder's business: a test holds every one it finds.
    """
    path = cases / "conformance" / "vectors.json"
    every = json.loads(path.read_text("utf-8")) if path.is_file() else []
    found = [case for case in every if case["feature"].startswith(features)]
    if not found:
        pytest.skip(f"the folder of ADJUDGE_CASES has no case of {', '.join(features)}")
    return found


def find_data(cases: Path, name: str) -> Path:
    """A shared data file, or a skip that names it."""
    path = cases / "data" / name
    if not path.is_file():
        pytest.skip(f"the folder of ADJUDGE_CASES has no data/{name}")
    return path


@pytest.fixture(scope="session")
def cases() -> Path:
    """The directory of shared cases that ADJUDGE_CASES names; tests that read them skip wherever it is not set."""
    named = os.environ.get("ADJUDGE_CASES")
    if not named or not Path(named).is_dir():
        pytest.skip("ADJUDGE_CASES names no directory; these cases are optional everywhere")
    return Path(named)
