"""A function that is given the content is a judge in code: what it may ask for and return, and wherever it is taken."""

from __future__ import annotations

import asyncio
import functools
import json
import math
import re
import threading
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import adjudge
from adjudge import (
    Budget,
    Case,
    Criterion,
    Gate,
    InputFirewall,
    Judge,
    JudgeChain,
    JudgeResult,
    PromptFirewall,
    ReplyCache,
    Rubric,
    UsageError,
    compare_sync,
    judge_function,
    model_function,
    open_run,
    run,
)
from adjudge.judges import with_layers
from adjudge.models import RecordingModel, ReplayModel
from adjudge.runs import redecide
from adjudge.testing import ScriptedModel
from kit.cli import serve
from kit.environment import require
from kit.judges import complaint, names
from kit.patience import HANG

pytestmark = pytest.mark.timed


POLITE = "Is polite."


def polite(content: str) -> bool:
    return "thank" in content.lower()


async def polite_later(content: str) -> bool:
    await asyncio.sleep(0)
    return polite(content)


class Polite:
    def __call__(self, content: str) -> bool:
        return polite(content)

    def method(self, content: str) -> bool:
        return polite(content)

    async def later(self, content: str) -> bool:
        return polite(content)


def whole(content: str, task: str, reference: str, context: str, rubric: Rubric) -> bool:
    return (content, task, reference, context, rubric.name) == ("Thank you.", "T", "R", "C", "Is polite")


def with_default(content: str, task: str = "none", limit: int = 5) -> bool:
    return task == "none" and limit == 5


# ---------------------------------------------------------------- what is taken


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(polite, id="function"),
        pytest.param(polite_later, id="async"),
        pytest.param(lambda content: bool(polite(content)), id="lambda"),
        pytest.param(lambda content: polite_later(str(content)), id="returns awaitable"),
        pytest.param(lambda *, content: polite(content), id="keyword only"),
        pytest.param(lambda content, /: polite(content), id="positional only"),
        pytest.param(lambda content, **options: polite(content), id="star"),
        pytest.param(functools.partial(lambda word, content: word in content.lower(), "thank"), id="partial"),
        pytest.param(functools.partial(polite_later), id="async partial"),
        pytest.param(Polite(), id="instance"),
        pytest.param(Polite().method, id="method"),
        pytest.param(Polite().later, id="async method"),
        pytest.param(("named", polite), id="pair"),
        pytest.param(judge_function(lambda text: bool(polite(text))), id="judge_function"),
        pytest.param(judge_function(lambda *texts: bool(polite(*texts))), id="judge_function star"),
        pytest.param(("named", judge_function(lambda text: bool(polite(text)))), id="pair of judge_function"),
    ],
)
def test_whatever_asks_for_content_judges(function: Any):
    """Sync or async, however it is wrapped; the answer is kept as canonical JSON, and nobody was paid."""
    for content, outcome, raw in (("Thank you.", "passed", "true"), ("No.", "failed", "false")):
        result = Judge(function).evaluate_sync(content, criteria=POLITE)
        assert (result.outcome, result.raw_response) == (outcome, raw)
        assert (result.attempts, result.usage, result.model, result.decided_by) == (1, None, None, "judge")


def test_a_function_is_given_what_it_asks_for():
    """Task, reference, context and rubric by name; a default holds where there is nothing to give."""
    options: dict[str, Any] = {"task": "T", "reference": "R", "context": "C"}

    assert Judge(whole).evaluate_sync("Thank you.", criteria=POLITE, **options).passed
    assert Judge(with_default).evaluate_sync("Thank you.", criteria=POLITE).passed
    nothing = Judge(lambda content, task: task is None).evaluate_sync("Thank you.", criteria=POLITE)
    assert nothing.passed


@dataclass
class Order:
    number: int
    note: str


@pytest.mark.parametrize(
    ("content", "seen"),
    [
        ("a text", "a text"),
        ('{"a": 1}', '{"a": 1}'),
        ({"a": [1, None, True]}, {"a": [1, None, True]}),
        (Order(number=3, note="x"), {"number": 3, "note": "x"}),
        ([{"role": "user", "content": "Hi."}], [{"role": "user", "content": "Hi."}]),
        (("a", 1), ["a", 1]),
        (7, 7),
    ],
    ids=repr,
)
def test_text_is_given_as_it_is_and_anything_else_as_the_value_that_is_judged(content: object, seen: object):
    """A value arrives as the JSON that is judged, whatever its type was."""
    assert Judge(lambda content: content == seen).evaluate_sync(content, criteria=POLITE).passed


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda content, prompt: True, "'prompt'"),
        (lambda content, system, user: True, "'system'"),
    ],
)
def test_what_a_judge_in_code_is_not_given_cannot_be_required(function: Any, says: str):
    """The error names the parameter and what may be asked for."""
    message = complaint(Judge, function)
    assert says in message
    assert "task, reference, context, rubric" in message


