"""Votes that the user of an MCP client gives in the client's form, where the server knows who that is.

The form's answer names nobody: an agent can answer it too. So it counts only for a person whom the program takes from
the HTTP request that brings it, who is an approver of the request, and whose token says when a person signed in. That
takes protocol 2026-07-28, where the client sends the call again with the answer. In older ones the answer comes in a
request of its own, whose sign-in the SDK does not pass on, so their clients are not asked for votes.
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
from adjudge.guards.approval.request import LONGEST_REASON
from adjudge.guards.approval.vote_casting import cast_vote
from adjudge.guards.approval.votes import find_refusal
from adjudge.guards.tool_guard.effects import list_effects
from adjudge.guards.tool_guard.history import read_before
from adjudge.hooks import logger

FindPrincipal = Callable[[ServerRequestContext[Any, Any]], str | None]
"""Names the person who signed in to send a request, as the gates' ``approvers`` do; ``None`` for nobody."""

CHANNEL = "MCP elicitation"
"""The name in the ledger of the way on which such a vote came."""

_LONGEST_SHOWN = 4_000
"""Characters of a request that a client's form shows; a longer one is decided on the page."""

_FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "decision": {"type": "string", "title": "Your decision", "enum": ["approve", "deny", "later"]},
        "reason": {"type": "string", "title": "Why", "maxLength": LONGEST_REASON},
    },
    "required": ["decision"],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteQuestion:
    """A question whether a call may be made, to somebody who may decide it."""

    message: str
    seen: str
    """The digest of what it shows, which the vote is bound to."""
    form: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteDesk:
    """Takes votes of clients' users."""

    principal: FindPrincipal | None

    async def ask(self, ctx: ServerRequestContext[Any, Any], approvals: Approvals, ident: str) -> VoteQuestion | None:
        """Make the question to the sender of a request; ``None`` where that person may not decide, or not this way."""
        by = self._find_principal(ctx) if can_ask(ctx) else None
        if by is None:
            return None
        try:
            approval = await approvals.get(ident)
            if find_refusal(approval, by) is not None or await approvals.find_gaps(ident):
                return None
        except AdjudgeError as error:
            logger.error("approval %s could not be shown: %s", ident, type(error).__name__)
            return None
        return _make_question(approval)

    async def take(
        self, ctx: ServerRequestContext[Any, Any], approvals: Approvals, ident: str, *, seen: str, answer: object
    ) -> bool:
        """Record a vote as the sender's, and return whether it counts.

        The person is found anew, by the request that brings the answer.
        """
        by = self._find_principal(ctx)
        members = answer if isinstance(answer, Mapping) else {}
        decision, reason = members.get("decision"), members.get("reason", "")
        # A tuple: the answer can be anything, and a list in it has no hash.
        if by is None or decision not in ("approve", "deny") or not isinstance(reason, str):
            return False
        try:
            await cast_vote(
                approvals,
                ident,
                by,
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
        # Never without HTTP: there nobody signs in, and whoever answers may be the agent.
        if self.principal is None or ctx.request is None or not _has_signed_in():
            return None
        try:
            name = self.principal(ctx)
        except Exception as error:  # noqa: BLE001 - the program's own function
            logger.error("the principal of an MCP request could not be found: %s", type(error).__name__)
            return None
        return name if isinstance(name, str) and name else None


def _has_signed_in() -> bool:
    """Return whether the token of the request says when a person signed in, which that of a program does not."""
    token = get_access_token()
    at = None if token is None else (token.claims or {}).get("auth_time")
    return isinstance(at, int | float) and not isinstance(at, bool)


def can_ask(ctx: ServerRequestContext[Any, Any]) -> bool:
    """Return whether the client can be asked by the protocol: it is new enough, and shows forms to its user."""
    capabilities = ctx.session.client_capabilities
    has_forms = capabilities is not None and capabilities.elicitation is not None
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS and has_forms


def _make_question(approval: Approval) -> VoteQuestion | None:
    """Make the question, if a plain text shows all that would be approved."""
    content = approval.content or ""
    judged_with = "".join(f"\n\nIt was judged with this {name}:\n{words}" for name, words in approval.texts.items())
    effects = list_effects(approval.metadata)
    declared = f"\n\nDeclared for this tool: {'; '.join(effects)}." if effects else ""
    # Else the person would make a call a second time without knowing that it may have run.
    before = "; ".join(f"{name} {fate}" for name, fate in read_before(approval).items())
    asked = f"\n\nPeople were asked about this very call before: {before}." if before else ""
    text = f"{approval.message}\n\n{content}{declared}{asked}{judged_with}"
    is_plain = clean(text) == text and not any(part.kind for part in split_hidden(text))
    if len(text) > _LONGEST_SHOWN or not is_plain:
        return None
    message = f"{text}\n\nApproving it makes this call, once. Say why."
    return VoteQuestion(message=message, seen=digest_shown(approval), form=_FORM)
