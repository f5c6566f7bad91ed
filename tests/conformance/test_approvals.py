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


def replay_approval(given: Mapping[str, Any], url: str) -> dict[str, Any]:
    """The two approvers are distinct and on the list; the same one twice is one."""
    names = given.get("responses_by") or [f"person-{n}" for n, _ in enumerate(given["responses"])]
    how: dict[str, Any] = {"approvers": given.get("approvers") or names or ["somebody"], "required": given["required"]}
    how |= {"expires_in": SOON} if given.get("expired") else {}
    how |= {"on_expiry": "approve"} if given.get("autoApproveOnTimeout") else {}

    async def work(approvals: Approvals) -> dict[str, Any]:
        ident = await approvals.request(make_result(), "Publish it?", **how)
        for name, approved in zip(names, given.get("responses") or [True] * len(names), strict=True):
            await try_to(approvals, ident, name, approved)
        if given.get("expired"):
            await approvals.wait(ident)
        found = await approvals.get(ident)
        return {"approved": bool(found)} | ({"status": "awaiting"} if found.status == "open" else {})

    return use(url, work)


def replay_judge(given: Mapping[str, Any], url: str) -> dict[str, Any]:
    """It approves with enough confidence; otherwise nobody answers, and the request is denied."""
    assert given["fallback"] == "auto-reject"
    says = {"because": "error"} if "throws" in given else {}
    judge = Seat("undecided", **says) if says else passed(confidence=given["confidence"])

    async def work(approvals: Approvals) -> dict[str, Any]:
        how: dict[str, Any] = {"approvers": ["ana"], "first": judge, "content": "x", "expires_in": SOON}
        ident = await approvals.request(make_result(), "Publish it?", **how)
        await approvals.wait(ident)
        found = await approvals.get(ident)
        reason = "<low_confidence_default>" if "0.7 is needed" in found.first_said else found.first_said.split(":")[0]
        via = {"judge": "judge", "policy": "fallback"}[found.decided_by or ""]
        return {"approved": bool(found), "via": via} | ({"reason": reason} if not found else {})

    return use(url, work)


def replay_timeout(given: Mapping[str, Any], url: str) -> dict[str, Any]:
    """A judge that hangs holds nobody up; the expiry approves because that was asked for by name, and says so."""
    assert (given["judge"], given["on_timeout"]) == ("hangs", "accept")
    how: dict[str, Any] = {"expires_in": given["timeout_ms"] / 1000, "on_expiry": "approve"}

    async def work(approvals: Approvals) -> dict[str, Any]:
        judge = passed(confidence=1.0, delay=3600)
        ident = await approvals.request(
            make_result(), "Publish it?", approvers=["ana"], first=judge, content="x", **how
        )
        answer = await approvals.wait(ident)
        assert judge.cancelled == 1
        return {"approved": answer.approved, "decided_by": "timeout-accept" if answer.by is None else "human"}

    said = use(url, work)
    (closed,) = [entry.payload for entry in find(url, kind="approval.closed")]
    assert closed is not None
    assert closed["decided_by"] == "policy"
    assert "on_expiry='approve'" in closed["closed_because"]
    return said


REPLAYS = {"approval": replay_approval, "hitl.llm_judge": replay_judge, "human_node.timeout": replay_timeout}
