#!/usr/bin/env python3
"""adjudge beside the other libraries that judge, in one run: cost, throughput, memory, and what faults do to them.

Every library has an environment of its own (``bench/setup.sh peers``; made here where it is absent) and is driven in
its leanest form that was found, by ``peers/NAME_.py`` or one of ``bench/drivers``. Fresh processes by turns, against
one mock:

* zero latency, 64 in flight, 2,000 judgements: CPU for each. Target: ``evaluate_many`` and
  ``run`` take at most a sixth (aim: a tenth) of the best other library.
* 200 ms, 256 in flight, ten whole rounds of them: throughput. Target: at least 0.92 of the bare client; and in 20,480
  judgements, memory that does not grow in the second half by more than 64 bytes each.
* the same latency with 5 % answered 429 (with Retry-After), 5 % 500, 2 % cut off and 1 % never answered; a timeout of
  2 s, 4 retries where a library has them. Target: every case ends with an outcome or a stated reason, within 1.3 times
  the time without faults, plus the timeout, plus the longest sum of Retry-After that one case met at the server.

Figures are medians. adjudge, the bare client and autoevals, which comes nearest, take part in every round, the others
in the first ``--others``. Others judge fewer items at 200 ms, and DeepEval and Verdict, which take longest, fewer
everywhere; the table says how many.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))
import common
import suite

DRIVERS = (common.BENCH / "drivers", Path(__file__).resolve().parent / "peers")
SHARE, AIM, LEAST, MOST_BYTES = 1 / 6, 1 / 10, 0.92, 64.0
SLOW = "lat-200"
FAULTS = f"{SLOW}_e429-0.05_e500-0.05_mal-0.02_hang-0.01"
TIMEOUT_S, FACTOR = 2.0, 1.3
BARE, MANY, RUN = "bare aiohttp", "adjudge, evaluate_many", "adjudge, run"
OURS = (MANY, RUN)
PEERS = (
    ("autoevals", "direct"),
    ("openevals", "client"),
    ("phoenix", "direct"),
    ("mlflow", "threads"),
    ("litellm", "plain"),
    ("instructor", "tools"),
    ("ragas", "discrete"),
    ("inspect_ai", "scorer"),
    ("pydantic_evals", "direct"),
    ("verdict", "pipeline"),
    ("deepeval", "direct"),
    ("promptfoo", "eval"),
)
CLOSE = (BARE, *OURS, "autoevals")
"""The libraries that take part in every round."""
FEWER = {"deepeval": 4, "verdict": 4}
NODE = ("promptfoo",)
"""The libraries whose memory is another process's, and cannot be followed."""
"""By what the number of judgements is divided."""

Row = dict[str, Any]
Found = dict[str, list[Row]]


def list_contenders(body: str, only: Iterable[str]) -> list[suite.Contender]:
    """Everything that is compared."""
    ours = [
        suite.Contender(BARE, "floor", "post", ("--body", body)),
        suite.Contender(MANY, "adjudge_", "many"),
        suite.Contender(RUN, "adjudge_", "run"),
    ]
    chosen = set(only) or {name for name, _ in PEERS}
    return ours + [
        suite.Contender(name, f"{name}_", variant, environment=name) for name, variant in PEERS if name in chosen
    ]


def make_environments(contenders: list[suite.Contender]) -> None:
    """Have setup.sh make what is absent."""
    names = ["server", *(item.environment for item in contenders if item.environment)]
    absent = [name for name in names if not suite.find_python(name).exists()]
    for name in absent:
        done = subprocess.run([str(common.BENCH / "setup.sh"), name], check=False)
        if done.returncode:
            print(f"{name} cannot be installed here, and is left out", file=sys.stderr)


def measure(contender: suite.Contender, port: int, count: int, *arguments: str, limit: float) -> Row:
    """One measurement in a process of its own, whatever comes of it; a library's files go where they are removed."""
    driver = next(path for folder in DRIVERS if (path := folder / f"{contender.driver}.py").is_file())
    count //= FEWER.get(contender.name, 1)
    command = [str(contender.python), str(driver), "--variant", contender.variant, "--port", str(port)]
    command += [*contender.arguments, "--n", str(count), "--limit", str(limit), *arguments]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        environment = suite.make_environment() | {"HOME": folder, "TMPDIR": folder}
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=limit + 90, env=environment, cwd=folder
            )
            lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
            said = done.stderr[-300:]
        except subprocess.TimeoutExpired:
            lines, said = [], "it did not end"
    if not lines:
        return {"n": count, "failed": said, "lost": 0, "hung": count, "passed": 0}
    row: Row = json.loads(lines[-1].removeprefix("RESULT "))
    print(
        f"  {contender.name}: {1e-3 * row['cpu_us']:.2f} ms, {row['wall_s']:.2f} s, {row['outcomes']}", file=sys.stderr
    )
    return row