def test_saying_it_outright_wins_over_the_names():
    """``judge_function`` and ``model_function`` decide, whatever the parameters are called."""
    assert Judge(judge_function(len, name="length")).evaluate_sync("x", criteria=POLITE).passed
    prompts: list[str] = []

    def answer(content: str) -> str:
        prompts.append(content)
        return '{"safe": true}'

    assert Judge(model_function(answer)).ask_sync("Is this safe?").passed
    assert prompts == ["Is this safe?"]
    assert complaint(judge_function, "polite").startswith("judge_function takes a function")
    assert complaint(judge_function, lambda: True).endswith("def judge(content)")
    assert "identity" in complaint(judge_function, polite, identity=" ")


def count_thanks(text: str) -> int:
    return int(polite(text))


def rate_thanks(text: str) -> tuple[float, str]:
    return (0.9, "thanks") if polite(text) else (0.1, "no thanks")


async def pass_thanks(text: str) -> JudgeResult:
    return JudgeResult(outcome="passed" if polite(text) else "failed", judge="mine")


@pytest.mark.parametrize("function", [count_thanks, rate_thanks, pass_thanks])
def test_what_it_says_that_it_returns_makes_a_judge_of_a_function(function: Any):
    """Where the parameter's name says nothing; in a pair it says nothing either, and the function gets the prompt."""
    assert Judge(function).evaluate_sync("Thank you.", criteria=POLITE).outcome == "passed"
    assert Judge(function).evaluate_sync("No.", criteria=POLITE).outcome == "failed"
    result = Judge(("named", function)).evaluate_sync("Thank you.", criteria=POLITE)
    assert (result.undecided_because, "is given a prompt" in result.detail) == ("error", True)


def return_length(text):
    return len(text)


def test_an_int_that_nothing_announces_makes_no_judge():
    """The same function without the annotation is a model, and says what to write."""
    assert "name its parameter content" in complaint(Judge(return_length).evaluate_sync, "x", criteria=POLITE)


@pytest.mark.parametrize("name", ["content", "output", "answer", "response", "completion"])
def test_a_pair_is_a_judge_where_a_parameter_is_for_the_content(name: str):
    """By each of the names, as the function alone: to give it a name changes nothing else."""
    scope: dict[str, Any] = {}
    exec(f"def judge({name}):\n    return {name} == 'Thank you.'", scope)

    for judge in (Judge(scope["judge"]), Judge(("manners", scope["judge"]))):
        assert judge.evaluate_sync("Thank you.", criteria=POLITE).passed
        assert judge.evaluate_sync("No.", criteria=POLITE).outcome == "failed"


def test_an_adapter_stays_a_model():
    """An object with ``name`` and ``evaluate(prompt)`` is given the prompt, whatever it calls it."""

    class Adapter:
        name = "claude-haiku"

        def evaluate(self, content: str) -> str:
            return '{"safe": true}' if content == "Is this safe?" else ""

    assert Judge(Adapter()).ask_sync("Is this safe?").passed


def test_names():
    """The function's own, the pair's, or the one that was given."""
    assert Judge(polite).name == "polite"
    assert Judge(polite, name="manners").name == "manners"
    assert Judge(("manners", polite)).name == "manners"
    assert Judge(judge_function(polite, name="manners")).name == "manners"
    assert Judge(judge_function(polite), name="manners").model.name == "polite"
    assert Judge(("manners", judge_function(polite))).model.name == "manners"
    assert (
        Judge(judge_function(("manners", polite))).name == Judge(model_function(("manners", ascii))).name == "manners"
    )
    assert JudgeChain([polite, polite]).names == ("polite", "polite#2")


# ---------------------------------------------------------------- what it may return


def returning(value: Any, rubric: Any = None, **options: Any) -> JudgeResult:
    return Judge(lambda content: value).evaluate_sync("some content", rubric, **options)


def refusal(value: Any, rubric: Any = None, **options: Any) -> str:
    """The message of the error that the first answer of a function raises."""
    return complaint(returning, value, rubric, **options)


def test_a_number_is_on_the_rubric_s_scale():
    """And a bool is one of its ends."""
    stars = Rubric(name="Stars", scale=[1, 5], criteria=[Criterion(name="good", description="Is good.")])

    assert returning(4, stars).score == 0.75
    assert returning(True, stars).score == 1.0
    assert returning(False, stars).score == 0.0
    assert returning(0, stars).undecided_because == "off_scale"


