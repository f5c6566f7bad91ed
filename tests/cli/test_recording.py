"""What ``adjudge judge`` and ``adjudge gate check`` record, where, and how they end when they cannot."""

from __future__ import annotations

import hashlib
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from adjudge.ledger import Entry, create_signing_key
from kit import cli
from kit.cli import Line, configure, isolate, serve
from kit.judges import names
from kit.ledgers import find, verify

pytestmark = pytest.mark.timed


POLITE = ("--criteria", "Is polite.", "--judge", "python:kit.cli:judge_words")
LEDGER = '[ledger]\nurl = "sqlite:///adjudge.db"\n'
GATES = '[gates.short]\nrules = [{name = "length", max = 10}]\n[gates.watched]\nmode = "observe"\nrules = ["json"]\n'
URL = "sqlite:///adjudge.db"
MODULE = (
    "def hide(text):\n    return text.replace('good', '[word]')\n\n\ndef fail(text):\n    raise ValueError('SECRET')\n"
)


@pytest.fixture
def line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    isolate(monkeypatch, tmp_path)
    cli.feed(monkeypatch, terminal=True)
    for name, text in {"good.txt": "good", "bad.txt": "bad", "odd.txt": "neither", "long.txt": "good " * 9}.items():
        Path(name).write_text(text, encoding="utf-8")
    Path("ledger_words.py").write_text(MODULE, encoding="utf-8")
    configure(GATES + LEDGER)
    return Line(capsys)


def read(url: str = URL) -> list[Entry]:
    """What a ledger holds, without its genesis entry."""
    return find(url)[1:]


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def describe(entry: Entry) -> tuple[str, Any]:
    assert entry.payload is not None
    return entry.kind, entry.payload.get("outcome", entry.payload.get("allowed"))


# ---------------------------------------------------------------- what is recorded


def test_every_result_is_recorded(line: Line):
    """Passed, failed and undecided; its place stands beside the result, and its subject is the content's digest."""
    done = line("judge", "good.txt", "bad.txt", "odd.txt", "lost.txt", *POLITE, "--concurrency", "1", "--json")
    entries = read()

    assert done.status == 2
    assert [item.get("ledger_seq") for item in done.document["results"]] == [2, 3, 4, None]
    assert [describe(entry) for entry in entries] == [
        ("result", "passed"),
        ("result", "failed"),
        ("result", "undecided"),
    ]
    assert [entry.subject for entry in entries] == [digest(text) for text in ("good", "bad", "neither")]
    assert [entry.payload["id"] for entry in entries if entry.payload] == [
        item["id"] for item in done.document["results"][:3]
    ]
    assert verify(URL)


def test_a_single_result_says_its_place(line: Line):
    """And says that it has none where nothing is recorded."""
    assert line("judge", "good.txt", *POLITE, "--json").document["ledger_seq"] == 2
    assert line("judge", "good.txt", *POLITE, "--json", "--no-ledger").document["ledger_seq"] is None
    assert len(read()) == 1


def test_every_decision_is_recorded(line: Line):
    """With gate, subject and the digest of the file; the decision says where."""
    done = line("gate", "check", "short", "good.txt", "long.txt", "--concurrency", "1", "--json")
    entries = read()

    assert done.status == 1
    assert [item["ledger_seq"] for item in done.document["decisions"]] == [2, 3]
    assert [describe(entry) for entry in entries] == [("decision", True), ("decision", False)]
    assert [(entry.payload["gate"], entry.payload["config"]) for entry in entries if entry.payload] == [
        ("short", digest(GATES + LEDGER))
    ] * 2
    assert entries[0].subject == digest("good")


def test_rows_that_are_judged_together_share_commits(line: Line):
    """Two hundred rows are on record with far fewer commits: entries of one commit have one time."""
    rows = [json.dumps({"id": str(number), "content": f"good {number}"}) for number in range(200)]
    Path("rows.jsonl").write_text("\n".join(rows), encoding="utf-8")
    done = line("judge", "rows.jsonl", *POLITE, "--concurrency", "50", "--json")
    entries = read()

    assert done.status == 0
    assert {item["case"]: item["ledger_seq"] for item in done.document["results"]} == {
        entry.payload["metadata"]["case"]: entry.seq for entry in entries if entry.payload
    }
    assert len({entry.at for entry in entries}) < 100


