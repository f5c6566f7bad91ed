"""Gates: decide whether content may go through, by rules, then a judge, then perhaps a person.

A gate holds configuration only; everything about one content is in the ``Decision``. If something goes wrong (a judge
is down, content cannot be read, a redaction raises, a ledger refuses the entry), the content is blocked, unless an
option lets it through; then the decision says ``decided_by="policy"``. A gate has no time limit of its own: its judge
has one (``Judge.timeout``), rules and ``redact`` have none.

What a gate does with a result that is no pass is decided in ``gate_policy.py`` (``choose_step``), and whether a
certificate covers a result in ``certificate/qualification.py`` (``qualify``).

Which answer of people opens a pending decision is decided here (``Check.resume``); whose vote counts, in
``approval/votes.py``. Which contents are audited is decided in ``audit.py`` (``Audit.draws``). Rewriting until it
passes is ``judges/improve.py``.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self, TypeGuard, TypeVar, get_args

from adjudge.agents.run import AgentRun
from adjudge.content import check_extent, copy_plain, digest_text, read_content, write_plain
from adjudge.errors import AdjudgeError, Argument, FunctionError, RequestExists, UsageError
from adjudge.formats.arguments import (
    ReadOnly,
    check_choice,
    check_flag,
    check_functions,
    check_label,
    check_share,
    read_options,
)
from adjudge.formats.durations import read_duration
from adjudge.formats.plain_data import to_plain
from adjudge.formats.text import show
from adjudge.guards.approval_digest import CONTEXT, describe_terms, digest_request, find_mismatch, make_basis
from adjudge.guards.audit import Audit, Auditor, read_audit
from adjudge.guards.certificate.demand import (
    CertificateDemand,
    CertificateSource,
    CertificateTerms,
    ReleasePolicySource,
)
from adjudge.guards.certificate.enforcement import Enforcement
from adjudge.guards.certificate.qualification import Bars, Qualification
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
    supersede,
)
from adjudge.guards.decorator import GuardingGate, make_guard
from adjudge.guards.gate_policy import Policy, choose_step, was_failed_by_rule
from adjudge.guards.held_request import HeldRequest, copy_request_description
from adjudge.guards.monitor import Monitor
from adjudge.guards.pending_store import PendingStore
from adjudge.hooks import call_safely, logger, notify
from adjudge.judges.chain import JudgeChain, has_release_policy
from adjudge.judges.evaluate import Evaluates, JudgeLike, RubricSource, explain_failed_rules, measure_ms
from adjudge.judges.judge import Judge, ModelSource
from adjudge.judges.open import as_judge
from adjudge.ledger.judged_content import describe_judged
from adjudge.ledger.payload import check_text
from adjudge.ledger.short_results import PERSON_ASKED
from adjudge.ledger.signature import render_public_key
from adjudge.result import DecidedBy, JudgeResult, RuleResult
from adjudge.rubric.file import load_rubric
from adjudge.rubric.rubric import Rubric
from adjudge.rules.rule import Rule
from adjudge.rules.ruleset import AnyRule
from adjudge.rules.shipped import as_rule
from adjudge.sync import make_sync_method

if TYPE_CHECKING:
    from adjudge.guards.approval.approval import Status
    from adjudge.judges.evaluate import EvaluateArguments
    from adjudge.ledger.signature import PublicKey


class Check:
    """One check of one content by a gate; it lives as long as the call."""

    __slots__ = (
        "asks_always",
        "content",
        "context",
        "digests",
        "gate",
        "metadata",
        "observes",
        "request",
        "started",
        "subject",
    )

    def __init__(
        self,
        gate: Gate,
        context: Mapping[str, object],
        metadata: dict[str, Any],
        request: HeldRequest | None,
        *,
        asks_always: bool = False,
    ) -> None:
        self.gate = gate
        self.asks_always = asks_always
        """True if people are asked about a content that the judge passes too."""
        self.request = request
        self.context = {name: value for name, value in context.items() if value is not None}
        """Task, context and reference; plain data once ``run`` has read them, like the content."""
        self.digests: dict[str, str] = {}
        self.metadata = metadata
        self.observes = gate.mode == "observe"
        """True if it only records what it would decide, and lets everything through."""
        self.started = time.perf_counter()
        self.subject: str | None = None
        self.content: object = None

    async def run(self, content: object) -> Decision:
        """Check by rules, then the judge, then the policy, then perhaps a person, and record the decision."""
        gate = self.gate
        try:
            # Read once: this copy is judged, bound to an approval, shown to people and recorded, so that all of this is
            # about the same content even if the caller changes the object meanwhile.
            content = read_content(content)
            self.subject = digest_text(write_plain(content)[0])
            self.context = {name: read_content(value, label=name) for name, value in self.context.items()}
            texts = {name: write_plain(value, label=name)[0] for name, value in self.context.items()}
            self.digests = {name: digest_text(text) for name, text in texts.items()}
        except Exception as error:  # noqa: BLE001 - content that cannot be read is blocked, whatever is wrong with it
            return await self._conclude(self._make_undecided(error), readable=False)
        self.content = content
        reference = self.context.get("reference")
        # Each rule gets its own copy, so that one that changes the content does not affect the next.
        rule_results = [await rule.check(copy_plain(content), copy_plain(reference)) for rule in gate.rules]
        result, readable = self._decide_by_rules(rule_results), True
        sampled = result is not None or gate.takes(self.subject)
        if result is None and sampled:
            result, readable = await self._judge(copy_plain(content), rule_results)
        if result is None:
            detail = f"not sampled (sample={gate.sample:g})"
            return await self._record(self._make_decision("policy", allowed=True, detail=detail, sampled=False))
        return await self._conclude(result, readable=readable)

    async def plant(self, content: object, auditor: Auditor, planted: Mapping[str, str]) -> None:
        """Ask people about a made-up content as if it had gone through; no judge is asked, and nothing is decided."""
        self.content = read_content(content)
        self.subject = digest_text(write_plain(self.content)[0])
        self.context = {name: read_content(value, label=name) for name, value in self.context.items()}
        judge = self.gate.judge.name if self.gate.judge is not None else "rules"
        result = JudgeResult(outcome="passed", judge=judge, decided_by="policy", attempts=0, subject=self.subject)
        decision = self._make_decision("policy", allowed=True, result=result)
        await auditor.request(decision, self._make_shown_arguments, planted)

    async def refuse(self, reason: str) -> Decision:
        """Make and record the decision about something that could not be read: it blocks, unless the gate observes."""
        await self._set_mode(None, None)
        if self.observes:
            detail = f"{self._observed_detail}: {reason}"
            decision = self._make_decision("policy", allowed=True, detail=detail, would_allow=False)
        else:
            decision = self._make_decision("policy", detail=reason, would_allow=False)
        return await self._record(decision)

    async def resume(
        self, pending: Decision, contents: Mapping[str, object], metadata: Mapping[str, Any] | None
    ) -> Decision:
        """Make and record the decision in place of a pending one, once people have answered.

        ``contents`` are the content, task, context and reference that are about to be used, ``metadata`` what is known
        of them now (``None``: it is not compared). ``Gate.resume`` has found that the decision is pending at this gate,
        and, where it was given an id, that it is the one in the ledger. Of a ``Decision`` that a program passes, 2 and
        4 check that people were asked about this very one. The returned decision allows only after these checks, in
        this order:

        1. The contents and the metadata are those that were held back, since people approved only those
           (``_find_content_mismatch``).
        2. The gate has the rubric, rules, policy and approval terms under which people were asked, since a yes under
           stricter ones must not open a laxer gate (``_find_changed_terms``).
        3. The answer is a plain yes or no, since nothing else may be taken for a yes (``_read_answer``). ``Approvals``
           return one only if the ledger confirms it, since the table beside it can be changed by hand.
        4. The answer is about this content, gate, request and judgement, since people answer many requests
           (``_find_request_mismatch``).
        5. The terms are still the same, since people may take hours to answer (``_find_changed_terms`` again).
        6. The approval is ``approved`` in its table (an approval, once approved, stays approved), and one of an HTTP
           request, or of a tool's call, was not used before: such a request goes through once. Its use is marked in
           one transaction with the ledger's entry (``_use``).
           The decision of a program can be resumed again, after a crash for instance; an ``Asker`` of the program's own
           has no such mark.

        1 and 2 come before the wait, because after them no answer could allow the decision. 3 to 5 are in
        ``_apply_answer``, which also follows when a gate asks and waits at once; 6 is part of recording.
        """
        self.subject = pending.subject
        problem = _find_content_mismatch(pending, contents, metadata) or self._find_changed_terms(pending)
        return await self._record(block(pending, problem) if problem else await self._apply_answer(pending))

    async def withdraw(self, decision: Decision, reason: str) -> Decision:
        """Make and record the decision that blocks an allowed content because it was changed after its approval."""
        self.subject = decision.subject
        return await self._record(replace(block(decision, reason), would_allow=False, ledger_seq=None))

    # ------------------------------------------------------------ judging

    def _decide_by_rules(self, rule_results: Sequence[RuleResult]) -> JudgeResult | None:
        """Return the result if rules decide, since an ``error`` rule failed or the gate has no judge; else ``None``."""
        failed_rules = explain_failed_rules(rule_results)
        if not failed_rules and self.gate.judge is not None:
            return None
        return JudgeResult(
            outcome="failed" if failed_rules else "passed",
            judge="rules",
            decided_by="rule",
            detail=failed_rules or "no error rule failed",
            rule_results=tuple(rule_results),
            attempts=0,
            subject=self.subject,
            metadata=self.metadata,
        )

    async def _judge(self, content: object, rule_results: Sequence[RuleResult]) -> tuple[JudgeResult, bool]:
        """Ask the judge; return its result, and whether the content could be put to it at all."""
        gate = self.gate
        parts: dict[str, Any] = {"content": content}
        parts |= {name: copy_plain(value) for name, value in self.context.items()}
        rules = [_repeat(rule_result) for rule_result in rule_results]
        if gate.redact is not None:
            try:
                parts = await _redact(gate.redact, parts)
            except AdjudgeError as error:
                return self._make_undecided(error), False
            # A warning quotes what it found, and the judge reads warnings. So these rules run again on the redacted
            # content; the others only repeat their results.
            rules = [
                rule if rule_result.severity == "warning" else _repeat(rule_result)
                for rule, rule_result in zip(gate.rules, rule_results, strict=True)
            ]
        shown_content = parts.pop("content")
        arguments = {**parts, "rules": rules, "metadata": self.metadata}
        result, error = await call_safely(self._ask_judge, shown_content, arguments)
        if isinstance(error, FunctionError):
            # A mistake in the program. As an undecided result, on_undecided='allow' could let the content through.
            raise error
        if error is not None:
            return self._make_undecided(error), False
        criterion_results = result.rule_results[len(rule_results) :]
        return replace(result, subject=self.subject, rule_results=(*rule_results, *criterion_results)), True

    async def _ask_judge(self, content: object, arguments: EvaluateArguments) -> JudgeResult:
        """Return the judge's result about a content.

        Unless the gate blocks everything that is no pass, a chain waits for every seat that might object.
        """
        judge, rubric = self.gate.judge, self.gate.rubric
        assert judge is not None  # noqa: S101 - for the type checker; without one, rules alone have decided
        # A class of the program that overrides ``evaluate`` is asked in its own way.
        if type(judge).evaluate is not Evaluates.evaluate:
            return await judge.evaluate(content, rubric, **arguments)
        return await judge._evaluate(  # noqa: SLF001 - evaluate, with a gate's further options
            content,
            rubric,
            arguments,
            wants_objections=not self.gate.policy.blocks_all,
            wants_reasons=True,
            # The digest of the content before redaction, by which caches and recordings are found by content.
            subject=self.subject,
        )

    def _make_undecided(self, error: BaseException) -> JudgeResult:
        """Make the result for a content that could not be read or put to the judge."""
        is_own_error = isinstance(error, AdjudgeError)
        # The text of another error may quote the content, so only its type is kept.
        problem = f"{type(error).__name__} was raised while the content was read or judged"
        if not is_own_error:
            logger.debug("gate %r could not put the content to its judge", self.gate.name, exc_info=error)
        return JudgeResult(
            outcome="undecided",
            undecided_because="error",
            decided_by="policy",
            judge=judge.name if (judge := self.gate.judge) is not None else "rules",
            detail=str(error) if is_own_error else problem,
            attempts=0,
            subject=self.subject,
            metadata=self.metadata,
        )

    # ------------------------------------------------------------ deciding

    async def _conclude(self, result: JudgeResult, *, readable: bool = True) -> Decision:
        """Compare a result with the certificate, decide by it, record the decision, and let the auditor see it."""
        qualification = await self._qualify(result)
        await self._set_mode(result, qualification)
        if qualification is not None:
            result = replace(result, qualification=qualification.kind)
        await notify(self.gate.on_result, result, name="on_result")
        await self._notify("judged", detail=result.outcome)
        decision = await self._record(await self._decide(result, qualification, readable=readable))
        if self.gate.auditor is not None:
            await self.gate.auditor.follow(decision, self._make_shown_arguments)
        return decision

    async def _set_mode(self, result: JudgeResult | None, qualification: Qualification | None) -> None:
        """Set whether a gate that enforces once it is certified observes this result (``observes``)."""
        enforcement = self.gate.enforcement
        if enforcement is None:
            return
        if qualification is None and result is not None and not enforcement.has_begun:
            # A rule decided, so the result was not compared with the certificate yet. If the certificate holds, the
            # gate has to enforce, even if no result of the judge began the enforcement before.
            qualification = await self._compare_certificate(result)
        self.observes = await enforcement.choose_mode(qualification) == "observe"

    @property
    def _observed_detail(self) -> str:
        """The beginning of the detail of a decision that allows a content only because the gate observes."""
        return "observed" if self.gate.enforcement is None else "observed, since no certificate held yet"

    async def _qualify(self, result: JudgeResult) -> Qualification | None:
        """Find whether a certificate covers a result; ``None`` if none is demanded, or a rule failed the content."""
        if self.gate.demand is None or was_failed_by_rule(result):
            return None
        return await self._compare_certificate(result)

    async def _compare_certificate(self, result: JudgeResult) -> Qualification:
        """Compare a result with the certificate that the gate demands."""
        assert self.gate.demand is not None  # noqa: S101 - for the type checker; the callers have looked
        qualification, error = await call_safely(self.gate.demand.qualify, result)
        if not isinstance(qualification, Qualification):
            return Qualification(
                kind="unqualified", reason=self._explain_error(error, "the certificate could not be compared")
            )
        return qualification

    async def _decide(self, result: JudgeResult, qualification: Qualification | None, *, readable: bool) -> Decision:
        """Make the decision that follows from a result: let it through, block it, or ask people."""
        gate = self.gate
        step, decided_by = choose_step(result, gate.policy, readable=readable)
        reason_to_withhold = qualification.withheld if qualification is not None and step == "allow" else None
        if reason_to_withhold is not None:
            return await self._withhold(result, reason_to_withhold)
        if step == "allow" and self.asks_always and not self.observes:
            return await self._ask(self._make_decision("policy", result=result, would_allow=True), result)
        if step == "allow":
            details = ["on_undecided='allow'"] if not result.passed else []
            details += [qualification.reason] if qualification is not None else []
            detail = "; ".join(details)
            return self._make_decision(decided_by, allowed=True, result=result, detail=detail, would_allow=True)
        if self.observes:
            detail = f"{self._observed_detail}: enforce would {step}"
            return self._make_decision("policy", allowed=True, result=result, detail=detail, would_allow=False)
        blocked = self._make_decision(decided_by, result=result, would_allow=False)
        return blocked if step == "block" else await self._ask(blocked, result)

    async def _withhold(self, result: JudgeResult, reason: str) -> Decision:
        """Ask people about a passed content that no certificate, or no release policy, lets the judge decide alone."""
        if self.observes:
            detail = f"{self._observed_detail}: enforce would ask: {reason}"
            return self._make_decision("policy", allowed=True, result=result, detail=detail, would_allow=False)
        return await self._ask(self._make_decision("policy", result=result, would_allow=False), result, because=reason)

    async def _ask(self, blocked: Decision, result: JudgeResult, *, because: str = "") -> Decision:
        """Ask people about content that is held back, and return the pending decision.

        If the gate waits, or the request was answered at once, the decision by the answer is returned instead. If
        anything goes wrong with asking, the content stays blocked.
        """
        gate = self.gate
        if gate.approvals is None:  # a gate with "ask" has them; without this line a mistake elsewhere would raise
            return replace(blocked, detail=_join_clauses("nobody can be asked", because))
        if self.subject is None:
            # Without a digest an approval is bound to no content, and could be used for any other unreadable one.
            return replace(blocked, detail="nobody was asked: content that cannot be read cannot be told apart")
        message = f"gate {gate.name!r} held this back: {_join_clauses(because, result.explain())}"
        shown_arguments = await self._make_shown_arguments()
        basis = self._make_basis(self.digests)
        limits: dict[str, Any] = {}
        if self.request is not None:
            basis[self.request.kind] = self.request.describe(gate.name)
            most_open = self.request.limit_open()
            limits = {"most_open": most_open} if most_open else {}
        detail = _join_clauses(PERSON_ASKED, "on_rule='ask'" if was_failed_by_rule(result) else because)
        # Plain data, as it will be read back: an object that changes later would change the digest of the request.
        blocked = replace(blocked, metadata=to_plain(blocked.metadata), basis=basis, detail=detail)
        try:
            blocked = replace(blocked, request=self._digest_request(blocked))
        except Exception as error:  # noqa: BLE001 - metadata of somebody's own may be anything
            return replace(blocked, detail=_join_clauses(self._explain_error(error, "nobody could be asked"), because))
        approval_id, error = await call_safely(
            gate.approvals.request, blocked, message, **shown_arguments, **limits, **gate.ask
        )
        if isinstance(error, RequestExists) and self.request is not None and self.request.joins:
            # The same request was checked twice at once, or on two machines. Both checks wait for the one approval.
            return replace(blocked, pending=True, approval_id=error.approval_id, detail=_ASKED_ALREADY)
        if error is not None or not isinstance(approval_id, str) or not approval_id:
            return replace(blocked, detail=_join_clauses(self._explain_error(error, "nobody could be asked"), because))
        await self._notify("asked", detail=approval_id)
        pending = replace(blocked, pending=True, approval_id=approval_id)
        return await self._apply_answer(pending) if gate.wait or await self._is_answered(approval_id) else pending

    async def _is_answered(self, approval_id: str) -> bool:
        """Return whether a request is closed already: a judge that was asked first may have approved it."""
        store = self.gate.pending_store
        if store is None:
            return False
        is_open, _ = await call_safely(store.is_open, approval_id)
        return is_open is False

    async def _make_shown_arguments(self) -> dict[str, Any]:
        """Make the arguments of an approval request with what people read, redacted; empty if the gate shows nothing.

        They are ``content``, and ``texts`` with task, context and reference. A part whose redaction fails is left out.
        """
        if not self.gate.shows_content or self.content is None:
            return {}
        parts = {"content": self.content}
        # An asker of the program's own gets only the content, because it may have no argument ``texts``.
        parts |= self.context if self.gate.pending_store is not None else {}
        redacted = {name: await self._redact_shown(value) for name, value in parts.items()}
        texts = {name: value for name, value in redacted.items() if value is not None}
        arguments = {"content": texts.pop("content")} if "content" in texts else {}
        return arguments | ({"texts": texts} if texts else {})

    async def _redact_shown(self, value: object) -> object:
        """Redact a value that people will read, because it leaves the gate; return ``None`` if that fails."""
        if self.gate.redact is None:
            return copy_plain(value)
        redacted, error = await call_safely(self.gate.redact, _make_run_plain(copy_plain(value)))
        return None if error is not None else redacted

    async def _apply_answer(self, pending: Decision) -> Decision:
        """Wait for the answer and make the decision by it; anything but a plain yes to this request blocks.

        ``resume`` says why each check is needed.
        """
        assert self.gate.approvals is not None  # noqa: S101 - for the type checker; _ask and resume have looked
        reply, error = await call_safely(self.gate.approvals.wait, pending.approval_id)
        answer = _read_answer(reply) if error is None else None
        if answer is None:
            return block(pending, self._explain_error(error, "the approval could not be read"))
        problem = _find_request_mismatch(answer, pending, self.gate.name) or self._find_changed_terms(pending)
        if problem is not None:
            return block(pending, problem)
        verdict = "approved" if answer.approved else "denied"
        await self._notify("answered", detail=verdict)
        # Without a name the request expired, and its ``on_expiry`` decided.
        detail = f"{verdict} by {answer.by}" if answer.by else f"{verdict} by policy"
        decided_by: DecidedBy = "policy"
        if answer.by:
            decided_by = "human" if answer.judged is None else "judge"
        return supersede(
            pending,
            allowed=answer.approved,
            decided_by=decided_by,
            detail=f"{detail}: {answer.reason}" if answer.reason else detail,
            answer=answer.judged,
        )

    # ------------------------------------------------------------ what an approval is bound to

    def _find_changed_terms(self, pending: Decision) -> str | None:
        """Explain which terms of this gate have changed since people were asked; return ``None`` if none did.

        The request's digest is computed again with the gate as it is now, and compared. Only values that the gate
        cannot know are taken from the pending decision: its subject, its metadata, the digests of task, context and
        reference, and the description of its request.
        """
        if pending.request is None:
            return f"the decision that waits has no request digest; {_AGAIN}"
        digests = {name: pending.basis.get(name) for name in CONTEXT}
        basis = self._make_basis({name: digest for name, digest in digests.items() if isinstance(digest, str)})
        basis |= copy_request_description(pending.basis)
        try:
            is_same = self._digest_request(replace(pending, basis=basis)) == pending.request
        except Exception as error:  # noqa: BLE001 - metadata that were read back may hold anything
            return self._explain_error(error, "the request could not be compared")
        if is_same:
            return None
        changed = [name for name in ("rubric", "rules", "policy") if pending.basis.get(name) != basis[name]]
        terms = f"other {' and '.join(changed)}" if changed else "other terms, or about something else"
        return f"people were asked under {terms} than this gate has now; {_AGAIN}"

    def _make_basis(self, digests: Mapping[str, str]) -> dict[str, Any]:
        """Describe what a decision of this gate rests on; ``digests`` are those of task, context and reference.

        The judge and the certificate are not part of it: the request is bound to the judgement that people saw, and
        they decide in place of the judge.
        """
        gate = self.gate
        judge_rubric = gate.judge._get_default_rubric() if gate.judge is not None else None  # noqa: SLF001
        policy = {option.name: getattr(gate.policy, option.name) for option in fields(gate.policy)}
        if policy["on_rule"] == policy["on_failed"]:
            del policy["on_rule"]  # so that a gate with the default written out has the same digest
        return make_basis(digests, gate.rubric if gate.rubric is not None else judge_rubric, gate.rules, policy)

    def _digest_request(self, decision: Decision) -> str:
        """Digest what an approval of this decision is bound to, with the gate's present terms of asking."""
        return digest_request(
            gate=self.gate.name,
            subject=decision.subject,
            basis=decision.basis,
            metadata=decision.metadata,
            terms=describe_terms(self.gate.ask),
        )

    # ------------------------------------------------------------ recording

    async def _record(self, decision: Decision) -> Decision:
        """Record the decision and return it; if it cannot be recorded, one that blocks (or observes) is returned."""
        gate = self.gate
        decision = replace(decision, duration_ms=measure_ms(self.started))
        uses_approval = decision.allowed and decision.approval_id is not None
        store = gate.pending_store if uses_approval else None
        decision = await (self._append(decision) if store is None else self._use(decision, store))
        state = "allowed" if decision.allowed else "pending" if decision.pending else "blocked"
        logger.info("gate %r %s by %s, decision %s", gate.name, state, decision.decided_by, decision.id)
        await self._notify("decided", decision=decision)
        return decision

    async def _use(self, decision: Decision, store: PendingStore) -> Decision:
        """Record the decision and mark its approval as used, in one transaction; block one that was used before."""
        seq, error = await call_safely(store.use, decision)
        if error is not None:
            return await self._make_unrecorded(decision, self._explain_error(error, "not recorded"))
        if not _is_ledger_place(seq):
            logger.warning("gate %r: approval %s was to be used again", self.gate.name, decision.approval_id)
            return await self._append(block(decision, _USED_BEFORE))
        decision = replace(decision, ledger_seq=seq)
        ledger = getattr(self.gate.ledger, "ledger", self.gate.ledger)  # a command's recorder wraps a ledger
        # ``use`` recorded it in the approvals' ledger. A gate with another ledger records it there too.
        return decision if ledger is None or ledger is store.ledger else await self._append(decision)

    async def _append(self, decision: Decision) -> Decision:
        """Append the decision to the gate's ledger, if there is one, and return it with its place there."""
        gate = self.gate
        if gate.ledger is None:
            return decision
        options = {"kind": "decision", "subject": decision.subject, "gate": gate.name, **await self._describe_judged()}
        seq, error = await call_safely(gate.ledger.append, decision, **options)
        if error is not None:
            return await self._make_unrecorded(decision, self._explain_error(error, "not recorded"))
        if not _is_ledger_place(seq):
            # Stores answer 0, -1 or None when they kept nothing.
            kind = "a number below 1" if type(seq) is int else type(seq).__name__
            problem = f"not recorded: the ledger answered {kind}, and a place in it is a whole number from 1"
            return await self._make_unrecorded(decision, problem)
        return replace(decision, ledger_seq=seq)

    async def _describe_judged(self) -> dict[str, Any]:
        """Make the arguments with the redacted content and its context for a ledger that keeps them; else empty."""
        gate = self.gate
        if self.content is None or getattr(gate.ledger, "keeps_content", False) is not True:
            return {}
        parts = {name: copy_plain(value) for name, value in {"content": self.content, **self.context}.items()}
        if gate.redact is not None:
            try:
                parts = await _redact(gate.redact, parts)
            except AdjudgeError:  # what cannot be redacted is neither sent to a judge nor kept
                return {}
        return describe_judged(gate.ledger, parts.pop("content"), parts)

    async def _make_unrecorded(self, decision: Decision, problem: str) -> Decision:
        """Return the decision in place of one that could not be recorded: it blocks, except with ``observe``."""
        logger.error("gate %r: decision %s was %s", self.gate.name, decision.id, problem)
        await self._notify("unrecorded", detail=problem)
        detail = f"{problem}; {decision.detail}" if decision.detail else problem
        return replace(
            decision, allowed=self.observes, pending=False, decided_by="policy", would_allow=False, detail=detail
        )

    def _explain_error(self, error: BaseException | None, problem: str) -> str:
        """Log an error, and return the problem with the error's type.

        The text of an error is left out, because a database's error quotes the content; only that of a ``UsageError``
        is kept. Without an error, the answer had the wrong type.
        """
        if error is None:
            return f"{problem}: the answer is of the wrong type"
        logger.debug("gate %r: %s", self.gate.name, problem, exc_info=error)
        return f"{problem}: {error}" if isinstance(error, UsageError) else f"{problem}: {type(error).__name__}"

    async def _notify(self, kind: EventKind, *, detail: str = "", decision: Decision | None = None) -> None:
        """Call the gate's ``on_event``, if there is one, with an event of this kind."""
        if self.gate.on_event is not None:
            event = GateEvent(kind=kind, gate=self.gate.name, subject=self.subject, detail=detail, decision=decision)
            await notify(self.gate.on_event, event, name="on_event")

    def _make_decision(
        self,
        decided_by: DecidedBy,
        *,
        allowed: bool = False,
        result: JudgeResult | None = None,
        detail: str = "",
        would_allow: bool | None = None,
        sampled: bool = True,
    ) -> Decision:
        """Make a decision of this gate about this content; by default it does not allow it."""
        return Decision(
            gate=self.gate.name,
            allowed=allowed,
            decided_by=decided_by,
            result=result,
            detail=detail,
            mode="observe" if self.observes else "enforce",
            would_allow=would_allow,
            sampled=sampled,
            config=self.gate.config,
            subject=self.subject,
            metadata=self.metadata,
        )


