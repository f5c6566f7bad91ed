"""Limits of a webhook: how long closing waits, and how much waits to be sent."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from adjudge import Approvals
from adjudge.guards import Webhook
from adjudge.guards.approval import approvals as approvals_module
from adjudge.guards.approval import webhook as webhooks
from kit.approvals import WHO, make_result
from kit.webhooks import KEY, Receiver, deliver, serve

pytestmark = pytest.mark.timed


async def ask(approvals: Approvals) -> str:
    return await approvals.request(make_result(), "Publish it?", **WHO)


async def ask_and_approve(approvals: Approvals) -> None:
    await approvals.decide(await ask(approvals), "ana", True)


def test_closing_gives_up_what_takes_too_long(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    """It waits for deliveries, but not for ever, and leaves nothing behind."""
    monkeypatch.setattr(approvals_module, "_DRAIN_SECONDS", 0.05)
    deliver(tmp_path, Receiver(hangs=True), ask)

    assert "webhook: 1 deliveries were given up" in caplog.text


def test_what_waits_is_bounded(tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch):
    """A receiver that is down does not fill the memory."""
    monkeypatch.setattr(webhooks, "MOST_WAITING", 1)
    monkeypatch.setattr(approvals_module, "_DRAIN_SECONDS", 0.05)
    receiver = Receiver(hangs=True)
    deliver(tmp_path, receiver, ask_and_approve)

    assert len(receiver.got) <= 1
    assert "was dropped, 1 wait" in caplog.text


def test_a_receiver_that_is_not_there_stops_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    """Requests and decisions go on."""
    receiver = Receiver()

    async def work(approvals: Approvals) -> None:
        approvals._delivery_queue.webhook = Webhook("http://127.0.0.1:1/hook/", secret=KEY, retries=1)  # type: ignore[union-attr]
        await ask_and_approve(approvals)

    deliver(tmp_path, receiver, work)

    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(lines) == 2
    assert all("was not delivered: 127.0.0.1:1 could not be reached" in line for line in lines)
    assert "/hook" not in caplog.text


def test_nothing_for_this_machine_goes_through_a_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """It may be plain http: who stands in between would read it."""
    receiver, between = Receiver(), Receiver()

    async def work(approvals: Approvals) -> None:
        async with serve(between):
            monkeypatch.setenv("HTTP_PROXY", between.url)
            monkeypatch.setenv("NO_PROXY", "")
            await ask(approvals)
            await approvals._delivery_queue.drain(10)  # type: ignore[union-attr]

    deliver(tmp_path, receiver, work)

    assert receiver.events == [("approval.requested", "open")]
    assert between.got == []
