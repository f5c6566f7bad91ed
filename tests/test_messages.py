"""What is said when input is wrong: the one place where whole sentences are pinned, so that none is changed unseen.

Each names the thing, the value and the remedy. Elsewhere a test asserts the type of an error, and that these three are
named. Nothing has been asked of any model when one of these is raised.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import pytest

from adjudge import (
    Approvals,
    Budget,
    Case,
    CriterionResult,
    Dataset,
    Gate,
    InputFirewall,
    Judge,
    JudgeChain,
    JudgeResult,
    Ledger,
    PairResult,
    PromptFirewall,
    Rubric,
    Rules,
    SemanticProbe,
    UsageError,
    compare_sync,
    evaluate_probes,
    judge,
    load_rubric,
    load_rules,
    open_dataset,
    open_model,
    run,
)
from adjudge.dataset import Label, import_inspect, import_promptfoo
from adjudge.errors import LedgerError, Reason
from adjudge.guards import ApprovalAnswer, Webhook, verify_webhook
from adjudge.integrations.asgi import GateMiddleware
from adjudge.judges import read_result, with_layers
from adjudge.models import Price
from adjudge.runs import redecide
from adjudge.testing import FaultyModel, ScriptedModel
from adjudge.trust import Heap, find_interval, make_internal_rate
from kit import cli, pinned_messages
from kit.approvals import ask, make_result, use
from kit.cli import WORDS, Line, serve
from kit.firewalls import chain, reject, script, threaten
from kit.gates import Desk, check, gate
from kit.judges import NO, YES, Seat, complaint, failed, passed, scores, silent
from kit.ledgers import connect, record, verify
from kit.loops import run_virtual
from kit.probes import by_output, many, probed, probed_with, violated
from kit.redecisions import Told, do, make_cases, score
from kit.tools import errors

pytestmark = pytest.mark.timed


CRITERION = {"name": "a", "description": "b"}


def evaluate(content="Hello.", *, judge=None, **how) -> str:
    """The complaint of a call, after which the model has not been asked."""
    model = ScriptedModel(scores(1.0))
    said = complaint((judge or Judge(model)).evaluate, content, **how)
    assert model.requests == []
    return said


# ---------------------------------------------------------------- wrong calls


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (
            {},
            (
                "nothing says what good means: give rubric or criteria, or a result_format; "
                "a ready-made prompt goes to ask"
            ),
        ),
        (
            {"criteria": "Good.", "rubric": Rubric(name="r", criteria=[CRITERION])},
            "give rubric or criteria, not both",
        ),
        ({"threshold": 0.8}, "threshold=0.8 needs criteria or rubric to apply to"),
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
            "passes needs result_format: give the type whose instances it looks at",
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
        "result_format Opinion has no boolean 'passed'; add one, or say by passes which pass"
    )
    assert evaluate(result_format=Loose) == (
        "result_format Loose has no boolean 'passed'; add one, or say by passes which pass"
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
            "the content is not valid Unicode: a lone surrogate at character 3; replace it first",
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
            "reader 'GRADE: C' reads a label; say which pass with passes",
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
        ([A], {"strategy": "voting"}, f"strategy must be one of {RIGHT}; got 'voting'"),
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


# ---------------------------------------------------------------- values, rules, data, budgets, gates, runs


def read(text: str, name: str = "c.jsonl", **how: Any) -> list[Any]:
    """The cases of a file with this text, in the working directory."""
    Path(name).write_bytes(text.encode("utf-8", "surrogateescape"))
    return list(open_dataset(name, **how))


def write(name: str, text: str) -> Path:
    """A file in the working directory."""
    path = Path(name)
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def read_log(*samples: Any) -> None:
    """The cases of a log of Inspect with these samples."""
    said = {"version": 2, "status": "success", "eval": {"task": "t"}, "samples": list(samples)}
    list(import_inspect(write("log.json", json.dumps(said))))


def read_one(row: dict[str, Any], fields: dict[str, str]) -> None:
    """One row of a list."""
    list(Dataset.of([row], fields=fields))


def greets(content: str) -> bool:
    """A rule of one's own."""
    return content.startswith("Hello")


def read_twice() -> None:
    """A generator that is read a second time."""
    dataset = Dataset.of({"content": text} for text in "ab")
    for _ in range(2):
        list(dataset)


async def run_again(first: Any, second: Any, **how: Any) -> None:
    """A run in a folder, and another in the same one."""
    model = ScriptedModel(scores(1.0))
    await run(first, model, criteria="Good.", out="run", **how.pop("before", how))
    await run(second, model, criteria="Good.", out="run", **how)


async def list_approvals(**how: Any) -> None:
    """Approvals of an empty ledger."""
    async with Approvals("sqlite:///adjudge.db") as approvals:
        await approvals.list(**how)


async def ask_people(**how: Any) -> None:
    """A request that nobody could decide."""
    given = {"about": JudgeResult(**PASSED), "message": "?", "approvers": ["ana", "bob"]} | how
    async with Approvals("sqlite:///adjudge.db") as approvals:
        await approvals.request(given.pop("about"), given.pop("message"), **given)


async def decide(*said: Any, of: str | None = None, before: tuple[Any, ...] = ()) -> None:
    """A decision about a request whose id is ID in the message, and perhaps one before it."""
    async with Approvals("sqlite:///adjudge.db") as approvals:
        ident = await approvals.request(JudgeResult(**PASSED), "?", approvers=["ana", "bob"])
        try:
            for each in (before, said):
                await (approvals.decide(of or ident, *each) if each else asyncio.sleep(0))
        except UsageError as error:
            raise UsageError(str(error).replace(ident, "ID"), argument=error.argument) from error


async def find_request(*parts: Any) -> None:
    """Requests that are named by a part of an id, or by something else."""
    async with Approvals("sqlite:///adjudge.db") as approvals:
        await approvals.request(JudgeResult(**PASSED), "?", approvers=["ana"])
        for part in parts:
            await approvals.find(part)


async def export_twice() -> None:
    """The labels of a ledger, written to a file that is there."""
    async with Approvals("sqlite:///adjudge.db") as approvals:
        await approvals.request(JudgeResult(**PASSED), "?", approvers=["ana"])
        for _ in range(2):
            await approvals.export_labels("labels.jsonl")


PASSED: dict[str, Any] = {"outcome": "passed", "judge": "j"}
UNDECIDED: dict[str, Any] = {"outcome": "undecided", "judge": "j", "undecided_because": "timeout"}
REASONS = ", ".join(get_args(Reason))
SKIP = "on_bad_row='skip' leaves it out"
LABEL: dict[str, Any] = {"reader": "label", "reader_labels": ("a", "b"), "reader_passes": ("a",)}
PROBE = SemanticProbe(name="p", input="x", expected="x", contract="Polite.")
PRICE = Price(input=1.0, output=1.0)
ENDLESS = {"config": [{}] * 400, "tests": [{}] * 400}
ASSERTION = {"vars": {"q": "a"}, "assert": [{"type": 7}]}
SCENARIO = '{"scenarios": [7]}'

SECRET = "a secret of enough bytes"
DOOR = Gate("door", rules=["secrets"])
LABEL_IS = "label must be true, false, a number, 'first', 'second' or 'tie'"


