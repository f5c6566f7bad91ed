"""Approvals: asking people, counting what they say, and recording every step.

Whose vote counts, and what votes add up to, is decided in ``votes.py``; ``store.py`` has the transactions,
``request_terms.py`` the terms of a request. Votes that overruled a judge become labelled cases here
(``export_labels``).
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from adjudge.errors import Argument, DecisionRefused, LedgerError, RefusedBecause, UsageError
from adjudge.formats.arguments import check_choice, check_flag, check_label, check_seconds
from adjudge.formats.plain_data import to_plain
from adjudge.formats.times import get_now
from adjudge.guards.approval.approval import (
    NO_PLACE,
    STATUSES,
    Approval,
    OnExpiry,
    Status,
    approve_by_judge,
    is_alike,
    is_due,
    read_name,
)
from adjudge.guards.approval.completeness import Gap, digest_recorded, find_gaps
from adjudge.guards.approval.figures import FigureCounter, ReviewerFigures
from adjudge.guards.approval.first_judge import ask_first, explain_first, has_attack_warning
from adjudge.guards.approval.pending_decisions import (
    PendingDecision,
    find_by_key,
    list_unused,
    load_judged_with,
    load_pending,
    make_pending_row,
    read_pending,
)
from adjudge.guards.approval.queue import (
    QueueChoices,
    QueuedRequest,
    QueueOrder,
    QueuePlaces,
    QueueReader,
    RequestSummary,
    count_open,
    count_open_by_gate,
    count_queue,
    find_undoable,
    list_choices,
    load_summaries,
    read_places,
    read_queue,
)
from adjudge.guards.approval.request_columns import RequestFilters, find_listed_status
from adjudge.guards.approval.request_terms import (
    LONGEST_REASON,
    LONGEST_TIME,
    LONGEST_UNDO,
    RequestTerms,
    check_answer,
    check_text_length,
    make_approval,
)
from adjudge.guards.approval.reviewer_history import find_decided, find_reasons
from adjudge.guards.approval.store import (
    PAGE,
    ApprovalTransaction,
    GivenVote,
    VoteOutcome,
    explain_missing,
    find_ids,
    find_overdue,
    find_requests,
    find_time,
    find_unconfirmed,
    find_unforgotten,
    is_planted,
    list_proving_places,
    load,
    load_approved_before,
    load_many,
    load_several,
    load_votes_of,
    read_shown,
)
from adjudge.guards.approval.tables import make_tables
from adjudge.guards.approval.votes import find_final_vote
from adjudge.guards.approval.webhook import DeliveryQueue, MakeLink, Webhook, find_event
from adjudge.guards.decision import ApprovalAnswer, Decision
from adjudge.hooks import logger
from adjudge.judges.evaluate import JudgeLike
from adjudge.judges.judge import ModelSource
from adjudge.ledger.entry import Entry, read_entry
from adjudge.ledger.export import refuse_export
from adjudge.ledger.ledger import Ledger
from adjudge.ledger.payload import can_store
from adjudge.ledger.search_text import read_query
from adjudge.result import JudgeResult

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from adjudge.dataset.label import Label
    from adjudge.guards.monitor import Monitor


def make_override_row(approval: Approval) -> dict[str, Any]:
    """Make the row of a data set for a request in which people overruled the judge.

    ``content`` is left out where it was not kept.
    """
    names = ("result_id", "outcome", "judge", "score", "threshold", "gate", "execution", "closed_at", "override_seq")
    request_facts: dict[str, Any] = {"approval": approval.id, "subject": approval.subject}
    request_facts |= {name: to_plain(getattr(approval, name)) for name in names}
    request_facts["reasons"] = {vote.by: vote.reason for vote in approval.votes}
    row: dict[str, Any] = {"id": approval.id}
    if approval.content is not None:
        row["content"] = approval.content
    # What they decided together, and each vote.
    row["label"] = approval.status == "approved"
    row["labels"] = {vote.by: vote.approved for vote in approval.votes}
    return row | {"metadata": {**to_plain(approval.metadata), **request_facts}}


def write_rows(rows: Iterable[dict[str, Any]], path: str | os.PathLike[str]) -> int:
    """Write rows as JSON lines to a new file that its owner alone can read, and return their number.

    Raises ``UsageError`` for a file that exists or cannot be written; a file that was begun is deleted.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    except OSError as error:
        raise refuse_export(path, error) from None
    count = 0
    try:
        with os.fdopen(descriptor, "wb") as file:
            for row in rows:
                file.write(json.dumps(row).encode() + b"\n")
                count += 1
    except BaseException as error:
        Path(path).unlink(missing_ok=True)
        if isinstance(error, OSError):  # a disk that is full
            raise refuse_export(path, error) from None
        raise
    return count


T = TypeVar("T")


_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
"""Seconds that ``wait`` pauses before it reads a request again: at first, and at most."""

_MOST_FAILURES = 3
"""Failures of the store in a row that ``wait`` survives; it raises the next one."""

_SHORTEST_PART = 4
"""The fewest characters of an id by which ``find`` finds it."""

_MOST_CLOSED = 20
"""Requests that are closed at most in passing, by a call that asks for something else."""

DEFAULT_KEEP_HELD = 30 * 86_400.0
"""``keep_for`` of a ledger with ``store_content="held"``, in seconds, unless the caller gives another."""

_FORGET_INTERVAL = 60.0
"""Seconds between two searches for requests whose texts are to be forgotten."""

_DRAIN_SECONDS = 10.0
"""Seconds that ``aclose`` waits for deliveries of the webhook."""


