"""Forgetting everywhere: files first, the ledger last, so that a run that is killed can be run again and finishes.

The metadata in the ledger's entries tell which contents are about the choice. As long as the entries are there, a later
call finds again everything that belongs to them.

Which entries, requests and cases are about the choice is decided in ``choice.py`` (``Choice``), and which places are
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
    find_chosen_rows,
    make_key,
    make_key_table,
    note_chosen,
    read_key,
)
from adjudge.erasure.report import Findings, ForgetReport, NamedText, OutOfReach
from adjudge.errors import AdjudgeError, UsageError
from adjudge.formats.text import show
from adjudge.guards.approval.request_columns import verify_listed
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


HideGroup = Callable[[str], str | None]
"""From the name of a group to the digest that replaces it; ``None`` for a name that stays."""


async def forget(order: Order, places: Places, *, dry_run: bool = False) -> ForgetReport:
    """Delete everything that is kept about a choice in some places; with ``dry_run``, only find it.

    Raises ``UsageError`` for a place that is not there, before anything is deleted.
    """
    _check_places(places)
    # A digest that the user gives is a subject from the start: replies about it may be kept though no entry of the
    # ledger has it, or none has it any more.
    findings = Findings(subjects={order.choice.subject} if order.choice.subject else set())
    for place in _REPORT_PLACES:
        findings.add_deleted(place, 0)
    ledger = places.ledger
    if ledger is not None:
        await _find_in_ledger(ledger, order.choice, findings, places.answers)
    hide_group = await _make_group_hiding(ledger, order.choice, dry_run=dry_run)
    await asyncio.to_thread(_forget_in_files, order.choice, places, findings, hide_group, dry_run=dry_run)
    _list_links(places, findings)
    seq = None if ledger is None else await _forget_in_ledger(ledger, order, places, findings, dry_run=dry_run)
    verification = None if ledger is None else await _clear_and_verify(ledger, findings, places, dry_run=dry_run)
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
    """Erase everything about the choice in a ledger; return the place of the entry that records it.

    With ``dry_run`` it is only found, and ``None`` is returned. The ledger is searched a second time, in the
    transaction that erases it: the files may have added contents to ``findings``, and new entries may have been written
    meanwhile.
    """
    # The second search notes these texts again.
    findings.for_a_person = [text for text in findings.for_a_person if text.place not in ("ledger", "approvals")]
    if dry_run:
        note_chosen(await _find_in_ledger(ledger, order.choice, findings, places.answers), findings)
        return None
    erasure = LedgerErasure(ledger, order, places.answers, findings.count_deleted())
    chosen, seq = await ledger.transact(partial(erasure.erase, findings=findings), tables=make_key_table())
    note_chosen(chosen, findings)
    return seq


_REPORT_PLACES = ("ledger", "approvals", "kept answers", "kept replies", "recordings", "runs", "labels", "search index")
"""The places of a report, in its order."""


def _check_places(places: Places) -> None:
    """Raise ``UsageError`` for a file that does not exist, and for labels in a format that is not searched.

    Without the error, such a file would seem to have nothing about the choice.
    """
    paths_by_noun = {"cache": places.caches, "recording": places.recordings, "file of labels": places.labels}
    for noun, paths in paths_by_noun.items():
        for path in paths:
            if not path.is_file():
                raise UsageError(f"there is no {noun} {show(str(path))}; name one that is there")
    for path in places.labels:
        if not is_store(path):
            check_label_file(path)


async def check_erasure(ledger: Ledger, seq: int, choice: Choice | None) -> bool | None:
    """Return whether the erasure that an entry records was one of this choice; ``None`` if no choice is given.

    Raises ``UsageError`` for an entry that records no erasure.
    """
    payload = (await ledger.read(seq)).payload or {}
    recorded_choice = payload.get("chosen")
    if payload.get("schema") != ERASURES_SCHEMA or not isinstance(recorded_choice, dict):
        raise UsageError(f"entry {seq} is none that `adjudge forget` recorded; `adjudge ledger show {seq}` shows it")
    if choice is None:
        return None
    key = await ledger.look(read_key, tables=make_key_table())
    return key is not None and hmac.compare_digest(choice.digest(key), str(recorded_choice.get("digest")))


async def _find_in_ledger(ledger: Ledger, choice: Choice, findings: Findings, answers: Table | None) -> Chosen:
    """Find the rows about the choice in a ledger, and note their ids in ``findings``.

    Raises ``UsageError`` for a ledger whose entries have no columns to be searched by.
    """
    work = partial(find_chosen_rows, choice=choice, findings=findings, answers=answers)
    chosen = await ledger.look(work, tables=make_column_tables(), snapshot=True)
    if chosen is None:
        raise UsageError("the entries of this ledger have no columns to be searched by; run `adjudge ledger upgrade`")
    return chosen


async def _make_group_hiding(ledger: Ledger | None, choice: Choice, *, dry_run: bool) -> HideGroup:
    """Make a function that returns a keyed digest in place of a group's name that names the choice.

    For any other group it returns ``None``. The key is the ledger's: one name then has the same digest in every run, so
    groups stay together. Without a ledger, and in a dry run, which may write nothing, the key is made for this call.
    """
    key = secrets.token_bytes(32)
    if ledger is not None and not dry_run:
        key = await ledger.transact(lambda transaction: make_key(transaction.connection), tables=make_key_table())

    def hide_group(group: str) -> str | None:
        if choice.find_naming_member(group) is None:
            return None
        return f"hmac-sha256:{hmac.digest(key, group.encode('utf-8', 'replace'), 'sha256').hex()}"

    return hide_group


def _forget_in_files(
    choice: Choice, places: Places, findings: Findings, hide_group: HideGroup, *, dry_run: bool
) -> None:
    """Delete the texts about the choice from caches, recordings, labels and runs.

    All runs and databases of labels are searched before anything is deleted, because each may add to ``findings`` and
    so to what has to be deleted from the others.
    """
    found_runs = [_find_in_run(folder, choice, findings) for folder in places.runs]
    runs = [run for run in found_runs if run is not None]
    label_stores = [path for path in places.labels if is_store(path)]
    for path in label_stores:
        note_label_contents(path, choice, findings)
    case_ids = {path: find_in_label_store(path, choice, findings) for path in label_stores}
    for path in places.caches:
        forget_in_cache(path, findings, dry_run=dry_run)
    for path in places.recordings:
        forget_in_recording(path, choice, findings, dry_run=dry_run)
    for path in places.labels:
        if path in case_ids:
            forget_in_label_store(path, case_ids[path], choice, findings, hide_group=hide_group, dry_run=dry_run)
        else:
            forget_in_label_file(path, choice, findings, dry_run=dry_run)
    _forget_in_runs(runs, choice, findings, hide_group, dry_run=dry_run)


def _find_in_run(folder: Path, choice: Choice, findings: Findings) -> RunCases | None:
    """Find the cases about the choice in a run; return ``None``, and note it as unfinished, if it cannot be read."""
    try:
        return find_in_run(folder, choice, findings)
    except _RUN_ERRORS as error:
        findings.unfinished.append(_explain_run_error(folder, error))
        return None


_RUN_ERRORS = (AdjudgeError, OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""The errors of a run that is locked, damaged or made up: what it holds may be JSON of any shape.

Let through, one such folder among the runs would keep everything else, the ledger too, from being forgotten.
"""


