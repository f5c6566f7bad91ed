"""Comparisons answered in the field's own styles, by the name of the reader."""

from __future__ import annotations

from typing import Any

import pytest

from adjudge import Judge, PairResult, compare, compare_sync
from adjudge.models import Request
from adjudge.question import READERS
from kit.judges import Plain, complaint, names
from kit.pairs import BAD, GOOD

BETTER = "Answers the question."
OF_PREFERENCES = [name for name, reader in READERS.items() if reader.kind == "preference"]
OTHERS = [name for name, reader in READERS.items() if reader.kind != "preference"]
RANKED = '{"ordered_models": [{"model": "first", "rank": %d}, {"model": "second", "rank": %d}]}'

STYLES: dict[str, tuple[str, str, str | None]] = {
    "[[A]]": ("Short and right. [[A]]", "Longer, and right: [[B]]", "Alike: [[C]]"),
    "[[A>B]]": ("[[A>>B]]", "My verdict: [[B>A]]", "[[A=B]]"),
    "Output (a)": ("Output (a)", "Output (b)", None),
    "Output (a) is better": ("Therefore, Output (a) is better.", "Therefore, Output (b) is better.", None),
    "A:": ("A: Response 1 is better.", "B: Response 2 is better.", "C: Neither is better."),
    "name": ("first", "second", None),
    "ordered_models": (RANKED % (1, 2), RANKED % (2, 1), None),
    "json winner": ('{"winner": "A"}', '{"winner": "B"}', '{"winner": "tie"}'),
}
"""For each reader what a judge says for the place shown first, for the second, and for a tie."""


def ask(reader: str, line: Any, **how: Any) -> PairResult:
    return compare_sync(GOOD, BAD, judge=Judge(Plain(line), reader=reader, reask=0), criteria=BETTER, **how)


def test_every_reader_of_preferences_is_tried_here():
    """A new reader of preferences needs a line in the table above."""
    assert sorted(STYLES) == sorted(OF_PREFERENCES)


@pytest.mark.parametrize("reader", OF_PREFERENCES)
def test_a_reader_of_preferences_answers_a_comparison(reader: str):
    """The place it names is mapped back to the content that stood there."""
    first, second, tie = STYLES[reader]

    def say(request: Request) -> str:
        return first if request.user.index(GOOD) < request.user.index(BAD) else second

    assert (ask(reader, say).preferred, ask(reader, say).flipped) == ("first", False)
    assert ask(reader, second, both_orders=False).preferred == "second"
    assert names(ask(reader, first).explain(), "tie", "disagree", "ab says first", "ba says second")
    if tie is not None:
        assert ask(reader, tie).preferred == "tie"


@pytest.mark.parametrize("reader", OF_PREFERENCES)
def test_a_judge_is_told_the_style_it_is_read_in(reader: str):
    """The system part says which word stands for which place, and of a tie only where one can be said and may be."""
    model = Plain(STYLES[reader][0])
    judge = Judge(model, reader=reader)
    compare_sync(GOOD, BAD, judge=judge, criteria=BETTER, both_orders=False)
    compare_sync(GOOD, BAD, judge=judge, criteria=BETTER, both_orders=False, ties=False)

    with_ties, without = (request.system for request in model.requests)
    assert "`first`" in with_ties.rpartition("\n\n")[2] or reader in {"name", "ordered_models"}
    assert ("tie" in with_ties.rpartition("\n\n")[2]) == (STYLES[reader][2] is not None)
    assert "tie" not in without.rpartition("\n\n")[2]
    assert "token" not in with_ties.rpartition("\n\n")[2]


@pytest.mark.parametrize("reader", ["[[A]]", "[[A>B]]", "json winner"])
def test_a_tie_that_was_not_on_offer_is_off_the_scale(reader: str):
    """Also in another style, what was not offered is no answer."""
    tie = STYLES[reader][2]
    assert ask(reader, tie, ties=False).undecided_because == "off_scale"


@pytest.mark.parametrize(
    ("reader", "text", "because"),
    [
        ("[[A]]", "It says [[B]] itself. [[A]]", "contradiction"),
        ("[[A]]", "A is better.", "unparseable"),
        ("Output (a) is better", "I cannot claim that either Output (a) or Output (b) is better.", "unparseable"),
        ("name", "First", "unparseable"),
        ("json winner", '{"winner": "A"} {"winner": "B"}', "contradiction"),
    ],
)
def test_a_reply_that_says_two_things_or_nothing_is_undecided(reader: str, text: str, because: str):
    """Both orders have to be read, and neither is guessed."""
    assert ask(reader, text).undecided_because == because


def test_a_reply_that_cannot_be_read_is_asked_for_again_in_its_style():
    """The reminder speaks of the style, and not of an object of ours."""
    model = Plain("No idea.", "[[A]]")
    pair = compare_sync(GOOD, BAD, judge=Judge(model, reader="[[A]]"), criteria=BETTER, both_orders=False)

    assert pair.preferred == "first"
    assert model.requests[1].user.endswith("end as described above, in exactly that style.")
    assert "JSON" not in model.requests[1].user


@pytest.mark.parametrize("reader", OTHERS)
def test_a_reader_of_scores_or_labels_compares_nothing(reader: str):
    """A score of one content says nothing of two."""
    judge = Judge(Plain("x"), reader=reader)
    assert "a comparison needs a reader of preferences" in complaint(compare, "a", "b", judge=judge, criteria=BETTER)


@pytest.mark.parametrize("reader", OF_PREFERENCES)
def test_a_reader_of_preferences_judges_no_rubric(reader: str):
    """It is refused where one content is judged, and for a ready-made prompt."""
    judge = Judge(Plain("x"), reader=reader)
    assert "it answers comparisons, not a rubric" in complaint(judge.evaluate, "a", criteria=BETTER)
    assert "not ready-made prompts" in complaint(judge.ask, "Is it safe?")
