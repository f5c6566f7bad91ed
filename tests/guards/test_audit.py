"""Audits: people look afterwards at some of what a gate's judge let through, and no call waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from adjudge import Approvals, Budget, Decision, Gate, Judge, JudgeChain, Ledger, UsageError
from adjudge.guards import Audit, Monitor, Webhook, read_monitor, reset_monitor, verify_webhook
from adjudge.judges import with_layers
from kit.audited import EVERY, Reporting, answer, label, make_gate, start_answering, use
from kit.certificates import Reported
from kit.gates import GOOD
from kit.judges import complaint, names
from kit.ledgers import STORES, find, open_store, verify
from kit.runs import Words
from kit.webhooks import KEY, Receiver, serve

pytestmark = pytest.mark.timed


@pytest.fixture(name="url", params=STORES)
def make_url(request: pytest.FixtureRequest, tmp_path: Path, require: Any) -> Iterator[str]:
    """Each store."""
    with open_store(request.param, tmp_path, require) as url:
        yield url


@pytest.fixture(name="file")
def make_file(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'adjudge.db'}"


def test_a_call_is_let_through_and_people_are_asked_afterwards(url: str):
    """The decision is the judge's; the audit shows the content, and nothing of what the judge said."""

    async def work(gate: Gate, approvals: Approvals) -> tuple[Decision, Any]:
        decision = await gate.check("The content.", task="Answer.", metadata={"title": "A title"})
        (audit,) = await approvals.list(audits=True)
        return decision, audit

    decision, audit = use(url, work)

    assert (decision.allowed, decision.decided_by, decision.pending, decision.approval_id) == (
        True,
        "judge",
        False,
        None,
    )
    assert (audit.gate, audit.content, audit.texts, audit.approvers) == (
        "answers",
        "The content.",
        {"task": "Answer."},
        ("ana",),
    )
    assert (audit.result, audit.reason, audit.score, audit.metadata["title"]) == (None, "", None, "A title")
    assert "What the judge thinks." not in str(audit.to_dict())
    assert audit.audit == {"share": 1.0, "promise": 0.1, "confidence": 0.95}
    kinds = [entry.kind for entry in find(url)]
    assert kinds == ["genesis", "decision", "model.changed", "audit.requested"]
    assert verify(url).valid


def test_answers_are_entries_and_the_monitor_counts_them(url: str):
    """``approved`` says that it was right, ``denied`` that it should have been stopped."""

    async def work(gate: Gate, approvals: Approvals) -> Monitor:
        await label(gate, approvals, [True, True, False, True])
        await gate.check("one more")
        return await gate.read_monitor()

    monitor = use(url, work)

    assert (monitor.audits, monitor.labels, monitor.bad, monitor.open, monitor.unanswered) == (5, 4, 1, 1, 0)
    assert (monitor.verdict, monitor.promise, monitor.confidence) == ("too few labels", 0.1, 0.95)
    assert verify(url).valid


def test_what_the_judge_did_not_let_through_is_not_audited(file: str):
    """What it failed, what rules decided, and what a policy let through."""

    async def work(gate: Gate, approvals: Approvals) -> int:
        assert not await gate.check("bad content")
        assert not await gate.replace(rules=[{"regex": "x", "absent": True}]).check("an x")
        assert await gate.replace(mode="observe").check("bad content")
        assert await gate.replace(sample=0.0).check("not judged")
        return len(await approvals.list(audits=True, status=None))

    assert use(file, work) == 0


def test_what_is_only_observed_is_audited_too(file: str):
    """So that a judge can be watched before it decides anything."""

    async def work(gate: Gate, approvals: Approvals) -> int:
        assert await gate.check("The content.")
        return len(await approvals.list(audits=True))

    assert use(file, work, mode="observe") == 1


def test_a_share_is_drawn_at_random(file: str):
    """Equal contents too, each time anew: nothing that an author writes has a say in it."""

    async def work(gate: Gate, approvals: Approvals) -> int:
        for _ in range(60):
            await gate.check("The same content.")
        return len(await approvals.list(audits=True))

    assert 5 < use(file, work, audit=Audit(share=0.5, approvers=("ana",))) < 55


