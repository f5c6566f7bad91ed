"""What a rule is: a deterministic check with a name, a severity and a function.

A rule asks no model and costs nothing, so it goes first. A rule that raises, or answers with something that is
neither a boolean nor a ``RuleResult``, has failed and says why: a broken check must not let anything through.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from adjudge._tasks import count_cancellations
from adjudge.result import RuleResult, Severity
from adjudge.rules._words import flatten


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A deterministic check of some content."""

    name: str
    evaluate: Callable[..., Any] = field(repr=False)
    """Takes the content (and, with ``needs_reference``, the reference after it); returns a boolean or a
    ``RuleResult``, or an awaitable of either."""
    description: str = ""
    severity: Severity = "error"
    """A failed ``error`` rule decides; a ``warning`` is shown to the judge; ``info`` is recorded."""
    needs_reference: bool = False
    spec: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """The rule as data (``{"regex": "..."}``), for digests and files; a function is ``{"python": "module:name"}``."""

    @property
    def kind(self) -> str:
        """What sort of rule it is: ``regex`` for ``{"regex": ...}``; a rule without data has only its name."""
        return str(self.spec.get("name") or next(iter(self.spec), self.name))

    async def check(self, content: Any, reference: Any = None) -> RuleResult:
        """Evaluate the rule; whatever goes wrong inside is a failed result with the reason, never an exception."""
        if self.needs_reference and reference is None:
            return self._say(passed=False, message="needs a reference to compare with, and none was given")
        cancelled = count_cancellations()
        try:
            said = self.evaluate(content, reference) if self.needs_reference else self.evaluate(content)
            if inspect.isawaitable(said):
                said = await said
        except asyncio.CancelledError:
            if count_cancellations() > cancelled:
                raise
            return self._say(passed=False, message="the rule cancelled itself")
        except (Exception, SystemExit) as error:  # noqa: BLE001 - any failure of a check is a failed check
            return self._say(passed=False, message=f"the rule raised {type(error).__name__}: {flatten(str(error))}")
        if isinstance(said, RuleResult) and isinstance(said.passed, bool):
            return replace(said, name=self.name, severity=self.severity)
        if isinstance(said, bool):
            return self._say(passed=said, message=self.description)
        return self._say(passed=False, message=f"the rule returned {type(said).__name__}, not a boolean or RuleResult")

    def _say(self, *, passed: bool, message: str) -> RuleResult:
        return RuleResult(name=self.name, passed=passed, severity=self.severity, message=message)
