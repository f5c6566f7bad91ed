"""Ten functions each of six people, written as they would write them: a function works, or says what to write."""

import json
import re
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial, wraps
from importlib.util import find_spec
from typing import Any, NamedTuple, Optional, TypedDict

import pytest

from adjudge import Criterion, Judge, Rubric, UsageError
from kit.environment import require

np = pytest.importorskip("numpy")

GOOD = "Thank you for asking: the parcel arrives on Tuesday, please keep the receipt."
BAD = "lol no"
POLITE = Rubric(name="polite", criteria=[Criterion(name="polite", description="Is polite.")], passing_threshold=0.7)

SHAPES_OF_A_VERDICT = r'expected is a bool, a number from 0 to 1, \(score, "reason"\)'
"""The remedy for a judge in code that returns something else; the message goes on with the other shapes."""


class Works(NamedTuple):
    """The good text passes and the bad one fails."""

    function: Any


class IsUndecided(NamedTuple):
    """It judged nothing of this content, which stops no run, and the result says in these words what to return."""

    function: Any
    words: str


class RaisesWhenMade(NamedTuple):
    """Making the judge raises `UsageError`, whose message has these words, the remedy."""

    function: Any
    words: str


class RaisesWhenCalled(NamedTuple):
    """The first judgement raises `UsageError`, whose message has these words, the remedy."""

    function: Any
    words: str


# --- somebody who knows pytest and began yesterday ------------------------------------------------


def is_polite(content):
    return "please" in content.lower()


def is_short_enough(output):
    return 10 <= len(output) <= 100


def has_thanks(text):
    return "thank" in text.lower()


def has_thanks_typed(text: str) -> bool:
    return "thank" in text.lower()


def check_answer(answer: str):
    return bool(re.search("Tuesday|Wednesday", answer))


def with_assert(content):
    return "please" in content, "it should say please"


def forgot_return(content):
    "please" in content  # noqa: B015  the mistake is the point


def says_yes(content):
    return "yes" if "please" in content else "no"


def nothing_to_read() -> bool:
    return True


def matches_expected(answer, expected):
    return answer == expected


BEGINNER = [
    Works(is_polite),
    Works(is_short_enough),
    RaisesWhenCalled(has_thanks, r"name its parameter content \(def has_thanks\(content\)\)"),
    Works(has_thanks_typed),
    Works(check_answer),
    Works(with_assert),
    RaisesWhenCalled(forgot_return, f"returned None; {SHAPES_OF_A_VERDICT}"),
    RaisesWhenCalled(says_yes, f"a text \\(str\\), 'yes'; {SHAPES_OF_A_VERDICT}"),
    RaisesWhenMade(nothing_to_read, r"give it one: def judge\(content\)"),
    RaisesWhenMade(matches_expected, "name it reference, or"),
]


# --- a data scientist -----------------------------------------------------------------------------


def numpy_mean(output: str):
    return np.mean([word in output.lower() for word in ("thank", "please")])


def numpy_bool(output: str):
    return np.bool_("please" in output)


def numpy_float32(response):
    return np.float32(0.9) if "please" in response else np.float32(0.1)


def numpy_int(response):
    return np.int64(len(response) > 10)


def zero_dimensional(completion):
    return np.array(0.8 if "please" in completion else 0.2)


def pandas_contains(output):
    pd = pytest.importorskip("pandas")
    return pd.Series([output]).str.contains("please").iloc[0]


def annotated_float(row: str) -> float:
    return statistics.fmean("please" in part for part in (row, row))


def scores_by_name(content):
    return {"polite": np.float64(0.9 if "please" in content else 0.1)}


def whole_array(output):
    return np.array([0.8, 0.9])


def not_a_number(output):
    return {"scores": [1, 2]}


