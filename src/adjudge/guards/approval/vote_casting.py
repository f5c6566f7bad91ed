"""The check of a person's vote: the same for the page, HTTP and the command line.

Whose vote counts, when it is final and what the votes add up to is decided in ``votes.py``.
"""

from __future__ import annotations

from typing import Literal

from adjudge.errors import DecisionRefused, LedgerError, UsageError
from adjudge.guards.approval.approval import Approval
from adjudge.guards.approval.approvals import Approvals
from adjudge.guards.approval.votes import find_refusal
from adjudge.result import JudgeResult


async def cast_vote(
    approvals: Approvals,
    id: str,  # noqa: A002 - as in Approvals.decide
    by: str,
    *,
    approved: bool,
    reason: str,
    seen: str | None,
    require_complete: bool,
    undo_seconds: float = 0.0,
    answer: str = "",
    channel: str = "",
) -> Approval:
    """Check a person's vote, record it, and return the request after it.

    ``by`` is the voter's name, which the caller has to know for sure. Raises ``UsageError``, and records nothing, for
    an approval whose ``seen`` is missing, that overrides the judge without a reason, or of a pending decision that the
    ledger does not confirm. All other checks and errors are those of ``Approvals.decide``; its refusal of an
    ``incomplete`` request also says what is missing and what would help.
    """
    approval = await approvals.get(id)
    # A vote that is refused anyway is not checked here, so that decide() records the attempt.
    if approved and find_refusal(approval, by) is None:
        _check_approval(approval, reason=reason, seen=seen)
        try:
            await approvals.pending(id)
        except LedgerError:
            raise UsageError(
                "what the gate holds back is not what the ledger says, because one of them was changed or erased; "
                "deny it, and put the content through the gate again"
            ) from None
    try:
        return await approvals.decide(
            id,
            by,
            approved,
            reason.strip(),
            seen=seen or None,
            require_complete=require_complete,
            undo_seconds=undo_seconds,
            answer=answer.strip(),
            channel=channel,
        )
    except DecisionRefused as error:
        if error.because != "incomplete":
            raise
        gaps = "".join(f". {gap.what} {gap.remedy.removesuffix('.')}" for gap in await approvals.find_gaps(id))
        raise DecisionRefused(error, gaps, because=error.because) from None


def name_decider(result: JudgeResult | None) -> Literal["rules", "judge"]:
    """Return ``"rules"`` if rules decided a result; ``"judge"`` if a judge did, or if there is no result."""
    return "rules" if result is not None and result.decided_by == "rule" else "judge"


def _check_approval(approval: Approval, *, reason: str, seen: str | None) -> None:
    """Raise ``UsageError`` for an approval without ``seen``, and for one that overrides the result without a reason."""
    if approval.outcome != "passed" and not reason.strip():
        raise UsageError(
            f"approving overrides the {name_decider(approval.result)}, which did not pass it ({approval.outcome}); "
            "write your reason"
        )
    if not seen:
        raise UsageError(
            "an approval says what was shown to the person: look at the request, and send the digest that came with "
            "it as seen"
        )
