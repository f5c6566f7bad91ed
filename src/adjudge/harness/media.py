"""Recognition of pictures, sounds and documents in a tool's result, which the agent gets as such and not as text.

A harness recognises them by the shape of the result. A judge and rules get the same result as text, in which they are
base64. So no text shows what reaches the agent.

``hook_guard.py`` (``HookGuard``) decides what happens with such a result.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adjudge.content import MEDIA_PARTS

_MEDIA_TYPES = MEDIA_PARTS | {"pdf", "parts"}
"""Types of parts that are not text. For a PDF, Claude Code's ``Read`` returns ``pdf`` (the file) or ``parts`` (pictures
of its pages, which need not be in the result itself)."""


def holds_media(response: Any) -> bool:
    """Return whether a result has a part that the agent sees or hears.

    The search covers the places from which a harness takes parts: the result itself, its items if it is a list, and the
    list ``content``. Deeper parts, as in ``structuredContent``, reach the agent as JSON, just as they reach a judge.
    """
    content = response.get("content") if isinstance(response, Mapping) else response
    return any(map(_is_media, [response, *(content if isinstance(content, list) else [])]))


def _is_media(part: Any) -> bool:
    """Return whether a part of a result is a picture, a sound or a document, or a notebook with a picture."""
    if not isinstance(part, Mapping):
        return False
    kind, address, resource = part.get("type"), part.get("image_url"), part.get("resource")
    if isinstance(kind, str) and kind in _MEDIA_TYPES:  # a list would raise TypeError in a set
        return True
    # ``isImage``: Claude Code's Bash, whose output is a picture then. ``image_url``: Codex's view_image.
    if part.get("isImage") is True or (isinstance(address, str) and address.startswith("data:")):
        return True
    if isinstance(resource, Mapping) and isinstance(resource.get("blob"), str):
        return True
    return kind == "notebook" and _has_plot(part)


def _has_plot(notebook: Any) -> bool:
    """Return whether a cell of a notebook has a picture in its output, which Claude Code shows to the agent."""
    values = [notebook]
    while values:
        value = values.pop()
        if isinstance(value, Mapping):
            if "image_data" in value:
                return True
            values += value.values()
        elif isinstance(value, list):
            values += value
    return False
