"""A data set of the tool calls that agents made or wanted to make, read from a ledger or from transcripts.

A case is a call as a gate judges it, so that a judge is measured on the gate's own questions. Its metadata says what
the coding agent (harness) did with the call, and what the rules say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from adjudge.agents.run import AgentRun
from adjudge.agents.step import AgentCall
from adjudge.content import content_text, copy_plain
from adjudge.dataset.call_record import KEY, CallOutcome, CallRecord, RulesVerdict
from adjudge.dataset.case import Case
from adjudge.dataset.contents import digest_content
from adjudge.errors import AdjudgeError, UsageError
from adjudge.formats.json import read_json
from adjudge.guards.tool_guard.arguments import read_arguments
from adjudge.guards.tool_guard.unfinished import AT_WORK, CONTENT
from adjudge.harness.events import drop_remarks, split_tool_name
from adjudge.harness.patch import find_patch
from adjudge.ledger.columns import CALL_PASSED, CALL_RAN, CALL_UNCHECKED, find_run, is_about_no_call
from adjudge.ledger.entry import Entry
from adjudge.ledger.ledger import Ledger
from adjudge.ledger.payload import is_digest
from adjudge.rules.rule import Rule

LEDGER = "ledger"
"""The source of a call that a hook recorded."""

OWN_REFUSAL = "The call was not made"
"""The beginning of a refusal by one of our guards; such a call never reached the harness's own question."""

NO_CONTENT = "calls of which the ledger keeps only the digest are left out"

_NO_CALL = "entries whose content is no call are left out"

_GUARDED = "calls that the guard itself stopped are left out, because the harness was not asked about them"

_UNREADABLE = "calls whose arguments cannot be read are left out"

_OTHER_TOOLS = "calls of tools that the gate does not check are left out"


@dataclass(slots=True)
class CallCollection:
    """Calls that are being collected for a data set; equal calls become one case."""

    cases: dict[str, Case] = field(default_factory=dict)
    """The cases by the digests of their contents, in the order in which they came."""
    notes: Counter[str] = field(default_factory=Counter)
    """The reasons for which calls were left out, each with its number of calls."""
    _records: dict[str, CallRecord] = field(default_factory=dict)

    def add(self, content: Mapping[str, Any], record: CallRecord) -> None:
        """Add a call: its content, as a gate judges it, and its record; the records of equal calls are merged."""
        subject = digest_content(content)
        earlier = self._records.get(subject)
        merged = record if earlier is None else earlier.merge(record)
        self._records[subject] = merged
        self.cases[subject] = Case(content=dict(content), id=subject, metadata={KEY: merged.to_dict()})

    def list_records(self) -> list[CallRecord]:
        """List the records of the cases."""
        return list(self._records.values())


# ---------------------------------------------------------------- from transcripts


async def add_transcripts(
    collection: CallCollection,
    runs: Iterable[AgentRun],
    *,
    rules: Sequence[Rule] | None = None,
    checks: Callable[[str, str | None], bool] | None = None,
) -> None:
    """Add the calls of some runs.

    ``rules`` are those of the gate, which are asked about each call; ``checks`` says whether the gate checks a tool.
    """
    for run in runs:
        source = str(run.metadata.get("source") or "transcript")
        for call in run.calls:
            content = _read_call_content(call, source)
            if content is None:
                collection.notes[_UNREADABLE] += 1
            elif checks is not None and not checks(content["tool"], content.get("server")):
                collection.notes[_OTHER_TOOLS] += 1
            else:
                verdict, failed = await _check_rules(rules, content)
                record = CallRecord(
                    outcomes={_find_outcome(call): 1}, rules=verdict, failed_rules=failed, sources=(source,)
                )
                collection.add(content, record)


def _read_call_content(call: AgentCall, source: str) -> dict[str, Any] | None:
    """Return a call as the content that a guard has judged; ``None`` if the call cannot be read."""
    try:
        tool, server = split_tool_name(call.tool)
        arguments = read_arguments(call.arguments)
        content: dict[str, Any] = {"tool": tool}
        content |= {} if server is None else {"server": server}
        content["arguments"] = drop_remarks(source, tool, server, arguments)
        content_text(content)
    except UsageError:
        return None
    return content


def _find_outcome(call: AgentCall) -> CallOutcome:
    """Find what a transcript says that the harness did with a call."""
    if call.not_made == "unclear" or (call.error or "").startswith(OWN_REFUSAL):
        return "unknown"
    if call.not_made is not None:
        return call.not_made
    return "unknown" if call.result is None and call.error is None else "ran"


async def _check_rules(
    rules: Sequence[Rule] | None, content: Mapping[str, Any]
) -> tuple[RulesVerdict | None, tuple[str, ...]]:
    """Return the verdict of the rules on a call, and the names of the failed rules of severity ``error``.

    The verdict is ``None`` without rules.
    """
    if rules is None:
        return None, ()
    results = [await rule.check(copy_plain(content), None) for rule in rules]
    failed = tuple([result.name for result in results if not result.passed and result.severity == "error"])
    return ("failed" if failed else "passed"), failed


# ---------------------------------------------------------------- from a ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class _CallKey:
    """The identity of a call in the entries in which a hook records that the call passed, and that it was made."""

    run: object
    call: object
    """The id of the call in the agent's framework."""
    digest: str
    """The digest of the call as it was to be made."""


@dataclass(slots=True)
class _HookRecords:
    """The entries of a hook about calls, besides the decisions on them."""

    passed: dict[str, _CallKey] = field(default_factory=dict)
    """By the id of a decision, the call that the decision let pass."""
    executed: set[_CallKey] = field(default_factory=set)
    """The calls that a hook reported as made."""
    latest: dict[object, datetime] = field(default_factory=dict)
    """The time at which each run last made, or wanted to make, a call."""


