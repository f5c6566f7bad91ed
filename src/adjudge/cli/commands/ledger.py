"""``adjudge ledger``: look into a ledger, check it, and take it elsewhere. Only ``erase`` writes to one.

What is wrong with a ledger is decided in ``ledger/verification.py`` (``Chain``), and the opinion of an audit in
``ledger/audit/opinion.py`` (``choose_opinion``).
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar, get_args

import typer

from adjudge.cli import options as option
from adjudge.cli.command_groups import make_group
from adjudge.cli.exit_status import DONE, FAILED
from adjudge.cli.ledger_lines import describe_entry
from adjudge.cli.output import (
    add_row,
    can_draw_boxes,
    is_narrow,
    make_table,
    note,
    print_line,
    show_drawing,
    write_json,
)
from adjudge.config.file import Config, read_config
from adjudge.config.ledger import open_ledger
from adjudge.errors import UsageError
from adjudge.formats.text import clean
from adjudge.ledger.audit.derive import derive_audit, record_opinion
from adjudge.ledger.audit.entry import AuditEntry
from adjudge.ledger.audit.opinion import Opinion
from adjudge.ledger.audit.report_file import render_audit
from adjudge.ledger.ledger import Ledger
from adjudge.ledger.signature import create_signing_key

if TYPE_CHECKING:
    from adjudge.ledger.entry import Entry
    from adjudge.ledger.verification import Verification

T = TypeVar("T")

_LONGEST_DESCRIPTION = 60
"""Characters of an entry's description in a list."""

_DIGEST_START = re.compile("[0-9a-f]{6,63}")
"""A subject that matches is taken for the beginning of a digest, as lists show it; any other one has to match whole."""

_WIDE = 120
"""Columns of a terminal from which on a list shows digests."""


LedgerUrl = Annotated[
    str | None,
    typer.Option("--ledger", metavar="URL", help="A file, or postgresql://HOST/NAME.  [default: that of adjudge.toml]"),
]


