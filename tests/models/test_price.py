"""What calls cost: what the caller says, what a list knows, and otherwise unknown, which is never free."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge import Judge, JudgeChain, Usage
from adjudge.judges import with_layers
from adjudge.models import Model, Price, Reply, Request
from kit.judges import YES, Plain

PRICE = Price(input=1.0, output=4.0, cached=0.1, written=1.25)
COUNTS = st.integers(0, 10**6)
DOLLARS = st.floats(0, 1000)


def make_priced(*lines: Any, price: Price | None = PRICE) -> Model:
    """The model that a judge with a price asks."""
    plain = Plain(*lines)
    return with_layers(Judge(plain), prices={} if price is None else {plain.name: price}).model


def usage_of(model: Model) -> Usage | None:
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


def test_a_broken_servers_counts_make_no_money():
    """Numbers below 0, and more cached tokens than there are, never lower a cost below 0."""
    odd = Usage(input_tokens=-5, output_tokens=-5, cached_tokens=10**9, written_tokens=-1)

    assert PRICE.cost_of(odd) == 0.0
    assert PRICE.cost_of(Usage(input_tokens=10, cached_tokens=99, written_tokens=99)) == pytest.approx(1e-6)


# ---------------------------------------------------------------- on results


def test_a_known_price_is_on_the_usage():
    """Tokens become dollars."""
    usage = usage_of(make_priced(Reply(text="x", usage=Usage(input_tokens=1000, output_tokens=100))))

    assert usage is not None
    assert usage.cost_usd == pytest.approx(0.0014)


def test_an_unknown_price_is_unknown():
    """No price, no usage, or a server that counts nothing: ``None``, and not 0."""
    usage = Usage(input_tokens=1000, output_tokens=100)

    assert usage_of(make_priced(Reply(text="x", usage=usage), price=None)) == usage
    assert usage_of(make_priced(Reply(text="x"))) is None
    assert usage_of(make_priced(Reply(text="x", usage=Usage()))) == Usage()


def test_what_is_free_costs_nothing():
    """A price of 0 is known, whatever a server counts."""
    assert usage_of(make_priced(Reply(text="x", usage=Usage()), price=Price(input=0.0, output=0.0))) == Usage(
        cost_usd=0.0
    )


def test_a_cost_that_comes_with_a_reply_stands():
    """Who answered knows what it charges; what is no amount is computed anew."""
    replies = [Reply(text="x", usage=Usage(input_tokens=1000, cost_usd=cost)) for cost in (0.5, -1.0, float("nan"))]

    assert [usage_of(make_priced(reply)) for reply in replies] == [
        Usage(input_tokens=1000, cost_usd=0.5),
        Usage(input_tokens=1000, cost_usd=0.001),
        Usage(input_tokens=1000, cost_usd=0.001),
    ]


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
