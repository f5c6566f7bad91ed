"""Rules on what an agent did: ``trajectory``, ``files``, ``arguments``, ``limits``, ``no_errors`` and ``no_repeats``.

All of them speak of something that did not happen: no other call, no other file, no more than so many. A run that is
not complete, and content that is no run, cannot show that, so they fail. Names and paths are compared as the rules on
calls compare them: to the letter where something is demanded, and with what resembles it where it is refused.

``called``, ``not_called`` and ``call_order`` are in ``tool_calls.py``, ``commands`` in ``commands.py``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adjudge.agents.run import AgentRun
from adjudge.agents.step import AgentCall
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_above_zero, check_choice, check_whole_number
from adjudge.formats.folding import fold
from adjudge.formats.json import extend_path, is_same, to_json_value
from adjudge.formats.json_schema import CompiledSchema, compile_schema
from adjudge.formats.schema_steps import TooManyStepsError
from adjudge.formats.text import QUOTED, flatten, quote, show
from adjudge.result import RuleResult
from adjudge.rules.document import read_words
from adjudge.rules.tool_calls import (
    ToolName,
    describe_incomplete,
    fail,
    fail_call,
    pass_,
    read_tool_arguments,
    read_tool_names,
)

Check = Callable[[Any], RuleResult]

_NO_RUN = "is no run of an agent; hand in an AgentRun, as adjudge.agents.read_run returns it"

_NO_CALL = "has a tool and arguments that are no call"

_MODES = {"strict", "in_order", "unordered", "subset", "superset"}

_SPELLINGS = {"exact": "strict", "any_order": "superset"}
"""The names of other tools for a mode, in lower case."""

_MATCHES = ("exact", "subset", "superset", "ignore")

MOST_EXPECTED = 100
"""Calls of one trajectory."""


def read_run_of(content: Any) -> AgentRun | str:
    """Return content that is a complete run; otherwise why it is none."""
    if not isinstance(content, AgentRun):
        return _NO_RUN
    return describe_incomplete(content) or content


_CALL_MEMBERS = frozenset({"tool", "server", "cwd", "agent", "arguments", "files", "links", "files_not_bound"})
"""Members of a call as a guard of tool calls puts it to a gate."""


def read_calls_of(content: Any) -> tuple[AgentCall, ...] | str:
    """Return the calls of a complete run, or the one that a tool guard asks about; otherwise why there are none.

    For rules on what each call is. Rules on what did not happen need a run, since one call says nothing of the others.
    """
    if isinstance(content, Mapping) and {"tool", "arguments"} <= content.keys() <= _CALL_MEMBERS:
        tool, arguments = content["tool"], content["arguments"]
        is_call = isinstance(tool, str) and bool(tool.strip()) and isinstance(arguments, Mapping)
        # By its joined name, a server's tool is not taken for the agent's own that is called alike.
        name = tool if content.get("server") is None else f"{content['server']}__{tool}"
        return (AgentCall(tool=name, arguments=dict(arguments)),) if is_call else _NO_CALL
    run = read_run_of(content)
    return run if isinstance(run, str) else run.calls


# ---------------------------------------------------------------- trajectory


@dataclass(frozen=True, slots=True)
class _Expected:
    name: ToolName
    arguments: Mapping[str, Any] | None


def make_trajectory(*, calls: list[Any], mode: str = "strict", arguments: str = "superset") -> Check:
    """Make a check that the calls of a run are those of a list, in a way that ``mode`` names."""
    expected = _read_expected(calls)
    chosen = _SPELLINGS.get(mode.lower(), mode.lower()) if isinstance(mode, str) else mode
    check_choice("mode", chosen, _MODES, where="rule trajectory")
    check_choice("arguments", arguments, _MATCHES, where="rule trajectory")

    def fits(call: AgentCall, wanted: _Expected) -> bool:
        return wanted.name.equals(call.tool) and _fit_arguments(call.arguments, wanted.arguments, arguments)

    def check(content: Any) -> RuleResult:
        run = read_run_of(content)
        if isinstance(run, str):
            return fail(run)
        problem = _find_deviation(run.calls, expected, chosen, fits)
        return pass_(f"made the calls of the trajectory ({chosen})") if problem is None else fail(problem)

    return check


def _read_expected(calls: Any) -> list[_Expected]:
    """Read the calls that ``trajectory`` expects, each a name or a tool with arguments. Raises ``UsageError``."""
    if not isinstance(calls, list | tuple) or not 0 < len(calls) <= MOST_EXPECTED:
        raise UsageError(
            f"rule trajectory: calls must be a list of 1 to {MOST_EXPECTED} calls, each a name or "
            f"{{'tool': ..., 'arguments': ...}}; got {show(calls)}"
        )
    expected = []
    for call in calls:
        members = {"tool": call} if isinstance(call, str) else call
        if not isinstance(members, Mapping) or not {"tool"} <= set(members) <= {"tool", "arguments"}:
            raise UsageError(
                f"rule trajectory: a call is a name or {{'tool': ..., 'arguments': ...}}; got {show(call)}"
            )
        [name] = read_tool_names("trajectory", members["tool"] if isinstance(members["tool"], str) else "")
        expected.append(_Expected(name, read_tool_arguments("trajectory", members.get("arguments"))))
    return expected


def _fit_arguments(arguments: Any, wanted: Mapping[str, Any] | None, match: str) -> bool:
    """Return whether a call's arguments are those that are wanted, under ``match``."""
    if wanted is None or match == "ignore":
        return True
    if not isinstance(arguments, dict):
        return False
    shared = arguments.keys() & wanted.keys()
    if not all(is_same(arguments[name], wanted[name]) for name in shared):
        return False
    has_all, has_no_other = len(shared) == len(wanted), len(shared) == len(arguments)
    return (has_all or match == "subset") and (has_no_other or match == "superset")