def test_commands_that_judge_nothing_record_nothing(line: Line):
    """Prompts are shown and gates are listed without a ledger."""
    assert line("judge", "good.txt", *POLITE, "--show-prompt").status == 0
    assert line("gate", "list").status == 0
    assert not Path("adjudge.db").exists()


def test_without_a_ledger_nothing_is_recorded(line: Line):
    """Unless one is named, or when it is switched off."""
    configure(GATES)
    assert line("judge", "good.txt", *POLITE).status == 0
    assert line("gate", "check", "short", "good.txt", "--json").document["ledger_seq"] is None
    configure(GATES + LEDGER)
    assert line("gate", "check", "short", "good.txt", "--no-ledger").status == 0

    assert not list(Path().glob("*.db"))


# ---------------------------------------------------------------- where


def test_a_file_is_seen_from_the_configurations_folder(line: Line):
    """As rubrics are; ``adjudge ledger`` looks in the same place, and ``--ledger`` is seen from here."""
    config = configure(GATES + LEDGER, "trusted/adjudge.toml")
    plain = configure('[ledger]\nurl = "plain.db"\n', "trusted/plain.toml")

    assert line("gate", "check", "short", "good.txt", "--config", config).status == 0
    assert line("judge", "good.txt", *POLITE, "--config", plain).status == 0
    assert line("judge", "good.txt", *POLITE, "--config", config, "--ledger", "here.db").status == 0
    assert line("ledger", "verify", "--config", config).status == 0
    assert sorted(str(path) for path in Path().rglob("*.db")) == ["here.db", "trusted/adjudge.db", "trusted/plain.db"]


def test_an_absolute_file_stays_where_it_is(line: Line, tmp_path: Path):
    """Whatever folder the configuration is in."""
    config = configure(f'[ledger]\nurl = "sqlite:///{tmp_path / "abs.db"}"\n', "elsewhere/adjudge.toml")

    assert line("judge", "good.txt", *POLITE, "--config", config).status == 0
    assert Path("abs.db").exists()


def test_a_server_is_named_by_its_address(line: Line, require: Any):
    """It is not a path; and what it can be reached at is among the hosts that doctor lists."""
    require("psycopg", find_spec("psycopg"), "pip install 'adjudge[postgres]'")
    configure('[ledger]\nurl = "postgresql://me@db.example:6432/x"\n')
    hosts = line("doctor", "--offline", "--json").document["hosts"]

    assert "db.example:6432" in hosts
    configure('[ledger]\nurl = "postgresql://me:password@127.0.0.1:1/x"\n')
    done = line("judge", "good.txt", *POLITE)
    assert done.status == 3
    assert "password" not in done.err


# ---------------------------------------------------------------- how


@pytest.mark.parametrize(
    ("option", "content"),
    [
        ("", f"sha256:{digest('good')}"),
        ('store_content = "full"\n', "good"),
        ('store_content = "redacted"\nredact = "python:ledger_words:hide"\n', "[word]"),
    ],
    ids=["hash", "full", "redacted"],
)
def test_texts_are_kept_as_the_file_says(line: Line, option: str, content: str):
    """The content, and what quotes it; hashed unless somebody asks for more."""
    configure(LEDGER + option)
    assert line("judge", "good.txt", *POLITE).status == 0
    (entry,) = read()

    assert entry.payload is not None
    assert entry.payload["content"] == content
    assert ("it says good" in json.dumps(entry.payload)) == ("full" in option)


