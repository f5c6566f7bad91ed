"""The files in ``deploy``, and the commands of docs/deploy.md: they do what the page says."""

from __future__ import annotations

import os
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml

from adjudge.server import make_app
from kit import docs, house, ledgers
from kit.patience import HANG
from kit.server_process import httpx, make_environment

pytestmark = pytest.mark.integration


TestClient = pytest.importorskip("starlette.testclient").TestClient

DEPLOY = house.ROOT / "deploy"

PAGE = house.ROOT / "docs" / "deploy.md"

PASSWORD = "correct horse battery staple"

POSIX = pytest.mark.skipif(os.name == "nt", reason="its commands are for Linux")

SHIMS = {
    # Nobody else's rights, no packages from outside and no service manager: the rest is what the page says.
    "sudo": 'while [ "$1" = -u ]; do shift 2; done; case "$1" in python3) exit 0;; esac; exec "$@"',
    "useradd": "exit 0",
    "pip": "exit 0",
    "python": f'exec {sys.executable} "$@"',
    "adjudge": f'exec {sys.executable} -c "from adjudge.cli import main; main()" "$@"',
    "systemctl": """
case "$1" in
  stop) pid=$(cat "$ROOT/pid"); kill "$pid"; while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done;;
  start|enable)
    # A service that runs is not started again: its process would be forgotten, and outlive the test.
    if [ -f "$ROOT/pid" ] && kill -0 "$(cat "$ROOT/pid")" 2>/dev/null; then exit 0; fi
    cd "$(sed -n 's/^WorkingDirectory=//p' "$ROOT/etc/systemd/system/adjudge.service")"
    $(sed -n 's/^ExecStart=//p' "$ROOT/etc/systemd/system/adjudge.service") </dev/null >>"$ROOT/log" 2>&1 &
    echo $! >"$ROOT/pid";;
esac""",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A folder that stands for ``/``, in which the page's blocks are run."""

    root: Path
    port: int

    def place(self, text: str) -> str:
        """A text with its paths in the folder, and the port."""
        text = text.replace("/opt/adjudge/bin/", f"{self.root}/bin/").replace("8318", str(self.port))
        for path in ("/etc/adjudge", "/etc/systemd", "/var/lib/adjudge", "/opt/adjudge"):
            text = text.replace(path, f"{self.root}{path}")
        return text

    def run(self, name: str, **variables: str) -> str:
        """What the block of a name writes."""
        [block] = [item for item in docs.read_blocks(PAGE) if item.title == name]
        environment = make_environment(variables) | {"ROOT": str(self.root)}
        environment["PATH"] = f"{self.root / 'bin'}{os.pathsep}{environment['PATH']}"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", self.place(block.text)],
            cwd=self.root,
            env=environment,
            input=f"{PASSWORD}\n",
            capture_output=True,
            text=True,
            check=False,
            timeout=HANG,
        )
        assert done.returncode == 0, f"{name}: {done.stdout}{done.stderr}{self.read_log()}"
        return done.stdout

    def read_log(self) -> str:
        log = self.root / "log"
        return log.read_text("utf-8") if log.is_file() else ""


@pytest.fixture(name="machine")
def make_machine(tmp_path: Path) -> Iterator[Machine]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    machine = Machine(root=tmp_path, port=port)
    (tmp_path / "bin").mkdir()
    for name, text in SHIMS.items():
        shim = tmp_path / "bin" / name
        shim.write_text(f"#!/bin/bash\n{text}\n", encoding="utf-8")
        shim.chmod(0o755)
    (tmp_path / "deploy").mkdir()
    for path in DEPLOY.iterdir():
        (tmp_path / "deploy" / path.name).write_text(machine.place(path.read_text("utf-8")), encoding="utf-8")
    (tmp_path / "var/lib/adjudge").mkdir(parents=True)
    yield machine
    pid = tmp_path / "pid"
    if pid.is_file():
        subprocess.run(["kill", pid.read_text("utf-8").strip()], check=False, capture_output=True)


@POSIX
def test_the_commands_of_the_page_install_back_up_restore_and_upgrade_a_server(machine: Machine, require: Any):
    """Run in order, in a folder that stands for the machine."""
    require("curl", shutil.which("curl"), "install curl")
    require("alembic", find_spec("alembic"), "pip install 'adjudge[server]'")
    machine.run("install")
    machine.run("start")
    keys = re.findall(r"^adj_\S+$", machine.run("keys"), re.MULTILINE)
    assert len(keys) == 2

    assert '"allowed": true' in machine.run("ask", KEY=keys[0])
    head = machine.run("backup").strip()
    assert '"allowed": true' in machine.run("ask", KEY=keys[0])
    (backup,) = (machine.root / "var/lib/adjudge").glob("backup-*.db")
    machine.run("restore", HEAD=head, BACKUP=backup.name)
    machine.run("start")
    assert "nothing to upgrade" in machine.run("upgrade")
    machine.run("start")

    # The copy has the keys, and lacks what came after it.
    assert '"allowed": true' in machine.run("ask", KEY=keys[0])
    metrics = httpx.get(
        f"http://127.0.0.1:{machine.port}/metrics", timeout=HANG, headers={"Authorization": f"Bearer {keys[1]}"}
    )
    assert "adjudge_decisions_total" in metrics.text
    decisions = ledgers.find(f"sqlite:///{machine.root}/var/lib/adjudge/adjudge.db", kind="decision")
    assert len(decisions) == 2


