#!/usr/bin/env python3
"""Agents whose calls two servers check, with people who decide some of them, while one server is killed twice.

    python bench/agents.py --postgres postgresql+psycopg://postgres@127.0.0.1:5432/DATABASE
    python bench/agents.py --postgres URL --minutes 1 --agents 50 --rate 10

Two processes of ``adjudge serve`` share a PostgreSQL database, which has to be empty. The agents (200) ask before each
call, run it if they may, and report it (``/v1/hooks/claude``): 20 calls a second together, evenly spread whatever the
servers do. 5 % of the calls wait for people, who look at the queue twice a second, approve nine of ten and deny the
rest. An agent whose request fails asks the other server, as behind a load balancer. One in ten agents that may make an
approved call dies before it runs it, or before it reports it. After a third and after two thirds of the time the first
server is killed (SIGKILL), and started again 5 seconds later. A bare FastAPI endpoint is asked at
the same moments, so that the times can be compared.

Checked afterwards, from what the agents and the people were told and from the ledger alone (exit status 1 where one
does not hold):

    the ledger is in order
    no request is lost      each call that an agent was told to wait with has its request in the ledger
    no vote is lost         each vote that was answered with 200 is there and counts
    nothing ran unasked     each call that ran was let pass in the ledger, and a held one was approved before
    nothing ran twice       no call ran twice, and no approval was used for two
    what may not have run   approved calls that were let pass and not reported, because the agent died or the answer
    is listed               was lost, are those that ``adjudge ledger unfinished`` lists, and no others
    memory is flat          of the server that was not killed: the last fifth of the time beside the second fifth
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import common

sys.path.insert(0, str(common.BENCH.parent / "src"))

from server import ADJUDGE, BARE, find_port

CONFIG = """
[gates.shell]
rules = [{{not_contains = "curl"}}]

[gates.deploys]
rules = [{{regex = "^$"}}]
on_rule = "ask"

[approvals]
approvers = [{approvers}]
show_content = true

[hook]
tools = {{"Bash" = "shell", "deploy" = "deploys"}}
match = "call"

