"""What calls cost: what the caller says, what a list knows, and otherwise unknown, which is never free."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge import Judge, JudgeChain, Usage, open_model
from adjudge.judges import with_layers
from adjudge.models import Price, ReplayModel, Reply, Request
from adjudge.models.price import FRAME_TOKENS, FREE, Cost, PricedModel, add_costs, bound_input, find_price, make_finder
from judge_support import YES, Plain, complaint

PRICE = Price(input=1.0, output=4.0, cached=0.1, written=1.25)
COUNTS = st.integers(0, 10**6)
DOLLARS = st.floats(0, 1000)


def make_priced(*lines: Any, price: Price | None = PRICE) -> PricedModel:
    return PricedModel(Plain(*lines), lambda model: price)


def usage_of(model: PricedModel) -> Usage | None:
    return asyncio.run(model.complete(Request(system="", user=""))).usage


def test_a_cost_is_tokens_times_dollars_per_million():
    """Cached and written input have prices of their own; they are part of the input and not counted twice."""
    usage = Usage(input_tokens=1000, output_tokens=100, cached_tokens=600, written_tokens=300)

    assert PRICE.cost_of(usage) == pytest.approx((100 * 1.0 + 600 * 0.1 + 300 * 1.25 + 100 * 4.0) / 1e6)
    assert Price(input=1.0, output=4.0).cost_of(usage) == pytest.approx((1000 + 400) / 1e6)


def test_a_long_prompt_is_priced_beyond_its_threshold_as_a_whole():
    """Above the threshold every token costs what those beyond it cost; at it, none does."""
    price = Price(input=1.0, output=2.0, above=1000, beyond=Price(input=3.0, output=5.0))

    assert price.cost_of(Usage(input_tokens=1000, output_tokens=10)) == pytest.approx(1020 / 1e6)
    assert price.cost_of(Usage(input_tokens=1001, output_tokens=10)) == pytest.approx(3053 / 1e6)
    assert price.bound(1000, 10) == pytest.approx(1020 / 1e6)
    assert price.bound(1001, 10) == pytest.approx(3053 / 1e6)


@given(st.tuples(COUNTS, COUNTS, COUNTS, COUNTS), st.tuples(DOLLARS, DOLLARS, DOLLARS, DOLLARS))
def test_the_bound_is_never_less_than_the_cost(counts, dollars):
    """Whatever part of the input was cached or written, the most that was computed before holds."""
    (given_in, given_out, cached, written), (a, b, c, d) = counts, dollars
    for price in (Price(input=a, output=b, cached=c, written=d), Price(input=a, output=b)):
        tiered = Price(input=b, output=a, above=1000, beyond=price)
        usage = Usage(input_tokens=given_in, output_tokens=given_out, cached_tokens=cached, written_tokens=written)
        for each in (price, tiered):
            assert each.cost_of(usage) <= each.bound(given_in, given_out) * (1 + 1e-9)
            assert each.bound(given_in, given_out) <= each.bound(given_in + 1, given_out + 1) * (1 + 1e-9)


@given(st.text(max_size=300), st.text(max_size=300))
def test_no_tokenizer_of_bytes_makes_more_tokens_than_the_bound(system: str, user: str):
    """Each token is a byte of UTF-8 at least."""
    most = bound_input(Request(system=system, user=user))

    assert most == len(system.encode()) + len(user.encode()) + FRAME_TOKENS


def test_a_broken_servers_counts_make_no_money():
    """Numbers below 0, and more cached tokens than there are, never lower a cost below 0."""
    odd = Usage(input_tokens=-5, output_tokens=-5, cached_tokens=10**9, written_tokens=-1)

    assert PRICE.cost_of(odd) == 0.0
    assert PRICE.cost_of(Usage(input_tokens=10, cached_tokens=99, written_tokens=99)) == pytest.approx(1e-6)


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), True, "1"])
def test_a_price_is_a_number_of_dollars(value: Any):
    """What is none is refused when it is given, with the name of the model where it has one."""
    assert "dollars per million tokens" in complaint(Price, input=value, output=1.0)
    assert "the price of 'm'" in complaint(make_finder, {"m": {"input": 1.0, "output": value}})


@pytest.mark.parametrize("said", [{}, {"input": 1.0}, {"input": 1.0, "output": 1.0, "ouput": 2.0}, 5])
def test_a_price_in_a_table_has_input_and_output(said: Any):
    """A misspelled or missing member is no price."""
    assert "the price of 'm' must be like" in complaint(make_finder, {"m": said})


# ---------------------------------------------------------------- on results


def test_a_known_price_is_on_the_usage():
    """Tokens become dollars."""
    found = usage_of(make_priced(Reply(text="x", usage=Usage(input_tokens=1000, output_tokens=100))))

    assert found is not None
    assert found.cost_usd == pytest.approx(0.0014)


def test_an_unknown_price_is_unknown():
    """No price, no usage, or a server that counts nothing: ``None``, and not 0."""
    usage = Usage(input_tokens=1000, output_tokens=100)

    assert usage_of(make_priced(Reply(text="x", usage=usage), price=None)) == usage
    assert usage_of(make_priced(Reply(text="x"))) is None
    assert usage_of(make_priced(Reply(text="x", usage=Usage()))) == Usage()


def test_what_is_free_costs_nothing():
    """A price of 0 is known, whatever a server counts."""
    assert usage_of(make_priced(Reply(text="x", usage=Usage()), price=FREE)) == Usage(cost_usd=0.0)


def test_a_cost_that_comes_with_a_reply_stands():
    """Who answered knows what it charges; what is no amount is computed anew."""
    said = [Reply(text="x", usage=Usage(input_tokens=1000, cost_usd=cost)) for cost in (0.5, -1.0, float("nan"))]

    assert [usage_of(make_priced(reply)) for reply in said] == [
        Usage(input_tokens=1000, cost_usd=0.5),
        Usage(input_tokens=1000, cost_usd=0.001),
        Usage(input_tokens=1000, cost_usd=0.001),
    ]


def test_costs_are_added_with_what_is_unknown_beside_them():
    """A total is exact, or says that it is the least, and of how many calls nothing is known."""
    known, unknown = Usage(cost_usd=0.25), Usage()

    assert add_costs([known, known]) == Cost(usd=0.5)
    assert add_costs([known, unknown, None]) == Cost(usd=0.25, unknown=2)
    assert str(add_costs([known, known])) == "$0.5000"
    assert str(add_costs([known, unknown])) == "at least $0.2500, and 1 of unknown cost"


def test_a_wired_chain_says_what_it_cost():
    """The price is found by name, whole or as the provider has it, and each seat's result carries its cost."""
    line = Reply(text=YES, usage=Usage(input_tokens=1_000_000, output_tokens=0))
    chain = JudgeChain([Judge(Plain(line, name="a")), Judge(Plain(line, name="b"))], strategy="consensus")
    prices = {"a": {"input": 2.0, "output": 1.0}, "b": Price(input=3.0, output=1.0)}
    result = asyncio.run(with_layers(chain, prices=prices).ask("Is this safe?"))

    assert [item.usage and item.usage.cost_usd for item in result.results] == [2.0, 3.0]
    assert result.usage is not None
    assert result.usage.cost_usd == 5.0
    assert result.passed


