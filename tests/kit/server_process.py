"""``adjudge serve`` as processes of their own, to be killed, and a relay in front of what they depend on, to be cut."""

from __future__ import annotations

import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kit.http_client import open_http_client
from kit.patience import HANG

httpx = pytest.importorskip("httpx")
for needed in ("argon2", "fastapi", "multipart", "prometheus_client", "uvicorn"):
    pytest.importorskip(needed)


@dataclass(slots=True, kw_only=True)
class ServerProcess:
    """A server that answers at ``url``; ``log`` is what it has written so far."""

    url: str
    process: subprocess.Popen[str]
    log: list[str]

    def open_client(self, key: str, **more: Any) -> httpx.Client:
        return open_http_client(self.url, headers={"Authorization": f"Bearer {key}"}, **more)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(HANG)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(HANG)


@dataclass(frozen=True, slots=True)
class ProcessTimes:
    """The time that the first thread of a process ran, and that it could have run and got no processor, in seconds."""

    running: float
    waiting: float


def read_times(pid: int) -> ProcessTimes:
    """Read the times of a process; none where the system does not say, which is all but Linux."""
    with suppress(OSError, ValueError):
        running, waiting, _ = Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()
        return ProcessTimes(int(running) / 1e9, int(waiting) / 1e9)
    return ProcessTimes(0.0, 0.0)


def compute_slowdown(before: ProcessTimes, after: ProcessTimes) -> float:
    """Compute how many times longer the thread took than on a machine that it has for itself; at least 1.

    A thread that mostly waits for others' requests is the slower the less it runs. One that does their work itself runs
    throughout, and is as much slower as the machine is: there the limits are tight.
    """
    running, waiting = after.running - before.running, after.waiting - before.waiting
    return 1.0 + waiting / running if running > 0 else 1.0


def run_command(folder: Path, *arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    """``adjudge`` with some arguments, in a folder."""
    command = [sys.executable, "-c", "from adjudge.cli import main; main()", *arguments]
    return subprocess.run(
        command, cwd=folder, env=make_environment(), capture_output=True, text=True, check=False, **more
    )


def make_key(folder: Path, *scopes: str, name: str = "ci") -> str:
    """A key for the server whose configuration is in a folder."""
    named = [part for scope in scopes or ("judge", "read") for part in ("--scope", scope)]
    made = run_command(folder, "keys", "create", name, *named)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


def make_environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    import adjudge

    root = str(Path(adjudge.__file__).parents[1])
    return dict(os.environ) | {"PYTHONPATH": root, "PYTHONUNBUFFERED": "1"} | dict(more or {})


@contextmanager
def serve(
    folder: Path,
    config: str | None = None,
    *,
    port: int = 0,
    environment: Mapping[str, str] | None = None,
    python: str | Path = sys.executable,
    command: Sequence[str] = (),
) -> Iterator[ServerProcess]:
    """``adjudge serve`` over the ``adjudge.toml`` of a folder, until the block ends, with whatever ``python`` has.

    Or a command of the test's own that starts it.
    """
    if config is not None:
        (folder / "adjudge.toml").write_text(config, encoding="utf-8")
    command = command or [str(python), "-c", "from adjudge.cli import main; main()", "serve", "--port", str(port)]
    process = subprocess.Popen(
        command, cwd=folder, env=make_environment(environment), stderr=subprocess.PIPE, text=True
    )
    running = ServerProcess(url="", process=process, log=[])
    ready = threading.Event()
    reader = threading.Thread(target=_follow, args=(running, ready), daemon=True)
    reader.start()
    try:
        ready.wait(HANG)
        assert running.url, f"the server did not start: {''.join(running.log)}"
        yield running
    finally:
        if process.poll() is None:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(HANG)
        process.kill()
        process.wait(HANG)
        reader.join(HANG)
        assert process.stderr is not None
        process.stderr.close()


def _follow(running: ServerProcess, ready: threading.Event) -> None:
    assert running.process.stderr is not None
    for line in running.process.stderr:
        running.log.append(line)
        address = re.search(r"adjudge serves on (\S+);", line)
        if address is not None:
            running.url = address[1]
            ready.set()
    ready.set()


@dataclass(slots=True, kw_only=True)
class Relay:
    """A port that leads to another one until it is cut: as if that server, or the network before it, were gone."""

    target: int
    port: int = 0
    _listener: socket.socket | None = None
    _open: list[socket.socket] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def join(self) -> None:
        """Lead there, on the port of before."""
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        listener.listen(64)
        self.port, self._listener = listener.getsockname()[1], listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def cut(self) -> None:
        """Close every connection and refuse new ones."""
        with self._lock:
            listener, self._listener = self._listener, None
            open_now, self._open = self._open, []
        for one in (*open_now, *([listener] if listener is not None else [])):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
                far = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                return
            with self._lock:
                if self._listener is not listener:
                    near.close()
                    far.close()
                    return
                self._open += [near, far]
            threading.Thread(target=_pump, args=(near, far), daemon=True).start()


def _pump(near: socket.socket, far: socket.socket) -> None:
    """Copy both ways until one end is closed."""
    with suppress(OSError, ValueError):
        while True:
            for one in select.select([near, far], [], [], 30)[0]:
                data = one.recv(65_536)
                if not data:
                    return
                (far if one is near else near).sendall(data)


@contextmanager
def open_relay(target: int) -> Iterator[Relay]:
    """A relay to a port of this machine."""
    relay = Relay(target=target)
    relay.join()
    try:
        yield relay
    finally:
        relay.cut()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A PostgreSQL server of a test's own."""

    folder: Path
    port: int
    control: tuple[str, ...]

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories="
        self._run("-o", options, "-l", str(self.folder / "log"), "-w", "start")

    def crash(self) -> None:
        """End it without a checkpoint, as a power cut would."""
        self._run("-m", "immediate", "stop")

    def _run(self, *arguments: str) -> None:
        subprocess.run(
            [*self.control, "-D", str(self.folder / "data"), *arguments], check=True, capture_output=True, timeout=HANG
        )


@contextmanager
def open_cluster(require: Any) -> Iterator[Cluster]:
    """A PostgreSQL server with a folder and a port of its own; it refuses to run as root, so another user runs it."""
    import shutil
    import tempfile

    require("initdb", shutil.which("initdb"), "install PostgreSQL and put its bin into PATH")
    with tempfile.TemporaryDirectory() as name, socket.socket() as listener:
        folder = Path(name)
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        listener.close()
        prefix: tuple[str, ...] = ()
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres")
            prefix = ("setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups")
        subprocess.run(
            [*prefix, "initdb", "-D", str(folder / "data"), "-U", "postgres", "-A", "trust"],
            check=True,
            capture_output=True,
            timeout=HANG,
        )
        cluster = Cluster(folder=folder, port=port, control=(*prefix, "pg_ctl"))
        cluster.start()
        try:
            yield cluster
        finally:
            with suppress(subprocess.CalledProcessError):
                cluster.crash()
