"""Gates of adjudge.toml that ask people: held back, decided on another command line, and resumed in a third."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from adjudge import Approvals, Decision
from adjudge.guards import verify_webhook
from kit import cli
from kit.approvals import use
from kit.cli import ME, WORDS, Line, Ran
from kit.judges import names
from kit.ledgers import find, run, verify
from kit.patience import HANG

pytestmark = pytest.mark.timed


URL = "sqlite:///adjudge.db"
SECRET = "a secret of enough bytes"
GATE = (
    f'[judges.words]\nseats = ["{WORDS}"]\nreask = 0\n[rubrics]\npolite = "polite.yaml"\n'
    '[gates.publish]\nrubric = "polite"\njudge = "words"\non_failed = "ask"\non_undecided = "ask"\n'
)
LEDGER = f'[ledger]\nurl = "{URL}"\n'
BLIND = f'[approvals]\napprovers = ["{ME}", "bob"]\n'
PEOPLE = BLIND + "show_content = true\n"


@pytest.fixture
def line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    cli.isolate(monkeypatch, tmp_path)
    cli.feed(monkeypatch, terminal=True)
    for name in ("good", "bad", "odd"):
        Path(f"{name}.txt").write_text(name, encoding="utf-8")
    Path("polite.yaml").write_text(
        "name: Polite\ncriteria:\n  - {name: criteria, description: Is polite.}\n", encoding="utf-8"
    )
    configure(GATE + LEDGER + PEOPLE)
    return Line(capsys)


def configure(text: str) -> None:
    Path("adjudge.toml").write_text(text, encoding="utf-8")


def check(line: Line, *arguments: str) -> Ran:
    return line("gate", "check", "publish", *arguments)


def hold(line: Line, file: str = "bad.txt") -> str:
    """The id of the approval under which the gate holds a file back."""
    return check(line, file, "--json").document["approval_id"]


def decide(line: Line, ident: str, command: str = "approve") -> None:
    assert line.vote(ident, "--reason", "we agreed", command=command).status == 0


# ---------------------------------------------------------------- held back, and resumed


def test_what_is_held_back_says_how_to_go_on(line: Line):
    """Status 3, the approval's id, and the commands; what passes asks nobody."""
    done = check(line, "bad.txt")
    (item,) = use(URL, lambda approvals: approvals.list())

    assert done.status == 3
    summary = "pending by policy: a person was asked; failed with 0.00 (needs 0.70)"
    assert done.out == f"{summary}; approval {item.id}\n"
    look, vote, go_on = done.err.splitlines()
    assert names(look, f"adjudge approvals show {item.id}")
    assert names(vote, f"adjudge approvals approve {item.id} --reason WHY", "deny")
    assert names(go_on, f"adjudge gate resume {item.id} bad.txt")
    assert (item.gate, item.approvers) == ("publish", (ME, "bob"))
    assert check(line, "good.txt").status == 0
    assert len(use(URL, lambda approvals: approvals.list(status=None))) == 1


@pytest.mark.parametrize(("command", "status", "word"), [("approve", 0, "allowed"), ("deny", 1, "blocked")])
@pytest.mark.parametrize("file", ["bad.txt", "odd.txt"])
def test_a_person_decides_and_another_command_goes_on(line: Line, file: str, command: str, status: int, word: str):
    """0 when it was approved and 1 when it was denied, whether a judge failed it or could not decide."""
    ident = hold(line, file)
    early = line("gate", "resume", ident, file)
    decide(line, ident, command)
    done = line("gate", "resume", ident[-6:], file)
    allowed = [(entry.payload or {}).get("allowed") for entry in find(URL, kind="decision")]

    assert (early.status, done.status) == (3, status)
    assert early.out.startswith("pending by policy: a person was asked")
    assert done.out.startswith(f"{word} by human: {'approved' if status == 0 else 'denied'} by {ME}: we agreed")
    assert allowed == [False, status == 0]
    assert verify(URL)


def test_a_decision_says_what_follows_from_it(line: Line):
    """What was approved goes on; of what was denied nothing does, and the command only records it."""
    one, other = hold(line), hold(line)

    approved = line.vote(one, "--reason", "we agreed")
    denied = line("approvals", "deny", other, "--reason", "we did not")

    assert names(approved.err, f"adjudge gate resume {one} FILE", "held back")
    assert names(denied.err, "stays blocked", f"adjudge gate resume {other}", "records")


def test_a_file_is_named_so_that_a_shell_reads_it(line: Line):
    """A name with a space is quoted in the command that goes on; standard input has no name."""
    Path("bad one.txt").write_text("bad", encoding="utf-8")

    assert check(line, "bad one.txt").err.endswith(" 'bad one.txt'\n")