async def _redact(redact: Callable[[Any], Any], parts: Mapping[str, Any]) -> dict[str, Any]:
    """Redact the content and its context; raise ``AdjudgeError`` if one fails, because nothing may be sent then."""
    redacted_parts = {}
    for name, value in parts.items():
        redacted, error = await call_safely(redact, _make_run_plain(value))
        if error is not None or redacted is None:
            # Only the error's type: its text is likely to quote what the redaction should have hidden.
            kind = type(error).__name__ if error is not None else "None"
            raise AdjudgeError(f"the redaction of the {name} gave {kind}; nothing was sent")
        is_run = isinstance(value, AgentRun) and isinstance(redacted, Mapping)
        redacted_parts[name] = AgentRun.from_dict(redacted) if is_run else redacted
    return redacted_parts


def _make_run_plain(value: Any) -> Any:
    """Return an agent's run as plain data, because redactions cannot look into an object; any other value as it is."""
    return value.to_dict() if isinstance(value, AgentRun) else value


def _repeat(result: RuleResult) -> Rule:
    """Make a rule that returns a result which is known already, so that no check runs twice."""

    def repeat(_content: object) -> RuleResult:
        return result

    return Rule(name=result.name, evaluate=repeat, severity=result.severity)


def _join_clauses(first: str, second: str) -> str:
    """Join two clauses by a colon; either may be empty."""
    return ": ".join([clause for clause in (first, second) if clause])


