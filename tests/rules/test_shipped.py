"""The shipped rules for syntax, hidden characters and content that says nothing, and what all of them hold."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from adjudge import UsageError
from adjudge.rules import as_rule
from kit.judges import names
from kit.rules import check

MEGABYTE = 1_000_000


# Syntax


@pytest.mark.parametrize(
    ("language", "good", "bad"),
    [
        ("python", "def f(x):\n    return x + 1\n", "def f(x:\n    return x"),
        ("python", "", "1 +"),
        ("python", "path = '\\d'", "\tx\n  y"),
        ("json", '{"a": [1, null]}', "{'a': 1}"),
        ("json", "1", '{"a": 1, "a": 2}'),
        ("yaml", "a: [1, 2]\nb: &x {c: d}\ne: *x\n", "a: [1"),
        ("yaml", "--- a\n--- b\n", "a: *nowhere"),
        ("yaml", "", "a: b: c"),
        ("yaml", "a: 1", "%TAG ! x\n--- a"),
        ("yaml", "a: &x 1\nb: *x", "a: &x 1\n---\nb: *x"),
        ("toml", 'a = 1\n[b]\nc = "d"\n', "a = "),
        ("toml", "", "a = 1\na = 2"),
    ],
)
def test_syntax_is_what_the_language_s_own_reader_accepts(language: str, good: str, bad: str):
    """What parses passes, what does not fails with the reader's reason."""
    assert check({"syntax": language}, good).message == f"is {language}"
    result = check({"syntax": language}, bad)
    assert not result.passed
    assert result.message.startswith(f"is not {language}: ")
    assert result.message.isprintable()


