"""A judge as plain data: everything that bears on its outcomes, and nothing that is secret."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from adjudge import Judge, JudgeChain, UsageError, load_rubric, open_model
from adjudge.judges.description import describe_judge, digest_judge, rebuild_judge
from adjudge.testing import ScriptedModel
from kit.judges import Seat


def make_model(name: str = "small") -> ScriptedModel:
    return ScriptedModel({"safe": True}, name=name)


def test_a_judge_is_told_by_every_parameter():
    """Model, reader, scoring and the rest are there under their own names, the judge's own rubric as its file."""
    description = describe_judge(
        Judge(make_model(), rubric="security", reader="Rating: [[7]]", reask=0, seed=3, name="mine")
    )

    assert description["model"] == {"name": "small", "hosts": [], "structured": False, "max_input_characters": None}
    assert (description["kind"], description["name"], description["reader"], description["reask"]) == (
        "judge",
        "mine",
        "Rating: [[7]]",
        0,
    )
    assert description["rubric"] == load_rubric("security").to_dict()
    assert set(description) == {
        "kind", "name", "model", "rubric", "timeout", "reask", "structured", "token", "scoring", "logprobs", "reader",
        "temperature", "seed", "max_output_tokens",
    }  # fmt: skip


def test_a_chain_is_told_with_its_seats_at_any_depth():
    """Strategy, limits and policy are there, and every seat under the name the chain gave it."""
    inner = JudgeChain([make_model("a"), make_model("a")], strategy="consensus", name="pair")
    description = describe_judge(JudgeChain([inner, Seat(name="own")], strategy="cascade", escalate_below=0.8))

    assert (description["kind"], description["strategy"], description["escalate_below"], description["timeout"]) == (
        "chain",
        "cascade",
        [0.8],
        5.0,
    )
    assert [seat["name"] for seat in description["seats"]] == ["pair", "own"]
    assert [seat["name"] for seat in description["seats"][0]["seats"]] == ["a", "a#2"]
    assert description["seats"][1] == {"kind": "other", "name": "own", "type": "kit.judges.Seat"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"temperature": 0.0}, {"temperature": 1.0}),
        ({"token": True}, {"token": False}),
        ({"reask": 0}, {"reask": 1}),
        ({"name": "a"}, {"name": "b"}),
        ({"rubric": "security"}, {"rubric": None}),
        ({"reader": "Rating: [[7]]"}, {}),
        ({"reader": "Rating: [[7]]"}, {"reader": "Rating: 7"}),
        ({"scoring": "expected", "logprobs": True}, {"scoring": "stated", "logprobs": True}),
        ({"seed": 1}, {"seed": 2}),
        ({"seed": 1}, {"seed": None}),
    ],
)
def test_the_digest_tells_judges_apart(one: dict[str, Any], other: dict[str, Any]):
    """Judges that could answer differently have different digests, and equal ones the same."""
    first, second = (digest_judge(describe_judge(Judge(make_model(), **options))) for options in (one, other))

    assert first != second
    assert first == digest_judge(describe_judge(Judge(make_model(), **one)))


def test_no_key_is_in_it(monkeypatch: pytest.MonkeyPatch):
    """A run is handed around, so what it says of a provider is its host."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-secret")
    description = json.dumps(describe_judge(Judge(open_model("openai:gpt-6.1-terra"))))

    assert "api.openai.com" in description
    assert "secret" not in description


class Stand:
    """What stands in the place of a model, as a description tells of it."""

    def __init__(self, described: Mapping[str, Any], number: int) -> None:
        self.name, self.number = str(described["name"]), number
        self.hosts, self.structured = described["hosts"], described["structured"]
        self.max_input_characters = described["max_input_characters"]

    async def complete(self, _request: Any, /) -> Any:
        raise AssertionError


@pytest.mark.parametrize(
    "judge",
    [
        Judge(make_model(), rubric="security", reader="Rating: [[7]]", reask=0, seed=3, name="mine", timeout=None),
        Judge(open_model("openai:gpt-6.1-terra"), structured="schema", token=False, scoring="expected", logprobs=True),
        JudgeChain([make_model("a"), make_model("a"), Judge(make_model("b"), name="c")], strategy="quorum", quorum=2),
        JudgeChain(
            [JudgeChain([make_model("a"), make_model("b")], strategy="hedged", hedge_after=1.0), make_model("a")],
            strategy="cascade", escalate_below=[0.8], abstain_below=0.2, deadline=3.0, stop_early=False, fail_open=True,
        ),
    ],
)  # fmt: skip
def test_a_judge_is_rebuilt_as_it_was_told(judge: Any):
    """Written as JSON and read back, a description makes a judge of the same description."""
    description = json.loads(json.dumps(describe_judge(judge)))

    assert describe_judge(rebuild_judge(description, Stand)) == description


def test_seats_of_one_model_are_numbered_in_their_order():
    """At any depth, as a run numbers them when it keeps their replies."""
    inner = JudgeChain([make_model("a"), make_model("b")], strategy="consensus")
    rebuilt = rebuild_judge(describe_judge(JudgeChain([make_model("a"), inner, make_model("a")])), Stand)
    (_, first), (_, middle), (_, last) = rebuilt.judges

    assert [first.model.number, last.model.number] == [0, 2]
    assert [(seat.model.name, seat.model.number) for _, seat in middle.judges] == [("a", 1), ("b", 0)]


def test_somebody_elses_judge_comes_back_as_a_name():
    """It can be told of, and not be asked: its code is not in a description."""
    rebuilt = rebuild_judge(describe_judge(Seat(name="own")), Stand)

    assert rebuilt.name == "own"
    with pytest.raises(UsageError, match=r"'own' is a judge of your own .*, which a description cannot bring back"):
        asyncio.run(rebuilt.ask("prompt"))


@pytest.mark.parametrize(
    "description", [{}, [], None, {"kind": "judge"}, {"kind": "oracle"}, {"kind": "chain", "name": "c", "seats": [7]},
             {"kind": "judge", "name": "x", "model": {"name": "m"}, "reask": 99}]
)  # fmt: skip
def test_what_describes_no_judge_is_an_error(description: Any):
    """A sentence, whatever stands in the file."""
    with pytest.raises(UsageError):
        rebuild_judge(description, Stand)
