"""Nothing passes a gate by accident: every option with everything that can happen."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any, get_args

from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge import JudgeChain
from adjudge.errors import Reason
from adjudge.guards import ApprovalAnswer
from kit.gates import Book, Desk, check, gate, seat

REASONS: tuple[str, ...] = get_args(Reason)

KINDS = st.sampled_from(["passed", "failed", *REASONS])
BROKEN = st.sampled_from([OSError("x"), asyncio.CancelledError(), "no place", True])
ANSWERS = st.sampled_from(
    [
        *itertools.starmap(ApprovalAnswer, [(True, "ana"), (False, "ana"), (False, None, "expired"), (1, "ana")]),
        RuntimeError(),
        (True, "ana", ""),
        None,
        "yes",
    ]
)
CONTENTS = st.sampled_from(["short", "a content that breaks the rule", "a\x00b", b"binary"])
OPTIONS = st.fixed_dictionaries(
    {
        "on_failed": st.sampled_from(["block", "ask"]),
        "on_undecided": st.sampled_from(["block", "allow", "ask"]),
        "on_tampering": st.sampled_from(["block", "ask"]),
        "mode": st.sampled_from(["enforce", "observe"]),
        "sample": st.sampled_from([0, 0.5, 1]),
        "wait": st.booleans(),
        "rules": st.sampled_from([(), ({"name": "length", "max": 20},)]),
    }
)


@st.composite
def judges(draw: Any) -> tuple[Any, bool]:
    """A judge, and whether it may open by policy."""
    kinds = draw(st.lists(KINDS, min_size=1, max_size=3))
    strategy = draw(st.sampled_from(["fallback", "consensus", "majority", "cascade"]))
    opens = draw(st.booleans())
    more: dict[str, Any] = {"escalate_below": 0.5} if strategy == "cascade" else {}
    made = JudgeChain([seat(kind) for kind in kinds], strategy=strategy, fail_open=opens, timeout=None, **more)
    return made, opens


@settings(max_examples=600, deadline=None)
@given(
    judge=judges(),
    options=OPTIONS,
    answer=ANSWERS,
    breaks=st.none() | BROKEN,
    redact=st.sampled_from([None, str, lambda value: None]),
    content=CONTENTS,
)
def test_nothing_passes_unless_it_was_asked_for_by_name(
    *, judge: tuple[Any, bool], options: dict[str, Any], answer: Any, breaks: Any, redact: Any, content: Any
):
    """What is allowed was passed by a judge or approved by a person; or by policy, under an option that says so."""
    made, opens = judge
    desk, book = Desk(answer), Book(breaks=breaks)
    decision = check(gate(judge=made, approvals=desk, ledger=book, redact=redact, **options), content)
    enforced = options["mode"] == "enforce"

    if enforced and breaks is not None:
        assert not decision.allowed
    if decision.allowed and decision.decided_by == "human":
        assert answer == ApprovalAnswer(True, "ana")
        assert answer.approved is True
        assert "ask" in (options["on_failed"], options["on_undecided"], options["on_tampering"])
    elif decision.allowed and decision.decided_by == "policy":
        assert opens or options["on_undecided"] == "allow" or not enforced or options["sample"] < 1
    elif decision.allowed:
        assert decision.result is not None
        assert decision.result.passed
    if enforced and decision.allowed and decision.sampled:
        assert content in {"short", "a content that breaks the rule"} or decision.decided_by == "human"


@settings(max_examples=400, deadline=None)
@given(judge=judges(), options=OPTIONS, content=CONTENTS)
def test_strict_options_let_only_passes_through(judge: tuple[Any, bool], options: dict[str, Any], content: Any):
    """Without one of the options that open by name, and without a person, allowed means that a judge passed it."""
    made, opens = judge
    strict = {**options, "on_failed": "block", "on_undecided": "block", "on_tampering": "block"}
    decision = check(gate(judge=made, **{**strict, "mode": "enforce", "sample": 1}), content)

    assert not decision.pending
    if decision.allowed:
        assert decision.result is not None
        assert decision.result.passed
        assert opens or decision.decided_by == "judge"


@settings(max_examples=200, deadline=None)
@given(kinds=st.lists(KINDS, min_size=1, max_size=3), strategy=st.sampled_from(["fallback", "consensus", "majority"]))
def test_allowing_the_undecided_never_overrules_anybody(kinds: list[str], strategy: str):
    """``on_undecided="allow"`` opens over nothing that failed, contradicts itself or was tampered with."""
    chain = JudgeChain([seat(kind) for kind in kinds], strategy=strategy, timeout=None, stop_early=False)
    decision = check(gate(judge=chain, on_undecided="allow"))
    objections = {"failed", "tampering", "contradiction"}.intersection(kinds)

    if decision.allowed and decision.decided_by == "policy":
        assert not objections or all(
            result.undecided_because not in objections and result.outcome != "failed"
            for result in decision.result.results
        )
