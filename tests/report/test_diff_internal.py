"""The paired test, and differences in Markdown."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from adjudge import Case
from adjudge.report import Diff, diff
from adjudge.report.diff_words import list_moved_criteria
from adjudge.report.render import render_diff_markdown
from adjudge.trust import compute_mcnemar
from adjudge.trust.difference import FLIPS, KEPT, PairedTally
from kit.cli import ESCAPES, HIDDEN
from kit.redecisions import score
from kit.reports import make_run

GOOD, BAD, NONE = score(a=1.0, b=0.6), score(a=0.0, b=0.6), "no object"


def compare(tmp_path: Path, before: Any, after: Any) -> Diff:
    return diff(make_run(tmp_path / "before", before), make_run(tmp_path / "after", after))


def tally(differences: list[float]) -> PairedTally:
    made = PairedTally()
    for difference in differences:
        made.add(0.5, 0.5 + difference)
    return made


@given(st.lists(st.sampled_from([-0.5, -0.25, -0.125, 0.0, 0.125, 0.25, 0.5]), max_size=9))
def test_sign_flips_are_all_of_them(differences: list[float]):
    """With few differences every combination of signs is counted, those that equal what was seen included."""
    real = [item for item in differences if item]
    flips = [
        abs(sum(map(math.prod, zip(signs, real, strict=True))))
        for signs in itertools.product((1, -1), repeat=len(real))
    ]
    expected = sum(item >= abs(sum(real)) for item in flips) / len(flips) if real else None

    total = tally(differences).sum_up()
    assert (total.p_value, total.cases, total.differing) == (expected, len(differences), len(real))


def test_rounding_makes_nothing_rarer():
    """Sums that differ in their last digit alone are the same sum."""
    assert tally([0.7, 0.1, 0.2]).sum_up().p_value == 2 / 2**3


@pytest.mark.slow
def test_many_sign_flips_are_drawn_and_very_many_are_normal():
    """The three ways to compute it agree where they meet, and the same data give the same figure each time."""
    drawn = tally([0.1] * 130 + [-0.1] * 100).sum_up()
    exact = compute_mcnemar(100, 130)
    assert exact is not None
    assert drawn.method == f"{FLIPS:,} sign flips"
    assert drawn.p_value == pytest.approx(exact, abs=0.02)
    assert drawn == tally([0.1] * 130 + [-0.1] * 100).sum_up()

    most = tally([0.1] * (KEPT // 2 + 60) + [-0.1] * (KEPT // 2 - 60)).sum_up()
    more = tally([0.1] * (KEPT // 2 + 61) + [-0.1] * (KEPT // 2 - 60)).sum_up()
    assert (most.method, more.method) == (f"{FLIPS:,} sign flips", "normal")
    assert most.p_value == pytest.approx(more.p_value, abs=0.02)


def test_a_clear_difference_is_never_impossible():
    """What was seen counts as one of the flips, so no p-value is 0 for want of draws."""
    assert tally([0.1] * 300).sum_up().p_value == 1 / (FLIPS + 1)


def test_the_name_of_a_criterion_that_is_cut_ends_in_dots(tmp_path: Path):
    """So that nobody takes the beginning for the name."""
    (change,) = compare(tmp_path, [GOOD], [BAD]).listed
    moved = list_moved_criteria(replace(change, criteria=(("mentions the customer's order number", 1.0, 0.0),)))

    assert moved.startswith("mentions the customer's order … ")


HOSTILE = f"@all |x| <b>&amp;</b> [l](http://h) ![i](h) `c` **b** {ESCAPES}\n# head"


def test_new_answers_to_the_same_tasks_are_compared(tmp_path: Path):
    """A program that changed answers otherwise; another task or reference is another case all the same."""
    before = [Case(id=name, content="old", task="t", reference="r") for name in "abc"]
    after = [replace(before[0], content="new"), replace(before[1], task="u"), replace(before[2], reference="s")]
    was = make_run(tmp_path / "was", dict.fromkeys("abc", GOOD), cases=before)
    now = make_run(tmp_path / "now", dict.fromkeys("abc", BAD), cases=after)

    comparison = diff(was, now)
    assert (comparison.cases, comparison.inputs_changed, comparison.regressions, comparison.unmatched_passes) == (
        1,
        2,
        1,
        2,
    )
    assert comparison.to_dict()["inputs_changed"] == 2
    assert "2 cases with another reference, task or context, not compared;" in render_diff_markdown(comparison)


def test_markdown_holds_hostile_ids_as_text(tmp_path: Path):
    """No table is broken, nobody called by name, nothing linked, nothing hidden, whatever a case is called."""
    cases = [Case(id=HOSTILE, content="x")]
    before = make_run(tmp_path / "before", {HOSTILE: GOOD}, cases=cases)
    text = render_diff_markdown(diff(before, make_run(tmp_path / "after", {HOSTILE: BAD}, cases=cases)))
    [row] = [line for line in text.splitlines() if "all" in line]
    inline = [inner for token in MarkdownIt("commonmark").enable("table").parse(text) for inner in token.children or ()]
    # GitHub looks for names and numbers of issues once escapes and entities are read, and leaves code alone.
    shown = "".join(inner.content for inner in inline if inner.type not in ("code_inline", "html_inline"))

    assert row.count("|") == 6
    assert "@all" in "".join(inner.content for inner in inline if inner.type == "code_inline")
    assert not any(mark in shown for mark in ("@", "<", "[", "`", "*", "#", "http:"))
    assert not {"link_open", "image"} & {inner.type for inner in inline}
    assert [inner.content for inner in inline if inner.type == "html_inline"] == ["<sub>", "</sub>"]
    assert not HIDDEN.search(text)
    assert text.startswith(
        "<!-- adjudge/diff/1 -->\n### The judge differs from itself: 1 passed in the earlier run only, 0 in"
    )


def test_markdown_says_what_it_leaves_out(tmp_path: Path):
    """A comment has room for 50 cases; that there are more is said."""
    text = render_diff_markdown(compare(tmp_path, [GOOD] * 60, [BAD] * 60))

    assert "<summary>50 of 60 cases that changed</summary>" in text
    assert "not passed: p \\< 0.0001 (McNemar, exact)\n" in text
