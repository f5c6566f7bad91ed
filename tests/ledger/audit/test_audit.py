"""Audits that are derived from a ledger: which findings there are, which opinion they come to, and what proves it."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge import Approvals, Gate, Ledger, Rule, RuleResult, UsageError
from adjudge.ledger import Findings, choose_opinion, derive_audit, record_opinion
from adjudge.testing import ScriptedModel
from kit.audits import (
    FAILED,
    PASSED,
    UNDECIDED,
    audit,
    audit_rows,
    close,
    decide,
    find_codes,
    make_rows,
    request,
    shorten,
)
from kit.judges import names
from kit.ledgers import make_chain_result, make_result, rehash

COUNTS = st.integers(0, 3)
BROKEN = replace(FAILED, decided_by="rule", rule_results=(RuleResult(name="secrets", passed=False),))
TAMPERED = replace(UNDECIDED, undecided_because="tampering")
WARNED = replace(PASSED, rule_results=(RuleResult(name="length", passed=False, severity="warning"),))
OBSERVED: dict[str, Any] = {"allowed": True, "decided_by": "policy", "mode": "observe"}
ALLOWED: dict[str, Any] = {"allowed": True, "decided_by": "judge"}
RANK = {"unqualified": 0, "qualified": 1, "disclaimer": 2, "adverse": 3}


# ---------------------------------------------------------------- the rule


@pytest.mark.parametrize(
    ("critical", "major", "judged", "undecided", "opinion"),
    [
        (0, 0, 9, 0, "unqualified"),
        (0, 1, 9, 0, "qualified"),
        (0, 0, 9, 1, "qualified"),
        (0, 9, 2, 1, "qualified"),
        (0, 0, 9, 5, "disclaimer"),
        (0, 0, 0, 0, "disclaimer"),
        (1, 0, 9, 0, "adverse"),
        (1, 0, 9, 9, "adverse"),
        (1, 0, 0, 0, "adverse"),
    ],
)
def test_the_rule(critical: int, major: int, judged: int, undecided: int, opinion: str):
    """The table of docs/audit.md; half undecided is not yet too much."""
    given_all = {"critical": critical, "major": major, "judged": judged, "undecided": undecided}

    assert choose_opinion(**given_all, verified=True) == opinion
    assert choose_opinion(**given_all, verified=False) == "disclaimer"


@given(st.tuples(COUNTS, COUNTS, COUNTS, COUNTS), st.booleans(), st.sampled_from(["critical", "major", "undecided"]))
def test_more_findings_never_make_an_opinion_better(counts: tuple[int, int, int, int], verified: bool, more: str):
    """A further finding, or one more that nobody decided, leaves the opinion as it is or makes it worse."""
    critical, major, judged, undecided = counts
    first: dict[str, int] = {
        "critical": critical,
        "major": major,
        "judged": judged,
        "undecided": min(undecided, judged),
    }
    second = first | {more: first[more] + 1}
    if more == "undecided":
        second["judged"] += 1

    before, after = choose_opinion(**first, verified=verified), choose_opinion(**second, verified=verified)

    # Where nothing was judged there is no opinion yet that could get worse.
    assert RANK[after] >= RANK[before] or judged == 0


@given(COUNTS, COUNTS, COUNTS, COUNTS)
def test_unqualified_needs_everything_in_order(critical: int, major: int, judged: int, undecided: int):
    """No reservation only where something was judged, all of it decided, nothing grave found, the ledger verified."""
    given_all = {"critical": critical, "major": major, "judged": judged, "undecided": undecided}
    clean = critical == major == undecided == 0 and judged > 0

    assert (choose_opinion(**given_all, verified=True) == "unqualified") == clean


# ---------------------------------------------------------------- findings


@pytest.mark.parametrize(
    ("events", "codes"),
    [
        ([("result", PASSED)], []),
        ([("result", FAILED)], ["failed"]),
        ([("result", BROKEN)], ["rule_failed"]),
        ([("result", UNDECIDED)], ["undecided"]),
        ([("result", TAMPERED)], ["tampering"]),
        ([("result", replace(UNDECIDED, undecided_because="contradiction"))], ["contradiction"]),
        ([("result", make_chain_result(PASSED, TAMPERED))], ["tampering"]),
        ([("result", replace(PASSED, decided_by="policy"))], ["opened"]),
        ([decide(replace(PASSED, decided_by="policy"), allowed=True, decided_by="policy")], ["opened"]),
        ([("result", WARNED)], ["warning"]),
        ([decide(PASSED, **ALLOWED)], []),
        ([decide(FAILED)], ["stopped"]),
        ([decide(BROKEN, decided_by="rule")], ["stopped"]),
        ([decide(UNDECIDED, decided_by="policy")], ["undecided"]),
        ([decide(TAMPERED, decided_by="policy")], ["tampering"]),
        ([decide(FAILED, **OBSERVED)], ["let_through"]),
        ([decide(BROKEN, **OBSERVED)], ["let_through"]),
        ([decide(UNDECIDED, **OBSERVED)], ["opened"]),
        ([decide(FAILED, pending=True)], ["pending"]),
        ([decide(None, **OBSERVED, sampled=False)], ["unjudged"]),
        ([decide(None, **OBSERVED)], ["unreadable"]),
        ([("result", FAILED), decide(FAILED)], ["stopped"]),
        ([decide(FAILED, pending=True), decide(FAILED, allowed=True, decided_by="human")], ["approved"]),
        ([decide(FAILED, allowed=True, decided_by="human")], ["overridden"]),
        ([decide(FAILED, allowed=True, decided_by="human"), decide(FAILED, pending=True)], ["overridden"]),
        ([decide(BROKEN, pending=True), decide(BROKEN, allowed=True, decided_by="human")], ["overridden"]),
        (
            [request(FAILED), ("override", {"result": shorten(FAILED), "by": ["ada"], "label": True})],
            ["overridden"],
        ),
        ([decide(UNDECIDED, pending=True), decide(UNDECIDED, allowed=True, decided_by="human")], ["answered"]),
        ([decide(UNDECIDED, pending=True), decide(UNDECIDED, decided_by="human")], ["answered"]),
        ([decide(PASSED, decided_by="human")], ["overruled"]),
        ([request(FAILED)], ["pending"]),
        ([request(FAILED), close(FAILED, "ada", approved=True)], ["approved"]),
        ([request(FAILED), close(FAILED, "ada", approved=False)], ["stopped"]),
        ([request(UNDECIDED), close(UNDECIDED, "ada", approved=True)], ["answered"]),
        ([request(UNDECIDED), close(UNDECIDED, approved=True)], ["opened"]),
        ([request(UNDECIDED), close(UNDECIDED, approved=False)], ["undecided"]),
        ([request(UNDECIDED), close(UNDECIDED, "quick", approved=True, decided_by="judge")], ["answered"]),
        (
            [("result", FAILED), ("override", {"result": shorten(FAILED), "by": ["ada"], "label": True})],
            ["overridden"],
        ),
        (
            [("result", FAILED), ("override", {"result": shorten(FAILED), "by": "ada", "approved": True})],
            ["overridden"],
        ),
        ([("result", FAILED), ("override", {"result": shorten(FAILED), "by": "ada"})], ["let_through"]),
        ([("tool.reviewed", {"approved": True})], []),
        ([("tool.reviewed", {"verdict": {"approved": False}})], ["stopped"]),
        ([("tool.reviewed", {"approved": False, "chain_result": TAMPERED.to_dict()})], ["tampering"]),
        ([("tool.reviewed", {"approved": "yes"})], ["unreadable"]),
        ([("result", {"outcome": "fine"})], ["unreadable"]),
        ([("result", {"outcome": ["passed"], "rule_results": 7, "judge": {}, "score": "1"})], ["unreadable"]),
        ([("result", PASSED.to_dict() | {"rule_results": [{"name": "x"}]})], ["rule_failed"]),
        ([("result", PASSED.to_dict() | {"rule_results": ["odd"]})], ["rule_failed"]),
        ([("decision", [1, 2])], ["unreadable"]),
        ([("run", {"failed": 9})], []),
        ([("override", {"audit": "x", "opinion": "unqualified"})], []),
    ],
)
def test_what_is_found(events: list[Any], codes: list[str]):
    """Each row of the table of findings; what cannot be read is a finding and never a pass."""
    assert find_codes(audit(*events)) == codes


def test_an_approval_that_went_as_designed_is_no_reservation():
    """A gate asked, and a person approved: that is minor, and the opinion is unqualified."""
    report = audit(request(FAILED), close(FAILED, "ada", approved=True))

    assert (report.opinion, report.findings) == ("unqualified", Findings(minor=1))
    assert "a gate asked people, and a person (ada) approved it" in report.found[0].detail
    overridden = audit(("result", FAILED), ("override", {"result": shorten(FAILED), "by": ["ada"], "label": True}))
    assert (overridden.opinion, overridden.findings) == ("qualified", Findings(major=1))


def test_every_finding_cites_the_entry_that_shows_it():
    """By place and hash, so that it can be looked up and proven."""
    rows = make_rows(("result", PASSED), ("result", FAILED))
    report = audit_rows(rows)

    assert [(item.severity, item.seq, item.hash) for item in report.found] == [("major", 3, rows[2][8])]
    assert [(item.seq, item.hash, item.id) for item in report.judged] == [
        (3, rows[2][8], FAILED.id),
        (2, rows[1][8], PASSED.id),
    ]
    assert report.findings == Findings(major=1)
    assert (report.opinion, report.computed_opinion) == ("qualified", "qualified")


def test_an_override_is_shown_by_the_decision_that_let_it_through():
    """And not by a later attempt that was blocked, which is named beside it."""
    rows = make_rows(
        decide(FAILED, pending=True, approval_id="a1"),
        close(FAILED, "ada", approved=True),
        decide(FAILED, allowed=True, decided_by="human", approval_id="a1"),
        decide(FAILED, decided_by="policy", approval_id="a1"),
    )
    report = audit_rows(rows)
    (finding,) = report.found
    (item,) = report.judged

    assert (finding.code, finding.seq, finding.hash) == ("approved", 4, rows[3][8])
    assert finding.detail.endswith("a person (ada) approved it; blocked after that: entry 5")
    assert (item.seq, item.hash, item.became, item.others) == (4, rows[3][8], "let through", (2, 3, 5))


def test_what_a_policy_let_through_is_cited_before_what_people_did():
    """The entry shows what the finding says, also where several let it through."""
    report = audit(decide(FAILED, allowed=True, decided_by="human"), decide(FAILED, **OBSERVED), decide(FAILED))

    assert [(item.code, item.seq) for item in report.found] == [("let_through", 3)]


def test_a_conflict_is_shown_by_the_entry_that_contradicts():
    """The first of them, whatever is recorded after it."""
    report = audit(decide(FAILED), ("result", replace(PASSED, id=FAILED.id)), decide(FAILED))

    assert [(item.code, item.seq) for item in report.found] == [("conflict", 3)]


@pytest.mark.parametrize(
    ("events", "code"),
    [
        ([request(FAILED), close(FAILED, "ada", approved=True)], "approved"),
        ([request(BROKEN), close(BROKEN, "ada", approved=True)], "overridden"),
        ([request(FAILED), close(FAILED, approved=True)], "let_through"),
    ],
)
def test_an_approval_that_nobody_used_let_nothing_through(events: list[Any], code: str):
    """The finding stays, and says that no entry shows more than the approval."""
    report = audit(*events)

    assert [(item.code, item.seq) for item in report.found] == [(code, 3)]
    assert "approved it, and no entry says that it went through" in report.found[0].detail
    assert "let it through" not in report.found[0].detail
    assert [item.became for item in report.judged] == ["approved"]


ASKS: dict[str, Any] = {"basis": {"policy": {"on_rule": "ask"}}}
APPROVED: dict[str, Any] = {"allowed": True, "decided_by": "human"}


@pytest.mark.parametrize(
    ("events", "code"),
    [
        ([decide(BROKEN, pending=True, **ASKS), close(BROKEN, "ada", approved=True)], "approved"),
        ([request(BROKEN), close(BROKEN, "ada", approved=True), decide(BROKEN, **APPROVED, **ASKS)], "approved"),
        ([decide(BROKEN, **APPROVED, **ASKS)], "overridden"),
        ([request(BROKEN), decide(BROKEN, **APPROVED), decide(BROKEN, pending=True, **ASKS)], "overridden"),
    ],
    ids=["asked", "waited", "nobody asked", "too late"],
)
def test_a_gate_that_asks_about_rules_by_design_is_not_overridden(events: list[Any], code: str):
    """By the policy in the decision that asked people, or that let it through; a later entry changes nothing."""
    assert find_codes(audit(*events)) == [code]


def test_a_held_refund_is_audited_as_it_was_decided(tmp_path: Path):
    """A rule holds it, a person approves, one is resumed, with other content as well, and one is not."""

    async def run() -> Any:
        ledger = Ledger(f"sqlite:///{tmp_path / 'a.db'}")
        async with ledger, Approvals(ledger) as approvals:
            rule = Rule(name="small", evaluate=lambda refund: refund["amount"] <= 100)
            options: dict[str, Any] = {"ask": {"approvers": ["ada"]}, "wait": False, "on_rule": "ask"}
            gate = Gate("refunds", rules=[rule], approvals=approvals, ledger=ledger, show_content=True, **options)
            held = [await gate.check({"amount": amount}) for amount in (250, 800)]
            for decision in held:
                await approvals.decide(decision.approval_id or "", "ada", True, "by phone")
            allowed = await gate.resume(held[0].approval_id or "", content={"amount": 250})
            other = await gate.resume(held[0].approval_id or "", content={"amount": 251})
            return held, allowed, other, await derive_audit(ledger)

    held, allowed, other, report = asyncio.run(run())
    became = {item.subject: (item.became, item.seq) for item in report.judged}

    assert (bool(allowed), bool(other), report.opinion, find_codes(report)) == (
        True,
        False,
        "unqualified",
        ["approved"] * 2,
    )
    assert became[held[0].subject] == ("let through", allowed.ledger_seq)
    assert became[held[1].subject][0] == "approved"
    assert [item.seq for item in report.found if f"entry {other.ledger_seq}" in item.detail] == [allowed.ledger_seq]


def test_entries_about_one_result_are_one_thing():
    """Result, request, votes, end and decision count once; earlier entries are named."""
    vote = ("approval.voted", {"approval": "a1", "by": "ada", "approved": True, "accepted": True})
    entry = audit(
        ("result", FAILED),
        request(FAILED),
        vote,
        close(FAILED, "ada", approved=True),
        decide(FAILED, allowed=True, decided_by="human", approval_id="a1"),
    )
    (item,) = entry.judged

    assert entry.basis is not None
    assert (entry.basis.judged, entry.basis.entries, entry.basis.first, entry.basis.last) == (1, 6, 1, 6)
    assert (item.seq, item.others, item.became, item.by, item.approval_id) == (6, (2, 3, 5), "let through", "ada", "a1")
    assert item.gate == "publish"


def test_what_went_through_stays_through():
    """Whoever can append cannot take back, by a later entry, that something was let through."""
    entry = audit(decide(FAILED, **OBSERVED), decide(FAILED), close(FAILED, "ada", approved=False))

    assert find_codes(entry) == ["let_through"]
    assert entry.opinion == "adverse"


@pytest.mark.parametrize("order", [1, -1])
def test_a_second_outcome_under_one_id_is_a_conflict(order: int):
    """Whichever came first, recording another outcome for the same result makes neither the true one."""
    other = replace(PASSED, id=FAILED.id)
    entry = audit(*[("result", FAILED), ("result", other)][::order])

    assert find_codes(entry) == ["conflict"]
    assert entry.opinion == "adverse"


def test_what_a_policy_passed_was_decided_by_nobody():
    """A chain that always fails open leaves nothing to have an opinion about."""
    entry = audit(("result", replace(PASSED, decided_by="policy")))

    assert entry.basis is not None
    assert (entry.basis.judged, entry.basis.undecided, entry.opinion) == (1, 1, "disclaimer")


def test_no_id_stands_for_another_thing():
    """Neither one that looks like our name for an entry without a result, nor one that begins alike."""
    odd = [replace(PASSED, id=text) for text in ("entry 6", "result x", "x" * 300, "x" * 300 + "y")]
    entry = audit(*[("result", item) for item in odd], decide(None))

    assert entry.basis is not None
    assert (entry.basis.judged, len(entry.judged)) == (5, 5)


def test_a_refused_vote_is_noted():
    """Double and late decisions, and those of others; a judge that did not approve is none."""
    votes = [
        ("approval.voted", {"approval": "a1", "by": "eve", "approved": True, "accepted": False, "voter": voter})
        for voter in ("human", "judge")
    ]
    entry = audit(request(UNDECIDED), *votes, close(UNDECIDED, "ada", approved=True))

    assert find_codes(entry) == ["vote_refused", "answered"]
    assert [item.seq for item in entry.found] == [3, 5]


def test_what_was_erased_is_missed():
    """Neither a better opinion nor a smaller number is to be had by erasing."""
    rows = make_rows(("result", PASSED), ("result", PASSED), ("result", FAILED))
    erased = [(*row[:5], None, *row[6:]) if row[0] in {3, 4} else row for row in rows]
    for seq in (3, 4):
        place = len(erased) + 1
        notice = f'{{"seq":{seq},"id":"id-{seq}","payload_hash":"{rows[seq - 1][6]}"}}'.encode()
        erased.append((place, f"id-{place}", rows[0][2], "erasure", f"id-{seq}", notice, "", "", "", None))
    entry = audit_rows(rehash(erased))

    assert entry.basis is not None
    assert entry.basis.verified
    assert find_codes(entry) == ["erased", "erased"]
    assert "recorded at 5" in entry.found[0].detail
    assert (entry.basis.judged, entry.basis.undecided, entry.opinion) == (3, 2, "disclaimer")
    assert audit_rows(rehash(erased), gate="publish").findings.major == 2


def test_nothing_is_known_of_a_ledger_that_was_changed():
    """Only what stands before the first bad entry is looked at, and the opinion is a disclaimer."""
    rows = make_rows(("result", PASSED), ("result", PASSED), ("result", PASSED))
    rows[2] = (*rows[2][:4], "other", *rows[2][5:])
    entry = audit_rows(rows)

    assert entry.basis is not None
    assert (entry.opinion, entry.findings) == ("disclaimer", Findings(critical=1))
    assert (find_codes(entry), entry.found[0].seq) == (["ledger_changed"], 3)
    assert [item.seq for item in entry.judged] == [2]
    assert "entry_changed" in entry.basis.problem


@pytest.mark.parametrize(
    ("options", "seqs"),
    [
        ({}, [2, 3, 4]),
        ({"gate": "publish"}, [3]),
        ({"execution": "x"}, [4]),
        ({"subject": "5" * 64}, [2]),
        ({"since": datetime(2026, 11, 20, 12, 0, 3, tzinfo=UTC)}, [3, 4]),
        ({"until": datetime(2026, 11, 20, 12, 0, 3, tzinfo=UTC)}, [2]),
        ({"gate": "other"}, []),
    ],
)
def test_only_what_is_asked_for_is_looked_at(options: dict[str, Any], seqs: list[int]):
    """By gate, execution, subject and time; ``until`` is not included."""
    about = make_result(outcome="passed", rule_results=(), score=0.9)
    other = replace(PASSED, id="other")
    entry = audit(
        ("result", about), decide(PASSED, **ALLOWED), ("result", other.to_dict() | {"execution": "x"}), **options
    )

    assert sorted(item.seq for item in entry.judged) == seqs
    assert entry.opinion == ("unqualified" if seqs else "disclaimer")


def test_an_approval_is_in_scope_when_what_it_is_about_is():
    """A request does not say its gate in every entry, and is found all the same, and not with another gate."""
    events = request(UNDECIDED), close(UNDECIDED, "ada", approved=True), decide(UNDECIDED, pending=True)

    assert find_codes(audit(*events, gate="publish")) == ["answered"]
    assert find_codes(audit(*events, gate="other")) == []


def test_one_result_stands_in_the_report_and_several_do_not():
    """The seed's one judge result, where there is one; rules name their entries, those that failed first."""
    passing = RuleResult(name="length", passed=True)
    first = replace(BROKEN, rule_results=(passing, *BROKEN.rule_results))
    one, two = audit(("result", first)), audit(("result", first), ("result", PASSED))

    assert one.judge_result == first
    assert two.judge_result is None
    assert [(item.name, item.passed) for item in two.rule_results] == [("secrets", False), ("length", True)]
    assert two.rule_results[0].metadata == {"ledger_seq": 2}


