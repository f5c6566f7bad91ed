"""A judge that answers before the people: when its pass is an approval, and when they are asked all the same."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from adjudge import Approvals, Judge, JudgeChain, JudgeChainResult, JudgeResult
from adjudge.guards import Approval
from adjudge.models import Reply, Request, TokenLogprob
from adjudge.testing import ScriptedModel
from kit.approvals import WHO, make_result, tell, try_to, use
from kit.judges import Seat, failed, names, passed, scores, silent
from kit.ledgers import SECRET, find

pytestmark = pytest.mark.timed


def ask_first(url: str, judge: Any, *, result: Any = None, **changes: Any) -> Approval:
    """A new request whose content the judge is asked about."""

    async def go(approvals: Approvals) -> Approval:
        about = make_result() if result is None else result
        options = WHO | {"first": judge, "content": "The content."} | changes
        return await approvals.get(await approvals.request(about, "Publish it?", **options))

    return use(url, go)


@pytest.mark.parametrize("confidence", [0.7, 0.95, 1.0])
def test_a_sure_pass_approves(url: str, confidence: float):
    """In the judge's name, for everybody, and nobody overruled anybody: it is on record as the judge's."""
    approval = ask_first(url, passed(name="second", confidence=confidence), required=2)

    assert (approval.status, approval.decided_by, approval.closed_by, approval.votes) == (
        "approved",
        "judge",
        ("second",),
        (),
    )
    assert names(approval.closed_because, "'second'", "passed", f"{confidence:.2f}")
    assert approval.overrides is False
    assert tell(url) == [
        ("requested", None, ["ana", "bob"]),
        ("voted", True, "second"),
        ("closed", "approved", "judge"),
    ]


class Odd:
    """A judge that does whatever it is told."""

    name = "odd"

    def __init__(self, does: Any) -> None:
        self.does = does

    async def ask(self, question: Any, /) -> Any:
        return self.does()


def raise_error() -> None:
    raise RuntimeError(SECRET)


def cancel() -> None:
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("judge", "message"),
    [
        (passed(), "'seat' passed … unknown confidence … 0.7 is needed"),
        (passed(confidence=0.69), "'seat' passed … 0.69 … 0.7 is needed"),
        (passed(confidence=float("nan")), "unavailable … error … 'seat'"),
        (passed(confidence=7), "unavailable … error … 'seat'"),
        (passed(confidence=1.0, decided_by="policy"), "'seat' passed … by policy … no judgement"),
        (failed(confidence=1.0), "'seat' did not pass … failed"),
        (silent("split", confidence=1.0), "'seat' did not pass … undecided (split)"),
        (silent("tampering"), "'seat' did not pass … undecided (tampering)"),
        (silent("error"), "unavailable … error … 'seat'"),
        (silent("timeout"), "unavailable … timeout … 'seat'"),
        (Odd(raise_error), "unavailable … error … 'odd'"),
        (Odd(cancel), "unavailable … error … 'odd'"),
        (Odd(lambda: True), "unavailable … error … 'odd'"),
    ],
    ids=range(13),
)
def test_anything_else_leaves_it_to_the_people(url: str, judge: Any, message: str):
    """A judge never denies. What it said is on record and does not count; what it raised is not repeated."""
    approval = ask_first(url, judge)

    assert (approval.status, approval.decided_by) == ("open", None)
    assert names(approval.first_said, *message.split(" … "))
    assert approval.first is not None
    assert approval.first_said in approval.explain()
    assert tell(url) == [("requested", None, ["ana", "bob"]), ("voted", False, judge.name)]
    assert SECRET not in str([entry.payload for entry in find(url)])


@pytest.mark.parametrize("because", ["tampering", "contradiction"])
@pytest.mark.parametrize("deep", [False, True])
def test_no_judge_is_asked_after_an_attack(url: str, because: Any, deep: bool):
    """Whoever wrote for one judge may have written for the next; a seat of a chain that saw it is enough."""
    result = make_result("undecided", undecided_because=because)
    if deep:
        chain = JudgeChain([silent(because), passed()], strategy="majority", timeout=None)
        result = chain.evaluate_sync("x", criteria="Is good.")
    judge = passed(confidence=1.0)
    approval = ask_first(url, judge, result=result)

    assert judge.asked == []
    assert (approval.status, approval.first) == ("open", None)
    assert names(approval.first_said, "no judge was asked", "tampering")


def test_people_decide_after_the_judge(url: str):
    """Its answer is no vote of theirs, and the override is over the first result."""

    async def go(approvals: Approvals) -> Approval:
        options = WHO | {"first": failed(), "content": "x", "required": 2}
        ident = await approvals.request(make_result(), "Publish it?", **options)
        assert await try_to(approvals, ident, "seat", True) == "unauthorised"
        await approvals.decide(ident, "ana", True)
        return await approvals.decide(ident, "bob", True)

    approval = use(url, go)

    assert (approval.status, approval.decided_by, approval.overrides) == ("approved", "human", True)


def sure(request: Request) -> Reply:
    """A model that is sure of its score, by its token probabilities."""
    text = f'{{"token": "{request.token}", "criteria": [{{"name": "approval", "score": 1.0}}]}}'
    pieces = [text[: text.index("1.0")], "1.0", text[text.index("1.0") + 3 :]]
    chances = tuple(TokenLogprob(token=piece, logprob=-0.01, top=((piece, -0.01),)) for piece in pieces)
    return Reply(text=text, logprobs=chances)


def test_a_model_is_asked_whether_it_would_approve(url: str):
    """About the content, with what was judged as data, and for its token probabilities."""
    model = ScriptedModel(sure)
    approval = ask_first(url, model, result=make_result(detail="the judge's own words"))
    (request,) = model.requests

    assert request.logprobs
    assert "would approve it without asking anybody" in request.system
    assert "The content." in request.user
    assert all(text in request.user for text in ("Publish it?", "the judge's own words"))
    assert "the judge's own words" not in request.system
    assert approval.decided_by == "judge"
    assert names(approval.first_said, "'scripted' passed", "0.99")


def test_a_judge_goes_by_its_own_rubric(url: str):
    """And a chain of several by the share of seats that agree."""
    model = ScriptedModel(scores(0.9, names=["tone"]))
    rubric = {"name": "Tone", "criteria": [{"name": "tone", "description": "Is friendly."}]}
    ask_first(url, Judge(model, rubric=rubric))
    seats = [passed(name="a"), passed(name="b"), passed(name="c"), failed(name="d")]
    approval = ask_first(url, JudgeChain(seats, strategy="quorum", quorum=3, timeout=None))

    assert "Is friendly." in model.requests[0].system
    assert (approval.decided_by, approval.first.confidence if approval.first else None) == ("judge", 0.75)


def test_rules_alone_approve_nothing(url: str):
    """They are no judgement, and no model is asked for one."""
    rule = {"name": "Short", "criteria": [{"name": "short", "description": "Is short.", "rule": {"length": 400}}]}
    model = ScriptedModel(sure)
    approval = ask_first(url, Judge(model, rubric=rule))

    assert model.requests == []
    assert approval.status == "open"
    assert names(approval.first_said, "'scripted' passed", "by rule", "no judgement")


def test_a_judge_that_answers_late_approves_nothing(url: str):
    """The request has expired by then, and is closed as such."""

    def late() -> JudgeResult:
        import time

        time.sleep(0.05)
        return JudgeResult(outcome="passed", judge="odd", confidence=1.0)

    approval = ask_first(url, Odd(late), expires_in=0.01)

    assert (approval.status, approval.decided_by) == ("denied", "policy")
    assert names(approval.first_said, "'odd' passed", "1.00", "too late")


def test_a_judge_that_hangs_holds_nobody_up(url: str):
    """It has as long as the request, and is cancelled then."""
    judge = passed(confidence=1.0, delay=3600)
    approval = ask_first(url, judge, expires_in=0.05)

    assert judge.cancelled == 1
    assert approval.status == "denied"
    assert names(approval.first_said, "unavailable", "timeout", "'seat'")


def test_what_the_judge_said_is_kept_as_the_ledger_says(url: str):
    """Digests of its words there; the words beside it until they are forgotten."""

    async def go(approvals: Approvals) -> tuple[Any, Any]:
        judge = Seat("passed", confidence=0.9, reasoning=SECRET)
        ident = await approvals.request(make_result(), "Publish it?", **WHO, first=judge, content="x")
        before, after = await approvals.get(ident), await approvals.forget(ident)
        assert (await approvals.wait(ident)).judged == after.first
        return before, after

    before, after = use(url, go)

    assert (before.first.reasoning, after.first.reasoning) == (SECRET, "")
    assert (after.first.confidence, after.decided_by) == (0.9, "judge")
    assert SECRET not in str([entry.payload for entry in find(url)])
    assert [entry.kind for entry in find(url, judge="seat")] == ["approval.voted"]


def test_no_judge_answers_in_peoples_place_over_a_seat_that_was_stopped(url: str):
    """What it would have said is not known: it may have seen tampering, and people then look for themselves."""
    stopped = JudgeResult(outcome="undecided", undecided_because="cancelled", judge="slow")
    seats = (*(JudgeResult(outcome="undecided", undecided_because="error", judge=name) for name in "ab"), stopped)

    def about(strategy: str) -> JudgeResult:
        return JudgeChainResult(
            outcome="undecided", undecided_because="error", judge="panel", strategy=strategy, results=seats
        )

    judge = passed(name="second", confidence=1.0)
    assert ask_first(url, judge, result=about("majority")).status == "open"
    assert judge.asked == []
    assert ask_first(url, judge, result=about("hedged")).status == "approved"
