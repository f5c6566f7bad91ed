"""Rules: deterministic checks, written as data or given as functions."""

import asyncio
import dataclasses
import socket
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge import RuleResult, UsageError
from adjudge.rules import SHIPPED, Rule, as_rule, rule_from_spec
from kit import house
from kit.judges import names

pytestmark = pytest.mark.timed


def check(rule: object, content: Any, reference: Any = None) -> RuleResult:
    return asyncio.run(as_rule(rule).check(content, reference))


@dataclasses.dataclass
class Answer:
    text: str


# What each shipped rule accepts and refuses


@pytest.mark.parametrize(
    ("spec", "content", "passed"),
    [
        ({"contains": "bcrypt"}, "uses bcrypt", True),
        ({"contains": "bcrypt"}, "uses Bcrypt", False),
        ({"contains": "bcrypt", "ignore_case": True}, "uses BCRYPT", True),
        ({"contains": "STRASSE", "ignore_case": True}, "Große Straße", True),
        ({"contains": ["salt", "hash"]}, "a hash with salt", True),
        ({"contains": ["salt", "hash"]}, "a hash", False),
        ({"contains": ["salt", "hash"], "any": True}, "a hash", True),
        ({"contains": ["salt", "hash"], "any": True}, "neither", False),
        ({"not_contains": "password"}, "a secret", True),
        ({"not_contains": ["password", "secret"]}, "a secret", False),
        ({"not_contains": "secret", "ignore_case": True}, "a SECRET", False),
        ({"regex": "bcrypt|argon2"}, "hash = argon2(x)", True),
        ({"regex": "^hash"}, "the hash", False),
        ({"regex": "HASH", "ignore_case": True}, "the hash", True),
        ({"regex": "sk-[a-z0-9]+", "absent": True}, "key = sk-abc", False),
        ({"regex": "sk-[a-z0-9]+", "absent": True}, "key = env", True),
        ({"length": 3}, "abc", True),
        ({"length": 3}, "abcd", False),
        ({"length": 1}, "\N{GRINNING FACE}", True),
        ({"name": "length", "min": 2}, "a", False),
        ({"name": "length", "min": 2, "max": 3, "unit": "words"}, " one  two\n", True),
        ({"name": "length", "max": 2, "unit": "words"}, "one two three", False),
        ({"name": "length", "min": 2, "max": 2, "unit": "lines"}, "one\ntwo\n", True),
        ({"name": "length", "min": 1, "unit": "lines"}, "", False),
        ({"name": "length", "min": 3, "max": 3, "unit": "lines"}, {"text": "one\ntwo\nthree"}, True),
        ({"name": "length", "max": 2, "unit": "lines"}, ["one\ntwo", {"more": ["three"]}], False),
        ({"name": "length", "min": 3, "max": 3, "unit": "lines"}, [{"a": 1, "b": [True, None]}, "x", ""], True),
        ({"name": "length", "min": 1, "unit": "lines"}, {}, False),
        ({"name": "length", "min": 5, "max": 5, "unit": "words"}, {"a name": "one  two\nthree", "n": [7, 1.5]}, True),
        ({"name": "length", "max": 3, "unit": "words"}, [{"role": "user", "content": "one\ttwo\u2003three"}], False),
        ({"name": "length", "min": 3, "max": 3, "unit": "lines"}, '{"text":\n"one\\ntwo"\n}', True),
        ({"name": "length", "min": 10, "max": 10}, {"a": "b\nc"}, False),
        ("json", '{"a": [1, 2.5, null]}', True),
        ("json", "{'a': 1}", False),
        ("json", '{"a": 1, "a": 2}', False),
        ("json", '{"a": NaN}', False),
        ("json", '{"a": 1e999}', False),
        ("json", '{"a": 1} and more', False),
        ("json", "", False),
        ("json", "[" * 100_000, False),
        ("json", "9" * 5_000, False),
        ("json", {"a": [1, None]}, True),
        ("json", {"a": float("nan")}, False),
        ("json", {"a": {1, 2}}, False),
        ("json", {1: "a"}, False),
        ("json", b"{}", False),
        ("json", Answer(text="x"), True),
        ({"json": True, "within": True}, 'Here it is:\n```json\n{"a": [1]}\n```', True),
        ({"json": True, "within": True}, "function () {} and {}", True),
        ({"json": True, "within": True}, {"a": 1}, True),
        ({"json": True, "within": True}, '{"a": {"b": 1} oops', True),
        ({"json": True, "within": True}, "a list [1, 2] and {a: 1}", False),
        ({"json": True, "within": True}, 'twice {"a": {"b": 1}, "a": 2}', False),
        ({"json": True, "within": True}, '{"a": NaN}', False),
        ({"json": True, "within": True}, '{"a": ' + "9" * 5_000 + "}", False),
        ({"json": True, "within": True}, '{"a": "never closed {', False),
        ({"json": True, "within": True}, '{"a":' * 100_000, False),
        ({"json": True, "within": True}, '{"' * 100_000, False),
        ({"json": True, "within": True}, ('{"a":' * 150 + '"' + "x" * 20_000) * 40, False),
        ({"json_schema": {"required": ["a"]}, "within": True}, 'First {"b": 1}, then {"a": 1}.', True),
        ({"json_schema": {"required": ["a"]}, "within": True}, 'First {"b": {"a": 1}}.', False),
        ({"recorded": 400, "max": 400, "measure": "latency in ms"}, "any", True),
        ({"recorded": 400.5, "max": 400, "measure": "latency in ms"}, "any", False),
    ],
)
def test_a_shipped_rule_passes_what_it_describes(spec, content, passed):
    """Each shipped rule passes exactly the content its parameters describe."""
    assert check(spec, content).passed is passed


