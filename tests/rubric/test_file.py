"""Rubric files: three formats, one strict reader, shipped rubrics and a schema for editors."""

import json
import math
import os
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from adjudge import UsageError
from adjudge.rubric import Criterion, Rubric, load_rubric
from kit.rubrics import DATA, SHIPPED, read_rubric, read_schema

LARGEST = 1_000_000
"""Bytes of the largest file that is read."""

CRITERION = {"name": "a", "description": "What to look for."}
SMALL = {"name": "r", "criteria": [CRITERION]}

YAML = """
schema: adjudge/rubric/1
name: Login
passing_threshold: 0.8
scale: [0, 4]
model: openai:gpt-6.1-terra
criteria:
  - name: security
    description: Hashes passwords with bcrypt or argon2.
    weight: 3
    threshold: 0.9
    levels: {0: plaintext, 2.5: fast hash, 4: slow salted hash}
    examples: [{content: md5, score: 2.5, why: Fast.}]
    quote: true
  - name: hashing
    description: Names a slow hash.
    rule: {regex: "bcrypt|argon2"}
"""

TOML = """
"$schema" = "rubric.schema.json"
name = "Login"
passing_threshold = 0.8
scale = [0, 4]
model = "openai:gpt-6.1-terra"
[[criteria]]
name = "security"
description = "Hashes passwords with bcrypt or argon2."
weight = 3
threshold = 0.9
levels = {0 = "plaintext", "2.5" = "fast hash", 4 = "slow salted hash"}
examples = [{content = "md5", score = 2.5, why = "Fast."}]
quote = true
[[criteria]]
name = "hashing"
description = "Names a slow hash."
rule = {name = "regex", pattern = "bcrypt|argon2"}
"""


def refuse(text: str, format: str = "yaml") -> str:  # noqa: A002 - the parameter it stands for
    with pytest.raises(UsageError) as caught:
        read_rubric(text, format=format, name="login")
    return str(caught.value)


# Three formats


def test_yaml_json_and_toml_give_equal_rubrics():
    """The format is only a way of writing: the rubrics are equal and so are their digests."""
    one = read_rubric(YAML, format="yaml")
    two = read_rubric(json.dumps(yaml.safe_load(YAML)), format="json")
    three = read_rubric(TOML, format="toml")
    assert one == two == three
    assert one.digest == two.digest == three.digest
    assert one.criteria[0].levels == ((0.0, "plaintext"), (2.5, "fast hash"), (4.0, "slow salted hash"))


words = st.builds("{}{}".format, st.text(max_size=19), st.sampled_from("aZ7é中"))
shares = st.floats(min_value=0, max_value=1)
scores = st.floats(min_value=-5, max_value=5)
rules = st.sampled_from(
    [
        {"regex": "a|b", "absent": True},
        {"contains": ["a", "b"], "any": True, "severity": "warning"},
        {"name": "length", "min": 3},
        {"json_schema": {"type": "object"}, "description": "An object."},
        "json",
    ]
)


@st.composite
def rubrics(draw: st.DrawFn) -> Rubric:
    names = draw(st.lists(words, min_size=1, max_size=4, unique=True))
    criteria = [
        Criterion(
            name=name,
            description=draw(words),
            weight=draw(st.floats(min_value=1e-3, max_value=1e3)),
            threshold=draw(st.none() | shares),
            levels=draw(st.just({}) | st.dictionaries(scores, st.text(max_size=9), min_size=2, max_size=3)),
            examples=draw(
                st.lists(st.fixed_dictionaries({"content": st.text(), "score": scores, "why": st.text()}), max_size=2)
            ),
            quote=draw(st.booleans()),
            rule=draw(st.none() | rules),
        )
        for name in names
    ]
    return Rubric(
        name=draw(words),
        criteria=criteria,
        passing_threshold=draw(shares),
        scale=(-5, 5),
        model=draw(st.none() | words.filter(lambda text: "?" not in text)),
    )


