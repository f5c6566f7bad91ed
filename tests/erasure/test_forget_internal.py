"""Forgetting a customer, or a content: in every place, nothing of another, and the ledger still verifies."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from adjudge import Approvals, Gate, Judge, Ledger, UsageError
from adjudge import run as run_cases
from adjudge.dataset import Label, load_labels, write_labels
from adjudge.erasure.choice import read_choice
from adjudge.erasure.forget import Places, check_erasure, forget
from adjudge.erasure.ledger import Order
from adjudge.erasure.report import ForgetReport
from adjudge.guards import ToolCall, ToolGuard, reset_monitor
from adjudge.labels import open_label_queue
from adjudge.ledger import create_signing_key, verify_export
from adjudge.models import ReplyCache
from adjudge.runs import open_run
from kit.erasures import OTHER, RUBRIC, SECRET, SUBJECT, Echo, Kept, count, fill, fill_ledger
from kit.ledgers import STORES, open_store
from kit.ledgers import run as use_ledger

ABOUT, ANOTHER = {"customer": "C-1"}, {"customer": "C-10"}


@pytest.fixture(name="kept")
def make_kept(tmp_path: Path) -> Kept:
    """What is kept about two customers whose ids resemble each other."""
    return asyncio.run(fill(tmp_path, f"sqlite:///{tmp_path / 'adjudge.db'}", about=ABOUT, other=ANOTHER))


def test_nothing_of_it_is_left_in_any_file(kept: Kept):
    """Not in a page that is free, nor in a log beside a database; and everything about the other customer is there."""
    before = kept.find(OTHER)
    assert kept.find(SECRET) == before
    report = kept.forget(customer="C-1")

    assert kept.find(SECRET) == []
    assert kept.find(OTHER) == before
    assert report.verified
    assert report.erased == 8
    assert report.unfinished == ()
    assert count(report) == {
        "ledger": 8, "approvals": 2, "kept replies": 2, "recordings": 2, "runs": 2, "labels": 4, "search index": 5
    }  # fmt: skip


def test_a_dry_run_says_the_same_and_deletes_nothing(kept: Kept):
    """The same counts, from the same search."""
    contents = {path: path.read_bytes() for path in kept.files if path.suffix == ".jsonl"}
    tried = kept.forget(customer="C-1", dry_run=True)

    assert tried.dry_run
    assert tried.seq is None
    assert kept.find(SECRET)
    assert {path: path.read_bytes() for path in contents} == contents
    assert count(tried) == count(kept.forget(customer="C-1"))


@pytest.mark.parametrize("kind", STORES)
def test_a_ledgers_database_forgets(kind: str, tmp_path: Path, require: Any):
    """Entries, requests, votes, pending decisions, columns and words, on either database."""
    with open_store(kind, tmp_path, require) as url:
        kept = asyncio.run(fill_ledger(tmp_path, url, about=ABOUT, other=ANOTHER))
        report = kept.forget(customer="C-1")
        texts = use_ledger(url, _dump)

    assert SECRET not in texts
    assert OTHER in texts
    assert report.verified
    assert report.unfinished == ()
    assert count(report) == {
        "ledger": 8, "approvals": 2, "kept replies": 2, "recordings": 2, "search index": 5
    }  # fmt: skip


async def _dump(ledger: Ledger) -> str:
    """All that every table of the database holds."""
    from sqlalchemy import MetaData, Table, inspect

    def read(connection: Any) -> str:
        tables = [Table(name, MetaData(), autoload_with=connection) for name in inspect(connection).get_table_names()]
        rows = [tuple(row) for table in tables for row in connection.execute(table.select())]
        cells = [bytes(cell) if isinstance(cell, bytes | memoryview) else cell for row in rows for cell in row]
        return " ".join(cell.decode("utf-8", "replace") if isinstance(cell, bytes) else str(cell) for cell in cells)

    from adjudge.ledger.columns import make_column_tables

    return str(await ledger.look(read, tables=make_column_tables()))


def test_by_subject_the_content_is_forgotten_wherever_it_is(kept: Kept):
    """One content, and what belongs to it; an almost equal one stays."""
    report = kept.forget(subject=SUBJECT)

    assert report.verified
    assert count(report)["approvals"] == 1
    entries = use_ledger(kept.url, _list_entries)
    assert all(entry.payload is None for entry in entries if entry.subject == SUBJECT and entry.kind != "erasure")
    assert any(f"{SECRET}!" in str(entry.payload) for entry in entries)
    assert f"{SECRET} 0" in (kept.folder / "data.jsonl").read_text()


async def _list_entries(ledger: Ledger) -> list[Any]:
    return [entry async for entry in ledger.query()]


def test_a_digest_is_enough_where_no_ledger_tells_of_the_content(kept: Kept):
    """What was judged without a ledger is in caches, recordings and labels all the same."""
    labels = [
        Label(case="1", rater="cy", value=True, subject=digest, comment="I read it") for digest in (SUBJECT, "f" * 64)
    ]
    write_labels(kept.folder / "other.jsonl", labels)
    places = Places(
        caches=(kept.folder / "cache.sqlite",),
        recordings=(kept.folder / "recorded.jsonl",),
        labels=(kept.folder / "other.jsonl",),
    )
    report = forget_in(places, subject=SUBJECT)

    assert count(report) == {"kept replies": 1, "recordings": 1, "labels": 1}
    assert [label.comment for label in load_labels(kept.folder / "other.jsonl")] == [None, "I read it"]


def forget_in(places: Places, *, subject: str | None = None, metadata: str | None = None) -> ForgetReport:
    """Forget in some places, with no ledger unless they name one."""
    order = Order(choice=read_choice(subject, metadata), reason="asked for", by="ana")
    return asyncio.run(forget(order, places))


@pytest.mark.parametrize(
    ("choice", "replies"), [({"customer": "C-1"}, 2), ({"subject": SUBJECT}, 1)], ids=["metadata", "subject"]
)
def test_files_that_come_back_from_a_backup_are_cleaned_again(kept: Kept, choice: dict[str, str], replies: int):
    """The entries that told of the content are erased by then; their digests, and who they were erased for, stay."""
    backup = {kept.folder / name: (kept.folder / name).read_bytes() for name in ("cache.sqlite", "recorded.jsonl")}
    kept.forget(**choice)
    for path, content in backup.items():
        path.write_bytes(content)
    other = kept.forget(customer="C-7")
    report = kept.forget(**choice)

    assert count(other) == {}, "what was erased for one is nothing of another's"
    assert count(report) == {"kept replies": replies, "recordings": replies}
    assert kept.find(OTHER)


@pytest.mark.slow_table
@pytest.mark.parametrize(
    ("about", "other", "chosen"),
    [
        ({"customer": "C-1"}, {"customer": "C-10"}, "customer=C-1"),
        ({"customer": "C-1"}, {"customer": "c-1"}, "customer=C-1"),
        ({"customer": "C-1"}, {"client": "C-1"}, "customer=C-1"),
        ({"customer": "C-1"}, {"customer": {"id": "C-1"}}, "customer=C-1"),
        ({"customer": "C-1"}, {"customer": ["C-1", "C-2"]}, "customer=C-1"),
        ({"customer": {"id": "C-1"}}, {"customer": "C-1"}, "customer.id=C-1"),
        ({"customer.id": "C-1"}, {"customer": {"id": "C-2"}}, "customer.id=C-1"),
        ({"customer": 17}, {"customer": 170}, "customer=17"),
        ({"customer": True}, {"customer": 1}, "customer=true"),
        ({"customer": "%"}, {"customer": "C-1"}, "customer=%"),
        ({"customer": "C_1"}, {"customer": "C-1"}, "customer=C_1"),
        ({"customer": "a'b\"c\\"}, {"customer": "a'b"}, "customer=a'b\"c\\"),
        ({"customer": "a=b"}, {"customer": "a"}, "customer=a=b"),
        ({"customer": "x\0y"}, {"customer": "x"}, "customer=x\0y"),
        ({"customer": "Zoë\n你"}, {"customer": "Zoe"}, "customer=Zoë\n你"),
        ({"customer": "y" * 1_000}, {"customer": "y" * 1_000_000}, "customer=" + "y" * 1_000),
    ],
    ids=range(16),
)
def test_what_only_resembles_it_stays(tmp_path: Path, about: Any, other: Any, chosen: str):
    """A value is compared as a whole and at its own place; nothing in it is a wildcard, an end or an order."""
    kept = asyncio.run(fill_ledger(tmp_path, f"sqlite:///{tmp_path / 'a.db'}", about=about, other=other))
    name, _, value = chosen.partition("=")
    report = kept.forget(**{name: value})

    assert report.verified
    assert count(report)["approvals"] == 2
    assert kept.find(SECRET) == []
    assert "a.db" in kept.find(OTHER)


@pytest.mark.parametrize("choice", [(None, None), ("0" * 64, "a=b"), ("abc", None), (None, "customer"), (None, "=x"),
                                    (None, "customer="), (None, "customer=" + "x" * 1_001)])  # fmt: skip
def test_a_choice_is_one_digest_or_one_value(choice: tuple[str | None, str | None]):
    """Both, neither, or half of one is refused before anything is looked at."""
    with pytest.raises(UsageError):
        read_choice(*choice)


# ---------------------------------------------------------------- what a person looks at


def test_texts_about_others_that_name_it_are_never_deleted_alone(tmp_path: Path):
    """An entry about another customer, or about a list of them, is named with its place, and stays."""
    url = f"sqlite:///{tmp_path / 'a.db'}"
    kept = asyncio.run(fill_ledger(tmp_path, url, about=ABOUT, other=ANOTHER))

    async def add(ledger: Ledger) -> list[int]:
        gate = Gate("mail", rules=[{"regex": "x"}], ledger=ledger)
        contents = (
            ("A reply that names C-1.", {"customer": "C-7"}),
            ("C-10 and C-1x", {}),
            (SECRET, {"customer": "C-8"}),
        )
        return [(await gate.check(content, metadata=about)).ledger_seq or 0 for content, about in contents]

    named, resembling, alike = use_ledger(url, add, store_content="full")
    report = kept.forget(customer="C-1")
    look = {each.where: each.what for each in report.look if each.place == "ledger"}

    assert look == {str(named): "decision, names it in content", str(alike): "decision about an equal content"}
    assert str(resembling) not in look
    assert "names C-1" in str(use_ledger(url, lambda ledger: ledger.read(named)).payload)


@pytest.mark.parametrize(
    ("about", "chosen"),
    [({"customer": "Zoe\u0301"}, "customer=Zo\u00e9"), ({"customer": [17, 18]}, "customer=17")],
    ids=["accents written otherwise", "numbers in a list"],
)
def test_what_may_be_meant_is_named_and_stays(tmp_path: Path, about: Any, chosen: str):
    """A name that looks the same, and a list of numbers: a report that finds nothing would be believed."""
    kept = asyncio.run(fill(tmp_path, f"sqlite:///{tmp_path / 'a.db'}", about=about, other=ANOTHER))
    name, _, value = chosen.partition("=")
    report = kept.forget(**{name: value})

    assert count(report) == {}
    assert {"ledger", "approvals", "runs"} <= {each.place for each in report.look}
    assert "a.db" in kept.find(SECRET)


def test_a_whole_number_is_one_however_a_program_wrote_it(tmp_path: Path):
    """A ledger writes 17 for 17.0, and the files of a run do not."""
    kept = asyncio.run(fill(tmp_path, f"sqlite:///{tmp_path / 'a.db'}", about={"customer": 17.0}, other=ANOTHER))
    report = kept.forget(customer="17")

    assert count(report)["runs"] == 2
    assert kept.find(SECRET) == []


@pytest.mark.parametrize("value", ["1000", "1000.0", "1e3"])
def test_a_number_is_found_however_it_is_spelt(tmp_path: Path, value: str):
    """A ledger writes 1000 for 1000.0, and who asks writes it as JSON has it."""
    url = f"sqlite:///{tmp_path / 'a.db'}"

    async def check(ledger: Ledger, number: float) -> None:
        gate = Gate("mail", rules=[{"regex": "x"}], ledger=ledger)
        await gate.check(f"About {number}.", metadata={"customer": number})

    for number in (1000.0, 10_000, 1_000_001):
        use_ledger(url, lambda ledger, number=number: check(ledger, number))
    kept = Kept(folder=tmp_path, url=url)

    assert count(kept.forget(customer=value))["ledger"] == 1
    assert count(kept.forget(customer="1000")) == {}


def test_words_of_entries_that_are_kept_are_listed(tmp_path: Path):
    """The reason that a person gave for something else may name somebody; it is not erased alone."""
    url = f"sqlite:///{tmp_path / 'a.db'}"
    reasons = ["for C-1", "for C-10"]
    named, other = [
        use_ledger(url, lambda ledger, why=why: reset_monitor(ledger, "mail", by="ana", reason=why)) for why in reasons
    ]
    look = Kept(folder=tmp_path, url=url).forget(customer="C-1").look

    assert [(each.where, each.what) for each in look] == [(str(named), "monitor.reset, names it in reason")]
    assert use_ledger(url, lambda ledger: ledger.read(named)).payload["reason"] == "for C-1"
    assert use_ledger(url, lambda ledger: ledger.read(other)).payload["reason"] == "for C-10"


def test_a_dry_run_lists_decisions_about_contents_that_only_a_run_tells_of(kept: Kept):
    """As the call itself does: what names nobody is for a person to look at."""

    async def check(ledger: Ledger) -> int | None:
        return (await Gate("mail", rules=[{"regex": "x"}], ledger=ledger).check(f"{SECRET} 0")).ledger_seq

    seq = use_ledger(kept.url, check)
    tried = kept.forget(customer="C-1", dry_run=True)

    assert (str(seq), "decision about an equal content") in {(each.where, each.what) for each in tried.look}
    assert tried.look == kept.forget(customer="C-1").look


def test_what_cannot_be_reached_is_said(kept: Kept):
    """Providers, exports, backups; the data set by its lines; and a report that was saved in the run's folder."""
    (kept.folder / "monday" / "saved.html").write_text(f"<p>C-1: {SECRET}</p>")
    report = kept.forget(customer="C-1")
    words = {each.place: each.what for each in report.out_of_reach}

    assert words["data.jsonl"] == "2 rows: 1, 3"
    assert "saved.html" in words["saved reports"]
    assert {"model providers", "exports, saved reports", "backups"} <= words.keys()
    assert (kept.folder / "monday" / "saved.html").is_file()


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "too large"])
def test_data_that_a_manifest_names_are_read_from_a_regular_file_alone(
    kept: Kept, monkeypatch: pytest.MonkeyPatch, kind: str
):
    """A manifest may be a stranger's, and name what never ends, or by a link what is called otherwise."""
    path = kept.folder / "other.jsonl"
    if kind == "link":
        path.symlink_to(kept.folder / "data.jsonl")
    elif kind == "pipe":
        if not hasattr(os, "mkfifo"):
            pytest.skip("only POSIX has pipes with a name")
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        monkeypatch.setattr("adjudge.erasure.files.LARGEST", 1_000)
        path.write_text((kept.folder / "data.jsonl").read_text() + " " * 1_000)
    file = kept.folder / "monday" / "run.json"
    manifest = json.loads(file.read_text())
    file.write_text(json.dumps(manifest | {"dataset": manifest["dataset"] | {"path": str(path)}}))
    report = forget_in(Places(runs=(kept.folder / "monday",)), metadata="customer=C-1")

    assert [each.where for each in report.look if "not looked through" in each.what] == [str(path)]
    assert not [each for each in report.out_of_reach if each.place == "other.jsonl"]
    assert count(report)["runs"] == 2


