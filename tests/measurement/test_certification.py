"""Certificates: what one says and of what, which runs get one, and that no bit of it can be changed."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from adjudge import Judge, JudgeChain, Ledger, UsageError, open_run
from adjudge.dataset import Label, digest_content
from adjudge.guards import (
    Certificate,
    find_signature_problem,
    parse_certificate,
    read_certificate,
    write_certificate,
)
from adjudge.labels import continue_plan, find_plan_status, make_plan, open_label_queue, write_plan
from adjudge.measurement import (
    calibrate,
    certify_sync,
    find_run_problem,
    make_certificate,
    write_release_policy,
)
from adjudge.testing import make_scripted_reply
from kit.certificates import (
    LABELLED,
    Reported,
    is_good,
    make_certificate_file,
    make_labelled_run,
    make_signed_ledger,
)
from kit.labels import label_all, make_pairs_run, make_run
from kit.ledgers import STORES, find, open_store
from kit.runs import Words, do, make_cases

pytest.importorskip("scipy", reason="measuring needs the extra trust")
pytest.importorskip("cryptography", reason="signing needs the extra sign")


@pytest.fixture(scope="module", name="folder")
def provide_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A labelled run, ``run``, and its signed certificate, ``certificate.json``, made once."""
    folder = tmp_path_factory.mktemp("certified")
    make_labelled_run(folder / "run", raters=("ann", "bob"))
    make_certificate_file(folder / "run", make_signed_ledger(folder), folder / "certificate.json")
    return folder


@pytest.fixture(name="certificate")
def provide_certificate(folder: Path) -> Certificate:
    return read_certificate(folder / "certificate.json")


# ---------------------------------------------------------------- what it says


def test_its_first_sentence_names_the_contents_and_the_dates(folder: Path, certificate: Certificate):
    """A measurement that is carried elsewhere says nothing there, so what it is of comes first."""
    first = json.loads((folder / "certificate.json").read_text())["statement"]
    today = certificate.judged_since.date()

    assert first == certificate.statement
    assert f"speaks of the 90 contents with the digest {certificate.contents.digest}" in first
    assert f"judged them on {today}, and of no other contents, judge or time." in first


def test_it_binds_counts_limits_and_people(certificate: Certificate):
    """Counts, shares with limits, the way labels were drawn, who gave them, whether blind, and how alike they are."""
    labels = certificate.labels

    assert sum(sum(row.values()) for row in certificate.counts.values()) == labels.settled == LABELLED
    assert certificate.sensitivity is not None
    assert certificate.sensitivity.value == 1.0
    assert certificate.sensitivity.low is not None
    assert 0.6 < certificate.sensitivity.low < 1.0
    assert (labels.people, labels.not_blind, labels.sampling) == (("ann", "bob"), 0, "plan")
    assert labels.kappa is not None
    assert labels.kappa.value == 1.0


def test_it_binds_the_digests_of_the_run_and_the_model_that_answered(folder: Path, certificate: Certificate):
    """The judge, the rubric and the prompt are those of the run's manifest; the model is the one that replies named."""
    with open_run(folder / "run") as run:
        manifest, contents = run.manifest, run.contents

    assert (certificate.judge.judge, certificate.judge.rubric) == (
        manifest["digests"]["judge"],
        manifest["digests"]["rubric"],
    )
    assert certificate.judge.prompt == manifest["asked"]["wording"]
    assert certificate.contents == contents
    assert [(seat.seat, seat.model) for seat in certificate.judge.seats] == [((), "words-2026")]


def test_a_chain_is_certified_seat_by_seat(tmp_path: Path):
    """Each seat that decided is named with the model that answered for it."""
    chain = JudgeChain([Judge(Reported("one-1", "one")), Judge(Reported("two-2", "two"))], strategy="consensus")
    certificate = make_certificate(make_labelled_run(tmp_path / "run", chain))

    assert [(seat.seat, seat.model) for seat in certificate.judge.seats] == [(("one",), "one-1"), (("two",), "two-2")]