def test_numpy_s_scalars_are_read():
    """As the numbers and truth values that they are, at any depth."""
    require("numpy", find_spec("numpy"), "pip install 'adjudge[trust]'")
    import numpy as np

    assert returning(np.bool_(True), criteria=POLITE).passed
    assert returning(np.float32(0.5), criteria=POLITE).score == 0.5
    assert returning(np.int64(1), criteria=POLITE).score == 1.0
    entry = {"name": "is-polite", "score": np.float64(0.25)}
    assert returning({"criteria": [entry]}, criteria=POLITE).score == 0.25
    assert returning(np.float64("nan"), criteria=POLITE).undecided_because == "off_scale"
    assert (
        returning({"criteria": [{**entry, "score": np.bool_(True)}]}, criteria=POLITE).undecided_because == "off_scale"
    )
    assert "returned ndarray" in refusal(np.array([1.0]), criteria=POLITE)


def test_a_dict_in_the_shape_of_the_reply_form():
    """With reasoning and suggestions, for any number of criteria."""
    reply = {
        "criteria": {"a": {"score": 1.0, "reasoning": "so"}, "b": {"score": 0.5}},
        "reasoning": "on the whole",
        "suggestions": ("shorter",),
    }
    result = returning(reply, criteria={"a": "Is a.", "b": "Is b."})

    assert (result.score, result.reasoning, result.suggestions) == (0.75, "on the whole", ("shorter",))
    assert result.criterion("a").reasoning == "so"


SHAPES = [
    pytest.param(0.4, 0.4, "", id="number"),
    pytest.param((0.4, "too short"), 0.4, "too short", id="pair"),
    pytest.param((True, None), 1.0, "", id="pair of a bool"),
    pytest.param({"score": 0.4, "reason": "too short"}, 0.4, "too short", id="score and reason"),
    pytest.param({"passed": True, "reasoning": "fine"}, 1.0, "fine", id="passed and reasoning"),
    pytest.param({"passed": False}, 0.0, "", id="passed"),
    pytest.param({"tone": 0.4}, 0.4, "", id="by criterion"),
    pytest.param({"tone": {"score": 0.4, "reasoning": "too short"}}, 0.4, "too short", id="by criterion, with reasons"),
    pytest.param({"tone": (0.4, "too short")}, 0.4, "too short", id="by criterion, as pairs"),
    pytest.param({"key": "x", "score": True, "comment": "fine", "metadata": None}, 1.0, "fine", id="openevals"),
    pytest.param([{"key": "tone", "score": 0.4, "comment": None}], 0.4, "", id="openevals, several"),
]


@pytest.mark.parametrize(("value", "score", "reasoning"), SHAPES)
def test_a_judge_in_code_returns_what_people_write(value: Any, score: float, reasoning: str):
    """Each shape is the reply that says the same; what is kept is what was returned."""
    result = returning(value, criteria={"tone": "Is polite."})

    assert (result.score, result.reasoning or result.criterion("tone").reasoning) == (score, reasoning)
    assert json.loads(result.raw_response or "") is not None


def test_a_number_of_another_library_is_on_the_rubric_s_scale_too():
    """A bool is an end of it, and 0.9 of 1 to 5 is off it: nothing is guessed."""
    stars = Rubric(name="Stars", scale=[1, 5], criteria=[Criterion(name="good", description="Is good.")])

    assert returning({"score": True}, stars).score == 1.0
    assert returning((False, "no"), stars).score == 0.0
    assert returning({"score": 0.9}, stars).undecided_because == "off_scale"


TWO = {"a": "Is a.", "b": "Is b."}


def test_scores_by_criterion():
    """Every key is a criterion, and every criterion has one; one value for both is none of the shapes."""
    result = returning({"a": 1.0, "b": {"score": 0.5, "reasoning": "half"}}, criteria=TWO)
    assert (result.score, result.criterion("b").reasoning) == (0.75, "half")
    for value in (True, 0.5, (1.0, "so"), {"score": 1.0}, {"passed": True}):
        assert names(refusal(value, criteria=TWO), "one value for 2 criteria ('a', 'b')", '{"a": 1, "b": 1}')
    for value in ({"a": 1.0}, [{"key": "a", "score": 1.0}]):
        assert names(refusal(value, criteria=TWO), "no score for 'b'", '{"a": 1, "b": 1}')
    for value in ({"a": 1.0, "b": 1.0, "it": 1.0}, [{"key": name, "score": 1.0} for name in ("a", "b", "it")]):
        assert names(refusal(value, criteria=TWO), "returned 'it'", "'a', 'b'", '{"a": 1, "b": 1}')
    assert returning({"a": 1.0, "b": math.nan}, criteria=TWO).undecided_because == "off_scale"


