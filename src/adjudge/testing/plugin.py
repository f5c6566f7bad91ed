"""The pytest plugin: fixtures ``judge`` and ``run_agent``, ``@pytest.mark.judged``, recordings, and a summary.

The fixture's objects are in ``fixture.py``, and the judging of marked tests is in ``marker.py``.

pytest loads it with every suite where adjudge is installed, so it imports next to nothing until a test needs a judge.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from adjudge.testing.running_test import running

if TYPE_CHECKING:
    from adjudge.testing.agent import TestAgent
    from adjudge.testing.fixture import Suite, TestJudge


_SUITE: pytest.StashKey[Suite] = pytest.StashKey()

_JUDGE: pytest.StashKey[TestJudge] = pytest.StashKey()

_AGENT: pytest.StashKey[TestAgent] = pytest.StashKey()

_FAILED: pytest.StashKey[bool] = pytest.StashKey()

_NOTE: pytest.StashKey[str] = pytest.StashKey()

_TEST_RAN: pytest.StashKey[bool] = pytest.StashKey()


_MARK_HELP = (
    "judged(rubric=None, criteria=None, threshold=None, repeat=1, at_least=repeat, judge=None, ...): judge what the "
    "test returns; run it `repeat` times, of which `at_least` must pass"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that say who judges, and whether replies are recorded or replayed."""
    group = parser.getgroup("adjudge", "judging with language models (adjudge)")
    group.addoption(
        "--judge",
        action="append",
        metavar="SPEC",
        help="who judges: a model, or a judge of adjudge.toml; several are a chain",
    )
    group.addoption("--judge-strategy", metavar="NAME", help="the strategy of the chain of several --judge")
    for mode, help_text in (
        ("record", "keep every reply, in a file for each test"),
        ("replay", "answer from what was recorded; nobody is asked, no key is needed"),
        ("live", "neither record nor replay; takes back either of the two"),
    ):
        group.addoption(f"--judge-{mode}", action="store_const", const=mode, dest="judge_mode", help=help_text)
    group.addoption("--agent-runs", metavar="DIR", help="where run_agent keeps the bundles of tests that fail")
    group.addoption("--judge-recordings", metavar="DIR", help="where recordings are (default: judge-recordings)")
    parser.addini("judge", "who judges, where --judge does not say", type="linelist")
    parser.addini("judge_recordings", "where recordings are, from the root directory", default="judge-recordings")


def pytest_configure(config: pytest.Config) -> None:
    """Name the mark, so that strict markers know it."""
    config.addinivalue_line("markers", _MARK_HELP)


@pytest.fixture(name="judge")
def provide_judge(request: pytest.FixtureRequest) -> TestJudge:
    """Give the judge: ``await judge(content, rubric=...)``, or ``judge.evaluate_sync(content, rubric=...)``."""
    return _find_judge(request.node)


