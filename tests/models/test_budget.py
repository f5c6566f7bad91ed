"""A budget is held before a call is made, so it is not overrun; what it cut off says so."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge import Budget, Judge, JudgeChain, ModelError, ReplyError, Usage, UsageError
from adjudge.judges import with_layers
from adjudge.models import Price, Reply, Request
from kit.judges import YES, Plain, complaint, names, passed, summarise
from kit.loops import VirtualLoop, run_virtual
from kit.patience import HANG

PRICE = Price(input=0.0, output=1_000_000.0)
"""A dollar for each token of output: what a request may cost at most is its max_output_tokens."""


def request(most: int) -> Request:
    return Request(system="", user="", max_output_tokens=most)


def cost(usd: float) -> Reply:
    return Reply(text=YES, usage=Usage(input_tokens=1, output_tokens=0, cost_usd=usd))


class Timed:
    """A model that takes a second and charges what it is told to."""

    name = "timed"

    def __init__(self, *costs: float | Exception | None, seconds: float = 1.0) -> None:
        self.costs = list(costs)
        self.seconds = seconds
        self.asked = 0

    async def complete(self, request: Request, /) -> Reply:
        charge = self.costs[min(self.asked, len(self.costs) - 1)]
        self.asked += 1
        await asyncio.sleep(self.seconds)
        if isinstance(charge, Exception):
            raise charge
        return Reply(text=YES) if charge is None else cost(charge)


def within(model: Any, budget: Budget, price: Price | None = PRICE) -> Any:
    """The model that a judge within the budget asks."""
    prices = {} if price is None else {model.name: price}
    return with_layers(Judge(model), budget=budget, prices=prices).model


async def settle_all(*calls: Any) -> list[Any]:
    """What each call returned or raised; they run at once."""
    tasks = [asyncio.ensure_future(call) for call in calls]
    await asyncio.wait(tasks)
    return [task.exception() or task.result() for task in tasks]


def refused(outcomes: list[Any]) -> list[bool]:
    return [isinstance(item, ReplyError) and item.because == "budget" for item in outcomes]


# ---------------------------------------------------------------- holding and settling


def test_what_a_call_cost_is_spent_and_the_rest_is_free_again():
    """Held is the most, spent what it was."""
    budget = Budget(10)

    async def run():
        task = asyncio.ensure_future(within(Timed(2.0), budget).complete(request(6)))
        await asyncio.sleep(0.5)
        during = budget.held, budget.spent, budget.left
        await task
        return during

    assert run_virtual(run()) == (6.0, 0.0, 4.0)
    assert (budget.held, budget.spent, budget.left) == (0.0, 2.0, 8.0)


def test_a_call_that_does_not_fit_is_not_made():
    """It raises before the model is asked, and says how much is left and needed."""
    budget, model = Budget(5, spent=2.5), Timed(1.0)
    outcomes = run_virtual(settle_all(within(model, budget).complete(request(3))))

    assert refused(outcomes) == [True]
    assert names(outcomes[0], "budget of $5.0000", "$2.5000 are left", "cost $3.0000")
    assert model.asked == 0


def test_a_call_waits_for_those_that_may_leave_enough():
    """Three calls of at most 4 in a budget of 10 that cost 1 each: the third waits a second, and all are made."""
    budget, model = Budget(10), Timed(1.0)

    async def run():
        outcomes = await settle_all(*[within(model, budget).complete(request(4)) for _ in range(3)])
        return outcomes, asyncio.get_running_loop().time()

    outcomes, took = run_virtual(run())
    assert refused(outcomes) == [False] * 3
    assert (took, budget.spent) == (2.0, 3.0)


def test_who_waited_in_vain_is_refused():
    """When the calls under way took what was needed, the one that waited is not made."""
    budget, model = Budget(10), Timed(4.0)
    outcomes = run_virtual(settle_all(*[within(model, budget).complete(request(4)) for _ in range(4)]))

    assert refused(outcomes) == [False, False, True, True]
    assert (budget.spent, budget.held) == (8.0, 0.0)


def test_who_is_cancelled_while_waiting_takes_nothing():
    """Nothing was held for him."""
    budget, model = Budget(5), Timed(1.0)

    async def run():
        tasks = [asyncio.ensure_future(within(model, budget).complete(request(4))) for _ in range(2)]
        await asyncio.sleep(0.5)
        tasks[1].cancel()
        await asyncio.wait(tasks)
        return tasks[1].cancelled()

    assert run_virtual(run())
    assert (budget.spent, budget.held, model.asked) == (1.0, 0.0, 1)


@pytest.mark.parametrize(
    ("ending", "counted"),
    [
        (None, 4.0),  # no usage
        (ModelError("broke off"), 4.0),
        (RuntimeError("who knows"), 4.0),
        (ModelError("cannot serve", status=503), 0.0),
        (ModelError("not reached", sent=False), 0.0),
        (UsageError("no key"), 0.0),
    ],
)
def test_what_nobody_knows_counts_in_full(ending: Any, counted: float):
    """Free is only what was certainly not served; any other call counts as the most it can have cost."""
    budget = Budget(10)
    run_virtual(settle_all(within(Timed(ending), budget).complete(request(4))))

    assert (budget.spent, budget.held) == (counted, 0.0)


def test_a_call_that_is_cancelled_counts_in_full():
    """The provider goes on, and charges."""
    budget = Budget(10)

    async def run():
        task = asyncio.ensure_future(within(Timed(1.0), budget).complete(request(4)))
        await asyncio.sleep(0.5)
        task.cancel()
        await asyncio.wait([task])

    run_virtual(run())
    assert (budget.spent, budget.held) == (4.0, 0.0)


def test_a_provider_that_takes_more_than_was_asked_is_counted():
    """What was spent is never hidden, and nothing more is asked."""
    budget, model = Budget(10), Timed(25.0)
    run_virtual(settle_all(within(model, budget).complete(request(4))))

    assert (budget.spent, budget.left) == (25.0, 0.0)
    assert refused(run_virtual(settle_all(within(model, budget).complete(request(1))))) == [True]


AMOUNTS = st.floats(0, 5, allow_nan=False)
CALLS = st.lists(st.tuples(AMOUNTS, st.floats(0, 1), st.sampled_from(["cost", "unknown", "cancel"])), max_size=30)


@given(st.floats(0, 20), CALLS)
@settings(max_examples=200)
def test_a_budget_is_never_overrun(usd: float, calls: list[tuple[float, float, str]]):
    """Whatever calls cost within what was held, and however they end, no more is spent or held than allowed."""
    budget = Budget(usd)
    seen: list[float] = []

    async def call(at: int, most: float, share: float, way: str) -> None:
        held = await budget.reserve(most)
        charge = None
        try:
            seen.append(budget.spent + budget.held)
            await asyncio.sleep(at % 3)
            charge = most * share if way == "cost" else None
        finally:
            budget.charge(held, charge)

    async def run():
        tasks = [asyncio.ensure_future(call(at, *each)) for at, each in enumerate(calls)]
        await asyncio.sleep(0.5)
        for task, each in zip(tasks, calls, strict=True):
            if each[2] == "cancel":
                task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        return [task.cancelled() or refused([task.exception()])[0] or task.exception() is None for task in tasks]

    assert all(run_virtual(run()))
    assert budget.held == 0.0
    assert max([budget.spent, *seen]) <= usd * (1 + 1e-12) + 1e-9


def test_loops_in_several_threads_share_a_budget():
    """Each of 400 calls that cost their all is made or refused; exactly what fits is spent."""
    import threading

    budget, made = Budget(100), []

    def work() -> None:
        async def run():
            model = within(Plain(cost(1.0)), budget)
            outcomes = await settle_all(*[model.complete(request(1)) for _ in range(100)])
            made.append(refused(outcomes).count(False))

        asyncio.run(run())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (sum(made), budget.spent, budget.held) == (100, 100.0, 0.0)


# ---------------------------------------------------------------- a limit per stretch of time


def test_with_per_what_was_spent_counts_for_so_long():
    """A cap of 5 in any 60 seconds: refused at once when it is reached, free again when the stretch is over."""

    async def run():
        loop = asyncio.get_running_loop()
        budget = Budget(5, per=60, clock=loop.time)
        model = within(Timed(3.0), budget)
        first = await settle_all(model.complete(request(3)))
        await asyncio.sleep(58)  # it was counted at 1
        second = await settle_all(model.complete(request(3)))
        await asyncio.sleep(2)
        third = await settle_all(model.complete(request(3)))
        return refused(first) + refused(second) + refused(third), str(second[0]), budget.spent

    outcomes, message, spent = run_virtual(run())
    assert outcomes == [False, True, False]
    assert names(message, "budget of $5.0000 in 60 seconds", "$2.0000 are left", "cost $3.0000")
    assert spent == 3.0


@given(st.lists(st.tuples(st.floats(0, 30), st.floats(0, 5), st.floats(0, 10)), max_size=25))
def test_no_stretch_of_time_is_overrun(calls: list[tuple[float, float, float]]):
    """In any 20 seconds at most 6 are spent, wherever the 20 seconds begin."""
    loop = VirtualLoop()
    budget = Budget(6, per=20, clock=loop.time)
    paid: list[tuple[float, float]] = []

    async def call(start: float, most: float, seconds: float) -> None:
        await asyncio.sleep(start)
        held = await budget.reserve(most)
        await asyncio.sleep(seconds)
        budget.charge(held, most)
        paid.append((loop.time(), most))

    try:
        loop.run_until_complete(settle_all(*[call(*each) for each in calls]) if calls else asyncio.sleep(0))
    finally:
        loop.close()
    for end, _ in paid:
        assert sum(usd for at, usd in paid if end - 20 < at <= end) <= 6 + 1e-9


# ---------------------------------------------------------------- judges


def test_a_judgement_without_money_is_undecided():
    """``undecided: budget``, never a pass; nothing was asked, and the chain's policy says the rest."""
    model = Plain(YES)
    judge = with_layers(Judge(model), budget=Budget(0), prices={"plain": PRICE})
    result = asyncio.run(judge.ask("Is this safe?"))

    assert summarise(result) == {"outcome": "undecided", "because": "budget", "by": "judge"}
    assert "$0.0000 are left" in result.detail
    assert model.requests == []
    chain = with_layers(JudgeChain([Judge(model)]), budget=Budget(0), prices={"plain": PRICE})
    assert summarise(asyncio.run(chain.ask("Is this safe?"))) == {
        "outcome": "undecided",
        "because": "budget",
        "by": "policy",
    }


