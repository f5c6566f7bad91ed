"""Recording and replaying: what a row holds, what it answers, and what content cannot do to it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import stat
import threading
from dataclasses import replace

import pytest
import rfc8785

from adjudge import ModelError, Usage, UsageError
from adjudge.models import (
    MissingRecording,
    RecordingModel,
    ReplayModel,
    Reply,
    Request,
    TokenLogprob,
    as_model,
    hosts_of,
    open_model,
)
from kit.wire import ASKED, PLAIN, completion, serve

pytestmark = pytest.mark.timed


KEY = "sk-very-secret-0123456789"


def record(path, replies, *requests):
    """Record replies to requests, one after another."""
    waiting = iter(replies)

    async def run():
        async with RecordingModel(as_model(("m", lambda prompt: next(waiting))), path) as model:
            for request in requests:
                await model.complete(request)

    asyncio.run(run())


def replay(path, *requests, **options):
    """The replies a recording gives to requests, one after another."""

    async def run():
        model = ReplayModel(path, **options)
        return [await model.complete(request) for request in requests]

    return asyncio.run(run())


def write(path, *rows):
    path.write_text("".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def test_a_row_holds_request_and_reply(tmp_path):
    """Schema, key, attempt, model, masked request and reply; the file is its owner's alone."""
    path = tmp_path / "rec.jsonl"
    token = "abcdefgh"
    asked = replace(ASKED, user=f"<<content {token}>> x", token=token, case="c1", order="ab")
    logprobs = (TokenLogprob(token="abc", logprob=-0.5, top=(("abc", -0.5), ("x", -2.0))),)
    reply = Reply(text=f'{{"token": "{token}"}}', usage=Usage(input_tokens=3), logprobs=logprobs, model="real-1")
    record(path, [reply], asked)
    row = json.loads(path.read_text())

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert token not in path.read_text()
    assert {name: row[name] for name in ("schema", "case", "order", "attempt", "model")} == {
        "schema": "adjudge/recording/1",
        "case": "c1",
        "order": "ab",
        "attempt": 1,
        "model": "m",
    }
    assert row["request"]["user"] == "<<content {{token}}>> x"
    assert row["request"]["form"] == {"name": "verdict", "digest": "f" * 64}
    assert row["key"] == hashlib.sha256(rfc8785.dumps({"model": "m", **row["request"]})).hexdigest()
    assert row["reply"]["text"] == '{"token": "{{token}}"}'
    assert row["reply"]["usage"]["input_tokens"] == 3
    assert row["reply"]["logprobs"] == [{"token": "abc", "logprob": -0.5, "top": [["abc", -0.5], ["x", -2.0]]}]


def test_what_was_recorded_is_replayed_under_another_token(tmp_path):
    """The same question on another machine has another token; the reply comes back with that one."""
    path = tmp_path / "rec.jsonl"

    def asked(token):
        return replace(ASKED, user=f"<<content {token}>> {{{{token}}}} x", token=token)

    pieces = ('{"token": "', "abc", "def", 'gh"}')
    logprobs = tuple(TokenLogprob(token=piece, logprob=-1.0, top=((piece, -1.0), ("no", -3.0))) for piece in pieces)
    usage = Usage(input_tokens=3, output_tokens=4, cached_tokens=1, cost_usd=0.5)
    reply = Reply(text="".join(pieces), usage=usage, logprobs=logprobs, model="real-1", request_id="r")
    record(path, [reply], asked("abcdefgh"))

    assert replay(path, asked("abcdefgh")) == [reply]
    (other,) = replay(path, asked("stuvwxyz"))
    assert other.text == '{"token": "stuvwxyz"}'
    assert [item.token for item in other.logprobs] == ['{"token": "', "stu", "vwx", 'yz"}']
    assert other.logprobs[1].top == (("stu", -1.0), ("no", -3.0))
    assert (other.usage, other.model) == (usage, "real-1")


def test_equal_keys_are_used_up_in_order(tmp_path):
    """Three answers to one prompt come back in their order; the fourth asking is a miss that names the key."""
    path = tmp_path / "rec.jsonl"
    record(path, ["a", "b", "c"], PLAIN, PLAIN, PLAIN)
    assert [reply.text for reply in replay(path, PLAIN, PLAIN, PLAIN)] == ["a", "b", "c"]

    with pytest.raises(MissingRecording) as caught:
        replay(path, PLAIN, PLAIN, PLAIN, PLAIN)
    assert caught.value.key == json.loads(path.read_text().splitlines()[0])["key"]
    assert caught.value.key in str(caught.value)
    assert isinstance(caught.value, ModelError)


