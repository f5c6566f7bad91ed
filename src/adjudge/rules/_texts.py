r"""Content as one text that a rule searches, and what a rule found in it, said without repeating it.

A JSON value, and a text that is one, is searched as the texts inside it, unescaped and each under its key, so that
``\u0073k-`` is found as ``sk-``. Between two of them stands a NUL, which no pattern crosses.
"""

from __future__ import annotations

import json
import unicodedata
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from adjudge.errors import UsageError
from adjudge.result import RuleResult
from adjudge.rules._json import read_json
from adjudge.rules._words import show, suggest

MOST_FOUND = 1_000
"""Findings after which a rule stops looking; one is enough to fail."""
MOST_NAMED = 20
"""Findings that ``RuleResult.metadata`` describes."""

_BETWEEN = "\n\x00\n"
_PLAIN_STEP = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-")


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What is searched, and where its parts come from."""

    text: str
    starts: tuple[int, ...] = ()
    """Where each part of a JSON value begins; nothing for a text."""
    paths: tuple[str, ...] = ()

    @property
    def parts(self) -> list[tuple[int, str]]:
        """Each part with its start; a text is its only one."""
        if not self.starts:
            return [(0, self.text)]
        ends = [start - len(_BETWEEN) for start in self.starts[1:]] + [len(self.text)]
        return [(start, self.text[start:end]) for start, end in zip(self.starts, ends, strict=True)]

    def locate(self, start: int) -> str:
        """Where a character stands: ``line 3`` of a text, ``user.notes[0]`` of a JSON value."""
        if not self.starts:
            return f"line {self.text.count(chr(10), 0, start) + 1}"
        return self.paths[bisect_right(self.starts, start) - 1] or "the value"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something a rule looks for."""

    kind: str
    start: int
    end: int
    shown: str = ""
    """What a message may show of it; nothing of a secret."""


def read_document(content: Any, *, folded: bool = True) -> Document:
    """The content to search; ``folded`` writes characters that only look different as ASCII has them."""
    parts = list(_list_parts(content))
    texts = [_split_lines(fold(text)) if folded else text for _, text in parts]
    if parts and parts[0][0] is None:
        return Document(text=texts[0])
    starts, place = [], 0
    for text in texts:
        starts.append(place)
        place += len(text) + len(_BETWEEN)
    return Document(text=_BETWEEN.join(texts), starts=tuple(starts), paths=tuple(str(path) for path, _ in parts))


def read_value(content: Any) -> Any:
    """A JSON value, or a text that is an object or a list, as plain data; any other content as its text."""
    from adjudge.content import content_text

    text = content_text(content)
    if text.lstrip()[:1] not in ("{", "["):
        return text
    try:
        return read_json(text)
    except ValueError:
        return text


def fold(text: str) -> str:
    """A text with digits, dashes, spaces and letters as ASCII writes them and without invisible characters.

    Lines stay lines. Only what is one character in ASCII is folded, so an ideograph stays what it is.
    """
    if text.isascii():
        return text
    return text.translate({ord(char): _fold_one(char) for char in set(text) if not char.isascii()})


def _split_lines(text: str) -> str:
    """With spaces for line ends that are written as escapes, or the ``n`` would seem to begin the word after it."""
    return text.replace("\\n", "  ").replace("\\r", "  ").replace("\\t", "  ") if "\\" in text else text


def is_selector(char: str) -> bool:
    """Whether a character only chooses between pictures of the one before it."""
    return "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"


def report(document: Document, findings: Iterable[Finding], *, nothing: str) -> RuleResult:
    """The rule's answer: passed when there is no finding; else what was found, where, in order."""
    found = sorted(islice(findings, MOST_FOUND), key=lambda item: (item.start, item.end))
    if not found:
        return RuleResult(name="", passed=True, message=nothing)
    named = [(item, document.locate(item.start)) for item in found[:MOST_NAMED]]
    said = [f"{item.kind}{f' {item.shown}' if item.shown else ''} in {place}" for item, place in named[:3]]
    more = f" and {len(found) - 3:,} more" if len(found) > 3 else ""
    return RuleResult(
        name="",
        passed=False,
        message=f"holds {', '.join(said)}{more}",
        metadata={"count": len(found), "found": [{"kind": item.kind, "place": place} for item, place in named]},
    )


def read_choice(rule: str, name: str, value: Any, known: Collection[str]) -> tuple[str, ...]:
    """Some of the known words, given as one or as a list; ``None`` is all of them."""
    chosen = read_words(rule, name, value) if value is not None else tuple(known)
    for item in chosen:
        if item not in known:
            raise UsageError(f"rule {rule}: {name} are of {', '.join(known)}; got {show(item)}{suggest(item, known)}")
    if not chosen:
        raise UsageError(f"rule {rule}: {name} is empty, so nothing would be found; leave it out for all")
    return chosen


def read_words(rule: str, name: str, value: Any) -> tuple[str, ...]:
    """One text or a list of texts, none of them empty."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not all(isinstance(item, str) and item.strip() for item in texts):
        raise UsageError(f"rule {rule}: {name} must be a text or a list of texts, none empty; got {show(value)}")
    return tuple(texts)


def _list_parts(content: Any) -> Iterator[tuple[str | None, str]]:
    value = read_value(content)
    if isinstance(value, str):
        yield None, value
    else:
        yield "", ""  # so that an empty list has a part as well
        yield from _walk(value, "", "")


def _walk(value: Any, path: str, label: str) -> Iterator[tuple[str, str]]:
    """Every text and number with its path, after its key; keys of what holds more stand alone."""
    if isinstance(value, dict):
        for key, item in value.items():
            below = f"{path}.{_show_step(key)}" if path else _show_step(key)
            if isinstance(item, dict | list):
                yield path, key
            yield from _walk(item, below, f"{key}: ")
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from _walk(item, f"{path}[{place}]", label)
    else:
        yield path, label + (value if isinstance(value, str) else json.dumps(value))


def _show_step(key: str) -> str:
    # A key can be the secret itself; only what reads like a name is shown.
    return key if 0 < len(key) <= 24 and _PLAIN_STEP.issuperset(key) else "*"


def _fold_one(char: str) -> str | None:
    category = unicodedata.category(char)
    if category == "Cf" or is_selector(char):
        return None
    if category == "Nd":
        return str(unicodedata.decimal(char))
    if category == "Pd" or char == "\N{MINUS SIGN}":
        return "-"
    if category == "Zs":
        return " "
    plain = unicodedata.normalize("NFKC", char)
    return plain if len(plain) == 1 and plain.isascii() else char
