"""An estimate of a run's calls and cost: each request is made, counted and priced by its size, and not sent.

What an earlier run used is read in ``recorded_usage.py``; prices are found in ``models/price.py``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, ClassVar

from adjudge.dataset.case import Case
from adjudge.errors import UsageError
from adjudge.formats.plain_data import digest_description
from adjudge.formats.record import Layout, write_record
from adjudge.judges.description import describe_judge, digest_judge
from adjudge.judges.evaluate import EvaluateArguments, JudgeLike, RubricSource
from adjudge.judges.judge import Judge, ModelSource, asks_as
from adjudge.judges.layers import wrap_models
from adjudge.judges.open import as_judge
from adjudge.judges.pair import OnConflict
from adjudge.models.batch.open import knows_batches
from adjudge.models.model import Model, Request, find_function
from adjudge.models.price import Price, Prices, make_finder
from adjudge.models.token_count import CharacterCounter, TokenCounter, choose_counter, count_request
from adjudge.models.wrapper import find_innermost
from adjudge.result import Usage
from adjudge.runs.batch.options import BatchOptions
from adjudge.runs.batch.session import check_strategies, remove_time_limits
from adjudge.runs.estimate.kept_estimate import SCHEMA
from adjudge.runs.estimate.metered_model import MeteredModel
from adjudge.runs.estimate.recorded_usage import RecordedUsage, SeatKey, SeatUsage
from adjudge.runs.estimate.seat_share import SeatShare, list_shares
from adjudge.runs.judging import Assignment, resolve_question
from adjudge.runs.options import DataSource, check_amounts, draw_places, make_source

OUTPUT_TOKENS = 80.0
"""Tokens of a reply besides the criteria, where nothing says more: the token, the verdict as a whole, suggestions."""

OUTPUT_TOKENS_OF_CRITERION = 70.0
"""Tokens of a reply for each criterion: its name, the reasoning and the score."""

OUTPUT_RANGE = (0.5, 2.0)
"""The factors for the least and the most output tokens: models differ, and those that think write more."""

CACHED_FROM = 1_024
"""Tokens that the constant part of a prompt needs, so that providers keep it in their prompt cache. Some need more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatEstimate:
    """The calls of one seat, and their cost in US dollars; ``None`` is unknown."""

    model: str
    seat: int
    """The number of seats before this one that have the same model."""
    share: float
    """The share of the judgements for which it is asked."""
    share_basis: str
    calls: float
    input_tokens: float
    output_tokens: float
    constant_tokens: float
    """Input tokens in the constant first part of prompts, which a provider may keep in its prompt cache."""
    live_usd: float | None
    least_usd: float | None
    most_usd: float | None
    batch_usd: float | None
    cached_usd: float | None
    """Asked live, when every prompt but the first finds its constant part in the provider's prompt cache."""
    input_basis: str
    output_basis: str
    why_unknown: str = ""


_COSTS = ("live_usd", "least_usd", "most_usd", "batch_usd", "cached_usd")


def _sum_up(estimate: RunEstimate) -> dict[str, float | None]:
    """Return the totals of all seats: calls, tokens and costs, by name."""
    counts = {name: getattr(estimate, name) for name in ("calls", "input_tokens", "output_tokens")}
    return counts | {name: estimate.add_up(name) for name in _COSTS}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEstimate:
    """The calls of a run, and their cost."""

    schema: ClassVar[str] = SCHEMA
    _layout: ClassVar[Layout] = Layout(
        members=(
            "made_on",
            "cases",
            "judgements",
            "own_criteria",
            "settled_by_rules",
            "checked_live",
            "recorded_judgements",
            "total",
            "seats",
            "digests",
            "options",
        ),
        computed={
            "own_criteria": attrgetter("cases_with_criteria"),
            "settled_by_rules": attrgetter("settled"),
            "checked_live": attrgetter("checked"),
            "recorded_judgements": attrgetter("recorded"),
            "total": _sum_up,
        },
    )

    cases: int
    judgements: int
    cases_with_criteria: int
    """Cases with criteria of their own."""
    settled: int
    """Judgements for which nobody is asked: rules decide them."""
    checked: int
    """Judgements that a run by batches makes live first."""
    recorded: int
    """Judgements of a recorded run that the calls for a judgement are taken from; 0 without one."""
    seats: tuple[SeatEstimate, ...]
    digests: Mapping[str, str | None]
    options: Mapping[str, Any]
    made_on: str
    """The day of the prices, as YYYY-MM-DD."""

    @property
    def calls(self) -> float:
        """The calls of all seats."""
        return sum(seat.calls for seat in self.seats)

    @property
    def input_tokens(self) -> float:
        """The input tokens of all seats."""
        return sum(seat.input_tokens for seat in self.seats)

    @property
    def output_tokens(self) -> float:
        """The output tokens of all seats."""
        return sum(seat.output_tokens for seat in self.seats)

    def add_up(self, name: str) -> float | None:
        """Add up a cost (``live_usd``, ``batch_usd``, ...) over all seats; ``None`` if it is unknown for one."""
        amounts = [getattr(seat, name) for seat in self.seats]
        return None if None in amounts else sum(amounts)

    def to_dict(self) -> dict[str, Any]:
        """Write this value as plain data."""
        return write_record(self)


