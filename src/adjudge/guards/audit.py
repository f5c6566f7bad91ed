"""Audits: a gate sends a random share of the contents that its judge let through to people afterwards.

No call waits for their answers. The answers are counted in ``monitor.py``, and when the alarm is raised is decided in
``trust/share_test.py`` (``ShareTest.is_broken``).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from adjudge.errors import AdjudgeError, UsageError
from adjudge.formats.arguments import check_functions, check_seconds, check_share, is_finite
from adjudge.formats.text import flatten, show
from adjudge.guards.decision import Decision
from adjudge.guards.monitor import MOST_MODELS, Monitor, MonitorReader
from adjudge.guards.pending_store import PendingStore
from adjudge.hooks import call_safely, logger, notify
from adjudge.ledger.columns import AUDIT_FAILED, MODEL_CHANGED
from adjudge.result import JudgeChainResult, JudgeResult

AUDIT_EXPIRES_IN = 7 * 86_400.0
"""Seconds that people have for the answer to an audit by default."""

LONGEST_AUDIT = 366 * 86_400.0

_system_random = secrets.SystemRandom()


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """The audit of a gate: the share of what its judge lets through that people look at afterwards, and the reason.

    Raises ``UsageError`` for a share that is not above 0, a promise or a confidence that is not between 0 and 1, and
    what is no function.

    Args:
        share: The share of what the judge let through, drawn at random, that people are asked about.
        promise: The largest share of bad ones, among what the judge lets through, that is promised.
        confidence: One minus the probability of an alarm, ever, where the promise is kept.
        approvers: The people who are asked; empty for those of the gate's ``ask``.
        expires_in: Seconds that they have; without an answer until then, the audit counts as not answered.
        on_change: Called with the ``Monitor`` when its verdict changes; sync or async. What it raises is logged and not
            raised.
    """

    share: float = 0.02
    """The share of what the judge let through, drawn at random, that people are asked about."""
    promise: float = 0.10
    """The largest share of bad ones, among what the judge lets through, that is promised."""
    confidence: float = 0.95
    """One minus the probability of an alarm, ever, where the promise is kept."""
    approvers: tuple[str, ...] = ()
    """The people who are asked; empty for those of the gate's ``ask``."""
    expires_in: float = AUDIT_EXPIRES_IN
    """Seconds that they have; without an answer until then, the audit counts as not answered."""
    on_change: Callable[[Monitor], Any] | None = None
    """Called with the ``Monitor`` when its verdict changes; sync or async. What it raises is logged and not raised."""

    def __post_init__(self) -> None:
        where = "an audit"
        check_share("share", self.share, where=where)
        if self.share == 0:
            raise UsageError("share must be above 0; leave audit out where nothing is audited", argument="share")
        for name in ("promise", "confidence"):
            value = getattr(self, name)
            if not is_finite(value) or not 0 < value < 1:
                raise UsageError(
                    f"{name} must be a number above 0 and below 1, got {show(value)}", argument=name, where=where
                )
        if isinstance(self.approvers, str) or not isinstance(self.approvers, Iterable):
            raise UsageError(
                f"approvers must be a list of names, got {show(self.approvers)}", argument="approvers", where=where
            )
        object.__setattr__(self, "approvers", tuple(self.approvers))
        check_seconds("expires_in", self.expires_in, most=LONGEST_AUDIT, where=where)
        check_functions(where, on_change=self.on_change)

    @property
    def terms(self) -> dict[str, float]:
        """The terms that are promised, as the ledger's entries about an audit have it."""
        return {"share": float(self.share), "promise": float(self.promise), "confidence": float(self.confidence)}

    def draws(self) -> bool:
        """Return, at random, whether the next one is audited; nothing that the content's author writes changes that."""
        return self.share >= 1 or _system_random.random() < self.share


def read_audit(value: float | Audit | None, *, where: str) -> Audit | None:
    """Return the audit of a gate's argument ``audit``: an ``Audit`` or ``None`` as it is, a number as its share."""
    if value is None or isinstance(value, Audit):
        return value
    return Audit(share=check_share("audit", value, where=where))


LONGEST_MODEL = 200
"""Characters of a model's name that are compared, because a server could report a name of any length."""

ShownReader = Callable[[], Coroutine[Any, Any, Mapping[str, Any]]]
"""A function that returns what people are shown of a content, as arguments of ``Approvals.request``: ``content`` and
``texts``."""


