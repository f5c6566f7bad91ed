"""Models by their names: ``openai:gpt-6.1-terra``, ``http://host:port/v1#NAME``, ``replay:FILE``.

The providers that are known, with their addresses and keys, are in ``providers/catalog.py``.
"""

from __future__ import annotations

import difflib
import importlib
import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn
from urllib.parse import parse_qsl

from adjudge.errors import UsageError
from adjudge.formats.arguments import check_whole_number
from adjudge.formats.text import show
from adjudge.models.defaults import EXAMPLE
from adjudge.models.function import FunctionJudge, FunctionModel, as_model
from adjudge.models.model import Model, Reply, Request

_HTTP_OPTIONS = ("base_url", "key_env", "max_concurrency", "requests_per_minute", "max_input_characters")

_CHAT_OPTIONS = (*_HTTP_OPTIONS, "free_text")

_PREFIXES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("openai", "mistral", "groq", "together", "openrouter", "azure", "ollama"), _CHAT_OPTIONS),
    **dict.fromkeys(("anthropic", "gemini"), _HTTP_OPTIONS),
    **dict.fromkeys(("http", "https"), tuple(name for name in _CHAT_OPTIONS if name != "base_url")),
    "python": ("max_concurrency",),
    "replay": ("model",),
    "rules": (),
}
"""Every prefix, with the options it takes."""

_UNOPENED_PREFIXES = ("llama",)
"""Prefixes that open nothing: a file of llama.cpp's is served by its own server."""


def open_model(spec: str, *, allow_python: bool = False, **options: object) -> Model:
    """The model of a name.

    Options may also stand in the name: ``openai:gpt-6.1-terra?requests_per_minute=500``,
    ``http://host/v1?key_env=MY_KEY#NAME``. Nothing is contacted, and no key is read, before the first call. Raises
    ``UsageError`` for a name that cannot be opened.

    Args:
        spec: The name: ``openai:gpt-6.1-terra``, ``ollama:NAME``, ``http://host/v1#NAME``, ``replay:FILE``.
        allow_python: Admit ``python:package.module:function``, which runs code: only for names that come from the
            caller's own command line or configuration.
        options: Options of the model, such as ``requests_per_minute=500``; they win over those in the name.
    """
    if not isinstance(spec, str) or not spec.strip():
        raise UsageError(f"the name of a model must be a text like '{EXAMPLE}', got {show(spec)}")
    spec = spec.strip()
    prefix, colon, remainder = spec.partition(":")
    if spec == "rules":
        return _RulesOnly()
    if prefix in _UNOPENED_PREFIXES and colon:
        raise UsageError(
            f"{_show_spec(spec)} opens no model; start llama.cpp's server (llama-server -m FILE --port 8080), and name "
            "it http://127.0.0.1:8080/v1#NAME",
            argument="spec",
        )
    if prefix not in _PREFIXES or not colon or prefix == "rules":
        _reject_name(spec, prefix)
    remainder, from_name = _split_options(prefix, remainder)
    checked = _check_options(spec, prefix, from_name | options)
    if prefix in ("http", "https"):
        return _open_server(f"{prefix}:{remainder}", checked)
    if not remainder:
        raise UsageError(f"{spec!r} needs a name after the colon, like {prefix}:NAME")
    return _open_by_prefix(prefix, remainder, checked, allow_python=allow_python)


def resolve_model(name: str, current: Model) -> Model:
    """Open the model that a rubric or a call names: by its full name, or as another model of the current provider.

    A recording, a cache or a budget around the current model applies to the other one too. Raises ``UsageError`` when
    the current model has no others. A name never runs code: ``python:`` is refused.

    Args:
        name: A full name (``openai:gpt-6.1-terra``), or the name of a model of the current provider.
        current: The model that would be asked otherwise.
    """
    prefix, colon, _ = name.partition(":")
    if name == "rules" or (colon and (prefix in _PREFIXES or prefix in _UNOPENED_PREFIXES)):
        wrap: Callable[[Model], Model] | None = getattr(current, "around", None)
        return open_model(name) if wrap is None else wrap(open_model(name))
    open_other_model: Callable[[str], Model] | None = getattr(current, "named", None)
    if open_other_model is None:
        raise UsageError(f"{name!r} is not the full name of a model, and {current.name} has no other models")
    return open_other_model(name)


def hosts_of(model: Model) -> tuple[str, ...]:
    """The hosts a model can contact, with ports where they are given; none for functions and recordings.

    Args:
        model: The model.
    """
    return tuple(getattr(model, "hosts", ()))


def asks_nobody(model: object) -> bool:
    """Return whether this is ``rules``, the stand-in for a model in rubrics of rules alone, or a wrapper around it."""
    return getattr(model, "name", None) == _RulesOnly.name


