"""Fixtures of the tests of remembered replies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from adjudge.models import ReplyCache


@pytest.fixture(name="cache")
def make_cache(tmp_path: Path) -> Iterator[ReplyCache]:
    """An empty cache in a file."""
    with ReplyCache(tmp_path / "replies.sqlite") as cache:
        yield cache
