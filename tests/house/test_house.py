"""The house's rules that neither the linter nor the type checker can hold."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from kit import house
from kit.house import TESTS

LONGEST_FUNCTION = 50

GENERIC = {"dict", "list", "tuple", "set", "frozenset", "type", "Mapping", "Sequence", "Iterable", "Callable"}

QUESTION = re.compile(r"(``[^`]*``:)?[^\w`]*(what|whether|who|whom|whose|which|how|why|where|when)\b", re.IGNORECASE)
"""The beginning of a text that asks, also after a name in code and a colon."""

STATED = tuple(
    path for path in house.python_files() if not path.is_relative_to(TESTS) or path.is_relative_to(TESTS / "kit")
)
"""The files whose docstrings begin with a verb or a noun; that of a test is a sentence, which may begin otherwise."""


def count_lines(function: house.FunctionNode) -> int:
    """Lines of the body without the docstring; a signature may take as many as it has parameters."""
    documented = ast.get_docstring(function, clean=False) is not None
    body = function.body[documented:]
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def package_functions() -> Iterator[tuple[str, house.FunctionNode]]:
    """Every function of the package with its place."""
    for path in house.package_files():
        for function in house.functions(house.nodes(path)):
            yield f"{house.where(path, function)} {function.name}", function


def find_calls(names: set[str]) -> list[str]:
    """Places in the package where one of these dotted names is called."""
    return [
        f"{house.where(path, node)} {ast.unparse(node.func)}"
        for path in house.package_files()
        for node in house.nodes(path)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in names
    ]


@pytest.mark.no_cover
def test_no_function_passes_50_lines():
    """A function's body, docstring aside, has at most 50 lines."""
    assert [place for place, function in package_functions() if count_lines(function) > LONGEST_FUNCTION] == []


def test_no_drawer_for_everything():
    """There is no module called utils, helpers, common or misc: what is in it has a noun of its own."""
    drawers = {"utils", "util", "helpers", "common", "misc"}

    assert [house.where(path) for path in house.package_files() if path.stem.strip("_") in drawers] == []


def test_async_functions_have_no_prefix():
    """Asynchronous is the normal case, so nothing is called ``a_something``."""
    assert [place for place, function in package_functions() if function.name.startswith(("a_", "_a_"))] == []


def test_a_bare_task_says_who_waits_for_it():
    """A task outside a task group is started under a comment that says who cancels it and waits for it."""
    starters = {"asyncio.ensure_future", "asyncio.create_task", "ensure_future", "create_task"}
    started = [place.split(" ")[0].split(":") for place in find_calls(starters)]
    lines = {name: (house.ROOT / name).read_text("utf-8").splitlines() for name, _ in started}

    assert started
    assert [f"{name}:{at}" for name, at in started if "# A bare task: " not in lines[name][int(at) - 2]] == []


def test_annotations_say_what_containers_hold():
    """``list`` and ``dict`` in an annotation say of what; the type checker takes a bare one for ``Any``."""
    bare = []
    for path in house.package_files():
        for function in house.functions(house.nodes(path)):
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


def test_tests_stand_where_the_code_stands():
    """A folder of tests is a package of ours, or one of the few that are about something else."""
    # A folder "agents" would hide the package of that name, which the OpenAI Agents SDK brings.
    others = {"agent_runs", "conformance", "docs", "house", "research", "scripts", "upgrade"}
    folders = {path.parent.relative_to(TESTS) for path in TESTS.rglob("test_*.py")}

    assert Path("cli/commands") in folders
    assert [str(name) for name in folders if str(name) not in others and not (house.PACKAGE / name).is_dir()] == []


def test_what_tests_share_is_in_the_kit():
    """Beside tests there are only fixtures, what is type-checked, and what has to run in a process of its own."""
    beside = [path.relative_to(TESTS) for path in TESTS.rglob("*.py") if not path.name.startswith("test_")]
    shared = [path for path in beside if path.name != "conftest.py" and path.parent.name != "own_process"]

    assert {path.parts[0] for path in shared} == {"kit", "typing"}


def test_a_test_that_reads_a_clock_is_marked():
    """``timed`` or ``integration`` names every test that lets real time pass or measures it."""
    unmarked = [
        f"{house.where(path, function)} {function.name}"
        for path in TESTS.rglob("test_*.py")
        if not is_timed(find_markers(module := ast.parse(path.read_text("utf-8"))))
        for function in find_timing(module)
    ]

    assert unmarked == []


