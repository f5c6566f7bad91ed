"""Files and names written by somebody who wants to stop the program: they cost little, and one sentence says why."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from adjudge import Rubric, UsageError
from adjudge.dataset import Case
from adjudge.dataset.case import make_case
from adjudge.dataset.formats import read_object_line
from adjudge.formats.toml import read_toml
from adjudge.formats.yaml import read_yaml
from adjudge.models import ReplayModel, TokenLogprob, open_model
from adjudge.models.replies import recording as recording_file
from adjudge.models.replies.mask import mask_tokens, unmask_tokens
from adjudge.models.replies.replay import MAX_MODELS
from adjudge.rubric.file import MAX_RULES, read_rubric, rubric_from_dict
from adjudge.rules import rule_from_spec
from adjudge.rules.checks import SIMILARITY_LIMIT
from kit.judges import names


def parse_row(line: str) -> Case:
    row = read_object_line(line)
    if isinstance(row, UsageError):
        raise row
    return make_case(row)


def refuse_row(line: str) -> str:
    with pytest.raises(UsageError) as caught:
        parse_row(line)
    return str(caught.value)


# YAML and TOML


@pytest.mark.parametrize("key", ["threshold: {}", "criteria: [{{name: a, weight: {}}}]", "{}: x", "x: !!int '{}'"])
@pytest.mark.parametrize("number", ["1:30", "1:" + ":".join(["1"] * 400), "-1:30.5", "1" + ":1" * 200_000])
def test_a_number_in_base_60_is_refused_before_it_is_computed(key: str, number: str):
    """PyYAML needs time that grows with the square of its length; a person who writes 1:30 means a text."""
    if key.startswith("{}"):
        number = number[:999]  # a YAML reader itself refuses a longer key
    with pytest.raises(ValueError, match=r"line 1: .* would be a number in base 60; put it in quotes") as caught:
        read_yaml(key.format(number))

    assert len(str(caught.value)) < 100


def test_a_time_in_quotes_is_a_text():
    """What looks like a number in base 60 and is quoted, or is no number, is read."""
    assert read_yaml('a: "1:30"\nb: 1:2:x\nc: 1:99')[0] == {"a": "1:30", "b": "1:2:x", "c": "1:99"}


@pytest.mark.parametrize("start", ["", "\ufeff", "# a\n", "# a\r", "# a\u2028"])
def test_directives_are_refused(start: str):
    """A YAML reader compares each %TAG with all that came before."""
    with pytest.raises(ValueError, match=r"directives \(lines that begin with %\) are not read here"):
        read_yaml(start + "".join(f"%TAG !a{number}! x\n" for number in range(40_000)) + "---\nname: x\n")


def test_a_percent_sign_inside_a_line_is_text():
    """Only the first column is a directive's place."""
    assert read_yaml("a: 50 % of it\nb: |\n  %TAG\n")[0] == {"a": "50 % of it", "b": "%TAG\n"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = " + "1" * 5000, "it holds a number or a time that cannot be read"),
        (".".join(["a"] * 60_000) + " = 1", "a dotted key has more than 50 parts"),
        (".".join(['"\\""'] * 60_000) + " = 1", "a dotted key has more than 50 parts"),
        ("a = " + "[" * 5000, "nested too deeply to read"),
        ("a = b", "Invalid value"),
    ],
    ids=["number", "dotted", "quoted", "deep", "wrong"],
)
def test_toml_that_cannot_be_read_is_one_sentence(text: str, message: str):
    """One reader for rubrics and for adjudge.toml, so one set of guards."""
    with pytest.raises(ValueError, match=message):
        read_toml(text)


# Rubrics


