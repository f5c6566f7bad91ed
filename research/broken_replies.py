#!/usr/bin/env python3
"""Find what libraries that judge say of 200 rows when their judge breaks on 54 of them.

    bench/setup.sh promptfoo inspect_ai deepeval pydantic_evals openevals autoevals guardrails
    python research/broken_replies.py

One mock server on 127.0.0.1 is the judge of every library. It passes 128 rows, fails 18, and breaks on 54, nine times
in each of six ways: a reply cut short, prose without a verdict, a refusal, an empty reply, JSON of another form,
and one that a content filter took away. Each library runs in an environment of its own, with its defaults, by its own
function or command for a whole evaluation where it has one; its version, its own words and counts are printed, below
the date of the run. It asks nothing else.
``--tools`` names some of them; ``--venvs`` is where their environments are.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))
import mock_llm

HERE = Path(__file__).resolve()
ROWS, PASSING, FAILING = 200, 128, 18
BREAKS = ("cut", "prose", "refusal", "empty", "other", "filtered")
CRITERION = "The answer is polite."
TOKEN = re.compile(r'"token": "([a-z2-7]{8})"|<<content (\w{8})>>')
MODEL = "gpt-5-mini"
"""The name under which the mock is asked: some of the libraries take known names only."""


def plan_row(number: int) -> str:
    """Plan what the judge does on a row; the kinds are spread over the rows, the same for everybody."""
    place = (number * 77) % ROWS  # 77 has no factor in common with 200, so every place is taken once
    if place < PASSING:
        return "pass"
    return "fail" if place < PASSING + FAILING else BREAKS[place % len(BREAKS)]


def write_verdict(request: dict[str, Any], *, passes: bool, cut: bool = False) -> tuple[dict[str, Any], str]:
    """Write the message by which a judge passes or fails, in the form that a library asks for, and why it ended."""
    shown = json.dumps(request["messages"])
    message, finish = mock_llm.build_message(request, mock_llm.Settings(f"v-{passes:d}"), cut=cut)
    if "flagged" in shown and not cut:  # a guardrail asks for the opposite of a pass
        message["content"] = json.dumps({"flagged": not passes, "confidence": 1.0})
    token = next((one or other for one, other in TOKEN.findall("\n".join(map(str, request["messages"])))), "")
    if isinstance(message.get("content"), str):
        message["content"] = message["content"].replace(mock_llm.ASKED_TOKEN, token)
    return message, "length" if cut else finish


def answer(request: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The message of the mock, and why it ended."""
    number = int(re.findall(r"row (\d+)", json.dumps(request["messages"]))[-1])
    kind = plan_row(number)
    broken = {
        "prose": ({"role": "assistant", "content": "Overall this reads well to me."}, "stop"),
        "refusal": ({"role": "assistant", "content": None, "refusal": "I'm sorry, I can't help with that."}, "stop"),
        "empty": ({"role": "assistant", "content": ""}, "stop"),
        "other": ({"role": "assistant", "content": '{"verdict": "unclear"}'}, "stop"),
        "filtered": ({"role": "assistant", "content": ""}, "content_filter"),
    }
    return broken.get(kind) or write_verdict(request, passes=kind != "fail", cut=kind == "cut")


class Handler(BaseHTTPRequestHandler):
    """The chat completions of OpenAI."""

    protocol_version = "HTTP/1.1"
    usage: ClassVar = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}

    def do_POST(self) -> None:
        """Answer one request."""
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_message(request, *answer(request))

    def send_message(self, request: dict[str, Any], message: dict[str, Any], finish: str) -> None:
        """Answer with a message of the assistant."""
        choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
        body = {"id": "mock", "object": "chat.completion", "created": 0, "model": request["model"], "usage": self.usage}
        self.send_json(200, body | {"choices": [choice]})

    def send_json(self, status: int, body: dict[str, Any]) -> None:
        """Answer with JSON."""
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: object) -> None:
        """Nothing is logged."""


def make_rows() -> list[dict[str, str]]:
    """The rows: a question and an answer, which holds the number of its row."""
    return [{"input": "Where is my parcel?", "output": f"It left on Monday (row {row})."} for row in range(ROWS)]


def judge_with_adjudge(url: str) -> dict[str, Any]:
    from adjudge import Judge, run

    rows = [{"content": row["output"], "task": row["input"]} for row in make_rows()]
    done = run(rows, Judge(f"{url}#{MODEL}"), criteria=CRITERION).finish_sync()
    return {"version": "this tree", "counts": done.counts}


