"""What is said when the caller's input is wrong: the whole sentence, pinned, so that nobody shortens it by accident.

Each names the thing, the value and the remedy. Nothing has been asked of any model when one of these is raised.
"""

from __future__ import annotations

import asyncio
import dataclasses
import math

import pytest

from adjudge import (
    AdjudgeError,
    Judge,
    JudgeChain,
    JudgeResult,
    JudgmentFailed,
    ModelError,
    ReplyError,
    Rubric,
    UsageError,
    judge,
)
from adjudge.ledger import LedgerError
from adjudge.testing import FaultyModel, ScriptedModel
from judge_support import NO, YES, complaint, scores

CRITERION = {"name": "a", "description": "b"}


def evaluate(content="Hello.", *, judge=None, **how) -> str:
    """The complaint of a call, after which the model has not been asked."""
    model = ScriptedModel(scores(1.0))
    said = complaint((judge or Judge(model)).evaluate, content, **how)
    assert model.requests == []
    return said


# ---------------------------------------------------------------- the errors themselves


def test_every_error_is_an_adjudge_error():
    """One name catches all, and ``UsageError`` is a ``ValueError`` too."""
    assert issubclass(UsageError, AdjudgeError)
    assert issubclass(UsageError, ValueError)
    assert {ModelError, ReplyError, LedgerError, JudgmentFailed} <= set(AdjudgeError.__subclasses__())


def test_errors_carry_what_a_program_needs():
    """The HTTP status, the reason, the result."""
    result = JudgeResult(outcome="undecided", undecided_because="refused", judge="j", detail="it would not")

    assert ModelError("busy", status=503).status == 503
    assert ModelError("gone").status is None
    assert (ReplyError("truncated", "cut").because, str(ReplyError("truncated", "cut"))) == ("truncated", "cut")
    assert JudgmentFailed(result).result is result
    assert str(JudgmentFailed(result)) == "undecided: refused; it would not"


# ---------------------------------------------------------------- wrong calls


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (
            {},
            (
                "nothing says what good means: give a rubric, criteria='...' or result_format=...; "
                "a ready-made prompt goes to ask()"
            ),
        ),
        (
            {"criteria": "Good.", "rubric": Rubric(name="r", criteria=[CRITERION])},
            "give a rubric or criteria, not both",
        ),
        ({"threshold": 0.8}, "threshold=0.8 needs criteria or a rubric to apply to"),
        (
            {"criteria": "Good.", "threshold": 70},
            "threshold must be between 0 and 1, got 70; for 70 % write 0.7",
        ),
        (
            {"criteria": "Good.", "threshold": math.nan},
            "threshold must be a number between 0 and 1, got nan",
        ),
        (
            {"rubric": Rubric(name="r", criteria=[CRITERION]), "threshold": 70},
            "threshold must be between 0 and 1, got 70; for 70 % write 0.7",
        ),
        ({"criteria": "Good.", "treshold": 0.7}, "evaluate has no argument 'treshold'; did you mean 'threshold'?"),
        ({"criteria": "Good.", "zzz": 1}, "evaluate has no argument 'zzz'"),
        ({"criteria": "Good.", "instructions": ["x"]}, "instructions must be a text, got list"),
        ({"criteria": "Good.", "model": 5}, "model must be the name of a model, got int"),
        ({"criteria": "Good.", "metadata": [1]}, "metadata must be a mapping, got list"),
        ({"criteria": "Good.", "rules": {"length": 3}}, "rules must be a list of rules, got dict"),
        ({"criteria": "Good.", "passes": True}, "passes must be a function, got bool"),
        (
            {"criteria": 5},
            "criteria must be a sentence, a list of sentences or a mapping of names to sentences, not int",
        ),
        ({"criteria": []}, "rubric 'criteria' has no criteria; give it at least one"),
        (
            {"criteria": "  "},
            "criterion 'criteria': the description must be a text that is not empty, got '  '",
        ),
        (
            {"rubric": 3},
            "a rubric must be a Rubric, a mapping, a path or a shipped name, not int",
        ),
        (
            {"criteria": "Good.", "passes": lambda value: True},
            "passes= needs result_format=: give the type whose instances it looks at",
        ),
        (
            {"result_format": dict},
            "result_format must be a pydantic model, dataclass or msgspec Struct, got dict",
        ),
        (
            {"result_format": "Verdict"},
            "result_format must be a pydantic model, dataclass or msgspec Struct, got 'Verdict'",
        ),
        (
            {"criteria": "Good.", "model": "gpt-6.1-terra", "judge": Judge(("f", lambda prompt: YES))},
            "'gpt-6.1-terra' is not the full name of a model, and f has no other models",
        ),
    ],
)
def test_a_wrong_call_is_refused_before_anybody_is_asked(how, message):
    """Rubric, criteria, threshold, format and names are checked when the call is made."""
    assert evaluate(**how) == message