# ---------------------------------------------------------------- the record


def test_the_record_names_what_was_chosen_by_a_keyed_digest(kept: Kept):
    """A person with the value can check it beside the ledger; an export holds neither the value nor what finds it."""
    report = kept.forget(customer="C-1")
    assert report.seq is not None

    async def work(ledger: Ledger) -> tuple[Any, list[bool | None]]:
        head = await ledger.export(kept.folder / "export.jsonl")
        assert verify_export(kept.folder / "export.jsonl", head=head)
        choices = [read_choice(None, f"customer={value}") for value in ("C-1", "C-10")]
        entry = await ledger.read(report.seq or 0)
        return entry.payload, [await check_erasure(ledger, report.seq or 0, choice) for choice in choices]

    payload, same = use_ledger(kept.url, work)
    assert same == [True, False]
    assert (payload["by"], payload["reason"], payload["bodies"]) == ("ana", "asked for", 8)
    assert payload["chosen"]["digest"].startswith("hmac-sha256:")
    assert 'C-1"' not in json.dumps(payload)
    with closing(sqlite3.connect(kept.folder / "adjudge.db")) as connection:
        key = connection.execute("SELECT key FROM adjudge_erasure_key").fetchone()[0]
    assert key not in (kept.folder / "export.jsonl").read_text()


