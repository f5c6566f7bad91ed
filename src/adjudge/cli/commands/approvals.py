"""``adjudge approvals``: list and show requests for approval, and decide them as the operating system's user.

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
from adjudge.cli.error_messages import repeat_options
from adjudge.cli.exit_status import DONE, FAILED, UNDECIDED
from adjudge.cli.ledger_lines import describe_entry
from adjudge.cli.output import (
    add_row,
    can_draw_boxes,
    make_table,
    note,
    print_line,
    show_drawing,
    write_json,
    write_screen,
)
from adjudge.config.file import read_config
from adjudge.config.gates import is_secret_missing, open_approvals
from adjudge.config.ledger import open_ledger
from adjudge.content import digest_text
from adjudge.errors import DecisionRefused, LedgerError, UsageError
from adjudge.formats.blanks import TextPart, describe_blanks, list_blanks, split_blanks
from adjudge.formats.display import describe_models, describe_outcome, describe_pass_mark
from adjudge.formats.numbers import format_distinct, format_score
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


_ID_END = 12
"""Characters of an id's end that a table shows: its random part, by which a command can name it."""


def draw_approvals(approvals: Sequence[Approval]) -> None:
    """Print requests for approval as a table on a terminal, and elsewhere as lines of fields with tabs.

    There is a column for the status unless all of them are open.
    """
    now = datetime.now(UTC)
    shows_status = len({approval.status for approval in approvals}) > 1 or approvals[0].status != "open"
    status_column = ["status"] if shows_status else []
    columns = ("id", *status_column, "what", "tool or gate", "who may decide", "asked", "expires in", "score")
    if not can_draw_boxes():
        print_line("\t".join(columns))
        for approval in approvals:
            print_line("\t".join(_format_cells(approval, approval.id, now, shows_status=shows_status)))
        return
    table = make_table("", columns, whole=1)
    for approval in approvals:
        add_row(table, *_format_cells(approval, approval.id[-_ID_END:], now, shows_status=shows_status))
    show_drawing(table)
    note("adjudge approvals show ID shows one; the end of an id, as here, will do")


def _format_cells(approval: Approval, shown_id: str, now: datetime, *, shows_status: bool) -> list[str]:
    """Format a request as the cells of a row, each on one line and without tabs."""
    score = "-" if approval.score is None else format_score(approval.score)
    asked = f"{_format_seconds((now - approval.created_at).total_seconds())} ago"
    texts = [make_title(approval), find_action(approval), _describe_voters(approval), asked]
    status_cell = [approval.status] if shows_status else []
    cells = [shown_id, *status_cell, *texts, _format_time_left(approval, now), score]
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
    """Print everything that a person needs to decide a request, and the entries of the ledger about it so far.

    ``pending`` is the gate's decision that waits for the request, and ``gaps`` are the reasons for which it cannot be
    approved. ``call`` is what the agent's run did before. ``page`` is the address of the request's page, where only
    that, and no command, can approve it.
    """
    for name, text in (*_list_facts(approval), *_list_pending_facts(pending)):
        if name == "message" and describe_blanks(text):
            _print_field(name, "as it was given")
            _print_text_with_marks(text)
        else:
            _print_field(name, text)
    if approval.content is None:
        _print_field("content", "not kept here; its digest is the subject")
    else:
        is_unchanged = digest_text(approval.content) == approval.subject
        origin = "as it was judged" if is_unchanged else "not as it was judged: redacted, or changed since"
        _print_field("content", origin)
        _print_text_with_marks(approval.content)
    for effect in list_effects(approval.metadata):
        _print_field("effect", f"{effect} (declared for this tool by whoever runs the guard)")
    _print_judged_with(approval, pending)
    for name, text in () if call is None else _list_call_history(call):
        _print_field(name, text)
    for entry in history:
        _print_field(f"entry {entry.seq}", f"{_format_time(entry.at)}  {entry.kind}: {describe_entry(entry)}")
    if approval.status == "open":
        for name, text in _list_how_to_decide(approval, pending, gaps, place, page):
            _print_field(name, text)


def _list_how_to_decide(
    approval: Approval, pending: PendingDecision | None, gaps: Sequence[Gap], place: LedgerPlace | None, page: str
) -> Iterator[tuple[str, str]]:
    """Yield how an open request can be approved and denied: a name, and the command to type or the page to open.

    A request that an agent's harness made is approved on its page, because the agent could run the command itself.
    """
    arguments = f"{approval.id} --reason WHY{_repeat_options(place)}"
    harness = _find_harness(pending)
    for gap in gaps:
        yield "incomplete", f"it cannot be approved: {gap.what} {gap.remedy.removesuffix('.')}"
    if not gaps and harness is None:
        seen = digest_shown(approval)[:_DIGEST_CHARACTERS]
        yield "to approve", f"adjudge approvals approve {arguments} --seen {seen}"
    elif not gaps:
        yield "to approve", f"{page} (run adjudge serve); {quote(harness)} asked, and its agent could run a command"
    yield "to deny", f"adjudge approvals deny {arguments}"


