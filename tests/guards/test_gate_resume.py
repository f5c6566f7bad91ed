"""What a gate holds back is kept beside the ledger: any process goes on with it by the id that was given out."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from adjudge import Approvals, Blocked, Decision, Gate, Ledger, UsageError
from adjudge.errors import LedgerError
from kit import cli
from kit.approvals import make_result
from kit.asgi import run as run_shop
from kit.cli import ME, Line
from kit.gates import Desk, gate, word
from kit.judges import failed, names
from kit.ledgers import find, open_schema, verify
from kit.loops import run_virtual

ASK = {"approvers": ["ana", "bob"]}
RUBRIC = {"name": "Good", "criteria": [{"name": "good", "description": "It is good."}]}
WITH: dict[str, Any] = {"task": "Say it.", "context": ["The policy."], "reference": {"a": 1}}
PLACE = {"server": "bank", "run": ("a", 1)}


@pytest.fixture(name="store", params=["sqlite", "postgres"])
def make_store(request: pytest.FixtureRequest, tmp_path: Path, require: Any) -> Any:
    """Each store."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'adjudge.db'}"
    else:
        with open_schema(require) as url:
            yield url


def run(url: str, work: Callable[..., Any], *, keep: Any = "hash", **options: Any) -> Any:
    """What an async function makes of a gate and its approvals, in a process that has just begun."""

    async def go() -> Any:
        async with Ledger(url, store_content=keep) as ledger, Approvals(ledger) as approvals:
            terms: dict[str, Any] = {"rubric": RUBRIC, "judge": failed(), "on_failed": "ask", "ask": ASK, "wait": False}
            terms |= {"approvals": approvals, "ledger": ledger} | options
            return await work(Gate(terms.pop("name", "publish"), **terms), approvals)

    return asyncio.run(go())


async def hold(made: Gate, approvals: Approvals) -> str:
    return (await made.check("yes", **WITH, metadata=PLACE)).approval_id or ""


def decide(url: str, ident: str, *, approved: bool = True) -> None:
    async def work(made: Gate, approvals: Approvals) -> None:
        await approvals.decide(ident, "ana", approved, "fine")

    run(url, work)


def test_another_process_goes_on_by_the_id_alone(store: str):
    """No file, no value handed over: what waits is read from beside the ledger, which confirms it."""
    ident = run(store, hold)
    decide(store, ident)
    decision = run(store, lambda made, approvals: made.resume(ident, content="yes", **WITH))

    assert word(decision) == ("allowed", "human")
    assert decision.approval_id == ident
    assert find(store, kind="decision")[-1].seq == decision.ledger_seq
    assert verify(store)


def test_one_decision_is_one_entry(url: str):
    """Gate and approvals share a ledger, and what is recorded with the mark is not recorded twice."""
    ident = run(url, hold)
    decide(url, ident)
    run(url, lambda made, approvals: made.resume(ident))

    assert [bool((e.payload or {}).get("used")) for e in find(url, kind="decision")] == [False, True]


def test_a_gate_with_another_ledger_records_in_both(url: str, tmp_path: Path):
    """The mark stands beside the approvals, and the decision where the gate's decisions stand."""
    other = f"sqlite:///{tmp_path / 'other.db'}"
    ident = run(url, hold)
    decide(url, ident)

    async def work(made: Gate, approvals: Approvals) -> Decision:
        async with Ledger(other) as ledger:
            options: dict[str, Any] = {"rubric": RUBRIC, "judge": failed(), "on_failed": "ask", "ask": ASK}
            return await Gate("publish", approvals=approvals, ledger=ledger, **options).resume(ident)

    decision = run(url, work)

    assert [entry.seq for entry in find(other, kind="decision")] == [decision.ledger_seq]
    assert (find(url, kind="decision")[-1].payload or {})["used"] is True


@pytest.mark.parametrize(
    "options",
    [
        {"content": "no"},
        {"content": None},
        {"content": {"yes": 1}},
        {"content": "\0"},
        {"task": "Say something else."},
        {"task": None},
        {"context": ["Another policy."]},
        {"reference": {"a": 2}},
        {"metadata": {"server": "shop", "run": ("a", 1)}},
        {"metadata": {}},
    ],
    ids=str,
)
def test_what_is_not_what_was_held_back_does_not_go_on(url: str, options: dict[str, Any]):
    """Blocked by policy and recorded; the approval is still there for what it was given for."""
    ident = run(url, hold)
    decide(url, ident)
    blocked = run(url, lambda made, approvals: made.resume(ident, **({"content": "yes"} | WITH | options)))
    allowed = run(url, lambda made, approvals: made.resume(ident, content="yes", **WITH, metadata=PLACE))

    assert word(blocked) == ("blocked", "policy")
    assert names(blocked.detail, f"the {next(iter(options))} ", "held back", "through the gate again")
    assert word(allowed) == ("allowed", "human")


