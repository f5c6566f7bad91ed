"""``adjudge approvals``: what people are asked, decided as the operating system's user and as nobody else."""

from __future__ import annotations

import hashlib
import json
import pwd
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from adjudge import Gate, open_dataset
from adjudge.guards import Approval, digest_shown
from adjudge.ledger import create_signing_key
from kit import asgi, cli
from kit.approvals import make_result, tell, use
from kit.cli import ESCAPES, HIDDEN, ME, Line
from kit.judges import names
from kit.ledgers import SECRET, find, make_chain_result, verify
from kit.ledgers import make_result as make_quoting_result

pytestmark = pytest.mark.timed


TEXT = "The text."
URL = "sqlite:///a.db"
HERE = ("--ledger", "a.db")


@pytest.fixture
def line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    cli.isolate(monkeypatch, tmp_path)
    cli.feed(monkeypatch, terminal=True)
    return Line(capsys)


def digest(text: str) -> str:
    """The digest of a content that is a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def request(*approvers: str, result: Any = None, message: str = "Publish it?", url: str = URL, **options: Any) -> str:
    """The id of a new request about a text, which this user may decide unless somebody else is named."""

    async def go(approvals: Any) -> str:
        options.setdefault("content", TEXT)
        about = make_result(subject=digest(options["content"] or TEXT)) if result is None else result
        return await approvals.request(about, message, approvers=approvers or (ME,), **options)

    return use(url, go)


def get(ident: str) -> Approval:
    return use(URL, lambda approvals: approvals.get(ident))


# ---------------------------------------------------------------- deciding


@pytest.mark.parametrize(("command", "status"), [("approve", "approved"), ("deny", "denied")])
def test_a_decision_is_recorded_as_this_systems_user(line: Line, command: str, status: str):
    """With the reason, and what became of the request is printed."""
    ident = request(ME, "bob")
    done = line.vote(ident, "--reason", "I read it", *HERE, command=command)
    vote = find(URL, kind="approval.voted")[0]

    assert done.status == 0
    voted, closed = done.out.splitlines()
    assert names(voted, ident, f"{ME} {'approves' if status == 'approved' else 'denies'}", f"entry {vote.seq}")
    assert names(closed, ident, f"{status} by {ME}", "I read it")
    assert (get(ident).status, get(ident).decided_by, get(ident).closed_by) == (status, "human", (ME,))
    assert vote.payload is not None
    assert (vote.payload["by"], vote.payload["reason"]) == (ME, "I read it")
    assert verify(URL)


def test_more_approvals_may_be_needed(line: Line):
    """It says how many and whose."""
    ident = request(ME, "bob", "cy", required=2)
    done = line.vote(ident, "--reason", "fine", *HERE)

    assert done.status == 0
    assert names(done.out.splitlines()[1], ident, "open", "1 of 2", "bob, cy")
    assert get(ident).status == "open"


def test_nobody_can_decide_as_somebody_else(line: Line, monkeypatch: pytest.MonkeyPatch):
    """No option names a person and no variable does; an account without a name is its number."""
    ident = request("bob")
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "bob")

    assert line("approvals", "approve", ident, "--reason", "x", "--by", "bob", *HERE).status == 2
    assert line.vote(ident, "--reason", "x", *HERE).status == 2

    def forget_names(_: int) -> Any:
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", forget_names)
    done = line.vote(ident, "--reason", "x", *HERE)

    assert done.status == 2
    assert "'uid " in done.sentence
    assert get(ident).status == "open"


@pytest.mark.parametrize(
    ("approvers", "before", "message"),
    [
        (("bob",), 0, f"'{ME}' is none of the approvers of "),
        ((ME,), 1, f"'{ME}' has decided "),
        ((ME, "bob"), 1, f"'{ME}' has decided "),
    ],
)
def test_what_does_not_count_is_status_2_and_recorded(
    line: Line, approvers: tuple[str, ...], before: int, message: str
):
    """Whoever may not decide, or has decided, is told so."""
    ident = request(*approvers, required=len(approvers))
    for _ in range(before):
        line.vote(ident, "--reason", "first", *HERE)
    done = line("approvals", "deny", ident, "--reason", "second", *HERE)

    assert done.status == 2
    assert message in done.sentence
    assert done.sentence.endswith("the attempt is recorded")
    assert tell(URL)[-1] == ("voted", False, ME)


def test_what_is_not_shown_in_full_can_be_denied_only(line: Line):
    """Whoever approves it has not seen what passes."""
    ident = request(ME, content=None)
    done = line.vote(ident, "--reason", "I trust them", *HERE)

    assert done.status == 2
    assert names(done.sentence, ident, "does not show all", "can be denied", "content is not kept")
    assert (get(ident).status, get(ident).votes) == ("open", ())
    assert line.vote(ident, "--reason", "nobody can see it", *HERE, command="deny").status == 0
    assert get(ident).status == "denied"


def test_somebody_who_may_not_decide_is_told_who_may(line: Line):
    """The account is what counts, so approvers have to be named by their accounts."""
    done = line.vote(request("bob", "cy"), "--reason", "x", *HERE)

    assert done.status == 2
    assert "bob, cy may decide this, and the command decides as the account it runs under" in done.sentence
    assert f"'{ME}' is none of the approvers of " in done.sentence


def test_what_follows_names_the_ledger_that_was_named(line: Line):
    """So that the proposed command can be typed as it stands."""
    ident = asgi.run(URL, asgi.Shop.hold, ask={"approvers": [ME]}, show_content=True)
    shown = line("approvals", "show", ident, *HERE)

    assert f"adjudge approvals approve {ident} --reason WHY --ledger a.db" in shown.out


@pytest.mark.parametrize("command", ["approve", "wait"])
def test_a_request_over_http_goes_on_by_its_client(line: Line, command: str):
    """`gate resume` would use the approval up, and the client be refused."""
    ident = asgi.run(URL, asgi.Shop.hold, ask={"approvers": [ME]}, show_content=True)
    done = line.vote(ident, "--reason", "fine", *HERE)
    if command == "wait":
        done = line("approvals", "wait", ident, *HERE)

    assert done.status == 0
    assert f"the client repeats its request with the header Adjudge-Approval: {ident}" in done.err
    assert "gate resume" not in done.err


def test_an_id_may_be_cut_short(line: Line):
    """Its end will do, and what is not unique decides nothing."""
    one, other = request(), request()
    done = line.vote(one[:6], "--reason", "x", *HERE)

    assert done.status == 2
    assert "and perhaps more have" in done.sentence
    assert line.vote(other[-8:], "--reason", "x", *HERE).status == 0
    assert [get(item).status for item in (one, other)] == ["open", "approved"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("approve", "1234", "--reason", " "), "--reason is empty; say why"),
        (("approve", "1234"), "--reason"),
        (("approve", "zzzz", "--reason", "x"), "no approval 'zzzz' … `adjudge approvals list --status all`"),
        (("show", "\x1b[31m"), "there is no approval '\\x1b[31m'"),
        (("list", "--status", "closed"), "--status … open, approved, denied, all … 'closed'"),
        (("wait", "1234", "--timeout", "-1"), "--timeout … from 0 on … -1.0"),
        (("wait", "1234", "--timeout", "nan"), "--timeout … from 0 on … nan"),
        (("export", "taken.jsonl"), "taken.jsonl … File exists … a new file"),
    ],
)
def test_what_is_written_wrong_is_a_sentence(line: Line, arguments: tuple[str, ...], message: str):
    """It names what was given and the remedy, and nothing is decided."""
    ident = request()
    Path("taken.jsonl").touch()
    done = line("approvals", *arguments, *HERE)

    assert done.status == 2
    assert names(done.sentence, *message.split(" … "))
    assert get(ident).votes == ()


def test_a_mistyped_ledger_is_not_made(line: Line):
    """Looking, and deciding, make no file."""
    for command in (("list",), ("show", "abcd"), ("approve", "abcd", "--reason", "x"), ("export", "out.jsonl")):
        assert "there is no ledger at" in line("approvals", *command, "--ledger", "lost.db").sentence
    assert "no ledger is named" in line("approvals", "list").sentence
    assert list(Path().iterdir()) == []


def test_a_signed_ledger_is_signed_by_who_decides(line: Line):
    """With the key of ``[ledger]``; without it, nothing can be added, and so nothing decided."""
    create_signing_key("key.pem")
    Path("adjudge.toml").write_text(f'[ledger]\nurl = "{URL}"\nkey = "key.pem"\n', encoding="utf-8")

    async def go(approvals: Any) -> str:
        result = make_result(subject=digest(TEXT))
        return await approvals.request(result, "Publish it?", approvers=[ME], content=TEXT)

    ident = use_signed(go)
    Path("other").mkdir()
    seen = line("approvals", "show", ident, "--json").document["shown"]
    without = ("--config", write_empty("other/adjudge.toml"))
    refused = line("approvals", "approve", ident, "--reason", "x", "--seen", seen, *HERE, *without)
    done = line.vote(ident, "--reason", "x")

    assert refused.status == 2
    assert "key" in refused.sentence
    assert (done.status, get_signed(ident)) == (0, "approved")


def use_signed(work: Any) -> Any:
    import asyncio

    from adjudge import Approvals, Ledger

    async def go() -> Any:
        async with Ledger(URL, key="key.pem") as ledger, Approvals(ledger) as approvals:
            return await work(approvals)

    return asyncio.run(go())


def get_signed(ident: str) -> str:
    async def go(approvals: Any) -> str:
        return (await approvals.get(ident)).status

    return use_signed(go)


def write_empty(path: str) -> str:
    Path(path).touch()
    return path


# ---------------------------------------------------------------- looking


def test_list_shows_what_is_open(line: Line):
    """A line each: id, what, who, until when, score and reason; of others, with how they ended."""
    one = request(ME, "bob", expires_in=7_200 + 60, message="Send this?")
    done = request()
    use(URL, lambda approvals: approvals.decide(done, ME, True, "fine"))
    shown = line("approvals", "list", *HERE)
    every = line("approvals", "list", "--status", "all", *HERE)

    [row] = shown.out.splitlines()[1:]
    cells = row.split("\t")
    assert (cells[0], cells[1], cells[3], cells[5:]) == (one, "Send this?", f"1 of {ME}, bob", ["2 h", "0.20"])
    assert cells[4].endswith(" s ago")
    assert done not in shown.out
    assert [row.split("\t")[1] for row in every.out.splitlines()] == ["status", "open", "approved"]
    assert line("approvals", "list", "--status", "denied", *HERE).err.startswith("no requests that are denied")
    assert line("approvals", "list", "--approver", "cy", *HERE).err.startswith("no requests that are open, for 'cy' to")
    assert line("approvals", "list", "--approver", "bob", "--json", *HERE).document["approvals"][0]["id"] == one
    assert line("approvals", "list", "--approver", "cy", "--json", *HERE).document["approvals"] == []


def test_list_shows_the_title_that_a_program_gave(line: Line):
    """In one line, and beside the gate; without one, what would be done, and how the content begins."""

    async def hold(approvals: Any) -> None:
        gate = Gate("replies", rules=[{"contains": "yes"}], on_rule="ask", approvals=approvals, ask={"approvers": [ME]},
                    show_content=True, wait=False)  # fmt: skip
        await gate.check(TEXT, metadata={"title": "Refund 184.00 EUR\non order 77418", "agent": "support"})
        await gate.check(TEXT, metadata={"tool": "payments.refund"})
        await gate.check(TEXT)

    use(URL, hold)
    rows = [row.split("\t")[1:3] for row in line("approvals", "list", *HERE).out.splitlines()[1:]]

    assert rows == [
        ["Refund 184.00 EUR on order 77418", "replies"],
        [f"payments.refund: {TEXT}", "payments.refund"],
        [f"replies: {TEXT}", "replies"],
    ]


def test_list_closes_what_has_expired(line: Line):
    """By whoever looks first: afterwards it is denied, by policy."""
    ident = request(expires_in=0.001)
    listed = line("approvals", "list", "--json", *HERE).document

    assert (listed["schema"], listed["approvals"]) == ("adjudge/approvals/1", [])
    assert (get(ident).status, get(ident).decided_by) == ("denied", "policy")


def test_show_has_everything_a_person_needs(line: Line):
    """What is asked and why, criterion by criterion and seat by seat, the content, and each step with its entry."""
    result = make_chain_result(make_quoting_result(detail="so it says"))
    ident = request(ME, "bob", result=result, required=2, content="The content.", expires_in=3_600)
    line.vote(ident, "--reason", "I read it", *HERE)
    shown = line("approvals", "show", ident[-6:], *HERE)

    assert shown.status == 0
    for text in (
        f"approval     {ident}",
        "state        open: 1 of 2 still to approve, by bob",
        "message      Publish it?",
        "seat         careful: ✗ failed 0.25 of 0.70 needed: so it says",
        "content      as it was judged\n  | The content.\n",
        f"approval.requested: asked {ME}, bob; needs 2",
        f"approval.voted: {ME} approves: I read it",
    ):
        assert text in shown.out, text
    assert [row.split()[1] for row in shown.out.splitlines() if row.startswith("entry")] == ["2", "3"]
    digest = digest_shown(get(ident))[:12]
    assert f"adjudge approvals approve {ident} --reason WHY --ledger a.db --seen {digest}\n" in shown.out
    assert f"adjudge approvals deny {ident} --reason WHY --ledger a.db\n" in shown.out
    assert shown.err == ""
    assert line("approvals", "show", request(result=make_quoting_result()), *HERE).out.count(SECRET) > 5


def test_show_says_whether_the_content_is_what_was_judged(line: Line):
    """The table protects nothing: a person must not approve one text and let another one through."""
    ident = request(result=make_result(subject=None), content="The content.")
    before = line("approvals", "show", ident, *HERE).out
    with closing(sqlite3.connect("a.db")) as connection, connection:
        connection.execute("UPDATE adjudge_approvals SET body = replace(body, 'The content.', 'Harmless.')")
    after = line("approvals", "show", ident, *HERE).out

    assert "content      as it was judged\n  | The content.\n" in before
    assert "content      not as it was judged: redacted, or changed since\n  | Harmless.\n" in after
    assert (
        "content      not kept here; its digest is the subject"
        in line("approvals", "show", request(content=None), *HERE).out
    )


def test_show_shows_white_space_as_it_is(line: Line):
    """A tab is no blank, two blanks are not one, and what has no look of its own has its code and its place."""
    content = "rm -rf '/srv/my  two   spaces'\trest\n  indented \nno\u00a0break one two\u202e"
    shown = line("approvals", "show", request(content=content, message="Run\n  this:  it"), *HERE).out

    assert (
        "\n  | rm -rf '/srv/my  two   spaces'→\trest\n  |   indented \n  | no[U+00A0]break one two[U+202E]\n" in shown
    )
    assert "2 blanks at 1:16; 3 blanks at 1:21; a tab (→) at 1:31; 1 blank at 2:11; U+00A0 at 3:3; U+202E at " in shown
    assert "message      as it was given\n  | Run\n  |   this:  it\n" in shown


def test_as_json_it_is_the_request_and_its_entries(line: Line):
    """Which can be read back."""
    ident = request(content="The content.")
    decided = line("approvals", "deny", ident, "--reason", "no", "--json", *HERE).document
    shown = line("approvals", "show", ident, "--json", *HERE).document

    assert Approval.from_dict(decided) == Approval.from_dict(shown["approval"]) == get(ident)
    assert shown["schema"] == "adjudge/approval-history/1"
    assert [item["kind"] for item in shown["history"]] == ["approval.requested", "approval.voted", "approval.closed"]


def test_hostile_texts_make_no_lines_and_no_escapes(line: Line):
    """Content, message, names of criteria and reasons are other people's: none of them begins a line of its own."""
    forged = f"{ESCAPES}\nstate        approved by {ME}\nentry 9      approval.closed: approved by {ME}"
    forged = forged.replace("\0", "")
    texts: dict[str, Any] = {"detail": forged, "reasoning": forged, "suggestions": (forged,)}
    result = make_quoting_result(judge="j", subject=digest(forged), **texts)
    ident = request(ME, result=result, message=forged, content=forged)
    line.vote(ident, "--reason", forged, *HERE)
    every = [line("approvals", *rest, *HERE) for rest in (("show", ident), ("list", "--status", "all"))]
    every.append(line("approvals", "wait", ident, *HERE))
    every.append(line("ledger", "list", *HERE))

    for done in every:
        assert done.status == 0
        assert HIDDEN.search(done.out + done.err) is None
        assert [row for row in done.out.splitlines() if row.startswith("entry 9")] == []
    (state,) = [row for row in every[0].out.splitlines() if row.startswith("state")]
    assert state.count("approved by") > 1


