"""Outputs that are hostile, or no JSON: found out wherever they stand, without an exception and without being asked."""

from __future__ import annotations

from collections import OrderedDict, UserDict, namedtuple
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum, IntEnum
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.tools import ToolHistory, ToolUsage
from kit.judges import names
from kit.tools import check, errors

pytestmark = pytest.mark.matrix


class Explosive:
    """Whatever is done to it, it raises."""

    def __getattribute__(self, name: str) -> Any:
        raise SystemExit(name)

    def __eq__(self, other: object) -> bool:
        raise SystemExit

    def __hash__(self) -> int:
        raise SystemExit

    def __iter__(self) -> Any:
        raise SystemExit

    def __bool__(self) -> bool:
        raise SystemExit


class Lying(dict[str, Any]):
    """A dictionary that shows something else than it holds."""

    def __iter__(self) -> Any:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __getitem__(self, key: str) -> Any:
        return "fine"

    def items(self) -> Any:
        raise RuntimeError

    def values(self) -> Any:
        return []

    def keys(self) -> Any:
        return []


class Text(str):
    """A text of a class of its own."""

    __slots__ = ()


class Colour(Enum):
    """Members that stand for something that is, or is not, JSON."""

    RED = "red"
    SET = frozenset((1,))


class Level(IntEnum):
    """Whole numbers with names."""

    LOW = 1


@dataclass
class Point:
    """Data of a program, which JSON knows nothing of."""

    x: int = 1


circle: list[Any] = []
circle.append(circle)
ring: dict[str, Any] = {}
ring["ring"] = ring
doubling: list[Any] = []
for _ in range(100):
    doubling = [doubling, doubling]
deep: list[Any] = []
for _ in range(100_000):
    deep = [deep]

NO_JSON: dict[str, Any] = {
    "set": {1},
    "frozenset": frozenset((1,)),
    "bytes": b"x",
    "bytearray": bytearray(b"x"),
    "NaN": float("nan"),
    "infinity": float("-inf"),
    "decimal NaN": Decimal("NaN"),
    "decimal infinity": Decimal("Infinity"),
    "complex": 1j,
    "huge": 10**5_000,
    "surrogate": "\ud800",
    "surrogate in a name": {"\udc00": 1},
    "number for a name": {1: 2},
    "None for a name": {None: 2},
    "tuple for a name": {(1,): 2},
    "text of its own for a name": {Text("a"): 1},
    "circle": circle,
    "ring": ring,
    "doubling": doubling,
    "deep": deep,
    "class": Point,
    "instance": Point(),
    "exploding": Explosive(),
    "text of its own": Text("a"),
    "named tuple": namedtuple("Pair", "a b")(1, 2),  # noqa: PYI024 - exactly this is tested
    "generator": (item for item in ()),
    "range": range(3),
    "function": print,
    "time": datetime(2026, 1, 1, tzinfo=UTC),
    "user dictionary": UserDict(a=1),
    "proxy": MappingProxyType({"a": 1}),
    "lying": Lying(a={1}),
    "member": Colour.SET,
    "ellipsis": ...,
}
SCHEMAS: dict[str, Any] = {
    "anything": True,
    "empty": {},
    "open": {"type": "object", "properties": {"a": {"type": "string"}}},
    "closed": {"type": "object", "properties": {"a": {}}, "additionalProperties": False},
    "list": {"type": "array"},
    "texts": {"type": "array", "items": {"type": "string"}},
    "nullable": {"type": ["object", "array", "number", "string", "null"]},
    "objects": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": ["null", "string"]}}}},
    "recursive": {"items": {"$ref": "#"}, "additionalProperties": {"$ref": "#"}},
    "negation": {"not": {"type": "string"}},
}