@pytest.fixture(name="run_agent")
def provide_run_agent(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> TestAgent:
    """Give what runs an agent: ``await run_agent(prompt, agent=...)``, or ``run_agent.sync(prompt, agent=...)``."""
    from adjudge.config.agents import open_agent
    from adjudge.testing.agent import TestAgent

    item, judge = request.node, _find_judge(request.node)
    kept, file = item.config.getoption("agent_runs"), judge.cassette.file
    item.stash[_AGENT] = TestAgent(
        folders=(item.path.parent, item.config.rootpath),
        mode=judge.cassette.mode,
        file=file.with_name(f"{file.stem}-runs.jsonl"),
        record_command=judge.cassette.record_command,
        bundles=item.config.invocation_params.dir / Path(kept).expanduser() / file.stem
        if kept
        else tmp_path_factory.mktemp("agent-runs"),
        open_agent=lambda name: open_agent(_find_suite(item.config).load_config(), name),
    )
    return item.stash[_AGENT]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Let ``assert_passes`` find the test that is running."""
    with running(lambda: _find_judge(item)):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, Any, Any]:
    """Reset the state of a test, which a plugin may run again, and wrap the function of a marked test."""
    if _JUDGE in item.stash:
        del item.stash[_JUDGE]
    if _AGENT in item.stash:
        del item.stash[_AGENT]
    item.stash[_FAILED] = False
    item.stash[_NOTE] = ""
    item.stash[_TEST_RAN] = False
    outcome = yield
    mark = item.get_closest_marker("judged")
    if mark is not None:
        # After fixtures are set up: pytest's own unittest support replaces the function until then.
        _wrap_marked(item, mark)
    return outcome


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Record that the test has run to its end; reports of subtests are made before that, and do not count."""
    outcome = yield
    item.stash[_TEST_RAN] = True
    return outcome


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, Any, Any]:
    """Keep what was recorded, once all fixtures of the test are gone."""
    try:
        return (yield)
    finally:
        try:
            if _AGENT in item.stash:
                with _fail_on_usage_error():
                    item.stash[_AGENT].close(failed=item.stash[_FAILED])
        finally:
            if _JUDGE in item.stash:
                _close_judge(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put the test's judgements on its last report, as properties and as data for the summary."""
    is_last_report = call.when == "teardown" and _JUDGE in item.stash
    if is_last_report:
        from adjudge.testing.summary import list_properties

        other_properties = [pair for pair in item.user_properties if not pair[0].startswith("adjudge.")]
        results = item.stash[_JUDGE].results
        item.user_properties[:] = other_properties
        item.user_properties += [
            pair for number, result in enumerate(results, 1) for pair in list_properties(result, number)
        ]
    report = yield
    if call.when == "call" and report.passed and _lacks_judgement(item):
        _fail_report(item, report)
    if report.failed and call.when == "call":
        item.stash[_FAILED] = True
        if _AGENT in item.stash and item.stash[_AGENT].runs:
            report.sections.append(("agent runs", item.stash[_AGENT].describe()))
    if is_last_report:
        from adjudge.testing.summary import describe

        test, note = str(item.nodeid), item.stash.get(_NOTE, "")
        judged = [describe(result) | {"test": test} for result in item.stash[_JUDGE].results]
        # Plain data, because with xdist the worker sends the report to the process that prints.
        report.adjudge = {"judged": judged, "note": f"{test}: {note}" if note else ""}  # type: ignore[attr-defined]
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Write the summary of what was judged, if anything was."""
    reports = [report for group in terminalreporter.stats.values() for report in group]
    summaries = [report.adjudge for report in reports if isinstance(getattr(report, "adjudge", None), dict)]
    judged = [entry for summary in summaries for entry in summary["judged"]]
    notes = [summary["note"] for summary in summaries if summary["note"]]
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


def _lacks_judgement(item: pytest.Item) -> bool:
    """Return whether a marked test has run and the content that it returns was not judged."""
    is_marked = item.get_closest_marker("judged") is not None
    was_judged = _JUDGE in item.stash and item.stash[_JUDGE].concluded
    return is_marked and item.stash.get(_TEST_RAN, False) and not was_judged


def _fail_report(item: pytest.Item, report: pytest.TestReport) -> None:
    """Mark a test without a judgement as failed, because it could never fail; an expected failure, as xfailed."""
    from adjudge.testing.marker import explain_missing_judgement

    report.outcome = "skipped" if hasattr(report, "wasxfail") else "failed"
    report.longrepr = explain_missing_judgement(item)


def _close_judge(item: pytest.Item) -> None:
    """Close a test's judge, and keep the note for the summary."""
    with _fail_on_usage_error():
        item.stash[_NOTE] = item.stash[_JUDGE].close()


def _find_judge(item: pytest.Item) -> TestJudge:
    """Return the judge of a test, which is made at first use."""
    if _JUDGE not in item.stash:
        function = getattr(item, "originalname", None) or item.name
        item.stash[_JUDGE] = _find_suite(item.config).begin(str(item.nodeid), function, item.path.parent)
    return item.stash[_JUDGE]


def _find_suite(config: pytest.Config) -> Suite:
    """Return the suite of this session, which is made of pytest's options at first use."""
    if _SUITE not in config.stash:
        from adjudge.testing.fixture import Suite

        folder = config.getoption("judge_recordings") or config.getini("judge_recordings")
        config.stash[_SUITE] = Suite(
            root=config.rootpath,
            judge_names=tuple(config.getoption("judge") or config.getini("judge")),
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
    """List the command line's options for the judge and the recordings, for a command that runs a test again."""
    options = [("--judge", name) for name in config.getoption("judge") or ()]
    for option in ("--judge-strategy", "--judge-recordings"):
        value = config.getoption(option.removeprefix("--").replace("-", "_"))
        options += [(option, value)] if value is not None else []
    return tuple(part for pair in options for part in pair)


def _read_config(root: Path) -> Any:
    from adjudge.config.file import FILE, Config, read_config

    file = root / FILE
    return read_config(file) if file.exists() else Config()


def _open_panel(names: tuple[str, ...], strategy: str | None, named_in: Path | None, config: Any) -> Any:
    from adjudge.config.judges import Panel, choose

    chain = () if strategy is None else (("strategy", strategy),)
    return choose(Panel(judges=names, chain=chain, named_in=named_in), config).judge


def _wrap_marked(item: pytest.Item, mark: pytest.Mark) -> None:
    """Replace a test by a function that judges what the test returns; an invalid mark fails the test."""
    from adjudge.testing.marker import UNJUDGED, read_mark, replace_test, wrap

    if not isinstance(item, pytest.Function):
        pytest.fail(f"{item.name} is marked judged and is no function that could return what to judge", pytrace=False)
    # If the test runs again, it is wrapped already. The original function is wrapped, because the wrapper returns
    # nothing.
    test = getattr(item.obj, UNJUDGED, item.obj)
    with _fail_on_usage_error():
        replace_test(item, wrap(test, read_mark(mark.args, dict(mark.kwargs)), _find_judge(item)))


@contextmanager
def _fail_on_usage_error() -> Iterator[None]:
    """Fail the test with the message of a ``UsageError`` that the block raises, without a traceback."""
    from adjudge.errors import UsageError

    reason = ""
    try:
        yield
    except UsageError as error:
        reason = str(error)
    if reason:
        pytest.fail(reason, pytrace=False)
