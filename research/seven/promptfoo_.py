"""The jobs of promptfoo: ``eval`` with the echo provider, which gives each answer back, and ``llm-rubric``.

Read for what it lacks: the pages of promptfoo.dev/docs on the command line, its environment variables, assertions,
model-graded metrics, caching and CI, and the names of all settings in the program (PROMPTFOO_*).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from subprocess import run
from typing import Any

from seven.work import (
    BROKEN,
    CRITERION,
    DONE,
    FINE,
    LABELLED,
    MODEL,
    NO_JSON,
    NONE,
    NOT,
    OWN,
    ROWS,
    RUDE,
    TIMEOUT_S,
    Found,
    Server,
    kill_at,
    shorten,
    weigh_fault,
    weigh_resumed,
    weigh_second,
)

BIN = Path(os.environ.get("TOOL_HOME", "")) / "node_modules" / ".bin"
OFF = ("TELEMETRY", "UPDATE", "REMOTE_GENERATION", "SHARING")
os.environ.update({f"PROMPTFOO_DISABLE_{name}": "1" for name in OFF})
os.environ.update(PROMPTFOO_CONFIG_DIR=str(Path.cwd() / "home"), PROMPTFOO_PYTHON=sys.executable)
os.environ["PATH"] = f"{BIN}{os.pathsep}{os.environ['PATH']}"  # its Node is beside it

EVAL = ("eval", "-c", "config.json", "-o", "out.json", "-j", "1", "--no-progress-bar", "--no-table")
OUTCOMES = {0: "", 1: "failed", 2: "no verdict: an error"}
"""The meanings of a result's failureReason: none, an assertion and an error (src/types)."""


def make_grader(server: Server, mode: str, run: str = "one") -> dict[str, Any]:
    return {"id": f"openai:chat:{MODEL}", "config": {"apiBaseUrl": server.get_address(mode, run), "apiKey": "sk-mock"}}


def write_config(contents: Iterable[str], asserts: list[dict[str, Any]], grader: dict[str, Any], **more: Any) -> None:
    tests = [{"vars": {"output": content}, "assert": asserts} for content in contents]
    options = {"defaultTest": {"options": {"provider": grader}}}
    config = {"prompts": ["{{output}}"], "providers": ["echo"], "tests": tests} | options | more
    Path("config.json").write_text(json.dumps(config), "utf-8")


def run_program(*arguments: str, **settings: str) -> int:
    done = run([str(BIN / "promptfoo"), *arguments], env=os.environ | settings, capture_output=True, check=False)
    return done.returncode


def read_verdicts() -> list[str]:
    """Read the verdict on each answer, in the order of the tests."""
    rows = json.loads(Path("out.json").read_text("utf-8"))["results"]["results"]
    rows.sort(key=lambda row: row["testIdx"])
    return ["passed" if row["success"] else describe(row) for row in rows]


def describe(row: dict[str, Any]) -> str:
    said = (row.get("gradingResult") or {}).get("reason") or row.get("error") or ""
    return f"{OUTCOMES[row['failureReason']]}: {shorten(said)}"


RUBRIC = {"type": "llm-rubric", "value": CRITERION}


def judge_all(server: Server, mode: str, *contents: str, **settings: str) -> list[str]:
    write_config(contents, [RUBRIC], make_grader(server, mode))
    run_program(*EVAL, "--no-cache", **settings)
    return read_verdicts()


def try_mode(server: Server, mode: str, **settings: str) -> Found:
    return weigh_fault(*judge_all(server, mode, FINE, BROKEN, **settings))


def down(server: Server) -> Found:
    return try_mode(server, "down")


def cut(server: Server) -> Found:
    return try_mode(server, "cut")


def scale(server: Server) -> Found:
    return try_mode(server, "scale")


def timeout(server: Server) -> Found:
    """REQUEST_TIMEOUT_MS and PROMPTFOO_EVAL_TIMEOUT_MS are among the environment variables of its command line."""
    after = str(int(TIMEOUT_S * 1000))
    first = try_mode(server, "hang", PROMPTFOO_EVAL_TIMEOUT_MS=after)
    return first if first.word == DONE else try_mode(server, "hang", REQUEST_TIMEOUT_MS=after)


def again(server: Server) -> Found:
    return weigh_second(lambda: judge_all(server, "again", BROKEN)[0].partition(":")[0])


def orders(server: Server) -> Found:
    """``select-best`` (its page, and matchers.ts) shows the outputs in the order of the prompts and asks once."""
    names, said = {FINE: "new", ROWS[0]: "old"}, []
    for pair in ([FINE, ROWS[0]], [ROWS[0], FINE]):
        asked = {"type": "select-best", "value": CRITERION}
        write_config([""], [asked], make_grader(server, "first"), prompts=pair)
        run_program(*EVAL, "--no-cache")
        rows = json.loads(Path("out.json").read_text("utf-8"))["results"]["results"]
        said.append(next((names[row["prompt"]["raw"]] for row in rows if row["success"]), "none"))
    told = f"select-best asks once; run by us with the prompts in both orders ({server.count()} requests): {said}"
    return Found(OWN if server.count() == len(said) else NOT, told)


