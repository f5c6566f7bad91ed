"""Webhooks: what is sent, how it is signed and tried again, and that nobody waits for it."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import standardwebhooks
from hypothesis import given
from hypothesis import strategies as st

from adjudge import Approvals
from adjudge.guards import Webhook, verify_webhook
from kit.approvals import WHO, make_result, try_to
from kit.clock import Clock
from kit.judges import complaint, names, passed
from kit.ledgers import SECRET
from kit.ledgers import make_result as make_quoting_result
from kit.webhooks import KEY, Receiver, deliver

pytestmark = pytest.mark.timed


async def ask(approvals: Approvals) -> str:
    return await approvals.request(make_result(), "Publish it?", **WHO)


async def ask_and_approve(approvals: Approvals) -> None:
    await approvals.decide(await ask(approvals), "ana", True)


# ---------------------------------------------------------------- what is sent


def test_word_is_sent_when_a_request_opens_and_closes(tmp_path: Path):
    """Signed, with ids, state and score; nothing that can quote the content, and no secret."""
    receiver = Receiver()

    async def work(approvals: Approvals) -> str:
        ident = await approvals.request(make_quoting_result(), SECRET, content=SECRET, **WHO, expires_in=60)
        await try_to(approvals, ident, "eve", True, SECRET)
        await approvals.decide(ident, "ana", True, SECRET)
        return ident

    ident = deliver(tmp_path, receiver, work)
    sent = {headers["webhook-id"]: json.loads(body) for headers, body in receiver.got}
    opened, closed = (sent[f"{ident}:approval.{event}"]["data"] for event in ("requested", "closed"))

    assert sorted(receiver.events) == [("approval.closed", "approved"), ("approval.requested", "open")]
    assert (opened["approval"], opened["approvers"], opened["score"], opened["outcome"]) == (
        ident,
        ["ana", "bob"],
        0.25,
        "failed",
    )
    assert (closed["decided_by"], closed["subject"]) == ("human", "5" * 64)
    assert SECRET not in str(receiver.got)
    assert KEY not in str(receiver.got)


def test_expiry_and_a_first_judge_are_told_too(tmp_path: Path):
    """Once each; a request that a judge approved was never open."""
    receiver, clock = Receiver(), Clock()

    async def work(approvals: Approvals) -> None:
        ident = await approvals.request(make_result(), "Publish it?", **WHO, expires_in=60)
        await approvals.request(make_result(), "?", **WHO, first=passed(confidence=1.0), content="x")
        clock.pass_by(60)
        async with asyncio.TaskGroup() as group:
            for _ in range(5):
                group.create_task(approvals.get(ident))

    deliver(tmp_path, receiver, work, clock=clock)

    assert sorted(receiver.events) == [
        ("approval.closed", "approved"),
        ("approval.closed", "denied"),
        ("approval.requested", "open"),
    ]


# ---------------------------------------------------------------- trying again


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_a_receiver_that_is_busy_is_asked_again(tmp_path: Path, status: int):
    """Under the same id, and signed anew, so that the receiver can tell and believe it."""
    receiver = Receiver(status, status, 200, headers={"Retry-After": "30"})
    deliver(tmp_path, receiver, ask)

    assert len(receiver.events) == 3
    assert len({headers["webhook-id"] for headers, _ in receiver.got}) == 1


@pytest.mark.parametrize(
    ("receiver", "tries", "reason"),
    [
        (Receiver(404), 1, "it answered 404"),
        (Receiver(302, headers={"Location": "/hook/elsewhere"}), 1, "it answered 302"),
        (Receiver(500), 3, "it answered 500"),
        (Receiver(hangs=True), 3, "TimeoutError"),
    ],
    ids=["refused", "redirected", "broken", "hangs"],
)
def test_what_is_not_taken_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, receiver: Receiver, tries: int, reason: str
):
    """Neither address nor secret; and the request is there all the same."""

    async def work(approvals: Approvals) -> str:
        return (await approvals.get(await ask(approvals))).status

    with caplog.at_level(logging.INFO, logger="adjudge"):
        limit = 0.2 if receiver.hangs else 300.0  # the longest that a webhook takes
        assert deliver(tmp_path, receiver, work, retries=2, timeout=limit) == "open"

    (line,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert line.endswith(f"was not delivered: {reason}")
    assert len(receiver.got) == tries
    assert "token" not in caplog.text
    assert KEY not in caplog.text


@pytest.mark.parametrize("headers", [{"Content-Encoding": "gzip"}, {"Content-Length": "999999999"}])
def test_what_the_receiver_says_beside_its_status_is_not_read(tmp_path: Path, headers: dict[str, str]):
    """A text that is compressed, endless or broken off does not make a delivery that was taken one that was not."""

    async def work(approvals: Approvals) -> None:
        await ask(approvals)

    receiver = Receiver(200, headers=headers)
    deliver(tmp_path, receiver, work)

    assert len(receiver.got) == 1


# ---------------------------------------------------------------- whom it is sent to


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://example.org/hook", "example.org … needs https … http is for this machine"),
        ("http://127.0.0.1.example.org/", "127.0.0.1.example.org … needs https"),
        ("http://localhost.example.org/", "needs https"),
        ("http://2130706433/", "needs https"),
        ("https://ana:hunter2@example.org/", "url for example.org … name or password"),
        ("ftp://example.org/", "url … https://HOST/PATH"),
        ("https://", "url … https://HOST/PATH"),
        ("https://example.org:port/", "url … https://HOST/PATH"),
        ("https://exam ple.org/", "url … https://HOST/PATH"),
        ("https://example.org/\r\nx: y", "url … https://HOST/PATH"),
        (7, "url … https://HOST/PATH"),
    ],
)
def test_only_https_or_this_machine(url: Any, words: str):
    """And no password in the address: it would stand in every proxy's log."""
    message = complaint(Webhook, url, secret=KEY)

    assert names(message, *words.split(" … "))
    assert "hunter2" not in message


