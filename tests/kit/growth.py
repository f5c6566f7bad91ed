"""The growth of the cost of work with its size: a ratio, which says the same on a fast machine and on a busy one."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from typing import Any


def measure_growth(work: Callable[[int], object], size: int) -> float:
    """Measure how many times as much processor time ``work`` takes at four times the size.

    About 4 where it is linear, 16 where it is quadratic. The least of three tries each, interleaved, with
    the garbage collector off: in a process that has run thousands of tests one collection takes longer than the work.
    """
    took: dict[int, list[float]] = {size: [], 4 * size: []}
    gc.collect()
    gc.disable()
    try:
        for _ in range(3):
            for each, times in took.items():
                started = time.process_time()
                work(each)
                times.append(time.process_time() - started)
    finally:
        gc.enable()
    return min(took[4 * size]) / min(took[size])


def count_growth(work: Callable[[int], object], size: int) -> float:
    """Count how many times as many functions ``work`` calls at four times the size, on however busy a machine.

    About 4 where it is linear, 16 where it is quadratic. What one function of C does is one call.
    """
    return _count_calls(work, 4 * size) / _count_calls(work, size)


def _count_calls(work: Callable[[int], object], size: int) -> int:
    calls = 0

    def count(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work(size)
    finally:
        sys.setprofile(before)
    return calls
