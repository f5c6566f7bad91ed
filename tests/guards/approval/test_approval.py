"""Asking people: what a request carries, who may decide, how it ends, and what the ledger holds of it."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from adjudge import Approvals, Decision, UsageError
from adjudge.guards import Approval, DecisionRefused
from adjudge.ledger import LedgerError
from kit.approvals import WHO, ask, make_result, tell, try_to, use, with_nan
from kit.clock import Clock
from kit.judges import complaint, names
from kit.ledgers import find

pytestmark = pytest.mark.timed


def vote(url: str, *votes: tuple[str, bool], **options: Any) -> list[str]:
    """What becomes of some decisions on a new request, in order."""

    async def work(approvals: Approvals, ident: str) -> list[str]:
        return [await try_to(approvals, ident, by, approved) for by, approved in votes]

    return ask(url, work, **options)


# ---------------------------------------------------------------- asking


def test_a_request_carries_the_result(url: str):
    """Its id, its outcome, its score and why, and whatever was handed over for people to read."""
    result = make_result(detail="it promises a refund", metadata={"case": 7})
    approval = ask(url, Approvals.get, result=result, content={"text": "é"}, execution="run-1", required=2)

    assert (approval.result_id, approval.outcome, approval.score, approval.judge) == (
        result.id,
        "failed",
        0.2,
        "careful",
    )
    assert approval.message == "Publish it?"
    assert names(approval.reason, "failed with 0.20", "0.70", "it promises a refund")
    assert (approval.content, approval.subject, approval.metadata) == ('{\n  "text": "é"\n}', "5" * 64, {"case": 7})
    assert (approval.status, approval.approvers, approval.required, approval.missing) == ("open", ("ana", "bob"), 2, 2)
    assert (approval.decided_by, approval.expires_at, approval.execution) == (None, None, "run-1")
    assert names(approval.explain(), "open", "2 of 2", "ana, bob")


def test_a_decision_brings_its_gate_and_subject(url: str):
    """So the ledger finds the request by either."""
    result = make_result(subject=None)
    held = Decision(gate="publish", allowed=False, decided_by="policy", result=result, subject="7" * 64)
    approval = ask(url, Approvals.get, result=held)

    assert (approval.gate, approval.subject) == ("publish", "7" * 64)
    assert [entry.kind for entry in find(url, gate="publish", judge="careful", outcome="failed")] == [
        "approval.requested"
    ]


def test_without_a_digest_the_request_is_its_own_subject(url: str):
    """Its entries are found together all the same; content that is handed over has a digest."""
    bare = ask(url, Approvals.get, result=make_result(subject=None))
    shown = ask(url, Approvals.get, result=make_result(subject=None), content="abc")

    assert bare.subject == bare.id
    assert shown.subject.startswith("ba7816bf")


LONG = "x" * 100_001


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"approvers": []}, "needs approvers"),
        ({"approvers": "ana"}, "approvers … list of names … text 'ana'"),
        ({"approvers": {"ana": 1}}, "approvers … list of names … dict"),
        ({"approvers": ["ana", 7]}, "approvers … a text … int"),
        ({"approvers": [""]}, "approvers … 1 to 200 printable characters"),
        ({"approvers": ["ana "]}, "approvers … without a blank … 'ana '"),
        ({"approvers": ["a\u200bna"]}, "approvers … 1 to 200 printable characters … a\\u200bna"),
        ({"approvers": [f"n{number}" for number in range(101)]}, "at most 100 approvers … 101"),
        ({"required": 3}, "required=3 … there are 2 … name more"),
        ({"required": 0}, "required … at least 1 … 0"),
        ({"required": True}, "required … at least 1 … True"),
        ({"approvers": ["ana", "ana"], "required": 2}, "required=2 … there are 1 … name more"),
        ({"expires_in": 0}, "expires_in … above 0, or None … got 0"),
        ({"expires_in": float("nan")}, "expires_in … above 0, or None … nan"),
        ({"expires_in": True}, "expires_in … above 0, or None … True"),
        ({"expires_in": timedelta(0)}, "expires_in … above 0, or None … 0"),
        ({"expires_in": 1e30}, "expires_in … a hundred years … 1e+30 … None means never"),
        ({"on_expiry": "allow"}, "on_expiry … deny, approve … 'allow'"),
        ({"on_expiry": "approve"}, "on_expiry='approve' needs expires_in"),
        ({"message": " "}, "needs a message"),
        ({"message": 7}, "message … a text … int"),
        ({"message": "a\0b"}, "message … NUL … at 1"),
        ({"message": LONG}, "message … at most 100,000 … 100,001; shorten"),
        ({"about": None}, "a result or a decision … NoneType"),
        ({"about": Decision(gate="g", allowed=True, decided_by="policy")}, "this decision has no result"),
        ({"about": with_nan("threshold")}, "not a dictionary … Approval.to_dict"),
        ({"metadata": "x"}, "metadata … a mapping … str"),
        ({"execution": "a\0"}, "execution holds a NUL"),
        ({"content": b"\xff"}, "the content is binary"),
        ({"first": print}, "first needs content"),
        ({"first": "opnai:gpt", "content": "x"}, "'opnai:gpt' … model"),
    ],
)
def test_what_nobody_could_decide_is_not_asked(url: str, tmp_path: Path, changes: dict[str, Any], sentence: str):
    """It is refused before anything is written."""
    options = {"about": make_result(), "message": "Publish it?"} | WHO | changes
    about, message = options.pop("about"), options.pop("message")

    assert names(complaint(Approvals(url).request, about, message, **options), *sentence.split(" … "))
    assert list(tmp_path.iterdir()) == []


def test_approvals_need_a_place():
    """A ledger or the address of one, and a webhook that is one."""
    assert names(complaint(Approvals, 7), "approvals", "Ledger or at its address", "int")
    assert names(complaint(Approvals, "sqlite:///a.db", webhook="https://x"), "webhook", "a Webhook", "str")
    assert "a ledger's url is sqlite:///FILE" in complaint(Approvals, "mysql://x/y")


def test_a_clock_without_a_zone_is_refused(url: str):
    """Nothing can be compared with its times."""
    approvals = Approvals(url, clock=datetime.now)

    assert "gives times without a zone" in complaint(approvals.request, make_result(), "Publish it?", **WHO)


# ---------------------------------------------------------------- deciding


def test_it_takes_as_many_different_people_as_required(url: str):
    """The same person twice is one person; who is not asked does not count; all of it is on record."""
    votes = [("ana", True), ("ana", True), ("eve", True), ("bob", True), ("bob", False)]

    assert vote(url, *votes, required=2) == ["open", "double", "unauthorised", "approved", "double"]
    assert tell(url) == [
        ("requested", None, ["ana", "bob"]),
        ("voted", True, "ana"),
        ("voted", False, "ana"),
        ("voted", False, "eve"),
        ("voted", True, "bob"),
        ("closed", "approved", "human"),
        ("override", True, ["ana", "bob"]),
        ("voted", False, "bob"),
    ]


def test_one_denial_ends_it(url: str):
    """Whoever approved before; and nobody opens it again."""
    assert vote(url, ("ana", True), ("bob", False), ("cy", True), approvers=["ana", "bob", "cy"], required=3) == [
        "open",
        "denied",
        "closed",
    ]
    assert [item[:2] for item in tell(url)][-2:] == [("closed", "denied"), ("voted", False)]


def test_names_are_compared_exactly(url: str):
    """Two ways to write one letter are one name; a capital, or a letter that looks the same, is another person."""
    votes = [("Zoë", True), ("Zoe\u0308", True), ("zoë", True), ("bоb", True), ("bob", True)]
    names = ["Zoe\u0308", "Zoë", "bob"]

    assert vote(url, *votes, approvers=names, required=2) == [
        "open",
        "double",
        "unauthorised",
        "unauthorised",
        "approved",
    ]


def test_a_refusal_says_why(url: str):
    """The name, the request, and that it was recorded."""

    async def work(approvals: Approvals, ident: str) -> dict[str, str]:
        messages = {}
        for by, approved in (("eve", True), ("ana", False), ("ana", True), ("bob", True)):
            try:
                await approvals.decide(ident, by, approved)
            except DecisionRefused as error:
                messages[error.because] = str(error).replace(ident, "ID")
        return messages

    messages = ask(url, work)
    assert list(messages) == ["unauthorised", "double", "closed"]
    assert names(messages["unauthorised"], "'eve'", "none of the approvers", "ID", "recorded")
    assert names(messages["double"], "'ana'", "already", "ID", "recorded")
    assert names(messages["closed"], "closed", "denied by ana", "ID", "recorded")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ana", "yes"), "approved … true or false … 'yes'"),
        (("ana", 1), "approved … true or false … 1"),
        (("", True), "by … 1 to 200 printable characters … ''"),
        ((None, True), "by … a text … NoneType"),
        (("ana", True, "a\ud800"), "the reason is not valid Unicode"),
        (("ana", True, None), "reason … a text … NoneType"),
        (("ana", True, "x" * 10_001), "reason … at most 10,000 … 10,001; shorten"),
    ],
)
def test_a_decision_that_is_none_changes_nothing(url: str, arguments: tuple[Any, ...], message: str):
    """It is not recorded either: nobody decided anything."""

    async def work(approvals: Approvals, ident: str) -> str:
        with pytest.raises(UsageError) as caught:
            await approvals.decide(ident, *arguments)
        assert (await approvals.get(ident)).votes == ()
        return str(caught.value)

    assert names(ask(url, work), *message.split(" … "))
    assert [kind for kind, _, _ in tell(url)] == ["requested"]


def test_an_id_that_is_none(url: str, tmp_path: Path):
    """Is refused, and a mistyped address makes no ledger."""
    for call in (Approvals.get, Approvals.wait, Approvals.history, Approvals.forget):
        assert "there is no ledger at" in complaint(call, Approvals(url), "x")
    assert "there is no ledger at" in complaint(Approvals(url).decide, "x", "ana", approved=True)
    assert list(tmp_path.iterdir()) == []

    async def work(approvals: Approvals, _: str) -> None:
        with pytest.raises(UsageError, match="no approval") as caught:
            await approvals.decide("x\x1by", "ana", True)
        assert names(caught.value, r"'x\x1by'", "adjudge approvals list --status all")

    ask(url, work)


def test_an_id_may_be_cut_short(url: str):
    """Its beginning or its end will do where only one request has it; ids of one moment begin alike."""

    async def work(approvals: Approvals, ident: str) -> None:
        assert await approvals.find(ident) == ident
        assert await approvals.find(ident[-6:].upper()) == ident
        assert await approvals.find(ident[:4]) == ident
        other = await approvals.request(make_result(), "Publish it?", **WHO)
        assert {await approvals.find(item[-12:]) for item in (ident, other)} == {ident, other}
        for part, message in (
            (ident[:4], f"{ident}, {other} and perhaps more … '{ident[:4]}'; give more"),
            (ident[-3:], f"4 characters or more … '{ident[-3:]}'"),
            ("____", "there is no approval '____'"),
            ("%%%%", "there is no approval '%%%%'"),
            (7, "id … a text … int"),
        ):
            with pytest.raises(UsageError) as caught:
                await approvals.find(part)  # type: ignore[arg-type]
            assert names(caught.value, *message.split(" … "))

    ask(url, work)


def test_a_ledger_without_requests_has_none(url: str):
    """Nothing is listed, nothing found, and no tables are made."""

    async def go(approvals: Approvals) -> Any:
        await approvals.ledger.append({}, kind="run")
        with pytest.raises(UsageError, match="there is no approval 'x'"):
            await approvals.get("x")
        return await approvals.list(), [row async for row in approvals.labels()]

    assert use(url, go) == ((), [])


@pytest.mark.parametrize(
    ("outcome", "approved", "overruled"),
    [
        ("failed", True, True),
        ("undecided", True, True),
        ("passed", False, True),
        ("failed", False, False),
        ("undecided", False, False),
        ("passed", True, False),
    ],
)
def test_overruling_the_judge_is_recorded(url: str, outcome: str, approved: bool, overruled: bool):
    """In the same moment as the end that did it."""

    async def work(approvals: Approvals, ident: str) -> Approval:
        return await approvals.decide(ident, "ana", approved, "the policy changed")

    approval = ask(url, work, result=make_result(outcome))
    overrides = find(url, kind="override", outcome=outcome)

    assert approval.overrides is overruled
    assert [entry.seq for entry in overrides] == ([approval.override_seq] if overruled else [])
    for entry in overrides:
        assert entry.payload is not None
        assert (entry.payload["label"], entry.payload["reason"]) == (approved, "the policy changed")
        assert (entry.payload["closed_seq"], entry.subject) == (approval.closed_seq, "5" * 64)


# ---------------------------------------------------------------- time


@pytest.mark.parametrize("look", ["get", "list", "wait", "decide"])
@pytest.mark.parametrize(("on_expiry", "status"), [("deny", "denied"), ("approve", "approved")])
def test_whoever_looks_first_closes_what_has_expired(url: str, look: str, on_expiry: str, status: str):
    """By policy, at the very moment, once; a decision that comes then is late."""
    clock = Clock()

    async def work(approvals: Approvals, ident: str) -> Approval:
        clock.pass_by(59.999)
        assert (await approvals.get(ident)).status == "open"
        clock.pass_by(0.001)
        if look == "decide":
            assert await try_to(approvals, ident, "ana", status != "approved") == "expired"
        else:
            await (approvals.list() if look == "list" else getattr(approvals, look)(ident))
        return await approvals.get(ident)

    approval = ask(url, work, clock=clock, expires_in=60, on_expiry=on_expiry)
    ends = [item for item in tell(url) if item[0] in ("closed", "override")]

    assert (approval.status, approval.decided_by, approval.closed_by, approval.overrides) == (
        status,
        "policy",
        (),
        False,
    )
    assert ("on_expiry='approve'" in approval.closed_because) is (on_expiry == "approve")
    assert ends == [("closed", status, "policy")]


def test_many_who_look_close_it_once(url: str):
    """However many notice at the same moment that it has expired."""
    clock = Clock()

    async def work(approvals: Approvals, ident: str) -> set[str]:
        clock.pass_by(60)
        async with asyncio.TaskGroup() as group:
            looks = [group.create_task(approvals.get(ident)) for _ in range(10)]
        return {look.result().status for look in looks}

    assert ask(url, work, clock=clock, expires_in=timedelta(minutes=1)) == {"denied"}
    assert tell(url, kind="approval.closed") == [("closed", "denied", "policy")]


def test_waiting_ends_with_the_request(url: str):
    """A real second is not needed: it looks again at the moment of expiry."""

    async def work(approvals: Approvals, ident: str) -> Any:
        return await approvals.wait(ident)

    answer = ask(url, work, expires_in=0.05)

    assert (answer.approved, answer.by, answer.reason) == (False, None, "it expired")


def test_waiting_can_be_cancelled(url: str):
    """And leaves the request as it is."""

    async def work(approvals: Approvals, ident: str) -> str:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await approvals.wait(ident)
        return (await approvals.get(ident)).status

    assert ask(url, work) == "open"


@pytest.mark.parametrize(("failures", "heard"), [(3, True), (4, False)])
def test_waiting_survives_a_store_that_fails_for_a_moment(url: str, failures: int, heard: bool):
    """A server that is started anew is no answer; one that stays away is an error."""

    async def work(approvals: Approvals, ident: str) -> bool:
        await approvals.decide(ident, "ana", True)
        left, look = [LedgerError("gone")] * failures, approvals.ledger.look

        async def fail(*arguments: Any, **options: Any) -> Any:
            if left:
                raise left.pop()
            return await look(*arguments, **options)

        approvals.ledger.look = fail  # type: ignore[method-assign]
        try:
            return (await approvals.wait(ident)).approved
        except LedgerError:
            return False

    assert ask(url, work) is heard


def test_who_waits_hears_who_decided(url: str):
    """All names and all reasons, as a gate's ``Asker`` says it."""

    async def work(approvals: Approvals, ident: str) -> Any:
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(approvals.wait(ident))
            await approvals.decide(ident, "ana", True, "checked")
            await approvals.decide(ident, "bob", True, "so did I")
        return waiting.result()

    answer = ask(url, work, required=2)

    assert (answer.approved, answer.by, answer.reason, answer.judged) == (True, "ana, bob", "checked; so did I", None)
    assert (answer.subject, answer.gate) == ("5" * 64, "")


