"""``adjudge approvals``: requests to people, and their decisions, each as the operating system's user.

Whose vote counts is decided in ``guards/approval/votes.py`` (``find_refusal``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from adjudge.cli import options as option
from adjudge.cli.command_groups import make_group
from adjudge.cli.commands.ledger import LedgerPlace, find_user, name_option
from adjudge.cli.exit_status import DONE, FAILED, UNDECIDED
from adjudge.cli.ledger_lines import describe_entry
from adjudge.cli.output import add_row, draws, make_table, note, print_line, show_drawing, write_json, write_screen
from adjudge.cli.spelling import repeat_options
from adjudge.config.file import read_config
from adjudge.config.gates import is_secret_missing, open_approvals
from adjudge.config.ledger import open_ledger
from adjudge.content import digest_text
from adjudge.errors import DecisionRefused, LedgerError, UsageError
from adjudge.formats.blanks import TextPart, describe_blanks, list_blanks, split_blanks
from adjudge.formats.display import describe_models, describe_outcome, name_mark
from adjudge.formats.numbers import format_apart, format_score
from adjudge.formats.text import clean
from adjudge.formats.text import show as quote
from adjudge.guards.approval.completeness import digest_shown
from adjudge.guards.approval.pending_decisions import list_judged_with
from adjudge.guards.approval.title import find_action, make_title
from adjudge.guards.approval.vote_casting import cast_vote
from adjudge.guards.approval_digest import CONTEXT
from adjudge.guards.tool_guard.effects import list_effects
from adjudge.guards.tool_guard.history import read_call_history

if TYPE_CHECKING:
    from adjudge.guards.approval.approval import Approval
    from adjudge.guards.approval.approvals import Approvals
    from adjudge.guards.approval.completeness import Gap
    from adjudge.guards.approval.pending_decisions import PendingDecision
    from adjudge.guards.tool_guard.history import CallHistory
    from adjudge.ledger.entry import Entry
    from adjudge.result import JudgeResult


_SHORT = 12
"""Characters of an id's end: its random part, with which it can be named."""

_LONGEST = 100


def draw_approvals(approvals: Sequence[Approval]) -> None:
    """A table of requests; where no person looks, a line each, with a tab between its fields."""
    now = datetime.now(UTC)
    several = len({approval.status for approval in approvals}) > 1 or approvals[0].status != "open"
    columns = ("id", *["status"] * several, "what", "tool or gate", "who may decide", "asked", "expires in", "score")
    if not draws():
        print_line("\t".join(columns))
        for approval in approvals:
            print_line("\t".join(_list_cells(approval, approval.id, now, several=several)))
        return
    table = make_table("", columns, whole=1)
    for approval in approvals:
        add_row(table, *_list_cells(approval, approval.id[-_SHORT:], now, several=several))
    show_drawing(table)
    note("adjudge approvals show ID shows one; the end of an id, as here, will do")


def _list_cells(approval: Approval, ident: str, now: datetime, *, several: bool) -> list[str]:
    """List the fields of a request, each in one line without tabs."""
    score = "-" if approval.score is None else format_score(approval.score)
    asked = f"{_format_seconds((now - approval.created_at).total_seconds())} ago"
    texts = [make_title(approval), find_action(approval), _describe_voters(approval), asked]
    cells = [ident, *[approval.status] * several, *texts, _format_time_left(approval, now), score]
    return [" ".join(clean(cell, keep_lines=False).split()) for cell in cells]


def print_approval(
    approval: Approval,
    history: Sequence[Entry],
    pending: PendingDecision | None,
    *,
    gaps: Sequence[Gap] = (),
    place: LedgerPlace | None = None,
    call: CallHistory | None = None,
    page: str = "",
) -> None:
    """Everything that is needed to decide a request, and what has been said to it.

    ``page`` is the address of its page, for a request that the command does not approve.
    """
    for name, text in (*_list_facts(approval), *_list_use(pending)):
        if name == "message" and describe_blanks(text):
            _print_change(name, "as it was given")
            _print_exact(text)
        else:
            _print_change(name, text)
    if approval.content is None:
        _print_change("content", "not kept here; its digest is the subject")
    else:
        same = digest_text(approval.content) == approval.subject
        _print_change("content", "as it was judged" if same else "not as it was judged: redacted, or changed since")
        _print_exact(approval.content)
    for effect in list_effects(approval.metadata):
        _print_change("effect", f"{effect} (declared for this tool by whoever runs the guard)")
    _print_judged_with(approval, pending)
    for name, text in () if call is None else _list_call(call):
        _print_change(name, text)
    for entry in history:
        _print_change(f"entry {entry.seq}", f"{_format_time(entry.at)}  {entry.kind}: {describe_entry(entry)}")
    if approval.status == "open":
        for name, text in _list_ways(approval, pending, gaps, place, page):
            _print_change(name, text)


