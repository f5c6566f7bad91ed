"""What stands around a gate: the person it asks, the ledger, redaction, hooks and logs."""

from __future__ import annotations

import asyncio
import hashlib
import logging

import pytest

from adjudge import Judge
from adjudge.guards import ApprovalAnswer
from adjudge.testing import ScriptedModel
from kit.gates import Book, Desk, check, gate, seat, word
from kit.judges import complaint, failed, passed, scores, silent
from kit.loops import run_virtual

SHORT = {"name": "length", "max": 20}
WARNING = {"regex": "perhaps", "absent": True, "severity": "warning"}
INFO = {"regex": "perhaps", "absent": True, "severity": "info"}


# ---------------------------------------------------------------- people


def test_a_person_decides_what_was_held_back():
    """The request carries the decision and what approvals need to know; a yes lets through, in that person's name."""
    desk = Desk(ApprovalAnswer(True, "ana", "checked by phone"))
    decision = check(gate(failed(), on_failed="ask", approvals=desk, ask={"approvers": ["ana"]}))
    ((held, message, terms),) = desk.requests

    assert word(decision) == ("allowed", "human")
    assert (decision.approval_id, decision.result, terms) == ("a-1", held.result, {"approvers": ["ana"]})
    assert (word(held), held.subject) == (("blocked", "policy"), decision.subject)
    assert "'door' held this back: failed" in message
    assert "approved by ana: checked by phone" in decision.explain()


def test_a_person_can_say_no():
    """The denial is that person's."""
    decision = check(gate(silent(), on_undecided="ask", approvals=Desk(ApprovalAnswer(False, "ana", ""))))

    assert word(decision) == ("blocked", "human")
    assert decision.detail == "denied by ana"


def test_an_expiry_is_a_policy():
    """Nobody's name stands under what nobody decided."""
    assert word(check(gate(failed(), on_failed="ask", approvals=Desk(ApprovalAnswer(False, None, "expired"))))) == (
        "blocked",
        "policy",
    )
    assert word(check(gate(failed(), on_failed="ask", approvals=Desk(ApprovalAnswer(True, None, "expired"))))) == (
        "allowed",
        "policy",
    )


@pytest.mark.parametrize(
    "desk",
    [
        Desk(RuntimeError("private")),
        Desk(request=RuntimeError("private")),
        Desk(request=""),
        Desk(request=None),
        Desk("yes"),
        Desk(ApprovalAnswer(1, "ana", "")),  # type: ignore[arg-type]
        Desk(ApprovalAnswer("yes", "ana", "")),  # type: ignore[arg-type]
        Desk((True, "ana", "")),
        Desk(ApprovalAnswer(True, 7, "")),  # type: ignore[arg-type]
        Desk(asyncio.CancelledError()),
    ],
)
def test_an_answer_that_is_not_plain_blocks(desk: Desk):
    """What goes wrong while a person is asked is no approval, and its text is not repeated."""
    decision = check(gate(failed(), on_failed="ask", approvals=desk))

    assert decision.allowed is decision.pending is False
    assert "private" not in decision.explain()


def test_a_person_need_not_be_waited_for():
    """The pending decision is not allowed; resuming it gives the one that takes its place."""
    book = Book()
    made = gate(failed(), on_failed="ask", approvals=Desk(), wait=False, ledger=book)
    pending = check(made)
    later = run_virtual(made.resume(pending))

    assert word(pending) == ("pending", "policy")
    assert not pending
    assert (word(later), later.approval_id, later.result) == (("allowed", "human"), "a-1", pending.result)
    assert later.id != pending.id
    assert [entry.allowed for entry, _ in book.entries] == [False, True]


def test_only_a_pending_decision_of_this_gate_is_resumed():
    """A decision that was made stays as it is."""
    made = gate(failed(), on_failed="ask", approvals=Desk(), wait=False)
    other = gate(failed(), on_failed="ask", approvals=Desk(), wait=False, name="other")

    assert "only a pending decision" in complaint(made.resume, check(gate(failed())))
    assert "of gate 'other' cannot be resumed by gate 'door'" in complaint(made.resume, check(other))


