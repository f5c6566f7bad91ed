"""Notifications of another program, signed, tried again, and never waited for: requests, audits, unchecked calls.

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
from adjudge.formats.plain import to_plain
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
"""Bytes."""

MOST_WAITING = 1_000
"""Deliveries under way; what comes on top is dropped and logged, or a receiver that is down would fill the memory."""

_NUMBER = re.compile(r"[0-9]{1,12}")


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
    ident, stamp, signatures = (values.get(f"webhook-{name}", "") for name in ("id", "timestamp", "signature"))
    if not isinstance(body, bytes):
        raise UsageError(f"the body must be the bytes as they came, got {type(body).__name__}", argument="body")
    if not _NUMBER.fullmatch(stamp):
        raise UsageError("this delivery has no webhook-timestamp; it is not one of ours")
    expected = sign(_read_secret(secret), ident, stamp, body).encode()
    # Each is compared in constant time: how long it takes must not say how much of a forgery was right.
    matches = [hmac.compare_digest(expected, _encode(signature)) for signature in signatures.split()]
    if not any(matches):
        raise UsageError("this delivery is not signed with this secret; nothing in it can be believed")
    if not abs(clock() - int(stamp)) <= tolerance:
        raise UsageError(f"this delivery is signed for a time that is more than {tolerance:g} s from now; it was kept")
    try:
        payload = json.loads(body)
    except (RecursionError, ValueError):
        payload = None
    if not isinstance(payload, dict):
        raise UsageError("this delivery is signed and holds no JSON object")
    return payload


def sign(secret: bytes, ident: str, stamp: str, body: bytes) -> str:
    """Make the value of ``webhook-signature``."""
    signature = hmac.digest(secret, _encode(f"{ident}.{stamp}.") + body, hashlib.sha256)
    return f"v1,{base64.b64encode(signature).decode()}"


def _encode(text: str) -> bytes:
    # Frameworks hand over bytes that are no text as halves of characters, and a forger may send some.
    return text.encode("utf-8", "surrogatepass")


MakeLink = Callable[[Approval], Awaitable[str]]
"""Makes the address of the page on which people decide a request."""


def find_event(approval: Approval) -> Event:
    """Find what is told of a request in its current state."""
    if approval.audit:
        return "audit.requested" if approval.status == "open" else "audit.closed"
    return "approval.requested" if approval.status == "open" else "approval.closed"


def render_event(event: Event, approval: Approval, link: str | None = None) -> bytes:
    """Render the body: who is asked, about which result, and its state; no text that can quote the content.

    ``link`` is the address of the page on which people decide it, where there is one.
    """
    names = ("status", "approvers", "required", "created_at", "expires_at", "on_expiry", "closed_at", "decided_by")
    names += ("result_id", "outcome", "undecided_because", "score", "threshold", "judge", "subject", "gate")
    about: dict[str, Any] = {"approval": approval.id}
    about |= {name: to_plain(getattr(approval, name)) for name in (*names, "execution")}
    about |= {} if link is None else {"link": link}
    return json.dumps({"schema": SCHEMA, "type": event, "data": about}).encode()


def render_monitor_event(monitor: Monitor) -> bytes:
    """Render the body about the audits of a gate: the figures, the sentence and what to do; nothing of any content.

    Planted contents are not counted in it: a receiver passes on what it gets, and reviewers should not learn of them.
    """
    figures = {name: value for name, value in monitor.to_dict().items() if not name.startswith("planted")}
    about = figures | {"sentence": monitor.explain(), "advice": monitor.advice}
    return json.dumps({"schema": SCHEMA, "type": "monitor.changed", "data": about}).encode()


def render_call_event(run_id: str, call_id: str) -> bytes:
    """Render the body about a call that nobody had checked as it was made: ids alone, by which the ledger has it."""
    about = {"run": run_id, "call": call_id}
    return json.dumps({"schema": SCHEMA, "type": "call.unchecked", "data": about}).encode()


class DeliveryQueue:
    """Deliveries under way. Each is a task of the loop that it began in; ``drain`` waits for them."""

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
        """Begin a delivery about a request; what becomes of it is logged."""

        async def make_body() -> bytes:
            return render_event(event, approval, await self._find_link(event, approval))

        self._begin_delivery(f"{event} of approval {approval.id}", f"{approval.id}:{event}", make_body)

    def send_monitor(self, monitor: Monitor) -> None:
        """Begin a delivery about the audits of a gate; an alarm has one id, whichever process sends it."""

        async def make_body() -> bytes:
            return render_monitor_event(monitor)

        state = [monitor.gate, monitor.verdict, monitor.alarm_seq or monitor.seq]
        digest = sha256(json.dumps(state).encode()).hexdigest()[:32]
        self._begin_delivery(f"monitor.changed of gate {show(monitor.gate)}", f"{digest}:monitor.changed", make_body)

    def send_call(self, run_id: str, call_id: str) -> None:
        """Begin a delivery about a call that nobody had checked; a hook that is installed twice sends one id twice."""

        async def make_body() -> bytes:
            return render_call_event(run_id, call_id)

        digest = sha256(json.dumps([run_id, call_id]).encode()).hexdigest()[:32]
        self._begin_delivery(f"call.unchecked of run {show(run_id)}", f"{digest}:call.unchecked", make_body)

    def _begin_delivery(self, name: str, ident: str, make_body: Callable[[], Awaitable[bytes]]) -> None:
        """Begin to deliver a notification; it is dropped where too many wait."""
        for task in self._tasks.copy():  # a copy: another loop's thread may be sending as well
            if task.get_loop().is_closed():
                self._tasks.discard(task)
        if len(self._tasks) >= MOST_WAITING:
            logger.error("webhook: %s was dropped, %d wait", name, MOST_WAITING)
            return
        # A bare task: it delivers while others go on; closing waits for it, and gives up the rest.
        task = asyncio.create_task(self._deliver(name, ident, make_body))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def drain(self, seconds: float) -> None:
        """Wait so long for the deliveries of the running loop, give up the rest, and close its connections."""
        loop = asyncio.get_running_loop()
        mine = {task for task in self._tasks.copy() if task.get_loop() is loop}
        late = (await asyncio.wait(mine, timeout=seconds))[1] if mine else ()
        if late:
            logger.error("webhook: %d deliveries were given up", len(late))
            await stop_tasks(late)
        await self._transport.aclose()

    async def _deliver(self, name: str, ident: str, make_body: Callable[[], Awaitable[bytes]]) -> None:
        """Deliver one notification; a failure is logged and not raised."""
        try:
            problem = await self._try_all(ident, await make_body())
        except Exception as error:  # noqa: BLE001 - whatever it is, a delivery stops nobody
            problem = type(error).__name__
            logger.debug("what a webhook's delivery raised", exc_info=error)
        if problem is not None:
            logger.error("webhook: %s was not delivered: %s", name, problem)

    async def _find_link(self, event: Event, approval: Approval) -> str | None:
        """Find where people decide an open request; ``None`` where that is not known, which holds up no delivery."""
        if self._make_link is None or not event.endswith(".requested"):
            return None
        try:
            return await self._make_link(approval)
        except Exception as error:  # noqa: BLE001 - somebody's own function, or a store that fails
            logger.warning("webhook: there is no link to approval %s: %s", approval.id, type(error).__name__)
            return None

    async def _try_all(self, ident: str, body: bytes) -> str | None:
        """Send until it is taken; ``None``, or why it was not."""
        problem = "nobody answered"
        for attempt in range(1, self.webhook.retries + 2):
            wait = None
            try:
                status, headers = await self._post(ident, body)
            except (AdjudgeError, OSError) as error:  # a timeout is an OSError too
                # The transport's words name the host alone; of the system's, the text can hold the address.
                problem = str(error) if isinstance(error, AdjudgeError) else type(error).__name__
            else:
                problem = f"it answered {status}"
                if 200 <= status < 300:
                    return None
                if not may_retry(status, headers, b""):
                    return problem
                wait = read_wait(headers, time.time)
            if attempt <= self.webhook.retries:
                pause = wait if wait is not None else back_off(attempt, random.random)
                await self._sleep(min(pause, LONGEST_WAIT))
        return problem

    async def _post(self, ident: str, body: bytes) -> tuple[int, Mapping[str, str]]:
        """Post one notification, signed at this moment, and return the status and the headers of the answer."""
        # One try, and not the transport's own retries: each is signed anew, since a receiver refuses what was signed
        # long ago, and how many there are is said by the webhook.
        stamp = str(int(time.time()))
        headers = {
            # Word is sent rarely, and a connection that was kept may be closed just then.
            "connection": "close",
            "webhook-id": ident,
            "webhook-timestamp": stamp,
            "webhook-signature": sign(_read_secret(self.webhook.secret), ident, stamp, body),
        }
        async with asyncio.timeout(self.webhook.timeout):
            return await self._transport.send(self.webhook.url, headers, body)


def _check_url(url: object) -> None:
    """Raise ``UsageError`` for an address that no webhook can have; it is not quoted, since it may hold a secret."""
    try:
        parts = urlsplit(url) if isinstance(url, str) and url.isprintable() and " " not in url else None
        host, _ = (parts.hostname or "", parts.port) if parts is not None else ("", None)  # a bad port raises as well
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
    """Read the bytes of a secret; the error does not repeat it."""
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
