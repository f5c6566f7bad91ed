"""Operations on the batches of a run without its data set and its judge: list, collect, cancel."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from adjudge.errors import ModelError, UsageError
from adjudge.models.batch.open import require_batches
from adjudge.models.open import open_model
from adjudge.models.providers.base import HttpModel
from adjudge.runs.batch.dispatcher import BatchDispatcher
from adjudge.runs.batch.options import BatchOptions
from adjudge.runs.batch.store import OPEN, BatchStore, KeptBatch
from adjudge.runs.folder import RunLock, read_manifest


def list_batches(folder: Path) -> list[KeptBatch]:
    """List the batches of a run as they were last polled. Raises ``UsageError`` for a folder without batches."""
    store = _find_store(folder).open(write=False)
    try:
        return store.list_batches()
    finally:
        store.close()


async def collect_batches(
    folder: Path,
    *,
    wait: bool = False,
    poll: float = 30.0,
    on_poll: Callable[[Sequence[KeptBatch]], None] = lambda _: None,
) -> list[KeptBatch]:
    """Poll every batch of a run, keep the results that have come, and return the batches as they are then.

    With ``wait``, this is repeated until no batch is open any more; ``on_poll`` is called after each poll. Nothing is
    sent and nothing is judged: the run does that when it is resumed. Raises ``UsageError`` for a folder without
    batches, and for one that another process writes to.
    """
    with _hold_store(folder) as store:
        dispatcher = BatchDispatcher(store, BatchOptions(poll=poll))
        models = _open_models(store)
        try:
            for model in models:
                dispatcher.register(model)
            dispatcher.recover()
            while True:
                await dispatcher.poll()
                batches = store.list_batches()
                on_poll(batches)
                if not wait or not any(batch.state in OPEN for batch in batches):
                    return batches
                await asyncio.sleep(dispatcher.find_wait())
        finally:
            for model in models:
                await model.aclose()


async def cancel_batches(folder: Path, numbers: Sequence[int] = ()) -> list[KeptBatch]:
    """Ask the providers to end the batches of a run, all or those of ``numbers``; return them as they are then.

    Requests that are answered by then are paid for, and can still be collected. Raises ``UsageError`` for a number of
    no batch, and ``ModelError`` if a provider refuses.
    """
    with _hold_store(folder) as store:
        chosen = _choose_batches(store, numbers)
        dispatcher = BatchDispatcher(store, BatchOptions())
        models = _open_models(store)
        try:
            for model in models:
                dispatcher.register(model)
            dispatcher.recover()
            for number in chosen:
                await _cancel_batch(dispatcher, store, number)
        finally:
            for model in models:
                await model.aclose()
        return [store.find_batch(number) for number in chosen]


async def _cancel_batch(dispatcher: BatchDispatcher, store: BatchStore, number: int) -> None:
    """Cancel one batch, if it is under way. Raises ``UsageError`` for a doubtful one whose job is not known."""
    batch = store.find_batch(number)
    if batch.state == "doubtful" and not batch.job:
        raise UsageError(
            f"batch {number} is doubtful: the provider has not said what it is called, so it cannot be cancelled; "
            "adjudge batch collect looks for it"
        )
    if batch.state not in ("waiting", "cancelling"):
        return
    try:
        await dispatcher.cancel(batch)
    except ModelError as error:
        raise ModelError(f"batch {number} was not cancelled: {error}", status=error.status) from None


def _choose_batches(store: BatchStore, numbers: Sequence[int]) -> list[int]:
    """Return ``numbers``, or if they are empty those of all batches under way.

    Raises ``UsageError`` for a number of no batch.
    """
    by_number = {batch.number: batch for batch in store.list_batches()}
    for number in numbers:
        if number not in by_number:
            names = ", ".join(map(str, by_number)) or "none"
            raise UsageError(f"the run has no batch {number}; it has {names}")
    if numbers:
        return list(numbers)
    return [batch.number for batch in by_number.values() if batch.state in ("waiting", "cancelling")]


def _find_store(folder: Path) -> BatchStore:
    """Return the file of a run's batches, not opened yet. Raises ``UsageError`` for a folder without one."""
    read_manifest(folder)  # raises for a folder that is no run
    store = BatchStore(folder)
    if not store.exists:
        raise UsageError(f"{folder} has no batches: it is the run of a live judge; name one of adjudge run --batch")
    return store


@contextmanager
def _hold_store(folder: Path) -> Iterator[BatchStore]:
    """Open a block with the file of a run's batches, and hold the run's lock, so that nobody else writes to the run."""
    store = _find_store(folder)
    lock = RunLock(folder)
    lock.acquire()
    try:
        store.open()
        try:
            yield store
        finally:
            store.close()
    finally:
        lock.release()


def _open_models(store: BatchStore) -> list[HttpModel]:
    """Open the models of the jobs that are not collected, by their names alone.

    The folder may come from a stranger, so no address and no name of a key's variable is read from it: a provider's key
    is sent to that provider only, and no key to any other server.
    """
    models: dict[str, HttpModel] = {}
    for batch in store.list_batches(OPEN):
        if batch.model not in models:
            models[batch.model] = require_batches(open_model(batch.model))
    return list(models.values())
