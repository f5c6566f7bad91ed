"""Forgetting in the batches of a run: what a provider sent back is in a file of its own beside the results."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from adjudge.erasure.choice import read_choice
from adjudge.erasure.forget import Places, forget
from adjudge.erasure.ledger import Order
from adjudge.erasure.report import ForgetReport
from adjudge.models.batch.job import ResultLine
from adjudge.models.replies.key import make_reply_key
from adjudge.runs.batch.store import FILE, BatchStore
from kit.batch import go, serve
from kit.erasures import OTHER, SECRET

pytestmark = pytest.mark.integration

ABOUT, ANOTHER = {"customer": "C-1"}, {"customer": "C-10"}

CASES = {
    "1": (f"{SECRET}, good", ABOUT),
    "10": (f"{OTHER}, good", ANOTHER),
    '1",': (f"{OTHER}, good too", ANOTHER),
    "refused": (f"{SECRET}, refuse", ABOUT),
    "refused as well": (f"{OTHER}, refuse", ANOTHER),
}
"""Ids of which one begins as another does, and one ends as JSON does."""


@pytest.fixture(scope="module", name="made")
def make_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete run by batch; of two cases the provider said why it refused, and quoted them."""
    folder = tmp_path_factory.mktemp("runs") / "monday"

    def fail(prompt: str) -> Any:
        quoted = SECRET if SECRET in prompt else OTHER
        error = {"code": "invalid_prompt", "message": f"refused: {quoted}", "type": "invalid_request_error"}
        return (400, {"error": error}) if "refuse" in prompt else None

    cases = [{"id": name, "content": content, "metadata": metadata} for name, (content, metadata) in CASES.items()]
    with serve(fail=fail) as server:
        go(server, cases, folder)
    return folder


@pytest.fixture(name="run")
def copy_run(made: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(made, tmp_path / "monday"))


def keep_replies(folder: Path, replies: dict[str, str]) -> None:
    """Keep replies as a run does that was stopped before it judged by them."""
    store = BatchStore(folder).open()
    try:
        requests = [
            (f"id-{place}", make_reply_key(case=case, order=None, sample=0, model="m", seat=0, attempt=0), "k", 0.0)
            for place, case in enumerate(replies)
        ]
        number = store.plan(
            label="kept", model="m", account="a", size=1, tokens=1, digest="d", now=0.0, requests=requests
        )
        lines = [
            ResultLine(id=f"id-{place}", kind="reply", body=json.dumps({"text": text}).encode(), name="", message="")
            for place, text in enumerate(replies.values())
        ]
        store.keep_lines(number, lines)
    finally:
        store.close()


def forget_customer(folder: Path, *, dry_run: bool = False) -> ForgetReport:
    order = Order(choice=read_choice(None, "customer=C-1"), reason="asked for", by="ana")
    return asyncio.run(forget(order, Places(runs=(folder,)), dry_run=dry_run))


def read_file(folder: Path) -> str:
    """Every byte of the batches, with the log beside the file."""
    return "".join(path.read_bytes().decode("latin-1") for path in sorted(folder.glob(f"{FILE}*")))


def list_kept(folder: Path) -> dict[str, tuple[Any, str]]:
    """What is kept of each case: the last reply and message."""
    store = BatchStore(folder).open(write=False)
    try:
        return {json.loads(place)[0]: (body, message) for place, body, message in store.list_outcomes()}
    finally:
        store.close()


def test_what_came_back_is_deleted_with_its_log_and_that_of_others_stays(run: Path):
    """A reply and an error that quote the case; ids that only begin alike are other cases."""
    keep_replies(run, {name: f"It says: {content}" for name, (content, _) in CASES.items()})
    assert SECRET in read_file(run)
    report = forget_customer(run)

    assert report.unfinished == ()
    assert SECRET not in read_file(run)
    assert OTHER in read_file(run)
    kept = list_kept(run)
    assert kept.keys() == {"10", '1",', "refused as well"}
    assert all(OTHER in str(body) for body, _ in kept.values())


def test_the_message_of_a_refusal_is_deleted(run: Path):
    """A complete run keeps no replies here, and why a request was refused."""
    assert SECRET in read_file(run)
    forget_customer(run)

    assert SECRET not in read_file(run)
    assert OTHER in read_file(run), "the other customer's refusal is kept"


def test_a_dry_run_deletes_nothing(run: Path):
    """What it would say is in the report."""
    keep_replies(run, {name: f"It says: {content}" for name, (content, _) in CASES.items()})
    before = list_kept(run)
    forget_customer(run, dry_run=True)

    assert list_kept(run) == before
    assert SECRET in read_file(run)


def test_requests_stay_counted(run: Path):
    """What was paid for, and what became of it, is as before: only the texts are gone."""
    store = BatchStore(run).open(write=False)
    before = (dict(store.count_requests()), store.list_batches())
    store.close()
    forget_customer(run)
    store = BatchStore(run).open(write=False)

    assert (dict(store.count_requests()), store.list_batches()) == before
    store.close()


def test_a_reply_about_another_case_that_names_it_is_listed_and_stays(run: Path):
    """A person looks at it."""
    keep_replies(run, {"10": "As for C-1, it is the same.", '1",': "As for C-11, it is not."})
    report = forget_customer(run)

    assert [each.what for each in report.look if "case 10" in each.where] == ["a reply by batch names it"]
    assert not [each for each in report.look if '1",' in each.where]
    assert "As for C-1, it is the same." in read_file(run)


def test_replies_to_cases_that_are_not_judged_yet_are_said_to_be_there(run: Path):
    """The batch knows no metadata: nobody knows whom they are about, so nobody is told that all is deleted."""
    keep_replies(run, {"11": f"It says: {SECRET}", "12": f"It says: {OTHER}"})
    report = forget_customer(run)

    said = [each.what for each in report.out_of_reach if each.place == "batches of runs"]
    assert said == [f"{run} has 2 replies to cases that it has not judged; resume it, and run this again"]
    assert SECRET in read_file(run)


def test_a_run_without_unjudged_replies_says_nothing_of_them(run: Path):
    """Nobody looks for what is not there."""
    report = forget_customer(run)
    assert "batches of runs" not in {each.place for each in report.out_of_reach}


def test_replies_that_an_interrupted_call_left_are_deleted_by_the_next(run: Path, monkeypatch: pytest.MonkeyPatch):
    """Replies go before results, whose metadata are what finds them."""
    keep_replies(run, {"1": f"It says: {SECRET}"})

    def stop(*_: Any, **__: Any) -> Any:
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(BatchStore, "erase_replies", stop)
        with pytest.raises(RuntimeError, match="killed"):
            forget_customer(run)
    assert SECRET in read_file(run)
    forget_customer(run)
    assert SECRET not in read_file(run)
