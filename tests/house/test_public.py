"""The public face: whoever writes a type down, or reads a signature, finds every name of it at a public address."""

from __future__ import annotations

import asyncio
import inspect
import pydoc
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import pytest

import adjudge
import adjudge.judges
from adjudge import Judge, RuleResult, Rules, UsageError
from adjudge.testing import ScriptedModel
from kit import docs, house
from kit.public import PACKAGES, Annotation, exported, find_home, find_names, find_types, read_stub, walk_public

INSIDE = {
    # A run is made by run() and open_run(), and kept by a store of its own: what these hold is nobody else's to make.
    "Plan",
    "RunStore",
    # Holds no key: it is there so that a misspelt keyword is refused by name.
    "NoOther",
}
"""Types of ours that stand in a public signature and are not for users to name."""

ASKED = ("evaluate", "evaluate_sync", "judge", "judge_sync", "run")
"""The calls that take what ``evaluate`` takes."""

CALLS: Mapping[str, Callable[..., object]] = {
    "evaluate": Judge.evaluate,
    "evaluate_sync": Judge.evaluate_sync,
    "judge": adjudge.judge,
    "judge_sync": adjudge.judge_sync,
    "run": adjudge.run,
    "compare": adjudge.compare,
    "compare_sync": adjudge.compare_sync,
    "check": adjudge.Gate.check,
    "check_sync": adjudge.Gate.check_sync,
}

PAIRS = ("evaluate", "judge", "compare", "check")
"""Those that have a twin without an event loop."""


def name_types(annotation: Annotation) -> set[str]:
    """The types of ours in one annotation that no package lists, by name."""
    return {kind.__name__ for kind in find_types(annotation.hint) if id(kind) not in list_exported()}


@cache
def list_exported() -> frozenset[int]:
    """Every value that a package lists, by its identity."""
    return frozenset(id(value) for value in exported().values())


def read_parameters(call: Callable[..., object]) -> dict[str, inspect.Parameter]:
    """What can be given by keyword alone, and what catches the rest."""
    return {
        name: item
        for name, item in inspect.signature(call).parameters.items()
        if item.kind in (item.KEYWORD_ONLY, item.VAR_KEYWORD)
    }


def read_described(call: Callable[..., object]) -> dict[str, str]:
    """What the docstring says of each argument."""
    _, _, section = (inspect.getdoc(call) or "").partition("\nArgs:\n")
    descriptions: dict[str, str] = {}
    name = ""
    for line in section.splitlines():
        if line[:4].isspace() and not line[4:5].isspace():
            name, _, description = line.strip().partition(": ")
            descriptions[name] = description
        else:
            descriptions[name] = f"{descriptions[name]} {line.strip()}"
    return descriptions


@pytest.mark.no_cover
def test_every_type_in_a_public_signature_has_a_public_address():
    """Fields, parameters and results of public names are made of types that some package lists."""
    hidden = {
        annotation.place: sorted(names) for annotation in walk_public() if (names := name_types(annotation) - INSIDE)
    }

    assert hidden == {}


@pytest.mark.no_cover
def test_every_alias_in_a_public_signature_has_a_public_address():
    """An alias, such as what a rubric may be given as, is what an editor shows: it can be imported too."""
    listed = {(module, name) for package in PACKAGES for name, module in read_stub(package).items()}
    hidden = {
        annotation.place: name
        for annotation in walk_public()
        for name in find_names(annotation)
        if name not in INSIDE and (find_home(annotation.module, name), name) not in listed
    }

    assert hidden == {}


def test_a_public_type_has_a_name_of_its_own():
    """Two packages never call different types by one name: whoever reads it in a message knows which is meant."""
    named: dict[str, set[int]] = {}
    for address, value in exported().items():
        named.setdefault(address.rpartition(".")[2], set()).add(id(value))

    assert [name for name, values in named.items() if name[:1].isupper() and len(values) > 1] == []


def test_the_walk_sees_what_it_is_to_see():
    """Fields, properties, methods of a base, plain functions and what only a type checker imports are all walked."""
    walked = {annotation.place: annotation for annotation in walk_public()}

    assert {"adjudge.JudgeResult.outcome", "adjudge.JudgeResult.passed return", "adjudge.run(dataset)"} <= set(walked)
    assert list(find_types(walked["adjudge.judges.Improvement.rounds"].hint)) == [adjudge.judges.Round]
    assert adjudge.ReplyCache in find_types(walked["adjudge.run(cache)"].hint)
    assert "RubricSource" in find_names(walked["adjudge.judge(rubric)"])


def test_the_top_is_the_short_list():
    """About sixty names: what a page of the documentation begins with. The rest is found in the package it is of."""
    assert len(read_stub("adjudge")) <= 65
    assert all(f"{name.removesuffix('_sync')}" in read_stub("adjudge") for name in read_stub("adjudge"))


@pytest.mark.parametrize("name", ["judge", "compare", "improve", "evaluate_probe", "evaluate_probes"])
def test_what_is_awaited_has_a_twin_beside_it(name: str):
    """With the same parameters and types, and not to be awaited."""
    waits, twin = getattr(adjudge, name), getattr(adjudge, f"{name}_sync")

    assert inspect.iscoroutinefunction(waits)
    assert not inspect.iscoroutinefunction(twin)
    assert inspect.signature(waits) == inspect.signature(twin)
    assert twin.__name__ == f"{name}_sync"
    assert twin.__doc__ != waits.__doc__