@pytest.mark.no_cover
@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
@pytest.mark.parametrize("named", NO_JSON)
def test_what_is_no_json_is_invalid(named: str, schema: Any):
    """Wherever it stands and whatever the schema says of the place, with a reason, and never an exception."""
    odd = NO_JSON[named]  # by its name: pytest itself would look at what explodes
    for output in (odd, [odd], {"a": odd}, [{"a": odd}], {"a": "x", "b": [1, {"c": odd}]}):
        verdict = check(output, schema, strict_properties=True, history=ToolHistory())

        assert verdict.valid is False
        assert all(isinstance(item, str) and item.isprintable() for item in verdict.schema_errors)
        assert verdict.schema_errors


def tell(errors: tuple[str, ...], path: str, *parts: str) -> bool:
    """Whether there is one error, at this path, that names these."""
    (message,) = errors
    return message.startswith(path) and names(message, *parts)


@pytest.mark.slow
def test_what_is_no_json_is_named_with_its_path():
    """So that it can be found in a large output."""
    assert tell(errors({"a": [1, {"b": {1}}]}, {}), "a[1].b: ", "set")
    assert tell(errors({"a": {"b": float("nan")}}, {}), "a.b: ", "nan")
    assert tell(errors([[{1: 2}]], {}), "[0][0]: ", "a key that is not a text")
    assert errors(circle, {}) == errors(deep, {})
    assert tell(errors(circle, {}), "the output: ", "more than 200 levels")
    assert tell(errors(doubling, {}), "the output: ", "more than 2,000,000 values")
    assert errors([doubling[:1], {1}], {})[0].startswith("the output: ")
    assert tell(errors([0] * 2_000_001, {}), "the output: ", "more than 2,000,000 values")


@pytest.mark.parametrize(
    ("output", "kind"),
    [
        ((1, 2), "array"),
        (OrderedDict(a=1), "object"),
        (Decimal("1.5"), "number"),
        (Level.LOW, "integer"),
        (Colour.RED, "string"),
        (10**400, "integer"),
        ("\x00 é 😀", "string"),
        ({"": {"": [None, True, 1.5]}}, "object"),
    ],
)
def test_what_stands_for_json_is_json(output: Any, kind: str):
    """Tuples are lists, members of an ``Enum`` and decimal numbers their value; the schema decides over them."""
    for place in (output, [output], {"a": [output]}):
        assert check(place, True)
    assert check(output, {"type": kind})
    assert check({"a": output}, {"type": "object", "properties": {"a": {"type": kind}}})
    assert not check(output, {"type": "null"})


def test_depth_is_bounded():
    """200 lists in each other, and not 201."""
    inside: list[Any] = []
    for _ in range(199):
        inside = [inside]

    assert check(inside, True)
    assert not check([inside], True)


FINITE = [
    item for name, item in NO_JSON.items() if name not in ("exploding", "doubling", "deep", "circle", "ring", "huge")
]
"""What can be shown when a test fails."""
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(FINITE)
anything = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=3) | st.sampled_from("abx"), inner, max_size=4)
        | st.tuples(inner)
        | st.dictionaries(st.integers(), inner, max_size=2)
    ),
    max_leaves=12,
)


@given(output=anything, schema=anything | st.sampled_from([*SCHEMAS.values(), {"type": "objekt"}, None]))
def test_nothing_raises(output: Any, schema: Any):
    """Whatever is handed in for output and schema."""
    verdict = check(output, schema, strict_properties=True, history=ToolHistory(count=20, smallest=5, largest=9))

    assert verdict.valid is (not verdict.schema_errors)


@pytest.mark.parametrize("history", ["x", 7, {}, ToolUsage()])
def test_what_is_no_history_fails_closed(history: Any):
    """It is a mistake of the caller, and still no exception on the way of a tool's output."""
    assert errors(1, True, history=history)[0].startswith("the output: cannot be checked")


# ---------------------------------------------------------------- any schema and any output


def test_definitions_that_use_each_other_twice_are_not_written_out():
    """They double with every step: checking takes what the output holds, not what the schema could."""
    parts = {
        f"d{place}": {
            "type": "object",
            "properties": {side: {"$ref": f"#/$defs/d{place + 1}"} for side in ("a", "b")},
        }
        for place in range(30)
    }
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": {**parts, "d30": True}}

    assert check({"a": {"a": {"b": 1}}}, schema).valid is False