CAUSES: Sequence[Callable[[], object]] = (
    # Results
    lambda: JudgeResult(outcome="undecided", judge="j"),
    lambda: JudgeResult(**UNDECIDED, score=0.0),
    lambda: JudgeResult(**PASSED, score=95),
    lambda: JudgeResult(**PASSED, threshold="0.5"),
    lambda: JudgeResult(**PASSED, confidence=math.nan),
    lambda: CriterionResult(name="a", passed=True, score=1.01),
    lambda: CriterionResult(name="a", passed=True, score=0.5, threshold=True),
    lambda: JudgeResult(**PASSED | {"outcome": "PASSED"}),
    lambda: JudgeResult(**UNDECIDED | {"undecided_because": "whatever"}),
    lambda: JudgeResult.from_dict({}),
    lambda: read_result({"schema": "adjudge/run/1"}),
    lambda: read_result({key: value for key, value in JudgeResult(**PASSED).to_dict().items() if key != "id"}),
    # Judges
    lambda: Judge(ScriptedModel(YES), on_result="log.txt"),
    lambda: Judge(ScriptedModel(YES), redact="[name]"),
    lambda: JudgeChain([ScriptedModel(YES)], on_result="log.txt"),
    lambda: Judge(ScriptedModel(YES), **LABEL).evaluate("x", criteria="Good.", passes=lambda label: True),
    lambda: open_model("azure:d").check(),  # type: ignore[attr-defined]
    # Rubrics
    lambda: Rubric(name="r", criteria=[CRITERION], passing_threshold=70),
    # Rules
    lambda: Rules("json"),
    lambda: load_rules(3),  # type: ignore[arg-type]
    lambda: Rules([greets, greets]),
    lambda: load_rules(Rules([greets]).to_dict()),
    # Data
    lambda: read('{"id": "a", "content": 1}\n{"id": "a", "content": 2}\n'),
    lambda: read('{"content": "a"}\n{"content": "\udcff"}\n'),
    lambda: read("id,text\n", "c.csv"),
    lambda: read("answer,gold\nx,y\n", "c.csv", fields={"content": "anser"}),
    read_twice,
    lambda: read_one({"answer": "x", "qid": 1, "metadata": {"qid": 2}}, {"content": "answer"}),
    lambda: list(import_promptfoo(write("c.yaml", SCENARIO))),
    lambda: list(import_promptfoo(write("c.yaml", json.dumps({"scenarios": [ENDLESS]})))),
    lambda: list(import_promptfoo(write("c.yaml", json.dumps({"tests": [ASSERTION]})))),
    lambda: load_rubric("securty"),
    lambda: load_rubric({"name": "r", "criteria": [CRITERION], "model": "python:a:b"}),
    lambda: load_rubric(write("folder/x.txt", "")),
    lambda: read_log({"id": 1, "input": "Q", "target": "T", "output": {"choices": []}}),
    lambda: read_log({"id": 1, "input": "Q", "output": {"choices": []}, "limit": {"type": "message", "limit": 1}}),
    lambda: read_log({"id": 1, "input": "Q", "error": {"message": "boom"}}),
    lambda: read_log(7),
    lambda: list(import_inspect(write("log.json", '{"eval": {}}'))),
    # Runs, ledgers and gates
    lambda: run_again([Case(id="a", content="x"), Case(id="a", content="y")], []),
    lambda: run_again(["a"], ["a", "b"], before={}, budget=5, prices={"scripted": PRICE}, resume=True),
    lambda: Ledger("mysql://x"),
    lambda: Budget(-1),
    lambda: evaluate_probes([(PROBE, "x")], ScriptedModel(YES), concurrency=0),
    lambda: open_model("gemini:a b"),
    lambda: open_model("opnai:a"),
    lambda: open_model("openai:a?max_concurency=3"),
    lambda: load_rules("none.yaml"),
    lambda: Gate("door", rules=["secrets"], judge=3),
    lambda: run_again(["a"], ["a"]),
    lambda: run_again(["a", "b"], ["a", "b", "c"], before={"sample": 1}, sample=1, resume=True),
    lambda: list_approvals(status="closed"),
    export_twice,
    # Approvals
    lambda: ask_people(approvers=[]),
    lambda: ask_people(approvers="ana"),
    lambda: ask_people(approvers={"ana": 1}),
    lambda: ask_people(approvers=["ana", 7]),
    lambda: ask_people(approvers=["ana "]),
    lambda: ask_people(approvers=[f"n{at}" for at in range(101)]),
    lambda: ask_people(required=3),
    lambda: ask_people(required=0),
    lambda: ask_people(expires_in=0),
    lambda: ask_people(expires_in=1e30),
    lambda: ask_people(on_expiry="allow"),
    lambda: ask_people(message=" "),
    lambda: ask_people(message=7),
    lambda: ask_people(message="x" * 100_001),
    lambda: ask_people(about=None),
    lambda: ask_people(metadata="x"),
    lambda: ask_people(first=print),
    lambda: Approvals(7),  # type: ignore[arg-type]
    lambda: Approvals("sqlite:///a.db", webhook="https://x"),  # type: ignore[arg-type]
    lambda: decide("eve", True),
    lambda: decide("ana", True, before=("ana", True)),
    lambda: decide("bob", True, before=("ana", False)),
    lambda: decide("ana", "yes"),
    lambda: decide(None, True),
    lambda: decide("ana", True, None),
    lambda: decide("ana", True, "x" * 10_001),
    lambda: decide("ana", True, of="x\x1by"),
    lambda: find_request(7),
    lambda: find_request("abc"),
    # Webhooks
    lambda: Webhook("ftp://example.org/", secret=SECRET),
    lambda: Webhook("https://h/", secret="short"),
    lambda: Webhook("https://h/", secret=None),  # type: ignore[arg-type]
    lambda: Webhook("https://h/", secret="whsec_!!!"),
    lambda: Webhook("https://h/", secret=SECRET, retries=-1),
    lambda: Webhook("https://h/", secret=SECRET, timeout=0),
    lambda: verify_webhook({}, "{}", SECRET),  # type: ignore[arg-type]
    # Middleware
    lambda: GateMiddleware(None, DOOR, on="both"),  # type: ignore[arg-type]
    lambda: GateMiddleware(None, DOOR, largest=0),  # type: ignore[arg-type]
    lambda: GateMiddleware(None, "door"),  # type: ignore[arg-type]
    # Rows of a data set
    lambda: read("[1]"),
    lambda: read("{}"),
    lambda: read('{"text": 1}'),
    lambda: read('{"content": null}'),
    lambda: read('{"content": 1, "labl": 1}'),
    lambda: read('{"content": 1, "role": "user"}'),
    lambda: read('{"content": 1, "label": "yes"}'),
    lambda: read('{"content": 1, "label": "failed"}'),
    lambda: read('{"content": 1, "label": "meh"}'),
    lambda: read('{"content": 1, "labels": [1]}'),
    lambda: read('{"content": 1, "id": true}'),
    lambda: read('{"content": 1, "id": ""}'),
    lambda: read('{"content": 1, "schema": "adjudge/case/2"}'),
    lambda: read('{"content": "caf\\ud800"}'),
    lambda: read('{"content": 1, "label": NaN}'),
    lambda: read('{"content": 1, "content": 2}'),
    lambda: read("", on_bad_row="ignore"),
    lambda: read("", fields={"content": 3}),
    lambda: open_dataset("gone.jsonl"),
    lambda: read("", "c.json.gz"),
    lambda: find_interval(6, 5),
    lambda: make_internal_rate([Heap(verdict="passed", cases=5, good=-1)]),
    lambda: make_internal_rate([Heap(verdict="passed", cases=5, good=6)]),
    lambda: make_internal_rate([Heap(verdict="pass", cases=5)]),
    lambda: make_internal_rate([Heap(verdict="passed", cases=5)], target="world"),
)
"""Calls that anybody can make, each of which is refused; messages.json has what is said of them."""


