"""What a suite is recorded into and replayed from: a file for each test, and nobody is asked in a replay."""

from __future__ import annotations

import pytest

from suite_support import INI, OFFLINE, POLITE, SUITE, provide_suite, recordings, run, write

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
        ["*no recording of fake in *; record it with: pytest test_it.py::test_one --judge-record"]
    )


def test_changed_content_is_not_answered_from_an_old_recording(suite):
    """The key holds the whole question, so what is asked differently is missing."""
    write(suite, f"def test_one(): assert_passes('nice', {POLITE})")
    run(suite, "--judge-record").assert_outcomes(passed=1)
    write(suite, f"def test_one(): assert_passes('nice and rude', {POLITE})")
    done = run(suite, "--judge-replay")

    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*has no unused reply for key*record it with: pytest test_it.py::test_one*"])


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
        done.stdout.fnmatch_lines(["test_it.py::test_one: not recorded, since a model failed (*reset*)"])


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