def test_a_report_lists_a_thousand_and_counts_all():
    """The number of findings is that of all; what is listed is bounded."""
    rows = make_rows(*[("result", replace(FAILED, id=f"r{number}")) for number in range(1_005)])
    entry = audit_rows(rows)

    assert (entry.findings.major, len(entry.found), len(entry.judged)) == (1_005, 1_000, 1_000)


@given(
    st.lists(st.sampled_from(["result", "decision", "override", "approval.closed", "approval.requested"]), max_size=4),
    st.data(),
)
def test_no_payload_breaks_an_audit(kinds: list[str], data: st.DataObject):
    """Whatever was appended as a mapping is read without an error, and never makes anything unqualified by itself."""
    leaf = st.sampled_from([None, True, 0, -1, 1e300, "", "passed", "human", PASSED.id, [], {}, ["x"], {"id": []}])
    names = [
        "id",
        "outcome",
        "result",
        "allowed",
        "pending",
        "by",
        "approval",
        "rule_results",
        "results",
        "score",
        "status",
    ]
    payload = st.dictionaries(st.sampled_from(names), leaf | st.dictionaries(st.sampled_from(names), leaf), max_size=6)
    events = [(kind, data.draw(payload)) for kind in kinds]
    entry = audit(*events)

    assert entry.basis is not None
    assert entry.basis.judged >= entry.basis.undecided
    assert entry.opinion != "unqualified" or any(item.outcome in {"passed", "failed"} for item in entry.judged)


