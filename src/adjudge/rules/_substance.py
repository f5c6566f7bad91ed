"""Does the content say anything at all? A lone ``:`` or ``Thought process:`` must never reach a judge as an answer."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from typing import Any

from adjudge.result import RuleResult
from adjudge.rules._texts import fold, read_value

LONGEST_LABEL = 60
"""Characters of a line that is taken for a label when it ends with a colon."""

_BOILERPLATE = frozenset(
    {
        "answer", "an answer", "answer here", "assistant", "final answer", "output", "reasoning", "response", "result",
        "thinking", "thought", "thought process", "here is my answer", "here is the answer", "here is the result",
        "as an ai language model", "enter text here", "insert answer here", "insert text here", "text here",
        "your answer here", "your response here", "your text here", "lorem ipsum", "lorem ipsum dolor sit amet",
        "placeholder", "n a", "tba", "tbd", "to be announced", "to be determined", "todo",
        "none", "null", "nil", "nan", "undefined", "object object",
    }
)  # fmt: skip
"""Whole contents that stand where an answer should, without case and punctuation."""


def make_substance() -> Callable[[Any], RuleResult]:
    """The content holds something besides punctuation, labels with nothing after them, and placeholders."""

    def check(content: Any) -> RuleResult:
        if content is None:
            return RuleResult(name="", passed=False, message="is empty")
        reasons = [_explain(text) for text in _list_values(read_value(content))]
        if None in reasons:
            return RuleResult(name="", passed=True, message="says something")
        return RuleResult(name="", passed=False, message=reasons[0] if reasons and reasons[0] else "is empty")

    return check


def _list_values(value: Any) -> Iterator[str]:
    """What could be said: texts, numbers and booleans, without the keys they stand under."""
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _list_values(item)
    elif value is not None:
        yield value if isinstance(value, str) else str(value)


def _explain(text: str) -> str | None:
    """Why a text says nothing; ``None`` when it does."""
    # A placeholder may have been wrapped in invisible characters, or written in letters that are only wider.
    folded = fold(text)
    if not any(map(_is_meaningful, folded)):
        return "holds no letter, digit or symbol" if text.strip() else "is empty"
    lines = [line.strip(" \t#>*_-`") for line in folded.splitlines()]
    said = [line for line in lines if any(map(_is_meaningful, line))]
    if all(_is_label(line) for line in said):
        return "holds a label with nothing after it"
    words = " ".join("".join(char if char.isalnum() else " " for char in folded[:400]).casefold().split())
    if len(folded.strip()) <= 400 and words in _BOILERPLATE:
        return "is a placeholder"
    return None


def _is_label(line: str) -> bool:
    return len(line) <= LONGEST_LABEL and line.endswith((":", "\N{FULLWIDTH COLON}"))


def _is_meaningful(char: str) -> bool:
    # So: an answer may be a single sign, like a tick or an emoji.
    return char.isalnum() or unicodedata.category(char) == "So"
