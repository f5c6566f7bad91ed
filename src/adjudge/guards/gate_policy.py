"""A gate's policy: what it does with a result that is no pass (allow, ask or block). Pure.

Sampling, ``mode="observe"`` and what an approval changes are in ``gate.py``. ``fail_open`` is a chain's, and decided in
``judges/chain.py`` (``make_result``) by ``judges/chain_outcome.py`` (``may_open``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from adjudge.formats.arguments import check_choice
from adjudge.guards.decision import OnFailed, OnTampering, OnUndecided, Step
from adjudge.judges.chain_outcome import has_stopped_seat, may_open
from adjudge.result import DecidedBy, JudgeChainResult, JudgeResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The steps that a gate takes for a result that is not a pass."""

    on_failed: OnFailed = "block"
    """The step for content that failed: ``block`` or ``ask``."""
    on_undecided: OnUndecided = "block"
    """The step for content that is undecided: ``block``, ``ask`` or ``allow``."""
    on_tampering: OnTampering = "block"
    """The step for what is undecided because of ``tampering``: ``block`` or ``ask``."""
    on_rule: OnFailed | None = None
    """The step if a failed ``error`` rule decided; ``None`` is replaced by ``on_failed``."""

    def __post_init__(self) -> None:
        for name, kind in (("on_failed", OnFailed), ("on_undecided", OnUndecided), ("on_tampering", OnTampering)):
            check_choice(name, getattr(self, name), get_args(kind))
        if self.on_rule is None:
            object.__setattr__(self, "on_rule", self.on_failed)
        check_choice("on_rule", self.on_rule, get_args(OnFailed))

    @property
    def asks(self) -> bool:
        """True if a person may have to be asked."""
        return "ask" in (self.on_failed, self.on_undecided, self.on_tampering, self.on_rule)

    @property
    def blocks_all(self) -> bool:
        """True if every result of a judge that is not a pass is blocked, so that a chain may stop early.

        ``on_rule`` does not count, because no judge is asked when a rule decides.
        """
        return {self.on_failed, self.on_undecided, self.on_tampering} == {"block"}


def choose_step(result: JudgeResult, policy: Policy, *, readable: bool = True) -> tuple[Step, DecidedBy]:
    """Choose what to do with a result; return that step and who decided it.

    ``on_undecided="allow"`` lets content through only if nobody objected: not if there was tampering or a
    contradiction, not if a seat failed it at any depth, and not if the content could not be read (``readable=False``).
    If a chain stopped a seat before it answered, the seat might have failed it or seen tampering, so the strictest step
    of these applies.
    """
    if result.passed:
        return "allow", result.decided_by
    steps = _list_steps(result, policy)
    # A gate's own chains wait for every seat that might object. A program's own judge may have stopped one, which might
    # have failed the content or seen tampering.
    is_stopped = has_stopped_seat([result])
    may_hide_what_blocks = is_stopped and ("allow" in steps or policy.on_tampering == "block")
    if "block" in steps or may_hide_what_blocks:
        return "block", result.decided_by if result.outcome == "failed" else "policy"
    if "ask" in steps:
        return "ask", "policy"
    # An author who makes a content unreadable, or one of two judges fail, must not get the content through by that.
    nobody_objected = readable and not is_stopped and may_open([result])
    return ("allow", "policy") if nobody_objected else ("block", "policy")


def _list_steps(result: JudgeResult, policy: Policy) -> list[Step]:
    """List the steps of the options that apply to a result that is no pass; the strictest of them counts."""
    steps: list[Step] = [_choose_step_for_failure(result, policy)] if result.outcome == "failed" else []
    if _was_tampered_with(result):
        return [*steps, policy.on_tampering]
    return steps or [policy.on_undecided]


def was_failed_by_rule(result: JudgeResult) -> bool:
    """Return whether a failed ``error`` rule decided, before any judge was asked."""
    # A chain's seat that judges in code also gives decided_by="rule", but it is a judge.
    has_seats = isinstance(result, JudgeChainResult) and result.results
    return result.outcome == "failed" and result.decided_by == "rule" and not has_seats


def _choose_step_for_failure(result: JudgeResult, policy: Policy) -> Step:
    """Return the step for a failed content: ``on_rule`` if a rule decided, else ``on_failed``."""
    # `or`: the type allows None, which __post_init__ has replaced.
    return (policy.on_rule or policy.on_failed) if was_failed_by_rule(result) else policy.on_failed


def _was_tampered_with(result: JudgeResult) -> bool:
    """Return whether a result, or that of a seat at any depth, is undecided because of tampering."""
    if result.undecided_because == "tampering":
        return True
    return isinstance(result, JudgeChainResult) and any(_was_tampered_with(seat) for seat in result.results)