CALLS = dict(zip(pinned_messages.list_calls(__file__, "CAUSES"), CAUSES, strict=True))


@pytest.fixture(name="pinned", scope="module")
def provide_pinned() -> Iterator[dict[str, pinned_messages.Pinned]]:
    """What is pinned of each call; written at the end where the file is written anew."""
    if not pinned_messages.updates():
        yield pinned_messages.read_pinned()
        return
    pinned: dict[str, pinned_messages.Pinned] = {}
    yield pinned
    pinned_messages.write_pinned(pinned)


@pytest.mark.parametrize("call", CALLS)
def test_a_message_is_what_it_was(
    call: str, pinned: dict[str, pinned_messages.Pinned], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Its type, its argument and every word of it, from a call that anybody can make."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AZURE_OPENAI_ENDPOINT", raising=False)
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "k")
    error = pinned_messages.catch(CALLS[call])
    if pinned_messages.updates():
        pinned[call] = error

    assert error == pinned.get(call)


def test_nothing_is_pinned_that_nobody_calls():
    """A call that is taken out takes its message with it."""
    if not pinned_messages.updates():
        assert list(pinned_messages.read_pinned()) == list(CALLS)


# ---------------------------------------------------------------- results


@dataclasses.dataclass
class Review:
    passed: bool
    issues: list[str]


class OddJudge:
    """A judge of somebody who thought that a yes is enough."""

    name = "odd"

    async def ask(self, question: object, /) -> Any:
        return True


class OddModel:
    """A model of the same."""

    name = "odd"

    async def complete(self, request: object, /) -> Any:
        return 7


def ask_within(budget: Budget) -> JudgeResult:
    """The result of a judge whose next call may cost 3 dollars."""
    model = Judge(ScriptedModel(scores(1.0)), max_output_tokens=3)
    judge = with_layers(model, budget=budget, prices={"scripted": Price(input=0.0, output=1_000_000.0)})
    return judge.evaluate_sync("Hello.", criteria="Good.")


def ask_form(**said: Any) -> JudgeResult:
    """The result of a judge whose reply has these members."""
    return Judge(ScriptedModel(said), reask=0).evaluate_sync("Hello.", result_format=Review)


DETAILS: Mapping[str, Callable[[], JudgeResult]] = {
    "of the budget of $5.0000, $2.5000 are left, and the call may cost $3.0000": lambda: ask_within(
        Budget(5, spent=2.5)
    ),
    "of the budget of $5.0000 in 60 seconds, $2.0000 are left, and the call may cost $3.0000": lambda: ask_within(
        Budget(5, per=60, spent=3)
    ),
    "the reply leaves out 'passed', a member of Review": lambda: ask_form(issues=[]),
    "the reply leaves out 'issues', a member of Review": lambda: ask_form(passed=True),
    "the judge returned bool, not a JudgeResult": lambda: JudgeChain([OddJudge()]).ask_sync("Safe?").results[0],
    "'odd' returned int, not a Reply": lambda: Judge(OddModel()).ask_sync("Safe?"),
}
"""The detail of a result that nobody could decide, and how it comes about."""


@pytest.mark.parametrize("detail", DETAILS)
def test_a_detail_is_what_it_was(detail: str):
    """Word for word, in a result that is undecided."""
    result = DETAILS[detail]()

    assert (result.outcome, result.detail) == ("undecided", detail)


# ---------------------------------------------------------------- what is told of a decision


def tell_first(judge: Any, **how: Any) -> str:
    """What a request says of the judge that was asked first."""

    async def ask(approvals: Approvals) -> str:
        given = {"approvers": ["ana"], "first": judge, "content": "The content."} | how
        about = given.pop("about", make_result())
        return (await approvals.get(await approvals.request(about, "Publish it?", **given))).first_said

    return use("sqlite:///adjudge.db", ask)


def resume(answer: Any, **gates: Any) -> str:
    """The detail of a decision that waited, after this answer."""
    desk = Desk(answer)
    pending = check(gate(Seat("failed"), on_failed="ask", approvals=desk, wait=False))
    later = gate(Seat("failed"), **{"on_failed": "ask", "approvals": desk, "wait": False} | gates)
    return run_virtual(later.resume(pending)).detail


def resume_unbound() -> str:
    """The detail of one that waits without a request digest."""
    made = gate(Seat("failed"), on_failed="ask", approvals=Desk(), wait=False)
    return run_virtual(made.resume(dataclasses.replace(check(made), request=None))).detail


def resume_another() -> str:
    """The detail of one that is resumed with another content."""
    made = gate(Seat("failed"), on_failed="ask", approvals=Desk(), wait=False)
    return run_virtual(made.resume(check(made), content="Another.")).detail


def reject_rules(judge: Any, place: int, *rules: str, **how: Any) -> str:
    """Why a prompt firewall rejected one of these rules."""
    verdict = run_virtual(PromptFirewall(judge, **how).check(rules))
    return next(item.reason for item in verdict.rejected if item.index == place)


def refuse_arguments(judge: Any) -> str:
    """The detail of an input firewall's verdict."""
    return run_virtual(InputFirewall(judge).check({"q": "x"})).detail


def change_payload() -> str:
    """What a ledger's verification says of an entry that was written over."""
    record("sqlite:///adjudge.db", {"n": 1})
    with connect("sqlite:///adjudge.db") as connection:
        connection.execute("DROP TRIGGER adjudge_ledger_no_update")
        connection.execute("UPDATE adjudge_ledger SET payload = ? WHERE seq = 2", (b'{"n":7}',))
        connection.commit()
    return verify("sqlite:///adjudge.db").detail


def compare_flipped(**how: Any) -> PairResult:
    """A pair of which the judge prefers whichever comes first."""
    said = {"preferred": "first", "reasoning": "so"}
    return compare_sync("a", "b", criteria="Good.", judge=ScriptedModel(said), **how)


def redecide_short(*panel: Any, before: str, **policy: Any) -> str:
    """Why a redecision cannot say what would have been."""
    judge = JudgeChain(list(panel), strategy=before, timeout=None) if len(panel) > 1 else panel[0]
    do(make_cases(1), judge, out="run")
    (why,) = redecide("run", **policy).unknown_because
    return why


def keep_one(dataset: Dataset) -> str:
    """The note of a data set that has one."""
    list(dataset)
    (note,) = dataset.notes
    return note