def test_repeats_say_how_many_cases_flip(tmp_path: Path):
    """With repeated judgements, the cases whose verdicts differ are counted."""
    certificate = make_certificate(make_labelled_run(tmp_path / "run", cases=30, labelled=20, repeat=2))

    assert certificate.flips is not None
    assert (certificate.flips.flipped, certificate.flips.of) == (0, 30)


class Wavering(Reported):
    """A model that takes back what it said of every fifth text, when it is asked about it again."""

    async def complete(self, request: Any, /) -> Any:
        earlier = sum(request.user == other.user for other in self.requests)
        reply = await super().complete(request)
        number = int(re.findall(r"(?:good|bad) text (\d+)", request.user)[-1])
        if earlier == 0 or number % 5:
            return reply
        taken_back = {"criteria": [{"reasoning": "r", "score": 0.0 if "good" in request.user else 1.0}]}
        return replace(make_scripted_reply(taken_back, request, self.name), model=self.reports)


def test_a_verdict_that_changes_when_the_case_is_judged_again_is_a_flip(tmp_path: Path):
    """Each case counts once, and those alone whose verdicts differ."""
    judge = Judge(Wavering(), token=False)
    certificate = make_certificate(make_labelled_run(tmp_path / "run", judge, cases=30, labelled=20, repeat=2))

    assert certificate.flips is not None
    assert (certificate.flips.flipped, certificate.flips.of) == (6, 30)


def test_limits_for_one_look_need_a_finished_plan(tmp_path: Path):
    """Labels of a plan have the narrow limits once; a sample that may grow has the wider ones for every look."""
    planned = make_planned_run(tmp_path / "planned")
    once = make_certificate(planned)
    always = make_certificate(make_labelled_run(tmp_path / "random"))

    assert (once.labels.looks, always.labels.looks) == ("one look", "every look")
    assert once.labels.plan is not None
    for name in ("sensitivity", "specificity"):
        narrow, wide = getattr(once, name), getattr(always, name)
        assert narrow.low > wide.low


def make_planned_run(place: Path, *, leave: int = 0) -> Path:
    """A run with a plan, all of whose labels people gave but the last ones that they left."""
    do([replace(case, label=None) for case in make_cases(100)], Judge(Reported()), out=place)
    with open_run(place) as run:
        plan = make_plan(run, within=0.1, seed=3)
        write_plan(plan, run.folder)
        with open_label_queue(run) as queue:
            label_all(queue, "ann", is_good, most=len(plan.order) - leave)
            pilot = tuple(queue.labels())
        if leave:
            return place
        plan = continue_plan(plan, run, find_plan_status(plan, pilot))
        write_plan(plan, run.folder)
        with open_label_queue(run) as queue:
            label_all(queue, "ann", is_good, most=len(plan.order) - len(pilot))
    return place


def test_labels_that_somebody_picked_are_in_no_share(tmp_path: Path):
    """Whoever labels easy cases beside a plan gains nothing: only drawn labels count."""
    place = make_planned_run(tmp_path / "run")
    before = make_certificate(place)
    with open_run(place) as run, open_label_queue(run) as queue:
        drawn = {label.case for label in queue.labels()}
        picked = [
            Label(case=item.case.id, rater="ann", value=is_good(item), subject=digest_content(item.case.content))  # type: ignore[arg-type]
            for item in (Shown(item.case) for item in run.items())
            if item.case.id not in drawn
        ]
        labels = [*queue.labels(), *picked[:20]]
    after = make_certificate(place, labels=labels)

    assert after.labels.labelled == before.labels.labelled == len(drawn)
    assert after.counts == before.counts


class Shown:
    """A case as ``is_good`` looks at it."""

    def __init__(self, case: Any) -> None:
        self.case, self.content = case, case.content


# ---------------------------------------------------------------- who gets none


