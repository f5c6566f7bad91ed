"""Counting the choices of seats."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adjudge import JudgeResult
from adjudge.judges.chain_outcome import count_choices

CHOICES = ("first", "second", "tie")


@given(
    says=st.lists(st.sampled_from((*CHOICES, "error")), min_size=1, max_size=6),
    seen=st.integers(0, 6),
    to_win=st.integers(1, 6),
)
def test_what_is_settled_early_stays_settled(says: list[str], seen: int, to_win: int):
    """A verdict on some of the answers is the verdict on all, whatever the others say."""
    to_win = min(to_win, len(says))
    votes = [_vote(item) for item in says]
    early = count_choices(votes[:seen], len(says), to_win, CHOICES, wait=False)
    full = count_choices(votes, len(says), to_win, CHOICES, wait=True)

    assert full is not None
    if early is not None:
        assert (early.outcome, early.seat and early.seat.value) == (full.outcome, full.seat and full.seat.value)


def _vote(says: str) -> JudgeResult:
    if says in CHOICES:
        return JudgeResult(outcome="passed", judge="j", value=says)
    return JudgeResult(outcome="undecided", judge="j", undecided_because="error")
