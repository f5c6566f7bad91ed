"""What several test files share: a sample of large tables, skips of missing components, and the shared cases."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

CI = os.environ.get("ADJUDGE_CI") == "1"
FULL = os.environ.get("ADJUDGE_FULL") == "1"
SEED = os.environ.get("ADJUDGE_SEED", "0")

SMALL = 24
"""A table of at most this many cases always runs whole."""

SHARE = 10
"""Of a larger one, marked ``matrix``, one case in this many runs, and every value of every parameter at least once."""

SLOW_SHARE = 3
"""Of a table marked ``slow_table``, whose cases each take a second or more, one in this many runs."""

# The time one example takes says more about the machine than about the code; in CI the same examples run every time.
settings.register_profile("adjudge", deadline=None, derandomize=CI, print_blob=not CI)
settings.load_profile("adjudge")


def pytest_configure(config: pytest.Config) -> None:
    """Name the marker of large tables."""
    config.addinivalue_line("markers", "matrix: a table of combinations, sampled unless ADJUDGE_FULL is 1")
    config.addinivalue_line("markers", "slow_table: one in three cases of it runs unless ADJUDGE_FULL is 1")
    config.addinivalue_line("markers", "no_cover: not followed by coverage (of pytest-cov, which may be absent)")
    config.addinivalue_line("markers", "integration: needs another process, a browser, a cluster or a database server")
    config.addinivalue_line("markers", "timed: listens on a port of this machine, or lets real time pass")
    sys.addaudithook(refuse_unmarked)


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
    lists_files = event in STARTS and arguments[:1] == ("git",)  # tests/house.py, once in a process
    if not RUNNING or lists_files or not (listens or event in STARTS):
        return
    test = RUNNING[-1]
    markers = ("integration",) if event in STARTS else ("integration", "timed")
    if not any(test.get_closest_marker(name) for name in markers):
        raise RuntimeError(f"{test.nodeid} causes {event}: mark it {' or '.join(markers)}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item):
    """Remember which test runs."""
    RUNNING.append(item)
    try:
        return (yield)
    finally:
        RUNNING.pop()


def pytest_report_header() -> str:
    """Say which part of the large tables runs, so that a failure can be repeated."""
    return "tables of combinations: whole" if FULL else f"tables of combinations: a sample, ADJUDGE_SEED={SEED}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what asks for PostgreSQL, and leave out what the sample does not hold, the same in each worker of xdist."""
    for item in items:
        if "postgres" in getattr(item, "fixturenames", ()) or "postgres" in get_values(item):
            item.add_marker(pytest.mark.integration)
    if FULL:
        return
    tables: dict[str, list[pytest.Item]] = defaultdict(list)
    slow: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if hasattr(item, "callspec"):
            name = item.nodeid.partition("[")[0]
            if item.get_closest_marker("matrix"):
                tables[name].append(item)
            elif item.get_closest_marker("slow_table"):
                slow[name].append(item)
    left_out = {item for table in tables.values() if len(table) > SMALL for item in set(table) - sample(table)}
    left_out |= {item for table in slow.values() for item in draw(table)[max(1, len(table) // SLOW_SHARE) :]}
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]


def sample(table: Iterable[pytest.Item]) -> set[pytest.Item]:
    """Cases by seeded chance: the first in every ``SHARE``, and each that brings a value no other has brought."""
    drawn = draw(table)
    kept = set(drawn[: max(SMALL, len(drawn) // SHARE)])
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


def require(component: str, present: object, how: str) -> None:
    """Skip a test, by name, where something it needs is absent; where ADJUDGE_CI is 1, fail instead.

    ``how`` completes "to have it, ...": ``pip install xllamacpp``. Without this a check that silently stopped running
    looks the same as one that passes.
    """
    if present:
        return
    sentence = f"{component} is absent; to have it, {how}"
    if CI:
        pytest.fail(f"{sentence} (skips are failures because ADJUDGE_CI=1)", pytrace=False)
    pytest.skip(sentence)


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


def read_vectors(cases: Path, *, features: tuple[str, ...]) -> list[dict[str, Any]]:
    """The shared conformance cases of these features (by how they begin), or a skip where the folder has none.

    How many there are, and how they are called, is the folder's business: a test holds every one it finds.
    """
    path = cases / "conformance" / "vectors.json"
    every = json.loads(path.read_text("utf-8")) if path.is_file() else []
    found = [case for case in every if case["feature"].startswith(features)]
    if not found:
        pytest.skip(f"the folder of ADJUDGE_CASES has no case of {', '.join(features)}")
    return found


def find_data(cases: Path, name: str) -> Path:
    """A shared data file, or a skip that names it."""
    path = cases / "data" / name
    if not path.is_file():
        pytest.skip(f"the folder of ADJUDGE_CASES has no data/{name}")
    return path


@pytest.fixture(scope="session")
def cases() -> Path:
    """The directory of shared cases that ADJUDGE_CASES names; tests that read them skip wherever it is not set."""
    named = os.environ.get("ADJUDGE_CASES")
    if not named or not Path(named).is_dir():
        pytest.skip("ADJUDGE_CASES names no directory; these cases are optional everywhere")
    return Path(named)