async def add_ledger(
    collection: CallCollection, ledger: Ledger, *, gate: str | None = None, since: datetime | None = None
) -> None:
    """Add the calls of a ledger on which a guard decided and which it then left to the harness.

    Raises ``UsageError`` if there is no ledger, and ``LedgerError``.
    """
    records = await _read_hook_records(ledger, since)
    async for entry in ledger.query(kind="decision", gate=gate, since=since):
        call_or_note = _read_decided_call(entry, records)
        if isinstance(call_or_note, str):
            collection.notes[call_or_note] += 1
        elif call_or_note is not None:
            content, record = call_or_note
            collection.add(content, record)


async def _read_hook_records(ledger: Ledger, since: datetime | None) -> _HookRecords:
    """Read which call each decision let pass, and which calls were made, also those that no decision let pass."""
    records = _HookRecords()
    async for entry in _query_kinds(ledger, (CALL_PASSED, CALL_RAN, CALL_UNCHECKED), since):
        payload = entry.payload or {}
        run = payload.get("run")
        key = _CallKey(run=run, call=payload.get("call"), digest=entry.subject)
        decision = payload.get("decision")
        if entry.kind == CALL_PASSED:
            records.passed[str(decision)] = key
        else:
            records.executed.add(key)
        records.latest[run] = max(entry.at, records.latest.get(run, entry.at))
    return records


async def _query_kinds(ledger: Ledger, kinds: Sequence[str], since: datetime | None) -> AsyncIterator[Entry]:
    """Yield the entries of several kinds, one kind after the other."""
    for kind in kinds:
        async for entry in ledger.query(kind=kind, since=since):
            yield entry


def _read_decided_call(entry: Entry, records: _HookRecords) -> tuple[Mapping[str, Any], CallRecord] | str | None:
    """Read the content of the call that a decision was about, and the call's record.

    Returns a note if the call is left out, and ``None`` if the decision was not about a whole call.
    """
    payload = entry.payload or {}
    metadata = payload.get("metadata")
    if not isinstance(metadata, Mapping) or find_run(metadata) is None or is_about_no_call(metadata):
        return None
    if metadata["call"].get("kind") == CONTENT:
        return None
    passed_call = records.passed.get(str(payload.get("id")))
    if payload.get("mode") != "observe" and passed_call is None:
        return _GUARDED
    text = payload.get("content")
    if not isinstance(text, str) or is_digest(text):
        return NO_CONTENT
    content = _parse_call(text)
    if content is None:
        return _NO_CALL
    verdict, failed = _read_rules_verdict(payload)
    outcome = _find_recorded_outcome(entry, content, passed_call, records)
    return content, CallRecord(outcomes={outcome: 1}, rules=verdict, failed_rules=failed, sources=(LEDGER,))


def _parse_call(text: str) -> dict[str, Any] | None:
    """Parse the content of a decision as a call; ``None`` for content that is no call or cannot be read."""
    try:
        content = read_json(text)
        content_text(content)
    except ValueError:  # a UsageError is one too
        return None
    is_call = isinstance(content, dict) and isinstance(content.get("tool"), str) and "arguments" in content
    return content if is_call else None


def _read_rules_verdict(payload: Mapping[str, Any]) -> tuple[RulesVerdict | None, tuple[str, ...]]:
    """Read the verdict of the rules from a decision, and the names of the failed rules.

    A guard's own screens, such as the one that protects its files, decide as rules without a result.
    """
    result = payload.get("result")
    if not isinstance(result, Mapping):
        is_refused_by_screen = payload.get("decided_by") == "rule" and payload.get("allowed") is False
        return ("failed" if is_refused_by_screen else None), ()
    if result.get("decided_by") != "rule" or result.get("outcome") != "failed":
        return "passed", ()
    rule_results = _list_mappings(result.get("rule_results"))
    deciding = [rule_result for rule_result in rule_results if rule_result.get("severity", "error") == "error"]
    failed = [str(rule_result.get("name")) for rule_result in deciding if rule_result.get("passed") is not True]
    return "failed", tuple(failed)


def _list_mappings(value: object) -> Iterator[Mapping[str, Any]]:
    """Yield the items of a value that are mappings, if it is a list."""
    for item in value if isinstance(value, list) else ():
        if isinstance(item, Mapping):
            yield item


def _find_recorded_outcome(
    entry: Entry, content: Mapping[str, Any], passed_call: _CallKey | None, records: _HookRecords
) -> CallOutcome:
    """Find what the harness did with a call that the guard left to it.

    A harness tells its hook of a call that it made, and not of one that it refused. So a call counts as refused if its
    run continued for a while, and no entry says that the call was made.
    """
    if passed_call is None:
        return "unknown"
    if passed_call in records.executed:
        return "ran"
    arguments = content.get("arguments")
    command = arguments.get("command") if isinstance(arguments, Mapping) else None
    if isinstance(command, str) and find_patch(command) is not None:
        return "unknown"  # Codex applies a patch by itself, and tells no hook
    run_continued = records.latest.get(passed_call.run, entry.at) - entry.at > timedelta(seconds=AT_WORK)
    return "refused" if run_continued else "unknown"


def explain_no_calls(notes: Mapping[str, int]) -> AdjudgeError:
    """Make the error for a source in which no call was found, with a remedy."""
    if notes.get(NO_CONTENT):
        return UsageError(
            'the ledger keeps only digests of what was judged; write store_content = "full" under [ledger], observe '
            "on, and collect the calls of then"
        )
    if notes:
        return UsageError(f"no call is left: {'; '.join(f'{text}: {count:,}' for text, count in notes.items())}")
    return UsageError("there is no call of a tool in it; name transcripts of an agent, or the ledger of a hook")
