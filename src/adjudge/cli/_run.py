"""``adjudge run``: judge a data set into a folder, and go on where that was cut off."""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from adjudge.cli import _options as option
from adjudge.cli._choose import Panel, choose
from adjudge.cli._config import read_config
from adjudge.cli._input import open_from_options
from adjudge.cli._judge import choose_rubric, list_arguments
from adjudge.cli._layers import tell_uncached
from adjudge.cli._output import note
from adjudge.errors import UsageError


def run_data(
    data: option.DataPath,
    rubric: option.RubricName = None,
    criteria: option.Criteria = None,
    threshold: option.Threshold = None,
    rules: option.Rules = None,
    judges: option.Judges = None,
    strategy: option.StrategyName = None,
    timeout: option.Timeout = None,
    fail_open: option.FailOpen = False,
    quorum: option.Quorum = None,
    hedge_after: option.HedgeAfter = None,
    escalate_below: option.EscalateBelow = None,
    reader: option.ReaderName = None,
    reader_labels: option.ReaderLabels = None,
    reader_passes: option.ReaderPasses = None,
    no_token: option.NoToken = False,
    record: option.Record = None,
    cache: option.CacheFile = None,
    budget: option.BudgetUsd = None,
    pairs: option.Pairs = False,
    on_conflict: option.OnConflict = None,
    out: option.RunFolder = None,
    concurrency: option.Concurrency = 16,
    repeat: option.Repeat = 1,
    sample: option.Sample = None,
    seed: option.Seed = 0,
    resume: option.Resume = False,
    retry: option.Retry = None,
    fail_under: option.FailUnder = None,
    kind: option.DataKind = None,
    content: option.FieldContent = None,
    reference: option.FieldReference = None,
    task: option.FieldTask = None,
    context: option.FieldContext = None,
    label: option.FieldLabel = None,
    name: option.FieldId = None,
    group: option.FieldGroup = None,
    other: option.FieldOther = None,
    on_bad_row: option.OnBadRow = "fail",
    as_json: option.AsJson = False,
    config: option.ConfigFile = None,
) -> int:
    """Judge a data set by a rubric or a sentence, and keep every case, result and reply in a folder.

    DATA is a file: .jsonl, .csv, .tsv, .json, .yaml, .parquet; lines and tables may be .gz; - is standard input.

    With --pairs each content is {"a": ..., "b": ...}: which of the two is better is asked in both orders.

    Ctrl-C stops it in order, a second one at once; with --resume the same command goes on, also after a crash.

    Exit status: 0 the data set is judged, 1 fewer than --fail-under passed, 2 wrong usage or unreadable input,
    3 nothing could be decided, or too much is undecided to say whether --fail-under was reached, 130 interrupted.
    """
    from adjudge import run
    from adjudge.cli._expected import Expected
    from adjudge.cli._run_session import RunSession

    found = read_config(config)
    wanted = choose_rubric(rubric, criteria, threshold, found)
    how = list_arguments(wanted, criteria, threshold, rules)
    options = {"strategy": strategy, "quorum": quorum, "hedge_after": hedge_after, "escalate_below": escalate_below}
    options |= {"fail_open": fail_open or None}
    chain = tuple((option_name, value) for option_name, value in options.items() if value is not None)
    who = {"reader": reader, "labels": reader_labels, "passes": reader_passes}
    who |= {"token": not no_token, "record": record}
    panel = Panel(judges=tuple(judges or ()), timeout=timeout, chain=chain, **cast("dict[str, Any]", who))
    _check(concurrency, repeat, sample, fail_under, out, resume=resume, retry=retry)
    _check_layers(cache, budget, record)
    if pairs or on_conflict is not None:
        _check_pairs(on_conflict, {"--threshold": threshold, "--rule": rules}, pairs=pairs)
    parts = {"content": content, "reference": reference, "task": task, "context": context}
    parts |= {"label": label, "id": name, "group": group}
    # Ids are compared on disk, where the run keeps them.
    dataset = open_from_options(data, kind=kind, fields=parts, other=other, on_bad_row=on_bad_row, check_ids=False)
    chosen = choose(panel, found, wanted)
    if chosen.reason and not as_json:
        note(f"judging with {chosen.judge.name}, because {chosen.reason}; name another with --judge")
    if cache is not None:
        tell_uncached(chosen.judge)
    folder = out or Path("runs") / datetime.now(UTC).strftime("%Y-%m-%d-%H%M%S")
    running = run(
        dataset,
        chosen.judge,
        chosen.rubric,
        out=folder,
        concurrency=concurrency,
        repeat=repeat,
        sample=sample,
        seed=seed,
        resume=resume,
        retry=("budget", *cast("list[Any]", retry or ())),
        command=["adjudge", *sys.argv[1:]],
        cache=cache,
        budget=budget,
        prices=found.prices,
        pairs=pairs,
        on_conflict=cast("Any", on_conflict or "tie"),
        **how,
    )
    said: dict[str, Any] = {"folder": folder, "as_json": as_json, "fail_under": fail_under}
    session = RunSession(running=running, judge=chosen.judge, expected=Expected(data, times=repeat), **said)
    return asyncio.run(session.go())


def _check(
    concurrency: int,
    repeat: int,
    sample: int | None,
    fail_under: float | None,
    out: Path | None,
    *,
    resume: bool,
    retry: list[str] | None,
) -> None:
    """Raise ``UsageError`` in the words of the command line."""
    for name, number in (("--concurrency", concurrency), ("--repeat", repeat), ("--sample", sample)):
        if number is not None and number < 1:
            raise UsageError(f"{name} must be a whole number of at least 1, got {number}")
    if fail_under is not None and not 0 <= fail_under <= 1:
        hint = f"; for {fail_under:g} % write {fail_under / 100:g}" if 1 < fail_under <= 100 else ""
        raise UsageError(f"--fail-under must be between 0 and 1, got {fail_under:g}{hint}")
    if resume and out is None:
        raise UsageError("--resume needs --out RUN: the folder of the run that is to go on")
    if retry and not resume:
        raise UsageError("--retry belongs to --resume: it judges again what a run has left undecided")
    from adjudge.result import REASONS

    for reason in retry or ():
        if reason not in REASONS:
            raise UsageError(f"--retry: unknown reason {reason!r}; use one of {', '.join(REASONS)}")


def _check_layers(cache: Path | None, budget: float | None, record: str | None) -> None:
    if cache is not None and record is not None:
        raise UsageError("--record keeps what is asked, and --cache keeps it from being asked; give one of them")
    if budget is not None and not 0 <= budget < float("inf"):
        raise UsageError(f"--budget must be US dollars, 0 or more; got {budget:g}")


def _check_pairs(on_conflict: str | None, refused: dict[str, Any], *, pairs: bool) -> None:
    if not pairs:
        raise UsageError("--on-conflict belongs to --pairs: it says what two orders that disagree come to")
    if on_conflict not in (None, "tie", "undecided"):
        raise UsageError(f"--on-conflict: {on_conflict!r} is neither tie nor undecided")
    for name, value in refused.items():
        if value:
            raise UsageError(f"--pairs compares two contents, and {name} is for judging one by itself; leave it out")
