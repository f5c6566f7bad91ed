"""Gates that demand a certificate: what goes through, what people are asked about, and the reasons on record."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from adjudge import Decision, Gate, Judge, JudgeChain, UsageError
from adjudge.guards import Audit, Certificate, CertifiedSeat, CertifiedShare, read_monitor
from adjudge.ledger import LedgerError
from adjudge.measurement import ReleasePolicy, write_release_policy
from adjudge.testing import make_scripted_reply
from kit.audited import answer, start_answering
from kit.certificates import (
    GOOD,
    RARELY,
    Certified,
    Reported,
    make_certificate_of,
    make_signed_ledger,
    use_certified,
)
from kit.gates import Book, Desk, word
from kit.judges import complaint, names
from kit.ledgers import STORES, find, open_store, verify
from kit.loops import run_virtual

pytest.importorskip("cryptography", reason="signing needs the extra sign")

pytestmark = pytest.mark.timed

JUDGE = Judge(Reported())

OTHER_MODEL = CertifiedSeat(seat=(), model="words-2025")


@pytest.fixture(name="url", params=STORES)
def make_url(request: pytest.FixtureRequest, tmp_path: Path, require: Any) -> Iterator[str]:
    """Each store."""
    with open_store(request.param, tmp_path, require) as url:
        yield url


def check(folder: Path, certificate: Any = None, content: str = "a good text", **options: Any) -> Decision:
    """What a gate decides whose judge has this certificate."""
    return use_certified(folder, lambda certified: certified.gate.check(content), certificate=certificate, **options)


# ---------------------------------------------------------------- qualified


def test_what_a_certified_judge_passes_goes_through(url: str, tmp_path: Path):
    """The result says so, and the decision names the certificate that it rests on; both are in the ledger."""

    async def work(certified: Certified) -> Decision:
        return await certified.gate.check("a good text")

    certificate = make_certificate_of(JUDGE)
    decision = use_certified(tmp_path, work, url=url, certificate=certificate)

    assert word(decision) == ("allowed", "judge")
    assert decision.result is not None
    assert decision.result.qualification == "qualified"
    assert decision.detail == f"certificate {certificate.digest[:16]}"
    (entry,) = find(url, kind="decision")
    assert entry.payload is not None
    assert (entry.payload["detail"], entry.payload["result"]["qualification"]) == (decision.detail, "qualified")
    assert verify(url).valid


def test_what_the_judge_fails_is_blocked_as_ever(tmp_path: Path):
    """A certificate opens nothing."""
    decision = check(tmp_path, content="a bad text")

    assert word(decision) == ("blocked", "judge")
    assert decision.result is not None
    assert decision.result.qualification == "qualified"


def test_without_a_demand_results_say_nothing(tmp_path: Path):
    """A gate as it always was."""
    gate = Gate("door", rubric=GOOD, judge=Judge(Reported()), ledger=Book())
    decision = run_virtual(gate.check("a good text"))

    assert decision.result is not None
    assert decision.result.qualification is None


def test_a_rule_that_fails_needs_no_certificate(tmp_path: Path):
    """The judge was not asked, so nothing is said of it."""
    rules = [{"regex": "secret", "absent": True}]
    decision = check(tmp_path, content="a good secret", rules=rules)

    assert word(decision) == ("blocked", "rule")
    assert decision.result is not None
    assert decision.result.qualification is None


# ---------------------------------------------------------------- what people are asked about


def low(share: float) -> CertifiedShare:
    return CertifiedShare(value=0.9, low=share, high=0.99, of=100, level=0.95)


def with_prompt(certificate: Certificate, digest: str) -> Certificate:
    """The certificate of a judge that was asked in other words."""
    return replace(certificate, judge=replace(certificate.judge, prompt=digest))


CASES: dict[str, tuple[Callable[[], Any], dict[str, Any], str, str]] = {
    "another judge": (
        lambda: make_certificate_of(Judge(Reported(name="other"))),
        {},
        "unqualified",
        "of another judge: the judge differs",
    ),
    "another temperature": (
        lambda: make_certificate_of(Judge(Reported(), temperature=1.0)),
        {},
        "unqualified",
        "of another judge: the judge differs",
    ),
    "another reader": (
        lambda: make_certificate_of(Judge(Reported(), reader="Rating: [[7]]")),
        {},
        "unqualified",
        "of another judge: the judge",
    ),
    "another prompt": (
        lambda: with_prompt(make_certificate_of(JUDGE), "0" * 64),
        {},
        "unqualified",
        "of another judge: the prompt differs",
    ),
    "another rubric": (
        lambda: make_certificate_of(JUDGE, rubric={**GOOD, "passing_threshold": 0.9}),
        {},
        "unqualified",
        "the rubric",
    ),
    "another scale": (
        lambda: make_certificate_of(JUDGE, rubric={**GOOD, "scale": [0, 10]}),
        {},
        "unqualified",
        "the rubric",
    ),
    "other levels": (
        lambda: make_certificate_of(
            JUDGE, rubric={**GOOD, "criteria": [{**GOOD["criteria"][0], "levels": {"0": "It is bad.", "1": "Good."}}]}
        ),
        {},
        "unqualified",
        "the rubric",
    ),
    "fewer rules": (
        lambda: make_certificate_of(JUDGE, rules=["secrets"]),
        {},
        "unqualified",
        "the rules differ",
    ),
    "sensitivity": (
        lambda: make_certificate_of(JUDGE, sensitivity=low(0.7949)),
        {"min_sensitivity": 0.8},
        "unqualified",
        "the lower limit of sensitivity is 79.5 %, and min_sensitivity is 80 %",
    ),
    "specificity": (
        lambda: make_certificate_of(JUDGE, specificity=low(0.5)),
        {"min_specificity": 0.9},
        "unqualified",
        "the lower limit of specificity is 50.0 %, and min_specificity is 90 %",
    ),
    "not measured": (
        lambda: make_certificate_of(JUDGE, specificity=None),
        {"min_specificity": 0.1},
        "unqualified",
        "the lower limit of specificity is not known",
    ),
    "too old": (
        lambda: make_certificate_of(JUDGE, age=timedelta(days=31)),
        {"max_age": "30d"},
        "stale",
        "31d ago, and max_age is 30d",
    ),
    "another model": (
        lambda: make_certificate_of(JUDGE, seats=(OTHER_MODEL,)),
        {},
        "stale",
        "was model 'words-2025' when it was measured, and is 'words-2026' now",
    ),
    "a seat that did not answer": (
        lambda: make_certificate_of(JUDGE, seats=()),
        {},
        "stale",
        "decided nothing when the judge was measured",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_person_is_asked_unless_the_certificate_speaks_for_the_judge(name: str, tmp_path: Path):
    """What the judge passes waits for people; the result and the reason say why."""
    make, options, qualification, reason = CASES[name]
    decision = check(tmp_path, make(), **options)

    assert word(decision) == ("pending", "policy")
    assert decision.result is not None
    assert decision.result.qualification == qualification
    assert decision.detail.startswith(f"a person was asked: {qualification}: ")
    assert reason in decision.detail


@pytest.mark.parametrize("name", ["sensitivity", "too old"])
def test_the_reason_is_in_the_ledger_and_before_the_people(name: str, url: str, tmp_path: Path):
    """An approval lets it through in a person's name, and the record still says what the judge was."""
    make, options, qualification, reason = CASES[name]

    async def work(certified: Certified) -> tuple[Decision, str]:
        pending = await certified.gate.check("a good text")
        (asked,) = await certified.approvals.list()
        await certified.approvals.decide(asked.id, "ana", True, reason="I read it")
        return await certified.gate.resume(pending), asked.message

    decision, message = use_certified(tmp_path, work, url=url, certificate=make(), **options)

    assert word(decision) == ("allowed", "human")
    assert names(message, qualification, reason)
    asked, approved = [entry.payload for entry in find(url, kind="decision")]
    assert asked is not None
    assert asked["pending"]
    assert names(asked["detail"], qualification, reason)
    assert approved is not None
    assert approved["detail"] == "approved by ana: I read it"
    assert approved["result"]["qualification"] == asked["result"]["qualification"] == qualification