# ---------------------------------------------------------------- where prices come from


@pytest.mark.parametrize("name", ["openai:some-model", "some-model"])
def test_a_price_that_is_given_wins(name: str):
    """By the model's full name, or by its provider's."""
    assert find_price(open_model("openai:some-model"), {name: PRICE}) is PRICE
    assert find_price(open_model("openai:other"), {name: PRICE}) is None


def test_what_nobody_knows_the_price_of():
    """A function, a server of one's own and a known name on another host are not guessed."""
    proxied = open_model("openai:gpt-5-mini", base_url="http://127.0.0.1:1/v1")
    found = [find_price(model) for model in (Plain(""), open_model("http://127.0.0.1:1/v1#gpt-5-mini"), proxied)]

    assert found == [None, None, None]


@pytest.mark.parametrize(
    "base", ["http://127.0.0.1:1", "http://[::1]:1", "http://10.1.2.3", "http://box:8000", "http://llm.internal"]
)
def test_a_server_nearby_loads_no_list_of_prices(base: str):
    """The list takes tens of megabytes; a server on this machine or in one's own network is none of its providers."""
    script = "import sys; from adjudge import open_model; from adjudge.models.price import find_price\n"
    script += f"assert find_price(open_model('{base}/v1#gpt-5-mini')) is None and 'genai_prices' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_recording_is_free(tmp_path):
    """Nothing is contacted."""
    assert find_price(ReplayModel(tmp_path / "missing")) == FREE


def test_known_prices_come_from_the_list(require):
    """A model of each provider that has prices; on its own address given by hand as well."""
    require("genai-prices", find_spec("genai_prices"), "pip install 'adjudge[cost]'")
    for name in ("openai:gpt-5-mini", "anthropic:claude-haiku-4-5", "gemini:gemini-2.5-pro", "groq:openai/gpt-oss-20b"):
        price = find_price(open_model(name))
        assert price is not None
        assert 0 < price.input < price.output
    mini = find_price(open_model("openai:gpt-5-mini"))
    assert find_price(open_model("https://api.openai.com/v1#gpt-5-mini")) == mini
    assert find_price(open_model("openai:no-such-model")) is None


@pytest.mark.parametrize(
    ("name", "model"),
    [("openai", "gpt-5-mini"), ("anthropic", "claude-haiku-4-5"), ("gemini", "gemini-2.5-pro")],
)
def test_our_arithmetic_is_that_of_the_list(name: str, model: str, require):
    """For cached and written input, below and above the threshold of long prompts."""
    require("genai-prices", find_spec("genai_prices"), "pip install 'adjudge[cost]'")
    import genai_prices

    price = find_price(open_model(f"{name}:{model}"))
    assert price is not None
    for tokens in (1000, 199_999, 200_000, 200_001, 500_000):
        for cached, written in ((0, 0), (300, 0), (300, 500 if price.written is not None else 0)):
            theirs = genai_prices.calc_price(
                genai_prices.Usage(
                    input_tokens=tokens, output_tokens=70, cache_read_tokens=cached, cache_write_tokens=written
                ),
                model,
                provider_id={"gemini": "google"}.get(name, name),
            )
            ours = price.cost_of(
                Usage(input_tokens=tokens, output_tokens=70, cached_tokens=cached, written_tokens=written)
            )
            assert ours == pytest.approx(float(theirs.total_price))
