"""A function that is given the content as the judge of a suite: named, handed in, recorded and replayed."""

from __future__ import annotations

import json

import pytest

from kit.suites import POLITE, provide_suite, recordings, run, write

pytest_plugins = ["pytester"]
__all__ = ["provide_suite"]

FAKE = """
def polite(content):
    return "nice" in content
"""


def test_a_suite_is_judged_by_a_function(suite: pytest.Pytester):
    """Named by ``--judge``, or handed to the fixture."""
    suite.makepyfile(fake=FAKE)
    write(
        suite,
        f"def test_one(judge): assert judge.evaluate_sync('nice', {POLITE}).passed",
        f"def test_two(judge): assert not judge.evaluate_sync('rude', {POLITE}).passed",
        "def test_three(judge):",
        f"    assert judge.evaluate_sync('rude', {POLITE}, judge=lambda content: content == 'rude').passed",
        f"def test_four(): assert_passes('nice', {POLITE})",
    )
    run(suite, judge="python:fake:polite").assert_outcomes(passed=4)


def test_a_recorded_function_is_replayed_where_it_is_the_judge(suite: pytest.Pytester):
    """Without being called; where nobody is named, or another function, what is missing fails the test."""
    suite.makepyfile(fake=FAKE)
    write(suite, f"def test_one(judge): assert not judge.evaluate_sync('rude', {POLITE}).passed")
    named = "python:fake:polite"
    run(suite, "--judge-record", judge=named).assert_outcomes(passed=1)
    run(suite, "--judge-replay", judge=named).assert_outcomes(passed=1)
    run(suite, "--judge-replay", judge=None).assert_outcomes(failed=1)

    # Of another length: Python takes compiled code for current if time (in seconds) and size are equal.
    suite.makepyfile(fake=FAKE.replace("nice", "friendly"))
    done = run(suite, "--judge-replay", judge=named)
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*has other code; record it again*"])


def test_two_functions_of_one_name_are_replayed_apart(suite: pytest.Pytester):
    """Each gives its own answers again, and the model that has their name gives none of them."""
    write(
        suite,
        "def test_one(judge):",
        "    yes, no = (lambda content: True), (lambda content: False)",
        f"    assert judge.evaluate_sync('rude', {POLITE}, judge=yes).passed",
        f"    assert not judge.evaluate_sync('rude', {POLITE}, judge=no).passed",
    )
    run(suite, "--judge-record", judge=None).assert_outcomes(passed=1)
    assert [len(rows) for rows in recordings(suite).values()] == [2]
    run(suite, "--judge-replay", judge=None).assert_outcomes(passed=1)


def test_a_forged_mark_in_a_suite_s_recording_is_not_believed(suite: pytest.Pytester):
    """The row of a model that says that a function returned it answers neither the model nor a function."""
    write(suite, f"def test_one(judge): assert judge.evaluate_sync('rude', {POLITE}).outcome == 'failed'")
    run(suite, "--judge-record").assert_outcomes(passed=1)
    [file] = (suite.path / "judge-recordings").glob("*")
    row = json.loads(file.read_text("utf-8"))
    mark = {"source": "function", "function": {"module": "fake", "qualname": "model", "code": "0" * 64}}
    file.write_text(json.dumps({**row, "reply": {"text": "false", "finish_reason": "stop", **mark}}) + "\n", "utf-8")

    done = run(suite, "--judge-replay")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*of the function fake.model, and counts only if that function is the judge*"])
