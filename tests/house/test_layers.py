"""Imports point downward, so that a reader can stop at any layer and still understand it.

import-linter could check the layers; it looks for cycles between packages alone, and those between modules need the
same graph as the layers.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

import pytest

from kit import house
from kit.layers import LAYERS


def name_layer(module: str) -> str:
    """The layer of a module: its own name, or that of the package it belongs to."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else parts[0]


def walk_imports(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Every import, those inside functions and those for a type checker alone included: a reader follows them all."""
    for child in ast.walk(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child


def find_imported(statement: ast.Import | ast.ImportFrom, known: set[str]) -> set[str]:
    """The modules of the package that one statement names."""
    if isinstance(statement, ast.Import):
        return {alias.name for alias in statement.names if alias.name in known}
    base = statement.module or ""
    inner = {f"{base}.{alias.name}" for alias in statement.names} & known
    whole = {base} & known if len(inner) < len(statement.names) else set()
    return inner | whole


def build_graph() -> dict[str, set[str]]:
    """Each module of the package with the modules it imports."""
    known = house.modules()
    graph: dict[str, set[str]] = {}
    for name, path in known.items():
        imported: set[str] = set()
        for statement in walk_imports(house.parse(path)):
            imported |= find_imported(statement, set(known))
        graph[name] = imported - {name}
    return graph


def test_every_module_has_a_layer():
    """A module that no layer names has no place yet; give it one in LAYERS."""
    assert {name for name in house.modules() if name_layer(name) not in LAYERS} == set()


@pytest.mark.no_cover
def test_imports_point_downward():
    """Nothing imports from a layer above its own, not even inside a function."""
    height = {layer: place for place, layer in enumerate(LAYERS)}
    upward = [
        f"{name} imports {imported}"
        for name, modules in build_graph().items()
        for imported in sorted(modules)
        if height.get(name_layer(imported), 0) > height.get(name_layer(name), 0)
    ]

    assert upward == []


def test_imports_have_no_cycle():
    """No module imports itself through others, within a package either."""
    try:
        TopologicalSorter(build_graph()).prepare()
    except CycleError as error:
        raise AssertionError(" imports ".join(reversed(error.args[1]))) from None


def test_every_import_is_seen():
    """The walk above enters functions, and what only a type checker reads."""
    tree = ast.parse(
        "if TYPE_CHECKING:\n import adjudge.cli\nelse:\n import adjudge.dataset\n"
        "def f():\n from adjudge.models import model, Model\n"
    )
    known = {"adjudge.cli", "adjudge.dataset", "adjudge.models", "adjudge.models.model"}
    imported = [find_imported(node, known) for node in walk_imports(tree)]

    assert sorted(map(sorted, imported)) == [
        ["adjudge.cli"],
        ["adjudge.dataset"],
        ["adjudge.models", "adjudge.models.model"],
    ]


def test_no_file_name_begins_with_an_underscore():
    """What is public is what a package lists, so a file needs no mark of its own."""
    marked = [house.where(path) for path in house.package_files() if re.match(r"_(?!_)", path.stem)]

    assert marked == []


def test_no_module_is_named_like_a_name_its_package_exports():
    """``from adjudge.runs import run`` must mean the function, whichever of the two was imported first."""
    stubs = {path.parent: path.read_text("utf-8") for path in house.PACKAGE.rglob("__init__.pyi")}
    clashes = [
        f"{folder.name}.{path.stem}"
        for folder, text in stubs.items()
        for path in folder.iterdir()
        if re.search(rf"\b{re.escape(path.stem)} as {re.escape(path.stem)}\b", text)
    ]

    assert stubs
    assert clashes == []


def test_questions_are_pure():
    """What is asked and how it is read waits for nothing, so it can be replayed: no ``async``, no file, no network."""
    impure = {"asyncio", "aiohttp", "sqlite3", "socket", "subprocess", "threading", "pathlib"}
    places = []
    for path in (house.PACKAGE / "question").glob("*.py"):
        for node in house.nodes(path):
            waits = isinstance(node, ast.AsyncFunctionDef | ast.Await)
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if waits or impure.intersection(names) or (isinstance(node, ast.ImportFrom) and node.module in impure):
                places.append(house.where(path, node))

    assert places == []
