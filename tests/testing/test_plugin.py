"""The plugin in suites of its own: each test here writes a suite, runs it, and reads what came of it."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ET
from importlib.util import find_spec
from pathlib import Path

import pytest

from kit import house
from kit.patience import HANG
from kit.suites import INI, INSTALLED, MODEL, PLUGIN, POLITE, SUITE, provide_suite, recordings, run, write

pytest_plugins = ["pytester"]
__all__ = ["provide_suite"]


# ---------------------------------------------------------------- asking


def test_the_fixture_is_called_in_a_test_without_a_loop(suite):
    """``judge.evaluate_sync`` returns a result, and ``ask_sync`` asks a ready-made prompt."""
    write(
        suite,
        "def test_one(judge):",
        f"    assert judge.evaluate_sync('nice', {POLITE}).passed",
        f"    assert judge.evaluate_sync('rude', {POLITE}).outcome == 'failed'",
        "    assert judge.name == 'fake' and judge.ask_sync('Safe?').undecided_because == 'unparseable'",
    )

    run(suite).assert_outcomes(passed=1)


def test_the_fixture_is_awaited_in_a_test_with_a_loop(suite):
    """``await judge(result, rubric=..., throw_on_fail=True)`` under anyio; an object is judged by its ``output``."""
    write(
        suite,
        "from adjudge import Criterion, JudgmentFailed, Rubric",
        "from types import SimpleNamespace",
        "RUBRIC = Rubric(name='Polite', criteria=[Criterion(name='is-polite', description='Is polite.')])",
        "@pytest.fixture",
        "def anyio_backend(): return 'asyncio'",
        "@pytest.mark.anyio",
        "async def test_one(judge):",
        "    result = await judge(SimpleNamespace(output='nice'), rubric=RUBRIC, throw_on_fail=True)",
        "    assert result.passed and result.criterion('is-polite').score == 0.9",
        "    with pytest.raises(JudgmentFailed) as caught:",
        "        await judge('rude', rubric=RUBRIC, throw_on_fail=True)",
        "    assert caught.value.result.outcome == 'failed'",
        "    import asyncio",
        "    async with asyncio.TaskGroup() as group:",
        "        task = group.create_task(judge('nice', rubric=RUBRIC))",
        "    assert task.result().passed",
    )

    run(suite).assert_outcomes(passed=1)


def test_pytest_asyncio_runs_tests_that_judge(suite, require):
    """A test and a marked test under pytest-asyncio; ``assert_passes`` works inside the running loop."""
    require("pytest-asyncio", find_spec("pytest_asyncio"), "pip install pytest-asyncio")
    write(
        suite,
        "@pytest.mark.asyncio",
        "async def test_one(judge):",
        f"    assert (await judge('nice', {POLITE})).passed",
        f"    assert_passes('nice', {POLITE}, judge=judge)",
        "@pytest.mark.asyncio",
        f"@pytest.mark.judged({POLITE}, repeat=2)",
        "async def test_marked():",
        "    return 'rude'",
    )

    run(suite).assert_outcomes(passed=1, failed=1)


def test_a_judgement_that_is_not_awaited_fails_the_test(suite):
    """It asked nothing, so it is neither true nor forgotten."""
    write(
        suite,
        "def test_truth(judge):",
        f"    assert judge('rude', {POLITE})",
        "def test_member(judge):",
        f"    assert judge('rude', {POLITE}).passed",
        "def test_forgotten(judge):",
        f"    judge('rude', {POLITE})",
    )
    done = run(suite)

    done.assert_outcomes(failed=2, passed=1, errors=3)
    done.stdout.fnmatch_lines(["*was not awaited; await it*", "*has no 'passed' before it is awaited*"])


# ---------------------------------------------------------------- assertions


@pytest.mark.slow_table
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "pytest test_it.py::test_one --judge python:fake:model"),
        (("--judge", "my judge"), "--judge python:fake:model --judge 'my judge'"),
        (
            ("--judge", "python:fake:model2", "--judge-strategy", "consensus"),
            "--judge python:fake:model2 --judge-strategy consensus",
        ),
        (("--judge-record", "--judge-recordings", "a b"), "--judge-recordings 'a b' --judge-record"),
    ],
)
def test_the_command_that_runs_a_test_again_asks_the_same_judge(suite, options: tuple[str, ...], words: str):
    """It repeats what the command line said of who judges, quoted for a shell."""
    suite.makepyfile(fake=f"{MODEL}\nmodel2 = model\n")
    suite.makefile(".toml", adjudge='[judges."my judge"]\nseats = ["python:fake:model2"]\n')
    write(suite, f"def test_one(): assert_passes('rude', {POLITE})")
    done = run(suite, *options)

    done.assert_outcomes(failed=1)
    assert [line.rstrip() for line in done.outlines if "again: pytest test_it.py::test_one" in line and words in line]


def test_a_judge_that_a_file_names_is_not_repeated(suite):
    """The next run reads the same file."""
    suite.makeini(f"{INI}judge = python:fake:model\n")
    write(suite, f"def test_one(): assert_passes('rude', {POLITE})")
    done = run(suite, judge=None)

    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["E *again: pytest test_it.py::test_one"])


@pytest.mark.slow
def test_a_failed_assertion_says_criterion_by_criterion_why(suite):
    """Score against threshold, a bar, the reasoning without control characters, and how to run it again."""
    write(suite, f"def test_one(): assert_passes('rude', {POLITE})", f"def test_two(): assert_passes('nice', {POLITE})")
    done = run(suite)

    done.assert_outcomes(failed=1, passed=1)
    done.stdout.fnmatch_lines(
        [
            "E *AssertionError: ✗ failed 0.20 of 0.70 needed (judge fake)",
            "E *  0.20 ██░░░░░░░░ is-polite",
            "E *·?31mas it reads",
            "E *again: pytest test_it.py::test_one --judge python:fake:model",
        ]
    )
    assert "\x1b[31mas" not in done.stdout.str()


def test_the_fixture_asserts_as_well(suite):
    """``judge.assert_passes`` is the assertion with the suite's judge, in a test without an event loop."""
    write(
        suite,
        f"def test_one(judge): assert judge.assert_passes('nice', {POLITE}).passed",
        f"def test_two(judge): judge.assert_passes('rude', {POLITE})",
        f"async def ask(judge): return judge.assert_passes('nice', {POLITE})",
        "def test_three(judge): import asyncio; assert asyncio.run(ask(judge)).passed",
    )
    done = run(suite)

    done.assert_outcomes(passed=2, failed=1)
    done.stdout.fnmatch_lines(["*AssertionError: ✗ failed*", "*judged:*", "*rude*"])


