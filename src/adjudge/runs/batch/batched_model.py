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
from adjudge.models.replies.key import describe_request, make_key, make_reply_key
from adjudge.models.wrapper import WrapperModel
from adjudge.runs.batch.dispatcher import MOST_TRIES, BatchDispatcher
from adjudge.runs.batch.store import KeptRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchedTerms:
    """The shared state of the models of one run."""

    dispatcher: BatchDispatcher
    live_slots: asyncio.Semaphore
    """Held by each request that is asked live; it limits their number, while thousands of judgements wait."""
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
        """Return the reply to a request from a batch.

        If the provider did not run the request, it goes into the next batch, or is asked live if the run says so.
        Raises ``ModelError`` for an error that another try would meet as well, and after the last try.
        """
        terms, model = self._terms, self._http
        if terms.then == "live" and request.attempt > 1:
            return await self._ask_live(request)
        place, key = self._find_place(request), make_key(self.name, describe_request(request))
        held_usd = self._bound_cost(request)
        failed_id: str | None = None
        left_out: frozenset[str] = frozenset()  # the names of parameters that the model does not take
        while True:
            row = await terms.dispatcher.fetch(
                model, request, place=place, key=key, held_usd=held_usd, failed_id=failed_id
            )
            if row.state == "reply":
                terms.dispatcher.note_used(row)
                return add_cost(model.read_body(row.body or b""), terms.find_batch_price(model))
            if row.state == "contradiction":
                terms.dispatcher.note_used(row)
                raise ReplyError("contradiction", row.message)
            failed_id = row.id
            if row.state == "never":
                refused = model.find_refused(row.body or b"", request) - left_out
                if not refused:
                    terms.dispatcher.note_place_used(place)
                    raise _make_error(self.name, row)
                # Sent again without the parameters that the provider does not take, as a live request would be.
                left_out |= refused
                terms.dispatcher.refuse_parameters(model, refused)
            elif terms.then == "live":
                terms.dispatcher.note_place_used(place)
                return await self._ask_live(request)
            else:
                self._check_tries(row, place, key)

    def _check_tries(self, row: KeptRequest, place: str, key: str) -> None:
        """Raise ``ModelError`` if a request has been in ``MOST_TRIES`` batches without a reply."""
        if self._terms.dispatcher.count_tries(place, key) >= MOST_TRIES:
            self._terms.dispatcher.note_place_used(place)
            raise _make_error(self.name, row)

    def _bound_cost(self, request: Request) -> float:
        """Return the most dollars that a request can cost by batch; 0 where that is not known."""
        price = self._terms.find_batch_price(self._http)
        return 0.0 if price is None or request.max_output_tokens is None else bound_cost(price, self.name, request)

    async def _ask_live(self, request: Request) -> Reply:
        """Ask the provider live, once a slot is free. The wait for the slot does not count towards the timeout.

        Raises ``ReplyError`` if there is no answer in time.
        """
        async with self._terms.live_slots:
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
        """Return the key of a request's place in the run: its case, order, sample, model, seat and attempt."""
        return make_reply_key(
            case=request.case,
            order=request.order,
            sample=request.sample,
            model=self.name,
            seat=self.seat,
            attempt=request.attempt,
        )

    def _make_around(self, model: Model) -> Self:
        """Make the same wrapper around another model. Raises ``UsageError`` for a model without batches."""
        return type(self)(require_batches(model), self._terms, seat=self.seat)


class PromptModel(WrapperModel):
    """A model that is asked at once in a run by batches: a function, a recording, a model of your own.

    Thousands of judgements wait for batches at a time. Of these no more are asked together than in a live run.
    """

    def __init__(self, model: Model | Callable[..., object], live_slots: asyncio.Semaphore) -> None:
        super().__init__(model)
        self._live_slots = live_slots

    async def complete(self, request: Request, /) -> Reply:
        """Ask the model once a slot for live requests is free, and return its reply."""
        async with self._live_slots:
            return await self.model.complete(request)

    def _make_around(self, model: Model) -> Self:
        """Make the same wrapper around another model."""
        return type(self)(model, self._live_slots)


def _make_error(name: str, row: KeptRequest) -> ModelError:
    """Make the error for a request that the provider did not run."""
    detail = f": {row.message}" if row.message else ""
    # An error with a status counts as no cost: the provider does not charge for a request that it did not run.
    return ModelError(f"{name} was asked by batch and gave no reply ({row.name}){detail}", status=0)
