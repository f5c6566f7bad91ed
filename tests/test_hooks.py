"""Hooks, logs and redaction of judges and chains: they see everything, and change nothing."""

from __future__ import annotations

import asyncio
import logging
import threading
from pathlib import Path
from typing import Any

import pytest

from adjudge import Judge, JudgeChain, JudgeChainResult, JudgeResult, JudgmentFailed, Ledger, UsageError
from adjudge.testing import ScriptedModel
from kit.judges import YES, Plain, Seat, complaint, failed, names, passed, scores
from kit.loops import run_virtual

GOOD, BAD = scores(0.9), scores(0.1)
SECRET = "Ada Lovelace"
KEY = "sk-0123456789abcdef"
BY_RULE = {"rules": [{"name": "length", "max": 1}]}


def judge(script: Any = GOOD, *, name: str = "a", delay: float = 0.0, **options: Any) -> Judge:
    return Judge(ScriptedModel(script, name=name, delay=delay), **options)


def evaluate(asked: Judge | JudgeChain, content: object = "Hello.", **options: Any) -> JudgeResult:
    """What is said of some content, on a virtual clock."""
    options.setdefault("criteria", "Good.")
    return run_virtual(asked.evaluate(content, **options))


async def say_later(heard: list[JudgeResult], result: JudgeResult) -> None:
    await asyncio.sleep(3)
    heard.append(result)


def both(heard: list[JudgeResult]) -> list[Any]:
    """A sync and an async hook that add to a list."""
    return [heard.append, lambda result: say_later(heard, result)]


# ---------------------------------------------------------------- who is told what


@pytest.mark.parametrize("kind", [0, 1], ids=["sync", "async"])
@pytest.mark.parametrize("script", [GOOD, BAD, "no object"], ids=["passed", "failed", "undecided"])
def test_a_judge_tells_of_every_result(kind: int, script: Any):
    """Once each, whatever the outcome, and before the caller has it."""
    heard: list[JudgeResult] = []
    asked = judge(script, on_result=both(heard)[kind])

    assert evaluate(asked) is heard[0]
    assert len(heard) == 1


def test_every_door_tells():
    """``ask``, ``evaluate``, many of them, and the doors without a loop; the hook runs on the loop's thread."""
    heard: list[JudgeResult] = []
    threads: list[threading.Thread] = []

    def hear(result: JudgeResult) -> None:
        heard.append(result)
        threads.append(threading.current_thread())

    def asked() -> Judge:
        return Judge(Plain(YES), token=False, on_result=hear)

    async def many() -> list[JudgeResult]:
        return [item async for item in judge(on_result=hear).evaluate_many(["x", "y", "z"], criteria="Good.")]

    results = [run_virtual(asked().ask("Is it?")), *run_virtual(many())]
    assert threads == [threading.current_thread()] * 4
    results += [asked().ask_sync("Is it?"), judge(on_result=hear).evaluate_sync("x", criteria="Good.")]

    assert [item.id for item in heard] == [item.id for item in results]
    assert {thread.name for thread in threads[4:]} == {"adjudge-sync"}


def test_what_rules_decide_is_told_too():
    """Nobody was asked, and it is a result like any other; of a chain, its hook alone hears of it."""
    heard: list[JudgeResult] = []
    alone = evaluate(judge(on_result=heard.append), **BY_RULE)
    chain = evaluate(JudgeChain([judge(on_result=heard.append)], on_result=heard.append), **BY_RULE)

    assert heard == [alone, chain]
    assert alone.decided_by == "rule"


def test_a_hook_hears_before_a_failure_is_raised():
    """``throw_on_fail`` is about the caller and not about who keeps records."""
    heard: list[JudgeResult] = []
    with pytest.raises(JudgmentFailed) as raised:
        evaluate(judge(BAD, on_result=heard.append), throw_on_fail=True)

    assert heard == [raised.value.result]


def test_wrong_usage_is_no_result():
    """Nothing was asked, so there is nothing to tell of."""
    heard: list[JudgeResult] = []
    with pytest.raises(UsageError):
        evaluate(judge(on_result=heard.append), criteria=None)

    assert heard == []


