"""How much YAML is written."""

from __future__ import annotations

import pytest

from adjudge import Case, UsageError
from adjudge.dataset import write as _write
from adjudge.dataset import write_cases


@pytest.mark.parametrize(("limit", "value"), [("LARGEST_YAML", 100), ("MOST_YAML", 10)])
def test_more_yaml_than_is_read_is_not_written(tmp_path, monkeypatch, limit, value):
    """Nobody would see it before it is needed."""
    monkeypatch.setattr(_write, limit, value)
    with pytest.raises(UsageError, match=r"more YAML than would be read again; write a \.jsonl file"):
        write_cases(tmp_path / "c.yaml", [Case(id=str(number), content="x" * 20) for number in range(9)])

    assert list(tmp_path.iterdir()) == []
