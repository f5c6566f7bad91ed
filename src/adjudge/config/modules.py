"""Importing modules that ``python:`` names, from the folder of the file that names them or the working directory.

Installed modules come first, so that no file in such a folder replaces a library, such as ``yaml``. A name in a
configuration file means the folder of that file and never the working directory, where an author who is to be judged
may have put a module of the same name.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from adjudge.errors import UsageError
from adjudge.formats.text import show


@contextmanager
def importing(source: str, name: str, folder: Path | None = None) -> Iterator[None]:
    """Guard a block that imports a module somebody named: any exception of the module becomes a ``UsageError``.

    Args:
        source: The thing that names it, for messages.
        name: ``package.module:function``, after ``python:`` or without it.
        folder: The folder of the configuration file that names it; ``None`` is the command line, and the working
            directory.
    """
    module = name.removeprefix("python:").partition(":")[0].partition(".")[0]
    try:
        admitted_folder = admit(folder)
        _check_origin(source, module, admitted_folder)
        yield
    except UsageError:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the module may raise anything
        raise UsageError(f"{source} cannot be imported: {type(error).__name__}: {error}; mend the module") from None


def open_function(spec: object, where: str, folder: Path | None) -> Callable[..., Any]:
    """Import the function that a configuration file in a folder names, ``python:package.module:function``.

    Raises ``UsageError``, which begins with ``where``, for another spec, and for a function that cannot be imported.
    """
    from adjudge.rules.checks import import_function

    prefix, _, name = spec.partition(":") if isinstance(spec, str) else ("", "", "")
    if prefix != "python":
        raise UsageError(f"{where} must be like python:package.module:function, got {show(spec)}")
    with importing(where, name, folder):
        return import_function(name, where)


def find_code(rule: Mapping[str, object]) -> str | None:
    """Find the ``module:function`` that a rule imports; ``None`` if it runs no code, empty if it cannot be read."""
    if "python" not in (*rule, rule.get("name")):
        return None
    code = rule.get("python", rule.get("function"))
    return code if isinstance(code, str) else ""


def admit(folder: Path | None) -> Path | None:
    """Add a folder to the end of Python's import path, after installed modules; ``None`` is the working directory.

    Returns the folder; ``None`` if it is the working directory and Python may not import from there (``-P``), or if
    that no longer exists.
    """
    working_directory = _find_working_directory()
    resolved = working_directory if folder is None else folder.resolve()
    if resolved is None or (sys.flags.safe_path and resolved == working_directory):
        return None
    importlib.invalidate_caches()
    guard = _find_guard()
    if guard is None:
        guard = ImportGuard()
        sys.meta_path.insert(0, guard)
    if resolved not in guard.list_places() or resolved not in guard.folders:
        _check_loaded(resolved, [other for other in guard.list_places() if other != resolved])
        if resolved not in _list_import_path():
            sys.path.append(str(resolved))
        guard.folders = [other for other in guard.folders if other != resolved] + [resolved]
    return resolved


class ImportGuard:
    """An importer (``sys.meta_path``) that refuses modules which several of the admitted folders have.

    The working directory counts as one of them if it is on the import path. The importer finds no modules itself; it
    checks the named modules and all that those import.
    """

    def __init__(self) -> None:
        self.folders: list[Path] = []

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return ``None``; raises ``ImportError`` for a module that two of the folders have."""
        places = self.list_places()
        if len(places) < 2:
            return None
        folders = _find_ambiguous_folders(name, places) if path is None else _find_package_folders(path, places)
        if len(folders) < 2:
            return None
        first, second, *_ = folders
        raise ImportError(f"{name!r} is in {first} and in {second}; rename one of them, or take it away", name=name)

    def list_places(self) -> list[Path]:
        """List the admitted folders, and the working directory, as far as they are on Python's import path."""
        path, working_directory = _list_import_path(), _find_working_directory()
        extra = [working_directory] if working_directory is not None and working_directory not in self.folders else []
        return [folder for folder in (*self.folders, *extra) if folder in path]