HALF = {"0": score(a=1.0, b=0.5)}
FLIPPED = "the orders disagree: ab says first and ba says second"

TOLD: Mapping[str, Callable[[], str | None]] = {
    # Approvals, and the judge that is asked before the people
    "judge 'seat' passed it with confidence 0.95": lambda: tell_first(passed(confidence=0.95)),
    "judge 'seat' passed it with unknown confidence; 0.7 is needed": lambda: tell_first(passed()),
    "judge 'seat' passed it with confidence 0.69; 0.7 is needed": lambda: tell_first(passed(confidence=0.69)),
    "judge 'seat' passed it by policy, which is no judgement": lambda: tell_first(
        passed(confidence=1.0, decided_by="policy")
    ),
    "judge 'seat' did not pass it: failed": lambda: tell_first(failed(confidence=1.0)),
    "judge 'seat' did not pass it: undecided (split)": lambda: tell_first(silent("split")),
    "judge unavailable: timeout of judge 'seat'": lambda: tell_first(silent("timeout")),
    "no judge was asked, since the result warns of tampering": lambda: tell_first(
        passed(), about=make_result("undecided", undecided_because="tampering")
    ),
    "judge 'seat' passed it with confidence 1.00, too late": lambda: tell_first(
        Slowly("passed", confidence=1.0), expires_in=0.01
    ),
    "open: 2 of 2 still to approve, by ana, bob": lambda: ask(
        "sqlite:///adjudge.db", Approvals.get, required=2
    ).explain(),
    "failed with 0.20 (needs 0.70); it promises a refund": lambda: (
        ask("sqlite:///adjudge.db", Approvals.get, result=make_result(detail="it promises a refund")).reason
    ),
    # Gates
    "approved by ana: fine": lambda: resume((True, "ana", "fine")),
    "the approval could not be read: LedgerError": lambda: resume(LedgerError("gone")),
    "the approval is about something else": lambda: resume(ApprovalAnswer(True, "ana", "fine", subject="5" * 64)),
    "the approval was asked for elsewhere than at this gate": lambda: resume(
        ApprovalAnswer(True, "ana", "fine", gate="other")
    ),
    ("people were asked under other policy than this gate has now; put the content through the gate again"): lambda: (
        resume((True, "ana", "fine"), on_undecided="ask")
    ),
    "the decision that waits has no request digest; put the content through the gate again": resume_unbound,
    "the content is not what was held back; put the content through the gate again": resume_another,
    "nobody was asked: content that cannot be read cannot be told apart": lambda: (
        check(gate(Seat("passed"), on_undecided="ask", approvals=Desk()), "\0").detail
    ),
    # Firewalls
    "another rule that came with it was rejected": lambda: reject_rules(ScriptedModel(reject(2)), 1, "a", "b"),
    "the judge gave no reason": lambda: reject_rules(
        ScriptedModel({"rejected": [{"index": 1}], "safe": False}), 1, "a"
    ),
    "it reads the same as rule 2, which was rejected": lambda: reject_rules(
        ScriptedModel(reject(2)), 1, "Do it!", "do  it!", "Fine.", on_unsafe="drop_flagged"
    ),
    "another rule was rejected, and not enough judges answered to clear this one": lambda: reject_rules(
        chain(script(reject(2), reject(2), RuntimeError("down"))), 1, "a", "b", on_unsafe="drop_flagged"
    ),
    "nobody was asked: it will not do": lambda: reject_rules(JudgeChain([Picky("passed")]), 1, "a"),
    "the judges found the arguments unsafe": lambda: refuse_arguments(ScriptedModel(threaten())),
    "the judges could not decide: error; scripted: error": lambda: refuse_arguments(
        ScriptedModel(RuntimeError("down"))
    ),
    # Probes
    "the contract is violated, as strict found": lambda: probed(violated(1.0, "It wrote to the disk.")).detail,
    "the tool gave no output within 0.05 s": lambda: (
        probed_with(lambda given: asyncio.sleep(5), tool_timeout=0.05).detail
    ),
    "not stable: 2 probes, 1 passed, 1 failed, 0 undecided; mean similarity 0.60 (drift medium)": lambda: many(
        by_output(a=1.0, b=0.2), "a", "b"
    ).explain(),
    # Ledgers
    "entry 2 has another payload than was recorded": change_payload,
    # Results, comparisons and redecisions
    "passed with 0.90 (needs 0.70)": lambda: JudgeResult(**PASSED, score=0.9, threshold=0.7).explain(),
    "undecided: timeout; no answer within 3 s": lambda: JudgeResult(
        **UNDECIDED, detail="no answer within 3 s"
    ).explain(),
    f"preferred: tie; {FLIPPED}": lambda: compare_flipped().explain(),
    f"undecided: split; {FLIPPED}": lambda: compare_flipped(on_conflict="undecided").explain(),
    f"<PairResult 'scripted' undecided: split; {FLIPPED}>": lambda: repr(compare_flipped(on_conflict="undecided")),
    "y was not asked then": lambda: redecide_short(
        Told("x", HALF), Told("y", HALF), before="fallback", strategy="consensus"
    ),
    "y was cut short then": lambda: redecide_short(
        Told("x", {"0": score(a=0.0, b=0.0)}),
        Never("y", {}),
        before="consensus",
        strategy="majority",
    ),
    "the reply of own was not kept": lambda: redecide_short(
        Seat("failed", name="own"), Told("x", HALF), before="majority", threshold=0.1
    ),
    # Rules
    'does not contain "salt"': lambda: rule_message({"contains": ["salt", "hash"]}, "hash"),
    'contains "key"': lambda: rule_message({"not_contains": "key"}, "a key"),
    '"key" at character 2 matches "k.y"': lambda: rule_message({"regex": "k.y", "absent": True}, "a key"),
    'nothing matches "k.y"': lambda: rule_message({"regex": "k.y"}, "none"),
    "is 4 characters long, above the maximum of 3": lambda: rule_message({"length": 3}, "abcd"),
    "is 1 character long, below the minimum of 2": lambda: rule_message({"name": "length", "min": 2}, "a"),
    "holds social security number ***-**-**** in line 1": lambda: rule_message("personal_data", "ssn 123-45-6789"),
    'holds address "https://evil.example/x" (the host "evil.example" is not allowed) in line 2': lambda: rule_message(
        {"name": "urls", "allow": ["ok.example"]}, "a\nb https://evil.example/x c"
    ),
    "holds no known secret": lambda: rule_message("secrets", "The token is checked."),
    "holds no address that is not allowed": lambda: rule_message(
        {"name": "urls", "allow": ["ok.example"]}, "No address."
    ),
    "the rule raised LookupError: no table\\x1b[2J for Hello": lambda: rule_message(break_rule, "Hello"),
    # Outputs of tools
    "a[1].b: set is not a JSON type": lambda: errors({"a": [1, {"b": {1}}]}, {})[0],
    "a.b: nan is not a JSON number": lambda: errors({"a": {"b": math.nan}}, {})[0],
    "[0][0]: has a key that is not a text, or not valid Unicode": lambda: errors([[{1: 2}]], {})[0],
    "the output: has more than 2,000,000 values": lambda: errors([0] * 2_000_001, {})[0],
    # Labels
    "labelled case that is not in the data set (x)": lambda: keep_one(
        Dataset.of([Case(id="a", content="x")]).with_labels([Label(case="x", rater="ann", value=True)])
    ),
}
"""What a value tells, and how it comes about."""


