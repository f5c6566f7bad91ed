"""Rules, then a judge, then perhaps a person: may this go through?

A gate holds configuration only; whatever is about one content is in the ``Decision``. What goes wrong on the way
(a judge that is down, content that cannot be read, a redaction that raises, a ledger that does not take the entry)
blocks, unless somebody asked by name to let it through, and then the decision says ``decided_by="policy"``.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard, TypeVar, get_args

from adjudge.concurrency import is_for_us
from adjudge.content import check_extent, content_text, copy_plain, digest_text, has_changed
from adjudge.errors import AdjudgeError, UsageError
from adjudge.formats.arguments import check_choice, check_flag, check_functions, check_share
from adjudge.formats.plain import to_plain
from adjudge.formats.text import show
from adjudge.guards.approval_digest import DATA, describe_terms, digest_request, find_other, make_basis
from adjudge.guards.decision import (
    ApprovalAnswer,
    Asker,
    Decision,
    EventKind,
    GateEvent,
    Mode,
    OnFailed,
    OnTampering,
    OnUndecided,
    Recorder,
    block,
    renew,
)
from adjudge.guards.decorator import Checks, make_guard
from adjudge.guards.gate_policy import Policy, choose_step, was_failed_by_rule
from adjudge.guards.http_request import HttpRequest
from adjudge.hooks import call_safely, logger, notify
from adjudge.judges.chain import JudgeChain
from adjudge.judges.evaluate import Evaluates, JudgeLike, RubricSource, explain_broken, since
from adjudge.judges.judge import Judge, ModelSource
from adjudge.judges.open import as_judge
from adjudge.result import JudgeResult, RuleResult
from adjudge.rubric.file import load_rubric
from adjudge.rubric.rubric import Rubric
from adjudge.rules.rule import Rule
from adjudge.rules.ruleset import AnyRule
from adjudge.rules.shipped import as_rule
from adjudge.sync import run_sync

if TYPE_CHECKING:
    from adjudge.guards.approval.approval import Status
    from adjudge.judges.evaluate import EvaluateArguments


class Check:
    """One check under way: what was asked and since when. It lives as long as the call."""

    __slots__ = ("content", "data", "digests", "gate", "metadata", "request", "started", "subject")

    def __init__(
        self, gate: Gate, data: Mapping[str, object], metadata: dict[str, Any], request: HttpRequest | None
    ) -> None:
        self.gate = gate
        self.request = request
        # Copies, like the content: what is judged, what an approval is bound to and what is recorded are one thing,
        # whatever somebody else does to a list meanwhile.
        self.data = {name: copy_plain(value) for name, value in data.items() if value is not None}
        self.digests: dict[str, str] = {}
        self.metadata = metadata
        self.started = time.perf_counter()
        self.subject: str | None = None
        self.content: object = None

    async def run(self, content: object) -> Decision:
        """Rules, then the judge, then the policy, then perhaps a person; recorded."""
        gate = self.gate
        content = copy_plain(content)
        try:
            self.subject = digest_text(content_text(content))
            self.digests = {name: digest_text(content_text(value, what=name)) for name, value in self.data.items()}
        except BaseException as error:  # an object of anybody's may raise anything when it is opened
            if is_for_us(error):
                raise
            return await self._conclude(self._make_undecided(error), readable=False)
        self.content = content
        reference = self.data.get("reference")
        # Each is handed a copy of its own: a rule that changes what it is given changes nothing for the next.
        ran = [await rule.check(copy_plain(content), copy_plain(reference)) for rule in read_parts(gate).rules]
        result, readable = self._settle(ran), True
        sampled = result is not None or gate.takes(self.subject)
        if result is None and sampled:
            result, readable = await self._judge(copy_plain(content), ran)
        opens = result is None or choose_step(result, gate.policy, readable=readable)[0] == "allow"
        if opens and self._has_changed():
            # An object of somebody's own cannot be copied, and may have been judged in another state than it is in.
            result, readable = self._make_undecided(AdjudgeError(_CHANGED)), False
        if result is None:
            said = f"not sampled (sample={gate.sample:g})"
            return await self._record(self._make("policy", allowed=True, detail=said, sampled=False))
        return await self._conclude(result, readable=readable)

    async def refuse(self, why: str) -> Decision:
        """The decision about what could not be read."""
        if self.gate.mode == "observe":
            decision = self._make("policy", allowed=True, detail=f"observed: {why}", would_allow=False)
        else:
            decision = self._make("policy", detail=why, would_allow=False)
        return await self._record(decision)

    async def resume(self, pending: Decision, given: Mapping[str, object]) -> Decision:
        """The decision in place of a pending one, once the person has answered; ``given`` is to be what was held."""
        self.subject = pending.subject
        # Before anybody is waited for: what they say could open nothing.
        other = find_other(pending, given)
        doubt = f"the {other} is not what was held back; {_AGAIN}" if other else self._find_doubt(pending)
        return await self._record(block(pending, doubt) if doubt else await self._apply_answer(pending))

    async def withdraw(self, decision: Decision, why: str) -> Decision:
        """The decision in place of one that allowed what is not the same any more."""
        self.subject = decision.subject
        blocked = replace(block(decision, why), would_allow=False, ledger_seq=None)
        if self.gate.mode == "observe":
            blocked = replace(blocked, allowed=True, detail=f"observed: {why}")
        return await self._record(blocked)

    def _has_changed(self) -> bool:
        given = {"content": (self.content, self.subject)}
        given |= {name: (value, self.digests[name]) for name, value in self.data.items()}
        return any(has_changed(known, partial(content_text, value)) for value, known in given.values())

    # ------------------------------------------------------------ judging

    def _settle(self, ran: Sequence[RuleResult]) -> JudgeResult | None:
        """The result when rules settle the matter: one that decides failed, or there is nobody else to ask."""
        broken = explain_broken(ran)
        if not broken and read_parts(self.gate).judge is not None:
            return None
        return JudgeResult(
            outcome="failed" if broken else "passed",
            judge="rules",
            decided_by="rule",
            detail=broken or "no error rule failed",
            rule_results=tuple(ran),
            attempts=0,
            subject=self.subject,
            metadata=self.metadata,
        )

    async def _judge(self, content: object, ran: Sequence[RuleResult]) -> tuple[JudgeResult, bool]:
        """What the judge says, and whether the content could be put to it at all."""
        gate = self.gate
        how: dict[str, Any] = {name: copy_plain(value) for name, value in self.data.items()}
        rules = [_repeat(item) for item in ran]
        if gate.redact is not None:
            given = {"content": content, **how}
            for name, value in given.items():
                said, error = await call_safely(gate.redact, value)
                if error is not None or said is None:
                    # Its type alone: what a redaction raises is likely to quote what it should have hidden.
                    kind = type(error).__name__ if error is not None else "None"
                    return self._make_undecided(
                        AdjudgeError(f"the redaction of the {name} gave {kind}; nothing was sent")
                    ), False
                how[name] = said
            content = how.pop("content")
            # Warnings quote what they found, so what the judge is shown of them comes from the redacted content.
            rules = [
                own if item.severity == "warning" else _repeat(item)
                for own, item in zip(read_parts(gate).rules, ran, strict=True)
            ]
        how |= {"rules": rules, "metadata": self.metadata}
        result, error = await call_safely(self._ask_judge, content, how)
        if error is not None:
            return self._make_undecided(error), False
        settled = result.rule_results[len(ran) :]
        return replace(result, subject=self.subject, rule_results=(*ran, *settled)), True

    async def _ask_judge(self, content: object, how: EvaluateArguments) -> JudgeResult:
        """The judge's result; a gate that can open, or ask, has every seat heard that might object."""
        made: Any = self.gate.judge  # there is one, or rules alone would have settled it
        judge: Judge | JudgeChain = made
        rubric = read_parts(self.gate).rubric
        if type(judge).evaluate is not Evaluates.evaluate:  # a class of somebody's own, which evaluates in its own way
            return await judge.evaluate(content, rubric, **how)
        opens = not self.gate.policy.blocks_all
        wants = {"wants_objections": opens, "wants_reasons": True}
        return await judge._evaluate(content, rubric, how, **wants)  # noqa: SLF001 - evaluate, and what a gate wants

    def _make_undecided(self, error: BaseException) -> JudgeResult:
        """The result when nobody could be asked."""
        ours = isinstance(error, AdjudgeError)
        if not ours:
            logger.debug("gate %r could not put the content to its judge", self.gate.name, exc_info=error)
        return JudgeResult(
            outcome="undecided",
            undecided_because="error",
            decided_by="policy",
            judge=judge.name if (judge := read_parts(self.gate).judge) is not None else "rules",
            detail=str(error) if ours else f"{type(error).__name__} was raised while the content was read or judged",
            attempts=0,
            subject=self.subject,
            metadata=self.metadata,
        )

    # ------------------------------------------------------------ deciding

    async def _conclude(self, result: JudgeResult, *, readable: bool = True) -> Decision:
        await notify(self.gate.on_result, result, what="on_result")
        await self._notify("judged", detail=result.outcome)
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
            return replace(blocked, detail="nobody was asked: content that cannot be read cannot be told apart")
        message = f"gate {gate.name!r} held this back: {result.explain()}"
        ask, shown = dict(gate.ask), await self._show()
        basis = self._make_basis(self.digests)
        basis |= {} if self.request is None else {"http": self.request.describe(gate.name)}
        detail = f"{_ASKED}: on_rule='ask'" if was_failed_by_rule(result) else _ASKED
        # Plain, as it will be read back: an object that says something else later would make another request of it.
        blocked = replace(blocked, metadata=to_plain(blocked.metadata), basis=basis, detail=detail)
        try:
            blocked = replace(blocked, request=self._digest(blocked))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - metadata of somebody's own may be anything
            return replace(blocked, detail=self._report(error, "nobody could be asked"))
        said, error = await call_safely(gate.approvals.request, blocked, message, **shown, **ask)
        if error is not None or not isinstance(said, str) or not said:
            return replace(blocked, detail=self._report(error, "nobody could be asked"))
        await self._notify("asked", detail=said)
        pending = replace(blocked, pending=True, approval_id=said)
        return await self._apply_answer(pending) if gate.wait or await self._is_answered(said) else pending

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
            return {"content": copy_plain(self.content)}
        said, error = await call_safely(self.gate.redact, copy_plain(self.content))
        return {} if error is not None or said is None else {"content": said}

    async def _apply_answer(self, pending: Decision) -> Decision:
        """The decision once somebody has answered; anything but a plain yes about this content blocks."""
        assert self.gate.approvals is not None  # noqa: S101 - for the type checker; _ask and resume have looked
        said, error = await call_safely(self.gate.approvals.wait, pending.approval_id)
        answer = _read_answer(said) if error is None else None
        if answer is None:
            return block(pending, self._report(error, "the approval could not be read"))
        # Once more, since people take hours: who is asked may have been changed in the meantime.
        doubt = _doubt_answer(answer, pending, self.gate.name) or self._find_doubt(pending)
        if doubt is not None:
            return block(pending, doubt)
        word = "approved" if answer.approved else "denied"
        await self._notify("answered", detail=word)
        detail = f"{word} by {answer.by}" if answer.by else f"{word} by policy"
        by = "policy" if not answer.by else "judge" if answer.judged is not None else "human"
        new = renew() | {"allowed": answer.approved, "decided_by": by, "answer": answer.judged}
        return replace(pending, **new, detail=f"{detail}: {answer.reason}" if answer.reason else detail)

    # ------------------------------------------------------------ what an approval is bound to

    def _find_doubt(self, pending: Decision) -> str | None:
        """Why no approval of this can open the gate: it was asked for under something else than the gate has now."""
        if pending.request is None:
            return f"the decision that waits has no request digest, as those of older versions have none; {_AGAIN}"
        given = {name: pending.basis.get(name) for name in DATA}
        own = self._make_basis({name: said for name, said in given.items() if isinstance(said, str)})
        own |= {name: pending.basis[name] for name in ("http",) if name in pending.basis}
        try:
            same = self._digest(replace(pending, basis=own)) == pending.request
        except (Exception, SystemExit) as error:  # noqa: BLE001 - what was read back may hold anything
            return self._report(error, "the request could not be compared")
        if same:
            return None
        changed = [name for name in ("rubric", "rules", "policy") if pending.basis.get(name) != own[name]]
        what = f"other {' and '.join(changed)}" if changed else "other terms, or about something else"
        return f"people were asked under {what} than this gate has now; {_AGAIN}"

    def _make_basis(self, data: Mapping[str, str]) -> dict[str, Any]:
        gate, parts = self.gate, read_parts(self.gate)
        own = parts.judge._own_rubric() if parts.judge is not None else None  # noqa: SLF001 - as the gate itself asks
        policy = {item.name: getattr(gate.policy, item.name) for item in fields(gate.policy)}
        if policy["on_rule"] == policy["on_failed"]:
            del policy["on_rule"]  # a default that is written down is the same gate, and so is an earlier version's
        return make_basis(data, parts.rubric if parts.rubric is not None else own, parts.rules, policy)

    def _digest(self, decision: Decision) -> str:
        return digest_request(
            gate=self.gate.name,
            subject=decision.subject,
            basis=decision.basis,
            metadata=decision.metadata,
            terms=describe_terms(self.gate.ask),
        )

    # ------------------------------------------------------------ recording

    async def _record(self, decision: Decision) -> Decision:
        """The decision with its place in the ledger; one that cannot be recorded does not let anything through."""
        gate = self.gate
        decision = replace(decision, duration_ms=since(self.started))
        decision = await (self._use(decision) if self._uses(decision) else self._append(decision))
        logger.info(
            "gate %r %s by %s, decision %s",
            gate.name,
            "allowed" if decision.allowed else "pending" if decision.pending else "blocked",
            decision.decided_by,
            decision.id,
        )
        await self._notify("decided", decision=decision)
        return decision

    def _uses(self, decision: Decision) -> bool:
        """Whether recording this decision uses an approval."""
        return decision.allowed and decision.approval_id is not None and hasattr(self.gate.approvals, "use")

    async def _use(self, decision: Decision) -> Decision:
        """Record the decision and mark its approval as used, in one transaction."""
        approvals: Any = self.gate.approvals
        seq, error = await call_safely(approvals.use, decision)
        if error is not None:
            return await self._lose(decision, self._report(error, "not recorded"))
        if not _is_place(seq):
            logger.warning("gate %r: approval %s was to be used again", self.gate.name, decision.approval_id)
            return await self._append(block(decision, _USED))
        decision = replace(decision, ledger_seq=seq)
        own = getattr(self.gate.ledger, "ledger", self.gate.ledger)  # one that records for a command holds a ledger
        # It is recorded already, unless the gate has another ledger than its approvals.
        return decision if own is None or own is getattr(approvals, "ledger", None) else await self._append(decision)

    async def _append(self, decision: Decision) -> Decision:
        gate = self.gate
        if gate.ledger is not None:
            seq, error = await call_safely(
                gate.ledger.append, decision, kind="decision", subject=decision.subject, gate=gate.name
            )
            if error is not None:
                decision = await self._lose(decision, self._report(error, "not recorded"))
            elif not _is_place(seq):
                # 0, -1 and None are how stores say that they kept nothing.
                found = "a number below 1" if type(seq) is int else type(seq).__name__
                said = f"not recorded: the ledger answered {found}, and a place in it is a whole number from 1"
                decision = await self._lose(decision, said)
            else:
                decision = replace(decision, ledger_seq=seq)
        return decision

    async def _lose(self, decision: Decision, why: str) -> Decision:
        logger.error("gate %r: decision %s was %s", self.gate.name, decision.id, why)
        await self._notify("unrecorded", detail=why)
        said = f"{why}; {decision.detail}" if decision.detail else why
        allowed = self.gate.mode == "observe"
        return replace(decision, allowed=allowed, pending=False, decided_by="policy", would_allow=False, detail=said)

    def _report(self, error: BaseException | None, what: str) -> str:
        """What went wrong, without its text: a database's error quotes what it was given."""
        if error is None:
            return f"{what}: the answer is of the wrong type"
        logger.debug("gate %r: %s", self.gate.name, what, exc_info=error)
        return f"{what}: {error}" if isinstance(error, UsageError) else f"{what}: {type(error).__name__}"

    async def _notify(self, kind: EventKind, *, detail: str = "", decision: Decision | None = None) -> None:
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


