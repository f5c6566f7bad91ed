#!/usr/bin/env python3
"""Validating what a tool puts out: ``validate_reuse`` against the library ``jsonschema``.

An output of 10 properties, one of them a list of 50 objects; every variant in a process of its own, 5 interleaved
rounds, CPU time. Two yardsticks: a validator of ``jsonschema`` that is made once and kept, and ``jsonschema.validate``,
which is handed the schema on every call as ``validate_reuse`` is. Target: at most a hundredth of the kept validator;
missed, since every output is looked at in full to know whether it is JSON, whatever its schema says.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import common
import suite

SHARE = 1 / 100
OURS = ("adjudge", "history")
THEIRS = ("kept", "call")
NAMES = {
    "adjudge": "validate_reuse",
    "history": "validate_reuse with a history",
    "kept": "jsonschema, validator kept",
    "call": "jsonschema.validate",
}


def main() -> None:
    """Measure, print, and say whether the target is met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    python = suite.find_python("jsonschema")
    if not python.exists():
        sys.exit("bench/venvs/jsonschema is absent; ./setup.sh jsonschema makes it")
    found: dict[str, list[dict[str, float]]] = {name: [] for name in (*OURS, *THEIRS)}
    for number in range(rounds):
        for name in common.rotate(list(found), number):
            found[name].append(measure(name, python if name in THEIRS else Path(sys.executable)))
    cost = {name: common.median(rows, "us") for name, rows in found.items()}
    rows = []
    for name, value in cost.items():
        every = sorted(row["us"] for row in found[name])
        shares = [f"1/{cost[other] / value:.0f}" for other in THEIRS]
        rows.append([NAMES[name], f"{value:.1f}", f"{every[0]:.1f}-{every[-1]:.1f}", *shares])
    common.print_table(["what", "CPU us", "range", "of kept", "of validate"], rows)
    figures = {"us": {name: round(value, 1) for name, value in cost.items()}, "version": found["kept"][0]["version"]}
    common.print_verdict("validate", figures, met=cost["adjudge"] <= SHARE * cost["kept"])


def measure(variant: str, python: Path) -> dict[str, float]:
    """One variant in a process of its own."""
    driver = common.BENCH / "drivers" / "validating_.py"
    command = [str(python), str(driver), "--variant", variant]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=suite.make_environment())
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if not lines:
        sys.exit(f"{variant} gave no result:\n{done.stderr[-2000:]}")
    row: dict[str, float] = json.loads(lines[-1].removeprefix("RESULT "))
    return row


if __name__ == "__main__":
    main()