def test_a_chain_shares_one_budget():
    """Seats that no longer fit are undecided; those that did count."""
    seats = [Judge(Plain(cost(4.0), name=name), max_output_tokens=4) for name in "abc"]
    prices = dict.fromkeys("abc", PRICE)
    budget = Budget(9)
    result = asyncio.run(
        with_layers(JudgeChain(seats, strategy="majority"), budget=budget, prices=prices).ask("Is this safe?")
    )

    assert [item.undecided_because for item in result.results] in ([None, None, "budget"], [None, None])
    assert (result.outcome, budget.spent) == ("passed", 8.0)


def test_a_budget_needs_a_price_before_anything_is_asked():
    """An unknown price cannot be held, and the sentence says what to do."""
    model = Plain(YES)
    message = complaint(with_layers(Judge(model), budget=Budget(5)).ask, "Is this safe?")

    assert "a budget needs the price of plain, which is unknown" in message
    assert "give it under prices" in message
    assert model.requests == []


def test_a_budget_needs_to_know_the_most_a_call_can_cost():
    """A seat without ``max_output_tokens``, and a judge that asks by itself, cannot be held to a budget."""
    unlimited = Judge(Plain(YES), max_output_tokens=None)

    assert "needs max_output_tokens on 'plain'" in complaint(with_layers, JudgeChain([unlimited]), budget=Budget(5))
    assert "'seat' is no Judge or JudgeChain" in complaint(with_layers, JudgeChain([passed()]), budget=Budget(5))
    assert with_layers(JudgeChain([passed()]), prices={}).names == ("seat",)


