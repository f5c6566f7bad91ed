"""Rules on an agent's run: what must not have happened, and what they do where nobody knows."""

from __future__ import annotations

import dataclasses

import pytest

from adjudge import RuleResult, Rules, Usage, UsageError, load_rules
from adjudge.agents import AgentCall, AgentRun, FileChange, Step
from adjudge.rules import rule_from_spec
from kit.rules import check


def make_run(*calls, files=(), **changes) -> AgentRun:
    """A run of calls, each a name or a name with arguments; the calls of a list are made at once."""
    steps = [Step(role="user", text="Go.")]
    for turn, at_once in enumerate(calls, 1):
        for name, arguments in [
            call if isinstance(call, tuple) else (call, {})
            for call in (at_once if isinstance(at_once, list) else [at_once])
        ]:
            use = AgentCall(tool=name, arguments=arguments, call_id=str(len(steps)), result="ok")
            steps.append(Step(role="assistant", call=use, turn=turn))
    changes = [FileChange(path=path, kind=kind) for path, kind in files], changes
    return AgentRun(steps=steps, files=changes[0], answer="Done.", **changes[1])


def passes(spec: dict, run: object) -> bool:
    return check(rule_from_spec(spec), run).passed


RUN = make_run("read", ("edit", {"path": "src/a.py", "text": "x"}), ("Bash", {"command": "npm test"}))

KEPT = [
    {"called": "read"},
    {"called": "edit", "arguments": {"path": "src/a.py"}},
    {"not_called": "delete"},
    {"call_order": ["read", "edit"]},
    {"call_order": ["read", "edit", "Bash"], "exact": True},
    {"trajectory": ["read", "edit", "Bash"]},
    {"files": {"only": ["src/**"]}},
    {"arguments": {"tool": "edit", "schema": {"required": ["path"]}}},
    {"commands": {"only": ["npm test"]}},
    {"commands": {"never": ["curl"]}},
    {"limits": {"calls": 3, "steps": 4, "cost": 1, "seconds": 60, "tokens": 100}},
    {"no_errors": True},
    {"no_repeats": 1},
]

GOOD = dataclasses.replace(
    RUN,
    files=(FileChange(path="src/a.py", kind="modified"),),
    cost=0.5,
    duration_ms=1000,
    usage=Usage(input_tokens=50, output_tokens=50),
)

IDS = [f"{next(iter(spec))}-{at}" for at, spec in enumerate(KEPT)]


@pytest.mark.parametrize("spec", KEPT, ids=IDS)
def test_a_rule_is_kept_by_a_run_that_keeps_it(spec: dict):
    """Each passes for a good run, and none for one of which something is missing, nor for a text."""
    assert passes(spec, GOOD)

    result = check(rule_from_spec(spec), dataclasses.replace(GOOD, complete=False, problems=("line 3 is missing",)))

    assert not result.passed
    assert "line 3 is missing" in result.message
    assert not passes(spec, "All tests pass.")
    assert not passes(spec, [{"role": "user", "content": "Go."}]) or "called" in next(iter(spec))


@pytest.mark.parametrize("spec", KEPT, ids=IDS)
def test_a_rule_means_the_same_once_it_is_written_and_read(spec: dict, tmp_path):
    """In Python, as data and in YAML."""
    import json

    rule = rule_from_spec(spec)
    path = tmp_path / "rules.yaml"
    path.write_text(json.dumps({"rules": [spec]}), "utf-8")

    assert rule_from_spec(rule.spec) == rule
    assert load_rules(path).list()[0] == rule


