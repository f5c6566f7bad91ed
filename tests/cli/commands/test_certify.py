"""From a run to a gate of adjudge.toml that demands what was measured: certify, verify, check, and the ledger."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from adjudge import Ledger
from adjudge.guards import read_certificate, sign_certificate, write_certificate
from adjudge.labels import LabelTask, open_label_queue
from adjudge.ledger import create_signing_key
from adjudge.measurement import read_release_policy, write_release_policy
from kit import cli
from kit.certificates import is_good
from kit.cli import ME, WORDS, Line, Ran
from kit.judges import names
from kit.labels import label_all
from kit.ledgers import STORES, find, open_store, verify

pytest.importorskip("scipy", reason="measuring needs the extra trust")
pytest.importorskip("cryptography", reason="signing needs the extra sign")

pytestmark = pytest.mark.timed

CASES, LABELLED = 80, 60

JUDGE = f'[judges.words]\nseats = ["{WORDS}"]\n[rubrics]\npolite = "polite.yaml"\n'

PEOPLE = f'[approvals]\napprovers = ["{ME}"]\n'

GATE = (
    '[gates.publish]\nrubric = "polite"\njudge = "words"\naudit = 0.001\nask = {show_content = true}\n'
    'require_certificate = "certificate.json"\nmin_sensitivity = 0.7\nmin_specificity = 0.5\nmax_age = "30d"\n'
)


def configure(url: str, gate: str = GATE) -> None:
    ledger = f'[ledger]\nurl = "{url}"\nkey = "ledger.pem"\n'
    Path("adjudge.toml").write_text(JUDGE + PEOPLE + gate + ledger, encoding="utf-8")


@pytest.fixture(scope="module", name="measured")
def provide_measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project: a key, a rubric, and a run of the judge of adjudge.toml that people labelled; made once."""
    folder = tmp_path_factory.mktemp("project")
    create_signing_key(folder / "ledger.pem")
    (folder / "polite.yaml").write_text("name: Polite\ncriteria:\n  - {name: criteria, description: Is polite.}\n")
    (folder / "good.txt").write_text("a good text")
    (folder / "bad.txt").write_text("a bad text")
    rows = [{"id": f"case-{at}", "content": f"a {'good' if at % 3 else 'bad'} text {at}"} for at in range(CASES)]
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.fixture(name="project", params=STORES)
def provide_project(
    request: pytest.FixtureRequest,
    measured: Path,
    line: Line,
    monkeypatch: pytest.MonkeyPatch,
    require: Any,
) -> Iterator[tuple[Line, str]]:
    """The command line in that project, with each store as its ledger."""
    place = Path.cwd()
    shutil.copytree(measured, place, dirs_exist_ok=True)
    cli.feed(monkeypatch, terminal=True)
    with open_store(request.param, place, require) as url:
        configure(url)
        if not (measured / "run").exists():
            assert line("run", "data.jsonl", "--judge", "words", "--rubric", "polite", "--out", "run").status == 0
            with open_label_queue("run", seed=1) as queue:
                label_all(queue, "ann", is_good, most=LABELLED)
            shutil.copytree("run", measured / "run")
        yield line, url


def check(line: Line, *arguments: str, file: str = "good.txt") -> Ran:
    return line("gate", "check", "publish", file, "--json", *arguments)


def age(days: int) -> None:
    """Put a certificate in the place of the file that was measured so many days ago, signed by the same key."""
    certificate, ledger = read_certificate("certificate.json"), Ledger("any.db", key="ledger.pem")
    then = datetime.now(UTC) - timedelta(days=days)
    older = sign_certificate(replace(certificate, judged_since=then, judged_until=then), ledger)
    Path("certificate.json").write_bytes(write_certificate(older))


def test_a_gate_demands_what_was_measured(project: tuple[Line, str]):
    """Before there is a certificate people decide, with it the judge, and once it is old people again; all recorded."""
    line, url = project
    before = check(line)
    certified = line("certify", "run")
    qualified = check(line)
    blocked = check(line, file="bad.txt")
    age(31)
    stale = check(line)

    assert [ran.status for ran in (before, certified, qualified, blocked, stale)] == [3, 0, 0, 1, 3]
    assert certified.out.startswith("This certificate speaks of the 80 contents with the digest ")
    found = [(ran.document["result"]["qualification"], ran.document["pending"]) for ran in (before, qualified, stale)]
    assert found == [("unqualified", True), ("qualified", False), ("stale", True)]
    details = [entry.payload["detail"] for entry in find(url, kind="decision") if entry.payload is not None]
    assert names(details[0], "a person was asked: unqualified: the certificate certificate.json cannot be read")
    assert details[1].startswith("certificate ")
    assert names(details[3], "a person was asked: stale: it was measured on", "31d ago, and max_age is 30d")
    (entry,) = find(url, kind="certificate")
    assert entry.payload is not None
    assert entry.payload["judge"]["name"] == "words"
    assert verify(url).valid