[ledger]
url = "{ledger}"
"""

APPROVERS = ("ana", "ben", "cy")
DENIED = 0.1
"""The share of held calls that people deny."""
DYING = 0.1
"""The share of agents that die when they may make an approved call: half of them before it runs, half after."""
PAUSE = 2.0
"""Seconds after which an agent asks again about a call that waits."""
DOWN = 5.0
"""Seconds for which a killed server is away."""
MOST_GROWTH = 0.10
"""Growth of memory that still counts as flat."""
LEAST_MINUTES = 5.0
"""Minutes from which on memory says something."""
ENVIRONMENT = os.environ | {"PYTHONPATH": str(common.BENCH.parent / "src")}


@dataclass(slots=True)
class Server:
    """One process of ``adjudge serve``, which can be killed and started again on its port."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None
    memory: list[tuple[float, int]] = field(default_factory=list)
    """Seconds and resident kilobytes."""

    def start(self) -> None:
        """Start it; ``wait`` returns when it listens."""
        log = (self.folder / f"server-{self.port}.log").open("ab")
        command = [sys.executable, *ADJUDGE, "serve", "--port", str(self.port)]
        self.process = subprocess.Popen(command, cwd=self.folder, env=ENVIRONMENT, stderr=log)
        log.close()

    async def wait(self) -> None:
        """Wait until it accepts connections."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            with suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                writer.close()
                return
            await asyncio.sleep(0.05)
        raise SystemExit(f"the server on port {self.port} did not start; see {self.folder}")

    def kill(self) -> None:
        """End it as a power cut would."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def note_memory(self, now: float) -> None:
        """Remember how much memory it has now."""
        assert self.process is not None
        with suppress(OSError, IndexError, ValueError):
            pages = int(Path(f"/proc/{self.process.pid}/statm").read_text("ascii").split()[1])
            self.memory.append((now, pages * os.sysconf("SC_PAGE_SIZE") // 1024))


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a server to an event."""

    body: dict[str, Any] | None
    """``None`` where none answered."""
    is_unsure: bool = False
    """True if a server may have taken the event without answering."""


@dataclass(slots=True)
class Told:
    """The words that agents and people were told, to be compared with the ledger."""

    asked: int = 0
    held: set[str] = field(default_factory=set)
    """Names of calls that had to wait."""
    ran: Counter[str] = field(default_factory=Counter)
    """The number of times that each call ran."""
    reported: set[str] = field(default_factory=set)
    """Calls whose report was answered with 200."""
    denied: set[str] = field(default_factory=set)
    died: set[str] = field(default_factory=set)
    """Approved calls whose agent died before it reported them."""
    given_up: set[str] = field(default_factory=set)
    """Held calls that were not allowed when the time was over, or whose approval had been used by a lost answer."""
    votes: dict[str, tuple[str, bool]] = field(default_factory=dict)
    """By request: who voted, and how, of the votes that were answered with 200."""
    statuses: Counter[str] = field(default_factory=Counter)
    times: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Seconds of each answer: of ``hook`` and ``bare``, and of ``hook`` while both servers were there."""


class Load:
    """The agents, the people, and the servers that they ask."""

    def __init__(self, servers: list[Server], bare: int, keys: dict[str, str], options: argparse.Namespace) -> None:
        self.servers, self.bare, self.keys, self.options = servers, bare, keys, options
        self.told = Told()
        self.random = random.Random(options.seed)
        self.begun = time.monotonic()
        self.ends = self.begun + options.minutes * 60
        self.is_whole = True
        """True while both servers are there."""

    async def run(self) -> None:
        """Everything at once, until the time is over and what waited was decided."""
        timeout = aiohttp.ClientTimeout(total=30)
        async with aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=0)) as self.session:
            people = [asyncio.create_task(self.decide(name)) for name in APPROVERS]
            watching = asyncio.create_task(self.watch())
            async with asyncio.TaskGroup() as group:
                group.create_task(self.kill_twice())
                for number in range(self.options.agents):
                    group.create_task(self.work(number))
            for task in (*people, watching):
                task.cancel()
            await asyncio.wait([*people, watching])

    async def watch(self) -> None:
        """Note the servers' memory."""
        while True:
            for server in self.servers:
                server.note_memory(time.monotonic() - self.begun)
            await asyncio.sleep(1.0)

    async def kill_twice(self) -> None:
        """Kill the first server at a third and at two thirds of the time."""
        for share in (1 / 3, 2 / 3):
            await asyncio.sleep(self.begun + share * self.options.minutes * 60 - time.monotonic())
            self.is_whole = False
            self.servers[0].kill()
            print(f"killed the first server after {time.monotonic() - self.begun:.0f} s", flush=True)
            await asyncio.sleep(DOWN)
            self.servers[0].start()
            await self.servers[0].wait()
            self.is_whole = True

    # ------------------------------------------------------------ agents

    async def work(self, number: int) -> None:
        """One agent: a call whenever it is due, the next one after it was allowed or refused."""
        interval = self.options.agents / self.options.rate
        due = self.begun + interval * number / self.options.agents
        count = 0
        async with asyncio.TaskGroup() as calls:
            while due < self.ends:
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                # A new session after ten calls: three denials end the trust in one.
                call = f"agent-{number}-{count // 10}/t{count}"
                calls.create_task(self.make_call(call, number, is_held=self.random.random() < self.options.held))
                calls.create_task(self.ask_bare())
                count += 1
                due += interval

    async def make_call(self, call: str, number: int, *, is_held: bool) -> None:
        """Ask, run it if that is allowed, and report it once, as a hook does."""
        self.told.asked += 1
        session, _, ident = call.partition("/")
        tool, command = ("deploy", f"deploy {call}") if is_held else ("Bash", f"ls {call}")
        event = {"session_id": session, "cwd": "/work", "tool_name": tool, "tool_use_id": ident}
        event["tool_input"] = {"command": command}
        if not await self.ask_until_decided(call, number, {**event, "hook_event_name": "PreToolUse"}):
            return
        dies = is_held and self.random.random() < DYING
        if dies:
            self.told.died.add(call)
        if dies and self.random.random() < 0.5:
            return
        self.told.ran[call] += 1
        if dies:
            return
        response = {"stdout": "done", "stderr": "", "interrupted": False, "isImage": False}
        report = {**event, "hook_event_name": "PostToolUse", "tool_response": response}
        while time.monotonic() < self.ends + 60:
            answer = await self.ask(number, report, once=True)
            if answer.body is not None:
                self.told.reported.add(call)
            if answer.body is not None or answer.is_unsure:
                return
            await asyncio.sleep(0.2)

    async def ask_until_decided(self, call: str, number: int, event: dict[str, Any]) -> bool:
        """Ask, and again while the call waits for people; returns whether it may be made."""
        while time.monotonic() < self.ends + 60:
            answer = (await self.ask(number, event)).body
            if answer == {}:
                return True
            reason = str((answer or {}).get("hookSpecificOutput", {}).get("permissionDecisionReason"))
            if "a person said no" in reason:
                self.told.denied.add(call)
                return False
            if "waits for a person" in reason:
                self.told.held.add(call)
            elif answer is not None:
                self.told.statuses[f"refused: {reason[:80]}"] += 1
                break
            await asyncio.sleep(PAUSE if answer is not None else 0.2)
        self.told.given_up.add(call)
        return False

    async def ask(self, number: int, event: dict[str, Any], *, once: bool = False) -> Answer:
        """Ask one server, and the other one where that fails; with ``once``, only if the first did not take it."""
        headers = {"Authorization": f"Bearer {self.keys[f'hook-{number % 4}']}"}
        for turn in range(2):
            server = self.servers[(number + turn) % len(self.servers)]
            started, was_whole = time.perf_counter(), self.is_whole
            try:
                url = f"http://127.0.0.1:{server.port}/v1/hooks/claude"
                async with self.session.post(url, json=event, headers=headers) as response:
                    body = await response.read()
                    self.told.statuses[f"hook {response.status}"] += 1
                    if response.status == 200:
                        self.note_time(time.perf_counter() - started, is_whole=was_whole and self.is_whole)
                        return Answer(json.loads(body))
                    is_taken = response.status != 503  # it was busy
            except (aiohttp.ClientError, TimeoutError) as error:
                self.told.statuses[f"hook {type(error).__name__}"] += 1
                is_taken = not isinstance(error, aiohttp.ClientConnectorError)
            if once and is_taken:
                return Answer(None, is_unsure=True)
        return Answer(None)

    def note_time(self, seconds: float, *, is_whole: bool) -> None:
        """Remember how long an answer took."""
        self.told.times["hook"].append(seconds)
        if is_whole:
            self.told.times["hook, both there"].append(seconds)

    async def ask_bare(self) -> None:
        """Ask the bare endpoint at the same moment."""
        started = time.perf_counter()
        with suppress(aiohttp.ClientError, TimeoutError):
            async with self.session.post(f"http://127.0.0.1:{self.bare}/now", json={"content": "x"}) as response:
                await response.read()
                self.told.times["bare"].append(time.perf_counter() - started)

    # ------------------------------------------------------------ people

    async def decide(self, name: str) -> None:
        """One approver: look at the queue, read the oldest requests, and vote."""
        place = APPROVERS.index(name)
        headers = {"Authorization": f"Bearer {self.keys[name]}"}
        while True:
            for request in await self.read_queue(place, headers):
                # Each takes their own share of the queue, as people do who agree among themselves.
                if sum(request["id"].encode()) % len(APPROVERS) == place and request["id"] not in self.told.votes:
                    await self.vote(request["id"], name, place, headers)
            await asyncio.sleep(0.5)

    async def read_queue(self, place: int, headers: dict[str, str]) -> list[dict[str, Any]]:
        """The open requests, of whichever server answers."""
        for turn in range(2):
            server = self.servers[(place + turn) % len(self.servers)]
            with suppress(aiohttp.ClientError, TimeoutError):
                url = f"http://127.0.0.1:{server.port}/v1/approvals?limit=100"
                async with self.session.get(url, headers=headers) as response:
                    if response.status == 200:
                        rows: list[dict[str, Any]] = (await response.json())["approvals"]
                        return rows
        return []

    async def vote(self, ident: str, name: str, place: int, headers: dict[str, str]) -> None:
        """Read one request in full and decide about it."""
        approved = self.random.random() >= DENIED
        server = self.servers[place % len(self.servers)]
        url = f"http://127.0.0.1:{server.port}/v1/approvals/{ident}"
        with suppress(aiohttp.ClientError, TimeoutError):
            async with self.session.get(url, headers=headers) as response:
                shown = (await response.json()).get("shown")
            body = {"approved": approved, "reason": "read it", "seen": shown}
            async with self.session.post(f"{url}/votes", json=body, headers=headers) as response:
                self.told.statuses[f"vote {response.status}"] += 1
                if response.status == 200:
                    self.told.votes[ident] = (name, approved)


