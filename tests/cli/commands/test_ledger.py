"""``adjudge ledger``: what it prints, and with which status it ends."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import stat
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from adjudge import Approvals, Gate, JudgeResult, Ledger
from adjudge.guards import ToolCall, ToolGuard
from adjudge.ledger import create_signing_key, verify_export
from kit.audits import read_report
from kit.cli import ESCAPES, HIDDEN, ME, Line, isolate
from kit.environment import require
from kit.judges import names
from kit.ledgers import make_result, record, run

URL = "sqlite:///a.db"


@pytest.fixture(name="line")
def make_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Line:
    """The command line in an empty folder with a ledger of four entries."""
    isolate(monkeypatch, tmp_path)
    record(URL, make_result(judge=f"careful {ESCAPES}"), make_result(outcome="passed", score=0.9), {"n": 1})
    return Line(capsys)


def change(*statements: str) -> None:
    with closing(sqlite3.connect("a.db")) as connection:
        connection.execute("DROP TRIGGER adjudge_ledger_no_update")
        connection.execute("DROP TRIGGER adjudge_ledger_no_delete")
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def test_list_shows_entries_and_no_escape_sequence(line: Line):
    """A row for each, oldest first; what a judge is called cannot reach the terminal raw."""
    done = line("ledger", "list", "--ledger", "a.db")

    assert done.status == 0
    assert [row.split()[0] for row in done.out.splitlines()[1:]] == ["1", "2", "3", "4"]
    assert not HIDDEN.search(done.out)


@pytest.mark.parametrize("address", [URL, "a.db", "postgresql://db/x"])
def test_an_address_without_its_option_is_told_the_option(line: Line, address: str):
    """Most people write it so first."""
    ran = line("ledger", "verify", address)

    assert ran.status == 2
    assert f"write --ledger {address}; see adjudge ledger verify --help" in ran.err


def test_list_filters_and_tells_what_it_left_out(line: Line):
    """Each option narrows; of many, the last are shown."""
    failed = line("ledger", "list", "--ledger", URL, "--outcome", "failed", "--json").document
    last = line("ledger", "list", "--ledger", URL, "--last", "1")
    none = line("ledger", "list", "--ledger", URL, "--since", "2999-01-01", "--json").document

    assert [entry["seq"] for entry in failed["entries"]] == [2]
    assert "the last 1 of 4; --last 0 shows all" in last.err
    assert (none["schema"], none["matching"], none["entries"]) == ("adjudge/ledger-entries/1", 0, [])


def test_list_takes_a_subject_as_it_shows_it(line: Line):
    """How a digest begins is enough; a subject of another form is taken as a whole, and finding nothing is said."""
    record(URL, JudgeResult(outcome="passed", judge="careful", subject="ab12cd34" + "0" * 56))
    record(URL, JudgeResult(outcome="passed", judge="careful", subject="order-1"))
    seqs = {
        subject: [
            entry["seq"]
            for entry in line("ledger", "list", "--ledger", URL, "--subject", subject, "--json").document["entries"]
        ]
        for subject in ("ab12cd34" + "0" * 56, "ab12cd34" + "0" * 8, "ab12cd35", "order-1", "order-", "%")
    }
    none = line("ledger", "list", "--ledger", URL, "--subject", "ab12cd35")

    assert list(seqs.values()) == [[5], [5], [], [6], [], []]
    assert (none.status, none.out, none.err) == (0, "", "no entry matches\n")


def test_list_shows_the_entries_of_one_request(line: Line):
    """By the id of the approval, or the end of it that lists show: the request, the vote and the end."""

    async def ask() -> str:
        async with Ledger(URL) as ledger, Approvals(ledger) as approvals:
            idents = [await approvals.request(make_result(), "Send it?", approvers=[ME]) for _ in range(2)]
            await approvals.decide(idents[0], ME, True, "read it")
            return idents[0]

    ident = asyncio.run(ask())
    listed = [
        line("ledger", "list", "--ledger", URL, "--approval", text, "--json").document for text in (ident, ident[-12:])
    ]
    missing = line("ledger", "list", "--ledger", URL, "--approval", "nobody")

    assert listed[0] == listed[1]
    assert listed[0]["entries"][0]["kind"] == "approval.requested"
    assert {entry["payload"]["approval"] for entry in listed[0]["entries"]} == {ident}
    assert "approval.closed" in [entry["kind"] for entry in listed[0]["entries"]]
    assert (missing.status, "no approval" in missing.err) == (2, True)


def test_list_tells_what_happened(line: Line):
    """Who did what; of an entry that somebody appended in a form of his own, nothing is made up."""
    values = (
        ("decision", {"allowed": False, "decided_by": "rule"}, "blocked by rule"),
        ("decision", {"allowed": False, "pending": True}, "pending"),
        ("approval.requested", {"approvers": ["ana", "bob"], "required": 1}, "asked ana, bob; needs 1"),
        ("approval.voted", {"by": "ana", "approved": True, "accepted": True, "reason": "fine"}, "ana approves: fine"),
        ("approval.voted", {"by": "eve", "accepted": False, "refused_because": "double"}, "eve denies (does not count"),
        ("approval.voted", {"by": "first", "voter": "judge", "reason": "judge 'first' passed it"}, "judge 'first' pas"),
        ("approval.closed", {"status": "denied", "closed_by": [], "decided_by": "policy"}, "denied by policy"),
        ("override", {"by": ["ana"]}, "overruled by ana"),
        ("override", {"by": "ana", "audit": "x", "opinion": "qualified"}, "audit is qualified, says ana"),
        *[(kind, {"n": 1}, "") for kind in ("decision", "approval.voted", "approval.closed", "override")],
        *[(kind, {"by": {"x": [1]}, "status": 7, "approvers": 3}, "") for kind in ("approval.voted", "override")],
    )
    for kind, value, _ in values:
        run("sqlite:///b.db", lambda ledger, kind=kind, value=value: ledger.append(value, kind=kind))
    run("sqlite:///b.db", lambda ledger: ledger.erase(2, "why", "me"))
    done = line("ledger", "list", "--ledger", "b.db")
    rows = done.out.splitlines()[3:]

    assert done.status == 0
    assert "(erased)" in done.out.splitlines()[2]
    assert "of entry 2 by me" in rows[-1]
    for (kind, _, description), row in zip(values[1:], rows[:-1], strict=True):
        assert kind in row
        assert description in row
    assert "None" not in "".join(rows[8:12])


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
    change(*(f"DELETE FROM adjudge_ledger{name} WHERE seq = 4" for name in ("", "_columns", "_search", "_names")))

    assert kept.status == 0
    assert names(kept.err, "could not see", "follows the pinned head", "no public key")
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
    ("arguments", "status", "message"),
    [
        (["verify"], 2, "no ledger … give --ledger"),
        (["verify", "--ledger", "none.db"], 2, "no ledger at … sqlite:///none.db"),
        (["verify", "--ledger", "mysql://x/y"], 2, "url … sqlite:///FILE … postgresql://HOST/DATABASE"),
        (["verify", "--ledger", "a.db", "--file", "x"], 2, "--file … export … --ledger"),
        (["verify", "--file", "none.jsonl"], 2, "cannot read the export none.jsonl"),
        (["verify", "--ledger", "a.db", "--head", "x"], 2, "the head 'x' cannot be read"),
        (["verify", "--ledger", "a.db", "--public-key", "x"], 2, "the key 'x' cannot be read"),
        (
            ["list", "--ledger", "a.db", "--since", "soon"],
            2,
            "--since … a time like … 'soon'",
        ),
        (["list", "--ledger", "text.db"], 3, "sqlite:///text.db … cannot be read … not a database"),
        (["export", "a.db", "--ledger", "a.db"], 2, "cannot export to a.db: File exists"),
    ],
    ids=range(10),
)
def test_what_is_wrong_is_one_sentence(line: Line, arguments: list[str], status: int, message: str):
    """Names the thing, the value and the remedy; 2 for a wrong word, 3 for a store that failed."""
    Path("text.db").write_text("no database" * 100, "utf-8")
    done = line("ledger", *arguments)

    assert done.status == status
    assert names(done.sentence, *message.split(" … "))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[ledger]\n# url = 'a.db'\n", "[ledger] is empty, so nothing would be recorded … write url, or take it out"),
        ("[ledger]\nurl = 5\n", "[ledger]: url … a text in quotes … got 5"),
        ("[ledger]\nurll = 'x'\n", "unknown key 'urll' … did you mean 'url'?"),
    ],
    ids=["empty", "type", "key"],
)
def test_a_configuration_that_is_wrong_is_said(line: Line, text: str, message: str):
    """Unknown keys and other types are errors, as everywhere in the file."""
    Path("adjudge.toml").write_text(text, "utf-8")

    assert names(line("ledger", "verify").sentence, *message.split(" … "))


# ---------------------------------------------------------------- erasing


def test_erase_says_who_and_why(line: Line):
    """It is recorded as the operating system's user, unless --by names another."""
    done = line("ledger", "erase", "2", "--reason", "asked for", "--ledger", "a.db")
    other = line("ledger", "erase", "3", "--reason", "asked for", "--by", "Ada", "--ledger", "a.db", "--json").document
    mine, hers = (line("ledger", "show", place, "--ledger", "a.db", "--json").document for place in ("5", "6"))

    assert done.status == 0
    assert names(done.out, "entry 2", "erased", "recorded at 5")
    assert other == {"schema": "adjudge/ledger-erased/1", "seq": 3, "recorded_at": 6}
    assert (mine["kind"], mine["payload"]["by"], mine["payload"]["reason"]) == ("erasure", ME, "asked for")
    assert hers["payload"]["by"] == "Ada"
    assert line("ledger", "verify", "--ledger", "a.db").status == 0


