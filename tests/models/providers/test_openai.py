"""The OpenAI wire format: what is sent to whom, how replies are read, and learning what a server refuses."""

from __future__ import annotations

import json

import pytest

from adjudge import ModelError, Usage
from adjudge.models import Request, TokenLogprob
from kit.wire import ASKED, FORM, completion, error, read, talk

pytestmark = pytest.mark.timed


def test_a_chat_completion_is_asked_for():
    """System and user part, parameters, the form as a strict JSON Schema, and token probabilities."""
    _, server = talk()
    body = server.bodies[0]

    assert server.paths == ["/v1/chat/completions"]
    assert server.headers[0]["Content-Type"] == "application/json"
    assert body["model"] == "some-model"
    assert body["messages"] == [
        {"role": "system", "content": ASKED.system},
        {"role": "user", "content": ASKED.user},
    ]
    assert {name: body[name] for name in ("temperature", "seed", "max_tokens", "logprobs", "top_logprobs")} == {
        "temperature": 0.0,
        "seed": 7,
        "max_tokens": 2048,
        "logprobs": True,
        "top_logprobs": 20,
    }
    form = body["response_format"]["json_schema"]
    assert (form["name"], form["strict"], form["schema"]) == ("verdict", True, FORM.schema)
    assert list(form["schema"]["properties"]) == list(FORM.schema["properties"])


def test_what_is_not_asked_for_is_not_sent():
    """A request without parameters has a body of model and messages alone; an empty system part is left out."""
    bare = Request(system="", user="Just this.", temperature=None, max_output_tokens=None)
    _, server = talk(request=bare)

    assert server.bodies[0] == {"model": "some-model", "messages": [{"role": "user", "content": "Just this."}]}


@pytest.mark.parametrize(
    ("prefix", "expected", "absent"),
    [
        ("openai", {"max_completion_tokens": 2048, "seed": 7, "logprobs": True}, {"max_tokens"}),
        ("azure", {"max_completion_tokens": 2048, "logprobs": True}, {"max_tokens"}),
        ("mistral", {"max_tokens": 2048, "random_seed": 7, "logprobs": True}, {"seed"}),
        ("groq", {"max_completion_tokens": 2048, "seed": 7}, {"logprobs", "top_logprobs"}),
        ("together", {"max_tokens": 2048, "logprobs": 1}, {"top_logprobs"}),
        ("openrouter", {"max_tokens": 2048, "top_logprobs": 20}, set()),
        ("ollama", {"max_tokens": 2048, "logprobs": True}, set()),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_providers_differ_as_data(prefix, expected, absent):
    """The same request in each provider's own words."""
    _, server = talk(prefix=prefix)
    body = server.bodies[0]

    assert {name: body.get(name) for name in expected} == expected
    assert absent.isdisjoint(body)


def test_a_completion_becomes_a_reply():
    """Text, usage with cached tokens, the model as reported and the request's id."""
    reply = talk((200, {"x-request-id": "req-9"}, completion("the text")))[0]

    assert reply.text == "the text"
    assert reply.finish_reason == "stop"
    assert reply.usage == Usage(input_tokens=12, output_tokens=3, cached_tokens=8)
    assert (reply.model, reply.request_id, reply.logprobs) == ("served-model", "req-9", None)


@pytest.mark.parametrize(
    ("sent", "read_as"),
    [
        ("stop", "stop"),
        ("tool_calls", "stop"),
        ("function_call", "stop"),
        ("eos", "stop"),
        ("length", "length"),
        ("model_length", "length"),
        ("content_filter", "refusal"),
        ("eos_token", "stop"),
        ("max_tokens", "length"),
        (None, "other"),
        ("", "other"),
    ],
)
def test_finish_reasons_are_mapped(sent, read_as):
    """Only known words stop a reply well; local servers often say none."""
    choice = {"finish_reason": sent, "message": {"content": "x"}}
    assert read(completion(choices=[choice])).finish_reason == read_as


@pytest.mark.parametrize("sent", ["error", "abort", "insufficient_system_resource", "cancelled", "something new"])
def test_an_unknown_reason_is_no_reply(sent):
    """Something stopped the model: what it wrote until then may hold a verdict it was about to take back."""
    reply = read(completion(choices=[{"finish_reason": sent, "message": {"content": "x"}}]))

    assert isinstance(reply, ModelError)
    assert f"ended its reply with the reason '{sent}', which does not say that the reply is complete" in str(reply)


@pytest.mark.parametrize(
    ("prefix", "read_as"),
    [
        ("openai", "length"),
        ("mistral", "length"),
        ("groq", "length"),
        ("azure", "length"),
        ("together", "other"),
        ("openrouter", "other"),
        ("ollama", "other"),
    ],
)
def test_no_reason_is_an_end_only_where_it_may_be_left_out(prefix, read_as):
    """A provider that always says why a reply ended cut off one of which it does not."""
    choice = {"finish_reason": None, "message": {"content": "x"}}
    assert read(completion(choices=[choice]), prefix=prefix).finish_reason == read_as


def test_a_refusal_is_the_providers_own_signal():
    """message.refusal makes it a refusal; the word refusal in the text does not."""
    refused = {"finish_reason": "stop", "message": {"content": None, "refusal": "I will not."}}
    reply = read(completion(choices=[refused]))

    assert (reply.finish_reason, reply.text) == ("refusal", "I will not.")
    assert read(completion("refusal: content_filter")).finish_reason == "stop"


def test_reasoning_never_enters_the_text():
    """Fields of their own and thinking parts are dropped; text parts are joined."""
    message = {"content": "verdict", "reasoning": "hm", "reasoning_content": "hm", "thinking": "hm"}
    assert read(completion(choices=[{"finish_reason": "stop", "message": message}])).text == "verdict"

    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}], "text": "hm"},
        {"type": "text", "text": '{"a"'},
        {"type": "reference", "reference_ids": [1]},
        {"type": "text", "text": ": 1}"},
    ]
    assert read(completion(choices=[{"finish_reason": "stop", "message": {"content": parts}}])).text == '{"a": 1}'


