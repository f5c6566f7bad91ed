"""The replies of other tools' judges, read by the name of their style."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge import ReplyError, UsageError
from adjudge.question import READERS, ReadOptions, find_reader

TWO = ("tea", "Tea")


def _read(name, text, **options):
    return find_reader(name).read(text, ReadOptions(**options))


def _find_reason(name, text, **options):
    with pytest.raises(ReplyError) as caught:
        _read(name, text, **options)
    assert caught.value.detail
    return caught.value.because


def _try(name, text, options):
    try:
        return find_reader(name).read(text, options), None
    except ReplyError as error:
        return None, error


# ---------------------------------------------------------------- finding a reader


def test_every_reader_is_found_by_its_name():
    """The table's keys are the readers' own names, and each says in a sentence what it reads."""
    assert len(READERS) == 13
    for name, reader in READERS.items():
        assert find_reader(name) is reader
        assert reader.name == name
        assert reader.about.endswith(".")


def test_an_unknown_reader_names_the_nearest_and_all():
    """A slip of the finger is answered with what was probably meant, and with everything there is."""
    with pytest.raises(UsageError, match="did you mean 'GRADE: C'") as caught:
        find_reader("grade: C")
    assert all(repr(name) in str(caught.value) for name in READERS)


@pytest.mark.parametrize("scale", [(1, 1), (5, 1), (0, float("inf")), (float("nan"), 1), (1, 2, 3)])
def test_a_scale_has_two_finite_ends(scale):
    """A scale that holds no score, or any score, is the caller's mistake."""
    with pytest.raises(UsageError, match="scale must be two finite numbers"):
        ReadOptions(scale=scale)


@pytest.mark.parametrize("labels", [("a", "a"), ("",), (" a",), "ab"])
def test_labels_are_different_texts(labels):
    """Two labels that read alike, an empty one, or a bare string instead of a tuple, are the caller's mistake."""
    with pytest.raises(UsageError, match="labels must be different texts"):
        ReadOptions(labels=labels)


# ---------------------------------------------------------------- what each form reads


