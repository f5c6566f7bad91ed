"""Where the judge's quotations are in the content, for a page that marks them.

Only what is in the content character for character is marked. A judge reads text that wants to pass, so a quotation
that is merely alike might have been written for the reviewer.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from adjudge.result import CriterionResult, JudgeChainResult, JudgeResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotation:
    """One text that a judge quoted, and where the content has it first."""

    text: str
    criteria: tuple[str, ...]
    """The criteria it was quoted for, each once."""
    number: int | None = None
    """From 1, in the order in which the judge gave them; ``None`` if the text is not in the content."""
    start: int | None = None
    """The offset of its first character, in characters; ``None`` if it is not in the content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A piece of the content, and the quotations that it is part of. All pieces joined are the content."""

    text: str
    numbers: tuple[int, ...] = ()
    """The quotations that cover it; empty between quotations."""
    begins: tuple[int, ...] = ()
    """Those of them that begin with it, for an anchor each."""


def find_quotations(result: JudgeResult, content: str | None) -> tuple[Quotation, ...]:
    """Every text that a judge quoted as evidence, its seats included; a text that two criteria quote is one."""
    sources: dict[str, dict[str, None]] = {}
    for criterion in _list_criteria(result):
        for text in criterion.evidence:
            if text.strip():
                sources.setdefault(text, {})[criterion.name] = None
    found, number = [], 0
    for text, names in sources.items():
        start = -1 if content is None else content.find(text)
        number += start >= 0
        place = {"number": number, "start": start} if start >= 0 else {}
        found.append(Quotation(text=text, criteria=tuple(names), **place))
    return tuple(found)


def split_passages(content: str, quotations: Sequence[Quotation]) -> tuple[Passage, ...]:
    """The content in pieces, cut wherever a quotation begins or ends; quotations may overlap."""
    spans = [(item.start, item.start + len(item.text), item.number) for item in quotations if item.start is not None]
    cuts = sorted({0, len(content), *[place for start, end, _ in spans for place in (start, end)]})
    return tuple(
        Passage(
            text=content[start:end],
            numbers=tuple([number for begin, stop, number in spans if begin <= start and end <= stop and number]),
            begins=tuple([number for begin, _, number in spans if begin == start and number]),
        )
        for start, end in itertools.pairwise(cuts)
    )


def _list_criteria(result: JudgeResult) -> Iterator[CriterionResult]:
    yield from result.criteria
    if isinstance(result, JudgeChainResult):
        for seat in result.results:
            yield from _list_criteria(seat)