def test_a_second_call_finds_nothing_and_records_nothing(kept: Kept):
    """The same command again is harmless; ``erased`` of the verification names each record."""
    first, second = kept.forget(customer="C-1"), kept.forget(customer="C-1")

    assert second.seq is None
    assert second.total == 0
    assert (second.entries, second.erased) == (first.entries, first.erased)


def test_a_change_cannot_be_hidden_as_an_erasure(kept: Kept):
    """A payload that somebody drops by hand is missing, though others were erased."""
    kept.forget(customer="C-1")
    with closing(sqlite3.connect(kept.folder / "adjudge.db")) as connection:
        connection.execute("DROP TRIGGER adjudge_ledger_no_update")
        kept_entries = "SELECT max(seq) FROM adjudge_ledger WHERE payload IS NOT NULL AND kind = 'decision'"
        seq = connection.execute(kept_entries).fetchone()[0]
        connection.execute("UPDATE adjudge_ledger SET payload = NULL WHERE seq = ?", (seq,))
        connection.commit()
    verification = use_ledger(kept.url, lambda ledger: ledger.verify())

    assert (verification.code, verification.seq) == ("payload_missing", seq)


@pytest.mark.parametrize("step", ["caches", "runs", "ledger"])
def test_what_was_interrupted_is_finished_by_the_next_call(kept: Kept, monkeypatch: pytest.MonkeyPatch, step: str):
    """Killed before any of the places, it leaves what the next call needs to find the rest."""
    import adjudge.erasure.forget as module
    from adjudge.erasure.ledger import LedgerErasure

    def stop(*_: Any, **__: Any) -> Any:
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        places = {"caches": (module, "forget_in_recording"), "runs": (module, "forget_in_run"),
                  "ledger": (LedgerErasure, "erase")}  # fmt: skip
        patch.setattr(*places[step], stop)
        with pytest.raises(RuntimeError, match="killed"):
            kept.forget(customer="C-1")
    report = kept.forget(customer="C-1")

    assert kept.find(SECRET) == []
    assert report.verified
    assert count(report)["ledger"] == 8


