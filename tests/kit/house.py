"""The source tree as data, for the tests that hold the house's rules."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import MappingProxyType, ModuleType

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
PACKAGE = ROOT / "src" / "adjudge"

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def repository_files() -> tuple[Path, ...]:
    """Every file of the repository, tracked or about to be; what .gitignore names is left out."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        paths = [ROOT / name for name in done.stdout.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):  # an unpacked source distribution
        hidden = {".venv", ".git", ".hypothesis", ".pytest_cache", ".ruff_cache", "__pycache__", "dist", "build"}
        paths = [path for path in ROOT.rglob("*") if not hidden.intersection(path.relative_to(ROOT).parts)]
    return tuple(sorted(path for path in paths if path.is_file()))


def is_python(path: Path) -> bool:
    """Return True if a file is Python, by its suffix or, for a script, by its first line."""
    if path.suffix == ".py":
        return True
    return not path.suffix and path.read_bytes()[:40].startswith(b"#!/usr/bin/env python3")


@cache
def python_files() -> tuple[Path, ...]:
    """Every Python file of the repository."""
    return tuple(path for path in repository_files() if is_python(path))


@cache
def package_files() -> tuple[Path, ...]:
    """Every module of the package."""
    return tuple(sorted(PACKAGE.rglob("*.py")))


@cache
def parse(path: Path) -> ast.Module:
    """The file's syntax tree."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Every node of the file's syntax tree."""
    return tuple(ast.walk(parse(path)))


def name_module(path: Path) -> str:
    """The dotted name under which a file of the package is imported."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules() -> Mapping[str, Path]:
    """Every module of the package by its dotted name."""
    return MappingProxyType({name_module(path): path for path in package_files()})


def load_module(name: str) -> ModuleType | None:
    """Import a module of the package; ``None`` for one that needs a package which is absent."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] == "adjudge":
            raise
        return None


@cache
def find_definition(name: str) -> Path:
    """The module of the package that defines a name at its top, wherever it stands today."""
    for path in package_files():
        for node in parse(path).body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            names = {target.id for target in targets if isinstance(target, ast.Name)}
            if name in names | {getattr(node, "name", None)}:
                return path
    raise LookupError(f"no module of the package defines {name}")


def functions(tree: Iterable[ast.AST]) -> list[FunctionNode]:
    """Every function and method among these nodes, nested ones included."""
    return [node for node in tree if isinstance(node, FunctionNode)]


def is_type_checking(node: ast.AST) -> bool:
    """Return True if a node is ``if TYPE_CHECKING:``."""
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def where(path: Path, node: ast.AST | None = None) -> str:
    """A place as ``file:line``."""
    return f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}"