# ---------------------------------------------------------------- opinions of people


@pytest.mark.parametrize("name", ["Ada\u3164", "\u2800Ada", "A\u034fda", "Ada\ufe0f", "Ada\x7f", "Ada ", "Ada  L"])
def test_an_opinion_is_given_by_a_person_whose_name_reads_like_no_other(name: str):
    """A character that nobody sees, or a blank too many, would make another person of the same name."""
    with pytest.raises(UsageError, match="names nobody for certain"):
        replace(audit(("result", FAILED)), opinion="unqualified", opinion_by=name, reason="a false alarm")


def test_a_named_person_can_give_another_opinion():
    """With a reason; what the rule says stays to be seen."""
    entry = replace(audit(("result", FAILED)), opinion="unqualified", opinion_by="Ada", reason="a false alarm")

    assert (entry.opinion, entry.computed_opinion) == ("unqualified", "qualified")
    assert names(entry.explain(), "unqualified by Ada", "a false alarm", "the rule says qualified")


@pytest.mark.parametrize(
    "changes",
    [
        {"opinion": "unqualified"},
        {"opinion": "unqualified", "opinion_by": "Ada"},
        {"opinion": "unqualified", "reason": "because"},
        {"opinion": "unqualified", "opinion_by": " ", "reason": "because"},
        {"opinion": "unqualified", "opinion_by": "Ada", "reason": " "},
        {"opinion": "fine"},
        {"scope": "all"},
        {"created_at": datetime(2026, 11, 20)},  # noqa: DTZ001 - the very thing that is refused
        {"findings": Findings()},
        {"findings": {"critical": 0}},
    ],
    ids=range(10),
)
def test_an_opinion_without_a_name_is_the_rules(changes: dict[str, Any]):
    """No audit can be made, by code or from a file, that says otherwise than the rule without a person and a reason."""
    entry = audit(("result", FAILED))

    with pytest.raises(UsageError):
        replace(entry, **changes)