# ---------------------------------------------------------------- what the ledger says


@dataclass(slots=True)
class Record:
    """The ledger's record of the calls; each is named by its session and its id."""

    requests: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """By call: the requests about it."""
    votes: set[tuple[str, str, bool]] = field(default_factory=set)
    """Request, person, and how they voted, of the votes that count."""
    approved: set[str] = field(default_factory=set)
    used: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """By request: the calls that its approval allowed."""
    passed: Counter[str] = field(default_factory=Counter)
    ran: Counter[str] = field(default_factory=Counter)
    unchecked: list[str] = field(default_factory=list)

    def add(self, kind: str, payload: dict[str, Any]) -> None:
        """Take in an entry."""
        call = (payload.get("metadata") or {}).get("call") or {}
        if kind == "approval.requested":
            self.requests[make_call_name(call["run_id"], call["call_id"])].append(payload["approval"])
        elif kind == "approval.voted" and payload["accepted"]:
            self.votes.add((payload["approval"], payload["by"], payload["approved"]))
        elif kind == "approval.closed" and payload["status"] == "approved":
            self.approved.add(payload["approval"])
        elif kind == "decision" and payload.get("allowed") and payload.get("approval_id"):
            self.used[payload["approval_id"]].append(make_call_name(call["run_id"], call["call_id"]))
        elif kind in ("call.passed", "call.ran"):
            (self.passed if kind == "call.passed" else self.ran)[make_call_name(payload["run"], payload["call"])] += 1
        elif kind == "call.unchecked":
            self.unchecked.append(make_call_name(payload["run"], payload["call"]))

    def was_approved(self, call: str) -> bool:
        """Return True if people approved a call, or were not asked about it."""
        return call not in self.requests or not self.approved.isdisjoint(self.requests[call])

    def list_perhaps_unmade(self) -> set[str]:
        """The calls that an approval allowed and that no entry says were made."""
        return {call for calls in self.used.values() for call in calls if not self.ran[call]}