def _list_ways(
    approval: Approval, pending: PendingDecision | None, gaps: Sequence[Gap], place: LedgerPlace | None, page: str
) -> Iterator[tuple[str, str]]:
    """List how this request can be decided, each way as it can be typed or opened."""
    decide = f"{approval.id} --reason WHY{_repeat_place(place)}"
    harness = _find_harness(pending)
    for gap in gaps:
        yield "incomplete", f"it cannot be approved: {gap.what} {gap.remedy.removesuffix('.')}"
    if not gaps and harness is None:
        yield "to approve", f"adjudge approvals approve {decide} --seen {digest_shown(approval)[:_SEEN]}"
    elif not gaps:
        yield "to approve", f"{page} (run adjudge serve); {quote(harness)} asked, and its agent could run a command"
    yield "to deny", f"adjudge approvals deny {decide}"


def _print_judged_with(approval: Approval, pending: PendingDecision | None) -> None:
    """Task, context and reference, which were judged too; and which of them the gate did not get."""
    judged_with = None if pending is None else list_judged_with(pending.decision.basis)
    for name in CONTEXT:
        if name in approval.texts:
            text = approval.texts[name]
            same = judged_with is None or judged_with.get(name) == digest_text(text)
            _print_change(name, "as it was handed to the judge" if same else "redacted, as the judge was shown it")
            _print_exact(text)
        elif judged_with is not None:
            _print_change(name, "judged with, and not kept here" if name in judged_with else "the gate got none")


def _list_call(call: CallHistory) -> Iterator[tuple[str, str]]:
    """List what the agent's run did before this call, and last of all what the agent says about it."""
    yield "run", call.run_id
    yield "hour before", f"other requests for approval: {call.requests}; calls allowed: {len(call.allowed)}"
    for done in call.allowed:
        yield "allowed", f"{_format_time(done.at)}  {done.title}, by {done.decided_by}"
    if call.before:
        yield "before", "; ".join(f"{name} {text}" for name, text in call.before.items())
    for name, text in call.remarks.items():
        yield "agent says", f"{name}: {text}"


_MOST_PLACES = 12


def _print_exact(text: str) -> None:
    """A text that is decided upon, to the last blank: what would not be seen is marked, and its places are named."""
    for line in text.split("\n"):
        write_screen("".join(("  | ", *map(_draw_part, split_blanks(line)), "\n")))
    places = [f"{_name_part(part)} at {line}:{column}" for line, column, part in list_blanks(text)]
    if places:
        more = len(places) - _MOST_PLACES
        shown = "; ".join(places[:_MOST_PLACES]) + (f"; and {more:,} more" if more > 0 else "")
        _print_change("white space", f"{shown} (line:column)")


def _draw_part(part: TextPart) -> str:
    text = clean(part.text)
    if part.kind == "blanks":
        return f"\x1b[4m{text}\x1b[24m" if draws() else text
    if part.kind == "code":
        return f"[{part.mark}]"
    return f"→{text}" if part.kind == "tab" else text


def _name_part(part: TextPart) -> str:
    if part.kind == "blanks":
        return "1 blank" if len(part.text) == 1 else f"{len(part.text):,} blanks"
    return "a tab (→)" if part.kind == "tab" else part.mark


def _list_facts(approval: Approval) -> Iterator[tuple[str, str]]:
    """Yield the facts about a request, each with its name."""
    yield "approval", approval.id
    yield "state", approval.explain()
    yield "may decide", _describe_voters(approval)
    yield "asked", _format_time(approval.created_at)
    yield "expires", _describe_expiry(approval)
    more = {"gate": approval.gate, "execution": approval.execution, "message": approval.message}
    yield from ((name, text) for name, text in more.items() if text)
    if approval.audit:
        yield "audit", "approve: it was right to let this through; deny: it should have been stopped"
    else:
        yield "result", f"{approval.reason or approval.outcome} [by {approval.judge}, {approval.result_id}]"
    yield "subject", approval.subject
    if approval.result is not None:
        yield from _list_judgement(approval.result)
    if approval.first_said:
        yield "judge first", approval.first_said


