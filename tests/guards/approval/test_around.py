"""Around requests for approval: what is kept where, how they are found, and what people teach a rubric."""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adjudge import Approvals, Decision, Ledger, UsageError, open_dataset
from adjudge.guards import Approval, QueueOrder, QueueReader
from adjudge.ledger import LedgerError
from kit.approvals import WHO, ask, make_result, summarise, try_to, use, with_nan
from kit.clock import Clock
from kit.judges import complaint
from kit.ledgers import SECRET, find, make_chain_result, verify
from kit.ledgers import make_result as make_quoting_result

# ---------------------------------------------------------------- what is kept where


def test_what_quotes_the_content_is_a_digest_in_the_ledger(url: str, tmp_path: Path):
    """Message, reasoning and reply, by default; the table beside it holds what people read, until it is forgotten."""
    path = tmp_path / "adjudge.db"

    async def work(approvals: Approvals, ident: str) -> Approval:
        with pytest.raises(UsageError, match="is open, and people have to read it"):
            await approvals.forget(ident)
        await approvals.decide(ident, "ana", True, "a reason in clear")
        return await approvals.forget(ident)

    async def go(approvals: Approvals) -> Approval:
        ident = await approvals.request(make_quoting_result(), f"Publish {SECRET}?", content=SECRET, **WHO)
        return await work(approvals, ident)

    approval = use(url, go)
    payloads = [str(entry.payload) for entry in find(url)]
    with closing(sqlite3.connect(path)) as connection:
        bodies = str(connection.execute("SELECT body FROM adjudge_approvals").fetchall())

    assert SECRET not in "".join(payloads)
    assert "a reason in clear" in "".join(payloads)
    assert SECRET not in bodies
    assert (approval.message, approval.reason, approval.content, approval.score) == ("", "", None, 0.25)
    assert approval.result is not None
    assert (approval.result.score, approval.result.criteria, approval.result.reasoning) == (0.25, (), "")


def test_people_read_what_was_judged(url: str):
    """Criterion by criterion, without the replies it was read from; a result that cannot be read again is left out."""
    chain = make_chain_result(make_quoting_result(), make_quoting_result())

    async def go(approvals: Approvals) -> list[Approval]:
        odd = with_nan("confidence")
        about = (make_quoting_result(), chain, odd)
        return [await approvals.get(await approvals.request(item, "Publish it?", **WHO)) for item in about]

    one, several, odd = use(url, go)

    assert [(item.name, item.score, item.reasoning) for item in one.result.criteria] == [("privacy", 0.25, SECRET)]
    assert [(item.raw_response, item.earlier_responses, item.reasoning) for item in several.result.results] == [
        (None, (), SECRET),
        (None, (), SECRET),
    ]
    assert (odd.result, odd.outcome) == (None, "failed")


def test_a_table_that_tells_of_another_result_is_no_request(url: str, tmp_path: Path):
    """A person who is shown a pass must not be deciding about a failure."""

    async def work(approvals: Approvals, ident: str) -> None:
        with closing(sqlite3.connect(tmp_path / "adjudge.db")) as connection, connection:
            ((body,),) = connection.execute("SELECT body FROM adjudge_approvals").fetchall()
            data = json.loads(body)
            data["result"]["outcome"] = "passed"
            connection.execute("UPDATE adjudge_approvals SET body = ?", [json.dumps(data)])
        with pytest.raises(LedgerError, match="cannot be read from its table"):
            await approvals.get(ident)

    ask(url, work)


def test_a_full_ledger_keeps_the_texts(url: str):
    """As ``store_content`` says."""

    async def go() -> None:
        async with Ledger(url, store_content="full") as ledger, Approvals(ledger) as approvals:
            await approvals.request(make_quoting_result(), "Publish it?", **WHO)

    asyncio.run(go())

    (entry,) = find(url, kind="approval.requested")
    assert entry.payload is not None
    assert (entry.payload["message"], entry.payload["result"]["reasoning"]) == ("Publish it?", SECRET)


# ---------------------------------------------------------------- looking