def test_a_flag_beside_a_score_can_only_contradict_it():
    """Code decides by the score: a generous flag is ignored, and a strict one leaves the content undecided."""
    assert returning({"score": 0.2, "passed": True}, criteria=POLITE).outcome == "failed"
    assert returning({"score": 0.9, "passed": False}, criteria=POLITE).undecided_because == "contradiction"


@pytest.mark.parametrize("name", ["passed", "score"])
def test_a_criterion_called_passed_or_score_asks_for_the_reply_form(name: str):
    """The shape would mean two things, so it raises, and the reply form means one."""
    message = refusal({name: 1.0, "b": 1.0}, criteria={name: "Is a.", "b": "Is b."})
    assert "return the reply form" in message
    assert f'{{"criteria": [{{"name": "{name}"' in message
    entries = [{"name": name, "score": 1.0}, {"name": "b", "score": 1.0}]
    assert returning({"criteria": entries}, criteria={name: "Is a.", "b": "Is b."}).passed


def test_a_scorer_that_skipped_judged_nothing():
    """A score of None is no answer, and no mistake in the program."""
    result = returning({"score": None, "reason": "no reference"}, criteria=POLITE)
    assert result.undecided_because == "unparseable"
    assert "None" in result.detail
    assert "no reference" in result.detail


def test_after_its_first_answer_a_function_s_mistakes_are_results():
    """The content may have brought them about, and must not end what others are judged by."""
    judge = Judge(lambda content: True if content == "fine" else None)

    assert "None" in complaint(judge.evaluate_sync, "odd", criteria=POLITE)
    assert judge.evaluate_sync("fine", criteria=POLITE).passed
    assert judge.evaluate_sync("odd", criteria=POLITE).undecided_because == "unparseable"
    model = Judge(lambda prompt: "no object" if "fine" in prompt else True)
    assert "returned bool" in complaint(model.evaluate_sync, "odd", criteria=POLITE)
    assert model.evaluate_sync("fine", criteria=POLITE).undecided_because == "unparseable"
    assert model.evaluate_sync("odd", criteria=POLITE).undecided_because == "error"


def test_a_mistake_in_a_function_is_raised_wherever_it_is_asked(tmp_path: Path):
    """In a chain that may open, in a gate that allows what is undecided, and by a run, which keeps its folder."""

    def careless(text):
        return True

    rubric = Rubric(name="Polite", criteria=[Criterion(name="tone", description=POLITE)])
    chain = JudgeChain([polite, careless], strategy="consensus", fail_open=True, stop_early=False)
    gate = Gate("publish", rubric=rubric, judge=careless, on_undecided="allow")
    for call, arguments in (
        (chain.evaluate_sync, ("Thank you.", rubric)),
        (gate.check_sync, ("Thank you.",)),
        (run(CASES, careless, rubric, out=tmp_path / "run").finish_sync, ()),
    ):
        assert "judge_function(careless)" in complaint(call, *arguments)
    assert "judge_function(careless)" in complaint(compare_sync, "a", "b", judge=careless, criteria=POLITE)


def test_yes_or_no():
    """A ready-made prompt is the content then, and a bool answers it; a number is no yes."""
    asked = Judge(lambda content: content == "Is this safe?")

    assert asked.ask_sync("Is this safe?").passed
    assert asked.ask_sync("Is that safe?").outcome == "failed"
    assert Judge(lambda content: (True, "checked")).ask_sync("Is this safe?").reasoning == "checked"
    assert Judge(lambda content: {"passed": False, "reason": "no"}).ask_sync("Is this safe?").outcome == "failed"
    assert "a bool" in complaint(Judge(lambda content: 1.0).ask_sync, "Is this safe?")
    assert Judge(lambda content: {"safe": True, "passed": False}).ask_sync("?").undecided_because == "contradiction"


@dataclass
class Verdict:
    passed: bool
    note: str = ""


def test_an_instance_of_the_result_format():
    """It is read back from its JSON, so what is kept is what was judged."""
    result = returning(Verdict(passed=True, note="fine"), result_format=Verdict)
    assert result.passed
    assert result.value == Verdict(passed=True, note="fine")
    assert returning({"passed": False, "note": ""}, result_format=Verdict).outcome == "failed"
    assert "a Verdict" in refusal(True, result_format=Verdict)
    both = {"criteria": [{"name": "is-polite", "score": 1.0}], "passed": True, "note": ""}
    assert returning(both, criteria=POLITE, result_format=Verdict).passed
    assert (
        returning(Verdict(passed=True), criteria=POLITE, result_format=Verdict).undecided_because == "missing_criterion"
    )
    long = returning(Verdict(passed=False, note="long"), result_format=Verdict, passes=lambda it: len(it.note) > 3)
    assert long.passed