def _list_use(pending: PendingDecision | None) -> Iterator[tuple[str, str]]:
    """Yield, each with a name, the HTTP request that is held back, and when the approval was used."""
    if pending is None:
        return
    about = pending.decision.metadata
    if _is_over_http(pending):
        yield "held back", f"a request over HTTP: {about.get('method', '')} {about.get('path', '')}"
    if pending.used_at is not None:
        yield "used", f"{_format_time(pending.used_at)}, entry {pending.used_seq}"


def _is_over_http(pending: PendingDecision) -> bool:
    return pending.decision.basis.get("http") is not None


def _repeat_place(place: LedgerPlace | None) -> str:
    """The options that named the ledger and the configuration, so that a proposed command can be typed as it is."""
    return "" if place is None else repeat_options(ledger=place.ledger, config=place.config)


def _list_judgement(result: JudgeResult) -> Iterator[tuple[str, str]]:
    """Yield the parts of a judge's result, each with its name."""
    for criterion in result.criteria:
        score, needed = format_apart(criterion.score, criterion.threshold)
        score = "-" if criterion.score is None else score
        needs = "" if criterion.threshold is None else f" (needs {needed})"
        reason = f": {criterion.reasoning}" if criterion.reasoning else ""
        yield "criterion", f"{name_mark(criterion, '-')}  {score}{needs}  {criterion.name}{reason}"
        yield from (("  quoted", text) for text in criterion.evidence)
    for rule in result.rule_results:
        word = "pass" if rule.passed else rule.severity
        yield "rule", f"{word}  {rule.name}" + (f": {rule.message}" if rule.message and not rule.passed else "")
    if result.reasoning:
        yield "reasoning", result.reasoning
    for text in result.suggestions:
        yield "suggestion", text
    for seat in getattr(result, "results", ()):
        reason = seat.detail or seat.reasoning
        yield "seat", f"{seat.judge}: {describe_outcome(seat)}" + (f": {reason}" if reason else "")
    yield from (("warning", text) for text in describe_models(result))


def _print_change(name: str, text: str) -> None:
    print_line(f"{clean(name, keep_lines=False):<13}{clean(text, keep_lines=False)}")


def _describe_voters(approval: Approval) -> str:
    names = ", ".join(approval.approvers)
    return names if len(approval.approvers) == 1 else f"{approval.required} of {names}"


def _describe_expiry(approval: Approval) -> str:
    if approval.expires_at is None:
        return "never"
    then = "approved by policy" if approval.on_expiry == "approve" else "denied"
    left = f", in {_format_time_left(approval, datetime.now(UTC))}" if approval.status == "open" else ""
    return f"{_format_time(approval.expires_at)}{left}; then it is {then}"


def _format_time_left(approval: Approval, now: datetime) -> str:
    if approval.status != "open":
        return "-"
    if approval.expires_at is None:
        return "never"
    return _format_seconds((approval.expires_at - now).total_seconds())


def _format_seconds(seconds: float) -> str:
    seconds = max(0.0, seconds)
    for unit, name in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * unit:
            return f"{seconds // unit:.0f} {name}"
    return f"{seconds:.0f} s"


