"""From names to models: every prefix, options in the name, and errors that say what to write instead."""

from __future__ import annotations

import asyncio
import sys

import pytest

from adjudge import UsageError
from adjudge.models import Model, as_model, hosts_of, open_model, resolve_model
from kit.wire import PLAIN


@pytest.mark.parametrize(
    ("spec", "host"),
    [
        ("openai:gpt-6.1-terra", "api.openai.com"),
        ("anthropic:claude-haiku-5-5", "api.anthropic.com"),
        ("gemini:gemini-3.5-flash-lite", "generativelanguage.googleapis.com"),
        ("mistral:mistral-small-2603", "api.mistral.ai"),
        ("groq:openai/gpt-oss-20b", "api.groq.com"),
        ("together:meta-llama/Llama-3.3-70B", "api.together.ai"),
        ("openrouter:openai/gpt-5:free", "openrouter.ai"),
        ("ollama:llama3:8b", "127.0.0.1:11434"),
        ("http://box:8000/v1#org/model", "box:8000"),
        ("https://models.example.com/v1#m", "models.example.com"),
        ("http://[::1]:8080/v1#m", "[::1]:8080"),
    ],
)
def test_every_provider_opens(spec, host, monkeypatch):
    """The name of the model is its spec, and its host is known before anything is asked."""
    for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "OLLAMA_HOST"):
        monkeypatch.delenv(name, raising=False)
    model = open_model(spec)

    assert isinstance(model, Model)
    assert model.name == spec
    assert hosts_of(model) == (host,)
    assert (model.structured, model.max_input_characters) == (True, 1_000_000)
    assert spec in repr(model)


def test_options_stand_in_the_name_or_beside_it():
    """Options are no part of the model's name; one given in the call wins."""
    model = open_model("openai:gpt-6.1-terra?requests_per_minute=500&max_concurrency=8", max_concurrency=9)
    assert model.name == "openai:gpt-6.1-terra"
    assert (model.transport.requests_per_minute, model.transport.max_concurrency) == (500.0, 9)

    server = open_model('http://h:1/v1?key_env=MY_KEY&max_concurrency=8&free_text={"maxLength":60}#org/m')
    assert server.name == "http://h:1/v1#org/m"
    assert (server.endpoint.key_env, server.transport.max_concurrency) == ("MY_KEY", 8)
    assert server.free_text == {"maxLength": 60}


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("", "must be a text like"),
        ("gpt-6.1-terra", "names begin with openai:"),
        ("opnai:gpt-6.1-terra", "did you mean openai:"),
        ("antropic:x", "did you mean anthropic:"),
        ("gpt-4o", "did you mean openai:gpt-4o?"),
        ("openai/gpt-4o", "did you mean openai:gpt-4o?"),
        ("o3-mini", "did you mean openai:o3-mini?"),
        ("claude-haiku-5", "did you mean anthropic:claude-haiku-5?"),
        ("google/gemini-3-pro", "did you mean gemini:gemini-3-pro?"),
        ("bedrock:claude", "Amazon Bedrock is not built in; pass a function that calls its client"),
        ("vertex:gemini-3-pro", "Vertex AI is not built in; pass a function"),
        ("vertex_ai/gemini-3-pro", "Vertex AI is not built in; pass a function"),
        ("litellm:x", "or name its proxy, http://HOST/v1#NAME"),
        ("litellm/x", "LiteLLM is not built in"),
        ("rules:x", "not the name of a model"),
        ("rule", "did you mean rules"),
        ("openai", "not the name of a model"),
        ("openai:", "needs a name after the colon"),
        ("replay:", "needs a name after the colon"),
        ("decisions:x", "not the name of a model"),
        ("llama:/a.gguf", "name it http://127.0.0.1:8080/v1#NAME"),
        ("http://host/v1", "needs the model's name after '#'"),
        ("http:///v1#m", "must be like https://host/v1"),
        ("http://host:x/v1#m", "port"),
        ("openai:m?max_concurency=3", "no option 'max_concurency'; it takes base_url, key_env"),
        ("replay:f?key_env=A", "no option 'key_env'"),
        ("openai:m?max_concurrency=0", "max_concurrency must be a whole number"),
        ("openai:m?max_concurrency=many", "max_concurrency must be a whole number"),
        ("openai:m?requests_per_minute=0", "requests_per_minute must be a finite number above 0"),
        ("openai:m?requests_per_minute=nan", "requests_per_minute must be a finite number above 0"),
        ("openai:m?requests_per_minute=x", "requests_per_minute must be a number"),
        ("openai:m?base_url=ftp://x", "base_url must be like https://host/v1"),
        ("openai:m?key_env=", "key_env must name"),
        ("openai:m?free_text=[]", "free_text must be a JSON object"),
    ],
)
def test_a_name_that_cannot_be_opened_says_why(spec, says):
    """The error names the name, what is wrong and what to write."""
    with pytest.raises(UsageError) as caught:
        open_model(spec)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    "spec",
    [
        "http://me:hunter2@host/v1#m",
        "https://hunter2@host/v1?max_concurrency=1#m",
        "htp://me:hunter2@host/v1#m",
        "http://me:hunter2@host/v1?nonsense=1#m",
        "openai:m?base_url=http://me:hunter2@host/v1",
    ],
)
def test_a_password_in_an_address_is_refused_and_not_repeated(spec):
    """Names are written into results and recordings, so a password cannot be part of one."""
    with pytest.raises(UsageError) as caught:
        open_model(spec)
    assert "hunter2" not in str(caught.value)


