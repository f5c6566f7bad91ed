"""Rubrics from files: YAML, JSON and TOML, and the rubrics that ship.

A file is read strictly: an unknown key, a key that is given twice, a value of the wrong type is an error that names
its place, and nothing is filled in by guessing. A file cannot run code and cannot make the reader slow: tags
that build objects, references that multiply and nesting without end are refused, and a file has at most 1 MB.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from adjudge.errors import Argument, UsageError
from adjudge.formats.files import Format, Place, check_keys, looks_like_path, parse_source, read_source
from adjudge.formats.json import read_json
from adjudge.formats.text import quote, show, suggest
from adjudge.rubric.rubric import Criterion, Rubric

SCHEMA = "adjudge/rubric/1"

MAX_RULES = 64
"""Criteria of one file that a rule decides: rules run one after the other, and nothing else runs meanwhile."""


SHIPPED_RUBRICS = (
    "code-quality",
    "security",
    "test-coverage",
    "accessibility",
    "documentation",
    "faithfulness",
    "answer-relevance",
    "correctness",
    "tool-call",
    "tool-use",
)


_THRESHOLD_KEYS = ("passing_threshold", "passingThreshold", "passThreshold", "passingScore", "threshold")

# "$schema" is how editors bind a JSON file to a schema; it says nothing about the rubric.
_RUBRIC_KEYS = ("schema", "$schema", "name", *_THRESHOLD_KEYS, "scale", "model", "criteria")

_CRITERION_KEYS = tuple(field.name for field in fields(Criterion))

# JSON and TOML have text as keys, so a level's score may be written as text there, as JSON writes numbers.
_NUMBER = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?")


def load_rubric(source: Rubric | Mapping[str, Any] | str | os.PathLike[str]) -> Rubric:
    """Load a rubric from a file, a mapping or its shipped name.

    Raises ``UsageError`` for a file that cannot be read and for mistakes in it.

    Args:
        source: A ``Rubric`` (returned as it is), a mapping with the keys of a rubric file, a path (any ``os.PathLike``,
            or a text with a separator or a suffix; ``.yaml``, ``.yml``, ``.json``, ``.toml``, and YAML without a
            suffix), or the name of a shipped rubric.
    """
    if isinstance(source, Rubric):
        return source
    if isinstance(source, Mapping):
        return rubric_from_dict(source)
    if isinstance(source, str) and not looks_like_path(source):
        return _load_shipped(source)
    if not isinstance(source, str | os.PathLike):
        raise UsageError(
            f"a rubric must be a Rubric, a mapping, a path or a shipped name, not {type(source).__name__}",
            argument="rubric",
        )
    stem = Path(source).stem
    hint = f"; for the shipped rubric write {stem!r}" if stem in SHIPPED_RUBRICS else ""
    return _read_rubric(*read_source(source, noun="a rubric", hint=hint))


def read_rubric(text: str, *, format: Format, where: str = "rubric") -> Rubric:  # noqa: A002 - the word for it
    """Read the rubric that a text holds; ``where`` is what error messages call it. Raises ``UsageError``."""
    return _read_rubric(*parse_source(text, format=format, where=where, noun="a rubric"))


def rubric_from_dict(data: Mapping[str, Any], *, where: str = "rubric") -> Rubric:
    """Read a rubric from plain data, as ``Rubric.to_dict`` and rubric files write it. Raises ``UsageError``."""
    return _read_rubric(data, Place(where))


def list_shipped() -> tuple[Rubric, ...]:
    """List the shipped rubrics, in the order of ``SHIPPED_RUBRICS``."""
    return tuple(_load_shipped(name) for name in SHIPPED_RUBRICS)


def rubric_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of rubric files, for editors; ``load_rubric`` refuses what it refuses."""
    text = (files("adjudge.rubric") / "shipped" / "rubric.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = read_json(text)
    return schema


def _read_rubric(document: Any, place: Place) -> Rubric:
    """Read a rubric from a file's data; raise ``UsageError`` that names the place of the mistake."""
    members = check_keys(document, _RUBRIC_KEYS, ("name", "criteria"), "a rubric", place)
    if members.pop("schema", SCHEMA) != SCHEMA:
        raise place.at("schema").error(f"this version reads {SCHEMA!r}, not {show(document['schema'])}")
    members.pop("$schema", None)
    threshold_keys = [threshold_key for threshold_key in _THRESHOLD_KEYS if threshold_key in members]
    if len(threshold_keys) > 1:
        raise place.at(threshold_keys[1]).error(
            f"{threshold_keys[0]} and {threshold_keys[1]} both give the passing threshold; keep one"
        )
    threshold_key = threshold_keys[0] if threshold_keys else _THRESHOLD_KEYS[0]
    if threshold_keys:
        members["passing_threshold"] = members.pop(threshold_key)
    if not isinstance(members["criteria"], list | tuple):
        raise place.at("criteria").error(f"must be a list of criteria, got {show(members['criteria'])}")
    _check_model(members.get("model"), place.at("model"))
    _check_rules(members["criteria"], place)
    criteria = [_read_criterion(row, place.at("criteria", index)) for index, row in enumerate(members["criteria"])]
    _check_unique(criteria, place)
    complete: dict[str, Any] = {**members, "criteria": tuple(criteria)}
    try:
        return Rubric(**complete)
    except UsageError as error:
        path = _find_faulty_path(members, criteria)
        path_in_file = [threshold_key if step == "passing_threshold" else step for step in path]
        raise place.at(*path_in_file).error(error) from None


def _read_criterion(row: Any, place: Place) -> Criterion:
    """Read a criterion from a file's data; raise ``UsageError`` that names the place of the mistake."""
    members = check_keys(row, _CRITERION_KEYS, ("name", "description"), "a criterion", place)
    if not isinstance(members.get("rule", {}), str | Mapping):
        problem = f"a rule is a mapping like {{regex: ...}} or a rule's name, got {show(members['rule'])}"
        raise place.at("rule").error(problem)
    _check_levels(members, place.at("levels"))
    try:
        return Criterion(**members)
    except UsageError as error:
        raise place.at(*_find_faulty_member(members)).error(error) from None


def _check_model(model: Any, place: Place) -> None:
    """Raise ``UsageError``, which names the place, for a model that a rubric may not name.

    ``Rubric`` refuses it as well. A rubric is data: it names a model, and no key, no address for a key, no file and no
    code.
    """
    if not isinstance(model, str):
        return
    prefix = model.strip().partition(":")[0]
    if "?" not in model and prefix not in ("python", "replay"):
        return
    name = show(model.partition("?")[0]) if "@" not in model else "the address"  # an address may hold a password
    fault = "options after '?'" if "?" in model else f"the prefix {prefix}:"
    raise place.error(
        f"{name} has {fault}; a rubric may name a provider's model and nothing else, the rest belongs to the judge"
    )


def _check_rules(criteria: Any, place: Place) -> None:
    """Raise ``UsageError`` for more criteria with a rule than a file may have."""
    count = sum(isinstance(criterion, Mapping) and criterion.get("rule") is not None for criterion in criteria)
    if count > MAX_RULES:
        problem = f"{count:,} criteria have a rule, and at most {MAX_RULES} may; split the rubric"
        raise place.at("criteria").error(problem)


def _check_levels(members: Mapping[str, Any], place: Place) -> None:
    """Raise ``UsageError`` for levels that are no mapping, fewer than two, or with a key that is no number."""
    levels = members.get("levels", {0: "", 1: ""})  # without levels, an example of right ones
    if not isinstance(levels, Mapping) or len(levels) < 2:
        raise place.error(
            f"levels map two or more scores to their meaning, like {{0: bad, 1: good}}; got {show(levels)}"
        )
    for key in levels:
        if isinstance(key, str) and not _NUMBER.fullmatch(key):
            raise place.at(key).error(f"a level is named by its score, a number; got {show(key)}")


def _check_unique(criteria: list[Criterion], place: Place) -> None:
    """Raise ``UsageError`` at the place of a criterion whose name an earlier one has."""
    first_index: dict[str, int] = {}
    for index, criterion in enumerate(criteria):
        if criterion.name in first_index:
            earlier = first_index[criterion.name]
            problem = f"{quote(criterion.name)} is already the name of criteria[{earlier}]; give each its own"
            raise place.at("criteria", index, "name").error(problem)
        first_index[criterion.name] = index


def _find_faulty_path(members: Mapping[str, Any], criteria: list[Criterion]) -> tuple[str | int, ...]:
    """Find the key or the criterion for which ``Rubric`` refuses these members.

    It is the first with which a rubric that is right otherwise is refused, in the order in which they are checked.
    """
    valid_criteria = (Criterion(name="x", description="x"),)
    for key in ("name", "passing_threshold", "scale", "model"):
        if key in members and _is_refused(Rubric, {"name": "x", "criteria": valid_criteria, key: members[key]}):
            return (key,)
    scale = {"scale": members["scale"]} if "scale" in members else {}
    for index, criterion in enumerate(criteria):
        if _is_refused(Rubric, {"name": "x", "criteria": (replace(criterion, weight=1.0),), **scale}):
            return ("criteria", index)
    return ("criteria",)


def _find_faulty_member(members: Mapping[str, Any]) -> tuple[str, ...]:
    """Find the first key with which a criterion that is right otherwise is refused; empty if there is none."""
    for key in _CRITERION_KEYS:
        if key in members and _is_refused(Criterion, {"name": "x", "description": "x", key: members[key]}):
            return (key,)
    return ()


def _is_refused(kind: type[Rubric | Criterion], arguments: dict[str, Any]) -> bool:
    """Return whether a class refuses these arguments with a ``UsageError``."""
    try:
        kind(**arguments)
    except UsageError:
        return True
    return False


_SENTENCE_HINT = ("; a sentence is given as ", Argument("criteria"), ", and to a gate as a rubric with one criterion")


@lru_cache(maxsize=len(SHIPPED_RUBRICS))
def _load_shipped(name: str) -> Rubric:
    """Load a shipped rubric.

    Raises ``UsageError`` for another name, with advice for a sentence, for the name of a file, or for a typing mistake.
    """
    if name in SHIPPED_RUBRICS:
        text = (files("adjudge.rubric") / "shipped" / f"{name}.yaml").read_text(encoding="utf-8")
        return read_rubric(text, format="yaml", where=f"shipped rubric {name!r}")
    hint: tuple[object, ...] = _SENTENCE_HINT if " " in name.strip() else (suggest(name, SHIPPED_RUBRICS),)
    if name and Path(name).exists():
        hint = (f"; for the file of that name write ./{name}",)
    raise UsageError(
        f"no shipped rubric is named {show(name)}",
        *hint,
        f" (there are {', '.join(SHIPPED_RUBRICS)}; a path has a separator or a suffix)",
        argument="rubric",
    )
