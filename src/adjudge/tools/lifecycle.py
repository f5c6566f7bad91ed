"""What happens to a tool within one transaction; the same for every store.

A step that raises has changed nothing. So what was paid for and must be recorded even where it has no effect (a
verdict on a tool that changed meanwhile) is returned as an outcome, and not raised.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Protocol

from adjudge.concurrency import Timeout
from adjudge.errors import ToolRefused, UsageError
from adjudge.formats.text import show
from adjudge.result import make_id
from adjudge.tools.promotion import (
    Because,
    Obstacle,
    PromotionLimits,
    find_claim,
    find_promotion_obstacle,
    find_room_obstacle,
    find_use_obstacle,
    make_raised_summary,
)
from adjudge.tools.record import Claim, Cooldown, ToolRecord, ToolSummary, make_summary
from adjudge.tools.store import (
    ToolFilter,
    View,
    make_demoted_entry,
    make_lost_entry,
    make_promoted_entry,
    make_rejected_entry,
    make_reviewed_entry,
)
from adjudge.tools.tool import MISSING, EmergentTool, ToolCandidate, ToolTier, ToolUsage, tool_digest
from adjudge.tools.verdict import CreationVerdict, PromotionVerdict, ReviewVerdict, ToolVerdict

LONGEST_ID = 200
"""Characters; ours have fewer."""

PASSING: tuple[Because, ...] = ("already", "usage", "cool_down", "busy")
"""What waiting, or using the tool more, can change: an outcome, while everything else is for somebody to mend."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a review: the record as it now is, and what stood in the way."""

    record: ToolRecord | None
    obstacle: Obstacle | None = None


