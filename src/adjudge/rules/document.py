r"""Content as one text that a rule searches, and a rule's findings as a result that does not repeat what was found.

A JSON value, and a text that is one, is searched as the texts inside it, unescaped and each after its key, so that
``\u0073k-`` is found as ``sk-``. A NUL is put between two of these texts, so that no pattern matches across them.
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
from adjudge.rules.json_values import Place, TooDeepError, Value, describe_place, list_values, undo_escapes

MOST_FOUND = 1_000
"""Findings after which a rule stops looking; one is enough to fail."""

MOST_NAMED = 20
"""The most findings that ``RuleResult.metadata`` describes."""


_SEPARATOR = "\n\x00\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A text that is searched, and the places in the content from which its parts come."""

    text: str
    starts: tuple[int, ...] = ()
    """The offset of each part in ``text``, for a JSON value; empty if the content is a text."""
    places: tuple[Place, ...] = ()
    """The place of each part in the JSON value."""

    @property
    def parts(self) -> list[tuple[int, str]]:
        """The parts, each as its offset in ``text`` and its text; content that is a text is a single part."""
        if not self.starts:
            return [(0, self.text)]
        ends = [start - len(_SEPARATOR) for start in self.starts[1:]] + [len(self.text)]
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
    """The text of it that a message may show; empty for a secret."""


def search(
    content: Any,
    find: Callable[[Document], Iterable[Detection]],
    *,
    nothing: str,
    folded: bool = True,
    loose: bool = True,
) -> RuleResult:
    """Search the content with ``find`` in every way of reading it, and return the first result with findings.

    ``nothing`` is the message of the result that passes. ``folded`` writes look-alike characters as ASCII and leaves
    out invisible ones. ``loose`` also undoes the escapes of JSON inside other text, which a rule about the look of a
    text does not want.
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
    """Yield the content as documents to search: first as it is, then in the other ways of reading it."""
    from adjudge.content import content_text

    text = content_text(content)
    values = list_values(text)
    if values is not None:
        parts = [
            (None, ""),
            *_list_parts(values, loose=loose),
        ]  # the empty part is for an empty list, which has no other
        for gap in _list_replacements([part for _, part in parts], folded=folded):
            yield _join_parts(parts, gap)
        return
    unescaped = undo_escapes(text) if loose else None
    readings = (text,) if unescaped is None else (text, unescaped)
    for reading in readings:
        for gap in _list_replacements([reading], folded=folded):
            yield Document(text=_fold_part(reading, gap))


def _list_replacements(texts: list[str], *, folded: bool) -> tuple[str | None, ...]:
    """List the texts to try in place of each invisible character; ``None`` leaves the text as it is.

    Inside a number or a key the replacement must be empty. Between a word and a key it must be a blank, because the two
    would become one word.
    """
    if not folded:
        return (None,)
    return ("", " ") if any(map(has_unseen, texts)) else ("",)


def _fold_part(text: str, gap: str | None) -> str:
    """Fold a text with ``gap`` in place of each invisible character; ``None`` returns the text as it is."""
    return text if gap is None else _drop_escaped_blanks(fold(text, gap))


def _join_parts(parts: list[tuple[Place, str]], gap: str | None) -> Document:
    """Join the parts into one document, with a NUL between two; each part is folded, unless ``gap`` is ``None``."""
    starts, texts, end = [], [], 0
    for _, part in parts:
        text = _fold_part(part, gap)
        starts.append(end)
        texts.append(text)
        end += len(text) + len(_SEPARATOR)
    return Document(text=_SEPARATOR.join(texts), starts=tuple(starts), places=tuple(place for place, _ in parts))


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
    """Fold a text: write digits, dashes, spaces and letters in ASCII, and ``gap`` for each invisible character.

    Line ends are kept. Only a character that equals one ASCII character is folded, so an ideograph is kept.
    """
    visible = drop_unseen(text, gap)
    if visible.isascii():
        return visible
    return visible.translate({ord(char): _fold_character(char) for char in set(visible) if not char.isascii()})


def _drop_escaped_blanks(text: str) -> str:
    """Replace line ends and tabs that are written as escapes by spaces; the ``n`` would seem to begin the next word."""
    return text.replace("\\n", "  ").replace("\\r", "  ").replace("\\t", "  ") if "\\" in text else text


def is_selector(char: str) -> bool:
    """Return whether a character is a variation selector, which only chooses the look of the character before it."""
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
    """Yield the place of each value with ``name: text``; for an object, a list or a text that is JSON, only the name.

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


def _fold_character(char: str) -> str:
    """Return the ASCII character that equals a character in meaning; the character itself if there is none."""
    category = unicodedata.category(char)
    if category == "Nd":
        return str(unicodedata.decimal(char))
    if category == "Pd" or char == "\N{MINUS SIGN}":
        return "-"
    if category == "Zs":
        return " "
    plain = unicodedata.normalize("NFKC", char)
    return plain if len(plain) == 1 and plain.isascii() else char
