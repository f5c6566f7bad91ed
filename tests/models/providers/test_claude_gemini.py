"""Anthropic's and Google's own wire formats: what is sent, and how replies are read."""

from __future__ import annotations

import pytest

from adjudge import Usage, UsageError
from adjudge.models import TokenLogprob, open_model
from kit.wire import ASKED, FORM, read, talk

pytestmark = pytest.mark.timed


KEY = "sk-very-secret-0123456789"


def message(text="fine", reason="end_turn", **changes):
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": [{"type": "text", "text": text}],
        "stop_reason": reason,
        "usage": {
            "input_tokens": 5,
            "output_tokens": 2,
            "cache_creation_input_tokens": 10,
            "cache_read_input_tokens": 100,
        },
    } | changes


def test_a_message_is_asked_of_anthropic(monkeypatch):
    """System as a cached block, the form as output_config, no temperature, seed or log-probabilities."""
    monkeypatch.setenv("MY_KEY", KEY)
    _, server = talk((200, {}, message()), prefix="anthropic", key_env="MY_KEY")
    body = server.bodies[0]

    assert server.paths == ["/v1/messages"]
    assert (server.headers[0]["x-api-key"], server.headers[0]["anthropic-version"]) == (KEY, "2026-10-21")
    assert set(body) == {"model", "max_tokens", "system", "output_config", "messages"}
    assert body["system"] == [{"type": "text", "text": ASKED.system, "cache_control": {"type": "ephemeral"}}]
    assert body["messages"] == [{"role": "user", "content": ASKED.user}]
    sent = body["output_config"]["format"]["schema"]["properties"]
    assert sent["score"] == {"type": "number"}
    assert sent["reasoning"] == {"type": "string"}
    assert sent["notes"] == {"type": "array", "items": {"type": "string"}}
    assert sent["grade"]["enum"] == ["a", "b"]


def test_an_anthropic_message_becomes_a_reply():
    """Text blocks alone; cached input counts as input."""
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "text", "text": "a"},
        {"type": "tool_use", "id": "t", "name": "n", "input": {"text": "no"}},
        {"type": "text", "text": "b"},
    ]
    reply = read(message(content=blocks), prefix="anthropic")

    assert reply.text == "ab"
    assert reply.usage == Usage(input_tokens=115, output_tokens=2, cached_tokens=100, written_tokens=10)
    assert (reply.model, reply.request_id, reply.finish_reason) == ("claude-x", "msg_1", "stop")


@pytest.mark.parametrize(
    ("sent", "read_as"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("tool_use", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "refusal"),
        ("pause_turn", "length"),
        (None, "length"),
    ],
)
def test_anthropic_stop_reasons_are_mapped(sent, read_as):
    """Only known words stop a reply well; Anthropic always says one."""
    assert read(message(reason=sent), prefix="anthropic").finish_reason == read_as


@pytest.mark.parametrize("prefix", ["anthropic", "gemini"])
def test_an_unknown_reason_is_no_reply(prefix):
    """Something stopped the model: what it wrote until then may hold a verdict it was about to take back."""
    for reason in ("OTHER", "LANGUAGE", "MALFORMED_RESPONSE", "something new"):
        body = message(reason=reason) if prefix == "anthropic" else generated(reason=reason)
        assert f"ended its reply with the reason '{reason}'" in str(read(body, prefix=prefix))


def test_an_old_claude_without_structured_output_is_asked_without():
    """output_config is left out once a model says that it does not support it."""
    complaint = {"type": "error", "error": {"type": "invalid_request_error", "message": "output_config: not supported"}}
    reply, server = talk((400, {}, complaint), (200, {}, message()), prefix="anthropic")

    assert reply.text == "fine"
    assert "output_config" not in server.bodies[1]


# Gemini


def generated(text="fine", reason="STOP", **changes):
    parts = [{"text": "thinking…", "thought": True}, {"text": text, "thoughtSignature": "c2ln"}]
    return {
        "candidates": [{"content": {"parts": parts, "role": "model"}, "finishReason": reason} | changes],
        "usageMetadata": {
            "promptTokenCount": 50,
            "candidatesTokenCount": 4,
            "thoughtsTokenCount": 6,
            "cachedContentTokenCount": 30,
        },
        "modelVersion": "gemini-x",
        "responseId": "r1",
    }


