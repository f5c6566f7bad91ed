"""The readers of a run's verdicts: kept beside the ledger, for reading a run must not begin a file of labels in it.

Which labels count as blind is decided in ``blind_cases.py`` (``note_read``, ``note_earlier``).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING

from adjudge.ledger.ledger import Ledger

if TYPE_CHECKING:
    from sqlalchemy import Connection, MetaData, Table

TABLE = "adjudge_server_verdict_reads"

ALL = ""
"""Stands in place of a digest for every case of a run."""


@cache
def make_tables() -> MetaData:
    """The table's description. Apart from the server's others, so that a database that has those gets it by itself."""
    from sqlalchemy import Column, MetaData, Table, Text

    tables = MetaData()
    Table(
        TABLE,
        tables,
        Column("rater", Text, primary_key=True),
        # Both are digests of ids; an empty one of a case stands for every case of the run.
        Column("run", Text, primary_key=True),
        Column("case_digest", Text, primary_key=True),
        sqlite_strict=True,
    )
    return tables


def _find_table() -> Table:
    return make_tables().tables[TABLE]


async def keep_reads(ledger: Ledger, rater: str, run: str, cases: Iterable[str], *, whole: bool) -> None:
    """Keep that somebody read the verdicts of some cases of the run with this id, or with ``whole`` of all."""
    wanted, digest = {ALL} if whole else {_digest(case) for case in cases}, _digest(run)

    def find_new(connection: Connection) -> set[str]:
        table = _find_table()
        rows = connection.execute(table.select().where(table.c.rater == rater, table.c.run == digest))
        kept = {row.case_digest for row in rows}
        return set() if ALL in kept else wanted - kept

    def keep(connection: Connection) -> None:
        rows = [{"rater": rater, "run": digest, "case_digest": case} for case in sorted(find_new(connection))]
        if rows:
            connection.execute(_find_table().insert(), rows)

    # Most looks are at what was read before: they have no need of a transaction, which others wait for.
    if await ledger.look(find_new, tables=make_tables()) != set():
        await ledger.transact(lambda transaction: keep(transaction.connection), tables=make_tables())


async def find_reads(ledger: Ledger, rater: str, case: str, runs: Iterable[str]) -> dict[str, set[str]]:
    """Find in which of the runs with these ids somebody read a case: its digest, or ``ALL``, by the id of the run."""
    ids = {_digest(run): run for run in runs}

    def find(connection: Connection) -> dict[str, set[str]]:
        table = _find_table()
        where = (table.c.rater == rater) & table.c.case_digest.in_((_digest(case), ALL))
        reads: dict[str, set[str]] = {}
        for row in connection.execute(table.select().where(where)):
            if row.run in ids:
                reads.setdefault(ids[row.run], set()).add(row.case_digest)
        return reads

    return await ledger.look(find, tables=make_tables()) or {}


def _digest(text: str) -> str:
    """Digest an id: it may be long, and hold what a database does not."""
    return sha256(text.encode(errors="surrogatepass")).hexdigest()