OWN_JUDGE = """
REASON = {"pass": False, "score": 0.25, "reason": "why"}

def get_assert(output, context):
    return {"true": True, "number": 0.25, "reason": REASON, "none": None}[output]
"""


def function(server: Server) -> Found:
    """Its page "Python assertions": a bool, a number or a GradingResult; an exception is a failed assertion."""
    Path("own.py").write_text(OWN_JUDGE, "utf-8")
    asked = {"type": "python", "value": "file://own.py", "threshold": 0.5}
    contents = ("true", "number", "reason", "none")
    write_config(contents, [asked], make_grader(server, "good"))
    run_program(*EVAL, "--no-cache")
    told = dict(zip(contents, read_verdicts(), strict=True))
    return Found(DONE if told["none"].startswith("no verdict") else NOT, str(told))


def several(server: Server) -> Found:
    """Its page "Assertions" has ``assert-set`` with a threshold, and each assertion may have a grader of its own."""
    graders = [make_grader(server, mode, mode) for mode in ("good", "fails", "down-all")]
    found = []
    for chosen in ((0, 0, 2), (0, 1, 2)):
        asserts = [RUBRIC | {"provider": graders[at]} for at in chosen]
        write_config([FINE], [{"type": "assert-set", "threshold": 0.6, "assert": asserts}], graders[0])
        run_program(*EVAL, "--no-cache")
        found += read_verdicts()
    good = found[0] == "passed" and found[1] != "passed"
    told = f"assert-set with threshold 0.6: two passes and one down {found[0]}; one pass, one fail, one down {found[1]}"
    return Found(DONE if good else NOT, told)


def rule(server: Server) -> Found:
    """PROMPTFOO_SHORT_CIRCUIT_TEST_FAILURES is among its environment variables; the other makes it wait."""
    first = {"PROMPTFOO_SHORT_CIRCUIT_TEST_FAILURES": "1", "PROMPTFOO_ASSERTIONS_MAX_CONCURRENCY": "1"}
    told = []
    for run_name, settings in (("plain", {}), ("set", first)):
        write_config([NO_JSON], [{"type": "is-json"}, RUBRIC], make_grader(server, "good", run_name))
        run_program(*EVAL, "--no-cache", **settings)
        told.append(f"{read_verdicts()[0].partition(':')[0]} after {server.count(run_name)} requests")
    refused = server.count("set") == 0
    return Found(DONE if refused else NOT, f"is-json, then llm-rubric: {told[0]}; with short circuit: {told[1]}")


def resume(server: Server) -> Found:
    """``--resume`` of its command line."""
    write_config(ROWS, [RUBRIC], make_grader(server, "slow"))
    before = kill_at([str(BIN / "promptfoo"), *EVAL, "--no-cache"], server, 3)
    run_program("eval", "--resume", "-o", "out.json", "--no-progress-bar", "--no-table", "--no-cache")
    judged = sum(said == "passed" for said in read_verdicts()) if Path("out.json").exists() else 0
    return weigh_resumed(before, server.count(), judged)


def cache(server: Server) -> Found:
    """Its page "Caching": on disk, by default."""
    write_config(ROWS, [RUBRIC], make_grader(server, "good"))
    run_program(*EVAL)
    first = server.count()
    run_program(*EVAL)
    told = f"{first} requests, and {server.count() - first} the second time"
    return Found(DONE if first and server.count() == first else NOT, told)


def budget(_server: Server) -> Found:
    """The assertion ``cost`` fails one output that cost more; no setting limits what an evaluation spends."""
    return Found(NONE, "the assertion cost fails an output that was dear; nothing limits a whole run")


def status(server: Server) -> Found:
    """Its page on CI/CD: 100 where a test failed, and PROMPTFOO_PASS_RATE_THRESHOLD."""
    write_config([FINE, RUDE], [RUBRIC], make_grader(server, "good"))
    plain, below = (run_program(*EVAL, "--no-cache", PROMPTFOO_PASS_RATE_THRESHOLD=bar) for bar in ("100", "40"))
    told = f"one of two failed: exit status {plain}; {below} with PROMPTFOO_PASS_RATE_THRESHOLD=40"
    return Found(DONE if plain and not below else NOT, told)


def people(server: Server) -> Found:
    """Its viewer lets people rate a result (the assertion type human), which replaces it; nothing compares the two."""
    told = judge_all(server, "good", *(content for content, _ in LABELLED))
    agreed = sum((said == "passed") == good for said, (_, good) in zip(told, LABELLED, strict=True))
    return Found(
        OWN, f"counted by hand from its JSON: {agreed} of {len(LABELLED)} agree; a rating in its viewer replaces"
    )


def approval(_server: Server) -> Found:
    return Found(NONE, "it evaluates, and holds no action back")


def record(_server: Server) -> Found:
    return Found(NONE, "its results are in a SQLite file that nothing checks for changes")
