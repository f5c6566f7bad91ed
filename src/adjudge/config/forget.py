"""The places that ``adjudge forget`` looks through: ``[forget]`` of ``adjudge.toml``, and what other tables name.

The keys of ``[forget]`` are in ``file.py`` (``FORGET``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from adjudge.config.file import Config, find_recording


def list_configured(config: Config) -> Mapping[str, tuple[Path, ...]]:
    """List runs, caches, recordings and files of labels that a configuration names and that are there.

    A path of ``[forget]`` is seen from the file's folder, and may have ``*`` in its last part.
    """
    return {
        name: tuple(dict.fromkeys(path for path in _find_named(config, paths) if path.exists()))
        for name, paths in _list_paths(config).items()
    }


def list_absent(config: Config) -> tuple[Path, ...]:
    """List the places that a configuration names and that are not there: moved, or written wrong, they are kept.

    A cache, or the runs of a server, may not have been used yet, and hold nothing then.
    """
    served = [config.resolve_path(path) for path in _list_served(config)]
    paths = _list_paths(config)
    named = [path for name in ("runs", "recordings", "labels") for path in _find_named(config, paths[name])]
    return tuple(dict.fromkeys(path for path in named if not path.exists() and path not in served))


def list_links(config: Config) -> tuple[Path, ...]:
    """List the links that a ``*`` of the configuration finds, which ``list_configured`` leaves out."""
    return tuple(dict.fromkeys(path for paths in _list_paths(config).values() for path in _find_links(config, paths)))


def _list_paths(config: Config) -> Mapping[str, list[str]]:
    """List the paths of each kind of place that a configuration names, as they are written."""
    caches = [table["cache"] for table in config.gates.values() if "cache" in table]
    replayed = [path for name in _list_models(config) if (path := find_recording(name)) is not None]
    more = {"caches": caches, "recordings": replayed, "runs": _list_served(config), "labels": []}
    return {name: [*paths, *config.forget.get(name, ())] for name, paths in more.items()}


def _list_served(config: Config) -> list[str]:
    return [config.server["runs"]] if "runs" in config.server else []


def _list_models(config: Config) -> Iterator[str]:
    """List the names of judges and models that tables name, each of which may be a recording."""
    yield from (seat for judge in config.judges.values() for seat in judge.get("seats", ()))
    asking = [config.approvals, *(gate.get("ask", {}) for gate in config.gates.values())]
    yield from (table["first"] for table in asking if "first" in table)
    deciding = [config.defaults, config.server, *config.gates.values()]
    yield from (table["judge"] for table in deciding if isinstance(table.get("judge"), str))


def _find_named(config: Config, paths: Iterable[str]) -> Iterator[Path]:
    """Find the files that paths of the configuration name, of which the last part may have a ``*``.

    A link counts if the configuration writes it out, and not if a ``*`` finds it: whoever can write in that folder
    could have any file of the machine changed by a link to it.
    """
    for path, starred in _find_files(config, paths):
        if not (starred and path.is_symlink()):
            yield path


def _find_links(config: Config, paths: Iterable[str]) -> Iterator[Path]:
    return (path for path, starred in _find_files(config, paths) if starred and path.is_symlink())


def _find_files(config: Config, paths: Iterable[str]) -> Iterator[tuple[Path, bool]]:
    """Find the files that paths name, each with whether a ``*`` found it."""
    for text in paths:
        path = config.resolve_path(text)
        if "*" in path.name:
            yield from ((match, True) for match in sorted(path.parent.glob(path.name)))
        else:
            yield path, False