def judge_with_promptfoo(url: str) -> dict[str, Any]:
    program = os.environ["TOOL_HOME"] + "/node_modules/.bin/promptfoo"
    grader = {"id": f"openai:chat:{MODEL}", "config": {"apiBaseUrl": url, "apiKey": "sk-mock"}}
    asked = {"type": "llm-rubric", "value": CRITERION}
    tests = [{"vars": row, "assert": [asked]} for row in make_rows()]
    config = {"prompts": ["{{output}}"], "providers": ["echo"], "tests": tests}
    config["defaultTest"] = {"options": {"provider": grader}}
    Path("config.json").write_text(json.dumps(config), encoding="utf-8")
    off = ("TELEMETRY", "UPDATE", "REMOTE_GENERATION", "SHARING")
    quiet = {f"PROMPTFOO_DISABLE_{name}": "1" for name in off} | {"PROMPTFOO_CONFIG_DIR": str(Path.cwd() / "home")}
    command = [program, "eval", "-c", "config.json", "-o", "out.json", "--no-cache", "--no-progress-bar", "--no-table"]
    done = subprocess.run(command, env=os.environ | quiet, capture_output=True, text=True, check=False)
    stats = json.loads(Path("out.json").read_text("utf-8"))["results"]["stats"]
    counts = {name: stats[name] for name in ("successes", "failures", "errors")}
    version = read_promptfoo_version(Path(os.environ["TOOL_HOME"]))
    return {"version": version, "counts": counts, "status": done.returncode}


def read_promptfoo_version(home: Path) -> str:
    """Read which promptfoo an environment has."""
    package = home / "node_modules" / "promptfoo" / "package.json"
    return str(json.loads(package.read_text(encoding="utf-8"))["version"])


def judge_with_inspect_ai(url: str) -> dict[str, Any]:
    os.environ.update(INSPECT_DISPLAY="none", INSPECT_LOG_LEVEL="error", INSPECT_LOG_DIR=str(Path.cwd()))
    import inspect_ai
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, get_model
    from inspect_ai.scorer import model_graded_qa
    from inspect_ai.solver import solver

    @solver
    def replay() -> Any:
        async def solve(state: Any, _generate: Any) -> Any:
            state.output = ModelOutput.from_content("replay", state.metadata["output"])
            return state

        return solve

    grader = get_model(f"openai/{MODEL}", base_url=url, api_key="sk-mock", responses_api=False)
    samples = [Sample(input=row["input"], target=CRITERION, metadata=row) for row in make_rows()]
    task = inspect_ai.Task(dataset=samples, solver=replay(), scorer=model_graded_qa(model=grader))
    [log] = inspect_ai.eval(task, model="mockllm/model")
    [scored] = log.results.scores
    values = Counter(str(next(iter(sample.scores.values())).value) for sample in log.samples if sample.scores)
    metrics = {name: round(metric.value, 3) for name, metric in scored.metrics.items()}
    return {
        "version": importlib.metadata.version("inspect-ai"),
        "counts": dict(values),
        "metrics": metrics,
        "status": log.status,
    }


def judge_with_deepeval(url: str) -> dict[str, Any]:
    os.environ.update(DEEPEVAL_TELEMETRY_OPT_OUT="1", DEEPEVAL_DISABLE_DOTENV="1")
    from deepeval import evaluate
    from deepeval.metrics import GEval
    from deepeval.models import OpenAIModel
    from deepeval.test_case import LLMTestCase, SingleTurnParams

    metric = GEval(
        name="polite",
        criteria=CRITERION,
        evaluation_steps=["Check whether the output is polite."],
        model=OpenAIModel(model=MODEL, base_url=url, api_key="sk-mock"),
        evaluation_params=[SingleTurnParams.INPUT, SingleTurnParams.ACTUAL_OUTPUT],
    )
    cases = [LLMTestCase(input=row["input"], actual_output=row["output"]) for row in make_rows()]
    version = importlib.metadata.version("deepeval")
    try:
        result = evaluate(cases, [metric])
    except Exception as error:  # noqa: BLE001 - what it raises is an answer
        return {"version": version, "counts": {}, "status": f"stopped: {type(error).__name__}: {str(error)[:120]}"}
    return {"version": version, "counts": dict(Counter(str(item.success) for item in result.test_results))}


def judge_with_pydantic_evals(url: str) -> dict[str, Any]:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_evals import Case, Dataset
    from pydantic_evals.evaluators import LLMJudge

    model = OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=url, api_key="sk-mock"))
    cases = [Case(name=str(at), inputs=row["output"]) for at, row in enumerate(make_rows())]
    dataset = Dataset(name="rows", cases=cases, evaluators=[LLMJudge(rubric=CRITERION, model=model)])
    report = dataset.evaluate_sync(lambda text: text, progress=False)
    verdicts = Counter(str(item.value) for case in report.cases for item in case.assertions.values())
    failures = sum(len(case.evaluator_failures) for case in report.cases)
    averages = report.averages()
    return {
        "version": importlib.metadata.version("pydantic-evals"),
        "counts": dict(verdicts) | {"evaluator failures": failures},
        "metrics": {"assertions": round(averages.assertions, 3)} if averages and averages.assertions else {},
    }