def list_twins() -> dict[str, tuple[Any, Any]]:
    """Every method of a public class that is awaited, with its twin, where they are defined."""
    return {
        f"{address}.{name}": (vars(owner)[name.removesuffix("_sync")], twin)
        for address, value in exported().items()
        if inspect.isclass(value)
        for owner in value.__mro__
        for name, twin in vars(owner).items()
        if name.endswith("_sync") and inspect.iscoroutinefunction(vars(owner).get(name.removesuffix("_sync")))
    }


@pytest.mark.parametrize("address", list_twins())
def test_a_method_that_is_awaited_has_a_twin_with_its_signature(address: str):
    """As ``inspect``, ``help`` and editors show it: bound and unbound, with the arguments that it describes."""
    waits, twin = list_twins()[address]

    assert not inspect.iscoroutinefunction(twin)
    assert inspect.signature(waits) == inspect.signature(twin)
    assert twin.__qualname__ == f"{waits.__qualname__}_sync"
    assert twin.__module__ == waits.__module__
    assert f"{twin.__name__}(self" in pydoc.plain(pydoc.render_doc(twin))
    assert inspect.getdoc(waits).partition("Args:")[2] == inspect.getdoc(twin).partition("Args:")[2]


def test_gates_judges_firewalls_rules_and_clients_have_twins():
    """The walk over public classes sees all of them."""
    seen = set(list_twins())

    assert {"adjudge.Judge.ask_sync", "adjudge.Gate.check_sync", "adjudge.Rules.evaluate_sync"} <= seen
    assert {"adjudge.client.RemoteGate.resume_sync", "adjudge.client.RemoteLabelQueue.next_sync"} <= seen


def test_a_twin_calls_the_method_of_its_object():
    """A subclass that answers otherwise does so without an event loop too."""

    class Sure(Rules):
        async def evaluate(self, content: object, reference: object = None) -> tuple[RuleResult, ...]:
            return (RuleResult(name=f"sure of {content}", passed=True),)

    assert [item.name for item in Sure(["json"]).evaluate_sync("this")] == ["sure of this"]


def test_the_page_on_the_seeds_needs_the_top_alone():
    """Whoever comes with one of the four documents finds all of its examples in one place."""
    blocks = docs.read_blocks(house.ROOT / "docs" / "seeds.md")
    lines = [line for block in blocks for line in block.text.splitlines() if "import" in line.split()]

    assert lines
    assert [line for line in lines if not line.startswith("from adjudge import ")] == []


def test_the_page_on_compatibility_names_every_package():
    """What is covered is what the packages list, so no package is left out of the promise."""
    page = (house.ROOT / "COMPATIBILITY.md").read_text(encoding="utf-8")

    assert [package for package in PACKAGES if f"`{package}`" not in page] == []


@pytest.mark.parametrize("name", CALLS)
def test_every_keyword_is_spelled_out(name: str):
    """With its type, and what it does; nothing is left to a mapping that an editor cannot see through."""
    spelled = read_parameters(CALLS[name])
    rest = spelled.pop("unknown", None)

    assert all(item.kind is item.KEYWORD_ONLY and item.annotation is not item.empty for item in spelled.values())
    assert rest is None or rest.annotation == "Unpack[NoOther]"
    if not name.startswith("check"):
        assert set(read_described(CALLS[name])) == set(inspect.signature(CALLS[name]).parameters) - {"self", "unknown"}


@pytest.mark.parametrize("name", PAIRS)
def test_a_call_and_its_twin_are_one(name: str):
    """Names, order, defaults, annotations and what is said of each."""
    call, twin = CALLS[name], CALLS[f"{name}_sync"]

    assert list(inspect.signature(call).parameters.items()) == list(inspect.signature(twin).parameters.items())
    assert inspect.signature(call).return_annotation == inspect.signature(twin).return_annotation
    assert read_described(call) == read_described(twin)


@pytest.mark.parametrize("name", ASKED[1:])
def test_the_arguments_of_evaluate_are_the_same_wherever_they_stand(name: str):
    """Names, order, defaults, annotations and what is said of each; a run has no ``throw_on_fail``."""
    original, copy = read_parameters(Judge.evaluate), read_parameters(CALLS[name])
    left_out = {"throw_on_fail"} if name == "run" else set()
    described, described_again = read_described(Judge.evaluate), read_described(CALLS[name])

    assert left_out.isdisjoint(copy)
    assert list(original) == [*adjudge.judges.EvaluateArguments.__annotations__, "unknown"]
    assert [copy[key] for key in original if key not in left_out] == [
        item for key, item in original.items() if key not in left_out
    ]
    assert [key for key in copy if key in original] == [key for key in original if key not in left_out]
    assert [key for key in original if key in described and described_again.get(key) != described[key]] == sorted(
        left_out
    )


@pytest.mark.parametrize("name", ASKED)
def test_a_slip_is_told_with_the_keyword_that_was_meant(name: str):
    """At run time too, where no type checker looks; a run says it before it begins."""
    owner = [Judge(ScriptedModel(0.9))] if name.startswith("evaluate") else []
    arguments = ["content", Judge(ScriptedModel(0.9))] if name == "run" else ["content"]

    async def ask() -> None:
        named = {"judge": Judge(ScriptedModel(0.9))} if name.startswith("judge") else {}
        asked = CALLS[name](*owner, *arguments, **named, criteria="Good.", treshold=0.5)
        if inspect.isawaitable(asked):
            await asked

    with pytest.raises(UsageError, match="has no argument 'treshold'; did you mean 'threshold'"):
        asyncio.run(ask())
