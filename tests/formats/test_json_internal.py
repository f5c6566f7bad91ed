"""``read_json`` reads most texts with a quick reader. It must read them as the careful one does, and refuse as much."""

import json
from collections.abc import Callable
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.formats.json import is_json, nests_too_deeply, read_json

_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(min_value=-(10**40), max_value=10**40),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=8),
    st.sampled_from(['a":', '"\\":', '" :', "'a' :", "{", '{"a": 1}', "\\u0022:", "\t"]),
)

_VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=5), inner, max_size=4)),
    max_leaves=12,
)


@given(_VALUES, st.booleans(), st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", " \t: ")]))
def test_a_text_is_read_as_the_standard_library_reads_it(value: Any, escaped: bool, between: tuple[str, str]):
    """The same values, of the same types, whatever stands between them."""
    text = json.dumps(value, ensure_ascii=escaped, separators=between)

    assert repr(read_json(text)) == repr(json.loads(text))


@given(
    _VALUES, st.text(max_size=5), _VALUES, st.sampled_from([":", " :", "\n\t: "]), st.sampled_from(["", "a :", '":'])
)
def test_a_key_that_comes_twice_is_always_found(first: Any, key: str, second: Any, colon: str, noise: str):
    """However deep, however it is spaced, and whatever texts beside it look like keys."""
    name = json.dumps(key)
    twice = f"{{{name}{colon}{json.dumps(first)}, {name}{colon}{json.dumps(second)}}}"
    text = f"[{json.dumps(noise)}, {{{json.dumps('outer')}: {twice}}}]"

    with pytest.raises(ValueError, match="appears twice in one object"):
        read_json(text)


@pytest.mark.parametrize(
    "text", ["NaN", "[1e400]", "[-Infinity]", "1 2", "[1,]", '"a\tb"', "01", "\ufeff1", "[" * 300 + "]" * 300]
)
@pytest.mark.parametrize("make", [str, lambda text: f'{{"a": {text}}}'])
def test_what_is_no_json_is_refused(text: str, make: Callable[[str], str]):
    """Nothing is read by one reader that the other refuses."""
    with pytest.raises(ValueError, match=r"JSON|too large|levels deep|line 1"):
        read_json(make(text))


def _measure_depth(text: str) -> int:
    """Measure the first value of a text, one character after the other, with brackets in its texts left out."""
    deepest, depth, at = 0, 0, 0
    while at < len(text):
        if text[at] == '"':
            at += 1
            while at < len(text) and text[at] != '"':
                at += 2 if text[at] == "\\" else 1
        elif text[at] in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif text[at] in "]}":
            depth -= 1
            if depth <= 0:
                break
        at += 1
    return deepest


@given(st.text(alphabet='[]{}"\\a,', max_size=40), st.integers(min_value=0, max_value=4))
def test_depth_is_that_of_the_first_value(text: str, most: int):
    """Whatever the text is, with texts that are never closed in it, and brackets that nothing opened."""
    assert nests_too_deeply(text, most=most) == (_measure_depth(text) > most)


def test_half_a_character_is_read_as_before():
    """It is the caller's to refuse, with a sentence of its own."""
    assert read_json('"\\ud800"') == "\ud800"


class Name(StrEnum):
    ONE = "one"
    HALF = "\ud800"


@pytest.mark.parametrize(
    ("value", "is_good"),
    [
        ({Name.ONE: 1, "two": 2}, True),
        ({Name.ONE: 1, 2: 2}, False),
        ({Name.ONE: 1, "\ud800": 2}, False),
        ({Name.HALF: 1}, False),
        ({2: 1}, False),
    ],
)
def test_every_key_of_an_object_is_looked_at(value: dict[Any, Any], is_good: bool):
    """Also behind a member of an enumeration, which JSON writes as its text."""
    assert is_json([value]) is is_good
