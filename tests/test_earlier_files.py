"""What an earlier version wrote is read by this one, and its prompts have not moved by a byte.

Each folder in tests/earlier was written by tests/earlier/make.py with the version that its name gives.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from adjudge import Approvals, Decision, Judge, JudgeChain, Ledger, ReplyCache, open_run, run
from adjudge.judges import read_result
from adjudge.ledger import Head, derive_audit, verify_export
from adjudge.models import ReplayModel
from adjudge.report import make_report

HERE = Path(__file__).parent / "earlier"
EACH = pytest.mark.parametrize(
    "version", sorted(path.name for path in HERE.iterdir() if path.is_dir() and path.name[0] != "_")
)

VOLATILE = {
    "id",
    "raw_response",
    "created_at",
    "at",
    "duration_ms",
    "total_duration_ms",
    "chain_result",
    "model_requested",
    "request_id",
}
"""What differs from one judgement to the next, or was added since."""


def load_make() -> Any:
    """The script that wrote the folders, as a module."""
    spec = importlib.util.spec_from_file_location("make_earlier", HERE / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


make = load_make()


def settle(value: Any) -> Any:
    """Plain data without what is volatile."""
    if isinstance(value, dict):
        return {key: settle(item) for key, item in value.items() if key not in VOLATILE}
    return [settle(item) for item in value] if isinstance(value, list) else value


def narrow(said: Any, written: Any) -> Any:
    """What is said now, without the members that a value did not have then: a version may add some."""
    if isinstance(said, dict) and isinstance(written, dict):
        return {key: narrow(item, written[key]) for key, item in said.items() if key in written}
    if isinstance(said, list) and isinstance(written, list) and len(said) == len(written):
        return [narrow(one, other) for one, other in zip(said, written, strict=True)]
    return said


def holds(said: Any, written: Any) -> bool:
    """Whether what is said now is what was written then, but for what is volatile and what was added."""
    written = settle(read(written) if isinstance(written, Path) else written)
    return narrow(settle(json.loads(json.dumps(said))), written) == written


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture
def folder(version: str, tmp_path: Path) -> Path:
    """A copy, since a store that is opened may be written to."""
    return Path(shutil.copytree(HERE / version, tmp_path / version))


@EACH
def test_prompts_and_digests_have_not_moved(folder):
    """Every kind of question finds its recorded reply, whose key is made of the whole prompt, and digests are equal."""
    judge = Judge(ReplayModel(folder / "recording.jsonl"), name="it")
    said = asyncio.run(make.ask_everything(judge, make.Script()))

    assert holds(said, folder / "results.json")


@EACH
def test_a_chain_finds_its_recording(folder):
    """Two seats of one model use the two recorded replies."""
    model = ReplayModel(folder / "chain.jsonl")
    chain = JudgeChain([Judge(model, name="a"), Judge(model, name="b")], strategy="consensus")
    said = asyncio.run(chain.evaluate("It left.", criteria=make.CRITERIA)).to_dict()

    assert holds(said, folder / "chain.json")


@EACH
def test_results_are_read(folder):
    """A result that was written then is a result now, and says the same."""
    for written in [*read(folder / "results.json").values(), read(folder / "chain.json")]:
        if written.get("schema", "").startswith("adjudge/result/"):
            assert holds(read_result(written).to_dict(), written)


@EACH
def test_a_cache_still_answers(folder):
    """What was cached is not asked for again."""
    model = make.Addressed()
    with ReplyCache(folder / "cache.sqlite") as cache:
        result = asyncio.run(make.add_cache(Judge(model), cache).evaluate("It left.", criteria=make.CRITERIA))

    assert result.passed
    assert result.usage is not None
    assert result.usage.calls == 0


@EACH
def test_a_ledger_is_whole(folder):
    """The store and the export verify against the pinned head, and the store takes another entry."""
    head = read(folder / "head.json")

    async def check() -> None:
        async with Ledger(f"sqlite:///{folder / 'ledger.db'}") as ledger:
            assert await ledger.verify(Head(seq=head["seq"], hash=head["hash"]))
            assert (await ledger.head()).seq == head["seq"]
            assert await ledger.append(read_result(read(folder / "chain.json"))) == head["seq"] + 1
            assert await ledger.verify()

    asyncio.run(check())
    assert verify_export(folder / "ledger.jsonl", head=Head(seq=head["seq"], hash=head["hash"]))
    assert asyncio.run(derive_audit(folder / "ledger.jsonl")).findings is not None


@EACH
def test_an_open_request_can_be_decided(folder):
    """Who was asked then is listed now, and answers."""
    decisions = [Decision.from_dict(item) for item in read(folder / "decisions.json")]

    async def decide() -> str:
        async with Approvals(f"sqlite:///{folder / 'ledger.db'}") as approvals:
            [request] = await approvals.list(approver="bob")
            assert request.id == decisions[-1].approval_id
            return (await approvals.decide(request.id, "bob", approved=False, reason="no")).status

    assert [item.pending for item in decisions] == [False, True, True]
    assert asyncio.run(decide()) == "denied"


@EACH
def test_runs_are_read_and_resumed(folder):
    """A finished run is reported, and one that was left asks for the rest alone."""
    finished = open_run(folder / "finished")
    asked = make.ScriptedModel(make.TWO, name="it")
    resumed = run(
        [item.case for item in finished.items()], Judge(asked), criteria=make.CRITERIA, out=folder / "left", resume=True
    ).finish_sync()

    assert make_report(finished).passed.rate == pytest.approx(4 / 6)
    assert resumed.counts == finished.counts == {"passed": 4, "failed": 2, "undecided": 0}
    assert len(asked.requests) < 6