def test_what_is_found_in_a_cache_is_not_charged(tmp_path):
    """The second judgement needs no money, even when none is left."""
    from adjudge import ReplyCache

    with ReplyCache(tmp_path / "c") as cache:
        budget = Budget(5)
        judge = Judge(Plain(cost(5.0)), max_output_tokens=5)
        wired = with_layers(judge, cache=cache, budget=budget, prices={"plain": PRICE}, identities={"plain": "1"})
        first, second = (asyncio.run(wired.ask("Is this safe?")) for _ in range(2))

    assert (first.outcome, second.outcome, budget.left) == ("passed", "passed", 0.0)
    assert second.usage == Usage(calls=0, cost_usd=0.0)


@pytest.mark.parametrize(
    "options",
    [{"usd": -1}, {"usd": float("nan")}, {"usd": "5"}, {"usd": True}, {"usd": 1, "spent": -1}, {"usd": 1, "per": 0}],
)
def test_amounts_are_numbers(options: dict[str, Any]):
    """What is no amount is refused when it is given."""
    assert "must be" in complaint(lambda: Budget(**options))


@pytest.mark.parametrize("absurd", [1e300, 10**400, float("inf"), float("nan"), -1.0])
def test_a_cost_that_nobody_can_have_charged_is_not_believed(absurd: float):
    """What was held comes back and whoever waits for it goes on; the price says what it cost."""

    async def work() -> None:
        budget = Budget(8.0)
        model = within(Timed(absurd), budget)
        assert [type(item) for item in await settle_all(model.complete(request(5)), model.complete(request(5)))] == [
            Reply,
            Reply,
        ]
        assert (budget.held, budget.spent) == (0.0, 0.0)

    run_virtual(work())


@pytest.mark.parametrize("absurd", [1e300, 10**400, float("inf"), float("nan")])
def test_a_budget_of_absurd_dollars_is_said_so(absurd: float):
    """It is a ``UsageError`` and no crash, for what was spent as well."""
    with pytest.raises(UsageError, match="budget must be dollars"):
        Budget(absurd)
    with pytest.raises(UsageError, match="spent must be dollars"):
        Budget(1.0, spent=absurd)
    with pytest.raises(UsageError, match="a price's input must be dollars"):
        Price(input=absurd, output=1.0)


def test_counting_an_absurd_cost_frees_what_was_held():
    """A sum that overflows would keep the hold, and leave those who wait for it waiting."""

    async def work() -> None:
        budget = Budget(1.0)
        held = await budget.reserve(1.0)
        waiting = asyncio.ensure_future(budget.reserve(0.5))
        await asyncio.sleep(0)
        budget.charge(held, 1e300)
        with pytest.raises(ReplyError, match="are left"):
            await asyncio.wait_for(waiting, HANG)
        assert (budget.held, budget.left) == (0.0, 0.0)

    asyncio.run(work())
