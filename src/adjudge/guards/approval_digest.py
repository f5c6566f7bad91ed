"""What an approval is bound to: one request, as a digest that whoever asks and whoever resumes compute alike.

An approval says yes to one content, for one task, at a gate with these rules, this rubric, these people. Were it bound
to less, the yes of one question would open another that merely looks like it.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Iterable, Mapping
from datetime import timedelta
from hashlib import sha256
from types import CodeType
from typing import TYPE_CHECKING, Any

from adjudge.content import content_text, digest_text
from adjudge.errors import AdjudgeError
from adjudge.formats.json import MOST_DEPTH
from adjudge.formats.plain import to_plain
from adjudge.rubric.rubric import Rubric
from adjudge.rules.rule import Rule
from adjudge.rules.shipped import _Evaluate as Shipped

if TYPE_CHECKING:
    from adjudge.guards.decision import Decision

SCHEMA = "adjudge/request/1"

DATA = ("task", "context", "reference")
"""What a content is judged with, beside the rubric."""


def digest_request(
    *,
    gate: str,
    subject: str | None,
    basis: Mapping[str, Any],
    metadata: Mapping[str, Any],
    terms: Mapping[str, Any],
) -> str:
    """SHA-256 of RFC 8785 of one request; ``basis`` is ``make_basis``, ``terms`` are ``describe_terms``."""
    about = {"schema": SCHEMA, "gate": gate, "subject": subject}
    return _digest({**about, "basis": to_plain(basis), "metadata": to_plain(metadata), "terms": dict(terms)})


def make_basis(
    data: Mapping[str, str], rubric: Rubric | None, rules: Iterable[Rule], policy: Mapping[str, str]
) -> dict[str, Any]:
    """What a content was decided on: digests of task, context, reference, rubric and rules, and the gate's policy."""
    basis: dict[str, Any] = {name: data.get(name) for name in DATA}
    basis["rubric"] = None if rubric is None else _digest_rubric(rubric)
    return basis | {"rules": _digest([_describe_rule(rule) for rule in rules]), "policy": dict(policy)}


def find_other(pending: Decision, given: Mapping[str, object]) -> str | None:
    """Which of the content, task, context or reference in ``given`` is not the one that a decision holds back."""
    for name, value in given.items():
        known = pending.subject if name == "content" else pending.basis.get(name)
        try:
            digest = None if value is None and name != "content" else digest_text(content_text(value, what=name))
        except AdjudgeError:
            digest = ""
        if digest != known:
            return name
    return None


def describe_terms(ask: Mapping[str, Any]) -> dict[str, Any]:
    """Who is asked, and how, as plain data: the same for equal terms, however they were written down.

    What ``Approvals`` would take as the default is written like what was said; what only another asker knows is kept.
    """
    said = {"required": 1, "expires_in": None, "on_expiry": "deny", "first": None, "execution": None} | dict(ask)
    people, first = said.pop("approvers", ()), said.pop("first")
    listed = isinstance(people, Iterable) and not isinstance(people, str | Mapping)
    terms = {name: _describe(value) for name, value in said.items() if name != "metadata"}
    # Sorted: the same people are the same people, and a set has another order in every process.
    terms["approvers"] = sorted({_compose(item) for item in people}) if listed else _describe(people)
    terms["first"] = None if first is None else _describe_judge(first)
    terms["metadata"] = to_plain(said.get("metadata") or {})
    return terms


def _digest(value: Any) -> str:
    import json

    from adjudge.ledger.payload import encode_payload

    # Twice: a number beyond 2^53 is a text once a ledger has kept it, and a request read back from there is the same.
    return sha256(encode_payload(json.loads(encode_payload({"of": value})))).hexdigest()


def _digest_rubric(rubric: Rubric) -> str:
    # A rubric's own digest names a function that is one of its rules, and does not know what it does.
    rules = [item.rule for item in rubric.criteria if item.rule is not None]
    return _digest([rubric.digest, *[_describe_rule(rule) for rule in rules]]) if rules else rubric.digest


