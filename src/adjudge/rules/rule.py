"""``Rule``: a deterministic check with a name, a severity and a function.

A rule asks no model and costs nothing, so rules run before a judge. A rule that raises, or returns something other than
a boolean or a ``RuleResult``, has failed and says why: a broken check must not let anything through.

The checks of the shipped rules are in the other modules here; the table in ``shipped.py`` lists them.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from adjudge.concurrency import Timeout, count_cancellations, describe_error
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_choice
from adjudge.formats.text import flatten, show
from adjudge.panic import convert_panics
from adjudge.result import RuleResult, Severity
from adjudge.rules.rule_threads import is_long, run_in_thread

DEFAULT_SEVERITY: Severity = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A deterministic check of some content.

    Args:
        name: The rule's name; results have it.
        evaluate: Takes the content (and, with ``needs_reference``, the reference after it); returns a boolean or a
            ``RuleResult``, or an awaitable of either.
        description: The check that it makes, in one sentence.
        severity: A failed ``error`` rule decides; a ``warning`` is shown to the judge; ``info`` is recorded.
        needs_reference: True if it compares with the reference; without one, it does not pass.
        spec: The rule as data (``{"regex": "..."}``), for digests and files; a function is ``{"python":
            "module:name"}``.
        metadata: Yours: an owner, a link to a policy. Nothing reads it.
    """

    name: str
    """The rule's name; results have it."""
    evaluate: Callable[..., Any] = field(repr=False)
    """Takes the content (and, with ``needs_reference``, the reference after it); returns a boolean or a
    ``RuleResult``, or an awaitable of either."""
    description: str = ""
    """The check that it makes, in one sentence."""
    severity: Severity = DEFAULT_SEVERITY
    """A failed ``error`` rule decides; a ``warning`` is shown to the judge; ``info`` is recorded."""
    needs_reference: bool = False
    """True if it compares with the reference; without one, it does not pass."""
    spec: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """The rule as data (``{"regex": "..."}``), for digests and files; a function is ``{"python": "module:name"}``."""
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Yours: an owner, a link to a policy. Nothing reads it."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise UsageError(f"a rule's name must be a text that is not empty, got {show(self.name)}")
        if not isinstance(self.description, str):
            raise UsageError(f"rule {show(self.name)}: the description must be a text, got {show(self.description)}")
        levels = get_args(Severity)
        check_choice("severity", self.severity, levels, where=f"rule {show(self.name)}")
        if not callable(self.evaluate):
            raise UsageError(
                f"rule {show(self.name)}: evaluate must be a function of the content, got {show(self.evaluate)}"
            )

    @property
    def kind(self) -> str:
        """The sort of rule: ``regex`` for ``{"regex": ...}``; a rule without data has only its name."""
        return str(self.spec.get("name") or next(iter(self.spec), self.name))

    async def check(self, content: object, reference: object = None) -> RuleResult:
        """Evaluate the rule. An exception in it becomes a failed result with the reason.

        A shipped rule looks at long content in a thread; a function of yours is called in the event loop's.

        Args:
            content: What is looked at: a text, a JSON value, messages.
            reference: A known good answer, for rules that compare with one.
        """
        if self.needs_reference and reference is None:
            return self._make_result(passed=False, message="needs a reference to compare with, and none was given")
        cancellations_before = count_cancellations()
        try:
            arguments = (content, reference) if self.needs_reference else (content,)
            # Only shipped rules go into a thread: a user's function may work in its own thread only.
            with convert_panics():
                if getattr(self.evaluate, "is_thread_safe", False) and any(map(is_long, arguments)):
                    answer = await run_in_thread(self.evaluate, *arguments)
                else:
                    answer = self.evaluate(*arguments)
            if inspect.isawaitable(answer):
                answer = await Timeout(None).run(answer, name=f"rule {self.name!r}")
        except asyncio.CancelledError:
            if count_cancellations() > cancellations_before:  # the caller was cancelled, not the rule by itself
                raise
            return self._make_result(passed=False, message="the rule cancelled itself")
        except Exception as error:  # noqa: BLE001 - a check that breaks has not passed
            return self._make_result(passed=False, message=f"the rule raised {flatten(describe_error(error))}")
        if isinstance(answer, RuleResult) and isinstance(answer.passed, bool):
            return replace(answer, name=self.name, severity=self.severity)
        if isinstance(answer, bool):
            return self._make_result(passed=answer, message=self.description)
        return self._make_result(
            passed=False, message=f"the rule returned {type(answer).__name__}, not a boolean or RuleResult"
        )

    def _make_result(self, *, passed: bool, message: str) -> RuleResult:
        return RuleResult(name=self.name, passed=passed, severity=self.severity, message=message)
