"""JavaScript's patterns as RE2 reads them."""

from __future__ import annotations

import asyncio

import pytest

from adjudge import UsageError
from adjudge.dataset.importers.ecmascript_regex import translate_regex
from adjudge.rules import as_rule

JAVASCRIPT = {
    r"^\s+$": (["\u00a0\ufeff\u2028", "\t"], ["a", "\u200b"]),
    r"^\S+$": (["a\u200b", "\U0001f600"], ["a\u00a0", "\u3000"]),
    r"^.$": (["a", "\x0b", "\x85"], ["\n", "\r", "\u2028"]),
    r"[^\s]": (["a"], ["\u00a0"]),
    r"^[\S ]+$": (["a b"], ["a\u00a0b"]),
    "^[^]$": (["\n", "a"], ["", "ab"]),
    "a[]": ([], ["a", "a]"]),
    r"[\b]": (["\x08"], ["b", "a b"]),
    r"^\d\w\b": (["1a"], ["١a", "1é"]),
    "[[:alpha:]]": (["a]", ":]", "[]"], ["a", "z]"]),
    "a{,2}": (["a{,2}"], ["aa"]),
    "{a}": (["{a}"], ["a"]),
    "]": (["]"], ["["]),
    r"\u00e9\x41": (["\u00e9A"], ["e"]),
    "(?<year>[0-9]{4})-": (["2024-"], ["24-"]),
    "a|^$": (["", "a"], ["b"]),
    r"\/\-\.": (["/-."], ["/-a"]),
    "é+?": (["é"], ["e"]),
    r"^[\x01-\s]$": (["\x01", "-", "\t"], ["\x05", "a"]),
    r"^[\s-\uffff]$": ([" ", "-", "\uffff"], ["\uff00", "a"]),
    r"^[\w-.]$": (["a", "-", "."], [",", "/"]),
    r"^[\w--/]$": (["a", "-", "/"], ["."]),
    r"^[a-\d]$": (["a", "-", "7"], ["b", "d"]),
    r"^[\d-\s-z]$": (["1", "-", " ", "z"], ["y", "\xa1"]),
    "^[+--]$": (["+", ",", "-"], ["."]),
    "^[a-c-e]$": (["b", "-", "e"], ["d"]),
    r"^[-\s]$": (["-", " "], ["a"]),
    r"^[\s-]$": (["-", " "], ["a"]),
}
"""Patterns with texts that JavaScript (Node 20) finds them in, and texts it does not."""


@pytest.mark.parametrize("pattern", JAVASCRIPT)
def test_patterns_find_what_javascript_finds(pattern: str):
    """What both write alike and read differently is translated."""
    rule = as_rule({"regex": translate_regex(pattern), "as_written": True})
    hits, missed = JAVASCRIPT[pattern]

    assert [asyncio.run(rule.check(text)).passed for text in [*hits, *missed]] == [True] * len(hits) + [False] * len(
        missed
    )


@pytest.mark.parametrize(
    "pattern",
    [
        "(?=a)",
        "(?<!a)b",
        "(?i)a",
        "(?P<a>b)",
        "(?#c)",
        r"\Aa",
        r"a\z",
        r"\Qa\E",
        r"\p{L}",
        r"\1",
        r"\k<a>",
        r"\cA",
        r"\01",
        r"\a",
        r"\x{41}",
        r"\ud83d",
        "a++",
        "a**",
        "^*",
        r"\b+",
        "a\\",
        "[a",
        "[a-",
        r"[\s-",
        r"[\p]",
        "a" * 2_001,
    ],
)
def test_patterns_that_would_mean_something_else_are_refused(pattern: str):
    """A pattern that RE2 takes and reads in another way would decide wrongly and say nothing."""
    with pytest.raises(UsageError, match="pattern"):
        translate_regex(pattern)