def test_the_environment_does_not_say_who_erases(line: Line, monkeypatch: pytest.MonkeyPatch):
    """Anybody can set a variable."""
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "somebody-else")

    assert line("ledger", "erase", "2", "--reason", "asked for", "--ledger", "a.db").status == 0
    assert line("ledger", "show", "5", "--ledger", "a.db", "--json").document["payload"]["by"] == ME != "somebody-else"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["9", "--reason", "x", "--ledger", "a.db"], "the ledger has no entry 9"),
        (["1", "--reason", "x", "--ledger", "a.db"], "entry 1 is a genesis"),
        (["2", "--reason", " ", "--ledger", "a.db"], "an erasure needs --reason"),
        (["2", "--ledger", "a.db"], "missing option '--reason'"),
        (["2", "--reason", "x", "--ledger", "none.db"], "there is no ledger at sqlite:///none.db"),
    ],
    ids=range(5),
)
def test_erase_refuses_what_it_cannot_explain(line: Line, arguments: list[str], message: str):
    """No reason, nothing to erase, no ledger: nothing is written, and no ledger is made."""
    done = line("ledger", "erase", *arguments)

    assert done.status == 2
    assert names(done.sentence, *message.split(" … "))
    assert not Path("none.db").exists()
    assert len(line("ledger", "list", "--ledger", "a.db", "--json").document["entries"]) == 4


