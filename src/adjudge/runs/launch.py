"""``run``: judge a data set; the return value is awaited or iterated over.

The engine of a run is in ``engine.py``.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack, get_args

from adjudge.errors import Argument, Reason, UsageError
from adjudge.formats.arguments import check_choice, check_flag, check_whole_number
from adjudge.judges.evaluate import EvaluateArguments, JudgeLike, NoOther, RubricSource
from adjudge.judges.judge import ModelSource
from adjudge.judges.layers import Wrap
from adjudge.judges.pair import OnConflict
from adjudge.models.budget import Budget
from adjudge.models.price import Prices
from adjudge.models.rate_limit import Pace
from adjudge.rules.ruleset import AnyRule
from adjudge.runs.batch.options import BatchOptions, read_options
from adjudge.runs.engine import Engine
from adjudge.runs.folder import Run
from adjudge.runs.item import RunItem
from adjudge.runs.notebook_progress import find_notebook_progress
from adjudge.runs.options import DataSource, Plan, Progress, check_amounts, make_source
from adjudge.runs.pool import Concurrency
from adjudge.runs.ray.cluster import RayCluster
from adjudge.sync import run_sync

if TYPE_CHECKING:
    from adjudge.models.replies.cache_file import ReplyCache


EngineName = Literal["local", "ray"]
"""The places where the cases of a run can be judged."""


def run(
    dataset: DataSource,
    judge: JudgeLike | ModelSource,
    rubric: RubricSource | None = None,
    *,
    fields: Mapping[str, str | None] | None = None,
    out: str | os.PathLike[str] | None = None,
    concurrency: int | Concurrency = 16,
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
    engine: EngineName = "local",
    ray_address: str | None = None,
    ray_actors: int | None = None,
    command: Sequence[str] | None = None,
    batch: BatchOptions | bool = False,
    criteria: str | Sequence[str] | Mapping[str, str] | None = None,
    threshold: float | None = None,
    reference: object = None,
    task: object = None,
    context: object = None,
    model: str | None = None,
    rules: Sequence[AnyRule] = (),
    instructions: str | None = None,
    result_format: type[Any] | None = None,
    passes: Callable[[Any], bool] | None = None,
    metadata: Mapping[str, Any] | None = None,
    **unknown: Unpack[NoOther],
) -> Running:
    """Judge a data set. Await the return value for the finished ``Run``, or iterate over it for each ``RunItem``.

    A problem with one case gives that case an undecided result. Raises ``UsageError`` when the run begins, for mistakes
    that are found before a model is asked, and later if the rest of the data set cannot be read; the cases judged by
    then are kept. The arguments from ``criteria`` on are those of ``Judge.evaluate`` and the same for every case;
    values of a case have precedence.

    Args:
        dataset: The path of a file of cases, a frame of pandas or polars, or any iterable, sync or async, of ``Case``s
            or contents. It is read as needed.
        judge: A judge, a chain, an object with ``name`` and ``ask``, or anything that ``Judge`` takes as its model.
        rubric: A ``Rubric``, the path of one, or a shipped name; by default the judge's own.
        fields: Which field of the data set is which part of a case, as for ``open_dataset``: ``{"content": "reply"}``.
        out: The folder to keep the run in; by default a temporary one that is removed with the ``Run``.
        concurrency: The most items that are judged at once: a number, or an object whose ``current`` is the number for
            this moment. There are fewer while a provider reports overload.
        repeat: How often each case is judged. Each judgement is a sample with requests of its own.
        sample: Judge only this many cases, drawn at random. The data set must allow reading it twice.
        seed: The random seed for ``sample``.
        resume: Resume the run in ``out``. Recorded answers are not asked for again. Data, judge and rubric must be
            unchanged.
        retry: With ``resume``, judge items again that are undecided for one of these reasons.
        on_progress: Called with a ``Progress`` whenever items were written; by default a notebook shows it below the
            cell, and nothing is shown anywhere else.
        cache: A ``ReplyCache``, or the path of one, that keeps replies for other runs too.
        budget: US dollars for the whole run, including the parts before it was resumed. Items that do not fit are
            ``undecided: budget``. A resumed run keeps its budget unless you pass another. A ``Budget`` can be
            shared with other calls.
        prices: Dollars per million tokens by the model's name, as for ``with_layers``.
        pairs: The content of each case is ``{"a": ..., "b": ...}``, and the two are compared in both orders, as
            by ``compare``; then the arguments that only ``evaluate`` takes are errors.
        on_conflict: With ``pairs``, the result when the two orders disagree: ``tie`` or ``undecided``.
        wrap: A function that wraps the judge's models.
        engine: Where the cases are judged: ``local`` in this process, or ``ray`` by the actors of a Ray cluster (extra
            ``[ray]``), which share out ``concurrency`` and the limits of the models. This process reads the whole data
            set first, and alone writes to ``out``.
        ray_address: With ``engine="ray"``, ``HOST:PORT`` of the cluster, or ``auto``; by default ``RAY_ADDRESS``, else
            a cluster on this machine for the time of the run.
        ray_actors: With ``engine="ray"``, how many actors judge; by default one for each CPU of the cluster.
        command: The command line, recorded in the manifest.
        batch: Ask by the providers' batch interfaces, which mostly cost half as much and take up to a day: ``True``,
            or ``BatchOptions``. A run that goes on does so by batches if it began so.
        criteria: Instead of a rubric: a sentence, a list of sentences, or a mapping of names to sentences.
        threshold: The passing threshold for ``criteria``, or in place of the rubric's own, in 0 to 1.
        reference: A known good answer to compare with; shown to the judge as data.
        task: What the content was asked to do; shown to the judge as data.
        context: What the content may rely on (passages, policies); shown to the judge as data.
        model: The model to ask, in place of the rubric's and the judge's own; a ``UsageError`` with a chain.
        rules: Checks in code that run first; a failed ``error`` rule decides before a model is asked.
        instructions: More instructions, which the judge obeys; never put content here.
        result_format: A pydantic model, dataclass or msgspec Struct for the reply; the instance is
            ``result.value``.
        passes: A function that says whether an instance of ``result_format`` passes; by default its boolean ``passed``.
        metadata: Copied to the result, never sent to a model; ``case`` and ``order`` also select recorded
            replies.
    """
    all_arguments: dict[str, Any] = {
        "criteria": criteria,
        "threshold": threshold,
        "reference": reference,
        "task": task,
        "context": context,
        "model": model,
        "rules": rules,
        "instructions": instructions,
        "result_format": result_format,
        "passes": passes,
        "metadata": metadata,
    }
    # Only those that differ from their default: the digest of a run's question has only those that are set.
    defaults = run.__kwdefaults__ or {}
    arguments: Any = {name: value for name, value in all_arguments.items() if value is not defaults[name]} | unknown
    check_amounts(repeat, sample, seed)
    if isinstance(retry, str):
        raise UsageError(f"retry must be a list of reasons, got the text {retry!r}", argument="retry")
    for reason in retry:
        if reason not in get_args(Reason):
            raise UsageError(f"retry: {reason!r} is none of {', '.join(get_args(Reason))}", argument="retry")
    check_flag("pairs", pairs)
    _check_spelling(arguments)
    check_choice("on_conflict", on_conflict, get_args(OnConflict))
    return Running(
        Plan(
            source=make_source(dataset, fields),
            judge=judge,
            rubric=rubric,
            arguments=arguments,
            out=None if out is None else Path(out),
            limit=_make_limit(concurrency),
            repeat=repeat,
            sample=sample,
            seed=seed,
            resume=resume,
            retry=tuple(retry),
            on_progress=on_progress or find_notebook_progress(),
            wrap=wrap,
            cache=cache,
            budget=budget,
            prices=prices,
            on_conflict=on_conflict if pairs else None,
            command=command,
            cluster=_choose_cluster(engine, ray_address, ray_actors),
            batch=_choose_batch(batch, engine),
        )
    )


def _choose_cluster(engine: str, address: str | None, actors: int | None) -> RayCluster | None:
    """Return the cluster of the engine ``ray``, or ``None``. Raises ``UsageError`` for Ray's options without it."""
    check_choice("engine", engine, get_args(EngineName))
    if engine == "ray":
        return RayCluster(address=address, actors=actors)
    for name, value in (("ray_address", address), ("ray_actors", actors)):
        if value is not None:
            raise UsageError(
                f"{name} belongs to ",
                Argument("engine", "'ray'"),
                ", which judges the cases on a Ray cluster",
                argument=name,
            )
    return None


