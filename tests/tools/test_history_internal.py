"""How much a history tells of a shape."""

from __future__ import annotations

from decimal import Decimal

from adjudge.tools.reuse import measure


def test_shapes_tell_what_is_in_what():
    """Members, types and nesting; neither the order of members, nor how many elements there are, nor which numbers."""
    different = [{}, [], [{}], [[]], {"a": {}}, {"a": []}, {"b": []}, {"a": [1]}, {"a": ["1"]}, {"a": [1, "1"]}, None]

    assert len({measure(output)[1] for output in different}) == len(different)
    assert measure({"a": 1, "b": [1, 2.5]})[1] == measure({"b": [3], "a": Decimal(2)})[1]
