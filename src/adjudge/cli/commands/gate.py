"""``adjudge gate``: list the gates of a project, and put contents through one.

What a gate decides is decided in ``guards/gate.py`` (``Check``).
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Annotated, Any

import typer

from adjudge.cli import options as option
from adjudge.cli.command_groups import make_group
from adjudge.cli.error_messages import format_error, repeat_options
from adjudge.cli.exit_status import DONE, FAILED, UNDECIDED, USAGE
from adjudge.cli.input import InputItem, Inputs, list_inputs, read_material
from adjudge.cli.judge_output import name_item
from adjudge.cli.option_sets import Only
from adjudge.cli.output import (
    add_row,
    complain,
    complain_once,
    make_table,
    note,
    print_line,
    show_drawing,
    show_progress,
    write_json,
)
from adjudge.concurrency import map_concurrently
from adjudge.config.file import Config, read_config
from adjudge.config.gates import check_gate_ready, close_gate, open_approvals, open_gate
from adjudge.config.ledger import CommandRecorder, open_ledger, open_recorder
from adjudge.content import content_text, digest_text
from adjudge.dataset.case import Case
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_whole_number
from adjudge.guards.approval_digest import CONTEXT
from adjudge.guards.decision import Decision
from adjudge.guards.gate import Gate
from adjudge.judges.evaluate import merge_case_data

DecidedItem = tuple[InputItem, Decision | None]
"""An input item and the gate's decision; ``None`` where there is none, and the item's ``error`` says why."""


def list_gates(config: option.ConfigFile = None, as_json: option.AsJson = False) -> int:
    """List the gates of adjudge.toml, and say whether they can be opened.

    $ adjudge gate list
    """
    configuration = read_config(config)
    gates: dict[str, Gate] = {}
    status = 0
    for name in configuration.gates:
        try:
            gates[name] = open_gate(name, configuration)
        except UsageError as error:
            complain(format_error(error))
            status = 2
    if as_json:
        if status == 0:
            described = {name: _describe(gate) for name, gate in gates.items()}
            write_json({"schema": "adjudge/gates/1", "config_digest": configuration.digest, "gates": described})
        return status
    if not configuration.gates:
        note(f"no gates: write [gates.NAME] into {configuration.path or 'adjudge.toml'}")
        return status
    table = make_table(
        "", ("gate", "rules", "rubric", "judge", "rule", "failed", "undecided", "tampering", "mode", "sample"), whole=1
    )
    for name, gate in gates.items():
        add_row(table, name, *[str(value if value is not None else "-") for value in _list_fields(gate)])
    show_drawing(table)
    return status


def check_gate(
    name: Annotated[str, typer.Argument(metavar="NAME", hidden=True)],
    material: option.MaterialOptions,
    recording: option.LedgerOptions,
    certified: option.CertificateOptions,
    paths: option.Contents = None,
    as_json: option.AsJson = False,
    concurrency: option.Concurrency = 8,
    config: option.ConfigFile = None,
    wait: option.Wait = False,
) -> int:
    """Put contents through a gate of adjudge.toml.

    $ adjudge gate check publish answer.txt

    PATH is a file with one content, or, ending in .jsonl or .parquet, a data set with one in each case; - is standard
    input, and so is no PATH at all.

    With --ledger, or [ledger] in adjudge.toml, every decision is recorded. Content is blocked if that fails.

    With --require-certificate, or require_certificate in adjudge.toml, a person is asked about what the judge passes
    unless the certificate speaks for it; the decision says why.

    If a gate asks a person, the command prints the approval's id. Decide with `adjudge approvals approve`, then
    continue with `adjudge gate resume`.

    Exit status: 0 allowed, 1 blocked because it failed or a person denied it, 2 wrong usage or unreadable input, 3
    blocked because it is undecided or a person has to decide, or not recorded. Of several inputs, 2 beats 1 beats 3
    beats 0.
    """
    check_whole_number("concurrency", concurrency, least=1)
    configuration = read_config(config)
    recorder = open_recorder(configuration, recording.ledger, off=recording.no_ledger)
    gate = open_gate(name, configuration, recorder=recorder, demanded=certified.make_settings())
    texts = read_material(material)
    inputs = list_inputs(paths)
    # Not the library's sync door: an interrupt has to end here only when every call that was under way has ended.
    decided_items = asyncio.run(_check_all(gate, inputs, texts, concurrency, recorder, wait=wait))
    if as_json:
        _print_json(decided_items, single=inputs.single)
    else:
        options = repeat_options(ledger=recording.ledger, config=config)
        print_decisions(decided_items, single=inputs.single, can_approve=gate.shows_content, options=options)
    complain_once([*(item.error for item, _ in decided_items if item.error is not None), *recorder.troubles])
    # A content that was let through only to be observed, and could not be recorded, is no success: 3 and not 0.
    return find_status([decision for _, decision in decided_items]) or (3 if recorder.troubles else 0)


def find_status(decisions: Sequence[Decision | None]) -> int:
    """Find the exit status for several inputs: unreadable (``None``) beats failed beats held back beats allowed."""
    if not decisions or any(decision is None for decision in decisions):
        return USAGE
    blocked = [decision for decision in decisions if decision is not None and not decision.allowed]
    if any(_has_failed(decision) for decision in blocked):
        return FAILED
    return UNDECIDED if blocked else DONE


def _has_failed(decision: Decision) -> bool:
    """Return whether a content is blocked because it failed or a person denied it, and not because nobody decided."""
    if decision.pending:
        return False
    return decision.decided_by == "human" or (decision.result is not None and decision.result.outcome == "failed")


async def _check_all(
    gate: Gate, inputs: Inputs, texts: dict[str, Any], concurrency: int, recorder: CommandRecorder, *, wait: bool
) -> list[DecidedItem]:
    """Put every input through a gate, and return each with its decision, in order.

    ``texts`` are the task, the context and the reference of all of them. With ``wait``, decisions that wait for people
    are replaced by the final ones.
    """

    async def work(item: InputItem) -> DecidedItem:
        try:
            return await _check_one(gate, item, texts)
        finally:
            progress.step()

    try:
        check_gate_ready(gate)
        await recorder.prepare()
        with show_progress("checked", inputs.total) as progress:
            decided_items = await map_concurrently(inputs.items, work, concurrency, give_up=_leave_out)
        if wait:
            await _await_people(gate, decided_items)
    finally:
        await close_gate(gate)
        await recorder.aclose()
    return decided_items


def _leave_out(item: InputItem) -> DecidedItem:
    """Return an item for which the gate gave no decision, with an error that says so."""
    return replace(item, error=item.error or f"{item.label}: the gate ended without a decision; run it again"), None


async def _await_people(gate: Gate, decided_items: list[DecidedItem]) -> None:
    """Wait until people have decided about each pending decision, and replace it in the list by the final one."""

    async def wait_for(index: int, item: InputItem, pending: Decision) -> None:
        decided_items[index] = item, await gate.resume(pending)

    if not gate.shows_content and any(decision is not None and decision.pending for _, decision in decided_items):
        note(_NOBODY_CAN_APPROVE)
    # People are waited for only now, when all inputs are checked: else the first inputs that wait for people would take
    # all places of ``concurrency``, and nobody would be asked about the others.
    async with asyncio.TaskGroup() as group:
        for index, (item, decision) in enumerate(decided_items):
            if decision is not None and decision.pending:
                note(f"{item.label} waits for approval {decision.approval_id}")
                group.create_task(wait_for(index, item, decision))


async def _check_one(gate: Gate, item: InputItem, texts: dict[str, Any]) -> DecidedItem:
    """Put one input through a gate; a case's own task, context and reference come before those of the command."""
    if item.error is not None:
        return item, None
    if not isinstance(item.content, Case):
        return item, await gate.check(item.content, **texts)
    return item, await gate.check(item.content.content, **merge_case_data(item.content, texts))


