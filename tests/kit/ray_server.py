"""The mock of the benchmarks as a server whose verdict follows from the item alone: asked twice, it says the same."""

from __future__ import annotations

import asyncio
import importlib
import re
import sys


def main() -> None:
    """Serve in a process of its own, with the mock in the folder that the command line names."""
    sys.path.insert(0, sys.argv[1])
    mock = importlib.import_module("mock_llm")
    find_answer, failing = mock.find_answer, mock.Settings("run-failing_v-0")

    def find(request, settings, *, cut):
        """Every third item fails, and every fiftieth reply cannot be read."""
        number = int(re.search(r"item-(\d+)", str(request["messages"][-1]["content"]))[1])
        return find_answer(request, failing if number % 3 == 0 else settings, cut=number % 50 == 49)

    mock.find_answer = find
    asyncio.run(mock.serve(0))