VIRTUAL = "from kit.loops import run_virtual\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("def test_a():\n    time.sleep(1)", ["test_a"]),
        ("@pytest.mark.slow\ndef test_a():\n    def wait():\n        sleep(1)", ["test_a"]),
        ("def wait():\n    time.sleep(1)", ["wait"]),
        ("@pytest.mark.timed\ndef test_a():\n    time.sleep(1)", []),
        ("@pytest.mark.integration\n@pytest.mark.slow\ndef test_a():\n    time.sleep(1)", []),
        ("async def test_a():\n    run('time.sleep(1)')", []),
        ("async def test_a():\n    await asyncio.sleep(1)", ["test_a"]),
        ("async def test_a():\n    await asyncio.sleep(delay)", ["test_a"]),
        ("async def test_a():\n    await asyncio.sleep(0)", []),
        ("async def test_a():\n    async with asyncio.timeout(0.2):\n        pass", ["test_a"]),
        ("async def test_a():\n    async with asyncio.timeout(HANG):\n        pass", []),
        (f"{VIRTUAL}async def test_a():\n    await asyncio.sleep(1)", []),
        (f"{VIRTUAL}async def test_a():\n    time.sleep(1)", ["test_a"]),
        *(
            (f"def test_a():\n    started = {clock}()", ["test_a"])
            for clock in ("time.monotonic", "time.perf_counter", "time.process_time", "time.time", "time.monotonic_ns")
        ),
        ("def test_a():\n    started = perf_counter()", ["test_a"]),
        ("def test_a():\n    assert event.time() == clock.monotonic()", []),
    ],
)
def test_a_clock_without_a_marker_is_found(text: str, found: list[str]):
    """Also one in what a test calls; where time passes without anybody waiting, a sleep is none."""
    assert [function.name for function in find_timing(ast.parse(text))] == found


CLOCK = re.compile(r"(time\.)?(sleep|(monotonic|perf_counter|process_time|thread_time)(_ns)?)|time\.time(_ns)?")


def find_timing(module: ast.Module) -> Iterator[house.FunctionNode]:
    """Functions of a module that sleep or read a clock, and do not say so."""
    is_virtual = any(isinstance(node, ast.ImportFrom) and node.module == "kit.loops" for node in module.body)
    for function in module.body:
        if isinstance(function, house.FunctionNode) and not is_timed(function.decorator_list):
            calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
            if any(CLOCK.fullmatch(ast.unparse(call.func)) or (not is_virtual and is_wait(call)) for call in calls):
                yield function


def is_wait(call: ast.Call) -> bool:
    """True if a call waits for a time by the event loop's clock; ``HANG`` is none, which only ends what hangs."""
    name, time = ast.unparse(call.func), ast.unparse(call.args[0]) if call.args else ""
    return name in {"asyncio.sleep", "asyncio.timeout"} and time not in {"0", "None", "HANG"}


def find_markers(module: ast.Module) -> list[ast.expr]:
    """The markers of all tests of a module."""
    assigned = [node for node in module.body if isinstance(node, ast.Assign)]
    return [node.value for node in assigned if ast.unparse(node.targets[0]) == "pytestmark"]


def is_timed(markers: Iterable[ast.expr]) -> bool:
    return bool(re.search(r"pytest\.mark\.(timed|integration)\b", " ".join(map(ast.unparse, markers))))


def find_questions(nodes: Iterable[ast.AST]) -> list[ast.Constant]:
    """Find the docstrings, those of attributes too, that begin as a question does."""
    values = [node.value for node in nodes if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)]
    return [value for value in values if isinstance(value.value, str) and QUESTION.match(value.value)]


@pytest.mark.no_cover
def test_docstrings_begin_with_a_verb_or_a_noun():
    """A function's says "Return", "Find" or "Write", and a value's names what the value is; neither asks."""
    asking = [house.where(path, node) for path in STATED for node in find_questions(house.nodes(path))]

    assert STATED
    assert asking == []


POINTER = re.compile(r"``([\w/]+\.py)``(?:\s+\(``([\w.]+)``\))?")
"""A file that a docstring names, and what it says is defined there."""

CITING = {"dataset/importers/inspect_scores.py", "dataset/importers/openai_logs.py"}
"""The modules that name files of other projects, which they read the output of."""


def find_broken_pointers(path: Path, text: str) -> list[str]:
    """Find the pointers of a module's docstring to a file that is absent, or does not have the name."""
    broken = []
    for file, name in POINTER.findall(text):
        folders = (path.parent, path.parent.parent, house.PACKAGE, house.ROOT)
        target = next((folder / file for folder in folders if (folder / file).is_file()), None)
        defined = re.compile(rf"(def|class) {re.escape(name.rpartition('.')[2])}\b|^{re.escape(name)}\b", re.MULTILINE)
        if target is None or (name and not defined.search(target.read_text("utf-8"))):
            broken.append(f"{house.where(path)} {file} {name}".rstrip())
    return broken