KeyFile = Annotated[
    str | None, typer.Option("--key", metavar="FILE", help="The private key that signs the ledger, if one does.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerPlace:
    """The ledger that a command opens, the key that signs it, and the configuration that names both."""

    heading: ClassVar[str] = "Options"
    ledger: LedgerUrl = None
    key: KeyFile = None
    config: option.ConfigFile = None


def name_option(name: str, help_text: str) -> Any:
    """Make an option whose value is a text; the help text shows the first letter of its name as the value."""
    return typer.Option(f"--{name}", metavar=name.upper()[:1], help=help_text)


def list_entries(
    ledger: LedgerUrl = None,
    kind: Annotated[str | None, name_option("kind", "Only this kind: result, decision, erasure, ...")] = None,
    outcome: Annotated[str | None, name_option("outcome", "Only passed, failed or undecided.")] = None,
    judge: Annotated[str | None, name_option("judge", "Only of this judge, or with it as a seat.")] = None,
    gate: Annotated[str | None, name_option("gate", "Only of this gate.")] = None,
    subject: Annotated[
        str | None, name_option("subject", "Only about this: most often a digest, or how one begins.")
    ] = None,
    approval: Annotated[
        str | None, name_option("approval", "Only of this request for approval, by its id or an end of it.")
    ] = None,
    execution: Annotated[str | None, name_option("execution", "Only of this execution.")] = None,
    run: Annotated[str | None, name_option("run", "Only of this run of an agent, whose calls were guarded.")] = None,
    since: Annotated[str | None, name_option("since", "From this time on, like 2026-11-20T12:00Z.")] = None,
    until: Annotated[str | None, name_option("until", "Before this time.")] = None,
    last: Annotated[int, typer.Option("--last", metavar="N", min=0, help="Only the last N; 0 for all.")] = 100,
    config: option.ConfigFile = None,
    as_json: option.AsJson = False,
) -> None:
    """List entries of a ledger, oldest first.

    $ adjudge ledger list

    `adjudge approvals show ID` shows who decided a request.
    """
    filters: dict[str, Any] = {"kind": kind, "outcome": outcome, "judge": judge, "gate": gate}
    is_start = subject is not None and _DIGEST_START.fullmatch(subject) is not None
    filters |= {"subject_start" if is_start else "subject": subject, "execution": execution, "run": run}
    filters |= {"since": read_time("--since", since), "until": read_time("--until", until)}

    async def find(opened: Ledger) -> tuple[list[Entry], int]:
        """Return the last entries that match, and the number of all that match."""
        if approval is not None:
            from adjudge.guards.approval.approvals import Approvals

            filters["approval"] = await Approvals(opened).find(approval)
        last_entries: deque[Entry] = deque(maxlen=min(last, sys.maxsize) or None)
        count = 0
        async for entry in opened.query(**filters):
            last_entries.append(entry)
            count += 1
        return list(last_entries), count

    entries, count = use_ledger(ledger, config, find)
    if as_json:
        rows = [entry.to_dict() for entry in entries]
        write_json({"schema": "adjudge/ledger-entries/1", "matching": count, "entries": rows})
        return
    if not entries:
        note("no entry matches")
        return
    _draw_entries(entries)
    if count > len(entries):
        note(f"the last {len(entries)} of {count}; --last 0 shows all")


def show_entry(
    seq: Annotated[int, typer.Argument(metavar="SEQ", hidden=True)],
    ledger: LedgerUrl = None,
    config: option.ConfigFile = None,
    as_json: option.AsJson = False,
) -> None:
    """Show one entry with its payload.

    $ adjudge ledger show 12

    SEQ is its place, which `adjudge ledger list` shows.
    """
    entry = use_ledger(ledger, config, lambda opened: opened.read(seq))
    data = entry.to_dict()
    if as_json:
        write_json(data)
        return
    payload = data.pop("payload")
    for name, value in data.items():
        if name != "schema":
            print_line(f"{name:<13}{clean('-' if value is None else str(value), keep_lines=False)}")
    print_line("payload      erased" if payload is None else json.dumps(payload, indent=2, ensure_ascii=False))


def verify(
    ledger: LedgerUrl = None,
    file: Annotated[
        Path | None, typer.Option("--file", metavar="FILE", help="Check this export and no ledger; works offline.")
    ] = None,
    head: Annotated[
        str | None, typer.Option("--head", metavar="HEAD", help="A head kept elsewhere: SEQ:HASH, or a file.")
    ] = None,
    public_key: Annotated[
        str | None, typer.Option("--public-key", metavar="KEY", help="The key to trust: hexadecimal, or a file of it.")
    ] = None,
    config: option.ConfigFile = None,
    as_json: option.AsJson = False,
) -> int:
    """Check that nothing in a ledger was changed, dropped, reordered or inserted.

    $ adjudge ledger verify

    Exit status: 0 nothing found, 1 something found, 2 there is no ledger, 3 it could not be read.
    """
    from adjudge.ledger.export import verify_export

    if file is not None and ledger is not None:
        raise UsageError("--file checks an export and --ledger a ledger; give one of them")
    if file is not None:
        verification = verify_export(file, head=head, public_key=public_key)
    else:
        verification = use_ledger(ledger, config, lambda opened: _verify_ledger(opened, head, public_key))
    if as_json:
        write_json(verification.to_dict())
    else:
        _print_verification(verification)
    return DONE if verification.valid else FAILED


def export(
    file: Annotated[Path, typer.Argument(metavar="FILE", hidden=True)],
    ledger: LedgerUrl = None,
    config: option.ConfigFile = None,
) -> None:
    """Write a ledger to FILE, one JSON object per line, and print its head.

    $ adjudge ledger export ledger.jsonl

    `adjudge ledger verify --file FILE` checks it without the ledger. FILE must not exist.
    """
    print_line(str(use_ledger(ledger, config, lambda opened: opened.export(file))))


def head(ledger: LedgerUrl = None, config: option.ConfigFile = None, as_json: option.AsJson = False) -> None:
    """Print the last entry's place and hash.

    $ adjudge ledger head

    Keep it where the people who write the ledger cannot change it. Then `adjudge ledger verify --head` shows whether
    entries were dropped or rewritten.
    """
    latest = use_ledger(ledger, config, lambda opened: opened.head())
    if as_json:
        write_json(latest.to_dict())
    else:
        print_line(str(latest))


def create_key(
    file: Annotated[Path, typer.Argument(metavar="FILE", hidden=True)], as_json: option.AsJson = False
) -> None:
    """Write a new private key that signs a ledger to FILE, and print its public key.

    $ adjudge ledger create-key ledger-key.pem

    FILE must not exist, and only its owner can read it. Name it as key under [ledger] before the first entry: a ledger
    is signed from its beginning or not at all. Keep the public key where the people who write the ledger cannot change
    it.
    """
    public_key = create_signing_key(file)
    if as_json:
        write_json({"schema": "adjudge/ledger-key/1", "public_key": public_key})
    else:
        print_line(public_key)


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", hidden=True)],
    ledger: LedgerUrl = None,
    config: option.ConfigFile = None,
) -> int:
    """Copy a ledger in SQLite to FILE while it is in use, check the copy, and print its head.

    $ adjudge ledger backup backup.db

    Approvals, keys and accounts are in it. FILE must not exist. For PostgreSQL, use pg_dump.

    Exit status: 0 copied, 1 copied, and the copy's chain is broken, 2 wrong usage, 3 it could not be copied.
    """
    use_ledger(ledger, config, lambda opened: opened.backup(file))
    verification = asyncio.run(_verify_copy(file))
    if not verification.valid:
        _print_verification(verification)
        return FAILED
    print_line(str(verification.head))
    return DONE


async def _verify_copy(file: Path) -> Verification:
    """Verify the copy of a ledger that ``backup`` has made."""
    async with Ledger(file) as copy:
        return await _verify_ledger(copy)


async def _verify_ledger(ledger: Ledger, head: str | None = None, public_key: str | None = None) -> Verification:
    """Verify a ledger, and that the table of requests for approval beside it agrees with it.

    ``head`` is one that was kept elsewhere, and ``public_key`` the key to trust.
    """
    from adjudge.guards.approval.request_columns import verify_listed

    return await verify_listed(ledger, await ledger.verify(head, public_key=public_key))


def upgrade(ledger: LedgerUrl = None, config: option.ConfigFile = None, as_json: option.AsJson = False) -> None:
    """Bring the tables beside a ledger to the form that this version of adjudge uses.

    $ adjudge ledger upgrade

    Stop what uses it before, and back it up. Nothing changes where they have that form already.
    """
    from adjudge.guards.approval.request_columns import rebuild_listed

    changes = use_ledger(ledger, config, lambda opened: opened.upgrade(rebuild_listed))
    if as_json:
        write_json({"schema": "adjudge/ledger-upgrade/1", "before": changes.before, "after": changes.after})
    elif changes.before == changes.after:
        print_line(f"revision {changes.after}: there is nothing to upgrade")
    else:
        print_line(f"upgraded from revision {changes.before} to {changes.after}")


def list_unfinished(
    ledger: LedgerUrl = None,
    run: Annotated[str | None, name_option("run", "Only of this run of an agent.")] = None,
    since: Annotated[str | None, name_option("since", "Allowed from this time on, like 2026-11-20T12:00Z.")] = None,
    at_work: Annotated[
        float, typer.Option("--at-work", metavar="SEC", min=0, help="Leave out calls that were allowed this recently.")
    ] = 600.0,
    config: option.ConfigFile = None,
    as_json: option.AsJson = False,
) -> int:
    """List an agent's calls that people approved and that may not have run, as after a crash.

    $ adjudge ledger unfinished

    No entry of the ledger says that they were made. They are not made again by themselves: look whether they ran.

    Exit status: 0 there is none, 1 there are some, 2 there is no ledger, 3 it could not be read.
    """
    from adjudge.guards.tool_guard.unfinished import list_unfinished_calls

    start_time = read_time("--since", since)
    calls = use_ledger(
        ledger, config, lambda opened: list_unfinished_calls(opened, run=run, since=start_time, at_work=at_work)
    )
    if as_json:
        write_json({"schema": "adjudge/unfinished-calls/1", "calls": [call.to_dict() for call in calls]})
    elif calls:
        table = make_table("", ("seq", "allowed at", "tool", "run", "call", "approval"), whole=1)
        for call in calls:
            tool = call.tool if call.server is None else f"{call.server}: {call.tool}"
            at = call.at.strftime("%Y-%m-%d %H:%M:%SZ")
            add_row(table, str(call.seq), at, tool, call.run_id, call.call_id or "", call.approval_id)
        show_drawing(table)
    else:
        left_out = f" (those of the last {at_work:g} s are left out: --at-work)" if at_work else ""
        print_line(f"every approved call is known to have been made{left_out}")
    return FAILED if calls else DONE


def erase(
    seq: Annotated[int, typer.Argument(metavar="SEQ", hidden=True)],
    reason: Annotated[str, name_option("reason", "Why; it explains the gap later.")],
    ledger: LedgerUrl = None,
    by: Annotated[str | None, name_option("by", "Who asks for it.  [default: this system's user]")] = None,
    key: KeyFile = None,
    config: option.ConfigFile = None,
    as_json: option.AsJson = False,
) -> None:
    """Erase the payload of an entry for good. Its hash stays, so the chain stays valid, and the erasure is recorded.

    $ adjudge ledger erase 12 --reason "A customer asked for it."

    SEQ is its place, which `adjudge ledger list` shows. This cannot be undone.
    """

    async def erase_entry(opened: Ledger) -> int:
        await opened.read(seq)  # raises where there is no ledger; writing would make one
        return await opened.erase(seq, reason, by if by is not None else find_user())

    erasure_seq = use_ledger(ledger, config, erase_entry, key=key, writes=True)
    if as_json:
        write_json({"schema": "adjudge/ledger-erased/1", "seq": seq, "recorded_at": erasure_seq})
    else:
        print_line(f"entry {seq}: payload erased, recorded at {erasure_seq}")


def find_user() -> str:
    """Find the operating system's user by their account, and not by an environment variable that anybody can set."""
    if sys.platform == "win32":
        return _find_windows_user()
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # an account without a name, as in containers; getpass would trust the variable LOGNAME here
        return f"uid {os.getuid()}"


def _find_windows_user() -> str:
    """Find the name of the user on Windows; raises ``UsageError`` if the system does not know it."""
    try:
        return os.getlogin()  # on Windows this asks the system, and reads no environment variable
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
    """Open the ledger that the options name, and return the result of ``work`` with it.

    ``url`` is that of ``--ledger``, and ``key`` the file of ``--key``. With ``writes``, the ledger is opened to write,
    with the key of ``[ledger]`` if the option names none.
    """
    # The configuration is read only if it is needed, so that one with a mistake keeps nobody from reading a ledger.
    configuration = read_config(config) if url is None or writes else Config()

    async def run() -> T:
        async with open_ledger(configuration, url, key=key, for_writing=writes) as opened:
            return await work(opened)

    return asyncio.run(run())


def read_time(name: str, text: str | None) -> datetime | None:
    """Read the time that the option called ``name`` gives; one without a time zone is in that of this machine.

    Raises ``UsageError`` for a text that is no time.
    """
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{name} must be a time like 2026-11-20T12:00Z, got {clean(text[:80])!r}") from None
    return time if time.tzinfo else time.astimezone()


def _draw_entries(entries: list[Entry]) -> None:
    """Draw entries as a table.

    The subject is left out on a narrow terminal: as a digest it would take the room of the description, and
    ``adjudge ledger show`` has it too.
    """
    subject_column = [] if is_narrow(_WIDE) else ["subject"]
    columns = ("seq", "at", "kind", "outcome", "judge", "gate", "what", *subject_column)
    table = make_table("", columns, whole=1)
    for entry in entries:
        payload = entry.payload or {}
        # A decision holds its result in a member; the payload of a result is the result itself.
        result = payload.get("result") if isinstance(payload.get("result"), dict) else payload
        time = entry.at.strftime("%Y-%m-%d %H:%M:%SZ")
        members = [str(member or "") for member in (result.get("outcome"), result.get("judge"), payload.get("gate"))]
        description = describe_entry(entry)[:_LONGEST_DESCRIPTION]
        cells = [str(entry.seq), time, entry.kind, *members, description, entry.subject[:16]]
        add_row(table, *cells[: len(columns)])
    show_drawing(table)


def _print_verification(verification: Verification) -> None:
    """Print whether a ledger is in order, its erased payloads, and what could not be checked."""
    if verification.valid:
        print_line(f"in order: {verification.entries} entries, up to {verification.head}")
    else:
        print_line(
            f"not in order: {verification.detail} [{verification.code}]; {verification.entries} entries before it are"
        )
    for seq, erasure_seq in islice(verification.erased.items(), _MOST_LISTED):
        print_line(f"entry {seq}: payload erased, recorded at {erasure_seq}")
    if len(verification.erased) > _MOST_LISTED:
        print_line(f"{len(verification.erased) - _MOST_LISTED:,} more payloads erased; --json lists them all")
    print_line(
        f"pinned head: {'compared' if verification.pinned_head else 'none'}; signatures: {verification.signatures}"
    )
    for sentence in verification.unseen:
        note(f"could not see {sentence}")


_MOST_LISTED = 50
"""Erased payloads, and findings of a report, that are listed at most."""

_OPINION_STATUS = {"unqualified": 0, "qualified": 1, "adverse": 1, "disclaimer": 3}
"""The exit status of each opinion of a report."""


def report(
    ledger: LedgerUrl = None,
    file: Annotated[
        Path | None, typer.Option("--file", metavar="FILE", help="Report on this export and no ledger; works offline.")
    ] = None,
    objectives: Annotated[str | None, name_option("objectives", "What the report is to find out.")] = None,
    scope: Annotated[
        list[str] | None, typer.Option("--scope", metavar="TEXT", help="What is looked at, in words; several times.")
    ] = None,
    gate: Annotated[str | None, name_option("gate", "Only of this gate.")] = None,
    execution: Annotated[str | None, name_option("execution", "Only of this execution.")] = None,
    subject: Annotated[str | None, name_option("subject", "Only about this, most often a digest.")] = None,
    since: Annotated[str | None, name_option("since", "From this time on, like 2026-11-20T12:00Z.")] = None,
    until: Annotated[str | None, name_option("until", "Before this time.")] = None,
    agent: Annotated[str | None, name_option("agent", "Whose work was judged.")] = None,
    opinion: Annotated[str | None, name_option("opinion", "Another opinion than the rule's; needs --by.")] = None,
    by: Annotated[str | None, name_option("by", "The person who gives that opinion.")] = None,
    reason: Annotated[str | None, name_option("reason", "That person's reason.")] = None,
    record: Annotated[
        bool, typer.Option("--record", help="Record that opinion in the ledger, as an override.")
    ] = False,
    key: KeyFile = None,
    head: Annotated[
        str | None, typer.Option("--head", metavar="HEAD", help="A head kept elsewhere: SEQ:HASH, or a file.")
    ] = None,
    public_key: Annotated[
        str | None, typer.Option("--public-key", metavar="KEY", help="The key to trust: hexadecimal, or a file of it.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write the report to this new file, as Markdown.")
    ] = None,
    config: option.ConfigFile = None,
    as_json: option.AsJson = False,
) -> int:
    """Verify a ledger, report findings, and give an opinion.

    $ adjudge ledger report

    On a pipe and with --out the report is Markdown with YAML front matter, on a terminal a short form.

    Exit status: 0 unqualified, 1 qualified, adverse, or the ledger was changed, 2 there is no ledger, 3 a disclaimer,
    or it could not be read.
    """
    _check_opinion_options(opinion, by, reason, record=record, file=file, ledger=ledger)
    selection: dict[str, Any] = {"gate": gate, "execution": execution, "subject": subject, "agent_id": agent}
    selection |= {"since": read_time("--since", since), "until": read_time("--until", until)}
    selection |= {"scope": scope or (), "head": head, "public_key": public_key}
    selection |= {"opinion": opinion, "opinion_by": by, "reason": reason or ""}
    selection |= {"objectives": objectives} if objectives is not None else {}

    async def derive(opened: Ledger) -> AuditEntry:
        derived = await derive_audit(opened, **selection)
        _write_report(derived, out)  # before it is recorded, so that no opinion is on record whose report is missing
        if record:
            note(f"recorded as entry {await record_opinion(opened, derived)}")
        return derived

    if file is not None:
        import asyncio

        audit = asyncio.run(derive_audit(file, **selection))
        _write_report(audit, out)
    else:
        audit = use_ledger(ledger, config, derive, key=key, writes=record)
    _print_audit(audit, as_json=as_json, quiet=out is not None)
    return find_status(audit)


def find_status(audit: AuditEntry) -> int:
    """Find the exit status of a report: that of its opinion, but 1 if the ledger was changed, whatever the opinion."""
    is_ledger_changed = audit.basis is not None and not audit.basis.verified
    return FAILED if is_ledger_changed else _OPINION_STATUS[audit.opinion]


def _check_opinion_options(
    opinion: str | None, by: str | None, reason: str | None, *, record: bool, file: Path | None, ledger: str | None
) -> None:
    """Raise ``UsageError`` for an unknown ``--opinion``, and for options that do not go together."""
    if file is not None and ledger is not None:
        raise UsageError("--file reports on an export and --ledger on a ledger; give one of them")
    if opinion is not None and opinion not in get_args(Opinion):
        shown = clean(opinion[:80], keep_lines=False)
        raise UsageError(f"--opinion is one of {', '.join(get_args(Opinion))}, got {shown!r}")
    if len({opinion is None, by is None, reason is None}) > 1:
        raise UsageError("--opinion, --by and --reason say who gives another opinion, and why; give all three or none")
    if record and (opinion is None or file is not None):
        raise UsageError("--record records another opinion in a ledger; give --opinion, and --ledger instead of --file")


def _write_report(audit: AuditEntry, out: Path | None) -> None:
    """Write an audit to a new file, as Markdown; nothing without ``out``.

    Raises ``UsageError`` where the file is there already or cannot be written.
    """
    if out is None:
        return
    text = render_audit(audit)
    try:
        # Only its owner can read the file, like the ledger: with store_content="full", both quote what was judged.
        descriptor = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"the report cannot be written to {out}: {error.strerror}; name a new file") from None