def take_turns(
    contenders: list[suite.Contender], port: int, count: int, *arguments: str, rounds: int, others: int, share: int = 1
) -> Found:
    """Rounds of all by turns; those that are far off take part in the first ``others``."""
    found: Found = {item.name: [] for item in contenders}
    by_name = {item.name: item for item in contenders}
    for number in range(rounds):
        for name in common.rotate(list(by_name), number):
            if number < others or name in CLOSE:
                each = count if name in CLOSE else count // share
                found[name].append(measure(by_name[name], port, each, *arguments, limit=180))
    return found


def pick(rows: list[Row], name: str) -> float | None:
    """The median of a figure over rounds in which everything passed."""
    good = [row[name] for row in rows if row["passed"] == row["n"] and row.get(name) is not None]
    return statistics.median(good) if good else None


def write(value: float | None, form: str = ".2f") -> str:
    return "-" if value is None else format(value, form)


def show_cost(found: Found) -> Row:
    """CPU at zero latency."""
    cost = {name: pick(rows, "cpu_us") for name, rows in found.items()}
    base = cost[MANY] or float("nan")
    table = []
    for name, rows in found.items():
        every = sorted(row["cpu_us"] / 1000 for row in rows if row["passed"] == row["n"])
        span = f"{every[0]:.3f}-{every[-1]:.3f}" if every else "-"
        value = cost[name]
        shown = [write(value and value / 1000, ".3f"), span, write(value and value / base, ".1f")]
        shown += [write(pick(rows, "wall_s")), write(pick(rows, "peak_rss_mb"), ".0f")]
        table.append([name, str(rows[0].get("version", "-")), str(rows[0]["n"]), *shown])
    head = ["library", "version", "n", "CPU ms", "range", "x adjudge", "wall s", "peak MB"]
    print("\nZero latency, 64 in flight\n")
    common.print_table(head, table)
    best = min((value, name) for name, value in cost.items() if value and name not in (BARE, *OURS))
    shares = {name: (cost[name] or float("inf")) / best[0] for name in OURS}
    return {
        "cpu_us": cost,
        "best_other": best[1],
        "share_of_best": shares,
        "cpu_met": all(value <= SHARE for value in shares.values()),
        "cpu_aim_met": all(value <= AIM for value in shares.values()),
    }


def show_throughput(found: Found, long: Found) -> Row:
    """Throughput and memory at 200 ms."""
    rate = {name: pick(rows, "per_second") for name, rows in found.items()}
    bare = rate[BARE] or float("nan")
    slope = {name: pick(rows, "bytes_per_judgement") for name, rows in long.items()}
    table = []
    for name, rows in found.items():
        value = rate[name]
        in_flight = max((row["server"]["max_in_flight"] for row in rows if "server" in row), default=0)
        shown = [write(value, ".0f"), write(value and value / bare, ".3f"), str(in_flight)]
        shown += [write(pick(rows, "cpu_us") and (pick(rows, "cpu_us") or 0) / 1000, ".3f")]
        own = pick(rows, "bytes_per_judgement") if name not in slope else slope[name]
        own = None if name in NODE else own
        table.append([name, str(rows[0]["n"]), *shown, write(pick(rows, "peak_rss_mb"), ".0f"), write(own, ".0f")])
    print(
        "\n200 ms, 256 in flight. Bytes: growth per judgement in the second half, of adjudge and the bare client over"
    )
    print(f"{next(iter(long.values()))[0]['n']:,} judgements, of the others over n, in which pools still fill.\n")
    common.print_table(["library", "n", "per s", "of bare", "in flight", "CPU ms", "peak MB", "bytes"], table)
    shares = {name: (rate[name] or 0.0) / bare for name in OURS}
    return {
        "per_second": rate,
        "of_bare": shares,
        "throughput_met": all(value >= LEAST for value in shares.values()),
        "bytes_per_judgement": slope,
        "memory_met": all((slope[name] if slope[name] is not None else 1e9) <= MOST_BYTES for name in OURS),  # type: ignore[operator]
    }


