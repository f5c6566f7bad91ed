"""``adjudge tools review`` and ``adjudge tools validate``: their files, output and exit status."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from adjudge.tools import CreationVerdict, load_candidate
from kit import cli
from kit.cli import HIDDEN, Line
from kit.judges import complaint, names
from kit.tools import INTEGER, candidate, run

JUDGE = "python:kit.tools:review_words"
FILE = """schema: adjudge/tool-candidate/1
name: add
description: Adds two numbers.
mode: sandbox
input_schema: {type: object}
output_schema: {type: object, required: [sum], properties: {sum: {type: integer}}}
source: |
  function run(input) { return {sum: input.a + input.b} }
tests:
  - {input: {a: 1, b: 2}, output: {sum: 3}, success: true, expected: {sum: 3}}
"""
SEED = """name: add
description: Adds two numbers.
implementationMode: sandbox
inputSchema: {type: object}
outputSchema: {type: object}
source: return 3
testResults:
  - {input: {}, output: {sum: 3}, expectedOutput: {sum: 3}, success: true}
"""


@pytest.fixture
def line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    cli.isolate(monkeypatch, tmp_path)
    cli.feed(monkeypatch, terminal=True)
    write("good.yaml", FILE)
    write("bad.yaml", FILE.replace("function run", "bad run"))
    write("odd.yaml", FILE.replace("function run", "odd run"))
    write("unsafe.yaml", FILE.replace("function run", "eval run"))
    write("failed.yaml", FILE.replace("success: true", "success: false"))
    write("broken.yaml", FILE.replace("mode: sandbox", "mode: bash"))
    return Line(capsys)


def write(name: str, text: str) -> Path:
    path = Path(name)
    path.write_text(text, encoding="utf-8")
    return path


# ---------------------------------------------------------------- review


@pytest.mark.parametrize(
    ("files", "status"),
    [
        (["good.yaml"], 0),
        (["bad.yaml"], 1),
        (["failed.yaml"], 1),
        (["odd.yaml"], 3),
        (["broken.yaml"], 2),
        (["missing.yaml"], 2),
        (["good.yaml", "odd.yaml"], 3),
        (["good.yaml", "odd.yaml", "bad.yaml"], 1),
        (["good.yaml", "odd.yaml", "bad.yaml", "broken.yaml"], 2),
    ],
)
def test_the_status_says_what_was_decided(line: Line, files: list[str], status: int):
    """0 approved, 1 rejected, 3 nobody could decide; unreadable beats rejected beats undecided."""
    assert line("tools", "review", *files, "--judge", JUDGE).status == status


def test_a_verdict_is_a_line(line: Line):
    """What, how sure, what does not pass, and why; of several, each behind its name."""
    assert line("tools", "review", "good.yaml", "--judge", JUDGE).out == "approved with confidence 0.90: It adds.\n"
    several = line("tools", "review", "failed.yaml", "odd.yaml", "--judge", JUDGE)

    assert names(several.out.splitlines()[0], "failed.yaml: rejected", "without asking", "test 1 failed")
    assert several.out.splitlines()[1].startswith("odd.yaml: undecided: rejected, since no review could be read")


def test_nothing_a_reviewer_writes_moves_the_cursor(line: Line):
    """Nor stands on a line of its own."""
    done = line("tools", "review", "bad.yaml", "--judge", JUDGE)

    assert done.out.count("\n") == 1
    assert not HIDDEN.search(done.out + done.err)
    assert ", not safety" in done.out


def test_a_verdict_says_what_the_reviewer_found(line: Line):
    """Behind the dimension that does not pass, cut short, on the verdict's line."""
    done = line("tools", "review", "unsafe.yaml", "--judge", JUDGE)

    assert names(done.out, "rejected", "0.90", "not safety (it calls eval)", "It adds.")
    assert done.out.count("\n") == 1


def test_files_that_cannot_be_read_need_no_judge(line: Line):
    """What is wrong with them is said, and not that nobody is here to judge."""
    assert "mode" in line("tools", "review", "broken.yaml").sentence
    assert "missing.yaml" in line("tools", "review", "missing.yaml").sentence


