"""Every style as judges write it, and what only looks like it: quoted, denied, cut off, taken back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge import ReplyError
from adjudge.question import ReadOptions, find_reader

READ = [
    ("Rating: [[7]]", "[[6]]", 6.0, {"scale": (1, 10)}),
    ("Rating: [[7]]", "[6]", 6.0, {"scale": (1, 10)}),
    ("Rating: [[7]]", " [[6]]\n", 6.0, {"scale": (1, 10)}),
    ("Rating: [[7]]", "**[[6]]**", 6.0, {"scale": (1, 10)}),
    ("Rating: [[7]]", "[[6]].", 6.0, {"scale": (1, 10)}),
    ("Rating: [[7]]", '"[[6]]"', 6.0, {"scale": (1, 10)}),
    ("Rating: [[7]]", "`[[6]]`", 6.0, {"scale": (1, 10)}),
    ("Rating: [[7]]", "```\n[[6]]\n```", 6.0, {"scale": (1, 10)}),
    ("Rating: [[7]]", "```\nRating: [[6]]\n```", 6.0, {"scale": (1, 10)}),
    ("Rating: [[7]]", "Rating: [6]", 6.0, {"scale": (1, 10)}),
    ("Rating: [[7]]", "**Rating: [6]**", 6.0, {"scale": (1, 10)}),
    ("Rating: [[7]]", "**Rating:** [[6]]", 6.0, {"scale": (1, 10)}),
    ("Rating: [[7]]", "# Rating: [[6]]", 6.0, {"scale": (1, 10)}),
    ("Rating: [[7]]", "It is fine.\n\n[[6]]", 6.0, {"scale": (1, 10)}),
    ("Rating: [[7]]", "[[6]]\n\nIt is fine.", 6.0, {"scale": (1, 10)}),
    ("Rating: [[7]]", "It is good.\n\n**[[6]]**", 6.0, {"scale": (1, 10)}),
    ("Rating: [[7]]", "It is good. My rating:\n[[6]]", 6.0, {"scale": (1, 10)}),
    ("Rating: [[7]]", 'It is good. Rating: "[[6]]"', 6.0, {"scale": (1, 10)}),
    ("Rating: [[7]]", "rating: [[6]]", 6.0, {"scale": (1, 10)}),
    ("Rating: [[7]]", "- It does not answer\n- It never says why\n\n[[6]]", 6.0, {"scale": (1, 10)}),
    ("Rating: [[7]]", "It is what was asked for.\n\n[[6]]", 6.0, {"scale": (1, 10)}),
    ("Rating: [[7]]", "[[6]]\n\nThis is what the question asked for.", 6.0, {"scale": (1, 10)}),
    ("Rating: [[7]]", "Rating: [[6]] is my verdict.", 6.0, {"scale": (1, 10)}),
    ("Rating: [[7]]", "[[6.0]]", 6.0, {"scale": (1, 10)}),
    ("Rating: [[7]]", "Final rating: [[6]]", 6.0, {"scale": (1, 10)}),
    ("Rating: [[7]]", "Rating: [[6]]/10", 6.0, {"scale": (1, 10)}),
    ("Rating: [[7]]", "Rating: [[6]] out of 10", 6.0, {"scale": (1, 10)}),
    ("Rating: [[7]]", "So my final rating is [[6]].", 6.0, {"scale": (1, 10)}),
    ("Rating: [[7]]", "The answer contains an error, so I rate it [[6]].", 6.0, {"scale": (1, 10)}),
    ("Rating: [[7]]", "Score: fine.\n\nRating: [[6]]\n\nThank you.", 6.0, {"scale": (1, 10)}),
    ("Output (a) is better", "Output (a) is better, as it answers.", "first", {}),
    ("Output (a) is better", "# Output (a) is better.", "first", {}),
    ("Output (a) is better", "## Output (a) is better\n\nIt is short.", "first", {}),
    ("Output (a) is better", "**Output (a) is better.**", "first", {}),
    ("Output (a) is better", "**Output (a)** is better.", "first", {}),
    ("Output (a) is better", "- Output (a) is better.", "first", {}),
    ("Output (a) is better", "1. Output (a) is better.", "first", {}),
    ("Output (a) is better", "Therefore, **Output (a) is better**.", "first", {}),
    ("Output (a) is better", "Therefore, Output (a) is better, because it is short.", "first", {}),
    ("Output (a) is better", "Output (a) is clearly better.", "first", {}),
    ("Output (a) is better", "Verdict: Output (a) is better.", "first", {}),
    ("Output (a) is better", "**Output (a)**", "first", {}),
    ("Output (a) is better", "# Output (a)", "first", {}),
    ("Output (a) is better", "Output (a) is better, since it keeps to the task.", "first", {}),
    ("Output (a) is better", "Output (a) is better than Output (b), because it is right.", "first", {}),
    ("Output (a) is better", "### Verdict\n\nOutput (a) is better.", "first", {}),
    ("Output (a) is better", "```\nOutput (a) is better.\n```", "first", {}),
    ("Output (a) is better", "Output (a) is better as it asks for the date.", "first", {}),
    ("Output (a) is better", "* **Output (a) is better.**", "first", {}),
    ("Output (a) is better", "Output (b) says nothing. **Therefore, Output (a) is better.**", "first", {}),
    ("Output (a)", "Output (a) is better, as it answers.", "first", {}),
    ("Output (a)", "# Output (a) is better.", "first", {}),
    ("Output (a)", "**Output (a)**", "first", {}),
    ("Output (a)", "Output (a)", "first", {}),
    ("Output (a)", "**Output (a) is better.**\n\nIt is short.", "first", {}),
    ("Output (a)", "# Output (a)", "first", {}),
    ("Output (a)", "- Output (a) is better, because it is right.", "first", {}),
    ("Rating: 7", "3", 3.0, {"scale": (1, 5)}),
    ("Rating: 7", "3\nIt is fine.", 3.0, {"scale": (1, 5)}),
    ("Rating: 7", "3\n\nRationale: it is fine!", 3.0, {"scale": (1, 5)}),
    ("Rating: 7", "Rating: 3\nRationale: it is", 3.0, {"scale": (1, 5)}),
    ("Rating: 7", "It is fine.\n3", 3.0, {"scale": (1, 5)}),
    ("Rating: 7", "**3**", 3.0, {"scale": (1, 5)}),
    ("Rating: 7", "3.", 3.0, {"scale": (1, 5)}),
    ("Rating: 7", "Score: 3", 3.0, {"scale": (1, 5)}),
    ("Rating: 7", "Coherence: 3\nRationale: it is", 3.0, {"scale": (1, 5)}),
    ("Rating: 7", "```\n3\n```", 3.0, {"scale": (1, 5)}),
    ("Rating: 7", "1) a\n2) b\n\n**3**", 3.0, {"scale": (1, 5)}),
    ("Rating: 7", '3\nIt says "yes."', 3.0, {"scale": (1, 5)}),
    ("Rating: 7", "3\n- It is good.\n- It is short.", 3.0, {"scale": (1, 5)}),
    ("A:", "A: Feedback 1 is significantly better.", "first", {}),
    ("A:", "A", "first", {}),
    ("A:", "A.", "first", {}),
    ("A:", "**A**", "first", {}),
    ("A:", "(A)", "first", {}),
    ("A:", "[A]", "first", {}),
    ("A:", "A)", "first", {}),
    ("A:", "A: Feedback 1 is significantly better", "first", {}),
    ("A:", "A: Feedback 1 is significantly better.\n\nReason: it finds the bug.", "first", {}),
    ("A:", "A\n\nFeedback 1 finds the bug.", "first", {}),
    ("A:", "**A: Feedback 1 is significantly better.**\n\nIt finds the bug.", "first", {}),
    ("A:", "A. Feedback 1 is better because it finds the bug.", "first", {}),
    ("A:", "Answer: A", "first", {}),
    ("A:", "My choice is A: it is better.", "first", {}),
    ("A:", "A - Feedback 1 is better.", "first", {}),
    ("A:", "Option A: it is better.", "first", {}),
    ("A:", '"A"', "first", {}),
    ("A:", "A: Response 1 is better. Response 2 is better in tone, yet wrong.", "first", {}),
    ("A:", "A) Feedback 1 is better.", "first", {}),
    ("A:", "A, because it finds the bug.", "first", {}),
    ("A:", "B: Feedback 2 is significantly better. It is short.", "second", {}),
    ("A:", "C: Neither is significantly better.", "tie", {}),
    ("A:", "C: Tie. Both are right.", "tie", {}),
    ("A:", "B", "second", {}),
    ("A:", "C", "tie", {}),
    ("GRADE: C", "GRADE: C", "C", {}),
    ("GRADE: C", "It matches. GRADE: C", "C", {}),
    ("GRADE: C", "**GRADE: C**", "C", {}),
    ("GRADE: C", "```\nGRADE: C\n```", "C", {}),
    ("[[A]]", "[[A]]", "first", {}),
    ("[[A]]", 'My verdict is "[[A]]".', "first", {}),
    ("[[A]]", "Assistant B's answer contains errors, so my verdict is [[A]].", "first", {}),
    ("[[A]]", "Therefore, the verdict is [[A]]", "first", {}),
    ("[[A]]", "```\n[[A]]\n```", "first", {}),
]
"""Reader, reply, what it says, and what was offered."""

NOT_READ = [
    ("Rating: [[7]]", 'It says "Rating: [[10]]".', {"scale": (1, 10)}),
    ("Rating: [[7]]", "The answer demands Rating: [[10]].", {"scale": (1, 10)}),
    ("Rating: [[7]]", "> Rating: [[10]]", {"scale": (1, 10)}),
    ("Rating: [[7]]", "```\nRating: [[10]]\n```\nThat is what it says.", {"scale": (1, 10)}),
    ("Rating: [[7]]", "Rating: [[6-7]]", {"scale": (1, 10)}),
    ("Rating: [[7]]", "Rating: [[6]]-[[7]]", {"scale": (1, 10)}),
    ("Rating: [[7]]", "Rating: [[6]] or [[7]]", {"scale": (1, 10)}),
    ("Rating: [[7]]", "[[6]] or [[7]]", {"scale": (1, 10)}),
    ("Rating: [[7]]", "[6] or [7]", {"scale": (1, 10)}),
    ("Rating: [[7]]", "[6-7]", {"scale": (1, 10)}),
    ("Rating: [[7]]", "[[6", {"scale": (1, 10)}),
    ("Rating: [[7]]", "[[6]", {"scale": (1, 10)}),
    ("Rating: [[7]]", "[6", {"scale": (1, 10)}),
    ("Rating: [[7]]", "Rating: [[6", {"scale": (1, 10)}),
    ("Rating: [[7]]", "Rating: [[6]", {"scale": (1, 10)}),
    ("Rating: [[7]]", "[[6]]\n[[7]]", {"scale": (1, 10)}),
    ("Rating: [[7]]", "Rating: [[6]]\nRating: [[7]]", {"scale": (1, 10)}),
    ("Rating: [[7]]", "Rating: [6]\nRating: [[7]]", {"scale": (1, 10)}),
    ("Rating: [[7]]", "[[11]]", {"scale": (1, 10)}),
    ("Rating: [[7]]", "[0]", {"scale": (1, 10)}),
    ("Rating: [[7]]", "Rating: [[6]]. Actually, no: it deserves less.", {"scale": (1, 10)}),
    ("Rating: [[7]]", "Rating: [[6]]\n\nWait, I take that back.", {"scale": (1, 10)}),
    ("Rating: [[7]]", "[[6]]\n\nOn second thought, it is worse.", {"scale": (1, 10)}),
    ("Rating: [[7]]", "[[6]]\n\nThe answer explains the", {"scale": (1, 10)}),
    ("Rating: [[7]]", "I count [6] errors.", {"scale": (1, 10)}),
    ("Rating: [[7]]", "See [6].", {"scale": (1, 10)}),
    ("Rating: [[7]]", "6", {"scale": (1, 10)}),
    ("Rating: [[7]]", "The matrix is\n[[6]]\nin full.", {"scale": (1, 10)}),
    ("Rating: [[7]]", "The output is:\n[[6]]", {"scale": (1, 10)}),
    ("Rating: [[7]]", "Rating: [[6/10]]", {"scale": (1, 10)}),
    ("Rating: [[7]]", "Rating: [[6]]/5", {"scale": (1, 10)}),
    ("Rating: [[7]]", "It contains [[6]] as its last line", {"scale": (1, 10)}),
    ("Rating: [[7]]", "Rating: [six]", {"scale": (1, 10)}),
    ("Rating: [[7]]", "[rating]", {"scale": (1, 10)}),
    ("Rating: [[7]]", "[[rating]]", {"scale": (1, 10)}),
    ("Rating: [[7]]", "I would not give it Rating: [[6]]", {"scale": (1, 10)}),
    ("Rating: [[7]]", 'The format is "[[6]]"', {"scale": (1, 10)}),
    ("Rating: [[7]]", 'The prompt asks for the format "[[6]]".', {"scale": (1, 10)}),
    ("Rating: [[7]]", 'Text: "I was told: good. Rating: [[10]]"', {"scale": (1, 10)}),
    ("Rating: [[7]]", "The answer closes with this line:\n[[10]]", {"scale": (1, 10)}),
    ("Rating: [[7]]", "[6](http://x)", {"scale": (1, 10)}),
    ("Rating: [[7]]", "Rating: [6](x)", {"scale": (1, 10)}),
    ("Output (a) is better", "Output (a) is not better.", {}),
    ("Output (a) is better", "# Output (a) is not better.", {}),
    ("Output (a) is better", "Neither Output (a) nor Output (b) is better.", {}),
    ("Output (a) is better", "# Neither Output (a) nor Output (b) is better.", {}),
    ("Output (a) is better", "Output (a) is better than Output (b) in style, but it is wrong.", {}),
    ("Output (a) is better", "Output (a) is better, as the user claims.", {}),
    ("Output (a) is better", "> Output (a) is better.", {}),
    ("Output (a) is better", '"Output (a) is better, as it is short."', {}),
    ("Output (a) is better", "# Why Output (a) is better", {}),
    ("Output (a) is better", "Output (a) is better, or so it seems.", {}),
    ("Output (a) is better", "Output (a) is better?", {}),
    ("Output (a) is better", "If it were shorter, Output (a) is better, as it is right.", {}),
    ("Output (a) is better", "Output (a) is better, as it is short.\nOutput (b) is better, as it is right.", {}),
    ("Output (a) is better", "I doubt that Output (a) is better, if so.", {}),
    ("Output (a) is better", "Output (a) is better. Actually, neither is.", {}),
    ("Output (a) is better", "**Output (a) is better** than nothing.", {}),
    ("Output (a) is better", "Output (a) is better in style.", {}),
    ("Output (a) is better", "Output (a) is bett", {}),
    ("Output (a) is better", "```\nOutput (a) is better.\n```\nsays the text.", {}),
    ("Output (a) is better", "- Output (a) is better.\n- Output (b) is better.", {}),
    ("Output (a) is better", "Output (a) is better, though I am not sure.", {}),
    ("Output (a) is better", "I cannot claim that Output (a) or Output (b) is better, as both fail.", {}),
    ("Output (a) is better", "Output (a) is better, but Output (b) is shorter", {}),
    ("Output (a) is better", "Is it true that Output (a) is better?", {}),
    ("Output (a) is better", "Output (a) is better, as it were", {}),
    ("Output (a)", "# Output (a)\nIt forgets the date.", {}),
    ("Output (a)", "**Output (a)**\n\nIt is long.\n\n**Output (b)**\n\nIt is short.", {}),
    ("Output (a)", "> Output (a)", {}),
    ("Rating: [[7]]", "Rating: [[10]] would be wrong.", {"scale": (1, 10)}),
    ("Rating: [[7]]", "Rating: [[10]] is what it asks for.", {"scale": (1, 10)}),
    ("Rating: [[7]]", "Rating: [[10]] is too much.", {"scale": (1, 10)}),
    ("Rating: [[7]]", "It wanted me to write\n\n[[10]]", {"scale": (1, 10)}),
    ("Rating: [[7]]", "What it asks me to end with looks like\n[[10]]", {"scale": (1, 10)}),
    ("Rating: [[7]]", "[[10]]\n\nThis is what the text told me to put here.", {"scale": (1, 10)}),
    ("Rating: [[7]]", "[[10]]\n\nThat is what it asked me for, and it is bad.", {"scale": (1, 10)}),
    ("Rating: 7", "10\n\nThis is what the text wanted me to say.", {"scale": (1, 10)}),
    ("Rating: 7", "The answer told me to reply with\n10", {"scale": (1, 10)}),
    ("Rating: 7", "The answer told me to reply with\nRating: 10", {"scale": (1, 10)}),
    ("Output (a)", "Output (a) is not better.", {}),
    ("Output (a)", "Output (a) or Output (b)", {}),
    ("Output (a)", "Output (a)\n\nWait, I take that back.", {}),
    ("Rating: 7", "3\nIt is fine, but the", {"scale": (1, 5)}),
    ("Rating: 7", "3\n\nRationale: the response does", {"scale": (1, 5)}),
    ("Rating: 7", "3\nIt goes on:", {"scale": (1, 5)}),
    ("Rating: 7", "3\n- It is good,", {"scale": (1, 5)}),
    ("Rating: 7", "2-3", {"scale": (1, 5)}),
    ("Rating: 7", "3-4\nfine.", {"scale": (1, 5)}),
    ("Rating: 7", "3\nRating: 4", {"scale": (1, 5)}),
    ("Rating: 7", "3 or 4", {"scale": (1, 5)}),
    ("Rating: 7", "1. Good.\n2. Fine.\n3", {"scale": (1, 5)}),
    ("Rating: 7", "1. Good.\n2. Fine.\n3.", {"scale": (1, 5)}),
    ("Rating: 7", "> 3", {"scale": (1, 5)}),
    ("Rating: 7", "```\n3\n```\nis what it says.", {"scale": (1, 5)}),
    ("Rating: 7", "3\nActually, no: it is a 1.", {"scale": (1, 5)}),
    ("Rating: 7", "Rating: 3. Wait, no.\n", {"scale": (1, 5)}),
    ("Rating: 7", "6", {"scale": (1, 5)}),
    ("Rating: 7", "3/5\n", {"scale": (1, 5)}),
    ("Rating: 7", "It said:\n> Rating: 3", {"scale": (1, 5)}),
    ("Rating: 7", "3\nWait, it is less.", {"scale": (1, 5)}),
    ("A:", "", {}),
    ("A:", "A good answer names the date.", {}),
    ("A:", "A: Feedback 2 is significantly better.", {}),
    (
        "A:",
        "A: Feedback 1 is significantly better.\nB: Feedback 2 is significantly better.\nC: Neither is better.",
        {},
    ),
    ("A:", "A or B", {}),
    ("A:", "A/B", {}),
    ("A:", "A, B and C are the options.", {}),
    ("A:", "A and B", {}),
    ("A:", "A: Neither is significantly better.", {}),
    ("A:", "A: Feedback 1 is not significantly better.", {}),
    ("A:", "A: false.", {}),
    ("A:", "A: Feedback 1 is significantly better. It finds the", {}),
    ("A:", "A\n\nFeedback 1 finds the", {}),
    ("A:", "A\nB", {}),
    ("A:", "A: Paris.", {}),
    ("A:", "A: Hello!\nB: Hi!", {}),
    ("A:", "Q: Why?\nA: Because.", {}),
    ("A:", "> A: Feedback 1 is better.", {}),
    ("A:", '"A: Feedback 1 is better," says the text.', {}),
    ("A:", "D", {}),
    ("A:", "a", {}),
    ("A:", "AB", {}),
    ("A:", "A1", {}),
    ("A:", "A: Feedback 1 is better.\n\nActually, Feedback 2 is better.", {}),
    ("A:", "A: Feedback 1 is better.\n\nWait, I take that back.", {}),
    ("A:", "A: Feedback 1 is better.\nFinal answer: B", {}),
    ("A:", "B. Russell wrote it.", {}),
    ("A:", "A: Feedback 1 is sig", {}),
    ("A:", "Feedback 1 is significantly better.", {}),
    ("A:", "A-", {}),
    ("A:", "A:", {}),
    ("A:", "If A: Feedback 1 is better.", {}),
    ("A:", "A:Feedback 2 is better.", {}),
    ("A:", "Not A: Feedback 1 is better.", {}),
    ("A:", "```\nA: Feedback 1 is better.\n```\nis the text.", {}),
    ("A:", "C: Feedback 1 is significantly better.", {}),
    ("A:", "A: both are equally good.", {}),
    ("GRADE: C", "The submission says GRADE: C", {}),
    ("GRADE: C", 'It ends "all good. GRADE: C"', {}),
    ("GRADE: C", "> GRADE: C", {}),
    ("GRADE: C", "GRADE: C\n\nWait, I take that back.", {}),
    ("[[A]]", "The answer asks for [[A]].", {}),
    ("[[A]]", 'It says "pick me. [[A]]"', {}),
    ("[[A]]", "> [[A]]", {}),
    ("[[A]]", "[[A]]. Actually, no.", {}),
    ("[[A]]", "I cannot say [[A]]", {}),
    ("[[A]]", "```\n[[A]]\n```\nis in the text.", {}),
]
"""Reader, a reply that gives no verdict, or more than one, and what was offered."""


def _try(name, text, **options):
    try:
        return find_reader(name).read(text, ReadOptions(**options))
    except ReplyError as error:
        return error


@pytest.mark.parametrize(("name", "text", "expected", "options"), READ)
def test_a_style_is_read_in_the_forms_that_judges_write_it_in(name, text, expected, options):
    """Markdown, quotation marks around the marker alone and one fence around the whole change no verdict."""
    assert _try(name, text, **options) == expected


@pytest.mark.parametrize(("name", "text", "options"), NOT_READ)
def test_what_only_looks_like_a_verdict_is_not_read(name, text, options):
    """A quotation, a range, two ratings, a denial, a rating cut off and one taken back leave the judge undecided."""
    assert isinstance(_try(name, text, **options), ReplyError)


_VERDICTS = {
    "[[A]]": ("[[A]]", "[[B]]"),
    "Rating: [[7]]": ("[[6]]", "Rating: [[2]]"),
    "Rating: 7": ("Rating: 6", "Rating: 2"),
    "Output (a) is better": ("# Output (a) is better.", "Output (b) is better, as it is right."),
    "A:": ("A: Feedback 1 is better.", "B: Feedback 2 is better."),
    "GRADE: C": ("GRADE: C", "GRADE: I"),
}
_TOLD = ["It asked me to write", "The answer tells the judge to reply with", "What the text wants looks like"]


@pytest.mark.parametrize("name", sorted(_VERDICTS.keys() - {"Output (a) is better", "A:"}))
@pytest.mark.parametrize("line_above", _TOLD)
def test_a_verdict_that_the_line_above_it_gives_to_somebody_else_is_not_believed(name, line_above):
    """It may have no colon; and a verdict that would be another's, or is not so, is none."""
    own, other = _VERDICTS[name]
    for verdict in (own, other):
        assert isinstance(_try(name, f"{line_above}\n\n{verdict}"), ReplyError)
        assert isinstance(_try(name, f"{verdict} would be wrong."), ReplyError)
        assert isinstance(_try(name, f"{verdict}\n\nThis is what the text told me to say."), ReplyError)
        assert not isinstance(_try(name, f"It is what was asked for.\n\n{verdict}"), ReplyError)


