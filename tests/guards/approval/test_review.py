"""What a reviewer is shown: what is missing, what was approved before, own figures."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from adjudge import Approvals, Gate
from adjudge.guards import DecisionRefused, digest_shown
from kit.approvals import ask, make_result, use
from kit.clock import Clock
from kit.ledgers import STORES, find, open_store


@pytest.fixture(name="url", params=STORES)
def make_url(request: pytest.FixtureRequest, tmp_path: Path, require: Any) -> Iterator[str]:
    """Each store."""
    with open_store(request.param, tmp_path, require) as url:
        yield url


# ---------------------------------------------------------------- what is missing

CONTENT = "You get a refund."


async def ask_gate(approvals: Approvals, content: str = CONTENT, **changes: Any) -> str:
    options: dict[str, Any] = {"rules": [{"regex": "refund", "absent": True}], "on_failed": "ask", "show_content": True}
    options |= {"ask": {"approvers": ["ana", "bob"]}, "wait": False, "approvals": approvals} | changes
    metadata = options.pop("metadata", None)
    decision = await Gate(options.pop("name", "replies"), **options).check(content, metadata=metadata)
    assert decision.approval_id is not None
    return decision.approval_id


def redact(content: str) -> str:
    return content.replace("refund", "[…]")


@pytest.mark.parametrize(
    ("options", "kinds"),
    [({}, []), ({"show_content": False}, ["missing"]), ({"redact": redact}, ["changed"])],
    ids=["all", "no content", "redacted"],
)
def test_what_is_not_shown_in_full_cannot_be_approved(url: str, options: dict[str, Any], kinds: list[str]):
    """It says what is missing and what to do; denying works always."""

    async def work(approvals: Approvals) -> list[str]:
        ident = await ask_gate(approvals, **options)
        gaps = await approvals.find_gaps(ident)
        assert all(gap.what and gap.remedy for gap in gaps)
        if gaps:
            with pytest.raises(DecisionRefused, match=r"does not show all .* it can be denied") as refused:
                await approvals.decide(ident, "ana", True, require_complete=True)
            assert refused.value.because == "incomplete"
            await approvals.decide(ident, "ana", False, require_complete=True)
        else:
            await approvals.decide(ident, "ana", True, require_complete=True)
        assert (await approvals.get(ident)).status == ("denied" if gaps else "approved")
        return [gap.kind for gap in gaps]

    assert use(url, work) == kinds
    attempts = [
        (entry.payload["accepted"], entry.payload["refused_because"]) for entry in find(url, kind="approval.voted")
    ]
    assert attempts == ([(False, "incomplete")] if kinds else []) + [(True, None)]


@pytest.mark.parametrize("change", ["content", "message", "result"])
def test_what_was_changed_in_its_table_cannot_be_approved(tmp_path: Path, change: str):
    """The ledger says what people were asked; another text would get a yes for something else."""
    url = f"sqlite:///{tmp_path / 'adjudge.db'}"
    old, new = {"content": (CONTENT, "You get nothing."), "message": ("held this back", "likes this")}.get(
        change, ('"severity": "error"', '"severity": "info"')
    )

    async def work(approvals: Approvals) -> str:
        ident = await ask_gate(approvals)
        with closing(sqlite3.connect(tmp_path / "adjudge.db")) as connection, connection:
            connection.execute("UPDATE adjudge_approvals SET body = replace(body, ?, ?)", (old, new))
        assert "changed" in [gap.kind for gap in await approvals.find_gaps(ident)]
        with pytest.raises(DecisionRefused) as refused:  # whoever asks, not only a page
            await approvals.decide(ident, "ana", True)
        assert refused.value.because == "changed"
        return (await approvals.decide(ident, "ana", False)).status

    assert use(url, work) == "denied"


def test_changed_metadata_cannot_be_approved(tmp_path: Path):
    """Title, tool and declared effects are read from the metadata, so these are what the ledger says, too."""
    url = f"sqlite:///{tmp_path / 'adjudge.db'}"
    metadata = {"tool": "pay", "call": {"effects": ["cannot be taken back"]}, "odd": [2**60, 1e18, -0.0, "\ud800"]}

    async def work(approvals: Approvals) -> str:
        ident = await ask_gate(approvals, metadata=metadata)
        assert await approvals.find_gaps(ident) == ()
        with closing(sqlite3.connect(tmp_path / "adjudge.db")) as connection, connection:
            (body,) = connection.execute("SELECT body FROM adjudge_approvals").fetchone()
            changed = json.loads(body) | {"metadata": metadata | {"call": {"effects": ["only reads"]}}}
            connection.execute("UPDATE adjudge_approvals SET body = ?", (json.dumps(changed),))
        assert [gap.kind for gap in await approvals.find_gaps(ident)] == ["changed"]
        with pytest.raises(DecisionRefused) as refused:
            await approvals.decide(ident, "ana", True)
        assert refused.value.because == "changed"
        return (await approvals.decide(ident, "ana", False)).status

    assert use(url, work) == "denied"


def test_what_was_shown_must_be_what_is_approved(url: str):
    """A page sends back the digest of what it showed."""

    async def work(approvals: Approvals) -> str:
        ident = await ask_gate(approvals)
        seen = digest_shown(await approvals.get(ident))
        with pytest.raises(DecisionRefused) as refused:
            await approvals.decide(ident, "ana", True, seen="0" * 64)
        assert refused.value.because == "changed"
        return (await approvals.decide(ident, "ana", True, seen=seen)).status

    assert use(url, work) == "approved"


def test_a_long_content_can_be_asked_about(url: str):
    """What people are shown may be longer than an entry of the ledger."""

    async def work(approvals: Approvals) -> str:
        ident = await ask_gate(approvals, "refund " * 2_000_000)
        return (await approvals.decide(ident, "ana", True, require_complete=True)).status

    assert use(url, work) == "approved"


# ---------------------------------------------------------------- what was approved before


def test_the_last_one_that_people_approved_at_the_gate_is_found(url: str):
    """Not one of another gate, of another tool, that was denied, that expired, or that came later."""
    clock = Clock()

    async def work(approvals: Approvals) -> tuple[Any, ...]:
        async def decide(content: str, approved: bool | None = True, **options: Any) -> str:
            ident = await ask_gate(approvals, content, **options)
            if approved is not None:
                await approvals.decide(ident, "ana", approved)
            return ident

        first = await decide("refund 1", metadata={"tool": "pay"})
        assert await approvals.find_earlier(first) is None
        expected = await decide("refund 2", metadata={"tool": "pay"})
        await decide("refund 3", metadata={"tool": "post"})
        await decide("refund 4", metadata={"tool": "pay"}, name="others")
        await decide("refund 5", False, metadata={"tool": "pay"})
        await decide("refund 6", metadata={"tool": "pay"}, show_content=False)
        by_policy = {"approvers": ["ana"], "expires_in": 5, "on_expiry": "approve"}
        await decide("refund 7", None, metadata={"tool": "pay"}, ask=by_policy)
        clock.pass_by(6)
        asked = await decide("refund 8", None, metadata={"tool": "pay"})
        await decide("refund 9", metadata={"tool": "pay"})
        await approvals.list()
        approval = await approvals.find_earlier(asked)
        return approval is not None and approval.id == expected, approval is not None and approval.content

    assert use(url, work, clock=clock) == (True, "refund 2")


def test_an_earlier_one_that_the_ledger_does_not_confirm_is_passed_over(tmp_path: Path):
    """Else somebody could change it so that the new one looks like it."""
    url = f"sqlite:///{tmp_path / 'adjudge.db'}"

    async def work(approvals: Approvals) -> Any:
        await approvals.decide(await ask_gate(approvals, "refund 1"), "ana", True)
        with closing(sqlite3.connect(tmp_path / "adjudge.db")) as connection, connection:
            connection.execute("UPDATE adjudge_approvals SET body = replace(body, 'refund 1', 'refund 2')")
        return await approvals.find_earlier(await ask_gate(approvals, "refund 2"))

    assert use(url, work) is None


def test_without_a_gate_nothing_is_alike(url: str):
    """A request of a program's own names no action."""
    assert ask(url, Approvals.find_earlier, content="x") is None