SCIENTIST = [
    Works(numpy_mean),
    Works(numpy_bool),
    Works(numpy_float32),
    Works(numpy_int),
    Works(zero_dimensional),
    Works(pandas_contains),
    Works(annotated_float),
    Works(scores_by_name),
    RaisesWhenCalled(whole_array, f"returned ndarray; {SHAPES_OF_A_VERDICT}"),
    RaisesWhenCalled(not_a_number, f"the unknown member 'scores'; {SHAPES_OF_A_VERDICT}"),
]


# --- somebody who comes from autoevals ------------------------------------------------------------


@dataclass
class Score:
    """As `autoevals.Score`."""

    name: str
    score: float | None
    metadata: dict[str, Any] = field(default_factory=dict)
    error: Exception | None = None


class Contains:
    """As a scorer of autoevals: an instance that is called."""

    def __call__(self, output, expected=None, **kwargs):
        return Score(name="Contains", score=1.0 if "please" in output else 0.0, metadata={"rationale": "the word"})


class NeedsExpected:
    def __call__(self, output, expected):
        return Score(name="Exact", score=float(output == expected))


def braintrust_scorer(input, output, expected=None, metadata=None):  # noqa: A002  as Braintrust calls it
    return "please" in output


def score_object(output):
    return Score(name="polite", score=0.9 if "please" in output else 0.2)


def score_dict(output, **kwargs):
    return {"name": "polite", "score": 0.9 if "please" in output else 0.2}


def skipped(output):
    return Score(name="polite", score=None)


def with_error(output):
    return Score(name="polite", score=None, error=ValueError("no key"))


async def async_scorer(output, expected=None):
    return Score(name="polite", score=1 if "please" in output else 0)


def list_of_scores(output):
    return [Score(name="a", score=1.0), Score(name="b", score=0.0)]


AUTOEVALS = [
    Works(Contains()),
    RaisesWhenMade(Contains, r"hand in an instance of it, such as Contains\(\)"),
    RaisesWhenMade(NeedsExpected(), "name it reference, or"),
    RaisesWhenMade(braintrust_scorer, "name it task, or"),
    Works(score_object),
    Works(score_dict),
    IsUndecided(skipped, "return a number where the content should count, 0 where it fails"),
    IsUndecided(with_error, r"None (no key), so it judged nothing; return a number"),
    Works(async_scorer),
    RaisesWhenCalled(list_of_scores, "returned 'a', and the criteria that it is asked about are 'polite'; expected is"),
]


# --- from pydantic-evals --------------------------------------------------------------------------


@dataclass
class EvaluationReason:
    """As `pydantic_evals.evaluators.EvaluationReason`."""

    value: bool | float | str
    reason: str | None = None


@dataclass(repr=False)
class PoliteEvaluator:
    """As an evaluator of pydantic-evals, which is given a context."""

    word: str = "please"

    def evaluate(self, ctx) -> bool:
        return self.word in ctx.output


def reason_bool(output: str) -> EvaluationReason:
    return EvaluationReason(value="please" in output, reason="the word")


def reason_float(output: str):
    return EvaluationReason(value=0.9 if "please" in output else 0.1)


def reason_label(output: str):
    return EvaluationReason(value="good")


def reasons_by_name(output: str):
    return {"polite": EvaluationReason(value=0.9 if "please" in output else 0.1, reason="the word")}


def of_context(ctx) -> bool:
    return "please" in ctx.output


def scores_of_each(output: str) -> dict[str, bool]:
    return {"polite": "please" in output}


def untyped_context(ctx):
    return True


class Bound:
    def check(self, output: str) -> bool:
        return "please" in output


PYDANTIC = [
    Works(reason_bool),
    Works(reason_float),
    RaisesWhenCalled(reason_label, f"'score': 'good'; {SHAPES_OF_A_VERDICT}"),
    Works(reasons_by_name),
    RaisesWhenMade(PoliteEvaluator(), r"a function, .* or an object with name and evaluate\(prompt\)"),
    RaisesWhenMade(PoliteEvaluator, r"hand in an instance of it, such as PoliteEvaluator\(\)"),
    RaisesWhenMade(of_context, "name it content, or"),
    RaisesWhenCalled(untyped_context, r"name its parameter content \(def untyped_context\(content\)\)"),
    Works(Bound().check),
    Works(scores_of_each),
]


