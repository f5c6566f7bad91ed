"""Everything that can go wrong with a reply, through a judge and through every strategy: nothing passes by accident."""

from __future__ import annotations

import asyncio
import json
import math

import pytest

from adjudge import Judge, JudgeChain, ModelError, Rubric
from adjudge.models import Reply
from adjudge.testing import FAULTS, FaultyModel, ScriptedModel
from kit.judges import NO, YES, Plain, names, scores, summarise
from kit.loops import run_virtual
from kit.patience import HANG
from kit.wire import break_off, completion, error, reset, serve

pytestmark = [pytest.mark.timed, pytest.mark.matrix]

REASONS = {
    "hang": "timeout",
    "error": "error",
    "http_400": "error",
    "http_500": "error",
    "reset": "error",
    "refusal": "refused",
    "empty": "unparseable",
    "truncated": "truncated",
    "cut_off": "unparseable",
    "two_objects": "unparseable",
    "duplicate_key": "unparseable",
    "nan": "off_scale",
    "off_scale": "off_scale",
    "negative": "off_scale",
    "boolean_score": "off_scale",
    "missing_criterion": "missing_criterion",
    "repeated_criterion": "missing_criterion",
    "invented_criterion": "missing_criterion",
    "contradiction": "contradiction",
    "wrong_token": "unparseable",
    "prose": "unparseable",
    "text_after": "unparseable",
    "second_verdict": "unparseable",
}
REASKED = ("unparseable", "missing_criterion", "off_scale")
SILENT = ("hang", "error", "http_400", "http_500", "reset")
"""Faults after which there is no reply."""

GOOD = scores(1.0)
EACH = pytest.mark.parametrize("fault", FAULTS)


def broken(fault, times=9, reply=GOOD, **options):
    model = ScriptedModel(reply)
    return Judge(FaultyModel(model, [fault] * times), **{"timeout": 5.0, **options}), model


def evaluate(judge, **how):
    return run_virtual(judge.evaluate("The content.", criteria="Good.", **how))


def test_every_fault_has_its_reason():
    """The table above leaves none out."""
    assert tuple(REASONS) == FAULTS


# ---------------------------------------------------------------- one judge


@EACH
@pytest.mark.parametrize("reask", [0, 1, 2])
def test_a_judge_is_undecided_and_says_why(fault, reask):
    """With the right reason, no score, and as many requests as a re-ask allows for it."""
    judge, model = broken(fault, reask=reask)
    result = evaluate(judge)

    assert summarise(result) == {"outcome": "undecided", "because": REASONS[fault], "by": "judge"}
    assert (result.score, result.criteria, result.passed) == (None, (), False)
    attempts = 1 + reask if REASONS[fault] in REASKED else 1
    assert result.attempts == attempts
    assert len(model.requests) == (0 if fault in SILENT else attempts)
    assert result.detail


@EACH
def test_what_was_received_is_kept(fault):
    """Every reply, as it came: the last in raw_response, those before it in earlier_responses."""
    judge, _ = broken(fault)
    result = evaluate(judge)

    if fault in SILENT:
        assert (result.raw_response, result.earlier_responses) == (None, ())
    else:
        assert result.raw_response is not None
        assert len(result.earlier_responses) == result.attempts - 1
        assert result.finish_reason == {"refusal": "refusal", "truncated": "length"}.get(fault, "stop")


@EACH
def test_one_unreadable_reply_is_asked_again(fault):
    """Only for a reply that could not be read; a failure, refusal, cut or contradiction stands."""
    judge, _ = broken(fault, times=1)
    result = evaluate(judge)

    if REASONS[fault] in REASKED:
        assert (result.outcome, result.attempts, len(result.earlier_responses)) == ("passed", 2, 1)
    else:
        assert (result.undecided_because, result.attempts) == (REASONS[fault], 1)


def test_a_second_attempt_repeats_the_prompt_with_a_reminder():
    """Without the unreadable reply, which may quote the attacker; same system part, same token."""
    model = Plain("EVIL QUOTE", lambda request: json.dumps({"token": request.token, **scores(1.0, names=["good"])}))
    result = evaluate(Judge(model))
    first, second = model.requests

    assert result.passed
    assert (second.system, second.token, second.attempt) == (first.system, first.token, 2)
    assert second.user.startswith(first.user)
    assert "EVIL" not in second.user


