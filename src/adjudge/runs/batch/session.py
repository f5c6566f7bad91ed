"""The batches of a run from its beginning to its end: the checks of the judge, the file, the secret and the dispatcher.

How batches are sent, found again after a crash and collected is in ``dispatcher.py``; why nothing is paid for twice, in
``__init__.py``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adjudge.errors import AdjudgeError, Argument, UsageError
from adjudge.judges.chain import JudgeChain, list_leaves
from adjudge.judges.chain_outcome import COUNTING
from adjudge.judges.judge import Judge, asks_as
from adjudge.judges.layers import Wrap
from adjudge.models.batch.open import has_batches
from adjudge.models.model import Model
from adjudge.models.price import Prices, make_finder
from adjudge.models.wrapper import WrapperModel, find_innermost
from adjudge.runs.batch.batched_model import BatchedModel, BatchedTerms, PromptModel
from adjudge.runs.batch.dispatcher import BatchDispatcher
from adjudge.runs.batch.options import BatchOptions
from adjudge.runs.batch.secret_file import SECRET_FILE, open_secret
from adjudge.runs.batch.store import OPEN, BatchStore
from adjudge.runs.pool import Concurrency


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchProgress:
    """The progress of the requests of a run by batches."""

    unsent: int
    """Requests that wait to be sent."""
    requests: Mapping[str, int]
    """Requests that were sent, by the state of their batch (``waiting``, ``doubtful``, ...), and those that have an
    outcome: ``reply``, ``again`` and ``never``."""
    batches: int
    """Batches that have not been collected."""
    done: int
    """Requests in them that the provider says it has answered."""
    checking: bool = False
    """True if the first cases are being judged live."""


def sends_batches(judge: Any) -> bool:
    """Return whether any model of a judge is asked by batch. Functions, recordings and models of your own are not.

    Raises ``UsageError`` for a judge that cannot wait for batches.
    """
    check_strategies(judge)
    any_batches = False
    for leaf in list_leaves(judge):
        if not asks_as(leaf, Judge):
            name = getattr(leaf, "name", leaf)
            raise UsageError(
                f"{name!r} is no Judge or JudgeChain, so nothing it asks can be put into a batch; give its model to a "
                "Judge, or leave ",
                Argument("batch"),
                " out",
                argument="batch",
            )
        any_batches = has_batches(find_innermost(leaf.model)) or any_batches
    return any_batches


def check_judge(judge: Any) -> None:
    """Raise ``UsageError`` for a judge that cannot be asked by batch."""
    if not sends_batches(judge):
        raise UsageError(
            f"{judge.name!r} asks no provider's model, so there is nothing to send by batch; leave ",
            Argument("batch"),
            " out",
            argument="batch",
        )


def check_strategies(judge: Any) -> None:
    """Raise ``UsageError`` for a chain whose strategy cannot wait for batches."""
    if not isinstance(judge, JudgeChain):
        return
    if judge.strategy == "hedged":
        raise UsageError(
            f"the chain {judge.name!r} is hedged: it asks the next seat when one is late, and a batch is always late; "
            "use fallback, or leave ",
            Argument("batch"),
            " out",
            argument="batch",
        )
    for _, seat in judge.seats:
        check_strategies(seat)


def remove_time_limits(judge: Any) -> Any:
    """Return a judge like this one without time limits, because a batch takes hours.

    A chain that counts votes asks every seat to the end: all are sent together, and each reply is paid for.
    """
    if asks_as(judge, JudgeChain):
        seats = [remove_time_limits(seat) for _, seat in judge.seats]
        stop_early = judge.stop_early and judge.strategy not in COUNTING
        return judge.replace(judges=seats, timeout=None, deadline=None, stop_early=stop_early)
    if asks_as(judge, Judge):
        return judge.replace(timeout=None)
    return judge


def find_timeout(judge: Any) -> float | None:
    """Return the timeout in seconds for a request that is asked live: that of the outermost chain or judge."""
    return getattr(judge, "timeout", None)


class BatchSession:
    """A run's batches, from its beginning to its end."""

    def __init__(
        self,
        options: BatchOptions,
        folder: Path,
        *,
        limit: Concurrency,
        prices: Prices | None,
        timeout: float | None,
        is_all_asked: Callable[[], bool],
        count_judging: Callable[[], int],
        on_paid_twice: Callable[[float], None],
    ) -> None:
        self.options = options
        self.store = BatchStore(folder)
        self._created_paths = [path for path in (self.store.path, folder / SECRET_FILE) if not path.exists()]
        try:
            self.store.open(make=True)
            self.secret = open_secret(folder, needed=bool(self.store.list_batches()))
        except BaseException:
            self._delete_created()
            raise
        self.dispatcher = BatchDispatcher(
            self.store,
            options,
            is_all_asked=is_all_asked,
            count_judging=count_judging,
            on_change=self._forget_counts,
            on_paid_twice=on_paid_twice,
        )
        self._counts: Mapping[str, int] | None = None
        self.paid_again: Mapping[str, Any] | None = None
        """The requests that may be paid for twice, because they were sent again; known when the file is closed."""
        self._terms = BatchedTerms(
            dispatcher=self.dispatcher,
            live_slots=asyncio.Semaphore(max(int(limit.current), 1)),
            then=options.then,
            timeout=timeout,
            find_live_price=make_finder(prices),
            find_batch_price=make_finder(prices, processing="batch"),
        )
        self._dispatching: asyncio.Task[None] | None = None
        self._last_progress: BatchProgress | None = None
        self._is_closed = False

    def wrap(self, outer: Wrap | None) -> Wrap:
        """Make the function that puts the batches in place of each innermost model, below its other wrappers.

        ``outer`` is applied to the result.
        """

        def wrap(model: Model, number: int) -> Model:
            """Put batches in place of a provider's model; any other model is asked live, when a slot is free."""
            inner = find_innermost(model)
            wrapped: Model
            if has_batches(inner):
                self.dispatcher.register(inner)
                batched = BatchedModel(inner, self._terms, seat=number)
                wrapped = model.around(batched) if isinstance(model, WrapperModel) else batched
            else:
                wrapped = PromptModel(model, self._terms.live_slots)
            return wrapped if outer is None else outer(wrapped, number)

        return wrap

    def begin(self, on_end: Callable[[BaseException | None], None]) -> None:
        """Begin to send and collect in the background; ``on_end`` is called when that ends, with the error if any."""
        self._dispatching = asyncio.get_running_loop().create_task(self.dispatcher.work())

        def report_end(task: asyncio.Task[None]) -> None:
            if not task.cancelled():
                on_end(task.exception())

        self._dispatching.add_done_callback(report_end)

    def halt(self) -> None:
        """Send nothing more; batches that were sent continue at the provider."""
        self.dispatcher.halt()

    async def stop(self) -> None:
        """End the background task, and write down which outcomes were used."""
        if self._dispatching is not None:
            self._dispatching.cancel()
            await asyncio.wait({self._dispatching})
        self.dispatcher.write_used()

    def close(self, *, complete: bool) -> None:
        """Close the file, and before that read what is asked for later: the progress, and what may be paid for twice.

        A ``complete`` run has every reply in its own file by now, so the replies in this file are deleted.
        """
        self.paid_again = self._read_paid_again()
        self._forget_counts()
        self._last_progress = self._read_progress(checking=False)
        if complete:
            self.store.drop_bodies()
        self._close_store()

    def delete(self) -> None:
        """Close and delete the files of a run that never began."""
        self._close_store()
        self.store.remove()
        (self.store.path.parent / SECRET_FILE).unlink(missing_ok=True)

    def withdraw(self) -> None:
        """Close the files of a run that is not resumed after all, and delete those that this session has made."""
        self._last_progress = self._read_progress(checking=False)
        self._delete_created()

    def _delete_created(self) -> None:
        """Close the file, and delete the files that this session has created."""
        self._close_store()
        for path in self._created_paths:
            path.unlink(missing_ok=True)

    def _close_store(self) -> None:
        self.store.close()
        self._is_closed = True

    def _read_paid_again(self) -> Mapping[str, Any] | None:
        """Read how many requests may be paid for twice, and their cost; ``None`` if there are none."""
        sums = self.store.read_paid_again()
        if not sums.requests:
            return None
        return {"requests": sums.requests, "at_most_usd": None if sums.unknown else sums.usd}

    def measure_progress(self, *, checking: bool) -> BatchProgress:
        """Return the progress of the requests; once the file is closed, as it was then."""
        if self._is_closed and self._last_progress is not None:  # reading it would open the file again
            return self._last_progress
        try:
            self._last_progress = self._read_progress(checking=checking)
        except AdjudgeError:
            if self._last_progress is None:
                raise
        return self._last_progress

    def _read_progress(self, *, checking: bool) -> BatchProgress:
        """Read the progress; the counts of requests are read again only after a change."""
        open_batches = self.store.list_batches(OPEN)
        if self._counts is None:
            self._counts = self.store.count_requests()
        return BatchProgress(
            unsent=self.dispatcher.unsent_count,
            requests=self._counts,
            batches=len(open_batches),
            done=sum(batch.done for batch in open_batches),
            checking=checking,
        )

    def _forget_counts(self) -> None:
        """Have the counts of requests read again, because the file has changed."""
        self._counts = None