SCHEMA = {
    "type": "object",
    "required": ["title"],
    "properties": {"title": {"type": "string"}, "tags": {"items": {"type": "string"}}},
}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"title": "x", "tags": ["a"]}', "fits the schema"),
        ({"title": "x"}, "fits the schema"),
        ('{"tags": []}', "title: "),
        ({"title": "x", "tags": ["a", 2]}, "tags[1]: 2 is not of type"),
        ("[]", "the value: "),
        ("not json", "is not JSON: "),
    ],
)
def test_json_schema_says_where_and_what(content, message):
    """A value that does not fit is named by its path, a missing property by its own."""
    result = check({"json_schema": SCHEMA}, content)
    assert result.passed is (message == "fits the schema")
    assert result.message.startswith(message)


@pytest.mark.parametrize(
    ("rule", "content", "place"),
    [
        ({"json_schema": SCHEMA}, {"title": "x", "tags": ["a", 2]}, "tags[1]"),
        ({"json_schema": SCHEMA}, "[]", None),
        ({"json_schema": True, "absent": True}, {"title": "x"}, None),
        ({"json_schema": SCHEMA}, {"title": "x", "tags": []}, None),
        ({"regex": "Weber", "absent": True}, {"to": {"name": "Mr Weber"}}, "to.name"),
        ({"regex": "^Weber$", "absent": True}, '{"to": ["Weber"]}', "to[0]"),
        ({"regex": "Weber"}, {"to": "Weber"}, None),
        ({"regex": "Weber", "absent": True}, "Mr Weber", None),
        ({"regex": '"to": "W', "absent": True}, '{"to": "Weber"}', None),
        ({"not_contains": "Weber"}, '{"to": "Mr \\u0057eber"}', "to"),
        ({"not_contains": "Weber"}, {"a": 1, "to": "Mr Weber"}, "to"),
        ({"not_contains": ["Weber", "Mr"]}, {"a": "Mr", "to": "Weber"}, None),
        ({"not_contains": ["Weber", "Mr"], "all": True}, {"a": "Mr", "to": "Weber"}, None),
    ],
)
def test_a_rule_names_the_place_of_what_it_found_in_json(rule, content, place):
    """One value of the content, beside which a page shows it; none where it is about more than one, or passed."""
    assert check(rule, content).metadata.get("place") == place


def test_json_schema_reads_the_draft_its_schema_names():
    """A list as ``items`` means positions in draft 7, and is no schema at all in 2020-12."""
    positions = {"items": [{"type": "integer"}]}
    old = {"$schema": "http://json-schema.org/draft-07/schema#", **positions}
    assert check({"json_schema": old}, [1, "x"]).passed
    assert not check({"json_schema": old}, ["x"]).passed
    with pytest.raises(UsageError, match="json_schema"):
        as_rule({"json_schema": positions})


AMOUNT = {"type": "object", "properties": {"amount": {"maximum": 100}}}


