"""The changes of a tool within one transaction, except its promotion (``promotion.py``).

A transaction that raises changes nothing. So a verdict that has no effect, because the tool changed meanwhile, is no
exception but an outcome: it was paid for, and has to be recorded.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Protocol

from adjudge.concurrency import Timeout
from adjudge.errors import Argument, ToolRefused, UsageError
from adjudge.formats.text import show
from adjudge.result import make_id
from adjudge.tools.record import Claim, ToolRecord, ToolSummary, make_summary
from adjudge.tools.registry_obstacles import (
    Because,
    Obstacle,
    RegistryLimits,
    find_claim_obstacle,
    find_room_obstacle,
    find_use_obstacle,
)
from adjudge.tools.store import (
    ToolFilter,
    ToolView,
    make_demoted_entry,
    make_lost_entry,
    make_rejected_entry,
    make_reviewed_entry,
)
from adjudge.tools.tool import MISSING, EmergentTool, ToolCandidate, ToolUsage, tool_digest
from adjudge.tools.verdict import CreationVerdict, PromotionVerdict, ToolReviewVerdict, reject_creation

LONGEST_ID = 200
"""Characters; ours have fewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of a review: the record as it now is, and the obstacle if there was one."""

    record: ToolRecord | None
    obstacle: Obstacle | None = None


@dataclass(frozen=True, slots=True)
class ToolTransaction:
    """A transaction that changes tools. ``now`` is read inside it, after waiting for every other writer."""

    view: ToolView
    limits: RegistryLimits
    now: datetime

    # ---------------------------------------------------------------- coming and going

    def check_room(self, candidate: ToolCandidate, agent: str, session: str) -> None:
        """Raise ``ToolRefused`` where the registry has no room for a new tool; nothing is written."""
        self._check_room(make_summary(_make_record(candidate, agent, session, self.now)))

    def register(self, candidate: ToolCandidate, verdict: CreationVerdict, agent: str, session: str) -> ToolRecord:
        """Write an approved candidate as a new tool, and its verdict. Raises ``ToolRefused`` where there is no room."""
        record = add_verdict(_make_record(candidate, agent, session, self.now), verdict)
        self._check_room(make_summary(record))
        self.view.save(record)
        self.view.append_entry(make_reviewed_entry(record, verdict))
        return record

    def reject(self, candidate: ToolCandidate, verdict: CreationVerdict, agent: str, session: str) -> None:
        """Record the verdict on a candidate that did not become a tool."""
        self.view.append_entry(make_rejected_entry(candidate, verdict, agent, session))

    def write_unreviewed(self, candidate: ToolCandidate, agent: str, session: str) -> ToolRecord:
        """Write a candidate from elsewhere as a tool that does not run before it is reviewed here."""
        record = replace(_make_record(candidate, agent, session, self.now), status="unreviewed")
        self._check_room(make_summary(record))
        self.view.save(record)
        return record

    def end_session(self, session: str, agent: str | None) -> int:
        """Remove the tools of a session, and return how many there were.

        The records of demoted tools stay, because otherwise their source could be registered again unnoticed.
        """
        records = self.view.find(ToolFilter(tier="session", session=session, agent=agent))
        removed = [record for record in records if record.status != "demoted"]
        for record in removed:
            self._remove(record, "the session ended", None)
        return len(removed)

    def remove(self, tool_id: str, reason: str, by: str | None) -> None:
        """Remove a tool of any status. Raises ``ToolRefused`` for an unknown one."""
        self._remove(self.find(tool_id), reason, by)

    def _remove(self, record: ToolRecord, reason: str, by: str | None) -> None:
        """Delete a tool; one that was in use gets an entry in the ledger."""
        if record.status == "active":
            self.view.append_entry(make_demoted_entry(record, "removed", reason, by))
        self.view.delete(record.id)

    # ---------------------------------------------------------------- changes and uses

    def update(self, tool_id: str, candidate: ToolCandidate, session: str | None) -> ToolRecord:
        """Replace the candidate of a tool, which loses its tier and does not run until it is reviewed again.

        Raises ``ToolRefused`` for a demoted tool, and where there is no room.
        """
        before = self.find(tool_id)
        if before.status == "demoted":
            raise ToolRefused(f"the tool {tool_id} is demoted; a review can reinstate it as it is", because="demoted")
        # Both are compared: to Python 1 and True are equal, and they have different digests.
        if candidate == before.tool.candidate and tool_digest(candidate) == before.digest:
            return before
        tool = replace(
            before.tool,
            candidate=candidate,
            tier="session",
            session=session if session is not None else before.tool.session,
            usage=ToolUsage(),
        )
        # The cool-down is kept: else a tool could be reviewed again at once after a blank was added to its source.
        after = replace(before, tool=tool, status="unreviewed", approved_by=None, claim=None)
        self._check_room(make_summary(after))
        if before.status == "active":
            self.view.append_entry(make_demoted_entry(before, "unreviewed", "it was changed", None))
        self.view.save(after)
        return after

    def demote(self, tool_id: str, reason: str, by: str) -> ToolRecord:
        """Take a tool out of use. Neither a full cap nor a review under way prevents that."""
        before = self.find(tool_id)
        if before.status == "demoted":
            return before
        tool = replace(before.tool, tier="session")
        after = replace(before, tool=tool, status="demoted", reason=reason, approved_by=None, claim=None)
        self.view.append_entry(make_demoted_entry(before, "demoted", reason, by))
        self.view.save(after)
        return after

    def record_use(self, tool_id: str, digest: str | None, *, success: bool, ms: float, output: Any) -> ToolRecord:
        """Count one use of a tool.

        ``digest`` is that of the tool that was used; ``None`` compares nothing. Raises ``ToolRefused`` for a tool that
        may not be used, or was changed meanwhile.
        """
        record = self.find(tool_id)
        tool = record.tool
        obstacle = find_use_obstacle(record, agent=tool.agent, session=tool.session)
        if obstacle is not None:
            raise obstacle.make_error()
        if digest is not None and digest != record.digest:
            raise ToolRefused(f"the tool {tool_id} was changed while it ran; its use is not counted", because="changed")
        usage = tool.usage if tool.usage is not None else ToolUsage()
        counted_output = output if success else MISSING
        usage = usage.add(success=success, duration_ms=ms, at=self.now, output=counted_output)
        cooling = replace(record.cooling, uses=record.cooling.uses + 1)
        record = replace(record, tool=replace(tool, usage=usage), cooling=cooling)
        self.view.save_standing(record)
        return record

    # ---------------------------------------------------------------- reviews

    def begin_review(self, tool_id: str, by: str | None, session: str | None, claim: Claim) -> Outcome:
        """Claim a tool that is not in use for a review, so that nobody else has it reviewed meanwhile.

        Raises ``ToolRefused`` for a demoted tool if nobody reinstates it by name, and where the registry has no room
        for it.
        """
        record = self.find(tool_id)
        if record.status == "active":
            detail = f"the tool {tool_id} is in use, by a review of what it is"
            return Outcome(record=record, obstacle=Obstacle(because="already", detail=detail))
        if record.status == "demoted" and by is None:
            # A demotion by a person would mean nothing if a program could reverse it.
            raise ToolRefused(
                f"the tool {tool_id} is demoted; name who reinstates it with ",
                Argument("by"),
                because="demoted",
                argument="by",
            )
        self._check_room(make_summary(_reinstate(record, session)))
        return self.claim(record, claim)

    def end_review(
        self, reviewed: ToolRecord, verdict: CreationVerdict, by: str | None, session: str | None
    ) -> Outcome:
        """Write the verdict on a tool, and put the tool into use if it is approved and nothing is in the way."""
        current = self.load_reviewed(reviewed, verdict)
        if isinstance(current, Outcome):
            return current
        updated = add_verdict(drop_claim(current, reviewed), verdict)
        obstacle = find_rejection(verdict) or find_expired_claim(current, reviewed)
        if obstacle is None:
            active = _reinstate(updated, session)
            obstacle = find_room_obstacle(
                make_summary(active), self.view.list_neighbours(make_summary(active)), self.limits, self.now
            )
            updated = active if obstacle is None else updated
        self.view.save(updated)
        self.view.append_entry(make_reviewed_entry(updated, verdict, by=by))
        return Outcome(record=updated, obstacle=obstacle)

    def release(self, tool_id: str, claim: Claim) -> None:
        """End the claim of a review that has no verdict."""
        record = self.view.load(tool_id)
        if record is not None and record.claim is not None and record.claim.token == claim.token:
            self.view.save_standing(replace(record, claim=None))

    # ---------------------------------------------------------------- within

    def find(self, tool_id: str) -> ToolRecord:
        """Return the tool of this id; raises ``ToolRefused`` where there is none."""
        # A value that some store cannot look for is no tool's id.
        is_possible_id = isinstance(tool_id, str) and tool_id.isprintable() and len(tool_id) <= LONGEST_ID
        record = self.view.load(tool_id) if is_possible_id else None
        if record is None:
            raise ToolRefused(
                f"there is no tool {show(tool_id)}; `adjudge tools list` shows those there are", because="unknown"
            )
        return record

    def _check_room(self, summary: ToolSummary) -> None:
        """Raise ``ToolRefused`` where the registry has no room for a tool with this summary."""
        obstacle = find_room_obstacle(summary, self.view.list_neighbours(summary), self.limits, self.now)
        if obstacle is not None:
            raise obstacle.make_error()

    def claim(self, record: ToolRecord, claim: Claim) -> Outcome:
        """Claim a tool for a review; an outcome with an obstacle says that somebody else has claimed it."""
        obstacle = find_claim_obstacle(record, self.now)
        if obstacle is not None:
            return Outcome(record=record, obstacle=obstacle)
        record = replace(record, claim=claim)
        self.view.save_standing(record)
        return Outcome(record=record)

    def load_reviewed(self, reviewed: ToolRecord, verdict: ToolReviewVerdict) -> ToolRecord | Outcome:
        """Load a tool after its review, if it still is what was reviewed.

        Otherwise record the verdict as one without effect, and return an outcome that says why.
        """
        tool_id = reviewed.id
        current = self.view.load(tool_id)
        # The agent, the session, the tier and the status are compared too, not only the digest: otherwise a change of
        # these in the table would be written to the ledger with the verdict.
        is_unchanged = current is not None and _list_identity(current) == _list_identity(reviewed)
        if current is not None and is_unchanged and reviewed.digest == verdict.tool_digest:
            return current
        because: Because = "changed" if current is not None else "removed"
        if current is not None and current.status == "demoted":
            because = "demoted"
        self.view.append_entry(make_lost_entry(tool_id, verdict, because))
        detail = f"the tool {tool_id} was {because} while it was reviewed"
        return Outcome(record=current, obstacle=Obstacle(because=because, detail=detail))


def make_claim(now: datetime, seconds: float) -> Claim:
    """Make a claim that expires by itself after so many seconds."""
    return Claim(token=make_id(), until=now + timedelta(seconds=seconds))


def _make_record(candidate: ToolCandidate, agent: str, session: str, now: datetime) -> ToolRecord:
    """Make the record of a new tool, with a new id, in the session of its agent."""
    tool = EmergentTool(id=f"tool-{make_id()}", candidate=candidate, agent=agent, session=session, usage=ToolUsage())
    return ToolRecord(tool=tool, registered_at=now)


def add_verdict(record: ToolRecord, verdict: ToolReviewVerdict) -> ToolRecord:
    """Return the record with one more verdict on its tool."""
    return replace(record, tool=replace(record.tool, verdicts=(*record.tool.verdicts, verdict)))


def _reinstate(record: ToolRecord, session: str | None) -> ToolRecord:
    """Return the record of a tool that is in use again, in another session if one is given."""
    tool = record.tool if session is None else replace(record.tool, session=session)
    return replace(record, tool=tool, status="active", reason="")


def _list_identity(record: ToolRecord) -> tuple[Any, ...]:
    """List everything that must not change while a tool is reviewed."""
    tool = record.tool
    return tool.candidate, tool.digest, tool.agent, tool.session, tool.tier, record.status


def _has_same_claim(record: ToolRecord, reviewed: ToolRecord) -> bool:
    """Return whether a tool still has the claim of the review that began with ``reviewed``."""
    current_claim, reviewed_claim = record.claim, reviewed.claim
    return current_claim is not None and reviewed_claim is not None and current_claim.token == reviewed_claim.token


def drop_claim(record: ToolRecord, reviewed: ToolRecord) -> ToolRecord:
    """Return the record without the claim of a review; the claim of another review is kept."""
    return replace(record, claim=None) if _has_same_claim(record, reviewed) else record


def find_rejection(verdict: ToolReviewVerdict) -> Obstacle | None:
    """Return the obstacle that the reviewers rejected a tool; ``None`` if they approved it."""
    return None if verdict.approved else Obstacle(because="rejected", detail=f"rejected: {verdict.reasoning}")


def find_expired_claim(record: ToolRecord, reviewed: ToolRecord) -> Obstacle | None:
    """Return the obstacle that a review took longer than its claim; ``None`` if it did not."""
    if _has_same_claim(record, reviewed):
        return None
    return Obstacle(because="busy", detail=f"the review of {record.id} took so long that it counts no more")


REVIEW_SHARE = 0.9
"""The share of its claim that a review may take, so that it ends before anybody else may begin one."""


class ToolJudge(Protocol):
    """A reviewer of tools: an ``EmergentJudge``, or an object with the same two methods."""

    async def review_creation(self, candidate: ToolCandidate) -> CreationVerdict:
        """Decide whether a candidate may become a tool.

        Args:
            candidate: The candidate: its source or steps, its schemas and its tests.
        """

    async def review_promotion(self, tool: EmergentTool) -> PromotionVerdict:
        """Decide whether a tool may rise one tier.

        Args:
            tool: The tool, with its uses so far.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgeResult:
    """The result of ``forge`` or ``review``; true exactly when the candidate is now a tool that may run."""

    tool: EmergentTool | None = None
    """The tool; ``None`` if there is none."""
    verdict: CreationVerdict | None = None
    """The verdict of the review; ``None`` if nobody was asked."""
    refused: str | None = None
    """The reason for which there is no tool, in a word: ``sandbox``, ``empty``, ``untested``, ``rejected``,
    ``session_cap``, ``name`` and so on; ``None`` where there is one."""
    detail: str = ""
    """The same in a sentence; it may quote the candidate."""

    def __bool__(self) -> bool:
        return self.tool is not None


