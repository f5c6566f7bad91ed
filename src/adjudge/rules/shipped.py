"""The rules that ship, and how a rule is written as data.

Two forms mean the same: ``{"regex": "bcrypt|argon2"}`` gives the rule's main parameter under the rule's name, and
``{"name": "length", "max": 4000}`` gives every parameter under its own. Both may carry ``severity`` and
``description``. From either form, ``Rule.spec`` holds the same normal form, so equal rules have equal digests.

The checks themselves are in ``checks.py`` and in a file for each of the larger rules.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, get_args

from adjudge.errors import UsageError
from adjudge.formats.arguments import check_choice, check_share, is_finite
from adjudge.formats.json import to_json_value
from adjudge.formats.numbers import format_distinct
from adjudge.formats.text import QUOTED, flatten, show, suggest
from adjudge.result import RuleResult, Severity
from adjudge.rules.agent_runs import (
    make_arguments,
    make_files,
    make_limits,
    make_no_errors,
    make_no_repeats,
    make_trajectory,
)
from adjudge.rules.checks import (
    make_contains,
    make_equals,
    make_json,
    make_json_schema,
    make_length,
    make_not_contains,
    make_python,
    make_regex,
    make_similarity,
    make_starts_with,
    make_substance,
)
from adjudge.rules.commands import make_commands
from adjudge.rules.markup import make_model_markup
from adjudge.rules.personal_data import make_personal_data
from adjudge.rules.recorded_number import make_recorded
from adjudge.rules.rule import DEFAULT_SEVERITY, Rule
from adjudge.rules.rule_threads import stop_if_abandoned
from adjudge.rules.secrets import make_secrets
from adjudge.rules.syntax import make_syntax
from adjudge.rules.tool_calls import make_call_order, make_called, make_not_called
from adjudge.rules.unicode import make_unicode
from adjudge.rules.urls import make_urls
from adjudge.rules.visible_effects import make_visible


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """A kind of shipped rule: its parameters in words, and the function that makes its check."""

    takes: str
    """The parameters, described for messages and docs."""
    make: Callable[..., Callable[..., Any]]
    """Its keyword parameters are the keys the rule takes."""
    main: str | None = None
    """The key that the short form fills."""
    needs_reference: bool = False
    takes_members: bool = False
    """True if the short form takes a mapping of all its keys: ``{"limits": {"calls": 20}}``."""


MOST_INNER = 64
"""The most rules in one ``some_of``."""


def make_some_of(
    *, rules: list[dict[str, Any]], share: float = 1.0, weights: list[float] | None = None
) -> Callable[[Any], RuleResult]:
    """Make a check that rules with at least the ``share`` of all weights pass. Raises ``UsageError``."""
    inner_rules = [rule_from_spec(spec) for spec in rules]
    needed = check_share("share", share, where="rule some_of")
    if needed <= 0:
        raise UsageError("rule some_of: share is 0, so it could not fail; give a number above 0")
    rule_weights = _read_weights(weights, len(inner_rules))

    def check(content: Any) -> RuleResult:
        # An exception of one rule is not caught, so that the whole check fails: it must not count as one failed rule.
        results = []
        for rule in inner_rules:
            stop_if_abandoned()
            results.append(rule.evaluate(content))
        passed_weight = sum(weight for weight, result in zip(rule_weights, results, strict=True) if result.passed)
        passed_share = passed_weight / sum(rule_weights)
        count = sum(result.passed for result in results)
        failures = "; ".join(result.message for result in results if not result.passed)
        share_shown, needed_shown = format_distinct(passed_share, needed)
        message = f"{count} of {len(results)} hold, {share_shown} of the weight, needed {needed_shown}"
        message += f": {flatten(failures, QUOTED)}" if failures else ""
        return RuleResult(name="", passed=passed_share >= needed - 1e-9, message=message, score=passed_share)

    return check


def _read_weights(weights: Any, count: int) -> list[float]:
    """Read the weight of each rule, by default 1. Raises ``UsageError`` for weights that cannot be used."""
    rule_weights = [1.0] * count if weights is None else weights
    is_good = (
        isinstance(rule_weights, list | tuple) and len(rule_weights) == count and all(map(is_finite, rule_weights))
    )
    if not is_good or min(rule_weights) < 0 or not 0 < sum(rule_weights) < float("inf"):
        raise UsageError(f"rule some_of: weights must be {count} numbers of at least 0, one above; got {show(weights)}")
    return [float(weight) for weight in rule_weights]


def _read_inner_rules(rules: Any) -> list[dict[str, Any]]:
    """Return the normal form of each rule of a ``some_of``. Raises ``UsageError`` for a rule that it cannot contain."""
    if not isinstance(rules, list | tuple) or not 0 < len(rules) <= MOST_INNER:
        raise UsageError(f"rule some_of: rules must be a list of 1 to {MOST_INNER} rules, got {show(rules)}")
    specs = []
    for spec in rules:
        rule = rule_from_spec({"name": spec} if isinstance(spec, str) else spec)
        if rule.kind == "some_of" or rule.needs_reference:
            raise UsageError(f"rule some_of: {rule.kind} cannot be one of its rules; give it as a rule of its own")
        specs.append(dict(rule.spec))
    return specs


_KINDS: Mapping[str, _Kind] = {
    "contains": _Kind(
        takes="text: a text or a list of texts, all of which must stand in the content; any: true makes one enough, "
        "ignore_case: true for any case, as_written: true does not look into JSON.",
        make=make_contains,
        main="text",
    ),
    "not_contains": _Kind(
        takes="text: a text or a list of texts, none of which may be in the content; all: true refuses them only where "
        "all of them are there, ignore_case: true for any case, as_written: true does not look into JSON.",
        make=make_not_contains,
        main="text",
    ),
    "regex": _Kind(
        takes="pattern: an RE2 pattern to be found anywhere in the content; absent: true means it must not be found, "
        "ignore_case: true for any case, as_written: true does not look into JSON.",
        make=make_regex,
        main="pattern",
    ),
    "equals": _Kind(
        takes="value: the text that the content must be, or another JSON value that it must be as JSON; absent: true "
        "means it must not be, ignore_case: true for any case of a text.",
        make=make_equals,
        main="value",
    ),
    "starts_with": _Kind(
        takes="text: what the content must begin with; absent: true means it must not, ignore_case: true for any case.",
        make=make_starts_with,
        main="text",
    ),
    "length": _Kind(
        takes="max and min, both included, in the unit: characters (default), words or lines.",
        make=make_length,
        main="max",
    ),
    "json": _Kind(
        takes="nothing: the content must be one JSON value without duplicate keys or NaN; absent: true means it must "
        "not be one; within: true means one JSON object anywhere in the text is enough.",
        make=make_json,
    ),
    "json_schema": _Kind(
        takes="schema: the JSON Schema (draft 2020-12, or as its $schema says) that the content must fit as JSON; "
        "absent: true means it must not; within: true means one JSON object anywhere in the text must fit.",
        make=make_json_schema,
        main="schema",
    ),
    "syntax": _Kind(
        takes="language: python, json, yaml or toml; the content must be text that parses as that language.",
        make=make_syntax,
        main="language",
    ),
    "urls": _Kind(
        takes="allow: the hosts that every address must lead to, like example.org or *.example.org; schemes (default "
        "https and http), bare: true takes names without a scheme for addresses too.",
        make=make_urls,
        main="allow",
    ),
    "secrets": _Kind(
        takes="nothing: the content must hold no key, token or password; assignments: false looks for known forms "
        "alone, ignore: values that are none.",
        make=make_secrets,
    ),
    "personal_data": _Kind(
        takes="kinds that the content must not hold (email, phone, card, iban, ssn, ip; default all); ignore: values "
        "that are nobody's.",
        make=make_personal_data,
        main="kinds",
    ),
    "unicode": _Kind(
        takes="kinds that the content must not hold (control, bidi, invisible, tag, private, mixed, lookalike, styled; "
        "default all).",
        make=make_unicode,
        main="kinds",
    ),
    "model_markup": _Kind(
        takes="kinds of markup that the content must not imitate (fence, template, reply; default all).",
        make=make_model_markup,
        main="kinds",
    ),
    "substance": _Kind(
        takes="nothing: the content must hold more than punctuation, a label with nothing after it or a placeholder.",
        make=make_substance,
    ),
    "some_of": _Kind(
        takes="rules: a list of rules of which not all need to pass; share (default 1): the share that must, above 0; "
        "weights: a number for each rule, equal if left out.",
        make=make_some_of,
        main="rules",
    ),
    "similarity": _Kind(
        takes="min (default 0.8): how similar the content must be to the reference, from 0 to 1.",
        make=make_similarity,
        main="min",
        needs_reference=True,
    ),
    "called": _Kind(
        takes="tool: the name of a tool or a list of names (* in one is any text), each of which the conversation must "
        "call; arguments that the call must have, min (default 1) and max times.",
        make=make_called,
        main="tool",
    ),
    "not_called": _Kind(
        takes="tool: the name of a tool or a list of names (* in one is any text), none of which the conversation may "
        "call; arguments: only with these, allow: names that may be called all the same.",
        make=make_not_called,
        main="tool",
    ),
    "call_order": _Kind(
        takes="tools: two names or more, each called for the first time after the one before it has returned; "
        "exact: true allows no other call.",
        make=make_call_order,
        main="tools",
    ),
    "trajectory": _Kind(
        takes="calls: the calls that the agent's run makes, each a name or {tool, arguments}; mode: strict (default), "
        "in_order, unordered, subset or superset; arguments: superset (default: those and others), subset, exact or "
        "ignore.",
        make=make_trajectory,
        main="calls",
        takes_members=True,
    ),
    "files": _Kind(
        takes="only: the files that the agent may change, like src/**; never: those that it may not, deleted: how many "
        "it may delete.",
        make=make_files,
        main="only",
        takes_members=True,
    ),
    "arguments": _Kind(
        takes="tool: the name of a tool or a list of names; schema: the JSON Schema that the arguments of each call of "
        "it must fit.",
        make=make_arguments,
        main="tool",
        takes_members=True,
    ),
    "commands": _Kind(
        takes="only: the commands that the agent may run, each one simple command (* in a word, ** at the end for any "
        "more); never: words that no command may hold, tools: the tools that run commands.",
        make=make_commands,
        main="only",
        takes_members=True,
    ),
    "visible": _Kind(
        takes="nothing: what each call of the agent does can be read in the call; tools, commands: further ones of "
        "which the arguments say all that they do.",
        make=make_visible,
    ),
    "limits": _Kind(
        takes="the most that the agent's run may take: calls, steps, tokens, cost in dollars, seconds; what is not "
        "known is too much.",
        make=make_limits,
        main="calls",
        takes_members=True,
    ),
    "no_errors": _Kind(
        takes="nothing: no call of the agent's run may have failed, and it must have finished.",
        make=make_no_errors,
    ),
    "no_repeats": _Kind(
        takes="most (default 1): how often the agent may make a call with the same arguments.",
        make=make_no_repeats,
        main="most",
    ),
    "recorded": _Kind(
        takes="value, max, measure: a number that was recorded when the content was made, as what it cost, the "
        "most it may be, and its name.",
        make=make_recorded,
        main="value",
    ),
    "python": _Kind(
        takes="function: package.module:function, called with the content; in adjudge.toml and on the command line.",
        make=make_python,
        main="function",
    ),
}


SHIPPED: Mapping[str, str] = MappingProxyType({name: kind.takes for name, kind in _KINDS.items()})
"""Every rule that can be written as data, and what it takes, in one sentence."""


_NAMES = {name.replace("-", "_"): name for name in _KINDS}

_COMMON_KEYS = ("severity", "description")


@dataclass(frozen=True, slots=True)
class ShippedCheck:
    """The check of a shipped rule, equal to another that was made from an equal spec.

    Closures are equal only to themselves; with a bare one, a rubric read twice from one file would differ from itself.
    """

    kind: str
    options: Mapping[str, Any] = field(hash=False)
    run: Callable[..., Any] = field(compare=False, repr=False)

    def __call__(self, *content: Any) -> Any:
        """Check the content, with the reference behind it for a rule that needs one."""
        return self.run(*content)

    @property
    def is_thread_safe(self) -> bool:
        """True if it may run in another thread than the one that it was made in."""
        return self.kind != "python"


def as_rule(
    value: Rule | Mapping[str, Any] | Callable[..., Any] | str, *, name: str | None = None, allow_python: bool = False
) -> Rule:
    """Make a rule from any way of giving one.

    A function is named after itself, described by the first line of its docstring, called with the content, and with
    the reference too when it has two parameters without defaults. Raises ``UsageError`` for anything else.

    Args:
        value: A ``Rule``, a mapping (see ``rule_from_spec``), the name of a shipped rule that needs no parameters, or a
            function.
        name: The name of the rule; by default its own.
        allow_python: Let a mapping name a function to import, which runs code; leave it off for data you did not write.
    """
    if isinstance(value, Rule):
        return replace(value, name=name) if name is not None else value
    if isinstance(value, Mapping):
        return rule_from_spec(value, name=name, allow_python=allow_python)
    if isinstance(value, str):
        return rule_from_spec({"name": value}, name=name, allow_python=allow_python)
    if callable(value):
        return _make_rule_from_function(value, name)
    raise UsageError(
        f"a rule must be a Rule, a mapping like {{'regex': '...'}}, a function or a name; got {show(value)}"
    )


def rule_from_spec(spec: Mapping[str, Any], *, name: str | None = None, allow_python: bool = False) -> Rule:
    """Make the rule that some data describes.

    Raises ``UsageError`` for an unknown rule or key and for a wrong parameter.

    Args:
        spec: The rule as data: ``{"regex": "^Dear"}``, or ``{"name": "length", "max": 600}``.
        name: The name of the rule; by default the shipped rule's.
        allow_python: Let the spec name a function to import; leave it off for data you did not write yourself, because
            importing runs code.
    """
    if not isinstance(spec, Mapping):
        raise UsageError(f"a rule must be a mapping like {{'regex': '...'}}, got {show(spec)}")
    kind_name, options = _read_form(spec)
    if kind_name == "python" and not allow_python:
        raise UsageError(
            "a python: rule runs code, so it is allowed in adjudge.toml and on the command line only; "
            "in code, pass the function itself"
        )
    if kind_name == "some_of" and "rules" in options:
        options["rules"] = _read_inner_rules(options["rules"])
    kind = _KINDS[kind_name]
    severity, description = _read_common(options)
    parameters = inspect.signature(kind.make).parameters
    _check_keys(kind_name, kind, options, parameters)
    run = kind.make(**options)  # checks the values, so what follows can rely on their types
    changed = {
        key: options[key]
        for key, parameter in parameters.items()
        if key in options and not _is_default(options[key], parameter)
    }
    normal = _normalize_spec(kind_name, kind, changed, parameters)
    extra = {"severity": severity} if severity != DEFAULT_SEVERITY else {}
    extra |= {"description": description} if description else {}
    return Rule(
        name=name if name is not None else kind_name,
        evaluate=ShippedCheck(kind_name, normal, run),
        description=description,
        severity=severity,
        needs_reference=kind.needs_reference,
        spec=normal | extra,
    )


def _read_form(spec: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Read a spec in either form: return the kind of rule that it names, and its options. Raises ``UsageError``."""
    options = dict(spec)
    if "name" in options:
        kind_name = options.pop("name")
        if not isinstance(kind_name, str) or _fold_name(kind_name) not in _NAMES:
            raise UsageError(
                f"no rule is named {show(kind_name)}{suggest(kind_name, _KINDS)} (there are {', '.join(_KINDS)})"
            )
        return _NAMES[_fold_name(kind_name)], options
    kind_keys = [key for key in options if isinstance(key, str) and _fold_name(key) in _NAMES]
    if len(kind_keys) > 1:  # ``arguments`` is a rule, and also an option of the rules on calls
        option_names: set[str] = set()
        for key in kind_keys:
            option_names.update(inspect.signature(_KINDS[_NAMES[_fold_name(key)]].make).parameters)
        kind_keys = [key for key in kind_keys if key not in option_names] or kind_keys
    if len(kind_keys) > 1:
        raise UsageError(f"a rule names one check, this one names {' and '.join(kind_keys)}; write two rules")
    if not kind_keys:
        unknown = next((key for key in options if key not in _COMMON_KEYS), None)
        problem = f"no rule is named {show(unknown)}{suggest(unknown, _KINDS)}" if options else "the rule is empty"
        raise UsageError(f"{problem} (there are {', '.join(_KINDS)})")
    kind_name = _NAMES[_fold_name(kind_keys[0])]
    options[kind_name] = options.pop(kind_keys[0])
    return kind_name, _move_main_value(kind_name, options)