def _explain_run_error(folder: Path, error: Exception) -> str:
    """Explain in a sentence why a run cannot be searched or changed."""
    if isinstance(error, AdjudgeError):
        return str(error)
    why = error.strerror if isinstance(error, OSError) else type(error).__name__
    return f"the run {folder} cannot be looked through: {why}"


def _forget_in_runs(
    runs: Collection[RunCases], choice: Choice, findings: Findings, hide_group: HideGroup, *, dry_run: bool
) -> None:
    """Delete the texts about the choice from runs; a run that cannot be changed now is noted as unfinished."""
    data_files = DataFiles(choice)
    for run in runs:
        data_files.note_rows(run, findings)
        try:
            forget_in_run(run, choice, findings, hide_group=hide_group, dry_run=dry_run)
        except _RUN_ERRORS as error:
            # Another process is writing to the run, or it is read-only. The other runs are changed all the same.
            findings.unfinished.append(_explain_run_error(run.folder, error))


async def _clear_and_verify(ledger: Ledger, findings: Findings, places: Places, *, dry_run: bool) -> Verification:
    """Have deleted texts leave the files of the database, also those of an earlier call, and verify the ledger."""
    if not dry_run:
        answer_tables = () if places.answers is None else (places.answers.name,)
        problem = await ledger.clear_space((*TABLES, *answer_tables))
        if problem:
            findings.unfinished.append(f"the database was not cleared: {problem}")
    return await verify_listed(ledger, await ledger.verify())


def _list_links(places: Places, findings: Findings) -> None:
    """Note the links that were not followed, for a person; those to a place that was searched anyway are left out."""
    searched = {path.resolve() for path in (*places.caches, *places.recordings, *places.labels, *places.runs)}
    what = "a link, which is not followed; if you keep what it leads to, name that itself"
    findings.for_a_person += [
        NamedText(place="links", where=str(path), what=what)
        for path in dict.fromkeys(places.links)
        if _resolve_link(path) not in searched
    ]


def _resolve_link(path: Path) -> Path | None:
    """Return the path that a link leads to; ``None`` if that cannot be found out."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # a link to itself; RuntimeError before Python 3.13
        return None


def _list_out_of_reach(places: Places, findings: Findings) -> None:
    """Add to ``findings`` the places from which adjudge cannot delete anything, each with what to do about it."""
    result_count = len(findings.results)
    provider_texts = (
        f"{result_count:,} decisions and results; what they keep is in your contract"
        if result_count
        else "what they keep is in your contract"
    )
    general_places = [
        OutOfReach(place="model providers", what=provider_texts),
        OutOfReach(place="exports, saved reports", what="ask who has them"),
        OutOfReach(place="backups", what="not known; run this again after a restore"),
        OutOfReach(place="logs, mail, tickets", what="where your programs wrote it"),
        OutOfReach(place="a head kept elsewhere", what="only a hash; it stays valid"),
    ]
    absent = "named in the configuration, and not there; where it was moved to is not looked at"
    findings.out_of_reach += [OutOfReach(place=str(path), what=absent) for path in places.absent]
    if places.webhooks:
        requests = f"{len(findings.approvals):,} requests" if findings.approvals else "requests"
        announced = f"{requests} were announced to {', '.join(places.webhooks)}"
        general_places.insert(1, OutOfReach(place="webhooks", what=announced))
    # The places that were found in this call are listed after the first two general ones.
    findings.out_of_reach = [*general_places[:2], *findings.out_of_reach, *general_places[2:]]
