"""Runs of one data set, to be looked at and compared: two versions of the answers, another judge, and hostile ones."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from adjudge.runs import RunItem
from kit.reports import (
    HOSTILE,
    keep_run,
    list_example,
    list_hostile,
    make_hostile_manifest,
    make_item,
    make_manifest_of,
    make_result,
)

CASES = 120

DATASET = "support.jsonl"


def list_versions(cases: int = CASES) -> tuple[list[RunItem], list[RunItem]]:
    """The same questions, answered by two versions of a program."""
    before = list_example(cases, 4)
    after = [
        replace(new, case=replace(new.case, label=old.case.label))
        for old, new in zip(before, list_example(cases, 9), strict=True)
    ]
    return bind(before), bind(after)


def bind(items: Iterable[RunItem]) -> list[RunItem]:
    """The items with the digests of their cases, by which two runs are compared."""
    return [replace(item, subject=hashlib.sha256(repr(item.case).encode()).hexdigest()) for item in items]


def make_manifest(day: int, cases: int = CASES, **changes: Any) -> dict[str, Any]:
    """The manifest of a run that began on a day of November."""
    return make_manifest_of(cases) | {"created_at": f"2026-11-{day:02}T09:14:00+00:00"} | changes


def keep_versions(folder: Path, cases: int = CASES) -> None:
    """The runs ``before``, ``after`` (new answers) and ``quick`` (another judge on the old answers)."""
    before, after = list_versions(cases)
    folder.mkdir(parents=True, exist_ok=True)
    keep_run(folder / "before", before, make_manifest(20, cases)).close()
    keep_run(folder / "after", after, make_manifest(22, cases)).close()
    quick = bind(replace(new, case=old.case) for old, new in zip(before, after, strict=True))
    other: dict[str, Any] = {"digests": {"judge": "x"}, "judge": {"kind": "judge", "name": "quick"}}
    keep_run(folder / "quick", quick, make_manifest(21, cases, **other)).close()


TALK = [{"role": ("user", "assistant")[number % 2], "content": f"turn {number}"} for number in range(700)]
"""More steps than a page shows at first."""


def list_odd() -> Sequence[RunItem]:
    """Cases whose ids and texts no address and no page was made for."""
    return [
        make_item(0, id="x" * 3_000, content="long " * 400_000),
        make_item(1, make_result("failed", reasoning="r" * 2_000_000), id="..", content="a\n" * 1_000),
        make_item(2, id="a/b?c#d&e=%41", content="slashes"),
        make_item(3, id="\u202eevil", content="javascript:alert(1)"),
        make_item(4, id=HOSTILE[:900], content="hostile"),
        make_item(5, id="talk", content=TALK, context="A contract. " * 20_000),
    ]


def keep_hostile(folder: Path) -> None:
    """The runs ``hostile``, twice, and ``odd``."""
    folder.mkdir(parents=True, exist_ok=True)
    manifest = make_hostile_manifest() | {"status": "finished"}
    keep_run(folder / "hostile", bind(list_hostile()), manifest).close()
    changed = [replace(item, case=replace(item.case, content=f"{HOSTILE} again")) for item in list_hostile()]
    keep_run(folder / "hostile-again", bind(changed), manifest).close()
    keep_run(folder / "odd", bind(list_odd()), make_manifest(19, 5, dataset={"name": "odd.jsonl"})).close()
