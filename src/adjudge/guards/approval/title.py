"""The title of a request in lists: the one that its program gave it, else what would be done.

The word by which people find an agent's call is made in ``guards/tool_guard/held_call.py`` (``make_word``).
"""

from __future__ import annotations

import unicodedata

from adjudge.formats.json_places import describe_call
from adjudge.formats.text import clean
from adjudge.guards.approval.approval import Approval
from adjudge.guards.approval.queue import LONGEST_BEGINNING, RequestSummary

_LONGEST_TITLE = 80

_READ_OF_TITLE = LONGEST_BEGINNING
"""Characters that are looked at for a title, which is made of a whole content or of its beginning."""


def make_title(approval: Approval | RequestSummary) -> str:
    """Make a request's title: the one that its program gave it, else what it does and how its content begins."""
    title = approval.metadata.get("title")
    if isinstance(title, str) and title.strip():
        return _shorten(title)
    if approval.gate is None:
        return _shorten(approval.message)
    content = (approval.content or "").lstrip()[:_READ_OF_TITLE]
    begins = f": {content}" if content else ""
    return _shorten(describe_call(content) or f"{find_action(approval)}{begins}")


def find_action(approval: Approval | RequestSummary) -> str:
    """Find the action that would be done, as far as the request says: a tool, an HTTP request, or passing the gate."""
    tool, method, path = (approval.metadata.get(name) for name in ("tool", "method", "path"))
    if isinstance(tool, str) and tool:
        return tool
    if isinstance(method, str) and isinstance(path, str) and method:
        return f"{method} {path}"
    return approval.gate or "what was judged"


def _shorten(text: str) -> str:
    # In one line, whatever a title's author put into it: a title must not look like two lines of the page.
    flat = " ".join(unicodedata.normalize("NFC", clean(text[:_READ_OF_TITLE], keep_lines=False)).split())
    return flat if len(flat) <= _LONGEST_TITLE else f"{flat[:_LONGEST_TITLE]}…"
