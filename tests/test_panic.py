"""Content can make an extension written in Rust panic: a failure like any other, which does not end the program."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from adjudge import Gate, Judge, JudgeChain
from kit.gates import check, gate, word
from kit.judges import passed
from kit.loops import run_virtual


class PanicException(BaseException):
    """As PyO3 raises it: no ``Exception``."""


def panic(*_: object) -> Any:
    raise PanicException("index out of bounds")


async def panic_later(*_: object) -> Any:
    panic()


class Panicking:
    """A judge of somebody's own."""

    name = "tokenizer"
    ask = panic_later


@pytest.mark.parametrize("model", [panic, panic_later, Panicking()], ids=["function", "coroutine", "judge"])
def test_a_judge_is_undecided(model: Any):
    """Alone, and as a seat that stays in the denominator."""
    panel = run_virtual(JudgeChain([model, passed(name="b")], strategy="majority", timeout=None).ask("Safe?"))

    assert (panel.outcome, panel.results[0].undecided_because) == ("undecided", "error")
    assert "panicked: index out of bounds" in panel.results[0].detail
    if callable(model):
        assert run_virtual(Judge(model, timeout=None).ask("Safe?")).undecided_because == "error"


@pytest.mark.parametrize("function", [panic, panic_later], ids=["sync", "async"])
def test_a_gate_blocks_what_its_rule_or_redaction_panics_at(function: Any):
    """A hook that panics is logged, and changes nothing."""
    assert word(check(gate(passed(), rules=[function]))) == ("blocked", "rule")
    assert word(check(gate(passed(), redact=function))) == ("blocked", "policy")
    assert check(gate(passed(), on_result=function)).allowed


def test_content_that_makes_pydantic_panic_is_blocked():
    """It cannot be read."""

    class Odd:
        model_dump = panic

    assert word(check(gate(passed()), Odd())) == ("blocked", "policy")


def test_content_that_makes_the_schema_validator_panic_fails_the_rule(monkeypatch: pytest.MonkeyPatch):
    """The rule says that it broke, and the content does not pass."""

    class Validator:
        is_valid = validate = iter_errors = panic

    monkeypatch.setattr(jsonschema_rs, "validator_for", lambda *_, **__: Validator())
    decision = check(Gate("door", rules=[{"json_schema": {"type": "object"}}]), "{}")

    assert word(decision) == ("blocked", "rule")
    assert "panicked" in decision.explain()
