"""The file of an estimate in a run's folder; the run is compared with it when it has ended."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from adjudge.errors import AdjudgeError, Argument, UsageError
from adjudge.formats.msgspec_types import read_typed_json
from adjudge.runs.folder import MANIFEST_FILE, write_document

SCHEMA = "adjudge/estimate/1"

ESTIMATE_FILE = "estimate.json"

_LARGEST = 10_000_000
"""Bytes of the largest file that is read; one has some thousand."""


class EstimatedTotal(msgspec.Struct, frozen=True, kw_only=True):
    """The estimated totals of a whole run."""

    calls: float
    input_tokens: float
    output_tokens: float
    live_usd: float | None = None
    least_usd: float | None = None
    most_usd: float | None = None
    batch_usd: float | None = None
    cached_usd: float | None = None


class KeptEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """An estimate as its file has it."""

    schema: str
    judgements: int
    total: EstimatedTotal
    digests: dict[str, str | None]
    options: dict[str, Any]


def keep_estimate(folder: Path, estimate: Mapping[str, Any]) -> Path:
    """Write an estimate, as plain data, into the folder of the run to come.

    Raises ``UsageError`` where a run has begun in it.
    """
    if (folder / MANIFEST_FILE).exists():
        raise UsageError(
            f"{folder} holds a run already, and an estimate is made before one begins; leave ",
            Argument("out"),
            " out, or name another folder",
            argument="out",
        )
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise AdjudgeError(f"the run {folder} cannot be written: {error.strerror}; name another folder") from None
    write_document(folder, ESTIMATE_FILE, estimate)
    return folder / ESTIMATE_FILE


def find_estimate(folder: Path, manifest: Mapping[str, Any]) -> KeptEstimate | None:
    """Read the estimate in a run's folder; ``None`` if there is none, or if it is of another question or judge."""
    path = folder / ESTIMATE_FILE
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST:
            return None
        estimate = read_typed_json(path.read_bytes(), KeptEstimate)
    except (OSError, msgspec.DecodeError, RecursionError):
        return None
    options = manifest.get("options") or {}
    is_of_run = estimate.digests == manifest.get("digests") and all(
        options.get(name) == value for name, value in estimate.options.items()
    )
    return estimate if estimate.schema == SCHEMA and is_of_run else None
