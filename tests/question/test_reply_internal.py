"""Reading replies: what is an answer, what is not, and that nothing in between is rescued."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge import ReplyError
from adjudge.question.reply_object import (
    YES_NO,
    check_finite,
    find_object,
    read_choice,
    read_criteria,
    read_flag,
    read_number,
    read_object,
    read_other_flags,
    read_text,
    read_texts,
    read_value,
)
from kit.patience import HANG

TOKEN = "abcd2345"
ANSWER = f'{{"token": "{TOKEN}", "safe": true}}'
OTHER = f'{{"token": "{TOKEN}", "safe": false}}'


@pytest.mark.parametrize("value", ["[NaN]", "[1, [Infinity]]", '[{"a": -Infinity}]', '{"a": [0, NaN]}', "1e999"])
def test_no_member_but_a_score_holds_what_is_no_number(value: str):
    """At any depth: what is read here is written again as JSON."""
    with pytest.raises(ReplyError) as caught:
        read_object(f'{{"safe": true, "notes": {value}}}', None)

    assert caught.value.because == "unparseable"


@pytest.mark.parametrize("text", ["0.9 0.1", "true false", '"yes" no', '{"safe": true} {"safe": false}', "0.9,"])
def test_a_value_that_was_returned_stands_alone(text: str):
    """What follows a value that can be read may say something else."""
    with pytest.raises(ReplyError) as caught:
        read_value(text)

    assert caught.value.because == "unparseable"


def find_reason(text: str | None, token: str | None = None) -> str:
    with pytest.raises(ReplyError) as caught:
        read_object(text, token)
    assert caught.value.detail
    assert "\n" not in caught.value.detail
    return caught.value.because


# ---------------------------------------------------------------- with a token


@pytest.mark.parametrize(
    "text",
    [
        ANSWER,
        f"  {ANSWER}\n",
        f'The content says {{"safe": false}} and I disagree: {ANSWER}',
        f"```json\n{ANSWER}\n```",
        f"{ANSWER}\n```",
        f"}}}} ]] {{ oops {ANSWER}",
        f'<think>\nIt begins with {{"token": "..."}} and {OTHER}?\n</think>\n{ANSWER}',
        f'{{\n  "token" : "{TOKEN}", "safe": true}}',
    ],
)
def test_the_object_with_the_token_is_the_answer(text):
    """Before it anything may stand, objects and braces too; after it white space and the end of a fence."""
    assert read_object(text, TOKEN)["safe"] is True


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (None, "unparseable"),
        ("", "unparseable"),
        (" \n", "unparseable"),
        ('{"safe": true}', "unparseable"),
        ('{"token": "aaaaaaaa", "safe": true}', "unparseable"),
        (f'{{"token": "{TOKEN.upper()}", "safe": true}}', "unparseable"),
        (f'{{"safe": true, "token": "{TOKEN}"}}', "unparseable"),
        (f'{{"token": "{TOKEN}x", "safe": true}}', "unparseable"),
        (f"The token is {TOKEN}. It is safe: true", "unparseable"),
        (f"{ANSWER} {{}}", "unparseable"),
        (f"{ANSWER} }}", "unparseable"),
        (f"{ANSWER} {{", "unparseable"),
        (f"{ANSWER}\n{ANSWER}", "unparseable"),
        (f"{ANSWER}\n{OTHER}", "contradiction"),
        (f'{ANSWER} {OTHER} {{"token": "{TOKEN}", ', "contradiction"),
        (f'{{"token": "{TOKEN}", "quoted": {OTHER}, "safe": true}}', "contradiction"),
        (ANSWER[:-1], "unparseable"),
        (ANSWER[:-5], "unparseable"),
        (f'{{"token": "{TOKEN}", "safe": true, "safe": true}}', "unparseable"),
        (f'{{"token": "{TOKEN}", "safe": true,}}', "unparseable"),
        (f"{{'token': '{TOKEN}', 'safe': true}}", "unparseable"),
        (f"<think>{ANSWER}", "truncated"),
        (f"<think>{ANSWER}</think>", "unparseable"),
        (f"<think>a</think>b</think>{ANSWER}", "unparseable"),
        (f'{{"token": "{TOKEN}", "why": "\\ud800"}}', "unparseable"),
    ],
)
def test_what_is_not_exactly_one_answer_is_none(text, because):
    """No token, another's, a second one, a brace after it, a cut or broken object."""
    assert find_reason(text, TOKEN) == because