def test_a_chain_tells_its_seats_and_then_itself():
    """At every depth: each hook hears what the chain's result holds of its own judge, once."""
    heard: list[tuple[str, JudgeResult]] = []

    def hear(name: str) -> Any:
        return lambda result: heard.append((name, result))

    inner = JudgeChain([judge(BAD, on_result=hear("b"))], name="inner", on_result=hear("inner"))
    chain = JudgeChain(
        [judge("no object", on_result=hear("a")), inner, judge(on_result=hear("never asked"))],
        on_result=hear("chain"),
        fail_open=False,
    )
    result = evaluate(chain)

    assert isinstance(result, JudgeChainResult)
    first, second = result.results
    assert isinstance(second, JudgeChainResult)
    assert heard == [("a", first), ("b", second.results[0]), ("inner", second), ("chain", result)]


def test_seats_that_were_cut_short_are_told_as_the_result_shows_them():
    """One that was late, and one that was cancelled because the others had settled it."""
    heard: list[JudgeResult] = []
    late, slow = judge(delay=9, on_result=heard.append), judge(delay=4, on_result=heard.append)
    chain = JudgeChain([late, slow, failed(delay=6)], strategy="quorum", quorum=3, timeout=5.0)
    result = evaluate(chain)

    assert isinstance(result, JudgeChainResult)
    assert heard == list(result.results[:2])
    assert heard[0].undecided_because == "timeout"


def test_a_seat_of_another_class_calls_its_hooks_itself():
    """A judge that asks in its own way is asked in that way, and is not told twice."""
    heard: list[JudgeResult] = []

    class Louder(Judge):
        async def ask(self, question: Any, /) -> JudgeResult:
            return await Judge.ask(self, question)

    evaluate(JudgeChain([Louder(ScriptedModel(GOOD), on_result=heard.append)]))

    assert len(heard) == 1


# ---------------------------------------------------------------- nothing changes


def broken(value: object) -> None:
    raise ValueError(f"{SECRET} {KEY}")


async def cancels_itself(value: object) -> None:
    raise asyncio.CancelledError


def alone(one: Judge, hook: Any) -> Judge:
    return one


def in_a_chain(one: Judge, hook: Any) -> JudgeChain:
    return JudgeChain([one], on_result=hook)


@pytest.mark.parametrize("hook", [broken, cancels_itself])
@pytest.mark.parametrize("around", [alone, in_a_chain])
def test_what_a_hook_raises_is_logged_and_not_thrown(caplog: pytest.LogCaptureFixture, hook: Any, around: Any):
    """Its type at ERROR; its text, which may quote anything, at DEBUG."""
    with caplog.at_level(logging.DEBUG, logger="adjudge"):
        assert evaluate(around(judge(on_result=hook), hook)).passed
    loud = [record.getMessage() for record in caplog.records if record.levelno > logging.DEBUG]

    assert all(text.startswith("the on_result hook raised ") for text in loud)
    assert len(loud) in (1, 2)
    assert SECRET not in "".join(loud)


@pytest.mark.parametrize("strategy", [{"strategy": "fallback"}, {"strategy": "consensus"}, {"strategy": "majority"}])
def test_a_slow_hook_makes_nobody_late(strategy: dict[str, Any]):
    """A seat's limit, the chain's deadline and a judge's timeout are over when hooks are called."""

    async def dawdle(_: object) -> None:
        await asyncio.sleep(1_000)

    seats = [judge(BAD, delay=1, name="a", on_result=dawdle), judge(delay=2, name="b", on_result=dawdle)]
    chain = JudgeChain(seats, timeout=3.0, deadline=4.0, on_result=dawdle, **strategy)
    plain = JudgeChain([judge(BAD, delay=1, name="a"), judge(delay=2, name="b")], timeout=3.0, deadline=4.0, **strategy)
    with_hook, without_hook = evaluate(chain), evaluate(plain)

    assert (with_hook.outcome, with_hook.undecided_because) == (without_hook.outcome, without_hook.undecided_because)
    assert with_hook.duration_ms < 5_000
    assert evaluate(judge(delay=1, timeout=2.0, on_result=dawdle)).passed