@given(rubrics())
def test_a_rubric_reads_back_as_itself(rubric):
    """``to_dict`` then ``load_rubric`` gives an equal rubric with the same digest, through JSON and YAML too."""
    data = rubric.to_dict()
    text = yaml.safe_dump(data)
    for again in (
        load_rubric(data),
        read_rubric(json.dumps(data), format="json"),
        read_rubric(text, format="yaml"),
    ):
        assert again == rubric
        assert again.digest == rubric.digest


@given(rubrics())
def test_what_a_rubric_writes_fits_the_schema(rubric):
    """The schema accepts every valid rubric, so an editor never underlines what works."""
    jsonschema_rs.validate(read_schema(), rubric.to_dict())


# What a file may say


@pytest.mark.parametrize("key", ["passing_threshold", "passingThreshold", "passThreshold", "passingScore", "threshold"])
def test_the_passing_threshold_has_five_names(key):
    """The names the seeds use are all read, and one that is wrong is reported under the name that was used."""
    assert load_rubric({**SMALL, key: 0.9}).passing_threshold == 0.9
    with pytest.raises(UsageError, match=rf"^rubric: {key}: .*for 70 % write 0.7"):
        load_rubric({**SMALL, key: 70})


def test_two_names_of_the_threshold_at_once_are_an_error():
    """Even when they agree: which one counts is not guessed."""
    with pytest.raises(UsageError, match="passingScore and threshold both give"):
        load_rubric({**SMALL, "threshold": 0.9, "passingScore": 0.9})


def test_a_weight_of_three_is_valid_and_a_missing_name_is_not():
    """The seeds' own rubrics use weights above 1; a rubric without a name is refused, naming ``name``."""
    assert load_rubric({"name": "q", "criteria": [{**CRITERION, "weight": 3}]}).criteria[0].weight == 3.0
    with pytest.raises(UsageError, match="needs 'name'"):
        load_rubric({"criteria": [CRITERION]})


