from adjudge.rules.rule import Rule as Rule
from adjudge.rules.ruleset import Rules as Rules
from adjudge.rules.ruleset import load_rules as load_rules
from adjudge.rules.shipped import SHIPPED as SHIPPED
from adjudge.rules.shipped import as_rule as as_rule
from adjudge.rules.shipped import rule_from_spec as rule_from_spec
