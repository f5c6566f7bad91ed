"""Keys and addresses: which key goes to which host, and where keys never stand."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from adjudge import ModelError, UsageError
from adjudge.models import hosts_of, open_model
from kit.judges import names
from kit.wire import PLAIN, completion, error, serve, talk

pytestmark = pytest.mark.timed


KEY = "sk-very-secret-0123456789"


def test_an_unknown_host_gets_no_key(monkeypatch):
    """Only key_env sends a key to a server that is not the provider's own."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "MY_KEY"):
        monkeypatch.setenv(name, KEY)

    _, server = talk()
    assert "Authorization" not in server.headers[0]
    _, server = talk(prefix="openai")
    assert KEY not in str(server.headers)
    _, server = talk((200, {}, {"content": []}), prefix="anthropic")
    assert KEY not in str(server.headers)
    _, server = talk(key_env="MY_KEY")
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"


def test_base_url_of_the_environment_gets_the_providers_key(monkeypatch):
    """OPENAI_BASE_URL is the user's own word, like the key: both are honoured together."""

    async def run():
        async with serve() as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.url)
            monkeypatch.setenv("OPENAI_API_KEY", f" {KEY}\n")
            async with open_model("openai:gpt-6.1-terra") as model:
                await model.complete(PLAIN)
                return server, hosts_of(model)

    server, hosts = asyncio.run(run())
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert hosts == (f"127.0.0.1:{server.port}",)


@pytest.mark.parametrize(
    ("spec", "variables"),
    [
        ("openai:gpt-6.1-terra", "OPENAI_API_KEY"),
        ("anthropic:claude-haiku-5-5", "ANTHROPIC_API_KEY"),
        ("gemini:gemini-3.5-flash-lite", "GEMINI_API_KEY or GOOGLE_API_KEY"),
        ("mistral:mistral-small", "MISTRAL_API_KEY"),
        ("groq:llama", "GROQ_API_KEY"),
        ("together:a/b", "TOGETHER_API_KEY"),
        ("openrouter:openai/gpt-5", "OPENROUTER_API_KEY"),
        ("azure:deployment", "AZURE_OPENAI_API_KEY"),
    ],
)
def test_a_missing_key_is_named(spec, variables, monkeypatch):
    """check() says what to set; opening the model alone needs no key."""
    for name in variables.split(" or "):
        monkeypatch.delenv(name, raising=False)
    model = open_model(spec)

    with pytest.raises(UsageError) as caught:
        model.check()
    assert names(caught.value, spec, "a key", f"set {variables}")


def test_a_key_with_a_line_break_inside_is_refused_unshown(monkeypatch):
    """A key that could smuggle a header names its variable and not itself."""
    monkeypatch.setenv("OPENAI_API_KEY", f"{KEY}\r\nX-Evil: 1")

    with pytest.raises(UsageError, match="OPENAI_API_KEY holds characters") as caught:
        open_model("openai:gpt-6.1-terra").check()
    assert KEY not in str(caught.value)


def test_keys_never_stand_in_errors_or_reprs(monkeypatch):
    """Not even when a provider repeats the headers it got, at whatever place the message is cut."""
    monkeypatch.setenv("MY_KEY", KEY)
    for padding in (0, 280, 290, 299):
        echo = error("x" * padding + f" got Bearer {KEY}\x1b[31m\u202e bad")
        refusal, _ = talk((401, {}, echo), key_env="MY_KEY")
        assert KEY[:10] not in str(refusal)
        assert str(refusal).isprintable()
        assert len(str(refusal)) < 340

    bad_body, _ = talk((200, {}, {"error": KEY}), key_env="MY_KEY")
    assert KEY not in str(bad_body)
    model = open_model("http://127.0.0.1:9/v1?key_env=MY_KEY#m")
    model.check()
    assert KEY not in f"{model!r} {model}"


def test_a_replaced_key_is_read_again_after_401(monkeypatch):
    """A key that was rotated in the environment is picked up once the provider rejects the old one."""
    monkeypatch.setenv("MY_KEY", "old")

    async def run():
        async with (
            serve((401, {}, error("bad key")), (200, {}, completion())) as server,
            open_model(f"{server.url}?key_env=MY_KEY#m") as model,
        ):
            with pytest.raises(ModelError):
                await model.complete(PLAIN)
            monkeypatch.setenv("MY_KEY", "new")
            await model.complete(PLAIN)
        return [headers["Authorization"] for headers in server.headers]

    assert asyncio.run(run()) == ["Bearer old", "Bearer new"]


