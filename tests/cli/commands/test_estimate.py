"""``adjudge run --estimate``: what a run would ask and cost, held against what a server that counts tokens is sent."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from kit import cli
from kit.cli import Line, Provider, Ran
from kit.environment import FULL, require

pytestmark = pytest.mark.timed


PRICES = """
[prices]
"small" = { input = 1.0, output = 5.0, cached = 0.1 }
"large" = { input = 10.0, output = 50.0, cached = 1.0 }
"""

counted: Counter[str] = Counter()
"""What the server of a test has counted."""


def count_usage(prompt: str, reply: str) -> Mapping[str, int]:
    """Tokens by another rule than ours: one for 3.4 bytes, and 60 for the provider's own frame."""
    usage = {"prompt_tokens": 60 + round(len(prompt.encode()) / 3.4), "completion_tokens": len(reply) // 3}
    counted.update(usage)
    return usage


@pytest.fixture(name="line")
def provide_line(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Line:
    """The command line in an empty folder with prices of two models."""
    cli.isolate(monkeypatch, tmp_path)
    Path("adjudge.toml").write_text(PRICES)
    counted.clear()
    return Line(capsys)


@pytest.fixture(name="server")
def provide_server() -> Iterator[Provider]:
    """A server that counts tokens."""
    with cli.serve(usage=count_usage, models=("small", "large")) as server:
        yield server


def write_cases(sizes: list[int], *, name: str = "data.jsonl", **more: Any) -> None:
    """A case of so many words for each size."""
    chance = random.Random(4)
    words = ["answer", "of", "the", "question", "is", "42", "because", "people", "say", "so"]
    rows = [{"id": str(n), "content": " ".join(chance.choices(words, k=size)), **more} for n, size in enumerate(sizes)]
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows))


def ask(server: Provider, *more: str, data: str = "data.jsonl") -> tuple[str, ...]:
    return ("run", data, "--criteria", "Is good.", "--judge", server.spec, *more)


def estimate(line: Line, words: tuple[str, ...]) -> dict[str, Any]:
    """The estimate as JSON; nobody is asked."""
    done = line(*words, "--estimate", "--json")
    assert done.status == 0, done.err
    return done.document


def is_near(estimated: float, actual: float, share: float = 0.1) -> bool:
    return abs(estimated - actual) <= share * actual