def _repeat(known: RuleResult) -> Rule:
    """A rule that has been evaluated already, for the question: no check runs twice."""

    def repeat(_content: object) -> RuleResult:
        return known

    return Rule(name=known.name, evaluate=repeat, severity=known.severity)


_CHANGED = "the content, or what it is judged with, was changed while it was judged"

_ASKED = "a person was asked"

_USED = "the approval was used before, and can be used once"

_AGAIN = "put the content through the gate again"

_MOST_MEMBERS = 8
"""Of an answer: the six of the tuple, and the digest of the request and the result's id, where a plain one has them."""


def _is_place(seq: object) -> TypeGuard[int]:
    """Whether a ledger has said where it keeps something."""
    return isinstance(seq, int) and not isinstance(seq, bool) and seq >= 1


def _doubt_answer(answer: ApprovalAnswer, pending: Decision, gate: str) -> str | None:
    """Why an answer is not about what waits; what the asker does not know (``None``) is taken on trust."""
    if answer.subject is not None and answer.subject != pending.subject:
        # Else whoever keeps pending decisions could open one with the approval of something harmless.
        return "the approval is about something else"
    if answer.gate is not None and answer.gate != gate:
        # Else those whom a laxer gate asks about the same content would decide for a stricter one.
        return "the approval was asked for elsewhere than at this gate"
    if answer.request == "":
        return f"the approval has no request digest, as those of older versions have none; {_AGAIN}"
    if answer.request is not None and answer.request != pending.request:
        # Else a yes for one task, or by the people of other terms, would open the same content for another.
        return "the approval is about another request: another task, context, reference, metadata, or other terms"
    if answer.result_id is not None and (pending.result is None or answer.result_id != pending.result.id):
        # Else what was denied, and asked again, could go on with the yes of the other time.
        return "the approval is about another judgement of the same content"
    return None


