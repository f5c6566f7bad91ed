"""Calls of tools as a data set: what agents wanted to do, and what became of it, from a ledger or from transcripts.

A case is a call as a gate judges it, so that a judge is measured on what the gate will ask it about. What the harness
did, and what the rules say, are in its metadata.
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
from adjudge.ledger.columns import CALL_PASSED, CALL_RAN, CALL_UNCHECKED, find_run, is_part
from adjudge.ledger.entry import Entry
from adjudge.ledger.ledger import Ledger
from adjudge.ledger.payload import is_digest
from adjudge.rules.rule import Rule

LEDGER = "ledger"
"""The source of a call that a hook recorded."""

OWN_REFUSAL = "The call was not made"
"""The beginning of the sentence with which a guard of ours refuses: then the harness was not asked."""

NO_CONTENT = "calls of which the ledger keeps only the digest are left out"

_NO_CALL = "entries whose content is no call are left out"

_GUARDED = "calls that the guard itself stopped are left out, because the harness was not asked about them"

_UNREADABLE = "calls whose arguments cannot be read are left out"

_OTHER_TOOLS = "calls of tools that the gate does not check are left out"


@dataclass(slots=True)
class CallCollection:
    """Calls on their way to a data set: equal ones are one case."""

    cases: dict[str, Case] = field(default_factory=dict)
    """The cases by the digests of their contents, in the order in which they came."""
    notes: Counter[str] = field(default_factory=Counter)
    """The things that were left out, each with its number."""
    _records: dict[str, CallRecord] = field(default_factory=dict)

    def add(self, content: Mapping[str, Any], record: CallRecord) -> None:
        """Add a call, whose content can be judged."""
        subject = digest_content(content)
        before = self._records.get(subject)
        merged = record if before is None else before.merge(record)
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
            content = _read_content(call, source)
            if content is None:
                collection.notes[_UNREADABLE] += 1
            elif checks is not None and not checks(content["tool"], content.get("server")):
                collection.notes[_OTHER_TOOLS] += 1
            else:
                verdict, failed = await _ask_rules(rules, content)
                record = CallRecord(
                    outcomes={_find_outcome(call): 1}, rules=verdict, failed_rules=failed, sources=(source,)
                )
                collection.add(content, record)


def _read_content(call: AgentCall, source: str) -> dict[str, Any] | None:
    """Read a call as a guard has it judged; ``None`` where it cannot be read."""
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
    if call.not_made == "unclear" or (call.error or "").startswith(OWN_REFUSAL):
        return "unknown"
    if call.not_made is not None:
        return call.not_made
    return "unknown" if call.result is None and call.error is None else "ran"


async def _ask_rules(
    rules: Sequence[Rule] | None, content: Mapping[str, Any]
) -> tuple[RulesVerdict | None, tuple[str, ...]]:
    """Return the verdict of the rules about a call, and the names of those that failed as errors.

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
    """A call as a hook records that it let it pass, and that it was made."""

    run: object
    call: object
    """The framework's id of it."""
    digest: str
    """The digest of the call as it was to be made."""


@dataclass(slots=True)
class _Passes:
    """The records that a hook made of calls beside the decisions about them."""

    passed: dict[str, _CallKey] = field(default_factory=dict)
    """The call that each decision let pass."""
    executed: set[_CallKey] = field(default_factory=set)
    """The calls of these that a hook reported as made."""
    latest: dict[object, datetime] = field(default_factory=dict)
    """The time at which each run last made, or wanted to make, a call."""


async def add_ledger(
    collection: CallCollection, ledger: Ledger, *, gate: str | None = None, since: datetime | None = None
) -> None:
    """Add the calls about which a guard decided and then left it to the harness, as a ledger has them.

    Raises ``UsageError`` where there is no ledger, and ``LedgerError``.
    """
    passes = await _read_passes(ledger, since)
    async for entry in ledger.query(kind="decision", gate=gate, since=since):
        decided = _read_decided(entry, passes)
        if isinstance(decided, str):
            collection.notes[decided] += 1
        elif decided is not None:
            collection.add(*decided)


