"""A request that waits for a person: sent again it goes on, once, and nobody else's does in its name."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
from collections import Counter as Tally
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from adjudge import Gate, Ledger, UsageError
from adjudge.errors import LedgerError
from adjudge.integrations.asgi import GateMiddleware, identify_caller
from kit.asgi import ANA, ASK, BODY, CALM, Counter, Reply, Shop, all_at_once, run, send, start
from kit.clock import Clock
from kit.gates import Desk
from kit.judges import failed
from kit.ledgers import find, open_schema, verify
from kit.patience import HANG

pytestmark = pytest.mark.timed


BOB = {"authorization": "Bearer bob's token"}
COOKIE = {"cookie": "session=1"}
NOT_ONE_OF_YOURS = 404


@pytest.fixture(name="store", params=["sqlite", "postgres"])
def make_store(request: pytest.FixtureRequest, tmp_path: Path, require) -> Iterator[str]:
    """Each store."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'adjudge.db'}"
    else:
        with open_schema(require) as url:
            yield url


def find_used(url: str) -> list[str]:
    """The approvals that the ledger says are used, once for each time."""
    return [str(payload["approval_id"]) for e in find(url, kind="decision") if (payload := e.payload or {}).get("used")]


# ---------------------------------------------------------------- from the first request to the answer


def test_a_request_that_waits_goes_on_once_it_is_approved(store: str):
    """202 with an id, 202 while nobody has decided, the application's own answer, and then 409."""

    async def work(shop: Shop) -> tuple[Reply, list[int], list[int]]:
        first = await shop.send(headers=ANA)
        ident = first.approval
        early = await shop.send(approval=ident, headers=ANA)
        assert early.document == first.document
        ran = [len(shop.app.bodies)]
        await shop.decide(ident)
        statuses = [(await shop.send(approval=ident, headers=ANA)).status for _ in range(3)]
        return first, statuses, [*ran, len(shop.app.bodies)]

    first, statuses, ran = run(store, work)

    assert first.status == 202
    assert first.document == {"status": "pending", "approval": first.approval, "decision": first.document["decision"]}
    assert int(first.headers["retry-after"]) > 0
    assert first.headers["cache-control"] == "no-store"
    assert (statuses, ran) == ([200, 409, 409], [0, 1])
    assert find_used(store) == [first.approval]
    assert verify(store)


def test_nothing_is_judged_again(url: str):
    """One judgement for however many repetitions, one request to the people, and what they read is one decision."""
    seat = failed()
    rubric = {"name": "Good", "criteria": [{"name": "good", "description": "It is good."}]}

    async def work(shop: Shop) -> int:
        ident = await shop.hold()
        for _ in range(3):
            assert (await shop.send(approval=ident)).status == 202
        await shop.decide(ident)
        assert (await shop.send(approval=ident)).status == 200
        return len(await shop.approvals.list(status=None))

    assert run(url, work, rules=(), rubric=rubric, judge=seat) == 1
    assert len(seat.asked) == 1
    kinds = Tally(entry.kind for entry in find(url))
    assert kinds["decision"] == 2  # the one that waits, and the one that took its place


def test_the_application_sees_the_request_and_not_the_id(url: str):
    """Byte for byte what was held back; an id that was used means nothing further in."""

    async def work(shop: Shop) -> Counter:
        ident = await shop.hold(headers=ANA)
        await shop.decide(ident)
        await shop.send(approval=ident, headers=ANA)
        return shop.app

    app = run(url, work)

    assert app.bodies == [BODY]
    names = [name for name, _ in app.scopes[0]["headers"]]
    assert b"adjudge-approval" not in names
    assert b"authorization" in names


def test_without_the_id_a_repetition_is_a_new_check(url: str):
    """It is judged anew and waits under an id of its own; the first one's approval is untouched."""

    async def work(shop: Shop) -> None:
        one = await shop.hold(headers=ANA)
        await shop.decide(one)
        other = await shop.hold(headers=ANA)
        assert other != one
        assert (await shop.send(approval=other, headers=ANA)).status == 202
        assert (await shop.send(approval=one, headers=ANA)).status == 200

    run(url, work)