def test_requests_that_somebody_can_decide_are_counted(url: str):
    """Open ones that ask them and that they have not decided, in time; of some gates where those are named."""
    clock = Clock()

    async def work(approvals: Approvals) -> list[int]:
        held = Decision(gate="publish", allowed=False, decided_by="policy", result=make_result(), subject="5" * 64)
        terms_by_name: Any = {"open": {}, "late": {"expires_in": 60}, "denied": {}, "pending": {}}
        made = {name: await approvals.request(held, "?", **(WHO | terms)) for name, terms in terms_by_name.items()}
        for about, person in ((make_result(), "ana"), (make_result(), "cy")):
            await approvals.request(about, "?", approvers=[person])
        await approvals.decide(made["denied"], "ana", False, "no")
        await approvals.decide(made["pending"], "ana", False, "no", undo_seconds=300)
        clock.pass_by(61)
        return [
            await approvals.count_open("ana"),
            await approvals.count_open("bob"),
            await approvals.count_open("ana", gates=["publish"]),
            await approvals.count_open("ana", gates=["other"]),
        ]

    assert use(url, work, clock=clock) == [2, 2, 1, 0]


def test_the_places_of_a_queue_say_which_wait_for_its_reader(url: str):
    """In each order; those that somebody was not asked about, or has decided, do not wait for them."""
    clock = Clock()

    async def work(approvals: Approvals) -> dict[str, Any]:
        terms_by_name: Any = {"never": {}, "late": {"expires_in": 600}, "soon": {"expires_in": 60}, "voted": {}}
        terms_by_name["other"] = {"approvers": ["cy"], "required": 1}
        made = {}
        for name, terms in terms_by_name.items():
            made[await approvals.request(make_result(), "?", **(WHO | terms))] = name
            clock.pass_by(1)
        voted = next(ident for ident, name in made.items() if name == "voted")
        await approvals.decide(voted, "ana", False, "no", undo_seconds=300)

        async def look(order: QueueOrder, **reader: Any) -> list[str]:
            places = await approvals.list_places(QueueReader(name="ana", **reader), order=order)
            assert [ident for ident in places.ids if ident in places.waiting] == places.mine
            return [made[ident] + ("*" if ident in places.waiting else "") for ident in places.ids]

        shown = {order: await look(order) for order in ("expiry", "oldest", "newest")}
        return shown | {"asked": await look("oldest", sees_all=False)}

    assert use(url, work, clock=clock) == {
        "expiry": ["soon*", "late*", "never*", "voted", "other"],
        "oldest": ["never*", "late*", "soon*", "voted", "other"],
        "newest": ["other", "voted", "soon*", "late*", "never*"],
        "asked": ["never*", "late*", "soon*", "voted"],
    }


def test_a_request_that_was_read_stands_for_its_id(url: str):
    """What reads more of it finds the same, and does not read it again."""

    async def work(approvals: Approvals, ident: str) -> None:
        approval = await approvals.get(ident)

        assert await approvals.get(approval) == approval
        assert await approvals.history(approval) == await approvals.history(ident)
        assert await approvals.find_gaps(approval) == await approvals.find_gaps(ident)
        assert await approvals.find_gaps(replace(approval, message="Delete it?")) != await approvals.find_gaps(ident)

    ask(url, work)