def make_call_name(run: str, call: str) -> str:
    """A call by its session and id; the ledger puts the key before the session."""
    return f"{run.partition('/')[2]}/{call}"


async def check(url: str, load: Load) -> list[str]:
    """Compare what was told with what the ledger holds; returns what does not hold."""
    from adjudge import Ledger

    told, record = load.told, Record()
    async with Ledger(url) as ledger:
        found = await ledger.verify()
        async for entry in ledger.query():
            record.add(entry.kind, entry.payload or {})
    print(f"ledger: {found.entries:,} entries, {'in order' if found.valid else found.detail}")
    unmade = record.list_perhaps_unmade()
    listed = {make_call_name(row["run"], row["call"]) for row in list_unfinished(load.servers[0].folder)}
    given = {(ident, who, how) for ident, (who, how) in told.votes.items()}
    print(
        f"{told.asked:,} calls: {len(told.ran):,} ran, {len(told.held):,} waited for people, {len(told.denied):,} were "
        f"denied, {len(told.given_up):,} refused; {len(told.votes):,} votes; {len(told.died)} agents died with an "
        f"approved call, {len(unmade - told.died)} answers to one were lost; listed as perhaps not made: {len(listed)}"
    )
    broken: dict[str, Iterable[object]] = {
        "the ledger is not in order": [] if found.valid else [found.detail],
        "a request is lost": told.held - record.requests.keys(),
        "a vote is lost": given - record.votes,
        "ran twice": [call for call, times in told.ran.items() if times > 1],
        "an approval was used twice": [ident for ident, calls in record.used.items() if len(calls) > 1],
        "ran and was not let pass": [call for call in told.ran if not record.passed[call]],
        "ran and was not approved": [call for call in told.ran if not record.was_approved(call)],
        "was made otherwise than it was let pass": record.unchecked,
        "was reported and is not recorded": [call for call in told.reported if not record.ran[call]],
        "may not have run and is not listed": (unmade | told.died) - listed,
        "is listed and ran": listed - unmade,
    }
    return [f"{what}: {one}" for what, every in broken.items() for one in every]


