"""A server's gate, with the methods ``check`` and ``resume`` of a local gate.

The server decides, in ``guards/gate.py``. This module blocks where it gives no answer, or one about something else.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from adjudge.agents.run import AgentRun
from adjudge.client.connection import Connection
from adjudge.client.request_members import (
    check_subject,
    make_unreachable_result,
    read_answer,
    write_arguments,
    write_content_member,
    write_metadata,
    write_value,
)
from adjudge.content import content_text, digest_text
from adjudge.errors import ServerError, UsageError
from adjudge.guards.approval_digest import CONTEXT, find_mismatch
from adjudge.guards.decision import Decision, block
from adjudge.guards.decorator import GuardingGate, make_guard
from adjudge.judges.evaluate import measure_ms
from adjudge.sync import make_sync_method

F = TypeVar("F", bound=Callable[..., Any])

_LONGEST_WAIT = 10.0
"""Seconds for which one request asks the server to wait for people."""

_RESERVE = 0.1
"""The last part of the timeout, in which no further request is sent, because its answer could come too late."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RemoteGate:
    """A gate of a server. A server that cannot be reached, is too busy or fails blocks, and never lets through."""

    name: str
    """The name of the gate on the server."""
    connection: Connection
    """The way to the server."""

    async def check(
        self,
        content: object,
        *,
        task: object = None,
        context: object = None,
        reference: object = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Decision:
        """Decide whether some content may go through, as ``Gate.check`` does.

        Where the server gives no decision about this very content, the decision blocks, by policy, with an undecided
        result; the ledger does not hold it. The metadata of the server's decision has one more member,
        ``adjudge_caller``. Raises ``UsageError`` for what the server refuses: an unknown gate, a key that is not valid
        or not for this gate.

        Args:
            content: The content: a text, a JSON value, messages.
            task: What the content was asked to do; shown to the judge as data.
            context: What the content may rely on; shown to the judge as data.
            reference: A known good answer; shown to the judge as data.
            metadata: Copied to the result and the decision, never sent.
        """
        if metadata is not None and not isinstance(metadata, Mapping):
            raise UsageError(f"metadata must be a mapping, got {type(metadata).__name__}", argument="metadata")
        started = time.perf_counter()
        subject: str | None = None
        try:
            member, subject = write_content_member(content)
            body = member | write_arguments({"task": task, "context": context, "reference": reference})
        except Exception as error:  # noqa: BLE001 - an object of anybody's may raise anything when it is opened
            return self._block_content(error, subject, metadata, started)
        body |= {"metadata": write_metadata(metadata)} if metadata else {}
        try:
            decision = self._read_own_decision(await self.connection.post("v1", "gates", self.name, "check", body=body))
            check_subject(decision.subject, subject, self.connection.url)
            self._check_parts(decision, {name: body.get(name) for name in CONTEXT})
        except ServerError as error:
            return self._block_content(error, subject, metadata, started)
        return decision

    check_sync = make_sync_method(check)

    async def resume(
        self,
        decision: Decision | str,
        *,
        content: object = ...,
        task: object = ...,
        context: object = ...,
        reference: object = ...,
    ) -> Decision:
        """Wait until people have decided, and return the decision that replaces the pending one.

        ``Gate.resume`` waits as long as its approvals do; this waits at most the client's ``timeout``. Where people
        have not decided until then, it returns the pending decision, which can be resumed again.

        As with ``Gate.resume``, pass what you are about to use: if it is not what was held back, the decision is
        blocked. An answer that is about another approval, gate or request than was asked about blocks as well. With an
        id alone, only what you pass can be compared. Raises ``UsageError`` for a decision that does not wait at this
        gate, and ``ServerError`` when the server cannot be reached; what waits can be resumed later.

        Args:
            decision: The pending decision, or the id of its approval.
            content: The content that you are about to use; it is compared with what was held back.
            task: The task that you are about to use; it is compared with what was held back.
            context: The context that you are about to use; it is compared with what was held back.
            reference: The reference that you are about to use; it is compared with what was held back.
        """
        approval_id = decision if isinstance(decision, str) else decision.approval_id
        waits_here = isinstance(decision, str) or (decision.pending and decision.gate == self.name)
        if not waits_here:
            raise UsageError(f"only a pending decision of gate {self.name!r} can be resumed by it")
        parts = {"content": content, "task": task, "context": context, "reference": reference}
        sent: dict[str, Any] = {
            name: None if value is None else write_value(value, name=name)[0]
            for name, value in parts.items()
            if value is not ...  # not given
        }
        is_run = isinstance(content, AgentRun)
        members = {"run" if is_run and name == "content" else name: value for name, value in sent.items()}
        timeout = self.connection.timeout
        deadline = time.monotonic() + timeout
        while True:
            seconds_left = deadline - time.monotonic()
            # The server waits for half of the time that is left: an answer after the deadline would be lost here,
            # though the server has recorded it.
            body = {**members, "approval": approval_id, "wait": min(_LONGEST_WAIT, seconds_left / 2)}
            answer = self._read_decision(
                await self.connection.post(
                    "v1", "gates", self.name, "resume", body=body, once=False, seconds=seconds_left
                )
            )
            mismatch = self._find_mismatch(answer, decision, sent)
            if mismatch is not None:
                return self._block_answer(decision, mismatch, sent)
            if not answer.pending or deadline - time.monotonic() < timeout * _RESERVE:
                return answer
            # A server that is being stopped answers at once; it is not asked again without a pause.
            await asyncio.sleep(min(0.05, timeout * _RESERVE / 2))

    resume_sync = make_sync_method(resume)

    async def pending(self) -> tuple[Decision, ...]:
        """List the gate's pending decisions that have not been resumed, the oldest first."""
        reply = await self.connection.get("v1", "gates", self.name, "pending")
        rows = read_answer(lambda members: list(members["decisions"]), reply, self.connection.url, "list of decisions")
        decisions = tuple([self._read_own_decision(row) for row in rows])
        if not all(decision.pending for decision in decisions):
            raise ServerError(f"{self.connection.url} listed a decision as pending that is not")
        return decisions

    pending_sync = make_sync_method(pending)

    def guard(self, *, argument: str | None = None) -> Callable[[F], F]:
        """Return a decorator that checks an argument of a function before it runs, or else its return value.

        As ``Gate.guard``; it raises ``Blocked`` with the decision.

        Args:
            argument: The name of the argument that is checked; ``None`` checks the return value.
        """
        return make_guard(GuardingGate(name=self.name, check=self.check, withdraw=_withdraw), argument)

    async def aclose(self) -> None:
        """Close the connections to the server."""
        await self.connection.aclose()

    def _read_decision(self, reply: object) -> Decision:
        return read_answer(Decision.from_dict, reply, self.connection.url, "decision")

    def _read_own_decision(self, reply: object) -> Decision:
        """Read the decision in a reply; raises ``ServerError`` if it is of another gate, or waits for no approval."""
        decision = self._read_decision(reply)
        if decision.gate != self.name:
            raise ServerError(f"{self.connection.url} answered for another gate, so the answer does not count")
        if decision.pending and not decision.approval_id:
            raise ServerError(f"{self.connection.url} gave a pending decision without an approval to wait for")
        return decision

    def _check_parts(self, decision: Decision, parts: Mapping[str, object]) -> None:
        """Raise ``ServerError`` if people are asked with another task, context or reference than was sent."""
        differing_part = find_mismatch(decision, parts) if decision.pending else None
        if differing_part is not None:
            url = self.connection.url
            raise ServerError(
                f"{url} answered about another {differing_part} than was sent, so the answer does not count"
            )

    def _find_mismatch(self, answer: Decision, decision: Decision | str, sent: Mapping[str, object]) -> str | None:
        """Find in what an answer to ``resume`` differs from what was asked about, such as "another gate".

        ``None`` if it is about exactly that. ``decision`` is the pending decision or its approval's id, and ``sent``
        are the content and the other parts that were sent to be compared.
        """
        if answer.gate != self.name:
            return "another gate"
        if answer.approval_id != (decision if isinstance(decision, str) else decision.approval_id):
            return "another approval"
        if isinstance(decision, Decision) and _identify_request(answer) != _identify_request(decision):
            return "another request"
        # A blocked answer may be about other parts: the server blocks if the parts sent are not what was held back.
        differing_part = find_mismatch(answer, sent) if answer.allowed or answer.pending else None
        return None if differing_part is None else f"another {differing_part}"

    def _block_answer(self, decision: Decision | str, mismatch: str, sent: Mapping[str, object]) -> Decision:
        """Make the decision that replaces an answer about something else: blocked by policy, and in no ledger."""
        reason = f"{self.connection.url} answered about {mismatch} than was asked about, so the answer does not count"
        if isinstance(decision, Decision):
            return replace(block(decision, reason), ledger_seq=None)
        subject = digest_text(content_text(sent["content"])) if "content" in sent else None
        return Decision(
            gate=self.name, allowed=False, decided_by="policy", detail=reason, approval_id=decision, subject=subject
        )

    def _block_content(
        self, error: Exception, subject: str | None, metadata: Mapping[str, Any] | None, started: float
    ) -> Decision:
        """Make the decision that blocks a content, by policy, because it cannot be sent or the answer does not count.

        ``subject`` is the content's digest, if it could be read. ``started`` is the time at which ``check`` began.
        """
        metadata_copy = dict(metadata or {})
        return Decision(
            gate=self.name,
            allowed=False,
            decided_by="policy",
            result=make_unreachable_result(error, judge=self.name, subject=subject, metadata=metadata_copy),
            would_allow=False,
            subject=subject,
            metadata=metadata_copy,
            duration_ms=measure_ms(started),
        )


def _identify_request(decision: Decision) -> tuple[object, ...]:
    """Return what identifies the request of a decision before and after people decide: digests and the result's id."""
    return decision.subject, decision.request, None if decision.result is None else decision.result.id


async def _withdraw(decision: Decision, reason: str) -> Decision:
    """Return a decision that blocks in place of one that allowed, because the value to be used has changed since."""
    return replace(decision, allowed=False, pending=False, decided_by="policy", detail=reason, ledger_seq=None)