def test_what_a_denied_client_is_told(url: str):
    """403, why in one word, and never the people's own reason unless ``explain`` says so."""

    async def work(shop: Shop) -> Reply:
        ident = await shop.hold()
        await shop.decide(ident, approved=False, reason="not this one")
        replies = [await shop.send(approval=ident) for _ in range(2)]
        assert [item.status for item in replies] == [403, 403]
        assert shop.app.bodies == []
        return replies[0]

    assert set(run(url, work).document) == {"error", "approval", "decision"}
    assert run(url, work).document["error"] == "denied"
    assert "not this one" in run(url, work, explain=True).document["reason"]


def test_what_expired_is_denied(url: str):
    """Nobody decided in time: 403, before and after somebody looks."""
    clock = Clock()

    async def work(shop: Shop) -> list[tuple[int, str]]:
        ident = await shop.hold()
        clock.pass_by(3601)
        replies = [await shop.send(approval=ident) for _ in range(2)]
        assert shop.app.bodies == []
        return [(item.status, item.document["error"]) for item in replies]

    assert run(url, work, clock=clock) == [(403, "expired")] * 2


@pytest.mark.parametrize(("within", "after", "status"), [(60, 59, 200), (60, 61, 403), (None, 10**8, 200)])
def test_an_approval_is_not_for_ever(url: str, within: float | None, after: float, status: int):
    """What was approved has to be gone on with while the reasons for it hold."""
    clock = Clock()

    async def work(shop: Shop) -> Reply:
        ident = await shop.hold()
        await shop.decide(ident)
        clock.pass_by(after)
        return await shop.send(approval=ident)

    reply = run(url, work, clock=clock, resume_within=within)

    assert reply.status == status
    assert status == 200 or reply.document["error"] == "expired"


def test_a_policy_that_approves_on_expiry_opens_it(url: str):
    """Asked for by name, and the decision says that nobody did."""
    clock = Clock()

    async def work(shop: Shop) -> int:
        ident = await shop.hold()
        clock.pass_by(3601)
        return (await shop.send(approval=ident)).status

    assert run(url, work, clock=clock, ask=ASK | {"on_expiry": "approve"}) == 200
    assert [e.payload["decided_by"] for e in find(url, kind="decision") if e.payload] == ["policy", "policy"]


def test_two_people_have_to_approve(url: str):
    """One of two is not enough for a repetition either."""

    async def work(shop: Shop) -> list[int]:
        ident = await shop.hold()
        await shop.decide(ident)
        statuses = [(await shop.send(approval=ident)).status]
        await shop.approvals.decide(ident, "bob", True)
        return [*statuses, (await shop.send(approval=ident)).status]

    assert run(url, work, ask=ASK | {"required": 2}) == [202, 200]


# ---------------------------------------------------------------- somebody else's approval


OTHERS: Mapping[str, dict[str, Any]] = {
    "path": {"path": "/refunds", "raw_path": b"/refunds"},
    "path, written otherwise": {"raw_path": b"/%6frders"},
    "mount": {"root_path": "/v2"},
    "query": {"query_string": b"a=2"},
    "no query": {"query_string": b""},
    "query, escaped": {"query_string": b"a=%31"},
    "method": {"method": "PUT"},
    "method of a header": {"headers": ANA | {"x-http-method-override": "DELETE"}},
    "method of a header, as WSGI reads it": {"headers": ANA | {"x_http_method_override": "DELETE"}},
    "host of a proxy": {"headers": ANA | {"x-forwarded-host": "other.example"}},
    "address of a header": {"headers": ANA | {"x-original-url": "/refunds"}},
    "address of another header": {"headers": ANA | {"X-Rewrite-Url": "/refunds"}},
    "mount of a header": {"headers": ANA | {"x-forwarded-prefix": "/v2"}},
    "body": {"body": b'{"say": "another secret"}'},
    "body with a blank": {"body": BODY + b" "},
    "no body": {"body": b""},
    "body of the same value": {"body": b'{"say":"a secret"}'},
    "kind of body": {"headers": ANA | {"content-type": "text/plain"}},
    "user": {"headers": BOB},
    "no user": {"headers": {}},
    "user in a cookie": {"headers": COOKIE},
    "host": {"headers": ANA | {"host": "other.example"}},
}


