"""What is said when input is wrong: the one place where whole sentences are pinned, so that none is changed unseen.

Each names the thing, the value and the remedy. Elsewhere a test asserts the type of an error, and that these three are
named. Nothing has been asked of any model when one of these is raised.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, get_args

import pytest

import cli_support
from adjudge import (
    Approvals,
    Budget,
    Case,
    CriterionResult,
    Dataset,
    Gate,
    Judge,
    JudgeChain,
    JudgeResult,
    Ledger,
    Rubric,
    Rules,
    SemanticProbe,
    UsageError,
    evaluate_probes,
    judge,
    load_rubric,
    load_rules,
    open_dataset,
    open_model,
    run,
)
from adjudge.dataset import import_promptfoo
from adjudge.errors import Reason
from adjudge.judges import read_result, with_layers
from adjudge.models import Price
from adjudge.testing import FaultyModel, ScriptedModel
from adjudge.trust import Heap, find_interval, make_internal_rate
from cli_support import WORDS, Line, serve
from judge_support import NO, YES, complaint, scores

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


async def export_twice() -> None:
    """The labels of a ledger, written to a file that is there."""
    async with Approvals("sqlite:///adjudge.db") as approvals:
        await approvals.request(JudgeResult(**PASSED), "?", approvers=["ana"])
        for _ in range(2):
            await approvals.export_labels("labels.jsonl")


PASSED: dict[str, Any] = {"outcome": "passed", "judge": "j"}
UNDECIDED: dict[str, Any] = {"outcome": "undecided", "judge": "j", "undecided_because": "timeout"}
REASONS = ", ".join(get_args(Reason))
SKIP = "on_bad_row='skip' (--on-bad-row skip) goes on without it"
LABEL: dict[str, Any] = {"reader": "label", "reader_labels": ("a", "b"), "reader_passes": ("a",)}
PROBE = SemanticProbe(name="p", input="x", expected="x", contract="Polite.")
PRICE = Price(input=1.0, output=1.0)
ENDLESS = {"config": [{}] * 400, "tests": [{}] * 400}
ASSERTION = {"vars": {"q": "a"}, "assert": [{"type": 7}]}
SCENARIO = '{"scenarios": [7]}'

CAUSED: Mapping[str, Callable[[], object]] = {
    # Results
    (
        "a result that is 'undecided' cannot have undecided_because=None; "
        "set the reason exactly when the outcome is 'undecided'"
    ): lambda: JudgeResult(outcome="undecided", judge="j"),
    "an undecided result has no score, but was given 0.0; leave it None": lambda: JudgeResult(**UNDECIDED, score=0.0),
    "a result's score is in 0 to 1, or None; got 95": lambda: JudgeResult(**PASSED, score=95),
    "a result's threshold is in 0 to 1, or None; got '0.5'": lambda: JudgeResult(**PASSED, threshold="0.5"),
    "a result's confidence is in 0 to 1, or None; got nan": lambda: JudgeResult(**PASSED, confidence=math.nan),
    "the score of criterion 'a' is in 0 to 1, or None; got 1.01": lambda: CriterionResult(
        name="a", passed=True, score=1.01
    ),
    "the threshold of criterion 'a' is in 0 to 1, or None; got True": lambda: CriterionResult(
        name="a", passed=True, score=0.5, threshold=True
    ),
    "an outcome is one of passed, failed, undecided; got 'PASSED'": lambda: JudgeResult(
        **PASSED | {"outcome": "PASSED"}
    ),
    f"undecided_because is one of {REASONS}; got 'whatever'": lambda: JudgeResult(
        **UNDECIDED | {"undecided_because": "whatever"}
    ),
    "a result has one of the schemas adjudge/result/1; this dictionary has None": lambda: JudgeResult.from_dict({}),
    (
        "a result has one of the schemas adjudge/chain-result/1, adjudge/result/1; this dictionary has 'adjudge/run/1'"
    ): lambda: read_result({"schema": "adjudge/run/1"}),
    "this is not a dictionary that JudgeResult.to_dict wrote: it has no 'id'": lambda: read_result(
        {key: value for key, value in JudgeResult(**PASSED).to_dict().items() if key != "id"}
    ),
    # Judges
    "judge 'scripted': on_result must be a function, got str": lambda: Judge(ScriptedModel(YES), on_result="log.txt"),
    "judge 'scripted': redact must be a function, got str": lambda: Judge(ScriptedModel(YES), redact="[name]"),
    "a chain: on_result must be a function, got str": lambda: JudgeChain([ScriptedModel(YES)], on_result="log.txt"),
    "passes= and reader_passes both say which labels pass; give one of them": lambda: Judge(
        ScriptedModel(YES), **LABEL
    ).evaluate("x", criteria="Good.", passes=lambda label: True),
    "azure:d needs an address: set AZURE_OPENAI_ENDPOINT": lambda: open_model("azure:d").check(),  # type: ignore[attr-defined]
    # Rubrics
    "rubric 'r': passing_threshold must be between 0 and 1, got 70; for 70 % write 0.7": lambda: Rubric(
        name="r", criteria=[CRITERION], passing_threshold=70
    ),
    # Rules
    "Rules takes a list of rules, or a mapping of names to rules; got 'json'": lambda: Rules("json"),
    "rules are read from a path or a mapping, not from int": lambda: load_rules(3),  # type: ignore[arg-type]
    (
        "rules 1 and 2 are both called 'greets'; give each its own name, as in "
        "Rules({'no-order-number': {'regex': '...'}})"
    ): lambda: Rules([greets, greets]),
    (
        "rules: rules.greets: a python: rule runs code, so it is allowed in adjudge.toml and on the command line only; "
        "in code, pass the function itself"
    ): lambda: load_rules(Rules([greets]).to_dict()),
    # Data
    f"c.jsonl, line 2: the id 'a' stands on line 1 already; give each row an id of its own; {SKIP}": lambda: read(
        '{"id": "a", "content": 1}\n{"id": "a", "content": 2}\n'
    ),
    f"c.jsonl, line 2: the line is not UTF-8 text (byte 13); write the file as UTF-8; {SKIP}": lambda: read(
        '{"content": "a"}\n{"content": "\udcff"}\n'
    ),
    (
        "c.csv, line 1: no column is the content; say which of 'id', 'text' is (--content, or "
        "fields={'content': ...} of open_dataset and Dataset.of)"
    ): lambda: read("id,text\n", "c.csv"),
    "c.csv, line 1: there is no column 'anser'; did you mean 'answer'?; it has 'answer', 'gold'": lambda: read(
        "answer,gold\nx,y\n", "c.csv", fields={"content": "anser"}
    ),
    "data was read already and can be read once only; hand in a file or a list": read_twice,
    (
        "data, row 1: 'qid' is a field of the row and of its metadata; rename one; on_bad_row='skip' (--on-"
        "bad-row skip) goes on without it"
    ): lambda: read_one({"answer": "x", "qid": 1, "metadata": {"qid": 2}}, {"content": "answer"}),
    "a scenario must be a mapping with a list 'config', got 7": lambda: list(
        import_promptfoo(write("c.yaml", SCENARIO))
    ),
    "a scenario makes 160,000 tests, and at most 100,000 are made; split it": lambda: list(
        import_promptfoo(write("c.yaml", json.dumps({"scenarios": [ENDLESS]})))
    ),
    (
        "c.yaml, test 1: an assertion must have a text as its type and a list as its 'assert', got {'type': "
        "7}; on_bad_row='skip' (--on-bad-row skip) goes on without it"
    ): lambda: list(import_promptfoo(write("c.yaml", json.dumps({"tests": [ASSERTION]})))),
    (
        "no shipped rubric is named 'securty'; did you mean 'security'? (there are code-quality, security, "
        "test-coverage, accessibility, documentation, faithfulness, answer-relevance, correctness, tool-use; "
        "a path has a separator or a suffix)"
    ): lambda: load_rubric("securty"),
    (
        "rubric: model: 'python:a:b' has the prefix python:; a rubric may name a provider's model and nothing"
        " else, the rest belongs to the judge"
    ): lambda: load_rubric({"name": "r", "criteria": [CRITERION], "model": "python:a:b"}),
    "folder/x.txt is not a rubric file by its suffix; use .yaml, .yml, .json or .toml": lambda: load_rubric(
        write("folder/x.txt", "")
    ),
    # Runs, ledgers and gates
    (
        "data, row 2: the id 'a' is that of case 0 already; give each row an id of its own; on_bad_row='skip'"
        " (--on-bad-row skip) goes on without it"
    ): lambda: run_again([Case(id="a", content="x"), Case(id="a", content="y")], []),
    (
        "the run run has 1 replies of unknown cost, so nobody knows what is left of a budget; go on without "
        "one, or begin another run"
    ): lambda: run_again(["a"], ["a", "b"], before={}, budget=5, prices={"scripted": PRICE}, resume=True),
    (
        "a ledger's url is sqlite:///FILE or postgresql://HOST/DATABASE, or the path of a file; this one is neither"
    ): lambda: Ledger("mysql://x"),
    "a budget must be dollars, 0 or more; got -1": lambda: Budget(-1),
    "concurrency must be a whole number of at least 1, got 0": lambda: evaluate_probes(
        [(PROBE, "x")], ScriptedModel(YES), concurrency=0
    ),
    "a Gemini model is called like gemini-3.5-flash-lite, got 'a b'": lambda: open_model("gemini:a b"),
    (
        "'opnai:a' is not the name of a model (did you mean openai:?); names begin with openai:, mistral:, "
        "groq:, together:, openrouter:, azure:, ollama:, anthropic:, gemini:, python:, replay:, "
        "http://HOST/v1#NAME or are rules"
    ): lambda: open_model("opnai:a"),
    (
        "'openai:a' has no option 'max_concurency'; it takes base_url, key_env, max_concurrency, "
        "requests_per_minute, max_input_characters, free_text"
    ): lambda: open_model("openai:a?max_concurency=3"),
    "none.yaml does not exist, so no rule can be read from it": lambda: load_rules("none.yaml"),
    (
        "a model is a spec such as 'openai:gpt-6.1-terra', a function, a (name, function) pair or an object "
        "with name and evaluate(prompt), not int"
    ): lambda: Gate("door", rules=["injection-screen"], judge=3),
    "run holds a run already; go on with resume=True (--resume), or name another folder": lambda: run_again(
        ["a"], ["a"]
    ),
    "the run run cannot go on: it was a sample of 2 cases, and the data set has 3 now": lambda: run_again(
        ["a", "b"], ["a", "b", "c"], before={"sample": 1}, sample=1, resume=True
    ),
    "status must be one of open, approved, denied; got 'closed'": lambda: list_approvals(status="closed"),
    "cannot export to labels.jsonl: File exists; name a new file": export_twice,
    (
        "gate 'door': injection-screen is a warning and no other rule is an error, so it would let everything through; "
        "give the rule severity: error, or give a judge"
    ): lambda: Gate("door", rules=["injection-screen"]),
    "an interval needs a count from 0 to 5, of more than 0; got 6 at level 0.95": lambda: find_interval(6, 5),
    "good of a heap must be a whole number of 0 or more; got -1": lambda: make_internal_rate(
        [Heap(verdict="passed", cases=5, good=-1)]
    ),
    "a heap of 5 cases cannot have 6 labels; cases include labelled ones": lambda: make_internal_rate(
        [Heap(verdict="passed", cases=5, good=6)]
    ),
    "the verdict of a heap is one of passed, failed, undecided; got 'pass'": lambda: make_internal_rate(
        [Heap(verdict="pass", cases=5)]
    ),
    "there is no target 'world'; there are run and system": lambda: make_internal_rate(
        [Heap(verdict="passed", cases=5)], target="world"
    ),
}
"""A whole message, and how it is caused."""


@pytest.mark.parametrize("message", CAUSED)
def test_a_message_is_what_it_was(message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Word for word, from a call that anybody can make."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AZURE_OPENAI_ENDPOINT", raising=False)
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "k")

    assert complaint(CAUSED[message]) == message


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


# ---------------------------------------------------------------- the command line


POLITE = ("--criteria", "Is polite.")
LIMIT = "timeout must be a finite number of seconds above 0, or None for no limit"


@pytest.fixture(name="line")
def make_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    """The command line in a folder with a content."""
    cli_support.isolate(monkeypatch, tmp_path)
    cli_support.feed(monkeypatch, terminal=True)
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
        ([*POLITE, "--strategy", "best"], ("--strategy: unknown strategy 'best'; use one of fallback, consensus, "
         "majority, quorum, hedged, cascade")),
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
            "adjudge.toml: unknown key 'x'; it knows defaults, judges, rubrics, gates, ledger, approvals, prices",
        ),
        ("judges = 3\n", "adjudge.toml: judges must be a table, written [judges], got 3"),
        ("[defaults]\njuge = 'x'\n", "adjudge.toml: [defaults]: unknown key 'juge'; did you mean 'judge'?"),
        (
            "[defaults]\njudge = 'x'\n[judges.y]\nseats = ['rules']\n",
            "adjudge.toml: [defaults] judge = 'x' is neither a judge of this file (y) nor a model",
        ),
        ("[defaults]\njudge = 3\n", "adjudge.toml: [defaults] judge must be a name in quotes, got 3"),
        (
            "[defaults]\ntimeout = nan\n",
            f"adjudge.toml: [defaults] {LIMIT}; got nan",
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
                "nobody is here to judge: set OPENAI_API_KEY, ANTHROPIC_API_KEY or another provider's key, "
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
            "--on-bad-row must be fail or skip, got 'no'",
        ),
        ((*JUDGE, "--judge", "rules"), "no model: give every criterion a rule, or the judge a model"),
        (
            (*JUDGE, "--judge", WORDS, "--record", "no/such/folder.jsonl"),
            "the recording 'no/such/folder.jsonl' cannot be written: No such file or directory",
        ),
        (
            (*JUDGE, "--judge", "python:gone:judge"),
            (
                "python:gone:judge cannot be found: No module named 'gone'; modules are looked for in the current "
                "folder and among what is installed"
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