@pytest.mark.parametrize("approved", [True, False])
def test_an_answer_opens_nothing(file: str, approved: bool):
    """Nobody can wait for it or use it, and no pending decision can be resumed with it."""

    async def work(gate: Gate, approvals: Approvals) -> None:
        decision = await gate.check("The content.")
        (audit,) = await approvals.list(audits=True)
        await approvals.decide(audit.id, "ana", approved)
        with pytest.raises(UsageError, match="opens nothing"):
            await approvals.wait(audit.id)
        with pytest.raises(UsageError, match="opens nothing"):
            await approvals.use(Decision.from_dict(decision.to_dict() | {"approval_id": audit.id}))
        assert await approvals.pending(audit.id) is None
        assert await gate.pending(status=None) == ()
        assert not (await approvals.get(audit.id)).overrides
        held = Decision.from_dict(decision.to_dict() | {"allowed": False, "pending": True, "approval_id": audit.id})
        assert not await gate.resume(held, content="The content.")

    use(file, work)


def test_an_audit_is_in_no_queue_count_or_limit_of_what_waits(url: str):
    """Nor in the lists of what was approved or denied."""

    async def work(gate: Gate, approvals: Approvals) -> None:
        for number in range(3):
            await gate.check(f"content {number}")
        await answer(approvals, [True, False])
        assert (
            await approvals.list() == await approvals.list(status="denied") == await approvals.list(status=None) == ()
        )
        assert await approvals.find_requests() == await approvals.find_requests(status="approved") == ((), 0)
        assert await approvals.list_queue() == ()
        assert await approvals.count_open("ana") == 0
        strict = gate.replace(audit=None, on_failed="ask", ask={"approvers": ["ana"]}, wait=False)
        assert (await strict.check("bad content")).pending
        (request,) = await approvals.list()
        assert request.audit == {}
        assert len(await approvals.list(audits=True, status=None)) == 3
        assert [row async for row in approvals.labels()] == []

    use(url, work)
    assert verify(url).valid


def test_what_nobody_answers_in_time_is_counted_and_not_taken_for_good(file: str):
    """Half of twelve could hide that the promise is broken, and the monitor says so."""
    audit = Audit(share=1.0, approvers=("ana",), expires_in=3_600)
    late = timedelta()

    async def work(gate: Gate, approvals: Approvals) -> list[Monitor]:
        for number in range(12):
            await gate.check(f"content {number}")
        await answer(approvals, [True] * 6)
        open_ = await gate.read_monitor()
        nonlocal late
        late = timedelta(hours=1)
        await approvals.close_due()
        return [open_, await gate.read_monitor()]

    open_, closed = use(file, work, audit=audit, approvals={"clock": lambda: datetime.now(UTC) + late})

    assert (open_.open, open_.unanswered) == (6, 0)
    assert (closed.open, closed.unanswered, closed.labels, closed.bad) == (0, 6, 6, 0)
    assert closed.verdict == "unanswered"
    assert names(closed.explain(), "6 of 12 audits", "not answered")


def test_another_model_does_not_hide_that_nobody_answers(file: str):
    """Else a server reports another name once, and people who look away raise nothing until 50 audits are answered."""
    judge = Reporting("m-1")
    audit = Audit(share=1.0, approvers=("ana",), expires_in=3_600)

    async def work(gate: Gate, approvals: Approvals) -> Monitor:
        for model in ("m-1", "m-2", *["m-1"] * 10):
            judge.model = model
            await gate.check("The content.")
        return await gate.read_monitor()

    earlier = {"clock": lambda: datetime.now(UTC) - timedelta(hours=2)}
    monitor = use(file, work, judge, audit=audit, approvals=earlier)

    assert (monitor.verdict, monitor.model_changed, monitor.unanswered) == ("unanswered", True, 12)
    assert names(monitor.explain(), "12 of 12 audits", "not answered")


@pytest.mark.full
def test_an_alarm_is_raised_and_stays_until_people_begin_anew(url: str):
    """The callback is told once; a reset is recorded with who and why."""
    told: list[str] = []
    audit = Audit(share=1.0, approvers=("ana",), on_change=lambda monitor: told.append(monitor.verdict))

    async def work(gate: Gate, approvals: Approvals) -> tuple[Monitor, Monitor]:
        await label(gate, approvals, [False] * 8)
        await label(gate, approvals, [True] * 4)
        return await gate.read_monitor(), await gate.read_monitor()

    monitor, again = use(url, work, audit=audit)

    assert monitor == again
    assert (monitor.alarm, monitor.verdict, told) == (True, "alarm", ["alarm"])
    assert names(monitor.explain(), "8 of 12", "should have been stopped", "10 %")
    assert names(monitor.advice, "adjudge monitor answers --reset")


