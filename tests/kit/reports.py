"""Runs to report: an example that looks like a real one, and one in which everything is hostile."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from adjudge import Case, CriterionResult, Judge, JudgeChainResult, JudgeResult, RuleResult, Usage, open_run
from adjudge.dataset import make_content_set
from adjudge.report import Report, make_report
from adjudge.runs import Run, RunItem
from adjudge.runs.folder import make_manifest, write_manifest
from adjudge.runs.store import RunStore
from kit.redecisions import Line, Told, do

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)><svg/onload=alert(3)>"
    "\"'><b id=forged>bold</b></td></details></style><!-- --> &lt;i&gt; {{7*7}} "
    "# heading [link](http://evil.example) ![i](http://evil.example/p.png) @somebody #12 `tick` | pipe <!--\n"
    "\n## forged\n| a | b |\n|---|---|\n\x1b[31mred\x1b]0;title\x07\u202egnp.exe\u2066 ]]> javascript:alert(4)"
)
"""The texts that would become markup, script, a heading, a link, a mention, a colour or another direction somewhere."""

GROUPS = ("refund", "delivery", "account")
SEATS = ("openai:gpt-6.1-terra", "anthropic:claude-haiku-5-5", "local:qwen3-8b")
CRITERIA = {"answers the question": 0.5, "invents nothing": None, "polite": None}
REASONS = {
    "answers the question": (
        "It answers what was asked, step by step.",
        "It repeats the question and sends the customer to another department.",
    ),
    "invents nothing": (
        "Every claim stands in the policy.",
        "It promises a refund within 24 hours, and the policy says ten days.",
    ),
    "polite": ("Friendly without being familiar.", "Blames the customer in its first sentence."),
}
SILENT = (
    ("timeout", "no answer within 5 s"),
    ("unparseable", "the reply holds no object that begins with the token"),
    ("split", "one passed, one failed, one is undecided: timeout"),
    ("refused", "the provider refused to answer"),
)


def make_result(outcome: str = "passed", **changes: Any) -> JudgeResult:
    """A judgement of a single judge."""
    members = {"judge": "careful", "score": {"passed": 0.9, "failed": 0.3}.get(outcome), "threshold": 0.7}
    if outcome == "undecided":
        members["undecided_because"] = "timeout"
    return JudgeResult(**(members | {"outcome": outcome} | changes))


def make_item(place: int, result: Any = None, *, sample: int = 0, **case: Any) -> RunItem:
    """One case judged once."""
    about = {"id": f"case-{place}", "content": f"content {place}"} | case
    return RunItem(
        case=Case(**about),
        place=place,
        sample=sample,
        result=make_result() if result is None else result,
        subject=f"{place:064x}",
    )


def make_manifest_of(cases: int, **changes: Any) -> dict[str, Any]:
    """The manifest of a finished run."""
    seats = [{"kind": "judge", "name": name, "model": {"name": name}} for name in SEATS]
    return make_manifest(
        command=["adjudge", "run", "support.jsonl", "--rubric", "support.yaml"],
        dataset={"path": "/data/support.jsonl", "name": "support.jsonl", "cases": cases},
        judge={"kind": "chain", "name": f"majority({', '.join(SEATS)})", "seats": seats},
        rubric={"name": "Support answers", "passing_threshold": 0.7},
        asked={},
        digests={},
        options={"repeat": 1, "sample": None},
    ) | {"status": "finished", **changes}


def keep_run(folder: Path, items: Iterable[RunItem], manifest: Mapping[str, Any] | None = None) -> Run:
    """A run's folder with these items."""
    items = list(items)

    store = RunStore(folder).create()

    async def keep() -> None:
        async with asyncio.TaskGroup() as group:
            for item in items:
                group.create_task(store.keep(item))
        await store.flush()

    asyncio.run(keep())
    summary = store.sum_up()
    contents = make_content_set(store.list_contents()).to_dict()
    store.close()
    members = {**(manifest or make_manifest_of(len({item.place for item in items})))}
    members["dataset"] = {"contents": contents, **members["dataset"]}
    write_manifest(folder, {"counts": summary.pop("counts"), "summary": summary} | members)
    return open_run(folder)


