"""What a model's token probabilities say: how sure it was, and the score it would give on average.

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
    found: Mapping[str, Any]
    start: int
    """Where ``found`` begins in the text: what is before it is prose that may quote anything."""
    tokens: Sequence[TokenLogprob]
    before: int = 0
    """How many characters the tokens hold before the text."""
    ends: Sequence[int] = ()
    """Where each token ends among their characters."""


def add_confidence(answer: Answer, question: Question, said: ReadReply, *, expect: bool) -> Answer:
    """The answer with its confidence and, with ``expect``, its probability-weighted scores (G-Eval, section 2).

    The confidence of a criterion is the probability, among the scores the model considered for it, of those on the
    same side of its mark; that of the result is its least sure criterion's. Where tokens do not line up with the
    text, or are no probabilities, nothing is added: an unknown confidence is ``None``.
    """
    joined = "".join(token.token for token in said.tokens)
    # Some servers take white space and a fence off the text and leave them in the tokens; then it stands in them once.
    if joined.count(said.text) != 1 or not all(_is_probability(token.logprob) for token in said.tokens):
        return answer
    ends = list(accumulate(len(token.token) for token in said.tokens))
    said = replace(said, before=joined.index(said.text), ends=ends)
    spans = dict(_find_spans(said.text, said.start))
    if question.choices:
        return replace(answer, confidence=_weigh_choice(question.choices, spans.get((CHOICE,)), said))
    if question.rubric is None or not answer.criteria:
        return replace(answer, confidence=_weigh_flag(spans, said))
    graded: list[CriterionResult] = []
    sure: list[float | None] = []
    for item in answer.criteria:
        if item.rule is not None:
            graded.append(item)
            continue
        criterion = next(each for each in question.rubric.criteria if each.name == item.name)
        options = _options_for(criterion, question.rubric, spans, said)
        graded.append(_expect(item, criterion, options, question.rubric) if expect and options else item)
        sure.append(_same_side(graded[-1], criterion, options, question.rubric) if options else None)
    # One criterion whose confidence is unknown may be the least sure.
    confidence = None if None in sure else min((item for item in sure if item is not None), default=None)
    if not expect:
        return replace(answer, confidence=confidence)
    return _redecide(replace(answer, criteria=tuple(graded), confidence=confidence), question, said.found)


def _redecide(answer: Answer, question: Question, found: Mapping[str, Any]) -> Answer:
    """The outcome of the expected scores; what else the reply said still has to agree with it."""
    outcome, score = decide(_rubric_of(question), answer.criteria)
    if question.value_type is not None:
        # The format's verdict has been read already, flags included; it has to pass beside the expected scores.
        outcome = outcome if _passes(answer.value, question) else "failed"
        return replace(answer, outcome=outcome, score=score, detail="")
    check_flags(found, outcome, RUBRIC_FORM)
    asked = [item for item in answer.criteria if item.rule is None]
    entries = read_criteria(found, [item.name for item in asked])
    for item in asked:
        check_flags(entries[item.name], "passed" if item.passed else "failed", ENTRY_FORM)
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


def _expect(
    item: CriterionResult, criterion: Criterion, options: list[tuple[float, float]], rubric: Rubric
) -> CriterionResult:
    total = math.fsum(weight for _, weight in options)
    mean = math.fsum(value * weight for value, weight in options) / total
    mean = min(max(mean, rubric.scale[0]), rubric.scale[1])  # rounding must not carry it off the scale
    return grade_criterion(criterion, to_unit(mean, rubric), item.reasoning, evidence=item.evidence)


def _same_side(
    item: CriterionResult, criterion: Criterion, options: list[tuple[float, float]], rubric: Rubric
) -> float:
    mark = rubric.passing_threshold if criterion.threshold is None else criterion.threshold
    side = reaches(item.score or 0.0, mark)
    total = math.fsum(weight for _, weight in options)
    agreeing = math.fsum(weight for value, weight in options if reaches(to_unit(value, rubric), mark) is side)
    # A score written in several tokens has one option, whose weight is its own probability and not a share.
    return agreeing / total if len(options) > 1 else min(options[0][1], 1.0)


def _options_for(
    criterion: Criterion, rubric: Rubric, spans: Mapping[Path, Span], said: ReadReply
) -> list[tuple[float, float]]:
    """(score on the rubric's scale, probability) pairs the model considered for one criterion."""
    span = spans.get(_path_of(said.found, criterion.name))
    if span is None:
        return []
    over = _tokens_over(said, span)
    if len(over) != 1:
        return [(float(said.text[span[0] : span[1]]), math.exp(math.fsum(token.logprob for token in over)))]
    allowed = {level for level, _ in criterion.levels}
    low, high = rubric.scale
    options: dict[float, float] = {}
    for text, logprob in _alternatives(over[0]):
        bare = text.strip(_EDGES)
        value = float(bare) if _NUMBER.fullmatch(bare) else math.nan
        if low <= value <= high and (not allowed or value in allowed):
            options[value] = options.get(value, 0.0) + math.exp(logprob)
    # Where all of them are too small for a number, none is likelier than another.
    return list(options.items()) if math.fsum(options.values()) > 0 else []


def _weigh_flag(spans: Mapping[Path, Span], said: ReadReply) -> float | None:
    """The probability of the yes or no that was given, against the other."""
    name = next((flag for flag in FLAGS if flag in said.found), None)
    span = spans.get((name,)) if name else None
    over = _tokens_over(said, span) if span else []
    if span is None or not over:
        return None
    # The first token decides between the two words; what follows only completes it.
    chosen = said.text[span[0] : span[1]]
    first = over[0]
    weights = {"true": 0.0, "false": 0.0}
    for text, logprob in _alternatives(first):
        bare = text.strip(_EDGES + '"')
        word = next((word for word in weights if bare and word.startswith(bare)), None)
        if word:
            weights[word] += math.exp(logprob)
    total = sum(weights.values())
    alone = len(first.top) < 2
    return None if not total else min(weights[chosen] if alone else weights[chosen] / total, 1.0)


def _weigh_choice(choices: Sequence[str], span: Span | None, said: ReadReply) -> float | None:
    """The probability of the preference that was given, against the others on offer."""
    over = _tokens_over(said, span) if span else []
    if span is None or not over:
        return None
    # The first token decides between the words, which begin differently; what follows only completes it.
    weights = dict.fromkeys(choices, 0.0)
    for text, logprob in _alternatives(over[0]):
        bare = text.strip(_EDGES + '"')
        word = next((word for word in choices if bare and word.startswith(bare)), None)
        if word:
            weights[word] += math.exp(logprob)
    chosen = weights.get(said.text[span[0] : span[1]], 0.0)
    share = chosen if len(over[0].top) < 2 else chosen / (math.fsum(weights.values()) or 1.0)
    return min(share, 1.0) if chosen else None


def _tokens_over(said: ReadReply, span: Span) -> Sequence[TokenLogprob]:
    """The tokens that cover a span of the text, those without characters left out."""
    first = bisect_right(said.ends, span[0] + said.before)
    last = bisect_left(said.ends, span[1] + said.before)
    return [token for token in said.tokens[first : last + 1] if token.token]


def _alternatives(token: TokenLogprob) -> tuple[tuple[str, float], ...]:
    """What stood to choose, the chosen token always among it: a sampled one need not be among the likeliest.

    Nothing where one of them is no probability, or all are more than one together: left out, what it took from the
    others would be given back to them, and the rest would look certain.
    """
    chosen = (token.token, token.logprob)
    if not all(_is_probability(logprob) for _, logprob in token.top):
        return ()
    top = token.top if any(text == token.token for text, _ in token.top) else (*token.top, chosen)
    return top if math.fsum(math.exp(logprob) for _, logprob in top) <= 1 + _ROUNDED else ()


def _path_of(found: Mapping[str, Any], name: str) -> Path:
    listed = found.get("criteria")
    if not isinstance(listed, list):
        return ("criteria", name, "score")
    return ("criteria", next(str(at) for at, entry in enumerate(listed) if entry.get("name") == name), "score")


def _find_spans(text: str, start: int) -> Iterator[tuple[Path, Span]]:
    """(path, span) of every scalar in the object at ``start``, which was read already, and of its choice.

    Linear, no recursion.

    It ends where the object ends: what follows is prose that may quote anything.
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
