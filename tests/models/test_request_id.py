"""The provider's id of a request is kept with the result, wherever results are kept, as one short line."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, ClassVar

import pytest

from adjudge import Case, Judge, JudgeChain, JudgeResult, Ledger, ReplyCache, compare_sync, open_run, run
from adjudge.judges import read_result, with_layers
from adjudge.models import RecordingModel, ReplayModel, Reply, Request
from adjudge.testing import ScriptedModel
from kit.wire import completion, serve

pytestmark = pytest.mark.timed


ASKED = {"criteria": "Is polite."}
VERDICT = {"criteria": [{"name": "is-polite", "reasoning": "r", "score": 0.9}]}


def reply(request_id: Any, raw: Any = None) -> Any:
    """A line of a script: a reply with the token of its request, and with an id."""

    def answer(request: Request) -> Reply:
        text = json.dumps({"token": request.token, **VERDICT}) if raw is None else raw
        return Reply(text=text, request_id=request_id)

    return answer


def judge_by(*lines: Any, **options: Any) -> Judge:
    return Judge(ScriptedModel(list(lines) if len(lines) > 1 else lines[0]), **options)


def test_a_result_has_the_id_of_its_request():
    """It is what a provider's support asks for."""
    assert judge_by(reply("req_1")).evaluate_sync("Hello.", **ASKED).request_id == "req_1"


def test_the_id_is_that_of_the_last_reply():
    """As ``raw_response`` is: where one was asked again, the first could not be read."""
    result = judge_by(reply("first", "?"), reply("second")).evaluate_sync("Hello.", **ASKED)

    assert (result.attempts, result.request_id) == (2, "second")


@pytest.mark.parametrize("answer", [RuntimeError("down"), VERDICT], ids=["no reply", "no id"])
def test_without_an_id_there_is_none(answer: Any):
    """None is made up."""
    assert judge_by(answer).evaluate_sync("Hello.", **ASKED).request_id is None


def test_rules_have_no_request():
    """Nobody was asked."""
    rules = [{"regex": "secret", "absent": True}]

    assert judge_by(reply("req_1")).evaluate_sync("a secret", rules=rules, **ASKED).request_id is None


def test_a_chain_shows_the_id_of_the_seat_that_decided():
    """And every seat keeps its own."""
    seats = [judge_by(reply("broken", "?"), name="a", reask=0), judge_by(reply("decided"), name="b")]
    result = JudgeChain(seats).evaluate_sync("Hello.", **ASKED)

    assert result.request_id == "decided"
    assert [seat.request_id for seat in result.results] == ["broken", "decided"]


def test_a_chain_that_did_not_decide_shows_none():
    """There is no deciding seat; those that were asked have theirs."""
    result = JudgeChain([judge_by(reply("broken", "?"), reask=0)]).evaluate_sync("Hello.", **ASKED)

    assert (result.outcome, result.request_id) == ("undecided", None)
    assert result.results[0].request_id == "broken"


def test_a_comparison_has_one_for_each_order():
    """Each order is a request of its own."""
    template = '{"token": "%s", "reasoning": "r", "preferred": "tie"}'
    lines = [
        lambda request, name=name: Reply(text=template % request.token, request_id=name) for name in ("one", "two")
    ]
    result = compare_sync("a", "b", judge=judge_by(*lines), criteria="Is clearer.")

    assert {order.result.request_id for order in result.orders} == {"one", "two"}


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("req\x1b[2J\u202e1", "req·[2J·1"),
        ("a\nb\tc\r", "a b c·"),
        ("x" * 1_000_000, "x" * 200),
        ("half \ud800", "half ·"),
        ("", None),
        (7, None),
        (["req"], None),
        (None, None),
    ],
    ids=["escapes", "lines", "long", "half a character", "empty", "number", "list", "none"],
)
def test_an_id_is_one_short_line_whatever_a_server_sends(sent: Any, kept: str | None):
    """It is shown, logged and stored; and no id costs a verdict."""
    result = judge_by(reply(sent)).evaluate_sync("Hello.", **ASKED)

    assert result.passed
    assert result.request_id == kept
    assert read_result(json.loads(json.dumps(result.to_dict()))).request_id == kept