async def estimate_run(
    dataset: DataSource,
    judge: JudgeLike | ModelSource,
    rubric: RubricSource | None = None,
    *,
    arguments: EvaluateArguments | None = None,
    on_conflict: OnConflict | None = None,
    repeat: int = 1,
    sample: int | None = None,
    seed: int = 0,
    prices: Prices | None = None,
    batch: BatchOptions | None = None,
    recorded: RecordedUsage | None = None,
) -> RunEstimate:
    """Estimate the calls and the cost of a run with the same arguments. No model is asked, and no key is needed.

    With ``on_conflict``, the cases are pairs. ``recorded`` is the usage of earlier replies, from which averages are
    taken. Raises ``UsageError`` as a run would.
    """
    check_amounts(repeat, sample, seed)
    judge_of_run = as_judge(judge, keep_name=True)
    tally = _RunTally(judge_of_run, prices, batch or BatchOptions(), recorded)
    metered_judge = wrap_models(remove_time_limits(judge_of_run), tally.wrap)
    source = make_source(dataset)
    assignment = await resolve_question(
        metered_judge, rubric, arguments or {}, on_conflict, cases_bring=source.bring_criteria
    )
    places = draw_places(await source.count(), sample, seed) if sample is not None else None
    async for place, case in source.iterate_cases():
        if places is not None and place not in places:
            continue
        try:
            assignment.check_case(case)
        except UsageError as error:
            source.refuse(place, str(error))
            continue
        await tally.add(assignment, case, repeat)
    described = None if assignment.rubric is None else assignment.rubric.to_dict()
    return tally.conclude(
        digests={
            "judge": digest_judge(describe_judge(judge_of_run)),
            "rubric": digest_description(described),
            "asked": digest_description(assignment.described),
        },
        options={"repeat": repeat, "sample": sample, "seed": seed},
    )


@dataclass(slots=True)
class _Amounts:
    """The sums of the requests to one seat."""

    calls: float = 0.0
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    constant: float = 0.0
    live: float = 0.0
    least: float = 0.0
    most: float = 0.0
    batch: float = 0.0
    cached: float = 0.0