def _fold_name(name: str) -> str:
    """Replace hyphens by underscores, because names of rules may be written with either."""
    return name.replace("-", "_")


def _move_main_value(kind_name: str, options: dict[str, Any]) -> dict[str, Any]:
    """Move the value under the rule's name (``{"regex": ...}``) to its main parameter, and return all parameters.

    Raises ``UsageError``.
    """
    value, kind = options.pop(kind_name), _KINDS[kind_name]
    main = kind.main
    if kind.takes_members and isinstance(value, Mapping):
        repeated = next((key for key in value if key in options), None)
        if repeated is not None:
            raise UsageError(f"rule {kind_name}: {repeated} is given twice, inside and beside; leave one out")
        return {**value, **options}
    if main is None:
        if value is not True:
            raise UsageError(f"rule {kind_name} takes no parameter; write {{{kind_name}: true}}, not {show(value)}")
        return options
    if main in options:
        raise UsageError(f"rule {kind_name}: {main} is given twice, as {kind_name} and as {main}; leave one out")
    return {main: value} | options


def _read_common(options: dict[str, Any]) -> tuple[Severity, str]:
    """Remove severity and description from the options, and return them. Raises ``UsageError``."""
    severity, description = options.pop("severity", DEFAULT_SEVERITY), options.pop("description", "")
    levels = get_args(Severity)
    check_choice("severity", severity, levels, where="a rule")
    if not isinstance(description, str):
        raise UsageError(f"a rule's description must be a text, got {show(description)}")
    return severity, description


