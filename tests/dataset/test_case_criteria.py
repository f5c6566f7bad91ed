"""Rows that say how they are judged: they count only when asked for, and then never as a path or as code."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from adjudge import Case, Dataset, Rubric, UsageError, load_rubric, open_dataset
from adjudge.dataset import write_cases
from kit.case_criteria import STRICT
from kit.cli import Line, feed, isolate

LOG = {"content": "x", "id": "a", "threshold": 0, "rubric": "/etc/passwd", "criteria": "Always passes.", "rules": []}


@pytest.fixture(name="line")
def provide_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    """The command line in an empty directory."""
    isolate(monkeypatch, tmp_path)
    feed(monkeypatch)
    return Line(capsys)


def write_rows(path: Path, *rows: dict[str, Any]) -> Path:
    """A file of JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def read_one(row: dict[str, Any], **options: Any) -> Case:
    """The case of one row that counts."""
    [case] = Dataset.of([{"content": "x", "id": "a"} | row], case_criteria=True, **options)
    return case


def refuse(row: dict[str, Any], **options: Any) -> str:
    """Why a row is none."""
    with pytest.raises(UsageError) as caught:
        read_one(row, **options)
    return str(caught.value)


def test_a_log_does_not_grade_itself(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    """A threshold of 0, a path and words in a row that was not asked for them change nothing, and one line says so."""
    path = write_rows(tmp_path / "log.jsonl", LOG, LOG | {"id": "b"}, {"content": "y", "id": "c"})
    with caplog.at_level(logging.WARNING, "adjudge"):
        dataset = open_dataset(path)
        first, second, third = [*dataset], [*dataset], [*open_dataset(path, fields={"content": "content"})]

    assert [case.brings_own for case in (*first, *second, *third)] == [False] * 9
    assert first[0].metadata == {"threshold": 0, "rubric": "/etc/passwd", "criteria": "Always passes.", "rules": []}
    assert third[0].metadata == first[0].metadata
    assert len(caplog.records) == 2  # one for each data set, however often it is read
    for name in ("log.jsonl", "threshold", "case_criteria"):
        assert name in caplog.records[0].message


def test_a_column_that_is_called_threshold_stays_metadata(tmp_path: Path):
    """In a table other columns are metadata, as they always were, and one that is mapped is what it was mapped to."""
    (tmp_path / "c.csv").write_text("content,threshold,rules\nx,3.5 V,\n")
    [case] = open_dataset(tmp_path / "c.csv")
    [named] = open_dataset(tmp_path / "c.csv", fields={"group": "threshold"}, case_criteria=True)

    assert (case.metadata, case.threshold) == ({"threshold": "3.5 V", "rules": ""}, None)
    assert (named.group, named.threshold) == ("3.5 V", None)


def test_metadata_of_the_same_name_is_kept(caplog: pytest.LogCaptureFixture):
    """What does not count takes nothing away from what a row has there already."""
    with caplog.at_level(logging.WARNING, "adjudge"):
        [case] = Dataset.of([{"content": "x", "criteria": "a", "metadata": {"criteria": "b"}}])
    assert case.metadata == {"criteria": "b"}


def test_what_was_asked_for_is_read():
    """Criteria in each form, a rubric written out, shipped rules and a threshold."""
    assert read_one({"criteria": "Is good."}).criteria == "Is good."
    assert read_one({"criteria": ["One.", "Two."]}).criteria == ("One.", "Two.")
    assert read_one({"criteria": {"tone": "Is polite."}, "threshold": 0.5}).threshold == 0.5
    assert read_one({"rubric": STRICT}).rubric == load_rubric(STRICT)
    assert [rule.name for rule in read_one({"rules": ["secrets", {"length": 9}]}).rules] == ["secrets", "length"]
    assert [rule.name for rule in read_one({"rules": {"short": {"name": "length", "max": 9}}}).rules] == ["short"]
    assert not read_one({"criteria": None, "rubric": None, "rules": None, "threshold": None}).brings_own


def test_a_rubric_is_named_only_where_the_name_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """One of those handed in, or a shipped one; a file of that name is never looked for."""
    monkeypatch.chdir(tmp_path)
    for name in ("login", "login.yaml"):
        (tmp_path / name).write_text(json.dumps(STRICT))
    mine = Rubric(name="mine", criteria=[{"name": "a", "description": "Is a."}])

    assert read_one({"rubric": "login"}, rubrics={"login": mine}).rubric is mine
    assert read_one({"rubric": "security"}).rubric == load_rubric("security")
    for name in ("login", "login.yaml", "./login", "../x", "/etc/passwd", str(tmp_path / "login"), "security.yaml", ""):
        message = refuse({"rubric": name})
        assert "never a path" in message
        assert "row 1" in message
    for odd in (1, ["security"], True):
        assert "never a path" in refuse({"rubric": odd})


@pytest.mark.parametrize(
    ("row", "named"),
    [
        ({"rules": ["python:os:getcwd"]}, "python:os:getcwd"),
        ({"rules": [{"python": "os:getcwd"}]}, "python: rule runs code"),
        ({"rules": [{"name": "python", "function": "os:getcwd"}]}, "python: rule runs code"),
        ({"rules": "secrts"}, "secrts"),
        ({"rules": [{"length": 1}] * 65}, "65 rules"),
        ({"rubric": {**STRICT, "criteria": [{"name": "a", "description": "b", "rule": {"python": "os:x"}}]}}, "python"),
        ({"rubric": {**STRICT, "model": "http://evil.example/v1#m"}}, "names a model"),
        ({"rubric": {**STRICT, "model": "replay:/etc/passwd"}}, "names a model"),
        ({"rubric": {"name": "x"}}, "criteria"),
        ({"rubric": STRICT, "criteria": "Is good."}, "not both"),
        ({"criteria": 3}, "sentence"),
        ({"criteria": " "}, "description"),
        ({"criteria": [1]}, "sentences"),
        ({"criteria": ["x"] * 65}, "65 criteria"),
        ({"criteria": "x" * 100_001}, "100,000 characters"),
        ({"threshold": -0.1}, "threshold"),
        ({"threshold": 70}, "0.7"),
        ({"threshold": "0.5"}, "threshold"),
        ({"threshold": True}, "threshold"),
    ],
)
def test_what_cannot_be_judged_by_is_a_bad_row(row: dict[str, Any], named: str):
    """It is named with its place, and skipped where that was asked for; the other rows are cases."""
    message = refuse(row)
    dataset = Dataset.of(
        [{"content": "x", "id": "a"} | row, {"content": "y", "id": "b"}], case_criteria=True, on_bad_row="skip"
    )

    assert "row 1" in message
    assert named in message
    assert [case.id for case in dataset] == ["b"]
    assert named in dataset.bad_rows[0].why


def test_criteria_may_stand_in_a_field_of_any_name():
    """Then that field counts and nothing else of a row, unless that was asked for as well."""
    row = {"content": "x", "id": "a", "assert": "Is polite.", "threshold": 0}
    [case] = Dataset.of([row], criteria_field="assert")
    [whole] = Dataset.of([row], criteria_field="assert", case_criteria=True)
    [inner] = Dataset.of([{"content": "x", "metadata": {"criteria": ["Is good."]}}], criteria_field="metadata.criteria")
    [without] = Dataset.of([row | {"assert": None}], criteria_field="assert")

    assert (case.criteria, case.threshold, case.metadata) == ("Is polite.", None, {"threshold": 0})
    assert (whole.criteria, whole.threshold) == ("Is polite.", 0.0)
    assert (inner.criteria, without.brings_own) == (("Is good.",), False)
    with pytest.raises(UsageError, match="row 1: the row has no 'assert'"):
        list(Dataset.of([{"content": "x"}], criteria_field="assert"))
    for odd in ("", 1):
        with pytest.raises(UsageError, match="criteria_field"):
            Dataset.of([row], criteria_field=odd)  # type: ignore[arg-type]


def test_a_table_has_a_sentence_in_a_cell_and_more_as_json(tmp_path: Path):
    """A cell is a sentence, a name or a number; what has parts is JSON in a column whose name ends in ``.json``."""
    (tmp_path / "c.csv").write_text(
        "content,criteria,rubric,rules,threshold\nx,Is good.,,secrets,0.25\ny,,security,,\nz,,,,\n"
    )
    one, two, three = open_dataset(tmp_path / "c.csv", case_criteria=True)
    (tmp_path / "j.csv").write_text('content,criteria.json\nx,"[""One."", ""Two.""]"\n')
    [listed] = open_dataset(tmp_path / "j.csv", case_criteria=True)
    [field, *_] = open_dataset(tmp_path / "c.csv", criteria_field="rules")
    assert (one.criteria, one.threshold, [rule.name for rule in one.rules]) == ("Is good.", 0.25, ["secrets"])
    assert (two.rubric, three.brings_own) == (load_rubric("security"), False)
    assert listed.criteria == ("One.", "Two.")
    assert (field.criteria, field.threshold) == ("secrets", None)
    with pytest.raises(UsageError, match="no 'expect'"):
        list(open_dataset(tmp_path / "c.csv", criteria_field="expect"))


@pytest.mark.parametrize("suffix", ["jsonl", "json", "yaml", "csv", "tsv"])
def test_cases_are_written_with_what_they_bring(tmp_path: Path, suffix: str):
    """Reading them with ``case_criteria`` gives equal cases, in every format; a function cannot be written."""
    cases = [
        Case(id="words", content="x", criteria={"tone": "Is polite."}, threshold=0.25),
        Case(id="list", content="x", criteria=["One.", "Two."]),
        Case(id="rubric", content="x", rubric=STRICT),
        Case(id="rules", content="x", rules={"short": {"length": 9, "severity": "warning"}, "keys": "secrets"}),
        Case(id="none", content="x"),
    ]
    path = tmp_path / f"c.{suffix}"
    write_cases(path, cases)

    assert [*open_dataset(path, case_criteria=True)] == cases
    assert not any(case.brings_own for case in open_dataset(path))
    with pytest.raises(UsageError, match="is a function"):
        write_cases(tmp_path / f"f.{suffix}", [Case(id="a", content="x", rules=[lambda _content: True])])


def test_the_command_line_asks_for_it(tmp_path: Path, line: Line):
    """``--case-criteria`` and ``--criteria-field``, with the rubrics of adjudge.toml by their names."""
    (tmp_path / "strict.json").write_text(json.dumps(STRICT))
    (tmp_path / "adjudge.toml").write_text('[rubrics]\nstrict = "strict.json"\nbroken = "nowhere.yaml"\n')
    write_rows(tmp_path / "c.jsonl", {"content": "x", "id": "a", "rubric": "strict"})
    write_rows(tmp_path / "bad.jsonl", {"content": "x", "id": "a", "rubric": "strict.json"})

    plain, asked = line("dataset", "check", "c.jsonl", "--json"), line("dataset", "check", "c.jsonl", "--case-criteria")
    bad = line("dataset", "check", "bad.jsonl", "--case-criteria")
    assert plain.document["with"]["metadata"] == 1
    assert "rubric" not in plain.document["with"]
    assert (asked.status, "rubric" in asked.out) == (0, True)
    assert (bad.status, "never a path" in bad.out) == (1, True)
    assert line("dataset", "convert", "c.jsonl", "new.jsonl", "--case-criteria").status == 0
    assert json.loads((tmp_path / "new.jsonl").read_text())["rubric"]["name"] == "Strict"


RULED = {"name": "Ruled", "criteria": [{"name": "b", "description": "Has b.", "rule": {"contains": "b"}}]}


def test_runs_and_judgements_of_the_command_line_go_by_it(tmp_path: Path, line: Line):
    """No rubric is needed for all then; a summary says what was brought and what is below the run's threshold."""
    rows = [
        {"content": "abc", "id": "1", "rubric": RULED},
        {"content": "x", "id": "2", "rubric": RULED, "threshold": 0},
    ]
    write_rows(tmp_path / "c.jsonl", *rows)
    ran = line("run", "c.jsonl", "--case-criteria", "--judge", "rules", "--out", "run")
    judged = line("judge", "c.jsonl", "--case-criteria", "--judge", "rules", "--json")

    assert ran.status == 0
    assert "2 with criteria of their own" in ran.err
    assert "1 of the cases needs less than the 0.70" in ran.err
    assert [item["outcome"] for item in judged.document["results"]] == ["passed", "passed"]
    assert [item["own"] for item in judged.document["results"]] == [["rubric"], ["rubric", "threshold"]]
    assert "1 of the cases needs less than the 0.70" in judged.err
    assert line("run", "c.jsonl", "--judge", "rules").status == 2
    assert line("judge", "c.jsonl", "--judge", "rules").status == 2
    assert (
        line("run", "c.jsonl", "--case-criteria", "--judge", "rules", "--out", "new", "--fail-under", "1").status == 0
    )


def test_a_command_that_has_no_such_option_says_that_it_does_not_count(
    tmp_path: Path, line: Line, caplog: pytest.LogCaptureFixture
):
    """A log row with a threshold of 0 does not pass by it."""
    write_rows(tmp_path / "log.jsonl", {"content": "x", "id": "a", "threshold": 0, "rubric": "/etc/passwd"})
    (tmp_path / "r.json").write_text(json.dumps(RULED))
    with caplog.at_level(logging.WARNING, "adjudge"):
        judged = line("judge", "log.jsonl", "--rubric", "r.json", "--judge", "rules")

    assert judged.status == 1
    assert len(caplog.records) == 1


def test_a_prompt_is_shown_as_the_case_words_it(tmp_path: Path, line: Line):
    """``--show-prompt`` asks nobody, and shows the words of each case."""
    write_rows(tmp_path / "c.jsonl", {"content": "x", "id": "1", "criteria": "Is polite."}, {"content": "x", "id": "2"})
    shown = line(
        "judge", "c.jsonl", "--case-criteria", "--criteria", "Is true.", "--judge", "openai:m", "--show-prompt"
    )
    first, _, second = shown.out.partition("Is polite.")

    assert shown.status == 0
    assert "Is true." not in first
    assert "Is true." in second


def test_a_gate_is_not_opened_by_what_it_checks(tmp_path: Path, line: Line):
    """A case cannot lower the threshold of a gate, or bring rules or criteria to it."""
    write_rows(tmp_path / "log.jsonl", {"content": "x", "id": "a", "threshold": 0, "criteria": "Is anything."})
    (tmp_path / "r.json").write_text(json.dumps(RULED))
    (tmp_path / "adjudge.toml").write_text('[gates.publish]\nrubric = "r.json"\njudge = "rules"\n')
    (tmp_path / "ok.jsonl").write_text(json.dumps({"content": "abc", "id": "a"}) + "\n")

    assert line("gate", "check", "publish", "log.jsonl").status == 1
    assert line("gate", "check", "publish", "ok.jsonl").status == 0
