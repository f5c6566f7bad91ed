"""Tests speak through public addresses; what must look at private parts says so in its name: test_*_internal.py."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from kit import house
from kit.house import TESTS
from kit.public import PACKAGES, read_stub

INTERNAL = "_internal.py"
"""How the names of test files end that look at private parts."""

NEEDED: Mapping[str, frozenset[str]] = {
    # Hypothesis has no public way to give a property fewer examples than it asks for.
    "conftest.py": frozenset({"function._hypothesis_internal_use_settings"}),
    # Time that is not real must wait for threads, which are.
    "kit/loops.py": frozenset({"adjudge.threads.IDLE"}),
    # No server of this machine is looked for, and none is waited for.
    "kit/cli.py": frozenset({"adjudge.config.judges", "adjudge.models.providers.http.back_off"}),
    # The command lines of the pages are parsed as the program parses them, without running it.
    "kit/command_lines.py": frozenset({"adjudge.cli.app.app", "context._protected_args"}),
    # Pauses between two deliveries pass at once.
    "kit/webhooks.py": frozenset({"approvals._delivery_queue", "approvals._delivery_queue._sleep"}),
    # A process that is killed between writing a tier and its commit: nothing public stands in between.
    "kit/registries.py": frozenset({"adjudge.tools.store"}),
    # Folders of runs with results that no judge gives, such as a hostile one.
    "kit/reports.py": frozenset(
        {"adjudge.runs.folder.make_manifest", "adjudge.runs.folder.write_manifest", "adjudge.runs.store.RunStore"}
    ),
    # Whoever views runs is let in once by each process, and every test needs somebody who was not yet.
    "kit/viewing.py": frozenset(
        {"adjudge.config.server.ServerSettings", "adjudge.server.listening.listen"}
        | {"adjudge.server.run_library.RunLibrary"}
        | {
            f"adjudge.server.view_command.{name}"
            for name in ("OPEN", "find_runs_below", "find_named_runs", "make_view_app")
        }
    ),
    # Accounts are many, and a password is hashed so that guessing it is dear: server/pages/test_signin.py holds how.
    "kit/server.py": frozenset({"adjudge.server.accounts._make_hasher"}),
    # The real coding agents are asked what to do by the model that `adjudge hook doctor` uses.
    "kit/coding_agents.py": frozenset(
        {"adjudge.harness.events.Harness"}
        | {
            f"adjudge.harness.scripted_model.{name}"
            for name in ("ScriptedCall", "ScriptedModel", "ScriptedStep", "Step")
        }
    ),
    "kit/held_commands.py": frozenset(
        {f"adjudge.harness.scripted_model.{name}" for name in ("ScriptedCall", "ScriptedStep")}
    ),
    # Decisions of the past fortnight: the ledger writes its own time, and a story is told once with another id.
    "kit/server_demo.py": frozenset({"adjudge.labels.store", "adjudge.ledger.store", "adjudge.result.make_id"}),
    # What is kept about two customers, and the command's work without a command line.
    "kit/erasures.py": frozenset(
        {
            "adjudge.erasure.choice.read_choice",
            "adjudge.erasure.forget.Places",
            "adjudge.erasure.forget.forget",
            "adjudge.erasure.ledger.Order",
            "adjudge.erasure.report.ForgetReport",
            "adjudge.models.replies.cache.CachedModel",
        }
    ),
    # Labels that took their time: the store of labels writes its own as well.
    "kit/server_tour.py": frozenset({"adjudge.labels.store"}),
}
"""What files that are not internal need of private parts, each with its reason."""


@cache
def find_open_modules() -> frozenset[str]:
    """Modules that are public though no stub lists them: those that COMPATIBILITY.md covers, and all in them."""
    page = (house.ROOT / "COMPATIBILITY.md").read_text("utf-8")
    covered = page[page.index("## Covered") : page.index("## Files")]
    named = set(re.findall(r"`(adjudge[\w.]*)`", covered)) - set(PACKAGES)
    return frozenset(name for name in house.modules() if any(f"{name}.".startswith(f"{item}.") for item in named))


@cache
def find_addresses() -> frozenset[str]:
    """Every address that is public: packages, what they list, modules that are covered, and what is run by name."""
    project = tomllib.loads((house.ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    listed = {f"{package}.{name}" for package in PACKAGES for name in read_stub(package)}
    run = {script.replace(":", ".") for script in project["scripts"].values()}
    return frozenset({*PACKAGES, *listed, *run, *find_open_modules()})


def is_public(address: str) -> bool:
    """Whether an address can be imported by anybody: ``adjudge.Judge``, ``adjudge.errors.Reason``."""
    package, _, name = address.rpartition(".")
    dunder = name.startswith("__") and name.endswith("__")
    return address in find_addresses() or package in find_open_modules() or (dunder and package in PACKAGES)


def is_ours(text: str) -> bool:
    """Whether a text is the address of something in the package."""
    return re.fullmatch(r"adjudge(\.\w+)*", text) is not None


def find_named_runs(node: ast.AST) -> list[str]:
    """The addresses of ours that one node imports, or names to have them replaced or imported."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names if is_ours(alias.name)]
    if isinstance(node, ast.ImportFrom) and is_ours(node.module or ""):
        return [f"{node.module}.{alias.name}" for alias in node.names]
    if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in ("setattr", "import_module"):
        texts = [item.value for item in node.args[:1] if isinstance(item, ast.Constant)]
        return [text for text in texts if isinstance(text, str) and is_ours(text)]
    return []