DENIED, APPROVED = """'"status": "denied"'""", """'"status": "approved"'"""


@pytest.mark.parametrize(
    "change",
    [
        f"status = 'approved', body = replace(body, {DENIED}, {APPROVED})",
        """body = replace(body, '"closed_seq": 4', '"closed_seq": 2')""",
        """body = replace(body, '"closed_seq": 4', '"closed_seq": 99')""",
        """body = replace(body, '"human"', '"policy"')""",
        """body = replace(body, '"closed_by": ["ana"]', '"closed_by": ["bob"]')""",
        "status = 'approved'",
        "body = '{}'",
        "body = 'x'",
    ],
    ids=range(8),
)
def test_an_end_that_the_ledger_does_not_confirm_is_none(url: str, tmp_path: Path, change: str):
    """The tables beside the ledger can be written by anybody who has the file; nothing is let through for that."""

    async def work(approvals: Approvals, ident: str) -> None:
        await approvals.decide(ident, "ana", False)
        with closing(sqlite3.connect(tmp_path / "adjudge.db")) as connection, connection:
            assert connection.execute(f"UPDATE adjudge_approvals SET {change}").rowcount == 1
        with pytest.raises(LedgerError, match=r"approval .* (ledger does not confirm|changed by hand)"):
            await approvals.wait(ident)

    ask(url, work)


