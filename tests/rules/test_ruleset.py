"""Several rules as one value, in Python and in files."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from adjudge import Gate, Judge, Rule, RuleResult, Rules, UsageError, load_rubric, load_rules
from adjudge.rules import SHIPPED, as_rule
from adjudge.testing import ScriptedModel
from kit.judges import names, scores
from kit.rubrics import read_schema
from kit.rules import EXAMPLES

pytestmark = pytest.mark.timed


def greets(content: str) -> bool:
    """The content greets."""
    return content.startswith("Hello")


async def slow(content: str) -> bool:
    """The content is short."""
    await asyncio.sleep(0.001)
    return len(content) < 10


def broken(content: str) -> bool:
    raise LookupError(f"no table\x1b[2J for\n{content}")


# Rules in Python


def test_rules_keep_their_order_and_their_names():
    """``list``, iteration, length and places agree, and ``get`` finds one by name."""
    rules = Rules([greets, {"length": 20}, "json"])

    assert [rule.name for rule in rules] == ["greets", "length", "json"]
    assert rules.list() == tuple(rules) == rules[:]
    assert (len(rules), rules[1], rules[-1]) == (3, rules.get("length"), rules.get("json"))
    assert repr(rules) == "Rules(greets, length, json)"


def test_a_name_nobody_has_is_none():
    """``get`` answers ``None`` for an unknown name and for what is no name."""
    rules = Rules([greets])

    assert rules.get("missing") is None
    assert rules.get(None) is None  # pyrefly: ignore
    assert Rules().get("greets") is None


def test_hyphens_and_underscores_are_alike_in_a_lookup():
    """A rule is found however its name is joined."""
    assert Rules(["personal-data"]).get("personal-data") == Rules(["personal_data"]).get("personal_data")


@pytest.mark.parametrize("rules", [[{"regex": "a"}, {"regex": "b"}], [greets, greets], {"a-b": "json", "a_b": "json"}])
def test_a_name_stands_for_one_rule(rules: Any):
    """Two rules with names that are found alike are refused, and the error says how to name them."""
    with pytest.raises(UsageError, match=r"rules 1 and 2 .*; give each its own name"):
        Rules(rules)


def test_a_mapping_names_its_rules():
    """So several of one kind can stand together."""
    rules = Rules({"no-a": {"regex": "a", "absent": True}, "no-b": {"regex": "b", "absent": True}, "hi": greets})

    assert [rule.name for rule in rules] == ["no-a", "no-b", "hi"]
    assert [item.name for item in rules.evaluate_sync("b") if not item.passed] == ["no-b", "hi"]


@pytest.mark.parametrize("value", ["json", 3, None, Rule(name="x", evaluate=greets)])
def test_what_is_not_several_rules_is_refused(value: Any):
    """A single name would be read letter by letter."""
    with pytest.raises(UsageError, match=r"Rules takes a list .* mapping"):
        Rules(value)


def test_every_rule_runs_in_order():
    """Asynchronous and synchronous, passed and failed: one result each, in the order of the rules."""
    rules = Rules([slow, {"contains": "x", "severity": "warning"}, greets, "similarity"])
    results = asyncio.run(rules.evaluate("Hello", reference="Hello"))

    assert [(item.name, item.passed, item.severity) for item in results] == [
        ("slow", True, "error"),
        ("contains", False, "warning"),
        ("greets", True, "error"),
        ("similarity", True, "error"),
    ]
    assert rules.evaluate_sync("Hello", "Hello") == results
    assert Rules().evaluate_sync("Hello") == ()


def test_a_rule_that_raises_has_failed_and_stops_nothing():
    """The reason is the exception's type and a short text without control characters; the rules after it run."""
    results = Rules([broken, greets]).evaluate_sync("Hello")

    assert [item.passed for item in results] == [False, True]
    assert names(results[0].message, "LookupError", r"no table\x1b[2J for Hello")
    assert len(Rules([broken]).evaluate_sync("x" * 10_000)[0].message) < 500