BROKEN: dict[str, Any] = {
    "no name": {"criteria": [CRITERION]},
    "blank name": {**SMALL, "name": " "},
    "number as name": {**SMALL, "name": 3},
    "no criteria": {"name": "r"},
    "empty criteria": {"name": "r", "criteria": []},
    "criteria as mapping": {"name": "r", "criteria": {"a": "b"}},
    "criterion as text": {"name": "r", "criteria": ["a"]},
    "no description": {"name": "r", "criteria": [{"name": "a"}]},
    "null description": {"name": "r", "criteria": [{"name": "a", "description": None}]},
    "null weight": {"name": "r", "criteria": [{**CRITERION, "weight": None}]},
    "unknown key": {**SMALL, "treshold": 0.7},
    "unknown criterion key": {"name": "r", "criteria": [{**CRITERION, "wieght": 1}]},
    "other schema": {**SMALL, "schema": "adjudge/rubric/2"},
    "threshold of 70": {**SMALL, "passing_threshold": 70},
    "text as threshold": {**SMALL, "passing_threshold": "0.7"},
    "two thresholds": {**SMALL, "passing_threshold": 0.7, "threshold": 0.7},
    "null threshold": {**SMALL, "threshold": None},
    "criterion threshold above 1": {"name": "r", "criteria": [{**CRITERION, "threshold": 1.5}]},
    "negative weight": {"name": "r", "criteria": [{**CRITERION, "weight": -1}]},
    "boolean weight": {"name": "r", "criteria": [{**CRITERION, "weight": True}]},
    "scale of three": {**SMALL, "scale": [0, 1, 2]},
    "model as number": {**SMALL, "model": 5},
    "quote as text": {"name": "r", "criteria": [{**CRITERION, "quote": "yes"}]},
    "one level": {"name": "r", "criteria": [{**CRITERION, "levels": {"0": "a"}}]},
    "no levels": {"name": "r", "criteria": [{**CRITERION, "levels": {}}]},
    "levels as list": {"name": "r", "criteria": [{**CRITERION, "levels": [[0, "a"], [1, "b"]]}]},
    "level named by a word": {"name": "r", "criteria": [{**CRITERION, "levels": {"bad": "a", "1": "b"}}]},
    "level without text": {"name": "r", "criteria": [{**CRITERION, "levels": {"0": 0, "1": "b"}}]},
    "example without score": {"name": "r", "criteria": [{**CRITERION, "examples": [{"content": "x"}]}]},
    "example with more": {"name": "r", "criteria": [{**CRITERION, "examples": [{"content": "x", "score": 1, "y": 1}]}]},
    "unknown rule": {"name": "r", "criteria": [{**CRITERION, "rule": {"rejex": "a"}}]},
    "rule with unknown key": {"name": "r", "criteria": [{**CRITERION, "rule": {"regex": "a", "flags": "i"}}]},
    "rule without parameter": {"name": "r", "criteria": [{**CRITERION, "rule": "regex"}]},
    "rule with nothing": {"name": "r", "criteria": [{**CRITERION, "rule": {}}]},
    "rule as number": {"name": "r", "criteria": [{**CRITERION, "rule": 3}]},
    "two rules in one": {"name": "r", "criteria": [{**CRITERION, "rule": {"regex": "a", "contains": "b"}}]},
    "python rule": {"name": "r", "criteria": [{**CRITERION, "rule": {"python": "os:getcwd"}}]},
    "python by name": {"name": "r", "criteria": [{**CRITERION, "rule": {"name": "python", "function": "os:getcwd"}}]},
    "length without limits": {"name": "r", "criteria": [{**CRITERION, "rule": {"name": "length", "unit": "words"}}]},
    "unknown severity": {"name": "r", "criteria": [{**CRITERION, "rule": {"regex": "a", "severity": "warn"}}]},
    "a list": [SMALL],
    "a text": "r",
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_what_the_schema_refuses_the_reader_refuses(name):
    """Every one of these is underlined by an editor, and refused when it is read."""
    assert not jsonschema_rs.is_valid(read_schema(), BROKEN[name])
    with pytest.raises(UsageError):
        load_rubric(BROKEN[name])


@pytest.mark.parametrize(
    "rule",
    [
        "json",
        "similarity",
        {"json": True},
        {"name": "json", "severity": "info"},
        {"contains": "a", "any": True},
        {"name": "not_contains", "text": ["a"]},
        {"regex": "a", "absent": True, "description": "No a."},
        {"length": 3, "min": 1, "unit": "lines"},
        {"name": "length", "min": 1},
        {"name": "json_schema", "schema": True},
        {"similarity": 1},
        {"called": "search"},
        {"name": "called", "tool": ["search", "fetch_*"], "arguments": {"q": "x"}, "min": 1, "max": 2},
        {"not-called": "*", "allow": ["search"]},
        {"name": "not_called", "tool": "delete", "arguments": {"all": True}},
        {"call_order": ["a", "b"], "exact": True},
        {"name": "call-order", "tools": ["a", "b"], "severity": "info"},
    ],
)
def test_the_schema_knows_every_rule(rule):
    """Both forms of every shipped rule fit the schema and are read."""
    data = {"name": "r", "criteria": [{**CRITERION, "rule": rule}]}
    jsonschema_rs.validate(read_schema(), data)
    assert load_rubric(data).criteria[0].rule is not None


def test_the_schema_describes_every_key():
    """An editor can explain every key, and the schema itself is a valid one."""
    schema = read_schema()
    jsonschema_rs.meta.validate(schema)
    for part in (schema, schema["$defs"]["criterion"], schema["$defs"]["example"]):
        assert all(item.get("description") for item in part["properties"].values())


# Where an error stands


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("name: r\ncriteria:\n- name: a\n  description: b\n  weight: -1", "line 5: criteria[0].weight: "),
        ("name: r\ncriteria:\n- name: a\n  description: b\n  wieght: 1", "line 5: criteria[0].wieght: "),
        ("name: r\ncriteria:\n- name: a\n  description: b\n- description: c", "line 5: criteria[1]: "),
        ("name: r\ncriteria:\n- name: a\n  description: b\n- name: a\n  description: c", "line 5: criteria[1].name: "),
        ("name: r\ncriteria:\n- name: a\n  description: b\n  levels: {0: a,\n    x: b}", "criteria[0].levels.x: "),
        ("name: r\ncriteria:\n- name: a\n  description: b\n  levels: {0: a, 3: b}", "line 3: criteria[0]: "),
        ("name: r\ncriteria:\n- name: a\n  description: b\n  rule: {rejex: a}", "line 5: criteria[0].rule: "),
        ("name: r\npassThreshold: 70\ncriteria:\n- name: a\n  description: b", "line 2: passThreshold: "),
        ("name: r\ncriteria:\n- name: a\n  description: b\nscale: [1]", "line 5: scale: "),
        ("name: r\ncriteria:\n- name: a\n  description: b\n  weight: 0", "line 2: criteria: "),
        ("name: r\ncriteria: 3", "line 2: criteria: must be a list"),
        ("name: r\nschema: adjudge/rubric/9", "line 1: a rubric needs 'criteria'"),
        ("name: r\ncriteria: []\nschema: adjudge/rubric/9", "line 3: schema: "),
        ("name: r\nname: s", 'line 2: the key "name" is already in line 1'),
        ("name: r\ncriteria: [{name: a, description: b, name: c}]", 'line 2: the key "name" is already in line 2'),
        ("name: [r\ncriteria: x: y", "line 2, column "),
        ("name: r\n\tcriteria: []", "line 2, column "),
        ("", "it is empty"),
        ("# nothing", "it is empty"),
        ("- name: r", "line 1: a rubric must be a mapping"),
        ("name: r\n---\nname: s", "line 2, column "),
    ],
)
def test_an_error_in_yaml_names_its_line(text, sentence):
    """Syntax errors and wrong values alike say where they stand."""
    message = refuse(text)
    assert message.startswith("login.yaml")
    assert sentence in message


