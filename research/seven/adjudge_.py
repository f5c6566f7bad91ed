"""The jobs of adjudge: ``run`` with a judge, as docs/runs.md begins; another page is named where a job has its own."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from pathlib import Path
from subprocess import run as run_command
from typing import Any

from adjudge import Approvals, Gate, Judge, JudgeChain, Ledger, compare_sync, run
from adjudge.dataset import Label, write_labels
from adjudge.measurement import measure_file
from seven.work import (
    BROKEN,
    CRITERION,
    DONE,
    FINE,
    LABELLED,
    MODEL,
    NO_JSON,
    NOT,
    ROWS,
    RUDE,
    TASK,
    TIMEOUT_S,
    Found,
    Server,
    call_job,
    kill_at,
    weigh_fault,
    weigh_resumed,
    weigh_second,
)


def make_judge(server: Server, mode: str, run_name: str = "one", **options: Any) -> Judge:
    return Judge(f"{server.get_address(mode, run_name)}#{MODEL}", **options)


def evaluate(contents: list[str], judge: Any, **options: Any) -> Any:
    given = {"criteria": CRITERION, "task": TASK, "concurrency": 1} | options
    return run([{"content": content} for content in contents], judge, **given).finish_sync()


def read_verdicts(done: Any) -> list[str]:
    return [describe(item.result) for item in sorted(done.items(), key=lambda item: item.place)]


def describe(result: Any) -> str:
    return (
        f"no verdict: undecided, {result.undecided_because}" if result.outcome == "undecided" else str(result.outcome)
    )


def try_mode(server: Server, mode: str, **options: Any) -> Found:
    return weigh_fault(*read_verdicts(evaluate([FINE, BROKEN], make_judge(server, mode, **options))))


def down(server: Server) -> Found:
    return try_mode(server, "down")


def cut(server: Server) -> Found:
    return try_mode(server, "cut")


def scale(server: Server) -> Found:
    return try_mode(server, "scale")


def timeout(server: Server) -> Found:
    return try_mode(server, "hang", timeout=TIMEOUT_S)


def again(server: Server) -> Found:
    """docs/judge.md: one re-ask, by default."""
    return weigh_second(lambda: read_verdicts(evaluate([BROKEN], make_judge(server, "again")))[0])


def orders(server: Server) -> Found:
    """docs/compare.md."""
    pair = compare_sync(FINE, ROWS[0], judge=make_judge(server, "first"), criteria=CRITERION)
    told = f"{[(item.order, item.preferred) for item in pair.orders]}: {pair.preferred}, decided by {pair.decided_by}"
    return Found(DONE if pair.flipped and pair.preferred == "tie" else NOT, told)


def function(_server: Server) -> Found:
    """docs/judge.md, "What a judge in code returns"."""
    values = {"true": True, "number": 0.25, "reason": (0.25, "why"), "none": None}
    told = dict(zip(values, read_verdicts(evaluate(list(values), lambda content: values[content])), strict=True))
    return Found(DONE if told["none"].startswith("no verdict") else NOT, str(told))


def several(server: Server) -> Found:
    """docs/chain.md."""
    seats = [make_judge(server, mode, mode) for mode in ("good", "good", "down-all")]
    passed, split = (
        describe(JudgeChain(chosen, strategy="majority", timeout=20.0).evaluate_sync(FINE, criteria=CRITERION))
        for chosen in (seats, [seats[0], make_judge(server, "fails", "fails"), seats[2]])
    )
    told = f"two passes and one down: {passed}; one pass, one fail, one down: {split}"
    return Found(DONE if passed == "passed" and split.startswith("no verdict") else NOT, told)


def rule(server: Server) -> Found:
    """docs/rules.md."""
    [told] = read_verdicts(evaluate([NO_JSON], make_judge(server, "good"), rules=[{"json": True}]))
    return Found(DONE if told == "failed" and not server.count() else NOT, f"{told} after {server.count()} requests")


def long_run(server: Server) -> Found:
    done = evaluate(ROWS, make_judge(server, "slow"), out="rows", resume=Path("rows").exists())
    return Found(DONE, str(done.counts["passed"]))


def resume(server: Server) -> Found:
    before = kill_at(call_job("adjudge", "long_run", server), server, 3)
    judged = int(long_run(server).evidence)
    return weigh_resumed(before, server.count(), judged)


def cache(server: Server) -> Found:
    """docs/cache.md."""
    evaluate(ROWS, make_judge(server, "good"), cache="replies.sqlite")
    first = server.count()
    evaluate(ROWS, make_judge(server, "good"), cache="replies.sqlite")
    told = f"{first} requests, and {server.count() - first} the second time"
    return Found(DONE if first and server.count() == first else NOT, told)


def budget(server: Server) -> Found:
    """docs/cost.md: what a call may cost at most is reserved before it is made."""
    judge = make_judge(server, "dear", max_output_tokens=100)
    prices = {MODEL: {"input": 1000.0, "output": 1000.0}}  # a reply costs 1.10
    done = evaluate(ROWS, judge, prices=prices, budget=5.0)
    counts, spent = done.counts, done.manifest["budget"]["spent"]
    told = f"{counts['passed']} passed, {counts['undecided']} undecided: {spent:.2f} of 5.00 dollars spent"
    return Found(DONE if 0 < spent <= 5 and counts["undecided"] else NOT, told)


def status(server: Server) -> Found:
    """docs/ci.md."""
    command = [sys.executable, "-m", "adjudge", "judge", "--criteria", CRITERION]
    ended = []
    for mode, content in (("good", FINE), ("good", RUDE), ("cut", BROKEN)):
        judge = ["--judge", f"{server.get_address(mode)}#{MODEL}"]
        done = run_command([*command, *judge], input=content, capture_output=True, text=True, check=False)
        ended.append(done.returncode)
    return Found(DONE if ended == [0, 1, 3] else NOT, f"adjudge judge: passed, failed, undecided ended with {ended}")


def people(server: Server) -> Found:
    """docs/agree.md."""
    done = evaluate([content for content, _ in LABELLED], make_judge(server, "good"))
    judged = [
        Label(case=f"c{at}", rater="judge", kind="model", value=said == "passed")
        for at, said in enumerate(read_verdicts(done))
    ]
    persons = [Label(case=f"c{at}", rater="ann", value=good) for at, (_, good) in enumerate(LABELLED)]
    write_labels("labels.jsonl", [*persons, *judged])
    [found] = measure_file("labels.jsonl")
    sorts = [(one.case, one.sort) for one in found.disagreements]
    return Found(DONE, f"specificity {found.agreement.specificity.value}, disagreements {sorts}")


def approval(_server: Server) -> Found:
    """docs/approvals.md."""

    async def ask() -> tuple[str, bool, bool]:
        async with Ledger("sqlite:///adjudge.db") as ledger:
            approvals = Approvals(ledger)
            asked = {"approvers": ["ana"]}
            gate = Gate("pay", rules=[{"length": 1}], on_rule="ask", approvals=approvals, ask=asked, wait=False)
            decision = await gate.check("pay 5")
            before = bool(decision)
            await approvals.decide(decision.approval_id, "ana", True)
            return decision.explain(), before, bool(await gate.resume(decision, content="pay 5"))

    told, before, after = asyncio.run(ask())
    return Found(
        DONE if (before, after) == (False, True) else NOT, f"{told}; let through before {before}, after {after}"
    )


CHANGE = """
DROP TRIGGER adjudge_ledger_no_update;
UPDATE adjudge_ledger SET payload = CAST(replace(CAST(payload AS TEXT), 'passed', 'failed') AS BLOB) WHERE seq = 2;
"""
"""A change by somebody who may write the file."""


def record(_server: Server) -> Found:
    """docs/ledger.md."""

    async def keep() -> tuple[str, str]:
        async with Ledger("sqlite:///record.db") as ledger:
            await ledger.append(Judge(lambda content: True).evaluate_sync(FINE, criteria=CRITERION), gate="send")
            before = (await ledger.verify()).valid
        with sqlite3.connect("record.db") as file:
            file.executescript(CHANGE)
        async with Ledger("sqlite:///record.db") as ledger:
            after = await ledger.verify()
        return f"valid {before}; after passed was made failed in its file: {after.valid}, {after.code}", str(
            after.valid
        )

    told, after = asyncio.run(keep())
    return Found(DONE if after == "False" else NOT, told)
