"""Quotations that a judge gave as evidence, found again in the text that it judged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

MOST_QUOTATIONS = 99
"""More are not marked: they would hide the text rather than point into it."""

SpanKind = Literal["", "keyword", "comment", "string", "changed"]
"""The kind of a part of a line of code, or that it changed; ``""`` is anything else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A part of a text, and the quotations that lie in it."""

    text: str
    kind: SpanKind = ""
    numbers: tuple[int, ...] = ()
    """From 1, in the order in which the quotations were given; empty for what nobody quoted."""
    begins: tuple[int, ...] = ()
    """The numbers of the quotations that begin with this passage, to which links from the judge's reasons lead."""
    ends: tuple[int, ...] = ()
    """The numbers of the quotations that end with this passage, behind which links lead back to the reasons."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedText:
    """A text in passages that add up to it, and the quotations that are not in it."""

    passages: tuple[Passage, ...]
    numbers: Mapping[str, int]
    """The quotations that are marked, each with its number."""
    missing: tuple[str, ...] = ()
    """Quotations that the text does not hold letter for letter: a judge that misquotes has to be seen doing so."""
    unshown: tuple[str, ...] = ()
    """Quotations that it does hold, and of which no mark is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotedPlace:
    """The place of a quotation in a text, or of the part of it that lies in this text."""

    number: int
    start: int
    end: int
    begins: bool = True
    """True if the quotation begins here; false where it runs on from a text before."""
    ends: bool = True


def mark_evidence(text: str, quotations: Sequence[str]) -> MarkedText:
    """Find each quotation where it first occurs in ``text``, letter for letter; what is empty is left out.

    Quotations may overlap, so a passage can belong to several. One that is given again has a number of its own and the
    same place.
    """
    places, missing = find_quotations(text, quotations)
    placed_numbers = {place.number for place in places}
    return MarkedText(
        passages=cut_passages(text, places),
        numbers={quotation: number for number, quotation in enumerate(quotations, 1) if number in placed_numbers},
        missing=tuple(missing.values()),
    )


def mark_window(text: str, quotations: Sequence[str], begin: int, end: int) -> MarkedText:
    """Find each quotation in ``text``, and mark those in the part from ``begin`` to ``end``, which is shown.

    A quotation that begins elsewhere in the text is in ``unshown``.
    """
    places, missing = find_quotations(text, quotations)
    inside = clip_places(places, begin, end)
    shown = {place.number for place in inside if place.begins}
    return MarkedText(
        passages=cut_passages(text[begin:end], inside),
        numbers={quotations[number - 1]: number for number in sorted(shown)},
        missing=tuple(missing.values()),
        unshown=tuple(quotations[place.number - 1] for place in places if place.number not in shown),
    )


def find_quotations(text: str, quotations: Sequence[str]) -> tuple[list[QuotedPlace], dict[int, str]]:
    """Find where each quotation first occurs in a text, letter for letter.

    Returns the places, and the quotations that are not in the text, by their numbers, which count from 1.
    """
    places: list[QuotedPlace] = []
    missing: dict[int, str] = {}
    for number, quotation in enumerate(quotations[:MOST_QUOTATIONS], 1):
        start = text.find(quotation) if quotation else -1
        if start >= 0:
            places.append(QuotedPlace(number=number, start=start, end=start + len(quotation)))
        elif quotation:
            missing[number] = quotation
    return places, missing


def clip_places(places: Iterable[QuotedPlace], start: int, end: int) -> list[QuotedPlace]:
    """Return the places that lie in a part of a text, or reach into it, converted to places in that part."""
    return [
        QuotedPlace(
            number=place.number,
            start=max(place.start, start) - start,
            end=min(place.end, end) - start,
            begins=place.begins and place.start >= start,
            ends=place.ends and place.end <= end,
        )
        for place in places
        if place.start < end and place.end > start
    ]


def cut_passages(
    text: str, places: Sequence[QuotedPlace] = (), spans: Sequence[tuple[int, int, SpanKind]] = ()
) -> tuple[Passage, ...]:
    """Cut a text into passages wherever a quotation or a span begins or ends.

    ``places`` are those of quotations, which may overlap. ``spans`` are the start, the end and the kind of parts of
    code, which do not overlap.
    """
    quotation_edges = [edge for place in places for edge in (place.start, place.end)]
    span_edges = [edge for start, end, _ in spans for edge in (start, end)]
    cuts = sorted({0, len(text), *quotation_edges, *span_edges})
    kind_by_start = {start: kind for start, _, kind in spans}
    span_ends = {end for _, end, _ in spans}
    passages: list[Passage] = []
    kind: SpanKind = ""
    for start, end in pairwise(cuts):
        # A span goes on through cuts in it until it ends or another one starts.
        kind = kind_by_start.get(start, "" if start in span_ends else kind)
        covering = [place for place in places if place.start <= start and end <= place.end]
        passages.append(
            Passage(
                text=text[start:end],
                kind=kind,
                numbers=tuple(place.number for place in covering),
                begins=tuple(place.number for place in covering if place.begins and place.start == start),
                ends=tuple(place.number for place in covering if place.ends and place.end == end),
            )
        )
    return tuple(passages)


def cut_lines(passages: Iterable[Passage]) -> tuple[tuple[Passage, ...], ...]:
    """Cut passages into lines, without the line breaks.

    The first piece of a passage keeps where quotations begin, and its last piece where they end.
    """
    lines: list[list[Passage]] = [[]]
    for passage in passages:
        pieces = passage.text.split("\n")
        for index, piece in enumerate(pieces):
            if index:  # a line break comes before every piece but the first
                lines.append([])
            begins = passage.begins if index == 0 else ()
            ends = passage.ends if index == len(pieces) - 1 else ()
            if piece or begins or ends:
                lines[-1].append(replace(passage, text=piece, begins=begins, ends=ends))
    return tuple(map(tuple, lines))
