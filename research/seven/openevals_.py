"""The jobs of openevals, a library of evaluators: ``create_llm_as_judge`` judges an answer in a call.

Its README (on PyPI, 0.2.2) customizes the model by a chat model of LangChain, so this does. Read for what it lacks:
that README, and every module of the package.
"""

from __future__ import annotations

import json
from typing import Any

from langchain_openai import ChatOpenAI
from openevals.llm import create_llm_as_judge
from openevals.types import EvaluatorResult
from openevals.utils import _run_evaluator

from seven.work import (
    BROKEN,
    CRITERION,
    DONE,
    FINE,
    MODEL,
    NO_JSON,
    NONE,
    NOT,
    OWN,
    ROWS,
    RUDE,
    TASK,
    TIMEOUT_S,
    Found,
    Server,
    count_agreement,
    count_votes,
    judge_rows,
    try_each,
    weigh_fault,
    weigh_own_loop,
    weigh_second,
)

PROMPT = CRITERION + "\n<input>\n{inputs}\n</input>\n<output>\n{outputs}\n</output>"


def make_model(server: Server, mode: str, run: str = "one", **options: Any) -> ChatOpenAI:
    return ChatOpenAI(model=MODEL, base_url=server.get_address(mode, run), api_key="sk-mock", **options)


def make_judge(server: Server, mode: str, run: str = "one", *, continuous: bool = False, **options: Any) -> Any:
    model = make_model(server, mode, run, **options)
    return create_llm_as_judge(prompt=PROMPT, judge=model, continuous=continuous)


def judge(evaluator: Any, content: str) -> str:
    score = evaluator(inputs=TASK, outputs=content)["score"]
    words = {True: "passed", False: "failed", None: "no verdict: score None"}
    return words.get(score, f"score {score}")


def try_mode(server: Server, mode: str, **options: Any) -> Found:
    evaluator = make_judge(server, mode, **options)
    return weigh_fault(*try_each(lambda content: judge(evaluator, content), FINE, BROKEN))


def down(server: Server) -> Found:
    return try_mode(server, "down")


def cut(server: Server) -> Found:
    return try_mode(server, "cut")


def scale(server: Server) -> Found:
    return try_mode(server, "scale", continuous=True)


def timeout(server: Server) -> Found:
    return try_mode(server, "hang", timeout=TIMEOUT_S, max_retries=0)


def again(server: Server) -> Found:
    """The retries of the client are for HTTP; nothing in llm.py asks again for JSON that can't be read."""
    evaluator = make_judge(server, "again")
    return weigh_second(lambda: judge(evaluator, BROKEN))


def orders(server: Server) -> Found:
    """No evaluator of the package compares two outputs; a prompt of one's own does, one order in a call."""
    prompt = "Which output is better, first or second?\n<first>{outputs}</first>\n<second>{reference_outputs}</second>"
    model = make_model(server, "first")
    compare = create_llm_as_judge(prompt=prompt, judge=model, choices=[1.0, 0.0])
    there, back = (
        compare(outputs=new, reference_outputs=old)["score"] for new, old in [(FINE, ROWS[0]), (ROWS[0], FINE)]
    )
    return Found(OWN, f"a prompt of our own, called twice: {there} and {back}, so they agree: {there != back}")


def function(_server: Server) -> Found:
    """Its README, "Creating your own": a function that returns key, score and comment."""
    values: list[Any] = [True, 0.25, (0.25, "why"), None]
    told = {}
    for value in values:
        result: EvaluatorResult = _run_evaluator(run_name="own", scorer=lambda v=value: v, feedback_key="own")
        told[str(value)] = f"{result['score']}, {result['comment']}"
    return Found(DONE if told["None"].startswith("None") else NOT, f"score and comment: {told}")


def several(server: Server) -> Found:
    """No module combines evaluators."""
    judges = [make_judge(server, mode, mode, max_retries=0) for mode in ("good", "good", "down-all")]
    return count_votes(lambda at: judge(judges[int(at)], FINE))


def rule(server: Server) -> Found:
    """Its JSON evaluators match against a reference; whether a text is JSON is json.loads, and an if."""
    try:
        json.loads(NO_JSON)
    except ValueError as error:
        return Found(OWN, f"{type(error).__name__} of our own json.loads; the judge was not asked ({server.count()})")
    return Found(NOT, judge(make_judge(server, "good"), NO_JSON))


def long_run(server: Server) -> Found:
    """A loop that writes what it has and leaves it out the next time; the library has none."""
    evaluator = make_judge(server, "slow")
    return judge_rows(lambda content: judge(evaluator, content))


def resume(server: Server) -> Found:
    """Its README runs over data sets by LangSmith's ``evaluate``, a service."""
    return weigh_own_loop("openevals", long_run, server)


def cache(server: Server) -> Found:
    """LangChain's cache of chat models, which the README does not name; this one is for a process."""
    from langchain_core.caches import InMemoryCache

    told = []
    kept = InMemoryCache()
    for _ in range(2):
        judge(make_judge(server, "good", cache=kept), FINE)
        told.append(server.count())
    found = f"{told[0]} request, and {told[1] - told[0]} the second time, by a cache of LangChain given to its model"
    return Found(DONE if told[1] == told[0] else NOT, found)


def budget(_server: Server) -> Found:
    return Found(NONE, "nothing of cost in the package or its README")


def status(server: Server) -> Found:
    """Its README: pytest, with LangSmith's marks."""
    return Found(OWN, f"no command of its own; assert in pytest: {judge(make_judge(server, 'good'), RUDE)}")


def people(server: Server) -> Found:
    """LangSmith, a service, has annotation queues and aligns evaluators; the package has nothing."""
    evaluator = make_judge(server, "good")
    return count_agreement(lambda content: judge(evaluator, content))


def approval(_server: Server) -> Found:
    return Found(NONE, "nothing holds an action back, in the package or its README")


def record(_server: Server) -> Found:
    return Found(NONE, "nothing is kept, by the package or its README")
