"""The verdicts of firewalls, as values.

They are decided in ``input.py`` (``_conclude``) and ``prompt.py`` (``sort_rules``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from adjudge.errors import AdjudgeError, UsageError
from adjudge.formats.notebook import render_fragment
from adjudge.formats.record import Layout, read_record, write_record
from adjudge.result import JudgeChainResult


class InputRejected(AdjudgeError):
    """An input firewall stopped a call before the function was called.

    ``recovery`` is one sentence on what the caller can do. The error's text quotes neither the arguments nor a judge,
    so you can show it to the sender of the arguments, even to a model. Do not show ``threats`` and ``verdict``, which
    quote both.

    Args:
        verdict: Why it was stopped.
        code: The firewall's error code.
        tool: The name of the function.
    """

    recovery: str = (
        "Send the call again with plain values: no instructions, no code, no paths outside the task, nothing encoded."
    )

    def __init__(self, verdict: InputVerdict, *, code: str, tool: str) -> None:
        super().__init__(f"{code}: the arguments of {tool} were not accepted, and it did not run. {self.recovery}")
        self.verdict = verdict
        self.code = code
        self.tool = tool

    @property
    def threats(self) -> tuple[Threat, ...]:
        """The threats that the judges named; empty if they named none or could not be asked."""
        return self.verdict.threats


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedRule:
    """One rule that must not reach a prompt."""

    index: int
    """Its place in the list that was checked, from 1."""
    rule: str
    """Its text, as you passed it."""
    reason: str
    """The judges' reasons, or why the whole batch is rejected; it may quote judges and the rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirewallVerdict:
    """The rules that may reach a prompt, and those that may not; true exactly when all of them may.

    Every rule is in ``allowed`` or in ``rejected``, each in the order of the list.
    """

    schema: ClassVar[str] = "adjudge/firewall-verdict/1"
    _layout: ClassVar[Layout] = Layout(
        computed={
            "allowed": lambda verdict: [_make_valid(rule) for rule in verdict.allowed],
            "rejected": lambda verdict: [_write_rejected(rejected) for rejected in verdict.rejected],
        },
        last=("passed",),
        readers={"chain_result": JudgeChainResult.from_dict},
    )

    allowed: tuple[str, ...]
    """The rules that may be used."""
    rejected: tuple[RejectedRule, ...] = ()
    """The others, each with the reason."""
    fallback_triggered: bool = False
    """True when judges were asked and a policy decided: nobody could, or one of them contradicted itself."""
    duration_ms: float = 0.0
    """The time that the check took, in milliseconds."""
    chain_result: JudgeChainResult | None = None
    """The result with every judge's answer; ``None`` when nobody was asked."""

    @property
    def passed(self) -> bool:
        """True when nothing was rejected."""
        return not self.rejected

    def __bool__(self) -> bool:
        # Without this every verdict is true, and `if firewall.check_sync(rules):` says nothing.
        return self.passed

    def _repr_html_(self) -> str:
        title = f"{len(self.allowed)} of {len(self.allowed) + len(self.rejected)} rules may reach the prompt"
        rows = [(rejected.index, rejected.rule, rejected.reason) for rejected in self.rejected]
        return render_fragment(title, columns=("place", "rejected rule", "reason"), rows=rows)

    def to_dict(self) -> dict[str, Any]:
        """Write the verdict as plain data."""
        return write_record(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back ``data`` that ``to_dict`` wrote; raises ``UsageError`` when it is something else.

        Args:
            data: What ``to_dict`` wrote.
        """
        verdict = read_record(cls, data)
        if data.get("passed") is not verdict.passed:
            raise UsageError("this is not a dictionary that FirewallVerdict.to_dict wrote: passed contradicts rejected")
        return verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Threat:
    """One thing a judge found in arguments. All three texts are a judge's words, and may quote the arguments."""

    field: str
    """The argument it is in, as the judge names it; a judge can name one that does not exist."""
    type: str
    """One of ``THREATS``, or a word of the judge's own."""
    reason: str
    """The reason for which it is a threat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputVerdict:
    """The answer whether arguments may reach a function; true exactly when they may."""

    schema: ClassVar[str] = "adjudge/input-verdict/1"
    _layout: ClassVar[Layout] = Layout(readers={"chain_result": JudgeChainResult.from_dict})

    passed: bool
    """True if the function may be called with them."""
    threats: tuple[Threat, ...] = ()
    """The threats that any judge named; empty if the arguments passed."""
    fallback_triggered: bool = False
    """True when judges were asked and a policy decided: nobody could, or one of them contradicted itself."""
    duration_ms: float = 0.0
    """The time that the check took, in milliseconds."""
    chain_result: JudgeChainResult | None = None
    """The result with every judge's answer; ``None`` when nobody was asked."""
    detail: str = ""
    """One sentence on why they did not pass."""

    def __post_init__(self) -> None:
        if self.passed and self.threats:
            raise UsageError(f"a verdict that passes has no threats, got {len(self.threats)}; leave passed false")

    def __bool__(self) -> bool:
        return self.passed

    def _repr_html_(self) -> str:
        title = f"the arguments {'may' if self.passed else 'must not'} reach the function"
        rows = [(threat.field, threat.type, threat.reason) for threat in self.threats]
        return render_fragment(title, facts={"why": self.detail}, columns=("field", "threat", "reason"), rows=rows)

    def to_dict(self) -> dict[str, Any]:
        """Write the verdict as plain data."""
        return write_record(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back ``data`` that ``to_dict`` wrote; raises ``UsageError`` when it is something else.

        Args:
            data: What ``to_dict`` wrote.
        """
        return read_record(cls, data)


def _write_rejected(rejected: RejectedRule) -> dict[str, Any]:
    """Write a rejected rule as plain data."""
    return {"index": rejected.index, "rule": _make_valid(rejected.rule), "reason": rejected.reason}


def _make_valid(rule: str) -> str:
    """Replace lone surrogates in a rule by escapes, so that every store can hold it."""
    return rule.encode(errors="backslashreplace").decode()