def test_labels_that_nobody_drew_are_refused(tmp_path: Path):
    """As everywhere: a measurement of cases that somebody picked is none."""
    place = make_run(tmp_path / "run", [replace(case, label=None) for case in make_cases(30)])
    labels = [Label(case=f"case-{at}", rater="ann", value=at % 3 != 0) for at in range(20)]

    with pytest.raises(UsageError, match="random"):
        make_certificate(place, labels=labels)
    with open_run(place) as run:
        bound = [replace(label, subject=digest_content(run.read_case(label.case)[0].case.content)) for label in labels]
    assert make_certificate(place, labels=bound, labels_are_random=True).labels.sampling == "random"


def test_a_plan_has_to_be_finished(tmp_path: Path):
    """Whoever may stop when it suits them measures something else than what they planned."""
    place = make_planned_run(tmp_path / "run", leave=1)

    with pytest.raises(UsageError, match="1 label of the plan's pilot is missing"):
        make_certificate(place)


def test_two_models_under_one_name_are_refused(tmp_path: Path):
    """A provider that changed its model in the middle of a run leaves a measurement of neither."""

    class Changing(Reported):
        async def complete(self, request: Any, /) -> Any:
            self.reports = "old" if len(self.requests) < 15 else "new"
            return await super().complete(request)

    place = make_labelled_run(tmp_path / "run", Judge(Changing()), cases=30, labelled=20)

    with pytest.raises(UsageError, match=r"2 models answered as the judge .*\(new, old\)"):
        make_certificate(place)


class Own:
    """A judge of a class of one's own."""

    name = "own"

    async def ask(self, question: Any, /) -> Any:
        return await Judge(Words()).ask(question)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (make_pairs_run, "compares pairs"),
        (lambda place: make_run(place, 9, rubric=None, instructions="Be strict."), "asked with instructions"),
        (lambda place: make_labelled_run(place, JudgeChain([Own()]), cases=9, labelled=3), "class of your own"),
        (lambda place: make_labelled_run(place, cases=9, labelled=0), "cannot be certified: no case has a label"),
    ],
    ids=["pairs", "instructions", "own class", "without labels"],
)
def test_a_run_that_no_gate_can_be_compared_with_is_refused(make: Any, says: str, tmp_path: Path):
    """A gate judges one content by one rubric, with a judge whose parameters are known."""
    place = make(tmp_path / "run")

    with pytest.raises(UsageError, match=says):
        make_certificate(place)


def test_a_run_that_is_not_finished_is_refused(tmp_path: Path):
    """What is not judged yet could not be drawn."""
    place = make_labelled_run(tmp_path / "run", cases=9, labelled=3)
    manifest = json.loads((place / "run.json").read_text())
    (place / "run.json").write_text(json.dumps({**manifest, "status": "running"}))

    with pytest.raises(UsageError, match="is interrupted"):
        make_certificate(place)


def test_it_names_a_release_policy_of_the_same_judge_alone(folder: Path, tmp_path: Path):
    """One signature is then for both; a policy of another judge is refused."""
    policy = calibrate(folder / "run", "wrong_pass<=0.2").policy
    assert policy is not None
    file = write_release_policy(policy, tmp_path / "policy.json")
    other = make_labelled_run(tmp_path / "other", Judge(Reported(name="other")), cases=30, labelled=20)

    assert make_certificate(folder / "run", release_policy=file).release_policy == policy.digest
    with pytest.raises(UsageError, match=r"calibrated for another judge .* \(another digest of judge\)"):
        make_certificate(other, release_policy=policy)


# ---------------------------------------------------------------- signed, recorded, verified


@pytest.mark.parametrize("of_each_byte", [1, pytest.param(8, marks=pytest.mark.full)])
def test_every_changed_bit_is_found(folder: Path, certificate: Certificate, of_each_byte: int):
    """A certificate is read only as it was written: one bit of each byte in turn is flipped, and none goes unseen.

    The full tests flip all eight.
    """
    raw = (folder / "certificate.json").read_bytes()
    bits = [(at, (at + more) % 8) for at in range(len(raw)) for more in range(of_each_byte)]
    unseen = [(at, bit) for at, bit in bits if not is_found(raw, at, bit, certificate.public_key)]

    assert unseen == []