def test_what_was_not_closed_by_anybody_counts_as_not_answered_once_its_time_is_over(file: str):
    """Whoever reads a monitor closes nothing."""

    async def work(gate: Gate, approvals: Approvals) -> Monitor:
        await gate.check("The content.")
        assert (await approvals.list(audits=True))[0].status == "open"
        return await gate.read_monitor()

    earlier = {"clock": lambda: datetime.now(UTC) - timedelta(hours=2)}
    monitor = use(file, work, audit=Audit(share=1.0, approvers=("ana",), expires_in=3_600), approvals=earlier)

    assert (monitor.audits, monitor.open, monitor.unanswered) == (1, 0, 1)
    assert find(file, kind="audit.closed") == []


async def history(approvals: Approvals) -> list[Any]:
    return [entry async for entry in approvals.ledger.query()]


def find_kinds(entries: list[Any], kind: str) -> list[Any]:
    return [entry for entry in entries if entry.kind == kind]


def test_people_begin_anew_for_a_reason_that_is_recorded(file: str):
    """What was drawn before does not count any more, also where it is answered only now."""

    async def work(gate: Gate, approvals: Approvals) -> tuple[Monitor, Monitor]:
        await label(gate, approvals, [False] * 8)
        await gate.check("answered only after the reset")
        await reset_monitor(approvals.ledger, "answers", by="ana", reason="another judge")
        await answer(approvals, [False])
        reset = await gate.read_monitor()
        await label(gate, approvals, [True])
        return reset, await gate.read_monitor()

    reset, after = use(file, work)

    assert (reset.verdict, reset.audits, reset.labels, reset.wealth) == ("too few labels", 0, 0, 1.0)
    assert (after.audits, after.labels, after.bad) == (1, 1, 0)
    (entry,) = find(file, kind="monitor.reset")
    assert entry.payload == {
        "schema": "adjudge/monitor-reset/1",
        "gate": "answers",
        "by": "ana",
        "reason": "another judge",
    }


@pytest.mark.parametrize("missing", ["by", "reason", "gate"])
def test_nobody_begins_anew_without_a_name_and_a_reason(file: str, missing: str):
    """It takes an alarm back, so somebody answers for it."""
    arguments = {"gate": "answers", "by": "ana", "reason": "another judge"} | {missing: " "}

    async def work(ledger: Ledger) -> None:
        await reset_monitor(ledger, arguments.pop("gate"), **arguments)

    assert names(complaint(work, Ledger(file)), missing)


def test_a_promise_that_is_made_laxer_takes_no_alarm_back(file: str):
    """Each audit tests what was promised when it was drawn."""

    async def work(gate: Gate, approvals: Approvals) -> Monitor:
        await label(gate, approvals, [False] * 8)
        lax = gate.replace(audit=Audit(share=1.0, approvers=("ana",), promise=0.9))
        await label(lax, approvals, [True] * 3)
        return await lax.read_monitor()

    monitor = use(file, work)

    assert (monitor.verdict, monitor.promise) == ("alarm", 0.9)


def test_another_model_asks_for_labels_at_once(file: str):
    """Each call is audited until there are enough, whatever the share; a name that was seen before is no news."""
    judge = Reporting("m-1")
    told: list[str] = []
    audit = Audit(share=1e-9, approvers=("ana",), on_change=lambda monitor: told.append(monitor.verdict))

    async def work(gate: Gate, approvals: Approvals) -> list[Monitor]:
        await gate.check("the first model")
        monitors = [await gate.read_monitor()]
        for model in ("m-2", "m-1", "m-2"):
            judge.model = model
            assert await gate.check("another model")
        monitors.append(await gate.read_monitor())
        for number in range(52):
            await gate.check(f"content {number}")
            await answer(approvals, [True])
        return [*monitors, await gate.read_monitor()]

    first, changed, labelled = use(file, work, judge, audit=audit)

    assert (first.audits, first.models, first.model_changed) == (0, ("m-1",), False)
    assert (changed.verdict, changed.audits, changed.models, changed.labels_needed) == (
        "model changed",
        3,
        ("m-1", "m-2"),
        50,
    )
    assert names(changed.advice, "label 50")
    assert (labelled.verdict, labelled.audits, labelled.labels) == ("quiet", 50, 50)
    assert told == ["model changed", "quiet"]


