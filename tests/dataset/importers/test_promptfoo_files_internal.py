"""Files that a suite of promptfoo names, each of which is read once."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from adjudge import UsageError
from adjudge.dataset import import_promptfoo
from adjudge.dataset.importers import promptfoo_files


def test_a_file_that_is_named_again_and_again_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """As the variables of tests, or as the value of assertions: ten megabytes a million times would have no end."""
    times: Counter[str] = Counter()

    def read_whole(path: str, largest: int) -> str:
        times[Path(path).name] += 1
        return Path(path).read_text("utf-8")

    monkeypatch.setattr(promptfoo_files, "read_whole", read_whole)
    (tmp_path / "v.json").write_text('{"q": "Q"}')
    (tmp_path / "w.txt").write_text("{}")
    (tmp_path / "link.json").symlink_to("v.json")
    variables = ["v.json", "./v.json", "link.json", "*.json"] * 10
    test = {"vars": variables, "providerOutput": "{}", "assert": [{"type": "contains", "value": "file://w.txt"}] * 5}
    (tmp_path / "sub").mkdir()
    (tmp_path / "s.yaml").write_text(json.dumps({"tests": [test, test]}))

    cases = list(import_promptfoo(tmp_path / "s.yaml"))
    assert [case.task for case in cases] == ["Q", "Q"]
    assert times == {"s.yaml": 1, "v.json": 1, "w.txt": 1}


def test_the_files_that_are_kept_have_a_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """All of them together."""
    monkeypatch.setattr(promptfoo_files, "LARGEST_JSON", 1_000)
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text(json.dumps({name: "x" * 600}))
    (tmp_path / "s.yaml").write_text(json.dumps([{"vars": "a.yaml"}, {"vars": ["a.yaml", "b.yaml"]}]))

    dataset = import_promptfoo(tmp_path / "s.yaml", on_bad_row="skip")
    assert [case.content for case in dataset] == ["x" * 600]
    assert "b.yaml" in dataset.bad_rows[0].why
    with pytest.raises(UsageError, match="split the suite"):
        list(import_promptfoo(tmp_path / "s.yaml"))