def is_found(raw: bytes, at: int, bit: int, key: str | None) -> bool:
    try:
        changed = parse_certificate(raw[:at] + bytes([raw[at] ^ (1 << bit)]) + raw[at + 1 :])
    except UsageError:
        return True
    return find_signature_problem(changed, key) is not None


@pytest.mark.parametrize("change", [b"", b"\n", b"{}", b"[]", b"null", b"\xff", b'{"schema": "adjudge/certificate/1"}'])
def test_what_is_no_certificate_is_refused(change: bytes, tmp_path: Path):
    """Whatever a file holds, it is a certificate or an error that says what to do."""
    (tmp_path / "c.json").write_bytes(change)

    with pytest.raises(UsageError):
        read_certificate(tmp_path / "c.json")


def test_a_line_more_or_another_spelling_is_a_change(folder: Path, certificate: Certificate, tmp_path: Path):
    """What says the same in other bytes was not written by who signed it."""
    data = json.loads((folder / "certificate.json").read_text())
    for text in (
        json.dumps(data),
        json.dumps(data, indent=2) + "\n\n",
        json.dumps({**data, "more": 1}, indent=2) + "\n",
    ):
        (tmp_path / "c.json").write_text(text)
        with pytest.raises(UsageError):
            read_certificate(tmp_path / "c.json")
    assert Certificate.from_dict(data) == certificate


def test_who_signed_is_told_from_who_claims_to(folder: Path, certificate: Certificate, tmp_path: Path):
    """The file's own key shows that nothing was changed; only a key that is known shows who made it."""
    other = make_signed_ledger(tmp_path, name="other")
    forged = replace(certificate, judge=replace(certificate.judge, name="better"))

    assert find_signature_problem(certificate) is None
    assert find_signature_problem(certificate, certificate.public_key) is None
    assert "another key" in str(find_signature_problem(certificate, other.public_key))
    assert "not one of what it says" in str(find_signature_problem(forged))
    assert find_signature_problem(replace(certificate, public_key=None, signature=None)) == "it is not signed"


def test_a_signature_is_for_no_entry_of_a_ledger(folder: Path):
    """A certificate's signature cannot be put under an entry: the schema is signed with the digest."""
    ledger = make_signed_ledger(folder)

    with pytest.raises(UsageError, match="when it is recorded"):
        ledger.sign("adjudge/ledger-entry/1", "0" * 64)
    with pytest.raises(UsageError, match="no key to sign with"):
        Ledger(folder / "unsigned.db").sign("adjudge/certificate/1", "0" * 64)


@pytest.mark.parametrize("kind", STORES)
def test_the_ledger_records_it_with_its_digest(kind: str, folder: Path, tmp_path: Path, require: Any):
    """The entry's payload is the certificate, whole, and its subject the digest."""
    with open_store(kind, tmp_path, require) as url:
        certificate = certify_sync(folder / "run", ledger=make_signed_ledger(tmp_path, url))
        entries = find(url, kind="certificate")

    assert [entry.subject for entry in entries] == [certificate.digest]
    assert Certificate.from_dict(entries[0].payload) == certificate  # type: ignore[arg-type]


def test_without_a_key_it_is_not_signed(folder: Path, tmp_path: Path):
    """It is made all the same, and says so."""
    unsigned = certify_sync(folder / "run", ledger=Ledger(tmp_path / "plain.db"), out=tmp_path / "c.json")

    assert (unsigned.public_key, unsigned.signature) == (None, None)
    assert read_certificate(tmp_path / "c.json") == unsigned