@dataclass(frozen=True, slots=True)
class ToolTransaction:
    """One transaction under way; ``now`` is read inside it, after everybody else who writes was waited for."""

    view: View
    limits: PromotionLimits
    now: datetime

    # ---------------------------------------------------------------- coming and going

    def check_room(self, candidate: ToolCandidate, agent: str, session: str) -> None:
        """Raise where a new tool would find no place; nothing is written."""
        self._check_room(make_summary(_make(candidate, agent, session, self.now)))

    def register(self, candidate: ToolCandidate, verdict: CreationVerdict, agent: str, session: str) -> ToolRecord:
        """Write a tool that was approved, and its verdict."""
        record = _add(_make(candidate, agent, session, self.now), verdict)
        self._check_room(make_summary(record))
        self.view.save(record)
        self.view.append_entry(make_reviewed_entry(record, verdict))
        return record

    def reject(self, candidate: ToolCandidate, verdict: CreationVerdict, agent: str, session: str) -> None:
        """Record that a candidate did not become a tool."""
        self.view.append_entry(make_rejected_entry(candidate, verdict, agent, session))

    def write_unreviewed(self, candidate: ToolCandidate, agent: str, session: str) -> ToolRecord:
        """Write a tool from elsewhere, which nobody has reviewed here."""
        record = replace(_make(candidate, agent, session, self.now), status="unreviewed")
        self._check_room(make_summary(record))
        self.view.save(record)
        return record

    def end_session(self, session: str, agent: str | None) -> int:
        """Remove the tools of a session; what was demoted stays, or its source could come back unnoticed."""
        found = self.view.find(ToolFilter(tier="session", session=session, agent=agent))
        ended = [item for item in found if item.status != "demoted"]
        for record in ended:
            self._remove(record, "the session ended", None)
        return len(ended)

    def remove(self, ident: str, reason: str, by: str | None) -> None:
        """Remove a tool, whatever it is."""
        self._remove(self.find(ident), reason, by)

    def _remove(self, record: ToolRecord, reason: str, by: str | None) -> None:
        if record.status == "active":
            self.view.append_entry(make_demoted_entry(record, "removed", reason, by))
        self.view.delete(record.id)

    # ---------------------------------------------------------------- changes and uses

    def update(self, ident: str, candidate: ToolCandidate, session: str | None) -> ToolRecord:
        """Write what a tool was changed to; it has no tier and no review, and does not run."""
        before = self.find(ident)
        if before.status == "demoted":
            raise ToolRefused(f"the tool {ident} is demoted; review() can reinstate it as it is", because="demoted")
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

    def demote(self, ident: str, reason: str, by: str) -> ToolRecord:
        """Take a tool out of use; nothing can stand in the way of that."""
        before = self.find(ident)
        if before.status == "demoted":
            return before
        tool = replace(before.tool, tier="session")
        after = replace(before, tool=tool, status="demoted", reason=reason, approved_by=None, claim=None)
        self.view.append_entry(make_demoted_entry(before, "demoted", reason, by))
        self.view.save(after)
        return after

    def record_use(self, ident: str, digest: str | None, *, success: bool, ms: float, output: Any) -> ToolRecord:
        """Count one use of exactly what the tool is now; one that does not run has none."""
        record = self.find(ident)
        own = record.tool
        obstacle = find_use_obstacle(record, agent=own.agent, session=own.session)
        if obstacle is not None:
            raise obstacle.make_error()
        if digest is not None and digest != record.digest:
            raise ToolRefused(f"the tool {ident} was changed while it ran; its use is not counted", because="changed")
        usage = own.usage if own.usage is not None else ToolUsage()
        kept = output if success else MISSING
        usage = usage.add(success=success, duration_ms=ms, at=self.now, output=kept)
        cooling = replace(record.cooling, uses=record.cooling.uses + 1)
        record = replace(record, tool=replace(own, usage=usage), cooling=cooling)
        self.view.save_standing(record)
        return record

    # ---------------------------------------------------------------- reviews

    def begin_review(self, ident: str, by: str | None, session: str | None, claim: Claim) -> Outcome:
        """Claim a tool that is not in use, so that nobody else has it reviewed meanwhile."""
        record = self.find(ident)
        if record.status == "active":
            detail = f"the tool {ident} is in use, by a review of what it is"
            return Outcome(record=record, obstacle=Obstacle(because="already", detail=detail))
        if record.status == "demoted" and by is None:
            # A program that reinstates what a person took out of use would make demotion cosmetic.
            raise ToolRefused(f"the tool {ident} is demoted; who reinstates it is named with by=", because="demoted")
        self._check_room(make_summary(_reinstate(record, session)))
        return self._claim(record, claim)

    def end_review(
        self, reviewed: ToolRecord, verdict: CreationVerdict, by: str | None, session: str | None
    ) -> Outcome:
        """Write what was said, and put the tool into use where it was approved."""
        record, lost = self._find_reviewed(reviewed, verdict)
        if record is None:
            return lost
        after = _add(_free(record, reviewed), verdict)
        obstacle = _find_rejection(verdict) or _find_lost_claim(record, reviewed)
        if obstacle is None:
            raised = _reinstate(after, session)
            obstacle = find_room_obstacle(
                make_summary(raised), self.view.list_near(make_summary(raised)), self.limits, self.now
            )
            after = raised if obstacle is None else after
        self.view.save(after)
        self.view.append_entry(make_reviewed_entry(after, verdict, by=by))
        return Outcome(record=after, obstacle=obstacle)

    def begin_rise(self, ident: str, to: ToolTier, approved_by: str | None, claim: Claim) -> Outcome:
        """Claim a tool that may be put before the panel now."""
        record = self.find(ident)
        near = self.view.list_near(make_raised_summary(record, to))
        obstacle = find_promotion_obstacle(
            record, to, approved_by=approved_by, near=near, limits=self.limits, now=self.now
        )
        if obstacle is None:
            return self._claim(record, claim)
        if obstacle.because in PASSING:
            return Outcome(record=record, obstacle=obstacle)
        raise obstacle.make_error()

    def end_rise(
        self, reviewed: ToolRecord, to: ToolTier, approved_by: str | None, verdict: PromotionVerdict
    ) -> Outcome:
        """Write what the panel said; the verdict, its entry and the new tier are one, or nothing of them is."""
        record, lost = self._find_reviewed(reviewed, verdict)
        if record is None:
            return lost
        after = _add(_free(record, reviewed), verdict)
        obstacle = _find_rejection(verdict)
        if obstacle is not None:
            cooling = Cooldown(refusals=record.cooling.refusals + 1, since=self.now)
            after = replace(after, cooling=cooling)
        obstacle = obstacle or _find_lost_claim(record, reviewed) or self._find_late(after, to, approved_by)
        if obstacle is not None:
            self.view.save(after)
            self.view.append_entry(make_reviewed_entry(after, verdict))
            return Outcome(record=after, obstacle=obstacle)
        shared_by = approved_by if to == "shared" else None
        after = replace(after, tool=replace(after.tool, tier=to), approved_by=shared_by, cooling=Cooldown())
        self.view.save(after)
        self.view.append_entry(make_promoted_entry(after, verdict))
        return Outcome(record=after)

    def release(self, ident: str, claim: Claim) -> None:
        """Give a claim back without a verdict."""
        record = self.view.load(ident)
        if record is not None and record.claim is not None and record.claim.token == claim.token:
            self.view.save_standing(replace(record, claim=None))

    # ---------------------------------------------------------------- within

    def find(self, ident: str) -> ToolRecord:
        """The tool of this id; raises where there is none."""
        # What no store can look for is no tool's id.
        findable = isinstance(ident, str) and ident.isprintable() and len(ident) <= LONGEST_ID
        record = self.view.load(ident) if findable else None
        if record is None:
            raise ToolRefused(f"there is no tool {show(ident)}; list() shows those there are", because="unknown")
        return record

    def _check_room(self, card: ToolSummary) -> None:
        obstacle = find_room_obstacle(card, self.view.list_near(card), self.limits, self.now)
        if obstacle is not None:
            raise obstacle.make_error()

    def _claim(self, record: ToolRecord, claim: Claim) -> Outcome:
        obstacle = find_claim(record, self.now)
        if obstacle is not None:
            return Outcome(record=record, obstacle=obstacle)
        record = replace(record, claim=claim)
        self.view.save_standing(record)
        return Outcome(record=record)

    def _find_reviewed(self, reviewed: ToolRecord, verdict: ToolVerdict) -> tuple[ToolRecord | None, Outcome]:
        """The tool, if it still is what was reviewed; else the outcome, with the verdict recorded all the same."""
        ident = reviewed.id
        record = self.view.load(ident)
        # All of it and not the digest alone: whoever changed whose tool it is must not have that recorded here.
        if record is not None and _identify(record) == _identify(reviewed) and reviewed.digest == verdict.tool_digest:
            return record, Outcome(record=record)
        because: Because = "changed" if record is not None else "removed"
        if record is not None and record.status == "demoted":
            because = "demoted"
        self.view.append_entry(make_lost_entry(ident, verdict, because))
        detail = f"the tool {ident} was {because} while it was reviewed"
        return None, Outcome(record=record, obstacle=Obstacle(because=because, detail=detail))

    def _find_late(self, record: ToolRecord, to: ToolTier, approved_by: str | None) -> Obstacle | None:
        """What has come to stand in the way while the panel was asked."""
        near = self.view.list_near(make_raised_summary(record, to))
        unlimited = replace(self.limits, min_uses=0, min_success_rate=0.0)
        rested = replace(record, cooling=Cooldown(), claim=None)
        return find_promotion_obstacle(rested, to, approved_by=approved_by, near=near, limits=unlimited, now=self.now)


