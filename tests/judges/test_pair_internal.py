"""A comparison as plain data."""

from __future__ import annotations

import json
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from adjudge import PairResult
from adjudge.errors import Reason
from adjudge.judges import Preference
from adjudge.judges.pair import read_judged
from kit.pairs import make_pair

REASONS: tuple[str, ...] = get_args(Reason)


PREFERENCES: tuple[str, ...] = get_args(Preference)


@given(ab=st.sampled_from((*PREFERENCES, *REASONS)), ba=st.none() | st.sampled_from((*PREFERENCES, *REASONS)))
def test_a_pair_comes_back_from_plain_data(ab: str, ba: str | None):
    """``from_dict`` reads what ``to_dict`` wrote, through JSON; what is computed is computed again."""
    pair = make_pair(ab, ba, metadata={"case": "7"}, subjects=("a", "b"))
    data = json.loads(json.dumps(pair.to_dict()))

    assert PairResult.from_dict(data) == pair
    assert read_judged(data | {"outcome": "passed", "score": 1.0}) == pair