def test_a_format_must_say_whether_it_passed():
    """Checked at the call, not when a reply fails."""

    @dataclasses.dataclass
    class Opinion:
        text: str

    @dataclasses.dataclass
    class Loose:
        passed: str

    assert evaluate(result_format=Opinion) == (
        "result_format Opinion has no boolean 'passed'; add one, or say passes=lambda value: ..."
    )
    assert evaluate(result_format=Loose) == (
        "result_format Loose has no boolean 'passed'; add one, or say passes=lambda value: ..."
    )


@pytest.mark.parametrize("member", ["token", "criteria"])
def test_a_format_leaves_our_members_alone(member):
    """Two members are adjudge's own."""
    kind = dataclasses.make_dataclass("Mine", [("passed", bool), (member, str)])

    assert evaluate(result_format=kind) == (
        f"result_format Mine has a member '{member}', which adjudge uses; rename it"
    )


def test_the_short_form_needs_a_judge(monkeypatch):
    """From the call or from the environment, read at the call."""
    monkeypatch.delenv("ADJUDGE_JUDGE", raising=False)

    assert complaint(judge, "Hello.", criteria="Good.") == (
        "no judge was given and ADJUDGE_JUDGE is not set; set it to a model like openai:gpt-6.1-terra"
    )


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ("", "a ready-made prompt must be a text that is not empty, got str"),
        (" \n", "a ready-made prompt must be a text that is not empty, got str"),
        (None, "a ready-made prompt must be a text that is not empty, got NoneType"),
        (b"safe?", "a ready-made prompt must be a text that is not empty, got bytes"),
    ],
)
def test_a_prompt_must_be_a_text(prompt, message):
    """``ask`` takes a prompt or a question and nothing else."""
    assert complaint(Judge(ScriptedModel(YES)).ask, prompt) == message
    assert complaint(JudgeChain([ScriptedModel(YES)]).ask, prompt) == message


# ---------------------------------------------------------------- wrong content


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x89PNG", "the content is binary (4 bytes); decode it to text first"),
        (bytearray(3), "the content is binary (3 bytes); decode it to text first"),
        ({1: "a", "1": "b"}, "the content has two keys that are written alike, like 1 and '1'; make all of them text"),
        ({"file": [b"abc"]}, "the content holds binary data (3 bytes); decode it to text first"),
        ("a\x00b", "the content holds a NUL character at 1, so it looks binary; hand in text"),
        (
            "caf\udce9",
            "the content is not valid Unicode: a lone surrogate at character 3; decode it with errors='replace' first",
        ),
        (
            [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}],
            "the content holds a message part of type 'image_url'; only text is judged",
        ),
        (
            {"role": "user", "content": [{"type": "image"}]},
            "the content holds a message part of type 'image'; only text is judged",
        ),
        (
            object(),
            "the content is a object, which is not text and not a JSON value; convert it first",
        ),
        (
            {"score": math.nan},
            (
                "the content cannot be written as JSON (Out of range float values are not JSON compliant); "
                "hand in text or plain JSON values"
            ),
        ),
    ],
)
def test_content_that_cannot_be_judged_is_refused(content, message):
    """Binary, images and what is no JSON value; nothing is dropped or encoded in silence."""
    said = evaluate(content, criteria="Good.")

    assert said.replace(": nan", "") == message


def test_content_that_holds_itself_is_refused():
    """It is an error of the caller and not a crash."""
    loop: list[object] = []
    loop.append(loop)

    assert evaluate(loop, criteria="Good.") == (
        "the content holds itself, or nests too deeply to be shown; hand in text"
    )


def test_a_picture_is_refused():
    """An object with bands is an image, one with raw bytes an array."""

    class Picture:
        def getbands(self):
            return ("R", "G", "B")

    assert evaluate(Picture(), criteria="Good.") == (
        "the content is an image or array (Picture); only text and JSON are judged"
    )


def test_other_parts_are_refused_by_their_own_name():
    """A binary reference is not called content."""
    assert evaluate(criteria="Good.", reference=b"abc") == (
        "the reference is binary (3 bytes); decode it to text first"
    )


