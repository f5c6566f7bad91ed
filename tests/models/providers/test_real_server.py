"""Against a real inference server: llama.cpp, with a tiny model of random weights.

A model that knows nothing is a good adversary. It writes whatever the grammar of the reply allows, so what a test
sees here is what the grammar, the wire and the reading hold, and never what a kind model happened to write.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec

import jsonschema_rs
import pytest

from adjudge import Criterion, Judge, JudgeChain, JudgeResult, Rubric
from adjudge.models import Model, Reply, Request, hosts_of, open_model
from kit import llama
from kit.environment import require
from kit.patience import HANG

pytestmark = pytest.mark.integration


SEEDS = range(6)

# Random weights draw random bytes, and most strings of random bytes are not UTF-8: the server's own parser of replies
# then answers 500, and a string nobody ends runs into the output limit. The pattern keeps every free string to
# letters and spaces, and its repetition bounds the length, so that a reply of any seed is complete.
PLAIN = {"pattern": "^[a-z ]{1,40}$"}
LONG = {"pattern": "^[a-z]{300}$"}

# Levels, because llama.cpp's grammar holds a number to its "enum" and not to its "minimum" and "maximum"; what becomes
# of a plain scale has a test of its own.
WORTH = Criterion(name="worth", description="Is worth reading.", levels={0: "no", 0.25: "hardly", 1: "yes"}, weight=2)
TONE = Criterion(name="tone", description="Is polite.", levels={0: "rude", 0.5: "neutral", 1: "kind"})
SHORT = Criterion(name="short", description="Is short.", levels={0: "no", 1: "yes"}, threshold=1.0)
TWO = Rubric(name="Two", passing_threshold=0.5, criteria=(WORTH, TONE))
THREE = Rubric(name="Three", passing_threshold=0.5, criteria=(WORTH, TONE, SHORT))

CONTENT = "Two and two are four, and please ask again whenever you like."


@dataclass
class Overhearing:
    """A model that answers as another one does, and remembers what was said."""

    model: Model
    structured: bool = True
    requests: list[Request] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.model.name

    async def complete(self, request: Request, /) -> Reply:
        self.requests.append(request)
        self.replies.append(await self.model.complete(request))
        return self.replies[-1]


class Relay:
    """Passes bytes between a client and the server, and knows when the client has closed."""

    def __init__(self, server: str) -> None:
        self.upstream = server.removeprefix("http://").split(":")
        self.address = ""
        self.closed_by_client = asyncio.Event()

    @classmethod
    @asynccontextmanager
    async def before(cls, server: str) -> AsyncIterator[Relay]:
        """A relay in front of a server."""
        relay = cls(server)
        async with await asyncio.start_server(relay.serve, "127.0.0.1", 0) as listening:
            relay.address = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
            yield relay

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client's connection, to its end."""
        onward, back = await asyncio.open_connection(*self.upstream)
        answering = asyncio.create_task(self.copy(onward, writer))
        await self.copy(reader, back)
        self.closed_by_client.set()
        answering.cancel()
        for end in (back, writer):
            end.close()

    async def copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass on what comes until nothing more does."""
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a running server; it ends with this module."""
    missing = [name for name in ("xllamacpp", "gguf", "numpy") if find_spec(name) is None]
    require("a llama.cpp server", not missing, f"pip install {' '.join(missing)}")
    model = llama.write_model(tmp_path_factory.mktemp("llama") / "random.gguf")
    with llama.run_server(model) as address:
        yield address


def open_random(server: str, **options: object) -> Model:
    """The server's model, its strings kept to plain letters."""
    return open_model(f"{server}/v1#random", **{"free_text": PLAIN} | options)


def make_judge(model: Model, seed: int, **options: object) -> Judge:
    """A judge that draws by a seed and does not ask twice; ten characters it was told it cannot copy."""
    return Judge(model, token=False, temperature=1.0, seed=seed, reask=0, **options)


async def judge_by_seeds(model: Model, rubric: Rubric, **options: object) -> list[JudgeResult]:
    """A result for every seed."""
    return [await make_judge(model, seed, **options).evaluate(CONTENT, rubric) for seed in SEEDS]