def test_a_failing_marked_test_shows_what_it_returned(suite):
    """Cut to its beginning, without a character that a terminal would act on."""
    write(
        suite,
        f"@pytest.mark.judged({POLITE})",
        "def test_one(): return 'rude \\x1b[31mand red\\nsecond line ' + 'x' * 5000",
    )
    done = run(suite)

    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*judged:*", "*rude *and red*", "*second line xxx*…*"])
    assert "\x1b[31mand" not in done.stdout.str()
    assert "x" * 2_100 not in done.stdout.str()


def test_an_undecided_judge_passes_nothing(suite):
    """A judge that breaks fails the assertion, says so, and says what may help."""
    write(suite, f"def test_one(): assert_passes('nice', {POLITE})")
    done = run(suite, judge="python:fake:broken")

    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["E *? undecided (error)*", "E *reset*", "E *undecided is not a pass; *adjudge doctor*"])


def test_a_model_that_cannot_copy_the_token_is_asked_without_it_and_no_doctor(suite):
    """The result says what to do; of prose, which no option makes readable, the doctor says more."""
    suite.makepyfile(
        other="""
        def tokenless(prompt):
            return '{"criteria": [{"name": "is-polite", "score": 0.9}]}'

        def prose(prompt):
            return "It is fine, I think."
        """
    )
    write(suite, f"def test_one(): assert_passes('nice', {POLITE})")
    tokenless, prose = (run(suite, judge=f"python:other:{name}") for name in ("tokenless", "prose"))

    tokenless.stdout.fnmatch_lines(["E *? undecided (unparseable)*", "E *--no-token (token=False in Python)*"])
    assert "adjudge doctor" not in tokenless.stdout.str()
    prose.stdout.fnmatch_lines(["E *? undecided (unparseable)*", "E *undecided is not a pass; adjudge doctor *"])