_ASKED_ALREADY = f"{PERSON_ASKED} about this very call already"

_USED_BEFORE = "the approval was used before, and can be used once"

_AGAIN = "put the content through the gate again"


def _is_ledger_place(seq: object) -> TypeGuard[int]:
    """Return whether a ledger's answer is the place of an entry: a whole number from 1."""
    return isinstance(seq, int) and not isinstance(seq, bool) and seq >= 1


def _find_content_mismatch(
    pending: Decision, contents: Mapping[str, object], metadata: Mapping[str, Any] | None
) -> str | None:
    """Explain which of the contents or metadata differs from what was held back; return ``None`` if none does."""
    different = find_mismatch(pending, contents)
    if different is None and metadata is not None and to_plain(metadata) != to_plain(pending.metadata):
        different = "metadata"
    return None if different is None else f"the {different} is not what was held back; {_AGAIN}"


def _find_request_mismatch(answer: ApprovalAnswer, pending: Decision, gate: str) -> str | None:
    """Explain why an answer is not about the pending decision; return ``None`` if it is.

    A member that the asker does not know (``None``) is not compared.
    """
    if answer.subject is not None and answer.subject != pending.subject:
        # Otherwise somebody who stores pending decisions could open one with the approval of a harmless content.
        return "the approval is about something else"
    if answer.gate is not None and answer.gate != gate:
        # Otherwise people whom a laxer gate asks about the same content would decide for a stricter one.
        return "the approval was asked for elsewhere than at this gate"
    if answer.request == "":
        return f"the approval has no request digest, because no gate asked for it; {_AGAIN}"
    if answer.request is not None and answer.request != pending.request:
        # Otherwise an approval for one task, or by people under other terms, would open the same content for another.
        return "the approval is about another request: another task, context, reference, metadata, or other terms"
    if answer.result_id is not None and (pending.result is None or answer.result_id != pending.result.id):
        # Otherwise a content that was judged and asked about twice could go through by the approval of the other time.
        return "the approval is about another judgement of the same content"
    return None