def test_a_server_that_names_another_model_each_time_floods_nobody(file: str):
    """So many names are noticed, and no more."""
    judge = Reporting()

    async def work(gate: Gate, approvals: Approvals) -> Monitor:
        for number in range(30):
            judge.model = f"m-{number}"
            await gate.check("The content.")
        return await gate.read_monitor()

    monitor = use(file, work, judge, audit=Audit(share=1e-9, approvers=("ana",)))

    assert len(monitor.models) == 20
    assert len(find(file, kind="model.changed")) == 20


def test_models_beyond_the_most_are_not_recorded_where_calls_at_the_same_time_recorded_some(file: str):
    """Each of those calls saw that there was room; a chain that reports several names finds none."""
    seats = [Judge(Reported(f"new-{seat}", seat)) for seat in ("one", "two", "three", "four")]

    async def work(gate: Gate, approvals: Approvals) -> None:
        for number in range(22):
            payload = {"schema": "adjudge/model-changed/1", "gate": "answers", "model": f"m-{number}", "result": "r"}
            await approvals.ledger.append(payload, kind="model.changed")
        assert await gate.check("a good text")

    use(file, work, JudgeChain(seats, strategy="consensus"))

    assert len(find(file, kind="model.changed")) == 22


def test_a_gate_with_too_many_models_is_not_quiet_until_people_begin_anew(file: str):
    """Names beyond the most are not recorded, so a new model behind one of them would be noticed by nobody."""
    judge = Reporting()

    async def work(gate: Gate, approvals: Approvals) -> list[Monitor]:
        for number in range(20):
            judge.model = f"m-{number}"
            await gate.check("bad content")  # not let through, so nobody is asked about it
        judge.model = "m-19"
        await label(gate, approvals, [True] * 50)
        judge.model = "one more"
        await gate.check("The content.")
        full = await gate.read_monitor()
        await reset_monitor(approvals.ledger, "answers", by="ana", reason="the provider was asked")
        return [full, await gate.read_monitor()]

    full, reset = use(file, work, judge)

    assert (full.verdict, full.labels, full.labels_needed, full.draws_at_once) == ("model changed", 50, 0, 0)
    assert names(full.explain(), "reported 20 models", "would not be noticed")
    assert names(full.advice, "adjudge monitor answers --reset")
    assert reset.verdict == "too few labels"


def test_no_more_than_fifty_audits_of_new_models_wait_for_an_answer(file: str):
    """A server that reports a new name after each 50 calls floods nobody; the rest is drawn once people answer."""
    judge = Reporting("m-0")

    async def check(gate: Gate, calls: int) -> tuple[int, int]:
        for _ in range(calls):
            await gate.check("The content.")
        monitor = await gate.read_monitor()
        return monitor.audits, monitor.open

    async def work(gate: Gate, approvals: Approvals) -> list[tuple[int, int]]:
        counts = [await check(gate, 1)]
        judge.model = "m-1"
        counts.append(await check(gate, 52))
        judge.model = "m-2"
        counts.append(await check(gate, 5))
        await answer(approvals, [True] * 4)
        return [*counts, await check(gate, 5)]

    counts = use(file, work, judge, audit=Audit(share=1e-9, approvers=("ana",)))

    assert counts == [(0, 0), (50, 50), (50, 50), (54, 50)]


def test_what_could_not_be_put_to_people_counts_as_not_answered(file: str):
    """Else whoever writes a content that cannot be shown would keep it from being audited."""

    def redact(value: object) -> object:
        calls.append(value)
        if len(calls) > 1:
            raise ValueError("only the first")
        return value

    calls: list[object] = []

    async def work(gate: Gate, approvals: Approvals) -> Monitor:
        assert await gate.check("The content.")
        assert await approvals.list(audits=True) == ()
        return await gate.read_monitor()

    monitor = use(file, work, redact=redact)

    assert (monitor.audits, monitor.unanswered) == (1, 1)
    (entry,) = find(file, kind="audit.failed")
    assert (entry.payload or {})["problem"] == "AdjudgeError"