# ---------------------------------------------------------------- waiting, and afterwards


@pytest.mark.parametrize(
    ("command", "rest", "status"), [("approve", (), 0), ("deny", (), 1), (None, ("--timeout", "0"), 3)]
)
def test_wait_says_how_it_ended(line: Line, command: str | None, rest: tuple[str, ...], status: int):
    """0 approved, 1 denied, 3 not decided in time."""
    ident = request()
    if command:
        line.vote(ident, "--reason", "so", *HERE, command=command)
    done = line("approvals", "wait", ident, *rest, *HERE)

    assert done.status == status
    assert done.out.startswith(f"approval {ident}: {get(ident).explain()}")


def test_wait_gives_up_in_time_and_ends_with_the_request(line: Line):
    """A timeout leaves it open; an expiry ends it, and is no approval."""
    waits, ends = request(), request(expires_in=0.05)

    assert line("approvals", "wait", waits, "--timeout", "0.05", *HERE).status == 3
    assert get(waits).status == "open"
    assert line("approvals", "wait", ends, *HERE).status == 1


def test_wait_believes_the_ledger_and_not_the_table(line: Line):
    """Status 3 for an approval that nobody recorded: whoever goes on with 0 must not go on here."""
    ident = request()
    line("approvals", "deny", ident, "--reason", "no", *HERE)
    with closing(sqlite3.connect("a.db")) as connection, connection:
        connection.execute("UPDATE adjudge_votes SET approved = 1")
        connection.execute(
            "UPDATE adjudge_approvals SET status = 'approved', "
            'body = replace(body, \'"status": "denied"\', \'"status": "approved"\')'
        )
    done = line("approvals", "wait", ident, *HERE)

    assert done.status == 3
    assert "the ledger does not confirm" in done.sentence


def test_overrides_are_exported_as_labelled_cases(line: Line):
    """Those in which people and judge disagreed, with what they said."""
    over, agreed = request(content="The content."), request(content="Another.")
    line.vote(over, "--reason", "it is fine", *HERE)
    line("approvals", "deny", agreed, "--reason", "it is not", *HERE)
    done = line("approvals", "export", "cases.jsonl", *HERE)
    (row,) = open_dataset("cases.jsonl")

    assert done.out == "1 override written to cases.jsonl\n"
    assert (row.content, row.label, row.labels) == ("The content.", True, {ME: True})


def test_forget_deletes_the_texts_of_a_closed_request(line: Line):
    """Not of an open one, which people have to read."""
    ident = request(result=make_quoting_result(subject=digest(SECRET)), content=SECRET)
    early = line("approvals", "forget", ident, *HERE)
    line.vote(ident, "--reason", "x", *HERE)
    done = line("approvals", "forget", ident, *HERE)

    assert (early.status, done.status) == (2, 0)
    assert "is open, and people have to read it" in early.sentence
    assert SECRET not in line("approvals", "show", ident, *HERE).out
    assert json.loads(line("approvals", "forget", ident, "--json", *HERE).out)["content"] is None
