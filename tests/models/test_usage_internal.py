"""Usage that cannot be true: the reply counts, what it cost is unknown, and a warning names it."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from typing import Any

import pytest

from adjudge import Judge, Usage, open_model
from adjudge.judges import with_layers
from adjudge.models import Reply
from adjudge.models.providers.anthropic import Anthropic
from adjudge.models.providers.gemini import Gemini
from adjudge.models.usage import MOST_TOKENS, drop_impossible_usage
from kit.cli import serve
from kit.judges import Plain

pytestmark = pytest.mark.timed


WRONG: Mapping[str, Any] = {
    "immense": 10**30,
    "too many": MOST_TOKENS + 1,
    "negative": -1,
    "fractional": 1.5,
    "boolean": True,
    "text": "12",
    "list": [1],
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", ["prompt_tokens", "completion_tokens", "cached_tokens", "cache_write_tokens"])
def test_a_server_that_reports_nonsense_is_judged_with_unknown_cost(wrong: str, name: str, caplog: Any):
    """Through a real server, with a price: the verdict counts, and no cost is made of the numbers."""

    def count(_prompt: str, _text: str) -> Mapping[str, Any]:
        usage: dict[str, Any] = {"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {}}
        usage["prompt_tokens_details" if name.startswith("cache") else name] = (
            {name: WRONG[wrong]} if name.startswith("cache") else WRONG[wrong]
        )
        return usage

    with serve(usage=count) as provider, caplog.at_level(logging.WARNING):
        judge = with_layers(Judge(open_model(provider.spec)), prices={"small": {"input": 1, "output": 1}})
        result = judge.evaluate_sync("good", criteria="Good.")

    assert result.outcome != "undecided"
    assert result.usage is None
    assert "cannot be true" in caplog.text


BODIES: Mapping[str, tuple[Any, str, tuple[str, ...]]] = {
    "anthropic": (
        Anthropic("claude-x"),
        '{{"content": [{{"type": "text", "text": "x"}}], "stop_reason": "end_turn", "usage": {}}}',
        ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),
    ),
    "gemini": (
        Gemini("gemini-x"),
        (
            '{{"candidates": [{{"content": {{"parts": [{{"text": "x"}}]}}, '
            '"finishReason": "STOP"}}], "usageMetadata": {}}}'
        ),
        ("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "cachedContentTokenCount"),
    ),
}


@pytest.mark.parametrize("provider", BODIES)
@pytest.mark.parametrize("wrong", WRONG)
def test_other_providers_are_read_alike(provider: str, wrong: str):
    """Each of their counts, beside others that are right."""
    model, body, names = BODIES[provider]
    for name in names:
        usage = dict.fromkeys(names, 7) | {name: WRONG[wrong]}
        reply = model._read_reply(body.format(json.dumps(usage)).encode(), {})
        assert drop_impossible_usage(reply, "m").usage is None
    right = model._read_reply(body.format(json.dumps(dict.fromkeys(names, 7))).encode(), {})
    assert drop_impossible_usage(right, "m").usage.output_tokens in (7, 14)


@pytest.mark.parametrize(
    "usage",
    [
        Usage(input_tokens=10**30),
        Usage(output_tokens=-5),
        Usage(cached_tokens=float("nan")),  # type: ignore[arg-type]
        Usage(input_tokens=True),
        Usage(calls=-1),
        Usage(cost_usd=float("nan")),
        Usage(cost_usd=-0.1),
        Usage(cost_usd=1e30),
        Usage(cost_usd=True),
    ],
)
def test_a_function_or_a_recording_is_not_believed_either(usage: Usage):
    """Whatever brings the reply; what can be true is kept as it is."""
    line = Reply(text='{"safe": true}', usage=usage)
    right = Reply(text='{"safe": true}', usage=Usage(input_tokens=MOST_TOKENS, output_tokens=0, cost_usd=12.5))

    result = asyncio.run(Judge(Plain(line)).ask("Safe?"))
    assert result.passed
    assert result.usage is None or result.usage == Usage(cost_usd=None)
    assert asyncio.run(Judge(Plain(right)).ask("Safe?")).usage == right.usage
