"""The search for modules that ``python:`` names: beside the file that names them, or in the working directory.

What is installed comes first, so that a file ``yaml.py`` in one of these folders takes no library's place. A name that
a configuration file uses means the folder of that file, whatever the working directory is: there, somebody may have put
a module of the same name who is to be judged by the other one.
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
    """Guard a block that imports a module somebody named: it runs, and can do anything then, even end the program.

    Args:
        source: The thing that names it, for messages.
        name: ``package.module:function``, after ``python:`` or without it.
        folder: The folder of the configuration file that names it; ``None`` is the command line, and the working
            directory.
    """
    module = name.removeprefix("python:").partition(":")[0].partition(".")[0]
    try:
        place = admit(folder)
        _check_place(source, module, place)
        yield
    except UsageError:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a sentence, whatever the module does
        raise UsageError(f"{source} cannot be imported: {type(error).__name__}: {error}; mend the module") from None


def open_function(spec: object, where: str, folder: Path | None) -> Callable[..., Any]:
    """Import the function that a configuration file in a folder names, ``python:package.module:function``.

    Raises ``UsageError``, which begins with ``where``, for anything else, and for what cannot be imported.
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
    """Let modules be imported from a folder, after what is installed; ``None`` stands for the working directory.

    Returns the folder; ``None`` where Python was told not to trust the working directory (``-P``), or it is gone.
    """
    working_directory = _find_working_directory()
    location = working_directory if folder is None else folder.resolve()
    if location is None or (sys.flags.safe_path and location == working_directory):
        return None
    importlib.invalidate_caches()
    guard = _find_guard()
    if guard is None:
        guard = PlaceGuard()
        sys.meta_path.insert(0, guard)
    if location not in guard.list_places() or location not in guard.folders:
        _check_loaded(location, [other for other in guard.list_places() if other != location])
        if location not in _list_path():
            sys.path.append(str(location))
        guard.folders = [other for other in guard.folders if other != location] + [location]
    return location


class PlaceGuard:
    """Refuses what lies in several of the folders, among them the working directory where it is on the path.

    An importer of Python (``sys.meta_path``), for the modules that are named and for all that those import. It finds
    nothing itself.
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
        holders = _find_ambiguous_folders(name, places) if path is None else _find_parts(path, places)
        if len(holders) < 2:
            return None
        first, second, *_ = holders
        raise ImportError(f"{name!r} is in {first} and in {second}; rename one of them, or take it away", name=name)

    def list_places(self) -> list[Path]:
        """List the folders that are on the path, and the working directory where it is, for whatever reason."""
        path, working_directory = _list_path(), _find_working_directory()
        extra = [working_directory] if working_directory is not None and working_directory not in self.folders else []
        return [place for place in (*self.folders, *extra) if place in path]


def _find_ambiguous_folders(name: str, places: Sequence[Path]) -> list[Path]:
    """Find the folders that have a module, unless Python takes it from elsewhere."""
    if name in sys.builtin_module_names or name in sys.stdlib_module_names:
        return []
    holders = [place for place in places if PathFinder.find_spec(name, [str(place)]) is not None]
    if len(holders) < 2:
        return []
    taken = _list_parents(PathFinder.find_spec(name))
    return holders if any(place in holders for place in taken) else []


def _find_parts(path: Iterable[str], places: Sequence[Path]) -> list[Path]:
    """Find the folders over which a package without ``__init__.py`` is spread."""
    locations: list[Path] = []
    for part in path:
        place = _find_nearest(Path(part).resolve(), places)
        if place is not None and place not in locations:
            locations.append(place)
    return locations


def _find_nearest(part: Path, places: Iterable[Path]) -> Path | None:
    around = [place for place in places if part.is_relative_to(place)]
    return max(around, key=lambda place: len(place.parts), default=None)


def _check_place(source: str, module: str, place: Path | None) -> None:
    """Raise ``UsageError`` for a module that would come from a folder in which it is not looked for.

    It may have been imported from there already, by the name of another file, or the environment may put the working
    directory on the path (``PYTHONPATH=.``).
    """
    if not module or module in sys.builtin_module_names or module in sys.stdlib_module_names:
        return
    guard = _find_guard()
    others = [other for other in (guard.list_places() if guard is not None else ()) if other != place]
    if place is None:  # the command line, under -P: what the environment puts on the path is meant to be there
        others = [other for other in others if other != _find_working_directory()]
    loaded = sys.modules.get(module)
    for origin in (
        _list_parents(getattr(loaded, "__spec__", None)) if loaded is not None else _list_parents(_look_up(module))
    ):
        if origin in others:
            where = "among what is installed" if place is None else f"in {place} and among what is installed"
            origin_verb = "was imported already from" if loaded is not None else "would be imported from"
            raise UsageError(
                f"{source}: the module {module} {origin_verb} {origin}, and is looked for {where}; rename it, or put "
                "it there"
            )


def _check_loaded(place: Path, others: Sequence[Path]) -> None:
    """Raise ``UsageError`` where a module of a new folder was imported from another one before.

    What imports it from now on would be handed that one, whichever folder it lies in itself.
    """
    for name, module in [(name, module) for name, module in sys.modules.items() if "." not in name] if others else ():
        for origin in _list_parents(getattr(module, "__spec__", None)):
            if origin in others and PathFinder.find_spec(name, [str(place)]) is not None:
                raise UsageError(f"{name!r} is in {origin} and in {place}; rename one of them, or take it away")


def _look_up(module: str) -> ModuleSpec | None:
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        spec: ModuleSpec | None = None if find is None else find(module, None)
        if spec is not None:
            return spec
    return None


def _list_parents(spec: ModuleSpec | None) -> list[Path]:
    """List the folders from which a module comes."""
    if spec is None:
        return []
    if spec.submodule_search_locations is not None:
        return [Path(part).resolve().parent for part in spec.submodule_search_locations]
    return [Path(spec.origin).resolve().parent] if spec.has_location and spec.origin is not None else []


def _find_guard() -> PlaceGuard | None:
    return next((finder for finder in sys.meta_path if isinstance(finder, PlaceGuard)), None)


def _list_path() -> list[Path]:
    """List the folders of Python's path; an empty entry is the working directory."""
    folders: list[Path] = []
    for entry in sys.path:
        with suppress(OSError, ValueError):
            folders.append(Path(entry).resolve())
    return folders


def _find_working_directory() -> Path | None:
    try:
        return Path.cwd().resolve()
    except OSError:  # it was removed
        return None
