"""Rules on what an agent did: ``trajectory``, ``files``, ``arguments``, ``limits``, ``no_errors`` and ``no_repeats``.

All of them check that something did not happen: no other call, no other file, no more than so many. An incomplete run,
and content that is no run, cannot show that, so the rules fail on them. Names and paths are compared as in the rules on
calls: a demanded one must be equal, and a refused one also matches names that only look like it.

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
    make_pass,
    read_tool_arguments,
    read_tool_names,
)

Check = Callable[[Any], RuleResult]

_NO_RUN = "is no run of an agent; hand in an AgentRun, as adjudge.agents.read_run returns it"

_NO_CALL = "has a tool and arguments that are no call"

_MODES = {"strict", "in_order", "unordered", "subset", "superset"}

_SPELLINGS = {"exact": "strict", "any_order": "superset"}
"""Names that other tools have for a mode, in lower case, and the name of the mode here."""

_MATCHES = ("exact", "subset", "superset", "ignore")

MOST_EXPECTED = 100
"""The largest number of calls in one trajectory."""


def read_complete_run(content: Any) -> AgentRun | str:
    """Return the content if it is a complete ``AgentRun``; otherwise a message that says why it is not."""
    if not isinstance(content, AgentRun):
        return _NO_RUN
    return describe_incomplete(content) or content


_CALL_MEMBERS = frozenset({"tool", "server", "cwd", "agent", "arguments", "files", "links", "files_not_bound"})
"""Keys of the mapping that a tool guard passes to a gate for one call."""


def read_complete_calls(content: Any) -> tuple[AgentCall, ...] | str:
    """Return the calls of a complete run, or the single call that a tool guard asks about; otherwise an error message.

    For rules that look at each call by itself. Rules on what did not happen need a whole run: use
    ``read_complete_run``.
    """
    if isinstance(content, Mapping) and {"tool", "arguments"} <= content.keys() <= _CALL_MEMBERS:
        tool, arguments = content["tool"], content["arguments"]
        is_call = isinstance(tool, str) and bool(tool.strip()) and isinstance(arguments, Mapping)
        # The server's name goes in front, so that its tool is not taken for an agent's own tool of the same name.
        name = tool if content.get("server") is None else f"{content['server']}__{tool}"
        return (AgentCall(tool=name, arguments=dict(arguments)),) if is_call else _NO_CALL
    run = read_complete_run(content)
    return run if isinstance(run, str) else run.calls


# ---------------------------------------------------------------- trajectory


@dataclass(frozen=True, slots=True)
class _ExpectedCall:
    name: ToolName
    arguments: Mapping[str, Any] | None


def make_trajectory(*, calls: list[Any], mode: str = "strict", arguments: str = "superset") -> Check:
    """Make a check that the calls of a run are those of a list, in a way that ``mode`` names."""
    expected = _read_expected(calls)
    chosen = _SPELLINGS.get(mode.lower(), mode.lower()) if isinstance(mode, str) else mode
    check_choice("mode", chosen, _MODES, where="rule trajectory")
    check_choice("arguments", arguments, _MATCHES, where="rule trajectory")

    def fits(call: AgentCall, wanted: _ExpectedCall) -> bool:
        return wanted.name.equals(call.tool) and _fit_arguments(call.arguments, wanted.arguments, arguments)

    def check(content: Any) -> RuleResult:
        run = read_complete_run(content)
        if isinstance(run, str):
            return fail(run)
        problem = _find_deviation(run.calls, expected, chosen, fits)
        return make_pass(f"made the calls of the trajectory ({chosen})") if problem is None else fail(problem)

    return check


def _read_expected(calls: Any) -> list[_ExpectedCall]:
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
        expected.append(_ExpectedCall(name, read_tool_arguments("trajectory", members.get("arguments"))))
    return expected


def _fit_arguments(arguments: Any, wanted: Mapping[str, Any] | None, match: str) -> bool:
    """Return whether a call's arguments fit the wanted ones, in the way that ``match`` (one of ``_MATCHES``) names."""
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
    expected: Sequence[_ExpectedCall],
    mode: str,
    fits: Callable[[AgentCall, _ExpectedCall], bool],
) -> str | None:
    """Say where the calls leave the trajectory, or return ``None`` where they follow it."""
    if mode == "strict":
        return _find_strict_deviation(calls, expected, fits)
    if mode == "in_order":
        remaining = iter(calls)  # any() consumes it up to the call that fits, so the next search begins after that call
        missing = next((wanted for wanted in expected if not any(fits(call, wanted) for call in remaining)), None)
        return None if missing is None else f"did not call {missing.name} after the calls before it"
    if mode != "superset" and len(calls) > len(expected):
        return f"made {len(calls):,} calls, and the trajectory has {len(expected)}"
    pairs = _pair_calls(calls, expected, fits)
    unmet = next((wanted for index, wanted in enumerate(expected) if index not in pairs), None)
    if mode != "subset" and unmet is not None:
        return f"did not call {unmet.name} as the trajectory does"
    paired = set(pairs.values())
    unexpected = next((call for index, call in enumerate(calls) if index not in paired), None)
    if unexpected is not None and mode != "superset":
        return f"called {quote(unexpected.tool, 60)} beside the trajectory"
    return None