def _read_answer(answer: object) -> ApprovalAnswer | None:
    """Return the answer of an asker if all its members have the right types; else ``None``.

    An approval by a judge in people's place also has to have a result that this judge passed, and its name.
    """
    if not isinstance(answer, ApprovalAnswer):
        return None
    texts = (answer.by, answer.reason, answer.subject, answer.gate, answer.request, answer.result_id)
    if not isinstance(answer.approved, bool) or not all(text is None or isinstance(text, str) for text in texts):
        return None
    judged = answer.judged
    if judged is None:
        return answer
    is_judges_pass = isinstance(judged, JudgeResult) and judged.passed and judged.decided_by == "judge"
    return answer if is_judges_pass and answer.approved and answer.by else None


F = TypeVar("F", bound=Callable[..., Any])

_ASKER_METHODS = ("request", "wait")


class Gate(ReadOnly):
    """Decide whether some content may go through: by rules first, then a judge, then perhaps a person.

    ``await gate.check(content)`` returns a ``Decision``, which is true only if the content may go through. Undecided
    content is blocked unless an option says otherwise. A gate is not changed once it is made; ``replace`` makes
    another.

    Raises ``UsageError`` for an unknown value of an option, an ``"ask"`` without ``approvals``, and a gate that has
    nothing to check.

    Args:
        name: How decisions, approvals and the ledger call the gate.
        rubric: A ``Rubric``, a path or a shipped name; ``None`` for the judge's own rubric, or a gate of rules alone.
        judge: A judge, a chain, an object with ``ask``, or anything that ``Judge`` takes as its model. ``None`` for a
            gate of rules alone, and for a rubric whose criteria are all rules.
        rules: Checked first, on the content before ``redact``. A failed ``error`` rule decides before a model is asked;
            a failed ``warning`` is shown to the judge.
        on_failed: What to do with content that the judge failed, and, without ``on_rule``, with content that a rule
            failed: ``block``, or ``ask`` a person.
        on_rule: What to do when a failed ``error`` rule decided; ``None`` means the same as ``on_failed``.
        on_undecided: What to do with undecided content: ``block``, ``ask`` a person, or ``allow`` it, by policy, if no
            judge objected.
        on_tampering: What to do with content that was tampered with: ``block``, or ``ask`` a person.
        mode: ``enforce``, or ``observe``: decide and record, ask no person, and let everything through; or
            ``enforce_when_certified``: observe until a certificate holds, and from then on enforce. That it has
            enforced is recorded in the ledger, and it never observes again.
        sample: The share of contents that the judge is asked about, in 0 to 1. Rules check all of them. The rest is let
            through, by policy. One gate always treats the same content alike, and its author cannot know how.
        seed: Fixes which contents are sampled, for a repeatable experiment; by default a secret of this process does.
            Anyone who knows the seed can write content that is not judged.
        approvals: ``Approvals``, or an object of yours that asks people.
        ask: Further arguments of every approval request, such as ``approvers`` and ``expires_in``.
        show_content: Give the content, after ``redact``, to the approvals, which store it: for people to read, and for
            a judge that answers first. ``Approvals`` also get task, context and reference, for the people. By default
            they get only the digest, unless their ledger has ``store_content="held"``: then people can deny and not
            approve.
        wait: Wait for the person. ``False`` returns a pending decision for ``resume``, unless a judge that was asked
            first has approved.
        ledger: Records every decision, and the content as its ``store_content`` says. A decision that cannot be
            recorded is blocked.
        redact: A function, sync or async, from content to what may be sent. Applied to content, task, context and
            reference.
        on_result: Called with every result; sync or async. What it raises is logged and not raised.
        on_event: Called with every event; sync or async. What it raises is logged and not raised.
        audit: The share of what the judge lets through that people are asked about afterwards, drawn at random, or an
            ``Audit`` with what is promised of it; ``read_monitor`` says whether the answers bear it out. No call waits
            for an answer. It needs ``Approvals``, and ``show_content`` or a ledger that keeps what is ``held``.
        require_certificate: A ``Certificate``, or the path of its file, which is read anew for every result. What the
            judge passes goes through only if the certificate is signed and was made for exactly this judge and rubric,
            the same model answers, the bars below are met, and the alarm of ``audit``, which it needs, is quiet. A
            person is asked otherwise; ``JudgeResult.qualification`` and the decision's detail say why.
        certificate_key: The public key that signs certificates; ``None`` for that of the ledger.
        allow_unsigned: Accept a certificate without a signature, which anybody who can write the file can make.
        max_age: The most time since the certificate's first content was judged: a ``timedelta``, or ``30d``, ``12h``.
        min_sensitivity: The least that the lower limit of the certificate's sensitivity may be, in 0 to 1.
        min_specificity: The same of its specificity.
        release_policy: A ``ReleasePolicy`` that the certificate names, or the path of its file. A person is asked about
            what the judge passes and the policy does not release.
        config: Digest of the configuration file this gate was read from; copied to every decision.
    """

    def __init__(
        self,
        name: str,
        rubric: RubricSource | None = None,
        judge: JudgeLike | ModelSource | None = None,
        *,
        rules: Sequence[AnyRule] = (),
        on_failed: OnFailed = "block",
        on_rule: OnFailed | None = None,
        on_undecided: OnUndecided = "block",
        on_tampering: OnTampering = "block",
        mode: Mode = "enforce",
        sample: float = 1.0,
        seed: str | None = None,
        approvals: Asker | None = None,
        ask: Mapping[str, Any] | None = None,
        show_content: bool = False,
        wait: bool = True,
        ledger: Recorder | None = None,
        redact: Callable[[Any], Any] | None = None,
        on_result: Callable[[JudgeResult], Any] | None = None,
        on_event: Callable[[GateEvent], Any] | None = None,
        audit: float | Audit | None = None,
        require_certificate: CertificateSource | None = None,
        certificate_key: PublicKey | None = None,
        allow_unsigned: bool = False,
        max_age: timedelta | str | None = None,
        min_sensitivity: float | None = None,
        min_specificity: float | None = None,
        release_policy: ReleasePolicySource | None = None,
        config: str | None = None,
    ) -> None:
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            raise UsageError(
                f"name must be a printable text that is not empty, got {name!r}", argument="name", where="a gate"
            )
        if isinstance(rules, str | Mapping):
            raise UsageError(
                f"rules must be a list of rules, got {type(rules).__name__}", argument="rules", where=f"gate {name!r}"
            )
        self.name = name
        self.rules: tuple[Rule, ...] = tuple(as_rule(rule) for rule in rules)
        self.rubric: Rubric | None = load_rubric(rubric) if rubric is not None else None
        self.judge = _make_judge(name, self.rules, self.rubric, judge)
        self.policy = Policy(on_failed=on_failed, on_undecided=on_undecided, on_tampering=on_tampering, on_rule=on_rule)
        self.on_failed: OnFailed = on_failed
        self.on_rule: OnFailed | None = on_rule
        self.on_undecided: OnUndecided = on_undecided
        self.on_tampering: OnTampering = on_tampering
        self.mode: Mode = mode
        self.sample = sample
        self.seed = seed
        self.approvals = approvals
        self.pending_store = approvals if isinstance(approvals, PendingStore) else None
        """The approvals, if they store pending decisions."""
        self.ask: Mapping[str, Any] = {} if ask is None else ask
        self.show_content = show_content
        self.wait = wait
        self.ledger = ledger
        self.redact = redact
        self.on_result = on_result
        self.on_event = on_event
        self.audit: Audit | None = read_audit(audit, where=f"gate {name!r}")
        self.require_certificate = require_certificate
        self.certificate_key = certificate_key
        self.allow_unsigned = allow_unsigned
        self.max_age: timedelta | None = (
            None if max_age is None else read_duration("max_age", max_age, where=f"gate {name!r}")
        )
        self.min_sensitivity = min_sensitivity
        self.min_specificity = min_specificity
        self.release_policy = release_policy
        self.config = config
        self._secret = secrets.token_bytes(32) if seed is None else str(seed).encode()
        _check_options(self)
        self.auditor: Auditor | None = _make_auditor(self)
        """Audits what the judge lets through; ``None`` without ``audit``."""
        self.demand: CertificateDemand | None = _make_demand(self)
        """The demand for a certificate; ``None`` without ``require_certificate``."""
        self.enforcement: Enforcement | None = _make_enforcement(self)
        """The state of its enforcement; ``None`` without ``mode="enforce_when_certified"``."""
        self._is_made = True

    def replace(self, **changes: Any) -> Self:
        """Return a gate like this one with other arguments.

        Args:
            changes: Arguments of ``Gate``; those that are left out stay as they are.
        """
        return type(self)(**(read_options(self, Gate) | changes))

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

        Content that cannot be read, or is too long, is blocked. Raises ``UsageError`` for metadata that is not a
        mapping, and never because of the content.

        Args:
            content: The content: a text, a JSON value, messages, an object with ``.output``.
            task: What the content was asked to do; shown to the judge as data.
            context: What the content may rely on; shown to the judge as data.
            reference: A known good answer; shown to the judge as data.
            metadata: Facts that are copied to the result and the decision, and never sent to a model.
        """
        return await self._begin_check({"task": task, "context": context, "reference": reference}, metadata).run(
            content
        )

    check_sync = make_sync_method(check)

    async def refuse(self, why: str, *, metadata: Mapping[str, Any] | None = None) -> Decision:
        """Block and record something that cannot be read; ``mode="observe"`` lets it through.

        Args:
            why: Why it cannot be read, in a sentence.
            metadata: Copied to the decision.
        """
        return await self._begin_check({}, metadata).refuse(why)

    async def resume(
        self,
        decision: Decision | str,
        *,
        content: object = ...,
        task: object = ...,
        context: object = ...,
        reference: object = ...,
        metadata: Mapping[str, Any] | None = None,
    ) -> Decision:
        """Wait until people have decided, and return the decision that replaces the pending one.

        Pass the content, and what it is judged with, that you are about to use: if it is not what was held back, the
        decision is blocked and the approval is not used. What you leave out is not compared. Raises ``UsageError`` when
        this gate has no such pending decision, and ``LedgerError`` when the ledger does not confirm the stored one.

        Args:
            decision: A pending decision, or the id of its approval; with an id, the decision is read from where
                ``Approvals`` store it.
            content: The content that you are about to use.
            task: Its task, as it is now.
            context: Its context, as it is now.
            reference: Its reference, as it is now.
            metadata: Its metadata, as they are now; ``None`` compares none.
        """
        pending = await self._find_pending(decision) if isinstance(decision, str) else decision
        if not pending.pending or pending.approval_id is None or self.approvals is None:
            raise UsageError(
                f"only a pending decision can be resumed; this one is {pending.explain()}", argument="decision"
            )
        if pending.gate != self.name:
            raise UsageError(
                f"a decision of gate {pending.gate!r} cannot be resumed by gate {self.name!r}", argument="decision"
            )
        arguments = {"content": content, "task": task, "context": context, "reference": reference}
        contents = {name: value for name, value in arguments.items() if value is not ...}
        return await self._begin_check({}, pending.metadata).resume(pending, contents, metadata)

    resume_sync = make_sync_method(resume)

    async def pending(self, *, status: Status | None = "open") -> tuple[Decision, ...]:
        """List this gate's pending decisions that have not been resumed, oldest first.

        Raises ``UsageError`` when the gate's ``approvals`` do not store pending decisions.

        Args:
            status: The status of the approval: ``open`` (people have still to decide), ``approved``, ``denied``, or
                ``None`` for all.
        """
        pending_decisions = await self._require_store().list_pending(gate=self.name, status=status)
        return tuple([pending_decision.decision for pending_decision in pending_decisions])

    pending_sync = make_sync_method(pending)

    def guard(self, *, argument: str | None = None) -> Callable[[F], F]:
        """Return a decorator that checks an argument of a function before it runs, or else its return value.

        The decorated function, sync or async, raises ``Blocked`` with the decision. Raises ``UsageError`` if the
        function has no such parameter, for an async generator, and, without ``argument``, for a generator, because its
        pieces would be out before the check.

        Of a gate with ``wait=False`` the decision may be pending. A second call asks people anew, also after they
        approved; go on with ``resume``.

        Args:
            argument: The name of the parameter that is checked. ``None`` runs the function first, and passes its return
                value on only if it may go through.
        """
        return make_guard(GuardingGate(name=self.name, check=self.check, withdraw=self._withdraw), argument)

    async def read_monitor(self) -> Monitor:
        """Return what the audits of this gate show: whether the judge lets through what was promised.

        It reads only the ledger's entries since the last look, by any process. Raises ``UsageError`` for a gate without
        ``audit``, and ``LedgerError`` when the ledger cannot be read.
        """
        return await self._require_auditor().read()

    async def plant(
        self,
        content: object,
        *,
        by: str,
        reason: str,
        task: object = None,
        context: object = None,
        reference: object = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Ask people about a content that you made up and that should have been stopped, as if it had gone through.

        So you see whether they look: ``planted_found`` of the ``Monitor`` says how many of these they would have
        stopped. It is in no other figure. No judge is asked, nothing is let through, no webhook is sent, and those who
        answer are not told. Raises ``UsageError`` for a gate without ``audit`` and for content that cannot be read, and
        ``LedgerError``.

        Args:
            content: The content: a text, a JSON value, messages, an object with ``.output``.
            by: The name of who made the content up; recorded.
            reason: Why; recorded.
            task: What the content was asked to do; shown to the judge as data.
            context: What the content may rely on; shown to the judge as data.
            reference: A known good answer; shown to the judge as data.
            metadata: As for ``check``.
        """
        for argument, text in (("by", by), ("reason", reason)):
            check_label(argument, text, where="Gate.plant")
        auditor = self._require_auditor()
        check = self._begin_check({"task": task, "context": context, "reference": reference}, metadata)
        await check.plant(content, auditor, {"by": by, "reason": reason})

    async def aclose(self) -> None:
        """Close the connections of the judge's models."""
        if self.judge is not None:
            await self.judge.aclose()

    @property
    def asks(self) -> bool:
        """Return True if a person may have to be asked before something goes through."""
        return self.policy.asks or self.require_certificate is not None

    @property
    def shows_content(self) -> bool:
        """Return True if approvals are given the content: ``show_content``, or a ledger that keeps what is ``held``."""
        ledger = getattr(self.pending_store, "ledger", None)
        return self.show_content or getattr(ledger, "store_content", None) == "held"

    def takes(self, subject: str) -> bool:
        """Return whether ``sample`` selects the content with this digest for the judge.

        Args:
            subject: The digest of the content.
        """
        if self.sample >= 1:
            return True
        # Keyed by a secret: with a plain hash, an author could try variants of a content until one is not judged.
        digest = hmac.digest(self._secret, f"{self.name}\n{subject}".encode(), "sha256")
        # The first 8 bytes are an evenly distributed number below 2**64, so this selects the share ``sample``.
        return int.from_bytes(digest[:8], "big") < self.sample * 2**64

    def __repr__(self) -> str:
        return f"Gate({self.name!r}, mode={self.mode!r})"

    def _require_auditor(self) -> Auditor:
        """Return the auditor; raise ``UsageError`` for a gate without ``audit``."""
        if self.auditor is None:
            raise UsageError(
                "nothing is audited, so there is nothing to monitor; give ",
                Argument("audit"),
                argument="audit",
                where=f"gate {self.name!r}",
            )
        return self.auditor

    def _require_store(self) -> PendingStore:
        """Return the approvals; raise ``UsageError`` if they do not store pending decisions."""
        if self.pending_store is None:
            raise UsageError(
                f"gate {self.name!r} does not store pending decisions; give ",
                Argument("approvals"),
                argument="approvals",
            )
        return self.pending_store

    async def _find_pending(self, approval_id: str) -> Decision:
        """Load the decision that waits for this approval.

        Raises ``UsageError`` if none is stored, or if the stored decision waits for another approval.
        """
        stored = await self._require_store().pending(approval_id)
        if stored is None:
            shown_id = show(approval_id[:80])
            raise UsageError(f"no pending decision is stored for approval {shown_id}, or not any more; {_AGAIN}")
        if stored.decision.approval_id != approval_id:
            shown_id, other_id = show(approval_id[:80]), show(str(stored.decision.approval_id)[:80])
            raise UsageError(f"the decision stored for approval {shown_id} waits for approval {other_id}; {_AGAIN}")
        return stored.decision

    def _begin_check(
        self,
        context: Mapping[str, object],
        metadata: Mapping[str, Any] | None,
        *,
        request: HeldRequest | None = None,
        asks_always: bool = False,
    ) -> Check:
        """Make the check of one content; raises ``UsageError`` for metadata that are no mapping or too large.

        ``context`` has the task, context and reference. ``request`` is the HTTP request or tool call that an approval
        is bound to, if there is one; with ``asks_always`` people are asked about a pass too.
        """
        if metadata is not None and not isinstance(metadata, Mapping):
            raise UsageError(f"metadata must be a mapping, got {type(metadata).__name__}", argument="metadata")
        check_extent(metadata, "metadata")
        return Check(self, context, dict(metadata or {}), request, asks_always=asks_always)

    async def _withdraw(self, decision: Decision, reason: str) -> Decision:
        """Make and record the decision that blocks an allowed content because it was changed after its approval."""
        return await self._begin_check({}, decision.metadata).withdraw(decision, reason)


