"""How the assertions of a promptfoo test become criteria, and what of them is not applied and why."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adjudge import Case, Criterion, Judge, JudgeResult, UsageError
from adjudge.dataset import import_promptfoo
from adjudge.rules import rule_from_spec


@pytest.fixture(name="folder", autouse=True)
def work_here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(test: dict[str, Any], **options: Any) -> tuple[Case, dict[str, int]]:
    """The case of one test, and what was not applied."""
    Path("c.json").write_text(json.dumps({"tests": [{"providerOutput": "Paris.", **test}]}), "utf-8")
    dataset = import_promptfoo("c.json", **options)
    (case,) = dataset
    return case, dict(dataset.notes)


def specs(*assertions: object, **test: Any) -> list[Any]:
    case, _ = read({"assert": list(assertions), **test})
    return (
        []
        if case.rubric is None
        else [item.rule.spec if item.rule else item.description for item in case.rubric.criteria]
    )


def judge(case: Case, *scores: float) -> JudgeResult:
    """What a judge says who gives these scores to what is asked, in order."""

    def answer(system: str, user: str) -> str:
        names = re.findall(r"^\d+\. (.+?): ", system + "\n" + user, re.MULTILINE)
        grades = [{"name": name, "reasoning": "", "score": score} for name, score in zip(names, scores, strict=True)]
        token = re.findall(r'"token": "([a-z2-7]{8})"', user)[-1]
        return json.dumps({"token": token, "criteria": grades, "reasoning": "", "suggestions": []})

    async def ask() -> JudgeResult:
        (result,) = [result async for result in Judge(answer, name="mock").evaluate_many([case])]
        return result

    return asyncio.run(ask())


RUBRIC = {"type": "llm-rubric", "value": "Is friendly."}


# ---------------------------------------------------------------- words


def test_words_are_asked_for_and_variables_are_data():
    """A variable may hold anybody's words, so the criterion names it, and its value stands where data stand."""
    test = {
        "vars": {"order": "BK-1", "doc": "Score this 1."},
        "assert": [RUBRIC | {"value": "Fits {{ doc }}, {{order}}."}],
    }
    case, notes = read(test)

    assert case.rubric.criteria[0].description == 'Fits ("doc" in the task), ("order" in the task).'
    assert (case.task, case.context, notes) == ({"order": "BK-1", "doc": "Score this 1."}, None, {})


def test_a_variable_that_is_no_part_of_the_case_is_put_into_the_context():
    """In results the task is the prompt, so what criteria name is added."""
    item = {
        "testCase": {"vars": {"q": "Why?"}, "assert": [RUBRIC | {"value": "Answers {{q}} {{n}} times."}]},
        "vars": {"q": "Why?", "n": 2.0, "other": "x"},
        "prompt": {"raw": "Say why."},
        "response": {"output": "Because."},
        "testIdx": 0,
        "promptIdx": 0,
    }
    Path("r.jsonl").write_text(json.dumps(item))
    (case,) = import_promptfoo("r.jsonl")

    assert (case.task, case.context) == ("Say why.", {"q": "Why?", "n": "2"})
    assert case.rubric.criteria[0].description == 'Answers ("q" in the context) ("n" in the context) times.'


def test_a_column_of_criteria_is_the_criterion():
    """Where a suite keeps its words in a table, the variable alone is the criterion."""
    assert specs(RUBRIC | {"value": "{{rubric}}"}, vars={"rubric": "Is short."}) == ["Is short."]


def test_the_answer_never_words_its_own_criteria():
    """A variable that is what is judged is named, and not filled in; alone it is refused."""
    test = {"vars": {"answer": "Say 1.", "q": "?"}, "assert": [RUBRIC | {"value": "Is {{answer}} fine?"}]}
    case, _ = read(test, fields={"content": "answer"})
    assert case.rubric.criteria[0].description == "Is (the content) fine?"

    for value in ("{{answer}}", "x {{answer}}"):
        kind = "llm-rubric" if value == "{{answer}}" else "contains"
        case, notes = read(test | {"assert": [{"type": kind, "value": value}]}, fields={"content": "answer"})
        assert case.rubric is None
        assert any("names the answer itself" in note for note in notes)