@pytest.mark.parametrize(
    ("kind", "option"), [("failed", "on_failed"), ("split", "on_undecided"), ("tampering", "on_tampering")]
)
def test_each_kind_has_its_own_ask(kind: str, option: str):
    """A person is asked about exactly what was asked for."""
    desk = Desk()
    others = [other for other in ("failed", "split", "tampering") if other != kind]
    made = {each: check(gate(seat(each), approvals=desk, **{option: "ask"})) for each in (kind, *others)}

    assert word(made[kind]) == ("allowed", "human")
    assert not any(made[other].allowed for other in others)
    assert len(desk.requests) == 1


# ---------------------------------------------------------------- the ledger


def test_every_decision_is_recorded():
    """The entry is the decision itself, under its kind, subject and gate; the decision knows its place."""
    book = Book()
    decision = check(gate(passed(), ledger=book))
    ((entry, named),) = book.entries

    assert decision.ledger_seq == 1
    assert entry.to_dict() | {"ledger_seq": 1} == decision.to_dict()
    assert named == {"kind": "decision", "subject": decision.subject, "gate": "door"}


@pytest.mark.parametrize("made", [{"sample": 0}, {"rules": [lambda text: False]}, {"mode": "observe"}, {}])
def test_no_way_through_avoids_the_ledger(made: dict[str, object]):
    """Not sampled, stopped by a rule, observed, judged: all are recorded."""
    book = Book()
    check(gate(failed(), ledger=book, **made))

    assert len(book.entries) == 1


@pytest.mark.parametrize("breaks", [OSError("private"), asyncio.CancelledError(), True, "1"])
@pytest.mark.parametrize("options", [{}, {"sample": 0}, {"on_undecided": "allow"}])
def test_what_cannot_be_recorded_is_blocked(breaks: object, options: dict[str, object]):
    """A pass that nobody could prove later is no pass; the ledger's own words are not repeated."""
    decision = check(gate(passed(), ledger=Book(breaks=breaks), **options))

    assert word(decision) == ("blocked", "policy")
    assert decision.detail.startswith("not recorded")
    assert "private" not in decision.explain()
    assert decision.ledger_seq is None


def test_an_unrecorded_request_is_not_pending():
    """An approval of it would open nothing."""
    made = gate(failed(), on_failed="ask", approvals=Desk(), wait=False, ledger=Book(breaks=OSError()))

    assert word(check(made)) == ("blocked", "policy")


@pytest.mark.parametrize("place", [0, -1, None, True, False, "3", 3.0, float("nan"), [3], 2**70, 1])
@pytest.mark.parametrize("pending", [False, True])
def test_only_a_whole_number_from_one_is_a_place(place: object, pending: bool):
    """0, -1 and nothing at all are how stores say that they kept nothing; a decision that waits is lost as well."""

    class Store:
        async def append(self, value: object, /, **options: object) -> object:
            return place

    judge = failed() if pending else passed()
    made = gate(judge, ledger=Store(), on_failed="ask", approvals=Desk(), wait=False)  # type: ignore[arg-type]
    decision = check(made)

    if type(place) is int and place >= 1:
        assert (decision.ledger_seq, decision.allowed, decision.pending) == (place, not pending, pending)
    else:
        assert (decision.ledger_seq, decision.allowed, decision.pending) == (None, False, False)
        assert decision.detail.startswith("not recorded")


def test_observe_holds_nothing_up_when_the_ledger_fails():
    """By policy, and it says what is missing."""
    decision = check(gate(passed(), mode="observe", ledger=Book(breaks=OSError())))

    assert word(decision) == ("allowed", "policy")
    assert decision.would_allow is False
    assert decision.detail.startswith("not recorded: OSError")


# ---------------------------------------------------------------- redaction


def hide(value: object) -> str:
    return str(value).replace("Ana", "[name]")


async def hide_later(value: object) -> str:
    return hide(value)


@pytest.mark.parametrize("redact", [hide, hide_later])
def test_nothing_is_sent_that_was_redacted(redact: object):
    """Content, task, context, reference, and what a warning quotes of them."""
    model = ScriptedModel(scores(1.0, names=["good"]))
    quoting = {"regex": "Ana", "absent": True, "severity": "warning"}
    made = gate(judge=Judge(model), redact=redact, rules=[quoting])
    decision = check(made, "Ana writes", task="Ana asks", context="Ana lives", reference="Ana wrote")
    (request,) = model.requests

    assert "Ana" not in request.user + request.system
    assert request.user.count("[name]") == 4
    assert decision.allowed