@pytest.mark.parametrize("opinion", ["unqualified", "qualified"])
def test_nobody_vouches_for_a_ledger_that_was_changed(opinion: Any):
    """A person can call it adverse, and cannot give it a pass."""
    entry = audit_rows(make_rows(("result", PASSED))[1:])

    assert replace(entry, opinion="adverse", opinion_by="Ada", reason="somebody rewrote it").opinion == "adverse"
    with pytest.raises(UsageError, match="does not verify"):
        replace(entry, opinion=opinion, opinion_by="Ada", reason="I know what was in it")


# ---------------------------------------------------------------- real ledgers


def test_a_gate_is_audited_from_its_ledger(tmp_path: Path):
    """What a gate recorded comes out as it was decided; the head is the ledger's own."""
    replies = [{"criteria": [{"name": "kind", "reasoning": "", "score": score}]} for score in (0.9, 0.1)]
    rubric = {"name": "Kind", "criteria": [{"name": "kind", "description": "Is kind."}]}

    async def run() -> Any:
        async with Ledger(f"sqlite:///{tmp_path / 'a.db'}") as ledger:
            gate = Gate("publish", rubric=rubric, judge=ScriptedModel(replies), ledger=ledger)
            await gate.check("Thank you.")
            first = await derive_audit(ledger, gate="publish")
            await gate.check("Go away.")
            second = await derive_audit(ledger, gate="publish")
            return first, second, await ledger.head()

    first, second, head = asyncio.run(run())

    assert (first.opinion, first.judge_result.outcome, first.judge_result.reasoning) == ("unqualified", "passed", "")
    assert (second.opinion, find_codes(second), second.judge_result) == ("unqualified", ["stopped"], None)
    assert second.basis.head == head
    assert second.scope == ("gate publish",)