def test_the_bars_are_compared_with_the_lower_limits(tmp_path: Path):
    """A limit that is exactly the bar is enough; the share itself does not count."""
    certificate = make_certificate_of(JUDGE, sensitivity=low(0.8), specificity=low(0.9))

    assert check(tmp_path, certificate, min_sensitivity=0.8, min_specificity=0.9, max_age=timedelta(days=4))
    assert check(tmp_path, certificate, min_sensitivity=0.8001).pending


def test_more_rules_than_were_measured_are_stricter(tmp_path: Path):
    """A gate may have rules that the run had not, and not the other way round."""
    assert check(tmp_path, make_certificate_of(JUDGE), rules=["secrets"])


@pytest.mark.parametrize("mode", ["enforce", "observe"])
def test_a_gate_that_observes_says_what_it_would_do(mode: Any, tmp_path: Path):
    """It lets everything through, and its record has the reason."""
    decision = check(tmp_path, CASES["too old"][0](), max_age="30d", mode=mode)

    assert word(decision) == (("allowed", "policy") if mode == "observe" else ("pending", "policy"))
    assert decision.would_allow is False
    assert names(decision.detail, "stale", "max_age is 30d")


def test_undecided_content_is_not_let_through_by_a_policy_over_an_unqualified_judge(tmp_path: Path):
    """``on_undecided="allow"`` opens only where the certificate speaks for the judge."""
    stumbles = {"content": "a text to raise", "on_undecided": "allow"}

    assert word(check(tmp_path, **stumbles)) == ("allowed", "policy")
    assert check(tmp_path, CASES["sensitivity"][0](), min_sensitivity=0.8, **stumbles).pending


