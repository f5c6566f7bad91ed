"""What is public: the names that a package lists in its ``__init__.pyi``, each with a docstring."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
from collections.abc import Iterator

import pytest

import house
from public_support import PACKAGES, read_stub


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


@pytest.mark.parametrize("module", PACKAGES)
def test_a_package_offers_what_its_stub_lists(module: str):
    """What type checkers are told and what a program gets are one list, and ``import *`` gets it too."""
    loaded, listed = importlib.import_module(module), read_stub(module)

    assert list(loaded.__all__) == sorted(listed) == [name for name in dir(loaded) if not name.startswith("__")]
    assert [name for name in listed if getattr(loaded, name) is not getattr(sys.modules[listed[name]], name)] == []


@pytest.mark.parametrize("module", PACKAGES)
def test_a_stub_says_as_what_it_exports(module: str):
    """``import name as name`` is how a stub hands a name on; without it a type checker takes the name for private."""
    silent = [
        alias.name
        for node in house.parse(house.modules()[module].with_suffix(".pyi")).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname != alias.name
    ]

    assert silent == []


@pytest.mark.parametrize("module", PACKAGES)
def test_what_a_package_lacks_is_an_attribute_error(module: str):
    """It names the package and what was looked for, as any module does."""
    with pytest.raises(AttributeError, match=rf"{re.escape(module)}.*'nothing_of_this_name'"):
        importlib.import_module(module).nothing_of_this_name  # noqa: B018


@pytest.mark.parametrize("module", PACKAGES)
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


@pytest.mark.parametrize("module", PACKAGES)
def test_a_package_is_a_table_of_contents(module: str):
    """An ``__init__`` that exports names defines none itself."""
    body = house.parse(house.modules()[module]).body
    defined = [node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]

    assert defined == []
