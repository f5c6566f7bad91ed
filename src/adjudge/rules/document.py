r"""Content as one text that a rule searches, and what a rule found in it, said without repeating it.

A JSON value, and a text that is one, is searched as the texts inside it, unescaped and each under its key, so that
``\u0073k-`` is found as ``sk-``. Between two of them is a NUL, which no pattern crosses.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from adjudge.errors import UsageError
from adjudge.formats.invisible import drop_unseen, has_unseen
from adjudge.formats.json import read_json
from adjudge.formats.text import show, suggest
from adjudge.result import RuleResult
from adjudge.rules.values import Place, TooDeepError, Value, describe_place, list_values, undo_escapes

MOST_FOUND = 1_000
"""Findings after which a rule stops looking; one is enough to fail."""

MOST_NAMED = 20
"""Findings that ``RuleResult.metadata`` describes."""


_BETWEEN = "\n\x00\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A text that is searched, and where its parts come from."""

    text: str
    starts: tuple[int, ...] = ()
    """The beginning of each part of a JSON value; nothing for a text."""
    places: tuple[Place, ...] = ()

    @property
    def parts(self) -> list[tuple[int, str]]:
        """The parts, each with its start; a text is its only one."""
        if not self.starts:
            return [(0, self.text)]
        ends = [start - len(_BETWEEN) for start in self.starts[1:]] + [len(self.text)]
        return [(start, self.text[start:end]) for start, end in zip(self.starts, ends, strict=True)]

    def locate(self, start: int) -> str:
        """Write the place of a character: ``line 3`` of a text, ``user.notes[0]`` of a JSON value."""
        if not self.starts:
            return f"line {self.text.count(chr(10), 0, start) + 1}"
        return describe_place(self.places[bisect_right(self.starts, start) - 1]) or "the value"


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """One occurrence of what a rule looks for."""

    kind: str
    start: int
    end: int
    shown: str = ""
    """The part of it that a message may show; nothing of a secret."""


def search(
    content: Any,
    find: Callable[[Document], Iterable[Detection]],
    *,
    nothing: str,
    folded: bool = True,
    loose: bool = True,
) -> RuleResult:
    """Search the content, and other ways of reading it; ``nothing`` is the message where nothing is found.

    ``folded`` writes characters that only look different as ASCII has them, and leaves out those that nobody sees.
    ``loose`` also looks at what JSON inside some other text says: not for a rule about what a text looks like.
    """
    try:
        for document in _read_documents(content, folded=folded, loose=loose):
            result = _make_result(document, find(document), nothing=nothing)
            if not result.passed:
                return result
    except TooDeepError as error:
        return RuleResult(name="", passed=False, message=str(error))
    return RuleResult(name="", passed=True, message=nothing)


def _read_documents(content: Any, *, folded: bool, loose: bool) -> Iterator[Document]:
    """Yield the content as documents to search, first as it is."""
    from adjudge.content import content_text

    text = content_text(content)
    values = list_values(text)
    if values is not None:
        parts = [(None, ""), *_list_parts(values, loose=loose)]  # so that an empty list has a part as well
        yield from (_join_parts(parts, gap) for gap in _list_gaps([part for _, part in parts], folded=folded))
        return
    unescaped = undo_escapes(text) if loose else None
    for reading in (text,) if unescaped is None else (text, unescaped):
        for gap in _list_gaps([reading], folded=folded):
            yield Document(text=_fold_part(reading, gap))


def _list_gaps(texts: list[str], *, folded: bool) -> tuple[str | None, ...]:
    """List what takes the place of a character that nobody sees; ``None`` leaves everything as it is.

    In a number or a key it must be nothing. Between a word and a key it must be a blank, or the two become one word.
    """
    if not folded:
        return (None,)
    return ("", " ") if any(map(has_unseen, texts)) else ("",)


def _fold_part(text: str, gap: str | None) -> str:
    return text if gap is None else _split_lines(fold(text, gap))


def _join_parts(parts: list[tuple[Place, str]], gap: str | None) -> Document:
    """Join the parts into one document, with a NUL between two; each is folded, unless ``gap`` is ``None``."""
    starts, texts, end = [], [], 0
    for _, part in parts:
        text = _fold_part(part, gap)
        starts.append(end)
        texts.append(text)
        end += len(text) + len(_BETWEEN)
    return Document(text=_BETWEEN.join(texts), starts=tuple(starts), places=tuple(place for place, _ in parts))