def test_token_probabilities_are_read():
    """Tokens with their alternatives; one number missing means none are used."""
    tokens = [{"token": "1", "logprob": -0.25, "bytes": [49], "top_logprobs": [{"token": "0", "logprob": -1.5}]}]
    choice = {"finish_reason": "stop", "message": {"content": "1"}, "logprobs": {"content": tokens}}
    assert read(completion(choices=[choice])).logprobs == (TokenLogprob(token="1", logprob=-0.25, top=(("0", -1.5),)),)

    broken = [*tokens, {"token": "2", "logprob": None}]
    assert read(completion(choices=[choice | {"logprobs": {"content": broken}}])).logprobs is None
    half = [{"token": "1", "logprob": -0.25, "top_logprobs": [{"token": "0", "logprob": None}]}]
    assert read(completion(choices=[choice | {"logprobs": {"content": half}}])).logprobs is None
    side_by_side = {"tokens": ["a", "b"], "token_logprobs": [-1.0, -2.0]}
    logprobs = read(completion(choices=[choice | {"logprobs": side_by_side}])).logprobs
    assert [(item.token, item.logprob) for item in logprobs] == [("a", -1.0), ("b", -2.0)]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b'{"choices": [{"mess', id="truncated"),
        pytest.param(b"<html>hello</html>", id="html"),
        pytest.param(b"[]", id="list"),
        pytest.param(b'{"choices": [{"message": {"content": 5}}]}', id="wrong-type"),
        pytest.param(b'{"choices": []}', id="no-choice"),
        pytest.param(b'{"choices": [{"message": {"content": "\\ud800"}}]}', id="half-character"),
        pytest.param(b'{"choices": [{"message": {"content": "\xff"}}]}', id="not-utf8"),
        pytest.param(b'{"x": ' + b"[" * 200_000, id="deep"),
        pytest.param(b'{"x": ' + b'{"a":' * 200_000, id="deep-objects"),
    ],
)
def test_an_unreadable_body_is_a_model_error(body):
    """Whatever a server sends with 200, the outcome is a reply or a ModelError that names the host."""
    reply = read(body)

    assert isinstance(reply, ModelError)
    assert str(reply).startswith("127.0.0.1:")
    assert len(str(reply)) < 500


