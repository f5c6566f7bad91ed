"""The house's rules, as far as a machine can hold them."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator

import pytest

import house
from house import ROOT

LONGEST_FUNCTION = 50
DEEPEST = 4

NESTING = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match)
GENERIC = {"dict", "list", "tuple", "set", "frozenset", "type", "Mapping", "Sequence", "Iterable", "Callable"}


def count_lines(function: house.FunctionNode) -> int:
    """Lines of the body without the docstring; a signature may take as many as it has parameters."""
    documented = ast.get_docstring(function, clean=False) is not None
    body = function.body[documented:]
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def is_elif(parent: ast.AST, child: ast.AST) -> bool:
    """Whether a child ``if`` is its parent's ``elif`` and so stands no deeper."""
    return isinstance(parent, ast.If) and isinstance(child, ast.If) and parent.orelse == [child]


def measure_depth(node: ast.AST) -> int:
    """The deepest nesting of blocks in a function; one inside another counts for itself."""
    deepest = 0
    for child in ast.iter_child_nodes(node):
        if isinstance(child, house.FunctionNode | ast.ClassDef | ast.Lambda):
            continue
        own = isinstance(child, NESTING) and not is_elif(node, child)
        deepest = max(deepest, own + measure_depth(child))
    return deepest


def package_functions() -> Iterator[tuple[str, house.FunctionNode]]:
    """Every function of the package with its place."""
    for path in house.package_files():
        for function in house.functions(house.parse(path)):
            yield f"{house.where(path, function)} {function.name}", function


def find_calls(names: set[str]) -> list[str]:
    """Places in the package where one of these dotted names is called."""
    return [
        f"{house.where(path, node)} {ast.unparse(node.func)}"
        for path in house.package_files()
        for node in ast.walk(house.parse(path))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in names
    ]


@pytest.mark.no_cover
def test_no_function_passes_50_lines():
    """A function's body, docstring aside, has at most 50 lines."""
    assert [place for place, function in package_functions() if count_lines(function) > LONGEST_FUNCTION] == []


@pytest.mark.no_cover
def test_nothing_nests_deeper_than_4():
    """Blocks stand at most four deep in a function."""
    assert [place for place, function in package_functions() if measure_depth(function) > DEEPEST] == []


def test_depth_counts_blocks_and_not_elifs():
    """The measure above sees a block in a block, and takes an elif for the if it continues."""
    deep = ast.parse("def f():\n for x in y:\n  if x:\n   pass\n  elif y:\n   pass\n  elif z:\n   while x:\n    pass")

    assert measure_depth(house.functions(deep)[0]) == 3


def test_no_drawer_for_everything():
    """There is no module called utils, helpers, common or misc: what is in it has a noun of its own."""
    drawers = {"utils", "util", "helpers", "common", "misc"}

    assert [house.where(path) for path in house.package_files() if path.stem.strip("_") in drawers] == []


def test_async_functions_have_no_prefix():
    """Asynchronous is the normal case, so nothing is called ``a_something``."""
    assert [place for place, function in package_functions() if function.name.startswith(("a_", "_a_"))] == []


def test_no_bare_except():
    """``except:`` and a swallowed ``BaseException`` catch cancellation too, so every handler names what it catches."""
    bare = []
    for path in house.package_files():
        for node in ast.walk(house.parse(path)):
            if not isinstance(node, ast.ExceptHandler):
                continue
            everything = node.type is None or "BaseException" in ast.unparse(node.type)
            if everything and not any(isinstance(inner, ast.Raise) for inner in ast.walk(node)):
                bare.append(house.where(path, node))

    assert bare == []


def test_only_the_command_line_prints():
    """A library that prints writes into somebody else's output."""
    command_line = house.where(house.modules()["adjudge.cli"]).partition("__init__")[0]

    assert [place for place in find_calls({"print", "rich.print"}) if not place.startswith(command_line)] == []


def test_nothing_is_gathered():
    """``asyncio.gather`` leaves the others running when one fails; a task group does not."""
    assert find_calls({"asyncio.gather", "gather"}) == []


