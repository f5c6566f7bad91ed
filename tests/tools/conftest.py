"""Fixtures of the tests of forged tools."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.ledgers import open_schema


@pytest.fixture(name="store", params=["memory", "sqlite", "postgres"])
def make_store(request: pytest.FixtureRequest, tmp_path: Path, require: Any) -> Iterator[str | None]:
    """Each kind of store."""
    if request.param == "postgres":
        with open_schema(require) as url:
            yield url
    else:
        yield None if request.param == "memory" else f"sqlite:///{tmp_path / 'adjudge.db'}"