def _find_strict_deviation(
    calls: Sequence[AgentCall], expected: Sequence[_ExpectedCall], fits: Callable[[AgentCall, _ExpectedCall], bool]
) -> str | None:
    """Say how the calls differ from the expected ones, compared in order and one to one; ``None`` if they do not."""
    for number, (call, wanted) in enumerate(zip(calls, expected, strict=False), 1):
        if not fits(call, wanted):
            return f"call {number} is {quote(call.tool, 60)} and not the {wanted.name} of the trajectory"
    if len(calls) != len(expected):
        return f"made {len(calls):,} calls, and the trajectory has {len(expected)}"
    return None


def _pair_calls(
    calls: Sequence[AgentCall], expected: Sequence[_ExpectedCall], fits: Callable[[AgentCall, _ExpectedCall], bool]
) -> dict[int, int]:
    """Pair as many expected calls as possible with one call each that fits (a maximum bipartite matching).

    Returns the index of the call for the index of each expected call that got one. A call may fit several expected
    calls, so an expected call may take the partner of an earlier one if that one can move to another call.
    """
    fitting_calls = [[index for index, call in enumerate(calls) if fits(call, wanted)] for wanted in expected]
    expected_of_call: dict[int, int] = {}

    def find_partner(wanted: int, tried: set[int]) -> bool:
        """Return whether the expected call of this index got a partner; earlier ones may move to another call."""
        for call_index in fitting_calls[wanted]:
            if call_index in tried:
                continue
            tried.add(call_index)
            if call_index not in expected_of_call or find_partner(expected_of_call[call_index], tried):
                expected_of_call[call_index] = wanted
                return True
        return False

    for wanted in range(len(expected)):
        find_partner(wanted, set())
    return {wanted: call_index for call_index, wanted in expected_of_call.items()}


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
        run = read_complete_run(content)
        if isinstance(run, str):
            return fail(run)
        if "files" in run.unknown:
            return fail("does not record which files changed; a transcript cannot, so add them as files")
        for change in run.files:
            problem = _find_bad_change(change.path, allowed, refused)
            if problem is not None:
                return fail(f"changed {problem}")
        deleted_count = sum(change.kind == "deleted" for change in run.files)
        if most is not None and deleted_count > most:
            return fail(f"deleted {deleted_count:,} files, above the maximum of {most}")
        return make_pass(f"changed {len(run.files):,} files, all of which may change")

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
    """Split a pattern of ``files`` into its path parts. Raises ``UsageError`` for a path outside the workspace."""
    parts = _read_path(text)
    if parts is None:
        raise UsageError(f"rule files: a pattern is a path inside the workspace such as 'src/**'; got {show(text)}")
    return parts


def _read_path(path: str) -> tuple[str, ...] | None:
    """Split a path inside the workspace into its parts; ``None`` for a path that leads, or might lead, out of it."""
    parts = path.removeprefix("./").split("/")
    is_plain = path.isprintable() and "\\" not in path and not any(part in ("", ".", "..") for part in parts)
    return tuple(parts) if is_plain else None


