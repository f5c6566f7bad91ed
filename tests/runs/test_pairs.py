"""A run of pairs: each case is two contents, compared in both orders, kept and gone on with like any other."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from adjudge import Case, Judge, JudgeChain, PairResult, Rubric, UsageError, open_run, run
from adjudge.models import ReplayModel
from adjudge.runs import redecide
from adjudge.testing import ScriptedModel
from kit.judges import names
from kit.pairs import BAD, GOOD, Chooser, prefer, prefer_good
from kit.runs import CRITERIA, take

pytestmark = pytest.mark.timed


def make_pairs(number: int) -> list[Case]:
    """Pairs of which every second has the good one first, labelled as they are."""
    orders = [{"a": GOOD, "b": BAD}, {"a": BAD, "b": GOOD}]
    labels = ["first", "second"]
    return [Case(id=f"pair-{n}", content=orders[n % 2], label=labels[n % 2]) for n in range(number)]


def do(cases: Any, judge: Any, **options: Any) -> Any:
    return run(cases, judge, **{"criteria": CRITERIA, "pairs": True, **options}).finish_sync()


def test_pairs_are_compared_in_both_orders():
    """Each item is a ``PairResult`` with both orders; what they come to together is one call away."""
    model = ScriptedModel(prefer_good)
    done = do(make_pairs(4), Judge(model))

    items = list(done.items())
    assert all(isinstance(item.result, PairResult) and len(item.result.orders) == 2 for item in items)
    assert done.counts == {"passed": 2, "failed": 2, "undecided": 0}
    summary = done.sum_up_pairs()
    assert (summary.wins, summary.losses, summary.flips.count, summary.accuracy.rate) == (2, 2, 0, 1.0)
    assert sorted((request.case, request.order) for request in model.requests) == [
        (f"pair-{place}", order) for place in range(4) for order in ("ab", "ba")
    ]
    assert done.compares
    assert not run(["good"], "rules", RULED).finish_sync().compares


RULED = Rubric(name="R", criteria=[{"name": "a", "description": "x", "rule": {"regex": "good"}}])


@pytest.mark.parametrize(("on_conflict", "outcome"), [("tie", "failed"), ("undecided", "undecided")])
def test_orders_that_disagree(on_conflict: Any, outcome: str):
    """A judge that follows the place ties, or is undecided, as was asked for; either way the flip is counted."""
    done = do(make_pairs(3), Judge(ScriptedModel(prefer("first"))), on_conflict=on_conflict)

    assert done.counts[outcome] == 3
    assert done.sum_up_pairs().flips.count == 3
    assert done.summary["undecided_because"] == ({} if on_conflict == "tie" else {"split": 3})


def test_what_belongs_to_a_pair_reaches_the_judge():
    """Task, context, reference and metadata of the case, as when it is compared by itself."""
    model = ScriptedModel(prefer_good)
    case = Case(id="one", content={"a": GOOD, "b": BAD}, task="do", reference="gold", metadata={"lang": "de"})
    [item] = do([case], Judge(model), context="law", instructions="Be strict.").items()

    assert all(f">>\n{text}\n<<" in model.requests[0].user for text in ("gold", "do", "law", GOOD, BAD))
    assert "Be strict." in model.requests[0].system
    assert item.result.metadata == {"lang": "de", "case": "one"}


def test_a_case_that_is_no_pair_is_a_result(tmp_path: Path):
    """It is undecided with the reason, and the others are compared."""
    cases = [Case(id="x", content="text"), *make_pairs(1), Case(id="y", content={"a": "1", "b": "2", "c": "3"})]
    done = do(cases, Judge(ScriptedModel(prefer_good)), out=tmp_path / "run")

    items = list(open_run(tmp_path / "run").items())
    assert [item.result.undecided_because for item in items] == ["error", None, "error"]
    assert names(items[0].result.detail, "'x'", "not a pair", '{"a": ..., "b": ...}')
    assert items[0].result.metadata == {"case": "x"}
    assert done.sum_up_pairs().undecided == 2


def test_a_label_that_is_no_preference_is_unknown():
    """True and numbers say nothing about which of two is better."""
    cases = [Case(id=str(n), content={"a": GOOD, "b": BAD}, label=label) for n, label in enumerate([True, 0.5, "tie"])]
    summary = do(cases, Judge(ScriptedModel(prefer_good))).sum_up_pairs()

    assert (summary.pairs, summary.labelled, summary.accuracy.count) == (3, 1, 0)


def test_an_order_that_was_answered_is_not_asked_again(tmp_path: Path):
    """Cut off between the two orders, a pair goes on with the one that is missing."""
    asked: list[Any] = []
    hang = asyncio.Event()

    class Half:
        name = "half"

        async def complete(self, request: Any, /) -> Any:
            asked.append(request.order)
            if request.order == "ba" and len(asked) <= 2:
                await asyncio.sleep(0.05)
                hang.set()
                await asyncio.Event().wait()
            return await ScriptedModel(prefer_good).complete(request)

    async def leave() -> None:
        options: Any = {"criteria": CRITERIA, "pairs": True, "out": tmp_path / "run"}
        running = asyncio.ensure_future(run(make_pairs(1), Judge(Half(), timeout=None), **options))
        await hang.wait()
        running.cancel()
        await asyncio.wait([running])

    asyncio.run(leave())
    done = do(make_pairs(1), Judge(Half(), timeout=None), out=tmp_path / "run", resume=True)
    assert (asked, done.counts["passed"]) == (["ab", "ba", "ba"], 1)


def test_a_run_of_pairs_goes_on(tmp_path: Path):
    """Left early, it ends like one in one go; as something else than comparing it does not go on."""
    out, model = tmp_path / "run", ScriptedModel(prefer_good)

    async def leave() -> None:
        options: Any = {"criteria": CRITERIA, "pairs": True, "out": out, "concurrency": 2}
        running = run(make_pairs(20), Judge(model), **options)
        await take(running, 3)
        await running

    asyncio.run(leave())
    done = do(make_pairs(20), Judge(model), out=out, resume=True)
    assert (done.status, done.counts) == ("finished", {"passed": 10, "failed": 10, "undecided": 0})
    assert len(model.requests) <= 40 + 4

    for other in ({"pairs": False}, {"on_conflict": "undecided"}):
        with pytest.raises(UsageError, match="cannot be resumed: what is asked changed"):
            do(make_pairs(20), Judge(model), out=out, resume=True, **other)


def test_repeats_and_chains_compare_too():
    """Samples are asked separately, and a chain counts preferences in each order."""
    model = ScriptedModel(prefer_good)
    done = do(make_pairs(2), Judge(model), repeat=2)
    assert sorted({request.sample for request in model.requests}) == [0, 1]
    assert done.sum_up_pairs().pairs == 4

    chain = JudgeChain([Chooser("a"), Chooser("b"), Chooser("a")], strategy="majority")
    assert do(make_pairs(2), chain).counts["passed"] == 2


def test_what_a_judge_raises_is_a_result():
    """As for one content: the pair is undecided, and says why."""

    class Broken:
        name = "broken"

        async def ask(self, _question: Any, /) -> Any:
            raise ValueError("no idea")

    [item] = do(make_pairs(1), Broken()).items()
    assert (item.result.outcome, item.result.undecided_because) == ("undecided", "error")
    assert "broken: error" in item.result.detail


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 0.5}, "compare has no argument 'threshold'"),
        ({"rules": ["json"]}, "compare has no argument 'rules'"),
        ({"criteria": None}, "nothing says what better means"),
        ({"rubric": RULED, "criteria": None}, "leaves 'a' to rules"),
        ({"on_conflict": "first"}, "on_conflict must be one of tie, undecided; got 'first'"),
    ],
)
def test_what_makes_no_comparison_is_said_before_anything(tmp_path: Path, options: dict[str, Any], message: str):
    """Nobody is asked, and nothing is written."""
    with pytest.raises(UsageError, match=message):
        do(make_pairs(1), Judge(ScriptedModel(prefer_good)), out=tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


def test_a_recorded_reply_without_a_verdict_stands(tmp_path: Path):
    """Whoever was recorded was asked once: the pair is unparseable, and not a recording that has no second answer."""
    rows = [
        {"schema": "adjudge/recording/1", "case": "one", "order": order, "attempt": 1, "model": "m",
         "reply": {"text": text, "finish_reason": "stop", "usage": None, "logprobs": None}}
        for order, text in (("ab", "[[A]]"), ("ba", "I cannot say."))
    ]  # fmt: skip
    path = tmp_path / "replies.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    case = Case(id="one", content={"a": GOOD, "b": BAD})
    [item] = do([case], Judge(ReplayModel(path), reader="[[A]]")).items()

    assert item.result.undecided_because == "unparseable"
    assert [order.preferred for order in item.result.orders] == ["first", None]
    assert [order.result.attempts for order in item.result.orders] == [1, 1]


def test_a_run_of_pairs_is_not_redecided(tmp_path: Path):
    """No policy about one content decides two orders: the error says so, and nothing is written."""
    do(make_pairs(2), Judge(ScriptedModel(prefer_good)), out=tmp_path / "run")

    with pytest.raises(UsageError, match="this run compared pairs"):
        redecide(tmp_path / "run", threshold=0.5, out=tmp_path / "again")
    assert not (tmp_path / "again").exists()
