"""Rules from files: YAML, JSON and TOML.

A file is data. It names shipped rules and nothing else, so one from somebody else runs no code; it is read as strictly
as a rubric is, and has at most as many rules.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from adjudge._sources import Place, check_keys, read_source
from adjudge.errors import UsageError
from adjudge.rules import Rule, Rules, rule_from_spec
from adjudge.rules._words import quote, show

MAX_RULES = 64
"""Rules of one file: they run one after the other, and nothing else runs meanwhile."""


def load_rules(source: Rules | Mapping[str, Any] | str | os.PathLike[str]) -> Rules:
    """The rules that ``source`` names.

    ``source`` is a path (``.yaml``, ``.yml``, ``.json``, ``.toml``, and YAML without a suffix), a mapping with the keys
    of a rule file, or ``Rules`` (returned as they are). A file has ``rules``: a list of rules as data, or a mapping of
    names to them, and may say ``schema: adjudge/rules/1``. Raises ``UsageError`` for a file that cannot be read and for
    everything that is wrong inside it, a rule that would run code (``python:``) among them.
    """
    if isinstance(source, Rules):
        return source
    if isinstance(source, Mapping):
        return _read_rules(source, Place("rules"))
    if not isinstance(source, str | os.PathLike):
        raise UsageError(f"rules are read from a path or a mapping, not from {type(source).__name__}")
    return _read_rules(*read_source(source, what="a rule file"))


def _read_rules(data: Any, place: Place) -> Rules:
    given = check_keys(data, ("schema", "$schema", "rules"), ("rules",), "a rule file", place)
    if given.get("schema", Rules.schema) != Rules.schema:
        raise place.at("schema").error(f"this version reads {Rules.schema!r}, not {show(given['schema'])}")
    items = given["rules"]
    if not isinstance(items, list | tuple | Mapping) or not items:
        raise place.at("rules").error(f"must be a list of rules, or a mapping of names to rules; got {show(items)}")
    if len(items) > MAX_RULES:
        raise place.at("rules").error(f"has {len(items):,} rules, and at most {MAX_RULES} may stand in one file")
    return Rules(list(_read_items(items, place.at("rules"))))


def _read_items(items: Any, place: Place) -> Iterator[Rule]:
    first: dict[str, Any] = {}
    pairs: Any = items.items() if isinstance(items, Mapping) else enumerate(items)
    for key, spec in pairs:
        if not isinstance(key, str) and isinstance(items, Mapping):
            raise place.error(f"a rule's name must be a text, got {show(key)}")
        here = place.at(key)
        rule = _read_rule(spec, key if isinstance(key, str) else None, here)
        at = first.setdefault(rule.name.replace("-", "_"), key)
        if at != key:
            said = f"{quote(rule.name)} is already the name of {show(at) if isinstance(at, str) else f'rules[{at}]'}"
            raise here.error(f"{said}; give each its own, as in rules: {{short: {{length: 80}}, plain: ...}}")
        yield rule


def _read_rule(spec: Any, name: str | None, place: Place) -> Rule:
    if not isinstance(spec, str | Mapping):
        raise place.error(f"a rule is a mapping like {{regex: ...}} or a rule's name, got {show(spec)}")
    try:
        return rule_from_spec({"name": spec} if isinstance(spec, str) else spec, name=name)
    except UsageError as error:
        raise place.error(error) from None
