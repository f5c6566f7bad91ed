"""The providers' own packages agree: our requests fit their request types, and their replies are read by us."""

from __future__ import annotations

import importlib
import json
import warnings
from importlib.util import find_spec
from typing import Any

import pytest
from pydantic import TypeAdapter

from adjudge import Usage
from adjudge.models import Reply
from kit.wire import ASKED, PLAIN, read, talk

pytestmark = pytest.mark.timed


REQUESTS = pytest.mark.parametrize("request_", [ASKED, PLAIN], ids=["structured", "text"])

CHAT = {"id": "c", "object": "chat.completion", "created": 1, "model": "reported"}
TOKENS = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}


@pytest.fixture(name="package")
def provide_package(require):
    """Import a module of a provider's package, or skip naming the package."""

    def get(name: str) -> Any:
        top = name.split(".", maxsplit=1)[0] if not name.startswith("google") else "google.genai"
        try:
            present = find_spec(top) is not None
        except ModuleNotFoundError:
            present = False
        require(f"the package {top}", present, f"pip install {top.replace('google.genai', 'google-genai')}")
        with warnings.catch_warnings():
            # What a package deprecates while it is imported is its own affair.
            warnings.simplefilter("ignore")
            return importlib.import_module(name)

    return get


def send(prefix: str, request: Any) -> dict[str, Any]:
    """The body an adapter sends."""
    return talk((500, {"x-should-retry": "false"}, {}), prefix=prefix, request=request)[1].bodies[0]


def fits(body: dict[str, Any], typed_dict: Any) -> None:
    """Fail unless a body has the type of a request, with no key the type does not know."""
    assert set(body) <= set(typed_dict.__required_keys__ | typed_dict.__optional_keys__)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adapter = TypeAdapter(typed_dict)
    # Iterables are validated when they are read.
    validated = adapter.validate_json(json.dumps(body))
    assert len(list(validated["messages"])) == len(body["messages"])


def read_from(answer: Any, prefix: str = "http", **dump) -> Reply:
    """What an adapter reads from a package's own response object."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        body = answer.model_dump_json(by_alias=True, **dump)
    reply = read(json.loads(body), prefix=prefix)
    assert isinstance(reply, Reply), reply
    return reply


# OpenAI, and those who take its types


@REQUESTS
@pytest.mark.parametrize("prefix", ["openai", "azure", "openrouter", "ollama", "http"])
def test_openai_would_take_the_request(package, prefix, request_):
    """The body is a CompletionCreateParamsNonStreaming."""
    params = package("openai.types.chat.completion_create_params")
    body = send(prefix, request_)

    fits(body, params.CompletionCreateParamsNonStreaming)


@pytest.mark.parametrize(
    ("finish", "message", "reason", "text"),
    [
        pytest.param("stop", {"content": '{"a": 1}'}, "stop", '{"a": 1}', id="structured"),
        pytest.param("length", {"content": '{"a"'}, "length", '{"a"', id="length"),
        pytest.param("stop", {"content": None, "refusal": "No."}, "refusal", "No.", id="refusal"),
        pytest.param("content_filter", {"content": ""}, "refusal", "", id="filter"),
        pytest.param("stop", {"content": "x", "reasoning_content": "hm"}, "stop", "x", id="thinking"),
    ],
)
def test_openai_replies_are_read(package, finish, message, reason, text):
    """A ChatCompletion built by OpenAI's package, in each of its ways to end."""
    types = package("openai.types.chat")
    usage = TOKENS | {"prompt_tokens_details": {"cached_tokens": 5}}
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant"} | message, "logprobs": None}
    reply = read_from(types.ChatCompletion.model_validate(CHAT | {"choices": [choice], "usage": usage}))

    assert (reply.finish_reason, reply.text, reply.model) == (reason, text, "reported")
    assert reply.usage == Usage(input_tokens=9, output_tokens=4, cached_tokens=5)


@pytest.mark.parametrize("module", ["openai.types.chat", "groq.types.chat"])
def test_openai_token_probabilities_are_read(package, module):
    """ChoiceLogprobs as OpenAI's and Groq's packages define them."""
    types = package(module)
    token = {"token": "1", "bytes": [49], "logprob": -0.5}
    logprobs = {"content": [token | {"top_logprobs": [token, token | {"token": "0", "logprob": -2.0}]}]}
    choice = {
        "index": 0,
        "finish_reason": "stop",
        "message": {"role": "assistant", "content": "1"},
        "logprobs": logprobs,
    }
    reply = read_from(types.ChatCompletion.model_validate(CHAT | {"choices": [choice], "usage": TOKENS}))

    assert reply.logprobs is not None
    assert [(item.token, item.logprob, item.top) for item in reply.logprobs] == [
        ("1", -0.5, (("1", -0.5), ("0", -2.0)))
    ]