def test_content_is_asked_of_gemini(monkeypatch):
    """The key goes in a header and never in the address; the form is a JSON Schema."""
    monkeypatch.setenv("MY_KEY", KEY)
    _, server = talk((200, {}, generated()), prefix="gemini", key_env="MY_KEY")

    assert server.paths == ["/v1/models/some-model:generateContent"]
    assert server.headers[0]["x-goog-api-key"] == KEY
    assert server.bodies[0] == {
        "systemInstruction": {"parts": [{"text": ASKED.system}]},
        "generationConfig": {
            "temperature": 0.0,
            "seed": 7,
            "maxOutputTokens": 2048,
            "responseMimeType": "application/json",
            "responseJsonSchema": FORM.schema,
            "responseLogprobs": True,
            "logprobs": 20,
        },
        "contents": [{"role": "user", "parts": [{"text": ASKED.user}]}],
    }


def test_a_gemini_candidate_becomes_a_reply():
    """Thoughts are dropped from the text and counted as output."""
    chosen = [{"token": "1", "logProbability": -0.5}]
    top = [{"candidates": [{"token": "1", "logProbability": -0.5}, {"token": "0", "logProbability": -2.0}]}]
    probabilities = {"chosenCandidates": chosen, "topCandidates": top}
    reply = read(generated(logprobsResult=probabilities), prefix="gemini")

    assert reply.text == "fine"
    assert reply.usage == Usage(input_tokens=50, output_tokens=10, cached_tokens=30)
    assert reply.logprobs == (TokenLogprob(token="1", logprob=-0.5, top=(("1", -0.5), ("0", -2.0))),)
    assert (reply.model, reply.request_id) == ("gemini-x", "r1")

    half = {"chosenCandidates": chosen, "topCandidates": [{"candidates": [{"token": "0"}]}]}
    assert read(generated(logprobsResult=half), prefix="gemini").logprobs is None


@pytest.mark.parametrize(
    ("sent", "read_as"),
    [("STOP", "stop"), ("MAX_TOKENS", "length"), ("CONTINUATION", "length"), (None, "length")]
    + [(name, "refusal") for name in ("SAFETY", "RECITATION", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII")],
)
def test_gemini_finish_reasons_are_mapped(sent, read_as):
    """Whatever a filter stopped is a refusal."""
    assert read(generated(reason=sent), prefix="gemini").finish_reason == read_as


def test_a_blocked_prompt_is_a_refusal():
    """Blocked, there is no candidate; neither blocked nor answered is an error."""
    blocked = read({"promptFeedback": {"blockReason": "SAFETY"}}, prefix="gemini")
    assert (blocked.finish_reason, blocked.text) == ("refusal", None)

    assert "without a candidate" in str(read({"usageMetadata": {}}, prefix="gemini"))


@pytest.mark.parametrize(
    ("message", "dropped"),
    [
        ("Logprobs is not supported for the current model.", {"responseLogprobs", "logprobs"}),
        ("Unknown name \"responseJsonSchema\" at 'generation_config'", {"responseJsonSchema", "responseMimeType"}),
    ],
    ids=["logprobs", "schema"],
)
def test_gemini_parameters_are_dropped_in_pairs(message, dropped):
    """What only makes sense together goes together."""
    complaint = {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}
    reply, server = talk((400, {}, complaint), (200, {}, generated()), prefix="gemini")

    assert reply.text == "fine"
    assert set(server.bodies[0]["generationConfig"]) - set(server.bodies[1]["generationConfig"]) == dropped


@pytest.mark.parametrize("name", ["../evil", "a/b/c", "a b", "a?key=x", "a#b"])
def test_a_gemini_name_cannot_change_the_address(name):
    """The name stands in the path, so only names are accepted there."""
    with pytest.raises(UsageError, match=r"a Gemini model is called like|has no option 'key'"):
        open_model(f"gemini:{name}")
