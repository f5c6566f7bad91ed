"""Webhook deliveries: signed notifications about requests, audits and unchecked calls, sent in background tasks.

The form is that of Standard Webhooks: three headers, and an HMAC-SHA256 over id, time and body.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import json
import random
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal
from urllib.parse import urlsplit

from adjudge.concurrency import stop_tasks
from adjudge.errors import AdjudgeError, UsageError
from adjudge.formats.arguments import check_seconds, check_whole_number
from adjudge.formats.loopback import is_this_machine
from adjudge.formats.plain_data import to_plain
from adjudge.formats.text import show
from adjudge.guards.approval.approval import Approval
from adjudge.guards.monitor import Monitor
from adjudge.hooks import logger
from adjudge.models.providers.http import Transport
from adjudge.models.retry import LONGEST_WAIT, back_off, may_retry, read_wait

SCHEMA = "adjudge/webhook/1"

Event = Literal[
    "approval.requested", "approval.closed", "audit.requested", "audit.closed", "monitor.changed", "call.unchecked"
]
"""Audits have names of their own: whoever pages people for a request that something waits for must not for an audit."""

TOLERANCE = 300.0
"""Seconds by which a delivery's time may differ from the receiver's."""

SHORTEST_SECRET = 16
"""The fewest bytes of a secret."""

MOST_WAITING = 1_000
"""The most deliveries at once. Further ones are dropped, or a receiver that is down would fill the memory."""

_TIMESTAMP = re.compile(r"[0-9]{1,12}")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Webhook:
    """The address and secret for notifications: a request opens or closes, audits show something else, or a run stops.

    Raises ``UsageError`` for an address that is neither https nor of this machine, and for a secret of less than
    16 bytes.

    Args:
        url: The address that is notified.
        secret: Shared with the receiver; a text that begins with ``whsec_`` is base64, any other is taken as it is.
        retries: Further tries after refused connections, timeouts, 408, 429 and 5xx, with growing pauses.
        timeout: Seconds for one try.
    """

    url: str = field(kw_only=False)
    """The address that is notified."""
    secret: str | bytes
    """Shared with the receiver; a text that begins with ``whsec_`` is base64, any other is taken as it is."""
    retries: int = 5
    """Further tries after refused connections, timeouts, 408, 429 and 5xx, with growing pauses."""
    timeout: float = 10.0
    """Seconds for one try."""

    def __post_init__(self) -> None:
        _check_url(self.url)
        # Raises for a secret that cannot be read.
        _read_secret(self.secret)
        check_whole_number("retries", self.retries, least=0, most=20)
        check_seconds("timeout", self.timeout, most=300)

    def __repr__(self) -> str:
        # The rest of the address is often a secret as well.
        return f"Webhook({urlsplit(self.url).hostname!r})"


def verify_webhook(
    headers: Mapping[str, str],
    body: bytes,
    secret: str | bytes,
    *,
    tolerance: float = TOLERANCE,
    clock: Callable[[], float] = time.time,
) -> dict[str, Any]:
    """Check the signature and the time of a delivery that you received, and return its payload.

    Raises ``UsageError`` for a delivery that is not signed with this secret, or whose time is not close to now. The
    same delivery can arrive twice: compare ``webhook-id``.

    Args:
        headers: The headers of the request, in any case of letters.
        body: The bytes of the request exactly as they came.
        secret: The secret that the sender signs with.
        tolerance: By how many seconds its time may differ from now.
        clock: The time of now, in seconds since 1970; for tests.
    """
    values = {name.lower(): value for name, value in headers.items()}
    ident, timestamp = values.get("webhook-id", ""), values.get("webhook-timestamp", "")
    signatures = values.get("webhook-signature", "")  # one or more, with blanks between them
    if not isinstance(body, bytes):
        raise UsageError(f"the body must be the bytes as they came, got {type(body).__name__}", argument="body")
    if not _TIMESTAMP.fullmatch(timestamp):
        raise UsageError("this delivery has no webhook-timestamp; it is not one of ours")
    expected = sign(_read_secret(secret), ident, timestamp, body).encode()
    # Each is compared in constant time: how long it takes must not say how much of a forgery was right.
    matches = [hmac.compare_digest(expected, _encode(signature)) for signature in signatures.split()]
    if not any(matches):
        raise UsageError("this delivery is not signed with this secret; nothing in it can be believed")
    if not abs(clock() - int(timestamp)) <= tolerance:
        raise UsageError(f"this delivery is signed for a time that is more than {tolerance:g} s from now; it was kept")
    try:
        payload = json.loads(body)
    except (RecursionError, ValueError):
        payload = None
    if not isinstance(payload, dict):
        raise UsageError("this delivery is signed and holds no JSON object")
    return payload


def sign(secret: bytes, ident: str, timestamp: str, body: bytes) -> str:
    """Sign a delivery with HMAC-SHA256, and return the value of its ``webhook-signature`` header."""
    signature = hmac.digest(secret, _encode(f"{ident}.{timestamp}.") + body, hashlib.sha256)
    return f"v1,{base64.b64encode(signature).decode()}"


def _encode(text: str) -> bytes:
    """Encode the text of a header, and never fail."""
    # A forger may send a header that is no UTF-8. Web frameworks decode such bytes to lone surrogates, which a plain
    # encode() refuses.
    return text.encode("utf-8", "surrogatepass")


MakeLink = Callable[[Approval], Awaitable[str]]
"""Makes the address of the page on which people decide a request."""


def find_event(approval: Approval) -> Event:
    """Return the name of the event that a request is notified as in its current state."""
    if approval.audit:
        return "audit.requested" if approval.status == "open" else "audit.closed"
    return "approval.requested" if approval.status == "open" else "approval.closed"


def render_event(event: Event, approval: Approval, link: str | None = None) -> bytes:
    """Render the body of a notification about a request: who is asked, about which result, and the request's state.

    The body has no text that can quote the content. ``link`` is the address of the page on which people decide the
    request; ``None`` without one.
    """
    names = ("status", "approvers", "required", "created_at", "expires_at", "on_expiry", "closed_at", "decided_by")
    names += ("result_id", "outcome", "undecided_because", "score", "threshold", "judge", "subject", "gate")
    data: dict[str, Any] = {"approval": approval.id}
    data |= {name: to_plain(getattr(approval, name)) for name in (*names, "execution")}
    data |= {} if link is None else {"link": link}
    return json.dumps({"schema": SCHEMA, "type": event, "data": data}).encode()


def render_monitor_event(monitor: Monitor) -> bytes:
    """Render the body of a notification about a gate's audits: their figures in numbers and words, and an advice.

    The figures of planted audits, whose contents were made up to test reviewers, are left out: reviewers could learn
    of them from the receiver.
    """
    figures = {name: value for name, value in monitor.to_dict().items() if not name.startswith("planted")}
    data = figures | {"sentence": monitor.explain(), "advice": monitor.advice}
    return json.dumps({"schema": SCHEMA, "type": "monitor.changed", "data": data}).encode()


def render_call_event(run_id: str, call_id: str) -> bytes:
    """Render the body of a notification about a call that no check had seen as it was made: its ids in the ledger."""
    data = {"run": run_id, "call": call_id}
    return json.dumps({"schema": SCHEMA, "type": "call.unchecked", "data": data}).encode()


class DeliveryQueue:
    """Deliveries to a webhook that are running. Each is a task of the event loop that it began in."""

    def __init__(
        self,
        webhook: Webhook,
        *,
        make_link: MakeLink | None = None,
        sleep: Callable[[float], Any] = asyncio.sleep,
    ) -> None:
        self.webhook = webhook
        self._make_link = make_link
        self._sleep = sleep
        self._transport = Transport()
        self._tasks: set[asyncio.Task[None]] = set()

    def send(self, event: Event, approval: Approval) -> None:
        """Begin a delivery about a request; a failure is logged."""

        async def make_body() -> bytes:
            return render_event(event, approval, await self._find_link(event, approval))

        self._begin_delivery(f"{event} of approval {approval.id}", f"{approval.id}:{event}", make_body)

    def send_monitor(self, monitor: Monitor) -> None:
        """Begin a delivery about the audits of a gate.

        The delivery's id is a digest of the state, so processes that announce the same alarm send the same id.
        """

        async def make_body() -> bytes:
            return render_monitor_event(monitor)

        state = [monitor.gate, monitor.verdict, monitor.alarm_seq or monitor.seq]
        digest = sha256(json.dumps(state).encode()).hexdigest()[:32]
        self._begin_delivery(f"monitor.changed of gate {show(monitor.gate)}", f"{digest}:monitor.changed", make_body)

    def send_call(self, run_id: str, call_id: str) -> None:
        """Begin a delivery about an unchecked call; if a hook is installed twice, both deliveries have the same id."""

        async def make_body() -> bytes:
            return render_call_event(run_id, call_id)

        digest = sha256(json.dumps([run_id, call_id]).encode()).hexdigest()[:32]
        self._begin_delivery(f"call.unchecked of run {show(run_id)}", f"{digest}:call.unchecked", make_body)

    def _begin_delivery(self, name: str, ident: str, make_body: Callable[[], Awaitable[bytes]]) -> None:
        """Begin a task that delivers a notification, or log that it is dropped because too many are running."""
        for task in self._tasks.copy():  # a copy: another loop's thread may be sending as well
            if task.get_loop().is_closed():
                self._tasks.discard(task)
        if len(self._tasks) >= MOST_WAITING:
            logger.error("webhook: %s was dropped, %d wait", name, MOST_WAITING)
            return
        # A bare task: it delivers while its caller continues. ``drain`` waits for it, or cancels it when it is late.
        task = asyncio.create_task(self._deliver(name, ident, make_body))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def drain(self, seconds: float) -> None:
        """Wait up to ``seconds`` for the deliveries of the running loop, cancel late ones, and close connections."""
        loop = asyncio.get_running_loop()
        tasks_of_loop = {task for task in self._tasks.copy() if task.get_loop() is loop}
        if tasks_of_loop:
            _, late_tasks = await asyncio.wait(tasks_of_loop, timeout=seconds)
            if late_tasks:
                logger.error("webhook: %d deliveries were given up", len(late_tasks))
                await stop_tasks(late_tasks)
        await self._transport.aclose()

    async def _deliver(self, name: str, ident: str, make_body: Callable[[], Awaitable[bytes]]) -> None:
        """Deliver one notification; a failure is logged and not raised."""
        try:
            problem = await self._send_with_retries(ident, await make_body())
        except Exception as error:  # noqa: BLE001 - no failure of a delivery may stop the program
            problem = type(error).__name__
            logger.debug("what a webhook's delivery raised", exc_info=error)
        if problem is not None:
            logger.error("webhook: %s was not delivered: %s", name, problem)

    async def _find_link(self, event: Event, approval: Approval) -> str | None:
        """Return the link to the page on which people decide an open request.

        Returns ``None`` for a closed request, without ``make_link``, and if that fails: the delivery is sent anyway.
        """
        if self._make_link is None or not event.endswith(".requested"):
            return None
        try:
            return await self._make_link(approval)
        except Exception as error:  # noqa: BLE001 - somebody's own function, or a store that fails
            logger.warning("webhook: there is no link to approval %s: %s", approval.id, type(error).__name__)
            return None

    async def _send_with_retries(self, ident: str, body: bytes) -> str | None:
        """Post a notification until the receiver accepts it; return ``None``, or why it was not delivered."""
        problem = "nobody answered"
        for attempt in range(1, self.webhook.retries + 2):
            requested_pause = None  # of a Retry-After header, in seconds
            try:
                status, headers = await self._post(ident, body)
            except (AdjudgeError, OSError) as error:  # a timeout is an OSError too
                # The transport's own errors name only the host. An error of the system can quote the whole address,
                # which may hold a secret, so only its type is logged.
                problem = str(error) if isinstance(error, AdjudgeError) else type(error).__name__
            else:
                problem = f"it answered {status}"
                if 200 <= status < 300:
                    return None
                if not may_retry(status, headers, b""):
                    return problem
                requested_pause = read_wait(headers, time.time)
            if attempt <= self.webhook.retries:
                pause = requested_pause if requested_pause is not None else back_off(attempt, random.random)
                await self._sleep(min(pause, LONGEST_WAIT))
        return problem

    async def _post(self, ident: str, body: bytes) -> tuple[int, Mapping[str, str]]:
        """Post one notification, signed at this moment, and return the status and the headers of the answer."""
        # One try without the transport's own retries. Each try is signed anew, because a receiver refuses an old
        # signature, and the webhook's ``retries`` limits the tries.
        timestamp = str(int(time.time()))
        headers = {
            # Notifications are rare, and the receiver may close a connection that is kept open just as it is used.
            "connection": "close",
            "webhook-id": ident,
            "webhook-timestamp": timestamp,
            "webhook-signature": sign(_read_secret(self.webhook.secret), ident, timestamp, body),
        }
        async with asyncio.timeout(self.webhook.timeout):
            return await self._transport.send(self.webhook.url, headers, body)


def _check_url(url: object) -> None:
    """Raise ``UsageError`` for an address that no webhook can have; it is not quoted, since it may hold a secret."""
    try:
        parts = urlsplit(url) if isinstance(url, str) and url.isprintable() and " " not in url else None
        # The port is not needed; reading it raises ValueError for one that is no number.
        host, _ = (parts.hostname or "", parts.port) if parts is not None else ("", None)
    except ValueError:
        parts, host = None, ""
    if parts is None or not host or parts.scheme not in ("https", "http"):
        raise UsageError("a webhook's url is https://HOST/PATH; this one is not", argument="url")
    if parts.username is not None or parts.password is not None:
        raise UsageError(
            f"the webhook's url for {host} holds a name or password; what it needs is the signature", argument="url"
        )
    if parts.scheme == "http" and not is_this_machine(host):
        raise UsageError(
            f"a webhook to {host} needs https; http is for this machine (127.0.0.1, localhost)", argument="url"
        )


def _read_secret(secret: object) -> bytes:
    """Return the bytes of a secret; raise ``UsageError``, which does not quote it, for one that is no secret."""
    key = secret.encode() if isinstance(secret, str) else secret
    if not isinstance(key, bytes):
        raise UsageError(f"a webhook's secret is a text or bytes, got {type(secret).__name__}", argument="secret")
    if key.startswith(b"whsec_"):
        try:
            key = base64.b64decode(key[6:], validate=True)
        except (binascii.Error, ValueError):
            raise UsageError(
                "after whsec_, a webhook's secret must be base64; this one is not", argument="secret"
            ) from None
    if len(key) < SHORTEST_SECRET:
        raise UsageError(
            f"a webhook's secret has at least {SHORTEST_SECRET} bytes, this one {len(key)}", argument="secret"
        )
    return key