def test_rules_is_a_model_that_must_not_be_asked():
    """Asked, it says what is missing."""
    model = open_model("rules")
    assert (model.name, hosts_of(model)) == ("rules", ())
    for ask in (model.check, lambda: asyncio.run(model.complete(PLAIN))):
        with pytest.raises(UsageError, match="give every criterion a rule"):
            ask()


def test_python_names_work_only_where_they_are_allowed(tmp_path, monkeypatch):
    """A name that runs code is refused by default, before anything is imported."""
    (tmp_path / "judging_module.py").write_text(
        "class Judges:\n    @staticmethod\n    def mine(prompt):\n        return prompt.upper()\nnumber = 5\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    spec = "python:judging_module:Judges.mine"

    with pytest.raises(UsageError, match=r"command line and in adjudge\.toml only"):
        open_model(spec)
    assert "judging_module" not in sys.modules
    model = open_model(spec, allow_python=True)
    assert model.name == spec
    assert asyncio.run(model.complete(PLAIN)).text == "BE A JUDGE.\n\nJUDGE THIS."
    for bad, says in (
        ("python:judging_module", "must be like"),
        ("python:no_such_module:f", "cannot be found: .*in the current folder"),
        ("python:./my/judging_module.py:f", "a module and not a file: python:my.judging_module:f"),
        ("python:judging_module.py:f", "a module and not a file: python:judging_module:f"),
        ("python:.judging_module:f", "a module and not a file: python:judging_module:f"),
        ("judging_module:f", "for a function write python:judging_module:f"),
        ("python:judging_module:absent", "cannot be found"),
        ("python:judging_module:number", "not int"),
    ):
        with pytest.raises(UsageError, match=says):
            open_model(bad, allow_python=True)


def test_a_rubric_may_name_a_model_in_full_or_of_the_same_provider():
    """A full name opens that model; a bare one is another model of the judge's own provider."""
    own = open_model("openai:gpt-6.1-terra")

    assert resolve_model("anthropic:claude-haiku-5-5", own).name == "anthropic:claude-haiku-5-5"
    assert resolve_model("gpt-5", own).name == "openai:gpt-5"
    assert resolve_model("rules", own).name == "rules"
    assert resolve_model("qwen3:8b", open_model("ollama:llama3")).name == "ollama:qwen3:8b"
    with pytest.raises(UsageError, match="has no other models"):
        resolve_model("gpt-5", as_model(("mine", lambda prompt: "")))
    with pytest.raises(UsageError, match="runs code"):
        resolve_model("python:os:system", own)