def _find_ambiguous_folders(name: str, places: Sequence[Path]) -> list[Path]:
    """Find the folders that have a module; none if fewer than two have it, or Python imports it from elsewhere."""
    if name in sys.builtin_module_names or name in sys.stdlib_module_names:
        return []
    folders = [folder for folder in places if PathFinder.find_spec(name, [str(folder)]) is not None]
    if len(folders) < 2:
        return []
    origins = _list_origins(PathFinder.find_spec(name))
    return folders if any(origin in folders for origin in origins) else []


def _find_package_folders(path: Iterable[str], places: Sequence[Path]) -> list[Path]:
    """Find the folders over which a package without ``__init__.py`` is spread; ``path`` is the package's path."""
    folders: list[Path] = []
    for part in path:
        folder = _find_nearest(Path(part).resolve(), places)
        if folder is not None and folder not in folders:
            folders.append(folder)
    return folders


def _find_nearest(path: Path, folders: Iterable[Path]) -> Path | None:
    """Return the innermost of the folders that contain a path; ``None`` if none does."""
    containing = [folder for folder in folders if path.is_relative_to(folder)]
    return max(containing, key=lambda folder: len(folder.parts), default=None)


def _check_origin(source: str, module: str, place: Path | None) -> None:
    """Raise ``UsageError`` for a module that would come from another admitted folder than ``place``.

    It may have been imported from there already, because another file named it, or the environment may put the working
    directory on the import path (``PYTHONPATH=.``).
    """
    if not module or module in sys.builtin_module_names or module in sys.stdlib_module_names:
        return
    guard = _find_guard()
    others = [other for other in (guard.list_places() if guard is not None else ()) if other != place]
    if (
        place is None
    ):  # the command line, under -P: then the environment put the working directory on the path on purpose
        others = [other for other in others if other != _find_working_directory()]
    loaded = sys.modules.get(module)
    spec = getattr(loaded, "__spec__", None) if loaded is not None else _find_module_spec(module)
    for origin in _list_origins(spec):
        if origin in others:
            where = "among what is installed" if place is None else f"in {place} and among what is installed"
            origin_verb = "was imported already from" if loaded is not None else "would be imported from"
            raise UsageError(
                f"{source}: the module {module} {origin_verb} {origin}, and is looked for {where}; rename it, or put "
                "it there"
            )


def _check_loaded(place: Path, others: Sequence[Path]) -> None:
    """Raise ``UsageError`` if a module that the new folder ``place`` has was already imported from one of ``others``.

    Python would give the module of the other folder to everything that imports the name from now on.
    """
    if not others:
        return
    top_level = [(name, module) for name, module in sys.modules.items() if "." not in name]
    for name, module in top_level:
        for origin in _list_origins(getattr(module, "__spec__", None)):
            if origin in others and PathFinder.find_spec(name, [str(place)]) is not None:
                raise UsageError(f"{name!r} is in {origin} and in {place}; rename one of them, or take it away")


def _find_module_spec(module: str) -> ModuleSpec | None:
    """Find the spec by which Python would import a module; ``None`` if no importer finds it."""
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        spec: ModuleSpec | None = None if find is None else find(module, None)
        if spec is not None:
            return spec
    return None


def _list_origins(spec: ModuleSpec | None) -> list[Path]:
    """List the folders that contain a module, or the parts of a package."""
    if spec is None:
        return []
    if spec.submodule_search_locations is not None:
        return [Path(part).resolve().parent for part in spec.submodule_search_locations]
    return [Path(spec.origin).resolve().parent] if spec.has_location and spec.origin is not None else []


def _find_guard() -> ImportGuard | None:
    """Return the ``ImportGuard`` among Python's importers, if there is one already."""
    return next((finder for finder in sys.meta_path if isinstance(finder, ImportGuard)), None)


def _list_import_path() -> list[Path]:
    """List the folders of Python's import path; an empty entry is the working directory."""
    folders: list[Path] = []
    for entry in sys.path:
        with suppress(OSError, ValueError):
            folders.append(Path(entry).resolve())
    return folders


def _find_working_directory() -> Path | None:
    """Return the working directory; ``None`` if it does not exist."""
    try:
        return Path.cwd().resolve()
    except OSError:  # it was removed
        return None
