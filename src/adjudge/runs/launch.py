"""``run``: a data set judged, as something to await or to iterate."""

from __future__ import annotations

import os
import weakref
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack, get_args

from adjudge.errors import Reason, UsageError
from adjudge.formats.arguments import check_flag
from adjudge.judges.evaluate import Asking, RubricSource
from adjudge.judges.layers import Wrap
from adjudge.judges.pair import OnConflict
from adjudge.models.budget import Budget
from adjudge.models.price import Prices
from adjudge.models.rate_limit import Pace
from adjudge.runs.engine import Work
from adjudge.runs.folder import Run
from adjudge.runs.item import RunItem
from adjudge.runs.plan import DataSource, Plan, Progress, make_source
from adjudge.runs.pool import Limit
from adjudge.sync import run_sync

if TYPE_CHECKING:
    from adjudge.models.cache_store import ReplyCache


def run(
    dataset: DataSource,
    judge: Any,
    rubric: RubricSource | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    concurrency: int | Limit = 16,
    repeat: int = 1,
    sample: int | None = None,
    seed: int = 0,
    resume: bool = False,
    retry: Sequence[Reason] = ("budget",),
    on_progress: Callable[[Progress], Any] | None = None,
    cache: ReplyCache | str | os.PathLike[str] | None = None,
    budget: Budget | float | None = None,
    prices: Prices | None = None,
    pairs: bool = False,
    on_conflict: OnConflict = "tie",
    wrap: Wrap | None = None,
    command: Sequence[str] | None = None,
    **how: Unpack[Asking],
) -> Running:
    """Judge a data set; await what this returns for the finished ``Run``, or iterate over it for each ``RunItem``.

    ``dataset`` is the path of a file of cases, or any iterable, asynchronous too, of ``Case``s or contents; it is read
    as it is needed. ``judge`` is a judge, a chain, an object with ``name`` and ``ask``, or whatever ``Judge`` takes as
    its model. ``rubric`` and the arguments in ``how`` are those of ``Judge.evaluate``, the same for every case. With
    ``pairs``, the content of each case is ``{"a": ..., "b": ...}``, and the two are compared in both orders, as by
    ``compare``; then ``how`` holds its arguments, and ``on_conflict`` (``tie``, ``undecided``) says what orders that
    disagree come to.

    ``out`` is the folder to keep the run in; without it, one that is removed with the ``Run``. At most ``concurrency``
    items are under way at once, and fewer while a provider says that it has too much to do; it is a number, or an
    object whose ``current`` says how many at this moment. Each case is judged ``repeat`` times, as samples that are
    asked separately. ``sample`` draws that many cases by ``seed``, from a data set that can be read twice.

    With ``resume``, a run that is in ``out`` goes on: nothing is asked again whose answer was recorded. Items undecided
    for one of the reasons in ``retry`` are judged again. Data, judge and rubric have to be those it began with.

    ``cache`` (a ``ReplyCache``, or the path of one) keeps replies for other runs too. ``budget`` is in US dollars and
    for the whole run, every attempt at it taken together: what it cut off is ``undecided: budget``, and a run that goes
    on keeps the budget it had unless it is given another. A ``Budget`` is counted by whoever has it. ``prices`` are
    those of ``with_layers``.

    What goes wrong with one case is its result. ``UsageError`` is raised, when the run begins, for what is wrong
    before anything is asked, and later for a data set that cannot be read on; what was judged until then is kept.
    ``on_progress`` is called with a ``Progress`` when items were kept. ``wrap`` puts something between the judge and
    its models, and ``command`` is noted in the manifest.
    """
    for name, number, least in (("repeat", repeat, 1), ("sample", 1 if sample is None else sample, 1)):
        if isinstance(number, bool) or not isinstance(number, int) or number < least:
            raise UsageError(f"{name} must be a whole number of at least {least}, got {number!r}")
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise UsageError(f"seed must be a whole number, got {seed!r}")
    unknown = [item for item in retry if item not in get_args(Reason)]
    if isinstance(retry, str) or unknown:
        raise UsageError(f"retry is a list of {', '.join(get_args(Reason))}; got {retry!r}")
    check_flag("pairs", pairs)
    _check_slips(how)
    if on_conflict not in get_args(OnConflict):
        raise UsageError(f"on_conflict must be one of {', '.join(get_args(OnConflict))}; got {on_conflict!r}")
    return Running(
        Plan(
            source=make_source(dataset),
            judge=judge,
            rubric=rubric,
            how=how,
            out=None if out is None else Path(out),
            limit=_make_limit(concurrency),
            repeat=repeat,
            sample=sample,
            seed=seed,
            resume=resume,
            retry=tuple(retry),
            on_progress=on_progress,
            wrap=wrap,
            cache=cache,
            budget=budget,
            prices=prices,
            on_conflict=on_conflict if pairs else None,
            command=command,
        )
    )


