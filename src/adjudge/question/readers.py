"""Replies in the field's own styles, read by name: ``Judge(reader="[[A]]")``.

adjudge's own forms carry a token that quoted content cannot know. These do not: they exist so that a prompt or a
recording from elsewhere can be used as it is, and a caller has to ask for each by name.

All of them read alike. Every marker in the reply counts, in any place, and all must agree: a reader that takes the
first, or the last, lets a marker quoted from the content win. What is almost a marker is none. Nothing is repaired.
Patterns are bounded and looked at once per place, so the time is linear in the length of any reply.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeVar

from adjudge.errors import Argument, ReplyError, UsageError
from adjudge.formats.json import MOST_DEPTH, nests_too_deeply

ReadKind = Literal["preference", "score", "label"]


_T = TypeVar("_T")


_NUMBER = r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?"

_DIGITS = 18
"""The longest integer read from JSON; ``int`` of hostile length is slow, and no scale needs it."""

_LINE = 120
"""The longest line that can state a score; what is longer is prose."""

_MOST_MARKERS = 100
"""Markers of a reply that are looked at to see whose they are, from its end."""

_SENTENCE = 300
"""The distance before a verdict at which its sentence may have begun; further back, nobody knows what it was about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """The scale and labels offered to the judge. Raises ``UsageError`` for those that cannot be used.

    Args:
        scale: Lowest and highest score; outside is ``off_scale``. ``None``: any finite number.
        labels: The labels offered, written exactly so; for a preference the two names, beginning with the one shown
            first.
    """

    scale: tuple[float, float] | None = None
    """Lowest and highest score; outside is ``off_scale``. ``None``: any finite number."""
    labels: tuple[str, ...] = ()
    """The labels offered, written exactly so; for a preference the two names, beginning with the one shown first."""

    def __post_init__(self) -> None:
        scale = self.scale
        if scale is not None and not (all(map(math.isfinite, scale)) and len(scale) == 2 and scale[0] < scale[1]):
            raise UsageError(
                f"scale must be two finite numbers, lowest first, like (1, 10); got {scale!r}", argument="scale"
            )
        are_texts = all(isinstance(label, str) and label and label == label.strip() for label in self.labels)
        if isinstance(self.labels, str) or not are_texts or len(set(self.labels)) != len(self.labels):
            raise UsageError(
                f"labels must be different texts without space around them; got {self.labels!r}", argument="labels"
            )