def test_an_export_gives_the_same_audit(tmp_path: Path):
    """Offline, from the file alone; a pinned head is compared in both."""

    async def run() -> Any:
        async with Ledger(f"sqlite:///{tmp_path / 'a.db'}") as ledger:
            await ledger.append(make_result())
            await ledger.append(PASSED, gate="publish", execution="x")
            head = await ledger.export(tmp_path / "a.jsonl")
            inside = await derive_audit(ledger, head=head)
            return inside, await derive_audit(tmp_path / "a.jsonl", head=str(head))

    inside, outside = asyncio.run(run())

    assert replace(outside, id=inside.id, created_at=inside.created_at) == inside
    assert inside.basis.pinned_head


def test_a_changed_ledger_is_disclaimed(tmp_path: Path):
    """A byte in the database is enough, and entries after it count for nothing."""

    async def run() -> Any:
        async with Ledger(f"sqlite:///{tmp_path / 'a.db'}") as ledger:
            for _ in range(3):
                await ledger.append(replace(PASSED))
            with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
                connection.execute("DROP TRIGGER adjudge_ledger_no_update")
                connection.execute("UPDATE adjudge_ledger SET subject = 'x' WHERE seq = 3")
                connection.commit()
            return await derive_audit(ledger)

    entry = asyncio.run(run())

    assert (entry.opinion, find_codes(entry)[0]) == ("disclaimer", "ledger_changed")


