"""A model is not asked again what it has answered, and a cache that fails changes no judgement."""

from __future__ import annotations

import asyncio
import subprocess
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from adjudge import Judge, ModelError, Usage
from adjudge.models import Model, Reply, ReplyCache, Request, TokenLogprob
from kit.cache import ask
from kit.judges import YES, Plain, keep_replies
from kit.patience import HANG
from kit.process import start_module

ASKED = Request(system="Be a judge.", user="Is <abcdefgh> good?", token="abcdefgh")


# ---------------------------------------------------------------- what is found again


def test_the_same_request_is_asked_once(cache: ReplyCache):
    """The second answer is the first, costs nothing and says so: no calls, no tokens, no dollars."""
    model = Plain(Reply(text="yes", usage=Usage(input_tokens=9, output_tokens=3), model="m-1"), "no")
    first, second = ask(keep_replies(model, cache), ASKED, ASKED)

    assert len(model.requests) == 1
    assert first.usage == Usage(input_tokens=9, output_tokens=3)
    assert second == replace(first, usage=Usage(calls=0, cost_usd=0.0))


def test_a_reply_is_found_by_another_object_later(tmp_path: Path):
    """What one program asked, the next has."""
    path = tmp_path / "replies.sqlite"
    with ReplyCache(path) as cache:
        ask(keep_replies(Plain("yes"), cache), ASKED)
    with ReplyCache(path) as cache:
        model = Plain("no")
        assert [reply.text for reply in ask(keep_replies(model, cache), ASKED)] == ["yes"]
    assert model.requests == []


def test_closing_a_judge_writes_what_it_was_told(cache: ReplyCache):
    """Who opens the file afterwards finds it; the cache goes on."""

    async def run():
        async with Judge(keep_replies(Plain(YES), cache)) as judge:
            await judge.ask("Is this safe?")

    asyncio.run(run())
    with ReplyCache(cache.path) as other:
        assert len(list(other.entries())) == 1


def test_the_token_is_masked_in_the_file_and_is_the_present_one_in_the_reply(cache: ReplyCache):
    """A reply that was read behind one token is read behind another, and the file holds neither."""
    logprobs = (TokenLogprob(token="abcd", logprob=-0.1), TokenLogprob(token="efgh", logprob=-0.2))
    model = Plain(Reply(text="abcdefgh {{token}}", logprobs=logprobs))
    ask(keep_replies(model, cache), ASKED)
    again = ask(keep_replies(model, cache), replace(ASKED, user="Is <12345678> good?", token="12345678"))[0]
    cache.flush()

    assert len(model.requests) == 1
    assert again.text == "12345678 {{token}}"
    assert [item.token for item in again.logprobs or ()] == ["1234", "5678"]
    written = b"".join(path.read_bytes() for path in cache.path.parent.iterdir())
    assert b"{{=token}}" in written
    assert b"abcdefgh" not in written
    assert b"Be a judge." not in written


def test_a_judgement_through_a_cache_is_the_same_judgement(cache: ReplyCache):
    """A result from the cache differs from the asked one in its usage alone."""
    model = Plain(lambda request: f'{{"token": "{request.token}", "safe": true}}')
    judge = Judge(keep_replies(model, cache))
    options = {"criteria": "Is polite.", "result_format": None}
    model_says = '{"criteria": [{"name": "is-polite", "reasoning": "", "score": 0.9}]}'
    model.lines = [lambda request: f'{{"token": "{request.token}", {model_says[1:]}']
    first, second = [judge.evaluate_sync("Thank you.", **options) for _ in range(2)]  # type: ignore[arg-type]

    assert (first.outcome, first.score, first.raw_response) == ("passed", 0.9, second.raw_response)
    assert (second.outcome, second.score, second.attempts) == ("passed", 0.9, 1)
    assert second.usage == Usage(calls=0, cost_usd=0.0)
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    "reply",
    [
        Reply(text="cut", finish_reason="length"),
        Reply(text="no", finish_reason="refusal"),
        Reply(text="?", finish_reason="other"),
        Reply(text=""),
        Reply(text=None),
    ],
)
def test_what_did_not_end_by_itself_is_asked_again(cache: ReplyCache, reply: Reply):
    """A reply that was cut off, refused or empty is the accident of one request."""
    model = Plain(reply, "yes")

    assert [answer.text for answer in ask(keep_replies(model, cache), ASKED, ASKED)] == [reply.text, "yes"]


def test_what_a_model_raises_is_not_kept(cache: ReplyCache):
    """An outage ends when it is over."""
    model = Plain(ModelError("down"), "yes")
    with pytest.raises(ModelError, match="down"):
        ask(keep_replies(model, cache), ASKED)

    assert ask(keep_replies(model, cache), ASKED)[0].text == "yes"


