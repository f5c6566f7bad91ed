"""The difference between two texts."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from adjudge.formats.difference import DiffLine, make_difference


def draw(lines: tuple[DiffLine, ...]) -> list[str]:
    """Each line as text, changed words in brackets."""
    signs = {"same": "  ", "minus": "- ", "plus": "+ ", "skipped": "~ "}
    said = []
    for line in lines:
        text = "".join(f"[{part.text}]" if part.changed else part.text for part in line.parts)
        said.append(signs[line.kind] + (text or str(line.count)))
    return said


def test_changed_words_are_marked_and_equal_lines_counted():
    """One equal line stays beside each change, so that a reader knows where it is."""
    before = "call: pay\na\nb\nc\namount: 172 EUR\nto: Mara"
    after = "call: pay\na\nb\nc\namount: 184 EUR\nto: Mara\nthen: reply"

    assert draw(make_difference(before, after)) == [
        "~ 3",
        "  c",
        "- amount: [172] EUR",
        "+ amount: [184] EUR",
        "  to: Mara",
        "+ [then: reply]",
    ]


def test_equal_texts_have_no_difference():
    """Not even of counted lines."""
    assert make_difference("a\nb", "a\nb") == ()


def read_back(lines: tuple[DiffLine, ...], leave_out: str) -> list[str]:
    return ["".join(part.text for part in line.parts) for line in lines if line.kind not in (leave_out, "skipped")]


@given(st.lists(st.text("ab \r", max_size=4), max_size=8), st.lists(st.text("ab \r", max_size=4), max_size=8))
def test_the_lines_of_either_text_are_in_it(before: list[str], after: list[str]):
    """No line is lost: those that are shown and counted are all there are."""
    old, new = "\n".join(before).split("\n"), "\n".join(after).split("\n")
    found = make_difference("\n".join(before), "\n".join(after))
    skipped = sum(line.count for line in found if line.kind == "skipped")
    if old != new:
        assert len(read_back(found, "plus")) + skipped == len(old)
        assert len(read_back(found, "minus")) + skipped == len(new)
        assert all(line in old for line in read_back(found, "plus"))
        assert all(line in new for line in read_back(found, "minus"))


def test_long_texts_that_have_nothing_in_common_take_no_time_to_compare():
    """Comparing grows with the product of the lengths, and somebody else wrote them."""
    started = time.perf_counter()
    lines = make_difference("\n".join(f"a{n}" for n in range(20_000)), "\n".join(f"b{n}" for n in range(20_000)))
    words = make_difference("a " * 20_000, "b " * 20_001)

    assert (len(lines), len(words)) == (40_000, 2)
    assert time.perf_counter() - started < 20