# --- from openevals and LangSmith -----------------------------------------------------------------


class EvaluatorResult(TypedDict):
    """As `openevals.types.EvaluatorResult`."""

    key: str
    score: float | bool
    comment: str | None
    metadata: dict[str, Any] | None


def openevals_bool(output: str):
    return EvaluatorResult(key="polite", score="please" in output, comment="the word", metadata=None)


def openevals_float(output: str):
    return EvaluatorResult(key="polite", score=0.9 if "please" in output else 0.1, comment=None, metadata=None)


def openevals_signature(*, inputs, outputs, reference_outputs=None):
    return "please" in outputs


def langsmith_run(run, example) -> dict:
    return {"key": "polite", "score": 1}


def langsmith_results(output):
    return {"results": [{"key": "a", "score": 1}]}


def passed_reasoning(output):
    return {"passed": "please" in output, "reasoning": "the word"}


def score_reason(response, reference=None):
    return {"score": 0.9 if "please" in response else 0.1, "reason": "the word"}


def score_and_comment(response: str, task: str | None = None):
    return {"score": 0.9 if "please" in response else 0.1, "comment": "the word"}


def by_criterion(output):
    return {"polite": {"score": 0.9 if "please" in output else 0.1, "reasoning": "the word"}}


async def async_openevals(*, output):
    return {"key": "polite", "score": 1.0 if "please" in output else 0.0}


LANGSMITH = [
    Works(openevals_bool),
    Works(openevals_float),
    RaisesWhenMade(openevals_signature, r"name the parameter content \(def judge\(content\)\)"),
    RaisesWhenCalled(langsmith_run, r"name its parameter content \(def langsmith_run\(content\)\)"),
    RaisesWhenCalled(langsmith_results, f"the unknown member 'results'; {SHAPES_OF_A_VERDICT}"),
    Works(passed_reasoning),
    Works(score_reason),
    Works(score_and_comment),
    Works(by_criterion),
    Works(async_openevals),
]


# --- a backend engineer with a client of their own ------------------------------------------------


class Client:
    """A client of a language model that answers as a careful judge would."""

    def complete(self, prompt: str) -> str:
        return answer(prompt)

    async def chat(self, messages: list[dict[str, str]]) -> str:
        return answer("\n".join(message["content"] for message in messages))


def answer(prompt: str) -> str:
    """A reply in the form that the prompt asks for."""
    token = re.search(r'"token": "([0-9a-z]{8})"', prompt)
    assert token, prompt
    score = 1.0 if "please keep the receipt" in prompt else 0.0
    return json.dumps({"token": token[1], "criteria": {"polite": {"reasoning": "the word", "score": score}}})


def logged(function: Callable[..., str]) -> Callable[..., str]:
    @wraps(function)
    def inner(*args: Any, **kwargs: Any) -> str:
        return function(*args, **kwargs)

    return inner


@logged
def decorated(prompt: str) -> str:
    return answer(prompt)


@lru_cache
def cached(prompt: str) -> str:
    return answer(prompt)


def with_temperature(temperature: float, prompt: str) -> str:
    return answer(prompt)


def two_parts(system: str, user: str) -> str:
    return answer(system + "\n" + user)


def returns_dict(prompt: str) -> dict:
    return json.loads(answer(prompt))


def parses_reply(prompt: str) -> bool:
    return bool(json.loads(answer(prompt)))


def optional_text(text: str) -> Optional[str]:  # noqa: UP045  as older code has it
    return answer(text)


class Adapter:
    name = "claude-haiku"

    def evaluate(self, prompt: str) -> str:
        return answer(prompt)


