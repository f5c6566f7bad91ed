"""``help(Judge)`` and an editor explain each parameter of the classes that people construct first."""

from __future__ import annotations

import ast
import inspect
import re
from typing import Any

import pytest

from adjudge import Approvals, Case, Criterion, Gate, Judge, JudgeChain, Ledger, Rubric
from adjudge.guards import InputFirewall, PromptFirewall, ToolGuard

FIRST = (
    Judge,
    JudgeChain,
    Gate,
    Approvals,
    Rubric,
    Criterion,
    Case,
    Ledger,
    PromptFirewall,
    InputFirewall,
    ToolGuard,
)


def read_arguments(kind: type) -> dict[str, str]:
    """The parameters that a docstring explains under ``Args:``, in order."""
    section = inspect.getdoc(kind).partition("Args:\n")[2].partition("\n\n")[0]
    entries = re.findall(r"^    (\w+): (.*(?:\n        .*)*)", section, re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in entries}


def read_fields(kind: Any) -> dict[str, str]:
    """The docstring of each field that has one."""
    (node,) = ast.parse(inspect.getsource(kind)).body
    pairs = zip(node.body, node.body[1:], strict=False)
    return {
        field.target.id: " ".join(text.value.value.split())
        for field, text in pairs
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
    }


@pytest.mark.parametrize("kind", FIRST, ids=lambda kind: kind.__name__)
def test_every_parameter_is_explained(kind: type):
    """Under ``Args:``, in the order of the signature, and no other."""
    arguments = read_arguments(kind)

    assert list(arguments) == list(inspect.signature(kind).parameters)
    assert [name for name, text in arguments.items() if not text.endswith(".")] == []


@pytest.mark.parametrize("kind", [Rubric, Criterion, Case], ids=lambda kind: kind.__name__)
def test_a_field_is_explained_in_the_words_of_its_parameter(kind: type):
    """The reference shows both, and two explanations would come to differ."""
    fields = read_fields(kind)

    assert {name: fields.get(name) for name in read_arguments(kind)} == read_arguments(kind)