@pytest.mark.parametrize("name", OTHERS)
def test_an_approval_opens_no_other_request(url: str, name: str):
    """Whatever differs, the answer is the same to the byte as for an id that never was, and nothing is used up."""

    async def work(shop: Shop) -> tuple[Reply, Reply, int]:
        ident = await shop.hold(headers=ANA)
        await shop.decide(ident)
        options = {"headers": ANA, "approval": ident} | OTHERS[name]
        reply = await shop.send(options.pop("body", BODY), **options)
        never = await shop.send(approval="0" * len(ident), headers=ANA)
        assert shop.app.bodies == []
        return reply, never, (await shop.send(approval=ident, headers=ANA)).status

    reply, never, own = run(url, work)

    assert (reply.status, own) == (NOT_ONE_OF_YOURS, 200)
    assert (reply.status, reply.body, reply.headers) == (never.status, never.body, never.headers)


@pytest.mark.parametrize(
    ("held", "sent"),
    [
        ({"x-http-method": "DELETE"}, {"x-http-method-override": "DELETE"}),
        ({"x-original-url": "/refunds"}, {"x-rewrite-url": "/refunds"}),
    ],
)
def test_a_header_that_nothing_reads_is_not_exchanged_for_one_that_counts(
    url: str, held: dict[str, str], sent: dict[str, str]
):
    """Of headers that override method and address the name is as much a part of the request as the value."""

    async def work(shop: Shop) -> list[int]:
        ident = await shop.hold(headers=ANA | held)
        await shop.decide(ident)
        return [(await shop.send(approval=ident, headers=ANA | headers)).status for headers in (sent, held)]

    assert run(url, work) == [NOT_ONE_OF_YOURS, 200]


def test_two_users_with_the_same_body_have_an_approval_each(url: str):
    """The yes for one opens nothing for the other, with the other's id or with one's own."""

    async def work(shop: Shop) -> list[int]:
        ana, bob = await shop.hold(headers=ANA), await shop.hold(headers=BOB)
        assert ana != bob
        await shop.decide(ana)
        calls = [(bob, BOB), (ana, BOB), (bob, ANA), (ana, ANA)]
        return [(await shop.send(approval=ident, headers=caller)).status for ident, caller in calls]

    assert run(url, work) == [202, 404, 404, 200]


@pytest.mark.parametrize(
    "ident", ["", "x", "0" * 40, "../etc", "%", "a" * 5000, "0197b3a0-0000-7000-8000-000000000000"]
)
def test_an_id_that_never_was_is_not_checked_as_a_new_request(url: str, ident: str):
    """404, no decision, no request to anybody, and the application does not run, though the body might have passed."""

    async def work(shop: Shop) -> int:
        return (await shop.send(b'{"say": "fine"}', approval=ident)).status

    assert run(url, work) == NOT_ONE_OF_YOURS
    assert not Path(url.removeprefix("sqlite:///")).exists() or find(url, kind="decision") == []


@pytest.mark.parametrize(
    "body", [b'"a secret \\u0000"', b'"\\ud800 secret"', b"[" * 90, b"no json", b'{"a": 1, "a": 2}']
)
def test_a_body_that_nobody_can_read_goes_on_with_nothing(url: str, body: bytes):
    """Whether it comes with an id, with a key or alone, it is refused like any other."""

    async def work(shop: Shop) -> list[int]:
        ident = await shop.hold(headers=ANA)
        await shop.decide(ident)
        own = (await shop.send(body, headers=ANA)).status
        named = (await shop.send(body, approval=ident, headers=ANA)).status
        keyed = (await shop.send(body, headers=ANA | {"idempotency-key": "k"})).status
        assert shop.app.bodies == []
        return [own, named, keyed]

    assert set(run(url, work)) <= {400, 403, 404}


def test_an_application_that_knows_nobody_has_no_callers(url: str):
    """An empty name is nobody's: two who are not known do not share a key."""
    key = {"idempotency-key": "k-1"}

    async def work(shop: Shop) -> bool:
        return await shop.hold(headers=ANA | key) != await shop.hold(headers=BOB | key)

    assert run(url, work, identify=lambda scope: "")