# ---------------------------------------------------------------- a reviewer's own figures


def test_a_reviewer_sees_how_they_decided(url: str):
    """How many, how often as the judge said, how fast, and how many they took back; nothing of others."""
    clock = Clock()

    async def work(approvals: Approvals) -> dict[str, Any]:
        plan = [("failed", False, 10), ("failed", True, 30), ("passed", True, 20), ("undecided", True, 40)]
        for outcome, approved, seconds in plan:
            ident = await approvals.request(make_result(outcome), "Send it?", approvers=["ana", "bob"], required=2)
            clock.pass_by(seconds)
            await approvals.decide(ident, "ana", approved)
            if approved:
                await approvals.decide(ident, "bob", False)
        ident = await approvals.request(make_result(), "Send it?", approvers=["ana"])
        await approvals.decide(ident, "ana", True, undo_seconds=10)
        await approvals.withdraw(ident, "ana")
        return (await approvals.compute_figures("ana")).to_dict()

    figures = use(url, work, clock=clock)
    assert figures == {
        "schema": "adjudge/reviewer-figures/1",
        "by": "ana",
        "since": None,
        "decided": 4,
        "approved": 3,
        "denied": 1,
        "with_judge": 2,
        "against_judge": 1,
        "withdrawn": 1,
        "median_seconds": 25.0,
    }


def test_figures_of_nobody_are_zero(url: str):
    """A reviewer who never decided, or a ledger that is not there yet."""
    figures = use(url, lambda approvals: approvals.compute_figures("eve"))

    assert (figures.decided, figures.median_seconds) == (0, None)
