"""The jobs of Inspect: a task that replays the answers, scored by ``model_graded_qa``.

Read for what it lacks: inspect.aisi.org.uk on Errors and Limits, Eval Sets, Scorers, Caching, Approval and Log Files,
its command line, and the package.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from subprocess import run
from typing import Any

os.environ.update(INSPECT_DISPLAY="none", INSPECT_LOG_LEVEL="error", INSPECT_LOG_DIR=str(Path.cwd() / "logs"))
os.environ.update(INSPECT_CACHE_DIR=str(Path.cwd() / "cache"), XDG_DATA_HOME=str(Path.cwd() / "data"))

import inspect_ai
from inspect_ai.approval import ApprovalPolicy, human_approver
from inspect_ai.dataset import Sample
from inspect_ai.model import GenerateConfig, Model, ModelOutput, ModelUsage, get_model
from inspect_ai.model._model_data.model_data import ModelCost
from inspect_ai.scorer import (
    Score,
    accuracy,
    krippendorff_alpha,
    match,
    model_graded_qa,
    multi_scorer,
    scorer,
)
from inspect_ai.solver import generate, solver, use_tools
from inspect_ai.tool import tool

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
    SCRIPT,
    TASK,
    TIMEOUT_S,
    Found,
    Server,
    kill_at,
    shorten,
    weigh_fault,
    weigh_resumed,
    weigh_second,
)

BIN = Path(sys.executable).parent / "inspect"


@solver
def replay() -> Any:
    async def solve(state: Any, _generate: Any) -> Any:
        state.output = ModelOutput.from_content("replay", state.metadata["output"])
        return state

    return solve


def make_grader(server: Server, mode: str, run_name: str = "one", **config: Any) -> Model:
    address, given = server.get_address(mode, run_name), GenerateConfig(**config)
    return get_model(f"openai/{MODEL}", config=given, base_url=address, api_key="sk-mock", responses_api=False)


def make_task(contents: list[str], scorers: Any, **options: Any) -> Any:
    samples = [Sample(input=TASK, target=CRITERION, metadata={"output": content}) for content in contents]
    return inspect_ai.Task(dataset=samples, solver=replay(), scorer=scorers, **options)


def evaluate(contents: list[str], scorers: Any, **options: Any) -> Any:
    """Evaluate without stopping at the first sample that fails, as "Errors and Limits" describes it."""
    task = make_task(contents, scorers)
    given = {"model": "mockllm/model", "fail_on_error": False, "max_samples": 1} | options
    [log] = inspect_ai.eval(task, **given)
    return log


def read_verdicts(log: Any) -> list[str]:
    return [describe(sample) for sample in log.samples]


def describe(sample: Any) -> str:
    if sample.error is not None:
        return f"no verdict: error of the sample: {shorten(sample.error.message)}"
    [score] = (sample.scores or {"none": None}).values()
    if score is None:
        return "no verdict: no score"
    words = {"C": "passed", "I": "failed", "nan": "no verdict: NaN, unscored"}
    return words.get(str(score.value), f"score {score.value}")


def try_mode(server: Server, mode: str, **config: Any) -> Found:
    log = evaluate([FINE, BROKEN], model_graded_qa(model=make_grader(server, mode, **config)))
    found = weigh_fault(*read_verdicts(log))
    return Found(found.word, f"{found.evidence} (status {log.status})")


def down(server: Server) -> Found:
    return try_mode(server, "down", max_retries=1)


def cut(server: Server) -> Found:
    return try_mode(server, "cut")


def scale(server: Server) -> Found:
    return try_mode(server, "scale")


def timeout(server: Server) -> Found:
    """Its options: ``timeout`` is for a request with its retries, ``attempt_timeout`` for one attempt."""
    return try_mode(server, "hang", attempt_timeout=int(TIMEOUT_S), max_retries=0)


def again(server: Server) -> Found:
    """``retry_on_error`` of "Errors and Limits" runs a sample again that raised; a grade not found doesn't raise."""
    grader = model_graded_qa(model=make_grader(server, "again"))
    return weigh_second(lambda: read_verdicts(evaluate([BROKEN], grader, retry_on_error=1))[0])


