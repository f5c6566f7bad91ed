"""Using tools through a registry: what runs, what is counted, and what is never handed on."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

import pytest

from adjudge import ToolRegistry
from kit.registries import HERE, add, fail, refused, run


def test_use_runs_what_was_reviewed_and_counts_it(store: str | None):
    """The caller's function is handed the candidate, sync or async; uses, durations and history are kept."""

    async def wait(candidate: Any, arguments: Any) -> Any:
        await asyncio.sleep(0)
        return {"sum": arguments["a"] + len(candidate.name)}

    async def go(registry: ToolRegistry) -> None:
        ident = await add(registry)
        first = await registry.use(ident, lambda made, given: {"sum": given["a"] + len(made.name)}, {"a": 1}, **HERE)
        second = await registry.use(ident, wait, {"a": 1}, **HERE)
        assert (bool(first), first.output, second.output) == (True, {"sum": 4}, {"sum": 4})
        usage = (await registry.get(ident)).tool.usage
        assert usage is not None
        assert (usage.uses, usage.successes, usage.history.count) == (2, 2, 2)
        assert usage.mean_ms > 0
        assert isinstance(usage.last_used_at, datetime)

    run(go, store)


@pytest.mark.parametrize("output", [{"sum": "3"}, {}, None, {1, 2}, float("nan")], ids=repr)
def test_an_output_that_does_not_fit_is_dropped_and_a_failure(store: str | None, output: Any):
    """Nobody goes on with it by mistake."""

    async def go(registry: ToolRegistry) -> None:
        ident = await add(registry)
        use = await registry.use(ident, lambda *_: output, {}, **HERE)
        assert (bool(use), use.output, use.verdict.valid) == (False, None, False)  # type: ignore[union-attr]
        counted = await registry.record_use(ident, True, 1.0, output)
        assert (counted.tool.usage.failures, counted.tool.usage.history.count) == (2, 0)  # type: ignore[union-attr]

    run(go, store)


@pytest.mark.parametrize(
    "error", [ValueError("no"), StopIteration(), SystemExit(0), asyncio.CancelledError()], ids=repr
)
def test_what_a_tool_raises_is_a_failure_and_a_result(store: str | None, error: BaseException):
    """It ends neither the program nor the caller's task."""

    async def raise_async(*_: Any) -> Any:
        raise error

    def raise_here(*_: Any) -> Any:
        raise error

    async def go(registry: ToolRegistry) -> None:
        ident = await add(registry)
        for each in (raise_async, raise_here):
            use = await registry.use(ident, each, {}, **HERE)
            assert (bool(use), use.error is not None) == (False, True)
        usage = (await registry.get(ident)).tool.usage
        assert usage is not None
        assert usage.failures == 2

    run(go, store)


def test_arguments_that_do_not_fit_run_nothing(store: str | None):
    """They are the caller's mistake and not the tool's, so no failure is counted."""

    async def go(registry: ToolRegistry) -> None:
        ident = await add(registry)
        with refused("arguments"):
            await registry.use(ident, fail, ["no object"], **HERE)
        assert (await registry.get(ident)).tool.usage.uses == 0  # type: ignore[union-attr]

    run(go, store)


def test_a_tool_that_is_demoted_while_it_runs_gives_nothing(store: str | None):
    """Its output is not handed over, and the use is not counted."""

    async def go(registry: ToolRegistry) -> None:
        ident = await add(registry)

        async def meanwhile(*_: Any) -> Any:
            await registry.demote(ident, "it lies", by="grace")
            return {"sum": 1}

        with refused("demoted"):
            await registry.use(ident, meanwhile, {}, **HERE)
        assert (await registry.get(ident)).tool.usage.uses == 0  # type: ignore[union-attr]

    run(go, store)