def _print_json(decided_items: Sequence[DecidedItem], *, single: bool) -> None:
    """Write the decisions as JSON; a ``single`` one by itself, and nothing where its input could not be read."""
    entries = [
        name_item(item) | (decision.to_dict() if decision is not None else {"error": item.error})
        for item, decision in decided_items
    ]
    if not single:
        write_json({"schema": "adjudge/decisions/1", "decisions": entries})
        return
    _, decision = decided_items[0]
    if decision is not None:
        write_json(entries[0])


def print_decisions(
    decided_items: Sequence[DecidedItem], *, single: bool, can_approve: bool = True, options: str = ""
) -> None:
    """Print a line for each decision, and the next commands if some of them wait for a person.

    ``can_approve=False`` means that the gate keeps no content with its requests, so that nobody can read what they
    would approve. ``options`` are written at the end of the commands.
    """
    for item, decision in decided_items:
        if decision is not None:
            line = " ".join(decision.explain().split())  # on one line, whatever a judge or a rule wrote
            line += f"; approval {decision.approval_id}" if decision.pending else ""
            print_line(line if single else f"{item.label}: {line}")
    waiting = [
        (item.name, decision.approval_id)
        for item, decision in decided_items
        if decision is not None and decision.pending
    ]
    if waiting:
        name, approval_id = waiting[0] if len(waiting) == 1 else ("-", "ID")  # "-" and "ID": for the user to fill in
        _print_next_commands(name, approval_id, can_approve=can_approve, options=options)