# ---------------------------------------------------------------- reporting


def make_ledger(*results: JudgeResult) -> None:
    """Another ledger, ``b.db``."""
    record("sqlite:///b.db", *results)


GOOD = make_result(outcome="passed", score=0.9, rule_results=())


@pytest.mark.parametrize(
    ("results", "opinion", "status"),
    [
        ([GOOD], "unqualified", 0),
        ([GOOD, make_result(rule_results=())], "qualified", 1),
        ([make_result()], "adverse", 1),
        ([{"n": 1}], "disclaimer", 3),
    ],
    ids=["unqualified", "qualified", "adverse", "disclaimer"],
)
def test_report_ends_as_its_opinion(line: Line, results: list[Any], opinion: str, status: int):
    """0, 1 or 3; a pipe gets Markdown that is read back, and --json the same as data."""
    make_ledger(*results)
    done = line("ledger", "report", "--ledger", "b.db")
    document = line("ledger", "report", "--ledger", "b.db", "--json").document

    assert (done.status, read_report(done.out).opinion) == (status, opinion)
    assert (document["schema"], document["opinion"]) == ("adjudge/audit/1", opinion)
    assert not HIDDEN.search(done.out)


def test_a_changed_ledger_is_something_found(line: Line):
    """Status 1 and not 3, whatever the opinion is called, also where a person gives it."""
    change("UPDATE adjudge_ledger SET subject = 'x' WHERE seq = 3")
    plain = line("ledger", "report", "--ledger", "a.db")
    named = line("ledger", "report", "--ledger", "a.db", "--opinion", "disclaimer", "--by", "Ada", "--reason", "seen")
    vouched = line(
        "ledger", "report", "--ledger", "a.db", "--opinion", "unqualified", "--by", "Ada", "--reason", "fine"
    )

    assert (plain.status, read_report(plain.out).opinion) == (1, "disclaimer")
    assert named.status == 1
    assert (vouched.status, "does not verify" in vouched.sentence) == (2, True)


