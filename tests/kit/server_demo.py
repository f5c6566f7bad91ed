"""A server's ledger with a fortnight of decisions in it, for tests and pictures of the pages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

from adjudge import CriterionResult, Decision, JudgeChainResult, JudgeResult, Ledger, RuleResult, Usage
from adjudge.labels import store as label_store
from adjudge.ledger import store
from adjudge.result import make_id

CONFIG = """
[gates.refunds]
rules = [{name = "length", max = 4000}]
on_failed = "ask"
ask = {approvers = ["Ana", "Ben"], required = 2, expires_in = 3600}

[gates.replies]
rules = [{name = "length", max = 40}]

[ledger]
url = "sqlite:///adjudge.db"
store_content = "full"

[server]
runs = "runs"
"""

CONTENT = """Dear Mr Brandt,

the rucksack reached you a day after your flight, and I am sorry for that. I have refunded its price, 172.00 euros, \
to your card. You will have the money within ten working days. Shipping is not part of the refund, as the delay was \
under five days, which you surely understand.

Fernhill Support"""

_NAMES = ("openai:gpt-6.1-terra", "anthropic:claude-haiku-5-5", "local:qwen3-8b")

_WHY = (
    "It answers every question of the customer.",
    "It promises a date that the policy does not give.",
    "It refunds shipping without a ground in the policy.",
    "The amount is that of the order.",
    "It is polite and names the next step.",
)


def make_chain(text: str = "", *, content: str = CONTENT) -> JudgeChainResult:
    """A failed judgement of three seats with quotations; ``text`` replaces every text that somebody else words."""
    reasons = ("Ten working days is what the policy gives.", "It talks down to the customer.")
    quoted = (("You will have the money within ten working days",), ("which you surely understand", "not in there"))

    def criteria(scores: Sequence[float]) -> tuple[CriterionResult, ...]:
        return tuple(
            CriterionResult(
                name=text or name,
                score=score,
                passed=score >= 0.7,
                threshold=0.7,
                reasoning=text or reason,
                evidence=(text,) if text else quotes,
            )
            for name, score, reason, quotes in zip(
                ("follows the policy", "clear and polite"), scores, reasons, quoted, strict=True
            )
        )

    def seat(name: str, outcome: Any, scores: Sequence[float]) -> JudgeResult:
        return JudgeResult(
            outcome=outcome,
            judge=text or name,
            model=text or name,
            score=sum(scores) / 2,
            threshold=0.8,
            criteria=criteria(scores),
            reasoning=text or reasons[1],
            raw_response=text or json.dumps({"criteria": list(scores)}),
            duration_ms=1200,
        )

    seats = (
        seat(_NAMES[0], "failed", (0.92, 0.41)),
        seat(_NAMES[1], "failed", (0.95, 0.46)),
        seat(_NAMES[2], "passed", (0.9, 0.88)),
    )
    return JudgeChainResult(
        outcome="failed",
        judge=text or "careful",
        strategy="majority",
        results=seats,
        score=0.67,
        threshold=0.8,
        criteria=criteria((0.92, 0.41)),
        rule_results=(RuleResult(name=text or "length", passed=True), RuleResult(name=text or "secrets", passed=True)),
        reasoning=text or reasons[1],
        detail=text or "1 passed, 2 failed; 2 of 3 needed",
        suggestions=(text or "Leave out what the customer surely understands.",),
        usage=Usage(input_tokens=3_000, output_tokens=400, cost_usd=0.0031),
        duration_ms=1_860,
        subject="b2" * 32,
    )


@contextmanager
def written_at(moment: datetime, module: ModuleType = store) -> Iterator[None]:
    """Have what a store keeps recorded as of this moment: a ledger takes its times from the clock alone."""

    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:  # type: ignore[override] - of the plain class
            return moment if tz is None else moment.astimezone(tz)

    own = module.datetime  # type: ignore[attr-defined] - the module's own import
    module.datetime = Clock  # type: ignore[attr-defined]
    try:
        yield
    finally:
        module.datetime = own  # type: ignore[attr-defined]


@contextmanager
def labelled_at(moment: datetime) -> Iterator[None]:
    """Have labels recorded as of this moment."""
    with written_at(moment, label_store):
        yield


async def fill_ledger(folder: Path, *, days: int = 28, a_day: int = 26, now: datetime | None = None) -> None:
    """Some decisions of two gates on every day, with a rise of undecided ones at the end."""
    draw = Random(7)
    today = now or datetime.now(UTC)
    moments = [
        today - timedelta(days=back, minutes=7 * number + 5)
        for back in range(days)
        for number in range(a_day if (today - timedelta(days=back)).weekday() < 5 else a_day // 2)
    ]
    async with Ledger(f"sqlite:///{folder / 'adjudge.db'}", store_content="full") as ledger:
        await ledger.prepare()
        for moment in sorted(moments):
            with written_at(moment):
                await _append(ledger, draw, moment, today)


async def tell_story(folder: Path, *, text: str = "", content: str = CONTENT) -> int:
    """A decision that was held, what two people said, and its end; the place of the last entry."""
    result = make_chain(text, content=content)
    approval = "019aa2c4-77e1-7d0b-9f36-5c19e0aa41d2-" + "c1" * 16
    about = {"approval": approval, "gate": "refunds", "result": {"id": result.id, "outcome": "failed"}}
    held = Decision(
        gate="refunds",
        allowed=False,
        pending=True,
        decided_by="policy",
        result=result,
        subject=result.subject,
        detail=text or "on_failed is ask",
        approval_id=approval,
        config="77" * 32,
    )
    votes = (
        ("Ben Okafor", "Policy and amount are right. The tone is not nice but it is not wrong."),
        ("Chiara Conti", "Agree. I have proposed a level for the tone criterion."),
    )
    ended = replace(held, id=make_id(), allowed=True, pending=False, decided_by="human")
    async with Ledger(f"sqlite:///{folder / 'adjudge.db'}", store_content="full") as ledger:
        options: dict[str, Any] = {"subject": result.subject}
        await ledger.append(held, kind="decision", gate="refunds", content=content, **options)
        await ledger.append({**about, "approvers": ["Ana"]}, kind="approval.requested", **options)
        for name, reason in votes:
            vote = {"by": text or name, "approved": True, "accepted": True, "reason": text or reason}
            await ledger.append({**about, **vote}, kind="approval.voted", **options)
        end = {"status": "approved", "decided_by": "human", "closed_by": [text or name for name, _ in votes]}
        await ledger.append({**about, **end}, kind="approval.closed", **options)
        return await ledger.append(ended, kind="decision", gate="refunds", content=content, **options)


async def _append(ledger: Ledger, draw: Random, moment: datetime, today: datetime) -> None:
    gate = draw.choice(("refunds", "replies", "replies"))
    late = (today - moment).days < 4 and gate == "replies"
    outcome: Any = draw.choices(("passed", "failed", "undecided"), (76, 14, 18 if late else 3))[0]
    score = (
        None
        if outcome == "undecided"
        else round(draw.uniform(0.8, 0.99) if outcome == "passed" else draw.uniform(0.3, 0.78), 2)
    )
    result = JudgeResult(
        outcome=outcome,
        undecided_because="timeout" if outcome == "undecided" else None,
        judge="careful" if gate == "refunds" else "quick",
        score=score,
        threshold=0.8,
        reasoning=draw.choice(_WHY),
        duration_ms=draw.uniform(600, 4_000),
        usage=Usage(input_tokens=900, output_tokens=80, cost_usd=round(draw.uniform(0.001, 0.004), 4)),
        created_at=moment,
    )
    held = outcome == "failed" and gate == "refunds"
    decision = Decision(
        gate=gate,
        allowed=outcome == "passed",
        pending=held,
        decided_by="judge",
        result=result,
        detail="" if held else "on_failed is block" if outcome == "failed" else "",
        subject=f"{draw.getrandbits(256):064x}",
        duration_ms=result.duration_ms,
        created_at=moment,
    )
    await ledger.append(decision, kind="decision", subject=decision.subject, gate=gate)


def keep_runs(folder: Path) -> None:
    """A run folder with 240 judged cases."""
    from kit.reports import keep_run, list_example, make_manifest_of

    (folder / "runs").mkdir()
    keep_run(folder / "runs" / "support", list_example(), make_manifest_of(240)).close()
