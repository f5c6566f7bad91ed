"""Quotations that a judge gave as evidence, found again in the text that it judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

MOST_QUOTATIONS = 99
"""More are not marked: they would hide the text rather than point into it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A part of a text, and the quotations that lie in it."""

    text: str
    numbers: tuple[int, ...] = ()
    """From 1, in the order in which the quotations were given; empty for what nobody quoted."""
    begins: tuple[int, ...] = ()
    """Those that begin with this passage: the place to which a reason points."""
    ends: tuple[int, ...] = ()
    """Those that end with it: where a reader finds the way back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedText:
    """A text in passages that add up to it, and the quotations that are not in it."""

    passages: tuple[Passage, ...]
    numbers: Mapping[str, int]
    """The quotations that are marked, each with its number."""
    missing: tuple[str, ...] = ()
    """Quotations that the text does not hold letter for letter: a judge that misquotes has to be seen doing so."""


def mark_evidence(text: str, quotations: Sequence[str]) -> MarkedText:
    """Find each quotation where it first occurs in ``text``, letter for letter; what is empty is left out.

    Quotations may overlap, so a passage can belong to several. One that is given again has a number of its own and the
    same place.
    """
    places: dict[int, tuple[int, int]] = {}
    missing: list[str] = []
    for number, quotation in enumerate(quotations[:MOST_QUOTATIONS], 1):
        start = text.find(quotation) if quotation else -1
        if start >= 0:
            places[number] = (start, start + len(quotation))
        elif quotation:
            missing.append(quotation)
    cuts = sorted({0, len(text), *[end for place in places.values() for end in place]})
    passages = tuple(
        Passage(
            text=text[first:last],
            numbers=tuple(number for number, (start, end) in places.items() if start <= first and last <= end),
            begins=tuple(number for number, (start, _) in places.items() if start == first),
            ends=tuple(number for number, (_, end) in places.items() if end == last),
        )
        for first, last in pairwise(cuts)
    )
    numbers = {quotation: number for number, quotation in enumerate(quotations, 1) if number in places}
    return MarkedText(passages=passages, numbers=numbers, missing=tuple(missing))
