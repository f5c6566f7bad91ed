"""Rules, then a judge, then perhaps a person: may this go through?

A gate holds configuration only; whatever is about one content is in the ``Decision``. What goes wrong on the way
(a judge that is down, content that cannot be read, a redaction that raises, a ledger that does not take the entry)
blocks, unless somebody asked by name to let it through, and then the decision says ``decided_by="policy"``.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, get_args

from adjudge._checking import Check
from adjudge._decision import (
    Answer,
    Decision,
    GateEvent,
    Mode,
    OnFailed,
    OnTampering,
    OnUndecided,
    Policy,
    check_choice,
)
from adjudge._foreign import check_functions
from adjudge._guarding import make_guard
from adjudge._judge import Judge, check_flag
from adjudge._sync import run_sync
from adjudge.chain import JudgeChain
from adjudge.errors import Blocked, UsageError
from adjudge.result import JudgeResult
from adjudge.rubric_file import load_rubric
from adjudge.rules import as_rule

__all__ = ["Answer", "Asker", "Blocked", "Decision", "Gate", "GateEvent", "Recorder"]

F = TypeVar("F", bound=Callable[..., Any])
_ASKS = ("request", "wait")


class Recorder(Protocol):
    """Whatever keeps decisions: the ledger, or an object of yours with this method."""

    def append(
        self, value: Any, /, *, kind: str | None = None, subject: str | None = None, gate: str | None = None
    ) -> Coroutine[Any, Any, int]:
        """Keep a value; returns its place once it is safe."""
        ...


class Asker(Protocol):
    """Whatever asks a person: ``Approvals``, or an object of yours with these methods.

    One with ``check_request(**how)`` is asked, when a gate is made, whether it could take such a request; what is
    wrong it raises as ``UsageError``. One with ``await is_open(id)`` is asked where a gate does not wait: a request
    that has ended by then is heard at once.
    """

    # A property and not a method: a type checker would have every asker take any argument, and those of `ask` differ.
    @property
    def request(self) -> Callable[..., Coroutine[Any, Any, str]]:
        """Ask about a decision that holds something back, with a message and what ``ask`` says; returns an id."""
        ...

    def wait(self, approval: str, /) -> Coroutine[Any, Any, Answer | tuple[bool, str | None, str]]:
        """Whether it was approved, by whom (``None`` when it was a policy: the request expired), and the reason."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Gate:
    """Rules, then a judge, then perhaps a person: may this go through?

    ``await gate.check(content)`` answers with a ``Decision``, which is true only when the content may go on. Raises
    ``UsageError`` for a word that is not one of an option's, an ``"ask"`` without ``approvals``, and a gate that has
    nothing to check.
    """

    name: str = field(kw_only=False)
    rubric: Any = field(default=None, kw_only=False)
    """A ``Rubric``, a path or a shipped name; ``None`` for the judge's own, or a gate of rules alone."""
    judge: Any = field(default=None, kw_only=False)
    """A judge, a chain, an object with ``ask``, or whatever ``Judge`` takes as its model. ``None`` for a gate of rules
    alone, and for a rubric whose criteria are all rules."""
    rules: Any = ()
    """Checked first, on the content as it is; a failed ``error`` rule decides before a model is asked, a failed
    ``warning`` is shown to the judge."""
    on_failed: OnFailed = "block"
    on_undecided: OnUndecided = "block"
    """``allow`` lets through, by policy, what nobody could decide and nobody objected to."""
    on_tampering: OnTampering = "block"
    mode: Mode = "enforce"
    """``observe`` decides and records, asks no person, and lets everything through."""
    sample: float = 1.0
    """The share of contents that the judge is asked about, in 0 to 1; rules check all. The rest is let through, by
    policy. The same content is always treated alike by one gate, and nobody who writes it can know how."""
    seed: str | None = None
    """Fixes which contents are sampled, for a repeatable experiment; without it a secret of this process does. Whoever
    knows the seed can write content that is not judged."""
    approvals: Asker | None = None
    ask: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of every approval request, such as ``approvers`` and ``expires_in``."""
    show_content: bool = False
    """Hand the content to the approvals, as ``redact`` leaves it: for people to read, and for a judge that answers
    first. They keep it. Without it a request carries the digest."""
    wait: bool = True
    """Wait for the person; ``False`` returns a pending decision, for ``resume``, unless a judge that was asked first
    has approved."""
    ledger: Recorder | None = None
    """Records every decision; what could not be recorded is blocked."""
    redact: Callable[[Any], Any] | None = None
    """From content to what may be sent; sync or async. Applied to content, task, context and reference."""
    on_result: Callable[[JudgeResult], Any] | None = None
    """Called with every result; sync or async. What it raises is logged and never thrown."""
    on_event: Callable[[GateEvent], Any] | None = None
    """Called with every event; sync or async. What it raises is logged and never thrown."""
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
            Policy(on_failed=self.on_failed, on_undecided=self.on_undecided, on_tampering=self.on_tampering),
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
        """Whether some content may go through.

        ``task``, ``context`` and ``reference`` reach the judge as data; ``metadata`` is copied to the result and the
        decision and never sent. Content that cannot be read, or is too long, is blocked. ``UsageError`` is raised for
        metadata that is not a mapping, and for nothing that is in the content.
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
        """``check`` for callers without an event loop; works inside a running loop too, and blocks it."""
        return run_sync(self.check(content, task=task, context=context, reference=reference, metadata=metadata))

    async def refuse(self, why: str, *, metadata: Mapping[str, Any] | None = None) -> Decision:
        """The decision about something that could not even be read: blocked and recorded; observe lets it through."""
        return await self._start({}, metadata).refuse(why)

    async def resume(self, decision: Decision) -> Decision:
        """Wait for the person that a pending decision is about; returns the decision that takes its place."""
        if not decision.pending or decision.approval_id is None or self.approvals is None:
            raise UsageError(f"only a pending decision can be resumed; this one is {decision.explain()}")
        if decision.gate != self.name:
            raise UsageError(f"a decision of gate {decision.gate!r} cannot be resumed by gate {self.name!r}")
        return await self._start({}, decision.metadata).resume(decision)

    def guard(self, *, argument: str | None = None) -> Callable[[F], F]:
        """A decorator that checks an argument of a function before it runs, or else what it returns.

        ``argument`` names the parameter. Without it the function runs first, and what it returned is handed on only
        when it may go through. Raises ``Blocked`` with the decision. For sync and async functions; ``UsageError``
        when the function has no such parameter, and for generators, whose pieces would be out before the check.
        """
        return make_guard(self, argument)

    async def aclose(self) -> None:
        """Close the connections of the judge's models."""
        if self.judge is not None:
            await self.judge.aclose()

    def takes(self, subject: str) -> bool:
        """Whether the judge is asked about content with this digest, as ``sample`` says."""
        if self.sample >= 1:
            return True
        # Keyed: with a plain hash, whoever writes the content could try variants until one is not judged.
        drawn = hmac.digest(self._secret, f"{self.name}\n{subject}".encode(), "sha256")
        return int.from_bytes(drawn[:8], "big") < self.sample * 2**64

    def __repr__(self) -> str:
        return f"Gate({self.name!r}, mode={self.mode!r})"

    def _start(self, data: Mapping[str, object], metadata: Mapping[str, Any] | None) -> Check:
        if metadata is not None and not isinstance(metadata, Mapping):
            raise UsageError(f"metadata must be a mapping, got {type(metadata).__name__}")
        return Check(self, data, dict(metadata or {}))

    async def _withdraw(self, decision: Decision, why: str) -> Decision:
        """The decision in place of one that let something through which is not the same any more: blocked, recorded.

        ``mode="observe"`` lets it through, and records that as well.
        """
        return await self._start({}, decision.metadata).withdraw(decision, why)


