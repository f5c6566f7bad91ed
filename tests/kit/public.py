"""The public face as data: what every exported name takes, holds and returns, as ``typing`` reads it."""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from kit import house

PACKAGES = tuple(sorted(house.name_module(path.with_suffix(".py")) for path in house.PACKAGE.rglob("__init__.pyi")))
"""Every package that exports names: what its ``__init__.pyi`` imports."""


@dataclass(frozen=True)
class Annotation:
    """One annotation of a public name: a parameter, a field or what is returned."""

    place: str
    hint: object
    text: str
    """As it is written, where the names of aliases still stand."""
    module: str
    """The place where it is written, so what its names mean."""

    @property
    def is_result(self) -> bool:
        """Return True if it is what a function returns."""
        return self.place.endswith("return")


def read_stub(package: str) -> dict[str, str]:
    """The names that a package's stub imports, each with its module."""
    path = house.modules()[package].with_suffix(".pyi")
    return {
        alias.asname or alias.name: node.module or ""
        for node in house.parse(path).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


@cache
def read_namespace(module: str) -> dict[str, object]:
    """Read what the names in a module's annotations mean, those it imports for a type checker alone included."""
    loaded: dict[str, object] = dict(vars(importlib.import_module(module)))
    for statement in house.parse(house.modules()[module]).body:
        if isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING":
            for node in statement.body:
                if isinstance(node, ast.ImportFrom):
                    source = _read_source(node.module or "")
                    names = {alias.name: alias.asname or alias.name for alias in node.names}
                    loaded |= {own: source[name] for name, own in names.items()}
                else:  # an alias made of what was just imported
                    exec(compile(ast.Module([node], []), module, "exec"), loaded)
    return loaded


def _read_source(module: str) -> dict[str, object]:
    return read_namespace(module) if _is_ours(module) else dict(vars(importlib.import_module(module)))


@cache
def exported() -> dict[str, object]:
    """Every public name by its address; one that two packages export is there twice."""
    return {
        f"{package}.{name}": getattr(importlib.import_module(package), name)
        for package in PACKAGES
        for name in read_stub(package)
    }


@cache
def walk_public() -> tuple[Annotation, ...]:
    """Every annotation of every public function, class, method, property and field, once."""
    return tuple(_walk())


def _walk() -> Iterator[Annotation]:
    seen: set[int] = set()
    for address, value in exported().items():
        if id(value) in seen:
            continue
        seen.add(id(value))
        if inspect.isclass(value):
            yield from _walk_class(address, value)
        elif inspect.isroutine(value):
            yield from _walk_function(address, value)


def _is_ours(module: object) -> bool:
    return isinstance(module, str) and module.partition(".")[0] == "adjudge"


def _walk_class(address: str, value: type) -> Iterator[Annotation]:
    for owner in value.__mro__:
        if not _is_ours(owner.__module__):
            continue
        namespace = read_namespace(owner.__module__)
        for name, text in vars(owner).get("__annotations__", {}).items():
            if not name.startswith("_"):
                hint = _read_hint(name, text, namespace)
                yield Annotation(f"{address}.{name}", hint, str(text), owner.__module__)
        for name, member in vars(owner).items():
            if name.startswith("_") and name not in ("__init__", "__call__"):
                continue
            plain = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            plain = plain.fget if isinstance(plain, property) else plain
            # What a dataclass writes for itself is its fields once more.
            if inspect.isfunction(plain) and _is_ours(plain.__module__) and plain.__code__.co_filename != "<string>":
                yield from _walk_function(f"{address}.{name}", plain)


def _read_hint(name: str, text: object, namespace: dict[str, object]) -> object:
    """Read what one annotation of a class means; alone, since those of its bases stand in other modules."""
    alone = type("Alone", (), {"__annotations__": {name: text}})
    return typing.get_type_hints(alone, globalns=namespace, localns=namespace)[name]


def _walk_function(address: str, value: Callable[..., object]) -> Iterator[Annotation]:
    plain = inspect.unwrap(value)
    namespace = read_namespace(plain.__module__)
    hints = typing.get_type_hints(plain, globalns=namespace)
    for name, hint in hints.items():
        yield Annotation(
            f"{address}({name})" if name != "return" else f"{address} return",
            hint,
            str(plain.__annotations__[name]),
            plain.__module__,
        )


def find_types(hint: object) -> Iterator[type]:
    """The classes of ours that a hint is made of."""
    if inspect.isclass(hint) and typing.get_origin(hint) is None:
        if _is_ours(hint.__module__):
            yield hint
        return
    if isinstance(hint, typing.TypeVar):
        for part in (hint.__bound__, *hint.__constraints__):
            yield from find_types(part)
        return
    if isinstance(hint, list):
        for part in hint:
            yield from find_types(part)
        return
    origin = typing.get_origin(hint)
    if origin is not None:
        yield from find_types(origin)
        if origin is not typing.Literal:
            for part in typing.get_args(hint):
                yield from find_types(part)


def find_names(annotation: Annotation) -> Iterator[str]:
    """The names of ours that stand in an annotation as it is written, aliases too."""
    for node in ast.walk(ast.parse(annotation.text, mode="eval")):
        if isinstance(node, ast.Name) and find_home(annotation.module, node.id):
            yield node.id


@cache
def find_home(module: str, name: str) -> str | None:
    """The module of ours that defines what a name in another means; ``None`` for what is nobody's type."""
    source = _list_imported(module).get(name)
    if source is not None:
        return find_home(source, name) if _is_ours(source) else None
    if isinstance(vars(sys.modules[module]).get(name), typing.TypeVar):
        return None
    return module if name in _list_defined(module) else None


@cache
def _list_imported(module: str) -> dict[str, str]:
    """The module that each name comes from; the first import of a name counts."""
    sources: dict[str, str] = {}
    for node in house.nodes(house.modules()[module]):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                sources.setdefault(alias.asname or alias.name, node.module or "")
    return sources


@cache
def _list_defined(module: str) -> frozenset[str]:
    names: set[str] = set()
    for node in house.parse(house.modules()[module]).body:
        if isinstance(node, ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return frozenset(names)