_NOBODY_CAN_APPROVE = (
    "nobody can approve it, because the gate keeps no content for them to read: write show_content = true under "
    "[approvals], and check again"
)


def _print_next_commands(name: str, ident: str | None, *, can_approve: bool, options: str) -> None:
    """Print the commands that show, decide and resume a request; the user fills in WHY, and DIGEST, which show prints.

    ``name`` is the file of the content, or ``-`` if the user has to fill that in too.
    """
    file = "FILE" if name == "-" else shlex.quote(name)
    if not can_approve:
        note(_NOBODY_CAN_APPROVE)
        return
    note(f"to look:   adjudge approvals show {ident}{options}")
    note(f"to decide: adjudge approvals approve {ident} --reason WHY --seen DIGEST{options}   (or deny)")
    note(f"to resume: adjudge gate resume {ident} {file}{options}")


def _list_fields(gate: Gate) -> tuple[Any, ...]:
    """List the settings of a gate as cells of a table, its rules in one cell."""
    settings = _describe(gate)
    return (", ".join(settings.pop("rules")) or None, *settings.values())


def _describe(gate: Gate) -> dict[str, Any]:
    """Return the settings of a gate as plain data; their order is that of the table's columns."""
    return {
        "rules": [rule.name for rule in gate.rules],
        "rubric": gate.rubric.name if gate.rubric is not None else None,
        "judge": gate.judge.name if gate.judge is not None else None,
        "on_rule": gate.policy.on_rule,
        "on_failed": gate.on_failed,
        "on_undecided": gate.on_undecided,
        "on_tampering": gate.on_tampering,
        "mode": gate.mode,
        "sample": gate.sample,
    }


def resume(
    ident: Annotated[str, typer.Argument(metavar="ID", hidden=True)],
    material: option.MaterialOptions,
    recording: Annotated[option.LedgerOptions, Only("ledger")],
    path: Annotated[str | None, typer.Argument(metavar="PATH", hidden=True)] = None,
    wait: option.Wait = False,
    as_json: option.AsJson = False,
    config: option.ConfigFile = None,
) -> int:
    """Finish the decision about content that a gate held back, after a person has decided.

    $ adjudge gate resume 3f9a answer.txt

    ID is the approval's id, or at least 4 characters of its beginning or end. PATH is the content you are about
    to use, --task, --context and --reference what it is for. If one of them is not exactly what was held back, nothing
    is decided. A case of a data set is compared as a whole. The decision is recorded.

    An approval of an HTTP request can be used once: after this command, its client can no longer resume it.

    Exit status: 0 allowed, 1 denied, 2 wrong usage, or PATH is something else, 3 not decided yet, or not recorded.
    """
    configuration = read_config(config)
    recorder = CommandRecorder(open_ledger(configuration, recording.ledger))
    texts = read_material(material)
    decision = asyncio.run(_resume(ident, path, texts, configuration, recorder, wait=wait))
    if as_json:
        write_json(decision.to_dict())
    else:
        options = repeat_options(ledger=recording.ledger, config=config)
        print_decisions([(InputItem(name=path or "-"), decision)], single=True, options=options)
    complain_once(recorder.troubles)
    return find_status([decision])