def test_a_result_of_a_judge_inside():
    """A function may ask another judge about the same question, and hand its result on."""
    inner = Judge(ScriptedModel({"criteria": [{"score": 0.9}], "reasoning": "r"}))

    async def ask(content: str, rubric: Rubric) -> JudgeResult:
        return await inner.evaluate(content, rubric)

    result = Judge(ask).evaluate_sync("Thank you.", criteria=POLITE)
    assert (result.outcome, result.score, result.reasoning) == ("passed", 0.9, "r")
    value = JudgeResult(outcome="passed", judge="mine", value=Verdict(passed=True), reasoning="r")
    assert returning(value, result_format=Verdict).passed
    assert returning(replace(value, outcome="failed"), result_format=Verdict).undecided_because == "contradiction"
    assert returning(replace(value, value=None), result_format=Verdict).undecided_because == "unparseable"
    bare = JudgeResult(outcome="passed", judge="mine")
    assert returning(bare, criteria=POLITE).score == 1.0
    assert returning(JudgeResult(outcome="failed", judge="mine", score=0.5), criteria=POLITE).score == 0.5


def test_a_result_on_another_scale_is_brought_back():
    """Scores of a result are in 0 to 1; a level keeps its value, whatever the rounding."""
    tenths = Rubric(
        name="T",
        scale=[0.1, 0.7],
        criteria=[Criterion(name="c", description="d", levels={0.1: "no", 0.3: "some", 0.7: "all"})],
    )
    inner = Judge(lambda content: 0.3)

    async def ask(content: str, rubric: Rubric) -> JudgeResult:
        return await inner.evaluate(content, rubric)

    assert Judge(ask).evaluate_sync("x", tenths).score == inner.evaluate_sync("x", tenths).score
    assert returning(JudgeResult(outcome="passed", judge="m"), tenths).score == 1.0


@pytest.mark.parametrize(
    ("value", "says"), [(None, "None"), ("yes", "a text"), ([1], "a tuple or list (number)"), ({1}, "set")]
)
def test_an_error_of_shape_says_what_came_and_what_is_expected(value: object, says: str):
    """In one sentence, with the name of the criterion to use."""
    message = refusal(value, criteria={"tone": "Is polite."})

    assert f"the function returned {says}" in message
    assert "expected is a bool, a number from 0 to 1" in message
    assert '"tone"' in message


# ---------------------------------------------------------------- options, time, failures


@pytest.mark.parametrize("options", [{"reader": "Rating: [[7]]"}, {"scoring": "expected"}, {"logprobs": True}], ids=str)
def test_options_about_a_reply_s_text_are_refused(options: dict[str, Any]):
    """There is no text, so they would do nothing."""
    assert next(iter(options)) in complaint(Judge, polite, **options)


def test_options_of_models_change_nothing():
    """The token, the form and another try are for models."""
    asked = 0

    def count(content: str) -> float:
        nonlocal asked
        asked += 1
        return 7.0

    result = Judge(count, reask=3, token=False, structured="schema").evaluate_sync("x", criteria=POLITE)
    assert (result.undecided_because, asked, result.attempts) == ("off_scale", 1, 1)


def test_time_limits_and_failures_are_those_of_models():
    """A function that hangs is a timeout, one that raises an error, and fail_open is asked for by name."""
    release = threading.Event()

    def hang(content: str) -> bool:
        return release.wait(HANG)

    def broken(content: str) -> bool:
        raise ValueError("no dictionary")

    try:
        assert Judge(hang, timeout=0.05).evaluate_sync("x", criteria=POLITE).undecided_because == "timeout"
    finally:
        release.set()
    result = Judge(broken).evaluate_sync("x", criteria=POLITE)
    assert result.undecided_because == "error"
    assert re.fullmatch(r"broken raised ValueError: no dictionary at test_function_judge.py:\d+", result.detail)
    assert JudgeChain([broken], fail_open=True).evaluate_sync("x", criteria=POLITE).decided_by == "policy"
    assert not JudgeChain([broken]).evaluate_sync("x", criteria=POLITE).passed


def test_an_exception_of_a_library_is_placed_in_the_function_that_called_it():
    """Its own line would tell nobody what to mend."""

    def broken(content: str) -> bool:
        return bool(json.loads(content))

    result = Judge(broken).evaluate_sync("no JSON", criteria=POLITE)
    line = broken.__code__.co_firstlineno + 1
    assert result.detail.endswith(f" at test_function_judge.py:{line}")


def test_a_misspelt_criterion_is_named():
    """Beside those of the rubric and the nearest of them: the slip would leave every case undecided."""
    criteria = {"polite": "Is polite.", "short": "Is short."}
    for value in ({"polite": 1.0, "shrt": 1.0}, [{"key": name, "score": 1.0} for name in ("polite", "shrt")]):
        assert names(refusal(value, criteria=criteria), "'shrt'", "'polite', 'short'", "did you mean 'short'?")