def test_what_people_answered_stays_when_the_content_is_erased(file: str):
    """An alarm cannot be erased with the contents that raised it; a process that begins anew counts the same."""

    async def work(gate: Gate, approvals: Approvals) -> tuple[Monitor, Monitor]:
        await label(gate, approvals, [False] * 8)
        before = await gate.read_monitor()
        for entry in find_kinds(await history(approvals), "audit.requested"):
            await approvals.ledger.erase(entry.seq, "asked for", "ana")
        return before, await read_monitor(approvals.ledger, "answers")

    before, after = use(file, work)

    assert before.alarm
    assert (after.verdict, after.audits, after.labels, after.bad) == ("alarm", 8, 8, 8)


@pytest.mark.integration
def test_an_answer_of_another_process_is_seen_by_the_next_call(url: str):
    """Whatever a gate remembers, it reads what is new before it says that all is quiet."""
    verdicts: list[str] = []

    async def work(gate: Gate, approvals: Approvals) -> None:
        process = await asyncio.to_thread(start_answering, url)
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            assert await asyncio.to_thread(process.stdout.readline)
            while not verdicts:
                assert await gate.check("The content.")
                process.stdin.write("go\n")
                process.stdin.flush()
                assert "1" in await asyncio.to_thread(process.stdout.readline)
                if (await read_monitor(approvals.ledger, "answers")).alarm:
                    assert verdicts == []
                    await gate.check("The next call.")
                    assert verdicts == ["alarm"]
        finally:
            process.communicate()

    audit = Audit(share=1.0, approvers=("ana",), on_change=lambda monitor: verdicts.append(monitor.verdict))
    use(url, work, audit=audit)


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"audit": 0}, ["share", "above 0"]),
        ({"audit": 2}, ["audit", "0.02"]),
        ({"audit": "yes"}, ["audit", "'yes'"]),
        ({"show_content": False}, ["audit", "show_content", "held"]),
        ({"approvals": None}, ["audit", "approvals"]),
        ({"audit": 0.02}, ["audit", "approvers"]),
        ({"judge": None, "rubric": None, "rules": ["json"]}, ["audit", "judge"]),
    ],
)
def test_an_audit_that_could_not_be_answered_is_refused_when_the_gate_is_made(
    file: str, options: dict[str, Any], parts: list[str]
):
    """Nobody to ask, nothing to read, no judge: it would be noticed only when it matters."""
    ledger = Ledger(file)
    arguments: dict[str, Any] = {"rubric": GOOD, "judge": Reporting(), "approvals": Approvals(ledger)}
    arguments |= {"audit": EVERY, "show_content": True} | options

    assert names(complaint(Gate, "answers", ledger=ledger, **arguments), *parts)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({"promise": 0}, "promise"),
        ({"promise": 1}, "promise"),
        ({"confidence": 1.0}, "confidence"),
        ({"approvers": "ana"}, "approvers"),
        ({"expires_in": 0}, "expires_in"),
        ({"on_change": "no"}, "on_change"),
    ],
)
def test_an_audit_names_what_it_cannot_be(arguments: dict[str, Any], part: str):
    """Each argument, with its name."""
    assert names(complaint(Audit, **arguments), part)


def test_a_gate_without_an_audit_has_no_monitor(file: str):
    """So nobody takes silence for a good sign."""
    gate = make_gate(Ledger(file), Approvals(file), audit=None)

    assert names(complaint(gate.read_monitor), "audit")


def test_a_monitor_of_a_gate_without_audits_says_so(file: str):
    """It knows nothing yet, and can be written and read."""

    async def work(gate: Gate, approvals: Approvals) -> Monitor:
        return await gate.read_monitor()

    monitor = use(file, work)

    assert (monitor.verdict, monitor.promise) == ("too few labels", None)
    assert names(monitor.explain(), "no audits")
    assert Monitor.from_dict(monitor.to_dict()) == monitor