def test_no_doctor_is_named_for_a_function_that_is_given_the_content(suite):
    """Its detail says what it may return: in an assertion, in a note and in a marked test."""
    write(
        suite,
        "import pytest",
        "def hasty(content): return {'criteria': []}",
        "def test_one(): assert_passes('nice', criteria='Is polite.', judge=hasty)",
        "def test_two(judge): judge.evaluate_sync('nice', criteria='Is polite.', judge=hasty, throw_on_fail=True)",
        "@pytest.mark.judged(criteria='Is polite.', judge=hasty)",
        "def test_three(): return 'nice'",
    )
    done = run(suite)

    done.assert_outcomes(failed=3)
    done.stdout.fnmatch_lines(
        ["*undecided (missing_criterion)*", "*; return one score for each criterion, by its name: *"] * 3
    )
    assert "adjudge doctor" not in done.stdout.str()


def test_a_function_that_raises_is_placed_and_no_server_is_looked_for(suite):
    """Its file and line are what there is to mend."""
    write(
        suite,
        "def boom(content) -> bool:",
        "    raise ValueError('nope')",
        "def test_one(): assert_passes('nice', criteria='Is polite.', judge=boom)",
    )
    done = run(suite)

    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["E *boom raised ValueError: nope at test_it.py:4", "E *undecided is not a pass; *"])
    assert "adjudge doctor" not in done.stdout.str()


def test_nobody_to_judge_is_a_failure_and_not_a_skip(suite):
    """Without a judge the test fails by a sentence that says how to name one."""
    write(suite, f"def test_one(): assert_passes('nice', {POLITE})")
    done = run(suite, judge=None)

    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*UsageError: there is no judge: name a model with --judge*"])


def test_a_call_may_bring_its_own_judge(suite):
    """``judge=`` takes a judge, a function or a chain, over the suite's."""
    write(
        suite,
        "from adjudge import JudgeChain, Judge",
        "import fake",
        f"def test_one(): assert assert_passes('nice', {POLITE}, judge=Judge(fake.model, name='mine')).judge == 'mine'",
        "def test_two():",
        "    chain = JudgeChain([fake.model, fake.twin], strategy='consensus')",
        f"    result = assert_passes('nice', {POLITE}, judge=chain)",
        "    assert len(result.results) == 2",
    )

    run(suite, judge=None).assert_outcomes(passed=2)


# ---------------------------------------------------------------- who judges


def test_the_judge_is_named_by_the_nearest(suite, monkeypatch):
    """The command line, then pytest's configuration, then adjudge.toml of the root directory, then ADJUDGE_JUDGE."""
    write(suite, f"def test_one(judge): assert judge.evaluate_sync('nice', {POLITE}).judge == 'told'")
    (suite.path / "fake.py").write_text(
        MODEL + "told = ScriptedModel(answer, name='told')\nother = ScriptedModel(answer, name='other')\n"
    )
    monkeypatch.setenv("ADJUDGE_JUDGE", "openai:never-asked")
    (suite.path / "adjudge.toml").write_text('[defaults]\njudge = "python:fake:told"\n')
    run(suite, judge=None).assert_outcomes(passed=1)

    (suite.path / "adjudge.toml").write_text('[defaults]\njudge = "python:fake:other"\n')
    suite.makeini(INI + "judge = python:fake:told\n")
    run(suite, judge=None).assert_outcomes(passed=1)

    suite.makeini(INI + "judge = python:fake:other\n")
    run(suite, judge="python:fake:told").assert_outcomes(passed=1)


