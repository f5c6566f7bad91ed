"""Which request a judge in code makes, and the one of a model that is asked in its place."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from adjudge import Judge
from adjudge.judges.evaluate import prepare
from adjudge.models import Reply, Request


def approve(content: str) -> bool:
    """A judge in code that approves of everything."""
    return True


class Refusing:
    """A model that rejects everything, in the form and with the token that it is asked for."""

    name = "approve"  # as the function is called, so that names tell nothing apart

    async def complete(self, request: Request, /) -> Reply:
        entry = {"name": "good", "reasoning": "", "score": 0.0}
        return Reply(text=json.dumps({"token": request.token, "criteria": [entry]}))


def pose(content: Any = "x", **how: Any) -> Any:
    """The question that a judgement asks."""
    return asyncio.run(prepare(content, None, None, {"criteria": "Good.", **how}))


def test_preview_shows_what_a_model_would_be_told():
    """And what the function would be given."""
    request = Judge(approve).preview(pose({"a": 1}))

    assert request.function_input is not None
    assert request.function_input.arguments()["content"] == {"a": 1}
    assert '"token"' not in request.user + request.system


def test_the_token_stays_where_a_function_names_a_model():
    """A judge in code whose rubric names a model asks that one, with its token."""
    asked = Judge(approve)
    asked._named_models["openai:x"] = Refusing()
    request = asked.preview(pose(model="openai:x"))

    assert request.function_input is None
    assert request.token is not None
    assert f'{{"token": "{request.token}"' in request.user
    assert asked.evaluate_sync("x", criteria="Good.", model="openai:x").outcome == "failed"