def test_report_says_what_it_was_asked_for(line: Line):
    """Objectives, scope, agent and filters; a report on nothing is a disclaimer."""
    arguments = (
        "--objectives",
        "Is it?",
        "--scope",
        "replies",
        "--scope",
        "drafts",
        "--agent",
        "writer",
        "--execution",
        "x",
    )
    audit = read_report(line("ledger", "report", "--ledger", "a.db", *arguments, "--gate", "publish").out)
    late = read_report(line("ledger", "report", "--ledger", "a.db", "--since", "2999-01-01T00:00Z").out)

    assert (audit.objectives, audit.scope) == ("Is it?", ("replies", "drafts"))
    assert (audit.agent_id, audit.execution_id, audit.opinion) == ("writer", "x", "disclaimer")
    assert (late.opinion, late.scope) == ("disclaimer", ("since 2999-01-01T00:00:00.000000Z",))


def test_report_is_written_to_a_new_file(line: Line):
    """Its owner's alone, never over another file; what was said is said in short."""
    done = line("ledger", "report", "--ledger", "a.db", "--out", "report.md")
    again = line("ledger", "report", "--ledger", "a.db", "--out", "report.md")

    assert (done.status, done.out, done.err) == (1, "", "adverse: there are critical findings: 2\n")
    assert read_report(Path("report.md").read_text("utf-8")).opinion == "adverse"
    assert stat.S_IMODE(Path("report.md").stat().st_mode) == 0o600
    assert (again.status, again.sentence[:30]) == (2, "the report cannot be written t")


def test_a_persons_opinion_decides_the_status_and_can_be_recorded(line: Line):
    """With name and reason; --record makes it an override in the ledger, which the next report does not count."""
    arguments = ("--opinion", "unqualified", "--by", "Ada", "--reason", "known", "--record")
    done = line("ledger", "report", "--ledger", "a.db", *arguments)
    entry = line("ledger", "show", "5", "--ledger", "a.db", "--json").document
    audit = read_report(done.out)

    assert done.status == 0
    assert names(done.err, "recorded", "entry 5")
    assert (audit.opinion, audit.computed_opinion, audit.opinion_by) == ("unqualified", "adverse", "Ada")
    assert (entry["kind"], entry["payload"]["audit"], entry["payload"]["by"]) == ("override", audit.id, "Ada")
    assert line("ledger", "report", "--ledger", "a.db").status == 1


def test_an_export_is_reported_on_without_the_ledger(line: Line):
    """With the head that was pinned."""
    head = line("ledger", "export", "out.jsonl", "--ledger", "a.db").out.strip()
    Path("a.db").unlink()
    audit = read_report(line("ledger", "report", "--file", "out.jsonl", "--head", head).out)

    assert audit.basis is not None
    assert (audit.opinion, audit.basis.pinned_head) == ("adverse", True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--opinion", "fine", "--by", "Ada", "--reason", "x"], "--opinion … unqualified, qualified, adverse … fine"),
        (["--opinion", "adverse"], "--opinion, --by and --reason"),
        (["--by", "Ada"], "--opinion, --by and --reason"),
        (["--record"], "--record … another opinion"),
        (["--file", "x"], "--file … an export … --ledger … a ledger"),
        (["--opinion", "adverse", "--by", " ", "--reason", "x"], "another opinion … needs both"),
        (["--head", "x"], "head 'x' … cannot be read"),
    ],
    ids=range(7),
)
def test_what_is_wrong_with_a_report_is_one_sentence(line: Line, arguments: list[str], message: str):
    """An opinion needs a name and a reason, and nothing is written without."""
    done = line("ledger", "report", "--ledger", "a.db", *arguments)

    assert done.status == 2
    assert names(done.sentence, *message.split(" … "))