def _print_judged_with(approval: Approval, pending: PendingDecision | None) -> None:
    """Print the task, the context and the reference with which a content was judged, or that there was none."""
    judged_digests = None if pending is None else list_judged_with(pending.decision.basis)
    for name in CONTEXT:
        if name in approval.texts:
            text = approval.texts[name]
            is_unchanged = judged_digests is None or judged_digests.get(name) == digest_text(text)
            origin = "as it was handed to the judge" if is_unchanged else "redacted, as the judge was shown it"
            _print_field(name, origin)
            _print_text_with_marks(text)
        elif judged_digests is not None:
            _print_field(name, "judged with, and not kept here" if name in judged_digests else "the gate got none")


def _list_call_history(call: CallHistory) -> Iterator[tuple[str, str]]:
    """Yield facts about what the agent's run did before this call, each with its name; the agent's remarks are last."""
    yield "run", call.run_id
    yield "hour before", f"other requests for approval: {call.requests}; calls allowed: {len(call.allowed)}"
    for allowed_call in call.allowed:
        time = _format_time(allowed_call.at)
        yield "allowed", f"{time}  {allowed_call.title}, by {allowed_call.decided_by}"
    if call.before:
        yield "before", "; ".join(f"{name} {text}" for name, text in call.before.items())
    for name, text in call.remarks.items():
        yield "agent says", f"{name}: {text}"


_MOST_BLANKS = 12
"""Places of white space that are listed below a text."""


def _print_text_with_marks(text: str) -> None:
    """Print a text that a person decides about, with marks on white space that would not be seen.

    Below the text, the line and the column of each mark are listed.
    """
    for line in text.split("\n"):
        write_screen("".join(("  | ", *map(_mark_blank, split_blanks(line)), "\n")))
    positions = [f"{_describe_blank(part)} at {line}:{column}" for line, column, part in list_blanks(text)]
    if positions:
        more = len(positions) - _MOST_BLANKS
        shown = "; ".join(positions[:_MOST_BLANKS]) + (f"; and {more:,} more" if more > 0 else "")
        _print_field("white space", f"{shown} (line:column)")


def _mark_blank(part: TextPart) -> str:
    """Return a part of a text as it is printed: blanks underlined on a terminal, tabs and codes with a mark."""
    text = clean(part.text)
    if part.kind == "blanks":
        return f"\x1b[4m{text}\x1b[24m" if can_draw_boxes() else text  # underlined
    if part.kind == "code":
        return f"[{part.mark}]"
    return f"→{text}" if part.kind == "tab" else text


def _describe_blank(part: TextPart) -> str:
    """Describe the white space of a part: the number of blanks, a tab, or a code such as ``U+00A0``."""
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
    optional_facts = {"gate": approval.gate, "execution": approval.execution, "message": approval.message}
    yield from ((name, text) for name, text in optional_facts.items() if text)
    if approval.audit:
        yield "audit", "approve: it was right to let this through; deny: it should have been stopped"
    else:
        yield "result", f"{approval.reason or approval.outcome} [by {approval.judge}, {approval.result_id}]"
    yield "subject", approval.subject
    if approval.result is not None:
        yield from _list_judgement(approval.result)
    if approval.first_said:
        yield "judge first", approval.first_said


def _list_pending_facts(pending: PendingDecision | None) -> Iterator[tuple[str, str]]:
    """Yield facts about what waits for the approval, each with its name.

    They are the HTTP request that is held back, if it is one, and the time at which the approval was used.
    """
    if pending is None:
        return
    metadata = pending.decision.metadata
    if _is_over_http(pending):
        yield "held back", f"a request over HTTP: {metadata.get('method', '')} {metadata.get('path', '')}"
    if pending.used_at is not None:
        yield "used", f"{_format_time(pending.used_at)}, entry {pending.used_seq}"


def _is_over_http(pending: PendingDecision) -> bool:
    """Return whether the content that is held back is an HTTP request."""
    return pending.decision.basis.get("http") is not None


def _repeat_options(place: LedgerPlace | None) -> str:
    """Write the options that name the ledger and the configuration, for a command that is proposed to the user."""
    return "" if place is None else repeat_options(ledger=place.ledger, config=place.config)