class _RulesOnly:
    """No model: for rubrics whose criteria are all rules."""

    name = "rules"
    structured = False
    hosts: tuple[str, ...] = ()

    def check(self) -> None:
        """Raise ``UsageError``: it is called only when a model would be asked."""
        raise UsageError("no model: give every criterion a rule, or the judge a model")

    async def complete(self, _request: Request, /) -> Reply:
        """Raise ``UsageError``: there is no model to ask."""
        raise UsageError("no model: give every criterion a rule, or the judge a model")

    def __repr__(self) -> str:
        return "<rules, no model>"


def _open_by_prefix(prefix: str, model_name: str, options: dict[str, Any], *, allow_python: bool) -> Model:
    """Open a model by its prefix, which names a provider, a recording or a function."""
    if prefix == "python":
        return _open_function(model_name, options, allow_python=allow_python)
    if prefix == "replay":
        from adjudge.models.replies.replay import ReplayModel

        return ReplayModel(model_name, **options)
    from adjudge.models.providers.catalog import ANTHROPIC, GEMINI, OPENAI_COMPATIBLE, Endpoint

    endpoint_options = {name: options.pop(name) for name in ("base_url", "key_env") if name in options}
    if prefix == "anthropic":
        from adjudge.models.providers.anthropic import Anthropic

        return Anthropic(model_name, endpoint=Endpoint(provider=ANTHROPIC, **endpoint_options), **options)
    if prefix == "gemini":
        from adjudge.models.providers.gemini import Gemini

        return Gemini(model_name, endpoint=Endpoint(provider=GEMINI, **endpoint_options), **options)
    from adjudge.models.providers.openai import OpenAICompatible

    return OpenAICompatible(
        model_name, endpoint=Endpoint(provider=OPENAI_COMPATIBLE[prefix], **endpoint_options), **options
    )


def _open_server(address: str, options: dict[str, Any]) -> Model:
    """Open a model by an address like ``http://host/v1#NAME``. Raises ``UsageError`` for one without a name."""
    from adjudge.models.providers.catalog import SERVER, Endpoint
    from adjudge.models.providers.openai import OpenAICompatible

    base, _, name = address.partition("#")
    # Checked before the name is, so that an address with a password is not repeated by a later message.
    endpoint = Endpoint(provider=SERVER, base_url=base, key_env=options.pop("key_env", None))
    if not name:
        raise UsageError(f"{base} needs the model's name after '#', like {base}#NAME")
    return OpenAICompatible(name, endpoint=endpoint, **options)


def _open_function(path: str, options: dict[str, Any], *, allow_python: bool) -> Model:
    """Import a function and make a model of it; raise ``UsageError`` for one that cannot be found."""
    spec = f"python:{path}"
    if not allow_python:
        raise UsageError(
            f"{spec} runs code, so it works on the command line and in adjudge.toml only; "
            "in Python pass the function itself"
        )
    module, colon, attribute = path.partition(":")
    if not module or not colon or not attribute:
        raise UsageError(f"{spec} must be like python:package.module:function")
    if module.startswith(".") or "/" in module or module.endswith(".py"):  # a relative name is a TypeError of importlib
        dotted = module.removesuffix(".py").removeprefix("./").strip("./").replace("/", ".")
        raise UsageError(f"{spec} must name a module and not a file: python:{dotted}:{attribute}")
    try:
        function: Any = importlib.import_module(module)
        for attribute_name in attribute.split("."):
            function = getattr(function, attribute_name)
    except (ImportError, AttributeError) as error:
        is_unknown_module = isinstance(error, ModuleNotFoundError) and error.name == module.partition(".")[0]
        advice = (
            "; modules are looked for among what is installed, and in the current folder, or beside the configuration "
            "file that names them"
        )
        raise UsageError(f"{spec} cannot be found: {error}{advice if is_unknown_module else ''}") from None
    if isinstance(function, FunctionModel | FunctionJudge):
        return function.rename(spec)
    # Not as a pair: for a pair the return annotation does not count, and here it counts as in ``Judge(function)``.
    return as_model(function, spec, **options)


def _split_options(prefix: str, remainder: str) -> tuple[str, dict[str, object]]:
    """Split the text after a spec's prefix into the model's name without a query, and the options in the query."""
    before, question_mark, query = remainder.partition("?")
    if not question_mark:
        return remainder, {}
    hash_mark, name = "", ""
    if prefix in ("http", "https"):  # the name of a server's model comes after the query
        query, hash_mark, name = query.partition("#")
    pairs = parse_qsl(query, keep_blank_values=True)
    return before + hash_mark + name, dict(pairs)


def _check_options(spec: str, prefix: str, options: Mapping[str, object]) -> dict[str, Any]:
    """Return the values of a model's options, without those that are ``None``.

    Raises ``UsageError`` for an option that the prefix does not take, and for a value that cannot be read.
    """
    option_names = _PREFIXES[prefix]
    for name in options:
        if name not in option_names:
            takes = f"it takes {', '.join(option_names)}" if option_names else "it takes none"
            raise UsageError(f"{_show_spec(spec)} has no option {show(name)}; {takes}", argument=name)
    return {
        name: _OPTION_READERS.get(name, _read_text)(name, value) for name, value in options.items() if value is not None
    }


