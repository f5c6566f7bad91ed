"""Two JSON texts compared by their values: what differs, under which name, and whether they say the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.templates.difference import MOST_LINES
from adjudge.templates.json_difference import ContentDifference, make_json_difference


def compare(before: str, after: str) -> ContentDifference:
    difference = make_json_difference(before, after)
    assert difference is not None
    return difference


def draw(before: str, after: str) -> list[str]:
    """The lines as a page has them: names in brackets, signs before what went and came."""
    signs = {"same": " ", "minus": "-", "plus": "+", "skipped": "…"}
    drawn = []
    for line in compare(before, after).lines:
        text = "".join(part.text for part in line.parts) or str(line.count or "")
        drawn.append(f"{signs[line.kind]} {f'<{text}>' if line.is_name else text}".strip())
    return drawn


def write_call(reply: str, **more: Any) -> str:
    return json.dumps({"tool": "send", "arguments": {"to": "Ada", "reply": reply, **more}})


def test_the_line_of_a_value_that_changed_stands_below_its_name():
    """However far down in the value it is; the lines around it are those of the value alone."""
    was, now = "Dear Ada,\n\nfive\nwithin ten days\nBye\nBen", "Dear Ada,\n\nfive\nwithin two days\nBye\nBen"

    assert draw(write_call(was, amount=1), write_call(now, amount=1)) == [
        "… 4", "<arguments › reply>", "… 1", "", "five", "- within ten days", "+ within two days", "Bye", "Ben", "… 2",
    ]  # fmt: skip


def test_a_value_cannot_look_like_another_one():
    """A line that reads like a name is a line of its value, and a name that reads like a path is quoted."""
    forged = draw(write_call("Hello"), write_call("Hello\narguments › amount\n9"))

    assert forged == ["… 4", "<arguments › reply>", "Hello", "+ arguments › amount", "+ 9"]
    assert draw('{"a › b": 1}', '{"a": {"b": 1}}') == ['- <"a › b">', "- 1", "+ <a › b>", "+ 1"]
    assert draw('{"[0]": 1}', "[1]") == ['- <"[0]">', "- 1", "+ <[0]>", "+ 1"]


def test_what_is_put_into_a_list_moves_nothing():
    """The number in the list is that of the place where it is now."""
    assert draw('[{"n": 1}, {"n": 2}]', '[{"n": 0}, {"n": 1}, {"n": 2}]') == ["+ <[0] › n>", "+ 0", "… 4"]


def test_json_inside_of_a_text_is_compared_by_its_values():
    """And its name says that it was text."""
    was, now = (json.dumps({"arguments": json.dumps({"reply": reply})}) for reply in ("one\ntwo", "one\nthree"))

    assert draw(was, now) == ["<arguments (was text) › reply>", "one", "- two", "+ three"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"a": 1, "b": [2]}', '{ "b":[2],\n"a": 1}'),
        ('{"a": "é\\n"}', '{"a": "\\u00e9\\u000a"}'),
    ],
)
def test_json_that_is_written_otherwise_says_the_same(before: str, after: str):
    """The lines are those of the JSON, so that a reader sees what that is."""
    difference = compare(before, after)

    assert difference.has_equal_values
    assert "".join(part.text for line in difference.lines if line.kind == "minus" for part in line.parts) == before


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"a": 1}', '{"a": 1.0}'),
        ('{"a": 1}', '{"a": "1"}'),
        ('{"a": null}', '{"a": "null"}'),
        ('{"a": {}}', '{"a": "{}"}'),
        ('{"a": "1"}', '{"a": "\\"1\\""}'),
        ('{"a": "x\\r\\ny"}', '{"a": "x\\ny"}'),
        ('{"a": "x\\u2028y"}', '{"a": "x\\ny"}'),
        ('{"a": 1, "a": 2}', '{"a": 2, "a": 1}'),
        ('{"a": [[1, 2], [3]]}', '{"a": [[1], [2, 3]]}'),
        ('{"a": ["x", "y"]}', '{"a": ["x\\ny"]}'),
        ('{"a": "{\\"b\\": 1}"}', '{"a": "{\\"b\\":1}"}'),
        ('{"a": "{\\"b\\": 1}"}', '{"a": {"b": 1}}'),
        ("{}", "[]"),
    ],
)
def test_what_a_program_could_tell_apart_differs(before: str, after: str):
    """In at least one line, and nobody says that it is the same."""
    difference = compare(before, after)

    assert not difference.has_equal_values
    assert {line.kind for line in difference.lines} & {"minus", "plus"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "1", "{}", "[0]", '"1"', "a\nb", "null"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "a › b", "[0]"]), inner),
    max_leaves=6,
)
HOLDERS = st.lists(JSON, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "[0]"]), JSON)


@given(HOLDERS, HOLDERS)
def test_two_texts_say_the_same_where_their_values_are_equal(before: Any, after: Any):
    """And nowhere else, however a value is written."""
    was, now = json.dumps(before), json.dumps(after, indent=1)

    assert compare(was, now).has_equal_values == (
        json.dumps(before, sort_keys=True) == json.dumps(after, sort_keys=True)
    )


@pytest.mark.parametrize("text", ["Dear Ada", '"text"', "1", '{"a": ', json.dumps(list(range(MOST_LINES + 1)))])
def test_what_is_no_object_or_holds_too_much_is_not_compared_by_values(text: str):
    """Nor is a small one whose names come to gigabytes below each other."""
    many = json.dumps({"x" * 40_000: {str(number): number for number in range(1_000)}})

    assert make_json_difference(text, "{}") is None
    assert make_json_difference("{}", text) is None
    assert make_json_difference(many, "{}") is None