def test_rules_of_one_file_are_counted():
    """Rules run one after the other, and no timeout can end one."""
    rule = {"name": "c", "description": "d", "rule": "json"}
    few = [rule | {"name": f"c{number}"} for number in range(MAX_RULES)]

    assert len(rubric_from_dict({"name": "x", "criteria": few}).criteria) == MAX_RULES
    with pytest.raises(UsageError, match=r"rubric: criteria: 65 criteria have a rule, and at most 64 may"):
        rubric_from_dict({"name": "x", "criteria": [*few, rule]})


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("openai:m?key_env=AWS_KEY", "'openai:m' has options after '?'"),
        ("http://me:hunter2@host/v1?x=1#m", "the address has options after '?'"),
        ("replay:/dev/zero", "'replay:/dev/zero' has the prefix replay:"),
        (" python:os:system", "' python:os:system' has the prefix python:"),
    ],
)
def test_a_rubric_is_data(model: str, message: str):
    """It names a provider's model: no key, no other address for it, no file and no code; said once, with its place."""
    with pytest.raises(UsageError) as caught:
        read_rubric(json.dumps({"name": "x", "model": model, "criteria": []}), format="json", where="r.json")

    assert names(caught.value, "r.json: model: ", message, "a provider's model and nothing else")
    assert str(caught.value).count("r.json") == 1


def test_patterns_of_one_schema_share_what_they_may_take():
    """Compiled, a pattern of seven characters can take 4 MB; one that is usual takes a few hundred bytes."""
    large = {"properties": {f"a{number}": {"pattern": rf"\pL{{{number + 10}}}"} for number in range(500)}}
    usual = {"properties": {f"a{number}": {"pattern": rf"^[a-z]{{1,{number + 1}}}$"} for number in range(60)}}

    for schema in (large, {"pattern": r"\pL{90}"}, {"patternProperties": {r"\pL{90}": {}}}):
        with pytest.raises(UsageError, match="large repetitions make them too large"):
            rule_from_spec({"json_schema": schema})
    rule = rule_from_spec({"json_schema": usual})
    assert asyncio.run(rule.check({"a3": "abcd"})).passed
    assert not asyncio.run(rule.check({"a3": "abcde"})).passed
    assert rule_from_spec({"json_schema": {"pattern": r"^[\s\S]{1,1000}$"}}).name


def test_similarity_is_computed_of_texts_it_can_afford():
    """Nothing else runs while two texts are compared, so the longest pair takes some milliseconds."""
    rule = rule_from_spec({"similarity": 0.5})

    assert SIMILARITY_LIMIT == 20_000
    assert asyncio.run(rule.check("a" * SIMILARITY_LIMIT, "a" * SIMILARITY_LIMIT)).passed
    assert "at most 20,000" in asyncio.run(rule.check("a" * (SIMILARITY_LIMIT + 1), "a")).message


# Rows


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("[" * 300 + "]" * 300, "nested more than 200 levels deep"),
        ("[" * 5000 + "]" * 5000, "nested "),
        ("1e999", 'the number "1e999" is too large'),
        ("-Infinity", "-Infinity is not JSON"),
        ("NaN", "NaN is not JSON"),
        ('"\\ud800"', "it holds half of a surrogate pair"),
        ('{"a\\udc00": 1}', "it holds half of a surrogate pair"),
        ('"\ud800"', "it holds half of a surrogate pair"),
    ],
)
@pytest.mark.parametrize("member", ["id", "content", "metadata", "label"])
def test_what_cannot_be_written_as_json_again_is_no_row(member: str, value: str, message: str):
    """Wherever it stands in the row: what is read is repeated in results, recordings and ``--json``."""
    start = "" if member == "content" else '"content": "x", '
    assert message in refuse_row(f'{{{start}"{member}": {value}}}')


def test_a_whole_surrogate_pair_is_a_character():
    """An escaped character outside the basic plane is text like any other."""
    assert parse_row('{"content": "\\ud83d\\ude00"}').content == "\U0001f600"


def test_a_key_that_stands_twice_is_found_in_one_pass():
    """However many keys there are, and wherever the second one stands."""
    members = ",".join(f'"{number}":0' for number in range(200_000))

    assert 'the key "199999" appears twice' in refuse_row(f'{{"content":"x","metadata":{{{members},"199999":0}}}}')