def test_errors_in_json_and_toml_name_a_line_or_a_path():
    """A syntax error has its line; a wrong value its path."""
    assert "line 2 column" in refuse('{"name":\n}', "json")
    assert "line 1, column" in refuse("name = \n", "toml")
    assert 'the key "name" appears twice' in refuse('{"name": "a", "name": "b"}', "json")
    assert "NaN is not JSON" in refuse('{"passing_threshold": NaN}', "json")
    assert "login.toml is not a rubric in TOML" in refuse('name = "a"\nname = "b"', "toml")
    assert "criteria[0].weight" in refuse(
        'name = "a"\n[[criteria]]\nname = "b"\ndescription = "c"\nweight = nan', "toml"
    )


def test_an_unknown_key_gets_the_nearest():
    """A misspelt key is named with the key that was probably meant, a stranger without one."""
    assert "did you mean 'weight'?" in refuse("name: r\ncriteria: [{name: a, description: b, wieght: 1}]")
    assert "did you mean 'criteria'?" in refuse("name: r\nCriterias: []")
    assert "did you mean" not in refuse("name: r\nzzz: 1")


@pytest.mark.parametrize("value", ["b" * 100_000, ["\x1b[2J\u202e"] * 1000, {"\x1b": 1}])
def test_an_error_is_short_and_printable(value):
    """Whatever stands in a file, the message about it fits a terminal and cannot drive it."""
    for data in ({**SMALL, "passing_threshold": value}, {**SMALL, str(value): 1}, {"name": "r", "criteria": value}):
        with pytest.raises(UsageError) as caught:
            load_rubric(data)
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) < 1200


# Hostile files


def test_aliases_that_multiply_are_refused():
    """A few lines that stand for millions of values are refused before anything is built."""
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    assert "aliases" in refuse("\n".join(lines))
    assert "aliases" in refuse("a: &a [*a]")