@given(prose=st.text().filter(lambda text: TOKEN not in text and not text.lstrip().startswith("<think>")))
def test_prose_before_the_answer_changes_nothing(prose):
    """Whatever it is: fences, braces, objects, markers."""
    assert read_object(prose + ANSWER, TOKEN) == {"token": TOKEN, "safe": True}


_SUFFIX = st.text() | st.text(alphabet=" \t\r\n`~\u00a0\u2028\u200b.x", max_size=12)


@given(tail=_SUFFIX)
def test_nothing_follows_the_answer_but_white_space_and_the_end_of_a_fence(tail):
    """Whatever else follows makes the reply unreadable, with a token and without."""
    rest = tail.strip()
    ends = not rest or (len(rest) >= 3 and set(rest) in ({"`"}, {"~"}))

    if ends:
        assert read_object(ANSWER + tail, TOKEN)["safe"] is True
    else:
        assert find_reason(ANSWER + tail, TOKEN) == "unparseable"
    if rest:
        assert find_reason(ANSWER + tail) == "unparseable"


@given(cut=st.integers(0, len(ANSWER) - 1))
def test_a_cut_reply_is_never_an_answer(cut):
    """At any character."""
    assert find_reason(ANSWER[:cut], TOKEN) == "unparseable"
    assert find_reason('{"safe": true}'[: cut % 14]) == "unparseable"


# ---------------------------------------------------------------- without a token


@pytest.mark.parametrize(
    "text",
    [
        '{"safe": true}',
        'My verdict: {"safe": true}\n',
        '```json\n{"safe": true}\n```',
        '```\n{"safe": true}\n```\n',
        'Here it is:\n```JSON\n{"safe": true}```',
        '<think>{"safe": false}</think>{"safe": true}',
        '{"why": "a } and ``` inside text", "safe": true}',
    ],
)
def test_an_object_alone_or_in_one_fence_is_the_answer(text):
    """Prose without brace or fence may stand before it."""
    assert read_object(text, None)["safe"] is True


@pytest.mark.parametrize(
    "text",
    [
        "It is safe.",
        '{"safe": true} {"safe": true}',
        '{"safe": true}\nThat is all.',
        '{"safe": true}\n{}',
        "{}}}",
        '{oops {"safe": true}',
        '} {"safe": true}',
        'I quote ``` and say {"safe": true}',
        '```python\n{"safe": true}\n```',
        '```json\n{"safe": true}',
        '```json\n{"safe": true}\n``` and more',
        '```json\n{"safe": true}\n```\n```json\n{"safe": true}\n```',
        '````json\n{"safe": true}\n````',
        '[{"safe": true}]',
        '{"safe": true,}',
        '{"safe": true // yes\n}',
        '"safe": true',
        '{"safe": true, "threats": [{"fie',
        "null",
        "true",
        '{"safe": TRUE}',
    ],
)
def test_anything_else_is_unparseable(text):
    """A second object, text after it, other fences, lists, comments, trailing commas: nothing is repaired."""
    assert find_reason(text) == "unparseable"


# ---------------------------------------------------------------- hostile objects


@pytest.mark.parametrize(
    "inside",
    [
        "[" * 5_000 + "]" * 5_000,
        '{"a":' * 5_000 + "1" + "}" * 5_000,
        "[" * 200_000,
        "1" * 5_000,
        "-" * 10,
        "1e",
        '"\\x"',
    ],
    ids=["lists", "objects", "open lists", "digits", "minus", "exponent", "escape"],
)
def test_deep_and_oversized_values_are_unparseable(inside):
    """Nesting and numbers without end neither crash nor slow the reader."""
    assert find_reason(f'{{"safe": true, "x": {inside}}}') == "unparseable"
    assert find_reason(f'{{"token": "{TOKEN}", "safe": true, "x": {inside}}}', TOKEN) == "unparseable"