def orders(server: Server) -> Found:
    """Its scorers take one output ("Scorers"); a scorer of one's own may ask its model twice."""

    @scorer(metrics=[accuracy()])
    def better() -> Any:
        grader = make_grader(server, "good")

        async def score(state: Any, _target: Any) -> Score:
            said = []
            for first, second in ((state.output.completion, ROWS[0]), (ROWS[0], state.output.completion)):
                reply = await grader.generate(f"Is the first better?\n1: {first}\n2: {second}\nGRADE: C or I")
                said.append(reply.completion[-1])
            return Score(value="C" if said == ["C", "I"] else "I" if said == ["I", "C"] else "N", answer=str(said))

        return score

    log = evaluate([FINE], better())
    [score] = log.samples[0].scores.values()
    return Found(OWN, f"a scorer of our own that asks twice: {score.answer}, so {score.value}")


def function(_server: Server) -> Found:
    """Its page "Scorers": a function that returns a Score, or Score.unscored."""
    values = {"true": True, "number": 0.25, "reason": (0.25, "why"), "none": None}

    @scorer(metrics=[accuracy()])
    def own() -> Any:
        async def score(state: Any, _target: Any) -> Score | None:
            value = values[state.output.completion]
            if value is None:
                return None
            return Score(value=value[0], explanation=value[1]) if isinstance(value, tuple) else Score(value=value)

        return score

    log = evaluate(list(values), own())
    [scored] = log.results.scores
    told = dict(zip(values, read_verdicts(log), strict=True))
    counted = f"accuracy {scored.metrics['accuracy'].value:.2f} of {scored.scored_samples} scored"
    return Found(
        DONE if told["none"].startswith("no verdict") else NOT, f"a function that returns Score: {told}; {counted}"
    )


def several(server: Server) -> Found:
    """``model_graded_qa(model=[...])``: a strict majority, by its docstring and "Scorers"."""
    graders: list[Any] = [make_grader(server, mode, mode, max_retries=0) for mode in ("good", "good", "down-all")]
    down_one = read_verdicts(evaluate([FINE], model_graded_qa(model=graders)))[0]
    graders[2] = make_grader(server, "fails", "fails")
    all_up = read_verdicts(evaluate([FINE], model_graded_qa(model=graders)))[0]
    told = f"two pass and one fails: {all_up}; two pass and one is down: {down_one}"
    return Found(DONE if down_one == "passed" else NOT, told)


def rule(server: Server) -> Found:
    """All scorers of a task run ("Scorers"); one of one's own may call another."""
    import json

    @scorer(metrics=[accuracy()])
    def json_first() -> Any:
        graded = model_graded_qa(model=make_grader(server, "good"))

        async def score(state: Any, target: Any) -> Any:
            try:
                json.loads(state.output.completion)
            except ValueError:
                return Score(value="I", explanation="not JSON")
            return await graded(state, target)

        return score

    told = read_verdicts(evaluate([NO_JSON], json_first()))[0]
    return Found(OWN, f"a scorer of our own around model_graded_qa: {told} after {server.count()} requests")


TASK_FILE = """
import sys
sys.path.insert(0, {folder!r})
from inspect_ai import task
from inspect_ai.scorer import model_graded_qa
from seven.inspect_ai_ import make_grader, make_task
from seven.work import FINE, ROWS, RUDE, Server

@task
def rows():
    return make_task(ROWS, model_graded_qa(model=make_grader(Server({root!r}), "slow")))

@task
def one_fails():
    return make_task([FINE, RUDE], model_graded_qa(model=make_grader(Server({root!r}), "good")))
"""


def write_task(server: Server) -> None:
    Path("own.py").write_text(TASK_FILE.format(folder=str(SCRIPT.parent), root=server.root), "utf-8")


def run_eval(*arguments: str) -> int:
    command = [str(BIN), *arguments, "--max-samples", "1"]
    return run(command, capture_output=True, check=False).returncode


def resume(server: Server) -> Found:
    """Its page "Eval Sets": the same command again continues what is in the log directory; else ``log recover``."""
    write_task(server)
    command = [str(BIN), "eval-set", "own.py@rows", "--model", "mockllm/model", "--log-dir", "set"]
    before = kill_at([*command, "--max-samples", "1"], server, 3)
    run_eval(*command[1:])
    logs = [inspect_ai.log.read_eval_log(info) for info in inspect_ai.log.list_eval_logs("set")]
    judged = max((read_verdicts(log).count("passed") for log in logs if log.samples), default=0)
    found = weigh_resumed(before, server.count(), judged)
    return Found(found.word, f"eval-set: {found.evidence}")


def cache(server: Server) -> Found:
    """Its page "Caching": ``cache`` of a model's configuration."""
    told = []
    for _ in range(2):
        evaluate(ROWS, model_graded_qa(model=make_grader(server, "good", cache=True)))
        told.append(server.count())
    found = f"{told[0]} requests, and {told[1] - told[0]} the second time, with cache=True of the grader"
    return Found(DONE if told[1] == told[0] else NOT, found)


