"""A rubric for hostile contents, and the fences of what is asked about them."""

from __future__ import annotations

import re

from adjudge import Rubric

RUBRIC = Rubric(
    name="Login",
    criteria=[
        {"name": "security", "description": "Hashes passwords.", "threshold": 0.9},
        {"name": "errors", "description": "Says what went wrong."},
    ],
)

FENCE = re.compile(r"^<<(end )?(\w+) (\w{8})>>$", re.MULTILINE)


def structure(request) -> list[tuple[str, str]]:
    """The fence lines that carry the request's own token, in order."""
    return [(end, label) for end, label, token in FENCE.findall(request.user) if token == request.token]