async def _resume(
    part: str, path: str | None, texts: dict[str, str], config: Config, recorder: CommandRecorder, *, wait: bool
) -> Decision:
    """Resume the decision that waits for an approval, of whose id ``part`` is the beginning or the end.

    ``path`` is the content that is about to be used, and ``texts`` are its task, context and reference. Returns the
    pending decision if people have not decided yet and ``wait`` is false. Raises ``UsageError`` where nothing can be
    resumed: the stored decision was deleted, no gate's decision waits for the approval, or the gate asks nobody now.
    """
    ledger = recorder.ledger
    assert ledger is not None  # noqa: S101 - for the type checker; the caller opened it
    async with AsyncExitStack() as stack:
        stack.push_async_callback(recorder.aclose)
        approvals = await stack.enter_async_context(open_approvals(config, ledger))
        approval = await approvals.get(await approvals.find(part))
        stored = await approvals.pending(approval.id)
        if stored is None and not approval.message:
            raise UsageError(
                f"what approval {approval.id} is about was deleted, so nothing can be resumed; put the content through "
                "the gate again"
            )
        if stored is None:
            raise UsageError(
                f"no gate's decision in this ledger waits for approval {approval.id}; "
                f"`adjudge approvals show {approval.id}` shows what does"
            )
        pending = stored.decision
        _check_held_back(path, texts, pending)
        if approval.status == "open" and not wait:
            return pending
        gate = open_gate(pending.gate, config, recorder=recorder, approvals=approvals)
        stack.push_async_callback(close_gate, gate)
        if gate.approvals is None:
            raise UsageError(
                f"gate {pending.gate!r} of {config.path} no longer asks anybody, so there is nothing to resume"
            )
        if wait:
            note(f"waiting for approval {approval.id}")
        return await gate.resume(pending)


def _check_held_back(path: str | None, texts: dict[str, str], pending: Decision) -> None:
    """Raise ``UsageError`` unless the content at ``path``, and the texts, are what the pending decision holds back.

    Only that is what a person was asked about. Without a path, the texts alone are compared.
    """
    if path is None:
        for name, text in texts.items():
            if digest_text(text) != pending.basis.get(name):
                raise UsageError(f"--{name} is not what was held back with; put the content through the gate again")
        return
    for item in list_inputs([path]).items:
        if item.error is not None:
            raise UsageError(item.error)
        if _was_held_back(item.content, texts, pending):
            return
    raise UsageError(f"{path} is not what was held back, which had another digest; put it through the gate again")


def _was_held_back(content: object, texts: dict[str, str], pending: Decision) -> bool:
    """Return whether a pending decision holds back this content, with the same task, context and reference.

    ``texts`` are those of the command. A case is compared as a whole: its own task, context and reference come before
    the texts of the command, and one that is absent has to have been absent.
    """
    parts: dict[str, object] = dict(texts)
    judged_content = content
    if isinstance(content, Case):
        case_parts = {name: getattr(content, name) for name in CONTEXT}
        parts = dict.fromkeys(CONTEXT) | texts | {name: part for name, part in case_parts.items() if part is not None}
        judged_content = content.content
    if digest_text(content_text(judged_content)) != pending.subject:
        return False
    for name, part in parts.items():
        digest = None if part is None else digest_text(content_text(part))
        if digest != pending.basis.get(name):
            return False
    return True


gate_app = make_group(
    "gate",
    "List gates, and put contents through one.",
    {"list": list_gates, "check": check_gate, "resume": resume},
)