def test_another_opinion_can_be_recorded(tmp_path: Path):
    """As an override that names person and reason, and is no finding of the next audit."""

    async def run() -> Any:
        async with Ledger(f"sqlite:///{tmp_path / 'a.db'}") as ledger:
            await ledger.append(FAILED)
            mine = await derive_audit(ledger, opinion="unqualified", opinion_by="Ada", reason="known")
            entry = await ledger.read(await record_opinion(ledger, mine))
            again = await derive_audit(ledger)
            with pytest.raises(UsageError, match="nothing to record"):
                await record_opinion(ledger, again)
            return mine, entry, again

    mine, entry, again = asyncio.run(run())

    assert (entry.kind, entry.payload["by"], entry.payload["opinion"]) == ("override", "Ada", "unqualified")
    assert entry.payload["audit"] == mine.id
    assert (again.opinion, again.findings) == ("qualified", Findings(major=1))


def test_what_cannot_be_used_is_said(tmp_path: Path):
    """Naive times, a scope that is one text, an empty path."""
    ledger = Ledger(f"sqlite:///{tmp_path / 'a.db'}")
    cases: list[tuple[dict[str, Any], str]] = [
        ({"since": datetime(2026, 11, 20)}, "needs a zone"),  # noqa: DTZ001 - the very thing that is refused
        ({"scope": "everything"}, "scope is a list"),
        ({}, "there is no ledger"),
    ]
    for options, message in cases:
        with pytest.raises(UsageError, match=message):
            asyncio.run(derive_audit(ledger, **options))
