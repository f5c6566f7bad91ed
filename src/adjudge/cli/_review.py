"""``adjudge review``: put candidates for forged tools to a judge."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from adjudge.cli import _options as option
from adjudge.cli._choose import Panel, choose
from adjudge.cli._config import read_config
from adjudge.cli._input import Item
from adjudge.cli._output import complain, note, say, show_progress, write_json
from adjudge.cli._show import name_item
from adjudge.errors import UsageError
from adjudge.rules._words import flatten

if TYPE_CHECKING:
    from adjudge import CriterionResult
    from adjudge.tools import CreationVerdict

Candidates = Annotated[list[str], typer.Argument(metavar="CANDIDATE", hidden=True)]
Reviewed = tuple[Item, "CreationVerdict | None"]
"""A file and the verdict on what it holds; ``None`` where it could not be read, and the item says why."""


def review(
    paths: Candidates,
    judges: option.Judges = None,
    strategy: option.StrategyName = None,
    timeout: option.Timeout = None,
    quorum: option.Quorum = None,
    no_token: option.NoToken = False,
    record: option.Record = None,
    as_json: option.AsJson = False,
    concurrency: option.Concurrency = 8,
    config: option.ConfigFile = None,
) -> int:
    """Review forged tools: safe, correct, deterministic and bounded?

    CANDIDATE is a file of schema adjudge/tool-candidate/1 in YAML, JSON or TOML: name, description, schemas, mode,
    source or steps, and recorded tests. Nothing in it is run. Tests, expected outputs and schemas are checked here
    first; what they rule out is rejected without asking.

    Exit status: 0 approved, 1 rejected, 2 wrong usage or unreadable file, 3 undecided, which approves nothing. Of
    several files, 2 beats 1 beats 3 beats 0.
    """
    if concurrency < 1:
        raise UsageError(f"--concurrency must be a whole number of at least 1, got {concurrency}")
    given = {"strategy": strategy, "quorum": quorum}
    panel = Panel(
        judges=tuple(judges or ()),
        timeout=timeout,
        chain=tuple((name, value) for name, value in given.items() if value is not None),
        token=not no_token,
        record=record,
    )
    items = [_read(path) for path in paths]
    done: list[Reviewed] = [(item, None) for item in items]
    if any(item.error is None for item in items):  # else no judge is needed to say what is wrong
        chosen = choose(panel, read_config(config))
        if chosen.reason and not as_json:
            note(f"reviewing with {chosen.judge.name}, because {chosen.reason}; name another with --judge")
        done = asyncio.run(_review_all(chosen.judge, items, concurrency))
    (_write if as_json else _print)(done)
    for item, _ in done:
        if item.error is not None:
            complain(item.error)
    return find_status([verdict for _, verdict in done])


def find_status(verdicts: Sequence[CreationVerdict | None]) -> int:
    """The exit status of several files: unreadable beats rejected beats undecided beats approved."""
    if any(item is None for item in verdicts):
        return 2
    refused = [item for item in verdicts if item is not None and not item.approved]
    if any(not _is_undecided(item) for item in refused):
        return 1
    return 3 if refused else 0


def _is_undecided(verdict: CreationVerdict) -> bool:
    return verdict.chain_result is not None and verdict.chain_result.outcome != "failed"


async def _review_all(judge: Any, items: Sequence[Item], concurrency: int) -> list[Reviewed]:
    from adjudge.tools import EmergentJudge

    reviewer = EmergentJudge(judge)
    limit = asyncio.Semaphore(concurrency)

    async def work(content: Any) -> CreationVerdict:
        async with limit:
            verdict = await reviewer.review_creation(content)
        progress.step()
        return verdict

    try:
        with show_progress("reviewed", len(items)) as progress:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(work(item.content)) if item.error is None else None for item in items]
    except* UsageError as errors:
        raise errors.exceptions[0] from None
    finally:
        await reviewer.aclose()
    return [(item, task.result() if task is not None else None) for item, task in zip(items, tasks, strict=True)]


def _read(path: str) -> Item:
    from adjudge.tools import load_candidate

    try:
        return Item(name=path, content=load_candidate(path))
    except UsageError as error:
        return Item(name=path, error=str(error))


def _write(done: Sequence[Reviewed]) -> None:
    entries = [
        name_item(item) | (verdict.to_dict() if verdict is not None else {"error": item.error})
        for item, verdict in done
    ]
    if len(entries) > 1:
        write_json({"schema": "adjudge/creation-verdicts/1", "verdicts": entries})
    elif done[0][1] is not None:
        write_json(entries[0])


def _print(done: Sequence[Reviewed]) -> None:
    for item, verdict in done:
        if verdict is not None:
            said = _explain(verdict)
            say(said if len(done) == 1 else f"{item.label}: {said}")


def _explain(verdict: CreationVerdict) -> str:
    """The verdict on one line, whatever a judge wrote."""
    word = "approved" if verdict.approved else "undecided" if _is_undecided(verdict) else "rejected"
    result = verdict.chain_result
    if result is None and verdict.reasoning.startswith(word):  # nobody was asked, and the words are ours
        return " ".join(verdict.reasoning.split())
    marks = ""
    if result is not None and result.value is not None:
        low = [_say_why(item) for item in result.criteria if not item.passed]
        marks = f" with confidence {verdict.confidence:.2f}" + (f", not {', '.join(low)}" if low else "")
    return f"{word}{marks}: {' '.join(verdict.reasoning.split())}"


def _say_why(item: CriterionResult) -> str:
    """A dimension that did not pass, and what the reviewer found there."""
    found = flatten(item.reasoning, 200)
    return f"{item.name} ({found})" if found else item.name
