"""What a server does when what it depends on fails: it says so, lets nothing through, and loses nothing recorded."""

from __future__ import annotations

import resource
import socket
import sqlite3
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from kit import cli, ledgers
from kit.patience import HANG, wait_for
from kit.server_process import ServerProcess, httpx, make_key, open_cluster, open_relay, run_command, serve

pytestmark = pytest.mark.integration


LINUX = pytest.mark.skipif(sys.platform != "linux", reason="it sets the limits of another process, as only Linux can")

FILE = "sqlite:///adjudge.db"

RULES = """
[server]
deadline = 600

[ledger]
url = "{ledger}"

[gates.publish]
rules = [{{name = "length", max = 40}}]

[gates.held]
rules = [{{name = "length", max = 40}}]
on_failed = "ask"
ask = {{approvers = ["Ana"], expires_in = 3600}}
"""

JUDGED = """
[server]
deadline = {deadline}

[ledger]
url = "{ledger}"

[judges.remote]
seats = ["{model}"]
timeout = 5

[rubrics]
own = "own.yaml"

[gates.judged]
rubric = "own"
judge = "remote"
"""

OWN = "name: Own\ncriteria: [{name: good, description: It is good.}]\n"


@pytest.fixture(name="postgres")
def make_postgres(require: Any) -> Iterator[str]:
    with ledgers.open_schema(require) as url:
        yield url


def check(client: httpx.Client, content: str = "Thank you.", gate: str = "publish", **headers: str) -> httpx.Response:
    return client.post(f"/v1/gates/{gate}/check", json={"content": content}, headers=headers)


def is_allowed(answer: httpx.Response) -> bool:
    return answer.status_code == 200 and answer.json()["allowed"]


def read_ledger(url: str) -> list[Any]:
    """The decisions in a ledger whose chain is in order."""
    assert ledgers.verify(url)
    return ledgers.find(url, kind="decision")


def find_file(folder: Path) -> str:
    return f"sqlite:///{folder / 'adjudge.db'}"


def through(relay_port: int, url: str) -> str:
    return url.replace(":5432", f":{relay_port}")


# -------------------------------------------------------------------- the database


def test_a_database_that_is_gone_allows_nothing_and_is_used_again_when_it_is_back(tmp_path: Path, postgres: str):
    """A block while the key is remembered, then 503 with Retry-After, and nothing of the inside in the answers."""
    from sqlalchemy import make_url

    with open_relay(make_url(postgres).port or 5432) as relay:
        config = RULES.format(ledger=through(relay.port, postgres))
        (tmp_path / "adjudge.toml").write_text(config, encoding="utf-8")
        key = make_key(tmp_path)
        with serve(tmp_path) as server, server.open_client(key) as client:
            assert is_allowed(check(client))

            relay.cut()
            while (answer := check(client)).status_code != 503:
                assert answer.status_code == 200
                assert not is_allowed(answer)
            gone = [check(client), check(client, "x" * 41), client.get("/readyz"), client.get("/v1/ledger/verify")]
            assert [answer.status_code for answer in gone] == [503, 503, 503, 503]
            assert all(answer.headers["retry-after"] for answer in gone)
            assert "127.0.0.1" not in "".join(answer.text for answer in gone)
            assert client.get("/healthz").status_code == 200

            relay.join()
            wait_for(lambda: client.get("/readyz").status_code == 200)
            assert is_allowed(check(client))
    assert len(read_ledger(postgres)) == 2