def _matches_path(parts: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    """Return whether a path fits a pattern: ``*`` is any text in one part, ``**`` any number of parts."""
    counts = {0}  # the numbers of path parts that the pattern up to here can cover
    for index, pattern_part in enumerate(pattern):
        if pattern_part == "**":
            least = min(counts)
            # A last ** covers one part or more: ``src/**`` is what is in ``src``, and not a file of that name.
            if index + 1 == len(pattern):
                return least < len(parts)
            counts = set(range(least, len(parts) + 1))
            continue
        name = ToolName(pattern_part)  # used for its wildcard: ``*`` in it is any text
        counts = {count + 1 for count in counts if count < len(parts) and name.equals(parts[count])}
        if not counts:
            return False
    return len(parts) in counts


# ---------------------------------------------------------------- arguments, limits, errors, repeats


def make_arguments(*, tool: str | list[str], schema: Mapping[str, Any] | bool) -> Check:
    """Make a check that the arguments of every call of these tools fit a JSON Schema."""
    names = read_tool_names("arguments", tool)
    compiled = _compile_schema(schema)

    def check(content: Any) -> RuleResult:
        calls = read_complete_calls(content)
        if isinstance(calls, str):
            return fail(calls)
        count = 0
        for index, call in enumerate(calls):
            if any(name.resembles(call.tool) for name in names):
                count += 1
                problem, path = _find_mismatch(compiled, call.arguments)
                if problem:
                    return fail_call(f"call {index + 1} of {quote(call.tool, 60)}: {problem}", calls, index, path)
        return make_pass(f"the arguments of {count:,} calls fit the schema")

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
    """Return the message and the path of the first argument that does not fit a schema; two empty texts if all fit."""
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
    """Make a check that a run stays within these limits. An amount that the run does not record fails the check.

    Raises ``UsageError``.
    """
    amounts = {"cost": cost, "seconds": seconds}
    for name, value in amounts.items():
        if value is not None and value != 0:
            check_above_zero(name, value, where="rule limits")
    counts = {"calls": calls, "steps": steps, "tokens": tokens}
    count_limits = {name: value for name, value in counts.items() if value is not None}
    for name, value in count_limits.items():
        check_whole_number(name, value, least=0, where="rule limits")
    amount_limits = {name: value for name, value in amounts.items() if value is not None}
    limits: dict[str, float] = count_limits | amount_limits
    if not limits:
        raise UsageError("rule limits: give at least one of calls, steps, cost, seconds and tokens")

    def check(content: Any) -> RuleResult:
        run = read_complete_run(content)
        if isinstance(run, str):
            return fail(run)
        for name, most in limits.items():
            problem = _find_excess(run, name, most)
            if problem is not None:
                return fail(problem)
        return make_pass("is within its limits")

    return check


def _find_excess(run: AgentRun, name: str, most: float) -> str | None:
    """Explain how a run exceeds the limit of this name, or that its amount is unknown; ``None`` if it is within."""
    value = _measure_run(run, name)
    if value is None:
        return f"does not say its {name}, so nobody knows whether that is within {most:,}"
    return f"took {value:,} {name}, above the maximum of {most:,}" if value > most else None


def _measure_run(run: AgentRun, name: str) -> float | None:
    """Return the amount that a limit's name means; ``None`` where unknown. Tokens are input plus output."""
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
        run = read_complete_run(content)
        if isinstance(run, str):
            return fail(run)
        if "failures" in run.unknown:
            return fail("does not record which calls failed")
        failed = [call for call in run.calls if call.error is not None]
        if failed:
            return fail(f"{len(failed):,} calls failed, the first of {quote(failed[0].tool, 60)}")
        if run.outcome != "finished":
            return fail(f"did not finish ({run.outcome})")
        return make_pass("no call failed")

    return check


def make_no_repeats(*, most: int = 1) -> Check:
    """Make a check that no call was made more than ``most`` times with the same arguments."""
    limit = check_whole_number("most", most, least=1, where="rule no_repeats")

    def check(content: Any) -> RuleResult:
        run = read_complete_run(content)
        if isinstance(run, str):
            return fail(run)
        counts = Counter((call.tool, json.dumps(call.arguments, sort_keys=True)) for call in run.calls)
        (tool, _), count = counts.most_common(1)[0] if counts else (("", ""), 0)
        if count > limit:
            return fail(f"made the same call of {quote(tool, 60)} {count:,} times, above the maximum of {limit}")
        return make_pass(f"made no call more than {limit} times")

    return check