def test_the_queue_is_read_without_the_texts_of_the_requests(url: str):
    """Whom each asks, who voted and until when, by its end; what a list shows is read for those that are named."""
    clock = Clock()

    async def work(approvals: Approvals) -> Any:
        terms_by_name: Any = {
            "never": {},
            "late": {"expires_in": 600},
            "over": {"expires_in": 60},
            "soon": {"expires_in": 300},
        }
        made = {
            name: await approvals.request(make_result(), name, content=name * 5_000, **(WHO | terms))
            for name, terms in terms_by_name.items()
        }
        await approvals.decide(made["late"], "ana", False, "no", undo_seconds=300)
        clock.pass_by(61)
        names = {ident: name for name, ident in made.items()}
        queue = await approvals.list_queue()
        newer = await approvals.list_queue(after=made["over"])
        summaries = await approvals.summarise([made["late"], "unknown", made["never"]])
        undoable = [names[ident] for ident in await approvals.list_undoable("ana")]
        whole = [names[item.id] for item in await approvals.load_several([made["soon"], "unknown", made["late"]])]
        return [names[item.id] for item in queue], queue, len(newer), summaries, undoable, whole

    names, queue, newer, (late, never), undoable, whole = use(url, work, clock=clock)

    assert (names, newer, undoable, whole) == (["soon", "late", "never"], 1, ["late"], ["soon", "late"])
    assert [item.waits_for("ana") for item in queue] == [True, False, True]
    assert (queue[1].voters, queue[0].waits_for("eve"), queue[0].waits_for(None)) == ({"ana"}, False, False)
    assert (late.message, late.content, never.content) == ("late", "late" * 1_000, ("never" * 5_000)[:4_000])
    assert ([vote.by for vote in late.pending_votes], late.votes, late.outcome) == (["ana"], (), "failed")


def test_many_requests_that_expired_are_closed_by_parts(url: str):
    """So that one look at a queue does not wait for all of them."""
    clock = Clock()

    async def work(approvals: Approvals) -> list[int]:
        for _ in range(5):
            await approvals.request(make_result(), "Publish it?", expires_in=60, **WHO)
        clock.pass_by(61)
        closed = [await approvals.close_due(most=2) for _ in range(2)]
        return [*closed, await approvals.close_due(), await approvals.close_due(), len(await approvals.list())]

    assert use(url, work, clock=clock) == [2, 2, 1, 0, 0]


def test_a_request_that_was_changed_by_hand_is_named(url: str, tmp_path: Path):
    """Where it is read: the queue has its columns, which ``adjudge ledger verify`` compares with the entry."""

    async def work(approvals: Approvals, ident: str) -> Any:
        with closing(sqlite3.connect(tmp_path / "adjudge.db")) as connection, connection:
            connection.execute("UPDATE adjudge_approvals SET body = replace(body, ?, 'other')", (ident,))
        [queued] = await approvals.list_queue()
        assert queued.id == ident
        with pytest.raises(LedgerError, match=ident):
            await approvals.summarise([ident])

    ask(url, work)


@pytest.mark.slow
def test_requests_are_listed(url: str):
    """In the order in which they were made, by status and by approver; more than one page of them."""

    async def go(approvals: Approvals) -> Any:
        every = [await approvals.request(make_result(), "Publish it?", **WHO) for _ in range(205)]
        other = await approvals.request(make_result(), "Publish it?", approvers=["cy"])
        await approvals.decide(every[0], "ana", True)
        await approvals.decide(every[1], "ana", False)
        states = {status: await approvals.list(status=status) for status in ("open", "approved", "denied", None)}
        assert [item.id for item in await approvals.list(approver="cy")] == [other]
        with pytest.raises(UsageError, match=r"status must be one of .*; got 'closed'"):
            await approvals.list(status="closed")  # type: ignore[arg-type]
        return [*every, other], {status: [item.id for item in listed] for status, listed in states.items()}

    every, listed = use(url, go)

    assert listed == {"open": every[2:], "approved": every[:1], "denied": every[1:2], None: every}


def test_the_history_of_a_request(url: str):
    """Its entries alone, where others are about the same content."""

    async def work(approvals: Approvals, ident: str) -> Any:
        await approvals.request(make_result(), "And again?", **WHO)
        await try_to(approvals, ident, "eve", True)
        return [summarise(entry) for entry in await approvals.history(ident)]

    assert ask(url, work) == [("requested", None, ["ana", "bob"]), ("voted", False, "eve")]
    assert len(find(url, subject="5" * 64)) == 3


