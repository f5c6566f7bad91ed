"""Requests for approval on a real server, and people who open its pages."""

from __future__ import annotations

import html
import json
import re
from typing import Any

from adjudge import Approvals, Gate, Judge, Ledger
from adjudge.testing import ScriptedModel
from kit.cli import find_token
from kit.server import RunningServer, read_fields

CONFIG = """
[server]
undo_seconds = 30

[gates.replies]
rules = [{name = "length", max = 40}]
on_failed = "ask"

[approvals]
approvers = ["Ana", "Ben"]
show_content = true

[ledger]
url = "sqlite:///adjudge.db"
store_content = "full"
"""

REASON = "It promises what the policy does not."
CONTENT = "You will have the money within 24 hours."
POLICY = {"name": "policy", "description": "Follows it.", "quote": True, "threshold": 0.9}
RUBRIC = {"name": "Replies", "criteria": [POLICY]}


async def ask(
    ledger: Ledger,
    content: object = CONTENT,
    *,
    quote: str = "24 hours",
    score: float = 0.3,
    reason: str = REASON,
    metadata: Any = None,
    show_content: bool = True,
    gate: str = "replies",
    judge: str = "careful",
    rules: Any = (),
    rubric: Any = None,
    texts: Any = None,
    redact: Any = None,
    **terms: Any,
) -> str:
    """The id of a request that a gate makes, whose judge says what is given here."""
    reply = {"criteria": [{"name": "policy", "reasoning": reason, "quote": quote, "score": score}]}
    asks: dict[str, Any] = {"approvers": ["Ana", "Ben"], "expires_in": 3_600} | terms
    async with Approvals(ledger) as approvals:
        made = Gate(
            gate, judge=Judge(ScriptedModel(reply), name=judge), rubric=rubric or RUBRIC, approvals=approvals, ask=asks,
            on_failed="ask", on_undecided="ask", rules=rules, show_content=show_content, wait=False, ledger=ledger,
            redact=redact,
        )  # fmt: skip
        decision = await made.check(content, metadata=metadata, **(texts or {}))
        assert decision.approval_id is not None, decision.explain()
        return decision.approval_id


def list_queue(page: str) -> list[str]:
    """The ids of the requests in the queue of a page, in their order."""
    return re.findall(r'<a class="item" href="/approvals/([^"]+)"', page)


def find_link(page: str, key: str) -> str | None:
    """The id of the request to which a key leads on a page."""
    match = re.search(rf'<a class="btn" href="/approvals/([^"]+)" data-key="{key}"', page)
    return None if match is None else match[1]


def make_request(server: RunningServer, *arguments: Any, **options: Any) -> str:
    """The id of a new request on a server."""
    return server.change(lambda ledger: ask(ledger, *arguments, **options))


def read_approval(server: RunningServer, ident: str) -> Any:
    """A request as the server's database has it."""

    async def look(ledger: Ledger) -> Any:
        async with Approvals(ledger) as approvals:
            return await approvals.get(ident)

    return server.change(look)


def decide(server: RunningServer, ident: str, by: str, approved: bool) -> Any:
    """Decide from outside, as the command line does."""

    async def work(ledger: Ledger) -> Any:
        async with Approvals(ledger) as approvals:
            return await approvals.decide(ident, by, approved, "from outside")

    return server.change(work)


def send(client: Any, ident: str, vote: str, reason: str = "", **more: str) -> Any:
    """Fill in the form of a request's page, as a browser without scripts does, and send it."""
    page = client.get(f"/approvals/{ident}", params=more.pop("params", None))
    form = find_form(page.text)
    fields = read_fields(client, form)
    action = re.search(r'action="([^"]+)"', form)
    data = fields | {"vote": vote, "reason": reason} | more
    return client.post(f"/approvals/{ident}/decide" if action is None else html.unescape(action[1]), data=data)


def find_form(page: str) -> str:
    """The form that decides; only the token where there is none."""
    form = re.search(r'<form class="stack" method="post" action="/approvals/.*?</form>', page, re.DOTALL)
    if form is not None:
        return form[0]
    token = re.search(r'<input type="hidden" name="csrf_token" value="[^"]*"', page)
    return token[0] if token is not None else ""


def list_kinds(server: RunningServer, ident: str) -> list[str]:
    """The ledger's entries about a request, without their common beginning."""

    async def look(ledger: Ledger) -> list[str]:
        async with Approvals(ledger) as approvals:
            return [entry.kind.removeprefix("approval.") for entry in await approvals.history(ident)]

    return server.change(look)


QUOTE = "within 24 hours"
WHY = "The policy says ten working days."


def judge_promises(prompt: str) -> str:
    """A judge that fails what promises the money within a day, and quotes the promise."""
    policy = {"reasoning": WHY, "quote": QUOTE, "score": 0.2}
    return json.dumps(
        {"token": find_token(prompt), "criteria": {"policy": policy}, "reasoning": WHY, "suggestions": []}
    )
