"""Verdicts and candidates as values: what they refuse, how they are written, and what a verdict is about."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from adjudge import EmergentJudge, EmergentTool, Ledger, ToolCandidate, ToolTest
from adjudge.testing import ScriptedModel
from adjudge.tools import (
    MISSING,
    CreationVerdict,
    PromotionVerdict,
    ReviewVerdict,
    ToolUsage,
    load_candidate,
    read_verdict,
    tool_digest,
)
from kit.judges import complaint
from kit.tools import INTEGER, approval, candidate, creation, refusal, review, run, tool


def decide(reply: Any, **more: Any) -> CreationVerdict:
    """The verdict of a judge that says this, on a candidate that differs in this."""
    return asyncio.run(EmergentJudge(ScriptedModel(reply)).review_creation(candidate(**more)))


def promote(*lines: Any) -> PromotionVerdict:
    """The verdict of two reviewers that say these lines."""
    models = dict(zip(("safety", "correctness"), map(ScriptedModel, lines), strict=True))
    return asyncio.run(EmergentJudge(ScriptedModel("?"), models).review_promotion(tool()))


@pytest.mark.parametrize("store_content", ["hash", "full"])
def test_a_ledger_keeps_of_a_verdict_what_it_keeps_of_results(tmp_path: Path, store_content: Any):
    """A reviewer's words can quote the tool, at the top of a verdict as within its results."""
    reasoning = "it runs SECRET-7"
    approved = decide(review(reasoning=reasoning))
    refused = promote(approval(reasoning=reasoning), refusal(reasoning=reasoning))

    async def go() -> None:
        async with Ledger(f"sqlite:///{tmp_path / 'a.db'}", store_content=store_content) as ledger:
            for verdict in (approved, refused):
                await ledger.append({"verdict": verdict}, kind="tool.reviewed")
                await ledger.append(verdict, kind="tool.reviewed")

    asyncio.run(go())
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())

    assert (b"SECRET-7" in stored) is (store_content == "full")


def test_a_verdict_goes_to_data_and_back():
    """With everything the judges said."""
    for verdict in (decide(approval()), decide(refusal()), decide(approval(), tests=())):
        data = json.loads(json.dumps(verdict.to_dict()))
        again = CreationVerdict.from_dict(data)

        assert data["schema"] == "adjudge/creation-verdict/1"
        assert again.to_dict() == verdict.to_dict()


@pytest.mark.parametrize(
    "more",
    [
        {"confidence": 0.0},
        {"confidence": 1.5},
        {"confidence": True},
        {"safety": 0.0},
        {"bounded": float("nan")},
        {"approved": "yes"},
        {"approved": 1},
        {"reasoning": None},
        {"tool_digest": 3},
        {"chain_result": {}},
        {"colour": "red"},
    ],
)
def test_no_verdict_approves_by_accident(more: dict[str, Any]):
    """Read from somewhere, one that approves with nothing to show for it is refused."""
    data = decide(approval()).to_dict() | more

    assert complaint(CreationVerdict.from_dict, data)


def test_a_verdict_that_approves_over_a_failed_result_is_refused():
    """What it rests on has to have passed."""
    data = decide(refusal()).to_dict() | {"approved": True, "safety": 1.0}

    assert "a result that a judge passed" in complaint(CreationVerdict.from_dict, data)


def test_the_digest_names_what_was_reviewed():
    """Source, mode, steps, schemas and allowlist; name, description and tests may change."""
    own = tool_digest(candidate())
    same = [
        candidate(name="x"),
        candidate(description="x"),
        candidate(tests=()),
        candidate(input_schema={"type": "object"}),
    ]
    other: list[dict[str, Any]] = [
        {"source": "x"},
        {"mode": "compose"},
        {"steps": [1]},
        {"allowlist": ["a"]},
        {"input_schema": {}},
        {"output_schema": None},
        {"output_schema": {**INTEGER, "maximum": 2**63}},
        {"output_schema": {**INTEGER, "maximum": 2**63 + 1}},
        {"output_schema": {**INTEGER, "maximum": None}},
    ]

    assert {tool_digest(item) for item in same} == {own}
    assert len({own, *[tool_digest(candidate(**more)) for more in other]}) == len(other) + 1


def test_members_in_another_order_are_the_same_tool():
    """A schema is a mapping; numbers too large for the standard keep their places."""
    one = {"a": {"maximum": 2**60}, "b": {"minimum": 2**61}}
    other = {"b": {"minimum": 2**61}, "a": {"maximum": 2**60}}

    assert tool_digest(candidate(input_schema=one)) == tool_digest(candidate(input_schema=other))


def test_what_was_reviewed_cannot_be_changed_from_outside():
    """A candidate keeps copies of schemas and steps."""
    schema: dict[str, Any] = {"type": "object"}
    steps = [{"tool": "a"}]
    made = candidate(input_schema=schema, steps=steps)
    before = tool_digest(made)
    schema["type"] = "array"
    steps[0]["tool"] = "b"

    assert tool_digest(made) == before


def test_a_promotion_goes_to_data_and_back():
    """With both reviews and everything the judges said."""
    verdict = promote(review(), review(approved=False))
    again = PromotionVerdict.from_dict(json.loads(json.dumps(verdict.to_dict())))

    assert again.to_dict() == verdict.to_dict()
    assert again.to_dict()["schema"] == "adjudge/promotion-verdict/1"


