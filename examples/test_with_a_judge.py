"""A judge in a test suite: what it judges, and what the suite does when the judge breaks.

Run it: python -m pytest examples/test_with_a_judge.py

``greet`` is the code under test. The judge here is a double. In your suite leave ``judge=`` out: ``pytest --judge MODEL
--judge-record`` asks a real one and keeps the replies, ``pytest --judge-replay`` needs neither a key nor a network.
"""

from __future__ import annotations

import pytest

from adjudge import Judge
from adjudge.models import Request
from adjudge.testing import FAULTS, Fault, FaultyModel, ScriptedModel, assert_passes


def greet(name: str) -> str:
    """The code under test."""
    return f"Good morning, {name}. How may I help?"


def score_by_words(request: Request) -> dict[str, object]:
    """A stand-in that looks at the content alone, as a model would."""
    polite = "Good morning" in request.user
    return {"criteria": [{"reasoning": "", "score": 0.9 if polite else 0.2}]}


DOUBLE = Judge(ScriptedModel(score_by_words))


def test_a_greeting_is_polite() -> None:
    """The greeting passes; if it does not, the report says why for each criterion."""
    assert_passes(greet("Ada"), criteria="Greets by name, and is polite.", judge=DOUBLE)


@pytest.mark.judged(criteria="Greets by name, and is polite.", repeat=3, at_least=2, judge=DOUBLE)
def test_most_greetings_are_polite() -> str:
    """For code whose output varies: the return value is judged three times, and must pass at least twice."""
    return greet("Grace")


def test_a_rude_text_fails() -> None:
    """The judge can say no: a test of the test."""
    assert DOUBLE.evaluate_sync("What do you want?", criteria="Is polite.").outcome == "failed"


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_judge_passes_nothing(fault: Fault) -> None:
    """No broken reply is a pass."""
    # Without reask=0 the judge asks again, and gets the good reply after the one fault.
    broken = Judge(FaultyModel(ScriptedModel(score_by_words), [fault]), reask=0, timeout=0.05)

    assert not broken.evaluate_sync(greet("Ada"), criteria="Is polite.").passed
