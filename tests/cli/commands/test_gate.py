"""``adjudge gate``: the gates of a project, and what they decide about files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from adjudge import Decision
from kit import cli
from kit.cli import ESCAPES, HIDDEN, WORDS, Line, serve
from kit.judges import names

pytestmark = pytest.mark.timed


RUBRIC = "name: Polite\ncriteria:\n  - {name: criteria, description: Is polite.}\n"
GATE = (
    f'[judges.words]\nseats = ["{WORDS}"]\nreask = 0\n[rubrics]\npolite = "rubrics/polite.yaml"\n'
    '[gates.publish]\nrubric = "polite"\njudge = "words"\nrules = [{name = "length", max = 40}]\n'
)
FILES = {"good.txt": "good", "bad.txt": "bad", "odd.txt": "neither", "long.txt": "good " * 20}


@pytest.fixture
def line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    cli.isolate(monkeypatch, tmp_path)
    cli.feed(monkeypatch, terminal=True)
    for name, text in FILES.items():
        Path(name).write_text(text, encoding="utf-8")
    Path("rubrics").mkdir()
    Path("rubrics/polite.yaml").write_text(RUBRIC, encoding="utf-8")
    configure(GATE)
    return Line(capsys)


def configure(text: str, path: str = "adjudge.toml") -> Path:
    Path(path).write_text(text, encoding="utf-8")
    return Path(path)


@pytest.mark.parametrize(
    ("files", "status"),
    [
        (["good.txt"], 0),
        (["bad.txt"], 1),
        (["long.txt"], 1),
        (["odd.txt"], 3),
        (["missing.txt"], 2),
        (["good.txt", "odd.txt"], 3),
        (["good.txt", "odd.txt", "bad.txt"], 1),
        (["good.txt", "odd.txt", "bad.txt", "missing.txt"], 2),
    ],
)
def test_the_status_says_what_was_decided(line: Line, files: list[str], status: int):
    """0 allowed, 1 failed, 3 nobody could decide; unreadable beats failed beats held back."""
    assert line("gate", "check", "publish", *files).status == status


def test_a_decision_is_a_line(line: Line):
    """What, by whom and why; of several, each behind its name."""
    assert line("gate", "check", "publish", "good.txt").out.startswith("allowed by judge: passed with 1.00")
    lines = line("gate", "check", "publish", "bad.txt", "long.txt").out.splitlines()

    assert lines[0].startswith("bad.txt: blocked by judge: failed with 0.00")
    assert names(lines[1], "long.txt: blocked by rule", "'length' failed")


def test_json_is_the_decision_with_the_digest_of_the_file(line: Line):
    """It can be read back; of several there is a list."""
    one = line("gate", "check", "publish", "good.txt", "--json").document
    several = line("gate", "check", "publish", "good.txt", "missing.txt", "--json").document
    decision = Decision.from_dict(one)

    assert one["input"] == "good.txt"
    assert (decision.allowed, decision.gate, decision.decided_by) == (True, "publish", "judge")
    assert decision.config == hashlib.sha256(GATE.encode()).hexdigest()
    assert several["schema"] == "adjudge/decisions/1"
    assert several["decisions"][0]["allowed"] is True
    assert "missing.txt" in several["decisions"][1]["error"]


def test_a_data_set_is_checked_row_by_row(line: Line):
    """Each case brings its own task and metadata."""
    rows = [{"id": "a", "content": "good", "metadata": {"m": 1}}, {"id": "b", "content": "bad"}]
    Path("rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    done = line("gate", "check", "publish", "rows.jsonl", "--json")

    assert done.status == 1
    assert [item["case"] for item in done.document["decisions"]] == ["a", "b"]
    assert done.document["decisions"][0]["metadata"] == {"m": 1, "case": "a"}


@pytest.mark.parametrize(
    ("option", "file", "status", "message"),
    [
        ('mode = "observe"', "bad.txt", 0, "allowed by policy … observed … enforce would block"),
        ('mode = "observe"', "odd.txt", 0, "allowed by policy … observed … enforce would block"),
        ('on_undecided = "allow"', "odd.txt", 0, "allowed by policy … on_undecided='allow'"),
        ("sample = 0", "bad.txt", 0, "allowed by policy … not sampled … sample=0"),
    ],
)
def test_the_options_of_a_table_are_those_of_a_gate(line: Line, option: str, file: str, status: int, message: str):
    """And whatever a policy let through says so."""
    configure(GATE + option + "\n")
    done = line("gate", "check", "publish", file)

    assert done.status == status
    assert names(done.out, *message.split(" … "))
    assert done.out.startswith("allowed by policy")


def test_a_gate_of_rules_needs_neither_judge_nor_rubric(line: Line):
    """It asks nobody, so it needs no key."""
    configure('[gates.short]\nrules = [{name = "length", max = 10}, "json"]\n')
    Path("number.txt").write_text("7", encoding="utf-8")

    assert line("gate", "check", "short", "number.txt").status == 0
    assert line("gate", "check", "short", "good.txt").status == 1


def test_the_file_says_who_judges(line: Line, monkeypatch: pytest.MonkeyPatch):
    """A gate takes the default judge of its own file, and never one of the environment or of a rubric."""
    with serve(score=1.0) as provider:
        monkeypatch.setenv("ADJUDGE_JUDGE", provider.spec)
        configure(GATE.replace('judge = "words"\n', ""))
        nobody = line("gate", "check", "publish", "bad.txt")
        configure(GATE.replace('judge = "words"\n', "") + '[defaults]\njudge = "words"\n')
        Path("rubrics/polite.yaml").write_text(RUBRIC + f"model: {provider.spec}\n", encoding="utf-8")
        default = line("gate", "check", "publish", "bad.txt")

    assert nobody.status == 2
    assert names(nobody.sentence, "[gates.publish]", "needs a judge", "give judge", "[defaults]")
    assert default.status == 1
    assert provider.bodies == []


def test_paths_are_seen_from_the_file(line: Line):
    """So a gate of a trusted checkout judges by the rubrics of that checkout."""
    Path("trusted/r").mkdir(parents=True)
    Path("trusted/r/good.yaml").write_text(
        "name: G\ncriteria:\n  - {name: a, description: b, rule: {regex: good}}\n", encoding="utf-8"
    )
    file = configure('[gates.g]\nrubric = "r/good.yaml"\n', "trusted/adjudge.toml")

    assert line("gate", "check", "g", "good.txt", "--config", file).status == 0
    assert line("gate", "check", "g", "bad.txt", "--config", file).status == 1


def test_a_rule_may_be_code_that_the_file_names(line: Line):
    """As on the command line; a module that cannot be imported is said."""
    Path("mine_rules.py").write_text("def calm(text):\n    return '!' not in text\n", encoding="utf-8")
    configure('[gates.g]\nrules = [{python = "mine_rules:calm"}]\n')
    Path("loud.txt").write_text("good!", encoding="utf-8")

    assert line("gate", "check", "g", "good.txt").status == 0
    assert line("gate", "check", "g", "loud.txt").status == 1
    configure('[gates.g]\nrules = [{python = "not_here:calm"}]\n')
    assert "[gates.g]: " in line("gate", "check", "g", "good.txt").sentence


def test_a_judge_that_cannot_be_asked_is_said_once(line: Line):
    """Every content would be blocked by a missing key, and that is no verdict on any."""
    configure(GATE.replace('judge = "words"', 'judge = "openai:gpt-6.1-terra"'))
    done = line("gate", "check", "publish", "good.txt", "bad.txt")

    assert done.status == 2
    assert "set OPENAI_API_KEY" in done.sentence


def test_the_judge_of_a_gate_is_examined(line: Line):
    """``adjudge doctor`` names every host that a gate can contact."""
    configure(GATE + '[gates.other]\nrubric = "polite"\njudge = "http://judge.example:8080/v1#m"\n')
    document = line("doctor", "--offline", "--json").document

    assert any("judge.example" in host for host in document["hosts"])


def test_list_shows_every_gate(line: Line):
    """In a pipe a line for each; as JSON with the digest of the file."""
    configure(GATE + '[gates.short]\nrules = ["json"]\nmode = "observe"\n')
    shown = line("gate", "list")
    document = line("gate", "list", "--json").document

    assert shown.status == 0
    assert [row.split()[0] for row in shown.out.splitlines()[1:]] == ["publish", "short"]
    assert document["config_digest"] == hashlib.sha256(Path("adjudge.toml").read_bytes()).hexdigest()
    assert document["gates"]["publish"] == {
        "rules": ["length"],
        "rubric": "Polite",
        "judge": "words",
        "on_rule": "block",
        "on_failed": "block",
        "on_undecided": "block",
        "on_tampering": "block",
        "mode": "enforce",
        "sample": 1.0,
    }


def test_list_says_what_cannot_be_opened(line: Line):
    """The others are shown all the same; without any there is a hint."""
    configure(GATE + '[gates.lost]\nrubric = "rubrics/lost.yaml"\n')
    done = line("gate", "list")

    assert done.status == 2
    assert "publish" in done.out
    assert "rubrics/lost.yaml" in done.err
    configure("")
    assert names(line("gate", "list").err, "no gates", "[gates.NAME]", "adjudge.toml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gates = 3\n", "adjudge.toml: gates … a table"),
        ("[gates]\npublish = 3\n", "[gates.publish] … a table with a rubric or rules … 3"),
        ('[gates.publish]\nrubrik = "x"\n', "[gates.publish] … 'rubrik' … did you mean 'rubric'?"),
        ("[gates.publish]\nrubric = 3\n", "[gates.publish] … rubric … a name in quotes … 3"),
        ('[gates.publish]\nrules = "json"\n', "[gates.publish] … rules … a list like"),
        ('[gates.publish]\nrules = ["jsn"]\n', "[gates.publish] … 'jsn' … did you mean 'json'?"),
        ("[gates.publish]\n", "[gates.publish] … 'publish' … nothing to check"),
        ('[gates.publish]\nrules = ["json"]\nmode = "off"\n', "[gates.publish] … mode … enforce, observe … 'off'"),
        (
            '[gates.publish]\nrules = ["json"]\non_failed = "allow"\n',
            "[gates.publish] … on_failed … block, ask … 'allow'",
        ),
        ('[gates.publish]\nrules = ["json"]\njudge = "openai:a"\n', "a judge and no rubric"),
        ('[gates.publsh]\nrules = ["json"]\n', "no gate 'publish' … adjudge.toml … did you mean 'publsh'?"),
        ("", "no gate 'publish' … adjudge.toml … [gates.NAME] … --config"),
    ],
)
def test_a_gate_that_is_written_wrong_is_a_sentence(line: Line, text: str, message: str):
    """It names the table and the remedy, and nothing is checked."""
    configure(text)
    done = line("gate", "check", "publish", "good.txt")

    assert done.status == 2
    assert names(done.sentence, *message.split(" … "))


def test_a_missing_file_is_said(line: Line):
    """Without adjudge.toml there is no gate."""
    Path("adjudge.toml").unlink()
    refused = line("gate", "check", "publish", "good.txt").sentence

    assert names(refused, "'publish'", "no adjudge.toml", "[gates.NAME]", "--config")


def test_nothing_hidden_reaches_the_terminal(line: Line):
    """What was judged stands in what the judge says of it, and is shown without escape sequences."""
    Path("escapes.txt").write_text(f"bad {ESCAPES.replace(chr(0), '')}"[:40], encoding="utf-8")
    done = line("gate", "check", "publish", "escapes.txt")

    assert done.status == 1
    assert HIDDEN.search(done.out + done.err) is None
    assert done.out.count("\n") == 1
