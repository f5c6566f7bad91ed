"""Criteria that rows bring: read only when that was asked for, and never as a path or as code.

Whoever writes the rows of a log wants them to pass. So a file words no instruction to a judge and lowers no threshold
unless the caller says that it is a suite of their own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from adjudge.dataset.case import OWN_KEYS
from adjudge.dataset.fields import find_field, read_json_cell, read_label
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_flag
from adjudge.formats.text import flatten, show
from adjudge.rubric.file import SHIPPED_RUBRICS, load_rubric
from adjudge.rubric.rubric import Rubric, make_rubric
from adjudge.rules.rule import Rule
from adjudge.rules.ruleset import load_rules

LARGEST = 100_000
"""Characters of what one row says of how it is judged, as JSON: all of it is put to a judge as instructions."""

MOST_CRITERIA = 64
"""Criteria of one row."""


_NAMES = frozenset([*OWN_KEYS, *(f"{key}.json" for key in OWN_KEYS)])
"""The names of fields by which a row may say how it is judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseCriteria:
    """The names under which rows may say how they are judged, if they may.

    Args:
        members: True if ``criteria``, ``rubric``, ``rules`` and ``threshold`` of a row count.
        criteria_field: The field that holds the criteria, whatever its name; nothing else of a row counts for that.
        rubrics: The rubrics that a row may name, beside the shipped ones.
        table: True if rows come from a table, whose cells are texts.
    """

    members: bool = False
    """True if ``criteria``, ``rubric``, ``rules`` and ``threshold`` of a row count."""
    criteria_field: str | None = None
    """The field that holds the criteria, whatever its name; nothing else of a row counts for that."""
    rubrics: Mapping[str, Rubric] = field(default_factory=dict)
    """The rubrics that a row may name, beside the shipped ones."""
    table: bool = False
    """True if rows come from a table, whose cells are texts."""

    @property
    def is_asked(self) -> bool:
        """Return whether anything of a row counts."""
        return self.members or self.criteria_field is not None

    def may_apply(self, row: Mapping[str, Any]) -> bool:
        """Return whether a row has anything that says how it is judged, or might.

        Args:
            row: The fields of a row by their names.
        """
        return self.criteria_field is not None or not _NAMES.isdisjoint(row)

    def split_row(self, row: Mapping[str, Any], mapped: Iterable[str]) -> SplitRow:
        """Split a row into how it is judged and the rest.

        Raises ``UsageError`` for what cannot be judged by.

        Args:
            row: The fields of a row by their names.
            mapped: The fields of the row that are other parts of the case, and so not taken for how it is judged.
        """
        if not self.may_apply(row):
            return SplitRow(rest=dict(row), criteria={}, ignored=())  # nearly always
        rest, criteria, ignored = dict(row), dict[str, Any](), list[str]()
        if self.criteria_field is not None:
            criteria["criteria"] = self._find_criteria(row, self.criteria_field)
            rest.pop(self.criteria_field, None)
        used_fields = {*mapped, *([self.criteria_field] if self.criteria_field is not None else [])}
        for key in OWN_KEYS:
            for name in (key, f"{key}.json") if self.table else (key,):
                if name not in rest or name in used_fields:
                    continue
                is_empty = rest[name] is None or (self.table and rest[name] == "")
                is_ignored = not self.members or (key == "criteria" and self.criteria_field is not None)
                if is_empty and self.members:
                    rest.pop(name)
                elif is_empty:
                    continue
                elif is_ignored:
                    ignored.append(name)
                elif criteria.get(key) is not None:
                    raise UsageError(f"{key!r} is given twice, by two columns; keep one")
                else:
                    criteria[key] = self._read_value(name, rest.pop(name))
        return SplitRow(rest=rest, criteria=self._check_own_terms(criteria), ignored=tuple(ignored))

    def _find_criteria(self, row: Mapping[str, Any], name: str) -> Any:
        """Find the criteria of a row in the field of this name; ``None`` for an empty cell of a table."""
        value = find_field(row, name)
        return None if self.table and value == "" else self._read_value(name, value)

    def _read_value(self, name: str, value: Any) -> Any:
        """Read the value of a field: as JSON if it is a column of a table that is named so, else as it is."""
        return read_json_cell(name, value) if self.table and name.endswith(".json") else value

    def _check_own_terms(self, criteria: Mapping[str, Any]) -> dict[str, Any]:
        """Check the criteria, rubric, rules and threshold of a row, and return them as arguments of ``Case``.

        Raises ``UsageError``.
        """
        checked = {name: value for name, value in criteria.items() if value is not None}
        if not checked:
            return checked
        if len(json.dumps(checked, default=str)) > LARGEST:
            raise UsageError(f"what it says of how it is judged is longer than {LARGEST:,} characters; shorten it")
        if "criteria" in checked:
            _check_criteria(checked["criteria"])
        if "rubric" in checked:
            checked["rubric"] = self._find_rubric(checked["rubric"])
        if "rules" in checked:
            checked["rules"] = _read_rules(checked["rules"])
        if self.table and "threshold" in checked:
            checked["threshold"] = read_label(checked["threshold"])
        return checked

    def _find_rubric(self, source: Any) -> Rubric:
        """Find the rubric that a case brings or names; a path is never opened. Raises ``UsageError``."""
        if isinstance(source, Mapping):
            if source.get("model") is not None:
                raise UsageError("its rubric names a model; who is asked is said by the caller, so leave it out")
            rubric = load_rubric(source)
            if len(rubric.criteria) > MOST_CRITERIA:
                raise UsageError(f"its rubric has {len(rubric.criteria)} criteria, and at most {MOST_CRITERIA} may be")
            return rubric
        if isinstance(source, str) and source in self.rubrics:
            return self.rubrics[source]
        # Compared with the shipped names first, because ``load_rubric`` also opens paths: data must not choose a file.
        if source in SHIPPED_RUBRICS:
            return load_rubric(source)
        names = flatten(", ".join([*self.rubrics, *SHIPPED_RUBRICS]), 300)
        raise UsageError(
            f"its rubric must be an object, or the name of a rubric that is known here, and never a path; "
            f"got {show(source)} (there are {names})"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitRow:
    """A row, split into how it is judged and the rest."""

    rest: dict[str, Any]
    """The fields that are not about how it is judged."""
    criteria: dict[str, Any]
    """The arguments of ``Case`` that say how it is judged."""
    ignored: tuple[str, ...]
    """The fields that say more, which nobody asked for; they are in the rest."""


def read_case_criteria(
    case_criteria: object, criteria_field: object, rubrics: Mapping[str, Rubric] | None, *, table: bool
) -> CaseCriteria:
    """Read the options of a caller; raises ``UsageError`` for a value that makes no sense."""
    check_flag("case_criteria", case_criteria)
    if criteria_field is not None and (not isinstance(criteria_field, str) or not criteria_field):
        raise UsageError(
            f"criteria_field must be the name of a field, got {show(criteria_field)}", argument="criteria_field"
        )
    return CaseCriteria(
        members=bool(case_criteria),
        criteria_field=criteria_field,
        rubrics={} if rubrics is None else rubrics,
        table=table,
    )


def _check_criteria(criteria: Any) -> None:
    """Raise ``UsageError`` for criteria of a row that have the wrong type, are too many, or make no rubric."""
    if not isinstance(criteria, str | list | Mapping):
        raise UsageError(
            f"its criteria must be a sentence, a list of them, or names with sentences; got {show(criteria)}"
        )
    if not isinstance(criteria, str) and len(criteria) > MOST_CRITERIA:
        raise UsageError(f"it has {len(criteria)} criteria, and at most {MOST_CRITERIA} may be; put some together")
    make_rubric(criteria)  # raises for criteria of which no rubric can be made


def _read_rules(rules: Any) -> tuple[Rule, ...]:
    """Read the rules of a row as a rule file is read: shipped rules alone, and nothing that would run code."""
    return tuple(load_rules({"rules": [rules] if isinstance(rules, str) else rules}))
