"""What is public: the names that a package lists in its ``__init__.pyi``."""

from __future__ import annotations

import ast
import importlib
import re
import sys

import pytest

from kit import house
from kit.public import PACKAGES, read_stub


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
def test_a_package_is_a_table_of_contents(module: str):
    """An ``__init__`` that exports names defines none itself."""
    body = house.parse(house.modules()[module]).body
    defined = [node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]

    assert defined == []
