"""The ledger: an append-only record of what was decided, in which any change shows.

What is kept of a value is decided in ``payload.py`` (``make_draft``), what makes a chain valid in ``verification.py``
(``Chain``), and how many entries one commit takes in ``writer.py``.
"""

from __future__ import annotations

import asyncio
import os
import re
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from adjudge.content import digest_text
from adjudge.errors import Argument, LedgerError, UsageError
from adjudge.formats.arguments import check_choice, check_whole_number
from adjudge.formats.invisible import explain_doubtful_name
from adjudge.ledger.database import DamagedError
from adjudge.ledger.entry import SEQ, Entry, Head, Row, format_time, read_entry
from adjudge.ledger.export import read_head, write_export
from adjudge.ledger.payload import Draft, StoreContent, check_text, choose_keep, keep_judged, make_draft
from adjudge.ledger.signature import find_check, mark_document, open_check, open_signer
from adjudge.ledger.store import PAGE, Store, Transaction, check_place, explain_missing
from adjudge.ledger.upgrade import LedgerUpgrade, upgrade_tables
from adjudge.ledger.verification import Chain, Verification, call_for_each, find_columns_changed
from adjudge.ledger.writer import LedgerWriter
from adjudge.result import JudgeResult

if TYPE_CHECKING:
    from sqlalchemy import Connection, MetaData

    from adjudge.ledger.signature import PrivateKey, PublicKey


T = TypeVar("T")

CONTEXT = ("task", "context", "reference")
"""The parts that a content can be judged with."""


