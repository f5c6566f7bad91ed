"""The usage of an earlier run, for an estimate: tokens by the size of the prompt, and how often each seat was asked."""

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
from adjudge.runs.batch.session import remove_time_limits
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
        """Predict the input tokens of a prompt, from its size by ``CharacterCounter``."""
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
        """Return the usage of the first seat of a model; ``None`` if there is none."""
        return next((usage for (model, _), usage in self.seats.items() if model == name), None)


Judgement = tuple[str | None, str | None, int]
"""Case, order and sample."""


@dataclass(slots=True)
class SeenReplies:
    """The replies of one seat, while they are read."""

    used: list[RowUsage] = field(default_factory=list)
    points: list[tuple[float, float]] = field(default_factory=list)
    """The size of the prompt of the first attempt, and the input tokens of the reply, for each reply to any attempt."""

    def add(self, usage: RowUsage | None, size: float | None) -> None:
        """Add the usage of a reply, and the size of its prompt if that is known. A reply without usage is left out."""
        if usage is None or usage.input_tokens <= 0:
            return
        self.used.append(usage)
        if size:
            # Repeated requests have longer prompts than ``size``. The average over all of them is right all the same.
            self.points.append((size, usage.input_tokens))


@dataclass(frozen=True, slots=True)
class _NamedModel:
    """A model of a run, of which only what the manifest says is known; it cannot be asked."""

    name: str
    structured: bool

    async def complete(self, _request: Request, /) -> Reply:
        raise UsageError(f"{self.name!r} is a model of a recorded run, and cannot be asked")


async def read_usage(earlier: Run) -> RecordedUsage:
    """Read the usage of the replies of a run, by seat. Raises ``UsageError`` if no reply has any."""
    sizes_by_case = await _measure_prompts(earlier)
    replies_by_seat: dict[SeatKey, SeenReplies] = defaultdict(SeenReplies)
    calls: dict[SeatKey, Counter[Judgement]] = defaultdict(Counter)
    judged: set[Judgement] = set()
    for body in earlier.store.replies():
        try:
            row = decode_prompt(body, where="a kept reply", schema=RECORDING)
        except UsageError:
            continue
        if row.case not in sizes_by_case:
            continue
        judgement = (row.case, row.order, row.sample)
        judged.add(judgement)
        key = (row.model, row.seat)
        calls[key][judgement] += 1
        replies_by_seat[key].add(row.reply.usage, sizes_by_case[row.case].get((*key, row.order)))
    seats = {
        key: sum_up_replies(replies, *_average_calls(calls[key], len(judged)))
        for key, replies in replies_by_seat.items()
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
    """Measure the sizes of the prompts of a run, by case. Each prompt is made again, and not sent."""
    counter = CharacterCounter()
    sizes: dict[tuple[str, int, str | None], float] = {}

    def meter(model: Model, seat: int, request: Request) -> None:
        _, size = count_request(counter, request)
        sizes[model.name, seat, request.order] = size

    def make_named_model(described: Mapping[str, Any], _number: int) -> Model:
        return _NamedModel(str(described["name"]), bool(described.get("structured")))

    rubric, arguments, on_conflict = read_question(earlier, leave_out=("rules",))
    judge = remove_time_limits(rebuild_judge(earlier.manifest["judge"], make_named_model))
    judge = wrap_models(judge, lambda model, number: MeteredModel(model, meter, seat=number))
    assignment = await resolve_question(judge, rubric, arguments, on_conflict, cases_bring=lambda: True)
    sizes_by_case: dict[str | None, Sizes] = {}
    for item in earlier.store.items(where="r.sample = 0"):
        sizes = {}
        await assignment.judge_case(item.case, sample=0)  # calls ``meter`` for each request
        sizes_by_case[item.case.id] = sizes
        if len(sizes_by_case) >= _MOST_CASES:
            break
    return sizes_by_case


def _average_calls(calls: Counter[Judgement], judgements: int) -> tuple[float, float]:
    """Compute the calls of a seat for a judgement, on average, and two standard errors of that."""
    mean = calls.total() / judgements
    squares = sum(count * count for count in calls.values()) / judgements
    return mean, 2 * math.sqrt(max(squares - mean * mean, 0.0) / judgements)


def sum_up_replies(replies: SeenReplies, calls: float, calls_error: float) -> SeatUsage:
    """Sum up the usage of the replies of a seat, of which there is at least one with usage.

    ``calls`` and ``calls_error`` are those of ``SeatUsage``.
    """
    number = len(replies.used)
    input_total = sum(usage.input_tokens for usage in replies.used)
    outputs = [float(usage.output_tokens) for usage in replies.used]
    mean_output = sum(outputs) / number
    ratio, spread = measure_ratio(replies.points) if replies.points else (None, 0.0)
    return SeatUsage(
        replies=number,
        calls=calls,
        calls_error=calls_error,
        input_tokens=input_total / number,
        ratio=ratio,
        # Without sizes of prompts, it is not known whether other prompts are as long.
        uncertainty=_compute_uncertainty(spread, len(replies.points)) if replies.points else CHARACTER_UNCERTAINTY,
        output_tokens=mean_output,
        output_uncertainty=_compute_uncertainty(_compute_spread(outputs, mean_output), number),
        cached=min(sum(usage.cached_tokens for usage in replies.used) / input_total, 1.0),
        written=min(sum(usage.written_tokens for usage in replies.used) / input_total, 1.0),
    )


def measure_ratio(points: list[tuple[float, float]]) -> tuple[float, float]:
    """Compute the ratio of input tokens to prompt sizes, and the standard deviation around it as a share of the mean.

    A point is the size of a prompt and its input tokens. The ratio is that of the sums, and no average of the ratios of
    single prompts: so the predicted tokens of many prompts together are right, also if some prompts are long.
    """
    size_total = sum(size for size, _ in points)
    token_total = sum(tokens for _, tokens in points)
    ratio = token_total / size_total
    mean_square = sum((tokens - ratio * size) ** 2 for size, tokens in points) / len(points)
    return ratio, math.sqrt(mean_square) * len(points) / token_total


def _compute_spread(values: list[float], mean: float) -> float:
    """Compute the standard deviation of some values as a share of their mean."""
    return math.sqrt(sum((value - mean) ** 2 for value in values) / len(values)) / mean if mean > 0 else 0.0


def _compute_uncertainty(spread: float, number: int) -> float:
    """Compute two standard errors of a mean, as a share of it; at least ``LEAST_UNCERTAINTY``.

    A provider may change how it counts tokens without saying so, so the uncertainty is never 0.
    """
    return max(2 * spread / math.sqrt(number), LEAST_UNCERTAINTY)