@pytest.mark.parametrize("language", ["python", "json", "yaml", "toml"])
@pytest.mark.parametrize(
    "part",
    [
        "(",
        "[",
        "{",
        "-",
        "a.",
        "x+",
        "not ",
        "lambda:",
        "- ",
        "? ",
        "'",
        "f'{",
        "\\\n",
        "*a ",
        "~",
        "9",
        "[a](",
        "1 if 1 else ",
    ],
)
def test_no_text_ends_the_process(language: str, part: str):
    """Nesting, numbers and strings without end are answered: the parser is never asked to go deeper than it can."""
    result = check({"syntax": language}, part * (20_000 // len(part)))

    assert isinstance(result.passed, bool)
    assert not check({"syntax": language}, "x" * 200_001).passed


def test_parsing_warns_nobody():
    """An escape that Python warns about is no syntax error, whatever the program does with warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert check({"syntax": "python"}, "x = '\\d'").passed


def test_parsing_runs_nothing(tmp_path):
    """Source, tags and constructors are read as text."""
    made = tmp_path / "made"

    assert check({"syntax": "python"}, f"open({str(made)!r}, 'w')").passed
    assert check({"syntax": "yaml"}, f"!!python/object/apply:os.mkdir [{str(made)!r}]").passed
    assert not made.exists()


# Options


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"secrets": True, "assignments": "no"}, "assignments … true or false"),
        ({"secrets": True, "ignore": [""]}, "ignore … a text or a list of texts, none empty"),
        ({"secrets": "all"}, "takes no parameter"),
        ({"personal_data": "emails"}, "did you mean 'email'"),
        ({"personal_data": []}, "kinds is empty, so nothing would be found"),
        ({"personal_data": 3}, "kinds … a text or a list of texts"),
        ({"unicode": ["bidy"]}, "did you mean 'bidi'"),
        ({"syntax": "pyton"}, "did you mean 'python'"),
        ({"syntax": 3}, "language … one of python, json, yaml, toml … got 3"),
        ("syntax", "rule syntax needs language"),
        ({"substance": False}, "takes no parameter"),
    ],
)
def test_options_are_checked_when_a_rule_is_made(spec: Any, message: str):
    """What is wrong is said with the remedy, before there is any content."""
    with pytest.raises(UsageError) as caught:
        as_rule(spec)
    assert names(str(caught.value), *message.split(" … "))


# Hidden characters


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("control character", "\x1b[31mred"),
        ("control character", "a\x85b"),
        ("bidirectional control", "\u202eabc"),
        ("bidirectional control", "a\u2066b\u2069"),
        ("invisible character", "he\u200bllo"),
        ("invisible character", "he\u00adllo"),
        ("invisible character", "a\ufeffb"),
        ("invisible character", "a\u200db"),
        ("invisible character", "i\ufe0f"),
        ("invisible character", "\N{GRINNING FACE}\U000e0121"),
        ("invisible character", "a\u3164b"),
        ("invisible character", "abc\u200f"),
        ("tag character", "a\U000e0041"),
        ("tag character", "\U0001f3f4\U000e0068\U000e0069\U000e007f"),
        ("private character", "a\ue000"),
        ("private character", "a\uffff"),
        ("word with letters of two scripts", "p\u0430ypal"),
        ("word with letters of two scripts", "g\u03bfogle"),
        ("word of letters that look Latin", "log in at \u0430\u0440\u0440\u04cf\u0435.com"),
        ("word in styled letters", "\U0001d421\U0001d41e\U0001d425\U0001d425\U0001d428"),
        ("word in styled letters", "\uff49\uff47\uff4e\uff4f\uff52\uff45 this"),
    ],
)
def test_hidden_characters_are_named(kind: str, content: str):
    """Each kind is found in a text and inside a JSON value, and the message is printable."""
    for value in (content, [content], {"a": content}):
        result = check("unicode", value)
        assert not result.passed
        assert kind in result.message
        assert result.message.isprintable()


@pytest.mark.parametrize(
    "content",
    [
        "",
        "plain\ttext\r\n",
        "naïve café, Straße, Łódź, İstanbul, ‘quotes’ – dashes… 100 €, ½, ™",
        "\ufeffbegins with the mark of a file",
        "\U0001f469\u200d\U0001f4bb \U0001f468\u200d\U0001f469\u200d\U0001f467 \u2764\ufe0f 1\ufe0f\u20e3",
        "\U0001f3f3\ufe0f\u200d\U0001f308",
        "\U0001f44d\U0001f3fd \U0001f469\U0001f3fd\u200d\U0001f4bb \U0001f937\u200d\u2642\ufe0f",
        "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
        "Привет, мир. А теперь English слово рус.",
        "Η αιτία και το αποτέλεσμα; α, β, Δt, 5 μm",
        "می‌خواهم العربية عברית\u200f",
        "क्‍ष हिन्दी ไทย 한국어 中文 日本語 Tシャツ ＡＢＣ１２３",
        "English next to ドメイン, 简体中文, Ελληνικά, ภาษาไทย, فارسی and ÀÉÎ",
        "葛\U000e0100城",
    ],
)
def test_ordinary_writing_passes(content: str):
    """Languages of the world, emoji with what holds them together, mathematics."""
    assert check("unicode", content).message == "holds nothing hidden"


def test_only_the_kinds_asked_for_are_found():
    """``kinds`` names one or several."""
    assert check({"unicode": "bidi"}, "he\u200bllo p\u0430ypal").passed
    assert not check({"unicode": ["bidi", "invisible"]}, "he\u200bllo").passed
    assert not check({"unicode": "mixed"}, "p\u0430ypal").passed


def test_what_json_escapes_is_looked_at_unescaped():
    """A control character in a JSON text is one, and a NUL between two values is ours."""
    assert "control character U+001B in a" in check("unicode", '{"a": "\\u001b[31m"}').message
    assert "control character U+0000 in a" in check("unicode", '{"a": "\\u0000"}').message
    assert check("unicode", {"a": "x", "b": ["y", "z"]}).passed


# Substance


@pytest.mark.parametrize(
    "content",
    [
        "",
        "  \n\t",
        ":",
        "...",
        "---",
        "\u200b\u200b",
        "```\n```",
        "**",
        "()",
        "{}",
        "[]",
        "null",
        "Thought process:",
        "thought process",
        "**Answer:**",
        "### Response:",
        "Thought process:\nAnswer:\n",
        "Answer\uff1a",
        "\uff34hought process:",
        "N/A",
        "TODO",
        "[Your answer here]",
        "Lorem ipsum dolor sit amet.",
        "undefined",
        "None",
        "[object Object]",
        {"answer": []},
        ["None"],
        {"answer": ":"},
        {"answer": None},
        ["", "TBD"],
        '{"answer": "Thought process:"}',
    ],
)
def test_what_says_nothing_never_reaches_a_judge(content: Any):
    """Nothing, punctuation, labels with nothing after them, placeholders: alone or as all there is in a JSON value."""
    assert not check("substance", content).passed


@pytest.mark.parametrize(
    "content",
    [
        "42",
        "No.",
        "A",
        "yes",
        "\N{THUMBS UP SIGN}",
        "✓",
        "Answer: 42",
        "Thought process: it is late.",
        "Steps:\n- boil",
        "Ω",
        "はい",
        "نعم",
        "I cannot help with that.",
        0,
        False,
        {"answer": 0},
        {"a": "", "b": "x"},
        "There is one thing left TODO.",
        "For this we looked at every row of the table and at each of its columns, thus:",
    ],
)
def test_what_says_something_passes(content: Any):
    """However short, in any script; a refusal says something as well."""
    assert check("substance", content).passed


# Whatever the content is


@pytest.mark.parametrize(
    "rule", ["secrets", "personal_data", "unicode", "substance", {"syntax": "python"}, {"urls": []}]
)
def test_what_cannot_be_read_fails(rule: Any):
    """Bytes, half characters and values that are not JSON pass nothing."""
    for content in (b"bytes", "lone \ud800 surrogate", {"a": {1: object()}}, "nul \x00"):
        assert not check(rule, content).passed


@pytest.mark.parametrize("rule", ["secrets", "personal_data", "unicode", "substance"])
@pytest.mark.parametrize(
    "part",
    ["a", "0", "1 ", "4111 ", "a@", "a@a.", "::", "1.", "AB12 ", "ssn ", "+1 ", "token: a1b2c3d4e5f6g7 ", "eyJ", "x://a:b",
     "-----BEGIN ", "\u200b", "\u0430a ", "\U0001f469\u200d", "[", '{"a": '],
)  # fmt: skip
def test_a_long_text_is_searched_in_time_that_grows_with_its_length(rule: str, part: str):
    """A megabyte of what almost is a finding is searched to its end, and what is reported stays short."""
    result = check(rule, part * (MEGABYTE // 3 // len(part)))

    assert len(result.message) < 500
    assert len(result.metadata.get("found", [])) <= 20


def test_a_large_json_value_is_searched():
    """The last of many thousand values is found, with its path."""
    value = {"rows": [{"id": number, "note": "nothing"} for number in range(30_000)] + [{"note": "123-45-6789"}]}

    assert "in rows[30000].note" in check("personal_data", value).message


# Equality, beginnings, and rules that mean the opposite


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        ({"equals": "yes"}, "yes", "Yes"),
        ({"equals": "yes", "ignore_case": True}, "YES", "yes "),
        ({"equals": "yes", "absent": True}, "no", "yes"),
        ({"equals": {"a": 1, "b": [True]}}, '{"b": [true], "a": 1.0}', '{"a": 1, "b": [1]}'),
        ({"equals": 5}, "5", "six"),
        ({"equals": {"a": 1}}, {"a": 1}, '{"a": 2, "a": 1}'),
        ({"equals": {"a": 1}, "absent": True}, "no JSON", '{"a": 2, "a": 1}'),
        ({"starts_with": "Dear"}, "Dear Ann", " Dear Ann"),
        ({"starts_with": "dear", "ignore_case": True}, "DEAR Ann", "Ann"),
        ({"starts_with": "Dear", "absent": True}, "Hi", "Dear Ann"),
        ({"json": True, "absent": True}, "{", '{"a": 1, "a": 2}'),
        ({"json": True, "absent": True}, "", "\ufeff[NaN]"),
        ({"json": True, "absent": True}, "1,", "9" * 5000),
        ({"json_schema": {"type": "object"}, "absent": True}, "[]", "{}"),
        ({"json_schema": {"type": "object"}, "absent": True}, "{", '{"a": 1, "a": 2}'),
        ({"not_contains": ["cat", "dog"], "all": True}, "a cat", "a cat, a dog"),
        ({"not_contains": ["cat", "dog"], "all": True}, ["c\\u0061t"], '["cat", "d\\u006fg"]'),
    ],
)
def test_what_must_be_and_what_must_not_be(rule: dict[str, Any], good: Any, bad: Any):
    """A rule and its opposite: the first content passes, the second does not."""
    assert check(rule, good).passed
    assert not check(rule, bad).passed


@pytest.mark.parametrize("rule", [{"json": True}, {"json_schema": True}, {"equals": {"a": 1}}])
@pytest.mark.parametrize("absent", [False, True])
def test_json_that_is_too_deep_to_read_passes_no_rule(rule: dict[str, Any], absent: bool):
    """Nobody can say what it is, so neither a rule nor its opposite passes it."""
    assert not check(rule | {"absent": absent}, "[" * 1_000 + "]" * 1_000).passed


def test_as_written_takes_the_text_as_it_is():
    """Escapes and invisible characters are read by default, and not by a rule that is asked for the text alone."""
    text = '{"cmd": "\\u0072m"}'
    for rule, passes in (({"contains": "rm"}, True), ({"not_contains": "rm"}, False), ({"regex": "rm"}, True)):
        assert check(rule, text).passed is passes
        assert check(rule | {"as_written": True}, text).passed is not passes
    assert check({"not_contains": "rm", "as_written": True}, "r\u200bm").passed
    assert not check({"not_contains": "rm"}, "r\u200bm").passed


@pytest.mark.parametrize(
    "rule",
    [{"equals": None}, {"equals": {1}}, {"starts_with": ""}, {"starts_with": ["a"]}, {"json": True, "absent": 1}],
)
def test_parameters_of_these_are_checked(rule: dict[str, Any]):
    """What could mean nothing is refused when the rule is made."""
    with pytest.raises(UsageError, match=r"equals|starts_with|absent"):
        as_rule(rule)


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        ({"some_of": [{"contains": "a"}, {"contains": "b"}], "share": 0.5}, "a", "c"),
        ({"some_of": [{"contains": "a"}, {"contains": "b"}]}, "ab", "a"),
        ({"some_of": [{"contains": "a"}, {"contains": "b"}], "share": 0.6, "weights": [2, 1]}, "a", "b"),
        ({"some_of": ["json", {"regex": "^x"}], "share": 0.5}, "1", "y"),
    ],
)
def test_some_of_several_rules_pass(rule: dict[str, Any], good: str, bad: str):
    """The share counts by weight, and the message says how many held."""
    assert check(rule, good).passed
    result = check(rule, bad)
    assert not result.passed
    assert "hold" in result.message


@pytest.mark.parametrize(
    "rule",
    [
        {"some_of": []},
        {"some_of": "json"},
        {"some_of": ["json"] * 65},
        {"some_of": [{"some_of": ["json"]}]},
        {"some_of": ["similarity"]},
        {"some_of": [{"python": "os:getcwd"}]},
        {"some_of": ["json"], "share": 0},
        {"some_of": ["json"], "share": 2},
        {"some_of": ["json"], "weights": [1, 2]},
        {"some_of": ["json"], "weights": [0]},
        {"some_of": ["json"], "weights": ["1"]},
    ],
)
def test_some_of_holds_plain_rules_that_can_fail(rule: dict[str, Any]):
    """No code, no set in a set, nothing that could not fail; also where python rules are allowed elsewhere."""
    with pytest.raises(UsageError):
        as_rule(rule, allow_python=True)


def test_some_of_fails_where_one_of_it_cannot_be_read():
    """What nobody can read is no rule that did not hold: the opposite of one would pass it."""
    rule = {"some_of": [{"contains": "["}, {"json": True, "absent": True}], "share": 0.5}
    assert not check(rule, "[" * 1_000).passed