@pytest.mark.parametrize(
    "changed",
    [
        {"system": "x"},
        {"user": "x"},
        {"form": ASKED.form},
        {"temperature": 0.5},
        {"seed": 1},
        {"max_output_tokens": 1},
        {"logprobs": True},
        {"attempt": 2},
    ],
    ids=lambda value: next(iter(value)),
)
def test_a_different_request_is_a_miss(tmp_path, changed):
    """Everything that a reply depends on is part of what it is looked up by."""
    path = tmp_path / "rec.jsonl"
    record(path, ["a"], PLAIN)

    with pytest.raises(MissingRecording):
        replay(path, replace(PLAIN, **changed))


def test_rows_by_hand_answer_their_case(tmp_path):
    """A case and a text are a whole row; order and attempt count where the row has them."""
    path = write(
        tmp_path / "hand.jsonl",
        {"case": "one", "reply": {"text": "any order"}},
        "\n",
        {"case": "two", "order": "ba", "reply": {"text": "swapped"}},
        {"case": "two", "order": "ab", "reply": {"text": "as given"}},
        {"case": "three", "attempt": 2, "reply": {"text": "again"}},
        {"case": "three", "reply": {"text": "first", "finish_reason": "length"}},
        {"case": "four", "reply": {"text": None, "finish_reason": "refusal"}},
    )
    asked = [
        replace(PLAIN, case="two", order="ab"),
        replace(PLAIN, case="one", order="ba", user="whatever"),
        replace(PLAIN, case="two", order="ba"),
        replace(PLAIN, case="three"),
        replace(PLAIN, case="three", attempt=2),
        replace(PLAIN, case="four"),
    ]
    replies = replay(path, *asked)

    assert [reply.text for reply in replies] == ["as given", "any order", "swapped", "first", "again", None]
    assert [reply.finish_reason for reply in replies[3:]] == ["length", "stop", "refusal"]
    with pytest.raises(MissingRecording, match="case 'none'"):
        replay(path, replace(PLAIN, case="none"))
    with pytest.raises(MissingRecording):
        replay(path, PLAIN)


def test_a_recorded_row_of_a_case_answers_its_very_prompt(tmp_path):
    """Two prompts about one case are not mixed up, whatever the order; another case's row is not taken."""
    path = tmp_path / "rec.jsonl"
    first, second = replace(PLAIN, case="c", user="first"), replace(PLAIN, case="c", user="second")
    record(path, ["1", "2"], first, second)

    assert [reply.text for reply in replay(path, second, first)] == ["2", "1"]
    assert replay(path, replace(first, case=None))[0].text == "1"
    for other in (
        replace(first, case="d"),
        replace(first, user="reworded"),
    ):  # what was recorded was said of its prompt
        with pytest.raises(MissingRecording):
            replay(path, other)


def test_a_hand_written_token_is_filled_in(tmp_path):
    """{{token}} in a row becomes the token of the question asked."""
    path = write(tmp_path / "hand.jsonl", {"case": "c", "reply": {"text": '{"token": "{{token}}"}'}})

    assert replay(path, replace(PLAIN, case="c", token="abcdefgh"))[0].text == '{"token": "abcdefgh"}'


def test_one_model_of_several_can_be_chosen(tmp_path):
    """A file that several models were recorded to replays each by its name."""
    path = tmp_path / "rec.jsonl"
    for name in ("m1", "m2"):
        asyncio.run(RecordingModel(as_model((name, lambda prompt, name=name: name)), path).complete(PLAIN))

    assert replay(path, PLAIN, model="m2")[0].model == "m2"
    assert [reply.text for reply in replay(path, PLAIN, PLAIN)] == ["m1", "m2"]
    assert open_model(f"replay:{path}?model=m2").name == f"replay:{path}?model=m2"
    with pytest.raises(UsageError, match="no rows of m3"):
        ReplayModel(path, model="m3").check()


@pytest.mark.parametrize(
    ("row", "says"),
    [
        pytest.param("{", "not a row", id="truncated"),
        pytest.param("[" * 100_000, "not a row", id="deep"),
        pytest.param({"reply": {"text": "x"}}, "neither", id="no key or case"),
        pytest.param({"case": "c"}, "reply", id="no reply"),
        pytest.param({"case": 5, "reply": {"text": "x"}}, "case", id="case is a number"),
        pytest.param({"case": "c", "reply": {}}, "no text", id="no text"),
        pytest.param({"case": "c", "reply": {"answers": {"passed": True}}}, "no text", id="answers in place of text"),
        pytest.param({"case": "c", "reply": {"text": "x", "finish_reason": "done"}}, "done", id="finish reason"),
        pytest.param({"case": "c", "order": "aa", "reply": {"text": "x"}}, "aa", id="order"),
        pytest.param({"schema": "adjudge/recording/2", "case": "c", "reply": {"text": "x"}}, "/2", id="schema"),
    ],
)
def test_a_bad_row_is_named(tmp_path, row, says):
    """The error names file, line and fault, before anything is asked."""
    good = {"case": "a", "reply": {"text": "x"}}
    path = write(tmp_path / "bad.jsonl", good, row if isinstance(row, str) else json.dumps(row))

    with pytest.raises(UsageError, match=says) as caught:
        ReplayModel(path).check()
    assert "bad.jsonl, line 2" in str(caught.value)