def read_value(content: Any) -> Any:
    """Read a JSON value, or a text that is an object or a list, as plain data; any other content as its text."""
    from adjudge.content import content_text

    text = content_text(content)
    if text.lstrip()[:1] not in ("{", "["):
        return text
    try:
        return read_json(text)
    except ValueError:
        return text


def fold(text: str, gap: str = "") -> str:
    """Fold a text: write digits, dashes, spaces and letters as ASCII writes them and without what nobody sees.

    Lines stay lines. Only what is one character in ASCII is folded, so an ideograph stays what it is.
    """
    seen = drop_unseen(text, gap)
    if seen.isascii():
        return seen
    return seen.translate({ord(char): _fold_one(char) for char in set(seen) if not char.isascii()})


def _split_lines(text: str) -> str:
    """Put spaces for line ends that are written as escapes, or the ``n`` would seem to begin the word after it."""
    return text.replace("\\n", "  ").replace("\\r", "  ").replace("\\t", "  ") if "\\" in text else text


def is_selector(char: str) -> bool:
    """Return whether a character only chooses between pictures of the one before it."""
    return "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"


def _make_result(document: Document, findings: Iterable[Detection], *, nothing: str) -> RuleResult:
    """Make the rule's result: passed when nothing is found; else it names what was found and where, in order."""
    detections = sorted(islice(findings, MOST_FOUND), key=lambda detection: (detection.start, detection.end))
    if not detections:
        return RuleResult(name="", passed=True, message=nothing)
    located = [(detection, document.locate(detection.start)) for detection in detections[:MOST_NAMED]]
    descriptions = [
        f"{detection.kind}{f' {detection.shown}' if detection.shown else ''} in {place}"
        for detection, place in located[:3]
    ]
    more = f" and {len(detections) - 3:,} more" if len(detections) > 3 else ""
    return RuleResult(
        name="",
        passed=False,
        message=f"holds {', '.join(descriptions)}{more}",
        metadata={
            "count": len(detections),
            "found": [{"kind": detection.kind, "place": place} for detection, place in located],
        },
    )


def read_choice(rule: str, name: str, value: Any, choices: Collection[str]) -> tuple[str, ...]:
    """Read some of the choices, given as one or as a list; ``None`` is all of them. Raises ``UsageError``."""
    words = read_words(rule, name, value) if value is not None else tuple(choices)
    for word in words:
        if word not in choices:
            raise UsageError(
                f"rule {rule}: {name} are of {', '.join(choices)}; got {show(word)}{suggest(word, choices)}"
            )
    if not words:
        raise UsageError(f"rule {rule}: {name} is empty, so nothing would be found; leave it out for all")
    return words


def read_words(rule: str, name: str, value: Any) -> tuple[str, ...]:
    """Read one text or a list of texts, none of them empty. Raises ``UsageError``."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) and text.strip() for text in texts):
        raise UsageError(f"rule {rule}: {name} must be a text or a list of texts, none empty; got {show(value)}")
    return tuple(texts)


def _list_parts(values: list[Value], *, loose: bool) -> Iterator[tuple[Place, str]]:
    """Yield the text of each value as ``name: text``, and of an object, a list or a text that is JSON its name alone.

    With ``loose``, a text that has escapes is yielded once more without them.
    """
    for value in values:
        if value.text is None or value.nested:
            if value.name is not None:
                yield value.place, value.name
            continue
        label = "" if value.name is None else f"{value.name}: "
        yield value.place, label + value.text
        plain = undo_escapes(value.text) if loose else None
        if plain is not None:
            yield value.place, label + plain


def _fold_one(char: str) -> str:
    """Return the ASCII character that is the same as a character; the character itself where there is none."""
    category = unicodedata.category(char)
    if category == "Nd":
        return str(unicodedata.decimal(char))
    if category == "Pd" or char == "\N{MINUS SIGN}":
        return "-"
    if category == "Zs":
        return " "
    plain = unicodedata.normalize("NFKC", char)
    return plain if len(plain) == 1 and plain.isascii() else char