# ---------------------------------------------------------------- the file while the gate is in use


def delete(certified: Certified) -> None:
    certified.file.unlink()


def empty(certified: Certified) -> None:
    certified.file.write_bytes(b"")


def flip(certified: Certified) -> None:
    raw = bytearray(certified.file.read_bytes())
    raw[len(raw) // 2] ^= 1
    certified.file.write_bytes(raw)


def replace_by_a_folder(certified: Certified) -> None:
    certified.file.unlink()
    certified.file.mkdir()


def put_unsigned(certified: Certified) -> None:
    certified.put(make_certificate_of(JUDGE), signed=False)


def put_of_another_key(certified: Certified) -> None:
    other = make_signed_ledger(certified.file.parent, name="other")
    certified.ledger = other
    certified.put(make_certificate_of(JUDGE))


def fill(certified: Certified) -> None:
    certified.file.write_bytes(b" " * 1_000_001)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (delete, "cannot be read: No such file"),
        (empty, "does not count"),
        (flip, "does not count"),
        (replace_by_a_folder, "cannot be read"),
        (put_unsigned, "it is not signed"),
        (put_of_another_key, "signed by another key"),
        (fill, "is too large"),
    ],
)
def test_a_file_that_changes_while_the_gate_is_in_use_turns_it_to_people(
    change: Callable[[Certified], None], reason: str, tmp_path: Path
):
    """Within one call; and as soon as the right file is back, the judge decides again."""

    async def work(certified: Certified) -> list[Decision]:
        decisions = [await certified.gate.check("a good text")]
        right = certified.file.read_bytes()
        change(certified)
        decisions.append(await certified.gate.check("a good text"))
        if certified.file.is_dir():
            certified.file.rmdir()
        certified.file.write_bytes(right)
        return [*decisions, await certified.gate.check("a good text")]

    before, during, after = use_certified(tmp_path, work)

    assert [word(decision)[0] for decision in (before, during, after)] == ["allowed", "pending", "allowed"]
    assert during.result is not None
    assert during.result.qualification == "unqualified"
    assert names(during.detail, "the certificate certificate.json", reason)


def test_an_unsigned_certificate_counts_where_somebody_says_so(tmp_path: Path):
    """And then only a missing signature is forgiven, not a wrong one."""

    async def work(certified: Certified) -> list[Decision]:
        decisions = []
        for change in (put_unsigned, put_of_another_key, flip):
            change(certified)
            decisions.append(await certified.gate.check("a good text"))
        return decisions

    unsigned, other, changed = use_certified(tmp_path, work, allow_unsigned=True)

    assert (unsigned.allowed, other.pending, changed.pending) == (True, True, True)


