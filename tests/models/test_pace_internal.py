"""How many are under way follows how the providers answer: it falls when they refuse, rises again, and reads limits."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge import Judge, JudgeChain
from adjudge.judges.layers import make_wrap, wrap_models
from adjudge.models import Model, Request, open_model
from adjudge.models.providers.catalog import SERVER, Endpoint
from adjudge.models.providers.http import Transport
from adjudge.models.providers.openai import OpenAICompatible
from adjudge.models.rate_limit import Pace, PacedModel, read_count, read_reset
from kit.judges import Plain, complaint
from kit.wire import PLAIN, completion, serve

pytestmark = pytest.mark.timed


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def feed(pace: Pace, answers: int, refused: int = 0, *, status: int = 429, **headers: str) -> int:
    """The number after so many answers, the refused ones spread among them."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    for at in range(answers):
        is_refused = (at + 1) * refused // answers > at * refused // answers
        pace.note(status if is_refused else 200, sent)
    return pace.current


# ---------------------------------------------------------------- refusals


def test_it_begins_with_the_most():
    """A provider that takes all is asked all at once."""
    assert Pace(64).current == 64


@pytest.mark.parametrize("status", [429, 503, 529])
def test_a_round_of_refusals_halves_it(status: int):
    """Once per round, however many were refused; what was sent before is not counted against the new number."""
    pace = Pace(64)

    assert feed(pace, 64, 64, status=status) == 32
    assert feed(pace, 64, 64, status=status) == 32  # sent before it was halved
    assert feed(pace, 32, 32, status=status) == 16


def test_it_falls_by_the_share_that_was_refused():
    """A quarter refused is a quarter too many."""
    assert feed(Pace(64), 64, 16) == 48


def test_a_few_refusals_change_nothing():
    """One in twenty is tried again and costs a twentieth; halving would cost half."""
    pace = Pace(100)

    assert [feed(pace, 100, 5) for _ in range(20)] == [100] * 20


@pytest.mark.parametrize("status", [500, 502, 400, 401])
def test_other_failures_are_no_sign_of_load(status: int):
    """A server that is broken does not get better by being asked less."""
    assert feed(Pace(64), 64, 64, status=status) == 64


def test_it_rises_when_nothing_is_refused():
    """By a tenth of the most for each round without a refusal, and never above."""
    pace = Pace(50)
    feed(pace, 50, 50)
    feed(pace, 50)
    limits = [feed(pace, pace.current) for _ in range(7)]

    assert limits == [30, 35, 40, 45, 50, 50, 50]


