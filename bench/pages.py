#!/usr/bin/env python3
"""Measure the pages of a server over a large ledger: 30,000 entries, 5,000 of them open requests for approval.

    python bench/pages.py                       a ledger in a SQLite file
    python bench/pages.py --postgres URL        in PostgreSQL; URL is of a server on which databases may be made
    python bench/pages.py --against SRC         beside another version, whose package is in the folder SRC

The ledger is made once (by the other version, if there is one), and each version gets a copy of its own. Both servers
run at the same time and are asked in turn, page by page and round by round, so that what else the machine does meets
both alike. Printed are p50 and p95 of the time to the whole answer, the server's processor time for one answer (which
other work changes least), and the ratio of the two versions' processor times.

Of the entries, a sixth are requests, a sixth the decisions that wait for them, and the rest decisions of gates with a
content of 850 characters that is kept (``store_content = "full"``). All are of the last minutes, so that no filter by
time leaves any out. Most people look at fewer.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from common import make_item
from server import ADJUDGE, find_port

PASSWORD = "correct horse battery"
NAMES = ("Weber", "Nowak", "Rossi", "Novák", "Okafor", "Ito", "García", "O'Neill", "Schäfer", "Lund")

CONFIG = """
[server]
runs = "runs"

[ledger]
url = "{ledger}"
store_content = "full"
"""

PAGES = (
    "/",
    "/results",
    "/results?when=all&q=order+77418",
    "/results?when=all&q=refund",
    "/results?when=all&q=no",
    "/results?when=all&q=customer%3AC-20931",
    "/results?when=all&gate=refunds&outcome=failed",
    "/results/{result}",
    "/approvals",
    "/approvals?gate=refunds&q=customer%3AC-20931",
    "/approvals?q=order",
    "/approvals/{request}",
    "/approvals/deny",
    "/ledger",
    "/ledger/{entry}",
    "/runs",
    "/runs/before",
    "/runs/before/case?id=case-7",
    "/compare?a=before&b=after",
    "/labels",
    "/labels/before",
    "/approvals/mine",
    "/approvals/news?after=0",
    "/audits",
    "/monitors",
)


@dataclass(slots=True, kw_only=True)
class Target:
    """A server that is asked, and what its answers took."""

    name: str
    port: int
    pid: int
    client: httpx.Client
    times: dict[str, list[float]] = field(default_factory=dict)
    cpu: dict[str, float] = field(default_factory=dict)
    size: dict[str, int] = field(default_factory=dict)

    def read_cpu(self) -> float:
        """Seconds of processor time so far, user and system, of all threads."""
        fields = Path(f"/proc/{self.pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def ask(self, page: str, path: str, times: int) -> None:
        """Ask for a page so many times."""
        cpu = self.read_cpu()
        for _ in range(times):
            begun = time.perf_counter()
            answer = self.client.get(path)
            self.times.setdefault(page, []).append(time.perf_counter() - begun)
            if answer.status_code != 200:
                raise SystemExit(f"{self.name}: {path} answered {answer.status_code}: {answer.text[:300]}")
            self.size[page] = answer.num_bytes_downloaded
        self.cpu[page] = self.cpu.get(page, 0.0) + self.read_cpu() - cpu


# ---------------------------------------------------------------- the ledger


async def make_ledger(url: str, entries: int, requests: int) -> None:
    """Fill a ledger; run as a process of the version that makes it."""
    from adjudge import Approvals, Ledger

    async with Ledger(url, store_content="full") as ledger:
        approvals = Approvals(ledger)
        for start in range(0, entries - 2 * requests, 500):
            async with asyncio.TaskGroup() as group:
                for number in range(start, min(start + 500, entries - 2 * requests)):
                    group.create_task(ledger.append(make_decision(number), content=make_item(number)["output"]))
        for start in range(0, requests, 20):
            async with asyncio.TaskGroup() as group:
                for number in range(start, min(start + 20, requests)):
                    group.create_task(ask(ledger, approvals, entries + number))


def make_runs(folder: Path, cases: int = 2_000) -> None:
    """Two runs of one data set, of which every third answer changed; run as a process of the version that makes it."""
    from adjudge import Case, Judge, run

    def judge(content: str) -> float:
        return len(content) % 10 / 10

    for name, changed in (("before", 0), ("after", 3)):
        answers = [f"{make_item(number)['output']}{'!' * (changed and number % 3 == 0)}" for number in range(cases)]
        rows = [Case(id=f"case-{number}", content=answer) for number, answer in enumerate(answers)]
        run(rows, Judge(judge), criteria="It is short.", out=folder / name).finish_sync()


def make_decision(number: int, **changes: Any) -> Any:
    """A decision of one of four gates, with a title and a customer."""
    from adjudge import Decision, JudgeResult

    outcome: Any = ("passed", "passed", "passed", "failed", "undecided")[number % 5]
    metadata = {
        "title": f"Refund {number % 400}.00 EUR on order {77000 + number} to {NAMES[number % len(NAMES)]}",
        "agent": f"agent-{number % 7}",
        "customer": f"C-{20000 + number % 1500}",
        "case": {"channel": "mail", "language": "en"},
    }
    scores: dict[str, Any] = {"passed": 0.9, "failed": 0.25, "undecided": None}
    members: dict[str, Any] = {"judge": f"judge-{number % 3}", "score": scores[outcome]}
    members |= {"threshold": 0.7, "reasoning": "It promises what the customer was not told.", "duration_ms": 800.0}
    because = {"undecided_because": "timeout"} if outcome == "undecided" else {}
    result = JudgeResult(outcome=outcome, metadata=metadata, **members, **because)
    terms: dict[str, Any] = {"allowed": outcome == "passed", "decided_by": "judge", "result": result}
    gate = ("refunds", "mail", "answers", "actions")[number % 4]
    return Decision(gate=gate, metadata=metadata, duration_ms=812.5, **(terms | changes))


async def ask(ledger: Any, approvals: Any, number: int) -> None:
    """Hold a decision, and ask three people."""
    from dataclasses import replace

    held = make_decision(number, allowed=False, pending=True)
    content = make_item(number)["output"]
    people = ["Ana", "Ben", "Zoe"][: 1 + number % 3]
    ident = await approvals.request(
        held,
        f"Send the answer to {NAMES[number % len(NAMES)]}?",
        approvers=["Ana", *people[1:]],
        content=content,
        expires_in=86_400.0 + number,
        metadata=held.metadata,
    )
    await ledger.append(replace(held, approval_id=ident), content=content)


# ---------------------------------------------------------------- the servers


def run_python(source: Path | None, folder: Path, *command: str, check: bool = True, stdin: str | None = None) -> str:
    """Run this Python with the package of another folder, if one is given; what it writes."""
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=make_environment(source),
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )
    if check and done.returncode:
        raise SystemExit(f"{command} failed: {done.stderr[-2000:]}")
    return done.stdout.strip()


def make_environment(source: Path | None) -> dict[str, str]:
    """The environment in which ``import adjudge`` finds the package of a folder."""
    return dict(os.environ) if source is None else os.environ | {"PYTHONPATH": str(source)}


@contextmanager
def start_server(source: Path | None, folder: Path, name: str) -> Iterator[Target]:
    """Start ``adjudge serve`` in a folder, and sign in."""
    port = find_port()
    command = [sys.executable, *ADJUDGE, "serve", "--port", str(port)]
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(command, cwd=folder, env=make_environment(source), stderr=log, stdout=log) as process,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120) as client,
    ):
        try:
            wait_for(client, process, folder)
            token = re.search(r'name="csrf_token" value="([^"]+)"', client.get("/signin").text)
            form = {"name": "ana", "password": PASSWORD, "csrf_token": token[1] if token else "", "next": "/"}
            answer = client.post("/signin", data=form)
            if answer.status_code != 303:
                raise SystemExit(f"{name}: signing in answered {answer.status_code}")
            yield Target(name=name, port=port, pid=process.pid, client=client)
        finally:
            process.terminate()
            process.wait(60)


def wait_for(client: httpx.Client, process: subprocess.Popen[bytes], folder: Path) -> None:
    """Wait until a server answers."""
    end = time.monotonic() + 120
    while time.monotonic() < end and process.poll() is None:
        try:
            if client.get("/healthz").status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    raise SystemExit(f"the server did not start: {(folder / 'log').read_text('utf-8')[-2000:]}")


def copy_database(url: str, name: str) -> str:
    """Copy a database of a PostgreSQL server under another name; its address."""
    from sqlalchemy import make_url

    address = make_url(url)
    execute_alone(
        address, f'DROP DATABASE IF EXISTS "{name}"', f'CREATE DATABASE "{name}" TEMPLATE "{address.database}"'
    )
    return address.set(database=name).render_as_string(hide_password=False)


def execute_alone(address: Any, *statements: str) -> None:
    """Execute statements that take no transaction, from the database ``postgres`` of the same server."""
    from sqlalchemy import create_engine

    engine = create_engine(
        address.set(database="postgres", drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT"
    )
    with engine.connect() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
    engine.dispose()


@contextmanager
def prepare(arguments: argparse.Namespace, folder: Path, versions: dict[str, Path | None]) -> Iterator[dict[str, Path]]:
    """A folder with a configuration and a filled ledger for each version."""
    from sqlalchemy import make_url

    maker, made = next(iter(versions.values())), folder / "made"
    made.mkdir()
    url = f"sqlite:///{made / 'adjudge.db'}"
    databases = [
        f"adjudge_pages_{os.getpid()}",
        *(f"adjudge_pages_{os.getpid()}_{place}" for place in range(len(versions))),
    ]
    with ExitStack() as stack:
        if arguments.postgres:
            server = make_url(arguments.postgres)
            execute_alone(server, f'CREATE DATABASE "{databases[0]}"')
            drops = [f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)' for name in reversed(databases)]
            stack.callback(execute_alone, server, *drops)
            url = server.set(database=databases[0]).render_as_string(hide_password=False)
        (made / "adjudge.toml").write_text(CONFIG.format(ledger=url), encoding="utf-8")
        (made / "runs").mkdir()
        begun = time.monotonic()
        run_python(maker, made, __file__, "--fill", url, *_repeat(arguments))
        print(f"made in {time.monotonic() - begun:.0f} s", flush=True)
        scopes = [word for scope in ("read", "approve", "label") for word in ("--scope", scope)]
        names = ["--approver", "Ana", "--rater", "ana"]
        run_python(maker, made, *ADJUDGE, "accounts", "add", "ana", *scopes, *names, stdin=PASSWORD)
        folders = {}
        for place, name in enumerate(versions):
            folders[name] = folder / f"version-{place}"
            shutil.copytree(made, folders[name])
            copied = f"sqlite:///{folders[name] / 'adjudge.db'}"
            copied = copy_database(url, databases[place + 1]) if arguments.postgres else copied
            (folders[name] / "adjudge.toml").write_text(CONFIG.format(ledger=copied), encoding="utf-8")
        yield folders


def _repeat(arguments: argparse.Namespace) -> list[str]:
    return ["--entries", str(arguments.entries), "--requests", str(arguments.requests)]


# ---------------------------------------------------------------- the measurement


def fill_in(target: Target) -> dict[str, str]:
    """The addresses of the pages, with ids of this ledger."""
    rows = target.client.get("/v1/results?when=all&limit=500").json()["results"]
    requests = target.client.get("/v1/approvals?limit=3").json()["approvals"]
    values = {"result": rows[-1]["id"], "request": requests[-1]["id"], "entry": str(rows[-1]["seq"])}
    return {page: page.format(**values) for page in PAGES}


def measure(targets: list[Target], arguments: argparse.Namespace) -> None:
    """Ask every server for every page in turn, and print a row for each page."""
    paths = fill_in(targets[0])
    for target in targets:
        for path in paths.values():
            target.client.get(path)
    for _ in range(arguments.rounds):
        for page, path in paths.items():
            for target in targets:
                target.ask(page, path, arguments.times)
    count = arguments.rounds * arguments.times
    heads = "".join(f"  {target.name + ' p50':>12} {'p95':>6} {'CPU':>6} {'kB':>6}" for target in targets)
    print(f"{'page':<48}{heads}  (ms)  {'CPU ratio' if len(targets) > 1 else ''}")
    for page in paths:
        row = f"{page:<48}"
        for target in targets:
            times = sorted(target.times[page])
            p50, p95 = statistics.median(times), times[min(len(times) - 1, int(0.95 * len(times)))]
            cpu = target.cpu[page] / count
            row += f"  {p50 * 1000:>12.0f} {p95 * 1000:>6.0f} {cpu * 1000:>6.0f} {target.size[page] / 1000:>6.0f}"
        if len(targets) > 1:
            row += f"        {targets[0].cpu[page] / max(targets[1].cpu[page], 0.001):>6.1f}"
        print(row, flush=True)


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=30_000)
    parser.add_argument("--requests", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--times", type=int, default=5, help="how often each page is asked for in a round")
    parser.add_argument("--postgres", help="the address of a PostgreSQL server")
    parser.add_argument("--against", type=Path, help="a folder with another version's package")
    parser.add_argument("--fill", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.fill:
        make_runs(Path("runs"))
        asyncio.run(make_ledger(arguments.fill, arguments.entries, arguments.requests))
        return
    versions: dict[str, Path | None] = {} if arguments.against is None else {"before": arguments.against.resolve()}
    versions["now"] = None
    print(f"load before: {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores, Python {sys.version.split()[0]}", flush=True)
    with (
        tempfile.TemporaryDirectory() as name,
        prepare(arguments, Path(name), versions) as folders,
        ExitStack() as stack,
    ):
        targets = [
            stack.enter_context(start_server(source, folders[version], version)) for version, source in versions.items()
        ]
        measure(targets, arguments)
    print(f"load after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