def make_result(outcome: Outcome, verdict: CreationVerdict | None) -> ForgeResult:
    """Make the result of ``ToolRegistry.review`` from the outcome of a transaction."""
    obstacle = outcome.obstacle
    if obstacle is not None or outcome.record is None:
        because, detail = (obstacle.because, obstacle.detail) if obstacle is not None else ("removed", "it was removed")
        return ForgeResult(verdict=verdict, refused=because, detail=detail)
    return ForgeResult(tool=outcome.record.tool, verdict=verdict)


async def ask_creation(judge: ToolJudge, candidate: ToolCandidate, seconds: float) -> CreationVerdict:
    """Ask a judge for its verdict on a candidate that is claimed for so many seconds; a late verdict is a rejection.

    Raises ``UsageError`` if the judge returns no verdict on this candidate.
    """
    try:
        verdict = await Timeout(seconds * REVIEW_SHARE).run(judge.review_creation(candidate), name="review_creation")
    except TimeoutError:
        return reject_creation(describe_late(seconds), tool_digest(candidate))
    if not isinstance(verdict, CreationVerdict) or verdict.tool_digest != tool_digest(candidate):
        raise UsageError(f"review_creation returns a CreationVerdict on what it was given, got {show(verdict)}")
    return verdict


def describe_late(seconds: float) -> str:
    """Explain that a tool is rejected because its review took too long."""
    return f"rejected, since the review took longer than {seconds * REVIEW_SHARE:g} seconds"
