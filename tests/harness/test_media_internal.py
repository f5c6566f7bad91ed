"""Results of tools that hold a picture, a sound or a document, and those that only speak of one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adjudge.harness.media import holds_media
from kit import house

EVENTS = house.TESTS / "data" / "harness"

PLOT = {"output_type": "display_data", "image": {"image_data": "aGVsbG8=", "media_type": "image/png"}}

MEDIA: dict[str, Any] = {
    "a picture beside text": [{"type": "text", "text": "x"}, {"type": "image", "source": {"data": "aGVsbG8="}}],
    "a picture of an MCP server": {"content": [{"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}]},
    "a sound": [{"type": "audio", "data": "aGVsbG8=", "mimeType": "audio/wav"}],
    "a binary resource": [{"type": "resource", "resource": {"uri": "a:b", "blob": "aGVsbG8="}}],
    "a picture that was read": {"type": "image", "file": {"base64": "aGVsbG8=", "type": "image/png"}},
    "a PDF": {"type": "pdf", "file": {"filePath": "/a.pdf", "base64": "aGVsbG8="}},
    "pages of a PDF": {"type": "parts", "file": {"filePath": "/a.pdf", "count": 2, "outputDir": "/tmp/a"}},
    "a plot in a notebook": {"type": "notebook", "file": {"cells": [{"source": "x"}, {"outputs": [PLOT]}]}},
    "a picture of a shell": {"stdout": "data:image/png;base64,aGVsbG8=", "stderr": "", "isImage": True},
    "a picture that Codex views": {"image_url": "data:image/png;base64,aGVsbG8=", "detail": "high"},
    "a picture for a model of OpenAI": [{"type": "input_image", "image_url": "https://example.com/a.png"}],
}

TEXTS: dict[str, Any] = {
    "a text": "data:image/png;base64,aGVsbG8=",
    "nothing": None,
    "a number": 3,
    "text": [{"type": "text", "text": "an image"}, {"type": "resource", "resource": {"uri": "a:b", "text": "x"}}],
    "structured content, which the agent reads as JSON": {
        "content": [{"type": "text", "text": "two files"}],
        "structuredContent": {"entries": [{"type": "file", "name": "a.png"}, {"type": "image", "size": 3}]},
    },
    "the address of a picture": {"image_url": "https://example.com/a.png"},
    "a notebook of texts": {"type": "notebook", "file": {"cells": [{"outputs": [{"text": "image_data"}]}]}},
    "types that are no texts": [{"type": ["image"]}, {"type": None}, "image", {"resource": "blob", "image_url": 3}],
    "no picture of a shell": {"stdout": "hi", "stderr": "", "isImage": False},
    "a file that was written": {"type": "create", "filePath": "/a.png", "content": "b"},
}


@pytest.mark.parametrize("name", MEDIA)
def test_what_is_shown_other_than_as_text_is_found(name: str):
    """In every shape in which a harness has it."""
    assert holds_media(MEDIA[name])


@pytest.mark.parametrize("name", TEXTS)
def test_what_is_read_as_text_is_left_alone(name: str):
    """It is judged as the agent reads it."""
    assert not holds_media(TEXTS[name])


@pytest.mark.parametrize("file", sorted(EVENTS.glob("*.jsonl")), ids=lambda file: file.stem)
def test_recorded_results_hold_none(file: Any):
    """Commands, files and tools of MCP servers, as the coding agents sent them."""
    events = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    responses = [event["tool_response"] for event in events if "tool_response" in event]

    assert len(responses) >= 3
    assert not any(map(holds_media, responses))
