"""The server's table of which rater has read which verdicts of a run.

It is in the ledger's database and not in the run's label file, because looking at a run must not begin such a file.

Which labels count as blind is decided in ``blind_cases.py`` (``note_read``, ``note_earlier_read``).
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
"""The value of ``case_digest`` in a row that is about every case of its run."""


@cache
def make_tables() -> MetaData:
    """Describe the table. It is apart from the server's other tables, so that a database that has those gets it too."""
    from sqlalchemy import Column, MetaData, Table, Text

    tables = MetaData()
    Table(
        TABLE,
        tables,
        Column("rater", Text, primary_key=True),
        # Both are digests of ids; an empty digest of a case means every case of the run.
        Column("run", Text, primary_key=True),
        Column("case_digest", Text, primary_key=True),
        sqlite_strict=True,
    )
    return tables


def _find_table() -> Table:
    """Return the table of reads."""
    return make_tables().tables[TABLE]


async def record_reads(ledger: Ledger, rater: str, run_id: str, cases: Iterable[str], *, all_cases: bool) -> None:
    """Record that a rater read the verdicts of some cases of the run with this id, or with ``all_cases`` of all."""
    case_digests, run_digest = {ALL} if all_cases else {_digest(case) for case in cases}, _digest(run_id)

    def find_new(connection: Connection) -> set[str]:
        """Find the digests of cases that are not recorded yet."""
        table = _find_table()
        rows = connection.execute(table.select().where(table.c.rater == rater, table.c.run == run_digest))
        recorded = {row.case_digest for row in rows}
        return set() if ALL in recorded else case_digests - recorded

    def insert_new(connection: Connection) -> None:
        """Store the reads that are not recorded yet."""
        rows = [{"rater": rater, "run": run_digest, "case_digest": case} for case in sorted(find_new(connection))]
        if rows:
            connection.execute(_find_table().insert(), rows)

    # Most verdicts that are read were read before. Then there is no need of a transaction, which others wait for.
    if await ledger.look(find_new, tables=make_tables()) != set():
        await ledger.transact(lambda transaction: insert_new(transaction.connection), tables=make_tables())


async def find_reads(ledger: Ledger, rater: str, case: str, run_ids: Iterable[str]) -> dict[str, set[str]]:
    """Find in which of some runs a rater read the verdict of a case.

    The result has, by the id of each run in which they did, what is recorded: the digest of the case, ``ALL``, or both.
    """
    ids_by_digest = {_digest(run_id): run_id for run_id in run_ids}

    def find(connection: Connection) -> dict[str, set[str]]:
        """Find the rows about this case or about every case of a run, by the id of the run."""
        table = _find_table()
        where = (table.c.rater == rater) & table.c.case_digest.in_((_digest(case), ALL))
        reads: dict[str, set[str]] = {}
        for row in connection.execute(table.select().where(where)):
            if row.run in ids_by_digest:
                reads.setdefault(ids_by_digest[row.run], set()).add(row.case_digest)
        return reads

    return await ledger.look(find, tables=make_tables()) or {}


def _digest(text: str) -> str:
    """Digest an id, which may be long, or hold characters that a database cannot store."""
    return sha256(text.encode(errors="surrogatepass")).hexdigest()
