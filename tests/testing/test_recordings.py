"""What a suite is recorded into and replayed from: a file for each test, and nobody is asked in a replay."""

from __future__ import annotations

import pytest

from kit.cli import serve
from kit.suites import INI, MODEL, OFFLINE, POLITE, SUITE, provide_suite, recordings, run, write

pytestmark = pytest.mark.timed


pytest_plugins = ["pytester"]
__all__ = ["provide_suite"]


def test_a_recorded_suite_is_replayed_without_asking(suite):
    """A file for each test, the token masked, names without parameters; then nobody is asked, nor named."""
    write(suite, *SUITE)
    run(suite, "--judge-record").assert_outcomes(passed=4)
    kept = recordings(suite)

    assert sorted((name.rpartition("-")[0], len(rows)) for name, rows in kept.items()) == [
        ("test_one", 1),
        ("test_three", 2),
        ("test_two", 1),
        ("test_two", 1),
    ]
    assert all("{{token}}" in row["request"]["user"] for rows in kept.values() for row in rows)

    (suite.path / "fake.py").write_text(OFFLINE)
    run(suite, "--judge-replay").assert_outcomes(passed=4)
    run(suite, "--judge-replay", judge=None).assert_outcomes(passed=4)
    (suite.path / "fake.py").unlink()
    run(suite, "--judge-replay", judge=None).assert_outcomes(passed=4)


def test_a_missing_recording_fails_whatever_the_test_expects(suite):
    """A test that expects a rejection does not pass because nothing was recorded; it says how to record."""
    write(suite, f"def test_one(judge): assert not judge.evaluate_sync('nice', {POLITE}).passed")
    done = run(suite, "--judge-replay")

    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        [
            (
                "*no recording of fake in *; record it with: "
                "pytest test_it.py::test_one --judge python:fake:model --judge-record"
            )
        ]
    )


def test_changed_content_is_not_answered_from_an_old_recording(suite):
    """The key holds the whole question, so what is asked differently is missing."""
    write(suite, f"def test_one(): assert_passes('nice', {POLITE})")
    run(suite, "--judge-record").assert_outcomes(passed=1)
    write(suite, f"def test_one(): assert_passes('nice and rude', {POLITE})")
    done = run(suite, "--judge-replay")

    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*has no unused reply for key*record it with: pytest test_it.py::test_one*"])


def test_the_command_that_records_names_the_model_that_was_recorded(suite):
    """A replay needs no judge, so none may be named; the command that it shows would ask nobody without one."""
    write(suite, f"def test_one(): assert_passes('nice', {POLITE})")
    with serve() as provider:
        run(suite, "--judge-record", judge=provider.spec).assert_outcomes(passed=1)
    write(suite, f"def test_one(): assert_passes('nice and rude', {POLITE})")
    done = run(suite, "--judge-replay", judge=None)

    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines([f"*pytest test_it.py::test_one --judge-record --judge *{provider.spec}*"])


def test_recording_again_leaves_nothing_stale(suite):
    """Rows that are no longer asked for go, and equal runs give equal files."""
    write(suite, "def test_one():", *[f"    assert_passes('nice {number}', {POLITE})" for number in range(3)])
    run(suite, "--judge-record").assert_outcomes(passed=1)
    first = recordings(suite)
    run(suite, "--judge-record").assert_outcomes(passed=1)
    assert recordings(suite) == first
    assert [len(rows) for rows in first.values()] == [3]

    write(suite, "def test_one():", f"    assert_passes('nice 1', {POLITE})")
    run(suite, "--judge-record").assert_outcomes(passed=1)
    assert [len(rows) for rows in recordings(suite).values()] == [1]


@pytest.mark.parametrize("judge", ["python:fake:broken", None], ids=["broken", "nobody"])
def test_a_failed_recording_keeps_the_old_one(suite, judge):
    """A model that breaks, or nobody to ask, does not cost what was recorded before; the summary says so."""
    write(suite, f"def test_one(): assert_passes('nice', {POLITE})")
    run(suite, "--judge-record").assert_outcomes(passed=1)
    before = recordings(suite)
    done = run(suite, "--judge-record", judge=judge)

    done.assert_outcomes(failed=1)
    assert recordings(suite) == before
    if judge:
        done.stdout.fnmatch_lines(["test_it.py::test_one: not recorded: *reset*"])


def test_what_a_fixture_asks_is_part_of_its_test(suite):
    """Also what it asks while it is torn down is recorded and replayed."""
    write(
        suite,
        "@pytest.fixture",
        "def talk(judge):",
        f"    assert judge.evaluate_sync('nice before', {POLITE}).passed",
        "    yield",
        f"    assert judge.evaluate_sync('nice after', {POLITE}).passed",
        "def test_one(talk): pass",
    )
    run(suite, "--judge-record").assert_outcomes(passed=1)
    assert [len(rows) for rows in recordings(suite).values()] == [2]

    run(suite, "--judge-replay", judge=None).assert_outcomes(passed=1)


def test_seats_of_one_model_are_replayed_apart(suite):
    """A consensus is recorded without an early stop, and each seat gets its own answers back."""
    write(
        suite,
        "def test_one(judge):",
        f"    result = judge.evaluate_sync('rude', {POLITE})",
        "    assert result.outcome == 'failed' and result.results",
    )
    options = ("--judge", "python:fake:twin", "--judge-strategy", "consensus")
    run(suite, *options, "--judge-record").assert_outcomes(passed=1)
    assert [len(rows) for rows in recordings(suite).values()] == [1, 1]

    (suite.path / "fake.py").write_text(OFFLINE)
    run(suite, *options, "--judge-replay").assert_outcomes(passed=1)