def _read_answer(said: object) -> ApprovalAnswer | None:
    """What was answered, if it is plain: exactly a boolean, a name or nobody, and a reason; a judge's yes is a pass."""
    if not isinstance(said, tuple | list) or not 3 <= len(said) <= _MOST_MEMBERS:
        return None
    if not all(isinstance(item, str) for item in said[len(ApprovalAnswer._fields) :]):
        return None
    answer = said if isinstance(said, ApprovalAnswer) else ApprovalAnswer(*said)
    texts = (answer.by, answer.reason, answer.subject, answer.gate, answer.request, answer.result_id)
    if not isinstance(answer.approved, bool) or not all(text is None or isinstance(text, str) for text in texts):
        return None
    judged = answer.judged
    if judged is None:
        return answer
    # A judge decides nothing but a pass of its own, under its name: a result in anybody else's answer is a mistake.
    passed = isinstance(judged, JudgeResult) and judged.passed and judged.decided_by == "judge"
    return answer if passed and answer.approved and answer.by else None


F = TypeVar("F", bound=Callable[..., Any])

_ASKS = ("request", "wait")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Gate:
    """Decide whether some content may go through: by rules first, then a judge, then perhaps a person.

    ``await gate.check(content)`` returns a ``Decision``, which is true only if the content may go through. Undecided
    content is blocked unless an option says otherwise. Raises ``UsageError`` for an unknown value of an option, an
    ``"ask"`` without ``approvals``, and a gate that has nothing to check.
    """

    name: str = field(kw_only=False)
    rubric: RubricSource | None = field(default=None, kw_only=False)
    """A ``Rubric``, a path or a shipped name; ``None`` for the judge's own rubric, or a gate of rules alone."""
    judge: JudgeLike | ModelSource | None = field(default=None, kw_only=False)
    """A judge, a chain, an object with ``ask``, or anything that ``Judge`` takes as its model. ``None`` for a gate of
    rules alone, and for a rubric whose criteria are all rules."""
    rules: Sequence[AnyRule] = ()
    """Checked first, on the content before ``redact``. A failed ``error`` rule decides before a model is asked; a
    failed ``warning`` is shown to the judge."""
    on_failed: OnFailed = "block"
    """What to do with content that the judge failed, and, without ``on_rule``, with content that a rule failed:
    ``block``, or ``ask`` a person."""
    on_rule: OnFailed | None = None
    """What to do when a failed ``error`` rule decided; ``None`` means the same as ``on_failed``."""
    on_undecided: OnUndecided = "block"
    """What to do with undecided content: ``block``, ``ask`` a person, or ``allow`` it, by policy, if no judge
    objected."""
    on_tampering: OnTampering = "block"
    mode: Mode = "enforce"
    """``enforce``, or ``observe``: decide and record, ask no person, and let everything through."""
    sample: float = 1.0
    """The share of contents that the judge is asked about, in 0 to 1. Rules check all of them. The rest is let
    through, by policy. One gate always treats the same content alike, and its author cannot know how."""
    seed: str | None = None
    """Fixes which contents are sampled, for a repeatable experiment; by default a secret of this process does. Anyone
    who knows the seed can write content that is not judged."""
    approvals: Asker | None = None
    ask: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of every approval request, such as ``approvers`` and ``expires_in``."""
    show_content: bool = False
    """Give the content, after ``redact``, to the approvals, which store it: for people to read, and for a judge that
    answers first. By default they get only the digest."""
    wait: bool = True
    """Wait for the person. ``False`` returns a pending decision for ``resume``, unless a judge that was asked first
    has approved."""
    ledger: Recorder | None = None
    """Records every decision. A decision that cannot be recorded is blocked."""
    redact: Callable[[Any], Any] | None = None
    """A function, sync or async, from content to what may be sent. Applied to content, task, context and
    reference."""
    on_result: Callable[[JudgeResult], Any] | None = None
    """Called with every result; sync or async. What it raises is logged and not raised."""
    on_event: Callable[[GateEvent], Any] | None = None
    """Called with every event; sync or async. What it raises is logged and not raised."""
    config: str | None = None
    """Digest of the configuration file this gate was read from; copied to every decision."""
    policy: Policy = field(init=False)
    _secret: bytes = field(init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip() or not self.name.isprintable():
            raise UsageError(f"a gate's name must be a printable text that is not empty, got {self.name!r}")
        set_field = object.__setattr__
        if isinstance(self.rules, str | Mapping):
            raise UsageError(f"gate {self.name!r}: rules must be a list of rules, got {type(self.rules).__name__}")
        set_field(self, "rules", tuple(as_rule(item) for item in self.rules))
        set_field(self, "rubric", load_rubric(self.rubric) if self.rubric is not None else None)
        set_field(self, "judge", _make_judge(self))
        set_field(
            self,
            "policy",
            Policy(
                on_failed=self.on_failed,
                on_undecided=self.on_undecided,
                on_tampering=self.on_tampering,
                on_rule=self.on_rule,
            ),
        )
        set_field(self, "_secret", secrets.token_bytes(32) if self.seed is None else str(self.seed).encode())
        _check_options(self)

    async def check(
        self,
        content: object,
        *,
        task: object = None,
        context: object = None,
        reference: object = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Decision:
        """Decide whether some content may go through.

        The judge is shown ``task``, ``context`` and ``reference`` as data. ``metadata`` is copied to the result and the
        decision and never sent. Content that cannot be read, or is too long, is blocked. Raises ``UsageError`` for
        metadata that is not a mapping, and never because of the content.
        """
        return await self._start({"task": task, "context": context, "reference": reference}, metadata).run(content)

    def check_sync(
        self,
        content: object,
        *,
        task: object = None,
        context: object = None,
        reference: object = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Decision:
        """``check`` without an event loop. It also works inside a running loop, and blocks it."""
        return run_sync(self.check(content, task=task, context=context, reference=reference, metadata=metadata))

    async def refuse(self, why: str, *, metadata: Mapping[str, Any] | None = None) -> Decision:
        """Block and record something that cannot be read; ``mode="observe"`` lets it through."""
        return await self._start({}, metadata).refuse(why)

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

        ``decision`` is a pending decision, or the id of its approval; with an id, the decision is read from where
        ``Approvals`` store it. Pass the ``content`` (and ``task``, ``context``, ``reference``) that you are about to
        use: if it is not what was held back, the decision is blocked and the approval is not used. Raises
        ``UsageError`` when this gate has no such pending decision, and ``LedgerError`` when the ledger does not confirm
        the stored one.
        """
        waits = await self._find_pending(decision) if isinstance(decision, str) else decision
        if not waits.pending or waits.approval_id is None or self.approvals is None:
            raise UsageError(f"only a pending decision can be resumed; this one is {waits.explain()}")
        if waits.gate != self.name:
            raise UsageError(f"a decision of gate {waits.gate!r} cannot be resumed by gate {self.name!r}")
        given = {"content": content, "task": task, "context": context, "reference": reference}
        given = {name: value for name, value in given.items() if value is not ...}
        return await self._start({}, waits.metadata).resume(waits, given)

    async def pending(self, *, status: Status | None = "open") -> tuple[Decision, ...]:
        """This gate's pending decisions that have not been resumed, oldest first.

        ``status`` is that of the approval: ``open`` (people have still to decide), ``approved``, ``denied``, or
        ``None`` for all. Raises ``UsageError`` when the gate's ``approvals`` do not store pending decisions.
        """
        approvals: Any = self.approvals
        if not hasattr(approvals, "list_pending"):
            raise UsageError(f"gate {self.name!r} does not store pending decisions; give approvals=Approvals(...)")
        return tuple([item.decision for item in await approvals.list_pending(gate=self.name, status=status)])

    def guard(self, *, argument: str | None = None) -> Callable[[F], F]:
        """Return a decorator that checks an argument of a function before it runs, or else its return value.

        ``argument`` names the parameter. Without it the function runs first, and its return value is passed on only
        if it may go through. The decorated function, sync or async, raises ``Blocked`` with the decision. Raises
        ``UsageError`` if the function has no such parameter, for an async generator, and, without ``argument``, for a
        generator, because its pieces would be out before the check.
        """
        return make_guard(Checks(name=self.name, check=self.check, withdraw=self._withdraw), argument)

    async def aclose(self) -> None:
        """Close the connections of the judge's models."""
        judge = read_parts(self).judge
        if judge is not None:
            await judge.aclose()

    def takes(self, subject: str) -> bool:
        """Return whether ``sample`` selects the content with this digest for the judge."""
        if self.sample >= 1:
            return True
        # Keyed: with a plain hash, whoever writes the content could try variants until one is not judged.
        drawn = hmac.digest(self._secret, f"{self.name}\n{subject}".encode(), "sha256")
        return int.from_bytes(drawn[:8], "big") < self.sample * 2**64

    def __repr__(self) -> str:
        return f"Gate({self.name!r}, mode={self.mode!r})"

    async def _find_pending(self, ident: str) -> Decision:
        approvals: Any = self.approvals
        if not hasattr(approvals, "pending"):
            raise UsageError(f"gate {self.name!r} does not store pending decisions; give approvals=Approvals(...)")
        found = await approvals.pending(ident)
        if found is None:
            shown = show(ident[:80])
            raise UsageError(f"no pending decision is stored for approval {shown}; {_AGAIN}")
        if found.decision.approval_id != ident:
            shown, other = show(ident[:80]), show(str(found.decision.approval_id)[:80])
            raise UsageError(f"the decision stored for approval {shown} waits for approval {other}; {_AGAIN}")
        return found.decision

    def _start(
        self,
        data: Mapping[str, object],
        metadata: Mapping[str, Any] | None,
        *,
        request: HttpRequest | None = None,
    ) -> Check:
        if metadata is not None and not isinstance(metadata, Mapping):
            raise UsageError(f"metadata must be a mapping, got {type(metadata).__name__}")
        check_extent(metadata, "metadata")
        return Check(self, data, dict(metadata or {}), request)

    async def _withdraw(self, decision: Decision, why: str) -> Decision:
        """The decision in place of one that let something through which is not the same any more: blocked, recorded.

        ``mode="observe"`` lets it through, and records that as well.
        """
        return await self._start({}, decision.metadata).withdraw(decision, why)