def _find_deviation(
    calls: Sequence[AgentCall],
    expected: Sequence[_Expected],
    mode: str,
    fits: Callable[[AgentCall, _Expected], bool],
) -> str | None:
    """Say where the calls leave the trajectory, or return ``None`` where they follow it."""
    if mode == "strict":
        for place, (call, wanted) in enumerate(zip(calls, expected, strict=False), 1):
            if not fits(call, wanted):
                return f"call {place} is {quote(call.tool, 60)} and not the {wanted.name} of the trajectory"
        same = len(calls) == len(expected)
        return None if same else f"made {len(calls):,} calls, and the trajectory has {len(expected)}"
    if mode == "in_order":
        remaining = iter(calls)
        missing = next((wanted for wanted in expected if not any(fits(call, wanted) for call in remaining)), None)
        return None if missing is None else f"did not call {missing.name} after the calls before it"
    if mode != "superset" and len(calls) > len(expected):
        return f"made {len(calls):,} calls, and the trajectory has {len(expected)}"
    partners = _pair_calls(calls, expected, fits)
    unmet = next((wanted for place, wanted in enumerate(expected) if place not in partners), None)
    if mode != "subset" and unmet is not None:
        return f"did not call {unmet.name} as the trajectory does"
    paired = set(partners.values())
    other = next((call for place, call in enumerate(calls) if place not in paired), None)
    return None if mode == "superset" or other is None else f"called {quote(other.tool, 60)} beside the trajectory"


def _pair_calls(
    calls: Sequence[AgentCall], expected: Sequence[_Expected], fits: Callable[[AgentCall, _Expected], bool]
) -> dict[int, int]:
    """Pair expected calls with calls that fit, as many as there can be; returns the call of each expected one.

    One call may fit several, so each newcomer may send an earlier one to another call.
    """
    options = [[place for place, call in enumerate(calls) if fits(call, wanted)] for wanted in expected]
    owners: dict[int, int] = {}

    def place_one(wanted: int, tried: set[int]) -> bool:
        """Return whether the expected call got a partner; for that, earlier ones may move to another call."""
        for option in options[wanted]:
            if option in tried:
                continue
            tried.add(option)
            if option not in owners or place_one(owners[option], tried):
                owners[option] = wanted
                return True
        return False

    for wanted in range(len(expected)):
        place_one(wanted, set())
    return {wanted: option for option, wanted in owners.items()}


# ---------------------------------------------------------------- files