def test_a_connection_that_the_database_ends_costs_at_most_the_request_on_it(tmp_path: Path, postgres: str):
    """As after a restart of the database: what is answered is recorded."""
    from sqlalchemy import make_url

    # By a name of its own: on the same database other tests have connections too.
    name = f"adjudge_{uuid.uuid4().hex}"
    named = make_url(postgres).update_query_dict({"application_name": name}).render_as_string(hide_password=False)
    (tmp_path / "adjudge.toml").write_text(RULES.format(ledger=named), encoding="utf-8")
    key = make_key(tmp_path)
    with serve(tmp_path) as server, server.open_client(key) as client:
        assert is_allowed(check(client))
        assert end_connections(postgres, name) > 0
        answers = [check(client) for _ in range(4)]
    allowed = [answer for answer in answers if is_allowed(answer)]

    assert {answer.status_code for answer in answers} <= {200, 503}
    assert is_allowed(answers[-1])
    assert len(read_ledger(postgres)) == 1 + len(allowed)


def end_connections(url: str, name: str) -> int:
    """Have PostgreSQL end every connection of an application of this name; returns how many there were."""
    from sqlalchemy import create_engine

    engine = create_engine(url)
    with engine.begin() as connection:
        ended = connection.exec_driver_sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %(name)s", {"name": name}
        )
        count = len(ended.all())
    engine.dispose()
    return count


@pytest.mark.full
def test_a_database_that_is_locked_blocks_until_it_is_free(tmp_path: Path):
    """Another program holds the file's write lock for longer than a request may take."""
    config = RULES.format(ledger=FILE).replace("deadline = 600", "deadline = 1")
    (tmp_path / "adjudge.toml").write_text(config, encoding="utf-8")
    key = make_key(tmp_path)
    with serve(tmp_path) as server, server.open_client(key) as client:
        with closing(sqlite3.connect(tmp_path / "adjudge.db", isolation_level=None)) as holder:
            holder.execute("BEGIN IMMEDIATE")
            late = check(client)
            assert (late.status_code, late.json()["code"]) == (504, "deadline")
            assert client.get("/healthz").status_code == 200
            holder.execute("ROLLBACK")
        wait_for(lambda: is_allowed(check(client)))
    read_ledger(find_file(tmp_path))


@LINUX
def test_a_full_disk_allows_nothing_and_is_used_again_when_there_is_room(tmp_path: Path):
    """Every decision that allowed something is in the ledger."""
    (tmp_path / "adjudge.toml").write_text(RULES.format(ledger=FILE), encoding="utf-8")
    key = make_key(tmp_path)
    with serve(tmp_path) as server, server.open_client(key) as client:
        assert is_allowed(check(client))
        largest = max(path.stat().st_size for path in tmp_path.iterdir())
        limit_files(server, largest + 6_000)
        answers = [check(client) for _ in range(12)]
        full = answers[-1]
        assert not is_allowed(full)
        assert full.status_code in (200, 503)
        if full.status_code == 200:
            assert full.json()["ledger_seq"] is None
            assert full.json()["detail"].startswith("not recorded")

        limit_files(server, resource.RLIM_INFINITY)
        wait_for(lambda: is_allowed(check(client)))
    allowed = sum(map(is_allowed, answers))
    decisions = read_ledger(find_file(tmp_path))

    assert len([entry for entry in decisions if entry.payload["allowed"]]) >= allowed + 2


def limit_files(server: ServerProcess, size: int) -> None:
    """From now on a server's files cannot grow beyond a size, which it is told as it would be of a full disk."""
    hard = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (size if size != -1 else hard, hard))


# -------------------------------------------------------------------- the model


def test_a_model_that_is_gone_leaves_everything_undecided_and_is_asked_again_when_it_is_back(tmp_path: Path):
    """Undecided does not pass, and the server stays ready."""
    (tmp_path / "own.yaml").write_text(OWN, encoding="utf-8")
    with cli.serve() as provider, open_relay(provider.port) as relay:
        model = f"http://127.0.0.1:{relay.port}/v1#small"
        config = JUDGED.format(ledger=FILE, model=model, deadline=600)
        (tmp_path / "adjudge.toml").write_text(config, encoding="utf-8")
        key = make_key(tmp_path)
        with serve(tmp_path) as server, server.open_client(key) as client:
            assert is_allowed(check(client, gate="judged"))

            relay.cut()
            gone = check(client, gate="judged")
            assert gone.status_code == 200
            assert not gone.json()["allowed"]
            assert gone.json()["result"]["outcome"] == "undecided"
            assert client.get("/readyz").status_code == 200  # another server would fare no better

            relay.join()
            assert is_allowed(check(client, gate="judged"))

            provider.mode = "prose"
            assert not is_allowed(check(client, gate="judged"))
    decisions = read_ledger(find_file(tmp_path))

    assert [entry.payload["allowed"] for entry in decisions] == [True, False, True, False]


