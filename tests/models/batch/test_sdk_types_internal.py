"""The providers' own packages agree: our files and requests fit their types, and so do the answers of our servers.

The servers of these tests are from documentation; what they say is held against the packages' types here, so that
what passes against them is what a provider could say.
"""

from __future__ import annotations

import importlib
import json
import warnings
from importlib.util import find_spec
from typing import Any

import pytest
from pydantic import TypeAdapter

from kit.batch import BatchServer, go, serve
from kit.runs import make_cases

pytestmark = pytest.mark.timed


@pytest.fixture(name="package")
def provide_package(require):
    """Import a module of a provider's package, or skip naming the package."""

    def get(name: str) -> Any:
        top = "google.genai" if name.startswith("google") else name.split(".", maxsplit=1)[0]
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


def judge(kind: str, **knobs: Any) -> BatchServer:
    """A server after a run by batches, with an error among the answers."""
    status = 3 if kind == "gemini" else 400
    body = {"error": {"type": "invalid_request_error", "message": "odd", "code": None, "param": None}}
    with serve(kind, fail=lambda prompt: (status, body) if "text 4\n" in prompt else None, **knobs) as server:
        go(server, make_cases(8))
    return server


def fits(body: dict[str, Any], typed_dict: Any) -> Any:
    """Fail unless a body has the type of a request, with no key the type does not know."""
    assert set(body) <= set(typed_dict.__required_keys__ | typed_dict.__optional_keys__)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return TypeAdapter(typed_dict).validate_json(json.dumps(body))


def knows(answer: Any, model: Any, *, by_alias: bool = False) -> Any:
    """Fail unless an answer is one of a package's, with no member that the type does not know: none forbids others."""
    fields = model.model_fields
    known = {item.alias or name for name, item in fields.items()} if by_alias else set(fields)
    assert set(answer) <= known, set(answer) - known
    return model.model_validate(answer)


def find_answers(server: BatchServer, shape: str) -> list[Any]:
    """What a server said about jobs in a shape."""
    answers = [body for name, body in server.answers if name == shape]
    assert answers
    return answers


# OpenAI


def test_a_line_for_openai_is_a_request_of_its_live_interface(package):
    """The package has no type for a line; its body is a CompletionCreateParamsNonStreaming."""
    params = package("openai.types.chat.completion_create_params").CompletionCreateParamsNonStreaming
    server = judge("openai")

    lines = [json.loads(line) for file in server.files.values() for line in file.split(b"\n") if line]
    assert len(lines) == 8
    for line in lines:
        assert set(line) == {"custom_id", "method", "url", "body"}
        fits(line["body"], params)


def test_a_job_of_openais_is_created_as_its_package_does(package):
    """BatchCreateParams, in what was sent; FileCreateParams is a form."""
    params = package("openai.types.batch_create_params").BatchCreateParams
    with serve() as server:
        bodies: list[Any] = []
        take = server._create

        async def note(request: Any, lines: Any, label: str) -> Any:
            bodies.append(json.loads(await request.read()))
            return await take(request, lines, label)

        server._create = note  # type: ignore[method-assign]
        go(server, make_cases(3))

    [body] = bodies
    fits(body, params)


@pytest.mark.parametrize("knobs", [{}, {"bad_line": "text 6"}, {"end": "expired", "run_share": 0.5}], ids=str)
def test_our_server_says_what_openai_says(package, knobs: dict[str, Any]):
    """``Batch``, ``FileObject``, and ``ChatCompletion`` in a line of the output."""
    batch = package("openai.types.batch").Batch
    completion = package("openai.types.chat.chat_completion").ChatCompletion
    file = package("openai.types.file_object").FileObject
    server = judge("openai", **knobs)

    for answer in find_answers(server, "Batch"):
        knows(answer, batch)
    for answer in find_answers(server, "FileObject"):
        knows(answer, file)
    for job in server.jobs.values():
        for row in job.rows:
            knows(json.loads(row)["response"]["body"], completion)


# Anthropic


@pytest.mark.full
@pytest.mark.slow
def test_an_element_for_anthropic_is_its_packages_request(package):
    """``messages.batch_create_params.Request``."""
    params = package("anthropic.types.messages.batch_create_params")
    server = judge("anthropic")

    for job in server.jobs.values():
        for name, body in job.lines:
            fits({"custom_id": name, "params": body}, params.Request)
            fits(body, package("anthropic.types.message_create_params").MessageCreateParamsNonStreaming)


@pytest.mark.parametrize("knobs", [{}, {"end": "ended", "run_share": 0.5}], ids=str)
def test_our_server_says_what_anthropic_says(package, knobs: dict[str, Any]):
    """``MessageBatch`` and ``MessageBatchIndividualResponse``: succeeded, errored and expired."""
    types = package("anthropic.types.messages")
    server = judge("anthropic", **knobs)

    for answer in find_answers(server, "MessageBatch"):
        knows(answer, types.MessageBatch)
    kinds = set()
    for job in server.jobs.values():
        for row in job.rows:
            read = knows(json.loads(row), types.MessageBatchIndividualResponse)
            kinds.add(read.result.type)
    assert kinds >= ({"succeeded", "errored"} if not knobs else {"succeeded", "expired"})


# Gemini


def test_a_line_for_gemini_is_its_packages_request(package):
    """The package's ``GenerateContentConfig`` and ``Content`` read what is in ``request``."""
    types = package("google.genai.types")
    server = judge("gemini")

    lines = [json.loads(line) for file in server.files.values() for line in file.split(b"\n") if line]
    assert len(lines) == 8
    for line in lines:
        assert set(line) == {"key", "request"}
        for content in line["request"]["contents"]:
            knows(content, types.Content, by_alias=True)
        knows(line["request"]["generationConfig"], types.GenerationConfig, by_alias=True)
        knows(line["request"]["systemInstruction"], types.Content, by_alias=True)


@pytest.mark.parametrize("knobs", [{}, {"end": "PARTIALLY_SUCCEEDED"}], ids=str)
def test_our_server_says_what_gemini_says(package, knobs: dict[str, Any]):
    """The package reads a state that it knows, a file of results, and ``GenerateContentResponse`` in its lines."""
    types, batches = package("google.genai.types"), package("google.genai.batches")
    server = judge("gemini", **knobs)

    states = {item.value for item in types.JobState}
    for answer in find_answers(server, "BatchJob"):
        with warnings.catch_warnings():
            # It has JOB_STATE_PARTIALLY_SUCCEEDED, and does not translate the API's word for it.
            warnings.simplefilter("ignore")
            job = types.BatchJob.model_validate(batches._BatchJob_from_mldev(answer))
        assert (job.name, job.display_name) == (answer["name"], answer["metadata"]["displayName"])
        assert answer["metadata"]["state"].replace("BATCH_", "JOB_") in states
    for made in server.jobs.values():
        for row in made.rows:
            line = json.loads(row)
            if "response" in line:
                knows(line["response"], types.GenerateContentResponse, by_alias=True)
            else:
                knows(line["error"], types.JobError, by_alias=True)