def _make_judge(
    gate: str, rules: Sequence[Rule], rubric: Rubric | None, source: JudgeLike | ModelSource | None
) -> Judge | JudgeChain | None:
    """Make the judge of a gate; return ``None`` for a gate of rules alone.

    Raises ``UsageError`` if there is nothing to check, or if judge and rubric do not go together.
    """
    if source is None:
        if rubric is not None and all(criterion.rule for criterion in rubric.criteria):
            return Judge("rules")
        if rubric is None and rules:
            return None
        where = f"gate {gate!r}"
        if rubric is None:
            raise UsageError(
                "there is nothing to check; give rules, or a rubric and a judge", argument="rules", where=where
            )
        raise UsageError(f"rubric {rubric.name!r} needs a judge; give judge", argument="judge", where=where)
    gate_judge = as_judge(source, keep_name=True)
    if rubric is None and gate_judge._get_default_rubric() is None:  # noqa: SLF001 - asked here, or every single check would say it
        raise UsageError(
            "nothing says what good means; give rubric: the name or path of one, or its name and its criteria, each "
            "with a name and a description",
            argument="rubric",
            where=f"gate {gate!r}",
        )
    # Otherwise every check would block its content for this reason.
    if rubric is not None and rubric.model is not None and isinstance(gate_judge, JudgeChain):
        raise UsageError(
            f"rubric {rubric.name!r} names the model {rubric.model!r}, and the seats of the chain that judges have "
            "models of their own; take the model out of the rubric",
            argument="rubric",
            where=f"gate {gate!r}",
        )
    return gate_judge