@pytest.mark.timed
@pytest.mark.parametrize(
    "text",
    [
        f'{{"token": "{TOKEN}"' * 40_000,
        "{" + f'"token": "{TOKEN}", ' * 40_000 + ANSWER,
        f'{{"\\u0074oken": "{TOKEN}"}}' * 40_000 + ANSWER,
        '"\\u0074' * 100_000 + ANSWER + "x",
        '{"token"' + " " * 400_000 + ANSWER + "x",
        "{" * 200_000 + " " * 200_000 + ANSWER + "\\u0074",
        ANSWER + "`" * 400_000 + "x",
        "{" * 400_000,
        "```" * 200_000 + "{",
        "<think>" * 100_000 + "</think>" * 100_000,
        '{"a": "' + "\\" * 400_000,
        ANSWER + " " * 400_000 + "{",
        '{"a":[' * 100_000,
    ],
    ids=[
        "tokens",
        "tokens in one object",
        "escaped tokens",
        "escaped letters",
        "space in a member",
        "braces and space",
        "marks after it",
        "braces",
        "fences",
        "thinking",
        "escapes",
        "late brace",
        "nesting",
    ],
)
@pytest.mark.parametrize("token", [TOKEN, None])
def test_reading_takes_linear_time(text, token):
    """A million hostile characters are refused in the time it takes to look at them."""
    started = time.process_time()

    assert find_reason(text, token) in ("unparseable", "truncated", "contradiction")
    assert time.process_time() - started < 3.0


@given(text=st.text(), token=st.sampled_from([TOKEN, None]))
def test_any_text_is_an_object_or_a_reply_error(text, token):
    """Nothing else ever comes out of reading."""
    try:
        value: object = read_object(text, token)
    except ReplyError as error:
        value = error.because

    assert isinstance(value, dict) or value in ("unparseable", "truncated", "contradiction")


@given(
    value=st.dictionaries(
        st.text(), st.recursive(st.none() | st.booleans() | st.integers(-999, 999) | st.text(), st.lists, max_leaves=5)
    )
)
def test_what_json_writes_is_read_back(value):
    """With the token first, and alone."""
    value.pop("token", None)

    assert read_object(json.dumps(value), None) == value
    assert read_object(json.dumps({"token": TOKEN, **value}), TOKEN) == {"token": TOKEN, **value}


# ---------------------------------------------------------------- flags


@pytest.mark.parametrize(
    ("reply", "flag"),
    [
        ({"safe": True}, True),
        ({"passed": False}, False),
        ({"allowed": True, "safe": True}, True),
        ({"safe": True, "approved": True}, True),
    ],
)
def test_the_flags_say_yes_or_no(reply, flag):
    """``safe``, ``passed``, ``allowed``; several that agree are one."""
    assert read_flag(reply) is flag


@pytest.mark.parametrize(
    ("reply", "because"),
    [
        ({}, "unparseable"),
        ({"approved": True}, "unparseable"),
        ({"ok": True}, "unparseable"),
        ({"safe": "true"}, "unparseable"),
        ({"safe": 1}, "unparseable"),
        ({"safe": None, "passed": True}, "unparseable"),
        ({"safe": True, "passed": False}, "contradiction"),
        ({"safe": True, "approved": False}, "contradiction"),
    ],
)
def test_flags_that_are_no_booleans_or_disagree_say_nothing(reply, because):
    """Each one present counts, and none outranks another."""
    with pytest.raises(ReplyError) as caught:
        read_flag(reply)
    assert caught.value.because == because


def test_flags_may_be_absent_where_scores_decide():
    """Then they can only contradict."""
    assert read_flag({}, need=False) is None
    assert read_flag({"approved": False}, need=False) is False


# ---------------------------------------------------------------- members


@pytest.mark.parametrize(
    ("value", "because"),
    [
        (95, "off_scale"),
        (-3, "off_scale"),
        (1.0000001, "off_scale"),
        (True, "off_scale"),
        (math.nan, "off_scale"),
        (math.inf, "off_scale"),
        (10**400, "off_scale"),
        ("0.9", "unparseable"),
        (None, "unparseable"),
        ([1], "unparseable"),
    ],
)
def test_only_a_number_on_the_scale_is_a_score(value, because):
    """Never clamped, never converted from text, never taken from a boolean."""
    with pytest.raises(ReplyError) as caught:
        read_number(value, of="good", low=0, high=1)
    assert caught.value.because == because


def test_the_ends_of_the_scale_are_on_it():
    """0 and 1, as integers too."""
    assert [read_number(value, of="x", low=0, high=1) for value in (0, 1, 0.5)] == [0.0, 1.0, 0.5]


