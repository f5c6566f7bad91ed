"""For the reference: a function made by ``make_sync`` has the parameters of the one it was made from, so show these."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import griffe

_MADE = re.compile(r"make_sync\((?P<name>\w+)\)")


class Twins(griffe.Extension):
    """Puts a function in the place of each name that is only assigned, as ``improve_sync = make_sync(improve)``."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Look through every module once the package is read."""
        for module in walk_modules(pkg):
            for name, member in list(module.members.items()):
                made = _MADE.fullmatch(str(member.value)) if not member.is_alias and member.is_attribute else None
                if made is not None:
                    module.set_member(name, make_twin(name, module.members[made["name"]]))


def walk_modules(module: griffe.Module) -> Iterator[griffe.Module]:
    """A module and all those inside it."""
    yield module
    for inner in module.modules.values():
        if not inner.is_alias:
            yield from walk_modules(inner)


def make_twin(name: str, function: Any) -> griffe.Function:
    """The function as ``make_sync`` makes it, with the docstring that it gets there."""
    said = f"``{function.name}`` for callers without an event loop; works inside a running loop too, and blocks it."
    return griffe.Function(
        name,
        parameters=function.parameters,
        returns=function.returns,
        lineno=function.lineno,
        endlineno=function.endlineno,
        docstring=griffe.Docstring(said),
    )