def test_cancelling_the_caller_is_no_failed_rule():
    """Only the task's own cancellation ends an evaluation, and it goes on to whoever cancelled."""

    async def cancel() -> None:
        async with asyncio.timeout(0.01):
            await Rules([lambda content: asyncio.Event().wait()]).evaluate("x")

    with pytest.raises(TimeoutError):
        asyncio.run(cancel())


def test_rules_never_change():
    """They are a value: equal when their rules are, hashable, without a way to add or replace one."""
    source = ["json", {"length": 3}]
    rules = Rules(source)
    source.append("unicode")

    assert rules == Rules(["json", {"length": 3}])
    assert hash(rules) == hash(Rules(["json", {"length": 3}]))
    assert rules != Rules([{"length": 3}, "json"])
    for name in Rules.__slots__:
        with pytest.raises(AttributeError):
            setattr(rules, name, ())
    with pytest.raises(TypeError):
        rules[0] = rules[1]  # pyrefly: ignore


def test_rules_stand_wherever_a_list_of_rules_does():
    """In a judge's call and in a gate."""
    rules = Rules([{"length": 5}])
    model = ScriptedModel([scores(1.0)])

    result = Judge(model).evaluate_sync("too long", criteria="Good.", rules=rules)
    assert (result.outcome, result.decided_by, model.requests) == ("failed", "rule", [])
    assert not asyncio.run(Gate("door", rules=rules).check("too long")).allowed
    assert asyncio.run(Gate("door", rules=rules).check("short")).allowed


def test_rules_as_data_are_read_back():
    """``to_dict`` is what a rule file holds; a function is described there, and refused by the reader."""
    rules = Rules({"short": {"length": 9, "severity": "info"}, "key": "secrets", "hi": {"contains": ["a", "b"]}})

    assert rules.to_dict()["schema"] == "adjudge/rules/1"
    assert load_rules(json.loads(json.dumps(rules.to_dict()))) == rules
    assert load_rules(rules) is rules
    with pytest.raises(UsageError, match=r"rules\.greets: .* runs code"):
        load_rules(Rules([greets]).to_dict())


def test_a_result_of_another_name_is_renamed():
    """A function cannot speak for another rule, nor lower its own severity."""
    rule = Rule(name="mine", evaluate=lambda content: RuleResult(name="other", passed=False, severity="info"))

    assert Rules([rule]).evaluate_sync("x") == (RuleResult(name="mine", passed=False),)


@pytest.mark.parametrize("name", [name for name in SHIPPED if name != "python"])
def test_a_rule_that_ships_is_known_to_editors(name: str):
    """The schema of rubric files has it, in the form that a file writes and in the one ``Rule.spec`` holds."""
    rule = as_rule(EXAMPLES[name])

    assert rule.kind == name
    for spec in (EXAMPLES[name], rule.spec):
        data = {"name": "r", "criteria": [{"name": "a", "description": "b", "rule": spec}]}
        jsonschema_rs.validate(read_schema(), data)
        assert load_rubric(data).criteria[0].rule.spec == rule.spec


# Rules in files