@pytest.mark.parametrize("name", ["\ud800", "ä\n", "x" * 100_000])
def test_a_caller_may_have_any_name(url: str, name: str):
    """It is kept as a digest alone."""

    async def work(shop: Shop) -> int:
        ident = await shop.hold()
        await shop.decide(ident)
        return (await shop.send(approval=ident)).status

    assert run(url, work, identify=lambda scope: name) == 200


def test_two_ids_are_none(url: str):
    """Which of them is meant, nobody knows."""

    async def work(shop: Shop) -> int:
        ident = await shop.hold()
        await shop.decide(ident)
        return (await shop.send(approval=ident, headers={"Adjudge-Approval": ident})).status

    assert run(url, work) == NOT_ONE_OF_YOURS


@pytest.mark.parametrize("part", [slice(None, 20), slice(-12, None), slice(None, -1)])
def test_a_part_of_an_id_is_none(url: str, part: slice):
    """A person at a terminal may shorten it; a client may not."""

    async def work(shop: Shop) -> int:
        ident = await shop.hold()
        await shop.decide(ident)
        return (await shop.send(approval=ident[part])).status

    assert run(url, work) == NOT_ONE_OF_YOURS


def test_ids_cannot_be_guessed(url: str):
    """Each has 128 random bits behind a UUIDv7, by which they sort in the order in which they were made."""

    async def work(shop: Shop) -> list[str]:
        return [await shop.hold() for _ in range(20)]

    idents = run(url, work)
    tails = [ident.rpartition("-")[2] for ident in idents]

    assert len(set(tails)) == 20
    assert all(len(tail) == 32 and int(tail, 16) >= 0 for tail in tails)
    assert idents == sorted(idents)
    assert {UUID(ident.rpartition("-")[0]).version for ident in idents} == {7}


def test_the_id_of_another_gate_opens_nothing(url: str):
    """Nor does one that no gate asked for."""

    async def work(shop: Shop) -> list[int]:
        ident = await shop.hold()
        await shop.decide(ident)
        other = shop.guard(name="refunds")
        own = (await other.gate.check({"say": "a secret"})).result
        assert own is not None
        bare = await shop.approvals.request(own, "Lunch?", approvers=["ana"])
        await shop.decide(bare)
        statuses = [(await send(other, approval=ident)).status, (await shop.send(approval=bare)).status]
        return [*statuses, (await shop.send(approval=ident)).status]

    assert run(url, work) == [404, 404, 200]


def test_an_approval_of_a_check_in_code_opens_no_request(url: str):
    """What was not held back over HTTP is bound to no request of HTTP."""

    async def work(shop: Shop) -> int:
        held = await shop.guarded.gate.check({"say": "a secret"})
        await shop.decide(held.approval_id or "")
        return (await shop.send(approval=held.approval_id)).status

    assert run(url, work) == NOT_ONE_OF_YOURS


def test_who_sends_is_what_the_application_says(url: str):
    """A name that stays, though the token is renewed; what cannot be said blocks."""
    users = {"Bearer 1": "ana", "Bearer 2": "ana", "Bearer 3": "bob"}

    async def identify(scope: Any) -> str | None:
        return users[dict(scope["headers"])[b"authorization"].decode()]

    async def work(shop: Shop) -> list[int]:
        ident = await shop.hold(headers={"authorization": "Bearer 1"})
        await shop.decide(ident)
        tokens = ["Bearer 3", "Bearer 4", "Bearer 2"]
        return [(await shop.send(approval=ident, headers={"authorization": item})).status for item in tokens]

    assert run(url, work, identify=identify) == [404, 403, 200]
    assert run(url, lambda shop: shop.send(), identify=lambda scope: 7).status == 403


def test_a_caller_is_the_digest_of_what_proves_it():
    """``Authorization`` and ``Cookie``, as far as they are sent; nothing that can be read of either."""

    def scope(*headers: tuple[bytes, bytes]) -> dict[str, Any]:
        return {"type": "http", "headers": list(headers)}

    token, cookie = (b"Authorization", b"Bearer t"), (b"cookie", b"a=1")
    header_sets = ((token, cookie), (token,), (cookie,), (token, token), ())
    callers = [identify_caller(scope(*headers)) for headers in header_sets]

    assert callers == [identify_caller(scope(*headers)) for headers in header_sets]
    assert len({*callers}) == 5
    assert callers[4] is None
    assert not any("Bearer" in (item or "") or "a=1" in (item or "") for item in callers)