def _refuse_screen_alone(gate: Gate) -> None:
    """Refuse a gate whose only guard is a screen that is a warning: whoever named it would have an open door."""
    screens = any(item.kind == "injection-screen" for item in gate.rules)
    if screens and all(item.severity != "error" for item in gate.rules):
        raise UsageError(
            f"gate {gate.name!r}: injection-screen is a warning and no other rule is an error, so it would let "
            "everything through; give the rule severity: error, or give a judge"
        )


def _make_judge(gate: Gate) -> Judge | JudgeChain | None:
    source, rubric = gate.judge, gate.rubric
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
    if hasattr(source, "ask") and not isinstance(source, Judge | JudgeChain):
        source = JudgeChain([source], timeout=None, name=str(source.name))
    made = source if isinstance(source, Judge | JudgeChain) else Judge(source)
    if rubric is None and made._own_rubric() is None:  # noqa: SLF001 - asked here, or every single check would say it
        raise UsageError(f"gate {gate.name!r}: nothing says what good means; give rubric=")
    model = rubric.model if rubric is not None else None
    if model is not None and isinstance(made, JudgeChain):  # said by every check otherwise, as a blocked content
        raise UsageError(
            f"gate {gate.name!r}: rubric {rubric.name!r} names the model {model!r}, and the seats of the chain "
            "that judges have models of their own; take the model out of the rubric"
        )
    return made


def _check_options(gate: Gate) -> None:
    where = f"gate {gate.name!r}"
    check_choice("mode", gate.mode, get_args(Mode))
    check_flag("wait", gate.wait)
    check_flag("show_content", gate.show_content)
    if isinstance(gate.sample, bool) or not isinstance(gate.sample, int | float) or not 0 <= gate.sample <= 1:
        raise UsageError(f"{where}: sample must be a number from 0 to 1, got {gate.sample!r}")
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