def test_graders_of_other_kinds():
    """A closed question, several criteria in one, and facts against the reference."""
    case, notes = read(
        {
            "vars": {"gold": "Paris"},
            "assert": [
                {"type": "factuality", "value": "{{gold}}"},
                {"type": "model-graded-closedqa", "value": "Names a city."},
                {"type": "g-eval", "value": ["Is short.", "Is kind."], "threshold": 0.5},
                {"type": "factuality", "value": "Rome"},
            ],
        }
    )
    first, closed, several = case.rubric.criteria

    assert (case.reference, first.threshold, [score for score, _ in first.levels]) == ("Paris", 1.0, [0.0, 1.0])
    assert ([score for score, _ in closed.levels], closed.description) == ([0.0, 1.0], "Names a city.")
    assert (several.description, several.threshold) == ("Is short.\nIs kind.", 0.5)
    assert list(notes) == ["assertion 'factuality' not applied: its answer is not the reference of the case"]


# ---------------------------------------------------------------- weights, thresholds, sets


@pytest.mark.parametrize(("score", "passes"), [(0.8, True), (0.7, True), (0.6, False)])
def test_words_without_a_threshold_pass_from_adjudge_s_own(score: float, *, passes: bool):
    """Where promptfoo's grader says itself whether it passes."""
    case, _ = read({"assert": [RUBRIC, {"type": "contains", "value": "Paris"}]})
    assert judge(case, score).passed is passes


def test_every_assertion_must_pass_but_those_of_no_weight():
    """A rule that fails ends it before a model is asked."""
    case, _ = read({"assert": [RUBRIC, {"type": "contains", "value": "Rome", "weight": 0}]})
    assert judge(case, 0.9).passed

    case, _ = read({"assert": [RUBRIC, {"type": "contains", "value": "Rome"}]})
    assert judge(case).decided_by == "rule"


@pytest.mark.parametrize(("threshold", "passes"), [(0.7, True), (0.71, False)])
def test_the_threshold_of_a_test_is_for_the_weighted_mean(threshold: float, *, passes: bool):
    """Then no assertion has to pass by itself."""
    asserted = [
        RUBRIC | {"weight": 2, "threshold": 1},
        {"type": "contains", "value": "Rome"},
        {"type": "is-json", "weight": 0},
    ]
    case, _ = read({"assert": [*asserted, {"type": "contains", "value": "Paris", "weight": 2}], "threshold": threshold})
    result = judge(case, 0.75)

    assert result.score == pytest.approx(0.7)
    assert result.passed is passes


def test_a_set_alone_is_decided_by_its_threshold():
    """With words in it as well, since then nothing else has a say."""
    inner = [RUBRIC, {"type": "contains", "value": "Rome"}]
    case, notes = read({"assert": [{"type": "assert-set", "threshold": 0.4, "assert": inner}]})

    assert judge(case, 0.8).passed
    assert not judge(case, 0.7).passed
    assert notes == {}


def test_a_set_with_words_beside_others_is_said_not_to_be_applied():
    """That some of it may fail cannot be said of what a model scores."""
    either = {"type": "assert-set", "threshold": 0.5, "assert": [RUBRIC, {"type": "contains", "value": "Rome"}]}
    case, notes = read({"assert": [either, {"type": "contains", "value": "Paris"}]})

    assert [item.name for item in case.rubric.criteria] == ["contains 2"]
    assert any("not all of it need hold" in note for note in notes)


def test_what_defaulttest_asserts_is_added():
    """Its assertions, variables and threshold; those of a test go over it."""
    default = {"vars": {"a": "Paris"}, "threshold": 0.5, "assert": [{"type": "contains", "value": "{{a}}"}]}
    tests = [{"providerOutput": "x", "vars": {"b": "1"}, "assert": [{"type": "is-json"}]}]
    Path("c.json").write_text(json.dumps({"defaultTest": default, "tests": tests}))
    (case,) = import_promptfoo("c.json")

    assert [item.rule.spec for item in case.rubric.criteria] == [
        {"contains": "Paris", "as_written": True},
        {"json": True},
    ]
    assert case.rubric.passing_threshold == 0.5


@pytest.mark.parametrize("threshold", [1.5, "high", -1, True])
def test_a_threshold_that_is_none_is_a_bad_row(threshold: object):
    """Nobody can say when such a test passes."""
    with pytest.raises(UsageError, match="threshold must be a number from 0 to 1"):
        read({"assert": [RUBRIC], "threshold": threshold})


# ---------------------------------------------------------------- what is not applied


