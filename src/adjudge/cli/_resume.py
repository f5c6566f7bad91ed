"""``adjudge gate resume``: go on with what a gate held back, in another process and as long afterwards as you like."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from adjudge import Case, Decision
from adjudge._request import DATA
from adjudge.cli import _options as option
from adjudge.cli._config import Config, read_config
from adjudge.cli._gate import find_status, print_decisions
from adjudge.cli._gates import close_gate, open_gate
from adjudge.cli._input import Item, list_inputs, read_text_file
from adjudge.cli._ledgers import Recorder, open_ledger
from adjudge.cli._output import complain, note, write_json
from adjudge.cli._people import open_approvals
from adjudge.content import content_text, digest_text
from adjudge.errors import UsageError

if TYPE_CHECKING:
    from adjudge import Approval
    from adjudge.ledger import Ledger


def resume(
    ident: Annotated[str, typer.Argument(metavar="ID", hidden=True)],
    path: Annotated[str | None, typer.Argument(metavar="PATH", hidden=True)] = None,
    reference: option.Reference = None,
    task: option.Task = None,
    context: option.Context = None,
    wait: option.Wait = False,
    as_json: option.AsJson = False,
    config: option.ConfigFile = None,
    ledger: option.LedgerPlace = None,
) -> int:
    """Go on with what a gate held back, once a person has decided.

    ID is the approval's, or 4 characters or more of its beginning or end. PATH is what is about to be used, and
    --task, --context and --reference what it is for: where one of them is not exactly what was held back, nothing is
    decided. The case of a data set is compared whole. The decision is recorded.

    Exit status: 0 allowed, 1 denied, 2 wrong usage, or PATH is something else, 3 nobody has decided, or not recorded.
    """
    found = read_config(config)
    recorder = Recorder(open_ledger(found, ledger))
    files = {"reference": reference, "task": task, "context": context}
    given = {key: read_text_file(file, what=f"--{key}") for key, file in files.items() if file is not None}
    decision = asyncio.run(_resume(ident, path, given, found, recorder, wait=wait))
    if as_json:
        write_json(decision.to_dict())
    else:
        print_decisions([(Item(name=path or "-"), decision)], single=True)
    for said in recorder.troubles:
        complain(said)
    return find_status([decision])


async def _resume(
    part: str, path: str | None, given: dict[str, str], config: Config, recorder: Recorder, *, wait: bool
) -> Decision:
    ledger = recorder.ledger
    assert ledger is not None  # noqa: S101 - for the type checker; the caller opened it
    async with AsyncExitStack() as stack:
        stack.push_async_callback(recorder.aclose)
        approvals = await stack.enter_async_context(open_approvals(config, ledger))
        approval = await approvals.get(await approvals.find(part))
        pending = await find_pending(ledger, approval)
        _check_same(path, given, pending)
        if approval.status == "open" and not wait:
            return pending
        gate = open_gate(pending.gate, config, recorder=recorder, approvals=approvals)
        stack.push_async_callback(close_gate, gate)
        if gate.approvals is None:
            raise UsageError(f"gate {pending.gate!r} of {config.path} asks nobody any more, so nothing goes on there")
        if wait:
            note(f"waiting for approval {approval.id}")
        return await gate.resume(pending)


async def find_pending(ledger: Ledger, approval: Approval) -> Decision:
    """The decision that waits for an approval, as the ledger holds it; raises ``UsageError`` where there is none."""
    from adjudge.ledger._payload import drop_digests

    async for entry in ledger.query(kind="decision", subject=approval.subject):
        said = entry.payload or {}
        if said.get("approval_id") == approval.id and said.get("pending") is True:
            return Decision.from_dict(drop_digests(said))
    raise UsageError(
        f"no gate's decision in this ledger waits for approval {approval.id}; "
        f"`adjudge approvals show {approval.id}` shows what does"
    )


def _check_same(path: str | None, given: dict[str, str], pending: Decision) -> None:
    """Raise ``UsageError`` for a file that is not what was held back: approved is what a person was asked about."""
    if path is None:
        for name, text in given.items():
            if digest_text(text) != pending.basis.get(name):
                raise UsageError(f"--{name} is not what was held back with; put the content through the gate again")
        return
    for item in list_inputs([path]).items:
        if item.error is not None:
            raise UsageError(item.error)
        if _is_same(item.content, given, pending):
            return
    raise UsageError(f"{path} is not what was held back, which had another digest; put it through the gate again")


def _is_same(found: object, given: dict[str, str], pending: Decision) -> bool:
    """Whether this is what was held back, with the same task, context and reference: a case as a whole."""
    own: dict[str, object] = dict(given)
    if isinstance(found, Case):
        said = {name: getattr(found, name) for name in DATA}
        own = dict.fromkeys(DATA) | given | {name: value for name, value in said.items() if value is not None}
        found = found.content
    if digest_text(content_text(found)) != pending.subject:
        return False
    if not pending.basis:  # of an older version, which did not keep what they were; such a decision does not open
        return True
    return all(
        (None if value is None else digest_text(content_text(value))) == pending.basis.get(name)
        for name, value in own.items()
    )
