"""The usage of an earlier run, for the estimate of the next: tokens by size of the prompt, and who was asked."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from adjudge.errors import UsageError
from adjudge.judges.description import rebuild_judge
from adjudge.judges.layers import wrap_models
from adjudge.models.model import Model, Reply, Request
from adjudge.models.replies.row import RECORDING, RowUsage, decode_prompt
from adjudge.models.token_count import CHARACTER_UNCERTAINTY, CharacterCounter, count_request
from adjudge.runs.batch.session import make_patient
from adjudge.runs.estimate.metered_model import MeteredModel
from adjudge.runs.folder import Run
from adjudge.runs.judging import resolve_question
from adjudge.runs.same_question import read_question

SeatKey = tuple[str, int]
"""A model's name, and the number of seats before this one that have the same model."""

LEAST_UNCERTAINTY = 0.02

_MOST_CASES = 2_000
"""Cases of a run that are looked at: more would not make its averages much better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatUsage:
    """The usage of the replies to one seat."""

    replies: int
    calls: float
    """Calls for each judgement, with those that ask again; of a recording or cache for each that asks this seat."""
    calls_error: float
    """Two standard errors of ``calls``: which judgements reach a seat is chance, and a record has few of them."""
    input_tokens: float
    """The input tokens of a call, on average."""
    ratio: float | None
    """Input tokens for each token that ``CharacterCounter`` counts in the prompt that is asked first, on average;
    ``None`` where no prompt is known.
    """
    uncertainty: float
    """The share by which the input tokens of many prompts may be off."""
    output_tokens: float
    """The output tokens of a reply, on average."""
    output_uncertainty: float
    cached: float
    """The share of the input tokens that came from the provider's prompt cache."""
    written: float
    """The share that was written to it."""

    def predict(self, size: float) -> float:
        """The input tokens of a prompt of a size."""
        return self.input_tokens if self.ratio is None else self.ratio * size


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedUsage:
    """The usage of kept replies, by seat."""

    source: str
    """The run or file in which they were found."""
    judgements: int
    """Those of a run; 0 for a recording or cache, which does not say who was asked how often."""
    seats: Mapping[SeatKey, SeatUsage]
    counts_form: bool = True
    """True if the form of the reply is part of the sizes of prompts."""

    def find_model(self, name: str) -> SeatUsage | None:
        """Find the usage of any seat of a model."""
        return next((usage for (model, _), usage in self.seats.items() if model == name), None)


Judgement = tuple[str | None, str | None, int]
"""Case, order and sample."""


@dataclass(slots=True)
class SeenReplies:
    """The replies of one seat, while they are read."""

    used: list[RowUsage] = field(default_factory=list)
    points: list[tuple[float, float]] = field(default_factory=list)
    """Sizes of prompts that were asked first, with the input tokens that were counted, also of what asked again."""

    def add(self, usage: RowUsage | None, size: float | None) -> None:
        """Note the usage of a reply."""
        if usage is None or usage.input_tokens <= 0:
            return
        self.used.append(usage)
        if size:
            # What asks again has a longer prompt; over all points, the average is right for the sum of all calls.
            self.points.append((size, usage.input_tokens))


@dataclass(frozen=True, slots=True)
class _NamedModel:
    """A model of a run, of which only what the manifest says is known; it cannot be asked."""

    name: str
    structured: bool

    async def complete(self, _request: Request, /) -> Reply:
        raise UsageError(f"{self.name!r} is a model of a recorded run, and cannot be asked")


async def read_usage(earlier: Run) -> RecordedUsage:
    """Read the usage of the replies of a run; raises ``UsageError`` for a run without any that say so."""
    cases = await _measure_prompts(earlier)
    seen: dict[SeatKey, SeenReplies] = defaultdict(SeenReplies)
    calls: dict[SeatKey, Counter[Judgement]] = defaultdict(Counter)
    judged: set[Judgement] = set()
    for body in earlier.store.replies():
        try:
            row = decode_prompt(body, where="a kept reply", schema=RECORDING)
        except UsageError:
            continue
        if row.case not in cases:
            continue
        judgement = (row.case, row.order, row.sample)
        judged.add(judgement)
        key = (row.model, row.seat)
        calls[key][judgement] += 1
        seen[key].add(row.reply.usage, cases[row.case].get((*key, row.order)))
    seats = {
        key: sum_up(replies, *_find_calls(calls[key], len(judged)))
        for key, replies in seen.items()
        if replies.used and replies.points
    }
    if not seats:
        raise UsageError(
            f"{earlier.folder} has no replies that say how many tokens they used, so nothing can be estimated from it; "
            "leave it out, or name another run"
        )
    return RecordedUsage(source=str(earlier.folder), judgements=len(judged), seats=seats)