def test_the_resumed_decision_is_the_one_that_was_held_back(line: Line):
    """The same content, result and configuration under a new id; and it can be read back."""
    held = Decision.from_dict(check(line, "bad.txt", "--json").document)
    assert held.approval_id is not None
    decide(line, held.approval_id)
    done = Decision.from_dict(line("gate", "resume", held.approval_id, "--json").document)

    assert done.allowed
    assert done.decided_by == "human"
    assert (done.subject, done.config, done.gate, done.approval_id) == (
        held.subject,
        hashlib.sha256(Path("adjudge.toml").read_bytes()).hexdigest(),
        "publish",
        held.approval_id,
    )
    assert done.result is not None
    assert held.result is not None
    assert (done.result.id, done.result.score) == (held.result.id, 0.0)
    assert done.id != held.id


@pytest.mark.parametrize(("kept", "reasoning"), [("hash", ""), ("full", "it says bad")])
def test_no_digest_is_recorded_as_if_a_judge_had_said_it(line: Line, kept: str, reasoning: str):
    """What the ledger holds only as a digest is left out of the decision that takes its place."""
    configure(GATE + LEDGER + f'store_content = "{kept}"\n' + PEOPLE)
    ident = hold(line)
    decide(line, ident)
    line("gate", "resume", ident)
    pending, final = [(entry.payload or {})["result"] for entry in find(URL, kind="decision")]

    assert pending["reasoning"].startswith("sha256:" if kept == "hash" else "it says bad")
    assert (final["reasoning"], final["criteria"][0]["reasoning"]) == (reasoning, reasoning)
    assert (final["score"], final["criteria"][0]["name"]) == (0, "criteria")


def test_another_file_is_not_what_was_approved(line: Line):
    """Between asking and using, the file may have been changed: then nothing goes on."""
    ident = hold(line)
    decide(line, ident)
    Path("bad.txt").write_text("worse", encoding="utf-8")
    done = line("gate", "resume", ident, "bad.txt")

    assert done.status == 2
    assert names(done.sentence, "bad.txt", "not what was held back", "another digest", "through the gate")
    assert "cannot read lost.txt" in line("gate", "resume", ident, "lost.txt").sentence
    assert len(find(URL, kind="decision")) == 1


def test_rows_of_a_data_set_are_asked_about_one_by_one(line: Line):
    """And are told from each other by their content."""
    rows = [{"id": "a", "content": "bad one"}, {"id": "b", "content": "good"}, {"id": "c", "content": "bad two"}]
    Path("rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    done = check(line, "rows.jsonl", "--json")
    asked = [item["approval_id"] for item in done.document["decisions"]]
    decide(line, asked[2])

    assert done.status == 3
    assert asked[1] is None
    assert line("gate", "resume", asked[0], "rows.jsonl").status == 3
    assert line("gate", "resume", asked[2], "rows.jsonl").status == 0
    assert (
        "approve ID --reason WHY --seen DIGEST   (or deny)\nto resume: adjudge gate resume ID FILE\n"
        in check(line, "rows.jsonl").err
    )


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda _: configure(GATE.replace('"ask"', '"block"') + LEDGER + PEOPLE), "no longer asks anybody"),
        (lambda _: configure(LEDGER + PEOPLE), "there is no gate 'publish'"),
        (
            lambda ident: use(URL, lambda approvals: approvals.forget(ident)),
            "is about was deleted, so nothing can be resumed",
        ),
        (lambda _: configure(GATE + PEOPLE), "no ledger is named"),
    ],
)
def test_what_cannot_be_resumed_is_a_sentence(line: Line, spoil: Callable[[str], object], message: str):
    """And never allowed."""
    ident = hold(line)
    decide(line, ident)
    spoil(ident)
    done = line("gate", "resume", ident)

    assert done.status == 2
    assert message in done.sentence


# ---------------------------------------------------------------- waiting


@contextmanager
def somebody(deciding: dict[str, bool]) -> Iterator[None]:
    """Somebody who decides, once all of it is asked, each request by the judge's outcome."""
    run(URL, lambda ledger: ledger.prepare())

    def look() -> Any:
        return use(URL, lambda approvals: approvals.list())

    def work() -> None:
        while len(asked := look()) < len(deciding):
            time.sleep(0.01)
        use(URL, lambda approvals: decide_each(approvals, asked))

    async def decide_each(approvals: Approvals, asked: Any) -> None:
        for item in asked:
            await approvals.decide(item.id, "bob", deciding[item.outcome], "by phone")

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        thread.join(timeout=HANG)
    assert not thread.is_alive()