def _check_options(gate: Gate) -> None:
    """Raise ``UsageError`` for an option of a gate that is invalid, or does not go together with another."""
    where = f"gate {gate.name!r}"
    check_choice("mode", gate.mode, get_args(Mode))
    check_flag("wait", gate.wait)
    check_flag("show_content", gate.show_content)
    check_share("sample", gate.sample, where=where)
    if gate.sample < 1 and gate.judge is None:
        raise UsageError(
            "sample spares the judge, and this gate has none; leave it out", argument="sample", where=where
        )
    if gate.policy.asks and gate.approvals is None:
        raise UsageError("'ask' needs somebody to ask; give ", Argument("approvals"), argument="ask", where=where)
    _check_stores(gate, where)
    _check_ask(gate, where)
    _check_release_seats(gate, where)
    check_functions(where, redact=gate.redact, on_result=gate.on_result, on_event=gate.on_event)


def _check_stores(gate: Gate, where: str) -> None:
    """Raise ``UsageError`` for a ledger or approvals without the methods of one, such as an address.

    Otherwise the gate would find out at its first check, and block.
    """
    if gate.ledger is not None and not callable(getattr(gate.ledger, "append", None)):
        kind = type(gate.ledger).__name__
        raise UsageError(f"ledger must be a Ledger, or have its append, got {kind}", argument="ledger", where=where)
    if gate.approvals is not None and not all(callable(getattr(gate.approvals, name, None)) for name in _ASKER_METHODS):
        kind = type(gate.approvals).__name__
        raise UsageError(
            f"approvals must be Approvals, or have their request and wait, got {kind}",
            argument="approvals",
            where=where,
        )