# -------------------------------------------------------------------- the server


@contextmanager
def ask_in_background(client: httpx.Client, **headers: str) -> Iterator[list[object]]:
    """A request to the gate ``judged`` that is under way within the block; its answer, or its error, at the end."""
    answers: list[object] = []

    def ask() -> None:
        try:
            answers.append(check(client, gate="judged", **headers))
        except httpx.HTTPError as error:
            answers.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield answers
    finally:
        thread.join(HANG)


def test_a_server_that_is_killed_takes_only_what_it_was_judging_with_it(tmp_path: Path, postgres: str):
    """Its neighbour on the same database goes on, and judges the repeated request once."""
    (tmp_path / "own.yaml").write_text(OWN, encoding="utf-8")
    with cli.serve() as provider:
        # Long enough for a busy machine to judge within it; the neighbour judges again once it is over.
        config = JUDGED.format(ledger=postgres, model=provider.spec, deadline=30).replace("timeout = 5", "timeout = 29")
        (tmp_path / "adjudge.toml").write_text(config, encoding="utf-8")
        key = make_key(tmp_path)
        with (
            serve(tmp_path) as first,
            serve(tmp_path) as second,
            first.open_client(key) as one,
            second.open_client(key) as other,
        ):
            assert is_allowed(check(one, gate="judged"))
            provider.mode = "wait"
            provider.asked.clear()
            again = {"Idempotency-Key": "request-7"}
            with ask_in_background(one, **again) as answers:
                assert provider.asked.wait(HANG)
                first.kill()
            assert isinstance(answers[0], httpx.HTTPError)

            provider.mode = "answer"
            provider.release.set()
            # It may be under way still, as far as anybody knows. It is not judged twice at once.
            under_way = check(other, gate="judged", **again)
            assert (under_way.status_code, under_way.json()["code"]) == (409, "under_way")
            assert is_allowed(check(other, gate="judged"))
            assert len(read_ledger(postgres)) == 2

            wait_for(lambda: is_allowed(check(other, gate="judged", **again)))
            assert check(other, gate="judged", **again).headers["idempotency-replayed"] == "true"
    assert len(read_ledger(postgres)) == 3


def test_a_server_that_is_told_to_stop_finishes_what_it_has_begun(tmp_path: Path):
    """The answer arrives, is recorded, and the exit status is 0."""
    (tmp_path / "own.yaml").write_text(OWN, encoding="utf-8")
    with cli.serve(mode="wait") as provider:
        config = JUDGED.format(ledger=FILE, model=provider.spec, deadline=600).replace("timeout = 5", "timeout = 600")
        (tmp_path / "adjudge.toml").write_text(config, encoding="utf-8")
        key = make_key(tmp_path)
        with serve(tmp_path) as server, server.open_client(key) as client:
            with ask_in_background(client) as answers:
                assert provider.asked.wait(HANG)
                server.process.terminate()
                wait_for(lambda: not listens(server.url))
                provider.release.set()
            assert is_allowed(answers[0])
            assert server.process.wait(HANG) == 0
    assert len(read_ledger(find_file(tmp_path))) == 1


def listens(url: str) -> bool:
    """Whether somebody still takes connections at an address."""
    host, _, port = url.rpartition("//")[2].rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=HANG).close()
    except ConnectionError:
        return False
    return True


