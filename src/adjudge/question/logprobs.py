"""A model's token probabilities: how sure it was, and the score it would give on average.

Probabilities come from the provider. What a model says about its own confidence is never used.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from adjudge.errors import ReplyError
from adjudge.models.model import TokenLogprob
from adjudge.question.question import Answer, Question
from adjudge.question.reply_object import FLAGS, read_criteria
from adjudge.question.score import ENTRY_FORM, RUBRIC_FORM, check_flags, decide, grade_criterion, reaches, to_unit
from adjudge.result import CriterionResult
from adjudge.rubric.rubric import Criterion, Rubric

_JSON_PIECES = re.compile(r'"(?:[^"\\]|\\.)*+"?|-?\d[-+.eE0-9]*|[\[\]{}:,]|true|false|null', re.DOTALL)

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")

_EDGE_CHARACTERS = " \t\r\n,:}]"

_TOLERANCE = 1e-6

_ROUNDING_TOLERANCE = 0.02
"""By how much alternatives may be more than one together: servers compute them in few digits."""

_LONGEST_PATH = 3
"""Steps of the longest path that is looked up: ``criteria``, a criterion, ``score``."""


CHOICE = "preferred"
"""The one member whose text is a choice, and so has a probability."""


Path = tuple[str, ...]

Span = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedReply:
    """A reply with its object, and the tokens with their probabilities."""

    text: str
    members: Mapping[str, Any]
    """The members of the reply's object."""
    start: int
    """The place in the text where this object begins: what is before it is prose that may quote anything."""
    tokens: Sequence[TokenLogprob]
    text_offset: int = 0
    """The number of characters in the tokens before the text begins."""
    token_ends: Sequence[int] = ()
    """The position of each token's end in the joined tokens."""


def add_confidence(answer: Answer, question: Question, reply: ParsedReply, *, expect: bool) -> Answer:
    """Return the answer with its confidence and, with ``expect``, its probability-weighted scores (G-Eval, section 2).

    The confidence in a criterion's result is the share, among the scores that the model considered, of those on the
    same side of its threshold. The confidence of the answer is the lowest of these. Nothing is added where the tokens
    do not line up with the text, or are no probabilities: an unknown confidence is ``None``.
    """
    joined = "".join(token.token for token in reply.tokens)
    # Some servers remove white space and a fence from the text and not from the tokens. So the text has to be in the
    # joined tokens once.
    if joined.count(reply.text) != 1 or not all(_is_probability(token.logprob) for token in reply.tokens):
        return answer
    ends = list(accumulate(len(token.token) for token in reply.tokens))
    reply = replace(reply, text_offset=joined.index(reply.text), token_ends=ends)
    spans = dict(_find_spans(reply.text, reply.start))
    if question.choices:
        return replace(answer, confidence=_find_choice_confidence(question.choices, spans.get((CHOICE,)), reply))
    if question.rubric is None or not answer.criteria:
        return replace(answer, confidence=_find_flag_confidence(spans, reply))
    results: list[CriterionResult] = []
    confidences: list[float | None] = []
    for graded in answer.criteria:
        if graded.rule is not None:
            results.append(graded)
            continue
        criterion = next(candidate for candidate in question.rubric.criteria if candidate.name == graded.name)
        options = _list_score_options(criterion, question.rubric, spans, reply)
        result = _expect_score(graded, criterion, options, question.rubric) if expect and options else graded
        results.append(result)
        confidences.append(_find_confidence(result, criterion, options, question.rubric) if options else None)
    known_confidences = [share for share in confidences if share is not None]
    # Unknown if one of them is unknown, because that one might be the lowest.
    confidence = None if None in confidences else min(known_confidences, default=None)
    if not expect:
        return replace(answer, confidence=confidence)
    return _decide_by_expected_scores(
        replace(answer, criteria=tuple(results), confidence=confidence), question, reply.members
    )


