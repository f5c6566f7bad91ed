"""``adjudge ledger``: look into a ledger, check it, and take it elsewhere. Only ``erase`` writes to one."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import deque
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from adjudge._display import clean
from adjudge.cli import _options as option
from adjudge.cli._config import Config, read_config
from adjudge.cli._entries import tell_entry
from adjudge.cli._ledgers import open_ledger
from adjudge.cli._output import add_row, is_narrow, make_table, note, say, show, write_json
from adjudge.errors import UsageError

if TYPE_CHECKING:
    from adjudge.ledger import Entry, Ledger, Verification

ledger_app = typer.Typer(
    help="Look into a ledger, check it, report on it, and take it elsewhere.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
T = TypeVar("T")
_LONGEST = 60
"""Characters of what an entry says, in a list."""
_ROOMY = 120
"""Columns of a terminal from which a list has room for digests."""

Place = Annotated[
    str | None,
    typer.Option("--ledger", metavar="URL", help="A file, or postgresql://...; by default [ledger] of adjudge.toml."),
]

Key = Annotated[
    str | None, typer.Option("--key", metavar="FILE", help="The private key that signs the ledger, if one does.")
]


def name_option(name: str, what: str) -> Any:
    """An option with a text."""
    return typer.Option(f"--{name}", metavar=name.upper()[:1], help=what)


@ledger_app.command("list")
def list_entries(
    ledger: Place = None,
    kind: Annotated[str | None, name_option("kind", "Only this kind: result, decision, erasure, ...")] = None,
    outcome: Annotated[str | None, name_option("outcome", "Only passed, failed or undecided.")] = None,
    judge: Annotated[str | None, name_option("judge", "Only of this judge, or with it as a seat.")] = None,
    gate: Annotated[str | None, name_option("gate", "Only of this gate.")] = None,
    subject: Annotated[str | None, name_option("subject", "Only about this, most often a digest.")] = None,
    execution: Annotated[str | None, name_option("execution", "Only of this execution.")] = None,
    since: Annotated[str | None, name_option("since", "From this time on, like 2026-11-20T12:00Z.")] = None,
    until: Annotated[str | None, name_option("until", "Before this time.")] = None,
    last: Annotated[int, typer.Option("--last", metavar="N", min=0, help="Only the last N; 0 for all.")] = 100,
    config: option.ConfigFile = None,
    as_json: option.AsJson = False,
) -> None:
    """List entries of a ledger, oldest first."""
    wanted: dict[str, Any] = {"kind": kind, "outcome": outcome, "judge": judge, "gate": gate}
    wanted |= {"subject": subject, "execution": execution}
    wanted |= {"since": read_time("--since", since), "until": read_time("--until", until)}

    async def find(opened: Ledger) -> tuple[list[Entry], int]:
        found: deque[Entry] = deque(maxlen=min(last, sys.maxsize) or None)
        count = 0
        async for entry in opened.query(**wanted):
            found.append(entry)
            count += 1
        return list(found), count

    entries, count = use_ledger(ledger, config, find)
    if as_json:
        items = [entry.to_dict() for entry in entries]
        write_json({"schema": "adjudge/ledger-entries/1", "matching": count, "entries": items})
        return
    _draw(entries)
    if count > len(entries):
        note(f"the last {len(entries)} of {count}; --last 0 shows all")


@ledger_app.command("show")
def show_entry(
    seq: Annotated[int, typer.Argument(metavar="SEQ", hidden=True)],
    ledger: Place = None,
    config: option.ConfigFile = None,
    as_json: option.AsJson = False,
) -> None:
    """Show one entry with its payload.

    SEQ is its place, which `adjudge ledger list` shows.
    """
    entry = use_ledger(ledger, config, lambda opened: opened.read(seq))
    data = entry.to_dict()
    if as_json:
        write_json(data)
        return
    payload = data.pop("payload")
    for name, said in data.items():
        if name != "schema":
            say(f"{name:<13}{clean('-' if said is None else str(said), keep_lines=False)}")
    say("payload      erased" if payload is None else json.dumps(payload, indent=2, ensure_ascii=False))


@ledger_app.command("verify")
def verify(
    ledger: Place = None,
    file: Annotated[
        Path | None, typer.Option("--file", metavar="FILE", help="Check this export and no ledger; works offline.")
    ] = None,
    head: Annotated[
        str | None, typer.Option("--head", metavar="HEAD", help="A head kept elsewhere: SEQ:HASH, or a file.")
    ] = None,
    public_key: Annotated[
        str | None, typer.Option("--public-key", metavar="KEY", help="The key to trust: hexadecimal, or a PEM file.")
    ] = None,
    config: option.ConfigFile = None,
    as_json: option.AsJson = False,
) -> int:
    """Check that nothing in a ledger was changed, dropped, reordered or inserted.

    Exit status: 0 nothing found, 1 something found, 2 there is no ledger, 3 it could not be read.
    """
    from adjudge.ledger import verify_export

    if file is not None and ledger is not None:
        raise UsageError("--file checks an export and --ledger a ledger; give one of them")
    if file is not None:
        found = verify_export(file, head=head, public_key=public_key)
    else:
        found = use_ledger(ledger, config, lambda opened: opened.verify(head, public_key=public_key))
    if as_json:
        write_json(found.to_dict())
    else:
        _tell(found)
    return 0 if found.valid else 1


@ledger_app.command("export")
def export(
    file: Annotated[Path, typer.Argument(metavar="FILE", hidden=True)],
    ledger: Place = None,
    config: option.ConfigFile = None,
) -> None:
    """Write a ledger to FILE, one JSON object per line, and print its head.

    `adjudge ledger verify --file FILE` checks it without the ledger. FILE must not exist.
    """
    say(str(use_ledger(ledger, config, lambda opened: opened.export(file))))


@ledger_app.command("head")
def head(ledger: Place = None, config: option.ConfigFile = None, as_json: option.AsJson = False) -> None:
    """Print the last entry's place and hash.

    Kept where nobody who can write the ledger can write, it shows later what was dropped or rewritten.
    """
    found = use_ledger(ledger, config, lambda opened: opened.head())
    if as_json:
        write_json(found.to_dict())
    else:
        say(str(found))


@ledger_app.command("erase")
def erase(
    seq: Annotated[int, typer.Argument(metavar="SEQ", hidden=True)],
    reason: Annotated[str, name_option("reason", "Why; it explains the gap later.")],
    ledger: Place = None,
    by: Annotated[str | None, name_option("by", "Who asks for it; by default this system's user.")] = None,
    key: Key = None,
    config: option.ConfigFile = None,
    as_json: option.AsJson = False,
) -> None:
    """Erase the payload of an entry for good; its hash stays, so the chain holds, and the erasure is an entry.

    SEQ is its place, which `adjudge ledger list` shows. There is no way back.
    """

    async def work(opened: Ledger) -> int:
        await opened.read(seq)  # which makes no ledger where there is none, as writing would
        return await opened.erase(seq, reason, by if by is not None else find_user())

    place = use_ledger(ledger, config, work, key=key, writes=True)
    if as_json:
        write_json({"schema": "adjudge/ledger-erased/1", "seq": seq, "recorded_at": place})
    else:
        say(f"entry {seq}: payload erased, recorded at {place}")


def find_user() -> str:
    """The operating system's user, by its own account and not by an environment variable that anybody can set."""
    try:
        import pwd
    except ImportError:
        return _find_login()
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # an account without a name, as containers have; getpass would now believe LOGNAME
        return f"uid {os.getuid()}"


