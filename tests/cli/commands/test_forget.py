"""``adjudge forget``: where it looks, what it prints, and with which status it ends."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from adjudge import Gate, Ledger
from kit.cli import ME, Line, configure, isolate
from kit.erasures import SECRET, SUBJECT, fill
from kit.ledgers import run

ABOUT, ANOTHER = {"customer": "C-1"}, {"customer": "C-10"}

CONFIG = """
[ledger]
url = "sqlite:///adjudge.db"
store_content = "full"

[judges.kept]
seats = ["replay:recorded.jsonl"]

[gates.mail]
rules = ["json"]
cache = "cache.sqlite"

[server]
runs = "."

[forget]
labels = ["labels*.jsonl"]
"""

FORGET = ("forget", "--metadata", "customer=C-1")


@pytest.fixture(name="line")
def make_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Line:
    """The command line in a folder in which something about two customers is kept."""
    isolate(monkeypatch, tmp_path)
    asyncio.run(fill(tmp_path, "sqlite:///adjudge.db", about=ABOUT, other=ANOTHER))
    configure(CONFIG)
    return Line(capsys)


def test_it_looks_wherever_the_configuration_keeps_something(line: Line):
    """The ledger, caches of gates, recordings of judges, runs of the server, and what [forget] names."""
    done = line(*FORGET, "--reason", "asked, ticket 5512")

    assert done.status == 0
    assert done.out.splitlines()[:8] == [
        "Deleted, 25 texts",
        "  ledger                8  bodies of 5 of approvals, 3 decisions",
        "  approvals             2  1 of them open, which forgetting closes",
        "  kept replies          2",
        "  recordings            2  in recorded.jsonl",
        "  runs                  2  monday",
        "  labels                4  comments in labels.jsonl; comments",
        "  search index          5",
    ]
    assert "Out of reach" in done.out
    assert "The ledger verifies: " in done.out
    assert "It keeps a keyed digest of the value, not the value." in done.out
    assert max(map(len, done.out.splitlines())) <= 80
    texts = [path.read_bytes() for path in Path().rglob("*") if path.is_file() and path.name != "data.jsonl"]
    assert not [text for text in texts if SECRET.encode() in text]


@pytest.mark.parametrize(
    "table",
    [
        '[judges.kept]\nseats = ["replay:e/r.jsonl?model=echo"]',
        '[gates.mail]\nrules = ["json"]\njudge = "replay:e/r.jsonl"',
        '[gates.mail]\nrules = ["json"]\nask = {first = "replay:e/r.jsonl"}',
        '[approvals]\nfirst = " replay:e/r.jsonl"',
        '[defaults]\njudge = "replay:e/r.jsonl"',
        '[server]\njudge = "replay:e/r.jsonl"',
        '[forget]\nrecordings = ["e/r.jsonl"]',
    ],
    ids=["seat", "gate", "first of a gate", "first", "default", "server", "forget"],
)
def test_every_recording_that_is_named_is_looked_through(line: Line, table: str):
    """From the folder of the file that names it; one that is not there is said to be missing."""
    Path("e").mkdir()
    Path("recorded.jsonl").rename("e/r.jsonl")
    url = f'[ledger]\nurl = "sqlite:///{Path("adjudge.db").resolve()}"\n{table}'
    config, moved = configure(url.replace("e/r", "r"), "e/a.toml"), configure(url.replace("e/r", "gone"), "e/b.toml")
    done = line(*FORGET, "--dry-run", "--json", "--config", config).document
    gone = line(*FORGET, "--dry-run", "--json", "--config", moved).document

    assert {each["place"]: each["count"] for each in done["deleted"]}["recordings"] == 2
    assert [Path(each["place"]).name for each in gone["out_of_reach"] if "not there" in each["what"]] == ["gone.jsonl"]


def test_one_content_is_forgotten_by_its_digest(line: Line):
    """With or without the name of the hash before it; what was not about this very text stays."""
    planned = line("forget", "--subject", f"sha256:{SUBJECT}", "--dry-run", "--json").document["deleted"]
    done = line("forget", "--subject", SUBJECT, "--reason", "asked, ticket 5513")
    again = line("forget", "--subject", SUBJECT, "--dry-run", "--json").document["deleted"]

    assert done.status == 0
    assert "The ledger verifies: " in done.out
    assert {each["place"] for each in planned if each["count"]} >= {"ledger", "approvals"}
    assert done.out.startswith(f"Deleted, {sum(each['count'] for each in planned)} texts\n")
    assert not any(each["count"] for each in again)
    assert line(*FORGET, "--dry-run").out.startswith("Would be deleted, ")
    assert line("forget", "--subject", "C-1", "--reason", "asked").status == 2


def test_a_dry_run_needs_no_reason_and_no_key(line: Line):
    """It says what would be deleted, and the same in JSON."""
    done = line(*FORGET, "--dry-run")
    document = line(*FORGET, "--dry-run", "--json").document

    assert done.status == 0
    assert done.out.startswith("Would be deleted, 25 texts\n")
    assert (document["schema"], document["dry_run"], document["seq"]) == ("adjudge/forgotten/1", True, None)
    assert sum(each["count"] for each in document["deleted"]) == 25
    assert any(SECRET.encode() in path.read_bytes() for path in Path().rglob("*.db"))


def test_verify_says_which_payloads_were_erased(line: Line):
    """Each with the entry that records it; the entry says who and why."""
    line(*FORGET, "--reason", "asked")
    done = line("ledger", "verify")
    shown = line("ledger", "list", "--kind", "erasure", "--json").document["entries"]

    assert done.status == 0
    assert done.out.count("payload erased, recorded at") == 8
    assert {entry["payload"]["by"] for entry in shown} == {ME}
    assert "C-1" not in json.dumps([entry["payload"] for entry in shown])


def test_show_says_whether_an_entry_is_about_a_value(line: Line):
    """0 if it is, 1 if it is not, 2 where the entry is no such record."""
    seq = line(*FORGET, "--reason", "asked", "--json").document["seq"]

    assert line(*FORGET, "--show", str(seq)).status == 0
    assert line("forget", "--metadata", "customer=C-10", "--show", str(seq)).status == 1
    assert line(*FORGET, "--show", str(seq), "--json").document["same"] is True
    assert line(*FORGET, "--show", "2").status == 2


def test_what_is_not_there_is_said_before_anything_is_deleted(line: Line):
    """A place that is mistyped, a choice that is none, and a missing reason end with 2, and everything is there."""
    for more in (["--cache", "missing"], ["--run", "missing"], ["--recording", "missing"], ["--labels", "missing"]):
        assert line(*FORGET, "--reason", "asked", *more).status == 2, more
    assert line(*FORGET).status == 2
    assert line("forget", "--reason", "asked").status == 2
    assert line(*FORGET, "--reason", "asked", "--by", "\u200b").status == 2
    assert line(*FORGET, "--dry-run").out.startswith("Would be deleted, 25 texts\n")


def test_a_run_alone_can_forget_without_a_ledger(line: Line):
    """Nothing records it then, and nothing is printed about a ledger."""
    configure("")
    done = line(*FORGET, "--reason", "asked", "--run", "monday")

    assert done.status == 0
    assert done.out.startswith("Deleted, 4 texts\n")
    assert "ledger" not in done.out


def test_a_run_that_cannot_be_read_is_left_and_everything_else_is_forgotten(line: Line):
    """A folder that is damaged, of another program, or made up keeps nothing else; each is said to be left."""
    for name in ("damaged", "foreign", "empty", "linked", "made_up", "made_up_case"):
        shutil.copytree("monday", f"runs/{name}")
    Path("runs/damaged/run.json").write_text("{")
    Path("runs/foreign/run.json").write_text('{"schema": "other/1"}')
    Path("runs/empty/results.sqlite").unlink()
    Path("kept_results.sqlite").write_bytes(Path("monday/results.sqlite").read_bytes())
    Path("runs/linked/results.sqlite").unlink()
    Path("runs/linked/results.sqlite").symlink_to(Path("kept_results.sqlite").resolve())
    _change_results("made_up", "INSERT INTO about VALUES ('erased', 'many')")
    _change_results("made_up_case", """UPDATE cases SET body = CAST('{"metadata": {"customer": "C-1"}}' AS BLOB)""")
    before = Path("kept_results.sqlite").read_bytes()
    done = line(*FORGET, "--reason", "asked", "--run", "runs", "--json")

    assert done.status == 3
    left = done.document["unfinished"]
    assert len(left) == 6
    for name in ("damaged", "foreign", "empty", "linked", "made_up", "made_up_case"):
        assert any(str(Path("runs") / name) in reason for reason in left), name
    assert any("is a link, which is not followed" in reason for reason in left)
    assert Path("kept_results.sqlite").read_bytes() == before
    assert {each["place"]: each["count"] for each in done.document["deleted"]}["ledger"] == 8
    shutil.rmtree("runs")
    again = line(*FORGET, "--reason", "asked")
    assert (again.status, again.out.splitlines()[0]) == (0, "Nothing is kept about customer=C-1.")


def _change_results(run: str, statement: str) -> None:
    with closing(sqlite3.connect(f"runs/{run}/results.sqlite")) as connection:
        connection.execute(statement)
        connection.commit()


def test_links_in_a_folder_are_named_and_not_followed(line: Line):
    """Whoever can write there could have any file changed; what a person names is followed, link or not."""
    shutil.copytree("monday", "elsewhere/monday")
    shutil.copy("recorded.jsonl", "elsewhere/r.jsonl")
    Path("kept").mkdir()
    Path("kept/run").symlink_to(Path("elsewhere/monday").resolve(), target_is_directory=True)
    Path("kept/latest").symlink_to(Path("monday").resolve(), target_is_directory=True)
    Path("kept/r.jsonl").symlink_to(Path("elsewhere/r.jsonl").resolve())
    Path("kept/gone.jsonl").symlink_to("nowhere.jsonl")
    configure(CONFIG + 'runs = ["kept"]\nrecordings = ["kept/*.jsonl"]\n')
    before = {path: path.read_bytes() for path in Path("elsewhere").rglob("*") if path.is_file()}
    done = line(*FORGET, "--reason", "asked", "--json")

    assert done.status == 0
    links = [Path(each["where"]).name for each in done.document["look"] if "not followed" in each["what"]]
    assert sorted(links) == ["gone.jsonl", "r.jsonl", "run"], "latest leads to a run that was looked through"
    assert {path: path.read_bytes() for path in before} == before
    named = line(*FORGET, "--reason", "asked", "--recording", "kept/r.jsonl", "--run", "kept/run", "--json").document
    assert {each["place"] for each in named["deleted"] if each["count"]} == {"recordings", "runs", "labels"}
    assert Path("kept/r.jsonl").is_symlink()
    assert SECRET not in Path("elsewhere/r.jsonl").read_text()


def test_many_texts_to_look_at_are_cut(line: Line):
    """The first ten, and how many more."""

    async def add(ledger: Ledger) -> None:
        gate = Gate("mail", rules=[{"regex": "x"}], ledger=ledger)
        for number in range(12):
            await gate.check(f"{number} names C-1 \x1b[31m")

    run("sqlite:///adjudge.db", add, store_content="full")
    done = line(*FORGET, "--dry-run")

    assert "Look at these yourself, 12 texts" in done.out
    assert "  and 2 more; --json lists all" in done.out
    assert "\x1b" not in done.out


def test_no_address_of_the_server_deletes_what_is_kept():
    """It needs somebody who can run commands beside the database."""
    document = json.loads((Path(__file__).parents[3] / "docs" / "openapi.json").read_text("utf-8"))

    assert not [path for path in document["paths"] if "forget" in path or "eras" in path]
    assert not [path for path, methods in document["paths"].items() if "delete" in methods]