Sizes = Mapping[tuple[str, int, str | None], float]
"""The size of a prompt by model, seat and order."""


async def _measure_prompts(earlier: Run) -> dict[str | None, Sizes]:
    """Measure the sizes of the prompts of a run, by case: each is made once more, and sent to nobody."""
    counter, sizes = CharacterCounter(), dict[tuple[str, int, str | None], float]()

    def meter(model: Model, seat: int, request: Request) -> None:
        sizes[model.name, seat, request.order] = count_request(counter, request)[1]

    def make(described: Mapping[str, Any], _number: int) -> Model:
        return _NamedModel(str(described["name"]), bool(described.get("structured")))

    rubric, arguments, on_conflict = read_question(earlier, leave_out=("rules",))
    judge = make_patient(rebuild_judge(earlier.manifest["judge"], make))
    judge = wrap_models(judge, lambda model, number: MeteredModel(model, meter, seat=number))
    assignment = await resolve_question(judge, rubric, arguments, on_conflict, cases_bring=lambda: True)
    sizes_by_case: dict[str | None, Sizes] = {}
    for item in earlier.store.items(where="r.sample = 0"):
        sizes = {}
        await assignment.judge_case(item.case, sample=0)
        sizes_by_case[item.case.id] = sizes
        if len(sizes_by_case) >= _MOST_CASES:
            break
    return sizes_by_case


def _find_calls(calls: Counter[Judgement], judgements: int) -> tuple[float, float]:
    """Calls for each judgement, and two standard errors of that."""
    mean = calls.total() / judgements
    squares = sum(count * count for count in calls.values()) / judgements
    return mean, 2 * math.sqrt(max(squares - mean * mean, 0.0) / judgements)


def sum_up(seen: SeenReplies, calls: float, calls_error: float) -> SeatUsage:
    """Sum up the usage of the replies of a seat; at least one has to state it."""
    number = len(seen.used)
    total = sum(usage.input_tokens for usage in seen.used)
    outputs = [float(usage.output_tokens) for usage in seen.used]
    mean = sum(outputs) / number
    ratio, spread = measure_ratio(seen.points) if seen.points else (None, 0.0)
    return SeatUsage(
        replies=number,
        calls=calls,
        calls_error=calls_error,
        input_tokens=total / number,
        ratio=ratio,
        # Without sizes nothing says that other prompts are as long.
        uncertainty=_compute_uncertainty(spread, len(seen.points)) if seen.points else CHARACTER_UNCERTAINTY,
        output_tokens=mean,
        output_uncertainty=_compute_uncertainty(_compute_spread(outputs, mean), number),
        cached=min(sum(usage.cached_tokens for usage in seen.used) / total, 1.0),
        written=min(sum(usage.written_tokens for usage in seen.used) / total, 1.0),
    )


def measure_ratio(points: list[tuple[float, float]]) -> tuple[float, float]:
    """The tokens for each token of size, and the standard deviation around it as a share of the mean.

    Of sums and not of single prompts: so the tokens of many prompts together come out right, also where some are long.
    """
    sizes, tokens = sum(size for size, _ in points), sum(number for _, number in points)
    ratio = tokens / sizes
    residuals = sum((number - ratio * size) ** 2 for size, number in points) / len(points)
    return ratio, math.sqrt(residuals) * len(points) / tokens


def _compute_spread(values: list[float], mean: float) -> float:
    return math.sqrt(sum((value - mean) ** 2 for value in values) / len(values)) / mean if mean > 0 else 0.0


def _compute_uncertainty(spread: float, number: int) -> float:
    """Two standard errors of a mean, as a share of it; at least what a provider may change unseen."""
    return max(2 * spread / math.sqrt(number), LEAST_UNCERTAINTY)