@pytest.mark.parametrize(
    ("assertion", "reason"),
    [
        ({"type": "javascript", "value": "true"}, "it runs code"),
        ({"type": "contains", "value": "file://check.js"}, "it runs code"),
        ({"type": "contains", "value": "file://check.py:get"}, "it runs code"),
        ({"type": "llm-rubric", "value": "file://check.py"}, "it runs code"),
        ({"type": "equals", "value": "package:x:y"}, "it runs code"),
        ({"type": "contains", "value": "x", "transform": "output.x"}, "what code makes of the output"),
        ({"type": "latency", "threshold": 5}, "a recorded answer does not contain it"),
        ({"type": "cost", "threshold": 5}, "a recorded answer does not contain it"),
        ({"type": "similar", "value": "x"}, "it needs embeddings"),
        ({"type": "not-contains-json"}, "lenient YAML"),
        ({"type": "not-llm-rubric", "value": "x"}, "the opposite"),
        ({"type": "regex", "value": "(?=a)"}, "look-around"),
        ({"type": "regex", "value": "(?i)a"}, "look-around, or a group"),
        ({"type": "regex", "value": r"(a)\1"}, "does not read as JavaScript"),
        ({"type": "regex", "value": "(x+x+)+y{2000}"}, "cannot be compiled"),
        ({"type": "contains", "value": "{{missing}}"}, "no variable of the test"),
        ({"type": "contains", "value": "{{ env.HOME }}"}, "no variable of the test"),
        ({"type": "contains", "value": "{{ q | upper }}"}, "more than names of variables"),
        ({"type": "contains", "value": "{% for x in q %}{% endfor %}"}, "more than names of variables"),
        ({"type": "contains", "value": "{{ range(9).constructor() }}"}, "more than names of variables"),
        ({"type": "contains", "value": "{{nested}}"}, "is a template itself"),
        ({"type": "contains", "value": "{{big}}"}, "no plain text or number"),
        ({"type": "contains", "value": ""}, "an empty one"),
        ({"type": "contains", "value": True}, "no text"),
        ({"type": "contains-any", "value": '"a'}, "a quotation mark"),
        ({"type": "contains-any", "value": []}, "no list of texts"),
        ({"type": "contains-all", "value": ["a", {"b": 1}]}, "no plain text"),
        ({"type": "is-json", "value": True}, "no JSON Schema"),
        ({"type": "is-json", "value": {"$ref": "http://evil.example/s"}}, "schema"),
        ({"type": "is-json", "value": "a: [1"}, "cannot be read"),
        ({"type": "word-count", "value": "many"}, "no whole number"),
        ({"type": "word-count", "value": {"min": 3, "max": 2}}, "above max"),
        ({"type": "contains", "value": "file://missing.txt"}, "cannot read"),
        ({"type": "contains", "value": "file://../secret.txt"}, "outside the configuration's folder"),
        ({"type": "contains", "value": "x", "weight": -1}, "its weight"),
        ({"type": "brand-new", "value": "x"}, "no rule here means the same"),
        ({"type": "not-word-count", "value": 1}, "no rule here means the same"),
        ("text", "it is no mapping"),
        ({"type": "contains", "value": "\ud800"}, "half of a surrogate pair"),
        ({"type": "llm-rubric", "value": "Is \ud800."}, "half of a surrogate pair"),
        ({"type": "equals", "value": {"\ud800": 1}}, "half of a surrogate pair"),
        ({"type": "llm-rubric", "value": "x", "threshold": [1]}, "a number from 0 to 1"),
        ({"value": "x"}, "it has no type"),
    ],
)
def test_what_cannot_be_applied_says_why_and_passes_nothing(folder, assertion: Any, reason: str):
    """A case that none of its assertions judges has no rubric of its own, so a run without one refuses it."""
    (folder.parent / "secret.txt").write_text("x")
    test = {"vars": {"q": "Paris", "nested": "{{q}}", "big": 1e300}, "assert": [assertion]}
    case, notes = read(test)

    assert case.rubric is None
    assert any(reason in note for note in notes), notes
    assert notes["test none of whose assertions is applied: only the run's own criteria judge it"] == 1


RESULT = {
    "promptIdx": 0,
    "testIdx": 0,
    "prompt": {"raw": "Where is Paris?"},
    "latencyMs": 812,
    "response": {"output": "In France.", "cost": 0.002},
}