def _find_login() -> str:
    try:
        return os.getlogin()  # on Windows this asks the system, and no variable
    except OSError:
        raise UsageError("this system does not say who its user is, and nothing is recorded under a guess") from None


def use_ledger(
    url: str | None,
    config: Path | None,
    work: Callable[[Ledger], Awaitable[T]],
    *,
    key: str | None = None,
    writes: bool = False,
) -> T:
    """What some work makes of the ledger that was named; only work that ``writes`` gets the key of ``[ledger]``."""
    # To look into a ledger that is named, no other file has to be right; who writes needs what [ledger] says of it.
    found = read_config(config) if url is None or writes else Config()

    async def run() -> T:
        async with open_ledger(found, url, key=key, for_writing=writes) as opened:
            return await work(opened)

    return asyncio.run(run())


def read_time(name: str, text: str | None) -> datetime | None:
    """The time that an option says; one without a zone is this machine's."""
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{name} must be a time like 2026-11-20T12:00Z, got {clean(text[:80])!r}") from None
    return found if found.tzinfo else found.astimezone()


def _draw(entries: list[Entry]) -> None:
    # A subject is a digest: in a narrow table it would take the room of what happened, and `show` has it.
    columns = ("seq", "at", "kind", "outcome", "judge", "gate", "what", *["subject"] * (not is_narrow(_ROOMY)))
    table = make_table("", columns, whole=1)
    for entry in entries:
        said = entry.payload or {}
        about = said.get("result") if isinstance(said.get("result"), dict) else said
        at = entry.at.strftime("%Y-%m-%d %H:%M:%SZ")
        texts = [str(found or "") for found in (about.get("outcome"), about.get("judge"), said.get("gate"))]
        texts = [str(entry.seq), at, entry.kind, *texts, tell_entry(entry)[:_LONGEST], entry.subject[:16]]
        add_row(table, *texts[: len(columns)])
    show(table)


def _tell(found: Verification) -> None:
    if found.valid:
        say(f"in order: {found.entries} entries, up to {found.head}")
    else:
        say(f"not in order: {found.detail} [{found.code}]; {found.entries} entries before it are")
    for seq, by in found.erased.items():
        say(f"entry {seq}: payload erased, recorded at {by}")
    say(f"pinned head: {'compared' if found.pinned_head else 'none'}; signatures: {found.signatures}")
    for item in found.unseen:
        note(f"could not see {item}")