@pytest.mark.parametrize(
    "more",
    [
        {"approved": False},
        {"confidence": 1.0},
        {"safety": {}},
        {"correctness": None},
        {"tool_digest": 1},
        {"schema": "adjudge/creation-verdict/1"},
    ],
)
def test_a_verdict_that_contradicts_itself_is_refused(more: dict[str, Any]):
    """Approved exactly when both approve, with the lower confidence."""
    assert complaint(PromotionVerdict.from_dict, promote(review(), review()).to_dict() | more)


def test_a_review_that_approves_needs_a_confidence():
    """And is no verdict by itself."""
    assert complaint(ReviewVerdict, approved=True, confidence=0.0, reasoning="")
    assert not ReviewVerdict(approved=False, confidence=0.0, reasoning="")


def test_a_tool_goes_to_data_and_back():
    """With candidate, usage and every verdict."""
    made = tool(verdicts=(creation(), promote(review(), review())), usage=ToolUsage().add(success=True, duration_ms=1))
    again = EmergentTool.from_dict(json.loads(json.dumps(made.to_dict())))

    assert again.to_dict() == made.to_dict()
    assert again.digest == tool_digest(again.candidate) == made.digest
    assert len(again.current_verdicts) == 2


@pytest.mark.parametrize(
    "more",
    [
        {"id": ""},
        {"tier": "public"},
        {"agent": 3},
        {"session": None},
        {"verdicts": [approval()]},
        {"verdicts": "none"},
        {"usage": {}},
        {"candidate": {}},
    ],
)
def test_a_tool_is_checked_when_it_is_made(more: dict[str, Any]):
    """By hand, or read from data."""
    assert complaint(EmergentTool.from_dict, tool().to_dict() | more)


def test_what_was_never_expected_stays_apart_from_none():
    """In values and in data."""
    tests = (run(output=None), run(output=None, expected=None))
    data = json.loads(json.dumps(candidate(tests=tests).to_dict()))

    assert ["expected" in item for item in data["tests"]] == [False, True]
    assert type(candidate()).from_dict(data) == candidate(tests=tests)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"name": " "}, "a name that is not empty"),
        ({"name": 3}, "name must be a text"),
        ({"source": None}, "source must be a text"),
        ({"description": "\ud800"}, "lone surrogate at character 0"),
        ({"mode": "shell"}, "compose, sandbox"),
        ({"input_schema": None}, "input_schema is a JSON Schema"),
        ({"output_schema": "object"}, "output_schema is a JSON Schema"),
        ({"output_schema": {"const": {1}}}, "const: set is not a JSON type"),
        ({"input_schema": {"const": "\udfff"}}, "not valid Unicode"),
        ({"input_schema": {"const": Decimal(1)}}, "input_schema is not JSON"),
        ({"steps": "fetch"}, "steps must be a list"),
        ({"steps": [float("inf")]}, "is not a JSON number"),
        ({"allowlist": "fetch"}, "allowlist must be a list"),
        ({"allowlist": [3]}, "an entry of the allowlist must be a text"),
        ({"tests": [{"input": 1}]}, "are ToolTest values"),
        ({"tests": {}}, "tests must be a list"),
    ],
)
def test_a_candidate_is_checked_when_it_is_made(more: dict[str, Any], message: str):
    """What is no tool at all is an error; what is a bad tool is for the review to say."""
    assert message in complaint(candidate, **more)


@pytest.mark.parametrize("more", [{"success": 1}, {"success": None}, {"error": 3}, {"error": "\ud800"}])
def test_a_recorded_run_is_checked_when_it_is_made(more: dict[str, Any]):
    """``success`` is a truth value: the text "false" would count as success."""
    assert complaint(run, **more)


@pytest.mark.parametrize(
    "more",
    [
        {"uses": 2},
        {"successes": -1},
        {"uses": True},
        {"mean_ms": float("nan")},
        {"mean_ms": -1},
        {"mean_ms": "2"},
        {"last_used_at": "yesterday"},
        {"last_used_at": "2026-01-31T12:00:00"},
        {"last_used_at": 3},
        {"history": None},
        {"colour": "red"},
        {"schema": "adjudge/tool/1"},
    ],
)
def test_usage_is_read_strictly(more: dict[str, Any]):
    """What ``to_dict`` did not write is refused; a time has its zone."""
    data = ToolUsage().add(success=True, duration_ms=1, at=datetime(2026, 1, 31, tzinfo=UTC)).to_dict()

    assert ToolUsage.from_dict(data).last_used_at == datetime(2026, 1, 31, tzinfo=UTC)
    assert complaint(ToolUsage.from_dict, data | more)


def test_values_that_are_no_dictionaries_are_refused():
    """By every reader."""
    for kind in (ToolCandidate, ToolTest, ToolUsage, EmergentTool, CreationVerdict, PromotionVerdict, ReviewVerdict):
        for data in (None, [], "x", {}):
            assert complaint(kind.from_dict, data)
    assert complaint(read_verdict, {"schema": "adjudge/review-verdict/1"})
    assert complaint(load_candidate, 3)


def test_nothing_expected_is_false_and_says_what_it_is():
    """As a value and in a debugger."""
    assert not MISSING
    assert repr(MISSING) == "MISSING"


def test_a_mapping_is_a_candidate_too():
    """As it comes from a model, in the seeds' names; null where nothing is."""
    data = {
        "name": "a",
        "description": "b",
        "inputSchema": {},
        "outputSchema": None,
        "implementationMode": "compose",
        "steps": None,
        "source": "x",
        "testResults": [{"input": {}, "success": False, "error": "boom"}],
    }

    assert load_candidate(data).tests == (run(success=False, error="boom"),)
    assert "must be a mapping" in complaint(load_candidate, {**data, "testResults": [3]})
    assert "must be a list of recorded runs" in complaint(load_candidate, {**data, "testResults": {}})
