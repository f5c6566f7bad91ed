"""What is public: the names in ``__all__``, no more and no fewer, each with a docstring."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

import house

PACKAGES = (
    "adjudge",
    "adjudge.guards.approval",
    "adjudge.integrations.asgi",
    "adjudge.dataset",
    "adjudge.guards.firewall",
    "adjudge.ledger",
    "adjudge.models",
    "adjudge.guards.probe",
    "adjudge.report",
    "adjudge.rules",
    "adjudge.testing.models",
    "adjudge.tools",
)
PUBLIC = [name for name in PACKAGES if name in house.modules()]


def sort_key(name: str) -> tuple[int, str]:
    """Constants, then classes, then functions: the order ruff sorts ``__all__`` in."""
    constant = name.isupper() and len(name) > 1
    return (0 if constant else 1 if name[:1].isupper() else 2, name)


def assigned(node: ast.stmt) -> list[str]:
    """The names that one statement assigns."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def find_public(path: Path) -> set[str]:
    """The names without underscore that a module defines, and, for a package, those it imports to hand on."""
    found: set[str] = set()
    for node in house.parse(path).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.ImportFrom) and path.name == "__init__.py" and node.module != "__future__":
            found |= {alias.asname or alias.name for alias in node.names if (node.module or "").startswith("adjudge")}
        else:
            found |= set(assigned(node))
    return {name for name in found if not name.startswith("_")}


def public_members(value: type) -> Iterator[tuple[str, object]]:
    """The methods and properties that a class of ours defines itself."""
    for name, member in vars(value).items():
        plain = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if not name.startswith("_") and (inspect.isfunction(plain) or isinstance(plain, property)):
            yield name, plain


def has_docstring(value: object) -> bool:
    """Whether somebody wrote one; the signature that a dataclass writes for itself does not count."""
    text = (getattr(value, "__doc__", None) or "").strip()
    return bool(text) and not text.startswith(f"{getattr(value, '__name__', '')}(")


@pytest.mark.parametrize("module", PUBLIC)
def test_all_is_sorted(module: str):
    """``__all__`` is in one order, so a name is found and a change is one line."""
    names = list(importlib.import_module(module).__all__)

    assert names == sorted(set(names), key=sort_key)


@pytest.mark.parametrize("module", PUBLIC)
def test_all_is_what_is_public(module: str):
    """A name without an underscore is in ``__all__``, and a name in ``__all__`` exists."""
    loaded = importlib.import_module(module)
    lazy = set(loaded.__all__) if "__getattr__" in vars(loaded) else {"__version__"}

    assert [name for name in loaded.__all__ if not hasattr(loaded, name)] == []
    assert find_public(house.modules()[module]) ^ set(loaded.__all__) <= lazy


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_has_a_docstring(module: str):
    """Each public function and class, and each public method of such a class, promises something in words."""
    loaded = importlib.import_module(module)
    silent = []
    for name in loaded.__all__:
        value = getattr(loaded, name)
        if not (inspect.isclass(value) or inspect.isroutine(value)):
            continue
        silent += [] if has_docstring(value) else [name]
        members = public_members(value) if inspect.isclass(value) else ()
        silent += [f"{name}.{inner}" for inner, member in members if not has_docstring(member)]

    assert silent == []


@pytest.mark.skipif("adjudge" not in house.modules(), reason="the package has no table of contents yet")
def test_the_package_is_a_table_of_contents():
    """``adjudge/__init__.py`` imports names and defines none, but for a module ``__getattr__``."""
    body = house.parse(house.modules()["adjudge"]).body
    defined = [node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]

    assert set(defined) <= {"__getattr__", "__dir__"}
