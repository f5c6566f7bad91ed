"""Packages that export names of their modules, and import a module only when a name of it is first used."""

from __future__ import annotations

import sys
from collections.abc import Callable


def export_lazily(package: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return a package's ``__getattr__`` and ``__dir__``, which offer what the ``.pyi`` file beside it imports.

    That file is the one list of what a package exports: type checkers and editors read it as it is, and it is read here
    when a name is first asked for. So importing a package imports no module of it and reads no file.
    """
    module_of_name: dict[str, str] = {}
    """The module of each exported name; empty until a name is first asked for."""

    def find_modules() -> dict[str, str]:
        if not module_of_name:
            module_of_name.update(_read_stub(package))
        return module_of_name

    def get(name: str) -> object:
        """Import the value that the package exports under a name: the package's ``__getattr__``."""
        if name == "__all__":
            return sorted(find_modules())
        # Dunder names are what import machinery and inspection try on every module.
        if name.startswith("__") or name not in find_modules():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(module_of_name[name]), name)
        if isinstance(value, type):
            from adjudge.class_help import add_help

            add_help(value)
        setattr(sys.modules[package], name, value)
        return value

    def list_names() -> list[str]:
        return sorted(find_modules())

    return get, list_names


def _read_stub(package: str) -> dict[str, str]:
    """Return the module of each name that a package's stub imports."""
    import re
    from importlib.resources import files

    text = files(package).joinpath("__init__.pyi").read_text(encoding="utf-8")
    imports = re.findall(r"^from (\S+) import (?:([^(\n]+)|\(([^)]*)\))", text, re.MULTILINE)
    modules: dict[str, str] = {}
    for module, names_on_line, names_in_parentheses in imports:  # one of the two is empty
        for name in re.findall(r"\w+ as (\w+)", names_on_line + names_in_parentheses):
            modules[name] = module
    return modules
