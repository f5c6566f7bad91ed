"""Files that a pattern fits, where looking for them would have no end."""

from __future__ import annotations

from pathlib import Path

import pytest

from adjudge import UsageError
from adjudge.dataset.importers import file_pattern
from adjudge.dataset.importers.file_pattern import FileSearch


def test_links_that_lead_back_are_followed_a_number_of_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Each part of the pattern would be multiplied by their number; ``**`` does not follow them."""
    monkeypatch.setattr(file_pattern, "MOST_STEPS", 200)
    for number in range(5):
        (tmp_path / f"link{number}").symlink_to(".")

    assert FileSearch(tmp_path).find_files("*/link0") == [tmp_path / f"link{number}" / "link0" for number in range(5)]
    with pytest.raises(UsageError, match="no file fits"):
        FileSearch(tmp_path).find_files("**/x*")
    with pytest.raises(UsageError, match=r"200 steps .* name the files"):
        FileSearch(tmp_path).find_files("*/" * 40 + "x*")


def test_steps_are_counted_over_all_patterns_of_a_suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """And a pattern that is named again takes none."""
    monkeypatch.setattr(file_pattern, "MOST_STEPS", 19)
    (tmp_path / "a.yaml").touch()
    search = FileSearch(tmp_path)

    assert [search.find_files("*.yaml") for _ in range(100)] == [[tmp_path / "a.yaml"]] * 100
    for number in range(1, 9):
        search.find_files("a" + "*" * number)
    with pytest.raises(UsageError, match="steps"):
        search.find_files("a" + "*" * 9)


def test_a_pattern_of_folders_that_are_not_there_takes_steps_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A suite may name millions of them."""
    monkeypatch.setattr(file_pattern, "MOST_STEPS", 20)
    search = FileSearch(tmp_path)
    messages = []
    for number in range(30):
        with pytest.raises(UsageError) as caught:
            search.find_files(f"none/{number}*")
        messages.append(str(caught.value))

    assert "no file fits" in messages[0]
    assert "steps" in messages[-1]