def test_an_alias_that_does_not_multiply_is_read():
    """Saying a description twice by alias is fine."""
    text = "name: r\ncriteria:\n- {name: a, description: &d Is good enough.}\n- {name: b, description: *d}"
    assert [item.description for item in read_rubric(text, format="yaml").criteria] == ["Is good enough."] * 2


@pytest.mark.parametrize("text", ["[" * 100_000, "- " * 100_000, "{a: " * 50_000, "? " * 100_000])
def test_deep_nesting_is_refused(text):
    """Nesting without end is an error, not the end of the process."""
    assert "nested" in refuse(text)
    assert refuse(text, "json")
    assert refuse("a = " + text, "toml")


@pytest.mark.parametrize("part", ["a", '"a"', "'a' ", "a\t"])
def test_a_dotted_key_without_end_is_refused(part):
    """A key of TOML with hundreds of thousands of parts costs no time."""
    assert "more than 50 parts" in refuse(f"{part}." * 180_000 + "a = 1", "toml")
    assert "more than 50 parts" in refuse("\n".join(f"[{f'{part}.' * 900}b{n}]" for n in range(90)), "toml")


@pytest.mark.parametrize(
    "value",
    ["!!python/object/apply:os.getcwd []", "!!python/name:os.getcwd", "!custom x", "2024-13-45", "0x" + "f" * 6000,
     "!!binary aGk=", "!!set {a}", "2024-01-01", ".nan"],
)  # fmt: skip
def test_a_value_that_is_not_plain_is_refused(value):
    """Tags that build objects, and values that are no text, number or flag, are errors."""
    refuse(f"name: {value}\ncriteria: [{{name: a, description: b}}]")


@pytest.mark.parametrize("key", ["[a]", "{a: b}", "<<", "!!python/name:os.getcwd x", "3", "true", "null"])
def test_a_key_that_is_not_a_word_is_refused(key):
    """Lists, mappings, merges and objects are no keys of a rubric."""
    refuse(f"? {key}\n: {{name: r}}\n")


# Files and names


