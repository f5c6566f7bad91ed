"""One object that a value holds many times: it is written each time, so it is counted before it is copied."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pydantic
import pytest
import yaml

from adjudge import (
    Case,
    Dataset,
    Gate,
    Judge,
    JudgeResult,
    Ledger,
    Rubric,
    Rules,
    SemanticProbe,
    UsageError,
    compare_sync,
)
from adjudge.dataset import write_cases
from adjudge.testing import ScriptedModel
from adjudge.tools import validate_reuse
from kit.tools import candidate

pytestmark = pytest.mark.timed

LEVELS = 30

YAML = "a0: &a0 [1, 2]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, LEVELS))


@dataclass
class Node:
    first: Any
    second: Any


class Struct(msgspec.Struct):
    first: Any
    second: Any


class Model(pydantic.BaseModel):
    first: Any
    second: Any


class Open(pydantic.BaseModel, extra="allow"):
    pass


def grow(step: Callable[[Any], Any], seed: Any = "x") -> Any:
    value = step(seed)
    for _ in range(LEVELS):
        value = step(value)
    return value


def hold_itself() -> Any:
    value: list[Any] = []
    value += [value, value]
    return value


SHAPES: Mapping[str, Callable[[], Any]] = {
    "yaml": lambda: yaml.safe_load(YAML),
    "lists": lambda: grow(lambda value: [value, value]),
    "empty lists": lambda: grow(lambda value: [value, value], []),
    "dicts": lambda: grow(lambda value: {"a": value, "b": value}),
    "tuples": lambda: grow(lambda value: (value, value)),
    "dataclasses": lambda: grow(lambda value: Node(value, value)),
    "pydantic": lambda: grow(lambda value: Model.model_construct(first=value, second=value)),
    "pydantic extra": lambda: grow(lambda value: Open.model_construct(first=value, second=value)),
    "structs": lambda: grow(lambda value: Struct(value, value)),
    "outputs": lambda: grow(lambda value: [SimpleNamespace(output=value)] * 2),
    "mixed": lambda: grow(lambda value: {"a": [value, (value, Node(value, Struct(value, [value])))]}),
    "long texts": lambda: [[["x" * 100_000] * 50] * 50] * 50,
    "long keys": lambda: [[[{"k" * 100_000: 1}] * 50] * 50] * 50,
    "large numbers": lambda: [[[10**4000] * 100] * 100] * 100,
    "itself": hold_itself,
}

RUBRIC = Rubric(name="r", criteria=[{"name": "criteria", "description": "Good."}])

JUDGE = Judge(ScriptedModel({"safe": True}), reask=0)


def judge_with(**options: Any) -> JudgeResult:
    return Judge(ScriptedModel({"criteria": [{"score": 1}]})).evaluate_sync(
        options.pop("content", "x"), criteria="Good.", **options
    )


ENTRIES: Mapping[str, Callable[[Any], Any]] = {
    "content": lambda value: judge_with(content=value),
    "task": lambda value: judge_with(task=value),
    "context": lambda value: judge_with(context=value),
    "reference": lambda value: judge_with(reference=value),
    "metadata": lambda value: judge_with(metadata={"m": value}),
    "compared": lambda value: compare_sync("a", value, judge=JUDGE, criteria="Good."),
    "metadata of a comparison": lambda value: compare_sync("a", "b", judge=JUDGE, criteria="x", metadata={"m": value}),
    "metadata of a gate": lambda value: Gate("g", RUBRIC, JUDGE).check_sync("x", metadata={"m": value}),
    "probe": lambda value: SemanticProbe(name="p", input=value, expected="x"),
    "data set": lambda value: next(iter(Dataset.of([value]))),
    "case of a data set": lambda value: next(iter(Dataset.of([Case(id="1", content=value)]))),
    "row of a data set": lambda value: next(iter(Dataset.of([{"id": "1", "content": "x", "metadata": {"m": value}}]))),
}
"""What raises ``UsageError`` for such a value, wherever it is handed in."""


def take(entry: str, value: Any) -> str:
    """The message, and that it came at once."""
    started = time.process_time()
    with pytest.raises(UsageError) as caught:
        ENTRIES[entry](value)
    assert time.process_time() - started < 5
    return str(caught.value)


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_written_many_times_is_refused_at_once(entry: str, shape: str):
    """The message names the limit and the remedy; nothing is expanded first."""
    message = take(entry, SHAPES[shape]())

    assert "20,000,000 characters" in message or "holds itself" in message or "judged in parts" in message
    assert "hand in" in message


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "rule", [{"contains": "x"}, "json", {"length": 10**9}, "secrets", {"json_schema": {}}, "model_markup"]
)
def test_a_rule_fails_such_content(shape: str, rule: Any):
    """It never raises for content either."""
    started = time.process_time()
    (result,) = Rules([rule]).evaluate_sync(SHAPES[shape]())

    assert not result.passed
    assert time.process_time() - started < 5


@pytest.mark.parametrize("shape", ["yaml", "tuples"])
@pytest.mark.parametrize(
    "hand_in",
    [
        lambda value: Rules([{"json": {"schema": value}}]),
        lambda value: Rubric(name="r", criteria=[value]),
        lambda value: candidate(input_schema=value),
    ],
    ids=["a rule", "a rubric", "a schema"],
)
def test_a_message_quotes_no_such_value(hand_in: Callable[[Any], Any], shape: str):
    """To cut its text, that would have to be written first."""
    value = SHAPES[shape]()
    started = time.process_time()
    with pytest.raises(UsageError) as caught:
        hand_in(value)

    assert time.process_time() - started < 5
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("shape", ["yaml", "tuples"])
def test_a_function_that_returns_such_a_dict_is_an_error(shape: str):
    """A model function may read what its server said with YAML."""
    started = time.process_time()
    result = Judge(lambda _prompt: {"token": "x", "criteria": SHAPES[shape]()}, name="m").evaluate_sync(
        "x", criteria="Good."
    )

    assert (result.outcome, result.undecided_because) == ("undecided", "error")
    assert "20,000,000 characters" in result.detail
    assert time.process_time() - started < 5


def test_a_ledger_names_the_limit(tmp_path: Path):
    """The remedy for a mapping is not to wrap it in a mapping."""

    async def append() -> None:
        async with Ledger(tmp_path / "a.db") as ledger:
            await ledger.append({"a": SHAPES["yaml"]()}, kind="decision", subject="5" * 64)

    with pytest.raises(UsageError, match="20,000,000 characters"):
        asyncio.run(append())


@pytest.mark.parametrize("shape", SHAPES)
def test_a_gate_blocks_such_content(shape: str):
    """It never raises for content, so it says why."""
    decision = Gate("g", RUBRIC, JUDGE).check_sync(SHAPES[shape]())

    assert not decision.allowed
    assert "20,000,000 characters" in decision.result.detail or "holds itself" in decision.result.detail


@pytest.mark.parametrize("shape", ["yaml", "tuples", "itself"])
def test_a_tool_holds_no_such_schema_or_output(shape: str):
    """A candidate is refused, and an output is not valid."""
    value = SHAPES[shape]()

    with pytest.raises(UsageError):
        candidate(input_schema={"const": value})
    assert not validate_reuse("t", value, {"type": "array"}).valid


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_written_of_such_a_value_says_so(shape: str, tmp_path: Path):
    """A result is written whatever its metadata holds; a data set with such a case is not."""
    result = JudgeResult(outcome="passed", judge="j", metadata={"m": SHAPES[shape](), "n": 1}, value=SHAPES[shape]())
    written = result.to_dict()

    assert len(json.dumps(written)) < 2_000_000
    with pytest.raises(UsageError, match=r"20,000,000 characters|levels deep|holds itself|not a JSON type"):
        write_cases(tmp_path / "cases.jsonl", [Case(id="1", content=SHAPES[shape]())])


@pytest.mark.parametrize(
    "value",
    [
        [shared := {"a": [1, 2]}, shared, shared],
        yaml.safe_load("x: &x {a: [1, 2]}\ny: [*x, *x, *x]"),
        [Node(shared, shared), Struct(shared, shared), Model(first=shared, second=shared)],
        grow(lambda value: [value, 1]),
        [{"n": n, "text": "word " * 20} for n in range(4_000)],
        list(range(50_000)),
        ["x" * 100_000] * 5,
        SimpleNamespace(output=[shared, shared]),
        (),
        {},
    ],
    ids=["twice", "alias", "objects", "nested", "rows", "numbers", "texts", "output", "no tuple", "no dict"],
)
def test_an_object_that_appears_twice_is_written_twice(value: Any):
    """Sharing is no fault; only what it comes to counts."""
    judge = Judge(ScriptedModel({"criteria": [{"score": 1}]}))

    assert judge.evaluate_sync(value, criteria="Good.", metadata={"m": value}).passed
    assert Gate("g", RUBRIC, judge).check_sync(value, metadata={"m": value}).allowed


def test_nested_to_the_limit_is_read_and_deeper_is_not():
    """200 levels, with members that are shared."""
    deep: Any = []
    for _ in range(199):
        deep = [deep]

    assert judge_with(content=deep).passed
    with pytest.raises(UsageError, match="nests too deeply"):
        judge_with(content=[deep])