def test_content_too_large_for_the_model_is_refused():
    """Nothing is cut silently; every part of the question counts."""

    class Small(ScriptedModel):
        max_input_characters = 10

    fits = Judge(Small(scores(1.0))).evaluate_sync("x" * 6, criteria="Good.", task="y" * 4)
    assert fits.passed

    said = evaluate("x" * 7, judge=Judge(Small(YES, name="small")), criteria="Good.", task="y" * 4)

    assert said == ("the question is 11 characters long and 'small' takes 10; shorten the content or judge it in parts")


# ---------------------------------------------------------------- wrong rubrics


@pytest.mark.parametrize(
    ("criteria", "message"),
    [
        ([CRITERION, CRITERION], "rubric 'r' has two criteria named 'a'; give each its own name"),
        (
            [{**CRITERION, "weight": 0}],
            "rubric 'r': the weights sum to 0; give at least one criterion a weight above 0",
        ),
        (
            [{**CRITERION, "weight": -1}],
            "criterion 'a': weight must be a finite number of at least 0, got -1",
        ),
        (
            [{**CRITERION, "weight": math.inf}],
            "criterion 'a': weight must be a finite number of at least 0, got inf",
        ),
        (
            [{**CRITERION, "threshold": 90}],
            "criterion 'a': threshold must be between 0 and 1, got 90; for 90 % write 0.9",
        ),
        ([], "rubric 'r' has no criteria; give it at least one"),
    ],
)
def test_a_wrong_rubric_is_refused_when_it_is_made(criteria, message):
    """Duplicate names, weights without a sum, thresholds in percent."""
    assert complaint(Rubric, name="r", criteria=criteria) == message


# ---------------------------------------------------------------- wrong judges


SECONDS = "must be a finite number of seconds above 0, or None for no limit; got"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"timeout": math.nan}, f"timeout {SECONDS} nan"),
        ({"timeout": 0.0}, f"timeout {SECONDS} 0"),
        ({"timeout": -1}, f"timeout {SECONDS} -1"),
        ({"timeout": math.inf}, f"timeout {SECONDS} inf"),
        ({"reask": -1}, "reask must be a whole number from 0 to 5, got -1"),
        ({"reask": True}, "reask must be a whole number from 0 to 5, got True"),
        ({"structured": "yes"}, "structured must be one of auto, schema, text; got 'yes'"),
        ({"token": "no"}, "token must be true or false, got 'no'"),
        ({"scoring": "mean"}, "scoring must be one of stated, expected; got 'mean'"),
    ],
)
def test_a_wrong_judge_is_refused_when_it_is_made(options, message):
    """Limits and choices."""
    assert complaint(Judge, ScriptedModel(YES), **options) == message


@pytest.mark.parametrize(
    ("reader", "how", "message"),
    [
        (
            "Rating: [[7]]",
            {"criteria": ["Short.", "True."]},
            "reader 'Rating: [[7]]' reads one score, so it needs a rubric with one criterion for the model",
        ),
        (
            "[[A]]",
            {"criteria": "Good."},
            "reader '[[A]]' says which of two is better; it answers comparisons, not a rubric",
        ),
        (
            "GRADE: C",
            {"criteria": "Good."},
            "reader 'GRADE: C' reads a label; say which pass with passes=lambda label: ...",
        ),
    ],
)
def test_a_reader_that_cannot_answer_is_refused(reader, how, message):
    """Before anybody is asked."""
    assert evaluate(judge=Judge(ScriptedModel(YES), reader=reader), **how) == message


def test_a_reader_answers_no_ready_made_prompt():
    """A prompt has its own reply form."""
    assert complaint(Judge(ScriptedModel(YES), reader="Rating: [[7]]").ask, "Safe?") == (
        "reader 'Rating: [[7]]' reads replies about a rubric, not ready-made prompts or a result_format"
    )


def test_an_unknown_fault_is_refused():
    """A test double with a misspelt fault would break nothing."""
    assert complaint(FaultyModel, ScriptedModel(YES), ["explode"]).startswith("unknown fault 'explode'; use one of ")


def test_too_little_concurrency_is_refused():
    """A run with no worker would never end."""

    async def main():
        async for _ in Judge(ScriptedModel(YES)).evaluate_many([], criteria="Good.", concurrency=0):
            pass

    with pytest.raises(UsageError) as caught:
        asyncio.run(main())
    assert str(caught.value) == "concurrency must be a whole number of at least 1, got 0"


# ---------------------------------------------------------------- wrong chains


A = ("a", lambda prompt: YES)
RIGHT = "fallback, consensus, majority, quorum, hedged, cascade"
SECONDS = "must be a finite number of seconds above 0, or None for no limit; got"