class Approvals:
    """Ask people, count what they decide, and record every step.

    Requests are stored in tables beside a ledger and change in one transaction with its entries. So any number of
    tasks, processes and (on PostgreSQL) machines can ask, decide and wait at once. Use it as an async context
    manager, or call ``aclose``.

    Args:
        store: A ``Ledger``, or the address of one, which is then opened and closed here.
        webhook: Notified when a request opens or closes.
        make_link: Makes the address of the page on which people decide a request, for the webhook.
        keep_for: Seconds after its end from which the texts of a request are deleted, as ``forget`` does it, with the
            next call that looks at requests. ``None`` keeps them, or for 30 days where the ledger has
            ``store_content="held"``.
        clock: Returns the time, as an aware datetime. A request expires by the clock of the process that looks. A clock
            that is set back counts as standing still. With the default, the dates of the ledger's entries count too.

    Raises:
        UsageError: For an address that cannot be used.
    """

    def __init__(
        self,
        store: Ledger | str,
        *,
        webhook: Webhook | None = None,
        make_link: MakeLink | None = None,
        keep_for: float | None = None,
        clock: Callable[[], datetime] = get_now,
    ) -> None:
        if not isinstance(store, Ledger | str):
            raise UsageError(
                f"approvals are kept beside a Ledger or at its address, got {type(store).__name__}", argument="store"
            )
        if webhook is not None and not isinstance(webhook, Webhook):
            raise UsageError(f"webhook must be a Webhook, got {type(webhook).__name__}", argument="webhook")
        self._owns_ledger = isinstance(store, str)
        self.ledger = Ledger(store) if isinstance(store, str) else store
        """The ledger that holds every step."""
        default_keep_for = DEFAULT_KEEP_HELD if self.ledger.store_content == "held" else None
        if keep_for is not None:
            check_seconds("keep_for", keep_for, most=LONGEST_TIME)
        self.keep_for = default_keep_for if keep_for is None else keep_for
        """Seconds for which the texts of a closed request are kept; ``None`` is until ``forget``."""
        self._next_forgetting = 0.0
        self._clock = clock
        # The ledger dates its entries by get_now, so only with that clock can those dates be compared with its times.
        self._shares_clock = clock is get_now
        self._latest_time, self._latest_lock = datetime.min.replace(tzinfo=UTC), threading.Lock()
        self._delivery_queue = DeliveryQueue(webhook, make_link=make_link) if webhook is not None else None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} beside {self.ledger!r}>"

    # ---------------------------------------------------------------- asking

    async def request(
        self,
        about: JudgeResult | Decision,
        message: str,
        *,
        approvers: Iterable[str],
        required: int = 1,
        expires_in: float | timedelta | None = None,
        on_expiry: OnExpiry = "deny",
        first: JudgeLike | ModelSource | None = None,
        execution: str | None = None,
        content: object = None,
        texts: Mapping[str, object] | None = None,
        metadata: Mapping[str, Any] | None = None,
        most_open: Mapping[str, int] | None = None,
        audit: Mapping[str, float] | None = None,
        planted: Mapping[str, str] | None = None,
    ) -> str:
        """Ask people about a result, or about a decision that holds content back; return the id of the request.

        Raises ``UsageError`` at once for a request that could never be decided, and ``LedgerError`` when the store
        fails.

        Args:
            about: The result, or the decision.
            message: What people are told, in a sentence.
            approvers: The names of the people who may decide.
            required: How many different people of ``approvers`` have to approve; one denial ends the request.
            expires_in: Seconds until it is denied, or what ``on_expiry`` says; ``None`` is never.
            on_expiry: What happens then: ``"deny"``, or ``"approve"``, which approves it by policy.
            first: A judge, or anything that ``Judge`` takes as its model. It is asked about the content before the
                people and can approve in their place, with a pass at a confidence of at least 0.7; it cannot deny. It
                is not asked if the result says ``tampering`` or ``contradiction``.
            execution: Your name for what it belongs to; ``Ledger.query(execution=...)`` finds it.
            content: The content, stored for the people to read, until ``forget``.
            texts: The ``task``, ``context`` and ``reference`` with which it was judged, stored as the content is.
            metadata: Facts about the request, such as ``agent`` and ``customer``.
            most_open: Refuse the request where as many are open: of its ``gate``, of the agent's ``run`` that its
                metadata name, or of all runs of the ``key`` of a server that this run belongs to. They are counted in
                the transaction that makes the request.
            audit: For a request about a decision that let a content through, whether that was right: the ``share``,
                ``promise`` and ``confidence`` of the gate's ``Audit``. Nothing waits for the answer, so ``wait`` and
                ``use`` refuse it, and it is in no queue but that of audits.
            planted: ``by`` whom and for what ``reason`` its content was made up (``Gate.plant``).
        """
        terms = RequestTerms(
            approvers=approvers,
            required=required,
            expires_in=expires_in,
            on_expiry=on_expiry,
            first=first,
            execution=execution,
            metadata=metadata or {},
        )
        approval, result = make_approval(
            about, message, content, terms, self._read_clock(), texts=texts or {}, audit=audit or {}
        )
        new_request = await self._ask_first(approval, result, terms)
        pending_row = make_pending_row(self.ledger, about, new_request)
        approval = await self._run_transaction(
            lambda transaction: transaction.open(
                new_request, result, pending_row, most_open or {}, planted=planted or {}
            )
        )
        logger.info("approval %s was requested: %s", approval.id, approval.status)
        if not planted:
            self._announce_state(approval)
        await self._close_some_due()
        return approval.id

    def check_request(self, *, has_content: bool = False, **terms: Any) -> None:
        """Raise ``UsageError`` for arguments that ``request`` would refuse for any content.

        Args:
            has_content: True if ``request`` will be given the content.
            terms: Arguments of ``request``: ``approvers``, ``required``, ``expires_in``, ``on_expiry``, ``first``,
                ``execution`` and ``metadata``.
        """
        names = ("approvers", "required", "expires_in", "on_expiry", "first", "execution", "metadata")
        for name in terms:
            if name not in names:
                raise UsageError(f"a request has no {name!r}; it has {', '.join(names)}", argument=name)
        if RequestTerms(**terms).first is not None and not has_content:
            raise UsageError(
                "first needs the content, which a gate hands over with ",
                Argument("show_content", "True"),
                argument="first",
            )

    # ---------------------------------------------------------------- deciding

    async def decide(
        self,
        id: str,  # noqa: A002 - the words of whoever decides
        by: str,
        approved: bool,  # noqa: FBT001
        reason: str = "",
        *,
        seen: str | None = None,
        require_complete: bool = False,
        undo_seconds: float = 0.0,
        answer: str = "",
        channel: str = "",
    ) -> Approval:
        """Record a person's decision, and return the request after it.

        The caller has to know who ``by`` is: it is not checked here. Raises ``DecisionRefused`` (a ``UsageError``),
        and records the attempt, if that person is not one of the approvers, has decided before, or is too late, or if
        the request is ``incomplete`` or ``changed``.

        Args:
            id: The id of the request.
            by: The name of the person who decides, whom your program knows.
            approved: True approves, false denies.
            reason: The person's reason.
            seen: ``digest_shown`` of what the person was shown: a request that has changed since cannot be approved.
                ``None`` compares nothing.
            require_complete: Refuse to approve a request of which anything is cut off, missing or changed; it can still
                be denied.
            undo_seconds: Seconds, at most 300, for which the vote is pending first: ``withdraw`` can take it back, and
                it decides nothing until that time is over, whoever waits. 0 counts it at once.
            answer: With a denial, a line of at most 300 characters for the agent whose call is denied; a ``ToolGuard``
                passes it on if it has ``pass_answers``, and every approver can read it.
            channel: The way on which the vote came, for the ledger; empty is none.
        """
        name = read_name(by, "by")
        check_flag("approved", approved)
        check_text_length("reason", reason, LONGEST_REASON)
        check_answer(answer, approved=approved)
        if channel:
            check_label("channel", channel)
        check_flag("require_complete", require_complete)
        if undo_seconds != 0:
            check_seconds("undo_seconds", undo_seconds, most=LONGEST_UNDO)
        await self._load_approval(id)  # raises for a mistyped id or store address before a transaction makes tables
        given_vote = GivenVote(
            approval=id,
            by=name,
            approved=approved,
            reason=reason,
            seen=seen,
            require_complete=require_complete,
            undo_seconds=undo_seconds,
            answer=answer,
            channel=channel,
        )
        outcome = await self._run_transaction(lambda transaction: transaction.vote(given_vote))
        await self._close_some_due()
        return await self._finish_vote(outcome, id, name)

    async def withdraw(self, id: str, by: str) -> Approval:  # noqa: A002 - as in decide
        """Take back a vote that is still pending, and return the request after that; its voter can vote again.

        Both the vote and its withdrawal stay in the ledger. Raises ``DecisionRefused`` (``final``) for a vote that
        counts already, or that nobody gave.

        Args:
            id: The id of the request.
            by: The name of the approver who voted.
        """
        name = read_name(by, "by")
        await self._load_approval(id)
        outcome = await self._run_transaction(lambda transaction: transaction.withdraw(id, name))
        return await self._finish_vote(outcome, id, name)

    async def comment(self, id: str, by: str, text: str) -> None:  # noqa: A002 - as in decide
        """Record what an approver says without deciding; ``history`` returns it.

        Raises ``DecisionRefused`` (``unauthorised``) for somebody who is none of the approvers.

        Args:
            id: The id of the request.
            by: The name of the approver.
            text: What they say.
        """
        name = read_name(by, "by")
        check_text_length("text", text, LONGEST_REASON)
        if not text.strip():
            raise UsageError("a comment needs a text: what the other approvers should know", argument="text")
        approval = await self._load_approval(id)
        refused_because = await self._run_transaction(lambda transaction: transaction.comment(id, name, text))
        if refused_because is not None:
            problem = f"{name!r} is none of the approvers of {approval.id}; nothing was recorded"
            raise DecisionRefused(problem, because=refused_because)

    async def _finish_vote(self, outcome: VoteOutcome, ident: str, by: str) -> Approval:
        """Return the request after a vote or withdrawal, and announce its end if it ended.

        Raises ``DecisionRefused`` for a vote or withdrawal that was refused.
        """
        if outcome.ended:
            await self._announce_end(outcome.approval)
        if outcome.refused is not None:
            logger.info("approval %s: a decision was refused: %s", ident, outcome.refused)
            raise DecisionRefused(_explain_refusal(outcome.approval, by, outcome.refused), because=outcome.refused)
        return outcome.approval

    # ---------------------------------------------------------------- looking

    async def wait(self, id: str, /) -> ApprovalAnswer:  # noqa: A002 - as in decide
        """Wait until a request is decided or expires, and return the answer.

        Raises ``LedgerError`` if the ledger does not confirm the decision, because the tables beside it prove nothing.
        A store that fails is asked three more times.

        Args:
            id: The id of the request.
        """
        pause, failures = _FIRST_PAUSE, 0
        while True:
            seconds_left = pause
            try:
                approval = await self.get(id)
                if approval.audit:
                    raise UsageError(f"{approval.id} is an audit, whose answer opens nothing; nobody waits for it")
            except LedgerError:  # a wait can last hours, and the database server may restart in that time
                failures += 1
                if failures > _MOST_FAILURES:
                    raise
            else:
                failures = 0
                if approval.status != "open":
                    break
                deadlines = [approval.expires_at, *[vote.final_at for vote in approval.pending_votes]]
                seconds_left = min(
                    [(deadline - self._read_clock()).total_seconds() for deadline in deadlines if deadline is not None],
                    default=pause,
                )
            await asyncio.sleep(max(0.001, min(pause, seconds_left)))
            pause = min(pause * 1.5, _LONGEST_PAUSE)
        await self._confirm(approval)
        return ApprovalAnswer(
            approved=approval.status == "approved",
            by=", ".join(approval.closed_by) or None,
            reason=approval.closed_because,
            judged=approval.first if approval.decided_by == "judge" else None,
            subject=approval.subject,
            # Empty and not None where there is none: None would tell the gate not to compare these with its request.
            gate=approval.gate or "",
            request=approval.request or "",
            result_id=approval.result_id,
        )

    async def get(self, id: str | Approval) -> Approval:  # noqa: A002 - as in decide
        """Return a request, after counting the votes that are final by now, and closing it if its time is over.

        This method and those below that take ``str | Approval`` read no request again that you have read already.
        Raises ``UsageError`` for an unknown id.

        Args:
            id: The id of the request, or the request as it was read.
        """
        approval = await self._load_approval(id)
        now = await self._find_time(approval)
        if is_due(approval, now) or find_final_vote(approval, now) is not None:
            await self._close_due([approval.id])
            approval = await self._load_approval(approval.id)
        return approval

    async def find(self, part: str) -> str:
        """Return the id that equals, begins or ends with a text of at least 4 characters.

        Ids begin with the time, so their ends differ sooner. Raises ``UsageError`` if none matches, or more than one.

        Args:
            part: The beginning, the end or all of an id.
        """
        check_text_length("an approval's id", part, 1_000)
        if len(part) < _SHORTEST_PART:
            raise UsageError(
                f"an approval is named by its id, or {_SHORTEST_PART} characters or more of one, got {part!r}"
            )
        ids = await self._look_up(partial(find_ids, part=part.lower())) or []
        # There are at most two, and one that equals the text is the first of them.
        if len(ids) > 1 and part.lower() not in ids:
            raise UsageError(f"approvals {ids[0]}, {ids[1]} and perhaps more have {part!r}; give more of the id")
        if not ids:
            raise explain_missing(part)
        return ids[0]

    async def is_open(self, id: str) -> bool:  # noqa: A002 - as in decide
        """Return whether a request still waits for a person. Raises ``UsageError`` for an unknown id.

        Args:
            id: The id of the request, or the request as it was read.
        """
        return (await self.get(id)).status == "open"

    async def list(
        self, *, status: Status | None = "open", approver: str | None = None, audits: bool = False
    ) -> tuple[Approval, ...]:
        """List requests in the order in which they were made.

        Args:
            status: Only requests of this status; ``None`` is all.
            approver: Only requests that ask this approver; ``None`` is all.
            audits: List audits in their place, for whose answers nothing waits.
        """
        if status is not None:
            check_choice("status", status, STATUSES)
        name = read_name(approver, "approver") if approver is not None else None
        await self.close_due()
        statuses = _list_statuses(status, audits=audits)
        return tuple([approval async for approval in self._iterate_requests(statuses=statuses, approver=name)])

    async def find_requests(
        self,
        *,
        status: Status | None = None,
        approver: str | None = None,
        gates: Collection[str] | None = None,
        title: str | None = None,
        agent: str | None = None,
        customer: str | None = None,
        gate: str | None = None,
        words: str = "",
        most: int = 100,
        audits: bool = False,
    ) -> tuple[tuple[str, ...], int]:
        """Return the ids of the requests that match, the oldest first and at most ``most``, and how many match.

        No request is read for it.

        Args:
            status: Only requests of this status; ``None`` is all.
            approver: Only requests that ask this approver; ``None`` is all.
            gates: Only requests of these gates; ``None`` finds all, those of no gate included.
            title: Only requests with this text in their title; ``None`` is all.
            agent: Only requests whose metadata name this ``agent``; ``None`` is all.
            customer: Only requests whose metadata name this ``customer``; ``None`` is all.
            gate: Only requests of the gate of this name; ``None`` is all.
            words: What a person would type into the search of the queue, such as ``refund customer:C-20931``; empty is
                all.
            most: How many ids are returned at most.
            audits: Find audits in their place.
        """
        filters = _read_filters(title=title, agent=agent, customer=customer, gate=gate, words=words)
        if status is not None:
            check_choice("status", status, STATUSES)
        name = read_name(approver, "approver") if approver is not None else None
        await self.close_due()
        statuses = _list_statuses(status, audits=audits)
        work = partial(find_requests, filters=filters, statuses=statuses, approver=name, gates=gates, most=most)
        ids, total = await self._look_up(work) or ([], 0)
        return tuple(ids), total

    async def close_due(self, *, most: int | None = None) -> int:
        """Count the votes that are final by now, close the requests that have expired, and return how many there were.

        Args:
            most: How many requests are closed at most, each in a transaction of its own; the next call closes the rest.
                ``None`` is no limit.
        """
        work = partial(find_overdue, now=self._read_clock(), shares_clock=self._shares_clock)
        ids = (await self._look_up(work) or [])[:most]
        await self._close_due(ids)
        if self.keep_for is not None and time.monotonic() >= self._next_forgetting:
            self._next_forgetting = time.monotonic() + _FORGET_INTERVAL
            await self.forget_due(most=most)
        return len(ids)

    async def list_queue(
        self,
        *,
        after: str = "",
        title: str | None = None,
        agent: str | None = None,
        customer: str | None = None,
        gate: str | None = None,
        words: str = "",
    ) -> tuple[QueuedRequest, ...]:
        """Return whom each open request asks, without its texts; the one that expires next comes first.

        Requests whose time is over are left out, closed or not. Raises ``UsageError`` for what no store can hold.

        Args:
            after: Only requests whose ids come after this one; empty is all.
            title: Only requests with this text in their title; ``None`` is all.
            agent: Only requests whose metadata name this ``agent``; ``None`` is all.
            customer: Only requests whose metadata name this ``customer``; ``None`` is all.
            gate: Only requests of the gate of this name; ``None`` is all.
            words: What a person would type into the search of the queue, as for ``find_requests``; empty is all.
        """
        check_text_length("after", after, 1_000)
        filters = _read_filters(title=title, agent=agent, customer=customer, gate=gate, words=words)
        await self._close_some_due()
        return tuple(
            await self._look_up(partial(read_queue, filters=filters, now=self._read_clock(), after=after)) or ()
        )

    async def list_places(
        self,
        reader: QueueReader,
        *,
        order: QueueOrder = "expiry",
        after: str = "",
        agent: str | None = None,
        customer: str | None = None,
        gate: str | None = None,
        words: str = "",
    ) -> QueuePlaces:
        """Return the ids of the open requests that somebody sees, in an order, and which of them wait for them.

        It selects requests as ``list_queue`` does and is several times as fast, because it returns only ids. Call
        ``close_due`` before.

        Args:
            reader: Who looks at the queue, and what they may see.
            order: The order of the ids, such as ``expiry``: those that expire next come first.
            after: Only requests with later ids.
            agent: Only requests whose metadata name this agent.
            customer: Only requests whose metadata name this customer.
            gate: Only requests of the gate of this name; ``None`` is all.
            words: Only requests that match these words of a search.
        """
        check_text_length("after", after, 1_000)
        filters = _read_filters(agent=agent, customer=customer, gate=gate, words=words)
        work = partial(read_places, filters=filters, reader=reader, order=order, now=self._read_clock(), after=after)
        return await self._look_up(work) or QueuePlaces()

    async def count_queue(self, reader: QueueReader) -> tuple[int, datetime | None]:
        """Count the open requests that somebody sees, and return when the first of them expires.

        Call ``close_due`` before.

        Args:
            reader: Who looks at the queue, and what they may see.
        """
        work = partial(count_queue, reader=reader, now=self._read_clock())
        count, first_expiry = await self._look_up(work) or (0, None)
        return count, None if first_expiry is None else datetime.fromisoformat(first_expiry)

    async def list_choices(self, reader: QueueReader, *, most: int = 100) -> QueueChoices:
        """Return the gates and agents of the open requests that somebody sees, at most so many of each.

        Args:
            reader: Who looks at the queue, and what they may see.
            most: The most gates, and the most agents.
        """
        work = partial(list_choices, reader=reader, now=self._read_clock(), most=most)
        return await self._look_up(work) or QueueChoices()

    async def summarise(self, ids: Sequence[str]) -> tuple[RequestSummary, ...]:
        """Return what a list shows of these requests, in this order; unknown ones are left out.

        Args:
            ids: The ids of the requests.
        """
        return tuple(await self._look_up(partial(load_summaries, ids=_keep_storable(ids))) or ()) if ids else ()

    async def load_several(self, ids: Sequence[str]) -> tuple[Approval, ...]:
        """Return these requests as they are stored, in this order; unknown ones are left out.

        Args:
            ids: The ids of the requests.
        """
        return tuple(await self._look_up(partial(load_several, ids=_keep_storable(ids))) or ())

    async def list_undoable(self, by: str) -> tuple[str, ...]:
        """Return the ids of the requests with a vote of somebody who can still take it back.

        Args:
            by: The name of the approver.
        """
        name = read_name(by, "by")
        await self._close_some_due()
        work = partial(find_undoable, by=name, now=self._read_clock())
        return tuple(await self._look_up(work) or ())

    async def list_decided(
        self,
        by: str,
        *,
        approved: bool | None = None,
        since: datetime | None = None,
        gates: Collection[str] | None = None,
        skip: int = 0,
        most: int = 50,
    ) -> tuple[tuple[str, ...], int]:
        """Return the ids of the requests with a vote of somebody that counts, the last vote first, and how many match.

        ``summarise`` has what a list shows of them.

        Args:
            by: The name of the approver.
            approved: Only votes that said so: true for approvals, false for denials; ``None`` is both.
            since: Only votes from this time on; ``None`` is all.
            gates: Only votes about requests of these gates; ``None`` is all, those of no gate included.
            skip: How many of the first are left out.
            most: How many ids are returned at most.
        """
        name = read_name(by, "by")
        await self._close_some_due()
        work = partial(
            find_decided, by=name, approved=approved, since=since, gates=gates, skip=max(0, skip), most=max(0, most)
        )
        ids, total = await self._look_up(work) or ([], 0)
        return tuple(ids), total

    async def list_reasons(self, by: str, *, id: str | Approval) -> tuple[str, ...]:  # noqa: A002 - as in decide
        """Return reasons given before that may fit a request, the most used first: somebody's own, then its gate's.

        They are those of the latest 1,000 votes about requests that ``by`` was asked about too, and none about this
        request.

        Args:
            by: The name of the approver.
            id: The id of the request, or the request as it was read.
        """
        approval = await self._load_approval(id)
        work = partial(find_reasons, by=read_name(by, "by"), gate=approval.gate, apart_from=approval.id)
        return tuple(await self._look_up(work) or ())

    async def count_open(self, approver: str, *, gates: Collection[str] | None = None) -> int:
        """Count the open requests that an approver can still decide, without reading them in full.

        Args:
            approver: The name of the approver.
            gates: Only requests of these gates; ``None`` counts all, those of no gate included.
        """
        name = read_name(approver, "approver")
        await self._close_some_due()
        return await self._look_up(partial(count_open, approver=name, gates=gates, now=self._read_clock())) or 0

    async def count_open_by_gate(self, approver: str, *, gates: Collection[str] | None = None) -> dict[str | None, int]:
        """Count as ``count_open`` does, by the names of the gates that have any; ``None`` is those of no gate.

        Args:
            approver: The name of the approver.
            gates: Only requests of these gates; ``None`` is all, those of no gate included.
        """
        name = read_name(approver, "approver")
        await self._close_some_due()
        work = partial(count_open_by_gate, approver=name, gates=gates, now=self._read_clock())
        return await self._look_up(work) or {}

    async def history(self, id: str | Approval) -> tuple[Entry, ...]:  # noqa: A002 - as in decide
        """Return the ledger's entries about a request, in order, including refused decisions.

        Args:
            id: The id of the request, or the request as it was read.
        """
        approval = await self._load_approval(id)
        entries = self.ledger.query(subject=approval.subject)
        return tuple([entry async for entry in entries if (entry.payload or {}).get("approval") == approval.id])

    async def find_gaps(self, id: str | Approval) -> tuple[Gap, ...]:  # noqa: A002 - as in decide
        """Find what is cut off, missing or changed in a request, so that it cannot be approved as it is shown.

        ``decide(..., require_complete=True)`` refuses to approve it then. A denial always works.

        Args:
            id: The id of the request, or the request as it was read.
        """
        approval = await self._load_approval(id)
        judged_with = await self._look_up(partial(load_judged_with, ident=approval.id))
        recorded_digest = await self._look_up(partial(read_shown, approval=approval))
        return find_gaps(approval, recorded_digest, judged_with)

    async def find_earlier(self, id: str | Approval) -> Approval | None:  # noqa: A002 - as in decide
        """Return the last request like this one that people approved before it, with its content; ``None`` without one.

        It has the same gate and, in its metadata, the same tool, HTTP method and path. A request that the ledger does
        not confirm is skipped.

        Args:
            id: The id of the request, or the request as it was read.
        """
        approval = await self._load_approval(id)
        if approval.gate is None:
            return None
        work = partial(load_approved_before, ident=approval.id, gate=approval.gate)
        for earlier in await self._look_up(work) or ():
            if is_alike(approval, earlier):
                with suppress(LedgerError):
                    await self._confirm(earlier)
                    if not await self._was_changed(earlier):
                        return earlier
        return None

    async def _was_changed(self, approval: Approval) -> bool:
        """Return whether a request differs from what the ledger's entry of it digests, or has no such digest."""
        recorded_digest = await self._look_up(partial(read_shown, approval=approval))
        return recorded_digest is None or recorded_digest != digest_recorded(approval)

    async def compute_figures(self, by: str, *, since: datetime | None = None) -> ReviewerFigures:
        """Compute how one reviewer decided, from the ledger.

        Show it to that reviewer only.

        Args:
            by: The name of the reviewer.
            since: Only votes from this time on; ``None`` is all.
        """
        counter = FigureCounter(by=read_name(by, "by"), since=since)
        with suppress(UsageError):  # there is no ledger yet
            for row in await self._look_up(partial(load_votes_of, by=counter.by, since=since)) or ():
                counter.add(read_entry(row))
        return counter.finish()

    # ---------------------------------------------------------------- what waits

    async def pending(self, id: str | Approval) -> PendingDecision | None:  # noqa: A002 - as in decide
        """Return the pending decision that a gate stored with this request, or ``None``.

        There is none if no gate made the request, or if its texts are forgotten.
        Raises ``UsageError`` for an unknown request, and ``LedgerError`` when the ledger does not confirm the decision.

        Args:
            id: The id of the request, or the request as it was read.
        """
        approval = await self.get(id)
        row = await self._look_up(partial(load_pending, ident=approval.id))
        if row is None:
            return None
        entry = None
        with suppress(UsageError):  # there is no such entry, or it cannot be read; read_pending refuses the row then
            entry = await self.ledger.read(approval.seq or NO_PLACE)
        stored = read_pending(row, approval, entry)
        closed_at = approval.closed_at
        if closed_at is None:
            return stored
        now = await self._find_time(approval)
        return replace(stored, answered_for=(now - closed_at).total_seconds())

    async def find_pending(self, key: str) -> str | None:
        """Find the id of the request whose pending decision has this digest of an idempotency key in its ``basis``.

        Args:
            key: The digest of the idempotency key.
        """
        check_text_length("an idempotency key's digest", key, 1_000)
        with suppress(UsageError):  # there is no ledger yet, so nothing waits
            return await self._look_up(partial(find_by_key, key=key))
        return None

    async def list_pending(
        self, *, gate: str | None = None, status: Status | None = "open"
    ) -> tuple[PendingDecision, ...]:
        """Return pending decisions that have not been resumed, oldest first, by gate and status (``None``: all).

        ``open`` means that people still have to decide, ``approved`` that the decision can be resumed. Raises
        ``LedgerError`` for a stored decision that the ledger does not confirm.

        Args:
            gate: Only requests of the gate of this name; ``None`` is all.
            status: The status of the requests.
        """
        if status is not None:
            check_choice("status", status, STATUSES)
        ids: Iterable[str] | None = None
        with suppress(UsageError):  # there is no ledger yet, so nothing waits
            ids = await self._look_up(partial(list_unused, gate=gate))
        decisions = [await self.pending(ident) for ident in ids or ()]
        return tuple(
            [decision for decision in decisions if decision is not None and status in (None, decision.approval.status)]
        )

    async def use(self, decision: Decision) -> int | None:
        """Record a decision that an approval allowed, mark the approval as used, and return the entry's place.

        Both happen in one transaction. An approval of an HTTP request or of a tool's call can be used once: after that,
        nothing is recorded and ``None`` is returned. Any other can be used again, after a crash for instance. A gate
        calls this; ``ledger`` holds the entry. Raises ``UsageError`` for a decision that no approval allowed, and
        ``LedgerError`` when the store fails or does not confirm the approval.

        Args:
            decision: The decision that the approval allowed.
        """
        if not decision.allowed or decision.approval_id is None:
            raise UsageError(f"only a decision that an approval allowed uses it; this one is {decision.explain()}")
        return await self._run_transaction(lambda transaction: transaction.use(decision))

    # ---------------------------------------------------------------- afterwards

    async def forget(self, id: str) -> Approval:  # noqa: A002 - as in decide
        """Delete the message, the content and the judges' words of a closed request from its tables.

        The ledger's entries stay. ``Ledger.erase`` erases the payload of one.

        Args:
            id: The id of the request.
        """
        if (await self.get(id)).status == "open":
            raise UsageError(f"approval {id} is open, and people have to read it; decide it first")

        return await self._run_transaction(lambda transaction: transaction.forget(id))

    async def forget_due(self, *, most: int | None = None) -> int:
        """Forget the requests that were closed more than ``keep_for`` seconds ago, and return how many there were.

        Calls that look at requests do this about once a minute.

        Args:
            most: How many requests are forgotten at most; ``None`` is no limit.
        """
        if self.keep_for is None:
            return 0
        closed_by = self._read_clock() - timedelta(seconds=self.keep_for)
        # Entries are dated by get_now. With another clock, their dates cannot tell which requests are due.
        recorded_by = closed_by if self._shares_clock else None
        ids = await self._look_up(partial(find_unforgotten, recorded=recorded_by, closed=closed_by, most=most)) or []
        for ident in ids:
            await self._run_transaction(partial(ApprovalTransaction.forget, ident=ident))
        return len(ids)

    async def labels(self) -> AsyncIterator[dict[str, Any]]:
        """Yield every request in which people overruled the judge, as a row of a data set.

        ``label`` is their decision, ``labels`` the vote of each. ``content`` is there if it was stored; its digest is
        always in ``metadata`` as ``subject``.
        """
        async for approval in self._iterate_requests(overrides=True):
            yield make_override_row(approval)

    async def export_labels(self, path: str | os.PathLike[str]) -> int:
        """Write ``labels`` to a new file of JSON lines, and return how many there are.

        ``open_dataset`` reads those that have their content. Raises ``UsageError`` when the file exists.

        Args:
            path: The file to write.
        """
        rows = [row async for row in self.labels()]
        return await asyncio.to_thread(write_rows, rows, path)

    async def override_labels(self) -> AsyncIterator[Label]:
        """Yield the votes of people who overruled a judge, as labels of the kind ``override``.

        ``case`` is the ``id`` of the row that ``labels`` and ``export_labels`` give. They are not blind, and only cases
        that a gate held back have them, so do not compute a judge's error rate from them alone.
        """
        from adjudge.dataset.label import Label

        async for approval in self._iterate_requests(overrides=True):
            for vote in approval.votes:
                label = {"value": vote.approved, "at": vote.at, "comment": vote.reason or None}
                yield Label(case=approval.id, rater=vote.by, kind="override", **label)

    async def aclose(self) -> None:
        """Wait up to 10 seconds for webhook deliveries, and close the ledger if it was opened here."""
        if self._delivery_queue is not None:
            await self._delivery_queue.drain(_DRAIN_SECONDS)
        if self._owns_ledger:
            await self.ledger.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    # ---------------------------------------------------------------- within

    async def _ask_first(self, approval: Approval, result: JudgeResult, terms: RequestTerms) -> Approval:
        """Ask the judge that may answer a new request before people, and return the request with its result.

        The request is returned as approved if that judge approves it in time, and unchanged if the terms name no judge.
        """
        if terms.first is None:
            return approval
        if has_attack_warning(result):
            # Whoever tampered with one judge may have written a text that tampers with the next one too.
            return replace(approval, first_said="no judge was asked, since the result warns of tampering")
        first_result = await ask_first(terms.first, approval, seconds=terms.seconds)
        approves, explanation = explain_first(first_result)
        now = self._read_clock()
        is_late = is_due(approval, now)
        first_said = f"{explanation}, too late" if approves and is_late else explanation
        approval = replace(approval, first=first_result, first_said=first_said)
        return approve_by_judge(approval, first_result, now) if approves and not is_late else approval

    async def _close_due(self, ids: Iterable[str]) -> None:
        """Count the final votes of these requests, close the expired ones, and announce each that ended.

        Each request has a transaction of its own, which reads it again: another process may have closed it meanwhile.
        """
        for ident in ids:
            ended = await self._run_transaction(partial(ApprovalTransaction.close_due, ident=ident))
            if ended is not None:
                await self._announce_end(ended)

    async def _confirm(self, approval: Approval) -> None:
        """Raise an error unless the ledger's entries confirm a closed request: its terms, its votes and its end.

        The table alone proves nothing, because anybody who can write the database could approve a request in it.
        Raises ``UsageError`` if one of the entries was erased, and ``LedgerError`` if they say something else.
        """
        entries = {}
        for seq in list_proving_places(approval):
            with suppress(UsageError):  # there is no such entry, or it cannot be read
                entries[seq] = await self.ledger.read(seq)
        for seq, entry in sorted(entries.items()):
            if entry.payload is None:
                raise UsageError(
                    f"what approval {approval.id} is about was erased (entry {seq} of the ledger), so it opens "
                    "nothing; put the content through the gate again"
                )
        problem = find_unconfirmed(approval, entries)
        if problem is not None:
            raise LedgerError(
                f"approval {approval.id} is {approval.status} in its table, and the ledger does not confirm {problem}; "
                "`adjudge ledger verify` shows whether the ledger was changed"
            )

    async def _iterate_requests(
        self, *, statuses: Collection[str] | None = None, overrides: bool = False, approver: str | None = None
    ) -> AsyncIterator[Approval]:
        """Yield every request that meets the conditions, loaded page by page; ``None`` is no condition."""
        after = ""
        while True:
            work = partial(load_many, after=after, statuses=statuses, overrides=overrides, approver=approver)
            approvals = await self._look_up(work) or []
            for approval in approvals:
                yield approval
            if len(approvals) < PAGE:
                return
            after = approvals[-1].id

    async def _load_approval(self, ident: str | Approval) -> Approval:
        """Load a request by its id; return an ``Approval`` as it is. Raises ``UsageError`` for an id of no request."""
        if isinstance(ident, Approval):
            return ident
        check_text_length("an approval's id", ident, 1_000)
        approval = await self._look_up(partial(load, ident=ident))
        if approval is None:
            raise explain_missing(ident)
        return approval

    async def _look_up(self, work: Callable[[Connection], T]) -> T | None:
        """Run a read of the tables of requests, and return its result; ``None`` before the first request was made."""
        return await self.ledger.look(work, tables=make_tables())

    async def _run_transaction(self, work: Callable[[ApprovalTransaction], T]) -> T:
        """Run a change of the tables and the ledger in one transaction, and return its result."""
        return await self.ledger.transact(
            lambda transaction: work(
                ApprovalTransaction(self.ledger, self._read_clock, transaction, shares_clock=self._shares_clock)
            ),
            tables=make_tables(),
        )

    def announce_monitor(self, monitor: Monitor, /) -> None:
        """Notify the webhook, if there is one, of what the audits of a gate show now.

        Args:
            monitor: What the audits show.
        """
        if self._delivery_queue is not None:
            self._delivery_queue.send_monitor(monitor)

    def announce_unchecked_call(self, run_id: str, call_id: str, /) -> None:
        """Notify the webhook, if there is one, that a call was made which nobody had checked as it was made.

        Args:
            run_id: The id of the agent's run.
            call_id: The id of the call in it.
        """
        if self._delivery_queue is not None:
            self._delivery_queue.send_call(run_id, call_id)

    async def _announce_end(self, approval: Approval) -> None:
        """Log that a request ended, and notify the webhook, except of an audit whose content was planted."""
        logger.info("approval %s was %s by %s", approval.id, approval.status, approval.decided_by)
        is_announced_audit = self._delivery_queue is not None and approval.audit
        if not (is_announced_audit and await self._look_up(partial(is_planted, ident=approval.id))):
            self._announce_state(approval)

    def _announce_state(self, approval: Approval) -> None:
        """Notify the webhook, if there is one, that a request was opened or closed."""
        if self._delivery_queue is not None:
            self._delivery_queue.send(find_event(approval), approval)

    async def _find_time(self, approval: Approval) -> datetime:
        """Find what time it is for a request: now, or later if the ledger shows that the clock was set back since."""
        now = self._read_clock()
        if not self._shares_clock:
            return now
        work = partial(find_time, approval=approval, now=now)
        return await self._look_up(work) or now

    async def _close_some_due(self) -> None:
        """Close up to 20 of the requests that have expired.

        Unless something is recorded, an expired request would be open again if the clock were set back. Some are
        enough: each leaves an entry in the ledger, and the date of that entry proves that the others have expired too.
        """
        await self.close_due(most=_MOST_CLOSED)

    def _read_clock(self) -> datetime:
        """Return the time in UTC, which never goes back. Raises ``UsageError`` for a clock without a zone."""
        now = self._clock()
        if now.tzinfo is None:
            raise UsageError("the clock of approvals gives times without a zone; use datetime.now(timezone.utc)")
        # Never back: an expired request would be open again, and could be approved.
        with self._latest_lock:
            self._latest_time = max(self._latest_time, now.astimezone(UTC))
            return self._latest_time


