"""What a call can cost at most, sums of costs, and where a price is found."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge import Usage, open_model
from adjudge.models import Price, ReplayModel, Request
from adjudge.models.price import FRAME_TOKENS, FREE, Cost, add_costs, bound_input, find_price, make_finder
from kit.judges import Plain, complaint

PRICE = Price(input=1.0, output=4.0, cached=0.1, written=1.25)


@given(st.text(max_size=300), st.text(max_size=300))
def test_no_tokenizer_of_bytes_makes_more_tokens_than_the_bound(system: str, user: str):
    """Each token is a byte of UTF-8 at least."""
    most = bound_input(Request(system=system, user=user))

    assert most == len(system.encode()) + len(user.encode()) + FRAME_TOKENS


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), True, "1"])
def test_a_price_is_a_number_of_dollars(value: Any):
    """What is none is refused when it is given, with the name of the model where it has one."""
    assert "dollars per million tokens" in complaint(Price, input=value, output=1.0)
    assert "the price of 'm'" in complaint(make_finder, {"m": {"input": 1.0, "output": value}})


@pytest.mark.parametrize("price", [{}, {"input": 1.0}, {"input": 1.0, "output": 1.0, "ouput": 2.0}, 5])
def test_a_price_in_a_table_has_input_and_output(price: Any):
    """A misspelled or missing member is no price."""
    assert "the price of 'm' must be like" in complaint(make_finder, {"m": price})


def test_costs_are_added_with_what_is_unknown_beside_them():
    """A total is exact, or says that it is the least, and of how many calls nothing is known."""
    known, unknown = Usage(cost_usd=0.25), Usage()

    assert add_costs([known, known]) == Cost(usd=0.5)
    assert add_costs([known, unknown, None]) == Cost(usd=0.25, unknown=2)
    assert str(add_costs([known, known])) == "$0.5000"
    assert str(add_costs([known, unknown])) == "at least $0.2500, and 1 of unknown cost"


@pytest.mark.parametrize("name", ["openai:some-model", "some-model"])
def test_a_price_that_is_given_wins(name: str):
    """By the model's full name, or by its provider's."""
    assert find_price(open_model("openai:some-model"), {name: PRICE}) is PRICE
    assert find_price(open_model("openai:other"), {name: PRICE}) is None


def test_what_nobody_knows_the_price_of():
    """A function, a server of one's own and a known name on another host are not guessed."""
    proxied = open_model("openai:gpt-5-mini", base_url="http://127.0.0.1:1/v1")
    prices = [find_price(model) for model in (Plain(""), open_model("http://127.0.0.1:1/v1#gpt-5-mini"), proxied)]

    assert prices == [None, None, None]


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


@pytest.mark.integration
@pytest.mark.parametrize(
    "base", ["http://127.0.0.1:1", "http://[::1]:1", "http://10.1.2.3", "http://box:8000", "http://llm.internal"]
)
def test_a_server_nearby_loads_no_list_of_prices(base: str):
    """The list takes tens of megabytes; a server on this machine or in one's own network is none of its providers."""
    script = "import sys; from adjudge import open_model; from adjudge.models.price import find_price\n"
    script += f"assert find_price(open_model('{base}/v1#gpt-5-mini')) is None and 'genai_prices' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
