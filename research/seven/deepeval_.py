"""The jobs of DeepEval: ``evaluate`` with the metric ``GEval``, and the errors of a metric ignored.

Its page "Flags and Configs" (deepeval.com/docs/evaluation-flags-and-configs) recommends ``ignore_errors`` for judges
that may fail to write valid JSON. Read for what it lacks: that page, "Introduction to LLM Evals", and the package.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from subprocess import run
from sys import executable
from typing import Any

os.environ.update(DEEPEVAL_TELEMETRY_OPT_OUT="1", DEEPEVAL_DISABLE_DOTENV="1", DEEPEVAL_NO_INSPECT_PROMPT="1")
os.environ.update(DEEPEVAL_RETRY_INITIAL_SECONDS="0.2", DEEPEVAL_RETRY_CAP_SECONDS="0.5")

from seven.work import (
    BROKEN,
    BY_DEFAULT,
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
    TASK,
    TIMEOUT_S,
    Found,
    Server,
    call_job,
    kill_at,
    shorten,
    try_each,
    weigh_fault,
    weigh_resumed,
    weigh_second,
)


def make_metric(server: Server, mode: str, run: str = "one") -> Any:
    from deepeval.metrics import GEval
    from deepeval.models import OpenAIModel
    from deepeval.test_case import SingleTurnParams

    return GEval(
        name="polite",
        criteria=CRITERION,
        evaluation_steps=["Check whether the output is polite."],
        model=OpenAIModel(model=MODEL, base_url=server.get_address(mode, run), api_key="sk-mock"),
        evaluation_params=[SingleTurnParams.INPUT, SingleTurnParams.ACTUAL_OUTPUT],
    )


def evaluate_all(metric: Any, contents: list[str], *, ignore_errors: bool = True, **configs: Any) -> list[str]:
    """Judge contents by ``evaluate``, one after another, and say what its results hold for each."""
    from deepeval import evaluate
    from deepeval.evaluate import AsyncConfig, DisplayConfig, ErrorConfig
    from deepeval.test_case import LLMTestCase

    result = evaluate(
        [LLMTestCase(input=TASK, actual_output=content) for content in contents],
        [metric],
        async_config=AsyncConfig(max_concurrent=1),
        display_config=DisplayConfig(show_indicator=False, print_results=False, inspect_after_run=False),
        error_config=ErrorConfig(ignore_errors=ignore_errors),
        **configs,
    )
    found = {item.actual_output: item for item in result.test_results}
    return [describe(found[content]) if content in found else "missing" for content in contents]


def describe(item: Any) -> str:
    [data] = item.metrics_data
    if data.error is not None and data.score is None:
        return f"no verdict: score None, error {shorten(data.error, 80)}; its success is {item.success}"
    return f"passed with {data.score}" if item.success and data.score > 1 else "passed" if item.success else "failed"


def try_mode(server: Server, mode: str) -> Found:
    return weigh_fault(*evaluate_all(make_metric(server, mode), [FINE, BROKEN]))


def try_both(server: Server, mode: str) -> Found:
    """Try a mode, and then the default, by which an error of a metric ends the evaluation."""
    found, metric = try_mode(server, mode), make_metric(server, mode, "default")
    [default] = try_each(lambda content: evaluate_all(metric, [FINE, content], ignore_errors=False)[1], BROKEN)
    return Found(found.word, f"{found.evidence}{BY_DEFAULT}{default}")


def down(server: Server) -> Found:
    return try_both(server, "down")


def cut(server: Server) -> Found:
    return try_both(server, "cut")


def scale(server: Server) -> Found:
    return try_mode(server, "scale")


def timeout(server: Server) -> Found:
    """The setting is documented among the environment variables."""
    os.environ.update(DEEPEVAL_PER_ATTEMPT_TIMEOUT_SECONDS_OVERRIDE=str(TIMEOUT_S), DEEPEVAL_RETRY_MAX_ATTEMPTS="1")
    return try_mode(server, "hang")


def again(server: Server) -> Found:
    """Its retry policy (models/retry_policy.py) is for HTTP; a reply that can't be read is not asked for again."""
    return weigh_second(lambda: evaluate_all(make_metric(server, "again"), [BROKEN])[0])


def orders(server: Server) -> Found:
    """``ArenaGEval`` (metrics/arena_g_eval/utils.py) shuffles the contestants and asks once."""
    from deepeval.metrics import ArenaGEval
    from deepeval.models import OpenAIModel
    from deepeval.test_case import ArenaTestCase, Contestant, LLMTestCase, SingleTurnParams

    model = OpenAIModel(model=MODEL, base_url=server.get_address("first"), api_key="sk-mock")
    asked = {"criteria": CRITERION, "evaluation_steps": ["Choose the polite one."], "model": model}
    metric = ArenaGEval(name="better", evaluation_params=[SingleTurnParams.ACTUAL_OUTPUT], **asked)
    new, old = (LLMTestCase(input=TASK, actual_output=content) for content in (FINE, ROWS[0]))
    case = ArenaTestCase(contestants=[Contestant(name="new", test_case=new), Contestant(name="old", test_case=old)])
    winners = Counter(metric.measure(case, _show_indicator=False) for _ in range(8))
    return Found(OWN, f"one order, drawn at random, in a call; a loop of our own of 8 calls: {dict(winners)}")


