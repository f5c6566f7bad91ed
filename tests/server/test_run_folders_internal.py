"""Which folder is that of a run, by its name in an address."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("fastapi")

from adjudge.server import run_folders
from adjudge.server.problem import Problem
from adjudge.server.run_folders import find_run_folder
from kit.labels import make_run


@pytest.mark.parametrize("name", ["MONDAY", "monday.", "Monday"])
def test_a_run_has_one_name_where_the_file_system_ignores_case(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """On Windows and macOS another spelling leads to the same folder, and would open its labels a second time."""
    make_run(tmp_path / "monday", 1)
    monkeypatch.setattr(run_folders, "is_run", lambda path: path.name.rstrip(".").lower() == "monday")

    assert find_run_folder(tmp_path, "monday") == tmp_path / "monday"
    with pytest.raises(Problem) as caught:
        find_run_folder(tmp_path, name)
    assert caught.value.status_code == 404