def test_the_environment_cannot_name_code(suite, monkeypatch):
    """``python:`` runs code, so it is named on the command line or in a file of the project."""
    write(suite, f"def test_one(): assert_passes('nice', {POLITE})")
    monkeypatch.setenv("ADJUDGE_JUDGE", "python:fake:model")
    done = run(suite, judge=None)

    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*ADJUDGE_JUDGE names python:fake:model, which runs code*"])


def test_several_judges_are_a_chain(suite):
    """``--judge`` twice, with the strategy asked for."""
    write(
        suite,
        "def test_one(judge):",
        f"    result = judge.evaluate_sync('nice', {POLITE})",
        "    assert result.strategy == 'consensus' and len(result.results) == 2",
    )

    run(suite, "--judge", "python:fake:twin", "--judge-strategy", "consensus").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("options", "call", "message"),
    [
        (("--judge-strategy", "consensus"), "", "--judge-strategy is for several --judge"),
        (("--judge", "python:fake:twin"), ", model='openai:other'", "the suite's judge is the chain"),
    ],
    ids=["strategy", "chain"],
)
def test_contradictions_about_who_judges_are_errors(suite, options, call, message):
    """A strategy for one judge, and a model where a chain judges, fail the test by a sentence."""
    write(suite, f"def test_one(): assert_passes('nice', {POLITE}{call})")
    done = run(suite, *options)

    done.assert_outcomes(failed=1)
    assert message in done.stdout.str()


def test_a_call_may_name_another_model(suite):
    """``model=`` asks another model of the judge's own provider, as in ``evaluate``."""
    write(
        suite,
        "def test_one(judge):",
        f"    assert judge.evaluate_sync('nice', {POLITE}, model='other').model == 'other'",
    )
    (suite.path / "fake.py").write_text(MODEL.replace("return Reply(", "return Reply(model='other', "))

    run(suite).assert_outcomes(passed=1)


def test_rubrics_are_found_beside_the_test_and_by_name(suite):
    """A relative path is seen from the test's file or the root directory, a name in adjudge.toml."""
    text = "name: Polite\nmodel: openai:never-asked\ncriteria: [{name: is-polite, description: Is polite.}]\n"
    (suite.path / "deep").mkdir()
    (suite.path / "deep" / "polite.yaml").write_text(text)
    (suite.path / "deep" / "test_deep.py").write_text(
        "from adjudge.testing import assert_passes\n"
        "def test_path(): assert_passes('nice', 'polite.yaml')\n"
        "def test_root(): assert_passes('nice', 'deep/polite.yaml')\n"
        "def test_name(): assert_passes('nice', 'courtesy')\n"
        "def test_default(): assert_passes('nice')\n"
    )
    (suite.path / "adjudge.toml").write_text(
        '[defaults]\nrubric = "courtesy"\n[rubrics]\ncourtesy = "deep/polite.yaml"\n'
    )

    run(suite).assert_outcomes(passed=4)  # and the rubric's own model was not asked


# ---------------------------------------------------------------- the mark


def test_a_marked_test_is_run_as_often_as_it_says(suite):
    """The body runs ``repeat`` times with its fixtures; ``at_least`` of what it returns must pass."""
    write(
        suite,
        "seen = []",
        "@pytest.fixture",
        "def word(): return 'nice'",
        f"@pytest.mark.judged({POLITE}, repeat=3, at_least=2)",
        "@pytest.mark.parametrize('rude_at', [{0}, {0, 1}], ids=['one', 'two'])",
        "def test_flaky(rude_at, word):",
        "    seen.append(rude_at)",
        "    return 'rude' if (len(seen) - 1) % 3 in rude_at else word",
        "class TestClass:",
        f"    @pytest.mark.judged({POLITE})",
        "    def test_method(self): return 'nice'",
        "def test_last(): assert len(seen) == 6",
    )
    done = run(suite)

    done.assert_outcomes(passed=3, failed=1)
    done.stdout.fnmatch_lines(["1 of 3 passed, and 2 must", "run 1: ✗ failed*", "run 3: ✓ passed*", "*again: pytest*"])
    assert "return-not-none" not in done.stdout.str()