class Never(Told):
    """A model that never answers."""

    async def complete(self, request: Any, /) -> Any:
        await asyncio.Event().wait()


class Slowly(Seat):
    """A judge whose answer holds up the loop, and so comes after the request has expired."""

    async def ask(self, question: Any, /) -> JudgeResult:
        time.sleep(0.05)  # noqa: ASYNC251 - what it is about
        return await super().ask(question)


class Picky(Seat):
    """A judge that will not be asked."""

    def check(self, question: object) -> None:
        raise UsageError("it will not do")


def break_rule(content: str) -> bool:
    """A rule that raises, with an escape sequence."""
    raise LookupError(f"no table\x1b[2J for {content}")


def rule_message(rule: Any, content: str) -> str:
    """What the first of these rules says of a content."""
    return Rules([rule]).evaluate_sync(content)[0].message


@pytest.mark.parametrize("text", TOLD)
def test_what_is_told_is_what_it_was(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Word for word: why a gate, a firewall, a probe, a rule or a redecision came to what it did."""
    monkeypatch.chdir(tmp_path)

    assert TOLD[text]() == text


def test_a_hook_that_raises_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """By its name and the error's type; the rest is for whoever looks for it."""
    monkeypatch.chdir(tmp_path)
    judge = Judge(ScriptedModel(YES), on_result=Ledger("sqlite:///missing/adjudge.db").append)
    with caplog.at_level(logging.WARNING, logger="adjudge"):
        assert judge.ask_sync("Safe?").passed

    assert caplog.messages == ["the on_result hook raised UsageError; its traceback is logged at DEBUG"]


# ---------------------------------------------------------------- the command line


POLITE = ("--criteria", "Is polite.")
LIMIT = "timeout must be a finite number of seconds above 0, or None for no limit"


@pytest.fixture(name="line")
def make_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    """The command line in a folder with a content."""
    cli.isolate(monkeypatch, tmp_path)
    cli.feed(monkeypatch, terminal=True)
    Path("good.txt").write_text("good", encoding="utf-8")
    return Line(capsys)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "nothing says what good means: give --rubric NAME or --criteria TEXT"),
        (["--threshold", "0.5"], ("nothing says what good means: give --rubric NAME or --criteria TEXT; "
         "--threshold alone says nothing about what is good")),
        (["--rubric", "security", *POLITE], "give --rubric or --criteria, not both"),
        ([*POLITE, "--threshold", "70"], "--threshold must be between 0 and 1, got 70; for 70 % write 0.7"),
        ([*POLITE, "--threshold", "-1"], "--threshold must be between 0 and 1, got -1"),
        ([*POLITE, "--threshold", "nan"], "--threshold must be a number between 0 and 1, got nan"),
        ([*POLITE, "--threshold", "high"], "--threshold must be a number, got 'high'; see adjudge judge --help"),
        ([*POLITE, "--timeout", "nan"], "--timeout must be a finite number of seconds above 0, got nan"),
        ([*POLITE, "--timeout", "0"], "--timeout must be a finite number of seconds above 0, got 0"),
        ([*POLITE, "--timeout", "-3"], "--timeout must be a finite number of seconds above 0, got -3"),
        ([*POLITE, "--timeout", "inf"], "--timeout must be a finite number of seconds above 0, got inf"),
        ([*POLITE, "--timeout", "5s"], "--timeout must be a number, got '5s'; see adjudge judge --help"),
        ([*POLITE, "--quorum", "two"], "--quorum must be a whole number, got 'two'; see adjudge judge --help"),
        ([*POLITE, "--concurrency", "0"], "--concurrency must be a whole number of at least 1, got 0"),
        ([*POLITE, "--strategy", "best"], f"--strategy must be one of {RIGHT}; got 'best'"),
        ([*POLITE, "--strategy", "hedged", "--hedge-after", "nan"],
         "--hedge-after must be a finite number of seconds above 0, got nan"),
        ([*POLITE, "--strategy", "quorum"], "the strategy 'quorum' needs --quorum"),
        ([*POLITE, "--strategy", "quorum", "--quorum", "3"],
         "--quorum must be a whole number from 1 to 1, the number of judges; got 3"),
        ([*POLITE, "--quorum", "1"], "--quorum belongs to the strategy 'quorum', and this chain is 'fallback'"),
        ([*POLITE, "--strateg", "best"],
         "there is no option --strateg; did you mean --strategy; see adjudge judge --help"),
        ([*POLITE, "--zzz"], "there is no option --zzz; see adjudge judge --help"),
        ([*POLITE, "--rule", "{regx: a}"], "--rule '{regx: a}': …"),
        ([*POLITE, "--rule", "{"], "--rule '{' is not YAML: …"),
        ([*POLITE, "--rule", "3"], "--rule '3' must be a mapping like '{regex: ^Dear}' or a rule's name"),
        ([*POLITE, "--rule", "{python: 'gone_module:f'}"], "--rule \"{python: 'gone_module:f'}\": …"),
        (["--criteria", " "], "--criteria is empty; say in a sentence what is good"),
    ],
)  # fmt: skip
def test_options_that_say_nothing_sensible(line: Line, arguments: list[str], sentence: str):
    """The option, its value and what would do; found before anything is read or asked."""
    ran = line("judge", "good.txt", *arguments, "--judge", "rules")

    assert ran.status == 2
    assert ran.sentence == sentence or (sentence.endswith("…") and ran.sentence.startswith(sentence[:-1]))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[judge.x]\n", "adjudge.toml: unknown key 'judge'; did you mean 'judges'?"),
        (
            "x = 1\n",
            (
                "adjudge.toml: unknown key 'x'; it knows defaults, judges, rubrics, gates, ledger, approvals, prices, "
                "server"
            ),
        ),
        ("judges = 3\n", "adjudge.toml: judges must be a table, written [judges], got 3"),
        ("[defaults]\njuge = 'x'\n", "adjudge.toml: [defaults]: unknown key 'juge'; did you mean 'judge'?"),
        (
            "[defaults]\njudge = 'x'\n[judges.y]\nseats = ['rules']\n",
            "adjudge.toml: [defaults]: judge = 'x' is neither a judge of this file (y) nor a model",
        ),
        ("[defaults]\njudge = 3\n", "adjudge.toml: [defaults]: judge must be a name in quotes, got 3"),
        (
            "[defaults]\ntimeout = nan\n",
            f"adjudge.toml: [defaults]: {LIMIT}; got nan",
        ),
        (
            "[judges.x]\n",
            'adjudge.toml: [judges.x]: seats must be a list of models, like ["openai:gpt-6.1-terra"], got None',
        ),
        (
            "[judges.x]\nseats = []\n",
            'adjudge.toml: [judges.x]: seats must be a list of models, like ["openai:gpt-6.1-terra"], got []',
        ),
        ("[judges]\nx = 3\n", "adjudge.toml: [judges.x] must be a table with seats, got 3"),
        (
            "[judges.x]\nseats = ['rules']\nstrateg = 'fallback'\n",
            "adjudge.toml: [judges.x]: unknown key 'strateg'; did you mean 'strategy'?",
        ),
        ("[rubrics]\nx = 3\n", "adjudge.toml: [rubrics] x must be the path of a rubric file, got 3"),
    ],
)
def test_what_is_written_wrong_is_said_with_its_place(line: Line, text: str, sentence: str):
    """File, table, key, value and what was meant: whatever is wrong is found before anything is judged."""
    Path("adjudge.toml").write_text(text, encoding="utf-8")
    ran = line("judge", "good.txt", *POLITE, "--judge", "rules")

    assert ran.status == 2
    assert ran.sentence == sentence