def test_what_a_hook_returns_is_ignored():
    """It is told, and not asked."""
    assert evaluate(judge(BAD, on_result=lambda _: JudgeResult(outcome="passed", judge="hook"))).outcome == "failed"


@pytest.mark.parametrize("around", [alone, in_a_chain])
def test_a_cancellation_ends_a_hook(around: Any):
    """Whoever gives up is not held by one; nobody is told any more, and nothing runs on."""
    ended: list[str] = []

    async def dawdle(_: object) -> None:
        try:
            await asyncio.sleep(1_000)
        finally:
            ended.append("hook")

    async def leave() -> None:
        async with asyncio.timeout(1):
            await around(judge(on_result=dawdle), lambda _: ended.append("told")).evaluate("x", criteria="Good.")

    with pytest.raises(TimeoutError):
        run_virtual(leave())
    assert ended == ["hook"]


def test_a_judgement_that_was_cancelled_has_no_result_to_tell():
    """The hook is not called, and the cancellation goes on."""
    heard: list[JudgeResult] = []
    seat = Seat(delay=100)

    async def leave() -> None:
        async with asyncio.timeout(1):
            await JudgeChain([seat], timeout=None, on_result=heard.append).evaluate("x", criteria="Good.")

    with pytest.raises(TimeoutError):
        run_virtual(leave())
    assert (heard, seat.cancelled) == ([], 1)


def test_a_hook_that_is_no_function_is_wrong_usage():
    """Said when it is given, and not with the first result."""
    assert names(complaint(judge, on_result="log.txt"), "judge 'a'", "on_result", "function", "str")
    assert names(complaint(judge, redact="[name]"), "judge 'a'", "redact", "function", "str")
    assert names(complaint(JudgeChain, [judge()], on_result="log.txt"), "chain", "on_result", "function", "str")


# ---------------------------------------------------------------- a ledger as a hook


def test_a_ledger_records_what_a_judge_and_a_chain_say(tmp_path: Path):
    """``on_result=ledger.append`` is all there is to it; from a loop and through the sync door alike."""
    url = f"sqlite:///{tmp_path / 'adjudge.db'}"

    async def work() -> tuple[list[str], list[Any]]:
        async with Ledger(url) as ledger:
            alone = judge(on_result=ledger.append)
            chain = JudgeChain([judge(BAD, name="b")], on_result=ledger.append)
            result = [await alone.evaluate("x", criteria="Good."), await chain.evaluate("x", criteria="Good.")]
            result.append(alone.evaluate_sync("y", criteria="Good."))
            entries = [entry async for entry in ledger.query(kind="result")]
            assert await ledger.verify()
        return [item.id for item in result], [entry.payload for entry in entries]

    ids, payloads = asyncio.run(work())

    assert [item["id"] for item in payloads] == ids
    assert [item["schema"] for item in payloads] == ["adjudge/result/1", "adjudge/chain-result/1", "adjudge/result/1"]