@pytest.mark.parametrize(
    ("name", "text", "options", "expected"),
    [
        ("[[A]]", "The second is vague. [[A]]", {}, "first"),
        ("[[A]]", "[[B]]\nbecause it is right.", {}, "second"),
        ("[[A]]", "Both fine: [[C]]. As I said: [[C]]", {}, "tie"),
        ("[[A>B]]", "Verdict: [[A>>B]]", {}, "first"),
        ("[[A>B]]", "Verdict: [[A>B]]", {}, "first"),
        ("[[A>B]]", "Verdict: [[A=B]]", {}, "tie"),
        ("[[A>B]]", "Verdict: [[B>A]]", {}, "second"),
        ("[[A>B]]", "I begin with [[B>>A]] and end with [[B>>A]]", {}, "second"),
        ("Rating: [[7]]", "It works.\n\nRating: [[7]]", {}, 7.0),
        ("Rating: [[7]]", "**Rating:** [[7.5]]", {"scale": (1, 10)}, 7.5),
        ("Rating: [[7]]", "grid = [[0]] is its first line. Rating: [[4]]", {}, 4.0),
        ("Rating: [[7]]", "Rating: [[4]], that is Rating: [[4.0]]", {}, 4.0),
        ("Rating: [[7]]", "All in all I rate this reply [[9]].", {}, 9.0),
        ("Rating: 7", "6", {"scale": (0, 9)}, 6.0),
        ("Rating: 7", " 2.\n", {}, 2.0),
        ("Rating: 7", "2.0", {}, 2.0),
        ("Rating: 7", "-1", {"scale": (-1, 1)}, -1.0),
        ("Rating: 7", "Rating: 3", {}, 3.0),
        ("Rating: 7", "- Fluency: 3", {}, 3.0),
        ("Rating: 7", "Response: \n\n3", {}, 3.0),
        ("Rating: 7", "**Score:** 4", {}, 4.0),
        ("Rating: 7", "Rating: 1\nRationale: It ends in 1984 and has 2 parts.", {}, 1.0),
        ("Rating: 7", "Analysis: It has 2 parts.\nRating: 1", {}, 1.0),
        ("Rating: 7", "The form follows.\nRating: 1\nI found 3 mistakes in it.", {}, 1.0),
        ("Rating: 7", "The form follows.\nRating:\n1\nI found 3 mistakes in it.", {}, 1.0),
        ("Rating: 7", "The form follows.\nFluency: 1\nI found 3 mistakes in it.", {"labels": ("Fluency",)}, 1.0),
        ("Rating: 7", "It reads well. Rating: 3", {}, 3.0),
        ("Rating: 7", "Score: 2\nFinal score: 2.0", {}, 2.0),
        ("Output (a)", "Output (a)", {}, "first"),
        ("Output (a)", " Output (b).\n", {}, "second"),
        ("Output (a)", "Output (b)\n\nOutput (a) forgets the date.", {}, "second"),
        ("Output (a)", "Output (b) is better. It is shorter than Output (a).", {}, "second"),
        ("Output (a) is better", "Output (a) is short. Therefore, Output (b) is better.", {}, "second"),
        ("Output (a) is better", "Output (a) is better because it is short.", {}, "first"),
        ("Output (a) is better", "Having read both, I think that Output (a) is better", {}, "first"),
        ("Output (a) is better", "Thus, Output (b) is better than Output (a).", {}, "second"),
        (
            "Output (a) is better",
            "Output (b) isn't right. Output (a) is better.\nSo Output (a) is better!",
            {},
            "first",
        ),
        ("Output (a) is better", "I would say that Output (a) is better for two reasons.", {}, "first"),
        ("Output (a) is better", "Output (b)", {}, "second"),
        ("GRADE: C", "It says the same.\n\nGRADE: C", {}, "C"),
        ("GRADE: C", "I close with GRADE: I.", {}, "I"),
        ("GRADE: C", "Grade: **P**", {}, "P"),
        ("GRADE: C", "GRADE: half right", {"labels": ("half", "half right")}, "half right"),
        ("label", " refusal\n", {"labels": ("refusal", "answer")}, "refusal"),
        ("name", "tea", {"labels": TWO}, "first"),
        ("name", "Tea\n", {"labels": TWO}, "second"),
        ("json score", '{"reasoning": "score: 9", "score": 3}', {"scale": (1, 5)}, 3.0),
        ("json score", 'Here:\n```json\n{"rating": 2.5}\n```\nAnything else?', {}, 2.5),
        ("json score", '{"score": 3, "rating": 3.0}', {}, 3.0),
        ("json winner", '{"winner": "A"}', {}, "first"),
        ("json winner", 'My choice: {"choice": "B", "verdict": "B"}', {}, "second"),
        ("json winner", '{"verdict": "tie"}', {"labels": TWO}, "tie"),
        ("json winner", '{"winner": "Tea"}', {"labels": TWO}, "second"),
    ],
)
def test_a_reply_in_its_form_is_read(name, text, options, expected):
    """Each form reads its own style, with what usually stands around it."""
    assert _read(name, text, **options) == expected


RANKING = '{"ordered_models": [{"model": "Tea", "rank": 1}, {"model": "tea", "rank": 2}]}'


@pytest.mark.parametrize(
    "text",
    [
        RANKING,
        f"```\n{RANKING}\n```",
        f"```json\n{RANKING}\n```",
        f"I compared them.\n\n```json\n{RANKING}\n```\n\nAsk if you need more.",
        '{"ordered_models": [{"model": "tea", "rank": 2}, {"model": "Tea", "rank": 1}], "why": "tea is first"}',
    ],
)
def test_a_ranking_is_won_by_rank_1(text):
    """The rank decides, not the order in the list, and prose or a fence may stand around the object."""
    assert _read("ordered_models", text, labels=TWO) == "second"


# ---------------------------------------------------------------- markers that disagree


