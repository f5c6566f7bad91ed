"""The injection screen: does some text speak to a model, or to a grader, rather than to a reader?

It folds the text (look-alike letters, invisible characters, accents, case), takes it apart into words, and looks for
the signs of ``signs``. Each sign has points; those within 300 words of one another are added, each sign
once. The score is the points of the densest stretch over 10, at most 1. No model, no network, linear time.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args

from adjudge.errors import UsageError
from adjudge.formats.arguments import check_choice
from adjudge.formats.numbers import format_apart
from adjudge.formats.text import show
from adjudge.result import RuleResult
from adjudge.rules.injection.lexicon import MARKS, find_phrases
from adjudge.rules.injection.normalise import (
    LINE,
    STOP,
    fold,
    fold_all,
    fold_pattern,
    read_codes,
    read_tags,
    split_words,
)
from adjudge.rules.injection.refusals import Hit, drop_refusals
from adjudge.rules.injection.signs import WINDOW, list_signs
from adjudge.rules.values import TooDeepError, has_more, list_values, undo_escapes

Channel = Literal["user", "tool_output", "document", "candidate_answer"]


CHANNELS: tuple[str, ...] = get_args(Channel)
"""Where a text can come from; it says how much a sign weighs."""


THRESHOLD = 0.5
"""The score from which the screen reports, where none is given."""


_FULL = 10

_UNSEEN, _CODED, _SPACED = "unseen-text", "encoded-text", "spaced-letters"

_EXTRA = {_UNSEEN: 5, _CODED: 3, _SPACED: 5}

_LETTERS, _TELLING = 8, 3

_ROOTS = ("ignore", "disregard", "instruction", "prompt", "forget", "system", "reveal")


@dataclass(frozen=True, slots=True, kw_only=True)
class Screening:
    """What the screen found."""

    score: float
    """0 to 1: how much there is that a text for a reader does not have."""
    signs: tuple[str, ...]
    """The names of the signs, those with most points first."""


def screen(text: str, channel: str | None = None) -> Screening:
    """Look for signs in a text and in what it holds in invisible or encoded form."""
    hidden = _find_hidden(text)
    return max((_screen_folded(folded, hidden, channel) for folded in fold_all(text)), key=lambda item: item.score)


def _screen_folded(folded: str, hidden: set[str], channel: str | None) -> Screening:
    words = split_words(folded)
    hits = drop_refusals(list(find_phrases(words)), folded)
    everywhere = _find_patterns(folded) | hidden | _find_spaced(words)
    weights = _weigh_all(channel)
    best = _find_densest(hits, everywhere, weights)
    names = sorted((name for name in best if weights[name]), key=lambda name: (-weights[name], name))
    return Screening(score=min(1.0, sum(weights[name] for name in names) / _FULL), signs=tuple(names))


def _list_readings(text: str) -> Iterator[str]:
    """The text, and where it is JSON or holds some what that says, each name and value as a sentence of its own."""
    yield text
    if not has_more(text):
        return
    values = list_values(text)
    if values is None:
        said = [undo_escapes(text) or ""]
    else:
        names = dict.fromkeys(value.name for value in values if value.name is not None)
        said = [*names, *(undo_escapes(item.text) or item.text for item in values if item.text and not item.nested)]
    if any(said):
        yield f"{STOP}{LINE}".join(said)


def make_injection_screen(*, threshold: float = THRESHOLD, channel: str | None = None) -> Callable[[Any], RuleResult]:
    """The content does not speak to a model or grader: its score stays below ``threshold``."""
    number = threshold if isinstance(threshold, int | float) and not isinstance(threshold, bool) else math.nan
    if not 0 < number <= 1:
        raise UsageError(
            f"rule injection-screen: threshold must be a number above 0 and at most 1, got {show(threshold)}"
        )
    if channel is not None:
        check_choice("rule injection-screen: channel", channel, CHANNELS)

    def check(content: Any) -> RuleResult:
        from adjudge.content import content_text

        try:
            found = max(
                (screen(item, channel) for item in _list_readings(content_text(content))), key=lambda item: item.score
            )
        except TooDeepError as error:
            return RuleResult(name="", passed=False, message=str(error))
        passed = found.score < number
        said = f"signs of text addressed to a model: {', '.join(found.signs)}" if found.signs else "no sign"
        shown, least = format_apart(found.score, number, digits=1)
        message = f"{said}; score {shown}, reported from {least}"
        return RuleResult(
            name="", passed=passed, message=message, score=found.score, metadata={"signs": list(found.signs)}
        )

    return check


def _find_densest(hits: list[Hit], everywhere: set[str], weights: Mapping[str, int]) -> set[str]:
    """The signs of the stretch whose points, with those of the signs that have no place, are most."""
    needed = {sign.name: sign.times for sign in list_signs()}
    counts: Counter[str] = Counter()
    present, points = set(everywhere), sum(weights[name] for name in everywhere)
    most, best, start = points, set(everywhere), 0
    for _, place, name in hits:
        counts[name] += 1
        if counts[name] >= needed[name] and name not in present:
            present.add(name)
            points += weights[name]
        while hits[start][1] < place - WINDOW:
            left = hits[start][2]
            counts[left] -= 1
            if counts[left] < needed[left] and left in present and left not in everywhere:
                present.remove(left)
                points -= weights[left]
            start += 1
        if points > most:
            most, best = points, set(present)
    return best


def _find_patterns(folded: str) -> set[str]:
    encoded = folded.encode(errors="replace")
    return {name for name, pattern in _build_patterns() if pattern.search(encoded) is not None}


def _find_hidden(text: str) -> set[str]:
    """The signs of what a text holds in invisible tag characters and in base64."""
    found: set[str] = set()
    tags = read_tags(text)
    if sum(map(str.isalpha, tags)) >= _LETTERS:
        found |= {_UNSEEN, *_name_signs(tags)}
    said = f"{STOP}{LINE}".join(read_codes(text))  # all at once: a hundred thousand short ones would take seconds
    inner = _name_signs(said) if said else set()
    if sum(_weigh_all(None)[name] for name in inner) >= _TELLING:
        found |= {_CODED, *inner}
    return found


def _name_signs(text: str) -> set[str]:
    folded = fold(text)
    return {name for _, _, name in find_phrases(split_words(folded))} | _find_patterns(folded)


def _find_spaced(words: list[str]) -> set[str]:
    """The sign of a telling word whose letters stand apart."""
    run: list[str] = []
    for word in (*words, "end"):
        if len(word) == 1 and word.isalpha():
            run.append(word)
        elif word not in MARKS:
            if len(run) >= _LETTERS and any(root in "".join(run) for root in _ROOTS):
                return {_SPACED}
            run = []
    return set()


@cache
def _weigh_all(channel: str | None) -> Mapping[str, int]:
    return {sign.name: sign.weigh(channel) for sign in list_signs()} | _EXTRA


@cache
def _build_patterns() -> list[tuple[str, Any]]:
    import re2

    options = re2.Options()
    options.log_errors = False  # RE2 would write to standard error
    return [
        (sign.name, re2.compile("|".join(fold_pattern(item) for item in sign.patterns).encode(), options=options))
        for sign in list_signs()
        if sign.patterns
    ]