@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO adjudge_votes VALUES ('{id}', 'bob', 3, 1, '2026-11-20T12:00:00Z', '')",
        "UPDATE adjudge_approvals SET body = replace(body, '\"required\": 2', '\"required\": 1')",
        'UPDATE adjudge_approvals SET body = replace(body, \'"bob"\', \'"bob", "eve"\')',
        "UPDATE adjudge_approvals SET body = replace(body, '\"2026-11-20T12:01', '\"2026-11-20T11:01')",
    ],
    ids=["a vote", "fewer", "another person", "an earlier end"],
)
def test_terms_and_votes_that_were_made_up_approve_nothing(url: str, tmp_path: Path, change: str):
    """What was changed while the request was open is counted, and then not confirmed by the ledger."""

    async def work(approvals: Approvals, ident: str) -> None:
        await approvals.decide(ident, "ana", False) if "11:01" in change else None
        with closing(sqlite3.connect(tmp_path / "adjudge.db")) as connection, connection:
            assert connection.execute(change.format(id=ident)).rowcount == 1
        for by in ("ana", "eve"):
            await try_to(approvals, ident, by, True)
        with pytest.raises(LedgerError, match=r"the ledger does not confirm (who was asked|what bob decided)"):
            await approvals.wait(ident)

    ask(url, work, clock=Clock(), required=2, expires_in=60)


@pytest.mark.parametrize("by", ["policy", "rule"])
def test_an_approval_by_a_judge_needs_a_judge_that_passed_it(by: Any):
    """What a policy let pass, as ``fail_open`` does, is no judge's yes in people's place."""
    about, first = make_result(), make_result("passed", id="first", decided_by=by)
    options: dict[str, Any] = {"id": "a", "message": "?", "approvers": ("ana",), "created_at": Clock()()}
    options |= {"result_id": about.id, "outcome": about.outcome, "judge": about.judge, "subject": "5" * 64}
    with pytest.raises(UsageError, match="did not pass it"):
        Approval(**options, status="approved", decided_by="judge", first=first)