def test_criteria_that_depend_on_the_content_end_no_batch():
    """After the first answer that has them all, content that brings others about is undecided, and the rest is judged.

    In the reply form, which may be a model's, they are undecided from the beginning.
    """
    scores = {"fine": {"a": 1.0, "b": 1.0}, "less": {"a": 1.0}, "more": {"a": 1.0, "b": 1.0, "c": 1.0}, "one": 1.0}
    judge = Judge(lambda content: scores[content])

    assert judge.evaluate_sync("fine", criteria=TWO).passed
    for content in ("less", "more", "one"):
        assert judge.evaluate_sync(content, criteria=TWO).undecided_because == "unparseable"
    assert judge.evaluate_sync("fine", criteria=TWO).passed
    for entries in ([{"name": "a", "score": 1.0}], [{"name": name, "score": 1.0} for name in ("a", "b", "c")]):
        assert returning({"criteria": entries}, criteria=TWO).undecided_because == "missing_criterion"


def test_a_criterion_that_a_rule_decides_is_not_the_function_s():
    """The error names those that it is asked about."""
    ruled = Rubric(
        name="Ruled",
        criteria=[
            Criterion(name="hashes", description="Uses bcrypt.", rule={"regex": "bcrypt"}),
            Criterion(name="clear", description="Is clear."),
        ],
    )

    assert returning({"clear": 1.0}, ruled).score == 0.5
    assert names(refusal({"hashes": 1.0, "clear": 1.0}, ruled), "'hashes'", "asked about are 'clear'")


def test_criteria_with_weights_are_a_rubric():
    """What was written is nearly right, and the remedy is named."""
    weighted = [{"name": "polite", "description": "Is polite.", "weight": 2}]
    assert "rubric={'name': ..., 'criteria': [...]}" in complaint(polite_judge_of, weighted)


def polite_judge_of(criteria: list) -> object:
    return Judge(polite).evaluate_sync("x", criteria=criteria)


def test_a_model_of_the_call_is_asked_in_place_of_the_function():
    """As for any judge; a name that is no full one has no provider to be of."""
    message = complaint(Judge(polite).evaluate_sync, "x", criteria=POLITE, model="gpt-6.1-terra")
    assert "polite has no other models" in message


# ---------------------------------------------------------------- wherever a judge is taken


def test_chains_of_functions_and_models():
    """A function is a seat like any other, under any strategy."""
    model = ScriptedModel({"criteria": [{"score": 0.9}]})

    assert JudgeChain([polite, model], strategy="consensus").evaluate_sync("Thank you.", criteria=POLITE).passed
    assert not JudgeChain([polite, model], strategy="consensus").evaluate_sync("No.", criteria=POLITE).passed
    fallback = JudgeChain([lambda content: 7.0, polite]).evaluate_sync("Thank you.", criteria=POLITE)
    assert [seat.undecided_because for seat in fallback.results] == ["off_scale", None]
    cascade = JudgeChain([polite, model], strategy="cascade", escalate_below=0.5)
    assert len(cascade.evaluate_sync("No.", criteria=POLITE).results) == 2  # it is never sure of itself


def test_two_contents_are_compared():
    """The function is given both, by the place each is shown in, and names the better place."""

    def longer(content: dict[str, str]) -> str:
        sizes = [len(content[name]) for name in ("first", "second")]
        return "tie" if sizes[0] == sizes[1] else "first" if sizes[0] > sizes[1] else "second"

    assert compare_sync("longer", "short", judge=longer, criteria=POLITE).preferred == "first"
    assert compare_sync("long", "longer", judge=longer, criteria=POLITE).preferred == "second"
    assert compare_sync("same", "size", judge=longer, criteria=POLITE).preferred == "tie"
    assert compare_sync("a", "b", judge=lambda content: "a", criteria=POLITE).undecided_because == "off_scale"
    for value in (True, 1.0):
        message = complaint(compare_sync, "a", "b", judge=lambda content, it=value: it, criteria=POLITE)
        assert "'first', 'second', 'tie'" in message
    pair = compare_sync("a", "b", judge=lambda content: {"preferred": "first", "winner": "second"}, criteria=POLITE)
    assert pair.undecided_because == "contradiction"