def test_users_behind_one_shared_password_are_told_apart(url: str):
    """All send the same ``Authorization``, and a cookie of their own: neither the id nor the key is another's."""
    ana = {"authorization": "Basic c2hhcmVk", "cookie": "session=ana", "idempotency-key": "1"}
    bob = ana | {"cookie": "session=bob"}

    async def work(shop: Shop) -> list[int]:
        ident = await shop.hold(headers=ana)
        await shop.decide(ident)
        return [
            (await shop.send(approval=ident, headers=bob)).status,
            (await shop.send(headers=bob)).status,
            (await shop.send(headers=ana)).status,
        ]

    assert run(url, work) == [404, 202, 200]


@pytest.mark.parametrize("empty", [{"authorization": ""}, {"cookie": " "}, {"authorization": "", "cookie": ""}])
def test_an_empty_header_names_nobody(url: str, empty: dict[str, str]):
    """Every client that sends one would be the same caller, and one's key would find another's request."""

    async def work(shop: Shop) -> list[int]:
        ident = await shop.hold(headers={**empty, "idempotency-key": "1"})
        await shop.decide(ident)
        return [(await shop.send(headers={**empty, "idempotency-key": "1"})).status]

    assert run(url, work) == [202]


# ---------------------------------------------------------------- once


def test_of_twenty_clients_at_once_one_goes_on(store: str):
    """All the others are told that it was used; the ledger says so once."""

    async def work(shop: Shop) -> tuple[Tally[int], int]:
        ident = await shop.hold(headers=ANA)
        await shop.decide(ident)
        replies = await all_at_once(shop.send(approval=ident, headers=ANA) for _ in range(20))
        return Tally(item.status for item in replies), len(shop.app.bodies)

    assert run(store, work) == ({200: 1, 409: 19}, 1)
    assert len(find_used(store)) == 1
    assert verify(store)