def list_unfinished(folder: Path) -> list[dict[str, Any]]:
    """Return what ``adjudge ledger unfinished`` lists."""
    command = [sys.executable, *ADJUDGE, "ledger", "unfinished", "--json", "--at-work", "0"]
    done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)
    rows: list[dict[str, Any]] = json.loads(done.stdout)["calls"]
    return rows


def judge_memory(load: Load) -> list[str]:
    """Compare the last fifth of the time with the second fifth, of the server that was not killed."""
    whole = load.options.minutes * 60
    memory = load.servers[1].memory
    early = [kilobytes for at, kilobytes in memory if whole / 5 <= at < whole * 2 / 5]
    late = [kilobytes for at, kilobytes in memory if whole * 4 / 5 <= at < whole]
    before, after = statistics.median(early) / 1024, statistics.median(late) / 1024
    print(f"memory of the server that was not killed: {before:.0f} MB, then {after:.0f} MB")
    if load.options.minutes < LEAST_MINUTES:
        return []  # it is still warming up
    return [f"memory grew from {before:.0f} to {after:.0f} MB"] if after > before * (1 + MOST_GROWTH) else []


def print_times(told: Told) -> None:
    """Print how long answers took."""
    rows = []
    for name in ("bare", "hook", "hook, both there"):
        cuts = statistics.quantiles(told.times[name], n=1000) if len(told.times[name]) > 1 else [float("nan")] * 999
        milliseconds = [cuts[place] * 1000 for place in (499, 989, 998)]
        rows.append([name, f"{len(told.times[name]):,}", *(f"{value:.1f}" for value in milliseconds)])
    common.print_table(["answer", "number", "p50 ms", "p99 ms", "p99.9 ms"], rows)
    print("; ".join(f"{name}: {count:,}" for name, count in sorted(told.statuses.items())))


# ---------------------------------------------------------------- the whole


def make_key(folder: Path, *words: str) -> str:
    """A key of the servers."""
    command = [sys.executable, *ADJUDGE, "keys", "create", *words]
    done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout.strip()


@contextmanager
def start_bare(folder: Path) -> Iterator[int]:
    """The bare endpoint; its port."""
    port = find_port()
    (folder / "bare.py").write_text(BARE, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "uvicorn",
        "bare:app",
        "--port",
        str(port),
        "--no-access-log",
        "--log-level",
        "error",
    ]
    process = subprocess.Popen(command, cwd=folder)
    try:
        yield port
    finally:
        process.kill()
        process.wait()


async def drive(folder: Path, bare: int, keys: dict[str, str], options: argparse.Namespace) -> Load:
    """Start the servers, load them, and stop them."""
    servers = [Server(folder, find_port()) for _ in range(2)]
    try:
        for server in servers:
            server.start()
            await server.wait()
        load = Load(servers, bare, keys, options)
        await load.run()
        return load
    finally:
        for server in servers:
            if server.process is not None:
                server.process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    server.process.wait(30)
                server.process.kill()
                server.process.wait()


def main() -> int:
    """Load two servers, and compare what was told with the ledger; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--postgres", required=True, help="the address of an empty database")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--agents", type=int, default=200)
    parser.add_argument("--rate", type=float, default=20.0, help="calls a second of all agents together")
    parser.add_argument("--held", type=float, default=0.05, help="the share of calls that wait for people")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--keep", type=Path, help="an empty folder in which configuration and logs stay")
    options = parser.parse_args()
    print(f"load before: {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores, Python {sys.version.split()[0]}")
    with tempfile.TemporaryDirectory() as name:
        folder = options.keep or Path(name)
        approvers = ", ".join(json.dumps(one) for one in APPROVERS)
        text = CONFIG.format(ledger=options.postgres, approvers=approvers)
        (folder / "adjudge.toml").write_text(text, encoding="utf-8")
        keys = {f"hook-{place}": make_key(folder, f"hook-{place}", "--scope", "hook") for place in range(4)}
        for one in APPROVERS:
            keys[one] = make_key(folder, one, "--scope", "approve", "--approver", one)
        with start_bare(folder) as bare:
            load = asyncio.run(drive(folder, bare, keys, options))
        print_times(load.told)
        problems = judge_memory(load) + asyncio.run(check(options.postgres, load))
    for problem in problems[:20]:
        print(f"DOES NOT HOLD: {problem}")
    print(f"{len(problems)} things do not hold; load after: {os.getloadavg()[0]:.1f}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