def _check_slips(how: Mapping[str, Any]) -> None:
    """Name the argument of ``run`` that was meant: what ``how`` is handed to knows its own alone."""
    for name in how.keys() - Asking.__annotations__.keys():
        from difflib import get_close_matches

        # Nearer than usual: `ties` belongs to pairs, and is no slip for `prices`.
        near = get_close_matches(name, list(run.__kwdefaults__ or ()), 1, 0.8)
        if near:
            raise UsageError(f"run has no argument {name!r}; did you mean {near[0]!r}?")


def _make_limit(concurrency: int | Limit) -> Limit:
    if isinstance(concurrency, int) and not isinstance(concurrency, bool) and concurrency >= 1:
        return Pace(concurrency)
    if isinstance(getattr(concurrency, "current", None), int):
        return concurrency  # type: ignore[return-value]
    raise UsageError(f"concurrency must be a whole number of at least 1, got {concurrency!r}")


class Running:
    """A run that begins when it is awaited or iterated, once.

    ``await`` it for the finished ``Run``; ``async for`` gives each ``RunItem`` when it is kept, in the order in which
    they are finished, and awaiting it afterwards gives the ``Run``. Leaving the loop early, or cancelling it, cancels
    what is under way; what is finished stays kept, and ``resume=True`` goes on from there. Used with ``async with``,
    everything has ended when the block is left.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._work: Work | None = None
        self._items: weakref.ref[AsyncGenerator[RunItem, None]] | None = None

    def __repr__(self) -> str:
        work, where = self._work, "" if self._plan.out is None else f" {str(self._plan.out)!r}"
        if work is None:
            # A notebook shows this where an `await` was forgotten; nothing else would say that nobody was asked.
            return f"<Running{where} not begun: await it, iterate over it, or call finish_sync()>"
        return f"<Running{where} {'ended' if work.ended.is_set() else 'under way'}>"

    @property
    def progress(self) -> Progress | None:
        """How far it is; ``None`` before the first case."""
        return self._work.tell() if self._work is not None else None

    def wind_down(self) -> None:
        """Begin no further case; what is under way is finished, and then the run ends as interrupted."""
        if self._work is not None:
            self._work.wind_down()

    def finish_sync(self) -> Run:
        """The finished ``Run``, for callers without an event loop; works inside a running loop too, and blocks it."""
        return run_sync(self._finish())

    def __aiter__(self) -> AsyncGenerator[RunItem, None]:
        if self._items is not None:
            raise UsageError("this run has begun already; call run(...) again for another, with resume=True to go on")
        items = self._iterate()
        # Weakly: whoever leaves his loop early lets go of the generator, and that ends the run.
        self._items = weakref.ref(items)
        return items

    def __await__(self) -> Generator[Any, None, Run]:
        return self._finish().__await__()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._end()

    async def _iterate(self) -> AsyncGenerator[RunItem, None]:
        self._work = work = Work(self._plan)
        try:
            await work.begin()
            while taken := await work.take():
                for item in taken:
                    yield item
        finally:
            await work.end()

    async def _finish(self) -> Run:
        if self._items is None:
            async for _ in (items := aiter(self)):
                pass
            del items
        await self._end()
        if self._work is None or self._work.run is None:
            raise UsageError("this run was ended before it began; call run(...) again")
        return self._work.run

    async def _end(self) -> None:
        items = self._items() if self._items is not None else None
        # One that is running is ended by whoever runs it.
        if items is not None and not getattr(items, "ag_running", False):
            await items.aclose()
        if self._work is not None:
            await self._work.ended.wait()