def _check_ask(gate: Gate, where: str) -> None:
    """Raise ``UsageError`` for arguments of ``ask`` that the approvals would refuse at every request.

    Otherwise the gate could ask nobody, and would block everything that it should ask about.
    """
    if not isinstance(gate.ask, Mapping):
        raise UsageError(
            f"ask must be a mapping of arguments, got {type(gate.ask).__name__}", argument="ask", where=where
        )
    if gate.pending_store is None or not gate.asks:
        return
    try:
        gate.pending_store.check_request(has_content=gate.shows_content, **gate.ask)
    except UsageError as error:
        raise error.within(f"{where}: ask") from None
    except TypeError as error:
        raise UsageError(f"ask: {error}", argument="ask", where=where) from None


def _check_release_seats(gate: Gate, where: str) -> None:
    """Raise ``UsageError`` for a chain with a seat that decides by a release policy, unless a certificate is demanded.

    A release policy holds only while audits find no more errors than promised, and a certificate needs audits.
    """
    if gate.require_certificate is None and has_release_policy(gate.judge):
        raise UsageError(
            "a seat of the judge decides alone by a release policy, which holds only while audits are quiet; give ",
            Argument("require_certificate"),
            " of the whole chain, and ",
            Argument("audit"),
            argument="judge",
            where=where,
        )