def test_what_is_kept_of_a_redacted_request_is_known_by_the_content():
    """By its digest in the ledger: by that of the redacted text nobody would find it to delete it."""
    model = ScriptedModel(scores(1.0, names=["good"]))
    decision = check(gate(judge=Judge(model), redact=hide), "Ana writes")

    assert [request.subject for request in model.requests] == [decision.subject]
    assert decision.subject == hashlib.sha256(b"Ana writes").hexdigest()


def test_rules_see_what_the_judge_does_not():
    """They run here, on the content as it is, and the digest is that of the content as it is."""
    made = gate(passed(), redact=lambda value: "x", rules=[SHORT])
    text = "Ana " * 9

    assert word(check(made, text)) == ("blocked", "rule")
    short = check(made, "Ana")
    assert short.subject == short.result.subject == hashlib.sha256(b"Ana").hexdigest()
    assert [item.passed for item in short.result.rule_results] == [True]


@pytest.mark.parametrize(
    "redact", [lambda value: None, lambda value: 1 / 0, lambda value: b""], ids=["forgets", "raises", "binary"]
)
@pytest.mark.parametrize("on_undecided", ["block", "allow"])
def test_a_redaction_that_fails_sends_nothing(redact: object, on_undecided: str):
    """And blocks, whatever is done with undecided content."""
    judge = passed()
    decision = check(gate(judge, redact=redact, on_undecided=on_undecided))

    assert word(decision) == ("blocked", "policy")
    assert judge.asked == []


# ---------------------------------------------------------------- hooks and logs


def test_hooks_hear_of_results_and_events():
    """Sync or async; in order, and the last event holds the decision that was returned."""
    results, events = [], []

    async def later(event: object) -> None:
        events.append(event)

    made = gate(failed(), on_failed="ask", approvals=Desk(), on_result=results.append, on_event=later)
    decision = check(made)

    assert results == [decision.result]
    assert [event.kind for event in events] == ["judged", "asked", "answered", "decided"]
    assert events[-1].decision is decision
    assert {event.subject for event in events} == {decision.subject}


def test_what_a_hook_raises_is_logged_and_not_thrown(caplog: pytest.LogCaptureFixture):
    """Its text may quote the content, so it is logged at DEBUG only."""

    def broken(value: object) -> None:
        raise ValueError("SECRET")

    async def worse(value: object) -> None:
        raise asyncio.CancelledError

    with caplog.at_level(logging.DEBUG, logger="adjudge"):
        decision = check(gate(passed(), on_result=broken, on_event=worse))
    loud = [record.getMessage() for record in caplog.records if record.levelno > logging.DEBUG]

    assert decision.allowed
    assert any("on_result hook raised ValueError" in text for text in loud)
    assert any("on_event hook raised RuntimeError" in text for text in loud)
    assert "SECRET" not in "".join(loud)


def test_content_is_never_logged_above_debug(caplog: pytest.LogCaptureFixture):
    """Neither itself, nor what a rule, a judge, a ledger or a person says about it."""
    desk = Desk(ApprovalAnswer(True, "ana", "SECRET"))
    gates = [
        gate(rules=[{"regex": "SECRET", "absent": True}]),
        gate(failed(reasoning="SECRET", detail="SECRET"), on_failed="ask", approvals=desk),
        gate(passed(), ledger=Book(breaks=OSError("SECRET"))),
        gate(passed(), redact=lambda value: (_ for _ in ()).throw(ValueError(value))),
    ]
    with caplog.at_level(logging.INFO, logger="adjudge"):
        for made in gates:
            check(made, "SECRET")

    assert len(caplog.records) >= len(gates)
    assert "SECRET" not in caplog.text


def test_cancelling_a_check_cancels_it():
    """Nothing swallows it, and nobody is left running."""
    judge = passed(delay=100)

    async def leave() -> None:
        async with asyncio.timeout(1):
            await gate(judge).check("x")

    with pytest.raises(TimeoutError):
        run_virtual(leave())
    assert judge.cancelled == 1
