"""A gate's decision as a value, with who decided and why, and what is told of it on the way. Pure."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self, get_args

from adjudge.errors import AdjudgeError, UsageError
from adjudge.formats.arguments import check_choice
from adjudge.formats.plain import AS_IS, to_plain
from adjudge.formats.text import clean
from adjudge.formats.typed import read_typed
from adjudge.result import DecidedBy, JudgeResult, make_id, read_result


class Blocked(AdjudgeError):
    """A gate's guard blocked a call; ``decision`` says who decided and why, and whether a person was asked."""

    def __init__(self, decision: Decision) -> None:
        super().__init__(decision.explain())
        self.decision = decision


Mode = Literal["enforce", "observe"]


OnFailed = Literal["block", "ask"]


OnUndecided = Literal["block", "allow", "ask"]


OnTampering = Literal["block", "ask"]


Step = Literal["allow", "block", "ask"]


EventKind = Literal["judged", "asked", "answered", "unrecorded", "decided"]


def _now() -> datetime:
    return datetime.now(UTC)


class _Six(NamedTuple):
    approved: bool
    by: str | None
    """Who decided; ``None`` when it was a policy, because the request expired."""
    reason: str | None = ""
    judged: JudgeResult | None = None
    """The result of the judge that answered in people's place; ``None`` when no judge did."""
    subject: str | None = None
    """Digest of the content that was asked about; ``None`` where the asker does not know it."""
    gate: str | None = None
    """The gate whose decision was asked about, empty where it was none's; ``None`` where the asker does not know it."""


