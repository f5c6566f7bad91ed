"""Published figures about judges come out again, to their last digit, from the rows that were published with them.

The rows are not in the repository. ``ADJUDGE_CASES`` names a folder that holds ``data/*_expected.json`` and the rows.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from kit import house
from kit.environment import find_data
from kit.oracles import need_statistics

PAGE = house.ROOT / "docs" / "reproductions.md"


def load_script() -> ModuleType:
    """The script as a module, without byte code beside it."""
    loader = importlib.machinery.SourceFileLoader("script_reproduce", str(house.ROOT / "research" / "reproduce"))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    module.__file__ = loader.path
    exec(loader.source_to_code(Path(loader.path).read_bytes(), loader.path), vars(module))
    return module


if not (house.ROOT / "research").is_dir():
    pytest.skip("research/ is absent; it is in the repository", allow_module_level=True)

SCRIPT = load_script()


@pytest.fixture(autouse=True)
def statistics(require):
    need_statistics(require)


def reproduce(table: str, cases: Path) -> list:
    """Every figure of a table; skips where its data are absent."""
    name = SCRIPT.FILES.get(table, table)
    return SCRIPT.reproduce(table, SCRIPT.Data(find_data(cases, f"{name}_expected.json").parent))


def read_page() -> dict[str, tuple[str, str]]:
    """What the page says of each table: how many figures are equal, recomputed and published."""
    rows = re.findall(
        r"^\| `(\w+)` \|.*\| ([\d,]+ of [\d,]+) \| ([\d,]+ of [\d,]+)? ?\|$", PAGE.read_text("utf-8"), re.MULTILINE
    )
    return {table: (recomputed, published) for table, recomputed, published in rows}


@pytest.mark.slow_table
@pytest.mark.slow
@pytest.mark.parametrize("table", SCRIPT.TABLES)
def test_a_table_comes_out_again(table, cases):
    """Each recomputed figure is equal to its last digit, and those that were printed and differ are on the page."""
    figures = reproduce(table, cases)
    exact = [one for one in figures if not one.published and not one.is_limit]
    printed = [one for one in figures if one.published]

    assert [(one.where, one.expected, one.computed) for one in figures if not one.is_equal and not one.published] == []
    differing = sum(not one.is_equal for one in printed)
    assert read_page()[table] == (
        f"{len(exact):,} of {len(exact):,}",
        f"{len(printed) - differing:,} of {len(printed):,}" if printed else "",
    )
    for one in printed:
        if not one.is_equal:
            assert f"| {one.expected} | {one.computed} |" in PAGE.read_text("utf-8")


def test_the_page_names_every_table():
    """A table without a row on the page would not be noticed when its figures change."""
    assert tuple(read_page()) == SCRIPT.TABLES


def test_a_figure_that_differs_is_seen(cases):
    """The comparison can fail: a digit that changes, a figure that nobody computes, and a limit too far away."""
    data = SCRIPT.Data(find_data(cases, "xstest_expected.json").parent)
    expected = data.load_expected("xstest")
    expected["rows"][0]["human_human_kappa"] += 0.0001
    expected["rows"][1]["another"] = 0.5
    computed = importlib.import_module("published.xstest").compute(expected, data)
    different = [one.where.rpartition("/")[2] for one in SCRIPT.compare(expected, computed) if not one.is_equal]

    assert different == ["human_human_kappa", "another"]
    limits = list(SCRIPT.compare({"bootstrap95_seed42": [0.5, 0.6]}, {"bootstrap95_seed42": [0.5029, 0.6031]}))
    assert [one.is_equal for one in limits] == [True, False]


def test_scripts_are_found_beside_the_script():
    """The sources' parsers are in research/published, and read nothing when they are imported."""
    assert str(house.ROOT / "research") in sys.path
    for table in SCRIPT.TABLES:
        assert importlib.import_module(f"published.{table}").compute
