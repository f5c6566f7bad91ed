"""What a run says of itself, in ``run.json``: what was judged by whom, how it ended and what it came to."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Mapping
from contextlib import suppress
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

_OUTCOMES = ("passed", "failed", "undecided")
_SUMMARY = ("items", "cases", "undecided_because", "mean_score", "calls", "input_tokens", "output_tokens",
            "known_cost_usd", "unknown_costs", "labelled", "agreed")  # fmt: skip
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
        # A new file, and never through a link that somebody put there: it would overwrite what that points to.
        fresh.unlink(missing_ok=True)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
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
    with suppress(OSError):  # opening it says what is wrong
        if path.exists() and not path.is_file():  # a pipe would be waited for
            raise UsageError(f"{path} is not a regular file; name a folder of `adjudge run`")
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
    _check_shape(path, found)
    return found


def _check_shape(path: Path, found: Mapping[str, Any]) -> None:
    """Raise ``UsageError`` for a member that is missing or of another kind, before anybody relies on it."""
    needed = dict.fromkeys(("dataset", "judge", "asked", "digests", "options"), dict) | {"id": str, "status": str}
    if found.get("status") == "finished":  # what it came to is then taken from here
        needed |= {"counts": dict, "summary": dict}
    wrong = [name for name, kind in needed.items() if not isinstance(found.get(name), kind)]
    if not isinstance(found.get("rubric", 0), dict | None):
        wrong.append("rubric")
    if not wrong and type(found["options"].get("repeat", 1)) is not int:
        wrong.append("options.repeat")
    if not wrong and found["status"] == "finished":
        numbers, members = found["counts"], found["summary"]
        if set(numbers) != set(_OUTCOMES) or any(type(number) is not int or number < 0 for number in numbers.values()):
            wrong.append("counts")
        wrong += [f"summary.{name}" for name in _SUMMARY if name not in members]
    if wrong:
        raise UsageError(f"{path} is damaged: the manifest has no {wrong[0]} to go by; name a folder of `adjudge run`")


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