def read_scores(rubric: Rubric, text: str | None) -> dict[str, float]:
    """The scores in a reply, by the form alone and without adjudge's reading."""
    entries = json.loads(text or "")["criteria"]
    return {item.name: entries[item.name]["score"] for item in rubric.criteria}


def is_busy(server: str) -> bool:
    """Whether any slot of the server is at work."""
    return any(slot["is_processing"] for slot in json.loads(llama.ask_for(f"{server}/slots")))


async def wait_for(server: str, *, busy: bool, seconds: float = HANG) -> bool:
    """Whether the server comes to be busy, or free, in time."""
    end = time.monotonic() + seconds
    while await asyncio.to_thread(is_busy, server) is not busy:
        if time.monotonic() > end:
            return False
        await asyncio.sleep(0.01)
    return True


@pytest.mark.parametrize("rubric", [TWO, THREE], ids=lambda rubric: rubric.name)
def test_every_seed_gives_a_decided_result(server, rubric):
    """Whatever the weights draw, the reply fits the schema and becomes passed or failed, with every criterion once."""
    model = Overhearing(open_random(server))

    results = asyncio.run(judge_by_seeds(model, rubric))

    for result, request in zip(results, model.requests, strict=True):
        jsonschema_rs.validate(dict(request.form.schema), json.loads(result.raw_response))
        assert result.outcome in {"passed", "failed"}
        assert result.decided_by == "judge"
        assert [item.name for item in result.criteria] == [item.name for item in rubric.criteria]
        assert all(0.0 <= item.score <= 1.0 for item in result.criteria)
        assert 0.0 <= result.score <= 1.0


def test_levels_are_the_only_scores(server):
    """A criterion with levels has one of them as its score, the one that stands in the reply."""
    results = asyncio.run(judge_by_seeds(open_random(server), THREE))

    for result in results:
        replied = read_scores(THREE, result.raw_response)
        for item in THREE.criteria:
            assert replied[item.name] in {level for level, _ in item.levels}
            assert result.criterion(item.name).score == replied[item.name]


def test_code_computes_the_outcome(server):
    """Score and outcome follow from the scores in the reply by weights and thresholds alone."""
    for result in asyncio.run(judge_by_seeds(open_random(server), THREE)):
        replied = read_scores(THREE, result.raw_response)
        mean = (2 * replied["worth"] + replied["tone"] + replied["short"]) / 4

        assert result.score == pytest.approx(mean)
        assert result.passed is (mean >= 0.5 - 1e-9 and replied["short"] == 1.0)


def test_scores_off_the_scale_are_never_clamped(server):
    """This server does not hold a number to its bounds: what lies outside is undecided, what lies inside is kept."""
    rubric = Rubric(name="Plain", criteria=(Criterion(name="worth", description="Is worth reading."),))

    results = asyncio.run(judge_by_seeds(open_random(server), rubric))

    for result in results:
        replied = read_scores(rubric, result.raw_response)["worth"]
        inside = 0.0 <= replied <= 1.0
        assert result.undecided_because == (None if inside else "off_scale")
        assert result.score == (replied if inside else None)
    assert any(result.undecided_because == "off_scale" for result in results)


def test_log_probabilities_are_returned_and_used(server):
    """With expected scoring the reply carries every token's probability, and the result a confidence from them."""
    model = Overhearing(open_random(server))

    results = asyncio.run(judge_by_seeds(model, TWO, scoring="expected"))

    for result, reply in zip(results, model.replies, strict=True):
        assert result.outcome in {"passed", "failed"}
        assert all(token.logprob <= 0.0 for token in reply.logprobs)
        assert 0.0 <= result.confidence <= 1.0
        assert all(0.0 <= item.score <= 1.0 for item in result.criteria)


def test_stated_scoring_asks_for_no_probabilities(server):
    """Where nobody needs them, the server is not asked for log-probabilities, and the confidence is unknown."""
    model = Overhearing(open_random(server))

    result = asyncio.run(make_judge(model, 0).evaluate(CONTENT, TWO))

    assert model.replies[0].logprobs is None
    assert result.confidence is None