def _list_judgement(result: JudgeResult) -> Iterator[tuple[str, str]]:
    """Yield the parts of a judge's result, each with its name: criteria, rules, reasoning, seats and warnings."""
    for criterion in result.criteria:
        score, needed = format_distinct(criterion.score, criterion.threshold)
        score = "-" if criterion.score is None else score
        needs = "" if criterion.threshold is None else f" (needs {needed})"
        reason = f": {criterion.reasoning}" if criterion.reasoning else ""
        yield "criterion", f"{describe_pass_mark(criterion, '-')}  {score}{needs}  {criterion.name}{reason}"
        yield from (("  quoted", text) for text in criterion.evidence)
    for rule in result.rule_results:
        mark = "pass" if rule.passed else rule.severity
        yield "rule", f"{mark}  {rule.name}" + (f": {rule.message}" if rule.message and not rule.passed else "")
    if result.reasoning:
        yield "reasoning", result.reasoning
    for text in result.suggestions:
        yield "suggestion", text
    for seat in getattr(result, "results", ()):
        reason = seat.detail or seat.reasoning
        yield "seat", f"{seat.judge}: {describe_outcome(seat)}" + (f": {reason}" if reason else "")
    yield from (("warning", text) for text in describe_models(result))


def _print_field(name: str, text: str) -> None:
    """Print a line with a name in its first column and a text in its second."""
    print_line(f"{clean(name, keep_lines=False):<13}{clean(text, keep_lines=False)}")


def _describe_voters(approval: Approval) -> str:
    """Describe who may decide a request: one name, or "2 of" several names where two have to approve."""
    names = ", ".join(approval.approvers)
    return names if len(approval.approvers) == 1 else f"{approval.required} of {names}"


def _describe_expiry(approval: Approval) -> str:
    """Describe when a request expires, and what happens to it then."""
    if approval.expires_at is None:
        return "never"
    outcome = "approved by policy" if approval.on_expiry == "approve" else "denied"
    time_left = f", in {_format_time_left(approval, datetime.now(UTC))}" if approval.status == "open" else ""
    return f"{_format_time(approval.expires_at)}{time_left}; then it is {outcome}"


def _format_time_left(approval: Approval, now: datetime) -> str:
    """Format the time until a request expires; "-" for a request that is closed already."""
    if approval.status != "open":
        return "-"
    if approval.expires_at is None:
        return "never"
    return _format_seconds((approval.expires_at - now).total_seconds())


def _format_seconds(seconds: float) -> str:
    """Format a duration in the largest unit of which it has at least two, rounded down."""
    seconds = max(0.0, seconds)
    for unit, name in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * unit:
            return f"{seconds // unit:.0f} {name}"
    return f"{seconds:.0f} s"


def _format_time(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


T = TypeVar("T")

_MOST_HOURS = 8_760
"""Hours for which a signed link can be opened at most: a year."""

_DIGEST_CHARACTERS = 12
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
        for_approver = "" if approver is None else f", for {quote(approver)} to decide"
        of_status = "" if status == "all" else f" that are {status}"
        noun = "audits" if audits else "requests"
        note(f"no {noun}{of_status}{for_approver}" + ("; --status all shows every one" if of_status else ""))


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
        members = {"approval": approval.to_dict(), "shown": digest_shown(approval), "history": entries}
        write_json({"schema": "adjudge/approval-history/1", **members})
    else:
        page = "" if _find_harness(pending) is None else _make_page_url(place, approval)
        print_approval(approval, history, pending, gaps=gaps, place=place, call=call, page=page)


def _make_page_url(place: LedgerPlace, approval: Approval) -> str:
    """Make the address of a request's page on the server of the configuration."""
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
        """Return the request, whether it was approved (``None``: not decided in time), and the decision that waits."""
        approval_id = await approvals.find(ident)
        # The status in the table of requests is not enough: ``approvals.wait`` also checks that the ledger confirms it.
        answer = None
        if timeout != 0 or (await approvals.get(approval_id)).status != "open":
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout or None):
                    answer = await approvals.wait(approval_id)
        approval = await approvals.get(approval_id)
        approved = answer.approved if answer is not None else None
        return approval, approved, await _find_pending(approvals, approval)

    approval, approved, pending = _run_with_approvals(place, work)
    _print_outcome(approval, pending, place, as_json=as_json)
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
        """Cast the vote, and return the request after it, and the gate's decision that waits for the request.

        If the user may not decide the request, the refusal is raised with the names of those who may.
        """
        approval_id = await approvals.find(ident)
        if approved:
            await _check_not_asked_by_hook(approvals, approval_id)
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
            approvers = ", ".join((await approvals.get(approval_id)).approvers)
            explanation = f"{approvers} may decide this, and the command decides as the account it runs under"
            raise DecisionRefused(f"{explanation}: ", error, because=error.because) from None
        return decided, await _find_pending(approvals, decided)

    approval, pending = _run_with_approvals(place, work, decides=True)
    if not as_json:
        verb = "approves" if approved else "denies"
        print_line(f"approval {approval.id}: {by} {verb}, entry {approval.votes[-1].seq}")
    _print_outcome(approval, pending, place, as_json=as_json)


