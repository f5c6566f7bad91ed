"""What a run says of itself, in ``run.json``: what was judged by whom, how it ended and what it came to."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from adjudge._plain import to_plain
from adjudge.errors import AdjudgeError, UsageError
from adjudge.result import make_id

FILE = "run.json"
SCHEMA = "adjudge/run/1"
LARGEST = 50_000_000
"""Bytes of the largest manifest that is read; one has some thousand."""

_DIGESTS = {"judge": "the judge", "rubric": "the rubric", "asked": "what is asked"}


def make_manifest(**about: Any) -> dict[str, Any]:
    """The manifest of a run that begins now."""
    now = datetime.now(UTC).isoformat()
    # Of the package itself, which stands above this module and is there whenever this one is.
    versions = {"adjudge": sys.modules["adjudge"].__version__, "python": platform.python_version()}
    head = {"schema": SCHEMA, "id": make_id(), "created_at": now, "updated_at": now, "status": "running"}
    return head | {"versions": versions} | to_plain(about)


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write a manifest in one step, readable by its owner alone: there is the old one or the new one."""
    path, fresh = folder / FILE, folder / f"{FILE}.new"
    try:
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(json.dumps(manifest, indent=2).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError as error:
        raise AdjudgeError(f"the run {folder} cannot be written: {error.strerror}") from None


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a run; raises ``UsageError`` when it is none of ours."""
    path = folder / FILE
    try:
        with path.open("rb") as file:
            found = json.loads(file.read(LARGEST))
    except FileNotFoundError:
        raise UsageError(f"{folder} holds no run: there is no {FILE} in it; name a folder of `adjudge run`") from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}; name a folder of `adjudge run`") from None
    except (ValueError, RecursionError):
        raise UsageError(f"{path} is not JSON, so it is no run's; name a folder of `adjudge run`") from None
    said = found.get("schema") if isinstance(found, dict) else None
    if said != SCHEMA:
        raise UsageError(f"{path} is of the schema {said!r}, not {SCHEMA!r}; name a folder of `adjudge run`")
    return found


def check_same(folder: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise ``UsageError`` naming what changed since a run began, where its results could not stand side by side."""
    for name, shown in _DIGESTS.items():
        if before["digests"].get(name) != now["digests"][name]:
            changed = _find_change(before.get(name), now.get(name))
            raise UsageError(
                f"the run {folder} cannot go on: {shown} changed ({changed}); go on with what it began with, or begin "
                "another run"
            )
    was, asked = before["options"], now["options"]
    for name in ("sample", "seed"):
        if was.get(name) != asked[name]:
            raise UsageError(
                f"the run {folder} cannot go on: it has {name}={was.get(name)!r}, and {asked[name]!r} was asked for"
            )
    # Another number of cases is another draw, of other cases.
    if asked["sample"] is not None and before["dataset"]["cases"] != now["dataset"]["cases"]:
        raise UsageError(
            f"the run {folder} cannot go on: it was a sample of {before['dataset']['cases']} cases, and the data set "
            f"has {now['dataset']['cases']} now"
        )
    if was.get("repeat", 1) > asked["repeat"]:
        raise UsageError(
            f"the run {folder} cannot go on: it has repeat={was['repeat']}, and fewer, {asked['repeat']}, were asked "
            "for"
        )


def _find_change(before: Any, now: Any, path: str = "") -> str:
    """The first place in which two descriptions differ, in a few words."""
    if isinstance(before, dict) and isinstance(now, dict):
        for name in [*before, *(name for name in now if name not in before)]:
            if before.get(name) != now.get(name):
                return _find_change(before.get(name), now.get(name), f"{path}.{name}" if path else str(name))
    if isinstance(before, list) and isinstance(now, list):
        for number, (old, new) in enumerate(zip(before, now, strict=False), 1):
            if old != new:
                return _find_change(old, new, f"{path} {number}")
    return f"{path}: {_shorten(before)} before, {_shorten(now)} now".removeprefix(": ")


def _shorten(value: Any) -> str:
    from adjudge._display import clean

    said = clean(json.dumps(value, ensure_ascii=False), keep_lines=False)
    return said if len(said) <= 80 else f"{said[:77]}..."