def test_a_stated_key_counts_in_place_of_the_ledgers(tmp_path: Path):
    """Who measures need not be who runs the gate."""
    other = make_signed_ledger(tmp_path, name="other")

    async def work(certified: Certified) -> list[Decision]:
        decisions = [await certified.gate.check("a good text")]
        certified.ledger = other
        certified.put(make_certificate_of(JUDGE))
        return [*decisions, await certified.gate.check("a good text")]

    own, stated = use_certified(tmp_path, work, certificate_key=other.public_key)

    assert (own.pending, stated.allowed) == (True, True)


def test_a_certificate_can_be_handed_in(tmp_path: Path):
    """As an object, without a file; its signature is checked all the same."""
    unsigned = make_certificate_of(JUDGE)

    assert names(check(tmp_path, require_certificate=unsigned).detail, "unqualified: the certificate does not count")


# ---------------------------------------------------------------- who answers, and what audits show


def test_another_model_turns_the_gate_to_people_within_one_call(tmp_path: Path):
    """The name that a reply reports is compared, whatever the judge is called."""
    model = Reported()

    async def work(certified: Certified) -> list[Decision]:
        decisions = [await certified.gate.check("a good text")]
        model.reports = "words-2027"
        return [*decisions, await certified.gate.check("a good text")]

    before, after = use_certified(tmp_path, work, judge=Judge(model))

    assert (before.allowed, after.pending) == (True, True)
    assert names(after.detail, "stale", "is 'words-2027' now")


def test_a_seat_that_answers_for_another_is_compared_by_its_place(tmp_path: Path):
    """In a chain every seat that decides has the model that was measured there."""
    first, second = Reported("one-1", "one"), Reported("two-2", "two")
    chain = JudgeChain([Judge(first), Judge(second)], strategy="consensus", name="panel")
    seats = (CertifiedSeat(seat=("one",), model="one-1"), CertifiedSeat(seat=("two",), model="two-2"))
    certificate = make_certificate_of(chain, seats=seats)

    async def work(certified: Certified) -> list[Decision]:
        decisions = [await certified.gate.check("a good text")]
        second.reports = "one-1"
        return [*decisions, await certified.gate.check("a good text")]

    same, other = use_certified(tmp_path, work, judge=chain, certificate=certificate)

    assert (same.allowed, other.pending) == (True, True)
    assert names(other.detail, "seat 'two'")


def test_an_alarm_turns_the_gate_to_people_within_one_call(url: str, tmp_path: Path):
    """The call after the label that raises it is asked about, though nothing about the certificate changed."""
    audit = Audit(share=1.0, approvers=("ana",), promise=0.01)

    async def work(certified: Certified) -> list[Decision]:
        decisions = []
        while not decisions or (decisions[-1].allowed and len(decisions) < 20):
            decisions.append(await certified.gate.check("a good text"))
            await answer(certified.approvals, [False])
            if (await certified.gate.read_monitor()).alarm:
                break
        return [*decisions, await certified.gate.check("a good text")]

    *before, after = use_certified(tmp_path, work, url=url, audit=audit)

    assert 1 <= len(before) < 20
    assert all(decision.allowed for decision in before)
    assert after.pending
    assert after.result is not None
    assert after.result.qualification == "stale"
    assert names(after.detail, "alarm", "should have been stopped")


@pytest.mark.integration
def test_an_alarm_of_another_process_turns_the_gate_to_people(url: str, tmp_path: Path):
    """People answer on another machine; what the gate remembers of its audits lets nothing more through."""
    audit = Audit(share=1.0, approvers=("ana",), promise=0.01)

    async def work(certified: Certified) -> list[Decision]:
        process = await asyncio.to_thread(start_answering, url, tmp_path / "ledger.pem")
        assert process.stdin is not None
        assert process.stdout is not None
        decisions: list[Decision] = []
        try:
            assert await asyncio.to_thread(process.stdout.readline)
            while not decisions or not (await read_monitor(certified.ledger, "answers")).alarm:
                assert len(decisions) < 20
                decisions.append(await certified.gate.check("a good text"))
                process.stdin.write("go\n")
                process.stdin.flush()
                assert "1" in await asyncio.to_thread(process.stdout.readline)
        finally:
            process.communicate()
        return [*decisions, await certified.gate.check("a good text")]

    *before, after = use_certified(tmp_path, work, url=url, audit=audit)

    assert all(decision.allowed for decision in before)
    assert (after.pending, after.result is not None and after.result.qualification) == (True, "stale")
    assert names(after.detail, "alarm", "should have been stopped")