def _decide_by_expected_scores(answer: Answer, question: Question, members: Mapping[str, Any]) -> Answer:
    """Decide the outcome by the expected scores.

    Raises ``ReplyError`` where a flag in the reply contradicts them.
    """
    outcome, score = decide(_require_rubric(question), answer.criteria)
    if question.value_type is not None:
        # The format's own verdict was read before, with its flags; it has to pass as well as the expected scores.
        outcome = outcome if _passes(answer.value, question) else "failed"
        return replace(answer, outcome=outcome, score=score, detail="")
    check_flags(members, outcome, RUBRIC_FORM)
    judged = [graded for graded in answer.criteria if graded.rule is None]
    entries = read_criteria(members, [graded.name for graded in judged])
    for graded in judged:
        check_flags(entries[graded.name], "passed" if graded.passed else "failed", ENTRY_FORM)
    return replace(answer, outcome=outcome, score=score)


def _require_rubric(question: Question) -> Rubric:
    """Return the question's rubric. Raises ``ReplyError`` without one."""
    if question.rubric is None:
        raise ReplyError("error", "the question has no rubric to score by")
    return question.rubric


def _is_probability(logprob: object) -> bool:
    """Return whether a number is the logarithm of a probability; a server may send NaN, infinity or more than that."""
    is_number = isinstance(logprob, int | float) and not isinstance(logprob, bool)
    return is_number and math.isfinite(logprob) and logprob <= _TOLERANCE


def _passes(value: Any, question: Question) -> bool:
    """Return whether an instance of the result format passes: by its own ``passed``, or by the caller's ``passes``."""
    return (value.passed if question.passes is None else question.passes(value)) is True


def _expect_score(
    graded: CriterionResult, criterion: Criterion, options: list[tuple[float, float]], rubric: Rubric
) -> CriterionResult:
    """Grade a criterion by the mean of its possible scores, weighted by their probabilities (``options``)."""
    total = math.fsum(weight for _, weight in options)
    mean = math.fsum(value * weight for value, weight in options) / total
    mean = min(max(mean, rubric.scale[0]), rubric.scale[1])  # rounding must not carry it off the scale
    return grade_criterion(criterion, to_unit(mean, rubric), graded.reasoning, evidence=graded.evidence)


def _find_confidence(
    graded: CriterionResult, criterion: Criterion, options: list[tuple[float, float]], rubric: Rubric
) -> float:
    """Return the share of probability of the scores that are on the same side of the threshold as the given score.

    ``options`` are the scores that the model considered, each with its probability.
    """
    threshold = rubric.passing_threshold if criterion.threshold is None else criterion.threshold
    passes = reaches(graded.score or 0.0, threshold)
    if len(options) == 1:  # as of a score in several tokens: its own probability, which is no share of anything
        return min(options[0][1], 1.0)
    total = math.fsum(weight for _, weight in options)
    agreeing = math.fsum(weight for value, weight in options if reaches(to_unit(value, rubric), threshold) is passes)
    return agreeing / total


def _list_score_options(
    criterion: Criterion, rubric: Rubric, spans: Mapping[Path, Span], reply: ParsedReply
) -> list[tuple[float, float]]:
    """Return the scores that the model considered for a criterion, each with its probability.

    Empty where they are not known. A score that is written in several tokens has no alternatives and is the only one.
    """
    span = spans.get(_make_score_path(reply.members, criterion.name))
    if span is None:
        return []
    tokens = _list_tokens(reply, span)
    if len(tokens) != 1:
        return [(float(reply.text[span[0] : span[1]]), math.exp(math.fsum(token.logprob for token in tokens)))]
    allowed = {level for level, _ in criterion.levels}
    low, high = rubric.scale
    options: dict[float, float] = {}
    for text, logprob in _list_alternatives(tokens[0]):
        stripped = text.strip(_EDGE_CHARACTERS)
        value = float(stripped) if _NUMBER.fullmatch(stripped) else math.nan
        if low <= value <= high and (not allowed or value in allowed):
            options[value] = options.get(value, 0.0) + math.exp(logprob)
    # Probabilities that are all too small for a float cannot be compared.
    return list(options.items()) if math.fsum(options.values()) > 0 else []


