"""The digest of a request for approval, to which the approval is bound: the same when people are asked and afterwards.

An approval is for one content, for one task, at a gate with these rules, this rubric and these people. If it were bound
to less, the approval of one request would open another that only looks like it.

What else a resumed decision has to match is decided in ``gate.py`` (``Check.resume``).
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Iterable, Mapping
from datetime import timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from adjudge.content import content_text, digest_text
from adjudge.errors import AdjudgeError
from adjudge.formats.json import MOST_DEPTH
from adjudge.formats.plain_data import to_plain
from adjudge.models.function_identity import identify_function, read_cell
from adjudge.rubric.rubric import Rubric
from adjudge.rules.rule import Rule
from adjudge.rules.shipped import ShippedCheck

if TYPE_CHECKING:
    from adjudge.guards.decision import Decision

SCHEMA = "adjudge/request/1"

CONTEXT = ("task", "context", "reference")
"""The texts that a content is judged with, beside the rubric."""


def digest_request(
    *,
    gate: str,
    subject: str | None,
    basis: Mapping[str, Any],
    metadata: Mapping[str, Any],
    terms: Mapping[str, Any],
) -> str:
    """Digest a request for approval: SHA-256 of its canonical JSON (RFC 8785), in hexadecimal.

    ``subject`` is the digest of the content, ``basis`` comes from ``make_basis`` and ``terms`` from ``describe_terms``.
    """
    members = {"schema": SCHEMA, "gate": gate, "subject": subject}
    return _digest({**members, "basis": to_plain(basis), "metadata": to_plain(metadata), "terms": dict(terms)})


def make_basis(
    digests: Mapping[str, str], rubric: Rubric | None, rules: Iterable[Rule], policy: Mapping[str, str]
) -> dict[str, Any]:
    """Describe what a decision rests on: digests of task, context, reference, rubric and rules, and the policy.

    ``digests`` are those of task, context and reference, by their names.
    """
    basis: dict[str, Any] = {name: digests.get(name) for name in CONTEXT}
    basis["rubric"] = None if rubric is None else _digest_rubric(rubric)
    return basis | {"rules": _digest([_describe_rule(rule) for rule in rules]), "policy": dict(policy)}


def find_mismatch(pending: Decision, contents: Mapping[str, object]) -> str | None:
    """Name the first of content, task, context and reference that differs from what a decision holds back.

    Returns ``None`` if none of the given ones differs. A value that cannot be read differs.
    """
    for name, value in contents.items():
        expected = pending.subject if name == "content" else pending.basis.get(name)
        try:
            digest = None if value is None and name != "content" else digest_text(content_text(value, label=name))
        except AdjudgeError:  # a value that cannot be read; no digest is empty
            digest = ""
        if digest != expected:
            return name
    return None


def describe_terms(ask: Mapping[str, Any]) -> dict[str, Any]:
    """Describe the arguments of an approval request, such as who is asked, as plain data that is equal for equal terms.

    A default of ``Approvals`` is described as if it had been passed, and a set of approvers in sorted order. Arguments
    that only another asker knows are described too.
    """
    arguments = {"required": 1, "expires_in": None, "on_expiry": "deny", "first": None, "execution": None} | dict(ask)
    people, first = arguments.pop("approvers", ()), arguments.pop("first")
    is_list = isinstance(people, Iterable) and not isinstance(people, str | Mapping)
    terms = {name: _describe(value) for name, value in arguments.items() if name != "metadata"}
    # Sorted, because the order of approvers means nothing, and a set has another order in every process.
    terms["approvers"] = sorted({_normalise_name(name) for name in people}) if is_list else _describe(people)
    terms["first"] = None if first is None else _describe_judge(first)
    terms["metadata"] = to_plain(arguments.get("metadata") or {})
    return terms


def _digest(value: Any) -> str:
    """Digest plain data: SHA-256 of its canonical JSON (RFC 8785), in hexadecimal."""
    import json

    from adjudge.ledger.payload import encode_payload

    # Encoded twice: a ledger turns a number beyond 2^53 into a text, and a request that is read back from it must have
    # the same digest.
    return sha256(encode_payload(json.loads(encode_payload({"of": value})))).hexdigest()


def _digest_rubric(rubric: Rubric) -> str:
    """Digest a rubric, and the functions of its rules."""
    # The rubric's own digest covers only the name of a rule's function, and not what the function does.
    rules = [criterion.rule for criterion in rubric.criteria if criterion.rule is not None]
    return _digest([rubric.digest, *[_describe_rule(rule) for rule in rules]]) if rules else rubric.digest


def _describe_rule(rule: Rule) -> dict[str, Any]:
    """Describe a rule as plain data that is equal in every process for rules that do the same.

    A shipped rule is described by its kind and options. Any other, and one of the kind ``python``, is described by its
    function too.
    """
    description = {"name": rule.name, "severity": rule.severity, "description": rule.description}
    description |= {"needs_reference": rule.needs_reference, "spec": to_plain(rule.spec)}
    function = rule.evaluate
    if isinstance(function, ShippedCheck):
        # Stored digests were made with the name "given". If it changes, SCHEMA has to change.
        description["given"] = [function.kind, to_plain(function.options)]
        if function.kind != "python":
            return description
        function = function.run
    # The rule's name is not enough: a rule with another function can have the same name.
    return {**description, "function": _describe_function(function)}


def _describe_function(function: Any, depth: int = 0) -> dict[str, Any]:
    """Describe a function by its identity and by the values in its closure and defaults; equal in every process.

    The identity covers only the type of a list or a mapping, because a function may collect values in one. A rule is
    often made with a list of words, so their members are described here too.
    """
    if isinstance(function, functools.partial):
        arguments = [_describe(function.args, depth + 1), _describe(function.keywords, depth + 1)]
        return {"partial": _describe_function(function.func, depth + 1), "given": arguments}
    bound = getattr(function, "__func__", function)
    values = [read_cell(cell) for cell in getattr(bound, "__closure__", None) or ()]
    values += [getattr(bound, "__defaults__", None), getattr(bound, "__kwdefaults__", None)]
    made_with = [_describe(value, depth + 1) for value in values]
    return {"identity": identify_function(function).to_dict(), "made_with": made_with}


def _describe_judge(judge: Any, depth: int = 0) -> Any:
    """Describe a judge by its name, rubric, strategy and seats, which are equal in every process."""
    if isinstance(judge, str):
        return judge
    name = getattr(judge, "name", None)
    if not isinstance(name, str):
        return _describe_function(judge) if callable(judge) else _describe(judge)
    rubric, seats = getattr(judge, "rubric", None), getattr(judge, "judges", None)
    rubric_digest = _digest_rubric(rubric) if isinstance(rubric, Rubric) else None
    description: dict[str, Any] = {"name": name, "rubric": rubric_digest}
    if isinstance(seats, tuple | list) and depth < MOST_DEPTH:
        description["strategy"] = _describe([getattr(judge, key, None) for key in ("strategy", "quorum", "fail_open")])
        judges = [seat[-1] if isinstance(seat, tuple) else seat for seat in seats]
        description["seats"] = [_describe_judge(each, depth + 1) for each in judges]
    return description


def _describe(value: Any, depth: int = 0) -> Any:
    """Describe a value as plain data that is equal in every process; an object without members by its type and name."""
    if value is None or isinstance(value, str | bool | int | float):
        return to_plain(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    parts = _describe_members(value, depth + 1) if depth < MOST_DEPTH else None
    if parts is not None:
        return parts
    label = getattr(value, "name", None) or getattr(value, "__qualname__", None)
    return [f"{type(value).__module__}.{type(value).__qualname__}", label if isinstance(label, str) else None]


def _describe_members(value: Any, depth: int) -> Any:
    """Describe a mapping, list or set by its members, and a function by its code; ``None`` for any other value."""
    if isinstance(value, Mapping):
        return {str(key): _describe(member, depth) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_describe(member, depth) for member in value]
    if isinstance(value, set | frozenset):  # in one order, whatever the process
        return sorted([_describe(member, depth) for member in value], key=repr)
    return _describe_function(value, depth) if hasattr(value, "__code__") else None


def _normalise_name(name: object) -> str:
    """Return a name in composed form (NFC); a description of any other value, which ``Approvals`` will refuse."""
    return unicodedata.normalize("NFC", name) if isinstance(name, str) else repr(_describe(name))
