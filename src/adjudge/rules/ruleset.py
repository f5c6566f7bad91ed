"""``Rules``: an immutable, ordered set of rules with unique names, and how one is read from a file.

How failed rules change a judgement is decided in ``judges/evaluate.py`` (``decide_by_rules``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, overload

from adjudge.errors import UsageError
from adjudge.formats.files import Place, check_keys, read_source
from adjudge.formats.text import quote, show
from adjudge.result import RuleResult
from adjudge.rules.rule import Rule
from adjudge.rules.shipped import as_rule, rule_from_spec
from adjudge.sync import make_sync_method

AnyRule = Rule | Mapping[str, Any] | Callable[..., Any] | str
"""Anything that is a rule, or describes one."""


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Rules(Sequence[Rule]):
    """Rules in a fixed order, evaluated together. You can use it wherever a list of rules is accepted.

    Raises ``UsageError`` if two names differ only in hyphens and underscores, so that each name means one rule.

    Args:
        rules: Rules, functions, names and mappings; ``Rules({"name": ...})`` names each.
    """

    schema: ClassVar[str] = "adjudge/rules/1"

    _rules: tuple[Rule, ...]
    _indices: Mapping[str, int] = field(compare=False)
    """The index of each rule in ``_rules``, by its folded name."""

    def __init__(self, rules: Iterable[AnyRule] | Mapping[str, AnyRule] = ()) -> None:
        rule_list = _read_rules(rules)
        indices: dict[str, int] = {}
        for index, rule in enumerate(rule_list):
            first = indices.setdefault(_fold_name(rule.name), index)
            if first != index:
                raise UsageError(
                    f"rules {first + 1} and {index + 1} are both called {show(rule.name)}; give each its own name, "
                    "as in Rules({'no-order-number': {'regex': '...'}})",
                    argument="rules",
                )
        object.__setattr__(self, "_rules", rule_list)
        object.__setattr__(self, "_indices", indices)

    def get(self, name: str) -> Rule | None:
        """Return the rule of this name, or ``None``. Hyphens and underscores are the same.

        Args:
            name: The name of the rule.
        """
        index = self._indices.get(_fold_name(name)) if isinstance(name, str) else None
        return None if index is None else self._rules[index]

    def list(self) -> tuple[Rule, ...]:
        """List all rules, in order."""
        return self._rules

    async def evaluate(self, content: object, reference: object = None) -> tuple[RuleResult, ...]:
        """Run every rule on the content, one after the other, and return the results in order.

        A rule that raises, or that needs a reference and has none, fails and says why; no exception is raised.

        Args:
            content: What is looked at: a text, a JSON value, messages.
            reference: A known good answer, for rules that compare with one.
        """
        return tuple([await rule.check(content, reference) for rule in self._rules])

    evaluate_sync = make_sync_method(evaluate)

    def to_dict(self) -> dict[str, Any]:
        """Write the rules as data, as ``load_rules`` reads them; a function is described and cannot be read back."""
        # Not by the codec, which writes the fields of a dataclass: the data of Rules is that of a rule file.
        return {"schema": self.schema, "rules": {rule.name: dict(rule.spec) for rule in self._rules}}

    @overload
    def __getitem__(self, place: int) -> Rule: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Rule, ...]: ...

    def __getitem__(self, place: int | slice) -> Rule | tuple[Rule, ...]:
        return self._rules[place]

    def __iter__(self) -> Iterator[Rule]:
        return iter(self._rules)

    def __len__(self) -> int:
        return len(self._rules)

    def __repr__(self) -> str:
        return f"Rules({', '.join(rule.name for rule in self._rules)})"


def _read_rules(rules: Any) -> tuple[Rule, ...]:
    """Make a rule of each entry of a list, or of a mapping from names. Raises ``UsageError`` for a single rule."""
    if isinstance(rules, Mapping):
        return tuple(as_rule(rule, name=name) for name, rule in rules.items())
    if isinstance(rules, str | Rule) or not isinstance(rules, Iterable):
        raise UsageError(
            f"Rules takes a list of rules, or a mapping of names to rules; got {show(rules)}", argument="rules"
        )
    return tuple(map(as_rule, rules))


def _fold_name(name: str) -> str:
    """Replace hyphens by underscores, because they are equal in names of rules."""
    return name.replace("-", "_")


MAX_RULES = 64
"""The most rules of one file: they run one after the other, and nothing else runs meanwhile."""


def load_rules(source: Rules | Mapping[str, Any] | str | os.PathLike[str]) -> Rules:
    """Load rules from a file or a mapping.

    A file has ``rules``: a list of rules as data, or a mapping of names to them, and may say ``schema:
    adjudge/rules/1``. Raises ``UsageError`` for a file that cannot be read and for everything that is wrong inside it,
    a rule that would run code (``python:``) among them.

    Args:
        source: A path (``.yaml``, ``.yml``, ``.json``, ``.toml``, and YAML without a suffix), a mapping with the keys
            of a rule file, or ``Rules`` (returned as they are).
    """
    if isinstance(source, Rules):
        return source
    if isinstance(source, Mapping):
        return _make_rules(source, Place("rules"))
    if not isinstance(source, str | os.PathLike):
        raise UsageError(
            f"rules are read from a path or a mapping, not from {type(source).__name__}", argument="source"
        )
    return _make_rules(*read_source(source, noun="a rule file"))


def _make_rules(document: Any, place: Place) -> Rules:
    """Make the rules of a rule file's content; errors name the place in the file. Raises ``UsageError``."""
    members = check_keys(document, ("schema", "$schema", "rules"), ("rules",), "a rule file", place)
    if members.get("schema", Rules.schema) != Rules.schema:
        raise place.at("schema").error(f"this version reads {Rules.schema!r}, not {show(members['schema'])}")
    items = members["rules"]
    if not isinstance(items, list | tuple | Mapping) or not items:
        raise place.at("rules").error(f"must be a list of rules, or a mapping of names to rules; got {show(items)}")
    if len(items) > MAX_RULES:
        raise place.at("rules").error(f"has {len(items):,} rules, and at most {MAX_RULES} may stand in one file")
    return Rules(list(_read_items(items, place.at("rules"))))


def _read_items(items: Any, place: Place) -> Iterator[Rule]:
    """Yield the rules in order. Raises ``UsageError`` for two names that differ only in hyphens and underscores."""
    first_keys: dict[str, Any] = {}
    pairs: Any = items.items() if isinstance(items, Mapping) else enumerate(items)
    for key, spec in pairs:
        if not isinstance(key, str) and isinstance(items, Mapping):
            raise place.error(f"a rule's name must be a text, got {show(key)}")
        rule_place = place.at(key)
        rule = _read_rule(spec, key if isinstance(key, str) else None, rule_place)
        first_key = first_keys.setdefault(rule.name.replace("-", "_"), key)
        if first_key != key:
            first_rule = show(first_key) if isinstance(first_key, str) else f"rules[{first_key}]"
            problem = f"{quote(rule.name)} is already the name of {first_rule}"
            raise rule_place.error(f"{problem}; give each its own, as in rules: {{short: {{length: 80}}, plain: ...}}")
        yield rule


def _read_rule(spec: Any, name: str | None, place: Place) -> Rule:
    """Make one rule of a rule file; ``name`` is its key, if the file has a mapping. Errors name the place."""
    if not isinstance(spec, str | Mapping):
        raise place.error(f"a rule is a mapping like {{regex: ...}} or a rule's name, got {show(spec)}")
    try:
        return rule_from_spec({"name": spec} if isinstance(spec, str) else spec, name=name)
    except UsageError as error:
        raise place.error(error) from None
