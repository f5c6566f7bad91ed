"""The gravest of reasons, and the ids of results."""

from __future__ import annotations

import uuid
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from adjudge.errors import Reason
from adjudge.result import find_gravest, make_id

REASONS: tuple[str, ...] = get_args(Reason)


@given(reasons=st.lists(st.sampled_from(REASONS)))
def test_the_gravest_reason_is_the_first_in_that_order(reasons):
    """Whatever the order they came in."""
    assert find_gravest(reasons) == next((reason for reason in REASONS if reason in reasons), None)


def test_ids_are_uuids_of_version_7_in_order():
    """Unique, and sortable by the time they were made."""
    made = [uuid.UUID(make_id()) for _ in range(500)]

    assert {(item.version, item.variant) for item in made} == {(7, uuid.RFC_4122)}
    assert len(set(made)) == 500
    stamps = [item.int >> 80 for item in made]
    assert stamps == sorted(stamps)
