"""The files and folders that ``adjudge forget`` searches: those of ``[forget]``, and those that other tables name.

The keys of ``[forget]`` are in ``file.py`` (``FORGET``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from adjudge.config.file import Config, find_recording


def list_configured(config: Config) -> Mapping[str, tuple[Path, ...]]:
    """List the existing runs, caches, recordings and label files that a configuration names, by kind.

    A path of ``[forget]`` starts from the file's folder, and may have ``*`` in its last part.
    """
    return {
        name: tuple(dict.fromkeys(path for path in _find_configured_files(config, paths) if path.exists()))
        for name, paths in _list_configured_paths(config).items()
    }


def list_absent(config: Config) -> tuple[Path, ...]:
    """List the paths that a configuration names and that do not exist.

    Their files may have been moved, or the path may be wrong, and then nothing in them is forgotten. Caches and the
    runs of a server are left out, because they need not exist before they are used.
    """
    server_runs = [config.resolve_path(path) for path in _list_server_runs(config)]
    paths = _list_configured_paths(config)
    named = [path for name in ("runs", "recordings", "labels") for path in _find_configured_files(config, paths[name])]
    return tuple(dict.fromkeys(path for path in named if not path.exists() and path not in server_runs))


def list_links(config: Config) -> tuple[Path, ...]:
    """List the links that a ``*`` of the configuration finds, which ``list_configured`` leaves out."""
    return tuple(
        dict.fromkeys(path for paths in _list_configured_paths(config).values() for path in _find_links(config, paths))
    )


def _list_configured_paths(config: Config) -> Mapping[str, list[str]]:
    """List the paths that a configuration names, as written, by kind: those of other tables, then of ``[forget]``."""
    caches = [table["cache"] for table in config.gates.values() if "cache" in table]
    recordings = [path for name in _list_judge_names(config) if (path := find_recording(name)) is not None]
    of_tables = {"caches": caches, "recordings": recordings, "runs": _list_server_runs(config), "labels": []}
    return {name: [*paths, *config.forget.get(name, ())] for name, paths in of_tables.items()}


def _list_server_runs(config: Config) -> list[str]:
    return [config.server["runs"]] if "runs" in config.server else []


def _list_judge_names(config: Config) -> Iterator[str]:
    """Yield the names of judges and models in all tables; each may name a recording."""
    yield from (seat for judge in config.judges.values() for seat in judge.get("seats", ()))
    asking = [config.approvals, *(gate.get("ask", {}) for gate in config.gates.values())]
    yield from (table["first"] for table in asking if "first" in table)
    deciding = [config.defaults, config.server, *config.gates.values()]
    yield from (table["judge"] for table in deciding if isinstance(table.get("judge"), str))


def _find_configured_files(config: Config, paths: Iterable[str]) -> Iterator[Path]:
    """Yield the files that paths of the configuration name; the last part of a path may have a ``*``.

    A link counts only if the configuration names it, and not if a ``*`` finds it. Otherwise anybody who can write in
    that folder could have any file of the machine changed, by a link to it.
    """
    for path, is_match in _find_files(config, paths):
        if not (is_match and path.is_symlink()):
            yield path


def _find_links(config: Config, paths: Iterable[str]) -> Iterator[Path]:
    """Return the links that a ``*`` in the paths finds."""
    return (path for path, is_match in _find_files(config, paths) if is_match and path.is_symlink())


def _find_files(config: Config, paths: Iterable[str]) -> Iterator[tuple[Path, bool]]:
    """Yield the files that paths name, each with true if a ``*`` found it."""
    for text in paths:
        path = config.resolve_path(text)
        if "*" in path.name:
            yield from ((match, True) for match in sorted(path.parent.glob(path.name)))
        else:
            yield path, False