def test_the_second_attempt_shares_the_limit():
    """Both replies together may take as long as one."""

    class Slow(ScriptedModel):
        async def complete(self, request, /):
            await asyncio.sleep(3.0)
            return await super().complete(request)

    result = evaluate(Judge(Slow(["nonsense", GOOD]), timeout=5.0))

    assert (result.undecided_because, result.attempts) == ("timeout", 2)
    assert result.raw_response == "nonsense"


def test_an_error_in_the_second_attempt_keeps_the_first_reply():
    """And is the reason."""
    result = evaluate(Judge(Plain("nonsense", ModelError("gone", status=500))))

    assert (result.undecided_because, result.raw_response, result.detail) == ("error", "nonsense", "gone")


@pytest.mark.parametrize(
    ("reply", "because"),
    [
        (Reply(text=None), "unparseable"),
        (Reply(text="  \n"), "unparseable"),
        (Reply(text=YES, finish_reason="refusal"), "refused"),
        (Reply(text=YES, finish_reason="length"), "truncated"),
        (Reply(text=YES, finish_reason="other"), None),
        ("I am sorry, I cannot help with that.", "unparseable"),
        ('{"safe": true', "unparseable"),
        ('{"safe": "true"}', "unparseable"),
        ('{"safe": 1}', "unparseable"),
        ('{"safe": null, "passed": true}', "unparseable"),
        ('{"safe": true, "passed": false}', "contradiction"),
        ('{"safe": true, "safe": false}', "unparseable"),
        ('{"safe": true, "score": NaN}', "unparseable"),
        ("ERROR: model refused", "unparseable"),
        ("null", "unparseable"),
        (asyncio.CancelledError, None),
        (KeyError("x"), "error"),
        (TimeoutError("theirs"), "error"),
        (ConnectionResetError("reset"), "error"),
        (ModelError("no such model", status=404), "error"),
    ],
)
def test_a_ready_made_prompt_fails_closed_too(reply, because):
    """The same for yes or no; only a cancellation passes through."""

    class Cancelling:
        name = "cancelling"

        async def complete(self, request, /):
            raise asyncio.CancelledError

    judge = Judge(Cancelling() if reply is asyncio.CancelledError else Plain(reply))
    if reply is asyncio.CancelledError:
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(judge.ask("Safe?"))
        return
    result = run_virtual(judge.ask("Safe?"))
    assert result.undecided_because == because
    assert result.passed is (because is None)


@pytest.mark.parametrize("answer", [None, "text", {"text": YES}, True])
def test_a_model_that_returns_no_reply_is_an_error(answer):
    """Whatever it meant."""

    class Odd:
        name = "odd"

        async def complete(self, request, /):
            return answer

    result = run_virtual(Judge(Odd()).ask("Safe?"))

    assert result.undecided_because == "error"
    assert names(result.detail, "'odd'", type(answer).__name__, "Reply")


@pytest.mark.parametrize(
    "score", [95, -3, True, 1.01, math.nan, math.inf, -math.inf, 10**400, "0.9", None, [1], {"value": 1}]
)
@pytest.mark.parametrize("threshold", [0.0, 1.0])
def test_no_impossible_score_is_a_pass(score, threshold):
    """Nor a failure: nothing is clamped, converted or guessed, whatever the threshold."""
    result = evaluate(Judge(ScriptedModel(scores(score))), threshold=threshold)

    assert result.outcome == "undecided"
    assert result.undecided_because in ("off_scale", "unparseable")


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault != "hang"])
def test_a_rubric_of_several_criteria_fails_closed(fault):
    """One broken entry spoils the whole: there is no result for the others alone."""
    rubric = Rubric(name="r", criteria=[{"name": name, "description": "d"} for name in "abc"])
    judge, _ = broken(fault, reply=scores(1.0, 1.0, 1.0, names="abc"))
    result = run_virtual(judge.evaluate("x", rubric))

    assert (result.undecided_because, result.criteria) == (REASONS[fault], ())


async def hang(request):
    await asyncio.sleep(30)


NO_RETRY = {"x-should-retry": "false"}