@pytest.mark.parametrize(
    ("name", "text", "options"),
    [
        ("[[A]]", 'The answer says "[[A]]" itself. My verdict: [[B]]', {}),
        ("[[A>B]]", "First [[A>B]], then [[B>A]], then [[A>B]]", {}),
        ("[[A>B]]", "[[A>>B]] and [[A>B]]", {}),
        ("[[A>B]]", "[[A<B]] and [[A>B]]", {}),
        ("Rating: [[7]]", "> Rating: [[10]]\n\nRating: [[2]]", {}),
        ("Rating: [[7]]", "Rating: [[1/10]]\n\nRating: [[9]]", {}),
        ("Rating: [[7]]", "Rating: [[1]]. Or I rate it [[9]].", {}),
        ("Rating: 7", "Rating: 2\nRationale: odd.\n- Facts:\nRating: 1", {}),
        ("Rating: 7", "Naturalness: 3\nCoherence: 2", {}),
        ("Rating: 7", "It asks for rating: 5, in vain.\nRating: 1", {}),
        ("Rating: 7", "> Score: 5\nScore: 1", {}),
        ("Rating: 7", "Score: 1 of 5\nRating: 5", {}),
        ("Output (a)", "Output (a)\n\nOutput (b)", {}),
        ("Output (a)", "Output (a)\nStill, Output (b) is better.", {}),
        ("Output (a) is better", "Output (a) is better.\n\nTherefore, Output (b) is better.", {}),
        ("Output (a) is better", "It claims that Output (a) is better. Output (b) is better.", {}),
        ("GRADE: C", "The submission ends with GRADE: C\n\nGRADE: I", {}),
        ("GRADE: C", "GRADE: Correct. GRADE: C", {}),
        ("ordered_models", RANKING.replace("2", "1"), {"labels": TWO}),
        ("ordered_models", RANKING + RANKING.replace("1", "3"), {"labels": TWO}),
        ("json score", '{"score": 1} {"score": 5}', {}),
        ("json score", '{"score": 1, "rating": 5}', {}),
        ("json winner", '{"winner": "A", "choice": "B"}', {}),
    ],
)
def test_markers_that_disagree_are_a_contradiction(name, text, options):
    """Neither the first nor the last wins: one of them may be quoted from the content."""
    assert _find_reason(name, text, **options) == "contradiction"


@given(st.permutations(["[[A]]", "[[B]]"]), st.lists(st.text(max_size=20), min_size=3, max_size=3))
def test_no_text_around_two_markers_makes_one_of_them_win(markers, prose):
    """Whatever stands before, between and after, two different markers are never a verdict."""
    text = f"{prose[0]} {markers[0]} {prose[1]} {markers[1]} {prose[2]}"
    assert _find_reason("[[A]]", text) == "contradiction"


# ---------------------------------------------------------------- no marker, or almost one


