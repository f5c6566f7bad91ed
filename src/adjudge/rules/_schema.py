"""JSON Schema, compiled so that neither a schema nor what is checked against it can hold up or contact anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from adjudge.rules._dialect import DRAFT_7, DRAFT_2020, DialectError, check_dialect, list_new_formats
from adjudge.rules._words import flatten

PATTERN_BYTES = 2_000_000
"""What the different patterns of one JSON Schema may take when they are compiled, together. ``\\pL{90}`` takes 4 MB,
so that without a limit a schema of 30 KB fills the memory."""


def compile_schema(schema: Any, **how: Any) -> Any:
    """A validator for a schema of plain types; ``how`` is handed on. Raises ``ValueError`` for what is no schema.

    The draft is 2020-12, or the one that ``$schema`` names. What it does not know is an error, which says so where the
    schema is one of draft 7 that does not say it.
    """
    try:
        check_dialect(schema)
        return _compile(schema, how)
    except ValueError as error:
        if not isinstance(schema, dict) or "$schema" in schema or not _is_schema({"$schema": DRAFT_7, **schema}, how):
            raise
        said = flatten(str(getattr(error, "message", error)), 150)
        raise DialectError(f'{said}; if it is a schema of draft 7, let it say so: "$schema": "{DRAFT_7}"') from error


def _is_schema(schema: dict[str, Any], how: dict[str, Any]) -> bool:
    try:
        check_dialect(schema)
        _compile(schema, how)
    except ValueError:
        return False
    return True


def _compile(schema: Any, how: dict[str, Any]) -> Any:
    import jsonschema_rs

    # Offline, because a remote $ref would let whoever writes a schema make this machine read a file or call a
    # host. Linear patterns only: a limit on backtracking makes `not: {pattern: ...}` pass when it is exceeded.
    share = PATTERN_BYTES // max(1, len(set(_find_patterns(schema))))
    options = jsonschema_rs.RegexOptions(size_limit=share, dfa_size_limit=share)
    if how.get("validate_formats") and isinstance(schema, dict):
        # An older draft would ignore the formats that later ones brought, and its reader takes them for checks.
        how = {**how, "formats": {name: _make_format_check(name) for name in list_new_formats(schema)}}
    return jsonschema_rs.validator_for(schema, offline=True, pattern_options=options, **how)


@cache
def _make_format_check(name: str) -> Callable[[str], bool]:
    import jsonschema_rs

    check = jsonschema_rs.validator_for({"$schema": DRAFT_2020, "format": name}, offline=True, validate_formats=True)
    return lambda text: bool(check.is_valid(text))


def _find_patterns(part: Any) -> Iterator[str]:
    """Every pattern of a schema; a text that only looks like one makes the others' share smaller, no more."""
    if isinstance(part, dict):
        one, named = part.get("pattern"), part.get("patternProperties")
        yield from [one] if isinstance(one, str) else []
        yield from named if isinstance(named, dict) else ()
    for item in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from _find_patterns(item)
