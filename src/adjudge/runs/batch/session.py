"""The part of a run's engine that is only for a run by batches.

Sending, finding again after a crash and collecting are in ``dispatcher.py`` (``recover``, ``_search_doubtful``); why
nothing is paid for twice is in ``__init__.py``.
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
from adjudge.runs.batch.secret import SECRET_FILE, open_secret
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
    """Return whether any question of a judge goes into batches; raises ``UsageError`` for one that cannot wait.

    Requests to functions, recordings and models of your own do not.
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


def make_patient(judge: Any) -> Any:
    """A judge like this one without limits of time; a batch takes hours.

    A chain that counts hears every seat: all were sent together, and each reply is paid for.
    """
    if asks_as(judge, JudgeChain):
        seats = [make_patient(seat) for _, seat in judge.seats]
        hears_all = judge.strategy in COUNTING
        stop_early = judge.stop_early and not hears_all
        return judge.replace(judges=seats, timeout=None, deadline=None, stop_early=stop_early)
    if asks_as(judge, Judge):
        return judge.replace(timeout=None)
    return judge


def find_timeout(judge: Any) -> float | None:
    """Seconds for a request that is asked live: those of the outermost chain or judge."""
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
        self._made = [path for path in (self.store.path, folder / SECRET_FILE) if not path.exists()]
        try:
            self.store.open(make=True)
            self.secret = open_secret(folder, needed=bool(self.store.list_batches()))
        except BaseException:
            self._delete_made()
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
            live=asyncio.Semaphore(max(int(limit.current), 1)),
            then=options.then,
            timeout=timeout,
            find_live_price=make_finder(prices),
            find_batch_price=make_finder(prices, processing="batch"),
        )
        self._work: asyncio.Task[None] | None = None
        self._last_progress: BatchProgress | None = None
        self._is_closed = False

    def wrap(self, outer: Wrap | None) -> Wrap:
        """Make the stand-in for each model: batches innermost, so that everything else stays around them."""

        def wrap(model: Model, number: int) -> Model:
            inner = find_innermost(model)
            wrapped: Model
            if has_batches(inner):
                self.dispatcher.register(inner)
                batched = BatchedModel(inner, self._terms, seat=number)
                wrapped = model.around(batched) if isinstance(model, WrapperModel) else batched
            else:
                wrapped = PromptModel(model, self._terms.live)
            return wrapped if outer is None else outer(wrapped, number)

        return wrap

    def begin(self, on_end: Callable[[BaseException | None], None]) -> None:
        """Send and collect in the background; ``on_end`` is called when that ends, with what went wrong."""
        self._work = asyncio.get_running_loop().create_task(self.dispatcher.work())

        def report_end(task: asyncio.Task[None]) -> None:
            if not task.cancelled():
                on_end(task.exception())

        self._work.add_done_callback(report_end)

    def halt(self) -> None:
        """Send nothing more; what was sent goes on at the provider."""
        self.dispatcher.halt()

    async def stop(self) -> None:
        """Leave nothing running here."""
        if self._work is not None:
            self._work.cancel()
            await asyncio.wait({self._work})
        self.dispatcher.write_used()

    def close(self, *, complete: bool) -> None:
        """Close the file, once what is asked of it later has been read: progress, and what may be paid for twice.

        A ``complete`` run has every reply in its own file by now, so the replies here are dropped.
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
        self._delete_made()

    def _delete_made(self) -> None:
        self._close_store()
        for path in self._made:
            path.unlink(missing_ok=True)

    def _close_store(self) -> None:
        self.store.close()
        self._is_closed = True

    def _read_paid_again(self) -> Mapping[str, Any] | None:
        sums = self.store.read_paid_again()
        return {"requests": sums.requests, "at_most_usd": None if sums.unknown else sums.usd} if sums.requests else None

    def measure_progress(self, *, checking: bool) -> BatchProgress:
        """Return the progress of the requests; as it was last, once the file is closed."""
        if self._is_closed and self._last_progress is not None:  # a look must not open the file again
            return self._last_progress
        try:
            self._last_progress = self._read_progress(checking=checking)
        except AdjudgeError:
            if self._last_progress is None:
                raise
        return self._last_progress

    def _read_progress(self, *, checking: bool) -> BatchProgress:
        """Read the progress; the counts of requests are read again only after a change."""
        under_way = self.store.list_batches(OPEN)
        if self._counts is None:
            self._counts = self.store.count_requests()
        return BatchProgress(
            unsent=self.dispatcher.unsent,
            requests=self._counts,
            batches=len(under_way),
            done=sum(batch.done for batch in under_way),
            checking=checking,
        )

    def _forget_counts(self) -> None:
        self._counts = None
