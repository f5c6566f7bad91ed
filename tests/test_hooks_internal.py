"""What is logged of a call that is repeated without a pause."""

from __future__ import annotations

import asyncio
import logging

import pytest

from adjudge import Judge, JudgeResult

pytestmark = pytest.mark.timed


KEY = "sk-0123456789abcdef"


def test_a_key_is_in_no_log(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch):
    """Not even at DEBUG, with the provider's address refused and the hook failing."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr("adjudge.models.providers.http.back_off", lambda *_: 0.0)

    def quote(result: JudgeResult) -> None:
        raise ValueError(repr(result))

    async def ask() -> JudgeResult:
        from adjudge.models import open_model

        async with Judge(open_model("openai:gpt", base_url="http://127.0.0.1:1/v1"), on_result=quote) as asked:
            return await asked.evaluate("x", criteria="Good.")

    with caplog.at_level(logging.DEBUG):
        result = asyncio.run(ask())

    assert result.undecided_because == "error"
    assert "the on_result hook raised ValueError" in caplog.text
    assert KEY not in caplog.text
