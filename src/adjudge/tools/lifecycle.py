"""The changes of a tool within one transaction, but its promotion (``promotion.py``).

A step that raises has changed nothing. So what was paid for and must be recorded even where it has no effect (a
verdict on a tool that changed meanwhile) is returned as an outcome, and not raised.
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
    """One transaction under way; ``now`` is read inside it, after everybody else who writes was waited for."""

    view: ToolView
    limits: RegistryLimits
    now: datetime

    # ---------------------------------------------------------------- coming and going

    def check_room(self, candidate: ToolCandidate, agent: str, session: str) -> None:
        """Raise where a new tool would find no place; nothing is written."""
        self._check_room(make_summary(_make_record(candidate, agent, session, self.now)))

    def register(self, candidate: ToolCandidate, verdict: CreationVerdict, agent: str, session: str) -> ToolRecord:
        """Write a tool that was approved, and its verdict."""
        record = add_verdict(_make_record(candidate, agent, session, self.now), verdict)
        self._check_room(make_summary(record))
        self.view.save(record)
        self.view.append_entry(make_reviewed_entry(record, verdict))
        return record

    def reject(self, candidate: ToolCandidate, verdict: CreationVerdict, agent: str, session: str) -> None:
        """Record that a candidate did not become a tool."""
        self.view.append_entry(make_rejected_entry(candidate, verdict, agent, session))

    def write_unreviewed(self, candidate: ToolCandidate, agent: str, session: str) -> ToolRecord:
        """Write a tool from elsewhere, which nobody has reviewed here."""
        record = replace(_make_record(candidate, agent, session, self.now), status="unreviewed")
        self._check_room(make_summary(record))
        self.view.save(record)
        return record

    def end_session(self, session: str, agent: str | None) -> int:
        """Remove the tools of a session; what was demoted stays, or its source could come back unnoticed."""
        records = self.view.find(ToolFilter(tier="session", session=session, agent=agent))
        ended = [record for record in records if record.status != "demoted"]
        for record in ended:
            self._remove(record, "the session ended", None)
        return len(ended)

    def remove(self, tool_id: str, reason: str, by: str | None) -> None:
        """Remove a tool, whatever it is."""
        self._remove(self.find(tool_id), reason, by)

    def _remove(self, record: ToolRecord, reason: str, by: str | None) -> None:
        if record.status == "active":
            self.view.append_entry(make_demoted_entry(record, "removed", reason, by))
        self.view.delete(record.id)

    # ---------------------------------------------------------------- changes and uses

    def update(self, tool_id: str, candidate: ToolCandidate, session: str | None) -> ToolRecord:
        """Write what a tool was changed to; it has no tier and no review, and does not run.

        Raises ``ToolRefused`` for a tool that is demoted, or finds no room.
        """
        before = self.find(tool_id)
        if before.status == "demoted":
            raise ToolRefused(f"the tool {tool_id} is demoted; a review can reinstate it as it is", because="demoted")
        # Python takes 1 for true, and a digest does not.
        if candidate == before.tool.candidate and tool_digest(candidate) == before.digest:
            return before
        tool = replace(
            before.tool,
            candidate=candidate,
            tier="session",
            session=session if session is not None else before.tool.session,
            usage=ToolUsage(),
        )
        # The cool-down stays: else a space more in the source would bring the panel back at once.
        after = replace(before, tool=tool, status="unreviewed", approved_by=None, claim=None)
        self._check_room(make_summary(after))
        if before.status == "active":
            self.view.append_entry(make_demoted_entry(before, "unreviewed", "it was changed", None))
        self.view.save(after)
        return after

    def demote(self, tool_id: str, reason: str, by: str) -> ToolRecord:
        """Take a tool out of use; nothing can stand in the way of that."""
        before = self.find(tool_id)
        if before.status == "demoted":
            return before
        tool = replace(before.tool, tier="session")
        after = replace(before, tool=tool, status="demoted", reason=reason, approved_by=None, claim=None)
        self.view.append_entry(make_demoted_entry(before, "demoted", reason, by))
        self.view.save(after)
        return after

    def record_use(self, tool_id: str, digest: str | None, *, success: bool, ms: float, output: Any) -> ToolRecord:
        """Count one use of the tool as it is now.

        Raises ``ToolRefused`` where it may not be used, or was changed meanwhile.
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
        """Claim a tool that is not in use, so that nobody else has it reviewed meanwhile.

        Raises ``ToolRefused`` for a demoted one without a person's name, and where it would find no room.
        """
        record = self.find(tool_id)
        if record.status == "active":
            detail = f"the tool {tool_id} is in use, by a review of what it is"
            return Outcome(record=record, obstacle=Obstacle(because="already", detail=detail))
        if record.status == "demoted" and by is None:
            # A program that reinstates what a person took out of use would make demotion cosmetic.
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
        """Write the verdict, and put the tool into use where it was approved."""
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
        """Give a claim back without a verdict."""
        record = self.view.load(tool_id)
        if record is not None and record.claim is not None and record.claim.token == claim.token:
            self.view.save_standing(replace(record, claim=None))

    # ---------------------------------------------------------------- within

    def find(self, tool_id: str) -> ToolRecord:
        """Return the tool of this id; raises ``ToolRefused`` where there is none."""
        # What no store can look for is no tool's id.
        findable = isinstance(tool_id, str) and tool_id.isprintable() and len(tool_id) <= LONGEST_ID
        record = self.view.load(tool_id) if findable else None
        if record is None:
            raise ToolRefused(
                f"there is no tool {show(tool_id)}; `adjudge tools list` shows those there are", because="unknown"
            )
        return record

    def _check_room(self, summary: ToolSummary) -> None:
        obstacle = find_room_obstacle(summary, self.view.list_neighbours(summary), self.limits, self.now)
        if obstacle is not None:
            raise obstacle.make_error()

    def claim(self, record: ToolRecord, claim: Claim) -> Outcome:
        """Claim a tool for a review, unless somebody else has."""
        obstacle = find_claim_obstacle(record, self.now)
        if obstacle is not None:
            return Outcome(record=record, obstacle=obstacle)
        record = replace(record, claim=claim)
        self.view.save_standing(record)
        return Outcome(record=record)

    def load_reviewed(self, reviewed: ToolRecord, verdict: ToolReviewVerdict) -> ToolRecord | Outcome:
        """Load the tool if it still is what was reviewed; else record the verdict all the same, as one without effect.

        Then the outcome is returned, which says why.
        """
        tool_id = reviewed.id
        current = self.view.load(tool_id)
        # All of it and not the digest alone: whoever changed whose tool it is must not have that recorded here.
        is_unchanged = current is not None and _get_identity(current) == _get_identity(reviewed)
        if current is not None and is_unchanged and reviewed.digest == verdict.tool_digest:
            return current
        because: Because = "changed" if current is not None else "removed"
        if current is not None and current.status == "demoted":
            because = "demoted"
        self.view.append_entry(make_lost_entry(tool_id, verdict, because))
        detail = f"the tool {tool_id} was {because} while it was reviewed"
        return Outcome(record=current, obstacle=Obstacle(because=because, detail=detail))