def _make_auditor(gate: Gate) -> Auditor | None:
    """Make the auditor of a gate, ``None`` without ``audit``; raises ``UsageError`` if nobody could ever answer."""
    if gate.audit is None:
        return None
    where = f"gate {gate.name!r}"
    if gate.judge is None:
        raise UsageError(
            "audit is for what a judge lets through, and this gate has none; leave it out",
            argument="audit",
            where=where,
        )
    if gate.pending_store is None:
        raise UsageError(
            "audit asks people; give ", Argument("approvals"), ", made by Approvals", argument="audit", where=where
        )
    if not gate.shows_content:
        raise UsageError(
            "audit needs people to read what was let through; give ",
            Argument("show_content", "True"),
            ", or a ledger with store_content='held'",
            argument="audit",
            where=where,
        )
    check_text("name", gate.name)
    approvers = gate.audit.approvers or gate.ask.get("approvers", ())
    try:
        gate.pending_store.check_request(has_content=True, approvers=approvers, expires_in=gate.audit.expires_in)
    except UsageError as error:
        raise error.within(f"{where}: audit") from None
    return Auditor(gate.name, gate.audit, gate.pending_store, gate.ask.get("approvers", ()))


def _make_enforcement(gate: Gate) -> Enforcement | None:
    """Make the enforcement state of a gate with ``mode="enforce_when_certified"``; ``None`` for another mode.

    Raises ``UsageError`` for a gate without a certificate, which would never begin to enforce.
    """
    if gate.mode != "enforce_when_certified":
        return None
    if gate.demand is None or gate.pending_store is None:
        raise UsageError(
            "mode enforce_when_certified begins to enforce when a certificate holds; give ",
            Argument("require_certificate"),
            argument="mode",
            where=f"gate {gate.name!r}",
        )
    return Enforcement(gate.name, gate.pending_store.ledger)


RARE_AUDITS = 0.001
"""The share of audits below which a gate that demands a certificate logs a warning."""

_CERTIFICATE_ARGUMENTS = ("certificate_key", "max_age", "min_sensitivity", "min_specificity", "release_policy")
"""Arguments about a certificate, beside ``allow_unsigned``: a gate that demands none refuses them."""


def _make_demand(gate: Gate) -> CertificateDemand | None:
    """Make a gate's demand for a certificate; ``None`` without ``require_certificate``.

    Raises ``UsageError`` for a demand that could never be met, that options of the gate bypass, or that has no effect.
    """
    source, judge, auditor = gate.require_certificate, gate.judge, gate.auditor
    where = f"gate {gate.name!r}"
    if source is None:
        _refuse_certificate_arguments(gate, where)
        return None
    _check_bars(gate, where)
    if judge is None:
        raise UsageError(
            "require_certificate is for a judge, and this gate has none; leave it out",
            argument="require_certificate",
            where=where,
        )
    _refuse_bypasses(gate, where)
    key = _find_public_key(gate)
    if auditor is None:
        raise UsageError(
            "require_certificate relies on what was measured once, so people have to look at some of what goes "
            "through; give ",
            Argument("audit"),
            argument="require_certificate",
            where=where,
        )
    if key is None and not gate.allow_unsigned:
        raise UsageError(
            "require_certificate needs to know whose signature counts; give a ledger with a key, or ",
            Argument("certificate_key"),
            argument="require_certificate",
            where=where,
        )
    _warn_of_rare_audits(gate)
    terms = CertificateTerms(
        source=source,
        key=key,
        allow_unsigned=gate.allow_unsigned,
        bars=Bars(max_age=gate.max_age, min_sensitivity=gate.min_sensitivity, min_specificity=gate.min_specificity),
        release_policy=gate.release_policy,
    )
    return CertificateDemand(terms, judge=judge, rubric=gate.rubric, rules=gate.rules, read_monitor=auditor.read)


def _warn_of_rare_audits(gate: Gate) -> None:
    """Log a warning about audits that are so rare that an alarm may never come."""
    if gate.audit is not None and gate.audit.share < RARE_AUDITS:
        logger.warning(
            "gate %r: a share of %g audits about 1 of %s passes, so an alarm, on which the certificate relies, may "
            "never come; raise audit to %g or more",
            gate.name,
            gate.audit.share,
            f"{1 / gate.audit.share:,.0f}",
            RARE_AUDITS,
        )


def _refuse_certificate_arguments(gate: Gate, where: str) -> None:
    """Raise ``UsageError`` for an argument about a certificate at a gate that demands none."""
    names = [name for name in _CERTIFICATE_ARGUMENTS if getattr(gate, name) is not None]
    names += ["allow_unsigned"] if gate.allow_unsigned else []
    if names:
        raise UsageError(
            f"{names[0]} is for a certificate, and none is demanded; give ",
            Argument("require_certificate"),
            argument=names[0],
            where=where,
        )


def _check_bars(gate: Gate, where: str) -> None:
    """Raise ``UsageError`` for ``allow_unsigned`` that is no flag, and for a demanded share that is not in 0 to 1."""
    check_flag("allow_unsigned", gate.allow_unsigned, where=where)
    for name in ("min_sensitivity", "min_specificity"):
        if getattr(gate, name) is not None:
            check_share(name, getattr(gate, name), where=where)


def _refuse_bypasses(gate: Gate, where: str) -> None:
    """Raise ``UsageError`` for an argument that lets contents through without a certificate and without a person."""
    approves_without_people = gate.ask.get("first") is not None or gate.ask.get("on_expiry", "deny") != "deny"
    for argument, is_bypass, option in (
        ("sample", gate.sample < 1, "sample below 1"),
        ("ask", approves_without_people, "ask with first or on_expiry='approve'"),
    ):
        if is_bypass:
            raise UsageError(
                f"{option} lets something through that neither a certificate nor a person speaks for; leave it out "
                "where require_certificate is given",
                argument=argument,
                where=where,
            )


def _find_public_key(gate: Gate) -> str | None:
    """Find the key that signs a gate's certificates: its argument, else its ledger's, else that of its approvals."""
    if gate.certificate_key is not None:
        try:
            return render_public_key(gate.certificate_key)
        except UsageError as error:
            raise error.within(f"gate {gate.name!r}: certificate_key") from None
    ledger = getattr(gate.ledger, "ledger", gate.ledger)  # a command's recorder wraps a ledger
    if ledger is None and gate.pending_store is not None:
        ledger = gate.pending_store.ledger
    key = getattr(ledger, "public_key", None)
    return key if isinstance(key, str) else None
