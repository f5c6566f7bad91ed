"""``adjudge rules``: what ships, and contents checked by rules alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from adjudge.rules import SHIPPED
from kit import cli
from kit.cli import ESCAPES, HIDDEN, Line
from kit.judges import names

RULES = """
rules:
  says-something: substance
  no-keys: secrets
  short: {length: 20, severity: warning}
"""

KEY = "ghp_" + "a1B2c3D4" * 5


@pytest.fixture
def line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    cli.isolate(monkeypatch, tmp_path)
    Path("rules.yaml").write_text(RULES, encoding="utf-8")
    Path("good.txt").write_text("All is well.", encoding="utf-8")
    Path("long.txt").write_text("All is well, and has been for a while.", encoding="utf-8")
    Path("leak.txt").write_text(f"one\nuse {KEY}", encoding="utf-8")
    return Line(capsys)


def test_list_says_what_ships(line: Line):
    """A line for each rule with what it takes; as JSON, the same."""
    ran = line("rules", "list")

    assert ran.status == 0
    assert [text.split()[0] for text in ran.out.splitlines()[1:]] == list(SHIPPED)
    assert line("rules", "list", "--json").document == {"schema": "adjudge/shipped-rules/1", "rules": dict(SHIPPED)}


def test_a_content_that_passes_is_status_0(line: Line):
    """It is said how many rules there were."""
    ran = line("rules", "check", "good.txt", "--rules", "rules.yaml")

    assert (ran.status, ran.out, ran.err) == (0, "good.txt: passed 3 rules\n", "")


def test_a_failed_error_rule_is_status_1_and_a_warning_is_not(line: Line):
    """Each failed rule is a line with its severity; the secret is not in it."""
    ran = line("rules", "check", "leak.txt", "--rules", "rules.yaml")
    assert ran.status == 1
    secret, long = ran.out.splitlines()
    assert names(secret, "leak.txt: error: no-keys: ", "GitHub token", "line 2")
    assert names(long, "leak.txt: warning: short: ", "52 characters", "20")
    assert KEY not in ran.out
    warned = line("rules", "check", "long.txt", "--rules", "rules.yaml")
    assert (warned.status, warned.out.count("warning")) == (0, 1)


def test_of_several_inputs_unreadable_beats_failed(line: Line):
    """Every content is checked, whatever became of the one before."""
    ran = line("rules", "check", "gone.txt", "leak.txt", "good.txt", "--rule", "secrets")

    assert ran.status == 2
    leak, good = ran.out.splitlines()
    assert names(leak, "leak.txt: error: secrets: ", "GitHub token", "line 2")
    assert names(good, "good.txt: passed", "1 rule")
    assert "cannot read gone.txt" in ran.err
    assert line("rules", "check", "leak.txt", "good.txt", "--rule", "secrets").status == 1


def test_the_rows_of_a_data_set_are_checked_each_with_its_own_reference(line: Line):
    """A row's reference goes before the command line's."""
    Path("rows.jsonl").write_text(
        '{"id": "a", "content": "same", "reference": "same"}\n{"id": "b", "content": {"x": "same"}}\n', encoding="utf-8"
    )
    Path("other.txt").write_text("quite different", encoding="utf-8")
    ran = line("rules", "check", "rows.jsonl", "--rule", "similarity", "--reference", "other.txt", "--json")

    assert ran.status == 1
    assert ran.document["schema"] == "adjudge/rule-checks/1"
    assert [(item["case"], item["passed"]) for item in ran.document["checks"]] == [("a", True), ("b", False)]
    assert ran.document["checks"][0]["rule_results"][0]["score"] == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["good.txt"], "there is nothing to check by … give --rules FILE or --rule RULE"),
        (["good.txt", "--rule", "secretz"], "did you mean 'secrets'"),
        (["good.txt", "--rules", "gone.yaml"], "gone.yaml does not exist, so no rule can be read from it"),
        (
            ["good.txt", "--rules", "rules.yaml", "--rule", "{regex: a}", "--rule", "{regex: b}"],
            "are both called 'regex'",
        ),
    ],
)
def test_what_cannot_be_done_is_one_sentence(line: Line, arguments: list[str], message: str):
    """Without rules, or with rules that make no sense: status 2, before anything is checked."""
    ran = line("rules", "check", *arguments)

    assert ran.status == 2
    assert names(ran.sentence, *message.split(" … "))


def test_a_rule_file_from_somebody_else_runs_nothing(line: Line):
    """``python:`` is refused in the file; on the command line it is the caller's own."""
    Path("evil.yaml").write_text("rules: [{python: 'os:abort'}]", encoding="utf-8")

    assert "a python: rule runs code" in line("rules", "check", "good.txt", "--rules", "evil.yaml").sentence
    assert line("rules", "check", "good.txt", "--rule", "{python: 'operator:not_'}").status == 1


def test_nothing_hidden_reaches_the_terminal(line: Line):
    """Content that a message quotes is escaped."""
    Path("odd.txt").write_text(ESCAPES.replace("\x00", ""), encoding="utf-8")
    ran = line("rules", "check", "odd.txt", "--rule", "unicode", "--rule", "{regex: '(?s).*', absent: true}")

    assert ran.status == 1
    assert HIDDEN.search(ran.out + ran.err) is None
