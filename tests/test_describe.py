"""A judge as plain data: everything that bears on its outcomes, and nothing that is secret."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adjudge import Judge, JudgeChain, load_rubric, open_model
from adjudge._run._describe import describe_judge, digest_judge
from adjudge.testing import ScriptedModel
from judge_support import Seat


def make_model(name: str = "small") -> ScriptedModel:
    return ScriptedModel({"safe": True}, name=name)


def test_a_judge_is_told_by_every_parameter():
    """Model, reader, scoring and the rest are there under their own names, the judge's own rubric as its file."""
    said = describe_judge(Judge(make_model(), rubric="security", reader="Rating: [[7]]", reask=0, seed=3, name="mine"))

    assert said["model"] == {"name": "small", "hosts": [], "structured": False, "max_input_characters": None}
    assert (said["kind"], said["name"], said["reader"], said["reask"]) == ("judge", "mine", "Rating: [[7]]", 0)
    assert said["rubric"] == load_rubric("security").to_dict()
    assert set(said) == {
        "kind", "name", "model", "rubric", "timeout", "reask", "structured", "token", "scoring", "logprobs", "reader",
        "temperature", "seed", "max_output_tokens",
    }  # fmt: skip


def test_a_chain_is_told_with_its_seats_at_any_depth():
    """Strategy, limits and policy are there, and every seat under the name the chain gave it."""
    inner = JudgeChain([make_model("a"), make_model("a")], strategy="consensus", name="pair")
    said = describe_judge(JudgeChain([inner, Seat(name="own")], strategy="cascade", escalate_below=0.8))

    assert (said["kind"], said["strategy"], said["escalate_below"], said["timeout"]) == ("chain", "cascade", [0.8], 5.0)
    assert [seat["name"] for seat in said["seats"]] == ["pair", "own"]
    assert [seat["name"] for seat in said["seats"][0]["seats"]] == ["a", "a#2"]
    assert said["seats"][1] == {"kind": "other", "name": "own", "type": "judge_support.Seat"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"temperature": 0.0}, {"temperature": 1.0}),
        ({"token": True}, {"token": False}),
        ({"reask": 0}, {"reask": 1}),
        ({"name": "a"}, {"name": "b"}),
        ({"rubric": "security"}, {"rubric": None}),
    ],
)
def test_the_digest_tells_judges_apart(one: dict[str, Any], other: dict[str, Any]):
    """Judges that could answer differently have different digests, and equal ones the same."""
    first, second = (digest_judge(describe_judge(Judge(make_model(), **how))) for how in (one, other))

    assert first != second
    assert first == digest_judge(describe_judge(Judge(make_model(), **one)))


def test_no_key_is_in_it(monkeypatch: pytest.MonkeyPatch):
    """A run is handed around, so what it says of a provider is its host."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-secret")
    said = json.dumps(describe_judge(Judge(open_model("openai:gpt-5-mini"))))

    assert "api.openai.com" in said
    assert "secret" not in said
