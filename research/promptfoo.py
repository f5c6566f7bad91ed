#!/usr/bin/env python3
"""A suite of promptfoo judged by promptfoo and by adjudge, and their verdicts compared, assertion by assertion.

    python research/promptfoo.py --promptfoo node_modules/.bin/promptfoo examples/promptfoo/promptfooconfig.yaml

It installs nothing: ``--promptfoo`` is a promptfoo that is there already (0.121.20 is what the importer was written
for, ``npm install promptfoo@0.121.20``). One mock server on 127.0.0.1 answers both: it scores what it is shown by the
words "Mood: 0.6" in it, 1.0 without them, and passes 0.7 and more. ``--record FILE`` keeps what promptfoo said of each
assertion, which ``tests/dataset/importers/test_promptfoo_verdicts.py`` compares without npm.

Exit status: 0 all verdicts are equal, 1 some are not.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from adjudge import CriterionResult, Judge, JudgeResult, open_model
from adjudge.dataset import import_promptfoo

QUIET = {
    "PROMPTFOO_DISABLE_TELEMETRY": "1",
    "PROMPTFOO_DISABLE_UPDATE": "1",
    "PROMPTFOO_DISABLE_SHARING": "1",
    "PROMPTFOO_SELF_HOSTED": "1",
    "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1",
    "OPENAI_API_KEY": "sk-mock",
}

MOOD = re.compile(r"Mood: ([01](?:\.\d+)?)")
TOKEN = re.compile(r'"token": "([a-z2-7]{8})"')
CRITERION = re.compile(r"^\d+\. (.+?): ", re.MULTILINE)


def answer(request: Mapping[str, Any]) -> str:
    """Return what the mock says: the same score to either, in the form that each asks for."""
    texts = [str(message.get("content", "")) for message in request["messages"]]
    found = MOOD.findall(texts[-1])
    score = float(found[-1]) if found else 1.0
    names = CRITERION.findall("\n".join(texts)) if "Reply with one JSON object of this shape" in texts[0] else []
    form = (request.get("response_format") or {}).get("json_schema")
    if not names and form is None:
        return json.dumps({"reason": "a mock", "pass": score >= 0.7, "score": score})
    tokens = TOKEN.findall(texts[-1])
    names = names or CRITERION.findall("\n".join(texts))
    scores = [{"name": name, "reasoning": "a mock", "score": score} for name in names]
    said: dict[str, Any] = {"token": tokens[-1]} if tokens else {}
    return json.dumps(said | {"criteria": scores, "reasoning": "a mock", "suggestions": []})


class Handler(BaseHTTPRequestHandler):
    """The chat completions of OpenAI."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer one request."""
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        message = {"role": "assistant", "content": answer(request)}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        body = {"id": "mock", "object": "chat.completion", "created": 0, "model": request["model"], "usage": usage}
        data = json.dumps(body | {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def serve() -> Iterator[str]:
    """The address of the mock, as long as the block lasts."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()


def run_promptfoo(binary: Path, suite: Path, address: str) -> dict[str, Any]:
    """Find what promptfoo says of each test of a suite, under the number of the test."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "results.json"
        env = os.environ | QUIET | {"OPENAI_BASE_URL": address, "PROMPTFOO_CONFIG_DIR": folder}
        command = [str(binary), "eval", "-c", str(suite), "-o", str(out), "--no-cache", "--no-table"]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        if not out.is_file():
            raise SystemExit(f"promptfoo wrote no results:\n{done.stdout}\n{done.stderr}")
        return read_results(json.loads(out.read_text("utf-8")))


def read_results(document: Mapping[str, Any]) -> dict[str, Any]:
    """Of promptfoo's results what is compared."""
    return {str(item["testIdx"] + 1): read_result(item) for item in document["results"]["results"]}


def read_result(item: Mapping[str, Any]) -> dict[str, Any]:
    """One result: what it came to, and each assertion with its verdict, under its place."""
    asserts = item["testCase"]["assert"]
    parts = (item.get("gradingResult") or {}).get("componentResults") or []
    verdicts: dict[str, Any] = {}
    at = 0
    for place, assertion in enumerate(asserts, 1):
        inner = assertion.get("assert") if assertion["type"] == "assert-set" else None
        verdicts[str(place)] = read_part(parts[at] if at < len(parts) else None)
        at += 1
        for number, _ in enumerate(inner or (), 1):
            verdicts[f"{place}.{number}"] = read_part(parts[at] if at < len(parts) else None)
            at += 1
    return {"passed": item["success"], "score": item["score"], "assertions": verdicts}


def read_part(part: Mapping[str, Any] | None) -> bool | list[Any] | None:
    """The verdict on one assertion: whether it passed, with its score where that is not 1 or 0; ``None`` without."""
    if part is None:
        return None
    return part["pass"] if part["score"] == int(part["pass"]) else [part["pass"], part["score"]]


async def run_adjudge(suite: Path, address: str | None) -> tuple[dict[str, JudgeResult], dict[str, int]]:
    """Find what adjudge says of each test, and what it did not apply."""
    dataset = import_promptfoo(suite)
    judge = Judge(open_model(f"{address}#mock")) if address else Judge("rules")
    cases = [case for case in dataset if case.rubric is not None]
    found = {}
    async with judge:
        async for result in judge.evaluate_many(cases):
            found[str(result.metadata["case"])] = result
    return found, dict(dataset.notes)


def compare(
    theirs: Mapping[str, Any], ours: Mapping[str, JudgeResult], partial: Container[str] = ()
) -> tuple[int, list[str]]:
    """Count the verdicts that were compared, and the differences in words; ``partial`` are tests not applied as a
    whole."""
    count, differences = 0, []
    for number, said in theirs.items():
        result = ours.get(number)
        if result is None:
            continue
        verdicts = {item.name.rpartition(" ")[2]: item for item in result.criteria}
        for place, verdict in said["assertions"].items():
            mine = verdicts.get(place)
            if mine is None or verdict is None:
                continue
            count += 1
            passed, score = verdict if isinstance(verdict, list) else (verdict, int(verdict))
            # Of a set that is one rule the verdict is compared; its score there is the mean of its parts.
            if read_passed(mine) != passed or (mine.rule != "some_of" and mine.score != score):
                differences.append(f"test {number}, assertion {place}: {passed}, {score}, and here {mine}")
        if result.score is not None and abs(result.score - said["score"]) > 1e-9 and number not in partial:
            differences.append(f"test {number}: the score is {said['score']}, and here {result.score}")
    return count, differences


def read_passed(mine: CriterionResult) -> bool:
    """Return True if an assertion passes as promptfoo has it: one of weight 0 always does."""
    least = 0.7 if mine.threshold is None else mine.threshold
    return mine.weight == 0 or (mine.score or 0.0) >= least - 1e-9


def write_json(value: Any) -> str:
    """JSON without blanks."""
    return json.dumps(value, separators=(",", ":"))


def write_suite(said: Mapping[str, Any]) -> str:
    """Write what promptfoo said of a suite, a line for each test."""
    return "{\n" + ",\n".join(f"{json.dumps(number)}: {write_json(test)}" for number, test in said.items()) + "\n}"


def main() -> int:
    """Compare the suites that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", nargs="+", type=Path)
    parser.add_argument("--promptfoo", type=Path, required=True, help="the program, e.g. node_modules/.bin/promptfoo")
    parser.add_argument("--record", type=Path, help="keep what promptfoo says in this file")
    given = parser.parse_args()
    recorded: dict[str, Any] = {}
    failed = 0
    with serve() as address:
        for suite in given.suites:
            theirs = run_promptfoo(given.promptfoo, suite, address)
            ours, notes = asyncio.run(run_adjudge(suite, address))
            partial = {
                key
                for key, said in theirs.items()
                if key in ours and len(said["assertions"]) != len(ours[key].criteria)
            }
            count, differences = compare(theirs, ours, partial)
            whole = [number for number in ours if theirs[number]["passed"] is not ours[number].passed]
            print(f"{suite}: {len(theirs)} tests, {count} assertions compared, {len(differences)} differ")
            print(
                f"  {len(ours)} tests judged, of which {len(whole)} come to something else: {', '.join(whole) or '-'}"
            )
            for line in (*differences, *(f"{said}: {times}" for said, times in notes.items())):
                print(f"  {line}")
            failed += len(differences) + len(whole)
            recorded[suite.name] = theirs
    if given.record:
        lines = [f"{json.dumps(name)}: {write_suite(said)}" for name, said in recorded.items()]
        given.record.write_text("{" + ",\n".join(lines) + "}\n", "utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