@pytest.mark.parametrize(
    "url", ["https://example.org/x", "http://localhost:1/", "http://127.0.0.7/", "http://[::1]:8/"]
)
def test_a_webhook_shows_its_host_alone(url: str):
    """Neither the rest of the address nor the secret, in whatever is printed."""
    shown = repr(Webhook(url, secret=KEY))

    assert shown.startswith("Webhook('")
    assert KEY not in shown
    assert "/" not in shown


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"secret": "short"}, "secret … at least 16 bytes … 5"),
        ({"secret": ""}, "secret … at least 16 bytes … 0"),
        ({"secret": None}, "secret … a text or bytes … NoneType"),
        ({"secret": "whsec_!!!"}, "secret … whsec_ … base64"),
        ({"secret": KEY, "retries": -1}, "retries … from 0 to 20 … -1"),
        ({"secret": KEY, "retries": True}, "retries … from 0 to 20 … True"),
        ({"secret": KEY, "timeout": 0}, "timeout … above 0 and up to 300 … got 0"),
        ({"secret": KEY, "timeout": float("nan")}, "timeout … above 0 and up to 300 … nan"),
    ],
)
def test_a_webhook_that_cannot_be_is_refused(options: dict[str, Any], message: str):
    """At once, and the secret is not repeated."""
    assert names(complaint(Webhook, "https://example.org/", **options), *message.split(" … "))


# ---------------------------------------------------------------- receiving

NOW = 1_800_000_000
BODY = b'{"type": "approval.closed"}'


def make_headers(body: bytes = BODY, *, key: bytes = KEY.encode(), at: int = NOW) -> dict[str, str]:
    """Headers as the standard says, computed here by its own words."""
    stamp = str(at)
    digest = hmac.new(key, b"msg-1." + stamp.encode() + b"." + body, hashlib.sha256).digest()
    signature = base64.b64encode(digest).decode()
    return {"Webhook-Id": "msg-1", "Webhook-Timestamp": stamp, "Webhook-Signature": f"v1,{signature}"}


def test_the_standard_s_own_library_believes_what_is_sent(tmp_path: Path):
    """Each delivery, by the reference implementation; with another secret it believes none."""
    receiver = Receiver()
    deliver(tmp_path, receiver, ask_and_approve)
    theirs, other = (standardwebhooks.Webhook(base64.b64encode(key).decode()) for key in (KEY.encode(), b"x" * 24))

    assert len(receiver.got) == 2
    for headers, body in receiver.got:
        assert theirs.verify(body, headers) == verify_webhook(headers, body, KEY)
        with pytest.raises(standardwebhooks.WebhookVerificationError):
            other.verify(body, headers)


