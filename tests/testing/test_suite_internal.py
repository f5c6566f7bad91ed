"""What a failed test says and what a summary counts: pure functions over results."""

from __future__ import annotations

import subprocess
import sys

import pytest

from adjudge import CriterionResult, JudgeChainResult, JudgeResult, RuleResult, Usage
from adjudge.judges.judge import TOKEN_REMEDY
from adjudge.testing.cassette import name_file
from adjudge.testing.summary import describe, draw_bar, explain, list_properties, summarise
from kit import house

HOSTILE = "\x1b[2J\u202eevil\r\nPASSED"


def make(**more) -> JudgeResult:
    return JudgeResult(**({"outcome": "failed", "judge": "j", "score": 0.2, "threshold": 0.7} | more))


def test_an_explanation_holds_no_control_character():
    """Whatever a judge, a rule or a name says, no escape sequence and no line of its own gets through."""
    result = make(
        judge=HOSTILE,
        detail=HOSTILE,
        reasoning=HOSTILE,
        suggestions=(HOSTILE,),
        criteria=(CriterionResult(name=HOSTILE, score=0.2, passed=False, reasoning=HOSTILE),),
        rule_results=(RuleResult(name=HOSTILE, passed=False, message=HOSTILE),),
    )
    explanation = explain(result, "pytest x")

    assert all(char.isprintable() or char == "\n" for char in explanation)
    assert not any(line.startswith("PASSED") for line in explanation.splitlines())


def test_an_explanation_is_bounded():
    """A million characters and a thousand criteria are cut, and it says that they were."""
    criteria = tuple(CriterionResult(name=f"c{number}", score=0.1, passed=False) for number in range(1000))
    explanation = explain(make(criteria=criteria, reasoning="x" * 1_000_000, suggestions=("y",) * 500))

    assert len(explanation) < 20_000
    assert "… and 920 more lines" in explanation
    assert "xxx…" in explanation


def test_an_explanation_shows_every_seat():
    """A chain's report says what each seat said."""
    seats = (make(judge="a", detail="too short"), make(judge="b", outcome="undecided", undecided_because="timeout",
                                                       score=None, detail="no answer within 5 s"))  # fmt: skip
    chain = JudgeChainResult(outcome="failed", judge="chain", strategy="consensus", results=seats)

    assert "seat a: ✗ failed 0.20 of 0.70 needed: too short" in explain(chain)
    assert "seat b: ? undecided (timeout): no answer within 5 s" in explain(chain)


def test_a_doctor_is_named_unless_every_unread_seat_says_what_to_do():
    """A seat that says so does not help another, whose replies nothing is known of."""
    unread = {"outcome": "undecided", "undecided_because": "unparseable", "score": None}
    says = make(judge="a", detail=f"no token; {TOKEN_REMEDY}", **unread)
    does_not = make(judge="b", detail="the reply has no object", **unread)

    def explain_chain(*seats: JudgeResult) -> str:
        return explain(
            JudgeChainResult(
                outcome="undecided",
                undecided_because="unparseable",
                judge="chain",
                strategy="consensus",
                results=seats,
            )
        )

    assert "doctor" not in explain_chain(says, says)
    assert "doctor" in explain_chain(says, does_not)


@pytest.mark.parametrize(
    ("score", "full"), [(None, 0), (0.0, 0), (0.09, 0), (0.5, 5), (0.3, 3), (1.0, 10), (1 + 1e-10, 10)]
)
def test_a_bar_is_as_long_as_the_score(score: float | None, full: int):
    """One full character per tenth, never one more."""
    assert draw_bar(score) == "█" * full + "░" * (10 - full)


def test_a_cost_that_is_partly_unknown_is_not_a_sum():
    """The summary says for how many judgements nobody knows the price."""
    priced = describe(make(usage=Usage(input_tokens=1000, output_tokens=10, cost_usd=0.25))) | {"test": "a"}
    unpriced = describe(make(usage=Usage(input_tokens=1000, output_tokens=10))) | {"test": "b"}

    assert "2,000 tokens in, 20 out, cost $0.2500 and unknown for 1" in summarise([priced, unpriced])
    assert "1,000 tokens in, 10 out, cost $0.2500" in summarise([priced])
    timed_out = describe(make(outcome="undecided", undecided_because="timeout", score=None)) | {"test": "c"}
    assert "tokens and cost unknown" in summarise([timed_out])


def test_nothing_is_said_of_cost_where_functions_judged():
    """They report no usage, and no model was asked."""
    assert [line for line in summarise([describe(make()) | {"test": "a"}]) if "cost" in line] == []


def test_a_report_carries_neither_content_nor_reasoning():
    """What travels between processes and into JUnit files is outcomes, numbers and names."""
    result = make(reasoning="secret", detail="secret", raw_response="secret", suggestions=("secret",))

    assert "secret" not in str(describe(result)) + str(list(list_properties(result, 1)))


def test_a_recording_is_named_by_the_function_alone():
    """Parameters of a test may be content, and content names no file."""
    name = name_file("tests/test_a.py::test_b[../../../etc/passwd]", "test_b")

    assert name.startswith("test_b-")
    assert "/" not in name
    assert "passwd" not in name
    assert name != name_file("tests/test_a.py::test_b[other]", "test_b")
    assert len(name_file("x", "ü" * 500)) < 100


@pytest.mark.integration
def test_assert_passes_works_without_a_suite():
    """In a script it asks the judge it is given, and without one says how to name one."""
    script = (
        "from adjudge import UsageError\n"
        "from adjudge.testing import ScriptedModel, assert_passes\n"
        "model = ScriptedModel({'criteria': [{'score': 0.9}]})\n"
        "assert assert_passes('x', criteria='Is polite.', judge=model).score == 0.9\n"
        "for judge, raised in ((ScriptedModel('no'), AssertionError), (None, UsageError)):\n"
        "    try: assert_passes('x', criteria='Is polite.', judge=judge)\n"
        "    except raised as error: print(str(error).splitlines()[0])\n"
    )
    path = str(house.PACKAGE.parent)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env={"PYTHONPATH": path})  # fmt: skip  # noqa: E501

    assert done.stdout.splitlines()[0].startswith("? undecided (unparseable)")
    assert done.stdout.splitlines()[1].startswith("no judge was given and ADJUDGE_JUDGE is not set")