def test_the_run_shows_that_nothing_was_made_up(folder: Path, certificate: Certificate, tmp_path: Path):
    """Everything but its id and time is computed again; a run with other labels comes to something else."""
    assert find_run_problem(certificate, folder / "run") is None
    other = make_labelled_run(tmp_path / "other", decide=lambda task: True)
    problem = find_run_problem(certificate, other)
    assert problem is not None
    assert "counts" in problem


def test_it_binds_the_plan_that_drew_the_labels(tmp_path: Path):
    """A plan of the same id and cases in another order is another plan, and one of another seed drew none of them."""
    place = make_planned_run(tmp_path / "run")
    certificate = make_certificate(place)
    plan = json.loads((place / "plan.json").read_text())
    assert certificate.labels.plan == plan["id"]
    assert certificate.labels.plan_digest == sha256((place / "plan.json").read_bytes()).hexdigest()

    first, second, *others = plan["order"]
    (place / "plan.json").write_text(json.dumps({**plan, "order": [second, first, *others]}))
    assert find_run_problem(certificate, place) == "the run comes to other values of labels.plan_digest"

    (place / "plan.json").write_text(json.dumps({**plan, "seed": plan["seed"] + 1}))
    with pytest.raises(UsageError, match="not known that the labelled cases were drawn at random"):
        find_run_problem(certificate, place)


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"rater": "carl"}, "labels.digest, labels.people, labels.kappa"),
        ({"at": datetime(2026, 1, 1, tzinfo=UTC)}, "labels.digest, labels.since"),
        ({"blind": False}, "labels.digest, labels.not_blind"),
    ],
    ids=["rater", "time", "blind"],
)
def test_it_binds_who_labelled_when_and_how(change: dict[str, Any], names: str, folder: Path, certificate: Certificate):
    """Labels of the same verdicts by somebody else, at another time or not blind are other labels."""
    with open_run(folder / "run") as run, open_label_queue(run) as queue:
        first, *others = queue.labels()
    problem = find_run_problem(certificate, folder / "run", labels=[replace(first, **change), *others])

    assert problem == f"the run comes to other values of {names}"


def test_labels_of_another_content_are_in_no_certificate_and_said_not_to_be(
    folder: Path, caplog: pytest.LogCaptureFixture
):
    """People read last week's answer."""
    with open_run(folder / "run") as run, open_label_queue(run) as queue:
        labels = list(queue.labels())
    read_other = replace(labels[0], rater="zoe", value=False, subject="9" * 64, design=None)
    certificate = make_certificate(folder / "run", labels=[read_other, *labels])

    assert "zoe" not in certificate.labels.people
    assert "1 label is not counted: it is of another content" in caplog.text


@pytest.mark.parametrize(("change", "is_same"), [(1e-14, True), (1e-6, False)])
def test_another_rounding_is_no_other_value(change: float, is_same: bool, folder: Path, certificate: Certificate):
    """Versions of numpy and scipy round otherwise, and a certificate is computed again years later."""
    rate = certificate.pass_rate
    assert rate.low is not None
    stated = replace(certificate, pass_rate=replace(rate, low=rate.low * (1 + change)))

    assert stated != certificate
    assert find_run_problem(stated, folder / "run") == (
        None if is_same else "the run comes to other values of pass_rate"
    )


def test_the_look_at_the_labels_is_recorded(tmp_path: Path):
    """Whoever certifies looks at what the labels come to, so later looks know of it."""
    place = make_labelled_run(tmp_path / "run", cases=30, labelled=20)
    make_certificate(place)
    assert not (place / "looks.jsonl").exists()

    certify_sync(place)
    assert [json.loads(row)["by"] for row in (place / "looks.jsonl").read_text().splitlines()] == ["python"]


def test_times_need_a_zone(certificate: Certificate):
    """A time without a zone is another one on another machine."""
    with pytest.raises(UsageError, match="with its zone"):
        replace(certificate, judged_since=datetime(2026, 1, 1))  # noqa: DTZ001
    assert write_certificate(certificate).endswith(b"\n")
