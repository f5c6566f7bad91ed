"""Rubric files without the trouble: a text as a file of some name, the schema for editors, and what ships."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from adjudge import Rubric, UsageError, load_rubric

DATA = files("adjudge.rubric") / "shipped"

SHIPPED = tuple(sorted(item.name.removesuffix(".yaml") for item in DATA.iterdir() if item.name.endswith(".yaml")))
"""The names of the shipped rubrics."""


def read_rubric(text: str, *, format: str, name: str = "rubric") -> Rubric:  # noqa: A002 - the word for it
    """The rubric in a file with this text; an error calls the file by its name alone."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.{format}"
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        try:
            return load_rubric(path)
        except UsageError as error:
            raise UsageError(str(error).replace(f"{folder}/", "")) from None


def read_schema() -> Any:
    """The JSON Schema of rubric files, as it ships."""
    return json.loads((DATA / "rubric.schema.json").read_text(encoding="utf-8"))


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
