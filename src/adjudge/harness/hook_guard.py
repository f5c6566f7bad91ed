"""``HookGuard``: asks a tool guard about each event of a coding agent (harness), and makes the answer to the event.

``guards/tool_guard/guard.py`` (``ToolGuard``) decides if a call may be made, ``guards/tool_guard/tool_patterns.py``
which gate checks a tool, and ``answers.py`` writes the answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from adjudge.formats.text import quote
from adjudge.guards.tool_guard.call import ToolCall, ToolVerdict
from adjudge.guards.tool_guard.guard import ToolGuard
from adjudge.guards.tool_guard.screens import CallScreen, Screened
from adjudge.harness.answers import NO_OPINION, Opinion, answer_call, block, warn_user, withhold
from adjudge.harness.events import (
    SOURCE,
    AnswerEvent,
    CallEvent,
    Harness,
    HookEvent,
    PromptEvent,
    RanEvent,
    StartEvent,
)
from adjudge.harness.media import holds_media

if TYPE_CHECKING:
    from adjudge.guards.approval.approvals import Approvals

PendingAnswer = Literal["deny", "defer"]

_SENT_BACK_ONCE = "adjudge: the answer did not pass a check again; it was sent back once and is given now"

OBSERVES = "adjudge only observes this session: what it would refuse is recorded, and made all the same"

_UNCHECKED = "adjudge: a call was made that was not checked as it was made; further calls of this session are refused"


class KnownSources:
    """A screen that refuses calls of an MCP server whose source is another than the configured one.

    A project can define a server with the name of one of the user's.
    """

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._sources = dict(sources)

    async def screen_call(self, call: ToolCall, _arguments: Mapping[str, Any], /) -> Screened:
        """Refuse a call of a server with a configured source if the harness names another source, or none."""
        expected = None if call.server is None else self._sources.get(call.server)
        source = call.remarks.get(SOURCE)
        if expected is None or source == expected:
            return Screened(allowed=True)
        detail = (
            f"the server {quote(call.server or '', 60)} comes from {quote(str(source), 60)} and not from {expected}"
        )
        return Screened(allowed=False, decided_by="rule", detail=detail)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallGuard:
    """A guard that may only observe."""

    guard: ToolGuard
    approvals: Approvals | None = None
    """Approvals whose webhook gets ``call.unchecked``; ``None`` sends nothing."""
    observes: bool = False
    """True to record calls and let them through, except those that ``enforced`` refuses."""
    enforced: Sequence[CallScreen] = field(default=())

    async def lets_through(self, *calls: ToolCall | None) -> bool:
        """Return whether calls that were not allowed may be made all the same, because the guard only observes."""
        if not self.observes:
            return False
        for call in calls:
            if call is None or not isinstance(call.arguments, Mapping):
                continue  # no screen can read it, and a guard that observes refuses only what a screen refuses
            for screen in self.enforced:
                if not (await screen.screen_call(call, call.arguments)).allowed:
                    return False
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class HookGuard(CallGuard):
    """A guard as the hook of one harness."""

    harness: Harness
    pending: PendingAnswer = "deny"
    managed: bool = False
    """True if no hook counts but those of managed settings, so that nothing can change a call after it was checked."""
    waits: float = 0.0
    """Seconds that the answer to a call waits for people."""

    async def answer(self, event: HookEvent) -> dict[str, Any]:
        """Return the answer to an event. Raises ``AdjudgeError`` where it could not be checked or recorded."""
        if isinstance(event, CallEvent):
            return await self._answer_call(event)
        if isinstance(event, RanEvent):
            return await self._answer_ran(event)
        if isinstance(event, StartEvent):
            return warn_user(OBSERVES) if self.observes else NO_OPINION
        if isinstance(event, PromptEvent):
            return self._answer_text(await self.guard.check_prompt(event.prompt, run_id=event.run_id))
        return self._answer_text(await self.guard.check_answer(event.answer, run_id=event.run_id), event)

    async def record_refusal(self, event: HookEvent, *, reason: str) -> None:
        """Record that a call, a prompt or an answer is refused without having been judged. Raises ``LedgerError``."""
        if isinstance(event, CallEvent):
            await self.guard.record_refusal(event.call, reason=reason)
        elif isinstance(event, PromptEvent | AnswerEvent):
            part = "prompt" if isinstance(event, PromptEvent) else "answer"
            await self.guard.record_refusal(ToolCall(f"({part})", {}, "", event.run_id), reason=reason)

    async def _answer_call(self, event: CallEvent) -> dict[str, Any]:
        """Return the answer to a call that is about to be made.

        An allowed call gets no opinion, so that the harness can still ask its user. It gets ``allow`` only if a person
        approved it and ``managed`` ensures that nothing changes it afterwards.
        """
        verdict = await self._check_call(event)
        if not verdict and not await self.lets_through(event.call, event.patch):
            opinion: Opinion = self.pending if verdict.kind == "pending" else "deny"
            return answer_call(self.harness, opinion, verdict.message)
        # Recorded before the answer: a call that is made without a record that it passed makes its run untrusted.
        await self.guard.record_pass(event.call, verdict)
        is_approved = verdict.decision is not None and verdict and verdict.decision.decided_by == "human"
        if is_approved and self.managed:
            return answer_call(self.harness, "allow", "a person approved this call")
        return NO_OPINION

    async def _check_call(self, event: CallEvent) -> ToolVerdict:
        """Check a call, and the patch in it; both have to be allowed."""
        if event.patch is None:
            return await self.guard.wait(event.call, seconds=self.waits)
        # People may have to decide on both. An approval is good for one call, so while one of the two still waits, the
        # approval of the other must not be used up: the one that waits is checked first.
        is_patch_waiting = await self.guard.is_waiting(event.patch)
        is_call_waiting = await self.guard.is_waiting(event.call)
        first, second = (event.call, event.patch) if is_call_waiting else (event.patch, event.call)
        first_verdict = await self.guard.check(first)
        if first_verdict.kind == "refuse" or (not first_verdict and (is_call_waiting or is_patch_waiting)):
            return first_verdict
        second_verdict = await self.guard.check(second)
        return second_verdict if first_verdict or second_verdict.kind == "refuse" else first_verdict

    async def _answer_ran(self, event: RanEvent) -> dict[str, Any]:
        """Record that a call was made, and return the answer: its result withheld, a warning, or no opinion.

        A result that the agent may not read and that cannot be withheld is recorded as exposed.
        """
        must_withhold = not await self._may_be_read(event) and not self.observes
        withheld = withhold(self.harness, event) if must_withhold else None
        is_exposed = must_withhold and withheld is None
        is_checked = await self.guard.record_run(event.call, failed=event.failed, exposed=is_exposed)
        if self.approvals is not None and (is_exposed or not is_checked):
            # A person may have to act at once: the call has been made, and the run's further calls are refused.
            self.approvals.announce_unchecked_call(event.call.run_id, event.call.call_id)
        if withheld is not None:
            return withheld
        if is_checked and not must_withhold:
            return NO_OPINION
        return warn_user(_UNCHECKED) if self.harness == "claude" else NO_OPINION

    async def _may_be_read(self, event: RanEvent) -> bool:
        """Return whether the agent may read a tool's result; if results are judged, not one that no judge can read."""
        # No judge sees a picture. Without this, a gate of results would pass the base64, and the agent see the picture.
        is_unreadable = event.left_out or holds_media(event.response)
        if is_unreadable and self.guard.results is not None:
            return False
        return event.left_out or bool(await self.guard.check_result(event.call, event.response))

    def _answer_text(self, verdict: ToolVerdict, event: AnswerEvent | None = None) -> dict[str, Any]:
        """Answer the event of a prompt, or of an agent's answer (``event``), by the guard's verdict on the text."""
        if verdict or self.observes:
            return NO_OPINION
        # An answer is sent back only once in a turn, because Codex sets no limit and the agent might never end.
        return warn_user(_SENT_BACK_ONCE) if event is not None and event.is_second else block(verdict.message)