class ApprovalAnswer(_Six):
    """The answer of an ``Asker``: approved or not, by whom and why. A plain tuple of these three is enough.

    As a tuple it has six members, as in earlier versions; ``request`` and ``result_id`` are attributes only.
    """

    request: str | None
    """Digest of the request that was answered, empty where it has none; ``None`` where the asker does not know it."""
    result_id: str | None
    """The result that was asked about; ``None`` where the asker does not know it."""

    def __new__(  # noqa: PLR0917 - the members of a tuple, in their order
        cls,
        approved: bool,  # noqa: FBT001 - the first member of a tuple
        by: str | None,
        reason: str | None = "",
        judged: JudgeResult | None = None,
        subject: str | None = None,
        gate: str | None = None,
        request: str | None = None,
        result_id: str | None = None,
    ) -> Self:
        """Put the six members into the tuple, and the others beside it."""
        made = super().__new__(cls, approved, by, reason, judged, subject, gate)
        made.request, made.result_id = request, result_id
        return made

    def _replace(self, **changes: Any) -> Self:
        # The inherited one goes by the six alone: the answer would lose what it is about, and be taken on trust.
        known: dict[str, Any] = {**self._asdict(), "request": self.request, "result_id": self.result_id}
        return type(self)(**{**known, **changes})


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Decision:
    """Whether content may go through a gate, who decided that, and why.

    A decision is true exactly when it allows. Durations are in milliseconds, digests are hexadecimal SHA-256.
    """

    schema: ClassVar[str] = "adjudge/decision/1"
    writes_plain: ClassVar[bool] = True

    gate: str
    """The name of the gate."""
    allowed: bool
    decided_by: DecidedBy
    """``judge``, ``rule``, ``human``, or ``policy`` if none of these three decided."""
    pending: bool = False
    """True while a person has been asked and has not answered; the content is not allowed until then."""
    result: JudgeResult | None = None
    """The judge's result; ``None`` if the content was not sampled, or cannot be read."""
    detail: str = ""
    """One sentence: which policy decided, who approved, or what went wrong."""
    mode: Mode = "enforce"
    would_allow: bool | None = None
    """What ``mode="enforce"`` would have decided without a person; ``None`` if nothing was judged."""
    sampled: bool = True
    """False when the content was let through unjudged, because ``sample`` is below 1."""
    approval_id: str | None = None
    request: str | None = None
    """Digest of the request to a person, to which the answer is bound; ``None`` if nobody was asked."""
    basis: Mapping[str, Any] = field(default_factory=dict)
    """If a person was asked: digests of task, context, reference, rubric and rules, and the gate's policy."""
    answer: JudgeResult | None = None
    """The result of the judge that was asked first and approved instead of people; else ``None``."""
    ledger_seq: int | None = None
    """Where the ledger holds this decision; ``None`` without a ledger, and in the entry itself."""
    config: str | None = None
    """Digest of the configuration file that the gate was read from; ``None`` for a gate written in code."""
    subject: str | None = None
    """Digest of the content as you passed it, before any redaction."""
    duration_ms: float = 0.0
    metadata: Mapping[str, Any] = field(default_factory=dict)
    id: str = field(default_factory=make_id)
    created_at: datetime = field(default_factory=_now)

    def __post_init__(self) -> None:
        for name, choices in (("decided_by", get_args(DecidedBy)), ("mode", get_args(Mode))):
            check_choice(f"a decision's {name}", getattr(self, name), choices)
        if self.pending and self.allowed:
            raise UsageError("a decision that is pending is not allowed; leave allowed false until a person approved")
        # Held here, no gate of today or tomorrow can let something through in a judge's name that no judge passed.
        said = (self.result, self.answer if self.decided_by == "judge" else None)
        passed = any(item is not None and item.passed and item.decided_by == self.decided_by for item in said)
        if self.allowed and self.decided_by in ("judge", "rule") and not passed:
            raise UsageError(
                f"a decision allowed by a {self.decided_by} needs a result that this {self.decided_by} passed"
            )

    def __bool__(self) -> bool:
        # Without this every decision is true, and `if await gate.check(...)` lets everything through.
        return self.allowed

    def explain(self) -> str:
        """Return the decision in one line: what, by whom, and why; it may quote the content."""
        word = "pending" if self.pending else "allowed" if self.allowed else "blocked"
        parts = [self.detail] if self.detail else []
        parts += [self.result.explain()] if self.result is not None else []
        return clean(f"{word} by {self.decided_by}" + (f": {'; '.join(parts)}" if parts else ""), keep_lines=False)

    def to_dict(self) -> dict[str, Any]:
        """This decision as plain data that JSON can hold; ``from_dict`` reads it back."""
        data: dict[str, Any] = {"schema": self.schema}
        for name in _NAMES:
            value = getattr(self, name)
            data[name] = value if type(value) in AS_IS else to_plain(value)
        data["result"] = self.result.to_dict() if self.result is not None else None
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back what ``to_dict`` wrote; raises ``UsageError`` when it is something else."""
        if not isinstance(data, Mapping) or data.get("schema") != cls.schema:
            raise UsageError(f"a decision is read from a dictionary of schema {cls.schema!r} that to_dict wrote")
        for name in ("id", "created_at", "gate", "allowed", "pending", "decided_by"):
            if name not in data:
                raise UsageError(f"this is not a dictionary that Decision.to_dict wrote: it has no {name!r}")
        flags = {name: data[name] for name in ("allowed", "pending")}
        if not all(isinstance(value, bool) for value in flags.values()):
            kinds = ", ".join(type(value).__name__ for value in flags.values())
            raise UsageError(f"allowed and pending of a decision are true or false; got {kinds}")
        results = {name: read_result(data[name]) for name in ("result", "answer") if data.get(name) is not None}
        try:
            # Read as a blocked one, whose members are checked; what it allows is added together with its result.
            read = read_typed({**data, "allowed": False, "pending": False, "result": None, "answer": None}, cls)
        except (TypeError, ValueError) as error:
            said = clean(" ".join(str(error).split())[:200], keep_lines=False)
            raise UsageError(f"this is not a dictionary that Decision.to_dict wrote: {said}") from None
        return replace(read, **flags, **results)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return f"<Decision {self.gate!r} {self.explain()}>"


def renew() -> dict[str, Any]:
    """The members of a decision that takes the place of a pending one: a new id and time, and pending no more."""
    return {"pending": False, "id": make_id(), "created_at": _now()}


def block(decision: Decision, why: str) -> Decision:
    """The decision that takes the place of one, and blocks by policy."""
    return replace(decision, **renew(), allowed=False, decided_by="policy", detail=why)


_NAMES = tuple([item.name for item in fields(Decision) if item.name != "result"])


@dataclass(frozen=True, slots=True, kw_only=True)
class GateEvent:
    """An event in a gate, passed to ``on_event``."""

    kind: EventKind
    """``judged``, ``asked`` (a person), ``answered`` (that person), ``unrecorded`` (the ledger failed), ``decided``."""
    gate: str
    subject: str | None = None
    """Digest of the content."""
    detail: str = ""
    decision: Decision | None = None
    """With ``decided``, what was decided."""
    at: datetime = field(default_factory=_now)


class Recorder(Protocol):
    """An object that records decisions: the ledger, or an object of yours with this method."""

    def append(
        self, value: Any, /, *, kind: str | None = None, subject: str | None = None, gate: str | None = None
    ) -> Coroutine[Any, Any, int]:
        """Keep a value; returns its place once it is safe."""
        ...


class Asker(Protocol):
    """An object that asks people: ``Approvals``, or an object of yours with these methods.

    Two further methods are optional. ``check_request(**how)`` is called when a gate is made; it raises ``UsageError``
    for arguments of a request that it could not take. ``await is_open(id)`` is called by a gate that does not wait; if
    the request has ended by then, the gate reads the answer at once.
    """

    # A property and not a method: a type checker would have every asker take any argument, and those of `ask` differ.
    @property
    def request(self) -> Callable[..., Coroutine[Any, Any, str]]:
        """Ask about a decision that holds content back; ``how`` is the gate's ``ask``. Return an id."""
        ...

    def wait(self, approval: str, /) -> Coroutine[Any, Any, ApprovalAnswer | tuple[bool, str | None, str]]:
        """Wait for the answer: whether it was approved, by whom (``None``: by policy, because it expired), and why."""
        ...
