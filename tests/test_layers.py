"""Imports point downward, so that a reader can stop at any layer and still understand it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

import house

LAYERS = (
    "errors",
    "_depth",
    "_ignorable",
    "_unseen",
    "_tasks",
    "_sync",
    "_model_names",
    "_display",
    "_plain",
    "result",
    "_pair",
    "content",
    "_unchanged",
    "rules",
    "_yaml",
    "dataset",  # cases and where they come from; nothing of judges
    "_toml",
    "_sources",
    "rules_file",
    "rubric",
    "rubric_file",
    "rubric_lint",
    "models",  # knows requests and replies; neither rubrics nor questions
    "question",
    "_readers",
    "reply",
    "score",
    "_logprobs",
    "_reading",
    "_value",
    "ledger",  # knows results; nothing of judges
    "_async",
    "_foreign",
    "_asking",
    "_pairing",
    "_evaluate",
    "_judge",
    "_strategies",
    "_chain_options",
    "chain",
    "_rewire",
    "_short",
    "_guard",
    "firewall",
    "probe",
    "tools",
    "_decision",
    "_request",
    "approval",
    "audit",
    "_checking",
    "_guarding",
    "gate",
    "_improve",
    "_streams",
    "_bodies",
    "asgi",
    "_price",
    "_wire",
    "_compare",
    "_pair_summary",
    "_run",
    "report",
    "adjudge",  # the table of contents
    "_suite",
    "testing",
    "demo",
    "cli",
    "pytest_plugin",
    "__main__",
)
"""Lowest first. A module imports from lower layers and from its own package; a new module is added here to be seen."""


def name_layer(module: str) -> str:
    """The layer of a module: its own name, or that of the package it belongs to."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else parts[0]


def walk_imports(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Every import that can run, those inside functions included; ``if TYPE_CHECKING:`` never runs."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield node
    run = node.orelse if isinstance(node, ast.If) and house.is_type_checking(node) else ast.iter_child_nodes(node)
    for child in run:
        yield from walk_imports(child)


def find_imported(statement: ast.Import | ast.ImportFrom, known: set[str]) -> set[str]:
    """The modules of the package that one statement names."""
    if isinstance(statement, ast.Import):
        return {alias.name for alias in statement.names if alias.name in known}
    base = statement.module or ""
    inner = {f"{base}.{alias.name}" for alias in statement.names} & known
    whole = {base} & known if len(inner) < len(statement.names) else set()
    return inner | whole


def build_graph() -> dict[str, set[str]]:
    """Each module of the package with the modules it imports, and the packages those stand in."""
    known = house.modules()
    graph: dict[str, set[str]] = {}
    for name, path in known.items():
        imported: set[str] = set()
        for statement in walk_imports(house.parse(path)):
            imported |= find_imported(statement, set(known))
        # Importing adjudge.rules._types runs adjudge/rules/__init__.py first, so that is imported as well.
        parents = {module.rpartition(".")[0] for module in imported}
        outer = {parent for parent in parents if "." in parent and not name.startswith(parent)}
        graph[name] = (imported | outer) - {name}
    return graph


def test_every_module_has_a_layer():
    """A module that no layer names has no place yet; give it one in LAYERS."""
    assert {name for name in house.modules() if name_layer(name) not in LAYERS} == set()


def test_imports_point_downward():
    """Nothing imports from a layer above its own, not even inside a function."""
    height = {layer: place for place, layer in enumerate(LAYERS)}
    upward = [
        f"{name} imports {imported}"
        for name, found in build_graph().items()
        for imported in sorted(found)
        if height.get(name_layer(imported), 0) > height.get(name_layer(name), 0)
    ]

    assert upward == []


def test_imports_have_no_cycle():
    """No module imports itself through others, within a package either."""
    try:
        TopologicalSorter(build_graph()).prepare()
    except CycleError as error:
        raise AssertionError(" imports ".join(reversed(error.args[1]))) from None


def test_imports_inside_functions_are_seen():
    """The walk above enters functions and leaves out what only a type checker reads."""
    tree = ast.parse(
        "if TYPE_CHECKING:\n import adjudge.cli\nelse:\n import adjudge.dataset\n"
        "def f():\n from adjudge.models import _types, Model\n"
    )
    known = {"adjudge.cli", "adjudge.dataset", "adjudge.models", "adjudge.models.model"}
    found = [find_imported(node, known) for node in walk_imports(tree)]

    assert found == [{"adjudge.dataset"}, {"adjudge.models", "adjudge.models.model"}]


def test_the_package_imports_itself_absolutely():
    """A relative import hides which layer it reaches."""
    relative = [
        house.where(path, node)
        for path in house.package_files()
        for node in ast.walk(house.parse(path))
        if isinstance(node, ast.ImportFrom) and node.level
    ]

    assert relative == []