@pytest.mark.parametrize(
    "line",
    [
        '{"content": 1, "%s": 1}',
        '{"%s": 1}',
        '{"content": 1, "label": "%s"}',
        '{"content": 1, "metadata": "%s"}',
        '{"content": 1, "a": 1, "%s": 2, "%s": 3}',
    ],
)
def test_what_a_row_says_is_repeated_in_part(line: str):
    """A key of a megabyte does not fill a terminal."""
    assert len(refuse_row(line.replace("%s", "k" * 1_000_000))) < 800


# Recordings


def test_a_recording_is_a_regular_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A pipe would keep everybody waiting, and a device has no end."""
    monkeypatch.setattr(recording_file, "LARGEST", 100)
    (tmp_path / "large").write_bytes(b" " * 101)
    os.mkfifo(tmp_path / "pipe")

    for path, message in {
        tmp_path / "pipe": "is not a regular file",
        Path("/dev/zero"): "is not a regular file",
        tmp_path / "large": "is larger than",
        Path("a\x00b"): "no NUL character",
        tmp_path: "Is a directory",
        tmp_path / "none": "No such file",
    }.items():
        with pytest.raises(UsageError, match=message):
            ReplayModel(path).check()


def test_a_recording_of_many_models_asks_to_pick_one(tmp_path: Path):
    """A request is looked up under every model's name, so a row of its own for each would cost each judgement."""
    path = tmp_path / "r.jsonl"
    rows = [
        {"key": f"{number:064x}", "model": f"m{number}", "reply": {"text": "x"}} for number in range(MAX_MODELS + 1)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    with pytest.raises(UsageError, match=r"has rows of 65 models, .* pick one with replay:FILE\?model=NAME"):
        ReplayModel(path).check()
    ReplayModel(path, model="m3").check()


@pytest.mark.slow
@pytest.mark.no_cover
@pytest.mark.parametrize("size", [1, 3, 8, 20])
@pytest.mark.slow_table
def test_a_reply_of_nothing_but_the_token_is_masked(size: int):
    """In one pass over tokens and places, however the model cuts it, with empty tokens in between."""
    text = "abcdefgh" * 20_000
    pieces = [piece for start in range(0, len(text), size) for piece in (text[start : start + size], "")]
    tokens = [TokenLogprob(token=piece, logprob=0.0) for piece in pieces]
    masked = mask_tokens(tokens, "abcdefgh")

    assert "abcdefgh" not in "".join(item.token for item in masked)
    assert [item.token for item in unmask_tokens(masked, "abcdefgh")] == pieces


# Names of models


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("http://[x/v1#m", "base_url … like https://host/v1 … got 'http://[x/v1'"),
        ("http://a\uff0fb/v1#m", "base_url … like https://host/v1"),
        ("openai:m?base_url=http://[1", "base_url … like https://host/v1 … got 'http://[1'"),
        ("http://a b/v1#m", "base_url … like https://host/v1"),
        ("https://evil.com\\.api.openai.com/v1#m", "base_url … like https://host/v1"),
        ("http://[x" + "y" * 10_000 + "/v1#m", "base_url … like https://host/v1"),
    ],
)
def test_an_address_that_cannot_be_split_is_refused(spec: str, message: str):
    """Half a bracket, or a character that becomes a slash when it is normalised."""
    with pytest.raises(UsageError) as caught:
        open_model(spec)

    assert names(str(caught.value), *message.split(" … "))
    assert len(str(caught.value)) < 300


def test_an_address_of_the_environment_is_checked_too(monkeypatch: pytest.MonkeyPatch):
    """The same sentence, naming the variable; a password is not repeated."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    for variable, spec in {"OLLAMA_HOST": "ollama:m", "OPENAI_BASE_URL": "openai:m"}.items():
        monkeypatch.setenv(variable, "http://me:hunter2@[x")
        with pytest.raises(UsageError, match=f"{variable} must be like https://host/v1") as caught:
            open_model(spec).check()  # type: ignore[attr-defined]
        assert "hunter2" not in str(caught.value)


def test_a_rubric_s_model_is_refused_in_python_too():
    """Not files alone: what a rubric names is the same data however it was made."""
    with pytest.raises(UsageError, match="the prefix replay:"):
        Rubric(name="x", model="replay:f", criteria=[{"name": "a", "description": "b"}])