@given(st.lists(st.tuples(st.sampled_from([200, 429, 503, 500]), st.integers(0, 50)), max_size=60), st.integers(1, 40))
def test_it_stays_within_its_bounds(rounds: list[tuple[int, int]], most: int):
    """Whatever is answered, at least ``least`` and at most ``most``."""
    pace = Pace(most, least=min(3, most))
    for status, times in rounds:
        for _ in range(times):
            pace.note(status, {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1s"})
            assert pace.least <= pace.current <= most


# ---------------------------------------------------------------- limits that providers tell


@pytest.mark.parametrize(
    "headers",
    [
        {"x_ratelimit_remaining_requests": "0", "x_ratelimit_reset_requests": "20s"},
        {"x_ratelimit_remaining_tokens": "0", "x_ratelimit_limit_tokens": "100", "x_ratelimit_reset_tokens": "20000ms"},
        {"anthropic_ratelimit_requests_remaining": "0", "anthropic_ratelimit_requests_reset": "1970-01-01T00:17:00Z"},
        {
            "anthropic_ratelimit_output_tokens_remaining": "0",
            "anthropic_ratelimit_output_tokens_reset": "1970-01-01T00:17:00+00:00",
        },
    ],
)
def test_where_nothing_is_left_it_waits(headers: dict[str, str]):
    """The least goes on until a tenth of the time is over, in which a tenth of the limit comes back."""
    clock = Clock()
    pace = Pace(64, least=2, clock=clock, wall=clock)

    assert feed(pace, 1, **headers) == 2
    clock.now += 1.9
    assert pace.current == 2
    clock.now += 0.2
    assert pace.current == 64


def test_where_little_is_left_it_is_divided():
    """A twentieth of the limit is half of what is little: half as many."""
    clock = Clock()
    left = {
        "x_ratelimit_remaining_tokens": "5000",
        "x_ratelimit_limit_tokens": "100000",
        "x_ratelimit_reset_tokens": "1m0s",
    }

    assert feed(Pace(64, clock=clock, wall=clock), 1, **left) == 32
    plenty = left | {"x_ratelimit_remaining_tokens": "10000"}
    assert feed(Pace(64, clock=clock, wall=clock), 1, **plenty) == 64


def test_a_limit_that_is_spent_for_the_day_is_looked_at_again():
    """Nobody waits longer than a minute for what a header says."""
    clock = Clock()
    pace = Pace(64, clock=clock, wall=clock)

    assert feed(pace, 1, x_ratelimit_remaining_requests="0", x_ratelimit_reset_requests="23h59m0s") == 1
    clock.now += 61
    assert pace.current == 64


def test_what_was_refused_meanwhile_stands_when_the_wait_is_over():
    """The limit that is told and the number that was learned are two things; the lower one holds."""
    clock = Clock()
    pace = Pace(64, clock=clock, wall=clock)
    feed(pace, 64, 64, x_ratelimit_remaining_requests="0", x_ratelimit_reset_requests="10s")

    assert pace.current == 1
    clock.now += 2
    assert pace.current == 32


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1s", 1.0),
        ("6m0s", 360.0),
        ("1h2m3s", 3723.0),
        ("12ms", 0.012),
        ("7.66s", 7.66),
        ("2m59.56s", 179.56),
        ("30", 30.0),
        ("0.5", 0.5),
        ("1060", 1060.0),
        ("1700000060", 60.0),
        ("1700000060000", 60.0),
        ("2023-11-14T22:14:20Z", 60.0),
        ("2023-11-14T23:14:20+01:00", 60.0),
        ("2023-11-14T22:13:00Z", None),
        ("2023-11-14T22:14:20", None),
        ("0", None),
        ("0s", None),
        ("", None),
        (None, None),
        ("soon", None),
        ("-5", None),
        ("1s!", None),
        ("٣", None),
        ("9" * 41, None),
    ],
)
def test_times_are_read_in_every_form_providers_use(text: str | None, seconds: float | None):
    """A duration, seconds, a time, or seconds and milliseconds since 1970; anything else is none."""
    assert read_reset(text, lambda: 1_700_000_000.0) == (None if seconds is None else pytest.approx(seconds))


@given(st.text(max_size=50), st.text(max_size=30))
def test_no_header_breaks_it(reset: str, left: str):
    """Headers come from servers; whatever stands in them, nothing is raised and no number leaves its bounds."""
    seconds, count = read_reset(reset, lambda: 0.0), read_count(left)

    assert seconds is None or seconds > 0
    assert count is None or count >= 0
    pace = Pace(8)
    pace.note(200, {"x-ratelimit-remaining-requests": left, "x-ratelimit-reset-requests": reset})
    assert 1 <= pace.current <= 8


# ---------------------------------------------------------------- through the transport


def open_at(url: str, **options: Any) -> OpenAICompatible:
    return OpenAICompatible("m", endpoint=Endpoint(provider=SERVER, base_url=url), transport=Transport(**options))


async def work(pace: Pace, model: Model, times: int) -> int:
    """Ask so many times, at most ``pace.current`` at once; returns how many were at once at most."""
    running: set[asyncio.Task[Any]] = set()
    most = 0
    for _ in range(times):
        while len(running) >= pace.current:
            done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        running.add(asyncio.ensure_future(model.complete(PLAIN)))
        most = max(most, len(running))
    await asyncio.wait(running)
    return most