def make_files(
    *, only: str | list[str] | None = None, never: str | list[str] | None = None, deleted: int | None = None
) -> Check:
    """Make a check of the files that a run changed: ``only`` these, ``never`` those, at most so many deleted.

    Raises ``UsageError``.
    """
    allowed = None if only is None else [_read_pattern(text) for text in read_words("files", "only", only)]
    refused = [_read_pattern(fold(text)) for text in read_words("files", "never", never)] if never is not None else []
    most = None if deleted is None else check_whole_number("deleted", deleted, least=0, where="rule files")
    if allowed is None and not refused and most is None:
        raise UsageError("rule files: say which files may change by only, never or deleted")

    def check(content: Any) -> RuleResult:
        run = read_run_of(content)
        if isinstance(run, str):
            return fail(run)
        if "files" in run.unknown:
            return fail("does not record which files changed; a transcript cannot, so add them as files")
        problem = next(filter(None, (_find_bad_change(change.path, allowed, refused) for change in run.files)), None)
        if problem is not None:
            return fail(f"changed {problem}")
        gone = sum(change.kind == "deleted" for change in run.files)
        if most is not None and gone > most:
            return fail(f"deleted {gone:,} files, above the maximum of {most}")
        return pass_(f"changed {len(run.files):,} files, all of which may change")

    return check


def _find_bad_change(
    path: str, allowed: Sequence[tuple[str, ...]] | None, refused: Sequence[tuple[str, ...]]
) -> str | None:
    """Say which path may not change and why, or return ``None`` for one that may."""
    parts, folded = _read_path(path), _read_path(fold(path))
    if parts is None or folded is None:
        return f"{quote(path, 80)}, which is no path inside the workspace"
    if any(_matches_path(folded, pattern) for pattern in refused):
        return f"{quote(path, 80)}, which may never change"
    if allowed is not None and not any(_matches_path(parts, pattern) for pattern in allowed):
        return f"{quote(path, 80)}, which is none of the files that may change"
    return None


def _read_pattern(text: str) -> tuple[str, ...]:
    parts = _read_path(text)
    if parts is None:
        raise UsageError(f"rule files: a pattern is a path inside the workspace such as 'src/**'; got {show(text)}")
    return parts


def _read_path(path: str) -> tuple[str, ...] | None:
    """Read the parts of a path inside the workspace; ``None`` for one that leads anywhere else, or may."""
    parts = path.removeprefix("./").split("/")
    is_plain = path.isprintable() and "\\" not in path and not any(part in ("", ".", "..") for part in parts)
    return tuple(parts) if is_plain else None