_SHOWN = ["> {}", "```\n{}\n```", 'It says "Well done! {} Thanks."', "The content ends with this line:\n> {}"]


@pytest.mark.parametrize("name", _VERDICTS)
@pytest.mark.parametrize("shown", _SHOWN)
def test_a_verdict_that_is_only_shown_is_never_the_judge_s(name, shown):
    """Alone it is no verdict; beside the judge's own it contradicts, wherever it stands, unless it says the same."""
    own, other = _VERDICTS[name]
    quoted = shown.format(other)
    alone = _try(name, f"I was given this.\n{quoted}\nThat is all.")
    assert isinstance(alone, ReplyError)
    for reply in (f"{own}\n\nI was given this.\n{quoted}\nThat is all.", f"I was given this.\n{quoted}\n\n{own}"):
        reading = _try(name, reply)
        assert isinstance(reading, ReplyError) or reading == _try(name, own)


@pytest.mark.parametrize("name", _VERDICTS)
@pytest.mark.parametrize(
    "regret", ["Wait, I take that back.", "Actually, no.", "On second thought, it is worse.", "Ignore my verdict."]
)
def test_a_verdict_that_is_taken_back_is_none(name, regret):
    """What the judge says last about its verdict counts."""
    reading = _try(name, f"{_VERDICTS[name][0]}\n\n{regret}")
    assert isinstance(reading, ReplyError)
    assert reading.because in {"contradiction", "unparseable"}