class Ledger:
    """An append-only, hash-chained record in SQLite (``sqlite:///adjudge.db``) or PostgreSQL.

    Nothing is opened before the first use, and the first append creates the ledger. Use it as an async context
    manager, or call ``aclose``. Any number of tasks, threads and loops may share one object.

    Args:
        url: ``sqlite:///FILE``, ``postgresql://HOST/DATABASE``, or the path of a SQLite file: a ``Path``, or a text
            that does not begin with a scheme (letters and a colon). A path is relative to the working directory. A
            new file is readable only by its owner.
        store_content: How to keep what was judged, and texts that can quote it: ``hash`` (their SHA-256, the default),
            ``redacted`` (the return value of ``redact``), ``full``, or ``held``: as ``hash``, and gates keep the
            content of what a person is asked about with the request, until it is closed and ``Approvals`` delete it.
        key: An Ed25519 private key that signs every entry: the path of a PEM file, its bytes, or cryptography's own
            object. A ledger is signed from its first entry with one key, or never.
        redact: a function from text to text, for ``redacted``.

    Raises:
        UsageError: For an address, a choice or a key that cannot be used.
    """

    def __init__(
        self,
        url: str | os.PathLike[str],
        *,
        store_content: StoreContent = "hash",
        key: PrivateKey | None = None,
        redact: Callable[[str], str] | None = None,
    ) -> None:
        self._keep_text = choose_keep(store_content, redact)
        self._signer = open_signer(key) if key is not None else None
        self._genesis_members = {"store_content": store_content}
        self._url = url
        self._store_content = store_content
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._writer: LedgerWriter | None = None
        self._finalizer: weakref.finalize[[], Ledger] | None = None
        self._store = self._make_store()

    @property
    def public_key(self) -> str | None:
        """The public key of this ledger's signatures, in hexadecimal; ``None`` if it is not signed."""
        return self._signer.public_key if self._signer else None

    def sign(self, schema: str, digest: str) -> str:
        """Sign a document of a schema by its digest with this ledger's key; the signature in hexadecimal.

        The schema is signed too, so that the signature stands for no entry and no other document. Raises ``UsageError``
        for a ledger without a key.

        Args:
            schema: The name of the schema of the document.
            digest: The digest of the document.
        """
        if self._signer is None:
            raise UsageError(f"{self!r} has no key to sign with; give ", Argument("key"), argument="key")
        return self._signer.sign(mark_document(schema, digest))

    @property
    def store_content(self) -> StoreContent:
        """The way in which this object keeps what was judged."""
        return self._store_content

    @property
    def keeps_content(self) -> bool:
        """Return True if it keeps what was judged, whole or redacted, so that gates hand it over."""
        return self._store_content in ("redacted", "full")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._store.name}>"

    # ---------------------------------------------------------------- writing

    async def append(
        self,
        value: JudgeResult | Mapping[str, Any] | object,
        *,
        kind: str | None = None,
        subject: str | None = None,
        content: str | None = None,
        context: Mapping[str, str] | None = None,
        gate: str | None = None,
        execution: str | None = None,
    ) -> int:
        """Record a value and return its place, a number from 1 (the genesis entry). The entry is on disk by then.

        A cancelled append is recorded completely or not at all.

        Raises ``UsageError`` for a value that cannot be recorded and ``LedgerError`` when the store fails.

        Args:
            value: A result, an object with ``to_dict``, or a mapping.
            kind: The kind of the entry; a mapping needs one, as an argument or as a member. By default the value's own.
            subject: The digest of the content that it is about; by default the value's own, else that of ``content``.
            content: The text that was judged, kept as ``store_content`` says, and as a digest where it is too long for
                an entry.
            context: The ``task``, ``context`` and ``reference`` that it was judged with, kept as ``content`` is.
            gate: The name of the gate, as a member of the payload, for ``query``.
            execution: Your name for what it belongs to, as a member of the payload, for ``query``.
        """
        extra_members = {"gate": gate, "execution": execution}
        for name, text in extra_members.items():
            if text is not None:
                check_text(name, text)
        judged_texts = dict(context or {})
        for name in judged_texts:
            check_choice("context", name, CONTEXT)
        if content is not None:
            judged_texts["content"] = content
            subject = digest_text(content) if subject is None and not _has_subject(value) else subject
        extra_members |= keep_judged(judged_texts, self._keep_text)
        # The draft is made here and not in the writer's thread, before which the caller might change the value.
        draft = make_draft(value, self._keep_text, kind=kind, subject=subject, more=extra_members)
        return await self._submit(draft)

    async def prepare(self) -> None:
        """Create the ledger if there is none, and check that it can be written.

        Call this before you pay for results that you want to record. Raises ``UsageError`` for a ledger with another
        key or schema, and ``LedgerError`` when the store fails.
        """
        await self._submit(self._find_store().prepare)

    async def transact(self, work: Callable[[Transaction], T], *, tables: MetaData) -> T:
        """Change tables beside the ledger and append entries about it, in one durable transaction.

        ``make_entry`` makes what the transaction appends. The tables are made when they are missing.

        Args:
            work: The function; it is given the transaction. It runs in the writer's thread, while every other writer of
                this ledger waits, and its exceptions are raised here.
            tables: The tables, as SQLAlchemy describes them.
        """
        store = self._find_store()
        value: T = await self._submit(lambda: store.transact(work, tables))
        return value

    async def look(self, work: Callable[[Connection], T], *, tables: MetaData, snapshot: bool = False) -> T | None:
        """Return what a function reads from tables beside the ledger; ``None`` if ``transact`` never made them.

        Raises ``UsageError`` where there is no ledger.

        Args:
            work: The function; it is given a connection, and only reads.
            tables: The tables, as SQLAlchemy describes them.
            snapshot: Whether all that it reads is as it is at one moment.
        """
        return await asyncio.to_thread(self._find_store().look, work, tables, snapshot=snapshot)

    def make_entry(
        self,
        value: JudgeResult | Mapping[str, Any] | object,
        *,
        kind: str,
        subject: str,
        quoting: Mapping[str, str] | None = None,
    ) -> Draft:
        """Make the entry that ``append`` would record, for ``transact``. Raises ``UsageError`` if it cannot.

        Args:
            value: The value: a result, plain data, or an object with ``to_dict``.
            kind: The kind of the entry.
            subject: The digest of the content that it is about.
            quoting: Further members, texts that can quote what was judged: kept as ``store_content`` says. ``None`` is
                none.
        """
        extra_members = {name: self._keep_text(text) for name, text in (quoting or {}).items()}
        return make_draft(value, self._keep_text, kind=kind, subject=subject, more=extra_members)

    async def erase(self, seq: int, reason: str, by: str) -> int:
        """Erase the payload of an entry, keep its hash, and record who did it and why. Return the place of that record.

        Raises ``UsageError`` if there is no such payload, or ``reason`` or ``by`` is empty.

        Args:
            seq: The place of the entry.
            reason: Why it is erased; it explains the gap later.
            by: The name of the person who erases it; one that is not known for certain to name somebody is refused.
        """
        for name, text in (("reason", reason), ("by", by)):
            check_text(name, text)
            if not text.strip():
                raise UsageError(
                    "an erasure needs ", Argument(name), ": it is what explains the gap later", argument=name
                )
        doubt = explain_doubtful_name(by)
        if doubt is not None:
            raise UsageError(Argument("by", f"{by[:80]!a}"), f" names nobody for certain: {doubt}", argument="by")
        check_place(seq)
        store = self._find_store()
        record_seq: int = await self._submit(lambda: store.erase(seq, reason, by))
        return record_seq

    # ---------------------------------------------------------------- reading

    async def query(
        self,
        *,
        outcome: str | None = None,
        judge: str | None = None,
        gate: str | None = None,
        subject: str | None = None,
        subject_start: str | None = None,
        execution: str | None = None,
        kind: str | None = None,
        approval: str | None = None,
        run: str | None = None,
        audited: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        after: int = 0,
    ) -> AsyncIterator[Entry]:
        """Yield the entries that match all conditions, in order; what is ``None`` is no condition.

        Raises ``UsageError`` if there is no ledger.

        Args:
            outcome: Only entries whose recorded result, or whose decision's result, has this outcome.
            judge: Only entries whose result is that of the judge of this name, or has it as a seat of its chain.
            gate: Only entries of the gate of this name.
            subject: Only entries about the content with this digest.
            subject_start: Only entries whose subject begins with this text.
            execution: Only entries that were recorded with this ``execution``.
            kind: Only entries of this kind, such as ``result`` or ``decision``.
            approval: Only entries about the request for approval with this id.
            run: Only entries about the calls of this run of an agent, which a ``ToolGuard`` checked.
            audited: Only entries about audits of the gate of this name.
            since: Only entries from this time on.
            until: Only entries before this time.
            after: Only entries behind this place in the ledger; 0 looks at all.
        """
        conditions: dict[str, Any] = {"kind": kind, "subject": subject, "run": run, "audited": audited}
        conditions |= {"outcome": outcome, "judge": judge, "gate": gate, "execution": execution, "approval": approval}
        conditions |= {"subject_start": subject_start}
        for name, text in conditions.items():
            if text is not None:
                check_text(name, text)
        conditions["subject_like"] = _make_prefix_pattern(conditions.pop("subject_start"))
        conditions["since"] = format_time(since) if since is not None else None
        conditions["until"] = format_time(until) if until is not None else None
        check_whole_number("after", after, least=0, most=2**62)
        while rows := await asyncio.to_thread(self._find_store().fetch, after=after, **conditions):
            for row in rows:
                yield read_entry(row)
            after = rows[-1][SEQ]
            if len(rows) < PAGE:
                return

    async def read(self, seq: int) -> Entry:
        """Return one entry by its place. Raises ``UsageError`` if there is none.

        Args:
            seq: The place of the entry.
        """
        check_place(seq)
        rows = await asyncio.to_thread(self._find_store().fetch, after=seq - 1, count=1)
        if not rows or rows[0][SEQ] != seq:
            raise explain_missing(seq)
        return read_entry(rows[0])

    async def head(self) -> Head:
        """Return the place and hash of the last entry. Keep it elsewhere to notice later changes."""
        head = await asyncio.to_thread(self._find_store().head)
        if head is None:
            raise LedgerError(f"the ledger {self._store.name} has lost its entries")
        return head

    async def explain_search(self) -> str | None:
        """Return one sentence why searching this ledger is slow, because trigrams are missing; ``None`` if it is not.

        Raises ``UsageError`` if there is no ledger.
        """
        return await asyncio.to_thread(self._find_store().explain_search)

    async def verify(
        self,
        head: Head | str | os.PathLike[str] | None = None,
        *,
        public_key: PublicKey | None = None,
        each: Callable[[Row], object] | None = None,
    ) -> Verification:
        """Check every entry, from the genesis on, and return the first bad one, if any.

        Args:
            head: A head that you kept elsewhere: the value, ``SEQ:HASH``, or the path of a file with either form.
                ``None`` compares with none.
            public_key: The public key to trust; by default that of this ledger's own ``key``.
            each: A function that is called, in the thread that reads, with the stored values of every good entry, in
                the order of the columns.
        """
        chain = make_chain(head, public_key if public_key is not None else self.public_key)
        return await asyncio.to_thread(_verify_store, self._find_store(), chain, each)

    async def export(self, path: str | os.PathLike[str]) -> Head:
        """Write every entry to a new file, one JSON object per line, and return the ledger's head.

        ``verify_export`` checks the file without the ledger. Raises ``UsageError`` when the file exists.

        Args:
            path: The file to write; it must not exist.
        """
        return await asyncio.to_thread(write_export, self._find_store(), path)

    # ---------------------------------------------------------------- its file and its tables

    async def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy a ledger in SQLite, with all tables beside it, to a new file, while it is in use.

        Raises ``UsageError`` where there is no ledger, for one in PostgreSQL (``pg_dump`` copies it) and for a file
        that exists, and ``LedgerError`` when it cannot be read or the copy cannot be written; then there is none.

        Args:
            path: The file to write; it must not exist.
        """
        await asyncio.to_thread(self._find_store().copy_file, path)

    async def upgrade(self, rebuild: Callable[[Connection], object] | None = None) -> LedgerUpgrade:
        """Bring the tables beside the ledger to the form that this version uses, all steps or none.

        Stop what uses the ledger before, and back it up. Needs the extra ``server`` or ``postgres``. Raises
        ``UsageError`` where there is no ledger and for one that a later version wrote, and ``LedgerError`` when the
        store fails.

        Args:
            rebuild: A function that is called last, in the same transaction, to derive anew what others keep in tables
                of theirs. ``None`` is none.
        """
        return await asyncio.to_thread(self._find_store().change_tables, partial(upgrade_tables, rebuild=rebuild))

    async def clear_space(self, tables: Sequence[str] = ()) -> str:
        """Have what was erased, and deleted from some tables beside the ledger, leave the database's files.

        SQLite's write-ahead log is emptied, PostgreSQL is asked to ``VACUUM``. Return why the text may be there still,
        in a part of a sentence; empty where it is gone. ``docs/ledger.md`` says what PostgreSQL keeps all the same.

        Args:
            tables: The names of the tables from which something was deleted.
        """
        store = self._find_store()
        problem: str = await self._submit(lambda: store.clear_space(tables))
        return problem

    # ---------------------------------------------------------------- its end

    async def aclose(self) -> None:
        """Wait for pending appends and close all connections. A later use opens them again."""
        self._find_store()
        with self._lock:
            store, self._store = self._store, self._make_store()
            writer, self._writer = self._writer, None
            if writer is not None:
                writer.request_end()
        if self._finalizer is not None:
            self._finalizer.detach()
        if writer is not None:
            await asyncio.to_thread(writer.join)
        else:
            store.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    def _find_store(self) -> Store:
        """Return the store; in a process that was forked from the one that made it, a new store."""
        # The connections and the thread of the parent process must not be used here, and not even closed.
        if self._pid != os.getpid():
            self._pid, self._writer, self._lock = os.getpid(), None, threading.Lock()
            self._store = self._make_store()
        return self._store

    def _make_store(self) -> Store:
        return Store(self._url, signer=self._signer, about=self._genesis_members)

    def _submit(self, work: Draft | Callable[[], Any]) -> asyncio.Future[Any]:
        """Hand a draft or a function to the writer, which is made if there is none; return the future of its result."""
        self._find_store()
        # Several threads may call this at once. The work is handed in under the lock too: otherwise another thread
        # could close the writer before, and then the future would never be done.
        with self._lock:
            if self._writer is None:
                self._writer = LedgerWriter(self._store)
                # A ledger to which there is no reference any more closes itself.
                self._finalizer = weakref.finalize(self, self._writer.request_end)
            return self._writer.submit(work)


def make_chain(head: Head | str | os.PathLike[str] | None, public_key: PublicKey | None) -> Chain:
    """Make a check of a ledger, which compares its entries with a head and a public key where these are given."""
    check = open_check(public_key) if public_key is not None else None
    return Chain(head=read_head(head), check=check, find_check=find_check)


def _verify_store(store: Store, chain: Chain, each: Callable[[Row], object] | None) -> Verification:
    """Verify the entries of a store, then the columns beside them; call ``each`` with every row that is in order."""
    differences: list[tuple[int, str]] = []
    try:
        with closing(store.stream(lambda seq, difference: differences.append((seq, difference)))) as rows:
            verification = chain.verify(rows if each is None else call_for_each(rows, each))
            return find_columns_changed(verification, differences)
    except DamagedError as error:
        # Such as a text that is no UTF-8, or a page of the file that is no page. Damage is what verifying looks for, so
        # it is part of the result.
        return chain.break_off(str(error))


def _has_subject(value: object) -> bool:
    """Return whether a value, such as a result, names the content that it is about by itself."""
    return getattr(value, "subject", None) is not None


def _make_prefix_pattern(text: str | None) -> str | None:
    """Make the pattern of ``LIKE`` for everything that begins with a text; ``!`` escapes its special characters."""
    return None if text is None else re.sub("([!%_])", r"!\1", text) + "%"