def make_claim(now: datetime, seconds: float) -> Claim:
    """A claim that ends by itself."""
    return Claim(token=make_id(), until=now + timedelta(seconds=seconds))


def _make(candidate: ToolCandidate, agent: str, session: str, now: datetime) -> ToolRecord:
    tool = EmergentTool(id=f"tool-{make_id()}", candidate=candidate, agent=agent, session=session, usage=ToolUsage())
    return ToolRecord(tool=tool, registered_at=now)


def _add(record: ToolRecord, verdict: ToolVerdict) -> ToolRecord:
    return replace(record, tool=replace(record.tool, verdicts=(*record.tool.verdicts, verdict)))


def _reinstate(record: ToolRecord, session: str | None) -> ToolRecord:
    tool = record.tool if session is None else replace(record.tool, session=session)
    return replace(record, tool=tool, status="active", reason="")


def _identify(record: ToolRecord) -> tuple[Any, ...]:
    tool = record.tool
    return tool.candidate, tool.digest, tool.agent, tool.session, tool.tier, record.status


def _has_claim_of(record: ToolRecord, reviewed: ToolRecord) -> bool:
    own, other = record.claim, reviewed.claim
    return own is not None and other is not None and own.token == other.token


def _free(record: ToolRecord, reviewed: ToolRecord) -> ToolRecord:
    return replace(record, claim=None) if _has_claim_of(record, reviewed) else record


def _find_rejection(verdict: ToolVerdict) -> Obstacle | None:
    return None if verdict.approved else Obstacle(because="rejected", detail=f"rejected: {verdict.reasoning}")


