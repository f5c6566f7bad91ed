"""The digest of a request."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.guards.approval_digest import describe_terms, digest_request

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def turn(value: Any) -> Any:
    """The same with the members of every mapping in another order, and whole numbers as the other type."""
    if isinstance(value, dict):
        return {key: turn(value[key]) for key in reversed(value)}
    if isinstance(value, list):
        return [turn(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return float(value) if type(value) is int and abs(value) < 2**53 else value


@given(metadata=st.dictionaries(st.text(max_size=3), PLAIN, max_size=3))
@settings(max_examples=200)
def test_what_is_equal_as_canonical_json_is_one_request(metadata: dict[str, Any]):
    """Order and the type of a number do not matter, nor a way through JSON; another value does."""

    def digest(members: dict[str, Any]) -> str:
        return digest_request(gate="door", subject="5" * 64, basis={}, metadata=members, terms={})

    assert digest(metadata) == digest(turn(metadata)) == digest(json.loads(json.dumps(metadata)))
    assert digest(metadata) != digest({**metadata, "one more": None})


def make_first_judge(answer: bool) -> Any:
    """A judge in code that is an object, and not a function."""

    class FirstJudge:
        def __call__(self, content: str) -> bool:
            return answer

    return FirstJudge()


def test_a_first_judge_that_is_an_object_is_known_by_its_code():
    """An object that can be called has no code of its own; its class has, and the name of the class is not enough."""
    one, same, other = (describe_terms({"first": make_first_judge(answer)}) for answer in (False, False, True))

    assert one == same != other


def test_the_same_people_are_the_same_terms_however_they_are_written():
    """A list in another order, a tuple or a set: a request waits for people and not for their order."""
    written = [["ana", "bob"], ["bob", "ana"], ("bob", "ana"), {"ana", "bob"}, ["ana", "bob", "ana"]]

    assert len({json.dumps(describe_terms({"approvers": people}), sort_keys=True) for people in written}) == 1
    assert describe_terms({"approvers": ["ana"]}) != describe_terms({"approvers": ["ana", "bob"]})