def count_calls(judge: Callable[[dict[str, str]], Any]) -> dict[str, int]:
    """The verdicts of a library that judges one row in a call, and the classes of what it raised."""
    counts: Counter[str] = Counter()
    for row in make_rows():
        try:
            counts[str(judge(row))] += 1
        except Exception as error:  # noqa: BLE001 - as above
            counts[f"raised {type(error).__name__}"] += 1
    return dict(counts)


def judge_with_autoevals(url: str) -> dict[str, Any]:
    from autoevals.llm import LLMClassifier
    from openai import OpenAI

    classifier = LLMClassifier(
        name="polite",
        prompt_template=f"{CRITERION}\n{{{{input}}}}\n{{{{output}}}}",
        choice_scores={"pass": 1, "fail": 0},
        model="mock",  # it asks models that it knows over another API
        use_cot=True,
        client=OpenAI(base_url=url, api_key="sk-mock"),
    )
    counts = count_calls(lambda row: classifier(output=row["output"], expected=None, input=row["input"]).score)
    return {"version": importlib.metadata.version("autoevals"), "counts": counts}


def judge_with_openevals(url: str) -> dict[str, Any]:
    from openai import OpenAI
    from openevals.llm import create_llm_as_judge

    prompt = CRITERION + "\n<input>\n{inputs}\n</input>\n<output>\n{outputs}\n</output>"
    judge = create_llm_as_judge(prompt=prompt, judge=OpenAI(base_url=url, api_key="sk-mock"), model=MODEL)
    counts = count_calls(lambda row: judge(inputs=row["input"], outputs=row["output"])["score"])
    return {"version": importlib.metadata.version("openevals"), "counts": counts}


def judge_with_guardrails(url: str) -> dict[str, Any]:
    import asyncio

    from guardrails import check_plain_text

    os.environ["OPENAI_BASE_URL"] = url
    check = {"model": MODEL, "confidence_threshold": 0.7, "system_prompt_details": "Flag what is impolite."}
    stage = {"version": 1, "guardrails": [{"name": "Custom Prompt Check", "config": check}]}

    async def judge_all() -> dict[str, int]:
        counts: Counter[str] = Counter()
        for row in make_rows():
            try:
                await check_plain_text(row["output"], stage)
                counts["let through"] += 1
            except Exception as error:  # noqa: BLE001 - as above
                counts[f"raised {type(error).__name__}"] += 1
        return dict(counts)

    return {"version": importlib.metadata.version("openai-guardrails"), "counts": asyncio.run(judge_all())}


TOOLS: dict[str, Callable[[str], dict[str, Any]]] = {
    "adjudge": judge_with_adjudge,
    "promptfoo": judge_with_promptfoo,
    "inspect_ai": judge_with_inspect_ai,
    "deepeval": judge_with_deepeval,
    "pydantic_evals": judge_with_pydantic_evals,
    "autoevals": judge_with_autoevals,
    "openevals": judge_with_openevals,
    "guardrails": judge_with_guardrails,
}


def run_tool(name: str, url: str, venvs: Path) -> dict[str, Any]:
    """Find what one library says, in a process of its own environment and an empty directory."""
    python = sys.executable if name in ("adjudge", "promptfoo") else str(venvs / name / "bin" / "python")
    environment = os.environ | {"TOOL_HOME": str(venvs / name), "OPENAI_API_KEY": "sk-mock"}
    with tempfile.TemporaryDirectory() as folder:
        command = [python, str(HERE), "--one", name, "--url", url]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"version"')]
    return json.loads(lines[-1]) if lines else {"not run": done.stderr[-400:]}


def main() -> None:
    """Ask each library, and print a line of JSON for it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", nargs="*", default=list(TOOLS))
    parser.add_argument("--venvs", type=Path, default=HERE.parents[1] / "bench" / "venvs")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(TOOLS[options.one](options.url)))
        return
    today = datetime.now(UTC).date().isoformat()
    print(json.dumps({"date": today, "rows": ROWS} | Counter(plan_row(row) for row in range(ROWS))))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for name in options.tools:
        found = run_tool(name, f"http://127.0.0.1:{server.server_port}/v1", options.venvs.resolve())
        print(json.dumps({"tool": name} | found), flush=True)


if __name__ == "__main__":
    main()
