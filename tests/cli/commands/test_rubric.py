"""``adjudge rubric``: what there is, what it says, whether it is valid, and the schema for editors."""

from __future__ import annotations

from pathlib import Path

import jsonschema_rs
import pytest

from adjudge import load_rubric
from kit import cli
from kit.cli import ESCAPES, HIDDEN, Line
from kit.judges import names
from kit.rubrics import SHIPPED

LOGIN = """
name: Login
passing_threshold: 0.8
criteria:
  - {name: hashes-passwords, description: "Hashes passwords with bcrypt or argon2.", weight: 3, threshold: 0.9}
  - {name: explains-errors, description: "Tells the user what went wrong, never why.", weight: 1}
  - {name: no-secrets, description: "Holds no key.", rule: {regex: sk-, absent: true}, weight: 0, threshold: 1}
"""


@pytest.fixture
def line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    cli.isolate(monkeypatch, tmp_path)
    Path("login.yaml").write_text(LOGIN, encoding="utf-8")
    return Line(capsys)


def test_list_names_what_there_is(line: Line):
    """The shipped rubrics and those of adjudge.toml, a line for each, with where it is from."""
    Path("adjudge.toml").write_text('[rubrics]\nlogin = "login.yaml"\n', encoding="utf-8")
    ran = line("rubric", "list")
    head, *rows = [text.split() for text in ran.out.splitlines()]

    assert ran.status == 0
    assert head[0] == "name"
    assert [row[0] for row in rows] == list(line("rubric", "list", "--json").document["rubrics"])
    assert sorted(row[0] for row in rows[:-1]) == list(SHIPPED)
    assert rows[-1] == ["login", "Login", "3", "0.8", "adjudge.toml"]


def test_list_as_json_holds_whole_rubrics(line: Line):
    """Each can be read back by the library."""
    document = line("rubric", "list", "--json").document

    assert document["schema"] == "adjudge/rubrics/1"
    assert {name: load_rubric(data) for name, data in document["rubrics"].items()} == {
        name: load_rubric(name) for name in SHIPPED
    }


def test_a_rubric_that_cannot_be_read_hides_no_other(line: Line):
    """The others are listed, the broken one is a sentence, and the status is 2."""
    Path("adjudge.toml").write_text('[rubrics]\ngone = "gone.yaml"\nlogin = "login.yaml"\n', encoding="utf-8")
    ran = line("rubric", "list")

    assert ran.status == 2
    assert "login.yaml" not in ran.err
    assert names(ran.err, "rubric 'gone' of adjudge.toml", "gone.yaml does not exist")
    assert ran.out.splitlines()[-1].startswith("login ")
    assert line("rubric", "list", "--json").sentence.startswith("rubric 'gone' of adjudge.toml: ")


def test_show_says_what_counts_how_much(line: Line):
    """Criteria with their share of the score, what gates, and what a rule decides; in a pipe a line for each."""
    ran = line("rubric", "show", "login.yaml")
    title, _, *rows = ran.out.splitlines()

    assert title == "Login, passes at 0.8"
    assert [row.split()[:3] for row in rows] == [
        ["hashes-passwords", "75.0%", "0.9"],
        ["explains-errors", "25.0%", "-"],
        ["no-secrets", "0.0%", "1"],
    ]
    assert rows[2].endswith("Holds no key. [rule: regex]")


def test_show_as_json_is_the_rubric(line: Line):
    """The document is a rubric file again."""
    assert load_rubric(line("rubric", "show", "security", "--json").document) == load_rubric("security")


def test_check_is_silent_about_a_good_rubric(line: Line):
    """Valid and nothing to advise: one line and 0."""
    ran = line("rubric", "check", "security", "--strict")

    assert (ran.status, ran.out, ran.err) == (0, "security: valid\n", "")


def test_check_advises_without_refusing(line: Line):
    """Advice is on standard error, says where and what, and is a failure only under ``--strict``."""
    Path("poor.yaml").write_text("name: x\ncriteria:\n  - {name: Quality, description: Good.}\n", encoding="utf-8")
    ran = line("rubric", "check", "poor.yaml")

    assert ran.status == 0
    assert ran.out == "poor.yaml: valid, 3 pieces of advice\n"
    assert len(ran.err.splitlines()) == 3
    assert "poor.yaml: criteria[0].name: " in ran.err
    assert line("rubric", "check", "poor.yaml", "--strict").status == 1


def test_check_goes_on_after_one_that_is_not_valid(line: Line):
    """Each rubric has a line or a sentence, and one that is not valid makes it 2, whatever --strict says."""
    Path("broken.yaml").write_text("name: x\n", encoding="utf-8")
    ran = line("rubric", "check", "broken.yaml", "login.yaml", "--strict")

    assert ran.status == 2
    assert "login.yaml: valid" in ran.out
    assert ran.err.startswith("adjudge: broken.yaml, line 1: a rubric needs 'criteria', and there is none\n")


def test_schema_is_a_schema_that_shipped_rubrics_fit(line: Line):
    """It is one JSON document, valid as a schema, for editors."""
    schema = line("rubric", "schema").document
    check = jsonschema_rs.validator_for(schema)

    assert all(check.is_valid(load_rubric(name).to_dict()) for name in SHIPPED)
    assert not check.is_valid({"name": "x"})


def test_a_rubric_s_words_cannot_draw(line: Line):
    """What a rubric file says reaches the terminal as text: no escape sequence, no markup."""
    words = f"[red]{ESCAPES}".replace("\x00", "").replace("\x1b", "\\e").replace("\x07", "\\a").replace("\x9b", "\\x9b")
    text = f'name: "{words}"\ncriteria:\n  - {{name: a, description: "{words}"}}\n'
    Path("loud.yaml").write_text(text, encoding="utf-8")
    for ran in (line("rubric", "show", "loud.yaml"), line("rubric", "check", "loud.yaml")):
        assert HIDDEN.search(ran.out + ran.err) is None