class _SeatTally:
    """The tally of one seat while its requests are counted."""

    def __init__(
        self,
        model: Model,
        share: SeatShare,
        usage: SeatUsage | None,
        recorded: RecordedUsage | None,
        *,
        has_own_usage: bool,
    ) -> None:
        self.model = model
        self.usage = usage
        self.share, self.share_basis, self.calls = share, share.assumed or "asked every time", share.expected
        self._counts_form = recorded is None or recorded.counts_form
        if usage is not None and recorded is not None and not recorded.judgements:
            # A recording or a cache says how often a request was repeated, and not how often the seat was asked.
            self.calls = share.expected * usage.calls
            self.share_basis += f"; recorded: {usage.calls:.2f} calls each time"
            self.share = replace(share, least=share.least * usage.calls, most=share.most * usage.calls)
        elif usage is not None and recorded is not None and has_own_usage:
            # A run says how often this seat was asked for each judgement.
            self.calls = usage.calls
            self.share_basis = f"recorded: {usage.calls:.2f} calls for a judgement, of {recorded.judgements:,}"
            least = max(usage.calls - usage.calls_error, 0.0)
            self.share = replace(share, least=least, most=usage.calls + usage.calls_error)
        self.counter: TokenCounter = choose_counter(model)
        self.character_counter = CharacterCounter()
        self.input_basis = self.counter.basis
        self.output_basis = (
            f"assumed: {OUTPUT_TOKENS:g} tokens, and {OUTPUT_TOKENS_OF_CRITERION:g} for each criterion; "
            "it may be half of that or twice"
        )
        if usage is not None and recorded is not None:
            self.input_basis = f"{usage.replies:,} replies in {recorded.source}"
            self.output_basis = f"{usage.output_tokens:,.0f} on average there"
        self.live_price: Price | None = None
        self.batch_price: Price | None = None
        self.why_unknown = ""
        self.sums = _Amounts()

    def add(self, request: Request, *, criteria: int, times: int, checked: int, constant: bool) -> None:
        """Add a request to the sums, which is made once for each of ``times`` judgements.

        The first ``checked`` of them are live in a run by batches. ``constant`` says that the first part of the prompt
        is the same as that of earlier requests, so that a provider may have it in its prompt cache.
        """
        constant_tokens, tokens = count_request(self.counter, request)
        input_low, input_high = 1 - self.counter.uncertainty, 1 + self.counter.uncertainty
        output = min(OUTPUT_TOKENS + OUTPUT_TOKENS_OF_CRITERION * criteria, request.max_output_tokens or 10**9)
        output_low, output_high = OUTPUT_RANGE
        if self.usage is not None:
            constant_size, size = count_request(
                self.character_counter, request if self._counts_form else replace(request, form=None)
            )
            tokens = self.usage.predict(size)
            constant_tokens = tokens * constant_size / size if size else 0.0
            input_low, input_high = 1 - self.usage.uncertainty, 1 + self.usage.uncertainty
            output = self.usage.output_tokens
            output_low, output_high = 1 - self.usage.output_uncertainty, 1 + self.usage.output_uncertainty
        if not constant:
            constant_tokens = 0.0
        calls, sums = self.calls * times, self.sums
        sums.calls += calls
        sums.input_tokens += calls * tokens
        sums.output_tokens += calls * output
        sums.constant += calls * constant_tokens
        checked_calls = self.calls * checked
        if self.live_price is not None:
            usd = self._price_request(self.live_price, tokens, output)
            least_usd = self._price_request(self.live_price, tokens * input_low, output * output_low)
            most_usd = self._price_request(self.live_price, tokens * input_high, output * output_high)
            sums.live += calls * usd
            sums.least += self.share.least * times * least_usd
            sums.most += self.share.most * times * most_usd
            cached_tokens = constant_tokens if constant_tokens >= CACHED_FROM else 0.0
            sums.cached += calls * self.live_price.cost_of(_make_usage(tokens, output, cached=cached_tokens))
            sums.batch += checked_calls * usd
        if self.batch_price is not None:
            sums.batch += (calls - checked_calls) * self._price_request(self.batch_price, tokens, output)

    def _price_request(self, price: Price, tokens: float, output: float) -> float:
        """Return the cost of a request in dollars.

        With recorded usage, the same share of its tokens as there counts as in the provider's prompt cache; else none.
        """
        cached = written = 0.0
        if self.usage is not None:
            cached, written = tokens * self.usage.cached, tokens * self.usage.written
        return price.cost_of(_make_usage(tokens, output, cached=cached, written=written))

    def conclude(self, key: SeatKey, judgements: int) -> SeatEstimate:
        """Make the estimate of this seat from the sums; ``judgements`` is the number of judgements of the run."""
        sums, has_price = self.sums, self.live_price is not None
        model, seat = key
        return SeatEstimate(
            model=model,
            seat=seat,
            share=sums.calls / judgements if judgements else self.calls,
            share_basis=self.share_basis,
            calls=sums.calls,
            input_tokens=sums.input_tokens,
            output_tokens=sums.output_tokens,
            constant_tokens=sums.constant,
            live_usd=sums.live if has_price else None,
            least_usd=sums.least if has_price else None,
            most_usd=sums.most if has_price else None,
            batch_usd=sums.batch if has_price and self.batch_price is not None else None,
            cached_usd=sums.cached if has_price else None,
            input_basis=self.input_basis,
            output_basis=self.output_basis,
            why_unknown=self.why_unknown,
        )