def test_an_error_inside_a_200_is_told():
    """Routers answer 200 with an error inside; its sentence is repeated."""
    reply = read({"error": {"message": "upstream is gone", "code": 502}})

    assert "upstream is gone" in str(reply)


EXTRA = [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]


@pytest.mark.parametrize(
    ("complaint", "dropped"),
    [
        (error("Unsupported value: 'temperature' does not support 0.0.", param="temperature"), {"temperature"}),
        (error("Unknown parameter: 'seed'.", param="seed"), {"seed"}),
        (error("logprobs are not supported with reasoning models"), {"logprobs", "top_logprobs"}),
        (error("Invalid parameter: 'response_format' of type 'json_schema' is not supported"), {"response_format"}),
        ({"detail": EXTRA}, {"seed"}),
        ({"object": "error", "message": {"detail": EXTRA}}, {"seed"}),
        ({"error": "temperature is not supported"}, {"temperature"}),
        ([{"error": {"message": "unknown field seed"}}], {"seed"}),
    ],
    ids=["value", "param", "message", "format", "fastapi", "mistral", "text", "list"],
)  # fmt: skip
def test_a_refused_parameter_is_dropped_and_remembered(complaint, dropped):
    """The request is sent again without what the provider names, and later requests leave it out at once."""
    reply, server = talk((400, {}, complaint), (200, {}, completion()), times=2)

    assert reply.text == "fine"
    assert len(server.bodies) == 3
    assert set(server.bodies[0]) - set(server.bodies[1]) == dropped
    assert server.bodies[1] == server.bodies[2]


def test_a_token_limit_is_renamed():
    """max_tokens and max_completion_tokens stand for each other before the limit is given up."""
    complaint = error("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", param="max_tokens")
    reply, server = talk((400, {}, complaint), (200, {}, completion()))

    assert reply.text == "fine"
    assert "max_tokens" not in server.bodies[1]
    assert server.bodies[1]["max_completion_tokens"] == 2048


def test_at_most_four_adaptations():
    """A server that always finds something else is told off after five requests."""
    names = ["temperature", "seed", "logprobs", "response_format", "max_tokens", "max_completion_tokens"]
    reply, server = talk(*[(422, {}, error(f"{name} is not supported")) for name in names])

    assert isinstance(reply, ModelError)
    assert reply.status == 422
    assert len(server.bodies) == 5


def test_other_complaints_change_nothing():
    """A prompt that is too long names max_tokens without refusing it; a refusal that fails is not remembered."""
    too_long = error("maximum context length is 10 tokens, you requested 2048 in max_tokens", param="max_tokens")
    reply, server = talk((400, {}, too_long))
    assert reply.status == 400
    assert len(server.bodies) == 1

    unsupported = (400, {}, error("temperature is not supported"))
    _, server = talk(unsupported, (400, {}, error("no")), unsupported, (200, {}, completion()), times=2)
    assert ["temperature" in body for body in server.bodies] == [True, False, True, False]


def test_free_text_gets_the_keywords_a_server_needs():
    """Strings that may be anything get them; those with a choice or a pattern do not, and numbers do not."""
    extra = {"pattern": "^[ -~]{1,60}$", "maxLength": 60}
    _, server = talk(free_text=extra)
    sent = server.bodies[0]["response_format"]["json_schema"]["schema"]["properties"]

    assert sent["token"] == {"type": "string"} | extra
    assert sent["notes"]["items"] == {"type": "string"} | extra
    assert sent["grade"] == FORM.schema["properties"]["grade"]
    assert sent["score"] == FORM.schema["properties"]["score"]
    assert "pattern" not in json.dumps(FORM.schema)