@pytest.mark.parametrize(
    ("schema", "warning"),
    [
        (AMOUNT, 'properties.amount has maximum and no type, so every value that is no number passes it; add "type":'),
        (
            {"minimum": 2.5},
            'the schema has minimum and no type, so every value that is no number passes it; add "type":',
        ),
        ({"$defs": {"tag": {"pattern": "^a"}}, "$ref": "#/$defs/tag"}, "$defs.tag has pattern and no type"),
        ({"type": "array", "items": {"required": ["a"]}}, "items has required and no type"),
        ({"properties": {"a": {"maxItems": 3}}}, "beside properties (2 parts of the schema have none"),
        ({"anyOf": [{"type": "null"}, {"minLength": 7}]}, "anyOf[1] has minLength and no type"),
        ({"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, None),
        ({"type": "object", "not": {"required": ["a"]}, "if": {"required": ["b"]}}, None),
        ({"properties": {"a": {"$ref": "#/$defs/b", "minimum": 0}}, "type": "object", "$defs": {"b": {}}}, None),
        ({"enum": [1, 2], "maximum": 3}, None),
        (True, None),
    ],
)
def test_a_schema_that_other_types_pass_is_warned_of(schema, warning, caplog: pytest.LogCaptureFixture):
    """It limits numbers, and lets the text "5000" through. The part is named, with the line to add, once."""
    for _ in range(2):
        as_rule({"json_schema": schema})

    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == (warning is not None)
    assert warning is None or warning in messages[0]


@pytest.mark.parametrize("options", [{"absent": True}, {"within": True}])
def test_a_missing_type_that_lets_nothing_through_is_no_matter(options, caplog: pytest.LogCaptureFixture):
    """What must not fit is refused more often; within a text only objects are looked at."""
    as_rule({"name": "json_schema", "schema": {"required": ["total"]}, **options})

    assert caplog.records == []


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "objekt"},
        {"pattern": "("},
        {"pattern": "(?=a)b"},
        {"$ref": "#/$defs/none"},
        {"$ref": "file:///etc/hostname"},
        {"const": float("nan")},
        {"$schema": "https://example.invalid/none"},
        "object",
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_at_once(schema):
    """An invalid schema, or one that points outside itself, is an error when the rule is made."""
    with pytest.raises(UsageError, match="rule json_schema"):
        as_rule({"json_schema": schema})


def test_a_remote_reference_is_never_fetched():
    """A schema that refers to a server is refused and the server is not called."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        server.setblocking(False)
        url = f"http://127.0.0.1:{server.getsockname()[1]}/schema.json"
        with pytest.raises(UsageError, match="inside the schema"):
            as_rule({"json_schema": {"$ref": url}})
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.mark.parametrize("spec", [{"regex": "(a+)+$"}, {"json_schema": {"pattern": "(a+)+$"}}])
def test_no_content_makes_a_pattern_slow(spec):
    """A pattern that backtracks for ever elsewhere is answered here on a hostile text of any length."""
    assert not check(spec, '"' + "a" * 100_000 + '!"').passed


def test_a_late_duplicate_is_found_as_quickly_as_an_early_one():
    """Reading stays linear: a key that stands twice at the end of a very large object is found at once."""
    pairs = ", ".join(f'"k{place}": 1' for place in range(200_000))
    assert 'the key "k199999" appears twice' in check("json", f'{{{pairs}, "k199999": 2}}').message


def test_similarity_gives_a_degree():
    """Similarity is 1 for equal texts, 0 for texts with nothing in common, and stands in the result."""
    assert check("similarity", "same", "same").score == 1.0
    assert check("similarity", "abc", "xyz").score == 0.0
    result = check({"similarity": 0.5}, "abcd", "abxy")
    assert (result.passed, result.score, result.metadata) == (True, 0.5, {"similarity": 0.5})
    assert "needed 0.8" in check("similarity", "abcd", "abxy").message


@given(st.text(max_size=40), st.text(max_size=40))
def test_similarity_is_symmetric_and_within_bounds(one, other):
    """Swapping content and reference changes nothing, and the score stays in 0 to 1."""
    one, other = one.replace("\x00", ""), other.replace("\x00", "")
    score = check("similarity", one, other).score
    assert score == check("similarity", other, one).score
    assert score is not None
    assert 0 <= score <= 1


def test_similarity_needs_a_reference_and_a_length_it_can_afford():
    """Without a reference, or with a text too long to compare, the rule fails and says so."""
    assert "reference" in check("similarity", "text").message
    for content, reference in (("a" * 100_001, "a"), ("a", "a" * 100_001)):
        result = check("similarity", content, reference)
        assert not result.passed
        assert "100,001" in result.message


def test_text_rules_see_what_the_judge_sees():
    """Content that is not text is looked at in the form the judge reads."""
    assert check({"contains": '"text": "hello"'}, Answer(text="hello")).passed
    assert check({"regex": "hello"}, ["hello"]).passed


@pytest.mark.parametrize("spec", [{"not_contains": "x"}, {"regex": "x", "absent": True}, {"length": 10}])
def test_content_that_cannot_be_read_fails_every_rule(spec):
    """A rule that could not look at the content has not passed, whatever it was looking for."""
    for content in (b"bytes", "lone \ud800 surrogate"):
        assert not check(spec, content).passed


# What rules say


@pytest.mark.parametrize(
    ("spec", "content", "message"),
    [
        ({"contains": ["salt", "hash"]}, "hash", 'not contain … "salt"'),
        ({"not_contains": "key"}, "a key", 'contains … "key"'),
        ({"regex": "k.y"}, "a key", '"key" … character 2 … matches "k.y"'),
        ({"regex": "k.y"}, "none", 'nothing … "k.y"'),
        ({"length": 3}, "abcd", "4 characters … above … 3"),
        ({"name": "length", "min": 2}, "a", "1 character … below … 2"),
    ],
)
def test_a_message_names_what_was_found_or_missing(spec, content, message):
    """The message says what decided, in words a person can act on."""
    assert names(check(spec, content).message, *message.split(" … "))


@pytest.mark.parametrize(
    ("spec", "content"),
    [
        ({"regex": "(?s)a.*"}, "a\x1b[2J\u202e\n" + "b" * 10_000),
        ({"json_schema": {"type": "integer"}}, ["\x1b[2J\u202e" + "b" * 10_000]),
        ({"json_schema": {"additionalProperties": False}}, {"\x1b[2J\u202e\n" + "b" * 10_000: 1}),
        ("json", '{"\u202e' + "b" * 10_000 + '": 1, "\u202e' + "b" * 10_000 + '": 1}'),
    ],
)
def test_a_message_quotes_little_and_nothing_invisible(spec, content):
    """Control and direction characters of hostile content are escaped, and at most 120 characters are quoted."""
    message = check(spec, content).message
    assert message.isprintable()
    assert len(message) < 400
    assert message.count("b") < 140


def test_a_failing_function_cannot_flood_a_message():
    """What a function raises is quoted in one short line."""

    def loud(content: str) -> bool:
        raise ValueError(content)

    message = check(loud, "\x1b" + "x\n" * 10_000).message
    assert message.isprintable()
    assert len(message) < 500


# Ways of writing a rule


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"regex": "a"}, {"name": "regex", "pattern": "a"}),
        ({"regex": "a"}, {"regex": "a", "absent": False, "severity": "error"}),
        ({"length": 3}, {"name": "length", "max": 3}),
        ({"length": 3}, {"max": 3, "unit": "characters", "name": "length"}),
        ("json", {"json": True}),
        ("json", {"name": "json"}),
        ("similarity", {"similarity": 0.8}),
        ({"contains": ("a", "b")}, {"name": "contains", "text": ["a", "b"]}),
    ],
)
def test_two_ways_of_writing_a_rule_are_one_rule(one, other):
    """Both forms give equal rules with equal specs, so equal digests."""
    assert as_rule(one) == as_rule(other)
    assert as_rule(one).spec == as_rule(other).spec
    assert hash(as_rule(one)) == hash(as_rule(other))


@pytest.mark.parametrize(
    "spec",
    [
        {"contains": ["a"], "any": True},
        {"not_contains": "a", "ignore_case": True},
        {"regex": "a", "absent": True, "severity": "warning", "description": "No a."},
        {"name": "length", "min": 3},
        {"length": 9, "min": 3, "unit": "words"},
        {"json": True},
        {"json_schema": {"type": "object"}},
        {"similarity": 0.25},
    ],
)
def test_a_spec_reads_back_as_the_same_rule(spec):
    """``Rule.spec`` is complete: a rule made from it equals the first."""
    rule = rule_from_spec(spec)
    assert rule_from_spec(rule.spec) == rule
    assert rule.spec == spec


def test_json_within_a_text_says_what_is_wrong_with_the_last_object():
    """The message names no object or the place in it; what cannot be searched to its end has failed."""
    rule = {"json_schema": {"properties": {"a": {"type": "integer"}}}, "within": True}

    assert check(rule, "none").message == "holds no JSON object"
    assert "a: " in check(rule, 'Here: {"a": "x"}').message
    assert "too many braces" in check({"json": True, "within": True}, '{"' * 100_000).message


def test_a_recorded_number_is_shown_beside_its_maximum():
    """The two never read the same where they differ."""
    result = check({"recorded": 0.0101, "max": 0.01, "measure": "cost in dollars"}, "any")

    assert names(result.message, "cost in dollars is 0.0101", "above the maximum of 0.0100")


def test_a_spec_is_a_copy():
    """Changing the data a rule was made from changes nothing in the rule."""
    schema = {"type": "object"}
    rule = as_rule({"json_schema": schema})
    schema["type"] = "array"
    assert rule.spec == {"json_schema": {"type": "object"}}


def test_severity_and_description_go_with_every_rule():
    """Both keys are allowed in every spec, and the result carries the severity."""
    for spec in ({"regex": "x"}, {"name": "length", "max": 1}, {"json": True}, {"similarity": 1}):
        rule = rule_from_spec({**spec, "severity": "warning", "description": "Why."})
        assert (rule.severity, rule.description) == ("warning", "Why.")
        assert asyncio.run(rule.check("text", "other")).severity == "warning"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"rejex": "a"}, "did you mean 'regex'"),
        ({"json": True, "within": True, "absent": True}, "leave one of them out"),
        ({"recorded": -1, "max": 1, "measure": "cost"}, "value must be a number"),
        ({"recorded": 1, "max": "1", "measure": "cost"}, "max must be a number"),
        ({"recorded": 1, "max": 1, "measure": " "}, "measure must say"),
        ({"name": "lenght", "max": 3}, "did you mean 'length'"),
        ("jsonschema", "did you mean 'json_schema'"),
        ({"regex": "a", "ignorecase": True}, "did you mean 'ignore_case'"),
        ({"regex": "a", "severty": "info"}, "did you mean 'severity'"),
        ({"regex": "a", "severity": "warn"}, "did you mean 'warning'"),
        ({"regex": "a", "description": 3}, "description … a text"),
        ({"regex": "a", "contains": "b"}, "write two rules"),
        ({"regex": "a", "pattern": "b"}, "pattern is given twice"),
        ({"name": "regex"}, "rule regex needs pattern"),
        ({"name": ["regex"]}, "no rule is named"),
        ({"severity": "info"}, "no rule is named"),
        ({}, "the rule is empty"),
        ("regex", "rule regex needs pattern"),
        ("length", "needs max or min"),
        ({"regex": ""}, "not empty"),
        ({"regex": 3}, "must be a text"),
        ({"regex": "a", "absent": 1}, "absent … true or false"),
        ({"contains": []}, "none of them empty"),
        ({"contains": ["a", ""]}, "none of them empty"),
        ({"contains": "a", "ignore_case": 0}, "ignore_case … true or false"),
        ({"length": -1}, "whole number of at least 0"),
        ({"length": True}, "whole number of at least 0"),
        ({"length": 1.5}, "whole number of at least 0"),
        ({"length": 3, "min": 4}, "min 4 is above max 3"),
        ({"length": 3, "unit": "word"}, "did you mean 'words'"),
        ({"json": False}, "takes no parameter"),
        ({"similarity": 80}, "between 0 and 1"),
        ({"similarity": True}, "between 0 and 1"),
        ({"similarity": float("nan")}, "between 0 and 1"),
        (3, "a rule … a Rule"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused_with_a_remedy(value, message):
    """Unknown names and keys suggest the nearest, wrong values say what would be right."""
    with pytest.raises(UsageError) as caught:
        as_rule(value)
    assert names(str(caught.value), *message.split(" … "))


@pytest.mark.parametrize("pattern", ["(?=a)b", r"(a)\1", "(", "a{2000}"])
def test_a_pattern_re2_cannot_compile_is_refused_at_once(pattern, capfd):
    """The error names the pattern and what RE2 lacks, and nothing is written to standard error."""
    with pytest.raises(UsageError, match="no look-around and no back-references") as caught:
        as_rule({"regex": pattern})
    assert pattern in str(caught.value)
    assert capfd.readouterr().err == ""


def test_every_shipped_rule_says_what_it_takes():
    """``SHIPPED`` names the rules, each with one sentence, and the page of rules has a row for each."""
    page = (house.ROOT / "docs" / "rules.md").read_text(encoding="utf-8")

    assert {"contains", "json", "secrets", "python"} <= set(SHIPPED)
    assert all(takes.endswith(".") for takes in SHIPPED.values())
    assert [name for name in SHIPPED if f"| `{name}` |" not in page and f"| [`{name}`]({name}.md) |" not in page] == []


def test_hyphens_and_underscores_are_alike_in_a_rule_s_name():
    """A file writes its rules as it writes its other names, and the digest is the same."""
    assert rule_from_spec({"not-contains": "a"}) == rule_from_spec({"not_contains": "a"})
    assert rule_from_spec({"name": "personal-data", "kinds": "email"}).spec == {"personal_data": "email"}
    assert as_rule("personal-data").name == "personal_data"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": ""}, "a rule's name … a text that is not empty"),
        ({"name": 3}, "a rule's name … a text that is not empty … got 3"),
        ({"description": None}, "rule 'x' … the description … a text … got None"),
        ({"severity": "fatal"}, "rule 'x' … severity … one of error, warning, info … got 'fatal'"),
        ({"severity": "warn"}, "did you mean 'warning'?"),
        ({"evaluate": "x"}, "rule 'x' … evaluate … a function of the content … got 'x'"),
    ],
)
def test_a_rule_that_could_not_be_evaluated_is_not_made(change, message):
    """What would fail later, or gate nothing by a misspelt severity, fails at once."""
    with pytest.raises(UsageError) as caught:
        Rule(**{"name": "x", "evaluate": says_hello, **change})
    assert names(str(caught.value), *message.split(" … "))


def test_a_rule_carries_what_is_the_owner_s():
    """``metadata`` is kept and read by nothing; a rule with some is still hashable."""
    rule = Rule(name="x", evaluate=says_hello, metadata={"owner": "legal"})
    assert rule.metadata == {"owner": "legal"}
    assert hash(rule) == hash(Rule(name="x", evaluate=says_hello))


# Functions


def says_hello(content: str) -> bool:
    """The content greets.

    More about it.
    """
    return "hello" in content


def resembles(content: str, reference: str) -> bool:
    return content == reference


def test_a_function_becomes_a_rule_named_after_it():
    """A function keeps its name and the first line of its docstring, and has no spec."""
    rule = as_rule(says_hello)
    assert (rule.name, rule.description) == ("says_hello", "The content greets.")
    assert rule.spec == {"python": f"{__name__}:{says_hello.__qualname__}"}
    assert check(rule, "hello").passed
    assert not check(rule, "bye").passed
    assert as_rule(lambda content: content == "x").name == "lambda"


def test_a_function_of_two_parameters_gets_the_reference():
    """A second parameter without a default receives the reference, and the rule fails without one."""
    assert check(resembles, "a", "a").passed
    assert not check(resembles, "a", "b").passed
    assert not check(resembles, "a").passed


def test_a_function_that_answers_something_else_has_failed():
    """Only a boolean, or a ``RuleResult`` with one, passes."""
    assert not check(lambda content: "yes", "x").passed
    assert not check(lambda content: 1, "x").passed
    assert not check(lambda content: RuleResult(name="x", passed="no"), "x").passed  # pyrefly: ignore


def test_a_name_given_to_as_rule_wins():
    """``name=`` names any rule, and a rule without it stays as it is."""
    rule = Rule(name="mine", evaluate=says_hello)
    assert as_rule(rule) is rule
    for value in (rule, says_hello, {"regex": "a"}, "json"):
        assert as_rule(value, name="yours").name == "yours"


def test_a_python_rule_needs_permission():
    """Naming a function to import is refused unless the caller allows it, and nothing is imported."""
    with pytest.raises(UsageError, match="pass the function itself"):
        as_rule({"python": "adjudge_no_such_module:function"})
    rule = rule_from_spec({"python": "operator:truth"}, allow_python=True)
    assert rule.spec == {"python": "operator:truth"}
    assert check(rule, "a").passed
    assert not check(rule, "").passed


@pytest.mark.parametrize("function", ["os.path", "adjudge_no_such_module:f", "os.path:none", "os:sep", ":f", "os:", 3])
def test_a_python_rule_that_cannot_be_imported_is_refused(function):
    """A wrong module, name or form is an error when the rule is made."""
    with pytest.raises(UsageError, match="rule python"):
        rule_from_spec({"python": function}, allow_python=True)
