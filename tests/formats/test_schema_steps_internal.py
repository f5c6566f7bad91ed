"""The count of a validator's steps is at least what following every reference takes, and no more for plain schemas."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.formats import schema_steps
from adjudge.formats.json_schema import compile_schema
from adjudge.formats.schema_steps import TooManyStepsError

NAMES = ("a", "b")

DEFINED = ("x", "y", "z")


def make_parts(defined: tuple[str, ...]) -> st.SearchStrategy[dict[str, Any]]:
    """Schemas whose references go to later definitions, or, below a property or an item, to any."""
    below = st.sampled_from([{"$ref": f"#/$defs/{name}"} for name in DEFINED])
    beside = st.sampled_from([{"$ref": f"#/$defs/{name}"} for name in defined]) if defined else st.just({})
    return st.fixed_dictionaries(
        {},
        optional={
            "allOf": st.lists(beside, min_size=1, max_size=3),
            "not": beside,
            "properties": st.dictionaries(st.sampled_from(NAMES), below),
            "additionalProperties": below,
            "items": below,
        },
    )


VALUES = st.recursive(
    st.integers(0, 1),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from((*NAMES, "c")), inner),
    max_leaves=8,
)


def count(schema: dict[str, Any], part: Any, value: Any) -> int:
    """Every step, one after the other."""
    if not isinstance(part, dict):
        return 0
    beside = [*part.get("allOf", ()), *([part["not"]] if "not" in part else [])]
    if "$ref" in part:
        beside.append(schema["$defs"][part["$ref"].rpartition("/")[2]])
    steps = 1 + sum(count(schema, item, value) for item in beside)
    if isinstance(value, dict):
        named = part.get("properties", {})
        for key, held in value.items():
            steps += count(schema, named.get(key, part.get("additionalProperties")), held)
    elif isinstance(value, list):
        steps += sum(count(schema, part.get("items"), held) for held in value)
    return steps


def passes(schema: Any, value: Any, most: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether so many steps are enough."""
    with monkeypatch.context() as patch:
        patch.setattr(schema_steps, "MOST_STEPS", most)
        patch.setattr(schema_steps, "MOST_FOR_EACH", 0)
        patch.setattr(schema_steps, "_MOST_HARMLESS_STEPS", 0)
        try:
            compile_schema(schema).is_valid(value)
        except TooManyStepsError:
            return False
    return True


@given(parts=st.tuples(*(make_parts(DEFINED[at + 1 :]) for at in range(3))), value=VALUES)
def test_every_step_is_counted_once(parts: tuple[dict[str, Any], ...], value: Any):
    """Exactly so many are enough, and one fewer is not."""
    schema = {"$ref": "#/$defs/x", "$defs": dict(zip(DEFINED, parts, strict=True))}
    steps = count(schema, schema, value)
    with pytest.MonkeyPatch.context() as patch:
        assert passes(schema, value, steps, patch)
        assert not passes(schema, value, steps - 1, patch)
