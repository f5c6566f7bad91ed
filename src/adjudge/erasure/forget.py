"""Forgetting everywhere: files first, the ledger last, so that a run that is killed can be run again and finishes.

The ledger's metadata are what tells which contents are meant. While its entries are there, everything that hangs on
them is found again.

What an entry, a request or a case has to say to be meant is decided in ``choice.py`` (``Choice``), and which places are
searched where none is named, in ``config/forget.py``.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from adjudge.erasure.choice import Choice
from adjudge.erasure.files import (
    DataFiles,
    RunCases,
    check_label_file,
    find_in_label_store,
    find_in_run,
    forget_in_cache,
    forget_in_label_file,
    forget_in_label_store,
    forget_in_recording,
    forget_in_run,
    is_store,
    note_label_contents,
)
from adjudge.erasure.ledger import (
    TABLES,
    Chosen,
    LedgerErasure,
    Order,
    find_chosen,
    make_key,
    make_key_table,
    note_chosen,
    read_key,
)
from adjudge.erasure.report import Findings, ForgetReport, NamedText, OutOfReach
from adjudge.errors import AdjudgeError, UsageError
from adjudge.formats.text import show
from adjudge.guards.approval.listed import verify_listed
from adjudge.ledger.columns import make_column_tables
from adjudge.ledger.ledger import Ledger
from adjudge.ledger.verification import ERASURES_SCHEMA, Verification

if TYPE_CHECKING:
    from sqlalchemy import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The places to look through."""

    ledger: Ledger | None = None
    answers: Table | None = None
    """The table in which a server keeps its answers beside the ledger."""
    caches: tuple[Path, ...] = ()
    recordings: tuple[Path, ...] = ()
    labels: tuple[Path, ...] = ()
    """Files of labels: databases, and files of JSON lines."""
    runs: tuple[Path, ...] = ()
    """Folders of runs."""
    webhooks: tuple[str, ...] = ()
    """Hosts to which notifications are sent."""
    absent: tuple[Path, ...] = ()
    """Places that a configuration names and that are not there."""
    links: tuple[Path, ...] = ()
    """Links among the files of a folder that is looked through. They are not followed, and listed for a person."""


Hide = Callable[[str], str | None]


async def forget(order: Order, places: Places, *, dry_run: bool = False) -> ForgetReport:
    """Delete everything that is kept about a choice in some places; with ``dry_run``, only find it.

    Raises ``UsageError`` for a place that is not there, before anything is deleted.
    """
    _check_there(places)
    # A digest that somebody gives is a subject before any place tells of it: a reply about it may be kept where no
    # entry tells of it, or none does any more.
    findings = Findings(subjects={order.choice.subject} if order.choice.subject else set())
    for place in _PLACES:
        findings.count(place, 0)
    ledger = places.ledger
    if ledger is not None:
        await _find_in_ledger(ledger, order.choice, findings, places.answers)
    hide = await _make_hide(ledger, order.choice, dry_run=dry_run)
    await asyncio.to_thread(_forget_in_files, order.choice, places, findings, hide, dry_run=dry_run)
    _list_links(places, findings)
    seq = None if ledger is None else await _forget_in_ledger(ledger, order, places, findings, dry_run=dry_run)
    verification = None if ledger is None else await _finish(ledger, findings, places, dry_run=dry_run)
    _list_out_of_reach(places, findings)
    return ForgetReport(
        chosen=order.choice.describe(),
        dry_run=dry_run,
        deleted=findings.list_deleted(),
        look=tuple(findings.for_a_person),
        out_of_reach=tuple(findings.out_of_reach),
        unfinished=tuple(findings.unfinished),
        seq=seq,
        entries=None if verification is None else verification.entries,
        erased=0 if verification is None else len(verification.erased),
        verified=None if verification is None else verification.valid,
        problem="" if verification is None else verification.detail,
    )