def test_overrides_are_labelled_cases(url: str, tmp_path: Path):
    """What people decided is the label; the data set readers read them, where the content was kept."""
    path = tmp_path / "cases.jsonl"

    async def go(approvals: Approvals) -> Any:
        options: dict[str, Any] = WHO | {"required": 2}
        yes = await approvals.request(make_result(), "?", content="good", metadata={"case": 7}, **options)
        no = await approvals.request(make_result("passed"), "?", content="bad", **WHO)
        agreed = await approvals.request(make_result(), "?", content="poor", **WHO)
        for ident, by, approved in ((yes, "ana", True), (yes, "bob", True), (no, "bob", False), (agreed, "ana", False)):
            await approvals.decide(ident, by, approved, "why")
        count = await approvals.export_labels(path)
        bare = await approvals.request(make_result(), "?", **WHO)
        await approvals.decide(bare, "ana", True)
        with pytest.raises(UsageError, match=r"cannot export to .*cases.*File exists.*name"):
            await approvals.export_labels(path)
        overridden = [label async for label in approvals.override_labels() if label.case != bare]
        return count, (yes, no), [row async for row in approvals.labels() if row["id"] == bare], overridden

    count, ids, (bare,), overridden = use(url, go)
    rows = list(open_dataset(path))

    assert count == 2
    assert [(row.id, row.content, row.label, row.labels) for row in rows] == [
        (ids[0], "good", True, {"ana": True, "bob": True}),
        (ids[1], "bad", False, {"bob": False}),
    ]
    assert (rows[0].metadata["case"], rows[0].metadata["reasons"]) == (7, {"ana": "why", "bob": "why"})
    assert path.stat().st_mode & 0o777 == 0o600
    assert [(label.case, label.rater, label.kind, label.value, label.comment) for label in overridden] == [
        (ids[0], "ana", "override", True, "why"),
        (ids[0], "bob", "override", True, "why"),
        (ids[1], "bob", "override", False, "why"),
    ]
    assert not any(label.blind or label.at is None for label in overridden)
    assert "content" not in bare
    assert (bare["label"], bare["metadata"]["subject"]) == (True, "5" * 64)


def test_overrides_on_a_full_disk_are_said(url: str, tmp_path: Path):
    """It is the file's trouble and not a crash, and half of it is gone."""
    resource = pytest.importorskip("resource")

    async def go(approvals: Approvals) -> None:
        asked = await approvals.request(make_result(), "?", content="x" * 300_000, **WHO)
        await approvals.decide(asked, "ana", True)
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))  # what a full disk does, for one process
        try:
            await approvals.export_labels(tmp_path / "cases.jsonl")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    with pytest.raises(UsageError, match=r"cannot export to .*cases.*File too large.*name"):
        use(url, go)

    assert not (tmp_path / "cases.jsonl").exists()


def test_values_go_there_and_back(url: str):
    """Open and closed; what is no request is refused."""

    async def work(approvals: Approvals, ident: str) -> list[Approval]:
        return [await approvals.get(ident), await approvals.decide(ident, "ana", True, "fine")]

    for item in ask(url, work, expires_in=60, metadata={"a": [1]}):
        assert Approval.from_dict(item.to_dict()) == item
        assert bool(item) is (item.status == "approved")
    assert "its schema is None and not adjudge/approval/1" in complaint(Approval.from_dict, {})
    assert "not a dictionary that Approval.to_dict wrote" in complaint(
        Approval.from_dict, {"schema": "adjudge/approval/1"}
    )


def test_nothing_of_the_content_is_logged(url: str, caplog: pytest.LogCaptureFixture):
    """Above DEBUG there are ids and states."""

    async def go(approvals: Approvals) -> None:
        ident = await approvals.request(make_quoting_result(), SECRET, content=SECRET, **WHO)
        await try_to(approvals, ident, "eve", True, SECRET)
        await approvals.decide(ident, "ana", True, SECRET)

    with caplog.at_level(logging.INFO, logger="adjudge"):
        use(url, go)

    assert [record.getMessage().partition(" was ")[2] for record in caplog.records][::2] == [
        "requested: open",
        "approved by human",
    ]
    assert SECRET not in caplog.text
    assert verify(url)