def budget(server: Server) -> Found:
    """``cost_limit`` of "Errors and Limits" is for a sample; nothing there is for a whole evaluation."""
    price = ModelCost(input=1000, output=1000, input_cache_write=0, input_cache_read=0)  # a reply costs 1.10
    grader = make_grader(server, "dear")
    limits = {"cost_limit": 2.0, "model_cost_config": {f"openai/{MODEL}": price}}
    log = evaluate(ROWS, model_graded_qa(model=grader), model=grader, **limits)  # it wants a price for every model
    spent = 1.1 * server.count()
    told = f"cost_limit=2.00 is for one sample: {server.count()} requests for {spent:.2f} dollars, status {log.status}"
    return Found(DONE if spent <= 2 else NOT, told)


def status(server: Server) -> Found:
    """Its command line: ``eval-set`` says whether the evaluations are complete, whatever they found."""
    write_task(server)
    plain = run_eval("eval", "own.py@one_fails", "--model", "mockllm/model")
    whole = run_eval("eval-set", "own.py@one_fails", "--model", "mockllm/model", "--log-dir", "set")
    log = evaluate([FINE, RUDE], model_graded_qa(model=make_grader(server, "good")))
    value = log.results.scores[0].metrics["accuracy"].value
    told = (
        f"one of two failed: eval ended with {plain}, eval-set with {whole}; a line of our own reads accuracy {value}"
    )
    return Found(DONE if plain else OWN, told)


def people(server: Server) -> Found:
    """``krippendorff_alpha`` compares the scorers of a panel; the label of people is a scorer of one line."""
    labels = dict(LABELLED)

    @scorer(metrics=[accuracy()])
    def person() -> Any:
        async def score(state: Any, _target: Any) -> Score:
            return Score(value="C" if labels[state.output.completion] else "I")

        return score

    @scorer(metrics=[krippendorff_alpha()])
    def both() -> Any:
        panel = multi_scorer([model_graded_qa(model=make_grader(server, "good")), person()], "collect")

        async def score(state: Any, target: Any) -> Any:
            return await panel(state, target)

        return score

    log = evaluate(list(labels), both())
    metrics = {name: round(metric.value, 3) for name, metric in log.results.scores[0].metrics.items()}
    return Found(DONE if metrics else NOT, f"judge and label as a panel: {metrics}")


APPROVE_FILE = "from seven.inspect_ai_ import approve_here; approve_here()"


def approve_here() -> None:
    """Let a model call a tool, ask the person at standard input first, and print how often the tool ran."""
    ran = []

    @tool
    def pay() -> Any:
        async def execute(amount: int) -> str:
            """Pay.

            Args:
                amount: Dollars.
            """
            ran.append(amount)
            return "paid"

        return execute

    outputs = [
        ModelOutput.for_tool_call("mockllm/model", "pay", {"amount": 5}),
        ModelOutput.from_content("mockllm/model", "done"),
    ]
    for output in outputs:  # else it downloads an encoding, to count the tokens
        output.usage = ModelUsage(input_tokens=9, output_tokens=9, total_tokens=18)
    task = inspect_ai.Task(
        dataset=[Sample(input="pay")],
        solver=[use_tools(pay()), generate()],
        scorer=match(),
        approval=[ApprovalPolicy(human_approver(), "*")],
    )
    inspect_ai.eval(task, model=get_model("mockllm/model", custom_outputs=outputs), display="plain")
    print(f"ran {len(ran)}")


def approval(_server: Server) -> Found:
    """Its page "Tool Approval": the human approver, at the terminal; here the answers come from standard input."""
    told = {}
    for answer in ("r", "a"):
        command = [sys.executable, "-c", APPROVE_FILE]
        environment = os.environ | {"PYTHONPATH": str(SCRIPT.parent)}
        done = run(command, input=f"{answer}\n", capture_output=True, text=True, check=False, env=environment)
        told[answer] = (done.stdout.strip().splitlines() or [shorten(done.stderr[-200:])])[-1]
    good = told == {"r": "ran 0", "a": "ran 1"}
    return Found(
        DONE if good else NOT,
        f"human approver of a tool call of its own agent: rejected {told['r']}, approved {told['a']}",
    )


def record(_server: Server) -> Found:
    """Its page "Log Files": an edit of a score has its author (ProvenanceData); nothing checks the file itself."""
    return Found(NONE, "an edit by its own edit_score names its author; nothing shows a change of the file")