class Kept:
    """A run that is in no folder, with what a report reads of one."""

    def __init__(self, items: Iterable[RunItem], manifest: Mapping[str, Any]) -> None:
        self._items = items
        self.manifest = manifest

    @property
    def status(self) -> str:
        return str(self.manifest.get("status", ""))

    def items(self) -> Iterator[RunItem]:
        return iter(self._items)


def report_of(items: Iterable[RunItem], manifest: Mapping[str, Any], **options: Any) -> Report:
    """The report of a run that is in no folder."""
    return make_report(Kept(items, manifest), **options)  # type: ignore[arg-type]


def list_example(cases: int = 240, seed: int = 4) -> list[RunItem]:
    """Answers of a support agent, judged by a chain of three: some fail, some nobody could decide."""
    chance = random.Random(seed)
    return [_make_example(place, chance) for place in range(cases)]


def _make_example(place: int, chance: random.Random) -> RunItem:
    group = GROUPS[place % 3]
    quality = min(max(chance.gauss({"refund": 0.68, "delivery": 0.84, "account": 0.8}[group], 0.16), 0.02), 0.99)
    seats = [_judge(name, quality + chance.gauss(0, 0.1), chance) for name in SEATS]
    if place % 11 == 5:
        seats[place % 3] = _fall_silent(SEATS[place % 3], chance)
    case = Case(
        id=f"answer-{place:04}",
        content=f"Dear customer, thank you for writing about your {group}. {_write_answer(quality)}",
        task=f"A customer asks about a {group}: where is my money, and when?",
        reference="Refunds take ten working days. Deliveries are tracked under Orders.",
        label=quality + chance.gauss(0, 0.08) > 0.7 if place % 2 else None,
        group=group,
        metadata={"channel": chance.choice(["mail", "chat"]), "agent": f"bot-{place % 4}"},
    )
    return RunItem(case=case, place=place, subject=f"{place:064x}", result=_decide(seats, place, chance))


def _write_answer(quality: float) -> str:
    return (
        "The money is back within ten working days."
        if quality > 0.7
        else "You will have it within 24 hours, I promise."
    )


def _judge(name: str, quality: float, chance: random.Random) -> JudgeResult:
    scores = {item: min(max(quality + chance.gauss(0, 0.12), 0.0), 1.0) for item in CRITERIA}
    criteria = tuple(
        CriterionResult(
            name=item,
            score=round(score, 2),
            passed=score >= (CRITERIA[item] or 0.5),
            threshold=CRITERIA[item],
            reasoning=REASONS[item][score < 0.62],
        )
        for item, score in scores.items()
    )
    mean = sum(item.score or 0 for item in criteria) / len(criteria)
    passed = mean >= 0.7 and criteria[0].passed
    return make_result(
        "passed" if passed else "failed",
        judge=name,
        score=mean,
        criteria=criteria,
        reasoning=min(criteria, key=lambda item: item.score or 0).reasoning,
        duration_ms=chance.lognormvariate(6.9, 0.5),
        usage=Usage(
            input_tokens=900 + chance.randrange(200),
            output_tokens=140 + chance.randrange(60),
            cached_tokens=600,
            cost_usd=None if name.startswith("local") else 0.0006,
        ),
    )


def _fall_silent(name: str, chance: random.Random) -> JudgeResult:
    reason, detail = chance.choice(SILENT[:2])
    return make_result(
        "undecided", judge=name, undecided_because=reason, detail=detail, duration_ms=5000.0,
        raw_response="I would say it is fine." if reason == "unparseable" else None,
    )  # fmt: skip