@pytest.mark.parametrize("name", ["broken", "model"])
def test_a_marked_test_without_enough_passes_fails(suite, name):
    """All must pass unless ``at_least`` says fewer, and an undecided run is not a pass."""
    write(
        suite,
        "seen = []",
        f"@pytest.mark.judged({POLITE}, repeat=2)",
        "def test_one():",
        "    seen.append(1)",
        "    return 'rude' if len(seen) == 2 else 'nice'",
    )

    run(suite, judge=f"python:fake:{name}").assert_outcomes(failed=1)


@pytest.mark.parametrize(
    ("mark", "message"),
    [
        ("repeat=0", "judged: repeat must be a whole number from 1 to 1,000, got 0"),
        ("repeat=True", "judged: repeat must be a whole number"),
        ("repeat=2, at_least=3", "judged: at_least must be a whole number from 1 to 2, got 3"),
        ("throw_on_fail=True", "leave throw_on_fail out"),
        ("'a', 'b'", "judged takes one rubric"),
        ("criteria='x', repaet=3", "repaet"),
    ],
    ids=["zero", "flag", "more", "throw", "two", "unknown"],
)
def test_a_mark_that_makes_no_sense_is_an_error(suite, mark, message):
    """Wrong arguments fail the test by a sentence about the argument."""
    write(suite, f"@pytest.mark.judged({mark})", "def test_one(): return 'nice'")
    done = run(suite)

    assert done.ret == 1
    assert message in done.stdout.str()
    assert done.parseoutcomes().get("passed") is None


def test_a_marked_test_may_be_a_test_case_or_be_run_again(suite):
    """A method of ``unittest`` is judged, and so is a test that a plugin runs a second time, anew."""
    suite.makeconftest(
        "from _pytest.runner import runtestprotocol\n"
        "def pytest_runtest_protocol(item, nextitem):\n"
        "    runtestprotocol(item, nextitem=nextitem, log=False)\n"
        "    item._initrequest() if hasattr(item, '_initrequest') else None\n"
        "    for report in runtestprotocol(item, nextitem=nextitem, log=False):\n"
        "        item.ihook.pytest_runtest_logreport(report=report)\n"
        "    return True\n"
    )
    write(
        suite,
        "import unittest",
        "class TestCase(unittest.TestCase):",
        f"    @pytest.mark.judged({POLITE})",
        "    def test_nice(self): return 'nice'",
        f"    @pytest.mark.judged({POLITE})",
        "    def test_rude(self): return 'rude'",
        f"@pytest.mark.judged({POLITE})",
        "def test_plain(): return 'rude'",
    )
    done = run(suite)

    done.assert_outcomes(passed=1, failed=2)
    done.stdout.fnmatch_lines(["3 judged: 1 passed, 2 failed, 0 undecided"])


def test_what_a_body_raises_is_not_taken_for_a_judgement(suite):
    """An error or a skip in the body ends the test as it always does, whatever ``at_least`` says."""
    write(
        suite,
        f"@pytest.mark.judged({POLITE}, repeat=3, at_least=1)",
        "@pytest.mark.parametrize('text', ['error', 'skip'])",
        "def test_one(text):",
        "    if text == 'skip': pytest.skip('not today')",
        "    raise RuntimeError('the agent broke')",
    )

    run(suite).assert_outcomes(failed=1, skipped=1)


MARK = f"@pytest.mark.judged({POLITE})"
TESTCASE = "class TestOne(unittest.TestCase):"
ISOLATED = "class TestOne(unittest.IsolatedAsyncioTestCase):"
UNJUDGED = "*is marked judged and passed without a judgement of what it returns; *"