@pytest.mark.parametrize(
    ("judges", "options", "message"),
    [
        ([A], {"strategy": "voting"}, f"unknown strategy 'voting'; use one of {RIGHT}"),
        ([], {}, "a chain needs at least one judge; the list is empty"),
        ("openai:gpt-6.1-terra", {}, "judges must be a list of judges, got str"),
        ([A], {"timeout": math.nan}, f"timeout {SECONDS} nan"),
        ([A], {"timeout": 0}, f"timeout {SECONDS} 0"),
        ([A], {"timeout": -1.5}, f"timeout {SECONDS} -1.5"),
        ([A], {"timeout": math.inf}, f"timeout {SECONDS} inf"),
        ([A], {"timeout": True}, f"timeout {SECONDS} True"),
        ([A], {"timeout": "5"}, f"timeout {SECONDS} '5'"),
        ([A], {"deadline": math.nan}, f"deadline {SECONDS} nan"),
        ([A], {"deadline": -0.0}, f"deadline {SECONDS} -0"),
        ([A], {"strategy": "hedged", "hedge_after": math.inf}, f"hedge_after {SECONDS} inf"),
        ([A], {"fail_open": "false"}, "fail_open must be true or false, got 'false'"),
        ([A], {"stop_early": None}, "stop_early must be true or false, got None"),
        ([A], {"strategy": "quorum"}, "the strategy 'quorum' needs quorum"),
        ([A], {"strategy": "hedged"}, "the strategy 'hedged' needs hedge_after"),
        ([A], {"strategy": "cascade"}, "the strategy 'cascade' needs escalate_below"),
        ([A], {"quorum": 1}, "quorum belongs to the strategy 'quorum', and this chain is 'fallback'"),
        (
            [A],
            {"strategy": "majority", "hedge_after": 1.0},
            "hedge_after belongs to the strategy 'hedged', and this chain is 'majority'",
        ),
        (
            [A],
            {"abstain_below": 0.5},
            "abstain_below belongs to the strategy 'cascade', and this chain is 'fallback'",
        ),
        (
            [A, A],
            {"strategy": "quorum", "quorum": 0},
            "quorum must be a whole number from 1 to 2, the number of judges; got 0",
        ),
        (
            [A, A],
            {"strategy": "quorum", "quorum": 3},
            "quorum must be a whole number from 1 to 2, the number of judges; got 3",
        ),
        (
            [A],
            {"strategy": "quorum", "quorum": True},
            "quorum must be a whole number from 1 to 1, the number of judges; got True",
        ),
        (
            [A, A],
            {"strategy": "cascade", "escalate_below": 70},
            "escalate_below must be between 0 and 1, got 70; for 70 % write 0.7",
        ),
        (
            [A, A],
            {"strategy": "cascade", "escalate_below": [0.5, 0.5]},
            "escalate_below has 2 numbers; give one, or one per judge but the last (1)",
        ),
        (
            [A, A],
            {"strategy": "cascade", "escalate_below": 0.5, "abstain_below": math.nan},
            "abstain_below must be a number between 0 and 1, got nan",
        ),
    ],
)
def test_a_wrong_chain_is_refused_when_it_is_made(judges, options, message):
    """The whole sentence: what, which value, what instead."""
    assert complaint(JudgeChain, judges, **options) == message


def test_fail_open_belongs_to_the_outermost_chain():
    """Inside, it would turn silence into a vote."""
    inner = JudgeChain([A], fail_open=True, name="inner")

    message = "fail_open belongs to the outermost chain; take it off the inner chain 'inner'"
    assert complaint(JudgeChain, [inner, A]) == message


def test_a_model_cannot_be_given_to_a_chain():
    """Its seats have models of their own; also when it stands in the rubric."""
    chain = JudgeChain([A], name="c")
    message = (
        "model 'm' was given to the chain 'c', whose seats have models of their own; "
        "ask a single Judge, or leave the model out"
    )
    rubric = Rubric(name="r", model="m", criteria=[{"name": "a", "description": "b"}])

    assert complaint(chain.evaluate, "text", criteria="Good.", model="m") == message
    assert complaint(chain.evaluate, "text", rubric) == message


def test_a_chain_checks_every_seat_before_anybody_is_asked():
    """A question too long for one seat, at any depth, is the caller's error and not that seat's silence."""

    class Small(ScriptedModel):
        max_input_characters = 10

    asked = ScriptedModel(NO)
    chain = JudgeChain([asked, JudgeChain([Small(YES, name="small")])])

    assert complaint(chain.ask, "x" * 11) == (
        "the question is 11 characters long and 'small' takes 10; shorten the content or judge it in parts"
    )
    assert asked.requests == []
