"""What a run writes down before a call, and how it keeps its pace."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from adjudge import AdjudgeError, Budget, Judge, open_model
from adjudge.models import Reply, Request
from adjudge.models.rate_limit import Pace
from adjudge.runs import pool as _pool
from adjudge.runs.layers import SPENT_FACT
from adjudge.runs.store import RunStore
from kit.cli import Provider, serve
from kit.patience import HANG
from kit.runs import Words, cut_off, do

pytestmark = pytest.mark.timed


DOLLARS = {"input": 0.0, "output": 1_000_000.0}
"""A dollar for each token of output: the server below uses 2, and a judge of 4 tokens may use 4."""


def ask(provider: Provider, **more: Any) -> Judge:
    return Judge(open_model(provider.spec), **{"max_output_tokens": 4, **more})


def texts(number: int) -> list[str]:
    return [f"good text {place}" for place in range(number)]


def spend(provider: Provider, number: int, **options: Any) -> Any:
    """A run of so many cases whose every call costs 2 dollars and may cost 4."""
    return do(texts(number), ask(provider), prices={provider.spec: DOLLARS}, **options)


@pytest.mark.parametrize("again", [True, False])
def test_going_on_without_a_budget_that_was_handed_in_keeps_to_its_dollars(tmp_path: Path, again: bool):
    """What was cancelled under it is gone: the run may not spend it a second time, and the budget itself counts on."""
    model, budget = Words(), Budget(11, spent=2)
    options: dict[str, Any] = {"prices": {"words": DOLLARS}, "concurrency": 2, "out": tmp_path / "run"}
    cases = ["good", "wait", "good too"]
    judge = Judge(model, max_output_tokens=4)
    cut_off(cases, judge, tmp_path / "run", 1, prices=options["prices"], concurrency=2, budget=budget)
    assert budget.spent == 10.0  # two of 4 dollars at most, and what others had spent

    done = do(cases, judge, resume=True, **options, **({"budget": budget} if again else {}))
    assert done.summary["undecided_because"] == {"budget": 2}
    assert done.manifest["budget"]["spent"] == (10.0 if again else 8.0)
    assert len(model.requests) == 2
    assert RunStore(tmp_path / "run").find_fact(SPENT_FACT) == "8.0"


def test_a_killed_run_has_written_down_what_was_under_way(tmp_path: Path):
    """With each item the file has what is spent and held; a process that is gone cannot tell it any more."""
    out, seen = tmp_path / "run", []
    with serve() as provider:
        spend(provider, 10, budget=100, out=out, on_progress=lambda _: seen.append(RunStore(out).find_fact(SPENT_FACT)))

    amounts = [float(amount) for amount in seen if amount is not None]
    assert len(amounts) == len(seen) > 0
    assert amounts[0] >= 2.0
    assert RunStore(out).find_fact(SPENT_FACT) == "20.0"


def test_a_call_is_written_down_before_it_is_made(tmp_path: Path):
    """Whoever is asked finds the dollars of all calls under way in the file, his own among them."""
    out = tmp_path / "run"

    class Looks(Words):
        async def complete(self, request: Request, /) -> Reply:
            self.found = float(RunStore(out).find_fact(SPENT_FACT) or 0)
            assert self.found >= 4.0 * (self.now + 1), "a kill now would forget a call"
            return await super().complete(request)

    done = do(texts(6), Judge(Looks(turns=3), max_output_tokens=4), out=out, budget=100, prices={"words": DOLLARS})
    assert done.counts["passed"] == 6


def test_a_call_that_cannot_be_written_down_is_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Where the file cannot be written, nothing is spent that nobody would know of."""

    async def fail(*_: object) -> None:
        raise AdjudgeError("the disk is full")

    monkeypatch.setattr(RunStore, "keep_fact_now", fail)
    model = Words()
    done = do(texts(3), Judge(model, max_output_tokens=4), out=tmp_path / "run", budget=9, prices={"words": DOLLARS})
    assert (model.requests, done.summary["undecided_because"]) == ([], {"error": 3})
    assert done.manifest["budget"] == {"usd": 9.0, "spent": 0.0}


def test_a_provider_that_has_too_much_to_do_is_asked_less(monkeypatch: pytest.MonkeyPatch):
    """The pace is told how the transport fares, and the pool looks at it; a number is the most of one."""
    monkeypatch.setattr("adjudge.models.providers.http.back_off", lambda *_: 0.0)
    pace = Pace(8)
    with serve(mode="429") as provider:
        done = do(texts(12), ask(provider), concurrency=pace)
        assert pace.current < 8
        assert done.manifest["options"]["concurrency"] == 8
        assert done.counts["undecided"] == 12


def test_a_limit_that_rises_is_noticed_while_all_wait(monkeypatch: pytest.MonkeyPatch):
    """Nothing is finished, and the limit rises by the clock: the next begins, and does not wait for the slowest."""
    monkeypatch.setattr(_pool, "LIMIT_CHECK_SECONDS", 0.01)

    class Rising:
        looks = 0

        @property
        def current(self) -> int:
            self.looks += 1
            return 1 if self.looks < 5 else 2

    class Meeting(Words):
        """Answers once two are there."""

        def __init__(self) -> None:
            super().__init__()
            self.both = asyncio.Event()

        async def complete(self, request: Request, /) -> Any:
            if self.requests:
                self.both.set()
            self.requests.append(request)
            await self.both.wait()
            return await Words().complete(request)

    assert do(texts(2), Judge(Meeting(), timeout=HANG), concurrency=Rising()).counts["passed"] == 2
