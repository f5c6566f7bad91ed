"""Votes that the user of an MCP client gives in a form of the client (an elicitation), if the server knows that person.

The answer of a form names nobody, and an agent can answer it too. So it counts only if the program can take the
person's name from the HTTP request that brings the answer, this person is an approver of the request, and the token
says when a person signed in. This needs protocol 2026-07-28, where the client sends the call again with the answer. In
older protocols the answer comes in a request of its own, and the SDK does not pass on its sign-in, so clients of these
are not asked for votes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.context import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from adjudge.errors import AdjudgeError
from adjudge.formats.blanks import split_hidden
from adjudge.formats.text import clean
from adjudge.guards.approval.approval import Approval
from adjudge.guards.approval.approvals import Approvals
from adjudge.guards.approval.completeness import digest_shown
from adjudge.guards.approval.request_terms import LONGEST_REASON
from adjudge.guards.approval.vote_casting import cast_vote
from adjudge.guards.approval.votes import find_refusal
from adjudge.guards.tool_guard.effects import list_effects
from adjudge.guards.tool_guard.history import read_before
from adjudge.hooks import logger

FindPrincipal = Callable[[ServerRequestContext[Any, Any]], str | None]
"""Names the person who signed in to send a request, as the gates' ``approvers`` do; ``None`` for nobody."""

CHANNEL = "MCP elicitation"
"""The ``channel`` of such a vote in the ledger."""

_LONGEST_TEXT = 4_000
"""The most characters of a request that a client's form shows; longer ones have to be decided on the page."""

_VOTE_FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "decision": {"type": "string", "title": "Your decision", "enum": ["approve", "deny", "later"]},
        "reason": {"type": "string", "title": "Why", "maxLength": LONGEST_REASON},
    },
    "required": ["decision"],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteQuestion:
    """The question whether a held call may be made, for the form of a client whose user is an approver."""

    message: str
    seen: str
    """The digest of what it shows, which the vote is bound to."""
    form: Mapping[str, Any]
    """The JSON schema of the form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteDesk:
    """Asks the users of clients for votes, and records their answers."""

    principal: FindPrincipal | None
    """The program's function that names the person who sent a request; ``None`` takes no votes."""

    async def ask(self, ctx: ServerRequestContext[Any, Any], approvals: Approvals, ident: str) -> VoteQuestion | None:
        """Make the question about a held call for the person who sent the client's request.

        Returns ``None`` if the person is not known or may not decide, or if the client's form cannot show all that
        would be approved.
        """
        voter = self._find_principal(ctx) if can_ask(ctx) else None
        if voter is None:
            return None
        try:
            approval = await approvals.get(ident)
            if find_refusal(approval, voter) is not None or await approvals.find_gaps(ident):
                return None
        except AdjudgeError as error:
            logger.error("approval %s could not be shown: %s", ident, type(error).__name__)
            return None
        return _make_question(approval)

    async def take(
        self, ctx: ServerRequestContext[Any, Any], approvals: Approvals, ident: str, *, seen: str, answer: object
    ) -> bool:
        """Record the answer of a form as a vote of the person who sent it, and return whether the vote counts.

        The person is taken from the request that brings the answer, and not from the one that was asked. ``seen`` is
        the digest of what the form showed.
        """
        voter = self._find_principal(ctx)
        members = answer if isinstance(answer, Mapping) else {}
        decision, reason = members.get("decision"), members.get("reason", "")
        # Compared with a tuple and not a set, because the answer may be a value that cannot be hashed.
        if voter is None or decision not in ("approve", "deny") or not isinstance(reason, str):
            return False
        try:
            await cast_vote(
                approvals,
                ident,
                voter,
                approved=decision == "approve",
                reason=reason,
                seen=seen,
                require_complete=True,
                channel=CHANNEL,
            )
        except AdjudgeError as error:
            logger.warning("a vote on approval %s did not count: %s", ident, type(error).__name__)
            return False
        return True

    def _find_principal(self, ctx: ServerRequestContext[Any, Any]) -> str | None:
        """Find the name of the person who sent a request; ``None`` if it is not known, and always without HTTP."""
        # Without HTTP nobody signs in, and the agent may answer the form.
        if self.principal is None or ctx.request is None or not _has_signed_in():
            return None
        try:
            name = self.principal(ctx)
        except Exception as error:  # noqa: BLE001 - the program's own function
            logger.error("the principal of an MCP request could not be found: %s", type(error).__name__)
            return None
        return name if isinstance(name, str) and name else None


def _has_signed_in() -> bool:
    """Return whether the request's token says when a person signed in (``auth_time``); a program's token does not."""
    token = get_access_token()
    signed_in_at = None if token is None else (token.claims or {}).get("auth_time")
    return isinstance(signed_in_at, int | float) and not isinstance(signed_in_at, bool)


def can_ask(ctx: ServerRequestContext[Any, Any]) -> bool:
    """Return whether a client can be asked by a form: its protocol is new enough, and it can show forms to its user."""
    capabilities = ctx.session.client_capabilities
    has_forms = capabilities is not None and capabilities.elicitation is not None
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS and has_forms


def _make_question(approval: Approval) -> VoteQuestion | None:
    """Make the question about a request; ``None`` if its text is too long for a form or has invisible characters."""
    content = approval.content or ""
    judged_with = "".join(f"\n\nIt was judged with this {name}:\n{text}" for name, text in approval.texts.items())
    effects = list_effects(approval.metadata)
    declared_effects = f"\n\nDeclared for this tool: {'; '.join(effects)}." if effects else ""
    # Otherwise the person could approve the call a second time without knowing that it may have run.
    previous_members = "; ".join(f"{name} {value}" for name, value in read_before(approval).items())
    previous_request = (
        f"\n\nPeople were asked about this very call before: {previous_members}." if previous_members else ""
    )
    text = f"{approval.message}\n\n{content}{declared_effects}{previous_request}{judged_with}"
    is_plain = clean(text) == text and not any(part.kind for part in split_hidden(text))
    if len(text) > _LONGEST_TEXT or not is_plain:
        return None
    message = f"{text}\n\nApproving it makes this call, once. Say why."
    return VoteQuestion(message=message, seen=digest_shown(approval), form=_VOTE_FORM)
