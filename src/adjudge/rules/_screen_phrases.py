"""Phrases among words: which signs are complete where, in one pass whatever the words are.

For every place of every phrase the last word that could take it is remembered. A phrase only limits how far its
neighbours stand apart, so the last one is always the best, and no text can make the search go back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from adjudge.rules._screen_signs import list_signs
from adjudge.rules._screen_text import COLON, LINE, STOP, fold, undo_digits
from adjudge.rules._screen_words import WORDS

MARKS = frozenset({STOP, LINE, COLON})
"""What stands among the words and is none."""

_FAR = 1_000_000


@dataclass(frozen=True, slots=True)
class _Step:
    """A place of one phrase that a word can take."""

    slot: int
    gap: int
    """How many words may stand between it and the place before; -1 for the first."""
    sign: int
    """The sign that is complete with it; -1 where more is to come."""


def find_phrases(words: list[str]) -> Iterator[tuple[int, int, str]]:
    """Every phrase that is complete: where it began, where it is complete, and its sign."""
    steps_of, slots, names = _build_phrases()
    seen = [-_FAR] * slots
    began = [0] * slots
    place = stopped = 0
    for word in (STOP, *words):
        steps = steps_of.get(word)
        if word not in MARKS:
            place += 1
            if steps is None and not word.isalpha():
                steps = next((steps_of[plain] for plain in undo_digits(word) if plain in steps_of), None)
        elif word == STOP:
            place = stopped = place + 1
        for step in steps or ():
            if step.gap >= 0:
                before = seen[step.slot - 1]
                if before < stopped or place - before - 1 > step.gap:
                    continue
            began[step.slot] = began[step.slot - 1] if step.gap >= 0 else place
            seen[step.slot] = place
            if step.sign >= 0:
                yield began[step.slot], place, names[step.sign]


@cache
def _build_phrases() -> tuple[dict[str, tuple[_Step, ...]], int, list[str]]:
    """For every word the steps it can take, how many slots they need, and the signs' names."""
    classes = {name: _list_words(words) for name, words in WORDS.items()} | {"START": MARKS}
    steps_of: dict[str, list[_Step]] = {}
    slot, signs = 0, list_signs()
    for number, sign in enumerate(signs):
        for phrase in sign.phrases:
            parts = list(_read_phrase(phrase, classes))
            for at, (gap, words) in enumerate(parts):
                last = at == len(parts) - 1
                step = _Step(slot=slot, gap=gap if at else -1, sign=number if last else -1)
                for word in words:
                    steps_of.setdefault(word, []).append(step)
                slot += 1
    # Later places first, or one word would take two places of a phrase.
    ordered = {word: tuple(sorted(steps, key=lambda step: -step.slot)) for word, steps in steps_of.items()}
    return ordered, slot, [sign.name for sign in signs]


def _read_phrase(phrase: str, classes: Mapping[str, frozenset[str]]) -> Iterator[tuple[int, frozenset[str]]]:
    gap = 0
    for part in phrase.split(" "):
        if part.isdigit():
            gap = int(part)
            continue
        words: set[str] = set()
        for item in part.split("|"):
            words |= classes[item] if item.isupper() else _list_words(item)
        yield gap, frozenset(words)
        gap = 0


def _list_words(text: str) -> frozenset[str]:
    return frozenset(fold(word) for word in text.split())