def test_a_fallback_is_replayed_as_it_was_recorded(suite):
    """A seat that could not be read is so again, with its re-ask; one that was never asked needs no recording."""
    (suite.path / "fake.py").write_text(MODEL + "mute = ScriptedModel('I would rather not say.', name='mute')\n")
    write(
        suite,
        "def test_one(judge):",
        f"    result = judge.evaluate_sync('nice', {POLITE})",
        "    assert result.passed",
        "    assert [seat.outcome for seat in result.results] == ['undecided', 'passed']",
    )
    options = ("--judge", "python:fake:model", "--judge", "python:fake:broken", "--judge-strategy", "fallback")
    run(suite, *options, "--judge-record", judge="python:fake:mute").assert_outcomes(passed=1)
    assert [len(rows) for rows in recordings(suite).values()] == [3]

    run(suite, *options, "--judge-replay", judge="python:fake:mute").assert_outcomes(passed=1)


def test_a_gate_in_a_test_is_recorded_and_replayed(suite):
    """The fixture is a judge to a gate; a missing recording fails the test, though the gate merely blocks."""
    write(
        suite,
        "import asyncio",
        "from adjudge import Criterion, Gate, Rubric",
        "RUBRIC = Rubric(name='Polite', criteria=[Criterion(name='is-polite', description='Is polite.')])",
        "@pytest.mark.parametrize('text', ['nice', 'rude'])",
        "def test_one(judge, text):",
        "    gate = Gate('publish', judge=judge, rubric=RUBRIC)",
        "    assert asyncio.run(gate.check(text)).allowed == (text == 'nice')",
    )
    run(suite, "--judge-record").assert_outcomes(passed=2)
    run(suite, "--judge-replay").assert_outcomes(passed=2)

    for file in (suite.path / "judge-recordings").iterdir():
        file.unlink()
    done = run(suite, "--judge-replay", "-k", "rude")
    done.assert_outcomes(passed=1, errors=1, deselected=1)
    done.stdout.fnmatch_lines(["*no recording of fake in *record it with*"])


def test_a_question_that_names_a_model_does_not_reach_it(suite):
    """A question of one's own is put to the suite's judge, on record, whatever model it names."""
    write(
        suite,
        "from adjudge.question import Answer, Part, Question",
        "def test_one(judge):",
        "    said = {'parts': (Part(label='prompt', text='Is it safe?'),), 'digest': '0' * 64}",
        "    said['answer'] = lambda reply, question: Answer(outcome='passed')",
        "    question = Question(wording=None, model='openai:never-asked', **said)",
        "    assert judge.ask_sync(question).model != 'openai:never-asked'",
    )
    run(suite, "--judge-record").assert_outcomes(passed=1)

    assert [row["model"] for rows in recordings(suite).values() for row in rows] == ["fake"]


def test_a_judgement_that_is_cut_short_is_not_recorded(suite):
    """What a cancelled call left is neither kept nor lying about, and the summary says so."""
    (suite.path / "fake.py").write_text(MODEL + "slow = ScriptedModel(answer, name='slow', delay=30)\n")
    write(
        suite,
        "import asyncio",
        "def test_one(judge):",
        "    async def hurry():",
        f"        assert (await judge('nice', {POLITE}, judge='python:fake:model')).passed",
        "        with pytest.raises(TimeoutError):",
        f"            await asyncio.wait_for(judge('nice', {POLITE}), 0.01)",
        "    asyncio.run(hurry())",
    )
    done = run(suite, "--judge-record", judge="python:fake:slow")

    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines(["test_it.py::test_one: not recorded: a judgement did not end"])
    assert recordings(suite) == {}


@pytest.mark.slow
def test_a_seat_that_cannot_be_replayed_is_refused(suite):
    """An object of one's own would be asked for real in a replay, so it is an error."""
    write(
        suite,
        "class Mine:",
        "    name = 'mine'",
        "    async def ask(self, question): raise AssertionError('asked')",
        f"def test_one(): assert_passes('nice', {POLITE}, judge=Mine())",
    )
    done = run(suite, "--judge-replay")

    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*the seat 'mine' is an object of its own*"])


def test_a_call_that_names_a_model_is_replayed_too(suite):
    """``model=`` opens another model, and in a replay its recording; the provider is not contacted."""
    write(suite, f"def test_one(judge): judge.evaluate_sync('nice', {POLITE}, model='openai:never-asked')")
    done = run(suite, "--judge-replay")

    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*no recording of openai:never-asked in*"])


def test_the_last_of_record_replay_and_live_counts(suite):
    """A configuration may replay by default, and the command line take it back."""
    write(suite, *SUITE)
    suite.makeini(INI + "addopts = --judge-replay\njudge_recordings = kept\n")
    run(suite, "--judge-live").assert_outcomes(passed=4)
    assert not (suite.path / "kept").exists()
    run(suite, "--judge-record").assert_outcomes(passed=4)
    run(suite, judge=None).assert_outcomes(passed=4)

    assert len(list((suite.path / "kept").iterdir())) == 4


def test_rules_need_neither_a_judge_nor_a_recording(suite):
    """A rubric of rules is decided in code, in a replay as well."""
    (suite.path / "words.yaml").write_text("name: Words\ncriteria: [{name: a, description: A., rule: {regex: nice}}]\n")
    write(suite, "def test_one(): assert_passes('nice', 'words.yaml')")

    for options in ((), ("--judge-replay",), ("--judge-record",)):
        run(suite, *options, judge=None).assert_outcomes(passed=1)
    assert recordings(suite) == {}