def _format_time(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


T = TypeVar("T")

_MOST_HOURS = 8_760

_SEEN = 12
"""Characters of a digest that `show` prints, and that --seen needs at least."""

_STATUSES = ("open", "approved", "denied", "all")


Ident = Annotated[str, typer.Argument(metavar="ID", hidden=True)]

Seen = Annotated[str, name_option("seen", "What you have read: the digest that `adjudge approvals show` prints.")]

Reason = Annotated[str, name_option("reason", "Why; it explains the decision later.")]


def list_approvals(
    status: Annotated[str, name_option("status", "Only open, approved or denied; or all.")] = "open",
    approver: Annotated[str | None, name_option("approver", "Only what this person may decide.")] = None,
    audits: Annotated[
        bool, typer.Option("--audits", help="Audits in their place: of what went through, and nothing waits for them.")
    ] = False,
    *,
    place: LedgerPlace,
    as_json: option.AsJson = False,
) -> None:
    """List requests for approval, oldest first.

    $ adjudge approvals list

    Expired requests are closed first.
    """
    if status not in _STATUSES:
        raise UsageError(f"--status is one of {', '.join(_STATUSES)}, got {quote(status)}")
    only_status: Any = None if status == "all" else status
    approvals = _run_with_approvals(
        place, lambda store: store.list(status=only_status, approver=approver, audits=audits)
    )
    if as_json:
        write_json({"schema": "adjudge/approvals/1", "approvals": [approval.to_dict() for approval in approvals]})
    elif approvals:
        draw_approvals(approvals)
    else:
        whose = "" if approver is None else f", for {quote(approver)} to decide"
        which = "" if status == "all" else f" that are {status}"
        what = "audits" if audits else "requests"
        note(f"no {what}{which}{whose}" + ("; --status all shows every one" if which else ""))


def show_approval(
    ident: Ident,
    *,
    place: LedgerPlace,
    as_json: option.AsJson = False,
) -> None:
    """Show a request: the question, the content it is about, and the votes.

    $ adjudge approvals show 3f9a

    ID is the approval's id, or at least 4 characters of its beginning or end.
    """

    async def find(
        approvals: Approvals,
    ) -> tuple[Approval, tuple[Entry, ...], PendingDecision | None, tuple[Gap, ...], CallHistory | None]:
        approval = await approvals.get(await approvals.find(ident))
        call = await read_call_history(approvals.ledger, approval)
        gaps = await approvals.find_gaps(approval.id)
        return approval, await approvals.history(approval.id), await approvals.pending(approval.id), gaps, call

    approval, history, pending, gaps, call = _run_with_approvals(place, find)
    if as_json:
        entries = [entry.to_dict() for entry in history]
        about = {"approval": approval.to_dict(), "shown": digest_shown(approval), "history": entries}
        write_json({"schema": "adjudge/approval-history/1", **about})
    else:
        page = "" if _find_harness(pending) is None else _find_page(place, approval)
        print_approval(approval, history, pending, gaps=gaps, place=place, call=call, page=page)


def _find_page(place: LedgerPlace, approval: Approval) -> str:
    """Find the address of a request's page on the server of this configuration."""
    from adjudge.config.server import read_server

    return f"{read_server(read_config(place.config)).base_url}/approvals/{approval.id}"


def approve(
    ident: Ident,
    reason: Reason,
    seen: Seen = "",
    *,
    place: LedgerPlace,
    as_json: option.AsJson = False,
) -> None:
    """Approve a request, as this system's user.

    $ adjudge approvals approve 3f9a --reason "Read it; it is right."

    ID is the approval's id, or at least 4 characters of its beginning or end. Look at the request with `adjudge
    approvals show ID` first: it prints the --seen to give here, and another one is refused. Only its approvers may
    decide, each once. Refused attempts are recorded too.

    Exit status: 0 recorded, 2 refused, or there is no such request.
    """
    _decide(ident, reason, place, approved=True, seen=seen, as_json=as_json)


def deny(
    ident: Ident,
    reason: Reason,
    seen: Seen = "",
    answer: Annotated[str, name_option("answer", "A line for the agent, whose call it is.")] = "",
    *,
    place: LedgerPlace,
    as_json: option.AsJson = False,
) -> None:
    """Deny a request, as this system's user. One denial ends the request.

    $ adjudge approvals deny 3f9a --reason "It names a customer."

    ID is the approval's id, or at least 4 characters of its beginning or end. Only its approvers may decide, each
    once. Refused attempts are recorded too.

    Exit status: 0 recorded, 2 refused, or there is no such request.
    """
    _decide(ident, reason, place, approved=False, seen=seen, as_json=as_json, answer=answer)


def wait(
    ident: Ident,
    timeout: Annotated[
        float | None, typer.Option("--timeout", metavar="SEC", help="Seconds to wait.  [default: until it ends]")
    ] = None,
    *,
    place: LedgerPlace,
    as_json: option.AsJson = False,
) -> int:
    """Wait until a request is decided or expires.

    $ adjudge approvals wait 3f9a

    ID is the approval's id, or at least 4 characters of its beginning or end.

    Exit status: 0 approved, 1 denied, 2 there is no such request, 3 not decided in time, or not confirmed by the
    ledger.
    """
    if timeout is not None and not 0 <= timeout < float("inf"):
        raise UsageError(f"--timeout is a number of seconds from 0 on, got {timeout}")

    async def work(approvals: Approvals) -> tuple[Approval, bool | None, PendingDecision | None]:
        """Return the request, the answer (``None`` where none came in time), and what waits for the request."""
        approval_id = await approvals.find(ident)
        # Not the table's word: what the ledger does not confirm is nothing to go on with.
        answer = None
        if timeout != 0 or (await approvals.get(approval_id)).status != "open":
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout or None):
                    answer = await approvals.wait(approval_id)
        approval = await approvals.get(approval_id)
        approved = answer.approved if answer is not None else None
        return approval, approved, await _find_pending(approvals, approval)

    approval, approved, pending = _run_with_approvals(place, work)
    _print_approval(approval, pending, place, as_json=as_json)
    return UNDECIDED if approved is None else DONE if approved else FAILED


