"""Deterministic checks: no model, no cost, no waiting."""

from adjudge.rules._set import Rules
from adjudge.rules._shipped import SHIPPED, as_rule, rule_from_spec
from adjudge.rules._types import Rule

__all__ = ["SHIPPED", "Rule", "Rules", "as_rule", "rule_from_spec"]