def test_an_absent_or_empty_recording_is_a_usage_error(tmp_path):
    """Nothing is read before first use; then the file must be there and hold something."""
    model = ReplayModel(tmp_path / "none.jsonl")
    assert model.name == f"replay:{tmp_path / 'none.jsonl'}"
    with pytest.raises(UsageError, match="cannot be read"):
        model.check()
    with pytest.raises(UsageError, match="no rows"):
        asyncio.run(ReplayModel(write(tmp_path / "empty.jsonl")).complete(PLAIN))


def test_many_writers_do_not_mix(tmp_path):
    """Calls of several loops and threads record whole lines."""
    path = tmp_path / "rec.jsonl"
    model = RecordingModel(as_model(("m", lambda prompt: prompt * 500)), path)

    async def run(number):
        async with asyncio.TaskGroup() as group:
            for place in range(40):
                group.create_task(model.complete(Request(system="", user=f"{number}-{place} ")))

    threads = [threading.Thread(target=lambda number=number: asyncio.run(run(number))) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    users = [json.loads(line)["request"]["user"] for line in path.read_text().splitlines()]

    assert sorted(users) == sorted(f"{number}-{place} " for number in range(4) for place in range(40))


def test_half_a_line_of_a_killed_run_swallows_nothing(tmp_path):
    """A new row starts on a line of its own."""
    path = write(tmp_path / "rec.jsonl", '{"key": "abc", "re')
    record(path, ["a"], PLAIN)

    assert len(path.read_text().splitlines()) == 2
    assert json.loads(path.read_text().splitlines()[1])["reply"]["text"] == "a"


def test_a_recording_model_is_its_model_otherwise(tmp_path, monkeypatch):
    """Name, hosts, limits, other models and checks are the model's own; the key is in no row."""
    monkeypatch.setenv("MY_KEY", KEY)
    path = tmp_path / "rec.jsonl"

    async def run():
        async with serve((200, {}, completion())) as server:
            inner = open_model(f"{server.url}?key_env=MY_KEY&max_input_characters=9#m")
            async with RecordingModel(inner, path) as model:
                await model.complete(ASKED)
                return model, inner, server.headers[0]["Authorization"]

    model, inner, sent = asyncio.run(run())
    assert (model.name, model.structured, hosts_of(model)) == (inner.name, True, inner.hosts)
    assert model.max_input_characters == 9
    assert model.named("n").name == inner.named("n").name
    assert sent == f"Bearer {KEY}"
    assert KEY not in path.read_text()
    assert ReplayModel(path).structured
    assert hosts_of(ReplayModel(path)) == ()

    monkeypatch.delenv("MY_KEY")
    with pytest.raises(UsageError, match="MY_KEY"):
        RecordingModel(open_model("http://127.0.0.1:9/v1?key_env=MY_KEY#m"), path).check()
    with pytest.raises(UsageError, match="no other models"):
        RecordingModel(as_model(("f", lambda prompt: "")), path).named("x")


def test_a_file_that_cannot_be_written_is_found_before_asking(tmp_path):
    """No reply is paid for that could not be kept."""
    asked = []
    model = RecordingModel(as_model(("m", asked.append)), tmp_path / "absent" / "rec.jsonl")

    with pytest.raises(UsageError, match="cannot be written"):
        asyncio.run(model.complete(PLAIN))
    assert asked == []


def test_what_fails_is_not_recorded(tmp_path):
    """A recording holds replies; an error is asked for again."""
    path = tmp_path / "rec.jsonl"

    def fails(prompt):
        raise ValueError

    with pytest.raises(ModelError):
        asyncio.run(RecordingModel(as_model(fails), path).complete(PLAIN))
    assert path.read_text() == ""


def test_what_cannot_be_hashed_is_a_usage_error(tmp_path):
    """A seed above 2**53 and half a character have no canonical form."""
    model = RecordingModel(as_model(("m", lambda prompt: "")), tmp_path / "rec.jsonl")
    for request in (replace(PLAIN, seed=2**60), replace(PLAIN, user="\ud800")):
        with pytest.raises(UsageError, match="cannot be recorded"):
            asyncio.run(model.complete(request))
