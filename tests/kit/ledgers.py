"""Ledgers for tests: results to record, rows to change, and a process that appends until it is killed."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import rfc8785

from adjudge import CriterionResult, JudgeChainResult, JudgeResult, Ledger, RuleResult
from adjudge.ledger import Entry, Row
from kit.process import start_module

POSTGRES = os.environ.get("ADJUDGE_TEST_POSTGRES", "postgresql+psycopg://postgres@127.0.0.1:5432/postgres")

STORES = ("sqlite", "postgres")
"""The kinds of store that a ledger can have."""

NO_PREV = "0" * 64
"""The value that the genesis entry has in place of the hash before it."""

COLUMNS = ("seq", "id", "at", "kind", "subject", "payload", "payload_hash", "prev", "hash", "signature")

SECRET = "Ada Lovelace lives at 12 St James's Square"
"""The text that a ledger must not hold unless it was asked for."""


def make_result(**changes: Any) -> JudgeResult:
    """A result whose every text quotes what was judged."""
    members: dict[str, Any] = {
        "outcome": "failed",
        "judge": "careful",
        "score": 0.25,
        "threshold": 0.7,
        "detail": f"it says {SECRET}",
        "reasoning": SECRET,
        "raw_response": json.dumps({"reasoning": SECRET}),
        "earlier_responses": (SECRET,),
        "suggestions": (f"remove {SECRET}",),
        "value": {"found": SECRET, SECRET: True},
        "criteria": (CriterionResult(name="privacy", score=0.25, passed=False, reasoning=SECRET, evidence=(SECRET,)),),
        "rule_results": (RuleResult(name="names", passed=False, message=SECRET, metadata={"match": SECRET}),),
        "subject": "5" * 64,
        "metadata": {"case": 7},
    }
    return JudgeResult(**(members | changes))


def make_chain_result(*seats: JudgeResult) -> JudgeChainResult:
    """A chain's result over some seats."""
    return JudgeChainResult(outcome="passed", judge="panel", score=1.0, strategy="majority", results=seats)


def make_rows(count: int) -> list[Row]:
    """A correct chain without a store: a genesis entry and ``count - 1`` runs with non-ASCII subjects."""
    payloads = [b'{"public_key":null,"schema":"adjudge/ledger/1","store_content":"hash"}']
    payloads += [json.dumps({"n": number}, separators=(",", ":")).encode() for number in range(1, count)]
    rows: list[Row] = []
    for seq, payload in enumerate(payloads, 1):
        kind, subject = ("genesis", "") if seq == 1 else ("run", f"suite-é-{seq}")
        at = f"2026-11-20T12:00:00.{seq:06d}Z"
        rows.append((seq, f"id-{seq:06d}", at, kind, subject, payload, sha256(payload).hexdigest(), "", "", None))
    return rehash(rows)


def rehash(rows: list[Row]) -> list[Row]:
    """The same rows in a new order or with other contents, with every place and hash computed anew."""
    done: list[Row] = []
    prev = NO_PREV
    for seq, row in enumerate(rows, 1):
        _, ident, at, kind, subject, payload, payload_hash, _, _, signature = row
        payload_hash = payload_hash if payload is None else sha256(payload).hexdigest()
        entry_hash = hash_entry(seq, ident, at, kind, subject, payload_hash, prev)
        done.append((seq, ident, at, kind, subject, payload, payload_hash, prev, entry_hash, signature))
        prev = entry_hash
    return done


def hash_entry(seq: int, ident: str, at: str, kind: str, subject: str, payload_hash: str, prev: str) -> str:  # noqa: PLR0917
    """SHA-256 of the canonical JSON (RFC 8785) of what an entry says, by an encoder that is not ours."""
    members = {"at": at, "id": ident, "kind": kind, "payload_hash": payload_hash, "prev": prev, "seq": seq}
    return sha256(rfc8785.dumps({"schema": "adjudge/ledger-entry/1", "subject": subject, **members})).hexdigest()


def export(rows: list[Row], path: Path) -> Path:
    """Some rows as the file that a ledger exports."""
    with path.open("wb") as file:
        for row in rows:
            line: dict[str, Any] = dict(zip(COLUMNS, row, strict=True))
            line["payload"] = msgspec.Raw(b"null" if line["payload"] is None else line["payload"])
            file.write(msgspec.json.encode({"schema": "adjudge/ledger-entry/1"} | line, order="sorted") + b"\n")
    return path


def run(url: str, work: Any, **options: Any) -> Any:
    """Return what an async function makes of a ledger, which is closed afterwards."""

    async def use() -> Any:
        async with Ledger(url, **options) as ledger:
            return await work(ledger)

    return asyncio.run(use())


def record(url: str, *values: Any, **options: Any) -> list[int]:
    """Append some values; mappings are runs."""

    async def work(ledger: Ledger) -> list[int]:
        return [await ledger.append(item, kind="run" if isinstance(item, dict) else None) for item in values]

    return run(url, work, **options)


def find(url: str, **filters: Any) -> list[Entry]:
    async def work(ledger: Ledger) -> list[Entry]:
        return [entry async for entry in ledger.query(**filters)]

    return run(url, work)


def verify(url: str, *arguments: Any, **options: Any) -> Any:
    return run(url, lambda ledger: ledger.verify(*arguments, **options))


def connect(url: str) -> Any:
    return closing(sqlite3.connect(url.removeprefix("sqlite:///")))


@contextmanager
def open_schema(require: Any) -> Iterator[str]:
    """The address of a schema of its own on the tests' PostgreSQL server, which is dropped afterwards."""
    require("psycopg", find_spec("psycopg"), "pip install 'adjudge[postgres]'")
    from sqlalchemy import create_engine
    from sqlalchemy.exc import OperationalError

    engine = create_engine(POSTGRES)
    name = f"adjudge_{uuid4().hex}"
    try:
        with engine.begin() as connection:
            connection.exec_driver_sql(f"CREATE SCHEMA {name}")
    except OperationalError:
        require("PostgreSQL", None, "start a server and name it in ADJUDGE_TEST_POSTGRES")
    try:
        yield f"{POSTGRES}?options=-csearch_path%3D{name}"
    finally:
        with engine.begin() as connection:
            connection.exec_driver_sql(f"DROP SCHEMA {name} CASCADE")
        engine.dispose()


@contextmanager
def open_store(kind: str, folder: Path, require: Any) -> Iterator[str]:
    """The address of an empty store of one of ``STORES``: a file in ``folder``, or a schema of its own."""
    if kind == "sqlite":
        yield f"sqlite:///{folder / 'adjudge.db'}"
        return
    with open_schema(require) as url:
        yield url


def start_appender(url: str, mark: str, *, count: int = 0, tasks: int = 8) -> subprocess.Popen[str]:
    """A process that appends from several tasks and writes the place of each append that returned; 0 is for ever."""
    return start_module("ledgers", url, mark, str(count), str(tasks))


def main() -> None:
    """Run the process of ``start_appender``."""
    url, mark, count, tasks = sys.argv[1:]
    asyncio.run(append_many(url, mark, int(count), int(tasks)))


async def append_many(url: str, mark: str, count: int, tasks: int) -> None:
    async def append(ledger: Ledger, task: int) -> None:
        number = 0
        while not count or number < count:
            place = await ledger.append({"mark": mark, "task": task, "number": number}, kind="run")
            sys.stdout.write(f"{place} {task} {number}\n")
            sys.stdout.flush()
            number += 1

    async with Ledger(url) as ledger, asyncio.TaskGroup() as group:
        for task in range(tasks):
            group.create_task(append(ledger, task))
