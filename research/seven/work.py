"""Parts that the jobs of the seven tools share: answers to judge, the address of the mock model, and findings."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[1] / "seven_tools.py"
MODEL = "gpt-5-mini"
"""The name under which the mock is asked: some of the tools take known names only."""
CRITERION = "The answer is polite."
TASK = "Where is my parcel?"
FINE = "It left on Monday, thank you for waiting."
BROKEN = "It left on Tuesday (broken)."
"""An answer on which the mock breaks in the way that its address names; every other one it judges."""
RUDE = "Find out yourself (rude)."
"""An answer that the mock fails."""
NO_JSON = "{'left': Monday"
"""An answer that was to be JSON."""
ROWS = [f"It left on Monday, thank you (row {number})." for number in range(6)]
"""The answers of a run that is killed."""
LABELLED = [(FINE, True), (RUDE, False), (ROWS[0], True), (ROWS[1], False)]
"""Answers, and whether people called them good: the mock agrees on three of the four."""
TIMEOUT_S = 2.0

DONE, RAISES, OWN, NOT, NONE = "done", "raises", "own code", "not", "none found"
BY_DEFAULT = "; with its defaults: "
"""The words of evidence before what a tool does if the setting that was used is not set."""
WORDS = {
    DONE: "a setting, option or function of the tool does it, and the run showed it",
    RAISES: "the call raises an exception; to catch it and go on with the next answer is your code",
    OWN: "the run showed it with a few lines of code of our own around the tool",
    NOT: "the run showed that it does otherwise",
    NONE: "read, not run: its source and the documentation that the function names have nothing for it",
}


@dataclass(frozen=True)
class Found:
    """A word for what one tool did at one job, and its evidence."""

    word: str
    """One of WORDS."""
    evidence: str
    """The words that it printed, returned or raised, or what was read."""


@dataclass(frozen=True)
class Server:
    """The mock model, for one job of one tool."""

    root: str
    """http://127.0.0.1:PORT/TOOL-JOB"""

    def get_address(self, mode: str, run: str = "one") -> str:
        """Return the address of an OpenAI API that judges in a mode; requests are counted for each run."""
        return f"{self.root}-{run}/{mode}/v1"

    def count(self, run: str = "one") -> int:
        """Return how many requests a run has made."""
        with urllib.request.urlopen(f"{self.root}-{run}/count") as answer:
            return int(answer.read())


def weigh_fault(fine: str, broken: str) -> Found:
    """Say what it means that the fine answer and the one on which the judge broke were reported so."""
    if fine != "passed":
        return Found(NOT, f"the answer that is fine: {fine}; the other: {broken}")
    words = {"no verdict": DONE, "raised": RAISES}
    return Found(next((word for start, word in words.items() if broken.startswith(start)), NOT), broken)


def weigh_second(ask: Callable[[], str]) -> Found:
    """Say what it means how the answer whose first reply was broken JSON is reported, asked once or again by a loop."""
    [first] = try_each(lambda _: ask(), "")
    if first == "passed":
        return Found(DONE, "passed: it asked again")
    if first == "failed":
        return Found(NOT, "failed at the first reply, as if it were a verdict")
    [second] = try_each(lambda _: ask(), "")
    return Found(OWN if second == "passed" else NOT, f"{first}; asked again by a loop of our own: {second}")


def try_each(judge: Callable[[str], str], *contents: str) -> list[str]:
    """Judge contents one by one; an exception is reported like a verdict, as a loop of a user would."""
    found = []
    for content in contents:
        try:
            found.append(judge(content))
        except Exception as error:  # noqa: BLE001 - what it raises is the answer
            found.append(f"raised {type(error).__name__}: {shorten(str(error))}")
    return found


def shorten(text: str, limit: int = 100) -> str:
    """Shorten what a tool said to one line of a table."""
    line = re.sub(r" at 0x[0-9a-f]+", "", " ".join(text.split()))
    return line if len(line) <= limit else line[: limit - 1] + "…"


def kill_at(command: list[str], server: Server, requests: int, run: str = "one") -> int:
    """Start a command, kill it when a run has made so many requests, and return how many it had made then."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        while server.count(run) < requests and process.poll() is None:
            time.sleep(0.02)
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # its children as well
        process.wait()
    return server.count(run)


def call_job(tool: str, job: str, server: Server) -> list[str]:
    """Return the command that runs one job of a tool in a process of its own."""
    return [sys.executable, str(SCRIPT), "--one", tool, "--job", job, "--root", server.root]


def weigh_resumed(before: int, after: int, judged: int) -> Found:
    """Say what it means that a killed run, and the same run again, made so many requests for ROWS."""
    told = f"killed after {before} requests; {after - before} more, and {judged} of {len(ROWS)} judged"
    return Found(DONE if judged == len(ROWS) and after <= len(ROWS) + 1 else NOT, told)


def judge_rows(judge: Callable[[str], str]) -> Found:
    """Judge ROWS by a loop of our own, which writes what it has and leaves it out the next time."""
    path = Path("done.json")
    have: dict[str, str] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for content in ROWS:
        if content not in have:
            have[content] = judge(content)
            path.write_text(json.dumps(have), encoding="utf-8")
    return Found(DONE, str(len(have)))


def weigh_own_loop(tool: str, long_run: Callable[[Server], Found], server: Server) -> Found:
    """Kill the loop of our own that ``long_run`` is, and run it again."""
    before = kill_at(call_job(tool, "long_run", server), server, 3)
    judged = int(long_run(server).evidence)
    told = weigh_resumed(before, server.count(), judged)
    return Found(OWN if told.word == DONE else NOT, f"a loop and a file of our own: {told.evidence}")


def weigh_own_file(long_run: Callable[[Server], Found], server: Server) -> Found:
    """Run the loop of our own that ``long_run`` is twice."""
    long_run(server)
    first = server.count()
    long_run(server)
    return Found(OWN, f"{first} requests, and {server.count() - first} the second time, with a file of our own")


def count_votes(judge: Callable[[str], str]) -> Found:
    """Count by hand what three judges say, of which the third is down."""
    word, count = Counter(try_each(judge, "0", "1", "2")).most_common(1)[0]
    return Found(OWN, f"counted by hand: {word} by {count} of 3")


def count_agreement(judge: Callable[[str], str]) -> Found:
    """Count by hand how often a judge agrees with people."""
    agreed = sum((judge(content) == "passed") == good for content, good in LABELLED)
    return Found(OWN, f"counted by hand: {agreed} of {len(LABELLED)} agree")
