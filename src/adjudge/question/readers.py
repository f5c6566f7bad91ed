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

_MOST_DIGITS = 18
"""The longest integer read from JSON; ``int`` of hostile length is slow, and no scale needs it."""

_LONGEST_LINE = 120
"""The longest line that can state a score; what is longer is prose."""

_MOST_MARKERS = 100
"""Markers of a reply that are looked at to see whose they are, from its end."""

_LONGEST_SENTENCE = 300
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
    ReadOptions(labels=labels)  # it checks them when it is made


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

_MARKER_ALONE = re.compile(
    r"[*_ ]{0,4}(?:[A-Za-z]{1,12}[*_ ]{0,4}:[*_ ]{0,4})?(?:\[{1,2}[^\[\]\n]{1,30}\]{1,2}|\w{1,40})[*_. ]{0,4}"
)

_ATTRIBUTION_OR_DENIAL = re.compile(
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
_HYPOTHETICAL = re.compile(
    r"[*_\"\u201d` \t]{0,4}(?:would|could|might|should|is|was|were)\b[*_ \t]{1,4}(?:not|be|have|wrong|too|what)\b"
)

_OWN_WORDS = re.compile(r"\b(?:so|therefore|thus|hence|verdict|I|my)\b")

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

_CLOSING_CHARACTERS = " \t\r\n*_\"'\u201d\u2019\u00bb)]}`"


def _unwrap_reply(text: str) -> str:
    """Return the reply without space around it, and without the fence lines if one fence holds all of it."""
    text = text.strip()
    fence = _FENCE.match(text)
    if fence is None or "\n" not in text:
        return text
    opening_line, _, after_opening = text.partition("\n")
    inside, _, closing_line = after_opening.rpartition("\n")
    if closing_line.strip() != fence[1] or fence[1] in inside or " " in opening_line.strip():
        return text
    return inside.strip()


def _blank_quoted(text: str) -> str:
    """Replace everything that is fenced or quoted by blanks, so that every other character keeps its position.

    A quoted verdict is not the judge's own. It still has to agree with that, and is read from the text before this:
    quoting must not hide a second verdict.
    """
    fence, lines = "", []  # ``fence`` is the mark that opened the fence around a line, empty outside of one
    for line in text.split("\n"):
        fence_mark = _FENCE.match(line)
        if fence:
            is_quoted = True
            fence = "" if fence_mark and fence_mark[1].startswith(fence) else fence
        else:
            is_quoted = fence_mark is not None or line.lstrip().startswith(">")
            fence = fence_mark[1] if fence_mark else ""
        lines.append(" " * len(line) if is_quoted else line)
    return _QUOTATION.sub(_blank_quotation, "\n".join(lines))


def _blank_quotation(match: re.Match[str]) -> str:
    """Return blanks for a quotation. A quoted marker alone stays: judges copy it so from a prompt that shows it."""
    is_marker = len(match[0]) <= _LONGEST_LINE and _MARKER_ALONE.fullmatch(match[0][1:-1])
    return match[0] if is_marker else " " * len(match[0])


def _is_attributed_or_denied(text: str, start: int) -> bool:
    """Return whether the words before a marker at ``start`` say that it is somebody else's, or deny it.

    An example is "the answer asks for [[A]]". Words such as "therefore" or "I say" make it the judge's own again.
    """
    window = text[max(0, start - _LONGEST_LINE) : start]
    before = _SENTENCE_END.split(window)[-1].rstrip(" *_\"'\u201c`")  # the same sentence, up to the marker
    match = _ATTRIBUTION_OR_DENIAL.search(before)
    return match is not None and not _OWN_WORDS.search(match["then"] or "") and not _FIRST_PERSON.search(before)


def _find_own_verdict(pattern: re.Pattern[str], text: str, unquoted_text: str, expected_form: str) -> re.Match[str]:
    """Find the last marker that is the judge's own verdict: it is not quoted, denied, or said to be somebody else's.

    ``unquoted_text`` is ``text`` with quoted and fenced characters replaced by blanks (``_blank_quoted``), so positions
    in both are the same. Raises ``ReplyError`` if none of the last hundred markers is the judge's own.
    """
    last_markers = list(pattern.finditer(unquoted_text))[-_MOST_MARKERS:]
    for match in reversed(last_markers):
        before = text[max(0, match.start() - _LONGEST_LINE) : match.start()].rstrip()
        if not _is_attributed_or_denied(text, match.start()) and not _ASKED_TO_WRITE.search(before):
            return match
    raise ReplyError(
        "unparseable", f"the reply shows a verdict and gives none; expected {expected_form}, neither quoted nor denied"
    )


def _check_not_retracted(text: str, end: int) -> None:
    """Raise ``ReplyError`` where the text after a verdict, which ends at ``end``, takes it back."""
    if _HYPOTHETICAL.match(text, end):
        raise ReplyError(
            "contradiction", "the reply says what a verdict would be, or what it is not; expected what it is"
        )
    if match := _RETRACTED.search(text, max(0, end - 1)):
        raise ReplyError("contradiction", f"the reply takes its verdict back: {match[0].strip()[:60]!r}")


def _is_cut_off(text: str) -> bool:
    """Return whether a text ends in the middle of a sentence."""
    return not text.rstrip(_CLOSING_CHARACTERS).endswith((".", "!", "?", "\u2026", "\u3002", "\uff01", "\uff1f"))


# ---------------------------------------------------------------- markers in brackets

_LETTER_MARKER = re.compile(r"\[\[([ABC])\]\]")

_STRENGTH_MARKER = re.compile(r"\[\[([AB][<>=]{1,3}[AB])\]\]")

_BRACKETED_NUMBER = r"(-?[0-9][^\[\]\n]{0,30})"

_IN_BRACKETS = rf"\[\[{_BRACKETED_NUMBER}\]\]"

_RATING_MARKER = re.compile(
    rf"\b(?:Rating|rating|RATING)[*_ ]{{0,4}}:[*_ \"\u201c`]{{0,4}}(?:{_IN_BRACKETS}|\[{_BRACKETED_NUMBER}\](?![\](]))"
)

_RATING_IN_SENTENCE = re.compile(r"\b(?:rate|rated|rating|score)\b[^\[\]\n]{0,80}" + _IN_BRACKETS, re.IGNORECASE)

_RATING_AT_END = re.compile(
    r"[^\[\]\n]{0,80}\b(?:rate|rated|rating|score)\b[^\[\]\n]{0,80}" + _IN_BRACKETS + r"[.\s]{0,8}\Z", re.IGNORECASE
)

_RATING_LINE = re.compile(rf"[*_#\"\u201c` \t]{{0,8}}{_IN_BRACKETS}[*_\"\u201d`. \t\r]{{0,8}}")

_RATING_ALONE = re.compile(rf"[*_#\"\u201c`\s]{{0,8}}\[{_BRACKETED_NUMBER}\][*_\"\u201d`.\s]{{0,8}}")

_RANGE_AFTER_RATING = re.compile(r"[*_ \t]{0,4}(?:[-\u2013\u2014~]|(?:to|or|and)\b)[*_ \t]{0,4}[\[0-9]")

_OUT_OF_AFTER_RATING = re.compile(r"[*_ \t]{0,4}(?:/|out of\b|of\b)[*_ \t]{0,4}\[{0,2}([0-9]{1,15}(?:\.[0-9]{1,15})?)")

_DENIES = re.compile(r"n['\u2019]t\b|\b(?:not|cannot|never|neither|nor|no|if|unless)\b", re.IGNORECASE)

_NAMES_RATING = re.compile(r"\b(?:rat(?:e|ed|ing)|scored?|verdict|grade)\b", re.IGNORECASE)


_SIDE_BY_LETTER: Mapping[str, str] = {"A": "first", "B": "second", "C": "tie"}

_SIDE_BY_STRENGTH: Mapping[str, str] = {
    "A>>B": "first", "A>B": "first", "A=B": "tie", "B>A": "second", "B>>A": "second"
}  # fmt: skip


def _read_letter(text: str, _: ReadOptions) -> str:
    """Read the side that [[A]] or [[B]] names, or a tie for [[C]]. Raises ``ReplyError``."""
    return _SIDE_BY_LETTER[_read_marker(_LETTER_MARKER, text, "[[A]], [[B]] or [[C]]")]


def _read_strength(text: str, _: ReadOptions) -> str:
    """Read the side that a marker like [[A>>B]] names, or a tie for [[A=B]]. Raises ``ReplyError``."""
    # The strength counts too: [[A>>B]] and [[A>B]] in one reply are two verdicts, and it is not known which is meant.
    label = _read_marker(_STRENGTH_MARKER, text, "[[A>>B]], [[A>B]], [[A=B]], [[B>A]] or [[B>>A]]")
    if label not in _SIDE_BY_STRENGTH:
        raise ReplyError("unparseable", f"the verdict [[{label}]] is none of the five labels that were offered")
    return _SIDE_BY_STRENGTH[label]


def _read_marker(pattern: re.Pattern[str], text: str, expected_form: str) -> str:
    """Read the markers of a reply, which must agree; one must be the judge's own. Raises ``ReplyError``."""
    text = _unwrap_reply(text)
    verdict: str = _require_agreement(pattern.findall(text), expected_form)
    unquoted_text = _blank_quoted(text)
    _check_not_retracted(unquoted_text, _find_own_verdict(pattern, text, unquoted_text, expected_form).end())
    return verdict


def _read_rating(text: str, options: ReadOptions) -> float:
    """Read ``Rating: [[number]]``. Raises ``ReplyError``.

    The ratings in ``believed`` count as the judge's answer, each with the position of its end. All other ratings can
    only contradict them.
    """
    # A number in brackets within a sentence is no rating, because code in a rationale is full of [[0]]. It is one on a
    # line of its own, and at the end of the reply after words like "so I rate it [[8]]". After such words anywhere else
    # it is not believed, but can contradict.
    expected_form = "Rating: [[number]]"
    text = _unwrap_reply(text)
    unquoted_text = _blank_quoted(text)
    markers = list(_RATING_MARKER.finditer(text))
    line_ratings, believed = _find_rating_lines(text, unquoted_text)
    mentioned = [match[1] for match in _RATING_IN_SENTENCE.finditer(text)]
    number_texts = [*[match[1] or match[2] for match in markers], *mentioned]
    all_ratings = [_convert_rating(number_text) for number_text in number_texts] + line_ratings
    if closing := _find_closing_rating(text, unquoted_text):
        believed.append(closing)
    if not believed and markers:
        own_marker = _find_own_verdict(_RATING_MARKER, text, unquoted_text, expected_form)
        believed.append((_convert_rating(own_marker[1] or own_marker[2]), own_marker.end()))
    _require_agreement(all_ratings, expected_form)
    score = _require_agreement([rating for rating, _ in believed], expected_form)
    for end in [match.end() for match in markers] + [end for _, end in believed]:
        _check_single_rating(text, end, options)
    _check_not_retracted(unquoted_text, max(end for _, end in believed))
    if isinstance(score, str):
        raise ReplyError("unparseable", f"the rating [[{score}]] is not a number")
    return _check_on_scale(score, options)


def _find_closing_rating(text: str, unquoted_text: str) -> tuple[float | str, int] | None:
    """Find the rating that the last words of a reply lead to, as in ``so I rate it [[8]]``; ``None`` without one.

    Returns the rating and the position of its end.
    """
    closing = _RATING_AT_END.search(unquoted_text[-_LONGEST_SENTENCE:])
    window_start = max(0, len(unquoted_text) - _LONGEST_SENTENCE)
    if closing is None or _DENIES.search(closing[0]):
        return None
    if _is_attributed_or_denied(text, window_start + closing.start(1) - 2):  # before the two brackets
        return None
    if _ASKED_TO_WRITE.search(unquoted_text[: window_start + closing.start()].rstrip()[-_LONGEST_LINE:]):
        return None
    return _convert_rating(closing[1]), len(text)


def _find_rating_lines(text: str, unquoted_text: str) -> tuple[list[float | str], list[tuple[float | str, int]]]:
    """Find the ratings that have a line of their own, and those of them that are believed to be the answer.

    Believed is a rating on the first or the last line, unless the line before introduces it as somebody else's. Each of
    the believed ones comes with the position of its end.
    """
    if alone := _RATING_ALONE.fullmatch(text):
        rating = _convert_rating(alone[1])
        return [rating], [(rating, len(text))]
    lines = [line.strip() for line in unquoted_text.split("\n") if line.strip()]
    ratings: list[float | str] = []
    believed: list[tuple[float | str, int]] = []
    for line_number, line in enumerate(lines):
        match = _RATING_LINE.fullmatch(line) if len(line) <= _LONGEST_LINE else None
        if match is None:
            continue
        ratings.append(_convert_rating(match[1]))
        is_last = line_number == len(lines) - 1
        before = lines[line_number - 1][-_LONGEST_LINE:] if line_number else ""
        # "The answer closes with this line:" introduces a rating of somebody else, and "My rating:" the judge's own.
        is_shown = before.endswith(":") and (
            not _NAMES_RATING.search(before) or _is_attributed_or_denied(before, len(before) - 1)
        )
        is_shown = is_shown or _ASKED_TO_WRITE.search(before) is not None
        closes_reply = is_last and not is_shown
        opens_reply = line_number == 0 and not _is_cut_off(text)
        if closes_reply or opens_reply:
            believed.append((ratings[-1], len(text) if is_last else text.find(line) + len(line)))
    return ratings, believed


def _check_single_rating(text: str, end: int, options: ReadOptions) -> None:
    """Raise ``ReplyError`` where the text after a rating makes it a range, or a rating out of another maximum.

    An example of the latter is "[[4]] out of 5" on a scale that ends at 10.
    """
    if _RANGE_AFTER_RATING.match(text, end):
        raise ReplyError("contradiction", "the reply gives a range of ratings; ask for one number")
    out_of = _OUT_OF_AFTER_RATING.match(text, end)
    if out_of and options.scale is not None and float(out_of[1]) != options.scale[1]:
        raise ReplyError("off_scale", f"the rating is out of {out_of[1]}, and the scale ends at {options.scale[1]:g}")


def _convert_rating(text: str) -> float | str:
    """Return the number that a bracket holds; the text itself if it is none."""
    return float(text) if re.fullmatch(_NUMBER, text) else text


# ---------------------------------------------------------------- a score on a line of its own

_EMPHASIS = r"[*_]{0,3}"

_SCORE_LINE = re.compile(
    rf"(?:(?:[-*•#]{{1,6}}[ \t]{{1,4}})?{_EMPHASIS}(?P<label>[A-Za-z][A-Za-z -]{{0,39}}){_EMPHASIS}"
    rf"[ \t]{{0,4}}:{_EMPHASIS}[ \t]{{0,4}})?"
    rf"{_EMPHASIS}(?P<number>{_NUMBER})\.?{_EMPHASIS}"
)

_SCORE_WORD = re.compile(r"\b(?:rating|score)\b", re.IGNORECASE)

_SCORE_MENTIONED = re.compile(
    rf"\b(?:rating|score){_EMPHASIS}\s{{0,4}}[:=]{_EMPHASIS}\s{{0,4}}{_EMPHASIS}({_NUMBER})", re.IGNORECASE
)

_SCORE_AT_END = re.compile(rf"[.!?] (?:Final )?(?:Rating|Score): ?({_NUMBER})\.?\s{{0,4}}\Z", re.IGNORECASE)

_LIST_NUMBER = re.compile(r"^[ \t]{0,8}[*_]{0,3}([0-9]{1,3})[.)](?![^\n?]*\?)", re.MULTILINE)
"""An item of a numbered list; a numbered question is one that the number below it may answer."""


def _read_score(text: str, options: ReadOptions) -> float:
    """Read a number that is alone on a line, or follows a word like ``Rating:``. Raises ``ReplyError``."""
    text = _unwrap_reply(text)
    unquoted_text = _blank_quoted(text)
    expected_form = "a number on a line of its own, like 7 or Rating: 7"
    score_lines = _find_score_lines(text, unquoted_text, options)
    scores, end = [*score_lines.scores], score_lines.last_end
    closing = _SCORE_AT_END.search(unquoted_text[-_LONGEST_LINE:])
    if closing:
        scores.append(float(closing[1]))
        end = len(text)
    # A score that is only mentioned is not the answer, but it can contradict: "Score: 1 of 5" beside "Rating: 5".
    all_numbers = [*score_lines.numbers, *(float(number_text) for number_text in _SCORE_MENTIONED.findall(text))]
    if all_numbers:
        _require_agreement(all_numbers, expected_form)  # raises where two of them differ
    score = _require_agreement(scores, expected_form)
    _check_not_retracted(unquoted_text, end)
    return _check_on_scale(score, options)


class _ScoreLines(NamedTuple):
    """The numbers of a reply that have a line of their own."""

    numbers: list[float]
    scores: list[float]
    """The numbers that are believed to be the answer."""
    last_end: int
    """The position in the text at which the last score ends; 0 without one."""


def _find_score_lines(text: str, unquoted_text: str, options: ReadOptions) -> _ScoreLines:
    """Find all numbers that have a line of their own, and those of them that are believed to be the answer."""
    numbers: list[float] = []
    scores: list[float] = []
    last_end = position = 0
    lines: list[tuple[str, bool, int]] = []  # text, whether nothing in it is quoted, and the position of its end
    for line, unquoted_line in zip(text.split("\n"), unquoted_text.split("\n"), strict=True):
        position += len(line) + 1
        if line.strip():
            lines.append((line.strip(), unquoted_line == line, position - 1))
    for line_number, (line, is_unquoted, line_end) in enumerate(lines):
        match = _SCORE_LINE.fullmatch(line) if len(line) <= _LONGEST_LINE else None
        if match is None:
            continue
        number = float(match["number"])
        numbers.append(number)
        before = lines[line_number - 1][0][-_LONGEST_LINE:] if line_number else ""
        label = match["label"] or (before if before.endswith(":") else "")
        # "Steps failed: 3" within a rationale is no score. A line that does not say rating or score (or a name that the
        # caller gave) is believed only where an answer is expected: as the first or the last line.
        names_score = _SCORE_WORD.search(label) or label.strip("*_: ") in options.labels
        # A number without a label is believed least: not above a sentence that is cut off, in which the judge may have
        # taken it back, and not at the end of a list, where it may be the number of the next item.
        is_first = line_number == 0 and (len(lines) == 1 or match["label"] is not None or not _is_cut_off(text))
        is_last = line_number == len(lines) - 1 > 0 and not (
            line.rstrip(".").isdigit() and _continues_list(text, number)
        )
        is_asked_for = _ASKED_TO_WRITE.search(before) is not None
        is_answer = names_score or is_first or is_last
        if is_unquoted and is_answer and not is_asked_for:
            scores.append(number)
            last_end = line_end
    return _ScoreLines(numbers, scores, last_end)


def _continues_list(text: str, number: float) -> bool:
    """Return whether a number that ends the reply may be the next of a numbered list, cut off before its words."""
    return any(int(number_text) + 1 == number for number_text in _LIST_NUMBER.findall(text))


# ---------------------------------------------------------------- two outputs by letter

_OUTPUT = rf"Output \(([ab])\){_EMPHASIS}"

_BETTER_SENTENCE = re.compile(
    rf"\b{_OUTPUT} is (?:a |the |clearly |significantly |slightly |much |far |still |definitely )?{_EMPHASIS}better\b"
)

_OUTPUT_LINE = re.compile(r"^[ \t]{0,4}Output \(([ab])\)\.?[ \t\r]{0,4}$", re.MULTILINE)

_OUTPUT_ALONE = re.compile(
    rf"(?:#{{1,6}}[ \t]{{1,4}}|[-*+•][ \t]{{1,4}})?{_EMPHASIS}Output \(([ab])\)\.?{_EMPHASIS}\.?"
)

_BEFORE_SENTENCE = re.compile(rf"\A(?:(?:#{{1,6}}|[-*+•])[ \t]{{1,4}})?{_EMPHASIS}")
"""Marks of Markdown before a sentence; never ``>``, which quotes."""

_SENTENCE_END = re.compile(r"[.!?][\s\"')]|\n")

_LEADS_IN = re.compile(r"(?:^|[,:]|\b(?:that|therefore|thus|hence|so|believe|think|conclude))$", re.IGNORECASE)

_DENIES_OR_DOUBTS = re.compile(
    r"n['\u2019]t\b|\b(?:not|cannot|never|neither|nor|no|if|whether|unless|could|might|may)\b"
    r"|\b(?:says|said|claim(?:s|ed)?)\b",
    re.IGNORECASE,
)

_AFTER_VERDICT = re.compile(
    rf"{_EMPHASIS}(?: than {_OUTPUT}(?=[.!]|\s*\Z|\n|,? (?:because|since|due to|as (?:it(?! were\b)|they|this|the)\b))"
    r"|\.|!|[ \t]{0,4}(?:\Z|\n)"
    r"| overall\b|,? (?:for (?:[a-z]{1,12} )?reasons|because|since|due to|as (?:it(?! were\b)|they|this|the))\b)"
)

_AS_TOLD = re.compile(
    r"[*_]{0,3},? as the\b[^.!?,\n]{0,40}?\b(?:says?|said|claims?|claimed|argues?|argued"
    r"|wants?|wanted|demands?|insists?)\b"
)


def _read_better(text: str, _: ReadOptions) -> str:
    """Read the side that ``Output (a) is better`` names. Raises ``ReplyError``.

    Only a sentence that is a verdict and is not quoted counts. But all such words have to name one side, quoted ones
    too.
    """
    expected_form = "a sentence that says Output (a) is better, or Output (b) is better"
    text = _unwrap_reply(text)
    if alone := _OUTPUT_ALONE.fullmatch(text):
        return _read_side(alone[1])
    letters = [match[1] for match in _BETTER_SENTENCE.finditer(text)]
    _require_agreement(letters, expected_form)
    unquoted_text = _blank_quoted(text)
    verdicts = [match for match in _BETTER_SENTENCE.finditer(unquoted_text) if _is_verdict(text, match)]
    side = _read_side(_require_agreement([match[1] for match in verdicts], expected_form))
    _check_not_retracted(unquoted_text, verdicts[-1].end())
    return side


def _read_output(text: str, _: ReadOptions) -> str:
    """Read which side a reply names that begins with ``Output (a)`` or ``Output (b)``. Raises ``ReplyError``."""
    text = _unwrap_reply(text)
    expected_form = "a reply that begins with Output (a) or Output (b) and says no more, or that it is better"
    # As a heading or in bold it is a verdict only if nothing follows, because a rationale has such headings too.
    if alone := _OUTPUT_ALONE.fullmatch(text):
        return _read_side(alone[1])
    opening = _OUTPUT_LINE.match(text.split("\n", 1)[0])
    better = _BETTER_SENTENCE.match(text, len(text) - len(_BEFORE_SENTENCE.sub("", text, count=1)))
    first = opening or (better if better and _is_verdict(text, better) else None)
    if first is None:
        raise _make_unparseable(expected_form, text)
    others = [match[1] for pattern in (_OUTPUT_LINE, _BETTER_SENTENCE) for match in pattern.finditer(text)]
    side = _read_side(_require_agreement([first[1], *others], expected_form))
    _check_not_retracted(_blank_quoted(text), first.end())
    return side


def _is_verdict(text: str, match: re.Match[str]) -> bool:
    """Return whether the words ``Output (a) is better`` (``match``) are the conclusion of a sentence.

    They are none in a negation, in a condition, or as somebody else's opinion, as in "Neither Output (a) nor Output (b)
    is better".
    """
    is_about_noun = re.search(r" (?:a|the) [*_]{0,3}better\Z", match[0])  # as in "is a better summary"
    if is_about_noun or not _AFTER_VERDICT.match(text, match.end()):
        return False
    if _AS_TOLD.match(text, match.end()):
        return False
    window = text[max(0, match.start() - _LONGEST_SENTENCE) : match.start()]
    sentence_ends = [end.end() for end in _SENTENCE_END.finditer(window)]
    if not sentence_ends and match.start() > _LONGEST_SENTENCE:  # the sentence begins too far back to be read
        return False
    before = window[sentence_ends[-1] if sentence_ends else 0 :].lstrip()
    before = _BEFORE_SENTENCE.sub("", before, count=1).rstrip(" \t*_")
    return bool(_LEADS_IN.search(before)) and not _DENIES_OR_DOUBTS.search(before)


def _read_side(letter: str) -> str:
    """Return which of the two outputs the letter of ``Output (a)`` or ``Output (b)`` names."""
    return "first" if letter == "a" else "second"


# ---------------------------------------------------------------- a letter that begins the reply

_OPENER = r"[ \t#*_\"\u201c'(\[`-]{0,8}"

_CLOSER = r"[*_\"\u201d')\]`]{0,4}"

_LEADING_LETTER = re.compile(
    rf"{_OPENER}(?:(?:(?:My |Final |The )?(?:answer|choice|verdict|option|decision))(?: is)?[*_]{{0,2}}:?[ \t]{{1,3}}"
    rf"{_OPENER})?(?P<letter>[ABC])(?![A-Za-z0-9]){_CLOSER}"
    r"(?P<delimiter>[:.)]|[ \t][-\u2013\u2014](?=[ \t])|,(?= (?:because|since|as)\b)|(?=[ \t]{0,8}\Z))"
    rf"{_CLOSER}[ \t]{{0,8}}(?P<says>.*)",
    re.IGNORECASE,
)

_LETTER_MENTIONED = re.compile(
    r"\b(?:answer|choice|verdict|decision)(?: is|:)[ \t]{0,3}[*_\"'(\[]{0,4}([ABC])(?![A-Za-z0-9])", re.IGNORECASE
)

_COMPARED_OUTPUT = (
    r"\b(?:feedback|response|answer|assistant|output|option|model|summary|candidate|system|critique|text|story"
    r"|translation|reply|completion)[ \t]\(?([12ab])\)?"
)

_OUTPUT_CALLED_BETTER = re.compile(
    rf"{_COMPARED_OUTPUT}(?:'s)?{_EMPHASIS} is {_EMPHASIS}(?:[a-z]{{1,14}} )?better\b(?! (?:in|at|on|when|with|if)\b)",
    re.IGNORECASE,
)

_COMPARING_WORDS = re.compile(
    rf"{_COMPARED_OUTPUT}|\b(?:better|best|prefer(?:red|able)?|superior|stronger|neither|tie|tied|equal(?:ly)?|both|first|second"
    r"|because|since)\b",
    re.IGNORECASE,
)

_NEITHER_AT_START = re.compile(
    r"(?:neither|tie\b|tied\b|both\b|equal|no\b|not\b|false\b|wrong\b|incorrect\b)", re.IGNORECASE
)

_NOT_BETTER = re.compile(
    r"\b(?:not|never|hardly|no)\b[^.!?\n]{0,40}\bbetter\b|n['\u2019]t\b[^.!?\n]{0,40}\bbetter\b", re.IGNORECASE
)


def _read_leading(text: str, _: ReadOptions) -> str:
    """Read which side a reply names that begins with A, B or C, and check that its reasons do not deny it.

    Raises ``ReplyError``.
    """
    expected_form = "a reply that begins with A, B or C, alone or as in A: Feedback 1 is better."
    text = _unwrap_reply(text)
    lines = [line for line in text.split("\n") if line.strip()]
    line_matches = [match for match in (_match_leading(line) for line in lines) if match is not None]
    first = _match_leading(lines[0]) if lines else None
    unquoted_text = _blank_quoted(text)
    is_heading = first is not None and len(lines) == 1 and first[0].endswith(":")
    if first is None or lines[0] not in unquoted_text or is_heading:
        raise _make_unparseable(expected_form, text)
    conclusion = first["says"].strip(" \t*_\"'`")
    # "A: Paris." repeats an answer and compares nothing. In reasons that are cut off, the judge may have taken it back.
    is_complete = not _is_cut_off(text) or (len(lines) == 1 and (not conclusion or conclusion.endswith("better")))
    if (conclusion and not _COMPARING_WORDS.search(conclusion)) or not is_complete:
        raise _make_unparseable(expected_form, text)
    letter = first["letter"]
    letters = [match["letter"] for match in line_matches]
    letters += [mentioned.upper() for mentioned in _LETTER_MENTIONED.findall(text)]
    sides = [_SIDE_BY_LETTER[named_letter] for named_letter in letters]
    sides += ["first" if output in "1aA" else "second" for output in _OUTPUT_CALLED_BETTER.findall(text)]
    side = _require_agreement(sides, expected_form)
    opening = _SENTENCE_END.split(conclusion + " ")[0]
    if letter != "C" and (_NEITHER_AT_START.match(opening) or _NOT_BETTER.search(opening)):
        raise ReplyError("contradiction", f"the reply begins with {letter} and denies it; expected {expected_form}")
    _check_not_retracted(unquoted_text, 0)
    return side


def _match_leading(line: str) -> re.Match[str] | None:
    """Match a line that begins with the letter of a side; ``None`` for any other."""
    match = _LEADING_LETTER.fullmatch(line.strip()) if line.strip() else None
    # The case of the words around the letter does not matter. A letter in lower case is most likely an item of a list.
    return match if match and match["letter"].isupper() else None


# ---------------------------------------------------------------- labels and names

_GRADE_MARKER = re.compile(r"\b(?:GRADE|Grade)[*_ ]{0,4}:[*_ ]{0,4}(?=([\w-]{1,40}))")

GRADES = ("C", "I", "P")


def _read_grade(text: str, options: ReadOptions) -> str:
    """Read the label after ``GRADE:``. Raises ``ReplyError``."""
    labels = sorted(options.labels or GRADES, key=len, reverse=True)
    text = _unwrap_reply(text)
    expected_form = "GRADE: and one of " + ", ".join(labels)

    def find_label(match: re.Match[str]) -> str:
        """Return the offered label after a marker; the word that is there if none of them is."""
        for label in labels:
            if _is_word_at(text, match.end(), label):
                return label
        return match[1]

    grade = _require_agreement([find_label(match) for match in _GRADE_MARKER.finditer(text)], expected_form)
    if grade not in labels:
        raise ReplyError("unparseable", f"the grade {grade!r} is none of those offered: {', '.join(labels)}")
    unquoted_text = _blank_quoted(text)
    _check_not_retracted(
        unquoted_text, _find_own_verdict(_GRADE_MARKER, text, unquoted_text, expected_form).end() + len(grade)
    )
    return grade


def _is_word_at(text: str, start: int, label: str) -> bool:
    """Return whether a label is at this position as a whole word: "Incomplete" must not be read as the label I."""
    end = start + len(label)
    next_character = text[end : end + 1]
    return text.startswith(label, start) and not (next_character.isalnum() or next_character in ("_", "-"))


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
    """Read the side of a reply that is one of the two names and nothing else; case counts. Raises ``ReplyError``."""
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
    expected_form = f"ordered_models with {first} and {second}, one ranked 1 and the other 2"
    rows = _load_object(text).get("ordered_models")
    ranks: list[tuple[object, object]] = []
    if isinstance(rows, list) and len(rows) == 2:
        ranks = [(row.get("model"), row.get("rank")) for row in rows if isinstance(row, dict)]
    # By type, because True is equal to 1 and is no rank.
    are_integers = all(type(rank) is int for _, rank in ranks)
    if not are_integers or [name for name, _ in ranks] not in ([first, second], [second, first]):
        raise _make_unparseable(expected_form, text)
    if ranks[0][1] == ranks[1][1]:
        raise ReplyError("contradiction", f"the ranking puts {first} and {second} in the same place")
    if {rank for _, rank in ranks} != {1, 2}:
        raise _make_unparseable(expected_form, text)
    return "first" if (first, 1) in ranks else "second"


def _read_json_score(text: str, options: ReadOptions) -> float:
    """Read ``score`` or ``rating`` of the only JSON object in a reply; if it has both, they have to agree.

    Raises ``ReplyError``.
    """
    members = _load_object(text)
    expected_form = "a JSON object with a number as score or rating"
    values = [members[key] for key in ("score", "rating") if key in members]
    numbers = [float(value) for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) != len(values):
        raise _make_unparseable(expected_form, text)
    return _check_on_scale(_require_agreement(numbers, expected_form), options)


def _read_json_winner(text: str, options: ReadOptions) -> str:
    """Read the side that ``winner``, ``verdict`` or ``choice`` of the only JSON object in a reply names.

    If it has several of them, they have to agree. Without labels the names are A and B. Raises ``ReplyError``.
    """
    first, second = _get_two_names(options, "json winner") if options.labels else ("A", "B")
    sides = {"tie": "tie", "first": "first", "second": "second", first: "first", second: "second"}
    expected_form = f"a JSON object with {first}, {second} or tie as winner, verdict or choice"
    members = _load_object(text)
    values = [members[key] for key in ("winner", "verdict", "choice") if key in members]
    named_sides = [sides[value] for value in values if isinstance(value, str) and value in sides]
    if len(named_sides) != len(values):
        raise _make_unparseable(expected_form, text)
    return _require_agreement(named_sides, expected_form)


def _load_object(text: str) -> dict[str, object]:
    """Decode the only JSON object in a text, bare or in a fence; there may be text without braces around it.

    Raises ``ReplyError``.
    """
    start = text.find("{")
    if start < 0:
        raise _make_unparseable("a JSON object", text)
    members, end = _decode_object(text, start)
    second_start = text.find("{", end)
    # Two objects are compared by their texts, because comparing deeply nested values can exhaust the stack.
    if second_start >= 0 and text[second_start : _decode_object(text, second_start)[1]] != text[start:end]:
        raise ReplyError("contradiction", "the reply holds two JSON objects that differ; ask for one")
    if second_start >= 0 or "}" in text[:start] or "}" in text[end:]:
        # Ignoring a further brace would mean to choose which part of the reply is the answer.
        raise ReplyError("unparseable", "there is a brace outside the JSON object; ask for one object alone")
    return members


def _decode_object(text: str, start: int) -> tuple[dict[str, object], int]:
    """Decode the JSON object at ``start``; return it and the position after its end. Raises ``ReplyError``."""
    if nests_too_deeply(text, start):
        raise ReplyError("unparseable", f"the JSON object nests deeper than {MOST_DEPTH} brackets")
    try:
        return _DECODER.raw_decode(text, start)
    except ValueError as error:
        raise ReplyError("unparseable", f"the JSON object cannot be read: {str(error)[:120]}") from None


def _make_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Make a JSON object of its members. Raises ``ValueError`` for a key that is there twice."""
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a key appears in it twice")
    return members


def _read_json_integer(digits: str) -> int:
    """Read an integer in JSON. Raises ``ValueError`` for one that is too long."""
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"a number in it has {len(digits)} characters")
    return int(digits)


def _read_json_float(digits: str) -> float:
    """Read a number with a fraction or exponent in JSON. Raises ``ValueError`` for one that is too large."""
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError("a number in it is too large")
    return number


def _refuse_json_constant(name: str) -> float:
    """Raise ``ValueError`` for NaN and infinity, which Python's decoder would accept."""
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_make_object,
    parse_int=_read_json_integer,
    parse_float=_read_json_float,
    parse_constant=_refuse_json_constant,
)


# ---------------------------------------------------------------- shared by all


def _require_agreement(verdicts: Sequence[_T], expected_form: str) -> _T:
    """Return the verdict that all markers give; raise ``ReplyError`` where there is none, or where they differ."""
    different = list(dict.fromkeys(verdicts))
    if not different:
        raise ReplyError("unparseable", f"the reply holds no verdict that can be read; expected {expected_form}")
    if len(different) > 1:
        listed = ", ".join(map(str, different[:5]))
        raise ReplyError("contradiction", f"the reply says {listed}; all it says must agree; expected {expected_form}")
    return different[0]


def _check_on_scale(score: float, options: ReadOptions) -> float:
    """Return a score that is on the scale, if there is one. Raises ``ReplyError`` for any other."""
    if options.scale is not None and not options.scale[0] <= score <= options.scale[1]:
        low, high = options.scale
        raise ReplyError("off_scale", f"the score {score:g} is outside the scale [{low:g}, {high:g}]")
    return score


def _make_unparseable(expected_form: str, text: str) -> ReplyError:
    return ReplyError(
        "unparseable", f"the reply, {len(text)} characters long, is not in the form asked for: {expected_form}"
    )


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
