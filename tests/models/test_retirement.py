"""When a model is retired, as the providers' own lists of models say it; marked from their SDKs' types."""

from __future__ import annotations

import asyncio
from datetime import date
from typing import Any

import pytest
from aiohttp import web

from adjudge.models import Retirement, find_retirement, open_model

pytestmark = pytest.mark.timed


TODAY = date(2026, 11, 22)

VARIABLES = {"openai": ("OPENAI_BASE_URL", "OPENAI_API_KEY"), "anthropic": ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY")}


def find(monkeypatch: pytest.MonkeyPatch, spec: str, body: Any, *, status: int = 200) -> tuple[Any, list[Any]]:
    """What is found of a model whose provider says this, and the requests that it took."""
    asked: list[Any] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request)
        return (
            web.Response(body=body, status=status)
            if isinstance(body, bytes)
            else web.json_response(body, status=status)
        )

    async def go() -> Any:
        app = web.Application()
        app.router.add_get("/v1/models/{name}", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        address, key = VARIABLES[spec.partition(":")[0]]
        monkeypatch.setenv(address, f"http://127.0.0.1:{runner.addresses[0][1]}" + ("/v1" if "openai" in spec else ""))
        monkeypatch.setenv(key, "sk-of-the-test")
        model: Any = open_model(spec)
        try:
            return await find_retirement(model)
        finally:
            await model.aclose()
            await runner.cleanup()

    return asyncio.run(go()), asked


@pytest.mark.parametrize(
    ("spec", "body", "expected"),
    [
        pytest.param(
            "openai:a/b", {"id": "a/b", "shutdown_date": "2026-12-11"}, ("deprecated", date(2026, 12, 11)), id="openai"
        ),
        pytest.param("openai:a", {"id": "a", "shutdown_date": None}, ("active", None), id="openai-none"),
        pytest.param(
            "anthropic:a",
            {"id": "a", "lifecycle": "deprecated", "retires_at": "2026-11-30T00:00:00Z"},
            ("deprecated", date(2026, 11, 30)),
            id="anthropic",
        ),
        pytest.param(
            "anthropic:a", {"id": "a", "lifecycle": "retired", "retires_at": None}, ("retired", None), id="gone"
        ),
        pytest.param("anthropic:a", {"id": "a", "lifecycle": "new word"}, ("active", None), id="anthropic-unknown"),
    ],
)
def test_a_provider_says_when_a_model_is_retired(monkeypatch, spec, body, expected):
    """The one model is asked for, with the provider's own key header."""
    retirement, [request] = find(monkeypatch, spec, body)

    assert (retirement.state, retirement.on) == expected
    assert retirement.model == spec
    assert request.match_info["name"] == spec.partition(":")[2]
    assert "sk-of-the-test" in " ".join(request.headers.values())


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"no JSON", 200), (b"[]", 200), ({"shutdown_date": "soon"}, 200), ({}, 404), (b"", 500), (b"[" * 100_000, 200)],
)
def test_whatever_a_provider_answers_keeps_nobody_from_asking(monkeypatch, body, status):
    """Nothing is raised; what cannot be read is not known."""
    retirement, _ = find(monkeypatch, "openai:a", body, status=status)

    assert retirement is None


@pytest.mark.parametrize(
    "spec", ["http://127.0.0.1:9/v1#a", "gemini:a", "rules", "openai:a?base_url=http://127.0.0.1:9/v1"]
)
def test_providers_without_such_dates_are_not_asked(spec):
    """Servers of one's own and other providers say nothing of it."""
    assert asyncio.run(find_retirement(open_model(spec))) is None


@pytest.mark.parametrize(
    ("retirement", "message"),
    [
        (Retirement(model="m", state="active"), None),
        (Retirement(model="m", state="active", on=date(2027, 9, 1)), None),
        (Retirement(model="m", state="deprecated", on=date(2026, 12, 1)), "2026-12-01, in 9 days"),
        (Retirement(model="m", state="deprecated", on=date(2026, 10, 15)), "may end any day"),
        (Retirement(model="m", state="deprecated", replacement="n"), "its provider names n"),
        (Retirement(model="m", state="retired"), "is retired"),
    ],
)
def test_a_warning_names_the_day_and_what_to_do(retirement, message):
    """A model that stays needs no warning; a day that has passed is not taken for the end."""
    warning = retirement.warn(TODAY)

    assert (warning is None) == (message is None)
    assert message is None or (message in (warning or "") and "adjudge replace-judge" in (warning or ""))
