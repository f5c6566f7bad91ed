"""Runs that people labelled, their certificates, and ledgers that sign them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from adjudge import Approvals, Gate, Judge, Ledger
from adjudge.dataset import make_content_set
from adjudge.guards import (
    Audit,
    Certificate,
    CertifiedJudge,
    CertifiedLabels,
    CertifiedSeat,
    CertifiedShare,
    sign_certificate,
    write_certificate,
)
from adjudge.judges import identify_judge
from adjudge.labels import LabelTask, open_label_queue
from adjudge.ledger import create_signing_key
from adjudge.measurement import certify_sync
from kit.labels import label_all
from kit.runs import Words, do, make_cases

T = TypeVar("T")

CASES, LABELLED = 90, 60

GOOD = {"name": "Good", "criteria": [{"name": "criteria", "description": "It is good."}]}
"""The rubric that judges of words are asked by."""

RARELY = Audit(share=1e-9, approvers=("ana",), promise=0.05)
"""An audit that draws nothing, unless a model changes."""


class Reported(Words):
    """A model of words whose provider reports a name for it."""

    def __init__(self, reports: str | None = "words-2026", name: str = "words") -> None:
        super().__init__(name)
        self.reports = reports

    async def complete(self, request: Any, /) -> Any:
        return replace(await super().complete(request), model=self.reports)


def is_good(task: LabelTask) -> bool:
    """Return what people say of the cases of ``make_cases``: that those are good which say so."""
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
    """A run of which people labelled some cases, in the random order in which they are shown.

    The order is fixed: one in a hundred, by chance, is refused for not looking random.
    """
    unlabelled = list(map(_drop_label, make_cases(cases)))
    do(unlabelled, judge or Judge(Reported()), out=place, **options)
    with open_label_queue(place, per_case=len(raters), seed=1) as queue:
        for rater in raters:
            label_all(queue, rater, decide, most=labelled)
    return place


def _drop_label(case: Any) -> Any:
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


def make_certificate_of(
    judge: Any,
    *,
    rubric: Any = GOOD,
    rules: Any = (),
    seats: tuple[CertifiedSeat, ...] = (CertifiedSeat(seat=(), model="words-2026"),),
    age: timedelta = timedelta(days=3),
    low: float = 0.9,
    **changes: Any,
) -> Certificate:
    """A certificate of a judge as ``certify`` makes one, without the labels of people that this would take."""
    gate = Gate("any", rubric=rubric, judge=judge, rules=rules)
    with ThreadPoolExecutor(1) as thread:  # a test may be running in a loop of its own
        identity = thread.submit(asyncio.run, identify_judge(gate.judge, gate.rubric, gate.rules)).result()
    share = CertifiedShare(value=0.95, low=low, high=0.99, of=200, level=0.95)
    members: dict[str, Any] = {
        "run": "01a222fe-80e2-75bb-a136-69490af3c872",
        "judge": CertifiedJudge(
            name="words",
            judge=identity.judge,
            rubric=str(identity.rubric),
            rubric_name="Good",
            prompt=identity.prompt,
            rules=identity.rules,
            seats=seats,
        ),
        "contents": make_content_set(["0" * 64] * 400),
        "judged_since": datetime.now(UTC) - age,
        "judged_until": datetime.now(UTC) - age,
        "labels": CertifiedLabels(
            digest="1" * 64,
            labelled=400,
            settled=400,
            people=("ann",),
            not_blind=0,
            copies=0,
            sampling="plan",
            plan="p-1",
            plan_digest="2" * 64,
            looks="one look",
            because="the 400 planned labels are there, and this is the one look at them",
            kappa=None,
            since=None,
            until=None,
        ),
        "counts": {"good": {"passed": 190, "failed": 10}, "bad": {"passed": 10, "failed": 190}},
        "sensitivity": share,
        "specificity": share,
        "pass_rate": share,
        "flips": None,
    }
    return Certificate(**members | changes)


class Certified:
    """A gate whose judge is certified, with its ledger, its approvals and the file of its certificate."""

    def __init__(self, gate: Gate, approvals: Approvals, ledger: Ledger, file: Path) -> None:
        self.gate, self.approvals, self.ledger, self.file = gate, approvals, ledger, file

    def put(self, certificate: Certificate, *, signed: bool = True) -> None:
        """Put another certificate in the place of the file."""
        self.file.write_bytes(write_certificate(sign_certificate(certificate, self.ledger) if signed else certificate))


def use_certified(
    folder: Path,
    work: Callable[[Certified], Awaitable[T]],
    *,
    url: str | None = None,
    judge: Any = None,
    certificate: Certificate | None = None,
    **options: Any,
) -> T:
    """Return what an async function makes of a gate that demands a certificate, which is there unless ``None``."""
    judge = Judge(Reported()) if judge is None else judge
    given = make_certificate_of(judge) if certificate is None else certificate

    async def go() -> T:
        ledger = make_signed_ledger(folder, url)
        async with ledger, Approvals(ledger, **options.pop("approvals_options", {})) as approvals:
            options.setdefault("require_certificate", folder / "certificate.json")
            gate = Gate(
                "answers",
                rubric=GOOD,
                judge=judge,
                ledger=ledger,
                approvals=approvals,
                **{"audit": RARELY, "ask": {"approvers": ["ana"]}, "show_content": True, "wait": False} | options,
            )
            certified = Certified(gate, approvals, ledger, folder / "certificate.json")
            certified.put(given)
            return await work(certified)

    return asyncio.run(go())
