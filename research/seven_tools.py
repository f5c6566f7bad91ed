#!/usr/bin/env python3
"""Find what seven tools that judge, and adjudge, do at the same jobs: a judge that is down, a killed run, a budget ...

    bench/setup.sh promptfoo22 inspect_ai deepeval pydantic_evals openevals autoevals guardrails
    python research/seven_tools.py                       # a few minutes; prints a line for each cell, and the table
    python research/seven_tools.py --write               # and writes them to seven/found.json and docs/comparison.md
    python research/seven_tools.py --tools deepeval --jobs down cut

One mock of a model's server on 127.0.0.1 judges for all of them; no key is needed and nothing else is asked. Each job
of each tool is a function in ``seven/TOOL_.py``: it goes the way that the tool's own documentation recommends, and
returns a word and its evidence, which is what the tool printed, returned or raised. A job runs in a process of its
own, in the tool's own environment and an empty folder. ``--venvs`` is where the environments are.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import broken_replies
from measured_page import MeasuredPage, write_rows
from seven.work import BY_DEFAULT, NONE, NOT, WORDS, Found, Server

HERE = Path(__file__).resolve()
FOUND = HERE.parent / "seven" / "found.json"
PAGE = MeasuredPage("comparison.md", "seven_tools.py")
HANG_S = 8.0
SLOW_S = 0.4
JOB_S = 240
"""After so many seconds a job of a tool is ended."""

TOOLS = {
    "adjudge": "adjudge",
    "promptfoo": "promptfoo",
    "deepeval": "DeepEval",
    "inspect_ai": "Inspect",
    "pydantic_evals": "pydantic-evals",
    "autoevals": "autoevals",
    "openevals": "openevals",
    "guardrails": "OpenAI Guardrails",
}
"""For each tool, what the table calls it."""
PACKAGES = {"inspect_ai": "inspect-ai", "pydantic_evals": "pydantic-evals", "guardrails": "openai-guardrails"}
"""The packages of tools that are named otherwise."""
ENVIRONMENTS = {"promptfoo": "promptfoo22"}
"""The environments of tools that are named otherwise."""

JOBS = {
    "down": "the server answers 500: no verdict, and the rest is judged",
    "cut": "the reply is cut off: no verdict",
    "scale": "the score or grade is off the scale (95): no verdict",
    "again": "JSON that breaks once is asked for again",
    "timeout": "the judge hangs: no verdict after the seconds you set",
    "orders": "two answers are compared in both orders",
    "function": "your own function judges: true or false, a number, with a reason, or no verdict",
    "several": "three judges give one verdict, while one is down",
    "rule": "an answer that is not JSON fails before a judge is asked",
    "resume": "a run that was killed is resumed",
    "cache": "the same run again asks nobody",
    "budget": "a run ends at the dollars you set",
    "status": "the exit status of a command says that an answer failed",
    "people": "the judge is compared with labels of people",
    "approval": "an action waits for a person's yes",
    "record": "a record of who decided shows that somebody changed it",
}
"""For each job, its row of the table."""

TEXT = """\
We gave {jobs} jobs to seven tools and to adjudge, on {date} [M]. One mock of a model's server judged for all.
We chose the jobs, and they are those that adjudge is made for; what the others do better is [below](#tool-by-tool).

| word | means |
|---|---|
{words}

{table}

Each cell is a function in `research/seven/` that goes the way that the tool's own documentation recommends; the pages
that were read are named there. `research/seven/found.json` has what every tool printed, returned or raised. It is, for
"not", for "none found", and where the tool's defaults do otherwise:

{evidence}

`python research/seven_tools.py` repeats this comparison.
"""


class Handler(broken_replies.Handler):
    """The chat completions of OpenAI, at /RUN/MODE/v1; and the number of requests of a run, at /RUN/count."""

    server: QuietServer

    def do_GET(self) -> None:  # noqa: N802 - http.server's name
        """Answer how many requests a run has made."""
        self.send_json(200, self.server.asked[self.path.split("/")[1]])

    def do_POST(self) -> None:  # noqa: N802 - as above
        """Answer one request in the mode that its address names."""
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        _, run, mode, *_ = self.path.split("/")
        hit = "(broken)" in json.dumps(request)
        nth = self.server.count(run, hit=hit)
        if mode == "dear":
            self.usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
        if mode == "slow":
            time.sleep(SLOW_S)
        if mode == "down-all" or (mode == "down" and hit):
            self.send_json(500, {"error": {"message": "the server is down", "type": "server_error"}})
            return
        if mode == "hang" and hit:
            time.sleep(HANG_S)
        cut = hit and (mode == "cut" or (mode, nth) == ("again", 1))
        message, finish = write_message(request, mode, hit=hit, cut=cut)
        self.send_message(request, message, "stop" if mode == "again" else finish)


def write_message(request: dict[str, Any], mode: str, *, hit: bool, cut: bool) -> tuple[dict[str, Any], str]:
    """Write what a judge says in a mode, of the answer on which it breaks if that is hit, and why it ended."""
    shown = json.dumps(request)
    passes = mode != "fails" and "(rude)" not in shown
    message, finish = broken_replies.write_verdict(request, passes=passes, cut=cut)
    if "between 0 and 10" in shown and passes:  # the scale of DeepEval's GEval
        message = change_text(message, r'("score": ?)1(\.0)?', r"\g<1>10")
    if mode == "scale" and hit:
        message = put_off_scale(message)
    return (prefer_first(request, message) if mode == "first" else message), finish


def change_text(message: dict[str, Any], pattern: str, to: str) -> dict[str, Any]:
    """Change the text of a message, or the arguments of its tool call."""
    for call in message.get("tool_calls", ()):
        call["function"]["arguments"] = re.sub(pattern, to, call["function"]["arguments"])
    if message["content"]:
        message["content"] = re.sub(pattern, to, message["content"])
    return message


def put_off_scale(message: dict[str, Any]) -> dict[str, Any]:
    """Put 95 in the place of every score and grade."""
    numbers = change_text(message, r'("(?:score|confidence)": ?)-?[\d.]+', r"\g<1>95")
    return change_text(numbers, r'(GRADE: |"choice": ?")(\w+)', r"\g<1>95")


def prefer_first(request: dict[str, Any], message: dict[str, Any]) -> dict[str, Any]:
    """Prefer the answer that stands first, whichever it is."""
    shown = json.dumps(request["messages"])
    if contestant := re.search(r"arena_test_cases\W+?(\w{3,})", shown.replace("\\n", " ")):  # DeepEval's ArenaGEval
        return change_text(message, r'("winner": ?")\w*', rf"\g<1>{contestant[1]}")
    return message


class QuietServer(ThreadingHTTPServer):
    """A server that counts requests, and says nothing of clients that were killed."""

    daemon_threads = True

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.asked: Counter[str] = Counter()
        self.broken: Counter[str] = Counter()
        self.lock = threading.Lock()

    def count(self, run: str, *, hit: bool) -> int:
        """Count a request of a run, and return how many it has made about the answer on which the judge breaks."""
        with self.lock:
            self.asked[run] += 1
            self.broken[run] += hit
            return self.broken[run]

    def handle_error(self, *args: object) -> None:
        """Say nothing."""


def start_server() -> QuietServer:
    """Start the mock on a free port of 127.0.0.1."""
    server = QuietServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def load_tool(name: str) -> Any:
    """Import the jobs of a tool."""
    return importlib.import_module(f"seven.{name}_")


def run_here(tool: str, job: str, root: str) -> dict[str, str]:
    """Run one job of a tool in this process."""
    return asdict(getattr(load_tool(tool), job)(Server(root)))


def find_home(tool: str, venvs: Path) -> Path:
    """Find the environment of a tool."""
    return venvs / ENVIRONMENTS.get(tool, tool)


def run_job(tool: str, job: str, port: int, venvs: Path) -> dict[str, str]:
    """Run one job of a tool in a process of its environment and an empty folder."""
    home = find_home(tool, venvs)
    python = sys.executable if tool == "adjudge" else str(home / "bin" / "python")
    quiet = {"OPENAI_API_KEY": "sk-mock", "TOOL_HOME": str(home), "NO_COLOR": "1", "LANGSMITH_TRACING": "false"}
    command = [python, str(HERE), "--one", tool, "--job", job, "--root", f"http://127.0.0.1:{port}/{tool}-{job}"]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        try:
            done = subprocess.run(
                command, cwd=folder, env=os.environ | quiet, capture_output=True, text=True, check=False, timeout=JOB_S
            )
        except subprocess.TimeoutExpired:
            return asdict(Found(NOT, f"it did not end within {JOB_S} s"))
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"word"')]
    return json.loads(lines[-1]) if lines else {"word": "not run", "evidence": " ".join(done.stderr.split()[-40:])}


def read_version(tool: str, venvs: Path) -> str:
    """Read which version of a tool its environment has."""
    if tool == "adjudge":
        return "this copy"
    home = find_home(tool, venvs)
    if tool == "promptfoo":
        return broken_replies.read_promptfoo_version(home)
    code = f"import importlib.metadata as found; print(found.version({PACKAGES.get(tool, tool)!r}))"
    done = subprocess.run([str(home / "bin" / "python"), "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def write_part(found: dict[str, Any]) -> str:
    """Write the part of the page from what was found."""
    cells, date = found["cells"], datetime.fromisoformat(found["date"])
    rows = [["", *(TOOLS[tool] for tool in cells)], ["---"] * (len(cells) + 1)]
    rows.append(["version", *(found["versions"][tool] for tool in cells)])
    rows += [[said, *(cells[tool][job]["word"] for tool in cells)] for job, said in JOBS.items()]
    return TEXT.format(
        jobs=len(JOBS),
        date=f"{date.day} {date:%B %Y}",
        words=write_rows(WORDS.items()),
        table=write_rows(rows),
        evidence="\n".join(list_evidence(cells, job) for job in JOBS if list_evidence(cells, job)),
    )


def list_evidence(cells: dict[str, Any], job: str) -> str:
    """List the tools that did not do a job, and those whose defaults don't."""
    told = {tool: cells[tool][job] for tool in cells}
    others = [tool for tool in told if told[tool]["word"] in (NOT, NONE) or BY_DEFAULT in told[tool]["evidence"]]
    lines = [f"    * {TOOLS[tool]}: {escape(told[tool]['evidence'])}" for tool in others]
    return "\n".join([f"* {JOBS[job]}", *lines]) if lines else ""


def escape(text: str) -> str:
    """Keep Markdown from reading marks into what a tool said."""
    return re.sub(r"([\\`*_<>\[\]|])", r"\\\1", text)


def find_all(tools: list[str], jobs: list[str], venvs: Path) -> dict[str, Any]:
    """Run the jobs of the tools, and print a line for each."""
    port = start_server().server_port
    found: dict[str, Any] = {"date": datetime.now(UTC).date().isoformat(), "versions": {}, "cells": {}}
    for tool in tools:
        found["versions"][tool] = read_version(tool, venvs)
        cells = found["cells"][tool] = {}
        for job in jobs:
            cells[job] = run_job(tool, job, port, venvs)
            print(json.dumps({"tool": tool, "job": job} | cells[job]), flush=True)
    return found


def main() -> None:
    """Run the jobs, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", nargs="*", default=list(TOOLS), choices=list(TOOLS))
    parser.add_argument("--jobs", nargs="*", default=list(JOBS), choices=list(JOBS))
    parser.add_argument("--venvs", type=Path, default=HERE.parents[1] / "bench" / "venvs")
    parser.add_argument("--write", action="store_true", help=f"write what was found, and docs/{PAGE.name}")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    parser.add_argument("--root", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(run_here(options.one, options.job, options.root)))
        return
    found = find_all(options.tools, options.jobs, options.venvs.resolve())
    whole = set(options.tools) == set(TOOLS) and set(options.jobs) == set(JOBS)
    if whole:
        print(write_part(found))
    if options.write and whole:
        FOUND.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
        PAGE.write(write_part(found))


if __name__ == "__main__":
    main()