def check_offered_labels(labels: tuple[str, ...]) -> None:
    """Raise ``UsageError`` for labels that no judge can be offered, as ``ReadOptions`` does."""
    ReadOptions(labels=labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """One style of reply, and how to read it."""

    name: str
    """The name by which ``reader=`` chooses it."""
    kind: ReadKind
    """The value that ``read`` returns: ``first``, ``second`` or ``tie``; a number on the judge's scale; or a label."""
    about: str
    """One sentence for people."""
    read: Callable[[str, ReadOptions], str | float] = field(repr=False)
    """Raises ``ReplyError``: ``unparseable`` without a marker, ``contradiction`` when markers differ, ``off_scale``;
    and ``UsageError`` where ``labels`` are needed and were not given."""


def find_reader(name: str) -> Reader:
    """Return the reader of that name; raise a ``UsageError`` that names the nearest and lists all.

    Args:
        name: The name of the reader.
    """
    if isinstance(name, str) and name in READERS:
        return READERS[name]
    import difflib

    # Only the beginning is compared: a name as long as a book must not cost more than a short one.
    matches = difflib.get_close_matches(str(name)[:80], READERS, n=1, cutoff=0.0)
    names = ", ".join(repr(reader) for reader in READERS)
    raise UsageError(f"no reader is named {name!r}; did you mean {matches[0]!r}? Readers: {names}", argument="reader")


# ---------------------------------------------------------------- what a judge says, and what it only shows

_FENCE = re.compile(r"[ \t]{0,3}(`{3,}|~{3,})")

_QUOTATION = re.compile(r'"[^"\n]*"?|\u201c[^\u201c\u201d\n]*\u201d?|`[^`\n]*`?')
"""One that is not closed ends with its line; with a limit on its length, every mark would be tried again."""

_QUOTED_MARKER = re.compile(
    r"[*_ ]{0,4}(?:[A-Za-z]{1,12}[*_ ]{0,4}:[*_ ]{0,4})?(?:\[{1,2}[^\[\]\n]{1,30}\]{1,2}|\w{1,40})[*_. ]{0,4}"
)

_REPORTED = re.compile(
    r"\b(?:says?|said|saying|claim(?:s|ed|ing)?|ask(?:s|ed|ing)?|demand(?:s|ed|ing)?|request(?:s|ed|ing)?|writes?|wrote"
    r"|states?|stated|instruct(?:s|ed|ing|ions?)?|tells?|told|insists?|contains?|includes?|quot(?:e|es|ed|ing)|example"
    r"|(?:ends|begins|starts|opens|closes) with|instead of|rather than|not|never|cannot)\b(?P<then>[^,;.!?\n]{0,40})\Z"
    r"|n['\u2019]t\b[^,;.!?\n]{0,40}\Z",
    re.IGNORECASE,
)

_ASKED_TO_WRITE = re.compile(
    r"\b(?:(?:tells?|told|ask(?:s|ed)|want(?:s|ed)|order(?:s|ed)|instruct(?:s|ed)|demand(?:s|ed))\b[^,;.!?\n]{0,30}"
    r"\b(?:write|say|output|print|reply|answer|respond|give|put|end)(?: with| by)?"
    r"|(?:it|text|answer|response|content|reply|message) (?:says|said|reads|writes|wrote|ends with|ended with)"
    r"|look(?:s|ed)? like)[*_\"\u201c` \t]{0,4}\Z",
    re.IGNORECASE,
)
"""A line that leads to the next without a colon: "It asked me to write", above a rating that is not the judge's."""
_UNREAL = re.compile(
    r"[*_\"\u201d` \t]{0,4}(?:would|could|might|should|is|was|were)\b[*_ \t]{1,4}(?:not|be|have|wrong|too|what)\b"
)

_OWN = re.compile(r"\b(?:so|therefore|thus|hence|verdict|I|my)\b")

_FIRST_PERSON = re.compile(r"\bI(?:['\u2019]d|['\u2019]ll| would| will| must| can)? (?:say|state|claim|write)\b")

_RETRACTED = re.compile(
    r"[.!?\])*\n][ \t*_]{0,4}(?:but |no[,.] |oh[,.] )?(?:wait|correction|scratch that|strike that|never ?mind"
    r"|on second thoughts?|on reflection|on closer (?:inspection|look)|actually)[ \t]{0,2}[,:.!\u2013\u2014-]"
    r"|\bI (?:take (?:that|it|this) back|retract|withdraw|(?:have )?changed? my (?:mind|rating|score|verdict|answer)"
    r"|(?:was|am) wrong|made a mistake|must correct|(?:need|want|have|would like) to (?:revise|change|correct))\b"
    r"|\b(?:ignore|disregard) (?:that|this|the above|my|what I)\b"
    r"|\b(?:this|that|which) (?:is|was) what (?:the|it|they|he|she|I)\b[^.!?\n]{0,40}?"
    r"\b(?:told|tells|ask(?:s|ed)|want(?:s|ed)|demand(?:s|ed)|instruct(?:s|ed)|order(?:s|ed)) me\b"
    r"|\b(?:this|that|the above|my) (?:rating|score|verdict|grade|choice|claim) (?:is|was|should be) "
    r"(?:wrong|false|incorrect|too|withdrawn|a mistake|not|void|invalid|changed|different)\b",
    re.IGNORECASE,
)

_CLOSERS = " \t\r\n*_\"'\u201d\u2019\u00bb)]}`"


def _unwrap_reply(text: str) -> str:
    """Return the reply without space around it, and out of a fence that holds the whole of it."""
    text = text.strip()
    fence = _FENCE.match(text)
    if fence is None or "\n" not in text:
        return text
    first, _, rest = text.partition("\n")
    inside, _, last = rest.rpartition("\n")
    if last.strip() != fence[1] or fence[1] in inside or " " in first.strip():
        return text
    return inside.strip()


def _blank_shown(text: str) -> str:
    """Blank everything that is fenced or quoted, and leave every other character in its place.

    A verdict in it is shown, not given. What still counts is whether it agrees: quoting must not hide a second one.
    """
    fence, lines = "", []
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if fence:
            is_shown = True
            fence = "" if mark and mark[1].startswith(fence) else fence
        else:
            is_shown = mark is not None or line.lstrip().startswith(">")
            fence = mark[1] if mark else ""
        lines.append(" " * len(line) if is_shown else line)
    return _QUOTATION.sub(_blank_quotation, "\n".join(lines))


def _blank_quotation(match: re.Match[str]) -> str:
    # A marker alone in quotation marks is how many judges copy the form from a prompt that shows it so.
    kept = len(match[0]) <= _LINE and _QUOTED_MARKER.fullmatch(match[0][1:-1])
    return match[0] if kept else " " * len(match[0])


def _is_reported(text: str, start: int) -> bool:
    """Return whether the words before a marker give it to somebody else, or deny it: "the answer asks for [[A]]"."""
    before = _SENTENCE_END.split(text[max(0, start - _LINE) : start])[-1].rstrip(" *_\"'\u201c`")
    match = _REPORTED.search(before)
    return match is not None and not _OWN.search(match["then"] or "") and not _FIRST_PERSON.search(before)


def _find_given(pattern: re.Pattern[str], text: str, kept_text: str, form: str) -> re.Match[str]:
    """Find the last marker that a judge gives as its own verdict, and neither quotes, denies nor reports.

    ``kept_text`` is ``text`` with what is quoted or fenced blanked (``_blank_shown``), character by character, so a
    place in one is that in the other. Raises ``ReplyError`` where no marker is its own among the last hundred.
    """
    for match in list(pattern.finditer(kept_text))[-_MOST_MARKERS:][::-1]:
        before = text[max(0, match.start() - _LINE) : match.start()].rstrip()
        if not _is_reported(text, match.start()) and not _ASKED_TO_WRITE.search(before):
            return match
    raise ReplyError(
        "unparseable", f"the reply shows a verdict and gives none; expected {form}, neither quoted nor denied"
    )


def _check_kept(text: str, end: int) -> None:
    """Raise ``ReplyError`` where what follows a verdict takes it back."""
    if _UNREAL.match(text, end):
        raise ReplyError(
            "contradiction", "the reply says what a verdict would be, or what it is not; expected what it is"
        )
    if match := _RETRACTED.search(text, max(0, end - 1)):
        raise ReplyError("contradiction", f"the reply takes its verdict back: {match[0].strip()[:60]!r}")


def _is_cut_off(text: str) -> bool:
    """Return whether a text ends in the middle of a sentence."""
    return not text.rstrip(_CLOSERS).endswith((".", "!", "?", "\u2026", "\u3002", "\uff01", "\uff1f"))


# ---------------------------------------------------------------- markers in brackets

_LETTER = re.compile(r"\[\[([ABC])\]\]")

_STRENGTH = re.compile(r"\[\[([AB][<>=]{1,3}[AB])\]\]")

_INSIDE = r"(-?[0-9][^\[\]\n]{0,30})"

_IN_BRACKETS = rf"\[\[{_INSIDE}\]\]"

_RATING = re.compile(
    rf"\b(?:Rating|rating|RATING)[*_ ]{{0,4}}:[*_ \"\u201c`]{{0,4}}(?:{_IN_BRACKETS}|\[{_INSIDE}\](?![\](]))"
)

_RATED = re.compile(r"\b(?:rate|rated|rating|score)\b[^\[\]\n]{0,80}" + _IN_BRACKETS, re.IGNORECASE)

_RATED_LAST = re.compile(
    r"[^\[\]\n]{0,80}\b(?:rate|rated|rating|score)\b[^\[\]\n]{0,80}" + _IN_BRACKETS + r"[.\s]{0,8}\Z", re.IGNORECASE
)

_RATING_LINE = re.compile(rf"[*_#\"\u201c` \t]{{0,8}}{_IN_BRACKETS}[*_\"\u201d`. \t\r]{{0,8}}")

_RATING_ALONE = re.compile(rf"[*_#\"\u201c`\s]{{0,8}}\[{_INSIDE}\][*_\"\u201d`.\s]{{0,8}}")

_RANGE = re.compile(r"[*_ \t]{0,4}(?:[-\u2013\u2014~]|(?:to|or|and)\b)[*_ \t]{0,4}[\[0-9]")

_OUT_OF = re.compile(r"[*_ \t]{0,4}(?:/|out of\b|of\b)[*_ \t]{0,4}\[{0,2}([0-9]{1,15}(?:\.[0-9]{1,15})?)")

_DENIES = re.compile(r"n['\u2019]t\b|\b(?:not|cannot|never|neither|nor|no|if|unless)\b", re.IGNORECASE)

_NAMES_RATING = re.compile(r"\b(?:rat(?:e|ed|ing)|scored?|verdict|grade)\b", re.IGNORECASE)


_SIDES: Mapping[str, str] = {"A": "first", "B": "second", "C": "tie"}

_STRENGTHS: Mapping[str, str] = {
    "A>>B": "first", "A>B": "first", "A=B": "tie", "B>A": "second", "B>>A": "second"
}  # fmt: skip


def _read_letter(text: str, _: ReadOptions) -> str:
    return _SIDES[_read_bracket(_LETTER, text, "[[A]], [[B]] or [[C]]")]


def _read_strength(text: str, _: ReadOptions) -> str:
    # The strength counts too: [[A>>B]] beside [[A>B]] are two verdicts, and which one was meant is not known.
    label = _read_bracket(_STRENGTH, text, "[[A>>B]], [[A>B]], [[A=B]], [[B>A]] or [[B>>A]]")
    if label not in _STRENGTHS:
        raise ReplyError("unparseable", f"the verdict [[{label}]] is none of the five labels that were offered")
    return _STRENGTHS[label]


def _read_bracket(pattern: re.Pattern[str], text: str, form: str) -> str:
    text = _unwrap_reply(text)
    verdict: str = _find_agreed(pattern.findall(text), form)
    kept_text = _blank_shown(text)
    _check_kept(kept_text, _find_given(pattern, text, kept_text, form).end())
    return verdict


def _read_rating(text: str, options: ReadOptions) -> float:
    """Read ``Rating: [[number]]``. Raises ``ReplyError``."""
    # Two brackets amid a sentence are no marker: code in a rationale is full of [[0]]. They are one on a line of their
    # own, and behind words that lead to them where they close the reply ("so I rate it [[8]]."); everywhere else such
    # words can only contradict.
    form = "Rating: [[number]]"
    text = _unwrap_reply(text)
    kept_text = _blank_shown(text)
    marked = list(_RATING.finditer(text))
    line_numbers, believed = _find_rating_lines(text, kept_text)
    mentioned = [match[1] for match in _RATED.finditer(text)]
    number_texts = [*[match[1] or match[2] for match in marked], *mentioned]
    numbers = [_as_number(number_text) for number_text in number_texts] + line_numbers
    if closing := _find_closing_rating(text, kept_text):
        believed.append(closing)
    if not believed and marked:
        last_match = _find_given(_RATING, text, kept_text, form)
        believed.append((_as_number(last_match[1] or last_match[2]), last_match.end()))
    _find_agreed(numbers, form)
    score = _find_agreed([number for number, _ in believed], form)
    for end in [match.end() for match in marked] + [end for _, end in believed]:
        _check_single(text, end, options)
    _check_kept(kept_text, max(end for _, end in believed))
    if isinstance(score, str):
        raise ReplyError("unparseable", f"the rating [[{score}]] is not a number")
    return _check_on_scale(score, options)


def _find_closing_rating(text: str, kept_text: str) -> tuple[float | str, int] | None:
    """Find the rating that the last words lead to, as in ``so I rate it [[8]]``, and its end; ``None`` without one."""
    closing = _RATED_LAST.search(kept_text[-_SENTENCE:])
    behind = max(0, len(kept_text) - _SENTENCE)
    if closing is None or _DENIES.search(closing[0]) or _is_reported(text, behind + closing.start(1) - 2):
        return None
    if _ASKED_TO_WRITE.search(kept_text[: behind + closing.start()].rstrip()[-_LINE:]):
        return None
    return _as_number(closing[1]), len(text)


def _find_rating_lines(text: str, kept_text: str) -> tuple[list[float | str], list[tuple[float | str, int]]]:
    """Find the ratings that have a line of their own, and those that stand where an answer does, each with its end."""
    if alone := _RATING_ALONE.fullmatch(text):
        number = _as_number(alone[1])
        return [number], [(number, len(text))]
    lines = [line.strip() for line in kept_text.split("\n") if line.strip()]
    ratings: list[float | str] = []
    believed: list[tuple[float | str, int]] = []
    for place, line in enumerate(lines):
        match = _RATING_LINE.fullmatch(line) if len(line) <= _LINE else None
        if match is None:
            continue
        ratings.append(_as_number(match[1]))
        last = place == len(lines) - 1
        before = lines[place - 1][-_LINE:] if place else ""
        # "The answer closes with this line:" shows what follows; "My rating:" leads to it.
        is_shown = before.endswith(":") and (not _NAMES_RATING.search(before) or _is_reported(before, len(before) - 1))
        is_shown = is_shown or _ASKED_TO_WRITE.search(before) is not None
        closes = last and not is_shown
        opens = place == 0 and not _is_cut_off(text)
        if closes or opens:
            believed.append((ratings[-1], len(text) if last else text.find(line) + len(line)))
    return ratings, believed


def _check_single(text: str, end: int, options: ReadOptions) -> None:
    """Raise ``ReplyError`` where a rating goes on: a range, or a part of something else than the scale."""
    if _RANGE.match(text, end):
        raise ReplyError("contradiction", "the reply gives a range of ratings; ask for one number")
    part = _OUT_OF.match(text, end)
    if part and options.scale is not None and float(part[1]) != options.scale[1]:
        raise ReplyError("off_scale", f"the rating is out of {part[1]}, and the scale ends at {options.scale[1]:g}")


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

_LISTED = re.compile(r"^[ \t]{0,8}[*_]{0,3}([0-9]{1,3})[.)](?![^\n?]*\?)", re.MULTILINE)
"""An item of a numbered list; a numbered question is one that the number below it may answer."""


def _read_score(text: str, options: ReadOptions) -> float:
    """Read a number that is alone on a line, or follows a word like ``Rating:``."""
    text = _unwrap_reply(text)
    kept_text = _blank_shown(text)
    form = "a number on a line of its own, like 7 or Rating: 7"
    scores = _find_scores(text, kept_text, options)
    read, end = [*scores.read], scores.end
    closing = _SCORE_CLOSES.search(kept_text[-_LINE:])
    if closing:
        read.append(float(closing[1]))
        end = len(text)
    # A score that is only mentioned is never read, but it can contradict: "Score: 1 of 5" beside "Rating: 5".
    stated = [*scores.stated, *(float(number_text) for number_text in _SCORE_SAID.findall(text))]
    if stated:
        _find_agreed(stated, form)  # raises where two of them differ
    score = _find_agreed(read, form)
    _check_kept(kept_text, end)
    return _check_on_scale(score, options)


class _Scores(NamedTuple):
    """The numbers of a reply that have a line of their own."""

    stated: list[float]
    read: list[float]
    """The scores among them."""
    end: int
    """The place in the text at which the last score ends."""


def _find_scores(text: str, kept_text: str, options: ReadOptions) -> _Scores:
    """Find all numbers that have a line of their own, and the scores among them."""
    stated: list[float] = []
    read: list[float] = []
    end = position = 0
    lines: list[tuple[str, bool, int]] = []
    for raw, kept in zip(text.split("\n"), kept_text.split("\n"), strict=True):
        position += len(raw) + 1
        if raw.strip():
            lines.append((raw.strip(), kept == raw, position - 1))
    for place, (line, is_kept, line_end) in enumerate(lines):
        match = _SCORE_LINE.fullmatch(line) if len(line) <= _LINE else None
        if match is None:
            continue
        stated.append(float(match["number"]))
        before = lines[place - 1][0][-_LINE:] if place else ""
        label = match["label"] or (before if before.endswith(":") else "")
        # "Steps failed: 3" amid a rationale is no score. A line that does not say rating or score (or a name that the
        # caller gave) is believed only where an answer stands: first or last.
        names_score = _SCORE_NAME.search(label) or label.strip("*_: ") in options.labels
        # A bare number says the least: above a sentence that is cut off, the judge may have been about to take it back,
        # and at the end of a list it may be the number of the next item.
        first = place == 0 and (len(lines) == 1 or match["label"] is not None or not _is_cut_off(text))
        last = place == len(lines) - 1 > 0 and not (line.rstrip(".").isdigit() and _continues_list(text, stated[-1]))
        is_asked_for = _ASKED_TO_WRITE.search(before) is not None
        is_answer = names_score or first or last
        if is_kept and is_answer and not is_asked_for:
            read.append(stated[-1])
            end = line_end
    return _Scores(stated, read, end)


def _continues_list(text: str, number: float) -> bool:
    """Return whether a number that ends the reply may be the next of a numbered list, cut off before its words."""
    return any(int(number_text) + 1 == number for number_text in _LISTED.findall(text))


# ---------------------------------------------------------------- two outputs by letter

_OUTPUT = rf"Output \(([ab])\){_MARK}"

_BETTER = re.compile(
    rf"\b{_OUTPUT} is (?:a |the |clearly |significantly |slightly |much |far |still |definitely )?{_MARK}better\b"
)

_ALONE = re.compile(r"^[ \t]{0,4}Output \(([ab])\)\.?[ \t\r]{0,4}$", re.MULTILINE)

_MARKED_ALONE = re.compile(rf"(?:#{{1,6}}[ \t]{{1,4}}|[-*+•][ \t]{{1,4}})?{_MARK}Output \(([ab])\)\.?{_MARK}\.?")

_BEFORE_SENTENCE = re.compile(rf"\A(?:(?:#{{1,6}}|[-*+•])[ \t]{{1,4}})?{_MARK}")
"""Marks of Markdown before a sentence; never ``>``, which quotes."""

_SENTENCE_END = re.compile(r"[.!?][\s\"')]|\n")

_LEADS_IN = re.compile(r"(?:^|[,:]|\b(?:that|therefore|thus|hence|so|believe|think|conclude))$", re.IGNORECASE)

_TAKES_BACK = re.compile(
    r"n['\u2019]t\b|\b(?:not|cannot|never|neither|nor|no|if|whether|unless|could|might|may)\b"
    r"|\b(?:says|said|claim(?:s|ed)?)\b",
    re.IGNORECASE,
)

_FOLLOWS = re.compile(
    rf"{_MARK}(?: than {_OUTPUT}(?=[.!]|\s*\Z|\n|,? (?:because|since|due to|as (?:it(?! were\b)|they|this|the)\b))"
    r"|\.|!|[ \t]{0,4}(?:\Z|\n)"
    r"| overall\b|,? (?:for (?:[a-z]{1,12} )?reasons|because|since|due to|as (?:it(?! were\b)|they|this|the))\b)"
)

_AS_TOLD = re.compile(
    r"[*_]{0,3},? as the\b[^.!?,\n]{0,40}?\b(?:says?|said|claims?|claimed|argues?|argued"
    r"|wants?|wanted|demands?|insists?)\b"
)


def _read_better(text: str, _: ReadOptions) -> str:
    """Read the side that ``Output (a) is better`` names. Raises ``ReplyError``.

    Only a sentence that is a verdict and not quoted counts, but all such words have to name one side, quoted ones too.
    """
    form = "a sentence that says Output (a) is better, or Output (b) is better"
    text = _unwrap_reply(text)
    if alone := _MARKED_ALONE.fullmatch(text):
        return _read_side(alone[1])
    letters = [match[1] for match in _BETTER.finditer(text)]
    _find_agreed(letters, form)
    kept_text = _blank_shown(text)
    verdicts = [match for match in _BETTER.finditer(kept_text) if _is_verdict(text, match)]
    side = _read_side(_find_agreed([match[1] for match in verdicts], form))
    _check_kept(kept_text, verdicts[-1].end())
    return side


def _read_output(text: str, _: ReadOptions) -> str:
    """Read which side a reply names that begins with ``Output (a)`` or ``Output (b)``. Raises ``ReplyError``."""
    text = _unwrap_reply(text)
    form = "a reply that begins with Output (a) or Output (b) and says no more, or that it is better"
    # With a heading's or a bold mark it is the verdict only where nothing follows: a rationale has such headings, too.
    if alone := _MARKED_ALONE.fullmatch(text):
        return _read_side(alone[1])
    opening = _ALONE.match(text.split("\n", 1)[0])
    better = _BETTER.match(text, len(text) - len(_BEFORE_SENTENCE.sub("", text, count=1)))
    first = opening or (better if better and _is_verdict(text, better) else None)
    if first is None:
        raise _make_unparseable(form, text)
    others = [match[1] for pattern in (_ALONE, _BETTER) for match in pattern.finditer(text)]
    side = _read_side(_find_agreed([first[1], *others], form))
    _check_kept(_blank_shown(text), first.end())
    return side


def _is_verdict(text: str, match: re.Match[str]) -> bool:
    """Return whether these words are a sentence's conclusion, not a negation, a condition, or somebody else's opinion.

    "Neither Output (a) nor Output (b) is better" holds the words of a verdict, and is none.
    """
    if re.search(r" (?:a|the) [*_]{0,3}better\Z", match[0]) or not _FOLLOWS.match(text, match.end()):
        return False
    if _AS_TOLD.match(text, match.end()):
        return False
    window = text[max(0, match.start() - _SENTENCE) : match.start()]
    ends = [end.end() for end in _SENTENCE_END.finditer(window)]
    if not ends and match.start() > _SENTENCE:
        return False
    before = window[ends[-1] if ends else 0 :].lstrip()
    before = _BEFORE_SENTENCE.sub("", before, count=1).rstrip(" \t*_")
    return bool(_LEADS_IN.search(before)) and not _TAKES_BACK.search(before)


def _read_side(letter: str) -> str:
    return "first" if letter == "a" else "second"


# ---------------------------------------------------------------- a letter that begins the reply

_OPENS = r"[ \t#*_\"\u201c'(\[`-]{0,8}"

_SHUTS = r"[*_\"\u201d')\]`]{0,4}"

_LEADING = re.compile(
    rf"{_OPENS}(?:(?:(?:My |Final |The )?(?:answer|choice|verdict|option|decision))(?: is)?[*_]{{0,2}}:?[ \t]{{1,3}}"
    rf"{_OPENS})?(?P<letter>[ABC])(?![A-Za-z0-9]){_SHUTS}"
    r"(?P<delimiter>[:.)]|[ \t][-\u2013\u2014](?=[ \t])|,(?= (?:because|since|as)\b)|(?=[ \t]{0,8}\Z))"
    rf"{_SHUTS}[ \t]{{0,8}}(?P<says>.*)",
    re.IGNORECASE,
)

_LETTER_SAID = re.compile(
    r"\b(?:answer|choice|verdict|decision)(?: is|:)[ \t]{0,3}[*_\"'(\[]{0,4}([ABC])(?![A-Za-z0-9])", re.IGNORECASE
)

_THING = (
    r"\b(?:feedback|response|answer|assistant|output|option|model|summary|candidate|system|critique|text|story"
    r"|translation|reply|completion)[ \t]\(?([12ab])\)?"
)

_THING_BETTER = re.compile(
    rf"{_THING}(?:'s)?{_MARK} is {_MARK}(?:[a-z]{{1,14}} )?better\b(?! (?:in|at|on|when|with|if)\b)", re.IGNORECASE
)

_COMPARES = re.compile(
    rf"{_THING}|\b(?:better|best|prefer(?:red|able)?|superior|stronger|neither|tie|tied|equal(?:ly)?|both|first|second"
    r"|because|since)\b",
    re.IGNORECASE,
)

_NEITHER = re.compile(r"(?:neither|tie\b|tied\b|both\b|equal|no\b|not\b|false\b|wrong\b|incorrect\b)", re.IGNORECASE)

_NOT_BETTER = re.compile(
    r"\b(?:not|never|hardly|no)\b[^.!?\n]{0,40}\bbetter\b|n['\u2019]t\b[^.!?\n]{0,40}\bbetter\b", re.IGNORECASE
)


def _read_leading(text: str, _: ReadOptions) -> str:
    """Read which side a reply names that begins with A, B or C, and check that its reasons do not deny it.

    Raises ``ReplyError``.
    """
    form = "a reply that begins with A, B or C, alone or as in A: Feedback 1 is better."
    text = _unwrap_reply(text)
    lines = [line for line in text.split("\n") if line.strip()]
    matches = [match for match in (_match_leading(line) for line in lines) if match is not None]
    first = _match_leading(lines[0]) if lines else None
    kept_text = _blank_shown(text)
    is_heading = first is not None and len(lines) == 1 and first[0].endswith(":")
    if first is None or lines[0] not in kept_text or is_heading:
        raise _make_unparseable(form, text)
    conclusion = first["says"].strip(" \t*_\"'`")
    # "A: Paris." echoes an answer. And where the reasons are cut off, the judge may have been about to take it back.
    whole = not _is_cut_off(text) or (len(lines) == 1 and (not conclusion or conclusion.endswith("better")))
    if (conclusion and not _COMPARES.search(conclusion)) or not whole:
        raise _make_unparseable(form, text)
    letter = first["letter"]
    letters = [match["letter"] for match in matches] + [each.upper() for each in _LETTER_SAID.findall(text)]
    sides = [_SIDES[each] for each in letters]
    sides += ["first" if each in "1aA" else "second" for each in _THING_BETTER.findall(text)]
    side = _find_agreed(sides, form)
    opening = _SENTENCE_END.split(conclusion + " ")[0]
    if letter != "C" and (_NEITHER.match(opening) or _NOT_BETTER.search(opening)):
        raise ReplyError("contradiction", f"the reply begins with {letter} and denies it; expected {form}")
    _check_kept(kept_text, 0)
    return side


def _match_leading(line: str) -> re.Match[str] | None:
    match = _LEADING.fullmatch(line.strip()) if line.strip() else None
    # The words around it are read whatever their case; a letter in lower case is most likely an item of a list.
    return match if match and match["letter"].isupper() else None


# ---------------------------------------------------------------- labels and names

_GRADE = re.compile(r"\b(?:GRADE|Grade)[*_ ]{0,4}:[*_ ]{0,4}(?=([\w-]{1,40}))")

GRADES = ("C", "I", "P")


def _read_grade(text: str, options: ReadOptions) -> str:
    """Read the label behind ``GRADE:``. Raises ``ReplyError``."""
    labels = sorted(options.labels or GRADES, key=len, reverse=True)
    text = _unwrap_reply(text)
    form = "GRADE: and one of " + ", ".join(labels)

    def find_label(match: re.Match[str]) -> str:
        # Whole words only: "GRADE: Incomplete" must not be read as I.
        return next((label for label in labels if _stands_at(text, match.end(), label)), match[1])

    grade = _find_agreed([find_label(match) for match in _GRADE.finditer(text)], form)
    if grade not in labels:
        raise ReplyError("unparseable", f"the grade {grade!r} is none of those offered: {', '.join(labels)}")
    kept_text = _blank_shown(text)
    _check_kept(kept_text, _find_given(_GRADE, text, kept_text, form).end() + len(grade))
    return grade


def _stands_at(text: str, place: int, label: str) -> bool:
    after = text[place + len(label) : place + len(label) + 1]
    return text.startswith(label, place) and not (after.isalnum() or after in ("_", "-"))


def _read_label(text: str, options: ReadOptions) -> str:
    """Read a reply that is one of the labels and nothing else.

    Raises ``ReplyError`` for any other reply, and ``UsageError`` if no labels are given.
    """
    if not options.labels:
        raise UsageError(
            "the reader 'label' needs the labels that were offered; give them as ",
            Argument("labels"),
            argument="labels",
        )
    label = text.strip()
    if label not in options.labels:
        raise _make_unparseable("one of the labels offered and nothing else", text)
    return label


def _read_name(text: str, options: ReadOptions) -> str:
    # Case counts: m and M are two names.
    first, second = _get_two_names(options, "name")
    side = {first: "first", second: "second"}.get(text.strip())
    if side is None:
        raise _make_unparseable(f"{first} or {second} and nothing else", text)
    return side


def _get_two_names(options: ReadOptions, reader: str) -> tuple[str, str]:
    """Return the two names compared, the one shown first first. Raises ``UsageError`` unless there are two."""
    if len(options.labels) != 2:
        raise UsageError(
            f"the reader {reader!r} needs the two names compared, the one shown first first, as ",
            Argument("labels"),
            f"; got {options.labels!r}",
            argument="labels",
        )
    return options.labels[0], options.labels[1]


# ---------------------------------------------------------------- one JSON object amid prose


def _read_ranking(text: str, options: ReadOptions) -> str:
    """Read which of two names a JSON ranking puts first. Raises ``ReplyError``."""
    first, second = _get_two_names(options, "ordered_models")
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
        raise _make_unparseable(form, text)
    if ranks[0][1] == ranks[1][1]:
        raise ReplyError("contradiction", f"the ranking puts {first} and {second} in the same place")
    if {rank for _, rank in ranks} != {1, 2}:
        raise _make_unparseable(form, text)
    return "first" if (first, 1) in ranks else "second"


def _read_json_score(text: str, options: ReadOptions) -> float:
    """Read ``score`` or ``rating`` of the one JSON object in a reply; if both are there, they have to agree.

    Raises ``ReplyError``.
    """
    members = _load_object(text)
    form = "a JSON object with a number as score or rating"
    values = [members[key] for key in ("score", "rating") if key in members]
    numbers = [float(value) for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) != len(values):
        raise _make_unparseable(form, text)
    return _check_on_scale(_find_agreed(numbers, form), options)


def _read_json_winner(text: str, options: ReadOptions) -> str:
    """Read the side that ``winner``, ``verdict`` or ``choice`` of the one JSON object in a reply names.

    Those that are there have to agree. Without labels the names are A and B. Raises ``ReplyError``.
    """
    first, second = _get_two_names(options, "json winner") if options.labels else ("A", "B")
    sides = {"tie": "tie", "first": "first", "second": "second", first: "first", second: "second"}
    form = f"a JSON object with {first}, {second} or tie as winner, verdict or choice"
    members = _load_object(text)
    values = [members[key] for key in ("winner", "verdict", "choice") if key in members]
    named_sides = [sides[value] for value in values if isinstance(value, str) and value in sides]
    if len(named_sides) != len(values):
        raise _make_unparseable(form, text)
    return _find_agreed(named_sides, form)


def _load_object(text: str) -> dict[str, object]:
    """Read the one JSON object in a text, bare or in a fence, with any prose around it that holds no brace.

    Raises ``ReplyError``.
    """
    start = text.find("{")
    if start < 0:
        raise _make_unparseable("a JSON object", text)
    members, end = _decode_object(text, start)
    second_start = text.find("{", end)
    # The two are compared as they are written: comparing deep values can exhaust the stack.
    if second_start >= 0 and text[second_start : _decode_object(text, second_start)[1]] != text[start:end]:
        raise ReplyError("contradiction", "the reply holds two JSON objects that differ; ask for one")
    if second_start >= 0 or "}" in text[:start] or "}" in text[end:]:
        # Skipping a stray brace would be choosing which part of the reply is the answer.
        raise ReplyError("unparseable", "there is a brace outside the JSON object; ask for one object alone")
    return members


def _decode_object(text: str, start: int) -> tuple[dict[str, object], int]:
    """Decode the JSON object at ``start``, and return it and the place behind its end. Raises ``ReplyError``."""
    if nests_too_deeply(text, start):
        raise ReplyError("unparseable", f"the JSON object nests deeper than {MOST_DEPTH} brackets")
    try:
        return _DECODER.raw_decode(text, start)
    except ValueError as error:
        raise ReplyError("unparseable", f"the JSON object cannot be read: {str(error)[:120]}") from None


def _make_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a key appears in it twice")
    return members


def _read_whole(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise ValueError(f"a number in it has {len(digits)} characters")
    return int(digits)


def _read_real(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError("a number in it is too large")
    return number


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_make_object, parse_int=_read_whole, parse_float=_read_real, parse_constant=_refuse_constant
)


# ---------------------------------------------------------------- shared by all


def _find_agreed(verdicts: Sequence[_T], form: str) -> _T:
    """Return what all markers say; raise ``ReplyError`` where there is none, or they differ."""
    different = list(dict.fromkeys(verdicts))
    if not different:
        raise ReplyError("unparseable", f"the reply holds no verdict that can be read; expected {form}")
    if len(different) > 1:
        listed = ", ".join(map(str, different[:5]))
        raise ReplyError("contradiction", f"the reply says {listed}; all it says must agree; expected {form}")
    return different[0]


def _check_on_scale(score: float, options: ReadOptions) -> float:
    if options.scale is not None and not options.scale[0] <= score <= options.scale[1]:
        low, high = options.scale
        raise ReplyError("off_scale", f"the score {score:g} is outside the scale [{low:g}, {high:g}]")
    return score


def _make_unparseable(form: str, text: str) -> ReplyError:
    return ReplyError("unparseable", f"the reply, {len(text)} characters long, is not in the form asked for: {form}")


def _index_by_name(readers: Iterable[Reader]) -> Mapping[str, Reader]:
    return {reader.name: reader for reader in readers}


READERS: Mapping[str, Reader] = _index_by_name(
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
            name="A:",
            kind="preference",
            about="The reply begins with A, B or C for a tie, alone or as in A: Feedback 1 is better (Shepherd).",
            read=_read_leading,
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
