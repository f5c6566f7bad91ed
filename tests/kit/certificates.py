"""Runs that people labelled, their certificates, and ledgers that sign them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from adjudge import Judge, Ledger
from adjudge.guards import Certificate
from adjudge.labels import LabelTask, open_label_queue
from adjudge.ledger import create_signing_key
from adjudge.measurement import certify_sync
from kit.labels import label_all
from kit.runs import Words, do, make_cases

CASES, LABELLED = 90, 60


class Reported(Words):
    """A model of words whose provider reports a name for it."""

    def __init__(self, reports: str | None = "words-2026", name: str = "words") -> None:
        super().__init__(name)
        self.reports = reports

    async def complete(self, request: Any, /) -> Any:
        from dataclasses import replace

        return replace(await super().complete(request), model=self.reports)


def is_good(task: LabelTask) -> bool:
    """What people say of the cases of ``make_cases``: that those are good which say so."""
    return "good" in str(task.content)


def make_labelled_run(
    place: Path,
    judge: Any = None,
    *,
    cases: int = CASES,
    labelled: int = LABELLED,
    decide: Callable[[LabelTask], Any] = is_good,
    raters: tuple[str, ...] = ("ann",),
    **options: Any,
) -> Path:
    """A run of which people labelled some cases, in the random order in which they are shown."""
    unlabelled = list(map(_drop_label, make_cases(cases)))
    do(unlabelled, judge or Judge(Reported()), out=place, **options)
    with open_label_queue(place, per_case=len(raters)) as queue:
        for rater in raters:
            label_all(queue, rater, decide, most=labelled)
    return place


def _drop_label(case: Any) -> Any:
    from dataclasses import replace

    return replace(case, label=None)


def make_signed_ledger(folder: Path, url: str | None = None, name: str = "ledger") -> Ledger:
    """A ledger with a key of its own; the key is beside it."""
    key = folder / f"{name}.pem"
    if not key.exists():
        create_signing_key(key)
    return Ledger(url or folder / f"{name}.db", key=str(key))


def make_certificate_file(run: Path, ledger: Ledger | None, out: Path, **options: Any) -> Certificate:
    """The certificate of a run in a file."""
    return certify_sync(run, ledger=ledger, out=out, **options)
