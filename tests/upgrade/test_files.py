"""Files that earlier versions wrote are read, and worked on, by this one: the promise of COMPATIBILITY.md.

``tests/upgrade/<version>`` holds the files that a version wrote (``kit.upgrade_files``). With ADJUDGE_FULL=1 those are
read as well that the newest tag writes, or the commit that ADJUDGE_UPGRADE_FROM names.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from adjudge import Judge, JudgeChain, ReplyCache, run
from adjudge.guards import find_signature_problem, parse_certificate, read_certificate, read_monitor, write_certificate
from adjudge.judges import with_layers
from adjudge.labels import open_label_queue
from adjudge.ledger import KINDS, Ledger, read_audit
from adjudge.measurement import find_run_problem, read_release_policy, write_release_policy
from adjudge.models import ReplayModel
from kit.cli import Line, isolate
from kit.environment import FULL
from kit.house import TESTS
from kit.ledgers import STORES, open_store
from kit.upgrade_facts import describe_all, describe_ledger, find_differences
from kit.upgrade_files import (
    DUMP,
    HELD_CALL,
    LONG,
    PASSWORD,
    Desk,
    Grader,
    make_all,
    make_cases,
    open_desk,
    read_expected,
    unpack,
)
from kit.upgraded import make_tagged_files

for needed in ("argon2", "cryptography", "fastapi", "scipy"):
    pytest.importorskip(needed)

RELEASED = sorted(path.parent.name for path in (TESTS / "upgrade").glob("*/expected.json*"))

NEWEST = "the newest tag"

TAGGED = [pytest.param(NEWEST, marks=pytest.mark.integration)] if FULL else []  # builds a wheel


@pytest.fixture(name="stored", params=[*RELEASED, *TAGGED], scope="module")
def find_stored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of files as a version left them."""
    if request.param == NEWEST:
        return make_tagged_files(tmp_path_factory.mktemp("tag"))
    return TESTS / "upgrade" / request.param


@pytest.fixture(name="folder")
def make_folder(stored: Path, tmp_path: Path) -> Path:
    """A copy of the files, each as it was written."""
    return unpack(stored, tmp_path / "files")