def link(
    ident: Ident,
    hours: Annotated[
        float | None,
        typer.Option("--hours", metavar="H", help="How long it can be opened.  [default: until the request expires]"),
    ] = None,
    *,
    place: LedgerPlace,
) -> None:
    """Print a signed link to the page of a request, for a mail or a message.

    $ adjudge approvals link 3f9a

    ID is the approval's id, or at least 4 characters of its beginning or end. To decide, a person has to open the link
    and sign in on the server: the link itself decides nothing. A request that never expires has a link for 7 days.
    """
    from adjudge.config.server import read_server
    from adjudge.server.links import find_end, find_page, make_link

    if hours is not None and not 0 < hours <= _MOST_HOURS:
        raise UsageError(f"--hours is a number above 0 and up to {_MOST_HOURS:,}, got {hours:g}")
    settings = read_server(read_config(place.config))

    async def work(approvals: Approvals) -> str:
        approval = await approvals.get(await approvals.find(ident))
        now = datetime.now(UTC)
        until = find_end(approval, now) if hours is None else now + timedelta(hours=hours)
        return await make_link(approvals.ledger, settings.base_url, approval.id, until=until, page=find_page(approval))

    print_line(_run_with_approvals(place, work))


def export(
    file: Annotated[Path, typer.Argument(metavar="FILE", hidden=True)],
    *,
    place: LedgerPlace,
) -> None:
    """Write every request in which people overruled the judge to FILE, as a labelled data set.

    $ adjudge approvals export labels.jsonl

    FILE must not exist. A row has its content if the request stored it.
    """
    count = _run_with_approvals(place, lambda approvals: approvals.export_labels(file))
    print_line(f"{count} override{'s' * (count != 1)} written to {file}")


def forget(
    ident: Ident,
    *,
    place: LedgerPlace,
    as_json: option.AsJson = False,
) -> None:
    """Delete the texts of a closed request: message, content, and the judges' words.

    $ adjudge approvals forget 3f9a

    ID is the approval's id, or at least 4 characters of its beginning or end. The ledger's entries stay; use
    `adjudge ledger erase` for those.
    """

    async def work(approvals: Approvals) -> Approval:
        return await approvals.forget(await approvals.find(ident))

    approval = _run_with_approvals(place, work)
    if as_json:
        write_json(approval.to_dict())
    else:
        print_line(f"approval {approval.id}: its texts are deleted; the ledger's entries stay")


def _decide(
    ident: str,
    reason: str,
    place: LedgerPlace,
    *,
    approved: bool,
    seen: str,
    as_json: bool,
    answer: str = "",
) -> None:
    """Cast a vote in the name of the account that runs the command, then print the request.

    Raises ``UsageError`` for a reason that is empty, and ``DecisionRefused`` where the vote does not count.
    """
    if not reason.strip():
        raise UsageError("--reason is empty; say why, so that an auditor can read it in a year")
    by = find_user()

    async def work(approvals: Approvals) -> tuple[Approval, PendingDecision | None]:
        """Return the request after the vote, and what waits for it.

        A refusal for want of authority is raised again with the names of those who may decide.
        """
        approval_id = await approvals.find(ident)
        if approved:
            await _check_asked_elsewhere(approvals, approval_id)
        try:
            decided = await cast_vote(
                approvals,
                approval_id,
                by,
                approved=approved,
                reason=reason,
                seen=_complete_digest(seen, await approvals.get(approval_id), by, approved=approved),
                answer=answer,
                require_complete=True,
            )
        except DecisionRefused as error:
            if error.because != "unauthorised":
                raise
            who = ", ".join((await approvals.get(approval_id)).approvers)
            explanation = f"{who} may decide this, and the command decides as the account it runs under"
            raise DecisionRefused(f"{explanation}: ", error, because=error.because) from None
        return decided, await _find_pending(approvals, decided)

    approval, pending = _run_with_approvals(place, work, decides=True)
    if not as_json:
        word = "approves" if approved else "denies"
        print_line(f"approval {approval.id}: {by} {word}, entry {approval.votes[-1].seq}")
    _print_approval(approval, pending, place, as_json=as_json)


