"""Running contenders side by side: the mock, fresh processes, rounds that interleave them."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import common

SOURCE = common.BENCH.parent / "src"
ENVIRONMENTS = Path(os.environ.get("BENCH_VENVS") or common.BENCH / "venvs").resolve()
"""The folder in which setup.sh makes the environments."""


@dataclass(frozen=True)
class Contender:
    """One driver in one variant."""

    name: str
    driver: str
    variant: str
    arguments: tuple[str, ...] = ()
    environment: str = ""
    """The directory under venvs/ whose Python runs it; empty: the Python that runs the benchmark."""

    @property
    def python(self) -> Path:
        """The interpreter."""
        return find_python(self.environment) if self.environment else Path(sys.executable)


def find_python(environment: str) -> Path:
    """The Python of an environment that setup.sh makes."""
    return ENVIRONMENTS / environment / "bin" / "python"


def make_environment() -> dict[str, str]:
    """The environment of a driver: this tree's adjudge before an installed one, its bytecode kept as that one's is."""
    paths = [str(SOURCE), os.environ.get("PYTHONPATH", "")]
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


@contextlib.contextmanager
def run_mock() -> Iterator[int]:
    """The port of a mock; it has ended when the block is left."""
    python = find_python("server")
    if not python.exists():
        print("bench/venvs/server is absent, so the mock runs without uvloop; ./setup.sh makes it", file=sys.stderr)
        python = Path(sys.executable)
    command = [str(python), str(common.BENCH / "mock_llm.py"), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline().rsplit(":", 1)[1])
        finally:
            process.kill()


def run_one(contender: Contender, port: int, *arguments: str) -> dict[str, Any]:
    """One measurement in a process of its own."""
    driver = common.BENCH / "drivers" / f"{contender.driver}.py"
    command = [str(contender.python), str(driver), "--variant", contender.variant, "--port", str(port)]
    command += [*contender.arguments, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, env=make_environment())
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if not lines:
        sys.exit(f"{contender.name} gave no result:\n{done.stderr[-2000:]}")
    row: dict[str, Any] = json.loads(lines[-1].removeprefix("RESULT "))
    if row["errors"] or row["passed"] != row["n"]:
        sys.exit(
            f"{contender.name}: {row['passed']} of {row['n']} passed, {row['errors']} errors: {row['first_error']}"
        )
    return row


def run_rounds(
    contenders: list[Contender], port: int, *arguments: str, rounds: int = 5
) -> dict[str, list[dict[str, Any]]]:
    """Measurements of every contender, interleaved; those whose environment is absent are left out, and said so."""
    present = {item.name: item for item in contenders if item.python.exists()}
    for item in contenders:
        if item.name not in present:
            print(f"{item.name} is left out: bench/venvs/{item.environment} is absent; ./setup.sh makes it")
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in present}
    for number in range(rounds):
        for name in common.rotate(list(present), number):
            found[name].append(run_one(present[name], port, *arguments))
    return found


@contextlib.contextmanager
def record_body(contender: Contender, port: int) -> Iterator[str]:
    """A file with a request body exactly as a contender sends it, for the floor to send."""
    row = run_one(contender, port, "--n", "1", "--c", "1", "--warm", "1")
    body = common.get(f"http://127.0.0.1:{port}/last?run={row['run']}")
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "body.json"
        path.write_bytes(body)
        yield str(path)