def _read_int(name: str, value: object) -> object:
    """Read an option that is the text of a whole number; a value that is no text is returned as it is.

    Raises ``UsageError`` for any other text.
    """
    if isinstance(value, str):
        is_number = value.isascii() and value.isdigit() and len(value) <= 12
        return check_whole_number(name, int(value) if is_number else value)
    return value


def _read_float(name: str, value: object) -> object:
    """Read an option that is the text of a number; a value that is no text is returned as it is.

    Raises ``UsageError`` for any other text.
    """
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            raise UsageError(f"{name} must be a number, got {show(value)}", argument=name) from None
    return value


def _read_object(name: str, value: object) -> object:
    """Read an option that is the text of a flat JSON object; a value that is no text is returned as it is.

    Raises ``UsageError`` for any other text.
    """
    if not isinstance(value, str):
        return value
    import msgspec

    try:
        return msgspec.json.decode(value, type=dict[str, str | int | float | bool | None])
    except msgspec.DecodeError as error:
        raise UsageError(f"{name} must be a JSON object of JSON Schema keywords: {error}", argument=name) from None


def _read_text(name: str, value: object) -> object:
    """Return the text of an option. Raises ``UsageError`` for any other value."""
    if not isinstance(value, str):
        raise UsageError(f"{name} must be a text, got {type(value).__name__}", argument=name)
    return value


_OPTION_READERS: Mapping[str, Callable[[str, object], object]] = {
    "max_concurrency": _read_int,
    "max_input_characters": _read_int,
    "requests_per_minute": _read_float,
    "free_text": _read_object,
}


def _show_spec(spec: str) -> str:
    """Write a spec for a message, without its options; an address that may hold a password is left out."""
    return show(spec.partition("?")[0]) if "@" not in spec else "the model's address"


_FUNCTION_PATH = re.compile(r"[A-Za-z_][\w.]{0,99}:[A-Za-z_][\w.]{0,99}")
"""The form of ``module:function``; a spec with an address or a password does not."""


_FAMILIES = {
    **dict.fromkeys(("gpt-", "chatgpt-", "o1", "o3", "o4"), "openai"),
    "claude-": "anthropic",
    "gemini-": "gemini",
    **dict.fromkeys(("mistral-", "ministral-", "magistral-", "codestral-"), "mistral"),
}
"""The provider of a bare name, by how it begins."""

_PREFIX_BY_FOREIGN_NAME = {
    "google": "gemini",
    "mistralai": "mistral",
    "together_ai": "together",
    "azure_openai": "azure",
}
"""The names that other libraries have for a provider."""

_CLIENTS_NOT_BUILT_IN = {
    **dict.fromkeys(("bedrock", "aws", "amazon"), "Amazon Bedrock"),
    **dict.fromkeys(("vertex", "vertex_ai", "vertexai"), "Vertex AI"),
    "litellm": "LiteLLM",
}
"""Clients that are not built in, and can be called by a function."""

_MODEL_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,99}")


def _suggest_name(spec: str, prefix: str) -> str:
    """Return the end of a message that suggests what a spec that opens no model may mean; empty if nothing fits.

    It suggests the provider's own form, or how to hand in a function.
    """
    provider, slash, name = spec.partition("/")
    provider = (provider if slash else prefix).lower()
    if client := _CLIENTS_NOT_BUILT_IN.get(provider):
        proxy = ", or name its proxy, http://HOST/v1#NAME" if client == "LiteLLM" else ""
        return (
            f": {client} is not built in; pass a function that calls its client and returns the text, "
            f'Judge(("{provider}", call)) with def call(prompt), or python:MODULE:call on the command line{proxy}'
        )
    provider = _PREFIX_BY_FOREIGN_NAME.get(provider, provider)
    if slash and provider in _PREFIXES and _MODEL_NAME.fullmatch(name):
        return f" (did you mean {provider}:{name}?)"
    for beginning, known_provider in _FAMILIES.items():
        if spec.lower().startswith(beginning) and _MODEL_NAME.fullmatch(spec):
            return f" (did you mean {known_provider}:{spec}?)"
    near = difflib.get_close_matches(prefix.lower(), list(_PREFIXES), n=1, cutoff=0.75)
    if near:
        return f" (did you mean {near[0]}{'' if near[0] == 'rules' else ':'}?)"
    return f"; for a function write python:{spec}" if _FUNCTION_PATH.fullmatch(spec) else ""


def _reject_name(spec: str, prefix: str) -> NoReturn:
    """Raise the ``UsageError`` for a spec that begins with no known prefix."""
    prefixes = ", ".join(f"{name}:" for name in _PREFIXES if name not in ("http", "https", "rules"))
    raise UsageError(
        f"{_show_spec(spec)} is not the name of a model{_suggest_name(spec, prefix)}; names begin with {prefixes}, "
        "http://HOST/v1#NAME or are rules",
        argument="spec",
    )