def test_wait_ends_with_the_persons_decision(line: Line):
    """Everything is asked first, even one after the other, and waited for afterwards."""
    with somebody({"failed": True, "undecided": False}):
        done = check(line, "bad.txt", "good.txt", "odd.txt", "--wait", "--concurrency", "1")

    outcomes = [row.split(":")[1] for row in done.out.splitlines()]
    assert outcomes == [" allowed by human", " allowed by judge", " blocked by human"]
    assert done.status == 1
    assert done.err.count("waits for approval") == 2
    assert verify(URL)


@pytest.mark.parametrize(
    ("on_expiry", "file", "status"),
    [("approve", "bad.txt", 0), ("deny", "bad.txt", 1), ("approve", "odd.txt", 0), ("deny", "odd.txt", 3)],
)
def test_waiting_ends_with_the_request(line: Line, on_expiry: str, file: str, status: int):
    """An expiry decides by policy: let through only where the file asks for it by name."""
    configure(GATE + LEDGER + PEOPLE + f'expires_in = 0.05\non_expiry = "{on_expiry}"\n')
    done = check(line, file, "--wait")

    assert done.status == status
    assert done.out.startswith(f"{'allowed' if on_expiry == 'approve' else 'blocked'} by policy: ")
    assert "it expired" in done.out


def test_resume_may_wait_as_well(line: Line):
    """For the script that has nothing else to do."""
    ident = hold(line)
    with somebody({"failed": True}):
        done = line("gate", "resume", ident, "--wait")

    assert done.status == 0
    assert "approved by bob: by phone" in done.out


# ---------------------------------------------------------------- who is asked


def test_a_gate_may_ask_others(line: Line):
    """Its own ``ask`` stands over [approvals], key by key."""
    configure(GATE + 'ask = {approvers = ["ana", "cy"], required = 2}\n' + LEDGER + PEOPLE + "expires_in = 60\n")
    hold(line)
    (item,) = use(URL, lambda approvals: approvals.list())

    assert (item.approvers, item.required, item.content) == (("ana", "cy"), 2, "bad")
    assert item.expires_at is not None
    assert (item.expires_at - item.created_at).total_seconds() == 60


def test_people_are_shown_the_content_where_the_file_says_so(line: Line):
    """The request carries it, beside its digest."""
    ident = hold(line)

    assert use(URL, lambda approvals: approvals.get(ident)).content == "bad"


def test_what_nobody_can_read_nobody_can_approve(line: Line):
    """By default a request has the digest alone. Whoever checks, looks or approves is told what keeps the content."""
    configure(GATE + LEDGER + BLIND)
    checked = check(line, "bad.txt")
    (item,) = use(URL, lambda approvals: approvals.list())
    looked = line("approvals", "show", item.id)
    voted = line.vote(item.id, "--reason", "we agreed")

    assert (checked.status, voted.status) == (3, 2)
    assert all("show_content = true" in said for said in (checked.err, looked.out, voted.sentence))
    assert "approvals approve" not in checked.err + looked.out
    assert "adjudge approvals deny" in looked.out
    assert use(URL, lambda approvals: approvals.get(item.id)).status == "open"
    assert line.vote(item.id, "--reason", "we did not", command="deny").status == 0


def test_a_gate_that_the_file_does_not_have_is_resumed_by_its_program(line: Line):
    """No command could open it, so none is named."""
    one, other = hold(line), hold(line)
    configure(LEDGER + PEOPLE)

    approved = line.vote(one, "--reason", "we agreed")
    denied = line("approvals", "deny", other, "--reason", "we did not")

    assert "await gate.resume(decision, content=...)" in approved.err
    assert "adjudge gate resume" not in approved.err + denied.err