def _describe_rule(rule: Rule) -> dict[str, Any]:
    said = {"name": rule.name, "severity": rule.severity, "description": rule.description}
    said |= {"needs_reference": rule.needs_reference, "spec": to_plain(rule.spec)}
    runs = rule.evaluate
    if isinstance(runs, Shipped):
        said["given"] = [runs.kind, to_plain(runs.given)]
        if runs.kind != "python":
            return said
        runs = runs.run
    # Its name is not enough: another function can have the same one.
    return {**said, "function": _describe_function(runs)}


def _describe_function(function: Any, depth: int = 0) -> dict[str, Any]:
    """A function by its place, its code, and the plain values it was made with; the same in every process."""
    if isinstance(function, functools.partial):
        given = [_describe(function.args, depth + 1), _describe(function.keywords, depth + 1)]
        return {"partial": _describe_function(function.func, depth + 1), "given": given}
    bound = getattr(function, "__func__", function)
    if not hasattr(bound, "__code__"):  # an object that can be called
        bound = getattr(type(function), "__call__", bound)  # noqa: B004 - what it runs is looked for, not whether
    code = getattr(bound, "__code__", None)
    place = [getattr(bound, "__module__", None), getattr(bound, "__qualname__", type(bound).__qualname__)]
    said: dict[str, Any] = {"place": place}
    if isinstance(code, CodeType):
        said["code"] = _digest(_describe_code(code))
        held = [_read_cell(cell) for cell in getattr(bound, "__closure__", None) or ()]
        defaults = [getattr(bound, "__defaults__", None), getattr(bound, "__kwdefaults__", None)]
        said["made_with"] = [_describe(item, depth + 1) for item in (held, *defaults)]
    return said


def _describe_code(code: CodeType) -> list[Any]:
    """What a code does, without where it stands: a moved line is no other rule."""
    constants = [_describe_code(item) if isinstance(item, CodeType) else repr(_order(item)) for item in code.co_consts]
    return [code.co_code.hex(), constants, list(code.co_names), list(code.co_varnames), list(code.co_freevars)]


def _order(constant: object) -> object:
    return sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant


def _read_cell(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def _describe_judge(judge: Any, depth: int = 0) -> Any:
    """A judge by its name, its rubric and its seats: what stays the same in another process."""
    if isinstance(judge, str):
        return judge
    name = getattr(judge, "name", None)
    if not isinstance(name, str):
        return _describe_function(judge) if callable(judge) else _describe(judge)
    rubric, seats = getattr(judge, "rubric", None), getattr(judge, "judges", None)
    said: dict[str, Any] = {"name": name, "rubric": _digest_rubric(rubric) if isinstance(rubric, Rubric) else None}
    if isinstance(seats, tuple | list) and depth < MOST_DEPTH:
        said["strategy"] = _describe([getattr(judge, key, None) for key in ("strategy", "quorum", "fail_open")])
        said["seats"] = [_describe_judge(seat[-1] if isinstance(seat, tuple) else seat, depth + 1) for seat in seats]
    return said


def _describe(value: Any, depth: int = 0) -> Any:
    """A value as plain data that is the same in every process: of what has no plain form, what it is called."""
    if value is None or isinstance(value, str | bool | int | float):
        return to_plain(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    held = _describe_held(value, depth + 1) if depth < MOST_DEPTH else None
    if held is not None:
        return held
    called = getattr(value, "name", None) or getattr(value, "__qualname__", None)
    return [f"{type(value).__module__}.{type(value).__qualname__}", called if isinstance(called, str) else None]


def _describe_held(value: Any, depth: int) -> Any:
    """A value by what it holds, or what it does; ``None`` where that cannot be looked at."""
    if isinstance(value, Mapping):
        return {str(key): _describe(item, depth) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_describe(item, depth) for item in value]
    if isinstance(value, set | frozenset):  # in one order, whatever the process
        return sorted([_describe(item, depth) for item in value], key=repr)
    return _describe_function(value, depth) if hasattr(value, "__code__") else None


def _compose(name: object) -> str:
    return unicodedata.normalize("NFC", name) if isinstance(name, str) else repr(_describe(name))