def function(_server: Server) -> Found:
    """The page "Custom metrics": a subclass of ``BaseMetric`` whose ``measure`` sets score and success, or raises."""
    from deepeval.metrics import BaseMetric

    class Own(BaseMetric):
        threshold, async_mode = 0.5, False

        def __init__(self, returned: Any) -> None:
            self.returned = returned

        def measure(self, *_args: Any, **_kwargs: Any) -> Any:
            if self.returned is None:
                self.error = "cannot tell"
                raise ValueError(self.error)
            self.score, self.reason = self.returned if isinstance(self.returned, tuple) else (self.returned, None)
            self.success = self.score >= self.threshold
            return self.score

        async def a_measure(self, *_args: Any, **_kwargs: Any) -> Any:
            return self.measure()

        def is_successful(self) -> bool:
            return bool(self.success)

    values = (True, 0.25, (0.25, "why"), None)
    told = {str(value): try_each(lambda _, value=value: evaluate_all(Own(value), [FINE])[0], "")[0] for value in values}
    return Found(DONE if told["None"].startswith("no verdict") else OWN, f"a class with measure(): {told}")


def several(server: Server) -> Found:
    """No metric of metrics/ combines others; a test case passes if all of its metrics do."""
    from deepeval.test_case import LLMTestCase

    case = LLMTestCase(input=TASK, actual_output=FINE)
    metrics = [make_metric(server, mode, mode) for mode in ("good", "good", "down-all")]

    def ask(at: str) -> str:
        metric = metrics[int(at)]
        metric.measure(case, _show_indicator=False)
        return "passed" if metric.is_successful() else "failed"

    word, count = Counter(try_each(ask, "0", "1", "2")).most_common(1)[0]
    return Found(OWN, f"all metrics of a case must pass; counted by hand: {word} by {count} of 3")


def rule(server: Server) -> Found:
    """``evaluate`` measures every metric of a case; its page names no order in which one ends the others."""
    from deepeval.metrics import JsonCorrectnessMetric
    from deepeval.test_case import LLMTestCase
    from pydantic import BaseModel

    class Left(BaseModel):
        left: str

    first = JsonCorrectnessMetric(expected_schema=Left, include_reason=False)
    first.measure(LLMTestCase(input=TASK, actual_output=NO_JSON), _show_indicator=False)
    if first.is_successful():
        evaluate_all(make_metric(server, "good"), [NO_JSON])
    told = f"JsonCorrectnessMetric: {first.score}; an if of our own did not ask the judge ({server.count()} requests)"
    return Found(OWN, told)


def long_run(server: Server) -> Found:
    from deepeval.evaluate import CacheConfig

    told = evaluate_all(make_metric(server, "slow"), ROWS, cache_config=CacheConfig(write_cache=True, use_cache=True))
    return Found(DONE, str(sum(item == "passed" for item in told)))


def resume(server: Server) -> Found:
    """Its cache is the only thing that its pages name for this ("Flags and Configs")."""
    before = kill_at(call_job("deepeval", "long_run", server), server, 3)
    judged = int(long_run(server).evidence)
    return weigh_resumed(before, server.count(), judged)


def cache(server: Server) -> Found:
    long_run(server)
    first = server.count()
    long_run(server)
    told = f"{first} requests, and {server.count() - first} the second time, with CacheConfig(use_cache=True)"
    return Found(DONE if server.count() == first else NOT, told)


def budget(_server: Server) -> Found:
    """``evaluation_cost`` is what a metric has cost; config/settings.py and "Flags and Configs" have no limit."""
    return Found(NONE, "it reports evaluation_cost; nothing in its settings limits it")


TEST = """
from deepeval import assert_test
from deepeval.test_case import LLMTestCase
from seven.deepeval_ import make_metric
from seven.work import RUDE, TASK, Server

def test_polite():
    assert_test(LLMTestCase(input=TASK, actual_output=RUDE), [make_metric(Server({root!r}), "good")])
"""


def status(server: Server) -> Found:
    """``deepeval test run`` is what its page "Unit Testing in CI/CD" recommends."""
    Path("test_own.py").write_text(TEST.format(root=server.root), "utf-8")
    command = [str(Path(executable).parent / "deepeval"), "test", "run", "test_own.py"]
    research = str(Path(__file__).resolve().parents[1])
    done = run(command, capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": research})
    told = f"deepeval test run ended with {done.returncode} after {server.count()} requests"
    return Found(DONE if done.returncode and server.count() else NOT, told)


def people(server: Server) -> Found:
    """``deepeval.annotation`` sends ratings to Confident AI, a service; nothing offline compares with them."""
    contents = [content for content, _ in LABELLED]
    told = evaluate_all(make_metric(server, "good"), contents)
    agreed = sum((item == "passed") == good for item, (_, good) in zip(told, LABELLED, strict=True))
    return Found(OWN, f"counted by hand: {agreed} of {len(LABELLED)} agree; send_annotation needs Confident AI")


def approval(_server: Server) -> Found:
    return Found(NONE, "nothing holds an action back: ToolPermissionMetric scores calls that were made")


def record(_server: Server) -> Found:
    return Found(NONE, "its test runs are JSON files and a SQLite file that nothing checks for changes")