def test_a_ledger_that_fails_is_logged_and_the_result_is_there(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    """Who must not go on unrecorded takes a gate, or appends by himself."""
    ledger = Ledger(f"sqlite:///{tmp_path / 'missing' / 'adjudge.db'}")
    with caplog.at_level(logging.WARNING, logger="adjudge"):
        result = asyncio.run(judge(on_result=ledger.append).evaluate("x", criteria="Good."))

    assert result.passed
    (logged,) = caplog.messages
    assert names(logged, "on_result", "UsageError", "DEBUG")


# ---------------------------------------------------------------- logs


def test_outcomes_are_logged_and_content_only_at_debug(caplog: pytest.LogCaptureFixture):
    """Who said what, how fast and under which id: at DEBUG, and at INFO where nobody decided."""
    asked = [
        judge(scores(0.9, reasoning=SECRET), name="good"),
        judge(f"no object, {SECRET}", name="odd"),
        Judge(Plain(OSError(SECRET)), name="down"),
        JudgeChain([judge(f"{{{SECRET}", name="seat")], name="panel"),
    ]
    with caplog.at_level(logging.DEBUG, logger="adjudge"):
        results = [evaluate(item, SECRET) for item in asked]
    info = [record.getMessage() for record in caplog.records if record.levelno == logging.INFO]

    assert [text.split(" in ")[0] for text in info] == [
        "judge 'odd': undecided: unparseable",
        "judge 'down': undecided: error",
        "judge 'seat': undecided: unparseable",
        "judge 'panel': undecided: unparseable",
    ]
    assert all(result.id in caplog.text for result in results)
    assert SECRET not in "".join(info)
    assert f"result {results[2].id}: undecided: error; OSError: {SECRET}" in caplog.messages


def test_nothing_is_written_to_a_log_that_nobody_reads(caplog: pytest.LogCaptureFixture):
    """With the level that is usual, a judgement logs nothing at all, decided or not."""
    with caplog.at_level(logging.WARNING, logger="adjudge"):
        evaluate(judge())
        evaluate(judge("no object"))

    assert caplog.records == []


# ---------------------------------------------------------------- redaction


def hide(text: str) -> str:
    return text.replace(SECRET, "[name]")


async def hide_later(text: str) -> str:
    return hide(text)


@pytest.mark.parametrize("redact", [hide, hide_later])
def test_nothing_is_sent_that_a_judge_redacts(redact: Any):
    """Content, task, context, reference, and what a warning quotes; the digests are those of what was handed in."""
    model = ScriptedModel(GOOD)
    warning = {"regex": SECRET, "absent": True, "severity": "warning"}
    options = {name: f"{SECRET} {name}" for name in ("task", "context", "reference")}
    content = {"from": SECRET}
    result = evaluate(Judge(model, redact=redact), content, rules=[warning], **options)
    plain = evaluate(judge(), content, rules=[warning], **options)
    (request,) = model.requests

    assert result.passed
    assert SECRET not in request.user + request.system
    assert request.user.count("[name]") == 6  # a finding quotes the pattern and what it found
    assert (result.subject, result.question) == (plain.subject, plain.question)


def test_a_seat_redacts_whatever_chain_it_is_in():
    """The chain hands on the content as it is, and the judge that redacts sends none of it; nor in a prompt."""
    model = ScriptedModel([GOOD, '{"safe": true}'])
    seat = Judge(model, redact=hide)

    assert evaluate(JudgeChain([JudgeChain([seat])]), SECRET).passed
    assert run_virtual(seat.ask(f"Is {SECRET} safe?")).passed
    assert [SECRET in request.user for request in model.requests] == [False, False]


def test_a_quotation_is_looked_for_in_what_was_sent():
    """The judge can quote nothing else."""
    rubric = {"name": "R", "criteria": [{"name": "c", "description": "d", "quote": True}]}
    reply = {"criteria": [{"name": "c", "reasoning": "", "quote": "[name] wrote", "score": 0.9}]}

    assert evaluate(judge(reply, redact=hide), f"{SECRET} wrote", rubric=rubric, criteria=None).passed


@pytest.mark.parametrize(
    "redact",
    [lambda text: None, lambda text: b"", broken, cancels_itself, lambda text: "x" * 3_000_000, lambda _: "\0"],
    ids=["forgets", "bytes", "raises", "cancels", "too long", "binary"],
)
def test_a_redaction_that_fails_sends_nothing(redact: Any):
    """The result is undecided: error, and quotes nothing of what was to be hidden."""
    model = ScriptedModel(GOOD)
    result = evaluate(Judge(model, redact=redact), SECRET)

    assert (result.outcome, result.undecided_because, model.requests) == ("undecided", "error", [])
    assert SECRET not in result.detail
    assert evaluate(JudgeChain([Judge(model, redact=redact), passed()]), SECRET).passed


def test_a_redaction_counts_to_the_timeout():
    """It is part of the judgement: one that never ends is a judge that never answers."""

    async def dawdle(text: str) -> str:
        await asyncio.sleep(1_000)
        return text

    assert evaluate(judge(redact=dawdle, timeout=5.0)).undecided_because == "timeout"