JUDGE = ("judge", "good.txt", *POLITE)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            JUDGE,
            (
                "there is no judge: set OPENAI_API_KEY, ANTHROPIC_API_KEY or another provider's key, "
                "start a local server such as Ollama, or name one with --judge; adjudge demo judges without one, and "
                "adjudge doctor says what is set here"
            ),
        ),
        (
            (*JUDGE, "--judge", "carefull"),
            "'carefull' is neither a model nor a judge of adjudge.toml; did you mean 'careful'?",
        ),
        (
            ("rubric", "list", "--config", "gone.toml"),
            "the configuration gone.toml does not exist; name another with --config, or leave it out",
        ),
        (
            ("rubric", "list", "--config", "folder"),
            "cannot read the configuration folder: Is a directory; name a file with --config",
        ),
        (("rubric", "list", "--config", "binary.toml"), "binary.toml is not UTF-8 text (byte 0); save it as UTF-8"),
        (
            ("rubric", "list", "--config", "rubrics.toml", "--json"),
            "rubric 'gone' of rubrics.toml: gone.yaml does not exist, so no rubric can be read from it",
        ),
        (
            ("dataset", "convert", "c.jsonl", "x.jsonl", "--on-bad-row", "no"),
            "--on-bad-row must be one of fail, skip; got 'no'",
        ),
        ((*JUDGE, "--judge", "rules"), "no model: give every criterion a rule, or the judge a model"),
        (
            (*JUDGE, "--judge", WORDS, "--record", "no/such/folder.jsonl"),
            "the recording 'no/such/folder.jsonl' cannot be written: No such file or directory",
        ),
        (
            (*JUDGE, "--judge", "python:gone:judge"),
            (
                "python:gone:judge cannot be found: No module named 'gone'; modules are looked for among what is "
                "installed, and in the current folder, or beside the configuration file that names them"
            ),
        ),
    ],
)
def test_a_sentence_of_the_command_line_is_what_it_was(line: Line, arguments: tuple[str, ...], sentence: str):
    """Word for word, on standard error and alone."""
    Path("folder").mkdir()
    Path("binary.toml").write_bytes(b"\xff\xfe\x00")
    Path("rubrics.toml").write_text('[rubrics]\ngone = "gone.yaml"\n', encoding="utf-8")
    Path("c.jsonl").write_text('{"content": "x"}\n', encoding="utf-8")
    if "carefull" in arguments:
        Path("adjudge.toml").write_text("[judges.careful]\nseats = ['rules']\n", encoding="utf-8")
    ran = line(*arguments)

    assert (ran.status, ran.sentence) == (2, sentence)


def put_files() -> None:
    """Contents and data sets that cannot be read, or hold nothing."""
    Path("folder").mkdir()
    Path("binary.bin").write_bytes(b"abc\0d")
    Path("latin.txt").write_bytes("Grüße".encode("latin-1"))
    for name in ("empty.txt", "none.jsonl"):
        Path(name).touch()
    Path("bad.jsonl").write_text("{\n" * 150 + '{"content": "x"}\n', "utf-8")
    Path("answers.csv").write_text("content\nx\n", "utf-8")
    Path("hidden").mkdir()
    Path("hidden/.env").touch()


def put_rubrics() -> None:
    """Rubrics that are wrong, and one that is not read as text."""
    Path("twice.yaml").write_text("name: x\ncriteria:\n  - {name: a, description: b}\n  - {name: a, description: c}\n")
    Path("percent.yaml").write_text("name: x\npassing_threshold: 70\ncriteria:\n  - {name: a, description: b}\n")
    Path("key.yaml").write_text("name: x\ncritera: []\n")
    Path("latin.yaml").write_bytes("Grüße".encode("latin-1"))
    Path("folder").mkdir()


def put_judges() -> None:
    """A module that ends the process."""
    Path("ending_module.py").write_text("import sys\nsys.exit(0)\n", encoding="utf-8")


def configure(text: str) -> Callable[[], None]:
    """An ``adjudge.toml``."""

    def put() -> None:
        write("adjudge.toml", text)

    return put


def keep_runs() -> None:
    """Runs to compare and to redecide: of one judge, of two, of other cases, and of none."""
    good, bad = score(a=1.0, b=0.6), score(a=0.0, b=0.6)
    for name, lines in {"was": {"a": good, "b": bad}, "fewer": {"b": bad}, "other": {"z": good}}.items():
        do([Case(id=each, content="text") for each in lines], Judge(Told("x", lines)), out=name)
    pair = [Told(name, {str(at): good for at in range(4)}) for name in "xy"]
    do(make_cases(4), JudgeChain(pair), out="two")
    do([], Judge(Told("x", {})), out="nothing")
    write("one.jsonl", '{"content": "ugly"}\n')


def keep_long_runs() -> None:
    """Two runs that differ in more cases than are shown."""
    for name, value in {"many": 1.0, "worse": 0.0}.items():
        lines = {str(at): score(a=value, b=0.6) for at in range(120)}
        do(make_cases(120), Judge(Told("x", lines)), out=name)


def keep_entries() -> None:
    """A ledger of four entries, and its head."""
    record("sqlite:///a.db", make_result(), make_result("passed"), {"n": 1})


def hold_back() -> str:
    """The id of the approval under which a gate of ``adjudge.toml`` holds a file back."""
    Path("polite.yaml").write_text("name: P\ncriteria: [{name: criteria, description: Is polite.}]\n", "utf-8")
    Path("bad.txt").write_text("bad", "utf-8")
    Path("another.txt").write_text("worse", "utf-8")
    configure(
        f'[judges.words]\nseats = ["{WORDS}"]\n[rubrics]\npolite = "polite.yaml"\n[gates.publish]\n'
        'rubric = "polite"\njudge = "words"\non_failed = "ask"\n[ledger]\nurl = "sqlite:///adjudge.db"\n'
        f'[approvals]\napprovers = ["{cli.ME}", "bob"]\n'
    )()
    with pytest.raises(SystemExit):
        cli.main(["gate", "check", "publish", "bad.txt", "--json"])
    return use("sqlite:///adjudge.db", lambda approvals: approvals.list())[0].id


def put_leak() -> None:
    """A content with a secret."""
    write("leak.txt", "one\nuse ghp_" + "a1B2c3D4" * 5)


def put_demo() -> None:
    """A folder with the run of the demonstration."""
    with pytest.raises(SystemExit):
        cli.main(["demo", "--out", "folder"])