def test_a_reply_that_has_no_json_is_handed_on(cache: ReplyCache):
    """What cannot be written is not kept; whoever asked has it."""
    model = Plain(Reply(text="half a pair: \ud800"))

    assert [answer.text for answer in ask(keep_replies(model, cache), ASKED, ASKED)] == ["half a pair: \ud800"] * 2
    assert len(model.requests) == 2


# ---------------------------------------------------------------- several at once


class Slow:
    """A model that answers when it is told to."""

    name = "slow"

    def __init__(self) -> None:
        self.asked = 0
        self.answers = asyncio.Event()
        self.error: Exception | None = None

    async def complete(self, request: Request, /) -> Reply:
        self.asked += 1
        await self.answers.wait()
        if self.error is not None:
            raise self.error
        return Reply(text=f"number {self.asked}", finish_reason="length")


async def start(model: Model, times: int) -> list[asyncio.Task[Reply]]:
    tasks = [asyncio.create_task(model.complete(ASKED)) for _ in range(times)]
    await asyncio.sleep(0)
    return tasks


def test_equal_requests_at_once_are_one_request(cache: ReplyCache):
    """Who comes while a request is under way waits for its reply, through another object of the same model as well."""

    async def run():
        model = Slow()
        tasks = [*await start(keep_replies(model, cache), 3), *await start(keep_replies(model, cache), 2)]
        model.answers.set()
        return [await task for task in tasks], model.asked

    replies, asked = asyncio.run(run())
    assert asked == 1
    assert {reply.text for reply in replies} == {"number 1"}
    assert [reply.usage and reply.usage.calls for reply in replies] == [None, 0, 0, 0, 0]


def test_a_leader_that_is_cancelled_fails_nobody(cache: ReplyCache):
    """The next of those who wait asks in its place, and so on; each cancelled task is cancelled."""

    async def run():
        model = Slow()
        tasks = await start(keep_replies(model, cache), 4)
        for task in tasks[:2]:
            task.cancel()
            await asyncio.wait([task])
            await asyncio.sleep(0)
        model.answers.set()
        replies = [await task for task in tasks[2:]]
        return [task.cancelled() for task in tasks], replies, model.asked

    cancelled, replies, asked = asyncio.run(run())
    assert cancelled == [True, True, False, False]
    assert {reply.text for reply in replies} == {"number 3"}
    assert asked == 3


def test_a_follower_that_is_cancelled_stops_nobody(cache: ReplyCache):
    """The request goes on for the others."""

    async def run():
        model = Slow()
        tasks = await start(keep_replies(model, cache), 3)
        tasks[1].cancel()
        await asyncio.wait([tasks[1]])
        model.answers.set()
        return [(await tasks[at]).text for at in (0, 2)], model.asked

    assert asyncio.run(run()) == (["number 1", "number 1"], 1)


def test_an_error_is_everybodys_who_waited(cache: ReplyCache):
    """A provider that is down is not asked once more by each of them; the next who comes asks."""

    async def run():
        model = Slow()
        model.error = ModelError("down", status=503)
        tasks = await start(keep_replies(model, cache), 3)
        model.answers.set()
        await asyncio.wait(tasks)
        before = model.asked
        model.error = None
        return (
            [str(task.exception()) for task in tasks],
            before,
            (await keep_replies(model, cache).complete(ASKED)).text,
        )

    assert asyncio.run(run()) == (["down"] * 3, 1, "number 2")


def test_threads_with_loops_of_their_own_share_a_cache(cache: ReplyCache):
    """Each thread asks and finds; nothing is lost."""
    model = Plain(lambda request: f"answer to {request.user}")

    def work() -> None:
        replies = ask(keep_replies(model, cache), *[replace(ASKED, user=f"{number}") for number in range(200)])
        assert [reply.text for reply in replies] == [f"answer to {number}" for number in range(200)]

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(list(cache.entries())) == 200
    assert 200 <= len(model.requests) <= 800


def start_process(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    return start_module("cache", str(path), name, str(count))


@pytest.mark.integration
def test_processes_share_a_cache(tmp_path: Path):
    """Four begin the file at once and write it together; a fifth asks nothing any more."""
    path = tmp_path / "replies.sqlite"
    processes = [start_process(path, f"name {number % 2}", 50) for number in range(4)]
    asked = [int(process.communicate(timeout=HANG)[0]) for process in processes]

    assert [process.returncode for process in processes] == [0] * 4
    assert 100 <= sum(asked) <= 200
    later = start_process(path, "name 1", 50)
    assert later.communicate(timeout=HANG)[0] == "0\n"


@pytest.mark.integration
def test_a_killed_process_leaves_a_cache_that_works(tmp_path: Path):
    """Killed with -9 while it writes: what was written is found, and the next goes on."""
    path = tmp_path / "replies.sqlite"
    process = start_process(path, "killed", 0)
    assert process.stdout is not None
    for _ in range(40):
        process.stdout.readline()
    process.kill()
    process.communicate(timeout=HANG)

    later = start_process(path, "killed", 40)
    assert later.communicate(timeout=HANG)[0] == "0\n"
