"""``adjudge judge``: judge files, standard input or the cases of a data set."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from adjudge import Rubric
from adjudge.cli import _options as option
from adjudge.cli._choose import Panel, choose
from adjudge.cli._config import Config, read_config
from adjudge.cli._input import list_inputs, read_rule, read_text_file
from adjudge.cli._layers import Layers, open_layers, tell_uncached
from adjudge.cli._ledgers import open_recorder
from adjudge.cli._output import note
from adjudge.cli._session import Session
from adjudge.errors import UsageError


def judge(
    paths: option.Contents = None,
    rubric: option.RubricName = None,
    criteria: option.Criteria = None,
    threshold: option.Threshold = None,
    rules: option.Rules = None,
    reference: option.Reference = None,
    task: option.Task = None,
    context: option.Context = None,
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
    show_prompt: option.ShowPrompt = False,
    as_json: option.AsJson = False,
    concurrency: option.Concurrency = 8,
    config: option.ConfigFile = None,
    ledger: option.LedgerPlace = None,
    no_ledger: option.NoLedger = False,
) -> int:
    """Judge contents by a rubric or a sentence.

    PATH is a file with one content, or, ending in .jsonl or .parquet, a data set with one in each case; - is standard
    input, and so is no PATH at all.

    Without --judge, the judge is what [defaults] of adjudge.toml or ADJUDGE_JUDGE names, the first provider whose key
    is set, or a local server on its usual port.

    Every result is recorded where --ledger or [ledger] of adjudge.toml says, if one of them does.

    Exit status: 0 passed, 1 failed, 2 wrong usage or unreadable input, 3 undecided or not recorded. Of several
    inputs, 2 beats 1 beats 3 beats 0.
    """
    found = read_config(config)
    wanted = choose_rubric(rubric, criteria, threshold, found)
    how = list_arguments(wanted, criteria, threshold, rules)
    how |= _read_files({"reference": reference, "task": task, "context": context})
    chain = {"strategy": strategy, "quorum": quorum, "hedge_after": hedge_after, "escalate_below": escalate_below}
    panel = Panel(
        judges=tuple(judges or ()),
        timeout=timeout,
        chain=tuple(
            (name, value) for name, value in {**chain, "fail_open": fail_open or None}.items() if value is not None
        ),
        reader=reader,
        labels=reader_labels,
        passes=reader_passes,
        token=not no_token,
        record=record,
    )
    if concurrency < 1:
        raise UsageError(f"--concurrency must be a whole number of at least 1, got {concurrency}")
    inputs = list_inputs(paths)
    layers = _open_layers(cache, budget, record, found)
    chosen = choose(panel, found, wanted)
    if cache is not None:
        tell_uncached(chosen.judge)
    chosen = chosen if show_prompt else replace(chosen, judge=layers.wire(chosen.judge))
    if chosen.reason and not as_json:
        note(f"judging with {chosen.judge.name}, because {chosen.reason}; name another with --judge")
    recorder = open_recorder(found, ledger, off=no_ledger)
    session = Session(choice=chosen, how=how, inputs=inputs, as_json=as_json, recorder=recorder)
    # Not the library's sync door: an interrupt has to end here only when every call that was under way has ended.
    if show_prompt:
        return asyncio.run(session.show_prompts())
    try:
        return asyncio.run(session.judge(concurrency))
    finally:
        layers.close()


def _open_layers(cache: Path | None, budget: float | None, record: str | None, config: Config) -> Layers:
    if cache is not None and record is not None:
        raise UsageError("--record keeps what is asked, and --cache keeps it from being asked; give one of them")
    try:
        return open_layers(cache=cache, budget=budget, prices=config.prices)
    except UsageError as error:
        raise UsageError(f"--budget: {error}") from None


def choose_rubric(name: str | None, criteria: str | None, threshold: float | None, config: Config) -> Rubric | None:
    """The rubric the command line or the configuration names; ``None`` when ``--criteria`` says what is good."""
    if threshold is not None and not 0 <= threshold <= 1:
        hint = f"; for {threshold:g} % write {threshold / 100:g}" if 1 < threshold <= 100 else ""
        raise UsageError(f"--threshold must be between 0 and 1, got {threshold:g}{hint}")
    if name is not None and criteria is not None:
        raise UsageError("give --rubric or --criteria, not both")
    if criteria is not None:
        if not criteria.strip():
            raise UsageError("--criteria is empty; say in a sentence what is good")
        return None
    found = config.find_rubric(name) if name is not None else config.find_default_rubric()
    if found is None:
        extra = "; --threshold alone says nothing about what is good" if threshold is not None else ""
        raise UsageError(f"nothing says what good means: give --rubric NAME or --criteria TEXT{extra}")
    return found


def list_arguments(
    rubric: Rubric | None, criteria: str | None, threshold: float | None, rules: Sequence[str] | None
) -> dict[str, Any]:
    """The arguments of ``evaluate`` that the command line gives."""
    how: dict[str, Any] = {} if rubric is not None else {"criteria": criteria}
    how |= {} if threshold is None else {"threshold": threshold}
    return how | ({"rules": [read_rule(text) for text in rules]} if rules else {})


def _read_files(files: dict[str, Path | None]) -> dict[str, str]:
    return {name: read_text_file(path, what=f"--{name}") for name, path in files.items() if path is not None}