@pytest.mark.parametrize(
    ("lines", "expected", "message"),
    [
        ((TESTCASE, f"    {MARK}", "    async def test_one(self): return 'nice'"), {"failed": 1}, "derive its"),
        ((MARK, TESTCASE, "    async def test_one(self): return 'nice'"), {"failed": 1}, "IsolatedAsyncioTestCase"),
        ((ISOLATED, f"    {MARK}", "    async def test_one(self): return 'nice'"), {"passed": 1}, "1 judged: 1 passed"),
        ((ISOLATED, f"    {MARK}", "    async def test_one(self): return 'rude'"), {"failed": 1}, "0 of 1 passed"),
        ((ISOLATED, f"    {MARK}", "    async def test_one(self): pass"), {"failed": 1}, "returned nothing"),
        ((ISOLATED, f"    {MARK}", "    async def test_one(self): yield 'nice'"), {"failed": 1}, "async_generator"),
        ((ISOLATED, f"    {MARK}", "    def test_one(self): return 'rude'"), {"failed": 1}, "0 of 1 passed"),
        ((MARK, ISOLATED, "    async def test_one(self): return 'rude'"), {"failed": 1}, "0 of 1 passed"),
        ((MARK, "async def test_one(): return 'nice'"), {"failed": 1}, "not natively supported"),
        ((MARK, "async def test_one(): yield 'nice'"), {"failed": 1}, "async_generator"),
        ((MARK, "def test_one(): return (word for word in ['nice'])"), {"failed": 1}, "generator"),
        (("async def later(): return 'nice'", MARK, "def test_one(request):", "    work = later()",
          "    request.addfinalizer(work.close)", "    return work"), {"failed": 1}, "coroutine"),
        ((MARK, "def test_one(judge): judge.evaluate_sync('nice', criteria='x')"), {"failed": 1}, "returned nothing"),
        (("def test_one(request):", "    request.node.add_marker(pytest.mark.judged(criteria='x'))"),
         {"failed": 1}, "give the mark"),
        ((MARK, "@pytest.mark.parametrize('text', ['nice', 'rude'])", "def test_one(text): return text"),
         {"passed": 1, "failed": 1}, "2 judged"),
        ((MARK, "class TestOne:", "    def test_one(self, subtests):", "        with subtests.test('a'): pass",
          "        return 'nice'"), {"passed": 1}, "1 judged: 1 passed"),
        ((ISOLATED, f"    {MARK}", "    async def test_one(self):", "        with self.subTest('a'): pass",
          "        return 'nice'"), {"passed": 1}, "1 judged: 1 passed"),
    ],
)  # fmt: skip
def test_a_marked_test_passes_by_a_judgement_alone(suite, lines, expected, message):
    """Whatever pytest counts as passed, a test marked judged passes when what it returns was judged, and else fails."""
    write(suite, "import unittest", *lines)
    done = run(suite, "-p", "no:asyncio", "-p", "no:anyio", "-W", "ignore")
    outcomes = done.parseoutcomes()

    assert {name: outcomes[name] for name in ("passed", "failed", "errors") if name in outcomes} == expected
    assert message in done.stdout.str()


def test_what_hides_a_marked_tests_failure_does_not_make_it_pass(suite):
    """A plugin that swallows what the judging raises, or runs something else in the test's place, passes nothing."""
    write(suite, MARK, "def test_swallowed(): return 'rude'", MARK, "def test_replaced(): return 'nice'")
    suite.makeconftest(
        "import pytest\n"
        "@pytest.hookimpl(wrapper=True)\n"
        "def pytest_pyfunc_call(pyfuncitem):\n"
        "    try: return (yield)\n"
        "    except BaseException: return True\n"
        "@pytest.hookimpl(tryfirst=True)\n"
        "def pytest_runtest_call(item):\n"
        "    if item.name == 'test_replaced': item.obj = lambda: None\n"
    )
    done = run(suite)

    done.assert_outcomes(failed=2)
    done.stdout.fnmatch_lines([UNJUDGED, UNJUDGED])