SIZES: dict[str, Callable[[random.Random], int]] = {
    "uniform": lambda chance: chance.randrange(20, 400),
    "two very different ones": lambda chance: chance.choice((5, 3_000)),
    "equal": lambda _chance: 80,
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.parametrize("number", [30, 3_000 if FULL else 150])
def test_an_estimate_from_twenty_recorded_cases_is_within_a_tenth_of_what_is_counted(
    line: Line, server: Provider, number: int, kind: str
):
    """Tokens and dollars, over data sets of several sizes."""
    chance = random.Random(7)
    write_cases([SIZES[kind](chance) for _ in range(number)])
    line(*ask(server, "--sample", "20", "--out", "first"))

    estimated = estimate(line, ask(server, "--estimate-from", "first"))
    counted.clear()
    done = line(*ask(server, "--out", "all", "--json")).document["summary"]
    assert (estimated["judgements"], estimated["total"]["calls"]) == (number, number)
    assert is_near(estimated["total"]["input_tokens"], counted["prompt_tokens"])
    assert is_near(estimated["total"]["output_tokens"], counted["completion_tokens"])
    assert is_near(estimated["total"]["live_usd"], done["known_cost_usd"])
    assert estimated["total"]["least_usd"] <= done["known_cost_usd"] <= estimated["total"]["most_usd"]


def test_without_a_record_tokens_in_are_estimated_by_characters_within_what_is_stated(line: Line, server: Provider):
    """The basis is named, and the cost lies between the limits."""
    write_cases([100] * 40)
    estimated = estimate(line, ask(server))
    assert server.bodies == []

    done = line(*ask(server, "--out", "all", "--json")).document["summary"]
    assert is_near(estimated["total"]["input_tokens"], done["input_tokens"], 0.3)
    assert "4 characters" in estimated["seats"][0]["input_basis"]
    assert estimated["total"]["least_usd"] <= done["known_cost_usd"] <= estimated["total"]["most_usd"]


def say_nothing_of_a_third(server: Provider) -> None:
    """Let the small model give nothing that can be read of a third of the cases, told by their length."""
    usual = server.say

    def say(body: Mapping[str, Any]) -> dict[str, Any]:
        reply = usual(body)
        if body["model"] == "small" and cli.find_content(body["messages"][-1]["content"]).count(" ") % 3 == 0:
            reply["choices"][0]["message"]["content"] = "Hm, " + json.dumps(body)[:20]
        return reply

    server.say = say  # type: ignore[method-assign]


def test_a_chain_is_estimated_with_the_shares_of_a_recorded_run(line: Line, server: Provider):
    """The second seat is asked about what the first cannot answer, after that was asked again.

    Which cases those are is chance. Of so many recorded cases, two standard errors are a tenth of the cost.
    """
    chance = random.Random(3)
    write_cases([chance.randrange(20, 300) for _ in range(150)])
    say_nothing_of_a_third(server)
    words = ask(server, "--judge", f"{server.url}#large", "--strategy", "fallback", "--timeout", "30")
    line(*words, "--sample", "110", "--out", "first")
    estimated = estimate(line, (*words, "--estimate-from", "first"))

    counted.clear()
    done = line(*words, "--out", "all", "--json").document["summary"]
    small, large = estimated["seats"]
    assert small["calls"] > 165
    assert 0.2 < large["share"] < 0.45
    assert "recorded" in large["share_basis"]
    assert is_near(estimated["total"]["calls"], done["calls"])
    assert is_near(estimated["total"]["input_tokens"], counted["prompt_tokens"])
    assert is_near(estimated["total"]["output_tokens"], counted["completion_tokens"])
    assert is_near(estimated["total"]["live_usd"], done["known_cost_usd"])
    for seat in (small, large):
        asked = [body for body in server.bodies[-done["calls"] :] if seat["model"].endswith(body["model"])]
        assert is_near(seat["calls"], len(asked))


@pytest.mark.parametrize("seed", range(5 if FULL else 2))
def test_the_limits_of_a_chain_hold_what_few_recorded_cases_leave_open(line: Line, server: Provider, seed: int):
    """And it is said how many cases the cost can be told from."""
    chance = random.Random(seed)
    write_cases([chance.randrange(20, 300) for _ in range(120)])
    say_nothing_of_a_third(server)
    words = ask(server, "--judge", f"{server.url}#large", "--strategy", "fallback", "--timeout", "30")
    line(*words, "--sample", "20", "--seed", str(seed), "--out", "first")
    from_few = (*words, "--estimate-from", "first")

    total, shown = estimate(line, from_few)["total"], line(*from_few, "--estimate").out
    cost = line(*words, "--out", "all", "--json").document["summary"]["known_cost_usd"]
    assert total["least_usd"] <= cost <= total["most_usd"]
    assert total["most_usd"] - total["least_usd"] > 0.2 * total["live_usd"]
    assert "by 20 recorded judgements the cost is known within" in shown


def test_a_recording_and_a_cache_say_what_replies_used(line: Line, server: Provider):
    """Tokens within a tenth; who is asked how often is not in them."""
    chance = random.Random(5)
    write_cases([chance.randrange(20, 400) for _ in range(60)])
    line(*ask(server, "--sample", "20", "--out", "first", "--record", "first.jsonl"))
    line(*ask(server, "--sample", "20", "--out", "second", "--cache", "first.sqlite"))
    recorded, cached = (
        estimate(line, ask(server, "--estimate-from", name)) for name in ("first.jsonl", "first.sqlite")
    )
    chain = ask(server, "--judge", f"{server.url}#large", "--strategy", "fallback")
    of_chain = estimate(line, (*chain, "--estimate-from", "first.jsonl"))

    counted.clear()
    cost = line(*ask(server, "--out", "all", "--json")).document["summary"]["known_cost_usd"]
    for estimated in (recorded, cached):
        assert is_near(estimated["total"]["input_tokens"], counted["prompt_tokens"])
        assert is_near(estimated["total"]["output_tokens"], counted["completion_tokens"])
        assert is_near(estimated["total"]["live_usd"], cost)
        assert estimated["total"]["least_usd"] <= cost <= estimated["total"]["most_usd"]
    # A recording has the prompts, so that longer ones are known to take more; a cache has the average alone.
    assert abs(recorded["total"]["input_tokens"] / counted["prompt_tokens"] - 1) < 0.02
    assert "assumed: 2 %" in of_chain["seats"][1]["share_basis"]
    assert of_chain["seats"][0]["input_tokens"] == pytest.approx(recorded["total"]["input_tokens"])


def test_a_cascade_without_a_record_states_what_it_assumes(line: Line, server: Provider):
    """And the limits are those of a cascade that hands on nothing, and everything."""
    write_cases([100] * 50)
    words = ask(server, "--judge", f"{server.url}#large", "--strategy", "cascade", "--escalate-below", "0.8")
    estimated = estimate(line, words)

    small, large = estimated["seats"]
    assert (small["calls"], round(large["calls"], 6)) == (50, 15)
    assert "assumed: 30 %" in large["share_basis"]
    assert (large["least_usd"], is_near(large["most_usd"] / large["live_usd"], 1 / 0.3, 0.7)) == (0.0, True)


def test_cases_with_criteria_of_their_own_are_said_to_lose_the_prompt_cache(line: Line, server: Provider):
    """The others find a long constant part there."""
    head = "schema: adjudge/rubric/1\nname: long\ncriteria:\n  - name: good\n    description: "
    Path("long.yaml").write_text(head + "It is good. " * 500 + "\n")
    rows = [{"id": str(n), "content": "a text", **({"criteria": "Is short."} if n < 10 else {})} for n in range(40)]
    Path("data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ("run", "data.jsonl", "--rubric", "long.yaml", "--case-criteria", "--judge", server.spec)

    estimated, shown = estimate(line, words), line(*words, "--estimate")
    assert estimated["own_criteria"] == 10
    assert "10 of 40 cases bring criteria of their own" in shown.out
    assert estimated["total"]["cached_usd"] < 0.5 * estimated["total"]["live_usd"]


def keep_prompts(server: Provider) -> set[str]:
    """Let the server have a prompt cache: what an earlier prompt began with is cheaper, from 1,024 tokens.

    Returns what is in the cache.
    """
    usual, known = server.say, set[str]()

    def say(body: Mapping[str, Any]) -> dict[str, Any]:
        reply = usual(body)
        begins = json.dumps(body["response_format"]) + body["messages"][0]["content"]
        tokens = round(len(begins.encode()) / 3.4)
        cached = tokens if begins in known and tokens >= 1_024 else 0
        known.add(begins)
        counted["cached_tokens"] += cached
        reply["usage"]["prompt_tokens_details"] = {"cached_tokens": cached}
        return reply

    server.say = say  # type: ignore[method-assign]
    return known


@pytest.mark.parametrize("own", [0, 15])
def test_the_cost_with_a_prompt_cache_is_what_a_server_with_one_then_asks_for(line: Line, server: Provider, own: int):
    """Cases with criteria of their own find nothing there, and cost as much as without."""
    head = "schema: adjudge/rubric/1\nname: long\ncriteria:\n  - name: good\n    description: "
    Path("long.yaml").write_text(head + "It is good. " * 500 + "\n")
    rows = [
        {"id": str(n), "content": f"a text {n}", **({"criteria": f"Is {'short ' * 900}{n}."} if n < own else {})}
        for n in range(40)
    ]
    Path("data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ("run", "data.jsonl", "--rubric", "long.yaml", "--case-criteria", "--judge", server.spec)
    kept = keep_prompts(server)
    line(*words, "--sample", "20", "--out", "first")

    plain, recorded = estimate(line, words)["total"], estimate(line, (*words, "--estimate-from", "first"))["total"]
    kept.clear()
    counted.clear()
    cost = line(*words, "--concurrency", "1", "--out", "all", "--json").document["summary"]["known_cost_usd"]
    assert is_near(recorded["cached_usd"], cost)
    # Without a record, tokens are known as well as characters tell them.
    assert is_near(plain["live_usd"] - plain["cached_usd"], counted["cached_tokens"] * 0.9e-6, 0.3)


def test_a_price_that_is_not_known_is_said_to_be(line: Line, server: Provider):
    """The tokens are estimated all the same."""
    write_cases([10] * 5)
    Path("adjudge.toml").unlink()
    estimated, shown = estimate(line, ask(server)), line(*ask(server), "--estimate")

    assert (estimated["total"]["live_usd"], estimated["total"]["input_tokens"] > 0) == (None, True)
    assert shown.out.count("unknown") == 1
    assert "the price of" in shown.out
    assert "[prices]" in shown.out


def test_rules_that_decide_ask_no_model(line: Line, server: Provider):
    """As in the run itself."""
    rows = [{"id": str(n), "content": "Dear all" if n % 2 else "Hi"} for n in range(10)]
    Path("data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    estimated = estimate(line, ask(server, "--rule", "{regex: ^Dear}"))

    assert (estimated["settled_by_rules"], estimated["total"]["calls"]) == (5, 5)


def test_repeats_samples_and_pairs_count_as_they_are_asked(line: Line, server: Provider):
    """A pair is asked about in both orders."""
    write_cases([10] * 20)
    assert estimate(line, ask(server, "--repeat", "3", "--sample", "5"))["total"]["calls"] == 15

    rows = [{"id": str(n), "content": {"a": "one", "b": "two"}} for n in range(4)]
    Path("pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert estimate(line, ask(server, "--pairs", data="pairs.jsonl"))["total"]["calls"] == 8


def test_the_summary_of_the_run_shows_what_was_estimated(line: Line, server: Provider):
    """If it is of the same question, and by the same judge."""
    write_cases([10] * 5)
    shown = line(*ask(server, "--out", "R"), "--estimate")
    assert "estimate.json" in shown.err

    done: Ran = line(*ask(server, "--out", "R"))
    assert "tokens estimated" in done.out
    assert "cost estimated" in done.out
    again = line(*ask(server, "--out", "R", "--resume", "--json")).document
    assert again["estimate"]["judgements"] == 5

    line(*ask(server, "--out", "other"), "--estimate")
    other = line("run", "data.jsonl", "--criteria", "Is bad.", "--judge", server.spec, "--out", "other")
    assert "estimated" not in other.out


def test_an_estimate_needs_no_key(line: Line):
    """Providers' prices by batch are below those of asking live, with the first cases live."""
    require("genai_prices", find_spec("genai_prices"), "pip install 'adjudge[cost]'")
    Path("adjudge.toml").unlink()
    write_cases([100] * 40)
    words = ("run", "data.jsonl", "--criteria", "Is good.", "--judge", "openai:gpt-6.1-terra")
    whole = estimate(line, (*words, "--batch", "--batch-check", "0"))["total"]
    half = estimate(line, (*words, "--batch", "--batch-check", "20"))["total"]

    assert whole["batch_usd"] == pytest.approx(0.5 * whole["live_usd"])
    assert half["batch_usd"] == pytest.approx(0.75 * half["live_usd"], rel=0.01)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--estimate-from", "R"), "--estimate-from belongs to --estimate"),
        (("--estimate", "--resume", "--out", "R"), "--resume"),
        (("--estimate", "--estimate-from", "nowhere"), "nowhere"),
        (("--estimate", "--estimate-from", "data.jsonl"), "data.jsonl, line 1"),
        (("--estimate", "--estimate-from", "by-hand.jsonl"), "how many tokens they used"),
    ],
)
def test_options_of_an_estimate_are_refused_in_a_sentence(
    line: Line, server: Provider, words: tuple[str, ...], message: str
):
    """Before anything is counted."""
    write_cases([10])
    by_hand = {"schema": "adjudge/recording/1", "case": "0", "reply": {"text": "It passes."}}
    Path("by-hand.jsonl").write_text(json.dumps(by_hand) + "\n")
    done = line(*ask(server, *words))

    assert (done.status, message in done.sentence) == (2, True)