# Groq, Together, Mistral


@REQUESTS
def test_groq_would_take_the_request(package, request_):
    """The body is Groq's CompletionCreateParams, with nothing it says it does not support."""
    params = package("groq.types.chat.completion_create_params")
    body = send("groq", request_)

    fits(body, params.CompletionCreateParams)
    assert "logprobs" not in body


def test_groq_replies_are_read(package):
    """Reasoning in Groq's own field stays out of the text."""
    types = package("groq.types.chat")
    message = {"role": "assistant", "content": "x", "reasoning": "hm"}
    details = {"prompt_tokens_details": {"cached_tokens": 5}}
    body = CHAT | {"choices": [{"index": 0, "finish_reason": "length", "message": message}], "usage": TOKENS | details}
    reply = read_from(types.ChatCompletion.model_validate(body))

    assert (reply.text, reply.finish_reason) == ("x", "length")
    assert reply.usage == Usage(input_tokens=9, output_tokens=4, cached_tokens=5)


@REQUESTS
def test_together_would_take_the_request(package, request_):
    """The body is Together's CompletionCreateParams, whose logprobs is a number."""
    params = package("together.types.chat.completion_create_params")
    fits(send("together", request_), params.CompletionCreateParamsNonStreaming)


def test_together_replies_are_read(package):
    """Tokens and their numbers stand side by side."""
    types = package("together.types.chat.chat_completion")
    choice = {
        "index": 0,
        "finish_reason": "eos",
        "message": {"role": "assistant", "content": "ab", "reasoning": "hm"},
        "logprobs": {"tokens": ["a", "b"], "token_logprobs": [-1.0, -2.0], "token_ids": [1, 2]},
    }
    answer = types.ChatCompletion.model_validate(CHAT | {"choices": [choice], "prompt": [], "usage": TOKENS})
    reply = read_from(answer)

    assert (reply.text, reply.finish_reason) == ("ab", "stop")
    assert [(item.token, item.logprob) for item in reply.logprobs or ()] == [("a", -1.0), ("b", -2.0)]


@REQUESTS
def test_mistral_would_take_the_request(package, request_):
    """The body is Mistral's ChatCompletionRequest, seed under its own name."""
    models = package("mistralai.client.models")
    body = send("mistral", request_)
    taken = models.ChatCompletionRequest.model_validate(body)

    assert set(body) <= set(models.ChatCompletionRequest.model_fields)
    assert [item.role for item in taken.messages] == ["system", "user"]
    if request_ is ASKED:
        assert taken.response_format.json_schema.schema_definition == ASKED.form.schema
        assert taken.random_seed == 7


@pytest.mark.parametrize(("finish", "reason"), [("stop", "stop"), ("model_length", "length")])
def test_mistral_replies_are_read(package, finish, reason):
    """Content as chunks: thinking is dropped, text kept; token probabilities under Mistral's types."""
    models = package("mistralai.client.models")
    thinking = models.ThinkChunk(thinking=[models.TextChunk(text="hm")])
    token = {"token": "ok", "logprob": -0.5, "bytes": [111, 107], "token_id": 7}
    answer = models.ChatCompletionResponse.model_validate({
        **CHAT,
        "usage": TOKENS,
        "choices": [{
            "index": 0,
            "finish_reason": finish,
            "message": {"role": "assistant", "content": [thinking, models.TextChunk(text="ok")]},
            "logprobs": {"content": [token | {"top_logprobs": [token]}]},
        }],
    })  # fmt: skip
    reply = read_from(answer)

    assert (reply.text, reply.finish_reason) == ("ok", reason)
    assert reply.logprobs is not None
    assert reply.logprobs[0].top == (("ok", -0.5),)


# Anthropic


@pytest.mark.slow
@REQUESTS
def test_anthropic_would_take_the_request(package, request_):
    """The body is a MessageCreateParamsNonStreaming, and its schema is one the package would not change."""
    params = package("anthropic.types.message_create_params")
    body = send("anthropic", request_)

    fits(body, params.MessageCreateParamsNonStreaming)
    if request_ is ASKED:
        transform = package("anthropic.lib._parse._transform").transform_schema
        sent = body["output_config"]["format"]["schema"]
        transformed = transform(ASKED.form.schema)
        assert drop(transformed, "description") == drop(sent, "type", where="enum")