@pytest.mark.integration
@pytest.mark.slow_table
def test_of_two_processes_one_goes_on(store: str):
    """Ten clients in each, with one id: the application runs once, in one of them."""

    async def work(shop: Shop) -> str:
        ident = await shop.hold(headers=ANA)
        await shop.decide(ident)
        return ident

    ident = run(store, work)
    processes = [start(store, ident, 10) for _ in range(2)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    reports = [json.loads(process.communicate(timeout=HANG)[0]) for process in processes]

    assert Tally(status for item in reports for status in item["statuses"]) == {200: 1, 409: 19}
    assert sorted(item["ran"] for item in reports) == [0, 1]
    assert find_used(store) == [ident]
    assert verify(store)


@pytest.mark.parametrize("error", [RuntimeError("it broke"), asyncio.CancelledError()])
def test_what_broke_after_it_was_used_is_not_run_again(url: str, error: BaseException):
    """The mark is on disk before the application begins: a crash loses the answer, and never runs it twice."""

    async def work(shop: Shop) -> tuple[list[bytes], int]:
        ident = await shop.hold()
        await shop.decide(ident)
        with pytest.raises(type(error)):
            await shop.send(approval=ident)
        shop.app.error = None
        return shop.app.bodies, (await shop.send(approval=ident)).status

    assert run(url, work, error=error) == ([BODY], 409)


@pytest.mark.integration
def test_a_process_that_is_killed_in_the_application_has_used_it(store: str):
    """Killed with -9 between the mark and the answer: the next one is told so, and nothing runs twice."""

    async def hold(shop: Shop) -> str:
        ident = await shop.hold(headers=ANA)
        await shop.decide(ident)
        return ident

    async def repeat(shop: Shop) -> tuple[int, int]:
        return (await shop.send(approval=ident, headers=ANA)).status, len(shop.app.bodies)

    ident = run(store, hold)
    process = start(store, ident, 1, kill=True)
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.readline() == "ready\n"
    output, _ = process.communicate("go\n", timeout=HANG)

    assert (process.returncode, output) == (-signal.SIGKILL, "running\n")
    assert run(store, repeat) == (409, 0)
    assert find_used(store) == [ident]
    assert verify(store)


def test_what_the_application_runs_for_is_on_record_before_it_runs(url: str):
    """So whoever is killed in between has used it up."""
    seen: list[list[str]] = []

    async def work(shop: Shop) -> str:
        ident = await shop.hold()
        await shop.decide(ident)

        async def look(scope: Any, receive: Any, send: Any) -> None:
            seen.append(await asyncio.to_thread(find_used, url))

        guarded = GateMiddleware(look, shop.guarded.gate)
        with pytest.raises(IndexError):  # it answered nothing
            await send(guarded, approval=ident)
        return ident

    assert seen == [[run(url, work)]]


def test_a_ledger_that_takes_nothing_lets_nobody_on(url: str, monkeypatch: pytest.MonkeyPatch):
    """Blocked, not used up: once the ledger is back, the request goes on."""

    async def work(shop: Shop) -> list[int]:
        ident = await shop.hold()
        await shop.decide(ident)

        async def broken(*arguments: Any, **options: Any) -> int:
            raise LedgerError("the disk is full")

        with monkeypatch.context() as patched:
            patched.setattr(Ledger, "transact", broken)
            statuses = [(await shop.send(approval=ident)).status]
        assert shop.app.bodies == []
        return [*statuses, (await shop.send(approval=ident)).status]

    assert run(url, work) == [403, 200]


def test_the_command_and_the_client_share_one_use(url: str):
    """Who resumes in code, or on the command line, has used it up for the client, and the other way round."""

    async def work(shop: Shop) -> tuple[list[Any], list[Any]]:
        one, other = await shop.hold(), await shop.hold()
        for ident in (one, other):
            await shop.decide(ident)
        gate = shop.guarded.gate
        first = [bool(await gate.resume(one)), (await shop.send(approval=one)).status, bool(await gate.resume(one))]
        return first, [(await shop.send(approval=other)).status, bool(await gate.resume(other))]

    assert run(url, work) == ([True, 409, False], [200, False])


# ---------------------------------------------------------------- a gate, and a table, that were changed


@pytest.mark.parametrize(
    "changes",
    [
        {"ask": ASK | {"approvers": ["cy"]}},
        {"ask": ASK | {"required": 2}},
        {"rules": [*CALM, {"length": 4000}]},
        {"on_rule": "block"},
        {"on_undecided": "ask"},
    ],
    ids=["people", "more of them", "rules", "on_rule", "policy"],
)
def test_an_approval_given_under_other_terms_opens_nothing(url: str, changes: dict[str, Any]):
    """403, and the client is told to begin anew; under the old terms it still goes on."""

    async def work(shop: Shop) -> tuple[Reply, Reply, int]:
        ident = await shop.hold()
        stricter = shop.guard(**changes)
        early = await send(stricter, approval=ident)
        await shop.decide(ident)
        late = await send(stricter, approval=ident)
        assert shop.app.bodies == []
        return early, late, (await shop.send(approval=ident)).status

    early, late, own = run(url, work)

    assert [(item.status, item.document["error"]) for item in (early, late)] == [(403, "changed")] * 2
    assert own == 200


@pytest.mark.parametrize(
    ("statement", "status"),
    [
        ("UPDATE adjudge_pending SET decision = replace(decision, '\"orders\"', '\"refund\"')", 403),
        ("UPDATE adjudge_pending SET decision = '{}'", 403),
        ("UPDATE adjudge_pending SET decision = 'no json'", 403),
        ("UPDATE adjudge_pending SET decision = ''", 404),
        ("DELETE FROM adjudge_pending", 404),
        ("UPDATE adjudge_approvals SET status = 'approved'", 403),
    ],
)
def test_a_table_that_was_changed_by_hand_opens_nothing(url: str, statement: str, status: int):
    """What waits is what the ledger's entry holds the digest of; a row that is not that lets nobody on."""

    async def work(shop: Shop) -> Reply:
        ident = await shop.hold()
        if "approvals" not in statement:
            await shop.decide(ident)
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection, connection:
            assert connection.execute(statement).rowcount == 1
        reply = await shop.send(approval=ident)
        assert shop.app.bodies == []
        return reply

    assert run(url, work).status == status
    assert find_used(url) == []


def test_the_rows_of_two_requests_cannot_be_exchanged(url: str):
    """The yes for something harmless is not the yes for what stands in its row by now."""

    async def work(shop: Shop) -> list[int]:
        harmless, other = await shop.hold(b'"a small secret"'), await shop.hold()
        await shop.decide(harmless)
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection, connection:
            rows = dict(connection.execute("SELECT approval, decision FROM adjudge_pending").fetchall())
            for ident, text in ((harmless, rows[other]), (other, rows[harmless])):
                connection.execute("UPDATE adjudge_pending SET decision = ? WHERE approval = ?", [text, ident])
        return [(await shop.send(approval=harmless)).status, (await shop.send(approval=other)).status]

    assert run(url, work) == [403, 403]


def test_a_mark_that_was_taken_away_does_not_open_twice(url: str):
    """The ledger says that it was used, and it is the ledger that counts."""

    async def work(shop: Shop) -> list[int]:
        ident = await shop.hold()
        await shop.decide(ident)
        statuses = [(await shop.send(approval=ident)).status]
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection, connection:
            assert connection.execute("UPDATE adjudge_pending SET used_at = NULL, used_seq = NULL").rowcount == 1
        return [*statuses, (await shop.send(approval=ident)).status, len(shop.app.bodies)]

    statuses = run(url, work)

    assert statuses[0] == 200
    assert statuses[1] in (403, 409)
    assert statuses[2] == 1
    assert len(find_used(url)) == 1


def test_what_is_kept_holds_no_content(url: str):
    """Digests of body, query and caller, and of the judge's words, where the ledger keeps no more than that."""

    async def work(shop: Shop) -> None:
        await shop.hold(headers=ANA | {"idempotency-key": "my-key-1"}, query_string=b"card=4111")

    run(url, work)
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        kept = str(connection.execute("SELECT * FROM adjudge_pending").fetchall())

    for text in ("a secret", "4111", "ana's token", "my-key-1"):
        assert text not in kept


# ---------------------------------------------------------------- the client's own key


def test_the_same_key_finds_what_waits(store: str):
    """Instead of the id, by the same caller with the same request; nobody is asked twice."""
    options: dict[str, Any] = {"headers": ANA | {"idempotency-key": "k-1"}}

    async def work(shop: Shop) -> tuple[list[int], int]:
        ident = await shop.hold(**options)
        again = await shop.send(**options)
        assert again.approval == ident
        await shop.decide(ident)
        statuses = [(await shop.send(**options)).status for _ in range(2)]
        return statuses, len(await shop.approvals.list(status=None))

    assert run(store, work) == ([200, 409], 1)


@pytest.mark.parametrize("name", sorted({*OTHERS} - {"no body", "user", "no user", "user in a cookie"}))
def test_a_key_is_for_one_request(url: str, name: str):
    """With another one of the same caller: 422, nothing is judged and nothing is used."""
    key = {"idempotency-key": "k-1"}

    async def work(shop: Shop) -> tuple[int, int]:
        ident = await shop.hold(headers=ANA | key)
        await shop.decide(ident)
        options = {"headers": ANA} | OTHERS[name]
        options["headers"] |= key
        reply = await shop.send(options.pop("body", BODY), **options)
        assert shop.app.bodies == []
        return reply.status, (await shop.send(approval=ident, headers=ANA)).status

    assert run(url, work) == (422, 200)


@pytest.mark.parametrize("caller", [BOB, COOKIE, {}], ids=["another", "by cookie", "nobody"])
def test_a_key_is_its_callers_own(url: str, caller: dict[str, str]):
    """The same key and body of somebody else is a new check, with an id of its own."""
    key = {"idempotency-key": "k-1"}

    async def work(shop: Shop) -> bool:
        ident = await shop.hold(headers=ANA | key)
        await shop.decide(ident)
        other = await shop.hold(headers=caller | key)
        assert shop.app.bodies == []
        return other != ident

    assert run(url, work)


def test_a_key_without_a_caller_finds_nothing(url: str):
    """Anybody might have chosen it: each request is a check of its own, and goes on by its id alone."""
    key = {"idempotency-key": "k-1"}

    async def work(shop: Shop) -> list[int]:
        one, other = await shop.hold(headers=key), await shop.hold(headers=key)
        assert one != other
        await shop.decide(one)
        return [(await shop.send(approval=one, headers=key)).status]

    assert run(url, work) == [200]


def test_a_key_that_finds_what_was_denied_says_so(url: str):
    """The same request under the same key stays denied; under another key people are asked again."""

    async def work(shop: Shop) -> list[int]:
        ident = await shop.hold(headers=ANA | {"idempotency-key": "k-1"})
        await shop.decide(ident, approved=False)
        keys = ["k-1", "k-2"]
        return [(await shop.send(headers=ANA | {"idempotency-key": key})).status for key in keys]

    assert run(url, work) == [403, 202]


def test_one_key_sent_many_times_at_once_asks_once(store: str):
    """Whoever comes second finds what waits for the first."""
    options: dict[str, Any] = {"headers": ANA | {"idempotency-key": "k-1"}}

    async def work(shop: Shop) -> tuple[set[int], int, int]:
        replies = await all_at_once(shop.send(**options) for _ in range(8))
        ids = {item.approval for item in replies}
        return {item.status for item in replies}, len(ids), len(await shop.approvals.list(status=None))

    assert run(store, work) == ({202}, 1, 1)


@pytest.mark.parametrize("key", ["", "k" * 256])
def test_a_key_that_is_none_is_refused(url: str, key: str):
    """400, before anything is judged."""
    assert run(url, lambda shop: shop.send(headers=ANA | {"idempotency-key": key})).status == 400


def test_a_key_of_what_passes_is_the_applications(url: str):
    """The gate keeps no list of keys: what may pass passes each time, and the application sees the key."""
    options: dict[str, Any] = {"headers": ANA | {"idempotency-key": "k-1"}}

    async def work(shop: Shop) -> list[int]:
        statuses = [(await shop.send(b'"fine"', **options)).status for _ in range(2)]
        assert all((b"idempotency-key", b"k-1") in scope["headers"] for scope in shop.app.scopes)
        return statuses

    assert run(url, work) == [200, 200]


# ---------------------------------------------------------------- what is not held so


def test_a_response_that_waits_is_not_sent_again(url: str):
    """403: the answer is not kept, and running the application again for it would act twice."""

    async def work(shop: Shop) -> tuple[int, dict[str, Any]]:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
            await send({"type": "http.response.body", "body": b"a secret", "more_body": False})

        reply = await send(GateMiddleware(app, shop.guarded.gate, on="response"), b"")
        return reply.status, reply.document

    status, document = run(url, work)

    assert (status, document["error"]) == (403, "pending")
    assert "approval" not in document


def test_an_asker_that_keeps_nothing_holds_nothing(url: str):
    """With people asked by code of one's own there is nothing to come back to: 403, and an id is unknown."""
    gate = Gate("orders", rules=CALM, on_failed="ask", approvals=Desk(), wait=False)
    app = Counter()

    async def go() -> list[int]:
        guarded = GateMiddleware(app, gate)
        return [(await send(guarded)).status, (await send(guarded, approval="0" * 40)).status]

    assert asyncio.run(go()) == [403, 404]
    assert app.bodies == []


def test_a_gate_that_observes_lets_an_id_through_like_everything_else(url: str):
    """It decides nothing there; the check is on record."""

    async def work(shop: Shop) -> list[int]:
        return [(await shop.send(approval="0" * 40)).status]

    assert run(url, work, mode="observe") == [200]
    assert len(find(url, kind="decision")) == 1


def test_who_waits_in_the_request_is_answered_by_the_application(url: str):
    """A gate with ``wait=True`` gives no id out, and what it waited for cannot be used a second time."""

    async def work(shop: Shop) -> list[int]:
        asked = asyncio.Event()
        shop.options["on_event"] = lambda event: asked.set() if event.kind == "asked" else None
        guarded = shop.guard()
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(send(guarded))
            await asked.wait()
            (request,) = await shop.approvals.list()
            await shop.decide(request.id)
        return [asking.result().status, (await send(guarded, approval=request.id)).status]

    assert run(url, work, wait=True) == [200, 409]


@pytest.mark.parametrize(
    "options", [{"retry_after": 0}, {"resume_within": 0}, {"resume_within": True}, {"identify": "ana"}]
)
def test_options_that_cannot_be(options: dict[str, Any]):
    """They are refused when the middleware is made."""
    with pytest.raises(UsageError, match=next(iter(options))):
        GateMiddleware(Counter(), Gate("calm", rules=CALM), **options)