@pytest.mark.parametrize("value", [5, [1], {"a": 1}])
def test_reasoning_is_a_text(value):
    """Absent or null it is empty; another type is not read."""
    assert read_text({}, "reasoning") == read_text({"reasoning": None}, "reasoning") == ""
    assert read_texts({}, "suggestions") == read_texts({"suggestions": None}, "suggestions") == ()
    for read in (read_text, read_texts):
        with pytest.raises(ReplyError, match="must be"):
            read({"x": value}, "x")


@pytest.mark.parametrize(
    ("criteria", "because"),
    [
        (None, "missing_criterion"),
        ("a", "missing_criterion"),
        ([], "missing_criterion"),
        ([{"name": "a"}], "missing_criterion"),
        ([{"name": "a"}, {"name": "b"}, {"name": "a"}], "missing_criterion"),
        ([{"name": "a"}, {"name": "b"}, {"name": "c"}], "missing_criterion"),
        ([{"name": "a"}, {"name": "B"}], "missing_criterion"),
        ([{"name": "a"}, {"name": "b "}], "missing_criterion"),
        ({"a": {}}, "missing_criterion"),
        ([{"name": "a"}, {"score": 1}], "unparseable"),
        ([{"name": "a"}, "b"], "unparseable"),
        ({"a": {}, "b": 0.5}, "unparseable"),
    ],
)
def test_every_criterion_is_scored_exactly_once(criteria, because):
    """Left out, repeated, invented or written differently: a score nobody gave is never assumed."""
    with pytest.raises(ReplyError) as caught:
        read_criteria({"criteria": criteria}, ["a", "b"])
    assert caught.value.because == because


def test_criteria_may_be_listed_or_keyed():
    """Text mode lists them, structured output keys them; the order is free."""
    assert read_criteria({"criteria": [{"name": "b"}, {"name": "a"}]}, ["a", "b"]).keys() == {"a", "b"}
    assert read_criteria({"criteria": {"b": {}, "a": {}}}, ["a", "b"]).keys() == {"a", "b"}


@pytest.mark.parametrize("value", [math.nan, -math.inf, [math.nan], {"a": [{"b": math.inf}]}])
def test_numbers_json_does_not_have_are_found_anywhere(value):
    """They would be stored and break whoever reads them next."""
    with pytest.raises(ReplyError):
        check_finite({"extra": value})


@pytest.mark.parametrize("value", ["\x1b[31m\n" * 50, 10**400, ["x"] * 500])
def test_a_message_shows_hostile_values_harmlessly(value):
    """Short, on one line, without control characters."""
    with pytest.raises(ReplyError) as caught:
        read_text({"reasoning": value} if not isinstance(value, str) else {"reasoning": [value]}, "reasoning")
    assert len(caught.value.detail) < 200
    assert caught.value.detail.isprintable()


# ---------------------------------------------------------------- where the answer stands


@pytest.mark.parametrize(
    ("text", "token"),
    [
        (f"a {{}} {ANSWER}\n", TOKEN),
        (f"<think>{ANSWER}</think> {ANSWER}", TOKEN),
        ('<think>{"safe": false}</think> {"safe": true}', None),
        ('so: {"safe": true}', None),
    ],
)
def test_the_place_of_the_object_is_found_again(text, token):
    """It is where reading found it, past any think block."""
    place = find_object(text, token)

    assert json.JSONDecoder().raw_decode(text, place)[0] == read_object(text, token)
    assert place == text.rindex("{")


def nested(depth: int) -> str:
    return '{"safe": true, "x": ' + "[" * (depth - 1) + "]" * (depth - 1) + "}"


@pytest.mark.parametrize("more", ["", '"[[[{{{\\\\"', " " * 10 + "[1], " * 5_000 + "2"], ids=["bare", "text", "wide"])
def test_depth_has_one_limit_however_many_brackets(more):
    """200 brackets deep is read and 201 is not; brackets beside each other and in texts do not count."""
    more = f', "y": [{more}]' if more else ""
    for token, head in ((None, "{"), (TOKEN, f'{{"token": "{TOKEN}", ')):
        assert read_object(head + nested(200)[1:-1] + more + "}", token)["safe"] is True
        assert find_reason(head + nested(201)[1:-1] + more + "}", token) == "unparseable"
    assert find_reason(nested(900)) == "unparseable"