def test_a_file_is_read_by_its_suffix(tmp_path):
    """YAML (also without a suffix), JSON and TOML; a byte order mark is no part of the text."""
    rubric = read_rubric(YAML, format="yaml")
    texts = {
        "r.yaml": YAML,
        "r.YML": "\ufeff" + YAML,
        "r.json": json.dumps(rubric.to_dict()),
        "r.toml": TOML,
        "r": YAML,
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert load_rubric(tmp_path / name) == rubric
        assert load_rubric(str(tmp_path / name)) == rubric


def test_a_rubric_is_returned_as_it_is():
    """What is a rubric already is not read again."""
    rubric = load_rubric(SMALL)
    assert load_rubric(rubric) is rubric


def test_a_file_that_cannot_be_read_says_why(tmp_path):
    """A directory, a missing, binary, oversized or oddly named file: one clear sentence each."""
    (tmp_path / "binary.yaml").write_bytes(b"name: \x00")
    (tmp_path / "latin.yaml").write_bytes("name: größe".encode("latin-1"))
    (tmp_path / "large.yaml").write_bytes(b"#" * (LARGEST + 1))
    (tmp_path / "rubric.txt").write_text("name: r")
    said_of_files = {
        "": "is a directory",
        "none.yaml": "does not exist",
        "security.yaml": "for the shipped rubric write 'security'",
        "binary.yaml": "is a binary file",
        "latin.yaml": "is not UTF-8",
        "large.yaml": "is too large",
        "rubric.txt": "use .yaml, .yml, .json or .toml",
        "rubric.txt/x.yaml": "cannot be read|does not exist",
        "\x00.yaml": "NUL",
    }
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.yaml")
        said_of_files["pipe.yaml"] = "is not a regular file"
    for name, message in said_of_files.items():
        with pytest.raises(UsageError, match=message):
            load_rubric(f"{tmp_path}/{name}")


def test_an_unknown_name_lists_the_shipped_and_the_nearest(tmp_path, monkeypatch):
    """A name that is also a file without a suffix gets a hint how to say so, and the hint works."""
    with pytest.raises(UsageError, match=r"did you mean 'security'\? \(there are code-quality, security"):
        load_rubric("securty")
    monkeypatch.chdir(tmp_path)
    Path("login").write_text(YAML)
    with pytest.raises(UsageError, match=r"for the file of that name write \./login"):
        load_rubric("login")
    assert load_rubric("./login").name == "Login"


@pytest.mark.parametrize("source", [None, 3, ["security"], b"security"])
def test_a_source_of_another_kind_is_refused(source):
    """Only a rubric, its data, a path or a name is a source."""
    with pytest.raises(UsageError, match="a Rubric, a mapping, a path or a shipped name"):
        load_rubric(source)


def test_a_mapping_is_read_like_a_file():
    """The keys of a rubric file, checked the same way."""
    assert load_rubric(SMALL) == read_rubric(json.dumps(SMALL), format="json")


def test_an_unknown_format_is_refused():
    """The three formats are named."""
    with pytest.raises(UsageError, match=r"\.yaml, \.yml, \.json or \.toml"):
        read_rubric("{}", format="xml")


# What ships

SEEDS: dict[str, tuple[float, dict[str, tuple[float, float | None]]]] = {
    "code-quality": (0.75, {"readability": (2, None), "maintainability": (3, None), "error-handling": (2, None),
                            "type-safety": (1, None)}),
    "security": (0.85, {"authentication": (5, 0.9), "input-validation": (4, 0.9), "sensitive-data": (3, 1.0),
                        "security-headers": (2, None)}),
    "test-coverage": (0.7, {"unit-tests": (3, None), "edge-cases": (2, None), "test-quality": (1, None)}),
    "accessibility": (0.8, {"semantic-html": (2, None), "aria-labels": (3, None), "keyboard-nav": (2, None),
                            "color-contrast": (1, None)}),
    "documentation": (0.75, {"api-docs": (3, None), "readme": (2, None), "inline-comments": (1, None)}),
}  # fmt: skip


@pytest.mark.parametrize("name", SEEDS)
def test_a_shipped_rubric_weighs_as_the_seeds_say(name):
    """Criteria, weights, thresholds and passing threshold are the seeds'; descriptions stay under 200 characters."""
    rubric = load_rubric(name)
    criteria = {item.name: (item.weight, item.threshold) for item in rubric.criteria}
    assert (rubric.passing_threshold, criteria) == SEEDS[name]
    assert all(len(item.description) < 200 for item in rubric.criteria)


def test_the_shipped_rubrics_fit_the_schema_their_first_line_names():
    """Each file names the schema for editors, and the schema accepts it."""
    assert set(SEEDS) < set(SHIPPED)
    for name in SHIPPED:
        text = (DATA / f"{name}.yaml").read_text(encoding="utf-8")
        assert text.startswith("# yaml-language-server: $schema=rubric.schema.json\n")
        # As JSON, whose keys are texts: that is how an editor reads the scores of levels.
        jsonschema_rs.validate(read_schema(), json.loads(json.dumps(yaml.safe_load(text))))


def test_a_yes_and_no_of_yaml_is_not_taken_for_a_name():
    """YAML reads a bare ``no`` as a flag; as a name that is an error and not the text "False"."""
    assert "criteria[0].name" in refuse("name: r\ncriteria: [{name: no, description: b}]")


@given(st.text(max_size=200))
def test_any_text_is_a_rubric_or_a_usage_error(text):
    """No text makes the reader raise anything else, in any format."""
    for kind in ("yaml", "json", "toml"):
        try:
            assert math.isclose(math.fsum(read_rubric(text, format=kind).shares.values()), 1)
        except UsageError as error:
            assert str(error).isprintable()  # noqa: PT017 - the error is what is specified