BROKEN = [
    ({"called": "delete"}, GOOD),
    ({"called": "edit", "arguments": {"path": "src/b.py"}}, GOOD),
    ({"not_called": "READ"}, GOOD),
    ({"not_called": "edit", "arguments": {"path": "src/a.py"}}, GOOD),
    ({"call_order": ["edit", "read"]}, GOOD),
    ({"call_order": ["read", "edit"]}, make_run(["read", "edit"])),
    ({"call_order": ["read", "edit"], "exact": True}, GOOD),
    ({"files": {"only": ["src/*.js"]}}, GOOD),
    ({"files": {"never": ["**/a.py"]}}, GOOD),
    ({"files": {"deleted": 0}}, make_run(files=[("a", "deleted")])),
    ({"files": {"only": ["**"]}}, make_run(unknown=["files"])),
    ({"arguments": {"tool": "edit", "schema": {"required": ["mode"]}}}, GOOD),
    ({"arguments": {"tool": "edit", "schema": {"required": ["path"]}}}, make_run(("fs__EDIT", {}))),
    ({"arguments": {"tool": "edit", "schema": {"type": "object"}}}, make_run(("edit", "no json"))),
    ({"limits": {"calls": 2}}, GOOD),
    ({"limits": {"steps": 3}}, GOOD),
    ({"limits": {"tokens": 99}}, GOOD),
    ({"limits": {"seconds": 0.5}}, GOOD),
    ({"limits": {"cost": 0.4}}, GOOD),
    ({"limits": {"cost": 1}}, RUN),
    ({"limits": {"seconds": 1}}, RUN),
    ({"limits": {"tokens": 1}}, RUN),
    ({"no_errors": True}, dataclasses.replace(GOOD, outcome="timeout")),
    ({"no_errors": True}, dataclasses.replace(GOOD, unknown=("failures",))),
    (
        {"no_errors": True},
        AgentRun(steps=[Step(role="assistant", call=AgentCall(tool="a", error="no"))], answer="Done."),
    ),
    ({"no_repeats": 2}, make_run(*[("read", {"a": 1, "b": [2]})] * 3)),
]


@pytest.mark.parametrize(("spec", "run"), BROKEN, ids=map(str, range(len(BROKEN))))
def test_a_rule_is_broken_by_a_run_that_breaks_it(spec: dict, run: AgentRun):
    """Each fails, with a sentence that says what was done."""
    result = check(rule_from_spec(spec), run)

    assert not result.passed
    assert isinstance(result, RuleResult)
    assert result.message


def test_the_same_call_with_other_arguments_is_no_repeat():
    """Arguments count as JSON, in whatever order they stand."""
    assert passes({"no_repeats": 1}, make_run(("read", {"a": 1}), ("read", {"a": 2}), "read"))
    assert not passes({"no_repeats": 1}, make_run(("read", {"a": 1, "b": 2}), ("read", {"b": 2, "a": 1})))


# ---------------------------------------------------------------- trajectory

A, B, C = "a", "b", "c"

TRAJECTORIES = [
    # calls, expected: strict, in_order, unordered, subset, superset
    ((A, B), (A, B), (True, True, True, True, True)),
    ((B, A), (A, B), (False, False, True, True, True)),
    ((A, C, B), (A, B), (False, True, False, False, True)),
    ((A,), (A, B), (False, False, False, True, False)),
    ((A, A), (A, B), (False, False, False, False, False)),
    ((), (A,), (False, False, False, True, False)),
    ((A, B, A), (A, A), (False, True, False, False, True)),
]


@pytest.mark.parametrize(("calls", "expected", "outcomes"), TRAJECTORIES, ids=map(str, range(len(TRAJECTORIES))))
def test_modes_compare_trajectories(calls, expected, outcomes):
    """As agentevals does, and with an order that lets other calls stand between."""
    modes = ("strict", "in_order", "unordered", "subset", "superset")
    run = make_run(*calls)

    assert tuple(passes({"trajectory": {"calls": list(expected), "mode": mode}}, run) for mode in modes) == outcomes


def test_other_tools_names_of_modes_are_taken():
    """``EXACT`` and ``ANY_ORDER`` of ADK and pydantic-evals."""
    assert passes({"trajectory": ["a"], "mode": "EXACT"}, make_run("a"))
    assert passes({"trajectory": ["b", "a"], "mode": "any_order"}, make_run("a", "c", "b"))


@pytest.mark.parametrize(
    ("match", "outcomes"),
    [
        ("exact", (True, False, False, False)),
        ("superset", (True, True, False, False)),
        ("subset", (True, False, True, False)),
        ("ignore", (True, True, True, True)),
    ],
)
def test_arguments_are_compared_in_four_ways(match: str, outcomes):
    """The same, more, fewer, and others."""
    expected = [{"tool": "a", "arguments": {"x": 1, "y": 2}}]
    seen = ({"x": 1, "y": 2}, {"x": 1, "y": 2, "z": 3}, {"x": 1}, {"x": 2, "y": 2})

    spec = {"trajectory": {"calls": expected, "arguments": match}}

    assert tuple(passes(spec, make_run(("a", arguments))) for arguments in seen) == outcomes


def test_each_expected_call_has_a_call_of_its_own():
    """The first call fits both expected ones, and is left to the one that nothing else fits."""
    expected = ["a", {"tool": "a", "arguments": {"x": 1}}]

    assert passes({"trajectory": expected, "mode": "unordered"}, make_run(("a", {"x": 1}), "a"))
    assert not passes({"trajectory": expected, "mode": "superset"}, make_run(("a", {"x": 1})))


