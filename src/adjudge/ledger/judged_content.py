"""The content that was judged, as a gate or a server hands it to a ledger that keeps it.

Which texts are kept is decided in ``payload.py`` (``choose_keep``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adjudge.content import content_text
from adjudge.errors import UsageError


def describe_judged(recorder: object, content: object, context: Mapping[str, object]) -> dict[str, Any]:
    """Return the arguments ``content`` and ``context`` with which ``append`` records what was judged.

    ``context`` holds the task, the context and the reference that the content was judged with. There are no arguments
    for a recorder that keeps no content, as most do not, and for content that has no text.
    """
    if getattr(recorder, "keeps_content", False) is not True:
        return {}
    try:
        texts = {name: content_text(value, label=name) for name, value in context.items() if value is not None}
        return {"content": content_text(content), "context": texts}
    except UsageError:  # it could not be judged either, and the entry says so
        return {}
