"""``adjudge ledger``: what it prints, and with which status it ends."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from adjudge.ledger import verify_export
from cli_support import ESCAPES, HIDDEN, Line, isolate
from ledger_support import make_result, record, run

URL = "sqlite:///a.db"


@pytest.fixture(name="line")
def make_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Line:
    """The command line in an empty folder with a ledger of four entries."""
    isolate(monkeypatch, tmp_path)
    record(URL, make_result(judge=f"careful {ESCAPES}"), make_result(outcome="passed", score=0.9), {"n": 1})
    return Line(capsys)


def change(statement: str) -> None:
    with closing(sqlite3.connect("a.db")) as connection:
        connection.execute("DROP TRIGGER adjudge_ledger_no_update")
        connection.execute("DROP TRIGGER adjudge_ledger_no_delete")
        connection.execute(statement)
        connection.commit()


def test_list_shows_entries_and_no_escape_sequence(line: Line):
    """A row for each, oldest first; what a judge is called cannot reach the terminal raw."""
    done = line("ledger", "list", "--ledger", "a.db")

    assert done.status == 0
    assert [row.split()[0] for row in done.out.splitlines()[1:]] == ["1", "2", "3", "4"]
    assert not HIDDEN.search(done.out)


def test_list_filters_and_tells_what_it_left_out(line: Line):
    """Each option narrows; of many, the last are shown."""
    failed = line("ledger", "list", "--ledger", URL, "--outcome", "failed", "--json").document
    last = line("ledger", "list", "--ledger", URL, "--last", "1")
    none = line("ledger", "list", "--ledger", URL, "--since", "2999-01-01", "--json").document

    assert [entry["seq"] for entry in failed["entries"]] == [2]
    assert "the last 1 of 4; --last 0 shows all" in last.err
    assert (none["schema"], none["matching"], none["entries"]) == ("adjudge/ledger-entries/1", 0, [])


def test_show_prints_an_entry(line: Line):
    """Everything it says; as JSON, the entry alone."""
    shown = line("ledger", "show", "2", "--ledger", "a.db")
    entry = line("ledger", "show", "4", "--ledger", "a.db", "--json").document

    assert shown.status == 0
    assert '"outcome": "failed"' in shown.out
    assert not HIDDEN.search(shown.out)
    assert (entry["seq"], entry["kind"], entry["payload"]) == (4, "run", {"n": 1})
    assert line("ledger", "show", "9", "--ledger", "a.db").sentence.startswith("the ledger has no entry 9")


def test_show_says_that_a_payload_was_erased(line: Line):
    """What is gone is not shown as empty."""
    run(URL, lambda ledger: ledger.erase(4, "why", "me"))

    assert "payload      erased" in line("ledger", "show", "4", "--ledger", "a.db").out
    assert "entry 4: payload erased, recorded at 5" in line("ledger", "verify", "--ledger", "a.db").out


def test_verify_ends_with_0_or_1(line: Line):
    """0 for a clean ledger, with what could not be seen; 1 names the first bad entry."""
    clean = line("ledger", "verify", "--ledger", "a.db")
    change("UPDATE adjudge_ledger SET subject = 'x' WHERE seq = 3")
    changed = line("ledger", "verify", "--ledger", "a.db")
    document = line("ledger", "verify", "--ledger", "a.db", "--json").document

    assert (clean.status, changed.status) == (0, 1)
    assert clean.out.startswith("in order: 4 entries, up to 4:")
    assert "could not see entries dropped from the end" in clean.err
    assert changed.out.startswith("not in order: entry 3 is not what its hash says [entry_changed]; 2 entries before")
    assert (document["valid"], document["code"], document["seq"]) == (False, "entry_changed", 3)


def test_a_pinned_head_finds_a_dropped_tail(line: Line):
    """``head`` is written to a file, and ``verify --head`` compares with it."""
    Path("head.json").write_text(line("ledger", "head", "--ledger", "a.db", "--json").out, "utf-8")
    text = line("ledger", "head", "--ledger", "a.db").out.strip()
    kept = line("ledger", "verify", "--ledger", "a.db", "--head", "head.json")
    change("DELETE FROM adjudge_ledger WHERE seq = 4")

    assert kept.status == 0
    assert kept.err == "could not see a rewrite of what follows the pinned head, because no public key was given\n"
    assert line("ledger", "verify", "--ledger", "a.db").status == 0
    assert line("ledger", "verify", "--ledger", "a.db", "--head", "head.json").status == 1
    assert "head_missing" in line("ledger", "verify", "--ledger", "a.db", "--head", text).out


def test_an_export_is_checked_without_the_ledger(line: Line):
    """``export`` prints the head, and ``verify --file`` needs nothing else."""
    head = line("ledger", "export", "out.jsonl", "--ledger", "a.db").out.strip()
    Path("a.db").unlink()
    done = line("ledger", "verify", "--file", "out.jsonl", "--head", head)

    assert (done.status, verify_export("out.jsonl", head=head).valid) == (0, True)
    assert [json.loads(row)["seq"] for row in Path("out.jsonl").read_text("utf-8").splitlines()] == [1, 2, 3, 4]
    Path("out.jsonl").write_bytes(Path("out.jsonl").read_bytes().replace(b'"n":1', b'"n":2'))
    assert line("ledger", "verify", "--file", "out.jsonl").status == 1


def test_the_ledger_of_the_configuration_is_taken(line: Line):
    """``[ledger]`` names it where ``--ledger`` does not."""
    Path("adjudge.toml").write_text('[ledger]\nurl = "sqlite:///a.db"\nstore_content = "hash"\n', "utf-8")
    done = line("ledger", "verify")

    assert (done.status, "records nothing" in done.err) == (0, False)


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["verify"], 2, "no ledger is named: give --ledger adjudge.db"),
        (["verify", "--ledger", "none.db"], 2, "there is no ledger at sqlite:///none.db"),
        (["verify", "--ledger", "mysql://x/y"], 2, "a ledger's url is sqlite:///FILE or postgresql://HOST/DATABASE"),
        (["verify", "--ledger", "a.db", "--file", "x"], 2, "--file checks an export and --ledger a ledger"),
        (["verify", "--file", "none.jsonl"], 2, "cannot read the export none.jsonl"),
        (["verify", "--ledger", "a.db", "--head", "x"], 2, "the head 'x' cannot be read"),
        (["verify", "--ledger", "a.db", "--public-key", "x"], 2, "the key 'x' cannot be read"),
        (
            ["list", "--ledger", "a.db", "--since", "soon"],
            2,
            "--since must be a time like 2026-11-20T12:00Z, got 'soon'",
        ),
        (["list", "--ledger", "text.db"], 3, "the ledger sqlite:///text.db cannot be read: file is not a database"),
        (["export", "a.db", "--ledger", "a.db"], 2, "cannot export to a.db: File exists"),
    ],
    ids=range(10),
)
def test_what_is_wrong_is_one_sentence(line: Line, arguments: list[str], status: int, said: str):
    """Names the thing, the value and the remedy; 2 for a wrong word, 3 for a store that failed."""
    Path("text.db").write_text("no database" * 100, "utf-8")
    done = line("ledger", *arguments)

    assert done.status == status
    assert done.sentence.startswith(said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[ledger]\nurl = 5\n", "[ledger] url must be a text in quotes, got 5"),
        ("[ledger]\nurll = 'x'\n", "unknown key 'urll'; did you mean 'url'?"),
    ],
    ids=["type", "key"],
)
def test_a_configuration_that_is_wrong_is_said(line: Line, text: str, said: str):
    """Unknown keys and other types are errors, as everywhere in the file."""
    Path("adjudge.toml").write_text(text, "utf-8")

    assert said in line("ledger", "verify").sentence