def test_an_equal_value_is_what_was_held_back(url: str):
    """A tuple for a list: what is compared is what was judged."""

    async def work(made: Gate, approvals: Approvals) -> str:
        ident = (await made.check({"a": [1, 2], "b": None})).approval_id or ""
        await approvals.decide(ident, "ana", True)
        return word(await made.resume(ident, content={"a": (1, 2), "b": None}))[0]

    assert run(url, work) == "allowed"


def test_what_was_held_back_in_code_can_be_gone_on_with_again(url: str):
    """After a crash for instance: a program knows what it did. Each time is recorded."""
    ident = run(url, hold)
    decide(url, ident)
    words = [word(run(url, lambda made, approvals: made.resume(ident))) for _ in range(2)]

    assert words == [("allowed", "human")] * 2
    assert sum((e.payload or {}).get("used") is True for e in find(url, kind="decision")) == 2


@pytest.mark.slow
def test_what_waits_is_listed(url: str):
    """Of this gate, by how its approval stands, and only until somebody has gone on with it."""

    async def work(made: Gate, approvals: Approvals) -> list[list[str | None]]:
        idents = [(await made.check(f"yes {number}")).approval_id or "" for number in range(4)]
        other = Gate("other", rules=[{"length": 1}], on_failed="ask", ask=ASK, approvals=approvals, wait=False)
        assert (await other.check("too long")).pending
        assert await approvals.request(make_result(), "Lunch?", approvers=["ana"])
        await approvals.decide(idents[1], "ana", True)
        await approvals.decide(idents[2], "ana", False)
        await approvals.decide(idents[3], "ana", True)
        await made.resume(idents[3])
        statuses: list[Any] = ["open", "approved", "denied", None]
        listed = [await made.pending(status=status) for status in statuses]
        assert all(item.pending and item.gate == "publish" for decisions in listed for item in decisions)
        assert len(await approvals.list_pending()) == 2
        return [[idents.index(str(item.approval_id)) for item in decisions] for decisions in listed]

    assert run(url, work) == [[0], [1], [2], [0, 1, 2]]


def test_nothing_waits_before_anything_was_held_back(url: str):
    """Looking makes no ledger."""
    assert run(url, lambda made, approvals: made.pending()) == ()
    assert not Path(url.removeprefix("sqlite:///")).exists()


def test_what_waits_says_what_became_of_it(url: str):
    """When it was used, and where the ledger holds the decision that took its place."""

    async def work(made: Gate, approvals: Approvals) -> list[Any]:
        ident = await hold(made, approvals)
        states = [await approvals.pending(ident)]
        await approvals.decide(ident, "ana", True)
        states.append(await approvals.pending(ident))
        decision = await made.resume(ident)
        states.append(await approvals.pending(ident))
        return [states, decision]

    (waits, answered, used), decision = run(url, work)

    assert (waits.used_at, waits.answered_for, waits.approval.status) == (None, None, "open")
    assert answered.used_at is None
    assert answered.answered_for >= 0
    assert used.used_at is not None
    assert used.used_seq == decision.ledger_seq


@pytest.mark.parametrize("keep", ["hash", "full"])
def test_what_is_kept_is_what_the_ledger_keeps(url: str, keep: str):
    """The judge's words are there where ``store_content`` keeps them; a hash is read back as no words."""
    seat = failed(reasoning="It quotes: yes.")
    ident = run(url, hold, keep=keep, judge=seat)
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        ((kept,),) = connection.execute("SELECT decision FROM adjudge_pending").fetchall()
    (waits,) = run(url, lambda made, approvals: made.pending(), keep=keep)

    assert ("It quotes" in kept) == (keep == "full")
    assert waits.result.reasoning == ("It quotes: yes." if keep == "full" else "")
    decide(url, ident)
    assert word(run(url, lambda made, approvals: made.resume(ident), keep=keep))[0] == "allowed"


@pytest.mark.parametrize("keep", ["hash", "full"])
def test_what_is_forgotten_waits_no_more(url: str, keep: str):
    """Its texts are gone from the table, and its id opens nothing."""
    ident = run(url, hold, keep=keep, judge=failed(reasoning="It quotes: yes."))
    decide(url, ident)

    async def work(made: Gate, approvals: Approvals) -> Any:
        await approvals.forget(ident)
        assert await approvals.pending(ident) is None
        with pytest.raises(UsageError, match="no pending decision is stored"):
            await made.resume(ident)
        return await made.pending(status=None)

    assert run(url, work, keep=keep) == ()
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        assert "It quotes" not in str(connection.execute("SELECT * FROM adjudge_pending").fetchall())


def test_a_row_that_was_changed_by_hand_is_an_error(url: str):
    """It names the approval and says what to do; nothing is decided."""
    ident = run(url, hold)
    decide(url, ident)
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection, connection:
        connection.execute(
            "UPDATE adjudge_pending SET decision = replace(decision, '\"pending\":true', '\"pending\": 1')"
        )

    with pytest.raises(LedgerError, match=ident):
        run(url, lambda made, approvals: made.resume(ident))
    with pytest.raises(LedgerError, match="changed by hand"):
        run(url, lambda made, approvals: made.pending(status=None))