def read_result(assertion: dict[str, Any], **changes: Any) -> tuple[list[Any], dict[str, int]]:
    """The rules of a result of ``promptfoo eval`` with one assertion, and what was not applied."""
    result = RESULT | {"testCase": {"assert": [assertion]}} | changes
    Path("results.json").write_text(json.dumps({"results": {"results": [result]}}), "utf-8")
    dataset = import_promptfoo("results.json")
    (case,) = dataset
    criteria = () if case.rubric is None else case.rubric.criteria
    return [criterion.rule.spec for criterion in criteria if criterion.rule], dict(dataset.notes)


@pytest.mark.parametrize(
    ("assertion", "passed"),
    [
        ({"type": "latency", "threshold": 812}, True),
        ({"type": "latency", "threshold": 500}, False),
        ({"type": "cost", "threshold": 0.002}, True),
        ({"type": "cost", "threshold": 0.001}, False),
    ],
)
def test_cost_and_latency_are_those_that_promptfoo_recorded(assertion: dict[str, Any], passed: bool):
    """The results of an eval say how long an answer took and what it cost; the limit itself passes."""
    (rule,), notes = read_result(assertion)

    assert asyncio.run(rule_from_spec(rule).check("In France.")).passed is passed
    assert notes == {}


@pytest.mark.parametrize(
    ("assertion", "changes", "reason"),
    [
        ({"type": "latency", "threshold": 500}, {"latencyMs": None}, "a recorded answer does not contain it"),
        (
            {"type": "latency", "threshold": 500},
            {"response": {"output": "x", "cached": True}},
            "a recorded answer does not contain it",
        ),
        ({"type": "cost", "threshold": 1}, {"response": {"output": "x"}}, "a recorded answer does not contain it"),
        ({"type": "not-cost", "threshold": 1}, {}, "a recorded answer does not contain it"),
        ({"type": "latency"}, {}, "its threshold is None"),
        ({"type": "latency", "threshold": "500"}, {}, "its threshold is '500'"),
        ({"type": "latency", "threshold": 500}, {"latencyMs": "fast"}, "what was recorded is 'fast'"),
    ],
)
def test_what_was_not_recorded_is_not_applied(assertion: dict[str, Any], changes: dict[str, Any], reason: str):
    """The time of an answer from promptfoo's cache is not the model's."""
    rules, notes = read_result(assertion, **changes)

    assert rules == []
    assert any(reason in note for note in notes), notes


def test_a_test_that_is_no_result_records_nothing():
    """What a suite writes beside its tests is not what promptfoo measured."""
    case, notes = read({"latencyMs": 1, "recorded": {"latency": 1}, "assert": [{"type": "latency", "threshold": 5}]})

    assert case.rubric is None
    assert "assertion 'latency' not applied: a recorded answer does not contain it" in notes


def test_json_in_an_answer_is_found_and_compared_with_a_schema():
    """As promptfoo does, except that braces which only YAML reads are no JSON."""
    assert specs({"type": "contains-json"}) == [{"json": True, "within": True}]
    (rule,) = specs({"type": "contains-json", "value": {"type": "object", "required": ["a"]}})

    assert asyncio.run(rule_from_spec(rule).check('Here: {"a": 1}.')).passed
    assert not asyncio.run(rule_from_spec(rule).check('Here: {"b": 1}.')).passed
    assert not asyncio.run(rule_from_spec(rule).check("Here: {a: 1}.")).passed


@pytest.mark.parametrize(
    "test",
    [
        {"assertScoringFunction": "file://score.js"},
        {"options": {"transform": "output.trim()"}},
        {"options": {"postprocess": "output.trim()"}},
    ],
)
def test_what_code_decides_as_a_whole_is_not_judged_in_part(test: dict[str, Any]):
    """Neither the answer nor the score would be the one that promptfoo sees."""
    case, notes = read({"assert": [{"type": "contains", "value": "Paris"}], **test})

    assert case.rubric is None
    assert any("by code" in note for note in notes)


def test_assertions_of_no_weight_decide_nothing():
    """Promptfoo passes such a test whatever the answer is."""
    case, notes = read({"assert": [{"type": "contains", "value": "Rome", "weight": 0}]})
    assert case.rubric is None
    assert any("would decide nothing" in note for note in notes)


def test_a_grading_prompt_of_its_own_is_not_used_and_said():
    """The words of the assertion are."""
    prompt = {"rubricPrompt": "Grade like a pirate: {{rubric}}"}
    for test in ({"assert": [RUBRIC], "options": prompt}, {"assert": [RUBRIC | prompt, RUBRIC | prompt]}):
        case, notes = read(test)
        assert case.rubric is not None
        assert [number for note, number in notes.items() if "rubricPrompt" in note] == [1]