class _RunTally:
    """The tally of a run: all seats of the judge, and the cases that were counted."""

    def __init__(self, judge: Any, prices: Prices | None, batch: BatchOptions, recorded: RecordedUsage | None) -> None:
        self._find_live_price, self._find_batch_price = make_finder(prices), make_finder(prices, processing="batch")
        self._batch, self._recorded = batch, recorded
        self._can_wait = _can_wait(judge)
        self._shares: dict[SeatKey, SeatShare] = {}
        model_counts: Counter[str] = Counter()
        for leaf, share in list_shares(judge):
            if not asks_as(leaf, Judge):
                raise UsageError(
                    f"{getattr(leaf, 'name', leaf)!r} is no Judge or JudgeChain, so nobody knows what it asks; give "
                    "its model to a Judge, or leave the estimate out"
                )
            name = leaf.model.name
            self._shares[name, model_counts[name]] = share
            model_counts[name] += 1
        self._seats: dict[SeatKey, _SeatTally] = {}
        self._cases = self._cases_with_criteria = self._judgements = self._settled_count = self._checked = 0
        self._criteria_count, self._has_shared_prompt = 1, True
        self._current_times: tuple[int, int] = (1, 0)
        """The number of judgements of the current case, and of those of them that a run by batches makes live."""
        self._is_asked = False

    def wrap(self, model: Model, number: int) -> Model:
        """Make the model that counts requests in place of another. Its seat is in the estimate even if it gets none."""
        if find_function(model) is None:
            self._find_seat(model, number)
        return MeteredModel(model, self._count_request, seat=number)

    async def add(self, assignment: Assignment, case: Case, repeat: int) -> None:
        """Count the requests about a case, which is judged ``repeat`` times, by judging it with the metered models."""
        rubric = assignment.terms.find_rubric(case)
        self._criteria_count = 1 if rubric is None or assignment.on_conflict is not None else len(rubric.criteria)
        # If a case brings its own criteria, the first part of the prompt is its own, and in no provider's prompt cache.
        brings_criteria = case.criteria is not None or case.rubric is not None
        self._has_shared_prompt = not brings_criteria and self._cases > 0
        checked = min(max(self._batch.check - self._judgements, 0), repeat)
        self._current_times, self._is_asked = (repeat, checked), False
        await assignment.judge_case(case, sample=0)
        self._cases += 1
        self._cases_with_criteria += brings_criteria
        self._judgements += repeat
        self._checked += checked
        if not self._is_asked:
            self._settled_count += repeat

    def conclude(self, *, digests: Mapping[str, str | None], options: Mapping[str, Any]) -> RunEstimate:
        """Make the estimate of the run from all cases that were counted."""
        return RunEstimate(
            cases=self._cases,
            judgements=self._judgements,
            cases_with_criteria=self._cases_with_criteria,
            settled=self._settled_count,
            checked=self._checked,
            recorded=0 if self._recorded is None else self._recorded.judgements,
            seats=tuple(seat.conclude(key, self._judgements) for key, seat in self._seats.items()),
            digests=digests,
            options=options,
            made_on=datetime.now(UTC).date().isoformat(),
        )

    def _count_request(self, model: Model, number: int, request: Request) -> None:
        """Add a request about the current case to the tally of its seat."""
        self._is_asked = True
        times, checked = self._current_times
        seat = self._find_seat(model, number)
        seat.add(request, criteria=self._criteria_count, times=times, checked=checked, constant=self._has_shared_prompt)

    def _find_seat(self, model: Model, number: int) -> _SeatTally:
        """Return the tally of a seat; it is made with its prices and recorded usage when it is first needed.

        ``number`` is the number of seats before this one that have the same model.
        """
        key = (model.name, number)
        if key not in self._seats:
            asked_every_time = SeatShare(expected=1.0, least=1.0, most=1.0)
            usage = None if self._recorded is None else self._recorded.seats.get(key)
            has_own_usage = usage is not None  # the usage of this very seat, and not that of another seat of the model
            if usage is None and self._recorded is not None:
                usage = self._recorded.find_model(model.name)
            seat = _SeatTally(
                model, self._shares.get(key, asked_every_time), usage, self._recorded, has_own_usage=has_own_usage
            )
            seat.live_price = self._find_live_price(model)
            by_batch = self._can_wait and knows_batches(find_innermost(model))
            seat.batch_price = self._find_batch_price(model) if by_batch else None
            seat.why_unknown = _explain_unknown(seat)
            self._seats[key] = seat
        return self._seats[key]


def _can_wait(judge: Any) -> bool:
    """Return whether the strategies of a judge's chains allow to wait for batches."""
    try:
        check_strategies(judge)
    except UsageError:
        return False
    return True


def _explain_unknown(seat: _SeatTally) -> str:
    """Explain why the live price of a seat is unknown, or else its price by batch; empty if both are known."""
    if seat.live_price is None:
        return (
            f"the price of {seat.model.name} is not known; give it under [prices]; 'adjudge[cost]' knows newer models"
        )
    if seat.batch_price is None:
        return f"{seat.model.name} cannot be asked by batch here, or the price of that is not known"
    return ""


def _make_usage(tokens: float, output: float, *, cached: float = 0.0, written: float = 0.0) -> Usage:
    """Make the usage of a request; ``cached`` tokens come from a provider's prompt cache, ``written`` are put there."""
    return Usage(
        input_tokens=round(tokens), output_tokens=round(output), cached_tokens=int(cached), written_tokens=int(written)
    )