def test_audits_that_nobody_answers_make_a_result_stale(url: str, tmp_path: Path):
    """People who look away raise no alarm, and the certificate does not count while that could hide one."""
    audit = Audit(share=1.0, approvers=("ana",), expires_in=3_600)
    late = timedelta()

    async def work(certified: Certified) -> list[Decision]:
        nonlocal late
        open_ = [await certified.gate.check("a good text") for _ in range(12)]
        late = timedelta(hours=1)
        await certified.approvals.close_due()
        return [*open_, await certified.gate.check("a good text")]

    *before, after = use_certified(
        tmp_path, work, url=url, audit=audit, approvals_options={"clock": lambda: datetime.now(UTC) + late}
    )

    assert all(decision.allowed for decision in before)
    assert (after.pending, after.result is not None and after.result.qualification) == (True, "stale")
    assert names(after.detail, "12 of 12 audits", "were not answered")


def test_a_model_that_is_named_once_does_not_hide_that_nobody_answers(tmp_path: Path):
    """A provider reports another name in one reply, and the certified one again: the result is stale all the same."""
    model = Reported()
    late = timedelta()

    async def work(certified: Certified) -> list[Decision]:
        nonlocal late
        decisions = [await certified.gate.check("a good text")]
        model.reports = "words-2027"
        decisions.append(await certified.gate.check("a good text"))
        model.reports = "words-2026"
        decisions += [await certified.gate.check("a good text") for _ in range(12)]
        late = timedelta(days=8)
        await certified.approvals.close_due()
        return [*decisions, await certified.gate.check("a good text")]

    first, odd, *before, after = use_certified(
        tmp_path, work, judge=Judge(model), approvals_options={"clock": lambda: datetime.now(UTC) + late}
    )

    assert (first.allowed, odd.pending, all(decision.allowed for decision in before)) == (True, True, True)
    assert (after.pending, after.result is not None and after.result.qualification) == (True, "stale")
    assert names(after.detail, "12 of 12 audits", "were not answered")