class Auditor:
    """Asks people about some of what the judge of one gate lets through, and notices when its model changes."""

    def __init__(self, gate: str, audit: Audit, approvals: PendingStore, approvers: Iterable[str]) -> None:
        self._gate, self._audit, self._approvals = gate, audit, approvals
        self._approvers = audit.approvers or tuple(approvers)
        self._reader = MonitorReader(approvals.ledger, gate)
        self._is_prepared = False
        self._last_verdict = "quiet"

    async def read(self) -> Monitor:
        """Read the monitor from the ledger, and notify the webhook and ``on_change`` if its verdict has changed."""
        if not self._is_prepared:
            await self._approvals.ledger.prepare()
            self._is_prepared = True
        monitor = await self._reader.read()
        last_verdict, self._last_verdict = self._last_verdict, monitor.verdict
        # At the first read, "too few labels" is what everybody expects, and no change.
        is_first_labels = last_verdict == "quiet" and monitor.verdict == "too few labels"
        if monitor.verdict != last_verdict and not is_first_labels:
            logger.warning("%s", monitor.explain())
            self._approvals.announce_monitor(monitor)
            await notify(self._audit.on_change, monitor, name="on_change")
        return monitor

    async def follow(self, decision: Decision, read_shown: ShownReader) -> None:
        """Record the judge's model if it is new, and ask people about the decision if it is drawn for an audit.

        The decision was recorded before, and nothing here changes it. If asking fails, that is logged and recorded as
        an audit that nobody answered.
        """
        if decision.result is None or decision.result.decided_by != "judge":
            return
        monitor, error = await call_safely(self._record_new_models, decision.result)
        if error is not None:
            self._log_error(error, "its monitor could not be read")
        # After a change of the model, every call is audited for a while, and not a random share.
        is_forced = isinstance(monitor, Monitor) and monitor.draws_at_once > 0
        was_let_through = decision.allowed and decision.decided_by == "judge" and decision.approval_id is None
        if not was_let_through or not (is_forced or self._audit.draws()):
            return
        _, error = await call_safely(self.request, decision, read_shown)
        if error is not None:
            self._log_error(error, "nobody could be asked about a decision that was drawn for an audit")
            _, error = await call_safely(self._record_failure, decision, error)
        if error is not None:
            self._log_error(error, "an audit that failed was not recorded")

    async def _record_new_models(self, result: JudgeResult) -> Monitor:
        """Record the models of a result that the monitor does not know, and return the monitor after that."""
        monitor = await self.read()
        models = dict.fromkeys(flatten(model, LONGEST_MODEL) for model in _find_models(result))
        # Not below 0, which would slice from the end: simultaneous calls may have recorded more models than the limit.
        most_new = max(0, MOST_MODELS - len(monitor.models))
        new_models = [model for model in models if model not in monitor.models][:most_new]
        for model in new_models:
            payload = {"schema": "adjudge/model-changed/1", "gate": self._gate, "model": model, "result": result.id}
            await self._approvals.ledger.append(payload, kind=MODEL_CHANGED, subject=result.subject or "")
        return await self.read() if new_models else monitor

    async def request(
        self, decision: Decision, read_shown: ShownReader, planted: Mapping[str, str] | None = None
    ) -> None:
        """Ask people about a decision that let a content through.

        ``planted`` says by whom and why the content was made up, if it was. Raises ``AdjudgeError`` if the content
        cannot be redacted, and what ``Approvals.request`` raises.
        """
        shown_arguments = await read_shown()
        if "content" not in shown_arguments:
            raise AdjudgeError("the redaction of the content failed, so people cannot read it")
        await self._approvals.request(
            decision,
            f"gate {self._gate!r} let this through",
            approvers=self._approvers,
            expires_in=self._audit.expires_in,
            audit=self._audit.terms,
            planted=planted,
            **shown_arguments,
        )

    async def _record_failure(self, decision: Decision, error: Exception) -> None:
        """Record that nobody could be asked about a decision that was drawn; the monitor counts it as unanswered."""
        payload: dict[str, Any] = {"schema": "adjudge/audit-failed/1", "gate": self._gate, "audit": self._audit.terms}
        payload |= {"decision": decision.id, "problem": type(error).__name__}
        await self._approvals.ledger.append(payload, kind=AUDIT_FAILED, subject=decision.subject or "")

    def _log_error(self, error: Exception, problem: str) -> None:
        """Log a problem with the error's type; the error itself, which may quote the content, only for debugging."""
        logger.error("gate %r: %s: %s", self._gate, problem, type(error).__name__)
        logger.debug("gate %r: %s", self._gate, problem, exc_info=error)


def _find_models(result: JudgeResult) -> Iterator[str]:
    """Yield the names that models reported for themselves, in a result and in its seats, unless these are undecided."""
    if result.model and result.outcome != "undecided":
        yield result.model
    if isinstance(result, JudgeChainResult):
        for seat in result.results:
            yield from _find_models(seat)
