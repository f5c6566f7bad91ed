"""The prices that come with adjudge: those of the list they were made from, and how old they are."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path

import pytest

from adjudge import Budget, Judge, open_model
from adjudge.judges import with_layers
from adjudge.models import price_table
from adjudge.models.price import convert_price, depends_on_the_hour, find_price
from adjudge.models.price_table import PriceTable, read_price_table
from kit.environment import require

ENTRIES = [
    {
        "match": {"or": [{"equals": "small"}, {"starts_with": "small-2025-12"}]},
        "live": [[None, {"input": 1, "output": 2}]],
    },
    {
        "match": {"and": [{"contains": "mid"}, {"ends_with": "-x"}]},
        "live": [[None, {"input": 1, "output": 2}], ["2027-01-01", {"input": 3, "output": 4}]],
        "batch": [[None, {"input": 0.5, "output": 1}]],
    },
    {"match": {"regex": "^hour"}, "live": []},
]
TABLE = PriceTable(
    source="a list",
    date=date(2026, 1, 1),
    providers=(
        {"id": "one", "pattern": r"https://one\.example", "models": ENTRIES},
        {"id": "two", "pattern": r"https://two\.example", "fallback": ["one"], "models": []},
    ),
)


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """As without the extra ``[cost]``."""
    monkeypatch.setitem(sys.modules, "genai_prices.data_snapshot", None)


@pytest.mark.parametrize(
    ("name", "day", "processing", "price"),
    [
        ("small", "2026-06-01", "live", 1),
        ("Small", "2026-06-01", "batch", 1),
        ("small-20251211", "2026-06-01", "live", 1),
        ("small-20251399", "2026-06-01", "live", None),
        ("my-mid-x", "2026-12-31", "live", 1),
        ("my-mid-x", "2027-01-01", "live", 3),
        ("my-mid-x", "2027-01-01", "batch", 0.5),
        ("mid", "2026-06-01", "live", None),
        ("hourly", "2026-06-01", "live", None),
    ],
)
def test_a_name_is_matched_as_the_list_matches_it(name: str, day: str, processing: str, price: float | None):
    """By any condition, in any case, on the day; what depends on the hour has no price."""
    when = date.fromisoformat(day)
    for provider, url in (("one", ""), (None, "https://one.example/v1"), ("two", "")):
        found = TABLE.find(name, provider=provider, url=url, processing=processing, day=when)
        assert (None if found is None else found["input"]) == price
    assert TABLE.find(name, provider="three", url="", processing=processing, day=when) is None


@pytest.mark.usefixtures("bare")
def test_prices_of_known_models_are_there_without_the_extra():
    """A model of each provider; one that nobody knows, and a server of one's own, stay unknown."""
    for name in ("openai:gpt-5-mini", "anthropic:claude-haiku-4-5", "gemini:gemini-2.5-pro", "groq:openai/gpt-oss-20b"):
        price = find_price(open_model(name))
        assert price is not None
        assert 0 < price.input < price.output
        assert price.as_of == read_price_table().date
    assert find_price(open_model("https://api.openai.com/v1#gpt-5-mini")) == find_price(open_model("openai:gpt-5-mini"))
    assert find_price(open_model("openai:no-such-model")) is None
    assert find_price(open_model("http://127.0.0.1:1/v1#gpt-5-mini")) is None
    batch = find_price(open_model("openai:gpt-5-mini"), processing="batch")
    live = find_price(open_model("openai:gpt-5-mini"))
    assert batch is not None
    assert live is not None
    assert batch.input < live.input


def test_the_table_is_what_the_list_says():
    """Of the version that it was made from: every model, live and by batch."""
    require("genai-prices", find_spec("genai_prices"), "pip install 'adjudge[cost]'")
    from importlib.metadata import version

    from genai_prices.data_snapshot import get_snapshot

    table, now = read_price_table(), datetime.now(UTC)
    if table.source != f"genai-prices {version('genai-prices')}":
        pytest.skip(f"the table is of {table.source}; scripts/prices makes it anew")
    snapshot = get_snapshot()
    for provider in snapshot.providers:
        if provider.id not in ("openai", "anthropic", "google", "mistral", "groq", "together"):
            continue
        for model in provider.models:
            try:
                _, info = snapshot.find_provider_model(model.id, None, provider.id, None)
                wanted = None if depends_on_the_hour(info.prices) else convert_price(info.get_prices(now))
            except LookupError:
                wanted = None
            found = table.find(model.id, provider=provider.id, url="", processing="live", day=now.date())
            assert (found is None) == (wanted is None), model.id
            assert found is None or wanted is None or (found["input"], found["output"]) == (wanted.input, wanted.output)


def test_an_installed_list_wins_over_the_table(monkeypatch: pytest.MonkeyPatch):
    """``[cost]`` keeps prices current: what a newer list says counts, and what it no longer has is unknown."""
    require("genai-prices", find_spec("genai_prices"), "pip install 'adjudge[cost]'")
    from genai_prices.data_snapshot import DataSnapshot
    from genai_prices.types import ClauseEquals, ModelInfo, ModelPrice, Provider

    now = ModelInfo(
        id="gpt-5-mini",
        match=ClauseEquals("gpt-5-mini"),
        prices=ModelPrice(input_mtok=Decimal("77.5"), output_mtok=Decimal("88.5")),
    )
    newer = Provider(id="openai", name="OpenAI", api_pattern=r"https://api\.openai\.com", models=[now])
    monkeypatch.setattr(
        "genai_prices.data_snapshot.get_snapshot", lambda: DataSnapshot(providers=[newer], from_auto_update=False)
    )
    known, gone = (
        read_price_table().find(name, provider="openai", url="", processing="live", day=datetime.now(UTC).date())
        for name in ("gpt-5-mini", "gpt-5-nano")
    )
    assert known is not None
    assert known["input"] != 77.5
    assert gone is not None

    price = find_price(open_model("openai:gpt-5-mini"))
    assert price is not None
    assert (price.input, price.output, price.as_of) == (77.5, 88.5, None)
    assert find_price(open_model("openai:gpt-5-nano")) is None


def test_the_table_names_its_source_and_licence():
    """Beside the prices, in the file that is shipped."""
    document = json.loads(Path(price_table.__file__).with_name("prices.json").read_text())

    assert document["source"].startswith("genai-prices ")
    assert "MIT License" in document["licence"]
    assert date.fromisoformat(document["date"]) <= datetime.now(UTC).date()


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize(("days", "said"), [(10, False), (89, False), (90, False), (91, True), (200, True)])
def test_a_budget_says_that_its_price_is_old(
    days: int, said: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """Once for a judge; a price that was stated, and one without a budget, are nobody's news."""
    old = PriceTable(
        source="a list",
        date=datetime.now(UTC).date() - timedelta(days=days),
        providers=({"id": "openai", "pattern": "x", "models": ENTRIES},),
    )
    monkeypatch.setattr("adjudge.models.price.read_price_table", lambda: old)
    model = open_model("openai:small", base_url=None)
    judges = [
        with_layers(Judge(model), budget=Budget(1.0)),
        with_layers(Judge(model), budget=Budget(1.0), prices={"small": {"input": 1.0, "output": 2.0}}),
        with_layers(Judge(model)),
    ]
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    with caplog.at_level(logging.WARNING, logger="adjudge"):
        for judge in judges:
            for _ in range(2):
                judge.model.check()  # type: ignore[attr-defined]
    assert len(caplog.records) == said
    assert not said or f"a price of openai:small that is {days} days old" in caplog.text
