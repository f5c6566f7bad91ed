"""The scripted model, by the two protocols that it speaks."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

import pytest

from adjudge.harness.scripted_model import ScriptedCall, ScriptedModel
from kit.patience import HANG

pytestmark = pytest.mark.timed

CALL = ScriptedCall(tool="Bash", arguments={"command": "ls"}, call_id="t1")


def post(model: ScriptedModel, path: str, body: object) -> str:
    connection = http.client.HTTPConnection(urlsplit(model.url).netloc, timeout=HANG)
    try:
        connection.request("POST", path, json.dumps(body))
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def read_events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: ")]


def test_messages_are_answered_step_by_step():
    """A request without tools, for a title, takes no step."""
    with ScriptedModel([[CALL], "Done."]) as model:
        title = json.loads(post(model, "/v1/messages", {"messages": []}))
        first = read_events(post(model, "/v1/messages?beta=true", {"tools": [{}], "stream": True}))
        second = json.loads(post(model, "/v1/messages", {"tools": [{}]}))

    assert title["content"] == [{"type": "text", "text": "title"}]
    started = [event["content_block"] for event in first if event["type"] == "content_block_start"]
    assert started == [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}]
    assert second["content"] == [{"type": "text", "text": "Done."}]
    assert len(model.requests) == 2


def test_responses_are_answered_step_by_step():
    """After the last step every answer ends the turn."""
    with ScriptedModel([[CALL]]) as model:
        first, second = (read_events(post(model, "/v1/responses", {"tools": []})) for _ in range(2))

    assert json.loads(first[-1]["response"]["output"][0]["arguments"]) == {"command": "ls"}
    assert first[-1]["response"]["output"][0]["call_id"] == "t1"
    assert second[-1]["response"]["output"][0]["type"] == "message"


def test_a_body_that_is_no_object_takes_a_step_and_stops_nothing():
    """The harness is answered, and what it sent is empty."""
    with ScriptedModel(["Done."]) as model:
        text = post(model, "/v1/responses", "x")

    assert read_events(text)[-1]["type"] == "response.completed"
    assert model.requests == [{}]
