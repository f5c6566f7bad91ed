"""Several rules as one value: ordered, each under a name of its own, never changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, overload

from adjudge._sync import run_sync
from adjudge.errors import UsageError
from adjudge.result import RuleResult
from adjudge.rules._shipped import as_rule
from adjudge.rules._types import Rule
from adjudge.rules._words import show

AnyRule = Rule | Mapping[str, Any] | Callable[..., Any] | str
"""Whatever is a rule, or describes one."""


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Rules(Sequence[Rule]):
    """Rules in a fixed order, to be evaluated together, and accepted wherever a list of rules is.

    ``Rules([...])`` takes rules, functions, names and mappings; ``Rules({"name": ...})`` names each. Two rules whose
    names are alike but for hyphens and underscores are a ``UsageError``, so that a name stands for one rule.
    """

    schema: ClassVar[str] = "adjudge/rules/1"

    _rules: tuple[Rule, ...]
    _places: Mapping[str, int] = field(compare=False)

    def __init__(self, rules: Iterable[AnyRule] | Mapping[str, AnyRule] = ()) -> None:
        made = _read_rules(rules)
        places: dict[str, int] = {}
        for place, rule in enumerate(made):
            first = places.setdefault(_fold(rule.name), place)
            if first != place:
                raise UsageError(
                    f"rules {first + 1} and {place + 1} are both called {show(rule.name)}; give each its own name, "
                    "as in Rules({'no-order-number': {'regex': '...'}})"
                )
        object.__setattr__(self, "_rules", made)
        object.__setattr__(self, "_places", places)

    def get(self, name: str) -> Rule | None:
        """The rule of this name, hyphens and underscores being alike; ``None`` when there is none."""
        place = self._places.get(_fold(name)) if isinstance(name, str) else None
        return None if place is None else self._rules[place]

    def list(self) -> tuple[Rule, ...]:
        """All rules, in order."""
        return self._rules

    async def evaluate(self, content: Any, reference: Any = None) -> tuple[RuleResult, ...]:
        """What each rule says about the content, in order: every rule runs, whatever those before it said.

        One follows the other, asynchronous ones too. A rule that raises, or that needs the reference and has none, has
        failed and says why; nothing is raised.
        """
        return tuple([await rule.check(content, reference) for rule in self._rules])

    def evaluate_sync(self, content: Any, reference: Any = None) -> tuple[RuleResult, ...]:
        """``evaluate`` for callers without an event loop."""
        return run_sync(self.evaluate(content, reference))

    def to_dict(self) -> dict[str, Any]:
        """The rules as data, as ``load_rules`` reads them; one that is a function is described and not read back."""
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
    if isinstance(rules, Mapping):
        return tuple(as_rule(rule, name=name) for name, rule in rules.items())
    if isinstance(rules, str | Rule) or not isinstance(rules, Iterable):
        raise UsageError(f"Rules takes a list of rules, or a mapping of names to rules; got {show(rules)}")
    return tuple(map(as_rule, rules))


def _fold(name: str) -> str:
    return name.replace("-", "_")