@pytest.mark.no_cover
def test_modules_point_to_files_that_exist():
    """A module says which file decides what it does not, and that file has what it says."""
    docstrings = {path: ast.get_docstring(house.parse(path)) or "" for path in house.package_files()}
    cited = [path for path in docstrings if path.relative_to(house.PACKAGE).as_posix() not in CITING]
    assert sum(bool(POINTER.search(text)) for text in docstrings.values()) > 100
    assert [broken for path in cited for broken in find_broken_pointers(path, docstrings[path])] == []


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("``gate.py`` (``Gate``)", []),
        ("``guards/gate.py``", []),
        ("``gat.py`` (``Gate``)", ["gat.py Gate"]),
        ("``gate.py``\n(``Gates.nothing``)", ["gate.py Gates.nothing"]),
    ],
)
def test_a_pointer_that_leads_nowhere_is_found(text: str, broken: list[str]):
    """As after a file was renamed."""
    path = house.PACKAGE / "guards" / "audit.py"

    assert find_broken_pointers(path, text) == [f"{house.where(path)} {end}" for end in broken]


QUESTIONS = """'Whether.'
class A:
    'An A.'
    b = 1
    '``/``: how it ends.'
    c: int
    '``when`` as it was given.'
    def d(self):
        'Why not.'
"""


def test_the_search_for_questions_sees_attributes_too():
    """And modules, classes and functions; a name in code is no word."""
    assert [node.lineno for node in find_questions(ast.walk(ast.parse(QUESTIONS)))] == [1, 5, 9]


@pytest.mark.no_cover
def test_every_test_says_what_it_specifies():
    """A test begins with a sentence on the behaviour it holds; read in order, these are the specification."""
    silent = [
        house.where(path, function)
        for path in TESTS.rglob("test_*.py")
        for function in house.functions(house.nodes(path))
        if function.name.startswith("test_") and not ast.get_docstring(function)
    ]

    assert silent == []


@pytest.mark.integration
def test_the_repository_speaks_of_the_product_alone():
    """No file names a place outside the repository; only the entry to CI may look beside it."""
    outside = re.compile("|".join(map(re.escape, (".." + "/shared", "/" + "work/", "/" + "root/"))))
    hits = []
    for path in house.repository_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        name = str(path.relative_to(house.ROOT))
        beside = {".." + "/shared"} if name == ".ci/run" else set()
        hits += [f"{name}: {hit}" for hit in set(outside.findall(text)) - beside]

    assert hits == []


def test_every_dependency_is_accounted_for():
    """docs/dependencies.md has one row for each thing an installation brings because we asked for it."""
    project = tomllib.loads((house.ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    asked = {re.split(r"[<>=\[]", item)[0] for item in project["dependencies"]}
    page = (house.ROOT / "docs" / "dependencies.md").read_text("utf-8")

    assert set(re.findall(r"^\| `([^`]+)` ", page, re.MULTILINE)) == asked


ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "", "PYTHONPATH": str(TESTS)}
"""The environment of tests in another folder, with our conftest.py."""


@pytest.mark.integration
def test_a_file_that_skips_itself_fails_where_skips_are_failures(tmp_path):
    """As a test does that lacks what could be installed; elsewhere both are skipped."""
    (tmp_path / "conftest.py").write_text((TESTS / "conftest.py").read_text("utf-8"), "utf-8")
    (tmp_path / "test_file.py").write_text("import pytest\npytest.importorskip('absent_package')\n", "utf-8")
    test = "def test_one(require):\n    require('a thing', None, 'install it')\n"
    (tmp_path / "test_one.py").write_text(test, "utf-8")

    command = [sys.executable, "-m", "pytest", "-q", "--continue-on-collection-errors", str(tmp_path)]
    environment = dict(os.environ) | ALONE

    def count(ci: str) -> str:
        more = environment | {"ADJUDGE_CI": ci}
        done = subprocess.run(command, cwd=tmp_path, env=more, capture_output=True, text=True, check=False)
        return done.stdout.splitlines()[-1]

    assert count("0").startswith("2 skipped")
    assert count("1").startswith("1 failed, 1 error")


RINGS = """
from pathlib import Path
import pytest
from hypothesis import given, settings, strategies as st

@pytest.mark.integration
def test_of_a_process(): pass

@pytest.mark.slow
def test_that_takes_long(): pass

@given(st.integers())
@settings(max_examples=60, database=None)
def test_of_a_property(number):
    with Path(__file__).with_name("tried").open("a") as tried:
        tried.write("x")
"""


@pytest.mark.integration
def test_the_first_ring_leaves_out_what_is_slow_or_needs_a_process(tmp_path):
    """And tries 25 examples of a property, whatever it asks for; without the option everything runs in full."""
    (tmp_path / "conftest.py").write_text((TESTS / "conftest.py").read_text("utf-8"), "utf-8")
    (tmp_path / "test_file.py").write_text(RINGS, "utf-8")
    environment = dict(os.environ) | ALONE

    def count(*options: str) -> tuple[str, int]:
        (tmp_path / "tried").unlink(missing_ok=True)
        command = [sys.executable, "-m", "pytest", "-q", *options, str(tmp_path)]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        return done.stdout.splitlines()[-1].partition(" in ")[0], len((tmp_path / "tried").read_text("utf-8"))

    assert count("--first-ring") == ("1 passed, 2 deselected", 25)
    assert count() == ("3 passed", 60)