def test_a_signed_ledger_stays_signed(tmp_path: Path, require: Any):
    """Every record is signed with the ledger's key, and the chain verifies with the public one."""
    from importlib.util import find_spec

    require("cryptography", find_spec("cryptography"), "pip install 'adjudge[sign]'")
    public_key = create_signing_key(tmp_path / "key.pem")

    async def work() -> Any:
        async with Ledger(
            f"sqlite:///{tmp_path / 'a.db'}", key=str(tmp_path / "key.pem"), store_content="full"
        ) as ledger:
            await Gate("mail", rules=[{"regex": "x"}], ledger=ledger).check(SECRET, metadata=ABOUT)
            order = Order(choice=read_choice(None, "customer=C-1"), reason="asked", by="ana")
            report = await forget(order, Places(ledger=ledger))
            return report, await ledger.verify(public_key=public_key)

    report, verification = asyncio.run(work())
    assert report.erased == 1
    assert verification
    assert verification.signatures == "pinned"


def test_a_file_that_somebody_reads_is_cleared_by_the_next_call(kept: Kept):
    """While a reader holds the log open, the text may be in it: the command says so, and can be repeated."""
    with closing(sqlite3.connect(kept.folder / "adjudge.db")) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM adjudge_ledger").fetchone()
        first = kept.forget(customer="C-1")
        reader.execute("ROLLBACK")
    assert any("another process is reading" in problem for problem in first.unfinished)

    second = kept.forget(customer="C-1")
    assert second.unfinished == ()
    assert kept.find(SECRET) == []


