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

_PIECES = re.compile(r'"(?:[^"\\]|\\.)*+"?|-?\d[-+.eE0-9]*|[\[\]{}:,]|true|false|null', re.DOTALL)

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")

_EDGES = " \t\r\n,:}]"

_SLACK = 1e-6

_ROUNDED = 0.02
"""By how much alternatives may be more than one together: servers compute them in few digits."""

_DEEPEST = 3
"""Steps of the longest path that is looked up: ``criteria``, a criterion, ``score``."""


CHOICE = "preferred"
"""The one member whose text is a choice, and so has a probability."""


Path = tuple[str, ...]

Span = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadReply:
    """A reply that was read, and the tokens it came in."""

    text: str
    members: Mapping[str, Any]
    """The members of the reply's object."""
    start: int
    """The place in the text where this object begins: what is before it is prose that may quote anything."""
    tokens: Sequence[TokenLogprob]
    before: int = 0
    """The number of characters that the tokens hold before the text."""
    ends: Sequence[int] = ()
    """The end of each token among their characters."""


def add_confidence(answer: Answer, question: Question, reply: ReadReply, *, expect: bool) -> Answer:
    """Return the answer with its confidence and, with ``expect``, its probability-weighted scores (G-Eval, section 2).

    The confidence of a criterion is the probability, among the scores the model considered for it, of those on the
    same side of its mark; that of the result is its least sure criterion's. Where tokens do not line up with the
    text, or are no probabilities, nothing is added: an unknown confidence is ``None``.
    """
    joined = "".join(token.token for token in reply.tokens)
    # Some servers take white space and a fence off the text and leave them in the tokens; then it stands in them once.
    if joined.count(reply.text) != 1 or not all(_is_probability(token.logprob) for token in reply.tokens):
        return answer
    ends = list(accumulate(len(token.token) for token in reply.tokens))
    reply = replace(reply, before=joined.index(reply.text), ends=ends)
    spans = dict(_find_spans(reply.text, reply.start))
    if question.choices:
        return replace(answer, confidence=_weigh_choice(question.choices, spans.get((CHOICE,)), reply))
    if question.rubric is None or not answer.criteria:
        return replace(answer, confidence=_weigh_flag(spans, reply))
    results: list[CriterionResult] = []
    confidences: list[float | None] = []
    for graded in answer.criteria:
        if graded.rule is not None:
            results.append(graded)
            continue
        criterion = next(candidate for candidate in question.rubric.criteria if candidate.name == graded.name)
        options = _list_score_options(criterion, question.rubric, spans, reply)
        results.append(_expect_score(graded, criterion, options, question.rubric) if expect and options else graded)
        confidences.append(_share_agreeing(results[-1], criterion, options, question.rubric) if options else None)
    # One criterion whose confidence is unknown may be the least sure.
    confidence = (
        None if None in confidences else min([share for share in confidences if share is not None], default=None)
    )
    if not expect:
        return replace(answer, confidence=confidence)
    return _decide_again(replace(answer, criteria=tuple(results), confidence=confidence), question, reply.members)


def _decide_again(answer: Answer, question: Question, members: Mapping[str, Any]) -> Answer:
    """Decide by the expected scores; what else the reply says still has to agree with them."""
    outcome, score = decide(_rubric_of(question), answer.criteria)
    if question.value_type is not None:
        # The format's verdict has been read already, flags included; it has to pass beside the expected scores.
        outcome = outcome if _passes(answer.value, question) else "failed"
        return replace(answer, outcome=outcome, score=score, detail="")
    check_flags(members, outcome, RUBRIC_FORM)
    judged = [graded for graded in answer.criteria if graded.rule is None]
    entries = read_criteria(members, [graded.name for graded in judged])
    for graded in judged:
        check_flags(entries[graded.name], "passed" if graded.passed else "failed", ENTRY_FORM)
    return replace(answer, outcome=outcome, score=score)


def _rubric_of(question: Question) -> Rubric:
    if question.rubric is None:
        raise ReplyError("error", "the question has no rubric to score by")
    return question.rubric


def _is_probability(logprob: object) -> bool:
    # A server that sends NaN, infinity or more than 1 must not get to move a score with it.
    number = isinstance(logprob, int | float) and not isinstance(logprob, bool)
    return number and math.isfinite(logprob) and logprob <= _SLACK


def _passes(value: Any, question: Question) -> bool:
    return (value.passed if question.passes is None else question.passes(value)) is True


def _expect_score(
    graded: CriterionResult, criterion: Criterion, options: list[tuple[float, float]], rubric: Rubric
) -> CriterionResult:
    """Grade a criterion by the mean of its possible scores, weighted by their probabilities."""
    total = math.fsum(weight for _, weight in options)
    mean = math.fsum(value * weight for value, weight in options) / total
    mean = min(max(mean, rubric.scale[0]), rubric.scale[1])  # rounding must not carry it off the scale
    return grade_criterion(criterion, to_unit(mean, rubric), graded.reasoning, evidence=graded.evidence)