async def prepare(ledger: Ledger) -> None:
    """Make a ledger with its first entry."""
    async with ledger:
        await ledger.prepare()


def test_a_missing_key_names_the_command_that_makes_one(line: Line):
    """Which prints the public key, makes a file for its owner alone, and never replaces a key."""
    missing = line("ledger", "erase", "1", "--reason", "x", "--ledger", URL, "--key", "key.pem")
    made = line("ledger", "create-key", "key.pem")
    again = line("ledger", "create-key", "key.pem")
    asyncio.run(prepare(Ledger("sqlite:///signed.db", key="key.pem")))
    verified = line("ledger", "verify", "--ledger", "signed.db", "--public-key", made.out.strip())
    Path("ledger.pub").write_text(made.out, encoding="utf-8")
    by_file = line("ledger", "verify", "--ledger", "signed.db", "--public-key", "ledger.pub")

    assert by_file.out == verified.out
    assert missing.status == 2
    assert "`adjudge ledger create-key FILE` makes one" in missing.err
    assert (made.status, len(made.out.strip()), stat.S_IMODE(Path("key.pem").stat().st_mode)) == (0, 64, 0o600)
    assert (again.status, "name a new file" in again.err) == (2, True)
    assert names(verified.out, "in order", "signatures: pinned")


def test_a_signed_ledger_is_erased_with_its_key(line: Line):
    """Without it, nothing is written that would break the chain."""
    require("cryptography", find_spec("cryptography"), "pip install 'adjudge[sign]'")
    create_signing_key("key.pem")
    record("sqlite:///s.db", make_result(), key="key.pem")
    refused = line("ledger", "erase", "2", "--reason", "x", "--ledger", "s.db")
    done = line("ledger", "erase", "2", "--reason", "x", "--ledger", "s.db", "--key", "key.pem")

    assert (refused.status, "open it with that key" in refused.sentence) == (2, True)
    assert done.status == 0
    assert line("ledger", "verify", "--ledger", "s.db").status == 0


def test_approved_calls_that_may_not_have_run_are_listed(line: Line):
    """With the status of something found; nothing in a name reaches the terminal raw."""

    async def approve() -> None:
        async with Ledger("sqlite:///b.db") as ledger, Approvals(ledger) as approvals:
            people: dict[str, Any] = {"approvals": approvals, "ask": {"approvers": ["ana"]}, "show_content": True}
            guard = ToolGuard(Gate("deletes", rules=[{"contains": "x"}], on_rule="ask", **people), ledger=ledger)
            for name in ("lost", "made"):
                call = ToolCall(f"delete_{name}", {"path": "a"}, f"call-{name}", "run-1", server="files")
                held = await guard.check(call)
                await approvals.decide(held.approval_id or "", "ana", True)
                assert await guard.check(call)
            await guard.record_return(call)

    asyncio.run(approve())
    found = line("ledger", "unfinished", "--ledger", "b.db", "--at-work", "0")
    document = line("ledger", "unfinished", "--ledger", "b.db", "--at-work", "0", "--run", "run-1", "--json").document
    none = line("ledger", "unfinished", "--ledger", "b.db")
    absent = line("ledger", "unfinished", "--ledger", "c.db")

    assert (found.status, none.status, absent.status) == (1, 0, 2)
    assert names(found.out, "files: delete_lost", "run-1", "call-lost")
    assert "delete_made" not in found.out
    assert document["schema"] == "adjudge/unfinished-calls/1"
    assert [(call["tool"], call["server"], call["call"]) for call in document["calls"]] == [
        ("delete_lost", "files", "call-lost")
    ]
    assert none.out == (
        "every approved call is known to have been made (those of the last 600 s are left out: --at-work)\n"
    )