class Parts(NamedTuple):
    """What a gate was given to check with, in the types that it has since the gate was made."""

    rules: tuple[Rule, ...]
    rubric: Rubric | None
    judge: Judge | JudgeChain | None


def read_parts(gate: Gate) -> Parts:
    """The rules, rubric and judge of a gate, which its fields say less exactly: they also say what may be given."""
    made: Any = gate
    return Parts(rules=made.rules, rubric=made.rubric, judge=made.judge)


def _refuse_screen_alone(gate: Gate) -> None:
    """Refuse a gate whose only guard is a screen that is a warning: whoever named it would have an open door."""
    rules = read_parts(gate).rules
    screens = any(item.kind == "injection-screen" for item in rules)
    if screens and all(item.severity != "error" for item in rules):
        raise UsageError(
            f"gate {gate.name!r}: injection-screen is a warning and no other rule is an error, so it would let "
            "everything through; give the rule severity: error, or give a judge"
        )


def _make_judge(gate: Gate) -> Judge | JudgeChain | None:
    source: Any = gate.judge
    rubric = read_parts(gate).rubric
    if source is None:
        if rubric is not None and all(item.rule for item in rubric.criteria):
            return Judge("rules")
        if rubric is None and gate.rules:
            _refuse_screen_alone(gate)
            return None
        wants = (
            f"rubric {rubric.name!r} needs a judge; give judge="
            if rubric
            else "there is nothing to check; give rules, or a rubric and a judge"
        )
        raise UsageError(f"gate {gate.name!r}: {wants}")
    made = as_judge(source, keep_name=True)
    if rubric is None and made._own_rubric() is None:  # noqa: SLF001 - asked here, or every single check would say it
        raise UsageError(
            f"gate {gate.name!r}: nothing says what good means; give rubric=, as "
            "{'name': '...', 'criteria': [{'name': '...', 'description': '...'}]}, or the name or path of one"
        )
    if (
        rubric is not None and rubric.model is not None and isinstance(made, JudgeChain)
    ):  # said by every check otherwise, as a blocked content
        raise UsageError(
            f"gate {gate.name!r}: rubric {rubric.name!r} names the model {rubric.model!r}, and the seats of the chain "
            "that judges have models of their own; take the model out of the rubric"
        )
    return made


