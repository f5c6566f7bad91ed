"""The reference shows each public class and function with the parameters that Python gives it."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from typing import Any

import pytest

from kit import house
from kit.environment import require
from kit.public import PACKAGES, read_stub

Signature = list[tuple[str, str, bool]]
"""The name and kind of each parameter, and whether it has a default."""


@cache
def read_package() -> Any:
    """The package as the site's generator reads it: from its source, with the extension of the site."""
    require("griffe", find_spec("griffe"), "pip install --group docs")
    import griffe

    extension = griffe.load_extensions(house.ROOT / "docs" / "theme" / "signatures.py")
    return griffe.load("adjudge", search_paths=[house.PACKAGE.parent], extensions=extension, allow_inspection=False)


def read_shown(documented: Any) -> Signature:
    return [
        (item.name, item.kind.value, item.default is not None and not item.kind.value.startswith("variadic"))
        for item in documented.parameters
        if item.name not in ("self", "cls")
    ]


def read_real(value: Any) -> Signature:
    parameters = inspect.signature(value).parameters.values()
    return [
        (item.name, item.kind.description, item.default is not item.empty)
        for item in parameters
        if item.name not in ("self", "cls")
    ]


INTEGRATIONS = tuple(
    f"adjudge.integrations.{path.stem}" for path in sorted((house.PACKAGE / "integrations").glob("[!_]*.py"))
)
"""Modules with a page of their own, each for a library that may be absent; no package exports what is in them."""


def list_public(package: str) -> Iterator[tuple[str, str, Any]]:
    """A package's classes and functions with their modules, but for errors and typed dicts, which have no methods."""
    for name, module in find_homes(package).items():
        value = getattr(importlib.import_module(module), name)
        is_error = inspect.isclass(value) and issubclass(value, BaseException) and "__init__" not in vars(value)
        if is_error or hasattr(value, "__total__"):
            continue
        if inspect.isclass(value) or inspect.isfunction(value):
            yield module, name, value


def find_homes(package: str) -> dict[str, str]:
    """Find the module of each public name of a package or an integration; skip where the latter's library is absent."""
    if package not in INTEGRATIONS:
        return read_stub(package)
    try:
        module = importlib.import_module(package)
    except ImportError as error:
        if error.name != "claude_agent_sdk":  # of 370 MB, which scripts/full installs
            require(f"what {package} needs", None, f"pip install {error.name}")
        pytest.skip(f"{package} needs {error.name}")
    named = {name: getattr(module, name) for name in module.__all__}
    # What a library's decorator made, such as Inspect's approver, has the signature of the library's wrapper.
    return {name: value.__module__ for name, value in named.items() if is_ours(value)}


def is_ours(value: Any) -> bool:
    return (inspect.isroutine(value) or inspect.isclass(value)) and value.__module__.startswith("adjudge.")


def is_constructed(value: Any) -> bool:
    """True for what has a signature of its own: nobody constructs a protocol, so its methods alone are compared."""
    return not getattr(value, "_is_protocol", False)


def list_methods(shown: Any, value: Any) -> Iterator[tuple[str, Any, Any]]:
    """The public functions that a class defines itself, as they are shown and as they are."""
    for name, member in shown.members.items():
        if member.is_function and not name.startswith("_") and "property" not in member.labels:
            yield name, member, inspect.getattr_static(value, name)


@pytest.mark.parametrize("package", [*PACKAGES, *INTEGRATIONS])
def test_signatures_are_those_of_python(package: str):
    """``Judge(model, *, ...)`` and not ``Judge(*, model, ...)``: names, order, kinds and which have a default."""
    differing = {}
    for module, name, value in list_public(package):
        shown = read_package()[f"{module}.{name}".partition(".")[2]]
        if is_constructed(value) and read_shown(shown) != read_real(value):
            differing[f"{module}.{name}"] = (read_shown(shown), read_real(value))
        for method, documented, real in list_methods(shown, value) if inspect.isclass(value) else ():
            plain = getattr(real, "__func__", real)
            if read_shown(documented) != read_real(plain):
                differing[f"{module}.{name}.{method}"] = (read_shown(documented), read_real(plain))

    assert differing == {}


@pytest.mark.parametrize("package", [*PACKAGES, *INTEGRATIONS])
def test_explained_arguments_are_those_of_the_signature(package: str):
    """A function explains each of its parameters, in order; ``unknown`` is what no function takes."""
    differing = {}
    for module, name, value in list_public(package):
        if not inspect.isfunction(value):
            continue
        section = (inspect.getdoc(value) or "").partition("\nArgs:\n")[2].partition("\n\n")[0]
        explained = re.findall(r"^    (\w+): ", section, re.MULTILINE)
        taken = [item for item in inspect.signature(value).parameters if item not in ("unknown", "self")]
        if explained != taken:
            differing[f"{module}.{name}"] = (explained, taken)

    assert differing == {}


def test_enough_is_compared():
    """The constructors that were shown wrongly are among what is compared."""
    assert {"Judge", "JudgeChain"} <= {name for _, name, _ in list_public("adjudge")}
    assert {"Gate", "PromptFirewall", "InputFirewall", "Webhook"} <= {
        name for _, name, _ in list_public("adjudge.guards")
    }
    assert "Client" in {name for _, name, _ in list_public("adjudge.client")}
    assert "EvaluationEmitter" in {name for _, name, _ in list_public("adjudge.integrations.opentelemetry")}
    assert "judge_scorer" in {name for _, name, _ in list_public("adjudge.integrations.inspect_ai")}
    [model] = [value for _, name, value in list_public("adjudge.models") if name == "Model"]
    shown = read_package()["models.model.Model"]
    assert "complete" in {name for name, _, _ in list_methods(shown, model)}