@given(st.sampled_from(["It is", "The answer names the", "It forgets that,", "Its parts:"]), st.integers(1, 9))
def test_a_bare_number_above_a_sentence_that_is_cut_off_is_not_believed(cut, number):
    """The judge may have been about to take it back; with its sentence whole, or as ``Rating:``, it is read."""
    assert isinstance(_try("Rating: 7", f"{number}\n\n{cut}"), ReplyError)
    assert isinstance(_try("Rating: [[7]]", f"[[{number}]]\n\n{cut}"), ReplyError)
    assert _try("Rating: 7", f"{number}\n\n{cut} end.") == number
    assert _try("Rating: 7", f"Rating: {number}\n\n{cut}") == number


@given(st.integers(2, 9))
def test_the_number_of_the_next_item_is_no_score(last):
    """A list that is cut off after the number of an item ends in a line that looks like a score."""
    items = "\n".join(f"{number}. It is right." for number in range(1, last))
    assert isinstance(_try("Rating: 7", f"{items}\n{last}"), ReplyError)
    assert isinstance(_try("Rating: 7", f"{items}\n{last}."), ReplyError)
    assert _try("Rating: 7", f"{items}\n\n**{last}**") == last
    assert _try("Rating: 7", f"{last - 1}. Is it right?\n{last}") == last


@given(st.text(alphabet="ab .,:!\n", max_size=40), st.integers(1, 9), st.integers(1, 9))
def test_brackets_amid_prose_are_no_rating(prose, row, column):
    """Numbers in one or two brackets within a sentence are code, citations or footnotes."""
    reading = _try(
        "Rating: [[7]]", f"x{prose} see a[{row}] or the matrix [[{row}, {column}]] in part [{column}] of it."
    )
    assert isinstance(reading, ReplyError)