def find_private(tree: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The private parts that a file looks at: addresses that are not public, and names with an underscore."""
    for node in ast.walk(tree):
        for address in find_named_runs(node):
            if not is_public(address):
                yield address, node
        if isinstance(node, ast.Attribute) and is_hidden(node.attr):
            owner = ast.unparse(node.value)
            if owner not in {"self", "cls", *sys.stdlib_module_names}:
                yield f"{owner}.{node.attr}", node


def is_hidden(name: str) -> bool:
    """Whether a name is marked as an object's own; ``_repr_html_`` and a tuple's ``_replace`` are protocols."""
    return name.startswith("_") and not name.endswith("_") and name not in ("_replace", "_asdict", "_fields")


def list_outside() -> list[Path]:
    """The Python files of the tests that are not internal."""
    return [path for path in house.python_files() if path.is_relative_to(TESTS) and not path.name.endswith(INTERNAL)]


def test_tests_speak_through_public_addresses():
    """Where a file is not internal, nothing is imported, replaced or read that a user could not import."""
    assert list_outside()
    assert [
        f"{house.where(path, node)} {address}; use a public name, or move the test to test_*_internal.py"
        for path in list_outside()
        for address, node in find_private(house.parse(path))
        if address not in NEEDED.get(path.relative_to(TESTS).as_posix(), ())
    ] == []


@pytest.mark.parametrize("name", NEEDED)
def test_what_is_excused_is_needed(name: str):
    """An excuse that nothing uses any more is taken back."""
    addresses = {address for address, _ in find_private(house.parse(TESTS / name))}

    assert addresses == NEEDED[name]


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("from adjudge.judges.judge import Judge", ["adjudge.judges.judge.Judge"]),
        ("import adjudge.formats.text", ["adjudge.formats.text"]),
        ("from adjudge.tools import store", ["adjudge.tools.store"]),
        ("def f(patch):\n patch.setattr('adjudge.models.retry.back_off', None)", ["adjudge.models.retry.back_off"]),
        ("judge._model", ["judge._model"]),
        ("import adjudge, adjudge.judges\nfrom adjudge import Judge, errors, __version__", []),
        ("from adjudge.errors import Reason\nfrom adjudge.integrations import asgi", []),
        ("from adjudge.cli import main\nself._own\nvalue.__class__", []),
    ],
)
def test_private_parts_are_seen(text: str, addresses: list[str]):
    """The walk above sees them wherever they stand, and takes nothing public for one."""
    assert [address for address, _ in find_private(ast.parse(text))] == addresses
