"""The library's sentences in the words of the command line."""

from __future__ import annotations

import re
from pathlib import Path

from adjudge.cli.wording import name_options

DOCS = Path(__file__).parents[2] / "docs"


def test_what_has_an_option_beside_it_is_the_option_alone():
    """With what may be written in the configuration instead."""
    assert name_options("resume it with resume=True (--resume), or stop") == "resume it with --resume, or stop"
    assert name_options("judge with token=False (--no-token; token = false in x.toml)") == (
        "judge with --no-token (or token = false in x.toml)"
    )


def test_other_text_is_left_as_it_is():
    """What is quoted in a sentence may hold anything."""
    for text in ("a=b", "the row has no 'content'; it has 'timeout='", "f() = 1 (--x)", "by=", ""):
        assert name_options(text) == text


def test_every_option_that_is_named_exists():
    """Nobody is sent to an option that no command has."""
    import inspect

    from adjudge.cli import wording

    page = (DOCS / "cli.md").read_text("utf-8")
    named = set(re.findall(r"--[a-z-]{2,}", inspect.getsource(wording)))

    assert named
    assert {name for name in named if name not in page} == set()