def _find_flag_confidence(spans: Mapping[Path, Span], reply: ParsedReply) -> float | None:
    """Return the probability of the given yes or no, as a share of that of both words; ``None`` if unknown."""
    names = [flag for flag in FLAGS if flag in reply.members]
    span = spans.get((names[0],)) if names else None
    tokens = _list_tokens(reply, span) if span else []
    if span is None or not tokens:
        return None
    # The first token decides between the two words; the tokens after it only complete the word.
    word_given = reply.text[span[0] : span[1]]
    first = tokens[0]
    weights = {"true": 0.0, "false": 0.0}
    for text, logprob in _list_alternatives(first):
        beginning = text.strip(_EDGE_CHARACTERS + '"')
        word = next((word for word in weights if beginning and word.startswith(beginning)), None)
        if word:
            weights[word] += math.exp(logprob)
    total = sum(weights.values())
    if not total:
        return None
    has_alternatives = len(first.top) >= 2
    return min(weights[word_given] / total if has_alternatives else weights[word_given], 1.0)


def _find_choice_confidence(choices: Sequence[str], span: Span | None, reply: ParsedReply) -> float | None:
    """Return the probability of the given preference, as a share of that of all on offer; ``None`` if unknown."""
    tokens = _list_tokens(reply, span) if span else []
    if span is None or not tokens:
        return None
    # The first token decides between the words, which begin differently; the tokens after it only complete the word.
    weights = dict.fromkeys(choices, 0.0)
    for text, logprob in _list_alternatives(tokens[0]):
        beginning = text.strip(_EDGE_CHARACTERS + '"')
        word = next((word for word in choices if beginning and word.startswith(beginning)), None)
        if word:
            weights[word] += math.exp(logprob)
    weight = weights.get(reply.text[span[0] : span[1]], 0.0)
    has_alternatives = len(tokens[0].top) >= 2
    share = weight / (math.fsum(weights.values()) or 1.0) if has_alternatives else weight
    return min(share, 1.0) if weight else None


def _list_tokens(reply: ParsedReply, span: Span) -> Sequence[TokenLogprob]:
    """Return the tokens that cover a span of the text, without empty ones."""
    first = bisect_right(reply.token_ends, span[0] + reply.text_offset)
    last = bisect_left(reply.token_ends, span[1] + reply.text_offset)
    return [token for token in reply.tokens[first : last + 1] if token.token]


def _list_alternatives(token: TokenLogprob) -> tuple[tuple[str, float], ...]:
    """Return the tokens that the model could choose from at one position, each with its log-probability.

    The sampled token is always among them, although a server may list only the likeliest. Returns nothing where one of
    them is no probability, or where all are more than one together: leaving out that token alone would make the others
    look too certain.
    """
    sampled = (token.token, token.logprob)
    if not all(_is_probability(logprob) for _, logprob in token.top):
        return ()
    top = token.top if any(text == token.token for text, _ in token.top) else (*token.top, sampled)
    return top if math.fsum(math.exp(logprob) for _, logprob in top) <= 1 + _ROUNDING_TOLERANCE else ()


def _make_score_path(members: Mapping[str, Any], name: str) -> Path:
    """Return the path to a criterion's score in a reply, whose criteria are a list or an object keyed by name."""
    criteria = members.get("criteria")
    if not isinstance(criteria, list):
        return ("criteria", name, "score")
    index = next(index for index, entry in enumerate(criteria) if entry.get("name") == name)
    return ("criteria", str(index), "score")


def _find_spans(text: str, start: int) -> Iterator[tuple[Path, Span]]:
    """Yield the path and the span of every scalar in the object at ``start``, and of the text of its member ``CHOICE``.

    The object was decoded before, so it is valid. This takes linear time without recursion, and ends with the object:
    the text after it may quote anything.
    """
    path: list[str] = []
    open_brackets: list[str] = []
    member_name: str | None = None
    previous_piece = ""
    for match in _JSON_PIECES.finditer(text, start):
        piece = match[0]
        if piece in "{[":
            open_brackets.append(piece)
            path.append("0" if piece == "[" else "")
        elif piece in "}]":
            open_brackets.pop()
            path.pop()
            if not open_brackets:
                return
        elif piece == ",":
            if open_brackets[-1] == "[":
                path[-1] = str(int(path[-1]) + 1)
        elif piece == ":":
            path[-1] = member_name or ""
        else:
            member_name = piece[1:-1] if piece.startswith('"') else None
            if member_name is None and len(path) <= _LONGEST_PATH:
                yield tuple(path), match.span()
            elif path == [CHOICE] and previous_piece == ":":  # not after a colon, it is the name of the next member
                yield (CHOICE,), (match.start() + 1, match.end() - 1)  # without the quotation marks
        previous_piece = piece
