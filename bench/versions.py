#!/usr/bin/env python3
"""Two versions of adjudge beside each other: processor time of judgements, chains, runs, appends, and of starting.

    python bench/versions.py --before OLD/bin/python --after NEW/bin/python

Each is a Python in which a version is installed with the same dependencies. One process of each stays open, warm, and
they are told in turn to do a short piece of work (A B A B ...), so that a machine that others use slows both alike.
Only processor time of the process counts, threads and all. The ratio is that of the medians; that of the minima stands
beside it. Target: at most 1.03 times the version before for each, and ``adjudge --help`` at most twice the help of a
bare program of typer and rich with as many commands.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import common
import suite

MOST, MOST_HELP = 1.03, 2.0
SIDES = ("before", "after")
IN_FLIGHT = 64
RUBRIC = {"name": "Answer", "criteria": ({"name": "criterion 1", "description": common.CRITERION},)}
ENTRY = '{"name": "criterion 1", "reasoning": "It answers the question, and nothing is made up.", "score": 1.0}'

SIZES = {
    "judgement": 100,
    "judgement over HTTP": 100,
    "chain of 2": 60,
    "chain over HTTP": 40,
    "run": 150,
    "append": 320,
}
"""The operations that are measured, and the number of them in one piece of work."""
STARTS = {"import adjudge": ["-c", "import adjudge"], "adjudge --help": ["-m", "adjudge", "--help"]}
BARE = "typer and rich, bare --help"


# ------------------------------------------------------------------------------------ the process of one version


class Told:
    """A model in this process: what it answers costs next to nothing."""

    name = "told"
    structured = False

    async def complete(self, request: Any, /) -> Any:
        """A reply that passes."""
        from adjudge.models import Reply

        return Reply(text=f'{{"token": "{request.token}", "criteria": [{ENTRY}], "suggestions": []}}', model="told")


Work = Callable[[int], Awaitable[None]]


async def open_work(what: str, port: int, stack: contextlib.AsyncExitStack) -> Work:
    """The function that does so many of something."""
    from adjudge import Judge, JudgeChain, Rubric

    rubric = Rubric(**RUBRIC)
    if what == "append":
        return await open_append(stack)
    model: Any = f"http://127.0.0.1:{port}/run-v/v1#mock" if "HTTP" in what else Told()
    judge: Any = Judge(model, token=True)
    stack.push_async_callback(judge.aclose)
    if "chain" in what:
        judge = JudgeChain([judge, Judge(model, name="other")], timeout=60.0)
    if what == "run":
        return open_run(judge, rubric)

    async def one(item: common.Item) -> bool | None:
        result = await judge.evaluate(item["output"], rubric, task=item["input"])
        return result.passed

    async def work(count: int) -> None:
        answers = await common.judge_all(one, range(count), IN_FLIGHT)
        if answers.count(True) != count:
            sys.exit(f"{what}: {count - answers.count(True)} of {count} did not pass: {answers[0]!r}")

    return work


def open_run(judge: Any, rubric: Any) -> Work:
    """Runs into folders of their own."""
    from adjudge import Case, run

    async def work(count: int) -> None:
        items = map(common.make_item, range(count))
        cases = [Case(id=str(item["id"]), content=item["output"], task=item["input"]) for item in items]
        passed = 0
        with tempfile.TemporaryDirectory() as folder:
            async for item in run(cases, judge, rubric, out=Path(folder) / "run", concurrency=IN_FLIGHT):
                passed += item.result.passed
        if passed != count:
            sys.exit(f"run: {count - passed} of {count} did not pass")

    return work


async def open_append(stack: contextlib.AsyncExitStack) -> Work:
    """Appends by many callers at once to one ledger."""
    import ledger as bench  # beside this file; takes adjudge from where it was imported already

    from adjudge import Ledger

    folder = stack.enter_context(tempfile.TemporaryDirectory())
    ledger = await stack.enter_async_context(Ledger(f"sqlite:///{folder}/ledger.db"))

    async def work(count: int) -> None:
        await bench.append_together(ledger, count)

    return work


async def serve(port: int) -> None:
    """Do what standard input asks for, and say what each of it took, in microseconds of processor time."""
    works: dict[str, Work] = {}
    async with contextlib.AsyncExitStack() as stack:
        while line := await asyncio.to_thread(sys.stdin.readline):
            what, count = json.loads(line)
            if what not in works:
                works[what] = await open_work(what, port, stack)
            gc.collect()
            gc.disable()
            used = time.process_time()
            await works[what](count)
            used = time.process_time() - used
            gc.enable()
            print(json.dumps(1e6 * used / count), flush=True)


# -------------------------------------------------------------------------------------------------- the measuring


@contextlib.contextmanager
def start(python: str, port: int) -> Iterator[Callable[[str, int], float]]:
    """A process of one version; a function that has it do something."""
    command = [python, __file__, "--inside", str(port)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ()) as process:

        def ask(what: str, count: int) -> float:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps([what, count]) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
            return float(line) if line else sys.exit(f"{python} has ended in the middle of {what!r}")

        try:
            yield ask
        finally:
            process.kill()


def environ() -> dict[str, str]:
    """The environment of both: their own adjudge alone, with byte code kept."""
    left_out = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
    return {name: value for name, value in os.environ.items() if name not in left_out}


def measure_work(pythons: dict[str, str], names: list[str], rounds: int) -> dict[str, dict[str, list[float]]]:
    """Microseconds of processor time for one of each, of both versions in turn."""
    found: dict[str, dict[str, list[float]]] = {name: {side: [] for side in SIDES} for name in names}
    with suite.run_mock() as port, contextlib.ExitStack() as stack:
        asks = {side: stack.enter_context(start(python, port)) for side, python in pythons.items()}
        for name in names:
            for side in SIDES:
                asks[side](name, 3 * SIZES[name])  # warm
            for number in range(rounds):
                for side in common.rotate(list(SIDES), number):
                    found[name][side].append(asks[side](name, SIZES[name]))
    return found


def take_cpu(python: str, arguments: list[str]) -> float:
    """Milliseconds of processor time of one fresh process."""
    quiet = {"stdout": subprocess.DEVNULL, "env": environ()}
    with subprocess.Popen([python, *arguments], **quiet) as process:  # type: ignore[call-overload]
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{python} {' '.join(arguments)} fails")
    return 1e3 * (used.ru_utime + used.ru_stime)


def measure_starts(pythons: dict[str, str], rounds: int) -> dict[str, dict[str, list[float]]]:
    """Milliseconds of processor time of fresh processes, in turn, over what an empty interpreter takes."""
    found: dict[str, dict[str, list[float]]] = {name: {side: [] for side in SIDES} for name in (*STARTS, BARE)}
    with tempfile.TemporaryDirectory() as folder:
        bare = Path(folder) / "bare.py"
        bare.write_text(write_bare(count_commands(pythons["after"])), encoding="utf-8")
        for number in range(rounds):
            for side in common.rotate(list(SIDES), number):
                empty = take_cpu(pythons[side], ["-c", "pass"])
                for name, arguments in (STARTS | {BARE: [str(bare), "--help"]}).items():
                    found[name][side].append(take_cpu(pythons[side], arguments) - empty)
    return found


def count_commands(python: str) -> int:
    """Count the commands that adjudge has, groups and what is in them."""
    code = "from adjudge.cli.app import app; from typer.main import get_command\n"
    code += "def names(c): return c.list_commands(None) if hasattr(c, 'list_commands') else ()\n"
    code += (
        "def count(c): return 1 + sum(count(c.get_command(None, n)) for n in names(c))\nprint(count(get_command(app)))"
    )
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True, env=environ())
    return int(done.stdout)


def write_bare(commands: int) -> str:
    """A program with so many commands, each with an argument and four options."""
    head = "from typing import Annotated\nimport rich, typer\napp = typer.Typer()\n"
    one = '@app.command()\ndef c{0}(path: str, a: Annotated[str, typer.Option(help="A")] = "", b: int = 0, '
    one += 'c: float = 0.0, d: bool = False) -> None:\n    """Do {0}."""\n    rich.print(path)\n'
    return head + "".join(one.format(number) for number in range(commands)) + "app()\n"


def main() -> None:
    """Measure, print, and say whether the targets are met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", help="a Python with the earlier version")
    parser.add_argument("--after", default=sys.executable, help="a Python with the later one; this one by default")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument(
        "--only", choices=[*SIZES, "start"], action="append", help="measure this alone; can be repeated"
    )
    parser.add_argument("--inside", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        asyncio.run(serve(options.inside))
        return
    if not options.before:
        parser.error("name the Python of the earlier version with --before")
    pythons = {"before": options.before, "after": options.after}
    wanted = options.only or [*SIZES, "start"]
    found = measure_work(pythons, [name for name in SIZES if name in wanted], options.rounds)
    found |= measure_starts(pythons, options.rounds) if "start" in wanted else {}
    show(found)


def show(found: dict[str, dict[str, list[float]]]) -> None:
    """The table, and the verdict."""
    rows, ratios = [], {}
    for name, sides in found.items():
        middle = {side: statistics.median(times) for side, times in sides.items()}
        ratios[name] = middle["after"] / middle["before"]
        least = min(sides["after"]) / min(sides["before"])
        unit = "us" if name in SIZES else "ms"
        shown = [f"{middle[side]:.1f} {unit}" for side in SIDES]
        rows.append([name, *shown, f"{ratios[name]:.3f}", f"{least:.3f}"])
    common.print_table(["processor time of one", *SIDES, "ratio of medians", "of minima"], rows)
    met = all(ratio <= MOST for name, ratio in ratios.items() if name != BARE)
    figures = {"ratios": {name: round(ratio, 3) for name, ratio in ratios.items()}}
    if BARE in found:
        share = statistics.median(found["adjudge --help"]["after"]) / statistics.median(found[BARE]["after"])
        print(f"adjudge --help takes {share:.2f} times what the bare program takes")
        figures |= {"help_over_bare": round(share, 3)}
        met = met and share <= MOST_HELP
    common.print_verdict("versions", figures, met=met)


if __name__ == "__main__":
    main()