def test_skips_and_expected_failures_of_marked_tests_stay_what_they_are(suite):
    """A skipped test is skipped, and one that is expected to fail has failed as expected when nothing was judged."""
    write(
        suite,
        "import unittest",
        "class TestOne(unittest.IsolatedAsyncioTestCase):",
        f"    {MARK}",
        "    async def test_skip(self): self.skipTest('not today')",
        f"    {MARK}",
        "    @unittest.skip('never')",
        "    async def test_never(self): return 'nice'",
        f"    {MARK}",
        "    @unittest.expectedFailure",
        "    async def test_rude(self): return 'rude'",
        "class TestTwo(unittest.TestCase):",
        f"    {MARK}",
        "    @pytest.mark.xfail(reason='not yet')",
        "    async def test_unjudged(self): return 'nice'",
        MARK,
        "@pytest.mark.xfail",
        "def test_three(): return 'nice'",
        MARK,
        "@pytest.mark.xfail(strict=True)",
        "def test_four(): return 'rude'",
    )

    run(suite, "-W", "ignore").assert_outcomes(skipped=2, xfailed=3, xpassed=1)


def test_judgements_on_other_threads_and_loops_are_the_tests_own(suite):
    """A thread, a loop of its own and a plugin that runs the test in a thread judge for the test that is running."""
    write(
        suite,
        "import asyncio, threading",
        "def test_thread(judge):",
        f"    work = threading.Thread(target=lambda: judge.evaluate_sync('nice', {POLITE}))",
        "    work.start(); work.join()",
        f"def test_loop(judge): assert asyncio.run(judge.evaluate('nice', {POLITE})).passed",
        "def test_assertion():",
        f"    work = threading.Thread(target=lambda: assert_passes('nice', {POLITE}))",
        "    work.start(); work.join()",
        MARK,
        "def test_marked(): return 'nice'",
    )
    suite.makeconftest(
        "import pytest, threading\n"
        "@pytest.hookimpl(tryfirst=True)\n"
        "def pytest_pyfunc_call(pyfuncitem):\n"
        "    if pyfuncitem.name != 'test_marked': return None\n"
        "    work = threading.Thread(target=pyfuncitem.obj)\n"
        "    work.start(); work.join()\n"
        "    return True\n"
    )
    done = run(suite, "--junitxml=report.xml")

    done.assert_outcomes(passed=4)
    cases = ET.parse(suite.path / "report.xml").getroot().iter("testcase")
    assert [len(list(case.iter("property"))) for case in cases] == [4, 4, 4, 4]


@pytest.mark.full
@pytest.mark.integration
@pytest.mark.parametrize("options", [("--judge", "python:fake:model"), ("--judge-replay",), ()])
def test_a_test_that_nothing_judged_fails_in_workers_as_well(suite, require, options):
    """Under xdist, in a replay and without a judge, an unjudged test fails by the same sentence."""
    require("pytest-xdist", find_spec("xdist"), "pip install pytest-xdist")
    write(suite, "import unittest", TESTCASE, f"    {MARK}", "    async def test_one(self): return 'nice'")
    done = suite.runpytest_subprocess(*PLUGIN, "-p", "no:cacheprovider", "-W", "ignore", "-n", "2", *options)

    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines([UNJUDGED])


def test_a_marked_test_that_returns_nothing_fails(suite):
    """A forgotten ``return`` is not judged as the text None."""
    write(suite, f"@pytest.mark.judged({POLITE})", "def test_one(): 'nice'")
    done = run(suite)

    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*returns what is to be judged, and this one returned nothing*"])


def test_a_mark_on_a_doctest_is_an_error(suite):
    """What cannot return anything is not silently left unjudged."""
    suite.makeconftest(
        "import pytest\ndef pytest_collection_modifyitems(items):\n"
        "    for item in items: item.add_marker(pytest.mark.judged(criteria='Is polite.'))\n"
    )
    suite.maketxtfile(test_doc=">>> 1 + 1\n2\n")
    done = run(suite, "test_doc.txt", "--doctest-glob=*.txt")

    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["*is marked judged and is no function*"])


# ---------------------------------------------------------------- reports


