"""Copies and digests of content."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from adjudge import Gate
from adjudge.content import content_text, copy_plain, digest_text
from adjudge.testing import ScriptedModel
from kit.gates import GOOD

PASS = {"criteria": [{"name": "good", "reasoning": "Fine.", "score": 1.0}]}


def test_what_is_changed_and_changed_back_was_not_judged_in_between():
    """Rules and judge see what was handed in, whatever the caller's list looks like at that moment."""
    held = ["rm -rf /"]
    seen = []

    async def wait(content: Any) -> bool:
        held[:] = ["fine"]
        await asyncio.sleep(0)
        seen.append(content)
        return True

    def answer(request: Any) -> dict[str, Any]:
        seen.append("rm -rf /" in request.user)
        held[:] = ["rm -rf /"]
        return PASS

    made = Gate("door", rules=[wait, wait], rubric=GOOD, judge=ScriptedModel(answer))
    decision = asyncio.run(made.check(held))

    assert seen == [["rm -rf /"], ["rm -rf /"], True]
    assert decision.subject == digest_text(content_text(["rm -rf /"]))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


@given(VALUES)
def test_a_copy_is_equal_and_holds_nothing_of_the_callers(value: Any):
    """Every list and dictionary in it is another one, with the same members in the same order."""
    made = copy_plain(value)

    assert json.dumps(made) == json.dumps(value)
    assert find_enclosing_spans(made) & find_enclosing_spans(value) == set()


def find_enclosing_spans(value: Any) -> set[int]:
    if not isinstance(value, dict | list):
        return set()
    inner = value.values() if isinstance(value, dict) else value
    return {id(value)}.union(*[find_enclosing_spans(item) for item in inner])


def test_what_holds_itself_is_copied_once():
    """A list that holds itself twice does not double the work with every level."""
    held: list[Any] = []
    held += [held, held]
    made = copy_plain(held)

    assert made is not held
    assert made[0] is made[1] is made
