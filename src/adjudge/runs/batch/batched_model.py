"""The model that a judge asks in a run by batches.

When requests are sent, and when their outcome is there, is decided in ``dispatcher.py``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Self

from adjudge.concurrency import Timeout
from adjudge.errors import ModelError, ReplyError
from adjudge.models.batch.open import require_batches
from adjudge.models.model import Model, Reply, Request
from adjudge.models.price import Price, add_cost, bound_cost
from adjudge.models.providers.base import HttpModel
from adjudge.models.replies.key import describe_request, make_key, make_place
from adjudge.models.wrapper import WrapperModel
from adjudge.runs.batch.dispatcher import TRIES, BatchDispatcher
from adjudge.runs.batch.store import KeptRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchedTerms:
    """The shared state of the models of one run."""

    dispatcher: BatchDispatcher
    live: asyncio.Semaphore
    """Held by what is asked at once, among thousands that wait."""
    then: Literal["batch", "live"]
    timeout: float | None
    """Seconds for a request that is asked live."""
    find_live_price: Callable[[Model], Price | None]
    find_batch_price: Callable[[Model], Price | None]


class BatchedModel(WrapperModel):
    """A provider's model whose replies come out of batches."""

    def __init__(self, model: HttpModel, terms: BatchedTerms, *, seat: int) -> None:
        super().__init__(model)
        self._http = model
        self._terms = terms
        self.seat = seat
        """The number of seats before this one that have the same model."""

    async def complete(self, request: Request, /) -> Reply:
        """Return the reply out of a batch; where it has to be asked again, out of the next one or live.

        Raises ``ModelError`` for what another try would not mend.
        """
        terms, model = self._terms, self._http
        if terms.then == "live" and request.attempt > 1:
            return await self._ask_live(request)
        place, key = self._find_place(request), make_key(self.name, describe_request(request))
        held_usd = self._bound_cost(request)
        earlier_try: str | None = None
        left_out: frozenset[str] = frozenset()
        while True:
            row = await terms.dispatcher.fetch(
                model, request, place=place, key=key, held_usd=held_usd, after=earlier_try
            )
            if row.state == "reply":
                terms.dispatcher.note_used(row)
                return add_cost(model.read_body(row.body or b""), terms.find_batch_price(model))
            if row.state == "contradiction":
                terms.dispatcher.note_used(row)
                raise ReplyError("contradiction", row.message)
            earlier_try = row.id
            if row.state == "never":
                refused = model.find_refused(row.body or b"", request) - left_out
                if not refused:
                    terms.dispatcher.note_place_used(place)
                    raise _make_error(self.name, row)
                # As a live request is sent again without a parameter that the provider does not take.
                left_out |= refused
                terms.dispatcher.refuse_parameters(model, refused)
            elif terms.then == "live":
                terms.dispatcher.note_place_used(place)
                return await self._ask_live(request)
            else:
                self._check_tries(row, place, key)

    def _check_tries(self, row: KeptRequest, place: str, key: str) -> None:
        """Raise the error of a request that was in enough batches; any other goes into the next."""
        if self._terms.dispatcher.count_tries(place, key) >= TRIES:
            self._terms.dispatcher.note_place_used(place)
            raise _make_error(self.name, row)

    def _bound_cost(self, request: Request) -> float:
        """The most dollars that a request can cost by batch; 0 where that is not known."""
        price = self._terms.find_batch_price(self._http)
        return 0.0 if price is None or request.max_output_tokens is None else bound_cost(price, self.name, request)

    async def _ask_live(self, request: Request) -> Reply:
        """Ask the provider at once, when there is room for it; the wait for that does not count as its time.

        Raises ``ReplyError`` for no answer in time.
        """
        async with self._terms.live:
            limit = Timeout(self._terms.timeout)
            try:
                with limit:
                    reply = await self._http.complete(request)
            except TimeoutError:
                if not limit.late:
                    raise
                problem = f"no answer within {self._terms.timeout:g} s to a request that was asked live"
                raise ReplyError("timeout", problem) from None
        return add_cost(reply, self._terms.find_live_price(self._http))

    def _find_place(self, request: Request) -> str:
        return make_place(
            case=request.case,
            order=request.order,
            sample=request.sample,
            model=self.name,
            seat=self.seat,
            attempt=request.attempt,
        )

    def _make_around(self, model: Model) -> Self:
        return type(self)(require_batches(model), self._terms, seat=self.seat)


class PromptModel(WrapperModel):
    """A model that is asked at once in a run by batches: a function, a recording, a model of your own.

    Thousands of judgements wait for batches at a time. Of these no more are asked together than in a live run.
    """

    def __init__(self, model: Model | Callable[..., object], live: asyncio.Semaphore) -> None:
        super().__init__(model)
        self._live = live

    async def complete(self, request: Request, /) -> Reply:
        """The model's reply, when it has its turn."""
        async with self._live:
            return await self.model.complete(request)

    def _make_around(self, model: Model) -> Self:
        return type(self)(model, self._live)


def _make_error(name: str, row: KeptRequest) -> ModelError:
    detail = f": {row.message}" if row.message else ""
    # A status, so that nothing is counted as spent: what a provider did not run is not on the bill.
    return ModelError(f"{name} was asked by batch and gave no reply ({row.name}){detail}", status=0)
