"""What promptfoo 0.121.20 itself makes of a configuration and writes as results, as cases.

The files are small ones of the shape that this version reads and writes; what each gives was compared with it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adjudge import UsageError
from adjudge.dataset import import_promptfoo
from kit.judges import names


@pytest.fixture(name="folder", autouse=True)
def work_here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name: str, data: object) -> str:
    Path(name).write_text(data if isinstance(data, str) else json.dumps(data), "utf-8")
    return name


def contents(data: object) -> list[Any]:
    return [case.content for case in import_promptfoo(write("promptfooconfig.yaml", data))]


# ---------------------------------------------------------------- configurations


def test_only_a_list_that_begins_with_a_text_is_a_choice():
    """A list of messages, of numbers or of nothing is one value, and no test is lost for it."""
    messages = [{"role": "user", "content": "Why?"}]
    tests = [{"vars": {"q": value}} for value in (messages, [1, 2], [], ["a", 2])]

    assert contents({"tests": tests}) == [messages, [1, 2], [], "a", 2]


def test_a_scenario_is_each_setting_with_each_test():
    """After the tests; the default is under both, and so are its assertions."""
    Path("scenarios.yaml").write_text("config: [{vars: {q: c}}]\ntests: more.csv\n")
    Path("more.csv").write_text("a\n3\n")
    scenario = {
        "config": [{"vars": {"q": "a"}, "assert": [{"type": "contains", "value": "a"}]}, {"vars": {"q": "b"}}],
        "tests": [{"vars": {"a": "1"}}, {"vars": {"a": "2"}, "assert": [{"type": "is-json"}]}],
    }
    config = {
        "tests": [{"vars": {"q": "first", "a": "0"}}],
        "scenarios": [scenario, "file://scenarios.yaml"],
        "defaultTest": {"vars": {"x": "X"}, "assert": [{"type": "is-xml"}]},
    }
    cases = list(import_promptfoo(write("c.json", config)))

    assert [(case.content["q"], case.content["a"]) for case in cases] == [
        ("first", "0"),
        *(("a", "1"), ("a", "2"), ("b", "1"), ("b", "2")),
        ("c", "3"),
    ]
    assert all(case.content["x"] == "X" for case in cases)
    kinds = [[item["type"] for item in case.metadata["promptfoo"]["assert"]] for case in cases]
    assert kinds[:3] == [["is-xml"], ["is-xml", "contains"], ["is-xml", "contains", "is-json"]]


def test_a_default_may_stand_in_a_file_and_be_declined():
    """``disableDefaultAsserts`` leaves its assertions out; options are merged."""
    Path("base.yaml").write_text("vars: {x: X}\noptions: {prefix: p}\nassert: [{type: equals, value: gold}]\n")
    tests = [{"vars": {"q": "a"}}, {"vars": {"q": "b"}, "options": {"disableDefaultAsserts": True}}]
    first, second = import_promptfoo(write("c.json", {"defaultTest": "file://base.yaml", "tests": tests}))

    assert (first.content, first.reference) == ({"x": "X", "q": "a"}, "gold")
    assert (second.content, second.reference) == ({"x": "X", "q": "b"}, None)
    assert second.metadata["promptfoo"]["options"] == {"prefix": "p", "disableDefaultAsserts": True}


def test_references_into_the_file_are_followed():
    """Of tests and assertions; what leads to other files or in a circle is kept as it stands, and counted."""
    config = """
    assertionTemplates:
      gold: {type: equals, value: G}
      again: {$ref: "#/assertionTemplates/gold"}
      circle: {$ref: "#/assertionTemplates/circle"}
    shared: {vars: {q: shared}}
    tests:
      - vars: {q: a}
        assert: [{$ref: "#/assertionTemplates/again"}, {$ref: "#/assertionTemplates/circle"}, {$ref: "x.yaml#/y"}]
      - $ref: "#/shared"
    """
    dataset = import_promptfoo(write("c.yaml", config))
    first, second = dataset

    assert (first.content, first.reference, second.content) == ("a", "G", "shared")
    assert dataset.notes["assertion '$ref' not applied: there is no answer yet"] == 2


def test_variables_and_tests_may_stand_in_files():
    """Variables in several, the later ones over the earlier; tests below ``path``."""
    Path("a.yaml").write_text("q: a\nx: 1\n")
    Path("b.yaml").write_text("q: b\n")
    Path("t.jsonl").write_text('{"vars": {"q": "line"}}\n')

    assert contents({"tests": [{"vars": ["a.yaml", "b.yaml"]}, {"path": "file://t.jsonl"}]}) == [
        {"q": "b", "x": 1},
        "line",
    ]


@pytest.mark.parametrize("key", ["defaultTest", "scenarios"])
def test_no_part_of_a_configuration_is_read_from_outside(folder, key):
    """Whatever names the file."""
    (folder.parent / "secret.yaml").write_text("config: [{vars: {q: secret}}]\n")
    with pytest.raises(UsageError, match="are outside the configuration's folder"):
        contents({key: "file://../secret.yaml", "tests": [{"vars": {"q": "a"}}]})


@pytest.mark.parametrize("name", ["\ud800.yaml", "a\x00b.yaml", "a" * 5000 + ".yaml"])
def test_a_name_that_no_file_can_have_is_refused(name):
    """Half of a character, NUL, and no end of letters are a sentence, whatever reads them."""
    for suite in ({"tests": [{"vars": [name]}]}, {"tests": f"file://{name}"}):
        Path("suite.json").write_text(json.dumps(suite))
        with pytest.raises(UsageError):
            list(import_promptfoo("suite.json"))


def test_a_scenario_must_be_one():
    """It is named."""
    with pytest.raises(UsageError, match=r"scenario must be .*'config', got 7"):
        contents({"scenarios": [7]})


def test_a_scenario_has_an_end():
    """A small file could stand for no end of tests."""
    with pytest.raises(UsageError, match=r"160,000 tests, .* 100,000 .* split it"):
        contents(json.dumps({"scenarios": [{"config": [{}] * 400, "tests": [{}] * 400}]}))


def test_words_and_dates_are_the_texts_that_stand_there():
    """As promptfoo reads them: an answer ``Yes`` is not true. A date would make the whole file unreadable."""
    words = "[Yes, no, on, Off, y, 2024-01-02, 2024-01-02 10:00:00]"
    assert contents(f"tests:\n  - vars: {{q: {words}}}\n") == words.strip("[]").split(", ")
    assert contents("tests: [{vars: {q: {a: true, b: False, c: 1, d: null, e: 0.5}}}]") == [
        {"a": True, "b": False, "c": 1, "d": None, "e": 0.5}
    ]


def test_a_set_of_assertions_is_opened_unless_some_of_it_may_fail():
    """What need not hold is not the reference, and stays together as one rule; the others are criteria each."""
    either = {"type": "assert-set", "threshold": 0.5, "assert": [{"type": "equals", "value": "one of two"}]}
    every = {
        "type": "assert-set",
        "assert": [{"type": "equals", "value": "G"}, {"type": "llm-rubric", "value": "Kind."}],
    }
    test = {"vars": {"q": "a"}, "providerOutput": "G", "assert": [either, every]}
    dataset = import_promptfoo(write("c.json", {"tests": [test]}))
    (case,) = dataset

    assert case.reference == "G"
    together, first, second = case.rubric.criteria
    assert together.rule.spec == {"some_of": [{"equals": "one of two"}], "share": 0.5}
    assert (first.name, second.name, second.description) == ("equals 2.1", "llm-rubric 2.2", "Kind.")
    assert dataset.notes == {}
    assert case.metadata["promptfoo"]["assert"] == [either, every]


@pytest.mark.parametrize("item", [{"type": ["equals"]}, {"type": {}}, {"type": "assert-set", "assert": 7}])
def test_an_assertion_that_is_none_is_a_bad_row(item):
    """Whatever its type is."""
    with pytest.raises(UsageError, match=r"test 1: an assertion must have .* type .* 'assert'"):
        contents({"tests": [{"vars": {"q": "a"}, "assert": [item]}]})


@pytest.mark.parametrize("cell", ["file://check.js", "file://check.py:grade", "javascript:file://check.ts"])
def test_a_function_in_a_cell_is_no_reference(cell):
    """Nor is a file that holds the answer: its name would be compared with."""
    write("t.csv", f"q,__expected\nA,{cell}\n")
    (case,) = import_promptfoo("t.csv")
    (other,) = import_promptfoo(write("t.json", [{"vars": {"q": "A"}, "assert": [{"type": "equals", "value": cell}]}]))

    assert case.reference is None
    assert case.metadata["promptfoo"]["assert"][0]["type"] in {"javascript", "python"}
    assert other.reference == (None if cell.startswith("file://") else cell)


def test_a_cell_of_a_newer_type_is_no_reference():
    """``word-count: 5`` is an assertion, not an answer of that text; empty cells of metadata are nothing."""
    write("t.csv", 'q,__expected,__expected2,__metadata:k\nA,word-count: 5,"similar:cosine(0.9): near",\n')
    (case,) = import_promptfoo("t.csv")

    assert case.reference == "near"
    assert [item["type"] for item in case.metadata["promptfoo"]["assert"]] == ["word-count", "similar:cosine"]
    assert "k" not in case.metadata


# ---------------------------------------------------------------- results


def result(**more: object) -> dict[str, Any]:
    return {
        "failureReason": 0,
        "gradingResult": {"pass": False, "score": 0, "reason": "r", "componentResults": []},
        "prompt": {"raw": "Answer: Why?", "label": "Answer: {{q}}"},
        "promptIdx": 0,
        "provider": {"id": "echo", "label": ""},
        "response": {"output": "Because."},
        "score": 0,
        "success": False,
        "testCase": {"vars": {"q": "Why?"}, "assert": [{"type": "equals", "value": "So."}], "metadata": {"topic": "t"}},
        "testIdx": 0,
        "vars": {"q": "Why?", "best": "B"},
        **more,
    }


def document(*results: object) -> dict[str, Any]:
    return {"evalId": "e", "results": {"version": 3, "results": list(results), "stats": {}}, "config": {"tests": []}}


@pytest.mark.parametrize("name", ["results.json", "results.yaml", "results.jsonl"])
def test_results_have_the_answers(name):
    """The prompt is the task; what the assertions came to is kept, a failure too, and is no label."""
    rows = [result(), result(promptIdx=1, response={"output": {"a": 1}})]
    lines = name.endswith("l") and "json" in name
    dataset = import_promptfoo(write(name, "\n".join(map(json.dumps, rows)) if lines else document(*rows)))
    first, second = dataset

    assert (first.id, second.id) == ("test 1, prompt 1", "test 1, prompt 2")
    # As promptfoo writes an output that is no text, for the rules that its assertions are.
    assert (first.content, second.content) == ("Because.", '{"a":1}')
    assert [item.rule.spec for item in first.rubric.criteria] == [{"equals": "So."}]
    assert (first.task, first.reference, first.label) == ("Answer: Why?", "So.", None)
    assert first.metadata["topic"] == "t"
    kept = first.metadata["promptfoo"]
    assert (kept["success"], kept["score"], kept["provider"]["id"]) == (False, 0, "echo")
    assert kept["variables"] == {"q": "Why?", "best": "B"}


def test_a_variable_of_results_can_be_mapped():
    """As one of a test can."""
    (case,) = import_promptfoo(write("r.json", document(result())), fields={"reference": "best", "task": "q"})

    assert (case.content, case.task, case.reference) == ("Because.", "Why?", "B")


@pytest.mark.parametrize("passed", [True, False])
def test_the_rating_of_a_person_is_the_label(passed):
    """Which promptfoo keeps beside what its assertions came to."""
    parts = [{"pass": True, "assertion": {"type": "equals"}}, {"pass": passed, "assertion": {"type": "human"}}]
    (case,) = import_promptfoo(write("r.json", document(result(gradingResult={"componentResults": parts}))))

    assert case.label is passed


@pytest.mark.parametrize(
    ("row", "parts"),
    [
        (
            result(response=None, error="no key", failureReason=2),
            ("test 1, prompt 1", "no answer", "no key", "run it again"),
        ),
        (
            result(response={"error": "timeout", "output": ""}),
            ("test 1, prompt 1", "no answer", "timeout", "run it again"),
        ),
        (result(response={}), ("test 1, prompt 1", "no answer", "run it again")),
        (result(testCase={"assert": 7}), ("'assert'", "a list", "7")),
        (7, ("a result", "'testCase'", "7")),
    ],
)
def test_a_result_without_an_answer_is_a_bad_row(row, parts):
    """Judged as an empty answer, a rubric that only forbids things would pass it."""
    dataset = import_promptfoo(write("r.json", document(row, result(testIdx=1))), on_bad_row="skip")

    assert [case.id for case in dataset] == ["test 2, prompt 1"]
    (bad,) = dataset.bad_rows
    assert names(bad.why, *parts)
