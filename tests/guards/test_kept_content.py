"""What a ledger keeps of what gates judge: nothing but digests, unless the operator says otherwise."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from adjudge import Approvals, Gate, Ledger, UsageError
from adjudge.guards import InputFirewall, ToolCall, ToolGuard
from adjudge.testing import ScriptedModel
from kit.approvals import make_result
from kit.ledgers import STORES, open_store, run

CONTENT, TASK, CONTEXT = "My name is Weber.", "Answer Weber.", {"turns": ["Who are you?"]}

RULES = [{"regex": "Weber", "absent": True}]


def digest_text(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def read_decision(url: str, **options: Any) -> dict[str, Any]:
    """The payload of the decision of a gate about ``CONTENT``."""
    rules = options.pop("rules", RULES)

    async def work(ledger: Ledger) -> dict[str, Any]:
        gate = Gate("answers", rules=rules, ledger=ledger)
        decision = await gate.check(CONTENT, task=TASK, context=CONTEXT, reference=None)
        entry = await ledger.read(decision.ledger_seq or 0)
        assert entry.subject == digest_text(CONTENT)
        return entry.payload or {}

    return run(url, work, **options)


@pytest.mark.parametrize("rules", [RULES, [{"regex": "Weber"}]], ids=["blocked", "passed"])
def test_full_keeps_what_was_judged_and_what_it_was_judged_with(tmp_path: Path, rules: Any):
    """Of what a gate passed and of what it blocked: the content, the task and the context, as the judge was shown."""
    payload = read_decision(f"sqlite:///{tmp_path / 'a.db'}", store_content="full", rules=rules)

    assert (payload["content"], payload["task"]) == (CONTENT, TASK)
    assert json.loads(payload["context"]) == CONTEXT
    assert "reference" not in payload


def test_redacted_keeps_what_the_function_makes_of_it(tmp_path: Path):
    """Content, task and context go through the ledger's ``redact``."""
    redact = lambda text: text.replace("Weber", "[name]")  # noqa: E731
    payload = read_decision(f"sqlite:///{tmp_path / 'a.db'}", store_content="redacted", redact=redact)

    assert (payload["content"], payload["task"]) == ("My name is [name].", "Answer [name].")


@pytest.mark.parametrize("options", [{}, {"store_content": "hash"}, {"store_content": "held"}], ids=str)
def test_by_default_nothing_of_it_is_in_the_ledger(tmp_path: Path, options: dict[str, Any]):
    """Without the option and with ``hash``, and with ``held`` for what no person is asked about."""
    payload = read_decision(f"sqlite:///{tmp_path / 'a.db'}", **options)

    assert not {"content", "task", "context", "reference"} & payload.keys()
    assert b"Weber" not in (tmp_path / "a.db").read_bytes()


def test_a_gate_that_redacts_has_the_redacted_content_kept(tmp_path: Path):
    """What the gate hides from its judge is hidden from the ledger too; what cannot be redacted is not kept."""
    seen = []
    for redact in (lambda text: str(text).replace("Weber", "[name]"), lambda _text: 1 / 0):

        async def work(ledger: Ledger, redact: Any = redact) -> dict[str, Any]:
            gate = Gate("answers", rules=RULES, ledger=ledger, redact=redact)
            return (await ledger.read((await gate.check(CONTENT)).ledger_seq or 0)).payload or {}

        seen.append(run(f"sqlite:///{tmp_path / f'{len(seen)}.db'}", work, store_content="full"))

    assert seen[0]["content"] == "My name is [name]."
    assert "content" not in seen[1]


def test_what_is_too_long_for_an_entry_is_kept_as_a_digest(tmp_path: Path):
    """A content of 9 MB passes, and its entry has the digest, and the task in full."""
    long = "x" * 9_000_000

    async def work(ledger: Ledger) -> tuple[bool, dict[str, Any]]:
        decision = await Gate("answers", rules=[{"regex": "x"}], ledger=ledger).check(long, task=TASK)
        return decision.allowed, (await ledger.read(decision.ledger_seq or 0)).payload or {}

    allowed, payload = run(f"sqlite:///{tmp_path / 'a.db'}", work, store_content="full")

    assert allowed
    assert (payload["content"], payload["task"]) == (f"sha256:{digest_text(long)}", TASK)


def test_a_tool_guard_and_its_firewalls_have_the_call_kept(tmp_path: Path):
    """The decision of the guard about a call that an input firewall refused, and of a gate about another."""
    reply = {"safe": False, "threats": [], "reasoning": "no"}

    async def work(ledger: Ledger) -> list[dict[str, Any]]:
        guard = ToolGuard(
            {"pay": Gate("pay", rules=RULES, ledger=ledger), "send": InputFirewall(ScriptedModel(reply))}, ledger=ledger
        )
        for tool in ("pay", "send"):
            await guard.check(ToolCall(tool, {"to": "Weber"}, call_id=tool, run_id="run-1"))
        return [entry.payload or {} async for entry in ledger.query(kind="decision")]

    payloads = run(f"sqlite:///{tmp_path / 'a.db'}", work, store_content="full")

    assert [json.loads(payload["content"])["arguments"] for payload in payloads] == [{"to": "Weber"}] * 2


def test_a_recorder_of_ones_own_is_given_no_content():
    """It has no ``keeps_content``, and its ``append`` takes what it always took."""
    seen: list[dict[str, Any]] = []

    class Store:
        async def append(self, value: Any, /, **options: Any) -> int:
            seen.append(options)
            return 1

    assert not asyncio.run(Gate("answers", rules=RULES, ledger=Store()).check(CONTENT))
    assert [set(options) for options in seen] == [{"kind", "subject", "gate"}]


def test_context_has_known_names(tmp_path: Path):
    """Another member would take the place of one of the entry's own."""

    async def work(ledger: Ledger) -> None:
        await ledger.append(make_result(), content="a", context={"outcome": "passed"})

    with pytest.raises(UsageError) as caught:
        run(f"sqlite:///{tmp_path / 'a.db'}", work)
    assert caught.value.argument == "context"


# ---------------------------------------------------------------- what is held


@pytest.mark.parametrize("kind", STORES)
def test_held_keeps_what_a_person_is_asked_about_until_its_time_is_over(kind: str, tmp_path: Path, require: Any):
    """With the request and not in the ledger; ``keep_for`` seconds after the end it is gone."""
    now = [datetime.now(UTC)]
    ask = {"approvers": ["ana"]}

    async def work(ledger: Ledger) -> None:
        approvals = Approvals(ledger, keep_for=3600, clock=lambda: now[0])
        gate = Gate("answers", rules=RULES, on_failed="ask", approvals=approvals, ask=ask, wait=False, ledger=ledger)
        held = await gate.check(CONTENT)
        other = await gate.check(f"{CONTENT} Again.")
        assert held.approval_id is not None
        assert (await approvals.get(held.approval_id)).content == CONTENT
        assert not [entry async for entry in ledger.query() if "content" in (entry.payload or {})]

        await approvals.decide(held.approval_id, "ana", False)
        now[0] += timedelta(minutes=59)
        assert await approvals.forget_due() == 0
        now[0] += timedelta(minutes=2)
        assert await approvals.forget_due() == 1
        assert await approvals.forget_due() == 0
        assert (await approvals.get(held.approval_id)).content is None
        assert (await approvals.get(other.approval_id or "")).content == f"{CONTENT} Again."  # it is open still
        assert await ledger.verify()

    with open_store(kind, tmp_path, require) as url:
        run(url, work, store_content="held")
