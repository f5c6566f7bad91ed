"""Conformance cases about approvals, replayed.

A case of a judge that answers first has a handler to fall back on. Here people are asked, and ``auto-reject`` is the
request that expires.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from adjudge import Approvals
from kit.approvals import make_result, try_to, use
from kit.environment import read_vectors
from kit.judges import Seat, passed
from kit.ledgers import find

pytestmark = pytest.mark.timed


FEATURES = ("approval", "hitl.llm_judge", "human_node.timeout")
SOON = 0.05


def test_conformance_cases(tmp_path: Path):
    """Each case comes out as recommended."""
    chosen = [case for case in read_vectors(features=FEATURES) if case["feature"] in FEATURES]

    assert chosen
    for number, case in enumerate(chosen):
        check_case(case, f"sqlite:///{tmp_path / str(number)}.db")


def check_case(case: Mapping[str, Any], url: str) -> None:
    original, recommended = case["expect"]["original"], case["expect"]["recommended"]
    # What is recommended says where it differs; the rest is as in the original.
    expected = original if recommended == "same" else original | recommended
    actual = REPLAYS[case["feature"]](case["given"], url)
    for name, value in actual.items():
        assert name not in expected or expected[name] in (value, "unspecified"), f"{case['id']}: {name}"
    assert set(expected) - {"why"} <= set(actual), case["id"]


def replay_approval(inputs: Mapping[str, Any], url: str) -> dict[str, Any]:
    """The two approvers are distinct and on the list; the same one twice is one."""
    names = inputs.get("responses_by") or [f"person-{n}" for n, _ in enumerate(inputs["responses"])]
    options: dict[str, Any] = {
        "approvers": inputs.get("approvers") or names or ["somebody"],
        "required": inputs["required"],
    }
    options |= {"expires_in": SOON} if inputs.get("expired") else {}
    options |= {"on_expiry": "approve"} if inputs.get("autoApproveOnTimeout") else {}

    async def work(approvals: Approvals) -> dict[str, Any]:
        ident = await approvals.request(make_result(), "Publish it?", **options)
        for name, approved in zip(names, inputs.get("responses") or [True] * len(names), strict=True):
            await try_to(approvals, ident, name, approved)
        if inputs.get("expired"):
            await approvals.wait(ident)
        approval = await approvals.get(ident)
        return {"approved": bool(approval)} | ({"status": "awaiting"} if approval.status == "open" else {})

    return use(url, work)


def replay_judge(inputs: Mapping[str, Any], url: str) -> dict[str, Any]:
    """It approves with enough confidence; otherwise nobody answers, and the request is denied."""
    assert inputs["fallback"] == "auto-reject"
    says = {"because": "error"} if "throws" in inputs else {}
    judge = Seat("undecided", **says) if says else passed(confidence=inputs["confidence"])

    async def work(approvals: Approvals) -> dict[str, Any]:
        options: dict[str, Any] = {"approvers": ["ana"], "first": judge, "content": "x", "expires_in": SOON}
        ident = await approvals.request(make_result(), "Publish it?", **options)
        await approvals.wait(ident)
        approval = await approvals.get(ident)
        reason = (
            "<low_confidence_default>" if "0.7 is needed" in approval.first_said else approval.first_said.split(":")[0]
        )
        via = {"judge": "judge", "policy": "fallback"}[approval.decided_by or ""]
        return {"approved": bool(approval), "via": via} | ({"reason": reason} if not approval else {})

    return use(url, work)


def replay_timeout(inputs: Mapping[str, Any], url: str) -> dict[str, Any]:
    """A judge that hangs holds nobody up; the expiry approves because that was asked for by name, and says so."""
    assert (inputs["judge"], inputs["on_timeout"]) == ("hangs", "accept")
    options: dict[str, Any] = {"expires_in": inputs["timeout_ms"] / 1000, "on_expiry": "approve"}

    async def work(approvals: Approvals) -> dict[str, Any]:
        judge = passed(confidence=1.0, delay=3600)
        ident = await approvals.request(
            make_result(), "Publish it?", approvers=["ana"], first=judge, content="x", **options
        )
        answer = await approvals.wait(ident)
        assert judge.cancelled == 1
        return {"approved": answer.approved, "decided_by": "timeout-accept" if answer.by is None else "human"}

    replayed = use(url, work)
    (closed,) = [entry.payload for entry in find(url, kind="approval.closed")]
    assert closed is not None
    assert closed["decided_by"] == "policy"
    assert "on_expiry='approve'" in closed["closed_because"]
    return replayed


REPLAYS = {"approval": replay_approval, "hitl.llm_judge": replay_judge, "human_node.timeout": replay_timeout}
