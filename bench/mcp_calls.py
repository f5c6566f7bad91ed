#!/usr/bin/env python3
"""Measure what a guard of rules costs a call of an MCP tool: processor time, by the official client in this process.

300 calls one after the other in each round, medians of 5 interleaved rounds: without a guard, with one, and one append
to the same ledger. Target: the guard takes at most 2 ms more than the append of its decision.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from typing import Any

import common

sys.path.insert(0, str(common.BENCH.parent / "src"))

from mcp import Client
from mcp.server.mcpserver import MCPServer

from adjudge import Gate, Ledger
from adjudge.guards import ToolGuard
from adjudge.integrations.mcp import GateExtension

MOST_MS = 2.0


def make_server(*extensions: Any) -> MCPServer[Any]:
    """A server with one tool."""
    server: MCPServer[Any] = MCPServer("bench", log_level="CRITICAL", extensions=extensions)

    @server.tool()
    def shell(cmd: str) -> str:
        """Run a command."""
        return f"ran {cmd}"

    return server


async def time_calls(work: Callable[[str], Awaitable[Any]], place: int, count: int) -> float:
    """Milliseconds of processor time for each call."""
    gc.collect()
    started = time.process_time()
    for number in range(count):
        await work(f"ls {place} {number}")
    return (time.process_time() - started) / count * 1e3


async def measure(options: argparse.Namespace) -> dict[str, list[float]]:
    """The figures of every round, by contender."""
    with tempfile.TemporaryDirectory() as folder:
        async with Ledger(f"sqlite:///{folder}/adjudge.db") as ledger:
            gate = Gate("shell", rules=[{"not_contains": ["rm -rf"]}], ledger=ledger)
            guard = ToolGuard({"shell": gate})
            decision = await gate.check("an entry like those of the guard")
            async with Client(make_server()) as plain, Client(make_server(GateExtension(guard))) as guarded:

                async def append(_: str) -> int:
                    return await ledger.append(decision, kind="decision", subject=decision.subject, gate="shell")

                contenders: dict[str, Callable[[str], Awaitable[Any]]] = {
                    "without a guard": lambda cmd: plain.call_tool("shell", {"cmd": cmd}),
                    "with a guard": lambda cmd: guarded.call_tool("shell", {"cmd": cmd}),
                    "one append": append,
                }
                found: dict[str, list[float]] = {name: [] for name in contenders}
                for number in range(-1, options.rounds):  # the first is not counted
                    for name in common.rotate(list(contenders), number):
                        spent = await time_calls(contenders[name], number, options.n)
                        found[name] += [spent] if number >= 0 else []
                assert not (await guarded.call_tool("shell", {"cmd": "ls"})).is_error
                return found


def main() -> None:
    """Measure, print, and say whether the target is met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    found = asyncio.run(measure(parser.parse_args()))
    cost = {name: statistics.median(rows) for name, rows in found.items()}
    cost["guard beyond its append"] = cost["with a guard"] - cost["without a guard"] - cost["one append"]
    common.print_table(["call", "CPU ms"], [[name, f"{value:.2f}"] for name, value in cost.items()])
    figures = {"cpu_ms": {name: round(value, 2) for name, value in cost.items()}}
    common.print_verdict("mcp_calls", figures, met=cost["guard beyond its append"] <= MOST_MS)


if __name__ == "__main__":
    main()