@pytest.mark.parametrize(("share", "rare"), [(0.0009, True), (0.001, False)])
def test_an_audit_too_rare_to_show_anything_is_said_when_the_gate_is_made(
    share: float, rare: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    """The certificate holds only while people look; how many calls an alarm takes at least is in the log."""
    with caplog.at_level(logging.WARNING, logger="adjudge"):
        check(tmp_path, audit=Audit(share=share, approvers=("ana",), promise=0.10))

    warnings = [record.getMessage() for record in caplog.records if "audit" in record.getMessage()]
    assert len(warnings) == rare
    if rare:
        assert names(warnings[0], "gate 'answers'", "about 1 of 1,111 passes", "raise audit")


# ---------------------------------------------------------------- release policies


def make_policy(certificate: Certificate, **changes: Any) -> ReleasePolicy:
    """A policy that was calibrated for the judge of a certificate: it releases from 0.9 on."""
    now = datetime.now(UTC)
    members: dict[str, Any] = {
        "risk": "wrong_pass",
        "bound": 0.05,
        "confidence": 0.95,
        "level": 0.95,
        "threshold": 0.9,
        "cases": 400,
        "released": 200,
        "labels": 300,
        "labels_released": 150,
        "wrong": 1,
        "p_value": 0.001,
        "grid_digest": "a" * 64,
        "judge": "words",
        "judge_digest": certificate.judge.judge,
        "rubric_digest": certificate.judge.rubric,
        "asked_digest": "b" * 64,
        "contents_digest": "c" * 64,
        "labels_digest": "d" * 64,
        "sample": "plan",
        "run": certificate.run,
        "measured_from": now,
        "measured_to": now,
        "labelled_from": None,
        "labelled_to": None,
        "at": now,
    }
    return ReleasePolicy(**members | changes)


class Unsure(Reported):
    """A model of words that gives good texts the score that it is told."""

    def __init__(self, score: float) -> None:
        super().__init__()
        self.score = score

    async def complete(self, request: Any, /) -> Any:
        criteria = [{"name": "criteria", "reasoning": "r", "score": self.score}]
        return replace(make_scripted_reply({"criteria": criteria}, request, self.name), model=self.reports)


@pytest.mark.parametrize(("score", "goes_through"), [(0.9, True), (0.89, False), (0.2, None)])
def test_a_pass_below_the_released_score_is_asked_of_a_person(score: float, goes_through: bool | None, tmp_path: Path):
    """The certificate names the policy, so that one signature is for both; what the judge fails is blocked as ever."""
    judge = Judge(Unsure(score))
    unnamed = make_certificate_of(judge)
    policy = make_policy(unnamed)
    file = write_release_policy(policy, tmp_path / "policy.json")
    certificate = replace(unnamed, release_policy=policy.digest)
    decision = check(tmp_path, certificate, judge=judge, release_policy=file)

    assert decision.result is not None
    assert decision.result.qualification == "qualified"
    if goes_through is None:
        assert word(decision) == ("blocked", "judge")
    else:
        assert word(decision) == (("allowed", "judge") if goes_through else ("pending", "policy"))
    if goes_through is False:
        assert names(decision.detail, "it has a score of 0.89, and the judge decides alone from 0.90 on")


@pytest.mark.parametrize("change", ["another policy", "no file", "no policy", "not named"])
def test_a_policy_that_the_certificate_does_not_name_counts_not(change: str, tmp_path: Path):
    """Its figures are signed with the certificate, or they are nobody's."""
    unnamed = make_certificate_of(JUDGE)
    policy = make_policy(unnamed)
    file = write_release_policy(policy, tmp_path / "policy.json")
    if change == "another policy":
        write_release_policy(replace(policy, threshold=0.1), file)
    elif change == "no file":
        file.unlink()
    elif change == "no policy":
        file.write_text("{}")
    certificate = unnamed if change == "not named" else replace(unnamed, release_policy=policy.digest)
    decision = check(tmp_path, certificate, release_policy=file)

    assert word(decision) == ("pending", "policy")
    assert decision.result is not None
    assert decision.result.qualification == "unqualified"
    assert names(decision.detail, "release policy")


# ---------------------------------------------------------------- from observing to enforcing


def test_a_gate_observes_until_a_certificate_holds_and_never_again(url: str, tmp_path: Path):
    """Each entry says so; with the first certified result it enforces, also when the file is gone and in a new gate."""

    async def work(certified: Certified) -> list[Decision]:
        right = certified.file.read_bytes()
        certified.file.unlink()
        contents = ["a good text", "a bad text"]
        observed = [await certified.gate.check(content) for content in contents]
        certified.file.write_bytes(right)
        enforced = [await certified.gate.check(content) for content in contents]
        certified.file.unlink()
        again = certified.gate.replace()
        after = [await gate.check(content) for gate in (certified.gate, again) for content in contents]
        return [*observed, *enforced, *after]

    decisions = use_certified(tmp_path, work, url=url, mode="enforce_when_certified")

    assert [word(decision) for decision in decisions] == [
        ("allowed", "policy"),
        ("allowed", "policy"),
        ("allowed", "judge"),
        ("blocked", "judge"),
        *[("pending", "policy"), ("blocked", "judge")] * 2,
    ]
    assert [decision.mode for decision in decisions] == ["observe"] * 2 + ["enforce"] * 6
    assert names(decisions[0].detail, "observed, since no certificate held yet: enforce would ask: unqualified")
    assert names(decisions[1].detail, "observed, since no certificate held yet: enforce would block")
    (entry,) = find(url, kind="gate.enforced")
    assert entry.payload is not None
    assert (entry.payload["gate"], entry.payload["because"]) == ("answers", decisions[2].detail)
    assert verify(url).valid


def test_a_rule_that_fails_is_only_observed_before_there_is_a_certificate(tmp_path: Path):
    """And content that cannot be read; afterwards both block."""
    rules = [{"regex": "secret", "absent": True}]

    async def work(certified: Certified) -> list[Decision]:
        right = certified.file.read_bytes()
        certified.file.unlink()
        before = [await certified.gate.check("a secret"), await certified.gate.refuse("it is cut")]
        certified.file.write_bytes(right)
        assert await certified.gate.check("a good text")
        return [*before, await certified.gate.check("a secret"), await certified.gate.refuse("it is cut")]

    decisions = use_certified(tmp_path, work, rules=rules, mode="enforce_when_certified")

    assert [decision.allowed for decision in decisions] == [True, True, False, False]
    assert [decision.decided_by for decision in decisions[:2]] == ["policy", "policy"]


def test_what_a_rule_stops_is_stopped_as_soon_as_the_certificate_holds(tmp_path: Path):
    """Also where no result of the judge came before it; the gate enforces from then on."""
    rules = [{"regex": "secret", "absent": True}]

    async def work(certified: Certified) -> list[Decision]:
        first = await certified.gate.check("a secret")
        certified.file.unlink()
        return [first, await certified.gate.check("a good text")]

    stopped, asked = use_certified(tmp_path, work, rules=rules, mode="enforce_when_certified")

    assert (word(stopped), stopped.mode) == (("blocked", "rule"), "enforce")
    assert asked.pending


class Broken:
    """A ledger whose entries cannot be read."""

    def __init__(self, ledger: Any) -> None:
        self._ledger = ledger

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    async def query(self, **_: Any) -> Any:
        raise LedgerError("the disk is gone")
        yield


def test_a_gate_that_cannot_know_whether_it_enforced_does(tmp_path: Path):
    """What it would otherwise let through could be what it stopped yesterday."""

    async def work(certified: Certified) -> Decision:
        certified.file.unlink()
        certified.approvals.ledger = Broken(certified.ledger)  # type: ignore[misc, assignment]
        return await certified.gate.replace().check("a good text")

    assert use_certified(tmp_path, work, mode="enforce_when_certified").pending


# ---------------------------------------------------------------- what cannot be


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"audit": None}, "audit"),
        ({"sample": 0.5}, "sample below 1"),
        ({"ask": {"approvers": ["ana"], "on_expiry": "approve", "expires_in": 60}}, "on_expiry"),
        ({"ask": {"approvers": ["ana"], "first": "rules"}}, "first"),
        ({"min_sensitivity": 90}, "between 0 and 1"),
        ({"max_age": "30 days"}, "a length of time above 0"),
        ({"max_age": "0d"}, "a length of time above 0"),
        ({"certificate_key": "abc"}, "certificate_key: the key 'abc' cannot be read"),
        ({"require_certificate": None, "max_age": "30d"}, "require_certificate"),
        ({"require_certificate": None, "mode": "enforce_when_certified"}, "require_certificate"),
        ({"require_certificate": None, "allow_unsigned": True}, "require_certificate"),
        ({"require_certificate": None, "release_policy": "policy.json"}, "require_certificate"),
        ({"ask": {}}, "approvers"),
    ],
)
def test_a_demand_that_could_never_be_met_or_that_something_goes_around_is_refused(
    options: dict[str, Any], says: str, tmp_path: Path
):
    """At construction, and not when the first content waits."""

    async def work(certified: Certified) -> Decision:
        return await certified.gate.check("a good text")

    with pytest.raises(UsageError, match=says):
        use_certified(tmp_path, work, **options)


def test_a_gate_without_a_judge_or_a_known_key_is_refused(tmp_path: Path):
    """Nothing could be certified, or by nobody."""
    file = tmp_path / "certificate.json"

    assert names(
        complaint(Gate, "door", rules=["secrets"], require_certificate=file, audit=RARELY, approvals=Desk()), "audit"
    )
    assert names(complaint(Gate, "door", rules=["secrets"], require_certificate=file), "has none")
