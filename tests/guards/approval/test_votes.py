"""A person's vote is checked the same way wherever it is given: page, HTTP, client and command line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from adjudge import Client, UsageError
from adjudge.guards import digest_shown
from kit.approval_pages import CONFIG, list_kinds, make_request, read_approval, send
from kit.cli import ME, Line, isolate
from kit.server import RunningServer, find_token, run_server

pytestmark = pytest.mark.timed


RIGHT = "right"
"""Stands for the digest of what is shown."""


@dataclass(frozen=True, slots=True)
class Vote:
    """What a person sends."""

    approved: bool = True
    reason: str = "I read it."
    seen: str | None = RIGHT


FAULTY = {
    "nothing was looked at": Vote(seen=None),
    "an empty digest": Vote(seen=""),
    "the digest of something else": Vote(seen="0" * 64),
    "no reason": Vote(reason=""),
    "a blank reason": Vote(reason=" \n\t"),
    "neither": Vote(reason="", seen=None),
}

DOORS = ("page", "key", "session", "client", "command")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with run_server(tmp_path_factory.mktemp("server"), config=CONFIG) as running:
        running.add_account("Ana", "approve", "read")
        yield running


@pytest.fixture
def give(server: RunningServer, capsys: Any, monkeypatch: Any, tmp_path: Any) -> Callable[[str, str, Vote], bool]:
    """Vote by a door; whether the vote was taken."""
    isolate(monkeypatch, tmp_path)
    line = Line(capsys)

    def vote(door: str, ident: str, ballot: Vote) -> bool:
        seen = digest_shown(read_approval(server, ident)) if ballot.seen == RIGHT else ballot.seen
        return globals()[f"vote_by_{door}"](server, line, ident, ballot, seen)

    return vote


def vote_by_page(server: RunningServer, _: Line, ident: str, ballot: Vote, seen: str | None) -> bool:
    word = "approve" if ballot.approved else "deny"
    answer = send(server.sign_in("Ana"), ident, word, ballot.reason, seen=seen or "")
    return answer.status_code == 303


def vote_by_key(server: RunningServer, _: Line, ident: str, ballot: Vote, seen: str | None) -> bool:
    client = server.open_client(key=server.make_key("approve", approver="Ana"))
    body: dict[str, Any] = {"approved": ballot.approved, "reason": ballot.reason}
    body |= {} if seen is None else {"seen": seen}
    return client.post(f"/v1/approvals/{ident}/votes", json=body).status_code == 200


def vote_by_session(server: RunningServer, _: Line, ident: str, ballot: Vote, seen: str | None) -> bool:
    client = server.sign_in("Ana")
    headers = {"X-CSRF-Token": find_token(client, "/approvals")}
    body = {"approved": ballot.approved, "reason": ballot.reason, "seen": seen}
    return client.post(f"/v1/approvals/{ident}/votes", json=body, headers=headers).status_code == 200


def vote_by_client(server: RunningServer, _: Line, ident: str, ballot: Vote, seen: str | None) -> bool:
    client = Client(server.url, key=server.make_key("approve", approver="Ana"))
    try:
        client.approvals().decide_sync(ident, ballot.approved, ballot.reason, seen=seen)
    except UsageError:
        return False
    finally:
        client.close()
    return True


def vote_by_command(server: RunningServer, line: Line, ident: str, ballot: Vote, seen: str | None) -> bool:
    word = "approve" if ballot.approved else "deny"
    more = [] if seen is None else ["--seen", seen]
    ran = line("approvals", word, ident, "--reason", ballot.reason, *more, "--ledger", server.ledger_url)
    assert ran.status in (0, 2)
    return ran.status == 0


@pytest.mark.parametrize("door", DOORS)
def test_a_vote_without_what_the_page_demands_does_not_count(door: str, server: RunningServer, give: Any):
    """Every door: without what was shown, with something else, or overriding the judge without a reason."""
    ident = make_request(server, approvers=["Ana", ME])
    for fault, vote in FAULTY.items():
        assert give(door, ident, vote) is False, fault
    after = read_approval(server, ident)

    assert (after.status, after.votes, after.pending_votes) == ("open", (), ())
    # Another digest is an attempt that is recorded; what is missing is told, and recorded nowhere.
    assert list_kinds(server, ident) == ["requested", "voted"]


@pytest.mark.parametrize("door", DOORS)
def test_a_vote_with_all_of_it_counts(door: str, server: RunningServer, give: Any):
    """Every door takes it, once."""
    ident = make_request(server, approvers=["Ana", ME])

    assert give(door, ident, Vote()) is True
    after = read_approval(server, ident)
    assert [vote.reason for vote in (*after.votes, *after.pending_votes)] == ["I read it."]
    assert give(door, ident, Vote()) is False


@pytest.mark.parametrize("door", DOORS[:-1])
def test_a_denial_needs_no_more_than_a_person(door: str, server: RunningServer, give: Any):
    """Nothing is let through by it; the command wants a reason of every decision."""
    ident = make_request(server, approvers=["Ana", ME])

    assert give(door, ident, Vote(approved=False, reason="", seen=None)) is True


def test_the_command_takes_the_digest_that_show_prints(server: RunningServer, capsys: Any, monkeypatch: Any, tmp_path):
    """Its first 12 characters; fewer are refused, and so is another beginning."""
    isolate(monkeypatch, tmp_path)
    line, where = Line(capsys), ("--ledger", server.ledger_url)
    ident = make_request(server, approvers=[ME])
    printed = line("approvals", "show", ident, *where).out.split("--seen ")[1].split()[0]

    for seen in (printed[:11], printed[:-1] + ("0" if printed[-1] != "0" else "1")):
        assert line("approvals", "approve", ident, "--reason", "x", "--seen", seen, *where).status == 2
    missing = line("approvals", "approve", ident, "--reason", "x", *where)
    assert (missing.status, f"adjudge approvals show {ident}" in missing.err) == (2, True)
    assert line("approvals", "approve", ident, "--reason", "x", "--seen", printed, *where).status == 0


def test_what_a_client_computes_is_what_the_server_shows(server: RunningServer):
    """From what it received, with content and result; a program in another language sends the member back."""
    ident = make_request(server, approvers=["Ana"])
    key = server.make_key("approve", approver="Ana")
    shown = server.open_client(key=key).get(f"/v1/approvals/{ident}").json()["shown"]
    client = Client(server.url, key=key)
    approval = client.approvals().get_sync(ident)
    client.close()

    assert shown == digest_shown(approval) == digest_shown(read_approval(server, ident))
