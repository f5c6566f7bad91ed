"""What tests of attacks share."""

from __future__ import annotations

from adjudge import Rubric

RUBRIC = Rubric(
    name="Login",
    criteria=[
        {"name": "security", "description": "Hashes passwords.", "threshold": 0.9},
        {"name": "errors", "description": "Says what went wrong."},
    ],
)
