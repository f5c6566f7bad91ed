"""The pytest plugin: a ``judge`` fixture, ``@pytest.mark.judged``, recordings, and a summary of what was judged.

pytest loads it with every suite where adjudge is installed, so it imports next to nothing until a test asks.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from adjudge.testing.current import running

if TYPE_CHECKING:
    from adjudge.testing.fixture import Suite, TestJudge


_SUITE: pytest.StashKey[Suite] = pytest.StashKey()

_JUDGE: pytest.StashKey[TestJudge] = pytest.StashKey()

_NOTE: pytest.StashKey[str] = pytest.StashKey()

_CALLED: pytest.StashKey[bool] = pytest.StashKey()


_MARK = (
    "judged(rubric=None, criteria=None, threshold=None, repeat=1, at_least=repeat, judge=None, ...): judge what the "
    "test returns; run it `repeat` times, of which `at_least` must pass"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Who judges, and whether replies are recorded or replayed."""
    group = parser.getgroup("adjudge", "judging with language models (adjudge)")
    group.addoption(
        "--judge",
        action="append",
        metavar="SPEC",
        help="who judges: a model, or a judge of adjudge.toml; several are a chain",
    )
    group.addoption("--judge-strategy", metavar="NAME", help="the strategy of the chain of several --judge")
    for mode, said in (
        ("record", "keep every reply, in a file for each test"),
        ("replay", "answer from what was recorded; nobody is asked, no key is needed"),
        ("live", "neither record nor replay; takes back either of the two"),
    ):
        group.addoption(f"--judge-{mode}", action="store_const", const=mode, dest="judge_mode", help=said)
    group.addoption("--judge-recordings", metavar="DIR", help="where recordings are (default: judge-recordings)")
    parser.addini("judge", "who judges, where --judge does not say", type="linelist")
    parser.addini("judge_recordings", "where recordings are, from the root directory", default="judge-recordings")


def pytest_configure(config: pytest.Config) -> None:
    """Name the mark, so that strict markers know it."""
    config.addinivalue_line("markers", _MARK)


