"""What scripts/audit refuses: secrets in the history, licences in the base install, and what nobody looked up."""

from __future__ import annotations

import re
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec, module_from_spec, spec_from_loader
from types import ModuleType
from typing import Any

import pytest

from kit.environment import require
from kit.house import ROOT

pytest.importorskip("packaging")


def load(name: str) -> ModuleType:
    loader = SourceFileLoader(f"adjudge_{name}", str(ROOT / "scripts" / name))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_a_secret_is_found_in_any_version_of_a_file_and_not_shown():
    """By its kind and a digest."""
    key = "sk-" + "a1" * 20
    found = load("audit").find_secrets(iter([("notes.md", b"nothing"), ("a.py", f"KEY = '{key}'".encode())]))

    assert list(found.values()) == [{"a.py"}]
    assert next(iter(found)).startswith("API key ")
    assert key not in str(found)


def test_the_base_install_brings_no_gpl_and_nothing_without_a_licence():
    """An application that installs adjudge is bound to nothing by it."""
    require("mcp", find_spec("mcp"), "./scripts/setup --all")
    assert load("dependencies").list_licence_problems() == []


def test_the_page_lists_the_licence_of_everything_in_the_base_install():
    """Written anew with scripts/dependencies --licences."""
    require("mcp", find_spec("mcp"), "./scripts/setup --all")
    section = (ROOT / "docs" / "dependencies.md").read_text("utf-8").partition("## Licences")[2]
    listed = {
        name
        for row in section.splitlines()
        if row.startswith("| base")
        for name in row.split("|")[3].strip().split(", ")
    } | set(re.findall(r"also brings `([\w-]+)`", section))

    assert load("dependencies").list_brought()["base install"].keys() <= listed


@pytest.mark.parametrize(
    ("answers", "status"),
    [
        ([{"name": "One", "version": "1", "vulns": []}], 0),
        ([{"name": "one", "version": "1", "vulns": [{"id": "CVE-1", "aliases": [], "fix_versions": ["2"]}]}], 1),
        ([{"name": "one", "skip_reason": "not found"}], 3),
        ([], 3),
    ],
    ids=["none", "one", "skipped", "no answer"],
)
def test_a_package_that_was_not_looked_up_is_not_taken_for_a_good_one(
    answers: list[dict[str, Any]], status: int, monkeypatch: pytest.MonkeyPatch
):
    """pip-audit itself says that it found none of those that it skipped."""
    audit = load("audit")
    monkeypatch.setattr(audit, "list_pinned", lambda: {"one": "1"})
    monkeypatch.setattr(audit, "ask_service", lambda *_: (answers, None if answers else "no network"))

    assert audit.audit_vulnerabilities() == status