def test_an_alarm_of_its_audits_turns_the_gate_to_people(project: tuple[Line, str]):
    """A certificate is not relied on once people say that too much of what went through should have been stopped."""
    line, url = project
    configure(url, GATE.replace("audit = 0.001", "audit = {share = 1, promise = 0.01}"))
    assert line("certify", "run").status == 0
    for _ in range(2):
        assert check(line).document["result"]["qualification"] == "qualified"
        (audit,) = line("approvals", "list", "--audits", "--json").document["approvals"]
        assert line.vote(audit["id"], "--reason", "I looked", command="deny").status == 0
    after = check(line)

    assert (after.status, after.document["result"]["qualification"]) == (3, "stale")
    last = [entry.payload for entry in find(url, kind="decision")][-1]
    assert last is not None
    assert names(last["detail"], "a person was asked: stale: alarm", "2 of 2", "should have been stopped")


def test_a_person_lets_through_what_no_certificate_speaks_for(project: tuple[Line, str]):
    """The decision is theirs, and the result still says that the judge is not qualified."""
    line, _ = project
    ident = check(line).document["approval_id"]
    assert line.vote(ident, "--reason", "I read it").status == 0
    resumed = line("gate", "resume", ident, "good.txt", "--json").document

    assert (resumed["allowed"], resumed["decided_by"]) == (True, "human")
    assert resumed["result"]["qualification"] == "unqualified"


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("project", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--min-sensitivity", "0.99"), "min_sensitivity is 99 %"),
        (("--min-specificity", "0.99"), "min_specificity is 99 %"),
        (("--max-age", "1s"), "max_age is 1s"),
        (("--require-certificate", "other.json"), "other.json cannot be read"),
    ],
)
def test_the_command_line_demands_more(line: Line, options: tuple[str, ...], reason: str):
    """Options go over what the table of the gate says."""
    assert line("certify", "run").status == 0
    age(1)
    assert check(line).status == 0
    ran = check(line, *options)

    assert ran.status == 3
    assert names(ran.document["detail"], reason)


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("project", ["sqlite"], indirect=True)
def test_a_certificate_is_verified_without_the_ledger(
    line: Line, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
):
    """On a machine that has the file and the public key; with the run, everything in it is computed again.

    Nothing of the project is there: no configuration, no key, no ledger.
    """
    assert line("certify", "run", "--json").status == 0
    key = Ledger("any.db", key="ledger.pem").public_key
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    shutil.copy("certificate.json", elsewhere)
    shutil.copytree("run", elsewhere / "run")
    monkeypatch.chdir(elsewhere)
    file = Path("certificate.json")
    assert sorted(path.name for path in elsewhere.iterdir()) == ["certificate.json", "run"]

    assert names(line("certificate", "verify", file).err, "give --key")
    assert line("certificate", "verify", file, "--key", str(key)).status == 0
    with_run = line("certificate", "verify", file, "--key", str(key), "--run", "run", "--json")
    assert (with_run.status, with_run.document["valid"], with_run.document["problem"]) == (0, True, None)
    other = line("certificate", "verify", file, "--key", "0" * 64)
    assert (other.status, "another key" in other.err) == (1, True)
    raw = bytearray(file.read_bytes())
    raw[200] ^= 1
    file.write_bytes(raw)
    changed = line("certificate", "verify", file, "--key", str(key))
    assert (changed.status, changed.out) == (1, "")
    assert line("certificate", "verify", "none.json").status == 2


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("project", ["sqlite"], indirect=True)
def test_without_a_ledger_it_is_not_signed_and_no_gate_accepts_it(line: Line):
    """It says so, and a gate says why it asks; ``allow_unsigned`` accepts it."""
    ran = line("certify", "run", "--no-ledger")
    assert names(ran.err, "it is not signed")
    assert line("certificate", "verify", "certificate.json").status == 1
    assert names(check(line).document["detail"], "unqualified", "it is not signed")

    configure("sqlite:///adjudge.db", f"{GATE}allow_unsigned = true\n")
    assert check(line).status == 0


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("project", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("gate", "says"),
    [
        (GATE.replace("audit = 0.001\n", ""), "give audit"),
        (GATE.replace('"30d"', "30"), "max_age must be a text in quotes, got 30"),
        (GATE.replace('"30d"', '"a month"'), "max_age must be a length of time above 0, like 30d"),
        (GATE.replace("0.7", "70"), "min_sensitivity must be between 0 and 1, got 70; for 70 % write 0.7"),
        (GATE.replace("require_certificate", "require_certificat"), "did you mean 'require_certificate'?"),
        (GATE + 'certificate_key = "none.pub"\n', "certificate_key: the key"),
        (GATE + "sample = 0.5\n", "sample below 1 lets something through"),
    ],
)
def test_a_demand_that_is_written_wrong_is_said(line: Line, gate: str, says: str):
    """With the file, the table and the key, before anybody is asked."""
    configure("sqlite:///adjudge.db", gate)
    ran = check(line)

    assert ran.status == 2
    assert names(ran.sentence, "[gates.publish]", says)


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("project", ["sqlite"], indirect=True)
def test_labels_that_nobody_drew_get_no_certificate(line: Line):
    """The refusal is that of ``adjudge agree``, and nothing is written."""
    rows = [{"case": f"case-{at}", "rater": "ann", "value": bool(at % 3)} for at in range(20)]
    Path("labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ran = line("certify", "run", "--labels", "labels.jsonl")

    assert ran.status == 2
    assert names(ran.err, "cannot be certified", "random")
    assert not Path("certificate.json").exists()


SCORES = """
def judge(content: str) -> float:
    return 0.95 if "surely" in content else 0.6 if "perhaps" in content else 0.1
"""

SCORED = (
    '[judges.words]\nseats = ["python:scores:judge"]\n[rubrics]\npolite = "polite.yaml"\n'
    '[ledger]\nurl = "sqlite:///adjudge.db"\nkey = "ledger.pem"\n'
)


def says_good(task: LabelTask) -> bool:
    """People pass what is surely good, and every other one of what is perhaps good."""
    content = str(task.content)
    return "surely" in content or ("perhaps" in content and int(content[-1]) % 2 == 0)


RELEASES = GATE.replace("0.5", "0.3") + 'release_policy = "policy.json"\n'


def test_a_policy_is_calibrated_certified_and_kept_by_a_gate(line: Line, monkeypatch: pytest.MonkeyPatch):
    """From a run to what goes through: the judge decides alone from the threshold on, and people decide below it."""
    cli.feed(monkeypatch, terminal=True)
    create_signing_key("ledger.pem")
    Path("scores.py").write_text(SCORES, encoding="utf-8")
    Path("polite.yaml").write_text(
        "name: Polite\npassing_threshold: 0.5\ncriteria:\n  - {name: criteria, description: Is polite.}\n"
    )
    words = ("bad", "surely good", "perhaps good")
    rows = [{"id": f"case-{at}", "content": f"a {words[at % 3]} text {at}"} for at in range(150)]
    Path("data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name in words:
        Path(f"{name}.txt").write_text(f"a {name} text")
    Path("adjudge.toml").write_text(SCORED + PEOPLE + RELEASES, encoding="utf-8")
    assert line("run", "data.jsonl", "--judge", "words", "--rubric", "polite", "--out", "run").status == 0
    with open_label_queue("run", seed=1) as queue:
        label_all(queue, "ann", says_good, most=120)

    calibrated = line("calibrate", "run", "--promise", "wrong_pass<=0.05", "--write", "policy.json")
    certified = line("certify", "run", "--policy", "policy.json")
    above, below, failed = [check(line, file=f"{name}.txt") for name in (words[1], words[2], words[0])]

    assert (calibrated.status, certified.status) == (0, 0)
    assert [ran.status for ran in (above, below, failed)] == [0, 3, 1]
    assert above.document["result"]["qualification"] == "qualified"
    assert (above.document["decided_by"], below.document["pending"]) == ("judge", True)
    assert names(below.document["detail"], "it has a score of 0.60, and the judge decides alone from 0.95 on")
    assert line.vote(below.document["approval_id"], "--reason", "I read it").status == 0
    resumed = line("gate", "resume", below.document["approval_id"], "perhaps good.txt", "--json").document
    assert (resumed["allowed"], resumed["decided_by"]) == (True, "human")
    policy = read_release_policy("policy.json")
    assert read_certificate("certificate.json").release_policy == policy.digest
    # A policy that is laxer than the one that was certified lets nothing through.
    write_release_policy(replace(policy, threshold=0.5), "policy.json")
    assert names(check(line, file=f"{words[1]}.txt").document["detail"], "unqualified", "release policy")
