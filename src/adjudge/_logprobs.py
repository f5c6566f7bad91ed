"""What a model's token probabilities say: how sure it was, and the score it would give on average.

Probabilities come from the provider. What a model says about its own confidence is never used.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from adjudge.errors import ReplyError
from adjudge.models._types import TokenLogprob
from adjudge.question import Answer, Question
from adjudge.reply import FLAGS, read_flag
from adjudge.result import CriterionResult
from adjudge.rubric import Criterion, Rubric
from adjudge.score import decide, grade_criterion, reaches, to_unit

_PIECES = re.compile(r'"(?:[^"\\]|\\.)*+"?|-?\d[-+.eE0-9]*|[\[\]{}:,]|true|false|null', re.DOTALL)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_EDGES = " \t\r\n,:}]"

Path = tuple[str, ...]
Span = tuple[int, int]


def add_confidence(
    answer: Answer,
    question: Question,
    text: str,
    tokens: Sequence[TokenLogprob],
    found: Mapping[str, Any],
    *,
    start: int,
    expect: bool,
) -> Answer:
    """The answer with its confidence and, with ``expect``, its probability-weighted scores (G-Eval, section 2).

    The confidence of a criterion is the probability, among the scores the model considered for it, of those on the
    same side of its mark; that of the result is its least sure criterion's. Where tokens do not line up with the
    text, nothing is added: an unknown confidence is ``None``. ``start`` is where ``found`` begins in the text: what
    stands before it is prose that may quote anything.
    """
    if "".join(token.token for token in tokens) != text:
        return answer
    spans = dict(_find_spans(text, start))
    if question.rubric is None or not answer.criteria:
        return replace(answer, confidence=_weigh_flag(spans, text, tokens, found))
    graded: list[CriterionResult] = []
    sure: list[float | None] = []
    for item in answer.criteria:
        if item.rule is not None:
            graded.append(item)
            continue
        options = _options_for(item, question, spans, found, text, tokens)
        criterion = next(each for each in question.rubric.criteria if each.name == item.name)
        graded.append(_expect(item, criterion, options, question.rubric) if expect and options else item)
        sure.append(_same_side(graded[-1], criterion, options, question.rubric) if options else None)
    # One criterion whose confidence is unknown may be the least sure.
    confidence = None if None in sure else min((item for item in sure if item is not None), default=None)
    if not expect:
        return replace(answer, confidence=confidence)
    outcome, score = decide(question.rubric, tuple(graded))
    if question.value_type is not None:
        # The format's verdict has been read already, flags included; it has to pass beside the expected scores.
        outcome = outcome if _passes(answer.value, question) else "failed"
        return replace(answer, outcome=outcome, score=score, criteria=tuple(graded), confidence=confidence, detail="")
    if outcome == "passed" and any(flag in found for flag in FLAGS) and read_flag(found, need=False) is False:
        raise ReplyError("contradiction", f"the expected score {score:.2f} passes and a flag in the reply says no")
    return replace(answer, outcome=outcome, score=score, criteria=tuple(graded), confidence=confidence)


def _passes(value: Any, question: Question) -> bool:
    return (value.passed if question.passes is None else question.passes(value)) is True


def _expect(
    item: CriterionResult, criterion: Criterion, options: list[tuple[float, float]], rubric: Rubric
) -> CriterionResult:
    total = math.fsum(weight for _, weight in options)
    mean = math.fsum(value * weight for value, weight in options) / total
    return grade_criterion(criterion, to_unit(mean, rubric), reasoning=item.reasoning, evidence=item.evidence)


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
    item: CriterionResult,
    question: Question,
    spans: Mapping[Path, Span],
    found: Mapping[str, Any],
    text: str,
    tokens: Sequence[TokenLogprob],
) -> list[tuple[float, float]]:
    """(score on the rubric's scale, probability) pairs the model considered for one criterion."""
    span = spans.get(_path_of(found, item.name))
    rubric = question.rubric
    if span is None or rubric is None:
        return []
    over = _tokens_over(tokens, span)
    if len(over) != 1:
        return [(float(text[span[0] : span[1]]), math.exp(math.fsum(token.logprob for token in over)))]
    criterion = next(each for each in rubric.criteria if each.name == item.name)
    allowed = {level for level, _ in criterion.levels}
    options: dict[float, float] = {}
    for said, logprob in _alternatives(over[0]):
        bare = said.strip(_EDGES)
        if _NUMBER.fullmatch(bare) and rubric.scale[0] <= float(bare) <= rubric.scale[1]:
            if not allowed or float(bare) in allowed:
                options[float(bare)] = options.get(float(bare), 0.0) + math.exp(logprob)
    return list(options.items())


def _weigh_flag(
    spans: Mapping[Path, Span], text: str, tokens: Sequence[TokenLogprob], found: Mapping[str, Any]
) -> float | None:
    """The probability of the yes or no that was given, against the other."""
    name = next((flag for flag in FLAGS if flag in found), None)
    span = spans.get((name,)) if name else None
    over = _tokens_over(tokens, span) if span else []
    if span is None or not over:
        return None
    # The first token decides between the two words; what follows only completes it.
    chosen = text[span[0] : span[1]]
    first = over[0]
    weights = {"true": 0.0, "false": 0.0}
    for said, logprob in _alternatives(first):
        bare = said.strip(_EDGES + '"')
        word = next((word for word in weights if bare and word.startswith(bare)), None)
        if word:
            weights[word] += math.exp(logprob)
    total = sum(weights.values())
    alone = len(first.top) < 2
    return None if not total else min(weights[chosen] if alone else weights[chosen] / total, 1.0)


def _tokens_over(tokens: Sequence[TokenLogprob], span: Span) -> list[TokenLogprob]:
    over, at = [], 0
    for token in tokens:
        end = at + len(token.token)
        if end > span[0] and at < span[1] and token.token:
            over.append(token)
        at = end
    return over


def _alternatives(token: TokenLogprob) -> tuple[tuple[str, float], ...]:
    """What stood to choose, the chosen token always among it: a sampled one need not be among the likeliest."""
    chosen = (token.token, token.logprob)
    return token.top if any(said == token.token for said, _ in token.top) else (*token.top, chosen)


def _path_of(found: Mapping[str, Any], name: str) -> Path:
    listed = found.get("criteria")
    if not isinstance(listed, list):
        return ("criteria", name, "score")
    return ("criteria", next(str(at) for at, entry in enumerate(listed) if entry.get("name") == name), "score")


def _find_spans(text: str, start: int) -> Iterator[tuple[Path, Span]]:
    """(path, span) of every scalar in the object at ``start``, which was read already; linear, no recursion."""
    path: list[str] = []
    inside: list[str] = []
    pending: str | None = None
    for match in _PIECES.finditer(text, start):
        piece = match[0]
        if piece in "{[":
            inside.append(piece)
            path.append("0" if piece == "[" else "")
        elif piece in "}]":
            inside = inside[:-1]
            path = path[:-1]
        elif piece == ",":
            if inside and inside[-1] == "[":
                path[-1] = str(int(path[-1] or "0") + 1)
        elif piece == ":":
            if path and pending is not None:
                path[-1] = pending
        else:
            pending = piece[1:-1] if piece.startswith('"') else None
            if pending is None:
                yield tuple(path), match.span()
