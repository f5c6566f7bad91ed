"""``adjudge ledger report``: an audit report that is derived from a ledger."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from adjudge import AuditEntry, derive_audit, write_audit
from adjudge._display import clean
from adjudge.audit import Opinion, record_opinion
from adjudge.cli import _options as option
from adjudge.cli._ledger import Key, Place, name_option, read_time, use_ledger
from adjudge.cli._output import add_row, draws, make_table, note, say, show, write_json
from adjudge.errors import UsageError
from adjudge.ledger import Ledger

_MOST_DRAWN = 50
_STATUS = {"unqualified": 0, "qualified": 1, "adverse": 1, "disclaimer": 3}


def report(
    ledger: Place = None,
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
    key: Key = None,
    head: Annotated[
        str | None, typer.Option("--head", metavar="HEAD", help="A head kept elsewhere: SEQ:HASH, or a file.")
    ] = None,
    public_key: Annotated[
        str | None, typer.Option("--public-key", metavar="KEY", help="The key to trust: hexadecimal, or a PEM file.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write the report to this new file, as Markdown.")
    ] = None,
    config: option.ConfigFile = None,
    as_json: option.AsJson = False,
) -> int:
    """Report on a ledger: verify it, say what was found, and give an opinion.

    A pipe and --out get Markdown with YAML front matter, a terminal the same in short.

    Exit status: 0 unqualified, 1 qualified, adverse, or the ledger was changed, 2 there is no ledger, 3 a disclaimer,
    or it could not be read.
    """
    _check(opinion, by, reason, record=record, file=file, ledger=ledger)
    how: dict[str, Any] = {"gate": gate, "execution": execution, "subject": subject, "agent_id": agent}
    how |= {"since": read_time("--since", since), "until": read_time("--until", until)}
    how |= {"scope": scope or (), "head": head, "public_key": public_key}
    how |= {"opinion": opinion, "opinion_by": by, "reason": reason or ""}
    how |= {"objectives": objectives} if objectives is not None else {}

    async def derive(opened: Ledger) -> AuditEntry:
        found = await derive_audit(opened, **how)
        _write(found, out)  # before it is recorded: what cannot be written must not be on record as given
        if record:
            note(f"recorded as entry {await record_opinion(opened, found)}")
        return found

    if file is not None:
        import asyncio

        audit = asyncio.run(derive_audit(file, **how))
        _write(audit, out)
    else:
        audit = use_ledger(ledger, config, derive, key=key, writes=record)
    _print(audit, as_json=as_json, quiet=out is not None)
    return find_status(audit)


def find_status(audit: AuditEntry) -> int:
    """The exit status; a ledger that was changed is something found, whatever the opinion is called."""
    changed = audit.basis is not None and not audit.basis.verified
    return 1 if changed else _STATUS[audit.opinion]


def _check(
    opinion: str | None, by: str | None, reason: str | None, *, record: bool, file: Path | None, ledger: str | None
) -> None:
    if file is not None and ledger is not None:
        raise UsageError("--file reports on an export and --ledger on a ledger; give one of them")
    if opinion is not None and opinion not in get_args(Opinion):
        said = clean(opinion[:80], keep_lines=False)
        raise UsageError(f"--opinion is one of {', '.join(get_args(Opinion))}, got {said!r}")
    if len({opinion is None, by is None, reason is None}) > 1:
        raise UsageError("--opinion, --by and --reason say who gives another opinion, and why; give all three or none")
    if record and (opinion is None or file is not None):
        raise UsageError("--record records another opinion in a ledger; give --opinion, and --ledger instead of --file")


def _write(audit: AuditEntry, out: Path | None) -> None:
    if out is None:
        return
    text = write_audit(audit)
    try:
        # Its owner's alone, as the ledger it was made from: with store_content="full" both quote what was judged.
        descriptor = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"the report cannot be written to {out}: {error.strerror}; name a new file") from None


def _print(audit: AuditEntry, *, as_json: bool, quiet: bool) -> None:
    if as_json:
        write_json(audit.to_dict())
    elif quiet:
        note(audit.explain())
    elif draws():
        _draw(audit)
    else:
        say(write_audit(audit).removesuffix("\n"))


def _draw(audit: AuditEntry) -> None:
    colours = {"unqualified": "green", "qualified": "yellow", "adverse": "red", "disclaimer": "yellow"}
    facts = make_table("", ("audit", ""))
    add_row(facts, "opinion", audit.explain(), style=colours[audit.opinion])
    add_row(facts, "objectives", audit.objectives)
    for item in audit.scope:
        add_row(facts, "scope", item)
    counts = audit.findings
    add_row(facts, "findings", f"{counts.critical} critical, {counts.major} major, {counts.minor} minor")
    if audit.basis is not None:
        add_row(facts, "judged", f"{audit.basis.judged}, undecided {audit.basis.undecided}")
        add_row(facts, "ledger", audit.basis.problem or f"in order, up to {audit.basis.head}")
        for item in audit.basis.unseen:
            add_row(facts, "could not see", item)
    show(facts)
    if audit.found:
        table = make_table("findings", ("severity", "finding", "entry", "what"))
        for found in audit.found[:_MOST_DRAWN]:
            add_row(table, found.severity, found.code, str(found.seq or ""), found.detail)
        show(table)
    if len(audit.found) > _MOST_DRAWN:
        note(f"the first {_MOST_DRAWN} of {len(audit.found)} findings; --out FILE writes them all")
