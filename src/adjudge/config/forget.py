"""The places that ``adjudge forget`` looks through: ``[forget]`` of ``adjudge.toml``, and what other tables name.

The keys of ``[forget]`` are in ``file.py`` (``FORGET``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from adjudge.config.file import Config

_REPLAY = "replay:"


def list_configured(config: Config) -> Mapping[str, tuple[Path, ...]]:
    """List runs, caches, recordings and files of labels that a configuration names and that are there.

    A path of ``[forget]`` is seen from the file's folder, and may have ``*`` in its last part.
    """
    caches = [table["cache"] for table in config.gates.values() if "cache" in table]
    seats = [seat for judge in config.judges.values() for seat in judge.get("seats", ())]
    replayed = [seat.removeprefix(_REPLAY).partition("?")[0] for seat in seats if seat.startswith(_REPLAY)]
    served = [config.server["runs"]] if "runs" in config.server else []
    more = {"caches": caches, "recordings": replayed, "runs": served, "labels": []}
    return {
        name: tuple(dict.fromkeys(_find_files(config, [*paths, *config.forget.get(name, ())])))
        for name, paths in more.items()
    }


def _find_files(config: Config, paths: Iterable[str]) -> Iterable[Path]:
    """Find the files that paths of the configuration name, of which the last part may have a ``*``."""
    for text in paths:
        path = config.resolve_path(text)
        if "*" in path.name:
            yield from sorted(path.parent.glob(path.name))
        elif path.exists():  # a cache that was never used is not there, and holds nothing
            yield path