# ---------------------------------------------------------------- everything fails closed


def test_a_request_about_it_is_closed_and_opens_nothing(tmp_path: Path):
    """One that was open is denied; one that was approved lets nothing through any more, and says why."""
    url = f"sqlite:///{tmp_path / 'a.db'}"

    async def ask(ledger: Ledger) -> tuple[str, str]:
        approvals = Approvals(ledger)
        gate = _make_gate(ledger, approvals)
        held = [await gate.check(text, metadata=ABOUT) for text in (SECRET, f"{SECRET}!")]
        first, second = (decision.approval_id or "" for decision in held)
        await approvals.decide(first, "ana", True, "yes")
        return first, second

    approved, opened = use_ledger(url, ask)
    report = Kept(folder=tmp_path, url=url).forget(customer="C-1")

    async def use(ledger: Ledger) -> list[Any]:
        approvals = Approvals(ledger)
        told = []
        for ident in (approved, opened):
            approval = await approvals.get(ident)
            assert (approval.message, approval.content, dict(approval.metadata)) == ("", None, {})
            for call in (
                lambda ident=ident: approvals.wait(ident),
                lambda ident=ident: _make_gate(ledger, approvals).resume(ident),
            ):
                with pytest.raises(UsageError) as caught:
                    await call()
                told.append(str(caught.value))
        assert (await approvals.get(opened)).status == "denied"
        assert await approvals.list_pending() == ()
        return told

    told = use_ledger(url, use)
    assert report.verified
    assert "was erased" in told[0]
    assert "not any more" in told[1]