def _share_agreeing(
    graded: CriterionResult, criterion: Criterion, options: list[tuple[float, float]], rubric: Rubric
) -> float:
    """Return the probability of the scores on the same side of the mark as the score that was given."""
    mark = rubric.passing_threshold if criterion.threshold is None else criterion.threshold
    side = reaches(graded.score or 0.0, mark)
    total = math.fsum(weight for _, weight in options)
    agreeing = math.fsum(weight for value, weight in options if reaches(to_unit(value, rubric), mark) is side)
    # A score written in several tokens has one option, whose weight is its own probability and not a share.
    return agreeing / total if len(options) > 1 else min(options[0][1], 1.0)


def _list_score_options(
    criterion: Criterion, rubric: Rubric, spans: Mapping[Path, Span], reply: ReadReply
) -> list[tuple[float, float]]:
    """Return the scores that the model considered for one criterion, with their probabilities."""
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
        bare = text.strip(_EDGES)
        value = float(bare) if _NUMBER.fullmatch(bare) else math.nan
        if low <= value <= high and (not allowed or value in allowed):
            options[value] = options.get(value, 0.0) + math.exp(logprob)
    # Where all of them are too small for a number, none is likelier than another.
    return list(options.items()) if math.fsum(options.values()) > 0 else []


def _weigh_flag(spans: Mapping[Path, Span], reply: ReadReply) -> float | None:
    """Return the probability of the yes or no that was given, against the other."""
    name = next((flag for flag in FLAGS if flag in reply.members), None)
    span = spans.get((name,)) if name else None
    tokens = _list_tokens(reply, span) if span else []
    if span is None or not tokens:
        return None
    # The first token decides between the two words; what follows only completes it.
    word_given = reply.text[span[0] : span[1]]
    first = tokens[0]
    weights = {"true": 0.0, "false": 0.0}
    for text, logprob in _list_alternatives(first):
        bare = text.strip(_EDGES + '"')
        word = next((word for word in weights if bare and word.startswith(bare)), None)
        if word:
            weights[word] += math.exp(logprob)
    total = sum(weights.values())
    is_alone = len(first.top) < 2
    return None if not total else min(weights[word_given] if is_alone else weights[word_given] / total, 1.0)


def _weigh_choice(choices: Sequence[str], span: Span | None, reply: ReadReply) -> float | None:
    """Return the probability of the preference that was given, against the others on offer."""
    tokens = _list_tokens(reply, span) if span else []
    if span is None or not tokens:
        return None
    # The first token decides between the words, which begin differently; what follows only completes it.
    weights = dict.fromkeys(choices, 0.0)
    for text, logprob in _list_alternatives(tokens[0]):
        bare = text.strip(_EDGES + '"')
        word = next((word for word in choices if bare and word.startswith(bare)), None)
        if word:
            weights[word] += math.exp(logprob)
    weight = weights.get(reply.text[span[0] : span[1]], 0.0)
    share = weight if len(tokens[0].top) < 2 else weight / (math.fsum(weights.values()) or 1.0)
    return min(share, 1.0) if weight else None


def _list_tokens(reply: ReadReply, span: Span) -> Sequence[TokenLogprob]:
    """Return the tokens that cover a span of the text, without those that have no characters."""
    first = bisect_right(reply.ends, span[0] + reply.before)
    last = bisect_left(reply.ends, span[1] + reply.before)
    return [token for token in reply.tokens[first : last + 1] if token.token]


def _list_alternatives(token: TokenLogprob) -> tuple[tuple[str, float], ...]:
    """Return the tokens to choose from, the sampled one always among them: it need not be among the likeliest.

    Nothing where one of them is no probability, or all are more than one together: left out, what it took from the
    others would be given back to them, and the rest would look certain.
    """
    sampled = (token.token, token.logprob)
    if not all(_is_probability(logprob) for _, logprob in token.top):
        return ()
    top = token.top if any(text == token.token for text, _ in token.top) else (*token.top, sampled)
    return top if math.fsum(math.exp(logprob) for _, logprob in top) <= 1 + _ROUNDED else ()


def _make_score_path(members: Mapping[str, Any], name: str) -> Path:
    criteria = members.get("criteria")
    if not isinstance(criteria, list):
        return ("criteria", name, "score")
    return ("criteria", next(str(place) for place, entry in enumerate(criteria) if entry.get("name") == name), "score")


def _find_spans(text: str, start: int) -> Iterator[tuple[Path, Span]]:
    """Yield path and span of every scalar in the object at ``start``, and of the text of its member ``CHOICE``.

    The object was read already. This is linear and without recursion, and ends where the object ends: what follows is
    prose that may quote anything.
    """
    path: list[str] = []
    inside: list[str] = []
    pending: str | None = None
    before = ""
    for match in _PIECES.finditer(text, start):
        piece = match[0]
        if piece in "{[":
            inside.append(piece)
            path.append("0" if piece == "[" else "")
        elif piece in "}]":
            inside.pop()
            path.pop()
            if not inside:
                return
        elif piece == ",":
            if inside[-1] == "[":
                path[-1] = str(int(path[-1]) + 1)
        elif piece == ":":
            path[-1] = pending or ""
        else:
            pending = piece[1:-1] if piece.startswith('"') else None
            if pending is None and len(path) <= _DEEPEST:
                yield tuple(path), match.span()
            elif path == [CHOICE] and before == ":":  # after a colon, or it is the name of the next member
                yield (CHOICE,), (match.start() + 1, match.end() - 1)
        before = piece