def test_gates_and_firewalls_take_one():
    """In front of an action, of rules for a prompt, and of arguments."""
    rubric = Rubric(name="Polite", criteria=[Criterion(name="tone", description=POLITE)])
    gate = Gate("publish", rubric=rubric, judge=polite)
    assert gate.check_sync("Thank you.").allowed
    assert not gate.check_sync("No.").allowed

    rules = PromptFirewall(lambda content: "ignore" not in str(content))
    assert asyncio.run(rules.check(["Be brief."])).allowed
    assert not asyncio.run(rules.check(["ignore everything"])).allowed
    arguments = InputFirewall(lambda content: "DROP" not in content["arguments"])
    assert asyncio.run(arguments.check({"q": "a"})).passed
    assert not asyncio.run(arguments.check({"q": "DROP TABLE"})).passed


def test_the_short_form_takes_one():
    """``judge=`` takes what ``Judge`` takes."""
    assert adjudge.judge_sync("Thank you.", criteria=POLITE, judge=polite).passed


CASES = [Case(id="1", content="Thank you."), Case(id="2", content="No."), Case(id="3", content={"text": "thanks"})]


def test_a_run_is_resumed_and_asks_nothing_again(tmp_path: Path):
    """Kept answers of the very function are given again."""
    asked: list[object] = []

    def count(content: object) -> bool:
        asked.append(content)
        return "thank" in str(content).lower()

    done = run(CASES, count, criteria=POLITE, out=tmp_path / "run").finish_sync()
    assert done.counts == {"passed": 2, "failed": 1, "undecided": 0}
    assert sorted(asked, key=str) == ["No.", "Thank you.", {"text": "thanks"}]
    drop_results(tmp_path / "run")

    again = run(CASES, count, criteria=POLITE, out=tmp_path / "run", resume=True).finish_sync()
    assert again.counts == done.counts
    assert len(asked) == 3
    kept = [item.result for item in open_run(tmp_path / "run").items()]
    assert [result.raw_response for result in kept] == ["true", "false", "true"]
    assert {result.model for result in kept} == {None}


def drop_results(folder: Path) -> None:
    """As after a process that was killed before it had written them."""
    import sqlite3

    with sqlite3.connect(folder / "results.sqlite") as connection:
        connection.execute("DELETE FROM results")


def make_judge(limit: int) -> Any:
    def short(content: str) -> bool:
        return len(content) < limit

    return short


def test_a_run_whose_function_changed_is_not_resumed(tmp_path: Path):
    """The sentence names the function; so does that for one of another name."""
    run(CASES, make_judge(5), criteria=POLITE, out=tmp_path / "run").finish_sync()

    with pytest.raises(UsageError, match=r"the code of the function .*short") as caught:
        run(CASES, make_judge(6), criteria=POLITE, out=tmp_path / "run", resume=True).finish_sync()
    assert "resume with what it began with" in str(caught.value)
    renamed = judge_function(polite, name="short")
    with pytest.raises(UsageError, match="the judge changed"):
        run(CASES, renamed, criteria=POLITE, out=tmp_path / "run", resume=True).finish_sync()
    as_model = model_function(make_judge(5))
    with pytest.raises(UsageError, match="the judge changed"):
        run(CASES, as_model, criteria=POLITE, out=tmp_path / "run", resume=True).finish_sync()


def test_a_run_is_redecided_from_what_its_functions_said(tmp_path: Path):
    """Another threshold, other weights and another strategy, and nobody is asked; each seat was heard to its end."""
    asked = 0

    def score(content: str) -> dict[str, Any]:
        nonlocal asked
        asked += 1
        return {"criteria": [{"name": "a", "score": 0.6}, {"name": "b", "score": 1.0}]}

    rubric = Rubric(
        name="Two",
        passing_threshold=0.9,
        criteria=[Criterion(name="a", description="Is a."), Criterion(name="b", description="Is b.")],
    )
    chain = JudgeChain([("x", score), ("y", score)], strategy="consensus", stop_early=False)
    run(CASES[:1], chain, rubric, out=tmp_path / "run").finish_sync()
    before = asked

    lower = redecide(tmp_path / "run", threshold=0.7)
    assert lower.after["passed"] == 1
    alone = Rubric(name="One", passing_threshold=0.9, criteria=[Criterion(name="b", description="Is b.")])
    assert redecide(tmp_path / "run", rubric=alone, strategy="majority").after["passed"] == 1
    assert redecide(tmp_path / "run").changed == 0
    assert asked == before
    out = redecide(tmp_path / "run", threshold=0.7, out=tmp_path / "again")
    assert out.folder is not None
    assert open_run(out.folder).counts["passed"] == 1