def test_the_summary_says_what_was_judged(suite):
    """Outcomes, reasons, tokens and a cost that is unknown, at the end, and nothing where nothing was judged."""
    write(
        suite,
        "import fake",
        f"def test_one(judge): assert judge.evaluate_sync('nice', {POLITE}).passed",
        f"def test_two(): assert_passes('rude', {POLITE})",
        f"def test_three(): assert_passes('nice', {POLITE}, judge=fake.broken)",
    )
    done = run(suite)

    done.stdout.fnmatch_lines(
        [
            "*= judgements =*",
            "3 judged: 1 passed, 1 failed, 1 undecided (1 error)",
            "200 tokens in, 14 out (unknown for 1), cost unknown",
            "*s test_it.py::test_*",
        ]
    )
    write(suite, "def test_nothing(judge): pass")
    assert "judgements" not in run(suite).stdout.str()


def test_junit_has_the_judgements(suite):
    """Outcome, score, judge and each criterion are properties of the test case; a second judgement is numbered."""
    write(
        suite,
        "def test_one(judge):",
        f"    judge.evaluate_sync('nice', {POLITE})",
        f"    judge.evaluate_sync('rude', {POLITE})",
    )
    run(suite, "--junitxml=report.xml").assert_outcomes(passed=1)
    properties = ET.parse(suite.path / "report.xml").getroot().iter("property")

    assert {item.get("name"): item.get("value") for item in properties} == {
        "adjudge.outcome": "passed",
        "adjudge.score": "0.9",
        "adjudge.judge": "fake",
        "adjudge.criterion.is-polite": "0.9",
        "adjudge.outcome#2": "failed",
        "adjudge.score#2": "0.2",
        "adjudge.judge#2": "fake",
        "adjudge.criterion.is-polite#2": "0.2",
    }


# ---------------------------------------------------------------- workers, and nobody


@pytest.mark.integration
def test_workers_record_replay_and_report_together(suite, require):
    """Under xdist a suite is recorded and replayed as alone, and one summary counts every worker's judgements."""
    require("pytest-xdist", find_spec("xdist"), "pip install pytest-xdist")
    write(suite, *SUITE)
    command = [*PLUGIN, "-p", "no:cacheprovider", "-n", "2", "--junitxml=report.xml"]
    done = suite.runpytest_subprocess(*command, "--judge", "python:fake:model", "--judge-record")
    done.assert_outcomes(passed=4)
    files = recordings(suite)

    (suite.path / "fake.py").unlink()
    done = suite.runpytest_subprocess(*command, "--judge-replay")
    done.assert_outcomes(passed=4)
    done.stdout.fnmatch_lines(["5 judged: 5 passed, 0 failed, 0 undecided", "500 tokens in, 35 out, cost unknown"])
    assert recordings(suite) == files
    assert len(files) == 4
    names = [item.get("name") for item in ET.parse(suite.path / "report.xml").getroot().iter("property")]
    assert names.count("adjudge.outcome") == 4
    assert names.count("adjudge.outcome#2") == 1


@pytest.mark.integration
def test_a_suite_that_does_not_judge_loads_next_to_nothing(suite, monkeypatch):
    """With the plugin, such a suite imports the plugin's own few modules of adjudge and nothing heavy."""
    suite.makepyfile(
        test_plain="import sys\n"
        "def test_one():\n"
        "    ours = sorted(name for name in sys.modules if name.partition('.')[0] == 'adjudge')\n"
        "    own = ['lazy', 'testing', 'testing.plugin', 'testing.running_test']\n"
        "    assert ours == ['adjudge', *(f'adjudge.{name}' for name in own)]\n"
        "    assert not {'aiohttp', 'asyncio', 'msgspec', 'rich', 'typer', 'yaml', 'sqlalchemy'} & set(sys.modules)\n"
    )
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    done = suite.runpytest_subprocess("-p", "adjudge.testing.plugin", "-p", "no:cacheprovider")

    done.assert_outcomes(passed=1)


@pytest.mark.integration
def test_pytest_finds_the_plugin_by_itself(require):
    """The wheel registers it, so that installing adjudge is all."""
    require("an installed adjudge", INSTALLED, "run ./scripts/test, which builds and installs it")
    command = [sys.executable, "-m", "pytest", "--help"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=HANG, cwd=Path(house.ROOT).anchor
    )

    assert "--judge-replay" in done.stdout
