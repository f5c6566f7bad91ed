"""``help`` explains each parameter of every public class and function, in the words of the source."""

from __future__ import annotations

import ast
import importlib
import inspect
import pydoc
import re
from typing import Any

import pytest

from adjudge import AdjudgeError, JudgeChainResult, Usage, UsageError
from adjudge.ledger import LedgerError
from kit.public import PACKAGES, read_stub

MADE = (
    "AgentCall",
    "AgentRun",
    "Allocation",
    "ApprovalAnswer",
    "Audit",
    "AuditQuery",
    "BatchOptions",
    "Call",
    "Case",
    "CaseCriteria",
    "Client",
    "CreationVerdict",
    "Criterion",
    "EmergentTool",
    "Example",
    "FileChange",
    "Form",
    "Head",
    "Heap",
    "Label",
    "LabelDesign",
    "LabelledStep",
    "PairedCounts",
    "Part",
    "Permissions",
    "Price",
    "ProbeContract",
    "ProbeThresholds",
    "PromotionVerdict",
    "Question",
    "ReadOptions",
    "Reply",
    "Request",
    "ReviewVerdict",
    "Rubric",
    "Rule",
    "Screened",
    "SemanticProbe",
    "ServerSettings",
    "Step",
    "ThresholdStep",
    "TokenLogprob",
    "ToolCall",
    "ToolCandidate",
    "ToolHistory",
    "ToolTest",
    "ToolUsage",
    "Usage",
    "Webhook",
    "Wording",
)
"""The exported dataclasses that programs make, and do not only read as results."""


def read_arguments(kind: Any) -> dict[str, str]:
    """The parameters that the docstring of a class or a function explains, in order."""
    return read_section(inspect.getdoc(kind) or "")


def read_section(docstring: str) -> dict[str, str]:
    """The parameters that a docstring explains under ``Args:``, in order."""
    section = docstring.partition("Args:\n")[2].partition("\n\n")[0]
    entries = re.findall(r"^    (\w+): (.*(?:\n        .*)*)", section, re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in entries}


def read_class(kind: type) -> ast.ClassDef:
    """A class as its source has it, without what is added when it is imported."""
    (node,) = ast.parse(inspect.getsource(kind)).body
    assert isinstance(node, ast.ClassDef)
    return node


def read_fields(kind: type) -> dict[str, str]:
    """The docstring of each field that has one."""
    node = read_class(kind)
    pairs = zip(node.body, node.body[1:], strict=False)
    return {
        field.target.id: " ".join(text.value.value.split())
        for field, text in pairs
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
    }


def list_classes(package: str) -> dict[str, type]:
    """The classes of a package that somebody may make, as users import them."""
    loaded = importlib.import_module(package)
    values = {name: getattr(loaded, name) for name in read_stub(package)}
    return {
        name: value
        for name, value in values.items()
        if inspect.isclass(value) and not getattr(value, "_is_protocol", False) and not hasattr(value, "__total__")
    }


@pytest.mark.parametrize("package", PACKAGES)
def test_every_parameter_is_explained(package: str):
    """Under ``Args:``, in the order of the signature, no other, each in a sentence."""
    unlike, open_ended = {}, []
    for name, kind in list_classes(package).items():
        arguments, parameters = read_arguments(kind), list(inspect.signature(kind).parameters)
        if list(arguments) != parameters:
            unlike[name] = (list(arguments), parameters)
        open_ended += [f"{name}.{item}" for item, text in arguments.items() if not text.endswith(".")]

    assert (unlike, open_ended) == ({}, [])


def list_functions(package: str) -> dict[str, Any]:
    """The functions of a package, as users import them; the twin without a loop is explained by the other."""
    loaded = importlib.import_module(package)
    values = {name: getattr(loaded, name) for name in read_stub(package)}
    return {
        name: value
        for name, value in values.items()
        if inspect.isroutine(value) and name.removesuffix("_sync") not in values.keys() - {name}
    }


def list_methods(package: str) -> dict[str, Any]:
    """The methods of a package's classes, those of parents of ours included; without twins, as ``list_functions``."""
    loaded = importlib.import_module(package)
    classes = {name: kind for name in read_stub(package) if inspect.isclass(kind := getattr(loaded, name))}
    return {
        f"{name}.{method}": value
        for name, kind in classes.items()
        for parent in kind.__mro__
        if parent.__module__.startswith("adjudge")
        for method in vars(parent)
        if callable(value := getattr(parent, method)) and inspect.isroutine(value)
        if not method.startswith("_") and method.removesuffix("_sync") not in vars(parent).keys() - {method}
    }


def find_unlike(functions: dict[str, Any]) -> dict[str, tuple[list[str], list[str]]]:
    """The functions that explain other parameters than they have, with both; ``unknown`` is what no function takes."""
    pairs = {
        name: (
            list(read_arguments(function)),
            [item for item in inspect.signature(function).parameters if item not in ("self", "unknown")],
        )
        for name, function in functions.items()
    }
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_parameter_of_a_function_is_explained(package: str):
    """Under ``Args:``, in the order of the signature, and no other: a name somewhere in the text explains nothing."""
    assert find_unlike(list_functions(package)) == {}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_parameter_of_a_method_is_explained(package: str):
    """As those of functions are: an editor shows the same to whoever calls either."""
    assert find_unlike(list_methods(package)) == {}


def test_help_prints_them():
    """What ``help(Usage)`` shows, the fields of a parent included."""
    assert "cost_usd: ``None`` means unknown, never free." in pydoc.render_doc(Usage, renderer=pydoc.plaintext)
    assert "suggestions: The improvements that the judge suggests." in pydoc.render_doc(
        JudgeChainResult, renderer=pydoc.plaintext
    )


def test_an_error_is_explained_as_its_parent_is():
    """Where a class has no ``__init__`` of its own, the nearest parent's docstring explains the parameters."""
    assert read_arguments(LedgerError) == read_arguments(AdjudgeError)
    assert list(read_arguments(UsageError)) == ["message", "argument", "where"]


def test_a_subclass_has_its_own_docstring_or_its_parents():
    """A class of a program is left as it is."""

    class Own(Usage):
        """Usage of our own."""

    class Bare(Usage):
        pass

    assert inspect.getdoc(Own) == "Usage of our own."
    assert inspect.getdoc(Bare) == inspect.getdoc(Usage)


def list_made() -> dict[str, type]:
    """The dataclasses that programs make, by their names."""
    classes = {name: kind for package in PACKAGES for name, kind in list_classes(package).items()}
    return {name: classes[name] for name in MADE}


@pytest.mark.parametrize("name", MADE)
def test_a_field_is_explained_in_the_words_of_its_parameter(name: str):
    """Editors explain parameters by ``Args:`` of the source alone; two explanations would differ soon."""
    kind = list_made()[name]
    fields = {field: text for parent in reversed(kind.__mro__[:-1]) for field, text in read_fields(parent).items()}
    written = read_section(ast.get_docstring(read_class(kind)) or "")

    assert list(written) == list(inspect.signature(kind).parameters)
    assert {field: fields.get(field) for field in written} == written