def test_a_result_written_before_there_was_one_is_read():
    """What has no such member has no id."""
    data = JudgeResult(outcome="passed", judge="it", request_id="req_1").to_dict()
    earlier = {name: value for name, value in data.items() if name != "request_id"}

    assert data["schema"] == "adjudge/result/1"
    assert read_result(data).request_id == "req_1"
    assert read_result(earlier).request_id is None


def test_the_id_comes_from_the_provider_over_http():
    """From the header that it names its requests by."""

    async def ask() -> JudgeResult:
        answer = completion('{"safe": true}')
        header = {"x-request-id": "req-" + "9" * 300}
        async with serve((200, header, answer)) as server, Judge(f"{server.url}#served-model") as judge:
            return await judge.ask('Is this safe? Reply {"safe": true} or {"safe": false}. Hello.')

    result = asyncio.run(ask())

    assert result.passed
    assert result.request_id == ("req-" + "9" * 300)[:200]


def test_a_run_keeps_it(tmp_path: Path):
    """In the file of the run, and so in its JSON."""
    cases = [Case(id="one", content="Hello.")]
    asyncio.run(_run(cases, judge_by(reply("req_1")), tmp_path / "run"))
    [item] = open_run(tmp_path / "run").items()

    assert item.result.request_id == "req_1"


async def _run(cases: list[Case], judge: Judge, out: Path) -> None:
    await run(cases, judge, out=out, **ASKED)


def test_a_ledger_records_it(tmp_path: Path):
    """Also where it keeps digests in place of what can quote the content."""

    async def record() -> Any:
        async with Ledger(f"sqlite:///{tmp_path / 'ledger.db'}") as ledger:
            await judge_by(reply("req_1"), on_result=ledger.append).evaluate("Hello.", **ASKED)
            return [entry.payload async for entry in ledger.query(kind="result")]

    [payload] = asyncio.run(record())

    assert payload["request_id"] == "req_1"
    assert payload["raw_response"].startswith("sha256:")


def test_a_replay_has_the_id_that_was_recorded(tmp_path: Path):
    """It belongs to the request that was made then."""
    path = tmp_path / "recording.jsonl"
    Judge(RecordingModel(ScriptedModel(reply("then"), name="it"), path)).evaluate_sync("Hello.", **ASKED)
    replayed = Judge(ReplayModel(path)).evaluate_sync("Hello.", **ASKED)

    assert replayed.passed
    assert replayed.request_id == "then"


def test_a_recording_by_hand_cannot_say_more_than_a_server(tmp_path: Path):
    """A file from a stranger is cleaned as a header is."""
    path = tmp_path / "recording.jsonl"
    Judge(RecordingModel(ScriptedModel(reply("then"), name="it"), path)).evaluate_sync("Hello.", **ASKED)
    path.write_text(path.read_text("utf-8").replace('"then"', '"\\u001b[2J' + "x" * 999 + '"'), encoding="utf-8")
    replayed = Judge(ReplayModel(path)).evaluate_sync("Hello.", **ASKED)

    assert replayed.request_id == "·[2J" + "x" * 196


class Addressed(ScriptedModel):
    """A stand-in of which, as of a provider's model, more than its name is known; only such replies are cached."""

    identity: ClassVar = {"address": "none"}


def test_a_cached_reply_has_the_id_of_the_request_that_was_made(tmp_path: Path):
    """That the reply comes from a cache is told by its usage: no call."""
    with ReplyCache(tmp_path / "cache.sqlite") as cache:
        judge = with_layers(Judge(Addressed(reply("then"))), cache=cache)
        first, second = (judge.evaluate_sync("Hello.", **ASKED) for _ in range(2))

    assert (first.request_id, second.request_id) == ("then", "then")
    assert second.usage is not None
    assert second.usage.calls == 0
