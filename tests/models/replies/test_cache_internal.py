"""The key of a kept reply, and the layers of a cache."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge import Judge, open_model
from adjudge.models import Call, Form, FunctionInput, RecordingModel, ReplyCache, Request, as_model, resolve_model
from adjudge.models.replies.cache import CachedModel
from adjudge.models.replies.key import describe_call, make_call_key
from kit.cache import ask
from kit.judges import Plain, complaint

ASKED = Request(system="Be a judge.", user="Is <abcdefgh> good?", token="abcdefgh")


def make_key(request: Request = ASKED, *, model: str = "openai:m", seat: int = 0, **options: Any) -> str:
    return make_call_key(describe_call(open_model(model, **options), request, seat=seat))


FORM = Form(name="verdict", schema={"type": "object"}, digest="f" * 64)


CHANGES: tuple[dict[str, Any], ...] = (
    {"system": "Be kind."},
    {"user": "Is <abcdefgh> bad?"},
    {"form": FORM},
    {"temperature": 0.5},
    {"temperature": None},
    {"seed": 1},
    {"max_output_tokens": 10},
    {"logprobs": True},
    {"attempt": 2},
    {"sample": 1},
    {"function_input": FunctionInput(arguments=dict, write=str, key="k")},
)


def test_everything_that_determines_a_reply_is_in_its_key():
    """Any change of a request, of the model, of its address, of its options or of the seat gives another key."""
    keys = [make_key(), *[make_key(replace(ASKED, **change)) for change in CHANGES]]
    keys += [make_key(replace(ASKED, form=replace(FORM, digest="e" * 64)))]
    keys += [make_key(model="openai:n"), make_key(model="groq:m"), make_key(seat=1)]
    keys += [make_key(base_url="https://other.example/v1"), make_key(base_url="https://other.example/v2")]
    keys += [make_key(free_text={"maxLength": 9})]

    assert len(set(keys)) == len(keys)


def test_every_field_of_a_request_is_in_the_key_or_named_here():
    """A field that is added to requests and forgotten in keys would give one answer for two questions."""
    labels = {"token", "case", "subject", "order", "call"}
    changed = {name for change in CHANGES for name in change}

    assert changed | labels == set(Request.__dataclass_fields__)
    assert make_key(replace(ASKED, case="7", subject="5" * 64, order="ab", call=Call(anew=True))) == make_key()


def test_the_environment_that_moves_a_model_changes_the_key(monkeypatch: pytest.MonkeyPatch):
    """Where a provider's variable sends the requests elsewhere, the replies are not the provider's."""
    before = make_key()
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")

    assert make_key() != before


@given(st.text(), st.text(), st.text(), st.text())
def test_two_prompts_have_two_keys(system: str, user: str, other_system: str, other_user: str):
    """What stands in the system part cannot pose as the user part, nor masks as the token."""
    one, other = (Request(system=a, user=b, token="abcdefgh") for a, b in ((system, user), (other_system, other_user)))

    assert (make_key(one) == make_key(other)) == ((system, user) == (other_system, other_user))
    assert make_key(replace(one, user=user + "{{token}}")) != make_key(replace(one, user=user + "abcdefgh"))


def test_a_function_is_cached_under_an_identity_alone(cache: ReplyCache):
    """Two functions may have one name and a function may change, so its owner says what it is."""
    nameless = CachedModel(as_model(lambda prompt: "yes"), cache)

    message = complaint(Judge(nameless).ask, "Is this safe?")
    assert "replies of function cannot be cached" in message
    assert "give an identity" in message
    one, other = (CachedModel(Plain(text), cache, identity=text) for text in ("one", "other"))
    assert [ask(model, ASKED)[0].text for model in (one, other)] == ["one", "other"]


def test_explaining_shows_every_ingredient_and_asks_nobody(cache: ReplyCache):
    """``explain`` is the key, what it is made of, and whether there is a reply; it can be computed by anybody."""
    model = Plain("yes")
    cached = CachedModel(model, cache, identity="1", seat=2)
    before = cached.explain(ASKED)
    ask(cached, ASKED)
    after = cached.explain(ASKED)

    assert (before["found"], after["found"], len(model.requests)) == (False, True, 1)
    assert before["key"] == after["key"] == make_call_key(after["ingredients"])
    assert set(after["ingredients"]) == {
        *("schema", "model", "identity", "system", "user", "form", "parameters", "attempt", "sample", "seat"),
    }
    assert after["ingredients"]["seat"] == 2
    assert after["ingredients"]["identity"] == {"given": "1"}


def test_the_model_a_rubric_names_is_asked_through_the_same_layers(cache: ReplyCache, tmp_path: Path):
    """A full name opens another provider's model; the cache and the recording stand around that one too."""
    stack = CachedModel(RecordingModel(open_model("openai:a"), tmp_path / "r"), cache, seat=1)
    other = resolve_model("groq:b", stack)
    same = resolve_model("c", stack)

    for layered, name in ((other, "groq:b"), (same, "openai:c")):
        assert isinstance(layered, CachedModel)
        assert isinstance(layered.model, RecordingModel)
        assert (layered.name, layered.seat, layered.cache) == (name, 1, cache)