YAML = """
schema: adjudge/rules/1
rules:
  - secrets
  - {name: length, max: 40}
  - personal-data: [email]
    severity: warning
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("rules.yaml", YAML),
        ("rules", YAML),
        ("rules.json", '{"rules": ["secrets", {"length": 40}, {"personal_data": ["email"], "severity": "warning"}]}'),
        (
            "rules.toml",
            'rules = ["secrets", {length = 40}, {personal_data = ["email"], severity = "warning"}]\n',
        ),
    ],
)
def test_the_same_rules_in_every_form(tmp_path: Path, name: str, text: str):
    """YAML, JSON and TOML say the same."""
    (tmp_path / name).write_text(text, encoding="utf-8")

    assert load_rules(tmp_path / name) == Rules(
        ["secrets", {"length": 40}, {"personal_data": ["email"], "severity": "warning"}]
    )


def test_names_in_a_file(tmp_path: Path):
    """A mapping of names to rules is a list whose rules have names of their own."""
    path = tmp_path / "rules.yaml"
    path.write_text("rules:\n  no-todo: {not_contains: TODO}\n  no-fixme: {not_contains: FIXME}\n  key: secrets\n")

    assert [(rule.name, rule.kind) for rule in load_rules(str(path))] == [
        ("no-todo", "not_contains"),
        ("no-fixme", "not_contains"),
        ("key", "secrets"),
    ]


LAUGHS = "a: &a [x, x]\n" + "".join(
    f"{one}: &{one} [*{two}, *{two}]\n" for two, one in pairwise("abcdefghijklmnopqrstuvwxyz")
)
"""A few hundred characters that stand for 2 to the power of 26 values."""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rules:\n  - json\n  - {python: 'os:system'}", "line 3 … rules[1] … a python: rule runs code"),
        ("rules:\n  - {name: python, function: 'os:system'}", "line 2 … rules[0] … a python: rule runs code"),
        ("rules:\n  evil: {python: 'os:system'}", "line 2 … rules.evil … a python: rule runs code"),
        ("rules:\n  - secretz", "line 2 … rules[0] … no rule is named 'secretz' … did you mean 'secrets'?"),
        ("rules:\n  - {regex: a, absnt: true}", "rules[0] … rule regex … key 'absnt' … did you mean 'absent'?"),
        ("rules:\n  - {regex: '(?=a)b'}", "line 2 … rules[0] … rule regex … the pattern"),
        ("rules:\n  - 3", "line 2 … rules[0] … a rule is a mapping like {regex: ...} or a rule's name … got 3"),
        ("rules:\n  - {regex: a}\n  - {regex: b}", 'line 3 … rules[1] … "regex" … the name of rules[0]'),
        ("rules: {a-b: json, a_b: json}", "\"a_b\" … the name of 'a-b' … give each its own"),
        ("rules: {3: json}", "rules … a rule's name … a text … got 3"),
        ("rules: []", "rules … must be a list of rules, or a mapping of names to rules … got []"),
        ("rules: json", "rules … must be a list of rules, or a mapping of names to rules … got 'json'"),
        ("rulez: [json]", "rulez … a rule file … key 'rulez' … did you mean 'rules'?"),
        ("schema: adjudge/rules/1", "a rule file needs 'rules', and there is none"),
        ("schema: adjudge/rubric/1\nrules: [json]", "this version reads 'adjudge/rules/1', not 'adjudge/rubric/1'"),
        ("- json", "a rule file … a mapping with rules … got ['json']"),
        ("rules: [json]\nrules: [secrets]", 'line 2 … the key "rules" … in line 1'),
        ("rules: !!python/object/apply:os.system [id]", "could not determine a constructor"),
        (f"rules: [{', '.join(['json'] * 65)}]", "has 65 rules … at most 64 may stand in one file"),
        ("rules:\n" + "  - &a [*a]", "aliases"),
        ("rules: " + "[" * 1000, "nested more than 50 levels deep"),
        (LAUGHS, "multiply"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_file_is_named_with_its_place(tmp_path: Path, text: str, message: str):
    """One sentence: file, line, path, what stands there, and the nearest name; nothing is run or expanded."""
    path = tmp_path / "rules.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        load_rules(path)

    assert str(caught.value).startswith(str(path))
    assert names(str(caught.value), *message.split(" … "))
    assert "\n" not in str(caught.value)


def test_a_rule_file_that_cannot_be_read_says_why(tmp_path: Path):
    """A directory, a missing, large, binary or oddly named file: one sentence each."""
    (tmp_path / "large.yaml").write_bytes(b"#" * (1_000_001))
    (tmp_path / "binary.yaml").write_bytes(b"\x00")
    (tmp_path / "rules.txt").write_text("rules: [json]")
    words_by_file = {
        "": "is a directory; name a rule file in it",
        "none.yaml": "does not exist, so no rule can be read from it",
        "large.yaml": "a rule file has at most 1,000,000 bytes",
        "binary.yaml": "is a binary file",
        "rules.txt": "is not a rule file by its suffix",
        "\x00": "a path to a rule file has no NUL character in it",
    }

    for name, words in words_by_file.items():
        with pytest.raises(UsageError, match=words):
            load_rules(f"{tmp_path}/{name}")
    with pytest.raises(UsageError, match=r"rules .* path or a mapping, not from int"):
        load_rules(3)  # pyrefly: ignore
