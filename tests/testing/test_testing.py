"""The doubles that users test their own gates with."""

from __future__ import annotations

import asyncio

import pytest

from adjudge import Judge, JudgeChain, ModelError
from adjudge.models import Reply, Request
from adjudge.testing import FAULTS, FaultyModel, ScriptedModel, break_reply, fill_token
from kit.judges import NO, YES, scores

pytestmark = pytest.mark.timed


PLAIN = Request(system="", user="Safe?")
ASKED = Request(system="s", user="u", token="abcd2345")


def say(model, request=PLAIN) -> Reply:
    return asyncio.run(model.complete(request))


# ---------------------------------------------------------------- scripts


def test_one_line_is_said_every_time():
    """A text or an object."""
    model = ScriptedModel({"safe": True})

    assert [say(model).text for _ in range(3)] == [YES] * 3
    assert model.requests == [PLAIN] * 3


def test_several_lines_are_said_in_order_and_then_it_is_an_error():
    """A test that asks too often finds out."""
    model = ScriptedModel([YES, NO], name="m")

    assert [say(model).text, say(model).text] == [YES, NO]
    with pytest.raises(ModelError, match="the script of 'm' is used up"):
        say(model)


def test_a_line_may_be_a_reply_an_error_or_a_function():
    """Whatever a model can do."""
    model = ScriptedModel(
        [Reply(text="x", finish_reason="length"), RuntimeError("no"), ValueError, lambda r: r.user, None]
    )

    assert say(model).finish_reason == "length"
    with pytest.raises(RuntimeError, match="no"):
        say(model)
    with pytest.raises(ValueError):
        say(model)
    assert say(model).text == "Safe?"
    assert say(model).text is None


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (YES, '{"token": "abcd2345", "safe": true}'),
        ("{}", '{"token": "abcd2345"}'),
        ("no object", "no object"),
        ('{"token": "mine"}', '{"token": "mine"}'),
        ('I say {"x": 1}. {"token": "{{token}}"}', 'I say {"x": 1}. {"token": "abcd2345"}'),
    ],
)
def test_the_token_is_filled_in(line, text):
    """Where the object begins, or wherever ``{{token}}`` stands."""
    assert fill_token(line, "abcd2345") == text
    assert fill_token(line, None) == line
    assert say(ScriptedModel(line), ASKED).text == text


@pytest.mark.parametrize(
    ("entries", "criteria", "because"),
    [
        ([{"score": 0.9}], "Is polite.", None),
        ([{"name": "is-polite", "score": 0.9}], "Is polite.", None),
        ([{"name": "polite", "score": 0.9}], "Is polite.", "missing_criterion"),
        ([{"score": 0.9}], ["Is polite.", "Is short."], "unparseable"),
        ([{"score": 0.9}, {"score": 0.9}], ["Is polite.", "Is short."], "unparseable"),
    ],
)
def test_the_name_of_the_only_criterion_is_filled_in(entries, criteria, because):
    """Where there are several, the script says which: a score is never given to one by its place."""
    judge = Judge(ScriptedModel({"criteria": entries}), reask=0)

    assert judge.evaluate_sync("Thank you.", criteria=criteria).undecided_because == because


def test_another_model_of_the_script_shares_its_requests():
    """So a test can see which model was asked."""
    model = ScriptedModel(YES, name="small")
    other = model.named("big")

    assert (other.name, say(other).model) == ("big", "big")
    assert model.requests == [PLAIN]


def test_a_delay_passes_before_the_reply():
    """In seconds, on the loop's clock."""
    from kit.loops import run_virtual

    async def main():
        await ScriptedModel(YES, delay=3600).complete(PLAIN)
        return asyncio.get_running_loop().time()

    assert run_virtual(main()) == 3600


# ---------------------------------------------------------------- faults


def test_faults_are_applied_in_order_and_then_it_works():
    """``None`` lets one reply through."""
    model = FaultyModel(ScriptedModel(YES), ["error", None, "empty"])

    with pytest.raises(RuntimeError, match="a fault was injected"):
        say(model)
    assert [say(model).text for _ in range(3)] == [YES, "", YES]


@pytest.mark.parametrize(
    "fault", [fault for fault in FAULTS if fault not in ("hang", "error", "http_400", "http_500", "reset")]
)
@pytest.mark.parametrize(
    "text", [YES, '{"criteria": [{"name": "a", "score": 1}]}', '{"criteria": {"a": {"score": 1}}}']
)
def test_every_fault_changes_the_reply(fault, text):
    """A fault that does nothing would prove nothing: for flags, listed criteria and keyed ones."""
    reply = Reply(text=text)

    assert break_reply(reply, fault) != reply


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("structured", [False, True])
def test_no_fault_ever_passes(fault, structured):
    """In text mode and with structured output."""
    keyed = {"criteria": {"good": {"reasoning": "so", "score": 1.0}}}
    model = FaultyModel(ScriptedModel(keyed if structured else scores(1.0)), [fault] * 9)
    judge = Judge(model, structured="schema" if structured else "text", timeout=0.05, reask=0)

    result = asyncio.run(judge.evaluate("x", criteria="Good."))

    assert result.outcome == "undecided"


def test_doubles_have_names():
    """A faulty model is named after the one it breaks."""
    assert FaultyModel(ScriptedModel(YES, name="m"), []).name == "faulty(m)"
    assert JudgeChain([FaultyModel(ScriptedModel(YES), [], name="f")]).names == ("f",)
    assert repr(ScriptedModel(YES, name="m")) == "ScriptedModel('m')"
