"""The gaps in what a request shows people of what they would approve.

Approving what is cut off, missing or changed would approve something that nobody read. Denying it is always possible.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Literal

from adjudge.content import digest_text
from adjudge.guards.approval.approval import Approval

GapKind = Literal["missing", "cut", "changed", "unconfirmed"]

_CUT = " …"
"""The end of a text that adjudge wrote, and cut when it made the request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """One thing for which a request cannot be approved as it is shown."""

    kind: GapKind
    """``missing``, ``cut``, ``changed`` or ``unconfirmed``."""
    what: str
    """The problem, in one sentence."""
    remedy: str
    """The remedy, in one sentence."""


def digest_shown(approval: Approval) -> str:
    """Digest all that a request shows, as sorted JSON: message, content, task, context, result, what they are bound to.

    It leaves out who may decide and how many of them: the ledger's entry has these, and ``wait`` compares them. A page
    sends back the digest of what it showed. For an audit it leaves out the result's id as well, by which people could
    tell an audit whose content was made up.

    Args:
        approval: The request.
    """
    return digest_recorded(replace(approval, result_id="") if approval.audit else approval)


def digest_recorded(approval: Approval) -> str:
    """Digest what a request shows, with the id of the result that it is about, for the ledger's entry of the request.

    For an audit, ``digest_shown`` leaves that id out, because people who answer an audit must not learn it.
    """
    names = ("id", "message", "reason", "content", "subject", "result_id", "outcome", "request", "gate", "first_said")
    members = {name: getattr(approval, name) for name in names}
    results = {"result": approval.result, "first": approval.first}
    members |= {name: None if result is None else result.to_dict() for name, result in results.items()}
    # Only where there are any: requests of versions that did not keep these texts must still have the same digest.
    members |= {"texts": dict(approval.texts)} if approval.texts else {}
    # Not encoded as a ledger's payload, which has a size limit: people must be able to decide about a long content too.
    return sha256(json.dumps(members, sort_keys=True).encode()).hexdigest()


def find_gaps(
    approval: Approval, recorded: str | None, judged_with: Mapping[str, str] | None = None
) -> tuple[Gap, ...]:
    """Find what is cut off, missing or changed in a request, so that it cannot be approved as it is shown.

    ``recorded`` is the digest in the ledger's entry of the request; ``None`` if the entry has none or was erased.
    ``judged_with`` are the digests of task, context and reference that a gate judged the content with; ``None`` if no
    gate asks.
    """
    gaps = [_find_content_gap(approval), *_list_context_gaps(approval, judged_with or {})]
    if approval.result is None and not approval.audit:
        problem = "The judge's result could not be kept, so its reasons are missing."
        gaps.append(Gap(kind="missing", what=problem, remedy=_CHECK_AGAIN))
    if approval.reason.endswith(_CUT):
        gaps.append(Gap(kind="cut", what="The reason why people are asked is cut off.", remedy=_CHECK_AGAIN))
    if recorded is None:
        problem = "The ledger does not say what people are shown: the entry of the request was erased."
        gaps.append(Gap(kind="unconfirmed", what=problem, remedy=_CHECK_AGAIN))
    elif recorded != digest_recorded(approval):
        problem = "What is stored is not what the ledger says people were asked: it was changed since."
        gaps.append(Gap(kind="changed", what=problem, remedy="Deny it, and find out who can write to the database."))
    return tuple([gap for gap in gaps if gap is not None])


_CHECK_AGAIN = "Put the content through the gate again."

_REQUEST_AGAIN = "Make the request again with its content: Approvals.request(..., content=...)."

_KEEP_IN_GATE = (
    "Let the gate keep it (show_content = true under [approvals] of adjudge.toml, or the same argument of Gate), and "
    "put it through the gate again."
)


def _list_context_gaps(approval: Approval, judged_with: Mapping[str, str]) -> list[Gap]:
    """List the gaps for task, context and reference: those that it was judged with, and that are not kept.

    ``judged_with`` has their digests by their names. They are not compared: a text that was redacted is no gap, because
    the judge read it redacted too.
    """
    if approval.content is None:  # then _find_content_gap says already that nothing can be read
        return []
    missing = [name for name in judged_with if name not in approval.texts]
    problem = "The {} with which it was judged is not kept with the request, so nobody can read it."
    return [Gap(kind="missing", what=problem.format(name), remedy=_CHECK_AGAIN) for name in missing]


def _find_content_gap(approval: Approval) -> Gap | None:
    """Find the gap of the content: missing, or different from what was judged; ``None`` if there is no gap."""
    if approval.content is None:
        problem = "The content is not kept with the request, so nobody can read what would be approved."
        return Gap(kind="missing", what=problem, remedy=_REQUEST_AGAIN if approval.gate is None else _KEEP_IN_GATE)
    # An audit shows the content as the judge read it, which may be redacted, and its answer lets nothing through.
    if not approval.audit and digest_text(approval.content) != approval.subject:
        problem = "What is shown is not exactly what was judged: it was redacted, or changed since."
        return Gap(kind="changed", what=problem, remedy="Decide it where the original can be read, or deny it.")
    return None