def test_consensus_of_two_judges(server):
    """A chain of two judges on the server passes exactly when both do, and shows what each said."""
    model = open_random(server)

    async def ask(seed: int):
        chain = JudgeChain(
            [make_judge(model, seed, name="one"), make_judge(model, seed + 100, name="two")],
            strategy="consensus",
            timeout=HANG,
            stop_early=False,
        )
        return await chain.evaluate(CONTENT, TWO)

    async def ask_all():
        return [await ask(seed) for seed in SEEDS]

    for result in asyncio.run(ask_all()):
        assert [seat.judge for seat in result.results] == ["one", "two"]
        assert result.outcome == ("passed" if all(seat.passed for seat in result.results) else "failed")
        assert result.decided_by == "judge"


def test_a_reply_cut_off_is_truncated(server):
    """A reply that reaches the output limit is undecided: truncated, as the server itself reports it."""
    judge = make_judge(open_random(server), 0, max_output_tokens=20)

    result = asyncio.run(judge.evaluate(CONTENT, TWO))

    assert result.finish_reason == "length"
    assert result.undecided_because == "truncated"


def test_noise_is_never_a_verdict(server):
    """Asked in plain text, random weights answer with noise, which is undecided and passes nothing."""
    judge = make_judge(open_random(server), 0, structured="text", max_output_tokens=60)

    result = asyncio.run(judge.ask('Is this safe? Reply {"safe": true} or {"safe": false}.'))

    assert result.outcome == "undecided"


def test_what_the_server_reports_is_on_the_result(server):
    """Model, tokens and the reason for ending come from the server and not from the request."""
    result = asyncio.run(make_judge(open_random(server), 0).evaluate(CONTENT, TWO))

    assert result.finish_reason == "stop"
    assert result.usage.calls == 1
    assert result.usage.input_tokens > len(CONTENT)
    assert result.usage.output_tokens > 20
    assert result.model


def test_reachability(server):
    """The model names the one host it contacts, needs no key for it, and answers there."""
    model = open_random(server)
    model.check()

    assert hosts_of(model) == (server.removeprefix("http://"),)
    assert asyncio.run(make_judge(model, 0).evaluate(CONTENT, TWO)).attempts == 1


def test_a_refused_request_is_an_error_in_the_servers_words(server):
    """A schema the server cannot compile is refused by it, and the result says who refused and why."""
    judge = make_judge(open_random(server, free_text={"pattern": 5}), 0)

    result = asyncio.run(judge.evaluate(CONTENT, TWO))

    assert result.undecided_because == "error"
    assert server.removeprefix("http://") in result.detail
    assert "400" in result.detail
    assert "pattern must be a string" in result.detail


def test_a_cancelled_judgement_closes_its_connection(server):
    """Cancelling closes the connection at once, and the server, free again, answers the next request."""

    async def run():
        async with Relay.before(server) as relay:
            judge = make_judge(open_random(relay.address, free_text=LONG), 0)
            task = asyncio.create_task(judge.evaluate(CONTENT, TWO))
            assert await wait_for(server, busy=True)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await relay.closed_by_client.wait()
        # This server looks at the connection of a request that does not stream only when it has its answer.
        assert await wait_for(server, busy=False)
        return await make_judge(open_random(server), 0).evaluate(CONTENT, TWO)

    assert asyncio.run(run()).outcome in {"passed", "failed"}


def test_a_judgement_out_of_time_closes_its_connection(server):
    """A judgement that ran out of time is undecided: timeout, and does not go on asking."""

    async def run():
        async with (
            Relay.before(server) as relay,
            make_judge(open_random(relay.address, free_text=LONG), 0, timeout=0.2) as judge,
        ):
            result = await judge.evaluate(CONTENT, TWO)
            await relay.closed_by_client.wait()
        assert await wait_for(server, busy=False)
        return result

    result = asyncio.run(run())

    assert result.undecided_because == "timeout"
    assert result.attempts == 1
