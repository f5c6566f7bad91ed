"""Answers to Claude Code and Codex, with the members that each knows."""

from __future__ import annotations

from typing import Any

import pytest

from adjudge.guards import WITHHELD, ToolCall
from adjudge.harness.answers import answer_call, block, refuse_event, warn_user, withhold
from adjudge.harness.events import AnswerEvent, CallEvent, Harness, PromptEvent, RanEvent, StartEvent

CALL = ToolCall("Bash", {"command": "ls"}, "t1", "s1", cwd="/work")


def make_ran(response: object, *, name: str = "PostToolUse") -> RanEvent:
    return RanEvent(call=CALL, name=name, response=response)


def read_opinion(answer: dict[str, Any]) -> str | None:
    return answer.get("hookSpecificOutput", {}).get("permissionDecision")


@pytest.mark.parametrize("harness", ["claude", "codex"])
def test_a_pass_is_no_opinion(harness: Harness):
    """``allow`` would skip the question that the harness asks its user."""
    assert answer_call(harness, "none") == {}


@pytest.mark.parametrize("harness", ["claude", "codex"])
def test_a_denial_has_the_members_that_both_know(harness: Harness):
    """With one more, Codex drops the answer and makes the call."""
    assert answer_call(harness, "deny", "no") == {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": "no",
        }
    }


def test_codex_is_told_nothing_that_it_takes_for_a_yes():
    """It makes a call that a hook answers with ``defer``; ``allow`` is no opinion."""
    assert read_opinion(answer_call("codex", "defer", "waits")) == "deny"
    assert answer_call("codex", "allow") == {}
    assert read_opinion(answer_call("claude", "defer", "waits")) == "defer"
    assert read_opinion(answer_call("claude", "allow")) == "allow"


def test_prompts_and_answers_are_sent_back_with_a_reason():
    """Both harnesses read the same two members."""
    assert block("no") == {"decision": "block", "reason": "no"}
    assert refuse_event("codex", PromptEvent(run_id="s", prompt="x"), "no") == block("no")
    assert refuse_event("claude", AnswerEvent(run_id="s", answer="x"), "no") == block("no")
    assert read_opinion(refuse_event("codex", CallEvent(call=CALL), "no")) == "deny"
    assert refuse_event("claude", StartEvent(run_id="s"), "no") == warn_user("no") == {"systemMessage": "no"}


@pytest.mark.parametrize(
    ("response", "output"),
    [
        ("secret", WITHHELD),
        ([{"type": "text", "text": "secret"}], [{"type": "text", "text": WITHHELD}]),
        (
            {"stdout": "secret", "stderr": "secret", "interrupted": False, "isImage": True},
            {"stdout": WITHHELD, "stderr": "", "interrupted": False, "isImage": False},
        ),
    ],
)
def test_a_result_is_replaced_by_one_of_its_shape(response: object, output: object):
    """Claude Code drops an output of another shape, and the agent reads the result."""
    answer = withhold("claude", make_ran(response))

    assert answer == {"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": output}}


def test_of_a_shells_result_only_known_members_are_left():
    """A further one may hold the output again, or name the file that has it."""
    known = {"stdout": "secret", "stderr": "", "interrupted": True, "isImage": False, "noOutputExpected": False}
    more = {"structuredContent": [{"text": "secret"}], "persistedOutputPath": "/secret", "new": "secret"}

    answer = withhold("claude", make_ran(known | more))

    assert answer is not None
    assert answer["hookSpecificOutput"]["updatedToolOutput"] == known | {"stdout": WITHHELD}
    assert withhold("claude", make_ran(known | {"interrupted": "secret"})) == withhold(
        "claude", make_ran({name: known[name] for name in known if name != "interrupted"})
    )


def test_a_result_that_cannot_be_replaced_is_known_as_one():
    """Of a tool with another shape, and the error of one that failed."""
    assert withhold("claude", make_ran({"file": {"content": "secret"}})) is None
    assert withhold("claude", make_ran(3)) is None
    assert withhold("claude", make_ran("error", name="PostToolUseFailure")) is None
    assert withhold("codex", make_ran({"file": "secret"})) == block(WITHHELD)