async def _check_not_asked_by_hook(approvals: Approvals, approval_id: str) -> None:
    """Raise ``UsageError`` for a request that a hook on this machine made about a call of an agent.

    The agent could run this command too, and so approve its own call.
    """
    harness = _find_harness(await approvals.pending(approval_id))
    if harness is not None:
        raise UsageError(
            f"{quote(harness)} asked for approval {approval_id} for an agent, which could run this command; approve it "
            "on the page (adjudge serve), or deny it here; command = true under [approvals] of the hook's "
            "configuration permits it for requests that are made later"
        )


def _find_harness(pending: PendingDecision | None) -> str | None:
    """Find the name of the agent's harness whose hook made a request that no command on this machine may approve.

    ``None`` for every other request.
    """
    call = None if pending is None else pending.decision.metadata.get("call")
    harness = call.get("harness") if isinstance(call, Mapping) else None
    return None if harness is None else str(harness)


def _complete_digest(seen: str, approval: Approval, by: str, *, approved: bool) -> str:
    """Complete the beginning of a digest that ``--seen`` gives to the whole digest of what the request shows.

    Another text is returned as it is, and then refused by ``cast_vote``. Raises ``UsageError`` for a text that is too
    short, and where an approver gives none to approve.
    """
    digest = digest_shown(approval)
    if seen and len(seen) < _DIGEST_CHARACTERS:
        raise UsageError(
            f"--seen has at least {_DIGEST_CHARACTERS} characters, got {quote(seen)}; copy what `show` prints"
        )
    if approved and not seen and approval.status == "open" and by in approval.approvers:
        raise UsageError(f"--seen is missing; read the request first: adjudge approvals show {approval.id} prints it")
    return digest if seen and digest.startswith(seen) else seen


async def _find_pending(approvals: Approvals, approval: Approval) -> PendingDecision | None:
    """Find the gate's decision that waits for the approval; ``None`` if the ledger confirms none."""
    # A ledger that does not confirm the decision must not hide from the user that the vote was recorded.
    with suppress(LedgerError):
        return await approvals.pending(approval.id)
    return None


def _print_outcome(approval: Approval, pending: PendingDecision | None, place: LedgerPlace, *, as_json: bool) -> None:
    """Print the state of a request, and if it is decided, how to resume what the gate held back."""
    if as_json:
        write_json(approval.to_dict())
        return
    print_line(f"approval {approval.id}: {approval.explain()}")
    if approval.gate is None or approval.audit or approval.status == "open":
        return  # no decision can be resumed
    # A gate that was made in Python cannot be resumed by a command, which does not have it.
    is_configured = approval.gate in read_config(place.config).gates
    if approval.status == "approved":
        note(_explain_resuming(approval, pending, place, is_configured=is_configured))
    elif approval.status == "denied":
        resume = f"adjudge gate resume {approval.id}{_repeat_options(place)}"
        next_step = f"; {resume} records that" if is_configured else ""
        note(f"what the gate held back stays blocked{next_step}")


def _explain_resuming(
    approval: Approval, pending: PendingDecision | None, place: LedgerPlace, *, is_configured: bool
) -> str:
    """Explain how to resume what an approval was asked for: an HTTP request, a call of an agent, or content at a gate.

    A gate that is not in the configuration was made by a Python program, so only that program can resume it.
    """
    # `gate resume` would use up the approval of an HTTP request, and the client that repeats the request be refused.
    if pending is not None and _is_over_http(pending):
        return f"to resume: the client repeats its request with the header Adjudge-Approval: {approval.id}"
    if pending is not None and isinstance(pending.decision.metadata.get("call"), Mapping):
        return "to resume: the agent makes the same call again, if it does not wait for this already"
    if not is_configured:
        return "to resume, unless your program waits for this already: await gate.resume(decision, content=...)"
    file = "FILE" + _repeat_options(place)
    return f"to resume: adjudge gate resume {approval.id} {file}   (what the gate held back)"


def _run_with_approvals(place: LedgerPlace, work: Callable[[Approvals], Awaitable[T]], *, decides: bool = False) -> T:
    """Open the approvals beside the ledger that the options name, and return the result of ``work`` with them.

    With ``decides``, the user is told if no webhook can be sent about the decision.
    """
    configuration = read_config(place.config)
    if decides and is_secret_missing(configuration):
        name = configuration.approvals["webhook"]["secret_env"]
        note(f"no webhook is sent from here: {name} is not set")

    async def run() -> T:
        # The key of [ledger] is needed even to list requests: expired ones are closed then, with a signed entry.
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