def _print_audit(audit: AuditEntry, *, as_json: bool, quiet: bool) -> None:
    """Print an audit: as JSON, as one sentence (``quiet``), as tables on a terminal, or else as Markdown."""
    if as_json:
        write_json(audit.to_dict())
    elif quiet:
        note(audit.explain())
    elif can_draw_boxes():
        _draw_audit(audit)
    else:
        print_line(render_audit(audit).removesuffix("\n"))


def _draw_audit(audit: AuditEntry) -> None:
    """Draw an audit as two tables: its facts, and its findings if there are any."""
    colours = {"unqualified": "green", "qualified": "yellow", "adverse": "red", "disclaimer": "yellow"}
    facts = make_table("", ("audit", ""))
    add_row(facts, "opinion", audit.explain(), style=colours[audit.opinion])
    add_row(facts, "objectives", audit.objectives)
    for text in audit.scope:
        add_row(facts, "scope", text)
    counts = audit.findings
    add_row(facts, "findings", f"{counts.critical} critical, {counts.major} major, {counts.minor} minor")
    if audit.basis is not None:
        add_row(facts, "judged", f"{audit.basis.judged}, undecided {audit.basis.undecided}")
        add_row(facts, "ledger", audit.basis.problem or f"in order, up to {audit.basis.head}")
        for text in audit.basis.unseen:
            add_row(facts, "could not see", text)
    show_drawing(facts)
    if audit.found:
        table = make_table("findings", ("severity", "finding", "entry", "what"))
        for finding in audit.found[:_MOST_LISTED]:
            add_row(table, finding.severity, finding.code, str(finding.seq or ""), finding.detail)
        show_drawing(table)
    if len(audit.found) > _MOST_LISTED:
        note(f"the first {_MOST_LISTED} of {len(audit.found)} findings; --out FILE writes them all")


ledger_app = make_group(
    "ledger",
    "List, verify, export and report on a ledger.",
    {
        "list": list_entries,
        "show": show_entry,
        "unfinished": list_unfinished,
        "verify": verify,
        "export": export,
        "head": head,
        "create-key": create_key,
        "backup": backup,
        "upgrade": upgrade,
        "erase": erase,
        "report": report,
    },
)
