"""What scripts/fuzz counts as a failure: it would say the same of a fuzzer that feeds nothing."""

from __future__ import annotations

import json
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from types import ModuleType
from typing import Any

import pytest

from adjudge import UsageError
from kit.house import ROOT

pytestmark = pytest.mark.slow

EXAMPLE = {"kind": "note", "text": "a text", "parts": [{"n": 1}, {"n": 2}]}


@pytest.fixture(name="fuzz")
def load_fuzz(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script as a module, which has the targets under ``Target``."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    loader = SourceFileLoader("adjudge_fuzz", str(ROOT / "scripts" / "fuzz"))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def feed(fuzz: ModuleType, read: Any, form: str = "json") -> Any:
    target = fuzz.Target("planted", form, [json.dumps(EXAMPLE).encode()], read)
    return fuzz.run_round(target, 1)


def read_strictly(raw: bytes) -> Any:
    """A reader as it should be."""
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        raise UsageError("it is no JSON") from None
    if not isinstance(value, dict) or not isinstance(value.get("parts"), list):
        raise UsageError("it is no note")
    return value


def test_what_is_refused_on_purpose_is_no_failure(fuzz: ModuleType):
    """An ``AdjudgeError`` is an answer."""
    assert feed(fuzz, read_strictly) is None
    assert feed(fuzz, read_strictly, "bytes") is None


def test_another_exception_is_found_and_made_small(fuzz: ModuleType):
    """A member that is not where the reader expects it."""
    raw, error = feed(fuzz, lambda raw: [part["n"] for part in read_strictly(raw)["parts"]])

    assert type(error) in (KeyError, TypeError)
    assert len(raw) < len(json.dumps(EXAMPLE)) + 50


def test_a_pass_that_nothing_justifies_is_found(fuzz: ModuleType):
    """By what a target says of its own."""

    def read(raw: bytes) -> None:
        if read_strictly(raw).get("kind") != "note":
            raise fuzz.WrongPass("let through")

    assert type(feed(fuzz, read)[1]) is fuzz.WrongPass


def test_an_input_that_takes_too_much_memory_is_found(fuzz: ModuleType, monkeypatch: pytest.MonkeyPatch):
    """So is one that takes too long."""
    monkeypatch.setattr(fuzz, "MOST_GROWTH", -1)
    assert type(feed(fuzz, read_strictly)[1]) is fuzz.TooDear
    monkeypatch.undo()
    monkeypatch.setattr(fuzz, "MOST_SECONDS", -1.0)
    assert type(feed(fuzz, read_strictly)[1]) is fuzz.TooDear
