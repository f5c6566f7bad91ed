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
"""The end of a text of ours that was cut when the request was made."""


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

    Who may decide and how many of them is not in it: the ledger's entry says that in full, and ``wait`` compares it.
    A page sends back the digest of what it showed. Whoever answers an audit is not told which result it is about, as
    that would tell an audit that was planted.

    Args:
        approval: The request.
    """
    return digest_recorded(replace(approval, result_id="") if approval.audit else approval)


def digest_recorded(approval: Approval) -> str:
    """Digest a request as the ledger's entry of it does: as ``digest_shown``, and an audit with its result's id."""
    names = ("id", "message", "reason", "content", "subject", "result_id", "outcome", "request", "gate", "first_said")
    members = {name: getattr(approval, name) for name in names}
    results = {"result": approval.result, "first": approval.first}
    members |= {name: None if result is None else result.to_dict() for name, result in results.items()}
    # Only where there are any: requests that were made before they were kept have the same digest as then.
    members |= {"texts": dict(approval.texts)} if approval.texts else {}
    # Not as the ledger encodes a payload: that has a size limit, and a long content must still be asked about.
    return sha256(json.dumps(members, sort_keys=True).encode()).hexdigest()


def find_gaps(
    approval: Approval, recorded: str | None, judged_with: Mapping[str, str] | None = None
) -> tuple[Gap, ...]:
    """Find what is cut off, missing or changed in a request, so that it cannot be approved as it is shown.

    ``recorded`` is the digest of what people are shown as the ledger's entry of the request has it; ``None`` where the
    entry has none, or cannot be read. ``judged_with`` are the digests of task, context and reference that a gate
    judged it with; ``None`` where no gate asks.
    """
    gaps = [_find_content_gap(approval), *_list_text_gaps(approval, judged_with or {})]
    if approval.result is None and not approval.audit:
        problem = "The judge's result could not be kept, so its reasons are missing."
        gaps.append(Gap(kind="missing", what=problem, remedy=_AGAIN))
    if approval.reason.endswith(_CUT):
        gaps.append(Gap(kind="cut", what="The reason why people are asked is cut off.", remedy=_AGAIN))
    if recorded is None:
        problem = "The ledger does not say what people are shown: the entry of the request was erased."
        gaps.append(Gap(kind="unconfirmed", what=problem, remedy=_AGAIN))
    elif recorded != digest_recorded(approval):
        problem = "What is stored is not what the ledger says people were asked: it was changed since."
        gaps.append(Gap(kind="changed", what=problem, remedy="Deny it, and find out who can write to the database."))
    return tuple([gap for gap in gaps if gap is not None])


_AGAIN = "Put the content through the gate again."

_KEEP = "Make the request again with its content: Approvals.request(..., content=...)."

_KEEP_IN_GATE = (
    "Let the gate keep it (show_content = true under [approvals] of adjudge.toml, or the same argument of Gate), and "
    "put it through the gate again."
)


def _list_text_gaps(approval: Approval, judged_with: Mapping[str, str]) -> list[Gap]:
    """List what it was judged with and nobody can read. A text that was redacted is none: the judge read it so too."""
    if approval.content is None:  # said of the content already, and of all of it
        return []
    missing = [name for name in judged_with if name not in approval.texts]
    problem = "The {} with which it was judged is not kept with the request, so nobody can read it."
    return [Gap(kind="missing", what=problem.format(name), remedy=_AGAIN) for name in missing]


def _find_content_gap(approval: Approval) -> Gap | None:
    """Find the gap of the content: missing, or other than what was judged; ``None`` where there is none."""
    if approval.content is None:
        problem = "The content is not kept with the request, so nobody can read what would be approved."
        return Gap(kind="missing", what=problem, remedy=_KEEP if approval.gate is None else _KEEP_IN_GATE)
    # What an audit shows redacted is what the judge read too, and nothing is let through by the answer.
    if not approval.audit and digest_text(approval.content) != approval.subject:
        problem = "What is shown is not exactly what was judged: it was redacted, or changed since."
        return Gap(kind="changed", what=problem, remedy="Decide it where the original can be read, or deny it.")
    return None