def test_azure_takes_endpoint_and_api_key_header(monkeypatch):
    """The v1 path is added to the resource's endpoint, and the key goes in its own header."""
    monkeypatch.delenv("AZURE_OPENAI_ENDPOINT", raising=False)
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
    with pytest.raises(UsageError, match="azure:d needs an address: set AZURE_OPENAI_ENDPOINT"):
        open_model("azure:d").check()
    assert hosts_of(open_model("azure:d")) == ()

    async def run(suffix):
        async with serve() as server:
            monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", f"http://127.0.0.1:{server.port}{suffix}")
            async with open_model("azure:d") as model:
                await model.complete(PLAIN)
        return server

    for suffix in ("", "/", "/openai/v1", "/openai/v1/"):
        server = asyncio.run(run(suffix))
        assert server.paths == ["/openai/v1/chat/completions"]
        assert (server.headers[0]["api-key"], "Authorization" in server.headers[0]) == (KEY, False)


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("", "127.0.0.1:11434"),
        ("0.0.0.0", "127.0.0.1:11434"),
        ("0.0.0.0:9000", "127.0.0.1:9000"),
        ("box", "box:11434"),
        ("http://box:8000/", "box:8000"),
        ("https://ollama.example.com", "ollama.example.com"),
        ("[::1]:9", "[::1]:9"),
    ],
)
def test_ollama_host_is_honoured(address, host, monkeypatch):
    """In all the forms that Ollama itself takes; no key is needed."""
    monkeypatch.setenv("OLLAMA_HOST", address)
    model = open_model("ollama:llama3:8b")
    model.check()

    assert hosts_of(model) == (host,)
    assert model.name == "ollama:llama3:8b"


def test_another_model_of_the_same_provider_shares_its_connections():
    """named() keeps place, limits and transport."""
    model = open_model("openai:gpt-6.1-terra?max_concurrency=3&max_input_characters=50")
    other = model.named("gpt-5")

    assert (other.name, other.transport, other.max_input_characters) == ("openai:gpt-5", model.transport, 50)
    assert type(open_model("anthropic:a").named("b")).__name__ == "Anthropic"
    assert open_model('ollama:a?free_text={"maxLength":5}').named("b").free_text == {"maxLength": 5}


def test_half_a_character_in_a_prompt_is_a_usage_error():
    """A lone surrogate cannot be sent, and the error says what it is."""
    model = open_model("http://127.0.0.1:9/v1#m")
    for request in (replace(PLAIN, user="\ud800"), replace(PLAIN, system="\ud800")):
        with pytest.raises(UsageError, match="surrogate"):
            asyncio.run(model.complete(request))


def test_a_key_that_a_server_sends_back_goes_no_further(monkeypatch):
    """Replies are shown, recorded and judged by; whoever is asked with a key must not be able to publish it."""
    monkeypatch.setenv("MY_KEY", KEY)
    tokens = [{"token": piece, "logprob": -0.1} for piece in ("it is ", KEY[:5], KEY[5:])]
    body = completion(f"it is {KEY}", id=f"id-{KEY}", model=f"echo Bearer {KEY}")
    body["choices"][0]["logprobs"] = {"content": tokens}
    reply, _ = talk((200, {}, body), key_env="MY_KEY")

    assert KEY not in repr(reply)
    assert (reply.text, reply.model, reply.request_id) == ("it is ***", "echo Bearer ***", "id-***")
    assert reply.logprobs is None  # they would not fit the text any more


@pytest.mark.parametrize("place", ["token", "top"])
def test_a_key_among_the_tokens_takes_the_probabilities_away(place, monkeypatch):
    """Also where the text itself does not hold it."""
    monkeypatch.setenv("MY_KEY", KEY)
    item = {"token": KEY if place == "token" else "fine", "logprob": -0.1}
    item["top_logprobs"] = [{"token": KEY if place == "top" else "fine", "logprob": -0.1}]
    body = completion()
    body["choices"][0]["logprobs"] = {"content": [item]}
    reply, _ = talk((200, {}, body), key_env="MY_KEY")

    assert (reply.text, reply.logprobs) == ("fine", None)


def test_a_placeholder_is_no_key(monkeypatch):
    """Local servers are asked with keys like "none": a word that any reply may hold."""
    monkeypatch.setenv("MY_KEY", "none")
    reply, _ = talk((200, {}, completion("none of it")), key_env="MY_KEY")

    assert reply.text == "none of it"
