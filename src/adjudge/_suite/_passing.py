"""``assert_passes``: an assertion whose failure says criterion by criterion why."""

from __future__ import annotations

from typing import Any, Unpack

from adjudge import Judge, JudgeChain, JudgeResult
from adjudge._asking import Asking, RubricSource
from adjudge._short import judge as judge_short
from adjudge._suite._current import find_judge
from adjudge._suite._explain import explain
from adjudge._sync import run_sync


def assert_passes(
    content: object, rubric: RubricSource | None = None, *, judge: Any = None, **how: Unpack[Asking]
) -> JudgeResult:
    """Judge some content and raise ``AssertionError`` unless it passed; undecided is not a pass. Returns the result.

    The arguments are those of ``Judge.evaluate``. In a pytest suite the suite's judge is asked, and recorded or
    replayed, unless ``judge`` names another; elsewhere ``judge``, or the model that ``ADJUDGE_JUDGE`` names. It may
    be called with or without an event loop, and blocks one: where what is asked needs the test's own loop, write
    ``await judge(content, ..., throw_on_fail=True)``.
    """
    __tracebackhide__ = True
    how.pop("throw_on_fail", None)
    suite = find_judge()
    if suite is not None:
        result = suite.evaluate_sync(content, rubric, judge=judge, **how)
    elif isinstance(judge, Judge | JudgeChain):
        result = judge.evaluate_sync(content, rubric, **how)
    else:
        result = run_sync(judge_short(content, rubric=rubric, judge=judge, **how))
    if not result.passed:
        raise AssertionError(explain(result, suite.again if suite else ""))
    return result
