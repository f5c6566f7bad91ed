"""What of an estimate is not to be had through public names: price steps, averages by size, a tokenizer."""

from __future__ import annotations

import asyncio
import hashlib
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge import Case, Judge, JudgeChain, open_model
from adjudge.models import Price
from adjudge.models.token_count import CharacterCounter, choose_counter, open_encoding
from adjudge.runs.estimate.estimate import RunEstimate, estimate_run
from adjudge.runs.estimate.recorded_usage import measure_ratio
from adjudge.runs.estimate.seat_share import list_shares
from kit.environment import require


def estimate(cases: list[Case], price: Price, spec: str = "openai:small") -> RunEstimate:
    address = {"base_url": "http://127.0.0.1:9/v1"} if spec.startswith("openai:") else {}
    judge = Judge(open_model(spec, **address))
    return asyncio.run(estimate_run(cases, judge, arguments={"criteria": "Is good."}, prices={"small": price}))


def test_each_case_is_priced_by_its_own_size():
    """A price that is ten times as high above a step: the average is below it, and some cases are not."""
    price = Price(input=1.0, output=0.0, above=10_000, beyond=Price(input=10.0, output=0.0))
    short, long = Case(id="short", content="word " * 100), Case(id="long", content="word " * 12_000)
    alone, other = estimate([short], price), estimate([long], price)
    assert alone.input_tokens < 10_000 < other.input_tokens
    assert alone.add_up("live_usd") == pytest.approx(alone.input_tokens * 1e-6, rel=0.01)
    assert other.add_up("live_usd") == pytest.approx(other.input_tokens * 1e-5, rel=0.01)

    cases = [Case(id=str(n), content=short.content if n % 4 else long.content) for n in range(20)]
    estimated = estimate(cases, price)
    assert estimated.input_tokens / 20 < 10_000
    assert estimated.add_up("live_usd") == pytest.approx(
        15 * alone.input_tokens * 1e-6 + 5 * other.input_tokens * 1e-5, rel=0.01
    )


@given(ratio=st.floats(0.3, 3), sizes=st.lists(st.floats(10, 5_000), min_size=1, max_size=30))
def test_tokens_for_each_token_of_size_are_an_average(ratio: float, sizes: list[float]):
    """Where all prompts have the same, it is theirs, and nothing is left over."""
    measured, around = measure_ratio([(size, ratio * size) for size in sizes])

    assert measured == pytest.approx(ratio, rel=1e-6)
    assert around == pytest.approx(0, abs=1e-6)


def test_the_tokens_of_all_prompts_together_come_out_right():
    """A provider's own frame adds to each prompt; long prompts count for as much as they are."""
    points = [(10.0, 70.0), (3_000.0, 3_060.0)] * 10
    ratio, around = measure_ratio(points)

    assert ratio * sum(size for size, _ in points) == pytest.approx(sum(tokens for _, tokens in points))
    assert 0 < around < 0.1


def test_seats_of_chains_within_chains_have_the_share_of_all_that_is_before_them():
    """A cascade hands on 30 %; each seat of a majority hears what the majority hears."""
    inner = JudgeChain(["openai:a", "openai:b"], strategy="majority")
    chain = JudgeChain(["openai:c", inner, "openai:d"], strategy="cascade", escalate_below=0.8)
    shares = [share for _, share in list_shares(chain)]

    assert [share.expected for share in shares] == pytest.approx([1.0, 0.3, 0.3, 0.09])
    assert [(share.least, share.most) for share in shares] == [(1.0, 1.0), (0.0, 1.0), (0.0, 1.0), (0.0, 1.0)]


def test_a_tokenizer_file_that_is_missing_or_damaged_is_not_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The package would fetch it; characters are counted instead."""
    require("tiktoken", find_spec("tiktoken"), "pip install tiktoken")
    import tiktoken

    def fetch(*_: object) -> None:
        raise AssertionError("something was to be downloaded")

    monkeypatch.setattr(tiktoken, "get_encoding", fetch)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    url = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"
    for there in (False, True):
        if there:
            (tmp_path / hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest()).write_bytes(b"damaged")
        open_encoding.cache_clear()
        counter = choose_counter(open_model("openai:small", base_url="http://127.0.0.1:9/v1"))
        assert isinstance(counter, CharacterCounter)
    open_encoding.cache_clear()


def test_a_tokenizer_that_is_there_counts_for_the_models_that_it_is_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """For OpenAI's own models; for a server that may have any model, characters are counted."""

    class Words:
        """An encoding whose tokens are words."""

        def encode_ordinary(self, text: str) -> list[int]:
            return [len(word) for word in text.split()]

    data = b"an encoding"
    url = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"
    (tmp_path / hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest()).write_bytes(data)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("adjudge.models.token_count._ENCODING_DIGEST", hashlib.sha256(data).hexdigest())
    monkeypatch.setitem(sys.modules, "tiktoken", SimpleNamespace(get_encoding=lambda _name: Words()))
    open_encoding.cache_clear()

    case, price = Case(id="1", content="word " * 1_000), Price(input=1.0, output=0.0)
    known, other = estimate([case], price), estimate([case], price, "http://127.0.0.1:9/v1#small")
    open_encoding.cache_clear()
    assert known.seats[0].input_basis == "the tokenizer o200k_base"
    assert 1_000 < known.input_tokens < other.input_tokens
    live, least, most = (known.add_up(name) for name in ("live_usd", "least_usd", "most_usd"))
    assert (least, most) == (pytest.approx(0.95 * live, rel=0.01), pytest.approx(1.05 * live, rel=0.01))
    assert "characters" in other.seats[0].input_basis