def test_a_bare_task_says_who_waits_for_it():
    """A task outside a task group is started under a comment that says who cancels it and waits for it."""
    starters = {"asyncio.ensure_future", "asyncio.create_task", "ensure_future", "create_task"}
    started = [place.split(" ")[0].split(":") for place in find_calls(starters)]
    lines = {name: (house.ROOT / name).read_text("utf-8").splitlines() for name, _ in started}

    assert started
    assert [f"{name}:{at}" for name, at in started if "# A bare task: " not in lines[name][int(at) - 2]] == []


def test_the_loop_is_never_patched():
    """nest_asyncio changes every other library's event loop, so it is named nowhere in the package."""
    assert [house.where(path) for path in house.package_files() if "nest_" + "asyncio" in path.read_text("utf-8")] == []


def test_annotations_say_what_containers_hold():
    """``list`` and ``dict`` in an annotation say of what; the type checker takes a bare one for ``Any``."""
    bare = []
    for path in house.package_files():
        for function in house.functions(house.parse(path)):
            every = [*function.args.args, *function.args.kwonlyargs, *function.args.posonlyargs]
            annotations = [item.annotation for item in every] + [function.returns]
            bare += [f"{house.where(path, item)} {item.id}" for item in find_bare(annotations)]

    assert bare == []


def find_bare(annotations: list[ast.expr | None]) -> Iterator[ast.Name]:
    """Generic names in annotations that no subscript follows."""
    for annotation in filter(None, annotations):
        nodes = list(ast.walk(annotation))
        subscripted = {id(node.value) for node in nodes if isinstance(node, ast.Subscript)}
        for node in nodes:
            if isinstance(node, ast.Name) and node.id in GENERIC and id(node) not in subscripted:
                yield node


@pytest.mark.no_cover
def test_every_test_says_what_it_specifies():
    """A test begins with a sentence on the behaviour it holds; read in order, these are the specification."""
    silent = [
        house.where(path, function)
        for path in (house.ROOT / "tests").rglob("test_*.py")
        for function in house.functions(house.parse(path))
        if function.name.startswith("test_") and not ast.get_docstring(function)
    ]

    assert silent == []


@pytest.mark.integration
def test_the_repository_speaks_of_the_product_alone():
    """No file names a place outside the repository; only the entry to CI may look beside it."""
    outside = re.compile("|".join(map(re.escape, (".." + "/shared", "/" + "work/", "/" + "root/"))))
    found = []
    for path in house.repository_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        name = str(path.relative_to(house.ROOT))
        beside = {".." + "/shared"} if name == ".ci/run" else set()
        found += [f"{name}: {hit}" for hit in set(outside.findall(text)) - beside]

    assert found == []


def test_every_dependency_is_accounted_for():
    """docs/dependencies.md has one row for each thing an installation brings because we asked for it."""
    project = tomllib.loads((house.ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    asked = {re.split(r"[<>=\[]", item)[0] for item in project["dependencies"]}
    page = (house.ROOT / "docs" / "dependencies.md").read_text("utf-8")

    assert set(re.findall(r"^\| `([^`]+)` ", page, re.MULTILINE)) == asked


@pytest.mark.integration
def test_a_file_that_skips_itself_fails_where_skips_are_failures(tmp_path):
    """As a test does that lacks what could be installed; elsewhere both are skipped."""
    (tmp_path / "conftest.py").write_text((ROOT / "tests/conftest.py").read_text("utf-8"), "utf-8")
    (tmp_path / "test_file.py").write_text("import pytest\npytest.importorskip('absent_package')\n", "utf-8")
    test = "def test_one(require):\n    require('a thing', None, 'install it')\n"
    (tmp_path / "test_one.py").write_text(test, "utf-8")

    command = [sys.executable, "-m", "pytest", "-q", "--continue-on-collection-errors", str(tmp_path)]
    environment = dict(os.environ) | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}

    def count(ci: str) -> str:
        more = environment | {"ADJUDGE_CI": ci}
        done = subprocess.run(command, cwd=tmp_path, env=more, capture_output=True, text=True, check=False)
        return done.stdout.splitlines()[-1]

    assert count("0").startswith("2 skipped")
    assert count("1").startswith("1 failed, 1 error")