def make_claim(now: datetime, seconds: float) -> Claim:
    """Make a claim that ends by itself."""
    return Claim(token=make_id(), until=now + timedelta(seconds=seconds))


def _make_record(candidate: ToolCandidate, agent: str, session: str, now: datetime) -> ToolRecord:
    tool = EmergentTool(id=f"tool-{make_id()}", candidate=candidate, agent=agent, session=session, usage=ToolUsage())
    return ToolRecord(tool=tool, registered_at=now)


def add_verdict(record: ToolRecord, verdict: ToolReviewVerdict) -> ToolRecord:
    """Add a verdict to those on a tool."""
    return replace(record, tool=replace(record.tool, verdicts=(*record.tool.verdicts, verdict)))


def _reinstate(record: ToolRecord, session: str | None) -> ToolRecord:
    tool = record.tool if session is None else replace(record.tool, session=session)
    return replace(record, tool=tool, status="active", reason="")


def _get_identity(record: ToolRecord) -> tuple[Any, ...]:
    tool = record.tool
    return tool.candidate, tool.digest, tool.agent, tool.session, tool.tier, record.status


def _has_claim_of(record: ToolRecord, reviewed: ToolRecord) -> bool:
    claim, reviewed_claim = record.claim, reviewed.claim
    return claim is not None and reviewed_claim is not None and claim.token == reviewed_claim.token


def drop_claim(record: ToolRecord, reviewed: ToolRecord) -> ToolRecord:
    """End the claim of a review, unless it is another review's by now."""
    return replace(record, claim=None) if _has_claim_of(record, reviewed) else record


def find_rejection(verdict: ToolReviewVerdict) -> Obstacle | None:
    """Find out whether the reviewers stand in the way."""
    return None if verdict.approved else Obstacle(because="rejected", detail=f"rejected: {verdict.reasoning}")


def find_expired_claim(record: ToolRecord, reviewed: ToolRecord) -> Obstacle | None:
    """Find out whether a review took longer than its claim."""
    if _has_claim_of(record, reviewed):
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
    """Make the result of ``review`` from an outcome."""
    obstacle = outcome.obstacle
    if obstacle is not None or outcome.record is None:
        because, detail = (obstacle.because, obstacle.detail) if obstacle is not None else ("removed", "it was removed")
        return ForgeResult(verdict=verdict, refused=because, detail=detail)
    return ForgeResult(tool=outcome.record.tool, verdict=verdict)


async def ask_creation(judge: ToolJudge, candidate: ToolCandidate, seconds: float) -> CreationVerdict:
    """Ask for the verdict on a candidate, which is claimed for so many seconds; a late verdict is a rejection.

    Raises ``UsageError`` for what is no verdict on this candidate.
    """
    try:
        verdict = await Timeout(seconds * REVIEW_SHARE).run(judge.review_creation(candidate), name="review_creation")
    except TimeoutError:
        return reject_creation(describe_late(seconds), tool_digest(candidate))
    if not isinstance(verdict, CreationVerdict) or verdict.tool_digest != tool_digest(candidate):
        raise UsageError(f"review_creation returns a CreationVerdict on what it was given, got {show(verdict)}")
    return verdict


def describe_late(seconds: float) -> str:
    """Explain why a review that never answered is a rejection."""
    return f"rejected, since the review took longer than {seconds * REVIEW_SHARE:g} seconds"