def test_a_judge_may_answer_first(line: Line):
    """A judge of the file; its sure pass lets through in its own name."""
    code = "from kit import cli\n\n\ndef approve(prompt):\n    return cli.answer(prompt, 1, names=('approval',))\n"
    Path("second_judge.py").write_text(code, encoding="utf-8")
    panel = '[judges.panel]\nseats = ["yes", "yes", "yes"]\nstrategy = "majority"\nstop_early = false\n'
    panel += '[judges.yes]\nseats = ["python:second_judge:approve"]\n'
    configure(GATE + panel + LEDGER + PEOPLE + 'first = "panel"\n')
    done = check(line, "bad.txt", "--json")

    assert done.status == 0
    assert (done.document["decided_by"], done.document["answer"]["judge"]) == ("judge", "panel")
    assert [item["judge"] for item in line("doctor", "--offline", "--json").document["judges"]].count("panel") == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GATE + PEOPLE, "[gates.publish] … it asks people, and requests … kept beside a ledger … write url under [l"),
        (GATE + LEDGER, "[gates.publish] … it asks people, and nobody is named … write approvers under [approvals]"),
        (GATE + LEDGER + "[approvals]\napprovers = []\n", "nobody is named … write approvers under [approvals]"),
        (
            GATE + LEDGER + PEOPLE + "required = 3\n",
            "[gates.publish] … gate 'publish' … ask … required=3 needs as many",
        ),
        (GATE + LEDGER + PEOPLE + 'on_expiry = "approve"\n', "on_expiry='approve' needs expires_in"),
        (GATE + LEDGER + BLIND + 'first = "words"\n', "first needs the content … a gate hands over with show_c"),
        (GATE + LEDGER + PEOPLE + 'first = "wrds"\n', "'wrds' is neither a model nor a judge of adjudge.toml … did y"),
        (GATE + LEDGER + PEOPLE + "first = 3\n", "[approvals]: first … a judge's name in quotes … got 3"),
        (GATE + LEDGER + BLIND + "show_content = 1\n", "[approvals]: show_content … true or false … got 1"),
        (GATE + LEDGER + PEOPLE + "expire = 3\n", "[approvals] … unknown key 'expire' … did you mean 'expires_in'?"),
        (GATE + LEDGER + PEOPLE + "webhook = 3\n", "[approvals]: webhook … a table like"),
        (GATE + LEDGER + PEOPLE + 'webhook = {url = "https://a.example"}\n', "webhook needs secret_env, the name of"),
        (
            GATE + LEDGER + PEOPLE + f'webhook = {{url = "https://a.example", secret = "{SECRET}"}}\n',
            "[approvals] webhook … unknown key 'secret' … did you mean 'secret_env'?",
        ),
        (
            GATE + LEDGER + PEOPLE + 'webhook = {url = "https://a.example", secret_env = "HOOK_SECRET"}\n',
            "[approvals] webhook … the environment variable 'HOOK_SECRET' is not set … it holds the webhook's secret",
        ),
        (GATE + "ask = 3\n" + LEDGER, "[gates.publish] … ask … a table like"),
        (GATE + "ask = {webhook = 3}\n" + LEDGER, "[gates.publish] … ask … unknown key 'webhook'"),
        (
            GATE.replace('"ask"', '"block"') + 'ask = {approvers = ["ana"]}\n' + LEDGER,
            '[gates.publish] … ask says who is asked, and nothing is … write on_failed = "ask", or take it out',
        ),
    ],
)
def test_asking_that_is_written_wrong_is_a_sentence(line: Line, text: str, message: str):
    """It names the table and the remedy before anything is judged, in ``gate list`` as well, and shows no secret."""
    configure(text)
    done = check(line, "bad.txt")
    listed = line("gate", "list")

    assert done.status == listed.status == 2
    assert names(done.sentence, *message.split(" … "))
    assert names(listed.err, *message.split(" … "))
    assert SECRET not in done.err
    assert not Path("adjudge.db").exists()


def test_a_gate_that_asks_needs_its_ledger(line: Line):
    """``--no-ledger`` leaves nowhere to ask; ``--ledger`` stands in for the table."""
    off = check(line, "bad.txt", "--no-ledger")
    configure(GATE + PEOPLE)
    other = check(line, "bad.txt", "--ledger", "other.db")

    assert off.status == 2
    assert "requests are kept beside a ledger" in off.sentence
    assert other.status == 3
    assert len(use("sqlite:///other.db", lambda approvals: approvals.list())) == 1


# ---------------------------------------------------------------- the bell


@contextmanager
def receive() -> Iterator[tuple[str, list[tuple[Any, bytes]]]]:
    """A server that keeps what is sent to it, with its address."""
    deliveries: list[tuple[Any, bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            deliveries.append((self.headers, self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/hook", deliveries
        finally:
            server.shutdown()
            thread.join()


def test_a_webhook_tells_of_both_ends(line: Line, monkeypatch: pytest.MonkeyPatch):
    """Signed with the secret of the environment; a command line without it decides all the same, and says so."""
    monkeypatch.setenv("HOOK_SECRET", SECRET)
    with receive() as (url, deliveries):
        configure(GATE + LEDGER + PEOPLE + f'webhook = {{url = "{url}", secret_env = "HOOK_SECRET"}}\n')
        one, other = hold(line), hold(line)
        decide(line, one)
        monkeypatch.delenv("HOOK_SECRET")
        silent = line("approvals", "deny", other, "--reason", "no")
        hosts = line("doctor", "--offline", "--json").document["hosts"]

    read = [verify_webhook(dict(headers), body, SECRET, clock=time.time) for headers, body in deliveries]
    assert [(item["type"], item["data"]["approval"], item["data"]["status"]) for item in read] == [
        ("approval.requested", one, "open"),
        ("approval.requested", other, "open"),
        ("approval.closed", one, "approved"),
    ]
    assert silent.status == 0
    assert "no webhook is sent from here: HOOK_SECRET is not set" in silent.err
    assert url.split("/")[2] in hosts
