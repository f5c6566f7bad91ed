"""A gate's decision as a value, with who decided and why, and the events on the way. Pure.

Which decision a gate makes is decided in ``gate.py`` (``Check``) and ``gate_policy.py`` (``choose_step``).
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, ClassVar, Literal, Protocol, Self, get_args

from adjudge.errors import AdjudgeError, UsageError
from adjudge.formats.arguments import check_choice
from adjudge.formats.record import Layout, read_record, write_record
from adjudge.formats.text import clean
from adjudge.formats.times import get_now
from adjudge.result import DecidedBy, JudgeResult, make_id, read_result


class Blocked(AdjudgeError):
    """A gate's guard blocked a call.

    Args:
        decision: The gate's decision: who decided and why, and whether a person was asked.
    """

    def __init__(self, decision: Decision) -> None:
        hint = "; calling it again asks anew: once people approved, go on with resume(error.decision, content=...)"
        super().__init__(decision.explain() + (hint if decision.pending else ""))
        self.decision = decision


Mode = Literal["enforce", "observe", "enforce_when_certified"]


_CHOICES = {"decided_by": get_args(DecidedBy), "mode": get_args(Mode)}

OnFailed = Literal["block", "ask"]


OnUndecided = Literal["block", "allow", "ask"]


OnTampering = Literal["block", "ask"]


Step = Literal["allow", "block", "ask"]


EventKind = Literal["judged", "asked", "answered", "unrecorded", "decided"]


@dataclass(frozen=True, slots=True)
class ApprovalAnswer:
    """The answer of an ``Asker``: approved or not, by whom and why.

    What the answer is about is compared with the decision that waits for it; ``None`` says that the asker does not
    know it, and is taken on trust.

    Args:
        approved: True if it was approved; only ``True`` counts as a yes.
        by: The name of who decided; ``None`` when it was a policy, because the request expired.
        reason: The reason that was given.
        judged: The result of the judge that answered in people's place; ``None`` when no judge did.
        subject: Digest of the content that was asked about.
        gate: The gate whose decision was asked about, empty where it was none's.
        request: Digest of the request that was answered, empty where it has none.
        result_id: The result that was asked about.
    """

    approved: bool
    """True if it was approved; only ``True`` counts as a yes."""
    by: str | None
    """The name of who decided; ``None`` when it was a policy, because the request expired."""
    reason: str | None = ""
    """The reason that was given."""
    judged: JudgeResult | None = None
    """The result of the judge that answered in people's place; ``None`` when no judge did."""
    subject: str | None = None
    """Digest of the content that was asked about."""
    gate: str | None = None
    """The gate whose decision was asked about, empty where it was none's."""
    request: str | None = None
    """Digest of the request that was answered, empty where it has none."""
    result_id: str | None = None
    """The result that was asked about."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Decision:
    """The answer whether content may go through a gate, with who decided that, and why.

    A decision is true exactly when it allows. Durations are in milliseconds, digests are hexadecimal SHA-256.
    """

    schema: ClassVar[str] = "adjudge/decision/1"
    writes_plain: ClassVar[bool] = True
    _layout: ClassVar[Layout] = Layout(
        last=("result",),
        required=("id", "created_at", "pending"),
        readers={"result": read_result, "answer": read_result},
    )

    gate: str
    """The name of the gate."""
    allowed: bool
    """True if the content may go through now."""
    decided_by: DecidedBy
    """``judge``, ``rule``, ``human``, or ``policy`` if none of these three decided."""
    pending: bool = False
    """True while a person has been asked and has not answered; the content is not allowed until then."""
    result: JudgeResult | None = None
    """The judge's result; ``None`` if the content was not sampled, or cannot be read."""
    detail: str = ""
    """One sentence: which policy decided, who approved, or what went wrong."""
    mode: Mode = "enforce"
    """``enforce`` acts on the answer; ``observe`` lets the content through and records what would have happened.

    Of a gate with ``enforce_when_certified`` it is what the gate did this time.
    """
    would_allow: bool | None = None
    """The decision of ``mode="enforce"`` without a person; ``None`` if nothing was judged."""
    sampled: bool = True
    """False when the content was let through unjudged, because ``sample`` is below 1."""
    approval_id: str | None = None
    """The id of the request to a person; ``None`` if nobody was asked."""
    request: str | None = None
    """Digest of the request to a person, to which the answer is bound; ``None`` if nobody was asked."""
    basis: Mapping[str, Any] = field(default_factory=dict)
    """If a person was asked: digests of task, context, reference, rubric and rules, and the gate's policy."""
    answer: JudgeResult | None = None
    """The result of the judge that was asked first and approved instead of people; else ``None``."""
    ledger_seq: int | None = None
    """The place of this decision in the ledger; ``None`` without a ledger, and in the entry itself."""
    config: str | None = None
    """Digest of the configuration file that the gate was read from; ``None`` for a gate written in code."""
    subject: str | None = None
    """Digest of the content as you passed it, before any redaction."""
    duration_ms: float = 0.0
    """The time that the check took, in milliseconds."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Yours: the ``metadata`` that the check was given."""
    id: str = field(default_factory=make_id)
    """The id of this decision."""
    created_at: datetime = field(default_factory=get_now)
    """The time at which it was made, in UTC."""

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            check_choice(name, getattr(self, name), choices, where="a decision")
        if self.pending and self.allowed:
            raise UsageError("a decision that is pending is not allowed; leave allowed false until a person approved")
        # Checked here, so that no mistake in a gate can let a content through in the name of a judge that did not pass.
        results = (self.result, self.answer if self.decided_by == "judge" else None)
        passed = any(
            result is not None and result.passed and result.decided_by == self.decided_by for result in results
        )
        if self.allowed and self.decided_by in ("judge", "rule") and not passed:
            raise UsageError(
                f"a decision allowed by a {self.decided_by} needs a result that this {self.decided_by} passed"
            )

    def __bool__(self) -> bool:
        # Without this every decision is true, and `if await gate.check(...)` lets everything through.
        return self.allowed

    def explain(self) -> str:
        """Return the decision in one line: what, by whom, and why; it may quote the content."""
        state = "pending" if self.pending else "allowed" if self.allowed else "blocked"
        parts = [self.detail] if self.detail else []
        if self.result is not None:
            # After a person's answer, the judge's outcome would read like a second decision without "judged before".
            is_answered = self.approval_id is not None and not self.pending
            parts.append(f"judged before: {self.result.explain()}" if is_answered else self.result.explain())
        return clean(f"{state} by {self.decided_by}" + (f": {'; '.join(parts)}" if parts else ""), keep_lines=False)

    def to_dict(self) -> dict[str, Any]:
        """This decision as plain data that JSON can hold; ``from_dict`` reads it back."""
        return write_record(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back ``data`` that ``to_dict`` wrote; raises ``UsageError`` when it is something else.

        Args:
            data: What ``to_dict`` wrote.
        """
        return read_record(cls, data)

    def __repr__(self) -> str:
        return f"<Decision {self.gate!r} {self.explain()}>"

    def _repr_html_(self) -> str:
        from adjudge.formats.notebook import render_fragment

        state = "pending" if self.pending else "allowed" if self.allowed else "blocked"
        judged = self.result.explain() if self.result is not None else None
        facts = {"why": self.detail, "result": judged, "approval": self.approval_id, "ledger": self.ledger_seq}
        return render_fragment(f"{self.gate}: {state} by {self.decided_by}", facts=facts)


def supersede(
    decision: Decision, *, allowed: bool, decided_by: DecidedBy, detail: str, answer: JudgeResult | None = None
) -> Decision:
    """Make the decision that replaces a pending one: a copy that is not pending, with a new id and the present time."""
    return replace(
        decision,
        pending=False,
        id=make_id(),
        created_at=get_now(),
        allowed=allowed,
        decided_by=decided_by,
        detail=detail,
        answer=answer,
    )


def block(decision: Decision, reason: str) -> Decision:
    """Make the decision that replaces another one, and blocks by policy for a reason."""
    return supersede(decision, allowed=False, decided_by="policy", detail=reason, answer=decision.answer)


@dataclass(frozen=True, slots=True, kw_only=True)
class GateEvent:
    """An event in a gate, passed to ``on_event``."""

    kind: EventKind
    """``judged``, ``asked`` (a person), ``answered`` (that person), ``unrecorded`` (the ledger failed), ``decided``."""
    gate: str
    """The name of the gate."""
    subject: str | None = None
    """Digest of the content."""
    detail: str = ""
    """The event, in one sentence."""
    decision: Decision | None = None
    """With ``decided``, what was decided."""
    at: datetime = field(default_factory=get_now)
    """The time at which it happened, in UTC."""


class Recorder(Protocol):
    """An object that records decisions: the ledger, or an object of yours with this method.

    If it has ``keeps_content``, and that is true, ``append`` is given ``content`` and ``context`` too.
    """

    def append(
        self, value: Any, /, *, kind: str | None = None, subject: str | None = None, gate: str | None = None
    ) -> Coroutine[Any, Any, int]:
        """Keep a value; returns its place once it is safe.

        Args:
            value: The result, the decision, or another value with ``to_dict``.
            kind: The kind of the entry; ``None`` is that of the value.
            subject: The digest of the content that it is about.
            gate: The name of the gate that it is of.
        """
        ...


class Asker(Protocol):
    """An object that asks people: ``Approvals``, or an object of yours with these methods."""

    # A property and not a method: a type checker would have every asker take any argument, and those of `ask` differ.
    @property
    def request(self) -> Callable[..., Coroutine[Any, Any, str]]:
        """Ask about a decision that holds content back; keyword arguments are the gate's ``ask``. Return an id."""
        ...

    def wait(self, approval: str, /) -> Coroutine[Any, Any, ApprovalAnswer]:
        """Wait for the answer: whether it was approved, by whom (``None``: by policy, because it expired), and why.

        Args:
            approval: The id of the request.
        """
        ...