def test_a_case_that_was_planted_is_in_no_figure_but_those_made_for_it(url: str):
    """It looks like any other to who answers; no judge is asked, no decision made, no webhook sent."""
    receiver, results = Receiver(), list[Any]()

    async def go() -> tuple[Monitor, Any]:
        async with (
            serve(receiver),
            Ledger(url) as ledger,
            Approvals(ledger, webhook=Webhook(receiver.url, secret=KEY)) as approvals,
        ):
            gate = make_gate(ledger, approvals, on_result=results.append)
            for number in range(3):
                await gate.plant(f"made up {number}", by="ana", reason="do people look?", task="Answer.")
            planted = (await approvals.list(audits=True))[0]
            await answer(approvals, [False, True])
            assert (await approvals.compute_figures("ana")).decided == 0
            return await gate.read_monitor(), planted

    monitor, planted = asyncio.run(go())

    assert (monitor.planted, monitor.planted_answered, monitor.planted_found) == (3, 2, 1)
    assert (monitor.audits, monitor.labels, monitor.bad, monitor.wealth, monitor.models) == (0, 0, 0, 1.0, ())
    assert (planted.content, planted.texts, planted.judge) == ("made up 0", {"task": "Answer."}, "reporting")
    assert "plant" not in str(planted.to_dict())
    assert (receiver.events, results) == ([], [])
    kinds = {entry.kind for entry in find(url)}
    assert kinds == {"genesis", "audit.planted", "audit.requested", "audit.closed", "approval.voted"}
    assert verify(url).valid


def test_a_case_that_was_planted_costs_nothing(file: str):
    """The judge is not asked, and a budget stays as it is; what goes through in earnest is paid for."""
    model, budget = Words(), Budget(1.0)
    prices = {model.name: {"input": 1.0, "output": 1.0}}
    judge = with_layers(Judge(model, max_output_tokens=100), budget=budget, prices=prices)
    spent: list[tuple[int, float, float]] = []

    async def work(gate: Gate, approvals: Approvals) -> None:
        for number in range(3):
            await gate.plant(f"good, but made up {number}", by="ana", reason="do people look?")
        await answer(approvals, [False, True, False])
        spent.append((len(model.requests), budget.spent, budget.held))
        assert await gate.check("good in earnest")

    use(file, work, judge)

    assert spent == [(0, 0.0, 0.0)]
    assert len(model.requests) == 1
    assert budget.spent > 0


def test_a_case_is_planted_with_a_name_and_a_reason(file: str):
    """Both are recorded, and a gate without audits has nowhere to plant one."""
    gate = make_gate(Ledger(file), Approvals(file))

    assert names(complaint(gate.plant, "made up", by="", reason="why"), "by")
    assert names(complaint(gate.plant, "made up", by="ana", reason=" "), "reason")
    assert names(complaint(gate.replace(audit=None).plant, "made up", by="ana", reason="why"), "audit")


def notify(file: str, work: Callable[[Gate, Approvals], Awaitable[None]]) -> Receiver:
    """The receiver of the webhook of an audited gate, after an async function has used the gate."""
    receiver = Receiver()

    async def go() -> None:
        async with serve(receiver):
            webhook = Webhook(receiver.url, secret=KEY)
            async with Ledger(file) as ledger, Approvals(ledger, webhook=webhook) as approvals:
                await work(make_gate(ledger, approvals), approvals)

    asyncio.run(go())
    return receiver


def test_a_webhook_tells_audits_from_requests_that_something_waits_for(file: str):
    """So that nobody is paged for what nobody waits for."""

    async def work(gate: Gate, approvals: Approvals) -> None:
        assert await gate.check("The content.")
        await answer(approvals, [True])

    assert sorted(notify(file, work).events) == [("audit.closed", "approved"), ("audit.requested", "open")]


def test_a_webhook_is_notified_once_of_what_audits_show(file: str):
    """With the sentence and what to do, and nothing of any content; two processes send an alarm under one id."""

    async def work(gate: Gate, approvals: Approvals) -> None:
        await label(gate, approvals, [False] * 8)
        for reader in (gate, gate, gate.replace()):  # the last one as another process would
            assert (await reader.read_monitor()).alarm

    sent = [(headers["webhook-id"], verify_webhook(headers, body, KEY)) for headers, body in notify(file, work).got]
    alarms = [(ident, event["data"]) for ident, event in sent if event["type"] == "monitor.changed"]
    assert len(alarms) == 2
    assert len({ident for ident, _ in alarms}) == 1
    data = alarms[0][1]
    assert (data["gate"], data["verdict"], data["labels"], data["bad"]) == ("answers", "alarm", 4, 4)
    assert names(data["sentence"], "4 of 4", "should have been stopped")
    assert "adjudge monitor answers --reset" in data["advice"]
    assert "planted" not in data
    assert not any("content 0" in str(event) for _, event in sent)