def drop(schema: Any, word: str, where: str = "") -> Any:
    """A schema without a keyword (where another stands beside it)."""
    if isinstance(schema, list):
        return [drop(item, word, where) for item in schema]
    if not isinstance(schema, dict):
        return schema
    applies = not where or where in schema
    return {key: drop(value, word, where) for key, value in schema.items() if key != word or not applies}


@pytest.mark.parametrize(
    ("stop", "reason"),
    [("end_turn", "stop"), ("max_tokens", "length"), ("refusal", "refusal"), ("pause_turn", "length")],
)
def test_anthropic_replies_are_read(package, stop, reason):
    """A Message built by Anthropic's package, thinking included."""
    types = package("anthropic.types")
    answer = types.Message.model_validate({
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-haiku-5-5",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "redacted_thinking", "data": "hm"},
            {"type": "text", "text": "ok", "citations": None},
        ],
        "stop_reason": stop,
        "stop_details": {"type": "refusal", "category": "bio", "explanation": "why"} if stop == "refusal" else None,
        "usage": {"input_tokens": 2, "output_tokens": 3, "cache_read_input_tokens": 10},
    })  # fmt: skip
    reply = read_from(answer, "anthropic")

    assert (reply.text, reply.finish_reason, reply.model) == ("ok", reason, "claude-haiku-5-5")
    assert reply.usage == Usage(input_tokens=12, output_tokens=3, cached_tokens=10)


def test_every_stop_reason_of_anthropic_is_known(package):
    """A new one in the package is a decision to make."""
    known = {"end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal"}
    reasons = set(package("anthropic.types.stop_reason").StopReason.__args__)

    assert reasons == known | {"model_context_window_exceeded"}


def test_the_api_version_is_the_packages_own(package):
    """The version in the header is the one the package was written for."""
    _, server = talk((500, {"x-should-retry": "false"}, {}), prefix="anthropic")

    assert server.headers[0]["anthropic-version"] == package("anthropic._constants").ANTHROPIC_API_VERSION


# Gemini


@REQUESTS
def test_gemini_would_take_the_request(package, request_):
    """Contents and configuration are the package's types, which accept no unknown key."""
    types = package("google.genai.types")
    body = send("gemini", request_)

    assert set(body) == {"systemInstruction", "contents", "generationConfig"}
    types.Content.model_validate(body["systemInstruction"])
    assert types.Content.model_validate(body["contents"][0]).role == "user"
    config = types.GenerationConfig.model_validate(body["generationConfig"])
    assert config.max_output_tokens == 2048
    if request_ is ASKED:
        assert config.response_json_schema == ASKED.form.schema
        assert (config.response_mime_type, config.response_logprobs) == ("application/json", True)


@pytest.mark.parametrize(("finish", "reason"), [("STOP", "stop"), ("MAX_TOKENS", "length"), ("SAFETY", "refusal")])
def test_gemini_replies_are_read(package, finish, reason):
    """A GenerateContentResponse built by Google's package: thoughts, token probabilities, cached tokens."""
    types = package("google.genai.types")
    one, other = (
        types.LogprobsResultCandidate(token="ok", log_probability=-0.5),
        types.LogprobsResultCandidate(token="no", log_probability=-2.0),
    )
    answer = types.GenerateContentResponse(
        candidates=[
            types.Candidate(
                content=types.Content(role="model", parts=[types.Part(text="hm", thought=True), types.Part(text="ok")]),
                finish_reason=finish,
                logprobs_result=types.LogprobsResult(
                    chosen_candidates=[one], top_candidates=[types.LogprobsResultTopCandidates(candidates=[one, other])]
                ),
            )
        ],
        usage_metadata=types.GenerateContentResponseUsageMetadata(
            prompt_token_count=9, candidates_token_count=1, thoughts_token_count=2, cached_content_token_count=5
        ),
        model_version="gemini-reported",
        response_id="r",
    )
    reply = read_from(answer, "gemini", exclude_none=True)

    assert (reply.text, reply.finish_reason, reply.model, reply.request_id) == ("ok", reason, "gemini-reported", "r")
    assert reply.usage == Usage(input_tokens=9, output_tokens=3, cached_tokens=5)
    assert reply.logprobs is not None
    assert reply.logprobs[0].top == (("ok", -0.5), ("no", -2.0))


def test_a_prompt_that_gemini_blocks_is_a_refusal(package):
    """As the package models it: feedback, and no candidate."""
    types = package("google.genai.types")
    feedback = types.GenerateContentResponsePromptFeedback(block_reason="PROHIBITED_CONTENT")
    reply = read_from(types.GenerateContentResponse(prompt_feedback=feedback), "gemini", exclude_none=True)

    assert reply.finish_reason == "refusal"