async def _read_passes(ledger: Ledger, since: datetime | None) -> _Passes:
    """Read which call each decision let pass, and which calls were made, those that nobody let pass included."""
    passes = _Passes()
    async for entry in _query_all(ledger, (CALL_PASSED, CALL_RAN, CALL_UNCHECKED), since):
        payload = entry.payload or {}
        run = payload.get("run")
        key = _CallKey(run=run, call=payload.get("call"), digest=entry.subject)
        decision = payload.get("decision")
        if entry.kind == CALL_PASSED:
            passes.passed[str(decision)] = key
        else:
            passes.executed.add(key)
        passes.latest[run] = max(entry.at, passes.latest.get(run, entry.at))
    return passes


async def _query_all(ledger: Ledger, kinds: Sequence[str], since: datetime | None) -> AsyncIterator[Entry]:
    for kind in kinds:
        async for entry in ledger.query(kind=kind, since=since):
            yield entry


def _read_decided(entry: Entry, passes: _Passes) -> tuple[Mapping[str, Any], CallRecord] | str | None:
    """Read a decision about a call and its record; a note where it is left out, ``None`` for any other decision."""
    payload = entry.payload or {}
    metadata = payload.get("metadata")
    if not isinstance(metadata, Mapping) or find_run(metadata) is None or is_part(metadata):
        return None
    if metadata["call"].get("kind") == CONTENT:
        return None
    made = passes.passed.get(str(payload.get("id")))
    if payload.get("mode") != "observe" and made is None:
        return _GUARDED
    text = payload.get("content")
    if not isinstance(text, str) or is_digest(text):
        return NO_CONTENT
    content = _parse_call(text)
    if content is None:
        return _NO_CALL
    verdict, failed = _read_rules(payload)
    outcome = _find_recorded_outcome(entry, content, made, passes)
    return content, CallRecord(outcomes={outcome: 1}, rules=verdict, failed_rules=failed, sources=(LEDGER,))


def _parse_call(text: str) -> dict[str, Any] | None:
    """Parse the content of a decision as a call; ``None`` for other content, and for what cannot be read."""
    try:
        content = read_json(text)
        content_text(content)
    except ValueError:  # a UsageError is one too
        return None
    is_call = isinstance(content, dict) and isinstance(content.get("tool"), str) and "arguments" in content
    return content if is_call else None


def _read_rules(payload: Mapping[str, Any]) -> tuple[RulesVerdict | None, tuple[str, ...]]:
    """Read what the rules said; a guard's own screens, such as those that protect it, are rules too."""
    result = payload.get("result")
    if not isinstance(result, Mapping):
        return ("failed" if payload.get("decided_by") == "rule" and payload.get("allowed") is False else None), ()
    if result.get("decided_by") != "rule" or result.get("outcome") != "failed":
        return "passed", ()
    deciding = [each for each in _list_mappings(result.get("rule_results")) if each.get("severity", "error") == "error"]
    return "failed", tuple([str(each.get("name")) for each in deciding if each.get("passed") is not True])


def _list_mappings(value: object) -> Iterator[Mapping[str, Any]]:
    for each in value if isinstance(value, list) else ():
        if isinstance(each, Mapping):
            yield each


def _find_recorded_outcome(
    entry: Entry, content: Mapping[str, Any], made: _CallKey | None, passes: _Passes
) -> CallOutcome:
    """Find what the harness did with a call that was left to it.

    A harness tells its hook of a call that it made, and not of one that it refused. So a call counts as refused if its
    run went on for a while, and nothing says that it was made.
    """
    if made is None:
        return "unknown"
    if made in passes.executed:
        return "ran"
    arguments = content.get("arguments")
    command = arguments.get("command") if isinstance(arguments, Mapping) else None
    if isinstance(command, str) and find_patch(command) is not None:
        return "unknown"  # Codex applies it by itself, and tells nobody
    went_on = passes.latest.get(made.run, entry.at) - entry.at > timedelta(seconds=AT_WORK)
    return "refused" if went_on else "unknown"


def explain_no_calls(notes: Mapping[str, int]) -> AdjudgeError:
    """Make the error for a source without a call, with what would help."""
    if notes.get(NO_CONTENT):
        return UsageError(
            'the ledger keeps only digests of what was judged; write store_content = "full" under [ledger], observe '
            "on, and collect the calls of then"
        )
    if notes:
        return UsageError(f"no call is left: {'; '.join(f'{text}: {count:,}' for text, count in notes.items())}")
    return UsageError("there is no call of a tool in it; name transcripts of an agent, or the ledger of a hook")
