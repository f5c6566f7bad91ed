"""``adjudge run`` over the suites of other tools: judged by their own assertions, with what is not applied said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adjudge import open_run
from kit import cli
from kit.cli import Line

CONTAINS = {"type": "contains", "value": "Paris"}

CODE = {"type": "javascript", "value": "require('fs').writeFileSync('ran', 'x')"}

MEANT = {"type": "llm-rubric", "value": "Is right."}

ITEM = {"run_id": "r", "data_source_idx": 0, "item": {"gold": "Paris"}, "grades": {}}

CHECK = {"type": "string_check", "name": "match", "operation": "eq"}
CHECK |= {"input": "{{sample.output_text}}", "reference": "{{item.gold}}"}


@pytest.fixture(autouse=True)
def line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    directory = tmp_path / "work"
    directory.mkdir()
    cli.isolate(monkeypatch, directory)
    return Line(capsys)


def write(*tests: dict[str, Any], path: str = "suite.json") -> str:
    Path(path).write_text(json.dumps({"tests": list(tests)}), encoding="utf-8")
    return path


def write_asked() -> str:
    """Write a judge in code that passes everything, and says on standard error that it was asked."""
    code = "import sys\n\n\ndef say(content):\n    print('asked', file=sys.stderr)\n    return True\n"
    Path("asked.py").write_text(code, encoding="utf-8")
    return "python:asked:say"


def judge(line: Line, *more: str, kind: str = "promptfoo", path: str = "suite.json") -> Any:
    return line("run", path, "--from", kind, "--judge", "rules", "--out", "R", *more)


def test_a_suite_is_judged_by_its_own_assertions(line: Line):
    """Without a rubric on the command line, and each test by its own."""
    write(
        {"providerOutput": "Paris.", "assert": [CONTAINS]},
        {"providerOutput": "Rome.", "assert": [CONTAINS]},
        {"providerOutput": "Rome.", "assert": [{"type": "not-contains", "value": "Paris"}]},
    )
    ran = judge(line)

    assert ran.status == 0
    assert [item.result.passed for item in open_run("R").items()] == [True, False, True]
    assert judge(line, "--fail-under", "0.9", "--resume").status == 1


def test_what_is_not_applied_is_said_with_the_reason_and_not_run(line: Line):
    """On standard error, also where the output is JSON."""
    write(*[{"providerOutput": "Paris.", "assert": [CONTAINS, CODE]}] * 2)
    ran = judge(line, "--json")

    assert ran.err.count("assertion 'javascript' not applied: it runs code: 2") == 1
    assert json.loads(ran.out)
    assert not Path("ran").exists()


def test_what_is_not_applied_is_said_before_anybody_is_asked(line: Line):
    """So that it can be stopped before it costs something."""
    write({"providerOutput": "Paris.", "assert": [MEANT, CODE]})
    ran = line("run", "suite.json", "--from", "promptfoo", "--judge", write_asked(), "--out", "R")

    assert ran.status == 0
    assert ran.err.count("asked") == 1
    assert ran.err.index("assertion 'javascript' not applied") < ran.err.index("asked")


@pytest.mark.parametrize("first", [0, 1])
def test_a_test_that_only_code_could_judge_is_left_out_and_said_before_anybody_is_asked(line: Line, first: int):
    """The others are judged by their own assertions, wherever they stand, without a rubric on the command line."""
    tests = [
        {"providerOutput": "Rome.", "assert": [CODE]},
        {"providerOutput": "Paris.", "assert": [CONTAINS, MEANT]},
    ]
    write(tests[first], tests[1 - first])
    ran = line("run", "suite.json", "--from", "promptfoo", "--judge", write_asked(), "--out", "R")

    assert ran.status == 0
    assert [(item.case.content, item.result.outcome) for item in open_run("R").items()] == [("Paris.", "passed")]
    assert ran.err.count("asked") == 1
    assert ran.err.index("1 of 2 cases are not judged") < ran.err.index("asked")


@pytest.mark.parametrize("kind", ["promptfoo", "openai-evals"])
def test_a_suite_from_standard_input_is_refused_with_the_remedy(line: Line, kind: str):
    """What is not applied could be said at the end only, when everything was asked and paid."""
    ran = judge(line, kind=kind, path="-")

    assert ran.status == 2
    assert f"--from {kind} reads its suite twice" in ran.err
    assert "write it to a file and name that" in ran.err
    assert not Path("R").exists()


def test_a_test_whose_assertions_were_all_dropped_does_not_pass(line: Line):
    """It has no criteria, so the run refuses it, and says what was not applied."""
    write({"providerOutput": "Paris.", "assert": [CODE]})
    ran = judge(line)

    assert ran.status == 2
    assert "nothing says what good means" in ran.err
    assert "promptfoo eval -o results.json" in ran.err
    assert "assertion 'javascript' not applied" in ran.err


def test_it_can_be_judged_by_criteria_of_the_run(line: Line):
    """The others keep their own."""
    rubric = {
        "name": "R",
        "criteria": [{"name": "a", "description": "b", "rule": {"contains": "Rome"}, "threshold": 1}],
    }
    Path("rubric.json").write_text(json.dumps(rubric))
    write({"providerOutput": "Paris.", "assert": [CODE]}, {"providerOutput": "Paris.", "assert": [CONTAINS]})
    ran = judge(line, "--rubric", "./rubric.json")

    assert ran.status == 0
    assert [item.result.passed for item in open_run("R").items()] == [False, True]


def test_what_openai_evals_exported_is_judged_by_its_graders(line: Line):
    """The eval lies beside its items; without it, the run needs criteria."""
    rows = [
        ITEM | {"data_source_idx": n, "sample": {"outputs": [{"content": text}]}}
        for n, text in enumerate(["Paris", "Rome"])
    ]
    Path("items.jsonl").write_text("\n".join(map(json.dumps, rows)))
    ran = judge(line, kind="openai-evals", path="items.jsonl")
    assert ran.status == 2
    assert "nothing says what good means" in ran.err
    assert "beside the items as eval.json" in ran.err

    Path("eval.json").write_text(json.dumps({"testing_criteria": [CHECK, {"type": "python", "source": "x"}]}))
    ran = line("run", "items.jsonl", "--from", "openai-evals", "--judge", "rules", "--out", "R2")
    assert ran.status == 0
    assert "grader 'python' not applied: it runs code: 2" in ran.err
    assert [item.result.passed for item in open_run("R2").items()] == [True, False]


def test_a_suite_is_not_asked_for_criteria_of_rows(line: Line):
    """``--case-criteria`` is for rows of ours; a suite brings its own by being read as one."""
    write({"providerOutput": "Paris.", "assert": [CONTAINS]})
    assert judge(line, "--case-criteria").status == 2


def test_a_suite_can_leave_the_other_tool_s_format(line: Line):
    """Cases that bring their rubrics come to the same, once they are asked for."""
    write({"providerOutput": "Paris.", "assert": [CONTAINS]}, {"providerOutput": "Rome.", "assert": [CONTAINS]})
    assert line("dataset", "convert", "suite.json", "suite.jsonl", "--from", "promptfoo").status == 0
    ran = line("run", "suite.jsonl", "--case-criteria", "--judge", "rules", "--out", "R")

    assert ran.status == 0
    assert [item.result.passed for item in open_run("R").items()] == [True, False]