def _choose_batch(batch: BatchOptions | bool, engine: str) -> BatchOptions | None:  # noqa: FBT001 - as ``run`` has it
    """Return the options of batches; ``None`` is a live run. Raises ``UsageError`` for batches on another engine."""
    chosen = read_options(batch)
    if chosen is not None and engine != "local":
        raise UsageError(
            "batch and ",
            Argument("engine", repr(engine)),
            " do not go together: batches are answered at the provider; leave one of them out",
            argument="batch",
        )
    return chosen


def _check_spelling(arguments: Mapping[str, Any]) -> None:
    """Raise ``UsageError`` for a misspelt argument of ``run``, and name the right one.

    Other unknown arguments are refused later, by the functions that take ``arguments``. These do not know the arguments
    of ``run``.
    """
    for name in arguments.keys() - EvaluateArguments.__annotations__.keys():
        from difflib import get_close_matches

        # With a higher cutoff than usual: `ties`, which belongs to pairs, must not be taken for `prices`.
        matches = get_close_matches(name, list(run.__kwdefaults__ or ()), 1, 0.8)
        if matches:
            raise UsageError(f"run has no argument {name!r}; did you mean {matches[0]!r}?", argument=name)


def _make_limit(concurrency: int | Concurrency) -> Concurrency:
    """Make the limit of items that are judged at once: a number becomes a ``Pace``, another limit stays as it is."""
    if isinstance(getattr(concurrency, "current", None), int):
        return concurrency  # type: ignore[return-value]
    return Pace(check_whole_number("concurrency", concurrency, least=1))