@pytest.fixture(name="kind", params=STORES)
def choose_store(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(name="url")
def make_url(kind: str, folder: Path, tmp_path: Path, require: Any) -> Iterator[str]:
    """The ledger of the files, in SQLite and in PostgreSQL."""
    if kind == "sqlite":
        yield f"sqlite:///{folder / 'adjudge.db'}"
        return
    with open_store("postgres", tmp_path, require) as url:
        import psycopg

        with psycopg.connect(url.replace("+psycopg", "")) as connection:
            connection.execute((folder / DUMP).read_text("utf-8"))
        yield url


def use(folder: Path, url: str, work: Callable[[Desk], Awaitable[Any]]) -> Any:
    """What an async function makes of a ledger of the files; afterwards the ledger still verifies."""

    async def go() -> Any:
        async with open_desk(folder, url) as desk:
            made = await work(desk)
            assert await desk.ledger.verify()
            return made

    return asyncio.run(go())


# ---------------------------------------------------------------- what they say


def test_every_file_says_what_it_said(folder: Path):
    """Runs, labels, plans, looks, recordings of runs, reports, certificates and what people write by hand."""
    now = describe_all(folder)
    expected = read_expected(folder)

    assert list(find_differences({name: expected[name] for name in ("runs", "files")}, now)) == []


def test_a_ledger_says_what_it_said(kind: str, folder: Path, url: str):
    """Its entries and their hashes, and what stands beside them: requests, votes, audits, tools, keys, accounts."""
    if find_spec("alembic") is not None:
        use(folder, url, lambda desk: desk.ledger.upgrade())
    now = json.loads(json.dumps(asyncio.run(describe_ledger(folder, url)), default=str))
    expected = read_expected(folder)["ledgers"]["sqlite" if kind == "sqlite" else "postgresql"]

    assert now["valid"]
    assert list(find_differences(expected, now)) == []


def test_an_exported_ledger_is_the_same_bytes(folder: Path, tmp_path: Path):
    """Whoever kept an export can compare it with one of today."""

    async def export(desk: Desk) -> None:
        await desk.ledger.export(tmp_path / "again.jsonl")

    use(folder, f"sqlite:///{folder / 'adjudge.db'}", export)

    assert (tmp_path / "again.jsonl").read_bytes() == (folder / "ledger.jsonl").read_bytes()


def test_an_audit_report_is_read(folder: Path):
    """With every finding that it had."""
    stored = json.loads((folder / "audit.json").read_text("utf-8"))

    assert list(find_differences(stored, json.loads(json.dumps(read_audit(stored).to_dict())))) == []


# ---------------------------------------------------------------- what people are asked


def test_an_open_request_is_approved_and_resumed(folder: Path, url: str):
    """People were asked by the old version, and answer in the new one."""

    async def work(desk: Desk) -> None:
        (waiting,) = [item for item in await desk.approvals.list() if item.content == f"{LONG} 4"]
        gate = desk.open_letters()
        assert (await desk.approvals.decide(waiting.id, "ana", True, "it is right")).status == "approved"
        decision = await gate.resume(waiting.id, content=f"{LONG} 4", task="Confirm it.")
        assert (decision.allowed, decision.decided_by) == (True, "human")
        other = await gate.resume(waiting.id, content="another letter", task="Confirm it.")
        assert not other.allowed

    use(folder, url, work)


def test_an_approval_that_was_not_used_is_used(folder: Path, url: str):
    """The digest of the request is computed as it was, so what people said yes to still counts."""

    async def work(desk: Desk) -> None:
        (stored,) = await desk.approvals.list_pending(gate="notes", status="approved")
        decision = await desk.open_letters().resume(stored.approval.id)
        assert (decision.allowed, decision.detail) == (True, "approved by ben: it is right")

    use(folder, url, work)


def test_a_vote_that_was_taken_back_can_be_given_again(folder: Path, url: str):
    """With the comment that somebody left there."""

    async def work(desk: Desk) -> None:
        (doubted,) = [item for item in await desk.approvals.list() if item.content == f"{LONG} 3"]
        assert (doubted.votes, doubted.pending_votes) == ((), ())
        kinds = [entry.kind for entry in await desk.approvals.history(doubted.id)]
        assert "approval.commented" in kinds
        assert (await desk.approvals.decide(doubted.id, "ana", False, "it is not")).status == "denied"

    use(folder, url, work)


def test_a_held_call_is_approved_and_made_once(folder: Path, url: str):
    """The guard finds the call again that the old version held back."""

    async def work(desk: Desk) -> None:
        guard = desk.open_guard()
        held = await guard.check(HELD_CALL)
        assert held.kind == "pending"
        await desk.approvals.decide(held.approval_id, "ana", True, "it is old")
        assert await guard.check(HELD_CALL)
        assert (await guard.check(HELD_CALL)).because == "used"

    use(folder, url, work)


def test_a_call_that_may_not_have_run_is_listed(folder: Path, url: str):
    """It was approved and allowed, and no entry says that it was made."""

    async def work(desk: Desk) -> None:
        (unfinished,) = await desk.open_guard().list_unfinished(at_work=0.0)
        assert unfinished.tool == HELD_CALL.tool
        assert unfinished.run_id == HELD_CALL.run_id

    use(folder, url, work)


def test_the_trust_in_a_run_is_what_it_was(folder: Path, url: str):
    """A run that people reopened goes on, and a call that a person denied stays refused."""

    async def work(desk: Desk) -> None:
        guard = desk.open_guard()
        assert await guard.check(replace(HELD_CALL, tool="Bash", arguments={"command": "ls"}, run_id="session-2"))
        assert (await guard.check(replace(HELD_CALL, call_id="c-5", run_id="session-4"))).because == "denied"

    use(folder, url, work)


def test_an_open_audit_is_answered(folder: Path, url: str):
    """It counts for the monitor, which began anew before it."""

    async def work(desk: Desk) -> None:
        (audit,) = [item for item in await desk.approvals.list(audits=True) if "waits" in str(item.content)]
        await desk.approvals.decide(audit.id, "ana", True, "it was right")
        monitor = await read_monitor(desk.ledger, "audited")
        assert (monitor.labels, monitor.bad) == (1, 0)

    use(folder, url, work)


def test_a_gate_that_enforced_goes_on_with_its_certificate(folder: Path, url: str):
    """The certificate still speaks for the judge: digests of judge, rubric, prompt and rules are what they were."""

    async def work(desk: Desk) -> None:
        gate = desk.open_certified()
        passed = await gate.check("a good text")
        assert (passed.mode, passed.allowed) == ("enforce", True)
        assert passed.result is not None
        assert passed.result.qualification == "qualified"
        assert not (await gate.check("a bad text")).allowed

    use(folder, url, work)


# ---------------------------------------------------------------- runs, labels and replies


def test_a_run_that_was_left_is_resumed(folder: Path):
    """No model is asked for what was judged before."""
    model = Grader()
    judge = Judge(model, name="grader")
    left = json.loads((folder / "expected.json").read_text("utf-8"))["runs"]["left"]["items"]

    done = run(make_cases(12), judge, folder / "polite.yaml", out=folder / "runs" / "left", resume=True).finish_sync()

    assert done.counts == {"passed": 9, "failed": 3, "undecided": 0}
    assert model.asked <= 12 - len(left)


def test_labelling_goes_on(folder: Path):
    """Another rater answers what is there for them, and the labels of before stay."""
    with open_label_queue(folder / "runs" / "monday") as queue:
        before = list(queue.labels())
        task = queue.next("ann")
        queue.record("ben", before[0].case, False, subject=before[0].subject)
        assert task is None or task.case not in {label.case for label in before}
        assert list(queue.labels())[: len(before)] == before
        assert [truth.case for truth in queue.list_differences()] == [before[0].case]


def test_a_recording_replays(folder: Path):
    """The prompts are those of then, so that each request is found by its key."""
    judge = Judge(ReplayModel(folder / "recording.jsonl"))

    async def ask() -> list[Any]:
        contents = ("a good text", "a bad text {{token}}")
        return [await judge.evaluate(content, folder / "polite.yaml", task="Answer it.") for content in contents]

    assert [(result.outcome, result.score) for result in asyncio.run(ask())] == [("passed", 1.0), ("failed", 0.0)]


def test_a_cache_answers(folder: Path):
    """No model is asked."""
    seats = [Grader(), Grader()]
    chain = JudgeChain([Judge(seats[0], name="a"), Judge(seats[1], name="b")], strategy="consensus")
    with ReplyCache(folder / "replies.sqlite") as cache:
        cached = with_layers(chain, cache=cache)
        result = asyncio.run(cached.evaluate("a good text", folder / "polite.yaml", task="Answer it."))

    assert result.passed
    assert [seat.asked for seat in seats] == [0, 0]


# ---------------------------------------------------------------- promises


def test_a_certificate_is_the_same_bytes_and_its_signature_holds(folder: Path):
    """It is computed again from the run and the labels of then, and comes to the same."""
    path = folder / "certificate.json"
    certificate = read_certificate(path)
    public_key = Ledger(f"sqlite:///{folder / 'adjudge.db'}", key=str(folder / "ledger-key.pem")).public_key

    assert public_key is not None
    assert write_certificate(certificate) == path.read_bytes()
    assert parse_certificate(path.read_bytes()) == certificate
    assert find_signature_problem(certificate, public_key) is None
    assert find_run_problem(certificate, folder / "runs" / "monday") is None


def test_a_release_policy_is_the_same_bytes(folder: Path, tmp_path: Path):
    """The certificate names it by its digest."""
    policy = read_release_policy(folder / "policy.json")

    assert write_release_policy(policy, tmp_path / "again.json").read_bytes() == (folder / "policy.json").read_bytes()
    assert read_certificate(folder / "certificate.json").release_policy == policy.digest


# ---------------------------------------------------------------- configuration


def test_the_configuration_is_read_and_its_gates_work(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """Every key of then is known, and the ledger that it names is the one of the files."""
    isolate(monkeypatch, folder)
    line = Line(capsys)

    gates = line("gate", "list", "--json")
    assert gates.status == 0, gates.err
    assert set(gates.document["gates"]) == {"letters", "answers", "shell", "deploys"}
    (folder / "short.txt").write_text("Thank you.", "utf-8")
    assert line("gate", "check", "letters", "short.txt").status == 0
    assert line("ledger", "verify").status == 0
    assert line("certificate", "verify", "certificate.json").status == 0


@pytest.mark.timed
def test_keys_and_accounts_of_then_open_the_server(folder: Path, monkeypatch: pytest.MonkeyPatch):
    """A key that was rotated away does not; a password is checked by the hash of then."""
    for provider in ("OPENAI", "ANTHROPIC"):  # which nobody asks
        monkeypatch.setenv(f"{provider}_API_KEY", "none")
    server = pytest.importorskip("kit.server")
    keys = json.loads((folder / "server-keys.json").read_text("utf-8"))["sqlite"]

    with server.run_server(folder, (folder / "adjudge.toml").read_text("utf-8")) as running:
        statuses = {name: running.open_client(key=keys[name]).get("/v1/gates").status_code for name in keys}
        assert statuses == {"website": 200, "rotated": 401, "laptop": 403, "ana": 403, "ben": 403}
        assert running.sign_in("cy", PASSWORD).get("/approvals").status_code == 200


# ---------------------------------------------------------------- what is written


@pytest.mark.slow
def test_the_files_of_this_version_hold_entries_of_every_kind(tmp_path: Path):
    """A kind that is new has to be written into the files of the next release, or nothing holds it."""
    folder = tmp_path / "made"
    asyncio.run(make_all(folder))
    facts = describe_all(folder)

    ledger = facts["ledgers"]["sqlite"]
    assert {kind for _, kind, *_ in ledger["entries"]} == set(KINDS)
    assert ledger["valid"]
    assert sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) < 5_000_000