@POSIX
def test_runs_and_labels_are_copied_while_they_are_in_use(machine: Machine):
    """With what is only in the write-ahead log; what is copied twice is there once."""
    folder = machine.root / "var/lib/adjudge/runs/monday"
    folder.mkdir(parents=True)
    (folder / "run.json").write_text("{}", encoding="utf-8")
    with closing(sqlite3.connect(folder / "labels.sqlite", isolation_level=None)) as labels:
        labels.execute("PRAGMA journal_mode = WAL")
        labels.execute("CREATE TABLE labels (rater TEXT)")
        labels.execute("INSERT INTO labels VALUES ('ana')")
        machine.run("backup-runs")
        machine.run("backup-runs")

    (copy,) = (machine.root / "var/lib/adjudge").glob("backup-runs-*")
    assert sorted(path.name for path in (copy / "monday").iterdir()) == ["labels.sqlite", "run.json"]
    with closing(sqlite3.connect(copy / "monday" / "labels.sqlite")) as copied:
        assert copied.execute("SELECT rater FROM labels").fetchall() == [("ana",)]


@POSIX
def test_a_ledger_in_postgresql_is_dumped_and_restored_as_the_page_says(machine: Machine, require: Any):
    """The restored ledger is the same, goes on, and still refuses changes."""
    require("pg_dump", shutil.which("pg_dump"), "install the client programs of PostgreSQL")
    with open_database(require) as first, open_database(require) as second:
        ledgers.record(first, {"n": 1}, {"n": 2})
        head = machine.run("pg-backup", LEDGER=first).strip()
        machine.run("pg-restore", RESTORED=second, HEAD=head)

        assert ledgers.find(second) == ledgers.find(first)
        # It goes on where it stopped, and still refuses changes.
        assert ledgers.record(second, {"n": 3}) == [4]
        assert ledgers.verify(second, head)
        with pytest.raises(Exception, match="append-only"):
            execute(second, "DELETE FROM adjudge_ledger")


@contextmanager
def open_database(require: Any) -> Iterator[str]:
    """The address of a database of its own on the tests' server, which is dropped afterwards."""
    from sqlalchemy import make_url

    name = f"adjudge_{uuid4().hex}"
    with ledgers.open_schema(require):  # there is a server, or the test is skipped
        pass
    plain = make_url(ledgers.POSTGRES).set(drivername="postgresql")
    execute(plain, f"CREATE DATABASE {name}")
    try:
        yield plain.set(database=name).render_as_string(hide_password=False)
    finally:
        execute(plain, f"DROP DATABASE {name} WITH (FORCE)")


def execute(url: Any, statement: str) -> None:
    """Run a statement, outside a transaction."""
    from sqlalchemy import create_engine, make_url

    engine = create_engine(make_url(url).set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql(statement)
    finally:
        engine.dispose()


@pytest.mark.parametrize("path", sorted(DEPLOY.glob("*.toml")), ids=lambda path: path.stem)
def test_the_example_configurations_can_be_served(path: Path, tmp_path: Path):
    """Each starts, over a ledger in a folder of the test's own."""
    text = path.read_text("utf-8")
    assert tomllib.loads(text)["gates"]
    text = re.sub(r'^url = ".*"', 'url = "sqlite:///adjudge.db"', text, flags=re.MULTILINE)

    (tmp_path / "adjudge.toml").write_text(text, encoding="utf-8")

    with TestClient(make_app(tmp_path / "adjudge.toml")) as client:
        assert client.get("/readyz").status_code == 200


def test_the_image_and_compose_name_one_user_port_base_and_probe():
    """What the files say twice is the same."""
    containerfile = (DEPLOY / "Containerfile").read_text("utf-8")
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    server = compose["services"]["server"]
    probe = "http://127.0.0.1:8318/healthz"

    base = re.search(r"(?m)^ARG BASE=(\S+)$", containerfile)

    assert "USER 10318:10318" in containerfile
    assert probe in containerfile
    assert base is not None
    assert server["build"]["args"] == {"BASE": f"${{BASE:-{base[1]}}}"}
    assert probe in " ".join(server["healthcheck"]["test"])
    assert server["ports"] == ["127.0.0.1:8318:8318"]
    assert (DEPLOY.parent / server["build"]["dockerfile"]).is_file()
    for mounted in server["volumes"]:
        assert (DEPLOY / mounted.split(":")[0]).is_file()


def test_every_setting_of_the_server_is_on_its_page():
    """A key of [server] that is added gets a row."""
    from dataclasses import fields

    from adjudge.server import ServerSettings

    page = (house.ROOT / "docs" / "server.md").read_text("utf-8")

    assert [item.name for item in fields(ServerSettings) if f"`{item.name}`" not in page] == []


def test_the_unit_waits_longer_than_a_server_takes_to_stop():
    """Else what is being judged would be killed."""
    from adjudge.server import ServerSettings

    unit = (DEPLOY / "adjudge.service").read_text("utf-8")
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))

    assert int(re.findall(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)[0]) > ServerSettings().shutdown
    assert int(compose["services"]["server"]["stop_grace_period"].removesuffix("s")) > ServerSettings().shutdown
