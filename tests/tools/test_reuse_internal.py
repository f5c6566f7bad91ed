"""Compiled schemas are kept."""

from __future__ import annotations

from adjudge.tools import reuse
from kit.tools import check


def test_a_schema_is_compiled_once():
    """It is found again by its bytes, in another object too."""
    schema = {"type": "string", "$comment": "test_a_schema_is_compiled_once"}
    check("a", schema)
    before = reuse._compile.cache_info()
    for _ in range(5):
        check("b", dict(schema))
    after = reuse._compile.cache_info()

    assert (after.misses, after.hits - before.hits) == (before.misses, 5)


def test_compiled_schemas_are_bounded():
    """A caller that makes a new schema each time fills no memory."""
    for size in range(reuse.MOST_COMPILED + 20):
        check("x", {"maxLength": size})

    assert reuse._compile.cache_info().currsize <= reuse.MOST_COMPILED


def test_a_schema_that_is_none_is_compiled_once_too():
    """Or whoever hands in a bad one could make every use slow."""
    schema = {"type": "objekt", "$comment": "test_a_schema_that_is_none"}
    check(1, schema)
    before = reuse._compile.cache_info()
    check(1, schema)

    assert reuse._compile.cache_info().misses == before.misses
