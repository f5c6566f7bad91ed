"""Judge, rewrite, judge again: it ends at the first pass, after the rounds, or with a round nobody could decide."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from adjudge import Judge, JudgeResult, improve
from adjudge.testing import ScriptedModel
from kit.judges import complaint, failed, passed, scores

FAIR = {"criteria": "Is good.", "threshold": 0.8}


def run(*replies: Any, rewrite: Any = None, **options: Any) -> Any:
    judge = Judge(ScriptedModel([scores(item) if isinstance(item, float) else item for item in replies]))
    return asyncio.run(improve("draft", judge, None, rewrite or add_mark, **{**FAIR, **options}))


def add_mark(content: str, result: JudgeResult) -> str:
    return f"{content}+{result.score:g}"


async def add_mark_later(content: str, result: JudgeResult) -> str:
    return add_mark(content, result)


def add_mark_sometime(*replies: Any) -> Any:
    return add_mark_later(*replies)


@pytest.mark.parametrize("rewrite", [add_mark, add_mark_later, add_mark_sometime])
def test_it_ends_at_the_first_pass(rewrite: Any):
    """Each round is judged, and what is rewritten is handed its own result; sync or async."""
    done = run(0.6, 0.7, 0.85, 0.1, rewrite=rewrite)

    assert [item.content for item in done.rounds] == ["draft", "draft+0.6", "draft+0.6+0.7"]
    assert [item.result.score for item in done.rounds] == [0.6, 0.7, 0.85]
    assert (done.content, done.result, done.outcome) == ("draft+0.6+0.7", done.rounds[-1].result, "passed")
    assert done.passed
    assert done


def test_it_ends_after_the_rounds():
    """The last is not rewritten: nobody would judge that."""
    rewritten = []

    def rewrite(content: str, result: JudgeResult) -> str:
        rewritten.append(content)
        return f"{content}."

    done = run(0.6, 0.7, 0.75, 0.76, 0.99, rewrite=rewrite, rounds=4)

    assert len(done.rounds) == 4
    assert rewritten == ["draft", "draft.", "draft.."]
    assert (done.outcome, done.passed, bool(done)) == ("failed", False, False)


def test_what_is_good_is_left_as_it_is():
    """A first pass needs no rewriting."""
    done = run(0.9, rewrite=lambda *_: pytest.fail("there is nothing to rewrite"))

    assert [item.content for item in done.rounds] == ["draft"]


def test_an_undecided_round_ends_it_undecided():
    """What nobody could judge gives nothing to improve by; the rounds before it are there."""
    done = run(0.6, RuntimeError("down"), 0.9)

    assert [item.result.outcome for item in done.rounds] == ["failed", "undecided"]
    assert done.result.undecided_because == "error"
    assert not done


def test_what_rewriting_raises_is_raised():
    """It is the caller's own function."""

    def rewrite(content: str, result: JudgeResult) -> str:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        run(0.6, rewrite=rewrite)


def test_the_judge_may_be_anything_that_judges():
    """An object with ``ask``, or a model."""
    rubric = {"name": "R", "criteria": [{"name": "a", "description": "d"}]}

    assert asyncio.run(improve("x", passed(), rubric, add_mark)).passed
    assert len(asyncio.run(improve("x", failed(), rubric, lambda text, _: text, rounds=2)).rounds) == 2
    assert asyncio.run(improve("x", ScriptedModel(scores(1.0, names=["a"])), rubric, add_mark)).passed


@pytest.mark.parametrize("rounds", [0, -1, 1.5, True, "3"])
def test_there_is_at_least_one_round(rounds: Any):
    """A number that is none is said at once."""
    message = complaint(improve, "x", passed(), None, add_mark, rounds=rounds)

    assert message.startswith("rounds must be a whole number of at least 1")


def test_a_round_that_failed_is_no_exception():
    """Every round is returned, so there is nothing to throw."""
    assert "has no throw_on_fail" in complaint(improve, "x", passed(), None, add_mark, throw_on_fail=True)