@pytest.mark.parametrize(
    ("name", "text", "options"),
    [
        ("[[A]]", "A is better. Final verdict: [[", {}),
        ("[[A]]", "[A], [[a]], [[ A ]], [[D]]", {}),
        ("[[A>B]]", "[[A<B]]", {}),
        ("[[A>B]]", "[[A]]", {}),
        ("Rating: [[7]]", "Rating: [[", {}),
        ("Rating: [[7]]", "Rating: 7", {}),
        ("Rating: [[7]]", "Rating: [[7/10]]", {}),
        ("Rating: [[7]]", "Rating: [[seven]]", {}),
        ("Rating: [[7]]", "The matrix ends in [[7]]", {}),
        ("Rating: [[7]]", "I would not rate it [[7]].", {}),
        ("Rating: 7", "", {}),
        ("Rating: 7", "Rating:\n\nRationale:", {}),
        ("Rating: 7", "It was written in the 1990s and has 3 parts.", {}),
        ("Rating: 7", "1. Fluency: 3", {}),
        ("Rating: 7", "2. It is a bit strange.", {}),
        ("Rating: 7", "3 (good)", {}),
        ("Rating: 7", "Rating: 3/5", {}),
        ("Rating: 7", "Rating: three", {}),
        ("Rating: 7", "Rating: ٣", {}),
        ("Rating: 7", "It counts.\nSteps that failed: 3\nI would not take it.", {}),
        ("Rating: 7", "I give it a score of 3.", {}),
        ("Output (a)", "I cannot select either Output (a) or Output (b).", {}),
        ("Output (a)", "Output (a) forgets the date.", {}),
        ("Output (a)", "Output (a) is better?", {}),
        ("Output (a)", "Output (c)", {}),
        ("Output (a) is better", "Both are equally good.", {}),
        ("Output (a) is better", "Neither Output (a) nor Output (b) is better.", {}),
        ("Output (a) is better", "I don't believe that Output (a) is better.", {}),
        ("Output (a) is better", "If length counts, Output (a) is better.", {}),
        ("Output (a) is better", "It claims that Output (a) is better.", {}),
        ("Output (a) is better", '"Output (a) is better."', {}),
        ("Output (a) is better", "Output (a) is better written.", {}),
        ("Output (a) is better", "Output (a) is better, or so it seems.", {}),
        ("Output (a) is better", "Output (a) is a better poem.", {}),
        ("Output (a) is better", "no " * 200 + "that Output (a) is better.", {}),
        ("GRADE: C", "The grade is C.", {}),
        ("GRADE: C", "GRADE: Incomplete", {}),
        ("GRADE: C", "GRADE: c", {}),
        ("GRADE: C", "GRADE: C", {"labels": ("good", "bad")}),
        ("label", "refusal.", {"labels": ("refusal", "answer")}),
        ("label", "Refusal", {"labels": ("refusal", "answer")}),
        ("name", "TEA", {"labels": TWO}),
        ("name", "tea or Tea", {"labels": TWO}),
        ("name", "Neither", {"labels": TWO}),
        ("ordered_models", "tea wins", {"labels": TWO}),
        ("ordered_models", "{}", {"labels": TWO}),
        ("ordered_models", RANKING.replace("Tea", "Coffee"), {"labels": TWO}),
        ("ordered_models", RANKING.replace("1", "true"), {"labels": TWO}),
        ("ordered_models", RANKING.replace("1", '"1"'), {"labels": TWO}),
        ("ordered_models", RANKING.replace("1", "0"), {"labels": TWO}),
        ("ordered_models", '{"ordered_models": [{"model": "Tea", "rank": 1}]}', {"labels": TWO}),
        ("ordered_models", '{"ordered_models": [["Tea", 1], ["tea", 2]]}', {"labels": TWO}),
        (
            "ordered_models",
            '{"ordered_models": [{"model": ["Tea"], "rank": 1}, {"model": "tea", "rank": 2}]}',
            {"labels": TWO},
        ),
        ("json score", '{"score": "3"}', {}),
        ("json score", '{"score": true}', {}),
        ("json score", '{"score": null}', {}),
        ("json score", '{"points": 3}', {}),
        ("json score", '{"score": 3} {"score": 3}', {}),
        ("json winner", '{"winner": "a"}', {}),
        ("json winner", '{"winner": "A"}', {"labels": TWO}),
        ("json winner", '{"winner": ["A"]}', {}),
    ],
)
def test_what_is_almost_a_verdict_is_unparseable(name, text, options):
    """A mention, a negation, another spelling or a cut-off marker is not a verdict."""
    assert _find_reason(name, text, **options) == "unparseable"


@pytest.mark.parametrize(
    "text",
    [
        "{'score': 3}",
        '{"score": 3,}',
        '{"score": 3',
        '{"score": 3, "score": 3}',
        '{"score": 3, "more": {"a": 1, "a": 2}}',
        '{"score": NaN}',
        '{"score": -Infinity}',
        '{"score": 1e999}',
        '{"score": 1' + "0" * 5000 + "}",
        '{"a":' * 50_000,
        'Use {braces}. {"score": 3}',
        '} {"score": 3}',
        '{"score": 3} }',
    ],
)
def test_json_is_never_repaired(text):
    """What is not one closed object of plain JSON is unparseable, however obvious the mistake."""
    assert _find_reason("json score", text) == "unparseable"