async def _check_asked_elsewhere(approvals: Approvals, approval_id: str) -> None:
    """Raise ``UsageError`` for what a hook on this machine asked: the agent that it is about could approve it here."""
    harness = _find_harness(await approvals.pending(approval_id))
    if harness is not None:
        raise UsageError(
            f"{quote(harness)} asked for approval {approval_id} for an agent, which could run this command; approve it "
            "on the page (adjudge serve), or deny it here; command = true under [approvals] of the hook's "
            "configuration permits it for requests that are made later"
        )


def _find_harness(pending: PendingDecision | None) -> str | None:
    """Find the harness that asked for an agent on this machine, where it must not be approved by a command."""
    call = None if pending is None else pending.decision.metadata.get("call")
    harness = call.get("harness") if isinstance(call, Mapping) else None
    return None if harness is None else str(harness)


def _complete_digest(seen: str, approval: Approval, by: str, *, approved: bool) -> str:
    """The whole digest of what a request shows where ``seen`` is its beginning; else ``seen``, which is refused."""
    digest = digest_shown(approval)
    if seen and len(seen) < _SEEN:
        raise UsageError(f"--seen has at least {_SEEN} characters, got {quote(seen)}; copy what `show` prints")
    if approved and not seen and approval.status == "open" and by in approval.approvers:
        raise UsageError(f"--seen is missing; read the request first: adjudge approvals show {approval.id} prints it")
    return digest if seen and digest.startswith(seen) else seen


async def _find_pending(approvals: Approvals, approval: Approval) -> PendingDecision | None:
    """Find what waits for the approval; ``None`` also where the ledger does not confirm it; the vote is recorded."""
    with suppress(LedgerError):
        return await approvals.pending(approval.id)
    return None


def _print_approval(approval: Approval, pending: PendingDecision | None, place: LedgerPlace, *, as_json: bool) -> None:
    """Print a request with what can be done about it."""
    if as_json:
        write_json(approval.to_dict())
        return
    print_line(f"approval {approval.id}: {approval.explain()}")
    if approval.gate is None or approval.audit or approval.status == "open":
        return  # nothing waits for it
    # A gate that was made in Python cannot be resumed by a command, which does not have it.
    is_configured = approval.gate in read_config(place.config).gates
    if approval.status == "approved":
        note(_explain_resuming(approval, pending, place, is_configured=is_configured))
    elif approval.status == "denied":
        resume = f"adjudge gate resume {approval.id}{_repeat_place(place)}"
        records = f"; {resume} records that" if is_configured else ""
        note(f"what the gate held back stays blocked{records}")


def _explain_resuming(
    approval: Approval, pending: PendingDecision | None, place: LedgerPlace, *, is_configured: bool
) -> str:
    """Explain how to go on after an approval, by what asked for it: a request over HTTP, the call of an agent, a gate.

    A gate that is not in the configuration was made in a program, so only that program can resume it.
    """
    # `gate resume` would use up the approval of a request, and its client be refused.
    if pending is not None and _is_over_http(pending):
        return f"to resume: the client repeats its request with the header Adjudge-Approval: {approval.id}"
    if pending is not None and isinstance(pending.decision.metadata.get("call"), Mapping):
        return "to resume: the agent makes the same call again, if it does not wait for this already"
    if not is_configured:
        return "to resume, unless your program waits for this already: await gate.resume(decision, content=...)"
    file = "FILE" + _repeat_place(place)
    return f"to resume: adjudge gate resume {approval.id} {file}   (what the gate held back)"


def _run_with_approvals(place: LedgerPlace, work: Callable[[Approvals], Awaitable[T]], *, decides: bool = False) -> T:
    """Return what some work makes of the approvals beside the ledger that was named."""
    configuration = read_config(place.config)
    if decides and is_secret_missing(configuration):
        name = configuration.approvals["webhook"]["secret_env"]
        note(f"no webhook is sent from here: {name} is not set")

    async def run() -> T:
        # With the key of [ledger] even to look: what has expired is closed by that, and every entry is signed.
        async with (
            open_ledger(configuration, place.ledger, key=place.key) as ledger,
            open_approvals(configuration, ledger) as approvals,
        ):
            return await work(approvals)

    return asyncio.run(run())


approvals_app = make_group(
    "approvals",
    "List requests for approval, and decide them.",
    {
        "list": list_approvals,
        "show": show_approval,
        "approve": approve,
        "deny": deny,
        "wait": wait,
        "link": link,
        "export": export,
        "forget": forget,
    },
)
