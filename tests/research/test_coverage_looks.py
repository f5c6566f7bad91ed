"""A gate passes a bar that is not met in at most .05 of sequences of 24 looks: part of the simulation, once more."""

from __future__ import annotations

import re
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from types import ModuleType

import pytest

pytest.importorskip("scipy", reason="needs numpy and scipy: pip install 'adjudge[trust]'")

from scipy.stats import binom

from kit import house

SCRIPT = house.ROOT / "research" / "coverage_looks"

if not SCRIPT.is_file():
    pytest.skip("research/ is absent; it is in the repository", allow_module_level=True)

SEQUENCES = 60


def load_script(patch: pytest.MonkeyPatch) -> ModuleType:
    patch.syspath_prepend(str(SCRIPT.parent))
    loader = SourceFileLoader("script_coverage_looks", str(SCRIPT))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = sys.modules[loader.name] = module_from_spec(spec)
    loader.exec_module(module)
    return module


def read_table() -> dict[str, tuple[int, float, float]]:
    """The recorded rows: the sequences, and the shares that the gate and the ordinary limits passed."""
    page = (house.ROOT / "docs" / "plan-measured.md").read_text("utf-8")
    part = page.partition("<!-- begin: written by research/coverage_looks -->")[2].partition("<!-- end")[0]
    rows = re.findall(r"^\| ([a-z ,]+) \| ([\d,]+) \| ([\d.]+) \| ([\d.]+) \|$", part, re.MULTILINE)
    return {way: (int(number.replace(",", "")), float(gate), float(ordinary)) for way, number, gate, ordinary in rows}


@pytest.mark.slow
def test_a_part_of_the_simulation_comes_out_as_the_page_says(monkeypatch: pytest.MonkeyPatch):
    """The recorded shares keep the promise, the ordinary limits do not, and the same draws give such shares again."""
    script, table = load_script(monkeypatch), read_table()

    assert table.keys() == script.WAYS.keys()
    for way, (number, gate, ordinary) in table.items():
        assert number >= 2_000
        assert gate <= 0.05 < ordinary
        passed, once = script.measure(way, SEQUENCES, 20261130)
        for found, share in ((passed, gate), (once, ordinary)):
            assert binom.ppf(0.0005, SEQUENCES, share) <= found <= binom.ppf(0.9995, SEQUENCES, share)


@pytest.mark.slow
def test_the_simulation_fails_where_the_gate_goes_by_the_ordinary_limits(monkeypatch: pytest.MonkeyPatch):
    """The exit status is 1 as soon as a bar that is not met is passed too often."""
    script = load_script(monkeypatch)
    monkeypatch.setattr(sys, "argv", ["coverage_looks", "--draws", str(SEQUENCES)])
    monkeypatch.setattr(
        script.Labels,
        "pass_always",
        lambda labels, at, level=0.95: bool((labels.find_lower(at) >= labels.run.bar).any()),
    )

    assert script.main() == 1