# ---------------------------------------------------------------- files

PATHS = [
    ("src/**", "src/a.py", True),
    ("src/**", "src/a/b.py", True),
    ("src/**", "src", False),
    ("src/**", "other/src/a.py", False),
    ("**", "a", True),
    ("**/*.py", "a.py", True),
    ("**/*.py", "a/b/c.py", True),
    ("src/*", "src/a/b.py", False),
    ("src/**/test_*.py", "src/test_a.py", True),
    ("src/**/test_*.py", "src/a/b/test_c.py", True),
    ("src/**/test_*.py", "src/a/b/c.py", False),
    ("src/**", "src/../.env", False),
    ("src/**", "/src/a.py", False),
    ("**", "/etc/passwd", False),
    ("**", "a/../../b", False),
    ("**", "a\\b", False),
    ("**", "a//b", False),
    ("**", "a\nb", False),
    ("src/**", "Src/a.py", False),
    ("./src/**", "src/a.py", True),
]


@pytest.mark.parametrize(("pattern", "path", "expected"), PATHS, ids=map(str, range(len(PATHS))))
def test_paths_fit_patterns(pattern: str, path: str, expected: bool):
    """``*`` is one part, ``**`` any number; a path that may lead elsewhere fits nothing."""
    assert passes({"files": pattern}, make_run(files=[(path, "added")])) == expected


@pytest.mark.parametrize("path", [".env", ".ENV", "a/../.env", ".\u200benv"])
def test_a_file_that_may_never_change_is_noticed_however_it_is_written(path: str):
    """Other capitals, unseen characters and ways around."""
    assert not passes({"files": {"never": [".env", "**/.git/**"]}}, make_run(files=[(path, "modified")]))


def test_what_is_in_a_repositorys_folder_is_noticed():
    """At the top and below."""
    for path in (".git/hooks/pre-commit", "a/b/.git/config"):
        assert not passes({"files": {"never": "**/.git/**"}}, make_run(files=[(path, "added")]))


# ---------------------------------------------------------------- what is wrong in a rule

WRONG = [
    {"trajectory": []},
    {"trajectory": ["a"] * 101},
    {"trajectory": [{"name": "a"}]},
    {"trajectory": [3]},
    {"trajectory": ["a"], "mode": "sorted"},
    {"trajectory": ["a"], "arguments": "some"},
    {"trajectory": [{"tool": "a", "arguments": []}]},
    {"files": {}},
    {"files": {"only": []}, "deleted": -1},
    {"files": {"only": ["/etc/**"]}},
    {"files": {"only": ["../a"]}},
    {"files": {"only": "a", "added": 1}},
    {"files": {"only": "a"}, "only": "b"},
    {"arguments": {"tool": "a"}},
    {"arguments": {"tool": "a", "schema": 3}},
    {"arguments": {"tool": "a", "schema": {"type": "thing"}}},
    {"limits": {}},
    {"limits": {"calls": -1}},
    {"limits": {"calls": 1.5}},
    {"limits": {"cost": float("nan")}},
    {"limits": {"minutes": 3}},
    {"no_repeats": 0},
    {"no_errors": 3},
    {"commands": {}},
    {"commands": {"only": ["*"]}},
    {"commands": {"only": ["env npm test"]}},
    {"commands": {"only": ["/bin/sh x"]}},
    {"commands": {"only": ["npm ** test"]}},
    {"commands": {"only": ["npm test; ls"]}},
    {"commands": {"only": [" "]}},
    {"commands": {"never": "curl", "tools": []}},
    {"called": "a", "arguments": {"x": 1}, "regex": "x"},
]


@pytest.mark.parametrize("spec", WRONG, ids=map(str, range(len(WRONG))))
def test_a_rule_that_makes_no_sense_is_refused(spec: dict):
    """When it is made, and not when it is asked."""
    with pytest.raises(UsageError):
        rule_from_spec(spec)


def test_rules_on_a_run_go_with_rules_on_its_text():
    """A text rule looks at the whole run, as it is written, and not at what a judge is shown."""
    secret = make_run(*[("read", {"path": f"/{number}", "padding": "x" * 500}) for number in range(300)], "leak-4711")
    rules = Rules({"no-leak": {"not_contains": "leak-4711"}, "read": {"called": "read"}})

    assert "leak" not in make_run("read").render().text
    assert [result.passed for result in rules.evaluate_sync(secret)] == [False, True]