async def _forget_in_ledger(
    ledger: Ledger, order: Order, places: Places, findings: Findings, *, dry_run: bool
) -> int | None:
    """Erase in a ledger, or only find, what is about the choice; return the entry that records it.

    It is found anew, to erase it in the transaction that erases: files may have told of more contents, and more may
    have come meanwhile.
    """
    findings.for_a_person = [each for each in findings.for_a_person if each.place not in ("ledger", "approvals")]
    if dry_run:
        note_chosen(await _find_in_ledger(ledger, order.choice, findings, places.answers), findings)
        return None
    erasure = LedgerErasure(ledger, order, places.answers, findings.to_counts())
    chosen, seq = await ledger.transact(partial(erasure.erase, findings=findings), tables=make_key_table())
    note_chosen(chosen, findings)
    return seq


_PLACES = ("ledger", "approvals", "kept answers", "kept replies", "recordings", "runs", "labels", "search index")
"""The places of a report, in its order."""


def _check_there(places: Places) -> None:
    """Raise ``UsageError`` for a file that is not there, or not looked through: it would pass for one with nothing."""
    named = {"cache": places.caches, "recording": places.recordings, "file of labels": places.labels}
    for noun, paths in named.items():
        for path in paths:
            if not path.is_file():
                raise UsageError(f"there is no {noun} {show(str(path))}; name one that is there")
    for path in places.labels:
        if not is_store(path):
            check_label_file(path)


async def check_erasure(ledger: Ledger, seq: int, choice: Choice | None) -> bool | None:
    """Return whether an erasure was one of this choice; ``None`` where no choice is given to compare.

    Raises ``UsageError`` for an entry that sums up no erasure.
    """
    payload = (await ledger.read(seq)).payload or {}
    named = payload.get("chosen")
    if payload.get("schema") != ERASURES_SCHEMA or not isinstance(named, dict):
        raise UsageError(f"entry {seq} is none that `adjudge forget` recorded; `adjudge ledger show {seq}` shows it")
    if choice is None:
        return None
    key = await ledger.look(read_key, tables=make_key_table())
    return key is not None and hmac.compare_digest(choice.digest(key), str(named.get("digest")))


async def _find_in_ledger(ledger: Ledger, choice: Choice, findings: Findings, answers: Table | None) -> Chosen:
    """Find what is about the choice in a ledger, and note it in ``findings``.

    Raises ``UsageError`` for a ledger whose entries have no columns to be searched by.
    """
    work = partial(find_chosen, choice=choice, findings=findings, answers=answers)
    chosen = await ledger.look(work, tables=make_column_tables(), snapshot=True)
    if chosen is None:
        raise UsageError("the entries of this ledger have no columns to be searched by; run `adjudge ledger upgrade`")
    return chosen


async def _make_hide(ledger: Ledger | None, choice: Choice, *, dry_run: bool) -> Hide:
    """Make the function that replaces the name of a group in which the choice stands by a keyed digest.

    Of any other name it returns ``None``. The key is the ledger's, so that one name gives one digest in every run, and
    groups stay together; without a ledger, and in a dry run, which may write nothing, it is made for this call alone.
    """
    key = secrets.token_bytes(32)
    if ledger is not None and not dry_run:
        key = await ledger.transact(lambda transaction: make_key(transaction.connection), tables=make_key_table())

    def hide(group: str) -> str | None:
        if choice.find_name(group) is None:
            return None
        return f"hmac-sha256:{hmac.digest(key, group.encode('utf-8', 'replace'), 'sha256').hex()}"

    return hide


def _forget_in_files(choice: Choice, places: Places, findings: Findings, hide: Hide, *, dry_run: bool) -> None:
    """Forget what was found in caches, recordings, labels and runs.

    All runs and stores of labels are searched before anything is deleted, because what they hold adds to ``findings``.
    """
    runs = [run for folder in places.runs if (run := _find_in_run(folder, choice, findings)) is not None]
    stores = [path for path in places.labels if is_store(path)]
    for path in stores:
        note_label_contents(path, choice, findings)
    cases = {path: find_in_label_store(path, choice, findings) for path in stores}
    for path in places.caches:
        forget_in_cache(path, findings, dry_run=dry_run)
    for path in places.recordings:
        forget_in_recording(path, choice, findings, dry_run=dry_run)
    for path in places.labels:
        if path in cases:
            forget_in_label_store(path, cases[path], choice, findings, hide=hide, dry_run=dry_run)
        else:
            forget_in_label_file(path, choice, findings, dry_run=dry_run)
    _forget_in_runs(runs, choice, findings, hide, dry_run=dry_run)