BACKEND = [
    Works(Client().complete),
    Works(Client().chat),
    Works(decorated),
    Works(cached),
    Works(partial(with_temperature, 0.0)),
    Works(two_parts),
    Works(returns_dict),
    RaisesWhenCalled(parses_reply, r"name its parameter content \(def parses_reply\(content\)\)"),
    Works(optional_text),
    Works(Adapter()),
]

PEOPLE = {
    "beginner": BEGINNER,
    "scientist": SCIENTIST,
    "autoevals": AUTOEVALS,
    "pydantic-evals": PYDANTIC,
    "langsmith": LANGSMITH,
    "backend": BACKEND,
}
SHAPES = [
    pytest.param(shape, id=f"{person}-{number}-{getattr(shape.function, '__name__', type(shape.function).__name__)}")
    for person, shapes in PEOPLE.items()
    for number, shape in enumerate(shapes)
]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_natural_function_works_or_says_what_to_write(
    shape: Works | IsUndecided | RaisesWhenMade | RaisesWhenCalled,
) -> None:
    """The good text passes and the bad one fails, or a `UsageError` names what to write instead."""
    if isinstance(shape, RaisesWhenMade):
        with pytest.raises(UsageError, match=shape.words):
            Judge(shape.function)
        return
    judge = Judge(shape.function)
    if isinstance(shape, IsUndecided):
        result = judge.evaluate_sync(GOOD, POLITE)
        assert (result.outcome, shape.words in result.detail) == ("undecided", True), result.detail
        return
    if isinstance(shape, RaisesWhenCalled):
        with pytest.raises(UsageError, match=shape.words):
            judge.evaluate_sync(GOOD, POLITE)
        return
    assert [judge.evaluate_sync(content, POLITE).outcome for content in (GOOD, BAD)] == ["passed", "failed"]


# --- the values of the libraries themselves, where they are installed ------------------------------


def return_evaluation_reason(output: str, score: Any, reason: str) -> Any:
    require("pydantic-evals", find_spec("pydantic_evals"), "pip install pydantic-evals")
    from pydantic_evals import evaluators

    return evaluators.EvaluationReason(value=score, reason=reason)


def return_autoevals_score(output: str, score: Any, reason: str) -> Any:
    autoevals = pytest.importorskip("autoevals", reason="to have it, pip install autoevals")
    return autoevals.Score(name="polite", score=score, metadata={"rationale": reason})


def return_openevals_result(output: str, score: Any, reason: str) -> Any:
    types = pytest.importorskip("openevals.types", reason="to have it, pip install openevals")
    return types.EvaluatorResult(key="polite", score=score, comment=reason, metadata=None)


@pytest.mark.parametrize(
    "make", [return_evaluation_reason, return_autoevals_score, return_openevals_result], ids=lambda make: make.__name__
)
@pytest.mark.parametrize(("score", "outcome"), [(True, "passed"), (0.9, "passed"), (0.2, "failed"), (False, "failed")])
def test_a_value_of_the_installed_library_is_read(make: Callable[..., Any], score: Any, outcome: str) -> None:
    """The classes above are copies, and the libraries may change theirs."""
    make(GOOD, score, "so")  # skips where the library is not installed
    result = Judge(lambda output: make(output, score, "the word")).evaluate_sync(GOOD, POLITE)

    assert (result.outcome, result.score) == (outcome, float(score))
    assert "the word" in result.reasoning + result.criterion("polite").reasoning


def test_a_scorer_of_autoevals_is_a_judge() -> None:
    """One that asks no model, as it comes."""
    string = pytest.importorskip("autoevals.string", reason="to have it, pip install autoevals")

    def compare(output: str, reference: str) -> Any:
        return string.Levenshtein()(output, reference)

    result = Judge(compare).evaluate_sync("Thanks.", POLITE, reference="Thanks!")

    assert (result.outcome, result.score) == ("passed", pytest.approx(6 / 7))


def test_there_are_six_people_with_ten_shapes_each() -> None:
    """Nobody's row is short."""
    assert [len(shapes) for shapes in PEOPLE.values()] == [10] * 6