def _make_gate(ledger: Ledger, approvals: Approvals) -> Gate:
    options: Any = {"on_failed": "ask", "approvals": approvals, "ask": {"approvers": ["ana"]}, "wait": False}
    return Gate("mail", rules=[{"regex": "x"}], show_content=True, ledger=ledger, **options)


def test_a_run_that_lost_cases_is_not_resumed_and_its_figures_stay(kept: Kept):
    """Outcomes, scores and labels are those of before; the texts are gone; labelling and resuming are refused."""
    with open_run(kept.folder / "monday") as run:
        before = [(item.case.id, item.result.outcome, item.result.score, item.case.label) for item in run.items()]
        contents = list(run.store.list_contents())
    kept.forget(customer="C-1")
    with open_run(kept.folder / "monday") as run:
        items = list(run.items())
        assert list(run.store.list_contents()) == contents
    queue = open_label_queue(kept.folder / "monday")
    with pytest.raises(UsageError, match="deleted by `adjudge forget`"):
        queue.record("dan", "case-0", True)
    queue.close()

    assert [(item.case.id, item.result.outcome, item.result.score, item.case.label) for item in items] == before
    assert [item.erased for item in items] == [True, False, True, False]

    async def resume() -> None:
        judge = Judge(Echo(), name="echo")
        await run_cases(kept.folder / "data.jsonl", judge, RUBRIC, out=kept.folder / "monday", resume=True)

    with pytest.raises(UsageError, match="cannot be resumed: 2 of its cases were deleted"):
        asyncio.run(resume())


def test_a_replay_that_lacks_a_row_says_that_some_were_deleted(kept: Kept):
    """The rows of the other customer are answered; a missing one is undecided, and the file says why."""
    kept.forget(customer="C-1")
    judge = Judge(f"replay:{kept.folder / 'recorded.jsonl'}")

    async def judge_both() -> list[Any]:
        return [await judge.evaluate(text, RUBRIC, task=f"About: {text}") for text in (SECRET, OTHER)]

    gone, there = asyncio.run(judge_both())
    assert (gone.outcome, gone.undecided_because) == ("undecided", "error")
    assert "2 replies were deleted from it by `adjudge forget`" in gone.detail
    assert there.outcome == "failed"


def test_a_stopped_run_of_an_agent_does_not_go_on(tmp_path: Path):
    """Its refusals are erased, and it is not trusted as if there had been none."""
    url = f"sqlite:///{tmp_path / 'a.db'}"

    async def check(ledger: Ledger, number: int) -> Any:
        gate = Gate("pay", rules=[{"regex": "never"}], ledger=ledger)
        guard = ToolGuard(gate, ledger=ledger, most_refusals=2)
        return await guard.check(ToolCall("pay", {"to": SECRET, "n": number}, call_id=f"c{number}", run_id="run-1"))

    for number in range(2):
        use_ledger(url, lambda ledger, number=number: check(ledger, number))
    subjects = {entry.subject for entry in use_ledger(url, _list_entries) if entry.kind == "decision"}
    for subject in subjects:
        Kept(folder=tmp_path, url=url).forget(subject=subject)
    verdict = use_ledger(url, lambda ledger: check(ledger, 9))

    assert not verdict
    assert verdict.because == "stopped"
    assert verdict.decision is not None
    assert "refusals of the run were deleted" in verdict.decision.detail