def test_a_server_that_takes_eight_at_once_is_asked_about_eight_at_once():
    """Refused from the ninth on, a pace of 64 falls to what is taken; nothing is lost, and few requests are wasted."""

    async def run():
        pace, busy = Pace(64), 0
        counts = {"asked": 0, "refused": 0}

        async def answer(request: Any) -> Any:
            from aiohttp import web

            nonlocal busy
            counts["asked"] += 1
            if busy >= 8:
                counts["refused"] += 1
                return web.json_response(
                    {"error": {"message": "slow down"}}, status=429, headers={"retry-after": "0.02"}
                )
            busy += 1
            try:
                await asyncio.sleep(0.005)
            finally:
                busy -= 1
            return web.json_response(completion())

        async with serve(answer) as server, PacedModel(open_at(server.url), pace) as model:
            most = await work(pace, model, 600)
        return most, pace.current, counts

    most, current, counts = asyncio.run(run())
    assert most == 64
    assert current < 32
    assert counts["asked"] - counts["refused"] == 600
    assert counts["refused"] < 600


def test_it_recovers_when_a_server_does():
    """After a bad time in which everything is refused, the number is back at the most."""

    async def run():
        pace = Pace(16)
        bad: list[Any] = [(429, {"retry-after": "0.01"}, {})] * 60
        seen = []
        async with serve(*bad, (200, {}, completion())) as server, PacedModel(open_at(server.url), pace) as model:
            for _ in range(12):
                await work(pace, model, 16)
                seen.append(pace.current)
        return seen

    seen = asyncio.run(run())
    assert min(seen) <= 8
    assert seen[-1] == 16


def test_limits_reach_the_pace_from_the_wire():
    """Headers of an answer that was served, whatever their case."""
    headers = {"X-RateLimit-Remaining-Requests": "0", "X-RateLimit-Reset-Requests": "1m0s"}

    async def run():
        pace = Pace(64)
        async with serve((200, headers, completion())) as server, PacedModel(open_at(server.url), pace) as model:
            await model.complete(PLAIN)
        return pace.current

    assert asyncio.run(run()) == 1


def test_who_did_not_ask_is_not_told():
    """The pace hears of its own models alone, and nothing is left behind in the task."""
    pace = Pace(4)

    class Looking:
        name = "looking"

        async def complete(self, request: Request, /) -> Any:
            return request.call.pace

    async def run():
        return await PacedModel(Looking(), pace).complete(PLAIN), await Looking().complete(PLAIN)

    assert asyncio.run(run()) == (pace, None)


def test_a_wired_chain_tells_one_pace():
    """Every seat's provider is heard, through whatever else stands around its model."""
    pace = Pace(4)
    chain = wrap_models(JudgeChain([open_model("openai:a"), Judge(Plain("x"))]), make_wrap(pace=pace))
    models = [seat.model.model for _, seat in chain.judges]

    assert [type(model) for model in models] == [PacedModel, PacedModel]
    assert {model.pace for model in models} == {pace}
    assert isinstance(models[0].named("b"), PacedModel)


@pytest.mark.parametrize("options", [{"most": 0}, {"most": 1.5}, {"most": True}, {"most": 4, "least": 5}])
def test_numbers_are_whole_and_in_order(options: dict[str, Any]):
    """What is none is refused when it is given."""
    assert "a pace: " in complaint(lambda: Pace(**options))


@pytest.mark.parametrize("most", [2**63, 10**400])
def test_a_number_that_no_float_holds_is_as_good_as_no_limit(most: int):
    """It is divided when a provider refuses, and must not overflow then."""
    pace = Pace(most, least=most)
    pace.note(429, {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "9s"})
    assert pace.current > 10**12