@pytest.mark.parametrize("depth", [100, 400, 900])
def test_two_deep_objects_are_refused_without_exhausting_the_stack(depth):
    """An object that can only just be read must not crash what is done with it afterwards."""
    deep = '{"a":' * depth + "1" + "}" * depth
    assert _find_reason("json score", deep + deep) == "unparseable"
    assert _find_reason("json score", deep + deep.replace("1", "2")) in {"contradiction", "unparseable"}


# ---------------------------------------------------------------- off the scale, or not enough given


@pytest.mark.parametrize(
    ("name", "text"),
    [("Rating: [[7]]", "Rating: [[11]]"), ("Rating: 7", "11"), ("Rating: 7", "-1"), ("json score", '{"score": 0.99}')],
)
def test_a_score_outside_the_scale_is_off_scale(name, text):
    """A score is never moved to the nearest end."""
    assert _find_reason(name, text, scale=(1, 10)) == "off_scale"


def test_the_ends_of_the_scale_belong_to_it():
    """The lowest and the highest score are scores."""
    assert [_read("Rating: 7", text, scale=(1, 10)) for text in ("1", "10")] == [1.0, 10.0]


@pytest.mark.parametrize(
    ("name", "labels"),
    [("label", ()), ("name", ()), ("name", ("a", "b", "c")), ("ordered_models", ("a",)), ("json winner", ("a",))],
)
def test_a_reader_of_names_needs_them(name, labels):
    """Without the names that were offered nothing can be read, and that is the caller's to mend."""
    with pytest.raises(UsageError, match="needs the"):
        _read(name, "a", labels=labels)


# ---------------------------------------------------------------- hostile replies

HOSTILE = [
    piece * (100_000 // len(piece))
    for piece in (
        "[",
        "]",
        "[[",
        "[[A",
        "{",
        "}",
        '{"a":',
        "[[A]]",
        "Rating:",
        "Rating: ",
        "rating " * 9,
        "score: 1",
        "1",
        "1\n",
        "-",
        "*",
        "_",
        " ",
        "\n",
        "\t",
        "- " * 3,
        "a ",
        "a:",
        "Output (a)",
        "Output (a)\n",
        "Output (a) is better",
        "GRADE:",
        "GRADE: ",
        "GRADE: C ",
        '"',
        "\\",
        '{"a":1}',
        "that Output (a) is better, ",
        "rate [[1]] ",
        "[[1]]",
        "no. ",
        "`",
        "\x00",
        "😀",
    )
]


@pytest.mark.parametrize("name", list(READERS))
def test_a_hostile_reply_ends_in_a_verdict_or_a_reply_error(name):
    """A hundred thousand brackets take no longer than as many letters, and crash nothing; a slow pattern times out."""
    for text in HOSTILE:
        for reply in (text, text + "!", "Rating: " + text, '{"score": ' + text):
            value, error = _try(name, reply, ReadOptions(labels=TWO))
            assert error is None or error.because in {"unparseable", "contradiction"}
            assert error is None or len(error.detail) < 400
            assert (value is None) == (error is not None)


_PIECES = st.sampled_from(
    [
        "[[A]]",
        "[[B>A]]",
        "Rating: ",
        "[[3]]",
        "3",
        ".",
        "\n",
        " ",
        "Output (a)",
        " is better",
        "that ",
        "not ",
        "GRADE: ",
        "C",
        "tea",
        "Tea",
        '{"score": ',
        '{"winner": ',
        '"A"',
        "}",
        "- ",
        "**",
        "```",
        RANKING,
    ]
)
_REPLIES = st.text() | st.lists(_PIECES, max_size=12).map("".join)


@given(st.sampled_from(list(READERS)), _REPLIES)
def test_every_reply_gives_a_value_of_the_reader_s_kind_or_a_reply_error(name, text):
    """Nothing else comes out, whatever goes in."""
    value, error = _try(name, text, ReadOptions(scale=(1, 5), labels=TWO))
    if error is not None:
        assert error.because in {"unparseable", "contradiction", "off_scale"}
    elif find_reader(name).kind == "preference":
        assert value in {"first", "second", "tie"}
    elif find_reader(name).kind == "label":
        assert value in TWO
    else:
        assert isinstance(value, float)
        assert 1 <= value <= 5
