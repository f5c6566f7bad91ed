"""For the reference: signatures that cannot be read from the source alone, written as Python has them.

A function made by ``make_sync``, and a method made by ``make_sync_method``, has the parameters of the one it was made
from. A field that says ``kw_only=False`` is positional though its dataclass is keyword-only. A class may have
``__new__`` in place of ``__init__``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import griffe

_MADE = re.compile(r"make_sync(?:_method)?\((?P<name>\w+)\)")
_POSITIONAL = re.compile(r"\bkw_only=False\b")


class Signatures(griffe.Extension):
    """Puts right what a package's source alone does not show."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Look through every module once the package is read."""
        # Now, and not after this extension: it leaves a class alone that has its constructor.
        griffe.DataclassesExtension().on_package(pkg=pkg)
        for module in walk_modules(pkg):
            add_twins(module)
            for member in module.members.values():
                if not member.is_alias and member.is_class:
                    add_twins(member)
                    put_right(member)


def walk_modules(module: griffe.Module) -> Iterator[griffe.Module]:
    """A module and all those inside it."""
    yield module
    for inner in module.modules.values():
        if not inner.is_alias:
            yield from walk_modules(inner)


def add_twins(owner: griffe.Module | griffe.Class) -> None:
    """Put functions in the place of what ``make_sync`` made in a module or a class."""
    for name, member in list(owner.members.items()):
        made = _MADE.fullmatch(str(member.value)) if not member.is_alias and member.is_attribute else None
        if made is not None:
            owner.set_member(name, make_twin(name, owner.members[made["name"]]))


def make_twin(name: str, function: Any) -> griffe.Function:
    """The function as ``make_sync`` makes it, with the docstring that it gets there."""
    _, heading, arguments = (function.docstring.value if function.docstring else "").partition("Args:\n")
    said = f"``{function.name}`` for callers without an event loop; works inside a running loop too, and blocks it."
    said += f"\n\n{heading}{arguments}" if heading else ""
    return griffe.Function(
        name,
        parameters=function.parameters,
        returns=function.returns,
        lineno=function.lineno,
        endlineno=function.endlineno,
        docstring=griffe.Docstring(said),
    )


def put_right(found: Any) -> None:
    """Give a class the constructor that it has."""
    init, new = found.members.get("__init__"), found.members.get("__new__")
    if init is None and new is not None:
        found.set_member("__init__", make_init(new))
    elif "dataclass" in found.labels and init is not None:
        init.parameters = sort_parameters(init.parameters, find_positional(found))
        show_defaults(found, init.parameters)


def find_positional(found: Any) -> set[str]:
    """The fields that are positional although their dataclass is keyword-only, its parents' included."""
    classes = [found, *found.mro()]
    fields = [member for item in classes for member in item.members.values() if not member.is_alias]
    return {item.name for item in fields if item.is_attribute and _POSITIONAL.search(str(item.value))}


def sort_parameters(parameters: griffe.Parameters, positional: set[str]) -> griffe.Parameters:
    """The parameters with these as positional ones, before those that are keyword-only."""
    for item in parameters:
        if item.name in positional:
            item.kind = griffe.ParameterKind.positional_or_keyword
    return griffe.Parameters(*sorted(parameters, key=lambda item: item.kind is griffe.ParameterKind.keyword_only))


def show_defaults(found: Any, parameters: griffe.Parameters) -> None:
    """Show a field with its default in place of the call that describes it."""
    for item in parameters:
        member = found.members.get(item.name)
        if member is not None and member.is_attribute and str(member.value).startswith("field("):
            member.value = item.default


def make_init(new: Any) -> griffe.Function:
    """The constructor of a class that has ``__new__`` instead."""
    return griffe.Function("__init__", parameters=griffe.Parameters(*new.parameters))