def test_a_key_signs(line: Line, require: Any):
    """It lies beside the file that names it; who only reads needs it not."""
    require("cryptography", find_spec("cryptography"), "pip install 'adjudge[sign]'")
    Path("keys").mkdir()
    public_key = create_signing_key("keys/key.pem")
    config = configure('[ledger]\nurl = "adjudge.db"\nkey = "key.pem"\n', "keys/adjudge.toml")

    assert line("judge", "good.txt", *POLITE, "--config", config).status == 0
    Path("keys/key.pem").unlink()
    assert line("ledger", "verify", "--config", config, "--public-key", public_key).status == 0
    assert (
        "[ledger]: the key 'keys/key.pem' cannot be read" in line("judge", "good.txt", *POLITE, "--config", config).err
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[ledger]\nurl = 3\n", "adjudge.toml … [ledger]: url … a text in quotes … got 3"),
        ('[ledger]\nurI = "a.db"\n', "adjudge.toml … [ledger] … unknown key 'urI' … did you mean 'url'?"),
        ('[ledger]\nstore_content = "full"\n', "no ledger is named … give --ledger adjudge.db, or write url under"),
        ('[ledger]\nurl = "mysql://x/y"\n', "[ledger] … url … sqlite:///FILE … postgresql://HOST/DATABASE"),
        (LEDGER + 'store_content = "some"\n', "[ledger]: store_content … one of hash, redacted, full … got 'some'"),
        (
            LEDGER + 'store_content = "redacted"\n',
            "[ledger] … store_content redacted … redact … a function",
        ),
        (
            LEDGER + 'redact = "python:ledger_words:hide"\n',
            "[ledger] … store_content redacted … redact … a function",
        ),
        (LEDGER + 'redact = "hide"\n', "[ledger] redact … like python:package.module:function … got 'hide'"),
        (LEDGER + 'redact = "python:ledger_words:no"\n', "[ledger] redact … 'ledger_words:no' cannot be imported"),
        (LEDGER + 'redact = "python:ledger_words"\n', "[ledger] redact … write package.module:function"),
        ('[ledger]\nurl = "sqlite:///no/such/folder.db"\n', "cannot be written … No such file or directory"),
    ],
)
def test_a_ledger_that_is_written_wrong_is_a_sentence(line: Line, text: str, message: str):
    """It is said before anybody is asked, and nothing is decided: exit status 2."""
    configure(text + GATES)
    with serve(score=1.0) as provider:
        judged = line("judge", "good.txt", "--criteria", "Is polite.", "--judge", provider.spec)

    assert (judged.status, line("gate", "check", "short", "good.txt").status) == (2, 2)
    assert names(judged.sentence, *message.split(" … "))
    assert provider.bodies == []


def test_the_options_contradict_each_other(line: Line):
    """Whoever gives both meant one of them."""
    assert "contradict" in line("judge", "good.txt", *POLITE, "--ledger", "a.db", "--no-ledger").sentence


# ---------------------------------------------------------------- when it fails


def break_ledger() -> None:
    """A redaction that raises: what is recorded cannot be made, after everything was opened well."""
    configure(GATES + LEDGER + 'store_content = "redacted"\nredact = "python:ledger_words:fail"\n')


@pytest.mark.parametrize(("files", "status"), [(["good.txt"], 3), (["good.txt", "bad.txt"], 1)])
def test_a_result_that_is_not_recorded_is_said(line: Line, files: list[str], status: int):
    """It is shown all the same, and does not end like one that is on record; what the redaction raised is not shown."""
    break_ledger()
    done = line("judge", *files, *POLITE)

    assert done.status == status
    assert "pass" in done.out
    (message,) = [item for item in done.err.splitlines() if "not recorded" in item]
    assert names(message, "adjudge: not recorded", "ValueError", "an entry")
    assert "SECRET" not in done.err
    assert read() == []


def test_a_decision_that_is_not_recorded_blocks(line: Line):
    """By policy, however clean the content."""
    break_ledger()
    done = line("gate", "check", "short", "good.txt")

    assert done.status == 3
    assert done.out.startswith("blocked by policy: not recorded: ValueError")
    assert "adjudge: not recorded: ValueError was raised" in done.err


def test_an_observing_gate_lets_through_and_ends_with_3(line: Line):
    """Its decisions hold nothing up; that they are on no record is still a failure of the command."""
    break_ledger()
    done = line("gate", "check", "watched", "good.txt")

    assert done.status == 3
    assert done.out.startswith("allowed by policy: not recorded")


def test_a_ledger_that_is_none_ends_everything_first(line: Line):
    """Exit status 3, nobody is asked, and nothing is let through."""
    Path("adjudge.db").write_text("not a database " * 100, encoding="utf-8")
    with serve(score=1.0) as provider:
        judged = line("judge", "good.txt", "--criteria", "Is polite.", "--judge", provider.spec)

    assert judged.status == line("gate", "check", "short", "good.txt").status == 3
    assert "the ledger sqlite:///adjudge.db cannot be written: file is not a database" in judged.sentence
    assert provider.bodies == []