def _matches_path(parts: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    """Return whether a path fits a pattern: ``*`` is any text in one part, ``**`` any number of parts."""
    fitting = {0}
    for place, part in enumerate(pattern):
        if part == "**":
            first = min(fitting)
            fitting = set(range(first, len(parts) + (place + 1 < len(pattern))))
            # At the end it stands for something: ``src/**`` is what is in ``src``, and not a file of that name.
            if place + 1 == len(pattern):
                return first < len(parts)
            continue
        name = ToolName(part)
        fitting = {at + 1 for at in fitting if at < len(parts) and name.equals(parts[at])}
        if not fitting:
            return False
    return len(parts) in fitting


# ---------------------------------------------------------------- arguments, limits, errors, repeats


def make_arguments(*, tool: str | list[str], schema: Mapping[str, Any] | bool) -> Check:
    """Make a check that the arguments of every call of these tools fit a JSON Schema."""
    names = read_tool_names("arguments", tool)
    compiled = _compile_schema(schema)

    def check(content: Any) -> RuleResult:
        calls = read_calls_of(content)
        if isinstance(calls, str):
            return fail(calls)
        count = 0
        for place, call in enumerate(calls, 1):
            if any(name.resembles(call.tool) for name in names):
                count += 1
                problem, path = _find_mismatch(compiled, call.arguments)
                if problem:
                    return fail_call(f"call {place} of {quote(call.tool, 60)}: {problem}", calls, place - 1, path)
        return pass_(f"the arguments of {count:,} calls fit the schema")

    return check


def _compile_schema(schema: Any) -> CompiledSchema:
    """Compile the JSON Schema of the rule. Raises ``UsageError`` for one that cannot be used."""
    if not isinstance(schema, Mapping | bool):
        raise UsageError(f"rule arguments: schema must be an object, true or false; got {show(schema)}")
    try:
        return compile_schema(to_json_value(schema))
    except ValueError as error:
        reason = flatten(str(getattr(error, "message", error)), 300)
        raise UsageError(f"rule arguments: the schema cannot be used ({reason})") from None


def _find_mismatch(schema: CompiledSchema, arguments: Any) -> tuple[str, str]:
    """Find what of a call's arguments does not fit a schema: the message, and where; two empty texts if all fits."""
    try:
        mismatch = schema.find_error(arguments)
    except TooManyStepsError as too_many:
        return str(too_many), ""
    if mismatch is None:
        return "", ""
    path = "arguments" if mismatch.instance_path else ""
    for part in mismatch.instance_path:
        path = extend_path(path, part)
    return flatten(mismatch.message, QUOTED), path


def make_limits(
    *,
    calls: int | None = None,
    steps: int | None = None,
    cost: float | None = None,
    seconds: float | None = None,
    tokens: int | None = None,
) -> Check:
    """Make a check that a run took no more than it may. What is not known of it has not been kept.

    Raises ``UsageError``.
    """
    amounts = {"cost": cost, "seconds": seconds}
    for name, value in amounts.items():
        if value is not None and value != 0:
            check_above_zero(name, value, where="rule limits")
    counts = {"calls": calls, "steps": steps, "tokens": tokens}
    whole = {name: value for name, value in counts.items() if value is not None}
    for name, value in whole.items():
        check_whole_number(name, value, least=0, where="rule limits")
    limits: dict[str, float] = whole | {name: value for name, value in amounts.items() if value is not None}
    if not limits:
        raise UsageError("rule limits: give at least one of calls, steps, cost, seconds and tokens")

    def check(content: Any) -> RuleResult:
        run = read_run_of(content)
        if isinstance(run, str):
            return fail(run)
        problem = next(filter(None, (_find_excess(run, name, most) for name, most in limits.items())), None)
        if problem is not None:
            return fail(problem)
        return pass_("is within its limits")

    return check


def _find_excess(run: AgentRun, name: str, most: float) -> str | None:
    value = _measure_run(run, name)
    if value is None:
        return f"does not say its {name}, so nobody knows whether that is within {most:,}"
    return f"took {value:,} {name}, above the maximum of {most:,}" if value > most else None


def _measure_run(run: AgentRun, name: str) -> float | None:
    """Measure a run by a name of ``limits``; ``None`` where that is not known. Tokens are those in and out."""
    if name == "calls":
        return len(run.calls)
    if name == "steps":
        return len(run.steps)
    if name == "cost":
        return run.cost
    if name == "seconds":
        return None if run.duration_ms is None else run.duration_ms / 1000
    return None if run.usage is None else run.usage.input_tokens + run.usage.output_tokens


def make_no_errors() -> Check:
    """Make a check that no call failed, and that the run ended by itself."""

    def check(content: Any) -> RuleResult:
        run = read_run_of(content)
        if isinstance(run, str):
            return fail(run)
        if "failures" in run.unknown:
            return fail("does not record which calls failed")
        failed = [call for call in run.calls if call.error is not None]
        if failed:
            return fail(f"{len(failed):,} calls failed, the first of {quote(failed[0].tool, 60)}")
        if run.outcome != "finished":
            return fail(f"did not finish ({run.outcome})")
        return pass_("no call failed")

    return check


def make_no_repeats(*, most: int = 1) -> Check:
    """Make a check that no call was made more than ``most`` times with the same arguments."""
    limit = check_whole_number("most", most, least=1, where="rule no_repeats")

    def check(content: Any) -> RuleResult:
        run = read_run_of(content)
        if isinstance(run, str):
            return fail(run)
        counts = Counter((call.tool, json.dumps(call.arguments, sort_keys=True)) for call in run.calls)
        (tool, _), count = counts.most_common(1)[0] if counts else (("", ""), 0)
        if count > limit:
            return fail(f"made the same call of {quote(tool, 60)} {count:,} times, above the maximum of {limit}")
        return pass_(f"made no call more than {limit} times")

    return check