def meet_faults(contenders: list[suite.Contender], port: int, count: int, seeds: int) -> list[tuple[str, Row, Row]]:
    """(name, without faults, with them): adjudge with every seed, the others with the first and fewer items."""
    found = []
    settings = ("--c", "256", "--warm", "0", "--timeout", str(TIMEOUT_S), "--retries", "4")
    for item in contenders:
        if item.name == BARE:
            continue
        ours = item.name in OURS
        for seed in range(seeds if ours else 1):
            number = count if ours else count // 4
            free = measure(item, port, number, *settings, "--cfg", SLOW, limit=30)
            hurt = measure(item, port, number, *settings, "--cfg", f"{FAULTS}_seed-{seed}", limit=30)
            found.append((item.name, free, hurt))
    return found


def show_faults(found: list[tuple[str, Row, Row]]) -> Row:
    """Show what became of every case, and how long it took."""
    table, met, all_rows = [], True, []
    for name, free, hurt in found:
        if "failed" in free or "failed" in hurt:
            table.append([name, str(hurt["n"]), "-", "it did not end", "-", str(hurt["hung"]), "-", "-", "no"])
            met = met and name not in OURS
            continue
        longest = hurt["server"]["longest_wait_s"]
        bound = FACTOR * free["wall_s"] + TIMEOUT_S + longest
        within = hurt["wall_s"] <= bound and not hurt["hung"]
        rest = {key: value for key, value in sorted(hurt["outcomes"].items()) if key != "passed"}
        reasons = ", ".join(f"{value} {key}" for key, value in rest.items()) or "-"
        ended = not hurt["lost"] and not hurt["hung"] and not hurt["wrong"] and not hurt["none"] and not hurt["errors"]
        if name in OURS:
            met = met and within and ended
        counts = [str(hurt["passed"]), reasons, str(hurt["lost"]), str(hurt["hung"])]
        times = [f"{free['wall_s']:.2f}", f"{hurt['wall_s']:.2f} ({bound:.2f})", "yes" if within else "no"]
        table.append([name, str(hurt["n"]), *counts, *times])
        all_rows.append({"name": name, "bound_s": bound, "within": within, "free_s": free["wall_s"], **hurt})
    print(
        "\nFaults: 200 ms, 256 in flight, 5 % 429, 5 % 500, 2 % cut off, 1 % never answered, timeout 2 s, 4 retries\n"
    )
    head = ["library", "n", "passed", "no verdict, and why", "lost", "hung", "s without", "s with (bound)", "within"]
    common.print_table(head, table)
    return {"faults": all_rows, "faults_met": met}


def main() -> None:
    """Measure, print, and say whether the targets are met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--others", type=int, default=1, help="rounds of those that are far off")
    parser.add_argument("--seeds", type=int, default=3, help="how often adjudge meets other faults")
    parser.add_argument("--only", action="append", default=[], help="leave out the other libraries that are not named")
    parser.add_argument("--json", default="", help="write every measurement into this file")
    options = parser.parse_args()
    print(f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} when it began")
    ours = suite.Contender("", "adjudge_", "token")
    make_environments(list_contenders("", options.only))
    with suite.run_mock() as port, suite.record_body(ours, port) as body:
        everybody = [item for item in list_contenders(body, options.only) if item.python.exists()]
        few = [item for item in everybody if not item.environment]
        zero = take_turns(
            everybody, port, options.n, "--c", "64", "--warm", "128", rounds=options.rounds, others=options.others
        )
        figures = show_cost(zero)
        at_200 = ("--c", "256", "--warm", "256", "--cfg", SLOW)
        slow = take_turns(everybody, port, 2560, *at_200, rounds=options.rounds, others=options.others, share=2)
        long = take_turns(few, port, 20480, *at_200, rounds=1, others=0)
        figures |= show_throughput(slow, long)
        figures |= show_faults(meet_faults(everybody, port, options.n, options.seeds))
    print()
    if options.json:
        everything = {"zero": zero, "slow": slow, "long": long, "figures": figures}
        Path(options.json).write_text(json.dumps(everything, indent=1), encoding="utf-8")
    said = {name: value for name, value in figures.items() if name != "faults"}
    met = all(value for name, value in figures.items() if name.endswith("_met") and name != "cpu_aim_met")
    common.print_verdict("peers", said, met=met)


if __name__ == "__main__":
    main()
