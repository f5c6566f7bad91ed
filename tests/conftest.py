"""How the tests run: two rings, samples of large tables, and the fixtures of every folder."""

from __future__ import annotations

import gc
import hashlib
import os
import signal
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from kit.environment import CI, FULL, SEED, require

SMALL = 24
"""A table of at most this many cases always runs whole."""

SHARE = 10
"""Of a larger one, marked ``matrix``, one case in this many runs, and every value of every parameter at least once."""

SLOW_SHARE = 3
"""Of a table marked ``slow_table``, whose cases each take a second or more, one in this many runs."""

SECOND_RING = ("integration", "slow", "timed")
"""Markers of the tests that the first ring leaves out."""

FIRST_RING_SHARE = 3
"""The first ring runs one case of a table in this many of those that the second does, and never less than ``SMALL``."""

EXAMPLES = 25
"""Examples of a property in the first ring; twice as many in the second, and 100 where ADJUDGE_FULL is 1."""

# The time one example takes says more about the machine than about the code; in CI the same examples run every time.
MOST_EXAMPLES = 100 if FULL else 2 * EXAMPLES
settings.register_profile("adjudge", max_examples=MOST_EXAMPLES, deadline=None, derandomize=CI, print_blob=not CI)
settings.register_profile("first ring", parent=settings.get_profile("adjudge"), max_examples=EXAMPLES)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option by which ``scripts/test`` asks for the first ring."""
    explanation = f"leave out tests marked {' or '.join(SECOND_RING)}, and try fewer cases of each table and property"
    parser.addoption("--first-ring", action="store_true", help=explanation)


def pytest_configure(config: pytest.Config) -> None:
    """Name the markers, and say how many examples each property has."""
    settings.load_profile("first ring" if config.getoption("first_ring") else "adjudge")
    config.addinivalue_line("markers", "matrix: a table of combinations, sampled unless ADJUDGE_FULL is 1")
    config.addinivalue_line("markers", "slow_table: one in three cases of it runs unless ADJUDGE_FULL is 1")
    config.addinivalue_line("markers", "full: runs only where ADJUDGE_FULL is 1, or where it is asked for by name")
    config.addinivalue_line("markers", "no_cover: not followed by coverage (of pytest-cov, which may be absent)")
    config.addinivalue_line("markers", "integration: needs another process, a browser, a cluster or a database server")
    config.addinivalue_line(
        "markers", "timed: listens on a port of this machine, lets real time pass, or reads a clock"
    )
    config.addinivalue_line("markers", "slow: waits for a clock, or takes about a second or more")
    sys.addaudithook(refuse_unmarked)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell ignores Ctrl-C for what it starts in the background, and so would the commands that tests interrupt.
        signal.signal(signal.SIGINT, signal.default_int_handler)


STARTS = frozenset({"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "os.spawn"})
"""Audit events of a process that starts. Those of ``multiprocessing`` have none."""

RUNNING: list[pytest.Item] = []
"""The test that runs now, if any."""


def refuse_unmarked(event: str, arguments: tuple[Any, ...]) -> None:
    """Fail a test that starts a process or listens on a port without the marker that says so.

    So ``-m "not integration"`` needs no other process, and ``-m "integration or timed"`` names every test that could
    depend on how busy the machine is.
    """
    listens = event == "socket.bind" and isinstance(arguments[1], tuple)  # a path is no port
    # git lists the files of the repository, once in a process (tests/kit/house.py).
    # Importing an old version of NumPy runs lscpu.
    is_known = event in STARTS and arguments[:1] in {("git",), ("lscpu",)}
    if not RUNNING or is_known or not (listens or event in STARTS):
        return
    test = RUNNING[-1]
    markers = ("integration",) if event in STARTS else ("integration", "timed")
    if not any(test.get_closest_marker(name) for name in markers):
        raise RuntimeError(f"{test.nodeid} causes {event}: mark it {' or '.join(markers)}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None):
    """Remember which test runs, and keep the collector of garbage from what a finished file of tests leaves behind.

    Reports and what fixtures of a session hold live to the end. A test that has everything collected looked at all of
    it otherwise, which took a fifth of the suite's time.
    """
    RUNNING.append(item)
    try:
        return (yield)
    finally:
        RUNNING.pop()
        if nextitem is None or nextitem.path != item.path:
            gc.collect()
            gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Keep the collector of garbage from looking at the tests and at what they import, which live to the end.

    A test that has everything collected, to see what nobody closed, otherwise takes a second and more for that alone.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say which ring and which part of the large tables runs, so that a failure can be repeated."""
    ring = "the first ring; --all of scripts/test runs the rest" if config.getoption("first_ring") else "both rings"
    return [ring, "tables of combinations: whole" if FULL else f"tables of combinations: a sample, ADJUDGE_SEED={SEED}"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what asks for PostgreSQL, and leave out what is not in the ring or in the sample, alike in all workers."""
    for item in items:
        if "postgres" in getattr(item, "fixturenames", ()) or "postgres" in get_values(item):
            item.add_marker(pytest.mark.integration)
    first = config.getoption("first_ring")
    left_out = {item for item in items if first and any(item.get_closest_marker(name) for name in SECOND_RING)}
    if not FULL and not any(argument.endswith("]") for argument in config.args):  # cases asked for by name all run
        left_out |= find_unsampled(items, first=first)
    if not FULL and not any("::" in argument for argument in config.args):
        left_out |= {item for item in items if item.get_closest_marker("full")}
    for item in items if first else ():
        try_fewer(item)
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]


def find_unsampled(items: Iterable[pytest.Item], *, first: bool) -> set[pytest.Item]:
    """The cases of tables that the sample does not hold; in the first ring a small one."""
    tables: dict[str, list[pytest.Item]] = defaultdict(list)
    slow: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if hasattr(item, "callspec"):
            name = item.nodeid.partition("[")[0]
            if item.get_closest_marker("matrix"):
                tables[name].append(item)
            elif item.get_closest_marker("slow_table"):
                slow[name].append(item)
    share = SHARE * FIRST_RING_SHARE if first else SHARE
    left_out = {item for table in tables.values() if len(table) > SMALL for item in set(table) - sample(table, share)}
    few = {name: 1 if first else max(1, len(table) // SLOW_SHARE) for name, table in slow.items()}
    return left_out | {item for name, table in slow.items() for item in draw(table)[few[name] :]}


def try_fewer(item: pytest.Item) -> None:
    """Give a property that asks for many examples as few as the first ring's profile gives to the others."""
    function = getattr(item, "obj", None)
    asked = getattr(function, "_hypothesis_internal_use_settings", None)
    if asked is not None and asked.max_examples > EXAMPLES:
        function._hypothesis_internal_use_settings = settings(asked, max_examples=EXAMPLES)


def sample(table: Iterable[pytest.Item], share: int) -> set[pytest.Item]:
    """Cases by seeded chance: the first in every ``share``, and each that brings a value no other has brought."""
    drawn = draw(table)
    kept = set(drawn[: max(SMALL, len(drawn) // share)])
    seen = {value for item in kept for value in values(item)}
    for item in drawn:
        if not values(item) <= seen:
            kept.add(item)
            seen |= values(item)
    return kept


def draw(table: Iterable[pytest.Item]) -> list[pytest.Item]:
    """The cases of a table in an order by seeded chance."""
    return sorted(table, key=lambda item: hashlib.sha256(f"{SEED} {item.nodeid}".encode()).digest())


def get_values(item: pytest.Item) -> list[object]:
    """The values of a case's parameters that are text."""
    return (
        [value for value in item.callspec.params.values() if isinstance(value, str)]
        if hasattr(item, "callspec")
        else []
    )


def values(item: pytest.Item) -> set[tuple[str, int]]:
    """The values of a case's parameters; by identity, since a value need not have a hash."""
    return {(name, id(value)) for name, value in item.callspec.params.items()}


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector):
    """Where ADJUDGE_CI is 1, a file that skips itself as a whole fails: ``pytest.importorskip`` at its top, say.

    Otherwise a package that an environment lost takes the file's tests with it, and the suite still passes.
    """
    report = yield
    if CI and report.skipped and isinstance(collector, pytest.Module):
        report.outcome = "failed"
        report.longrepr = f"{report.longrepr[-1]} (skips are failures because ADJUDGE_CI=1)"
    return report


@pytest.fixture(name="require")
def provide_require():
    """``require`` for tests that prefer to ask for it by name."""
    return require


@pytest.fixture(scope="session")
def cases() -> Path:
    """The directory of shared cases that ADJUDGE_CASES names; tests that read them skip wherever it is not set."""
    named = os.environ.get("ADJUDGE_CASES")
    if not named or not Path(named).is_dir():
        pytest.skip("ADJUDGE_CASES names no directory; these cases are optional everywhere")
    return Path(named)


@pytest.fixture(name="url")
def make_url(tmp_path: Path) -> str:
    """A ledger of the test's own."""
    return f"sqlite:///{tmp_path / 'adjudge.db'}"
