"""What happens within one transaction: a request changes, and the ledger is told, together or not at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from adjudge.approval import _counting as counting
from adjudge.approval import _entries as entries
from adjudge.approval import _tables as tables
from adjudge.approval._values import Approval, Vote
from adjudge.ledger import Ledger, Transaction
from adjudge.result import JudgeResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Voted:
    """What came of a decision."""

    approval: Approval
    refused: counting.Refusal | None
    """Why it does not count."""
    ended: bool
    """Whether the request was closed by it, or found to have expired."""


@dataclass(frozen=True, slots=True)
class Step:
    """One transaction under way. The clock is read inside it, after everybody else who writes was waited for."""

    ledger: Ledger
    clock: Callable[[], datetime]
    transaction: Transaction

    def open(self, approval: Approval, result: JudgeResult) -> Approval:
        """Write a new request, and what the judge said that was asked first."""
        approval = replace(approval, seq=self._tell(approval, entries.tell_requested(approval, result)))
        if approval.first is not None:
            self._tell(approval, entries.tell_judged(approval, approval.first))
        if approval.status != "open":
            approval = self._tell_end(approval)
        tables.insert(self.transaction.connection, approval)
        return approval

    def vote(self, ident: str, by: str, reason: str, *, approved: bool) -> Voted:
        """Count a decision, or refuse it; both are recorded."""
        now = self.clock()
        approval = tables.load(self.transaction.connection, ident)
        ended = counting.is_due(approval, now)
        if ended:
            approval = self._end(counting.expire(approval, now))
        refused = counting.refuse(approval, by)
        vote = Vote(by=by, approved=approved, at=now, reason=reason)
        seq = self._tell(approval, entries.tell_voted(approval, vote, refused))
        if refused is not None:
            return Voted(approval=approval, refused=refused, ended=ended)
        vote = replace(vote, seq=seq)
        approval = counting.count(approval, vote)
        if approval.status != "open":
            return Voted(approval=self._end(approval, vote), refused=None, ended=True)
        tables.update(self.transaction.connection, approval, vote)
        return Voted(approval=approval, refused=None, ended=False)

    def expire(self, ident: str) -> Approval | None:
        """Close a request whose time is over, unless somebody did so meanwhile; ``None`` then."""
        now = self.clock()
        approval = tables.load(self.transaction.connection, ident)
        return self._end(counting.expire(approval, now)) if counting.is_due(approval, now) else None

    def forget(self, ident: str) -> Approval:
        """Write what is left of a closed request without its texts."""
        approval = tables.load(self.transaction.connection, ident).forget()
        tables.rewrite(self.transaction.connection, approval)
        return approval

    def _end(self, approval: Approval, vote: Vote | None = None) -> Approval:
        approval = self._tell_end(approval)
        tables.update(self.transaction.connection, approval, vote)
        return approval

    def _tell_end(self, approval: Approval) -> Approval:
        approval = replace(approval, closed_seq=self._tell(approval, entries.tell_closed(approval)))
        if not approval.overrides:
            return approval
        return replace(approval, override_seq=self._tell(approval, entries.tell_override(approval)))

    def _tell(self, approval: Approval, said: entries.Said) -> int:
        draft = self.ledger.make_entry(said.payload, kind=said.kind, subject=approval.subject, quoting=said.quoting)
        return self.transaction.append(draft)