def _read_filters(*, words: str = "", **texts: str | None) -> RequestFilters:
    """Make the filters of a list of requests; raises ``UsageError`` for a text that no store can hold."""
    for name, text in texts.items():
        if text is not None:
            check_text_length(name, text, 1_000)
    return RequestFilters(query=read_query(words), **texts)


def _list_statuses(status: Status | None, *, audits: bool) -> tuple[str, ...]:
    """List the values that the table's status column has for a status, or for all; audits have values of their own."""
    statuses = STATUSES if status is None else (status,)
    return tuple(find_listed_status(name, is_audit=audits) for name in statuses)


def _keep_storable(ids: Iterable[str]) -> Sequence[str]:
    """Return the ids that every store can hold. No request has another one, and some stores raise when asked for it."""
    return [ident for ident in ids if can_store(ident)]


def _explain_refusal(approval: Approval, by: str, because: RefusedBecause) -> str:
    """Explain a refused vote in one sentence; for every reason but ``final`` it adds that the attempt is recorded."""
    sentence = {
        "unauthorised": f"{by!r} is none of the approvers of {approval.id}",
        "double": f"{by!r} has decided {approval.id} already, and nobody decides twice",
        "closed": f"approval {approval.id} is closed: {approval.status} by {', '.join(approval.closed_by)}",
        "expired": f"approval {approval.id} has expired and is {approval.status}",
        "incomplete": f"approval {approval.id} does not show all that would be approved; it can be denied",
        "changed": f"approval {approval.id} is not what was shown and recorded, so it cannot be approved; look again",
        "final": f"{by!r} has no vote on {approval.id} that can still be taken back",
    }[because]
    return sentence if because == "final" else f"{sentence}; the attempt is recorded"
