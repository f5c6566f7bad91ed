"""The rubric and rules that a run recorded, as values again; a function that it names is never looked up or called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adjudge.errors import UsageError
from adjudge.result import Severity
from adjudge.rubric.rubric import Criterion, Rubric
from adjudge.rules.rule import Rule
from adjudge.rules.shipped import rule_from_spec


def rebuild_rubric(recorded: Mapping[str, Any]) -> Rubric:
    """Rebuild the rubric of a manifest; a rule that is code is named and never imported. Raises ``UsageError``."""
    try:
        return Rubric(
            name=recorded["name"],
            criteria=[rebuild_criterion(criterion) for criterion in recorded["criteria"]],
            passing_threshold=recorded["passing_threshold"],
            scale=recorded.get("scale") or (0.0, 1.0),
        )
    except UsageError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UsageError(f"the run's rubric cannot be read ({error}); name one with --rubric") from None


def rebuild_criterion(recorded: Mapping[str, Any], *, weight: float | None = None) -> Criterion:
    """Rebuild a criterion of such a rubric; with ``weight``, one that weighs that and gates nothing."""
    members = dict(recorded)
    spec = members.get("rule")
    if spec is not None and _is_code(spec):
        members["rule"] = Rule(name=members["name"], evaluate=_refuse_code, spec=dict(spec))
    if weight is not None:
        members["weight"] = weight
        members.pop("threshold", None)
    return Criterion(**members)


def rebuild_rule(*, name: str, severity: Severity, spec: Mapping[str, Any]) -> Rule:
    """Rebuild a rule of a case that was kept; one that is code fails wherever it is asked."""
    if _is_code(spec):
        return Rule(name=name, severity=severity, evaluate=_refuse_code, spec=dict(spec))
    return rule_from_spec(spec, name=name)


def _is_code(spec: Mapping[str, Any]) -> bool:
    # The folder of a run may come from anybody: what it calls a function is not looked up, let alone called.
    return not spec or "python" in spec or spec.get("name") == "python"


def _refuse_code(*_: object) -> bool:
    raise UsageError("this rule is code, which a run does not hold; hand the rubric or the rule in")
