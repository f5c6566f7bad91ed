"""Secrets in content: keys and tokens by their form, and values given to something that is called one.

What is found never leaves: messages and metadata say which kind stands where, and show no character of it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from adjudge.errors import UsageError
from adjudge.result import RuleResult
from adjudge.rules._secret_forms import FORMS
from adjudge.rules._texts import Document, Finding, fold, read_words, search
from adjudge.rules._words import show

LEAST_LENGTH, LEAST_ENTROPY = 12, 2.9
"""What is assigned counts as a secret from so many characters and bits per character on; prose has fewer of both."""

_ASSIGNMENT = (
    r"(?i)(?:api[_-]?key|access[_-]?key|account[_-]?key|private[_-]?key|secret|token|passwd|password|passphrase|pwd"
    r"|credentials?)[\w-]{0,30}[\"'`]?\s{0,4}(?::=|=>|[:=])\s{0,4}[\"'`]?([^\s\"'`,;<>(){}\[\]]{12,})"
)
_STAND_INS = ("example", "placeholder", "changeme", "your", "redacted", "dummy", "xxxx", "****", "....", "process.env")


def make_secrets(*, assignments: bool = True, ignore: str | Sequence[str] = ()) -> Callable[[Any], RuleResult]:
    """Nothing in the content has the form of a secret, or (``assignments``) is a random value called one."""
    if not isinstance(assignments, bool):
        raise UsageError(f"rule secrets: assignments must be true or false, got {show(assignments)}")
    ignored = frozenset(map(fold, read_words("secrets", "ignore", ignore)))

    def check(content: Any) -> RuleResult:
        def find(document: Document) -> Iterator[Finding]:
            return _find_all(document, ignored, assignments=assignments)

        return search(content, find, nothing="holds no known secret")

    return check


def _find_all(document: Document, ignored: frozenset[str], *, assignments: bool) -> Iterator[Finding]:
    known = [item for item in _find_forms(document.text) if document.text[item.start : item.end] not in ignored]
    yield from known
    if assignments:
        taken = {item.start for item in known}
        for item in _find_assigned(document.text):
            # A key of a known form that is assigned to a name is one finding, not two.
            if item.start not in taken and document.text[item.start : item.end] not in ignored:
                yield item


def _find_forms(text: str) -> Iterator[Finding]:
    which, patterns = _compile_forms()
    taken: set[int] = set()
    # One pass says which forms occur at all; in nearly every content none does.
    for index in sorted(which.Match(text) or ()):
        for match in patterns[index].finditer(text):
            if match.start() not in taken:
                taken.add(match.start())
                yield Finding(kind=FORMS[index][0], start=match.start(), end=match.end())


def _find_assigned(text: str) -> Iterator[Finding]:
    for match in _compile_assignment().finditer(text):
        if _looks_random(match.group(1)):
            yield Finding(kind="secret value", start=match.start(1), end=match.end(1))


def _looks_random(value: str) -> bool:
    """Letters and digits without the repetitions of language, and nothing people write in a secret's place."""
    lower = value[:200].lower()
    if value.startswith("$") or "://" in value or any(word in lower for word in _STAND_INS):
        return False
    mixed = sum(map(str.isdigit, lower)) >= 2 and sum(map(str.isalpha, lower)) >= 3
    return mixed and _measure_entropy(value[:200]) >= LEAST_ENTROPY


def _measure_entropy(text: str) -> float:
    """Shannon's entropy of a text's characters, in bits per character."""
    return -sum(count / len(text) * math.log2(count / len(text)) for count in Counter(text).values())


@lru_cache(maxsize=1)
def _compile_forms() -> tuple[Any, list[Any]]:
    import re2

    which = re2.Set.SearchSet()
    for _, pattern in FORMS:
        which.Add(pattern)
    which.Compile()
    return which, [re2.compile(pattern) for _, pattern in FORMS]


@lru_cache(maxsize=1)
def _compile_assignment() -> Any:
    import re2

    return re2.compile(_ASSIGNMENT)