def _find_lost_claim(record: ToolRecord, reviewed: ToolRecord) -> Obstacle | None:
    if _has_claim_of(record, reviewed):
        return None
    return Obstacle(because="busy", detail=f"the review of {record.id} took so long that it counts no more")


_IN_TIME = 0.9
"""The share of its claim that a review may take, so that it ends before anybody else may begin one."""


class ToolJudge(Protocol):
    """A reviewer of tools: an ``EmergentJudge``, or an object with the same two methods."""

    async def review_creation(self, candidate: ToolCandidate) -> CreationVerdict:
        """Whether a candidate may become a tool."""

    async def review_promotion(self, tool: EmergentTool) -> PromotionVerdict:
        """Whether a tool may rise one tier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgeResult:
    """The result of ``forge`` or ``review``; true exactly when the candidate is now a tool that may run."""

    tool: EmergentTool | None = None
    verdict: CreationVerdict | None = None
    """The verdict of the review; ``None`` if nobody was asked."""
    refused: str | None = None
    """Why there is no tool, in a word: ``sandbox``, ``empty``, ``untested``, ``rejected``, ``session_cap``, ``name``
    and so on; ``None`` where there is one."""
    detail: str = ""
    """The same in a sentence; it may quote the candidate."""

    def __bool__(self) -> bool:
        return self.tool is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Promotion:
    """The result of ``promote``; true exactly when the tool was promoted."""

    promoted: bool
    record: ToolRecord | None
    """The tool in its current state; ``None`` if it was removed meanwhile."""
    verdict: PromotionVerdict | None = None
    """The panel's verdict; ``None`` if nobody was asked."""
    because: str | None = None
    """Why it was not promoted, in a word: ``usage``, ``cool_down``, ``busy``, ``already``, ``rejected``,
    ``changed``...
    """
    detail: str = ""
    """The same in a sentence; it may quote what the reviewers said."""

    def __bool__(self) -> bool:
        return self.promoted


def make_promotion(outcome: Outcome, verdict: PromotionVerdict | None) -> Promotion:
    """What a caller is told of a promotion."""
    found = outcome.obstacle
    return Promotion(
        promoted=found is None and verdict is not None,
        record=outcome.record,
        verdict=verdict,
        because=found.because if found is not None else None,
        detail=found.detail if found is not None else "",
    )


def make_result(outcome: Outcome, verdict: CreationVerdict | None) -> ForgeResult:
    """What a caller is told of a review."""
    found = outcome.obstacle
    if found is not None or outcome.record is None:
        because, detail = (found.because, found.detail) if found is not None else ("removed", "it was removed")
        return ForgeResult(verdict=verdict, refused=because, detail=detail)
    return ForgeResult(tool=outcome.record.tool, verdict=verdict)


async def ask_creation(judge: ToolJudge, candidate: ToolCandidate, seconds: float) -> CreationVerdict:
    """The verdict on a candidate; late, it is a rejection."""
    try:
        verdict = await Timeout(seconds * _IN_TIME).run(judge.review_creation(candidate), what="review_creation")
    except TimeoutError:
        return CreationVerdict(
            approved=False,
            confidence=0.0,
            safety=0.0,
            correctness=0.0,
            determinism=0.0,
            bounded=0.0,
            reasoning=_describe_late(seconds),
            tool_digest=tool_digest(candidate),
        )
    if not isinstance(verdict, CreationVerdict) or verdict.tool_digest != tool_digest(candidate):
        raise UsageError(f"review_creation returns a CreationVerdict on what it was given, got {show(verdict)}")
    return verdict


async def ask_promotion(judge: ToolJudge, tool: EmergentTool, seconds: float) -> PromotionVerdict:
    """The panel's verdict on a tool; late, it is a rejection."""
    try:
        verdict = await Timeout(seconds * _IN_TIME).run(judge.review_promotion(tool), what="review_promotion")
    except TimeoutError:
        said = ReviewVerdict(approved=False, confidence=0.0, reasoning=_describe_late(seconds))
        return PromotionVerdict(approved=False, confidence=0.0, safety=said, correctness=said, tool_digest=tool.digest)
    if not isinstance(verdict, PromotionVerdict) or verdict.tool_digest != tool.digest:
        raise UsageError(f"review_promotion returns a PromotionVerdict on what it was given, got {show(verdict)}")
    return verdict


def _describe_late(seconds: float) -> str:
    return f"rejected, since the review took longer than {seconds * _IN_TIME:g} seconds"