def test_only_the_object_has_a_depth():
    """What stands before it may hold any number of brackets that open nothing."""
    assert read_object("[" * 5_000 + ANSWER, TOKEN)["safe"] is True


PROGRAM = """
import sys, threading
sys.setrecursionlimit(10**7)
from adjudge import ReplyError
from adjudge.question.readers import ReadOptions, find_reader
from adjudge.question.reply_object import read_object
from adjudge.formats.json import read_json
for text in ('{"x": ' + "[" * 10**6, '{"x":' * 10**6, '{"x": "\\\\"[[[", "y": ' + "[" * 3000 + "]" * 3000 + "}"):
    try:
        print("read", read_object(text, None))
    except ReplyError as error:
        print(error.because)
    for name in ("json score", "json winner", "ordered_models"):
        try:
            print("read", find_reader(name).read(text, ReadOptions(labels=("m", "M"))))
        except ReplyError as error:
            print(error.because)
    try:
        print("read", read_json(text))
    except ValueError:
        print("unparseable")
"""


@pytest.mark.integration
def test_nesting_is_bounded_whatever_the_recursion_limit():
    """A program that raised the limit does not crash on a deep reply: depth is counted before anything recurses."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, timeout=HANG)

    assert (done.returncode, done.stdout.split()) == (0, ["unparseable"] * 15)


@pytest.mark.parametrize("name", ["safe", "passed", "allowed"])
def test_one_of_three_flags_answers_a_yes_no_question(name: str):
    """``approved`` alone is no answer to it: it can only contradict one."""
    assert read_flag({name: True}) is True
    with pytest.raises(ReplyError):
        read_flag({"approved": True})


def test_an_answer_that_is_given_again_is_found_wherever_its_token_stands():
    """First or later in its object, as it is or as escapes; up to the third answer they are compared."""
    later = f'{{"safe": false, "token": "{TOKEN}"}}'
    escaped = ANSWER.replace("token", "t\\u006fken")

    assert find_reason(f"{later} {ANSWER}", TOKEN) == "contradiction"
    assert find_reason(f"{ANSWER} {ANSWER} {OTHER}", TOKEN) == "contradiction"
    assert find_reason(f"{ANSWER} {escaped}", TOKEN) == "unparseable"
    with pytest.raises(ReplyError) as caught:
        read_object(f"{ANSWER} {escaped}", TOKEN)
    assert "2 times" in caught.value.detail


@pytest.mark.parametrize("end", ["`", "``", "~~", "```json", "``~"])
def test_what_is_no_end_of_a_fence_is_text_after_the_object(end: str):
    """A fence ends with a line of three marks or more, all the same."""
    assert find_reason(f"{ANSWER}\n{end}", TOKEN) == "unparseable"
    assert read_object(f"{ANSWER}\n```", TOKEN)["safe"] is True


@pytest.mark.parametrize("reply", [
    {"safe": False, "more": {"allowed": True}},
    {"more": {"allowed": True}, "safe": False},
    {"more": [{"approved": True}, {"passed": False}]},
    {"a": {"safe": True}, "b": {"allowed": False}, "c": {"approved": True}},
])  # fmt: skip
def test_a_no_at_any_depth_is_not_outvoted_by_a_yes(reply: dict[str, object]):
    """Whichever of them is read last."""
    assert read_other_flags(reply, {}) is False


@pytest.mark.parametrize("name", ["verdict", "VERDICT", "ｖｅｒｄｉｃｔ", "vеrdict", " verdict ", "ver\u200bdict"])
def test_a_verdict_of_its_own_is_found_however_its_name_is_written(name: str):
    """In capitals, in full width, with a letter of another alphabet, with what nobody sees."""
    with pytest.raises(ReplyError):
        read_other_flags({name: "fail"}, {})


@pytest.mark.parametrize(("value", "other"), [("A", "B"), ("B", "A")])
def test_a_second_choice_that_differs_is_a_contradiction(value: str, other: str):
    """In either order."""
    with pytest.raises(ReplyError) as refused:
        read_choice({"winner": value, "better": other}, "winner", offered=("A", "B"), also=("better",))

    assert refused.value.because == "contradiction"


def test_a_yes_or_no_reply_has_four_members():
    """What else says yes or no is looked for, and may contradict it."""
    assert set(YES_NO) == {"safe", "passed", "allowed", "reasoning"}