@pytest.mark.parametrize(
    ("step", "because"),
    [
        ((400, {}, error("no such parameter")), ("error",)),
        ((401, {}, error("wrong key")), ("error",)),
        ((404, {}, error("no such model")), ("error",)),
        ((429, NO_RETRY, error("slow down")), ("error",)),
        ((500, NO_RETRY, error(YES)), ("error",)),
        ((503, NO_RETRY, YES.encode()), ("error",)),
        ((200, {}, b"<html>busy</html>"), ("error",)),
        ((200, {}, {"choices": []}), ("error", "unparseable")),
        ((200, {}, completion("I would say yes.")), ("unparseable",)),
        (reset, ("error", "timeout")),
        (break_off, ("error", "timeout")),
        (hang, ("timeout",)),
    ],
)
def test_a_provider_that_fails_decides_nothing(step, because):
    """Over a real connection: 4xx, 5xx, nonsense, a reset, half an answer, silence."""
    limit = 0.5 if "timeout" in because else HANG

    async def main():
        async with serve(step) as server, Judge(f"{server.url}#m", timeout=limit) as judge:
            return await judge.ask("Safe?"), await JudgeChain([judge], timeout=limit).ask("Safe?")

    for result in asyncio.run(main()):
        assert result.outcome == "undecided"
        assert result.undecided_because in because


# ---------------------------------------------------------------- every strategy


STRATEGIES = {
    "fallback": {},
    "consensus": {},
    "majority": {},
    "quorum": {"quorum": 2},
    "hedged": {"hedge_after": 1.0},
    "cascade": {"escalate_below": 0.5},
}
NEXT = ("fallback", "hedged", "cascade")
ALL = pytest.mark.parametrize("strategy", STRATEGIES)


def chain(strategy, *seats, **more):
    return JudgeChain(seats, strategy=strategy, **STRATEGIES[strategy], **{"timeout": 20.0, **more})


@EACH
@ALL
def test_a_chain_of_broken_judges_is_undecided(fault, strategy):
    """By policy, with the seats' reason, under every strategy."""
    result = evaluate(chain(strategy, *(broken(fault)[0] for _ in range(3))))

    assert summarise(result) == {"outcome": "undecided", "because": REASONS[fault], "by": "policy"}
    assert (result.passed, result.score, result.fallback_triggered) == (False, None, True)


@EACH
@ALL
def test_a_broken_judge_and_one_that_failed_never_pass(fault, strategy):
    """In either order."""
    for seats in (
        (broken(fault)[0], Judge(ScriptedModel(scores(0.0)))),
        (ScriptedModel(scores(0.0)), broken(fault)[0]),
    ):
        assert not evaluate(chain(strategy, *seats, fail_open=True)).passed


@EACH
@ALL
@pytest.mark.parametrize("first", [True, False])
def test_a_broken_judge_and_one_that_passed(fault, strategy, first):
    """Two of two must agree where judges are counted; where the next is asked, a real pass of the other is a pass."""
    seats = [broken(fault)[0], Judge(ScriptedModel(GOOD))]
    result = evaluate(chain(strategy, *(seats if first else reversed(seats))))

    if strategy not in NEXT:
        assert result.outcome == "undecided"
    elif result.passed:
        assert [item.outcome for item in result.results if item.outcome != "undecided"] == ["passed"]
        assert result.decided_by == "judge"
    # A contradiction ends the sequence; an unsure first seat of a cascade leaves the last word to the second.
    ends = (first and REASONS[fault] == "contradiction") or (not first and strategy == "cascade")
    assert result.passed is (strategy in NEXT and not ends)


@EACH
@ALL
def test_failing_open_is_asked_for_by_name(fault, strategy):
    """Then, and only then, silence is a pass, and the result says that a policy decided; a contradiction never is."""
    result = evaluate(chain(strategy, *(broken(fault)[0] for _ in range(2)), fail_open=True))

    if REASONS[fault] == "contradiction":
        assert summarise(result) == {"outcome": "undecided", "because": "contradiction", "by": "policy"}
    else:
        assert summarise(result) == {"outcome": "passed", "because": None, "by": "policy"}
        assert result.detail.startswith("nobody decided and fail_open let it pass (")
        assert all(item.outcome == "undecided" for item in result.results)


@ALL
def test_seats_keep_their_replies_and_attempts(strategy):
    """What every judge of a chain said is in the record."""
    result = evaluate(chain(strategy, broken("prose")[0], broken("off_scale")[0]))

    assert [item.attempts for item in result.results] == [2, 2]
    assert result.attempts == 4
    assert all(item.raw_response and item.earlier_responses for item in result.results)


@ALL
def test_ready_made_prompts_fail_closed_in_every_chain(strategy):
    """Text that looks like a status is text."""
    seats = [Plain("ERROR: unavailable", name="a"), Plain("safe: true", name="b")]

    assert run_virtual(chain(strategy, *seats).ask("Safe?")).undecided_because == "unparseable"
    assert not run_virtual(chain(strategy, Plain(NO), Plain(NO)).ask("Safe?")).passed