@given(st.text(max_size=200), st.binary(min_size=16, max_size=64))
def test_what_the_standard_s_own_library_signs_is_believed(text: str, key: bytes):
    """Whatever the body and the secret."""
    body = json.dumps({"data": text})
    secret = "whsec_" + base64.b64encode(key).decode()
    signature = standardwebhooks.Webhook(secret).sign("msg-1", datetime.fromtimestamp(NOW, UTC), body)
    headers = {"webhook-id": "msg-1", "webhook-timestamp": str(NOW), "webhook-signature": signature}

    assert verify_webhook(headers, body.encode(), secret, clock=lambda: NOW) == {"data": text}


def test_a_signed_delivery_is_believed():
    """In any case of letters, among other signatures, and with a secret in base64."""
    headers = make_headers()
    several = headers | {"Webhook-Signature": f"v1,bm9uZQ== {headers['Webhook-Signature']} v2,x"}
    encoded = "whsec_" + base64.b64encode(KEY.encode()).decode()

    for signed in (headers, several, {name.lower(): value for name, value in headers.items()}):
        for key in (KEY, KEY.encode(), encoded):
            assert verify_webhook(signed, BODY, key, clock=lambda: NOW) == {"type": "approval.closed"}


@pytest.mark.parametrize(
    ("changes", "body", "message"),
    [
        ({"Webhook-Signature": ""}, BODY, "delivery … not signed … secret"),
        ({"Webhook-Signature": "v1,bm9uZQ=="}, BODY, "delivery … not signed … secret"),
        ({"Webhook-Signature": "v1,é\udc80"}, BODY, "delivery … not signed … secret"),
        ({"Webhook-Id": "msg\udc80"}, BODY, "delivery … not signed … secret"),
        (make_headers(key=b"another secret of enough bytes"), BODY, "delivery … not signed … secret"),
        ({}, BODY + b" ", "delivery … not signed … secret"),
        ({"Webhook-Id": "msg-2"}, BODY, "delivery … not signed … secret"),
        ({"Webhook-Timestamp": str(NOW + 5)}, BODY, "delivery … not signed … secret"),
        ({"Webhook-Timestamp": "١٢"}, BODY, "no webhook-timestamp"),
        ({"Webhook-Timestamp": "-1"}, BODY, "no webhook-timestamp"),
        (make_headers(at=NOW - 301), BODY, "delivery … signed for a time … more than 300 s"),
        (make_headers(at=NOW + 301), BODY, "delivery … signed for a time … more than 300 s"),
        (make_headers(b"[]"), b"[]", "delivery … no JSON object"),
        (make_headers(b"x"), b"x", "delivery … no JSON object"),
    ],
    ids=range(14),
)
def test_anything_else_is_not(changes: dict[str, str], body: bytes, message: str):
    """Changed, signed by somebody else, or kept and sent again."""
    refused = complaint(verify_webhook, make_headers() | changes, body, KEY, clock=lambda: NOW)

    assert names(refused, *message.split(" … "))


def test_the_receiver_chooses_its_tolerance():
    """In seconds; and a body that was decoded is not what was signed."""
    headers = make_headers(at=1000)

    assert verify_webhook(headers, BODY, KEY, tolerance=5, clock=lambda: 1005.0)
    assert "more than 5 s" in complaint(verify_webhook, headers, BODY, KEY, tolerance=5, clock=lambda: 1006.0)
    assert names(complaint(verify_webhook, headers, "{}", KEY), "the body", "bytes as they came", "str")


def test_a_link_to_the_page_goes_with_a_request_that_opens(tmp_path: Path):
    """Nothing else has one, and a function that fails holds up no delivery."""
    calls: list[str] = []

    async def link(approval: Any) -> str:
        calls.append(approval.id)
        if len(calls) > 1:
            raise OSError("no network")
        return f"https://adjudge.example/approvals/{approval.id}"

    async def work(approvals: Approvals) -> list[str]:
        ids = [await approvals.request(make_result(), "Publish it?", approvers=["ana"]) for _ in range(2)]
        await approvals.decide(ids[0], "ana", True)
        return ids

    receiver = Receiver()
    ids = deliver(tmp_path, receiver, work, make_link=link)
    links = {
        (body["type"], body["data"]["approval"]): body["data"].get("link") for body in map(_read_body, receiver.got)
    }
    assert links == {
        ("approval.requested", ids[0]): f"https://adjudge.example/approvals/{ids[0]}",
        ("approval.requested", ids[1]): None,
        ("approval.closed", ids[0]): None,
    }


def _read_body(delivery: tuple[Any, bytes]) -> Any:
    return json.loads(delivery[1])
