"""Options and arguments with what no value can be: one sentence and a status, never a crash."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from adjudge import Approvals, Ledger, ToolRegistry, UsageError
from kit import cli
from kit.approvals import make_result
from kit.cli import Line
from kit.environment import require
from kit.ledgers import open_schema, record
from kit.registries import add

HUGE = "9" * 20
LONG = "9" * 5_000


@pytest.mark.parametrize(
    "words",
    [
        *(["ledger", "list", "--ledger", text] for text in (LONG, "a\x00b", "\udcff")),
        *(["ledger", "list", "--config", text] for text in (LONG, "a\x00b")),
        *(["ledger", "verify", f"--{name}", text] for name in ("file", "head") for text in (LONG, "a\x00b")),
        *(["approvals", "list", "--key", text] for text in (LONG, "a\x00b")),
        *(["cache", "list", text] for text in (LONG, "a\x00b", "\udcff")),
        *([command, text] for command in ("report", "redecide", "probe") for text in (LONG, "a\x00b")),
        ["diff", "a\x00b", LONG],
        ["dataset", "check", LONG],
        ["rules", "check", LONG, "--rule", "secrets"],
        ["tools", "validate", "--schema", LONG, "x"],
        ["tools", "review", LONG],
        ["tools", "review", "a\x00b"],
        ["judge", "x", "--quorum", LONG],
    ],
    ids=range(27),
)
def test_no_name_of_a_file_crashes_a_command(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """Names that are too long, or none: a sentence and 2."""
    cli.isolate(monkeypatch, tmp_path)
    done = Line(capsys)(*words)

    assert done.status == 2
    assert "Traceback" not in done.err


def test_more_entries_than_there_can_be_are_all_of_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """``--last`` takes any number from 0 on."""
    cli.isolate(monkeypatch, tmp_path)
    record("sqlite:///a.db", make_result())
    done = Line(capsys)("ledger", "list", "--ledger", "a.db", "--last", HUGE)

    assert (done.status, len(done.out.splitlines())) == (0, 3)


# ---------------------------------------------------------------- what is asked of a ledger


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A ledger with one result, in a file and in a schema of PostgreSQL."""
    if request.param == "sqlite":
        place = f"sqlite:///{tmp_path}/a.db"
        record(place, make_result())
        yield place
        return
    with open_schema(require) as place:
        record(place, make_result())
        yield place


@pytest.mark.parametrize(
    "words",
    [
        *(["show", seq] for seq in (HUGE, "9" * 5_000, "0", str(2**63), str(2**63 - 1), str(2**31))),
        *(["show", "--", f"-{seq}"] for seq in (1, 2**63, HUGE)),
        *(["erase", seq, "--reason", "asked", "--by", "ana"] for seq in (HUGE, "0", str(2**63))),
        ["erase", "2", "--reason", "\udcff", "--by", "ana"],
        ["erase", "2", "--reason", "a\x00b", "--by", "ana"],
        ["erase", "2", "--reason", "asked", "--by", "\udcff"],
        *(
            ["list", f"--{name}", text]
            for name in ("subject", "kind", "judge", "gate", "execution")
            for text in ("\udcff", "a\x00b", "\ud800")
        ),
        ["list", "--last", f"-{HUGE}"],
        ["list", "--since", "\udcff"],
        ["list", "--since", HUGE],
    ],
    ids=range(33),
)
@pytest.mark.slow_table
def test_a_ledger_is_asked_for_what_it_cannot_have(
    words: list[str], url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """One sentence and 2, in a file and on a server."""
    cli.isolate(monkeypatch, tmp_path)
    done = Line(capsys)("ledger", words[0], "--ledger", url, *words[1:])

    assert done.status == 2
    assert done.sentence
    assert len(done.sentence) < 400


@pytest.mark.parametrize("seq", [10**20, -(10**20), 0, -1, 10**6000, 2**63, True, 1.0, "1", None], ids=range(10))
def test_the_library_says_so_too(seq: Any, url: str):
    """``read``, ``erase`` and ``query`` raise ``UsageError``; nothing of a database comes through."""

    async def ask() -> list[str]:
        messages = []
        async with Ledger(url) as ledger:
            for call in (lambda: ledger.read(seq), lambda: ledger.erase(seq, "asked", "ana")):
                try:
                    await call()
                except UsageError as error:
                    messages.append(str(error))
            for filters in ({"subject": "\udcff"}, {"kind": "a\0b"}, {"judge": 3}):
                try:
                    [item async for item in ledger.query(**filters)]
                except UsageError as error:
                    messages.append(str(error))
        return messages

    assert len(asyncio.run(ask())) == 5


@pytest.mark.parametrize("ident", ["\udcff" * 5, "a\0bcdef", "9" * 30, "x" * 999, ""])
def test_no_id_of_a_request_or_a_tool_breaks_a_store(ident: str, url: str):
    """It is said that there is none."""

    async def ask() -> int:
        refused = 0
        async with Approvals(url) as approvals:
            await approvals.request(make_result(), "Publish it?", approvers=("ana",))
            for call in (
                lambda: approvals.get(ident),
                lambda: approvals.find(ident),
                lambda: approvals.decide(ident, "ana", True, "fine"),
                lambda: approvals.forget(ident),
                lambda: approvals.history(ident),
                lambda: approvals.is_open(ident),
            ):
                with suppress(UsageError):
                    await call()
                    continue
                refused += 1
        async with ToolRegistry(url) as registry:
            await add(registry)
            for call in (lambda: registry.get(ident), lambda: registry.demote(ident, "worse", by="ana")):
                with suppress(UsageError):
                    await call()
                    continue
                refused += 1
        return refused

    assert asyncio.run(ask()) == 8
