"""What a run that is there says of the next: tokens by the size of a prompt, tokens of replies, who was asked."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from adjudge.errors import UsageError
from adjudge.formats.typed import read_typed_json
from adjudge.judges.layers import rewire
from adjudge.models.model import Model, Reply, Request
from adjudge.models.token_count import CHARACTER_UNCERTAINTY, CharacterCounter, count_request
from adjudge.runs.batch.session import make_patient
from adjudge.runs.estimate.metered_model import MeteredModel
from adjudge.runs.folder import Run
from adjudge.runs.judging import rebuild_judge, settle_question
from adjudge.runs.successor import read_question

SeatKey = tuple[str, int]
"""A model's name, and how many seats before this one have the same model."""

LEAST_UNCERTAINTY = 0.02

_MOST_CASES = 2_000
"""Cases of a run that are looked at: more would not make its averages much better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatUsage:
    """What the replies to one seat used."""

    replies: int
    calls: float
    """Calls for each judgement, with those that ask again; of a recording or cache for each that asks this seat."""
    calls_error: float
    """Two standard errors of ``calls``: which judgements reach a seat is chance, and a record has few of them."""
    fixed: float
    """Input tokens that do not depend on the prompt's size."""
    slope: float
    """Input tokens for each token that ``CharacterCounter`` counts in the prompt that is asked first."""
    uncertainty: float
    """How far the input tokens of many prompts may be off, as a share."""
    output_tokens: float
    """Of a reply, on average."""
    output_uncertainty: float
    cached: float
    """The share of the input tokens that came from the provider's prompt cache."""
    written: float
    """The share that was written to it."""

    def predict(self, size: float) -> float:
        """The input tokens of a prompt of a size."""
        return max(self.fixed + self.slope * size, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedUsage:
    """What kept replies used, by seat."""

    source: str
    """Where they were found."""
    judgements: int
    """Those of a run; 0 for a recording or cache, which does not say who was asked how often."""
    seats: Mapping[SeatKey, SeatUsage]
    counts_form: bool = True
    """Whether the form of the reply is part of the sizes of prompts."""

    def find_model(self, name: str) -> SeatUsage | None:
        """What any seat of a model used."""
        return next((usage for (model, _), usage in self.seats.items() if model == name), None)


class CountedTokens(msgspec.Struct):
    """What a provider counted of one call."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    written_tokens: int = 0


class _Said(msgspec.Struct):
    usage: CountedTokens | None = None


class _Row(msgspec.Struct):
    """A kept reply, as far as it is needed here."""

    reply: _Said
    model: str = ""
    seat: int = 0
    case: str | None = None
    order: str | None = None
    sample: int = 0
    attempt: int = 1


Judgement = tuple[str | None, str | None, int]
"""Case, order and sample."""


@dataclass(slots=True)
class SeenReplies:
    """The replies of one seat, while they are read."""

    used: list[CountedTokens] = field(default_factory=list)
    points: list[tuple[float, float]] = field(default_factory=list)
    """Sizes of prompts that were asked first, with the input tokens that were counted, also of what asked again."""

    def add(self, usage: CountedTokens | None, size: float | None) -> None:
        """Take note of what a reply used."""
        if usage is None or usage.input_tokens <= 0:
            return
        self.used.append(usage)
        if size is not None:
            # What asks again has a longer prompt; through all points, the line is right for the sum of all calls.
            self.points.append((size, usage.input_tokens))


@dataclass(frozen=True, slots=True)
class _NamedModel:
    """A model of a run, of which only what the manifest says is known; it cannot be asked."""

    name: str
    structured: bool

    async def complete(self, _request: Request, /) -> Reply:
        raise UsageError(f"{self.name!r} is a model of a recorded run, and cannot be asked")


async def read_usage(before: Run) -> RecordedUsage:
    """What the replies of a run used; raises ``UsageError`` for a run without any that say so."""
    cases = await _measure(before)
    seen: dict[SeatKey, SeenReplies] = defaultdict(SeenReplies)
    calls: dict[SeatKey, Counter[Judgement]] = defaultdict(Counter)
    judged: set[Judgement] = set()
    for body in before.store.replies():
        try:
            row = read_typed_json(body, _Row)
        except msgspec.DecodeError:
            continue
        if row.case not in cases:
            continue
        judgement = (row.case, row.order, row.sample)
        judged.add(judgement)
        key = (row.model, row.seat)
        calls[key][judgement] += 1
        seen[key].add(row.reply.usage, cases[row.case].get((*key, row.order)))
    seats = {
        key: sum_up(found, *_find_calls(calls[key], len(judged)))
        for key, found in seen.items()
        if found.used and found.points
    }
    if not seats:
        raise UsageError(
            f"{before.folder} has no replies that say how many tokens they used, so nothing can be estimated from it; "
            "leave it out, or name another run"
        )
    return RecordedUsage(source=str(before.folder), judgements=len(judged), seats=seats)


Sizes = Mapping[tuple[str, int, str | None], float]
"""The size of a prompt by model, seat and order."""


async def _measure(before: Run) -> dict[str | None, Sizes]:
    """The sizes of the prompts of a run, by case: each is made once more, and sent to nobody."""
    counter, sizes = CharacterCounter(), dict[tuple[str, int, str | None], float]()

    def meter(model: Model, seat: int, request: Request) -> None:
        sizes[model.name, seat, request.order] = count_request(counter, request)[1]

    def make(described: Mapping[str, Any], _number: int) -> Model:
        return _NamedModel(str(described["name"]), bool(described.get("structured")))

    rubric, how, on_conflict = read_question(before, leave_out=("rules",))
    judge = make_patient(rebuild_judge(before.manifest["judge"], make))
    judge = rewire(judge, lambda model, number: MeteredModel(model, meter, seat=number))
    asked = await settle_question(judge, rubric, how, on_conflict, cases_bring=lambda: True)
    found: dict[str | None, Sizes] = {}
    for item in before.store.items(where="r.sample = 0"):
        sizes = {}
        await asked.judge_case(item.case, 0)
        found[item.case.id] = sizes
        if len(found) >= _MOST_CASES:
            break
    return found


def _find_calls(calls: Counter[Judgement], judgements: int) -> tuple[float, float]:
    """Calls for each judgement, and two standard errors of that."""
    mean = calls.total() / judgements
    squares = sum(count * count for count in calls.values()) / judgements
    return mean, 2 * math.sqrt(max(squares - mean * mean, 0.0) / judgements)


def sum_up(seen: SeenReplies, calls: float, calls_error: float) -> SeatUsage:
    """What the replies of a seat used; there has to be one that says so."""
    number = len(seen.used)
    total = sum(item.input_tokens for item in seen.used)
    outputs = [float(item.output_tokens) for item in seen.used]
    mean = sum(outputs) / number
    # Without sizes, the average is all that is known, and nothing says that other prompts are as long.
    fixed, slope, spread = fit_line(seen.points) if seen.points else (total / number, 0.0, 0.0)
    return SeatUsage(
        replies=number,
        calls=calls,
        calls_error=calls_error,
        fixed=fixed,
        slope=slope,
        uncertainty=_widen(spread, len(seen.points)) if seen.points else CHARACTER_UNCERTAINTY,
        output_tokens=mean,
        output_uncertainty=_widen(_spread(outputs, mean), number),
        cached=min(sum(item.cached_tokens for item in seen.used) / total, 1.0),
        written=min(sum(item.written_tokens for item in seen.used) / total, 1.0),
    )


def fit_line(points: list[tuple[float, float]]) -> tuple[float, float, float]:
    """Intercept and slope of the least squares line, and the standard deviation around it as a share of the mean.

    Where the sizes hardly differ, no line can be told from them: then the slope is 1 and the intercept what is more,
    or the line goes through the origin.
    """
    number = len(points)
    mean_size, mean_tokens = sum(size for size, _ in points) / number, sum(tokens for _, tokens in points) / number
    variance = sum((size - mean_size) ** 2 for size, _ in points) / number
    slope = 0.0
    if variance > (0.02 * mean_size) ** 2 and number > 2:
        slope = sum((size - mean_size) * (tokens - mean_tokens) for size, tokens in points) / number / variance
    if slope <= 0:
        slope = 1.0 if mean_tokens >= mean_size else mean_tokens / mean_size
    fixed = mean_tokens - slope * mean_size
    residuals = sum((tokens - fixed - slope * size) ** 2 for size, tokens in points) / number
    return fixed, slope, math.sqrt(residuals) / mean_tokens


def _spread(values: list[float], mean: float) -> float:
    return math.sqrt(sum((value - mean) ** 2 for value in values) / len(values)) / mean if mean > 0 else 0.0


def _widen(spread: float, number: int) -> float:
    """Two standard errors of a mean, as a share of it; at least what a provider may change unseen."""
    return max(2 * spread / math.sqrt(number), LEAST_UNCERTAINTY)
