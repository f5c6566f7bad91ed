"""The tests' environment: how much is run, what is there to run it with, and the shared cases."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from kit.house import TESTS

CI = os.environ.get("ADJUDGE_CI") == "1"
FULL = os.environ.get("ADJUDGE_FULL") == "1"
SEED = os.environ.get("ADJUDGE_SEED", "0")


def require(component: str, present: object, remedy: str) -> None:
    """Skip a test, by name, where something it needs is absent; where ADJUDGE_CI is 1, fail instead.

    ``remedy`` completes "to have it, ...": ``pip install xllamacpp``. Without this a check that silently stopped
    running looks the same as one that passes.
    """
    if present:
        return
    sentence = f"{component} is absent; to have it, {remedy}"
    if CI:
        pytest.fail(f"{sentence} (skips are failures because ADJUDGE_CI=1)", pytrace=False)
    pytest.skip(sentence)


VECTORS = TESTS / "conformance" / "vectors.json"
"""The conformance cases of the repository."""


def read_vectors(*, features: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the conformance cases of these features (by how they begin).

    Those of the repository come first, then those of the folder that ADJUDGE_CASES names, if it has others. How many
    there are, and what they are called, may change: a test replays every one.
    """
    vectors = json.loads(VECTORS.read_text("utf-8"))
    ids = {case["id"] for case in vectors}
    other = Path(os.environ.get("ADJUDGE_CASES") or "absent") / "conformance" / "vectors.json"
    for case in json.loads(other.read_text("utf-8")) if other.is_file() else []:
        if case not in vectors:
            vectors.append(case | {"id": f"{case['id']} of ADJUDGE_CASES"} if case["id"] in ids else case)
    return [case for case in vectors if case["feature"].startswith(features)]


def find_data(cases: Path, name: str) -> Path:
    """A shared data file, or a skip that names it."""
    path = cases / "data" / name
    if not path.is_file():
        pytest.skip(f"the folder of ADJUDGE_CASES has no data/{name}")
    return path
