"""What tests of question share."""

from __future__ import annotations

from adjudge import Rubric

RUBRIC = Rubric(
    name="Login",
    criteria=[
        {
            "name": "security",
            "description": "Hashes passwords.",
            "levels": {0: "plaintext", 1: "hashed"},
            "examples": [{"content": "md5(x)", "score": 0, "why": "fast"}],
            "quote": True,
        },
        {"name": "errors", "description": "Says what went wrong."},
    ],
)