@pytest.mark.parametrize("has_votes", [True, False], ids=["voted", "closed without a vote"])
def test_reasons_that_are_left_of_a_request_without_metadata_are_deleted(tmp_path: Path, has_votes: bool):
    """``Approvals.forget``, as after ``keep_for``, leaves no message; what people gave as their reasons it leaves."""
    url = f"sqlite:///{tmp_path / 'a.db'}"

    async def ask(ledger: Ledger) -> None:
        approvals = Approvals(ledger)
        held = await _make_gate(ledger, approvals).check("Held.")
        await approvals.decide(held.approval_id or "", "ana", True, f"because {SECRET}")
        await approvals.forget(held.approval_id or "")

    use_ledger(url, ask)
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        if not has_votes:
            connection.execute("UPDATE adjudge_votes SET reason = ''")
            connection.commit()
    report = Kept(folder=tmp_path, url=url).forget(subject=sha256(b"Held.").hexdigest())
    again = Kept(folder=tmp_path, url=url).forget(subject=sha256(b"Held.").hexdigest())

    assert count(report)["approvals"] == 1
    assert count(again) == {}
    assert Kept(folder=tmp_path, url=url).find(SECRET) == []


# ---------------------------------------------------------------- single places


@pytest.mark.parametrize("name", ["labels.csv", "labels.tsv", "labels.json", "labels.jsonl.gz", "labels.parquet"])
def test_labels_that_are_no_json_lines_are_refused_before_anything_is_deleted(kept: Kept, name: str):
    """Read as lines of JSON they hold nothing, and nothing would be said of what they keep."""
    (kept.folder / name).write_bytes(b"case,rater,value,comment\n1,cy,true,C-1 lives there\n")
    places = Places(labels=(kept.folder / name,), recordings=(kept.folder / "recorded.jsonl",))
    before = kept.find(SECRET)

    with pytest.raises(UsageError):
        forget_in(places, subject=SUBJECT)
    assert kept.find(SECRET) == before


def test_lines_that_cannot_be_read_are_listed(kept: Kept):
    """What they are about is not known, and a report without them would be believed; what is no digest is none."""
    for name in ("recorded.jsonl", "labels.jsonl"):
        path = kept.folder / name
        path.write_text(f'\nC-1 {{\n["C-1"]\n{{"subject": [], "run": [], "case": {{}}}}\n{path.read_text()}')
    report = kept.forget(customer="C-1")

    assert [(each.place, Path(each.where).name, each.what) for each in report.look] == [
        ("recordings", "recorded.jsonl", "no JSON objects, so not looked through: 2 lines: 2, 3"),
        ("labels", "labels.jsonl", "no JSON objects, so not looked through: 2 lines: 2, 3"),
    ]
    assert (count(report)["recordings"], count(report)["labels"]) == (2, 4)
    assert (kept.folder / "labels.jsonl").read_text().startswith("C-1 {\n")


def test_a_filled_in_list_of_cases_loses_the_cases(kept: Kept):
    """The texts of the case stand beside its label; the label stays, and so does a row that nobody filled in."""
    rows = [
        {"case": "1", "run": "r", "rater": rater, "kind": "person", "value": value, "subject": subject, "content": text,
         "task": None, "context": [text], "reference": ""}
        for rater, value, subject, text in (
            ("cy", True, SUBJECT, SECRET), (None, None, SUBJECT, SECRET), ("cy", False, "0" * 64, OTHER))
    ]  # fmt: skip
    path = kept.folder / "list.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    report = forget_in(Places(labels=(path,)), subject=SUBJECT)
    again = forget_in(Places(labels=(path,)), subject=SUBJECT)

    assert [each.what for each in report.deleted if each.count] == ["cases in list.jsonl"]
    assert (count(report), count(again)) == ({"labels": 2}, {})
    assert SECRET not in path.read_text()
    assert json.loads(path.read_text().splitlines()[2]) == rows[2]
    assert [(label.subject, label.value) for label in load_labels(path)] == [(SUBJECT, True), ("0" * 64, False)]


def test_labels_of_a_run_in_another_file_lose_their_comments(kept: Kept):
    """That file has no texts of the cases; the run says whose they are."""
    place = kept.folder / "elsewhere.sqlite"
    queue = open_label_queue(kept.folder / "monday", store=place)
    for number in range(2):
        queue.record("ben", f"case-{number}", True, comment=f"I read: {(SECRET, OTHER)[number]}")
    queue.close()
    report = forget_in(Places(labels=(place,), runs=(kept.folder / "monday",)), metadata="customer=C-1")

    assert [each.what for each in report.deleted if each.place == "labels"] == ["comments"]
    assert SECRET not in place.read_bytes().decode("latin-1")
    assert OTHER in place.read_bytes().decode("latin-1")