def _check_options(gate: Gate) -> None:
    where = f"gate {gate.name!r}"
    check_choice("mode", gate.mode, get_args(Mode))
    check_flag("wait", gate.wait)
    check_flag("show_content", gate.show_content)
    check_share(f"{where}: sample", gate.sample)
    if gate.sample < 1 and gate.judge is None:
        raise UsageError(f"{where}: sample spares the judge, and this gate has none; leave it out")
    if gate.policy.asks and gate.approvals is None:
        raise UsageError(f"{where}: 'ask' needs somebody to ask; give approvals=")
    _check_keepers(gate, where)
    _check_ask(gate, where)
    check_functions(where, redact=gate.redact, on_result=gate.on_result, on_event=gate.on_event)


def _check_keepers(gate: Gate, where: str) -> None:
    """An address in place of what it is the address of would block, or raise, only once there is something to keep."""
    if gate.ledger is not None and not callable(getattr(gate.ledger, "append", None)):
        found = type(gate.ledger).__name__
        raise UsageError(f"{where}: ledger must be a Ledger, or have its append, got {found}; open it with Ledger(...)")
    if gate.approvals is not None and not all(callable(getattr(gate.approvals, name, None)) for name in _ASKS):
        found = type(gate.approvals).__name__
        raise UsageError(
            f"{where}: approvals must be Approvals, or have their request and wait, got {found}; "
            "open them with Approvals(...)"
        )


def _check_ask(gate: Gate, where: str) -> None:
    """What the approvals would refuse, said at once: a gate that can ask nobody blocks everything it asks about."""
    if not isinstance(gate.ask, Mapping):
        raise UsageError(f"{where}: ask must be a mapping of arguments, got {type(gate.ask).__name__}")
    check = getattr(gate.approvals, "check_request", None)
    if check is None or not gate.policy.asks:
        return
    try:
        check(has_content=gate.show_content, **gate.ask)
    except (TypeError, UsageError) as error:
        raise UsageError(f"{where}: ask: {error}") from None