def test_json_is_the_verdict(line: Line):
    """One document, which reads back; of several, a list with the names."""
    one = line("tools", "review", "good.yaml", "--json", "--judge", JUDGE).document
    several = line("tools", "review", "good.yaml", "broken.yaml", "--json", "--judge", JUDGE).document

    assert one.pop("input") == "good.yaml"
    assert CreationVerdict.from_dict(one).approved
    assert several["schema"] == "adjudge/creation-verdicts/1"
    assert [item.get("approved") for item in several["verdicts"]] == [True, None]
    assert "mode" in several["verdicts"][1]["error"]


def test_several_judges_are_a_chain(line: Line):
    """Under the strategy that is named."""
    done = line("tools", "review", "good.yaml", "--json", "--judge", JUDGE, "--judge", JUDGE, "--strategy", "consensus")

    assert done.document["chain_result"]["strategy"] == "consensus"
    assert len(done.document["chain_result"]["results"]) == 2


def test_a_judge_without_a_key_is_wrong_usage(line: Line):
    """And not a rejected tool; without any judge it says how to name one."""
    assert "OPENAI_API_KEY" in line("tools", "review", "good.yaml", "--judge", "openai:gpt-6.1-terra").sentence
    assert "--judge" in line("tools", "review", "good.yaml").sentence


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("mode: sandbox", "mode: bash"), "wrong.yaml, line 4: mode … compose, sandbox … 'bash'"),
        (("mode: sandbox\n", ""), "a tool candidate needs 'mode'"),
        (("source:", "sauce:"), "wrong.yaml, line 7: sauce … 'sauce' … did you mean 'source'?"),
        (("success: true", "success: yes please"), "line 10: tests[0] … success … true or false"),
        (("success: true", "passed: true"), "line 10: tests[0].passed … no key 'passed'"),
        (("input: {a: 1, b: 2}, ", ""), "line 10: tests[0] … needs 'input'"),
        (("expected: {sum: 3}", "expected: 2026-01-01"), "line 10: tests[0].expected … date … not a JSON"),
        (("{type: object}\nout", "7\nout"), "line 5: input_schema … JSON Schema"),
        (("name: add", "name: ''"), "line 2: name: a tool needs a name"),
        (("name: add", "name: [add]"), "line 2: name: name must be a text"),
        (("/1", "/2"), "line 1: schema … 'adjudge/tool-candidate/1'"),
        (("mode: sandbox", "mode: sandbox\nimplementationMode: compose"), "mode … implementationMode … the same"),
        (("tests:", "tests: 3\nx:"), "no key 'x'"),
    ],
)
def test_an_error_in_a_file_says_where(line: Line, change: tuple[str, str], message: str):
    """File, line, what is there and what should be."""
    write("wrong.yaml", FILE.replace(*change))

    assert names(line("tools", "review", "wrong.yaml", "--judge", JUDGE).sentence, *message.split(" … "))


def test_the_seeds_names_mean_the_same(line: Line):
    """camelCase, in files and mappings; a mistake is shown at the name that was written."""
    write("seed.yaml", SEED)
    wrong = write("wrong.yaml", SEED.replace("sandbox", "bash"))

    assert line("tools", "review", "seed.yaml", "--judge", JUDGE).status == 0
    assert load_candidate("seed.yaml") == load_candidate(yaml.safe_load(SEED))
    assert "line 3: implementationMode: a tool: mode" in complaint(load_candidate, wrong)


@pytest.mark.parametrize("suffix", [".json", ".yaml", ""])
def test_what_is_written_is_read(line: Line, suffix: str):
    """``to_dict`` as a file; null is an output, and no output schema is none."""
    for made in (candidate(), candidate(output_schema=None, tests=(run(output=None, expected=None), run(output=1)))):
        path = write(f"made{suffix}", json.dumps(made.to_dict()))

        assert load_candidate(path) == made


def test_toml_is_read_too(line: Line):
    """Where there is no null."""
    text = 'name = "a"\ndescription = "b"\nmode = "sandbox"\nsource = "x"\n[input_schema]\ntype = "object"\n'
    path = write("made.toml", f"{text}[[tests]]\ninput = 1\noutput = 2\nsuccess = true\n")

    assert load_candidate(path).tests == (run(1, 2),)


# ---------------------------------------------------------------- validate


OUTPUTS: dict[str, Any] = {"good.json": {"sum": 3}, "bad.json": {"sum": "3", "\x1b[2J": 1}, "empty.json": {}}