def keep_probes() -> None:
    """A probe without a baseline."""
    write("probes.yaml", "probes:\n  - {name: new, input: 1}\n")


LONG = "x" * 5000
DENIED = ("approvals", "deny", "{id}", "--reason", "no")
IDENT = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-[0-9a-f]{32}")
HELD: Mapping[str, tuple[str, ...]] = {
    "to look:   adjudge approvals show ID": ("gate", "check", "publish", "bad.txt"),
    "to decide: adjudge approvals approve ID --reason WHY --seen DIGEST   (or deny)": (
        "gate",
        "check",
        "publish",
        "bad.txt",
    ),
    "to resume: adjudge gate resume ID bad.txt": ("gate", "check", "publish", "bad.txt"),
    "to resume: adjudge gate resume ID FILE   (what the gate held back)": (
        *("approvals", "approve", "{id}", "--reason", "yes", "--seen", "{shown}"),
    ),
    "what the gate held back stays blocked; adjudge gate resume ID records that": DENIED,
    f"approval ID: denied by {cli.ME}: no": DENIED,
    "another.txt is not what was held back, which had another digest; put it through the gate again": (
        *("gate", "resume", "{id}", "another.txt"),
    ),
    "--status is one of open, approved, denied, all, got 'closed'": ("approvals", "list", "--status", "closed"),
    "--timeout is a number of seconds from 0 on, got -1.0": ("approvals", "wait", "{id}", "--timeout", "-1"),
}
"""What the command line writes where a file is held back; ID is the approval's."""

ONE = ("judge", *POLITE, "--judge", WORDS)
READ = {
    "nothing to judge: name a file, or - and write to standard input": (),
    "- means standard input, which can be read once; name it once": ("-", "-"),
    "the content: cannot read gone.txt: No such file or directory; name a file that can be read": ("gone.txt",),
    "folder holds no text file; name a folder with texts in it": ("folder",),
    "hidden holds no text file (1 hidden); name a folder with texts in it": ("hidden",),
    "binary.bin is binary (a NUL byte at 3); only text is judged, so convert it first": ("binary.bin",),
    "latin.txt is not UTF-8 text (byte 2); convert it first": ("latin.txt",),
    "empty.txt is empty, so there is nothing to judge; an empty answer can be a case of a .jsonl file": ("empty.txt",),
    "none.jsonl holds no case, so there is nothing to judge; write one JSON object per line": ("none.jsonl",),
    "cannot read gone.jsonl: No such file or directory; name a file that can be read": ("gone.jsonl",),
    "--reference: cannot read gone.md: No such file or directory; name a file that can be read": (
        *("good.txt", "--reference", "gone.md"),
    ),
    "--task: folder is a directory; name the files in it": ("good.txt", "--task", "folder"),
    f"the content: cannot read {LONG}: File name too long; name a file that can be read": (LONG,),
    "5 inputs: 2 passed, 0 failed, 0 undecided, 3 not judged": (
        "good.txt",
        "gone.txt",
        "folder",
        "latin.txt",
        "good.txt",
    ),
    "✓ passed 1.00 of 0.70 needed": ("good.txt",),
}
SPECS = {
    "the name of a model must be a text like 'openai:gpt-6.1-terra', got ''": "",
    "'openai:' needs a name after the colon, like openai:NAME": "openai:",
    "http://127.0.0.1/v1 needs the model's name after '#', like http://127.0.0.1/v1#NAME": "http://127.0.0.1/v1",
    "base_url has a port that is not a number from 0 to 65535": "http://h:99999/v1#m",
    "openai:m needs a key: set OPENAI_API_KEY": "openai:m",
    "gemini:m needs a key: set GEMINI_API_KEY or GOOGLE_API_KEY": "gemini:m",
    "'llama:m.gguf': llama: models arrive in a later version": "llama:m.gguf",
    "the recording 'gone.jsonl' cannot be read: No such file or directory": "replay:gone.jsonl",
    "python:f must be like python:package.module:function": "python:f",
    "python:ending_module:f cannot be imported: SystemExit: 0; mend the module": "python:ending_module:f",
}
RUBRICS = {
    'twice.yaml, line 4: criteria[1].name: "a" is already the name of criteria[0]; give each its own': "twice.yaml",
    (
        "percent.yaml, line 2: passing_threshold: rubric 'x': passing_threshold must be between 0 and 1, got 70; "
        "for 70 % write 0.7"
    ): "percent.yaml",
    "key.yaml, line 2: critera: a rubric has no key 'critera'; did you mean 'criteria'?": "key.yaml",
    "latin.yaml is not UTF-8 text (byte 2); save it as UTF-8": "latin.yaml",
    "folder is a directory; name a rubric file in it": "folder/",
    "gone.yaml does not exist, so no rubric can be read from it": "gone.yaml",
}
USED = {
    "no such command 'juge'; did you mean 'judge'; see adjudge --help": ("juge",),
    "'extra' is not expected here; see adjudge rubric list --help": ("rubric", "list", "extra"),
    "missing argument 'R'; see adjudge rubric show --help": ("rubric", "show"),
    "option '--timeout' requires an argument; see adjudge --help": ("judge", "x", "--timeout"),
    "there is no option --jsn; did you mean --json; see adjudge demo --help": ("demo", "--jsn"),
    "judges: none; set a provider's key, start a local server, or write adjudge.toml": ("doctor",),
    "hosts this can contact: none": ("doctor",),
    "known-bad replies: 23 planted, 0 passed": ("doctor",),
}
TABLES = {
    "adjudge.toml: [judges.x] has itself as a seat (x > y > x); take it out": (
        "[judges.x]\nseats = ['y']\n[judges.y]\nseats = ['x']\n"
    ),
    "adjudge.toml: [judges.x]: 'yy' is neither a model nor a judge of adjudge.toml; did you mean 'yyy'?": (
        "[judges.x]\nseats = ['yy']\n[judges.yyy]\nseats = ['rules']\n"
    ),
    "adjudge.toml: [judges.x]: requests_per_minute must be a finite number above 0, got -1": (
        "[judges.x]\nseats = ['openai:a']\nrequests_per_minute = -1\n"
    ),
}
GATES = {
    "adjudge.toml: [gates.publish] must be a table with a rubric or rules, got 3": "[gates]\npublish = 3\n",
    "adjudge.toml: [gates.publish]: unknown key 'rubrik'; did you mean 'rubric'?": '[gates.publish]\nrubrik = "x"\n',
    "adjudge.toml: [gates.publish]: rubric must be a name in quotes, got 3": "[gates.publish]\nrubric = 3\n",
    "adjudge.toml: [gates.publish]: mode must be one of enforce, observe; got 'off'": (
        '[gates.publish]\nrules = ["json"]\nmode = "off"\n'
    ),
    "there is no gate 'publish' in adjudge.toml; did you mean 'publsh'?": '[gates.publsh]\nrules = ["json"]\n',
    "there is no gate 'publish': adjudge.toml names none; write [gates.NAME], or give --config": "",
}
RUNS = {
    "1 cases that passed in RUN1 are gone or changed, so nobody can say": (
        *("diff", "was", "fewer", "--no-regressions", "--json"),
    ),
    "--fail-under must be between 0 and 1, got 90; for 90 % write 0.9": ("diff", "was", "was", "--fail-under", "90"),
    "give --json or --markdown, not both": ("diff", "was", "was", "--json", "--markdown"),
    "was and other have no case in common that is the same; compare runs of the same data": (
        "diff",
        "was",
        "other",
        "--no-regressions",
    ),
    "no policy was given, so this is the run's own; name another with --rubric, --threshold, --strategy, ...": (
        "redecide",
        "was",
    ),
    "not known for 4: y was not asked then": ("redecide", "two", "--strategy", "consensus"),
    "nothing was judged, so --fail-under is missed": ("report", "nothing", "--fail-under", "0"),
    "kept in R; see it with: adjudge report R": ("run", "one.jsonl", *POLITE, "--judge", WORDS, "--out", "R"),
    (
        "1 unparseable; adjudge doctor --judge says why, and whether --no-token helps; "
        "--out R --resume --retry unparseable asks again"
    ): ("run", "one.jsonl", *POLITE, "--judge", WORDS, "--out", "R"),
    f"--cache keeps only replies of models behind an address and of judges in code, so none of {WORDS}": (
        *("run", "one.jsonl", *POLITE, "--judge", WORDS, "--out", "R", "--cache", "c"),
    ),
}
ENTRIES = {
    ("could not see entries dropped from the end, because no head was pinned"): ("verify",),
    "entry 2: payload erased, recorded at 5": ("erase", "2", "--reason", "asked for"),
    "recorded as entry 5": ("report", "--opinion", "adverse", "--by", "Ada", "--reason", "known", "--record"),
    "the last 1 of 4; --last 0 shows all": ("list", "--last", "1"),
}
DATA = {
    "answers.csv exists already; name a new file": ("convert", "answers.csv", "answers.csv"),
    "skipped: 50 more; 150 in all": ("convert", "bad.jsonl", "out.jsonl", "--on-bad-row", "skip"),
    "answers.csv: 1 case": ("check", "answers.csv"),
}
RULED = {
    "leak.txt: error: secrets: holds GitHub token in line 2": ("--rule", "secrets"),
    "leak.txt: warning: length: is 52 characters long, above the maximum of 20": (
        *("--rule", "{length: 20, severity: warning}"),
    ),
}

