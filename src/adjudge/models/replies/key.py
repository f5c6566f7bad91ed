"""The keys under which replies are kept, all made of one description of the request.

* A recording's key is of the request and the model's name, so that a file replays on any machine.
* A cache's key is of everything that determines the reply: also of who the model is besides its name, and of which
  seat, attempt and sample asks.
* A run keeps a reply at its place (case, order, sample, model, seat, attempt), with a recording's key in the row. A
  reply is then found without its prompt too, which another rubric would word differently.

Files hold these keys: whatever changes one makes every kept reply of its kind a miss.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from adjudge.errors import UsageError
from adjudge.formats.plain_data import encode
from adjudge.models.model import Model, Request
from adjudge.models.replies.mask import mask

KEY_SCHEMA = "adjudge/reply-key/1"
"""Goes up when the way a request reaches a provider changes so that the answer may; old replies are then not found."""


def describe_request(request: Request) -> dict[str, Any]:
    """Describe a request as a recording keeps it. Its key is computed from this and the model's name alone."""
    form = request.form
    return {
        "system": mask(request.system, request.token),
        "user": mask(request.user, request.token),
        "form": {"name": form.name, "digest": form.digest} if form else None,
        "parameters": {
            "temperature": request.temperature,
            "seed": request.seed,
            "max_output_tokens": request.max_output_tokens,
            "logprobs": request.logprobs,
            **_describe_function_input(request),
        },
    }


def _describe_function_input(request: Request) -> dict[str, Any]:
    """Return the part of a judge in code's input that the prompt does not show, for its key; nothing for a model.

    A prompt does not tell a text from a value that is written alike, and has no thresholds, so two requests with one
    prompt can call the function with different arguments.
    """
    return {} if request.function_input is None else {"given": request.function_input.key}


def make_key(model: str, described: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the canonical JSON (RFC 8785) of a model's name and a described request."""
    form, parameters = described["form"], described["parameters"]
    # Canonical JSON has the members in the order of their names, so the prompt's user part is last. What is before it
    # is the same for every content that is judged by one rubric, and is hashed once.
    shared_hash = _hash_prefix(
        model, described["system"], form and tuple(form.items()), tuple(parameters), *parameters.values()
    )
    key_hash = shared_hash.copy()
    key_hash.update(_encode_text(described["user"], model) + b"}")
    return key_hash.hexdigest()


@lru_cache(maxsize=256, typed=True)  # typed: 1, 1.0 and True are written differently
def _hash_prefix(
    model: str, system: str, form: tuple[tuple[str, str], ...] | None, names: tuple[str, ...], *values: Any
) -> Any:
    """Hash the canonical JSON of a request up to the user part of its prompt; a caller has to copy the hash object.

    ``names`` and ``values`` are those of the parameters. Raises ``UsageError`` for a request that has no canonical
    JSON.
    """
    import rfc8785

    try:
        form_json = rfc8785.dumps(form and dict(form))
        parameters_json = rfc8785.dumps(dict(zip(names, values, strict=True)))
    except rfc8785.CanonicalizationError as error:
        raise UsageError(f"a request to {model} cannot be recorded or looked up: {error}") from None
    model_json, system_json = _encode_text(model, model), _encode_text(system, model)
    return hashlib.sha256(
        b'{"form":%b,"model":%b,"parameters":%b,"system":%b,"user":'
        % (form_json, model_json, parameters_json, system_json)
    )


def _encode_text(text: str, model: str) -> bytes:
    """Encode a text as canonical JSON. msgspec does that as RFC 8785 asks, many times as fast as rfc8785.

    Raises ``UsageError``, which names the model, for a text that is not valid Unicode.
    """
    import msgspec

    try:
        return msgspec.json.encode(text)
    except UnicodeEncodeError as error:
        raise UsageError(f"a request to {model!r} cannot be recorded or looked up: {error}") from None


def find_identity(model: Model) -> Mapping[str, Any]:
    """Find the identity that tells a model from others of its name; raises ``UsageError`` for a function."""
    identity: Mapping[str, Any] | None = getattr(model, "identity", None)
    if identity is None:
        raise UsageError(
            f"replies of {model.name} cannot be cached: nothing but its name tells it from another function; "
            "give an identity that you change whenever its code does"
        )
    return identity


def describe_call(model: Model, request: Request, *, seat: int = 0) -> dict[str, Any]:
    """Describe everything that determines a reply, with the two parts of the prompt as SHA-256.

    Raises ``UsageError`` for a model that has no identity.
    """
    described = describe_request(request)
    return {
        "schema": KEY_SCHEMA,
        "model": model.name,
        "identity": dict(find_identity(model)),
        "system": _digest_text(described["system"]),
        "user": _digest_text(described["user"]),
        "form": described["form"],
        "parameters": described["parameters"],
        "attempt": request.attempt,
        "sample": request.sample,
        "seat": seat,
    }


def make_source(described: Mapping[str, Any]) -> str:
    """Write the model and the identity of a described call as one text, under which reported names are kept."""
    import msgspec

    return msgspec.json.encode([described["model"], described["identity"]], order="sorted").decode()


def make_call_key(described: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the canonical JSON (RFC 8785) of a described call. Raises ``UsageError``."""
    import rfc8785

    try:
        return hashlib.sha256(rfc8785.dumps(dict(described))).hexdigest()
    except rfc8785.CanonicalizationError as error:
        raise UsageError(f"a request to {described['model']} cannot be looked up in a cache: {error}") from None


def make_reply_key(*, case: str | None, order: str | None, sample: int, model: str, seat: int, attempt: int) -> str:
    """Return the key under which a run keeps a reply: case, order, sample, model, seat and attempt.

    It is a JSON list and no digest, so that the replies to one case are next to each other in the file, and can be
    found without the prompt that they answer. The row holds a digest of the prompt, which is compared before the reply
    is used.
    """
    return encode([case, order, sample, model, seat, attempt]).decode()


def make_case_prefix(case: str) -> str:
    """Return the beginning of the keys of all replies to one case, as ``make_reply_key`` makes them."""
    return encode([case]).decode()[:-1] + ","


def _digest_text(text: str) -> str:
    """Return the SHA-256 of a text, which may be no valid Unicode: a request gets its key before it is refused."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