@pytest.fixture
def outputs(line: Line) -> Line:
    write("schema.json", json.dumps({**INTEGER, "additionalProperties": False}))
    write("schema.yaml", "type: object\nproperties: {sum: {}, note: {}}\n")
    write("broken.json", "{]")
    write("nan.json", '{"sum": NaN}')
    write("good.yml", "sum: 3\n")
    write("date.yaml", "sum: 2026-01-01\n")
    for name, output in OUTPUTS.items():
        write(name, json.dumps(output))
    return line


@pytest.mark.parametrize(
    ("files", "status"),
    [
        (["good.json"], 0),
        (["good.yml"], 0),
        (["bad.json"], 1),
        (["empty.json"], 1),
        (["broken.json"], 1),
        (["nan.json"], 1),
        (["date.yaml"], 1),
        (["missing.json"], 2),
        (["good.json", "bad.json"], 1),
        (["good.json", "bad.json", "missing.json"], 2),
    ],
)
def test_the_status_says_what_is_valid(outputs: Line, files: list[str], status: int):
    """0 valid, 1 not, also where it is no JSON; 2 a file that cannot be read."""
    assert outputs("tools", "validate", "--schema", "schema.json", *files).status == status


def test_errors_are_lines(outputs: Line):
    """Each with its path; of several outputs behind the name, and none that moves the cursor."""
    assert outputs("tools", "validate", "--schema", "schema.json", "good.json").out == "valid\n"
    done = outputs("tools", "validate", "--schema", "schema.json", "bad.json", "empty.json")

    assert not HIDDEN.search(done.out)
    assert sorted(item.split(": ")[0] for item in done.out.splitlines()) == ["bad.json", "bad.json", "empty.json"]
    assert {item.split(": ")[1] for item in done.out.splitlines()} == {"the output", "sum"}
    assert "is not JSON" in outputs("tools", "validate", "--schema", "schema.json", "broken.json").out


def test_declared_properties_may_be_asked_for(outputs: Line):
    """With ``--strict-properties``; a schema may be YAML."""
    assert outputs("tools", "validate", "--schema", "schema.yaml", "good.json").status == 0
    strict = outputs("tools", "validate", "--schema", "schema.yaml", "good.json", "--strict-properties")

    assert strict.status == 1
    assert names(strict.out, "note: ", "declared", "not there")


def test_standard_input_is_an_output(outputs: Line, monkeypatch: pytest.MonkeyPatch):
    """Named with ``-``, or by naming nothing."""
    for arguments in (["-"], []):
        cli.feed(monkeypatch, b'{"sum": 3}')

        assert outputs("tools", "validate", "--schema", "schema.json", *arguments).status == 0


def test_json_is_the_verdict_on_an_output(outputs: Line):
    """One document; of several, a list with the names."""
    one = outputs("tools", "validate", "--schema", "schema.json", "empty.json", "--json").document
    several = outputs("tools", "validate", "--schema", "schema.json", "good.json", "missing.json", "--json").document

    assert (one["schema"], one["valid"], len(one["schema_errors"])) == ("adjudge/reuse-verdict/1", False, 1)
    assert [item.get("valid") for item in several["verdicts"]] == [True, None]


@pytest.mark.parametrize("schema", ['{"type": "objekt"}', "{]", "7", '{"$ref": "file:///etc/passwd"}', ""])
def test_a_schema_that_is_none_is_wrong_usage(outputs: Line, schema: str):
    """Whatever the output is."""
    write("wrong.json", schema)
    done = outputs("tools", "validate", "--schema", "wrong.json", "good.json")

    assert done.status == 2
    assert "wrong.json" in done.sentence


def test_a_schema_that_is_wrong_deep_down_says_where(outputs: Line):
    """A schema has many places, and what is wrong in it can be far from its beginning."""
    write("wrong.json", '{"properties": {"sum": {"anyOf": [{"type": "strng"}]}}}')

    message = outputs("tools", "validate", "--schema", "wrong.json", "good.json").sentence

    assert message.endswith("(at properties.sum.anyOf[0].type)")


def test_rows_are_no_output(outputs: Line):
    """A data set holds contents."""
    write("rows.jsonl", '{"content": 1}\n')

    assert "holds rows" in outputs("tools", "validate", "--schema", "schema.json", "rows.jsonl").sentence