def test_what_cannot_be_gone_on_with_is_a_sentence(url: str):
    """An id that is none, one of another gate, one that no gate asked for; and a gate with nobody who keeps it."""

    async def work(made: Gate, approvals: Approvals) -> None:
        ident = await hold(made, approvals)
        bare = await approvals.request(make_result(), "Lunch?", approvers=["ana"])
        other = Gate("other", rules=["json"], on_failed="ask", ask=ASK, approvals=approvals)
        for own, approval, message in (
            (made, "x" * 40, "no approval"),
            (other, ident, "publish"),
            (made, bare, "is stored"),
        ):
            with pytest.raises(UsageError, match=message):
                await own.resume(approval)

    run(url, work)
    with pytest.raises(UsageError, match="does not store pending decisions; give approvals"):
        run_virtual(gate(failed(), on_failed="ask", approvals=Desk()).resume("a-1"))
    with pytest.raises(UsageError, match="does not store pending decisions; give approvals"):
        run_virtual(gate(failed()).pending())


def test_what_a_guard_stopped_can_be_gone_on_with(url: str):
    """The exception holds the id; whoever has the value goes on with it once people have approved."""

    async def work(made: Gate, approvals: Approvals) -> Decision:
        @made.guard(argument="text")
        async def publish(text: str) -> str:
            return text

        with pytest.raises(Blocked) as stopped:
            await publish("yes")
        held = stopped.value.decision
        assert held.pending
        await approvals.decide(held.approval_id or "", "bob", True)
        return await made.resume(held.approval_id or "", content="yes")

    assert word(run(url, work)) == ("allowed", "human")


def test_a_judge_that_answers_first_leaves_nothing_waiting(url: str):
    """It approved while people were asked: the decision says so, and the id is used."""
    first = failed().__class__("passed", confidence=0.9)

    async def work(made: Gate, approvals: Approvals) -> tuple[Decision, Any]:
        decision = await made.check("yes")
        return decision, await approvals.pending(decision.approval_id or "")

    decision, waits = run(url, work, ask=ASK | {"first": first}, show_content=True)

    assert word(decision) == ("allowed", "judge")
    assert waits.used_seq == decision.ledger_seq


# ---------------------------------------------------------------- on the command line


@pytest.mark.slow
def test_every_command_takes_the_id_that_the_client_got(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """As it stands in the answer, and what is resumed here the client cannot repeat."""
    cli.isolate(monkeypatch, tmp_path)
    me, url = ME, "sqlite:///adjudge.db"
    Path("adjudge.toml").write_text(
        '[gates.orders]\nrules = [{regex = "secret", absent = true}]\non_rule = "ask"\n'
        f'[approvals]\napprovers = ["{me}"]\nexpires_in = 3600\n[ledger]\nurl = "{url}"\n',
        encoding="utf-8",
    )
    options: dict[str, Any] = {"on_failed": "block", "on_rule": "ask", "ask": {"approvers": [me], "expires_in": 3600}}
    options["show_content"] = True
    ident, denied = run_shop(url, hold_two, **options)
    line = Line(capsys)

    assert ident in line("approvals", "list", "--json").out
    shown = line("approvals", "show", ident)
    assert "POST /orders" in shown.out
    assert line("gate", "resume", ident).status == 3
    assert line.vote(ident, "--reason", "we need it").status == 0
    assert line("approvals", "deny", denied, "--reason", "no").status == 0
    assert (line("approvals", "wait", ident).status, line("approvals", "wait", denied).status) == (0, 1)
    assert line("gate", "resume", ident).status == 0
    assert line("gate", "resume", denied).status == 1
    assert "used" in line("approvals", "show", ident).out
    again = line("gate", "resume", ident)
    assert again.status != 0
    assert "used before" in again.out
    assert run_shop(url, lambda shop: shop.send(approval=ident), **options).status == 409
    assert line("approvals", "forget", ident).status == 0


async def hold_two(shop: Any) -> tuple[str, str]:
    return await shop.hold(), await shop.hold()


def test_a_program_without_an_event_loop_holds_and_resumes(tmp_path: Path):
    """The twins of ``pending`` and ``resume``, as ``check_sync`` is that of ``check``."""

    async def work(made: Gate, approvals: Approvals) -> None:
        held = made.check_sync("yes")
        (pending,) = made.pending_sync()
        assert (held.pending, pending.approval_id) == (True, held.approval_id)
        await approvals.decide(held.approval_id or "", "ana", True, "fine")

        assert made.pending_sync() == ()
        assert not made.resume_sync(held, content="another")
        assert made.resume_sync(held.approval_id or "", content="yes").decided_by == "human"

    run(f"sqlite:///{tmp_path / 'adjudge.db'}", work)
