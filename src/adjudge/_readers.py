"""Replies in the field's own styles, read by name: ``Judge(reader="[[A]]")``.

adjudge's own forms carry a token that quoted content cannot know. These do not: they exist so that a prompt or a
recording from elsewhere can be used as it is, and a caller has to ask for each by name.

All of them read alike. Every marker in the reply counts, wherever it stands, and all must agree: whoever takes the
first, or the last, lets a marker quoted from the content win. What is almost a marker is none. Nothing is repaired.
Patterns are bounded and looked at once per place, so the time is linear in the reply, whatever it holds.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from adjudge._depth import MOST_DEPTH, nests_too_deeply
from adjudge.errors import ReplyError, UsageError

ReadKind = Literal["preference", "score", "label"]

_T = TypeVar("_T")

_NUMBER = r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?"
_DIGITS = 18
"""The longest integer read from JSON; ``int`` of hostile length is slow, and no scale needs it."""
_LINE = 120
"""The longest line that can state a score; what is longer is prose."""
_SENTENCE = 300
"""How far before a verdict its sentence may have begun; further back, nobody knows what it was about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """What was offered to the judge. Raises ``UsageError`` for a scale or labels that cannot be used."""

    scale: tuple[float, float] | None = None
    """Lowest and highest score; outside is ``off_scale``. ``None``: any finite number."""
    labels: tuple[str, ...] = ()
    """The labels offered, written exactly so; for a preference the two names, the one shown first first."""

    def __post_init__(self) -> None:
        scale = self.scale
        if scale is not None and not (all(map(math.isfinite, scale)) and len(scale) == 2 and scale[0] < scale[1]):
            raise UsageError(f"scale must be two finite numbers, lowest first, like (1, 10); got {scale!r}")
        good = all(isinstance(item, str) and item and item == item.strip() for item in self.labels)
        if isinstance(self.labels, str) or not good or len(set(self.labels)) != len(self.labels):
            raise UsageError(f"labels must be different texts without space around them; got {self.labels!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """One style of reply, and how to read it."""

    name: str
    kind: ReadKind
    """What ``read`` returns: ``first``, ``second`` or ``tie``; a number on the judge's own scale; or a label."""
    about: str
    """One sentence for people."""
    read: Callable[[str, ReadOptions], str | float] = field(repr=False)
    """Raises ``ReplyError``: ``unparseable`` without a marker, ``contradiction`` when markers differ, ``off_scale``;
    and ``UsageError`` where ``labels`` are needed and were not given."""


def find_reader(name: str) -> Reader:
    """The reader of that name, or a ``UsageError`` that names the nearest and lists all."""
    if isinstance(name, str) and name in READERS:
        return READERS[name]
    import difflib

    # Only the beginning is compared: a name as long as a book must not cost more than a short one.
    near = difflib.get_close_matches(str(name)[:80], READERS, n=1, cutoff=0.0)
    known = ", ".join(repr(item) for item in READERS)
    raise UsageError(f"no reader is named {name!r}; did you mean {near[0]!r}? Readers: {known}")


# ---------------------------------------------------------------- markers in brackets

_LETTER = re.compile(r"\[\[([ABC])\]\]")
_STRENGTH = re.compile(r"\[\[([AB][<>=]{1,3}[AB])\]\]")
_IN_BRACKETS = r"\[\[(-?[0-9][^\[\]\n]{0,30})\]\]"
_RATING = re.compile(r"\b(?:Rating|rating|RATING)[*_ ]{0,4}:[*_ ]{0,4}" + _IN_BRACKETS)
_RATED = re.compile(r"\b(?:rate|rated|rating|score)\b[^\[\]\n]{0,80}" + _IN_BRACKETS, re.IGNORECASE)
_RATED_LAST = re.compile(
    r"[^\[\]\n]{0,80}\b(?:rate|rated|rating|score)\b[^\[\]\n]{0,80}" + _IN_BRACKETS + r"[.\s]{0,8}\Z", re.IGNORECASE
)
_DENIES = re.compile(r"n['\u2019]t\b|\b(?:not|cannot|never|neither|nor|no|if|unless)\b", re.IGNORECASE)

_SIDES: Mapping[str, str] = {"A": "first", "B": "second", "C": "tie"}
_STRENGTHS: Mapping[str, str] = {
    "A>>B": "first", "A>B": "first", "A=B": "tie", "B>A": "second", "B>>A": "second"
}  # fmt: skip


def _read_letter(text: str, _: ReadOptions) -> str:
    return _SIDES[_agree(_LETTER.findall(text), "[[A]], [[B]] or [[C]]")]


def _read_strength(text: str, _: ReadOptions) -> str:
    # The strength counts too: [[A>>B]] beside [[A>B]] are two verdicts, and which one was meant is not known.
    found = _agree(_STRENGTH.findall(text), "[[A>>B]], [[A>B]], [[A=B]], [[B>A]] or [[B>>A]]")
    if found not in _STRENGTHS:
        raise ReplyError("unparseable", f"the verdict [[{found}]] is none of the five labels that were offered")
    return _STRENGTHS[found]


def _read_rating(text: str, options: ReadOptions) -> float:
    # Two brackets alone are no marker: code in a rationale is full of [[0]]. Words that lead to them are one where
    # they close the reply ("so I rate it [[8]]."), and everywhere else they can only contradict.
    form = "Rating: [[number]]"
    stated = [_as_number(item) for item in _RATING.findall(text)]
    loose = [_as_number(match[1]) for match in _RATED.finditer(text)]
    closing = _RATED_LAST.search(text[-_SENTENCE:])
    if stated or loose:
        _agree([*stated, *loose], form)
    if closing and not _DENIES.search(closing[0]):
        stated.append(_as_number(closing[1]))
    score = _agree(stated, form)
    if isinstance(score, str):
        raise ReplyError("unparseable", f"the rating [[{score}]] is not a number")
    return _on_scale(score, options)


def _as_number(text: str) -> float | str:
    return float(text) if re.fullmatch(_NUMBER, text) else text


# ---------------------------------------------------------------- a score on a line of its own

_MARK = r"[*_]{0,3}"
_SCORE_LINE = re.compile(
    rf"(?:(?:[-*•#]{{1,6}}[ \t]{{1,4}})?{_MARK}(?P<label>[A-Za-z][A-Za-z -]{{0,39}}){_MARK}"
    rf"[ \t]{{0,4}}:{_MARK}[ \t]{{0,4}})?"
    rf"{_MARK}(?P<number>{_NUMBER})\.?{_MARK}"
)
_SCORE_NAME = re.compile(r"\b(?:rating|score)\b", re.IGNORECASE)
_SCORE_SAID = re.compile(rf"\b(?:rating|score){_MARK}\s{{0,4}}[:=]{_MARK}\s{{0,4}}{_MARK}({_NUMBER})", re.IGNORECASE)
_SCORE_CLOSES = re.compile(rf"[.!?] (?:Final )?(?:Rating|Score): ?({_NUMBER})\.?\s{{0,4}}\Z", re.IGNORECASE)


def _read_score(text: str, options: ReadOptions) -> float:
    text = text.strip()
    form = "a number on a line of its own, like 7 or Rating: 7"
    stated, read = _find_scores(text, options)
    closing = _SCORE_CLOSES.search(text[-_LINE:])
    read += [float(closing[1])] if closing else []
    # A score that is only mentioned is never read, but it can contradict: "Score: 1 of 5" beside "Rating: 5".
    stated += [float(item) for item in _SCORE_SAID.findall(text)]
    if stated:
        _agree(stated, form)
    return _on_scale(_agree(read, form), options)


def _find_scores(text: str, options: ReadOptions) -> tuple[list[float], list[float]]:
    """All numbers that have a line of their own, and those of them that are scores."""
    stated: list[float] = []
    read: list[float] = []
    lines = [line for line in map(str.strip, text.split("\n")) if line]
    for place, line in enumerate(lines):
        match = _SCORE_LINE.fullmatch(line) if len(line) <= _LINE else None
        if match is None:
            continue
        stated.append(float(match["number"]))
        before = lines[place - 1][-_LINE:] if place else ""
        label = match["label"] or (before if before.endswith(":") else "")
        # "Steps failed: 3" amid a rationale is no score. A line that does not say rating or score (or a name that the
        # caller gave) is believed only where an answer stands: first or last.
        known = _SCORE_NAME.search(label) or label.strip("*_: ") in options.labels
        if known or place in (0, len(lines) - 1):
            read.append(stated[-1])
    return stated, read


# ---------------------------------------------------------------- two outputs by letter

_BETTER = re.compile(r"\bOutput \(([ab])\) is (?:a |the )?better\b")
_ALONE = re.compile(r"^[ \t]{0,4}Output \(([ab])\)\.?[ \t\r]{0,4}$", re.MULTILINE)
_SENTENCE_END = re.compile(r"[.!?][\s\"')]|\n")
_LEADS_IN = re.compile(r"(?:^|[,:]|\b(?:that|therefore|thus|hence|so|believe|think|conclude))$", re.IGNORECASE)
_TAKES_BACK = re.compile(
    r"n['\u2019]t\b|\b(?:not|cannot|never|neither|nor|no|if|whether|unless|could|might|may)\b"
    r"|\b(?:says|said|claim(?:s|ed)?)\b",
    re.IGNORECASE,
)
_FOLLOWS = re.compile(
    r" than Output \([ab]\)(?=\.|!|\s*\Z|\n)|\.|!|[ \t]{0,4}(?:\Z|\n)"
    r"| (?:overall|for (?:[a-z]{1,12} )?reasons|because|since|due to|as (?:it|they|this|the))\b"
)


def _read_better(text: str, _: ReadOptions) -> str:
    form = "a sentence that says Output (a) is better, or Output (b) is better"
    if alone := _ALONE.fullmatch(text.strip()):
        return _side(alone[1])
    named = [match[1] for match in _BETTER.finditer(text)]
    _agree(named, form)
    return _side(_agree([match[1] for match in _BETTER.finditer(text) if _is_verdict(text, match)], form))


def _read_output(text: str, _: ReadOptions) -> str:
    text = text.strip()
    form = "a reply that begins with Output (a) or Output (b) and says no more, or that it is better"
    opening = _ALONE.match(text.split("\n", 1)[0])
    better = _BETTER.match(text)
    first = opening or (better if better and _is_verdict(text, better) else None)
    if first is None:
        raise _unparseable(form, text)
    others = [match[1] for pattern in (_ALONE, _BETTER) for match in pattern.finditer(text)]
    return _side(_agree([first[1], *others], form))


def _is_verdict(text: str, match: re.Match[str]) -> bool:
    """Whether these words are a sentence's conclusion, not a negation, a condition, or somebody else's opinion.

    "Neither Output (a) nor Output (b) is better" holds the words of a verdict, and is none.
    """
    if "is better" not in match[0] or not _FOLLOWS.match(text, match.end()):
        return False
    window = text[max(0, match.start() - _SENTENCE) : match.start()]
    ends = [end.end() for end in _SENTENCE_END.finditer(window)]
    if not ends and match.start() > _SENTENCE:
        return False
    before = window[ends[-1] if ends else 0 :].strip()
    return bool(_LEADS_IN.search(before)) and not _TAKES_BACK.search(before)


def _side(letter: str) -> str:
    return "first" if letter == "a" else "second"


# ---------------------------------------------------------------- labels and names

_GRADE = re.compile(r"\b(?:GRADE|Grade)[*_ ]{0,4}:[*_ ]{0,4}(?=([\w-]{1,40}))")
_GRADES = ("C", "I", "P")


def _read_grade(text: str, options: ReadOptions) -> str:
    labels = sorted(options.labels or _GRADES, key=len, reverse=True)
    found: list[str] = []
    for match in _GRADE.finditer(text):
        # Whole words only: "GRADE: Incomplete" must not be read as I.
        label = next((item for item in labels if _stands_at(text, match.end(), item)), match[1])
        found.append(label)
    grade = _agree(found, "GRADE: and one of " + ", ".join(labels))
    if grade not in labels:
        raise ReplyError("unparseable", f"the grade {grade!r} is none of those offered: {', '.join(labels)}")
    return grade


def _stands_at(text: str, place: int, label: str) -> bool:
    after = text[place + len(label) : place + len(label) + 1]
    return text.startswith(label, place) and not (after.isalnum() or after in ("_", "-"))


def _read_label(text: str, options: ReadOptions) -> str:
    if not options.labels:
        raise UsageError("the reader 'label' needs the labels that were offered; give them as labels=")
    label = text.strip()
    if label not in options.labels:
        raise _unparseable("one of the labels offered and nothing else", text)
    return label


def _read_name(text: str, options: ReadOptions) -> str:
    # Case counts: m and M are two names.
    first, second = _two_names(options, "name")
    side = {first: "first", second: "second"}.get(text.strip())
    if side is None:
        raise _unparseable(f"{first} or {second} and nothing else", text)
    return side


def _two_names(options: ReadOptions, reader: str) -> tuple[str, str]:
    if len(options.labels) != 2:
        raise UsageError(
            f"the reader {reader!r} needs the two names compared, the one shown first first, as labels=; "
            f"got {options.labels!r}"
        )
    return options.labels[0], options.labels[1]


# ---------------------------------------------------------------- one JSON object amid prose


def _read_ranking(text: str, options: ReadOptions) -> str:
    first, second = _two_names(options, "ordered_models")
    form = f"ordered_models with {first} and {second}, one ranked 1 and the other 2"
    rows = _load_object(text).get("ordered_models")
    ranks: list[tuple[object, object]] = []
    if isinstance(rows, list) and len(rows) == 2:
        ranks = [(row.get("model"), row.get("rank")) for row in rows if isinstance(row, dict)]
    # True is equal to 1, and is no rank.
    if any(type(rank) is not int for _, rank in ranks) or [name for name, _ in ranks] not in (
        [first, second],
        [second, first],
    ):
        raise _unparseable(form, text)
    if ranks[0][1] == ranks[1][1]:
        raise ReplyError("contradiction", f"the ranking puts {first} and {second} in the same place")
    if {rank for _, rank in ranks} != {1, 2}:
        raise _unparseable(form, text)
    return "first" if (first, 1) in ranks else "second"


def _read_json_score(text: str, options: ReadOptions) -> float:
    data = _load_object(text)
    form = "a JSON object with a number as score or rating"
    found = [data[key] for key in ("score", "rating") if key in data]
    numbers = [float(item) for item in found if isinstance(item, int | float) and not isinstance(item, bool)]
    if len(numbers) != len(found):
        raise _unparseable(form, text)
    return _on_scale(_agree(numbers, form), options)


def _read_json_winner(text: str, options: ReadOptions) -> str:
    first, second = _two_names(options, "json winner") if options.labels else ("A", "B")
    sides = {"tie": "tie", "first": "first", "second": "second", first: "first", second: "second"}
    form = f"a JSON object with {first}, {second} or tie as winner, verdict or choice"
    data = _load_object(text)
    found = [data[key] for key in ("winner", "verdict", "choice") if key in data]
    named = [sides[item] for item in found if isinstance(item, str) and item in sides]
    if len(named) != len(found):
        raise _unparseable(form, text)
    return _agree(named, form)


def _load_object(text: str) -> dict[str, object]:
    """The one JSON object in a text, bare or in a fence, with any prose around it that holds no brace."""
    start = text.find("{")
    if start < 0:
        raise _unparseable("a JSON object", text)
    data, end = _decode(text, start)
    again = text.find("{", end)
    # The two are compared as they are written: comparing deep values can exhaust the stack.
    if again >= 0 and text[again : _decode(text, again)[1]] != text[start:end]:
        raise ReplyError("contradiction", "the reply holds two JSON objects that differ; ask for one")
    if again >= 0 or "}" in text[:start] or "}" in text[end:]:
        # Skipping a stray brace would be choosing which part of the reply is the answer.
        raise ReplyError("unparseable", "a brace stands outside the JSON object; ask for one object alone")
    return data


def _decode(text: str, start: int) -> tuple[dict[str, object], int]:
    if nests_too_deeply(text, start):
        raise ReplyError("unparseable", f"the JSON object nests deeper than {MOST_DEPTH} brackets")
    try:
        return _DECODER.raw_decode(text, start)
    except ValueError as error:
        raise ReplyError("unparseable", f"the JSON object cannot be read: {str(error)[:120]}") from None


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    data = dict(pairs)
    if len(data) != len(pairs):
        raise ValueError("a key stands in it twice")
    return data


def _whole(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise ValueError(f"a number in it has {len(digits)} characters")
    return int(digits)


def _real(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError("a number in it is too large")
    return number


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_once, parse_int=_whole, parse_float=_real, parse_constant=_refuse)


# ---------------------------------------------------------------- shared by all


def _agree(found: Sequence[_T], form: str) -> _T:
    """What every marker says."""
    kinds = list(dict.fromkeys(found))
    if not kinds:
        raise ReplyError("unparseable", f"the reply holds no verdict that can be read; expected {form}")
    if len(kinds) > 1:
        shown = ", ".join(map(str, kinds[:5]))
        raise ReplyError("contradiction", f"the reply says {shown}; all it says must agree; expected {form}")
    return kinds[0]


def _on_scale(score: float, options: ReadOptions) -> float:
    if options.scale is not None and not options.scale[0] <= score <= options.scale[1]:
        low, high = options.scale
        raise ReplyError("off_scale", f"the score {score:g} is outside the scale [{low:g}, {high:g}]")
    return score


def _unparseable(form: str, text: str) -> ReplyError:
    return ReplyError("unparseable", f"the reply, {len(text)} characters long, is not in the form asked for: {form}")


def _by_name(readers: Iterable[Reader]) -> Mapping[str, Reader]:
    return {reader.name: reader for reader in readers}


READERS: Mapping[str, Reader] = _by_name(
    [
        Reader(
            name="[[A]]",
            kind="preference",
            about="[[A]], [[B]] or [[C]] for a tie, anywhere in the reply (MT-bench pairs).",
            read=_read_letter,
        ),
        Reader(
            name="[[A>B]]",
            kind="preference",
            about="One of [[A>>B]], [[A>B]], [[A=B]], [[B>A]], [[B>>A]], anywhere in the reply (Arena-Hard).",
            read=_read_strength,
        ),
        Reader(
            name="Rating: [[7]]",
            kind="score",
            about="Rating: and a number in double brackets, anywhere in the reply (MT-bench single answers, Auto-J).",
            read=_read_rating,
        ),
        Reader(
            name="Rating: 7",
            kind="score",
            about="A number on a line of its own, alone or after a short label, with a rationale around it (G-Eval).",
            read=_read_score,
        ),
        Reader(
            name="Output (a)",
            kind="preference",
            about="The reply begins with Output (a) or Output (b), alone or followed by is better (LLMBar Vanilla).",
            read=_read_output,
        ),
        Reader(
            name="Output (a) is better",
            kind="preference",
            about="A sentence concludes that Output (a) is better, or Output (b) (LLMBar CoT and Swap).",
            read=_read_better,
        ),
        Reader(
            name="GRADE: C",
            kind="label",
            about="GRADE: and one of the labels, C, I and P unless others are given (model-graded questions).",
            read=_read_grade,
        ),
        Reader(
            name="label",
            kind="label",
            about="The reply is one of the labels and nothing else.",
            read=_read_label,
        ),
        Reader(
            name="name",
            kind="preference",
            about="The reply is one of the two names compared and nothing else; case counts.",
            read=_read_name,
        ),
        Reader(
            name="ordered_models",
            kind="preference",
            about="One JSON object, prose around it allowed, that ranks the two names in ordered_models (AlpacaEval).",
            read=_read_ranking,
        ),
        Reader(
            name="json score",
            kind="score",
            about="One JSON object, prose around it allowed, with a number as score or rating.",
            read=_read_json_score,
        ),
        Reader(
            name="json winner",
            kind="preference",
            about="One JSON object, prose around it allowed, with a name or tie as winner, verdict or choice.",
            read=_read_json_winner,
        ),
    ]
)
"""Every reader by its name, in the order of the documentation."""