def test_labels_of_a_data_set_are_found_by_the_contents_that_the_ledger_tells_of(kept: Kept):
    """A file of labels keeps no metadata of the cases that it takes in."""
    place, data = kept.folder / "elsewhere.sqlite", kept.folder / "some.jsonl"
    data.write_text("".join(json.dumps({"id": text[:3], "content": text}) + "\n" for text in (SECRET, OTHER)))
    queue = open_label_queue(data, store=place)
    for text in (SECRET, OTHER):
        queue.record("ben", text[:3], True, comment=f"I read: {text}")
    queue.close()
    data.unlink()

    async def work(ledger: Ledger) -> ForgetReport:
        order = Order(choice=read_choice(None, "customer=C-1"), reason="asked for", by="ana")
        return await forget(order, Places(ledger=ledger, labels=(place,)))

    assert count(use_ledger(kept.url, work))["labels"] == 1
    assert SECRET not in place.read_bytes().decode("latin-1")
    assert OTHER in place.read_bytes().decode("latin-1")


def test_replies_of_earlier_versions_are_named(tmp_path: Path):
    """A reply that does not say what it is about is not deleted by guessing."""
    kept = asyncio.run(fill_ledger(tmp_path, f"sqlite:///{tmp_path / 'a.db'}", about=ABOUT, other=ANOTHER))
    with closing(sqlite3.connect(tmp_path / "cache.sqlite")) as connection:
        rows = connection.execute("SELECT key, body FROM replies").fetchall()
        for key, body in rows:
            members = {name: value for name, value in json.loads(body).items() if name != "subject"}
            connection.execute("UPDATE replies SET body = ? WHERE key = ?", (json.dumps(members).encode(), key))
        connection.commit()
    report = kept.forget(customer="C-1")

    assert any("4 replies do not say" in each.what for each in report.look)
    with ReplyCache(tmp_path / "cache.sqlite") as cache:
        assert len(list(cache.entries())) == 4


def test_rows_of_earlier_recordings_are_found_by_their_prompt(tmp_path: Path):
    """They hold the content between its fences."""
    kept = asyncio.run(fill_ledger(tmp_path, f"sqlite:///{tmp_path / 'a.db'}", about=ABOUT, other=ANOTHER))
    path = tmp_path / "recorded.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps({k: v for k, v in row.items() if k != "subject"}) + "\n" for row in rows))
    path.chmod(0o640)
    kept.forget(customer="C-1")

    assert SECRET not in path.read_text()
    assert path.read_text().count(OTHER) >= 2
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_file_of_labels_keeps_what_was_answered(kept: Kept):
    """Comments go, values stay, and the file is read as before."""
    before = load_labels(kept.folder / "labels.jsonl")
    kept.forget(customer="C-1")
    after = load_labels(kept.folder / "labels.jsonl")

    assert [(label.case, label.rater, label.value) for label in after] == [
        (label.case, label.rater, label.value) for label in before
    ]
    assert [label.comment is None for label in after] == [True, False, True, False]


def test_a_group_that_names_it_is_hidden_and_stays_a_group(tmp_path: Path):
    """Intervals count by groups, so the cases of a customer's group stay together, under another name."""
    rows = [
        {"id": str(number), "content": f"{SECRET} {number}", "group": "C-1", "metadata": ABOUT} for number in range(3)
    ]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    async def judge_all() -> None:
        await run_cases(tmp_path / "data.jsonl", Judge(Echo(), name="echo"), RUBRIC, out=tmp_path / "monday")

    asyncio.run(judge_all())
    use_ledger(f"sqlite:///{tmp_path / 'a.db'}", lambda ledger: ledger.prepare())
    Kept(folder=tmp_path, url=f"sqlite:///{tmp_path / 'a.db'}").forget(customer="C-1")
    with open_run(tmp_path / "monday") as run:
        groups = {item.case.group for item in run.items()}

    assert len(groups) == 1
    assert groups.pop().startswith("hmac-sha256:")  # type: ignore[union-attr]


def test_a_run_that_is_being_written_is_done_later(kept: Kept):
    """Everything else is deleted; what is left is said, and the next call does it."""
    from adjudge.runs.folder import RunLock

    lock = RunLock(kept.folder / "monday")
    lock.acquire()
    try:
        first = kept.forget(customer="C-1")
    finally:
        lock.release()

    assert any("being written by another process" in problem for problem in first.unfinished)
    kept.forget(customer="C-1")
    assert kept.find(SECRET) == []
