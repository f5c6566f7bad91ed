"""The rubric and rules of a run, rebuilt from its files; a function that these name is never imported or called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adjudge.errors import UsageError
from adjudge.result import Severity
from adjudge.rubric.rubric import Criterion, Rubric
from adjudge.rules.rule import Rule
from adjudge.rules.shipped import rule_from_spec


def rebuild_rubric(recorded: Mapping[str, Any]) -> Rubric:
    """Rebuild the rubric of a manifest. A rule that is a function of the user raises ``UsageError`` when it is checked.

    Raises ``UsageError`` for a rubric that cannot be read.
    """
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
    """Rebuild a criterion of a recorded rubric; with ``weight``, it has that weight and no threshold of its own."""
    members = dict(recorded)
    spec = members.get("rule")
    if spec is not None and _is_code(spec):
        members["rule"] = Rule(name=members["name"], evaluate=_refuse_code, spec=dict(spec))
    if weight is not None:
        members["weight"] = weight
        members.pop("threshold", None)
    return Criterion(**members)


def rebuild_rule(*, name: str, severity: Severity, spec: Mapping[str, Any]) -> Rule:
    """Rebuild a rule of a kept case. One that is a function of the user raises ``UsageError`` when it is checked."""
    if _is_code(spec):
        return Rule(name=name, severity=severity, evaluate=_refuse_code, spec=dict(spec))
    return rule_from_spec(spec, name=name)


def _is_code(spec: Mapping[str, Any]) -> bool:
    """Return whether a recorded rule is a function of the user, and no shipped rule.

    Such a function is not imported: the folder of a run may come from a stranger, who could name any function.
    """
    return not spec or "python" in spec or spec.get("name") == "python"


def _refuse_code(*_: object) -> bool:
    """Raise ``UsageError`` in place of a rule that is a function of the user."""
    raise UsageError("this rule is code, which a run does not hold; hand the rubric or the rule in")
