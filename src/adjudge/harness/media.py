"""Parts of what a tool returned that the agent is shown as pictures, sounds or documents, and not as text. Pure.

A harness names them by the shape of the result. A judge and rules get the same result as text, in which they are
base64.

What becomes of such a result is decided in ``checking.py`` (``HookGuard``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adjudge.content import MEDIA_PARTS

_KINDS = MEDIA_PARTS | {"pdf", "parts"}
"""Types of parts that are no text. Claude Code's ``Read`` returns ``pdf`` and ``parts`` of a PDF: the file, or pictures
of its pages, which may be in no member of the result."""


def holds_media(response: Any) -> bool:
    """Return whether a result has a part that the agent sees or hears, so that no text says what reaches it.

    Looked for where a harness takes parts from: in the result itself, in its list, and in the list ``content``. Deeper,
    as in ``structuredContent``, the agent is sent JSON, which is just what a judge reads.
    """
    content = response.get("content") if isinstance(response, Mapping) else response
    return any(map(_is_media, [response, *(content if isinstance(content, list) else [])]))


def _is_media(part: Any) -> bool:
    if not isinstance(part, Mapping):
        return False
    kind, address, resource = part.get("type"), part.get("image_url"), part.get("resource")
    if isinstance(kind, str) and kind in _KINDS:  # it may be a list, which no set can be asked for
        return True
    # Of Claude Code's Bash, whose output is the picture then, and of Codex's view_image.
    if part.get("isImage") is True or (isinstance(address, str) and address.startswith("data:")):
        return True
    if isinstance(resource, Mapping) and isinstance(resource.get("blob"), str):
        return True
    return kind == "notebook" and _holds_plot(part)


def _holds_plot(notebook: Any) -> bool:
    """Return whether the output of a cell has a picture, which Claude Code shows beside the cell's text."""
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