def _check_keys(
    kind_name: str, kind: _Kind, options: Mapping[str, Any], parameters: Mapping[str, inspect.Parameter]
) -> None:
    """Raise ``UsageError`` for a key that the rule does not take, and for one that it needs and does not get."""
    for key in options:
        if key not in parameters:
            raise UsageError(
                f"rule {kind_name} has no key {show(key)}{suggest(key, [*parameters, *_COMMON_KEYS])} "
                f"(it takes {kind.takes})"
            )
    for key, parameter in parameters.items():
        if parameter.default is parameter.empty and key not in options:
            raise UsageError(f"rule {kind_name} needs {key}; it takes {kind.takes}")


def _is_default(value: Any, parameter: inspect.Parameter) -> bool:
    """Return whether a value equals a parameter's default; a list equals a tuple, since data has no tuples."""
    default = parameter.default
    return value == default or (isinstance(default, tuple) and isinstance(value, list) and tuple(value) == default)


def _normalize_spec(
    kind_name: str, kind: _Kind, options: Mapping[str, Any], parameters: Mapping[str, inspect.Parameter]
) -> dict[str, Any]:
    """Write a rule as data in its normal form, of which the digest is taken.

    The values are copied, so that a later change of the caller's cannot change the digest.
    """
    other_options = {key: to_json_value(value) for key, value in options.items() if key != kind.main}
    if kind.main is None:
        return {kind_name: True} | other_options
    main_value = options.get(kind.main, parameters[kind.main].default)
    if main_value is None:
        return {"name": kind_name} | other_options
    return {kind_name: to_json_value(main_value)} | other_options


def _make_rule_from_function(function: Callable[..., Any], name: str | None) -> Rule:
    """Make a rule from a function; a function with two required parameters also gets the reference."""
    function_name = getattr(function, "__name__", type(function).__name__)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some built-in functions have no signature
        parameters = ()
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    required = [
        parameter for parameter in parameters if parameter.kind in positional and parameter.default is parameter.empty
    ]
    docstring = inspect.getdoc(function) if inspect.isroutine(function) else None
    module = getattr(function, "__module__", None) or "?"
    qualified_name = getattr(function, "__qualname__", type(function).__name__)
    return Rule(
        name=name if name is not None else function_name.strip("<>"),
        evaluate=function,
        description=(docstring or "").strip().partition("\n")[0],
        needs_reference=len(required) == 2,
        spec={"python": f"{module}:{qualified_name}"},
    )