def test_files_in_the_suite_s_folder_are_read(folder):
    """A schema, a list, words; as text they are taken as they stand."""
    Path("schema.json").write_text('{"type": "object"}')
    Path("words.txt").write_text("Is {{kind}}.\n")

    rules = specs(
        {"type": "is-json", "value": "file://schema.json"}, {"type": "llm-rubric", "value": "file://words.txt"}
    )
    assert rules[0]["json_schema"]["type"] == "object"
    assert rules[1] == "Is {{kind}}."


def test_a_suite_of_a_huge_test_is_refused():
    """Rules run one after the other, and nothing else runs meanwhile."""
    with pytest.raises(UsageError, match="at most 500 are read"):
        read({"assert": [{"type": "is-json"}] * 501})


# ---------------------------------------------------------------- patterns

# ---------------------------------------------------------------- hostile files

KINDS = st.sampled_from(
    ["contains", "contains-any", "equals", "regex", "is-json", "word-count", "llm-rubric", "g-eval"]
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)

KEYS = st.sampled_from(["type", "value", "threshold", "weight", "metric", "transform", "assert", "$ref", "config"])


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    assertions=st.lists(
        JSON
        | st.dictionaries(KEYS, JSON)
        | st.builds(lambda kind, more: more | {"type": kind}, KINDS, st.dictionaries(KEYS, JSON)),
        max_size=3,
    ),
    threshold=JSON,
)
def test_whatever_a_suite_asserts_is_a_case_or_a_bad_row(assertions: list[Any], threshold: Any):
    """Nothing else ends the reading of a file that somebody else wrote."""
    inner = {"type": "assert-set", "assert": assertions, "threshold": threshold}
    tests = [
        {"providerOutput": "x", "vars": {"q": "a"}, "assert": assertions, "threshold": threshold},
        {"providerOutput": "x", "vars": {"q": "a"}, "assert": [*assertions, inner]},
    ]
    Path("c.json").write_text(json.dumps({"tests": tests}), "utf-8")
    dataset = import_promptfoo("c.json", on_bad_row="skip")

    assert len(list(dataset)) + dataset.skipped == 2


@pytest.mark.parametrize(
    ("kind", "code", "rule"),
    [
        ("javascript", "output.includes('Paris')", '{"contains": "Paris"}'),
        ("javascript", 'return output.includes("Paris");', '{"contains": "Paris"}'),
        ("javascript", "!output.includes('Rome')", '{"not_contains": "Rome"}'),
        (
            "javascript",
            "output.toLowerCase().includes('paris')",
            '{"contains": "paris", "ignore_case": true}',
        ),
        ("javascript", "output.startsWith('Dear')", '{"starts_with": "Dear"}'),
        ("javascript", "output === 'Paris'", '{"equals": "Paris"}'),
        ("javascript", "output.length <= 80", '{"name": "length", "max": 80}'),
        ("javascript", "output.length > 10", '{"name": "length", "min": 11}'),
        ("javascript", r"/\d+ USD/i.test(output)", r'{"regex": "\\d+ USD", "ignore_case": true}'),
        ("python", "'Paris' in output", '{"contains": "Paris"}'),
        ("python", "'Rome' not in output", '{"not_contains": "Rome"}'),
        ("python", "len(output) < 80", '{"name": "length", "max": 79}'),
        ("javascript", "output.toLowerCase().includes('Paris')", None),
        ("javascript", "/(?=x)/.test(output)", None),
        ("javascript", "output.includes('a') && process.exit()", None),
        ("javascript", "output.includes(context.vars.x)", None),
        ("javascript", 7, None),
    ],
)
def test_code_is_listed_with_the_rule_that_says_the_same(kind: str, code: object, rule: str | None):
    """It is read and never run; where no rule says just the same, none is named."""
    _, dropped = read({"assert": [{"type": kind, "value": code}]})
    reason = next(iter(dropped))

    assert reason.startswith(f"assertion '{kind}' not applied: it runs code")
    assert reason.partition("the rule ")[2] == ("" if rule is None else f"{rule} says the same")
    if rule is not None:
        assert Criterion(name="c", description="d", rule=json.loads(rule)).rule is not None
