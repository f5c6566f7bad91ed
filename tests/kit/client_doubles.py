"""The clients of other libraries that ``docs/gateways.md`` calls: they answer as the model of the pages does.

OpenAI's and Google's clients are the real ones where they are installed, and ask a server of the tests: they check what
the page sends, and make what it reads. For the others modules stand that take the calls of the page and no others.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from kit.example_model import ExampleModel

Say = Callable[[str, str], str]
"""From the system part and the user's to the text of the reply."""


def put_clients(model: ExampleModel) -> None:
    """Let the clients of the page answer as the model does, until the model ends."""
    patch = model.opened.enter_context(pytest.MonkeyPatch.context())

    def say(system: str, user: str) -> str:
        return model.judge(f"{system}\n{user}")

    address = model.opened.enter_context(serve_formats(say))
    put_openai(address, say, patch)
    put_genai(address, say, patch)
    patch.setitem(sys.modules, "boto3", make_boto3(say))
    patch.setitem(sys.modules, "litellm", make_module("litellm", acompletion=make_completion(say)))


def put_openai(address: str, say: Say, patch: pytest.MonkeyPatch) -> None:
    """Point OpenAI's client to the server, or stand in for it."""
    try:
        import openai
    except ImportError:
        patch.setitem(sys.modules, "openai", make_module("openai", AsyncOpenAI=make_openai(say)))
        return
    real = openai.AsyncOpenAI
    patch.setattr(openai, "AsyncOpenAI", lambda **options: real(**options | {"base_url": address}))


def put_genai(address: str, say: Say, patch: pytest.MonkeyPatch) -> None:
    """Point Google's client to the server, or stand in for it."""
    try:
        from google import genai
        from google.oauth2.credentials import Credentials
    except ImportError:
        genai = make_genai(say)
        patch.setitem(sys.modules, "google", make_module("google", genai=genai))
        patch.setitem(sys.modules, "google.genai", genai)
        return
    real, here = genai.Client, {"credentials": Credentials("a token"), "http_options": {"base_url": address}}
    patch.setattr(genai, "Client", lambda **options: real(**options | here))


def make_module(name: str, **members: Any) -> ModuleType:
    """A module of that name with these members alone."""
    module = ModuleType(name)
    vars(module).update(members)
    return module


def make_openai(say: Say) -> Callable[..., Any]:
    """OpenAI's asynchronous client: chat completions, and responses."""

    async def respond(**options: Any) -> Any:
        assert options.keys() == {"model", "instructions", "input", "reasoning"}
        return SimpleNamespace(output_text=say(options["instructions"], options["input"]))

    def connect(*, base_url: str, default_headers: dict[str, str]) -> Any:
        chat = SimpleNamespace(completions=SimpleNamespace(create=make_completion(say)))
        return SimpleNamespace(chat=chat, responses=SimpleNamespace(create=respond))

    return connect


def make_completion(say: Say) -> Callable[..., Any]:
    """A chat completion, as OpenAI's client and LiteLLM take it."""

    async def complete(*, model: str, messages: list[dict[str, str]]) -> Any:
        system, user = messages
        assert (system["role"], user["role"]) == ("system", "user")
        message = SimpleNamespace(content=say(system["content"], user["content"]))
        return SimpleNamespace(choices=[SimpleNamespace(message=message)])

    return complete


def make_genai(say: Say) -> ModuleType:
    """Google's client for Vertex AI."""

    def generate(*, model: str, contents: str, config: Any) -> Any:
        return SimpleNamespace(text=say(config.system_instruction, contents))

    def connect(*, vertexai: bool, project: str, location: str) -> Any:
        return SimpleNamespace(models=SimpleNamespace(generate_content=generate))

    types = SimpleNamespace(GenerateContentConfig=SimpleNamespace)
    return make_module("google.genai", Client=connect, types=types)


def make_boto3(say: Say) -> ModuleType:
    """The AWS SDK, with the runtime of Bedrock."""

    def converse(**options: Any) -> Any:
        assert options.keys() == {"modelId", "system", "messages"}
        [part], [message] = options["system"], options["messages"]
        text = say(part["text"], message["content"][0]["text"])
        return {"output": {"message": {"role": "assistant", "content": [{"text": text}]}}}

    return make_module("boto3", client={"bedrock-runtime": SimpleNamespace(converse=converse)}.__getitem__)


@contextmanager
def serve_formats(say: Say) -> Iterator[str]:
    """A server that answers in the formats of OpenAI and Google, for as long as the block lasts; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            data = json.dumps(answer(self.path, body, say)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Write nothing between the output of the page."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()


def answer(path: str, body: Any, say: Say) -> dict[str, Any]:
    """The reply to one request, in the format of its path."""
    if path.endswith("/chat/completions"):
        text = say(*(message["content"] for message in body["messages"]))
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        return {"id": "1", "object": "chat.completion", "created": 0, "model": body["model"], "choices": [choice]}
    if path.endswith("/responses"):
        content = [{"type": "output_text", "text": say(body["instructions"], body["input"]), "annotations": []}]
        message = {"id": "2", "type": "message", "role": "assistant", "status": "completed", "content": content}
        return {"id": "1", "object": "response", "created_at": 0, "model": body["model"], "output": [message]}
    assert path.endswith(":generateContent"), path
    text = say(body["systemInstruction"]["parts"][0]["text"], body["contents"][0]["parts"][0]["text"])
    return {"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP"}]}