def _decide(seats: Sequence[JudgeResult], place: int, chance: random.Random) -> JudgeChainResult:
    counts = {name: sum(seat.outcome == name for seat in seats) for name in ("passed", "failed")}
    outcome = next((name for name, number in counts.items() if number >= 2), "undecided")
    deciding = next((seat for seat in seats if seat.outcome == outcome), None)
    undecided = outcome == "undecided" or deciding is None
    return JudgeChainResult(
        outcome="undecided" if undecided else outcome,
        judge="majority",
        strategy="majority",
        results=tuple(seats),
        undecided_because="split" if undecided else None,
        decided_by="policy" if undecided else "judge",
        detail=f"{counts['passed']} passed, {counts['failed']} failed; 2 of 3 needed",
        score=None if undecided or deciding is None else deciding.score,
        threshold=0.7,
        criteria=() if undecided or deciding is None else deciding.criteria,
        reasoning="" if undecided or deciding is None else deciding.reasoning,
        suggestions=("Quote the policy instead of a date.",) if outcome == "failed" else (),
        duration_ms=max(seat.duration_ms for seat in seats),
        usage=_add(seats),
        rule_results=(
            RuleResult(name="length", passed=place % 40 != 7, severity="warning", message="longer than 400 characters"),
            RuleResult(name="secrets", passed=True),
        ),
    )


def _add(seats: Sequence[JudgeResult]) -> Usage | None:
    usages = [seat.usage for seat in seats if seat.usage is not None]
    return sum(usages[1:], usages[0]) if usages else None


def list_hostile() -> list[RunItem]:
    """Every field that anybody else writes, filled with ``HOSTILE``."""
    seat = make_result("failed", judge=HOSTILE, detail=HOSTILE, reasoning=HOSTILE)
    criteria = (CriterionResult(name=HOSTILE, score=0.2, passed=False, reasoning=HOSTILE, evidence=(HOSTILE,)),)
    rules = (RuleResult(name=HOSTILE, passed=False, message=HOSTILE),)
    texts = {"judge": HOSTILE, "detail": HOSTILE, "reasoning": HOSTILE, "suggestions": (HOSTILE,), "criteria": criteria}
    chain = JudgeChainResult(
        outcome="undecided", undecided_because="split", decided_by="policy", strategy=HOSTILE,
        results=(seat, make_result("passed", judge=f"other {HOSTILE}")), raw_response=HOSTILE,
        rule_results=rules, **texts,
    )  # fmt: skip
    case = {"content": HOSTILE, "reference": HOSTILE, "task": HOSTILE, "context": [HOSTILE], "group": HOSTILE}
    case["metadata"] = {HOSTILE: HOSTILE, "more": {"deep": HOSTILE}}
    return [
        make_item(0, chain, id=HOSTILE, label=True, **case),
        make_item(1, make_result("failed", rule_results=rules, **texts), id=f"b {HOSTILE}", label=True, **case),
        make_item(2, make_result("passed", **texts), id=f"c {HOSTILE}", label=False, **case),
    ]


def make_hostile_manifest() -> dict[str, Any]:
    """A manifest in which every text is ``HOSTILE``."""
    return make_manifest_of(
        5,
        id=HOSTILE,
        created_at=HOSTILE,
        status="interrupted",
        versions={"adjudge": HOSTILE},
        command=[HOSTILE],
        dataset={"name": HOSTILE, "path": HOSTILE, "cases": 5, "skipped": 2},
        judge={"name": HOSTILE, "model": {"name": HOSTILE}},
        rubric={"name": HOSTILE, "passing_threshold": 0.7},
    )


def make_run(folder: Path, lines: dict[str, Line] | list[Line], **options: Any) -> Path:
    """A run in which each case is answered by its line."""
    planned = lines if isinstance(lines, dict) else {str(case): line for case, line in enumerate(lines)}
    cases = options.pop("cases", None) or [Case(id=name, content=f"text {name}") for name in planned]
    do(cases, Judge(Told("x", planned), reask=0), out=folder, **options)
    return folder
