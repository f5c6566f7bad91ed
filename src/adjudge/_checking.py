"""One check of a gate, from content to recorded decision."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from adjudge._decision import Answer, Decision, EventKind, GateEvent, choose_step
from adjudge._evaluate import Evaluates, since
from adjudge._foreign import call_safely, logger, notify
from adjudge._tasks import is_for_us
from adjudge.content import content_text, digest_text
from adjudge.errors import AdjudgeError, UsageError
from adjudge.result import JudgeResult, RuleResult, make_id
from adjudge.rules import Rule

if TYPE_CHECKING:
    from adjudge._asking import Asking
    from adjudge.gate import Gate


class Check:
    """One check under way: what was asked and since when. It lives as long as the call."""

    __slots__ = ("content", "data", "gate", "metadata", "started", "subject")

    def __init__(self, gate: Gate, data: Mapping[str, object], metadata: dict[str, Any]) -> None:
        self.gate = gate
        self.data = {name: value for name, value in data.items() if value is not None}
        self.metadata = metadata
        self.started = time.perf_counter()
        self.subject: str | None = None
        self.content: object = None

    async def run(self, content: object) -> Decision:
        """Rules, then the judge, then the policy, then perhaps a person; recorded."""
        gate = self.gate
        try:
            self.subject = digest_text(content_text(content))
            for name, value in self.data.items():
                content_text(value, what=name)
        except BaseException as error:  # an object of anybody's may raise anything when it is opened
            if is_for_us(error):
                raise
            return await self._conclude(self._give_up(error), readable=False)
        self.content = content
        ran = [await rule.check(content, self.data.get("reference")) for rule in gate.rules]
        result = self._settle(ran)
        if result is not None:
            return await self._conclude(result)
        if not gate.takes(self.subject):
            said = f"not sampled (sample={gate.sample:g})"
            return await self._record(self._make("policy", allowed=True, detail=said, sampled=False))
        result, readable = await self._judge(content, ran)
        return await self._conclude(result, readable=readable)

    async def refuse(self, why: str) -> Decision:
        """The decision about what could not be read."""
        if self.gate.mode == "observe":
            decision = self._make("policy", allowed=True, detail=f"observed: {why}", would_allow=False)
        else:
            decision = self._make("policy", detail=why, would_allow=False)
        return await self._record(decision)

    async def resume(self, pending: Decision) -> Decision:
        """The decision in place of a pending one, once the person has answered."""
        self.subject = pending.subject
        return await self._record(await self._hear(pending))

    # ------------------------------------------------------------ judging

    def _settle(self, ran: Sequence[RuleResult]) -> JudgeResult | None:
        """The result when rules settle the matter: one that decides failed, or there is nobody else to ask."""
        broken = [f"rule {item.name!r} failed: {item.message}" for item in ran if _decides(item)]
        if not broken and self.gate.judge is not None:
            return None
        return JudgeResult(
            outcome="failed" if broken else "passed",
            judge="rules",
            decided_by="rule",
            detail="; ".join(broken) or "no error rule failed",
            rule_results=tuple(ran),
            attempts=0,
            subject=self.subject,
            metadata=self.metadata,
        )

    async def _judge(self, content: object, ran: Sequence[RuleResult]) -> tuple[JudgeResult, bool]:
        """What the judge says, and whether the content could be put to it at all."""
        gate = self.gate
        how: Any = dict(self.data)
        rules = [_repeat(item) for item in ran]
        if gate.redact is not None:
            given = {"content": content, **self.data}
            for name, value in given.items():
                said, error = await call_safely(gate.redact, value)
                if error is not None or said is None:
                    # Its type alone: what a redaction raises is likely to quote what it should have hidden.
                    kind = type(error).__name__ if error is not None else "None"
                    return self._give_up(
                        AdjudgeError(f"the redaction of the {name} gave {kind}; nothing was sent")
                    ), False
                how[name] = said
            content = how.pop("content")
            # Warnings quote what they found, so what the judge is shown of them comes from the redacted content.
            rules = [
                own if item.severity == "warning" else _repeat(item) for own, item in zip(gate.rules, ran, strict=True)
            ]
        how |= {"rules": rules, "metadata": self.metadata}
        result, error = await call_safely(self._put, content, how)
        if error is not None:
            return self._give_up(error), False
        settled = result.rule_results[len(ran) :]
        return replace(result, subject=self.subject, rule_results=(*ran, *settled)), True

    async def _put(self, content: object, how: Asking) -> JudgeResult:
        """The judge's result; a gate that can open, or ask, has every seat heard that might object."""
        judge, rubric = self.gate.judge, self.gate.rubric
        if type(judge).evaluate is not Evaluates.evaluate:  # a class of somebody's own, which evaluates in its own way
            return await judge.evaluate(content, rubric, **how)
        opens = not self.gate.policy.blocks_all
        wants = {"wants_objections": opens, "wants_reasons": True}
        return await judge._evaluate(content, rubric, how, **wants)  # noqa: SLF001 - evaluate, and what a gate wants

    def _give_up(self, error: BaseException) -> JudgeResult:
        """The result when nobody could be asked."""
        ours = isinstance(error, AdjudgeError)
        if not ours:
            logger.debug("gate %r could not put the content to its judge", self.gate.name, exc_info=error)
        return JudgeResult(
            outcome="undecided",
            undecided_because="error",
            decided_by="policy",
            judge=self.gate.judge.name if self.gate.judge is not None else "rules",
            detail=str(error) if ours else f"{type(error).__name__} was raised while the content was read or judged",
            attempts=0,
            subject=self.subject,
            metadata=self.metadata,
        )

    # ------------------------------------------------------------ deciding

    async def _conclude(self, result: JudgeResult, *, readable: bool = True) -> Decision:
        await notify(self.gate.on_result, result, what="on_result")
        await self._tell("judged", detail=result.outcome)
        return await self._record(await self._decide(result, readable=readable))

    async def _decide(self, result: JudgeResult, *, readable: bool) -> Decision:
        gate = self.gate
        step, by = choose_step(result, gate.policy, readable=readable)
        if step == "allow":
            detail = "on_undecided='allow'" if not result.passed else ""
            return self._make(by, allowed=True, result=result, detail=detail, would_allow=True)
        if gate.mode == "observe":
            detail = f"observed: enforce would {step}"
            return self._make("policy", allowed=True, result=result, detail=detail, would_allow=False)
        blocked = self._make(by, result=result, would_allow=False)
        return blocked if step == "block" else await self._ask(blocked, result)

    async def _ask(self, blocked: Decision, result: JudgeResult) -> Decision:
        gate = self.gate
        if gate.approvals is None:  # a gate with "ask" has them; without this line a mistake elsewhere would raise
            return replace(blocked, detail="nobody can be asked")
        if self.subject is None:
            # Without a digest an approval is bound to nothing, and could be used for anything else that has none.
            return replace(blocked, detail="nobody was asked: what cannot be read cannot be told from anything else")
        message = f"gate {gate.name!r} held this back: {result.explain()}"
        said, error = await call_safely(gate.approvals.request, blocked, message, **await self._show(), **gate.ask)
        if error is not None or not isinstance(said, str) or not said:
            return replace(blocked, detail=self._report(error, "nobody could be asked"))
        await self._tell("asked", detail=said)
        pending = replace(blocked, pending=True, approval_id=said, detail="a person was asked")
        return await self._hear(pending) if gate.wait or await self._is_answered(said) else pending

    async def _is_answered(self, approval: str) -> bool:
        """Whether a request has an end already: a judge that was asked first may have approved it."""
        ask = getattr(self.gate.approvals, "is_open", None)
        said, _ = await call_safely(ask, approval) if ask is not None else (None, None)
        return said is False

    async def _show(self) -> dict[str, Any]:
        """The content for whoever is asked, where the gate shows it: redacted, since it leaves the gate."""
        if not self.gate.show_content or self.content is None:
            return {}
        if self.gate.redact is None:
            return {"content": self.content}
        said, error = await call_safely(self.gate.redact, self.content)
        return {} if error is not None or said is None else {"content": said}

    async def _hear(self, pending: Decision) -> Decision:
        """The decision once somebody has answered; anything but a plain yes about this content blocks."""
        assert self.gate.approvals is not None  # noqa: S101 - for the type checker; _ask and resume have looked
        said, error = await call_safely(self.gate.approvals.wait, pending.approval_id)
        new: dict[str, Any] = {"pending": False, "id": make_id(), "created_at": datetime.now(UTC)}
        answer = _read_answer(said) if error is None else None
        if answer is None:
            return replace(pending, **new, detail=self._report(error, "the approval could not be read"))
        if answer.subject is not None and answer.subject != pending.subject:
            # Else whoever keeps pending decisions could open one with the approval of something harmless.
            return replace(pending, **new, detail="the approval is about something else")
        if answer.gate is not None and answer.gate != self.gate.name:
            # Else those whom a laxer gate asks about the same content would decide for a stricter one.
            return replace(pending, **new, detail="the approval was asked for elsewhere than at this gate")
        word = "approved" if answer.approved else "denied"
        await self._tell("answered", detail=word)
        detail = f"{word} by {answer.by}" if answer.by else f"{word} by policy"
        by = "policy" if not answer.by else "judge" if answer.judged is not None else "human"
        new |= {"allowed": answer.approved, "decided_by": by, "answer": answer.judged}
        return replace(pending, **new, detail=f"{detail}: {answer.reason}" if answer.reason else detail)

    # ------------------------------------------------------------ recording

    async def _record(self, decision: Decision) -> Decision:
        """The decision with its place in the ledger; one that cannot be recorded does not let anything through."""
        gate = self.gate
        decision = replace(decision, duration_ms=since(self.started))
        if gate.ledger is not None:
            seq, error = await call_safely(
                gate.ledger.append, decision, kind="decision", subject=decision.subject, gate=gate.name
            )
            if error is not None or isinstance(seq, bool) or not isinstance(seq, int):
                decision = await self._lose(decision, self._report(error, "not recorded"))
            else:
                decision = replace(decision, ledger_seq=seq)
        logger.info(
            "gate %r %s by %s, decision %s",
            gate.name,
            "allowed" if decision.allowed else "pending" if decision.pending else "blocked",
            decision.decided_by,
            decision.id,
        )
        await self._tell("decided", decision=decision)
        return decision

    async def _lose(self, decision: Decision, why: str) -> Decision:
        logger.error("gate %r: decision %s was %s", self.gate.name, decision.id, why)
        await self._tell("unrecorded", detail=why)
        said = f"{why}; {decision.detail}" if decision.detail else why
        allowed = self.gate.mode == "observe"
        return replace(decision, allowed=allowed, pending=False, decided_by="policy", would_allow=False, detail=said)

    def _report(self, error: BaseException | None, what: str) -> str:
        """What went wrong, without its text: a database's error quotes what it was given."""
        if error is None:
            return f"{what}: the answer is of the wrong type"
        logger.debug("gate %r: %s", self.gate.name, what, exc_info=error)
        return f"{what}: {error}" if isinstance(error, UsageError) else f"{what}: {type(error).__name__}"

    async def _tell(self, kind: EventKind, *, detail: str = "", decision: Decision | None = None) -> None:
        if self.gate.on_event is not None:
            event = GateEvent(kind=kind, gate=self.gate.name, subject=self.subject, detail=detail, decision=decision)
            await notify(self.gate.on_event, event, what="on_event")

    def _make(self, by: Any, **more: Any) -> Decision:
        more.setdefault("allowed", False)
        return Decision(
            gate=self.gate.name,
            decided_by=by,
            mode=self.gate.mode,
            config=self.gate.config,
            subject=self.subject,
            metadata=self.metadata,
            **more,
        )


def _decides(item: RuleResult) -> bool:
    return not item.passed and item.severity == "error"


def _repeat(known: RuleResult) -> Rule:
    """A rule that has been evaluated already, for the question: no check runs twice."""

    def repeat(_content: object) -> RuleResult:
        return known

    return Rule(name=known.name, evaluate=repeat, severity=known.severity)


def _read_answer(said: object) -> Answer | None:
    """What was answered, if it is plain: exactly a boolean, a name or nobody, and a reason; a judge's yes is a pass."""
    if not isinstance(said, tuple | list) or not 3 <= len(said) <= len(Answer._fields):
        return None
    answer = Answer(*said)
    texts = (answer.by, answer.reason, answer.subject, answer.gate)
    if not isinstance(answer.approved, bool) or not all(text is None or isinstance(text, str) for text in texts):
        return None
    judged = answer.judged
    if judged is None:
        return answer
    # A judge decides nothing but a pass of its own, under its name: a result in anybody else's answer is a mistake.
    passed = isinstance(judged, JudgeResult) and judged.passed and judged.decided_by == "judge"
    return answer if passed and answer.approved and answer.by else None