@pytest.fixture(name="judge")
def provide_judge(request: pytest.FixtureRequest) -> TestJudge:
    """The suite's judge: ``await judge(content, rubric=...)``, or ``judge.evaluate_sync(content, rubric=...)``."""
    return _find(request.node)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Let ``assert_passes`` find the test that is running."""
    with running(lambda: _find(item)):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, Any, Any]:
    """Begin a test anew, also when a plugin runs it again, and prepare one that is marked."""
    if _JUDGE in item.stash:
        del item.stash[_JUDGE]
    item.stash[_NOTE] = ""
    item.stash[_CALLED] = False
    done = yield
    mark = item.get_closest_marker("judged")
    if mark is not None:
        # After fixtures are set up: pytest's own unittest support replaces the function until then.
        _mark(item, mark)
    return done


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Note that the test is over: a subtest's report, which is made before, says nothing about the test."""
    done = yield
    item.stash[_CALLED] = True
    return done


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, Any, Any]:
    """Keep what was recorded, once all fixtures of the test are gone."""
    try:
        return (yield)
    finally:
        if _JUDGE in item.stash:
            _close(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put the test's judgements on its last report, as properties and as data for the summary."""
    last = call.when == "teardown" and _JUDGE in item.stash
    if last:
        from adjudge.testing.summary import list_properties

        kept = [pair for pair in item.user_properties if not pair[0].startswith("adjudge.")]
        results = item.stash[_JUDGE].results
        item.user_properties[:] = kept
        item.user_properties += [
            pair for number, result in enumerate(results, 1) for pair in list_properties(result, number)
        ]
    report = yield
    if call.when == "call" and report.passed and _lacks(item):
        _refuse(item, report)
    if last:
        from adjudge.testing.summary import describe

        test, note = str(item.nodeid), item.stash.get(_NOTE, "")
        judged = [describe(result) | {"test": test} for result in item.stash[_JUDGE].results]
        # Plain data: with xdist the report travels from the worker to the process that prints.
        report.adjudge = {"judged": judged, "note": f"{test}: {note}" if note else ""}  # type: ignore[attr-defined]
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What was judged, where something was."""
    reports = [report for found in terminalreporter.stats.values() for report in found]
    told = [report.adjudge for report in reports if isinstance(getattr(report, "adjudge", None), dict)]
    judged = [entry for each in told for entry in each["judged"]]
    notes = [each["note"] for each in told if each["note"]]
    if not judged and not notes:
        return
    from adjudge.testing.summary import summarise

    config = terminalreporter.config
    mode = config.getoption("judge_mode")
    terminalreporter.section("judgements")
    for line in summarise(judged, notes):
        terminalreporter.write_line(line)
    if mode in ("record", "replay"):
        terminalreporter.write_line(f"{mode}ed {'in' if mode == 'record' else 'from'} {_find_suite(config).folder}")


def _lacks(item: pytest.Item) -> bool:
    """Whether a test is over, and marked, and what it returns was not judged."""
    marked = item.get_closest_marker("judged") is not None
    return marked and item.stash.get(_CALLED, False) and not (_JUDGE in item.stash and item.stash[_JUDGE].concluded)


def _refuse(item: pytest.Item, report: pytest.TestReport) -> None:
    """Make a failed test of one that would be green for ever; of one that is expected to fail, one that did."""
    from adjudge.testing.marker import find_lack

    report.outcome = "skipped" if hasattr(report, "wasxfail") else "failed"
    report.longrepr = find_lack(item)


def _close(item: pytest.Item) -> None:
    with _failing():
        item.stash[_NOTE] = item.stash[_JUDGE].close()


def _find(item: pytest.Item) -> TestJudge:
    """The judge of a test, made when it first asks."""
    if _JUDGE not in item.stash:
        function = getattr(item, "originalname", None) or item.name
        item.stash[_JUDGE] = _find_suite(item.config).begin(str(item.nodeid), function, item.path.parent)
    return item.stash[_JUDGE]


def _find_suite(config: pytest.Config) -> Suite:
    if _SUITE not in config.stash:
        from adjudge.testing.fixture import Suite

        folder = config.getoption("judge_recordings") or config.getini("judge_recordings")
        config.stash[_SUITE] = Suite(
            root=config.rootpath,
            named=tuple(config.getoption("judge") or config.getini("judge")),
            named_in=None if config.getoption("judge") or config.inipath is None else config.inipath.parent,
            strategy=config.getoption("judge_strategy"),
            mode=config.getoption("judge_mode") or "live",
            folder=config.rootpath / Path(folder).expanduser(),
            options=_list_options(config),
            open_panel=_open_panel,
            read_config=_read_config,
        )
    return config.stash[_SUITE]


def _list_options(config: pytest.Config) -> tuple[str, ...]:
    """What the command line said of who judges and of where recordings are, to be said again; not what is in files."""
    given = [("--judge", name) for name in config.getoption("judge") or ()]
    for option in ("--judge-strategy", "--judge-recordings"):
        said = config.getoption(option.removeprefix("--").replace("-", "_"))
        given += [(option, said)] if said is not None else []
    return tuple(part for pair in given for part in pair)


def _read_config(root: Path) -> Any:
    from adjudge.config.file import FILE, Config, read_config

    file = root / FILE
    return read_config(file) if file.exists() else Config()


def _open_panel(names: tuple[str, ...], strategy: str | None, named_in: Path | None, config: Any) -> Any:
    from adjudge.config.judges import Panel, choose

    chain = () if strategy is None else (("strategy", strategy),)
    return choose(Panel(judges=names, chain=chain, named_in=named_in), config).judge


def _mark(item: pytest.Item, mark: pytest.Mark) -> None:
    from adjudge.testing.marker import UNJUDGED, put, read_mark, wrap

    if not isinstance(item, pytest.Function):
        pytest.fail(f"{item.name} is marked judged and is no function that could return what to judge", pytrace=False)
    # A test that is run again would else judge what the first run's judging returned: nothing.
    test = getattr(item.obj, UNJUDGED, item.obj)
    with _failing():
        put(item, wrap(test, read_mark(mark.args, dict(mark.kwargs)), _find(item)))


@contextmanager
def _failing() -> Iterator[None]:
    """A block whose ``UsageError`` fails the test by its sentence alone."""
    from adjudge.errors import UsageError

    why = ""
    try:
        yield
    except UsageError as error:
        why = str(error)
    if why:
        pytest.fail(why, pytrace=False)
