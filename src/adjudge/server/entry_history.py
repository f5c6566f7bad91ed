"""The history of a decision or result: all entries of the ledger about it, and the content if that is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from adjudge.content import digest_text
from adjudge.errors import UsageError
from adjudge.ledger.entry import Entry
from adjudge.ledger.ledger import CONTEXT, Ledger
from adjudge.ledger.payload import is_digest
from adjudge.ledger.short_results import RecordedResult, read_recorded
from adjudge.server.caller import Caller
from adjudge.server.entry_lookup import find_decision_or_result
from adjudge.server.problem import Problem
from adjudge.server.state import ServerState

_MOST_RELATED = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """The history of one decision or result: all entries of the ledger about it, in order."""

    row: RecordedResult
    """The last decision or result among the entries, with its content wherever that is kept."""
    last: Entry
    """The entry of this row."""
    entries: Sequence[Entry]
    context: Mapping[str, str]
    """The task, context and reference that the content was judged with, as far as they are kept."""


async def load_story(state: ServerState, caller: Caller, ident: str) -> Story:
    """Load the history of the decision or result with this id, or with this number as an entry of the ledger.

    Raises ``Problem`` where there is none (404), and for one of a gate that the caller may not see (403).
    """
    entry = await _find_entry(state.ledger, ident)
    row = read_recorded(entry) if entry is not None else None
    if entry is None or row is None:
        subject = (
            f"entry {ident} of the ledger is"
            if _is_entry_number(ident)
            else "the whole ledger was searched: this id is"
        )
        raise Problem(404, f"{subject} no decision or result", code="unknown_result")
    if not caller.covers("read", row.gate):
        raise Problem(403, "this is not for your gates", code="forbidden")
    related = await _list_related(state.ledger, entry, row)
    # A held decision is recorded again once people decided. The last of these entries says how it ended.
    last = next((other for other in reversed(related) if other.kind in {"decision", "result"}), entry)
    row = read_recorded(last) or row
    row = replace(row, content=await _find_content(state, related, row))
    return Story(row=row, last=last, entries=related, context=_find_context(related))


def _find_context(related: Sequence[Entry]) -> Mapping[str, str]:
    """Find the task, context and reference that the content was judged with, as far as the ledger holds their texts.

    The ledger may hold only digests of them, which are left out.
    """
    context: dict[str, str] = {}
    for entry in related:
        if entry.kind not in {"decision", "result"}:
            continue
        texts = {name: (entry.payload or {}).get(name) for name in CONTEXT}
        context |= {name: text for name, text in texts.items() if isinstance(text, str) and not is_digest(text)}
    return context


async def _find_entry(ledger: Ledger, ident: str) -> Entry | None:
    """Find an entry by its number, or the newest decision or result with this id; ``None`` if there is none."""
    if _is_entry_number(ident):
        try:
            return await ledger.read(int(ident))
        except UsageError:
            return None
    return await find_decision_or_result(ledger, ident)


def _is_entry_number(ident: str) -> bool:
    """Return whether a text is the number of an entry and not an id; ids are longer."""
    return ident.isdecimal() and len(ident) < 16


async def _list_related(ledger: Ledger, entry: Entry, row: RecordedResult) -> Sequence[Entry]:
    """List the entries of one history, in order: this one, and those about its request for approval.

    At most ``_MOST_RELATED``.
    """
    if row.approval_id is None or not entry.subject:
        return [entry]
    entries: list[Entry] = []
    async for other in ledger.query(subject=entry.subject):
        payload = other.payload or {}
        if row.approval_id in {payload.get("approval"), payload.get("approval_id")}:
            entries.append(other)
        if len(entries) >= _MOST_RELATED:
            break
    return entries or [entry]


async def _find_content(state: ServerState, related: Sequence[Entry], row: RecordedResult) -> str | None:
    """Find the text of the content; ``None`` if nobody kept it.

    It is in an entry of the ledger or, if the ledger holds only its digest, in the request for approval. The text of
    the request counts only if its digest is that of what was judged.
    """
    recorded_results = [row, *filter(None, map(read_recorded, related))]
    contents = (recorded.content for recorded in recorded_results)
    kept_content = next((content for content in contents if content and not is_digest(content)), None)
    if kept_content is not None or row.approval_id is None:
        return kept_content
    try:
        approval = await state.approvals.get(row.approval_id)
    except UsageError:  # the request is in another store, or was erased
        return None
    # Somebody who can write to the database can change this text; the digest in the ledger says what was judged.
    return approval.content if approval.content is not None and digest_text(approval.content) == row.subject else None