class Running:
    """A run that starts when you await it or iterate over it.

    ``await`` it for the finished ``Run``. ``async for`` gives each ``RunItem`` as soon as it is on disk, in the order
    in which items finish; awaiting afterwards gives the ``Run``. If you leave the loop early, or cancel, the calls
    under way are cancelled; finished items stay on disk, and ``resume=True`` resumes the run. With ``async with``, the
    run has ended when you leave the block.

    Args:
        plan: What ``run`` made of its arguments.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._engine: Engine | None = None
        self._is_winding_down = False
        self._generator: weakref.ref[AsyncGenerator[RunItem, None]] | None = None

    def __repr__(self) -> str:
        engine, folder = self._engine, "" if self._plan.out is None else f" {str(self._plan.out)!r}"
        if engine is None:
            # A notebook shows this if an `await` was forgotten. Nothing else would say that the run has not begun.
            return f"<Running{folder} not begun: await it, iterate over it, or call finish_sync()>"
        return f"<Running{folder} {'ended' if engine.ended.is_set() else 'under way'}>"

    @property
    def progress(self) -> Progress | None:
        """The progress so far; ``None`` before the first case."""
        return self._engine.measure_progress() if self._engine is not None else None

    def wind_down(self) -> None:
        """Start no further case. The cases under way are finished, and then the run ends as interrupted."""
        self._is_winding_down = True  # for a run that has not begun yet
        if self._engine is not None:
            self._engine.wind_down()

    def finish_sync(self) -> Run:
        """Finish without an event loop and return the ``Run``. Also works inside a running loop, and blocks it."""
        return run_sync(self._finish_run())

    def __aiter__(self) -> AsyncGenerator[RunItem, None]:
        if self._generator is not None:
            raise UsageError(
                "this run has begun already; call run again for another, with ",
                Argument("resume", "True"),
                " to resume this one",
            )
        generator = self._iterate_items()
        # A weak reference: if the caller leaves its loop early, the generator is freed, and that ends the run.
        self._generator = weakref.ref(generator)
        return generator

    def __await__(self) -> Generator[Any, None, Run]:
        return self._finish_run().__await__()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._end_iteration()

    async def _iterate_items(self) -> AsyncGenerator[RunItem, None]:
        """Yield each item once it is written. The run ends with the iteration, also if that is left or fails."""
        self._engine = engine = Engine(self._plan)
        if self._is_winding_down:
            engine.wind_down()
        try:
            await engine.begin()
            while items := await engine.take_items():
                for item in items:
                    yield item
        finally:
            await engine.end()

    async def _finish_run(self) -> Run:
        """Iterate over the run if nobody has, and return it when it has ended.

        Raises ``UsageError`` if it was ended before it began.
        """
        if self._generator is None:
            items = aiter(self)
            async for _ in items:
                pass
            del items
        await self._end_iteration()
        if self._engine is None or self._engine.run is None:
            raise UsageError("this run was ended before it began; call run again")
        return self._engine.run

    async def _end_iteration(self) -> None:
        """Close the iteration if it was left half way, and wait until the run has ended."""
        generator = self._generator() if self._generator is not None else None
        # A generator that is running at this moment cannot be closed. The caller that iterates over it will end it.
        if generator is not None and not getattr(generator, "ag_running", False):
            await generator.aclose()
        if self._engine is not None:
            await self._engine.ended.wait()