WRITTEN: Mapping[str, tuple[Callable[[], str | None], tuple[str, ...]]] = {
    **{text: (hold_back, given) for text, given in HELD.items()},
    **{text: (put_files, (*ONE, *given)) for text, given in READ.items()},
    **{text: (put_judges, (*JUDGE, "--judge", spec)) for text, spec in SPECS.items()},
    **{text: (put_rubrics, ("rubric", "check", name)) for text, name in RUBRICS.items()},
    **{text: (put_files, given) for text, given in USED.items()},
    **{text: (configure(toml), (*JUDGE, "--judge", "x")) for text, toml in TABLES.items()},
    **{text: (configure(toml), ("gate", "check", "publish", "good.txt")) for text, toml in GATES.items()},
    **{text: (keep_runs, given) for text, given in RUNS.items()},
    "20 of the 120 that changed; --top shows more, --html FILE the first 2,000": (
        *(keep_long_runs, ("diff", "many", "worse")),
    ),
    "100 of 120 changes are shown; --json has up to 2,000, and --out RUN2 all": (
        *(keep_long_runs, ("redecide", "many", "--threshold", "0.9")),
    ),
    **{text: (keep_entries, ("ledger", *given, "--ledger", "a.db")) for text, given in ENTRIES.items()},
    **{text: (put_files, ("dataset", *given)) for text, given in DATA.items()},
    **{text: (put_leak, ("rules", "check", "leak.txt", *given)) for text, given in RULED.items()},
    "no gates: write [gates.NAME] into adjudge.toml": (configure(""), ("gate", "list")),
    "probe 'new' has no expected output yet; record it with --record": (
        *(keep_probes, ("probe", "probes.yaml", "--command", "cat", "--judge", WORDS)),
    ),
    "rubric login: gone.yaml does not exist, so no rubric can be read from it": (
        *(configure('[rubrics]\nlogin = "gone.yaml"\n'), ("doctor", "--offline")),
    ),
    "folder holds a run already; name another folder with --out": (put_demo, ("demo", "--out", "folder")),
}
"""A line that the command line writes, what is there before, and the command."""


@pytest.mark.parametrize("text", WRITTEN)
def test_a_line_is_what_it_was(line: Line, text: str):
    """Word for word, whole, on one of the two streams; the id of an approval is ID."""
    prepare, arguments = WRITTEN[text]
    ident = prepare() or ""
    shown = line("approvals", "show", ident, "--json").document["shown"] if "{shown}" in arguments else ""
    ran = line(*[item.replace("{id}", ident).replace("{shown}", shown) for item in arguments])
    written = IDENT.sub("ID", f"{ran.out}{ran.err}").splitlines()

    assert text in [item.removeprefix("adjudge: ") for item in written]


def test_the_environment_runs_no_code(line: Line, monkeypatch: pytest.MonkeyPatch):
    """The variable, what it holds, and where such a name may stand."""
    monkeypatch.setenv("ADJUDGE_JUDGE", WORDS)

    assert line(*JUDGE).sentence == (
        f"ADJUDGE_JUDGE names {WORDS}, which runs code; name it with --judge or in adjudge.toml"
    )


def test_a_world_that_fails_is_told_with_what_to_do(line: Line):
    """The judge, what happened, and what would help."""
    unreachable = line(*JUDGE, "--judge", "http://127.0.0.1:1/v1#m")
    with serve(mode="hang") as provider:
        late = line(*JUDGE, "--judge", provider.spec, "--timeout", "0.05")

    assert unreachable.err == ("adjudge: undecided (error): adjudge doctor says which judges can be reached\n")
    assert "127.0.0.1:1 could not be reached (Connect call failed ('127.0.0.1', 1))\n" in unreachable.out
    assert late.err == "adjudge: undecided (timeout): give it longer with --timeout\n"
    assert "no answer within 0.05 s; raise the timeout of the judge\n" in late.out


def test_a_judge_without_its_key_is_told(line: Line):
    """The judge, its model, and the variable."""
    Path("adjudge.toml").write_text('[judges.a]\nseats = ["openai:m", "mistral:m"]\n', encoding="utf-8")

    assert line("doctor", "--offline").err == (
        "adjudge: judge a, openai:m: openai:m needs a key: set OPENAI_API_KEY\n"
        "adjudge: judge a, mistral:m: mistral:m needs a key: set MISTRAL_API_KEY\n"
    )


@pytest.mark.parametrize("kind", [["image"], {"image": 1}, None, 3])
def test_a_part_whose_type_is_no_text_is_content_like_any_other(kind):
    """Whoever writes the content writes its types; one that is no text must not end the judging of it."""
    model = ScriptedModel({"criteria": [{"name": "criteria", "reasoning": "", "score": 1.0}]})
    content = [{"role": "user", "content": [{"type": kind, "text": "Hello."}]}]
    assert Judge(model).evaluate_sync(content, criteria="Is polite.").passed
    assert not Rules([{"contains": "absent"}]).evaluate_sync(content)[0].passed