def test_what_a_named_model_said_in_the_place_of_a_function_is_read_as_a_model_s(tmp_path: Path):
    """The rubric named a model, so that one answered, with its token: its reply is nothing the function returned."""
    judge = Judge(lambda content: 0.2, name="short")
    with serve(score=0.6) as provider:
        rubric = Rubric(name="r", model=provider.spec, criteria=[Criterion(name="c", description="Is c.")])
        before = run(["x"], judge, rubric, out=tmp_path / "run").finish_sync()
    redecision = redecide(tmp_path / "run", threshold=0.5)

    assert (before.counts["failed"], len(provider.bodies)) == (1, 1)
    assert (redecision.after["passed"], redecision.after["undecided"], redecision.unknown) == (1, 0, 0)


def test_a_result_that_failed_is_redecided_by_its_scores(tmp_path: Path):
    """By a lower threshold it would have passed, so its outcome is not held against its scores."""
    inner = Judge(ScriptedModel({"criteria": [{"score": 0.6}]}))

    async def ask(content: str, rubric: Rubric) -> JudgeResult:
        return await inner.evaluate(content, rubric)

    done = run(CASES[:1], ask, criteria=POLITE, out=tmp_path / "run").finish_sync()
    assert done.counts["failed"] == 1
    assert redecide(tmp_path / "run", threshold=0.5).after["passed"] == 1


def test_a_run_of_pairs(tmp_path: Path):
    """Both orders are kept, and given again."""
    cases = [Case(id="1", content={"a": "long text", "b": "text"})]

    def longer(content: dict[str, str]) -> str:
        return "first" if len(content["first"]) > len(content["second"]) else "second"

    done = run(cases, longer, criteria=POLITE, pairs=True, out=tmp_path / "run").finish_sync()
    assert [item.result.preferred for item in done.items()] == ["first"]


def test_a_cache_keeps_the_answers_of_this_very_code(tmp_path: Path):
    """Another threshold of the rubric, which the function may look at, is another question."""
    asked: list[str] = []

    def count(content: str, rubric: Rubric) -> float:
        asked.append(content)
        return rubric.passing_threshold

    with ReplyCache(tmp_path / "cache.sqlite") as cache:
        judge = with_layers(Judge(count), cache=cache)
        for threshold in (0.5, 0.5, 0.6):
            assert judge.evaluate_sync("x", criteria=POLITE, threshold=threshold).passed
        assert len(asked) == 2
        other = with_layers(Judge(("count", lambda content: 0.0)), cache=cache)
        assert not other.evaluate_sync("x", criteria=POLITE, threshold=0.5).passed


def test_a_recording_is_replayed_for_the_function(tmp_path: Path):
    """Without a call to it, and only where it is the judge."""
    path = tmp_path / "said.jsonl"
    first = Judge(RecordingModel(polite, path)).evaluate_sync("Thank you.", criteria=POLITE)
    again = Judge(ReplayModel(path, function=polite)).evaluate_sync("Thank you.", criteria=POLITE)

    assert (again.outcome, again.raw_response, again.model) == (first.outcome, "true", None)
    assert not Judge(ReplayModel(path)).evaluate_sync("Thank you.", criteria=POLITE).passed
    assert "judge in code" in complaint(ReplayModel, path, function=lambda prompt: "")


def test_a_budget_does_not_hold_for_a_function_and_holds_around_it():
    """It has no price; a model that the call names in its place is not asked past the budget."""
    judge = with_layers(Judge(polite), budget=Budget(1.0))
    assert judge.evaluate_sync("Thank you.", criteria=POLITE).passed
    message = complaint(judge.evaluate_sync, "x", criteria=POLITE, model="http://127.0.0.1:9/v1#nobody")
    assert "a budget needs the price" in message


def test_an_identity_of_one_s_own(tmp_path: Path):
    """A text in place of the digest of the code: the run goes on with other code, until the text is another."""
    run(CASES[:1], judge_function(make_judge(5), identity="v1"), criteria=POLITE, out=tmp_path / "run").finish_sync()
    same = judge_function(make_judge(6), identity="v1")
    run(CASES[:1], same, criteria=POLITE, out=tmp_path / "run", resume=True).finish_sync()

    changed = judge_function(make_judge(5), identity="v2")
    with pytest.raises(UsageError, match="the code of the function"):
        run(CASES[:1], changed, criteria=POLITE, out=tmp_path / "run", resume=True).finish_sync()


def test_a_run_of_functions_keeps_its_pace_under_a_budget(tmp_path: Path):
    """Nothing is paid for, so nothing waits, and the cost of what was said before is not unknown."""
    running = most = 0

    async def slow(content: object) -> bool:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1
        return True

    cases = [Case(id=str(number), content="x") for number in range(8)]
    run(cases[:4], slow, criteria=POLITE, out=tmp_path / "run", concurrency=4).finish_sync()
    done = run(cases, slow, criteria=POLITE, out=tmp_path / "run", concurrency=4, resume=True, budget=1.0).finish_sync()
    assert done.counts["passed"] == 8
    assert most == 4