def test_a_server_does_not_start_over_a_database_of_another_version(tmp_path: Path):
    """It says which one has to be updated."""
    (tmp_path / "adjudge.toml").write_text(RULES.format(ledger=FILE), encoding="utf-8")
    make_key(tmp_path)
    with closing(sqlite3.connect(tmp_path / "adjudge.db")) as database:
        database.execute("UPDATE adjudge_alembic_version SET version_num = '0099'")
        database.commit()

    done = run_command(tmp_path, "serve", "--port", "0", timeout=HANG)

    assert done.returncode == 2
    assert "update adjudge" in done.stderr


# -------------------------------------------------------------------- the clock


def test_a_revoked_key_stays_revoked_when_the_clock_is_set_back(tmp_path: Path):
    """A revocation does not depend on the time."""
    (tmp_path / "adjudge.toml").write_text(RULES.format(ledger=FILE), encoding="utf-8")
    key = make_key(tmp_path)
    assert run_command(tmp_path, "keys", "revoke", key.split("_")[1]).returncode == 0
    with closing(sqlite3.connect(tmp_path / "adjudge.db")) as database:
        # To a server whose clock was set back, the moment of the revocation is still to come.
        database.execute("UPDATE adjudge_server_keys SET revoked_at = '2999-01-01T00:00:00.000000Z'")
        database.commit()

    with serve(tmp_path) as server, server.open_client(key) as client:
        assert check(client).status_code == 401


FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")


@pytest.mark.full
@LINUX
def test_a_clock_that_jumps_allows_nothing(tmp_path: Path, require: Any):
    """A day forward, and two days back: a request that expired stays closed, and a key that ended stays ended."""
    require("libfaketime", FAKETIME.is_file(), "apt-get install libfaketime")
    (tmp_path / "adjudge.toml").write_text(RULES.format(ledger=FILE), encoding="utf-8")
    key, ended = make_key(tmp_path, "judge", "read"), make_key(tmp_path, "judge")
    prefix = ended.split("_")[1]
    assert run_command(tmp_path, "keys", "revoke", prefix).returncode == 0
    clock = tmp_path / "clock"
    clock.write_text("+0d\n", encoding="utf-8")
    faked = {"LD_PRELOAD": str(FAKETIME), "FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_NO_CACHE": "1"}
    faked |= {"FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"}
    with serve(tmp_path, environment=faked) as server, server.open_client(key) as client:
        held = check(client, "x" * 41, gate="held").json()
        assert not held["allowed"]
        approval = held["approval_id"]
        for jump in ("+1d\n", "-1d\n", "+0d\n"):
            clock.write_text(jump, encoding="utf-8")
            resumed = client.post("/v1/gates/held/resume", json={"approval": approval})
            assert not is_allowed(resumed)
            assert is_allowed(check(client))
            with server.open_client(ended) as other:
                assert check(other).status_code == 401
    read_ledger(find_file(tmp_path))


# -------------------------------------------------------------------- a whole PostgreSQL


@pytest.mark.full
def test_a_postgresql_that_crashes_loses_nothing_that_was_answered(tmp_path: Path, require: Any):
    """An answer is sent after the commit is on disk."""
    with open_cluster(require) as cluster:
        (tmp_path / "adjudge.toml").write_text(RULES.format(ledger=cluster.url), encoding="utf-8")
        key = make_key(tmp_path)
        answered: list[str] = []
        with serve(tmp_path) as server, server.open_client(key) as client:
            for round_ in range(3):
                answered += [answer.json()["id"] for _ in range(20) if is_allowed(answer := check(client))]
                cluster.crash()
                answer = check(client)  # the key is remembered for a second: then it is the gate that finds out
                assert answer.status_code == 503 or answer.json()["detail"].startswith("not recorded")
                assert not is_allowed(answer)
                cluster.start()
                wait_for(lambda: client.get("/readyz").status_code == 200)
                assert len(answered) >= 19 * (round_ + 1)
        recorded = {entry.payload["id"] for entry in read_ledger(cluster.url)}

    assert set(answered) <= recorded
