"""The title of a request for approval in lists: the one that its program gave it, else the action that is asked about.

The word by which people find an agent's call is made in ``guards/tool_guard/held_call.py`` (``make_word``).
"""

from __future__ import annotations

import unicodedata

from adjudge.formats.json_places import describe_call
from adjudge.formats.text import clean
from adjudge.guards.approval.approval import Approval
from adjudge.guards.approval.queue import LONGEST_BEGINNING, RequestSummary

_LONGEST_TITLE = 80

_MOST_READ = LONGEST_BEGINNING
"""Characters that are read of a content, so that a whole content and a summary's beginning of it give one title."""


def make_title(approval: Approval | RequestSummary) -> str:
    """Make a request's title: the one in its metadata, else the action that is asked about and the content's beginning.

    Without a gate, it is the request's message.
    """
    title = approval.metadata.get("title")
    if isinstance(title, str) and title.strip():
        return _shorten(title)
    if approval.gate is None:
        return _shorten(approval.message)
    content = (approval.content or "").lstrip()[:_MOST_READ]
    content_after_colon = f": {content}" if content else ""
    return _shorten(describe_call(content) or f"{find_action(approval)}{content_after_colon}")


def find_action(approval: Approval | RequestSummary) -> str:
    """Name the action that a request asks about: the tool or the HTTP request in its metadata, or else the gate."""
    tool, method, path = (approval.metadata.get(name) for name in ("tool", "method", "path"))
    if isinstance(tool, str) and tool:
        return tool
    if isinstance(method, str) and isinstance(path, str) and method:
        return f"{method} {path}"
    return approval.gate or "what was judged"


def _shorten(text: str) -> str:
    """Return a title in one line of at most 80 characters, and an ellipsis if it was longer."""
    # In one line even if its author put line breaks into it: a title must not look like two lines of the page.
    flat = " ".join(unicodedata.normalize("NFC", clean(text[:_MOST_READ], keep_lines=False)).split())
    return flat if len(flat) <= _LONGEST_TITLE else f"{flat[:_LONGEST_TITLE]}…"