def _find_in_run(folder: Path, choice: Choice, findings: Findings) -> RunCases | None:
    """Find what is about the choice in a run; one that cannot be read is noted as unfinished."""
    try:
        return find_in_run(folder, choice, findings)
    except _FAULTS as error:
        findings.unfinished.append(_explain_fault(folder, error))
        return None


_FAULTS = (AdjudgeError, OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""The errors of a run that is locked, damaged or made up: what it holds may be JSON of any shape.

Let through, one such folder among the runs would keep everything else, the ledger too, from being forgotten.
"""


def _explain_fault(folder: Path, error: Exception) -> str:
    if isinstance(error, AdjudgeError):
        return str(error)
    why = error.strerror if isinstance(error, OSError) else type(error).__name__
    return f"the run {folder} cannot be looked through: {why}"


def _forget_in_runs(
    runs: Collection[RunCases], choice: Choice, findings: Findings, hide: Hide, *, dry_run: bool
) -> None:
    """Forget what was found in runs; a run that cannot be changed now is noted as unfinished."""
    data = DataFiles(choice)
    for run in runs:
        data.note_rows(run, findings)
        try:
            forget_in_run(run, choice, findings, hide=hide, dry_run=dry_run)
        except _FAULTS as error:
            # Somebody writes to it now, or nobody may; the others are done all the same.
            findings.unfinished.append(_explain_fault(run.folder, error))


async def _finish(ledger: Ledger, findings: Findings, places: Places, *, dry_run: bool) -> Verification:
    """Have what was deleted leave the files, also what an earlier call deleted, and verify the ledger."""
    if not dry_run:
        more = () if places.answers is None else (places.answers.name,)
        problem = await ledger.clear_space((*TABLES, *more))
        if problem:
            findings.unfinished.append(f"the database was not cleared: {problem}")
    return await verify_listed(ledger, await ledger.verify())


def _list_links(places: Places, findings: Findings) -> None:
    """List the links that were not followed, but for those to a place that was looked through anyway."""
    looked_through = {path.resolve() for path in (*places.caches, *places.recordings, *places.labels, *places.runs)}
    what = "a link, which is not followed; if you keep what it leads to, name that itself"
    findings.for_a_person += [
        NamedText(place="links", where=str(path), what=what)
        for path in dict.fromkeys(places.links)
        if _read_link(path) not in looked_through
    ]


def _read_link(path: Path) -> Path | None:
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # a link to itself; RuntimeError before Python 3.13
        return None


def _list_out_of_reach(places: Places, findings: Findings) -> None:
    """List what no program can delete from here, each with what to do."""
    about = len(findings.results)
    provider_texts = (
        f"{about:,} decisions and results; what they keep is in your contract"
        if about
        else "what they keep is in your contract"
    )
    listed = [
        OutOfReach(place="model providers", what=provider_texts),
        OutOfReach(place="exports, saved reports", what="ask who has them"),
        OutOfReach(place="backups", what="not known; run this again after a restore"),
        OutOfReach(place="logs, mail, tickets", what="where your programs wrote it"),
        OutOfReach(place="a head kept elsewhere", what="only a hash; it stays valid"),
    ]
    moved = "named in the configuration, and not there; where it was moved to is not looked at"
    findings.out_of_reach += [OutOfReach(place=str(path), what=moved) for path in places.absent]
    if places.webhooks:
        sent = f"{len(findings.approvals):,} requests" if findings.approvals else "requests"
        listed.insert(1, OutOfReach(place="webhooks", what=f"{sent} were announced to {', '.join(places.webhooks)}"))
    findings.out_of_reach = [*listed[:2], *findings.out_of_reach, *listed[2:]]
